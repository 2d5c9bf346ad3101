# SPDX-License-Identifier: MIT
"""Whether all tests have passed with what is here: then `./run test` tests every level shortly, and nothing else.

tests/passed.json says of which sources, compiler and kind of machine that is true. `./run test --maintainer --all` writes
it once everything has passed."""
import hashlib
import json
import os
import platform
from pathlib import Path

from machine import says

ROOT = Path(__file__).resolve().parents[2]
RECORD = "tests/passed.json"
FOLDERS = ("capstones", "chapters", "common", "library", "plots", "tests", "tools")
FILES = ("CMakeLists.txt", "CMakePresets.json", "run")
# Not what tests depend on: texts, pictures, and records of what was measured.
NOT_TESTED = (".md", ".svg", ".png", ".pyc", "_record.json")


def sources(root):
    """The files that the tests depend on, in order."""
    found = [root / name for name in FILES]
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            names = path.relative_to(root).parts
            is_exercise = names[0] == "chapters" and "exercises" in names and path.suffix == ".cuh"  # a student's to edit
            if not path.name.endswith(NOT_TESTED) and not is_exercise and not any(name.startswith(".") for name in names):
                found.append(path)
    return [path for path in found if path.is_file() and path != root / RECORD]


def digest(root=ROOT):
    """A hash of the sources: each one's path, and what is in it."""
    total = hashlib.sha256()
    for path in sources(root):
        total.update(f"{path.relative_to(root)}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


def machine():
    """What else decides whether a test passes: "g++ 12, x86_64"."""
    compiler = os.environ.get("CXX") or "g++"
    return f"{Path(compiler).name} {says(compiler, '-dumpfullversion').strip().partition('.')[0]}, {platform.machine()}"


def has_passed(root=ROOT):
    """Whether these sources passed every test, compiled as they are here."""
    try:
        record = json.loads((root / RECORD).read_text())
        return record["machine"] == machine() and record["sources"] == digest(root)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def drawn(programs, tested):
    """The one of `programs` that is tested in full all the same, so that a record that is wrong is found some day.
    Other sources draw another."""
    return min(programs, key=lambda program: hashlib.sha256(f"{tested} {program}".encode()).hexdigest())


def write(tested):
    """The record: that sources with this digest have passed."""
    (ROOT / RECORD).write_text(json.dumps({"machine": machine(), "sources": tested}, indent=1) + "\n")


if __name__ == "__main__":
    print(f"{RECORD} is {'of these sources' if has_passed() else 'of other sources or another compiler: ./run test runs every test'}")
