# SPDX-License-Identifier: MIT
"""An assignment: a folder with assignment.json and the teacher's file, and how a submission gets into it."""
import json
import re
from pathlib import Path

import lint

ROOT = Path(__file__).resolve().parents[2]
BEGIN, END = "// >>> your part", "// <<< your part"
STEPS = {  # in the order of grading, with what a new assignment gives for each
    "compiles": 0, "public_sizes": 20, "hidden_sizes": 20, "inputs": 10, "layouts": 10, "schedules": 10, "races": 10,
    "claims": 20, "speed": 0,
}
LIMITS = {"seconds": 240, "cpu_seconds": 120, "memory_mb": 4096, "processes": 32, "output_mb": 64,
          "kernel_seconds": 10, "compile_seconds": 60}
# A whole file may include these; a prefix ends in a slash.
SPEED = {"size", "samples", "baseline", "roof", "tiers"}
# Of the roofs that a GPU has (tools/grading/roofs.cpp): those of memory, and those of arithmetic.
ROOFS = {"hbm_copy": "roof_bytes", "hbm_read": "roof_bytes", "fp32": "roof_flops", "mma_bf16": "roof_flops",
         "wgmma_bf16": "roof_flops"}
INCLUDES = ["common/device/", "cstdint", "cmath", "limits", "type_traits"]


class BadAssignment(Exception):
    """One line for the teacher."""


class BadSubmission(Exception):
    """One line for the student."""


