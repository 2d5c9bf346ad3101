#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""./run N --explain --draw FOLDER, and the recorded data of the book's pictures: a run writes them again.

    pictures_test.py BUILD
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "plots/results/simt/pictures"
BUILD = Path(sys.argv.pop(1)).resolve()


def run(*command, **more):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=ROOT, **more)


def without_lines(file):
    """The data of a file; a line's number is looked up when it is drawn."""
    document = json.loads(file.read_text())
    for request in document.get("requests", []):
        del request["line"]
    return document


class Pictures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def draw(self, *options):
        return run(BUILD / "chapter-3", "--ladder", "transpose", *options)

    def test_what_is_recorded_is_what_the_levels_do(self):
        ended = run("plots/pictures.sh", self.folder, env=os.environ | {"COOKBOOK_BUILD": str(BUILD)})
        self.assertEqual(ended.returncode, 0, ended.stderr)
        names = sorted(file.name for file in RECORDED.glob("*.json") if file.stem != "capstone-start")  # capstone/new_test.py
        self.assertEqual(sorted(file.name for file in self.folder.glob("*.json")), names)
        for name in names:
            with self.subTest(name):
                self.assertEqual(without_lines(self.folder / name), without_lines(RECORDED / name),
                                 "plots/pictures.sh records it again")

    def test_a_level_is_drawn_with_its_explanation(self):
        ended = self.draw("--level", "tile", "--size", "64x64", "--explain", "--draw", self.folder / "new")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("wavefronts/req", ended.stdout)
        file = self.folder / "new/transpose-tile.json"
        worst = json.loads(file.read_text())["requests"][0]
        self.assertEqual((worst["memory"], worst["operation"], worst["counted"]), ("shared", "load", {"wavefronts": 32, "ideal": 1}))
        for request in json.loads(file.read_text())["requests"]:
            self.assertTrue(request["line"] > 0 and request["source"])
        svg = self.folder / "new/transpose-tile-1-shared-load.svg"
        self.assertIn(str(svg), ended.stdout)
        self.assertIn("32 wavefronts (ideal: 1)", svg.read_text())

    def test_sidebars_refuse_a_file_that_cannot_be_written(self):
        for sidebar in ("5-fragments", "5-sums", "6-descriptors", "7-spans", "7-waves", "9-steps", "10-schedule",
                        "12-promotion", "14-tensor-memory"):
            with self.subTest(sidebar):
                ended = run(BUILD / f"chapter-{sidebar}", "--json", self.folder)
                self.assertEqual((ended.returncode, ended.stderr.count("\n")), (2, 1), ended.stderr)
                self.assertIn("cannot write", ended.stderr)

    def test_what_cannot_be_drawn_is_said(self):
        (self.folder / "file").write_text("")
        for options, said in ((("--draw", self.folder), "--draw requires --explain"),
                              (("--explain", "--draw", self.folder / "file"), "cannot write"),
                              (("--explain", "--draw", self.folder, "--size", "32", "--size", "64"), "--draw draws one size")):
            with self.subTest(said):
                ended = self.draw("--level", "tile", *options)
                self.assertEqual(ended.returncode, 2, ended.stderr)
                self.assertIn(said, ended.stderr)
                self.assertEqual(ended.stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
