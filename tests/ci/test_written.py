# SPDX-License-Identifier: MIT
"""./run written: pages for the part that a machine cannot read. Names, texts and files are a student's."""
import contextlib
import csv
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools/grading"))
import written

HOSTILE = "<script>alert(1)</script> \x1b[2J \u202e & <img src=x onerror=alert(1)>"


class Written(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "grades/results").mkdir(parents=True)
        (self.folder / "texts").mkdir()

    def graded(self, name, score=70):
        step = {"step": "races", "points": 0, "of": 10, "passed": False, "feedback": "race <b>"}
        refused = {"step": "compiles", "points": 0, "of": 0, "passed": False, "feedback": "as it was handed out"}
        result = {"name": name, "score": score, "of": 100, "steps": [refused, step]}
        (self.folder / f"grades/results/{len(name)}{name[-1]}.json").write_text(json.dumps(result))

    def run_it(self, *more, expected=0):
        out, error = io.StringIO(), io.StringIO()
        with mock.patch.dict("os.environ", COOKBOOK_CALLER=str(self.folder)), contextlib.redirect_stdout(out), \
                contextlib.redirect_stderr(error):
            status = written.main(["grades", "texts", "--no-pdf", *more])
        self.assertEqual(status, expected, error.getvalue())
        self.assertEqual(error.getvalue().count("\n"), 1 if expected else 0)
        return out.getvalue() + error.getvalue()

    def page(self, name):
        return (self.folder / f"grades/written/{name}.html").read_text()

    def enter(self, name, *points):
        rows = list(csv.reader(io.StringIO((self.folder / "grades/written.csv").read_text())))
        for row in rows:
            if row[0] == name:
                row[1:] = points
        with open(self.folder / "grades/written.csv", "w", newline="") as file:
            csv.writer(file).writerows(rows)

    def test_points_that_a_teacher_enters_are_added_to_the_machines(self):
        self.graded("ada")
        (self.folder / "texts/ada.md").write_text("I predicted 32.\n")
        self.assertIn("1 without all points", self.run_it())
        self.assertIn("not complete", self.page("ada"))
        self.assertIn("as it was handed out", self.page("ada"))  # why the other steps have no points
        self.assertEqual(self.page("ada").count("&#9744;"), sum(len(one["levels"]) for one in
                                                               written.read_rubric(written.RUBRIC)["criteria"]))
        self.enter("ada", "6", "3", "", "4", "")
        self.run_it()
        self.assertIn("not complete", self.page("ada"))
        self.enter("ada", "6", "3,5", "0", "4", "Why <b>?")
        self.assertIn("0 without all points", self.run_it())
        self.assertIn("13.5 of 20; with the machine's, 83.5 of 120", self.page("ada"))
        self.assertIn("Why &lt;b&gt;?", self.page("ada"))
        self.assertIn("\nada,70,100,13.5,20,83.5,120\n", (self.folder / "grades/total.csv").read_text())
        self.run_it()  # what was entered stays
        self.assertIn("ada,6,3.5,0,4,Why <b>?\n", (self.folder / "grades/written.csv").read_text())

    def test_each_rubric_of_the_book_has_20_points(self):
        for name in ("rubric.json", "talk.json"):
            rubric = written.read_rubric(written.RUBRIC.with_name(name))
            self.assertEqual(sum(written.most(criterion) for criterion in rubric["criteria"]), 20, name)

    def test_nothing_of_a_student_is_markup_or_a_formula(self):
        self.graded("=1+1")
        self.graded(HOSTILE[:9])
        (self.folder / "texts/=1+1.md").write_text(HOSTILE)
        self.run_it()
        for file in (self.folder / "grades/written").iterdir():
            text = file.read_text()
            self.assertIn("default-src 'none'", text)
            for part in ("<script", "<img", "onerror=alert(1)>", "\x1b", "\u202e", "<b>race"):
                self.assertNotIn(part, text)
        self.assertIn("&lt;script&gt;alert(1)&lt;/script&gt; ?[2J ? &amp;", self.page("=1+1"))
        for name in ("written.csv", "total.csv"):
            self.assertIn("\n'=1+1,", (self.folder / "grades" / name).read_text())

    def test_only_pictures_that_are_none_but_pictures_are_shown_and_no_link_is_followed(self):
        self.graded("bo")
        bo = self.folder / "texts/bo"
        bo.mkdir()
        (self.folder / "secret.png").write_bytes(b"\x89PNG\r\n\x1a\nsecret")
        for name, content in (("README.md", b"text"), ("notes.md", b"other"), ("a.png", b"\x89PNG\r\n\x1a\n"), ("b.png", b"<svg/>"),
                              ("c.svg", b"<svg onload='alert(1)'/>"), ("d.jpg", b"\xff\xd8\xff" + b"x" * (5 << 20))):
            (bo / name).write_bytes(content)
        (bo / "e.png").symlink_to(self.folder / "secret.png")
        self.run_it()
        text = self.page("bo")
        self.assertEqual(text.count("<img "), 1)
        self.assertIn("Not on this page: b.png, c.svg, d.jpg", text)
        self.assertNotIn("e.png", text)
        (self.folder / "texts/eve.md").symlink_to(self.folder / "secret.png")
        (self.folder / "texts/raw.md").write_bytes(b"\xff\xfe")
        (self.folder / "texts/two").mkdir()
        for name in ("a.md", "b.txt"):
            (self.folder / "texts/two" / name).write_text("")
        self.run_it()
        for name, why in (("eve", "the entry is a link"), ("raw", "the file is not UTF-8"), ("two", "the folder has 2 texts")):
            self.assertIn(why, self.page(name))
            self.assertIn("Nothing was graded by the machine", self.page(name))

    def test_texts_alone_go_into_a_folder_without_results(self):
        (self.folder / "grades/results").rmdir()
        (self.folder / "texts/ada.md").write_text("n-body\n")
        self.run_it()
        self.enter("ada", "6", "6", "4", "4", "")
        self.run_it()
        self.assertIn("Nothing was graded by the machine", self.page("ada"))
        self.assertEqual((self.folder / "grades/total.csv").read_text(), "name,machine,of,written,of,total,of\nada,,,20,20,,\n")

    def test_what_is_wrong_is_said_in_one_line(self):
        self.assertIn("has no results", self.run_it(expected=2))
        (self.folder / "grades").rename(self.folder / "away")
        self.assertIn("has no results", self.run_it(expected=2))
        (self.folder / "away").rename(self.folder / "grades")
        self.graded("ada")
        self.run_it()
        for points, why in ((("7", "", "", "", ""), "written.csv:2: prediction is '7': a number from 0 to 6"),
                            (("nan", "", "", "", ""), "prediction is 'nan'"), (("", "x", "", "", ""), "misses is 'x'"),
                            (("", "", "-1", "", ""), "figures is '-1'")):
            self.enter("ada", *points)
            self.assertIn(why, self.run_it(expected=2))
        self.enter("ada", "", "", "", "", "")
        (self.folder / "grades/written.csv").write_text("name,prediction\nnobody,3\n")
        self.assertIn("written.csv:2: no student is called 'nobody'", self.run_it(expected=2))
        (self.folder / "grades/written.csv").unlink()
        for text, why in (("[]", "criteria is a list"), ('{"criteria": [{"name": "a"}]}', "the texts name, title and question"),
                          ("{", "Expecting"), ('{"criteria": [{"name": "a", "title": "b", "question": "c", "levels": '
                                               '[{"points": -1, "text": ""}]}]}', "a: levels is a list")):
            (self.folder / "own.json").write_text(text)
            self.assertIn(why, self.run_it("--rubric", "own.json", expected=2))
        (self.folder / "grades/results/bad.json").write_text("{}")
        self.assertIn("not a result of ./run grade", self.run_it(expected=2))


if __name__ == "__main__":
    unittest.main()
