# SPDX-License-Identifier: MIT
"""Configuring, building, and which targets the chosen tests need."""
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from machine import die, ensure_tools, say


def jobs():
    return os.environ.get("JOBS") or str(len(os.sched_getaffinity(0)))


@contextmanager
def tools_of(backend, needs_gpu=True):
    """Installs what is missing. One ./run at a time does so and builds within; a second one waits."""
    try:
        Path("build").mkdir(exist_ok=True)
        lock = open("build/lock", "w")
    except OSError as reason:
        die(f"build/lock: {reason.strerror}: ./run writes into the folder of the book")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another ./run is building here: waiting for it.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        ensure_tools(backend, needs_gpu)
        yield


def run_logged(command, log):
    with log.open("w") as file:
        status = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False).returncode
    if status:
        sys.stderr.write(log.read_text(errors="replace"))
    return status


def configure(folder, *arguments):
    folder = Path(folder)
    if (folder / "CMakeCache.txt").is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    ninja = ["-G", "Ninja"] if shutil.which("ninja") else []
    if run_logged(["cmake", *arguments, *ninja], folder / "configure.log"):
        (folder / "CMakeCache.txt").unlink(missing_ok=True)  # CMake writes it all the same, and the next run tries again
        die("configuring failed", 1)


def make_targets(folder, what, targets):
    say(f"Building ({what}) ...")
    command = ["cmake", "--build", str(folder), "-j", jobs(), *(["--target", *targets] if targets else [])]
    if sys.stderr.isatty():
        status = subprocess.run(command, stdout=sys.stderr, check=False).returncode
    else:
        status = run_logged(command, Path(folder) / "build.log")
    if status:
        die("the build failed", 1)


def build(kind, *targets):
    configure(f"build/{kind}", "--preset", kind)
    make_targets(f"build/{kind}", ": ".join([kind, *([" ".join(targets)] if targets else [])]), targets)


class Builds:
    """The targets, built in the folders of these kinds at the same time, in the background. A target is ready once it is
    linked in each. Timing beside compilers is sound where cores are left: docs/measuring.md has the experiment."""

    STEP = re.compile(r"\[ *(\d+/\d+|\d+%)\]")
    # Ninja says that a step has ended, make that a target has.
    READY = re.compile(r"\[\d+/\d+\] Linking \w+ executable (\S+)|.*Built target (\S+)")

    def __init__(self, kinds, targets):
        self.ready = {kind: set() for kind in kinds}
        self.status, self.step, self.printed = {}, {}, {kind: [] for kind in kinds}
        self.changed = threading.Condition()
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda kind: configure(f"build/{kind}", "--preset", kind), kinds))
        say(f"Building ({', '.join(kinds)}: {' '.join(targets)}) ...")
        for kind in kinds:
            threading.Thread(target=self.build, args=(kind, targets), daemon=True).start()

    def build(self, kind, targets):
        command = ["cmake", "--build", f"build/{kind}", "-j", jobs(), "--target", *targets]
        with open(f"build/{kind}/build.log", "w") as log, \
                subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as made:
            for line in made.stdout:
                log.write(line)
                with self.changed:
                    self.printed[kind].append(line)
                    step, ready = self.STEP.match(line), self.READY.match(line)
                    self.step[kind] = step[1] if step else self.step.get(kind, "")
                    if ready:
                        self.ready[kind].add(ready[1] or ready[2])
                    self.changed.notify()
        with self.changed:
            self.status[kind] = made.returncode
            self.changed.notify()

    @property
    def ended(self):
        return len(self.status) == len(self.ready)

    def wait_for(self, target=None):
        """Until the target is ready, or all have ended. Ends here where it cannot be built."""
        shown = False
        with self.changed:
            while missing := [kind for kind in self.ready if target not in self.ready[kind] and self.status.get(kind) != 0]:
                if failed := [kind for kind in missing if kind in self.status]:
                    sys.stderr.write(("\r\033[K" if shown else "") + "".join(self.printed[failed[0]]))
                    die("the build failed", 1)
                if sys.stderr.isatty():
                    steps = ", ".join(f"{kind} {self.step.get(kind) or 'begins'}" for kind in missing)
                    sys.stderr.write(f"\r\033[KBuilding{f' {target}' if target else ''} (steps of all that is built: {steps})")
                    sys.stderr.flush()
                    shown = True
                self.changed.wait(1)
        if shown:
            sys.stderr.write("\r\033[K")


