# SPDX-License-Identifier: Apache-2.0
"""Reductions, and functions along an axis, as NumPy has them."""
from __future__ import annotations

import builtins
from typing import Any

from . import _core
from ._arrays import tensor
from ._common import Axis, Tensor, _axis_of, _is_integer, _no_out, _of, _one
from ._shapes import unsqueeze

__all__ = [
    "sum", "prod", "mean", "var", "std", "max", "min", "amax", "amin", "maximum", "minimum", "any", "all", "count_nonzero",
    "argmax", "argmin", "norm", "median", "quantile", "cumsum", "cumprod", "diff", "softmax", "log_softmax", "logsumexp",
    "sort", "argsort", "topk", "take",
]

# ---- reductions ----

def _counted(x: Tensor, dtype: Any) -> Tensor:
    """The operand of a sum: integers as i64, as NumPy adds them."""
    if dtype is not None:
        return _core.cast(x, dtype)
    return _core.cast(x, "i64") if _is_integer(x) and x.dtype.name != "i64" else x


def sum(x: Any, axis: Axis = None, *, dtype: Any = None, keepdims: bool = False, dim: Axis = None, keepdim: bool = False,
        out: None = None) -> Tensor:
    """The sum over an axis, several axes, or all elements.  Integers and bool are added in 64 bits (i64)."""
    _no_out("sum", out)
    return _core.sum(_counted(_of(x), dtype), _one("sum", axis, dim), keepdims=keepdims or keepdim)


def prod(x: Any, axis: Axis = None, *, dtype: Any = None, keepdims: bool = False, dim: Axis = None, keepdim: bool = False,
         out: None = None) -> Tensor:
    """The product over an axis, several axes, or all elements.  Integers and bool are multiplied in 64 bits (i64)."""
    _no_out("prod", out)
    return _core.prod(_counted(_of(x), dtype), _one("prod", axis, dim), keepdims=keepdims or keepdim)


def _averaged(x: Tensor, dtype: Any) -> Tensor:
    """The operand of a mean: integers and bool as f64, as NumPy averages them."""
    if dtype is not None:
        return _core.cast(x, dtype)
    return _core.cast(x, "f64") if _is_integer(x) else x


def mean(x: Any, axis: Axis = None, *, dtype: Any = None, keepdims: bool = False, dim: Axis = None, keepdim: bool = False,
         out: None = None) -> Tensor:
    """The mean over an axis, several axes, or all elements.  That of integers and bool is f64."""
    _no_out("mean", out)
    return _core.mean(_averaged(_of(x), dtype), _one("mean", axis, dim), keepdims=keepdims or keepdim)


def _correction(call: str, correction: float | None, ddof: float | None) -> float:
    if correction is not None and ddof is not None:
        raise TypeError(f"{call}: correction and ddof are one argument; give one of them")
    return correction if correction is not None else ddof if ddof is not None else 0


def var(x: Any, axis: Axis = None, correction: float | None = None, *, ddof: float | None = None, dtype: Any = None,
        keepdims: bool = False, dim: Axis = None, keepdim: bool = False, out: None = None) -> Tensor:
    """The variance: the sum of squared deviations from the mean, over n - correction.  By default correction is 0, as in
    NumPy; PyTorch's var has 1.  That of integers and bool is f64."""
    _no_out("var", out)
    return _core.var(_averaged(_of(x), dtype), _one("var", axis, dim), _correction("var", correction, ddof),
                     keepdims=keepdims or keepdim)


def std(x: Any, axis: Axis = None, correction: float | None = None, *, ddof: float | None = None, dtype: Any = None,
        keepdims: bool = False, dim: Axis = None, keepdim: bool = False, out: None = None) -> Tensor:
    """The standard deviation, the root of var.  By default correction is 0, as in NumPy; PyTorch's std has 1."""
    _no_out("std", out)
    return _core.std(_averaged(_of(x), dtype), _one("std", axis, dim), _correction("std", correction, ddof),
                     keepdims=keepdims or keepdim)


def _is_array(x: Any) -> bool:
    return isinstance(x, Tensor) or (hasattr(x, "__array__") and getattr(x, "ndim", 0) > 0)


def max(x: Any, axis: Any = None, *, keepdims: bool = False, dim: Axis = None, keepdim: bool = False,
        out: None = None) -> Tensor:
    """The largest element over an axis, several axes, or all; NaN if one is.  Equal ones share the gradient.
    max(x, y) of two tensors is maximum(x, y), as in PyTorch."""
    _no_out("max", out)
    if _is_array(axis):
        return _core.max(x, axis)
    return _extreme(_core.reduce_max, "max", _of(x), _one("max", axis, dim), keepdims or keepdim)


