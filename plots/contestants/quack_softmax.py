# SPDX-License-Identifier: MIT
"""QuACK's softmax, in CUTLASS's Python DSL, where the package is installed (PyPI: quack-kernels)."""
import importlib
import importlib.metadata

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
    except ImportError as error:
        missing = (getattr(error, "name", None) or "").split(".")[0]
        return "not installed (PyPI: quack-kernels)" if missing == "quack" else f"does not load: {error}"[:160]
    except Exception as error:
        return f"does not load: {type(error).__name__}: {error}".splitlines()[0][:160]
    forward = getattr(torch.ops.quack, "_softmax_fwd", None)
    if forward is None:
        return f"quack-kernels {version()} has no operator _softmax_fwd"
    return lambda: forward(x, out)
