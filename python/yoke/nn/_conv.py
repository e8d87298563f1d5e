# SPDX-License-Identifier: Apache-2.0
"""Convolutions, transposed convolutions, and their windows as columns, as functions and layers."""
from __future__ import annotations

import math
from typing import Any, Sequence

from .. import _core, _sampling
from .._common import Tensor, _of
from ._function import floating
from ._layer import Layer
from ._module import Module, Parameter, Shape
from ._padding import pad

# ---- functions ----

def _each(call: str, what: str, value: Shape, axes: int) -> tuple[int, ...]:
    """A number for each axis."""
    each = (value,) * axes if isinstance(value, int) else tuple(value)
    if len(each) == 1:
        each *= axes
    if len(each) != axes:
        raise ValueError(f"{call}: {what} is one number or {axes}, got {value}")
    return each


def _sides(call: str, padding: Any, kernel: Sequence[int], stride: Shape, dilation: Shape) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The elements added before and after each axis; padding: numbers, "valid" (none) or "same" (results as long as operands)."""
    axes = len(kernel)
    if not isinstance(padding, str):
        each = _each(call, "padding", padding, axes)
        return each, each
    if padding not in ("same", "valid"):
        raise ValueError(f"{call}: padding is numbers, 'same' or 'valid', not {padding!r}")
    if padding == "valid":
        return (0,) * axes, (0,) * axes
    if any(s != 1 for s in _each(call, "stride", stride, axes)):
        raise ValueError(f"{call}: padding='same' takes a stride of 1, got {stride}")
    total = [d * (k - 1) for d, k in zip(_each(call, "dilation", dilation, axes), kernel)]
    return tuple(n // 2 for n in total), tuple(n - n // 2 for n in total)


def _operands(call: str, axes: int, input: Any, weight: Any, bias: Any) -> tuple[Tensor, Tensor, Tensor | None]:
    x, w, *b = floating(call, input, weight, *(() if bias is None else (bias,)))
    if w.ndim != axes + 2 or x.ndim not in (axes + 1, axes + 2):
        raise ValueError(f"{call}: takes x with {axes} axes after the channels, with a batch or without, and a weight with {axes + 2} axes, "
                         f"got {list(x.shape)} and {list(w.shape)}")
    return x, w, b[0] if b else None


def _biased(call: str, y: Tensor, bias: Tensor | None, axes: int) -> Tensor:
    if bias is None:
        return y
    if bias.shape != y.shape[-axes - 1:y.ndim - axes]:
        raise ValueError(f"{call}: bias has one number for each of {y.shape[-axes - 1]} channels, got {list(bias.shape)}")
    return y + _core.reshape(bias, (-1,) + (1,) * axes)


def _conv(call: str, axes: int, input: Any, weight: Any, bias: Any, stride: Shape, padding: Any, dilation: Shape, groups: int) -> Tensor:
    x, w, b = _operands(call, axes, input, weight, bias)
    if groups < 1 or w.shape[0] % groups or x.shape[-axes - 1] != w.shape[1] * groups:
        raise ValueError(f"{call}: {x.shape[-axes - 1]} channels and a weight {list(w.shape)} in {groups} groups do not fit")
    lo, hi = _sides(call, padding, w.shape[2:], stride, dilation)
    y = _core.conv(x, w, groups=groups, stride=_each(call, "stride", stride, axes),
                   dilation=_each(call, "dilation", dilation, axes), lo=lo, hi=hi)
    return _biased(call, y, b, axes)


def conv1d(input: Any, weight: Any, bias: Any = None, stride: Shape = 1, padding: Any = 0, dilation: Shape = 1, groups: int = 1) -> Tensor:
    """Cross-correlation of x [B,in,S] or [in,S] with weight [out,in/groups,K], plus bias [out] -> [B,out,Q].  padding:
    elements before and after each axis, or "same" for results as long as x, or "valid" for none.  ValueError: shapes do not
    fit."""
    return _conv("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(input: Any, weight: Any, bias: Any = None, stride: Shape = 1, padding: Any = 0, dilation: Shape = 1, groups: int = 1) -> Tensor:
    """conv1d of two axes: x [B,in,H,W] or [in,H,W] with weight [out,in/groups,K,K]."""
    return _conv("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(input: Any, weight: Any, bias: Any = None, stride: Shape = 1, padding: Any = 0, dilation: Shape = 1, groups: int = 1) -> Tensor:
    """conv1d of three axes: x [B,in,D,H,W] or [in,D,H,W] with weight [out,in/groups,K,K,K]."""
    return _conv("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


def _conv_transpose(call: str, axes: int, input: Any, weight: Any, bias: Any, stride: Shape, padding: Shape, output_padding: Shape, groups: int,
                    dilation: Shape) -> Tensor:
    x, w, b = _operands(call, axes, input, weight, bias)
    if groups < 1 or w.shape[0] % groups or x.shape[-axes - 1] != w.shape[0]:
        raise ValueError(f"{call}: {x.shape[-axes - 1]} channels and a weight {list(w.shape)} in {groups} groups do not fit")
    stride, dilation, padding = (_each(call, n, v, axes) for n, v in (("stride", stride), ("dilation", dilation), ("padding", padding)))
    more = _each(call, "output_padding", output_padding, axes)
    if any(m >= max(s, d) for m, s, d in zip(more, stride, dilation)):
        raise ValueError(f"{call}: output_padding {list(more)} is below the stride, {list(stride)}")
    y = _core.conv_transposed(x, w, groups=groups, stride=stride, dilation=dilation, lo=padding, hi=padding, more=more)
    return _biased(call, y, b, axes)


def conv_transpose1d(input: Any, weight: Any, bias: Any = None, stride: Shape = 1, padding: Shape = 0, output_padding: Shape = 0,
                     groups: int = 1, dilation: Shape = 1) -> Tensor:
    """The gradient of conv1d by its operand, applied to x [B,in,Q] or [in,Q] with weight [in,out/groups,K], plus bias [out] ->
    [B,out,S], S = (Q - 1) stride - 2 padding + dilation (K - 1) + 1 + output_padding.  ValueError: shapes do not fit."""
    return _conv_transpose("conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(input: Any, weight: Any, bias: Any = None, stride: Shape = 1, padding: Shape = 0, output_padding: Shape = 0,
                     groups: int = 1, dilation: Shape = 1) -> Tensor:
    """conv_transpose1d of two axes: x [B,in,H,W] or [in,H,W] with weight [in,out/groups,K,K]."""
    return _conv_transpose("conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(input: Any, weight: Any, bias: Any = None, stride: Shape = 1, padding: Shape = 0, output_padding: Shape = 0,
                     groups: int = 1, dilation: Shape = 1) -> Tensor:
    """conv_transpose1d of three axes: x [B,in,D,H,W] or [in,D,H,W] with weight [in,out/groups,K,K,K]."""
    return _conv_transpose("conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups, dilation)


# ---- layers ----

_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}


class _Conv(Layer):
    axes = 2

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Shape, stride: Shape = 1, padding: Any = 0,
                 dilation: Shape = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros") -> None:
        call = f"nn.{type(self).__name__}"
        if padding_mode not in _MODES:
            raise ValueError(f"{call}: padding_mode is one of {', '.join(_MODES)}, not {padding_mode!r}")
        kernel = _each(call, "kernel_size", kernel_size, self.axes)
        lo, hi = _sides(call, padding, kernel, stride, dilation)
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.padding, self.padding_mode = kernel, padding, padding_mode
        self.stride, self.dilation = _each(call, "stride", stride, self.axes), _each(call, "dilation", dilation, self.axes)
        if padding_mode == "zeros":
            self._wrap(_core.nn_conv(self.axes, in_channels, out_channels, kernel, groups=groups, stride=stride, dilation=dilation,
                                     lo=lo, hi=hi, bias=bias))
        else:
            if groups < 1 or in_channels % groups or out_channels % groups:
                raise ValueError(f"{call}: {groups} groups do not divide {in_channels} and {out_channels} channels")
            bound = 1 / math.sqrt(in_channels // groups * math.prod(kernel))
            self._sides = [n for sides in zip(lo[::-1], hi[::-1]) for n in sides]
            self.weight = Parameter(shape=(out_channels, in_channels // groups, *kernel), uniform=bound)
        if not bias:
            self.bias: Any = None
        elif padding_mode != "zeros":
            self.bias = Parameter(shape=(out_channels,), uniform=bound)

    def _compose(self, x: Any) -> Tensor:
        padded = pad(x, self._sides, _MODES[self.padding_mode])
        return _conv(f"nn.{type(self).__name__}", self.axes, padded, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)


class Conv1d(_Conv):
    """x [B,in,S] -> [B,out,Q].  padding: elements before and after each axis, "same" or "valid"; padding_mode: zeros, reflect,
    replicate or circular."""

    axes = 1


class Conv2d(_Conv):
    """x [B,in,S,S] -> [B,out,Q,Q].  padding: elements before and after each axis, "same" or "valid"; padding_mode: zeros,
    reflect, replicate or circular."""


class Conv3d(_Conv):
    """x [B,in,S,S,S] -> [B,out,Q,Q,Q].  padding: elements before and after each axis, "same" or "valid"; padding_mode: zeros,
    reflect, replicate or circular."""

    axes = 3


class _ConvTransposed(Layer):
    axes = 2

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Shape, stride: Shape = 1, padding: Shape = 0,
                 output_padding: Shape = 0, groups: int = 1, bias: bool = True, dilation: Shape = 1, padding_mode: str = "zeros") -> None:
        call = f"nn.{type(self).__name__}"
        if padding_mode != "zeros":
            raise ValueError(f"{call}: padding_mode is 'zeros', not {padding_mode!r}")
        self.in_channels, self.out_channels, self.groups, self.output_padding = in_channels, out_channels, groups, output_padding
        self.kernel_size, self.stride = _each(call, "kernel_size", kernel_size, self.axes), _each(call, "stride", stride, self.axes)
        self.padding, self.dilation = _each(call, "padding", padding, self.axes), _each(call, "dilation", dilation, self.axes)
        self._wrap(_core.nn_conv_transposed(self.axes, in_channels, out_channels, kernel_size, groups=groups, stride=stride,
                                            dilation=dilation, lo=padding, hi=padding, more=output_padding, bias=bias))
        if not bias:
            self.bias: Any = None

    def __call__(self, x: Any, output_size: Sequence[int] | None = None) -> Tensor:
        """With output_size, the lengths of the result's last axes, these replace output_padding."""
        if output_size is None:
            return super().__call__(x)
        call, to = f"nn.{type(self).__name__}", list(output_size)[-self.axes:]
        smallest = [(q - 1) * s - 2 * p + d * (k - 1) + 1 for q, s, p, d, k in
                 zip(_of(x).shape[-self.axes:], self.stride, self.padding, self.dilation, self.kernel_size)]
        more = [n - m for n, m in zip(to, smallest)]
        if len(output_size) not in (self.axes, _of(x).ndim) or any(not 0 <= m < s for m, s in zip(more, self.stride)):
            raise ValueError(f"{call}: output_size {list(output_size)} is not between {smallest} and less than a stride more, "
                             f"{list(self.stride)}")
        return _conv_transpose(call, self.axes, x, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation)

    forward = __call__


