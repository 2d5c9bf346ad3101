#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads what `nvcc -Xptxas -v` printed and fails on what makes a kernel slow without an error:

* any C75xx remark in a log with kernels for sm_90a: the assembler serialised wgmma instructions;
* register spills in the last level of a chapter's headline ladder (final_kernels.txt);
* a stack frame there: a local array that is indexed at run time lives in local memory, and every use
  of it is an LDL or STL, although nothing is spilled;
* a kernel of which a page says that it spills, or that it takes fewer registers than another, and
  which does not (final_kernels.txt: `spills REGEX`, `fewer REGEX than REGEX`).

Usage: check_ptxas.py LOG [--kernels FILE] [--chapters N,N...] [--architecture sm_86]
"""
import argparse
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

ENTRY = re.compile(r"Compiling entry function '([^']+)' for '([^']+)'")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")
SERIALISED = re.compile(r"\bC75\d\d\b")


@dataclass
class Kernel:
    mangled: str
    architecture: str
    name: str = ""
    frame: int | None = None
    spill_stores: int | None = None
    spill_loads: int | None = None
    registers: int | None = None


def parse(lines):
    """The kernels of a log, and the C75xx remarks in it."""
    kernels, remarks, current = [], [], None
    for line in lines:
        if SERIALISED.search(line):
            remarks.append(line.strip())
        elif match := ENTRY.search(line):
            current = Kernel(*match.groups())
            kernels.append(current)
        elif current and (match := STACK.search(line)):
            # Device functions that were not inlined report too; the first report is the entry's.
            if current.frame is None:
                current.frame, current.spill_stores, current.spill_loads = map(int, match.groups())
        elif current and (match := REGISTERS.search(line)):
            current.registers = int(match[1])
    return kernels, remarks


def demangle(kernels):
    names = "\n".join(kernel.mangled for kernel in kernels)
    out = subprocess.run(["c++filt"], input=names, capture_output=True, text=True, check=True).stdout
    for kernel, name in zip(kernels, out.split("\n")):
        kernel.name = name


def short_name(name):
    """The name without its parameters and namespaces, so that it fits on a line."""
    name = re.sub(r"\((?:cookbook::)?[\w:]+\)(?=\d)", "", name)  # casts of enumerators
    depth = 0
    for at, character in enumerate(name):
        depth += character == "<"
        depth -= character == ">"
        if character == "(" and depth == 0:
            name = name[:at]
            break
    return name.replace("void ", "").replace("cookbook::", "")


def read_patterns(path, architecture=None):
    """(chapter, architectures, regex) of each line `<chapter> <arch,+arch> <regex>`.

    The architectures are those without a plus, which the compile check has; or the given one, if the line has it.
    A chapter that times no kernel of its own has the line `<chapter> none <reason>`."""
    for line in Path(path).read_text().splitlines():
        line = line.strip()
        if line and not line.startswith("#"):
            chapter, architectures, pattern = line.split(None, 2)
            chosen = [each.lstrip("+") for each in architectures.split(",")
                      if (each.lstrip("+") == architecture if architecture else not each.startswith("+"))]
            yield int(chapter), chosen, pattern


def built_chapters():
    return {int(line.split()[0]) for line in (ROOT / "chapters/contents.txt").read_text().splitlines()}


def broken_statement(pattern, kernels):
    """What is wrong with `spills REGEX` or `fewer REGEX than REGEX`, of the kernels of one architecture; None if nothing is."""
    kind, _, rest = pattern.partition(" ")
    named = [[kernel for kernel in kernels if re.search(each, kernel.name)] for each in rest.split(" than ")]
    if not all(named):
        return f"no kernel: {pattern}"
    if kind == "spills":
        holds = all(kernel.spill_stores for kernel in named[0])
    else:
        holds = max(kernel.registers or 0 for kernel in named[0]) < min(kernel.registers or 0 for kernel in named[1])
    return None if holds else f"not so: {pattern}"


def check(lines, patterns, chapters):
    """Problems found in a log, and a table of the kernels that were looked at."""
    kernels, remarks = parse(lines)
    demangle(kernels)
    if not any(kernel.architecture == "sm_90a" for kernel in kernels):
        remarks = []  # of setmaxnreg, where wgmma does not exist
    problems = [f"wgmma serialised: {remark}" for remark in dict.fromkeys(remarks)]
    if not kernels:
        problems.append("the log reports no kernel at all")
    table, listed = [], set()
    for chapter, architectures, pattern in patterns:
        listed.add(chapter)
        if chapter not in chapters or architectures == ["none"]:
            continue
        for architecture in architectures:
            if pattern.startswith(("spills ", "fewer ")):
                wrong = broken_statement(pattern, [kernel for kernel in kernels if kernel.architecture == architecture])
                problems += [f"chapter {chapter}, {architecture}: {wrong}"] if wrong else []
                continue
            matches = [k for k in kernels
                       if k.architecture == architecture and re.search(pattern, k.name)]
            if not matches:
                problems.append(f"chapter {chapter}: no kernel for {architecture} is named {pattern}")
            for kernel in matches:
                table.append((chapter, architecture, kernel))
                if kernel.frame is None:
                    problems.append(f"chapter {chapter}: no report on {kernel.name}")
                elif kernel.spill_stores or kernel.spill_loads:
                    problems.append(f"chapter {chapter}: {kernel.name} for {architecture} spills "
                                    f"{kernel.spill_stores} bytes (and loads {kernel.spill_loads})")
                elif kernel.frame:
                    problems.append(f"chapter {chapter}: {kernel.name} for {architecture} has a stack frame "
                                    f"of {kernel.frame} bytes: an array in local memory (LDL, STL)")
    for chapter in sorted(chapters - listed):
        problems.append(f"chapter {chapter}: final_kernels.txt has no line for it")
    return problems, table, len(kernels)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("log")
    parser.add_argument("--kernels", default=HERE / "final_kernels.txt")
    parser.add_argument("--chapters", help="numbers, comma-separated (default: all that are built)")
    parser.add_argument("--architecture", help="the only one in the log (default: those of the compile check)")
    arguments = parser.parse_args()
    chapters = ({int(n) for n in arguments.chapters.split(",")} if arguments.chapters
                else built_chapters())
    with open(arguments.log, encoding="utf-8", errors="replace") as lines:
        problems, table, total = check(lines, list(read_patterns(arguments.kernels, arguments.architecture)), chapters)
    # Several object files hold the same kernel: a line for each that differs.
    rows = [f"chapter {chapter:2}  {architecture:7} {kernel.registers or 0:4} registers  "
            f"{kernel.spill_stores or 0} spilled  {kernel.frame or 0} on the stack  {short_name(kernel.name)}"
            for chapter, architecture, kernel in table]
    print("\n".join(dict.fromkeys(rows)))
    for problem in problems:
        print(f"PROBLEM: {problem}")
    print(f"{total} kernels compiled, {len(table)} looked at, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
