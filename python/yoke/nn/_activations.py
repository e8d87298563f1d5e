# SPDX-License-Identifier: Apache-2.0
"""Activations as functions and modules, with PyTorch's names and arguments.  `inplace` has no effect: tensors are values."""
from __future__ import annotations

from typing import Any

from .. import _core
from .._common import Tensor, _axis_of, _of
from ._function import InPlaceModule, UnaryModule, floating
from ._layer import Layer
from ._module import Parameter

# ---- functions ----

def relu(input: Any, inplace: bool = False) -> Tensor:
    """max(x, 0); the gradient at 0 is 0."""
    return _core.relu(_of(input))


def relu6(input: Any, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)."""
    return hardtanh(input, 0.0, 6.0)


def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x above 0, else negative_slope x."""
    (x,) = floating("leaky_relu", input)
    return _core.select(x > 0, x, x * negative_slope)


def prelu(input: Any, weight: Any) -> Tensor:
    """x above 0, else weight x.  weight: one number, or one for each channel of x [B,C,..].  ValueError: another number of
    weights."""
    x, w = floating("prelu", input, weight)
    channels = x.shape[1] if x.ndim > 1 else 1
    if w.size != 1 and (w.ndim != 1 or w.size != channels):
        raise ValueError(f"prelu: weight has 1 number or one for each of {channels} channels of {list(x.shape)}, got {list(w.shape)}")
    w = _core.reshape(w, (w.size,) + (1,) * max(x.ndim - 2, 0) if w.size > 1 else ())
    return _core.select(x > 0, x, x * w)


