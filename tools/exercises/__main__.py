# SPDX-License-Identifier: MIT
"""What ./run exercise does with an exercise's data file. Takes files as they are seen from the book's folder.

  tools/exercises hint 3.2 1 [--variant 17]
  tools/exercises read 1.11 --build build/simt [--variant 17] [--answers FILE] [--json FILE]
  tools/exercises numbers 5.7 --build build/simt [--variant 17] [--answers FILE] [--json FILE]
  tools/exercises variant 2.2 17 [--out FILE]       the kernel of a variant, in its place or in a file
  tools/exercises solution 2.2 17 [--build build/simt]  for a teacher: a variant's kernel, solved, or its answers
  tools/exercises tests CHAPTER SEEDS FOLDER        wrong solutions and variants, for tests/solutions/solutions.cmake
  tools/exercises list [--write]                    the table of docs/exercises.md; that of docs/course.md, too, is written
"""
import argparse
import json
import sys
from pathlib import Path

import catalogue
import reading
import solution
import terms
import variants
from catalogue import BadExercise
from questions import text_of, wrapped
from solution import BadEdits


def read(arguments):
    exercise = catalogue.find(arguments.exercise)
    if exercise.kind != "read":
        raise BadExercise(f"{exercise.key} is no exercise to read: edit {exercise.shown()}")
    variant = reading.Variant(exercise, catalogue.variant_of(arguments.variant))
    file = Path(arguments.answers) if arguments.answers else exercise.file
    shown = arguments.answers or exercise.shown()
    names = [question["name"] for question in variant.questions]
    written = reading.read_file(file, shown)
    said = catalogue.said_in(written)
    if not arguments.answers and said != (variant.number or None) and written == reading.blank(exercise, said or 0):
        written, said = reading.blank(exercise, variant.number), variant.number
        file.write_text(written)
    given = reading.read_answers(written, names, shown)
    print(text_of(variant))
    if said not in (None, variant.number):
        print(wrapped(f"The file says that it answers variant {said}. It is compared with variant {variant.number}.") + "\n")
    print(f"  Your answers, in {shown}:")
    answers = variant.answers(arguments.build)
    checks = []
    for question in variant.questions:
        answer = given.get(question["name"])
        right, say = reading.judge(question, answers, answer)
        checks.append({"check": question["name"], "passed": right, "fault": "none" if right else "false-claim",
                       "reason": None if right else say})
        print(f"  {'pass' if right else 'FAIL' if answer is not None else '   ?'}  {question['name']}: "
              f"{wrapped(question['ask'], ' ' * 8).strip()}")
        if answer is not None and not right:
            print(wrapped(say, " " * 8))
    passed = all(check["passed"] for check in checks)
    print(f"exercise {exercise.key}, variant {variant.number}: {'passed' if passed else 'not yet'}")
    return finish(arguments, exercise, variant.number, checks)


def finish(arguments, exercise, number, checks):
    """Writes the JSON that was asked for; the exit status."""
    passed = all(check["passed"] for check in checks)
    if arguments.json:
        document = {"schema": 1, "exercise": exercise.key, "name": exercise.name, "variant": number, "passed": passed,
                    "complete": True, "checks": checks}
        Path(arguments.json).write_text(json.dumps(document, indent=1) + "\n")
    return 0 if passed else 1


def grade_numbers(arguments):
    exercise, number = catalogue.find(arguments.exercise), catalogue.variant_of(arguments.variant)
    if "program" not in exercise.data:
        raise BadExercise(f"{exercise.key} is no file of numbers")
    reason = terms.grade(exercise, number, arguments.build, arguments.answers)
    print(f"exercise {exercise.key}, variant {number}: {f'not yet: {reason}' if reason else 'passed'}")
    return finish(arguments, exercise, number, [{"check": "sums", "passed": not reason,
                                                 "fault": "false-claim" if reason else "none", "reason": reason}])


