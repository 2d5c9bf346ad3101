# SPDX-License-Identifier: MIT
"""cuTile: the kernels of TileGym (PyPI: tilegym) for GEMM, softmax and attention, where it and cuda.tile are installed.

TileGym's own configurations are for Blackwell. A few for Hopper are added here, most of them with 8 worker warps: two
consumer warpgroups, so that the accumulator of a large tile fits in registers. There are two contestants: "cuTile" is
the fastest of all configurations, "cuTile, as shipped" the fastest of TileGym's own.

A configuration may hang, or end its process. So each is checked and timed in a child process (this file, run as
`python3 -m contestants.cutile`), and the comparison itself launches only those that went well. More than 8 worker
warps hang some kernels and are never tried.

COOKBOOK_CUTILE_SITE names a folder made by prepare_cutile.sh: the packages and kernels compiled ahead, for a GPU
machine without network. The comparison then needs no compiler and has no other kernels than those."""
import faulthandler
import importlib
import importlib.metadata
import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from . import timing

NAME, SHIPPED = "cuTile", "cuTile, as shipped"
SITE = "COOKBOOK_CUTILE_SITE"
COMPILE_SECONDS = 30  # of one configuration; TileGym's tuner allows 5
HANG_SECONDS = 10  # after which a compiled configuration counts as hanging
CHILDREN = 6  # as many children at most: each but the last was lost to a configuration


@dataclass(frozen=True)
class Problem:
    """What is computed. size: (M, N, K), (rows, cols) or (batch, heads, seq, head_dim)."""

    ladder: str  # gemm, softmax or attention
    size: tuple
    dtype: str = "bf16"
    causal: bool = False

    def text(self):
        words = [self.ladder, "x".join(map(str, self.size)), self.dtype, "causal" if self.causal else ""]
        return " ".join(filter(None, words))

    def shapes(self):
        """Of the tensors that a kernel gets, in its order."""
        if self.ladder == "gemm":
            m, n, k = self.size
            return [(m, k), (k, n), (m, n)]
        return [self.size] * (2 if self.ladder == "softmax" else 4)

    def output(self):
        """The index of the tensor that is written."""
        return 0 if self.ladder == "softmax" else -1


@dataclass(frozen=True)
class Config:
    """One kernel of TileGym with all that a launch needs besides the tensors."""

    kernel: str
    tile: tuple
    hints: tuple  # of (name, value): what the compiler is told
    grid: tuple
    constants: tuple  # the arguments after the tensors
    shipped: bool  # TileGym's own, or added here
    detail: str = ""

    def text(self):
        words = [self.kernel.strip("_").removesuffix("_kernel").replace("_kernel", ""), "x".join(map(str, self.tile))]
        words += [f"{name} {value}" for name, value in self.hints] + [self.detail]
        return " ".join(filter(None, words))


def module(ladder):
    """TileGym's module with the kernels of a ladder."""
    # By its full name: tilegym.ops.cutile.matmul may also be a function.
    return importlib.import_module("tilegym.ops.cutile." + {"gemm": "matmul"}.get(ladder, ladder))


def hints_of(config):
    """(name, value) of what a configuration of TileGym tells the compiler."""
    names = ("num_ctas", "occupancy", "num_worker_warps")
    return tuple((name, getattr(config, name)) for name in names if getattr(config, name, None) is not None)


def unique(configs):
    """Without repetitions of the same launch; TileGym's own come first and stay."""
    found = {}
    for config in configs:
        found.setdefault((config.kernel, config.hints, config.grid, config.constants), config)
    return list(found.values())


