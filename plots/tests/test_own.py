# SPDX-License-Identifier: MIT
"""Figures of one's own results, the bytes of every memory, the roof that binds, and the data sheets."""
import contextlib
import copy
import json
import re
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from cookbook_plots import book, devices, figures, memories, own, style
from cookbook_plots.results import Results

from .fixtures import Folder, said
from .test_plots import document


def h200_run():
    run = json.loads((book.ROOT / "plots/results/h200/chapter-3.json").read_text())["runs"][0]
    run["levels"] = run["levels"][:3]  # naive, tile (bank conflicts), padded
    return run


def on(run, device, **more):
    run = copy.deepcopy(run) | more
    run["device"] |= {"name": device}
    return run


class Own(Folder):
    def write(self, name, *runs):
        return self.file(name, {"schema": 1, "runs": runs})

    def call(self, *arguments, draw=False):
        """Status and text; the names drawn are in self.drawn. Without `draw`, each figure is made but not written."""
        self.drawn, self.figures = [], {}

        def save(figure, files, folder, png_folder, name, theme, digest):
            if theme.name == "light":
                self.drawn.append(name)
                self.figures[name] = {text.get_text() for text in figure.findobj(style.plt.Text)}
            style.plt.close(figure)

        with contextlib.ExitStack() as patches:
            if not draw:
                patches.enter_context(mock.patch.object(style, "save", save))
                patches.enter_context(mock.patch.dict(style.THEMES, {"light": style.THEMES["light"]}, clear=True))
            status, out, err = said(own.main, [*map(str, arguments), "--out", str(self.folder / "out")])
        return status, out + err

    def test_a_run_of_a_gpu(self):
        status, text = self.call(self.write("mine.json", h200_run()), draw=True)
        self.assertEqual(status, 0, text)
        self.assertEqual({file.name.removesuffix("-light.svg") for file in (self.folder / "out").glob("*-light.svg")},
                         {"chapter-3-transpose-ladder", "chapter-3-transpose-roofline"})
        self.assertRegex(text, r"tile: bound by L1 / shared: 9\d % of 3\d\.\d TB/s \(counted\)")
        svg = (self.folder / "out/chapter-3-transpose-roofline-light.svg").read_text()
        self.assertRegex(svg, r"bound by L1 / shared: 9\d % of 3\d\.\d TB/s \(counted\)")

    def test_two_gpus_are_overlaid_and_a_sheet_is_named(self):
        files = [self.write("a.json", h200_run()), self.write("b.json", on(h200_run(), "NVIDIA L4", roofs=None))]
        status, text = self.call(*files)
        self.assertEqual(status, 0, text)
        self.assertIn("chapter-3-transpose-compared", self.drawn)
        self.assertIn("chapter-3-transpose-compared-roofline", self.drawn)
        self.assertIn("roofs of the data sheet (L4)", text)
        notes = "\n".join(self.figures["chapter-3-transpose-l4-roofline"])
        self.assertIn("roofs: data sheet (L4), not measured", notes)
        self.assertIn("roof not measured: L2, L1 / shared", notes)

    def test_measured_roofs_win_over_a_sheet(self):
        measured = on(h200_run(), "NVIDIA L4", roofs=h200_run()["roofs"] | {"hbm_copy_gbps": 250}, ladder="other")
        files = [self.write("a.json", on(h200_run(), "NVIDIA L4", roofs=None)), self.write("chapter-0.json", measured)]
        status, text = self.call(*files)
        self.assertEqual(status, 0, text)
        self.assertNotIn("data sheet", text)
        self.assertIn("solid: measured, chapter-0.json", "\n".join(self.figures["chapter-3-transpose-roofline"]))
        # Also those that the book holds of this GPU.
        self.call(self.write("c.json", on(h200_run(), "NVIDIA H200", roofs=None)))
        self.assertIn("solid: measured, plots/results/h200/", "\n".join(self.figures["chapter-3-transpose-roofline"]))

    def test_the_run_that_measured_most_roofs_gives_them(self):
        def run(name, **roofs):
            known = dict.fromkeys(h200_run()["roofs"]) | roofs
            return SimpleNamespace(json=on(h200_run(), "NVIDIA L4", roofs=known), roofs_measured=True, file=Path(name))
        few, many = run("few.json", fp64_tflops=1), run("many.json", hbm_copy_gbps=2, l2_gbps=3)
        self.assertEqual(own.measured_roofs("NVIDIA L4", [few, many])[1], "measured, many.json")
        self.assertEqual(own.measured_roofs("NVIDIA L4", [many, few], "fp64_tflops")[1], "measured, few.json")
        self.assertEqual(own.measured_roofs("NVIDIA L4", [few, many], "fp32_tflops")[1], "measured, many.json")
        self.assertIsNone(own.measured_roofs("NVIDIA L5", [few, many]))
        # The book's chapter 0 knows what a file of this GPU does not.
        for one in (few, many):
            one.json["device"]["name"] = "NVIDIA H200"
        self.assertEqual(own.measured_roofs("NVIDIA H200", [few, many], "l2_gbps")[1], "measured, many.json")
        roofs, where = own.measured_roofs("NVIDIA H200", [few, many], "wgmma_bf16_tflops")
        self.assertIn("measured, plots/results/h200/", where)
        self.assertGreater(roofs["wgmma_bf16_tflops"], 100)

    def test_before_and_after_on_one_gpu(self):
        after = copy.deepcopy(h200_run())
        for level in after["levels"]:
            level["time_us"] = {key: value / 2 for key, value in level["time_us"].items()}
        self.call(self.write("before.json", h200_run()), self.write("after.json", after))
        texts = self.figures["chapter-3-transpose-compared"]
        self.assertTrue({"before:", "after:"} <= texts, texts)
        self.assertTrue(any(text.endswith("· 2.00x") for text in texts), texts)

    def test_what_the_simt_backend_counted(self):
        counted = h200_run() | {"backend": "simt", "roofs": None}
        for level in counted["levels"]:
            level |= {"time_us": None, "roof_fraction": None}
        status, text = self.call(self.write("simt.json", counted))
        self.assertEqual(status, 0, text)
        self.assertEqual(self.drawn, ["chapter-3-transpose-traffic", "chapter-3-transpose-ceilings"])
        self.assertIn("the SIMT backend counts and has no times", text)
        self.assertIn("NVIDIA H200 (measured, plots/results/h200/", text)
        self.assertTrue(any("by L1 / shared" in one for one in self.figures["chapter-3-transpose-ceilings"]))
        status, text = self.call(self.folder / "simt.json", "--gpu", "T4")
        self.assertIn("the roofs of T4 (data sheet (T4))", text)
        self.assertIn("roofs: data sheet (T4) · estimated, by clocks: L2, L1 / shared",
                      "\n".join(self.figures["chapter-3-transpose-ceilings"]))
        # Stores of 32 sectors per request: the naive level is not to look as good as the tiled one.
        naive = next(text for text in self.figures["chapter-3-transpose-ceilings"] if "by requests to L2, at most" in text)
        low, high = map(float, re.search(r"([\d.]+) by requests to L2, at most ([\d.]+)", naive).groups())
        self.assertLess(low, high / 2)
        for level in counted["levels"]:
            level |= {"counters": None, "identity": None}
        status, text = self.call(self.write("nothing.json", counted | {"ladder": "unknown"}))
        self.assertEqual((status, self.drawn), (0, []))
        self.assertIn("nothing to draw: no times", text)

    def test_a_level_that_reads_in_parts_is_not_as_good_as_one_that_does_not(self):
        run = next(run for run in own.read([book.ROOT / "plots/results/simt/chapter-1.json"]) if run.ladder == "copy")
        strided, coalesced = run.levels[:2]
        for level in (strided, coalesced):
            level.counted.values.update({f"global_store_{what}": 0 for what in ("sectors", "ideal_sectors")})  # it only reads
        amounts = {level.name: memories.moved(run, level) for level in (strided, coalesced)}
        self.assertGreater(memories.requested_of_l2(strided, amounts["strided"]), 3 * amounts["strided"]["l2"].bytes)
        self.assertIsNone(memories.requested_of_l2(coalesced, amounts["coalesced"]))

    def test_bad_input_is_one_line_and_2(self):
        self.file("text.json", "{")
        self.file("other.json", [1])
        empty = self.write("empty.json")
        broken = self.write("broken.json", {"backend": "cuda"})
        zero = h200_run()
        zero["problem"]["bytes"] = 0
        for arguments, expected in ((["none.json"], "no such file"), (["text.json"], "not JSON"),
                                    (["other.json"], "neither results of"), ([empty], "no run of a ladder"),
                                    ([broken], "not a result: KeyError"), ([self.write("zero.json", zero)], "bytes is 0"),
                                    ([self.write("good.json", h200_run()), "--gpu", "Voodoo"], "--gpu Voodoo: not known")):
            with self.subTest(expected=expected):
                status, text = self.call(*(self.folder / a if str(a).endswith(".json") else a for a in arguments))
                self.assertEqual((status, text.count("\n")), (2, 1), text)
                self.assertIn(expected, text)
        self.assertFalse((self.folder / "out").exists())


