# SPDX-License-Identifier: MIT
"""Texts that no generator writes: figures quoted from a recorded output, and the notebook's commands."""
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import check_sources
import rooms

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))
import make_pages

ROOT = Path(__file__).resolve().parents[2]
SIDEBARS = "plots/results/h200/sidebars/"

# Chapter, figure as its README or notes.md quotes it, file, how its line in the file begins; the figure is a number of this line,
# rounded: the last one, or that at `at` of the first such line below a line that begins with `below`.
HELD = {"below": "the same while another kernel holds 8 SMs", "at": 0}
QUOTES = [
    ("08_persistent", "678", "chapter-8-grouped.txt", "one persistent launch", {}),
    ("08_persistent", "552", "chapter-8-grouped.txt", "a launch a product", {}),
    ("08_persistent", "695", "chapter-8-when-not.txt", "multicast", HELD),
    ("08_persistent", "514", "chapter-8-when-not.txt", "static", HELD),
]


def says(text, quoted, line, below="", at=-1):
    """Whether the number at `at` of the first line that begins so, below one that begins with `below`, is the quoted one, rounded."""
    lines = [row.strip() for row in text.splitlines()]
    begin = next((i for i, row in enumerate(lines) if row.startswith(below)), len(lines))
    rows = [row for row in lines[begin:] if row.startswith(line)]
    numbers = re.findall(r"\d+(?:\.\d+)?", rows[0]) if rows else []
    return bool(numbers) and int(float(numbers[at]) + 0.5) == int(quoted.replace(",", ""))


def last_levels(file):
    """The rows of the table of the last levels by GPU."""
    return re.findall(r"(?m)^\| (?:RTX|[A-Z]\d00).*$", (ROOT / file).read_text())


def anchor_of(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def words_at(link, root=ROOT):
    """The words of the text that a link of docs/pictures.md leads to: from its heading, or from the top of the page, to the next
    heading. Kernel code, tables, and what a picture says where it cannot be seen do not count."""
    name, _, fragment = link.partition("#")
    rows = (root / "docs" / name).read_text().split("\n")
    headings = [i for i, row in enumerate(rows) if re.match("#+ ", row)]
    begin = next(i for i in headings if not fragment or anchor_of(rows[i].lstrip("#")) == fragment)
    end = next((i for i in headings if i > begin), len(rows))
    text = re.sub(r"(?s)```.*?```|<!--.*?-->|<picture>.*?</picture>", "", "\n".join(rows[begin + 1:end]))
    text = re.sub(r"(?m)^\|.*$|!\[[^\]]*\]\([^)]*\)", "", text)
    return len(re.sub(r"\]\([^)]*\)", "", text).split())


# The questions that a text of at most 200 words and a picture answer: how each begins in docs/pictures.md.
TEN = ("what is a sector", "what is a bank conflict? what does padding change", "how does a swizzle permute addresses, and why XOR",
       "what is a descriptor", "what is an mbarrier's phase", "what is double buffering", "what is ping-pong",
       "why does online softmax work", "what to do at 60 % of the roof", "how to start a ladder of your own, a capstone")


class Questions(unittest.TestCase):
    def test_ten_have_an_answer_of_at_most_200_words(self):
        page = (ROOT / "docs/pictures.md").read_text()
        for question in TEN:
            with self.subTest(question):
                row = re.search(rf"(?m)^\| {re.escape(question)}.*$", page)[0]
                links = re.findall(r"\]\(([^)]*)\)", row)
                words = words_at(links[0])
                self.assertTrue(20 < words <= 200, f"{links[0]} has {words} words")

    def test_a_longer_one_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "docs").mkdir()
            (root / "docs/a.md").write_text("# A\n\n## 1 \u00b7 b\n" + "word " * 201 + "\n```\ncode\n```\n| a | b |\n\n![alt](x)\n## c\nd\n")
            self.assertEqual([words_at("a.md#1--b", root), words_at("a.md#c", root)], [201, 1])


# What a rule of the model may be known from. MMA-Sim is another model, and nobody has compared it here.
KNOWN = r"documents|ptxas|code that runs|measured here|public vectors|machine code|CUTLASS"


def unfounded(text):
    """The rows of tables of evidence, as in docs/simt.md, that neither have some nor say `assumed`; or their number, if none."""
    rows, in_table = [], False
    for row in text.split("\n"):
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if not row.startswith("|"):
            in_table = False
        elif cells[-1] == "evidence":
            in_table = True
        elif in_table and not set(row) <= set("|-"):
            rows.append((cells[0], cells[-1]))
    bare = [name for name, evidence in rows if not re.search(rf"\b(?:{KNOWN}|assumed)\b", evidence)]
    return bare or len(rows)


