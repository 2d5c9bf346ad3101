# SPDX-License-Identifier: MIT
"""Compiles a teacher's file into a grader, and a submission into a worker."""
import hashlib
import json
import os
import re
import sys
from pathlib import Path

import assignment as assignments
import lint
import objects
import sandbox

UNIT = '#include "{file}"\n#include "tools/grading/entry.hpp"\nCOOKBOOK_GRADED_LEVEL({level})\n'


class DoesNotCompile(Exception):
    """What the compiler said."""


# How g++ says that a limit has ended one of its programs.
TOO_LARGE = re.compile(r"Killed|CPU time limit|memory exhausted|out of memory|File size limit")


def explain(text, own=None, known=None, limit=8):
    """The first errors. `own`: {file: {line: text}}, the lines that may be quoted: the student's own. `known`: the files
    that the compiler may speak of: what it says of another has words of it."""
    rows, errors = [], 0
    for row in text.splitlines():
        said = re.match(r"(?:\S*/)?([^/\s:]+):(\d+):(?:\d+:)? ((?:fatal )?error: .*)", row)
        if not said or known and said[1] not in known:
            continue
        errors += 1
        if errors > limit:
            break
        # No path of the grader's machine.
        rows.append(f"{said[1]}:{said[2]}: " + re.sub(r"/[\w.+-]+(?:/[\w.+-]+)+", "...", said[3])[:400])
        quoted = (own or {}).get(said[1], {}).get(int(said[2]), "").strip()
        if quoted:
            rows.append(f"  {said[2]} | {quoted[:200]}")
    if rows:
        return "\n".join(rows)
    if TOO_LARGE.search(text):
        return "the compiler needs more time, memory or space than it gets: a template, a constant or an array is too large"
    if known:
        return "the compiler ends without an error in your file"
    last = (text.strip().splitlines() or ["the compiler said nothing"])[-1]
    return re.sub(r"/[\w.+-]+(?:/[\w.+-]+)+", "...", last)[:400]


def files_of(rules):
    """The files that a rule of make (-MD) names."""
    return {os.path.normpath(name) for name in rules.replace("\\\n", " ").split(":", 1)[-1].split()}


