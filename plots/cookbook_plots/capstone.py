# SPDX-License-Identifier: MIT
"""The figures and the report of a capstone, from the results in its own folder.

  plots FOLDER    FOLDER/figures: the ladder, the roofline and the sweep of what a GPU timed, and the traffic that
                  the SIMT backend counted
  report FOLDER   FOLDER/report.html, one page that prints well: the ladder, each level's prediction beside what was
                  measured, counters, pictures, figures, and what is still unexplained; report.pdf where a browser is installed

Results are FOLDER/results/*.json, as `./run FOLDER --json FOLDER/results/NAME.json` writes them.
"""
import argparse
import html
import re
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from . import book, cli, figures, style, tables
from .pictures import book as pictures
from .pdf import NONE, write_pdf
from .results import Counted, ResultError, Results, load, of_the_right_form, read_run, traffic
from .staging import Staging, ended


@dataclass
class LadderResults:
    """What is known of one ladder: what a GPU timed, what the SIMT backend counted; either may be None."""

    name: str
    timed: object
    counted: object

    @property
    def newest(self):
        return self.timed or self.counted


class Capstone:
    def __init__(self, folder):
        self.folder = folder
        results = folder / "results"
        identities = book.Identities((book.token_hash(file) for pattern in ("*.cuh", "*.hpp", "exercises/*.cuh")
                                      for file in folder.glob(pattern)), book.read_lock())
        if not any(results.glob("*.json")):
            raise ResultError(f"{results} holds no results (./run {folder} --json {results}/NAME.json writes some)")
        with of_the_right_form(f"{results}: a file there is not a result"):
            self.gpu = Results(results, identities)
            self.counted = self.runs_of_the_simt_backend(results, identities)
        names = dict.fromkeys([ladder for _, ladder in self.gpu.headline] + list(self.counted))
        if not names:
            raise ResultError(f"{results} holds no run of a ladder")
        timed = {ladder: run for (_, ladder), run in self.gpu.headline.items()}
        self.ladders = [LadderResults(name, timed.get(name), self.counted.get(name)) for name in names]
        self.heading = self.ladders[0].newest.heading

    @staticmethod
    def runs_of_the_simt_backend(results, identities):
        """Ladder -> its newest run with most levels."""
        runs = [read_run(file, raw, identities) for file in sorted(results.glob("*.json"))
                for raw in load(file).get("runs", []) if raw["backend"] != "cuda"]
        for run in runs:
            for level in run.levels:
                level.counted = Counted.of(level.json, run.json["problem"])
        newest_last = sorted(runs, key=lambda run: (len(run.levels), run.json["date"]))
        return dict.fromkeys(run.ladder for run in runs) | {run.ladder: run for run in newest_last}

    def figures(self):
        """Name -> what to draw, as cli.figure_names; "traffic" besides."""
        names = {}
        for ladder in self.ladders:
            if ladder.timed and len(ladder.timed.timed) > 1:
                names[f"{ladder.name}-ladder"] = ("ladder", ladder.timed)
                if not ladder.timed.counts_own:  # neither axis would be its own
                    names[f"{ladder.name}-roofline"] = ("roofline", ladder.timed)
            counted = next((run for run in (ladder.counted, ladder.timed) if run
                            and any(traffic(run, level)[0] for level in run.levels)), None)
            if counted:
                names[f"{ladder.name}-traffic"] = ("traffic", counted)
        for (_, name), runs in self.gpu.sweeps.items():
            names[f"{name}-sweep"] = ("sweep", runs)
        return names


def draw(capstone):
    names = capstone.figures()
    folder = capstone.folder / "figures"
    with Staging() as files:
        style.save_all(figures.draw, names, files, folder, folder, lambda drawn: cli.digest(drawn[1]))
    print(f"drew {len(names)} figure{'s' if len(names) != 1 else ''} in {folder}: {', '.join(names)}")
    if not any(kind == "ladder" for kind, _ in names.values()):
        print("No GPU has timed it: the ladder and the roofline need results of one.")


# --- the report ------------------------------------------------------------------------------------
STYLE = """
body { font: 11pt/1.45 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24 }
h1, h2, h3 { line-height: 1.2; break-after: avoid } h3 code { font-size: 1em }
table { border-collapse: collapse; margin: 0.8rem 0; font-size: 9.5pt; break-inside: avoid }
th, td { border-bottom: 1px solid #d8dee4; padding: 0.25rem 0.7rem 0.25rem 0; text-align: left; vertical-align: top }
td.number { text-align: right; font-variant-numeric: tabular-nums } .bad { color: #b3261e; font-weight: 600 }
.small { color: #57606a; font-size: 9pt } svg { max-width: 100%; height: auto } figure { margin: 1rem 0; break-inside: avoid }
section.level { break-inside: avoid }
@page { margin: 18mm } @media print { body { margin: 0; max-width: none } }
"""