class Evidence(unittest.TestCase):
    def test_what_has_none_is_marked(self):
        rows = unfounded((ROOT / "docs/simt.md").read_text())
        self.assertIsInstance(rows, int, rows)
        self.assertGreater(rows, 50)

    def test_what_is_not_is_found(self):
        table = "| rule | evidence |\n|---|---|\n| a | documents |\n| b | assumed; MMA-Sim says so |\n"
        self.assertEqual(unfounded(table), 2)
        for evidence in ("MMA-Sim says so", "", "it is so"):
            self.assertEqual(unfounded(f"{table}| c | {evidence} |\n\n| d | e |\n"), ["c"])


def lists_of_levels():
    """{name of a level or ladder: files of its levels}"""
    files = {}
    for listed in (ROOT / "docs/levels").glob("*.json"):
        for level in json.loads(listed.read_text()):
            for name in (level["name"], level["ladder"]):
                files.setdefault(name, set()).add(level["file"])
    return files


class Named:
    """What a table may name: tests, exercises, files, and levels with their claims."""

    def __init__(self):
        self.levels = lists_of_levels()
        self.claiming = {name for name, files in self.levels.items()
                         if any("Claims claims(" in (ROOT / file).read_text() for file in files)}
        self.tests = "".join(file.read_text() for file in (ROOT / "tests").glob("*.cpp"))
        self.methods = {}
        for file in [*ROOT.glob("tests/**/*.py"), *ROOT.glob("plots/tests/*.py")]:
            for name, body in re.findall(r"(?ms)^class (\w+).*?:\n(.*?)(?=^\S|\Z)", file.read_text()):
                self.methods.setdefault(name, set()).update(re.findall(r"def (test_\w+)", body))
        self.topics = {f"capstone_topics_{path.name.replace('-', '_')}" for path in ROOT.glob("tools/capstone/topics/*")}
        self.scripts = set(re.findall(r"add_test\(NAME (\w+)", (ROOT / "tests/CMakeLists.txt").read_text()))

    def is_test(self, name):
        suite, _, test = name.partition(".")
        if "/" in name:
            return (ROOT / name).is_file()
        if not test:
            return name in self.topics | self.scripts or f'"{name}"' in self.tests
        return test in self.methods.get(suite, ()) or bool(re.search(rf"TEST(?:_F)?\({suite},\s+{test}\)", self.tests))

    def wrong_in(self, row):
        """What is wrong with a row `| it teaches | here | test |`, or None."""
        cells = [cell.strip() for cell in row.strip().strip("|").split("|")]
        if len(cells) != 3:
            return f"{len(cells)} cells"
        _, place, test = cells
        if not re.search(r"\]\([^)]+\)|[Cc]hapters? \d|`\w+/", place):
            return "names no place"
        for name in re.findall(r"`(\w+/[\w./-]+)`", place):
            if not (ROOT / name).exists():
                return f"no {name}"
        for number, order in re.findall(r"(?:[Ee]xercises?|and|\() ?(\d+)\.(\d+)", f"{place} {test}"):
            if not list(ROOT.glob(f"chapters/{int(number):02}_*/exercises/exercise_{order}_*")):
                return f"no exercise {number}.{order}"
        if re.match(r"no claim: \w", test):
            return None
        claims = re.search(r"claims of ((?:`\w+`(?:, )?)+)", test)
        levels = re.findall(r"`(\w+)`", claims[1]) if claims else []
        for name in levels:
            if name not in self.claiming:
                return f"no level with claims: {name}"
        # What stands in the book's data is named by a kind: `stages` in [pictures](...).
        rest = re.sub(r"kind `\w+`|inputs `\w+`|problems that `\w+`", "", test.replace(claims[0], "") if claims else test)
        tests = re.findall(r"`([^`]+)`", rest)
        for name in tests:
            if not self.is_test(name):
                return f"no test {name}"
        return None if levels or tests else "names no test"


def taught(text):
    """The rows of the tables of docs/elsewhere.md."""
    return [row for row in re.findall(r"(?m)^\| .*$", text) if not row.startswith("| it teaches |")]


