#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the tables of docs/parity.md from tests/parity/golden/h200.json and exceptions.json.

    table.py           between the document's markers
    table.py --check   changes nothing; status 1 if the document is not what would be written

That the SIMT backend's numbers equal the hardware's, but for the exceptions, is parity-test's to
check; so the table has the hardware's numbers, and the model's only where they differ."""
import argparse
import collections
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE / "golden/h200.json"
EXCEPTIONS = HERE / "exceptions.json"
DOCUMENT = HERE.parents[1] / "docs/parity.md"
BEGIN, END = "<!-- parity table: begin -->", "<!-- parity table: end -->"

# The op of a column, its two counters and its title.
COLUMNS = [
    ("global_load", "requests", "sectors", "global loads: requests / sectors"),
    ("global_store", "requests", "sectors", "global stores: requests / sectors"),
    ("shared_load", "wavefronts", "conflicts", "shared loads: wavefronts / conflicts"),
    ("shared_store", "wavefronts", "conflicts", "shared stores: wavefronts / conflicts"),
]
ASYNC_COLUMNS = [  # only where a chapter has cp.async
    ("global_async_load", "requests", "sectors", "`cp.async` reads: requests / sectors"),
    ("shared_async_store", "wavefronts", "conflicts", "`cp.async` writes: wavefronts / conflicts"),
]


def pair(totals, op, first, second):
    one = totals.get(op)
    return f"{one[first]:,} / {one[second]:,}" if one else ""


def escape(text):
    return text.replace("|", "\\|")


def row(rows):
    return "| " + " | ".join(rows) + " |"


def tables(golden, exceptions):
    device, tools = golden["device"], golden.get("tools", {})
    versions = ", ".join(f"{name} {version}" for name, version in tools.items() if version)
    reasons = list(collections.OrderedDict.fromkeys(one["why"] for one in exceptions))
    out = [f"{device['name']}, CUDA {device['toolkit']}, driver {device['driver']}"
           + (f", {versions}" if versions else "") + "."]
    groups = collections.OrderedDict()
    for name, case in golden["cases"].items():
        groups.setdefault(name.split("/")[0], {})[name] = case
    for group, cases in groups.items():
        title = "The small kernels" if group == "kernels" else group.replace("chapter-", "Chapter ")
        columns = list(COLUMNS)
        if any(op in case["totals"] for case in cases.values() for op, *_ in ASYNC_COLUMNS):
            columns += ASYNC_COLUMNS
        out += ["", f"### {title}", "",
                row(["case", "size", *(heading for *_, heading in columns), "SIMT"]),
                row(["---", "---"] + ["---:"] * len(columns) + ["---"])]
        for name, case in cases.items():
            totals = case["totals"]
            mine = [one for one in exceptions if one["case"] == name]
            marks = sorted({reasons.index(one["why"]) + 1 for one in mine})
            differs = any("text" not in one and one["simt"] != one["hardware"] for one in mine)
            verdict = "differs" if differs else "equal"
            if marks:
                verdict += " " + ", ".join(f"({mark})" for mark in marks)
            out.append(row([
                "`" + escape(name.split("/", 1)[1]) + "`", "x".join(map(str, case["size"])),
                *(pair(totals, op, first, second) for op, first, second, _ in columns), verdict]))
    if exceptions:
        out += ["", "### Where the model differs, and why", ""]
    for mark, why in enumerate(reasons, 1):
        out.append(f"{mark}. {why}")
        for one in exceptions:
            if one["why"] != why:
                continue
            counter = "sectors" if one["op"].startswith("global") else "conflicts"
            where = f" at `{one['text']}`" if "text" in one else " in all"
            out.append(f"   - `{one['case']}`: {one['op']} {counter}{where}: hardware "
                       f"{one['hardware']:,}, SIMT {one['simt']:,}"
                       + (" with g++ 12" if one.get("by_compiler") else ""))
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    exceptions = json.loads(EXCEPTIONS.read_text()) if EXCEPTIONS.exists() else []
    if GOLDEN.exists():
        body = tables(json.loads(GOLDEN.read_text()), exceptions)
    else:
        body = "Not measured yet: `tests/parity/golden/h200.json` does not exist."
    before = DOCUMENT.read_text()
    head, rest = before.split(BEGIN)
    tail = rest.split(END)[1]
    after = f"{head}{BEGIN}\n{body}\n{END}{tail}"
    if options.check:
        if after != before:
            print(f"{DOCUMENT} is stale: run tests/parity/table.py", file=sys.stderr)
        return after != before
    DOCUMENT.write_text(after)
    return 0


if __name__ == "__main__":
    sys.exit(main())
