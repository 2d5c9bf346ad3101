# SPDX-License-Identifier: MIT
"""One request of a warp: its lanes, and what it costs, recomputed from the addresses."""
from dataclasses import dataclass

from ..results import ResultError

LANES, SECTOR, LINE, WORD, BANKS = 32, 32, 128, 4, 32
RULES = ("load_store", "matrix_rows", "atomic")
MEMORIES = {"global": "sectors", "shared": "wavefronts"}


@dataclass(frozen=True)
class Delivery:
    """A word that a bank delivers: when, and to which lanes."""
    word: int
    wavefront: int
    lanes: tuple

    @property
    def bank(self):
        return self.word % BANKS


class Request:
    """As docs/pictures.md describes it. ResultError where the tracer counted something else than the addresses say."""

    def __init__(self, json):
        self.file, self.line, self.source = str(json["file"]), int(json["line"]), str(json["source"])
        self.memory, self.operation, self.buffer = json["memory"], str(json["operation"]), str(json["buffer"])
        self.bytes, self.rule, self.warp = json["bytes"], json["rule"], int(json["warp"])
        self.block = tuple(map(int, json["block"]))
        if self.memory not in MEMORIES:
            raise ValueError(f"memory is {self.memory!r}")
        if not isinstance(self.bytes, int) or not 1 <= self.bytes <= 16:
            raise ValueError(f"bytes per lane are {self.bytes!r}")
        if (self.rule not in RULES) if self.memory == "shared" else (self.rule is not None):
            raise ValueError(f"rule is {self.rule!r}")
        addresses = json["addresses"]
        if len(addresses) != LANES or not all(a is None or (type(a) is int and a >= 0) for a in addresses):
            raise ValueError("addresses are not 32 numbers or null")
        self.lanes = {lane: address for lane, address in enumerate(addresses) if address is not None}
        if not self.lanes:
            raise ValueError("no lane is active")
        self.unit, self.total = MEMORIES[self.memory], json["line_total"]
        self.counted, self.ideal = json["counted"][self.unit], json["counted"]["ideal"]
        self.deliveries, phases = self._deliveries() if self.memory == "shared" else ([], 0)
        found = 1 + max(d.wavefront for d in self.deliveries) if self.deliveries else len(self.sectors())
        dense = -(-len(set(self.lanes.values())) * self.bytes // SECTOR)
        ideal = phases if self.deliveries else min(dense, found)
        if (found, ideal) != (self.counted, self.ideal):
            raise ResultError(f"{self.where}: the addresses make {found} {self.unit}, {ideal} at best; the tracer counted "
                              f"{self.counted}, {self.ideal} at best")

    @property
    def where(self):
        return f"{self.file}:{self.line}"

    @property
    def idle(self):
        """Lanes that take no part: divergent, or beyond an edge."""
        return [lane for lane in range(LANES) if lane not in self.lanes]

    def used(self):
        """The bytes that lanes ask for."""
        return {byte for address in self.lanes.values() for byte in range(address, address + self.bytes)}

    def sectors(self):
        """The sectors that lanes touch."""
        return sorted({byte // SECTOR for byte in self.used()})

    def phases(self):
        """The lanes that shared memory serves together: 128 bytes at most, unless two phases are merged."""
        size = 8 if self.bytes > 8 else 16 if self.bytes > 4 else LANES
        if size == LANES or self.rule != "load_store":
            groups = [range(first, first + size) for first in range(0, LANES, size)]
        else:
            groups = []
            for first in range(0, LANES, 2 * size):
                both = range(first, first + 2 * size)
                halves = [range(first, first + size), range(first + size, first + 2 * size)]
                groups += [both] if self._merge(both) else halves
        return [lanes for lanes in ([lane for lane in group if lane in self.lanes] for group in groups) if lanes]

    def _merge(self, lanes):
        """Whether each active lane has the address of lane XOR 1, or each that of lane XOR 2."""
        return any(all(self.lanes[lane] == self.lanes[lane ^ distance] for lane in lanes
                       if lane in self.lanes and lane ^ distance in self.lanes) for distance in (1, 2))

    def _deliveries(self):
        """(what the banks deliver, number of phases). The n-th word that a bank has to deliver in a phase comes in the
        phase's n-th wavefront."""
        found, first, phases = [], 0, self.phases()
        for phase in phases:
            of_bank = [{} for _ in range(BANKS)]  # word -> lanes; of atomics (word, lane) -> lanes
            for lane in phase:
                address = self.lanes[lane]
                for word in range(address // WORD, (address + self.bytes - 1) // WORD + 1):
                    key = (word, lane) if self.rule == "atomic" else (word, None)
                    of_bank[word % BANKS].setdefault(key, []).append(lane)
            for words in of_bank:
                found += [Delivery(word, first + order, tuple(lanes)) for order, ((word, _), lanes) in enumerate(words.items())]
            first += max(map(len, of_bank))
        return found, len(phases)
