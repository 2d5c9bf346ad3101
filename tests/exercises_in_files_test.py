#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exercises that are a file of numbers, which a chapter's program adds up: as they are shipped, solved, and solved wrongly;
and the same of variants.

  tests/exercises_in_files_test.py BUILD [--seeds 50]
"""
import argparse
import contextlib
import importlib.util
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools/exercises"))
import catalogue  # noqa: E402
import terms  # noqa: E402

COMMAND = importlib.util.spec_from_file_location("command", ROOT / "tools/exercises/__main__.py")
command = importlib.util.module_from_spec(COMMAND)
COMMAND.loader.exec_module(command)
parser = argparse.ArgumentParser()
parser.add_argument("build", type=Path)
parser.add_argument("--seeds", type=int, default=5)
given = parser.parse_args()
BUILD = str(given.build.resolve())


def graded(exercise, text, number=0):
    """(exit status, the last line of what was said, whether the JSON says that it passed)"""
    with tempfile.TemporaryDirectory() as folder:
        file, out, said = Path(folder) / "numbers.txt", Path(folder) / "out.json", io.StringIO()
        file.write_text(text)
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = command.main(["numbers", exercise.key, "--build", BUILD, "--variant", str(number), "--answers", str(file),
                                   "--json", str(out)])
        return status, said.getvalue().strip().split("\n")[-1], json.loads(out.read_text())["passed"] if out.is_file() else None


def solved(variant, more=0):
    """Beside the largest number each small one is cut off; added first, among themselves, they are kept. `more`: small ones
    than may be."""
    small = variant.limits["count"] - 1 + more
    return f"2^{variant.limits['most']} 0*{31 - small} 2^{variant.limits['least']}*{small}"


class Numbers(unittest.TestCase):
    def setUp(self):
        # Those with questions in a data file are graded by tests/exercises/read_test.py.
        self.found = [one for one in catalogue.all_exercises() if one.file.suffix == ".txt" and one.kind != "read"]
        self.assertTrue(self.found)

    def solution(self, exercise, ending=".txt"):
        return (ROOT / "tests/solutions" / f"{exercise.chapter:02}" / f"{exercise.path.stem}{ending}").read_text()

    def test_each(self):
        for one in self.found:
            self.assertEqual(one.file.read_text(), terms.Variant(one, 0).blank(), "`texts` has the file as it is shipped")
            say = f"exercise {one.key}, variant 0: "
            self.assertEqual(graded(one, one.file.read_text()), (1, say + "not yet: the order does not matter", False))
            self.assertEqual(graded(one, self.solution(one)), (0, say + "passed", True))
            self.assertEqual(graded(one, self.solution(one, ".wrong.txt")),
                             (1, say + "not yet: a number is below 2^-20 or above 2^100", False))
            self.assertEqual(graded(one, "# none\n")[0], 2)
            for word, said in (("--json", "expected NUMBER or NUMBER*COUNT"), ("1*33", "takes up to 32 numbers"), ("nan", "expected")):
                status, last, _ = graded(one, word)
                self.assertEqual((status, said in last), (2, True), last)

    def test_variants(self):
        for one in self.found:
            public, seen = self.solution(one), set()
            for number in range(1, given.seeds + 1):
                with self.subTest(one.key, number=number):
                    variant = terms.Variant(one, number)
                    say = f"exercise {one.key}, variant {number}: "
                    self.assertEqual(graded(one, variant.blank(), number), (1, say + "not yet: the order does not matter", False))
                    self.assertEqual(graded(one, solved(variant), number), (0, say + "passed", True))
                    self.assertEqual(graded(one, public, number)[0], 1)
                    # As many as the limit says, and no more.
                    self.assertRegex(graded(one, solved(variant, 1), number)[1], "numbers are not 0; at most")
                    seen.add(variant.limits["least"])
                    # A solution of another variant is none of this one, unless both drew the same numbers.
                    other = terms.Variant(one, number + 1)
                    if other.limits["least"] != variant.limits["least"]:
                        self.assertEqual(graded(one, solved(other), number)[0], 1)
            self.assertGreater(len(seen), min(given.seeds, 20) // 2)

    def test_a_file_becomes_a_variant_until_something_is_written(self):
        for one in self.found:
            with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
                file = Path(folder) / "numbers.txt"
                file.write_text(terms.Variant(one, 0).blank())
                for number in (17, 5, 0, 17):
                    terms.take(one, number, file, "it", True)
                    self.assertEqual(file.read_text(), terms.Variant(one, number).blank())
                mine = file.read_text() + "4\n"
                file.write_text(mine)
                for number in (17, 5, 0):
                    self.assertEqual(terms.take(one, number, file, "it", True), mine)
            self.assertEqual(said.getvalue().split("\n"), [
                *(f"it is now variant {number}" for number in (17, 5, 0, 17)),
                *(f"it says that it is variant 17. It is graded as variant {number}." for number in (5, 0)), ""])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
