#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs ncu over every level of chapters' ladders and writes the bytes that each moved and the operations it did.

Called by plots/profile.sh. `chapter-N --profile` launches every level of a ladder once, and before each level
fill_words(), which shows where its launches begin: one process measures a whole ladder."""
import argparse
import json
import re
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "plots"))
from cookbook_plots import book, ncu  # noqa: E402
from cookbook_plots.results import RESULTS, Results  # noqa: E402

# The data pipe of L1 and shared memory, also for operands of wgmma; not what TMA writes.
WAVEFRONTS, WAVEFRONT_BYTES = "l1tex__data_pipe_lsu_wavefronts.sum", 128
OPERATIONS = ncu.operations(fp32="f")
MARK = "fill_words"  # the kernel that comes before a level's own


def parse(text):
    """A (bytes by metric, operations, launches) per level, in order, from ncu's CSV: a line per launch and metric.
    Raises ValueError where no launch is a mark, or one comes before the first mark."""
    rows = list(ncu.rows(text))
    if not rows:
        raise ValueError("ncu reported no kernel")
    levels, launch = [], None
    for row, value in rows:
        name = row["Metric Name"]
        is_new, launch = row["ID"] != launch, row["ID"]
        if MARK in row["Kernel Name"]:
            if is_new:
                levels.append((defaultdict(float), {"fp32": None, "tensor": None}, set()))
            continue
        if not levels:
            raise ValueError(f"{row['Kernel Name']} was launched before a mark")
        moved, work, launches = levels[-1]
        launches.add(launch)
        if value is None:
            continue
        if name in ncu.MEMORIES:
            moved[ncu.MEMORIES[name]] += value * ncu.UNITS[row["Metric Unit"]]
        elif name == WAVEFRONTS:
            moved["shared"] += WAVEFRONT_BYTES * value
        elif name in OPERATIONS:
            kind, weight = OPERATIONS[name]
            work[kind] = (work[kind] or 0.0) + weight * value
    return [(dict(moved), work, len(launches)) for moved, work, launches in levels]


def profile(chapter, ladder, size, seconds, *more, tool=()):
    """(what the executable wrote about the levels of a ladder or None, the process), of one run under `tool`."""
    about = ROOT / "build/profile-levels.json"
    about.unlink(missing_ok=True)
    command = [*tool, f"build/cuda/chapter-{chapter}", "--profile", *more, "--json", str(about)]
    command += (["--ladder", ladder] if ladder else []) + (["--size", "x".join(map(str, size))] if size else [])
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds)
    return json.loads(about.read_text()) if about.exists() else None, done


def measure(metrics, chapter, ladder, size, seconds):
    """(profiles, names of levels without one) of a ladder. Raises ValueError with the reason where ncu fails."""
    about, done = profile(chapter, ladder, size, seconds, tool=(
        "ncu", "--csv", "--print-units", "base", "--clock-control", "none", "--profile-from-start", "off", "--metrics",
        ",".join(metrics)))
    text = done.stdout + done.stderr
    if "Failed to find metric" in text and len(metrics) > len(ncu.BYTES):  # another GPU: bytes alone
        return measure(list(ncu.BYTES.values()), chapter, ladder, size, seconds)
    if "ERR_NVGPUCTRPERM" in text:
        raise PermissionError("this machine refuses counters to users (ERR_NVGPUCTRPERM); see docs/profiling.md")
    if about is None:
        raise ValueError(text.strip()[-300:])
    launched = [level["name"] for level in about["levels"] if not level["reason"]]
    found = parse(text)
    if len(found) != len(launched):
        raise ValueError(f"{len(launched)} levels were launched, and ncu saw {len(found)}")
    profiles = [{"chapter": chapter, "ladder": about["ladder"], "level": name, "size": about["size"], "bytes": moved,
                 "flops": work, "launches": launches, "tool": "ncu"}
                for name, (moved, work, launches) in zip(launched, found) if moved]
    measured = {profile["level"] for profile in profiles}
    return profiles, [level["name"] for level in about["levels"] if level["name"] not in measured]


def add_energy(profiles, chapter, ladder, size, seconds):
    """Adds to each profile the joules of a launch that NVML measures, or None: outside of ncu, back to back."""
    about, done = profile(chapter, ladder, size, seconds, "--energy")
    if about is None:
        print(f"profile: no energy: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return
    found = {level["name"]: level["energy"] for level in about["levels"]}
    for each in profiles:
        each["energy"] = found.get(each["level"])


def write(out, profiles, missing):
    """Writes a ladder's profiles. What is missing stays as an older file has it, so that a failure loses nothing.
    Returns whether nothing is missing."""
    kept = []
    if missing and out.exists():
        replaced = {(p["ladder"], p["level"], tuple(p["size"])) for p in profiles}
        kept = [p for p in json.loads(out.read_text())["profiles"]
                if (p["ladder"], p["level"], tuple(p["size"])) not in replaced]
    if profiles:
        out.parent.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join("  " + json.dumps(each) for each in profiles + kept)
        out.write_text(f'{{"schema": 1, "profiles": [\n{lines}\n]}}\n')
    if missing:
        print(f"profile: not measured: {', '.join(missing)}"
              + (f"; {len(kept)} older profiles stay in {out}" if kept else ""), file=sys.stderr)
    return not missing


def profile_chapter(chapter, options, folder):
    """Measures the chapter's ladder, prints and writes it. Returns whether nothing is missing."""
    runs = Results(folder).of_chapter(chapter) if folder.exists() else []
    known = next((run for run in runs if options.ladder in (None, run.ladder)), None)
    ladder, size = (known.ladder, known.size) if known else (options.ladder, None)  # as it was timed
    if options.size:
        size = options.size.split("x")
    out = options.out or folder / f"profile-{chapter}{f'-{options.ladder}' if options.ladder else ''}.json"
    metrics = [*ncu.MEMORIES, WAVEFRONTS, *OPERATIONS]
    try:
        profiles, missing = measure(metrics, chapter, ladder, size, options.seconds)
        if profiles and not options.no_energy:
            add_energy(profiles, chapter, profiles[0]["ladder"], profiles[0]["size"], options.seconds)
    except (subprocess.TimeoutExpired, ValueError, PermissionError) as error:
        late = isinstance(error, subprocess.TimeoutExpired)
        why = f"{Path(error.cmd[0]).name} took longer than {options.seconds:.0f} s (--seconds)" if late else error
        print(f"profile: chapter {chapter}: {why}", file=sys.stderr)
        return False
    for each in profiles:
        print(f"{chapter:2} {each['level']:24} "
              + "  ".join(f"{key} {value / 1e6:,.1f} MB" for key, value in each["bytes"].items())
              + "".join(f"  {key} {value / 1e9:,.2f} GFLOP" for key, value in each["flops"].items() if value)
              + (f"  {each['energy']['joules'] * 1e3:.3g} mJ" if each.get("energy") else ""),
              flush=True)
    complete = write(out, profiles, missing)
    if profiles:
        print(f"wrote {out}", flush=True)
    return complete


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("chapter", help="a number, or all")
    parser.add_argument("--ladder", help="of the chapter; default: the first")
    parser.add_argument("--size", help="default: the size of the committed results, else the ladder's own")
    parser.add_argument("--seconds", type=float, default=60, help="the most that a chapter takes (60)")
    parser.add_argument("--no-energy", action="store_true", help="bytes and operations only")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    chapters = [one.number for one in book.chapters() if one.number > 0] if options.chapter == "all" \
        else [int(options.chapter)]
    if len(chapters) > 1 and (options.ladder or options.size or options.out):
        parser.error("--ladder, --size and --out are for one chapter")
    begin = time.monotonic()
    folder = RESULTS / re.sub(r"[^a-z0-9]+", "-", ncu.gpu_name().lower().replace("nvidia", "")).strip("-")
    complete = [profile_chapter(chapter, options, folder) for chapter in chapters]
    print(f"after {time.monotonic() - begin:.0f} s")
    return 0 if all(complete) else 1


if __name__ == "__main__":
    sys.exit(main())