class Assignment:
    """The fields of assignment.json, checked; `text` is the teacher's file and `regions` its lines
    (first, last) that are the student's, from 0, without the marks. None: the whole file is."""

    def __init__(self, folder):
        self.folder = Path(folder).resolve()
        path = self.folder / "assignment.json"
        if not path.is_file():
            raise BadAssignment(f"{folder} has no assignment.json (./run assignment new makes one)")
        try:
            self.data = json.loads(path.read_text())
        except ValueError as error:
            raise BadAssignment(f"{path}: {error}") from None
        data = self.data

        def need(holds, text):
            if not holds:
                raise BadAssignment(f"{path}: {text}")
        need(isinstance(data, dict), "is no JSON object")
        for field in ("points", "claim_points", "limits"):
            need(isinstance(data.get(field, {}), dict) and all(isinstance(value, (int, float)) and value >= 0
                                                               for value in data.get(field, {}).values()),
                 f"{field} is an object with numbers")
        for field in ("title", "file", "level", "pinned"):
            need(isinstance(data.get(field, ""), str), f"{field} is a text")
        unknown = set(data) - {"title", "exercise", "file", "level", "public_sizes", "hidden_sizes", "trace_sizes",
                               "hidden_trace_sizes", "seeds", "points", "claim_points", "limits", "whole_file",
                               "includes", "files", "speed", "variant", "pinned", "capability"}
        need(not unknown, f"unknown field '{min(unknown, default='')}'")
        for field in ("title", "file", "level", "public_sizes", "hidden_sizes", "trace_sizes", "seeds"):
            need(data.get(field), f"the field '{field}' is missing or empty")
        for field in ("public_sizes", "hidden_sizes", "trace_sizes", "hidden_trace_sizes"):
            for size in data.get(field, []):
                need(isinstance(size, list) and all(isinstance(n, int) and n >= 0 for n in size),
                     f"{field} has {size}; a size is a list of whole numbers")
        need(isinstance(data.get("capability", 0), int), "capability is a number, such as 100")
        wrong = set(data.get("points", {})) - (set(STEPS) - {"speed"})
        need(wrong != {"speed"}, "the points for speed are those of its tiers")
        need(not wrong, f"no step '{min(wrong, default='')}'; points are given for {', '.join(STEPS)}")
        wrong = set(data.get("limits", {})) - set(LIMITS)
        need(not wrong, f"no limit '{min(wrong, default='')}'; limits are {', '.join(LIMITS)}")
        self.drawing = False  # hidden sizes are candidates (make.py)
        self.title, self.level, self.pinned = data["title"], data["level"], data.get("pinned", "")
        need(re.fullmatch(r"[A-Za-z_:][\w:<>, ]*", self.level),
             "level is the name of a type, such as cookbook::transpose::ConflictFree")
        self.points = {**STEPS, **data.get("points", {})}
        self.limits = {**LIMITS, **data.get("limits", {})}
        self.includes = INCLUDES + data.get("includes", []) + data.get("files", [])
        self.file = self.folder / data["file"]
        need(self.file.is_file(), f"there is no file {data['file']}")
        self.text = self.file.read_text()
        # The teacher's own headers, such as problem.hpp: beside the file, in every compilation.
        self.files = {}
        for name in data.get("files", []):
            need("/" not in name and (self.folder / name).is_file(), f"there is no file {name} beside it")
            self.files[name] = (self.folder / name).read_text()
        self.read_speed(need)
        # What the lint compares names with; the builder, which has a compiler, fills in the macros.
        self.headers = []  # filled in by the builder, too
        self.macros, self.known = frozenset(), set().union(*map(lint.names_in, [self.text, *self.files.values()]))
        self.regions = None if data.get("whole_file") else find_regions(self.text)
        self.uses_workspaces = "DeviceMemory" in self.text
        if self.regions == []:
            raise BadAssignment(f"{self.file}: no line '{BEGIN}'; mark the student's part, or say \"whole_file\": true")

    def read_speed(self, need_of_file):
        """`speed`: the field with its defaults, or None; `baseline`: (the file's name, its text or None for one of
        the book, the level)."""
        self.speed = self.baseline = None
        if "speed" not in self.data:
            return
        speed = {"samples": 11, "roof": "hbm_copy", "baseline": {}, "tiers": [], **self.data["speed"]}

        def need(holds, text):
            need_of_file(holds, f"speed: {text}")
        need(set(speed) <= SPEED, f"unknown field '{next(iter(sorted(set(speed) - SPEED)), '')}'")
        size = speed.get("size")
        need(isinstance(size, list) and size and all(isinstance(n, int) and n > 0 for n in size),
             "`size` is a list of whole numbers")
        need(isinstance(speed["samples"], int) and 5 <= speed["samples"] <= 200, "`samples` is a number from 5 to 200")
        need(speed["roof"] in ROOFS, f"`roof` is one of {', '.join(ROOFS)}")
        need(isinstance(speed["tiers"], list), "`tiers` is a list")
        for tier in speed["tiers"]:
            need(isinstance(tier, dict) and set(tier) in ({"at_least", "points"}, {"of_roof", "points"}) and
                 all(isinstance(value, (int, float)) and value > 0 for value in tier.values()),
                 f"{tier} is no tier, such as {{\"at_least\": 1.5, \"points\": 5}} or {{\"of_roof\": 0.8, \"points\": 5}}")
        named = speed["baseline"]
        need(isinstance(named, dict) and set(named) in (set(), {"file", "level"}), "`baseline` has a `file` and a `level`")
        if named:
            own = self.folder / named["file"]
            of_book = (ROOT / named["file"]).resolve()
            need(own.is_file() or (of_book.is_file() and of_book.is_relative_to(ROOT)),
                 f"there is no file {named['file']}")
            self.baseline = (named["file"], own.read_text() if own.is_file() else None, named["level"])
        else:
            self.baseline = (self.file.name, self.text, self.level)
        self.speed = speed
        self.points["speed"] = sum(tier["points"] for tier in speed["tiers"])

    def plan(self, spliced, parts):
        """What the grader reads (grader.cpp). `spliced`: the text that runs, with the student's `parts` in it."""
        sizes = {key: self.data.get(key, []) for key in ("public_sizes", "hidden_sizes", "trace_sizes", "hidden_trace_sizes")}
        # What is traced also runs untraced, on other inputs: nothing tells the one from the other.
        sizes["hidden_sizes"] = [*sizes["hidden_sizes"], *(size for size in sizes["hidden_trace_sizes"]
                                                           if size not in sizes["hidden_sizes"])]
        return {"file": self.file.name, "tags": self.tagged_lines(spliced, parts), "drop_bad_sizes": self.drawing,
                "capability": self.data.get("capability", 0),
                **sizes, "seeds": self.data["seeds"], "seconds": self.limits["kernel_seconds"]}

    def tagged_lines(self, spliced, parts):
        """{tag: {file: lines}}. Marks are the teacher's: where one is in a student's part, every line of that part has it,
        also one that the teacher has marked otherwise: in a lambda it could load anything."""
        found = {}

        def mark(tag, file, line):
            found.setdefault(tag, {}).setdefault(file, []).append(line)
        for file in self.headers:  # that the teacher's file includes, of the book or beside it
            path = self.folder / file if file in self.files else ROOT / file
            for number, row in enumerate(path.read_text(errors="replace").split("\n"), 1):
                for tag in lint.tags_of(row):
                    mark(tag, file, number)
        of_parts = {first + i for first, part in parts for i in range(part.count("\n") + 1)}
        for number, row in enumerate(spliced.split("\n"), 1):
            for tag in lint.tags_of(row) if number not in of_parts or self.regions is None else []:
                mark(tag, self.file.name, number)
        for (first, part), theirs in zip(parts, region_texts(self.text) if self.regions else []):
            for tag in lint.tags_of(theirs):
                found.setdefault(tag, {})["/usr/"] = []
                for i in range(part.count("\n") + 1):
                    mark(tag, self.file.name, first + i)
        return found


