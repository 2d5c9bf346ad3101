# SPDX-License-Identifier: MIT
"""library/rows against Triton's fused softmax, cuTile's, QuACK's and PyTorch's, fp32 and bf16, at several row lengths."""
from contestants import Triton, cutile, near_at, quack_softmax, run_case
from contestants.libraries import Library, RowsProblem

CHAPTER = 9
NEEDS = ["rows"]
LEVELS = {"rows": "library/rows/rows.cuh"}
ELEMENTS = 1 << 28  # bytes of a matrix in bf16, half as many elements in fp32: 1 GiB is moved


def sizes(quick):
    """(dtype, rows, columns)."""
    columns = (1024, 8192, 32768) if quick else (1024, 4096, 8192, 16384, 32768)
    return [(dtype, ELEMENTS // (1 if dtype == "bf16" else 2) // cols, cols)
            for cols in columns for dtype in ("f32", "bf16")]


def tile_problems(quick):
    """What cuTile is tuned on: short rows and long ones. Every size needs its own kernels."""
    return [cutile.Problem("softmax", (rows, cols), dtype) for dtype, rows, cols in sizes(quick)
            if cols in (4096, 32768)]


def reference(x, rows):
    import torch
    return torch.softmax(x[rows].double(), 1)


def tolerance(exact, dtype):
    """Allowed error: the fp32 sum of a row and the exponential, and half an ulp of a bf16 result."""
    return 2e-5 * exact + 1e-12 + (exact / 256 if dtype == "bf16" else 0)


def cases(options, flush, budget):
    import torch
    library = Library("rows")
    triton = Triton.load()
    tiled = tile_problems(options.quick)
    tiles = cutile.CuTile(tiled, budget)
    for dtype, rows, cols in sizes(options.quick):
        if budget.left() <= 0:
            return
        torch.manual_seed(1)
        x = torch.randn(rows, cols, device="cuda", dtype=torch.float32 if dtype == "f32" else torch.bfloat16)
        out = torch.empty_like(x)
        spots = torch.linspace(0, rows - 1, 16, device="cuda").long()
        exact = reference(x, spots)
        problem = RowsProblem(rows, cols, 0, 0, 2 if dtype == "f32" else 0)
        contestants = {level: library.plan(level, problem, x, None, out) for level in LEVELS}
        if triton:
            contestants["Triton"] = triton.choose(
                "Triton", triton.kernels.SOFTMAX_CONFIGS[:3] if options.quick else triton.kernels.SOFTMAX_CONFIGS,
                lambda config: lambda: triton.kernels.softmax(x, out, config, triton.sms), flush, budget)
        if (problem := cutile.Problem("softmax", (rows, cols), dtype)) in tiled:
            contestants |= tiles.contestants(problem, out, x)
        else:
            contestants[cutile.NAME] = "tried with 4,096 and 32,768 columns only: each size is compiled on its own"
        contestants[quack_softmax.NAME] = quack_softmax.make(x, out)
        contestants["PyTorch"] = lambda: torch.softmax(x, 1, out=out)
        yield run_case(
            {"chapter": CHAPTER, "ladder": "softmax" if dtype == "f32" else "softmax_bf16", "size": [rows, cols],
             "dims": ["rows", "cols"], "dtype": dtype, "variant": "", "flops": 0,
             "bytes": 2.0 * x.numel() * x.element_size(), "unit": "GB/s"},
            contestants, LEVELS, out, near_at(out, spots, exact, tolerance(exact, dtype)), options.rounds, flush)
        del x, out, contestants
