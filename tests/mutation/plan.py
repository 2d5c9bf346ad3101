# SPDX-License-Identifier: MIT
"""What the build knows: which objects a file goes into, which test executables hold them, what those cost."""
import json
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutation import trial


# Test executables that are about the files of a folder: they run first, because most bugs there end with them.
ABOUT = {
    "common/backend/simt/": ("simt-", "device-units", "lookback"),
    "common/harness/": ("harness-test", "oracle-test", "timing-test", "planted", "isolation"),
    "tools/check/": ("check-runtime-test",),
}


class Failed(Exception):
    """Something that has to work before there is anything to mutate."""


def output_of(command, folder=None):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))}: {(done.stderr or done.stdout).strip()[-400:]}")
    return done.stdout


class Build:
    """A configured build folder that uses Ninja."""
    def __init__(self, root, folder):
        self.root, self.folder = Path(root), Path(folder)
        self.digests = {}

    def configure(self, preset):
        if (self.folder / "CMakeCache.txt").exists():
            if not (self.folder / "build.ninja").exists():
                raise Failed(f"{self.folder} was configured without Ninja: install ninja-build and delete the folder")
            return
        say = ["cmake", "--preset", preset] if preset else ["cmake", "-S", str(self.root), "-B", str(self.folder)]
        # A mutant that narrows an index does not compile in CI, where warnings are errors. A mutant of
        # the harness need not compile the other files of it.
        output_of([*say, "-G", "Ninja", "-DCMAKE_CXX_FLAGS=-Werror=conversion", "-DCOOKBOOK_TOGETHER=OFF"], self.root)

    def build(self, targets, threads):
        done = subprocess.run(["ninja", "-C", self.folder, "-j", str(threads), *targets], capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"the unchanged sources do not build: {trial.first_error(done.stdout)}")

    def objects_by_source(self):
        """{path relative to the root: [object]}, of what has been built."""
        found, current = {}, None
        for line in output_of(["ninja", "-C", self.folder, "-t", "deps"]).split("\n"):
            if match := re.match(r"(\S.*): #deps", line):
                current = match[1]
            elif line.startswith("    ") and current:
                path = Path(self.folder, line.strip()).resolve()
                if path.is_relative_to(self.root):
                    found.setdefault(str(path.relative_to(self.root)), []).append(current)
        return found

    def seconds_by_output(self):
        """What the last build of every output took, from Ninja's log."""
        took = {}
        log = self.folder / ".ninja_log"
        for line in log.read_text().split("\n")[1:] if log.exists() else []:
            parts = line.split("\t")
            if len(parts) >= 4:
                took[parts[3]] = (int(parts[1]) - int(parts[0])) / 1e3
        return took

    def tests(self, leave_out):
        """Test executables: {name: entry}. Those with a label of `leave_out` are not run."""
        found = {}
        for test in json.loads(output_of(["ctest", "--test-dir", self.folder, "--show-only=json-v1"]))["tests"]:
            command = test.get("command")
            if not command:
                continue  # it has not been built
            properties = {each["name"]: each["value"] for each in test.get("properties", [])}
            program = Path(command[0])
            if not program.is_relative_to(self.folder):  # a script: what of the build does it run?
                inside = [a for a in command[1:] if Path(a).is_relative_to(self.folder) and Path(a).is_file()]
                if not inside:
                    continue
                name, program = test["name"], Path(inside[0])
            else:
                name = str(program.relative_to(self.folder))
            gtest = any(a.startswith("--gtest_filter=") for a in command)
            entry = found.setdefault(name if gtest else test["name"], {
                "name": str(program.relative_to(self.folder)), "gtest": gtest, "command": command, "skip": [],
                "folder": properties.get("WORKING_DIRECTORY", str(self.folder)),
                "environment": dict(each.split("=", 1) for each in properties.get("ENVIRONMENT", []))})
            if set(properties.get("LABELS", [])) & set(leave_out):
                entry["skip"] += [a.split("=", 1)[1] for a in command if a.startswith("--gtest_filter=")] or [name]
        return {name: entry for name, entry in found.items() if entry["gtest"] or not entry["skip"]}

    def inputs(self, name):
        return set(output_of(["ninja", "-C", self.folder, "-t", "inputs", name]).split("\n"))

    def digest(self, name):
        if name not in self.digests:
            self.digests[name] = trial.digest(self.folder / name)
        return self.digests[name]


