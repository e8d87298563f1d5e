# SPDX-License-Identifier: Apache-2.0
"""Functions of elements, as NumPy and PyTorch have them."""
from __future__ import annotations

from typing import Any

from . import _core
from ._common import Tensor, _is_integer, _no_out, _of
from ._reductions import _averaged, _floating, _truth, all
from ._creation import ones_like, zeros_like

__all__ = [
    "add", "subtract", "multiply", "divide", "true_divide", "div", "mod", "fmod", "negative", "absolute", "pad", "clip",
    "clamp", "round", "floor", "ceil", "trunc", "isnan", "isinf", "isfinite", "nan_to_num", "sign", "log2", "log10", "exp2",
    "power", "float_power", "logical_and", "logical_or", "logical_xor", "logical_not", "isclose", "allclose", "array_equal",
    "clone", "detach", "tan", "sinh", "cosh", "cbrt", "hypot", "logaddexp", "deg2rad", "rad2deg", "copy",
]


def clip(x: Any, min: Any = None, max: Any = None, *, a_min: Any = None, a_max: Any = None, out: None = None) -> Tensor:
    """No less than min, no more than max; either may be None.  NaN stays."""
    _no_out("clip", out)
    return _core.clamp(x, a_min if min is None else min, a_max if max is None else max)


def clamp(x: Any, lo: Any = None, hi: Any = None, *, min: Any = None, max: Any = None) -> Tensor:
    """No less than lo, no more than hi; either may be None.  NaN stays.  min and max are PyTorch's names of them."""
    return _core.clamp(x, min if lo is None else lo, max if hi is None else hi)


def round(x: Any, decimals: int = 0, *, out: None = None) -> Tensor:
    """Rounded to so many decimals, half to even."""
    _no_out("round", out)
    y: Tensor = _of(x)
    if _is_integer(y):
        return y if decimals >= 0 else _core.cast(round(_core.cast(y, "f64"), decimals), y.dtype)
    if decimals == 0:
        return _core.round(y)
    scale = 10.0 ** abs(decimals)
    return _core.round(y * scale) / scale if decimals > 0 else _core.round(y / scale) * scale


def floor(x: Any) -> Tensor:
    """The largest whole number that is not above; integers stay."""
    return _of(x) if _is_integer(_of(x)) else _core.floor(x)


def ceil(x: Any) -> Tensor:
    """The smallest whole number that is not below; integers stay."""
    return _of(x) if _is_integer(_of(x)) else _core.ceil(x)


def trunc(x: Any) -> Tensor:
    """Rounded towards 0; integers stay."""
    return _of(x) if _is_integer(_of(x)) else _core.sign(x) * _core.floor(_core.abs(x))


def isnan(x: Any) -> Tensor:
    """Is the element NaN?"""
    y: Tensor = _of(x)
    return y != y


def isinf(x: Any) -> Tensor:
    """Is the element infinite?"""
    y: Tensor = _of(x)
    if _is_integer(y):
        return zeros_like(y, "bool")
    return (y == float("inf")) | (y == float("-inf"))


def isfinite(x: Any) -> Tensor:
    """Is the element neither infinite nor NaN?"""
    x = _of(x)
    return ones_like(x, "bool") if _is_integer(x) else _core.isfinite(x)


