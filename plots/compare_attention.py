#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""library/attention and the levels of chapter 10 against cuDNN and FlashAttention-2 (both through PyTorch), FlashAttention-3 and -4, Triton and cuTile.

`./run compare attention` times the library, forward and backward. On its own, this times any levels over many sizes: one
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
import itertools
import json
import math
import os
import statistics
import sys

import contestants
from contestants import cutile, flash_attention_3, flash_attention_4
from contestants.libraries import AttentionProblem, Library, build
from contestants.timing import Budget, quartiles, ratio_of, spread, time_all

CHAPTER = 10
NEEDS = ["attention"]
FORWARD = {"attention": "library/attention/attention.cuh"}
BACKWARD = dict.fromkeys(("backward", "deterministic"), "library/attention/backward.cuh")
LEVELS = FORWARD | BACKWARD
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


class Attention:
    """The tensors of a problem (batch, heads_q, heads_kv, seq_q, seq_k, head_dim), and what its output must be near to:
    some rows of the first and of the last head."""

    def __init__(self, shape, causal, dtype):
        import torch
        batch, heads_q, heads_kv, seq_q, seq_k, dim = self.shape = shape
        self.causal = causal
        torch.manual_seed(1)
        self.q = torch.randn(batch, seq_q, heads_q, dim, device="cuda", dtype=dtype)
        self.k, self.v = (torch.randn(batch, seq_k, heads_kv, dim, device="cuda", dtype=dtype) for _ in range(2))
        self.problem = AttentionProblem(*shape, int(causal), 0 if dtype == torch.bfloat16 else 1)
        self.flops = 4.0 * dim * visible_pairs(seq_q, seq_k, causal) * batch * heads_q
        self.rows = torch.unique(torch.linspace(0, seq_q - 1, 64, device="cuda").long())
        self.heads = [(0, 0), (batch - 1, heads_q - 1)]
        exact, self.lse = zip(*(self.reference(*head) for head in self.heads))
        self.exact = torch.stack(exact)
        self.plain_error = max((self.plain(*head).double() - o).abs().max().item() for head, o in zip(self.heads, exact))

    def scores(self, batch, head, number):
        """Of the rows of one head, without what the mask hides, and its V; number(t): a tensor in the type to compute in."""
        import torch
        k, v = (number(t[batch, :, head // (self.q.shape[2] // self.k.shape[2])]) for t in (self.k, self.v))
        s = number(self.q[batch, self.rows, head]) @ k.T / math.sqrt(self.q.shape[3])
        if self.causal:
            limit = self.rows + 1 + self.k.shape[1] - self.q.shape[1]
            s = s.masked_fill(torch.arange(self.k.shape[1], device=s.device) >= limit[:, None], -math.inf)
        return s, v

    def reference(self, batch, head):
        """o and lse of the rows of one head in fp64."""
        import torch
        s, v = self.scores(batch, head, torch.Tensor.double)
        lse = torch.logsumexp(s, 1)
        return torch.exp(s - lse.clamp(min=-1e300)[:, None]) @ v, lse

    def plain(self, batch, head):
        """A plain 16-bit implementation: scores and weights rounded to the type."""
        import torch
        s, v = self.scores(batch, head, lambda tensor: tensor)
        return torch.softmax(s.float(), 1).to(v.dtype) @ v

    def check(self, out):
        """(its error, whether it is as near to fp64 as the book allows: twice the error of a plain implementation)."""
        import torch
        got = torch.stack([out[batch, self.rows, head].double() for batch, head in self.heads])
        return contestants.check(got, self.exact, 2 * self.plain_error + 1e-6)

    def through_torch(self):
        """Name -> a callable that returns a new output, of PyTorch's backends."""
        from torch.nn.attention import SDPBackend
        q, k, v = (t.transpose(1, 2) for t in (self.q, self.k, self.v))
        return {name: lambda backend=backend: sdpa(backend, q, k, v, self.causal).transpose(1, 2) for name, backend in
                (("cuDNN", SDPBackend.CUDNN_ATTENTION), ("FlashAttention-2", SDPBackend.FLASH_ATTENTION))}


def sdpa(backend, qt, kt, vt, causal):
    """Attention by one of PyTorch's backends. is_causal aligns to the top left: the same where seq_q = seq_k."""
    import torch.nn.functional as F
    from torch.nn.attention import sdpa_kernel
    with sdpa_kernel(backend):
        return F.scaled_dot_product_attention(qt, kt, vt, is_causal=causal, enable_gqa=qt.shape[1] != kt.shape[1])


def choose_triton(triton, one, o, lse, quick, flush, budget):
    """Triton's fastest configuration: looked for once per head dimension, and then used with any mask."""
    kernels, dim = triton.kernels, one.shape[-1]
    key = f"attention {dim}"
    configs = [triton.chosen[key]] if key in triton.chosen else kernels.ATTENTION_CONFIGS[dim]
    if quick:
        configs = configs[:1]
    return triton.choose(key, configs, lambda config: lambda: kernels.attention(
        one.q, one.k, one.v, o, lse, one.causal, config), flush, budget)


def in_tiles(tiles, one):
    """cuTile's contestants, which return what they wrote. Its kernels want (batch, heads, seq, head_dim): copies in that
    order are made here."""
    import torch
    batch, seq, heads, dim = one.q.shape
    like = next((problem for problem in tiles.results if problem.causal == one.causal and problem.size[3] == dim), None)
    if like is None:
        return {cutile.NAME: "tried with head dimension 128 only"}
    tensors = [t.transpose(1, 2).contiguous() for t in (one.q, one.k, one.v)]
    result = torch.full_like(tensors[0], float("nan"))
    problem = cutile.Problem("attention", (batch, heads, seq, dim), "bf16", one.causal)

    def returning(call):
        def launch():
            call()
            return result.transpose(1, 2)
        return call if isinstance(call, str) else launch

    return {name: returning(call) for name, call in tiles.contestants(problem, *tensors, result, like=like).items()}


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
    """For ./run compare: forward, then backward."""
    yield from forward_cases(options, flush, budget)
    yield from backward_cases(options, flush, budget)


def forward_cases(options, flush, budget):
    import torch
    library = Library("attention")
    triton = contestants.Triton.load()
    tiles = cutile.CuTile(tile_problems(options.quick), budget)
    for batch, heads, seq, dim, causal in sizes(options.quick):
        if budget.left() <= 0:
            return
        one = Attention((batch, heads, heads, seq, seq, dim), causal, torch.bfloat16)
        out, lse = torch.empty_like(one.q), torch.empty(batch, heads, seq, device="cuda")
        returned = {}  # what comes as a new tensor: copied out where it is checked

        def keeping(name, call, returned=returned):
            def launch():
                if (new := call()) is not None:
                    returned[name] = new
            return call if isinstance(call, str) else launch

        running = {level: library.plan(level, one.problem, one.q, one.k, one.v, out, lse) for level in FORWARD}
        running |= {name: keeping(name, call) for name, call in one.through_torch().items()}
        running[flash_attention_3.NAME] = keeping(flash_attention_3.NAME, flash_attention_3.make(
            one.q, one.k, one.v, out, lse, causal))
        running[flash_attention_4.NAME] = keeping(flash_attention_4.NAME, flash_attention_4.make(
            one.q, one.k, one.v, causal))
        if triton:
            running["Triton"] = choose_triton(triton, one, out, lse, options.quick, flush, budget)
        running |= {name: keeping(name, call) for name, call in in_tiles(tiles, one).items()}

        def right(one=one, out=out, returned=returned):
            if returned:
                result = returned.popitem()[1]
                out.copy_(result)
                result.fill_(float("nan"))  # cuTile writes the same tensor again
            return one.check(out)

        yield contestants.run_case(
            {"chapter": CHAPTER, "ladder": "attention", "size": list(one.shape),
             "dims": ["batch", "heads_q", "heads_kv", "seq_q", "seq_k", "head_dim"], "dtype": "bf16",
             "variant": "causal" if causal else "full", "flops": one.flops, "bytes": 8.0 * one.q.numel(), "unit": "TFLOP/s"},
            running, FORWARD, out, right, options.rounds, flush,
            time_all=lambda calls, rounds, buffer, returned=returned: forgetting(returned, calls, rounds, buffer))
        del one, out, lse, running


def gradients(q, k, v, d_o, causal, number):
    """(dq, dk, dv) of one head in plain PyTorch; number: the type of the operands of every multiplication."""
    import torch
    q, k, v, d_o = (tensor.to(number) for tensor in (q, k, v, d_o))
    wide = torch.double if number == torch.double else torch.float
    scale = 1 / math.sqrt(q.shape[1])
    s = (q @ k.T).to(wide) * scale
    if causal:
        s = s.masked_fill(torch.ones_like(s, dtype=torch.bool).triu(1 + k.shape[0] - q.shape[0]), -math.inf)
    p = torch.softmax(s, 1)
    del s
    delta = (d_o.to(wide) * (p.to(number) @ v).to(wide)).sum(1, keepdim=True)
    ds = (p * ((d_o @ v.T).to(wide) - delta)).to(number)
    return (ds @ k).to(wide) * scale, (ds.T @ q).to(wide) * scale, (p.to(number).T @ d_o).to(wide)


def backward_sizes(quick):
    lengths = (2048, 8192) if quick else (1024, 2048, 4096, 8192, 16384)
    return [(16384 // seq, 2048 // dim, seq, dim, causal) for dim in (128, 64) for seq in lengths
            for causal in (False, True)]


def backward_cases(options, flush, budget):
    """The gradients of one head are compared with fp64: at most twice the error of a plain 16-bit implementation."""
    import torch
    from torch.nn.attention import SDPBackend
    library = Library("attention")
    for batch, heads, seq, dim, causal in backward_sizes(options.quick):
        if budget.left() <= 0:
            return
        torch.manual_seed(1)
        shape = (batch, seq, heads, dim)
        q, k, v, d_o, o = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(5))
        lse = torch.empty(batch, heads, seq, device="cuda")
        problem = AttentionProblem(batch, heads, heads, seq, seq, dim, int(causal), 0)
        library.plan("attention", problem, q, k, v, o, lse)()
        out = torch.empty((3, *shape), device="cuda", dtype=torch.bfloat16)
        last = [tensor[batch - 1, :, heads - 1] for tensor in (q, k, v, d_o)]
        exact = torch.stack(gradients(*last, causal, torch.double))
        plain = torch.stack(gradients(*last, causal, torch.bfloat16)).double()
        allowed = 2 * (plain - exact).abs().amax((1, 2), keepdim=True) + 1e-6
        returned = {}

        def through_torch(backend, q=q, k=k, v=v, d_o=d_o, causal=causal):
            leaves = [tensor.detach().requires_grad_() for tensor in (q, k, v)]
            try:
                result = sdpa(backend, *(leaf.transpose(1, 2) for leaf in leaves), causal).transpose(1, 2)
            except RuntimeError as error:
                return str(error).split("\n")[0]
            return lambda: torch.autograd.grad(result, leaves, d_o, retain_graph=True)

        def keeping(call, returned=returned):
            def launch():
                returned["gradients"] = call()
            return call if isinstance(call, str) else launch

        def right(out=out, returned=returned, exact=exact, allowed=allowed, batch=batch, heads=heads):
            if returned:
                out.copy_(torch.stack(returned.popitem()[1]))
            return contestants.check(out[:, batch - 1, :, heads - 1].double(), exact, allowed)

        running = {level: library.backward(level, problem, q, k, v, o, d_o, lse, None, *out) for level in BACKWARD}
        running[flash_attention_4.NAME] = keeping(flash_attention_4.make_backward(q, k, v, d_o, causal))
        running["cuDNN"] = keeping(through_torch(SDPBackend.CUDNN_ATTENTION))
        running["FlashAttention-2"] = keeping(through_torch(SDPBackend.FLASH_ATTENTION))
        yield contestants.run_case(
            {"chapter": 13, "ladder": "backward", "size": [batch, heads, heads, seq, seq, dim],
             "dims": ["batch", "heads_q", "heads_kv", "seq_q", "seq_k", "head_dim"], "dtype": "bf16",
             "variant": "causal" if causal else "full", "flops": 10.0 * dim * visible_pairs(seq, seq, causal) * batch * heads,
             "bytes": 16.0 * q.numel(), "unit": "TFLOP/s"},
            running, BACKWARD, out, right, options.rounds, flush,
            time_all=lambda calls, rounds, buffer, returned=returned: forgetting(returned, calls, rounds, buffer))
        del q, k, v, d_o, o, lse, out, exact, plain, running


def forgetting(returned, calls, rounds, flush):
    """time_all, and what was returned meanwhile poisoned and dropped: the check that follows must see its own."""
    times = time_all(calls, rounds, flush)
    for result in returned.values():
        for tensor in result if isinstance(result, tuple) else (result,):
            tensor.fill_(float("nan"))
    returned.clear()
    return times


# Whose speed that of the others is compared with, and under which key.
COMPARED_WITH = {"cuDNN": "vs_cudnn", flash_attention_3.NAME: "vs_fa3"}


def run_case(lib, levels, shape, causal, dtype, rounds, flush, repeats, with_triton=True):
    import torch
    b, hq, hk, sq, sk, d = shape
    one = Attention(shape, causal, dtype)
    running, skipped, errors = {}, {}, {}

    def outputs():
        return torch.full_like(one.q, float("nan")), torch.full((b, hq, sq), float("nan"), device="cuda")

    def admit(name, call, o=None):
        """Times a contestant that runs and whose output, `o` or what it returns, is right."""
        if isinstance(call, str):
            skipped[name] = call
            return
        try:
            new = call()
            torch.cuda.synchronize()
        except RuntimeError as error:
            skipped[name] = str(error).split("\n")[0]
            return
        errors[name], fine = one.check(o if new is None else new)
        if fine:
            running[name] = call
        else:
            skipped[name] = f"WRONG: error {errors[name]:.3g}, plain {one.plain_error:.3g}"

    def wrong_again(run, o, lse):
        """What is wrong with a level whose output is right, or ""."""
        if not all((lse[i, h, one.rows].double() - logsum).abs().max().item() <= 1e-3
                   for (i, h), logsum in zip(one.heads, one.lse)):
            return "WRONG: lse"
        first = o.clone()
        for _ in range(repeats):
            run()
            if not torch.equal(o.view(torch.int16), first.view(torch.int16)):
                return "WRONG: another result when run again"
        return ""

    for level in levels:
        o, lse = outputs()
        try:
            run = lib.plan(level, one.problem, one.q, one.k, one.v, o, lse)
        except RuntimeError as error:
            run = str(error)
        admit(level, run, o)
        if level in running and (why := wrong_again(run, o, lse)):
            skipped[level] = why
            del running[level]
    for name, call in one.through_torch().items():
        admit(name, call)
    o, lse = outputs()
    admit(flash_attention_3.NAME, flash_attention_3.make(one.q, one.k, one.v, o, lse, causal), o)
    triton = with_triton and sq > 1 and contestants.Triton.load()
    if triton:
        o, lse = outputs()
        call = choose_triton(triton, one, o, lse, False, flush, Budget(60))
        o.fill_(float("nan"))  # every configuration that was tried wrote it; only the chosen one is timed
        admit("Triton", call, o)
    times = time_all(running, rounds, flush)
    kv_bytes = 2.0 * 2 * b * sk * hk * d
    result = {"shape": list(shape), "causal": causal, "dtype": str(dtype).split(".")[1], "flops": one.flops,
              "kv_bytes": kv_bytes, "plain_error": one.plain_error, "skipped": skipped, "levels": []}
    print(f"\nb {b} hq {hq} hk {hk} sq {sq} sk {sk} d {d} {'causal' if causal else 'full'} {result['dtype']}"
          f"   plain 16-bit error {one.plain_error:.2e}")
    for name, ms in times.items():
        median = quartiles(ms)[1]
        entry = {"name": name, "ms": spread(ms), "tflops": one.flops / median / 1e9, "gbps": kv_bytes / median / 1e6,
                 "max_error": errors[name]}
        if source := source_of(name):
            entry["identity"] = contestants.book.identities().of_row(name, source, result)
        for other, key in COMPARED_WITH.items():
            if other in times:
                entry[key] = ratio_of(times[other], ms)
        result["levels"].append(entry)
        versus = "".join(f"{entry[key]['ratio']:6.3f}x {other}  " for other, key in COMPARED_WITH.items() if key in entry)
        print(f"  {name:18s} {median:9.4f} ms {entry['tflops']:8.1f} TFLOP/s {entry['gbps']:8.0f} GB/s(KV) {versus}"
              f"  error {errors[name]:.2e}")
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

    def case(levels, shape, causal, with_triton=False):
        return run_case(lib, levels, shape, causal, dtype, args.rounds, flush, args.repeats, with_triton)

    if args.decode:
        results = [case(DECODE, (batch, 64, 8, queries, 8192, 128), queries > 1)
                   for batch, queries in ((1, 1), (8, 1), (64, 1), (64, 4))]
        read = torch.empty(1 << 29, dtype=torch.float32, device="cuda").normal_()
        ms = statistics.median(time_all({"sum": lambda: read.sum()}, args.rounds, flush)["sum"])
        print(f"\nread roof by torch.sum over 2 GiB: {read.numel() * 4 / ms / 1e6:.0f} GB/s")
    else:
        levels = lib.levels() if args.levels == "all" else args.levels.split(",")
        levels = [l for l in levels if l not in DECODE]
        results = [case(levels, shape, causal) for shape, causal in (MORE if args.more else ())]
        for d, s, mask in itertools.product(map(int, args.dims.split(",")), map(int, args.sizes.split(",")), args.masks.split(",")):
            heads = 16 if d == 128 else 32
            results.append(case(levels, (max(1, args.tokens // s), heads, heads, s, s, d), mask == "causal", not args.no_triton))
    if args.out:
        import compare
        described = compare.describe()
        os.makedirs(os.path.dirname(os.path.abspath(args.out)), exist_ok=True)
        with open(args.out, "w") as f:
            json.dump(described | {"cases": results}, f, indent=1)


if __name__ == "__main__":
    main()