def kinds(backend):
    """The traced executables, which count and look for races, are SIMT ones also where there is a GPU."""
    return ["simt"] if backend == "simt" else ["cuda", "simt"]


PASSED = re.compile(r" *\d+/\d+ Test +#\d+: (\S+) \.* +Passed +([\d.]+) sec")
FAILED = re.compile(r" *\d+/\d+ Test +#\d+: (\S+) \.*\*\*\*(\w[\w ]*?) +([\d.]+) sec")
FRAME = re.compile(r"Internal ctest|Test project|UpdateCTest|Constructing a list|Done constructing|Updating test list|"
                   r"Checking test dep|Total Test time|Errors while|The following tests|Output from these|Use \"--rerun|"
                   r"Label Time|\t *\d+ - | +Start +\d+:|$")


def skipped_lines(text):
    """A line per reason, of what tests of levels have skipped: their notes, a JSON object per line (tests/failures.hpp)."""
    by_reason = {}
    for line in text.splitlines():
        note = json.loads(line)
        by_reason.setdefault(note["reason"], []).append(note)
    for reason, notes in sorted(by_reason.items()):
        levels, tests = (", ".join(sorted({note[key] for note in notes})) for key in ("level", "test"))
        skipped, of = (sum(note[key] for note in notes) for key in ("skipped", "of"))
        yield f"skipped {skipped} of {of} cases of {levels} ({tests}): {reason}"


def ctest_with_skips(folder, workers, *arguments):
    """ctest_in_lines(), and whether it passes or not, what was skipped."""
    with tempfile.NamedTemporaryFile("r") as notes:
        os.environ["COOKBOOK_SKIPPED"] = notes.name
        try:
            ctest_in_lines(folder, workers, *arguments)
        finally:
            for line in list(skipped_lines(notes.read())) or ["No case was skipped."]:
                print(line, flush=True)


def ctest_in_lines(folder, workers, *arguments):
    """A line per group of tests, and what a failing one prints. Ends here where one fails."""
    with subprocess.Popen(["ctest", "--test-dir", str(folder), "-j", workers, "--output-on-failure", *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as tests:
        for line in map(str.rstrip, tests.stdout):
            if found := PASSED.match(line):
                print(f"passed  {found[1]}  {found[2]} s", flush=True)
            elif found := FAILED.match(line):
                print(f"FAILED  {found[1]}  {found[3]} s" + ("" if found[2] == "Failed" else f" ({found[2]})"), flush=True)
            elif not FRAME.match(line):
                print(line, flush=True)
    if tests.returncode:
        sys.exit(tests.returncode)


def ctest(folder, workers, *arguments):
    """Ends here where a test fails."""
    status = subprocess.run(["ctest", "--test-dir", str(folder), "-j", workers, "--output-on-failure", *arguments],
                            check=False).returncode
    if status:
        sys.exit(status)


def targets_of_tests(tests, folder):
    """The executables that these tests of ctest's JSON run. Where one is not built yet, a test NAME_NOT_BUILT stands for
    its tests. A test that runs a script has a target needs-NAME, for what the script uses."""
    folder = os.path.realpath(folder) + "/"
    for test in tests:
        name, command = test["name"], test.get("command")
        if name.endswith("_NOT_BUILT"):
            yield command[-1] if command else name.removesuffix("_NOT_BUILT")
        else:
            program = os.path.basename(command[0]) if command[0].startswith(folder) else "needs-" + name
            yield program
            if program == "exercises-test":
                yield "solutions"


def build_for_tests(backend, arguments):
    """What the tests need that these arguments of ctest choose. Where no name matches, the tests of what is not built yet
    may, so everything is built."""
    for kind in reversed(kinds(backend)):
        configure(f"build/{kind}", "--preset", kind)
        shown = subprocess.run(["ctest", "--test-dir", f"build/{kind}", "--show-only=json-v1", *arguments],
                               stdout=subprocess.PIPE, text=True, check=False)
        if shown.returncode:
            die(f"ctest does not take: {' '.join(arguments)}")
        targets = sorted(set(targets_of_tests(json.loads(shown.stdout)["tests"], f"build/{kind}")))
        if not targets:
            say(f"No test that is built has such a name: building all ({kind}).")
        build(kind, *targets)
