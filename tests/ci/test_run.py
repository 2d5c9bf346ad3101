# SPDX-License-Identifier: MIT
"""`./run`, the Makefile, tests/sanitize.sh, docs/build.sh and .ci/run, with stand-ins for all that they call."""
import hashlib
import json
import os
import pty
import re
import shutil
import subprocess
import threading
import time
import unittest
from pathlib import Path

from tree import Tree

ROOT = Path(__file__).resolve().parents[2]


class Scripts(Tree):
    """A folder with the repository's scripts and with stand-ins for what they call."""
    def setUp(self):
        super().setUp()
        self.take("run", "tools/command")
        for tool in ("ninja", "addr2line"):  # nothing is missing, and nothing is built
            self.script(f"bin/{tool}", "exit 0")
        self.script("bin/apt-get", "exit 1")  # and if something were, it would not be installed here
        self.compiler("12.2.0")
        self.cmake("3.25.1")
        self.write("chapters/contents.txt", "0 a A\n11 b B: why\n")
        self.write("build/simt/CMakeCache.txt", "")
        for chapter, status in ((0, 3), (11, 0)):
            self.script(f"build/simt/chapter-{chapter}", 'case "$*" in --list) echo "main: first (MxN)"; exit;; esac; '
                                                         f'echo "{chapter}: $*"; exit {status}')
            self.script(f"build/simt/exercises/chapter-{chapter}", f'echo "exercises of {chapter}: $*"; exit {status}')

    def take(self, *names):
        """Copies files and folders of the repository."""
        for name in names:
            to = self.root / name
            to.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, to, ignore=shutil.ignore_patterns("results", "figures", "tests", "__pycache__"))
            else:
                shutil.copy(ROOT / name, to)

    def log(self, name="cmake"):
        """What a stand-in has noted since the last time."""
        path = self.root / f"{name}.log"
        text = path.read_text() if path.exists() else ""
        path.unlink(missing_ok=True)
        return text

    def noting(self, name):
        """A stand-in that notes how it was called."""
        self.script(f"bin/{name}", f'echo "$*" >>"{self.root}/{name}.log"')

    def gpu(self, nvcc):
        """A GPU, an nvcc that says it is of this release, and what it has built."""
        self.script("bin/nvidia-smi", '[ "$*" != -L ] || echo "GPU 0: a GPU"')
        self.script("bin/nvcc", f'echo "Copyright (c) 2005-2025"; echo "Cuda compilation tools, {nvcc}"')
        self.script("build/cuda/chapter-11", 'echo "11 on the GPU: $*"')
        self.write("build/cuda/CMakeCache.txt", "")

    def compiler(self, version, name="g++"):
        self.script(f"bin/{name}", f'[ "$*" != -dumpfullversion ] || echo {version}')

    def cmake(self, version):
        self.script("bin/cmake", f'case "$*" in --version) printf "cmake version {version}\\n\\nCMake suite";; '
                                 f'*) echo "$*" >>"{self.root}/cmake.log";; esac')

    def environment(self, backend, **more):
        environment = dict(os.environ, PATH=f"{self.root}/bin:{os.environ['PATH']}", JOBS="2")
        for name in ("BACKEND", "CXX", "CUDACXX", "MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES"):
            environment.pop(name, None)
        if backend is not None:
            environment["BACKEND"] = backend
        return dict(environment, **more)

    def expect(self, done, status, out=None, error=None):
        """A process ended with this status, and said this, where it is given."""
        said = (done.returncode, *(text for text, expected in ((done.stdout, out), (done.stderr, error)) if expected is not None))
        self.assertEqual(said, (status, *(text for text in (out, error) if text is not None)), done.args)

    def start(self, *command, backend=None, cwd=None, **more):
        """A process that has ended: a program of the folder, where one has that name."""
        program = self.root / command[0]
        return subprocess.run([program if program.is_file() else command[0], *command[1:]], capture_output=True, text=True,
                              env=self.environment(backend, **more), cwd=cwd or self.root)

    def run_it(self, *arguments, backend="simt", **more):
        return self.start("run", *arguments, backend=backend, **more)

    def passes(self, *arguments, **more):
        """What ./run prints, and says on stderr, where it ends with 0."""
        done = self.run_it(*arguments, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr


class Run(Scripts):
    def test_every_chapter_runs_and_one_failure_is_remembered(self):
        self.expect(self.run_it("all", "--check"), 3, "0: --check\n11: --check\n")

    def test_without_a_gpu_the_first_ladders_are_enough(self):
        done = self.run_it()
        self.assertEqual(done.stdout, "0: --ladder main\n11: --ladder main\n")
        self.assertIn("./run 9 runs all of chapter 9", done.stderr)
        self.gpu("release 12.8, V12.8.93")
        self.write("build/cuda/CMakeCache.txt", "")
        for chapter in (0, 11):
            self.script(f"build/cuda/chapter-{chapter}", f'echo "{chapter}: $*"')
        self.assertEqual(self.passes(backend="cuda")[0], "0: \n11: \n")

    def test_each_chapter_writes_a_file_of_its_own(self):
        self.assertEqual(self.run_it("all", "--json", "a b.json", "--hot").stdout,
                         "0: --json a b-0.json --hot\n11: --json a b-11.json --hot\n")
        self.assertEqual(self.run_it("--json=c").stdout, "0: --json=c-0.json\n11: --json=c-11.json\n")

    def test_every_chapter_is_built_and_no_test(self):
        self.run_it()
        self.assertEqual(self.log(), "--build build/simt -j 2 --target chapter-0 chapter-11\n")

    def build(self, *lines):
        """A build that prints these lines; `await NAME` in their place waits for a file of that name."""
        says = [f'while [ ! -e "{self.root}/{line.split()[1]}" ]; do sleep 0.02; done' if line.startswith("await ")
                else line if line.startswith("exit ") else f"echo '{line}'" for line in lines]
        self.script("bin/cmake", 'case "$*" in --version) echo cmake version 3.25.1; exit;; esac\n' + "\n".join(says))

    def test_a_chapter_runs_while_later_ones_are_compiled(self):
        self.script("build/simt/chapter-0", f'touch "{self.root}/ran"; echo 0')
        for first, second in (("[7/9] Linking CXX executable chapter-0", "[9/9] Linking CXX executable chapter-11"),
                              ("[ 40%] Built target chapter-0", "[100%] Built target chapter-11")):
            (self.root / "ran").unlink(missing_ok=True)
            self.build(first, "await ran", second)  # would wait for ever, were all built first
            self.expect(self.run_it(), 0, "0\n11: --ladder main\n")

    def test_a_chapter_that_does_not_compile_leaves_the_results_of_those_before(self):
        self.build("[7/9] Linking CXX executable chapter-0", "level_1.cuh:3: error: a slip", "exit 1")
        done = self.run_it()
        self.expect(done, 1, "0: --ladder main\n")
        self.assertRegex(done.stderr, r"(?s)error: a slip.*run: the build failed\n$")

    def test_another_run_may_build_once_all_is_built(self):
        self.build("[8/9] Linking CXX executable chapter-0", "[9/9] Linking CXX executable chapter-11")
        self.script("build/simt/chapter-0", "sleep 0.5")
        self.script("build/simt/chapter-11", "flock -n build/lock true && echo free")
        self.assertEqual(self.run_it().stdout, "free\n")

    def test_an_experiment_is_built_when_it_is_asked_for(self):
        self.write("chapters/11_b/sidebar_two_words.cu", "// what it is\n")
        self.write("chapters/11_b/sidebar_gpu.cu", "// what it is\n// needs: cuda sm_90a\n")
        self.script("build/simt/chapter-11-two-words", 'echo "words: $*"')
        self.expect(self.run_it("chapter-11-two-words", "2^-20"), 0, "words: 2^-20\n")
        self.assertEqual(self.log(), "--build build/simt -j 2 --target chapter-11-two-words\n")
        for asked, line in (("chapter-11-two", "no chapter-11-two; chapter 11 has: chapter-11-gpu chapter-11-two-words"),
                            ("chapter-0-two", "no chapter-0-two; chapter 0 has: none"),
                            ("chapter-12-two", "no chapter 12; there are: 0 11 "),
                            ("chapter-11-gpu", "chapter-11-gpu needs a GPU and nvcc")):
            self.expect(self.run_it(asked), 2, "", f"run: {line}\n")
        self.assertEqual(self.log(), "")

    def test_a_timeline_is_of_one_chapter_and_built_apart(self):
        done = self.run_it("--timeline", "t.json")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"^run: --timeline records a level of one chapter, .*\n$")
        self.assertEqual(self.run_it("11", "--timeline", "new/t.json").stdout, "11: --timeline new/t.json\n")
        self.assertTrue((self.root / "new").is_dir())
        self.assertIn("--build build/simt -j 2 --target chapter-11-timeline\n", self.log())
        self.gpu("release 13.0, V13.0.48")
        self.run_it("11", "--timeline", "t.json", backend="cuda")
        self.assertIn("--build build/cuda -j 2 --target chapter-11-timeline\n", self.log())
        self.write("chapters/11_b/levels.cu", "// its own\n")
        self.assertRegex(self.run_it("11", "--timeline", "t.json", backend="cuda").stderr,
                         r"^run: chapter 11 has no levels with marks: .*\n$")

    def test_tools_that_are_too_old_are_refused_in_one_line(self):
        old = "run: needs {}; this is {} (docs/building.md says how to get one)\n"
        for compiler, cmake, error in (
                ("11.4.0", "3.25.1", old.format("g++ 12 or later", "11.4.0")),
                ("9.4.0", "3.25.1", old.format("g++ 12 or later", "9.4.0")),
                ("12", "3.22.1", old.format("CMake 3.25 or later", "3.22.1")),
                ("12", "unknown", "run: cannot tell the version of CMake: it says 'cmake version unknown'\n"),
                ("12.2.0", "3.25", None), ("12.2.0", "3.30.0-rc2", None), ("12.2.0", "4.0.3", None)):
            with self.subTest(compiler=compiler, cmake=cmake):
                self.compiler(compiler)
                self.cmake(cmake)
                self.expect(self.run_it("11"), 2 if error else 0, "" if error else None, error)
        self.compiler("11.4.0")
        self.compiler("13.3.0", "g++-13")
        self.passes("11", CXX="g++-13")

    def test_an_nvcc_that_is_too_old_leaves_the_cpu(self):
        for release, found in (("release 12.2, V12.2.140", "12.2"), ("release 11.8, V11.8.89", "11.8"),
                               ("release 9.1, V9.1.85", "9.1")):
            self.gpu(release)
            why = f"nvcc {found} is older than 12.8: using the SIMT backend on the CPU\n"
            self.expect(self.run_it("--print-backend", backend=None), 0, "simt\n", why)
            self.expect(self.run_it("11", "--list", backend=None), 0, "main: first (MxN)\n",
                        why + "Building (simt: chapter-11) ...\n")
            # Asked for the CPU, nobody needs to know.
            self.assertEqual(self.run_it("--print-backend", backend="simt").stderr, "")
        self.script("bin/nvcc", "echo nvcc fatal 13")
        self.expect(self.run_it("--print-backend", backend=""), 0, "simt\n",
                    "cannot tell the version of nvcc: using the SIMT backend on the CPU\n")

    def test_an_nvcc_that_is_new_enough_is_taken(self):
        for release in ("release 12.8, V12.8.93", "release 12.10, V12.10.1", "release 13.0, V13.0.88"):
            self.gpu(release)
            for backend in (None, "cuda"):
                self.expect(self.run_it("--print-backend", backend=backend), 0, "cuda\n", "")
                self.expect(self.run_it("11", "--list", backend=backend), 0, "11 on the GPU: --list\n")

    def test_without_a_gpu_nvcc_is_not_asked(self):
        self.gpu("release 12.2, V12.2.140")
        self.script("bin/nvidia-smi", "exit 9")
        self.expect(self.run_it("--print-backend", backend=None), 0, "simt\n", "")

    def test_the_gpu_is_refused_in_one_line_where_nvcc_is_too_old(self):
        self.gpu("release 12.6, V12.6.20")
        for arguments in (("11",), ("all",), ("test",), ("build",), ("sanitize",)):
            self.expect(self.run_it(*arguments, backend="cuda"), 2, "",
                        "run: needs nvcc 12.8 or later; this is 12.6 (docs/building.md says how to get one)\n")
        self.assertEqual(self.log(), "")
        # What CMake will take is what counts.
        self.script("newer/nvcc", 'echo "Cuda compilation tools, release 12.8, V12.8.93"')
        newer = str(self.root / "newer/nvcc")
        self.assertEqual(self.run_it("11", backend="cuda", CUDACXX=newer).stdout, "11 on the GPU: \n")
        self.assertEqual(self.run_it("--print-backend", backend=None, CUDACXX=newer).stdout, "cuda\n")

    def test_the_choice_is_explained_once(self):
        """Scripts that ./run starts ask it for the backend again."""
        self.gpu("release 12.2, V12.2.140")
        self.script("plots/profile.sh", "./run --print-backend")
        done = self.run_it("profile", backend=None)
        self.assertEqual((done.stdout, done.stderr.count("older than 12.8")), ("simt\n", 1))

    def test_a_failed_configuration_is_shown_and_leaves_its_log_in_the_build_folder(self):
        (self.root / "build/simt/CMakeCache.txt").unlink()
        self.script("bin/cmake", 'case "$*" in --version) echo cmake version 3.25.1;; '
                                 '*--preset*) touch build/simt/CMakeCache.txt; echo no such preset; exit 1;; esac')
        self.run_it("11")
        # Again: CMake has written its cache, and still nothing is configured.
        self.expect(self.run_it("11"), 1, "", "no such preset\nrun: configuring failed\n")
        self.assertEqual((self.root / "build/simt/configure.log").read_text(), "no such preset\n")

    def test_one_chapter(self):
        self.expect(self.run_it("11", "--json", "a.json"), 0, "11: --json a.json\n")

    def test_what_is_not_there_is_refused_in_one_line(self):
        for arguments, line in ((("12",), "run: no chapter 12; there are: 0 11 "),
                                (("teh",), "run: no 'teh' here: neither a command nor a folder (./run help lists what there is)"),
                                (("exercise", "3"), "run: exercise takes CHAPTER.NUMBER, such as 3.1"),
                                (("exercise", "11.9"), "run: no exercise 11.9; docs/exercises.md lists them"),
                                (("exercise", "11.9", "--hint"), "run: no exercise 11.9; docs/exercises.md lists them")):
            self.expect(self.run_it(*arguments), 2, error=line + "\n")
        self.assertEqual(self.log(), "")  # nothing is built in vain
        self.expect(self.run_it("all", backend="gpu"), 2, error="run: BACKEND is 'gpu'; it must be simt or cuda\n")


    def test_an_option_that_no_chapter_has_is_refused_once(self):
        for chapter in (0, 11):
            self.script(f"build/simt/chapter-{chapter}",
                        'case "$*" in *--hlep*) echo "chapter: no --hlep" >&2; exit 2;; esac; echo ran')
        done = self.run_it("--hlep")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr.count("no --hlep"), 1)
        self.assertNotIn("chapter-11", self.log())  # nothing is built in vain
        self.assertEqual(self.run_it("--check").stdout, "ran\nran\n")
        self.assertIn("chapter-11", self.log())

    def test_a_number_of_jobs_that_is_none_is_refused_in_one_line(self):
        for jobs in ("abc", "0", "-1", "2x"):
            self.expect(self.run_it("11", JOBS=jobs), 2, "",
                        f"run: JOBS is '{jobs}'; it must be a number of compilers, 1 or more\n")
        self.passes("11", JOBS="")

    def test_without_a_gpu_nothing_is_built_for_one(self):
        self.gpu("release 13.0, V13.0.88")
        self.script("bin/nvidia-smi", "exit 9")
        for arguments in (("11",), ("all",), ("test",), ("sanitize",)):
            self.expect(self.run_it(*arguments, backend="cuda"), 2, "",
                        "run: BACKEND=cuda needs a GPU, and nvidia-smi finds none (./run build works without)\n")
        self.assertEqual(self.log(), "")
        self.passes("build", backend="cuda")
        self.assertIn("--build build/cuda", self.log())

    def test_a_file_is_where_the_caller_is_and_its_folder_is_made(self):
        away = self.root / "away from here"
        away.mkdir()
        for arguments, file in ((("--json", "a/b.json"), "--json {}/a/b.json"), (("--json=c.json",), "--json={}/c.json"),
                                (("--json", "/tmp/d.json", "--size", "4x4"), "--json /tmp/d.json --size 4x4")):
            self.expect(self.run_it("11", *arguments, cwd=away), 0, f"11: {file.format(away)}\n")
        self.assertTrue((away / "a").is_dir())
        self.expect(self.run_it("11", "--explain", "--draw", "pictures", cwd=away), 0, f"11: --explain --draw {away}/pictures\n")
        self.assertEqual(self.run_it("--json", "e/f.json", cwd=away).stdout,
                         f"0: --json {away}/e/f-0.json\n11: --json {away}/e/f-11.json\n")
        self.assertTrue((away / "e").is_dir())
        self.write("chapters/11_b/exercises/exercise_1_a.cuh", "")
        self.assertEqual(self.run_it("exercise", "11.1", "--json", "g/h.json", cwd=away).stdout,
                         f"exercises of 11: --exercise 1 --json {away}/g/h.json\n")
        (away / "file").touch()
        self.expect(self.run_it("11", "--json", "file/a.json", cwd=away), 2, "", "run: cannot make the folder file\n")

    def test_an_exercise_is_built_without_the_levels(self):
        for file in ("00_a/exercises/exercise_1_a.cuh", "11_b/exercises/exercise_2_a.cuh"):
            self.write(f"chapters/{file}", "")
        self.expect(self.run_it("exercise", "0.1", "--explain"), 2, error="run: exercise 0.1 takes no '--explain'; it takes "
                    "--variant, --hint, --size, --json, --out, --seed, --time-limit, --in-process\n")
        self.assertEqual(self.log(), "")
        self.run_it("exercise", "0.1")
        self.assertIn("--target chapter-0-exercises\n", self.log())
        self.write("chapters/00_a/exercises/exercise_1_a.cuh", "// a\n// Variant 5 of exercise 0.1 (seed 0.1/5). And so on.\n")
        self.assertTrue(self.run_it("exercise", "0.1").stdout.startswith(
            "chapters/00_a/exercises/exercise_1_a.cuh says: Variant 5 of exercise 0.1 (seed 0.1/5)\n"))
        self.write("chapters/11_b/levels.cu", "")  # which has to be compiled as it is
        self.assertEqual(self.run_it("exercise", "11.2").stdout, "11: --exercise 2\n")
        self.assertIn("--target chapter-11\n", self.log())

    def test_an_exercise_to_read_asks_and_counts(self):
        self.take("tools/exercises")
        self.write("chapters/11_b/level_0_a.cuh", "  // [quote a]\n  x = in[i];\n  // [end quote]\n")
        count = {"what": "requests", "operation": "load"}
        self.write("chapters/11_b/exercises/exercise_11_a.json", json.dumps({
            "kind": "read", "title": "a title", "ladder": "copy", "level": "a", "draw": {"n": [7]}, "size": ["n"],
            "quotes": [["level_0_a.cuh", "a"]], "text": "n = {n}", "hints": ["first", "second"],
            "questions": [{"name": "requests", "ask": "how many?", "think": "of {n}", "count": count}]}))
        self.write("chapters/11_b/exercises/exercise_11_a.txt", "requests = ?\n")
        counted = json.dumps({"runs": [{"levels": [{"name": "a", "lines": [{"operation": "load", "kernel": "k", "requests": 3}]}]}]})
        self.script("build/simt/chapter-11", f"while [ $# -gt 1 ]; do shift; done; echo '{counted}' >$1")
        done = self.run_it("exercise", "11.11")
        self.assertEqual(done.returncode, 1, done.stderr)
        for text in ("Exercise 11.11, variant 0 (seed 11.11/0) · a title\n  n = 7\n", "  level_0_a.cuh:2\n    x = in[i];\n",
                     "?  requests: how many?\nexercise 11.11, variant 0: not yet\n"):
            self.assertIn(text, done.stdout)
        self.assertIn("--target chapter-11\n", self.log())
        away = self.root / "away"
        away.mkdir()
        for answer, status, text in (("requests = 3", 0, "pass  requests"), ("requests = 4", 1, "of 7")):
            (away / "mine.txt").write_text(answer)
            done = self.run_it("exercise", "11.11", "--answers", "mine.txt", "--json", "out.json", cwd=away)
            self.assertEqual((done.returncode, text in done.stdout, "= 3" in done.stdout), (status, True, False), done.stdout)
            self.assertEqual(json.loads((away / "out.json").read_text())["passed"], status == 0)
        # An empty file of answers says of which variant it is; one with answers is left as it is.
        file = self.root / "chapters/11_b/exercises/exercise_11_a.txt"
        shipped = "# Exercise 11.11. `./run exercise 11.11` asks. Write a number for each '?'.\nrequests = ?\n"
        file.write_text(shipped)
        for number in ("17", "5", "0", "17"):
            self.run_it("exercise", "11.11", "--variant", number)
            self.assertEqual(f"# Variant {number} of exercise 11.11 (seed 11.11/{number})." in file.read_text(), number != "0")
        answered = file.read_text().replace("?\n", "3\n")
        file.write_text(answered)
        done = self.run_it("exercise", "11.11", "--variant", "5")
        self.assertIn("The file says that it answers variant 17. It is compared with variant 5.", done.stdout)
        self.assertEqual(file.read_text(), answered)
        self.script("build/simt/chapter-11", "echo why it fails >&2; exit 3")
        self.assertTrue(self.run_it("exercise", "11.11").stderr.endswith("exercise: counting ended with status 3: why it fails\n"))
        self.log()
        self.expect(self.run_it("exercise", "11.11", "--hint"), 0, "first\n", "")
        self.expect(self.run_it("exercise", "11.11", "--hint", "2"), 0, "second\n", "")
        self.expect(self.run_it("exercise", "11.11", "--hint", "3"), 2, "", "exercise: --hint takes 1 or 2; got '3'\n")
        self.expect(self.run_it("exercise", "11.11", "--size", "7"), 2, "",
                    "run: exercise 11.11 takes no '--size'; it takes --variant, --hint, --answers, --json\n")
        self.assertEqual(self.log(), "")  # a hint builds nothing

    def test_an_exercise_of_numbers_is_added_up_by_a_sidebar(self):
        self.take("tools/exercises")
        self.write("chapters/11_b/exercises/exercise_3_sums.json", json.dumps({
            "kind": "design", "title": "a title", "program": "chapter-11-sums", "hints": ["first", "second"],
            "limits": {"least": -2, "most": 9, "count": 3}, "draw": {"least": [-9], "count": [2]}, "above": 4,
            "texts": ["# a\n4 1\n", "# a\n# from 2^{least} to 2^{most}, {count}\n2^{most}\n"]}))
        self.write("chapters/11_b/exercises/exercise_3_sums.txt", "# a\n4 1\n")
        self.script("build/simt/chapter-11-sums", 'echo "sums of $*"')
        self.expect(self.run_it("exercise", "11.3"), 0, "sums of 4 1\nexercise 11.3, variant 0: passed\n")
        self.assertIn("--target chapter-11-sums\n", self.log())
        done = self.run_it("exercise", "11.3", "--variant", "17")
        self.assertIn("sums of 2^-5\nexercise 11.3, variant 17: passed\n", done.stdout)
        (self.root / "mine.txt").write_text("4 1\n")
        done = self.run_it("exercise", "11.3", "--variant", "17", "--answers", "mine.txt", "--json", "out.json")
        self.assertEqual((done.returncode, "a number is below 2^-9 or above 2^-5" in done.stdout), (1, True), done.stdout)
        self.assertEqual(json.loads((self.root / "out.json").read_text())["passed"], False)

    def test_help_of_a_verb_builds_nothing(self):
        self.take("docs/build.sh", "plots", "tools/identity")
        before = sorted(self.root.rglob("*"))
        own = [(verb, "./run " + verb) for verb in ("setup", "build", "exercise", "test", "sanitize", "report", "new")]
        for verb, word in (("docs", "site"), ("profile", "--ladder"), ("plots", "--results"), ("compare", "--quick"), *own):
            for option in ("--help", "-h"):
                self.assertIn(word, self.passes(verb, option)[0])
        self.assertEqual(sorted(self.root.rglob("*")), before)
        for verb in ("docs", "setup"):
            self.expect(self.run_it(verb, "--hlep"), 2, error=f"run: {verb} takes no '--hlep'\n")

    def test_a_second_run_waits_while_the_first_builds(self):
        self.script("bin/cmake", 'case "$*" in --version) echo cmake version 3.25.1; exit;; esac\n'
                                 f'cd "{self.root}"; [ ! -e building ] || echo two at once >>cmake.log\n'
                                 'touch building; while [ ! -e go ]; do sleep 0.05; done; rm building')
        def begin():
            return subprocess.Popen([self.root / "run", "11"], env=self.environment("simt"), cwd=self.root,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        first = begin()
        while not (self.root / "building").exists() and first.poll() is None:
            time.sleep(0.01)
        second = begin()
        waits = threading.Timer(60, (self.root / "go").touch)  # so that a run that does not wait ends as well
        waits.start()
        self.assertEqual(second.stderr.readline(), "Another ./run is building here: waiting for it.\n")
        (self.root / "go").touch()
        waits.cancel()
        for process in (first, second):
            out, error = process.communicate()
            self.assertEqual((process.returncode, out), (0, "11: \n"), error)
            self.assertNotIn("Another", error)
        self.assertEqual(self.log(), "")

    def missing(self, user="1000"):
        """Something is missing, for a user who is not root and has sudo."""
        self.script("bin/g++", 'case "$*" in -dumpfullversion) echo 12.2.0;; *) cat >/dev/null; echo libcli11-dev;; esac')
        self.script("bin/id", f"echo {user}")
        self.script("bin/sudo", f'echo "sudo $*" >>"{self.root}/sudo.log"; while [ $# -gt 0 ]; do '
                                'case "$1" in -n | env | true) shift;; *=*) shift;; *) break;; esac; done; "$@"')
        self.noting("apt-get")

    def typed(self, answer, *arguments):
        """./run on a terminal, where this is typed: (exit status, what the terminal shows, calls of sudo)."""
        terminal, end = pty.openpty()
        self.addCleanup(os.close, terminal)
        os.write(terminal, answer.encode())
        done = subprocess.run([self.root / "run", *arguments], env=self.environment("simt"), cwd=self.root, stdin=end,
                              stdout=subprocess.DEVNULL, stderr=end, check=False)
        os.close(end)
        shown = b""
        try:
            while part := os.read(terminal, 65536):  # it comes in parts
                shown += part
        except OSError:  # how Linux says that the other end is closed
            pass
        return done.returncode, shown.decode(), self.log("sudo")

    def test_on_a_terminal_sudo_is_asked_for(self):
        self.missing()
        status, shown, sudo = self.typed("n\n", "setup")
        self.assertEqual((status, sudo), (2, ""), shown)
        self.assertIn("Needs libcli11-dev", shown)
        self.assertIn("nothing was installed", shown)
        status, shown, _ = self.typed("\n", "setup")
        self.assertEqual(status, 0, shown)
        self.assertIn("install -y -qq --no-install-recommends libcli11-dev\n", self.log("apt-get"))

    def test_without_a_terminal_or_as_root_nobody_is_asked(self):
        self.missing()
        out, said = self.passes("setup")
        self.assertEqual(out, "")
        self.assertIn("Installing libcli11-dev (", said)
        self.assertIn("sudo -n env", self.log("sudo"))
        self.missing(user="0")
        status, shown, sudo = self.typed("", "setup")
        self.assertEqual((status, sudo), (0, ""), shown)
        self.assertNotIn("[Y/n]", shown)
        self.assertEqual(self.log(), "")  # setup builds nothing

    def test_what_has_passed_and_is_unchanged_is_left_out(self):
        self.script("bin/ctest", f'echo "$* ${{COOKBOOK_SHORT_TEST:+(short)}}" >>"{self.root}/ctest.log"')
        for name in ("CMakeLists.txt", "CMakePresets.json", "common/a.hpp", "capstones/scan/ladder.hpp",
                     "chapters/03_b/level_0_a.cuh", "chapters/03_b/README.md", "chapters/03_b/exercises/exercise_1_a.cuh"):
            self.write(name, "")
        record = self.root / "tests/passed.json"
        record.parent.mkdir(exist_ok=True)
        levels = "-LE ^maintainer$ -R ^(traced_)?(chapter_[0-9]+|capstone_(scan))([._]|$)"

        def tested(*arguments, **more):
            said = self.passes("test", *arguments, **more)[1]
            tests, short, _ = self.log("ctest").splitlines()[0].partition("--output-on-failure ")[2].partition("(short)")
            tests = tests.strip()
            self.assertEqual("a short test" in said, bool(short))
            self.assertEqual("--target levels" in self.log(), tests.startswith(levels))
            return tests + " (short)" if short and not tests.startswith(levels) else tests

        self.assertEqual(tested(), "-LE ^maintainer$")  # there is no record
        self.assertEqual(tested("--maintainer"), "")
        self.assertEqual(tested("--maintainer", "--all", "-E", "slow"), "-E slow")
        self.assertEqual(tested(), "-LE ^maintainer$")  # not of everything
        self.script("bin/ctest", "exit 8")
        self.assertEqual(self.run_it("test", "--maintainer", "--all").returncode, 8)
        self.assertFalse(record.exists())
        self.script("bin/ctest", f'echo >>"{self.root}/common/a.hpp"; echo "$* ${{COOKBOOK_SHORT_TEST:+(short)}}" >>"{self.root}/ctest.log"')
        self.assertEqual(tested("--maintainer", "--all"), "")
        self.assertFalse(record.exists())  # a file was edited meanwhile
        self.script("bin/ctest", 'echo "$* ${COOKBOOK_SHORT_TEST:+(short) full: $COOKBOOK_FULL_TEST}" '
                    f'>>"{self.root}/ctest.log"')
        self.assertEqual(tested("--maintainer", "--all", "-j", "3"), "-j 3")
        said = subprocess.run(["python3", "-B", str(self.root / "tools/command/unchanged.py")], env=self.environment("simt"),
                              capture_output=True, text=True, check=True).stdout
        self.assertEqual(said, "tests/passed.json is of these sources\n")
        self.assertEqual(tested(), levels)
        self.assertEqual(tested("-V"), levels + " -V")
        self.assertEqual(tested("--all"), "-LE ^maintainer$")
        self.assertEqual(tested("--maintainer"), " (short)")
        drawn = re.search("a full one of (.*), and all other tests", self.passes("test", "--maintainer")[1])[1]
        self.assertIn(drawn, {"chapter_0", "chapter_3", "chapter_11", "capstone_scan"})
        self.assertIn(f"full: {drawn}\n", self.log("ctest"))
        # What a reader writes, and what no test is made of.
        self.write("chapters/03_b/README.md", "mine")
        self.write("chapters/03_b/exercises/exercise_1_a.cuh", "solved")
        self.write("docs/a.md", "new")
        self.write("tests/gpu_record.json", "{}")
        self.assertEqual(tested(), levels)
        # All else: an edit, a new file, one that is gone, another compiler, a GPU, a record that is none.
        for name in ("common/a.hpp", "chapters/03_b/level_0_a.cuh", "CMakeLists.txt", "run", "tools/command/machine.py"):
            was = (self.root / name).read_bytes()
            (self.root / name).write_bytes(was + b"\n")
            self.assertEqual(tested(), "-LE ^maintainer$", name)
            (self.root / name).write_bytes(was)
        self.assertEqual(tested(), levels)
        self.write("common/b.hpp", "")
        self.assertEqual(tested(), "-LE ^maintainer$")
        (self.root / "common/b.hpp").rename(self.root / "docs/b.hpp")
        (self.root / "common/a.hpp").rename(self.root / "docs/a.hpp")
        self.assertEqual(tested(), "-LE ^maintainer$")
        (self.root / "docs/a.hpp").rename(self.root / "common/a.hpp")
        self.assertEqual(tested(), levels)
        self.compiler("13.3.0")
        self.assertEqual(tested(), "-LE ^maintainer$")
        self.compiler("12.2.0")
        self.gpu("release 12.8, V12.8.93")
        self.write("build/cuda/CMakeCache.txt", "")
        self.assertEqual(tested(backend="cuda"), "-LE ^maintainer$")
        for text in ("", "[]", "{}", '{"machine": 1, "sources": 2}'):
            record.write_text(text)
            self.assertEqual(tested(), "-LE ^maintainer$", text)

    def test_what_only_maintainers_keep_true_is_left_out(self):
        self.noting("ctest")
        for arguments, tests in (((), "-LE ^maintainer$"), (("--maintainer",), ""),
                                 (("11",), "-LE ^maintainer$ -R ^(traced_)?chapter_11([._]|$)")):
            self.passes("test", *arguments)
            self.assertEqual(self.log("ctest"), f"--test-dir build/simt -j 2 --output-on-failure {tests}".rstrip() + "\n")
            self.assertEqual("--target solutions" in self.log(), arguments == ("--maintainer",))

    def chosen(self, *arguments, tests=(), **more):
        """The targets that `./run test` builds for these arguments, where ctest knows these tests, and how it ends."""
        shown = self.write("tests.json", json.dumps({"tests": list(tests)}))
        self.script("bin/ctest", f"""echo "$*" >>"{self.root}/ctest.log"
            case "$*" in *--show-only=json-v1*) cat "{shown}";; esac""")
        _, said = self.passes("test", *arguments, **more)
        return self.log().splitlines(), self.log("ctest"), said

    def test_only_what_the_chosen_tests_need_is_built(self):
        build = (self.root / "build/simt").resolve()
        tests = [{"name": "capstone_scan_scan", "command": [f"{build}/levels-test-capstone-scan", "--gtest_filter=a"]},
                 {"name": "capstone_scan_bounds", "command": [f"{build}/levels-test-capstone-scan", "-x"]},
                 {"name": "traced_capstone_scan_NOT_BUILT",
                  "command": ["/bin/cmake", "-E", "false", "levels-traced-test-capstone-scan"]},
                 {"name": "harness-test_NOT_BUILT"},
                 {"name": "Exercises.All", "command": [f"{build}/exercises-test", "--gtest_filter=a"]},
                 {"name": "check_programs", "command": ["/usr/bin/python3", "-B", "test.py"]}]
        for choice in (("-R", "scan"), ("-Rscan",), ("--tests-regex=scan",), ("-V", "-L", "x"), ("--label-regex", "x")):
            built, asked, said = self.chosen(*choice, tests=tests)
            self.assertEqual(built, ["--build build/simt -j 2 --target exercises-test harness-test "
                                     "levels-test-capstone-scan levels-traced-test-capstone-scan "
                                     "needs-check_programs solutions"])
            words = " ".join(choice)
            self.assertEqual(asked, f"--test-dir build/simt --show-only=json-v1 -LE ^maintainer$ {words}\n"
                                    "--test-dir build/simt -j 2 --output-on-failure -LE ^maintainer$ "
                                    f"--no-tests=error {words}\n")
            self.assertNotIn("Skipped", said)  # no test was left out that was asked for
        # Beside a GPU its tests, too.
        self.gpu("release 12.8, V12.8.93")
        built, asked, _ = self.chosen("-R", "scan", tests=tests[3:4], backend="cuda")
        self.assertEqual(built, [f"--build build/{kind} -j 2 --target harness-test" for kind in ("simt", "cuda")])
        self.assertEqual(asked.splitlines()[-1],
                         "--test-dir build/cuda -j 8 --output-on-failure -LE ^maintainer$ -R scan")

    def test_everything_is_built_where_no_name_matches_yet_or_none_is_asked_for(self):
        built, _, said = self.chosen("-R", "Isolation")
        self.assertEqual(built, ["--build build/simt -j 2"])
        self.assertIn("No test that is built has such a name: building all (simt).\n", said)
        for arguments in ((), ("-V",), ("-E", "scan"), ("-LE", "slow")):
            built, asked, _ = self.chosen(*arguments)
            self.assertEqual(built, ["--build build/simt -j 2"])
            self.assertNotIn("--show-only", asked)
            self.assertNotIn("--no-tests", asked)



class Capstones(Scripts):
    """Folders outside the book. What CMake would build is there already."""
    def setUp(self):
        super().setUp()
        self.take("tools/capstone")
        self.outside = self.root / "outside"
        self.outside.mkdir()

    def run_it(self, *arguments, cwd=None, **more):
        return super().run_it(*arguments, cwd=cwd or self.outside, **more)

    def refusal(self, *arguments):
        done = self.run_it(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        return done.stderr

    def built(self, folder, program, text):
        name = program.removeprefix("capstone-")
        key = hashlib.sha256(f"{folder.resolve()}\n".encode()).hexdigest()[:8]
        for kind in ("simt", "cuda"):
            self.script(f"build/capstones/{name}-{key}/{kind}/{program}", text)
        return f"build/capstones/{name}-{key}"

    def test_every_template_has_what_a_capstone_needs_and_its_name(self):
        for template in ("vector", "rows", "matrix", "gemm"):
            _, said = self.passes("new", f"My {template}", "--from", template)
            made = self.outside / f"My {template}"
            levels = sorted(file.name for file in made.glob("level_*.cuh"))
            self.assertEqual(len(levels), 2)
            self.assertEqual(levels[0], "level_0_naive.cuh")
            self.assertEqual(sorted(file.name for file in made.iterdir() if file.name != ".git"),
                             ["README.md", "ladder.hpp", *levels, "problem.hpp"])
            ladder = (made / "ladder.hpp").read_text()
            self.assertIn(f'"my_{template}"', ladder)
            self.assertTrue((made / "README.md").read_text().startswith(f"# my_{template}\n"))
            for file in (made / name for name in os.listdir(made) if name != ".git"):
                self.assertNotIn("capstone_name", file.read_text())
            self.assertIn(f"Made My {template}.", said)
        self.assertIn("./run test 'a b'", self.passes("new", "a b")[1])
        self.passes("new", "plain")
        for name in ("problem.hpp", "level_0_naive.cuh"):
            self.assertEqual((self.outside / "plain" / name).read_text(),
                             (ROOT / "tools/capstone/templates/vector" / name).read_text())

    def test_every_topic_has_a_statement_the_questions_and_a_first_level(self):
        topics = sorted(os.listdir(ROOT / "tools/capstone/topics"))
        self.assertEqual(len(topics), 8)
        for topic in topics:
            _, said = self.passes("new", f"My {topic}", f"--topic={topic}")
            self.assertIn("README.md has the task.", said)
            made = self.outside / f"My {topic}"
            self.assertEqual(sorted(file.name for file in made.iterdir() if file.name != ".git"),
                             ["README.md", "ladder.hpp", "level_0_naive.cuh", "problem.hpp"])
            text = (made / "README.md").read_text()
            self.assertTrue(text.startswith(f"# my_{topic.replace('-', '_')}\n"), text)
            headings = re.findall("(?m)^## (.*)", text)
            self.assertEqual(headings[:6], ["The problem", "The roof", "Reference and sizes", "What a good ladder looks like",
                                            "What a library reaches", "1. What is slow, and why?"])
            self.assertEqual(len(headings), 10)
            parts = dict(zip(headings, re.split("(?m)^## .*\n", text)[1:]))
            ladder = (made / "ladder.hpp").read_text()
            for name in ("gpu_size", "check_size", "trace_size"):
                extents = re.search(rf"{name} = \{{([^}}]*)\}}", ladder)[1]
                numbers = [eval(one, {}) for one in extents.split(",")]  # such as 1 << 22
                self.assertIn(f"| {' x '.join(f'{one:,}' for one in numbers)} |", parts["Reference and sizes"])
            self.assertRegex(parts["Reference and sizes"], r"(?s)reference.*\bbound")
            # What a library reaches is a figure, or it is said that there is none.
            self.assertRegex(parts["What a library reaches"].replace("\n", " "),
                             r"\d (?:GB/s|TFLOP/s|ms|%)|[Nn]ot measured yet|There is no library call")

    def test_it_is_a_repository_of_its_own_unless_it_lies_in_one(self):
        self.run_it("new", "alone")
        self.assertTrue((self.outside / "alone/.git").is_dir())
        self.run_it("new", "alone/within")
        self.assertFalse((self.outside / "alone/within/.git").exists())
        self.script("bin/git", "exit 127")
        self.passes("new", "without")

    def test_what_new_cannot_make_is_refused_in_one_line(self):
        self.write("outside/full/kept", "mine")
        (self.outside / "empty").mkdir()
        for arguments, why in ((("full",), "full is there already, and is not empty"),
                               (("full/kept",), "full/kept is there already, and is no folder"),
                               (("full/kept/below",), "cannot make the folder full/kept/below"),
                               ((), "new takes the folder to make, such as ~/my_scan"),
                               (("a", "b"), "new takes one folder: not 'a' and 'b'"),
                               (("a", "--from", "scan"), "--from takes gemm, matrix, rows or vector; got 'scan'"),
                               (("a", "--from"), "--from takes gemm, matrix, rows or vector"),
                               (("a", "--form", "rows"),
                                "new takes no '--form' (./run new PATH [--from gemm|matrix|rows|vector | --topic TOPIC])"),
                               (("a", "--topic", "scan"), "--topic takes breadth-first-search, fft-1024, layernorm-backward, n-body, "
                                "radix-sort, sparse-attention, stencil-3d or top-k; got 'scan'"),
                               (("a", "--topic=top-k", "--from=rows"), "new takes --from or --topic, not both"),
                               (("3d",), "the folder of a capstone needs a name that begins with a letter: not 3d")):
            self.assertEqual(self.refusal("new", *arguments), f"run: {why}\n")
        self.assertEqual(sorted(os.listdir(self.outside)), ["empty", "full"])
        self.assertEqual(os.listdir(self.outside / "full"), ["kept"])
        self.passes("new", "empty")

    def test_it_runs_with_every_option_and_the_book_is_not_built(self):
        self.run_it("new", "my-scan")
        folder = self.outside / "my-scan"
        build = self.built(folder, "capstone-my_scan", 'echo "ran $*"')
        for path, cwd in (("my-scan", self.outside), ("./my-scan/", self.outside), (".", folder), (folder, self.root)):
            self.expect(self.run_it(str(path), "--level", "1", "--explain", cwd=cwd), 0, "ran --level 1 --explain\n")
            log = self.log().splitlines()
            self.assertEqual(log[0], "--build build/simt -j 2 --target kit")
            self.assertEqual(log[-1], f"--build {build}/simt -j 2 --target capstone-my_scan")
            self.assertIn(f"-DCOOKBOOK_CAPSTONE={folder.resolve()}", log[1])
        self.gpu("release 12.8, V12.8.93")
        self.assertEqual(self.run_it("my-scan", "--list", backend="cuda").stdout, "ran --list\n")
        log = [line for line in self.log().splitlines() if line.startswith("--build")]
        self.assertEqual(log, [f"--build build/{kind} -j 2 --target kit" if of == "kit" else
                               f"--build {build}/{kind} -j 2 --target capstone-my_scan"
                               for kind in ("simt", "cuda") for of in ("kit", "program")])

    def test_its_tests_are_its_own(self):
        self.run_it("new", "scan")
        build = self.built(self.outside / "scan", "capstone-scan", 'exit "${STATUS:-0}"')
        self.script("bin/ctest", """[ -z "${SKIPS:-}" ] || echo "$SKIPS" >>"$COOKBOOK_SKIPPED"
exit_status=${SKIPS:+8}; echo "ctest $*
Test project /x
      Start  1: capstone_scan_scan
1/2 Test  #1: capstone_scan_scan ...............***Failed    0.10 sec
capstone_scan_scan.0_a_shapes: wrong
2/2 Test  #2: capstone_scan_bounds .............   Passed    1.25 sec

50% tests passed, 1 tests failed out of 2"; exit "${exit_status:-0}" """)
        refused = self.refusal("test", "scan", "--level", "x")
        self.assertIn("test takes no --level (./run scan --level ... does", refused)
        self.assertEqual(self.run_it("test", "scan", STATUS="2").returncode, 2)  # the ladder is not one
        for status in "123":  # 3: host code crashes at a size of ladder.hpp
            self.assertNotIn("ctest", self.run_it("test", "scan", STATUS=status).stdout)
        self.expect(self.run_it("test", "scan", "-R", "bounds"), 0,
                    f"ctest --test-dir {build}/simt -j 2 --output-on-failure -R bounds\n"
                    "FAILED  capstone_scan_scan  0.10 s\ncapstone_scan_scan.0_a_shapes: wrong\n"
                    "passed  capstone_scan_bounds  1.25 s\n50% tests passed, 1 tests failed out of 2\nNo case was skipped.\n")
        # A line per reason, also where a test fails.
        skips = [{"level": level, "test": test, "reason": reason, "skipped": skipped, "of": 9}
                 for level, test, reason, skipped in (("scan / b", "shapes", "n must be a multiple of #", 3), ("scan / a", "shapes", "no TMA", 9),
                                                      ("scan / a", "layouts", "n must be a multiple of #", 4))]
        done = self.run_it("test", "scan", SKIPS="\n".join(map(json.dumps, skips)))
        self.assertEqual(done.returncode, 8)
        self.assertTrue(done.stdout.endswith(
            "skipped 7 of 18 cases of scan / a, scan / b (layouts, shapes): n must be a multiple of #\n"
            "skipped 9 of 9 cases of scan / a (shapes): no TMA\n"), done.stdout)
        self.assertIn(f"--build {build}/simt -j 2 --target capstone-scan levels-test-capstone-scan "
                      "levels-traced-test-capstone-scan\n", self.log())

    def test_plots_and_report_are_its_own(self):
        self.script("plots/run.sh", 'echo "plots $*"')
        self.run_it("new", "scan")
        folder = self.outside / "scan"
        self.built(folder, "capstone-scan", 'echo "ran $*"; echo "$*" >>ran.log; [ "$1" != --json ] || echo "{}" >"$2"; exit "${STATUS:-0}"')
        drawn = f"plots --capstone plots {folder.resolve()}\n"
        self.assertEqual(self.run_it("plots", "scan").stdout, drawn)
        self.assertEqual(self.run_it("plots", "--check", cwd=self.root).stdout, "plots --check\n")
        self.assertIn("plots takes one capstone", self.refusal("plots", "scan", "--check"))
        # Files of results, as seen from where ./run was typed; what is not there is named by the plots.
        self.assertEqual(self.run_it("plots", "a.json", "/b.json", "--gpu", "T4", "--out", "mine").stdout,
                         f"plots --own {self.outside}/a.json /b.json --gpu T4 --out {self.outside}/mine\n")
        self.assertEqual(self.run_it("plots", "--out", "x", "--check", cwd=self.root).stdout, "plots --out x --check\n")
        self.assertIn("report takes one capstone", self.refusal("report"))
        # The first time it runs the ladder, whatever that finds.
        reported = f"plots --capstone report {folder.resolve()}\n"
        results = folder.resolve() / "results/simt.json"
        self.expect(self.run_it("report", "scan", STATUS="1"), 0, f"ran --json {results}\n{reported}")
        self.assertIn("lines.json", self.log("ran"))  # the second run counts line by line
        self.assertEqual(self.run_it("report", "scan").stdout, reported)

    def test_what_is_empty_is_refused_in_one_line(self):
        for arguments, said in ((("3", "--json", ""), "--json takes a value; got ''"), (("3", "--json="), "--json takes a value"),
                                (("plots", "a.json", "--gpu", ""), "--gpu takes a value"), (("test", ""), "an argument is empty"),
                                (("report", ""), "an argument is empty"), (("",), "an argument is empty")):
            self.assertIn(said, self.refusal(*arguments))

    def test_a_folder_that_holds_none_is_refused_in_one_line(self):
        (self.outside / "other").mkdir()
        self.write("chapters/03_a/ladder.hpp", "")
        for verb in ((), ("test",), ("build",)):
            self.assertEqual(self.refusal(*verb, "other"),
                             "run: other holds no capstone: it has no ladder.hpp (./run new makes one)\n")
            self.assertEqual(self.refusal(*verb, "nothing"),
                             "run: no 'nothing' here: neither a command nor a folder (./run help lists what there is)\n")
            self.assertEqual(self.refusal(*verb, str(self.root / "chapters/03_a")),
                             f"run: {self.root}/chapters/03_a is a chapter: name it by its number, as in ./run 3\n")
        self.assertEqual(self.log(), "")


class Make(Scripts):
    """The Makefile, with the real ./run or with one that says how it was called."""
    def setUp(self):
        super().setUp()
        self.take("Makefile")

    def make(self, *arguments, backend=None):
        return self.start("make", "-s", *arguments, backend=backend)

    def pretend_run(self):
        self.script("run", f"""echo "$*" >>"{self.root}/run.log"
                           case "$*" in --print-backend) echo cuda;; *) echo "$BACKEND: $*"; exit 4;; esac""")

    def test_a_chapter_is_built_for_the_backend_that_is_asked_for(self):
        for backend in ("simt", "cuda"):
            (self.root / f"build/{backend}/CMakeCache.txt").unlink(missing_ok=True)
            for asked in ({"backend": backend}, {"arguments": [f"BACKEND={backend}"]}):
                self.expect(self.make("chapter-11", *asked.get("arguments", ()), backend=asked.get("backend")), 0)
                self.assertEqual(self.log(), f"--preset {backend}\n--build build/{backend} --target chapter-11\n")
        # What is configured is not configured again.
        self.write("build/simt/CMakeCache.txt", "")
        self.expect(self.make("chapter-3", backend="simt"), 0)
        self.assertEqual(self.log(), "--build build/simt --target chapter-3\n")

    def test_a_chapter_is_run(self):
        self.expect(self.make("run-11", backend="simt"), 0, "11: \n")
        self.assertEqual(self.log(), "--build build/simt -j 2 --target chapter-11\n")
        self.expect(self.make("run-0", "BACKEND=simt"), 2, "0: \n")  # which fails
        self.gpu("release 12.8, V12.8.93")
        self.log()
        for asked in ({"backend": "cuda"}, {}):
            self.expect(self.make("run-11", **asked), 0, "11 on the GPU: \n")
            self.assertEqual(sorted(self.log().splitlines()),  # both at the same time
                             [f"--build build/{kind} -j 2 --target chapter-11" for kind in ("cuda", "simt")])

    def test_the_choice_of_run_is_asked_for_once_and_handed_on(self):
        self.pretend_run()
        for target, called in (("run-3", "3"), ("test", "test"), ("docs", "docs"), ("plots", "plots")):
            self.expect(self.make(target), 2, f"cuda: {called}\n")
            self.assertEqual(self.log("run"), f"--print-backend\n{called}\n")
        self.assertEqual(self.make("run-3", backend="simt").stdout, "simt: 3\n")
        self.assertEqual(self.log("run"), "3\n")
        self.expect(self.make("chapter-3"), 0)
        self.assertEqual(self.log(), "--preset cuda\n--build build/cuda --target chapter-3\n")


class Sanitize(Scripts):
    """tests/sanitize.sh, with a compute-sanitizer that finds something in one chapter with one tool."""
    def setUp(self):
        super().setUp()
        self.take("tests/sanitize.sh")
        self.script("bin/compute-sanitizer",
                    'case "$*" in *synccheck*chapter-11*) echo "========= Barrier error"; exit 9;; esac')

    def test_one_finding_fails_the_whole_and_is_shown(self):
        done = self.start("tests/sanitize.sh")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAIL  chapter 11 synccheck: status 9\n========= Barrier error\n", done.stdout)
        # Every tool on every chapter; racecheck not where copies are bulk copies, which are all there are here.
        self.assertEqual(done.stdout.count("chapter "), 6)
        self.assertEqual(done.stdout.count("ok    "), 5)

    def test_without_a_finding_it_passes(self):
        done = self.start("tests/sanitize.sh", "3")
        self.assertEqual((done.returncode, done.stdout.count("ok    chapter 3 ")), (0, 4))

    def test_without_a_chapter_it_fails(self):
        self.write("chapters/contents.txt", "")
        done = self.start("tests/sanitize.sh")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("lists no chapter: nothing was checked", done.stderr)


class Docs(Scripts):
    """docs/build.sh, as far as the programs whose --explain it prints."""
    def setUp(self):
        super().setUp()
        self.take("docs")
        for tool in ("apt-get", "doxygen"):
            self.script(f"bin/{tool}", "exit 0")
        self.python("gemm untuned tuned")
        self.script("build/simt/chapter-11-traced", "exit 0")

    def python(self, wanted):
        """What the pages show of a chapter; the step after --explain fails."""
        self.script("bin/python3", f'case "$*" in *--wanted*) echo "{wanted}"; exit 0;; esac; echo "$*"; exit 7')

    def test_a_chapter_that_cannot_explain_fails_and_says_why(self):
        self.script("build/simt/chapter-11", "echo the level before; echo the reason >&2; exit 3")
        done = self.start("docs/build.sh")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("chapter-11 --explain ended with status 3", done.stderr)
        self.assertIn("the level before", done.stderr)
        self.assertIn("the reason", done.stderr)
        self.script("build/simt/chapter-11", "kill -SEGV $$")
        self.assertEqual(self.start("docs/build.sh").returncode, 1)

    def test_a_chapter_of_which_nothing_is_shown_fails(self):
        self.python("")
        done = self.start("docs/build.sh")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the page of chapter 11 shows no level", done.stderr)

    def test_a_failure_names_a_half_built_folder(self):
        reason = "docs: build/simt is half built or older than the sources"
        self.write("build/simt/build.ninja", "")
        for says, half in (("ninja: no work to do.", 0), ("[1/3] Linking CXX executable chapter-11", 1)):
            self.script("bin/ninja", f"echo '{says}'")
            done = self.start("docs/build.sh")
            self.assertEqual((done.returncode, done.stderr.count(reason)), (7, half), done.stderr)

    def test_what_chapters_explain_is_kept(self):
        done = self.start("docs/build.sh")
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn("docs/make_pages.py", done.stdout)
        self.assertEqual((self.root / "build/docs/explain/11.txt").read_text(),
                         "11: --explain --ladder gemm --level untuned --level tuned\n")


class Ci(Scripts):
    """.ci/run, with stand-ins for its tools: a step that could check nothing must not pass."""
    def setUp(self):
        super().setUp()
        self.take(".ci/run")
        self.write("a.cpp", "int a;\n")
        self.git("init", "-q")
        self.all_well()

    def all_well(self):
        """Stand-ins that have nothing against anything."""
        for tool in ("nvcc", "dpkg", "python3", "clang-format-14", "shellcheck"):
            self.script(f"bin/{tool}", "exit 0")
        self.script("bin/sudo", "exit 1")
        for script in ("run", "docs/build.sh", "plots/run.sh"):
            self.script(script, "exit 0")

    def steps(self, *arguments):
        """What became of the two steps that need no build, and all the output."""
        done = self.start("bash", ".ci/run", *arguments)
        return ["--- ok: Format" in done.stdout, "--- ok: Shell scripts" in done.stdout], done.stdout

    def test_they_pass(self):
        self.assertEqual(self.steps()[0], [True, True])

    def test_the_half_that_needs_no_nvcc(self):
        self.script("bin/nvcc", "exit 1")
        (self.root / "bin/nvcc").chmod(0o644)
        passed, out = self.steps("cpu")
        self.assertEqual(passed, [True, True])
        for title in ("Tests", "Checks of the checks", "No executable", "Documentation", "Figures", "Python"):
            self.assertIn(f"\n=== {title}", out)
        self.assertNotIn("nvcc", out)
        self.assertRegex(out.splitlines()[-1], r"^\d+ passed, \d+ failed$")
        self.assertEqual(self.steps("gpu")[1], "ci: takes cpu, full, or nothing; got 'gpu'\n")

    def test_a_full_run_tests_everything(self):
        self.script("run", f'echo "$*" >>{self.root}/ran')
        for words, more in (("cpu",), ""), (("cpu", "full"), "--all "), (("full",), "--all "):
            self.steps(*words)
            self.assertEqual((self.root / "ran").read_text().splitlines()[-1], f"test --maintainer {more}-j 3", words)

    def test_a_warning_in_the_log_of_the_kernels_fails(self):
        title = "Kernels and tests compiled by nvcc"
        for printed, outcome in (("ptxas info : 0 bytes\\nptxas warning : of the assembler's", "ok"),
                                 ("a.cu(3): warning #177-D: unused", "FAILED"), ("b.cpp:1:2: warning: null", "FAILED"),
                                 ("b.cpp:1:2: warning: null\\n" * 5000, "FAILED")):
            self.write("printed", printed.replace("\\n", "\n"))
            self.script("bin/cmake", f'case "$*" in --build*) cat "{self.root}/printed";; esac')
            self.assertIn(f"--- {outcome}: {title}", self.steps()[1], printed[:80])

    def test_a_step_that_finds_something_or_could_check_nothing_fails(self):
        for tool, text, passed, shown in (
                ("clang-format-14", 'for f; do case $f in *.cpp) echo "$f:3:4: error: code" >&2; exit 1;; esac; done',
                 [False, True], "not formatted (clang-format -i mends them):\na.cpp\n"),
                ("clang-format-14", 'case $1 in --version) ;; *) echo a crash >&2; kill -SEGV $$;; esac',
                 [False, True], "clang-format-14 failed:\na crash\n"),
                ("dpkg", 'case "$*" in *shellcheck*) exit 1;; esac',
                 [True, False], "shellcheck is not to be had here: nothing was checked"),
                ("ruff", "echo a.py: F401; exit 1", [True, True], "a.py: F401\n--- FAILED: Python")):
            with self.subTest(shown):
                self.all_well()
                self.script(f"bin/{tool}", text)
                found, out = self.steps()
                self.assertEqual(found, passed)
                self.assertIn(shown, out)

    def test_a_new_file_is_looked_at_and_a_deleted_one_is_not(self):
        self.git("add", "a.cpp")
        (self.root / "a.cpp").unlink()
        (self.root / "b.cu").touch()
        self.noting("clang-format-14")
        self.assertEqual(self.steps()[0], [True, True])
        self.assertEqual(self.log("clang-format-14"), "--version\n--dry-run --Werror b.cu\n")

    def test_no_source_fails(self):
        (self.root / "a.cpp").unlink()
        passed, out = self.steps()
        self.assertEqual(passed, [False, True])
        self.assertIn("git lists no C++ source here: nothing was checked", out)

    def test_what_runs_beside_other_steps_is_waited_for_and_fails_in_its_own(self):
        titles = {"docs/build.sh": "Documentation, warnings are errors", "plots/run.sh": "Figures and tables"}
        self.script("bin/python3", 'case "$*" in *"discover -s tests/ci"*) sleep 0.5; echo checked;; *links*) exit 1;; esac')
        out = self.steps()[1]
        self.assertIn("checked\n", out)
        self.assertIn("--- ok: Checks of the checks", out)
        self.assertIn("--- FAILED: No executable could take a symbol from two places", out)
        self.script("bin/python3", 'case "$*" in *"discover -s tests/ci"*) echo wrong; exit 1;; esac')
        out = self.steps()[1]
        self.assertIn("--- FAILED: Checks of the checks", out)
        self.assertIn("--- ok: No executable could take a symbol from two places", out)
        for broken in titles:
            for script in titles:
                self.script(script, f"sleep 0.5; echo {script} said this; exit {int(script == broken)}")
            out = self.steps()[1]
            for script, title in titles.items():
                outcome = "FAILED" if script == broken else "ok"
                self.assertIn(f"{script} said this\n", out)
                self.assertIn(f"--- {outcome}: {title}", out)

    def test_without_doxygen_the_documentation_fails_and_the_figures_do_not(self):
        self.script("bin/dpkg", 'case "$*" in *doxygen*) exit 1;; esac')
        out = self.steps()[1]
        self.assertIn("--- FAILED: Documentation", out)
        self.assertIn("--- ok: Figures and tables", out)


if __name__ == "__main__":
    unittest.main()