def min(x: Any, axis: Any = None, *, keepdims: bool = False, dim: Axis = None, keepdim: bool = False,
        out: None = None) -> Tensor:
    """The smallest element over an axis, several axes, or all; NaN if one is.  Equal ones share the gradient.
    min(x, y) of two tensors is minimum(x, y), as in PyTorch."""
    _no_out("min", out)
    if _is_array(axis):
        return _core.min(x, axis)
    return _extreme(_core.reduce_min, "min", _of(x), _one("min", axis, dim), keepdims or keepdim)


amax, amin = max, min


def _extreme(fn: Any, call: str, x: Tensor, axis: Any, keep: bool) -> Tensor:
    for a in () if axis is None else (axis,) if hasattr(axis, "__index__") else axis:
        _axis_of(x, a, call)
    if x.size == 0 and (axis is None or 0 in [x.shape[a] for a in ((axis,) if hasattr(axis, "__index__") else axis)]):
        raise ValueError(f"{call}: there is no {call} of no elements, {list(x.shape)}")
    if x.dtype.name == "bool":
        return _core.cast(fn(_core.cast(x, "u8"), axis, keepdims=keep), "bool")
    return fn(x, axis, keepdims=keep)  # type: ignore[no-any-return]


def maximum(x: Any, y: Any) -> Tensor:
    """The larger of two elements, with broadcasting; NaN if either is."""
    return _core.max(x, y)


def minimum(x: Any, y: Any) -> Tensor:
    """The smaller of two elements, with broadcasting; NaN if either is."""
    return _core.min(x, y)


def _truth(x: Tensor) -> Tensor:
    return x if x.dtype.name == "bool" else x != 0


def any(x: Any, axis: Axis = None, *, keepdims: bool = False, dim: Axis = None, keepdim: bool = False,
        out: None = None) -> Tensor:
    """Is any element true, or not 0?"""
    _no_out("any", out)
    return _core.any(_truth(_of(x)), _one("any", axis, dim), keepdims=keepdims or keepdim)


def all(x: Any, axis: Axis = None, *, keepdims: bool = False, dim: Axis = None, keepdim: bool = False,
        out: None = None) -> Tensor:
    """Are all elements true, or not 0?"""
    _no_out("all", out)
    return _core.all(_truth(_of(x)), _one("all", axis, dim), keepdims=keepdims or keepdim)


def count_nonzero(x: Any, axis: Axis = None, *, keepdims: bool = False, dim: Axis = None) -> Tensor:
    """How many elements are not 0, i64."""
    return sum(_truth(_of(x)), axis, keepdims=keepdims, dim=dim)


def _arg(fn: Any, call: str, x: Any, axis: Any, keep: bool, out: Any) -> Tensor:
    _no_out(call, out)
    x = _of(x)
    x = _core.cast(x, "u8") if x.dtype.name == "bool" else x
    if axis is None:
        y: Tensor = fn(_core.reshape(x, (-1,)), 0)
        return _core.reshape(y, (1,) * x.ndim) if keep else y
    y = fn(x, axis)
    return unsqueeze(y, _axis_of(x, axis, call)) if keep else y


def argmax(x: Any, axis: int | None = None, *, keepdims: bool = False, dim: int | None = None, keepdim: bool = False,
           out: None = None) -> Tensor:
    """The index of the first largest element along an axis, or, without one, among all in row-major order; i64."""
    return _arg(_core.argmax, "argmax", x, _one("argmax", axis, dim), keepdims or keepdim, out)


def argmin(x: Any, axis: int | None = None, *, keepdims: bool = False, dim: int | None = None, keepdim: bool = False,
           out: None = None) -> Tensor:
    """The index of the first smallest element along an axis, or, without one, among all in row-major order; i64."""
    return _arg(_core.argmin, "argmin", x, _one("argmin", axis, dim), keepdims or keepdim, out)


def norm(x: Any, p: float = 2.0, axis: Axis = None, *, keepdims: bool = False, dim: Axis = None, keepdim: bool = False) -> Tensor:
    """(sum |x|^p)^(1/p) over an axis, several axes, or all elements; p may be infinite, or 0: how many are not 0."""
    return _core.norm(_floating(_of(x)), p, _one("norm", axis, dim), keepdims=keepdims or keepdim)


def _floating(x: Tensor) -> Tensor:
    return _core.cast(x, "f32") if _is_integer(x) else x


