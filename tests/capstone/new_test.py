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
PICTURE = ROOT / "plots/results/simt/pictures/capstone-start.json"


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

    def test_a_function_that_the_book_could_not_call_is_refused(self):
        capstone = self.new("wrong", "vector")
        problem = (capstone / "problem.hpp").read_text()
        wrong = problem.replace("  double bytes() const", "  void begin_reference(HostTensors&) {}\n  double bytes() const", 1)
        self.assertNotEqual(problem, wrong)
        (capstone / "problem.hpp").write_text(wrong + "\nstatic cookbook::ProblemHolder<cookbook::mine::Problem> held{{}};\n")
        done = start("g++", "-std=c++20", "-DCOOKBOOK_SIMT=1", f"-I{ROOT}", "-fsyntax-only", "-x", "c++", "-",
                     input=f'#include "{capstone}/problem.hpp"')
        self.assertIn("it must be `void begin_reference(const HostTensors& tensors)`", done.stderr)
        self.assertNotEqual(done.returncode, 0)

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
        self.what_the_picture_shows(build)
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
        compiled = re.findall(r"Building CXX object \S+/(capstone_rows_levels.cu|capstone_rows_tokens.cpp).o", done.stdout)
        self.assertLessEqual(len(compiled), 4, done.stdout)  # its levels and their hashes, with and without tracing
        self.assertEqual(len(re.findall(r"Building CXX", done.stdout)), len(compiled), done.stdout)  # the book is not
        done = start(build / "levels-test-capstone-rows", "--gtest_filter=*0_naive_shapes")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stdout, r"rows / naive: out\[0\]\[0\]: got .* at 3x1021, integers inputs \(.*; to see lines: "
                         rf"\./run {re.escape(str(capstone))} --check --explain --level naive --size 3x1021 --inputs integers")
        self.assertEqual(start(build / "capstone-rows", "--explain", "--level", "0").returncode, 0)
        done = start(build / "capstone-rows", "--check", "--explain", "--level", "0")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("out[0][0]: got ", done.stderr)
        self.assertRegex(done.stdout, r"level_0_naive\.cuh:\d+ +global +load")
        self.what_a_student_gets_wrong(capstone, build)

    def what_the_picture_shows(self, build):
        """docs/capstones.md shows what the tracer counts of the template. COOKBOOK_WRITE_PICTURES=1 records it again."""
        self.must(build / "capstone-rows", "--explain", "--draw", self.folder / "drawn")
        levels = []
        for level in ("naive", "warp_per_row"):
            requests = json.loads((self.folder / f"drawn/rows-{level}.json").read_text())["requests"]
            loads = [one for one in requests if (one["memory"], one["operation"]) == ("global", "load")]
            levels.append({"level": level, "request": loads[0]})
        document = {"schema": 1, "kind": "capstone", "from": BUILT, "levels": levels}
        if os.environ.get("COOKBOOK_WRITE_PICTURES"):
            PICTURE.write_text(json.dumps(document, indent=1) + "\n")
        self.assertEqual(document, json.loads(PICTURE.read_text()), "COOKBOOK_WRITE_PICTURES=1 records it again")

    def what_a_student_gets_wrong(self, capstone, build):
        def edit(name, *pairs):
            text = (capstone / name).read_text()
            for old, new in pairs:
                self.assertIn(old, text)
                text = text.replace(old, new)
            (capstone / name).write_text(text)

        # A level that is in no ladder, lanes that have exited before a shuffle, an access in a helper, and a reference
        # that needs what begin_reference() has made.
        (capstone / "level_2_mine.cuh").write_text("")
        edit("level_1_warp_per_row.cuh", ("if (row >= shape.rows)", "if (row >= shape.rows || lane >= shape.cols)"))
        edit("level_0_naive.cuh", (" && begin < 600", ""), ("run += in[row * shape.pitch + col]", "run += one(in, row, col, shape)"),
             ("template <class C>", "__device__ inline float one(const float* in, std::int64_t row, std::int64_t col, "
              "const Shape& shape) {\n  return in[row * shape.pitch + col + 1];\n}\n\ntemplate <class C>"))
        edit("problem.hpp", ("  Shape shape;\n\n", "  Shape shape;\n  std::vector<double> sums{};\n  void begin_reference("
                             "const HostTensors&) { sums.assign(static_cast<std::size_t>(shape.rows), 0); }\n\n"),
             ("value[0] = sum;", "value[0] = sum + sums.data()[row];"),
             ('extra_pitch}};', 'extra_pitch}, {}};'))
        targets = ("capstone-rows", "levels-test-capstone-rows", "levels-traced-test-capstone-rows")
        done = self.build(build, *targets)
        self.assertEqual(done.returncode, 0, done.stdout)
        unlisted = "level_2_mine.cuh"
        self.assertIn(unlisted + " is not run", start(build / "capstone-rows").stderr)
        brief = os.environ | {"COOKBOOK_LINE_PER_FAILURE": "1"}
        done = start(build / "levels-test-capstone-rows", env=brief)
        self.assertEqual(done.returncode, 1, done.stdout)
        lines = done.stdout.splitlines()
        self.assertTrue(all(re.match(r"capstone_rows\w*\.\w+: ", line) for line in lines), done.stdout)
        self.assertEqual(len({line.split(": ")[0] for line in lines}), len(lines), done.stdout)
        self.assertIn(unlisted + " is in no ladder", done.stdout)
        self.assertFalse([line for line in lines if line.startswith("capstone_rows_bounds")], done.stdout)
        self.assertNotIn("-byte object", done.stdout)
        # Each is repeated by the command that its line ends with.
        repeated = next(line for line in lines if "1_warp_per_row_layouts" in line).split(f"./run {capstone} ")[1].split()
        done = start(build / "capstone-rows", *repeated)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("absent-lane: thread (0,0,0) shuffles at level_1_warp_per_row.cuh:", done.stdout)
        self.assertIn("Claims are about 64x512 and normal inputs: they are not judged here.", done.stdout)
        self.assertNotIn("claim is false", done.stdout.split("\nrows · ")[1])
        done = start(build / "levels-traced-test-capstone-rows", env=brief)
        self.assertRegex(done.stdout, r"absent-lane: .*; to see lines: (COOKBOOK_\w+=\S+ )*\./run ")
        self.assertRegex(done.stdout, r"at level_0_naive\.cuh:\d+ \(called at level_0_naive\.cuh:\d+\)")
        for arguments, said in ((("--pitch", "x=1", "--check"), "tensors: in, out); got 'x=1'"),
                                (("--base", "1"), "add one of them"), (("--inputs", "odd", "--check"), "got 'odd'")):
            done = start(build / "capstone-rows", *arguments)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn(said, done.stderr)
        # Both levels are wrong where the reference is; then host code that crashes.
        edit("level_0_naive.cuh", ("+ col + 1]", "+ col]"))
        edit("problem.hpp", ("sum + sums.data()[row]", "sum + 1 + sums.data()[row]"))
        self.assertEqual(self.build(build, "capstone-rows", targets[1]).returncode, 0)
        self.assertIn("All levels are wrong at out[0][0]: check reference_row()", start(build / "capstone-rows").stdout)
        done = start(build / targets[1], "--gtest_filter=*_shapes", env=brief)
        self.assertRegex(done.stdout, r"1_warp_per_row_shapes: .*: check reference_row\(\), and the bound .*; to see lines: (COOKBOOK_\w+=\S+ )*\./run ")
        # Host code that crashes for one size, and a kernel for another, in a helper that is not inlined.
        edit("problem.hpp", ("sums.assign(", "if (shape.rows == 128) *static_cast<volatile int*>(nullptr) = 1; sums.assign("),
             ("sum + 1 + sums", "sum + sums"))
        edit("level_0_naive.cuh", ("__device__ inline float one(", "__device__ __noinline__ float one("),
             ("  return in[", "  if (shape.cols == 1021 && col == 1020) *static_cast<volatile float*>(nullptr) = 1;\n  return in["))
        self.assertEqual(self.build(build, "capstone-rows", targets[1]).returncode, 0)
        done = start(build / "capstone-rows", "--size", "128x3")
        self.assertRegex(done.stderr, r"(?m)^Capstone rows: ladder rows at 128x3: crashed: access to an address that is not mapped in host code \(begin_reference\(\)\), .* at problem\.hpp:\d+")
        done = start(build / targets[1], "--gtest_filter=*_shapes:*_inputs", env=brief)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 2, done.stdout)  # and the tests of inputs pass
        self.assertRegex(lines[0], r"^capstone_rows_rows\.0_naive_shapes: access to an address that is not mapped in a kernel, block .* "
                         r"at level_0_naive\.cuh:\d+ \(called at level_0_naive\.cuh:\d+\) at 3x1021, integers inputs \(.*\); "
                         r"to repeat: (COOKBOOK_\w+=\S+ )*\./run .* --level naive --size 3x1021 --inputs integers")
        self.assertRegex(lines[1], r"1_warp_per_row_shapes: .* in host code \(begin_reference\(\)\), .* at problem\.hpp:\d+.* at 128x3, .*; to repeat: (COOKBOOK_\w+=\S+ )*\./run ")


if __name__ == "__main__":
    os.environ.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", "2")
    os.environ.pop("COOKBOOK_SHORT_TEST", None)  # what is new here has passed nothing
    unittest.main(verbosity=1)
