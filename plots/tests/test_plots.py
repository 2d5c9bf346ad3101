# SPDX-License-Identifier: MIT
"""Unit tests of the plots: what is wrong must fail, what is old must be marked, and nothing may need
all chapters to have results."""
import copy
import json
import re
import subprocess
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import profile_levels
from cookbook_plots import book, cli, figures, markup, memories, style, tables
from cookbook_plots.results import Results, gpus, traffic

from .fixtures import Folder, said

LEVEL = "// SPDX-License-Identifier: MIT\n#include \"chapters/01_copy/problem.hpp\"\nint level;\n"


def document(digest):
    """What `./run 1 --json` writes (document.json), of levels whose tokens have this hash."""
    content = json.loads(Path(__file__).with_name("document.json").read_text())
    for level in content["runs"][0]["levels"]:
        level["identity"]["tokens"] = digest
    return content


def save_light(figure, files, folder, png_folder, name, theme, digest):
    """As style.save, without the slide, and of the dark figure only what --check reads."""
    del png_folder
    file = files.path(folder / f"{name}-{theme.name}.svg")
    if theme.name == "light":
        figure.savefig(file, metadata={"Date": None, "Identifier": f"sha256:{digest}"})
    else:
        file.write_text(f"<dc:identifier>sha256:{digest}</dc:identifier>\n")
    style.plt.close(figure)


def not_explained(text):
    """[cell] of the tables of a page with more than 100 % of a roof, of which the lines below the table do not say why."""
    found, parts = [], re.split(r"((?:^\|.*\n)+)", text, flags=re.MULTILINE)
    for rows, below in zip(parts[1::2], parts[2::2]):
        for row in rows.splitlines():
            cells = [cell.strip(" *`†‡§") for cell in row.strip("|").split("|")]
            for cell in cells:
                if not (above := re.search(r"(?:(.*?),? )?(\d{3,}) %", cell)) or int(above[2]) <= 100:
                    continue
                names = [above[1]] if above[1] else [cell for cell in cells[:3] if cell]
                noise = int(above[2]) <= 103 and "noise, because" in below
                if not noise and not any(re.search(rf"Above 100 %, (.+ and )?{re.escape(name)}( and .+)?: ", below) for name in names):
                    found.append(cell)
    return found


class Book(Folder):
    """A book of two chapters, one of which has results."""
    EVERY_FILE = False  # of a figure: most tests read the light SVG, and drawing the others takes most of the time

    def setUp(self):
        if not self.EVERY_FILE:
            patch = mock.patch.object(style, "save", save_light)
            patch.start()
            self.addCleanup(patch.stop)
        super().setUp()
        self.root = self.folder
        for name in ("01_copy", "02_tiling"):
            chapter = f"chapters/{name}"
            self.file(f"{chapter}/problem.hpp", "struct Problem;\n")
            self.file(f"{chapter}/level_0.cuh", LEVEL)
            self.file(f"{chapter}/README.md", f"# {name}\n\n{tables.BEGIN}\n{tables.END}\n\nmore\n\n{tables.NEIGHBOURS}\n")
        self.file("chapters/contents.txt", "1 01_copy Copy: why\n2 02_tiling Tiling: why\n")
        self.file("README.md", f"# Book\n{tables.BEGIN}\n{tables.END}\n")
        self.digest = book.token_hash(self.root / "chapters/01_copy/level_0.cuh", self.root)
        self.results = self.root / "plots/results"
        self.identities = book.Identities([self.digest])
        patch = mock.patch.object(book, "identities", lambda root=None: self.identities)
        patch.start()
        self.addCleanup(patch.stop)

    def write(self, content, name="chapter-1.json"):
        self.file(f"plots/results/h200/{name}", content)

    def content(self):
        """A document with one run, and the run in it."""
        content = document(self.digest)
        return content, content["runs"][0]

    def write_profile(self, *levels, size=1000, name="profile-1.json", **more):
        """What ./run profile measured of levels."""
        self.write({"schema": 1, "profiles": [{"chapter": 1, "ladder": "copy", "level": level, "size": [size], **more}
                                              for level in levels]}, name)

    def write_comparison(self, cases, date="2026-01-03", **more):
        """What ./run compare measured."""
        self.write({"schema": 1, "date": f"{date}T00:00:00Z", "device": {"name": "NVIDIA H200"}, "versions": {},
                    "comparisons": cases, **more}, "compare.json")

    def of_h200(self):
        return Results(self.results / "h200", self.identities)

    def headline(self, chapter=1, ladder="copy"):
        return self.of_h200().headline[chapter, ladder]

    def run_cli(self, *arguments):
        status, out, err = said(cli.main, ["--root", str(self.root), "--results", str(self.results), "--out",
                                           str(self.root / "figures"), "--png", str(self.root / "png"), *arguments])
        return status, out + err

    def ends(self, status, *arguments):
        """What the command says that ends with this status."""
        found, text = self.run_cli(*arguments)
        self.assertEqual(found, status, text)
        return text

    def ends_well(self):
        """It writes everything, and then has nothing against it."""
        self.ends(0)
        self.ends(0, "--check")

    def draw(self, content, *arguments):
        """Writes results, and the command has nothing against them."""
        self.write(content)
        self.ends(0, *arguments)

    def drawn(self, name):
        return (self.root / "figures/h200" / name).read_text()

    def readme(self):
        return (self.root / "README.md").read_text()

    def chapter_readme(self, name="01_copy"):
        return (self.root / "chapters" / name / "README.md").read_text()


