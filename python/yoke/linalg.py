# SPDX-License-Identifier: Apache-2.0
"""Linear algebra of dense matrices in the last two axes, by the names of numpy.linalg and torch.linalg.  Leading axes are a
batch; integers are taken as f32.

	x = yoke.linalg.solve(a, b)
	u, s, vh = yoke.linalg.svd(a, full_matrices=False)

A matrix without inverse raises IndexError (yoke's ERANGE) when the result is read.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from . import _core, _creation, _matrices, _reductions, _shapes
from ._common import _of
from ._reductions import _floating
from ._shapes import _promoted

Tensor = _core.Tensor

__all__ = ["cholesky", "cond", "det", "eigh", "eigvalsh", "expm", "inv", "lstsq", "lu", "lu_factor", "matrix_exp",
           "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_triangular", "svd",
           "svdvals"]


class QRResult(NamedTuple):
    Q: Tensor | None
    R: Tensor


class SVDResult(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


class SlogdetResult(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


class EighResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class LstsqResult(NamedTuple):
    solution: Tensor
    residuals: Tensor
    rank: Tensor | None
    singular_values: Tensor | None


def __dir__() -> list[str]:
    return __all__


def _real(x: Any) -> Tensor:
    return _floating(_of(x))


def _system(a: Any, b: Any) -> tuple[Tensor, Tensor, bool]:
    """The operands in one dtype; whether b is one right-hand side [n], which becomes a matrix."""
    x, y = _promoted([_real(a), _real(b)])
    return x, (_core.reshape(y, (-1, 1)) if y.ndim == 1 else y), y.ndim == 1


def _shaped(x: Tensor, line: bool) -> Tensor:
    return _core.reshape(x, x.shape[:-1]) if line else x


def inv(a: Any) -> Tensor:
    """The inverse of square matrices."""
    return _core.inv(_real(a))


def det(a: Any) -> Tensor:
    """The determinant; its gradient is finite also for matrices without inverse."""
    return _core.det(_real(a))


def slogdet(a: Any) -> SlogdetResult:
    """The determinant's sign and the logarithm of its modulus."""
    return SlogdetResult(*_core.slogdet(_real(a)))


def solve(a: Any, b: Any, *, left: bool = True) -> Tensor:
    """The x with a x = b, or x a = b if not left, for b [n], as in NumPy, [..,n,k], or a vector [..,n] for each matrix, unless
    that is a matrix for a."""
    x, y = _of(a), _of(b)
    if left and 1 < y.ndim == x.ndim - 1 and y.shape == x.shape[:-1] and y.shape[-2] != x.shape[-1]:
        return _shaped(solve(x, _core.reshape(y, (*y.shape, 1))), True)
    x, y, line = _system(x, y)
    if left:
        return _shaped(_core.solve(x, y), line)
    return _turned(_core.solve(_turned(x), _turned(y)))


def solve_triangular(a: Any, b: Any, *, upper: bool = False, left: bool = True, unitriangular: bool = False) -> Tensor:
    """The x with a x = b, or x a = b if not left, for a triangular a; its other triangle is not read."""
    x, y, line = _system(a, b)
    flags = (_core.UPPER if upper else 0) | (_core.UNIT if unitriangular else 0)
    if left:
        return _shaped(_core.solve_triangular(x, y, flags), line)
    return _turned(_core.solve_triangular(x, _turned(y), flags | _core.TRANSPOSED))


def _turned(x: Tensor) -> Tensor:
    return _shapes.swapaxes(x, -1, -2)


