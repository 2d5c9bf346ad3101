#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The solution of an exercise: the exercise's own file with the edits of tests/solutions/ in it.

  tools/exercises/solution.py EXERCISE EDITS OUT     writes the solution

An edits file explains the solution in `//` lines. Then come its edits, each after a line `@@`, as in a diff without
line numbers: ` ` begins a line that stays, `-` one that goes and `+` one that comes. The lines that stay or go must
occur in the exercise exactly once, so an exercise that changes there fails here and not in a test.
"""
import re
import sys
from pathlib import Path


class BadEdits(Exception):
    """One line: which edit of which file does not fit, or what is no exercise."""


def read_edits(text, name):
    """[(number of the line `@@`, lines before, lines after)]"""
    edits = []
    for number, line in enumerate(text.rstrip("\n").split("\n"), 1):
        if line == "@@":
            edits.append((number, [], []))
        elif edits and (line == "" or line[0] in " -+"):
            if line[:1] != "+":
                edits[-1][1].append(line[1:])
            if line[:1] != "-":
                edits[-1][2].append(line[1:])
        elif edits or not line.startswith("//"):
            raise BadEdits(f"{name}:{number}: begins with none of ' ', '-', '+' and '@@'")
    if not edits:
        raise BadEdits(f"{name}: has no edit: no line '@@'")
    return edits


def solve(exercise, edits, name="edits", reverse=False):
    """The text of `exercise` with the text `edits` applied; errors call the edits `name`. `reverse`: takes them back."""
    rows = exercise.split("\n")
    for number, before, after in read_edits(edits, name):
        if reverse:
            before, after = after, before
        found = [at for at in range(len(rows)) if before and rows[at:at + len(before)] == before]
        if len(found) != 1 or before == after:
            raise BadEdits(f"{name}:{number}: " + ("changes nothing" if before == after else
                                                   f"its lines are in the exercise {len(found)} times, not once"))
        rows[found[0]:found[0] + len(before)] = after
    return "\n".join(rows)


def level_in(text):
    """The type that the file defines as its level, and the line of its struct: the one with a LevelText."""
    rows = text.split("\n")
    spaces = []
    at = next((i for i, row in enumerate(rows) if "LevelText text" in row), None)
    if at is None:
        raise BadEdits("the file defines no level: it has no `static constexpr LevelText text`")
    for row in rows[:at]:
        opened, closed = re.match(r"namespace ([\w:]+) \{", row), re.match(r"\}  // namespace", row)
        if opened:
            spaces.append(opened[1])
        elif closed:
            spaces.pop()
    begin = max(i for i in range(at) if re.match(r"struct \w+", rows[i]))
    return "::".join([*spaces, re.match(r"struct (\w+)", rows[begin])[1]]), begin


def edits_of(exercise, root, ending=".diff"):
    """The file of edits that solves the exercise of a chapter, or that makes a wrong solution of it, whether it is there or
    not."""
    return root / "tests/solutions" / exercise.parent.parent.name[:2] / f"{exercise.stem}{ending}"


def main(argv):
    exercise, edits, out = map(Path, argv)
    try:
        text = solve(exercise.read_text(), edits.read_text(), edits)
    except BadEdits as reason:
        print(f"solution: {reason} ({exercise})", file=sys.stderr)
        return 2
    out.parent.mkdir(parents=True, exist_ok=True)
    out.unlink(missing_ok=True)  # build folders of earlier commits have a link into the sources there
    out.write_text(f"// Assembled from {exercise} and {edits}: change these.\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
