# SPDX-License-Identifier: MIT
"""Softmax, GEMM and attention in Triton, as its users write them. The book is compared with these."""
import math

import triton
import triton.language as tl

try:  # Triton 3.4 and later
    from triton.tools.tensor_descriptor import TensorDescriptor
except ImportError:
    TensorDescriptor = None


# --- softmax: one row at a time in registers -------------------------------------------------------
@triton.jit
def softmax_rows(out_at, in_at, rows, cols, in_pitch, out_pitch, BLOCK: tl.constexpr):
    col = tl.arange(0, BLOCK)
    inside = col < cols
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(in_at + row * in_pitch + col, mask=inside, other=-float("inf")).to(tl.float32)
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_at + row * out_pitch + col, (e / tl.sum(e, axis=0)).to(out_at.dtype.element_ty), mask=inside)


# (warps, blocks per SM that stay; 0: a block per row)
SOFTMAX_CONFIGS = [(8, 0), (4, 0), (16, 0), (32, 0), (8, 4), (16, 2)]


def softmax(x, out, config, sms=1):
    """Softmax of every row of `x` into `out`; up to 65,536 columns, fewer than 2^31 elements."""
    rows, cols = x.shape
    warps, resident = config
    if x.numel() >= 2**31:
        raise ValueError("fewer than 2^31 elements")
    grid = (min(rows, resident * sms) if resident else rows,)
    softmax_rows[grid](out, x, rows, cols, x.stride(0), out.stride(0), BLOCK=triton.next_power_of_2(cols),
                       num_warps=warps)


# --- GEMM ------------------------------------------------------------------------------------------
@triton.jit
def tile_of(index, tiles_m, tiles_n, GROUP: tl.constexpr):
    """Tiles in groups of GROUP rows, column by column: tiles that run at the same time share operands in L2."""
    group = index // (GROUP * tiles_n)
    first = group * GROUP
    height = min(tiles_m - first, GROUP)
    inside = index % (GROUP * tiles_n)
    return first + inside % height, inside // height


@triton.jit
def product_tiles(a, b, c, m, n, k, lda, ldb, ldc, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                  BLOCK_K: tl.constexpr, GROUP: tl.constexpr):
    tile_m, tile_n = tile_of(tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP)
    row = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    # Rows and columns past the end wrap round: loaded, multiplied, and not stored.
    a_at = a + (row % m)[:, None] * lda + inner[None, :]
    b_at = b + inner[:, None] * ldb + (col % n)[None, :]
    # [quote gemm]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv(k, BLOCK_K)):
        left = k - step * BLOCK_K
        x = tl.load(a_at, mask=inner[None, :] < left, other=0.0)
        y = tl.load(b_at, mask=inner[:, None] < left, other=0.0)
        acc = tl.dot(x, y, acc)
        a_at += BLOCK_K
        b_at += BLOCK_K * ldb
    # [end quote]
    tl.store(c + row[:, None] * ldc + col[None, :], acc.to(c.dtype.element_ty),
             mask=(row[:, None] < m) & (col[None, :] < n))


@triton.jit
def product_tma(a, b, c, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
                GROUP: tl.constexpr):
    """The same through tensor descriptors (TMA), by persistent blocks."""
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    for index in range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0)):
        tile_m, tile_n = tile_of(index, tiles_m, tiles_n, GROUP)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for step in range(tl.cdiv(k, BLOCK_K)):
            x = a.load([tile_m * BLOCK_M, step * BLOCK_K])
            y = b.load([step * BLOCK_K, tile_n * BLOCK_N])
            acc = tl.dot(x, y, acc)
        c.store([tile_m * BLOCK_M, tile_n * BLOCK_N], acc.to(c.dtype))


# (BLOCK_M, BLOCK_N, BLOCK_K, warps, stages)
PRODUCT_CONFIGS = [(128, 256, 64, 8, 3), (128, 256, 64, 8, 4), (256, 128, 64, 8, 3), (128, 128, 64, 4, 4)]
PRODUCT_TMA_CONFIGS = [(128, 256, 64, 8, 3), (256, 128, 64, 8, 3), (128, 128, 64, 4, 4)]


def product(a, b, out, config):
    """out = a b, row-major, any extents."""
    (m, k), n = a.shape, b.shape[1]
    bm, bn, bk, warps, stages = config
    grid = (triton.cdiv(m, bm) * triton.cdiv(n, bn),)
    product_tiles[grid](a, b, out, m, n, k, a.stride(0), b.stride(0), out.stride(0), BLOCK_M=bm, BLOCK_N=bn,
                        BLOCK_K=bk, GROUP=8, num_warps=warps, num_stages=stages)


def product_with_descriptors(a, b, out, config, sms=1):
    """A callable for out = a b; the descriptors are made once. Rows must be multiples of 16 bytes."""
    (m, k), n = a.shape, b.shape[1]
    bm, bn, bk, warps, stages = config
    at_a, at_b, at_c = (TensorDescriptor.from_tensor(t, list(box))
                        for t, box in ((a, (bm, bk)), (b, (bk, bn)), (out, (bm, bn))))
    grid = (min(sms, triton.cdiv(m, bm) * triton.cdiv(n, bn)),)

    def call():
        product_tma[grid](at_a, at_b, at_c, m, n, k, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk, GROUP=8,
                          num_warps=warps, num_stages=stages)
    return call


