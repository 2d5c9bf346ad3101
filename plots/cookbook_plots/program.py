# SPDX-License-Identifier: MIT
"""The kernels of any CUDA program under the roofs of its GPU.

    ./run roofline [OPTIONS] -- PROGRAM [ARGUMENTS]   measure with Nsight Compute, print and draw
    ./run roofline FILE.json                          draw again what was measured, on any machine

Nsight Compute runs every launch several times, each with cold caches, and measures its time, its bytes through device
memory, L2 and L1 (shared memory left out), and its operations. Launches of one kernel are added up. The roofs are those
that chapter 0 measured on the same GPU, otherwise those of its data sheet."""
import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

from . import book, figures, memories, ncu, own, style
from .results import ResultError, of_the_right_form
from .staging import Staging, ended
from .style import plt

TIME = "gpu__time_duration.sum"
OPERATIONS = ncu.operations(fp32="f", fp64="d")
SECONDS = {"ns": 1e-9, "nsecond": 1e-9, "us": 1e-6, "usecond": 1e-6, "ms": 1e-3, "msecond": 1e-3, "s": 1, "second": 1}
ROOFS = {"dram": ("hbm_copy_gbps", "hbm_read_gbps"), "l2": ("l2_gbps",), "l1": ("shared_gbps",)}
NAMES = {"dram": "device memory", "l2": "L2", "l1": "L1"}
ARITHMETIC = {"fp32": [("FP32 FMA", "fp32_tflops")], "fp64": [("FP64 FMA", "fp64_tflops")],
              "tensor": [("wgmma bf16", "wgmma_bf16_tflops"), ("mma.sync bf16", "mma_bf16_tflops")]}
SHOWN = 12  # kernels in the figure


def known_roofs(roofs, keys_of):
    """What of keys_of -> the roof that is known of its keys, the first that is."""
    found = {what: next((roofs[key] for key in keys if roofs.get(key)), None) for what, keys in keys_of.items()}
    return {what: roof for what, roof in found.items() if roof}


@dataclass
class Kernel:
    """All launches of one kernel."""

    name: str
    launches: int = 0
    seconds: float = 0
    bytes: Counter = field(default_factory=Counter)  # through each memory
    work: Counter = field(default_factory=Counter)  # operations of each kind

    def add(self, launch):
        self.launches += 1
        self.seconds += launch.seconds
        self.bytes.update(launch.bytes)
        self.work.update(launch.work)

    @property
    def flops(self):
        return sum(self.work.values())

    def fractions(self, roofs):
        """(what, fraction of its roof, roof, unit) of each memory and each kind of arithmetic whose roof is known."""
        found = [(NAMES[memory], self.bytes[memory] / self.seconds / 1e9 / roof, roof, "GB/s")
                 for memory, roof in known_roofs(roofs, ROOFS).items() if memory in self.bytes]
        for kind, names in ARITHMETIC.items():
            roof = next(((name, roofs[key]) for name, key in names if roofs.get(key)), None)
            if roof and self.work.get(kind):
                found.append((roof[0], self.work[kind] / self.seconds / 1e12 / roof[1], roof[1], "TFLOP/s"))
        return found

    def binding(self, roofs):
        """What it comes closest to, in words; "" where no roof is known."""
        nearest = max(self.fractions(roofs), key=lambda one: one[1], default=None)
        return memories.Binding(*nearest, memories.NCU).explained if nearest else ""


def short(name):
    """A kernel's name without return type, parameters and most of its template arguments."""
    name, depth, end = re.sub(r"^void ", "", name.replace("(anonymous namespace)::", "")), 0, None
    for i, letter in enumerate(name):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "(" and depth == 0:
            end = i
            break
    name = name[:end]
    head, bracket, rest = name.partition("<")
    return head.split("::")[-1] + (bracket + rest if len(bracket + rest) <= 30 else bracket and "<...>")


