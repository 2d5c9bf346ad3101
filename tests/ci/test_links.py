# SPDX-License-Identifier: MIT
"""check_links.py on small projects that CMake writes for Ninja."""
import subprocess
import unittest

import check_links
from tree import Tree, said

LISTS = """cmake_minimum_required(VERSION 3.25)
project(links LANGUAGES CXX)
add_library(runner {kind} runner.cpp)
add_library(grader STATIC grader.cpp helper.cpp)
add_executable(program program.cpp)
target_link_libraries(program PRIVATE grader runner)
add_custom_command(TARGET program POST_BUILD BYPRODUCTS tests.cmake COMMAND ${{CMAKE_COMMAND}} -E touch tests.cmake)
"""
SOURCES = {
    "runner.cpp": "int run() { return 0; } int main() { return run(); }",
    "grader.cpp": "inline int both() { return 1; } int grade() { return both(); }",
    "helper.cpp": "inline int both() { return 1; } int help() { return both(); }",
    "program.cpp": "int grade(); int started = grade();",
}


class Links(Tree):
    def problems(self, kind="STATIC", **changed):
        build = self.root / "build"
        self.write("CMakeLists.txt", LISTS.format(kind=kind))
        for name, text in SOURCES.items():
            self.write(name, changed.get(name.split(".")[0], text) + "\n")
        subprocess.run(["cmake", "-S", self.root, "-B", build, "-G", "Ninja"], check=True, capture_output=True)
        subprocess.run(["ninja", "-C", build], check=True, capture_output=True)
        found, number = check_links.check(build)
        self.assertEqual(number, 1)
        return found

    def test_one_definition_each_passes_and_so_do_inline_functions(self):
        self.assertEqual(self.problems(), [])

    def test_a_library_with_a_main_of_its_own_fails_and_is_named(self):
        found = self.problems(helper="int main() { return 2; }")
        self.assertEqual(len(found), 1)
        self.assertRegex(found[0], "^main is defined in libgrader.a and in librunner.a, which program links")

    def test_the_other_main_may_be_in_a_shared_library(self):
        self.assertEqual(len(self.problems(kind="SHARED", helper="int main() { return 2; }")), 1)

    def test_a_function_that_an_object_file_and_a_library_define_fails(self):
        found = self.problems(helper="int twice() { return 1; }",
                         program="int grade(); int twice() { return grade(); } int started = twice();")
        self.assertEqual(len(found), 1)
        self.assertIn("program.cpp.o", found[0])

    def test_a_folder_without_a_build_is_an_error(self):
        self.assertEqual(said(check_links.main, [str(self.root)]),
                         (2, "usage: check_links.py BUILD, a folder with build.ninja\n"))


if __name__ == "__main__":
    unittest.main()
