# SPDX-License-Identifier: MIT
"""What ./run grade writes: grades.csv, index.html, feedback, Gradescope's results.json, JUnit XML."""
import csv
import html
import json
import os
from xml.etree import ElementTree

NAMES = {"compiles": "compiles", "public_sizes": "sizes that were handed out", "hidden_sizes": "other sizes",
         "inputs": "kinds of input", "layouts": "rows and bases that start anywhere",
         "schedules": "orders of blocks and of asynchronous copies", "races": "no race, nothing out of bounds",
         "claims": "mechanism"}


def write_text(path, text):
    """Whole or not at all: an interrupted run leaves no half of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text)
    os.replace(partial, path)


def write_json(path, value):
    write_text(path, json.dumps(value, indent=1) + "\n")


def feedback(result):
    """The text for the student."""
    if not result["steps"]:
        return f"{result['name']}: not graded"
    rows = [f"{result['name']}: {result['score']:g} of {result['of']:g} points"]
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
    return {"score": result["score"], "execution_time": round(result["seconds"]), "output": feedback(result),
            "output_format": "text", "test_output_format": "text", "visibility": "visible",
            "stdout_visibility": "hidden", "tests": tests,
            "leaderboard": [{"name": "Score", "value": result["score"]}]}


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


def page(assignment, results):
    """The overview, without a script: one row per submission, what was said to whom below it."""
    steps = [step for step in NAMES if assignment.points[step] > 0]
    rows = []
    for result in results:
        by_step = {row["step"]: row for row in result["steps"]}
        cells = "".join(
            f'<td class="{"yes" if by_step[step]["passed"] else "no"}">{by_step[step]["points"]:g}</td>'
            if step in by_step else "<td>-</td>" for step in steps)
        notes = []
        if result.get("trouble"):
            notes.append("not graded: " + result["trouble"])
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
            f"{median:g} of {sum(assignment.points.values()):g} points.</p><table><tr><th>submission</th><th>points</th>"
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
            why = result.get("trouble") or (f"{wrong['step']}: {wrong['feedback'].splitlines()[0]}"
                                            if wrong and wrong["feedback"] else "")
            writer.writerow([cell(result["name"]), result["score"], result["of"],
                             *(by_step[step]["points"] if step in by_step else "" for step in steps), cell(why),
                             cell(" ".join(result.get("same_as", [])))])
    os.replace(partial, out / "grades.csv")
    for result in results:
        write_text(out / "feedback" / f"{result['name']}.txt", feedback(result) + "\n")
        write_json(out / "gradescope" / result["name"] / "results.json", gradescope(result))
    write_text(out / "junit.xml", junit(assignment, results))
    write_text(out / "index.html", page(assignment, results))
