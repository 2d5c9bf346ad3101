# SPDX-License-Identifier: MIT
"""What is on this machine: compilers, packages, a GPU; and the backend that follows from it."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
LEAST_NVCC = "12.8"  # as common/cmake/backend.cmake asks of the toolkit
LIBRARIES = {"fmt/format.h": "libfmt-dev", "nlohmann/json.hpp": "nlohmann-json3-dev", "CLI/CLI.hpp": "libcli11-dev",
             "gtest/gtest.h": "libgtest-dev"}
ON_A_GPU = {"benchmark/benchmark.h": "libbenchmark-dev"}


def say(text):
    print(text, file=sys.stderr, flush=True)


def die(text, status=2):
    say(f"run: {text}")
    sys.exit(status)


def says(*command):
    """What a program prints."""
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout
    except OSError as error:
        return str(error)


def missing_packages(backend):
    has = shutil.which
    missing = [tool for tool in ("g++", "cmake") if not has(tool)]
    missing += [] if has("ninja") or has("make") else ["ninja-build"]
    missing += [] if has("addr2line") else ["binutils"]
    headers = LIBRARIES | (ON_A_GPU if backend == "cuda" else {})
    if not has("g++"):
        return [*missing, *headers.values()]
    # Preprocessed and not compiled: the headers would take ten seconds, at every ./run.
    asked = "".join(f"#if !__has_include(<{header}>)\n{package}\n#endif\n" for header, package in headers.items())
    found = subprocess.run(["g++", "-std=c++20", "-E", "-P", "-x", "c++", "-"], input=asked, capture_output=True, text=True,
                           check=False)
    return [*missing, *found.stdout.split()]


def install(why, packages):
    if packages and (status := subprocess.run([HERE / "install.sh", why, *packages], check=False).returncode):
        sys.exit(status)


def version_in(text):
    found = re.search(r"\d+(\.\d+)*", text)
    return found and found[0]


def is_older(version, least):
    def numbers(text):
        return [int(part) for part in text.split(".")]
    return numbers(version) < numbers(least)


def need_version(tool, least, text):
    """An older one would end in pages of errors. `text` is what the tool says of itself."""
    found = version_in(text)
    if not found:
        die(f"cannot tell the version of {tool}: it says '{text.strip()}'")
    if is_older(found, least):
        die(f"needs {tool} {least} or later; this is {found} (docs/building.md says how to get one)")


def has_gpu():
    return bool(shutil.which("nvidia-smi")) and "GPU" in says("nvidia-smi", "-L")


def find_nvcc():
    if not shutil.which("nvcc") and os.access("/usr/local/cuda/bin/nvcc", os.X_OK):
        os.environ["PATH"] = "/usr/local/cuda/bin:" + os.environ["PATH"]
    return shutil.which("nvcc")


def nvcc_says():
    lines = says(os.environ.get("CUDACXX") or "nvcc", "--version").splitlines()
    return next((line for line in lines if re.search(r"release \d", line)), "no release")


def nvcc_is_new_enough():
    found = version_in(nvcc_says())
    if found and not is_older(found, LEAST_NVCC):
        return True
    say((f"nvcc {found} is older than {LEAST_NVCC}" if found else "cannot tell the version of nvcc")
        + ": using the SIMT backend on the CPU")
    return False


def choose_backend():
    asked = os.environ.get("BACKEND")
    if asked in ("simt", "cuda"):
        return asked
    if asked:
        die(f"BACKEND is '{asked}'; it must be simt or cuda")
    return "cuda" if has_gpu() and find_nvcc() and nvcc_is_new_enough() else "simt"


def ensure_tools(backend, needs_gpu=True):
    if backend == "cuda":
        if needs_gpu and not has_gpu():
            die("BACKEND=cuda needs a GPU, and nvidia-smi finds none (./run build works without)")
        if not find_nvcc():
            die("BACKEND=cuda needs nvcc on the PATH")
        need_version("nvcc", LEAST_NVCC, nvcc_says())
    install("compiler, build tool and libraries", missing_packages(backend))
    need_version("g++", "12", says(os.environ.get("CXX") or "g++", "-dumpfullversion"))  # CMake takes what CXX names
    need_version("CMake", "3.25", says("cmake", "--version").partition("\n")[0])
