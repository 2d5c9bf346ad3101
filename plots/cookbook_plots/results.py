# SPDX-License-Identifier: MIT
"""Reading results: one Run per ladder and problem size, the newest of each."""
import json
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

from . import book
from .devices import sheet_of

RESULTS = book.ROOT / "plots/results"
SIMT = "simt"  # the folder of the SIMT backend's counters, which is no GPU
ROOF_LIMIT = 1.03  # a point further above its roof is an error of measurement

OWN_ROOF = "stated roof"  # not measured: the ladder says what it is
# The run's "roof" and the key of its value under "roofs".
ROOF_KEYS = {"HBM copy": "hbm_copy_gbps", "HBM read": "hbm_read_gbps", "L2": "l2_gbps",
             "shared memory": "shared_gbps", "FP32 FMA": "fp32_tflops", "FP64 FMA": "fp64_tflops",
             "mma.sync bf16": "mma_bf16_tflops", "wgmma bf16": "wgmma_bf16_tflops",
             "mma.sync tf32": "mma_tf32_tflops", "wgmma tf32": "wgmma_tf32_tflops",
             "mma.sync int8": "mma_int8_tops", "wgmma int8": "wgmma_int8_tops", "wgmma fp8": "wgmma_fp8_tflops"}
# Those of arithmetic, by what computes on what: a figure draws the ceilings of one kind.
CEILINGS = {"fp32": ["FP32 FMA"], "fp64": ["FP64 FMA"], "bf16": ["mma.sync bf16", "wgmma bf16"],
            "tf32": ["mma.sync tf32", "wgmma tf32"], "fp8": ["wgmma fp8"], "int8": ["mma.sync int8", "wgmma int8"]}
KINDS = {name: kind for kind, names in CEILINGS.items() for name in names}
CORES = ("FP32 FMA", "FP64 FMA")  # the others are tensor cores


class ResultError(Exception):
    """Results that cannot be read, or cannot be true."""


@dataclass
class Level:
    index: int  # its row in the ladder
    json: dict
    stale: bool = False  # its source has changed since it was measured
    measured_bytes: dict = field(default_factory=dict)  # from ncu: {"dram": ..., "l2": ...}
    energy: dict = None  # from NVML, back to back: {"joules": per launch, "us": ..., "watts": ...}
    counted: "Counted" = None  # by the SIMT backend

    @property
    def name(self):
        return self.json["name"]

    @property
    def timed(self):
        return self.json["status"] == "ok" and self.json.get("time_us") is not None

    @property
    def fraction(self):
        return self.json.get("roof_fraction")

    def time(self, quantile="median"):
        return self.json["time_us"][quantile]


@dataclass(frozen=True)
class Counted:
    """What the SIMT backend counted of a level, at the traced size."""

    values: dict
    trace_size: tuple
    tokens: str  # the hash of its source's

    @classmethod
    def of(cls, level, problem):
        """Of a level's JSON; None: nothing was counted."""
        counters = level.get("counters")
        return cls(counters, tuple(problem["trace_size"]), book.tokens_of(level)) if counters else None


