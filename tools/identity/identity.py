#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What was measured is known by its machine code, not by its text (docs/measuring.md).

  identity.py kernels FILE...         hash and mangled name of each kernel in object files or executables
  identity.py tokens FILE...          hash of the tokens of each source and of what it includes
  identity.py table OUT FILE...       C++ for the harness: the same, of each source and of all that they include
  identity.py enter RESULTS PROGRAM   completes what PROGRAM wrote with --json: the identity of its machine code
  identity.py lock [--update]         compares plots/results/identity.json with build/cuda-ci and build/simt, or writes it

Exit status 1: the lock differs. 2: bad usage, or a file that cannot be read."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from machine_code import Unreadable, machine_code, short_hash
from tokens import ROOT, sources, token_hash

LOCK = "plots/results/identity.json"  # under the root
DEVICE = "h200"  # of the lock: the host decides by the number of SMs
UPDATE = "python3 tools/identity/identity.py lock --update"


def code_identity(launched, kernels):
    """The hash of what a level launches: per launch its machine code and extents, and the boxes of tensor maps.

    launched: "launches" and "tensor_maps" as in docs/json.md; kernels: mangled name -> hash."""
    missing = [launch["kernel"] for launch in launched["launches"] if launch["kernel"] not in kernels]
    if missing:
        raise Unreadable(f"no machine code of {missing[0]}")
    parts = [{**launch, "kernel": kernels[launch["kernel"]]} for launch in launched["launches"]]
    return short_hash(*(json.dumps(part, sort_keys=True).encode() for part in parts + launched["tensor_maps"]))


def size_text(size):
    return "x".join(map(str, size))


def program_of(run):
    """The executable that a run of a results file is of, such as chapter-3 or capstone-scan."""
    return f"capstone-{run['capstone']}" if run.get("capstone") else f"chapter-{run['chapter']}"


def problem_of(case):
    """(program, ladder, size) of a case of ./run compare or of compare_attention.py; the ladder is "" where the book has
    none in bf16."""
    if "shape" in case:
        few = case["shape"][3] < 8  # queries: decoding
        ladder = ("" if few else "prefill_causal") if case["causal"] else "decode" if few else "prefill"
        return "chapter-10", ladder, case["shape"]
    if case["ladder"] == "attention":
        return "chapter-10", "prefill_causal" if case["variant"] == "causal" else "prefill", case["size"]
    program = {8: "capstone-gemm", 9: "capstone-rows"}.get(case["chapter"], f"chapter-{case['chapter']}")
    return program, case["ladder"], case["size"]


class Identities:
    """The committed identities, and the tokens of the sources as they are now: what says that a result is current."""

    def __init__(self, tokens, lock=None):
        self.tokens = frozenset(tokens)
        self.lock = lock or {"levels": {}}

    def code(self, program, ladder, level, size):
        """The committed identity of a level's machine code; None: not known, or not of the sources as they are now."""
        if (program, level) == ("chapter-10", "attention"):  # a case has levels of the chapter and the library's choice
            program = "capstone-attention"
        entry = self.lock["levels"].get(f"{program}/{ladder}/{level}")
        return entry["code"].get(size_text(size)) if entry and entry["tokens"] in self.tokens else None

    def has(self, level, device, program, ladder, size):
        """Whether a level of a results file, measured on that device, is the one of the sources as they are now: by its
        machine code, where that is known of both for the same toolkit and GPU; otherwise by its tokens."""
        code = (level.get("identity") or {}).get("code")
        expected = self.code(program, ladder, level["name"], size)
        if expected and code and all(device.get(key) == self.lock[key] for key in ("toolkit", "sm_count")):
            return code == expected
        return tokens_of(level) in self.tokens

    def has_row(self, row, device, case):
        """The same of a row of a case of ./run compare or of compare_attention.py."""
        return self.has(row, device, *problem_of(case))

    def of_row(self, level, file, case):
        """The identity of a level for such a row, measured now."""
        program, ladder, size = problem_of(case)
        return {"code": self.code(program, ladder, level, size), "tokens": token_hash(file)}


def tokens_of(level):
    """The hash of a level's tokens in a results file, or None."""
    return (level.get("identity") or {}).get("tokens")


def read_lock(root=ROOT):
    file = root / LOCK
    return json.loads(file.read_text()) if file.exists() else None


def measured_sizes(root=ROOT):
    """(program, ladder) -> sizes of the committed results."""
    sizes = defaultdict(set)
    for file in [*(root / "plots/results").glob("*/**/*.json"), *root.glob("capstones/*/results/*.json"),
                 *root.glob("library/*/results/*.json")]:
        document = json.loads(file.read_text())
        for run in document.get("runs", []):
            if run["backend"] == "cuda":
                sizes[program_of(run), run["ladder"]].add(size_text(run["problem"]["size"]))
        for case in document.get("comparisons", document.get("cases", [])):
            program, ladder, size = problem_of(case)
            for name in (program, "capstone-attention") if program == "chapter-10" else (program,):
                if ladder:
                    sizes[name, ladder].add(size_text(size))
    return sizes


