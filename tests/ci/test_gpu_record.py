# SPDX-License-Identifier: MIT
"""tests/gpu.sh and tests/ci/recompile.py, with stand-ins for a GPU, ./run, ctest and compilers."""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import gpu_record
import recompile
from tree import Tree, said

STAND_INS = Path(__file__).with_name("stand_ins")


class Folder(Tree):
    def setUp(self):
        super().setUp()
        self.bin, self.seen = self.root / "bin", self.root / "seen"
        self.root /= "book"
        (self.root / "tests").mkdir(parents=True)
        self.bin.mkdir()
        shutil.copy(STAND_INS / "run.sh", self.root / "run")
        environment = {"PATH": f"{self.bin}:{os.environ['PATH']}", "SEEN": str(self.seen), "GIT_AUTHOR_NAME": "a",
                       "GIT_AUTHOR_EMAIL": "a", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a"}
        patch = mock.patch.dict(os.environ, environment)
        patch.start()
        self.addCleanup(patch.stop)
        os.environ.pop("COOKBOOK_COMMIT", None)

    def commit(self, *files):
        for name in files:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            with open(self.root / name, "a") as file:
                file.write("more\n")
        self.git("add", "-A")
        self.git("commit", "-qm", "a commit")
        return self.git("rev-parse", "--short=12", "HEAD").strip()


class Record(Folder):
    def setUp(self):
        super().setUp()
        self.git("init", "-q")
        (self.root / ".gitignore").write_text("/build/\n")
        self.first = self.commit("a.cu")
        self.script(self.bin / "nvidia-smi", 'case "$1" in -L) echo "GPU 0: a GPU";; *) echo "A GPU, 580.1";; esac')
        self.script(self.bin / "nvcc", 'case "$1" in --version) echo "release 13.0, V13.0.1";; '
                                       '--list-gpu-code) echo sm_75; echo sm_80; echo sm_90;; esac')
        self.file = self.root / "tests/gpu_record.json"

    def gpu(self, *arguments):
        """(exit status, everything printed)"""
        return said(gpu_record.main, list(arguments), self.root)

    def steps(self):
        return json.loads(self.file.read_text())["steps"]

    def test_steps_are_merged_and_each_names_its_commit(self):
        status, out = self.gpu("run")
        self.assertEqual(status, 0, out)
        run = self.steps()["run"]
        self.assertLessEqual({"commit": self.first, "device": "A GPU", "driver": "580.1", "toolkit": "13.0", "exit": 0,
                              "chapters": 2, "fresh": True}.items(), run.items())
        self.assertRegex(run["host_compiler"], r"g\+\+ \d+\.\d+")
        self.assertIn(f"commit {self.first}", self.seen.read_text())
        self.assertNotIn("build", self.seen.read_text().split())  # a clean copy, in which nothing was built
        second = self.commit("b.cu")
        status, out = self.gpu("test")
        self.assertEqual((status, self.steps()["run"]), (1, run))
        test = self.steps()["test"]
        self.assertLessEqual({"commit": second, "exit": 8, "passed": 58, "failed": 1, "skipped": 1, "sanitizer_passed": 1,
                              "sanitizer_failed": 1, "fresh": True}.items(), test.items())
        self.assertIn("failed: test", out)
        tree = self.root / "build/gpu-record/tree"
        self.assertTrue((tree / "b.cu").exists())
        # One copy per commit: later steps build on what earlier ones built.
        (tree / "build/cuda").mkdir(parents=True)
        status, out = self.gpu("run", "test")
        self.assertEqual((status, set(self.steps())), (1, {"run", "test"}), out)
        self.assertEqual([(self.steps()[name]["fresh"], self.steps()[name]["exit"]) for name in ("run", "test")],
                         [(False, 0), (False, 8)])

    def test_a_step_without_an_end_is_ended(self):
        self.script(self.root / "run", "echo begun; sleep 60")
        self.commit()
        status, out = self.gpu("--limit", "1", "run")
        self.assertEqual((status, self.steps()["run"]["exit"]), (1, 124), out)
        self.assertIn("begun", out)

    def test_a_step_that_takes_a_while_is_shown_once_and_not_ended(self):
        self.script(self.root / "run", "echo Chapter 0; sleep 0.5; echo Chapter 1")
        self.commit()
        status, out = self.gpu("--limit", "20", "run")
        self.assertEqual((status, self.steps()["run"]["chapters"]), (0, 2), out)
        self.assertEqual((out.count("Chapter 0\n"), out.count("Chapter 1\n")), (1, 1), out)

    def test_parity_fails_where_a_count_differs_or_none_was_measured(self):
        cases = {"cases": {"a": {"size": [4], "totals": {"load": {"wavefronts": 8}}}}}
        golden = self.write("tests/parity/golden/h200.json", json.dumps(cases))
        self.script(self.root / "run", 'echo "$BACKEND $*" >"$SEEN"')
        self.script(golden.parents[1] / "run_ncu.sh", 'mkdir -p "$1"; cp measured.json "$1/h200.json"; true')
        for wavefronts, expected in ((8, (0, 0, 1, [])), (9, (1, 1, 1, ["a"])), (None, (1, 1, 0, None))):
            cases["cases"]["a"]["totals"]["load"]["wavefronts"] = wavefronts
            measured = self.write("measured.json", json.dumps(cases))
            if wavefronts is None:
                measured.unlink()
            self.commit()
            status, entry = self.gpu("parity")[0], self.steps()["parity"]
            self.assertEqual((status, entry["exit"], entry["measured"], entry.get("differ")), expected, wavefronts)
        self.assertEqual(self.seen.read_text(), "cuda build\n")

    def test_what_a_record_could_not_name_is_refused(self):
        self.write("a.cu", "changed")
        status, out = self.gpu("run")
        self.assertEqual(status, 2)
        self.assertIn("a.cu", out)
        self.git("checkout", "-q", "a.cu")
        (self.root / "new.md").touch()
        self.assertEqual(self.gpu("run")[0], 0)
        self.assertEqual(self.gpu("tset"), (2, "gpu: no step 'tset'; there are: run test parity architectures\n"))
        self.script(self.bin / "nvidia-smi", "exit 9")
        for arguments in (("run",), ("tset",), ("run:75",), ("architectures:76",), ("--limit", "1", "test")):
            status, out = self.gpu(*arguments)
            self.assertEqual((status, out.count("\n")), (2, 1), out)

    def test_a_tree_without_git_needs_the_name_of_its_commit(self):
        for name in (".git", ".gitignore"):
            subprocess.run(["rm", "-rf", self.root / name], check=True)
        (self.root / "build/cuda").mkdir(parents=True)
        (self.root / "tests/build").mkdir()
        self.assertEqual(self.gpu("run")[0], 2)
        with mock.patch.dict(os.environ, COOKBOOK_COMMIT="abc"):
            status, out = self.gpu("run")
        self.assertEqual((status, self.steps()["run"]["commit"]), (0, "abc"), out)
        self.assertNotIn("build", self.seen.read_text().split())
        self.assertTrue((self.root / "build/gpu-record/tree/tests/build").is_dir())  # a source folder

    def test_it_says_how_many_commits_that_touch_code_it_is_behind(self):
        self.assertIn("there is none", self.gpu("--behind")[1])
        self.gpu("run")
        self.commit("plots/results/a.json", "README.md", "docs/b.md", "plots/figures/c.svg")
        self.assertEqual(self.gpu("--behind")[1], f"GPU record of {self.first} (run): 0 commits that touch code behind\n")
        self.commit("a.cu", "README.md")
        self.commit("run")
        second = self.commit("docs/b.md")
        self.assertEqual(self.gpu("--behind")[1], f"GPU record of {self.first} (run): 2 commits that touch code behind\n")
        shutil.copy(STAND_INS / "run.sh", self.root / "run")
        second = self.commit("a.cu")
        self.gpu("test")
        status, out = self.gpu("--behind")
        self.assertEqual(status, 0)
        self.assertIn(f"GPU record of {second} (test (exit 8)): 0 commits", out)
        self.assertIn(f"GPU record of {self.first} (run): 3 commits", out)
        record = json.loads(self.file.read_text())
        record["steps"]["run"]["commit"] = "0123456789ab"
        self.file.write_text(json.dumps(record))
        self.assertIn("0123456789ab (run): how far behind, git cannot tell", self.gpu("--behind")[1])

    def test_architectures_are_recorded_one_by_one(self):
        (self.root / "tests/ci").mkdir()
        shutil.copy(STAND_INS / "recompile.py", self.root / "tests/ci")
        shutil.copy(STAND_INS.with_name("check_ptxas.py"), self.root / "tests/ci")
        self.write("tests/ci/final_kernels.txt", "1 sm_80,+sm_86,sm_90a last\n")
        self.write("chapters/contents.txt", "1 one One\n")
        self.script(self.bin / "cmake", 'mkdir -p "$4"')
        self.script(self.bin / "nvcc", "echo sm_75; echo sm_80; echo sm_86; echo sm_90")
        self.commit()
        self.assertEqual(self.gpu("architectures:75,86,120a")[0], 0)
        status, out = self.gpu("architectures:90a")
        self.assertEqual(status, 1)
        self.assertIn("last(float*) for sm_90a spills 8 bytes", out)
        self.assertEqual(self.gpu("architectures:80")[0], 1)
        entry = self.steps()["architectures"]
        whole = {"exit": 0, "compile": 9, "fail": 0, "last_levels": 1, "spills": 0}
        self.assertEqual(entry["architectures"], {"75": {**whole, "last_levels": 0}, "86": whole,
                                                  "80": {"exit": 1, "compile": 8, "fail": 1},
                                                  "90a": {**whole, "exit": 1, "spills": 1},
                                                  "120a": {"unknown_to_toolkit": True}})
        self.assertEqual(entry["exit"], 1)
        self.commit("a.cu")
        self.assertEqual(self.gpu("architectures:80,75")[0], 1)
        self.assertEqual(sorted(self.steps()["architectures"]["architectures"]), ["75", "80"])


class Parity(Folder):
    def test_a_count_that_differs_is_named_and_what_changes_from_run_to_run_is_not(self):
        def golden(**counts):
            return {"cases": {"a": {"size": [4], "totals": {"shared_load": {"wavefronts": 8, "pipe_conflicts": 1} | counts}}}}

        def judge(measured):
            file = self.write("out/h200.json", json.dumps(measured))
            self.write("tests/parity/golden/h200.json", json.dumps(golden()))
            return gpu_record.parity_counts(self.root, file.parent)

        self.assertEqual(judge(golden(pipe_conflicts=2)), {"measured": 1, "differ": []})
        self.assertEqual(judge(golden(wavefronts=9)), {"measured": 1, "differ": ["a"]})
        self.assertEqual(judge({"cases": {}}), {"measured": 0, "differ": ["a"]})
        newer = golden()
        newer["cases"]["b"] = newer["cases"]["a"]
        self.assertEqual(judge(newer), {"measured": 2, "differ": ["b"]})
        (self.root / "tests/parity/golden/not_yet_measured.txt").write_text("b\nc\n")
        self.assertEqual(judge(newer), {"measured": 2, "differ": []})


class Recompile(Folder):
    """Compilers that fail on files with BAD in them, and note how they were called."""
    def setUp(self):
        super().setUp()
        for name in ("nvcc", "clang++"):
            self.script(self.bin / name, f'echo "{name} $*" >>"{self.root}/log"; for file; do case $file in '
                                         '*.c*) ! grep -q BAD $file || { echo "$file: error: bad"; exit 1; };; esac; done')
        self.entries = []

    def add(self, name, command, text=""):
        file = self.write(name, text)
        self.entries.append({"file": str(file), "directory": str(self.root),
                             "command": f"/usr/bin/ccache {command} -o {name}.o -c {file}"})
        self.write("compile_commands.json", json.dumps(self.entries))

    def recompile(self, *arguments):
        log = self.write("log", "")
        return *said(recompile.main, [str(self.root), *arguments]), log.read_text()

    def book(self):
        for chapter in ("a", "b", "c"):
            self.add("common/harness/run/main.cpp", f"g++ -DCOOKBOOK_CHAPTER={chapter}")
            self.add(f"chapters/{chapter}/libraries.cu", "g++ -x c++")
            self.add(f"build/generated/chapter_{chapter}_levels.cu", f"{self.bin}/nvcc --generate-code=arch=compute_80,code=[sm_80]")
        self.add("tests/a_test.cpp", "g++ -Wall -MD -MT a.o -MF a.d")
        self.add("tests/planted.cu", f"{self.bin}/nvcc --generate-code=arch=compute_80,code=[sm_80]")

    def test_files_that_are_compiled_together_are_compiled_alone_too(self):
        self.add("build/harness.dir/Unity/unity_0_cxx.cxx", "g++ -Wall",
                 '/* generated by CMake */\n\n#include "/book/claim.cpp"\n\n#include "/book/check.cpp"\n')
        status, out, called = self.recompile("--host-compiler", "clang++")
        self.assertEqual((status, out), (0, "2 files compile, 0 do not\n"))
        # Compilers run side by side, so the order of the calls is not fixed.
        self.assertCountEqual(called.splitlines(), [f"clang++ -Wall -c /book/{name}.cpp -Werror -fsyntax-only"
                                                    for name in ("claim", "check")])

    def test_host_code_is_compiled_by_the_other_compiler(self):
        self.book()
        status, out, called = self.recompile("--host-compiler", "clang++")
        self.assertEqual((status, out), (0, "6 files compile, 0 do not\n"))
        self.assertEqual(called.count("main.cpp -W"), 2)  # the first and the last
        self.assertIn("-DCOOKBOOK_CHAPTER=c", called)
        self.assertEqual(called.count("chapters/"), 2)  # the first and the last libraries.cu
        self.assertNotIn("levels.cu", called)
        self.assertRegex(called, r"(?m)^clang\+\+ -Wall -c \S+a_test\.cpp -Werror -fsyntax-only$")
        planted = next(line for line in called.splitlines() if "planted.cu" in line)
        self.assertIn("-ccbin clang++", planted)
        self.assertIn("-arch=compute_75", planted)
        self.assertNotIn("compute_80", planted)

    def test_headers_of_libraries_are_compiled_once_for_files_that_include_the_same(self):
        for name in ("a", "b", "c"):
            self.add(f"tests/{name}_test.cpp", "g++ -Wall -O1", "#include <gtest/gtest.h>\n")
        self.add("tests/d_test.cpp", "g++ -Wall", "#include <gtest/gtest.h>\n#include <fmt/format.h>\n")
        for name in ("e", "f", "g"):
            self.add(f"tests/{name}_test.cpp", "g++ -Wall", "")
        status, out, called = self.recompile("--host-compiler", "clang++")
        self.assertEqual((status, out), (0, "7 files compile, 0 do not\n"))
        self.assertEqual(len(re.findall(r"-x c\+\+-header \S+headers_0.hpp", called)), 1)
        # Compilers run side by side, so the order of the calls is not fixed.
        self.assertCountEqual(re.findall(r"(\w)_test.cpp .*-include-pch", called), ["a", "b", "c"])
        called = self.recompile("--host-compiler", "g++")[2]
        self.assertNotIn("-include-pch", called)

    def test_a_file_that_does_not_compile_fails(self):
        self.book()
        self.add("tests/b_test.cpp", "g++", "BAD")
        status, out, _ = self.recompile("--host-compiler", "clang++")
        self.assertEqual(status, 1)
        self.assertIn("b_test.cpp: error: bad", out)
        self.assertIn("6 files compile, 1 do not\n", out)

    def test_device_code_of_every_kernel_file(self):
        self.book()
        self.add("chapters/c/more.cu", f"{self.bin}/nvcc --generate-code=arch=compute_80,code=[sm_80]", "BAD")
        self.add("build/generated/chapter_a_levels.cu", f"{self.bin}/nvcc -DCOOKBOOK_TIMELINE=1")  # the twin
        status, out, called = self.recompile("--device")
        self.assertNotIn("TIMELINE", called)
        self.assertEqual((status, called.count("-fatbin"), called.count("compute_80")), (1, 5, 5), out)
        self.assertNotIn(" -c ", called)
        self.assertIn("4 files compile, 1 do not\n", out)
        self.assertEqual(self.recompile("--device", "--log", str(self.root / "said"))[0], 1)
        self.assertIn("more.cu: error: bad", (self.root / "said").read_text())
        self.assertEqual(self.recompile("--device", "--only", "levels.cu")[0], 0)

    def test_a_compiler_that_is_missing_or_hangs_fails(self):
        self.book()
        self.assertEqual(self.recompile("--host-compiler", "no-such-compiler")[0], 1)
        self.script(self.bin / "clang++", "sleep 60")
        status, out, _ = self.recompile("--host-compiler", "clang++", "--only", "a_test", "--limit", "1")
        self.assertEqual(status, 1)
        self.assertIn("no end after 1 s", out)

    def test_nothing_to_check_is_refused(self):
        self.assertEqual(self.recompile("--device")[0], 2)
        self.book()
        self.assertEqual(self.recompile("--device", "--only", "nowhere")[0], 2)


if __name__ == "__main__":
    unittest.main()