def kernels_of(text):
    """The kernels in ncu's CSV, the one with the longest time first. Raises ResultError where there is none."""
    launches = {}
    for row, value in ncu.rows(text):
        if value is None:
            continue
        launch = launches.setdefault((row["Process ID"], row["ID"]), Kernel(row["Kernel Name"]))
        metric, unit = row["Metric Name"], row["Metric Unit"]
        if metric == TIME:
            launch.seconds = value * SECONDS[unit]
        elif metric in ncu.MEMORIES:
            launch.bytes[ncu.MEMORIES[metric]] = value * ncu.UNITS[unit]
        elif metric in OPERATIONS:
            kind, weight = OPERATIONS[metric]
            launch.work[kind] += weight * value
    found = {}
    for launch in launches.values():
        if launch.seconds:
            found.setdefault(launch.name, Kernel(short(launch.name))).add(launch)
    if not found:
        raise ResultError("Nsight Compute measured no kernel: does the program launch one, and end without an error?")
    return sorted(found.values(), key=lambda kernel: -kernel.seconds)


def measure(options):
    """Runs the program under ncu: its CSV. Raises ResultError with the reason where that cannot be."""
    tool = shutil.which("ncu") or shutil.which("ncu", path="/usr/local/cuda/bin")
    if not tool:
        raise ResultError("needs Nsight Compute, and ncu is not on the PATH")
    program = options.program[0]
    if not shutil.which(str(options.caller / program) if "/" in program else program):
        raise ResultError(f"no program '{program}' that can be started")
    for few in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "ncu.csv"
            chosen = [TIME, *ncu.MEMORIES, *(() if few else OPERATIONS)]
            command = [tool, "--csv", "--print-units", "base", "--clock-control", "none", "--target-processes", "all",
                       "--log-file", str(log), "--launch-count", str(options.launches), "--metrics", ",".join(chosen)]
            if options.kernel:
                command += ["--kernel-name", f"regex:{options.kernel}"]
            if options.marked:
                command += ["--profile-from-start", "off"]
            try:
                done = subprocess.run(command + options.program, timeout=options.seconds, check=False, cwd=options.caller)
            except subprocess.TimeoutExpired:
                raise ResultError(f"not done after {options.seconds:.0f} s (--seconds); --launches 20 measures fewer "
                                  "launches") from None
            except OSError as error:
                raise ResultError(f"cannot start ncu: {error}") from None
            text = log.read_text(errors="replace") if log.exists() else ""
        if "Failed to find metric" in text and not few:
            continue  # another GPU: time and bytes alone
        if "ERR_NVGPUCTRPERM" in text:
            raise ResultError("this machine refuses counters to users (ERR_NVGPUCTRPERM); docs/profiling.md says what helps")
        if done.returncode != 0:
            errors = [line for line in text.splitlines() if line.startswith("==ERROR==")]
            print(f"roofline: {program} ended with exit status {done.returncode}"
                  + (f": {errors[0].removeprefix('==ERROR==').strip()}" if errors else ""), file=sys.stderr)
        return text
    raise ResultError("this version of Nsight Compute has none of the metrics")


def read(file):
    """(document, kernels) of a file that this command wrote."""
    try:
        with of_the_right_form(f"{file}: not a file of ./run roofline"):
            document = json.loads(file.read_text())
            kernels = [Kernel(one["name"], one["launches"], one["time_us"] / 1e6,
                              Counter({memory: value * one["launches"] for memory, value in one["bytes"].items()}),
                              Counter({kind: value * one["launches"] for kind, value in one["flops"].items()}))
                       for one in document["kernels"]]
            document["program"], document["device"], document["date"]
            if not kernels or any(kernel.seconds <= 0 or kernel.launches < 1 for kernel in kernels):
                raise ValueError("a kernel without a time")
    except FileNotFoundError:
        raise ResultError(f"{file}: no such file") from None
    except OSError as error:
        raise ResultError(f"{file}: cannot be read: {error}") from None
    return document, kernels


