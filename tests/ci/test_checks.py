#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The checks of this folder, each with a right input and one on which it must fail."""
import dataclasses
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))
import check_ptxas
import check_site
import check_sources
import edit_site
import make_pages
import make_search
from tokens import forget_sources
from tree import Tree, said

KERNEL = "_ZN8cookbook6vectorINS_6ConfigEEEvPf"  # void cookbook::vector<cookbook::Config>(float*)
NAME = "::vector<"


def report(spill=0, architecture="sm_90a", extra="", frame=None):
    frame = spill if frame is None else frame  # what is spilled is in the frame
    return (f"ptxas info    : Compiling entry function '{KERNEL}' for '{architecture}'\n"
            f"ptxas info    : Function properties for {KERNEL}\n"
            f"    {frame} bytes stack frame, {spill} bytes spill stores, {spill} bytes spill loads\n"
            f"{extra}"
            "ptxas info    : Used 168 registers, used 1 barriers\n")


def problems(log, pattern=NAME, architectures=("sm_90a",), chapters=(1,)):
    patterns = [(1, list(architectures), pattern)]
    return check_ptxas.check(log.splitlines(), patterns, set(chapters))[0]


class Ptxas(unittest.TestCase):
    SCALAR = report(spill=64).replace("6vectorI", "6scalarI")
    REMARK = ("ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
              "serialized due to insufficient register resources in the function\n")
    CALLED = ("ptxas info    : Function properties for helper\n"
              "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n")

    def test_what_passes(self):
        for what, log, more in (
                ("a clean log", report(), {}),
                ("a stack frame of another kernel or architecture",
                 report() + report(frame=64).replace("6vectorI", "6scalarI") + report(frame=64, architecture="sm_80"), {}),
                ("a spill of another kernel", report() + self.SCALAR, {}),
                ("a spill for another architecture", report() + report(spill=8, architecture="sm_80"), {}),
                ("a remark where wgmma does not exist", report(architecture="sm_120a") + self.REMARK,
                 {"architectures": ("sm_120a",)}),
                ("a chapter that is not built", report(), {"pattern": "::renamed<", "chapters": ()})):
            with self.subTest(what):
                self.assertEqual(problems(log, **more), [])

    def test_what_fails_once_and_is_named(self):
        for what, log, words in (
                ("a spill", report(spill=64), "spills 64 bytes"),
                ("a stack frame without spills", report(frame=48), "has a stack frame of 48 bytes"),
                ("a spill and its frame", report(spill=8, frame=48), "spills 8 bytes"),
                ("a spill beside a called function", report(spill=16, extra=self.CALLED), "spills 16 bytes"),
                ("a frame beside a called function", report(frame=16, extra=self.CALLED), "a stack frame of 16 bytes")):
            with self.subTest(what):
                found, = problems(log)
                self.assertIn(words, found)
                self.assertIn("cookbook::vector<cookbook::Config>", found)

    def test_what_fails(self):
        for what, log, more, number in (
                ("serialised wgmma after a kernel", report() + self.REMARK, {}, 1),
                ("serialised wgmma within a kernel", report(extra=self.REMARK), {}, 1),
                ("a kernel that was not compiled", report(), {"pattern": "::renamed<"}, 1),
                ("one that was not compiled for an architecture", report(), {"architectures": ("sm_80", "sm_90a")}, 1),
                ("an empty log", "", {}, 2), ("a chapter without a line", report(), {"chapters": (1, 2)}, 1)):
            with self.subTest(what):
                self.assertEqual(len(problems(log, **more)), number)

    def test_what_a_page_says_of_kernels(self):
        other = self.SCALAR.replace("Used 168", "Used 200")
        self.assertNotEqual(other, self.SCALAR)
        for pattern, wrong in (("spills ::scalar<", None), ("spills ::vector<", "not so"), ("spills ::renamed<", "no kernel"),
                               ("fewer ::vector< than ::scalar<", None), ("fewer ::scalar< than ::vector<", "not so"),
                               ("fewer ::vector< than ::vector<", "not so"), ("fewer ::vector< than ::renamed<", "no kernel")):
            with self.subTest(pattern):
                found = problems(report() + other, pattern=pattern)
                self.assertEqual(found, [f"chapter 1, sm_90a: {wrong}: {pattern}"] if wrong else [])

    def test_an_architecture_with_a_plus_is_looked_at_when_asked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "kernels"
            file.write_text("# a comment\n1 sm_80,+sm_86 ::a<\n2 none for a reason\n")
            self.assertEqual([list(check_ptxas.read_patterns(file, name)) for name in (None, "sm_86", "sm_80", "sm_75")],
                             [[(1, each, "::a<"), (2, none, "for a reason")] for each, none in
                              ((["sm_80"], ["none"]), (["sm_86"], []), (["sm_80"], []), ([], []))])


