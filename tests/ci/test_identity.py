#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a level is known by (tools/identity): what changes it, and what must not. Run: python3 tests/ci/test_identity.py"""
import json
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/identity"))
import identity  # noqa: E402
import main_path  # noqa: E402
from machine_code import Unreadable, machine_code  # noqa: E402
from tokens import forget_sources, sources, token_hash  # noqa: E402
from tree import Tree  # noqa: E402

NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
LEVEL = """// SPDX-License-Identifier: MIT
#pragma once
#include "chapters/01_copy/scale.cuh"
#include <cuda_fp16.h>

namespace cookbook::copy {

constexpr int kSteps = 8;
__constant__ float table[2] = {1.0f, 2.0f};

// Adds up.
__global__ void sum(const float* in, float* out) {
  __shared__ float tile[32];
  float all = 0;
#pragma unroll 2
  for (int i = 0; i < 64; ++i) {
    all += in[i * kSteps + threadIdx.x] * scale();
  }
  tile[threadIdx.x] = all;
  __syncthreads();
  out[threadIdx.x] = tile[31 - threadIdx.x];
}

__global__ void look_up(const int* in, float* out) { out[threadIdx.x] = table[in[threadIdx.x] % 2]; }

}  // namespace cookbook::copy
"""
SCALE = "#pragma once\nnamespace cookbook {\n__device__ inline float scale() { return 3.0f; }\n}\n"


class Source(Tree):
    """A level with a header, in a tree of its own."""

    def setUp(self):
        super().setUp()
        self.level = self.write("chapters/01_copy/level_0.cuh", LEVEL)
        self.scale = self.write("chapters/01_copy/scale.cuh", SCALE)

    def edited(self, old, new, text=LEVEL):
        self.assertIn(old, text)
        self.level.write_text(text.replace(old, new))


class Tokens(Source):
    def setUp(self):
        super().setUp()
        self.before = self.hash()

    def hash(self, text=None):
        """Of the level, or of one that says this."""
        if text is not None:
            self.level.write_text(text)
        forget_sources()
        return token_hash(self.level, self.root)

    def test_comments_and_blank_space_change_nothing(self):
        for old, new in (("// Adds up.\n", ""), ("// Adds up.", "/* Adds\n up */"), ("float all = 0;", "float  all=0; // zero"),
                         ("int i = 0; i < 64;", "int i = 0;\n       i < 64;"), ("// SPDX-License-Identifier: MIT\n", ""),
                         ("#pragma once\n", ""), ("#pragma unroll 2", "#pragma  unroll 2  // twice")):
            with self.subTest(old=old):
                self.edited(old, new)
                self.assertEqual(self.hash(), self.before)

    def test_a_moved_file_and_a_moved_declaration_change_nothing(self):
        self.scale.unlink()
        self.write("common/device/factor.cuh", SCALE)
        moved = LEVEL.replace("chapters/01_copy/scale.cuh", "common/device/factor.cuh")
        self.assertEqual(self.hash(moved), self.before)
        self.level = self.level.rename(self.level.with_name("level_1.cuh"))
        self.assertEqual(self.hash(), self.before)
        self.write("chapters/01_copy/steps.cuh", "#pragma once\nnamespace cookbook::copy {\nconstexpr int kSteps = 8;\n}\n")
        self.edited("constexpr int kSteps = 8;\n", "", moved.replace("#include <cuda_fp16.h>", '#include "steps.cuh"'))
        self.assertEqual(self.hash(), self.before)

    def test_what_is_said_changes_it(self):
        for old, new in (("kSteps = 8", "kSteps = 4"), ("#pragma unroll 2", "#pragma unroll 4"), ("void sum", "void add"),
                         ("cookbook::copy {", "cookbook::copied {"), ("all += ", "all -= "), ("tile[31", "tile[30"),
                         ("out[threadIdx.x] = tile", "out[thread.Idx.x] = tile")):
            with self.subTest(old=old):
                self.edited(old, new)
                self.assertNotEqual(self.hash(), self.before)

    def test_the_order_of_statements_counts_also_beside_a_condition(self):
        for text in ("#if A\nint a() {{\n#else\nint b() {{\n#endif\n  {}\n  {}\n}}\n", "int a() {{\n  {}\n  {}\n}}\n"):
            self.assertNotEqual(self.hash(text.format("x();", "y();")), self.hash(text.format("y();", "x();")))
        self.assertEqual(self.hash("int a;\nint b;\n"), self.hash("int b;\nint a;\n"))

    def test_headers_count_and_the_hosts_do_not(self):
        self.scale.write_text(SCALE.replace("3.0f", "4.0f"))
        self.assertNotEqual(self.hash(), self.before)
        self.scale.write_text(SCALE)
        host = self.write("common/harness/contract/level.hpp", "struct Level;\n")
        self.edited("#include <cuda_fp16.h>", '#include "common/harness/contract/level.hpp"')
        self.assertEqual(self.hash(), self.before)
        self.assertIn(host.resolve(), sources(self.level, self.root))

    def test_marks_of_the_timeline_do_not_count(self):
        self.write("common/device/timeline.cuh", "namespace timeline { void begin(int); }\n")
        self.edited("#include <cuda_fp16.h>", '#include "common/device/timeline.cuh"',
                    LEVEL.replace("  float all = 0;\n", "  timeline::begin(timeline::Kind::copy);\n  float all = 0;\n"))
        self.assertEqual(self.hash(), self.before)

    def test_what_is_no_whole_source_has_a_hash_too(self):
        for text in ("}", "#endif", "#else", "#if A", "namespace", '"', "/*", "int a", "{"):
            with self.subTest(text=text):
                self.assertRegex(self.hash(text), "^[0-9a-f]{16}$")


