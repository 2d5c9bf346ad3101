# SPDX-License-Identifier: MIT
"""The data file beside each exercise: what it must say, that no hint is the answer, and that its variants fit. Nothing is
compiled."""
import json
import re
import shutil
import subprocess
import sys
import unittest
from unittest import mock
from pathlib import Path

from tree import Tree

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/exercises"), str(ROOT / "tests/exercises")]
import catalogue  # noqa: E402
import questions  # noqa: E402
import reading  # noqa: E402
import solution  # noqa: E402
import variants  # noqa: E402
from formulas import FORMULAS  # noqa: E402

EXERCISES = catalogue.all_exercises()


def unplanned(page):
    """Of the table of lectures in docs/course.md: levels of a chapter's first ladder that it has not once, and others."""
    table = page[page.index("| week | before the break |"):].partition("\n\n")[0]
    planned = {}
    for cell in (cell for row in table.split("\n") for cell in re.split(r"[|;]", row)):
        if found := re.match(r" ?chapter (\d+): (.*)", cell):
            planned.setdefault(int(found[1]), []).extend(re.findall(r"`(\w+)`", found[2]))
    wrong = []
    for chapter in sorted(planned):
        listed = json.loads((ROOT / f"docs/levels/chapter_{chapter}.json").read_text())
        names = [level["name"] for level in listed if level["ladder"] == listed[0]["ladder"]]
        wrong += [f"{chapter}: {name} {planned[chapter].count(name)} times" for name in names if planned[chapter].count(name) != 1]
        wrong += [f"{chapter}: {name} is no level of its first ladder" for name in planned[chapter] if name not in names]
    return wrong + [f"{chapter}: not planned" for chapter in range(len(list((ROOT / "docs/levels").glob("*.json")))) if chapter not in planned]