class Elsewhere(unittest.TestCase):
    def test_every_row_names_its_place_and_its_test(self):
        named, rows = Named(), taught((ROOT / "docs/elsewhere.md").read_text())
        self.assertGreater(len(rows), 60)
        self.assertEqual([(row, named.wrong_in(row)) for row in rows if named.wrong_in(row)], [])

    def test_others_are_refused(self):
        named = Named()
        good = "[chapter 1](../chapters/01_coalescing/README.md), exercise 1.1"
        for place, test, wrong in (
                (good, "claims of `coalesced`", None), (good, "claims of `coalesced`, `tile`; `Tuner.TheSwitch`", None),
                (good, "no claim: a habit", None), (good, "`Quotes.test_another_figure_is_not`", None),
                (good, "`capstone_topics_top_k`", None), (good, "`exercises_to_read` (2.13)", None),
                (good, "-", "names no test"), (good, "", "names no test"), (good, "its claims", "names no test"),
                (good, "no claim", "names no test"), (good, "kind `waves` in [pictures](pictures.md)", "names no test"),
                (good, "claims of `coalesced`, `sung`", "no level with claims: sung"),
                (good, "`Tuner.Sings`", "no test Tuner.Sings"), (good, "`Quotes.test_sings`", "no test Quotes.test_sings"),
                (good, "`Advice.test_another_figure_is_not`", "no test Advice.test_another_figure_is_not"),
                (good, "`tests/sings.txt`", "no test tests/sings.txt"), (good, "`capstone_topics_song`", "no test capstone_topics_song"),
                (good, "`exercises_to_read` (2.99)", "no exercise 2.99"),
                ("somewhere", "claims of `tile`", "names no place"), ("exercise 1.99 of chapter 1", "claims of `tile`", "no exercise 1.99"),
                ("`common/device/sings.cuh`", "claims of `tile`", "no common/device/sings.cuh")):
            with self.subTest(place=place, test=test):
                self.assertEqual(named.wrong_in(f"| it | {place} | {test} |"), wrong)
        self.assertEqual(named.wrong_in("| it | chapter 1 |"), "2 cells")


def spilling(table):
    """(accumulators per thread, bytes of stack) of each row of the table of tiles in docs/languages.md. The tile is that of
    all its CTAs."""
    for m, n, ctas, warps, stack in re.findall(r"(?m)^\| (\d+) x (\d+)[^|]*\| (\d+) \| (\d+) \| \d+ \| ([\d,]+)(?: bytes)? \|", table):
        yield int(m) * int(n) // int(ctas) // (32 * int(warps)), int(stack.replace(",", ""))


# A parameter of a kernel that is tuned, and the words for it in chapter 11's table.
PARAMETERS = {
    "rmsnorm": {"threads": "threads per block", "blocks_per_sm": "blocks per SM"},
    "rope": {"threads": "threads per block", "heads": "heads per thread"},
    "gemm": {"m": "tile", "n": "tile", "k": "tile", "stages": "stages", "cluster": "cluster 1 or 2", "ping_pong": "schedule",
             "group": "raster order", "share": "stream-K"},
    "attention": {"queries": "queries and keys of a tile", "keys": "queries and keys of a tile", "stages": "stages",
                  "cluster": "cluster 1 or 2", "group": "heads at a time"},
}


def searched(page):
    """{kernel: what chapter 11's table says is searched}"""
    kernels = re.findall(r"`(\w+)`", re.search(r"(?m)^\| \|( `\w+` \|)+$", page)[0])
    cells = re.search(r"(?m)^\| searched \|(.*)\|$", page)[1].split("|")
    return {kernel: {each.strip() for each in cell.split(",")} for kernel, cell in zip(kernels, cells, strict=True)}


def caps(text):
    """[(registers, blocks)] of the sentence on caps in chapter 2's notes."""
    found = re.search(r"give (\d+) \([^)]*\), (\d+),\s+(\d+) or (\d+)\s+registers for 1, 2, 3 or 4 blocks", text)
    return list(zip(map(int, found.groups()), (1, 2, 3, 4)))


def at_60_percent(text):
    """The shares of the FP32 roof that docs/profiling.md has of chapters 2 and 4."""
    found = re.search(r"Chapter 2 ends there, at\s+(\d+) % of the FP32 roof, and \[chapter 4\]\([^)]*\) goes on to (\d+) %", text)
    return {"2": found[1], "4": found[2]}