@unittest.skipUnless(NVCC, "nvcc is not installed")
class MachineCode(Source):
    @classmethod
    def setUpClass(cls):
        cls.compiled = {}

    def compile(self, *options, name="level"):
        main = self.write(f"{name}.cu", f'#include "{self.level.relative_to(self.root)}"\n')
        object_file = self.root / f"{name}.o"
        subprocess.run([NVCC, "-c", "--no-compress", "-lineinfo", "-gencode", "arch=compute_90a,code=sm_90a", *options,
                        "-I", self.root, main, "-o", object_file], check=True)
        return object_file

    def codes(self, *options):
        return machine_code([self.compile(*options)])

    def test_what_marks_a_level(self):
        before = self.codes()
        sum_, look_up = sorted(before, key=lambda name: "look_up" in name)
        self.assertEqual(len(before), 2)
        self.edited("// Adds up.\n", "// Adds up.\n// And more.\n\n")
        self.assertEqual(self.codes(), before, "a comment")
        self.edited("void sum", "void add_up")
        self.assertEqual(sorted(self.codes().values()), sorted(before.values()), "a renamed kernel")
        self.assertNotEqual(self.codes().keys(), before.keys())
        self.level.write_text(LEVEL)
        self.level = self.level.rename(self.write("library/sum.cuh", ""))
        self.assertEqual(self.codes(), before, "a moved file")
        for what, old, new, changed in (("a constant", "kSteps = 8", "kSteps = 4", sum_),
                                        ("an unrolled loop", "#pragma unroll 2", "#pragma unroll 4", sum_),
                                        ("static shared memory", "tile[32]", "tile[64]", sum_),
                                        ("a table", "{1.0f, 2.0f}", "{1.0f, 4.0f}", look_up)):
            self.edited(old, new)
            after = self.codes()
            self.assertEqual([name for name in before if after[name] != before[name]], [changed], what)

    def test_an_executable_is_read_and_a_compressed_one_is_named(self):
        self.level.write_text(LEVEL + "int main() {}\n")
        codes = self.codes()
        other = self.write("other.cu", "__global__ void other(int* at) { *at = 1; }\n")
        program = self.root / "program"
        subprocess.run([NVCC, "--no-compress", "-gencode", "arch=compute_90a,code=sm_90a", self.root / "level.o", other, "-o",
                        program], check=True)
        linked = machine_code([program])
        self.assertEqual({name: linked[name] for name in codes}, codes)
        self.assertEqual(len(linked), 3)
        self.assertEqual(machine_code([program], 80), {})
        elf = program.read_bytes()
        program.write_bytes(elf[:4] + elf[4:].replace(b"\x7fELF", b"\x28\xb5\x2f\xfd"))  # nvcc compresses large ones only
        with self.assertRaisesRegex(Unreadable, "compressed"):
            machine_code([program])
        with self.assertRaisesRegex(Unreadable, "no object file"):
            machine_code([other])


def launch(kernel, **more):
    return {"kernel": kernel, "grid": "4x1x1", "block": "32x1x1", **more}


