# SPDX-License-Identifier: Apache-2.0
"""Convolutions, transposed convolutions, and their windows as columns."""
from __future__ import annotations

from .. import _core, _sampling
from ._layer import Layer
from ._module import Module, Shape

Tensor = _core.Tensor


class _Conv(Layer):
    axes = 2

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Shape, stride: Shape = 1, padding: Shape = 0,
                 dilation: Shape = 1, groups: int = 1, bias: bool = True) -> None:
        self._wrap(_core.nn_conv(self.axes, in_channels, out_channels, kernel_size, groups=groups, stride=stride, dilation=dilation,
                                 lo=padding, hi=padding, bias=bias))


class Conv1d(_Conv):
    """x [B,in,S] -> [B,out,Q]."""

    axes = 1


class Conv2d(_Conv):
    """x [B,in,S,S] -> [B,out,Q,Q]."""


class Conv3d(_Conv):
    """x [B,in,S,S,S] -> [B,out,Q,Q,Q]."""

    axes = 3


class _ConvTransposed(Layer):
    axes = 2

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Shape, stride: Shape = 1, padding: Shape = 0,
                 output_padding: Shape = 0, groups: int = 1, bias: bool = True, dilation: Shape = 1) -> None:
        self._wrap(_core.nn_conv_transposed(self.axes, in_channels, out_channels, kernel_size, groups=groups, stride=stride,
                                            dilation=dilation, lo=padding, hi=padding, more=output_padding, bias=bias))


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