class Data(unittest.TestCase):
    def test_every_exercise_has_a_kind_a_title_minutes_and_two_hints(self):
        files = {file for kind in ("cuh", "txt") for file in ROOT.glob(f"chapters/*/exercises/exercise_*.{kind}")}
        self.assertEqual({one.file for one in EXERCISES}, files)
        self.assertEqual(len({one.key for one in EXERCISES}), len(EXERCISES))
        for one in EXERCISES:
            with self.subTest(one.key):
                self.assertIn(one.kind, catalogue.KINDS)
                self.assertIn(type(one.data["minutes"]), (int,))
                self.assertEqual([*map(len, (one.data["hints"], set(one.data["hints"])))], [2, 2])
                self.assertLess(len(one.data["title"]), 60)
                self.assertEqual(one.kind == "read", int(one.number) > 10)  # their numbers do not move when kernels are added

    def test_every_question_can_be_asked(self):
        for one in EXERCISES:
            if one.kind != "read":
                continue
            with self.subTest(one.key):
                variant = reading.Variant(one, 1)
                names = [question["name"] for question in variant.questions]
                self.assertEqual(len(set(names)), len(names))
                said = [question[part] for question in variant.questions for part in ("ask", "think")]
                said += [slip["say"] for question in variant.questions for slip in question["slips"]]
                for text in (variant.filled(one.data["text"]), *said):
                    self.assertNotIn("{", text)
                for question in variant.questions:
                    self.assertTrue(question["think"])
                    for count in (question["count"], *question["slips"]):
                        self.assertLessEqual({count["what"], count.get("per", "bytes")}, {*reading.COUNTS})
                        self.assertLessEqual({*count} - {"say"}, {"what", "per", "times", "memory", "operation", "buffer", "line",
                                                                  "kernel", "level"})
                        self.assertTrue({*count} & {"memory", "operation", "buffer", "line"})
                for _, lines in variant.quoted():
                    self.assertTrue(lines)
                    self.assertLess(len(lines), 30)
                self.assertEqual(one.file.read_text(), reading.blank(one), "as it is shipped")

    def test_a_variant_is_drawn_alike_everywhere(self):
        self.assertEqual([catalogue.draw("1.11", number, "n", range(1000)) for number in (0, 1, 17)], [168, 697, 846])

    def test_the_tables_are_those_of_the_pages(self):
        for name in catalogue.PAGES:
            page = (ROOT / name).read_text()
            self.assertEqual(page, catalogue.with_table(name, page), "python3 tools/exercises list --write")

    def test_the_lectures_have_every_level_once(self):
        page = (ROOT / "docs/course.md").read_text()
        self.assertEqual(unplanned(page), [])
        self.assertEqual(unplanned(page.replace("`coalesced`, `shared_tile`", "`shared_tile`")), ["2: coalesced 0 times"])
        self.assertEqual(unplanned(page.replace("`padded` |", "`padded`, `padding` |")), ["3: padding is no level of its first ladder"])

    def test_the_examination_asks_and_answers_what_the_tools_would(self):
        page = (ROOT / "docs/examination.md").read_text()
        asked = re.findall(r"Exercise ([\d.]+), variant (\d+) ", page)
        self.assertEqual(len(asked), 2)
        key = re.findall(r"(?m)^\| \d \| `(\w+)` = ([\d,.]+) \|$", page)
        right = []
        for exercise, number in asked:
            variant = reading.Variant(catalogue.find(exercise), int(number))
            self.assertIn(questions.text_of(variant), page)
            right += [(name, f"{answer:,}") for name, answer in FORMULAS[exercise](**variant.values).items()]
        self.assertEqual(key, right)
        in_course = {each for week, _, _ in catalogue.weeks() for part in ("predict", "lab", "home") for each in week[part]}
        own = page.partition("## Your own paper")[2]
        self.assertTrue(re.search("such as (.+?), and a variant", own, re.DOTALL))
        offered = re.findall(r"\d+\.\d+", re.search("such as (.+?), and a variant", own, re.DOTALL)[1])
        self.assertEqual([key for key in offered if key in in_course or catalogue.find(key).kind != "read"], [])

    def test_the_weeks_of_the_course_fit(self):
        weeks = catalogue.weeks()
        self.assertEqual(len(weeks), (ROOT / "docs/course.md").read_text().count("\n### "))
        for number, (week, lab, home) in enumerate(weeks, 1):
            with self.subTest(week=number):
                self.assertLessEqual(lab, 110)  # of two hours, ten minutes are for what missed
                self.assertTrue(3 <= home <= 6, home)
                for part in ("predict", "lab", "home"):  # a class shares no answer
                    for key in week[part]:
                        self.assertGreater(catalogue.count_of_variants(catalogue.find(key)), 2, key)


# Of a kernel, names may be in a hint, and no expressions of them.
CODE = re.compile(r"[A-Za-z_]\w*\[|[\w\])] (?:(?:\^|%|\*|\+=) [\w(\[]|= [A-Za-z_(\[])|\b\w+\(\w+[.,]")
# A hint that says what to write: a solution in words.
ORDER = re.compile(r"^(?:put|move|start|rotate|permute|let|release|add) ", re.IGNORECASE)


def answer_in(hint, names, constants):
    """What of the answer a hint to a question gives away: arithmetic on the drawn values, or an answer that all variants
    share. `names`: those of the drawn values. None if nothing."""
    of_value = rf"(?:{'|'.join(map(re.escape, names))})\b"
    found = re.search(rf"(?:\bx|[/*]|\bceil\(|\bfloor\() {{0,1}}\(?{of_value}|\b{of_value}\)? (?:x|[/*]) ", hint, re.IGNORECASE)
    if found:
        return found[0]
    numbers = {float(one.replace(",", "")) for one in re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?!\w)", hint)}
    return next(iter(numbers & constants), None)


def hints_of(exercise):
    """Each second hint of an exercise, and of its variants."""
    data = exercise.data.get("variants", {})
    parts = data if isinstance(data, dict) else {}
    of_variants = [one["hints"] for part in ("numbers", "places") for one in parts.get(part, ()) if "hints" in one]
    return [hints[1] for hints in (exercise.data["hints"], *of_variants)]


