# SPDX-License-Identifier: MIT
"""The figures and the report of a capstone, from the results in its own folder.

  plots FOLDER    FOLDER/figures: the ladder, the roofline and the sweep of what a GPU timed, and the traffic that
                  the SIMT backend counted
  report FOLDER   FOLDER/report.html, one page that prints well: what FOLDER/README.md says, the ladder, each level's
                  prediction beside what was measured, counters, pictures, figures, what is still unexplained and how it
                  was run; report.pdf where a browser is installed

Results are FOLDER/results/*.json, as `./run FOLDER --json FOLDER/results/NAME.json` writes them.
"""
import argparse
import html
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

from . import book, cli, figures, own, style, tables, written
from .pictures import book as pictures
from .pdf import NONE, write_pdf
from .results import (Counted, ResultError, Results, load, needed_when_traced, of_the_right_form, read_run, requested_bytes,
                      size_text, traffic)
from .staging import Staging, ended


@dataclass
class LadderResults:
    """What is known of one ladder: what a GPU timed, what the SIMT backend counted; either may be None."""

    name: str
    timed: object
    counted: object
    all_counted: list

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
            raise ResultError(f"{results} holds no results ({command(folder, '--json', results / 'NAME.json')} writes some)")
        with of_the_right_form(f"{results}: a file there is not a result"):
            self.gpu = Results(results, identities)
            self.counted = self.runs_of_the_simt_backend(results, identities)
        names = dict.fromkeys([ladder for _, ladder in self.gpu.headline] + list(self.counted))
        if not names:
            raise ResultError(f"{results} holds no run of a ladder")
        timed = {ladder: run for (_, ladder), run in self.gpu.headline.items()}
        self.ladders = [LadderResults(name, timed.get(name), next(iter(self.counted.get(name, [])), None),
                                      self.counted.get(name, [])) for name in names]
        self.heading = self.ladders[0].newest.heading

    @staticmethod
    def runs_of_the_simt_backend(results, identities):
        """Ladder -> its runs: first those of most levels, of these of most levels as they are now, and the newest. A run
        that only counted has checked no more than the traced size."""
        runs = [read_run(file, raw, identities) for file in sorted(results.glob("*.json"))
                for raw in load(file).get("runs", []) if raw["backend"] != "cuda"]
        for run in runs:
            for level in run.levels:
                level.counted = Counted.of(level.json, run.json["problem"])
        runs.sort(key=lambda run: (len(run.levels), -sum(level.stale for level in run.levels), run.json["backend"] == "simt",
                                   run.json["date"]), reverse=True)
        return {ladder: [run for run in runs if run.ladder == ladder] for ladder in {run.ladder: 0 for run in runs}}

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
                if not ladder.timed and not counted.counts_own:
                    names[f"{ladder.name}-ceilings"] = ("ceilings", with_roofs(counted))
        for (_, name), runs in self.gpu.sweeps.items():
            names[f"{name}-sweep"] = ("sweep", runs)
        return names


def command(folder, *options):
    """A command line that can be copied."""
    return shlex.join(["./run", str(folder), *map(str, options)])


def with_roofs(run):
    """The same run under the roofs of the GPU that the book has most results of: what its counted bytes would allow."""
    modelled = replace(run, json=dict(run.json))
    own.take_roofs([modelled], None)
    return modelled


def draw(capstone):
    names = capstone.figures()
    folder = capstone.folder / "figures"
    with Staging() as files:
        style.save_all(figures.draw, names, files, folder, folder, lambda drawn: cli.digest(drawn[1]))
    print(f"drew {len(names)} figure{'s' if len(names) != 1 else ''} in {folder}: {', '.join(names)}")
    if not any(kind == "ladder" for kind, _ in names.values()):
        print("No GPU has timed it: the ladder and the roofline need results of one. The ceilings are an estimate.")