# --- attention, forward ----------------------------------------------------------------------------
@triton.jit
def attend(acc, total, peak, q, k_at, v_at, k_pitch, v_pitch, row, col, begin, end, seq_k, shift, scale_log2,
           MASKED: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_N: tl.constexpr):
    """Keys begin .. end: `acc`, `total` and `peak` are the running output, sum and maximum."""
    for at in range(begin, end, BLOCK_N):
        key = at + col
        if MASKED:
            k = tl.load(k_at + at * k_pitch, mask=key[None, :] < seq_k, other=0.0)
        else:
            k = tl.load(k_at + at * k_pitch)
        s = tl.dot(q, k) * scale_log2
        if MASKED:
            visible = key[None, :] < seq_k
            if CAUSAL:
                visible = visible & (key[None, :] <= row[:, None] + shift)
            s = tl.where(visible, s, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(s, 1))
        # A row that has seen no key yet has no maximum to subtract.
        base = tl.where(new_peak == -float("inf"), 0.0, new_peak)
        p = tl.exp2(s - base[:, None])
        rescale = tl.exp2(peak - base)
        total = total * rescale + tl.sum(p, 1)
        acc = acc * rescale[:, None]
        if MASKED:
            v = tl.load(v_at + at * v_pitch, mask=key[:, None] < seq_k, other=0.0)
        else:
            v = tl.load(v_at + at * v_pitch)
        acc = tl.dot(p.to(v.dtype), v, acc)
        peak = new_peak
    return acc, total, peak


@triton.jit
def attention_rows(q, k, v, o, lse, q_batch, q_row, q_head, k_batch, k_row, k_head, v_batch, v_row, v_head,
                   o_batch, o_row, o_head, heads_q, ratio, seq_q, seq_k, scale_log2, DIM: tl.constexpr,
                   CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    block = tl.num_programs(0) - 1 - tl.program_id(0)  # with a causal mask the last have most to do
    head = tl.program_id(1) % heads_q
    batch = (tl.program_id(1) // heads_q).to(tl.int64)
    row = block * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.arange(0, BLOCK_N)
    dim = tl.arange(0, DIM)
    rows = tl.load(q + batch * q_batch + head * q_head + row[:, None] * q_row + dim[None, :],
                   mask=row[:, None] < seq_q, other=0.0)
    k_at = k + batch * k_batch + head // ratio * k_head + col[None, :] * k_row + dim[:, None]
    v_at = v + batch * v_batch + head // ratio * v_head + col[:, None] * v_row + dim[None, :]

    shift = seq_k - seq_q  # the mask is aligned to the bottom right
    if CAUSAL:
        end = tl.maximum(tl.minimum(seq_k, (block + 1) * BLOCK_M + shift), 0)
        whole = tl.maximum(tl.minimum(seq_k, block * BLOCK_M + shift + 1), 0) // BLOCK_N * BLOCK_N
    else:
        end = seq_k
        whole = seq_k // BLOCK_N * BLOCK_N
    acc = tl.zeros((BLOCK_M, DIM), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    peak = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    acc, total, peak = attend(acc, total, peak, rows, k_at, v_at, k_row, v_row, row, col, 0, whole, seq_k, shift,
                              scale_log2, False, CAUSAL, BLOCK_N)
    acc, total, peak = attend(acc, total, peak, rows, k_at, v_at, k_row, v_row, row, col, whole, end, seq_k, shift,
                              scale_log2, True, CAUSAL, BLOCK_N)

    acc = acc / total[:, None]
    tl.store(o + batch * o_batch + head * o_head + row[:, None] * o_row + dim[None, :], acc.to(o.dtype.element_ty),
             mask=row[:, None] < seq_q)
    tl.store(lse + tl.program_id(1).to(tl.int64) * seq_q + row, (peak + tl.log2(total)) * 0.6931471805599453,
             mask=row < seq_q)


# head dimension -> (BLOCK_M, BLOCK_N, warps, stages)
ATTENTION_CONFIGS = {64: [(128, 128, 8, 3), (128, 64, 4, 3), (64, 64, 4, 3)],
                     128: [(128, 128, 8, 2), (128, 64, 8, 3), (128, 64, 4, 2)]}


def attention(q, k, v, o, lse, causal, config):
    """q, o: [batch, seq_q, heads_q, dim]; k, v: [batch, seq_k, heads_kv, dim]; lse: [batch, heads_q, seq_q]."""
    batch, seq_q, heads_q, dim = q.shape
    bm, bn, warps, stages = config
    strides = [t.stride(i) for t in (q, k, v, o) for i in (0, 1, 2)]
    grid = (triton.cdiv(seq_q, bm), batch * heads_q)
    attention_rows[grid](q, k, v, o, lse, *strides, heads_q, heads_q // k.shape[2], seq_q, k.shape[1],
                         1.4426950408889634 / math.sqrt(dim), DIM=dim, CAUSAL=causal, BLOCK_M=bm, BLOCK_N=bn,
                         num_warps=warps, num_stages=stages)
