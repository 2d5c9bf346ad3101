#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exercises to read: answers that are computed without the tracer pass, others do not, and garbled files are refused.

  tests/exercises/read_test.py BUILD [--seeds 50] [EXERCISE...]
"""
import argparse
import contextlib
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/exercises"), str(ROOT / "tests/exercises")]
import catalogue  # noqa: E402
import reading  # noqa: E402
from formulas import FORMULAS  # noqa: E402

COMMAND = importlib.util.spec_from_file_location("command", ROOT / "tools/exercises/__main__.py")
command = importlib.util.module_from_spec(COMMAND)
COMMAND.loader.exec_module(command)
parser = argparse.ArgumentParser()
parser.add_argument("build", type=Path)
parser.add_argument("--seeds", type=int, default=5)
parser.add_argument("only", nargs="*")
given = parser.parse_intermixed_args()
BUILD = str(given.build.resolve())


def exercises():
    return [one for one in catalogue.all_exercises() if one.kind == "read" and (not given.only or one.key in given.only)]


def graded(key, answers, variant="0"):
    """(exit status, stdout, stderr) of a file of answers with this text, or these bytes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answers.txt"
        file.write_bytes(answers if isinstance(answers, bytes) else answers.encode())
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = command.main(["read", key, "--build", BUILD, "--variant", variant, "--answers", str(file)])
        return status, out.getvalue(), err.getvalue().replace(str(file), "FILE")


def as_file(answers):
    return "".join(f"{name} = {value:.2f}\n" if value != int(value) else f"{name} = {int(value):,}\n"
                   for name, value in answers.items())


class Reading(unittest.TestCase):
    def test_what_is_computed_is_what_the_tracer_counts(self):
        for exercise in exercises():
            seen = set()
            for seed in range(given.seeds):
                with self.subTest(exercise=exercise.key, seed=seed):
                    variant = reading.Variant(exercise, seed)
                    answers = {name: value for name, (value, _) in variant.answers(BUILD).items()}
                    computed = FORMULAS[exercise.key](**variant.values)
                    self.assertEqual({name: answers[name] for name in computed}, computed, variant.values)
                    for question in variant.questions:
                        variant.filled(question["ask"])
                    seen.add(tuple(answers.values()))
            # A class shares no answer: seeds differ, but for some that meet by chance.
            with self.subTest(exercise=exercise.key):
                self.assertGreaterEqual(len(seen), min(given.seeds, 5) - 2)

    def test_every_question_has_a_formula(self):
        self.assertEqual(sorted(FORMULAS), sorted(one.key for one in catalogue.all_exercises() if one.kind == "read"))
        for exercise in exercises():
            for question in exercise.data["questions"]:
                spec = {name: catalogue.options_of(options)[0] for name, options in exercise.data["draw"].items()}
                self.assertIn(question["name"], FORMULAS[exercise.key](**spec), exercise.key)

    def test_right_answers_pass_and_others_do_not(self):
        variants = [{name: value for name, (value, _) in reading.Variant(catalogue.find("1.11"), seed).answers(BUILD).items()}
                    for seed in (0, 17)]
        right = as_file(variants[0])
        status, out, _ = graded("1.11", right)
        self.assertEqual((status, "exercise 1.11, variant 0: passed" in out), (0, True), out)
        status, out, _ = graded("1.11", right, "17")  # those of another variant
        self.assertEqual((status, "variant 17: not yet" in out), (1, True), out)
        self.assertEqual(graded("1.11", as_file(variants[1]), "17")[0], 0)
        # Whatever the file says of itself, the variant is the grader's.
        self.assertEqual(graded("1.11", f"# variant 0\n{right}", "17")[0], 1)
        for name in variants[0]:
            wrong = as_file({**variants[0], name: variants[0][name] + 1})
            status, out, _ = graded("1.11", wrong)
            self.assertEqual((status, out.count("FAIL"), f"FAIL  {name}" in out), (1, 1, True), out)
            self.assertNotIn(f"{int(variants[0][name]):,}", out.partition("Your answers")[2])
        # A likely mistake has an answer of its own.
        status, out, _ = graded("1.11", as_file({**variants[0], "load_requests": reading.Variant(
            catalogue.find("1.11"), 0).values["n"]}))
        self.assertEqual((status, "counts threads" in out), (1, True), out)
        status, out, _ = graded("1.11", right.replace(right.split()[2], "?"))
        self.assertEqual((status, "   ?  load_requests" in out), (1, True), out)

    def test_a_file_that_is_none_is_refused_in_one_line(self):
        for text, said in (("load_requests: 3", "FILE:1: expected NAME = NUMBER, such as load_requests = 128; got 'load_requests: 3'"),
                           ("a = 3", "FILE:1: no question is called a; they are load_requests, store_sectors, load_sectors"),
                           ("load_requests = 1\nload_requests = 1", "FILE:2: load_requests is answered twice"),
                           ("load_requests = nan", "FILE:1: expected NAME"), ("load_requests = 0x10", "FILE:1: expected NAME"),
                           ("load_requests = __import__('os')", "FILE:1: expected NAME"),
                           ("load_requests = " + "9" * 400, "FILE:1: load_requests has too many digits"),
                           ("load_requests = 1\x1b[2J", "got 'load_requests = 1?[2J'"), (b"\xff\xfe", "FILE: not UTF-8 text"),
                           ("# long\n" * 4000, "FILE: more than 16 KiB is no file of answers")):
            with self.subTest(text[:40]):
                status, _, err = graded("1.11", text)
                self.assertEqual((status, err.count("\n"), said in err), (2, 1, True), err)
        for variant in ("-1", "x", "9" * 11, "1.5", ""):
            status, _, err = graded("1.11", "", variant)
            self.assertEqual((status, err), (2, f"exercise: --variant takes a whole number from 0 to 1000000000; got '{variant}'\n"))
        self.assertEqual(graded("1.1", "")[0], 2)


