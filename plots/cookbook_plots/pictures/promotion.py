# SPDX-License-Identifier: MIT
"""What is left of a long sum in an FP8 tensor core's accumulator: the error over K, and the k between two promotions."""
import math
from fractions import Fraction

from ..results import ResultError
from .sums import cut, exponent
from .svg import COLOURS, INNER, MARGIN, Picture

FRACTION_BITS, STEP = 13, 32  # kept below the largest exponent and of the result; k of a wgmma
EVERY = {"32": 32, "128": 128, "512": 512, "never": 0}
HEIGHT, LEFT = 150, 44


def draw(document, _words, _root):
    """{"": the picture}"""
    rows = document["rows"]
    largest = max(row["k"] for row in rows)
    a, b = numbers(largest, 1), numbers(largest, 2)
    for row in rows:
        for (name, every), first in zip(EVERY.items(), row["first"], strict=True):
            found = element(a[:row["k"]], b[:row["k"]], every)
            if found != first:
                raise ResultError(f"K = {row['k']}, promotion {name}: element (0, 0) is {float(found)!r}; the tensor core's was "
                                  f"{first!r}")
    last = rows[-1]
    said = "; ".join(f"{heading(name)}: {error:.1e}" for name, error in zip(EVERY, last["errors"]))
    picture = Picture("What promotion saves", f"Relative error of a sum of {last['k']:,} terms, {said}.")
    picture.heading(picture.title)
    picture.paragraph("Root mean square of the error, relative to C, over K.", style="muted")
    picture.y += 8
    chart(picture, rows)
    picture.legend([(COLOURS[i], heading(name)) for i, name in enumerate(EVERY)])
    return {"": picture}


def heading(name):
    return "no promotion" if name == "never" else f"promotion every {name}"


def chart(picture, rows):
    errors = [error for row in rows for error in row["errors"]]
    low, high = math.floor(math.log10(min(errors))), math.ceil(math.log10(max(errors)))
    top, width = picture.y, INNER - LEFT - 10
    first, span = math.log2(rows[0]["k"]), math.log2(rows[-1]["k"] / rows[0]["k"])

    def at(k, error):
        return (MARGIN + LEFT + (math.log2(k) - first) / span * width,
                top + (high - math.log10(error)) / (high - low) * HEIGHT)

    for power in range(low, high + 1):
        _, y = at(rows[0]["k"], 10.0 ** power)
        picture.line(MARGIN + LEFT, y, MARGIN + LEFT + width, y, "faint")
        picture.text(MARGIN + LEFT - 5, y + 4, f"10^{power}", 11, style="muted", anchor="end")
    for row in rows:
        picture.text(at(row["k"], 1)[0], top + HEIGHT + 15, f"{row['k']:,}", 11, style="muted", anchor="middle")
    for i in range(len(EVERY)):
        points = [at(row["k"], row["errors"][i]) for row in rows]
        for (x0, y0), (x1, y1) in zip(points, points[1:]):
            picture.stroke(x0, y0, x1, y1, COLOURS[i])
        for x, y in points:
            picture.rect(x - 2.5, y - 2.5, 5, 5, fill=COLOURS[i])
    picture.y = top + HEIGHT + 22


def numbers(count, seed):
    """The first row that chapter-12-promotion makes of a seed: e4m3 numbers."""
    made = []
    for _ in range(count):
        total = 0
        for _ in range(4):
            seed = (seed * 1664525 + 1013904223) % 2 ** 32
            total += (seed >> 24) - 128
        made.append(e4m3(Fraction(total, 128)))
    return made


def e4m3(value):
    """The nearest e4m3 number, ties to even."""
    if not value:
        return value
    unit = Fraction(2) ** (exponent_of(value) - 3)
    return round(value / unit) * unit


def exponent_of(value):
    """Of an e4m3 number."""
    return max(exponent(value), -6) if value else -6


def element(a, b, every):
    """The sum of a[k] b[k] by wgmma of 32, added to an fp32 sum every so many k (0: only at the end)."""
    total, partial = 0.0, Fraction(0)
    for step in range(0, len(a), STEP):
        pairs = list(zip(a[step:step + STEP], b[step:step + STEP]))
        # The hardware aligns a product by the sum of its factors' exponents.
        exponents = [exponent(partial) if partial else -math.inf,
                     *(exponent_of(x) + exponent_of(y) if x * y else -math.inf for x, y in pairs)]
        partial = cut([partial, *(x * y for x, y in pairs)], FRACTION_BITS, FRACTION_BITS, exponents)
        if step + STEP == len(a) or (every and (step + STEP) % every == 0):
            total, partial = single(total + float(partial)), Fraction(0)
    return total


def single(value):
    """A double as fp32: to nearest, ties to even."""
    mantissa, up = math.frexp(value)
    return math.ldexp(round(math.ldexp(mantissa, 24)), up - 24)
