# SPDX-License-Identifier: MIT
"""CUTLASS's GEMM for Hopper, compiled here with nvcc from its headers: those of the folder that COOKBOOK_CUTLASS names
(a checkout), otherwise those of the package nvidia-cutlass from PyPI. Two schedules, cooperative and ping-pong, each
about a minute of compilation, side by side."""
import ctypes
import hashlib
import importlib.util
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .libraries import FOLDER, compile_once

SOURCE = Path(__file__).with_name("cutlass_gemm.cu")
SCHEDULES = {"cooperative 128x256x64": 1, "ping-pong 128x128x64": 0}
SWIZZLES = (1, 4, 8)


def headers():
    """The folder with include/cutlass/cutlass.h, or None."""
    named = os.environ.get("COOKBOOK_CUTLASS")
    if not named:
        package = importlib.util.find_spec("cutlass_library")
        named = Path(package.origin).parent / "source" if package and package.origin else None
    return Path(named) if named and (Path(named) / "include/cutlass/cutlass.h").exists() else None


def build(schedule, root):
    """The path of the library of one schedule. Raises RuntimeError with what the compiler said."""
    library = FOLDER / f"libcutlass_gemm_{SCHEDULES[schedule]}.so"
    command = ["-shared", f"-DCOOPERATIVE={SCHEDULES[schedule]}", "-std=c++17", "-O3", "-DNDEBUG",
               "--expt-relaxed-constexpr", "--expt-extended-lambda", "-Xcompiler", "-fPIC",
               "-gencode", "arch=compute_90a,code=sm_90a"]
    version = (root / "include/cutlass/version.h").read_bytes()
    now = hashlib.sha256(SOURCE.read_bytes() + version + " ".join(command).encode()).hexdigest()
    said = compile_once(library, now, [*command, "-I", str(root / "include"), "-I", str(root / "tools/util/include"),
                                       str(SOURCE)], f" from {root}")
    if said:
        raise RuntimeError(f"{library.name} does not compile: {said.strip()[-300:]}")
    return library


def build_all():
    """Schedule -> path, or the reason (a string) why there is none."""
    root = headers()
    if not root:
        return "not installed"
    try:
        with ThreadPoolExecutor(len(SCHEDULES)) as pool:
            return dict(zip(SCHEDULES, pool.map(lambda schedule: build(schedule, root), SCHEDULES)))
    except (OSError, RuntimeError) as error:
        return str(error)


class Plan:
    """Call it to launch on torch's current stream."""

    def __init__(self, library, a, b, out, swizzle):
        self.library, self.tensors = library, (a, b, out)
        library.cookbook_cutlass_plan.restype = ctypes.c_void_p
        (m, k), n = a.shape, b.shape[1]
        self.handle = library.cookbook_cutlass_plan(*(ctypes.c_void_p(t.data_ptr()) for t in self.tensors), m, n, k, swizzle)

    def __call__(self):
        import torch
        if not self.handle:
            raise RuntimeError("CUTLASS cannot run this problem")
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        if status := self.library.cookbook_cutlass_run(ctypes.c_void_p(self.handle), stream):
            raise RuntimeError(f"CUTLASS's status {status}")

    def __del__(self):
        if self.handle:
            self.library.cookbook_cutlass_destroy(ctypes.c_void_p(self.handle))
            self.handle = None


def version():
    """What the results say of it; None where there is none."""
    root = headers()
    if not root:
        return None
    numbers = dict(line.split()[1:3] for line in (root / "include/cutlass/version.h").read_text().splitlines()
                   if line.startswith("#define CUTLASS_") and len(line.split()) == 3)
    return ".".join(numbers.get(f"CUTLASS_{part}", "?") for part in ("MAJOR", "MINOR", "PATCH"))


def choose(libraries, a, b, out, fastest):
    """(schedule and swizzle, call) of the fastest, or (None, reason). fastest(configs, make_call): as timing.fastest."""
    if isinstance(libraries, str):
        return None, libraries
    loaded = {schedule: ctypes.CDLL(os.fspath(path)) for schedule, path in libraries.items()}
    return fastest([(schedule, swizzle) for schedule in loaded for swizzle in SWIZZLES],
                   lambda config: Plan(loaded[config[0]], a, b, out, config[1]))
