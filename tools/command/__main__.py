# SPDX-License-Identifier: MIT
"""What `./run` does: help.txt says it for people. Runs in the root of the book."""
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import machine
import unchanged
from building import Builds, build, build_for_tests, ctest, ctest_with_skips, jobs, kinds, tools_of
from capstones import Capstone, new
from machine import die, say

ROOT = Path.cwd()
CALLER = Path(os.environ["COOKBOOK_CALLER"])  # where relative paths of the command line begin
FILES = ("--json", "--timeline", "--draw", "--out", "--answers", "--results", "--png")  # options whose value is a file or a folder
WRITTEN = ("--json", "--timeline", "--out")
OF_A_LADDER = {"--all", "--base", "--check", "--draw", "--exercise", "--explain", "--in-process", "--inputs", "--json", "--ladder",
               "--level", "--no-trace", "--pitch", "--seconds", "--seed", "--size", "--time-limit", "--timeline"}
OF_A_QUESTION = ("--variant", "--hint", "--answers", "--json")
OF_AN_EXERCISE = ("--variant", "--hint", "--size", "--json", "--out", "--seed", "--time-limit", "--in-process")
HELP = {"-h", "--help"}
backend = ""


def replace_by(*command):
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # which Python ignores
    try:
        os.execvp(command[0], [str(part) for part in command])
    except OSError as error:
        die(f"{command[0]}: {error.strerror}", 126)


def status_of(*command, **more):
    status = subprocess.run(command, check=False, **more).returncode
    return status if status >= 0 else 128 - status  # as a shell says that a signal ended it


# --- arguments -------------------------------------------------------------------------------------
def with_option(arguments):
    """(option, value, argument) of each argument: an option `--out` and its value, whether `--out v` or `--out=v`."""
    previous = ""
    for argument in arguments:
        option, equals, value = argument.partition("=")
        if previous in FILES + ("--gpu", "--root"):
            yield previous, argument, argument
        elif equals and option.startswith("-"):
            yield option, value, argument
        else:
            yield "", "", argument
        previous = argument


def as_seen_from_caller(arguments):
    """The command line, with files and folders as seen from the caller's folder."""
    return [argument[:len(argument) - len(value)] + str(CALLER / value)
            if option in FILES and value and CALLER != ROOT else argument
            for option, value, argument in with_option(arguments)]


def with_folders(arguments):
    """The same, and makes the folders of the files that will be written."""
    for option, value, _ in with_option(arguments):
        if option in WRITTEN and value:
            try:
                (CALLER / value).parent.mkdir(parents=True, exist_ok=True)
            except OSError:
                die(f"cannot make the folder {Path(value).parent}")
    return as_seen_from_caller(arguments)


def is_plain(option, argument):
    """Neither an option nor the value of one."""
    return not option and not argument.startswith("-")


def require_values(arguments):
    """Refuses what is empty, such as a variable that was not set: `--json ""` would write no file and say nothing."""
    arguments = arguments[:arguments.index("--")] if "--" in arguments else arguments
    for before, (option, value, argument) in zip(["", *arguments], with_option(arguments)):
        if option in (*FILES, "--gpu", "--root") and not value:
            die(f"{option} takes a value; got ''")
        if not argument and not before.startswith("-"):
            die("an argument is empty: ''")


# --- what is built ---------------------------------------------------------------------------------
def chapters():
    return [line.split()[0] for line in Path("chapters/contents.txt").read_text().splitlines()]


def known_chapter(number):
    if number not in chapters():
        die(f"no chapter {number}; there are: {' '.join(chapters())} ")
    return number


def prepare(*targets, only=None, needs_gpu=True):
    """Installs what is missing and builds these targets, for one backend or for all that are used."""
    with tools_of(backend, needs_gpu):
        if targets and not only:
            Builds(kinds(backend), targets).wait_for()
        else:
            for kind in [only] if only else kinds(backend):
                build(kind, *targets)
    return ()


def has_own_levels(number):
    """Whether the chapter compiles its levels itself, as chapter 11 does: on a GPU without marks."""
    return any(Path().glob(f"chapters/{int(number):02}_*/levels.cu"))


def asks_for_marks(arguments):
    """A timeline is recorded by a program of its own, which nothing else builds."""
    return any(argument.startswith("--timeline") for argument in arguments)


# --- verbs -----------------------------------------------------------------------------------------
def setup(arguments):
    if arguments:
        die(f"setup takes no '{arguments[0]}'")
    with tools_of(backend, needs_gpu=False):
        pass
    say(f"Everything is installed that the {backend} backend needs.")


