# SPDX-License-Identifier: MIT
"""./run grade ASSIGNMENT SUBMISSIONS --out GRADES: grades a class, unattended (docs/teaching.md).

Exit status: 0 everything was graded, 1 something could not be (it is in the list), 2 wrong arguments.
"""
import argparse
import concurrent.futures
import hashlib
import json
import math
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import answers
import assignment as assignments
import build
import handed_in
import lint
import report
import sandbox
import speed
from assignment import BadAssignment, BadSubmission
from handed_in import read_submission

sys.path.insert(0, str(assignments.ROOT / "tools/slurm"))
import job_array

MOST_TEXT = 4000  # of one message

def admit(text, own_files, assignment):
    """(the text that is compiled, the student's headers that it includes, [(first line, text)] of the student's), or
    BadSubmission with the line that must go."""
    spliced, parts = assignments.splice(assignment, text)
    whole = assignment.regions is None
    work = [(assignment.file.name, first, part, own) for first, part, own in parts]
    included = {}
    for file, first, part, own in work:  # grows by what is included
        found = lint.lint(part, first, region=not whole, includes=[*assignment.includes, *own_files],
                          own_tags=lint.tags_of(own), workspaces=whole and assignment.uses_workspaces,
                          macros=assignment.macros, known=assignment.known)
        if found:
            line, message = found[0]
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            raise BadSubmission(f"{file}:{line}: {message}{more}")
        for name in lint.includes_in(part) if whole else []:
            if name in own_files and name not in included:
                included[name] = own_files[name]
                work.append((name, 1, own_files[name], ""))
    if not lint.says(spliced, assignment.pinned):
        raise BadSubmission(f"'{assignment.pinned}' has to stay: your variant has these numbers")
    return spliced, included, [(first, part) for first, part, _ in parts]


def for_student(check):
    """Why a check failed: without anything that is hidden, and without advice to whom runs the grader."""
    text = check["property"] if check["hidden"] else check["reason"]
    return re.sub(r" \(COOKBOOK_TIME_LIMIT or --time-limit sets this\)", "", text)


def score(assignment, outcome):
    """[{step, points, of, passed, feedback}], from what the grader found. Each step needs the ones before it:
    without a right size that was handed out, and one that was not, nothing else counts."""
    checks = outcome.get("checks", [])
    by_step = {step: [check for check in checks if check["step"] == step] for step in assignments.STEPS}
    any_right = {step: any(check["passed"] for check in mine) for step, mine in by_step.items()}
    missing = ""  # why nothing more counts
    if outcome.get("rejected"):
        missing = "not admitted"
    elif outcome.get("ended") and not outcome.get("done"):
        missing = outcome["ended"]
    elif not any_right["public_sizes"]:
        missing = "no size is right"
    elif assignment.data.get("hidden_sizes") and not any_right["hidden_sizes"]:
        missing = "right at some sizes that were handed out, and at no other size"
    rows = []
    for step, mine in by_step.items():
        if step == "speed":
            continue  # the last, and not made of checks
        wrong = [check for check in mine if not check["passed"]]
        part, feedback = 1.0, ""
        if step == "compiles":
            if outcome.get("rejected"):
                part, feedback = 0.0, outcome["rejected"]
        elif step == "claims":
            part, feedback = score_claims(assignment, mine)
            # A mechanism is worth as much as the results that it gives.
            sizes = by_step["public_sizes"] + by_step["hidden_sizes"]
            right = sum(check["passed"] for check in sizes) / len(sizes) if sizes else 0.0
            if right < 1:
                part *= right
                feedback = "; ".join(filter(None, [feedback, f"{100 * right:.0f} % of the sizes are right"]))
            if any(not check["passed"] for check in by_step["races"]):
                part, feedback = 0.0, "not counted: the tracer finds a fault"
        elif wrong:
            # They come from the smallest size on.
            part = 0.0 if step == "races" else 1 - len(wrong) / len(mine)
            place = f"{len(wrong)} of {len(mine)} hidden sizes" if step == "hidden_sizes" else wrong[0]["what"]
            feedback = f"{place}: {for_student(wrong[0])}"
        if outcome.get("ended") and step != "compiles" and step not in outcome.get("done", []) and not missing:
            part, feedback = 0.0, f"not finished: {outcome['ended']}"
        if missing and step != "compiles":
            part = 0.0
            if step == "public_sizes":
                feedback = "; ".join(text for text in (feedback, missing) if text)
            elif not (step == "races" and wrong):
                feedback = ""
        rows.append({"step": step, "points": round(part * assignment.points[step], 2), "of": assignment.points[step],
                     "passed": part == 1.0, "feedback": feedback})
    if "speed" in outcome:
        rows.append(speed.score(assignment, rows, outcome["speed"]))
    return rows


