# SPDX-License-Identifier: MIT
"""./run grade of an exercise to read: a submission is a file of answers. Nothing of it is compiled or run; the book's own
program counts what the answers are compared with."""
import json
import re
import sys
import tempfile
import time
from pathlib import Path

import assignment as assignments
import handed_in
import report
from assignment import BadAssignment, BadSubmission

sys.path.insert(0, str(assignments.ROOT / "tools/exercises"))
import catalogue
import reading
from catalogue import BadExercise

FIELDS = {"title", "read", "variant", "variants", "points"}


class Reading:
    """The fields of an assignment.json with `read`. What handed_in and report ask of an assignment is here, too."""
    regions, files = (), {}

    def __init__(self, folder, data):
        path = folder / "assignment.json"

        def need(holds, text):
            if not holds:
                raise BadAssignment(f"{path}: {text}")
        need(set(data) <= FIELDS, f"unknown field '{min(set(data) - FIELDS, default='')}'")
        need(isinstance(data["read"], str) and re.fullmatch(r"\d+\.\d+", data["read"]), "read is an exercise, such as 1.11")
        self.title, self.one_for_all = data.get("title"), data.get("variant")
        self.of_student = data.get("variants", {})
        need(isinstance(self.title, str) and self.title, "the field 'title' is missing or empty")
        need(isinstance(self.of_student, dict), "variants is an object: the number of each student's variant by name")
        numbers = [*self.of_student.values(), *([] if self.one_for_all is None else [self.one_for_all])]
        need(numbers and all(type(one) is int and 0 <= one <= catalogue.MOST_VARIANT for one in numbers),
             f"variant, and each of variants, is a whole number from 0 to {catalogue.MOST_VARIANT}")
        points = data.get("points", 100)
        need(type(points) in (int, float) and points > 0, "points is a number above 0")
        self.points = {**dict.fromkeys(assignments.STEPS, 0), "claims": points}
        try:
            self.exercise = catalogue.find(data["read"])
        except BadExercise as reason:
            raise BadAssignment(f"{path}: {reason}") from None
        need(self.exercise.kind == "read", f"{data['read']} is no exercise to read")
        self.file = self.exercise.file
        self.known = {}  # {number of a variant: (the variant, its answers)}

    def variant_of(self, name):
        number = self.of_student.get(name, self.one_for_all)
        if number is None:
            raise BadSubmission(f"the assignment has no variant for {name}: is that the name of the handout?")
        return number

    def answers(self, number, build):
        if number not in self.known:
            variant = reading.Variant(self.exercise, number)
            self.known[number] = variant, variant.answers(build)
        return self.known[number]

    def grade(self, name, path, build):
        """The result of one submission, as report writes it."""
        began, total, note = time.monotonic(), self.points["claims"], ""
        try:
            text, _ = handed_in.read_submission(path, self)
            number = self.variant_of(name)
            variant, answers = self.answers(number, build)
            note = f"variant {number} ({catalogue.seed_of(self.exercise, number)})"
            said = catalogue.said_in(text)
            if said not in (None, number):
                note += f", though the file says that it answers variant {said}"
            given = reading.read_answers(text, list(answers), "answers")
        except (BadSubmission, BadExercise, OSError) as reason:
            right, said, share = 0, [str(reason)], 0.0
        else:
            judged = [(question["name"], *reading.judge(question, answers, given.get(question["name"])))
                      for question in variant.questions]
            right = sum(is_right for _, is_right, _ in judged)
            said = [f"{one}: {say}" for one, is_right, say in judged if not is_right]
            share = right / len(judged)
        points = round(share * total, 2)
        row = {"step": "claims", "points": points, "of": total, "passed": share == 1.0, "feedback": "\n".join(said)}
        return {"name": name, "score": points, "of": total, "steps": [row], "outcome": {}, "note": note,
                "seconds": round(time.monotonic() - began, 1)}


def of_folder(folder):
    """The assignment in this folder if it is one to read; else None, also where the file cannot be read."""
    try:
        data = json.loads((folder / "assignment.json").read_text())
    except (OSError, ValueError):
        return None
    return Reading(folder, data) if isinstance(data, dict) and "read" in data else None


def grade_class(assignment, found, build, out):
    """Grades all submissions; the exit status."""
    results = []
    for done, (name, path) in enumerate(found.items(), 1):
        results.append(assignment.grade(name, path, build))
        print(f"[{done}/{len(found)}] {name:<28} {results[-1]['score']:6.1f} of {results[-1]['of']}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        report.write_all(out or Path(temporary), assignment, results)
    if len(results) == 1:
        print(report.feedback(results[0]))
    return 0


def new(folder, key, shown, number, students, draw, handout):
    """Makes the folder of an assignment. `students`: their names; each then has a variant and a handout of its own."""
    exercise = catalogue.find(key)
    data = {"title": f"Exercise {key}: {exercise.data['title']}", "read": key, "points": 100}
    handouts = {}
    if students:
        data["variants"] = {name: draw.randint(1, catalogue.MOST_VARIANT) for name in students}
        handouts = {folder / "handouts" / handed_in.file_name(name): one for name, one in data["variants"].items()}
    else:
        data["variant"] = draw.randint(1, catalogue.MOST_VARIANT) if number is None else number
        handouts = {folder: data["variant"]}
    for place, one in handouts.items():
        report.write_text(place / "question.txt", handout(reading.Variant(exercise, one)))
        report.write_text(place / exercise.file.name, reading.blank(exercise, one))
    report.write_json(folder / "assignment.json", data)
    what = f"{shown}/handouts/NAME" if students else shown
    print(f"{shown}: 100 points")
    print(f"  hand out  {what}/question.txt and {what}/{exercise.file.name}")
    print(f"  keep      {shown}/assignment.json ({'the variant of each student' if students else 'the variant'})")
    print(f"  grade     ./run grade {shown} SUBMISSIONS --out GRADES")


def read_names(path, shown):
    """The names in a file, one per line."""
    try:
        names = [line.strip() for line in path.read_text().splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as reason:
        raise BadAssignment(f"{shown}: {getattr(reason, 'strerror', 'not UTF-8 text')}") from None
    if not names or len(set(names)) != len(names):
        raise BadAssignment(f"{shown}: one name per line, each once")
    return names