def document_of(program, device, kernels):
    """What is written: bytes and operations per launch, times of all launches together in microseconds."""
    return {"schema": 1, "program": program, "device": device, "tool": "ncu",
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "kernels": [{"name": one.name, "launches": one.launches, "time_us": one.seconds * 1e6,
                         "bytes": {memory: value / one.launches for memory, value in one.bytes.items()},
                         "flops": {kind: value / one.launches for kind, value in one.work.items()}} for one in kernels]}


def table(kernels, roofs):
    """Lines of at most 100 columns."""
    lines = [f"{'#':>2}  {'kernel':36} {'launches':>8} {'us each':>9} {'MB each: DRAM':>13} {'L2':>8} {'L1':>8} {'TFLOP/s':>8}"]
    for i, kernel in enumerate(kernels):
        def megabytes(memory, kernel=kernel):
            value = kernel.bytes.get(memory)
            return "-" if value is None else f"{value / kernel.launches / 1e6:.4g}"
        name = kernel.name if len(kernel.name) <= 36 else kernel.name[:33] + "..."
        rate = f"{kernel.flops / kernel.seconds / 1e12:.3g}" if kernel.flops else "-"
        lines.append(f"{i:2}  {name:36} {kernel.launches:8} {kernel.seconds / kernel.launches * 1e6:9.4g} "
                     f"{megabytes('dram'):>13} {megabytes('l2'):>8} {megabytes('l1'):>8} {rate:>8}")
        if bound := kernel.binding(roofs):
            lines.append(f"    {bound}")
    return lines


# --- the figure ------------------------------------------------------------------------------------
class Chart:
    """What figures.draw_roofs asks of a roofline, for kernels that share roofs but no problem."""

    flops, scale, algorithmic, unit = True, 1e-3, None, "TFLOP/s"

    def __init__(self, kernels, roofs, measured):
        self.kernels, self.roofs = kernels, roofs
        self.run = SimpleNamespace(roofs_measured=measured)

    def diagonals(self):
        return [(NAMES[memory], roof * self.scale, "shared" if memory == "l1" else memory)
                for memory, roof in known_roofs(self.roofs, ROOFS).items()]

    def ceilings(self):
        used = {kind for kernel in self.kernels for kind, value in kernel.work.items() if value}
        return [(name, self.roofs[key]) for kind, names in ARITHMETIC.items() if kind in used
                for name, key in reversed(names) if self.roofs.get(key)]

    def ceiling(self):
        return max((value for _, value in self.ceilings()), default=None)

    def sheet_diagonal(self):
        return None

    sheet_ceiling = sheet_diagonal