# --- the report ------------------------------------------------------------------------------------
STYLE = """
body { font: 11pt/1.45 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24 }
h1, h2, h3, h4 { line-height: 1.2; break-after: avoid } h3 code { font-size: 1em }
table { border-collapse: collapse; margin: 0.8rem 0; font-size: 9.5pt } tr { break-inside: avoid } thead { display: table-header-group }
th, td { border-bottom: 1px solid #d8dee4; padding: 0.25rem 0.7rem 0.25rem 0; text-align: left; vertical-align: top }
th[colspan] { padding-top: 0.8rem; break-after: avoid } td.number { text-align: right; font-variant-numeric: tabular-nums } .bad { color: #b3261e; font-weight: 600 }
.small { color: #57606a; font-size: 9pt } figure { margin: 1rem 0; break-inside: avoid } figcaption { break-after: avoid }
svg, img { max-width: 100%; height: auto; max-height: 165mm; break-inside: avoid }
code { font: 0.88em/1.4 ui-monospace, Consolas, Menlo, monospace } code.source, pre { overflow-wrap: anywhere }
code.source { display: inline-block; min-width: 21rem }
pre { background: #f4f6f8; padding: 0.6rem 0.8rem; white-space: pre-wrap; break-inside: avoid } p, li { orphans: 3; widows: 3 }
blockquote { border-left: 3px solid #d8dee4; margin-left: 0; padding-left: 0.8rem }
@page { margin: 18mm } @media print { body { margin: 0; max-width: none } }
"""


def text(value):
    return html.escape(str(value), quote=False)


def sentence(value):
    """What a program or a level says: names between backticks are code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text(value))


def html_table(header, rows):
    """A row that is a string goes across all columns."""
    def cell(value):
        is_number = re.fullmatch(r"[\d,.+]+( ?(%|x|[µnm]?s))?", str(value)) is not None
        return f'<td class="number">{text(value)}</td>' if is_number else f"<td>{value}</td>"
    head = "".join(f"<th>{text(name)}</th>" for name in header)
    def line(row):
        return f'<th colspan="{len(header)}">{row}</th>' if isinstance(row, str) else "".join(map(cell, row))
    head = f"<thead><tr>{head}</tr></thead>" if any(header) else ""
    return f"<table>{head}" + "".join(f"<tr>{line(row)}</tr>" for row in rows) + "</table>"


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


ASKED = [f"{kind}_bytes" for kind in ("global_load", "global_store", "global_atomic", "async_load", "async_store")]


def asked(run, level):
    """(bytes that its threads and bulk copies ask for, the same per byte that the problem needs): what the ladder's table
    prints, at the traced size. A sector of 32 bytes may move for 4 of them: traffic() counts sectors. None: not counted."""
    if not level or not level.counted:
        return None, None
    amount = sum(level.counted.values.get(name) or 0 for name in ASKED)
    needed = needed_when_traced(run, level)
    return (amount, amount / needed) if amount and needed else (None, None)


def counter_rows(run):
    rows = []
    for level in run.levels:
        if level.counted:
            value = defaultdict(int, {name: count or 0 for name, count in level.counted.values.items()})
            amount, per_needed = asked(run, level)
            sectors, needed = requested_bytes(level), needed_when_traced(run, level)
            rows.append([*name_of(level), *(ratio(value[f"global_{kind}_sectors"], value[f"global_{kind}_requests"])
                                            for kind in ("load", "store")),
                         *(f"{value[f'shared_{kind}_wavefronts']:,.0f}" for kind in ("load", "store")),
                         f"{amount:,.0f}" if amount else "-", tables.significant(per_needed) if per_needed else "-",
                         tables.significant(sectors / needed) if sectors and needed else "-"])
    return rows


def line_sections(folder, ladder, levels):
    """The counts of every line that accesses memory; HTML."""
    rows = []
    for level in levels:
        found = next((other for run in ladder.all_counted for other in run.levels if other.name == level.name
                      and other.json.get("lines") and book.tokens_of(other.json) == book.tokens_of(level.json)), None)
        if found:
            rows += [" · ".join(map(str, name_of(level))), *(line_row(folder, line, found) for line in found.json["lines"])]
    if not rows:
        return [f'<p class="small">No run counted them: <code>'
                f'{text(command(folder, "--explain", "--json", folder / "results/lines.json"))}</code></p>']
    return [html_table(["line", "access", "requests", "per request", "at best", "bytes asked for"], rows),
            '<p class="small">Per request of a warp: sectors of 32 bytes of global memory, wavefronts of shared memory. '
            "Counted of the source as it is written: a load that the compiler removes or merges is counted as it stands.</p>"]


def line_row(folder, line, level):
    unit = "wavefronts" if line["memory"] == "shared" else "sectors"
    file = folder / Path(line["file"]).name
    lines = file.read_text(errors="replace").split("\n") if file.is_file() and not level.stale else []
    source = lines[line["line"] - 1].strip() if 0 < line["line"] <= len(lines) else ""
    buffer = f" of <code>{text(line['buffer'])}</code>" if line.get("buffer") else ""
    size = f", {line['bytes_per_lane']} B per lane" if line.get("bytes_per_lane") else ""
    return [f"<code>{text(Path(line['file']).name)}:{line['line']}</code>",
            f"{text(line['memory'])} {text(line['operation'])}{buffer}{size}" + (
                f'<br><code class="source">{text(source)}</code>' if source else ""), f"{line['requests']:,}",
            ratio(line[unit], line["requests"]), ratio(line[f"ideal_{unit}"], line["requests"]), f"{line['bytes']:,}"]


def verdict(claim):
    return {True: "holds", False: '<span class="bad">is false</span>', None: "not checked"}[claim["holds"]]


def level_rows(run, timed):
    """Each level's prediction beside what was measured."""
    return [[*name_of(level), sentence(level.json["changed"]), sentence(level.json["expect"]), measured_text(level, before, run, timed),
             text(level.json["status"])] for before, level in zip([None, *run.levels], run.levels)]


