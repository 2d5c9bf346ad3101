# SPDX-License-Identifier: MIT
"""tests/check/known_answers.py: its judging sees a planted wrong verdict; what it reads from a suite. Nothing is run."""
import json
import struct
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/check"))
import known_answers as known  # noqa: E402

RACE = {"kind": "race", "message": "race: write after write on 'x': thread (0,0,0) wrote at a.cu:7, thread (1,0,0) at a.cu:9"}
LEAK = {"kind": "leak", "message": "leak: 'x' is never freed"}
READ = {"kind": "uninitialised", "message": "uninitialised: a read of 'x' at a.cu:3"}


def program(truth, **more):
    return known.Program("scor", "p", [Path("a.cu")], truth, **more)


def verdict(what, *outcomes):
    return known.judge(what, list(outcomes))["verdict"]


class Judging(unittest.TestCase):
    def test_a_planted_bug_is_found_only_by_its_own_kind(self):
        bug = program("bug", wanted=(("race",),), lines=(9,))
        nothing, other, found = known.Outcome(0), known.Outcome(1, findings=(READ, LEAK)), known.Outcome(1, findings=(RACE,))
        self.assertEqual(verdict(bug, nothing), "missed")
        self.assertEqual(verdict(bug, other), "missed")
        self.assertEqual(verdict(bug, nothing, found), "found")
        self.assertTrue(known.judge(bug, [found])["at_line"])
        self.assertFalse(known.judge(program("bug", wanted=(("race",),), lines=(8,)), [found])["at_line"])

    def test_each_of_two_planted_bugs_counts(self):
        two = program("bug", wanted=(("race",), ("leak",)))
        self.assertEqual(known.judge(two, [known.Outcome(1, findings=(RACE,))])["bugs"], {"race": True, "leak": False})
        self.assertEqual(verdict(two, known.Outcome(1, findings=(RACE,))), "missed")
        self.assertEqual(verdict(two, known.Outcome(1, findings=(RACE, LEAK))), "found")

    def test_a_finding_in_a_clean_program_is_a_false_alarm(self):
        self.assertEqual(verdict(program("clean"), known.Outcome(1, findings=(RACE,))), "false alarm")
        self.assertEqual(verdict(program("clean"), known.Outcome(0, findings=(LEAK,))), "clean")
        self.assertEqual(verdict(program("clean", judged=("race",)), known.Outcome(1, findings=(READ,))), "clean")
        self.assertEqual(known.judge(program("clean", judged=("race",)), [known.Outcome(1, findings=(READ,))])["also"],
                         [READ["message"]])

    def test_a_program_says_itself_whether_it_is_right(self):
        own = program("own")
        self.assertEqual(verdict(own, known.Outcome(0, "Result: FAIL\n")), "wrong result")
        self.assertEqual(verdict(own, known.Outcome(0, "PASS\n0 mismatches\n")), "right")
        self.assertIs(known.judge(own, [known.Outcome(0, "42\n")])["right"], None)
        ended = {"kind": "exit status", "message": "exit status: the program ended with status 1"}
        self.assertEqual(verdict(own, known.Outcome(1, "Usage: p N\n", findings=(ended,))), "wrong result")
        self.assertEqual(verdict(program("own", right="^sum 10$"), known.Outcome(0, "sum 11\n")), "wrong result")
        self.assertEqual(verdict(own, known.Outcome(1, "PASS\n", findings=(RACE,))), "findings nobody has judged")
        judged = program("own", true=(("write after write", "no barrier"),))
        self.assertEqual(verdict(judged, known.Outcome(1, "PASS\n", findings=(RACE,))), "right")
        self.assertEqual(verdict(judged, known.Outcome(1, "FAIL\n", findings=(RACE,))), "a bug of the program")
        self.assertEqual(verdict(judged, known.Outcome(1, "PASS\n", findings=(RACE, READ))), "findings nobody has judged")

    def test_what_did_not_run_is_no_success(self):
        for truth in ("bug", "clean", "own"):
            one = program(truth, wanted=(("race",),) if truth == "bug" else ())
            self.assertEqual(verdict(one, known.Outcome(2, errors="check: a/b.cu:3: textures is not supported\n")), "refused")
            self.assertEqual(verdict(one, known.Outcome(2, errors="b.cu:3: error: expected ';'\n")), "does not compile")
            self.assertIn(verdict(one, known.Outcome(None)), ("missed", "too slow"))
            crash = {"kind": "crash", "message": "crash: ended by signal 11"}
            self.assertIn(verdict(one, known.Outcome(3, findings=(crash,))), ("missed", "crashed"))
        self.assertEqual(verdict(program("clean"), known.Outcome(0, "a precondition is not met\n")), "not run")

    def test_the_table_has_a_row_for_each_that_is_not_as_it_should_be(self):
        ones = {"good": known.judge(program("clean"), [known.Outcome(0)]),
                "bad": known.judge(program("clean"), [known.Outcome(1, findings=(RACE,))]),
                "bug": known.judge(program("bug", wanted=(("race",),)), [known.Outcome(0)])}
        document = {"results": {"scor": {name: dict(one, seconds=2) for name, one in ones.items()}}, "rules": {"scor": {"10/1": ["good"], "5/1": ["good", "bad", "bug", "later"]}}}
        with tempfile.TemporaryDirectory() as folder:
            known.write_table(document, Path(folder) / "t.md", {})
            text = (Path(folder) / "t.md").read_text()
        self.assertIn("| ScoR | 1 in 5 from number 1: 3 of 4 so far | 3 of 3 | 3 of 3 | - | 0 of 1 | 1 of 2 | 0 | 2 s |", text)
        self.assertIn("| ScoR: bad | false alarm: race", text)
        self.assertIn("| ScoR: bug | missed: no race |", text)
        self.assertNotIn("ScoR: good", text)


