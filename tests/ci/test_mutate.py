# SPDX-License-Identifier: MIT
"""tests/mutate on a project of one function (tests/mutation/toy), and what its operators do to a text."""
import json
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))
from mutation import operators, record  # noqa: E402
from tree import Tree  # noqa: E402


def edits(source, operator):
    """The lines that the mutants of one operator change, as they read afterwards."""
    found = []
    for mutant in operators.mutants("a.cpp", source):
        if mutant.operator == operator:
            before, after = source.split("\n"), mutant.apply(source).split("\n")
            found.append(" ".join(new.strip() for old, new in zip(before, after) if old != new))
            assert len(before) == len(after), "line numbers moved"
    return found


class Operators(unittest.TestCase):
    def test_each_one(self):
        for operator, line, expected in [
            ("drop-sync", "  cp_async_wait<0>();", [";"]),
            ("drop-sync", "  int waited = 0;", []),
            ("weaken-sync", "  cluster_sync();", ["__syncthreads();"]),
            ("drop-reset", "  flag = 0;", [";"]),
            ("drop-reset", "  flag = 1;", []),
            ("drop-statement", "  out[i] = in[i];", [";"]),
            ("drop-statement", "  const int i = 3;", []),
            ("drop-statement", "  Shape shape(3);", []),
            ("drop-guard", "  if (i >= n) return;", [";"]),
            ("drop-guard", "  if (i >= n) { return; }", [";"]),
            ("negate-condition", "  if (a && b) c();", ["if (!(a && b)) c();"]),
            ("weaken-condition", "  if (f(a, b) && c < d) e();", ["if (c < d) e();", "if (f(a, b)) e();"]),
            ("weaken-condition", "  const bool x = a || b;", ["const bool x = b;", "const bool x = a;"]),
            ("weaken-condition", "  auto&& x = a;", []),
            ("shift-bound", "  for (int i = 0; i < n; ++i) f(i + 1);",
             ["for (int i = 0; i <= n; ++i) f(i + 1);", "for (int i = 0; i < n; ++i) f(i);",
              "for (int i = 0; i < n - 1; ++i) f(i + 1);"]),
            ("shift-index", "  out[i] = 0;", ["out[i + 1] = 0;"]),
            ("shift-index", "  float tile[32];", []),
            ("invert-comparison", "  if (a == b) c();", ["if (a != b) c();"]),
            ("invert-comparison", "  std::vector<int> a;", []),
            ("swap-pair", "  f(row, col);", ["f(col, col);", "f(row, row);"]),
            ("swap-pair", "  int row, col;", ["int row, row;"]),
            ("swap-arguments", "  copy(to, from, 3);", ["copy(from, to, 3);"]),
            ("swap-extremum", "  i = std::min(a, b);", ["i = std::max(a, b);"]),
            ("swap-arithmetic", "  a = b / c;", ["a = b * c;"]),
            ("swap-arithmetic", "  float* c;", []),
            ("widen-bound", "  if (error > tolerance) f();", ["if (error > 2 * tolerance) f();"]),
            ("widen-bound", "  bound[i] = 3 * ulp;", ["bound[i] = 2 * (3 * ulp);"]),
            ("narrow-integer", "  std::int64_t i = 0;", ["int i = 0;"]),
            ("change-constant", "  a = 0.5f * b + 7;", ["a = 2 * 0.5f * b + 7;", "a = 0.5f * b + 8;"]),
        ]:
            with self.subTest(operator=operator, line=line):
                self.assertEqual(edits(f"void f() {{\n{line}\n}}\n", operator), expected)

    def test_every_operator_is_in_the_guide(self):
        guide = (TESTS.parent / "docs/mutations.md").read_text()
        for name in operators.OPERATORS:
            self.assertIn(f"| `{name}` |", guide)

    def test_what_is_left_alone(self):
        source = """// if (a < b) return;
  static constexpr const char* name = "a < b";
  static constexpr LevelText text{
      .name = kTransposed < 1 ? "a < b" : "c;",
      .cost = "a < b",
  };
  static_assert(kTile < 3, "b");
  throw BadSize("a < b");
#if COOKBOOK_CUDA
  if (a < b) return;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if (a < b) return;
#else
  seen();
#endif
  return {faster_than_previous(1.5)};
"""
        self.assertEqual([m.id for m in operators.mutants("a", source)], ["a:14:drop-statement:1"])


