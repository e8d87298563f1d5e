# SPDX-License-Identifier: Apache-2.0
"""Functions of elements, as NumPy and PyTorch have them."""
from __future__ import annotations

import builtins
from typing import Any

from . import _core
from ._common import Axis, Tensor, _is_integer, _no_out, _of
from ._reductions import _averaged, _floating, _truth, all, amax, amin
from ._creation import ones_like, zeros_like

__all__ = [
    "add", "subtract", "multiply", "divide", "true_divide", "div", "mod", "fmod", "negative", "absolute", "pad", "clip",
    "clamp", "round", "floor", "ceil", "trunc", "isnan", "isinf", "isfinite", "nan_to_num", "sign", "log2", "log10", "exp2",
    "power", "float_power", "logical_and", "logical_or", "logical_xor", "logical_not", "isclose", "allclose", "array_equal",
    "clone", "detach", "tan", "sinh", "cosh", "cbrt", "hypot", "copysign", "logaddexp", "deg2rad", "rad2deg", "copy", "reciprocal",
    "positive", "frac", "signbit", "asinh", "acosh", "atanh", "sinc", "logit", "xlogy", "logaddexp2", "heaviside", "fmax",
    "fmin", "lerp", "addcmul", "addcdiv", "clamp_min", "clamp_max", "aminmax", "isposinf", "isneginf", "equal", "not_equal",
    "greater", "greater_equal", "less", "less_equal", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not",
    "floor_divide", "fix", "arcsin", "arccos", "arctan", "arctan2", "arcsinh", "arccosh", "arctanh",
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


def copysign(x: Any, y: Any) -> Tensor:
    """x with the sign of y, also of a zero or NaN."""
    return _core.copysign(_floating(_of(x)), _floating(_of(y)))


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


def reciprocal(x: Any) -> Tensor:
    """1 / x; of integers f32."""
    return _core.recip(_floating(_of(x)))


def positive(x: Any) -> Tensor:
    """x itself."""
    return _of(x)


def frac(x: Any) -> Tensor:
    """The fractional part, with the sign of x."""
    return _of(x) - trunc(x)


def signbit(x: Any) -> Tensor:
    """Is the sign negative?  Also of -0.0 and NaN."""
    y: Tensor = _of(x)
    return y < 0 if _is_integer(y) else _core.copysign(ones_like(y), y) < 0


_LARGE = 1e8  # above it x^2 + 1 and x^2 are one number, also in f64
_LOG_2 = 0.6931471805599453


def asinh(x: Any) -> Tensor:
    """The inverse of sinh."""
    y: Tensor = _floating(_of(x))
    a = _core.abs(y)
    near = _core.min(a, _LARGE)
    return _core.sign(y) * _core.select(a > _LARGE, _core.log(_core.max(a, 1.0)) + _LOG_2,
                                        _core.log1p(near + near * near / (1.0 + _core.sqrt(1.0 + near * near))))


def acosh(x: Any) -> Tensor:
    """The inverse of cosh, 0 or more; NaN below 1."""
    y: Tensor = _floating(_of(x))
    t = _core.min(y, _LARGE) - 1.0
    return _core.select(y > _LARGE, _core.log(_core.max(y, 1.0)) + _LOG_2, _core.log1p(t + _core.sqrt(t) * _core.sqrt(t + 2.0)))


def atanh(x: Any) -> Tensor:
    """The inverse of tanh; infinite at -1 and 1, NaN outside."""
    y: Tensor = _floating(_of(x))
    return (_core.log1p(y) - _core.log1p(-y)) * 0.5


def sinc(x: Any) -> Tensor:
    """sin(pi x) / (pi x), 1 at 0."""
    y: Tensor = _floating(_of(x))
    angle = _core.select(y == 0, 1.0, y) * 3.141592653589793
    return _core.select(y == 0, 1.0, _core.sin(angle) / angle)


def logit(x: Any, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of sigmoid; with eps of x clamped to eps .. 1 - eps."""
    y: Tensor = _floating(_of(x))
    y = y if eps is None else _core.clamp(y, eps, 1 - eps)
    return _core.log(y) - _core.log1p(-y)


def xlogy(x: Any, y: Any) -> Tensor:
    """x log(y), and 0 where x is 0 and y is not NaN."""
    a, b = _floating(_of(x)), _floating(_of(y))
    nothing = (a == 0) & ~isnan(b)
    return _core.select(nothing, 0.0, a * _core.log(_core.select(nothing, 1.0, b)))


def logaddexp2(x: Any, y: Any) -> Tensor:
    """The logarithm to base 2 of 2^x + 2^y, without overflow."""
    return logaddexp(_floating(_of(x)) * _LOG_2, _floating(_of(y)) * _LOG_2) / _LOG_2


def heaviside(x: Any, values: Any) -> Tensor:
    """0 where x is negative, 1 where it is positive, values where it is 0."""
    a, b = _of(x), _of(values)
    return _core.select(a == 0, b, _core.select(isnan(a), a, _core.cast(a > 0, a.dtype)))


def fmax(x: Any, y: Any) -> Tensor:
    """The larger of two elements; that which is a number if the other one is NaN."""
    a, b = _of(x), _of(y)
    return _core.select(isnan(a), b, _core.select(isnan(b), a, _core.max(a, b)))


def fmin(x: Any, y: Any) -> Tensor:
    """The smaller of two elements; that which is a number if the other one is NaN."""
    a, b = _of(x), _of(y)
    return _core.select(isnan(a), b, _core.select(isnan(b), a, _core.min(a, b)))


def lerp(x: Any, end: Any, weight: Any) -> Tensor:
    """x + weight (end - x), which is x at weight 0 and end at 1."""
    a, b, w = _of(x), _of(end), weight if isinstance(weight, (int, float)) else _of(weight)
    near, far = a + (b - a) * w, b - (b - a) * (1 - w)
    if isinstance(w, Tensor):
        return _core.select(_core.abs(w) < 0.5, near, far)
    return near if builtins.abs(w) < 0.5 else far


def addcmul(x: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Tensor:
    """x + value tensor1 tensor2."""
    product = _of(tensor1) * _of(tensor2)
    return _of(x) + (product if value == 1 else product * value)


def addcdiv(x: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Tensor:
    """x + value tensor1 / tensor2."""
    quotient = _of(tensor1) / _of(tensor2)
    return _of(x) + (quotient if value == 1 else quotient * value)


def clamp_min(x: Any, min: Any) -> Tensor:
    """No less than min."""
    return _core.max(_of(x), min)


def clamp_max(x: Any, max: Any) -> Tensor:
    """No more than max."""
    return _core.min(_of(x), max)


def aminmax(x: Any, *, dim: Axis = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest and the largest element over an axis, several axes, or all."""
    return amin(x, dim, keepdims=keepdim), amax(x, dim, keepdims=keepdim)


def isposinf(x: Any) -> Tensor:
    """Is the element +infinity?"""
    y: Tensor = _of(x)
    return zeros_like(y, "bool") if _is_integer(y) else y == float("inf")


def isneginf(x: Any) -> Tensor:
    """Is the element -infinity?"""
    y: Tensor = _of(x)
    return zeros_like(y, "bool") if _is_integer(y) else y == float("-inf")


def equal(x: Any, y: Any) -> Tensor:
    """Is x equal to y?  Elementwise, as in NumPy; array_equal compares whole tensors, as PyTorch's equal."""
    return _core.eq(x, y)


def not_equal(x: Any, y: Any) -> Tensor:
    """Is x not equal to y?"""
    return _core.ne(x, y)


def greater(x: Any, y: Any) -> Tensor:
    """Is x above y?"""
    return _core.gt(x, y)


def greater_equal(x: Any, y: Any) -> Tensor:
    """Is x not below y?"""
    return _core.ge(x, y)


def less(x: Any, y: Any) -> Tensor:
    """Is x below y?"""
    return _core.lt(x, y)


def less_equal(x: Any, y: Any) -> Tensor:
    """Is x not above y?"""
    return _core.le(x, y)


def bitwise_and(x: Any, y: Any) -> Tensor:
    """The bits that both integers have, or x and y of bool."""
    return _core.and_(x, y)


def bitwise_or(x: Any, y: Any) -> Tensor:
    """The bits that either integer has, or x or y of bool."""
    return _core.or_(x, y)


def bitwise_xor(x: Any, y: Any) -> Tensor:
    """The bits that one integer has, or either x or y of bool."""
    return _core.xor(x, y)


def bitwise_not(x: Any) -> Tensor:
    """The bits that an integer has not, or not x of bool."""
    return _core.not_(x)


floor_divide, fix = _core.floor_div, trunc
arcsin, arccos, arctan, arctan2 = _core.asin, _core.acos, _core.atan, _core.atan2
arcsinh, arccosh, arctanh = asinh, acosh, atanh