def gemm_configs(problem, sms):
    m, n, k = problem.size
    theirs = module("gemm")
    configs = []

    def add(tile, hints, shipped, persistent, group=8, latency=-1):
        tiles = math.ceil(m / tile[0]) * math.ceil(n / tile[1])
        if persistent:
            grid = min(sms // dict(hints).get("num_ctas", 1), tiles) * dict(hints).get("occupancy", 1)
            constants = (m, n, k, *tile, False, False, group, latency)
            configs.append(Config("_static_persistent_matmul_kernel", tile, hints, (grid, 1, 1), constants, shipped,
                                  f"latency {latency}" if latency > 0 else ""))
        else:
            configs.append(Config("_matmul_kernel", tile, hints, (tiles, 1, 1), tile, shipped))

    def tile_of(config):
        return config.TILE_SIZE_M, config.TILE_SIZE_N, config.TILE_SIZE_K

    for config in theirs._matmul_autotune_configs():
        add(tile_of(config), hints_of(config), True, False)
    for config in theirs._static_persistent_matmul_autotune_configs():
        add(tile_of(config), hints_of(config), True, True, config.GROUP_SIZE_M, config.LOAD_LATENCY)
    for tile, ctas, warps in (((128, 256, 64), 1, None), ((128, 256, 64), 1, 8), ((256, 128, 64), 1, 8),
                              ((128, 128, 64), 1, 8), ((128, 256, 64), 2, 8), ((256, 128, 64), 2, 8),
                              ((256, 256, 64), 2, 8)):
        hints = (("num_ctas", ctas), ("occupancy", 1)) + ((("num_worker_warps", warps),) if warps else ())
        for persistent in (False, True):
            add(tile, hints, False, persistent)
    return unique(configs)


def attention_configs(problem, sms):
    batch, heads, seq, dim = problem.size
    theirs = module("attention")
    configs = []
    own = list(theirs._fmha_autotune_configs(dim))
    even = seq % max(config.TILE_N for config in own) == 0

    def add(tile, hints, shipped):
        # softmax scale, position of the first query, head_dim, heads, tile, queries per head of K and V, masks
        constants = (1 / math.sqrt(dim), 0, dim, heads, *tile, 1, problem.causal, even)
        configs.append(Config("_fmha_kernel", tile, hints, (math.ceil(seq / tile[0]), batch * heads, 1), constants,
                              shipped))

    for config in own:  # TileGym tunes the tile and then always launches with occupancy 2
        add((config.TILE_M, config.TILE_N), (("occupancy", 2),), True)
    for tile, hints in (((128, 128), {"occupancy": 1}), ((128, 64), {"occupancy": 2}), ((64, 128), {"occupancy": 2}),
                        ((128, 128), {"num_worker_warps": 8}), ((128, 64), {"occupancy": 1, "num_worker_warps": 8}),
                        ((128, 128), {"occupancy": 1, "num_worker_warps": 8}),
                        ((128, 256), {"occupancy": 1, "num_worker_warps": 8}),
                        ((256, 64), {"occupancy": 1, "num_worker_warps": 8}),
                        ((256, 128), {"num_ctas": 2, "occupancy": 1, "num_worker_warps": 8})):
        add(tile, tuple(hints.items()), False)
    return unique(configs)


def softmax_configs(problem, sms):
    rows, cols = problem.size
    padded = 1 << (cols - 1).bit_length()
    configs = []

    def add(kernel, hints, per_sm, constants, tile, shipped):
        grid = min(sms * per_sm, rows) if per_sm else rows
        configs.append(Config(kernel, (tile,), tuple(hints.items()), (grid, 1, 1), constants, shipped))

    for warps in (None, 4, 8):
        hints = {"occupancy": 4} | ({"num_worker_warps": warps} if warps else {})
        add("_softmax_kernel", hints, 4, (rows, padded, cols), padded, True)
    add("_softmax_kernel_multi_wave_full_row_reg_cached_ldg", {}, 0, (cols, padded), padded, True)
    for occupancy in (2, 4, 6, 8, 1):
        add("_softmax_kernel_tma", {"occupancy": occupancy}, occupancy, (rows, cols, padded), padded, occupancy > 1)
    for tile in (8192, 2048):
        add("_softmax_kernel_chunked", {"occupancy": 4}, 4, (rows, cols, min(padded, tile)), min(padded, tile),
            tile == 8192)
    return unique(configs)


def configs_of(problem, sms):
    """Every configuration that is tried on a problem; a GPU of `sms` SMs."""
    return {"gemm": gemm_configs, "attention": attention_configs, "softmax": softmax_configs}[problem.ladder](problem, sms)


class Dlpack:
    """A tensor that shows nothing but DLPack, as the kernels of a site were compiled with."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **_):
        return self.tensor.__dlpack__()

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


hinted = {}  # (kernel, hints) -> the kernel with hints: it holds what was compiled


def launcher(problem, config, tensors, stream):
    """A callable that launches a configuration on the stream that stream() returns."""
    import cuda.tile as ct
    kernel = getattr(module(problem.ladder), config.kernel)
    key = (config.kernel, config.hints)
    if key not in hinted:
        hinted[key] = kernel.replace_hints(**dict(config.hints)) if config.hints else kernel
    arguments = (*tensors, *config.constants)
    return lambda: ct.launch(stream(), config.grid, hinted[key], arguments)


def short(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:160]


# --- the folder of prepare_cutile.sh ---------------------------------------------------------------
def use_site():
    """Makes the packages that COOKBOOK_CUTILE_SITE names importable, with their stand-in compiler and their cache."""
    site = os.environ.get(SITE)
    if site and site not in sys.path:
        sys.path.insert(0, site)
        os.environ["PATH"] = os.pathsep.join([os.path.join(site, "bin"), os.environ.get("PATH", "")])
        os.environ["CUDA_TILE_CACHE_DIR"] = os.path.join(site, "cache")


def version():
    """What the results say of it; None where it is not installed."""
    use_site()
    try:
        parts = [f"{name} {importlib.metadata.version(name)}" for name in ("cuda-tile", "tilegym")]
    except importlib.metadata.PackageNotFoundError:
        return None
    return ", ".join(parts) + (", compiled ahead" if os.environ.get(SITE) else "")


# --- the comparison's side -------------------------------------------------------------------------
class CuTile:
    """What the children found, for the problems of one comparison.

    results: problem -> list of {"config", "tile", "hints", "shipped"} with "ms" or "reason". reason: why nothing
    runs, or ""."""

    tried = []  # every one of this process, for the JSON

    def __init__(self, problems, budget, run=None):
        self.results, self.reason = {problem: [] for problem in problems}, ""
        if not version():
            self.reason = "not installed"
            return
        if budget.left() <= 0:
            return
        self.search(list(problems), max(20, min(90, budget.left() / 2)), run or run_child)
        CuTile.tried.append(self)

    def search(self, problems, seconds, run):
        limit = timing.Budget(seconds)
        done = {}  # (index of the problem, index of the configuration) -> what was found
        for _ in range(CHILDREN):
            lines, ending = run(problems, list(done), limit.left())
            begun, before = None, len(done)
            for line in lines:
                key = (line["problem"], line.get("index"))
                if "fatal" in line:
                    self.reason = line["fatal"]
                    continue
                found = {name: value for name, value in line.items() if name not in ("problem", "index")}
                begun = None if "ms" in line or "reason" in line else (key, found)
                if not begun:
                    done[key] = found
            if begun and ending != "done" and limit.left() > 0:
                done[begun[0]] = begun[1] | {"reason": "hung, or ended its process"}
            if ending == "done" or self.reason or limit.left() <= 0 or len(done) == before:
                break
        if not done and not self.reason:
            self.reason = f"its child process found nothing in {seconds:.0f} s: {ending}"
        for (problem, _), found in sorted(done.items()):
            self.results[problems[problem]].append(found)

    def best(self, problem, shipped):
        """The fastest result of a problem (of TileGym's own, if `shipped`), or the reason why there is none."""
        mine = [found for found in self.results.get(problem, []) if found["shipped"] or not shipped]
        ran = [found for found in mine if "ms" in found]
        if ran:
            return min(ran, key=lambda found: found["ms"])
        reasons = [found["reason"] for found in mine]
        return self.reason or (reasons[-1] if reasons else "no configuration was tried in time")

    def contestants(self, problem, *tensors, like=None):
        """Name -> a callable, or the reason why there is none. like: the problem whose winners are taken; default:
        the same."""
        return {name: self.make(problem, like or problem, name == SHIPPED, tensors) for name in (NAME, SHIPPED)}

    def make(self, problem, like, shipped, tensors):
        found = self.best(like, shipped)
        if isinstance(found, str):
            return found
        import torch
        try:
            sms = torch.cuda.get_device_properties(0).multi_processor_count
            config = next(config for config in configs_of(problem, sms) if config.text() == found["config"])
            return launcher(problem, config, shown(tensors, found), torch.cuda.current_stream)
        except Exception as error:  # of a package that is not ours
            return short(error)

    @classmethod
    def document(cls):
        """For the JSON: a list of {"problem", "chosen", "configs"}."""
        entries = []
        for one in cls.tried:
            for problem, found in one.results.items():
                best = {name: one.best(problem, name == SHIPPED) for name in (NAME, SHIPPED)}
                entries.append({"problem": problem.text(), "ladder": problem.ladder, "size": list(problem.size),
                                "dtype": problem.dtype, "variant": "causal" if problem.causal else "",
                                "chosen": {name: value["config"] for name, value in best.items() if isinstance(value, dict)},
                                "configs": found})
        return entries


def shown(tensors, found):
    """The tensors as the kernel was launched with in the child."""
    return [Dlpack(tensor) for tensor in tensors] if found.get("dlpack") else tensors


def run_child(problems, done, seconds, program=(sys.executable, "-m", "contestants.cutile")):
    """(the lines that a child wrote, how it ended: "done" or why not)."""
    order = [problem.__dict__ for problem in problems]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(
        filter(None, [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH")]))}
    command = [*program, json.dumps({"problems": order, "done": done})]
    try:
        ended = subprocess.run(command, env=environment, capture_output=True, timeout=seconds)
        output, ending = ended.stdout, "done" if ended.returncode == 0 else (
            ended.stderr.decode(errors="replace").strip().split("\n")[-1][:160] or f"status {ended.returncode}")
    except subprocess.TimeoutExpired as stopped:
        output, ending = stopped.stdout or b"", "out of time"
    lines = []
    for line in output.decode(errors="replace").splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:  # what a package prints
            continue
    return [line for line in lines if isinstance(line, dict) and "problem" in line], ending


# --- the child's side ------------------------------------------------------------------------------
def make_tensors(problem):
    """(tensors with the output poisoned, what the output must be near to)."""
    import torch
    import torch.nn.functional as F
    dtype = {"bf16": torch.bfloat16, "f32": torch.float32}[problem.dtype]
    torch.manual_seed(1)
    tensors = [torch.randn(*shape, device="cuda", dtype=dtype) for shape in problem.shapes()]
    if problem.ladder == "gemm":
        near = tensors[0] @ tensors[1]
    elif problem.ladder == "softmax":
        near = torch.softmax(tensors[1], 1)
    else:
        near = F.scaled_dot_product_attention(*tensors[:3], is_causal=problem.causal)
    return tensors, near


def near_enough(out, near):
    """Whether a result is plausible; NaN never is. The comparison checks the chosen one against fp64."""
    return bool(((out - near).abs().max() <= 0.02 * near.abs().max()).item())


def measure(problem, config, tensors, near, flush):
    """{"ms"} of a configuration, or {"reason"}."""
    import torch
    out = tensors[problem.output()]
    found = {}
    for dlpack in (False, True):
        call = launcher(problem, config, shown(tensors, {"dlpack": dlpack}), torch.cuda.current_stream)
        try:
            out.fill_(float("nan"))
            call()
            torch.cuda.synchronize()
            if not near_enough(out, near):
                return {"reason": "WRONG"}
            ms = timing.quartiles(timing.time_all({"": call}, 5, flush, 1)[""])[1]
            return {"ms": ms} | ({"dlpack": True} if dlpack else {})
        except Exception as error:
            found = {"reason": short(error)}
            if "cache miss" not in found["reason"]:
                break
    return found


def child(order):
    """Tries every configuration that is not done, and writes a line before and after each."""
    def say(**line):
        print(json.dumps(line), flush=True)

    use_site()
    problems = [Problem(**{**entry, "size": tuple(entry["size"])}) for entry in order["problems"]]
    done = {tuple(key) for key in order["done"]}
    try:
        import cuda.tile as ct
        import torch
        sms = torch.cuda.get_device_properties(0).multi_processor_count
        everything = [configs_of(problem, sms) for problem in problems]
    except Exception as error:
        say(problem=-1, fatal=short(error))
        return 0
    flush = torch.empty(timing.FLUSH_BYTES, dtype=torch.int8, device="cuda")
    patience = HANG_SECONDS + (0 if os.environ.get(SITE) else COMPILE_SECONDS)
    for number, (problem, configs) in enumerate(zip(problems, everything)):
        if all((number, index) in done for index in range(len(configs))):
            continue
        tensors, near = make_tensors(problem)
        for index, config in enumerate(configs):
            if (number, index) in done:
                continue
            line = {"problem": number, "index": index, "config": config.text(), "tile": config.tile,
                    "hints": dict(config.hints), "shipped": config.shipped}
            say(**line)
            faulthandler.dump_traceback_later(patience, exit=True)  # works while a CUDA call blocks
            with ct.compiler_timeout(COMPILE_SECONDS):
                found = measure(problem, config, tensors, near, flush)
            faulthandler.cancel_dump_traceback_later()
            say(**line, **found)
            try:
                torch.cuda.synchronize()
            except Exception:  # the context is lost: the next child goes on
                return 3
        del tensors, near
        torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    status = child(json.loads(sys.argv[1]))
    sys.stdout.flush()
    os._exit(status)  # no destructor of a lost context