class Record(Tree):
    def judged(self, name, verdict, source="1"):
        return {"id": name, "source": source, "verdict": verdict, "by": "a-test: A.B"}

    def test_a_mutant_of_a_text_counts_once_and_what_was_not_judged_does_not(self):
        kept = {"seconds": {"a-test": 1.5}, "judged": [], "answers": {"b": "equivalent: why", "c": "caught now by C.D"}}
        results = [self.judged("a", "caught"), self.judged("b", "survived"), self.judged("c", "timeout"),
                   self.judged("d", "survived"), self.judged("e", "unfinished"), self.judged("f", "equivalent")]
        record.add(kept, results, 7, "abc")
        record.add(kept, [self.judged("a", "caught"), self.judged("a", "caught", "2")], 8, "def")
        self.assertEqual([(r["id"], r["seed"]) for r in kept["judged"]],
                         [("a", 7), ("a", 8), ("b", 7), ("c", 7), ("d", 7)])
        lines = record.summary(kept)
        self.assertIn("survived: d (abc): no answer yet", lines)
        self.assertEqual(lines[-1], "4 judged, without 1 equivalent ones: 2 caught as they were drawn (50.0 %), 3 with "
                                    "the tests added since (75.0 %)")
        self.assertEqual(record.summary(record.read(self.root)), ["nothing is recorded"])
        (self.root / "tests").mkdir()
        record.write(self.root, kept)
        self.assertEqual(record.read(self.root), kept)

    def test_the_committed_one_answers_for_every_survivor(self):
        kept = record.read(TESTS.parent)
        for each in kept["judged"]:
            if each["verdict"] != "caught":
                self.assertRegex(kept["answers"].get(each["id"], ""), "^(caught now by |equivalent: |survives: ).", each["id"])


class Toy(Tree):
    # A mutant of the toy each: what is changed, and what is to be said about it.
    PLANTED = {
        "toy.cpp:6:drop-reset:1": ("caught", "Toy.Sum"),
        "toy.cpp:7:shift-bound:1": ("caught", "Toy.Sum"),
        "toy.cpp:12:drop-guard:1": ("survived", ""),  # the loop behind the guard does the same
        "toy.cpp:12:shift-bound:1": ("equivalent", ""),  # n <= 1 for n < 1: 1 either way
        "toy.cpp:15:drop-statement:1": ("timeout", "Toy.PowerOfTwo"),
        "toy.cpp:20:swap-arguments:1": ("does not compile", ""),
    }

    def setUp(self):
        super().setUp()
        for tool in ("cmake", "ninja", "g++", "objcopy"):
            if not shutil.which(tool):
                self.skipTest(f"{tool} is not installed")

    def test_what_it_says(self):
        self.maxDiff = None
        toy = shutil.copytree(TESTS / "mutation/toy", self.root / "toy")
        results = self.root / "results.json"
        before = (toy / "toy.cpp").read_text()

        def mutate(*more):
            return subprocess.run([sys.executable, "-B", str(TESTS / "mutate"), "--root", str(toy), "--build",
                                   str(toy / "build"), "--all", "--patience", "5", "--jobs", "2", "--json",
                                   str(results), *more, "toy.cpp"], capture_output=True, text=True)
        done = mutate("--only", ",".join(self.PLANTED))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        found = json.loads(results.read_text())["results"]
        self.assertEqual({r["id"]: r["verdict"] for r in found},
                         {name: verdict for name, (verdict, _) in self.PLANTED.items()}, done.stdout)
        for r in found:
            self.assertIn(self.PLANTED[r["id"]][1], r.get("by", "") + r.get("why", ""))
        self.assertIn("-  if (n < 1) return 1;", done.stdout, "the survivor's diff")
        self.assertIn("caught 2 of 4 (50.0 %)", done.stdout)
        self.assertEqual((toy / "toy.cpp").read_text(), before)
        # A trial that did not end goes on with what it has not run: here nothing is left, and it survives.
        document = json.loads(results.read_text())
        for r in document["results"]:
            if r["id"] == "toy.cpp:7:shift-bound:1":
                r.update(verdict="unfinished", ran=["toy-test"])
        results.write_text(json.dumps(document))
        mutate("--only", "toy.cpp:7:shift-bound:1")
        found = {r["id"]: r["verdict"] for r in json.loads(results.read_text())["results"]}
        self.assertEqual(found["toy.cpp:7:shift-bound:1"], "survived")
        # Once more: nothing is built, what the file has is told again.
        again = mutate("--only", "toy.cpp:6:drop-reset:1")
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)

    def test_bad_usage(self):
        for words, part in ((["none.cpp"], "no file none.cpp"), (["--areas", "x"], "no area `x`"),
                            (["--jobs", "0"], "--jobs")):
            done = subprocess.run([sys.executable, "-B", str(TESTS / "mutate"), *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn(part, done.stderr)


if __name__ == "__main__":
    unittest.main()