class Advice(unittest.TestCase):
    """What the guides say of kernels in general, held against what is recorded or follows by arithmetic."""

    def test_a_tile_spills_where_its_accumulator_needs_more_than_255_registers(self):
        rows = list(spilling((ROOT / "docs/languages.md").read_text()))
        self.assertGreaterEqual(len(rows), 6)
        self.assertEqual([row for row in rows if (row[0] > 255) != (row[1] > 0)], [])
        self.assertEqual(list(spilling("| 128 x 256 (new) | 1 | 4 | 256 | 1,808 bytes | 658 | 0 |")), [(256, 1808)])

    def test_a_cap_on_registers_admits_so_many_blocks(self):
        def most(blocks):  # registers per thread, in steps of 8, with 256 threads per block; 255 is the instruction set's limit
            return min(255, 65536 // (256 * blocks) // 8 * 8)
        text = (ROOT / "chapters/02_tiling/notes.md").read_text()
        self.assertEqual(caps(text), [(most(blocks), blocks) for blocks in (1, 2, 3, 4)])
        self.assertNotEqual(caps(text.replace(" 80 or", " 88 or")), [(most(blocks), blocks) for blocks in (1, 2, 3, 4)])

    def test_what_is_searched_is_what_the_class_of_the_kernel_says(self):
        page = (ROOT / "chapters/11_autotuning/README.md").read_text()
        found = searched(page)
        for kernel, words in PARAMETERS.items():
            with self.subTest(kernel):
                recorded = json.loads((ROOT / f"chapters/11_autotuning/recorded/{kernel}_nvidia_h200.json").read_text())
                values = {}
                for configuration in recorded["configurations"].values():
                    for name, value in configuration.items():
                        values.setdefault(name, set()).add(value)
                self.assertEqual(set(values), set(words))
                self.assertTrue(all(len(of_it) > 1 for of_it in values.values()), values)
                self.assertEqual(found[kernel], set(words.values()))
        # The two that memory limits search for bytes in flight, and no tile.
        for kernel in ("rmsnorm", "rope"):
            self.assertNotIn("tile", found[kernel])
        self.assertNotEqual(searched(page.replace("blocks per SM |", "blocks per SM, tile |"))["rmsnorm"], found["rmsnorm"])

    def test_the_example_at_60_percent_is_the_readmes(self):
        page, readme = (ROOT / "docs/profiling.md").read_text(), (ROOT / "README.md").read_text()
        for chapter, share in at_60_percent(page).items():
            row = re.search(rf"(?m)^\| {chapter} \| .*$", readme)[0]
            self.assertIn(f"| {share} % of FP32 FMA |", row)
        self.assertNotIn(f"| {at_60_percent(page.replace('at 58 %', 'at 59 %').replace('58 % of', '59 % of'))['2']} % of FP32 FMA |",
                         readme)


class Quotes(unittest.TestCase):
    def test_a_quoted_figure_is_in_the_recorded_output(self):
        for chapter, quoted, file, line, place in QUOTES:
            with self.subTest(file=file, quoted=quoted):
                text = "".join(page.read_text() for page in (ROOT / "chapters" / chapter).glob("*.md"))
                self.assertIn(SIDEBARS + file, text)
                self.assertIn(quoted, text)
                self.assertTrue(says((ROOT / SIDEBARS / file).read_text(), quoted, line, **place))

    def test_another_figure_is_not(self):
        text = "  one persistent launch                677.5 TFLOP/s \n"
        self.assertTrue(says(text, "678", "one persistent launch"))
        self.assertFalse(says(text, "679", "one persistent launch"))
        self.assertFalse(says(text, "678", "a launch a product"))
        text = "a  1.0 2.0\nheld:\n a  3.0 4.0\n"
        self.assertTrue(says(text, "3", "a", "held", 0))
        self.assertFalse(says(text, "1", "a", "held", 0))
        self.assertFalse(says(text, "3", "a", "gone", 0))

    def test_every_recorded_output_is_cited(self):
        texts = "".join(file.read_text() for room in ("chapters/*", "library/*", "docs")
                        for file in ROOT.glob(f"{room}/*.md"))
        files = sorted((ROOT / SIDEBARS).glob("*.txt"))
        self.assertTrue(files)
        for file in files:
            self.assertIn(SIDEBARS + file.name, texts, "recorded, and no text says so")


class Notebook(unittest.TestCase):
    def test_its_commands_are_verbs_of_run(self):
        cells = json.loads((ROOT / "notebooks/cookbook.ipynb").read_text())["cells"]
        code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        commands = re.findall(r"^!\./run ?(\S*)", code, flags=re.MULTILINE)
        self.assertIn("", commands)
        self.assertIn("test", commands)
        known = set(re.findall(r"^\./run (\w+)", subprocess.run(["./run", "help"], cwd=ROOT, capture_output=True, text=True,
                                                                 check=True).stdout, flags=re.MULTILINE))
        chapters = {line.split()[0] for line in (ROOT / "chapters/contents.txt").read_text().splitlines()}
        for command in commands:
            self.assertTrue(command in {"", "--print-backend"} | known | chapters, command)
        for source in ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]:
            plain = "\n".join(line for line in source.split("\n") if not line.startswith("!"))
            compile(plain, "cell", "exec")


