# SPDX-License-Identifier: MIT
"""./run grade --slurm: one task of a job array per submission."""
import shlex
import subprocess
import sys
import time
from pathlib import Path

GRADE = Path(__file__).resolve().with_name("grade.py")


class NoSlurm(Exception):
    """One line that says why not."""


def submit(out, count, jobs, options, command):
    """Runs `command --task I` for I = 0 ... count - 1 and waits for the last: at most `jobs` at a time."""
    logs = out / "slurm"
    logs.mkdir(parents=True, exist_ok=True)
    script = " ".join(shlex.quote(str(part)) for part in [sys.executable, "-B", GRADE, *command])
    line = ["sbatch", "--parsable", "--wait", f"--array=0-{count - 1}%{jobs}", "--job-name=cookbook-grade",
            f"--output={logs}/%a.log", *options, "--wrap", f"{script} --task $SLURM_ARRAY_TASK_ID"]
    try:
        return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except FileNotFoundError:
        raise NoSlurm("--slurm needs sbatch, and there is none here") from None


def wait(process, count_done, of):
    """Shows how many have a result, until the job is over. A task that failed is seen by its missing result."""
    shown = -1
    try:
        while process.poll() is None:
            done = count_done()
            if done != shown:
                print(f"[{done}/{of}] graded by Slurm", flush=True)
                shown = done
            time.sleep(1)
    except KeyboardInterrupt:
        process.terminate()
        raise
    said, errors = process.communicate()
    if not said.strip():
        raise NoSlurm(f"sbatch: {errors.strip() or 'submitted no job'}")
    return said.strip().split(";")[0]
