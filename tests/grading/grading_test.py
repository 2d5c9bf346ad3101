#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""./run grade: its fences one by one, and a small class.

Usage: grading_test.py BUILD [unittest arguments]
"""
import csv
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import zipfile
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools/grading")]
import assignment as assignments  # noqa: E402
import build  # noqa: E402
import exercises  # noqa: E402
import grade  # noqa: E402
import handed_in  # noqa: E402
import gradescope  # noqa: E402
import lint  # noqa: E402
import lint_fuzz  # noqa: E402
import make  # noqa: E402
import museum  # noqa: E402
import objects  # noqa: E402
import report  # noqa: E402
import sandbox  # noqa: E402
import speed  # noqa: E402

BUILD = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
# Of each fence some: a right one, one that the tracer's counts reject, one that hidden sizes do, those that stay out of
# device memory and of the grader's memory, and those that are not even compiled.
SAMPLE = ["right_in_a_folder", "cheat_host_computation", "cheat_public_sizes_only", "cheat_prints_passed",
          "cheat_no_claims", "cheat_closes_the_scope", "cheat_plan_forges_counts"]


def compile_object(folder, name, source, *options):
    target = folder / f"{name}.o"
    subprocess.run(["g++", "-x", "c++", "-std=c++20", "-O1", "-fsanitize-coverage=trace-pc", *options, "-c", "-", "-o", str(target)], input=source,
                   text=True, check=True)
    return target


class Lint(unittest.TestCase):
    def test_what_is_not_allowed(self):
        for text, part in {
                '#include "a.hpp"': "#include", "#define X 1": "#define", "  #  if A": "#if", "#pragma GCC poison a": "pragma",
                '_Pragma("once")': "pragma", "extern int a;": "extern", 'asm("nop");': "assembly",
                "__asm__ volatile(\"nop\");": "assembly", "[[gnu::constructor]] void f();": "attribute",
                "[ [gnu::used]] int a;": "attribute", "int a __attribute__((used));": "attribute", "}": "closes",
                "{": "missing", "(]": "closes", "int* p = new int;": "allocation", "void* operator new(long);": "allocation",
                "DeviceMemory m;": "allocation", "simt::start_trace();": "backend", "int x = COOKBOOK_TRACED;": "build",
                "const char* f = __FILE__;": "reserved name", "__builtin_trap();": "builtin", 'R"(a)"': "raw",
                "a \\\nb": "backslash", "a \\ \nb": "backslash", "/* a": "not closed", "f(1'0, \"' // \"); asm();": "assembly",
                "int a = 1'0; exit(0); int b = 1'0;": "ending", "%: define": "digraph", "??=define": "digraph", "namespace a = b;": "namespace",
                "thread_local int a;": "thread_local", "int \u0430;": "ASCII", "x;  // [mine]": "mark",
                "exit(0);": "ending", "detail::launch_kernel(0)": "backend"}.items():
            found = lint.lint(text)
            self.assertTrue(found and part in found[0][1], f"{text!r}: {found}")

    def test_what_is_allowed(self):
        for text in ("#pragma unroll\nfor (;;) {}", "#pragma unroll 4", "// exit(0) asm #include \u00e4", "/* new\n } */",
                     'f("asm { new");', "[[maybe_unused]] int a;", "__shared__ float t[32];", "char c = '{';",
                     "std::int64_t n{1};", "a[b[0]] = 1;", "int news, external, exits;"):
            self.assertEqual(lint.lint(text), [], text)

    def test_lines_are_those_of_the_file(self):
        self.assertEqual(lint.lint("/* \n\n */ int a;\nasm();", 10)[0][0], 13)
        self.assertEqual(lint.lint("int a;\nint b;  // [mine]", 10)[0][0], 11)

    def test_a_whole_file_includes_what_is_listed(self):
        text = '#pragma once\n#include "common/device/math.cuh"\nnamespace a {\n}\n'
        self.assertEqual(lint.lint(text, region=False, includes=["common/device/"]), [])
        for outside in ("template <> inline constexpr bool std::is_trivially_copyable_v<int> = true;", "int a;", "using namespace a;"):
            self.assertIn("in no namespace", lint.lint(f"namespace a {{\nint b;\n}}\n{outside}\ninline namespace c::d {{}}", region=False)[0][1])
        for header in ("/etc/passwd", "common/device/../harness/x.hpp", "common/harness/verdict/check.hpp"):
            self.assertTrue(lint.lint(f'#include "{header}"\n', region=False, includes=["common/device/"]), header)


    def test_no_text_takes_long(self):
        """Each of these took minutes, or ends in a refusal at once."""
        began = time.process_time()
        for text, part in (('\\"' * 50000, "character"), ("\n" * 200000, ""), ("[" * 200000, "an attribute"), ("/*" * 100000, "not closed"),
                           ("int " + "a" * 200000 + ";", "200,000 characters"), ("#\n" * 100000, "`#`")):
            found = lint.lint(text)
            self.assertIn(part, found[0][1] if found else "")
            lint.without_includes(text), lint.includes_in(text), lint.tags_of(text)
        self.assertLess(time.process_time() - began, 20)

    def test_no_spelling_passes(self):
        """Few here; tests/grading/lint_fuzz.py 10000 tries many, and compiles them."""
        self.assertEqual(lint_fuzz.passed(200, 1), [])
        weaker = {"attribute_problem": lambda *_: "", "directive_problem": lambda *_: "", "word_problem": lambda *_: "",
                  "UNREADABLE": (), "BRACKETS": {}}
        for name, planted in weaker.items():
            with self.subTest(name), unittest.mock.patch.object(lint, name, planted):
                if name == "UNREADABLE":  # a splice in a name is read as two names
                    self.assertEqual(lint.lint("// a \\\nint a;"), [])
                else:
                    self.assertTrue(lint_fuzz.passed(100, 1))

    def test_the_compilers_tokens(self):
        self.assertEqual(lint.read_differently("a\nb\nc d", "a b e d"), 3)
        for text in ("int a = 1'000; // \" '\n[[maybe_unused]] char b = '\\''; /* \n */ #pragma unroll 4\n", "a<:b:>"):
            said = subprocess.run(["g++", "-x", "c++", "-std=c++20", *lint.PREPROCESS], input=text, text=True,
                                  capture_output=True).stdout
            self.assertEqual(lint.read_differently(text, said), False, said)
        for text, said in (("a\\\nb", "ab"), ("a b", "ab"), ("__FILE__", '"a"')):
            self.assertTrue(lint.read_differently(text, said))


class Splice(unittest.TestCase):
    def setUp(self):
        self.assignment = assignments.Assignment(museum.TASK)

    def test_only_the_parts_get_in(self):
        text = "#error\n" + museum.RIGHT.replace("Claims claims(const Problem&) {", "Claims claims(const Problem&) { no;")
        spliced, parts = assignments.splice(self.assignment, text)
        self.assertEqual(spliced, museum.RIGHT)
        self.assertEqual(len(parts), 2)
        first, region, _ = parts[1]
        self.assertEqual(spliced.split("\n")[first - 1], region.split("\n")[0])

    def test_lines_are_those_of_the_students_file(self):
        """Also where they have changed what stands before their part."""
        self.assertEqual(assignments.moved_lines(self.assignment, museum.RIGHT), {})
        longer = museum.change(museum.RIGHT, ("#pragma once\n", "#pragma once\n// mine\n\n"))
        moved = assignments.moved_lines(self.assignment, longer)
        spliced = assignments.splice(self.assignment, longer)[0].split("\n")
        self.assertTrue(moved)
        for line, own in moved.items():
            self.assertEqual((spliced[line - 1], own), (longer.split("\n")[own - 1], line + 2))
        said = grade.renumbered({"a": ["transpose.cuh:20: no\n  20 | x; at line 21, b.cuh:20"]}, "transpose.cuh", moved)
        self.assertEqual(said, {"a": ["transpose.cuh:22: no\n  22 | x; at line 23, b.cuh:20"]})

    def test_marks_are_the_teachers(self):
        """A line of the student's part counts for each mark in it, also one that the teacher has marked otherwise: in a lambda
        it would load anything, and nothing of it would count where it should."""
        text = museum.change(museum.GIVEN, ("tile[y][slot<C>(y, x)] = in[row * shape.in_pitch + col];",
                                            "tile[y][slot<C>(y, x)] = in[row * shape.in_pitch + col];  // [in]"),
                             ("= tiles(shape.cols, C::kTile);", "= tiles(shape.cols, C::kTile);  // [tiles]"),
                             ("    return {shared", "    // [claims]\n    return {shared"))
        self.assignment.text, self.assignment.regions = text, assignments.find_regions(text)
        mine = museum.change(text, ("  const int x = threadIdx.x;", "  const int x = threadIdx.x;  // [in]"),
                             ("  // [claims]", "  // [claims]\n    // [tiles]"))
        spliced, parts = assignments.splice(self.assignment, mine)
        tags = self.assignment.tagged_lines(spliced, [(first, part) for first, part, _ in parts])
        rows = spliced.split("\n")
        marked = {tag: [rows[line - 1].strip() for line in files["transpose.cuh"]] for tag, files in tags.items()}
        self.assertEqual(marked["claims"], ["// [claims]"])
        self.assertIn("const unsigned tiles_across = tiles(shape.cols, C::kTile);  // [tiles]", marked["tiles"])
        for tag in ("in", "tiles"):
            self.assertIn("const unsigned tiles_across = tiles(shape.cols, C::kTile);  // [tiles]", marked[tag])
            self.assertIn("out[col * shape.out_pitch + row] = tile[x][slot<C>(x, y)];", marked[tag])
        self.assertNotIn("// [tiles]", marked["tiles"])

    def test_marks_must_match(self):
        for text in ("", museum.GIVEN.replace(assignments.END, ""), museum.GIVEN.replace(assignments.BEGIN, "", 1)):
            with self.assertRaises(assignments.BadSubmission):
                assignments.splice(self.assignment, text)


class AssignmentFile(unittest.TestCase):
    def wrong(self, **changes):
        with tempfile.TemporaryDirectory() as name, self.assertRaises(assignments.BadAssignment) as caught:
            assignments.Assignment(museum.task_with(Path(name), **changes))
        return str(caught.exception)

    def test_mistakes_are_named(self):
        self.assertIn("'title'", self.wrong(title=None))
        self.assertIn("'colour'", self.wrong(colour="red"))
        self.assertIn("no step 'style'", self.wrong(points={"style": 3}))
        self.assertIn("those of its tiers", self.wrong(points={"speed": 3}))
        for text, table in {"`size`": {}, "unknown field 'colour'": {"size": [1], "colour": 1},
                            "`roof`": {"size": [1], "roof": "thatched"}, "is no tier": {"size": [1], "tiers": [{"points": 1}]},
                            "no file": {"size": [1], "baseline": {"file": "../../etc/passwd", "level": "x"}},
                            "`samples`": {"size": [1], "samples": 1}}.items():
            self.assertIn(text, self.wrong(speed=table))
        self.assertIn("no limit 'time'", self.wrong(limits={"time": 3}))
        self.assertIn("with numbers", self.wrong(limits={"seconds": "3"}))
        self.assertIn("is a text", self.wrong(title=[1]))
        self.assertIn("whole numbers", self.wrong(hidden_sizes=[[1.5, 2]]))
        self.assertIn("no file", self.wrong(file="other.cuh"))
        self.assertIn("name of a type", self.wrong(level="x; int main"))


class Objects(museum.InFolder):
    TEACHER = "int f(int x) { return x; }"

    def check(self, source, *options, teacher=TEACHER):
        return objects.check_object(compile_object(self.folder, "s", source, *options),
                                    compile_object(self.folder, "t", teacher))

    def test_what_a_kernel_needs(self):
        self.assertEqual(self.check('#include <math.h>\nfloat f(float x) { return sinf(x) + powf(x, 3); }'), "")
        self.assertEqual(self.check("namespace cookbook::simt { void sync_threads(); }\n"
                                    "void f() { cookbook::simt::sync_threads(); }"), "")
        # The instrumentation's own constructor, and shared memory.
        self.assertEqual(self.check("int f(int* x) { static thread_local int t[9]; return t[*x]; }",
                                    "-fsanitize=thread"), "")

    def test_every_unit_that_the_book_has(self):
        """What its own levels import of the device: a solution may use what the exercise did not."""
        for name in ("cookbook::simt::cp_async_wait(int)", "cookbook::simt::wgmma_shared_a(int, float*)",
                     "cookbook::tma_load_2d(void*, int)", "cookbook::mbarrier_wait(unsigned long*, unsigned int)",
                     "cookbook::cluster_sync()", "cookbook::simt::mma_m16n8(float*)", "cookbook::elect_one()"):
            self.assertTrue(objects.DEVICE.fullmatch(name), name)
        for name in ("cookbook::simt::set_async_schedule(int)", "cookbook::simt::open_device_memory(bool)",
                     "cookbook::simt::stop_trace()", "cookbook::hash_bytes(void*)", "cookbook::grading::entry()"):
            self.assertFalse(objects.DEVICE.fullmatch(name), name)

    def test_levels_of_the_book(self):
        """A kernel of a level, or its version of a function that is the student's to write, also where it is inlined."""
        level = ("template <class C>\n__global__ void __launch_bounds__(C::kThreads, 1)\n    kernel(int a) {\n  b({a});\n}\n"
                 "__device__ int c(int a) { return a; }\n__device__ int d(int a);\n")
        self.assertEqual(objects.device_functions(level), [("kernel", True, 3, 5), ("c", False, 6, 6)])
        part, own = "__device__ int c(int a) {}", {"a.cuh": {7: "c(1);  // x::c", 8: "x::kernel<C>(1);"}}
        for line, where in ((4, "a.cuh:8: the code runs `kernel` of l.cuh"), (6, "the code runs `c` of l.cuh"), (7, "")):
            dump = f"  [/book/chapters/02/l.cuh:{line}:3] x = 1;"
            said = objects.of_the_book(dump, "", {"chapters/02/l.cuh": level}, part, own)
            self.assertTrue(said.startswith(where) if where else said == "", said)
            self.assertEqual(objects.of_the_book(dump, dump, {"chapters/02/l.cuh": level}, part, own), "")
        self.assertEqual(objects.of_the_book("[/book/chapters/02/l.cuh:6:3] x", "", {"chapters/02/l.cuh": level}, "", own), "")

    def test_what_it_may_not(self):
        for part, source in {
                "`exit`": 'extern "C" void exit(int); void f() { exit(0); }',
                "`write`": 'extern "C" long write(int, const void*, long); void f() { write(1, "passed", 6); }',
                "start_trace": "namespace cookbook::simt { void start_trace(); }\nvoid f() { cookbook::simt::start_trace(); }",
                "set_async": "namespace cookbook::simt { void set_async_schedule(int); }\n"
                             "void f() { cookbook::simt::set_async_schedule(1); }",
                "static initialiser": "void g(int) {} volatile int* p; __attribute__((constructor)) static void f() { *p = 1; }",
                "static initialiser ": "volatile int* p; __attribute__((destructor)) static void f() { *p = 1; }",
                "not yours": 'extern "C" void __tsan_read4(void*) {}',
                "not yours  ": "namespace cookbook::simt { int lane_id(int) { return 0; } }",
                "not yours ": 'extern "C" void* memcpy(void* a, const void*, unsigned long) { return a; }',
                "keeps a value  ": '__attribute__((section("other"))) int n; int f() { return ++n; }',
                "is not instrumented": "__attribute__((no_sanitize_coverage)) int g(int* p) { return p[0]; }",
                "reads as a system call": "long f(long x) { return x ^ 0x12050f34; }",
                "indirect function": "extern \"C\" { typedef void t(); static void h() {}\nstatic t* r() { return h; }\n"
                                     "void f() __attribute__((ifunc(\"r\"))); }",
                "shared memory": "float f(int i) { static thread_local float t[20000]; return ++t[i]; }",
                "`a` has an initialiser": "extern \"C\" float sinf(float); float f(float x) { static thread_local float a = sinf(x); return a; }",
                "keeps a value   ": "extern \"C\" float sinf(float); bool f(float x) { bool first = false; static const float a = (first = true, sinf(x));\n"
                                    "return first; }",
                "keeps a value": "int counter; int f() { return ++counter; }",
                "keeps a value ": "int f() { static int n; return ++n; }",
                "instruction `syscall`": 'void f() { asm volatile("syscall"); }',
                "instruction `int`": 'void f() { asm volatile("int $0x80"); }',
                "instruction `rdtsc`": 'long f() { return __builtin_ia32_rdtsc(); }'}.items():
            if "instruction" in part and os.uname().machine != "x86_64":
                continue
            self.assertIn(part.strip(), self.check(source))

    def test_the_line_that_calls(self):
        made = compile_object(self.folder, "s", 'extern "C" void exit(int);\nvoid g();\nvoid f(int a) {\n  g();\n  exit(a);\n}\n', "-g1")
        lines = {"<stdin>": {4: "", 5: "", 6: ""}}
        self.assertIn("<stdin>:5: the code calls `exit`", objects.check_object(
            made, compile_object(self.folder, "t", "void g(); void h() { g(); }"), False, lines))

    @unittest.skipUnless(os.uname().machine == "x86_64", "its stubs are for x86-64")
    def test_calls_of_one_side(self):
        """What a kernel may not call, and what the host may not; what runs on both sides is left alone."""
        made = compile_object(self.folder, "s", """#include <string>
extern thread_local int x;
namespace cookbook { int device_info(); namespace simt { void sync_threads(); template <class T> T atomic_add(T*, T);
template <> float atomic_add<float>(float*, float); } }
float f(std::string* s, float* p) { cookbook::simt::sync_threads(); s[0] = std::string(99, 'a'); return sinf(cookbook::simt::atomic_add(p, *p)) +
  cookbook::device_info(); }""", "-fsanitize=thread", "-include", "math.h")
        sides = {name.split("(")[0].split(" cookbook")[-1]: side for _, _, name, side in objects.of_one_side(made)}
        self.assertEqual((sides["operator new"], sides["cookbook::simt::sync_threads"], sides["::simt::atomic_add<float>"]),
                         ("kernel", "host", "host"))
        self.assertFalse({"sinf", "cookbook::device_info", "__tsan_read4"} & set(sides))
        objects.confine(made, self.folder / "confined.o")
        self.assertIn("cookbook_grading_called_by_kernel", objects.undefined(self.folder / "confined.o"))

    def test_long_names_are_refused(self):
        self.assertEqual(objects.uncounted("a" * (objects.MOST_ROW + 1), None, {}), objects.TOO_LONG)

    def test_what_is_not_counted(self):
        """What g++ leaves without instrumentation, in the spellings of its own dump."""
        four = "struct Four { float x[4]; };\nfloat first(Four);\n"

        def said(source, of_teacher="", *options):
            made = compile_object(self.folder, "s", source, "-O2", "-g1", "-fsanitize=thread", *options,
                                  f"-fdump-tree-tsan-lineno={self.folder}/dump")
            rows = dict(enumerate(source.split("\n"), 1))
            return objects.uncounted((self.folder / "dump").read_text(), made, {"<stdin>": rows}, of_teacher)
        for part, source in {
                "2: a struct in memory": "struct Four { float x[4]; }; float first(Four);\nfloat f(Four* p) { return first(*p); }",
                "4: a struct": four + "float f(Four* p) {\n  Four MEM = *p, other = p[1]; return first(p[2]) + first(MEM) + first(other); }",
                "3: a struct": four + "float f(int i) { static thread_local Four t_1; t_1.x[i] = 2; return first(t_1); }",
                "a struct in ": four + "float iffy(Four); float f(Four* p) { return iffy(*p); }",
                "a struct in memory": four + "template <int n> float g(Four, const char*); float f(Four* p) { return g<-1>(*p, \":(\"); }",
                " a struct in memory is": four + "Four made(); void f(Four* p) { *p = made(); }",
                "by `memcpy`": "void f(float* a, const float* b, int n) { __builtin_memcpy(a, b, 4ul * (n > 0)); }",
                "1: the code has g++ move data by `strlen`": "unsigned long f(const char* a) { return __builtin_strlen(a); }",
                "`modf` writes to memory": "extern \"C\" float modff(float, float*); void f(float x, float* p) { modff(x, p); }",
                "`remquo` writes": "void f(double x, int* p) { __builtin_remquo(x, 3.0, p); }"}.items():
            self.assertIn(part.strip(), said(source), source)
        # As on a distribution that has it by default.
        fortified = "#include <string.h>\nvoid f(float* a, const float* b, int n) { memcpy(a, b, 4ul * (n > 0)); }"
        self.assertIn("by `memcpy`", said(fortified, "", "-fno-builtin-memcpy", "-D_FORTIFY_SOURCE=2"))
        self.assertEqual(said(fortified, "", "-fno-builtin-memcpy", "-D_FORTIFY_SOURCE=2", "-U_FORTIFY_SOURCE"), "")
        for source in (four + "float f(Four* p) { Four a = *p; a.x[0] *= 2; return first(a); }",
                       "extern \"C\" float modff(float, float*); float f(float x) { float a; return modff(x, &a) + a; }",
                       "int g(int, int); int f(int a, int* b) { return g(a ? a : *b, a - 1); }", "void f(float* a) { *a = __builtin_sqrtf(*a); }"):
            self.assertEqual(said(source), "", source)
        library = "unsigned long f(const char* a) { return __builtin_strlen(a); }"
        said(library)
        self.assertEqual(said(library, (self.folder / "dump").read_text()), "")

    def test_places_of_later_compilers(self):
        """g++ 13 writes discriminators into its dump."""
        row = "[a.cuh:7:3 discrim 2] x_1 = first ([a.cuh:7:9] *p_2);"
        self.assertEqual((objects.PLACE.search(row)[2], objects.PLACE.sub("", row)), ("7", "x_1 = first (*p_2);"))

    def test_how_large_it_may_be(self):
        with unittest.mock.patch.object(objects, "MOST_OBJECT_BYTES", 1 << 10):
            self.assertIn("when it is compiled", self.check("int f() { return 1; }"))

    def test_the_teachers_imports_are_allowed(self):
        source = 'extern "C" int abs_of(int); int f(int x) { return abs_of(x); }'
        self.assertIn("abs_of", self.check(source))
        self.assertEqual(self.check(source, teacher=source), "")

    def test_no_definition_takes_anothers_place(self):
        made = compile_object(self.folder, "s", "namespace cookbook { namespace grading { int entry() { return 1; } }\n"
                              "int synchronize() { return 2; } inline int weak() { return 3; }\n"
                              "int (*use)() = weak; }\n__attribute__((constructor)) static void early() {}")
        confined = self.folder / "confined.o"
        objects.confine(made, confined)
        names = [row.split()[-1] for row in objects.output_of(["nm", "-g", "--defined-only", str(confined)]).splitlines()]
        self.assertEqual(names, [objects.ENTRY])
        self.assertFalse([name for name, kind, size, _ in objects.sections_of(confined) if kind in (14, 15, 16) and size])


