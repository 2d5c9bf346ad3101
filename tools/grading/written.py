#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""./run written GRADES TEXTS: a page per student with the machine's points, a form for the teacher's, and the text.

Reads what `./run grade ... --out GRADES` wrote, and TEXTS, an entry per student: NAME.md, NAME.txt, or a folder NAME
with one of these and figures (PNG or JPEG). Writes GRADES/written.csv, in which the teacher enters points; the same
command then puts them onto the pages and into GRADES/total.csv (docs/teaching.md).

Exit status: 0 everything was written, 2 something in the arguments or in written.csv is wrong.
"""
import argparse
import base64
import csv
import html
import io
import json
import math
import os
import sys
from pathlib import Path

import handed_in
import report
from assignment import ROOT, BadSubmission

sys.path.insert(0, str(ROOT / "plots"))
from cookbook_plots import pdf

RUBRIC = Path(__file__).with_name("rubric.json")
TEXT_ENDINGS = (".md", ".txt")
PICTURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}  # how a file begins
MOST_PICTURES, MOST_PICTURE_BYTES = 12, 4 << 20
# Nothing on a page is run or fetched, whatever a text makes of it.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
STYLE = """body{font:11pt/1.45 system-ui,sans-serif;max-width:46em;margin:2em auto;padding:0 1em;color:#14181d;background:#fff}
h1{font-size:1.5em}h2{font-size:1.15em;border-bottom:1px solid #888;break-after:avoid}
table{border-collapse:collapse;width:100%}td,th{padding:.25em .5em;border-bottom:1px solid #ccc;text-align:left;vertical-align:top}
td.points{text-align:right;white-space:nowrap}tr{break-inside:avoid}
.chosen{font-weight:600}ul{list-style:none;margin:.3em 0;padding:0}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font:10pt/1.45 ui-monospace,monospace}
img{max-width:100%;break-inside:avoid}.line{border-bottom:1px solid #888;height:2em}
@page{margin:18mm}@media print{body{margin:0;max-width:none}}"""


class Wrong(Exception):
    """One line for the teacher."""


# --- the rubric ------------------------------------------------------------------------------------
def read_rubric(path):
    try:
        rubric = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise Wrong(f"{path}: {error}") from None
    criteria = rubric.get("criteria") if isinstance(rubric, dict) else None
    if not isinstance(criteria, list) or not criteria:
        raise Wrong(f"{path}: criteria is a list with at least one criterion")
    names = []
    for criterion in criteria:
        texts = [criterion.get(key) for key in ("name", "title", "question")] if isinstance(criterion, dict) else [None]
        levels = criterion.get("levels") if isinstance(criterion, dict) else None
        if not all(isinstance(text, str) and text for text in texts):
            raise Wrong(f"{path}: a criterion has the texts name, title and question")
        if not isinstance(levels, list) or not levels or not all(
                isinstance(level, dict) and is_points(level.get("points")) and isinstance(level.get("text"), str)
                for level in levels):
            raise Wrong(f"{path}: {texts[0]}: levels is a list of points (numbers of 0 or more) and text")
        names.append(texts[0])
    if len({*names, "name", "comment"}) != len(names) + 2:
        raise Wrong(f"{path}: two criteria of one name, or one that is called name or comment")
    return rubric


def is_points(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def most(criterion):
    return max(level["points"] for level in criterion["levels"])


# --- what was handed in ----------------------------------------------------------------------------
def plain(text):
    """A text without control characters, and without those that change the direction of writing."""
    return "".join(c if c in "\n\t" or c.isprintable() else "" if c == "\r" else "?" for c in text)


def read_handed_in(path):
    """(text, [(name, data: URL) of a picture], a note or "") of a student's entry. No link is followed."""
    if path.is_symlink():
        raise BadSubmission("the entry is a link")
    if path.is_file():
        return plain(handed_in.read_file(path)), [], ""
    files = sorted(file for file in path.iterdir() if file.is_file() and not file.is_symlink() and not file.name.startswith("."))
    texts = [file for file in files if file.suffix.lower() in TEXT_ENDINGS]
    texts = [file for file in texts if file.name == "README.md"] or texts
    if len(texts) != 1:
        raise BadSubmission(f"the folder has {len(texts)} texts ({', '.join(TEXT_ENDINGS)}); hand in one, or a README.md")
    pictures, left_out = [], []
    for file in files:
        if file in texts:
            continue
        with open(file, "rb") as opened:
            raw = opened.read(MOST_PICTURE_BYTES + 1)
        kind = next((kind for begin, kind in PICTURES.items() if raw.startswith(begin)), None)
        if kind and len(raw) <= MOST_PICTURE_BYTES and len(pictures) < MOST_PICTURES:
            pictures.append((handed_in.shown(file.name), f"data:{kind};base64,{base64.b64encode(raw).decode()}"))
        else:
            left_out.append(handed_in.shown(file.name))
    note = f"Not on this page: {', '.join(left_out[:20])}" if left_out else ""
    return plain(handed_in.read_file(texts[0])), pictures, note


def results_of(grades):
    """{name: the machine's result}; none in a folder of a teacher's own, for texts alone"""
    found = {}
    for file in sorted((grades / "results").glob("*.json")):
        try:
            result = json.loads(file.read_text())
            found[result["name"]] = {"score": float(result["score"]), "of": float(result["of"]), "steps": [
                {"step": str(row["step"]), "points": float(row["points"]), "of": float(row["of"]),
                 "feedback": str(row["feedback"])} for row in result["steps"]]}
        except (OSError, ValueError, KeyError, TypeError):
            raise Wrong(f"{file}: not a result of ./run grade") from None
    if not found and ((grades / "results").is_dir() or not grades.is_dir()):
        raise Wrong(f"{grades} has no results (./run grade ASSIGNMENT SUBMISSIONS --out {grades} writes them)")
    return found


# --- the teacher's points --------------------------------------------------------------------------
def read_points(file, rubric, names):
    """{name: {criterion: points or None, "comment": text}} of written.csv; empty where there is none yet."""
    known = {report.cell(name): name for name in names}
    blank = {**{criterion["name"]: None for criterion in rubric["criteria"]}, "comment": ""}
    entered = {name: dict(blank) for name in names}
    if not file.exists():
        return entered
    try:
        rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8-sig"))))
    except (OSError, ValueError, csv.Error) as error:
        raise Wrong(f"{file}: {error}") from None
    for number, row in enumerate(rows, 2):
        name = known.get(row.get("name") or "")
        if name is None:
            raise Wrong(f"{file}:{number}: no student is called '{plain(str(row.get('name')))}'")
        entered[name]["comment"] = plain(row.get("comment") or "").removeprefix("'")
        for criterion in rubric["criteria"]:
            text = (row.get(criterion["name"]) or "").strip().replace(",", ".")
            try:
                points = float(text) if text else None
            except ValueError:
                points = -1.0
            if points is not None and not (is_points(points) and points <= most(criterion)):
                raise Wrong(f"{file}:{number}: {criterion['name']} is '{plain(text)}': a number from 0 to {most(criterion):g}, "
                            "or nothing yet")
            entered[name][criterion["name"]] = points
    return entered


def table(rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def points_table(rubric, entered):
    criteria = [criterion["name"] for criterion in rubric["criteria"]]
    return table([["name", *criteria, "comment"],
                  *([report.cell(name), *("" if row[one] is None else f"{row[one]:g}" for one in criteria),
                     report.cell(row["comment"])] for name, row in entered.items())])


def written_sum(rubric, row):
    """The teacher's points, or None as long as one is missing."""
    points = [row[criterion["name"]] for criterion in rubric["criteria"]]
    return None if None in points else sum(points)


def total_table(rubric, results, entered):
    out_of = sum(most(criterion) for criterion in rubric["criteria"])
    rows = [["name", "machine", "of", "written", "of", "total", "of"]]
    for name, row in entered.items():
        machine, written = results.get(name), written_sum(rubric, row)
        known = machine is not None and written is not None
        rows.append([report.cell(name), f"{machine['score']:g}" if machine else "", f"{machine['of']:g}" if machine else "",
                     "" if written is None else f"{written:g}", f"{out_of:g}",
                     f"{machine['score'] + written:g}" if known else "", f"{machine['of'] + out_of:g}" if known else ""])
    return table(rows)


# --- pages -----------------------------------------------------------------------------------------
def document(title, body):
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
            f'content="{POLICY}"><title>{html.escape(title)}</title><style>{STYLE}</style></head><body>\n{body}\n</body></html>\n')


def machine_section(result):
    if result is None:
        return "<p>Nothing was graded by the machine.</p>"
    rows = "".join(f"<tr><td>{html.escape(report.NAMES.get(row['step'], row['step']))}</td><td class=points>{row['points']:g} "
                   f"of {row['of']:g}</td><td>{html.escape(plain(report.first_line(row['feedback']))[:300])}</td></tr>"
                   for row in result["steps"] if row["of"] > 0 or row["feedback"])
    return f"<table>{rows}<tr><th>together</th><th>{result['score']:g} of {result['of']:g}</th><th></th></tr></table>"


def form_section(rubric, row):
    rows = []
    for criterion in rubric["criteria"]:
        points = row[criterion["name"]]
        levels = "".join(
            f'<li{" class=chosen" if points == level["points"] else ""}>{"&#9746;" if points == level["points"] else "&#9744;"} '
            f'{level["points"]:g}: {html.escape(level["text"])}</li>' for level in criterion["levels"])
        shown = f"{points:g}" if points is not None else "&nbsp;&nbsp;&nbsp;&nbsp;"
        rows.append(f"<tr><td><b>{html.escape(criterion['title'])}</b><br>{html.escape(criterion['question'])}<ul>{levels}</ul>"
                    f"</td><td class=points>{shown} of {most(criterion):g}</td></tr>")
    comment = (f"<pre>{html.escape(row['comment'])}</pre>" if row["comment"] else '<div class="line"></div>' * 3)
    return f"<table>{''.join(rows)}</table><h2>Comment</h2>{comment}"


def page(name, rubric, result, row, read):
    text, pictures, note = read
    written = written_sum(rubric, row)
    out_of = sum(most(criterion) for criterion in rubric["criteria"])
    shown = "not complete" if written is None else f"{written:g} of {out_of:g}"
    if written is not None and result is not None:
        shown += f"; with the machine's, {result['score'] + written:g} of {result['of'] + out_of:g}"
    images = "".join(f'<h3>{html.escape(one)}</h3><img alt="{html.escape(one)}" src="{url}">' for one, url in pictures)
    return document(name, f"<h1>{html.escape(name)}</h1>\n<h2>Graded by the machine</h2>{machine_section(result)}\n"
                    f"<h2>{html.escape(rubric.get('title', 'The written part'))}: {shown}</h2>{form_section(rubric, row)}\n"
                    f"<h2>What was handed in</h2><p>{html.escape(note)}</p><pre>{html.escape(text)}</pre>{images}")


def overview(rubric, results, entered, files):
    out_of = sum(most(criterion) for criterion in rubric["criteria"])
    rows = []
    for name, row in entered.items():
        machine, written = results.get(name), written_sum(rubric, row)
        rows.append(f'<tr><td><a href="{html.escape(files[name])}.html">{html.escape(name)}</a></td><td class=points>'
                    f'{machine["score"] if machine else 0:g}</td><td class=points>{"-" if written is None else f"{written:g}"}'
                    "</td></tr>")
    return document("The written part", f"<h1>The written part</h1><table><tr><th>student</th><th>machine</th>"
                    f"<th>written, of {out_of:g}</th></tr>{''.join(rows)}</table>")


def write(grades, texts, rubric, with_pdf):
    results = results_of(grades)
    if not texts.is_dir():
        raise Wrong(f"there is no folder {texts}")
    found = handed_in.submissions_in(texts)
    names = sorted({*results, *found})
    entered = read_points(grades / "written.csv", rubric, names)
    files = {name: handed_in.file_name(name) for name in names}
    out, printed, tool = grades / "written", 0, None
    for name in names:
        try:
            read = read_handed_in(found[name]) if name in found else ("", [], "No text was handed in.")
        except (BadSubmission, OSError) as reason:
            read = "", [], f"The text cannot be read: {plain(str(reason))}"
        report.write_text(out / f"{files[name]}.html", page(name, rubric, results.get(name), entered[name], read))
        (out / f"{files[name]}.pdf").unlink(missing_ok=True)  # one of older points would be taken for this one's
        if with_pdf and (tool := pdf.write_pdf(out / f"{files[name]}.html", out / f"{files[name]}.pdf", trusted=False)):
            printed += 1
    report.write_text(out / "index.html", overview(rubric, results, entered, files))
    report.write_text(grades / "written.csv", points_table(rubric, entered))
    report.write_text(grades / "total.csv", total_table(rubric, results, entered))
    missing = sum(written_sum(rubric, row) is None for row in entered.values())
    print(f"{len(names)} pages in {out}, {missing} without all points: enter them in {grades / 'written.csv'} and type the "
          "same command again")
    if with_pdf:
        print(f"{printed} PDFs ({tool})" if printed else pdf.NONE)


def main(argv):
    parser = argparse.ArgumentParser(prog="./run written", description=__doc__.split("\n")[0].split(": ")[1].capitalize())
    parser.add_argument("grades", metavar="GRADES", help="what ./run grade ... --out GRADES wrote")
    parser.add_argument("texts", metavar="TEXTS", help="folder with a text (.md, .txt) or a folder per student")
    parser.add_argument("--rubric", metavar="FILE", help="another rubric than tools/grading/rubric.json")
    parser.add_argument("--no-pdf", action="store_true", help="pages only")
    arguments = parser.parse_args(argv)
    caller = Path(os.environ.get("COOKBOOK_CALLER", os.getcwd()))
    try:
        write(caller / arguments.grades, caller / arguments.texts,
              read_rubric(caller / arguments.rubric if arguments.rubric else RUBRIC), not arguments.no_pdf)
    except (Wrong, OSError) as reason:
        print(f"written: {reason}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
