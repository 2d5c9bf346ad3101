# SPDX-License-Identifier: MIT
"""What each question of an exercise to read comes to, computed without the tracer: by a formula, or from the addresses of
every warp. {exercise: function of the drawn values}; a question that is missing has the tracer's word only.
"""
from math import ceil


def units(addresses, width, unit=32):
    """Distinct units (sectors of 32 bytes) that accesses of `width` bytes at these addresses touch."""
    return len({byte // unit for address in addresses for byte in (address, address + width - 1)})


def warps(lanes, width=1):
    """The indices of each full or partial warp of `lanes` consecutive threads."""
    return [range(first, min(first + 32, lanes), width) for first in range(0, lanes, 32)]


def off_the_line(n, shift):
    return {"load_requests": ceil(n / 32), "store_sectors": ceil(n / 8),
            "load_sectors": sum(units([4 * (i + shift) for i in warp], 4) for warp in warps(n))}


def head_and_tail(n, shift):
    head = -shift % 4
    vectors = (n - head) // 4
    return {"singles": n - 4 * vectors, "vector_requests": ceil(vectors / 32),
            "vector_sectors": sum(units([4 * (shift + head) + 16 * i for i in warp], 16) for warp in warps(vectors))}


FORMULAS = {"1.11": off_the_line, "1.12": head_and_tail}
