#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The machine code that must not change while the book is rebuilt: tests/ci/main_path.txt.

  main_path.py [BUILD]    which kernels of the list no object file of BUILD (default: build/cuda-ci) has any more

The list has a line for each level of every ladder that is no sidebar: the hashes of the kernels that it launches at its
full size (with a count where it launches one several times), and after a bar those of the sizes of the tests. Names of
the kernels follow. It was written from commit bf3e2e9. Exit status 1: a kernel is missing."""
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/identity"))
from machine_code import machine_code  # noqa: E402

LIST = Path(__file__).with_suffix(".txt")


def read_list(text):
    """(level -> hashes of its kernels, hash -> name)"""
    levels, names = {}, {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            left, _, right = line.partition(": ")
            if "/" in left:
                levels[left] = [word.partition("x")[0] for word in right.split() if word != "|"]
            else:
                names[left] = right
    return levels, names


def missing(levels, codes):
    """Level -> its kernels that are not among `codes`."""
    found = {level: [code for code in dict.fromkeys(wanted) if code not in codes] for level, wanted in levels.items()}
    return {level: gone for level, gone in found.items() if gone}


def main():
    if len(sys.argv) > 2 or sys.argv[1:2] in (["-h"], ["--help"]):
        print(__doc__, file=sys.stderr)
        return 2
    build = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/cuda-ci"
    objects = sorted(build.rglob("*.cu.o"))
    if not objects:
        print(f"main_path: no object file in {build}", file=sys.stderr)
        return 2
    with ThreadPoolExecutor() as pool:
        codes = {code for one in pool.map(lambda file: machine_code([file]), objects) for code in one.values()}
    levels, names = read_list(LIST.read_text())
    gone = missing(levels, codes)
    for level, kernels in gone.items():
        for code in kernels:
            print(f"{level}: {code} {names.get(code, '(no name)')}")
    kernels = {code for wanted in levels.values() for code in wanted}
    print(f"{len(levels)} levels, {len(kernels)} kernels: {len({c for k in gone.values() for c in k})} kernels of "
          f"{len(gone)} levels have changed or are gone")
    return 1 if gone else 0


if __name__ == "__main__":
    sys.exit(main())
