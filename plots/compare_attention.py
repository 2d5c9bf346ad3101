#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times the levels of chapter 10 against cuDNN and FlashAttention-2, both through PyTorch.

One process, one set of tensors, the contestants interleaved: every round times each of them once, in
an order that rotates, and ratios are formed within a round. Writes one JSON file and prints a table.

    python3 plots/compare_attention.py --out results/attention.json
    python3 plots/compare_attention.py --levels persistent,multicast --sizes 8192 --dims 128
    python3 plots/compare_attention.py --decode

Needs PyTorch with CUDA and an sm_90 GPU. Builds libcookbook_attention.so with nvcc when it is missing or
older than its sources.
"""
import argparse
import ctypes
import glob
import json
import math
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CHAPTER = os.path.join(ROOT, "chapters", "10_flash_attention")


class Problem(ctypes.Structure):
    """cookbook_attention_problem of capi.hpp."""

    _fields_ = [(name, ctypes.c_int) for name in
                ("batch", "heads_q", "heads_kv", "seq_q", "seq_k", "head_dim", "causal", "dtype")]


def build(library):
    """Compiles the library if a source is newer than it."""
    sources = [os.path.join(CHAPTER, "capi.cu"), os.path.join(ROOT, "common/backend/tensor_map.cpp")]
    sources += sorted(glob.glob(os.path.join(ROOT, "common/backend/*cuda*.cu")))
    sources += sorted(glob.glob(os.path.join(ROOT, "common/backend/cuda/*.c*")))
    watched = sources + glob.glob(os.path.join(CHAPTER, "*.*uh")) + glob.glob(
        os.path.join(CHAPTER, "*.hpp")) + glob.glob(os.path.join(ROOT, "common/**/*.*h*"), recursive=True)
    if os.path.exists(library) and all(os.path.getmtime(f) <= os.path.getmtime(library) for f in watched):
        return
    os.makedirs(os.path.dirname(os.path.abspath(library)), exist_ok=True)
    command = ["nvcc", "-shared", "-Xcompiler", "-fPIC", "-O2", "-std=c++20", "-lineinfo",
               "--expt-relaxed-constexpr", "-diag-suppress=186", "-DCOOKBOOK_CUDA=1",
               f'-DCOOKBOOK_SOURCE_DIR="{ROOT}"', "-gencode", "arch=compute_90a,code=sm_90a",
               "-I", ROOT, *sources, "-o", library]
    print("building", library, flush=True)
    subprocess.run(command, check=True)


class Library:
    """The C interface."""

    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.cookbook_attention_plan.restype = ctypes.c_void_p
        self.c.cookbook_attention_plan.argtypes = [ctypes.c_char_p, ctypes.POINTER(Problem)] + [
            ctypes.c_void_p] * 5
        self.c.cookbook_attention_run.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self.c.cookbook_attention_destroy.argtypes = [ctypes.c_void_p]
        self.c.cookbook_attention_error.restype = ctypes.c_char_p
        self.c.cookbook_attention_levels.restype = ctypes.c_char_p

    def levels(self):
        return self.c.cookbook_attention_levels().decode().split("\n")[:-1]

    def plan(self, level, problem, q, k, v, o, lse):
        """A callable that launches `level` on the current stream, or None with the reason."""
        import torch
        handle = self.c.cookbook_attention_plan(
            level.encode(), ctypes.byref(problem), q.data_ptr(), k.data_ptr(), v.data_ptr(),
            o.data_ptr(), lse.data_ptr())
        if not handle:
            return None, self.c.cookbook_attention_error().decode()

        def run():
            if self.c.cookbook_attention_run(handle, torch.cuda.current_stream().cuda_stream):
                raise RuntimeError(self.c.cookbook_attention_error().decode())
        return run, handle


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


def time_all(contestants, rounds, flush):
    """Milliseconds per contestant: a list of one figure per round."""
    import torch
    times = {name: [] for name in contestants}
    names = list(contestants)
    for name in names:  # warm-up
        for _ in range(2):
            contestants[name]()
    torch.cuda.synchronize()
    for r in range(rounds):
        events = []
        for name in names[r % len(names):] + names[:r % len(names)]:
            flush.zero_()
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            contestants[name]()
            stop.record()
            events.append((name, start, stop))
        torch.cuda.synchronize()
        for name, start, stop in events:
            times[name].append(start.elapsed_time(stop))
    return times


def quartiles(values):
    ordered = sorted(values)
    return [ordered[int(f * (len(ordered) - 1))] for f in (0.25, 0.5, 0.75)]


def run_case(lib, levels, shape, causal, dtype, rounds, flush, repeats):
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
    b, hq, hk, sq, sk, d = shape
    torch.manual_seed(1)
    q = torch.randn(b, sq, hq, d, device="cuda", dtype=dtype)
    k, v = (torch.randn(b, sk, hk, d, device="cuda", dtype=dtype) for _ in range(2))
    qt, kt, vt = (t.transpose(1, 2) for t in (q, k, v))
    problem = Problem(b, hq, hk, sq, sk, d, int(causal), 0 if dtype == torch.bfloat16 else 1)
    contestants, skipped, errors, plans = {}, {}, {}, []
    rows = torch.unique(torch.linspace(0, sq - 1, 64, device="cuda").long())
    spots = [(0, 0), (b - 1, hq - 1)]
    exact = [reference(q, k, v, causal, i, h, rows) for i, h in spots]
    plain_error = max((plain(q, k, v, causal, i, h, rows).double() - o).abs().max().item()
                      for (i, h), (o, _) in zip(spots, exact))
    for level in levels:
        o = torch.full_like(q, float("nan"))
        lse = torch.full((b, hq, sq), float("nan"), device="cuda")
        run, handle = lib.plan(level, problem, q, k, v, o, lse)
        if run is None:
            skipped[level] = handle
            continue
        plans.append(handle)
        try:
            run()
            torch.cuda.synchronize()
        except RuntimeError as error:
            skipped[level] = str(error)
            continue
        first = o.clone()
        bad = False
        for (i, h), (eo, elogsum) in zip(spots, exact):
            e = (o[i, rows, h].double() - eo).abs().max().item()
            l = (lse[i, h, rows].double() - elogsum).abs().max().item()
            bad |= not (e <= 2 * plain_error + 1e-6) or not (l <= 1e-3)
            errors[level] = max(errors.get(level, 0), e)
        for _ in range(repeats):
            run()
            bad |= not torch.equal(o.view(torch.int16), first.view(torch.int16))
        if bad:
            skipped[level] = f"WRONG: error {errors[level]:.3g}, plain {plain_error:.3g}"
            continue
        contestants[level] = run
    for name, backend in (("cuDNN", SDPBackend.CUDNN_ATTENTION), ("FlashAttention-2", SDPBackend.FLASH_ATTENTION)):
        def call(backend=backend):
            with sdpa_kernel(backend):
                # is_causal aligns to the top left: the same where seq_q = seq_k.
                return F.scaled_dot_product_attention(qt, kt, vt, is_causal=causal, enable_gqa=hq != hk)
        try:
            call()
            torch.cuda.synchronize()
            contestants[name] = call
        except RuntimeError as error:
            skipped[name] = str(error).split("\n")[0]
    times = time_all(contestants, rounds, flush)
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
        if "cuDNN" in times:
            low, ratio, high = quartiles([c / m for c, m in zip(times["cuDNN"], ms)])
            entry["vs_cudnn"] = {"ratio": ratio, "low": low, "high": high}
        result["levels"].append(entry)
        versus = f"{entry['vs_cudnn']['ratio']:6.3f}x cuDNN" if "vs_cudnn" in entry else ""
        print(f"  {name:18s} {median:9.4f} ms {entry['tflops']:8.1f} TFLOP/s {entry['gbps']:8.0f} GB/s(KV) {versus}"
              + (f"  error {errors[name]:.2e}" if name in errors else ""))
    for name, why in skipped.items():
        print(f"  {name:18s} {why}")
    for handle in plans:
        lib.c.cookbook_attention_destroy(handle)
    sys.stdout.flush()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default=os.path.join(ROOT, "build", "libcookbook_attention.so"))
    parser.add_argument("--levels", default="overlapped,lazy rescale,persistent,multicast",
                        help="comma-separated, or all")
    parser.add_argument("--dims", default="128,64")
    parser.add_argument("--sizes", default="2048,4096,8192,16384")
    parser.add_argument("--tokens", type=int, default=16384, help="batch * seq")
    parser.add_argument("--masks", default="full,causal")
    parser.add_argument("--dtype", default="bf16", choices=["bf16", "fp16"])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3, help="runs compared bit for bit")
    parser.add_argument("--decode", action="store_true", help="decode instead of prefill")
    parser.add_argument("--out", default="")
    args = parser.parse_args()
    import torch
    build(args.library)
    lib = Library(args.library)
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    dtype = torch.bfloat16 if args.dtype == "bf16" else torch.float16
    results = []
    if args.decode:
        levels = ["block per head", "split", "gqa packed"]
        for batch in (1, 8, 64):
            results.append(run_case(lib, levels, (batch, 64, 8, 1, 8192, 128), False, dtype, args.rounds,
                                    flush, args.repeats))
        read = torch.empty(1 << 29, dtype=torch.float32, device="cuda").normal_()
        ms = statistics.median(time_all({"sum": lambda: read.sum()}, args.rounds, flush)["sum"])
        print(f"\nread roof by torch.sum over 2 GiB: {read.numel() * 4 / ms / 1e6:.0f} GB/s")
    else:
        levels = lib.levels() if args.levels == "all" else args.levels.split(",")
        levels = [l for l in levels if l not in ("block per head", "split", "gqa packed")]
        for d in map(int, args.dims.split(",")):
            heads = 16 if d == 128 else 32
            for s in map(int, args.sizes.split(",")):
                for mask in args.masks.split(","):
                    shape = (max(1, args.tokens // s), heads, heads, s, s, d)
                    results.append(run_case(lib, levels, shape, mask == "causal", dtype, args.rounds, flush,
                                            args.repeats))
    if args.out:
        properties = torch.cuda.get_device_properties(0)
        os.makedirs(os.path.dirname(os.path.abspath(args.out)), exist_ok=True)
        with open(args.out, "w") as f:
            json.dump({"schema": 1, "device": {"name": properties.name,
                                               "sm_count": properties.multi_processor_count},
                       "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(),
                       "cases": results}, f, indent=1)


if __name__ == "__main__":
    main()
