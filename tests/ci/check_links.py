#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Symbols that an executable could take from two places, of which the linker picks one.

  check_links.py BUILD     BUILD: a folder that was built with Ninja

A linker takes a member of an archive only where it needs a symbol, so two definitions may go unnoticed: which one
is linked, or whether linking fails, depends on the order of the archives and on the linker. A library with a `main` of its
own that is linked into a GoogleTest executable is such a case.
Exit 1 when a symbol is defined twice, 2 for bad input.
"""
import collections
import os
import re
import subprocess
import sys
from pathlib import Path

STRONG = "TDBR"  # nm's letters of definitions of which a program may have one only


def executables(text):
    """{executable: [objects and libraries of its link line]} from a build.ninja."""
    text = text.replace("$\n", "")
    found = {}
    for match in re.finditer(r"^build (\S+)[^:\n]*: CXX_EXECUTABLE_LINKER__\S*([^|\n]*).*\n((?:  .*\n)*)", text, re.M):
        name, objects, settings = match.groups()
        libraries = re.search(r"^  LINK_LIBRARIES = (.*)$", settings, re.M)
        words = objects.split() + (libraries[1].split() if libraries else [])
        found[name] = list(dict.fromkeys(each for each in words if re.search(r"\.(o|a)$|\.so(\.\d+)*$", each)))
    assert len(found) == text.count(": CXX_EXECUTABLE_LINKER__"), "a link line that is not understood"
    return found


def definitions(folder, file):
    """The strong symbols that a file defines; of a shared library `main` only, since it may hide the others."""
    is_shared = not file.endswith((".o", ".a"))
    command = ["nm", "-P", "-g", "--defined-only", *(["-D"] if is_shared else []), file]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True,
                          env={**os.environ, "LC_ALL": "C"})
    names = {words[0] for words in map(str.split, done.stdout.splitlines())
             if len(words) > 1 and words[1] in STRONG}
    return names & {"main"} if is_shared else names


def check(folder):
    """(problems, number of executables)"""
    linked = executables((folder / "build.ninja").read_text(encoding="utf-8"))
    # Those that were built.
    linked = {name: files for name, files in linked.items() if (folder / name).exists()}
    symbols = {file: definitions(folder, file) for file in {each for files in linked.values() for each in files}}
    where = collections.defaultdict(list)  # (symbol, files that define it): executables
    for name, files in linked.items():
        defined = collections.defaultdict(list)
        for file in files:
            for symbol in symbols[file]:
                defined[symbol].append(file)
        for symbol, places in defined.items():
            if len(places) > 1:
                where[symbol, tuple(places)].append(name)
    problems = [f"{symbol} is defined in {' and in '.join(places)}, which {names[0]} links"
                + (f" (and {len(names) - 1} more)" if len(names) > 1 else "")
                for (symbol, places), names in sorted(where.items())]
    return problems, len(linked)


def main(arguments):
    if len(arguments) != 1 or not (Path(arguments[0]) / "build.ninja").is_file():
        print("usage: check_links.py BUILD, a folder with build.ninja", file=sys.stderr)
        return 2
    problems, number = check(Path(arguments[0]))
    if number == 0:
        print("check_links: no executable was built: nothing was checked", file=sys.stderr)
        return 2
    print(*problems, f"{number} executables, {len(problems)} symbols with two definitions", sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
