#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A level of chapters 6 to 10 can be read: the files of chapters that it includes are few.

    include_bound.py    names every level that includes, directly or not, more than 12 files of chapters, or files of
                        more than 2 other chapters; and every exception below that is no longer needed as it stands

The level's own file does not count, nor do common/ and library/.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
CHAPTERS = range(6, 11)
FILES, OTHERS = 12, 2
# Levels above the bound: (files, other chapters). Neither number may grow; a smaller one must be written here.
EXCEPTIONS = {
    "chapters/08_persistent/level_1_static.cuh": (12, 3),
    "chapters/08_persistent/level_2_dynamic.cuh": (13, 3),
    "chapters/08_persistent/level_3_hidden_epilogue.cuh": (13, 3),
    "chapters/08_persistent/level_4_ping_pong.cuh": (13, 3),
    "chapters/08_persistent/level_5_stream_k.cuh": (15, 3),
}


def closure(root, name):
    """The files that a file includes, directly or not, by their paths from the root."""
    found, todo = set(), [name]
    while todo:
        file = todo.pop()
        for target in INCLUDE.findall((root / file).read_text()):
            beside = Path(file).parent / target
            path = target if (root / target).is_file() else beside.as_posix()
            if (root / path).is_file() and path not in found:
                found.add(path)
                todo.append(path)
    return found - {name}


def counts(root=ROOT):
    """{level: (files of chapters, other chapters)} of what each level includes."""
    result = {}
    for number in CHAPTERS:
        for level in sorted(root.glob(f"chapters/{number:02}_*/*level_*.cuh")):
            name = level.relative_to(root).as_posix()
            files = [path for path in closure(root, name) if path.startswith("chapters/")]
            result[name] = len(files), len({path.split("/")[1] for path in files} - {level.parent.name})
    return result


def problems(root=ROOT, exceptions=EXCEPTIONS):
    found = counts(root)
    out = [f"{name}: an exception for a level that is not there" for name in exceptions if name not in found]
    for name, count in found.items():
        above = count[0] > FILES or count[1] > OTHERS
        said = exceptions.get(name)
        says = f"{name}: includes {count[0]} files of chapters, of {count[1]} others"
        if above and said is None:
            out.append(f"{says}; at most {FILES} of {OTHERS}")
        elif said is not None and not above:
            out.append(f"{says}: needs no exception any more")
        elif said is not None and count != said:
            grown = count[0] > said[0] or count[1] > said[1]
            out.append(f"{says}; its exception allows {said[0]} of {said[1]}" + ("" if grown else ": lower it"))
    return out


def main():
    found = problems()
    print("\n".join(found) or f"{len(counts())} levels, {len(EXCEPTIONS)} above the bound")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
