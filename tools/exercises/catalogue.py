# SPDX-License-Identifier: MIT
"""The exercises of the book: what the data file beside each one says, and what is drawn for a variant."""
import hashlib
import json
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


def variant_of(text):
    """The number of a variant, as typed."""
    if not re.fullmatch(r"[0-9]{1,10}", text) or int(text) > MOST_VARIANT:
        raise BadExercise(f"--variant takes a whole number from 0 to {MOST_VARIANT}; got '{text}'")
    return int(text)


BEGIN, END = "<!-- exercises -->", "<!-- /exercises -->"


def table():
    """The list of docs/exercises.md."""
    rows = ["| exercise | kind | about | minutes | variants |", "|---|---|---|---:|---|"]
    for one in all_exercises():
        about = one.data["title"]
        drawn = "yes" if "draw" in one.data or "variants" in one.data else ""
        rows.append(f"| [{one.key}](../{one.shown()}) | {one.kind} | {about} | {one.data['minutes']} | {drawn} |")
    count = {kind: sum(one.kind == kind for one in all_exercises()) for kind in KINDS}
    said = ", ".join(f"{count[kind]} to {kind}" for kind in KINDS)
    return "\n".join([f"{sum(count.values())} exercises: {said}.", "", *rows])


def with_table(page):
    """The page with the list between its marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{rest.partition(END)[2]}"
