# SPDX-License-Identifier: Apache-2.0
"""New first values for parameters, by the names and arguments of torch.nn.init: each function assigns them and returns the
parameter.

	for name, p in net.named_parameters():
	    if p.ndim > 1:
	        nn.init.kaiming_normal_(p, nonlinearity="relu")

The numbers follow from the seed (yoke.random.seed), the scope and the number of the call in it.
"""
from __future__ import annotations

import math

from .. import _core
from .._matrices import _matrix
from ..random import _opened

Tensor = _core.Tensor

__all__ = [
    "calculate_gain", "constant_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_", "orthogonal_",
    "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_",
]


def __dir__() -> list[str]:
    return __all__


def _assigned(tensor: Tensor, values: Tensor) -> Tensor:
    if not tensor.is_variable:
        raise TypeError("nn.init: takes a parameter or a variable; other tensors are values, which yoke.random makes")
    _core.assign(tensor, _core.cast(values, tensor.dtype))
    return tensor


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Uniform in a .. b."""
    return _assigned(tensor, _core.uniform("f32", tensor.shape) * (b - a) + a)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Normal of this mean and standard deviation."""
    return _assigned(tensor, _core.normal("f32", tensor.shape) * std + mean)


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> Tensor:
    """Normal of this mean and standard deviation, restricted to a .. b."""
    if not a < b:
        raise ValueError(f"trunc_normal_: a is below b, got {a} and {b}")
    low, high = (math.erf((end - mean) / (std * math.sqrt(2))) for end in (a, b))
    x = _core.erfinv(_opened("trunc_normal_", tensor.shape) * (high - low) + low) * (std * math.sqrt(2)) + mean
    return _assigned(tensor, _core.clamp(x, a, b))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """All equal to a number."""
    return _assigned(tensor, _core.full(tensor.dtype, tensor.shape, val))


def zeros_(tensor: Tensor) -> Tensor:
    """All 0."""
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """All 1."""
    return constant_(tensor, 1.0)


def eye_(tensor: Tensor) -> Tensor:
    """A matrix with 1 on its diagonal, else 0."""
    rows, columns = (_core.iota("i64", _matrix("eye_", tensor).shape, k) for k in (0, 1))
    return _assigned(tensor, _core.cast(rows == columns, tensor.dtype))


def _fans(call: str, tensor: Tensor) -> tuple[int, int]:
    """Inputs of each output, and outputs of each input, of a weight [out,in,..]."""
    if tensor.ndim < 2:
        raise ValueError(f"{call}: takes a weight [out,in,..], got {list(tensor.shape)}")
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which weights before this function grow so that variances are kept; param is leaky_relu's slope, 0.01 by
    default."""
    slope = 0.01 if param is None else param
    gains = {"tanh": 5 / 3, "relu": math.sqrt(2), "leaky_relu": math.sqrt(2 / (1 + slope ** 2)), "selu": 0.75}
    if nonlinearity not in gains and nonlinearity not in ("linear", "sigmoid") and not nonlinearity.startswith("conv"):
        raise ValueError(f"calculate_gain: there is no function {nonlinearity!r}; linear, conv.., sigmoid, {', '.join(gains)}")
    return gains.get(nonlinearity, 1.0)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Uniform with the variance 2 gain^2 / (inputs + outputs) (Glorot and Bengio 2010)."""
    bound = gain * math.sqrt(6 / sum(_fans("xavier_uniform_", tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Normal with the variance 2 gain^2 / (inputs + outputs) (Glorot and Bengio 2010)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(_fans("xavier_normal_", tensor))))


def _deviation(call: str, tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"{call}: mode is 'fan_in' or 'fan_out', not {mode!r}")
    return calculate_gain(nonlinearity, a) / math.sqrt(_fans(call, tensor)[mode == "fan_out"])


def kaiming_uniform_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Uniform with the variance gain^2 / inputs, or outputs with mode "fan_out" (He et al. 2015); a: leaky_relu's slope."""
    bound = math.sqrt(3) * _deviation("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Normal with the variance gain^2 / inputs, or outputs with mode "fan_out" (He et al. 2015); a: leaky_relu's slope."""
    return normal_(tensor, 0.0, _deviation("kaiming_normal_", tensor, a, mode, nonlinearity))


def orthogonal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Rows of [out,all others] orthogonal and of length gain, or columns where there are fewer (Saxe et al. 2013)."""
    if tensor.ndim < 2:
        raise ValueError(f"orthogonal_: takes a weight [out,in,..], got {list(tensor.shape)}")
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    q, r = _core.qr(_core.normal("f32", (max(rows, columns), min(rows, columns))), False)
    q = q * _core.select(_core.diagonal(r, 0, 0, 1) < 0, -1.0, 1.0)  # uniform among all orthogonal matrices
    return _assigned(tensor, _core.reshape((q if rows >= columns else q.T) * gain, tensor.shape))