class Chapter1(Folder):
    def results(self, change=lambda run: None):
        """The run of a chapter whose results were changed so."""
        content = document("digest")
        change(content["runs"][0])
        file = self.file("h200/chapter-1.json", content)
        return Results(file.parent, book.Identities(["digest"])).headline[(1, "copy")]


class Memories(Chapter1):
    """The bytes of a level through each memory, and the roof that binds it."""

    def test_counted_bytes_and_what_they_are(self):
        run = self.results(lambda run: run["levels"][1]["counters"].update(
            global_load_sectors=1000, global_store_sectors=1000, shared_load_wavefronts=1000))
        scale = 8e6 / 64000  # the problem's bytes over those touched when traced
        first, second = (memories.moved(run, level) for level in run.levels)
        self.assertEqual(first["dram"], memories.Moved(8e6, memories.ONCE))
        self.assertEqual(first["l2"], memories.Moved(9000 * 32 * scale, memories.AT_MOST))  # L1 may deliver a part
        self.assertEqual(second["l2"], memories.Moved(2000 * 32 * scale, memories.COUNTED))  # each sector once
        self.assertEqual(second["shared"].bytes, (2000 * 32 + 1000 * 128) * scale)

    def test_ncus_bytes_go_before_counted_ones_but_know_no_shared_memory(self):
        run = self.results()
        run.levels[0].measured_bytes = {"dram": 9e6, "l2": 2e7, "l1": 1e6}
        found = memories.moved(run, run.levels[0])
        self.assertEqual([found[memory].origin for memory in ("dram", "l2", "shared")],
                         [memories.NCU, memories.NCU, memories.COUNTED])

    def test_the_roof_that_binds(self):
        run = self.results()
        level = run.levels[0]  # 20 us, 36 MB through L1
        for share, text in ((0.92, "bound by L2: 92 %"), (0.5, "no roof reached, nearest L2: 50 %"), (1.2, "asks L2 for 120 %")):
            level.measured_bytes = {"l2": share * 8000e9 * 20e-6}
            self.assertEqual(str(memories.binding(run, level)), f"{text} of 8.0 TB/s (ncu)")
        # What is an upper bound binds nothing, and a roof that was not measured is not invented.
        level.measured_bytes = {}
        self.assertNotIn("L2", str(memories.binding(run, level)))
        self.assertIsNone(memories.binding(run, level, roofs={}))
        self.assertEqual(memories.not_measured(run, {"hbm_copy_gbps": 1}), ["L2", "L1 / shared"])

    def test_scores_of_attention_grow_with_the_sequence(self):
        def attention(run):
            run["roof"] = "wgmma bf16"
            run["problem"].update(dims=["batch", "heads_q", "heads_kv", "seq_q", "seq_k", "head_dim"], flops=1e6,
                                  size=[2, 16, 16, 100, 100, 128], trace_size=[1, 4, 1, 10, 20, 64], bytes=1e6)
            run["levels"][0]["counters"]["distinct_bytes"] = 64000 + 12 * 4 * 10 * 20
        run = self.results(attention)
        self.assertEqual(memories.moved(run, run.levels[0]),
                         {"dram": memories.Moved(1e6 + 12 * 2 * 16 * 100 * 100, memories.ONCE)})
        self.assertEqual(memories.moved(run, run.levels[1])["dram"].bytes, 1e6)
        # Bytes that are counted once and that no GPU moves in the time of the level are not its bytes.
        time = run.levels[0].time()
        enough, too_few = ({"hbm_read_gbps": memories.moved(run, run.levels[0])["dram"].bytes / 1e3 / time * factor}
                           for factor in (1.1, 0.9))
        self.assertEqual(memories.binding(run, run.levels[0], roofs=enough).name, "device memory")
        self.assertEqual(memories.binding(run, run.levels[0], roofs=too_few).name, "wgmma bf16")
        # What all levels touch beside the problem's bytes does not grow with the scores.
        run.json["problem"]["trace_bytes"] = 1000
        self.assertEqual(memories.moved(run, run.levels[1])["dram"].bytes, 1e6)

    def test_dots_stand_at_their_true_intensity(self):
        run = self.results()
        with style.Theme("light") as theme:
            axes = figures.roofline(run, theme).axes[0]
            for level in run.levels:
                expected = {(round(x, 9), run.speed(level)) for _, x, _ in figures.marks_of(figures.Chart(run), level)}
                drawn = {(round(line.get_xdata()[0], 9), line.get_ydata()[0]) for line in axes.lines
                         if len(line.get_xdata()) == 1}
                self.assertLessEqual(expected, drawn)

    def test_numbers_are_pulled_apart(self):
        places = figures.spread({"a": 0, "b": 1, "c": 2, "d": 100}, 10)
        ordered = [places[key] for key in "abcd"]
        self.assertTrue(all(high - low >= 9.999 for low, high in zip(ordered, ordered[1:])), ordered)
        self.assertEqual(places["d"], 100)
        self.assertAlmostEqual(sum(ordered[:3]), 3)  # around where they were