def show_hint(arguments):
    exercise, number = catalogue.find(arguments.exercise), catalogue.variant_of(arguments.variant)
    hints = variants.Variants(exercise).hints(number) if "variants" in exercise.data else exercise.data["hints"]
    if arguments.which not in ("1", "2"):
        raise BadExercise(f"--hint takes 1 or 2; got '{arguments.which}'")
    # Of a kernel, variants may have other bugs: a hint of another one misleads.
    of = f"Variant {number}: " if "variants" in exercise.data else ""
    print(wrapped(of + hints[int(arguments.which) - 1], ""))
    return 0


def take_variant(arguments):
    exercise, number = catalogue.find(arguments.exercise), catalogue.variant_of(arguments.number)
    found = variants.Variants(exercise)
    if not arguments.out:
        print(found.take(number))
        return 0
    text, out = found.handed_out(number), Path(arguments.out)
    if out.exists() and out.read_text() != text:
        raise BadExercise(f"{arguments.out} is there already, and is not overwritten")
    out.write_text(text)
    print(f"variant {number} of exercise {exercise.key} ({catalogue.seed_of(exercise, number)}) is in {arguments.out}")
    return 0


def show_solution(arguments):
    exercise, number = catalogue.find(arguments.exercise), catalogue.variant_of(arguments.number)
    if exercise.kind == "read":
        for name, (answer, _) in reading.Variant(exercise, number).answers(arguments.build).items():
            print(f"{name} = {answer:,.0f}" if answer == int(answer) else f"{name} = {answer:,.2f}")
    elif exercise.file.suffix == ".cuh":
        found = variants.Variants(exercise) if "variants" in exercise.data else None
        edits = solution.edits_of(exercise.file, catalogue.ROOT).read_text()
        print(found.solved(found.choice(number)[0]) if found else solution.solve(exercise.file.read_text(), edits), end="")
    else:
        raise BadExercise(f"{exercise.key} has many solutions: tests/solutions/ has one of the file as it is shipped")
    return 0


def write_tests(arguments):
    exercises = [one for one in catalogue.all_exercises() if one.chapter == arguments.chapter and one.file.suffix == ".cuh"]
    arguments.folder.mkdir(parents=True, exist_ok=True)
    variants.write_for_tests(exercises, arguments.seeds, arguments.folder)
    return 0


def show_list(arguments):
    if not arguments.write:
        print(catalogue.table())
        return 0
    for name in catalogue.PAGES:
        page = catalogue.ROOT / name
        page.write_text(catalogue.with_table(name, page.read_text()))
    return 0


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"exercise: {message}\n")


def main(argv):
    parser = Parser(prog="./run exercise", allow_abbrev=False)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("hint")
    one.set_defaults(run=show_hint)
    one.add_argument("exercise")
    one.add_argument("which")
    one.add_argument("--variant", default="0")
    for name, run in (("read", read), ("numbers", grade_numbers)):
        one = verbs.add_parser(name)
        one.set_defaults(run=run)
        one.add_argument("exercise")
        one.add_argument("--build", required=True, help=argparse.SUPPRESS)
        one.add_argument("--variant", default="0")
        one.add_argument("--answers")
        one.add_argument("--json")
    one = verbs.add_parser("variant")
    one.set_defaults(run=take_variant)
    one.add_argument("exercise")
    one.add_argument("number")
    one.add_argument("--out")
    one = verbs.add_parser("solution")
    one.set_defaults(run=show_solution)
    one.add_argument("exercise")
    one.add_argument("number")
    one.add_argument("--build", default="build/simt")
    one = verbs.add_parser("tests")
    one.set_defaults(run=write_tests)
    one.add_argument("chapter", type=int)
    one.add_argument("seeds", type=int)
    one.add_argument("folder", type=Path)
    one = verbs.add_parser("list")
    one.set_defaults(run=show_list)
    one.add_argument("--write", action="store_true")
    arguments = parser.parse_args(argv)
    try:
        return arguments.run(arguments)
    except (BadExercise, BadEdits, OSError) as reason:
        print(f"exercise: {reason}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
