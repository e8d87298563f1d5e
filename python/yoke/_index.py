# SPDX-License-Identifier: Apache-2.0
"""Indices with arrays of integers in them, and parts of variables that are assigned."""
from __future__ import annotations

from typing import Any

from . import _core
from ._arrays import tensor


def _places(index: Any, n: int, axis: int) -> _core.Tensor:
    """An array of integers as places 0 .. n - 1."""
    if isinstance(index, _core.Tensor):
        if index.dtype.name not in ("i32", "i64"):
            raise IndexError(f"an index of {index.dtype.name}; i32 and i64 are possible (a mask: yoke.select)")
        i = _core.cast(index, "i64")
        return _core.select(i < 0, i + n, i)
    import numpy

    a = numpy.asarray(index)
    if a.size == 0 and not hasattr(index, "dtype"):
        a = a.astype("i8")
    if a.dtype.kind not in "iu":
        raise IndexError(f"an index of {a.dtype}; integers are possible (a mask: yoke.select)")
    a = a.astype("i8")
    bad = a[(a < -n) | (a >= n)]
    if bad.size:
        raise IndexError(f"index {int(bad.flat[0])} is out of range of axis {axis} with {n} elements")
    return tensor(numpy.where(a < 0, a + n, a))


def arrays(x: _core.Tensor, key: Any) -> _core.Tensor:
    """x[key] as NumPy has it, where key has arrays of integers."""
    keys = list(key) if isinstance(key, tuple) else [key]
    if any(isinstance(k, bool) for k in keys):
        raise IndexError("an index of bool; integers are possible (a mask: yoke.select)")
    used = sum(k is not None and k is not Ellipsis for k in keys)
    if used > x.ndim:
        raise IndexError(f"{used} indices for a tensor of {x.ndim} axes")
    if sum(k is Ellipsis for k in keys) > 1:
        raise IndexError("an index has one `...` only")
    whole = [slice(None)] * (x.ndim - used)
    at = next((i for i, k in enumerate(keys) if k is Ellipsis), None)
    keys = keys + whole if at is None else keys[:at] + whole + keys[at + 1:]
    # integers count among the arrays; what is basic goes first
    is_array = [not (k is None or isinstance(k, slice)) for k in keys]
    x = x[tuple(slice(None) if a else k for k, a in zip(keys, is_array))]
    axes = [i for i, a in enumerate(is_array) if a]
    index = [_places(keys[i], x.shape[i], i) for i in axes]
    shape: tuple[int, ...] = ()
    for i in index:
        shape = _broadcast(shape, i.shape)
    flat = None
    for i, axis in zip(index, axes):
        i = _core.broadcast_to(i, shape)
        flat = i if flat is None else flat * x.shape[axis] + i
    assert flat is not None
    together = axes == list(range(axes[0], axes[-1] + 1))
    first = axes[0] if together else 0
    rest = [i for i in range(x.ndim) if i not in axes]
    order = rest[:first] + axes + rest[first:]
    if order != list(range(x.ndim)):
        x = _core.permute(x, order)
    n = 1
    for k in range(first, first + len(axes)):
        n *= x.shape[k]
    dims = list(x.shape)
    x = _core.reshape(x, dims[:first] + [n] + dims[first + len(axes):])
    return _core.gather(x, flat, first)


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    import numpy

    try:
        return tuple(numpy.broadcast_shapes(a, b))
    except ValueError:
        raise IndexError(f"indices of shapes {list(a)} and {list(b)} do not broadcast") from None


def assign(variable: _core.Tensor, key: Any, value: Any) -> None:
    """variable[key] = value, of integers and slices: a new version of the variable."""
    keys = list(key) if isinstance(key, tuple) else [key]
    if any(not (k is Ellipsis or isinstance(k, slice) or hasattr(k, "__index__")) for k in keys):
        raise TypeError("integers, slices and `...` are assigned to; else yoke.scatter_add, select or concat")
    used = sum(k is not Ellipsis for k in keys)
    if used > variable.ndim:
        raise IndexError(f"{used} indices for a tensor of {variable.ndim} axes")
    whole = [slice(None)] * (variable.ndim - used)
    at = next((i for i, k in enumerate(keys) if k is Ellipsis), None)
    keys = keys + whole if at is None else keys[:at] + whole + keys[at + 1:]
    starts, sizes, shape = [], [], []
    for k, n in zip(keys, variable.shape):
        if isinstance(k, slice):
            start, stop, step = k.indices(n)
            if step != 1:
                raise IndexError("what is assigned has steps of 1")
            starts.append(start)
            sizes.append(max(0, stop - start))
            shape.append(sizes[-1])
        else:
            i = int(k)
            if not -n <= i < n:
                raise IndexError(f"index {i} is out of range of an axis with {n} elements")
            starts.append(i % n)
            sizes.append(1)
    v = tensor(value, variable.dtype) if not isinstance(value, _core.Tensor) else _core.cast(value, variable.dtype)
    v = _core.reshape(_core.broadcast_to(v, shape), sizes)
    _core.assign_at(variable, [tensor(s, "i64") for s in starts], v)