def claim_rows(run):
    rows = []
    for level in run.levels:
        rows += [" · ".join(map(str, name_of(level))), *(
            [sentence(claim["text"]), verdict(claim), text(claim.get("measured") or ""), text(claim.get("checked_by") or "")]
            for claim in level.json["claims"])]
    return rows


def measured_text(level, before, run, timed):
    found = []
    if level.json["status"] != "ok":
        found.append(f'<span class="bad">{text(level.json["status"])}</span>: {sentence(level.json.get("reason") or "")}')
    if timed and level.timed:
        found.append(f"{tables.significant(run.speed(level))} {run.unit}"
                     + (f", {tables.percent(level.fraction)} of the roof" if level.fraction else ""))
        if level.json.get("vs_previous"):
            found.append(f"{level.json['vs_previous']['ratio']:.2f} times the speed of the level before")
    for factor, was, what in ((asked(run, level)[1], asked(run, before)[1], "bytes asked for"),
                              (traffic(run, level)[0], traffic(run, before)[0] if before else None, "bytes of sectors")):
        if factor:
            found.append(f"{tables.significant(factor)} {what} per byte needed"
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


def inline_svg(figure):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figure.svg"
        figure.savefig(file)
        return file.read_text()[file.read_text().index("<svg"):]


def picture_parts(folder, run):
    """The worst request of each level that `./run PATH --explain --draw PATH/pictures` has recorded, in the ladder's order;
    HTML."""
    order = {level.name: level.index for level in run.levels}
    documents = {file: pictures.read(file) for file in sorted((folder / "pictures").glob("*.json"))}
    mine = {file: order[document["level"]] for file, document in documents.items()
            if document.get("ladder") == run.ladder and document.get("level") in order}
    parts = []
    for file in sorted(mine, key=mine.get):
        worst = next(iter(pictures.pictures(file).values()))
        parts.append(f"<figure><figcaption>{mine[file]} · <code>{text(documents[file]['level'])}</code></figcaption>"
                     f"{worst.svg()}</figure>")
    # The heading stays with the first picture: alone, it could be all that a page holds.
    return [parts[0].replace("<figure>", "<figure><h2>The worst request of each level</h2>", 1), *parts[1:]] if parts else []


def conditions(run):
    problem, device = run.json["problem"], run.json["device"]
    parts = [device["name"], f"{' x '.join(problem['dims'])} = {'x'.join(map(str, problem['size']))}", problem["dtype"],
             f"seed {run.json['seed']}", run.json["date"][:10]]
    if run.roof_value:
        parts.append(f"roof: {run.json['roof']} {tables.significant(run.roof_value)} {run.unit}")
    return " · ".join(parts)


# --- how it was run --------------------------------------------------------------------------------
def git(folder, *arguments):
    """What git says, or None. Nothing that a repository sets up for git is started."""
    try:
        done = subprocess.run(["git", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments], capture_output=True, text=True,
                              check=False, env=os.environ | {"GIT_OPTIONAL_LOCKS": "0"})
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def own_commit(folder):
    """The commit of the repository in which the capstone lies."""
    top = git(folder, "rev-parse", "--show-toplevel")
    if not top:
        return "in no git repository"
    commit = git(folder, "rev-parse", "--short=12", "HEAD")
    if not commit:
        return "nothing is committed yet"
    if git(folder, "status", "--porcelain", "--", ":/*.hpp", ":/*.cuh", ":/*.cu", "README.md"):
        commit += ", and changes since that are not committed"
    return commit + (" (of the book: the capstone lies in it)" if Path(top) == book.ROOT else "")


def how_it_was_run(capstone):
    folder = capstone.folder
    parts = ["<h2>How it was run</h2>", f"<p>Commit of the capstone: {text(own_commit(folder))}.</p>"]
    for ladder in capstone.ladders:
        for run in filter(None, (ladder.timed, ladder.counted)):
            device = run.json["device"]
            known = [run.json["problem"][size] for size in ("check_size", "trace_size")]
            options = ["--explain"] if run.json["backend"] == "simt-traced" else []
            options += [] if list(run.size) in known else ["--size", "x".join(map(str, run.size))]
            options += [] if run.json["seed"] == 1 else ["--seed", run.json["seed"]]
            said = [f"{ladder.name}: {'timed' if run is ladder.timed else 'checked and counted'} on {device['name']}, "
                    f"{device['sm_count']} SMs",
                    f"compiler: {'nvcc ' if run is ladder.timed else ''}{device.get('toolkit') or 'not known'}",
                    *([] if run is not ladder.timed else [f"driver: {device.get('driver') or 'not known'}"]),
                    run.json["date"].replace("T", " ").removesuffix("Z") + " UTC",
                    f"commit of the book: {run.json.get('commit') or 'not known'}"]
            parts.append(f"<p>{text(' · '.join(said))}</p>"
                         f"<pre><code>{text(command(folder, *options, '--json', run.file))}</code></pre>")
    others = [command("test", folder), command(folder, "--explain", "--draw", folder / "pictures"), command("report", folder)]
    return [*parts, "<p>Tests, pictures and this page:</p><pre><code>" + text("\n".join(others)) + "</code></pre>"]


def page(capstone):
    parts = [f"<h1>{text(capstone.heading)}</h1>", written.page_of(capstone.folder / "README.md")]
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
            parts += [f'<p class="small">{text(above)}</p>'] if (above := tables.above_100(run)) else []
        parts.append(html_table(["", "level", "changed", "predicted", "measured", "check"], level_rows(run, timed)))
        parts += [f"<figure>{drawn[name]}</figure>" for kind in ("ladder", "roofline", "sweep", "traffic")
                  if (name := f"{ladder.name}-{kind}") in drawn]
        if (name := f"{ladder.name}-ceilings") in drawn:
            parts.append(f"<figure>{drawn[name]}<figcaption class=\"small\">An estimate: no GPU has timed this ladder. "
                         "No level can be faster than its ceiling.</figcaption></figure>")
        parts += ["<h2>Claims</h2>", html_table(["claim", "", "measured", "checked by"], claim_rows(run))]
        counted = ladder.counted or run
        rows = counter_rows(counted)
        if rows:
            size = next(level.counted.trace_size for level in counted.levels if level.counted)
            parts += ["<h2>Counters</h2>",
                      html_table(["", "level", "sectors per load", "sectors per store", "wavefronts of shared loads",
                                  "of shared stores", "bytes asked for", "per byte needed",
                                  "bytes of sectors, per byte needed"], rows),
                      f'<p class="small">Counted by the SIMT backend at {size_text(size)}. Bytes asked for: by all threads and '
                      "bulk copies. Of a sector all 32 bytes move, of which a request may use 4.</p>",
                      "<h3>Line by line</h3>", *line_sections(capstone.folder, ladder, counted.levels)]
        parts += picture_parts(capstone.folder, run)
    parts.append("<h2>Still unexplained</h2>")
    open_points = [point for ladder in capstone.ladders for point in unexplained(ladder)]
    if open_points:
        parts.append("<ul>" + "".join(f"<li>{sentence(point)}</li>" for point in open_points) + "</ul>")
    else:
        parts.append("<p>Every claim was checked and holds.</p>")
    parts += how_it_was_run(capstone)
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