class TestPlan:
    """Executables by source file, cheapest first, with what they take and which of their tests do not count."""
    def __init__(self, build, leave_out, only=()):
        self.build = build
        self.objects = build.objects_by_source()
        self.took = build.seconds_by_output()
        self.tests = {name: entry for name, entry in build.tests(leave_out).items()
                      if not only or entry["name"] in only}
        for name in only:
            if name not in {entry["name"] for entry in self.tests.values()}:
                raise Failed(f"{name} is no test executable")
        self.inputs = {entry["name"]: build.inputs(entry["name"]) for entry in self.tests.values()}
        self.file = build.folder / "mutate-baseline.json"
        self.measured = json.loads(self.file.read_text()) if self.file.exists() else {}

    def affected(self, path):
        """Names of the tests that hold an object of `path`."""
        objects = set(self.objects.get(path, []))
        return [name for name, entry in self.tests.items() if objects & self.inputs[entry["name"]]]

    def stamp(self, entry):
        status = (self.build.folder / entry["name"]).stat()
        return f"{status.st_mtime_ns}:{status.st_size}"

    def measure(self, names, threads, say, known=None):
        """Runs the unchanged executables: what they take, and tests that fail anyway. Not those whose
        seconds are `known`: of them, a test that catches something is run unchanged when it does."""
        missing = [n for n in names if self.measured.get(n, {}).get("stamp") != self.stamp(self.tests[n])]
        for name in [n for n in missing if n in (known or {})]:
            missing.remove(name)
            self.measured[name] = {"seconds": known[name], "fails": [], "stamp": ""}
        if missing:
            say(f"running {len(missing)} test executables unchanged")

        def one(name):
            entry = dict(self.tests[name], limit=1800)
            skip, began = list(entry["skip"]), time.monotonic()
            while True:
                start = time.monotonic()
                executable = trial.Executable({"build": self.build.folder}, entry)
                status, output = executable.run(1800, skip=skip)
                seconds = time.monotonic() - start
                failed = trial.failing_tests(output, status) if entry["gtest"] else [name]
                if status == 0 or not set(failed) - set(skip) or time.monotonic() - began > 600:
                    break
                skip += failed
            return name, {"stamp": self.stamp(entry), "ran": True, "seconds": seconds if status == 0 else None,
                          "fails": [test for test in skip if test not in entry["skip"]]}

        with ThreadPoolExecutor(threads) as pool:
            for name, result in pool.map(one, missing):
                self.measured[name] = result
        self.file.write_text(json.dumps({n: m for n, m in self.measured.items() if m["stamp"]}, indent=1))

    def cost(self, name, path):
        """Seconds until this executable has said what it thinks of an edit of `path`."""
        entry = self.tests[name]
        dirty = set(self.objects[path]) & self.inputs[entry["name"]]
        return sum(self.took.get(each, 5) for each in dirty) + (self.measured[name]["seconds"] or 0)

    def executables(self, path, patience):
        """What a trial needs: those of ABOUT, then the others, the cheapest first. Executables that are broken anyway
        are left out. One that takes `patience` seconds more than five times what it takes unchanged hangs."""
        found = []
        about = tuple(name for folder, names in ABOUT.items() if path.startswith(folder) for name in names)
        for name in sorted(self.affected(path), key=lambda n: (not n.startswith(about), self.cost(n, path), n)):
            entry, measured = self.tests[name], self.measured[name]
            if measured["seconds"] is None:
                continue
            objects = set(self.objects[path]) & self.inputs[entry["name"]]
            found.append({**entry, "test": name, "skip": entry["skip"] + measured["fails"],
                          "seconds": measured["seconds"], "limit": patience + 5 * measured["seconds"],
                          "objects": {each: self.build.digest(each) for each in sorted(objects)}})
        return found