def median(x: Any, axis: int | None = None, *, keepdims: bool = False, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The median along an axis, or of all elements; between two, their mean, as in NumPy."""
    return quantile(x, 0.5, _one("median", axis, dim), keepdims=keepdims or keepdim)


_QUANTILE_MODES = {"linear": 0, "lower": 1, "higher": 2, "midpoint": 3, "nearest": 4}


def quantile(x: Any, q: Any, axis: int | None = None, *, method: str = "linear", keepdims: bool = False, dim: int | None = None,
             keepdim: bool = False, interpolation: str | None = None) -> Tensor:
    """The value below which a fraction q of the elements lies; between two of them by method: linear, lower, higher, midpoint
    or nearest (PyTorch's interpolation).  q: a number, or [Q], which gives [Q,..]."""
    x, axis, method = _averaged(_of(x), None), _one("quantile", axis, dim), interpolation or method
    if method not in _QUANTILE_MODES:
        raise ValueError(f"quantile: method {method!r} is none of {', '.join(_QUANTILE_MODES)}")
    if isinstance(q, (int, float)):
        if not 0 <= q <= 1:
            raise ValueError(f"quantile: q is {q}, for x {list(x.shape)}; it is a fraction, 0 to 1")
    else:
        q = _core.cast(q, x.dtype) if isinstance(q, Tensor) else tensor(q, "f64")
    flat = _core.reshape(x, (-1,)) if axis is None else x
    at = 0 if axis is None else _axis_of(x, axis, "quantile")
    y = _core.quantile_by(flat, q, at, _QUANTILE_MODES[method])
    if keepdims or keepdim:
        first = 1 if isinstance(q, Tensor) and q.ndim else 0
        y = _core.reshape(y, y.shape[:first] + ((1,) * x.ndim if axis is None else x.shape[:at] + (1,) + x.shape[at + 1:]))
    return y


# ---- along an axis ----

def _running(fn: Any, call: str, x: Any, axis: Any, dtype: Any, reverse: bool, out: Any) -> Tensor:
    _no_out(call, out)
    x = _counted(_of(x), dtype)
    if axis is None:
        x, axis = _core.reshape(x, (-1,)), 0
    return fn(x, axis, reverse)  # type: ignore[no-any-return]


def cumsum(x: Any, axis: int | None = None, reverse: bool = False, *, dtype: Any = None, dim: int | None = None,
           out: None = None) -> Tensor:
    """Running sums along an axis, or, without one, of all elements in row-major order; with reverse from the end."""
    return _running(_core.cumsum, "cumsum", x, _one("cumsum", axis, dim), dtype, reverse, out)


def cumprod(x: Any, axis: int | None = None, reverse: bool = False, *, dtype: Any = None, dim: int | None = None,
            out: None = None) -> Tensor:
    """Running products along an axis, or, without one, of all elements in row-major order; with reverse from the end."""
    return _running(_core.cumprod, "cumprod", x, _one("cumprod", axis, dim), dtype, reverse, out)


def diff(x: Any, n: int = 1, axis: int = -1, *, dim: int | None = None) -> Tensor:
    """Differences of neighbours along an axis, n times."""
    y = _of(x)
    at = _axis_of(y, _one("diff", axis, dim, -1), "diff")
    for _ in range(n):
        k = y.shape[at]
        y = _core.slice(y, at, builtins.min(1, k), k) - _core.slice(y, at, 0, builtins.max(0, k - 1))
    return y


def softmax(x: Any, axis: int = -1, *, dim: int | None = None) -> Tensor:
    """exp(x) over its sum along an axis."""
    return _core.softmax(_of(x), _one("softmax", axis, dim, -1))


def log_softmax(x: Any, axis: int = -1, *, dim: int | None = None) -> Tensor:
    """The logarithm of softmax, computed without overflow."""
    return _core.log_softmax(_of(x), _one("log_softmax", axis, dim, -1))


def logsumexp(x: Any, axis: int = -1, *, keepdims: bool = False, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The logarithm of the sum of exp along an axis, without overflow."""
    x, at = _of(x), _one("logsumexp", axis, dim, -1)
    y = _core.logsumexp(x, at)
    return unsqueeze(y, _axis_of(x, at, "logsumexp")) if keepdims or keepdim else y


def sort(x: Any, axis: int = -1, descending: bool = False, *, dim: int | None = None) -> tuple[Tensor, Tensor]:
    """Sorted along an axis, stable, with NaN last: (values, indices), as in PyTorch."""
    return _core.sort(_of(x), _one("sort", axis, dim, -1), descending)


def argsort(x: Any, axis: int = -1, descending: bool = False, *, dim: int | None = None) -> Tensor:
    """The indices that sort along an axis, stable; i64."""
    return sort(x, axis, descending, dim=dim)[1]


def topk(x: Any, k: int, axis: int = -1, largest: bool = True, *, dim: int | None = None) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) along an axis, in order: (values, indices)."""
    return _core.topk(_of(x), k, _one("topk", axis, dim, -1), largest)


def take(x: Any, indices: Any, axis: int | None = None) -> Tensor:
    """The elements of these indices along an axis, or, without one, among all in row-major order."""
    y: Tensor = _of(x)
    if axis is None:
        return _core.reshape(y, (-1,))[_as_index(indices)]
    return y[(slice(None),) * _axis_of(y, axis, "take") + (_as_index(indices),)]


def _as_index(indices: Any) -> Any:
    return indices if isinstance(indices, (Tensor, int)) else tensor(indices)