class Drawing(Book):
    EVERY_FILE = True

    def test_without_results_everything_still_works(self):
        self.ends(0)
        self.assertIn("No results are committed", self.readme())
        self.ends(0, "--check")

    def test_figures_tables_and_csv_of_the_chapters_that_have_results(self):
        self.draw(document(self.digest))
        drawn = {path.name for path in (self.root / "figures/h200").iterdir()}
        for name in ("chapter-1-ladder", "chapter-1-roofline", "book-roofline"):
            self.assertIn(f"{name}-light.svg", drawn)
            self.assertIn(f"{name}-dark.svg", drawn)
            self.assertTrue((self.root / "png/h200" / f"{name}-light.png").exists())
        self.assertIn("figures.csv", drawn)
        self.assertIn("| 1 | `coalesced` | 2.2 us |", self.chapter_readme())
        self.assertTrue(self.chapter_readme().split(tables.NEIGHBOURS)[0].endswith("\n\nmore\n\n"))
        self.assertNotIn(markup.STALE, self.chapter_readme())
        self.assertIn("| 2 | [Tiling](chapters/02_tiling/README.md) | - |", self.readme())
        self.ends(0, "--check")

    def test_drawing_twice_gives_the_same_files(self):
        self.write(document(self.digest))
        self.run_cli()
        before = {p.name: p.read_bytes() for p in (self.root / "figures/h200").iterdir()}
        self.run_cli()
        self.assertEqual(before, {p.name: p.read_bytes() for p in (self.root / "figures/h200").iterdir()})

    def test_a_newer_sweep_does_not_take_the_place_of_a_whole_ladder(self):
        part, run = self.content()
        run.update(date="2026-02-02T03:04:05Z", levels=run["levels"][1:])
        self.write(document(self.digest))
        self.write(part, "sweep-1.json")
        self.ends(0)
        self.assertIn("`strided`", self.chapter_readme("01_copy"))

    def test_tensor_and_sweep_figures(self):
        runs = []
        for n in (1024, 2048, 4096):
            _, run = self.content()
            run.update(chapter=2, ladder="gemm", roof="wgmma bf16")
            run["problem"].update(size=[n, n, n], dims=["M", "N", "K"], flops=2.0 * n**3, bytes=6.0 * n * n,
                                  trace_size=[64, 64, 64], dtype="bf16")
            runs.append(run)
        self.write(document(self.digest))
        self.write({"schema": 1, "runs": runs[-1:]}, "chapter-2.json")
        self.write({"schema": 1, "runs": runs}, "sweep-2.json")
        self.ends(0)
        self.assertTrue((self.root / "figures/h200/chapter-2-sweep-gemm-light.svg").exists())
        self.assertIn("4,096 x 4,096 x 4,096", self.chapter_readme("02_tiling"))