@dataclass
class Run:
    file: Path
    json: dict
    levels: list
    roofs_from: str = "measured in the same run"  # or a file, or a data sheet
    roofs_measured: bool = True
    model: str = ""  # the GPU whose roofs stand over what was only counted

    @property
    def chapter(self):
        return self.json["chapter"]

    @property
    def heading(self):
        return f"Capstone {self.json['capstone']}" if self.json.get("capstone") else f"Chapter {self.chapter}"

    @property
    def ladder(self):
        return self.json["ladder"]

    @property
    def size(self):
        return tuple(self.json["problem"]["size"])

    @property
    def timed(self):
        return [level for level in self.levels if level.timed]

    @property
    def judges_speed(self):
        return any(claim.get("checked_by") == "cuda" for level in self.levels for claim in level.json["claims"])

    @property
    def counts_flops(self):
        return self.json["roof"] in KINDS

    @property
    def counts_own(self):
        """Whether its speed is in operations of its own kind, under a roof that the ladder states."""
        return self.json["roof"] == OWN_ROOF

    @property
    def unit(self):
        if self.counts_own:
            return f"G{self.json['problem']['operation']}/s"
        if not self.counts_flops:
            return "GB/s"
        return "TOP/s" if KINDS[self.json["roof"]] == "int8" else "TFLOP/s"

    def speed_of_time(self, microseconds):
        problem = self.json["problem"]
        if self.counts_own:
            return problem["flops"] / 1e3 / microseconds
        work = problem["flops"] / 1e6 if self.counts_flops else problem["bytes"] / 1e3
        return work / microseconds

    def speed(self, level, quantile="median"):
        return self.speed_of_time(level.time(quantile))

    def library_speeds(self):
        """Name -> speed of the libraries that were timed beside the levels."""
        return {reference["name"]: self.speed_of_time(reference["time_us"]["median"]) for reference in self.references}

    def speed_of(self, name):
        """The speed of the level that is called so, or None."""
        return next((self.speed(level) for level in self.timed if level.name == name), None)

    def take(self, profile):
        """Gives the level of which `profile` is, as ./run profile wrote it, what was measured. Whether there is one."""
        found = [level for level in self.levels if level.name == profile["level"]]
        for level in found:
            level.measured_bytes = {memory: value for memory, value in profile["bytes"].items() if value}
            level.energy = profile.get("energy")
        return bool(found)

    @property
    def roofs(self):
        """The measured roofs by their keys; {} where none are known."""
        return self.json.get("roofs") or {}

    @property
    def roof_value(self):
        """The roof this run is judged against, in its unit, or None."""
        if self.counts_own:
            return self.json["own_gops"]
        return self.roofs.get(ROOF_KEYS.get(self.json["roof"], ""))

    def ceilings(self):
        """(name, value) of the ceilings of its arithmetic that are known; [] where it counts bytes."""
        names = CEILINGS[KINDS[self.json["roof"]]] if self.counts_flops else []
        return [(name, self.roofs[ROOF_KEYS[name]]) for name in names if self.roofs.get(ROOF_KEYS[name])]

    @property
    def references(self):
        return [r for r in self.json["references"] if r.get("time_us")]

    @property
    def sheet(self):
        """The data sheet of its GPU, or None."""
        return sheet_of(self.json["device"]["name"])


def load(file):
    """The JSON of a file."""
    try:
        return json.loads(file.read_text())
    except json.JSONDecodeError as error:
        raise ResultError(f"{file}: not JSON: {error}") from error


@contextmanager
def of_the_right_form(complaint):
    """What is missing in a document, or of another type than it should be, becomes a ResultError."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ResultError(f"{complaint}: {type(error).__name__}: {error}") from error


def size_text(size):
    return " x ".join(f"{extent:,}" for extent in size)


def read_run(file, run, identities):
    levels = []
    for index, level in enumerate(run["levels"]):
        # Without an identity the age is unknown: treated as old.
        levels.append(Level(index, level, stale=not identities.has(level, run["device"], book.program_of(run), run["ladder"],
                                                                   run["problem"]["size"])))
    if run["roof"] not in ROOF_KEYS and run["roof"] != OWN_ROOF:
        raise ResultError(f"{file.name}: unknown roof {run['roof']!r}")
    return Run(file, run, levels)


def simt_levels(folder=None):
    """(file, run, level) of everything that the SIMT backend counted, under plots/results/simt/."""
    for file in sorted((Path(folder) if folder else RESULTS / SIMT).glob("*.json")):
        for run in json.loads(file.read_text()).get("runs", []):
            for level in run["levels"]:
                if level.get("counters"):
                    yield file, run, level


def simt_counters(folder=None, identities=None):
    """(chapter, ladder, level) -> Counted. A file may hold one ladder of a chapter that another file holds all of:
    counts of today's source go before others, of these the newer."""
    identities = identities or book.identities()
    found, ranks = {}, {}
    for _, run, level in simt_levels(folder):
        key, counted = (run["chapter"], run["ladder"], level["name"]), Counted.of(level, run["problem"])
        rank = (counted.tokens in identities.tokens, run.get("date") or "")
        if key not in found or ranks[key] <= rank:
            found[key], ranks[key] = counted, rank
    return found


