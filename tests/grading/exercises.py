#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes an assignment from each exercise of the book, and grades with it what it was made from: the exercise as it
is handed out must not get full points, and the solution of tests/solutions must.

  tests/grading/exercises.py BUILD               all exercises
  tests/grading/exercises.py BUILD 3.1 9.2       only these
"""
import contextlib
import io
import re
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tools/grading")]
import assignment as assignments  # noqa: E402
import grade  # noqa: E402
import make  # noqa: E402


def exercises():
    """["3.1", ...]"""
    found = []
    for path in sorted((ROOT / "chapters").glob("*/exercises/exercise_*.cuh")):
        number = re.match(r"exercise_(\d+)_", path.name)[1]
        found.append(f"{int(path.parent.parent.name[:2])}.{number}")
    return found


def try_exercise(name, build_folder, variant=None):
    """What is wrong with the assignment made from it, or nothing."""
    with tempfile.TemporaryDirectory() as temporary:
        arguments = make.parse_arguments(["--build", str(build_folder), "new", "task", "--from", name, "--seed", "1",
                                          *([] if variant is None else ["--variant", variant])])
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                of_solution, of_given = make.new(arguments, Path(temporary))
        except (assignments.BadAssignment, assignments.BadSubmission) as reason:
            return str(reason)
        assignment = assignments.Assignment(Path(temporary) / "task")
    for who, checks in (("solution", of_solution), ("given", of_given)):
        rows = grade.score(assignment, {"checks": checks})
        got, of = sum(row["points"] for row in rows), sum(row["of"] for row in rows)
        if (abs(got - of) < 1e-6) != (who == "solution"):
            wrong = "; ".join(f"{row['step']}: {row['feedback']}" for row in rows if not row["passed"])
            return f"the {who} gets {got:g} of {of:g} points; {wrong}"
    return ""


def main(argv):
    found, wrong = exercises(), 0
    for name in argv[1:] or found:
        began = time.monotonic()
        why = try_exercise(name, Path(argv[0]).resolve())
        wrong += bool(why)
        print(f"{name:>5}  {time.monotonic() - began:4.0f} s  {why or 'as it should be'}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
