#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that hold for every source file: its licence line, and no speed figure in a comment.

Speed figures live in results and the tables generated from them; one in a comment goes stale.
What nvcc compiles includes no library that its host pass may fail to compile (HOST_LIBRARIES).
A file includes only what docs/rooms.json allows its folder (rooms.py).
No ladder changes a level by its index. A sidebar program does not ignore its arguments.
No program stands in a string of another language: it is a file, which the tools of its language read.
Usage: check_sources.py [FILE...]   (default: every tracked or new source of the repository)
"""
import ast
import re
import sys
from pathlib import Path

import rooms

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/identity"))
from tokens import sources  # noqa: E402

SOURCES = ("*.hpp", "*.cpp", "*.c", "*.cu", "*.cuh", "*.cmake", "CMakeLists.txt", "*.py", "*.sh", "run",
           ".ci/run", "Makefile", "docs/*.css", "docs/*.js", "docs/Doxyfile", "Containerfile",
           "common/cmake/suites.cmake.in", "tests/mutate")
C_FAMILY = {".hpp", ".cpp", ".c", ".cu", ".cuh"}
LICENCE = "SPDX-License-Identifier: MIT"

NUMBER = r"(?<![\w.])\d[\d,]*(?:\.\d+)?"
SPEED = re.compile(
    rf"{NUMBER}\s*(?:[GT]B/s|[KMGTP]?FLOPS?\b|[KMGTP]?FLOPS?/s|[GT]Flop|[mnµu]s\b)"
    rf"|{NUMBER}\s*(?:%|per cent|percent)\s+(?:faster|slower"
    r"|of (?:(?:the|its|a|an) )?(?:\w+ )?(?:peak|roof|copy|cublas|cudnn)\b)"
    rf"|{NUMBER}\s*(?:x|×|times)\s+(?:faster|slower|speed-?up)"
    # Not 1.01 times as fast: comments name such ratios, which are noise, to say what is not a gain.
    rf"|(?!1\.0){NUMBER}\s*(?:x|×|times)\s+as\s+(?:fast|slow)\b", re.IGNORECASE)
# A comment, or a string in which a // is not one.
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
OF_A_LIBRARY = re.compile(r"^\s*#\s*include\s*<([^>]+)>", re.MULTILINE)
BY_INDEX = re.compile(r"\blevels\s*(?:\[|\.(?:at|front|back)\b)[^;=]*")  # in a ladder.hpp
# Compiled through nvcc they have failed with one host compiler and not with another.
HOST_LIBRARIES = ("fmt/", "gtest/", "gmock/", "CLI/", "nlohmann/json.hpp")
HOST_SOURCES = {"main.cu", "libraries.cu"}  # compiled as C++, see common/cmake/chapter.cmake
# How a program looks in a string of Python, and what gives one to an interpreter in a shell.
PROGRAM = re.compile(r"^#!|=> \{|\bfunction \w+\(|\bint main\(|^import \w+|^ *(?:esac|done|fi)$", re.MULTILINE)
PROGRAM_LINES = 3  # a stand-in of fewer may stand in its test
INTERPRETED = re.compile(r"\b(?:python3?|node|perl|ruby)\"? -[ce]\b|-[ce] '(?:import|from|print|require)\b"
                         r"|\b(?:awk|sed|bash|sh)\b[^'\n#]* '[^'\n]*\n|^(?![^\n]*\bcat <<)[^\n#]*<<-?['\"]?[A-Z]"
                         r"|<<-?['\"]?[A-Z]+['\"]?\n#!", re.MULTILINE)
CHAPTER_TARGET = re.compile(r"\bchapter-\d+")


def is_compiled_by_nvcc(path):
    """CMake writes the levels.cu of most chapters: it includes the chapter's ladder.hpp and its .cuh files."""
    return path.suffix == ".cuh" or path.name == "ladder.hpp" or path.suffix == ".cu" and path.name not in HOST_SOURCES


def host_libraries(path, root=ROOT):
    """Each of HOST_LIBRARIES that a file includes, with the file of ours that says so."""
    return [(name, file) for file in sources(path, root) for name in OF_A_LIBRARY.findall(file.read_text())
            if name.startswith(HOST_LIBRARIES)]


def speed_figures(text):
    """(line number, comment line) of every comment line that states a speed."""
    found = []
    for match in COMMENT.finditer(text):
        if match.group().startswith('"'):
            continue
        first = text.count("\n", 0, match.start()) + 1
        for offset, line in enumerate(match.group().split("\n")):
            if SPEED.search(line):
                found.append((first + offset, line.strip()))
    return found


def wrong_layers(text, name):
    """What a file called `name` (from the root) includes or links and must not depend on."""
    yield from (included for _, included in rooms.crossed(text, name))
    if name.startswith(("common/", "tools/")) and name.endswith(("CMakeLists.txt", ".cmake")):
        yield from CHAPTER_TARGET.findall(text)


def foreign_programs(path, text):
    """(line, how it begins) of each program in a string of this file, which is Python or shell."""
    if path.suffix == ".py":
        nodes = list(ast.walk(ast.parse(text)))
        documentation = {node.value for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            said = node.value if isinstance(node, ast.Constant) and node not in documentation else None
            if isinstance(said, str) and said.count("\n") > PROGRAM_LINES and PROGRAM.search(said):
                yield node.lineno, said.strip().split("\n")[0]
    elif path.suffix == ".sh" or path.name == "run":
        for match in INTERPRETED.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, match.group().strip().split("\n")[0]


def problems(path, name):
    text = path.read_text(encoding="utf-8")
    for above in wrong_layers(text, str(name)):
        yield f"{name}: depends on {above}"
    if LICENCE not in "\n".join(text.split("\n")[:3]):
        yield f"{name}:1: no '{LICENCE}' in its first lines"
    if path.suffix in C_FAMILY:
        for line, comment in speed_figures(text):
            yield f"{name}:{line}: a speed figure in a comment: {comment}"
    for line, program in foreign_programs(path, text):
        yield f"{name}:{line}: a program in a string of another language: {program}"
    if path.name == "ladder.hpp":
        for match in BY_INDEX.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{name}:{line}: a level is changed by its index: {match.group()}; what it claims stands in its level"
    if path.name.startswith("sidebar_") and re.search(r"^int main\(\s*(?:void)?\s*\)", text, re.MULTILINE):
        yield f"{name}: main() must refuse arguments that it does not know: take_no_arguments()"
    if is_compiled_by_nvcc(path):
        for library, file in host_libraries(path):
            yield f"{name}: nvcc compiles this, and {file.name} includes <{library}>"


def main(arguments):
    files = [Path(name) for name in arguments] or rooms.files_of(ROOT, *SOURCES)
    found = []
    for path in files:
        name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        found += problems(path, name)
    for line in found:
        print(line)
    print(f"{len(files)} sources checked, {len(found)} problems")
    return 1 if found or not files else 0  # without a file nothing was checked


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
