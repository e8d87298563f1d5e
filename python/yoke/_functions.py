# SPDX-License-Identifier: Apache-2.0
"""Functions as NumPy has them, over those of the C library: names, defaults and dtypes of results are NumPy's.

Where PyTorch has another word for an argument (dim, keepdim), it is taken as well."""
from __future__ import annotations

import builtins
from typing import Any, Sequence

from . import _core
from ._arrays import tensor
from ._record import dtype as _dtype

Tensor = _core.Tensor
__all__ = [
    "add", "subtract", "multiply", "divide", "true_divide", "div", "mod", "fmod", "negative", "absolute", "pad", "sum",
    "prod", "mean", "var", "std", "max", "min", "amax", "amin", "maximum", "minimum", "any", "all", "count_nonzero",
    "argmax", "argmin", "norm", "median", "quantile", "cumsum", "cumprod", "diff", "softmax", "log_softmax", "logsumexp",
    "sort", "argsort", "topk", "take", "reshape", "permute", "transpose", "swapaxes", "moveaxis", "squeeze", "unsqueeze",
    "expand_dims", "flatten", "ravel", "broadcast_to", "expand", "concat", "concatenate", "cat", "stack", "vstack",
    "hstack", "split", "chunk", "repeat", "repeat_interleave", "tile", "roll", "flip", "where", "nonzero", "clip", "clamp", "round", "floor",
    "ceil", "trunc", "isnan", "isinf", "isfinite", "nan_to_num", "sign", "log2", "log10", "exp2", "power", "float_power",
    "logical_and", "logical_or", "logical_xor", "logical_not", "masked_fill", "masked_select", "masked_scatter", "index_put", "bucketize", "isclose", "allclose", "array_equal", "clone",
    "detach", "zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "eye", "arange", "linspace", "logspace",
    "meshgrid", "one_hot", "tril", "triu", "diagonal", "diag", "trace", "dot", "outer", "einsum", "tan", "sinh", "cosh",
    "cbrt", "hypot", "logaddexp", "deg2rad", "rad2deg", "nansum", "nanmean", "nanmax", "nanmin", "ptp", "average",
    "searchsorted", "unique", "histc", "bincount", "argwhere", "take_along_axis", "tensordot", "inner", "vdot", "kron",
    "array_split", "column_stack", "append", "atleast_1d", "atleast_2d", "fliplr", "flipud", "copy", "empty", "empty_like",
    "identity", "resolvent", "resolvent_corner", "resolvent_log_det", "interpolate", "grid_sample", "affine_grid",
    "embedding_bag", "unfold", "fold", "max_unpool",
]
Axis = int | Sequence[int] | None

_INTEGERS = ("i8", "u8", "i32", "i64", "bool")


