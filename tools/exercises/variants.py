# SPDX-License-Identifier: MIT
"""Variants of exercises that are kernels: other numbers, another place of the bug.

The shipped file is variant 0. `variants` in an exercise's data file says what others differ in:

  "shipped": the beginning of the shipped file's SHA-256, by which an unedited file is known
  "pin":     code that says which numbers the shipped file has, such as "kM = 16"
  "numbers": alternatives, each {"pin": ..., "edits": [[old, new] ...], "hole": [[old, new] ...], "solution": [[old, new] ...],
             "hints": [...]}: `edits` are made in the file and in its solution, `hole` in the file only, where the solution has
             other lines, and `solution` in the solution only; all but `pin` and `edits` are optional
  "places":  other bugs, each {"edits": [[old, new] ...], "hints": [...]}: edits of the shipped file's solution that plant
             one, and its hints

Any other variant has numbers and a bug that are not those of the shipped file, if there are any: the public solution is
none of it. Its second line says which variant it is, for its readers: no grader reads that line.
"""
import functools
import hashlib
import json
import re

import solution
from catalogue import ROOT, BadExercise, draw, label, said_in, seed_of

THOROUGH = 50  # variants: whether the lines of the public solution solve one is tested, too
LABEL = re.compile(r"^// Variant \d+ of exercise [^\n]*\n", re.MULTILINE)


class Variants:
    """All variants of an exercise, from the text of the shipped file."""

    def __init__(self, exercise):
        if "variants" not in exercise.data:
            raise BadExercise(f"{exercise.key} has no variants; docs/exercises.md lists the exercises that have some")
        self.exercise, self.data = exercise, exercise.data["variants"]
        self.numbers = [{}, *self.data.get("numbers", ())]
        self.places = [None, *self.data.get("places", ())]
        self.on_disk = exercise.file.read_text()
        self.shipped = self.found_in(self.on_disk)

    @functools.cached_property
    def edits(self):
        """Those of the public solution. A teacher may have taken it away."""
        path = solution.edits_of(self.exercise.file, ROOT)
        try:
            return path.read_text()
        except FileNotFoundError:
            raise BadExercise(f"{path.relative_to(ROOT)} is missing: variants with another bug are made from it") from None

    def choice(self, number):
        """(which numbers, which place) of a variant."""
        if number == 0:
            return 0, 0
        key = self.exercise.key
        return (draw(key, number, "numbers", range(1, len(self.numbers))) if len(self.numbers) > 1 else 0,
                draw(key, number, "place", range(min(1, len(self.places) - 1), len(self.places))))

    def different(self):
        """The smallest number of each variant but the shipped one, rising: what groups of a class get."""
        many = max(1, len(self.numbers) - 1) * max(1, len(self.places) - 1)
        found = {}
        for number in range(1, 1000):
            if len(found) < many:
                found.setdefault(self.choice(number), number)
        return list(found.values())

    def combinations(self):
        return [(numbers, place) for numbers in range(len(self.numbers)) for place in range(len(self.places))]

    def solved(self, numbers=0):
        self.need_shipped()
        text = solution.solve(self.shipped, self.edits)
        change = self.numbers[numbers]
        return replaced(replaced(text, change.get("edits", ())), change.get("solution", ()))

    def text(self, numbers, place):
        """What is handed out."""
        self.need_shipped()
        change = self.numbers[numbers]
        if not place:
            return replaced(replaced(self.shipped, change.get("edits", ())), change.get("hole", ()))
        planted = replaced(self.solved(), self.places[place]["edits"])
        return replaced(replaced(planted, change.get("edits", ())), change.get("solution", ()), strict=False)

    def public(self, numbers):
        """The file with the lines of the public solution in it, where they fit and the shipped bug is in it; else None."""
        if len(self.places) > 1:
            return None
        try:
            return solution.solve(self.text(numbers, 0), self.edits)
        except solution.BadEdits:
            return None

    def handed_out(self, number):
        """A variant's file, with a line that says which one it is."""
        first, _, rest = self.text(*self.choice(number)).partition("\n")
        return f"{first}\n{rest}" if number == 0 else f"{first}\n// {label(self.exercise, number)}\n{rest}"

    def found_in(self, text):
        """The shipped file, if `text` is an unedited variant; else None."""
        text = LABEL.sub("", text, count=1)
        back = lambda pairs: [(new, old) for old, new in reversed(pairs)]
        for numbers, place in self.combinations():
            change = self.numbers[numbers]
            try:
                found = text
                found = replaced(found, back(change.get("solution" if place else "hole", ())), strict=not place)
                found = replaced(found, back(change.get("edits", ())))
                if place:
                    found = solution.solve(replaced(found, back(self.places[place]["edits"])), self.edits, reverse=True)
            except (BadExercise, solution.BadEdits):
                continue
            if digest_of(found) == self.data["shipped"]:
                return found
        return None

    def need_shipped(self):
        if self.shipped is None:
            raise BadExercise(f"{self.exercise.shown()} has been edited, and variants are made from it as it was shipped: "
                              "move your edits away and get the file back (git checkout)")

    def pin(self, number):
        """What the file of a variant holds, whatever a student does to it: its numbers. Empty if all have the same."""
        numbers = self.choice(number)[0]
        return self.numbers[numbers]["pin"] if numbers else self.data.get("pin", "")

    def hints(self, number):
        """Those of a variant's bug, or of its numbers."""
        numbers, place = self.choice(number)
        return (self.places[place] or self.numbers[numbers]).get("hints", self.exercise.data["hints"])

    def take(self, number):
        """Makes the file on disk this variant. What a student has written is never overwritten."""
        if self.shipped is not None:
            text = self.handed_out(number)
            if text != self.on_disk:
                self.exercise.file.write_text(text)
                return f"{self.exercise.shown()} is now variant {number} ({seed_of(self.exercise, number)})"
            return f"{self.exercise.shown()} is variant {number}, as it is handed out"
        if self.pin(number) not in self.on_disk:
            raise BadExercise(f"{self.exercise.shown()} has edits of yours, and its numbers are not those of variant {number}: "
                              "move the file away and get it back (git checkout), or name another variant")
        said = said_in(self.on_disk)
        other = f"; its second line says that it is variant {said}" if said not in (None, number) else ""
        return f"{self.exercise.shown()} has edits of yours, and the numbers of variant {number}{other}"