class Habits(unittest.TestCase):
    def test_the_change_log_begins_with_the_version(self):
        version = (ROOT / "VERSION").read_text().strip()
        self.assertRegex(version, r"^\d+\.\d+\.\d+$")
        self.assertEqual(re.search(r"^## (\S+) - ", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1], version)

    def test_pre_commit_has_the_tools_of_ci(self):
        hooks = (ROOT / ".pre-commit-config.yaml").read_text()
        self.assertIn(f"[{(ROOT / '.ci/ruff.txt').read_text().strip()}]", hooks)
        self.assertIn("[clang-format==14.", hooks)  # .ci/run takes clang-format-14 first

    def test_ten_first_levels(self):
        page = (ROOT / "docs/first_levels.md").read_text()
        self.assertEqual(re.findall(r"^### (\d+)\. ", page, re.MULTILINE), [str(n) for n in range(1, 11)])
        for row in ("ladder", "idea", "files", "claims"):
            self.assertEqual(page.count(f"\n| {row} |"), 10, row)


def misnamed(stem, names):
    """Why the levels called `names` cannot be in the file `stem`, or None. A file holds the level that it is called by,
    or variants of one idea: `level_5_grouped` holds `grouped_4` and `grouped_8`."""
    match = re.fullmatch(r"(?:[a-z0-9]+_)?level_(?:\d+_)?([a-z0-9_]+)", stem)
    if not match:
        return "is not called level_N_<name>"
    if not names:
        return "names no level"
    if names != [match[1]] and not all(name.startswith(match[1] + "_") for name in names):
        return f"holds {', '.join(names)}"
    return None


def unlisted(level, ladder):
    """The levels of a file that its chapter's ladder.hpp does not list. CMake includes the file all the same."""
    made = [name for name, own in re.findall(r"^struct (\w+)[^;{]*\{\n(.*?)^\};", level, re.MULTILINE | re.DOTALL)
            if 'name = "' in own]
    made += re.findall(r"^inline LevelEntry (\w+)\(const tune::Space", level, re.MULTILINE)
    ladder = re.sub(r"//[^\n]*", "", ladder)
    return [name for name in made if not re.search(rf"\b{name}\b", ladder)]


class LastLevels(unittest.TestCase):
    def test_the_readme_has_the_table_of_which_tool_and_its_levels_are_there(self):
        rows = last_levels("docs/which_tool.md")
        self.assertEqual((len(rows), last_levels("README.md")), (4, rows))
        for name, chapter in re.findall(r"`(\w+)` of chapter (\d+)", " ".join(rows)):
            self.assertTrue(list(ROOT.glob(f"chapters/{int(chapter):02}_*/*level_*_{name}.cuh")), name)


class LevelFiles(unittest.TestCase):
    def test_a_file_is_called_by_its_level(self):
        files = sorted(ROOT.glob("chapters/*/*level_*.cuh"))
        self.assertTrue(files)
        for file in files:
            with self.subTest(file.name):
                names = re.findall(r'\bname = "([^"]*)"', file.read_text())
                self.assertIsNone(misnamed(file.stem, names))

    def test_a_ladder_lists_every_level(self):
        for file in sorted(ROOT.glob("chapters/*/*level_*.cuh")):
            with self.subTest(file.name):
                self.assertEqual(unlisted(file.read_text(), (file.parent / "ladder.hpp").read_text()), [])

    def test_a_level_that_no_ladder_lists_is_found(self):
        level = 'struct Config {};\nstruct Tile : Level {\n  static constexpr LevelText text{\n      .name = "tile",\n  };\n};\n'
        self.assertEqual(unlisted(level, "rows<Naive, Tile>()"), [])
        self.assertEqual(unlisted(level, "rows<Naive, Tiled>()  // Tile"), ["Tile"])

    def test_another_name_is_found(self):
        self.assertIsNone(misnamed("level_5_grouped", ["grouped_4", "grouped_8"]))
        self.assertIsNone(misnamed("decode_level_1_split", ["split"]))
        for stem, names in (("level_3_swizzled", ["swizzle_128"]), ("level_2_tensor_cores", ["tensor cores"]),
                            ("level_5_grouped", ["grouped_4", "hilbert"]), ("level_1_tile", []),
                            ("level-1-tile", ["tile"]), ("tile_1", ["tile_1"])):
            with self.subTest(stem):
                self.assertIsNotNone(misnamed(stem, names))


# One word for one thing: what the book does not say, and what it says instead. The patterns see prose only.
UNIT = (r"(?:bits?|bytes|KB|MB|registers?|accumulators?|clocks?|threads?|warps?|warpgroups?|blocks?|barriers?|"
        r"requests?|sectors?|wavefronts?|words?|elements?|operations|FLOPs?|FMAs?|exponentials?|instructions?)")
EACH = (r"(?:SM|multiprocessor|cluster|block|warp|warpgroup|thread|lane|tile|stage|step|clock|second|element|score|"
        r"pair|row|request|k-block)")
