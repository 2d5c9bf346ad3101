#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`./run new` and what it makes: one template is built outside the book, run and tested; the others are compiled.

new_test.py KIT: the book's build folder for the SIMT backend, in which the targets kit and kit-tests are built.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KIT = Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None
TEMPLATES = ("vector", "rows", "matrix", "gemm")
BUILT = "rows"


def start(*command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)


class New(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def must(self, *command, **more):
        done = start(*command, **more)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def new(self, name, template):
        self.must(ROOT / "run", "new", name, "--from", template, cwd=self.folder)
        return self.folder / name

    def configure(self, capstone, name):
        build = self.folder / f"build-{name}"
        self.must("cmake", "-G", "Ninja", "-S", ROOT / "tools/capstone", "-B", build, f"-DCOOKBOOK_KIT={KIT}",
                  f"-DCOOKBOOK_CAPSTONE={capstone}", f"-DCOOKBOOK_NAME={name}")
        return build

    def build(self, build, *targets):
        return start("cmake", "--build", build, "--target", *targets)

    def test_every_template_compiles(self):
        for template in TEMPLATES:
            if template == BUILT:
                continue
            with self.subTest(template):
                capstone = self.new(template, template)
                levels = sorted(capstone.glob("level_*.cuh"))
                self.assertEqual(len(levels), 2)
                (self.folder / "generated").mkdir(exist_ok=True)
                (self.folder / "generated/levels.hpp").write_text(
                    "#pragma once\n" + "".join(f'#include "{level}"\n' for level in levels))
                self.must("g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-Wno-psabi",
                          "-DCOOKBOOK_SIMT=1", f"-I{ROOT}", f"-I{self.folder}", "-fsyntax-only", "-x", "c++",
                          "-", input=f'#include "{capstone}/ladder.hpp"')

    def test_a_capstone_is_built_outside_the_book_and_a_bug_in_it_is_found(self):
        # The folder's name is no identifier, and a name that the book has.
        capstone = self.new("Rows", BUILT)
        build = self.configure(capstone, "rows")
        done = self.build(build, "capstone-rows", "levels-test-capstone-rows", "levels-traced-test-capstone-rows")
        self.assertEqual(done.returncode, 0, done.stdout)
        result = self.folder / "result.json"
        done = self.must(build / "capstone-rows", "--json", result)
        self.assertIn("Capstone rows · rows · ", done.stdout)
        run = json.loads(result.read_text())["runs"][0]
        self.assertEqual((run["chapter"], run["capstone"], run["ladder"]), (None, "rows", "rows"))
        for level in run["levels"]:
            self.assertEqual(level["status"], "ok")
            self.assertRegex(level["identity"]["tokens"], "^[0-9a-f]{16}$")
            self.assertTrue([claim for claim in level["claims"] if claim["checked_by"] == "simt"])
        done = self.must(build / "capstone-rows", "--explain", "--level", "1")
        self.assertRegex(done.stdout, r"level_1_warp_per_row\.cuh:\d+ +global +load")
        done = self.must("ctest", "--test-dir", build, "-j2")
        self.assertIn(" traced_capstone_rows_rows ", done.stdout)
        self.assertIn(" capstone_rows_rows ", done.stdout)
        self.assertIn(" capstone_rows_bounds ", done.stdout)
        # Wrong for long rows only, which the traced size does not have.
        level = capstone / "level_0_naive.cuh"
        text = level.read_text()
        wrong = text.replace("begin < shape.cols;", "begin < shape.cols && begin < 600;")
        self.assertNotEqual(text, wrong)
        level.write_text(wrong)
        done = self.build(build, "capstone-rows", "levels-test-capstone-rows")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertLessEqual(len(re.findall(r"Building CXX", done.stdout)), 2, done.stdout)  # the book is not
        done = start(build / "levels-test-capstone-rows", "--gtest_filter=*0_naive_shapes")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("3x1021: out[0][0]: got ", done.stdout)
        self.assertEqual(start(build / "capstone-rows", "--explain", "--level", "0").returncode, 0)
        done = start(build / "capstone-rows", "--check", "--explain", "--level", "0")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("out[0][0]: got ", done.stderr)
        self.assertRegex(done.stdout, r"level_0_naive\.cuh:\d+ +global +load")


if __name__ == "__main__":
    os.environ.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", "2")
    unittest.main(verbosity=1)
