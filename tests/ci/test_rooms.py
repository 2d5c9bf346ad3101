# SPDX-License-Identifier: MIT
"""The map of the rooms: true of this tree, and false of one with a planted include."""
import json
import unittest
from pathlib import Path

import rooms
from tree import Tree

ROOT = Path(__file__).resolve().parents[2]


class Map(unittest.TestCase):
    def test_the_map_is_true_and_the_page_shows_it(self):
        read = rooms.read()
        found, homeless, lived_in = rooms.dependencies(rooms=read)
        self.assertGreater(len(found), 20)
        self.assertEqual(rooms.problems(read, found, homeless, lived_in), [])
        page = (ROOT / "docs/architecture.md").read_text()
        self.assertEqual(rooms.with_map(page, rooms.map_text(read, found, lived_in)), page)


class Planted(Tree):
    def setUp(self):
        super().setUp()
        self.git("init", "-q")
        self.rooms = [{"room": "top", "holds": "", "includes": ["common/a", "common/a/b"]},
                      {"room": "common/a", "holds": "", "includes": ["common/a/b"]},
                      {"room": "common/a/b", "holds": "", "includes": []},
                      {"room": "common/soon", "holds": "", "includes": ["top"], "expected": True}]
        self.write("common/a/b/low.hpp", "")
        self.write("common/a/mid.hpp", '#include "common/a/b/low.hpp"\n')
        self.write("top/main.cpp", '#include "common/a/mid.hpp"\n#include "beside.hpp"\n#include "common/a/b/low.hpp"\n')
        self.write("top/beside.hpp", "")

    def problems(self):
        self.write("docs/rooms.json", json.dumps({"rooms": self.rooms}))
        read = rooms.read(self.root)
        return rooms.problems(read, *rooms.dependencies(self.root, read))

    def test_nothing_is_wrong(self):
        self.assertEqual(self.problems(), [])

    def test_an_include_upwards(self):
        self.write("common/a/b/low.hpp", '\n#include "common/a/mid.hpp"\n')
        self.assertEqual(self.problems(), ["common/a/b/low.hpp:2: common/a/b includes common/a, which docs/rooms.json "
                                           "does not allow"])
        self.rooms[2]["includes"] = ["common/a"]
        self.assertEqual(self.problems(), ["common/a/b: common/a stands above it; give the reason under `also`"])
        self.rooms[2] |= {"includes": [], "also": {"common/a": "why"}}
        self.assertEqual(self.problems(), [])

    def test_an_entry_that_nothing_uses(self):
        self.write("common/a/mid.hpp", "")
        self.assertEqual(self.problems(), ["common/a: nothing in it includes common/a/b, which docs/rooms.json allows"])
        self.rooms[1]["includes"] = ["common/c"]
        self.assertEqual(self.problems(), ["common/a: includes common/c, which is no room"])

    def test_a_source_in_no_room_and_a_room_without_one(self):
        self.write("more/a.py", "")
        self.rooms[3]["expected"] = False
        self.assertEqual(self.problems(), ["more/a.py: in no room", "common/soon: a room without a source"])

    def test_an_import(self):
        self.rooms.append({"room": "plots", "holds": "", "includes": []})
        self.write("plots/figures/__init__.py", "")
        self.write("plots/draw.py", "import json\nfrom figures import x\n")
        self.assertEqual(self.problems(), [])
        self.write("top/page.py", "def f():\n    from figures import x\n")
        self.assertEqual(self.problems(), ["top/page.py:2: top includes plots, which docs/rooms.json does not allow"])
        self.write("top/page.py", "")
        self.write("top/figures.py", "import figures\n")  # not itself
        self.assertEqual(self.problems(), ["top/figures.py:1: top includes plots, which docs/rooms.json does not allow"])


if __name__ == "__main__":
    unittest.main()