FORBIDDEN = {
    r"(?<![Dd]ot )(?<!dot-)(?<![Oo]uter )\bproducts?\b": "GEMM, matrix multiplication",
    r"\brungs?\b|\brows? (?:of|in) (?:a|the|this|that) ladder\b|\b[Rr]ow 0 is\b": "level",
    r"\b(?:its|their|own|equal|exact|block's|output's) shares?\b|\bshar(?:e|ed|es|ing) out\b|\bwarp's part\b":
        "tile, k-block",
    r"\b(?:heard|told)\b": "full, empty",
    r"(?<!issue )(?<!issue-)\bslots?\b": "stage",
    r"(?<!streaming )\bmultiprocessors?\b": "SM",
    r"\b(?:lies?|lying|lay) apart\b|\btimes something\b": "stride, leading dimension",
    r"\b(?:hang(?:s|ing)?|sticks?) (?:over|out)\b|\barriv(?:e|es|ing) as zeros\b": "out of bounds, zero-filled",
    r"\bdeals?\b|\bdealt\b|\bdealing\b": "assign, distribute",
    r"\bsums (?:live|stay|are kept) in registers\b|\bregisters? (?:of|for) sums\b": "accumulator",
    r"\border (?:of|in) (?:the )?tiles\b": "raster order",
    r"\bconditions? (?:per|for each|for every) (?:element|load|store)\b": "predicate, mask",
    r"\brefus(?:e|es|ed|al|als|ing)\b": "supported, unsupported",
    r"\bso many\b": "a number, an upper bound",
    rf"\b{UNIT} an? {EACH}\b(?! of)": "per",
    r"\bseeded bugs?\b": "planted bug",
    r"\bmain ladders?\b": "headline ladder",
    r"\bcache lines?\b": "line",
    r"\bcycles?\b": "clock",
    r"\b(?:whoever|[Ss]omebody)\b": "the thread, the warp",
    r"\b[Tt]iles? of (?:keys|queries)\b": "key tile, query tile",
}
# Globs of git ls-files: add others when their comments follow the table.
FORBIDDEN_IN = ("*.md", "common/device/*.cuh", "chapters/*.cuh",
                *(f"{folder}/*.{suffix}" for suffix in ("hpp", "cpp", "cu")
                  for folder in ("chapters", "common/bench", "common/harness", "common/backend", "tools/grading")),
                # The products of its intrinsics are of two numbers; the slots of its clocks are no stages.
                ":!common/backend/simt/language/intrinsics.hpp", ":!common/backend/simt/tracer/races.hpp")


PICTURE = re.compile(r"^!\[[^\n]*\]\([^\n]*\.svg\)$", re.MULTILINE)  # a generated line, as long as it is


def prose(markdown):
    """(line number, line) of the Markdown that is prose: no code, no table, no generated result, no address."""
    text = re.sub(r"<!-- results -->.*?<!-- /results -->|<!-- ([\w ]+): begin -->.*?<!-- \1: end -->"
                  r"|^```.*?^```[ \t]*$|<!--.*?-->",
                  lambda match: re.sub(r"[^\n]", "", match[0]), PICTURE.sub("", markdown), flags=re.MULTILINE | re.DOTALL)
    code = False  # inside a block indented by four, which only an empty line opens
    before = ""
    for number, line in enumerate(text.split("\n"), 1):
        code = bool(re.match(r" {4,}\S", line)) and (code or not before.strip()) or code and not line.strip()
        before = line
        if not code and not line.lstrip().startswith("|"):
            yield number, re.sub(r"\]\([^)\s]+\)|https?://\S+", "]", line)


# What tests, recordings and command lines quote: a name (a string of one word, a tag of lines), a message that ends the
# program or says why a problem is unsupported, a limit that a configuration exceeds.
QUOTED = re.compile(r'"[^"\s]*"|//[ ]\[\w+\]$|\b(?:throw\b|Support::no|require_dims)[^;]*;|"[^"\n]* > [^"\n]*"', re.MULTILINE)


def comments_and_strings(source):
    """(line number, line) of what a C++ source says to people and nothing quotes."""
    source = re.sub(r"^#include .*$", "", source, flags=re.MULTILINE)
    source = QUOTED.sub(lambda match: re.sub(r"[^\n]", "", match[0]), source)
    for match in check_sources.COMMENT.finditer(source):
        first = source.count("\n", 0, match.start()) + 1
        for offset, line in enumerate(match[0].split("\n")):
            yield first + offset, re.sub(r'^\s*(?:///?|"|/?\*+)|"$', "", line)


