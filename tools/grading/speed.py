# SPDX-License-Identifier: MIT
"""The step `speed` of ./run grade: times right submissions on a GPU, one after the other.

Each runs beside the assignment's baseline (speed.cpp), and what is measured gives points per tier and a place on
the leaderboard.
"""
import concurrent.futures
import json
import random
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import assignment as assignments
import build
import sandbox
from assignment import BadSubmission

# What must be right before time is spent on it.
BEFORE = ("compiles", "public_sizes", "hidden_sizes", "schedules", "races")
SECONDS = 120  # of wall-clock time per submission


class NoGpu(Exception):
    """One line that says why nothing is timed."""


class Speed:
    """Compiles and times submissions. `grader`: the program that holds the reference."""

    def __init__(self, assignment, gpu_build, grader):
        self.assignment, self.grader = assignment, grader
        self.builder = build.GpuBuilder(gpu_build, assignment)
        self.builder.prepare()
        roofs = self.builder.flags["roofs"]
        done = subprocess.run(roofs, capture_output=True, text=True)
        if done.returncode != 0:
            raise NoGpu(f"there is no GPU to time on: {done.stderr.strip() or 'its roofs cannot be measured'}")
        self.roofs = json.loads(done.stdout)
        self.kind = sandbox.kind_of_gpu_sandbox(roofs[0])
        self.lock = threading.Lock()  # one at a time on the GPU

    def describe(self):
        return f"{self.roofs['device']}, in {sandbox.KINDS[self.kind]}"

    def make(self, spliced, own_files, folder):
        """Compiles a submission for the GPU into folder/box."""
        return self.builder.worker(spliced, folder, own_files)

    def time(self, box):
        """What speed.cpp returns for the worker in `box`."""
        limits = sandbox.Limits(SECONDS, SECONDS, None, self.assignment.limits["processes"],
                                self.assignment.limits["output_mb"])
        speed = self.assignment.speed
        plan = {"size": speed["size"], "samples": speed["samples"], "seed": random.SystemRandom().getrandbits(48),
                "roof_bytes": 0, "roof_flops": 0}
        plan[assignments.ROOFS[speed["roof"]]] = self.roofs.get(speed["roof"], 0)
        with tempfile.TemporaryDirectory() as name, self.lock:
            folder = Path(name)
            folder.chmod(0o755)
            # Another user runs it, who cannot read every build folder.
            shutil.copytree(self.builder.baseline, folder / "baseline")
            for slot, (which, place) in enumerate((("baseline", folder / "baseline"), ("submission", box))):
                plan[which] = sandbox.gpu_worker_command(self.kind, place, limits, slot)
            (folder / "plan.json").write_text(json.dumps(plan))
            command = [str(self.grader), "--speed", str(folder / "plan.json"), str(folder / "out.json")]
            try:
                status, said = sandbox.run(command, SECONDS)
            except sandbox.TooMuch as reason:
                return {"refused": f"timing {reason}", "property": "it takes too long where it is timed"}
            if status != 0 or not (folder / "out.json").exists():
                return {"refused": f"the grader ended with status {status}: {said.strip()[-300:]}",
                        "property": "it could not be timed", "trouble": True}
            return json.loads((folder / "out.json").read_text())

    def run(self, entries, jobs, show):
        """`entries`: {name: (text, its headers)}. Compiles `jobs` at a time, times one by one: {name: outcome}."""
        outcomes = {}

        def compile_one(name):
            folder = Path(tempfile.mkdtemp(prefix="cookbook-speed-"))
            folder.chmod(0o755)
            try:
                return folder, self.make(*entries[name], folder), None
            except (BadSubmission, build.DoesNotCompile) as reason:
                return folder, None, {"refused": f"for the GPU: {reason}", "property": f"for the GPU: {reason}"}

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            # All are compiled before one is timed: nothing else runs then.
            made = dict(zip(entries, pool.map(compile_one, entries)))
        for done, (name, (folder, box, refused)) in enumerate(made.items(), 1):
            outcomes[name] = refused or self.time(box)
            shutil.rmtree(folder, ignore_errors=True)
            show(f"[{done}/{len(made)}] {name:<28} {text_of(outcomes[name])}")
        return outcomes


def text_of(outcome):
    """One line about what was measured, for the teacher."""
    if outcome.get("refused"):
        return "not timed: " + outcome["refused"].splitlines()[0]
    return (f"{outcome['us']:.1f} us, {outcome['ratio']:.3f} times as fast as the baseline "
            f"({outcome['low']:.3f} to {outcome['high']:.3f})")


def may_be_timed(rows):
    """Why a submission with these steps is not timed, or nothing."""
    wrong = [row["step"] for row in rows if row["step"] in BEFORE and not row["passed"]]
    return f"not timed: {wrong[0]} did not pass" if wrong else ""


def score(assignment, rows, outcome):
    """The row of the step `speed`: a tier counts where the whole interval reaches it."""
    tiers, points, feedback = assignment.speed["tiers"], 0, may_be_timed(rows)
    missed = []
    if not feedback and outcome.get("refused"):
        feedback = "not timed: " + outcome["property"]
    elif not feedback:
        at_baseline = outcome["of_roof"] / outcome["ratio"]
        for tier in tiers:
            holds = outcome["low"] >= tier["at_least"] if "at_least" in tier else \
                at_baseline * outcome["low"] >= tier["of_roof"]
            points += tier["points"] if holds else 0
            if not holds:
                missed.append(f"{tier['at_least']:g} times the baseline" if "at_least" in tier else
                              f"{tier['of_roof']:.0%} of the roof")
        feedback = (f"{outcome['ratio']:.2f} times as fast as the baseline ({outcome['low']:.2f} to "
                    f"{outcome['high']:.2f}), {outcome['of_roof']:.0%} of the roof")
        if missed:
            feedback += "; not reached: " + ", ".join(missed)
    return {"step": "speed", "points": points, "of": assignment.points["speed"],
            "passed": points == assignment.points["speed"] and not (outcome or {}).get("refused") and bool(outcome),
            "feedback": feedback}


def leaderboard(results):
    """[(place, result)] of those that were timed, the fastest first. Two whose intervals overlap share a place."""
    timed = [result for result in results if result.get("outcome", {}).get("speed", {}).get("ratio")]
    timed.sort(key=lambda result: -result["outcome"]["speed"]["ratio"])
    of = [result["outcome"]["speed"] for result in timed]
    return [(1 + sum(other["low"] > own["high"] for other in of), result) for own, result in zip(of, timed)]