def text(value):
    return html.escape(str(value), quote=False)


def html_table(header, rows):
    def cell(value):
        is_number = re.fullmatch(r"[\d,.+]+( ?(%|x|[µnm]?s))?", str(value)) is not None
        return f'<td class="number">{text(value)}</td>' if is_number else f"<td>{value}</td>"
    head = "".join(f"<th>{text(name)}</th>" for name in header)
    return (f"<table><tr>{head}</tr>" + "".join("<tr>" + "".join(map(cell, row)) + "</tr>" for row in rows)
            + "</table>")


def ratio(amount, of):
    return f"{amount / of:.2f}" if of else "-"


def name_of(level):
    """The first two cells of its rows."""
    return level.index, f"<code>{text(level.name)}</code>"


def ladder_rows(run):
    rows = []
    for level in run.levels:
        cells = [tables.duration(level.time()), tables.significant(run.speed(level)), tables.percent(level.fraction),
                 tables.against_previous(level), tables.against_reference(level)] if level.timed else ["-"] * 5
        rows.append([*name_of(level), *cells, text(level.json["status"])])
    return rows + [["", text(other["name"]), *tables.reference_cells(run, other), "", "", text(other["status"])]
                   for other in run.references]


def counter_rows(run):
    rows = []
    for level in run.levels:
        if level.counted:
            value = defaultdict(int, {name: count or 0 for name, count in level.counted.values.items()})
            factor, _ = traffic(run, level)
            rows.append([*name_of(level), *(ratio(value[f"global_{kind}_sectors"], value[f"global_{kind}_requests"])
                                            for kind in ("load", "store")),
                         *(f"{value[f'shared_{kind}_wavefronts']:,.0f}" for kind in ("load", "store")),
                         tables.significant(factor) if factor else "-"])
    return rows


def verdict(claim):
    return {True: "holds", False: '<span class="bad">is false</span>', None: "not checked"}[claim["holds"]]


def level_section(level, before, run, timed):
    """One level: the prediction beside what was measured."""
    parts = [f'<section class="level"><h3>{level.index} · <code>{text(level.name)}</code></h3>',
             html_table(["", ""], [["changed", text(level.json["changed"])], ["predicted", text(level.json["expect"])],
                                   ["measured", measured_text(level, before, run, timed)]])]
    rows = [[text(claim["text"]), verdict(claim), text(claim.get("measured") or ""), text(claim.get("checked_by") or "")]
            for claim in level.json["claims"]]
    if rows:
        parts.append(html_table(["claim", "", "measured", "checked by"], rows))
    return "".join(parts) + "</section>"


def measured_text(level, before, run, timed):
    found = []
    if level.json["status"] != "ok":
        found.append(f'<span class="bad">{text(level.json["status"])}</span>: {text(level.json.get("reason") or "")}')
    if timed and level.timed:
        found.append(f"{tables.significant(run.speed(level))} {run.unit}"
                     + (f", {tables.percent(level.fraction)} of the roof" if level.fraction else ""))
        if level.json.get("vs_previous"):
            found.append(f"{level.json['vs_previous']['ratio']:.2f} times the speed of the level before")
    factor = traffic(run, level)[0]
    if factor:
        was = traffic(run, before)[0] if before else None
        found.append(f"{tables.significant(factor)} bytes asked for per byte needed"
                     + (f" (before: {tables.significant(was)})" if was else ""))
    return "; ".join(found) or "nothing yet"


def unexplained(ladder):
    """Sentences: what contradicts a prediction, and what nothing has checked."""
    run = ladder.newest
    for level in run.levels:
        name = f"{run.ladder} / {level.name}"
        if level.json["status"] != "ok":
            yield f"{name}: {level.json['status']}: {level.json.get('reason') or ''}"
        yield from (f"{name}: {finding}" for finding in level.json["findings"])
        for claim in level.json["claims"]:
            if claim["holds"] is False:
                yield f"{name}: predicted \"{claim['text']}\", measured {claim.get('measured')}"
            elif claim["holds"] is None:
                yield f"{name}: \"{claim['text']}\" was not checked"
        if level.stale:
            yield f"{name}: its source changed after these results were written"
    if ladder.timed is None:
        yield f"{run.ladder}: no GPU has timed it"
    for last in ladder.timed.timed[-1:] if ladder.timed else ():
        if last.fraction and last.fraction < 0.95:
            yield f"{run.ladder} / {last.name}: {tables.percent(last.fraction)} of {run.json['roof']}; what limits the rest?"


