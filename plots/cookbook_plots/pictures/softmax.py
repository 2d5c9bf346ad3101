# SPDX-License-Identifier: MIT
"""Online softmax over a few numbers: the maximum, the sum, and how the sum is rescaled when the maximum grows."""
import math

from ..results import ResultError
from .svg import COLOURS, INNER, MARGIN, Picture

OLD, NEW = COLOURS[4], COLOURS[5]
NEAR = 1e-5  # relative: exp is the special-function unit's
HEIGHT = 15
COLUMNS = {"x": 16, "m": 44, "factor": 98}  # right ends


def draw(document, _words, _root):
    """{"": the picture}"""
    steps, pair = [], (-math.inf, 0.0)
    for step in document["steps"]:
        old, pair = pair, add(pair, step["x"])
        compare(f"after {step['x']:g}", pair, step)
        factor = math.exp(old[0] - pair[0])
        steps.append((step["x"], pair[0], factor, old[1] * factor, pair[1]))
    half = len(steps) // 2
    halves = [total([step["x"] for step in part]) for part in (document["steps"][:half], document["steps"][half:])]
    for which, (found, recorded) in zip(("the first half", "the second half"), zip(halves, document["halves"])):
        compare(which, found, recorded)
    compare("the merged halves", pair, document["merged"][0])
    numbers = ", ".join(f"{x:g}" for x, *_ in steps)
    picture = Picture("Online softmax, one number at a time",
                      f"{len(steps)} numbers, one at a time or as two merged halves: maximum {pair[0]:g}, sum {pair[1]:.3f}. The numbers "
                      f"{numbers}. After each: " + "; ".join(f"maximum {m:g}, sum {s:.3f}" for _, m, _, _, s in steps) + ".")
    picture.heading(picture.title)
    picture.paragraph("m: the maximum so far. New sum s: the old one times exp(old m - m), plus exp(x - m).",
                      style="muted")
    picture.y += 14
    for name, right in COLUMNS.items():
        picture.text(MARGIN + right, picture.y, name, 11, style="muted", anchor="end")
    left = MARGIN + 106
    picture.text(left, picture.y, "s", 11, style="muted")
    picture.y += 4
    scale = (INNER - 106 - 46) / max(s for *_, s in steps)
    for x, m, factor, old, s in steps:
        row(picture, (f"{x:g}", f"{m:g}", f"x {factor:.3f}" if 0 < factor < 1 else ""), left, scale, old, s)
    picture.legend([(OLD, "the old sum, rescaled"), (NEW, "exp(x - m)")])
    (m1, s1), (m2, s2) = halves
    picture.paragraph(f"Two halves, (m, s) = ({m1:g}, {s1:.3f}) and ({m2:g}, {s2:.3f}), merge to the same: {s1:.3f} x "
                      f"{math.exp(m1 - pair[0]):.3f} + {s2:.3f} x {math.exp(m2 - pair[0]):.3f} = {pair[1]:.3f}.")
    return {"": picture}


def row(picture, texts, left, scale, old, s):
    for text, right in zip(texts, COLUMNS.values()):
        picture.text(MARGIN + right, picture.y + 11.5, text, 11, anchor="end")
    picture.rect(left, picture.y, old * scale, HEIGHT, fill=OLD)
    picture.rect(left + old * scale, picture.y, max((s - old) * scale, 0.8), HEIGHT, fill=NEW)
    picture.text(left + s * scale + 5, picture.y + 11.5, f"{s:.3f}", 11)
    picture.y += HEIGHT + 4


def add(pair, x):
    m = max(pair[0], x)
    return m, pair[1] * math.exp(pair[0] - m) + math.exp(x - m)


def total(numbers):
    pair = (-math.inf, 0.0)
    for x in numbers:
        pair = add(pair, x)
    return pair


def compare(where, found, recorded):
    if found[0] != recorded["max"] or abs(found[1] - recorded["sum"]) > NEAR * found[1]:
        raise ResultError(f"{where}: the numbers make maximum {found[0]:g}, sum {found[1]:.6f}; the kernel had "
                          f"{recorded['max']:g}, {recorded['sum']:.6f}")
