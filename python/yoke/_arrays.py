# SPDX-License-Identifier: Apache-2.0
"""Tensors from Python values: numbers, lists, arrays."""
from __future__ import annotations

from typing import Any

from . import _core
from ._record import dtype


def host(x: Any, to: dtype | None) -> Any:
    """A NumPy array, row major and native, whose elements yoke has a type for, as bytes that a buffer shows."""
    import numpy

    a = numpy.asarray(x)
    if to is not None and to.name == "bf16" and a.dtype.name != "bfloat16":
        a = _bits_of_bf16(a.astype("f4"))
    elif to is not None:
        a = a.astype(dtype(to).numpy, copy=False)
    elif a.dtype.kind == "f" and not hasattr(x, "dtype") and a.dtype.itemsize == 8:
        a = a.astype("f4")  # of Python's numbers, as PyTorch has it
    if not a.dtype.isnative:
        a = a.astype(a.dtype.newbyteorder("="))
    a = a if a.flags.c_contiguous else numpy.ascontiguousarray(a)
    if a.dtype.name == "bfloat16":
        return a.view("u2")  # buffers have no letter for it
    return a


def _bits_of_bf16(a: Any) -> Any:
    """The upper halves of f32, rounded to nearest, ties to even; NaN stays one.  NumPy alone has no bf16."""
    import numpy

    bits = a.view("u4") if a.ndim else a.reshape(1).view("u4").reshape(())
    up = bits + 0x7FFF + (bits >> 16 & 1)
    return numpy.asarray(numpy.where(numpy.isnan(a), bits >> 16 | 0x40, up >> 16)).astype("u2")


def tensor(data: Any, dtype: Any = None) -> _core.Tensor:
    """A tensor of a number, nested lists or an array, copied.  Floating-point numbers become f32, arrays keep their dtype."""
    if isinstance(data, _core.Tensor):
        return data if dtype is None else _core.cast(data, dtype)
    if isinstance(dtype, (int, float)):
        raise TypeError(f"tensor: {dtype!r} is no dtype; give a name, such as 'f32'")
    import numpy

    if not hasattr(data, "dtype") and not hasattr(data, "__array__"):
        data = _nested(data)
    a = host(data, None if dtype is None else _dtype(dtype))
    kind = _dtype(dtype) if dtype is not None else _dtype("bf16" if numpy.asarray(data).dtype.name == "bfloat16" else a.dtype)
    return _core._from_host(a, kind)


def _nested(x: Any) -> Any:
    """Lists with tensors of one element in them, as numbers."""
    if isinstance(x, _core.Tensor):
        return x.item() if x.ndim == 0 else x.numpy()
    if isinstance(x, (list, tuple)):
        return [_nested(y) for y in x]
    return x


def from_(data: Any, dtype: Any = None) -> _core.Tensor:
    """tensor, by the name that it has in C."""
    return tensor(data, dtype)


def asarray(data: Any, dtype: Any = None) -> _core.Tensor:
    """tensor; a tensor of that dtype is returned as it is."""
    return data if isinstance(data, _core.Tensor) and dtype is None else tensor(data, dtype)


def put(variable: _core.Tensor, data: Any) -> None:
    """A new version of a variable, copied; the shapes are the same, the dtype is converted."""
    if isinstance(data, _core.Tensor):
        data = (_core.cast(data, "f32") if data.dtype.name == "bf16" else data).numpy()
    a = host(data, variable.dtype)
    if tuple(a.shape) != tuple(variable.shape):
        raise ValueError(f"put: the variable is {list(variable.shape)}, the data are {list(a.shape)}")
    _core._put(variable, a)


_dtype = dtype


def variable_of(data: Any, name: str = "", dtype: Any = None) -> _core.Tensor:
    """A variable with data as its first version."""
    first = tensor(data, dtype)
    v = _core.variable(name, first.dtype, first.shape)
    put(v, first)
    return v


# ---- copies and pickles ----

def packed(x: _core.Tensor) -> tuple[Any, str]:
    """A tensor's elements as an array that any NumPy has, and its dtype."""
    return (_core.cast(x, "f32") if x.dtype.name == "bf16" else x).numpy().copy(), x.dtype.name


def unpacked(array: Any, dtype: str, variable: bool) -> _core.Tensor:
    return variable_of(array, dtype=dtype) if variable else tensor(array, dtype)
