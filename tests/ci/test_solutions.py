#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Solutions as edits of their exercises: every file of tests/solutions/ fits, and what does not fit is named."""
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/exercises"))
import solution  # noqa: E402

EXERCISE = "int f() {\n  return 1;\n}\nint g() {\n  return 2;\n}\n"
EDITS = "// Why.\n@@\n int g() {\n-  return 2;\n+  return 3;\n"


class Solutions(unittest.TestCase):
    def test_edits_are_applied(self):
        self.assertEqual(solution.solve(EXERCISE, EDITS), EXERCISE.replace("2", "3"))

    def test_what_does_not_fit_is_named(self):
        for edits, words in ((EDITS.replace("2", "7"), "f.diff:2: its lines are in the exercise 0 times"),
                             ("@@\n-}\n", "f.diff:1: its lines are in the exercise 2 times"),
                             ("@@\n+int h();\n", "f.diff:1: its lines are in the exercise 0 times"),
                             ("@@\n int f() {\n", "f.diff:1: changes nothing"),
                             ("// Why.\n", "f.diff: has no edit"), ("int g();\n" + EDITS, "f.diff:1: begins with none"),
                             (EDITS + "int g();\n", "f.diff:6: begins with none")):
            with self.subTest(words), self.assertRaisesRegex(solution.BadEdits, words):
                solution.solve(EXERCISE, edits, "f.diff")

    def test_every_file_fits_its_exercise(self):
        edits = sorted((ROOT / "tests/solutions").glob("*/*.diff"))
        self.assertGreater(len(edits), 30)
        for path in edits:
            name = path.name.split(".")[0] + ".cuh"
            exercise, = [*ROOT.glob(f"chapters/{path.parent.name}_*/exercises/{name}"),
                         *ROOT.glob(f"capstones/{path.parent.name}/exercises/{name}")]
            with self.subTest(path.name):
                solution.solve(exercise.read_text(), path.read_text(), path)


if __name__ == "__main__":
    unittest.main()
