# SPDX-License-Identifier: Apache-2.0
"""Which functions are methods of a tensor, and those that are nothing else."""
from __future__ import annotations

from typing import Any

from ._arrays import tensor
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


def where(x: Tensor, condition: Any, other: Any) -> Tensor:
    """x where the condition is true, else other."""
    return _indexing.where(condition, x, other)  # type: ignore[no-any-return]


def view_as(x: Tensor, other: Tensor) -> Tensor:
    """The same elements in the shape of other."""
    return _core.reshape(x, other.shape)


reshape_as = view_as


def expand_as(x: Tensor, other: Tensor) -> Tensor:
    """Broadcast to the shape of other."""
    return _core.broadcast_to(x, other.shape)


def type_as(x: Tensor, other: Tensor) -> Tensor:
    """In the dtype of other."""
    return astype(x, other.dtype, False)


def new_full(x: Tensor, size: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """A tensor of this shape, all equal to a number, in the dtype of x."""
    return _creation.full(size, fill_value, x.dtype if dtype is None else dtype)


def new_zeros(x: Tensor, *size: Any, dtype: Any = None) -> Tensor:
    """All 0, in the dtype of x; the shape is a tuple or several integers."""
    return _creation.zeros(*size, dtype=x.dtype if dtype is None else dtype)


def new_ones(x: Tensor, *size: Any, dtype: Any = None) -> Tensor:
    """All 1, in the dtype of x; the shape is a tuple or several integers."""
    return _creation.ones(*size, dtype=x.dtype if dtype is None else dtype)


def new_tensor(x: Tensor, data: Any, *, dtype: Any = None) -> Tensor:
    """A tensor of these values, in the dtype of x."""
    return tensor(data, x.dtype if dtype is None else dtype)


# Functions whose first operand is a tensor, as its methods; those of the C library keep its descriptions.
METHODS = (
    "sum prod mean var std max min any all count_nonzero argmax argmin norm median quantile cumsum cumprod diff softmax "
    "log_softmax logsumexp sort argsort topk take reshape permute transpose swapaxes moveaxis squeeze unsqueeze expand_dims "
    "flatten ravel broadcast_to expand split chunk repeat tile roll flip nonzero masked_select masked_scatter index_put clip clamp round floor ceil trunc isnan isinf "
    "pad ptp isfinite nan_to_num sign log2 log10 exp2 masked_fill isclose allclose clone detach tril triu diagonal trace dot astype to "
    "tolist tan sinh cosh asinh acosh atanh frac signbit sinc logit xlogy heaviside fmax fmin lerp addcmul addcdiv clamp_min "
    "clamp_max aminmax isposinf isneginf not_equal greater greater_equal less less_equal bitwise_and bitwise_or bitwise_xor "
    "bitwise_not logical_and logical_or logical_xor logical_not hypot logaddexp deg2rad rad2deg float_power subtract multiply "
    "divide negative absolute fmod reciprocal fliplr flipud where take_along_dim index_select index_add index_copy index_fill "
    "scatter scatter_reduce argwhere unique amax amin movedim swapdims t unbind narrow unflatten tensor_split rot90 "
    "repeat_interleave diag diag_embed diagflat outer inner vdot mm mv bmm addmm addmv addr baddbmm addbmm cross kron logdet nansum nanmean "
    "nanmedian nanquantile kthvalue dist corrcoef histc bincount view_as reshape_as expand_as type_as new_full new_zeros new_ones new_tensor"
).split()
CORE_METHODS = (
    "abs exp log log1p expm1 sqrt rsqrt recip square sin cos tanh sigmoid erf relu gelu silu reduce_max reduce_min slice "
    "gather take_along contiguous stop_grad cast bitcast keep lift assign free matmul eq ne lt le gt ge asin acos atan atan2 lgamma "
    "digamma erfinv copysign nextafter remainder floor_div logcumsumexp det inv"
).split()


def function(name: str) -> Any:
    """The function that becomes the method of a name."""
    files = (_shapes, _reductions, _creation, _elements, _indexing, _statistics, _matrices)
    return globals().get(name) or next(getattr(f, name) for f in files if name in f.__all__)
