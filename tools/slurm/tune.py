#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tunes in shards, each a task of a Slurm job array, and merges their caches.

  tools/slurm/tune.py build/cuda/chapter-11 CACHE --shards 8 [--sbatch=OPTION ...] -- --kernel gemm

What follows -- are options of `chapter-11 tune`. The program and CACHE lie where all nodes see them. Exit status:
0 merged, 1 a shard is missing (the others are merged, and the same command runs all again), 2 wrong arguments.
"""
import argparse
import subprocess
import sys
from pathlib import Path

import job_array


def main(argv):
    own, tune = (argv[:argv.index("--")], argv[argv.index("--") + 1:]) if "--" in argv else (argv, [])
    parser = argparse.ArgumentParser(description="Tunes in shards by Slurm, and merges their caches "
                                     "(docs/autotuning.md).")
    parser.add_argument("program", metavar="CHAPTER-11", type=Path)
    parser.add_argument("cache", metavar="CACHE", type=Path, help="gets the entries of all shards")
    parser.add_argument("--shards", type=int, required=True, metavar="N")
    parser.add_argument("--sbatch", action="append", default=[], metavar="OPTION", help="an option for sbatch "
                        "(repeatable; default: --gres=gpu:1)")
    arguments = parser.parse_args(own)
    if arguments.shards < 1:
        parser.error("--shards takes a number, 1 or more")
    if any(part.startswith(("--shard", "--cache")) for part in tune):
        parser.error("--shard and --cache are set for each task")
    cache = arguments.cache.resolve()
    logs = cache.with_name(cache.name + ".shards")
    parts = [logs / f"{i}.json" for i in range(arguments.shards)]
    logs.mkdir(parents=True, exist_ok=True)
    for part in parts:
        part.unlink(missing_ok=True)
    program = arguments.program.resolve()
    command = job_array.quoted([program, "tune", *tune])
    where = job_array.quoted([logs])
    try:
        job = job_array.submit(logs, "cookbook-tune", arguments.shards, arguments.shards,
                           arguments.sbatch or ["--gres=gpu:1"],
                           f"{command} --shard $SLURM_ARRAY_TASK_ID/{arguments.shards} --cache "
                           f"{where}/$SLURM_ARRAY_TASK_ID.json")
        job_array.wait(job, lambda: sum(part.exists() for part in parts), arguments.shards, "tuned")
    except job_array.NoSlurm as reason:
        print(f"slurm: {reason}", file=sys.stderr)
        return 2
    # A task that fails in the middle may have kept something, so the job's status says more than its file.
    there = [part for part in parts if part.exists()]
    missing = [part.stem for part in parts if not part.exists()]
    if missing or job.returncode != 0:
        print(f"slurm: {'shard ' + ', '.join(missing) + ' left nothing' if missing else 'a shard failed'}; see "
              f"{logs}/*.log", file=sys.stderr)
    if there and subprocess.run([str(program), "merge", str(cache), *map(str, there)]).returncode != 0:
        return 1
    return 1 if missing or job.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
