# SPDX-License-Identifier: Apache-2.0
"""Normalizations as functions and layers, with PyTorch's names and arguments."""
from __future__ import annotations

import math
from typing import Any, Sequence

from .. import _core
from .._common import Tensor, _of
from ._function import UnaryModule, floating
from ._layer import Layer
from ._module import Buffer, Module, Parameter, Shape

# ---- functions ----

def _last_axes(call: str, x: Tensor, normalized_shape: Shape, *weights: Tensor | None) -> tuple[Tensor, list[Tensor | None]]:
    """x with the normalized axes as its last one, and the weights of its elements."""
    dims = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not dims or x.shape[x.ndim - len(dims):] != dims or len(dims) > x.ndim:
        raise ValueError(f"{call}: the last axes of {list(x.shape)} are not normalized_shape, {list(dims)}")
    if any(w is not None and w.shape != dims for w in weights):
        raise ValueError(f"{call}: weight and bias have the shape {list(dims)}, got {[list(w.shape) for w in weights if w is not None]}")
    n = math.prod(dims)
    return _core.reshape(x, (*x.shape[:x.ndim - len(dims)], n)), [None if w is None else _core.reshape(w, (n,)) for w in weights]


def _weights(*weights: Any) -> list[Tensor | None]:
    return [None if w is None else _of(w) for w in weights]


def layer_norm(input: Any, normalized_shape: Shape, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(variance + eps) over the last axes, whose lengths are normalized_shape, times weight, plus bias; these
    have that shape (Ba et al. 2016).  ValueError: shapes do not fit."""
    (x,) = floating("layer_norm", input)
    flat, (w, b) = _last_axes("layer_norm", x, normalized_shape, *_weights(weight, bias))
    return _core.reshape(_core.layer_norm(flat, w, b, eps), x.shape)


def rms_norm(input: Any, normalized_shape: Shape, weight: Any = None, eps: float | None = None) -> Tensor:
    """x / sqrt(mean of x^2 + eps) over the last axes, whose lengths are normalized_shape, times weight (Zhang and Sennrich
    2019).  eps is by default the machine epsilon of f32, or of f64 for f64.  ValueError: shapes do not fit."""
    (x,) = floating("rms_norm", input)
    flat, (w,) = _last_axes("rms_norm", x, normalized_shape, *_weights(weight))
    return _core.reshape(_core.rms_norm(flat, w, (2.0 ** -52 if x.dtype.name == "f64" else 2.0 ** -23) if eps is None else eps), x.shape)


def _scaled(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """x [B,C,..] times a weight [C], plus a bias [C]."""
    to = (-1,) + (1,) * (x.ndim - 2)
    x = x if weight is None else x * _core.reshape(weight, to)
    return x if bias is None else x + _core.reshape(bias, to)


def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Normalizes each of num_groups groups of channels of x [B,C,..], as layer_norm; weight and bias [C] (Wu and He 2018).
    ValueError: shapes do not fit."""
    (x,) = floating("group_norm", input)
    w, b = _weights(weight, bias)
    if x.ndim < 2 or num_groups < 1 or x.shape[1] % num_groups or any(t is not None and t.shape != x.shape[1:2] for t in (w, b)):
        raise ValueError(f"group_norm: takes [B,C,..], weight and bias [C], and {num_groups} groups that divide C, got {list(x.shape)}"
                         + "".join(f", {list(t.shape)}" for t in (w, b) if t is not None))
    y = _core.layer_norm(_core.reshape(x, (x.shape[0], num_groups, -1)), None, None, eps)
    return _scaled(_core.reshape(y, x.shape), w, b)


def _update(call: str, running: Any, value: Tensor, momentum: Any) -> None:
    """Moves running statistics towards a batch's."""
    if not isinstance(running, Tensor) or not running.is_variable:
        raise TypeError(f"{call}: running statistics are updated, so they are variables: yoke.variable_of(..)")
    _core.assign(running, running * (1 - momentum) + _core.cast(value, running.dtype) * momentum)


def batch_norm(input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False,
               momentum: Any = 0.1, eps: float = 1e-5) -> Tensor:
    """Normalizes each channel of x [B,C,..] by its running statistics [C], or in training by the batch's, which then move the
    running ones, variables or None, by momentum, the variance with Bessel's correction; weight and bias [C] (Ioffe and
    Szegedy 2015).  ValueError: shapes do not fit."""
    (x,) = floating("batch_norm", input)
    mean, var, w, b = _weights(running_mean, running_var, weight, bias)
    if x.ndim < 2 or any(t is not None and t.shape != x.shape[1:2] for t in (mean, var, w, b)):
        raise ValueError(f"batch_norm: takes [B,C,..], statistics, weight and bias [C], got {list(x.shape)}"
                         + "".join(f", {list(t.shape)}" for t in (mean, var, w, b) if t is not None))
    if training:
        n = x.size // max(x.shape[1], 1)
        if n < 2:
            raise ValueError(f"batch_norm: training takes two elements of each channel at least, got {list(x.shape)}")
        y, batch_mean, batch_var = _core.batch_norm(x, w, b, eps)
        if running_mean is not None and running_var is not None:
            _update("batch_norm", running_mean, _core.stop_grad(batch_mean), momentum)
            _update("batch_norm", running_var, _core.stop_grad(batch_var) * (n / (n - 1)), momentum)
        return y
    if mean is None or var is None:
        raise ValueError("batch_norm: without training it takes running_mean and running_var")
    scale = _core.rsqrt(var + eps)
    scale = scale if w is None else scale * w
    shift = mean * scale
    return _core.cast(_scaled(x, scale, -shift if b is None else b - shift), x.dtype)


def instance_norm(input: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
                  use_input_stats: bool = True, momentum: Any = 0.1, eps: float = 1e-5) -> Tensor:
    """Normalizes each channel of each element of the batch x [B,C,S..] by its own statistics, or without use_input_stats by
    the running ones [C], which are variables or None and move by momentum towards the batch's means; weight and bias [C]
    (Ulyanov et al. 2016).  ValueError: shapes do not fit."""
    call = "instance_norm"
    (x,) = floating(call, input)
    mean, var, w, b = _weights(running_mean, running_var, weight, bias)
    if x.ndim < 3 or any(t is not None and t.shape != x.shape[1:2] for t in (mean, var, w, b)):
        raise ValueError(f"{call}: takes [B,C,S..], statistics, weight and bias [C], got {list(x.shape)}"
                         + "".join(f", {list(t.shape)}" for t in (mean, var, w, b) if t is not None))
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, w, b, False, momentum, eps)
    n = math.prod(x.shape[2:])
    if n < 2:
        raise ValueError(f"{call}: takes two elements of each channel at least, got {list(x.shape)}")
    flat = _core.reshape(x, (*x.shape[:2], n))
    if running_mean is not None and running_var is not None:
        still = _core.stop_grad(flat)
        _update(call, running_mean, _core.mean(still, (0, 2)), momentum)
        _update(call, running_var, _core.mean(_core.var(still, 2, 1.0), 0), momentum)
    return _scaled(_core.reshape(_core.layer_norm(flat, None, None, eps), x.shape), w, b)