def score_claims(assignment, checks):
    """A claim holds where it holds at every size that is counted, and where the result is right there. It is known by
    its number: its text at a hidden size may tell the size."""
    weights, held, why, said = assignment.data.get("claim_points", {}), {}, {}, {}
    for check in checks:
        claim = check.get("claim", check["what"])
        if not check["hidden"]:
            said.setdefault(claim, check["what"])
        held[claim] = held.get(claim, True) and check["passed"]
        if not check["passed"] and claim not in why:
            why[claim] = for_student(check) + (" at a hidden size" if check["hidden"] else "")
    if not held:
        return 1.0, ""
    weight = {claim: weights.get(said.get(claim), 1) for claim in held}
    got = sum(weight[claim] for claim, holds in held.items() if holds)
    return got / sum(weight.values()) if any(weight.values()) else 1.0, \
        "; ".join(f"{said.get(claim, 'a claim')}: {text}" for claim, text in why.items())


def distances(outcome):
    """{number of a claim: how far it is from holding, where it is farthest}"""
    found = {}
    for check in outcome.get("checks", []):
        if check["step"] == "claims":
            far = 0 if check["passed"] else check.get("distance", math.inf)
            found[check["claim"]] = max(found.get(check["claim"], 0), far)
    return found


# Of the lanes and the bytes that a request has in the part as it was handed out. Of a conflict, the fewest turns are two,
# and each has half: at more, nobody takes turns. Fewer lanes with more bytes each, or less of both at some sizes only, is
# another way to move the data.
OF_TURNS = 1 / 2


def without_turns(outcome, given):
    """The outcome in which no claim about a ratio holds only because lanes that conflict access memory in turns."""
    def widths(of):
        return {(check["claim"], *check["size"]): (check["lanes_per_request"], check["bytes_per_request"])
                for check in of.get("checks", []) if "bytes_per_request" in check}
    before = widths(given)
    mine = widths(outcome)
    for check in outcome.get("checks", []):
        at = (check.get("claim"), *check.get("size", ()))
        if check["step"] == "claims" and check["passed"] and at in mine and at in before and \
                all(one <= OF_TURNS * other for one, other in zip(mine[at], before[at])):
            said = "few lanes of a warp access memory at a time, so the ratio says nothing"
            check.update(passed=False, property=said, reason=f"{said}, at line {check['line']}" if "line" in check else said)
            check.pop("distance", None)
    return outcome


def does_more(assignment, outcome, given):
    """Whether a submission does anything that the file does not do as it is handed out: a step that earns more, or a
    claim that is at most half as far from holding (distance_of in grader.cpp)."""
    mine, theirs = score(assignment, outcome), score(assignment, given)
    if any(row["points"] > other["points"] + 1e-9 for row, other in zip(mine, theirs)):
        return True
    far, before = distances(outcome), distances(given)
    return any(far[claim] <= before[claim] / 2 for claim in far if 0 < before.get(claim, 0) < math.inf)


def cleaned(value):
    """A value with texts that can be stored and shown: of bounded length, without control characters."""
    if isinstance(value, str):
        text = value if len(value) <= MOST_TEXT else value[:MOST_TEXT] + " ..."
        return "".join(c if c == "\n" or c.isprintable() else "?" for c in text.encode("utf-8", "replace").decode())
    if isinstance(value, dict):
        return {key: cleaned(one) for key, one in value.items()}
    return [cleaned(one) for one in value] if isinstance(value, list) else value


