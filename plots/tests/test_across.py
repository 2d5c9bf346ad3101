# SPDX-License-Identifier: MIT
"""docs/gpus.md: what differs between two GPUs, and nothing else."""
import copy
import unittest

from cookbook_plots import across, book
from cookbook_plots.results import Results
from .fixtures import Folder
from .test_plots import document, not_explained


class Across(Folder):
    def results(self, name, run):
        self.file(f"{name}/chapter-1.json", {"schema": 1, "runs": [run]})
        return Results(self.folder / name, book.Identities([]))

    def text(self, change):
        """The page of a GPU and one on which the run is changed by `change`, without its first line."""
        run = document("")["runs"][0]
        other = copy.deepcopy(run)
        change(other)
        text = across.text([self.results("h200", run), self.results("h100", other)], [])
        return text.partition("\n\n")[2]

    def test_equal_results_differ_nowhere(self):
        text = self.text(lambda run: None)
        self.assertEqual(text.count("\n\nNone."), 4, text)
        self.assertIn("| HBM copy, GB/s |", text)
        self.assertNotIn("0.5", text)

    def test_a_roof_a_step_a_limit_and_a_claim_that_differ_are_named(self):
        def change(run):
            run["roofs"]["hbm_copy_gbps"] /= 2
            run["levels"][0]["time_us"]["median"] /= 9  # no longer far from its roof
            level = run["levels"][1]
            level["vs_previous"] |= {"ratio": 1.01, "verdict": "same"}
            level["claims"].append({"id": "", "text": "time: at least 1.3x the previous level", "holds": None,
                                    "checked_by": "cuda", "measured": "1.010 here; 1.3 claimed on H200"})
        text = self.text(change)
        self.assertRegex(text, r"\| HBM copy, GB/s \|.*\| 0\.50 \|")
        name = f"`{document('')['runs'][0]['levels'][1]['name']}`"
        self.assertRegex(text, rf"\| 1 \| `copy` \| {name} \| [\d.]+x, faster \| 1\.010x, same \|")
        self.assertRegex(text, rf"{name} \| time: at least 1\.3x the previous level \| 1\.010 \|")
        self.assertRegex(text, r"\| 1 \| `copy` \| `strided` \| device memory, [\d.]+ % \| device memory, [\d.]+ % \|")
        self.assertEqual(text.count("\n\nNone."), 1, text)  # no chapter is listed

    def test_more_than_100_percent_is_explained_below_the_table(self):
        def change(run):
            run["levels"][0]["time_us"]["median"] /= 12
        text = self.text(change)
        self.assertRegex(text, r"\| device memory, 1[1-9]\d % \|")
        self.assertEqual(not_explained(text), [])
        self.assertEqual(len(not_explained(text.replace("Above 100 %", ""))), 1)

    def test_another_size_is_not_compared(self):
        def change(run):
            run["problem"]["size"] = [7]
            run["levels"][1]["vs_previous"] |= {"verdict": "same"}
        self.assertEqual(self.text(change).count("\n\nNone."), 4)


if __name__ == "__main__":
    unittest.main()
