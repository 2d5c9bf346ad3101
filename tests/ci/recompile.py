#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles the files of a configured CUDA build once more, in another way, and keeps nothing.

  recompile.py BUILD --host-compiler clang++   host code by a second compiler, warnings are errors
  recompile.py BUILD --device                  device code only, for the architectures of BUILD

BUILD is a folder with compile_commands.json. Exit 1 when a file does not compile, 2 for bad input.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIBRARY_HEADER = re.compile(r"^#include <(?:CLI|fmt|gtest|nlohmann)/.+>", re.MULTILINE)
WORTH_HEADERS = 3  # files
TIMELINE = "-DCOOKBOOK_TIMELINE=1"

# Files of these names say the same in every chapter: the first and the last stand for all. (Chapter 0 has no library.)
ALIKE = ("main.cu", "libraries.cu", "main.cpp")


def without(arguments, *pairs, alone=()):
    """Arguments without these flags: each of `pairs` has a value, which follows it; those that begin as in `alone` have none."""
    kept, rest = [], iter(arguments)
    for each in rest:
        if each in pairs:
            next(rest, None)
        elif not each.startswith(alone):
            kept.append(each)
    return kept


def commands(build):
    """(file, is_cuda, arguments without launcher and output, folder) of every file, each once for all its arguments."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        arguments = shlex.split(entry["command"])
        if Path(arguments[0]).name == "ccache":
            del arguments[0]
        arguments = without(arguments, "-o", "-MF", "-MT", alone=("-MD",))  # no dependency files
        is_cuda = "nvcc" in Path(arguments[0]).name
        for file in files_of(entry["file"]):
            alone = [file if each == entry["file"] else each for each in arguments]
            found.setdefault(tuple(alone), (file, is_cuda, alone, entry["directory"]))
    return list(found.values())


def files_of(file):
    """The files that CMake compiles together as `file`, if it wrote that: each must compile alone, too."""
    if Path(file).parent.name != "Unity":
        return [file]
    return re.findall(r'^#include "(.+)"$', Path(file).read_text(encoding="utf-8"), re.MULTILINE)


def chosen_for_host(files):
    """What a second host compiler compiles: all host files, but only two of those that are alike. Of the
    files with kernels those of the tests and of the backend, whose host code differs by chapter."""
    alike, kept = {}, []
    for each in files:
        path, is_cuda = Path(each[0]), each[1]
        is_generated = "generated" in path.parts
        if is_cuda:
            if not is_generated and not {"chapters", "capstones", "library"} & set(path.parts):
                kept.append(each)
        elif path.name in ALIKE or is_generated:
            alike.setdefault(path.name if path.name in ALIKE else "generated", []).append(each)
        else:
            kept.append(each)
    for group in alike.values():
        kept += [group[0], group[-1]] if len(group) > 1 else group
    return kept


def host_command(file, is_cuda, arguments, compiler):
    if not is_cuda:
        # Without optimisation levels: nothing is generated, and files share an argument list.
        return [compiler, *without(arguments[1:], alone=("--param=", "-O")), "-Werror", "-fsyntax-only"]
    # One architecture, the oldest, for which most device code is a trap: the host code is the same.
    architecture = ("--generate-code", "-gencode", "-arch")
    kept = without(arguments, *architecture, alone=architecture)
    return [kept[0], "-ccbin", compiler, *kept[1:], "-arch=compute_75", "-Werror", "all-warnings",
            "-Xcompiler", "-Wall,-Werror", "-o", os.devnull]


def with_headers(jobs, kept, limit, log):
    """The same jobs, with the libraries' headers compiled once, in the folder `kept`, for all that have the same arguments
    and include the same ones: most of the time would go into those. The book's own headers are read for each file."""
    alike = {}
    for job in jobs:
        file, command, folder = job
        text = Path(file).read_text(encoding="utf-8") if Path(file).is_file() else ""  # the compiler says that it is gone
        used = frozenset(LIBRARY_HEADER.findall(text))
        alike.setdefault((tuple(each for each in command if each != file), folder, used), []).append(job)
    for number, ((command, folder, used), group) in enumerate(alike.items()):
        if not used or len(group) < WORTH_HEADERS or "clang" not in Path(command[0]).name:
            continue
        header, compiled = Path(kept, f"headers_{number}.hpp"), Path(kept, f"headers_{number}.pch")
        header.write_text("".join(f"{line}\n" for line in sorted(used)), encoding="utf-8")
        arguments = without(command[1:], alone=("-c", "-fsyntax-only"))
        precompile = [command[0], *arguments, "-fpch-instantiate-templates", "-x", "c++-header", str(header), "-o", str(compiled)]
        if not compile_all([(str(header), precompile, folder)], limit, log):
            for i, (file, line, _) in enumerate(group):
                group[i] = file, [*line, "-include-pch", str(compiled)], folder
    return [job for group in alike.values() for job in group]


def device_command(arguments):
    kept = [each for each in arguments if each != "-c"]
    # Warnings are none: launch bounds that an older SM cannot keep are remarks of the assembler.
    return [*kept, "-fatbin", "-o", os.devnull]


def compile_all(jobs, limit, log):
    """Runs (file, command, folder) side by side; the failed ones with what the compiler said. All that it said: in `log`."""
    failed = []

    def one(job):
        file, command, folder = job
        began = time.monotonic()
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=limit,
                                  check=False)
            said, status = done.stdout + done.stderr, done.returncode
        except subprocess.TimeoutExpired:
            said, status = f"no end after {limit} s", 1
        except OSError as error:
            said, status = str(error), 1
        return file, status, said, time.monotonic() - began

    at_once = int(os.environ.get("JOBS") or os.cpu_count())
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for file, status, said, seconds in pool.map(one, jobs):
            log.write(said)
            if status != 0:
                failed.append(file)
                told = [line for line in said.splitlines()
                        if "error" in line or "warning" in line or "no end" in line]
                print(f"FAILED {file} ({seconds:.0f} s)", *(told or said.splitlines())[:12], sep="\n  ")
    return failed


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--host-compiler", metavar="COMPILER")
    way.add_argument("--device", action="store_true")
    parser.add_argument("--only", default="", metavar="TEXT", help="files whose path has TEXT")
    parser.add_argument("--limit", type=int, default=600, help="seconds per file")
    parser.add_argument("--log", type=Path, help="a file for all that the compiler says")
    options = parser.parse_args(arguments)
    if not (options.build / "compile_commands.json").is_file():
        print(f"recompile: no {options.build}/compile_commands.json: configure that build first",
              file=sys.stderr)
        return 2
    files = [each for each in commands(options.build) if options.only in each[0]]
    if options.device:
        # Without the levels' instrumented twins, which time their own instructions and may spill.
        jobs = [(file, device_command(line), folder) for file, is_cuda, line, folder in files
                if is_cuda and TIMELINE not in line]
    else:
        jobs = [(file, host_command(file, is_cuda, line, options.host_compiler), folder)
                for file, is_cuda, line, folder in chosen_for_host(files)]
        jobs = list({tuple(job[1]): job for job in jobs}.values())  # two architectures have the same host code
    if not jobs:
        print(f"recompile: no such file in {options.build}: nothing was checked", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as kept, open(options.log or os.devnull, "w", encoding="utf-8") as log:
        failed = compile_all(jobs if options.device else with_headers(jobs, kept, options.limit, log), options.limit, log)
    print(f"{len(jobs) - len(failed)} files compile, {len(failed)} do not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
