# SPDX-License-Identifier: MIT
"""Exercises that are a file of numbers, such as 5.7. Limits of the numbers are drawn; a program of the book adds them up.

In the data file: `program`; `texts`, the file as it is shipped and as it is handed out for a variant; and `limits`, of the
shipped file: magnitudes from 2^least to 2^most, and at most `count` that are not 0. Of a variant, `draw` has what `least` and
`count` are drawn from, and `most` is `above` more than `least`.
"""
import math
import re
import subprocess
from pathlib import Path

from catalogue import BadExercise, draw, label, options_of, said_in
from reading import read_file

TERM = re.compile(r"(-?)(?:2\^(-?\d{1,3})|(\d*\.?\d+(?:e[+-]?\d{1,2})?))(?:\*(\d{1,2}))?", re.IGNORECASE)


class Variant:
    """The limits and the file of a variant."""

    def __init__(self, exercise, number):
        data = exercise.data
        self.exercise, self.number, limits = exercise, number, dict(data["limits"])
        if number:
            limits.update({name: draw(exercise.key, number, name, options_of(spec)) for name, spec in data["draw"].items()})
            limits["most"] = limits["least"] + data["above"]
        self.limits = limits

    def blank(self):
        """The file as it is handed out."""
        if not self.number:
            return self.exercise.data["texts"][0]
        first, _, rest = self.exercise.data["texts"][1].format(**self.limits).partition("\n")
        return f"{first}\n# {label(self.exercise, self.number)}\n{rest}"

    def outside(self, numbers):
        """Which limit does not hold, or None."""
        least, most, count = (self.limits[name] for name in ("least", "most", "count"))
        terms = [abs(value) for value in numbers if value]
        if any(not math.ldexp(1, least) <= value <= math.ldexp(1, most) for value in terms):
            return f"a number is below 2^{least} or above 2^{most}"
        return f"{len(terms)} numbers are not 0; at most {count} may be" if len(terms) > count else None


def words_of(text):
    """What is in a file, without its comments."""
    return [word for row in text.split("\n") for word in row.partition("#")[0].split()]


def numbers_of(words, what):
    """The numbers of NUMBER[*COUNT]..."""
    found = []
    for word in words:
        match = TERM.fullmatch(word)
        if not match:
            shown = "".join(c if c.isprintable() else "?" for c in word[:40])
            raise BadExercise(f"{what}: expected NUMBER or NUMBER*COUNT, such as 2^-20*3; got '{shown}'")
        minus, power, plain, count = match.groups()
        value = math.ldexp(1, int(power)) if power else float(plain)
        found += [-value if minus else value] * int(count or 1)
    return found


def take(exercise, number, file, shown, in_place):
    """The text of a file of numbers. Where nothing is written into it yet, and it is the book's, it becomes this variant's."""
    text = read_file(file, shown)
    said, variant = said_in(text), Variant(exercise, number)
    if in_place and said != (number or None) and text == Variant(exercise, said or 0).blank():
        text, said = variant.blank(), number
        file.write_text(text)
        print(f"{shown} is now variant {number}", flush=True)
    if said not in (None, number):
        print(f"{shown} says that it is variant {said}. It is graded as variant {number}.", flush=True)
    return text


def grade(exercise, number, build, answers=None):
    """Prints the two sums; why they do not pass, or None."""
    shown = answers or exercise.shown()
    words = words_of(take(exercise, number, Path(answers or exercise.file), shown, not answers))
    if not words:
        raise BadExercise(f"{shown}: no numbers in it")
    wrong = Variant(exercise, number).outside(numbers_of(words, shown))
    done = subprocess.run([str(Path(build) / exercise.data["program"]), *words], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        said = done.stderr.strip().splitlines() or [f"{exercise.data['program']} ended with status {done.returncode}"]
        raise BadExercise(said[-1])
    print(done.stdout, end="", flush=True)
    return wrong or ("the order does not matter" if done.returncode else None)
