#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""./run check on the programs of this folder: what it finds is what their comments say, no more and no less.

    // exit: 1                 the exit status
    // prints: text            a part of what the program prints
    // options: --time-limit 2
    // device: rtx5090         COOKBOOK_SIMT_DEVICE
    x[i] = 0;  // finds: race, uninitialised
    x[i] = 0;  // says: a part of a finding that names the line, or of its remedy
    x[i] = 0;  // unsupported: a part of the message

Usage: check_programs_test.py BUILD [LIBRARY.a] [PROGRAM.cu ...]

LIBRARY.a is what the programs are linked with: it tells tests/mutate what has to be built.
"""
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
CHECK = FOLDER.parents[1] / "tools/check/check.py"
sys.path.insert(0, str(CHECK.parent))
import check  # noqa: E402


def marks(text, word):
    """{line: [text, ...]} of `// word: text, ...`"""
    found = {}
    for number, line in enumerate(text.split("\n"), 1):
        match = re.search(rf"// {word}: (.*?)(?:  //|$)", line)
        if match:
            found[number] = [part.strip() for part in match[1].split(",")]
    return found


def header(text, word):
    match = re.search(rf"^// {word}: (.*)$", text, re.MULTILINE)
    return match[1] if match else None


def problems(build, source):
    """What is not as the program's comments say."""
    text = source.read_text()
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        device = header(text, "device")
        done = subprocess.run([sys.executable, CHECK, "--build", build, source, "--json", result,
                               *shlex.split(header(text, "options") or "")],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120,
                              env=os.environ | ({"COOKBOOK_SIMT_DEVICE": device} if device else {}))
        found = json.loads(result.read_text()) if result.exists() else {"findings": [], "costly": []}
    output = done.stdout + done.stderr
    if done.returncode != int(header(text, "exit")):
        yield f"exit status {done.returncode}:\n{output}"
    prints = header(text, "prints")
    if prints and prints not in done.stdout:
        yield f"does not print '{prints}':\n{output}"
    for line, parts in marks(text, "unsupported").items():
        rows = [row for row in done.stderr.split("\n") if f"{source.name}:{line}:" in row]
        if not any(part in row for row in rows for part in parts):
            yield f"line {line}: '{parts}' is not named:\n{output}"
    at = lambda message: {int(n) for n in re.findall(rf"{re.escape(source.name)}:(\d+)", message)}
    for line, parts in marks(text, "says").items():
        said = [finding["message"] + finding["remedy"] for finding in found["findings"] if line in at(finding["message"])]
        if not all(any(part in message for message in said) for part in parts):
            yield f"line {line}: '{parts}' is not said:\n{output}"
    pairs = [(finding["kind"], at(finding["message"])) for finding in found["findings"]]
    pairs += [(text.split(":")[0], {line}) for _, line, text in found["costly"]]
    wanted = {(kind, line) for line, kinds in marks(text, "finds").items() for kind in kinds}
    for kind, line in sorted(wanted):
        if not any(kind == k and line in lines for k, lines in pairs):
            yield f"line {line}: {kind} is not found:\n{output}"
    for kind, lines in pairs:
        if not any((kind, line) in wanted for line in lines):
            yield f"finds what is not marked: {kind} at {sorted(lines)}:\n{output}"


def page_problems(build):
    """What --html lacks, called from another folder as ./run does."""
    source = FOLDER / "memory.cu"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, CHECK, "--build", os.path.relpath(build), source, "--html", "page.html"],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120,
                              env=os.environ | {"COOKBOOK_CALLER": folder})
        file = Path(folder) / "page.html"
        page = file.read_text() if file.exists() else ""
    for number, word in ((10, "bank conflict"), (16, "uncoalesced")):
        for wanted in (f'id="f0-{number}"', f'<a href="#f0-{number}">memory.cu:{number}</a>: {word}'):
            if wanted not in page:
                yield f"--html lacks {wanted}:\n{done.stdout + done.stderr}"
    for wanted in ("32 lanes x 4 bytes: 32 wavefronts (ideal: 1)", "One request of a warp touches 32 sectors"):
        if wanted not in page:
            yield f"--html lacks a picture with '{wanted}'"


class InterruptedLink(check.Compiler):
    """A linker that is interrupted when it has written half of a program."""
    def __init__(self):
        self.link = {"plain": []}

    def run(self, arguments):
        Path(arguments[arguments.index("-o") + 1]).write_text("half")
        raise KeyboardInterrupt


def link_problems():
    with tempfile.TemporaryDirectory() as folder:
        try:
            InterruptedLink().link_program([], "plain", Path(folder, "program"))
        except KeyboardInterrupt:
            pass
        for path in Path(folder).iterdir():
            yield f"an interrupted link leaves {path.name}"


def interrupt_problems():
    """A compiler whose own child is at work when ./run check is told to end."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "pid")
        compiler = object.__new__(check.Compiler)
        compiler.command = ["sh", "-c", f"sleep 60 & echo $! > '{file}.new'; mv '{file}.new' '{file}'; wait"]
        compiler.environment = os.environ

        def interrupt():
            while not file.exists():
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGTERM)

        before = signal.signal(signal.SIGTERM, check.end)
        threading.Thread(target=interrupt, daemon=True).start()
        try:
            compiler.run([])
        except SystemExit:
            pass
        signal.signal(signal.SIGTERM, before)
        child = Path(f"/proc/{file.read_text().strip()}/stat")
        for _ in range(100):
            if not child.exists() or child.read_text().rsplit(")")[-1].split()[0] == "Z":
                return
            time.sleep(0.01)
        yield "an interrupted compilation goes on"


def estimate_problems():
    """What a traced run takes is known from what it has done: many small launches, most of which it does not look at."""
    many = [(1, 1)] * 4 + [(1, 0)] * 96
    for times, progress, seconds in ((many, (50, 400, 92), 592),  # others take twice as long
                                     (many, (2, 200, 0), 200 + 200 + 96 * check.UNTRACED),
                                     ([(2, 0.25)] * 2, (1, 51.5 + 1.5 * check.UNTRACED, 0), 103 + 3 * check.UNTRACED),
                                     (many, (0, 0, 0), 4 * check.TYPICAL + 96 * check.UNTRACED)):
        found = check.estimate(times, progress)
        if abs(found - seconds) > 1e-6:
            yield f"of {progress} the estimate is {found} s, not {seconds} s"


def main(build, names):
    sources = [FOLDER / name for name in names if not name.endswith(".a")] or sorted([*FOLDER.glob("*.cu"), *FOLDER.glob("*.cpp")])
    failed = 0
    with ThreadPoolExecutor(2) as pool:
        for source, found in zip(sources, pool.map(lambda s: list(problems(build, s)), sources)):
            print(f"{source.name}: {'as marked' if not found else 'WRONG'}")
            for problem in found:
                failed = 1
                print(f"  {problem}")
    for problem in page_problems(build) if len(sources) > 1 or sources[0].name == "memory.cu" else ():
        failed = 1
        print(problem)
    for problem in [*link_problems(), *interrupt_problems(), *estimate_problems()]:
        failed = 1
        print(problem)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
