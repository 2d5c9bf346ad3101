# SPDX-License-Identifier: MIT
"""Figures and report of a capstone, from results like the book's."""
import copy
import json
import re
import subprocess
import unittest
from pathlib import Path
from unittest import mock

from cookbook_plots import book, capstone, own, pdf, results, written

from .fixtures import Folder, said

LEVELS = ("naive", "coalesced")


def timed_run():
    """A run of a capstone on a GPU: that of chapter 1 under other names."""
    run = json.loads((book.ROOT / "plots/results/h200/chapter-1.json").read_text())["runs"][0]
    run |= {"chapter": None, "capstone": "mine", "ladder": "mine"}
    run["levels"] = run["levels"][:2]
    for level, name in zip(run["levels"], LEVELS):
        level["name"] = name
    return run


def counted_run():
    """The same without a GPU."""
    run = timed_run() | {"backend": "simt", "roofs": None, "roofs_after": None, "references": [], "clocks": None}
    for level in run["levels"]:
        level |= {"time_us": None, "time_hot_us": None, "gbps": None, "roof_fraction": None, "vs_previous": None,
                  "vs_reference": None}
        for claim in level["claims"]:
            if claim["checked_by"] == "cuda":
                claim |= {"holds": None, "measured": None}
    return run


class Capstone(Folder):
    def setUp(self):
        super().setUp()
        self.folder = self.folder / "mine"
        (self.folder / "results").mkdir(parents=True)

    def write(self, name, *runs):
        self.file(f"results/{name}", {"schema": 1, "runs": runs})

    def call(self, verb):
        with mock.patch.object(pdf.shutil, "which", return_value=None):
            return said(capstone.main, [verb, str(self.folder)])

    def report(self):
        self.assertEqual(self.call("report")[::2], (0, ""))
        return (self.folder / "report.html").read_text()

    def drawn(self):
        status, out, err = self.call("plots")
        self.assertEqual((status, err), (0, ""))
        return sorted({file.stem.rsplit("-", 1)[0] for file in (self.folder / "figures").glob("*.svg")}), out

    def test_a_gpu_s_results_give_every_figure_and_only_in_the_capstone(self):
        self.write("gpu.json", timed_run())
        names, _ = self.drawn()
        self.assertEqual(names, ["mine-ladder", "mine-roofline", "mine-traffic"])
        self.assertEqual(sorted(file.name for file in self.folder.iterdir()), ["figures", "results"])
        self.assertIn("Capstone mine · mine", (self.folder / "figures/mine-ladder-light.svg").read_text())

    def test_a_unit_of_its_own_is_in_the_figures_and_the_report(self):
        run = timed_run()
        run |= {"roof": "stated roof", "own_gops": 2000.0}
        run["problem"] |= {"operation": "key", "flops": run["problem"]["bytes"] / 8}
        for level in run["levels"]:
            level["roof_fraction"] = run["problem"]["flops"] / 1e3 / level["time_us"]["median"] / 2000
        self.write("gpu.json", run)
        names, _ = self.drawn()
        self.assertEqual(names, ["mine-ladder", "mine-traffic"])  # no roofline: neither axis would be its own
        self.assertIn("Gkey/s", (self.folder / "figures/mine-ladder-light.svg").read_text())
        page = self.report()
        self.assertIn("roof: stated roof 2,000 Gkey/s", page)
        self.assertIn("<th>Gkey/s</th>", page)
        file = self.folder / "results/gpu.json"  # ./run plots FILE draws none, either
        drawn, _ = own.plan([results.read_run(file, run, book.Identities([]))])
        self.assertEqual([kind for kind, _ in drawn.values()], ["ladder"])
        counted = run | {"levels": [level | {"time_us": None} for level in run["levels"]]}
        drawn, _ = own.plan([results.read_run(file, counted, book.Identities([]))])
        self.assertNotIn("ceilings", [kind for kind, _ in drawn.values()])
        del run["own_gops"]
        self.write("gpu.json", run | {"own_gops": None})  # the ladder does not state it
        self.assertNotIn("roof: stated roof", self.report())

    def test_three_sizes_give_a_sweep(self):
        runs = []
        for extent in (1 << 20, 1 << 24, 1 << 28):
            runs.append(timed_run())
            runs[-1]["problem"] |= {"size": [extent], "bytes": 8 * extent}
        self.write("gpu.json", *runs)
        self.assertIn("mine-sweep", self.drawn()[0])

    def test_without_a_gpu_there_is_the_traffic_and_no_time(self):
        self.write("simt.json", counted_run())
        names, out = self.drawn()
        self.assertEqual(names, ["mine-ceilings", "mine-traffic"])
        self.assertIn("No GPU has timed it", out)
        page = self.report()
        self.assertIn("mine: no GPU has timed it", page)
        self.assertIn("was not checked", page)
        self.assertNotIn("GB/s", page.split("<svg")[0])
        self.assertIn("An estimate: no GPU has timed this ladder", page)

    def test_the_whole_readme_is_in_the_report_and_no_code_of_it(self):
        self.write("simt.json", counted_run())
        questions = written.QUESTIONS.read_text()
        self.file("own.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>")
        self.file("../secret.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>")
        self.file("README.md", questions.replace("Every number that you", "Mine.\n\n"
                  "* **bold**, `a < b`\n\n| level | n |\n|---|---:|\n| `x` | 3 |\n\n```cuda\nif (a < b) <b>\n```\n\n"
                  "<script>alert(1)</script> <img src=x onerror=alert(1)> [in](javascript:alert(1)) [out](a.cuh)\n"
                  "![own](own.svg) ![out](../secret.svg) ![web](https://a.b/c.png)\n\nEvery number that you"))
        page = self.report()
        for expected in ("<h2>5. What is still unexplained?</h2>", "<strong>bold</strong>, <code>a &lt; b</code>",
                         "<td><code>x</code></td>", "if (a &lt; b) &lt;b&gt;\n</code></pre>", '<a href="a.cuh">out</a>',
                         '<img src="data:image/svg+xml;base64,', "[no picture ../secret.svg in this folder",
                         "[no picture https://a.b/c.png in this folder", ">0</td>\n<td></td>"):
            self.assertIn(expected, page)
        for absent in ("<script", "<img src=x", 'href="javascript', "with what you have ruled out", "capstone_name"):
            self.assertNotIn(absent, page)
        self.assertEqual(page.count("Not answered."), 3)  # 1, 3 and 4; of 2 there is a table
        self.assertEqual(page.count("<img"), 1)

    def test_bytes_asked_for_are_those_of_the_ladder_and_per_byte_that_the_problem_needs(self):
        run = counted_run()
        run["problem"] |= {"trace_size": [1024], "trace_bytes": 8192}
        counters = {"global_load_bytes": 4096, "global_load_requests": 32, "global_load_sectors": 1024, "async_store_bytes": 8192,
                    "global_load_ideal_sectors": 128, "distinct_bytes": 4096}
        run["levels"][0] |= {"counters": counters}
        run["levels"][1] |= {"counters": counters | {"distinct_bytes": 64}, "status": "mismatch"}  # reached little
        self.write("simt.json", run)
        page = self.report()
        self.assertIn("1.5 bytes asked for per byte needed; 4 bytes of sectors per byte needed", page)
        del run["problem"]["trace_bytes"]  # older results: what a right level touches
        self.write("simt.json", run)
        self.assertIn("3 bytes asked for per byte needed; 8 bytes of sectors per byte needed", self.report())

    def test_the_lines_are_counted_beside_their_source_and_how_it_was_run_is_said(self):
        level = self.file("level_0_naive.cuh", "// one\nint a = b < c;\n")
        run = counted_run()
        for each in run["levels"]:
            each["identity"] = {"code": None, "tokens": book.token_hash(level)}
        self.write("simt.json", run)
        self.assertIn("No run counted them", self.report())
        lines = copy.deepcopy(run) | {"backend": "simt-traced", "date": "2030-01-01T00:00:00Z", "commit": "b00c"}
        lines["levels"][0]["lines"] = [{"kernel": "k", "file": "level_0_naive.cuh", "line": 2, "memory": "global",
                                        "operation": "load", "buffer": "in", "bytes_per_lane": 4, "requests": 2, "lanes": 64,
                                        "sectors": 64, "ideal_sectors": 8, "wavefronts": 0, "ideal_wavefronts": 0, "bytes": 256}]
        self.write("lines.json", lines)
        page = self.report()
        self.assertIn("global load of <code>in</code>, 4 B per lane<br><code class=\"source\">int a = b &lt; c;</code>", page)
        self.assertIn('<td class="number">32.00</td><td class="number">4.00</td><td class="number">256</td>', page)
        self.assertNotIn("b00c", page)  # the run that checked at all sizes goes before the one that counted lines
        self.assertIn(f"./run {self.folder} --size", page)
        self.assertIn("in no git repository", page)
        subprocess.run(["git", "init", "-q", self.folder], check=True)
        self.assertIn("nothing is committed yet", self.report())
        git = ["git", "-C", self.folder, "-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run([*git, "add", "level_0_naive.cuh"], check=True)
        subprocess.run([*git, "commit", "-qm", "a"], check=True)
        commit = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
        self.assertIn(f"Commit of the capstone: {commit}.", self.report())
        level.write_text("// two\nint a = b < c;\n")
        self.assertIn(f"{commit}, and changes since that are not committed", self.report())

    def test_the_report_has_prediction_and_measurement_of_every_level(self):
        run = timed_run()
        run["levels"][1]["expect"] = "an eighth of the traffic, a < b & c"
        faster = run["levels"][1]["vs_previous"]["ratio"]
        self.write("gpu.json", run)
        page = self.report()
        for expected in ("<h1>Capstone mine</h1>", "an eighth of the traffic, a &lt; b &amp; c", "cudaMemcpy",
                         f"{faster:.2f} times the speed of the level before", "8 bytes of sectors per byte needed",
                         "sectors per request = 32"):
            self.assertIn(expected, page)
        self.assertEqual(page.count("<svg"), 3)
        for name in LEVELS:
            self.assertIn(f"· <code>{name}</code></th>", page)  # its claims

    def test_more_than_the_roof_is_explained_below_the_table(self):
        run = timed_run()
        self.write("gpu.json", run)
        self.assertNotIn("noise, because", self.report())
        run["levels"][1]["roof_fraction"] = 1.02
        self.write("gpu.json", run)
        self.assertIn("101 to 103 %: noise, because", self.report().split("102 %")[1].split("<h2>")[0])

    def test_what_is_unexplained_is_listed(self):
        run = timed_run()
        run["levels"][1]["claims"][0] |= {"holds": False, "measured": "31"}
        run["levels"][0]["findings"] = ["race: here"]
        run["levels"][1]["roof_fraction"] = 0.5
        self.write("gpu.json", run)
        page = self.report().split("Still unexplained")[1]
        for expected in ('predicted "global loads of `in`: sectors per request = 4", measured 31', "race: here",
                         "50 % of HBM copy; what limits the rest?", "its source changed after"):
            self.assertIn(expected, re.sub("</?code>", "`", page))

    def test_a_source_as_it_was_measured_is_not_called_old(self):
        level = self.file("level_0_naive.cuh", '#include "problem.hpp"\n')
        self.file("problem.hpp", "// the problem\n")
        run = timed_run()
        for each in run["levels"]:
            each["identity"] = {"code": None, "tokens": book.token_hash(level)}
        self.write("gpu.json", run)
        for text, changed in (("// the problem\n", False), ("// another comment\n", False), ("struct Another;\n", True)):
            self.file("problem.hpp", text)
            book.forget_sources()
            self.assertEqual("its source changed after" in self.report(), changed, text)

    def test_of_two_runs_the_newer_counts(self):
        old, new = counted_run(), counted_run()
        old["date"], new["date"] = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
        new["levels"][0]["expect"], old["levels"][0]["expect"] = "the newer", "the older"
        self.write("a.json", new)
        self.write("b.json", old)
        self.assertIn("the newer", self.report())

    def test_bad_results_are_refused_in_one_line(self):
        for text, why in ((None, "holds no results"), ("{", "not JSON"), ('{"runs": []}', "holds no run of a ladder"),
                          ('{"runs": [{"levels": []}]}', "a file there is not a result"), ("[]", "not a result")):
            if text is not None:
                self.file("results/a.json", text)
            for verb in ("plots", "report"):
                status, out, err = self.call(verb)
                self.assertEqual((status, out), (2, ""), text)
                self.assertIn(why, err)
                self.assertEqual(err.count("\n"), 1)
        self.assertEqual([file.name for file in self.folder.iterdir()], ["results"])

    def test_a_pdf_is_written_by_what_is_installed_and_an_old_one_is_not_kept(self):
        self.write("gpu.json", timed_run())
        self.file("report.pdf", "old")
        self.report()
        self.assertFalse((self.folder / "report.pdf").exists())
        started = []

        def print_it(command, **_):
            started.append(command[0])
            if command[0] == "weasyprint":
                Path(command[2]).write_text("pdf")
            return mock.Mock(returncode=0)
        with mock.patch.object(pdf.shutil, "which", side_effect=lambda name: name in ("chromium", "weasyprint")), \
                mock.patch.object(pdf.subprocess, "run", side_effect=print_it):
            self.assertEqual(pdf.write_pdf(self.folder / "report.html", self.folder / "report.pdf"), "weasyprint")
        self.assertEqual(started, ["chromium", "weasyprint"])  # the first said that it was done and wrote nothing

    def test_what_somebody_else_has_made_is_printed_in_the_browsers_sandbox(self):
        for root, trusted, expected in ((False, False, False), (False, True, True), (True, False, True)):
            with mock.patch.object(pdf.os, "geteuid", return_value=0 if root else 1000):
                said = pdf.TOOLS["chromium"](self.folder / "report.html", self.folder / "report.pdf", trusted)
            self.assertEqual("--no-sandbox" in said, expected)

    def test_the_worst_request_of_each_level_is_drawn(self):
        self.write("a.json", counted_run())
        self.assertNotIn("worst request", self.report())
        recorded = json.loads((book.ROOT / "plots/results/simt/pictures/transpose-tile.json").read_text())
        self.file("pictures/mine-naive.json", recorded | {"ladder": "mine", "level": "naive"})
        self.file("pictures/other-naive.json", recorded | {"ladder": "other"})
        page = self.report()
        self.assertEqual(page.count("32 lanes x 4 bytes: 32 wavefronts (ideal: 1)</title>"), 1)
        self.file("pictures/mine-a-later.json", recorded | {"ladder": "mine", "level": "coalesced"})
        places = [self.report().index(f"<figcaption>{i} · <code>{name}</code>") for i, name in enumerate(LEVELS)]
        self.assertEqual(places, sorted(places))  # not by the files' names
        recorded["requests"][0]["counted"]["wavefronts"] = 31
        self.file("pictures/mine-naive.json", recorded | {"ladder": "mine", "level": "naive"})
        status, _, err = self.call("report")
        self.assertEqual((status, err.count("\n")), (2, 1))
        self.assertIn("the tracer counted 31", err)

    def test_results_are_not_changed(self):
        run = timed_run()
        self.write("gpu.json", copy.deepcopy(run))
        self.report()
        self.assertEqual(json.loads((self.folder / "results/gpu.json").read_text())["runs"], [run])


if __name__ == "__main__":
    unittest.main()
