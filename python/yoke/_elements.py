# SPDX-License-Identifier: Apache-2.0
"""Functions of elements, of masks and of sets of values, as NumPy has them."""
from __future__ import annotations

from typing import Any, Sequence

from . import _core
from ._arrays import tensor
from ._common import Axis, Tensor, _axis_of, _is_integer, _no_out, _of
from ._shapes import stack
from ._reductions import _as_index, _averaged, _floating, _truth, all, max, mean, min, sum
from ._creation import ones_like, zeros_like

__all__ = [
    "add", "subtract", "multiply", "divide", "true_divide", "div", "mod", "fmod", "negative", "absolute", "pad", "where",
    "nonzero", "clip", "clamp", "round", "floor", "ceil", "trunc", "isnan", "isinf", "isfinite", "nan_to_num", "sign", "log2",
    "log10", "exp2", "power", "float_power", "logical_and", "logical_or", "logical_xor", "logical_not", "masked_fill",
    "masked_select", "masked_scatter", "index_put", "bucketize", "isclose", "allclose", "array_equal", "clone", "detach", "tan",
    "sinh", "cosh", "cbrt", "hypot", "logaddexp", "deg2rad", "rad2deg", "nansum", "nanmean", "nanmax", "nanmin", "ptp",
    "average", "searchsorted", "unique", "histc", "bincount", "argwhere", "take_along_axis", "copy",
]


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """x where the condition is true (or not 0), else y; all broadcast, dtypes of x and y are promoted.  With the condition
    alone: nonzero."""
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ValueError("where: takes x and y, or the condition alone")
    if not isinstance(x, Tensor) and not isinstance(y, Tensor) and not (type(x) is float and type(y) is float):
        x = _of(x)
    return _core.where(condition if isinstance(condition, Tensor) else _of(condition), x, y)


def _count(mask: Tensor) -> int:
    """How many elements are true; it reads that."""
    return int(_core.nonzero(mask, 0)[1].item())


def nonzero(x: Any) -> tuple[Tensor, ...]:
    """The indices of the elements that are not 0, an i64 tensor for each axis.  It reads their number."""
    x = _truth(_of(x))
    found, _ = _core.nonzero(x, _count(x))
    return tuple(_core.reshape(_core.slice(found, 0, k, k + 1), (-1,)) for k in range(x.ndim)) if found.size else \
        tuple(_core.full("i64", (0,), 0) for _ in range(x.ndim))


def masked_select(x: Any, mask: Any) -> Tensor:
    """The elements where the mask is true, in row-major order; x and mask broadcast.  It reads their number."""
    import numpy

    x, m = _of(x), _truth(_of(mask))
    if m.shape != x.shape:
        try:
            m = _core.broadcast_to(m, numpy.broadcast_shapes(x.shape, m.shape))
        except ValueError:
            raise ValueError(f"masked_select: x {list(x.shape)} and mask {list(m.shape)} do not broadcast") from None
    return _core.masked_select(x, m, _count(m))[0]


def masked_scatter(x: Any, mask: Any, source: Any) -> Tensor:
    """x with the elements of source, in row-major order, where the mask is true."""
    x = _of(x)
    return _core.masked_scatter(x, _truth(_of(mask)), _core.cast(_of(source), x.dtype))


