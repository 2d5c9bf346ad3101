# SPDX-License-Identifier: MIT
"""FlashAttention-3's forward pass, where it is installed: its Python package (flash_attn_interface), or a shared
library that COOKBOOK_FA3_LIBRARY names, with this function:

    int fa3_forward(const void* q, const void* k, const void* v, void* out, float* lse, int batch, int heads_q,
                    int heads_kv, int seq_q, int seq_k, int head_dim, int causal, float scale, int layout,
                    int* semaphore, void* stream)

Device pointers to contiguous bf16 tensors (batch, seq, heads, head_dim), which is layout 0; lse is fp32
(batch, heads_q, seq_q); semaphore may be null. Returns 0, or what it cannot do. COOKBOOK_FA3_COMMIT says in the
results which commit it was built from."""
import ctypes
import math
import os

NAME = "FlashAttention-3"


def version():
    """What the results say of it; None where there is none."""
    if os.environ.get("COOKBOOK_FA3_LIBRARY"):
        return os.environ.get("COOKBOOK_FA3_COMMIT", "a library of unknown commit")
    try:
        import flash_attn_interface
    except ImportError:
        return None
    return getattr(flash_attn_interface, "__version__", "the installed package")


def make(q, k, v, out, lse, causal):
    """A callable that launches on torch's current stream, or the reason why there is none. It writes `out` and
    `lse` and returns None, or it returns a new tensor like `out`."""
    path = os.environ.get("COOKBOOK_FA3_LIBRARY")
    return from_library(path, q, k, v, out, lse, causal) if path else from_package(q, k, v, causal)


def from_library(path, q, k, v, out, lse, causal):
    import torch
    if q.dtype != torch.bfloat16:
        return "the library takes bf16 only"
    if q.shape[1] == 1:
        return "the function has no split kernels, which decode needs"
    try:
        forward = ctypes.CDLL(path).fa3_forward
    except (OSError, AttributeError) as error:
        return f"COOKBOOK_FA3_LIBRARY={path}: {error}"
    batch, seq_q, heads_q, dim = q.shape
    shape = (batch, heads_q, k.shape[2], seq_q, k.shape[1], dim, int(causal))
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (q, k, v, out, lse)]

    def call():
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        status = forward(*pointers, *shape, ctypes.c_float(1 / math.sqrt(dim)), 0, None, stream)
        if status:
            raise RuntimeError(f"fa3_forward returned {status}")

    return call


def from_package(q, k, v, causal):
    try:
        from flash_attn_interface import flash_attn_func
    except ImportError:
        return "not installed"

    def call():
        result = flash_attn_func(q, k, v, causal=causal)
        return result[0] if isinstance(result, tuple) else result

    return call
