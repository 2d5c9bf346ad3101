# SPDX-License-Identifier: MIT
"""The exercises of the book: what the data file beside each one says, and what is drawn for a variant."""
import hashlib
import json
import math
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("read", "repair", "complete", "design")
MOST_VARIANT = 10**9


class BadExercise(Exception):
    """One line for whoever asked."""


class Exercise:
    """An exercise, by its data file chapters/NN_*/exercises/exercise_NUMBER_NAME.json. `file` is what a student edits."""

    def __init__(self, path):
        self.path = path
        self.chapter = int(path.parent.parent.name[:2])
        self.number, self.name = re.fullmatch(r"exercise_(\d+)_(\w+)", path.stem).groups()
        self.key = f"{self.chapter}.{self.number}"
        self.data = json.loads(path.read_text())
        kernel = path.with_suffix(".cuh")
        self.file = kernel if kernel.is_file() else path.with_suffix(".txt")

    @property
    def kind(self):
        return self.data["kind"]

    def shown(self):
        """The file that is edited, from the book's folder."""
        return self.file.relative_to(ROOT).as_posix()


def all_exercises(root=ROOT):
    files = root.glob("chapters/*/exercises/exercise_*.json")
    return sorted((Exercise(file) for file in files), key=lambda one: (one.chapter, int(one.number)))


def find(key):
    """The exercise called `key`, such as 1.11."""
    chapter, _, number = key.partition(".")
    files = list(ROOT.glob(f"chapters/{int(chapter):02}_*/exercises/exercise_{number}_*.json"))
    if len(files) != 1:
        raise BadExercise(f"no exercise {key}; docs/exercises.md lists them")
    return Exercise(files[0])


def draw(key, variant, name, options):
    """One of `options` for a variant of an exercise. The same on every machine: the first eight bytes of a SHA-256, modulo
    the number of options."""
    digest = hashlib.sha256(f"{key}/{variant}/{name}".encode()).digest()
    return options[int.from_bytes(digest[:8], "big") % len(options)]


def seed_of(exercise, number):
    """What the values of a variant are drawn from, with their names."""
    return f"seed {exercise.key}/{number}"


def label(exercise, number):
    """The line of a file, or of a question, that says which variant it is. Nothing that grades reads it."""
    return f"Variant {number} of exercise {exercise.key} ({seed_of(exercise, number)}). The grader does not read this line."


def said_in(text):
    """The variant that a file says it is, or None."""
    found = re.search(r"^(?://|#) Variant (\d{1,10}) of exercise ", text, re.MULTILINE)
    return int(found[1]) if found else None


def variant_of(text):
    """The number of a variant, as typed."""
    if not re.fullmatch(r"[0-9]{1,10}", text) or int(text) > MOST_VARIANT:
        raise BadExercise(f"--variant takes a whole number from 0 to {MOST_VARIANT}; got '{text}'")
    return int(text)


def options_of(spec):
    """What a value is drawn from: a list, or the numbers from `from` to `to`, in steps."""
    return spec if isinstance(spec, list) else range(spec["from"], spec["to"] + 1, spec.get("step", 1))


def count_of_variants(exercise):
    """How many different variants there are, the shipped one included; 1 where there is no other."""
    if "draw" in exercise.data:  # of a file of numbers, the shipped one is none of those that are drawn
        drawn = math.prod(len(options_of(spec)) for spec in exercise.data["draw"].values())
        return drawn + ("limits" in exercise.data)
    alternatives = [len(exercise.data.get("variants", {}).get(part, ())) for part in ("numbers", "places")]
    return 1 + math.prod(max(1, count) for count in alternatives) if any(alternatives) else 1


def table():
    """The list of docs/exercises.md."""
    rows = ["| exercise | kind | about | minutes | variants |", "|---|---|---|---:|---:|"]
    for one in all_exercises():
        count = count_of_variants(one)
        rows.append(f"| [{one.key}](../{one.shown()}) | {one.kind} | {one.data['title']} | {one.data['minutes']} | "
                    f"{f'{count:,}' if count > 1 else ''} |")
    count = {kind: sum(one.kind == kind for one in all_exercises()) for kind in KINDS}
    said = ", ".join(f"{count[kind]} to {kind}" for kind in KINDS)
    return "\n".join([f"{sum(count.values())} exercises: {said}.", "", *rows])


SHORT_LAB = 70  # minutes for exercises in a lab of 90


def weeks():
    """[(a week of docs/course.json, minutes of its lab, hours at home)]"""
    found = []
    for week in json.loads((ROOT / "docs/course.json").read_text())["weeks"]:
        lab, home = (sum(find(key).data["minutes"] for key in keys) for keys in (week["predict"] + week["lab"], week["home"]))
        found.append((week, lab, week["pages"] + home / 60 + week["by_hand"] + week["text"] + week["capstone"]))
    return found


def hours():
    """The table of docs/course.md."""
    rows = ["| week | on paper | in the lab | minutes of both | at home | reading | by hand | text | capstone | hours at home |",
            "|---:|---|---|---:|---|---:|---:|---:|---:|---:|"]
    for number, (week, lab, home) in enumerate(weeks(), 1):
        named = [", ".join(week[part]) for part in ("predict", "lab", "home")]
        shown = [f"{week[part]:g}" if week[part] else "" for part in ("pages", "by_hand", "text", "capstone")]
        rows.append(f"| {' | '.join([str(number), *named[:2], str(lab or ''), named[2], *shown, f'{home:.1f}'])} |")
    at_home = sum(home for _, _, home in weeks())
    present = 4 * len(weeks())  # hours of lecture and lab
    together = at_home + present
    # With 90 minutes the prediction is made at home, and so is what two exercises need beyond the time that they have.
    paper = [sum(find(key).data["minutes"] for key in week["predict"]) for week, _, _ in weeks()]
    late = {number: lab - took - SHORT_LAB for number, ((_, lab, _), took) in enumerate(zip(weeks(), paper), 1)
            if lab - took > SHORT_LAB}
    short = at_home + (sum(paper) + sum(late.values())) / 60
    return "\n".join([*rows, "", f"Together {at_home:.0f} hours at home and {present} in lectures and labs: {together:.0f} hours, "
                      f"or {together / 30:.1f} to", f"{together / 25:.1f} credits of ECTS, at 25 to 30 hours each. With "
                      f"90 minutes: {short:.0f} at home and {3 * len(weeks())} in lectures",
                      f"and labs, or {(short + 3 * len(weeks())) / 30:.1f} to {(short + 3 * len(weeks())) / 25:.1f} credits; of the exercises, "
                      f"{listed([f'{minutes} minutes of week {number}' for number, minutes in late.items()])} do not fit into the lab."])


def listed(parts):
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


PAGES = {"docs/exercises.md": ("exercises", table), "docs/course.md": ("hours", hours)}


def with_table(name, page):
    """The page called `name` with its table between its marks."""
    mark, made = PAGES[name]
    before, _, rest = page.partition(f"<!-- {mark} -->")
    end = f"<!-- /{mark} -->"
    return f"{before}<!-- {mark} -->\n\n{made()}\n\n{end}{rest.partition(end)[2]}"
