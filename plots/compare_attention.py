#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""library/attention and the levels of chapter 10 against cuDNN and FlashAttention-2 (both through PyTorch), FlashAttention-3, Triton and cuTile.

`./run compare attention` times the library. On its own, this times any levels over many sizes: one
process, one set of tensors, the contestants interleaved: every round times each of them once, in a
random order, and ratios are formed within a round. Writes one JSON file and prints a table.

    python3 plots/compare_attention.py --out plots/results/h200/attention.json          (h200: the GPU's folder)
    python3 plots/compare_attention.py --levels persistent,multicast --sizes 8192 --dims 128
    python3 plots/compare_attention.py --decode --out plots/results/h200/attention-decode.json

Needs PyTorch with CUDA and an sm_90 GPU. FlashAttention-3 takes part where it is installed: see
contestants/flash_attention_3.py. Builds libcookbook_attention.so with nvcc when it is missing or
older than its sources.
"""
import argparse
import json
import math
import os
import statistics
import sys

import contestants
from contestants import cutile, flash_attention_3
from contestants.libraries import AttentionProblem, Library, build
from contestants.timing import Budget, quartiles, time_all

CHAPTER = 10
NEEDS = ["attention"]
LEVELS = {"attention": "library/attention/attention.cuh"}
DECODE = ["block_per_head", "split", "gqa_packed", "one_launch", "wide_tile", "attention"]

# (batch, heads_q, heads_kv, seq_q, seq_k, head_dim), causal
MORE = [((4, 64, 8, 4096, 4096, 128), True), ((1, 16, 16, 32768, 32768, 128), False),
        ((1, 16, 16, 32768, 32768, 128), True), ((2, 16, 16, 4099, 777, 128), False)]


def source_of(level):
    """The file that defines a level, by the name in it; None: there is none."""
    root = contestants.book.ROOT
    files = sorted(file for folder in ("chapters/10_flash_attention", "library/attention") for file in (root / folder).glob("*.cuh"))
    return next((file for file in files if f'.name = "{level}",' in file.read_text()), None)


def visible_pairs(seq_q, seq_k, causal):
    if not causal:
        return seq_q * seq_k
    return sum(max(0, min(seq_k, i + 1 + seq_k - seq_q)) for i in range(seq_q))


def reference(q, k, v, causal, batch, head, rows):
    """o and lse of some rows of one head in fp64."""
    import torch
    ratio = q.shape[2] // k.shape[2]
    qd = q[batch, rows, head].double()
    kd, vd = k[batch, :, head // ratio].double(), v[batch, :, head // ratio].double()
    s = qd @ kd.T / math.sqrt(q.shape[3])
    if causal:
        limit = rows + 1 + k.shape[1] - q.shape[1]
        s = s.masked_fill(torch.arange(k.shape[1], device=s.device) >= limit[:, None], -math.inf)
    lse = torch.logsumexp(s, 1)
    p = torch.exp(s - lse.clamp(min=-1e300)[:, None])
    return p @ vd, lse


def plain(q, k, v, causal, batch, head, rows):
    """A plain 16-bit implementation: scores and weights rounded to the type."""
    import torch
    ratio = q.shape[2] // k.shape[2]
    kh, vh = k[batch, :, head // ratio], v[batch, :, head // ratio]
    s = (q[batch, rows, head] @ kh.T) / math.sqrt(q.shape[3])
    if causal:
        limit = rows + 1 + k.shape[1] - q.shape[1]
        s = s.masked_fill(torch.arange(k.shape[1], device=s.device) >= limit[:, None], -math.inf)
    return torch.softmax(s.float(), 1).to(q.dtype) @ vh


def sdpa(backend, qt, kt, vt, causal):
    """Attention by one of PyTorch's backends. is_causal aligns to the top left: the same where seq_q = seq_k."""
    import torch.nn.functional as F
    from torch.nn.attention import sdpa_kernel
    with sdpa_kernel(backend):
        return F.scaled_dot_product_attention(qt, kt, vt, is_causal=causal, enable_gqa=qt.shape[1] != kt.shape[1])


def choose_triton(triton, q, k, v, o, lse, causal, quick, flush, budget):
    """Triton's fastest configuration: looked for once per head dimension, and then used with any mask."""
    kernels, dim = triton.kernels, q.shape[3]
    key = f"attention {dim}"
    configs = [triton.chosen[key]] if key in triton.chosen else kernels.ATTENTION_CONFIGS[dim]
    if quick:
        configs = configs[:1]
    return triton.choose(key, configs, lambda config: lambda: kernels.attention(q, k, v, o, lse, causal, config),
                         flush, budget)


def in_tiles(tiles, q, k, v, causal, returned):
    """cuTile's contestants. Its kernels want (batch, heads, seq, head_dim): copies in that order are made here."""
    import torch
    batch, seq, heads, dim = q.shape
    like = next((problem for problem in tiles.results if problem.causal == causal and problem.size[3] == dim), None)
    if like is None:
        return {cutile.NAME: "tried with head dimension 128 only"}
    tensors = [t.transpose(1, 2).contiguous() for t in (q, k, v)]
    result = torch.full_like(tensors[0], float("nan"))
    problem = cutile.Problem("attention", (batch, heads, seq, dim), "bf16", causal)
    calls = tiles.contestants(problem, *tensors, result, like=like)

    def returning(name, call):
        def launch():
            call()
            returned[name] = result
        return launch

    return {name: call if isinstance(call, str) else returning(name, call) for name, call in calls.items()}


def sizes(quick):
    """(batch, heads, seq, head_dim, causal): 16,384 tokens of 2,048 features."""
    lengths = (4096,) if quick else (2048, 4096, 8192, 16384)
    return [(16384 // seq, 2048 // dim, seq, dim, causal) for dim in (128, 64) for seq in lengths
            for causal in (False, True)]


def tile_problems(quick):
    """What cuTile is tuned on: one length per mask, as its kernels are the same at every length."""
    return [cutile.Problem("attention", (batch, heads, seq, dim), "bf16", causal)
            for batch, heads, seq, dim, causal in sizes(quick) if dim == 128 and (quick or seq == 8192)]


def cases(options, flush, budget):
    """For ./run compare."""
    import torch
    from torch.nn.attention import SDPBackend
    library = Library("attention")
    triton = contestants.Triton.load()
    tiles = cutile.CuTile(tile_problems(options.quick), budget)
    for batch, heads, seq, dim, causal in sizes(options.quick):
        if budget.left() <= 0:
            return
        torch.manual_seed(1)
        q, k, v = (torch.randn(batch, seq, heads, dim, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        out = torch.empty_like(q)
        lse = torch.empty(batch, heads, seq, device="cuda")
        qt, kt, vt = (t.transpose(1, 2) for t in (q, k, v))
        spots = torch.linspace(0, seq - 1, 64, device="cuda").long()
        heads_at = [(0, 0), (batch - 1, heads - 1)]
        exact = torch.stack([reference(q, k, v, causal, i, h, spots)[0] for i, h in heads_at])
        # As the book allows: twice the error of a plain implementation in 16 bits.
        allowed = 2 * max((plain(q, k, v, causal, i, h, spots).double() - e).abs().max().item()
                          for (i, h), e in zip(heads_at, exact)) + 1e-6

        def right(out=out, exact=exact, spots=spots, allowed=allowed, heads_at=heads_at):
            return contestants.check(torch.stack([out[i, spots, h].double() for i, h in heads_at]), exact, allowed)

        running = {}
        for level in LEVELS:
            running[level] = library.plan(level, AttentionProblem(batch, heads, heads, seq, seq, dim, int(causal), 0),
                                          q, k, v, out, lse)
        returned = {}  # PyTorch's come as new tensors: copied out where they are checked
        for name, backend in (("cuDNN", SDPBackend.CUDNN_ATTENTION), ("FlashAttention-2", SDPBackend.FLASH_ATTENTION)):
            def call(name=name, backend=backend):
                returned[name] = sdpa(backend, qt, kt, vt, causal)

            running[name] = call
        running[flash_attention_3.NAME] = call = flash_attention_3.make(q, k, v, out, lse, causal)
        if not isinstance(call, str):
            def call_fa3(call=call):
                if (new := call()) is not None:
                    returned[flash_attention_3.NAME] = new.transpose(1, 2)

            running[flash_attention_3.NAME] = call_fa3
        if triton:
            running["Triton"] = choose_triton(triton, q, k, v, out, lse, causal, options.quick, flush, budget)
        running |= in_tiles(tiles, q, k, v, causal, returned)

        def right_of_all():
            if returned:
                result = returned.popitem()[1]
                out.copy_(result.transpose(1, 2))
                result.fill_(float("nan"))  # cuTile writes the same tensor again
            return right()

        flops = 4.0 * dim * visible_pairs(seq, seq, causal) * batch * heads
        yield contestants.run_case(
            {"chapter": CHAPTER, "ladder": "attention", "size": [batch, heads, heads, seq, seq, dim],
             "dims": ["batch", "heads_q", "heads_kv", "seq_q", "seq_k", "head_dim"], "dtype": "bf16",
             "variant": "causal" if causal else "full", "flops": flops, "bytes": 8.0 * q.numel(), "unit": "TFLOP/s"},
            running, LEVELS, out, right_of_all, options.rounds, flush,
            time_all=lambda calls, rounds, buffer: forgetting(returned, calls, rounds, buffer))
        del q, k, v, qt, kt, vt, out, lse, running


def forgetting(returned, calls, rounds, flush):
    """time_all, and what was returned meanwhile poisoned and dropped: the check that follows must see its own."""
    times = time_all(calls, rounds, flush)
    for result in returned.values():
        result.fill_(float("nan"))
    returned.clear()
    return times


def run_case(lib, levels, shape, causal, dtype, rounds, flush, repeats, with_triton=True):
    import torch
    from torch.nn.attention import SDPBackend
    b, hq, hk, sq, sk, d = shape
    torch.manual_seed(1)
    q = torch.randn(b, sq, hq, d, device="cuda", dtype=dtype)
    k, v = (torch.randn(b, sk, hk, d, device="cuda", dtype=dtype) for _ in range(2))
    qt, kt, vt = (t.transpose(1, 2) for t in (q, k, v))
    problem = AttentionProblem(b, hq, hk, sq, sk, d, int(causal), 0 if dtype == torch.bfloat16 else 1)
    running, skipped, errors = {}, {}, {}
    rows = torch.unique(torch.linspace(0, sq - 1, 64, device="cuda").long())
    spots = [(0, 0), (b - 1, hq - 1)]
    exact = [reference(q, k, v, causal, i, h, rows) for i, h in spots]
    plain_error = max((plain(q, k, v, causal, i, h, rows).double() - o).abs().max().item()
                      for (i, h), (o, _) in zip(spots, exact))
    exact_rows, allowed = torch.stack([o for o, _ in exact]), 2 * plain_error + 1e-6

    def right(name, o):
        """Whether the output is as near to fp64 as a plain implementation allows; NaN never is."""
        got = torch.stack([o[i, rows, h].double() for i, h in spots])
        errors[name], fine = contestants.check(got, exact_rows, allowed)
        if not fine:
            skipped[name] = f"WRONG: error {errors[name]:.3g}, plain {plain_error:.3g}"
        return fine

    for level in levels:
        o = torch.full_like(q, float("nan"))
        lse = torch.full((b, hq, sq), float("nan"), device="cuda")
        try:
            run = lib.plan(level, problem, q, k, v, o, lse)
            run()
            torch.cuda.synchronize()
        except RuntimeError as error:
            skipped[level] = str(error)
            continue
        first = o.clone()
        if not right(level, o):
            continue
        if not all((lse[i, h, rows].double() - logsum).abs().max().item() <= 1e-3
                   for (i, h), (_, logsum) in zip(spots, exact)):
            skipped[level] = "WRONG: lse"
            continue
        same = True
        for _ in range(repeats):
            run()
            same = same and torch.equal(o.view(torch.int16), first.view(torch.int16))
        if not same:
            skipped[level] = "WRONG: another result when run again"
            continue
        running[level] = run
    for name, backend in (("cuDNN", SDPBackend.CUDNN_ATTENTION), ("FlashAttention-2", SDPBackend.FLASH_ATTENTION)):
        def call(backend=backend):
            return sdpa(backend, qt, kt, vt, causal)
        try:
            o = call().transpose(1, 2)
            torch.cuda.synchronize()
        except RuntimeError as error:
            skipped[name] = str(error).split("\n")[0]
            continue
        if right(name, o):
            running[name] = call
    name = flash_attention_3.NAME
    o, lse = torch.full_like(q, float("nan")), torch.empty((b, hq, sq), device="cuda")
    call = flash_attention_3.make(q, k, v, o, lse, causal)
    if isinstance(call, str):
        skipped[name] = call
    else:
        new = call()
        torch.cuda.synchronize()
        if right(name, o if new is None else new):
            running[name] = call
    triton = with_triton and sq > 1 and contestants.Triton.load()
    if triton:
        o, lse = torch.full_like(q, float("nan")), torch.empty((b, hq, sq), device="cuda")
        call = choose_triton(triton, q, k, v, o, lse, causal, False, flush, Budget(60))
        if isinstance(call, str):
            skipped["Triton"] = call
        else:
            o.fill_(float("nan"))  # every configuration that was tried wrote it; only the chosen one is timed
            call()
            torch.cuda.synchronize()
            if right("Triton", o):
                running["Triton"] = call
    times = time_all(running, rounds, flush)
    flops = 4.0 * d * visible_pairs(sq, sk, causal) * b * hq
    kv_bytes = 2.0 * 2 * b * sk * hk * d
    result = {"shape": list(shape), "causal": causal, "dtype": str(dtype).split(".")[1], "flops": flops,
              "kv_bytes": kv_bytes, "plain_error": plain_error, "skipped": skipped, "levels": []}
    print(f"\nb {b} hq {hq} hk {hk} sq {sq} sk {sk} d {d} {'causal' if causal else 'full'} {result['dtype']}"
          f"   plain 16-bit error {plain_error:.2e}")
    for name, ms in times.items():
        q1, median, q3 = quartiles(ms)
        entry = {"name": name, "ms": {"median": median, "q1": q1, "q3": q3, "n": len(ms)},
                 "tflops": flops / median / 1e9, "gbps": kv_bytes / median / 1e6,
                 "max_error": errors.get(name)}
        if source := source_of(name):
            entry["identity"] = contestants.book.identities().of_row(name, source, result)
        for other, key in (("cuDNN", "vs_cudnn"), (flash_attention_3.NAME, "vs_fa3")):
            if other in times:
                low, ratio, high = quartiles([c / m for c, m in zip(times[other], ms)])
                entry[key] = {"ratio": ratio, "low": low, "high": high}
        result["levels"].append(entry)
        versus = "".join(f"{entry[key]['ratio']:6.3f}x {other}  " for other, key in
                         (("cuDNN", "vs_cudnn"), (flash_attention_3.NAME, "vs_fa3")) if key in entry)
        print(f"  {name:18s} {median:9.4f} ms {entry['tflops']:8.1f} TFLOP/s {entry['gbps']:8.0f} GB/s(KV) {versus}"
              + (f"  error {errors[name]:.2e}" if name in errors else ""))
    for name, why in skipped.items():
        print(f"  {name:18s} {why}")
    sys.stdout.flush()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", help="default: build/compare/libcookbook_attention.so")
    parser.add_argument("--levels", default="lazy_rescale,persistent,cross_tile,split_softmax,max_of_bits,last_wave,attention,multicast",
                        help="comma-separated, or all")
    parser.add_argument("--dims", default="128,64")
    parser.add_argument("--sizes", default="2048,4096,8192,16384")
    parser.add_argument("--tokens", type=int, default=16384, help="batch * seq")
    parser.add_argument("--masks", default="full,causal")
    parser.add_argument("--dtype", default="bf16", choices=["bf16", "fp16"])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3, help="runs compared bit for bit")
    parser.add_argument("--more", action="store_true", help="also grouped queries, one long sequence, unequal lengths")
    parser.add_argument("--no-triton", action="store_true", help="leave out Triton, whose tuning takes longest")
    parser.add_argument("--decode", action="store_true", help="decode instead of prefill")
    parser.add_argument("--out", default="")
    args = parser.parse_args()
    import torch
    lib = Library("attention", build("attention", args.library))
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    dtype = torch.bfloat16 if args.dtype == "bf16" else torch.float16
    results = []
    if args.decode:
        for batch, queries in ((1, 1), (8, 1), (64, 1), (64, 4)):
            results.append(run_case(lib, DECODE, (batch, 64, 8, queries, 8192, 128), queries > 1, dtype, args.rounds,
                                    flush, args.repeats, False))
        read = torch.empty(1 << 29, dtype=torch.float32, device="cuda").normal_()
        ms = statistics.median(time_all({"sum": lambda: read.sum()}, args.rounds, flush)["sum"])
        print(f"\nread roof by torch.sum over 2 GiB: {read.numel() * 4 / ms / 1e6:.0f} GB/s")
    else:
        levels = lib.levels() if args.levels == "all" else args.levels.split(",")
        levels = [l for l in levels if l not in DECODE]
        for shape, causal in MORE if args.more else ():
            results.append(run_case(lib, levels, shape, causal, dtype, args.rounds, flush, args.repeats, False))
        for d in map(int, args.dims.split(",")):
            heads = 16 if d == 128 else 32
            for s in map(int, args.sizes.split(",")):
                for mask in args.masks.split(","):
                    shape = (max(1, args.tokens // s), heads, heads, s, s, d)
                    results.append(run_case(lib, levels, shape, mask == "causal", dtype, args.rounds, flush,
                                            args.repeats, not args.no_triton))
    if args.out:
        import compare
        described = compare.describe()
        os.makedirs(os.path.dirname(os.path.abspath(args.out)), exist_ok=True)
        with open(args.out, "w") as f:
            json.dump(described | {"cases": results}, f, indent=1)


if __name__ == "__main__":
    main()