def figure_of(kernels, document, theme):
    """Bars of how much of each roof a kernel reaches and, where kernels compute, the roofline."""
    roofs, origin, measured = own.roofs_of(document["device"])
    shown = kernels[:SHOWN]
    computing = [(i, kernel) for i, kernel in enumerate(shown) if kernel.flops and kernel.bytes.get("dram")]
    height = max(4.6, 1.6 + 0.62 * len(shown))
    figure = plt.figure(figsize=(11.2 if computing else 7.6, height))
    left, right = (0.60, 0.385) if computing else (0.09, 0.88)
    if computing:
        chart = Chart(shown, roofs, measured)
        axes = figure.add_axes((0.07, 0.95 / height, 0.44, 1 - 1.55 / height))
        marks = {i: [("shared" if memory == "l1" else memory, kernel.flops / moved, memories.NCU)
                     for memory, moved in kernel.bytes.items() if moved] for i, kernel in computing}
        speeds = {i: kernel.flops / kernel.seconds / 1e12 for i, kernel in computing}
        points = [(x, speeds[i]) for i, found in marks.items() for _, x, _ in found]
        x_range, y_range = figures.ranges(points, [chart], algorithm=False)
        figures.roof_axes(figure, axes, theme, [chart], chart, x_range, y_range)
        for i, found in marks.items():
            figures.draw_marks(axes, theme, found, speeds[i])
        figures.number_dots(axes, figure, theme, {i: (figures.anchor_x(found), speeds[i], str(i),
                                                      {"color": theme.text, "fontweight": "bold"})
                                                  for i, found in marks.items()})
    bars = figure.add_axes((left, 0.95 / height, right, 1 - 1.55 / height))
    colours = {"device memory": theme.memories["dram"], "L2": theme.memories["l2"], "L1": theme.memories["shared"]}
    for i, kernel in enumerate(shown):
        found = [one for one in kernel.fractions(roofs) if one[1] >= 0.005]
        for k, (what, fraction, _, _) in enumerate(found):
            y = i + 0.16 + 0.5 * (k + 0.5) / len(found)
            bars.barh(y, min(fraction, 1.2), height=0.42 / len(found), color=colours.get(what, theme.accent))
            bars.text(min(fraction, 1.2) + 0.01, y, f"{what} {100 * fraction:.0f} %", fontsize=6.5, color=theme.muted, va="center")
        bars.text(0, i + 0.05, f"{i} · {kernel.name}", fontsize=8.5, fontweight="bold", va="center")
    bars.set(xlim=(0, 1.35), ylim=(len(shown) - 0.1, -0.3), yticks=[])
    bars.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100 % of the roof"], fontsize=8)
    bars.grid(axis="y", visible=False)
    figures.title(figure, f"{document['program']} under the roofs of its GPU", 0.13)
    notes = [document["device"], document["date"][:10], "measured by ncu, caches cold"]
    notes.append((f"roofs: {origin}" + ("" if measured else ", not measured")) if roofs else "no roofs known")
    if len(kernels) > len(shown):
        notes.append(f"the {len(shown)} kernels of {len(kernels)} with the longest times")
    if computing:
        notes.append("circle: device memory, square: L2, triangle: L1")
    style.conditions(figure, theme, " · ".join(notes))
    return figure


def main(arguments=None):
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    end = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(prog="./run roofline", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE.json", help="what an earlier run wrote")
    parser.add_argument("--out", type=Path, help="folder of the figure and the JSON (default: build/plots/roofline-PROGRAM)")
    parser.add_argument("--kernel", metavar="REGEX", help="only kernels whose name matches")
    parser.add_argument("--launches", type=int, default=200, help="measure so many launches at most (200)")
    parser.add_argument("--marked", action="store_true", help="only between cudaProfilerStart and cudaProfilerStop")
    parser.add_argument("--seconds", type=float, default=300, help="give up after this time (300)")
    options = parser.parse_args(arguments[:end])
    options.program = arguments[end + 1:]
    options.caller = Path(os.environ.get("COOKBOOK_CALLER", "."))  # where paths are seen from, and the program runs
    return ended("roofline", make, options)


def make(options):
    if bool(options.program) == bool(options.file):
        raise ResultError("takes a program after --, as in ./run roofline -- ./my_program, or a FILE.json")
    if options.launches < 1 or options.seconds <= 0:
        raise ResultError("--launches and --seconds must be above 0")
    if options.program:
        device = ncu.gpu_name()
        if not device:
            raise ResultError("needs a GPU, and nvidia-smi finds none; ./run check counts a program's traffic without one")
        name = Path(options.program[0]).name
        kernels = kernels_of(measure(options))
        document = document_of(name, device, kernels)
    else:
        document, kernels = read(options.caller / options.file)
        name = Path(str(document["program"])).name
    out = options.caller / options.out if options.out else book.ROOT / "build/plots" / own.identifier("roofline", name)
    with Staging() as files:
        if options.program:
            files.write_text(out / "roofline.json", json.dumps(document, indent=1) + "\n")
        style.save_all(lambda _, theme: figure_of(kernels, document, theme), {"roofline": None}, files, out, out,
                       lambda _: "own")
    print("\n".join(table(kernels, own.roofs_of(document["device"])[0])))
    print(f"drew {out}/roofline-light.svg, roofline-dark.svg and PNGs"
          + (f"; {out}/roofline.json" if options.program else ""))


if __name__ == "__main__":
    sys.exit(main())