def build_verb(arguments):
    if len(arguments) > 1:
        die("build takes one folder, or nothing")
    if not arguments:
        prepare(needs_gpu=False)
        return
    capstone = Capstone(arguments[0], CALLER, ROOT)
    with tools_of(backend, needs_gpu=False):
        capstone.build_tests(backend)


def first_ladder(program):
    """Its name, as --list begins with it."""
    listed = subprocess.run([program, "--list"], stdout=subprocess.PIPE, text=True, check=False).stdout
    return listed.partition(":")[0]


def every_chapter(arguments):
    if any(argument.startswith("--timeline") for argument in arguments):
        die("--timeline records a level of one chapter, such as: ./run 8 --timeline out.json")
    taken = with_folders(arguments)
    numbers = chapters()
    # The first chapter reports an option that no chapter has, before the others are built: --list runs nothing.
    if arguments and not HELP & {*arguments} and "--exercise" not in " ".join(arguments):
        prepare(f"chapter-{numbers[0]}")
        program = f"build/{backend}/chapter-{numbers[0]}"
        if status_of(program, *taken, "--list", stdout=subprocess.DEVNULL) == 2:
            sys.exit(2)
    status = 0
    with ExitStack() as building:
        building.enter_context(tools_of(backend))
        builds = Builds(kinds(backend), [f"chapter-{number}" for number in numbers])
        for number in numbers:  # each while the later ones are still compiled
            builds.wait_for(f"chapter-{number}")
            if builds.ended:
                building.close()  # another ./run may build now
            # A file per chapter: book.json becomes book-0.json, book-1.json ...
            own = [f"{argument.removesuffix('.json')}-{number}.json" if option == "--json" else argument
                   for option, _, argument in with_option(taken)]
            program = f"build/{backend}/chapter-{number}"
            if backend == "simt" and not arguments:  # nothing is timed, and the others would take as long again
                own = ["--ladder", first_ladder(program)]
            status = status_of(program, *own) or status
    if backend == "simt" and not arguments:
        say("These were the first ladders. ./run 9 runs all of chapter 9.")
    sys.exit(status)


def one_chapter(number, arguments):
    known_chapter(number)
    taken = with_folders(arguments)
    if asks_for_marks(arguments) and backend == "cuda" and has_own_levels(number):
        die(f"chapter {number} has no levels with marks: --timeline takes another chapter, or BACKEND=simt")
    prepare(f"chapter-{number}")
    if asks_for_marks(arguments):
        prepare(f"chapter-{number}-timeline", only=backend)
    replace_by(f"build/{backend}/chapter-{number}", *taken)


def sidebar(program, arguments):
    """An experiment beside a chapter's ladder. Its chapter does not build it."""
    _, number, name = program.split("-", 2)
    source = next(iter(Path().glob(f"chapters/{int(known_chapter(number)):02}_*/sidebar_{name.replace('-', '_')}.cu")), None)
    if not source:
        files = Path().glob(f"chapters/{int(number):02}_*/sidebar_*.cu")
        names = sorted(f"chapter-{number}-{file.stem[len('sidebar_'):].replace('_', '-')}" for file in files)
        die(f"no {program}; chapter {number} has: {' '.join(names) or 'none'}")
    if backend != "cuda" and "\n// needs: cuda" in source.read_text():
        die(f"{program} needs a GPU and nvcc")
    with tools_of(backend):
        Builds([backend], [program]).wait_for()
    replace_by(f"build/{backend}/{program}", *with_folders(arguments))


def taken_out(arguments, option):
    """(the other arguments, the option's value or None), whether `--option v` or `--option=v`."""
    if arguments[-1:] == [option]:
        die(f"{option} takes a value")
    rest, value = [], None
    for before, argument in zip(["", *arguments], arguments):
        if before == option:
            value = argument
        elif argument.startswith(option + "="):
            value = argument.partition("=")[2]
        elif argument != option:
            rest.append(argument)
    return rest, value


