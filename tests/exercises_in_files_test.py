#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exercises that are a file of numbers, graded by a chapter's program: as they are shipped, solved, and solved wrongly.

  tests/exercises_in_files_test.py BUILD
"""
import json
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = Path(sys.argv[1]).resolve()


class Numbers(unittest.TestCase):
    def graded(self, exercise, file):
        number, name = re.fullmatch(r"exercise_(\d+)_(\w+)", exercise.stem).groups()
        program = f"chapter-{int(exercise.parent.parent.name[:2])}-{name}"
        done = subprocess.run([BUILD / program, "--grade", number, file], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_each(self):
        # Those with questions in a data file are graded by tools/exercises.
        found = sorted(file for file in ROOT.glob("chapters/*/exercises/exercise_*.txt")
                       if json.loads(file.with_suffix(".json").read_text())["kind"] != "read")
        self.assertTrue(found)
        for exercise in found:
            solved = ROOT / "tests/solutions" / exercise.parent.parent.name[:2] / exercise.name
            status, said = self.graded(exercise, exercise)
            self.assertEqual((status, "not yet" in said), (1, True), said)
            status, said = self.graded(exercise, solved)
            self.assertEqual((status, "passed" in said), (0, True), said)
            status, said = self.graded(exercise, solved.with_suffix(".wrong.txt"))
            self.assertEqual((status, "below 2^-20" in said), (1, True), said)
            self.assertEqual(self.graded(exercise, ROOT / "no such file")[0], 2)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
