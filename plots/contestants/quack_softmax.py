# SPDX-License-Identifier: MIT
"""QuACK's softmax, in CUTLASS's Python DSL, where the package is installed (PyPI: quack-kernels)."""
import importlib
import importlib.metadata

from . import why_not

NAME = "QuACK"


def version():
    """What the results say of it; None where there is none."""
    try:
        return importlib.metadata.version("quack-kernels")
    except importlib.metadata.PackageNotFoundError:
        return None


def make(x, out):
    """A callable that launches on torch's current stream, or the reason why there is none. It compiles a kernel for
    each number of columns when it is first called."""
    try:
        import torch
        importlib.import_module("quack.softmax")
    except Exception as error:  # a package for another driver fails with errors of its own
        return why_not(error, "quack", "quack-kernels")
    forward = getattr(torch.ops.quack, "_softmax_fwd", None)
    if forward is None:
        return f"quack-kernels {version()} has no operator _softmax_fwd"
    return lambda: forward(x, out)
