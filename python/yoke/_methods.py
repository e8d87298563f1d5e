# SPDX-License-Identifier: Apache-2.0
"""Which functions are methods of a tensor, and those that are nothing else."""
from __future__ import annotations

from typing import Any

from . import _core, _creation, _elements, _indexing, _matrices, _reductions, _shapes, _statistics

Tensor = _core.Tensor


def astype(x: Tensor, dtype: Any, copy: bool = True) -> Tensor:
    """In another dtype.  To integers: truncated, saturated, NaN becomes 0."""
    return x if x.dtype == dtype and not copy else _core.cast(x, dtype)


def to(x: Tensor, *to: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """In another dtype, on another device, or both: x.to(yoke.f64), x.to("cuda:0"), x.to("cuda", yoke.f16), x.to(device="cpu").
    A copy on another device is evaluated at once; gradients flow through it.  x itself where nothing changes."""
    from ._with import device_name

    for t in to:
        if device_name(t) is not None:
            if device is not None:
                raise TypeError(f"to: two devices, {device!r} and {t!r}")
            device = t
        elif dtype is not None:
            raise TypeError(f"to: two dtypes, {dtype!r} and {t!r}")
        else:
            dtype = t
    if device is None and dtype is None:
        raise TypeError("to: takes a dtype or the name of a device")
    if dtype is not None and x.dtype != dtype:
        x = _core.cast(x, dtype)
    if device is None:
        return x
    name = device_name(device) or str(device)
    return x if name == x.device else _core.to(x, name)


def tolist(x: Tensor) -> Any:
    """The values as numbers of Python, in nested lists.  Evaluates, and waits."""
    return (_core.cast(x, "f32") if x.dtype.name == "bf16" else x).numpy().tolist()


# Functions whose first operand is a tensor, as its methods; those of the C library keep its descriptions.
METHODS = (
    "sum prod mean var std max min any all count_nonzero argmax argmin norm median quantile cumsum cumprod diff softmax "
    "log_softmax logsumexp sort argsort topk take reshape permute transpose swapaxes moveaxis squeeze unsqueeze expand_dims "
    "flatten ravel broadcast_to expand split chunk repeat tile roll flip nonzero masked_select masked_scatter index_put clip clamp round floor ceil trunc isnan isinf "
    "pad ptp isfinite nan_to_num sign log2 log10 exp2 masked_fill isclose allclose clone detach tril triu diagonal trace dot astype to "
    "tolist"
).split()
CORE_METHODS = (
    "abs exp log log1p expm1 sqrt rsqrt recip square sin cos tanh sigmoid erf relu gelu silu reduce_max reduce_min slice "
    "gather take_along contiguous stop_grad cast bitcast keep lift assign free matmul"
).split()


def function(name: str) -> Any:
    """The function that becomes the method of a name."""
    files = (_shapes, _reductions, _creation, _elements, _indexing, _statistics, _matrices)
    return globals().get(name) or next(getattr(f, name) for f in files if name in f.__all__)