def given_away(exercise, hint):
    """Why a second hint of this exercise is the answer, or None."""
    if exercise.kind != "read":
        found = CODE.search(hint) or ORDER.search(hint)
        return found and found[0]
    drawn = [reading.Variant(exercise, seed).values for seed in range(20)]
    answers = [FORMULAS[exercise.key](**values) for values in drawn]
    constants = {float(answers[0][name]) for name in answers[0] if len({one[name] for one in answers}) == 1}
    named = {"m": "M", "n": "N", "k": "K", "q": "queries"}
    return answer_in(hint, [*drawn[0], *(named[one] for one in drawn[0] if one in named)], constants)


def code_of(row):
    """A line of code without spaces, comments and what exercises and levels write differently."""
    return re.sub(r"\s+|//.*|C::|this->", "", row)


def shown_by(exercise, rows):
    """The lines of an exercise's solution that `rows` show and the exercise does not: long ones, with a call."""
    edits, text = solution.edits_of(exercise.file, ROOT), code_of(exercise.file.read_text().replace("\n", " "))
    rows = {code_of(row) for row in rows}
    added = [code_of(row[1:]) for row in edits.read_text().split("\n") if row.startswith("+")] if edits.is_file() else []
    return [row for row in added if len(row) > 25 and "(" in row and row in rows and row not in text]


class Hints(unittest.TestCase):
    def test_no_question_shows_what_another_exercise_asks_for(self):
        kernels = [one for one in EXERCISES if one.kind != "read"]
        for one in kernels:
            for question in (other for other in EXERCISES if other.kind == "read" and other.chapter == one.chapter):
                quoted = [row for _, rows in reading.Variant(question, 1).quoted() for row in rows]
                with self.subTest(one.key, question=question.key):
                    self.assertEqual(shown_by(one, quoted), [])
        one = catalogue.find("5.1")
        self.assertEqual(len(shown_by(one, ["  ldmatrix_x4_trans(pair, b_tile + offset);  // [b]"])), 1)

    def test_a_second_hint_says_how_to_get_there(self):
        for exercise in catalogue.all_exercises():
            for hint in hints_of(exercise):
                with self.subTest(exercise=exercise.key):
                    self.assertIsNone(given_away(exercise, hint), hint)

    def test_the_answer_is_found_in_a_hint(self):
        for key, hint in (("3.11", "there is a wavefront per element: rows x cols."), ("3.11", "One per request: ceil(rows / 32)."),
                          ("6.11", "Bytes of A: 2 x M x K x ceil(N / 128)."), ("13.11", "128 x queries x keys."),
                          ("8.13", "All of them are 262,144 bytes."), ("12.13", "A request has 32 bytes."),
                          ("7.1", "The chunk is chunk ^ (row / 2 % 4)."), ("12.1", "staged[first_row + 64 i], times the scale of B."),
                          ("9.1", "new = max(max, x)"), ("3.1", "Rotate each row by its number."),
                          ("9.2", "Put a barrier between the maxima and the sums."), ("15.2", "Wait for write.phase ^ 1.")):
            with self.subTest(hint):
                self.assertIsNotNone(given_away(catalogue.find(key), hint))

    def test_answers_by_hand_are_on_the_teachers_page_only(self):
        page = (ROOT / "docs/teaching.md").read_text().partition("## Answers to the questions")[2].partition("\n## ")[0]
        answers = re.findall(r"(?m)^\| \d+ \| (.*) \| \[", page) + re.findall(r"(?m)^- \*\*Chapter \d+:\*\* (.*)", page)
        self.assertEqual(len(answers), 12 + 5)
        students = [ROOT / "docs/course.md", ROOT / "docs/exercises.md", *ROOT.glob("chapters/*/README.md")]
        texts = "".join(file.read_text() for file in students)
        self.assertEqual([one for one in answers if one in texts], [])

    def test_each_chapter_has_five_exercises(self):
        chapters = [one.chapter for one in catalogue.all_exercises()]
        for chapter in range(16):
            self.assertGreaterEqual(chapters.count(chapter), 5, chapter)


