#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whether the library chooses the fastest of its kernels at every shape: narrow, wide, odd, few rows, many rows.

Runs library/transpose and library/rows at the shapes of plots/shapes.txt, all levels and the library interleaved,
and prints one line per shape: the last level's time, the fastest level's time over it, the library's time over it.
    python3 plots/shapes.py [LADDER ...]        build/cuda must be built (./run build)
    python3 plots/shapes.py --torch --out plots/results/h200/sidebars/shapes.json
Exits 1 if a last level is more than 2 % behind another level, or behind a library."""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHAPES = ROOT / "plots/shapes.txt"
SCHEMA = 1
PROGRAMS = {"transpose": "capstone-transpose"} | dict.fromkeys(
    ("softmax", "softmax_bf16", "rmsnorm", "rmsnorm_bf16"), "capstone-rows")
ALLOWED = 0.98  # of the fastest level's speed
SECONDS = 0.3  # of timing per shape
TORCH_ROUNDS = 40


def read_shapes(text):
    """{ladder: ["rows x cols", ...]} of lines "ladder rows cols"; # begins a comment. Raises ValueError."""
    shapes = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) != 3 or words[0] not in PROGRAMS or not all(word.isdigit() for word in words[1:]):
            raise ValueError(f"line {number}: '{line}' is no ladder with two extents")
        shapes.setdefault(words[0], []).append("x".join(words[1:]))
    return shapes


def medians(entries):
    """{name: microseconds} of the levels or libraries of a run that were timed."""
    return {one["name"]: one["time_us"]["median"] for one in entries if one.get("time_us")}


def verdict(run, others=None):
    """What one run of a ladder says: its shape, the times in us of its levels and of the libraries, to which `others`
    ({name: us}) belong as well, the fastest of each, and their times over the last level's (a library's: None if
    there is none). None if the last level has no time."""
    levels, libraries = medians(run["levels"]), medians(run["references"]) | (others or {})
    name = run["levels"][-1]["name"]
    if name not in levels:
        return None
    last = levels[name]
    fastest = min(levels, key=levels.get)
    library = min(libraries, key=libraries.get) if libraries else None
    return {"ladder": run["ladder"], "size": run["problem"]["size"], "last": last, "fastest": fastest,
            "of_fastest": levels[fastest] / last, "library": library,
            "of_library": libraries[library] / last if library else None, "levels": levels, "libraries": libraries}


def is_behind(line):
    """Whether the last level is slower than another level by more than ALLOWED, or than a library."""
    return line["of_fastest"] < ALLOWED or (line["library"] is not None and line["of_library"] < 1)


def text(line):
    """A verdict for the console."""
    shape = "x".join(map(str, line["size"]))
    library = f"{line['of_library']:.2f} of {line['library']}" if line["library"] else ""
    mark = "  behind" if is_behind(line) else ""
    return (f"{line['ladder']:13} {shape:>16} {line['last']:9.1f} us  {line['of_fastest']:.3f} {line['fastest']:12} "
            f"{library}{mark}")


def summary(lines):
    """Per ladder: how many shapes, and the shapes at which the last level does worst. A table in Markdown."""
    rows = ["| ladder | shapes | least of the fastest level | least of the fastest library |", "|---|---:|---|---|"]
    for ladder in dict.fromkeys(line["ladder"] for line in lines):
        mine = [line for line in lines if line["ladder"] == ladder]
        cells = [ladder, str(len(mine))]
        for ratio, name in (("of_fastest", "fastest"), ("of_library", "library")):
            worst = min((line for line in mine if line[ratio]), key=lambda line: line[ratio], default=None)
            cells.append(f"{worst[ratio]:.3f} at {' x '.join(f'{extent:,}' for extent in worst['size'])} "
                         f"(`{worst[name]}`)" if worst else "-")
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def measure(ladder, sizes, folder, seconds):
    """The runs of one ladder at `sizes`."""
    program = ROOT / "build/cuda" / PROGRAMS[ladder]
    if not program.exists():
        sys.exit(f"shapes: {program.relative_to(ROOT)} is missing: ./run build, on a machine with a GPU")
    result = folder / f"{ladder}.json"
    sizes = [argument for size in sizes for argument in ("--size", size)]
    # The exit status also says that claims are false, which are about other shapes.
    subprocess.run([program, "--ladder", ladder, "--no-trace", "--seconds", str(seconds), *sizes, "--json", result],
                   stdout=subprocess.DEVNULL, check=False)
    if not result.exists():
        sys.exit(f"shapes: {ladder} wrote no results")
    return json.loads(result.read_text())["runs"]


