# SPDX-License-Identifier: MIT
"""A Slurm job array whose tasks run one command each: for ./run grade --slurm and for the tuner's shards."""
import shlex
import subprocess
import time


class NoSlurm(Exception):
    """One line that says why not."""


def submit(logs, name, count, jobs, options, command):
    """Runs `command` with $SLURM_ARRAY_TASK_ID = 0 ... count - 1, at most `jobs` at a time; wait() waits for the last.
    `command` is text for the shell. What task I prints goes to `logs`/I.log."""
    logs.mkdir(parents=True, exist_ok=True)
    line = ["sbatch", "--parsable", "--wait", f"--array=0-{count - 1}%{jobs}", f"--job-name={name}",
            f"--output={logs}/%a.log", *options, "--wrap", command]
    try:
        return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except FileNotFoundError:
        raise NoSlurm("--slurm needs sbatch, and there is none here") from None


def quoted(command):
    return " ".join(shlex.quote(str(part)) for part in command)


def wait(process, count_done, of, what):
    """Shows how many tasks have a result, until the job is over. A task that failed is seen by its missing result."""
    shown = -1
    try:
        while process.poll() is None:
            done = count_done()
            if done != shown:
                print(f"[{done}/{of}] {what} by Slurm", flush=True)
                shown = done
            time.sleep(1)
    except KeyboardInterrupt:
        process.terminate()
        raise
    said, errors = process.communicate()
    if not said.strip():
        raise NoSlurm(f"sbatch: {errors.strip() or 'submitted no job'}")