class Refusals(Book):
    def test_a_point_above_its_roof_fails(self):
        content = document(self.digest)
        content["runs"][0]["levels"][1]["roof_fraction"] = 1.04
        self.write(content)
        for arguments in ((), ("--check",)):
            self.assertIn("coalesced at 1,000: 1.040 of its roof", self.ends(1, *arguments))

    def test_a_point_at_its_roof_passes(self):
        content = document(self.digest)
        content["runs"][0]["levels"][1]["roof_fraction"] = 1.02
        self.draw(content)

    def test_a_table_that_drifted_fails(self):
        self.write(document(self.digest))
        self.run_cli()
        file = self.root / "chapters/01_copy/README.md"
        file.write_text(file.read_text().replace("2.2 us", "1.2 us"))
        self.assertIn("chapters/01_copy/README.md: its table differs", self.ends(1, "--check"))
        self.assertIn("1.2 us", self.chapter_readme(), "--check must not write")

    def test_results_that_changed_fail_until_redrawn(self):
        self.write(document(self.digest))
        self.run_cli()
        content = document(self.digest)
        content["runs"][0]["levels"][1]["time_us"]["median"] = 2.3
        self.write(content)
        self.assertIn("figures.csv: differs", self.ends(1, "--check"))
        self.ends_well()

    def test_a_figure_that_is_missing_or_older_than_its_data_fails(self):
        self.draw(document(self.digest))
        self.ends(0, "--check")
        for theme in ("light", "dark"):
            file = self.root / f"figures/h200/chapter-1-roofline-{theme}.svg"
            drawn = file.read_text()
            file.unlink()
            self.assertIn(f"chapter-1-roofline-{theme}.svg: missing", self.ends(1, "--check"))
            file.write_text(drawn)
        # Another traffic of the same times: the figure has to follow, not only the table and the CSV.
        self.write_profile("strided", bytes={"dram": 9e6})
        self.ends(0, "--tables-only")
        text = self.ends(1, "--check")
        for name in ("chapter-1-roofline-light", "chapter-1-roofline-dark", "book-roofline-light"):
            self.assertIn(f"{name}.svg: drawn from other results", text)
        self.ends_well()
        (self.root / "figures/h200/chapter-9-ladder-light.svg").write_text(drawn)
        self.assertIn("chapter-9-ladder-light.svg: no results lead to this figure", self.run_cli("--check")[1])

    def test_a_file_that_nothing_is_taken_from_fails(self):
        self.draw(document(self.digest))
        self.ends(0, "--check")
        older, run = self.content()
        run["date"] = "2025-01-01T00:00:00Z"
        for content in ({"schema": 1, "cases": [1]}, {"schema": 1, "runs": []}, [], older, None):
            name = "another.json" if content is not None else "profile-9.json"
            if content is None:
                self.write_profile("coalesced", size=999, name=name, bytes={"dram": 1})
            else:
                self.write(content, name)
            self.assertIn(f"h200/{name}: no figure or table takes anything from it", self.ends(1, "--check"))
            (self.results / "h200" / name).unlink()

    def test_every_committed_file_is_read(self):
        for folder in gpus():
            self.assertEqual(Results(folder).unread, [])

    def test_a_readme_without_markers_fails(self):
        (self.root / "README.md").write_text("# Book\n")
        self.assertIn("README.md lacks the lines", self.ends(1, "--check"))

    def test_a_chapter_leads_to_the_ones_before_and_after(self):
        self.run_cli()
        links = "Next: [2 · Tiling](../02_tiling/README.md) · [all chapters](../../README.md)"
        self.assertTrue(self.chapter_readme().endswith(f"{tables.NEIGHBOURS}\n{links}\n"))
        self.assertIn("Previous: [1 · Copy](../01_copy/README.md) · [all", self.chapter_readme("02_tiling"))
        file = self.root / "chapters/02_tiling/README.md"
        file.write_text(file.read_text().replace("Previous", "Before"))
        self.ends(1, "--check")
        file.write_text(file.read_text().replace(tables.NEIGHBOURS, ""))
        self.assertIn("lacks the line <!-- neighbours -->", self.run_cli("--check")[1])

    def test_what_a_level_reached_is_written_beside_its_lesson(self):
        file = self.root / "chapters/01_copy/README.md"
        file.write_text("".join(f"<!-- measured copy {name} -->\n" for name in ("strided", "coalesced", "gone"))
                        + file.read_text())
        self.ends(0)
        self.assertNotIn("**Measured:**", self.chapter_readme(), "without results there is nothing to say")
        self.write(document(self.digest))
        self.ends(1, "--check")
        self.ends(0)
        self.assertTrue(self.chapter_readme().startswith(
            "<!-- measured copy strided -->\n**Measured:** 400 GB/s, 10 % of HBM copy.\n"
            "<!-- measured copy coalesced -->\n"
            "**Measured:** 3,636 GB/s, 93 % of HBM copy, 9.1 times the previous level.\n"
            "<!-- measured copy gone -->\n**Measured:** not yet.\n"))
        self.ends(0, "--check")

    def quote(self, kernel, page="<!-- quote level_0.cuh sum -->\n", name="README.md"):
        """Writes a level and a page that quotes it."""
        self.file("chapters/01_copy/level_0.cuh", kernel)
        file = self.root / "chapters/01_copy" / name
        file.write_text((file.read_text() if file.exists() else "") + page)

    def test_a_quote_is_written_and_one_that_drifted_fails(self):
        kernel = LEVEL + "    // [quote sum]\n    if (i < n) {\n#pragma unroll\n      s += i;\n    }\n    // [end quote]\n"
        for name in ("README.md", "notes.md"):
            with self.subTest(name):
                self.quote(kernel, name=name)
                self.assertIn("a quote differs", self.run_cli("--check")[1])
                self.ends(0)
                shown = "<!-- quote level_0.cuh sum -->\n```cuda\nif (i < n) {\n#pragma unroll\n  s += i;\n}\n```\n"
                self.assertIn(shown, (self.root / "chapters/01_copy" / name).read_text())
                self.ends(0, "--check")
        self.quote(kernel.replace("s += i", "s += 2 * i"), page="")
        self.assertIn("chapters/01_copy/notes.md: a quote differs from its source", self.ends(1, "--check"))

    def test_a_picture_is_drawn_and_one_of_other_data_fails(self):
        name, folder = "transpose-tile", "plots/results/simt/pictures"
        recorded = (book.ROOT / folder / f"{name}.json").read_text()
        source = json.loads(recorded)["requests"][0]
        self.file(source["file"], "\n" * (source["line"] - 1) + source["source"] + "\n")
        file = self.file(f"{folder}/{name}.json", recorded)
        page = self.root / "chapters/01_copy/README.md"
        page.write_text(page.read_text() + f"\n<!-- picture {name} shared load -->\n")
        self.assertIn("a picture differs from its data", self.run_cli("--check")[1])
        self.ends(0, "--tables-only")
        svg = self.root / "plots/figures/pictures" / f"{name}-shared-load.svg"
        self.assertIn(svg.name, page.read_text())
        self.ends(0, "--check")
        svg.unlink()
        self.assertIn(f"{svg.name}: not what its data make", self.ends(1, "--check"))
        file.write_text(recorded.replace('"wavefronts":32', '"wavefronts":31'))
        self.assertEqual(self.ends(2, "--check").count("\n"), 2)  # one line, and that there are no results

    def test_the_banks_of_a_store_are_computed_from_its_quote(self):
        kernel = LEVEL + "// [quote store]\ntile[y][threadIdx.x ^ y] = 1;\n// [end quote]\n"
        self.quote(kernel, "<!-- banks level_0.cuh store -->\n")
        self.assertIn("a quote differs", self.run_cli("--check")[1])
        self.ends(0)
        self.assertIn("\n|r = 2|2|3|0|1|6|7|4|5|\n", self.chapter_readme())
        self.ends(0, "--check")
        self.quote(kernel.replace("threadIdx.x ^ y", "threadIdx.x"), page="")
        self.assertIn("a quote differs", self.ends(1, "--check"))
        self.quote(kernel.replace("tile[y]", "other[y]"), page="")
        self.assertIn("no store tile[y][...] =", self.ends(1, "--check"))

    def test_a_quote_that_cannot_be_right_fails(self):
        good = "// [quote sum]\nint s;\n// [end quote]\n"
        for kernel, page, message in (
                ("int s;\n", "<!-- quote level_0.cuh sum -->\n", "level_0.cuh has no // [quote sum]"),
                (good, "<!-- quote level_9.cuh sum -->\n", "level_9.cuh has no // [quote sum]"),
                (good, "", "level_0.cuh: no page quotes sum"),
                ("// [quote sum]\nint s;\n", "", "without its // [end quote]"),
                ("int s;\n// [end quote]\n", "", "without its // [end quote]"),
                (good + good, "", "two quotes are called sum"),
                ("// [quote sum]\n" + "int s;\n" * 26 + "// [end quote]\n", "", "26 lines"),
                ("// [quote sum]\n//" + "x" * 99 + "\n// [end quote]\n", "", "of 100 columns")):
            with self.subTest(message):
                before = self.chapter_readme()
                self.run_cli()
                self.quote(kernel, page)
                self.assertIn(message, self.ends(1, "--check"))
                (self.root / "chapters/01_copy/README.md").write_text(before)

    def test_broken_json_fails(self):
        self.write({})
        (self.results / "h200/chapter-1.json").write_text("{")
        before = self.everything()
        self.assertIn("not JSON", self.ends(2))
        self.assertEqual(self.everything(), before)

    def everything(self):
        """Every file of the book and what it holds."""
        return {path: path.read_bytes() for path in self.root.rglob("*") if path.is_file()}

    def test_json_that_is_no_result_fails_in_one_line(self):
        for content in ({"runs": 3}, {"runs": [3]}, {"runs": [{"backend": "cuda", "levels": [{}]}]}):
            self.write(content)
            before = self.everything()
            text = self.ends(2)
            self.assertEqual(text.count("\n"), 1, text)
            self.assertIn("h200: a file there is not a result", text)
            self.assertEqual(self.everything(), before)

    def test_only_the_committed_results_reach_a_readme(self):
        self.draw(document(self.digest), "--tables-only")
        committed = self.everything()
        self.file("other/h200/chapter-1.json", document(self.digest) | {"date": "2001-01-01T00:00:00Z"})
        self.ends(0, "--results", str(self.root / "other"), "--out", str(self.root / "drawn"), "--tables-only")
        self.assertTrue((self.root / "drawn/h200/figures.csv").exists())
        for path, data in committed.items():
            self.assertEqual(path.read_bytes(), data, path)

    def test_a_folder_that_is_not_there_or_empty_is_refused(self):
        self.draw(document(self.digest), "--tables-only")
        (self.root / "empty").mkdir()
        before = self.everything()
        for folder in ("gone", "empty", "README.md"):
            for arguments in ((), ("--check",), ("--tables-only",)):
                status, text = self.run_cli("--results", str(self.root / folder), *arguments)
                self.assertEqual((status, text.count("\n")), (2, 1), text)
                self.assertIn(f"{folder} has no <gpu>/*.json", text)
        self.assertEqual(self.everything(), before)

    def test_an_interrupted_run_leaves_every_file_as_it_was(self):
        self.draw(document(self.digest), "--tables-only")
        before = self.everything()
        content = document(self.digest)
        content["runs"][0]["levels"][1]["name"] = "renamed"
        self.write(content)
        before[self.results / "h200/chapter-1.json"] = (self.results / "h200/chapter-1.json").read_bytes()
        written = []

        def interrupted(files, file, text):
            files.path(file).write_text(text[:10])
            written.append(file)
            if file.name == "README.md":
                raise KeyboardInterrupt

        with mock.patch.object(cli.Staging, "write_text", interrupted), self.assertRaises(KeyboardInterrupt):
            self.run_cli("--tables-only")
        self.assertGreaterEqual(len(written), 2)
        self.assertEqual(self.everything(), before)


