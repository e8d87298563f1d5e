# SPDX-License-Identifier: Apache-2.0
"""Statistics without NaN, weighted means, histograms and sets of values."""
from __future__ import annotations

from typing import Any

from . import _core
from ._arrays import tensor
from ._common import Axis, Tensor, _axis_of, _is_integer, _of
from ._elements import isnan
from ._reductions import _averaged, all, max, mean, min, sum

__all__ = [
    "nansum", "nanmean", "nanmax", "nanmin", "ptp", "average", "unique", "histc", "bincount",
]


def nansum(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The sum of the elements that are not NaN."""
    x = _of(x)
    return sum(_core.select(isnan(x), 0, x), axis, keepdims=keepdims)


def nanmean(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The mean of the elements that are not NaN."""
    x = _averaged(_of(x), None)
    return nansum(x, axis, keepdims=keepdims) / _core.cast(sum(~isnan(x), axis, keepdims=keepdims), x.dtype)


def nanmax(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The largest of the elements that are not NaN; NaN where there is none."""
    x = _of(x)
    y = max(_core.select(isnan(x), float("-inf"), x), axis, keepdims=keepdims) if not _is_integer(x) else max(x, axis, keepdims=keepdims)
    return y if _is_integer(x) else _core.select(all(isnan(x), axis, keepdims=keepdims), float("nan"), y)


def nanmin(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The smallest of the elements that are not NaN; NaN where there is none."""
    x = _of(x)
    return -nanmax(-x, axis, keepdims=keepdims)


def ptp(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The largest minus the smallest element."""
    return max(x, axis, keepdims=keepdims) - min(x, axis, keepdims=keepdims)


def average(x: Any, axis: Axis = None, weights: Any = None) -> Tensor:
    """The mean, with weights of the shape of x or, along one axis, of that axis."""
    x = _averaged(_of(x), None)
    if weights is None:
        return mean(x, axis)
    w = _core.cast(_of(weights), x.dtype)
    if w.shape != x.shape and isinstance(axis, int) and w.ndim == 1:
        w = _core.reshape(w, [w.shape[0] if k == _axis_of(x, axis, "average") else 1 for k in range(x.ndim)])
    w = _core.broadcast_to(w, x.shape)
    return sum(x * w, axis) / sum(w, axis)


def unique(x: Any, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """The values that occur, ascending; with return_inverse the index of each element's value, with return_counts how often
    each occurs, i64, in this order.  NaNs count as one value, as in NumPy.  It reads their number."""
    x = _of(x)
    found = list(_core.unique(x, x.size))
    for k, wanted in ((2, return_counts), (1, return_inverse)):
        if not wanted:
            del found[k]  # what nothing refers to is not computed
    _core.eval(*found)
    n = int(found.pop().item())
    values, *rest = found
    inverse = rest[:1] if return_inverse else []
    counts = [_core.slice(t, 0, 0, n) for t in rest[len(inverse):]]
    values = _core.slice(values, 0, 0, n)
    if not _is_integer(x) and n > 1 and bool(isnan(_core.slice(values, 0, n - 2, n - 1)).item()):
        first = int(sum(~isnan(values)).item())  # the first NaN
        counts = [_core.concat([_core.slice(c, 0, 0, first), _core.sum(_core.slice(c, 0, first, n), 0, keepdims=True)], 0) for c in counts]
        values, inverse = _core.slice(values, 0, 0, first + 1), [_core.min(i, first) for i in inverse]
    return (values, *inverse, *counts) if return_inverse or return_counts else values


def histc(x: Any, bins: int = 100, min: float = 0, max: float = 0, *, weight: Any = None) -> Tensor:
    """How many elements are in each of `bins` intervals of equal width from min to max, in the dtype of x; with weight, of the
    shape of x, the sum of their weights.  Where min and max are equal: from the smallest to the largest element, which are read."""
    x = _of(x)
    if min == max and x.size:
        min, max = float(_core.reduce_min(x).item()), float(_core.reduce_max(x).item())
    if min == max:
        min, max = min - 1, max + 1
    if bins < 1 or not min < max:
        raise ValueError(f"histc: {bins} bins from {min} to {max}, for x {list(x.shape)}: one bin at least, and min below max")
    if weight is None:
        return _core.cast(_core.histogram(x, bins, min, max), x.dtype)
    return _core.histogram_weighted(x, _of(weight), bins, min, max)


def bincount(x: Any, minlength: int = 0) -> Tensor:
    """How often each whole number from 0 on occurs; i64.  It reads x, since their number depends on it."""
    import numpy

    return tensor(numpy.bincount(_of(x).numpy(), minlength=minlength))
