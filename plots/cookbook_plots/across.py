# SPDX-License-Identifier: MIT
"""docs/gpus.md: what differs between the GPUs whose results are committed."""
from dataclasses import replace

from . import memories
from .markup import code, percent, significant, table
from .results import ROOF_KEYS


def short(results):
    """What a GPU is called in a heading: "H200"."""
    return results.gpu.upper()


def paired(first, other):
    """(run, run, level, level) of each level that was timed on both, in the book's order."""
    for key, run in sorted(first.headline.items()):
        beside = other.headline.get(key)
        if not beside or beside.size != run.size:
            continue
        levels = {level.name: level for level in beside.timed}
        for level in run.timed:
            if level.name in levels:
                yield run, beside, level, levels[level.name]


def where(run, level):
    return [run.chapter, code(run.ladder), code(level.name)]


def roofs_rows(first, other):
    """A row per roof: the highest that any run measured."""
    units = {name: "TOP/s" if "int8" in name else "TFLOP/s" if key.endswith("tflops") else "GB/s"
             for name, key in ROOF_KEYS.items()}

    def highest(results, key):
        return max((run.roofs[key] for run in results.runs if run.roofs.get(key)), default=None)
    for name, key in ROOF_KEYS.items():
        values = [highest(results, key) for results in (first, other)]
        if all(values):
            yield [f"{name}, {units[name]}", *(significant(value) for value in values), f"{values[1] / values[0]:.2f}"]


def last_levels(first, other, chapters):
    """(run, its last level) of the first ladder of each chapter on both."""
    for info in chapters:
        runs = first.of_chapter(info.number)
        beside = runs and other.headline.get((info.number, runs[0].ladder))
        if info.number > 0 and beside and beside.timed:
            yield (runs[0], runs[0].timed[-1]), (beside, beside.timed[-1])


def chapter_rows(lasts):
    """A row per chapter."""
    for (run, level), (beside, twin) in lasts:
        cells = [f"{significant(of.speed(one))} {of.unit}, {percent(one.fraction)}" if one.fraction else
                 f"{significant(of.speed(one))} {of.unit}" for of, one in ((run, level), (beside, twin))]
        yield [run.chapter, code(run.ladder), code(level.name), *cells, f"{beside.speed(twin) / run.speed(level):.2f}"]


def step_rows(first, other):
    """A row per level whose verdict against the previous one is another."""
    def said(level):
        ratio = level.json["vs_previous"]
        return f"{ratio['ratio']:.3f}x, {ratio['verdict']}"
    for run, _, level, twin in paired(first, other):
        both = [one.json.get("vs_previous") for one in (level, twin)]
        if all(both) and both[0]["verdict"] != both[1]["verdict"]:
            yield [*where(run, level), said(level), said(twin)]


def other_bounds(first, other):
    """(run, level, binding on both) of each level that comes closest to another roof, or reaches it only on one. A kernel
    moves the same bytes on both: those that Nsight Compute counted on either serve for both."""
    for run, beside, level, twin in paired(first, other):
        one, two = memories.binding(run, level), memories.binding(beside, with_bytes_of(twin, level))
        if one and two and (one.name != two.name or one.reached != two.reached):
            yield run, level, one, two


def bound_rows(bounds):
    for run, level, *both in bounds:
        yield [*where(run, level), *(f"{one.name}, {percent(one.fraction)}" for one in both)]


def with_bytes_of(level, measured):
    """The level, with the bytes that were measured of the same level on another GPU where its own were not."""
    return replace(level, measured_bytes=level.measured_bytes or measured.measured_bytes)


def claim_rows(first, other):
    """A row per claim about speed that was made for the first and does not hold on the other."""
    for run, _, level, twin in paired(first, other):
        for claim in twin.json["claims"]:
            if claim["checked_by"] == "cuda" and claim["holds"] is not True:
                yield [*where(run, level), claim["text"], str(claim["measured"]).split(" ", maxsplit=1)[0]]


def text(every, chapters):
    """What stands between the markers; `every`: the Results of each GPU, those of the book's own first."""
    parts = []
    for other in every[1:]:
        first, names = every[0], [short(every[0]), short(other)]
        device = next(iter(other.headline.values())).json
        parts.append(f"{device['device']['name']}, {device['date'][:10]}, commit {device['commit']}; the same code, medians of "
                     "cold runs.")
        step = ["", "ladder", "level"]
        lasts, bounds = list(last_levels(first, other, chapters)), list(other_bounds(first, other))
        above = [memories.above_100(level.fraction for both in lasts for _, level in both),
                 memories.above_100(bindings=[one for _, _, *both in bounds for one in both])]
        for title, header, align, rows, below in (
                (f"**Roofs of {names[0]} and {names[1]}**", ["roof", *names, "ratio"], "lrrr", roofs_rows(first, other), ""),
                ("**The last level of each chapter**", [*step, *names, "ratio"], "rllrrr", chapter_rows(lasts), above[0]),
                ("**Steps with another verdict**", [*step, *(f"vs previous, {name}" for name in names)], "rllrr",
                 step_rows(first, other), ""),
                ("**Levels that come closest to another roof, or reach it on one of the two only**", [*step, *names], "rllrr",
                 bound_rows(bounds), above[1]),
                (f"**Claims made for {names[0]} that do not hold on {names[1]}**", [*step, "claim", "measured"], "rlllr",
                 claim_rows(first, other), "")):
            rows = list(rows)
            parts += [title, table(header, rows, align) if rows else "None.", *filter(None, [below])]
    return "\n\n".join(parts)