def exercise(arguments):
    named = re.fullmatch(r"(\d+)\.(\d+)", arguments[0]) if arguments else None
    if not named:
        die("exercise takes CHAPTER.NUMBER, such as 3.1")
    number = known_chapter(named[1])
    files = [*Path().glob(f"chapters/{int(number):02}_*/exercises/exercise_{named[2]}_*")]
    if not files:
        die(f"no exercise {named[0]}; docs/exercises.md lists them")
    data = next((json.loads(file.read_text()) for file in files if file.suffix == ".json"), {"kind": ""})
    to_read, of_numbers = data["kind"] == "read", data.get("program")  # a sidebar's, that adds up a file of numbers
    known = OF_A_QUESTION if to_read or of_numbers else OF_AN_EXERCISE
    for option in (argument.partition("=")[0] for argument in arguments if argument.startswith("--")):
        if option not in known:
            die(f"exercise {named[0]} takes no '{option}'; it takes {', '.join(known)}")
    if "--hint" in arguments:
        rest, wanted = taken_out(arguments[1:], "--variant")
        after = [argument for argument in rest if argument != "--hint"] or ["1"]
        replace_by("python3", "-B", "tools/exercises", "hint", named[0], *after, *(["--variant", wanted] if wanted is not None else []))
    if to_read or of_numbers:
        taken = with_folders(arguments[1:])
        prepare(of_numbers or f"chapter-{number}", only="simt")
        verb = "numbers" if of_numbers else "read"
        replace_by("python3", "-B", "tools/exercises", verb, named[0], "--build", "build/simt", *taken)
    taken, wanted = taken_out(arguments[1:], "--variant")
    if wanted is not None:
        taken, out = taken_out(as_seen_from_caller(taken), "--out")
        where = ["--out", out] if out else []
        status = status_of("python3", "-B", "tools/exercises", "variant", named[0], wanted, *where)
        if status or out:
            sys.exit(status)
    arguments = [named[0], *taken]
    taken = with_folders(arguments[1:])
    for file in files:
        said = re.search(r"^// (Variant \d+ of exercise [^ ]+ \([^)]*\))", file.read_text(), re.MULTILINE)
        if said and file.suffix == ".cuh":
            print(f"{file} says: {said[1]}", flush=True)
    # Chapter 11 has a levels.cu of its own, and no program of its exercises alone.
    alone = not list(Path().glob(f"chapters/{int(number):02}_*/levels.cu"))
    prepare(f"chapter-{number}{'-exercises' if alone else ''}", only="simt")
    replace_by(f"build/simt/{'exercises/' if alone else ''}chapter-{number}", "--exercise", named[2], *taken)


def is_unchanged():
    """Whether all tests have passed with what is here. On a GPU, which is another one each time, they have not."""
    if backend != "simt":
        return False
    with tools_of(backend):  # installs the compiler, which the answer depends on
        return unchanged.has_passed()