def _of(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else tensor(x)


def _is_integer(x: Tensor) -> bool:
    return x.dtype.name in _INTEGERS


def _one(call: str, axis: Any, dim: Any, default: Any = None) -> Any:
    """An axis by either of its names."""
    if dim is None:
        return default if axis is None else axis
    if axis is not None and axis is not default:
        raise TypeError(f"{call}: axis and dim are one argument; give one of them")
    return dim


def _no_out(call: str, out: Any) -> None:
    if out is not None:
        raise TypeError(f"{call}: tensors are not written into; out= is not possible")


def _axis_of(x: Tensor, axis: Any, call: str) -> int:
    try:
        a = int(axis.__index__())
    except AttributeError:
        raise TypeError(f"{call}: an axis is an integer, got {axis!r}") from None
    if not -x.ndim <= a < builtins.max(x.ndim, 1):
        raise IndexError(f"{call}: no axis {a} in a tensor of {x.ndim}")
    return a % x.ndim if x.ndim else 0


def _shape_of(call: str, shape: tuple[Any, ...]) -> tuple[int, ...]:
    """A shape given as a tuple, or as several integers."""
    dims = shape[0] if len(shape) == 1 and not hasattr(shape[0], "__index__") else shape
    if isinstance(dims, (str, Tensor)) or not hasattr(dims, "__iter__") or builtins.any(isinstance(n, _dtype) or not hasattr(n, "__index__") for n in dims):
        raise TypeError(f"{call}: a shape is of integers, got {dims!r}")
    return tuple(int(n.__index__()) for n in dims)


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


# ---- shapes ----

def reshape(x: Any, *shape: Any) -> Tensor:
    """The same elements in another shape, given as a tuple or as several integers; one may be -1, which is inferred."""
    return _core.reshape(_of(x), _shape_of("reshape", shape))


def permute(x: Any, *axes: Any) -> Tensor:
    """Axis k of the result is axis axes[k] of x; axes are a tuple or several integers."""
    return _core.permute(_of(x), _shape_of("permute", axes))


def transpose(x: Any, *axes: Any) -> Tensor:
    """The axes in reverse order, or in the order given, as NumPy's.  swapaxes exchanges two, as PyTorch's transpose does."""
    y: Tensor = _of(x)
    if not axes or axes == (None,):
        return y.T
    order = _shape_of("transpose", axes)
    if len(order) != y.ndim:
        raise ValueError(f"transpose: {len(order)} axes for a tensor of {y.ndim}; swapaxes exchanges two of them")
    return _core.permute(y, order)


def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    """Two axes exchanged."""
    x = _of(x)
    order = list(range(x.ndim))
    a, b = _axis_of(x, axis1, "swapaxes"), _axis_of(x, axis2, "swapaxes")
    order[a], order[b] = order[b], order[a]
    return _core.permute(x, order)


def moveaxis(x: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Axes at other positions; the others stay in their order."""
    x = _of(x)
    of = [source] if isinstance(source, int) else list(source)
    to = [destination] if isinstance(destination, int) else list(destination)
    if len(of) != len(to):
        raise ValueError(f"moveaxis: {len(of)} axes to {len(to)} positions")
    of, to = [_axis_of(x, a, "moveaxis") for a in of], [_axis_of(x, a, "moveaxis") for a in to]
    order = [a for a in range(x.ndim) if a not in of]
    for at, a in sorted(zip(to, of)):
        order.insert(at, a)
    return _core.permute(x, order)


def squeeze(x: Any, axis: Axis = None, *, dim: Axis = None) -> Tensor:
    """Without its axes of one element, or without those given."""
    x, axis = _of(x), _one("squeeze", axis, dim)
    if axis is None:
        return _core.reshape(x, [n for n in x.shape if n != 1])
    which = {_axis_of(x, a, "squeeze") for a in ([axis] if isinstance(axis, int) else axis)}
    for a in which:
        if x.shape[a] != 1:
            raise ValueError(f"squeeze: axis {a} has {x.shape[a]} elements, and not 1")
    return _core.reshape(x, [n for k, n in enumerate(x.shape) if k not in which])


def unsqueeze(x: Any, axis: int | None = None, *, dim: int | None = None) -> Tensor:
    """With a new axis of one element at that position."""
    x, axis = _of(x), _one("unsqueeze", axis, dim)
    if axis is None or not -x.ndim - 1 <= axis <= x.ndim:
        raise IndexError(f"unsqueeze: no position {axis} for an axis in a tensor of {x.ndim}")
    at = axis % (x.ndim + 1)
    return _core.reshape(x, x.shape[:at] + (1,) + x.shape[at:])


def expand_dims(x: Any, axis: int | Sequence[int]) -> Tensor:
    """With new axes of one element at these positions of the result."""
    x = _of(x)
    new = [axis] if isinstance(axis, int) else list(axis)
    rank = x.ndim + len(new)
    at = {a % rank if -rank <= a < rank else -1 for a in new}
    if -1 in at or len(at) != len(new):
        raise IndexError(f"expand_dims: no positions {axis} for axes in a tensor of {x.ndim}")
    left = iter(x.shape)
    return _core.reshape(x, [1 if k in at else next(left) for k in range(rank)])


def flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The axes from start_dim to end_dim as one, by default all."""
    x = _of(x)
    if x.ndim == 0:
        return _core.reshape(x, (1,))
    a, b = _axis_of(x, start_dim, "flatten"), _axis_of(x, end_dim, "flatten")
    if a > b:
        raise ValueError(f"flatten: axis {start_dim} comes after axis {end_dim}")
    n = 1
    for k in x.shape[a:b + 1]:
        n *= k
    return _core.reshape(x, x.shape[:a] + (n,) + x.shape[b + 1:])


def ravel(x: Any) -> Tensor:
    """All elements along one axis, in row-major order."""
    return _core.reshape(_of(x), (-1,)) if _of(x).size else _core.reshape(_of(x), (0,))


def broadcast_to(x: Any, *shape: Any) -> Tensor:
    """Repeated along axes of one element, as NumPy broadcasts; the shape is a tuple or several integers."""
    return _core.broadcast_to(_of(x), _shape_of("broadcast_to", shape))


def expand(x: Any, *shape: Any) -> Tensor:
    """broadcast_to, where -1 leaves an axis as it is, as in PyTorch."""
    x, dims = _of(x), list(_shape_of("expand", shape))
    new = len(dims) - x.ndim
    for k, n in enumerate(dims):
        if n == -1:
            if k < new:
                raise ValueError(f"expand: new axis {k} has no length to leave as it is")
            dims[k] = x.shape[k - new]
    return _core.broadcast_to(x, dims)


def concat(x: Sequence[Any], axis: int | None = 0, *, dim: int | None = None) -> Tensor:
    """Tensors joined along an axis; with axis=None all elements along one.  Their dtypes are promoted."""
    parts, at = [_of(t) for t in x], _one("concat", axis, dim, 0 if axis == 0 else None)
    if not parts:
        raise ValueError("concat: there are no tensors")
    if at is None:
        parts, at = [ravel(t) for t in parts], 0
    return _core.concat(_promoted(parts), at)


concatenate = cat = concat


def _promoted(parts: list[Tensor]) -> list[Tensor]:
    to = parts[0].dtype
    for t in parts[1:]:
        to = _core._joined(to, t.dtype)
    return [t if t.dtype is to else _core.cast(t, to) for t in parts]


def stack(x: Sequence[Any], axis: int = 0, *, dim: int | None = None) -> Tensor:
    """Tensors of one shape along a new axis."""
    parts, at = [_of(t) for t in x], _one("stack", axis, dim, 0)
    if not parts:
        raise ValueError("stack: there are no tensors")
    for k, t in enumerate(parts):
        if t.shape != parts[0].shape:
            raise ValueError(f"stack: tensor {k} is {list(t.shape)}, the first one is {list(parts[0].shape)}")
    rank = parts[0].ndim + 1
    if not -rank <= at < rank:
        raise IndexError(f"stack: no position {at} for an axis in a tensor of {rank - 1}")
    return _core.stack(_promoted(parts), at)


def vstack(x: Sequence[Any]) -> Tensor:
    """Joined along the first axis; vectors are rows."""
    return concat([_core.reshape(t, (1, -1)) if t.ndim < 2 else t for t in map(_of, x)], 0)


def hstack(x: Sequence[Any]) -> Tensor:
    """Joined along the second axis, vectors along their own."""
    parts = [_core.reshape(t, (1,)) if t.ndim == 0 else t for t in map(_of, x)]
    return concat(parts, 0 if parts and parts[0].ndim == 1 else 1)


def split(x: Any, indices_or_sections: int | Sequence[int], axis: int = 0, *, dim: int | None = None) -> list[Tensor]:
    """As many equal parts along an axis, or, of a list of positions, the parts between them; as NumPy's split."""
    x = _of(x)
    at = _axis_of(x, _one("split", axis, dim, 0), "split")
    n = x.shape[at]
    if isinstance(indices_or_sections, int):
        k = indices_or_sections
        if k < 1 or n % k:
            raise ValueError(f"split: {n} elements are not {k} equal parts; chunk gives parts of unequal lengths")
        cuts = list(range(n // k, n, n // k)) if n else [0] * (k - 1)
    else:
        cuts = [int(i) for i in indices_or_sections]
    ends = [slice(a, b).indices(n)[:2] for a, b in zip([0, *cuts], [*cuts, n])]
    return [_core.slice(x, at, a, builtins.max(a, b)) for a, b in ends]


def array_split(x: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """split, where parts may be of lengths that differ by one."""
    if not isinstance(indices_or_sections, int):
        return split(x, indices_or_sections, axis)
    x, k = _of(x), indices_or_sections
    if k < 1:
        raise ValueError(f"array_split: {k} parts; there is one at least")
    n = x.shape[_axis_of(x, axis, "array_split")]
    return split(x, [i * (n // k) + builtins.min(i, n % k) for i in range(1, k)], axis)


def column_stack(x: Sequence[Any]) -> Tensor:
    """Vectors as columns of a matrix; matrices beside each other."""
    return concat([_core.reshape(t, (-1, 1)) if t.ndim < 2 else t for t in map(_of, x)], 1)


def append(x: Any, values: Any, axis: int | None = None) -> Tensor:
    """Two tensors joined along an axis, or, without one, all elements."""
    return concat([x, values], axis)


def atleast_1d(x: Any) -> Tensor:
    """With one axis at least."""
    return _core.reshape(_of(x), (1,)) if _of(x).ndim == 0 else _of(x)


def atleast_2d(x: Any) -> Tensor:
    """With two axes at least; vectors are rows."""
    return _core.reshape(_of(x), (1, -1)) if _of(x).ndim < 2 else _of(x)


def fliplr(x: Any) -> Tensor:
    """Columns in reverse order."""
    return _core.flip(_of(x), 1)


def flipud(x: Any) -> Tensor:
    """Rows in reverse order."""
    return _core.flip(_of(x), 0)


def chunk(x: Any, chunks: int, axis: int = 0, *, dim: int | None = None) -> list[Tensor]:
    """At most so many parts along an axis, all but the last one of equal length, as in PyTorch."""
    x = _of(x)
    at = _axis_of(x, _one("chunk", axis, dim, 0), "chunk")
    if chunks < 1:
        raise ValueError(f"chunk: {chunks} parts of a tensor {list(x.shape)}; one at least")
    size = -(-x.shape[at] // chunks)
    return split(x, list(range(size, x.shape[at], size)) if size else [0] * (chunks - 1), at)


def repeat(x: Any, repeats: Any, axis: int | None = None, *, dim: int | None = None) -> Tensor:
    """Each element several times in a row, as NumPy's repeat (PyTorch's repeat is tile); repeats: a number, or one for each
    element, whose sum is read."""
    x, axis = _of(x), _one("repeat", axis, dim)
    if axis is None:
        x, axis = ravel(x), 0
    at = _axis_of(x, axis, "repeat")
    if hasattr(repeats, "__index__") and not isinstance(repeats, Tensor):
        return _core.repeat(x, repeats.__index__(), at)
    counts = _of(repeats)
    if counts.size == 1:
        return _core.repeat(x, int(counts.item()), at)
    return _core.repeat_each(x, counts, int(_core.sum(_core.cast(counts, "i64")).item()), at)


repeat_interleave = repeat


def tile(x: Any, *reps: Any) -> Tensor:
    """The whole tensor several times along each axis."""
    return _core.tile(_of(x), _shape_of("tile", reps))


def roll(x: Any, shift: int | Sequence[int], axis: Axis = None) -> Tensor:
    """Elements moved along an axis, several axes, or, without one, in row-major order; they wrap around."""
    x = _of(x)
    if not isinstance(shift, int) or not isinstance(axis, (int, type(None))):
        axes = list(axis) if isinstance(axis, Sequence) else [axis]
        shifts = [shift] * len(axes) if isinstance(shift, int) else list(shift)
        if len(shifts) != len(axes):
            raise ValueError(f"roll: {len(shifts)} shifts for {len(axes)} axes")
        return _rolled(x, [(s, _axis_of(x, a, "roll")) for s, a in zip(shifts, axes)])
    if axis is None:
        return _core.reshape(_core.roll(_core.reshape(x, (x.size,)), shift, 0), x.shape)
    return _core.roll(x, shift, axis)


def _rolled(x: Tensor, moves: list[tuple[int, int]]) -> Tensor:
    """Blocks of x, each copied once."""
    if not moves:
        return x
    (shift, axis), *rest = moves
    if axis in [a for _, a in rest] or not x.shape[axis]:
        return _core.roll(_rolled(x, rest), shift, axis)
    n = x.shape[axis]
    at = -shift % n
    parts = [_core.slice(x, axis, at, n)] + ([_core.slice(x, axis, 0, at)] if at else [])
    return _core.concat([_rolled(p, rest) for p in parts], axis)


def flip(x: Any, axis: Axis = None, *, dim: Axis = None) -> Tensor:
    """The elements in reverse order along an axis, several axes, or all."""
    x, axis = _of(x), _one("flip", axis, dim)
    return _core.flip(x, tuple(range(x.ndim)) if axis is None else axis)


# ---- elements ----

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
    """A value added before and behind each axis.  lo and hi: how many elements, for each axis, before and behind; or, as NumPy's
    pad has it, lo alone: a number, a pair (before, behind), or a pair for each axis."""
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


# ---- creation ----

def _made_of(call: str, shape: tuple[Any, ...], dtype: Any) -> tuple[tuple[int, ...], Any]:
    """A shape, with an element type behind it."""
    if len(shape) > 1 and dtype is None and (isinstance(shape[-1], (str, type, _dtype)) or
                                             (hasattr(shape[-1], "itemsize") and not hasattr(shape[-1], "__index__"))):
        shape, dtype = shape[:-1], shape[-1]
    if len(shape) > 1 and not hasattr(shape[0], "__index__"):
        raise TypeError(f"{call}: {shape[1]!r} is no dtype")
    return _shape_of(call, shape), _dtype("f32" if dtype is None else dtype)


def zeros(*shape: Any, dtype: Any = None) -> Tensor:
    """All 0, f32 by default.  The shape is a tuple or several integers; a dtype may follow: zeros((2, 3), "f64")."""
    dims, dtype = _made_of("zeros", shape, dtype)
    return _core.full(dtype, dims, 0.0)


def ones(*shape: Any, dtype: Any = None) -> Tensor:
    """All 1, f32 by default.  The shape is a tuple or several integers; a dtype may follow: ones((2, 3), "f64")."""
    dims, dtype = _made_of("ones", shape, dtype)
    return _core.full(dtype, dims, 1.0)


def _number_dtype(value: Any) -> _dtype:
    """The dtype that a value gets on its own."""
    return _dtype("bool" if isinstance(value, bool) else "i64" if isinstance(value, int) else "f32")


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """All equal to a number; its dtype follows from the number: bool, i64 or f32."""
    dims = _shape_of("full", (shape,))
    if hasattr(fill_value, "__array__"):
        value = _of(fill_value)
        return broadcast_to(value if dtype is None else _core.cast(value, dtype), dims)
    if not isinstance(fill_value, (int, float)):
        raise TypeError(f"full: fill_value is a number, got {fill_value!r}")
    return _core.full(_number_dtype(fill_value) if dtype is None else dtype, dims, fill_value)


def zeros_like(x: Any, dtype: Any = None) -> Tensor:
    """All 0, of the shape and dtype of x."""
    return full_like(x, 0, dtype)


def ones_like(x: Any, dtype: Any = None) -> Tensor:
    """All 1, of the shape and dtype of x."""
    return full_like(x, 1, dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """All equal to a number, of the shape and dtype of x."""
    x = _of(x)
    return full(x.shape, fill_value, x.dtype if dtype is None else dtype)


def empty(*shape: Any, dtype: Any = None) -> Tensor:
    """zeros: there are no tensors without values."""
    dims, dtype = _made_of("empty", shape, dtype)
    return _core.full(dtype, dims, 0.0)


empty_like = zeros_like


def identity(n: int, dtype: Any = None) -> Tensor:
    """[n,n] with 1 on the diagonal, else 0; f32 by default."""
    return eye(n, dtype=dtype)


def eye(n: int, m: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """[n,m] with 1 on a diagonal, the main one or k above it, else 0; f32 by default."""
    dims = (n, n if m is None else m)
    rows, columns = _core.iota("i64", dims, 0), _core.iota("i64", dims, 1)
    return _core.cast(columns - rows == k, "f32" if dtype is None else dtype)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """arange(stop) or arange(start, stop, step): start, start + step, .. before stop.  i64 of integers, else f32."""
    import numpy

    for value in (start, stop, step):
        if value is not None and (isinstance(value, (str, _dtype)) or not hasattr(value, "__float__")):
            raise TypeError(f"arange: takes numbers, got {value!r}; the dtype goes by dtype=")
    a = numpy.arange(start) if stop is None else numpy.arange(start, stop, step)
    if dtype is None:
        dtype = "i64" if a.dtype.kind in "iu" else "f32"
    if a.dtype.kind in "iu" and len(a) and (a[0] == 0 and step == 1):
        return _core.iota(dtype, (len(a),), 0)
    return tensor(a, dtype)


def linspace(start: float, stop: float, num: int = 50, *, endpoint: bool = True, dtype: Any = None) -> Tensor:
    """num numbers at equal distances from start to stop, with stop or, by endpoint=False, without it; f32 by default."""
    import numpy

    return tensor(numpy.linspace(start, stop, num, endpoint=endpoint), "f32" if dtype is None else dtype)


def logspace(start: float, stop: float, num: int = 50, base: float = 10.0, *, dtype: Any = None) -> Tensor:
    """num numbers from base**start to base**stop at equal ratios; f32 by default."""
    import numpy

    return tensor(numpy.logspace(start, stop, num, base=base), "f32" if dtype is None else dtype)


def meshgrid(*x: Any, indexing: str = "xy") -> list[Tensor]:
    """A grid's coordinates of vectors of coordinates along its axes; indexing "xy" or "ij", as in NumPy."""
    parts = [ravel(_of(t)) for t in x]
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing is 'xy' or 'ij', not {indexing!r}")
    order = list(range(len(parts)))
    if indexing == "xy" and len(parts) > 1:
        order[:2] = [1, 0]
    dims = [parts[k].shape[0] for k in order]
    return [_core.broadcast_to(_core.reshape(t, [dims[i] if order[i] == k else 1 for i in range(len(dims))]), dims)
            for k, t in enumerate(parts)]


def one_hot(ids: Any, num_classes: int = -1, *, dtype: Any = "i64") -> Tensor:
    """ids [..] -> [..,num_classes]: 1 at the id, else 0.  -1: as many classes as the largest id needs, which is read."""
    ids = _of(ids)
    if ids.dtype.is_floating_point:
        raise TypeError(f"one_hot: ids are integers, got {ids.dtype.name} {list(ids.shape)}")
    n = num_classes if num_classes >= 0 else int(_core.reduce_max(ids).item()) + 1 if ids.size else 0
    return _core.one_hot(ids if ids.dtype.name in ("i32", "i64") else _core.cast(ids, "i64"), n, dtype)


# ---- matrices ----

def tril(x: Any, k: int = 0) -> Tensor:
    """The elements on and below a diagonal of matrices [..,n,m], the main one or k above it; else 0."""
    return _core.tril(_matrix("tril", x), k)


def triu(x: Any, k: int = 0) -> Tensor:
    """The elements on and above a diagonal of matrices [..,n,m], the main one or k above it; else 0."""
    return _core.triu(_matrix("triu", x), k)


def _matrix(call: str, x: Any) -> Tensor:
    y = _of(x)
    if y.ndim < 2:
        raise ValueError(f"{call}: takes matrices, got a tensor of {y.ndim} axes")
    return y


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The diagonal of two axes, the main one or offset above it, along a new last axis."""
    x = _matrix("diagonal", x)
    a, b = _axis_of(x, axis1, "diagonal"), _axis_of(x, axis2, "diagonal")
    if a == b:
        raise ValueError("diagonal: axis1 and axis2 are one axis")
    return _core.diagonal(x, offset, a, b)


def diag(x: Any, k: int = 0) -> Tensor:
    """The diagonal of a matrix, or a matrix with that diagonal."""
    x = _of(x)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError(f"diag: takes a vector or a matrix, got a tensor of {x.ndim} axes")
    return _core.diag(x, k) if x.dtype.name != "bool" else _core.cast(_core.diag(_core.cast(x, "u8"), k), "bool")


def trace(x: Any, offset: int = 0) -> Tensor:
    """The sum of a diagonal of the first two axes."""
    return sum(diagonal(x, offset), -1)


def dot(x: Any, y: Any) -> Tensor:
    """The product of vectors, or of matrices; a number times a tensor."""
    a, b = _of(x), _of(y)
    return a * b if a.ndim == 0 or b.ndim == 0 else a @ b


def outer(x: Any, y: Any) -> Tensor:
    """Products of all pairs of two vectors' elements."""
    return _core.outer(_of(x), _of(y))


def einsum(subscripts: str, *operands: Any) -> Tensor:
    """Sums of products by the names of axes: einsum("bij,bjk->bik", x, y).  Names are letters, `...` stands for axes that
    broadcast.  Without `->` the result has the axes of `...` and the names that occur once, in alphabetical order."""
    parts = [_of(t) for t in operands]
    if not parts:
        raise ValueError("einsum: there are no operands")
    return _core.einsum(subscripts, _promoted(parts))


def tensordot(x: Any, y: Any, axes: Any = 2) -> Tensor:
    """Products summed over the last axes of x and the first of y, as many as axes says, or over two lists of axes."""
    x, y = _promoted([_of(x), _of(y)])
    if isinstance(axes, int):
        of, to = list(range(x.ndim - axes, x.ndim)), list(range(axes))
    else:
        of, to = [[a] if isinstance(a, int) else list(a) for a in axes]
    of, to = [_axis_of(x, a, "tensordot") for a in of], [_axis_of(y, a, "tensordot") for a in to]
    if [x.shape[a] for a in of] != [y.shape[a] for a in to]:
        raise ValueError(f"tensordot: axes {of} of {list(x.shape)} and {to} of {list(y.shape)} differ in length")
    left, right = [a for a in range(x.ndim) if a not in of], [a for a in range(y.ndim) if a not in to]
    n = 1
    for a in of:
        n *= x.shape[a]
    z = _core.matmul(_core.reshape(_core.permute(x, left + of), (x.size // n if n else 0, n)),
                     _core.reshape(_core.permute(y, to + right), (n, y.size // n if n else 0)))
    return _core.reshape(z, [x.shape[a] for a in left] + [y.shape[a] for a in right])


def inner(x: Any, y: Any) -> Tensor:
    """Products summed over the last axes."""
    a, b = _of(x), _of(y)
    return a * b if a.ndim == 0 or b.ndim == 0 else tensordot(a, b, (-1, -1))


def vdot(x: Any, y: Any) -> Tensor:
    """The product of all elements as vectors."""
    return ravel(_of(x)) @ ravel(_of(y))


def kron(x: Any, y: Any) -> Tensor:
    """Kronecker's product."""
    return _core.kron(_of(x), _of(y))


# ---- methods ----

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


_RESOLVENT_WORDS = {
    "side": {"both": 0, "left": 1},
    "tier": {"auto": 0, "f64": 1, "f32": 2, "mixed": 3, "half": 4},
    "gradient": {"exact": 0, "diag": 1, "inverse": 2, "hybrid": 3, "step5": 4},
}


def _energy(z: Any, to: Any) -> Tensor:
    """Complex numbers as pairs along a last axis of 2; pairs as they are."""
    import numpy

    if isinstance(z, Tensor):
        return z if z.dtype == to else z.astype(to)
    z = numpy.asarray(z)
    if numpy.iscomplexobj(z) or not z.ndim:
        z = numpy.stack([z.real, z.imag], -1)
    elif z.shape[-1] != 2:
        raise ValueError(f"resolvent: z of shape {list(z.shape)} is real; pairs are [..,2], and real energies are z + 0j")
    return tensor(z, dtype=to)


def _chain(a: Any, b: Any, c: Any, z: Any, imag: Any) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None, Tensor]:
    """a, its imaginary part, b, c and z as tensors of one dtype."""
    import numpy

    if not isinstance(a, Tensor) and numpy.iscomplexobj(a):
        if imag is not None:
            raise ValueError("resolvent: a is complex; imag= is for a real one")
        a, imag = numpy.real(a), numpy.imag(a)
    x = _floating(_of(a))
    im, above, below = (t if t is None else _of(t).astype(x.dtype) for t in (imag, b, c))
    return x, im, above, below, _energy(z, x.dtype)


def resolvent(a: Any, b: Any = None, c: Any = None, z: Any = 1j, *, imag: Any = None, side: str | int = "both",
              tier: str | int = "auto", gradient: str | int = "exact", half: Any = "f16", **how: Any) -> Tensor:
    """The diagonal G_i = [(H - z)^-1]_ii of the resolvent of a tridiagonal matrix H with H_ii = a_i, H_i,i+1 = b_i and
    H_i+1,i = c_i: a [..,N], b and c [..,N-1] (None: ones), z a complex number, an array of them [..] or pairs [..,2].
    Leading axes broadcast.  The result is [..,N,2], real and imaginary parts; with L_0 = a_0 - z,
    L_i = a_i - z - b_(i-1) c_(i-1) / L_(i-1), and R the same from the end, G_i = 1 / (L_i + R_i - a_i + z).

    a may be complex, with the self-energies of leads at its ends; of a tensor imag= is the imaginary part [..,N].  Then all
    is computed in f64, and tier, gradient and what follows them do not apply.  resolvent_corner and resolvent_log_det
    give G_1N and log det(z - H) of the same operands.

    side="left": 1 / L_i, the last diagonal element for the leading block 0..i.  tier: auto, f64, f32, mixed or half, with
    half=, sweeps=, tolerance= as yoke_resolvent has them; gradient: exact, diag, inverse, hybrid or step5, with blend=,
    adaptive=.  RuntimeError, when it is evaluated, where z is an eigenvalue or an operand is not finite.
    """
    words: dict[str, Any] = {"side": side, "tier": tier, "gradient": gradient}
    for key, value in words.items():
        if isinstance(value, str):
            if value not in _RESOLVENT_WORDS[key]:
                raise ValueError(f"resolvent: {key}={value!r} is none of {', '.join(_RESOLVENT_WORDS[key])}")
            words[key] = _RESOLVENT_WORDS[key][value]
    x, im, above, below, energy = _chain(a, b, c, z, imag)
    if im is None:
        return _core.resolvent(x, above, below, energy, half=half, **words, **how)
    if words["tier"] > _RESOLVENT_WORDS["tier"]["f64"] or words["gradient"] or how:
        raise ValueError("resolvent: of a complex a the tier is f64 and the gradient exact")
    return _core.resolvent_complex(x, im, above, below, energy, side=words["side"])


def resolvent_corner(a: Any, b: Any = None, c: Any = None, z: Any = 1j, *, imag: Any = None) -> Tensor:
    """The corner G_1N = [(H - z)^-1]_1N = -b_1 .. b_(N-1) / det(z - H) of the resolvent of a tridiagonal matrix, with the
    operands of resolvent: [..,2], real and imaginary parts.  Real z is as good as complex.  A chain between two leads of
    self-energies S_L and S_R, which are added to its first and last element, transmits T = G_L G_R |G_1N|^2 at z = E, with
    G = -2 Im S:

        E = numpy.linspace(-1.9, 1.9, 39)
        a = numpy.zeros((39, 100), complex)
        a[:, [0, -1]] = ((E - 1j * numpy.sqrt(4 - E * E)) / 2)[:, None]
        g = yoke.resolvent_corner(a, z=E + 0j).numpy()
        T = (4 - E * E) * (g ** 2).sum(-1)                      # 1 at all energies
    """
    return _core.resolvent_corner(*_chain(a, b, c, z, imag))


def resolvent_log_det(a: Any, b: Any = None, c: Any = None, z: Any = 1j, *, imag: Any = None) -> Tensor:
    """log det(z - H) of a tridiagonal matrix, with the operands of resolvent: [..,2], log |det| and the phase.  Its derivative
    by z is the trace of (z - H)^-1.  The phase is a sum of N arguments in (-pi, pi] and not reduced to one turn: it is
    continuous in Im z > 0 where no b c is negative and no imaginary part of a positive.  For real H and z with no b c
    negative it is pi times the number of eigenvalues above z.  If a b c is negative, it is only an argument of det: it is
    defined up to whole turns.
    """
    return _core.resolvent_log_det(*_chain(a, b, c, z, imag))


_MODES = {"nearest": 0, "nearest-exact": 1, "linear": 2, "bilinear": 2, "trilinear": 2, "bicubic": 3}
_PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}
_AXES_OF = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
_BAGS = {"sum": 0, "mean": 1, "max": 2}


def _choice(call: str, what: str, name: str, choices: dict[str, int]) -> int:
    if name not in choices:
        raise ValueError(f"{call}: {what} {name!r} is none of {', '.join(choices)}")
    return choices[name]


def interpolate(x: Any, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None,
                mode: str = "nearest", align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Tensor:
    """x [B,C,S..] to another size, or by a factor, as PyTorch's: mode nearest, nearest-exact, linear, bilinear, trilinear,
    bicubic or area.  With recompute_scale_factor positions are those of the size, not of the factor."""
    x = _of(x)
    axes = builtins.max(len(x.shape) - 2, 0)
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: give either size or scale_factor")
    factors: tuple[float, ...] = ()
    if size is not None:
        to = (size,) * axes if isinstance(size, int) else tuple(size)
    else:
        assert scale_factor is not None
        factors = (float(scale_factor),) * axes if isinstance(scale_factor, (int, float)) else tuple(map(float, scale_factor))
        to = tuple(int(n * f) for n, f in zip(x.shape[2:], factors))
        if recompute_scale_factor:
            factors = ()
    if len(to) != axes or (factors and len(factors) != axes):
        raise ValueError(f"interpolate: {len(to)} sizes for x of shape {tuple(x.shape)}, which has {axes} axes after the channels")
    if axes != _AXES_OF.get(mode, axes):
        raise ValueError(f"interpolate: mode {mode} is for {_AXES_OF[mode]} axes after the channels, and x is {list(x.shape)}")
    if mode == "area":
        return _core.adaptive_mean_pool(x, to)
    return _core.interpolate(x, to, mode=_choice("interpolate", "mode", mode, _MODES), align_corners=bool(align_corners),
                             antialias=antialias, scale=factors)


def grid_sample(x: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = False) -> Tensor:
    """The images x [B,C,H,W] at the positions of grid [B,P,Q,2], or volumes at [B,O,P,Q,3]; mode bilinear, nearest or
    bicubic, padding_mode zeros, border or reflection."""
    return _core.grid_sample(_of(x), _of(grid), _choice("grid_sample", "mode", mode, _MODES),
                             _choice("grid_sample", "padding_mode", padding_mode, _PADDINGS), bool(align_corners))


def affine_grid(theta: Any, size: Sequence[int], align_corners: bool | None = False) -> Tensor:
    """The positions, for grid_sample, of affine maps theta [B,2,3] or [B,3,4]; size: that of the images, [B,C,H,W] or
    [B,C,D,H,W]."""
    return _core.affine_grid(_of(theta), tuple(size)[2:], bool(align_corners))


def embedding_bag(ids: Any, weight: Any, offsets: Any = None, mode: str = "mean", per_sample_weights: Any = None,
                  include_last_offset: bool = False, padding_idx: int | None = None) -> Tensor:
    """Sums, means or maxima of rows of weight [N,C]: of each row of ids [B,L], or of ids [M] from each of the offsets on."""
    w = _of(weight)
    padding = -1 if padding_idx is None else padding_idx + (w.shape[0] if padding_idx < 0 else 0)
    return _core.embedding_bag(w, _of(ids), mode=_choice("embedding_bag", "mode", mode, _BAGS), padding=padding,
                               offsets=None if offsets is None else _of(offsets),
                               weights=None if per_sample_weights is None else _of(per_sample_weights),
                               include_last=include_last_offset)


def unfold(x: Any, kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1, padding: int | Sequence[int] = 0,
           stride: int | Sequence[int] = 1) -> Tensor:
    """The windows of x [B,C,S..] as columns: [B,C times the window,L]."""
    return _core.unfold(_of(x), window=kernel_size, dilation=dilation, lo=padding, hi=padding, stride=stride)


def fold(x: Any, output_size: int | Sequence[int], kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1,
         padding: int | Sequence[int] = 0, stride: int | Sequence[int] = 1) -> Tensor:
    """Columns [B,C times the window,L], added up into [B,C,output_size..]: the adjoint of unfold."""
    to = (output_size,) * 2 if isinstance(output_size, int) else tuple(output_size)
    return _core.fold(_of(x), to, window=kernel_size, dilation=dilation, lo=padding, hi=padding, stride=stride, axes=len(to))


def max_unpool(x: Any, indices: Any, size: int | Sequence[int]) -> Tensor:
    """Zeros of [B,C,size..] with the elements of x at the places that max_pool_indices gave."""
    return _core.max_unpool(_of(x), _of(indices), size)
