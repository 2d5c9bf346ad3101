# SPDX-License-Identifier: MIT
"""./run assignment new DIR --from 3.1: an assignment from an exercise of the book (docs/teaching.md).

Marks the student's part, draws hidden sizes and seeds, and grades the book's solution: a size at which the
solution is not right, or does not do what it claims, is not kept.
"""
import argparse
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import answers
import assignment as assignments
import build
import grade
import report
import sandbox
from assignment import BEGIN, END, ROOT, BadAssignment, BadSubmission

sys.path.insert(0, str(ROOT / "tools/exercises"))
import catalogue
import questions
import solution
import variants
from catalogue import BadExercise
from solution import level_in


def describe(program, number):
    """What the chapter's program says about an exercise."""
    done = subprocess.run([str(program), "--exercise", str(number), "--describe"], capture_output=True, text=True)
    if done.returncode != 0:
        raise BadAssignment(done.stderr.strip() or f"{program} --describe failed")
    found = json.loads(done.stdout)
    found["file"] = ROOT / found["file"][found["file"].index("chapters/"):]
    return found


def run_of(rows):
    """(first, last exclusive) of the level's function `run`, or None."""
    begin = next((i for i, row in enumerate(rows) if row.startswith("  static void run(")), None)
    return None if begin is None else (begin, next(i for i in range(begin, len(rows)) if rows[i] == "  }") + 1)


def run_text(text):
    rows = text.split("\n")
    at = run_of(rows)
    return rows[at[0]:at[1]] if at else []


def mark(text, with_run=False):
    """The file with marks around what precedes its level, the code inside the innermost namespace, and with
    `with_run` around the level's `run`, too."""
    rows = text.split("\n")
    if assignments.find_regions(text):
        return text
    if with_run:
        begin, end = run_of(rows)
        rows[begin:end] = ["  " + BEGIN, *rows[begin:end], "  " + END]
    _, struct = level_in(text)
    while struct > 0 and re.match(r"(///|template)", rows[struct - 1]):
        struct -= 1
    begin = max(i for i in range(struct) if re.match(r"namespace [\w:]+ \{", rows[i])) + 1
    # Above all there may be a namespace that ends before the level.
    end = next((i for i in range(begin, struct) if re.match(r"\}  // namespace", rows[i])), struct)
    while begin < end and (not rows[begin].strip() or re.match(r"using ", rows[begin])):
        begin += 1
    while end > begin and not rows[end - 1].strip():
        end -= 1
    if begin >= end:
        raise BadAssignment(f"cannot tell which part is the student's: write '{BEGIN}' and '{END}' around it")
    return "\n".join([*rows[:begin], BEGIN, *rows[begin:end], END, *rows[end:]])