class Sources(Tree):
    def check(self, text, name="kernel.cuh"):
        return list(check_sources.problems(self.write(name, text), name))

    LICENCE = "// SPDX-License-Identifier: MIT\n"

    def test_a_file_with_its_licence_passes(self):
        self.assertEqual(self.check(self.LICENCE + "int n = 4096;  // 16-byte rows\n"), [])

    def test_a_file_without_a_licence_fails(self):
        self.assertEqual(len(self.check("int n;\n")), 1)

    def test_speed_figures_in_comments_fail(self):
        for comment in ("reaches 3,900 GB/s", "93% of peak", "1.8x faster than level 1", "took 12 us",
                        "812 TFLOPS on a big GPU", "2 times slower", "takes 12 ms", "450 ns a launch",
                        "1.5 times as fast", "2.3x as fast", "11.0 times as fast", "0.5 times as fast",
                        "half as long: 2 times as slow", "93 % of its roof", "97 % of the HBM copy",
                        "80 per cent of a measured peak"):
            with self.subTest(comment):
                self.assertEqual(len(self.check(f"{self.LICENCE}// {comment}\n")), 1)
                self.assertEqual(len(self.check(f"{self.LICENCE}/* first\n * {comment} */\n")), 1)

    def test_sizes_and_counts_pass(self):
        for comment in ("48 KB of shared memory", "4 sectors per request", "128 threads x 4 loads",
                        "32 times as many", "waits 2 stages", "1.009x as fast is noise",
                        "50 % of its bytes", "3 ms_per_row", "4 copies of its roof"):
            with self.subTest(comment):
                self.assertEqual(self.check(f"{self.LICENCE}// {comment}\n"), [])

    def test_common_depends_on_no_chapter(self):
        link = "target_link_libraries(cookbook_runner PUBLIC chapter-0-levels)\n"
        self.depends('#include "chapters/00_roofs/ladder.hpp"\n', "chapters/00_roofs/ladder.hpp",
                     may=("chapters/01_coalescing/main.cu", "tests/roofs_test.cpp"), not_=("common/harness/run/roofs.cpp",))
        self.depends(link, "chapter-0", may=("chapters/CMakeLists.txt",), not_=("common/CMakeLists.txt",))

    def depends(self, text, on, may, not_):
        for name in may + not_:
            with self.subTest(name):
                self.assertEqual(self.check(self.LICENCE + text, name), [f"{name}: depends on {on}"] if name in not_ else [])

    def test_what_is_common_and_chapters_depend_on_no_tool(self):
        self.depends('#include "tools/grading/speed.hpp"\n', "tools/grading/speed.hpp",
                     may=("tests/grading_test.cpp", "tools/grading/worker.cpp"),
                     not_=("common/harness/verdict/check.cpp", "chapters/11_autotuning/main.cu", "capstones/scan/problem.hpp"))

    def test_no_chapter_before_11_includes_the_tuner(self):
        include = self.LICENCE + '#include "chapters/11_autotuning/tuner/space.hpp"\n'
        self.assertEqual(self.check(include, "chapters/11_autotuning/gemm.cuh"), [])
        for name in ("chapters/08_persistent/plan.cuh", "chapters/10_flash_attention/problem.hpp"):
            self.assertEqual(len(self.check(include, name)), 1, name)

    def test_a_sidebar_program_that_ignores_its_arguments_fails(self):
        name = "chapters/04_double_buffering/sidebar_ceiling.cu"
        self.assertEqual(self.check(self.LICENCE + "int main(int argc, char** argv) {}\n", name), [])
        self.assertEqual(len(self.check(self.LICENCE + "int main() {}\n", name)), 1)

    def test_a_ladder_that_changes_a_level_by_its_index_fails(self):
        for line in ("ladder.levels[1] = claiming(ladder.levels[1], {});", "full.levels.at(2).claims = {};",
                     "ladder.levels.back() = claiming(last, {});"):
            with self.subTest(line):
                self.assertTrue(self.check(self.LICENCE + line + "\n", "ladder.hpp"))
                self.assertEqual(self.check(self.LICENCE + line + "\n", "exercise.cpp"), [])
        self.assertEqual(self.check(self.LICENCE + "ladder.levels = rows<Naive>();\n", "ladder.hpp"), [])

    def listed(self, *files):
        """What main() returns in a repository of these files, and what it prints."""
        shutil.rmtree(self.root)
        for name, text in files:
            self.write(name, text)
        self.git("init", "-q")
        with mock.patch.object(check_sources, "ROOT", self.root):
            return said(check_sources.main, [])

    def test_a_program_in_a_string_of_another_language_fails(self):
        for name, text in (("a.py", '\'\'\'#!/bin/sh\na\nb\nc\nd\n\'\'\''), ("a.py", "'() => {\\n a;\\n b;\\n c;\\n}'"),
                           ("a.py", "'if a; then\\n b\\n c\\nfi\\n'"), ("a.py", "'int main() {\\n\\n\\n\\n}'"),
                           ("a.py", "'import os\\n\\n\\n\\nos.abort()'"), ("a.sh", "python3 -c 'print(1)'"),
                           ("a.sh", "\"$python\" -c 'import a'"), ("run", "python3 - <<'PYTHON'\nprint(1)\nPYTHON\n"),
                           ("a.sh", "awk '{\n  print\n}' a"), ("a.sh", "cat > b <<'END'\n#!/bin/sh\nEND\n")):
            with self.subTest(text):
                code = f"# {self.LICENCE}" + (f"A = {text}\n" if name == "a.py" else f"{text}\n")
                found = self.check(code, name)
                self.assertEqual(len(found), 1, found)
                self.assertIn(":2: a program in a string of another language: ", found[0])

    def test_texts_are_no_programs(self):
        for name, text in (("a.py", '"""Of int main():' + "\n" * 4 + '"""\n'), ("a.py", "A = '#!/bin/sh\\necho 1\\n'\n"),
                           ("a.py", "A = 'one\\ntwo\\nthree\\nfour\\nfive'\n"), ("a.sh", "cat <<END\nusage: a\nEND\n"),
                           ("a.sh", "sed 's/a/b/' c\n"), ("run", "python3 tools/command\n"), ("a.sh", "grep -c 'a' b\n")):
            with self.subTest(text):
                self.assertEqual(self.check(f"# {self.LICENCE}{text}", name), [])

    def test_no_source_at_all_fails(self):
        self.assertEqual(self.listed(("a.txt", "text")), (1, "0 sources checked, 0 problems\n"))
        self.assertEqual(self.listed(("a.hpp", self.LICENCE)), (0, "1 sources checked, 0 problems\n"))

    def test_every_kind_of_source_needs_its_licence(self):
        for name in ("a.cuh", "b.py", "run", "docs/a.js", "docs/Doxyfile", "Containerfile", "common/cmake/suites.cmake.in"):
            with self.subTest(name):
                status, out = self.listed((name, "text\n"))
                self.assertEqual(status, 1)
                self.assertIn(f"{name}:1: no 'SPDX-License-Identifier: MIT'", out)

    def test_strings_are_not_comments(self):
        self.assertEqual(self.check(self.LICENCE + 'auto s = "http://x 5 GB/s";\n'), [])