def lstsq(a: Any, b: Any, rcond: float | None = None, *, driver: str | None = None) -> LstsqResult:
    """The x of least norm that minimizes |a x - b|, for b [m] or [..,m,k]; also the sums of squared residuals [..,k], the rank and
    the singular values of a.  Values up to rcond times the largest count as 0; by default the larger side times the dtype's
    precision.  driver="gels" takes the matrix to have full rank and uses QR, which is faster; rank and values are None."""
    x, y, line = _system(a, b)
    if driver not in (None, "gels", "gelsd", "gelss", "gelsy"):
        raise ValueError(f"lstsq: driver is 'gels', 'gelsd', 'gelss' or 'gelsy', not {driver!r}")
    full_rank = driver == "gels"
    solution = _core.lstsq(x, y, full_rank, -1.0 if rcond is None else float(rcond))
    residuals = _reductions.sum(_core.square(_core.matmul(x, solution) - y), -2)
    if full_rank:
        return LstsqResult(_shaped(solution, line), residuals, None, None)
    return LstsqResult(_shaped(solution, line), residuals, matrix_rank(x, rcond), svdvals(x))


def qr(a: Any, mode: str = "reduced") -> QRResult:
    """Q and R, upper triangular, with a = Q R; mode "reduced", "complete" (a square Q) or "r" (R alone, Q is None)."""
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"qr: mode is 'reduced', 'complete' or 'r', not {mode!r}")
    q, r = _core.qr(_real(a), mode == "complete")
    return QRResult(None if mode == "r" else q, r)


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """U, S, descending, and Vh with a = U diag(S) Vh; without compute_uv S alone."""
    u, s, vh = _core.svd(_real(a), bool(full_matrices) and bool(compute_uv))
    return SVDResult(u, s, vh) if compute_uv else s


def svdvals(a: Any) -> Tensor:
    """The singular values, descending."""
    return _core.svd(_real(a), False)[1]


def pinv(a: Any, rcond: float | None = None, *, rtol: float | None = None) -> Tensor:
    """The pseudoinverse of Moore and Penrose; singular values up to rcond (rtol) times the largest count as 0, by default the
    larger side times the dtype's precision."""
    if rcond is not None and rtol is not None:
        raise TypeError("pinv: rcond and rtol are one argument; give one of them")
    limit = rcond if rtol is None else rtol
    return _core.pinv(_real(a), -1.0 if limit is None else float(limit))


def matrix_rank(a: Any, tol: float | None = None) -> Tensor:
    """How many singular values are above tol times the largest, by default the larger side times the dtype's precision."""
    x = _real(a)
    s = svdvals(x)
    if not s.shape[-1]:
        return _core.full("i64", s.shape[:-1], 0)
    limit = max(x.shape[-2:]) * (2.0**-52 if x.dtype.name == "f64" else 2.0**-23) if tol is None else tol
    return _reductions.count_nonzero(s > _reductions.max(s, -1, keepdims=True) * limit, -1)


def cond(a: Any, p: Any = None) -> Tensor:
    """The condition number: the largest over the smallest singular value, or (p) the norm times that of the inverse."""
    x = _real(a)
    if p in (None, 2, -2):
        s = svdvals(x)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return norm(x, p, axis=(-2, -1)) * norm(inv(x), p, axis=(-2, -1))


def matrix_exp(a: Any) -> Tensor:
    """The exponential of square matrices."""
    return _core.matrix_exp(_real(a))


expm = matrix_exp


def matrix_power(a: Any, n: int) -> Tensor:
    """a times itself, n factors; for n < 0 the power of the inverse."""
    return _core.matrix_power(_real(a), n)


def multi_dot(arrays: Any) -> Tensor:
    """The product of two or more matrices, in the order that needs the fewest multiplications."""
    factors = list(arrays)
    if len(factors) < 2:
        raise ValueError("multi_dot: takes at least two matrices")
    x = _promoted([_real(f) for f in factors])
    first, last = x[0].ndim == 1, x[-1].ndim == 1
    if first:
        x[0] = _core.reshape(x[0], (1, -1))
    if last:
        x[-1] = _core.reshape(x[-1], (-1, 1))
    sides = [t.shape[-2] for t in x] + [x[-1].shape[-1]]
    best: dict[tuple[int, int], tuple[float, int]] = {(i, i): (0.0, i) for i in range(len(x))}
    for width in range(1, len(x)):
        for i in range(len(x) - width):
            j = i + width
            best[i, j] = min((best[i, k][0] + best[k + 1, j][0] + float(sides[i]) * sides[k + 1] * sides[j + 1], k)
                             for k in range(i, j))

    def product(i: int, j: int) -> Tensor:
        k = best[i, j][1]
        return x[i] if i == j else _core.matmul(product(i, k), product(k + 1, j))

    y = product(0, len(x) - 1)
    return _core.reshape(y, y.shape[1:] if first and not last else y.shape[:-1] if last and not first else ()) if first or last else y