def local_response_norm(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha m)^beta of x [B,C,..], m the mean of x^2 over `size` neighbouring channels, of which those outside count
    as 0 (Krizhevsky et al. 2012).  ValueError: x has less than three axes, or size is not positive."""
    (x,) = floating("local_response_norm", input)
    if x.ndim < 3 or size < 1:
        raise ValueError(f"local_response_norm: takes [B,C,S..] and a positive size, got {list(x.shape)} and {size}")
    lo, hi = [0] * x.ndim, [0] * x.ndim
    lo[1], hi[1] = size // 2, (size - 1) // 2
    mean = _core.mean(_core.window(_core.pad(_core.square(x), lo, hi), 1, size, 1, 1), -1)
    return x / (mean * alpha + k) ** beta


# ---- modules ----

class LayerNorm(Layer):
    """layer_norm over the last axes, whose lengths are normalized_shape, with a trained weight and bias, unless
    elementwise_affine or bias is False."""

    def __init__(self, normalized_shape: Shape, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True) -> None:
        self.normalized_shape, self.eps = _dims(normalized_shape), eps
        if elementwise_affine and bias and len(self.normalized_shape) == 1:
            self._wrap(_core.nn_layer_norm(self.normalized_shape[0], eps))
        else:
            _affine(self, self.normalized_shape, elementwise_affine, bias)

    def _compose(self, x: Any) -> Tensor:
        return layer_norm(x, self.normalized_shape, *_affine_of(self), self.eps)


class RMSNorm(Layer):
    """rms_norm over the last axes, whose lengths are normalized_shape, with a trained weight, unless elementwise_affine is
    False.  eps None: 2^-23."""

    def __init__(self, normalized_shape: Shape, eps: float | None = None, elementwise_affine: bool = True) -> None:
        self.normalized_shape, self.eps = _dims(normalized_shape), 2.0 ** -23 if eps is None else eps
        if elementwise_affine and len(self.normalized_shape) == 1:
            self._wrap(_core.nn_rms_norm(self.normalized_shape[0], self.eps))
        else:
            _affine(self, self.normalized_shape, elementwise_affine, False)

    def _compose(self, x: Any) -> Tensor:
        return rms_norm(x, self.normalized_shape, _affine_of(self)[0], self.eps)


class GroupNorm(Layer):
    """group_norm of x [B,num_channels,..], with a trained weight and bias for each channel, unless affine or bias is False."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, *, bias: bool = True) -> None:
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        if affine and bias:
            self._wrap(_core.nn_group_norm(num_groups, num_channels, eps))
        else:
            _affine(self, (num_channels,), affine, bias)

    def _compose(self, x: Any) -> Tensor:
        return group_norm(x, self.num_groups, *_affine_of(self), self.eps)


