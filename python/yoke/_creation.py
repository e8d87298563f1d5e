# SPDX-License-Identifier: Apache-2.0
"""Tensors of given values, as NumPy has them."""
from __future__ import annotations

from typing import Any

from . import _core
from ._arrays import tensor
from ._common import Tensor, _of, _shape_of
from ._shapes import broadcast_to, ravel
from ._record import dtype as _dtype

__all__ = [
    "zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "eye", "arange", "linspace", "logspace", "meshgrid",
    "one_hot", "empty", "empty_like", "identity", "hann_window", "hamming_window", "blackman_window", "bartlett_window",
    "kaiser_window",
]


def _made_of(call: str, shape: tuple[Any, ...], dtype: Any) -> tuple[tuple[int, ...], Any]:
    """A shape, and an element type after it."""
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
    if ids.dtype is not _dtype.i64 and ids.dtype is not _dtype.i32:
        if ids.dtype.is_floating_point:
            raise TypeError(f"one_hot: ids are integers, got {ids.dtype.name} {list(ids.shape)}")
        ids = _core.cast(ids, "i64")
    n = num_classes if num_classes >= 0 else int(_core.reduce_max(ids).item()) + 1 if ids.size else 0
    return _core.one_hot(ids, n, dtype)


def _window(call: str, n: int, periodic: bool, dtype: Any, fn: Any) -> Tensor:
    """The window fn(n), symmetric; periodic: that of n + 1 without its last element."""
    if n < 0:
        raise ValueError(f"{call}: {n} elements")
    return tensor(fn(n + 1)[:-1] if periodic and n > 1 else fn(n), "f32" if dtype is None else dtype)


def hann_window(n: int, periodic: bool = True, *, dtype: Any = None) -> Tensor:
    """Hann's window of n elements, as PyTorch's; periodic is for spectra, otherwise it is symmetric (NumPy's hanning)."""
    import numpy

    return _window("hann_window", n, periodic, dtype, numpy.hanning)


def hamming_window(n: int, periodic: bool = True, *, dtype: Any = None) -> Tensor:
    """Hamming's window of n elements, periodic or symmetric."""
    import numpy

    return _window("hamming_window", n, periodic, dtype, numpy.hamming)


def blackman_window(n: int, periodic: bool = True, *, dtype: Any = None) -> Tensor:
    """Blackman's window of n elements, periodic or symmetric."""
    import numpy

    return _window("blackman_window", n, periodic, dtype, numpy.blackman)


def bartlett_window(n: int, periodic: bool = True, *, dtype: Any = None) -> Tensor:
    """Bartlett's window of n elements, a triangle, periodic or symmetric."""
    import numpy

    return _window("bartlett_window", n, periodic, dtype, numpy.bartlett)


def kaiser_window(n: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None) -> Tensor:
    """Kaiser's window of n elements, periodic or symmetric; beta is its shape."""
    import numpy

    return _window("kaiser_window", n, periodic, dtype, lambda k: numpy.kaiser(k, beta))
