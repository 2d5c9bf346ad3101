# SPDX-License-Identifier: MIT
"""What ./run grade writes: grades.csv, index.html, feedback, Gradescope's results.json, JUnit XML."""
import csv
import html
import io
import json
import os
import time
from xml.etree import ElementTree

import handed_in
import speed

NAMES = {"compiles": "compiles", "public_sizes": "sizes that were handed out", "hidden_sizes": "other sizes",
         "inputs": "kinds of input", "layouts": "rows and bases that start anywhere",
         "schedules": "orders of blocks and of asynchronous copies", "races": "no race, nothing out of bounds",
         "claims": "mechanism", "speed": "speed"}


def write_text(path, text):
    """Whole or not at all: an interrupted run leaves no half of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text)
    os.replace(partial, path)


def write_json(path, value):
    write_text(path, json.dumps(value, indent=1) + "\n")


def first_line(text):
    """The first line, with the second where the first only announces it."""
    rows = text.splitlines()
    return " ".join(row.strip() for row in rows[:2]) if rows and rows[0].endswith(":") else (rows or [""])[0]


def feedback(result):
    """The text for the student."""
    if not result["steps"]:
        return f"{result['name']}: not graded"
    rows = [f"{result['name']}: {result['score']:g} of {result['of']:g} points"]
    if result.get("note"):
        rows.append(f"  note: {result['note']}")
    if result["steps"][0]["feedback"]:
        return "\n".join([*rows, *(f"  {line}" for line in result["steps"][0]["feedback"].splitlines())])
    for row in result["steps"]:
        if row["of"] == 0 and row["passed"]:
            continue
        rows.append(f"  {row['points']:5g} of {row['of']:<4g} {NAMES[row['step']]}")
        rows += [f"                {line}" for line in row["feedback"].splitlines()]
    return "\n".join(rows)


def gradescope(result):
    """Gradescope's results.json (https://gradescope-autograders.readthedocs.io/en/latest/specs/)."""
    tests = [{"name": NAMES[row["step"]], "number": str(number), "score": row["points"], "max_score": row["of"],
              "status": "passed" if row["passed"] else "failed", "output": row["feedback"], "visibility": "visible"}
             for number, row in enumerate(result["steps"], 1)]
    board = [{"name": "Score", "value": result["score"]}]
    measured = result.get("outcome", {}).get("speed", {})
    if measured.get("ratio"):
        board += [{"name": "Speed-up", "value": round(measured["ratio"], 3)},
                  {"name": "95 % interval", "value": f"{measured['low']:.3f} to {measured['high']:.3f}"},
                  {"name": "Time (us)", "value": round(measured["us"], 1), "order": "asc"}]
    return {"score": result["score"], "execution_time": round(result["seconds"]), "output": feedback(result),
            "output_format": "text", "test_output_format": "text", "visibility": "visible",
            "stdout_visibility": "hidden", "tests": tests,
            "leaderboard": board}


def junit(assignment, results):
    """A test suite per submission, a test case per step."""
    root = ElementTree.Element("testsuites", name=assignment.title)
    for result in results:
        failures = sum(not row["passed"] for row in result["steps"])
        errors = 0 if result["steps"] else 1
        suite = ElementTree.SubElement(root, "testsuite", name=result["name"], failures=str(failures),
                                       errors=str(errors), tests=str(len(result["steps"]) + errors),
                                       time=str(result["seconds"]))
        for row in result["steps"]:
            case = ElementTree.SubElement(suite, "testcase", classname=result["name"], name=row["step"])
            if not row["passed"]:
                ElementTree.SubElement(case, "failure", message=printable(row["feedback"]))
        if errors:
            case = ElementTree.SubElement(suite, "testcase", classname=result["name"], name="grading")
            ElementTree.SubElement(case, "error", message=printable(result.get("trouble", "")))
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def printable(text):
    """XML has no control characters."""
    return "".join(c if c in "\n\t" or ord(c) >= 32 else "?" for c in text)


def cell(text):
    """A spreadsheet would take a cell that begins with = for a formula."""
    return "'" + text if text[:1] in ("=", "+", "-", "@") else text


STYLE = """body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:80em;padding:0 1em}
table{border-collapse:collapse}td,th{padding:.25em .7em;border-bottom:1px solid #8884;text-align:right}
td:first-child,th:first-child,td:last-child,th:last-child{text-align:left}
.no{color:#b3261e}.yes{color:#1a7f37}pre{white-space:pre-wrap;margin:.3em 0}
@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}.no{color:#ff8a80}.yes{color:#7ee787}}"""

BARS = """.axis{position:relative;width:16em;height:1em;background:#8882}.bar,.interval{position:absolute;top:0;bottom:0}
.bar{left:0;background:#3b82f6}.interval{background:#f59e0b}"""


