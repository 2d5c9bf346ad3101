# SPDX-License-Identifier: MIT
"""Ladders in a folder outside the book: which folder, how it is built, how one is made."""
import difflib
import hashlib
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from building import build, configure, kinds, make_targets
from machine import die, say

MADE_FROM = Path("tools/capstone")
CALLED = ("begin_reference", "complete_inputs", "normalise", "reference_row")  # of a problem, by the book


def as_identifier(folder):
    """What the capstone in this folder is called, such as my_scan."""
    name = re.sub(r"[^a-z0-9]+", "_", folder.name.lower()).strip("_")
    if not re.match("[a-z]", name):
        die(f"the folder of a capstone needs a name that begins with a letter: not {folder.name}")
    return name


class Capstone:
    def __init__(self, given, caller, root):
        folder = caller / given
        if not folder.is_dir():
            die(f"no '{given}' here: neither a command nor a folder (./run help lists what there is)")
        self.root, self.folder = root, folder.resolve()
        if not (self.folder / "ladder.hpp").is_file():
            die(f"{given} holds no capstone: it has no ladder.hpp (./run new makes one)")
        if root / "chapters" in self.folder.parents:
            die(f"{given} is a chapter: name it by its number, as in ./run 3")
        self.name = as_identifier(self.folder)
        self.warn_of_names()
        self.program = f"capstone-{self.name}"
        key = hashlib.sha256(f"{self.folder}\n".encode()).hexdigest()[:8]
        self.build_folder = Path("build/capstones") / f"{self.name}-{key}"

    def warn_of_names(self):
        """A function of problem.hpp whose name is nearly one that the book calls is called by nothing."""
        file = self.folder / "problem.hpp"
        text = file.read_text(errors="replace") if file.is_file() else ""
        for name in sorted(set(re.findall(r"^\s*(?:static\s+)?void\s+(\w+)\s*\(", text, re.MULTILINE)) - set(CALLED)):
            if near := difflib.get_close_matches(name, CALLED, 1, 0.8):
                say(f"run: problem.hpp has a function '{name}', which is not called: is it {near[0]}?")

    def build(self, kind, kit, *targets):
        """First the target `kit` of the book, then these of the capstone."""
        folder = self.build_folder / kind
        build(kind, kit)
        configure(folder, "-S", "tools/capstone", "-B", str(folder), f"-DCOOKBOOK_KIT={self.root}/build/{kind}",
                  f"-DCOOKBOOK_CAPSTONE={self.folder}", f"-DCOOKBOOK_NAME={self.name}")
        make_targets(folder, f"{kind}: {' '.join(targets)}", targets)

    def build_all(self, backend):
        for kind in reversed(kinds(backend)):
            self.build(kind, "kit", self.program)

    def build_tests(self, backend):
        for kind in reversed(kinds(backend)):
            traced = [f"levels-traced-test-{self.program}"] if kind == "simt" else []
            self.build(kind, "kit-tests", self.program, f"levels-test-{self.program}", *traced)


def choices(kind):
    """The names of the templates, or of the topics: their folders."""
    return sorted(folder.name for folder in (MADE_FROM / kind).iterdir() if folder.is_dir())


def files_of(kind, name):
    """What a new capstone is made of: names and texts."""
    questions = (MADE_FROM / "templates/README.md").read_text()
    files = {file.name: file.read_text() for file in (MADE_FROM / kind / name).iterdir()}
    # A topic states its problem, and the same questions are to be answered.
    statement = files.get("README.md")
    files["README.md"] = f"{statement}\n{questions[questions.index('## 1.'):]}" if statement else questions
    return files


def new(arguments, caller):
    given, chosen, rest = None, {}, list(arguments)
    names = {"--from": choices("templates"), "--topic": choices("topics")}
    while rest:
        option, equals, value = rest.pop(0).partition("=")
        if option in names:
            takes = f"{option} takes {', '.join(names[option][:-1])} or {names[option][-1]}"
            chosen[option] = value if equals else rest.pop(0) if rest else die(takes)
            if chosen[option] not in names[option]:
                die(f"{takes}; got '{chosen[option]}'")
        elif option.startswith("-"):
            die(f"new takes no '{option}' (./run new PATH [--from {'|'.join(names['--from'])} | --topic TOPIC])")
        elif given:
            die(f"new takes one folder: not '{given}' and '{option}{equals}{value}'")
        else:
            given = f"{option}{equals}{value}"
    if len(chosen) > 1:
        die("new takes --from or --topic, not both")
    if not given:
        die("new takes the folder to make, such as ~/my_scan")
    folder = caller / given
    name = as_identifier(folder)
    if folder.exists() and not folder.is_dir():
        die(f"{given} is there already, and is no folder")
    if folder.is_dir() and any(folder.iterdir()):
        die(f"{given} is there already, and is not empty")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        die(f"cannot make the folder {given}")
    topic = chosen.get("--topic")
    try:
        for file, text in files_of("topics" if topic else "templates", topic or chosen.get("--from", "vector")).items():
            (folder / file).write_text(text.replace("capstone_name", name))
    except OSError:
        die(f"cannot write into the folder {given}")
    # Where it lies in a repository already, that one keeps it.
    if shutil.which("git") and subprocess.run(["git", "-C", folder, "rev-parse", "--git-dir"], capture_output=True,
                                              check=False).returncode:
        subprocess.run(["git", "-C", folder, "init", "-q"], capture_output=True, check=False)
    typed, task = shlex.quote(given), " README.md has the task." if topic else ""
    say(f"""Made {given}. Next:
  ./run {typed}             build it and print its ladder
  ./run {typed} --explain   its memory traffic, line by line
  ./run test {typed}        every level over odd sizes, layouts and inputs
Levels are the files level_*.cuh, listed in ladder.hpp; problem.hpp says what is computed.{task}""")
