# SPDX-License-Identifier: MIT
"""docs/adding.md lists the functions between `main` and a kernel. Few, and as the sources have them."""
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_CALLS = 7
ROW = re.compile(r"\| `([\w:()]+)` \| `([\w./]+)` \| (?:`(.+)`|the backend starts the kernel) \|")


def path_of(document):
    """(function, file, the call in it) of each row; the last one has no call."""
    section = document.split("## From `main` to a kernel")[1].split("\n## ")[0]
    return ROW.findall(section)


def body(source, name):
    """From where `name` is defined to the end of its block; all of them, where one is conditional."""
    bodies = []
    for found in re.finditer(rf"^( *)[^\n/]*\b{re.escape(name)}\([^;{{]*\{{", source, re.M):
        rest = source[found.start():]
        one_line = re.match(r"[^\n]*\{[^\n]*\}\n", rest)
        bodies.append(one_line.group() if one_line else rest[:rest.index(f"\n{found.group(1)}}}\n")])
    return "\n".join(bodies) or None


def problems(path, read):
    found = []
    if len(path) > MOST_CALLS:
        found.append(f"{len(path)} calls, more than {MOST_CALLS}")
    for function, file, call in path:
        name = function.split("::")[-1]
        text = body(read(file), name)
        if text is None:
            found.append(f"{file} does not define {function}")
        elif call and re.sub(r"\s", "", call) not in re.sub(r"\s", "", text):
            found.append(f"{function} does not call {call}")
    if path and path[-1][2]:
        found.append("the last function does not start the kernel")
    return found


class CallPath(unittest.TestCase):
    def setUp(self):
        self.path = path_of((ROOT / "docs/adding.md").read_text())

    def read(self, file):
        return (ROOT / file).read_text()

    def test_the_table_is_what_the_sources_say(self):
        self.assertGreater(len(self.path), 3)
        self.assertEqual(problems(self.path, self.read), [])

    def test_main_calls_the_first_function(self):
        self.assertIn(f"{self.path[0][0]}(", self.read("common/harness/run/main.cpp"))

    def test_each_function_is_called_by_one_before_it(self):
        # A lambda is called elsewhere than where it stands: `run(Stream{})` in check_level's is the
        # level that PlannedLevel runs.
        calls = {"check_level": "execute", "run_isolated": "check_level", "launch": "Naive::run"}
        by_name = {function: body(self.read(file), function.split("::")[-1])
                   for function, file, _ in self.path}
        for callee, caller in calls.items():
            self.assertRegex(by_name[caller], rf"\b{callee}\(")
        self.assertIn("run(Stream{})", by_name["check_level"])

    def test_a_function_in_between_a_missing_one_and_one_too_many_are_found(self):
        def with_pass_through(file):
            return self.read(file).replace("execute(chapter, run, libraries, options)",
                                           "run_all(chapter, options)")
        self.assertEqual(problems(self.path, with_pass_through),
                         ["run_chapter does not call execute(chapter, run, libraries, options)"])
        self.assertEqual(problems(self.path, lambda file: self.read(file).replace("check_level", "x"))[0],
                         "execute does not call check_level(level, instance,")
        eight = self.path[:1] + self.path
        self.assertEqual(problems(eight, self.read), ["8 calls, more than 7"])


if __name__ == "__main__":
    unittest.main()