def write_leaderboard(out, assignment, results, device):
    """leaderboard.csv and leaderboard.html: those that were timed, with intervals."""
    fields = ["place", "name", "speed-up", "low", "high", "us", "baseline us", "of roof", "samples", "least MHz",
              "most MHz"]
    rows = []
    for place, result in speed.leaderboard(results):
        one = result["outcome"]["speed"]
        rows.append([place, result["name"], f"{one['ratio']:.3f}", f"{one['low']:.3f}", f"{one['high']:.3f}",
                     f"{one['us']:.1f}", f"{one['baseline_us']:.1f}", f"{one['of_roof']:.3f}", one["samples"],
                     one["least_mhz"], one["most_mhz"]])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(fields)
    writer.writerows([row[0], cell(row[1]), *row[2:]] for row in rows)
    write_text(out / "leaderboard.csv", text.getvalue())
    # A bar per submission: its interval, on a common axis from zero.
    longest = max((float(row[4]) for row in rows), default=1)
    lines = []
    for row in rows:
        low, high = (100 * float(row[i]) / longest for i in (3, 4))
        bar = (f'<div class="axis"><div class="bar" style="width:{low:.2f}%"></div><div class="interval" '
               f'style="left:{low:.2f}%;width:{max(high - low, 0.4):.2f}%"></div></div>')
        lines.append("<tr>" + "".join(f"<td>{html.escape(str(value))}</td>" for value in (
            row[0], row[1], row[2], f"{row[3]} to {row[4]}", row[5], f"{100 * float(row[7]):.0f} %")) +
            f"<td>{bar}</td></tr>")
    heads = "".join(f"<th>{name}</th>" for name in ("place", "submission", "speed-up", "95 % interval", "us",
                                                    "of roof", "speed-up and its interval"))
    write_text(out / "leaderboard.html", (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Leaderboard</title><style>{STYLE}{BARS}</style>'
        f"<h1>{html.escape(assignment.title)}: leaderboard</h1><p>Speed-up over {html.escape(assignment.baseline[2])} "
        f"at {html.escape(' x '.join(map(str, assignment.speed['size'])))}, on {html.escape(device)}, "
        f"{time.strftime('%Y-%m-%d')}. Intervals that overlap share a place.</p>"
        f"<table><tr>{heads}</tr>{''.join(lines)}</table></html>\n"))


def page(assignment, results):
    """The overview, without a script: one row per submission, what was said to whom below it."""
    steps = [step for step in NAMES if assignment.points[step] > 0]
    out_of = max((result["of"] for result in results), default=0)
    rows = []
    for result in results:
        by_step = {row["step"]: row for row in result["steps"]}
        cells = "".join(
            f'<td class="{"yes" if by_step[step]["passed"] else "no"}">{by_step[step]["points"]:g}</td>'
            if step in by_step else "<td>-</td>" for step in steps)
        notes = []
        if result.get("trouble"):
            notes.append("not graded: " + result["trouble"])
        elif result["steps"] and result["steps"][0]["feedback"]:  # no step but the first was done
            notes.append(first_line(result["steps"][0]["feedback"])[:120])
        if result.get("note"):
            notes.append(result["note"])
        if result.get("same_as"):
            notes.append("the same text as " + ", ".join(result["same_as"]))
        text = html.escape("\n".join([*notes, feedback(result)]))
        rows.append(f"<tr><td>{html.escape(result['name'])}</td><td>{result['score']:g}</td>{cells}"
                    f"<td><details><summary>{html.escape('; '.join(notes)) or 'feedback'}</summary><pre>{text}</pre>"
                    "</details></td></tr>")
    scores = sorted(result["score"] for result in results)
    median = scores[len(scores) // 2] if scores else 0
    heads = "".join(f"<th>{html.escape(NAMES[step])}<br>{assignment.points[step]:g}</th>" for step in steps)
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(assignment.title)}</title>'
            f"<style>{STYLE}</style><h1>{html.escape(assignment.title)}</h1><p>{len(results)} submissions; median "
            f"{median:g} of {out_of:g} points.</p><table><tr><th>submission</th><th>points</th>"
            f"{heads}<th></th></tr>{''.join(rows)}</table></html>\n")


def write_all(out, assignment, results):
    out.mkdir(parents=True, exist_ok=True)
    steps = list(NAMES)
    partial = out / "grades.csv.partial"
    with open(partial, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "score", "of", *steps, "first failure", "same text as"])
        for result in results:
            by_step = {row["step"]: row for row in result["steps"]}
            wrong = next((row for row in result["steps"] if not row["passed"]), None)
            why = result.get("trouble") or (f"{wrong['step']}: {first_line(wrong['feedback'])}"
                                            if wrong and wrong["feedback"] else "")
            writer.writerow([cell(result["name"]), result["score"], result["of"],
                             *(by_step[step]["points"] if step in by_step else "" for step in steps), cell(why),
                             cell(" ".join(result.get("same_as", [])))])
    os.replace(partial, out / "grades.csv")
    for result in results:
        name = handed_in.file_name(result["name"])
        write_text(out / "feedback" / f"{name}.txt", feedback(result) + "\n")
        write_json(out / "gradescope" / name / "results.json", gradescope(result))
    write_text(out / "junit.xml", junit(assignment, results))
    write_text(out / "index.html", page(assignment, results))
