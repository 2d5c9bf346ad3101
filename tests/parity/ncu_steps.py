#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What run_ncu.sh asks for between two programs. Each verb prints, or writes into OUT:

    ncu_steps.py versions NAME=TOOL...     JSON: the release that each tool names
    ncu_steps.py fatbinaries PROGRAM OUT   a folder with code.fatbin for each that PROGRAM holds
    ncu_steps.py optional                  the metrics that a GPU may lack
    ncu_steps.py groups MANIFEST           the groups of cases, in order
"""
import json
import pathlib
import re
import struct
import subprocess
import sys

import merge

FATBINARY = b"\x50\xed\x55\xba\x01\x00\x10\x00"  # how its header begins; its length follows


def versions(*tools):
    found = {}
    for name, tool in (each.split("=", 1) for each in tools):
        text = subprocess.run([tool, "--version"], capture_output=True, text=True).stdout
        said = re.search(r"(?:Version |V)(\d[\d.]*\d)", text)
        found[name] = said[1] if said else ""
    print(json.dumps(found))


def fatbinaries(program, out):
    data, at, count = pathlib.Path(program).read_bytes(), 0, 0
    while (at := data.find(FATBINARY, at)) >= 0:
        end = at + 16 + struct.unpack_from("<Q", data, at + 8)[0]
        folder = pathlib.Path(out, f"{count:02}")
        folder.mkdir()
        (folder / "code.fatbin").write_bytes(data[at:end])
        at, count = end, count + 1


def optional():
    print(*(name for names in merge.OPTIONAL.values() for name in names))


def groups(manifest):
    cases = json.loads(pathlib.Path(manifest).read_text())["cases"]
    print(*dict.fromkeys(case["name"].split("/")[0] for case in cases))


if __name__ == "__main__":
    {step.__name__: step for step in (versions, fatbinaries, optional, groups)}[sys.argv[1]](*sys.argv[2:])
