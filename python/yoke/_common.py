# SPDX-License-Identifier: Apache-2.0
"""Arguments as the functions take them: tensors, axes and shapes."""
from __future__ import annotations

import builtins
from typing import Any, Sequence

from . import _core
from ._arrays import tensor
from ._record import dtype as _dtype

Tensor = _core.Tensor
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
