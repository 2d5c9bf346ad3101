# SPDX-License-Identifier: MIT
"""Compiles a teacher's file into a grader, and a submission into a worker."""
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import assignment as assignments
import objects
import sandbox

UNIT = '#include "{file}"\n#include "tools/grading/entry.hpp"\nCOOKBOOK_GRADED_LEVEL({level})\n'


class DoesNotCompile(Exception):
    """What the compiler said."""


def explain(text, limit=8):
    """The first errors, with their source lines."""
    rows, errors = [], 0
    for row in text.splitlines():
        if re.search(r": (fatal )?error: ", row):
            errors += 1
            if errors > limit:
                break
            rows.append(re.sub(r"^\S*/([^/\s]+:\d+)", r"\1", row))
        elif rows and re.match(r"\s+\d+ \|", row) and len(rows) < 3 * limit and not rows[-1].startswith(" "):
            rows.append("  " + row.strip())
    return "\n".join(rows) or (text.strip().splitlines() or ["the compiler said nothing"])[-1][:400]


class Builder:
    def __init__(self, build, assignment, hidden_folders=()):
        self.flags = json.loads((Path(build) / "grading.json").read_text())
        self.gpu = self.flags.get("language") == "cu"
        self.assignment = assignment
        self.build = Path(build).resolve()
        # What no compilation of a submission may read, by whatever trick.
        self.hidden = [str(Path(folder).resolve()) for folder in hidden_folders]
        self.limits = sandbox.Limits(seconds=4 * assignment.limits["compile_seconds"],
                                     cpu_seconds=assignment.limits["compile_seconds"], memory_mb=6144, file_mb=256)
        libraries = [Path(name) for key in ("link_worker", "link_grader") for name in self.flags.get(key, [])
                     if name.endswith(".a")]
        state = [self.flags, assignment.text, assignment.files, assignment.level,
                 [(str(path), path.stat().st_mtime_ns) for path in libraries]]
        self.digest = hashlib.sha256(json.dumps(state).encode()).hexdigest()[:16]
        self.folder = self.build / "grading" / self.digest

    def command(self, mode, source, target):
        # -ffile-prefix-map: no path of the grader's machine in the file.
        return [self.flags["compiler"], "-x", self.flags.get("language", "c++"), *self.flags["common"], *self.flags[mode], "-I", str(source.parent),
                "-c", str(source), "-o", str(target)]

    def write_unit(self, folder, text, own_files=None):
        # The teacher's headers take the place of a student's of the same name.
        for name, content in {**(own_files or {}), **self.assignment.files, self.assignment.file.name: text}.items():
            (folder / name).write_text(content)
        unit = folder / "unit.cu"
        unit.write_text(UNIT.format(file=self.assignment.file.name, level=self.assignment.level))
        return unit

    def run_compiler(self, command, folder, boxed):
        environment = dict(os.environ, LC_ALL="C", CCACHE_DISABLE="1", TMPDIR=str(folder))
        if boxed and sandbox.kind_of_sandbox() == "bubblewrap":
            kept = [str(assignments.ROOT), str(self.build)]
            box = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc",
                   "/proc", "--tmpfs", "/tmp"]
            for kind, places in (("--ro-bind", kept), ("--tmpfs", self.hidden)):
                for place in places:
                    box += [kind, place, place] if kind == "--ro-bind" else [kind, place]
            command = [*box, "--bind", str(folder), str(folder), "--chdir", str(folder), "--", *command]
        status, said = sandbox.run(command, self.limits.seconds, env=environment,
                                   before=lambda: sandbox.limit_this_process(self.limits))
        if status != 0:
            raise DoesNotCompile(explain(said))

    def prepare(self):
        """Builds the grader, once: it holds the teacher's claims and reference."""
        grader = self.folder / "grader"
        if grader.exists() and (self.folder / "teacher.o").exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        unit = self.write_unit(self.folder, self.assignment.text)
        try:
            self.run_compiler(self.command("teacher", unit, self.folder / "claims.o"), self.folder, False)
            self.run_compiler(self.command("submission", unit, self.folder / "teacher.o"), self.folder, False)
        except (DoesNotCompile, sandbox.TooMuch) as reason:
            raise assignments.BadAssignment(f"{self.assignment.file.name} does not compile:\n{reason}") from None
        self.link([self.folder / "claims.o"], "link_grader", grader)

    def link(self, inputs, libraries, target):
        partial = target.with_suffix(".partial")
        done = subprocess.run([self.flags.get("linker", self.flags["compiler"]), *map(str, inputs), "-o", str(partial), *self.flags[libraries]],
                              capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            raise DoesNotCompile("does not link: " + explain(done.stderr))
        partial.rename(target)

    def worker(self, text, folder, own_files=None):
        """Compiles, checks and links a submission: folder/box/worker. Raises DoesNotCompile, BadSubmission."""
        unit = self.write_unit(folder, text, own_files)
        made, confined = folder / "submission.o", folder / "confined.o"
        try:
            self.run_compiler(self.command("submission", unit, made), folder, True)
        except sandbox.TooMuch as reason:
            raise DoesNotCompile(f"compiling {reason}") from None
        wrong = objects.check_object(made, self.folder / "teacher.o", self.gpu)
        if wrong:
            raise assignments.BadSubmission(wrong)
        objects.confine(made, confined, self.gpu)
        return self.link_worker(confined, folder / "box")

    def link_worker(self, confined, box):
        (box / "root").mkdir(parents=True, exist_ok=True)
        self.link([confined], "link_worker", box / "worker")
        for path in (box, box / "root", box / "worker"):
            path.chmod(0o755)
        return box


class GpuBuilder(Builder):
    """The same with nvcc, for workers that are timed; `build` is the folder of a CUDA build. Builds no grader: that
    is a program for the CPU."""

    def prepare(self):
        """Builds the baseline, once, from files of the teacher or of the book."""
        name, text, level = self.assignment.baseline
        place = self.folder / hashlib.sha256(json.dumps([name, text, level]).encode()).hexdigest()[:16]
        self.baseline, teacher = place / "box", self.folder / "teacher.o"
        if (self.baseline / "worker").exists() and teacher.exists():
            return
        place.mkdir(parents=True, exist_ok=True)
        made = teacher
        try:
            unit = self.write_unit(self.folder, self.assignment.text)
            self.run_compiler(self.command("submission", unit, teacher), self.folder, False)
            if (name, text, level) != (self.assignment.file.name, self.assignment.text, self.assignment.level):
                made = place / "baseline.o"
                unit = self.write_unit(place, self.assignment.text)
                if text is not None:
                    (place / name).write_text(text)
                unit.write_text(UNIT.format(file=name, level=level))
                self.run_compiler(self.command("submission", unit, made), place, False)
        except (DoesNotCompile, sandbox.TooMuch) as reason:
            raise assignments.BadAssignment(f"speed: {name} does not compile for the GPU:\n{reason}") from None
        objects.confine(made, place / "confined.o", self.gpu)
        self.link_worker(place / "confined.o", self.baseline)


if __name__ == "__main__":
    sys.exit("a part of ./run grade")
