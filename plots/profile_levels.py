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
INSTRUCTIONS = ncu.instructions("f")
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
        for key, metric in ncu.BYTES.items():
            if name == metric:
                moved[key] += value * ncu.UNITS[row["Metric Unit"]]
        if name == WAVEFRONTS:
            moved["shared"] += WAVEFRONT_BYTES * value
        for kind, weight in (("fp32", INSTRUCTIONS.get(name)), ("tensor", 1 if name in ncu.TENSOR else None)):
            if weight:
                work[kind] = (work[kind] or 0.0) + weight * value
    return [(dict(moved), work, len(launches)) for moved, work, launches in levels]


def profile_ladder(metrics, chapter, ladder, size, seconds):
    """(what the executable wrote about its levels, what ncu printed) of one run under ncu."""
    about = ROOT / "build/profile-levels.json"
    about.unlink(missing_ok=True)
    command = ["ncu", "--csv", "--print-units", "base", "--clock-control", "none", "--profile-from-start", "off",
               "--metrics", ",".join(metrics), f"build/cuda/chapter-{chapter}", "--profile", "--json", str(about)]
    command += (["--ladder", ladder] if ladder else []) + (["--size", "x".join(map(str, size))] if size else [])
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds)
    return json.loads(about.read_text()) if about.exists() else None, done.stdout + done.stderr


def measure(metrics, chapter, ladder, size, seconds):
    """(profiles, names of levels without one) of a ladder. Raises ValueError with the reason where ncu fails."""
    about, text = profile_ladder(metrics, chapter, ladder, size, seconds)
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
    about = ROOT / "build/profile-energy.json"
    about.unlink(missing_ok=True)
    command = [f"build/cuda/chapter-{chapter}", "--profile", "--energy", "--json", str(about), "--ladder", ladder,
               "--size", "x".join(map(str, size))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds)
    if not about.exists():
        print(f"profile: no energy: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return
    found = {level["name"]: level["energy"] for level in json.loads(about.read_text())["levels"]}
    for profile in profiles:
        profile["energy"] = found.get(profile["level"])


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
        lines = ",\n".join("  " + json.dumps(profile) for profile in profiles + kept)
        out.write_text(f'{{"schema": 1, "profiles": [\n{lines}\n]}}\n')
    if missing:
        print(f"profile: not measured: {', '.join(missing)}"
              + (f"; {len(kept)} older profiles stay in {out}" if kept else ""), file=sys.stderr)
    return not missing


def profile_chapter(chapter, options, folder):
    """Measures the chapter's ladder, prints and writes it. Returns whether nothing is missing."""
    runs = Results(folder).of_chapter(chapter) if folder.exists() else []
    known = next((run for run in runs if options.ladder in (None, run.ladder)), None)
    ladder, size = options.ladder, None
    if known:  # as it was timed
        ladder, size = known.ladder, known.size
    if options.size:
        size = options.size.split("x")
    out = options.out or folder / f"profile-{chapter}{f'-{options.ladder}' if options.ladder else ''}.json"
    metrics = [*ncu.BYTES.values(), WAVEFRONTS, *INSTRUCTIONS, *ncu.TENSOR]
    try:
        profiles, missing = measure(metrics, chapter, ladder, size, options.seconds)
        if profiles and not options.no_energy:
            add_energy(profiles, chapter, profiles[0]["ladder"], profiles[0]["size"], options.seconds)
    except subprocess.TimeoutExpired as late:
        print(f"profile: chapter {chapter}: {Path(late.cmd[0]).name} took longer than {options.seconds:.0f} s (--seconds)", file=sys.stderr)
        return False
    except (ValueError, PermissionError) as error:
        print(f"profile: chapter {chapter}: {error}", file=sys.stderr)
        return False
    for profile in profiles:
        print(f"{chapter:2} {profile['level']:24} "
              + "  ".join(f"{key} {value / 1e6:,.1f} MB" for key, value in profile["bytes"].items())
              + "".join(f"  {key} {value / 1e9:,.2f} GFLOP" for key, value in profile["flops"].items() if value)
              + (f"  {profile['energy']['joules'] * 1e3:.3g} mJ" if profile.get("energy") else ""),
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
    device = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True,
                            text=True).stdout.split("\n")[0]
    folder = RESULTS / re.sub(r"[^a-z0-9]+", "-", device.lower().replace("nvidia", "")).strip("-")
    complete = [profile_chapter(chapter, options, folder) for chapter in chapters]
    print(f"after {time.monotonic() - begin:.0f} s")
    return 0 if all(complete) else 1


if __name__ == "__main__":
    sys.exit(main())
