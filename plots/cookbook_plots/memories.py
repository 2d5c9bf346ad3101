# SPDX-License-Identifier: MIT
"""The bytes that a level moves through each memory, and which roof binds it.

Nsight Compute's bytes come first. Otherwise the SIMT backend's counters, scaled from the traced size to the
run's own: exact for shared memory and for what bypasses L1, an upper bound for L2 where L1 may deliver a part, and
for device memory every distinct byte once."""
from dataclasses import dataclass

from .markup import significant
from .results import ROOF_LIMIT, least_touched, needed_when_traced, product_scale, sectors

MEMORIES = ("dram", "l2", "shared")  # as in a roofline, from the lowest diagonal
NAMES = {"dram": "device memory", "l2": "L2", "shared": "L1 / shared"}
NCU, COUNTED, AT_MOST, ONCE = "ncu", "counted", "at most", "each byte once"
REACHED = 0.8  # of a roof: it binds
WAVEFRONT, SECTOR = 128, 32  # bytes
MERGED = "the GPU merges requests, so more is asked for than moves"


@dataclass(frozen=True)
class Moved:
    bytes: float
    origin: str  # NCU, COUNTED, AT_MOST or ONCE


@dataclass(frozen=True)
class Binding:
    """The roof that a level comes closest to."""

    name: str
    fraction: float
    value: float
    unit: str
    origin: str  # of the bytes; "" for arithmetic

    @property
    def reached(self):
        return self.fraction >= REACHED

    def __str__(self):
        value = f"{self.value / 1000:.1f} TB/s" if self.unit == "GB/s" and self.value >= 1000 else \
            f"{significant(self.value)} {self.unit}"
        origin = f" ({self.origin})" if self.origin else ""
        if self.fraction > ROOF_LIMIT:  # more requests than can have moved: the GPU merges some
            return f"asks {self.name} for {100 * self.fraction:.0f} % of {value}{origin}"
        verdict = "bound by" if self.reached else "no roof reached, nearest"
        return f"{verdict} {self.name}: {100 * self.fraction:.0f} % of {value}{origin}"

    @property
    def explained(self):
        """In words, and why it is above 100 % where it is."""
        return f"{self}: {MERGED}" if self.fraction > ROOF_LIMIT else str(self)


def shared_bytes(values):
    """Bytes through the data path of L1 and shared memory, in loads and in stores, at the traced size. wgmma and TMA
    have no wavefronts: their bytes count."""
    def amount(name):
        return (values.get(f"{name}_wavefronts") or 0) * WAVEFRONT or values.get(f"{name}_bytes") or 0
    return sum(amount(f"{kind}_shared") for kind in ("async_load", "async_store")) + amount("shared_load"), \
        amount("shared_store") + amount("shared_atomic")


def counted(run, level):
    """memory -> Moved, by the SIMT backend's counters; {} where they cannot be carried over to the run's size."""
    if not level.counted:
        return {}
    problem, values = run.json["problem"], level.counted.values
    distinct, needed = values.get("distinct_bytes") or 0, needed_when_traced(run, level)
    dims, traced = problem["dims"], level.counted.trace_size
    if not needed:
        return {}
    if tuple(run.size) == tuple(traced):
        loads = stores = extra = 1.0
    elif not run.counts_flops:
        loads = stores = extra = problem["bytes"] / needed
    elif dims == ["M", "N", "K"]:
        loads, stores = product_scale(run.size, traced)
        extra = stores  # partial sums
    elif "seq_q" in dims and "seq_k" in dims:
        # Only the scores are known to scale: tiles of the traced size are mostly tails. What every level touches
        # beside the problem's bytes, such as the sums of a backward pass, are no scores.
        scored = distinct - least_touched(run, level)
        return {"dram": Moved(problem["bytes"] + scored * scores(dims, run.size) / scores(dims, traced),
                              ONCE)}
    else:
        return {}
    found = {"dram": Moved(problem["bytes"] + (distinct - needed) * extra, ONCE)}
    count = sectors(level)
    is_product = run.counts_flops and dims == ["M", "N", "K"]
    asynchronous = count["async_load"] > 0
    # As product_bytes: plain loads beside asynchronous ones are partial sums.
    plain = count["global_load"] * (stores if is_product and asynchronous else loads) * SECTOR
    stored = (count["global_store"] + count["async_store"]) * stores * SECTOR
    l2 = count["async_load"] * loads * SECTOR + stored + count["global_atomic"] * loads * SECTOR
    if plain + l2:
        found["l2"] = Moved(plain + l2, AT_MOST if plain and plain + l2 > 1.05 * found["dram"].bytes else COUNTED)
    read, written = shared_bytes(values)
    if is_product and asynchronous:
        # Operands come by asynchronous copies, so plain stores are the tile of C, which is read back once.
        shared = max(read - written, 0) * loads + 2 * written * stores
    else:
        shared = (read + written) * loads
    through_l1 = plain + (count["global_store"] * stores + count["global_atomic"] * loads) * SECTOR
    if shared + through_l1:
        found["shared"] = Moved(shared + through_l1, COUNTED)
    return found