class Bars(Chapter1):
    def test_no_line_runs_through_a_label(self):
        """The library's line at every place of the bars: it never crosses the text of one."""
        with style.Theme("light") as theme:
            for median in (2.15, 2.3, 2.6, 3.2, 18, 19.5, 21):
                times = {"median": median, "q1": median, "q3": median, "n": 9}
                figure = figures.ladder(self.results(lambda run: run["references"][0].update(time_us=times)), theme)
                axes, renderer = figure.axes[0], figure.canvas.get_renderer()
                lines = {axes.transData.transform((line.get_xdata()[0], 0))[0] for line in axes.lines
                         if not line.get_label().startswith("_")}
                labels = [text for text in axes.texts if text.get_text()[:1].isdigit()]
                self.assertEqual(len(labels), 2)
                for text in labels:
                    box = text.get_window_extent(renderer)
                    self.assertFalse([x for x in lines if box.x0 - 1 < x < box.x1 + 1], f"{text.get_text()}, {median} us")
                style.plt.close("all")


class Sheets(unittest.TestCase):
    def test_every_gpu_of_a_student_has_one_with_its_source(self):
        names = {"Tesla T4": "T4", "NVIDIA L4": "L4", "NVIDIA A10G": "A10G", "NVIDIA A100-SXM4-40GB": "A100 40GB",
                 "NVIDIA A100-SXM4-80GB": "A100", "NVIDIA A100 80GB PCIe": "A100 80GB PCIe",
                 "NVIDIA GeForce RTX 3090": "RTX 3090", "NVIDIA GeForce RTX 4090": "RTX 4090",
                 "NVIDIA GeForce RTX 5090": "RTX 5090", "NVIDIA H100 80GB HBM3": "H100 SXM", "NVIDIA H200": "H200",
                 "NVIDIA B200": "B200"}
        for device, name in names.items():
            self.assertEqual(devices.sheet_of(device).name, name)
        self.assertEqual({sheet.name for sheet in devices.sheets()}, set(names.values()))
        for sheet in devices.sheets():
            self.assertIn("NVIDIA", sheet.source)
            self.assertEqual(set(sheet.tensor), {"bf16", "fp16", "tf32", "int8", "fp8"})
            self.assertEqual(devices.sheet_of(sheet.name), sheet)
        # Other cards of nearly the same name have other peaks.
        for device in ("NVIDIA H100 PCIe", "NVIDIA GeForce RTX 4090 D", "NVIDIA A10", "NVIDIA L40S", "NVIDIA GB200x"):
            self.assertIsNone(devices.sheet_of(device), device)


if __name__ == "__main__":
    unittest.main()
