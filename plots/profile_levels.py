#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs ncu over every level of a ladder and writes the bytes that each moved.

Called by plots/profile.sh. A level is checked once under ncu (`--check`), which launches its kernels on
inputs of several kinds; the bytes of one run are those of all launches divided by the number of runs.
"""
import argparse
import csv
import io
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
METRICS = {"dram": "dram__bytes.sum", "l2": "lts__t_bytes.sum", "l1": "l1tex__t_bytes.sum"}
UNITS = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12}


def parse(text):
    """Bytes per run by metric, from ncu's CSV (`--csv --page raw` or details, one line per metric)."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    totals, launches, seen = defaultdict(float), Counter(), set()
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        if row["ID"] not in seen:
            seen.add(row["ID"])
            launches[row["Kernel Name"]] += 1
        value = float(row["Metric Value"].replace(",", "")) * UNITS[row["Metric Unit"]]
        for key, metric in METRICS.items():
            if row["Metric Name"] == metric:
                totals[key] += value
    if not launches:
        raise ValueError("ncu reported no kernel")
    # Every kernel of a level runs at least once per run of the level.
    runs = min(launches.values())
    return {key: value / runs for key, value in totals.items()}, sum(launches.values())


def describe(chapter, ladder):
    """(ladder, size, levels, GPU) from a run that checks nothing large."""
    out = ROOT / "build/profile-probe.json"
    command = [f"build/cuda/chapter-{chapter}", "--check", "--no-trace", "--json", str(out)]
    subprocess.run(command + (["--ladder", ladder] if ladder else []), cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    run = json.loads(out.read_text())["runs"][0]
    return run["ladder"], run["problem"]["check_size"], [l["name"] for l in run["levels"]], run["device"]["name"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("chapter", type=int)
    parser.add_argument("--ladder")
    parser.add_argument("--size", help="default: the size of the committed results, else the check size")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    ladder, size, levels, device = describe(options.chapter, options.ladder)
    gpu = re.sub(r"[^a-z0-9]+", "-", device.lower().replace("nvidia", "")).strip("-")
    folder = ROOT / "plots/results" / gpu
    if options.size:
        size = [int(extent) for extent in options.size.split("x")]
    else:
        sys.path.insert(0, str(ROOT / "plots"))
        from cookbook_plots.results import Results
        known = Results(folder).headline.get((options.chapter, ladder)) if folder.exists() else None
        size = list(known.size) if known else size
    profiles = []
    for level in levels:
        command = ["ncu", "--csv", "--print-units", "base", "--metrics", ",".join(METRICS.values()),
                   f"build/cuda/chapter-{options.chapter}", "--check", "--no-trace", "--ladder", ladder,
                   "--level", level, "--size", "x".join(map(str, size))]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if "ERR_NVGPUCTRPERM" in done.stdout + done.stderr:
            print("profile: this machine refuses counters to users (ERR_NVGPUCTRPERM); see docs/profiling.md",
                  file=sys.stderr)
            return 1
        try:
            moved, launches = parse(done.stdout)
        except ValueError as error:
            print(f"{level}: {error}", file=sys.stderr)
            continue
        profiles.append({"chapter": options.chapter, "ladder": ladder, "level": level, "size": size,
                         "bytes": moved, "launches": launches, "tool": "ncu"})
        print(f"{level:24} " + "  ".join(f"{key} {value / 1e6:,.1f} MB" for key, value in moved.items()))
    out = options.out or folder / f"profile-{options.chapter}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"schema": 1, "profiles": profiles}, indent=1) + "\n")
    print(f"wrote {out}")
    return 0 if profiles else 1


if __name__ == "__main__":
    sys.exit(main())
