# SPDX-License-Identifier: MIT
"""A level that is missing in tests/skips may skip any case: it counts as a reader's. So every level of the book is
listed there, under the name that it has today."""
import json
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def listed(chapter):
    lines = (ROOT / f"tests/skips/chapter_{chapter}.txt").read_text().splitlines()
    return {line.split(" ")[0] for line in lines if not line.startswith("#")}


class Skips(unittest.TestCase):
    def test_every_level_is_listed_by_its_name(self):
        for file in sorted((ROOT / "plots/results/simt").glob("chapter-*.json")):
            with self.subTest(file=file.name):
                runs = json.loads(file.read_text())["runs"]
                names = {f"{run['ladder']}/{level['name']}" for run in runs for level in run["levels"]}
                self.assertEqual(listed(file.stem.split("-")[1]), names)


if __name__ == "__main__":
    unittest.main()