def renumbered(value, file, moved):
    """A value with texts that name lines of the student's own file, where the text that was compiled has others."""
    if isinstance(value, dict):
        return {key: renumbered(one, file, moved) for key, one in value.items()}
    if isinstance(value, list):
        return [renumbered(one, file, moved) for one in value]
    if not moved or not isinstance(value, str):
        return value
    pattern = rf"(\b{re.escape(file)}:| at line |^  (?=\d+ \| ))(\d+)"
    return re.sub(pattern, lambda match: match[1] + str(moved.get(int(match[2]), match[2])), value, flags=re.MULTILINE)


def edits_outside(assignment, text):
    """The first line outside of the student's parts that is not as it was handed out, or None."""
    def outside(whole):
        rows, begin = [(i, row.strip()) for i, row in enumerate(whole.split("\n"), 1)], 0
        kept = []
        for first, last in assignments.find_regions(whole):
            kept += rows[begin:first]
            begin = last
        return [row for row in kept + rows[begin:] if row[1]]
    if assignment.regions is None:
        return None
    mine, theirs = outside(text.replace("\r\n", "\n")), outside(assignment.text)
    return next((one[0] for one, other in zip(mine, [*theirs, *[(0, "")] * len(mine)]) if one[1] != other[1]), None)


def digest_of(text, own_files):
    return hashlib.sha256(json.dumps([text, own_files], sort_keys=True).encode()).hexdigest()[:16]


