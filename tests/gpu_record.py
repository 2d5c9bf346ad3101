#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The record of the last runs on a GPU: tests/gpu_record.json. tests/gpu.sh calls this on a machine with one.

Steps, each of which replaces its own entry of the record:
  run            ./run, from a clean copy of the tree; its results in build/gpu-record/results
  test           ./run test there, compute-sanitizer included
  parity         Nsight Compute on tests/parity, compared with the committed counts
  architectures  device code for every architecture, and no spills in last levels: all of them, or architectures:75,80

An entry holds commit, date, device, driver, toolkit, host compiler, exit status, seconds and counts.
The tree may lack .git: COOKBOOK_COMMIT then names the commit. Exit 1 when a step failed, 2 for bad input.
"""
import argparse
import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STEPS = ("run", "test", "parity", "architectures")
ARCHITECTURES = ("75", "80", "86", "89", "90a", "100a", "120a")
# No code: a commit that changes only these does not make a record older.
NOT_CODE = (":!*.md", ":!plots/results", ":!plots/figures", ":!tests/gpu_record.json", ":!tests/parity/golden",
            ":!docs/*.svg", ":!LICENSE")


class Refused(Exception):
    """Bad input, with the reason."""


def said(*command, folder=None):
    """What a program prints, stripped; empty when it is not there or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def commit_of(root):
    """The commit of the tree, which must hold no other code than it."""
    given = os.environ.get("COOKBOOK_COMMIT")
    if given:
        return given
    commit = said("git", "rev-parse", "--short=12", "HEAD", folder=root)
    if not commit:
        raise Refused("this tree has no .git: COOKBOOK_COMMIT must name its commit")
    changed = said("git", "status", "--porcelain", "--", ".", *NOT_CODE, folder=root)
    if changed:
        raise Refused("there is code that is not committed, so a record could not name it:\n" + changed)
    return commit


def clean_copy(root, work, commit):
    """A copy of the sources without anything built, kept for the steps of the same commit."""
    tree, stamp = work / "tree", work / "commit"
    if stamp.exists() and stamp.read_text() == commit:
        return tree
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    listed = said("git", "ls-files", "-z", folder=root)
    if listed:
        for name in filter(None, listed.split("\0")):
            if (root / name).is_file():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, tree / name)
    else:
        shutil.copytree(root, tree, symlinks=True, ignore=lambda folder, names: [
            name for name in names
            if name == "__pycache__" or (Path(folder) == root and name in (".git", "build", ".venv"))])
    stamp.write_text(commit)
    return tree


def machine():
    query = said("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").split("\n")[0].split(", ")
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    release = re.search(r"release ([\d.]+)", said(nvcc, "--version"))
    compiler = os.environ.get("CXX", "g++")
    return {"device": query[0], "driver": query[1] if len(query) > 1 else "",
            "toolkit": release[1] if release else "",
            "host_compiler": f"{Path(compiler).name} {said(compiler, '-dumpfullversion')}".strip()}


def run_limited(command, folder, log, limit, environment):
    """Runs a command, shows and logs what it prints, and ends it after `limit` seconds: its exit status, or 124."""
    with open(log, "w") as file, open(log, errors="replace") as text:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=file, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        ends, status = time.monotonic() + limit, None
        while status is None:
            try:
                status = process.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                if time.monotonic() > ends:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    status = 124
            sys.stdout.write(text.read())
            sys.stdout.flush()
    return status


def test_counts(text):
    """Counts of ./run test: what ctest sums up (once per backend), and compute-sanitizer's steps."""
    counts = {"passed": 0, "failed": 0, "skipped": len(re.findall(r"\*\*\*Skipped", text))}
    # CMake 4 leaves out "0 tests failed".
    for failed, total in re.findall(r"% tests passed(?:, (\d+) tests failed)? out of (\d+)", text):
        counts["failed"] += int(failed or 0)
        counts["passed"] += int(total) - int(failed or 0)
    counts["passed"] -= counts["skipped"]  # ctest counts them among those that pass
    counts["sanitizer_passed"] = len(re.findall(r"^ok    chapter ", text, re.MULTILINE))
    counts["sanitizer_failed"] = len(re.findall(r"^FAIL  chapter ", text, re.MULTILINE))
    return counts