def listed(program, *options):
    """What a program of the SIMT backend lists with --launches: its runs."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "launches.json"
        done = subprocess.run([program, "--launches", file, *options], capture_output=True, text=True,
                              env={**os.environ, "COOKBOOK_SIMT_DEVICE": DEVICE}, check=False)
        if done.returncode:
            raise Unreadable(f"{program.name} --launches: {done.stderr.strip()}")
        return json.loads(file.read_text())


def all_launches(build, sizes=None):
    """(program, ladder, size) -> the levels that the programs of the book list, at their full size and at `sizes`."""
    programs = sorted(path for pattern in ("chapter-*", "capstone-*") for path in build.glob(pattern)
                      if re.fullmatch(r"chapter-\d+|capstone-[a-z0-9_]+", path.name) and os.access(path, os.X_OK))
    if not programs:
        raise Unreadable(f"no program in {build}: BACKEND=simt ./run build")
    found, sm_counts = {}, set()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        def add(calls):
            for document in pool.map(lambda call: listed(*call), calls):
                sm_counts.add(document["sm_count"])
                for run in document["runs"]:
                    found[document["program"], run["ladder"], size_text(run["size"])] = run["levels"]

        add([(program,) for program in programs])
        add([(build / name, "--ladder", ladder, *(word for size in more for word in ("--size", size)))
             for (name, ladder), all_sizes in (sizes or {}).items()
             if (more := [size for size in sorted(all_sizes) if (name, ladder, size) not in found])])
    return sm_counts.pop(), found


def toolkit():
    """The release of nvcc, such as 13.0."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    try:
        said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unreadable("nvcc is missing") from error
    return re.search(r"release ([\d.]+)", said)[1]


def make_lock(cuda, simt):
    """The identities of all levels at the sizes that were measured and at their own."""
    sm_count, runs = all_launches(simt, measured_sizes())
    kernels = {program: machine_code([cuda / program]) for program in {key[0] for key in runs}}
    levels = {}
    for (program, ladder, size), rows in sorted(runs.items()):
        for row in rows:
            entry = levels.setdefault(f"{program}/{ladder}/{row['name']}", {"tokens": row["tokens"], "code": {}})
            if row["launches"]:
                entry["code"][size] = code_identity(row["launches"], kernels[program])
    return {"schema": 1, "toolkit": toolkit(), "device": DEVICE, "sm_count": sm_count, "levels": levels}


def lock_text(lock):
    """As JSON with a line for each level."""
    levels = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in lock["levels"].items())
    head = json.dumps({key: value for key, value in lock.items() if key != "levels"})
    return f'{head[:-1]}, "levels": {{\n{levels}\n}}}}\n'


def differences(old, new):
    """Sentences: what `new` says otherwise than `old`."""
    found = []
    for name in sorted(old["levels"].keys() | new["levels"].keys()):
        before, now = old["levels"].get(name), new["levels"].get(name)
        if before is None or now is None:
            found.append(f"{name}: {'new' if before is None else 'gone'}")
        elif before["code"] != now["code"]:
            sizes = [size for size in now["code"].keys() | before["code"].keys()
                     if now["code"].get(size) != before["code"].get(size)]
            found.append(f"{name}: other machine code or launches at {', '.join(sorted(sizes))}")
        elif before["tokens"] != now["tokens"]:
            found.append(f"{name}: another text, the same machine code")
    return found


def lock(options):
    old = read_lock()
    if not options.update and old and old["toolkit"] != toolkit():
        print(f"identity: {LOCK} is of toolkit {old['toolkit']}, here is {toolkit()}: not compared")
        return 0
    new = make_lock(options.cuda, options.simt)
    found = differences(old or {"levels": {}}, new)
    for line in found:
        print(f"identity: {line}")
    if options.update:
        (ROOT / LOCK).write_text(lock_text(new))
        return 0
    if found:
        print(f"{LOCK} is not of these sources; with build/simt and build/cuda-ci built, this mends it: {UPDATE}")
    return 1 if found else 0


def enter(options):
    document = json.loads(options.results.read_text())
    kernels = {}
    for run in document.get("runs", []):
        capability = int(run["device"]["cc"].replace(".", ""))
        for level in run["levels"]:
            if level.get("launches"):
                if capability not in kernels:
                    kernels[capability] = machine_code([options.program], capability)
                level["identity"]["code"] = code_identity(level["launches"], kernels[capability])
    options.results.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return 0


def table(options):
    files = dict.fromkeys(path for file in options.files for path in sources(file))
    rows = "".join(f'    {{"{path.parent.name}/{path.name}", "{token_hash(path)}"}},\n' for path in files
                   if not path.is_relative_to(ROOT / "common"))
    options.out.write_text("// SPDX-License-Identifier: MIT\n// Written by tools/identity.\n"
                           f'#include "common/harness/contract/token_table.hpp"\n\nstatic const bool entered = cookbook::enter_tokens({{\n{rows}}});\n')
    escaped = " ".join(str(path).replace(" ", "\\ ") for path in files)
    options.out.with_suffix(".d").write_text(f"{options.out}: {escaped}\n")
    return 0


def kernels(options):
    for file in options.files:
        for name, code in machine_code([file], options.capability).items():
            print(code, name)
    return 0


def tokens(options):
    for file in options.files:
        print(token_hash(file), file)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    def verb(function, *arguments):
        added = verbs.add_parser(function.__name__)
        added.set_defaults(function=function)
        for names, settings in arguments:
            added.add_argument(*names, **settings)
    many = ["files"], {"nargs": "+", "type": Path}
    verb(kernels, (["--capability"], {"type": int, "default": 90}), many)
    verb(tokens, many)
    verb(table, (["out"], {"type": Path}), many)
    verb(enter, (["results"], {"type": Path}), (["program"], {"type": Path}))
    verb(lock, (["--update"], {"action": "store_true"}), (["--cuda"], {"type": Path, "default": ROOT / "build/cuda-ci"}),
         (["--simt"], {"type": Path, "default": ROOT / "build/simt"}))
    options = parser.parse_args()
    try:
        return options.function(options)
    except (Unreadable, OSError, json.JSONDecodeError) as error:
        print(f"identity: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