def test(arguments):
    # A reader's own edits (a new level, a solved exercise) must not fail here.
    which, words = ["-LE", "^maintainer$"], list(itertools.takewhile(lambda word: word in ("--maintainer", "--all"), arguments))
    maintainer, everything, arguments = "--maintainer" in words, "--all" in words, arguments[len(words):]
    if maintainer:
        which = []
    os.environ["COOKBOOK_LINE_PER_FAILURE"] = "1"  # for tests/failures.hpp
    for name in "COOKBOOK_SHORT_TEST", "COOKBOOK_FULL_TEST":
        os.environ.pop(name, None)
    for option in OF_A_LADDER & {argument.partition("=")[0] for argument in arguments}:  # ctest would ignore it
        die(f"test takes no {option} (./run {arguments[0]} {option} ... does; test takes options of ctest, such as -R NAME)")
    first, folder, chosen, gpu = "".join(arguments[:1]), Path("build"), [], kinds(backend)[0]
    run_tests = ctest
    if first.isdigit():
        number, arguments = known_chapter(first), arguments[1:]
        which += ["-R", f"^(traced_)?chapter_{number}([._]|$)"]
        prepare(f"levels-test-{number}", f"levels-traced-test-{number}", only="simt")
        if backend == "cuda":
            prepare(f"levels-test-{number}", only="cuda")
    elif first and not first.startswith("-"):
        capstone, arguments, which = Capstone(first, CALLER, ROOT), arguments[1:], []
        folder = capstone.build_folder
        with tools_of(backend):
            capstone.build_tests(backend)
        run_tests = ctest_with_skips
        # Before anything runs: two levels of one name, or a size that the problem refuses or at which it crashes.
        if (status := status_of(f"{folder}/{backend}/{capstone.program}", "--list", stdout=subprocess.DEVNULL)) in (1, 2, 3):
            sys.exit(status)
    elif any(re.match(r"-R|--tests-regex|-L$|--label-regex", argument) for argument in arguments):
        chosen = ["--no-tests=error"]  # a misspelt name is no success
        with tools_of(backend):
            build_for_tests(backend, [*which, *arguments])
    else:
        tested = unchanged.digest()
        if short := not everything and is_unchanged():
            capstones = sorted(ladder.parent.name for ladder in Path("capstones").glob("*/ladder.hpp"))
            os.environ["COOKBOOK_SHORT_TEST"] = "1"  # for tests/chapters.hpp
            others = ""
            if maintainer:
                programs = [*(f"chapter_{each}" for each in chapters()), *(f"capstone_{each}" for each in capstones)]
                os.environ["COOKBOOK_FULL_TEST"] = unchanged.drawn(programs, tested)
                others = f", a full one of {os.environ['COOKBOOK_FULL_TEST']}, and all other tests"
            say(f"Nothing but exercises has changed since all tests passed: a short test of every level{others} "
                "(--all: everything)")
        if short and not maintainer:
            which += ["-R", f"^(traced_)?(chapter_[0-9]+|capstone_({'|'.join(capstones)}))([._]|$)"]
            prepare("levels")
        else:
            prepare()
            if maintainer:
                prepare("solutions", only="simt")
    say("Testing ...")
    run_tests(folder / "simt", jobs(), *which, *chosen, *arguments)
    if gpu == "cuda":
        run_tests(folder / "cuda", "8", *which, *arguments)
    if chosen or first and not first.startswith("-"):
        return
    if backend != "cuda":
        all_of_them = maintainer and everything and all(re.fullmatch(r"-j\d*|\d+", each) for each in arguments)
        if all_of_them and tested == unchanged.digest():  # nobody has edited a file since
            unchanged.write(tested)
            say(f"No test has failed: {unchanged.RECORD} names these sources")
        say("Skipped, for want of a GPU and nvcc: the CUDA build of the kernels, timing, parity with ncu.")
    elif shutil.which("compute-sanitizer"):
        replace_by("tests/sanitize.sh")
    else:
        say("Skipped: compute-sanitizer is not installed.")


def sanitize(arguments):
    if backend != "cuda":
        die("sanitize needs a GPU and nvcc")
    prepare(only="cuda")
    replace_by("tests/sanitize.sh", *arguments)


def tool(path, arguments, prepared=lambda arguments: ()):
    """A program of tools/. `prepared` builds what it needs and returns options for it; its help needs nothing."""
    if not arguments or HELP & {*arguments}:
        arguments = ["--help"]
    else:
        arguments = [*prepared(arguments), *arguments]
    replace_by("python3", path, "--build", "build/simt", *arguments)


def check(arguments):
    if not arguments:
        die("check takes the source files of a CUDA program, such as prog.cu")
    tool("tools/check/check.py", arguments, lambda _: prepare("check", only="simt"))


def for_assignment(arguments):
    if named := re.search(r"[\s=](\d+)\.\d+\s", f" {' '.join(arguments)} "):
        prepare("grading", f"chapter-{known_chapter(named[1])}", only="simt")
    return ()


def field_of(assignment, name, kind):
    """A field of an assignment.json, or None where it is not of this kind: the grader says what is wrong with it."""
    try:
        found = json.loads(assignment.read_text()).get(name)
    except (ValueError, AttributeError):
        return None
    return found if isinstance(found, kind) else None


def for_grade(arguments):
    # The first argument that is a folder with an assignment: speed needs a GPU's build, questions a chapter's program.
    files = (CALLER / argument / "assignment.json" for argument in arguments)
    assignment = next((file for file in files if file.is_file()), None)
    chapter = re.match(r"(\d+)\.\d+$", field_of(assignment, "read", str) or "") if assignment else None
    prepare("grading", *([f"chapter-{known_chapter(chapter[1])}"] if chapter else []), only="simt")
    if backend != "cuda" or not assignment or field_of(assignment, "speed", dict) is None:
        return ()
    prepare("grading", only="cuda")
    return "--gpu-build", "build/cuda"


def script(path, arguments):
    """A script of the book, or the comment that it begins with."""
    if HELP & {*arguments}:
        for line in Path(path).read_text().splitlines()[2:]:
            if not line.startswith("#"):
                return
            print(line[2:])
    replace_by(path, *arguments)


def docs(arguments):
    if arguments and not HELP & {*arguments}:
        die(f"docs takes no '{arguments[0]}'")
    script("docs/build.sh", arguments)


