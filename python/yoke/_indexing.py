# SPDX-License-Identifier: Apache-2.0
"""Elements chosen by masks and indices, and put at them."""
from __future__ import annotations

import builtins
from typing import Any, Callable, Sequence

from . import _core
from ._arrays import tensor
from ._common import Tensor, _axis_of, _of
from ._record import iinfo
from ._reductions import _as_index, _truth
from ._shapes import _promoted, moveaxis, stack

__all__ = [
    "where", "nonzero", "masked_fill", "masked_select", "masked_scatter", "index_put", "bucketize", "searchsorted",
    "argwhere", "take_along_axis", "take_along_dim", "isin", "index_select", "index_add", "index_copy", "index_fill",
    "scatter", "scatter_reduce",
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
    """The indices of the elements that are not 0, an i64 tensor for each axis; a number is a vector of one.  It reads their
    number."""
    x = _truth(_of(x))
    if not x.ndim:
        x = _core.reshape(x, (1,))
    found, _ = _core.nonzero(x, _count(x))
    return tuple(_core.reshape(_core.slice(found, 0, k, k + 1), (-1,)) for k in range(x.ndim)) if found.size else \
        tuple(_core.full("i64", (0,), 0) for _ in range(x.ndim))


def masked_fill(x: Any, mask: Any, value: Any) -> Tensor:
    """The value where the mask is true, else x."""
    return _core.select(_truth(_of(mask)), value, x)


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


def searchsorted(sorted: Any, v: Any, right: bool | str = False, *, side: str | None = None) -> Tensor:
    """Where the elements of v belong in a vector sorted along its last axis: how many of its elements are below each, or with
    right (side="right") not above it; i64.  sorted may have rows of its own for each row of v."""
    if isinstance(right, str):
        side = right
        right = False
    if side not in (None, "left", "right"):
        raise ValueError(f"searchsorted: side is 'left' or 'right', not {side!r}")
    return _core.searchsorted(_of(sorted), _of(v), bool(right or side == "right"))


def argwhere(x: Any) -> Tensor:
    """The indices of the elements that are not 0, i64 [N,axes].  It reads x, since their number depends on it."""
    return stack(nonzero(x), 1)


def take_along_axis(x: Any, indices: Any, axis: int) -> Tensor:
    """y[..,i,..] = x[..,indices[..,i,..],..] along an axis."""
    x, i = _of(x), _of(indices)
    return _core.take_along(x, _core.select(i < 0, i + x.shape[axis], i), axis)


def take_along_dim(x: Any, indices: Any, dim: int | None = None) -> Tensor:
    """take_along_axis; without dim of all elements in row-major order."""
    if dim is None:
        return take_along_axis(_core.reshape(_of(x), (-1,)), _core.reshape(_of(indices), (-1,)), 0)
    return take_along_axis(x, indices, dim)


def isin(x: Any, values: Any) -> Tensor:
    """Is the element one of the values?"""
    x, v = _of(x), _core.reshape(_of(values), (-1,))
    if not v.size:
        return _core.full("bool", x.shape, False)
    x, v = _promoted([x, v])
    v = _core.sort(v, 0)[0]
    at = _core.min(_core.searchsorted(v, x, False), v.size - 1)
    found: Tensor = _core.gather(v, at, 0) == x
    return found


def index_select(x: Any, dim: int, index: Any) -> Tensor:
    """The slices of x at the indices [I] of an axis."""
    x, i = _of(x), _of(index)
    if i.ndim > 1:
        raise ValueError(f"index_select: the indices are a vector, got {list(i.shape)}")
    return _core.gather(x, _core.reshape(i, (-1,)), _axis_of(x, dim, "index_select"))


def _along_first(call: str, fn: Callable[..., Tensor], x: Any, dim: int, index: Any, source: Any) -> Tensor:
    """fn of rows of the axis dim, at the indices [I]."""
    x, i, v = _of(x), _of(index), _of(source)
    at = _axis_of(x, dim, call)
    to = x.shape[:at] + (i.size,) + x.shape[at + 1:]
    if i.ndim > 1 or v.shape != to:
        raise ValueError(f"{call}: takes indices [I] and values of the shape of x with I at axis {at}, got x {list(x.shape)}, "
                         f"indices {list(i.shape)} and values {list(v.shape)}")
    return moveaxis(fn(moveaxis(x, at, 0), _core.reshape(i, (-1,)), moveaxis(_core.cast(v, x.dtype), at, 0)), 0, at)


def index_add(x: Any, dim: int, index: Any, source: Any, *, alpha: float = 1) -> Tensor:
    """x with alpha times the slices of source added at the indices [I] of an axis, in their order."""
    return _along_first("index_add", _core.scatter_add, x, dim, index, source if alpha == 1 else _of(source) * alpha)


def index_copy(x: Any, dim: int, index: Any, source: Any) -> Tensor:
    """x with the slices of source at the indices [I] of an axis; the last of several at an index wins."""
    return _along_first("index_copy", _core.scatter_set, x, dim, index, source)


def index_fill(x: Any, dim: int, index: Any, value: Any) -> Tensor:
    """x with a number at the indices [I] of an axis."""
    x, i = _of(x), _of(index)
    at = _axis_of(x, dim, "index_fill")
    dims = x.shape[:at] + (i.size,) + x.shape[at + 1:]
    return index_copy(x, dim, i, _core.broadcast_to(_core.cast(_of(value), x.dtype), dims))


_SCATTERED = {"sum": _core.SCATTER_SET, "mean": _core.SCATTER_SET, "prod": _core.SCATTER_PROD, "amax": _core.SCATTER_MAX,
              "amin": _core.SCATTER_MIN}


def _scattered(call: str, x: Any, dim: int, index: Any, src: Any, fn: Callable[..., Tensor]) -> Tensor:
    """fn(x, index, src, axis) of that part of x and src which has the shape of index in the other axes."""
    x, i = _of(x), _of(index)
    at = _axis_of(x, dim, call)
    part: Tensor = x
    v = _core.cast(src, x.dtype) if isinstance(src, Tensor) else _core.full(x.dtype, i.shape, src)
    if i.ndim != x.ndim or v.ndim != x.ndim or builtins.any(n > m for n, m in zip(i.shape, v.shape)) or \
            builtins.any(n > m for k, (n, m) in enumerate(zip(i.shape, x.shape)) if k != at):
        raise ValueError(f"{call}: index {list(i.shape)} has no axis longer than that of src {list(v.shape)}, nor, but for axis "
                         f"{at}, than that of x {list(x.shape)}")
    if not i.size:
        return part
    for k, n in enumerate(i.shape):
        v = v if v.shape[k] == n else _core.slice(v, k, 0, n)
        part = part if k == at or part.shape[k] == n else _core.slice(part, k, 0, n)
    y: Tensor = fn(part, i, v, at)
    return y if part.shape == x.shape else _core.slice_update(x, (0,) * x.ndim, y)


def scatter(x: Any, dim: int, index: Any, src: Any, *, reduce: str | None = None) -> Tensor:
    """x with the elements of src, or a number, at the indices of an axis, as in PyTorch: y[index[i,j],j] = src[i,j] for dim 0;
    the last of several at an index wins.  reduce "add" or "multiply" combines them with x."""
    if reduce not in (None, "add", "multiply"):
        raise ValueError(f"scatter: reduce is 'add', 'multiply' or None, not {reduce!r}")
    if reduce == "add":
        return _scattered("scatter", x, dim, index, src, _core.scatter_add_along)
    kind = _core.SCATTER_SET if reduce is None else _core.SCATTER_PROD
    return _scattered("scatter", x, dim, index, src, lambda x, i, v, at: _core.scatter_along(x, i, v, at, kind))


def scatter_reduce(x: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Tensor:
    """x combined with the elements of src at the indices of an axis, by "sum", "prod", "mean", "amax" or "amin"; without
    include_self x counts only where no index points."""
    if reduce not in _SCATTERED:
        raise ValueError(f"scatter_reduce: reduce is one of {', '.join(_SCATTERED)}, not {reduce!r}")

    def combine(x: Tensor, i: Tensor, v: Tensor, at: int) -> Tensor:
        first = x
        count = _core.scatter_add_along(_core.full(x.dtype, x.shape, 1.0 if include_self else 0.0), i, _core.full(x.dtype, v.shape, 1.0), at)
        if not include_self:
            limits = None if x.dtype.is_floating_point else iinfo(x.dtype)
            neutral = {"prod": 1, "amax": limits.min if limits else float("-inf"), "amin": limits.max if limits else float("inf")}
            first = _core.select(count > 0, neutral.get(reduce, 0), x)
        if reduce in ("sum", "mean"):
            y = _core.scatter_add_along(first, i, v, at)
        else:
            y = _core.scatter_along(first, i, v, at, _SCATTERED[reduce])
        if reduce == "mean":
            n = _core.max(count, 1)
            y = y / n if x.dtype.is_floating_point else _core.floor_div(y, n)
        return y

    return _scattered("scatter_reduce", x, dim, index, src, combine)
