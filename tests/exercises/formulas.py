# SPDX-License-Identifier: MIT
"""What each question of an exercise to read comes to, computed without the tracer: by a formula, or from the addresses of
every warp. {exercise: function of the drawn values}
"""
from math import ceil


def units(addresses, width, unit=32):
    """Distinct units (sectors of 32 bytes) that accesses of `width` bytes at these addresses touch."""
    return len({byte // unit for address in addresses for byte in (address, address + width - 1)})


def warps(lanes, width=1):
    """The indices of each full or partial warp of `lanes` consecutive threads."""
    return [range(first, min(first + 32, lanes), width) for first in range(0, lanes, 32)]


def up(value, step):
    """`value`, rounded up to a multiple of `step`."""
    return ceil(value / step) * step


def row_sectors(rows, row_floats):
    """Sectors of rows of floats without padding, each read by warps of its own."""
    return sum(units([4 * (row * row_floats + i) for i in warp], 4) for row in range(rows) for warp in warps(row_floats))


def l2_traffic(rows, repeats):
    requests = up(rows, 8) * 8 * repeats
    return {"requests": requests, "sectors": 16 * requests, "bytes": 512 * requests}


def ring_start(blocks, repeats):
    return {"load_wavefronts": blocks * 8 * repeats * 4, "start_requests": blocks * 8 * 4,
            "start_sectors": sum(units([4 * (4 * t + part) for t in warp], 4) for warp in warps(256) for part in range(4)) * blocks}


def off_the_line(n, shift):
    return {"load_requests": ceil(n / 32), "store_sectors": ceil(n / 8),
            "load_sectors": sum(units([4 * (i + shift) for i in warp], 4) for warp in warps(n))}


def head_and_tail(n, shift):
    head = -shift % 4
    vectors = (n - head) // 4
    return {"singles": n - 4 * vectors, "vector_requests": ceil(vectors / 32),
            "vector_sectors": sum(units([4 * (shift + head) + 16 * i for i in warp], 16) for warp in warps(vectors))}


def structs(n):
    return {"structs_sectors": 2 * n, "structs_used": 12.5, "x_sectors": ceil(n / 8),
            "vx_sectors": sum(units([4 * (3 * n + i) for i in warp], 4) for warp in warps(n))}


def who_reads_what(m, n, k):
    return {"naive_a": m * n * k, "naive_b": ceil(m / 32) * n * k, "coalesced_a": m * ceil(n / 32) * k,
            "coalesced_b": m * k * n // 8}


def words_per_fma(m, n, k):
    two_d = ceil(m / 128) * ceil(n / 128) * up(k, 8) * 8 * 16
    return {"one_d": ceil(m / 64) * ceil(n / 64) * up(k, 8) * 16 * 9, "two_d": two_d, "wavefronts": two_d}


def tiles_and_traffic(m, n, k):
    return {f"{name}_{operand}": 4 * k * one * ceil(other / tile) for name, tile in (("small", 32), ("large", 128))
            for operand, one, other in (("a", m, n), ("b", n, m))}


def partial_tiles(rows, cols):
    return {"write_wavefronts": rows * ceil(cols / 32), "read_wavefronts": rows * cols,
            "padded_wavefronts": cols * ceil(rows / 32)}


def rows_mid_sector(rows, cols):
    return {"naive_loads": row_sectors(rows, cols), "naive_stores": rows * cols, "tile_stores": row_sectors(cols, rows)}


def width_and_stride(level, n):
    width = int(level.split("_")[1]) // 4
    stride = int(level.split("_")[3]) if "stride" in level else 1
    together = 32 // width  # lanes that one wavefront could serve
    banks = [lane * width * stride % 32 for lane in range(together)]
    per_request = width * max(map(banks.count, banks))
    return {"per_request": per_request, "wavefronts": ceil(n / (256 * width)) * 8 * 32 * per_request}


def copies_ahead(level, m, n, k):
    blocks = ceil(m / 128) * ceil(n / 128)
    ahead = {"async_copy": 1, "multistage": 3}[level]
    return {"a_requests": blocks * (ceil(k / 8) + ahead) * 32, "a_bytes": blocks * 128 * k * 4}


def fragment_wavefronts(m, n, k):
    steps = ceil(m / 128) * ceil(n / 128) * up(k, 8) * 8
    return {"requests": 4 * steps, "strips": 12 * steps, "compact": 8 * steps}


def blocks(m, n, tile_m, tile_n):
    return ceil(m / tile_m) * ceil(n / tile_n)


def ldmatrix_rows(m, n, k):
    warp_steps = blocks(m, n, 128, 128) * ceil(k / 64) * 4 * 8
    return {"a_requests": 4 * warp_steps, "plain": 4 * 32 * warp_steps, "swizzled": 4 * 4 * warp_steps,
            "b_requests": 2 * warp_steps}


def two_epilogues(m, n, k):
    return {"pair_requests": ceil(m / 8) * n // 8, "pair_sectors": m * n // 8, "row_requests": m * ceil(n / 256),
            "row_sectors": m * n // 16}


def panels(m, n, k):
    tiles = blocks(m, n, 128, 128) * ceil(k / 64)
    return {"plain_boxes": 24 * tiles, "swizzled_boxes": 3 * tiles, "a_bytes": 2 * m * k * ceil(n / 128)}


def zero_filled(m, n, k):
    return {"boxes": blocks(m, n, 128, 256) * ceil(k / 64) * 5, "b_reading": ceil(m / 128) * ceil(n / 64) * ceil(k / 64),
            "b_bytes": 2 * k * n * ceil(m / 128)}


def span_and_banks(level, m, n, k):
    tiles = blocks(m, n, 128, 128) * ceil(k / 64)
    span = {"no_swizzle": 128, "swizzle_32": 32, "swizzle_64": 64, "swizzle_128": 128}[level]
    wavefronts = 32 if level == "no_swizzle" else 4
    return {"boxes": tiles * (64 + 128) * 2 // span, "per_request": wavefronts, "wavefronts": tiles * 4 * 8 * 4 * wavefronts}


def shared_b(m, n, k):
    return {"alone": 2 * k * n * ceil(m / 128), "shared": 2 * k * n * ceil(m / 256), "a_bytes": 2 * m * k * ceil(n / 256)}


def fetched_tiles(m, n, k):
    return {"fetches": blocks(m, n, 256, 256) + 2, "a_bytes": 2 * m * k * ceil(n / 256), "b_bytes": 2 * k * n * ceil(m / 256)}


def narrower_tiles(m, n, k):
    return {"static_a": 2 * m * k * ceil(n / 256), "pingpong_a": 2 * m * k * ceil(n / 192),
            "pingpong_b": 2 * k * n * ceil(m / 256)}


def passes(rows, cols):
    return {"thread_sectors": 3 * rows * cols, "block_sectors": 3 * rows * cols // 8, "online_bytes": 8 * rows * cols}


def trees(rows, cols):
    steps = sum(ceil(half / 32) for half in (128, 64, 32, 16, 8, 4, 2, 1))
    return {"tree_stores": rows * steps, "tree_loads": 2 * rows * steps, "shuffle_stores": 8 * rows, "shuffle_loads": 8 * rows}


def scores_in_memory(heads, q, keys):
    return {"scores": 8 * 4 * heads * q * keys, "keys": heads * ceil(q / 64) * keys * 128}


def causal_tiles(q):
    needed = [min(first + 64, q) for first in range(0, q, 64)]
    return {"bytes": 128 * sum(needed), "stores": sum(up(keys, 32) * 2 for keys in needed)}


def shared_heads(kv, heads_q, keys):
    return {"per_head": heads_q * keys * 128, "packed": kv * keys * 128}


def tables(tokens, heads):
    return {"x_bytes": tokens * heads * 128, "table_bytes": tokens * heads * 128, "requests": 2 * ceil(tokens * heads * 4 / 32)}


def second_read(rows, cols):
    return {"in_bytes": 4 * rows * cols, "weight_bytes": 2 * rows * cols, "requests": 3 * rows * ceil(cols / 256)}


def scales(m, n, k):
    requests = blocks(m, n, 64, 128) * k // 128 * 8
    boxes = blocks(m, n, 128, 128) * k // 128
    return {"thread_requests": requests, "thread_bytes": 128 * requests, "tma_requests": boxes, "tma_bytes": 512 * boxes}


def wider_tiles(m, n, k):
    return {**{f"b_{rows}": k * n * ceil(m / rows) for rows in (64, 128, 256)}, "a_256": m * k * ceil(n / 256)}


def rows_and_tiles(q, keys):
    return {"rows_k": 128 * q * keys, "tiled_k": 128 * keys * ceil(q / 32), "tiled_q": 128 * q * ceil(keys / 32)}


def adding_dq(heads, q, keys):
    requests = heads * blocks(q, keys, 64, 64) * 64 * 64 // 32
    return {"requests": requests, "sectors": 8 * requests, "atomic_bytes": 128 * requests,
            "bulk_bytes": heads * blocks(q, keys, 64, 128) * 64 * 64 * 4}


def pairs(m, n, k):
    return {"alone_b": 2 * k * n * ceil(m / 128), "pair_b": 2 * k * n * ceil(m / 256), "pair_a": 2 * m * k * ceil(n / 256)}


def atoms_of_scales(m, n, k):
    tiles = blocks(m, n, 128, 128) * ceil(k / 128)
    return {"scale_bytes": 512 * tiles, "a_bytes": m * k * ceil(n / 128), "copies": tiles}


def instructions_of_copies(m, n, k):
    tiles = blocks(m, n, 128, 256)
    return {"cp_async": tiles * (ceil(k / 64) + 3) * 96, "boxes": tiles * ceil(k / 32) * 5}


def stored_boxes(m, n, k):
    return {"pair_sectors": m * n // 8, "boxes": ceil(m / 16) * ceil(n / 64), "box_sectors": m * n // 16}


def arithmetic_alone(blocks, repeats):
    return {"load_bytes": blocks * 1024, "load_sectors": blocks * 32, "store_sectors": blocks * 32}


def packed_boxes(m, n, k):
    packs = blocks(m, n, 128, 256) * 32 * 4
    return {"packs": packs, "wavefronts": 4 * packs, "written": ceil(m / 16) * ceil(n / 64)}


def who_loads(rows, cols):
    return {"requests": rows * ceil(cols / 128), "copies": rows * ceil(cols / 512), "bytes": 4 * rows * cols}


def eight_columns(heads, q):
    return {"single_requests": 8 * heads * ceil(q / 4), "single_sectors": 32 * heads * q, "pair_sectors": 4 * heads * q}


def finer_scales(m, n, k):
    return {"scale_bytes": blocks(m, n, 128, 128) * ceil(k / 64) * 512, "a_bytes": m * k // 2 * ceil(n / 128)}


def both_blocks(m, n, k):
    clusters, k_blocks = blocks(m, n, 256, 256), ceil(k / 64)
    return {"arrivals": 2 * clusters * k_blocks * 8, "written": 2 * clusters * k_blocks * 64 * 256 * 2,
            "alone": blocks(m, n, 128, 256) * k_blocks * 64 * (128 + 256) * 2}


def cut_tile(m, n, k):
    return {"given": 256 * 256 * 4, "requests": 256 * 256 * 4 // 512, "a_bytes": 2 * m * k * ceil(n / 256)}


def narrow_elements(m, n, k):
    return {"requests": m * ceil(n / 64) * k // 32, "per_request": 32, "b_bytes": n * k * ceil(m / 64),
            "boxes": blocks(m, n, 128, 128) * ceil(k / 128)}


def read_again(m, n, k):
    steps = blocks(m, n, 128, 256) * ceil(k / 32)
    return {"written": steps * (128 * 32 + 32 * 256) * 2, "requests": steps * 2 * 8 * 8, "read": steps * 2 * 8 * 8 * 512}


FORMULAS = {
    "0.11": l2_traffic, "0.12": ring_start, "1.11": off_the_line, "1.12": head_and_tail, "1.13": structs,
    "2.11": who_reads_what, "2.12": words_per_fma, "2.13": tiles_and_traffic, "3.11": partial_tiles, "3.12": rows_mid_sector,
    "3.13": width_and_stride, "4.11": copies_ahead, "4.12": fragment_wavefronts, "5.11": ldmatrix_rows, "5.12": two_epilogues,
    "6.11": panels, "6.12": zero_filled, "7.11": span_and_banks, "7.12": shared_b, "8.11": fetched_tiles,
    "8.12": narrower_tiles, "9.11": passes, "9.12": trees, "10.11": scores_in_memory, "10.12": causal_tiles,
    "10.13": shared_heads, "11.11": tables, "11.12": second_read, "12.11": scales, "12.12": wider_tiles,
    "13.11": rows_and_tiles, "13.12": adding_dq, "14.11": pairs, "14.12": atoms_of_scales, "15.11": instructions_of_copies,
    "15.12": stored_boxes, "0.13": arithmetic_alone, "6.13": packed_boxes, "9.13": who_loads, "13.13": eight_columns,
    "14.13": finer_scales, "7.13": both_blocks, "8.13": cut_tile, "12.13": narrow_elements, "15.13": read_again,
}
