# SPDX-License-Identifier: MIT
"""What ./run exercise does with an exercise's data file. Takes files as they are seen from the book's folder.

  tools/exercises hint 3.2 1
  tools/exercises read 1.11 --build build/simt [--variant 17] [--answers FILE] [--json FILE]
"""
import argparse
import json
import shutil
import sys
import textwrap
from pathlib import Path

import catalogue
import reading
from catalogue import BadExercise


def wrapped(text, indent="  "):
    width = min(100, shutil.get_terminal_size((100, 24)).columns)
    return "\n".join(textwrap.fill(part, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
                     for part in text.split("\n"))


def question_text(variant):
    """What a student reads."""
    exercise = variant.exercise
    rows = [f"Exercise {exercise.key}, variant {variant.number} · {exercise.data['title']}",
            wrapped(variant.filled(exercise.data["text"])), ""]
    for place, lines in variant.quoted():
        rows += [f"  {place}", *(f"    {line}".rstrip() for line in lines), ""]
    return "\n".join(rows)


def read(arguments):
    exercise = catalogue.find(arguments.exercise)
    if exercise.kind != "read":
        raise BadExercise(f"{exercise.key} is no exercise to read: edit {exercise.shown()}")
    variant = reading.Variant(exercise, catalogue.variant_of(arguments.variant))
    file = Path(arguments.answers) if arguments.answers else exercise.file
    shown = arguments.answers or exercise.shown()
    names = [question["name"] for question in variant.questions]
    given = reading.read_answers(reading.read_file(file, shown), names, shown)
    print(question_text(variant))
    print(f"  Your answers, in {shown}:")
    answers = variant.answers(arguments.build)
    checks = []
    for question in variant.questions:
        answer = given.get(question["name"])
        right, say = reading.judge(question, answers, answer)
        checks.append({"check": question["name"], "passed": right, "fault": "none" if right else "false-claim",
                       "reason": None if right else say})
        print(f"  {'pass' if right else 'FAIL' if answer is not None else '   ?'}  {question['name']}: "
              f"{wrapped(variant.filled(question['ask']), ' ' * 8).strip()}")
        if answer is not None and not right:
            print(wrapped(say, " " * 8))
    passed = all(check["passed"] for check in checks)
    print(f"exercise {exercise.key}, variant {variant.number}: {'passed' if passed else 'not yet'}")
    if arguments.json:
        document = {"schema": 1, "exercise": exercise.key, "name": exercise.name, "variant": variant.number, "passed": passed,
                    "complete": True, "checks": checks}
        Path(arguments.json).write_text(json.dumps(document, indent=1) + "\n")
    return 0 if passed else 1


def show_hint(arguments):
    print(wrapped(catalogue.hint(catalogue.find(arguments.exercise), arguments.which), ""))
    return 0


def main(argv):
    parser = argparse.ArgumentParser(prog="./run exercise", allow_abbrev=False)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("hint")
    one.set_defaults(run=show_hint)
    one.add_argument("exercise")
    one.add_argument("which")
    one = verbs.add_parser("read")
    one.set_defaults(run=read)
    one.add_argument("exercise")
    one.add_argument("--build", required=True, help=argparse.SUPPRESS)
    one.add_argument("--variant", default="0")
    one.add_argument("--answers")
    one.add_argument("--json")
    arguments = parser.parse_args(argv)
    try:
        return arguments.run(arguments)
    except (BadExercise, OSError) as reason:
        print(f"exercise: {reason}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