def torch_times(ladder, sizes):
    """PyTorch's cold median per shape in us, {"rows x cols": {"PyTorch": us}}: in a process of its own, with
    the L2 flushed before each sample, as the levels are timed."""
    import torch
    from contestants import timing
    flush = torch.empty(timing.FLUSH_BYTES, dtype=torch.int8, device="cuda")
    times = {}
    for size in sizes:
        rows, cols = map(int, size.split("x"))
        x = torch.randn(rows, cols, device="cuda", dtype=torch.bfloat16 if ladder.endswith("bf16") else torch.float32)
        weight = torch.randn(cols, device="cuda", dtype=x.dtype)
        out = torch.empty(cols, rows, device="cuda", dtype=x.dtype) if ladder == "transpose" else torch.empty_like(x)

        def call(x=x, weight=weight, out=out):
            if ladder == "transpose":
                out.copy_(x.t())
            elif ladder.startswith("softmax"):
                torch.softmax(x, 1, out=out)
            else:
                torch.nn.functional.rms_norm(x, (x.shape[1],), weight, 1e-6)

        milliseconds = timing.time_all({"PyTorch": call}, TORCH_ROUNDS, flush)["PyTorch"]
        times[size] = {"PyTorch": 1e3 * timing.quartiles(milliseconds)[1]}
    return times


def rounded(times):
    return {name: round(us, 2) for name, us in times.items()}


def document(runs, lines, seconds, torch_version):
    """What --out writes. `lines` are verdicts; the device, the commit and the date are those of the first run."""
    first = runs[0]
    lines = [line | {"last": round(line["last"], 2), "of_fastest": round(line["of_fastest"], 4),
                     "of_library": line["library"] and round(line["of_library"], 4),
                     "levels": rounded(line["levels"]), "libraries": rounded(line["libraries"])} for line in lines]
    return {"schema": SCHEMA, "commit": first["commit"], "date": first["date"], "device": first["device"],
            "method": f"cold medians in us; levels and libraries interleaved, at most {seconds} s per shape"
                      + (f"; PyTorch {torch_version} in a process of its own" if torch_version else ""),
            "behind": sum(map(is_behind, lines)), "shapes": lines}


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ladders", nargs="*", metavar="LADDER", help=", ".join(PROGRAMS))
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of timing per shape (default %(default)s)")
    parser.add_argument("--torch", action="store_true", help="time PyTorch as well")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write every time to this file, as JSON")
    options = parser.parse_args(arguments)
    shapes = read_shapes(SHAPES.read_text())
    for ladder in options.ladders:
        if ladder not in shapes:
            parser.error(f"no ladder '{ladder}'; there are {', '.join(shapes)}")
    version = None
    if options.torch:
        import torch
        version = torch.__version__
    runs, lines = [], []
    with tempfile.TemporaryDirectory() as folder:
        for ladder in options.ladders or shapes:
            measured = measure(ladder, shapes[ladder], Path(folder), options.seconds)
            others = torch_times(ladder, shapes[ladder]) if options.torch else {}
            for run in measured:
                line = verdict(run, others.get("x".join(map(str, run["problem"]["size"]))))
                if line:
                    print(text(line), flush=True)
                    lines.append(line)
            runs += measured
            if options.out:
                options.out.write_text(json.dumps(document(runs, lines, options.seconds, version), indent=1) + "\n")
    print("\n" + summary(lines))
    asked = sum(len(shapes[ladder]) for ladder in options.ladders or shapes)
    behind, missing = sum(map(is_behind, lines)), asked - len(lines)
    print(f"{behind} behind another level by more than {100 * (1 - ALLOWED):.0f} % or behind a library, "
          f"{missing} not timed")
    return 1 if behind or missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