class Site(Tree):
    def check(self, body):
        self.write("other.html", '<h1 id="here">Other</h1>')
        self.write("index.html", body)
        return check_site.check(self.root)[1]

    def test_links_that_lead_somewhere_pass(self):
        self.assertEqual(self.check('<a href="other.html#here">a</a> <a href="https://example.org">b</a>'), [])

    def test_broken_links_anchors_and_images_fail(self):
        for body in ('<a href="gone.html">a</a>', '<a href="other.html#gone">a</a>', '<img src="gone.png">'):
            with self.subTest(body):
                self.assertEqual(len(self.check(body)), 1)

    def test_what_is_loaded_from_the_network_fails(self):
        self.assertEqual(len(self.check('<script src="https://example.org/x.js"></script>')), 1)


    CHAPTER = ('<h2><a class="anchor" id="chapter_3-1--tile"></a>1</h2><a href="chapter_3.html#chapter_3_level_1_tile">level_1_tile.cuh</a>'
               '<div class="picture" id="picture-a"></div><h2><a class="anchor" id="chapter_3_level_1_tile"></a>1</h2>'
               '<dl class="level-facts"><dd><a class="text" href="chapter_3.html#chapter_3-1--tile">1</a></dd>'
               '<dd><a class="shown" href="chapter_3.html#picture-a">a</a></dd></dl>')

    def test_text_code_and_picture_of_a_level_are_one_click_apart(self):
        def found(text):
            self.write("chapter_3.html", text)
            return self.check("")
        self.assertEqual(found(self.CHAPTER), [])
        for link, sentence in (("text", "has no link to its text"), ("shown", "has no link to its picture")):
            self.assertRegex("".join(found(self.CHAPTER.replace(f'class="{link}"', ""))), sentence)
        without = self.CHAPTER.replace('href="chapter_3.html#chapter_3_level_1_tile"', "")
        self.assertEqual(found(without), ["chapter_3.html: the section #chapter_3-1--tile has no link to code on this page"])
        self.assertIn("#picture-a: no such anchor", "".join(found(self.CHAPTER.replace('id="picture-a"', ""))))

    def test_a_heavy_first_page_fails(self):
        for name, size in (("a.css", 150_000), ("a.svg", 140_000), ("a-dark.svg", 140_000), ("b.svg", 140_000)):
            self.write(name, "x" * size)
        lazy = '<details><img loading="lazy" src="b.svg"/></details>'
        body = f'<link rel="stylesheet" href="a.css"/><img src="a.svg"/><img src="a-dark.svg"/>{lazy}'
        self.assertEqual(self.check(body), [])
        self.assertIn("of at most 300,000", self.check(body.replace("<details>", "<details open>"))[0])
        self.write("a.js", "x" * 10_000)
        self.assertIn("of at most 300,000", self.check(body + '<script src="a.js"></script>')[0])


