# SPDX-License-Identifier: Apache-2.0
"""Elements chosen by masks and indices, and put at them."""
from __future__ import annotations

from typing import Any, Sequence

from . import _core
from ._arrays import tensor
from ._common import Tensor, _of
from ._reductions import _as_index, _truth
from ._shapes import stack

__all__ = [
    "where", "nonzero", "masked_fill", "masked_select", "masked_scatter", "index_put", "bucketize", "searchsorted",
    "argwhere", "take_along_axis",
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
