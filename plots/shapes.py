#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whether a last level is the fastest of its ladder at every shape: narrow, wide, odd, few rows, many rows.

Runs the programs of chapters 3 and 9 at the shapes of plots/shapes.txt, all levels and the library interleaved,
and prints one line per shape: the last level's time, the fastest level's time over it, the library's time over it.
    python3 plots/shapes.py [LADDER ...]        build/cuda must be built (./run build)
Exits 1 if a last level is more than 2 % behind another level."""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHAPES = ROOT / "plots/shapes.txt"
CHAPTERS = {"transpose": 3, "softmax": 9, "softmax_bf16": 9, "rmsnorm": 9, "rmsnorm_bf16": 9}
ALLOWED = 0.98  # of the fastest level's speed


def read_shapes(text):
    """{ladder: ["rows x cols", ...]} of lines "ladder rows cols"; # begins a comment. Raises ValueError."""
    shapes = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) != 3 or words[0] not in CHAPTERS or not all(word.isdigit() for word in words[1:]):
            raise ValueError(f"line {number}: '{line}' is no ladder with two extents")
        shapes.setdefault(words[0], []).append("x".join(words[1:]))
    return shapes


def verdict(run):
    """What one run of a ladder says: its shape, the last level's time in us, the fastest level and its time over
    the last level's, the library and its time over it (None: no library). None if the last level has no time."""
    times = [(level["name"], level["time_us"]["median"]) for level in run["levels"] if level.get("time_us")]
    if not times or times[-1][0] != run["levels"][-1]["name"]:
        return None
    last = times[-1][1]
    name, fastest = min(times, key=lambda time: time[1])
    libraries = [(other["name"], other["time_us"]["median"]) for other in run["references"] if other.get("time_us")]
    library = min(libraries, key=lambda time: time[1]) if libraries else None
    return {"ladder": run["ladder"], "size": run["problem"]["size"], "last": last, "fastest": name,
            "of_fastest": fastest / last, "library": library[0] if library else None,
            "of_library": library[1] / last if library else None}


def text(line):
    """A verdict for the console."""
    shape = "x".join(map(str, line["size"]))
    library = f"{line['of_library']:.2f} of {line['library']}" if line["library"] else ""
    mark = "  behind" if line["of_fastest"] < ALLOWED else ""
    return (f"{line['ladder']:13} {shape:>16} {line['last']:9.1f} us  {line['of_fastest']:.3f} {line['fastest']:12} "
            f"{library}{mark}")


def measure(ladder, sizes, folder):
    """The runs of one ladder at `sizes`."""
    program = ROOT / f"build/cuda/chapter-{CHAPTERS[ladder]}"
    if not program.exists():
        sys.exit(f"shapes: {program.relative_to(ROOT)} is missing: ./run build, on a machine with a GPU")
    result = folder / f"{ladder}.json"
    sizes = [argument for size in sizes for argument in ("--size", size)]
    # The exit status also says that claims are false, which are about other shapes.
    subprocess.run([program, "--ladder", ladder, "--no-trace", *sizes, "--json", result],
                   stdout=subprocess.DEVNULL, check=False)
    if not result.exists():
        sys.exit(f"shapes: {ladder} wrote no results")
    return json.loads(result.read_text())["runs"]


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ladders", nargs="*", metavar="LADDER", help=", ".join(CHAPTERS))
    options = parser.parse_args(arguments)
    shapes = read_shapes(SHAPES.read_text())
    for ladder in options.ladders:
        if ladder not in shapes:
            parser.error(f"no ladder '{ladder}'; there are {', '.join(shapes)}")
    behind = missing = 0
    with tempfile.TemporaryDirectory() as folder:
        for ladder in options.ladders or shapes:
            for run in measure(ladder, shapes[ladder], Path(folder)):
                line = verdict(run)
                missing += line is None
                if line:
                    print(text(line), flush=True)
                    behind += line["of_fastest"] < ALLOWED
    print(f"{behind} behind another level by more than {100 * (1 - ALLOWED):.0f} %, {missing} not timed")
    return 1 if behind or missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