def cholesky(a: Any, *, upper: bool = False) -> Tensor:
    """The lower triangular L with L L' = a, or its transpose; only a's lower triangle is read."""
    lower = _core.cholesky(_real(a))
    return _turned(lower) if upper else lower


def eigh(a: Any, UPLO: str = "L") -> EighResult:
    """Eigenvalues, ascending, and eigenvectors, one per column, of symmetric matrices, of which only the lower (or upper)
    triangle is read."""
    if UPLO not in ("L", "U"):
        raise ValueError(f"eigh: UPLO is 'L' or 'U', not {UPLO!r}")
    x = _real(a)
    return EighResult(*_core.eigh(_turned(x) if UPLO == "U" else x))


def eigvalsh(a: Any, UPLO: str = "L") -> Tensor:
    """Eigenvalues of symmetric matrices, ascending."""
    return eigh(a, UPLO).eigenvalues


def lu_factor(a: Any) -> tuple[Tensor, Tensor]:
    """L, below its diagonal of ones, and U in one matrix, and for each row of L U the row of a that it is, i64.  (SciPy and PyTorch
    give exchanges of rows instead.)"""
    return _core.lu(_real(a))


def lu(a: Any) -> tuple[Tensor, Tensor, Tensor]:
    """P, L and U with a = P L U, as in SciPy and PyTorch."""
    x = _real(a)
    factors, perm = _core.lu(x)
    m, n = x.shape[-2:]
    k = min(m, n)
    lower = _matrices.tril(factors[..., :, :k], -1) + _creation.eye(m, k, dtype=x.dtype)
    rows = _core.cast(_shapes.expand_dims(perm, -2) == _shapes.reshape(_creation.arange(m, dtype="i64"), (m, 1)), x.dtype)
    return rows, lower, _matrices.triu(factors[..., :k, :])


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, *, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The norm of vectors, along one axis, or of matrices, along two: ord None or "fro", "nuc", 2, -2 (singular values), 1, -1, inf,
    -inf.  Without axis and ord the root of the sum of all squares."""
    t = _real(x)
    axis = dim if axis is None else axis
    keep = keepdims or keepdim
    if axis is None and ord is not None:
        axis = tuple(range(t.ndim)) if t.ndim == 2 else 0 if t.ndim == 1 else None
        if axis is None:
            raise ValueError(f"norm: a tensor of {t.ndim} axes needs axis")
    if not isinstance(axis, (tuple, list)) or len(axis) != 2 or ord in (None, "fro"):
        return _reductions.norm(t, 2.0 if ord in (None, "fro") else ord, axis, keepdims=keep)
    row, column = (a % t.ndim for a in axis)
    if ord in ("nuc", 2, -2):
        s = svdvals(_shapes.moveaxis(t, (row, column), (-2, -1)))
        y = _reductions.sum(s, -1) if ord == "nuc" else s[..., 0] if ord == 2 else s[..., -1]
    elif ord in (1, -1, float("inf"), float("-inf")):
        first, second = (row, column) if abs(ord) == 1 else (column, row)
        sums = _reductions.sum(abs(t), first, keepdims=True)
        y = _shapes.reshape((_reductions.max if ord > 0 else _reductions.min)(sums, second, keepdims=True), [n for k, n in enumerate(t.shape) if k not in (row, column)])
    else:
        raise ValueError(f"norm: no norm of matrices {ord!r}")
    return _shapes.reshape(y, [1 if k in (row, column) else n for k, n in enumerate(t.shape)]) if keep else y