class InAClass(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_it(self, script, *arguments):
        """(exit status, what it said)"""
        done = subprocess.run([sys.executable, "-B", ROOT / "tools/grading" / script, "--build", BUILD, *arguments],
                              capture_output=True, text=True, env={**os.environ, "COOKBOOK_CALLER": str(self.folder)})
        return done.returncode, done.stdout + done.stderr

    def test_each_has_a_variant_of_their_own(self):
        (self.folder / "names").write_text("ada\nbob\n")
        status, said = self.run_it("make.py", "new", "task", "--from", "1.11", "--students", "names")
        self.assertEqual(status, 0, said)
        data = json.loads((self.folder / "task/assignment.json").read_text())
        self.assertEqual(sorted(data["variants"]), ["ada", "bob"])
        exercise, right = catalogue.find("1.11"), {}
        for name, number in data["variants"].items():
            question = (self.folder / "task/handouts" / name / "question.txt").read_text()
            variant = reading.Variant(exercise, number)
            self.assertIn(variant.filled("n = {n} floats"), question)
            self.assertIn("load_sectors: sectors that", question)
            self.assertEqual((self.folder / "task/handouts" / name / exercise.file.name).read_text(), reading.blank(exercise, number))
            right[name] = as_file({one: value for one, (value, _) in variant.answers(BUILD).items()})
        class_of = {"ada": right["ada"], "bob": right["ada"], "eve": right["bob"]}
        (self.folder / "class").mkdir()
        for name, text in class_of.items():
            (self.folder / f"class/{name}.txt").write_text(text)
        status, said = self.run_it("grade.py", "task", "class", "--out", "grades")
        self.assertEqual(status, 0, said)
        feedback = {name: (self.folder / f"grades/feedback/{name}.txt").read_text() for name in class_of}
        self.assertIn("ada: 100 of 100", feedback["ada"])
        number = data["variants"]["ada"]
        self.assertIn(f"note: variant {number} (seed 1.11/{number})\n", feedback["ada"] + "\n")
        # What a file says of itself is told, and changes nothing.
        said = f"# Variant {number} of exercise 1.11\n"
        (self.folder / "other").mkdir()
        (self.folder / "other/bob.txt").write_text(said + right["bob"])
        status, told = self.run_it("grade.py", "task", "other")
        self.assertIn("bob: 100 of 100", told)
        self.assertIn(f", though the file says that it answers variant {number}\n", told)
        self.assertNotIn("bob: 100", feedback["bob"])  # with another's numbers
        for text in re.findall(r"= ([0-9,]+)", right["bob"]):
            self.assertNotIn(text, re.sub("note: .*", "", feedback["bob"]))
        self.assertIn("no variant for eve", feedback["eve"])
        (self.folder / "class/bob.txt").write_text("load_requests: 3")
        status, said = self.run_it("grade.py", "task", "class/bob.txt")
        self.assertEqual((status, "answers:1: expected NAME = NUMBER" in said), (0, True), said)

    def test_what_is_wrong_is_said_in_one_line(self):
        for arguments, line in ((("--variant", "x"), "--variant takes a whole number from 0 to 1000000000; got 'x'"),
                                (("--students", "gone"), "gone: No such file or directory")):
            self.assertEqual(self.run_it("make.py", "new", "task", "--from", "1.11", *arguments), (2, f"assignment: {line}\n"))
        (self.folder / "task").mkdir()
        (self.folder / "a.txt").write_text("")
        path = self.folder / "task/assignment.json"
        for change, line in (({"read": "1.1"}, "1.1 is no exercise to read"), ({"read": "1"}, "read is an exercise, such as 1.11"),
                             ({"variant": -1}, "variant, and each of variants, is a whole number from 0 to 1000000000"),
                             ({"sizes": []}, "unknown field 'sizes'"), ({"points": 0}, "points is a number above 0"),
                             ({"title": 3}, "the field 'title' is missing or empty")):
            path.write_text(json.dumps({"title": "a", "read": "1.11", "variant": 17, **change}))
            self.assertEqual(self.run_it("grade.py", "task", "a.txt"), (2, f"grade: {path}: {line}\n"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