def parity_counts(tree, out):
    """How many cases were measured, and which of them differ from the committed counts."""
    file = out / "h200.json"
    if not file.exists():
        return {"measured": 0}
    measured = json.loads(file.read_text())["cases"]
    golden = json.loads((tree / "tests/parity/golden/h200.json").read_text())["cases"]

    def totals(cases, name):  # not the line numbers: every edit above a line changes them
        case = cases.get(name, {})
        # pipe_...: recorded beside the others; arbitration between warps changes them from run to run.
        return case.get("size"), {operation: {key: count for key, count in counts.items() if not key.startswith("pipe_")}
                                  for operation, counts in case.get("totals", {}).items()}

    listed = tree / "tests/parity/golden/not_yet_measured.txt"  # cases that this is the first measurement of
    first = set(listed.read_text().split()) & set(measured) if listed.exists() else set()
    differ = sorted(name for name in (set(measured) | set(golden)) - first
                    if totals(measured, name) != totals(golden, name))
    return {"measured": len(measured), "differ": differ}


def architectures(tree, names, limit, environment, log):
    """Compiles the device code of every file for each architecture: status and, per architecture, the outcome."""
    known = said(shutil.which("nvcc", path=environment["PATH"]) or "nvcc", "--list-gpu-code").split()
    outcome, worst = {}, 0
    ends = time.monotonic() + limit
    for name in names:
        if f"sm_{name.rstrip('a')}" not in known:  # nvcc lists sm_90, and not its features of sm_90a
            outcome[name] = {"unknown_to_toolkit": True}
            continue
        build = tree / f"build/sm_{name}"
        command = (f"cmake --preset cuda -B {build} -DCMAKE_CUDA_ARCHITECTURES={name} -DCMAKE_CUDA_FLAGS=-Xptxas=-v "
                   f">/dev/null && python3 -B tests/ci/recompile.py {build} --device --log {build}/ptxas.log && "
                   f"python3 -B tests/ci/check_ptxas.py {build}/ptxas.log --architecture sm_{name}")
        status = run_limited(["bash", "-c", command], tree, log, max(1, ends - time.monotonic()), environment)
        text = log.read_text(errors="replace")
        found = re.findall(r"^(\d+) files compile, (\d+) do not$", text, re.MULTILINE)
        outcome[name] = {"exit": status}
        if found:
            outcome[name].update(compile=int(found[-1][0]), fail=int(found[-1][1]))
        found = re.findall(r"^\d+ kernels compiled, (\d+) looked at, (\d+) problems$", text, re.MULTILINE)
        if found:  # of the last levels: spills, stack frames
            outcome[name].update(last_levels=int(found[-1][0]), spills=int(found[-1][1]))
        worst = worst or status
    return worst, outcome


def run_step(step, tree, work, commit, limit):
    environment = dict(os.environ, COOKBOOK_COMMIT=commit)
    if not shutil.which("nvcc"):
        environment["PATH"] = "/usr/local/cuda/bin:" + environment["PATH"]
    name, _, chosen = step.partition(":")
    entry = {"commit": commit, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
             **machine(), "fresh": not (tree / "build/cuda").exists()}
    log, began, counts = work / f"{name}.log", time.monotonic(), {}
    (work / "results").mkdir(exist_ok=True)  # book-0.json ...: what the tables can be made from
    commands = {"run": ["./run", "--json", str(work / "results/book.json")], "test": ["./run", "test"],
                "parity": ["bash", "-c", f"BACKEND=cuda ./run build && tests/parity/run_ncu.sh {work}/parity"]}
    if name in commands:
        status = run_limited(commands[name], tree, log, limit, environment)
        text = log.read_text(errors="replace")
    if name == "run":
        counts = {"chapters": len(re.findall(r"^Chapter \d+", text, re.MULTILINE))}
    elif name == "test":
        counts = test_counts(text)
    elif name == "parity":
        counts = parity_counts(tree, work / "parity")
        status = status or int(not counts["measured"] or bool(counts["differ"]))
    else:
        names = tuple(filter(None, chosen.split(","))) or ARCHITECTURES
        status, counts["architectures"] = architectures(tree, names, limit, environment, log)
    entry.update(exit=status, seconds=round(time.monotonic() - began), **counts)
    return entry