def own_words(folder):
    """The capstone's README, below its heading with "unexplained"; HTML."""
    readme = folder / "README.md"
    if not readme.exists():
        return ""
    match = re.search(r"^#+ [^\n]*unexplained[^\n]*\n(.*?)(?=^#|\Z)", readme.read_text(), re.MULTILINE | re.DOTALL
                      | re.IGNORECASE)
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", match[1]) if part.strip()] if match else []
    return "".join(f"<p>{text(' '.join(part.split()))}</p>" for part in paragraphs)


def inline_svg(figure):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figure.svg"
        figure.savefig(file)
        return file.read_text()[file.read_text().index("<svg"):]


def picture_parts(folder, ladder):
    """The worst request of each level that `./run PATH --explain --draw PATH/pictures` has recorded; HTML."""
    parts = []
    for file in sorted((folder / "pictures").glob("*.json")):
        document = pictures.read(file)
        if document.get("ladder") == ladder:
            worst = next(iter(pictures.pictures(file).values()))
            parts.append(f"<figure><figcaption><code>{text(document['level'])}</code></figcaption>{worst.svg()}</figure>")
    return ["<h2>The worst request of each level</h2>", *parts] if parts else []


def conditions(run):
    problem, device = run.json["problem"], run.json["device"]
    parts = [device["name"], f"{' x '.join(problem['dims'])} = {'x'.join(map(str, problem['size']))}", problem["dtype"],
             f"seed {run.json['seed']}", run.json["date"][:10]]
    if run.roof_value:
        parts.append(f"roof: {run.json['roof']} {tables.significant(run.roof_value)} {run.unit}")
    return " · ".join(parts)


def page(capstone):
    parts = [f"<h1>{text(capstone.heading)}</h1>"]
    drawn = {}
    with style.Theme("light") as theme:
        for name, planned in capstone.figures().items():
            drawn[name] = inline_svg(figures.draw(planned, theme))
            style.plt.close("all")
    for ladder in capstone.ladders:
        run, timed = ladder.newest, ladder.timed is not None
        parts += [f"<h2>{text(ladder.name)}: {text(run.json['title'])}</h2>",
                  f'<p class="small">{text(conditions(run))}</p>']
        if timed:
            parts.append(html_table(["", "level", "time", run.unit, "of roof", "vs previous", "vs library", "check"],
                                    ladder_rows(run)))
        else:
            parts.append(html_table(["", "level", "check"], [[*name_of(level), text(level.json["status"])]
                                                             for level in run.levels]))
        parts += [f"<figure>{drawn[name]}</figure>" for kind in ("ladder", "roofline", "sweep", "traffic")
                  if (name := f"{ladder.name}-{kind}") in drawn]
        parts.append("<h2>Predicted and measured</h2>")
        parts += [level_section(level, before, run, timed) for before, level in zip([None, *run.levels], run.levels)]
        counted = ladder.counted or run
        rows = counter_rows(counted)
        if rows:
            size = next(level.counted.trace_size for level in counted.levels if level.counted)
            parts += ["<h2>Counters</h2>",
                      html_table(["", "level", "sectors per load", "sectors per store", "wavefronts of shared loads",
                                  "of shared stores", "bytes asked for per byte needed"], rows),
                      f'<p class="small">Counted by the SIMT backend at {"x".join(map(str, size))}.</p>']
        parts += picture_parts(capstone.folder, ladder.name)
    parts.append("<h2>Still unexplained</h2>")
    open_points = [sentence for ladder in capstone.ladders for sentence in unexplained(ladder)]
    if open_points:
        parts.append("<ul>" + "".join(f"<li>{text(sentence)}</li>" for sentence in open_points) + "</ul>")
    else:
        parts.append("<p>Every claim was checked and holds.</p>")
    parts.append(own_words(capstone.folder))
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{text(capstone.heading)}</title>'
            f"<style>{STYLE}</style></head><body>\n" + "\n".join(parts) + "\n</body></html>\n")


def report(capstone):
    file, pdf = capstone.folder / "report.html", capstone.folder / "report.pdf"
    with Staging() as files:
        files.write_text(file, page(capstone))
    print(f"wrote {file}")
    pdf.unlink(missing_ok=True)  # one of older results would be taken for this one's
    if tool := write_pdf(file, pdf):
        print(f"wrote {pdf} ({tool})")
    else:
        print(NONE)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="capstone", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("plots", "report"))
    parser.add_argument("folder", type=Path)
    options = parser.parse_args(arguments)
    make = {"plots": draw, "report": report}[options.verb]
    return ended(options.verb, lambda: make(Capstone(options.folder)))


if __name__ == "__main__":
    sys.exit(main())