class Level(unittest.TestCase):
    """A level is the sequence of what it launches."""

    KERNELS = {"a": "1", "b": "2", "renamed": "1"}

    def code(self, *launches, maps=()):
        return identity.code_identity({"launches": list(launches), "tensor_maps": list(maps)}, self.KERNELS)

    def test_what_the_host_decides_counts(self):
        maps = [{"box": "64x128", "swizzle_bytes": 128}]
        before = self.code(launch("a"), launch("b"), maps=maps)
        self.assertEqual(before, self.code(launch("renamed"), launch("b"), maps=maps))
        others = [self.code(launch("a", **more), launch("b"), maps=maps) for more in (
            {"grid": "5x1x1"}, {"block": "64x1x1"}, {"cluster": 2}, {"shared_bytes": 8}, {"cooperative": True},
            {"dependent": True}, {"times": 2})]
        others += [self.code(launch("b"), launch("a"), maps=maps), self.code(launch("a"), maps=maps),
                   self.code(launch("a"), launch("b"), maps=[{"box": "64x64", "swizzle_bytes": 128}]),
                   self.code(launch("a"), launch("b"))]
        self.assertEqual(len({before, *others}), len(others) + 1)

    def test_a_kernel_without_code_is_named(self):
        with self.assertRaisesRegex(Unreadable, "no machine code of gone"):
            self.code(launch("gone"))

    def test_which_results_are_current(self):
        device = {"toolkit": "13.0", "sm_count": 132}
        lock = {**device, "levels": {"chapter-1/copy/tiled": {"tokens": "now", "code": {"8x8": "code"}}}}
        current = identity.Identities(["now"], lock)

        def has(code, tokens, of=current, device=device, name="tiled", size=(8, 8)):
            level = {"name": name, "identity": {"code": code, "tokens": tokens}}
            return of.has(level, device, "chapter-1", "copy", size)
        self.assertTrue(has("code", "before"), "another text, the same machine code")
        self.assertFalse(has("other", "now"), "the same text, other machine code")
        for unknown in ({"device": {**device, "toolkit": "13.1"}}, {"device": {**device, "sm_count": 114}}, {"size": (9, 9)},
                        {"name": "other"}, {"of": identity.Identities(["now"])}):
            self.assertTrue(has("other", "now", **unknown), unknown)
            self.assertFalse(has("code", "before", **unknown), unknown)
        edited = identity.Identities(["later"], lock)  # the lock is not of these sources
        self.assertFalse(has("code", "now", edited))
        self.assertTrue(has("code", "later", edited))
        self.assertFalse(current.has({"name": "tiled", "source_sha256": "0"}, device, "chapter-1", "copy", (8, 8)))

    def test_the_librarys_choice_is_found_among_the_levels_of_a_chapter(self):
        entry = {"tokens": "now", "code": {"8x8": "code"}}
        current = identity.Identities(["now"], {"levels": {"capstone-attention/prefill/attention": entry}})
        self.assertEqual(current.code("chapter-10", "prefill", "attention", (8, 8)), "code")
        self.assertIsNone(current.code("chapter-10", "prefill", "tiled", (8, 8)))

    def test_what_differs_is_said(self):
        old = {"toolkit": "13.0", "levels": {"a": {"tokens": "1", "code": {"8": "x"}}, "b": {"tokens": "1", "code": {}}}}
        new = {"levels": {"a": {"tokens": "1", "code": {"8": "y"}}, "c": {"tokens": "1", "code": {}}}}
        self.assertEqual(identity.differences(old, new),
                         ["a: other machine code or launches at 8", "b: gone", "c: new"])
        new = {"levels": {**old["levels"], "a": {"tokens": "2", "code": {"8": "x"}}}}
        self.assertEqual(identity.differences(old, new), ["a: another text, the same machine code"])
        self.assertEqual(identity.differences(old, json.loads(identity.lock_text(old))), [])


class MainPath(unittest.TestCase):
    def test_what_is_missing_is_listed(self):
        levels, names = main_path.read_list("# comment\nchapter-1/copy/a: 11x2 22 | 33\nchapter-1/copy/b: 22\n11: _Z1a\n")
        self.assertEqual(levels, {"chapter-1/copy/a": ["11", "22", "33"], "chapter-1/copy/b": ["22"]})
        self.assertEqual(names, {"11": "_Z1a"})
        self.assertEqual(main_path.missing(levels, {"11", "22", "33"}), {})
        self.assertEqual(main_path.missing(levels, {"11", "33"}), {"chapter-1/copy/a": ["22"], "chapter-1/copy/b": ["22"]})

    def test_the_committed_list_is_whole(self):
        levels, names = main_path.read_list(main_path.LIST.read_text())
        self.assertEqual({code for codes in levels.values() for code in codes}, set(names))
        self.assertGreater(len(levels), 200)


class CommandLine(Tree):
    def call(self, *arguments):
        done = subprocess.run([sys.executable, "-B", ROOT / "tools/identity/identity.py", *arguments], capture_output=True,
                              text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_bad_input_is_one_line_and_2(self):
        text = self.write("text.json", "{")
        for arguments in (["kernels", text], ["kernels", text.with_name("none")], ["enter", text, text],
                          ["lock", "--simt", self.root]):
            status, said = self.call(*arguments)
            self.assertEqual((status, len(said.splitlines())), (2, 1), said)

    def test_the_table_holds_what_a_file_includes(self):
        out = self.root / "tokens.cpp"
        self.assertEqual(self.call("table", out, ROOT / "chapters/01_coalescing/level_0_strided.cuh")[0], 0)
        self.assertIn('{"01_coalescing/level_0_strided.cuh", "', out.read_text())
        self.assertIn('{"01_coalescing/problem.hpp", "', out.read_text())
        self.assertIn("common/device/cuda.cuh", out.with_suffix(".d").read_text())


if __name__ == "__main__":
    unittest.main()
