#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A level of chapters 6 to 10 can be read: the files of chapters that it includes are few.

    include_bound.py    names every level that includes, directly or not, more than 12 files of chapters, or files of
                        more than 2 other chapters

The level's own file does not count, nor do common/ and library/.
"""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/identity"))
from tokens import sources  # noqa: E402

CHAPTERS = range(6, 11)
FILES, OTHERS = 12, 2


def counts(root=ROOT):
    """{level: (files of chapters, other chapters)} of what each level includes."""
    result = {}
    for number in CHAPTERS:
        for level in sorted(root.glob(f"chapters/{number:02}_*/*level_*.cuh")):
            name = level.relative_to(root).as_posix()
            included = [path.relative_to(root.resolve()) for path in sources(level, root)[1:]]
            files = [path for path in included if path.parts[0] == "chapters"]
            result[name] = len(files), len({path.parts[1] for path in files} - {level.parent.name})
    return result


def problems(root=ROOT):
    return [f"{name}: includes {files} files of chapters, of {others} others; at most {FILES} of {OTHERS}"
            for name, (files, others) in counts(root).items() if files > FILES or others > OTHERS]


def main():
    found = problems()
    print("\n".join(found) or f"{len(counts())} levels, none above the bound")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