class Builder:
    def __init__(self, build, assignment):
        self.flags = json.loads((Path(build) / "grading.json").read_text())
        self.gpu = self.flags.get("language") == "cu"
        self.assignment = assignment
        self.build = Path(build).resolve()
        self.limits = sandbox.Limits(seconds=4 * assignment.limits["compile_seconds"],
                                     cpu_seconds=assignment.limits["compile_seconds"], memory_mb=6144, file_mb=256)
        libraries = [Path(name) for key in ("link_worker", "link_grader") for name in self.flags.get(key, [])
                     if name.endswith(".a")]
        state = [self.flags, assignment.file.name, assignment.text, assignment.files, assignment.level, Path(__file__).read_text(),
                 [(str(path), path.stat().st_mtime_ns) for path in libraries]]
        self.digest = hashlib.sha256(json.dumps(state).encode()).hexdigest()[:16]
        self.folder = self.build / "grading" / self.digest

    def command(self, mode, folder, target):
        """Compiles unit.cu in `folder`, and says which files it read (-MD)."""
        return [self.flags["compiler"], "-x", self.flags.get("language", "c++"), *self.flags["common"], *self.flags[mode],
                "-I", folder, "-c", f"{folder}/unit.cu", "-o", f"{folder}/{target}", "-MD", "-MF", f"{folder}/{target}.d",
                *([] if self.gpu else ["-fno-diagnostics-show-caret"]),
                *([f"-fdump-tree-tsan-lineno={folder}/{target}.tsan"] if "-fsanitize=thread" in self.flags[mode] else [])]

    def write_unit(self, folder, text, own_files=None):
        # The teacher's headers take the place of a student's of the same name.
        for name, content in {**(own_files or {}), **self.assignment.files, self.assignment.file.name: text}.items():
            (folder / name).write_text(content)
        unit = folder / "unit.cu"
        unit.write_text(UNIT.format(file=self.assignment.file.name, level=self.assignment.level))
        return unit

    def mounts(self):
        """What a compilation reads beside the system's folders: the toolchain, and headers of the book."""
        places = [assignments.ROOT / room for room in ("common", "chapters", "library", "capstones")]
        places += [assignments.ROOT / "tools/grading" / name for name in ("entry.hpp", "counted.hpp")]
        places += [Path(flag[2:]) for flag in self.flags["common"] if flag.startswith("-I")
                   and Path(flag[2:]).resolve() not in (assignments.ROOT, self.build)]
        places.append(Path(self.flags["compiler"]).resolve().parents[1])
        return sorted({str(place) for place in places if place.exists() and not str(place).startswith(("/usr/", "/lib"))
                       and str(place) != "/usr"})

    def run_compiler(self, command, folder, slot=None):
        """`slot`: it compiles what was submitted, in the box, where `folder` is /box."""
        variables = {"LC_ALL": "C", "CCACHE_DISABLE": "1"}
        if slot is None:
            command, environment = sandbox.limited(command), dict(os.environ, **variables, TMPDIR=str(folder))
        else:
            sandbox.give_to_other_user(folder, slot, self.mounts())
            variables.update(TMPDIR="/tmp")
            command = sandbox.boxed(sandbox.kind_of_sandbox(), folder, command, self.limits, slot, True,
                                    variables=variables.items(), mounts=self.mounts())
            environment = None
        return sandbox.run(command, self.limits.seconds, env=environment)

    def compile(self, folder, mode, target, slot=None, own=None):
        place = str(folder) if slot is None or sandbox.kind_of_sandbox() == "limits" else "/box"
        status, said = self.run_compiler(self.command(mode, place, target), folder, slot)
        if status != 0:
            known = {Path(name).name for name in files_of((self.folder / "teacher.o.d").read_text())} | set(own) if own else None
            raise DoesNotCompile(explain(said, own, known))

    def read_macros(self):
        """The names of all macros where the teacher's file ends: a submission uses none but CUDA's and the teacher's."""
        status, said = self.run_compiler([*self.command("submission", str(self.folder), "macros"), "-E", "-dM"], self.folder)
        if status != 0:
            raise DoesNotCompile(explain(said))
        return re.findall(r"^#define (\w+)", (self.folder / "macros").read_text(), re.MULTILINE)

    def prepare(self):
        """Builds the grader, once: it holds the teacher's claims and reference."""
        grader, macros = self.folder / "grader", self.folder / "macros.json"
        if not (grader.exists() and macros.exists()):
            self.folder.mkdir(parents=True, exist_ok=True)
            self.write_unit(self.folder, self.assignment.text)
            try:
                self.compile(self.folder, "teacher", "claims.o")
                self.compile(self.folder, "submission", "teacher.o")
                names = self.read_macros()
            except (DoesNotCompile, sandbox.TooMuch) as reason:
                raise assignments.BadAssignment(f"{self.assignment.file.name} does not compile:\n{reason}") from None
            self.link([self.folder / "claims.o"], "link_grader", grader)
            macros.write_text(json.dumps(names))
        self.assignment.macros = frozenset(json.loads(macros.read_text()))
        read = files_of((self.folder / "teacher.o.d").read_text())
        self.assignment.headers = [*self.assignment.files, *sorted(
            name.removeprefix(f"{assignments.ROOT}/") for name in read
            if name.startswith(tuple(f"{assignments.ROOT}/{room}/" for room in ("chapters", "library", "capstones"))))]

    def link(self, inputs, libraries, target, box=None):
        """`box`: (folder, slot); what was submitted is linked in the box, where the folder is /box."""
        partial = target.with_suffix(".partial")
        command = [self.flags.get("linker", self.flags["compiler"]), *map(str, inputs), "-o", str(partial), *self.flags[libraries]]
        if box:
            mounts = self.mounts()
            mounts += [part for part in self.flags[libraries] if part.startswith("/") and
                       not part.startswith(("/usr/", "/lib", *(f"{place}/" for place in mounts)))]
            sandbox.give_to_other_user(*box, mounts)
            command = sandbox.boxed(sandbox.kind_of_sandbox(), box[0], [part.replace(str(box[0]), "/box") for part in command],
                                    self.limits, box[1], True, variables=[("TMPDIR", "/tmp")], mounts=mounts)
        else:
            command = sandbox.limited(command)
        status, said = sandbox.run(command, 120)
        if status != 0:
            raise DoesNotCompile("does not link: " + explain(said))
        partial.rename(target)

    def worker(self, text, folder, own_files=None, slot=0, parts=()):
        """Compiles, checks and links a submission: folder/box/worker. `parts`: [(first line, text)], what the student
        wrote. Raises DoesNotCompile, BadSubmission."""
        # Another header of that name would be in its place, also where a header of the system includes it.
        taken = {Path(name).name for name in files_of((self.folder / "teacher.o.d").read_text())} & set(own_files or {})
        if taken:
            raise assignments.BadSubmission(f"a header of the system or the book is called {min(taken)}, too; rename yours")
        source = folder / "source"
        source.mkdir(mode=0o755)
        self.write_unit(source, text, own_files)
        own = {name: dict(enumerate(content.split("\n"), 1)) for name, content in (own_files or {}).items()}
        own[self.assignment.file.name] = {first + i: row for first, part in parts for i, row in enumerate(part.split("\n"))}
        made, confined = source / "submission.o", folder / "confined.o"
        try:
            self.compare_tokens([*((self.assignment.file.name, first, part) for first, part in parts),
                                 *((name, 1, text) for name, text in (own_files or {}).items())], source, slot)
            self.compile(source, "submission", "submission.o", slot, own)
            self.compare_includes(source / "submission.o.d", own_files or {})
            sandbox.give_to_other_user(folder, slot, ())
            with objects.in_box(folder, slot):
                dumped = source / "submission.o.tsan"
                if dumped.exists() and dumped.stat().st_size > objects.MOST_DUMP_BYTES:
                    raise assignments.BadSubmission(objects.TOO_LONG)
                wrong = objects.check_object(made, self.folder / "teacher.o", self.gpu, own)
                if not wrong and "-fsanitize=thread" in self.flags["submission"]:
                    of_teacher, dump = (path.read_text(errors="replace") for path in (self.folder / "teacher.o.tsan", dumped))
                    wrong = objects.uncounted(dump, made, own, of_teacher) or self.of_the_book(dump, of_teacher, own)
                if wrong:
                    raise assignments.BadSubmission(wrong)
                objects.confine(made, confined, self.gpu)
            return self.link_worker(confined, folder / "box", slot)
        except sandbox.TooMuch as reason:
            raise DoesNotCompile(f"compiling {reason}") from None

    def of_the_book(self, dump, of_teacher, own):
        headers = {name: (assignments.ROOT / name).read_text() for name in self.assignment.headers if name not in self.assignment.files}
        part = "\n".join(assignments.region_texts(self.assignment.text)) if self.assignment.regions else ""
        return objects.of_the_book(dump, of_teacher, headers, part, own)

    def compare_tokens(self, texts, source, slot):
        """The compiler must read the same tokens as the lint did. `texts`: [(file, first line, text)]"""
        for file, first, text in filter(lambda one: one[2], texts):
            (source / "part").write_text(lint.without_includes(text))
            command = [self.flags.get("linker", self.flags["compiler"]), "-x", "c++", "-std=c++20", *lint.PREPROCESS[:-1],
                       "/box/part"]
            status, said = self.run_compiler(command, source, slot)
            line = lint.read_differently(lint.without_includes(text), said if status == 0 else "")
            if line:
                raise assignments.BadSubmission(f"{file}:{first + line - 1}: the compiler reads this in another way than it is "
                                                "written: write it plainly")
        (source / "part").unlink(missing_ok=True)

    def compare_includes(self, rules, own_files):
        """What the compiler read must be what it reads for the teacher's file; a whole file may read more of the book's
        device interface and of the system."""
        def read(path, folder):
            return {name.removeprefix(f"{folder}/") for name in files_of(path.read_text())}
        folder = rules.parent if sandbox.kind_of_sandbox() == "limits" else "/box"
        more = read(rules, folder) - read(self.folder / "teacher.o.d", self.folder) - set(own_files)
        if self.assignment.regions is None:
            more = {name for name in more if not name.startswith((str(assignments.ROOT / "common/device"), "/usr/include/",
                                                                  "/usr/lib/gcc", "/usr/local/cuda")) and
                    not any(name.endswith(f"/{one}") for one in self.assignment.includes)}
        if more:
            raise assignments.BadSubmission("the compiler reads a file that the assignment does not include")

    def link_worker(self, confined, box, slot=None):
        box.mkdir(parents=True, exist_ok=True)
        self.link([confined], "link_worker", box / "worker", None if slot is None else (confined.parent, slot))
        for path in (box, box / "worker"):
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
            self.write_unit(self.folder, self.assignment.text)
            self.compile(self.folder, "submission", "teacher.o")
            if (name, text, level) != (self.assignment.file.name, self.assignment.text, self.assignment.level):
                made = place / "baseline.o"
                unit = self.write_unit(place, self.assignment.text)
                if text is not None:
                    (place / name).write_text(text)
                unit.write_text(UNIT.format(file=name, level=level))
                self.compile(place, "submission", "baseline.o")
        except (DoesNotCompile, sandbox.TooMuch) as reason:
            raise assignments.BadAssignment(f"speed: {name} does not compile for the GPU:\n{reason}") from None
        objects.confine(made, place / "confined.o", self.gpu)
        self.link_worker(place / "confined.o", self.baseline)


if __name__ == "__main__":
    sys.exit("a part of ./run grade")