def forbidden(text, suffix=".md"):
    """What a text says in another word than the book's: (line number, word, what to say)."""
    lines = [""] * (text.count("\n") + 1)
    for number, line in (prose if suffix == ".md" else comments_and_strings)(text):
        lines[number - 1] += " " * bool(lines[number - 1]) + re.sub(r"`[^`]*`", "``", line).strip()
    said = "\n".join(lines)
    return [(said.count("\n", 0, match.start()) + 1, match[0], instead) for pattern, instead in FORBIDDEN.items()
            for match in re.finditer(pattern.replace(" ", r"\s"), said)]


def long_lines(markdown, most=100):
    return [number for number, line in prose(markdown) if len(line.rstrip()) > most]


def accidental_lists(markdown):
    """The numbers of lines that a wrapped sentence begins with a number and a full stop: Doxygen makes a list of it."""
    lines = list(prose(markdown))
    return [number for (_, before), (number, line) in zip(lines, lines[1:])
            if re.match(r" {0,3}\d+[.)] ", line) and before.strip() and not re.match(r" {2,}| *(?:\d+[.)]|[-+*#<]) ?", before)]


LONGEST = 3000  # words of a chapter's README outside its results
RESULTS = re.compile(r"<!-- results -->.*?<!-- /results -->", re.DOTALL)
PARTS = ("## What you will learn", "## Results", "## Exercises", "## What would you try next?")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")


def lesson_problems(readme, level_files):
    """What a chapter's README lacks: the order of its parts, a link to every level's file; or that it is too long."""
    outside = RESULTS.sub("", readme)
    words = len(outside.split())
    if words > LONGEST:
        yield f"{words} words outside its results; at most {LONGEST}: details belong into notes.md"
    headings = [line for line in re.sub(r"^```.*?^```", "", readme, flags=re.MULTILINE | re.DOTALL).split("\n")
                if line.startswith("## ")]
    if [heading for heading in headings if heading in PARTS] != list(PARTS):
        yield f"its parts are not {', '.join(PARTS)}"
    elif headings.index(PARTS[1]) < 2 or headings[0] != PARTS[0] or headings[-1] != PARTS[-1]:
        yield "the lesson does not stand between what one will learn and the results"
    elif readme.index("<!-- results -->") < readme.index(PARTS[1]):
        yield "its results stand before the heading Results"
    if "<!-- quote " not in outside:
        yield "it quotes no line of a kernel"
    yield from (f"it does not link to {name}" for name in level_files if f"]({name})" not in outside)


