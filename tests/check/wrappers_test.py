#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The inline PTX of common/device and the models beside it are the same: results, accesses and findings of
wrappers/program.cu and blackwell.cu, through the door of ./run check and through the SIMT backend's own functions.

The PTX is compiled from a copy of the headers in a namespace of its own. Every `asm` of them is translated, also those
that the program does not call.

Usage: wrappers_test.py BUILD
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tools/check"))
import rewrite  # noqa: E402

# Every header with inline PTX but: the macros of the others, what only chapter 0 measures, marks of a timeline, and an
# empty text, which hides a value from the compiler.
HEADERS = sorted(path.stem for path in (ROOT / "common/device").glob("*.cuh")
                 if re.search(r"\basm\b|COOKBOOK_ASM", path.read_text()) and
                 path.stem not in ("arch", "tensor_types", "timeline", "registers"))
# Chapter 0 measures these on a GPU; the backend has no model of them.
UNMODELLED = {"wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32", "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8"}


def copy_headers(folder):
    """common/device as book/device, in the namespace `book`, as nvcc sees it for sm_90a."""
    for source in [*(ROOT / "common/device").glob("*.cuh"), ROOT / "common/backend/tensor_map.hpp",
                   ROOT / "common/backend/timeline.hpp"]:
        text = source.read_text().replace('"common/', '"book/').replace("cookbook", "book").replace("COOKBOOK", "BOOK")
        target = folder / "book" / source.relative_to(ROOT / "common")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def header(name, first):
    includes = "".join(f'#include "{name}/device/{part}.cuh"\n' for part in HEADERS)
    return f"{first}{includes}namespace w = {'cookbook' if name == 'common' else 'book'};\n"


def run(build, folder, text, program="program.cu", device="h100"):
    """(what the program prints, its accesses, its findings)"""
    (folder / "wrappers.hpp").write_text(text)
    result = folder / "result.json"
    done = subprocess.run([sys.executable, ROOT / "tools/check/check.py", "--build", build,
                           HERE / "wrappers" / program, "-I", folder, "-I", ROOT, "--quiet", "--json", result],
                          capture_output=True, text=True, timeout=300,
                          env={**os.environ, "COOKBOOK_SIMT_DEVICE": device,
                               "COOKBOOK_SIMT_WORKERS": "1"})  # how many clusters start shows in the accesses
    if not result.exists():
        return done.stdout + done.stderr, None, None
    found = json.loads(result.read_text())
    total = Counter()
    for row in found["accesses"]:
        kind = (row["memory"], row["operation"], row["buffer"])
        total.update({(*kind, unit): count for unit, count in row.items() if isinstance(count, int) and unit != "line"})
    result.unlink()
    printed = done.stdout.split("\n\n")[0]
    return printed, total, [finding["message"] for finding in found["findings"]]


def refused(folder, build):
    """The instructions of the copied headers that the table does not have."""
    compiler = json.loads((Path(build) / "check.json").read_text())["compiler"]
    (folder / "all.cu").write_text(header("book", "#define __CUDACC__\n" + SM_90A + SM_100A + SM_120A) +
                                   '#include "book/device/tensor_types.cuh"\n')
    done = subprocess.run([compiler, "-E", "-x", "c++", "-I", folder, "-I", rewrite.PROGRAM / "include", "-I", ROOT,
                           "-DCOOKBOOK_SIMT=1", folder / "all.cu"], capture_output=True, text=True, check=True)
    program = rewrite.Rewriter(done.stdout, False)
    return set(re.findall(r"inline PTX: (.*?) is not supported", program.rewrite())), program.assemblies


SM_90A = "#define __CUDA_ARCH__ 900\n#define __CUDA_ARCH_FEAT_SM90_ALL\n"
SM_100A = "#define __CUDA_ARCH_FEAT_SM100_ALL\n"
SM_120A = "#define __CUDA_ARCH_FEAT_SM120_ALL\n"


def differences(models, door):
    """What is said of one program, if the models and their inline PTX do not do the same."""
    for what, expected, got in zip(("output", "accesses", "findings"), models, door):
        if expected != got or expected is None or what == "findings" and expected:
            yield f"WRONG: {what} of the models:\n{expected}\nof the inline PTX:\n{got}"


def main(build):
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_headers(folder)
        unknown, count = refused(folder, build)
        print(f"{count} asm statements; no model: {', '.join(sorted(unknown))}")
        if unknown != UNMODELLED or count < 80:
            print("WRONG: the table should have all but", ", ".join(sorted(UNMODELLED)))
            failed = 1
        models = run(build, folder, header("common", ""))
        door = run(build, folder, header("book", SM_90A))
        blackwell = [run(build, folder, text, "blackwell.cu", "b200") for text in (
            header("common", ""), header("book", "#define __CUDA_ARCH__ 1000\n" + SM_100A))]
        # A planted bug: cp.async is not waited for.
        copied = folder / "book/device/cp_async.cuh"
        copied.write_text(copied.read_text().replace('"cp.async.wait_group %0;"', '"cp.async.wait_group 7;"'))
        planted = run(build, folder, header("book", SM_90A))
    if planted[:2] == models[:2] or not planted[2]:
        print(f"WRONG: a wait that waits for nothing is not seen: {planted}")
        failed = 1
    for wrong in (*differences(models, door), *differences(*blackwell)):
        print(wrong)
        failed = 1
    print(models[0], blackwell[0][0], sep="\n")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
