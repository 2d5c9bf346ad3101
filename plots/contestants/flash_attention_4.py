# SPDX-License-Identifier: MIT
"""FlashAttention-4 (CuTe DSL), where the package flash-attn-4 is installed. It compiles each configuration at its first
call, for a few seconds."""
import importlib.metadata

NAME = "FlashAttention-4"


def version():
    """What the results say of it; None where there is none."""
    try:
        import flash_attn.cute.interface  # noqa: F401
        return importlib.metadata.version("flash-attn-4")
    except ImportError:
        return None


def forward_function():
    """The package's function, or the reason why there is none."""
    from . import why_not
    try:
        from flash_attn.cute.interface import flash_attn_func
    except Exception as error:
        return why_not(error, "flash_attn", "flash-attn-4")
    return flash_attn_func


def output(function, q, k, v, causal):
    result = function(q, k, v, causal=causal)
    return result[0] if isinstance(result, (tuple, list)) else result


def make(q, k, v, causal):
    """A callable that launches on torch's current stream and returns a new tensor like q, or the reason why there is
    none. q, k, v: (batch, seq, heads, head_dim)."""
    function = forward_function()
    return function if isinstance(function, str) else lambda: output(function, q, k, v, causal)


def make_backward(q, k, v, d_o, causal):
    """As make; the callable returns (dq, dk, dv), of a forward pass that has been run here. Its time includes what
    autograd launches: nothing but the package's kernels."""
    import torch
    function = forward_function()
    if isinstance(function, str):
        return function
    q, k, v = (tensor.detach().requires_grad_() for tensor in (q, k, v))
    o = output(function, q, k, v, causal)
    return lambda: torch.autograd.grad(o, (q, k, v), d_o, retain_graph=True)