class Reading(unittest.TestCase):
    def test_indigo_has_its_bugs_in_the_name_and_their_lines_in_comments(self):
        code = "// test_kernel verify_result\n// atomicBug here\nx[0]++;\n"
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "include").mkdir()
            for name, text in (("include/indigo_cuda.h", ""), ("push_atomicBug.cu", code), ("push_block.cu", code),
                               ("push_persistent_boundsBug_guardBug.cu", code)):
                (root / name).write_text(text)
            for name, nodes in (("DAG_5n.egr", 5), ("DAG_100n.egr", 100), ("star_300n.egr", 300)):
                (root / name).write_bytes(struct.pack("i", nodes))
            bug, clean, two = known.indigo(root, {})
        self.assertEqual((bug.truth, bug.wanted, sorted(bug.lines)), ("bug", (("race",),), [3, 4, 5]))
        self.assertEqual([run[1:] for run in bug.runs], [["256", "2"], ["256", "3"]])
        self.assertEqual((clean.truth, clean.runs[0][2]), ("clean", "102"))
        self.assertEqual(len(two.wanted), 2)

    def test_a_makefile(self):
        values = known.makefile("DEBUG = no\nsource = a.cu \\\n b.cu\n".replace("\\\n", " ") +
                                "CFLAGS := -DX=1\nifeq ($(DEBUG),yes)\nCFLAGS += -DY\nelse\nCFLAGS += -I$(source)\nendif\n")
        self.assertEqual(values["source"].split(), ["a.cu", "b.cu"])
        self.assertEqual(values["CFLAGS"].split(), ["-DX=1", "-Ia.cu", "b.cu"])

    def test_hecbench_by_its_makefiles(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "src"
            for name, text in (("gd-cuda/Makefile", "obj = main.o utils.o\nCFLAGS = -I../gd-sycl\nrun:\n\t./$(program) x 512 100\n"),
                               ("gd-cuda/main.cu", "n = 1000;"), ("gd-cuda/other.cu", ""), ("gd-sycl/utils.cpp", "n = 1000;"),
                               ("inner-cuda/src/Makefile", "source = main.cu\n"), ("inner-cuda/src/main.cu", ""),
                               ("two-cuda/a/Makefile", ""), ("two-cuda/b/Makefile", "")):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            gd, inner, two = known.hecbench(Path(folder), {})
            self.assertEqual([one.name for one in gd.sources], ["main.cu", "utils.cpp"])
            self.assertEqual(gd.runs, [["x", "256", "1"]])
            self.assertEqual((inner.sources, inner.home), ([(root / "inner-cuda/src/main.cu").resolve()], root / "inner-cuda/src"))
            self.assertEqual(two.skip, "has no Makefile of its own")
            # Edits reach a source beside its folder; an input is written.
            gd.edits = (("1000", "8"),)
            at, sources = known.folder_like(gd, Path(folder) / "build")
            self.assertEqual([one.read_text() for one in sources], ["n = 8;", "n = 8;"])
            self.assertIn(b":0.", (at / "points").read_bytes())
            self.assertEqual((root / "gd-cuda/main.cu").read_text(), "n = 1000;")

    def test_arguments_are_made_small(self):
        self.assertEqual(known.small(["8192", "-v", "100"]), ["256", "-v", "1"])
        self.assertEqual(known.small(["512", "512", "512", "100"]), ["64", "64", "64", "1"])

    def test_a_grid_is_made_small(self):
        self.assertEqual(known.at_most(1024, "[64,64,64]"), [8, 8, 16])
        self.assertEqual(known.at_most(1024, "64"), [64, 1, 1])

    def test_the_draw(self):
        self.assertEqual(known.drawn(range(1, 31), 10, 3), [3, 13, 23])

    def test_the_table_of_programs_can_be_used(self):
        data = json.loads((ROOT / "tests/check/answers/programs.json").read_text())
        self.assertLessEqual(set(data), set(known.SUITES))
        for suite, programs in data.items():
            for name, own in programs.items():
                with self.subTest(f"{suite}/{name}"):
                    self.assertLessEqual(set(own), {"arguments", "define", "edits", "input", "reason", "right", "skip", "true",
                                                    "wanted"})
                    known.with_table(known.Program(suite, name, [], "own"), data)
                    self.assertTrue(all(one["why"] and one["finding"] for one in own.get("true", [])))


if __name__ == "__main__":
    unittest.main()