class Stale(Book):
    def test_a_level_whose_source_changed_is_marked(self):
        self.draw(document("0" * 64))
        self.assertIn(f"`coalesced` {markup.STALE}", self.chapter_readme())
        self.assertIn(markup.STALE, self.readme())

    def test_a_level_without_a_hash_is_marked(self):
        older, run = self.content()
        for one in run["levels"]:
            del one["identity"]
            one["source_sha256"] = self.digest  # the form before
        for content in (document(None), older):
            self.draw(content, "--tables-only")
            self.assertIn(f"`coalesced` {markup.STALE}", self.chapter_readme())

    def test_a_level_whose_machine_code_changed_is_marked_and_one_with_another_text_is_not(self):
        levels = {f"chapter-1/copy/{name}": {"tokens": self.digest, "code": {"1000": "same"}} for name in ("strided", "coalesced")}
        self.identities = book.Identities([self.digest], {"toolkit": "13.0", "sm_count": 132, "levels": levels})
        content = document("0" * 16)
        for code, marked in (("same", False), ("other", True), (None, True)):
            for one in content["runs"][0]["levels"]:
                one["identity"]["code"] = code
            self.draw(content, "--tables-only")
            self.assertEqual(markup.STALE in self.chapter_readme(), marked, code)

    def test_where_a_figure_is_from_does_not_change_it(self):
        content = document(self.digest)
        self.draw(content)
        for one in content["runs"][0]["levels"]:
            one["identity"]["code"], one["launches"] = "0123", {"launches": [], "tensor_maps": []}
        self.draw(content, "--check")


