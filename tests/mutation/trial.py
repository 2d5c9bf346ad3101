# SPDX-License-Identifier: MIT
"""One mutant: edit the file, build what depends on it, run tests until one fails.

Runs in a mount namespace of its own, in which the tree is a copy that is written to memory and gone
with the process. What to do comes as JSON on standard input, what was found leaves on standard output."""
import hashlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TAIL = 4000  # characters of a failing test's output that are kept


def overlay(root, memory):
    """Mounts a copy of `root` over itself; what is written goes to `memory`, an empty folder."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", memory], check=True)
    upper, work = Path(memory, "upper"), Path(memory, "work")
    upper.mkdir(), work.mkdir()
    layers = f"lowerdir={root},upperdir={upper},workdir={work}"
    for options in (layers, layers + ",userxattr"):
        done = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, root], capture_output=True, text=True)
        if done.returncode == 0:
            os.chdir("/")  # the folder this process is in is still the one below
            os.chdir(root)
            return
    raise OSError(done.stderr.strip())


def digest(path):
    """Of an object file without its debug information, "" where there is none."""
    if not path.exists():
        return ""
    with tempfile.NamedTemporaryFile(suffix=".o") as stripped:
        done = subprocess.run(["objcopy", "-g", path, stripped.name], capture_output=True)
        return hashlib.sha256(Path(path if done.returncode else stripped.name).read_bytes()).hexdigest()


def run(command, folder, seconds, environment=None):
    """(exit status, output); the status is None where it ran out of time. Its children end with it."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, start_new_session=True,
                                   env={**os.environ, "CCACHE_DISABLE": "1", **(environment or {})})
        try:
            status = process.wait(max(seconds, 0.1))
        except subprocess.TimeoutExpired:
            status = None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        output.seek(0)
        return status, output.read().decode(errors="replace")


def failing_tests(output, status):
    """Names of the tests that GoogleTest says failed; the one that was running when the process died."""
    failed = list(dict.fromkeys(re.findall(r"^\[  FAILED  \] ([\w./]+)", output, re.MULTILINE)))
    running = re.findall(r"^\[ RUN      \] (\S+)", output, re.MULTILINE)
    ended = set(re.findall(r"^\[\s+(?:OK|FAILED|SKIPPED)\s+\] ([\w./]+)", output, re.MULTILINE))
    if status != 0 and running and running[-1] not in ended:
        failed.append(running[-1])
    return failed


def reason(output, test):
    """The line that says why, for a person."""
    begin = output.find(f"[ RUN      ] {test}\n")
    lines = [line.strip() for line in output[max(begin, 0):].split("\n")]
    for line in lines[1:]:
        if line and not line.startswith("["):
            return line[:200]
    return ""


def without(tests):
    return "-" + ":".join(tests) if tests else ""


class Executable:
    """A test executable as the plan describes it, see plan.py."""
    def __init__(self, job, entry):
        self.build, self.entry = Path(job["build"]), entry
        self.path = self.build / entry["name"]
        self.limit = entry["limit"]

    def run(self, seconds, only="", skip=()):
        """(status, output) of its tests, up to the first that fails."""
        command = [str(self.path)]
        if self.entry["gtest"]:
            command += ["--gtest_fail_fast", "--gtest_color=no", f"--gtest_filter={only or '*'}{without(skip)}"]
        else:
            command = self.entry["command"]
        return run(command, self.entry["folder"], seconds, self.entry["environment"])

    def first_failure(self, deadline, focus):
        """What a failing test says, None where all pass. Raises TimeoutError, naming the test."""
        skip = list(self.entry["skip"])
        for only in ([focus] if focus and self.entry["gtest"] else []) + [""]:
            while True:
                limit = min(self.limit, deadline - time.monotonic())
                if limit <= 0:
                    raise InterruptedError
                status, output = self.run(limit, only, skip)
                if status == 0:
                    break
                tests = failing_tests(output, status) if self.entry["gtest"] else [self.entry["test"]]
                if status is None:
                    if limit < self.limit:
                        raise InterruptedError
                    raise TimeoutError(f"{self.entry['test']}: {tests[-1] if tests else '?'}")
                if not tests:
                    return {"by": f"{self.entry['test']} (exit {status})", "why": output.strip()[-200:],
                            "executable": self.entry["test"]}
                test = tests[0]
                if self.entry["gtest"]:
                    # Alone: what fails only after other tests, in a process that they share, is not counted.
                    alone, said = self.run(min(self.limit, max(deadline - time.monotonic(), 1)), test)
                    if alone == 0:
                        skip.append(test)
                        continue
                    output = said if alone is not None else output
                died = f" (signal {-status})" if status < 0 else ""
                # A script is named as ctest names it; what it runs may be any file of the build.
                by = f"{self.entry['name']}: {test}" if self.entry["gtest"] else test
                return {"by": f"{by}{died}", "why": reason(output, test),
                        "executable": self.entry["test"], "test": test, "output": output[-TAIL:]}
        return None


def build(job, targets, seconds):
    return run(["ninja", "-C", job["build"], "-j", str(job["threads"]), *targets], job["root"], seconds)


def first_error(output):
    match = re.search(r"^.*(?:error|undefined reference).*$", output, re.MULTILINE)
    return match[0].strip()[:200] if match else output.strip()[-200:]


def trial(job):
    """The verdict on one mutant."""
    deadline = time.monotonic() + job["seconds"]
    path = Path(job["root"], job["path"])
    path.write_text(job["source"], encoding="utf-8")
    ran = list(job["passed"])  # by an earlier trial that ended too soon
    changed, deferred = bool(ran), 0
    for entry in job["executables"]:
        if entry["name"] in ran:
            continue
        if job["defer"] and entry["seconds"] > job["defer"]:
            deferred += 1
            continue
        left = deadline - time.monotonic()
        if left <= 0:
            return {"verdict": "unfinished", "why": f"{len(ran)} of {len(job['executables'])} executables", "ran": ran}
        status, output = build(job, [entry["name"]], left)
        if status is None:
            return {"verdict": "unfinished", "why": f"while building {entry['name']}", "ran": ran}
        if "Error running test executable" in output:  # which lists its tests when it is linked
            hangs = "terminated due to timeout" in output
            return {"verdict": "timeout" if hangs else "caught", "by": f"{entry['name']}: does not list its tests",
                    "ran": ran}
        if status != 0:
            return {"verdict": "does not compile", "why": first_error(output), "ran": ran}
        if not job["always_run"] and all(digest(Path(job["build"], name)) == was
                                         for name, was in entry["objects"].items()):
            continue  # the machine code is the same
        changed = True
        try:
            failure = Executable(job, entry).first_failure(deadline, job["focus"])
        except TimeoutError as error:
            return {"verdict": "timeout", "why": str(error), "ran": ran}
        except InterruptedError:
            return {"verdict": "unfinished", "why": f"while running {entry['name']}", "ran": ran}
        if failure:
            return {"verdict": "caught", **failure, "ran": ran}
        ran.append(entry["name"])
    if deferred:
        return {"verdict": "unfinished", "why": f"{deferred} slow executables are left for later", "ran": ran}
    return {"verdict": "survived" if changed else "equivalent", "ran": ran}


def inside(job):
    """Entry point of the child process."""
    began = time.monotonic()
    if job["memory"]:
        overlay(job["root"], job["memory"])
    found = trial(job)
    found["took"] = round(time.monotonic() - began, 1)
    sys.stdout.flush()
    return found


if __name__ == "__main__":  # trial.py ROOT MEMORY: only whether this is allowed here
    overlay(*sys.argv[1:])
