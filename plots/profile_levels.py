#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs ncu over every level of a ladder and writes the bytes that each moved and the operations it did.

Called by plots/profile.sh. `--check` launches a level's kernels on inputs of several kinds; ncu measures
the launches of the first run and ends the process. How many launches a run has is what the SIMT backend
counted (plots/results/simt/), otherwise one."""
import argparse
import csv
import io
import json
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "plots"))
from cookbook_plots.results import RESULTS, Results, simt_counters  # noqa: E402

METRICS = {"dram": "dram__bytes.sum", "l2": "lts__t_bytes.sum", "l1": "l1tex__t_bytes.sum"}
# Operations: what an instruction of a thread counts for; a tensor core's are counted as operations already.
INSTRUCTIONS = {f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum": weight
                for name, weight in (("fadd", 1), ("fmul", 1), ("ffma", 2))}
TENSOR = [f"sm__ops_path_tensor_src_{source}_dst_fp32.sum" for source in ("bf16", "fp16", "tf32")]
UNITS = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12}


def parse(text, per_run=None):
    """(bytes of a run by metric, operations of a run, launches seen), from ncu's CSV: a line per launch and
    metric. per_run: launches of a run; without it every kernel is taken to run once. What the run after the
    last whole one had begun is left out. Raises ValueError where there is no whole run."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    rows = [row for row in csv.DictReader(io.StringIO("\n".join(lines))) if row.get("ID", "").isdigit()]
    order = list(dict.fromkeys(row["ID"] for row in rows))
    if not order:
        raise ValueError("ncu reported no kernel")
    if per_run is None:
        names = {row["ID"]: row["Kernel Name"] for row in rows}
        runs = min(Counter(names.values()).values())
        counted = set(order)
    else:
        runs = len(order) // per_run
        if runs == 0:
            raise ValueError(f"ncu reported {len(order)} launches, and a run has {per_run}")
        counted = set(order[:runs * per_run])
    moved, work = defaultdict(float), {"fp32": 0.0, "tensor": 0.0}
    seen = set()
    for row in rows:
        name, value = row["Metric Name"], row["Metric Value"].replace(",", "")
        if row["ID"] not in counted or not re.fullmatch(r"[\d.eE+]+", value):
            continue  # "n/a": this GPU has no such counter
        for key, metric in METRICS.items():
            if name == metric:
                moved[key] += float(value) * UNITS[row["Metric Unit"]] / runs
        if name in INSTRUCTIONS:
            work["fp32"] += INSTRUCTIONS[name] * float(value) / runs
            seen.add("fp32")
        if name in TENSOR:
            work["tensor"] += float(value) / runs
            seen.add("tensor")
    return dict(moved), {key: value if key in seen else None for key, value in work.items()}, len(order)


def describe(chapter, ladder):
    """(ladder, check size, levels, GPU) from a run of the chapter at its small size."""
    out = ROOT / "build/profile-probe.json"
    command = [f"build/cuda/chapter-{chapter}", "--check", "--no-trace", "--json", str(out)]
    subprocess.run(command + (["--ladder", ladder] if ladder else []), cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    run = json.loads(out.read_text())["runs"][0]
    return run["ladder"], run["problem"]["check_size"], [l["name"] for l in run["levels"]], run["device"]["name"]


def ncu(metrics, launches, command, seconds):
    """What ncu prints for a level's first `launches` launches; the harness's own are outside of its range."""
    return subprocess.run(["ncu", "--csv", "--print-units", "base", "--clock-control", "none",
                           "--profile-from-start", "off", "--launch-count",
                           str(launches), "--kill", "yes", "--metrics", ",".join(metrics), *command],
                          cwd=ROOT, capture_output=True, text=True, timeout=seconds)


def write(out, profiles, levels):
    """Writes the profiles of `levels`. What is missing among them stays as an older file has it, so that a failure
    loses nothing. Returns whether nothing is missing."""
    done = {profile["level"] for profile in profiles}
    missing = [level for level in levels if level not in done]
    kept = []
    if missing and out.exists():
        replaced = {(p["ladder"], p["level"], tuple(p["size"])) for p in profiles}
        kept = [p for p in json.loads(out.read_text())["profiles"]
                if (p["ladder"], p["level"], tuple(p["size"])) not in replaced]
    if profiles:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps({"schema": 1, "profiles": profiles + kept}, indent=1) + "\n")
    if missing:
        print(f"profile: not measured: {', '.join(missing)}"
              + (f"; {len(kept)} older profiles stay in {out}" if kept else ""), file=sys.stderr)
    return not missing


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("chapter", type=int)
    parser.add_argument("--ladder")
    parser.add_argument("--size", help="default: the size of the committed results, else the check size")
    parser.add_argument("--seconds", type=float, default=60, help="begin no level after this time")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    begin = time.monotonic()
    device = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True,
                            text=True).stdout.split("\n")[0]
    folder = RESULTS / re.sub(r"[^a-z0-9]+", "-", device.lower().replace("nvidia", "")).strip("-")
    runs = Results(folder).of_chapter(options.chapter) if folder.exists() else []
    known = next((run for run in runs if options.ladder in (None, run.ladder)), None)
    if known:  # as it was timed
        ladder, size, levels = known.ladder, list(known.size), [level.name for level in known.levels]
    else:
        ladder, size, levels, _ = describe(options.chapter, options.ladder)
    if options.size:
        size = [int(extent) for extent in options.size.split("x")]
    counters = simt_counters()
    profiles, metrics = [], [*METRICS.values(), *INSTRUCTIONS, *TENSOR]
    for level in levels:
        if time.monotonic() - begin > options.seconds:
            print(f"profile: stopped before {level}, after {options.seconds:.0f} s (--seconds)", file=sys.stderr)
            break
        counted = counters.get((options.chapter, ladder, level))
        per_run = max(1, round(counted.values.get("launches", 1))) if counted else 1
        command = [f"build/cuda/chapter-{options.chapter}", "--check", "--no-trace", "--ladder", ladder,
                   "--level", level, "--size", "x".join(map(str, size))]
        try:
            done = ncu(metrics, per_run, command, 120)
            if "Failed to find metric" in done.stdout + done.stderr:  # another GPU: bytes alone
                metrics = list(METRICS.values())
                done = ncu(metrics, per_run, command, 120)
            if "ERR_NVGPUCTRPERM" in done.stdout + done.stderr:
                print("profile: this machine refuses counters to users (ERR_NVGPUCTRPERM); see docs/profiling.md",
                      file=sys.stderr)
                return 1
            moved, work, launches = parse(done.stdout, per_run)
        except subprocess.TimeoutExpired:
            print(f"{level}: ncu took too long", file=sys.stderr)
            continue
        except ValueError as error:
            print(f"{level}: {error}; {(done.stderr or done.stdout).strip()[-300:]}", file=sys.stderr)
            continue
        profiles.append({"chapter": options.chapter, "ladder": ladder, "level": level, "size": size,
                         "bytes": moved, "flops": work, "launches": launches, "tool": "ncu"})
        print(f"{level:24} " + "  ".join(f"{key} {value / 1e6:,.1f} MB" for key, value in moved.items())
              + "".join(f"  {key} {value / 1e9:,.2f} GFLOP" for key, value in work.items() if value), flush=True)
    out = options.out or folder / f"profile-{options.chapter}{f'-{options.ladder}' if options.ladder else ''}.json"
    complete = write(out, profiles, levels)
    if profiles:
        print(f"wrote {out} after {time.monotonic() - begin:.0f} s")
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