def write(record, file):
    beside = file.with_name(file.name + ".new")
    beside.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    os.replace(beside, file)


def behind(root, file):
    """Sentences: of each commit in the record, how many commits since then touch code."""
    if not file.exists():
        return ["GPU record: there is none (tests/gpu.sh on a machine with a GPU makes one)"]
    steps = json.loads(file.read_text())["steps"]
    lines = []
    for commit in sorted({entry["commit"] for entry in steps.values()}):
        names = [name for name, entry in steps.items() if entry["commit"] == commit]
        what = ", ".join(name + ("" if steps[name]["exit"] == 0 else f" (exit {steps[name]['exit']})")
                         for name in names)
        count = said("git", "rev-list", "--count", f"{commit}..HEAD", "--", ".", *NOT_CODE, folder=root)
        known = f"{count} commits that touch code behind" if count else "how far behind, git cannot tell"
        lines.append(f"GPU record of {commit} ({what}): {known}")
    return lines


def main(arguments, root=ROOT):
    parser = argparse.ArgumentParser(prog="tests/gpu.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", metavar="STEP")
    parser.add_argument("--record", type=Path, default=root / "tests/gpu_record.json", help="the file to update")
    parser.add_argument("--limit", type=int, default=560, help="seconds per step; 560")
    parser.add_argument("--behind", action="store_true", help="only say how old the record is")
    options = parser.parse_args(arguments)
    if options.behind:
        print("\n".join(behind(root, options.record)))
        return 0
    steps = options.steps or ["run", "test", "parity"]
    try:
        for step in steps:
            name, colon, chosen = step.partition(":")
            if name not in STEPS or (colon and name != "architectures"):
                raise Refused(f"no step '{step}'; there are: {' '.join(STEPS)}")
            wrong = [each for each in chosen.split(",") if colon and each not in ARCHITECTURES]
            if wrong:
                raise Refused(f"no architecture '{wrong[0]}'; there are: {' '.join(ARCHITECTURES)}")
        commit = commit_of(root)
        if not said("nvidia-smi", "-L") and any(not step.startswith("architectures") for step in steps):
            raise Refused("needs a GPU, and nvidia-smi finds none")
        record = json.loads(options.record.read_text()) if options.record.exists() else {"steps": {}}
    except (Refused, ValueError) as error:
        print(f"gpu: {error}", file=sys.stderr)
        return 2
    work = root / "build/gpu-record"
    tree = clean_copy(root, work, commit)
    failed = []
    for step in steps:
        print(f"=== {step}, commit {commit}, at most {options.limit} s", flush=True)
        entry = run_step(step, tree, work, commit, options.limit)
        name, _, chosen = step.partition(":")
        old = record["steps"].get(name, {})
        if chosen and old.get("commit") == commit:  # the other architectures of the same commit stay
            entry["architectures"] = {**old.get("architectures", {}), **entry["architectures"]}
            entry["exit"] = entry["exit"] or max(each.get("exit", 0) for each in entry["architectures"].values())
        record["steps"][name] = entry
        write(record, options.record)  # after each: what comes later may be cut off
        print(f"--- {step}: exit {entry['exit']} after {entry['seconds']} s", flush=True)
        if entry["exit"] != 0:
            failed.append(step)
    print(f"wrote {options.record}" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