def lacking(cmake, script):
    """Programs that plots/pictures.sh runs and the target needs-pictures does not build."""
    used = {f"chapter-{number}" for number in re.findall(r"^(?:size=\S+ )?record (\d+) ", script, re.MULTILINE)}
    used |= set(re.findall(r'"\$build/(chapter-\d+[\w-]*)"', script))
    if "--timeline" in script:
        used.add("chapter-6-timeline")
    built = re.search(r"add_custom_target\(needs-pictures ALL DEPENDS ([^)]*)\)", cmake)[1].split()
    return sorted(used - set(built))


class Needs(unittest.TestCase):
    def test_what_records_the_pictures_is_built_for_their_test(self):
        cmake, script = ((make_pages.ROOT / name).read_text() for name in ("tests/CMakeLists.txt", "plots/pictures.sh"))
        self.assertEqual(lacking(cmake, script), [])
        for program in ("chapter-10", "chapter-12-promotion", "chapter-4", "chapter-6-timeline"):
            self.assertEqual(lacking(re.sub(rf"\b{program}(?=[\s)])", "", cmake), script), [program])


class HostLibraries(Tree):
    """What nvcc compiles includes no library that its host pass can stumble over."""
    def found(self, files, name):
        forget_sources()
        for file, text in files.items():
            self.write(file, text)
        return [(library, file.name) for library, file in check_sources.host_libraries(self.root / name, self.root)]

    def test_one_that_is_included_by_a_header_is_found(self):
        files = {"a/levels.cu": '#include <string>\n#include "b/x.hpp"\n', "b/x.hpp": '#include "b/y.hpp"\n',
                 "b/y.hpp": '#include "b/x.hpp"\n  #  include <fmt/format.h>\n'}
        self.assertEqual(self.found(files, "a/levels.cu"), [("fmt/format.h", "y.hpp")])
        files["b/y.hpp"] = "#include <nlohmann/json_fwd.hpp>\n"
        self.assertEqual(self.found(files, "a/levels.cu"), [])

    def test_a_file_that_nvcc_compiles_fails_and_one_of_the_host_compiler_does_not(self):
        for name, problems in (("levels.cu", 1), ("level_1_tile.cuh", 1), ("ladder.hpp", 1), ("main.cu", 0),
                               ("main.cpp", 0), ("a_test.cpp", 0)):
            path = self.write(name, "// SPDX-License-Identifier: MIT\n#include <gtest/gtest.h>\n")
            self.assertEqual(len(list(check_sources.problems(path, name))), problems, name)