def plots(arguments):
    if arguments and not arguments[0].startswith("-") and (CALLER / arguments[0]).is_dir():
        if len(arguments) > 1:
            die("plots takes one capstone, and nothing besides")
        replace_by("plots/run.sh", "--capstone", "plots", Capstone(arguments[0], CALLER, ROOT).folder)
    taken = as_seen_from_caller(arguments)
    if any(is_plain(option, argument) for option, _, argument in with_option(arguments)):
        # Results, as seen from the caller's folder.
        replace_by("plots/run.sh", "--own", *(str(CALLER / argument) if is_plain(option, argument) else argument
                                              for option, _, argument in with_option(taken)))
    replace_by("plots/run.sh", *taken)


def report(arguments):
    if len(arguments) != 1:
        die("report takes one capstone, such as ~/my_scan")
    capstone = Capstone(arguments[0], CALLER, ROOT)
    results = capstone.folder / "results"
    if not list(results.glob("*.json")):  # those of this machine
        try:
            results.mkdir(parents=True, exist_ok=True)
        except OSError:
            die(f"cannot make the folder {results}")
        with tools_of(backend):
            capstone.build_all(backend)
        # 1: something is wrong, and the report says what. The second run counts line by line.
        program = f"{capstone.build_folder}/{backend}/{capstone.program}"
        lines = ("--explain", "--draw", capstone.folder / "pictures", "--json", results / "lines.json")
        for options, more in ((("--json", results / f"{backend}.json"), {}), (lines, {"stdout": subprocess.DEVNULL})):
            if status_of(program, *options, **more) == 2:
                sys.exit(2)
    replace_by("plots/run.sh", "--capstone", "report", capstone.folder)


def own_ladder(given, arguments):
    capstone = Capstone(given, CALLER, ROOT)
    taken = with_folders(arguments)
    with tools_of(backend):
        capstone.build_all(backend)
        if asks_for_marks(arguments):
            capstone.build(backend, "kit", f"{capstone.program}-timeline")
    replace_by(f"{capstone.build_folder}/{backend}/{capstone.program}", *taken)


VERBS = {
    "all": every_chapter, "setup": setup, "build": build_verb, "exercise": exercise, "test": test, "sanitize": sanitize,
    "check": check, "docs": docs, "plots": plots, "report": report,
    "new": lambda arguments: new(arguments, CALLER),
    "assignment": lambda arguments: tool("tools/grading/make.py", arguments, for_assignment),
    "grade": lambda arguments: tool("tools/grading/grade.py", arguments, for_grade),
    "written": lambda arguments: replace_by("python3", "-B", "tools/grading/written.py", *(arguments or ["--help"])),
    "profile": lambda arguments: script("plots/profile.sh", arguments if HELP & {*arguments} else with_folders(arguments)),
    "roofline": lambda arguments: replace_by("plots/run.sh", "--program", *arguments),
    "compare": lambda arguments: replace_by("plots/compare.sh", *with_folders(arguments)),
}
WITHOUT_HELP_OF_THEIR_OWN = ("setup", "build", "exercise", "test", "sanitize", "report", "new")


def main(arguments):
    global backend
    if not re.fullmatch(r"[1-9]\d*", os.environ.get("JOBS") or "1"):
        die(f"JOBS is '{os.environ['JOBS']}'; it must be a number of compilers, 1 or more")
    backend = machine.choose_backend()
    os.environ["BACKEND"] = backend  # what calls ./run again (plots/profile.sh) need not choose, and say why, again
    if backend == "cuda":
        machine.find_nvcc()
    require_values(arguments)
    verb = arguments.pop(0) if arguments and (not arguments[0].startswith("--") or arguments[0] in
                                              ("--help", "--print-backend")) else "all"
    if verb in ("help", *HELP) or verb in WITHOUT_HELP_OF_THEIR_OWN and HELP & {*arguments}:
        print((machine.HERE / "help.txt").read_text(), end="")
    elif verb == "--print-backend":
        print(backend)
    elif verb in VERBS:
        VERBS[verb](arguments)
    elif re.fullmatch(r"\d\d?", verb):
        one_chapter(verb, arguments)
    elif re.fullmatch(r"chapter-\d\d?-[a-z0-9-]+", verb):
        sidebar(verb, arguments)
    else:
        own_ladder(verb, arguments)


signal.signal(signal.SIGINT, signal.SIG_DFL)
main(sys.argv[1:])