class Variants(unittest.TestCase):
    def test_without_solutions_other_numbers_are_made_and_other_bugs_say_what_is_missing(self):
        with mock.patch.object(solution, "edits_of", lambda *_: ROOT / "tests/solutions/none.diff"):
            numbers, bugs = (variants.Variants(catalogue.find(key)) for key in ("3.1", "3.2"))
            self.assertIn("Variant 4 of", numbers.handed_out(4))
            self.assertEqual(len(numbers.hints(0)), 2)
            with self.assertRaisesRegex(catalogue.BadExercise, "^tests/solutions/none.diff is missing: variants with another bug"):
                bugs.handed_out(4)

    def test_numbers_of_different_variants(self):
        for one in EXERCISES:
            if "variants" in one.data:
                found = variants.Variants(one)
                texts = {found.text(*found.choice(number)) for number in (0, *found.different())}
                self.assertGreaterEqual(len(texts), min(catalogue.count_of_variants(one) - 1, 3), one.key)
                self.assertEqual(len(texts), 1 + len(found.different()), one.key)
        groups = re.findall(r"--from ([\d.]+) --variant (\d+)", (ROOT / "docs/course.md").read_text().partition("## A week in")[2])
        self.assertEqual(len(groups), 4)
        self.assertEqual([(key, number) for key, number in groups[:2]
                          if int(number) not in variants.Variants(catalogue.find(key)).different()], [])

    def test_all_fit_and_lead_back_to_the_shipped_file(self):
        found = 0
        for one in EXERCISES:
            if "variants" not in one.data:
                continue
            mine = variants.Variants(one)
            self.assertGreater(len(mine.numbers), 1, f"{one.key}: the public solution of one bug is that of another one, too")
            if one.kind == "repair":
                self.assertGreater(len(mine.places), 1, f"{one.key}: all variants have the shipped bug")
            self.assertIsNotNone(mine.shipped, f"{one.key} has changed: its `shipped` should be {variants.digest_of(mine.on_disk)}")
            texts = {}
            for numbers, place in mine.combinations():
                with self.subTest(one.key, numbers=numbers, place=place):
                    text = mine.text(numbers, place)
                    self.assertNotEqual(text, mine.solved(numbers))
                    self.assertEqual(mine.found_in(text), mine.shipped)
                    self.assertIsNone(mine.found_in(text + "// mine\n"))
                    self.assertIn("variant", solution.level_in(variants.apart(text, "variant"))[0])
                    texts[text] = numbers, place
                    found += 1
            self.assertEqual(len(texts), len(mine.combinations()), "some are alike")
            self.assertEqual(mine.choice(0), (0, 0))
            self.assertEqual(len({*map(mine.choice, range(300))}), catalogue.count_of_variants(one))
            for number in range(50):
                with self.subTest(one.key, number=number):
                    numbers, place = mine.choice(number)
                    for text in (mine.text(numbers, place), mine.solved(numbers)):
                        self.assertIn(mine.pin(number), text)
                    # The public solution is none of another variant's, where numbers differ.
                    if numbers:
                        self.assertNotIn(mine.pin(number), mine.solved())
                    self.assertEqual(len(mine.hints(number)), 2)
        self.assertGreater(found, 30)