def near(size, draw, common):
    """A size of the same kind: each extent changed by up to a half. Half of them stay the multiples of powers
    of two that they were: what is right only there is right somewhere. `common`: what every extent is a multiple of,
    because the problem asks for it."""
    found, keep = [], draw.random() < 0.5
    for extent, step in zip(size, common):
        if draw.random() < 0.3:  # for problems whose extents depend on each other
            found.append(extent)
            continue
        if keep and extent > 0:
            step = math.lcm(step, min(extent & -extent, 64))
        low, high = max(1, extent // 2 // step), max(2, extent * 3 // 2 // step)
        found.append(draw.randint(low, high) * step if extent > 1 else draw.choice([1, 1, 2, 3, 5]))
    return found


def hidden_sizes(known, draw, count):
    """Sizes drawn around those that everyone knows, none of them among these."""
    found, common = [], [math.gcd(*extents) for extents in zip(*known)]
    for _ in range(20 * count):
        size = near(draw.choice(known), draw, common)
        if size not in known and size not in found:
            found.append(size)
        if len(found) == count:
            break
    return found


def scaled(size, draw, count=8):
    """Sizes at which the same claims may be made, of at most about the traced one's work: out of thousands. The claims may
    need extents that are multiples of something, and nobody knows of what: so some sizes have multiples of 1 to 32, others
    of the power of two that the traced size's extent is, up to 256, and `choose` takes the finest at which the solution does what it
    claims."""
    found = []
    for attempt in range(100 * count):
        steps = [min(extent & -extent, draw.choice(((1, 8), (8, 32), (128,), (256,))[attempt % 4])) if extent else 1
                 for extent in size]
        other = [draw.randint(max(1, extent // 4 // step), max(1, 3 * extent // step)) * step if extent > 1 else extent
                 for extent, step in zip(size, steps)]
        if math.prod(other) <= 1.1 * math.prod(size) and other != list(size) and other not in found:
            found.append(other)
        if len(found) == count:
            break
    return found


def solution_of(file):
    """The text of the book's solution of an exercise, or None."""
    edits = solution.edits_of(file, ROOT)
    return solution.solve(file.read_text(), edits.read_text(), edits.name) if edits.is_file() else None


def try_solution(folder, text, build_folder):
    """What the grader finds in the solution."""
    assignment = assignments.Assignment(folder)
    assignment.drawing = True
    # There are more sizes than a submission will have, and the code is the teacher's.
    assignment.limits.update({name: 4 * assignment.limits[name] for name in ("seconds", "cpu_seconds")})
    builder = build.Builder(build_folder, assignment)
    builder.prepare()
    with tempfile.TemporaryDirectory() as out:
        graded = grade.Class(assignment, builder, Path(out), 1, True)
        outcome = graded.run(*grade.admit(text, {}, assignment))
    if outcome.get("ended"):
        raise BadAssignment(f"the solution: {outcome['ended']}")
    return assignment, outcome["checks"]


def is_to_read(key):
    """Whether it is an exercise with questions. One without a data file is a kernel."""
    try:
        return catalogue.find(key).kind == "read"
    except BadExercise:
        return False


def new(arguments, caller):
    """Makes the folder. Returns what the grader found in the solution and in the file that is handed out."""
    match = re.fullmatch(r"(\d+)\.(\d+)", arguments.exercise)
    if not match:
        raise BadAssignment("--from takes CHAPTER.NUMBER, such as 3.1")
    folder = caller / arguments.folder
    if (folder / "assignment.json").exists():
        raise BadAssignment(f"{arguments.folder} has an assignment.json already")
    number = None if arguments.variant is None else catalogue.variant_of(arguments.variant)
    if is_to_read(arguments.exercise):
        names = answers.read_names(caller / arguments.students, arguments.students) if arguments.students else []
        draw = random.Random(arguments.seed) if arguments.seed is not None else random.SystemRandom()
        answers.new(folder, arguments.exercise, arguments.folder, number, names, draw, questions.handout)
        return [], []
    if arguments.students:
        raise BadAssignment("--students is for exercises to read: of a kernel, all get the same variant")
    found = describe(Path(arguments.build) / f"chapter-{match[1]}", match[2])
    source, pinned = found["file"].read_text(), ""
    own = caller / arguments.solution if arguments.solution else None
    solved = solution_of(found["file"]) if own is None else own.read_text() if own.is_file() else None
    if number is not None:
        of_exercise = variants.Variants(catalogue.find(arguments.exercise))
        numbers, _ = of_exercise.choice(number)
        source, pinned = of_exercise.handed_out(number), of_exercise.pin(number)
        solved = of_exercise.solved(numbers) if own is None else solved
    if solved is None:
        raise BadAssignment("there is no solution to try the sizes with: --solution names its file")
    level, _ = level_in(source)
    # Where the solution launches otherwise, the student has to.
    with_run = run_text(source) != run_text(solved)
    source, solved = mark(source, with_run), mark(solved, with_run)
    name = re.sub(r"^exercise_\d+_", "", found["file"].name)
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(arguments.seed) if arguments.seed is not None else random.SystemRandom()
    known = found["test_sizes"]
    data = {
        "title": f"Exercise {arguments.exercise}{'' if number is None else f', variant {number}'}: {found['title']}",
        "exercise": arguments.exercise, "file": name, "level": level, "public_sizes": known,
        "hidden_sizes": hidden_sizes(known, draw, max(6, len(known) // 2)), "trace_sizes": [found["trace_size"]],
        "hidden_trace_sizes": scaled(found["trace_size"], draw),
        "seeds": [draw.randint(1, 2**62) for _ in range(8)],
        "points": {step: points for step, points in assignments.STEPS.items() if step != "speed"},
        "limits": dict(assignments.LIMITS),
    }
    if found["capability"]:
        data["capability"] = found["capability"]
    if number is not None:
        data.update(variant=number, **({"pinned": pinned} if pinned else {}))
    (folder / name).write_text(source)
    path = folder / "assignment.json"
    report.write_json(path, data)
    try:
        print("Grading the solution, to choose sizes ...", file=sys.stderr, flush=True)
        for attempt in range(3):
            assignment, checks = try_solution(folder, solved, arguments.build)
            try:
                choose(data, checks, attempt < 2)
                break
            except BadAssignment:
                if attempt == 2:
                    raise
                data["hidden_sizes"] = hidden_sizes(known, draw, max(6, len(known) // 2) << (attempt + 1))
                data["hidden_trace_sizes"] = scaled(found["trace_size"], draw)
                report.write_json(path, data)
        report.write_json(path, data)
        kept = data["hidden_sizes"] + data["hidden_trace_sizes"]
        of_solution = [check for check in checks if not check["hidden"] or check["size"] in kept]
        wrong = [check for check in of_solution if not check["passed"]]
        if wrong:
            raise BadAssignment(f"the solution does not pass: {wrong[0]['what']}: {wrong[0]['reason']}")
        of_given = try_solution(folder, assignment.text, arguments.build)[1]
        weigh(data, of_given)
        report.write_json(path, data)
    except (BadAssignment, BadSubmission, build.DoesNotCompile):
        path.unlink()
        (folder / name).unlink()
        raise
    print(f"{arguments.folder}: {len(data['hidden_sizes'])} hidden sizes, {sum(data['points'].values())} points")
    print(f"  hand out  {arguments.folder}/{name}")
    if number is not None:
        print(f"  variant   {number}; those of {', '.join(map(str, of_exercise.different()))} differ from each other")
    print(f"  keep      {arguments.folder}/assignment.json (hidden sizes and seeds)")
    print(f"  grade     ./run grade {arguments.folder} SUBMISSIONS --out GRADES")
    return of_solution, of_given


def choose(data, checks, need_traced=False):
    """Keeps the hidden sizes at which the solution passed, two hidden traced sizes, and points for steps that
    check something."""
    sizes = sorted(data["hidden_sizes"])
    # The grader goes from small to large and says only that a size is hidden: by its order there.
    mine = [check for check in checks if check["step"] == "hidden_sizes"]
    by_size = {tuple(check["size"]): check["passed"] for check in mine}
    data["hidden_sizes"] = [size for size in sizes if by_size.get(tuple(size))]
    traced = [check for check in checks if check["hidden"] and check["step"] in ("races", "claims") and "size" in check]
    bad = {tuple(check["size"]) for check in traced if not check["passed"]}
    good = {tuple(check["size"]) for check in traced} - bad
    # The finest first: there are the most of them.
    data["hidden_trace_sizes"] = sorted(
        (size for size in data["hidden_trace_sizes"] if tuple(size) in good and by_size.get(tuple(size), True)),
        key=lambda size: math.prod(min(extent & -extent, 256) for extent in size if extent))[:2]
    if need_traced and traced and not data["hidden_trace_sizes"]:
        raise BadAssignment("the solution does not do what it claims at any traced size that was drawn")
    if len(data["hidden_sizes"]) < 3:
        reason = next((check["reason"] for check in mine if not check["passed"]), "the problem cannot have the others")
        raise BadAssignment(f"the solution is right at {len(data['hidden_sizes'])} of the sizes that were drawn, and 3 are "
                            f"needed: {reason}")
    for step in ("layouts", "claims"):
        if not any(check["step"] == step for check in checks) and data["points"][step]:
            data["points"]["hidden_sizes"] += data["points"][step]
            data["points"][step] = 0


def weigh(data, checks):
    """Most points for what the file does not do as it is handed out."""
    said = {check["claim"]: check["what"] for check in checks if check["step"] == "claims" and not check["hidden"]}
    claims = set(said.values())
    missed = {said[check["claim"]] for check in checks if check["step"] == "claims" and not check["passed"]
              and check["claim"] in said}
    if all(check["passed"] for check in checks if check["step"] == "public_sizes") and missed:
        others = {step: 5 for step in data["points"] if data["points"][step] > 0}
        data["points"].update(others, claims=0)
        data["points"]["claims"] = 100 - sum(data["points"].values())
        if claims - missed:
            data["claim_points"] = {claim: 3 * len(claims) if claim in missed else 1 for claim in sorted(claims)}


def parse_arguments(argv):
    parser = argparse.ArgumentParser(prog="./run assignment", description="Makes an assignment for a class "
                                     "(docs/teaching.md).")
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    parser.add_argument("verb", choices=["new"], help="make the folder of an assignment")
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("--from", dest="exercise", required=True, metavar="CHAPTER.NUMBER", help="the exercise of the "
                        "book, such as 3.1")
    parser.add_argument("--solution", metavar="FILE", help="a solution, instead of the book's: it must pass")
    parser.add_argument("--variant", metavar="N", help="the variant of the exercise: other numbers, another bug (default: as "
                        "it is shipped; of an exercise to read, one that is drawn)")
    parser.add_argument("--students", metavar="FILE", help="of an exercise to read: a name per line, each gets a variant of "
                        "their own")
    parser.add_argument("--seed", type=int, help="draw the same hidden sizes again (default: others each time)")
    return parser.parse_args(argv)


def main(argv):
    arguments = parse_arguments(argv)
    caller = Path(os.environ.get("COOKBOOK_CALLER", os.getcwd()))
    try:
        new(arguments, caller)
    except (BadAssignment, BadSubmission, BadExercise, solution.BadEdits, build.DoesNotCompile, sandbox.TooMuch) as reason:
        print(f"assignment: {reason}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
