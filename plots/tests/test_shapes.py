# SPDX-License-Identifier: MIT
"""plots/shapes.py: what it reads, and what it makes of a chapter's results."""
import json
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import shapes

from .fixtures import Folder, said


def timed(name, microseconds):
    return {"name": name, "time_us": {"median": microseconds} if microseconds else None}


RESULT = shapes.ROOT / "plots/results/h200/sidebars/shapes.json"


def a_run(levels, references=()):
    return {"ladder": "softmax", "commit": "abc", "date": "2026-01-01", "device": {"name": "H200"},
            "problem": {"size": [3, 5]}, "levels": [timed(*level) for level in levels],
            "references": [timed(*other) for other in references]}


class Shapes(Folder):
    def test_a_line_is_a_ladder_and_two_extents(self):
        text = "# a comment\nsoftmax 3 5  # why\n\ntranspose 1 7\nsoftmax 8 9\n"
        self.assertEqual(shapes.read_shapes(text), {"softmax": ["3x5", "8x9"], "transpose": ["1x7"]})

    def test_other_lines_are_refused_with_their_number(self):
        for line in ("softmax 3", "softmax 3 5 7", "sofmax 3 5", "softmax 3 x"):
            with self.assertRaisesRegex(ValueError, "line 2"):
                shapes.read_shapes("softmax 1 1\n" + line)

    def test_the_committed_grid_has_60_shapes_of_each_kind(self):
        grid = shapes.read_shapes(shapes.SHAPES.read_text())
        self.assertEqual(set(grid), set(shapes.PROGRAMS))
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

    def test_a_last_level_slower_than_a_library_is_behind(self):
        self.assertFalse(shapes.is_behind(shapes.verdict(a_run([("a", 100)], [("x", 100)]))))
        line = shapes.verdict(a_run([("a", 100)], [("x", 101)]), {"PyTorch": 99})
        self.assertEqual((line["library"], line["libraries"]), ("PyTorch", {"x": 101, "PyTorch": 99}))
        self.assertTrue(shapes.is_behind(line))

    def outcome(self, runs, arguments=()):
        """(exit status, what is printed, what --out has) of softmax at two shapes."""
        file = self.folder / "shapes.json"
        with mock.patch.object(shapes, "measure", lambda *_: runs), \
                mock.patch.object(shapes, "read_shapes", lambda _: {"softmax": ["3x5", "4x5"]}):
            status, printed, _ = said(shapes.main, [*arguments, "--out", str(file)])
        return status, printed, json.loads(file.read_text())

    def test_all_well(self):
        status, printed, made = self.outcome([a_run([("a", 10), ("b", 9)])] * 2, ["softmax", "--seconds", "0.5"])
        self.assertEqual(status, 0)
        self.assertIn("0 behind", printed)
        self.assertIn("| softmax | 2 |", printed)
        self.assertEqual((len(made["shapes"]), made["behind"], why_malformed(made)), (2, 0, ""))
        self.assertIn("at most 0.5 s", made["method"])

    def test_a_shape_behind_or_not_timed_fails(self):
        good, bad = a_run([("a", 10), ("b", 9)]), a_run([("a", 9), ("b", 10)])
        untimed = a_run([("a", 9), ("b", None)])
        for runs, text in (([good, bad], "1 behind"), ([good, untimed], "1 not timed"), ([good], "1 not timed")):
            status, printed, made = self.outcome(runs)
            self.assertEqual(status, 1)
            self.assertIn(text, printed)
            self.assertEqual(why_malformed(made), "")

    def test_the_summary_has_the_worst_shape_of_each_ladder(self):
        good, bad = shapes.verdict(a_run([("a", 10)], [("x", 12)])), shapes.verdict(a_run([("a", 8), ("b", 10)]))
        other = good | {"ladder": "rmsnorm", "library": None, "of_library": None}
        self.assertEqual(shapes.summary([good, bad, other]).split("\n")[2:],
                         ["| softmax | 2 | 0.800 at 3 x 5 (`a`) | 1.200 at 3 x 5 (`x`) |",
                          "| rmsnorm | 1 | 1.000 at 3 x 5 (`a`) | - |"])

    def test_a_document_has_every_time(self):
        runs = [a_run([("a", 10), ("b", 9)], [("x", 12)]), a_run([("a", 10), ("b", 20.123)])]
        made = shapes.document(runs, [shapes.verdict(run) for run in runs], 0.3, "2.11")
        self.assertEqual(why_malformed(made), "")
        self.assertEqual((made["commit"], made["behind"], len(made["shapes"])), ("abc", 1, 2))
        self.assertEqual(made["shapes"][1]["levels"], {"a": 10, "b": 20.12})
        self.assertIn("PyTorch 2.11", made["method"])
        self.assertNotIn("PyTorch", shapes.document(runs, [], 0.3, None)["method"])

    def test_a_malformed_document_is_found(self):
        made = shapes.document([a_run([("a", 10), ("b", 9)])], [shapes.verdict(a_run([("a", 10), ("b", 9)]))], 0.3, None)
        for change in ({"schema": 0}, {"behind": 1}, {"commit": ""},
                       {"shapes": [made["shapes"][0] | {"fastest": "a"}]},
                       {"shapes": [made["shapes"][0] | {"of_fastest": 0.9}]},
                       {"shapes": [made["shapes"][0] | {"last": 8}]}):
            self.assertNotEqual(why_malformed(made | change), "", change)

    @unittest.skipUnless(RESULT.exists(), "not measured")
    def test_the_committed_results_cover_the_grid(self):
        made = json.loads(RESULT.read_text())
        self.assertEqual(why_malformed(made), "")
        measured = {(line["ladder"], "x".join(map(str, line["size"]))) for line in made["shapes"]}
        grid = shapes.read_shapes(shapes.SHAPES.read_text())
        self.assertEqual(measured, {(ladder, size) for ladder in grid for size in grid[ladder]})


def why_malformed(made):
    """What is wrong with a document of shapes.py; "" if nothing is."""
    if made["schema"] != shapes.SCHEMA or not all(made[key] for key in ("commit", "date", "device", "method")):
        return "its head"
    for line in made["shapes"]:
        levels = line["levels"]
        if levels[line["fastest"]] != min(levels.values()) or line["last"] not in levels.values():
            return f"{line['size']}: the fastest, or the last"
        if abs(levels[line["fastest"]] / line["last"] - line["of_fastest"]) > 0.002:
            return f"{line['size']}: its ratio"
    return "" if made["behind"] == sum(map(shapes.is_behind, made["shapes"])) else "how many are behind"


if __name__ == "__main__":
    unittest.main()