class Choosing(Book):
    def test_the_newer_of_two_runs_counts(self):
        new, run = self.content()
        run["date"] = "2026-02-01T00:00:00Z"
        run["levels"][1]["time_us"]["median"] = 2.0
        self.write(new, "a.json")
        self.write(document(self.digest), "b.json")
        self.assertEqual(self.headline().levels[1].time(), 2.0)

    def test_of_several_sizes_the_ladders_own_stands_for_it(self):
        def headline_size(judged):
            runs = []
            for n in (4000, 1000, 2000):
                _, run = self.content()
                run["problem"].update(size=[n], bytes=8e3 * n)
                claim = {"text": "time: faster", "holds": None, "checked_by": None, "measured": None}
                if n == judged:
                    claim.update(holds=False, checked_by="cuda", measured="0.9")
                run["levels"][1]["claims"] = [claim]
                runs.append(run)
            self.write({"schema": 1, "runs": runs})
            return self.headline().size

        for judged, size in ((1000, 1000), (4000, 4000), (None, 2000)):
            self.assertEqual(headline_size(judged), (size,))

    def test_a_ladder_is_named_where_its_chapter_has_several(self):
        content, run = self.content()
        self.write(content)
        self.run_cli()
        self.assertIn("[Copy](chapters/01_copy/README.md) | `strided`", self.readme())
        content["runs"].append(run | {"ladder": "structs"})
        self.write(content)
        self.run_cli()
        self.assertIn("[Copy](chapters/01_copy/README.md), `copy` | `strided`", self.readme())

    def test_a_last_level_that_gains_nothing_at_its_own_size_says_where_it_does(self):
        content, run = self.content()
        run["levels"][1]["time_us"] = {"median": 20.1, "q1": 20, "q3": 20.2, "n": 9}
        run["levels"][1]["claims"] = [{"text": "", "holds": True, "checked_by": "cuda", "measured": ""}]
        for n, median in ((2000, 10), (3000, 16)):
            other = copy.deepcopy(run)
            other["problem"]["size"] = [n]
            other["levels"][1].update(claims=[], time_us={"median": median, "q1": median, "q3": median, "n": 9})
            content["runs"].append(other)
        self.write(content)
        self.run_cli("--tables-only")
        text = self.readme()
        self.assertIn(f"`coalesced` 398 GB/s {tables.NO_GAIN}", text)
        self.assertIn("Over the 3 sizes of the sweep `coalesced` is 1.00x to 2.00x as fast.", text)
        run["levels"][1]["time_us"]["median"] = 2.2
        self.write(content)
        self.run_cli("--tables-only")
        self.assertNotIn(tables.NO_GAIN, self.readme())

    def test_a_figure_of_one_chapter_holds_its_title_and_foot(self):
        self.write(document(self.digest))
        with style.Theme("light") as theme:
            figure = figures.book_roofline(self.of_h200(), book.chapters(self.root), theme)
            renderer = figure.canvas.get_renderer()
            for text in figure.texts + [figure._suptitle]:
                box = text.get_window_extent(renderer)
                self.assertLessEqual(box.x1, figure.bbox.x1, text.get_text())

    def test_counted_and_measured_traffic(self):
        self.write(document(self.digest))
        run = self.profiled(bytes={"dram": 12e6})
        self.assertAlmostEqual(traffic(run, run.levels[0])[0], 9000 * 32 / 64000)
        self.assertEqual(traffic(run, run.levels[1]), (1.5, "device-memory bytes measured by ncu"))

    def profiled(self, **more):
        self.write_profile("coalesced", **more)
        return self.headline()

    def test_energy_per_launch_is_a_column_where_it_was_measured(self):
        self.write(document(self.digest))
        self.assertNotIn("energy", tables.ladder_table(self.headline()))
        energy = {"joules": 0.0125, "us": 25, "watts": 500}
        lines = tables.ladder_table(self.profiled(bytes={"dram": 12e6}, energy=energy)).splitlines()
        self.assertEqual([line.split("|")[-2].strip() for line in lines[:5]], ["energy", "---:", "-", "12.5 mJ", ""])
        self.assertIn("NVML", "\n".join(lines[5:]))
        for joules, text in ((2, "2 J"), (0.5, "500 mJ"), (3.2e-5, "32 µJ")):
            self.assertEqual(tables.energy(joules), text)

    def test_bytes_of_the_data_pipe_go_before_counted_ones_and_those_of_l1_do_not(self):
        content = document(self.digest)
        content["runs"][0]["levels"][1]["counters"]["shared_load_wavefronts"] = 1000
        self.write(content)
        for moved, expected in (({"l1": 5e6}, memories.COUNTED), ({"l1": 5e6, "shared": 7e6}, memories.NCU)):
            run = self.profiled(bytes=moved)
            self.assertEqual(memories.moved(run, run.levels[1])["shared"].origin, expected)
        self.assertEqual(memories.moved(run, run.levels[1])["shared"].bytes, 7e6)

    def test_a_ladder_of_another_type_has_its_own_ceilings(self):
        content = self.product()
        run = content["runs"][0]
        run["roofs"].update(fp64_tflops=34, mma_tf32_tflops=300, wgmma_tf32_tflops=450, wgmma_int8_tops=1800)
        for roof, unit, ceilings in (("mma.sync tf32", "TFLOP/s", [("mma.sync tf32", 300), ("wgmma tf32", 450)]),
                                     ("wgmma int8", "TOP/s", [("wgmma int8", 1800)]), ("FP64 FMA", "TFLOP/s", [("FP64 FMA", 34)]),
                                     ("wgmma fp8", "TFLOP/s", [])):
            run["roof"] = roof
            self.write(content)
            found = self.headline(2, "gemm")
            self.assertEqual((found.unit, found.ceilings()), (unit, ceilings))
            if ceilings:
                self.ends(0)
                drawn = self.drawn("chapter-2-roofline-light.svg")
                for name, value in ceilings:
                    self.assertIn(f"{name} {tables.significant(value)} {unit}", drawn)

    def test_chapter_0_is_one_table_and_its_units_are_their_own_limit(self):
        content, run = self.content()
        run.update(chapter=0, ladder="l2", roof="L2", title="L2 again and again", references=[], levels=run["levels"][:1])
        shared = copy.deepcopy(run) | {"ladder": "shared", "roof": "shared memory"}
        content["runs"].append(shared)
        self.write(content, "chapter-0.json")
        results = self.of_h200()
        text = tables.chapter_text(book.ChapterInfo(0, "00_roofs", "Roofs"), results, {})
        self.assertEqual(text.count("| --- |"), 1)
        self.assertIn("| `l2` | L2 again and again | 20.0 us | 400 GB/s | 8,000 GB/s |", text)
        for ladder, memory in (("l2", "l2"), ("shared", "shared")):
            run = results.headline[(0, ladder)]
            self.assertEqual({name: one.bytes for name, one in memories.moved(run, run.levels[0]).items()}, {memory: 8e6})

    def test_more_than_100_percent_of_a_roof_is_explained_below_its_table(self):
        content, run = self.content()
        run["levels"][0]["roof_fraction"] = 1.02
        run["references"][0]["time_us"]["median"] = 1.5
        self.write(content)
        run = self.headline()
        run.levels[1].measured_bytes = {"l2": 1.14 * 8000e9 * 2.2e-6}
        table = tables.ladder_table(run)
        self.assertEqual(not_explained(table), [])
        for sentence, cell in (("Above 100 %, L2: the GPU merges requests", "L2 114 %"), ("101 to 103 %: noise, because", "102 %"),
                               ("Above 100 %, cudaMemcpy: it is not limited by HBM copy", "137 %")):
            self.assertEqual(not_explained(table.replace(sentence, "")), [cell])
        self.assertRegex(tables.limit_text(run), r"asks L2 for 114 % of 8.0 TB/s \(ncu\): the GPU merges requests")
        self.assertEqual(tables.reached(run, run.levels[0])[1], "102 % of HBM copy (noise)")
        run.levels[0].json["roof_fraction"], run.levels[1].measured_bytes, run.references[0]["time_us"]["median"] = 0.1, {}, 2.1
        self.assertEqual((tables.above_100(run), not_explained(tables.ladder_table(run))), ("", []))

    def test_the_pages_explain_more_than_100_percent_of_a_roof(self):
        pages, named = [book.ROOT / "README.md", book.ROOT / "docs/gpus.md", *(book.ROOT / "chapters").glob("*/README.md")], 0
        for page in pages:
            text = page.read_text()
            written = text[text.find(tables.BEGIN):text.find(tables.END)] if tables.BEGIN in text else ""
            with self.subTest(page.parent.name):
                self.assertEqual(not_explained(written), [])
            named += len(not_explained(re.sub("Above 100 %|noise, because", "", written)))
        self.assertGreater(named, 10)

    def product(self):
        """A run of a GEMM timed at (1024, 2048, 4096) and traced at (128, 256, 64)."""
        content, run = self.content()
        run.update(chapter=2, ladder="gemm", roof="wgmma bf16")
        m, n, k = size = [1024, 2048, 4096]
        run["problem"].update(size=size, dims=["M", "N", "K"], flops=2.0 * m * n * k, dtype="bf16",
                              bytes=2.0 * (m * k + k * n + m * n), trace_size=[128, 256, 64])
        return content

    def test_stores_of_a_product_do_not_grow_with_k(self):
        content = self.product()
        # 128 x 128 tiles: each of the two loads 128 + 128 rows of 64 values and stores 128 x 128 of them, 2 bytes each.
        loaded, stored = 2 * 256 * 64 * 2 / 32, 128 * 256 * 2 / 32
        strided, coalesced = content["runs"][0]["levels"]
        strided["counters"] = {"async_load_sectors": loaded, "async_store_sectors": stored}
        coalesced["counters"] = {"global_load_sectors": loaded, "global_store_sectors": stored, "global_atomic_sectors": 2}
        self.write(content)

        def moved(level):
            run = self.headline(2, "gemm")
            return traffic(run, run.levels[level])[0] * run.json["problem"]["bytes"]

        tiles = 8 * 16
        expected = tiles * (256 * 4096 + 128 * 128) * 2
        self.assertAlmostEqual(moved(0), expected)
        self.assertAlmostEqual(moved(1), expected + 32 * 2 * tiles / 2 * 64)
        # Partial sums: as many at any K.
        content["runs"][0]["levels"][0]["counters"]["global_load_sectors"] = stored
        self.write(content)
        self.assertAlmostEqual(moved(0), expected + tiles * 128 * 128 * 2)

    def simt(self, content, name="chapter-1.json"):
        content["runs"][0]["backend"] = "simt"
        self.file(f"plots/results/simt/{name}", content)

    def loads_of_the_first_level(self):
        counted = self.headline().levels[0].counted
        return counted and counted.values["global_load_sectors"]

    @staticmethod
    def counted(digest, loads, date="2026-01-02T03:04:05Z"):
        content = document(digest)
        content["runs"][0]["date"] = date
        content["runs"][0]["levels"][0]["counters"]["global_load_sectors"] = loads
        return content

    def write_without_counters(self):
        timed = document(self.digest)
        for one in timed["runs"][0]["levels"]:
            del one["counters"]
        self.write(timed)

    def test_counters_of_an_old_source_are_not_used(self):
        self.write_without_counters()
        self.simt(self.counted("0" * 64, 1))
        self.assertIsNone(self.loads_of_the_first_level())
        self.ends(0)
        text = self.ends(1, "--check")
        self.assertIn("simt/chapter-1.json: 2 levels were counted before their sources last changed", text)
        self.simt(self.counted(self.digest, 2))
        self.assertEqual(self.loads_of_the_first_level(), 2)
        self.ends_well()
        # The run's own before them, unless only theirs are of today's source.
        self.write(self.counted(self.digest, 3))
        self.assertEqual(self.loads_of_the_first_level(), 3)
        self.write(self.counted("0" * 64, 3))
        self.assertEqual(self.loads_of_the_first_level(), 2)
        (self.results / "simt/chapter-1.json").unlink()
        self.assertEqual(self.loads_of_the_first_level(), 3, "old, as is the time, and marked")

    def test_one_ladder_counted_again(self):
        """What `./run profile 1 --ladder copy` writes beside the file of the whole chapter."""
        self.write_without_counters()
        for name, digest, date, loads in (("chapter-1.json", self.digest, "2026-01-02", 1),
                                          ("chapter-1-copy.json", self.digest, "2026-01-03", 2),
                                          ("chapter-1-other.json", "0" * 64, "2026-01-04", 3)):
            self.simt(self.counted(digest, loads, date), name)
        self.assertEqual(self.loads_of_the_first_level(), 2, "the newest of today's source")

    def test_counters_written_by_the_simt_backend(self):
        content = document(self.digest)
        counters = [level.pop("counters") for level in content["runs"][0]["levels"]]
        self.write(content)
        run = self.headline()
        self.assertEqual(traffic(run, run.levels[0]), (None, ""))
        for level, values in zip(content["runs"][0]["levels"], counters):
            level["counters"] = values
        self.simt(content)
        run = self.headline()
        factor, origin = traffic(run, run.levels[0])
        self.assertAlmostEqual(factor, 9000 * 32 / 64000)
        self.assertIn("SIMT", origin)
        self.ends(0)
        self.assertFalse((self.root / "figures/simt").exists(), "the SIMT backend is no GPU")
        drawn = self.drawn("chapter-1-roofline-light.svg")
        self.assertIn("counted by the SIMT backend", drawn)
        self.assertIn("open circle: each byte that the level touches, once", drawn)
        self.write_profile("strided", "coalesced", bytes={"dram": 9e6})
        self.ends(0)
        drawn = self.drawn("chapter-1-roofline-light.svg")
        self.assertIn("full: bytes measured by ncu", drawn)
        self.assertNotIn("open circle", drawn)  # of device memory; ncu was not asked for the others

    def test_what_a_user_would_pick_instead(self):
        self.write(document(self.digest))

        def row(name, median, ours=False, ratio=None):
            return {"name": name, "ours": ours, "time_ms": {"median": median}, "gbps": 100 / median, "tflops": None,
                    "identity": {"code": None, "tokens": self.digest} if ours else None, "vs_cookbook": ratio and {"ratio": ratio}}
        case = {"chapter": 1, "ladder": "copy", "size": [1000], "dims": ["n"], "dtype": "f32", "variant": "", "flops": 0,
                "bytes": 1e8, "unit": "GB/s", "skipped": {}, "rows": [row("coalesced", 1, True), row("Triton", 2, ratio=0.5)]}
        self.write_comparison([case], versions={"torch": "2", "cutlass": None})
        self.ends(0)
        self.assertIn("| 1,000 f32 | 100 | 50 (0.50x) |", self.chapter_readme())
        self.assertIn("Not installed: cutlass.", self.chapter_readme())
        self.ends(0, "--check")

    def attention(self, newer, older=None, named="attention", **problem):
        """A book whose chapter 10 has a ladder, and what was compared: lengths of compare.json and of attention.json."""
        self.file("chapters/10_attention/README.md", f"# 10\n\n{tables.BEGIN}\n{tables.END}\n{tables.NEIGHBOURS}\n")
        with (self.root / "chapters/contents.txt").open("a") as file:
            file.write("10 10_attention Attention\n")
        content, run = self.content()
        run.update(chapter=10, ladder="prefill", roof="wgmma bf16", references=[])
        run["problem"].update(size=[1, 2, 2, 2048, 2048, 128], dims=list("abcdef"), dtype="bf16", flops=1e12, **problem)
        for one in run["levels"]:
            one["vs_reference"] = None
        self.write(content, "chapter-10.json")
        if newer:
            self.write_comparison([{
                "chapter": 10, "ladder": named, "size": [1, 2, 2, n, n, 128], "dims": list("abcdef"), "dtype": "bf16",
                "variant": mask, "flops": 1e12, "bytes": 1, "unit": "TFLOP/s", "skipped": {},
                "rows": [{"name": "coalesced", "ours": True, "time_ms": {"median": 2, "q1": 2, "q3": 2},
                          "tflops": 500, "identity": {"tokens": self.digest}, "vs_cookbook": None},
                         {"name": "cuDNN", "ours": False, "time_ms": {"median": 2.5, "q1": 2, "q3": 3},
                          "tflops": 400, "identity": None, "vs_cookbook": {"ratio": ratio}}]}
                for n in newer for mask, ratio in (("full", 0.8 if n < 4096 else 0.5), ("causal", 0.4))], commit="abc")
        if older:
            self.write({"schema": 1, "date": "2026-01-02T00:00:00Z", "device": {"name": "NVIDIA H200"}, "cases": [{
                "shape": [1, 2, 2, n, n, 128], "causal": False, "dtype": "bfloat16", "levels": [
                    {"name": name, "ms": {"median": 2, "q1": 2, "q3": 2}, "tflops": 300} for name in names]}
                for n in older for names in [("coalesced", "strided", "cuDNN")]]}, "attention.json")

    def test_attention_over_length(self):
        figure = self.root / "figures/h200/chapter-10-sweep-attention-light.svg"
        self.attention([1024, 4096])
        self.ends(0)
        self.assertFalse(figure.exists(), "two lengths are no curve")
        self.attention([1024, 4096], [1024, 2048, 4096])
        self.ends(0)
        drawn = figure.read_text()
        self.assertIn("lines: attention.json, 2026-01-02 00:00 *", drawn)
        self.assertIn("open marks: the same problems again, compare.json, 2026-01-03 00:00, commit abc", drawn)
        self.assertIn("chapter-10-sweep-attention-dark.svg", self.chapter_readme("10_attention"))
        rows = [line.split(",") for line in self.drawn("figures.csv").splitlines()]
        rows = [row for row in rows if row[1] == "attention full"]
        self.assertEqual(sum(row[-1] == "attention.json" and row[-2] == "yes" for row in rows), 3)
        self.assertFalse(any("strided" in row for row in rows), "only the last level is drawn")
        self.ends(0, "--check")
        self.attention([1024, 2048, 4096], [1024, 2048, 4096])
        self.ends(0)
        self.assertIn("lines: compare.json", figure.read_text())
        self.assertNotIn("attention.json", figure.read_text())

    def test_decode_beside_the_libraries(self):
        self.attention([1024])
        case = {"shape": [1, 64, 8, 1, 8192, 128], "causal": False, "dtype": "bfloat16", "levels": [
            {"name": "gqa_packed", "gbps": 1223.5, "vs_cudnn": {"ratio": 0.8573}},
            {"name": "cuDNN", "gbps": 1458.4, "vs_cudnn": {"ratio": 1.0}}]}
        decode = {"schema": 1, "device": {"name": "NVIDIA H200"}, "torch": "2.11", "cases": [case]}
        self.write(decode, "attention-decode.json")
        self.ends(0, "--tables-only")
        readme = self.chapter_readme("10_attention")
        self.assertIn(f"| 1 x 64 x 8 x 1 x 8,192 x 128 bf16 | 1,224 (0.857x) {markup.STALE} | 1,458 |", readme)
        self.assertIn("Its date and commit were not recorded.", readme)
        self.assertNotIn("beside the libraries", self.chapter_readme())
        case["levels"][0]["identity"] = {"code": None, "tokens": self.digest}
        self.write(decode | {"date": "2026-01-02T00:00:00Z", "commit": "abc", "versions": {"torch": "2.11"}},
                   "attention-decode.json")
        self.ends(0, "--tables-only")
        readme = self.chapter_readme("10_attention")
        self.assertIn("1,224 (0.857x) | 1,458 |", readme)
        self.assertNotIn("not recorded", readme)

    def test_the_library_of_a_chapter_whose_ladder_has_none(self):
        self.attention([1024, 4096])
        self.ends(0)
        readme = self.readme()
        self.assertIn("| 1.25x cuDNN ‡ |", readme, "of equally near sizes the least flattering, and no mask")
        self.assertIn("on 1 x 2 x 2 x 1,024 x 1,024 x 128 bf16 full, timed", readme)
        self.assertIn("1.25x to 2.50x on the 4 problems compared", readme)
        self.attention([1024, 2048, 4096])
        self.ends(0)
        self.assertIn("on 1 x 2 x 2 x 2,048 x 2,048 x 128 bf16 full, timed", self.readme())
        self.attention([1024], named="another")
        self.ends(0)
        self.assertNotIn("‡", self.readme())

    def test_a_library_of_another_run_beside_a_sweep(self):
        runs = [document(self.digest)["runs"][0] for _ in range(3)]
        for n, run in zip((1000, 2000, 4000), runs):
            run["problem"]["size"] = [n]
        self.write({"schema": 1, "runs": runs}, "sweep-1.json")
        self.write(document(self.digest))

        def compare(sizes):
            self.write_comparison([{"chapter": 1, "ladder": "copy", "size": [n], "dims": ["n"], "dtype": "f32", "variant": "",
                                    "flops": 0, "bytes": 1, "unit": "GB/s", "skipped": {}, "rows": [
                                        {"name": name, "ours": False, "time_ms": {"median": 1}, "gbps": 1234, "tflops": None,
                                         "identity": None, "vs_cookbook": None} for name in ("Triton", "cudaMemcpy")]}
                                   for n in sizes])
            self.ends(0)
            return self.drawn("chapter-1-sweep-copy-light.svg")

        self.assertIn("Triton: another run, ./run compare, 2026-01-03", compare([1000, 2000, 4000, 8000]))
        rows = self.drawn("figures.csv").splitlines()
        self.assertEqual(sum(",Triton," in row and row.endswith(",compare.json") for row in rows), 3)
        self.assertFalse(any(",cudaMemcpy,1000" in row for row in rows), "the sweep has its own")
        self.assertNotIn("Triton", compare([1000, 2000]))

    def test_runs_without_times_are_left_out(self):
        content = document(self.digest)
        content["runs"][0]["backend"] = "simt"
        self.write(content)
        self.assertEqual(self.of_h200().headline, {})


