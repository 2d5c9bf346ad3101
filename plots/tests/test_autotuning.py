# SPDX-License-Identifier: MIT
"""Chapter 11's own tables and figure."""
import json
import tempfile
import unittest
from pathlib import Path

from cookbook_plots import autotuning, figures, style
from cookbook_plots.results import Level, Run

KERNEL = {"kernel": "gemm", "device": "NVIDIA H200", "date": "2026-01-01T00:00:00Z", "shapes": 3,
          "searchers": {"random": {"median_looks": 3, "arrived": 0.5, "slowdown": [1.5, 1.1, 1.0]},
                        "model": {"median_looks": None, "arrived": 0.25, "slowdown": [1.2, 1.2]}}}


def run(size, over_fixed, over_library):
    levels = [{"name": name, "status": "ok", "time_us": {"median": 10.0}} for name in autotuning.LEVELS]
    levels[2]["vs_previous"] = {"ratio": over_fixed, "verdict": "faster"}
    levels[2]["vs_reference"] = {"name": "cuBLAS", "ratio": over_library}
    return Run(Path("f.json"), {"ladder": "gemm", "problem": {"size": [size] * 3}},
               [Level(index, level) for index, level in enumerate(levels)])


class Autotuning(unittest.TestCase):
    def test_geometric_mean_and_worst_case(self):
        text = autotuning.proof_table([run(512, 2.0, 0.5), run(1024, 0.98, 2.0)])
        self.assertIn("1.400x the best fixed configuration (geometric mean; worst 0.980x) and 1.000x cuBLAS", text)
        self.assertIn("| 512 x 512 x 512 |", text)

    def test_one_size_proves_nothing(self):
        self.assertEqual(autotuning.proof_table([run(512, 2.0, 0.5)]), "")

    def test_searchers_of_another_gpu_are_not_shown(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "chapters/11_autotuning/searchers.json"
            self.assertEqual(autotuning.searchers("h200", Path(folder)), [])
            file.parent.mkdir(parents=True)
            file.write_text(json.dumps([KERNEL]))
            self.assertEqual(len(autotuning.searchers("h200", Path(folder))), 1)
            self.assertEqual(autotuning.searchers("b200", Path(folder)), [])

    def test_a_searcher_that_rarely_arrives_says_never(self):
        text = autotuning.searchers_table([KERNEL])
        self.assertIn("| random | 3 (50 %) |", text)
        self.assertIn("| model | never (25 %) |", text)

    def test_the_figure_has_a_curve_per_searcher(self):
        with style.Theme("light") as theme:
            figure = figures.searchers_figure([KERNEL], theme)
            self.assertEqual(len(figure.axes[0].lines), 3)  # and the 2 % line


if __name__ == "__main__":
    unittest.main()
