#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""./run grade --slurm against a real Slurm: starts munged, slurmctld and slurmd in a temporary folder.

Needs root and Debian's slurm-wlm and munge. Grades a small class with and without Slurm: the results are
equal, and a task that dies leaves one submission ungraded and no other.

Usage: slurm_test.py BUILD [all]
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]
import museum  # noqa: E402

BUILD = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
NAMES = None if sys.argv[2:] == ["all"] else ["right", "still_conflicts", "no_barrier", "cheat_prints_passed",
                                              "cheat_public_sizes_only", "right_in_a_folder"]
CONFIGURATION = """
ClusterName=book
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPort={first}
SlurmdPort={second}
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Cluster:
    """One node, this machine."""

    def __init__(self, folder):
        self.folder, self.processes = folder, []
        for name in ("state", "spool"):
            (folder / name).mkdir()
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        first, second = free_ports(2)
        host = socket.gethostname().split(".")[0]
        configuration = folder / "slurm.conf"
        configuration.write_text(CONFIGURATION.format(folder=folder, host=host, first=first, second=second,
                                                      cores=os.cpu_count()))
        self.environment = dict(os.environ, SLURM_CONF=str(configuration))
        self.start("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket",
                   f"--pid-file={folder}/munged.pid", f"--seed-file={folder}/munged.seed", f"--log-file={folder}/munged.log")
        self.start("slurmctld", "-D", "-f", str(configuration))
        self.start("slurmd", "-D", "-f", str(configuration))
        until = time.monotonic() + 40
        while "idle" not in subprocess.run(["sinfo", "-h"], env=self.environment, capture_output=True, text=True).stdout:
            if time.monotonic() > until:
                logs = "".join(path.read_text(errors="replace")[-1500:] for path in sorted(folder.glob("*.log")))
                self.stop()
                raise RuntimeError("Slurm does not start:\n" + logs)
            time.sleep(0.5)

    def start(self, *command):
        self.processes.append(subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL,
                                               stderr=subprocess.DEVNULL))

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


@unittest.skipIf(BUILD is None or os.geteuid() != 0 or not all(map(shutil.which, ("munged", "slurmctld", "slurmd"))),
                 "needs a build folder, root, and Debian's slurm-wlm and munge")
class Slurm(museum.InFolder):
    def setUp(self):
        super().setUp()
        (self.folder / "cluster").mkdir()
        self.cluster = Cluster(self.folder / "cluster")
        self.addCleanup(self.cluster.stop)
        museum.write(self.folder / "submissions", NAMES)

    def grade(self, out, *options, status=0):
        done = subprocess.run([*museum.command(BUILD, self.folder / "submissions", self.folder / out), *options],
                              env=self.cluster.environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return (self.folder / out / "grades.csv").read_text(), done.stdout

    def test_equal_results(self):
        began = time.monotonic()
        by_slurm, _ = self.grade("slurm", "--slurm", "--sbatch=--time=10")
        seconds = time.monotonic() - began
        here, _ = self.grade("here")
        print(f"{len(by_slurm.splitlines()) - 1} submissions through Slurm in {seconds:.0f} s", file=sys.stderr)

        def without_addresses(text):
            return re.sub(r"0x[0-9a-f]+|threads?[^\"]*|for \d+ s", "", text)
        self.assertEqual(without_addresses(by_slurm), without_addresses(here))
        self.assertIn("right,100", by_slurm)
        # What has a result is kept.
        (self.folder / "slurm/results/right.json").unlink()
        _, said = self.grade("slurm", "--slurm")
        self.assertEqual(said.count(" kept "), len(by_slurm.splitlines()) - 1)

    def tune(self, name, *options):
        """(the process, what it wrote) of the shards of a stand-in for chapter 11's program."""
        program = HERE / "stand_ins/chapter_11.sh"
        cache = self.folder / name
        done = subprocess.run([sys.executable, "-B", str(museum.ROOT / "tools/slurm/tune.py"),
                               str(program), str(cache), *options, "--sbatch=--time=5", "--", "--kernel", "a b"],
                              env=self.cluster.environment, capture_output=True, text=True)
        return done, cache.read_text() if cache.exists() else ""

    def test_the_tuners_shards(self):
        done, merged = self.tune("all.json", "--shards", "3")
        self.assertEqual((done.returncode, merged), (0, "a b 0/3\na b 1/3\na b 2/3\n"), done.stdout + done.stderr)
        done, merged = self.tune("one_fails.json", "--shards", "4")
        self.assertEqual((done.returncode, merged), (1, "a b 0/4\na b 1/4\na b 3/4\n"), done.stderr)
        self.assertIn("shard 2 left nothing", done.stderr)

    def test_a_task_that_dies(self):
        for path in (self.folder / "submissions").iterdir():
            if path.stem != "right":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        table, said = self.killed()
        self.assertIn("left no result", said)
        self.assertIn("right,0,", table)

    def killed(self):
        """The job is cancelled while it runs."""
        def cancel():
            for _ in range(60):
                time.sleep(0.3)
                if "R" in subprocess.run(["squeue", "-h", "-o", "%t"], env=self.cluster.environment, capture_output=True,
                                         text=True).stdout:
                    subprocess.run(["scancel", "--name=cookbook-grade"], env=self.cluster.environment)
                    return
        thread = threading.Thread(target=cancel)
        thread.start()
        try:
            return self.grade("dies", "--slurm", status=1)
        finally:
            thread.join()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
