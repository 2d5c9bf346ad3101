# SPDX-License-Identifier: MIT
"""Chapter 8 against cuBLAS (through PyTorch), Triton (pointers and TMA descriptors), cuTile,
CUTLASS and TileLang, in bf16."""
from contestants import Triton, cutile, cutlass, near_at, run_case, tilelang_kernels, timing
from contestants.libraries import GemmProblem, Library

CHAPTER = 8
NEEDS = ["gemm"]
LEVELS = {"any_shape": "library/gemm/any_shape.cuh"}


def sizes(quick):
    """Extents of square GEMMs."""
    return [4096, 8192]


def tile_problems(quick):
    """What cuTile is tuned on."""
    return [cutile.Problem("gemm", (n, n, n)) for n in sizes(quick)]


def reference(a, b, rows):
    """(rows of A B, the same of absolute values) in fp64, a slice of columns at a time."""
    import torch
    x = a[rows].double()
    parts, bounds = [], []
    for columns in b.split(1024, dim=1):
        y = columns.double()
        parts.append(x @ y)
        bounds.append(x.abs() @ y.abs())
    return torch.cat(parts, 1), torch.cat(bounds, 1)


def cases(options, flush, budget):
    import torch
    library = Library("gemm")
    triton = Triton.load()
    cutlass_libraries = cutlass.build_all()
    tiles = cutile.CuTile(tile_problems(options.quick), budget)
    for n in sizes(options.quick):
        if budget.left() <= 0:
            return
        torch.manual_seed(1)
        a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        out = torch.empty_like(a)
        spots = torch.linspace(0, n - 1, 16, device="cuda").long()
        exact, magnitude = reference(a, b, spots)
        # What the book allows tensor cores, and half an ulp of the bf16 result.
        allowed = 2 * n * 2.0**-24 * magnitude + exact.abs() / 256 + 1e-12
        notes = {}
        contestants = {level: library.plan(level, GemmProblem(n, n, n, 0, 0, 0, 0, 0), a, b, out) for level in LEVELS}
        contestants["cuBLAS"] = lambda: torch.matmul(a, b, out=out)
        if triton:
            kernels = triton.kernels
            contestants["Triton"] = triton.choose(
                "Triton", kernels.PRODUCT_CONFIGS[:2] if options.quick else kernels.PRODUCT_CONFIGS,
                lambda config: lambda: kernels.product(a, b, out, config), flush, budget)
            if kernels.TensorDescriptor:
                contestants["Triton, TMA"] = triton.choose(
                    "Triton, TMA", kernels.PRODUCT_TMA_CONFIGS[:1] if options.quick else kernels.PRODUCT_TMA_CONFIGS,
                    lambda config: kernels.product_with_descriptors(a, b, out, config, triton.sms), flush, budget)
            else:
                notes["Triton, TMA"] = "needs Triton 3.4 or later"
        contestants |= tiles.contestants(cutile.Problem("gemm", (n, n, n)), a, b, out)
        def fastest(configs, make):
            return timing.fastest(configs, make, flush, budget)
        config, contestants["CUTLASS"] = cutlass.choose(cutlass_libraries, a, b, out, fastest)
        tile, contestants[tilelang_kernels.NAME] = tilelang_kernels.choose(a, b, out, fastest)
        yield run_case(
            {"chapter": CHAPTER, "ladder": "gemm", "size": [n, n, n], "dims": ["M", "N", "K"], "dtype": "bf16",
             "variant": "NN", "flops": 2.0 * n**3, "bytes": 6.0 * n * n, "unit": "TFLOP/s"},
            contestants, LEVELS, out, near_at(out, spots, exact, allowed), options.rounds, flush, notes,
            configs={name: chosen for name, chosen in (("CUTLASS", config), (tilelang_kernels.NAME, tile)) if chosen})
        del a, b, out, contestants