class ConvTransposed1d(_ConvTransposed):
    """x [B,in,Q] -> [B,out,S]: the gradient of a convolution with respect to its operand."""

    axes = 1


class ConvTransposed2d(_ConvTransposed):
    """x [B,in,Q,Q] -> [B,out,S,S]: the gradient of a convolution with respect to its operand."""


class ConvTransposed3d(_ConvTransposed):
    """x [B,in,Q,Q,Q] -> [B,out,S,S,S]: the gradient of a convolution with respect to its operand."""

    axes = 3


class Unfold(Module):
    """Sliding windows as columns (im2col): yoke.unfold as a layer."""

    def __init__(self, kernel_size: Shape, dilation: Shape = 1, padding: Shape = 0, stride: Shape = 1) -> None:
        self._options = dict(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        return _sampling.unfold(x, **self._options)


class Fold(Module):
    """Sums columns back into an image (col2im): yoke.fold as a layer."""

    def __init__(self, output_size: Shape, kernel_size: Shape, dilation: Shape = 1, padding: Shape = 0, stride: Shape = 1) -> None:
        self._options = dict(output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        return _sampling.fold(x, **self._options)


# PyTorch's names of transposed convolutions.
ConvTranspose1d, ConvTranspose2d, ConvTranspose3d = ConvTransposed1d, ConvTransposed2d, ConvTransposed3d
