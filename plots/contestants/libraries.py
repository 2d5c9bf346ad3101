# SPDX-License-Identifier: MIT
"""The book's kernels as shared libraries with a C interface (capi.hpp), built here and called
from Python."""
import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cookbook_plots import book

ROOT = book.ROOT
FOLDER = ROOT / "build/compare"
FOLDERS = {"gemm": "library/gemm", "rows": "library/rows", "transpose": "library/transpose",
           "attention": "library/attention"}


class GemmProblem(ctypes.Structure):
    """cookbook_gemm_problem; leading dimensions of 0 are dense."""

    _fields_ = [(name, ctypes.c_longlong) for name in ("m", "n", "k", "lda", "ldb", "ldc")] + [
        ("a_transposed", ctypes.c_int), ("b_transposed", ctypes.c_int)]


class RowsProblem(ctypes.Structure):
    """cookbook_rows_problem: softmax, with a weight RMSNorm; dtype: 0 bf16, 2 fp32."""

    _fields_ = [(name, ctypes.c_longlong) for name in ("rows", "cols", "in_pitch", "out_pitch")] + [
        ("dtype", ctypes.c_int)]


class TransposeProblem(ctypes.Structure):
    """cookbook_transpose_problem: fp32; pitches of 0 are dense."""

    _fields_ = [(name, ctypes.c_longlong) for name in ("rows", "cols", "in_pitch", "out_pitch")]


class AttentionProblem(ctypes.Structure):
    """cookbook_attention_problem; dtype: 0 bf16, 1 fp16."""

    _fields_ = [(name, ctypes.c_int) for name in
                ("batch", "heads_q", "heads_kv", "seq_q", "seq_k", "head_dim", "causal", "dtype")]


class AttentionGradients(ctypes.Structure):
    """cookbook_attention_gradients: device pointers; d_lse may be None."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("q", "k", "v", "o", "d_o", "lse", "d_lse", "dq", "dk", "dv")]


POINTERS = {"gemm": 3, "rows": 3, "transpose": 2, "attention": 5}


def sources(name):
    """What is compiled into lib<name>."""
    backend, folder = ROOT / "common/backend", ROOT / FOLDERS[name]
    return [folder / "capi.cu", *sorted(folder.glob("kernels_*.cu")), backend / "tensor_map.cpp",
            backend / "device_memory.cpp", backend / "observe.cpp", backend / "backend_cuda.cu",
            *sorted((backend / "cuda").glob("*.cpp"))]


def digest(name, command):
    """Changes whenever a source, a header that one includes, or the command does. Contents count, not
    dates: a library may be built on one machine and used on another."""
    files = dict.fromkeys(path for file in sources(name) for path in book.sources(file))
    return hashlib.sha256(" ".join(command).encode() + b"".join(path.read_bytes() for path in files)).hexdigest()


def compile_once(library, digest, arguments, origin="", host=()):
    """Compiles a library with nvcc unless it is there and of this digest. What the compiler says where it fails, else "".
    `host`: C++ sources, compiled with the same arguments."""
    stamp = library.with_suffix(".sha256")
    if library.exists() and stamp.exists() and stamp.read_text() == digest:
        return ""
    library.parent.mkdir(parents=True, exist_ok=True)
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    print(f"building {library.name} for sm_90a{origin}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        objects = [f"{folder}/{number}.o" for number in range(len(host))]
        commands = [[nvcc, *(word for word in arguments if not word.endswith(".cu")), *AS_CPP, "-c", str(file), "-o", made]
                    for file, made in zip(host, objects)]
        for command in [*commands, [nvcc, *arguments, *objects, "-o", str(library)]]:
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                return done.stderr or f"status {done.returncode}"
    stamp.write_text(digest)
    return ""


# nvcc defines __NVCC__ for C++ sources, too, and then fmt 9 takes its own consteval functions for errors.
AS_CPP = ["-Xcompiler", "-U__NVCC__", "-DFMT_HEADER_ONLY"]


def build(name, library=None):
    """The path of lib<name>, compiled unless it is there and up to date. Raises RuntimeError with what the compiler said."""
    library = Path(library) if library else FOLDER / f"libcookbook_{name}.so"
    command = ["-shared", "-Xcompiler", "-fPIC", "-O2", "-std=c++20", "-lineinfo",
               "--expt-relaxed-constexpr", "-diag-suppress=186", "-DCOOKBOOK_CUDA=1",
               "-gencode", "arch=compute_90a,code=sm_90a",
               "-Xlinker", "--no-undefined"]
    host, device = ([file for file in sources(name) if (file.suffix == ".cpp") == is_host] for is_host in (True, False))
    said = compile_once(library, digest(name, command), [*command, f'-DCOOKBOOK_SOURCE_DIR="{ROOT}"', "-I", str(ROOT),
                                                         *map(str, device)], host=host)
    if said:
        raise RuntimeError(f"{library.name} does not compile:\n{said[-4000:]}")
    return library


def build_all(names):
    """Builds several side by side."""
    with ThreadPoolExecutor(max(1, min(len(names), os.cpu_count() or 1))) as pool:
        return list(pool.map(build, names))


class Library:
    """cookbook_<name>_plan, _run, _destroy, _error and _levels."""

    def __init__(self, name, path=None):
        self.name = name
        c = self.library = ctypes.CDLL(os.fspath(path or build(name)))
        self.make, self.launch, self.free, self.last_error, self.names = (
            getattr(c, f"cookbook_{name}_{what}") for what in ("plan", "run", "destroy", "error", "levels"))
        self.make.restype = ctypes.c_void_p
        self.make.argtypes = [ctypes.c_char_p, ctypes.c_void_p] + [ctypes.c_void_p] * POINTERS[name]
        self.launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self.free.argtypes = [ctypes.c_void_p]
        self.free.restype = None
        self.last_error.restype = self.names.restype = ctypes.c_char_p

    def levels(self):
        return self.names().decode().split("\n")[:-1]

    def error(self):
        return self.last_error().decode()

    def plan(self, level, problem, *tensors):
        """A Plan that launches `level` on torch's current stream. Raises RuntimeError with the reason."""
        handle = self.make(level.encode(), ctypes.byref(problem), *(t if t is None else t.data_ptr() for t in tensors))
        if not handle:
            raise RuntimeError(self.error())
        return Plan(self, handle)


    def backward(self, level, problem, q, k, v, o, d_o, lse, d_lse, dq, dk, dv):
        """As plan, of the backward pass of attention: what cookbook_attention_backward_plan takes."""
        make = self.library.cookbook_attention_backward_plan
        make.restype = ctypes.c_void_p
        make.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p]
        tensors = AttentionGradients(*(t if t is None else t.data_ptr()
                                       for t in (q, k, v, o, d_o, lse, d_lse, dq, dk, dv)))
        handle = make(level.encode(), ctypes.byref(problem), ctypes.byref(tensors))
        if not handle:
            raise RuntimeError(self.error())
        return Plan(self, handle)


class Plan:
    """Call it to launch. Frees its tensor maps and workspace when nobody holds it any more."""

    def __init__(self, library, handle):
        self.library, self.handle = library, handle

    def __call__(self):
        import torch
        if self.library.launch(self.handle, torch.cuda.current_stream().cuda_stream):
            raise RuntimeError(self.library.error())

    def __del__(self):
        if self.handle:
            self.library.free(self.handle)
            self.handle = None
