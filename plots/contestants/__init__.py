# SPDX-License-Identifier: MIT
"""What `./run compare` times: the book's kernels through their C interface, kernels in Triton, and libraries.

A comparison is a module compare_<name>.py with CHAPTER, NEEDS (the libraries of contestants/libraries.py),
LEVELS (level -> file) and cases(options, flush, budget), which yields what run_case() returns. A contestant
is a callable that launches on torch's current stream, or a string: the reason why it cannot."""
from cookbook_plots import book

from . import timing


class Triton:
    """Triton's kernels, where it is installed."""

    loaded = None

    def __init__(self, kernels, sms):
        self.kernels, self.sms = kernels, sms
        self.chosen = {}

    @classmethod
    def load(cls):
        if cls.loaded is None:
            try:
                import torch
                from . import triton_kernels
                cls.loaded = cls(triton_kernels, torch.cuda.get_device_properties(0).multi_processor_count)
            except ImportError:
                cls.loaded = False
        return cls.loaded

    def choose(self, key, configs, make_call, flush, budget):
        """The fastest configuration's callable, or the reason why there is none."""
        config, call = timing.fastest(configs, make_call, flush, budget)
        if config:
            self.chosen[key] = config
        return call


def why_not(error, package, wheel):
    """Why there is no contestant, after the import of its package raised `error`: for the results."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == package:
        return f"not installed (PyPI: {wheel})"
    return f"does not load: {type(error).__name__}: {error}".splitlines()[0][:160]


def check(got, exact, allowed):
    """(largest error, whether every error is within what is allowed); NaN never is."""
    error = (got - exact).abs()
    return error.max().item(), bool((error <= allowed).all().item())


def near_at(out, spots, exact, allowed):
    """A check of some rows of `out`, for run_case."""
    return lambda: check(out[spots].double(), exact, allowed)


def run_case(problem, contestants, levels, out, right, rounds, flush, notes=None, time_all=timing.time_all, configs=None):
    """Checks every contestant, times those that are right, interleaved, and checks them once more.

    problem: what goes into the JSON; levels: level -> file, of the contestants that are the book's; out: the
    tensor that all of them write, poisoned before each check; right(): (error, whether it may be); configs: the
    settings that were chosen for a contestant, for the JSON."""
    skipped, errors, running = dict(notes or {}), {}, {}

    def checked(name, call, when):
        out.fill_(float("nan"))
        try:
            call()
            errors[name], fine = right()
        except Exception as error:  # one contestant's failure must not cost the others
            skipped[name] = f"{type(error).__name__}: {error}".splitlines()[0][:160]
            return False
        if not fine:
            skipped[name] = f"WRONG{when}: error {errors[name]:.3g}"
        return fine

    for name, call in contestants.items():
        if isinstance(call, str):
            skipped[name] = call
        elif checked(name, call, ""):
            running[name] = call
    times = time_all(running, rounds, flush) if running else {}
    for name, call in running.items():
        if not checked(name, call, " after timing"):
            del times[name]
    base = next((name for name in levels if name in times), None)
    rows = []
    for name, ms in times.items():
        median = timing.quartiles(ms)[1]
        row = {"name": name, "ours": name in levels, "time_ms": timing.spread(ms),
               "gbps": problem["bytes"] / median / 1e6,
               "tflops": problem["flops"] / median / 1e9 if problem["flops"] else None,
               "max_error": errors[name], "identity": None, "vs_cookbook": None}
        if name in levels:
            row["identity"] = book.identities().of_row(name, book.ROOT / levels[name], problem)
        elif base:
            row["vs_cookbook"] = timing.ratio_of(times[base], ms)
        rows.append(row)
    return {**problem, "rows": rows, "skipped": skipped, "configs": configs or {}}


def case_text(case):
    """A case for the console."""
    speed = "tflops" if case["flops"] else "gbps"
    lines = [f"chapter {case['chapter']} · {case['ladder']} {' x '.join(map(str, case['size']))} {case['dtype']}"
             + (f" {case['variant']}" if case["variant"] else "")]
    for row in sorted(case["rows"], key=lambda row: row["time_ms"]["median"]):
        ms, ratio = row["time_ms"], row["vs_cookbook"]
        lines.append(f"  {row['name']:18} {ms['median']:9.4f} ms [{ms['q1']:.4f}, {ms['q3']:.4f}] "
                     f"{row[speed]:9.1f} {case['unit']}" + (f"  {ratio['ratio']:.3f}x of the book's" if ratio else ""))
    lines += [f"  {name:18} {why}" for name, why in case["skipped"].items()]
    return "\n".join(lines)