def rrelu(input: Any, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    """x above 0, else a x; in training a is drawn from lower .. upper for each element, else it is their mean."""
    (x,) = floating("rrelu", input)
    if not lower <= upper:
        raise ValueError(f"rrelu: lower is not above upper, got {lower} and {upper}")
    return _core.select(x > 0, x, x * (_core.uniform(x.dtype, x.shape) * (upper - lower) + lower if training else (lower + upper) / 2))


def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, else alpha (exp(x) - 1)."""
    (x,) = floating("elu", input)
    return _core.select(x > 0, x, _core.expm1(_core.select(x > 0, 0, x)) * alpha)


def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, else alpha (exp(x / alpha) - 1).  ValueError: alpha is 0."""
    (x,) = floating("celu", input)
    if alpha == 0:
        raise ValueError("celu: alpha is 0")
    return _core.select(x > 0, x, _core.expm1(_core.select(x > 0, 0, x) / alpha) * alpha)


def selu(input: Any, inplace: bool = False) -> Tensor:
    """1.0507 elu(x, 1.6733): Klambauer et al. 2017."""
    return elu(input, 1.6732632423543772848170429916717) * 1.0507009873554804934193349852946


def gelu(input: Any, approximate: str = "none") -> Tensor:
    """x/2 (1 + erf(x / sqrt 2)), or with approximate="tanh" x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"gelu: approximate is 'none' or 'tanh', not {approximate!r}")
    return (_core.gelu_tanh if approximate == "tanh" else _core.gelu)(_of(input))


def silu(input: Any, inplace: bool = False) -> Tensor:
    """x sigmoid(x)."""
    return _core.silu(_of(input))


def mish(input: Any, inplace: bool = False) -> Tensor:
    """x tanh(softplus(x)): Misra 2019."""
    (x,) = floating("mish", input)
    return x * _core.tanh(_core.loss_bce_logits(x, 0.0, reduction=_core.LOSS_NONE))


def sigmoid(input: Any) -> Tensor:
    """1 / (1 + exp(-x))."""
    return _core.sigmoid(_of(input))


def logsigmoid(input: Any) -> Tensor:
    """log(sigmoid(x)), without overflow."""
    (x,) = floating("logsigmoid", input)
    return -_core.loss_bce_logits(x, 1.0, reduction=_core.LOSS_NONE)


def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta, without overflow; x where beta x is above threshold."""
    (x,) = floating("softplus", input)
    y = _core.loss_bce_logits(x if beta == 1 else x * beta, 0.0, reduction=_core.LOSS_NONE)
    return _core.select(x * beta > threshold, x, y if beta == 1 else y / beta)


def softsign(input: Any) -> Tensor:
    """x / (1 + |x|)."""
    (x,) = floating("softsign", input)
    return x / (1 + _core.abs(x))


def softshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """x without lambd of its magnitude: x - lambd above lambd, x + lambd below -lambd, else 0.  ValueError: lambd is negative."""
    (x,) = floating("softshrink", input)
    if lambd < 0:
        raise ValueError(f"softshrink: lambd is not negative, got {lambd}")
    return _core.select(x > lambd, x - lambd, _core.select(x < -lambd, x + lambd, x * 0))


def hardshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """0 from -lambd to lambd, else x."""
    (x,) = floating("hardshrink", input)
    return _core.select((x >= -lambd) & (x <= lambd), 0, x)


def tanh(input: Any) -> Tensor:
    """The hyperbolic tangent."""
    return _core.tanh(_of(input))


def tanhshrink(input: Any) -> Tensor:
    """x - tanh(x)."""
    (x,) = floating("tanhshrink", input)
    return x - _core.tanh(x)


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Limits x to min_val .. max_val; the gradient at the limits is 0.  ValueError: min_val is above max_val."""
    x = _of(input)
    if min_val > max_val:
        raise ValueError(f"hardtanh: min_val is not above max_val, got {min_val} and {max_val}")
    return _core.select(x <= min_val, min_val, _core.select(x >= max_val, max_val, x))


def hardsigmoid(input: Any, inplace: bool = False) -> Tensor:
    """x/6 + 1/2, limited to 0 .. 1."""
    (x,) = floating("hardsigmoid", input)
    return hardtanh(x + 3, 0.0, 6.0) / 6


def hardswish(input: Any, inplace: bool = False) -> Tensor:
    """x hardsigmoid(x)."""
    (x,) = floating("hardswish", input)
    return _core.select(x <= -3, 0, _core.select(x >= 3, x, x * (x + 3) / 6))


def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x above threshold, else value."""
    x = _of(input)
    return _core.select(x > threshold, x, value)


def glu(input: Any, dim: int = -1) -> Tensor:
    """a sigmoid(b), where a and b are the halves of x along an axis: Dauphin et al. 2017.  ValueError: its length is odd."""
    (x,) = floating("glu", input)
    axis = _axis_of(x, dim, "glu")
    n = x.shape[axis] if x.ndim else 1
    if n % 2:
        raise ValueError(f"glu: axis {dim} of {list(x.shape)} has no halves")
    return _core.slice(x, axis, 0, n // 2) * _core.sigmoid(_core.slice(x, axis, n // 2, n))


def _implied(call: str, input: Any, dim: int | None, dtype: Any) -> tuple[Tensor, int]:
    """The operand and the axis of a softmax; without one, that which PyTorch implies: 0 of 1 or 3 axes, else 1."""
    x = _of(input) if dtype is None else _core.cast(_of(input), dtype)
    (x,) = floating(call, x)
    return x, _axis_of(x, (0 if x.ndim in (0, 1, 3) else 1) if dim is None else dim, call)


def softmax(input: Any, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    """exp(x) over its sum along an axis.  dtype: that in which it is computed.  Without dim: along axis 0 of 1 or 3 axes, else
    along axis 1, as in PyTorch."""
    return _core.softmax(*_implied("softmax", input, dim, dtype))


def softmin(input: Any, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    """softmax(-x)."""
    x, axis = _implied("softmin", input, dim, dtype)
    return _core.softmax(-x, axis)


def log_softmax(input: Any, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    """log(softmax(x)), without overflow."""
    return _core.log_softmax(*_implied("log_softmax", input, dim, dtype))


def gumbel_softmax(logits: Any, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """softmax((x + g) / tau) along an axis, g drawn from Gumbel's distribution: Jang et al. 2017.  hard: ones at the largest
    elements, with the gradient of the softmax.  eps has no effect, as in PyTorch."""
    (x,) = floating("gumbel_softmax", logits)
    axis = _axis_of(x, dim, "gumbel_softmax")
    u = _core.uniform("f64" if x.dtype.name == "f64" else "f32", x.shape)
    noise = _core.cast(-_core.log(-_core.log(u + 2.0 ** -25)), x.dtype)  # u is a multiple of 2^-24, below 1
    y = _core.softmax((x + noise) / tau, axis)
    if not hard:
        return y
    largest = _core.cast(y == _core.reduce_max(y, axis, keepdims=True), y.dtype)
    return _core.stop_grad(largest - y) + y


# ---- modules ----

class Activation(Layer):
    """An activation by name: relu, gelu, gelu_tanh, silu, tanh or sigmoid."""

    def __init__(self, name: str) -> None:
        self._wrap(_core.nn_activation(name))


class ReLU(Activation):
    """max(x, 0)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__("relu")


class GELU(Activation):
    """x/2 (1 + erf(x / sqrt 2)), or its approximation by tanh."""

    def __init__(self, approximate: str = "none") -> None:
        if approximate not in ("none", "tanh"):
            raise ValueError(f"GELU: approximate is 'none' or 'tanh', not {approximate!r}")
        super().__init__("gelu_tanh" if approximate == "tanh" else "gelu")


class SiLU(Activation):
    """x sigmoid(x)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__("silu")


class Tanh(Activation):
    """The hyperbolic tangent."""

    def __init__(self) -> None:
        super().__init__("tanh")


class Sigmoid(Activation):
    """1 / (1 + exp(-x))."""

    def __init__(self) -> None:
        super().__init__("sigmoid")


class ReLU6(InPlaceModule):
    _function = staticmethod(relu6)


class LeakyReLU(UnaryModule):
    _function = staticmethod(leaky_relu)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        self._set(negative_slope=negative_slope, inplace=inplace)


class PReLU(UnaryModule):
    """x above 0, else weight x, with a trained weight for all channels or for each of x [B,num_parameters,..]; init: its first
    value."""

    _function = staticmethod(prelu)

    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        self._set(num_parameters=num_parameters)
        self.weight = Parameter(shape=(num_parameters,), value=init)

    def forward(self, input: Any) -> Tensor:
        return prelu(input, self.weight)


class RReLU(UnaryModule):
    _function = staticmethod(rrelu)

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        self._set(lower=lower, upper=upper, inplace=inplace)

    def forward(self, input: Any) -> Tensor:
        y: Tensor = self._apply(input, training=self.training)
        return y


class ELU(UnaryModule):
    _function = staticmethod(elu)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self._set(alpha=alpha, inplace=inplace)


class CELU(UnaryModule):
    _function = staticmethod(celu)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self._set(alpha=alpha, inplace=inplace)


class SELU(InPlaceModule):
    _function = staticmethod(selu)


class Mish(InPlaceModule):
    _function = staticmethod(mish)


class Hardsigmoid(InPlaceModule):
    _function = staticmethod(hardsigmoid)


class Hardswish(InPlaceModule):
    _function = staticmethod(hardswish)


class LogSigmoid(UnaryModule):
    _function = staticmethod(logsigmoid)


class Softsign(UnaryModule):
    _function = staticmethod(softsign)


class Tanhshrink(UnaryModule):
    _function = staticmethod(tanhshrink)


class Softplus(UnaryModule):
    _function = staticmethod(softplus)

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        self._set(beta=beta, threshold=threshold)


class Softshrink(UnaryModule):
    _function = staticmethod(softshrink)

    def __init__(self, lambd: float = 0.5) -> None:
        self._set(lambd=lambd)


class Hardshrink(UnaryModule):
    _function = staticmethod(hardshrink)

    def __init__(self, lambd: float = 0.5) -> None:
        self._set(lambd=lambd)


class Hardtanh(UnaryModule):
    _function = staticmethod(hardtanh)

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        self._set(min_val=min_val, max_val=max_val, inplace=inplace)


class Threshold(UnaryModule):
    _function = staticmethod(threshold)

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        self._set(threshold=threshold, value=value, inplace=inplace)


class GLU(UnaryModule):
    _function = staticmethod(glu)

    def __init__(self, dim: int = -1) -> None:
        self._set(dim=dim)


class Softmax(UnaryModule):
    _function = staticmethod(softmax)

    def __init__(self, dim: int | None = None) -> None:
        self._set(dim=dim)


class Softmin(UnaryModule):
    _function = staticmethod(softmin)

    def __init__(self, dim: int | None = None) -> None:
        self._set(dim=dim)


class LogSoftmax(UnaryModule):
    _function = staticmethod(log_softmax)

    def __init__(self, dim: int | None = None) -> None:
        self._set(dim=dim)


class Softmax2d(UnaryModule):
    """softmax over the channels of x [B,C,H,W] or [C,H,W]."""

    _function = staticmethod(softmax)

    def forward(self, input: Any) -> Tensor:
        x = _of(input)
        if x.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: takes [B,C,H,W] or [C,H,W], got {list(x.shape)}")
        return softmax(x, -3)