def nan_to_num(x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """With numbers for NaN and infinities; by default 0 and the largest finite ones."""
    z: Tensor = _of(x)
    if _is_integer(z):
        return z
    top = {"f16": 65504.0, "bf16": 3.3895313892515355e38, "f64": 1.7976931348623157e308}.get(z.dtype.name, 3.4028234663852886e38)
    y = _core.select(z == float("inf"), top if posinf is None else posinf, z)
    y = _core.select(z == float("-inf"), -top if neginf is None else neginf, y)
    return _core.select(isnan(z), nan, y)


def sign(x: Any) -> Tensor:
    """-1, 0 or 1; NaN of NaN."""
    return _core.sign(_of(x))


def add(x: Any, y: Any) -> Tensor:
    """x + y, with broadcasting; dtypes are promoted."""
    return _core.add(x, y)


def subtract(x: Any, y: Any) -> Tensor:
    """x - y, with broadcasting; dtypes are promoted."""
    return _core.sub(x, y)


def multiply(x: Any, y: Any) -> Tensor:
    """x * y, with broadcasting; dtypes are promoted."""
    return _core.mul(x, y)


def divide(x: Any, y: Any) -> Tensor:
    """x / y, with broadcasting; of integers f32."""
    return _of(x) / y if isinstance(x, Tensor) or not isinstance(y, Tensor) else x / y  # type: ignore[no-any-return]


true_divide = divide


def div(x: Any, y: Any, *, rounding_mode: str | None = None) -> Tensor:
    """x / y, of integers f32; rounded "floor" or "trunc" if rounding_mode says so, as in PyTorch."""
    if rounding_mode is None:
        return divide(x, y)
    if rounding_mode not in ("floor", "trunc"):
        raise ValueError(f"div: rounding_mode is 'floor', 'trunc' or None, not {rounding_mode!r}")
    if rounding_mode == "floor":
        return _core.floor_div(x, y)
    q = _core.div(x, y)
    return q if _is_integer(q) else trunc(q)


def mod(x: Any, y: Any) -> Tensor:
    """The remainder of floor division, with the sign of y, as Python's % and NumPy's mod; fmod has the sign of x."""
    return _core.remainder(x, y)


def fmod(x: Any, y: Any) -> Tensor:
    """The remainder of truncated division, with the sign of x, as C's %."""
    return _core.mod(x, y)


def negative(x: Any) -> Tensor:
    """-x."""
    return _core.neg(x)


def absolute(x: Any) -> Tensor:
    """|x|."""
    return _core.abs(x)


def pad(x: Any, lo: Any, hi: Any = None, value: float = 0.0) -> Tensor:
    """A value added before and after each axis.  lo and hi: how many elements, for each axis, before and after; or, as NumPy's
    pad has it, lo alone: a number, a pair (before, after), or a pair for each axis."""
    x = _of(x)
    if hi is None:
        import numpy

        pairs = numpy.broadcast_to(numpy.asarray(lo), (x.ndim, 2)) if x.ndim else numpy.zeros((0, 2), int)
        lo, hi = [int(a) for a, _ in pairs], [int(b) for _, b in pairs]
    return _core.pad(x, lo, hi, value)


def log2(x: Any) -> Tensor:
    """The logarithm to base 2."""
    return _core.log(x) * 1.4426950408889634


def log10(x: Any) -> Tensor:
    """The logarithm to base 10."""
    return _core.log(x) * 0.4342944819032518


def exp2(x: Any) -> Tensor:
    """2 to the power x."""
    return _core.exp(_floating(_of(x)) * 0.6931471805599453)


def power(x: Any, y: Any) -> Tensor:
    """x to the power y."""
    base, exponent = _of(x), y if isinstance(y, (int, float)) else _of(y)
    return base ** exponent


def float_power(x: Any, y: Any) -> Tensor:
    """x to the power y, in f64."""
    return _core.cast(_of(x), "f64") ** (_core.cast(y, "f64") if isinstance(y, Tensor) else y)


def logical_and(x: Any, y: Any) -> Tensor:
    """Are both true, or not 0?"""
    return _truth(_of(x)) & _truth(_of(y))


def logical_or(x: Any, y: Any) -> Tensor:
    """Is either true, or not 0?"""
    return _truth(_of(x)) | _truth(_of(y))


def logical_xor(x: Any, y: Any) -> Tensor:
    """Is one true, or not 0, and the other not?"""
    return _truth(_of(x)) ^ _truth(_of(y))


def logical_not(x: Any) -> Tensor:
    """Is it false, or 0?"""
    return ~_truth(_of(x))


def isclose(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """|x - y| <= atol + rtol |y|; infinities of one sign are close, NaNs if equal_nan says so."""
    x, y = _of(x), _of(y)
    both = _core.isfinite(_floating(x)) & _core.isfinite(_floating(y))
    a, b = _averaged(x, "f64"), _averaged(y, "f64")
    close = _core.select(both, _core.abs(a - b) <= _core.abs(b) * rtol + atol, a == b)
    return close | (isnan(x) & isnan(y)) if equal_nan else close


def allclose(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Are all elements close (isclose)?  It reads them."""
    return bool(all(isclose(x, y, rtol, atol, equal_nan)))


def array_equal(x: Any, y: Any) -> bool:
    """Have both one shape and equal elements?  It reads them."""
    x, y = _of(x), _of(y)
    return x.shape == y.shape and bool(all(x == y))


def clone(x: Any) -> Tensor:
    """A value of its own with the same elements, through which gradients pass; of a variable its current version."""
    x = _of(x)
    return _core.reshape(x, x.shape)


copy = clone


def detach(x: Any) -> Tensor:
    """The same elements, through which no gradient passes."""
    return _core.stop_grad(x)


def tan(x: Any) -> Tensor:
    """The tangent."""
    return _core.sin(x) / _core.cos(x)


def sinh(x: Any) -> Tensor:
    """The hyperbolic sine."""
    x = _floating(_of(x))
    return (_core.expm1(x) - _core.expm1(-x)) * 0.5


def cosh(x: Any) -> Tensor:
    """The hyperbolic cosine."""
    x = _floating(_of(x))
    return (_core.exp(x) + _core.exp(-x)) * 0.5


def cbrt(x: Any) -> Tensor:
    """The cube root."""
    x = _floating(_of(x))
    return _core.sign(x) * _core.abs(x) ** (1 / 3)


def hypot(x: Any, y: Any) -> Tensor:
    """The root of x^2 + y^2, without overflow."""
    return _core.hypot(_floating(_of(x)), _floating(_of(y)))


def logaddexp(x: Any, y: Any) -> Tensor:
    """The logarithm of exp(x) + exp(y), without overflow."""
    a, b = _floating(_of(x)), _floating(_of(y))
    large = _core.max(a, b)
    return _core.select(isinf(large), large, large + _core.log1p(_core.exp(-_core.abs(a - b))))


def deg2rad(x: Any) -> Tensor:
    """Degrees as radians."""
    return _floating(_of(x)) * 0.017453292519943295


def rad2deg(x: Any) -> Tensor:
    """Radians as degrees."""
    return _floating(_of(x)) * 57.29577951308232