class Pages(unittest.TestCase):
    def test_every_chapter_has_levels_and_every_level_a_file(self):
        for info in make_pages.book.chapters():
            with self.subTest(info.folder):
                ladders = make_pages.ladders(info)
                self.assertTrue(ladders)
                for levels in ladders.values():
                    self.assertTrue(levels)
                    self.assertTrue(all(level.file.is_file() and level.changed for level in levels))

    def test_levels_of_one_name_in_two_ladders_lead_to_their_own_sections(self):
        info = next(info for info in make_pages.book.chapters() if info.number == 7)
        text = make_pages.link_levels((info.path / "README.md").read_text(), info)
        self.assertIn('| 3 | <a href="#chapter_7_level_3_swizzle_128">', text[text.index("**smem_swizzle**"):])
        self.assertIn('| 3 | <a href="#chapter_7_swizzle_128">', text[text.index("**wgmma_swizzle**"):])

    def test_reports_are_asked_of_the_levels_that_the_page_shows(self):
        """A file once, for the first of its levels."""
        info = next(info for info in make_pages.book.chapters() if info.number == 7)
        found = make_pages.wanted(info)
        self.assertEqual(found["smem_swizzle"], ["no_swizzle", "swizzle_32", "swizzle_64", "swizzle_128"])
        self.assertEqual(found["l2_order"], ["tma_store", "grouped_4", "hilbert", "multicast"])  # grouped_8 is grouped_4's
        self.assertEqual(make_pages.wanted(dataclasses.replace(info, number=99)), {})

    def test_the_code_of_a_level_leads_to_its_text_and_its_picture(self):
        chapters = {info.number: info for info in make_pages.book.chapters()}

        def links(number, name):
            level = next(level for *_, level in make_pages.shown_levels(chapters[number]) if level.name == name)
            return re.findall(r'<dt>([a-z ]+)</dt><dd><a class="\w+" href="([^"]+)"', make_pages.back_links(chapters[number], level))
        self.assertEqual(links(6, "pipeline"), [("text", "chapter_6.html#chapter_6-4--pipeline"),
                                                ("picture", "chapter_6.html#picture-gemm-order-stage")])
        self.assertEqual(links(6, "one_in_flight")[1][0], "nearest picture")
        self.assertEqual(links(3, "b_at_lane_k")[0][1], "chapter_3_notes.html#chapter_3_notes-broadcast-what-is-not-a-conflict")
        level = dataclasses.replace(next(make_pages.shown_levels(chapters[6]))[3], name="mine", ladder="mine", file=Path("mine.cuh"))
        with self.assertRaisesRegex(SystemExit, "no section is about mine of mine"):
            make_pages.back_links(chapters[6], level)

    def test_a_link_to_nowhere_fails(self):
        with self.assertRaises(SystemExit):
            make_pages.convert("see [this](gone.md)", make_pages.ROOT, {}, Path("unused"))

    def test_a_link_of_two_lines_has_one(self):
        pages = {make_pages.ROOT / "docs/course.md": "guide_course"}
        text = make_pages.convert("see [a\n  course](docs/course.md)", make_pages.ROOT, pages, Path("unused"))
        self.assertEqual(text, "see [a course](@ref guide_course)")

    def test_a_comment_goes_and_one_that_is_code_stays(self):
        text = make_pages.convert("The line `<!-- picture a -->`.\n<!-- quote b -->\nEnd\n", make_pages.ROOT, {}, Path("unused"))
        self.assertEqual(text, "The line `<!-- picture a -->`.\nEnd\n")

    def test_an_exercise_shows_what_the_grader_says(self):
        self.assertIn("FAIL  shared loads: wavefronts = ideal: measured 32\nexercise 3.1: not yet", make_pages.grader_says("3.1"))
        with self.assertRaises(SystemExit):
            make_pages.grader_says("3.99")

    def test_what_is_folded_stays_one_element(self):
        text = make_pages.convert("<details><summary><b>More</b></summary>\n\nOne.\n\nTwo.\n\n</details>\n",
                                  make_pages.ROOT, {}, Path("unused"))
        blocks = text.split("\\htmlonly[block]\n")
        self.assertEqual(len(blocks), 3)
        self.assertTrue(blocks[1].startswith("<details><summary><b>More</b></summary>\n\\endhtmlonly"))
        self.assertTrue(blocks[2].startswith("</details>\n\\endhtmlonly"))

    def test_the_difference_counts_lines(self):
        page, added, removed, marked = make_pages.difference("int a;\nint b;\n", "int a;\nint c;\nint d;\n")
        self.assertEqual((added, removed, marked), (2, 1, {1, 2}))
        self.assertIn("added", page)

    def test_a_page_has_the_menu_and_its_sections(self):
        groups = [("Chapters", [("index.html", "Book"), ("chapter_3.html", "3 · Banks")]), ("Guide", [("guide_a.html", "A")])]
        page = (f'<script type="text/x-mathjax-config">x</script>\n<script src="mathjax/MathJax.js"></script>\n{edit_site.PLACE}\n'
                '<div id="nav-path"><ul></ul>\n</div>\n</div><!-- top -->\n<h1><a class="anchor" id="a"></a>\nOne</h1>')
        text = edit_site.edited(page, groups, "chapter_3.html", edit_site.sections(page))
        self.assertIn('<a href="chapter_3.html" class=at aria-current=page>3 · Banks</a><ul><li><a href="#a">One</a></li></ul>', text)
        self.assertIn('<details><summary>Guide</summary>', text)
        self.assertLess(text.index("<!-- top -->"), text.index('id="nav-path"'))
        self.assertNotIn("MathJax", text)
        self.assertIn("MathJax", edit_site.edited(page + r"\(x\)", groups, "index.html", []))
        with self.assertRaises(SystemExit):  # another Doxygen
            edit_site.edited(page.replace("<!-- top -->", ""), groups, "index.html", [])

    def test_the_search_knows_where_a_word_is_introduced(self):
        page = make_search.Sections()
        page.feed('<div class="contents"><h2><a id="a"></a>One</h2><p>An <b>mbarrier</b> tells them.</p><h2>Two</h2>and so on</div>')
        self.assertEqual([[make_search.squeeze(part) for part in section] for section in page.sections[1:]],
                         [["a", "One", "An mbarrier tells them.", "mbarrier"], ["", "Two", "and so on", ""]])

    def test_the_search_knows_the_names_of_the_api(self):
        with tempfile.TemporaryDirectory() as folder:
            tags = Path(folder) / "names.xml"
            tags.write_text("""<tagfile><compound kind="file"><name>a.hpp</name><filename>a_8hpp.html</filename>
              <member kind="function"><name>f</name><anchorfile>n.html</anchorfile><anchor>x1</anchor></member></compound>
              <compound kind="namespace"><name>n</name><filename>n.html</filename></compound>
              <compound kind="page"><name>index</name><filename>index.html</filename></compound></tagfile>""")
            self.assertEqual(make_search.names(tags), [["a_8hpp.html", "a.hpp", "file", ""], ["n.html", "n", "namespace", ""],
                                                       ["n.html#x1", "f", "n", ""]])

    def test_source_is_escaped(self):
        self.assertIn("C&gt; ", make_pages.listing("template <class C> // a & b"))
        self.assertIn("// a &amp; b", make_pages.listing("template <class C> // a & b"))


if __name__ == "__main__":
    unittest.main()
