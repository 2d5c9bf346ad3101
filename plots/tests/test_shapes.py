# SPDX-License-Identifier: MIT
"""plots/shapes.py: what it reads, and what it makes of a chapter's results."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import shapes  # noqa: E402


def timed(name, microseconds):
    return {"name": name, "time_us": {"median": microseconds} if microseconds else None}


def a_run(levels, references=()):
    return {"ladder": "softmax", "problem": {"size": [3, 5]}, "levels": [timed(*level) for level in levels],
            "references": [timed(*other) for other in references]}


class Shapes(unittest.TestCase):
    def test_a_line_is_a_ladder_and_two_extents(self):
        text = "# a comment\nsoftmax 3 5  # why\n\ntranspose 1 7\nsoftmax 8 9\n"
        self.assertEqual(shapes.read_shapes(text), {"softmax": ["3x5", "8x9"], "transpose": ["1x7"]})

    def test_other_lines_are_refused_with_their_number(self):
        for line in ("softmax 3", "softmax 3 5 7", "sofmax 3 5", "softmax 3 x"):
            with self.assertRaisesRegex(ValueError, "line 2"):
                shapes.read_shapes("softmax 1 1\n" + line)

    def test_the_committed_grid_has_60_shapes_of_each_kind(self):
        grid = shapes.read_shapes(shapes.SHAPES.read_text())
        self.assertEqual(set(grid), set(shapes.CHAPTERS))
        self.assertGreaterEqual(sum(map(len, grid.values())), 60)
        for ladder, sizes in grid.items():
            self.assertEqual(len(sizes), len(set(sizes)), ladder)

    def test_the_last_level_is_compared_with_the_fastest_and_the_fastest_library(self):
        line = shapes.verdict(a_run([("a", 30), ("b", 19), ("c", 20)], [("x", 50), ("y", 40)]))
        self.assertEqual((line["last"], line["fastest"], line["library"]), (20, "b", "y"))
        self.assertAlmostEqual(line["of_fastest"], 0.95)
        self.assertAlmostEqual(line["of_library"], 2)
        self.assertIn("behind", shapes.text(line))

    def test_a_last_level_within_two_per_cent_is_not_behind(self):
        line = shapes.verdict(a_run([("a", 99), ("b", 100)]))
        self.assertIsNone(line["library"])
        self.assertNotIn("behind", shapes.text(line))

    def test_a_last_level_without_a_time_has_no_verdict(self):
        self.assertIsNone(shapes.verdict(a_run([("a", 10), ("b", None)])))
        self.assertIsNone(shapes.verdict(a_run([("a", None)])))


if __name__ == "__main__":
    unittest.main()