# The naive level of chapter 3 on an H200 takes L2 so many times as long for a sector that is written in parts. Chapter 1's
# strided copy, which also reads in parts, takes 5 times as long.
PARTIAL = 3.5


def requested_of_l2(level, amounts):
    """Bytes that take L2 as long as the level's requests would if L1 kept nothing; None where L1 can keep nothing."""
    if "l2" not in amounts or amounts["l2"].origin != AT_MOST:
        return None
    count, values = sectors(level), level.counted.values
    in_parts = sum(count[kind] for kind in ("global_load", "global_store")
                   if count[kind] > 1.05 * (values.get(f"{kind}_ideal_sectors") or 0)) / sum(count.values())
    return amounts["l2"].bytes * (1 + (PARTIAL - 1) * in_parts)


def request_factor(level):
    """Times that the global requests of a level take L1 longer than their sectors do: each takes a wavefront or more."""
    values = level.counted.values if level.counted else {}
    kinds = ("global_load", "global_store")
    moved = sum(values.get(f"{kind}_sectors") or 0 for kind in kinds) * SECTOR
    return max(1, sum(values.get(f"{kind}_requests") or 0 for kind in kinds) * WAVEFRONT / moved) if moved else 1


def scores(dims, size):
    """How many elements the matrices of scores have."""
    extents = dict(zip(dims, size))
    return extents.get("batch", 1) * extents.get("heads_q", 1) * extents["seq_q"] * extents["seq_k"]


ON_CHIP = {"L2": "l2", "shared memory": "shared"}  # roofs whose problem's bytes are those of one memory


def moved(run, level):
    """memory -> Moved. ncu's bytes of L1 ("l1") hold no shared memory, so the counted ones go before them; those of the
    data pipe of both ("shared") go before all."""
    if run.json["roof"] in ON_CHIP:  # chapter 0: it reads the same bytes again and again
        return {ON_CHIP[run.json["roof"]]: Moved(run.json["problem"]["bytes"], COUNTED)}
    found = counted(run, level)
    for memory, key in (("dram", "dram"), ("l2", "l2"), ("shared", "l1"), ("shared", "shared")):
        if level.measured_bytes.get(key) and not (key == "l1" and memory in found):
            found[memory] = Moved(level.measured_bytes[key], NCU)
    return found


def memory_roofs(run, roofs):
    """memory -> GB/s, of what is known."""
    kind = "hbm_copy_gbps" if run.json["roof"] == "HBM copy" else "hbm_read_gbps"
    keys = {"dram": kind, "l2": "l2_gbps", "shared": "shared_gbps"}
    return {memory: roofs[key] for memory, key in keys.items() if roofs.get(key)}


def binding(run, level, roofs=None):
    """The Binding of a timed level, or None. `roofs`: instead of the run's own."""
    if not level.timed:
        return None
    limits, found = memory_roofs(run, run.roofs if roofs is None else roofs), []
    for memory, amount in moved(run, level).items():
        if memory in limits and amount.origin != AT_MOST:
            gbps = amount.bytes / 1e3 / level.time()
            if run.counts_flops and amount.origin == ONCE and gbps > ROOF_LIMIT * limits[memory]:
                continue  # the level ran too fast for it: these bytes do not scale so
            found.append(Binding(NAMES[memory], gbps / limits[memory], limits[memory], "GB/s", amount.origin))
    if (run.counts_flops or run.counts_own) and run.roof_value:
        found.append(Binding(run.json["roof"], run.speed(level) / run.roof_value, run.roof_value, run.unit, ""))
    return max(found, key=lambda one: one.fraction, default=None)


def above_100(fractions=(), bindings=(), libraries=(), roof=""):
    """Why a table has more than 100 % of a roof, a sentence per kind of cell; "" where it has not. `fractions`: those of
    levels; `libraries`: [(name, fraction of `roof`)]."""
    shown = [*filter(None, fractions), *(bound.fraction for bound in bindings), *(part for _, part in libraries if part)]
    asked = sorted({bound.name for bound in bindings if bound.fraction > ROOF_LIMIT})
    faster = [name for name, part in libraries if part and part > ROOF_LIMIT]
    sentences = [f"Above 100 %, {' and '.join(asked)}: {MERGED}."] if asked else []
    if faster:
        sentences.append(f"Above 100 %, {' and '.join(faster)}: {'they are' if len(faster) > 1 else 'it is'} not limited by {roof}.")
    if any(part <= ROOF_LIMIT and round(100 * part) > 100 for part in shown):
        sentences.append(f"101 to {100 * ROOF_LIMIT:.0f} %: noise, because speed and roof are two measurements.")
    return " ".join(sentences)


def not_measured(run, roofs):
    """The memories whose roof is unknown."""
    return [NAMES[memory] for memory in MEMORIES if memory not in memory_roofs(run, roofs)]
