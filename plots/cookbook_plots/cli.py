# SPDX-License-Identifier: MIT
"""Draws every figure and writes every table, or checks that the committed ones are up to date."""
import argparse
import csv
import dataclasses
import hashlib
import io
import json
import re
import sys
from pathlib import Path

from . import autotuning, book, comparison, memories, tables
from .results import SIMT, ResultError, Results, Run, gpus, of_the_right_form, stale_counters, traffic
from .staging import Staging


def figure_names(results, chapters):
    """Name -> what to draw, for everything that the results of one GPU allow."""
    names = {}
    for info in chapters:
        runs = results.of_chapter(info.number)
        if runs and info.number > 0 and len(runs[0].timed) > 1:
            names[f"chapter-{info.number}-ladder"] = ("ladder", runs[0])
            names[f"chapter-{info.number}-roofline"] = ("roofline", runs[0])
    known = {info.number for info in chapters}
    for (chapter, ladder), runs in sorted(results.sweeps.items()):
        if chapter in known:
            names[f"chapter-{chapter}-sweep-{ladder}"] = ("sweep", runs)
    for chapter, name, kind, found in ((autotuning.CHAPTER, autotuning.FIGURE, "searchers", autotuning.searchers(results.gpu)),
                                       (autotuning.CHAPTER, autotuning.CHOICES, "choices", autotuning.choices(results.gpu)),
                                       (comparison.ATTENTION, comparison.SWEEP, "attention", comparison.attention(results))):
        if chapter in known and found:
            names[name] = (kind, found)
    if any(kind == "roofline" for kind, _ in names.values()):
        names["book-roofline"] = ("book", None)
    return names


def csv_text(results, chapters):
    """Every number of the figures, one line per level and reference; also of runs with too few sizes for a figure."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["chapter", "ladder", "size", "row", "name", "median_us", "q1_us", "q3_us", "speed", "unit",
                     "roof", "roof_value", "roof_fraction", "vs_previous", "vs_reference", "reference",
                     "traffic_factor", "traffic_from", "limited_by", "stale", "file"])

    def number(value):
        return "" if value is None else f"{value:.6g}"

    def times(of):
        return [number(of[quantile]) for quantile in comparison.QUANTILES]

    known = {info.number for info in chapters}
    for run in sorted((r for r in results.runs if r.chapter in known), key=lambda r: (r.chapter, r.ladder, r.size)):
        shared = [run.chapter, run.ladder, "x".join(map(str, run.size))]
        roof = [run.json["roof"], number(run.roof_value)]
        for level in run.timed:
            factor, origin = traffic(run, level)
            previous = level.json.get("vs_previous") or {}
            reference = level.json.get("vs_reference") or {}
            writer.writerow([*shared, level.index, level.name, *times(level.json["time_us"]), number(run.speed(level)), run.unit,
                             *roof, number(level.fraction), number(previous.get("ratio")), number(reference.get("ratio")),
                             reference.get("name", ""), number(factor), origin, memories.binding(run, level) or "",
                             "yes" if level.stale else "", run.file.name])
        for other in run.references:
            speed = number(run.speed_of_time(other["time_us"]["median"]))
            writer.writerow([*shared, "", other["name"], *times(other["time_us"]), speed, run.unit, *roof, *[""] * 8,
                             run.file.name])
    # What the figures show of comparisons: over the sweeps, then attention.
    shown = [(source, point) for (chapter, _), group in sorted(results.sweeps.items()) if chapter in known
             for source, curves in [comparison.beside(results, group)]
             for points in curves.values() for point in points.values()]
    if comparison.ATTENTION in known:
        shown += [(source, point) for source in comparison.attention(results) or () if source for point in source.points]
    for source, point in shown:
        writer.writerow([point.chapter, " ".join(filter(None, [point.ladder, point.variant])),
                         "x".join(map(str, point.size)), "", point.name,
                         *(number(ms and 1e3 * ms) for ms in (point.median, point.q1, point.q3)), number(point.speed),
                         point.unit, *[""] * 4, number(point.ratio), point.library, *[""] * 3, "yes" if point.stale else "",
                         source.file])
    return out.getvalue()


def figure_of(kind, what, results, chapters, theme):
    """One of figure_names' figures."""
    from . import figures  # matplotlib is needed from here on only
    if kind == "sweep":
        return figures.sweep(what, theme, *comparison.beside(results, what))
    if kind == "attention":
        return figures.attention_sweep(*what, (results.comparison or results.attention)["device"]["name"], theme)
    if kind == "book":
        return figures.book_roofline(results, chapters, theme)
    return figures.draw((kind, what), theme)


