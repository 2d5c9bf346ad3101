# SPDX-License-Identifier: MIT
"""The page of ./run check --html: every line with its counts, findings and pictures, and nothing from elsewhere."""
import copy
import io
import json
import re
import unittest
from unittest import mock

from cookbook_plots import checked

from .fixtures import Folder, said
from .test_pictures import GLOBAL, SHARED

SOURCE = "__global__ void k(float* out) {\n  // a < b && c\n  y = tile[x];\n}\n"


class Page(Folder):
    def setUp(self):
        super().setUp()
        self.source = str(self.file("mine.cuh", SOURCE))
        count = {"file": self.source, "line": 3, "memory": "shared", "operation": "load", "buffer": "", "requests": 4,
                 "wavefronts": 128, "ideal": 4}
        self.document = {
            "sources": [self.source], "accesses": [count], "notes": ["mine.cuh:2: a note"],
            "requests": [data | {"file": self.source} for data in (SHARED["[32]"], GLOBAL["coalesced"])],
            "costly": [[self.source, 3, "bank conflict: a load takes 32.0 wavefronts per request where 1.0 would do"]],
            "findings": [{"message": "race: wrote at mine.cuh:3, reads at mine.cuh:99 of 'a<b>'", "count": 7,
                          "remedy": "__syncthreads() between the two"}]}

    def write(self, document):
        file = self.folder / "page.html"
        with mock.patch("sys.stdin", io.StringIO(json.dumps(document))):
            return *said(checked.main, ["--out", str(file)]), file.read_text() if file.exists() else None

    def test_a_line_has_its_counts_its_finding_and_its_picture(self):
        status, _, err, page = self.write(self.document)
        self.assertEqual((status, err), (0, ""))
        line = re.search(r'<div class="row hit" id="f0-3">.*?y = tile\[x\];</div>\n<div class="below">(.*?)\n<div class="row"', page, re.S)[1]
        for wanted in ("load of shared memory: 4 requests, 32.0 wavefronts each (1.0 would do)", 'class="cost bad"',
                       "race: wrote at mine.cuh:3", "<details open>", "32 lanes x 4 bytes: 32 wavefronts (ideal: 1)"):
            self.assertIn(wanted, line)
        self.assertEqual(page.count("<details open>"), 1)
        self.assertIn('<a href="#f0-2">mine.cuh:2</a>: a note', page)
        self.assertIn("mine.cuh:99 of", page)  # no such line: no link
        self.assertIn("[7 times]", page)
        self.assertIn("remedy: __syncthreads()", page)

    def test_the_page_stands_alone_and_escapes_what_is_foreign(self):
        page = self.write(self.document)[3]
        self.assertIn("// a &lt; b &amp;&amp; c", page)
        self.assertIn("&#x27;a&lt;b&gt;&#x27;", page)
        self.assertEqual(re.findall(r'(?:src|href)="(?!#)[^"]*"|url\(|@import|<script', page), [])

    def test_a_wrong_count_gives_no_page(self):
        for key, wrong in (("wavefronts", 31), ("ideal", 2)):
            planted = copy.deepcopy(self.document)
            planted["requests"][0]["counted"][key] = wrong
            status, _, err, page = self.write(planted)
            self.assertEqual((status, page), (2, None))
            self.assertRegex(err, "check: mine.cuh:3: the addresses make 32 wavefronts, 1 at best; the tracer counted")

    def test_what_is_no_json_of_check_is_refused(self):
        for document in ([], {}, self.document | {"requests": [{}]}):
            status, _, err, page = self.write(document)
            self.assertEqual((status, page, err.count("\n")), (2, None, 1))

    def test_without_findings(self):
        page = self.write(self.document | {"findings": [], "costly": [], "accesses": [], "requests": []})[3]
        self.assertIn("No mistakes found.", page)


if __name__ == "__main__":
    unittest.main()