class ProfileScript(Folder):
    """plots/profile.sh without a GPU, with stand-ins for ./run and for the chapter's executable."""

    def setUp(self):
        super().setUp()
        self.program("plots/profile.sh", (book.ROOT / "plots/profile.sh").read_text())
        self.program("run", '#!/bin/sh\n[ "$1" = --print-backend ] && echo simt && exit\necho "$BACKEND $*" >>builds\n')
        self.program("build/simt/chapter-3", '#!/bin/sh\nfor last; do :; done\necho "$*" >"$last"\n')

    def profile(self, *arguments):
        return subprocess.run([self.folder / "plots/profile.sh", *arguments], capture_output=True, text=True).returncode

    def test_one_ladder_does_not_take_the_place_of_the_chapters(self):
        folder = self.folder / "plots/results/simt"
        self.assertEqual(self.profile("3"), 0)
        whole = (folder / "chapter-3.json").read_text()
        for arguments in (("--ladder", "transpose"), ("--ladder=transpose",)):
            self.assertEqual(self.profile("3", *arguments), 0)
            self.assertEqual((folder / "chapter-3.json").read_text(), whole)
            file = folder / "chapter-3-transpose.json"
            self.assertTrue(file.read_text().startswith(" ".join(arguments) + " --json"))
            file.unlink()
        self.assertEqual(self.profile("3", "--ladder", "transpose", "--out", str(self.folder / "mine.json")), 0)
        self.assertTrue((self.folder / "mine.json").exists())
        self.assertEqual(self.profile("3", "--level", "padded"), 2)
        self.assertEqual((folder / "chapter-3.json").read_text(), whole)

    def test_an_executable_that_is_there_is_built_again(self):
        self.assertEqual(self.profile("3"), 0)
        self.assertEqual((self.folder / "builds").read_text(), "simt 3 --list\n")