def is_mark(row, mark):
    return row.strip() == mark


def find_regions(text):
    """[(first, last)]: lines between the marks, from 0, last exclusive."""
    rows, regions, begin = text.split("\n"), [], None
    for number, row in enumerate(rows):
        if is_mark(row, BEGIN):
            if begin is not None:
                raise BadSubmission(f"line {number + 1}: '{BEGIN}' again, before '{END}'")
            begin = number + 1
        elif is_mark(row, END):
            if begin is None:
                raise BadSubmission(f"line {number + 1}: '{END}' without '{BEGIN}' before it")
            regions.append((begin, number))
            begin = None
    if begin is not None:
        raise BadSubmission(f"line {begin}: '{BEGIN}' without '{END}' after it")
    return regions


def region_texts(text):
    rows = text.split("\n")
    return ["\n".join(rows[begin:end]) for begin, end in find_regions(text)]


def moved_lines(assignment, submitted):
    """{line of the spliced text: line of what was submitted}, of the student's parts, where these differ."""
    submitted = submitted.replace("\r\n", "\n")
    moved = {}
    if assignment.regions is not None and len(theirs := find_regions(submitted)) == len(assignment.regions):
        for (first, region, _), (begin, _) in zip(splice(assignment, submitted)[1], theirs):
            moved.update({first + i: begin + 1 + i for i in range(region.count("\n") + 1) if first != begin + 1})
    return moved


def splice(assignment, submitted):
    """The teacher's file with the student's regions in it: (text, [(first line, region, teacher's region)]).
    Nothing else of what was submitted gets in."""
    submitted = submitted.replace("\r\n", "\n")
    if assignment.regions is None:
        return submitted, [(1, submitted, assignment.text)]
    theirs = region_texts(submitted)
    if len(theirs) != len(assignment.regions):
        raise BadSubmission(f"has {len(theirs)} parts between '{BEGIN}' and '{END}'; the assignment has "
                            f"{len(assignment.regions)}")
    rows, out, parts, at = assignment.text.split("\n"), [], [], 0
    for (begin, end), region in zip(assignment.regions, theirs):
        out += rows[at:begin]
        parts.append((len(out) + 1, region, "\n".join(rows[begin:end])))
        out += region.split("\n") if region else []
        at = end
    out += rows[at:]
    return "\n".join(out), parts