def digest_of(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def replaced(text, pairs, strict=True):
    for old, new in pairs:
        if old not in text and strict:
            raise BadExercise(f"'{old.strip()}' is not in the text: the variants do not fit")
        text = text.replace(old, new)
    return text


def apart(text, inner):
    """The text with names of its own, so that several variants can be compiled together: in an inner namespace. A file that
    specialises a template of the book has to stay in the book's namespace; there its namespaces and its level are renamed."""
    rows = text.split("\n")
    at = next(i for i, row in enumerate(rows) if row.startswith("namespace cookbook"))
    if "template <>" in text:
        level = solution.level_in(text)[0].rpartition("::")[2]
        names = [level, *re.findall(r"^namespace (\w+) \{", text, re.MULTILINE)]
        return re.sub(rf"\b({'|'.join(names)})\b", rf"\1_{inner}", text)
    rows[at] = rows[at].replace(" {", f"::{inner} {{")
    return "\n".join(rows)


def chosen(exercise, seeds):
    """(what the variants 1 to `seeds` of an exercise are, as [(numbers, place)], each once); without the shipped file."""
    found = Variants(exercise)
    return found, [one for one in dict.fromkeys(map(found.choice, range(1, seeds + 1))) if one != (0, 0)]


def write_for_tests(exercises, seeds, folder):
    """Writes the wrong solutions of a chapter's exercises, then variants of these and their solutions, each with names of its
    own; variants.hpp, which adds them to the chapter's exercises; and variants.json, which says in their order what they are."""
    made = []
    for exercise in exercises:
        edits = solution.edits_of(exercise.file, ROOT, ".wrong.diff")
        if edits.is_file():
            text = solution.solve(exercise.file.read_text(), edits.read_text(), edits.name)
            made.append((exercise, "wrong", {"wrong": True, "solved": False}, text))
    for exercise in exercises:
        if "variants" not in exercise.data:
            continue
        found, choices = chosen(exercise, seeds)
        for numbers, place in choices:
            made.append((exercise, f"variant_{numbers}_{place}", {"wrong": False, "solved": False}, found.text(numbers, place)))
        for numbers in dict.fromkeys(numbers for numbers, _ in choices if numbers):
            made.append((exercise, f"variant_{numbers}_solved", {"wrong": False, "solved": True}, found.solved(numbers)))
            public = found.public(numbers) if seeds >= THOROUGH else None
            if public:
                made.append((exercise, f"variant_{numbers}_public", {"wrong": False, "solved": False}, public))
    includes, adds, rows = [], [], []
    for exercise, inner, what, text in made:
        text = apart(text, inner)
        name = f"{exercise.file.stem}.{inner}.cuh"
        (folder / name).write_text(text)
        includes.append(f'#include "{name}"')
        adds.append(f"  chapter.exercises.push_back(make_any_level<{solution.level_in(text)[0]}>());")
        rows.append({"exercise": exercise.key, "name": inner, **what})
    (folder / "variants.hpp").write_text("\n".join([
        "// Made by tools/exercises: change the exercises or their data files.", *includes, "namespace cookbook {",
        "static void add_variants([[maybe_unused]] Chapter& chapter) {", *adds, "}", "}  // namespace cookbook", ""]))
    (folder / "variants.json").write_text(json.dumps(rows, indent=1) + "\n")