def figure_data(kind, what, results, chapters):
    """What a figure is drawn from: its data, not how they are drawn."""
    if kind == "sweep":
        compared, beside = comparison.beside(results, what)
        return [what, compared and compared.text(), [[name, list(points.values())] for name, points in beside.items()]]
    if kind == "attention":
        return [what, (results.comparison or results.attention)["device"]["name"]]
    if kind == "book":
        return [[info.number, results.of_chapter(info.number)[:1]] for info in chapters]
    return what


def digest(data):
    """SHA-256 of a figure's data. A run's include what is derived from others, the traffic and what is stale, in place
    of that by which a level is known."""
    def plain(value):
        if isinstance(value, Run):
            return [value.json, [[level.name, level.stale, traffic(value, level),
                                  {memory: vars(one) for memory, one in memories.moved(value, level).items()}]
                                 for level in value.levels]]
        if dataclasses.is_dataclass(value):
            return vars(value)
        raise TypeError(f"a figure's data hold a {type(value).__name__}")
    data = json.loads(json.dumps(data, default=plain), object_hook=lambda each: {
        key: value for key, value in each.items() if key not in ("identity", "launches")})
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def wrong_figures(results, chapters, names, folder):
    """A sentence for every figure that is missing or was drawn from other data than are committed."""
    wrong = []
    for name, (kind, what) in names.items():
        now = digest(figure_data(kind, what, results, chapters))
        for theme in ("light", "dark"):
            file = folder / f"{name}-{theme}.svg"
            if not file.exists():
                wrong.append(f"{file}: missing (./run plots draws it)")
            elif now not in re.findall("<dc:identifier>sha256:([0-9a-f]{64})</dc:identifier>", file.read_text()):
                wrong.append(f"{file}: drawn from other results than are committed (./run plots draws it again)")
    drawn = {f"{name}-{theme}" for name in names for theme in ("light", "dark")}
    wrong += [f"{file}: no results lead to this figure" for file in sorted(folder.glob("*.svg")) if file.stem not in drawn]
    return wrong


def draw(results, chapters, names, folder, png_folder, files):
    from . import style
    style.save_all(lambda drawn, theme: figure_of(*drawn, results, chapters, theme), names, files, folder, png_folder,
                   lambda drawn: digest(figure_data(*drawn, results, chapters)))
    print(f"drew {len(names)} figures: SVG in {folder}, PNG in {png_folder}")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="plots", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing: fail if anything would change")
    parser.add_argument("--tables-only", action="store_true", help="write the tables, draw nothing")
    parser.add_argument("--results", type=Path, help="folder of <gpu>/*.json; the committed ones. Of others the "
                        "figures go to build/plots/figures, and no README is written")
    parser.add_argument("--out", type=Path, help="folder of the figures")
    parser.add_argument("--png", type=Path, default=book.ROOT / "build/plots", help="folder of the PNGs")
    parser.add_argument("--root", type=Path, default=book.ROOT, help="the book whose READMEs are written")
    options = parser.parse_args(arguments)
    committed = options.root / "plots/results"
    options.results = options.results or committed
    is_committed = options.results.resolve() == committed.resolve()
    options.out = options.out or (options.root / "plots/figures" if is_committed else options.png / "figures")
    chapters = book.chapters(options.root)
    if not is_committed and not gpus(options.results):
        print(f"plots: {options.results} has no <gpu>/*.json", file=sys.stderr)
        return 2
    try:
        with Staging() as files:
            return make(options, chapters, is_committed, files)
    except ResultError as error:
        print(error, file=sys.stderr)
        return 2


def read(folder):
    with of_the_right_form(f"{folder}: a file there is not a result"):
        return Results(folder)


def make(options, chapters, is_committed, files):
    """Writes into `files`, or checks. The exit status."""
    wrong = []
    all_results = [read(folder) for folder in gpus(options.results)]
    all_names = []
    for results in all_results:
        names = figure_names(results, chapters)
        folder = options.out / results.gpu
        all_names.append(names)
        wrong += results.above_roof()
        text = csv_text(results, chapters)
        file = folder / "figures.csv"
        if options.check:
            if not file.exists() or file.read_text() != text:
                wrong.append(f"{file}: differs from the committed results (./run plots writes it)")
            wrong += wrong_figures(results, chapters, names, folder)
            wrong += [f"{path}: no figure or table takes anything from it" for path in results.unread]
        else:
            files.write_text(file, text)
            if not options.tables_only:
                draw(results, chapters, names, folder, options.png / results.gpu, files)
    if not all_results:
        print("no results are committed: the tables say so, and there is nothing to draw")
    if options.check:
        wrong += stale_counters(options.results / SIMT)
    if is_committed:
        wrong += tables.update(chapters, all_results, all_names, options.check, options.root, files)
    for line in wrong:
        print(line, file=sys.stderr)
    if not wrong:
        count = sum(len(results.headline) for results in all_results)
        print(f"{count} ladders on {len(all_results)} GPUs: every point is under its roof"
              + (", every table agrees with its results" if options.check and is_committed else ""))
    return 1 if wrong else 0