class Class:
    """The grading of all submissions."""

    def __init__(self, assignment, builder, out, jobs, again):
        self.assignment, self.builder, self.out, self.jobs, self.again = assignment, builder, out, jobs, again
        self.given = None
        self.lock = threading.Lock()
        self.slots = list(range(jobs))
        own = Path(__file__).resolve().parent
        scripts = [(own / f"{name}.py").read_text() for name in ("assignment", "build", "grade", "handed_in", "lint", "objects",
                                                                "speed")]
        state = [assignment.data, builder.digest, scripts]
        self.digest = hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()[:16]

    def grade_given(self):
        """What the file does as it is handed out, kept beside the grader. None where that says nothing: it earns all, it
        is graded by its speed, or it does not run."""
        if self.assignment.regions is None or self.assignment.speed:
            return None
        kept = self.builder.folder / f"given-{self.digest}.json"
        try:
            outcome = json.loads(kept.read_text())
        except (OSError, ValueError):
            try:
                outcome = self.run(*admit(self.assignment.text, {}, self.assignment))
            except (BadSubmission, build.DoesNotCompile) as reason:
                outcome = {"rejected": str(reason)}
            if not outcome.get("trouble"):
                report.write_json(kept, outcome)
        rows = score(self.assignment, outcome)
        return outcome if any(row["points"] < row["of"] for row in rows) and outcome.get("checks") else None

    def grade(self, name, path):
        """The result of one submission; from the file of an earlier run where nothing has changed."""
        began, moved = time.monotonic(), {}
        result = {"name": name, "digest": self.digest, "text": digest_of("", {})}
        try:
            text, own_files = read_submission(path, self.assignment)
            result["text"] = digest_of(text, own_files)
            edited = edits_outside(self.assignment, text)
            if edited:
                result["note"] = f"line {edited} is outside of your part: your change there was not taken"
            if not self.again:
                old = self.old_result(name, result["text"])
                if old:
                    return old
            moved = assignments.moved_lines(self.assignment, text)
            spliced, included, parts = admit(text, own_files, self.assignment)
            if self.assignment.regions is not None and \
                    assignments.region_texts(spliced) == assignments.region_texts(self.assignment.text):
                raise BadSubmission("the part is as it was handed out")
            outcome = self.run(spliced, included, parts)
        except BadSubmission as reason:
            outcome = {"rejected": cleaned(str(reason))}
        except build.DoesNotCompile as reason:
            outcome = {"rejected": cleaned(f"does not compile:\n{reason}")}
        except OSError as reason:
            outcome = {"rejected": f"cannot be read: {reason.strerror}"}
        result["outcome"] = renumbered(without_turns(outcome, self.given or {}), self.assignment.file.name, moved)
        result["seconds"] = round(time.monotonic() - began, 1)
        return self.enter(result)

    def enter(self, result):
        """Writes the result with its points."""
        outcome = result["outcome"]
        if self.given and any(row["points"] for row in score(self.assignment, outcome)) and \
                not does_more(self.assignment, outcome, self.given):
            why = [row["feedback"] for row in score(self.assignment, outcome) if row["step"] in ("races", "claims")]
            outcome["rejected"] = "\n".join(filter(None, ["does no more than the part as it was handed out", *why]))
        result["steps"] = score(self.assignment, outcome)
        result["score"] = round(sum(row["points"] for row in result["steps"]), 2)
        result["of"] = sum(row["of"] for row in result["steps"])
        report.write_json(self.result_file(result["name"]),
                          {key: value for key, value in result.items() if key != "kept"})
        return result

    def time_all(self, timing, results, found, jobs):
        """The step `speed`: of those that are right, one after the other."""
        entries = {}
        for result in results:
            if result.get("trouble") or "speed" in result["outcome"]:
                continue  # not graded, or timed before
            if speed.may_be_timed(result["steps"]):
                result["outcome"]["speed"] = {}
                self.enter(result)
                continue
            text, own_files = read_submission(found[result["name"]], self.assignment)
            entries[result["name"]] = admit(text, own_files, self.assignment)[:2]
        outcomes = timing.run(entries, jobs, lambda row: print(row, flush=True))
        for result in results:
            if result["name"] in outcomes:
                result["outcome"]["speed"] = outcomes[result["name"]]
                self.enter(result)

    def old_result(self, name, text):
        path = self.result_file(name)
        try:
            old = json.loads(path.read_text())
        except (OSError, ValueError):
            return None
        same = old.get("digest") == self.digest and old.get("text") == text and not old["outcome"].get("trouble") and \
            not old["outcome"].get("speed", {}).get("trouble")
        return dict(old, kept=True) if same else None

    def run(self, spliced, own_files=None, parts=()):
        with self.lock:
            slot = self.slots.pop()
        folder = Path(tempfile.mkdtemp(prefix="cookbook-grade-"))
        folder.chmod(0o755)
        try:
            box = self.builder.worker(spliced, folder, own_files, slot, parts)
            limits = self.assignment.limits
            of_worker = sandbox.Limits(limits["seconds"], limits["cpu_seconds"], limits["memory_mb"],
                                       limits["processes"], limits["output_mb"])
            (folder / "plan.json").write_text(json.dumps(self.assignment.plan(spliced, parts)))
            command = [str(self.builder.folder / "grader"), str(folder / "plan.json"), str(folder / "out.json"),
                       *sandbox.worker_command(sandbox.kind_of_sandbox(), box, of_worker, slot)]
            # The grader reads what the submission answers.
            command = sandbox.limited(command, max(limits["seconds"], limits["cpu_seconds"]), 2 * limits["memory_mb"] + 4096)
            try:
                status, said = sandbox.run(command, limits["seconds"])
            except sandbox.TooMuch as reason:
                # What was done before counts.
                so_far = json.loads((folder / "out.json").read_text()) if (folder / "out.json").exists() else {}
                return {"checks": so_far.get("checks", []), "done": so_far.get("done", []), "ended": f"grading {reason}"}
            if status != 0 or not (folder / "out.json").exists():
                return {"checks": [], "ended": f"the grader ended with status {status}: {cleaned(said.strip()[-300:])}",
                        "trouble": True}
            return cleaned(json.loads((folder / "out.json").read_text()))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            with self.lock:
                self.slots.append(slot)

    def grade_by_slurm(self, found, jobs, options, command):
        """Each submission in a task of a job array; then what the tasks have written."""
        waiting = {name: path for name, path in found.items() if self.again or not self.has_result(name, path)}
        if waiting:
            for name in waiting:
                self.result_file(name).unlink(missing_ok=True)
            report.write_json(self.out / "slurm" / "tasks.json", list(waiting))
            task = job_array.quoted([sys.executable, "-B", Path(__file__).resolve(), *command])
            job = job_array.submit(self.out / "slurm", "cookbook-grade", len(waiting), jobs, options,
                               f"{task} --task $SLURM_ARRAY_TASK_ID")
            count = lambda: sum(self.result_file(name).exists() for name in waiting)
            job_array.wait(job, count, len(waiting), "graded")
        results = []
        for done, (name, path) in enumerate(found.items(), 1):
            result = self.has_result(name, path)
            if not result:
                log = self.out / "slurm" / f"{list(waiting).index(name)}.log" if name in waiting else ""
                result = self.trouble(name, f"its Slurm task left no result; see {log}")
            results.append(result)
            print(progress(done, len(found), result), flush=True)
        return results

    def has_result(self, name, path):
        """The result of an earlier run, where nothing has changed."""
        try:
            read = read_submission(path, self.assignment)
        except (BadSubmission, OSError):
            read = "", {}
        return self.old_result(name, digest_of(*read))

    def result_file(self, name):
        return self.out / "results" / f"{handed_in.file_name(name)}.json"

    def trouble(self, name, why):
        return {"name": name, "score": 0, "of": sum(self.assignment.points.values()), "steps": [], "seconds": 0,
                "trouble": why}

    def grade_all(self, found):
        results, done = {}, 0
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            try:  # from the first one on
                waiting = {pool.submit(self.grade, name, path): name for name, path in found.items()}
                for future in concurrent.futures.as_completed(waiting):
                    name, done = waiting[future], done + 1
                    try:
                        results[name] = future.result()
                    except Exception as error:  # of the grader: the others are graded all the same
                        results[name] = self.trouble(name, f"{type(error).__name__}: {error}")
                    print(progress(done, len(found), results[name]), flush=True)
            except (KeyboardInterrupt, SystemExit):
                pool.shutdown(wait=False, cancel_futures=True)
                sandbox.end_all()
                raise
        return [results[name] for name in found]


