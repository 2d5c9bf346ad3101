# SPDX-License-Identifier: MIT
"""Data sheets of GPUs (devices.json), in the form of the roofs that chapter 0 measures."""
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Sheet:
    name: str
    match: str  # of the name that the driver gives
    sms: int
    l2_mib: float
    dram_gbps: float
    fp32: float  # this and what follows: TFLOP/s
    fp64: float
    tensor: dict  # type -> TFLOP/s, or None
    source: str
    lanes: int = 128  # of FP32, per SM

    def peak(self, kind):
        """TFLOP/s or TOP/s of a kind of results.CEILINGS, or None."""
        return {"fp32": self.fp32, "fp64": self.fp64}.get(kind) or self.tensor.get(kind)

    @property
    def roofs(self):
        """With the keys of a run's "roofs". A sheet knows neither L2 nor shared memory."""
        tensor = self.tensor["bf16"]
        known = {"hbm_copy_gbps": self.dram_gbps, "hbm_read_gbps": self.dram_gbps, "fp32_tflops": self.fp32,
                 "mma_bf16_tflops": tensor, "wgmma_bf16_tflops": tensor, "fp64_tflops": self.fp64,
                 "mma_tf32_tflops": self.tensor["tf32"], "wgmma_tf32_tflops": self.tensor["tf32"],
                 "mma_int8_tops": self.tensor["int8"], "wgmma_int8_tops": self.tensor["int8"],
                 "wgmma_fp8_tflops": self.tensor["fp8"]}
        return {key: value for key, value in known.items() if value}


    @property
    def on_chip(self):
        """GB/s through L2 and through L1 with shared memory: estimates. An SM takes 128 bytes per clock from L1 and, as
        measured on an H200, 32 from L2."""
        clocks = 1e3 * self.fp32 / (2 * self.lanes)  # 1e9 per second, of all SMs
        return {"l2": 32 * clocks, "shared": 128 * clocks}


@cache
def sheets():
    document = json.loads((Path(__file__).parent / "devices.json").read_text())
    return tuple(Sheet(**device) for device in document["devices"])


def sheet_of(device):
    """The sheet of the GPU that the driver calls `device`, or None."""
    return next((sheet for sheet in sheets() if re.search(sheet.match, device)), None)
