# SPDX-License-Identifier: MIT
"""Chapter 11's own tables and figure."""
import unittest
from pathlib import Path

from cookbook_plots import autotuning, figures, style
from cookbook_plots.results import Level, Run

from .fixtures import Folder

KERNEL = {"kernel": "gemm", "device": "NVIDIA H200", "date": "2026-01-01T00:00:00Z", "shapes": 3,
          "searchers": {"random": {"median_looks": 3, "arrived": 0.5, "slowdown": [1.5, 1.1, 1.0]},
                        "model": {"median_looks": None, "arrived": 0.25, "slowdown": [1.2, 1.2]}}}

JUDGED = {"operator": "gemm", "device": "NVIDIA H200", "shapes": [
    {"extents": [128, 128, 64], "layout": "NN", "cublas_us": 4.0, **{way: {"candidate": name, "us": us} for way, name, us in (
        ("fastest", "whole_64x64", 2.0), ("one_kernel", "persistent_128x256", 8.0), ("arithmetic", "whole_64x64", 2.0),
        ("recording", "skinny", 3.0), ("both", "whole_64x64", 2.0))}},
    {"extents": [4096, 4096, 4096], "layout": "NT", "cublas_us": 8.0, **{way: {"candidate": name, "us": us} for way, name, us in (
        ("fastest", "stream_k_128x256", 8.0), ("arithmetic", "ping_pong_64x256", 8.08), ("both", "ping_pong_64x256", 8.2))}}]}


def run(size, over_fixed, over_library):
    levels = [{"name": name, "status": "ok", "time_us": {"median": 10.0}} for name in autotuning.LEVELS]
    levels[2]["vs_previous"] = {"ratio": over_fixed, "verdict": "faster"}
    levels[2]["vs_reference"] = {"name": "cuBLAS", "ratio": over_library}
    return Run(Path("f.json"), {"ladder": "gemm", "problem": {"size": [size] * 3}},
               [Level(index, level) for index, level in enumerate(levels)])


class Autotuning(Folder):
    def test_geometric_mean_and_worst_case(self):
        text = autotuning.proof_table([run(512, 2.0, 0.5), run(1024, 0.98, 2.0)])
        self.assertIn("1.400x the best fixed configuration (geometric mean; worst 0.980x) and 1.000x cuBLAS", text)
        self.assertIn("| 512 x 512 x 512 |", text)

    def test_one_size_proves_nothing(self):
        self.assertEqual(autotuning.proof_table([run(512, 2.0, 0.5)]), "")

    def test_searchers_of_another_gpu_are_not_shown(self):
        self.assertEqual(autotuning.searchers("h200", self.folder), [])
        self.file("chapters/11_autotuning/searchers.json", [KERNEL])
        self.assertEqual(len(autotuning.searchers("h200", self.folder)), 1)
        self.assertEqual(autotuning.searchers("b200", self.folder), [])

    def test_a_searcher_that_rarely_arrives_says_never(self):
        text = autotuning.searchers_table([KERNEL])
        self.assertIn("| random | 3 (50 %) |", text)
        self.assertIn("| model | never (25 %) |", text)

    def test_the_figure_has_a_curve_per_searcher(self):
        with style.Theme("light") as theme:
            figure = figures.searchers_figure([KERNEL], theme)
            self.assertEqual(len(figure.axes[0].lines), 3)  # and the 2 % line

    def test_what_each_way_of_choosing_costs(self):
        text = autotuning.choices_table(JUDGED)
        self.assertIn("| one kernel for all shapes | 1 | 4.000x | 0 | 4.00x |", text)
        self.assertIn("| arithmetic | 2 | 1.005x | 2 | 1.01x |", text)
        self.assertIn("| arithmetic, corrected by the recording | 2 | 1.012x | 1 | 1.02x |", text)

    def test_choices_of_another_gpu_are_not_shown(self):
        self.assertIsNone(autotuning.choices("b200"))
        self.assertIsNone(autotuning.choices("h200", Path("/nonexistent")))

    def test_every_candidate_belongs_to_a_family(self):
        names = {shape[way]["candidate"] for shape in autotuning.choices("h200")["shapes"]
                 for way in ("fastest", *autotuning.WAYS) if way in shape}
        self.assertEqual({autotuning.family(name) for name in names}, set(autotuning.FAMILIES))

    def test_a_choice_that_is_behind_is_hollow(self):
        with style.Theme("light") as theme:
            shapes, losses = figures.choices_figure(JUDGED, theme).axes
            points = {kind.get_label(): len(kind.get_offsets()) for kind in shapes.collections}
            self.assertEqual(points["a tile per block"], 1)
            self.assertEqual(points["persistent blocks"], 0)  # 8.2 is over 2 % behind 8.0
            self.assertEqual(len(losses.lines), len(autotuning.WAYS))


if __name__ == "__main__":
    unittest.main()