class Sandbox(unittest.TestCase):
    """Programs in the place of the worker, in the best sandbox that this machine has."""

    def run_in(self, kind, endless=False, seconds=10):
        import socket
        listener = socket.create_server(("127.0.0.1", 0))
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            folder.chmod(0o755)
            victim = folder / "victim"
            victim.write_text("here")
            victim.chmod(0o666)
            subprocess.run(["gcc", HERE / "stand_ins/intruder.c", "-o", folder / "worker", f'-DPLACE="{victim}"',
                            f"-DPORT={listener.getsockname()[1]}", f"-DENDLESS={int(endless)}"], check=True)
            limits = sandbox.Limits(processes=20, cpu_seconds=1)
            try:
                status, said = sandbox.run(sandbox.worker_command(kind, folder, limits, 7), seconds)
            finally:
                listener.close()
            self.assertTrue(victim.exists() and victim.read_text() == "here")
            # What was killed may be in /proc for a moment more. What was not runs on for 20 s at least.
            until = time.monotonic() + 5
            while self.processes_of(folder) and time.monotonic() < until:
                time.sleep(0.05)
            self.assertFalse(self.processes_of(folder), "a process was left behind")
        return status, json.loads(said.splitlines()[0]) if said.strip() else said

    @staticmethod
    def processes_of(folder):
        left = []
        for entry in Path("/proc").glob("[0-9]*/exe"):
            try:
                if os.path.samefile(entry, folder / "worker"):  # another grading may run beside this test
                    left.append(entry)
            except OSError:
                pass
        return left

    def test_what_it_keeps_out(self):
        kinds = [kind for kind in ("bubblewrap", "namespaces") if sandbox.works(
            "/bin/true", lambda folder, kind=kind: sandbox.worker_command(kind, folder, sandbox.Limits(), 7))]
        if not kinds:
            self.skipTest("no sandbox works on this machine")
        for kind in kinds:
            with self.subTest(kind):
                status, found = self.run_in(kind)
                self.assertEqual(status, 0)
                self.assertLess(found.pop("made"), 20)
                self.assertEqual(found, dict.fromkeys(found, 0))

    def test_it_ends(self):
        began = time.monotonic()
        status, _ = self.run_in(sandbox.kind_of_sandbox(), endless=True)  # one second of CPU time
        self.assertNotEqual(status, 0)
        with self.assertRaises(sandbox.TooMuch):
            sandbox.run(["sleep", "30"], 0.3)
        with self.assertRaises(sandbox.TooMuch):
            sandbox.run(["yes"], 20, output_bytes=1 << 16)
        self.assertLess(time.monotonic() - began, 15)


    def test_nothing_is_left_behind(self):
        """A process that detaches itself, where no sandbox ends it."""
        sandbox.adopt()
        with tempfile.TemporaryDirectory() as folder:
            detached = f"setsid sh -c 'touch {folder}/there; exec sleep 60' >/dev/null 2>&1 &"
            sandbox.run(["sh", "-c", f"{detached} until [ -e {folder}/there ]; do sleep 0.01; done"], 10)
        self.assertEqual((sandbox.left_behind(), sandbox.left_behind()), (1, 0))

    def test_tools_run_in_the_box(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            folder.chmod(0o755)
            (folder / "a").write_text("mine\n")
            reads = ["cat", str(folder / "a"), "/etc/passwd"]
            self.assertIn("root", objects.output_of(reads))
            with objects.in_box(folder, 7):
                self.assertEqual(objects.output_of(reads[:2]), "mine\n")
                self.assertEqual(objects.output_of(["c++filt"], "_Z1fv\n"), "f()\n")
                with unittest.mock.patch.object(objects, "MOST_OUTPUT_BYTES", 1 << 10), self.assertRaises(sandbox.TooMuch):
                    objects.output_of(["sh", "-c", f"yes {folder}"])
                if sandbox.kind_of_sandbox() != "limits":
                    with self.assertRaises(RuntimeError):
                        objects.output_of(reads)

    def test_nothing_is_graded_where_namespaces_are_forbidden(self):
        """As on a stock Ubuntu 24.04: a step of bwrap and of unshare fails, whichever it is."""
        for step in ("CLONE_NEWUSER", "mount", "pivot_root", "umount2"):
            with self.subTest(step):
                found = subprocess.run([sys.executable, HERE / "stand_ins/forbid.py", step, sys.executable, "-c",
                                        "import sandbox; print(sandbox.kind_of_sandbox())"], text=True, capture_output=True,
                                       cwd=HERE.parents[1] / "tools/grading")
                self.assertEqual((found.stdout, found.stderr), ("limits\n", ""))

    def test_what_to_install_is_said(self):
        guide = (HERE.parents[1] / "docs/teaching.md").read_text()

        def said(installed, **settings):
            with unittest.mock.patch.object(sandbox, "setting", lambda name: settings.get(name.split("/")[1], "")), \
                    unittest.mock.patch.object(sandbox.shutil, "which", lambda program: installed):
                return sandbox.no_sandbox()
        ubuntu = said(True, apparmor_restrict_unprivileged_userns="1")
        for command in ("sudo apt-get install bubblewrap apparmor-profiles", "sudo cp /usr/share/", "sudo apparmor_parser -r /etc/"):
            self.assertIn(f"\n  {command}", ubuntu)
        for _, _, commands in sandbox.FORBIDS[:1]:
            self.assertIn("\n".join(commands), guide)
        self.assertIn("\n  sudo sysctl user.max_user_namespaces=15000\n", said(True, max_user_namespaces="0", unprivileged_userns_clone="1"))
        self.assertIn("\n  sudo apt-get install bubblewrap\n", said(False, apparmor_restrict_unprivileged_userns="0"))
        self.assertIn("a container may", said(True))
        self.assertIn("--no-sandbox", ubuntu)
        self.assertEqual(sandbox.setting("kernel/no_such_setting"), "")

    def test_helpers_have_limits(self):
        with self.assertRaises(RuntimeError):
            objects.output_of(["python3", "-c", "a = bytearray(5 << 30)"])


class HandedIn(museum.InFolder):
    def setUp(self):
        super().setUp()
        self.assignment = assignments.Assignment(museum.TASK)

    def put(self, name, content=museum.RIGHT):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def put_zip(self, name, entries):
        with zipfile.ZipFile(self.folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for place, content in entries.items():
                archive.writestr(place, content)

    def test_every_entry_gets_a_row(self):
        for name in ("O'Brien.cuh", "conflict_free (1).cuh", "ju\u0308rgen.cuh", "ada.cuh", "ada/transpose.cuh", "b/a.cuh", "b/c.cuh",
                     "word.docx", ".DS_Store"):
            self.put(name)
        (self.folder / "link").symlink_to("/etc")
        os.mkfifo(self.folder / "pipe.cuh")
        (self.folder / "-rf").mkdir()
        self.put_zip("above.zip", {"../../transpose.cuh": museum.RIGHT})
        os.close(os.open(os.fsencode(self.folder) + b"/\xff.cuh", os.O_CREAT))
        self.put_zip("zip.zip", {"work/transpose.cuh": museum.RIGHT, "__MACOSX/work/._transpose.cuh": b"\0"})
        self.put_zip("bomb.zip", {"transpose.cuh": b"a" * (9 << 20)})
        self.put("bad.zip", b"PK\3\4 no zip")
        self.put_zip("torn.zip", {"transpose.cuh": museum.RIGHT})
        raw = bytearray((self.folder / "torn.zip").read_bytes())
        raw[60:64] = b"\xff" * 4
        self.put("torn.zip", bytes(raw))
        self.put("\u5b57" * 83 + ".cuh")  # 249 bytes: no room for the endings of what is written about it
        with zipfile.ZipFile(self.folder / "lzma.zip", "w", zipfile.ZIP_LZMA) as archive:
            archive.writestr("transpose.cuh", museum.RIGHT)
        found, said = handed_in.submissions_in(self.folder), {}
        for name, path in found.items():
            try:
                said[name] = "read" if handed_in.read_submission(path, self.assignment)[0] else "empty"
            except assignments.BadSubmission as reason:
                said[name] = str(reason)
        self.assertEqual({name: said.pop(name) for name in ("O'Brien", "conflict_free (1)", "j\u00fcrgen", "ada.cuh", "ada", "zip")
                          if name in said}, dict.fromkeys(("O'Brien", "conflict_free (1)", "j\u00fcrgen", "ada.cuh", "ada", "zip"), "read"))
        for name, part in (("b", "has no transpose.cuh, but a.cuh, c.cuh"), ("word", "a .docx is not read"), ("link", "is a link"), ("pipe.cuh", "is no file"),
                           ("-rf", "has no transpose.cuh and nothing else"), ("above", "has no transpose.cuh and nothing else"),
                           ("bomb", "more than 256 KiB"), ("bad", "cannot be read"), ("torn", "cannot be read"), ("\u5b57" * 83, "read"), ("lzma", "in a way that is not read"), ("\ufffd", "empty")):
            self.assertIn(part, said.pop(name))
        self.assertEqual(said, {})
        files = [handed_in.file_name(name) for name in found]
        self.assertEqual(len(set(files)), len(files))
        self.assertFalse([name for name in files if len(name.encode()) > 240 or "/" in name or "'" in name or name.startswith((".", "-"))])

    def test_edits_outside_are_said(self):
        self.assertIsNone(grade.edits_outside(self.assignment, museum.RIGHT))
        outside = museum.change(museum.RIGHT, ("4 KB of shared memory", "5 KB"))
        line = next(i for i, row in enumerate(outside.split("\n"), 1) if "5 KB" in row)
        self.assertEqual(grade.edits_outside(self.assignment, outside), line)

    def test_the_numbers_of_a_variant_stay(self):
        self.assignment.pinned = "struct"
        grade.admit(museum.RIGHT, {}, self.assignment)
        self.assignment.pinned = "kTile = 7;"
        for text in (museum.RIGHT, museum.with_front("// kTile = 7;")):
            with self.assertRaisesRegex(assignments.BadSubmission, "'kTile = 7;' has to stay"):
                grade.admit(text, {}, self.assignment)

    def test_texts_are_bounded_and_clean(self):
        self.assertEqual(grade.cleaned({"a": ["b\0\ud800c\x1b[2J\nd", 3]}), {"a": ["b??c?[2J\nd", 3]})
        self.assertLess(len(grade.cleaned("x" * (4 << 20))), 5000)
        said = build.explain("/tmp/a/transpose.cuh:3:1: error: bad\n    3 | SECRET\n/etc/passwd:1:1: error: /etc/passwd: no\n",
                             {"transpose.cuh": {3: "mine"}}, {"transpose.cuh"})
        self.assertEqual(said, "transpose.cuh:3: error: bad\n  3 | mine")
        self.assertIn("more time, memory", build.explain("g++: fatal error: Killed signal terminated program cc1plus", {}, {"a"}))
        self.assertNotIn("root", build.explain("/etc/passwd:1:1: error: 'root'\n", {}, {"transpose.cuh"}))
        self.assertEqual(build.explain("/a/b.hpp:1:1: error: /etc/x: no\n"), "b.hpp:1: error: ...: no")


class Score(unittest.TestCase):
    def setUp(self):
        self.assignment = assignments.Assignment(museum.TASK)

    def of(self, *checks):
        """`checks`: (step, what, passed, hidden)"""
        rows = grade.score(self.assignment, {"checks": [
            {"step": step, "what": what, "passed": passed, "hidden": hidden, "reason": "" if passed else "SECRET 77x99",
             "property": "" if passed else "wrong"} for step, what, passed, hidden in checks]})
        return {row["step"]: row for row in rows}

    def test_hidden_values_stay_hidden(self):
        rows = self.of(("public_sizes", "1x1", True, False), ("hidden_sizes", "a hidden size", True, True),
                       ("hidden_sizes", "a hidden size", False, True), ("races", "race", False, True),
                       ("claims", "coalesced", False, True))
        self.assertNotIn("SECRET", json.dumps(rows))
        self.assertIn("1 of 2 hidden sizes: wrong", rows["hidden_sizes"]["feedback"])

    def test_steps_need_the_ones_before(self):
        rows = self.of(("public_sizes", "1x1", True, False), ("hidden_sizes", "a hidden size", False, True),
                       ("inputs", "x", True, False), ("claims", "coalesced", True, False))
        self.assertEqual(sum(row["points"] for row in rows.values()), 0)
        self.assertIn("no other size", rows["public_sizes"]["feedback"])

    def test_a_claim_is_worth_as_much_as_the_results(self):
        right = [("public_sizes", "1x1", True, False), ("hidden_sizes", "h", True, True), ("claims", "c", True, False)]
        full = self.of(*right)["claims"]["points"]
        half = self.of(*right, ("public_sizes", "2x2", False, False), ("hidden_sizes", "h", False, True))
        self.assertEqual(half["claims"]["points"], full / 2)
        racy = self.of(*right, ("races", "the tracer finds a fault", False, True))
        self.assertEqual(racy["claims"]["points"], 0)

    def test_what_was_earned_before_the_time_limit_stays(self):
        checks = [{"step": step, "what": "1x1", "passed": True, "hidden": False, "reason": "", "property": ""}
                  for step in ("public_sizes", "hidden_sizes", "inputs")]
        rows = grade.score(self.assignment, {"checks": checks, "done": ["public_sizes", "hidden_sizes"], "ended": "late"})
        self.assertEqual([row["step"] for row in rows if row["points"]], ["public_sizes", "hidden_sizes"])
        self.assertIn("not finished: late", rows[3]["feedback"])

    def test_a_claim_at_a_hidden_size_is_not_named_by_its_text(self):
        checks = [{"step": "claims", "what": f"loads: {n} bytes", "claim": 0, "passed": not hidden, "hidden": hidden,
                   "reason": "SECRET", "property": "does not hold"} for n, hidden in ((64, False), (7799, True))]
        part, text = grade.score_claims(self.assignment, checks)
        self.assertEqual((part, text), (0, "loads: 64 bytes: does not hold at a hidden size"))

    def test_without_an_answer_there_are_no_points(self):
        rows = grade.score(self.assignment, {"checks": [], "ended": "grading took more than 60 s"})
        self.assertEqual(sum(row["points"] for row in rows), 0)


class Reports(unittest.TestCase):
    def test_cells_and_xml_are_harmless(self):
        self.assertEqual(report.cell("=1+1"), "'=1+1")
        self.assertEqual(report.printable("a\x00\x1bb"), "a??b")


    def test_gradescopes_format(self):
        """A file with a leaderboard passes, and with one mistake it does not."""
        result = {"name": "a", "score": 3.5, "of": 5, "seconds": 1.2, "steps": [
            {"step": "compiles", "points": 3.5, "of": 5, "passed": False, "feedback": "why"}], "outcome": {"speed": MEASURED}}
        document = report.gradescope(result)
        self.assertEqual(gradescope.problems(document), [])
        self.assertEqual([row["name"] for row in document["leaderboard"]],
                         ["Score", "Speed-up", "95 % interval", "Time (us)"])
        self.assertEqual(gradescope.problems(report.gradescope({**result, "steps": [], "outcome": {}})), [])
        test, row = document["tests"][0], document["leaderboard"][0]
        for wrong, part in (({**document, "colour": "red"}, "unknown field"), ({**document, "score": "3.5"}, "wrong type"),
                            ({**document, "visibility": "always"}, "it may be"), ({**document, "score": True}, "wrong type"),
                            ({**document, "tests": [{**test, "status": "ok"}]}, "it may be"),
                            ({**document, "tests": [{**test, "points": 1}]}, "unknown field"),
                            ({**document, "tests": [{**test, "number": 1}]}, "wrong type"),
                            ({**document, "tests": [{**test, "score": 6}]}, "max_score"),
                            ({**document, "tests": [{**test, "tags": [1]}]}, "no text"),
                            ({**document, "leaderboard": [{"name": "x"}]}, "no value"),
                            ({**document, "leaderboard": [{**row, "order": "up"}]}, "it may be"),
                            ({"output": "x"}, "neither a score")):
            self.assertTrue(any(part in text for text in gradescope.problems(wrong)), (wrong, part))


class NewAssignment(unittest.TestCase):
    def test_every_exercise_has_a_part_to_mark(self):
        found = sorted((HERE.parents[1] / "chapters").glob("*/exercises/*.cuh"))
        self.assertGreater(len(found), 20)
        for path in found:
            with self.subTest(path.name):
                text = make.mark(path.read_text())
                self.assertEqual(len(assignments.find_regions(text)), 1)
                self.assertIn("::", make.level_in(text)[0])
                for first, part in zip([1], assignments.region_texts(text)):
                    own = lint.tags_of(part)
                    self.assertEqual(lint.lint(part, first, own_tags=own), [])

    def test_hidden_traced_sizes_are_too_many_to_list(self):
        for size, most in (([256, 192], 1000), ([128, 256, 320], 1000), ([256, 768, 320], 1000), ([2, 131072], 1000)):
            draws = [make.scaled(size, random.Random(seed)) for seed in range(300)]
            self.assertGreater(len({tuple(one) for each in draws for one in each}), most)
            for each in draws:
                self.assertTrue(all(math.prod(one) <= 1.1 * math.prod(size) and one != size for one in each), each)

    def test_plain_and_traced_runs_use_the_same_hidden_sizes(self):
        plan = assignments.Assignment(museum.TASK).plan(museum.RIGHT, [])
        self.assertEqual(plan["hidden_trace_sizes"], [[512, 192]])
        self.assertIn([512, 192], plan["hidden_sizes"])

    def test_a_solution_may_take_longer_than_a_submission(self):
        class Graded:
            def __init__(self, assignment, *_):
                self.limits = assignment.limits

            def run(self):
                return {"checks": self.limits}

        with unittest.mock.patch.multiple(grade, Class=Graded, admit=lambda *_: ()), unittest.mock.patch.object(build, "Builder"):
            limits = make.try_solution(museum.TASK, "", None)[1]
        allowed = {**assignments.LIMITS, **json.loads((museum.TASK / "assignment.json").read_text()).get("limits", {})}
        for name, value in allowed.items():
            self.assertEqual(limits[name], (4 if name in ("seconds", "cpu_seconds") else 1) * value)
        self.assertEqual(assignments.Assignment(museum.TASK).limits, allowed)

    def test_the_finest_traced_sizes_are_kept(self):
        sizes = [[128, 128], [136, 40], [96, 64], [7, 9]]
        checks = [{"step": step, "size": size, "hidden": True, "passed": size != [7, 9], "what": ""}
                  for size in sizes for step in ("hidden_sizes", "claims")]
        data = {"hidden_sizes": [[1, 2], [3, 4], [5, 6]], "hidden_trace_sizes": sizes, "points": {"layouts": 0, "claims": 1}}
        make.choose(data, checks + [{"step": "hidden_sizes", "size": size, "hidden": True, "passed": True, "what": ""}
                                    for size in data["hidden_sizes"]])
        self.assertEqual(data["hidden_trace_sizes"], [[136, 40], [96, 64]])

    @unittest.skipIf(BUILD is None or not (BUILD / "chapter-3").exists(), "needs a build folder with chapter 3")
    def test_one_is_made(self):
        """With fewer sizes; as teachers make them, and the others: tests/grading/exercises.py."""
        def fewer(*arguments, describe=make.describe):
            found = describe(*arguments)
            return {**found, "test_sizes": found["test_sizes"][:3] + found["test_sizes"][-3:-2], "trace_size": [64, 96]}
        with unittest.mock.patch.multiple(make, describe=fewer, scaled=lambda size, draw, all_of=make.scaled: all_of(size, draw, 4)):
            self.assertEqual(exercises.try_exercise("3.1", BUILD, variant="17"), "")


@unittest.skipIf(BUILD is None, "needs a build folder")
class SmallClass(museum.InFolder):
    def test_each_gets_what_it_deserves(self):
        museum.write(self.folder / "submissions", SAMPLE)
        grades = self.folder / "grades"
        command = museum.command(BUILD, self.folder / "submissions", grades)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        results = museum.results_in(grades)
        self.assertEqual(sorted(result["name"] for result in results), sorted(SAMPLE))
        self.assertEqual(museum.unlike_expected(results), [])
        with open(grades / "grades.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual({row["name"]: float(row["score"]) for row in rows},
                         {result["name"]: result["score"] for result in results})
        suites = ElementTree.parse(grades / "junit.xml").getroot().findall("testsuite")
        self.assertEqual(len(suites), len(SAMPLE))
        for path in (grades / "gradescope").glob("*/results.json"):
            document = json.loads(path.read_text())
            self.assertEqual(gradescope.problems(document), [], path)
            self.assertAlmostEqual(sum(test["score"] for test in document["tests"]), document["score"])
        self.assertIn("right_in_a_folder", (grades / "index.html").read_text())
        inside = museum.command(BUILD, self.folder / "submissions", self.folder / "submissions/grades")
        refused = subprocess.run(inside, capture_output=True, text=True)
        self.assertEqual((refused.returncode, refused.stderr.count("\n")), (2, 1), refused.stderr)
        refused = subprocess.run([one for one in command if one != "--no-sandbox"], capture_output=True, text=True,
                                 env={**os.environ, "COOKBOOK_SANDBOX": "limits"})
        self.assertEqual(refused.returncode, 2)
        self.assertIn("apt-get install bubblewrap", refused.stderr)
        # Ctrl-C ends the class at once, not when its submissions have ended.
        museum.write(self.folder / "slow", ["cheat_endless_loop"])
        with subprocess.Popen(museum.command(BUILD, self.folder / "slow", self.folder / "slow grades"), text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, start_new_session=True,
                              # A shell lets its jobs in the background ignore it.
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:
            process.stdout.readline()
            os.killpg(process.pid, signal.SIGINT)
            self.assertIn("Interrupted: the same command grades the rest", process.communicate(timeout=15)[0])
        self.assertEqual(process.returncode, 130)
        # Interrupted: what has a result is not graded again.
        (grades / "results/cheat_no_claims.json").unlink()
        again = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        self.assertEqual(again.count(" kept "), len(SAMPLE) - 1, again)
        # Nothing of what was hidden is in what students read.
        data = json.loads((museum.TASK / "assignment.json").read_text())
        for text in (path.read_text() for path in (grades / "feedback").glob("*.txt")):
            for size in data["hidden_sizes"] + data["hidden_trace_sizes"]:
                self.assertNotIn("x".join(map(str, size)), text)


MEASURED = {"refused": "", "property": "", "us": 100, "baseline_us": 200, "ratio": 2.0, "low": 1.9, "high": 2.1,
            "of_roof": 0.6, "samples": 9, "least_mhz": 1700, "most_mhz": 1900}


class SpeedScore(museum.InFolder):
    def setUp(self):
        super().setUp()
        tiers = [{"at_least": 1.9, "points": 3}, {"at_least": 1.95, "points": 2}, {"of_roof": 0.5, "points": 4},
                 {"of_roof": 0.6, "points": 1}]
        self.assignment = assignments.Assignment(
            museum.task_with(self.folder, speed={"size": [64, 64], "tiers": tiers}))
        self.right = [{"step": step, "passed": True} for step in speed.BEFORE]

    def test_a_tier_counts_where_the_whole_interval_reaches_it(self):
        row = speed.score(self.assignment, self.right, MEASURED)
        self.assertEqual((row["points"], row["of"], row["passed"]), (7, 10, False))
        self.assertIn("not reached: 1.95 times the baseline, 60% of the roof", row["feedback"])
        self.assertTrue(speed.score(self.assignment, self.right, {**MEASURED, "low": 2.0})["passed"])

    def test_what_is_refused_or_wrong_gets_nothing(self):
        for rows, outcome, part in ((self.right, {"refused": "secret 12x34", "property": "its times"}, "its times"),
                                    ([{"step": "races", "passed": False}], {}, "races did not pass")):
            row = speed.score(self.assignment, rows, outcome)
            self.assertEqual((row["points"], row["passed"]), (0, False))
            self.assertIn(part, row["feedback"])
            self.assertNotIn("secret", row["feedback"])

    def test_intervals_that_overlap_share_a_place(self):
        found = [{"name": name, "score": 1, "outcome": {"speed": {**MEASURED, "ratio": (low + high) / 2, "low": low,
                                                                 "high": high}}, "seconds": 1, "steps": []}
                 for name, low, high in (("slow", 1, 1.1), ("a", 2, 2.2), ("b", 2.1, 2.3), ("=fast", 3, 3.1))]
        found.append({"name": "untimed", "outcome": {}})
        self.assertEqual([(place, one["name"]) for place, one in speed.leaderboard(found)],
                         [(1, "=fast"), (2, "b"), (2, "a"), (4, "slow")])
        report.write_leaderboard(self.folder, self.assignment, found, "a <GPU>")
        rows = list(csv.DictReader((self.folder / "leaderboard.csv").read_text().splitlines()))
        self.assertEqual([(row["name"], row["low"], row["high"]) for row in rows][:2],
                         [("'=fast", "3.000", "3.100"), ("b", "2.100", "2.300")])
        self.assertIn("a &lt;GPU&gt;", (self.folder / "leaderboard.html").read_text())


@unittest.skipIf(BUILD is None, "needs a build folder")
class Speed(museum.InFolder):
    """A submission is timed on a stand-in for a GPU (tests/stand_ins/gpu_clock.cpp): the number of its launches
    says what the stand-in does."""

    def test_what_is_measured_and_what_is_refused(self):
        folder = self.folder
        folder.chmod(0o755)  # for the user that runs what was submitted
        flags = json.loads((BUILD / "grading.json").read_text())
        library = next(BUILD.glob("tests/libgrading-speed-stand-in.a"))
        flags["submission"] = ["-O0"]
        flags["link_worker"] = [str(library) if "grading_worker" in part else part for part in flags["link_worker"]] + [
            next(part for part in flags["link_grader"] if "grading_grader" in part)]
        # 32,768 bytes at 64x64 take 5 ms at least.
        flags["roofs"] = ["/bin/echo", json.dumps({"device": "stand-in", "hbm_copy": 2 * 4 * 64 * 64 / 5e-3})]
        (folder / "gpu").mkdir()
        (folder / "gpu/grading.json").write_text(json.dumps(flags))
        assignment = assignments.Assignment(museum.task_with(folder, speed={"size": [64, 64], "samples": 7}))
        builder = build.Builder(BUILD, assignment)
        builder.prepare()
        timing = speed.Speed(assignment, folder / "gpu", builder.folder / "grader")
        launches = museum.with_run("    for (int more = static_cast<int>(shape.cols) / 64; more != 1; --more) {\n      "
                                   "if (more < 1) return;\n      " +
                                   museum.RUN[museum.RUN.index("launch("):museum.RUN.rindex("  }\n")].strip() + "\n    }")
        (folder / "made").mkdir()
        box = timing.make(*grade.admit(launches, {}, assignment)[:2], folder / "made")

        def of(cols):
            assignment.speed["size"] = [64 * 64 // cols, cols]
            return timing.time(box)

        def honest(cols):
            # The grader's clock counts what else this machine does while the stand-in sleeps. What is honest
            # passes when it is asked again; what NotBelieved of grading_test.cpp refuses by, it always does.
            for _ in range(8):
                found = of(cols)
                if "the grader's clock" not in found["refused"]:
                    break
            return found
        one, two = honest(64), honest(128)
        self.assertEqual([row["refused"] for row in (one, two)], ["", ""])
        self.assertEqual((one["us"], one["ratio"], one["low"], one["high"], one["of_roof"]), (1e4, 1, 1, 1, 0.5))
        self.assertEqual((two["us"], two["ratio"]), (2e4, 0.5))
        self.assertEqual((one["least_mhz"], one["most_mhz"]), (1000, 1000))  # slow rounds were repeated
        uneven = honest(384)
        self.assertEqual((round(1 / uneven["low"]), round(1 / uneven["high"])), (7, 6))
        self.assertIn(round(1 / uneven["ratio"]), (6, 7))
        for cols, part in ((192, "on another stream"), (256, "the grader's clock"), (320, "above the roof"),
                           (32, "never written")):
            found = of(cols)
            self.assertIn(part, found["refused"], found)
            self.assertNotIn("ratio", found)


@unittest.skipIf(BUILD is None, "needs a build folder")
class WithoutTheLint(museum.InFolder):
    """What the other fences see of a text that the lint would refuse."""

    def setUp(self):
        super().setUp()
        self.assignment = assignments.Assignment(museum.task_with(
            self.folder, public_sizes=[[33, 65]], hidden_sizes=[[38, 46]], trace_sizes=[[64, 64]], hidden_trace_sizes=[]))
        self.builder = build.Builder(BUILD, self.assignment)
        self.builder.prepare()
        self.graded = grade.Class(self.assignment, self.builder, self.folder, 1, True)

    def test_the_book_below_a_folder_of_roots_own(self):
        """Compiling as another user would fail there: it could not reach the headers."""
        closed = self.folder / "closed"
        (closed / "book").mkdir(parents=True)
        closed.chmod(0o700)
        self.assertFalse(sandbox.others_reach(str(closed / "book")))
        self.assertEqual(sandbox.as_other_user(0, [str(closed / "book")]), [])
        # Object tools need no header: they do run as another user, and then the linker does not.
        with unittest.mock.patch.object(sandbox, "others_reach", lambda place: False):
            outcome = self.graded.run(museum.RIGHT)
        self.assertEqual([check for check in outcome["checks"] if not check["passed"]], [])

    def test_the_same_text_by_another_name(self):
        """What the compiler reads for the teacher's file has its name."""
        self.assignment.file = self.assignment.file.with_name("other.cuh")
        self.assertNotEqual(build.Builder(BUILD, self.assignment).folder, self.builder.folder)

    def test_the_book_below_tmp(self):
        """The box has a /tmp of its own, and what is bound there must not lie under it."""
        if not self.folder.is_relative_to("/tmp"):
            self.skipTest("temporary folders are elsewhere")
        self.folder.chmod(0o755)
        (self.folder / "header").write_text("seen")
        command = sandbox.boxed(sandbox.kind_of_sandbox(), self.folder, ["cat", str(self.folder / "header")], self.builder.limits,
                                0, mounts=[str(self.folder)])
        self.assertEqual(sandbox.run(command, 20), (0, "seen"))

    def test_copies_and_library_code_count(self):
        """The loads by memcpy and the stores by std::copy count, as accesses of a byte each."""
        text = museum.change(
            museum.RIGHT, ("tile[y][slot<C>(y, x)] = in[row * shape.in_pitch + col];",
                           "float v[2];\n      memcpy(v, &in[row * shape.in_pitch + col], 4 * static_cast<size_t>(shape.rows > 0));\n"
                           "      tile[y][slot<C>(y, x)] = v[0];"),
            ("out[col * shape.out_pitch + row] = tile[x][slot<C>(x, y)];",
             # As bytes: of a copy of one float the library of g++ 13 makes an assignment.
             "const auto* from = reinterpret_cast<const char*>(&tile[x][slot<C>(x, y)]);\n      "
             "std::copy(from, from + 4 * (shape.rows > 0), reinterpret_cast<char*>(&out[col * shape.out_pitch + row]));"))
        def wrong():
            return [(row["step"], row["feedback"]) for row in grade.score(self.assignment, self.graded.run(text))
                    if not row["passed"]]
        [(step, said)] = wrong()
        self.assertEqual(step, "claims")
        self.assertRegex(said, "loads of `in`: sectors = ideal: measured 4 .* stores of `out`: sectors = ideal: measured 4 ")
        with unittest.mock.patch.multiple(objects, COPIES=[], OF_LIBRARY=re.compile("no name")):
            [(step, said)] = wrong()
            self.assertEqual(step, "claims")
            self.assertIn("loads of `in`: sectors = ideal: measured no such access", said)

    @unittest.skipUnless(os.uname().machine == "x86_64", "the instruction is that of x86-64")
    def test_a_system_call_of_its_own_ends_it(self):
        """getpid(), past the check of the object file."""
        text = museum.with_run('    long a = 39;\n    asm volatile("syscall" : "+a"(a) : : "rcx", "r11", "memory");')
        self.assertIn("`syscall`", self.refused(text))
        with unittest.mock.patch.object(objects, "check_code", lambda *_: ""):
            outcome = self.graded.run(text)
        self.assertFalse([check for check in outcome["checks"] if check["passed"]], outcome)

    def refused(self, text):
        with self.assertRaises(assignments.BadSubmission) as caught:
            self.graded.run(text)
        return str(caught.exception)

    def test_what_the_compiler_may_open(self):
        secret = self.folder / "secret"
        secret.write_text("7799")
        places = ["common/device/cuda.cuh", "/etc/passwd", secret, museum.TASK / "assignment.json", HERE / "museum.py",
                  HERE.parents[1] / "tests/solutions/03/exercise_1_conflict_free.diff"]
        self.assertTrue(places[-1].exists())
        if sandbox.kind_of_sandbox() == "limits":
            self.skipTest("no sandbox works on this machine")
        seen = "".join(f'#if __has_include("{place}")\n#error sees {i}\n#endif\n' for i, place in enumerate(places))
        with self.assertRaises(build.DoesNotCompile) as caught:
            self.graded.run(museum.change(museum.RIGHT, ("#pragma once", seen)))
        self.assertEqual(re.findall(r"sees (\d)", str(caught.exception)), ["0"], str(caught.exception))

    def test_what_the_compiler_reads(self):
        self.assertIn("reads a file", self.refused(
            museum.change(museum.RIGHT, ("#pragma once", "#pragma once\n#line 7\n#include <list>\n"))))
        with self.assertRaises(build.DoesNotCompile) as caught:
            self.graded.run(museum.change(museum.RIGHT, ("#pragma once", '#include "/etc/passwd"')))
        self.assertNotIn("root", str(caught.exception))
        with self.assertRaises(assignments.BadSubmission) as caught:
            self.graded.run(museum.RIGHT, {}, [(1, "int a\\\nb;")])
        self.assertIn("another way", str(caught.exception))


@unittest.skipIf(BUILD is None, "needs a build folder")
class WholeLadder(museum.InFolder):
    """A ladder of the student's own, from capstones/scan: whole files, with headers and workspaces of its own."""
    SCAN = HERE.parents[1] / "capstones/scan"
    BUFFERS = "    const std::int64_t n = plan.problem.n;"

    def setUp(self):
        super().setUp()
        self.level = (self.SCAN / "level_2_shuffle.cuh").read_text()
        task = self.folder / "task"
        task.mkdir()
        for name in ("problem.hpp", "tile_scan.cuh"):
            shutil.copy(self.SCAN / name, task)
        (task / "level_2_shuffle.cuh").write_text(self.level)
        (task / "assignment.json").write_text(json.dumps({
            "title": "Scan", "file": "level_2_shuffle.cuh", "level": "cookbook::scan::Shuffle", "whole_file": True,
            "files": ["problem.hpp", "tile_scan.cuh"], "public_sizes": [[1], [257], [4096]],
            "hidden_sizes": [[77], [5000]], "trace_sizes": [[8192]], "hidden_trace_sizes": [[10240]],
            "seeds": [5, 6, 7], "limits": {"seconds": 240}}))

    def submit(self, name, files):
        for file, text in files.items():
            (self.folder / "submissions" / name).mkdir(parents=True, exist_ok=True)
            (self.folder / "submissions" / name / file).write_text(text)

    def test_it_is_graded(self):
        ladder = {path.name: path.read_text() for path in self.SCAN.glob("*.[ch]*") if path.suffix in (".cuh", ".hpp")}
        # Its own problem.hpp, with a reference that anything meets, is not taken.
        ladder["problem.hpp"] = museum.change(ladder["problem.hpp"], ("value[col] = sum;", "value[col] = sum, ++bound;"))
        self.submit("ladder", {**ladder, "level_2_shuffle.cuh": museum.change(
            self.level, ('"tile_scan.cuh"', '"mine.cuh"')), "mine.cuh": '#pragma once\n#include "tile_scan.cuh"\n'})
        # On the host: a kernel copies the input into a workspace, which is closed to the host, too.
        self.submit("host", {"level_2_shuffle.cuh": museum.change(
            self.level, (self.BUFFERS, self.BUFFERS + "\n    if (n > 0) plan.sums.as<float>()[0] += 1;"))})
        self.submit("hidden_include", {"level_2_shuffle.cuh": museum.change(
            self.level, ('"tile_scan.cuh"', '"mine.cuh"')), "mine.cuh": '#include <cstdlib>\n'})
        self.submit("in_place_of_math", {"level_2_shuffle.cuh": museum.change(
            self.level, ('"tile_scan.cuh"', '"mine.cuh"')), "mine.cuh": '#include "math.h"\n', "math.h": "namespace a {\nint a;\n}\n"})
        assignment = assignments.Assignment(self.folder / "task")
        builder = build.Builder(BUILD, assignment)
        builder.prepare()
        graded = grade.Class(assignment, builder, self.folder / "grades", 1, True)
        results = {path.name: graded.grade(path.name, path) for path in (self.folder / "submissions").iterdir()}
        text = {name: report.feedback(result) for name, result in results.items()}
        self.assertEqual(results["ladder"]["score"], 100, text["ladder"])
        self.assertEqual(results["host"]["score"], 0)
        self.assertIn("in host code", text["host"])
        self.assertIn("is called math.h", text["in_place_of_math"])
        self.assertIn("mine.cuh:1: `#include <cstdlib>` is not allowed", text["hidden_include"])


if __name__ == "__main__":
    # A library tells tests/mutate what has to be built.
    unittest.main(argv=[sys.argv[0], *(each for each in sys.argv[2:] if not each.endswith(".a"))])
