# SPDX-License-Identifier: MIT
"""Exercises to read: predict what a level counts at a size that is drawn, then have the tracer count."""
import json
import re
import subprocess
import tempfile
from pathlib import Path

from catalogue import ROOT, BadExercise, draw, label, options_of

MOST_BYTES = 1 << 14  # of a file of answers
UNANSWERED = "?"
LINE = re.compile(r"([a-z][a-z0-9_]*)\s*=\s*(\?|-?[0-9][0-9,]*(?:\.[0-9]+)?)")
COUNTS = ("requests", "lanes", "sectors", "ideal_sectors", "wavefronts", "ideal_wavefronts", "bytes")


class Variant:
    """A variant of an exercise: its drawn values, its questions and what runs."""

    def __init__(self, exercise, number):
        self.exercise, self.number, data = exercise, number, exercise.data
        self.values = {name: draw(exercise.key, number, name, options_of(spec)) for name, spec in data["draw"].items()}
        self.size = [self.value(one) for one in data["size"]]
        self.questions = [{**question, **{part: self.filled(question[part]) for part in ("ask", "think")},
                           "slips": [{**slip, "say": self.filled(slip["say"])} for slip in question.get("slips", ())]}
                          for question in data["questions"]]

    def value(self, text):
        """A name of a drawn value, or a whole number."""
        return self.values[text] if text in self.values else int(text)

    def levels(self):
        """All levels that are counted."""
        named = [part.get("level", self.exercise.data["level"]) for question in self.questions
                 for part in (question["count"], *question["slips"])]
        return list(dict.fromkeys(self.level(name) for name in named))

    def level(self, name):
        return self.values.get(name, name)

    def filled(self, text):
        return text.format(**{name: f"{value:,}" if isinstance(value, int) else value for name, value in self.values.items()},
                           size=" x ".join(f"{one:,}" for one in self.size))

    def command(self, build):
        """How the traced program counts it."""
        command = [str(Path(build) / f"chapter-{self.exercise.chapter}"), "--ladder", self.exercise.data["ladder"]]
        for level in self.levels():
            command += ["--level", level]
        command += ["--size", "x".join(map(str, self.size))]
        for option in ("pitch", "base"):
            for tensor, name in self.exercise.data.get(option, {}).items():
                command += [f"--{option}", f"{tensor}={self.value(name)}"]
        return command + ["--explain"]

    def counted(self, build):
        """{level: what its lines counted}"""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "counts.json"
            try:
                done = subprocess.run([*self.command(build), "--json", str(out)], capture_output=True, text=True, check=False)
            except OSError as error:
                raise BadExercise(f"{error.filename}: {error.strerror}") from None
            if done.returncode or not out.is_file():
                said = (done.stderr or done.stdout).strip().splitlines() or ["nothing"]
                raise BadExercise(f"counting ended with status {done.returncode}: {said[-1]}")
            levels = json.loads(out.read_text())["runs"][0]["levels"]
        return {level["name"]: level["lines"] for level in levels}

    def answers(self, build):
        """{name of a question: (the answer, [(a likely wrong answer, what to say of it)])}"""
        counted = self.counted(build)

        def value_of(count):
            lines = [line for line in counted[self.level(count.get("level", self.exercise.data["level"]))]
                     if is_about(self, count, line)]
            if not lines:
                raise BadExercise(f"{self.exercise.path.name}: no line counts {json.dumps(count)}")
            below = sum(line[count["per"]] for line in lines) if "per" in count else 1
            return sum(line[count["what"]] for line in lines) * count.get("times", 1) / below
        return {question["name"]: (value_of(question["count"]), [(value_of(slip), slip["say"])
                                                                 for slip in question["slips"]])
                for question in self.questions}

    def quoted(self):
        """[(file:line, its lines)] of the sources that the question shows."""
        return [quote(self.exercise.path.parent.parent, *one) for one in self.exercise.data["quotes"]]


def is_about(variant, count, line):
    """Whether a line of the trace belongs to what is counted."""
    if count.get("line"):
        source = (ROOT / line["file"]).read_text().split("\n")[line["line"] - 1]
        if count["line"] not in source:
            return False
    return all(line[key] == count[key] for key in ("memory", "operation", "buffer") if key in count) and \
        count.get("kernel", "") in line["kernel"]


def quote(folder, name, begin, end=None):
    """(file:line, lines): what stands between `// [quote BEGIN]` and the end of the quote; with `end` from the first line
    that holds `begin` to the next that holds `end`."""
    path = folder / name if "/" not in name else ROOT / name
    rows = path.read_text().split("\n")
    if end is None:
        first = next(i for i, row in enumerate(rows) if f"[quote {begin}]" in row) + 1
        last = next(i for i in range(first, len(rows)) if "[end quote]" in rows[i])
    else:
        first = next(i for i, row in enumerate(rows) if begin in row)
        last = next(i for i in range(first, len(rows)) if end in rows[i]) + 1
    shown = [row for row in rows[first:last] if "[quote " not in row and "[end quote]" not in row]
    indent = min(len(row) - len(row.lstrip()) for row in shown if row.strip())
    # Marks of claims are no help here, and some comments are the answer.
    return f"{name}:{first + 1}", [re.sub(r"\s*//.*$", "", row[indent:]) if row.strip() else "" for row in shown
                                   if not row.strip().startswith("//")]


def blank(exercise, number=0):
    """The file of answers to a variant, without an answer; as it is shipped where the number is 0."""
    names = [question["name"] for question in exercise.data["questions"]]
    return "".join([f"# Exercise {exercise.key}. `./run exercise {exercise.key}` asks. Write a number for each '?'.\n",
                    *([f"# {label(exercise, number)}\n"] if number else []),
                    *(f"{name} = {UNANSWERED}\n" for name in names)])


def read_answers(text, names, what):
    """{name: number or None} of a student's file. `what` is what errors call it."""
    found = {}
    for number, row in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        row = row.partition("#")[0].strip()
        if not row:
            continue
        match = LINE.fullmatch(row)
        if not match:
            shown = "".join(c if c.isprintable() else "?" for c in row[:40])
            raise BadExercise(f"{what}:{number}: expected NAME = NUMBER, such as {names[0]} = 128; got '{shown}'")
        name, value = match.groups()
        if name not in names:
            raise BadExercise(f"{what}:{number}: no question is called {name[:40]}; they are {', '.join(names)}")
        if name in found:
            raise BadExercise(f"{what}:{number}: {name} is answered twice")
        digits = value.replace(",", "")
        if len(digits) > 18:
            raise BadExercise(f"{what}:{number}: {name} has too many digits")
        found[name] = None if value == UNANSWERED else float(digits)
    return found


def read_file(path, what):
    """The text of a file of answers."""
    try:
        with open(path, "rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadExercise(f"{what}: {error.strerror}") from None
    if len(raw) > MOST_BYTES:
        raise BadExercise(f"{what}: more than {MOST_BYTES >> 10} KiB is no file of answers")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadExercise(f"{what}: not UTF-8 text") from None


def is_right(given, answer):
    """Whole numbers exactly; others to two decimals."""
    return abs(given - answer) <= (1e-9 if answer == int(answer) else 0.0051)


def judge(question, answers, given):
    """(whether it is right, what to say) of one answer. What is said never has the number."""
    if given is None:
        return False, "no answer yet"
    answer, slips = answers[question["name"]]
    if is_right(given, answer):
        return True, "right"
    for value, say in slips:
        if is_right(given, value):
            return False, say
    return False, question["think"]
