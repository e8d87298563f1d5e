# SPDX-License-Identifier: Apache-2.0
"""Random numbers, by the names of numpy.random: counter-based (Philox), so that they follow from the seed, the scope and the
number of the call alone.

	yoke.random.seed(1)
	x = yoke.random.normal(0, 1, (2, 3))
"""
from __future__ import annotations

from typing import Any, Sequence

from . import _core
from ._common import _shape_of
from ._arrays import tensor

Tensor = _core.Tensor
Size = int | Sequence[int] | None

__all__ = ["choice", "normal", "permutation", "rand", "randint", "randn", "seed", "shuffle", "uniform"]


def __dir__() -> list[str]:
    return __all__


def seed(seed: int, step: int = 0) -> None:
    """The seed of all random numbers that are recorded from now on, first weights and dropout included."""
    _core.random_set(seed ^ 1, step)  # a change, which counts calls anew
    _core.random_set(seed, step)


def _size(call: str, size: Size) -> tuple[int, ...]:
    return () if size is None else _shape_of(call, (size,))


def uniform(low: Any = 0.0, high: Any = 1.0, size: Size = None, *, dtype: Any = "f32") -> Tensor:
    """Uniform in low .. high, without high, in 2^24 steps."""
    u = _core.uniform(dtype, _size("uniform", size))
    return u if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1) else \
        u * (high - low) + low


def normal(loc: Any = 0.0, scale: Any = 1.0, size: Size = None, *, dtype: Any = "f32") -> Tensor:
    """Normal of mean loc and deviation scale."""
    z = _core.normal(dtype, _size("normal", size))
    return z if isinstance(loc, (int, float)) and isinstance(scale, (int, float)) and (loc, scale) == (0, 1) else z * scale + loc


def rand(*size: int, dtype: Any = "f32") -> Tensor:
    """Uniform in 0 .. 1, of a shape given as integers."""
    return uniform(0.0, 1.0, _shape_of("rand", size), dtype=dtype)


def randn(*size: int, dtype: Any = "f32") -> Tensor:
    """Normal of mean 0 and deviation 1, of a shape given as integers."""
    return normal(0.0, 1.0, _shape_of("randn", size), dtype=dtype)


def randint(low: int, high: int | None = None, size: Size = None, *, dtype: Any = "i64") -> Tensor:
    """Whole numbers low .. high - 1, or 0 .. low - 1; at most 2^31 of them."""
    if high is None:
        low, high = 0, low
    n = high - low
    if not 0 < n <= 1 << 31:
        raise ValueError(f"randint: {n} numbers to choose from; 1 to 2^31 are possible")
    bits = _core.cast(_core.rand_bits(_size("randint", size)), "i64") & 0xFFFFFFFF
    return _core.cast((bits * n >> 32) + low, dtype)


def permutation(x: Any) -> Tensor:
    """0 .. x - 1 in random order, or the elements of a tensor along its first axis."""
    n = x if isinstance(x, int) else tensor(x).shape[0]
    order = _core.sort(_core.cast(_core.rand_bits((n,)), "i64"), 0)[1]
    return order if isinstance(x, int) else _core.gather(tensor(x), order, 0)


shuffle = permutation


def choice(x: Any, size: Size = None, replace: bool = True) -> Tensor:
    """Elements of a tensor's first axis, or of 0 .. x - 1, drawn with or without putting them back."""
    n = x if isinstance(x, int) else tensor(x).shape[0]
    dims = _size("choice", size)
    count = 1
    for k in dims:
        count *= k
    if not replace and count > n:
        raise ValueError(f"choice: {count} elements of {n} without putting them back")
    at = randint(n, size=dims) if replace else _core.reshape(permutation(n)[:count], dims)
    return at if isinstance(x, int) else _core.gather(tensor(x), at, 0)