def stale_counters(folder=None, identities=None):
    """A sentence for every file of the SIMT backend's counters that is older than its sources: they go by the tokens,
    since it counts per line of the source."""
    identities = identities or book.identities()
    old = defaultdict(list)
    for file, run, level in simt_levels(folder):
        if book.tokens_of(level) not in identities.tokens:
            old[file, run["chapter"]].append(f"{run['ladder']} {level['name']}")
    return [f"{file}: {len(levels)} levels were counted before their sources last changed, the first is {levels[0]} "
            f"(BACKEND=simt ./run profile {chapter} counts again)" for (file, chapter), levels in old.items()]


def headline(runs):
    """The run that stands for a ladder: the one with most levels, of equals that at the ladder's own size.

    The results do not name that size, but only there are claims about speed judged on the GPU. Where no run has any,
    the middle one by work: an end of a sweep could show the ladder better than it is."""
    most = max(len(run.timed) for run in runs)
    runs = sorted((run for run in runs if len(run.timed) == most),
                  key=lambda run: (run.json["problem"]["flops"], run.json["problem"]["bytes"]))
    own = [run for run in runs if run.judges_speed]
    return own[0] if own else runs[len(runs) // 2]


class Results:
    """All results of one GPU: `headline[(chapter, ladder)]` and `sweeps[(chapter, ladder)]`.

    A file named sweep-* only feeds the sweeps, one named profile-* holds measured bytes, compare.json what
    ./run compare measured, compare-attention.json a later ./run compare attention, attention.json what compare_attention.py did, attention-decode.json that with --decode; all
    others hold ladders. Of a ladder measured twice at one size the newer run counts, but a whole ladder before a
    sweep's part of it. `runs` has one of each, `unread` the files that nothing was taken from."""

    def __init__(self, folder, identities=None):
        self.folder = Path(folder)
        self.gpu = self.folder.name
        identities = identities or book.identities()
        newest, ranks, mains, profiles = {}, {}, defaultdict(list), []
        self.comparison, self.beside, self.attention, self.decode = {}, {}, {}, {}  # of ./run compare, compare_attention.py
        documents = {"compare.json": "comparison", "compare-attention.json": "beside", "attention.json": "attention", "attention-decode.json": "decode"}
        self.unread = []
        counters = simt_counters(self.folder.parent / SIMT, identities)
        for file in sorted(self.folder.glob("*.json")):
            document = load(file)
            self.unread.append(file)
            if not isinstance(document, dict):
                continue
            if file.name in documents:
                setattr(self, documents[file.name], document)
                if document.get("comparisons") or document.get("cases"):
                    self.unread.remove(file)
                continue
            if file.name.startswith("profile-"):
                profiles += [(file, profile) for profile in document.get("profiles", [])]
                continue
            timed = (read_run(file, raw, identities) for raw in document.get("runs", [])
                     if raw.get("backend") == "cuda" and "levels" in raw)
            for run in filter(attrgetter("timed"), timed):
                for level in run.levels:
                    level.counted = counted_by_simt(run, level, counters, identities)
                key = (run.chapter, run.ladder, run.size)
                is_main = not file.name.startswith("sweep")
                rank = (is_main, run.json["date"])
                if key not in newest or ranks[key] <= rank:
                    newest[key], ranks[key] = run, rank
                if is_main:
                    mains[key[:2]].append(key)
        self.headline, self.sweeps = {}, defaultdict(list)
        for key, run in newest.items():
            self.sweeps[key[:2]].append(run)
        for pair, keys in mains.items():
            self.headline[pair] = headline([newest[key] for key in dict.fromkeys(keys)])
        for pair, runs in list(self.sweeps.items()):
            # By work; what only moves bytes, and mostly as many, by the length of a row.
            runs.sort(key=lambda run: (run.json["problem"]["flops"], *([] if run.counts_flops else run.size[::-1]),
                                       run.json["problem"]["bytes"]))
            if len(runs) < 3:
                del self.sweeps[pair]
        self.runs = list(newest.values())
        used = {run.file for run in self.runs}
        for file, profile in profiles:
            run = newest.get((profile["chapter"], profile["ladder"], tuple(profile["size"])))
            if run and run.take(profile):
                used.add(file)
        self.unread = [file for file in self.unread if file not in used]

    def of_chapter(self, number):
        """Runs of a chapter, in the order in which they were measured."""
        return [run for (chapter, _), run in self.headline.items() if chapter == number]

    def above_roof(self):
        """A sentence for every point that lies above its roof."""
        return [f"{run.file.name}: chapter {run.chapter}, {run.ladder}, {level.name} at {size_text(run.size)}: "
                f"{level.fraction:.3f} of its roof ({run.json['roof']})"
                for run in self.runs for level in run.timed if (level.fraction or 0) > ROOF_LIMIT]


def gpus(folder=None):
    """The folders of results that hold some, the one with most files first."""
    folder = RESULTS if folder is None else Path(folder)
    found = [path for path in folder.glob("*") if path.is_dir() and path.name != SIMT and any(path.glob("*.json"))]
    return sorted(found, key=lambda path: (-len(list(path.glob("*.json"))), path.name))


REQUESTED = "sectors counted by the SIMT backend (requested of L1)"
DEVICE_MEMORY = "device-memory bytes measured by ncu"


def counted_by_simt(run, level, counters, identities):
    """The counters of today's source, be they the run's own or written by the SIMT backend by itself. Otherwise
    those of the source that was timed: that level is marked as old anyway. None: there are neither."""
    found = [counted for counted in (Counted.of(level.json, run.json["problem"]),
                                     counters.get((run.chapter, run.ladder, level.name))) if counted]
    of_the_timed = (counted for counted in found if counted.tokens == book.tokens_of(level.json))
    return next((counted for counted in found if counted.tokens in identities.tokens), next(of_the_timed, None))


def requested_bytes(level):
    """Bytes of the sectors that the level's instructions ask for, at the traced size; 0: unknown."""
    return 32 * sum(sectors(level).values())


def sectors(level):
    """Sectors requested at the traced size: "global_load", "async_store" ... -> how many."""
    counters = level.counted.values if level.counted else {}
    names = ("global_load", "global_store", "global_atomic", "async_load", "async_store")
    return {name: counters.get(f"{name}_sectors") or 0 for name in names}


def product_bytes(level, size):
    """Bytes that a tiled GEMM requests at `size` (M, N, K), from those at the traced size.

    A tile loads its operands for every step along K, and stores its part of C once. The traced K is small: scaled
    like the loads, the stores would be a large part of the traffic where they are next to none. Plain loads beside
    asynchronous ones are no operands but partial sums of a tile whose K was split (stream_k): as many as stores."""
    counts = sectors(level)
    stored = counts["global_store"] + counts["async_store"]
    if counts["async_load"]:
        stored += counts["global_load"]
    loaded = counts["async_load"] + counts["global_atomic"] + (0 if counts["async_load"] else counts["global_load"])
    loads, stores = product_scale(size, level.counted.trace_size)
    return 32 * (loaded * loads + stored * stores)


def product_scale(size, traced):
    """How many times as many operands are loaded, and as many tiles of C are stored, as at the traced size."""
    (m, n, k), (traced_m, traced_n, traced_k) = size, traced
    tiles = m * n / (traced_m * traced_n)
    return tiles * k / traced_k, tiles


def needed_when_traced(run, level):
    """What the problem needs at the traced size: as it states, or in older results the least that a right level touches.
    0: unknown."""
    problem, counted = run.json["problem"], level.counted
    if problem.get("trace_bytes") and tuple(problem["trace_size"]) == counted.trace_size:
        return problem["trace_bytes"]
    return least_touched(run, level)


def least_touched(run, level):
    """The fewest distinct bytes that a right level touches at this level's traced size. 0: none was counted."""
    counted = level.counted
    return min((other.counted.values["distinct_bytes"] for other in run.levels if other.counted
                and other.counted.trace_size == counted.trace_size and other.json["status"] == "ok"
                and other.counted.values.get("distinct_bytes")), default=0)


def traffic(run, level):
    """(bytes moved per byte that the problem needs, where that figure comes from), or (None, "").

    From ncu where the level was profiled at this size, otherwise from the SIMT backend's counters
    at the size that was traced, where that ratio carries over to the size that was timed."""
    problem = run.json["problem"]
    if measured := level.measured_bytes.get("dram"):
        return measured / problem["bytes"], DEVICE_MEMORY
    requested = requested_bytes(level)
    if not requested:
        return None, ""
    if run.counts_flops:
        if problem["dims"] != ["M", "N", "K"]:
            return None, ""
        return product_bytes(level, run.size) / problem["bytes"], REQUESTED
    needed = needed_when_traced(run, level)
    return (requested / needed, REQUESTED) if needed else (None, "")
