# SPDX-License-Identifier: MIT
"""What a tensor core adds up: terms aligned to the largest exponent, the bits that are kept, and what is cut off."""
import math
from fractions import Fraction
from itertools import groupby

from ..results import ResultError
from .lines import HEIGHT, label
from .svg import COLOURS, INNER, MARGIN, Picture

SINGLE = 23  # fraction bits of fp32
KEPT = COLOURS[0]


class Sum:
    """Numbers that a tensor core added up, `depth` per instruction, in groups of `terms`. ResultError where that gives
    another sum than the program recorded."""

    def __init__(self, data, rule):
        self.numbers, self.sum, self.rule = list(map(float, data["numbers"])), float(data["sum"]), rule
        fraction_bits, terms, depth = rule
        self.groups, total = [], Fraction(0)  # (first term, sum before, sum after)
        for first in range(0, -(-len(self.numbers) // depth) * depth, terms):
            before, total = total, cut([total, *map(Fraction, self.numbers[first:first + terms])], fraction_bits)
            self.groups.append((first, before, total))
        if total != Fraction(self.sum):
            raise ResultError(f"{self.name()}: {fraction_bits} bits and groups of {terms} make {float(total)!r}; the tensor "
                              f"core's sum was {self.sum!r}")

    def runs(self):
        """[(number, how often in a row)]"""
        return [(number, len(list(same))) for number, same in groupby(self.numbers)]

    def name(self):
        return " + ".join((f"{count} x " if count > 1 else "") + power(number) for number, count in self.runs())


def exponent(value):
    return math.frexp(value)[1] - 1


def cut(terms, fraction_bits, result_bits=SINGLE, exponents=None):
    """The exact sum of terms, each cut off so many bits below the largest exponent; then its fraction, to that of fp32.
    exponents: of the terms, where they are not their own."""
    exponents = exponents or [exponent(term) if term else -math.inf for term in terms]
    largest = max(exponents, default=-math.inf)
    if largest == -math.inf:
        return Fraction(0)
    unit = Fraction(2) ** (largest - fraction_bits)
    total = sum(math.trunc(term / unit) for term in terms) * unit
    if not total:
        return total
    last = Fraction(2) ** (exponent(total) - result_bits)
    return math.trunc(total / last) * last


def power(value):
    """"2^-25", or the number."""
    mantissa, up = math.frexp(value)
    return f"2^{up - 1}" if mantissa == 0.5 and up != 1 else f"{value:.9g}"


def draw(document, _words, _root):
    """{"": the picture}"""
    rule = document["fraction_bits"], document["terms"], document["depth"]
    if not all(type(value) is int for value in rule) or not (1 <= rule[1] <= rule[2] and rule[2] % rule[1] == 0):
        raise ValueError(f"fraction_bits, terms, depth are {rule}")
    counted, lost, late, early, *_ = [Sum(data, rule) for data in document["sums"]]  # the others tell the groups' size
    bits, terms, depth = rule
    title = f"Kept: {bits} bits below the largest exponent"
    picture = Picture(title, f"Terms of one instruction, aligned: {counted.name()} is {counted.sum:.9g}, {lost.name()} is {lost.sum:.9g}. "
                      f"In the first, every term counts. In the second, the terms lie below the last bit that is kept and are cut off, each "
                      f"one. 1 and then 31 times 2^-27 make {late.sum:.9g}; the other way round "
                      f"{early.sum:.9g}.")
    picture.heading(title)
    picture.paragraph(f"{document['device']} · mma.sync, bf16 · the {depth} terms of an instruction are added "
                      f"{'at once' if terms == depth else f'in groups of {terms}'}, with the sum so far", style="muted")
    aligned(picture, counted, "every term counts")
    aligned(picture, lost, "cut off, term by term")
    picture.legend([(KEPT, "bit that counts"), ("waste", "bit that is cut off"), ("faint", "0")])
    picture.y += 4
    picture.paragraph("So the order of k matters", 13, font="bold")
    picture.paragraph(f"Per instruction: the sum so far, then {depth} terms; -27 is 2^-27.", style="muted")
    strips(picture, late)
    strips(picture, early)
    return {"": picture}


def aligned(picture, one, says):
    """Each different term in binary, and the sum, below a scale of exponents."""
    bits, left = one.rule[0], 70
    width, places = (INNER - left) / 29, 29
    picture.y += 6
    picture.paragraph(one.name() + ": " + says)
    picture.y += 11
    for place in (0, 5, 10, 15, 20, SINGLE, 28):
        picture.text(MARGIN + left + (place + 0.5) * width, picture.y, f"-{place}" if place else "0", 9.5, style="muted",
                     anchor="middle")
    picture.y += 3
    top = picture.y
    for number, count in one.runs():
        name = (f"{count} x " if count > 1 else "") + power(number)
        binary(picture, name, number, range(places), bits, width, left)
    picture.y += 2
    binary(picture, "sum", one.sum, range(places), SINGLE, width, left)
    x = MARGIN + left + (bits + 1) * width
    picture.line(x, top - 2, x, picture.y + 2, "wire")
    picture.text(x - 3, picture.y + 11, f"the last of the {bits} bits", 10, style="muted", anchor="end")
    picture.y += 14


def binary(picture, name, value, places, bits, width, left):
    picture.text(MARGIN, picture.y + 10, name, 11)
    for place in places:
        x, one = MARGIN + left + place * width, int(Fraction(abs(value)) * 2 ** place) & 1
        if not one:
            picture.rect(x, picture.y, width, HEIGHT, "faint")
            continue
        kept = place <= bits
        picture.rect(x, picture.y, width, HEIGHT, "" if kept else "waste", KEPT if kept else None)
        label(picture, x, picture.y, width, "1", KEPT if kept else None, "text")
    picture.y += HEIGHT + 1


def strips(picture, one):
    """A row per instruction, a box per term; groups are set apart, and what is cut off beside a group's largest is marked."""
    bits, terms, depth = one.rule
    groups = depth // terms
    width = (INNER - 4 * groups) / (depth + groups)
    picture.y += 4
    picture.paragraph(f"{one.name()} = {one.sum:.9g}")
    picture.y += 2
    for at in range(0, len(one.groups), groups):
        x = MARGIN
        for first, before, _ in one.groups[at:at + groups]:
            boxes = [before, *one.numbers[first:first + terms]]
            largest = max((exponent(value) for value in boxes if value), default=0)
            for order, value in enumerate(boxes):
                whole = value and exponent(value) >= largest - bits
                picture.rect(x, picture.y, width, HEIGHT + 3, "faint" if not value else "" if whole else "waste",
                             KEPT if whole else None)
                picture.rect(x, picture.y, width, HEIGHT + 3, "several" if order == 0 else "cell")
                text = "0" if not value else "1" if value == 1 else str(exponent(value)) if value < 1 else ">1"
                label(picture, x, picture.y + 1.5, width, text, KEPT if whole else None, "text")
                x += width
            x += 4
        picture.y += HEIGHT + 7