class Ncu(Folder):
    MARK = "void fill_words<unsigned int>(T1 *, unsigned long, T1)"

    def csv(self, *launches):
        """ncu's CSV of (kernel, dram bytes, l2 bytes) per launch."""
        lines = ['==PROF== Connected\n"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"']
        for number, (kernel, dram, l2) in enumerate(launches):
            for metric, value in (("dram__bytes.sum", dram), ("lts__t_bytes.sum", l2)):
                lines.append(f'"{number}","{kernel}","{metric}","byte","{value:,}"')
        return "\n".join(lines) + "\n"

    def two_levels(self):
        """A level of two kernels, and one of a kernel that is launched twice."""
        return self.csv((self.MARK, 7, 7), ("first", 1000, 3000), ("second", 500, 600), (self.MARK, 7, 7),
                        ("third", 40, 50), ("third", 40, 50))

    def test_bytes_of_levels_with_several_launches(self):
        (first, _, two), (second, _, also_two) = profile_levels.parse(self.two_levels())
        self.assertEqual((first, second), ({"dram": 1500, "l2": 3600}, {"dram": 80, "l2": 100}))
        self.assertEqual((two, also_two), (2, 2))

    def test_no_kernel_or_none_with_a_mark_is_an_error(self):
        for text in ("==PROF== nothing\n", self.csv(("first", 1000, 3000), (self.MARK, 7, 7))):
            with self.assertRaises(ValueError):
                profile_levels.parse(text)

    def test_what_ncu_prints(self):
        """The layout of `ncu --csv --print-units base --metrics ...`; the numbers are made up."""
        text = (Path(__file__).parent / "ncu.csv").read_text()
        (moved, work, launches), (after, nothing, none) = profile_levels.parse(text)
        self.assertEqual((launches, none), (2, 0), "a mark without a launch: the level was cut off")
        self.assertEqual(moved, {"dram": 536870912 + 1048576, "l2": 805306368 + 2097152, "l1": 1073741824 + 4194304})
        self.assertEqual(work, {"fp32": 1000 + 2000 + 2 * 4000 + 24, "tensor": 137438953472})
        self.assertEqual((after, nothing), ({}, {"fp32": None, "tensor": None}))

    def test_counters_that_the_gpu_lacks_are_null(self):
        self.assertEqual(profile_levels.parse(self.two_levels())[0][1], {"fp32": None, "tensor": None})

    def test_what_could_not_be_measured_stays_as_it_was(self):
        out = self.folder / "gpu/profile-1.json"

        def write(value, names, missing):
            profiles = [{"chapter": 1, "ladder": "copy", "level": name, "size": [8], "bytes": {"dram": value}} for name in names]
            complete, _, err = said(profile_levels.write, out, profiles, missing)
            found = json.loads(out.read_text())["profiles"] if out.exists() else []
            return complete, err, {p["level"]: p["bytes"]["dram"] for p in found}

        self.assertEqual(write(0, "", ["a"])[::2], (False, {}), "nothing was measured")
        self.assertEqual(write(1, "ab", [])[::2], (True, {"a": 1, "b": 1}))
        complete, err, found = write(2, "b", ["a"])
        self.assertEqual((complete, found), (False, {"a": 1, "b": 2}))
        self.assertIn("not measured: a; 1 older", err)
        self.assertEqual(write(3, "b", [])[::2], (True, {"b": 3}), "a whole ladder replaces the file")

    def profile(self, levels, text, energy=None):
        """main() with stand-ins for the executable, which says `levels` as (name, why it was left out), and for ncu,
        which says `text` (None: it takes too long). Returns the exit status, what was printed and the profiles."""
        def run(command, **options):
            if command[0] == "nvidia-smi":
                return mock.Mock(stdout="none\n", stderr="")
            if command[0] == "ncu" and text is None:
                raise subprocess.TimeoutExpired(command, options["timeout"])
            about = {"chapter": 1, "ladder": "copy", "size": [8], "device": "none", "levels": [
                {"name": name, "reason": reason, "energy": energy} for name, reason in levels]}
            if command[0] == "ncu" or energy:
                Path(command[command.index("--json") + 1]).write_text(json.dumps(about))
            return mock.Mock(stdout=text, stderr="--energy: NVML does not know")

        (self.folder / "build").mkdir(exist_ok=True)
        out = self.folder / "profile-1.json"
        out.unlink(missing_ok=True)
        with mock.patch.multiple(profile_levels, ROOT=self.folder, RESULTS=self.folder / "results"), \
                mock.patch.object(profile_levels.subprocess, "run", run), \
                mock.patch.object(sys, "argv", ["profile", "1", "--out", str(out)]):
            status, printed, err = said(profile_levels.main)
        return status, printed + err, json.loads(out.read_text())["profiles"] if out.exists() else None

    def test_a_whole_ladder_is_measured_by_one_process(self):
        joules = {"joules": 0.25, "us": 500, "watts": 500}
        status, text, found = self.profile([("a", ""), ("b", "")], self.two_levels(), joules)
        self.assertEqual(status, 0, text)
        self.assertEqual([(p["level"], p["bytes"]["dram"], p["launches"], p["energy"]) for p in found],
                         [("a", 1500, 2, joules), ("b", 80, 2, joules)])
        status, text, _ = self.profile([("a", ""), ("b", "")], self.two_levels())
        self.assertEqual(status, 0, "bytes count without energy")
        self.assertIn("no energy: --energy: NVML does not know", text)

    def test_what_fails_fails_the_command(self):
        whole = self.two_levels()
        for levels, text, why in ((["a", "b"], None, "took longer"), (["a", "b"], "no kernel", "reported no kernel"),
                                  (["a", "b", "c"], whole, "3 levels were launched, and ncu saw 2"),
                                  (["a", "b"], "==ERROR== ERR_NVGPUCTRPERM", "refuses counters"),
                                  (["a", "b", "c: needs sm_100"], whole, "not measured: c")):
            status, printed, found = self.profile([tuple((name + ": ").split(": ")[:2]) for name in levels], text)
            self.assertEqual(status, 1, levels)
            self.assertIn(why, printed)
            self.assertEqual(found is not None, why.startswith("not measured"))


if __name__ == "__main__":
    unittest.main()