def first_trouble(result):
    if result.get("trouble"):
        return "NOT GRADED: " + result["trouble"]
    wrong = next((row for row in result["steps"] if not row["passed"]), None)
    return f"{wrong['step']}: {report.first_line(wrong['feedback']) or 'not passed'}" if wrong else ""


def progress(done, of, result):
    width = len(str(of))
    text = f"[{done:{width}}/{of}] {result['name']:<28} {result['score']:6.1f} of {result['of']}"
    time_taken = "kept" if result.get("kept") else f"{result['seconds']:.0f} s"
    return f"{text}  {time_taken:>5}  {first_trouble(result)}"[:200]


def mark_equal(results):
    """Submissions that are equal to the letter are marked, for a person to look at."""
    by_text = {}
    for result in results:
        if result.get("text") and not result.get("outcome", {}).get("rejected"):
            by_text.setdefault(result["text"], []).append(result["name"])
    for result in results:
        same = [name for name in by_text.get(result.get("text"), []) if name != result["name"]]
        if same:
            result["same_as"] = same


def parse_arguments(argv):
    parser = argparse.ArgumentParser(prog="./run grade", description="Grades submissions to an assignment, each in a "
                                     "sandbox (docs/teaching.md).")
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--gpu-build", help=argparse.SUPPRESS)
    parser.add_argument("assignment", metavar="ASSIGNMENT", help="folder with assignment.json")
    parser.add_argument("submissions", metavar="SUBMISSIONS", help="folder with a file or a folder per student, or one "
                        "file")
    parser.add_argument("--out", metavar="GRADES", help="folder for the results (default: print only)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="submissions at a time "
                        "(default: one per core)")
    parser.add_argument("--again", action="store_true", help="grade everything again, also what has a result")
    parser.add_argument("--no-sandbox", action="store_true", help="grade even where no sandbox works: only what you trust")
    parser.add_argument("--slurm", action="store_true", help="as a Slurm job array, --jobs tasks at a time; GRADES "
                        "must lie where all nodes see it")
    parser.add_argument("--sbatch", action="append", default=[], metavar="OPTION", help="an option for sbatch, such as "
                        "--sbatch=--partition=cpu (repeatable)")
    parser.add_argument("--task", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.jobs < 1:
        parser.error("--jobs takes a number of submissions, 1 or more")
    if arguments.slurm and not arguments.out:
        parser.error("--slurm needs --out")
    return arguments


def main(argv):
    """One line and a status for what a teacher can run into."""
    try:
        return grade_class(argv)
    except KeyboardInterrupt:
        print("\nInterrupted: the same command grades the rest.", file=sys.stderr)
        return 130
    except (OSError, RuntimeError) as reason:
        print(f"grade: {reason}", file=sys.stderr)
        return 2


def grade_class(argv):
    arguments = parse_arguments(argv)
    caller = Path(os.environ.get("COOKBOOK_CALLER", os.getcwd()))
    submissions = caller / arguments.submissions
    sandbox.adopt()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        to_read = answers.of_folder(caller / arguments.assignment)
        assignment = to_read or assignments.Assignment(caller / arguments.assignment)
        if not submissions.exists():
            raise BadAssignment(f"there is no {arguments.submissions}")
        found = handed_in.submissions_in(submissions)
        if not found:
            raise BadAssignment(f"{arguments.submissions} has no submissions")
        if arguments.out and submissions.is_dir() and (caller / arguments.out).resolve().is_relative_to(submissions.resolve()):
            raise BadAssignment(f"--out {arguments.out} lies in the folder of the submissions, where it would be graded")
        if to_read:
            if arguments.slurm:
                raise BadAssignment("--slurm is for kernels: files of answers are compared here")
            return answers.grade_class(to_read, found, arguments.build, caller / arguments.out if arguments.out else None)
        if sandbox.kind_of_sandbox() == "limits" and not arguments.no_sandbox:
            raise BadAssignment(sandbox.no_sandbox())
        builder = build.Builder(arguments.build, assignment)
        builder.prepare()
        timing = None
        if assignment.speed and arguments.gpu_build:
            timing = speed.Speed(assignment, arguments.gpu_build, builder.folder / "grader")
    except (BadAssignment, BadSubmission, answers.BadExercise, speed.NoGpu) as reason:
        print(f"grade: {reason}", file=sys.stderr)
        return 2
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        out = caller / arguments.out if arguments.out else Path(temporary)
        graders = Class(assignment, builder, out, arguments.jobs, arguments.again)
        graders.given = graders.grade_given()
        if arguments.task is not None:
            name = json.loads((out / "slurm" / "tasks.json").read_text())[arguments.task]
            result = graders.grade(name, found[name])
            if timing:
                graders.time_all(timing, [result], found, 1)
            print(progress(1, 1, result))
            return 0
        print(f"{assignment.title}: {len(found)} submissions, {arguments.jobs} at a time, in "
              f"{sandbox.describe()}", flush=True)
        if timing:
            print(f"Speed: timed on {timing.describe()}", flush=True)
        elif assignment.speed:
            print("Speed: not graded, because there is no GPU here; its points are left out", flush=True)
        try:
            if arguments.slurm:
                command = ["--build", Path(arguments.build).resolve(), assignment.folder, submissions.resolve(), "--out",
                           out.resolve(), "--jobs", "1", *["--no-sandbox"] * arguments.no_sandbox]
                if timing:
                    command += ["--gpu-build", Path(arguments.gpu_build).resolve()]
                results = graders.grade_by_slurm(found, arguments.jobs, arguments.sbatch, command)
            else:
                results = graders.grade_all(found)
            if timing:
                graders.time_all(timing, results, found, arguments.jobs)
        except job_array.NoSlurm as reason:
            print(f"grade: {reason}", file=sys.stderr)
            return 2
        mark_equal(results)
        if arguments.out:
            report.write_all(out, assignment, results)
            if timing:
                report.write_leaderboard(out, assignment, results, timing.roofs["device"])
    left = sandbox.left_behind()
    if left:
        print(f"grade: ended {left} processes that submissions had left behind", file=sys.stderr)
    if len(results) == 1:
        print(report.feedback(results[0]))
    print(f"{len(results)} graded in {time.monotonic() - began:.0f} s" +
          (f"; open {arguments.out}/index.html" if arguments.out else ""))
    return 1 if any(result.get("trouble") or result.get("outcome", {}).get("trouble") for result in results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
