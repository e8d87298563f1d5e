# SPDX-License-Identifier: Apache-2.0
"""Statistics without NaN, weighted means, histograms and sets of values."""
from __future__ import annotations

import builtins
from typing import Any

from . import _core
from ._arrays import tensor
from ._common import Axis, Tensor, _axis_of, _is_integer, _of, _one
from ._elements import isnan
from ._reductions import _averaged, _floating, all, diff, max, mean, min, norm, prod, sum

__all__ = [
    "nansum", "nanmean", "nanmax", "nanmin", "ptp", "average", "unique", "histc", "bincount", "nanprod", "nanvar", "nanstd",
    "nanquantile", "nanmedian", "kthvalue", "dist", "corrcoef", "trapezoid", "trapz",
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


def nanprod(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The product of the elements that are not NaN."""
    x = _of(x)
    return prod(_core.select(isnan(x), 1, x), axis, keepdims=keepdims)


def nanvar(x: Any, axis: Axis = None, *, ddof: float = 0, keepdims: bool = False) -> Tensor:
    """The variance of the elements that are not NaN: the sum of squared deviations from their mean, over their number - ddof."""
    x = _averaged(_of(x), None)
    apart = nansum(_core.square(x - nanmean(x, axis, keepdims=True)), axis, keepdims=keepdims)
    n = _core.cast(sum(~isnan(x), axis, keepdims=keepdims), x.dtype)
    return _core.select(n > ddof, apart / (n - ddof), float("nan"))


def nanstd(x: Any, axis: Axis = None, *, ddof: float = 0, keepdims: bool = False) -> Tensor:
    """The standard deviation of the elements that are not NaN, the root of nanvar."""
    return _core.sqrt(nanvar(x, axis, ddof=ddof, keepdims=keepdims))


def nanquantile(x: Any, q: float, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The value below which a fraction q of the elements that are not NaN lies, linear between two of them; NaN if there is none."""
    if not 0 <= q <= 1:
        raise ValueError(f"nanquantile: q is {q}; it is a fraction, 0 to 1")
    x = _averaged(_of(x), None)
    flat, at = (_core.reshape(x, (-1,)), 0) if axis is None else (x, _axis_of(x, axis, "nanquantile"))
    n = sum(~isnan(flat), at, keepdims=True)
    ascending = _core.sort(flat, at)[0]
    place = _core.cast(_core.max(n - 1, 0), "f64") * q
    low = _core.floor(place)
    ends = [_core.take_along(ascending, _core.cast(p, "i64"), at) for p in (low, _core.ceil(place))]
    y = _core.select(n > 0, ends[0] + (ends[1] - ends[0]) * _core.cast(place - low, x.dtype), float("nan"))
    if not keepdims:
        return _core.reshape(y, flat.shape[:at] + flat.shape[at + 1:])
    return _core.reshape(y, (1,) * x.ndim) if axis is None else y


def nanmedian(x: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The median of the elements that are not NaN; between two, their mean, as in NumPy."""
    return nanquantile(x, 0.5, axis, keepdims=keepdims)


def kthvalue(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The k-th smallest element along an axis, k from 1 on, and its index: (values, indices)."""
    x = _of(x)
    at = _axis_of(x, dim, "kthvalue")
    if not 1 <= k <= x.shape[at]:
        raise ValueError(f"kthvalue: k is {k}, and axis {at} of x {list(x.shape)} has {x.shape[at]} elements")
    found = tuple(_core.slice(t, at, k - 1, k) for t in _core.sort(x, at))
    values, indices = found if keepdim else tuple(_core.reshape(t, x.shape[:at] + x.shape[at + 1:]) for t in found)
    return values, indices


def dist(x: Any, y: Any, p: float = 2.0) -> Tensor:
    """The norm of x - y (norm)."""
    return norm(_of(x) - _of(y), p)


def corrcoef(x: Any) -> Tensor:
    """Pearson's correlations of the rows of x [V,N]: N observations of V variables -> [V,V]."""
    return _core.corr(_floating(_of(x)))


def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1, *, dim: int | None = None) -> Tensor:
    """The integral along an axis by trapezoids, between points x [N], or of the shape of y, or dx apart."""
    y = _floating(_of(y))
    at = _axis_of(y, _one("trapezoid", axis, dim, -1), "trapezoid")
    n = y.shape[at]
    pairs = _core.slice(y, at, builtins.min(1, n), n) + _core.slice(y, at, 0, builtins.max(n - 1, 0))
    if x is None:
        return sum(pairs, at) * (dx * 0.5)
    x = _of(x)
    apart = _core.reshape(diff(x), [-1 if k == at else 1 for k in range(y.ndim)]) if x.ndim == 1 else diff(x, 1, at)
    return sum(pairs * apart, at) * 0.5


trapz = trapezoid
