# SPDX-License-Identifier: MIT
"""Compiles every configuration that ./run compare tries in cuTile, on a machine without a GPU; prepare_cutile.sh runs it.

cuda.tile launches as always, over a libcuda without a GPU and with arrays that have addresses but no memory; what its
compiler makes stays in its cache. Arguments: ladders; default: all."""
import ctypes
import math
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PLOTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).resolve().parent), str(PLOTS)]
import torch  # noqa: E402  the stand-in beside this file
import cuda.tile as ct  # noqa: E402
from contestants import cutile  # noqa: E402

BF16, F32 = (4, 16), (2, 32)  # DLPack's type code and bits
CUDA = 2  # DLPack's device type


class DataType(ctypes.Structure):
    """DLDataType."""

    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class ManagedTensor(ctypes.Structure):
    """DLManagedTensor with its DLTensor written out."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("dtype", DataType), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
                ("context", ctypes.c_void_p), ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p))]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
keep = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda pointer: None)


class Array:
    """A dense array on a GPU that is not there."""

    made = 0

    def __init__(self, shape, dtype):
        Array.made += 1
        strides = [1]
        for extent in reversed(shape[1:]):
            strides.insert(0, strides[0] * extent)
        extents = ctypes.c_int64 * len(shape)
        self.shape, self.strides = extents(*shape), extents(*strides)
        address = 0x7F0000000000 + (Array.made << 34)  # aligned as torch's are
        self.managed = ManagedTensor(address, CUDA, 0, len(shape), DataType(*(BF16 if dtype == "bf16" else F32), 1),
                                     self.shape, self.strides, 0, None, keep)

    def __dlpack__(self, **_):
        return new_capsule(ctypes.addressof(self.managed), b"dltensor", None)

    def __dlpack_device__(self):
        return CUDA, 0


def compile_one(problem, config):
    """(seconds, "" or why it does not compile)."""
    start = time.monotonic()
    tensors = [Array(shape, problem.dtype) for shape in problem.shapes()]
    try:
        with ct.compiler_timeout(cutile.COMPILE_SECONDS * 20):  # this machine may be slow and busy
            cutile.launcher(problem, config, tensors, lambda: 0x2000)()
        return time.monotonic() - start, ""
    except Exception as error:
        return time.monotonic() - start, cutile.short(error)


def main(names):
    import compare_attention
    import compare_gemm
    import compare_softmax
    modules = {"gemm": compare_gemm, "attention": compare_attention, "softmax": compare_softmax}
    work = []
    for name in names or modules:
        problems = {problem: None for quick in (False, True) for problem in modules[name].tile_problems(quick)}
        work += [(problem, config) for problem in problems for config in cutile.configs_of(problem, torch.SMS)]
    # Large tiles take the compiler minutes: last, so that a run that is stopped has most of them.
    work.sort(key=lambda item: (item[1].shipped, math.prod(item[1].tile[:2])))
    failed = 0
    with ThreadPoolExecutor(int(os.environ.get("JOBS", os.cpu_count() or 1))) as pool:
        for (problem, config), (seconds, reason) in zip(work, pool.map(lambda item: compile_one(*item), work)):
            print(f"{problem.text():44} {config.text():70} {reason or 'compiled'} {seconds:.1f} s", flush=True)
            failed += bool(reason)
    print(f"{len(work) - failed} of {len(work)} configurations compiled")
    return 0 if failed < len(work) else 1


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(status)  # nothing to tear down on a GPU that is not there
