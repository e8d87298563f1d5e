# SPDX-License-Identifier: Apache-2.0
"""Random numbers, by the names of numpy.random: counter-based (Philox), so that they follow from the seed, the scope, the
number of the call and how often the scope was opened since the seed was set.

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

__all__ = [
    "bernoulli", "choice", "exponential", "gumbel", "laplace", "lognormal", "multinomial", "normal", "permutation", "rand",
    "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "seed", "shuffle", "uniform",
]


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


def randint(low: int, high: Any = None, size: Size = None, *, dtype: Any = "i64") -> Tensor:
    """Whole numbers low .. high - 1, or 0 .. low - 1; at most 2^31 of them.  randint(high, shape) works, too, as in PyTorch."""
    if size is None and isinstance(high, (tuple, list)):
        high, size = None, high
    if high is None:
        low, high = 0, low
    n = high - low
    if not 0 < n <= 1 << 31:
        raise ValueError(f"randint: {n} numbers to choose from; 1 to 2^31 are possible")
    bits = _core.cast(_core.rand_bits(_size("randint", size)), "i64") & 0xFFFFFFFF
    return _core.cast((bits * n >> 32) + low, dtype)


def rand_like(x: Any, *, dtype: Any = None) -> Tensor:
    """Uniform in 0 .. 1, of the shape and dtype of x."""
    return uniform(size=tensor(x).shape, dtype=dtype or tensor(x).dtype)


def randn_like(x: Any, *, dtype: Any = None) -> Tensor:
    """Normal of mean 0 and deviation 1, of the shape and dtype of x."""
    return normal(size=tensor(x).shape, dtype=dtype or tensor(x).dtype)


def randint_like(x: Any, low: int, high: int | None = None, *, dtype: Any = None) -> Tensor:
    """Whole numbers low .. high - 1, or 0 .. low - 1, of the shape and dtype of x."""
    return randint(low, high, tensor(x).shape, dtype=dtype or tensor(x).dtype)


def bernoulli(p: Any, size: Size = None, *, dtype: Any = None) -> Tensor:
    """1 with probability p, else 0, of the shape of p and its dtype; or, p being a number, of a shape given as size, f32."""
    chances = tensor(p) if size is None else None
    dims = _size("bernoulli", size) if chances is None else chances.shape
    to = dtype or ("f32" if chances is None or not chances.dtype.is_floating_point else chances.dtype)
    return _core.cast(uniform(size=dims) < p, to)


def _opened(call: str, size: Size) -> Tensor:
    """Uniform in 0 .. 1, with neither of them, f64: the middles of 2^24 intervals."""
    return _core.uniform("f64", _size(call, size)) + 2.0 ** -25


def _scaled(x: Tensor, dtype: Any, scale: Any, loc: Any) -> Tensor:
    """x in a dtype, times scale, plus loc."""
    y: Tensor = _core.cast(x, dtype) * scale + loc
    return y


def exponential(scale: Any = 1.0, size: Size = None, *, dtype: Any = "f32") -> Tensor:
    """Exponential of mean scale."""
    return _scaled(-_core.log(_opened("exponential", size)), dtype, scale, 0.0)


def gumbel(loc: Any = 0.0, scale: Any = 1.0, size: Size = None, *, dtype: Any = "f32") -> Tensor:
    """Gumbel's distribution of mode loc."""
    return _scaled(-_core.log(-_core.log(_opened("gumbel", size))), dtype, scale, loc)


def laplace(loc: Any = 0.0, scale: Any = 1.0, size: Size = None, *, dtype: Any = "f32") -> Tensor:
    """Laplace's distribution of mean loc."""
    u = _opened("laplace", size) - 0.5
    return _scaled(-_core.sign(u) * _core.log1p(-2.0 * _core.abs(u)), dtype, scale, loc)


def lognormal(mean: Any = 0.0, sigma: Any = 1.0, size: Size = None, *, dtype: Any = "f32") -> Tensor:
    """exp of normal numbers of this mean and deviation."""
    return _core.exp(normal(mean, sigma, size, dtype=dtype))


def multinomial(input: Any, num_samples: int, replacement: bool = False) -> Tensor:
    """Indices of num_samples draws from weights [K], or [B,K] for each row, which need not add up to 1; i64 [num_samples], or
    [B,num_samples].  Without replacement no index occurs twice, and there must be that many weights above 0."""
    w = _core.cast(tensor(input), "f64")
    if w.ndim not in (1, 2) or num_samples < 1 or not w.shape[-1] or (not replacement and num_samples > w.shape[-1]):
        raise ValueError(f"multinomial: {num_samples} draws {'with' if replacement else 'without'} replacement from weights "
                         f"{list(w.shape)}; they are [K] or [B,K]")
    if not replacement:
        race = _core.log(w) + gumbel(size=w.shape, dtype="f64")
        return _core.topk(race, num_samples, -1, True)[1]
    sums = _core.cumsum(w, -1, False)
    total = _core.slice(sums, -1, w.shape[-1] - 1, w.shape[-1])
    u = _core.uniform("f64", w.shape[:-1] + (num_samples,))
    return _core.searchsorted(sums, u * total, True)


def permutation(x: Any) -> Tensor:
    """0 .. x - 1 in random order, or the elements of a tensor along its first axis."""
    n = x if isinstance(x, int) else tensor(x).shape[0]
    order = _core.sort(_core.cast(_core.rand_bits((n,)), "i64"), 0)[1]
    return order if isinstance(x, int) else _core.gather(tensor(x), order, 0)


shuffle = randperm = permutation


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
