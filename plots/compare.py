#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times the book's last levels against what a user would pick instead, on the same problem in the same run.

    ./run compare                        softmax, GEMM and attention
    ./run compare gemm softmax           some of them
    ./run compare --quick --out FILE     fewer sizes and configurations; the JSON into FILE

Every contestant is checked against an fp64 reference before and after it is timed. Needs PyTorch with CUDA
and an sm_90 GPU; Triton, cuTile, CUTLASS, FlashAttention-3 and -4, TileLang and QuACK take part where they are installed
(docs/building.md)."""
import argparse
import importlib
import json
import os
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import contestants
from cookbook_plots.book import toolkit
from contestants import (cutile, cutlass, flash_attention_3, flash_attention_4, libraries, quack_softmax,
                         tilelang_kernels, timing)

ALL = ["softmax", "gemm", "attention"]


def parse(arguments):
    parser = argparse.ArgumentParser(prog="./run compare", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ALL)}; default: all")
    parser.add_argument("--quick", action="store_true", help="under a minute on an H200")
    parser.add_argument("--rounds", type=int, help="samples of each contestant (20, or 9 with --quick)")
    parser.add_argument("--seconds", type=float, help="begin no case after this time (140, or 50 with --quick)")
    parser.add_argument("--out", type=Path, default=libraries.FOLDER / "compare.json")
    parser.add_argument("--build-only", action="store_true", help="compile the libraries (no GPU needed), time nothing")
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in ALL:
            parser.error(f"no comparison {name!r}; there are: {', '.join(ALL)}")
    options.names = options.names or ALL
    options.rounds = options.rounds or (9 if options.quick else 20)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    options.seconds = options.seconds or (50 if options.quick else 140)
    return options


def version(module):
    try:
        return getattr(importlib.import_module(module), "__version__", None)
    except ImportError:
        return None


def describe():
    """The machine and the versions, for the JSON."""
    import torch
    properties = torch.cuda.get_device_properties(0)
    # As the chapters have it: COOKBOOK_COMMIT says it where the tree is a copy.
    commit = os.environ.get("COOKBOOK_COMMIT") or subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"], cwd=libraries.ROOT, capture_output=True,
        text=True).stdout.strip()
    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                            capture_output=True, text=True)
    return {"schema": 1, "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "commit": commit or None,
            "device": {"name": properties.name, "cc": f"{properties.major}.{properties.minor}",
                       "sm_count": properties.multi_processor_count, "toolkit": toolkit(),
                       "driver": driver.stdout.split("\n")[0].strip() or None},
            "versions": {"torch": torch.__version__, "cuda": torch.version.cuda,
                         "cudnn": torch.backends.cudnn.version(), "triton": version("triton"),
                         "flash_attention_3": flash_attention_3.version(),
                         "flash_attention_4": flash_attention_4.version(), "cutile": cutile.version(),
                         "cutlass": cutlass.version(), "tilelang": tilelang_kernels.version(),
                         "quack": quack_softmax.version()}}


def why_not_here():
    """Why nothing can be timed on this machine, or ""."""
    try:
        import torch
    except ImportError:
        return "needs PyTorch with CUDA, which is not installed"
    if not torch.cuda.is_available():
        return "PyTorch sees no GPU"
    return "" if torch.cuda.get_device_capability() == (9, 0) else "the levels that it times need sm_90"


def main(arguments=None):
    options = parse(arguments)
    modules = [importlib.import_module(f"compare_{name}") for name in options.names]
    needs = [name for module in modules for name in module.NEEDS]
    if options.build_only:
        for library in libraries.build_all(needs):
            print(library)
        if "gemm" in options.names:
            built = cutlass.build_all()
            print(f"CUTLASS: {built}" if isinstance(built, str) else "\n".join(map(str, built.values())))
        return 0
    if why := why_not_here():
        print(f"compare: {why}", file=sys.stderr)
        return 1
    import torch
    libraries.build_all(needs)
    document = describe()
    print(", ".join([document["device"]["name"]] + [f"{name} {text or 'not installed'}"
                                                   for name, text in document["versions"].items()]))
    budget = timing.Budget(options.seconds)
    flush = torch.empty(timing.FLUSH_BYTES, dtype=torch.int8, device="cuda")
    comparisons, status = [], 0
    for name, module in zip(options.names, modules):
        try:
            for case in module.cases(options, flush, budget):
                print(contestants.case_text(case), flush=True)
                comparisons.append(case)
                if any(row in case["skipped"] for row in module.LEVELS):
                    status = 1  # our own level did not run, or is wrong
        except Exception as error:
            print(f"compare: {name}: {type(error).__name__}: {error}", file=sys.stderr)
            status = 1
        if budget.left() <= 0:
            print(f"compare: {name}: stopped after {budget.spent():.0f} s (--seconds)", file=sys.stderr)
    triton = contestants.Triton.load()
    document |= {"seconds": round(budget.spent(), 1),
                 "triton_configs": {key: list(config) for key, config in triton.chosen.items()} if triton else None,
                 "cutile": cutile.CuTile.document(), "comparisons": comparisons}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(document, indent=1) + "\n")
    print(f"wrote {options.out} after {budget.spent():.0f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