class Take(Tree):
    """`tools/exercises variant` on a copy of an exercise."""
    def setUp(self):
        super().setUp()
        for name in ("tools/exercises", "tests/solutions/02", "tests/solutions/13", "chapters/02_tiling/exercises", "chapters/13_attention_backward/exercises"):
            shutil.copytree(ROOT / name, self.root / name)
        self.file = self.root / "chapters/02_tiling/exercises/exercise_2_missing_barrier.cuh"
        self.exercise = catalogue.find("2.2")

    def variant(self, number, *more, key="2.2"):
        return subprocess.run([sys.executable, "-B", "tools/exercises", "variant", key, str(number), *more], cwd=self.root,
                              capture_output=True, text=True)

    def test_a_variant_takes_the_place_of_an_unedited_file_and_of_no_other(self):
        shipped = self.file.read_text()
        mine = variants.Variants(self.exercise)
        other = next(number for number in range(1, 50) if mine.choice(number)[0] != mine.choice(17)[0])
        for number in (17, other, 0, 17):
            done = self.variant(number)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(self.file.read_text(), mine.handed_out(number))
            self.assertEqual(catalogue.said_in(self.file.read_text()), number or None)
        edited = self.file.read_text().replace("float sum", "float total")
        self.file.write_text(edited)
        done = self.variant(17)
        self.assertEqual((done.returncode, "has edits of yours" in done.stdout), (0, True))
        # Only the argument chooses the variant.
        self.file.write_text(edited.replace("Variant 17", "Variant 5"))
        done = self.variant(17)
        self.assertEqual((done.returncode, "its second line says that it is variant 5" in done.stdout), (0, True), done.stdout)
        self.file.write_text(edited)
        for number in (other, 0):
            done = self.variant(number)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))
            self.assertRegex(done.stderr, f"has edits of yours, and its numbers are not those of variant {number}")
        self.assertEqual(self.file.read_text(), edited)
        done = self.variant(17, "--out", str(self.root / "a.cuh"))
        self.assertEqual((done.returncode, "has been edited" in done.stderr), (2, True))
        self.file.write_text(shipped)
        for status in (0, 0):
            self.assertEqual(self.variant(17, "--out", str(self.root / "a.cuh")).returncode, status)
        self.assertEqual((self.root / "a.cuh").read_text(), mine.handed_out(17))
        (self.root / "a.cuh").write_text("mine")
        done = self.variant(17, "--out", str(self.root / "a.cuh"))
        self.assertEqual((done.returncode, (self.root / "a.cuh").read_text()), (2, "mine"))
        self.assertEqual(self.file.read_text(), shipped)

    def take_variants_from(self, name):
        """An exercise of the copy that has none, as a contributor's may."""
        file = next(self.root.glob(f"chapters/*/exercises/{name}.json"))
        data = json.loads(file.read_text())
        del data["variants"]
        file.write_text(json.dumps(data))

    def test_a_hint_says_of_which_variant_it_is(self):
        self.take_variants_from("exercise_2_whole_sectors")
        for key, more, begin in (("2.2", (), "Variant 0: "), ("2.2", ("--variant", "17"), "Variant 17: "), ("13.2", (), "")):
            done = subprocess.run([sys.executable, "-B", "tools/exercises", "hint", key, "1", *more], cwd=self.root,
                                  capture_output=True, text=True)
            exercise = catalogue.find(key)
            hints = variants.Variants(exercise).hints(int(more[1])) if more else exercise.data["hints"]
            self.assertEqual((done.returncode, done.stdout.replace("\n", " ").strip()), (0, begin + hints[0]), done.stderr)

    def test_a_teacher_sees_the_solution_of_a_variant(self):
        self.take_variants_from("exercise_2_whole_sectors")
        mine = variants.Variants(self.exercise)
        for key, number, said in (("2.2", 17, mine.solved(mine.choice(17)[0])), ("2.2", 0, mine.solved()),
                                  ("13.2", 0, solution.solve(catalogue.find("13.2").file.read_text(),
                                                             solution.edits_of(catalogue.find("13.2").file, ROOT).read_text()))):
            done = subprocess.run([sys.executable, "-B", "tools/exercises", "solution", key, str(number)], cwd=self.root,
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (0, said), done.stderr)

    def test_what_has_no_variants_says_so(self):
        self.take_variants_from("exercise_2_whole_sectors")
        done = self.variant(1, key="13.2")
        self.assertEqual((done.returncode, done.stderr),
                         (2, "exercise: 13.2 has no variants; docs/exercises.md lists the exercises that have some\n"))


if __name__ == "__main__":
    unittest.main()