def index_put(x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Tensor:
    """x with values at the indices of its first axes, one array for each, which broadcast; the last of several values at an
    index wins, or all are added.  Indices below 0 count from the end.  A mask of bool means the indices of its true elements,
    and is read for that."""
    x = _of(x)
    at: list[Any] = []
    for i in map(_as_index, indices):
        if isinstance(i, Tensor) and i.dtype.name == "bool":
            if i.shape != x.shape[len(at):len(at) + i.ndim]:
                raise IndexError(f"index_put: a mask {list(i.shape)} for axes {len(at)} .. of x {list(x.shape)}")
            at += nonzero(i)
        else:
            at.append(i)
    if len(at) > x.ndim:
        raise IndexError(f"index_put: {len(at)} indices for x {list(x.shape)}, which has {x.ndim} axes")
    at = [_core.select(i < 0, i + n, i) if isinstance(i, Tensor) else tensor(i % n if -n <= i < n else i) for i, n in zip(at, x.shape)]
    return _core.index_put(x, at, values if not isinstance(values, Tensor) or values.dtype is x.dtype else _core.cast(values, x.dtype), accumulate)


def bucketize(x: Any, boundaries: Any, right: bool = False) -> Tensor:
    """The interval of each element between ascending boundaries [N], 0 .. N; i64.  right: the intervals begin with their
    lower boundary, as in PyTorch."""
    return searchsorted(boundaries, x, right)


def clip(x: Any, min: Any = None, max: Any = None, *, a_min: Any = None, a_max: Any = None, out: None = None) -> Tensor:
    """No less than min, no more than max; either may be None.  NaN stays."""
    _no_out("clip", out)
    return _core.clamp(x, a_min if min is None else min, a_max if max is None else max)


def clamp(x: Any, lo: Any = None, hi: Any = None, *, min: Any = None, max: Any = None) -> Tensor:
    """No less than lo, no more than hi; either may be None.  NaN stays.  min and max are PyTorch's names of them."""
    return _core.clamp(x, min if lo is None else lo, max if hi is None else hi)


def round(x: Any, decimals: int = 0, *, out: None = None) -> Tensor:
    """Rounded to so many decimals, half to even."""
    _no_out("round", out)
    y: Tensor = _of(x)
    if _is_integer(y):
        return y if decimals >= 0 else _core.cast(round(_core.cast(y, "f64"), decimals), y.dtype)
    if decimals == 0:
        return _core.round(y)
    scale = 10.0 ** abs(decimals)
    return _core.round(y * scale) / scale if decimals > 0 else _core.round(y / scale) * scale


def floor(x: Any) -> Tensor:
    """The largest whole number that is not above; integers stay."""
    return _of(x) if _is_integer(_of(x)) else _core.floor(x)


def ceil(x: Any) -> Tensor:
    """The smallest whole number that is not below; integers stay."""
    return _of(x) if _is_integer(_of(x)) else _core.ceil(x)


def trunc(x: Any) -> Tensor:
    """Rounded towards 0; integers stay."""
    return _of(x) if _is_integer(_of(x)) else _core.sign(x) * _core.floor(_core.abs(x))


def isnan(x: Any) -> Tensor:
    """Is the element NaN?"""
    y: Tensor = _of(x)
    return y != y


def isinf(x: Any) -> Tensor:
    """Is the element infinite?"""
    y: Tensor = _of(x)
    if _is_integer(y):
        return zeros_like(y, "bool")
    return (y == float("inf")) | (y == float("-inf"))


def isfinite(x: Any) -> Tensor:
    """Is the element neither infinite nor NaN?"""
    x = _of(x)
    return ones_like(x, "bool") if _is_integer(x) else _core.isfinite(x)


def nan_to_num(x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """With numbers for NaN and infinities; by default 0 and the largest finite ones."""
    z: Tensor = _of(x)
    if _is_integer(z):
        return z
    top = {"f16": 65504.0, "bf16": 3.3895313892515355e38, "f64": 1.7976931348623157e308}.get(z.dtype.name, 3.4028234663852886e38)
    y = _core.select(z == float("inf"), top if posinf is None else posinf, z)
    y = _core.select(z == float("-inf"), -top if neginf is None else neginf, y)
    return _core.select(isnan(z), nan, y)


def sign(x: Any) -> Tensor:
    """-1, 0 or 1; NaN of NaN."""
    return _core.sign(_of(x))


def add(x: Any, y: Any) -> Tensor:
    """x + y, with broadcasting; dtypes are promoted."""
    return _core.add(x, y)


def subtract(x: Any, y: Any) -> Tensor:
    """x - y, with broadcasting; dtypes are promoted."""
    return _core.sub(x, y)


def multiply(x: Any, y: Any) -> Tensor:
    """x * y, with broadcasting; dtypes are promoted."""
    return _core.mul(x, y)


def divide(x: Any, y: Any) -> Tensor:
    """x / y, with broadcasting; of integers f32."""
    return _of(x) / y if isinstance(x, Tensor) or not isinstance(y, Tensor) else x / y  # type: ignore[no-any-return]


true_divide = divide


def div(x: Any, y: Any, *, rounding_mode: str | None = None) -> Tensor:
    """x / y, of integers f32; rounded "floor" or "trunc" if rounding_mode says so, as in PyTorch."""
    if rounding_mode is None:
        return divide(x, y)
    if rounding_mode not in ("floor", "trunc"):
        raise ValueError(f"div: rounding_mode is 'floor', 'trunc' or None, not {rounding_mode!r}")
    if rounding_mode == "floor":
        return _core.floor_div(x, y)
    q = _core.div(x, y)
    return q if _is_integer(q) else trunc(q)


def mod(x: Any, y: Any) -> Tensor:
    """The remainder of floor division, with the sign of y, as Python's % and NumPy's mod; fmod has the sign of x."""
    return _core.remainder(x, y)


def fmod(x: Any, y: Any) -> Tensor:
    """The remainder of truncated division, with the sign of x, as C's %."""
    return _core.mod(x, y)


def negative(x: Any) -> Tensor:
    """-x."""
    return _core.neg(x)


def absolute(x: Any) -> Tensor:
    """|x|."""
    return _core.abs(x)


def pad(x: Any, lo: Any, hi: Any = None, value: float = 0.0) -> Tensor:
    """A value added before and after each axis.  lo and hi: how many elements, for each axis, before and after; or, as NumPy's
    pad has it, lo alone: a number, a pair (before, after), or a pair for each axis."""
    x = _of(x)
    if hi is None:
        import numpy

        pairs = numpy.broadcast_to(numpy.asarray(lo), (x.ndim, 2)) if x.ndim else numpy.zeros((0, 2), int)
        lo, hi = [int(a) for a, _ in pairs], [int(b) for _, b in pairs]
    return _core.pad(x, lo, hi, value)


def log2(x: Any) -> Tensor:
    """The logarithm to base 2."""
    return _core.log(x) * 1.4426950408889634


def log10(x: Any) -> Tensor:
    """The logarithm to base 10."""
    return _core.log(x) * 0.4342944819032518


def exp2(x: Any) -> Tensor:
    """2 to the power x."""
    return _core.exp(_floating(_of(x)) * 0.6931471805599453)


def power(x: Any, y: Any) -> Tensor:
    """x to the power y."""
    base, exponent = _of(x), y if isinstance(y, (int, float)) else _of(y)
    return base ** exponent


def float_power(x: Any, y: Any) -> Tensor:
    """x to the power y, in f64."""
    return _core.cast(_of(x), "f64") ** (_core.cast(y, "f64") if isinstance(y, Tensor) else y)


def logical_and(x: Any, y: Any) -> Tensor:
    """Are both true, or not 0?"""
    return _truth(_of(x)) & _truth(_of(y))


def logical_or(x: Any, y: Any) -> Tensor:
    """Is either true, or not 0?"""
    return _truth(_of(x)) | _truth(_of(y))


def logical_xor(x: Any, y: Any) -> Tensor:
    """Is one true, or not 0, and the other not?"""
    return _truth(_of(x)) ^ _truth(_of(y))


def logical_not(x: Any) -> Tensor:
    """Is it false, or 0?"""
    return ~_truth(_of(x))


def masked_fill(x: Any, mask: Any, value: Any) -> Tensor:
    """The value where the mask is true, else x."""
    return _core.select(_truth(_of(mask)), value, x)


def isclose(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """|x - y| <= atol + rtol |y|; infinities of one sign are close, NaNs if equal_nan says so."""
    x, y = _of(x), _of(y)
    both = _core.isfinite(_floating(x)) & _core.isfinite(_floating(y))
    a, b = _averaged(x, "f64"), _averaged(y, "f64")
    close = _core.select(both, _core.abs(a - b) <= _core.abs(b) * rtol + atol, a == b)
    return close | (isnan(x) & isnan(y)) if equal_nan else close


def allclose(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Are all elements close (isclose)?  It reads them."""
    return bool(all(isclose(x, y, rtol, atol, equal_nan)))


def array_equal(x: Any, y: Any) -> bool:
    """Have both one shape and equal elements?  It reads them."""
    x, y = _of(x), _of(y)
    return x.shape == y.shape and bool(all(x == y))


def clone(x: Any) -> Tensor:
    """A value of its own with the same elements, through which gradients pass; of a variable its current version."""
    x = _of(x)
    return _core.reshape(x, x.shape)


copy = clone


def detach(x: Any) -> Tensor:
    """The same elements, through which no gradient passes."""
    return _core.stop_grad(x)


def tan(x: Any) -> Tensor:
    """The tangent."""
    return _core.sin(x) / _core.cos(x)


def sinh(x: Any) -> Tensor:
    """The hyperbolic sine."""
    x = _floating(_of(x))
    return (_core.expm1(x) - _core.expm1(-x)) * 0.5


def cosh(x: Any) -> Tensor:
    """The hyperbolic cosine."""
    x = _floating(_of(x))
    return (_core.exp(x) + _core.exp(-x)) * 0.5


def cbrt(x: Any) -> Tensor:
    """The cube root."""
    x = _floating(_of(x))
    return _core.sign(x) * _core.abs(x) ** (1 / 3)


def hypot(x: Any, y: Any) -> Tensor:
    """The root of x^2 + y^2, without overflow."""
    return _core.hypot(_floating(_of(x)), _floating(_of(y)))


def logaddexp(x: Any, y: Any) -> Tensor:
    """The logarithm of exp(x) + exp(y), without overflow."""
    a, b = _floating(_of(x)), _floating(_of(y))
    large = _core.max(a, b)
    return _core.select(isinf(large), large, large + _core.log1p(_core.exp(-_core.abs(a - b))))


def deg2rad(x: Any) -> Tensor:
    """Degrees as radians."""
    return _floating(_of(x)) * 0.017453292519943295


def rad2deg(x: Any) -> Tensor:
    """Radians as degrees."""
    return _floating(_of(x)) * 57.29577951308232


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


def searchsorted(sorted: Any, v: Any, right: bool | str = False, *, side: str | None = None) -> Tensor:
    """Where the elements of v belong in a vector sorted along its last axis: how many of its elements are below each, or with
    right (side="right") not above it; i64.  sorted may have rows of its own for each row of v."""
    if isinstance(right, str):
        side = right
        right = False
    if side not in (None, "left", "right"):
        raise ValueError(f"searchsorted: side is 'left' or 'right', not {side!r}")
    return _core.searchsorted(_of(sorted), _of(v), bool(right or side == "right"))


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


def argwhere(x: Any) -> Tensor:
    """The indices of the elements that are not 0, i64 [N,axes].  It reads x, since their number depends on it."""
    return stack(nonzero(x), 1)


def take_along_axis(x: Any, indices: Any, axis: int) -> Tensor:
    """y[..,i,..] = x[..,indices[..,i,..],..] along an axis."""
    x, i = _of(x), _of(indices)
    return _core.take_along(x, _core.select(i < 0, i + x.shape[axis], i), axis)
