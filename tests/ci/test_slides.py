# SPDX-License-Identifier: MIT
"""docs/make_slides.py: what of a chapter is on its slides, in which order, and that nothing of its text is markup."""
import re
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))
import make_slides
from cookbook_plots import book

LEVEL = SimpleNamespace(name="tile", changed="a <b> tile", expect="`x` < 3")


class Slides(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "drawn.svg").write_text("<svg/>")

    def of(self, body, heading="1 · tile"):
        return make_slides.slides_of(heading, body, {"a tile": LEVEL}, self.folder, self.folder / "site")

    def test_a_result_comes_after_what_was_expected_of_it(self):
        found = self.of("Text.\n\n<!-- measured a tile -->\n**Measured:** 3 GB/s,\n2 times.\n\n<!-- picture a -->\n\n"
                        "![A <grid>.](drawn.svg)\n\n<!-- quote a b -->\n```cuda\na < b;\n```\n")
        self.assertEqual([title for title, _ in found], ["1 · tile"] * 3)
        code, picture, result = (content for _, content in found)
        self.assertIn("<p>a &lt;b&gt; tile</p>", code)
        self.assertIn("a &lt; b;</pre>", code)
        self.assertIn('alt="A &lt;grid&gt;."', picture)
        self.assertNotIn("3 GB/s", code + picture)
        self.assertIn("<dd><code>x</code> &lt; 3</dd><dt>measured</dt><dd>3 GB/s, 2 times.</dd>", result)

    def test_a_section_without_anything_to_show_has_no_slide(self):
        self.assertEqual(self.of("Text.\n", "When it loses"), [])
        self.assertEqual(len(self.of("Text.\n")), 1)  # a level: what it changes

    def test_long_quotes_are_on_slides_of_their_own(self):
        self.assertEqual(len(self.of("```cuda\na;\n```\n\n```cuda\nb;\n```\n")), 1)
        self.assertEqual(len(self.of(("```cuda\n" + "a;\n" * 7 + "```\n\n") * 2)), 2)

    def test_a_picture_that_is_not_there_ends_it(self):
        for text in ("<!-- picture a -->\n\nText.\n", "<!-- picture a -->\n\n![A](absent.svg)\n"):
            with self.assertRaises(SystemExit):
                self.of(text)

    def test_every_picture_quote_and_result_of_the_book_is_on_a_slide(self):
        for info in book.chapters():
            text = (info.path / "README.md").read_text()
            _, found = make_slides.slides(info, self.folder)
            shown = "".join(content for _, content in found)
            for what, mark in (("<img ", r"(?m)^<!-- picture |^<picture>"), ("<pre ", r"(?m)^```cuda"),
                               ("<dt>measured", r"(?m)^\*\*Measured:")):
                self.assertEqual(shown.count(what), len(re.findall(mark, text)), f"chapter {info.number}: {what}")


if __name__ == "__main__":
    unittest.main()
