# SPDX-License-Identifier: MIT
"""How many kernel statements change from one level to the next.

    changed_statements.py [CHAPTER...]    chapters by number; 6, 8 and 10 by default

A level is its idea: what a step changes beside the idea hides it. For each step of a ladder this
compares the kernels of two consecutive levels, statement by statement, and prints how many are new:
added, or altered in any character. Ends with status 1 if the median over all steps is above the
limit.

- The signature and the statements of every `__global__` function in a level's file are compared,
  without comments, white space and preprocessor lines. The head of a loop or of a condition is a
  statement.
- Each kernel is called `kernel`, so that its own name is no change.
- Statements that a level drops are printed and do not count: nobody has to read them.
- Functions that a kernel calls do not count: their names say what they do.
- A level without a kernel of its own runs that of the level that its file includes.
"""
import pathlib
import re
import statistics
import sys

LIMIT = 15
CHAPTERS = ("6", "8", "10")


def without_comments(source):
    source = re.sub(r"/\*.*?\*/", "", source, flags=re.S)
    source = re.sub(r"//[^\n]*", "", source)
    return re.sub(r"^\s*#[^\n]*", "", source, flags=re.M)


def end_of_block(source, begin):
    """The index after the `}` that closes the `{` at `begin`."""
    depth = 0
    for at in range(begin, len(source)):
        depth += {"{": 1, "}": -1}.get(source[at], 0)
        if depth == 0:
            return at + 1
    raise ValueError("a block is not closed")


def kernels(source):
    """Signature and body of each kernel; its name becomes `kernel`."""
    source = without_comments(source)
    found = []
    for match in re.finditer(r"__global__", source):
        begin = source.index("{", match.start())
        signature = source[match.end():begin]
        if ";" in signature:
            continue  # a declaration
        name = re.search(r"(\w+)\s*\((?![^()]*\)\s*\w+\s*\()", re.sub(
            r"__launch_bounds__\([^()]*(?:\([^()]*\)[^()]*)*\)", "", signature)).group(1)
        body = source[begin + 1:end_of_block(source, begin) - 1]
        found.append(re.sub(rf"\b{name}\b", "kernel", signature) + "{" + body)
    return found


def statements(kernel):
    """Split at `;`, `{` and `}` outside of parentheses, as in `for (a; b; c)`."""
    parts, depth, current = [], 0, ""
    for character in kernel:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth > 0 or character not in ";{}":
            current += character
            continue
        parts.append(current)
        current = ""
    parts.append(current)
    parts = [re.sub(r"\s+", "", part) for part in parts]
    return [part for part in parts if part not in ("", ",")]


def changed(before, after):
    """How many of `after` are new, and how many of `before` are gone: a longest common subsequence
    stays."""
    longest = [0] * (len(after) + 1)
    for old in before:
        diagonal = 0
        for at, new in enumerate(after):
            diagonal, longest[at + 1] = longest[at + 1], (
                diagonal + 1 if old == new else max(longest[at + 1], longest[at]))
    return len(after) - longest[-1], len(before) - longest[-1]


def level_statements(file, root):
    source = file.read_text()
    own = kernels(source)
    if own:
        return [statement for kernel in own for statement in statements(kernel)]
    for include in re.findall(r'#include "(chapters/[^"]*level_\d+_\w+\.cuh)"', source):
        return level_statements(root / include, root)
    for include in re.findall(r'#include "(chapters/[^"]*\.cuh)"', source):  # its kernel's own file
        if (root / include).parent == file.parent:
            return level_statements(root / include, root)
    return []


def ladders(folder):
    """The level files of each ladder of a chapter, in order."""
    found = {}
    for file in folder.glob("*level_*.cuh"):
        match = re.fullmatch(r"(\w*?)level_(\d+)_\w+\.cuh", file.name)
        if match:
            found.setdefault(match.group(1), []).append((int(match.group(2)), file))
    return [[file for _, file in sorted(found[prefix])] for prefix in sorted(found)]


def steps(root, chapters=CHAPTERS):
    """(file, statements of its kernels, how many are new, how many are gone) of each step."""
    found = []
    for chapter in chapters:
        folder, = (root / "chapters").glob(f"{int(chapter):02d}_*")
        for files in ladders(folder):
            for before, after in zip(files, files[1:]):
                now = level_statements(after, root)
                new, gone = changed(level_statements(before, root), now)
                found.append((after.relative_to(root), len(now), new, gone))
    return found


def median_of(found):
    return statistics.median(new for _, _, new, _ in found)


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    found = steps(root, sys.argv[1:] or CHAPTERS)
    for file, size, new, gone in found:
        print(f"{new:4} of {size:3} new, {gone:3} gone  {file}")
    median = median_of(found)
    print(f"median of {len(found)} steps: {median:g} (at most {LIMIT})")
    return 1 if median > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
