# SPDX-License-Identifier: MIT
"""The bound on what a level includes: kept in this tree, and broken by planted includes."""
import unittest

import include_bound
from tree import Tree


class Levels(unittest.TestCase):
    def test_every_level_keeps_the_bound(self):
        self.assertGreater(len(include_bound.counts()), 45)
        self.assertEqual(include_bound.problems(), [])


class Planted(Tree):
    LEVEL = "chapters/08_b/level_1_x.cuh"

    def setUp(self):
        super().setUp()
        for i in range(12):  # a chain of twelve files in two other chapters
            after = f'#include "chapters/0{6 + (i + 1) % 2}_a/f{i + 1}.hpp"\n' if i < 11 else ""
            self.write(f"chapters/0{6 + i % 2}_a/f{i}.hpp", after)
        self.write("common/c.hpp", "")
        self.includes("chapters/06_a/f0.hpp", "common/c.hpp")

    def includes(self, *names):
        self.write(self.LEVEL, "".join(f'#include "{name}"\n' for name in names))

    def test_twelve_files_of_two_chapters(self):
        self.assertEqual(include_bound.counts(self.root), {self.LEVEL: (12, 2)})
        self.assertEqual(include_bound.problems(self.root), [])

    def test_a_thirteenth_file(self):
        self.write("chapters/08_b/own.cuh", "")
        self.includes("chapters/06_a/f0.hpp", "own.cuh")  # beside it
        self.assertEqual(include_bound.problems(self.root),
                         [f"{self.LEVEL}: includes 13 files of chapters, of 2 others; at most 12 of 2"])

    def test_a_third_chapter(self):
        self.write("chapters/05_c/p.hpp", "")
        self.write("chapters/06_a/g.hpp", '#include "chapters/05_c/p.hpp"\n#include "chapters/07_a/f11.hpp"\n')
        self.includes("chapters/06_a/g.hpp")
        self.assertEqual(include_bound.problems(self.root), [f"{self.LEVEL}: includes 3 files of chapters, of 3 others; at most 12 of 2"])


if __name__ == "__main__":
    unittest.main()
