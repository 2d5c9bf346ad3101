# SPDX-License-Identifier: MIT
"""TileLang: a GEMM as its guide writes one, where the package is installed (PyPI: tilelang)."""
import importlib

from . import why_not

NAME = "TileLang"
# (rows, columns and k of a tile, threads that multiply, stages): TileLang adds the warps that copy.
CONFIGS = [(128, 256, 64, 256, 4), (256, 128, 64, 256, 4), (128, 256, 64, 256, 3), (128, 128, 64, 256, 4)]


def version():
    """What the results say of it; None where there is none."""
    try:
        return importlib.import_module("tilelang").__version__
    except Exception:  # a package for another driver fails with errors of its own
        return None


def product(m, n, k, config):
    """C = A B, bf16, row-major, as a function of TileLang."""
    import tilelang.language as T
    tile_m, tile_n, tile_k, threads, stages = config

    @T.prim_func
    def kernel(A: T.Tensor((m, k), "bfloat16"), B: T.Tensor((k, n), "bfloat16"), C: T.Tensor((m, n), "bfloat16")):
        with T.Kernel(T.ceildiv(n, tile_n), T.ceildiv(m, tile_m), threads=threads) as (column, row):
            a = T.alloc_shared((tile_m, tile_k), "bfloat16")
            b = T.alloc_shared((tile_k, tile_n), "bfloat16")
            c = T.alloc_shared((tile_m, tile_n), "bfloat16")
            acc = T.alloc_fragment((tile_m, tile_n), "float")
            T.use_swizzle(panel_size=10)
            T.clear(acc)
            # [quote gemm]
            for step in T.Pipelined(T.ceildiv(k, tile_k), num_stages=stages):
                T.copy(A[row * tile_m, step * tile_k], a)
                T.copy(B[step * tile_k, column * tile_n], b)
                T.gemm(a, b, acc)
            # [end quote]
            T.copy(acc, c)
            T.copy(c, C[row * tile_m, column * tile_n])

    return kernel


def choose(a, b, out, fastest):
    """(the fastest configuration, its callable), or (None, the reason why there is none). fastest(configs, make):
    timing.fastest."""
    try:
        import tilelang
    except Exception as error:
        return None, why_not(error, "tilelang", "tilelang")

    def make(config):
        compiled = []

        def call():  # compiles when it is first called: a configuration that does not compile is left out
            if not compiled:
                compiled.append(tilelang.compile(product(a.shape[0], b.shape[1], a.shape[1], config)))
            compiled[0](a, b, out)

        return call

    return fastest(CONFIGS, make)
