# SPDX-License-Identifier: Apache-2.0
"""Triangles, diagonals and products, as NumPy has them."""
from __future__ import annotations

from typing import Any

from . import _core
from ._common import Tensor, _axis_of, _of
from ._shapes import _promoted, ravel
from ._reductions import sum

__all__ = [
    "tril", "triu", "diagonal", "diag", "trace", "dot", "outer", "einsum", "tensordot", "inner", "vdot", "kron",
]


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
