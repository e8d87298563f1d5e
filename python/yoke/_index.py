# SPDX-License-Identifier: Apache-2.0
"""Indices with arrays of integers or bool in them, and elements that are assigned, as NumPy has them."""
from __future__ import annotations

from typing import Any

from . import _core
from ._arrays import tensor


def _is_mask(k: Any) -> bool:
    if isinstance(k, _core.Tensor):
        return k.dtype.name == "bool"
    if isinstance(k, (list, tuple)):
        import numpy

        k = numpy.asarray([_host(i) for i in k] if isinstance(k, list) else k)
    return getattr(getattr(k, "dtype", None), "kind", "") == "b"


def _host(k: Any) -> Any:
    """A key for NumPy."""
    return k.numpy() if isinstance(k, _core.Tensor) else k


def _places(index: Any, n: int, axis: int) -> _core.Tensor:
    """An array of integers as places 0 .. n - 1."""
    if isinstance(index, _core.Tensor):
        if index.dtype.name not in ("i32", "i64", "i8", "u8"):
            raise IndexError(f"an index of {index.dtype.name}; integers and bool are possible")
        i = _core.cast(index, "i64")
        return _core.select(i < 0, i + n, i)
    import numpy

    a = numpy.asarray(_host(index) if not isinstance(index, list) else [_host(i) for i in index])
    if a.size == 0 and not hasattr(index, "dtype"):
        a = a.astype("i8")
    if a.dtype.kind not in "iu":
        raise IndexError(f"an index of {a.dtype}; integers and bool are possible")
    a = a.astype("i8")
    bad = a[(a < -n) | (a >= n)]
    if bad.size:
        raise IndexError(f"index {int(bad.flat[0])} is out of range of axis {axis} with {n} elements")
    return tensor(numpy.where(a < 0, a + n, a))


def _without_masks(keys: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """Masks as the indices of their true elements, an array for each axis; a mask that is a tensor is read for that."""
    import numpy

    out: list[Any] = []
    axis = 0
    for k in keys:
        if k is None:
            out.append(k)
        elif k is not Ellipsis and _is_mask(k):
            m = numpy.asarray([_host(i) for i in k] if isinstance(k, list) else _host(k))
            if m.ndim == 0 or tuple(m.shape) != tuple(shape[axis:axis + m.ndim]):
                raise IndexError(f"a mask of shape {list(m.shape)} for axes of shape {list(shape[axis:axis + m.ndim])}")
            out += list(numpy.nonzero(m))
            axis += m.ndim
        else:
            out.append(k)
            axis += 1
    return out


def _axes_used(k: Any) -> int:
    if k is None or k is Ellipsis:
        return 0
    if _is_mask(k):
        import numpy

        return k.ndim if hasattr(k, "ndim") else int(numpy.ndim(k))
    return 1


def _whole(key: Any, ndim: int) -> list[Any]:
    """The keys of all axes, with `...` as slices."""
    keys = list(key) if isinstance(key, tuple) else [key]
    if any(isinstance(k, bool) or type(k).__name__ in ("bool_", "bool") for k in keys):
        raise IndexError("an index of bool; integers, slices and masks are possible")
    used = sum(map(_axes_used, keys))
    if used > ndim:
        raise IndexError(f"{used} indices for a tensor of {ndim} axes")
    if sum(k is Ellipsis for k in keys) > 1:
        raise IndexError("an index has one `...` only")
    rest = [slice(None)] * (ndim - used)
    at = next((i for i, k in enumerate(keys) if k is Ellipsis), None)
    return keys + rest if at is None else keys[:at] + rest + keys[at + 1:]


def arrays(x: _core.Tensor, key: Any) -> _core.Tensor:
    """x[key] as NumPy has it, where key has arrays of integers or bool."""
    keys = _without_masks(_whole(key, x.ndim), x.shape)
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


def _part(keys: list[Any], shape: tuple[int, ...]) -> tuple[list[int], list[int], list[int]] | None:
    """Starts and sizes of a part that integers and slices in steps of 1 mean, and the shape of what fills it; else None."""
    starts, sizes, dims = [], [], []
    for axis, (k, n) in enumerate(zip(keys, shape)):
        if isinstance(k, slice):
            start, stop, step = k.indices(n)
            if step != 1:
                return None
            starts.append(start)
            sizes.append(max(0, stop - start))
            dims.append(sizes[-1])
        elif isinstance(k, _core.Tensor) or not hasattr(k, "__index__") or getattr(k, "ndim", 0) != 0:
            return None
        else:
            i = k.__index__()
            if not -n <= i < n:
                raise IndexError(f"index {i} is out of range of axis {axis} with {n} elements")
            starts.append(i % n)
            sizes.append(1)
    return starts, sizes, dims


def _filled(value: _core.Tensor, dims: list[int]) -> _core.Tensor:
    while value.ndim > len(dims) and value.shape[0] == 1:  # as NumPy has it
        value = _core.reshape(value, value.shape[1:])
    if value.ndim > len(dims) or any(a not in (1, b) for a, b in zip(value.shape[::-1], dims[::-1])):
        raise ValueError(f"values of shape {list(value.shape)} do not broadcast to {dims}")
    return _core.broadcast_to(value, dims)


def assign(x: _core.Tensor, key: Any, value: Any) -> None:
    """x[key] = value: a new version of a variable.  Of another tensor the object gets a new value, and results computed
    from it before keep the old one."""
    keys = [k for k in _whole(key, x.ndim) if k is not None]
    v = _core.cast(value, x.dtype) if isinstance(value, _core.Tensor) else tensor(value, x.dtype)
    part = _part(keys, x.shape)
    if part is not None:
        starts, sizes, dims = part
        v = _core.reshape(_filled(v, dims), sizes)
        if x.is_variable:
            _core.assign_at(x, [tensor(s, "i64") for s in starts], v)
        else:
            _core._become(x, _core.slice_update(x, starts, v))
        return
    if len(keys) == 1 and _is_mask(keys[0]) and v.ndim == 0 and isinstance(keys[0], _core.Tensor) and keys[0].shape == x.shape:
        _take_over(x, _core.select(keys[0], v, x))  # without reading the mask
        return
    import numpy

    places = numpy.arange(x.size).reshape(x.shape)[tuple(_host(k) for k in keys)]
    flat = _core.reshape(x, (x.size,))
    v = _core.reshape(_filled(v, list(places.shape)), (places.size,))
    if places.size:
        flat = _core.scatter_along(flat, tensor(places.reshape(-1).astype("i8")), v, 0, 0)
    _take_over(x, _core.reshape(flat, x.shape))


def _take_over(x: _core.Tensor, value: _core.Tensor) -> None:
    if x.is_variable:
        _core.assign(x, value)
    else:
        _core._become(x, value)