class BatchNorm(Layer):
    """batch_norm of x [B,num_features,..] with any number of axes, with a trained weight and bias for each channel, unless
    affine or bias is False.  In training it uses the batch's statistics and moves the running ones by momentum, which None
    makes their mean over all batches; in inference it uses the running ones, or without track_running_stats the batch's."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, *, bias: bool = True) -> None:
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        if affine and bias and track_running_stats and momentum is not None:
            self._wrap(_core.nn_batch_norm(num_features, eps, momentum))
        else:
            _affine(self, (num_features,), affine, bias)
            _statistics(self, num_features, track_running_stats)
            if track_running_stats and momentum is None:
                self.num_batches_tracked: Any = Buffer(shape=(), dtype="i64")

    def _compose(self, x: Any) -> Tensor:
        mean, training = self.running_mean, self.training
        momentum: Any = self.momentum
        if mean is not None and momentum is None and training:
            count = self.num_batches_tracked + 1
            self.num_batches_tracked = count
            momentum = 1 / _core.cast(count, mean.dtype)
        return batch_norm(x, mean, self.running_var, *_affine_of(self), training or mean is None, momentum, self.eps)


class BatchNorm1d(BatchNorm):
    """BatchNorm of x [B,C] or [B,C,S]."""


class BatchNorm2d(BatchNorm):
    """BatchNorm of x [B,C,H,W]."""


class BatchNorm3d(BatchNorm):
    """BatchNorm of x [B,C,D,H,W]."""


class _InstanceNorm(Module):
    axes = 0

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = False,
                 track_running_stats: bool = False, *, bias: bool = True) -> None:
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        _affine(self, (num_features,), affine, bias)
        _statistics(self, num_features, track_running_stats)

    def forward(self, input: Any) -> Tensor:
        x = _of(input)
        if x.ndim not in (self.axes + 1, self.axes + 2) or x.shape[-self.axes - 1] != self.num_features:
            raise ValueError(f"{type(self).__name__}: takes [B,{self.num_features}{',S' * self.axes}], with B or without, got {list(x.shape)}")
        mean = self.running_mean
        y = instance_norm(x if x.ndim > self.axes + 1 else _core.reshape(x, (1, *x.shape)), mean, self.running_var, *_affine_of(self),
                          self.training or mean is None, self.momentum or 0.0, self.eps)
        return _core.reshape(y, x.shape)

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"


class InstanceNorm1d(_InstanceNorm):
    """instance_norm of x [B,C,S] or [C,S], with a trained weight and bias for each channel if affine is True.  With
    track_running_stats training moves running statistics by momentum (None: 0), which inference uses."""

    axes = 1


class InstanceNorm2d(_InstanceNorm):
    """instance_norm of x [B,C,H,W] or [C,H,W]; InstanceNorm1d describes the arguments."""

    axes = 2


class InstanceNorm3d(_InstanceNorm):
    """instance_norm of x [B,C,D,H,W] or [C,D,H,W]; InstanceNorm1d describes the arguments."""

    axes = 3


class LocalResponseNorm(UnaryModule):
    _function = staticmethod(local_response_norm)

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self._set(size=size, alpha=alpha, beta=beta, k=k)


def _dims(shape: Shape) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _affine(module: Module, shape: Sequence[int], affine: bool, bias: bool) -> None:
    """Gives a module its weight, ones, and its bias, zeros; or None."""
    module.weight = Parameter(shape=shape, value=1.0) if affine else None
    module.bias = Parameter(shape=shape) if affine and bias else None


def _affine_of(module: Module) -> tuple[Tensor | None, Tensor | None]:
    return module.weight, module.bias


def _statistics(module: Module, channels: int, tracked: bool) -> None:
    """Gives a module its running statistics, or None."""
    module.running_mean = Buffer(shape=(channels,)) if tracked else None
    module.running_var = Buffer(shape=(channels,), value=1.0) if tracked else None
