# SPDX-License-Identifier: MIT
"""Unit tests of the tables of docs/languages.md."""
import importlib
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cookbook_plots import book, languages, quotes

from .fixtures import Folder

PYTHON = '''
@jit
def kernel(a,
           b):
    """Two
    lines."""
    # a comment
    x = """text
    of two lines"""

    return x  # one line


def other():
    pass
'''


class Lines(Folder):
    def test_python(self):
        self.assertEqual(languages.python_lines(PYTHON, {"kernel"}), 6)
        self.assertEqual(languages.python_lines(PYTHON, {"kernel", "other"}), 8)

    def test_cpp(self):
        self.assertEqual(languages.cpp_lines("// no\nint a; // yes\n\n/* no\n   no */\nint b; /* yes */\n"), 2)

    def test_lines_of_python_are_quoted_as_python(self):
        self.file("loop.py", "def f():\n    # [quote loop]\n    for x in y:\n        z(x)\n    # [end quote]\n")
        text, _ = quotes.filled("<!-- quote loop.py loop -->\n", self.folder)
        self.assertEqual(text, "<!-- quote loop.py loop -->\n```python\nfor x in y:\n    z(x)\n```\n")
        self.assertEqual(quotes.filled(text, self.folder)[0], text)
        with self.assertRaisesRegex(ValueError, "has no // .quote other."):
            quotes.filled("<!-- quote loop.py other -->\n", self.folder)

    def test_included(self):
        for name, text in {"chapters/a.cuh": '#include "chapters/b.cuh"\n#include "common/c.cuh"\n',
                           "chapters/b.cuh": '#include "chapters/a.cuh"\n', "common/c.cuh": ""}.items():
            self.file(name, text)
        found = {str(file) for file in languages.included("chapters/a.cuh", self.folder)}
        self.assertEqual(found, {"chapters/a.cuh", "chapters/b.cuh"})

    def test_what_is_counted_exists(self):
        text = (book.ROOT / languages.TRITON).read_text()
        for names in languages.TRITON_FUNCTIONS.values():
            for name in names:
                self.assertGreater(languages.python_lines(text, {name}), 0, name)
        for name, file in languages.LEVELS.items():
            timed = importlib.import_module(f"compare_{name}").LEVELS.values()
            self.assertIn(Path(file), [part for level in timed for part in languages.included(level, book.ROOT)])


def row(name, ms, speed, ours=False):
    return {"name": name, "ours": ours, "time_ms": {"median": ms}, "tflops": speed, "gbps": None, "identity": {"code": None, "tokens": "old"},
            "vs_cookbook": None if ours else {"ratio": speed / 100}}


class Tables(unittest.TestCase):
    def document(self, **more):
        case = {"chapter": 8, "ladder": "gemm", "size": [4096] * 3, "variant": "NN", "dtype": "bf16", "unit": "TFLOP/s", "flops": 1,
                "rows": [row("any_shape", 1, 100, True), row("cuTile", 2, 90), row("cuTile, as shipped", 3, 80),
                         row("CUTLASS, cooperative", 2, 70), row("CUTLASS, ping-pong", 1.5, 75), row("cuBLAS", 1, 110)]}
        return {"comparisons": [case], "versions": {"torch": "2", "cutlass": None}, "date": "2026-01-02",
                "device": {"name": "GPU"}} | more

    def test_the_fastest_row_of_each_language(self):
        text = languages.speed_table(self.document())
        lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.split("\n") if line.startswith("|")]
        self.assertEqual(lines[0], ["", "GEMM 4,096 bf16, TFLOP/s"])
        self.assertEqual(lines[2:], [["this book", "100 †"], ["CUTLASS", "75 (0.75x)"], ["cuTile", "90 (0.90x)"],
                                     ["cuTile, as shipped", "80 (0.80x)"], ["Triton", "-"], ["TileLang", "-"],
                                     ["fastest library", "cuBLAS 110 (1.10x)"]])
        below = text.split("\n")[-1]
        self.assertNotIn("cutlass", below)
        self.assertIn("This book's levels: `any_shape`.", below)

    def test_of_an_exception_its_name_is_kept(self):
        self.assertEqual(languages.shortened("does not load: ImportError: cannot import name 'x' (/a/folder/tile"),
                         "does not load: ImportError")
        self.assertEqual(languages.shortened("not installed."), "not installed")

    def test_what_was_left_out_is_said_once_with_its_reason(self):
        document = self.document()
        document["comparisons"][0]["skipped"] = {"TileLang": "not installed", "cuTile": "no"}
        document["comparisons"].append({**document["comparisons"][0], "size": [8192] * 3})
        below = languages.speed_table(document).split("\n")[-1]
        self.assertTrue(below.endswith(" Left out: TileLang (GEMM): not installed."), below)

    def test_the_same_tile_counts_once_and_the_fastest_comes_first(self):
        def config(ms, ctas, shipped, **more):
            return {"config": "", "tile": [256, 256, 64], "hints": {"num_ctas": ctas}, "shipped": shipped} | (
                {"ms": ms} if ms else {"reason": "WRONG"}) | more
        entry = {"ladder": "gemm", "size": [4096] * 3, "variant": "",
                 "configs": [config(2.0, 1, True), config(1.0, 1, True), config(0.5, 2, True), config(None, 4, True)]}
        text = languages.tile_table(self.document(cutile=[entry]), "gemm", 4096)
        rows = [line.split("|") for line in text.split("\n")[2:4]]
        self.assertEqual([(row[2].strip(), row[5].strip()) for row in rows], [("2", "275"), ("1", "137")])
        self.assertIn("Did not run: 256 x 256 x 64 with 4 CTAs: WRONG", text)
        self.assertEqual(languages.tile_table(self.document(), "gemm", 4096), "")

    def test_causal_attention_has_half_the_work(self):
        full, causal = ({"ladder": "attention", "size": [1, 2, 4, 8], "variant": variant} for variant in ("full", "causal"))
        self.assertEqual(languages.flops(full), 4 * 8 * 2 * 16)
        self.assertEqual(languages.flops(causal), 4 * 8 * 2 * 10)


if __name__ == "__main__":
    unittest.main()
