# SPDX-License-Identifier: MIT
"""The modules of the plots import one another in layers."""
import ast
import graphlib
import unittest
from pathlib import Path

PACKAGES = [Path(__file__).resolve().parents[1] / name for name in ("cookbook_plots", "contestants")]


def imports(text, modules):
    """The modules beside it that a module imports, also within functions."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            names = [node.module] if node.module else [alias.name for alias in node.names]
            yield from modules & set(names)


class Layers(unittest.TestCase):
    def test_imports_form_no_circle(self):
        for package in PACKAGES:
            files = {file.stem: file.read_text() for file in package.glob("*.py")}
            self.assertGreater(len(files), 5)
            order = graphlib.TopologicalSorter({name: set(imports(text, set(files))) for name, text in files.items()})
            self.assertEqual(len(list(order.static_order())), len(files))

    def test_a_circle_within_a_function_is_found(self):
        files = {"a": "from . import b\n", "b": "def f():\n    from .a import x\n"}
        with self.assertRaises(graphlib.CycleError):
            graphlib.TopologicalSorter({name: set(imports(text, set(files))) for name, text in files.items()}).prepare()


if __name__ == "__main__":
    unittest.main()