def dead_links(file, text):
    """The links of a page to files and headings that are not there."""
    for target in LINK.findall(re.sub(r"^```.*?^```|`[^`\n]*`", "``", text, flags=re.MULTILINE | re.DOTALL)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, fragment = target.partition("#")
        other = (file.parent / path).resolve() if path else file
        if not other.exists():
            yield f"{target} is not there"
        elif fragment and fragment not in map(make_pages.slug, HEADING.findall(text if other == file else other.read_text())):
            yield f"{target}: no such heading"


class Lessons(unittest.TestCase):
    GOOD = ("# 1\n\n## What you will learn\n\nA [level](level_0_a.cuh).\n\n## The levels\n\n<!-- quote level_0_a.cuh a -->\n\n"
            "## Results\n\n<!-- results -->\n<!-- /results -->\n\n## Exercises\n\n## What would you try next?\n")

    def test_a_readme_is_a_lesson(self):
        for folder in sorted(ROOT.glob("chapters/[0-9]*")):
            with self.subTest(folder.name):
                levels = [file.name for file in sorted(folder.glob("*level_*.cuh"))]
                self.assertTrue(levels)
                self.assertEqual(list(lesson_problems((folder / "README.md").read_text(), levels)), [])

    def test_what_is_no_lesson_is_found(self):
        self.assertEqual(list(lesson_problems(self.GOOD, ["level_0_a.cuh"])), [])
        results = "<!-- results -->\n" + "word " * 4000
        self.assertEqual(list(lesson_problems(self.GOOD.replace("<!-- results -->", results), ["level_0_a.cuh"])), [])
        for text in (self.GOOD + "word " * 3000, self.GOOD.replace("## Exercises\n", ""),
                     self.GOOD.replace("## The levels\n", ""), self.GOOD + "## Sidebars\n",
                     self.GOOD.replace("## Results", "## The levels").replace("## The levels", "## Results", 1),
                     self.GOOD.replace("# 1\n", "# 1\n\n<!-- results -->\n"),
                     self.GOOD.replace("<!-- quote ", "<!-- "), self.GOOD.replace("(level_0_a.cuh)", "(level_1.cuh)")):
            with self.subTest(text[:200]):
                self.assertTrue(list(lesson_problems(text, ["level_0_a.cuh"])))

    def test_links_lead_somewhere(self):
        found = [f"{file.relative_to(ROOT)}: {problem}" for file in tracked("*.md") for problem in
                 dead_links(file, file.read_text())]
        self.assertEqual(found, [], "\n" + "\n".join(found))

    def test_a_dead_link_is_found(self):
        text = "# A b\n\n## `c`, d: e?\n\n"
        for link, problems in (("#c-d-e", 0), ("#a-b", 0), ("#c", 1), ("docs/adding.md", 0), ("docs/adding.md#a-chapter", 0),
                               ("docs/adding.md#gone", 1), ("docs/gone.md", 1), ("https://gone", 0)):
            with self.subTest(link):
                self.assertEqual(len(list(dead_links(ROOT / "README.md", f"{text}[x]({link})\n"))), problems)


def tracked(*globs):
    """The files of the repository that match, of which there must be some."""
    files = rooms.files_of(ROOT, *globs, new=False)
    assert files, globs
    return files


class Words(unittest.TestCase):
    def test_one_word_for_one_thing(self):
        found = [f"{file.relative_to(ROOT)}:{number}: '{word}'; say: {instead}" for file in tracked(*FORBIDDEN_IN)
                 for number, word, instead in forbidden(file.read_text(), file.suffix)]
        self.assertEqual(found, [], "\n" + "\n".join(found))

    def test_lines_wrap_at_100_columns(self):
        found = [f"{file.relative_to(ROOT)}:{number}" for file in tracked("*.md")
                 for number in long_lines(file.read_text())]
        self.assertEqual(found, [])

    def test_no_sentence_becomes_a_list(self):
        found = [f"{file.relative_to(ROOT)}:{number}" for file in tracked("*.md")
                 for number in accidental_lists(file.read_text())]
        self.assertEqual(found, [])
        self.assertEqual(accidental_lists("Tiles of 256 x\n128. A thread.\n\n1. One\n2. Two\n   and\n3. Three\n"), [2])

    def test_microseconds_are_us(self):
        """As the programs print them, whose output is ASCII."""
        found = [str(file.relative_to(ROOT)) for file in tracked("*.md", "*.py", "*.cpp", "*.hpp", "*.cu", "*.cuh", "*.svg")
                 if re.search("[\u00b5\u03bc]s\\b", file.read_text())]
        self.assertEqual(found, [])

    def test_another_word_is_found(self):
        for text in ("A tiled product has reuse.", "It is a rung.", "The last row of the ladder.", "Each has its share.",
                     "The stage is told.", "A slot is free.", "One multiprocessor waits.", "Rows that lie apart.",
                     "Rows 16 bytes times something.", "What hangs over the edge.", "It arrives as zeros.",
                     "Tiles are dealt to blocks.", "A register of sums.", "The order of tiles.", "A condition per load.",
                     "Odd shapes are refused.", "At most so many.", "64 registers a thread.", "227 KB a block.",
                     "1,024 threads an SM.", "64 registers a\nthread.", "- It has 64 registers a\n  thread.",
                     "Find the seeded bug.", "It prints its main ladder.", "A cache\nline has 128 bytes.", "Thirty cycles.",
                     "It frees whoever waits.", "Somebody waits.", "Tiles of keys."):
            with self.subTest(text):
                self.assertEqual(len(forbidden(text)), 1)

    def test_in_a_source_only_comments_and_strings_count(self):
        source = '#include "a/product.hpp"\nint product, slot;  // 64 registers\n/// a thread\nauto s = "a rung";\n'
        self.assertEqual(sorted(each[:2] for each in forbidden(source, ".cuh")), [(2, "registers\na thread"), (4, "rung")])

    def test_what_others_quote_is_no_prose(self):
        for source in ('loads().on("product");  // [product]\n', 'throw BadSize("a product takes " +\n  "products");\n',
                       'return Support::no("cuBLAS refuses it");\n', 'return n + " registers a thread > 240";\n'):
            with self.subTest(source):
                self.assertEqual(forbidden(source, ".cuh"), [])
                self.assertEqual(len(forbidden(source + "// a rung\n", ".cuh")), 1)

    def test_the_books_own_words_pass(self):
        for text in ("A dot product and an outer product.", "Dot products are exact.", "- A dot\n  product.",
                     "Two issue slots.", "64 registers per thread.",
                     "SM: streaming multiprocessor.", "`product`", "    a product\n", "```\na product\n```\n",
                     "| a product |", "<!-- results -->\na product\n<!-- /results -->", "Blocks share L2."):
            with self.subTest(text):
                self.assertEqual(forbidden(text), [])

    def test_a_long_line_is_found(self):
        self.assertEqual(long_lines("x" * 100 + "\n" + "word " * 21 + "\n"), [2])
        self.assertEqual(long_lines(f"See [this]({'x' * 100}).\n\n    {'x' * 120}\n\n| {'x' * 120} |\n"), [])


if __name__ == "__main__":
    unittest.main()
