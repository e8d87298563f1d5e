# SPDX-License-Identifier: Apache-2.0
"""Triangles, diagonals and products of matrices, as NumPy and PyTorch have them."""
from __future__ import annotations

import builtins
from math import prod
from typing import Any

from . import _core
from ._common import Tensor, _axis_of, _of
from ._record import dtype as _dtype
from ._reductions import _floating, norm, sum
from ._shapes import _promoted, atleast_2d, broadcast_tensors, moveaxis, ravel, unsqueeze

__all__ = [
    "tril", "triu", "diagonal", "diag", "trace", "dot", "outer", "einsum", "tensordot", "inner", "vdot", "kron", "mm", "mv",
    "bmm", "addmm", "addmv", "addr", "baddbmm", "addbmm", "cross", "cdist", "block_diag", "diag_embed", "diagflat", "vander",
    "inverse", "pinverse", "logdet",
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
    return _core.diag(x, k) if x.dtype is not _dtype.bool else _core.cast(_core.diag(_core.cast(x, "u8"), k), "bool")


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


def _reordered(x: Tensor, order: list[int], shape: tuple[int, int]) -> Tensor:
    return _core.reshape(x if order == [*range(x.ndim)] else _core.permute(x, order), shape)


def tensordot(x: Any, y: Any, axes: Any = 2) -> Tensor:
    """Products summed over the last axes of x and the first of y, as many as axes says, or over two lists of axes."""
    x, y = _promoted([_of(x), _of(y)])
    xs, ys = x.shape, y.shape
    if isinstance(axes, int):
        if not 0 <= axes <= builtins.min(len(xs), len(ys)):
            raise IndexError(f"tensordot: no {axes} axes in both {list(xs)} and {list(ys)}")
        of, to = [[*range(len(xs) - axes, len(xs))], [*range(axes)]]
    else:
        of, to = [[a] if isinstance(a, int) else list(a) for a in axes]
        of, to = [_axis_of(x, a, "tensordot") for a in of], [_axis_of(y, a, "tensordot") for a in to]
    if len({*of}) < len(of) or len({*to}) < len(to):
        raise ValueError(f"tensordot: axes {of} and {to}: one is given twice")
    if [xs[a] for a in of] != [ys[a] for a in to]:
        raise ValueError(f"tensordot: axes {of} of {list(xs)} and {to} of {list(ys)} differ in length")
    left, right = [a for a in range(len(xs)) if a not in of], [a for a in range(len(ys)) if a not in to]
    rows, columns = [xs[a] for a in left], [ys[a] for a in right]
    n = prod(xs[a] for a in of)
    z = _core.matmul(_reordered(x, left + of, (prod(rows), n)), _reordered(y, to + right, (n, prod(columns))))
    return _core.reshape(z, rows + columns)


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


def _ranks(call: str, given: tuple[Tensor, ...], ranks: tuple[int, ...]) -> None:
    if tuple(t.ndim for t in given) != ranks:
        raise ValueError(f"{call}: takes tensors of {' and '.join(map(str, ranks))} axes, got "
                         f"{' and '.join(str(list(t.shape)) for t in given)}")


def mm(x: Any, y: Any) -> Tensor:
    """The product of two matrices."""
    a, b = _of(x), _of(y)
    _ranks("mm", (a, b), (2, 2))
    return a @ b


def mv(x: Any, y: Any) -> Tensor:
    """The product of a matrix and a vector."""
    a, b = _of(x), _of(y)
    _ranks("mv", (a, b), (2, 1))
    return a @ b


def bmm(x: Any, y: Any) -> Tensor:
    """The products of two batches of matrices, [B,M,K] and [B,K,N]."""
    a, b = _of(x), _of(y)
    _ranks("bmm", (a, b), (3, 3))
    if a.shape[0] != b.shape[0]:
        raise ValueError(f"bmm: batches {list(a.shape)} and {list(b.shape)} differ in length")
    return a @ b


def _added(x: Any, product: Tensor, beta: float, alpha: float) -> Tensor:
    """beta x + alpha product; with beta 0 whatever x is."""
    scaled = product if alpha == 1 else product * alpha
    return _core.broadcast_to(scaled, scaled.shape) if beta == 0 else scaled + (x if beta == 1 else _of(x) * beta)


def addmm(x: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta x + alpha times the product of two matrices."""
    return _added(x, mm(mat1, mat2), beta, alpha)


def addmv(x: Any, mat: Any, vec: Any, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta x + alpha times the product of a matrix and a vector."""
    return _added(x, mv(mat, vec), beta, alpha)


def addr(x: Any, vec1: Any, vec2: Any, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta x + alpha times the products of all pairs of two vectors' elements."""
    return _added(x, outer(vec1, vec2), beta, alpha)


def baddbmm(x: Any, batch1: Any, batch2: Any, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta x + alpha times the products of two batches of matrices."""
    return _added(x, bmm(batch1, batch2), beta, alpha)


def addbmm(x: Any, batch1: Any, batch2: Any, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta x + alpha times the sum of the products of two batches of matrices."""
    return _added(x, sum(bmm(batch1, batch2), 0), beta, alpha)


def cross(x: Any, y: Any, dim: int = -1) -> Tensor:
    """The cross product of vectors of three elements along an axis; the other axes broadcast."""
    a, b = broadcast_tensors(x, y)
    at = _axis_of(a, dim, "cross")
    if a.shape[at] != 3:
        raise ValueError(f"cross: axis {at} of {list(a.shape)} has {a.shape[at]} elements, and not 3")
    a1, a2 = (_core.roll(a, -k, at) for k in (1, 2))
    b1, b2 = (_core.roll(b, -k, at) for k in (1, 2))
    return a1 * b2 - a2 * b1


def cdist(x: Any, y: Any, p: float = 2.0) -> Tensor:
    """The norms of the differences of all pairs of rows of x [..,P,M] and y [..,R,M]: [..,P,R]."""
    a, b = _promoted([_of(x), _of(y)])
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-1]:
        raise ValueError(f"cdist: takes rows of equal length, [..,P,M] and [..,R,M], got {list(a.shape)} and {list(b.shape)}")
    return norm(unsqueeze(a, -2) - unsqueeze(b, -3), p, -1)


def block_diag(*x: Any) -> Tensor:
    """A matrix with these matrices on its diagonal, else 0; a vector is a row."""
    parts = _promoted([atleast_2d(t) for t in x])
    width, rows, at = builtins.sum(t.shape[1] for t in parts), [], 0
    for t in parts:
        _ranks("block_diag", (t,), (2,))
        rows.append(_core.pad(t, (0, at), (0, width - at - t.shape[1]), 0.0))
        at += t.shape[1]
    return _core.concat(rows, 0)


def diag_embed(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices in the axes dim1 and dim2 of the result, with the last axis of x on a diagonal, the main one or offset above it."""
    x = _of(x)
    rank, n = x.ndim + 1, x.shape[-1] + abs(offset)
    a, b = (d + rank if d < 0 else d for d in (dim1, dim2))
    if not (0 <= a < rank and 0 <= b < rank and a != b):
        raise IndexError(f"diag_embed: no two axes {dim1} and {dim2} in a result of {rank}")
    before = builtins.max(-offset, 0)
    column = _core.pad(x, (0,) * (x.ndim - 1) + (before,), (0,) * (x.ndim - 1) + (n - before - x.shape[-1],), 0)
    rows, columns = _core.iota("i64", (n, n), 0), _core.iota("i64", (n, n), 1)
    y = _core.select(columns - rows == offset, unsqueeze(column, -1), 0)
    return moveaxis(y, (-2, -1), (a, b))


def diagflat(x: Any, k: int = 0) -> Tensor:
    """A matrix with all elements of x on a diagonal, the main one or k above it."""
    return diag(ravel(x), k)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of a vector's elements as rows, N of them, from the highest to 0, or increasing."""
    x = _of(x)
    n = x.shape[0] if N is None else N
    powers = _core.cast(_core.iota("i64", (n,), 0), x.dtype)
    return unsqueeze(x, 1) ** (powers if increasing else (n - 1) - powers)


pinverse, inverse = _core.pinv, _core.inv


def logdet(x: Any) -> Tensor:
    """The logarithm of the determinant of square matrices; NaN where it is negative."""
    sign, log = _core.slogdet(_floating(_of(x)))
    return _core.select(sign < 0, float("nan"), log)
