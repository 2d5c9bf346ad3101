# SPDX-License-Identifier: MIT
"""Texts that no generator writes: figures quoted from a recorded output, and the notebook's commands."""
import json
import re
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SIDEBARS = "plots/results/h200/sidebars/"

# Chapter, figure as its README quotes it, file, how its line in the file begins; the figure is the line's last number,
# rounded.
QUOTES = [
    ("08_persistent", "678", "chapter-8-grouped.txt", "one persistent launch"),
    ("08_persistent", "552", "chapter-8-grouped.txt", "a launch a product"),
    ("08_persistent", "1,362", "chapter-8-fp8.txt", "FP8, this kernel"),
    ("08_persistent", "773", "chapter-8-fp8.txt", "bf16, the same kernel"),
    ("08_persistent", "791", "chapter-8-fp8.txt", "bf16, chapter 8, any_shape"),
]


def says(text, quoted, line):
    """Whether the last number of the first line that begins so is the quoted one, rounded."""
    rows = [row for row in text.splitlines() if row.strip().startswith(line)]
    numbers = re.findall(r"\d+(?:\.\d+)?", rows[0]) if rows else []
    return bool(numbers) and int(float(numbers[-1]) + 0.5) == int(quoted.replace(",", ""))


class Quotes(unittest.TestCase):
    def test_a_quoted_figure_is_in_the_recorded_output(self):
        for chapter, quoted, file, line in QUOTES:
            with self.subTest(file=file, quoted=quoted):
                readme = (ROOT / "chapters" / chapter / "README.md").read_text()
                self.assertIn(SIDEBARS + file, readme)
                self.assertIn(quoted, readme)
                self.assertTrue(says((ROOT / SIDEBARS / file).read_text(), quoted, line))

    def test_another_figure_is_not(self):
        text = "  one persistent launch                677.5 TFLOP/s \n"
        self.assertTrue(says(text, "678", "one persistent launch"))
        self.assertFalse(says(text, "679", "one persistent launch"))
        self.assertFalse(says(text, "678", "a launch a product"))

    def test_every_recorded_output_is_cited(self):
        texts = "".join(file.read_text() for file in [*ROOT.glob("chapters/*/README.md"), *ROOT.glob("docs/*.md")])
        files = sorted((ROOT / SIDEBARS).glob("*.txt"))
        self.assertTrue(files)
        for file in files:
            self.assertIn(SIDEBARS + file.name, texts, "recorded, and no text says so")


class Notebook(unittest.TestCase):
    def test_its_commands_are_verbs_of_run(self):
        cells = json.loads((ROOT / "notebooks/cookbook.ipynb").read_text())["cells"]
        code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        commands = re.findall(r"^!\./run ?(\S*)", code, flags=re.MULTILINE)
        self.assertIn("", commands)
        self.assertIn("test", commands)
        known = set(re.findall(r"^\./run (\w+)", subprocess.run(["./run", "help"], cwd=ROOT, capture_output=True, text=True,
                                                                 check=True).stdout, flags=re.MULTILINE))
        chapters = set(re.findall(r"cookbook_chapter\((\d+) ", (ROOT / "chapters/CMakeLists.txt").read_text()))
        for command in commands:
            self.assertTrue(command in {"", "--print-backend"} | known | chapters, command)
        for source in ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]:
            plain = "\n".join(line for line in source.split("\n") if not line.startswith("!"))
            compile(plain, "cell", "exec")


if __name__ == "__main__":
    unittest.main()
