# SPDX-License-Identifier: MIT
"""A level that is missing in tests/skips may skip any case, and one that is missing in tests/launches may launch
anything: it counts as a reader's; one that is missing in docs/levels is not on the site. So every level of the book is
listed there, under the name that it has today."""
import json
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def listed(file):
    lines = (ROOT / "tests" / file).read_text().splitlines()
    return {line.split(" ")[0] for line in lines if not line.startswith("#")}


class Skips(unittest.TestCase):
    def test_every_level_is_listed_by_its_name(self):
        for file in sorted((ROOT / "plots/results/simt").glob("chapter-*.json")):
            with self.subTest(file=file.name):
                runs = json.loads(file.read_text())["runs"]
                names = {f"{run['ladder']}/{level['name']}" for run in runs for level in run["levels"]}
                number = file.stem.split("-")[1]
                self.assertEqual(listed(f"skips/chapter_{number}.txt"), names)
                self.assertEqual(listed(f"launches/chapter_{number}.txt"), names)
                levels = json.loads((ROOT / f"docs/levels/chapter_{number}.json").read_text())
                self.assertEqual({f"{level['ladder']}/{level['name']}" for level in levels}, names)

    def test_every_level_of_a_capstone_has_its_launches_listed(self):
        for folder in sorted(path.parent for path in (ROOT / "capstones").glob("*/ladder.hpp")):
            with self.subTest(capstone=folder.name):
                names = {re.sub(r"level_\d+_", "", path.stem) for path in folder.glob("level_*.cuh")}
                found = listed(f"launches/capstone_{folder.name}.txt")
                self.assertEqual({name.split("/")[1] for name in found}, names)

    def test_every_ladder_of_the_library_is_listed(self):
        for folder in sorted(path.parent for path in (ROOT / "library").glob("*/ladder.hpp")):
            with self.subTest(folder=folder.name):
                found = listed(f"launches/capstone_{folder.name}.txt")
                self.assertTrue(found)
                self.assertEqual(listed(f"skips/capstone_{folder.name}.txt"), found)


if __name__ == "__main__":
    unittest.main()
