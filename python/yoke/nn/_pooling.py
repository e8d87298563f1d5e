# SPDX-License-Identifier: Apache-2.0
"""Pooling layers, their inverses, and resizing."""
from __future__ import annotations

from typing import Any, Sequence

from .. import _core, _sampling
from ._layer import Layer
from ._module import Module, Shape

Tensor = _core.Tensor


class MaxPool(Layer):
    """The maximum of each window over the spatial axes.  MaxPool1d, MaxPool2d and MaxPool3d fix the number of these axes,
    so they also take operands without a batch axis.  With return_indices it gives a pair: the maxima, and their row-major
    indices in the spatial axes, i64, which MaxUnpool takes."""

    axes = 0

    def __init__(self, kernel_size: Shape, stride: Shape | None = None, padding: Shape = 0, dilation: Shape = 1,
                 return_indices: bool = False, ceil_mode: bool = False) -> None:
        self._options: dict[str, Any] = dict(window=kernel_size, stride=stride or 0, lo=padding, hi=padding, dilation=dilation, axes=self.axes,
                                         ceil_mode=ceil_mode)
        self.return_indices = return_indices
        self._wrap(_core.nn_max_pool(**self._options))

    def __call__(self, x: Any) -> Any:
        return _core.max_pool_indices(x, **self._options) if self.return_indices else super().__call__(x)

    forward = __call__


class MaxPool1d(MaxPool):
    """The maximum of each window of one axis."""

    axes = 1


class MaxPool2d(MaxPool):
    """The maximum of each window of two axes."""

    axes = 2


class MaxPool3d(MaxPool):
    """The maximum of each window of three axes."""

    axes = 3


class MeanPool(Layer):
    """The mean of each window; padding is not counted, unless count_include_pad is True."""

    axes = 0

    def __init__(self, kernel_size: Shape, stride: Shape = 0, padding: Shape = 0, ceil_mode: bool = False,
                 count_include_pad: bool = False) -> None:
        self._wrap(_core.nn_mean_pool(window=kernel_size, stride=stride or 0, lo=padding, hi=padding, axes=self.axes,
                                      ceil_mode=ceil_mode, count_include_pad=count_include_pad))


class AvgPool1d(MeanPool):
    """The mean of each window; padding counts as zeros, unless count_include_pad is False."""

    axes = 1

    def __init__(self, kernel_size: Shape, stride: Shape = 0, padding: Shape = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)


class AvgPool2d(AvgPool1d):
    """The mean of each window of two axes."""

    axes = 2


class AvgPool3d(AvgPool1d):
    """The mean of each window of three axes."""

    axes = 3


class _MaxUnpool(Module):
    """The inverse of a maximum pooling as far as there is one: forward(x, indices, output_size=None) gives zeros with the elements of
    x [B,C,Q..] or [C,Q..] at the indices that the pool returned.  output_size: the size before pooling, by default (Q - 1) stride
    - 2 padding + kernel_size; it is within a stride of that, and may have all axes or the spatial ones alone.  Of several
    elements at one index the mean remains.  ValueError: shapes do not fit; an index outside is an error when it is evaluated."""

    axes = 0

    def __init__(self, kernel_size: Shape, stride: Shape | None = None, padding: Shape = 0) -> None:
        each = [(v,) * self.axes if isinstance(v, int) else tuple(v) for v in (kernel_size, stride or kernel_size, padding)]
        if any(len(v) != self.axes for v in each):
            raise ValueError(f"{type(self).__name__}: kernel_size, stride and padding have {self.axes} numbers each, got "
                             f"{kernel_size}, {stride} and {padding}")
        self.kernel_size, self.stride, self.padding = each

    def forward(self, x: Any, indices: Any, output_size: Sequence[int] | None = None) -> Tensor:
        call = type(self).__name__
        if x.ndim not in (self.axes + 1, self.axes + 2) or tuple(x.shape) != tuple(indices.shape):
            raise ValueError(f"{call}: takes x with {self.axes} axes after the channels, and indices of its shape, got "
                             f"{list(x.shape)} and {list(indices.shape)}")
        to = [(q - 1) * s - 2 * p + k for q, k, s, p in zip(x.shape[-self.axes:], self.kernel_size, self.stride, self.padding)]
        if output_size is not None:
            given = list(output_size)[-self.axes:]
            if len(output_size) not in (self.axes, x.ndim) or any(abs(g - t) >= s for g, t, s in zip(given, to, self.stride)):
                raise ValueError(f"{call}: output_size {list(output_size)} is not within a stride, {list(self.stride)}, of {to}")
            to = given
        if x.ndim == self.axes + 1:
            y = _core.max_unpool(x.reshape(1, *x.shape), indices.reshape(1, *x.shape), to)
            return y.reshape(*y.shape[1:])
        return _core.max_unpool(x, indices, to)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    __doc__ = _MaxUnpool.__doc__
    axes = 1


class MaxUnpool2d(_MaxUnpool):
    __doc__ = _MaxUnpool.__doc__
    axes = 2


class MaxUnpool3d(_MaxUnpool):
    __doc__ = _MaxUnpool.__doc__
    axes = 3


def _axes(to: Shape) -> int:
    return 2 if isinstance(to, int) else len(to)


class AdaptiveMaxPool(Layer):
    """Divides each axis after the channels into output_size windows and takes the maximum of each."""

    axes = 0

    def __init__(self, output_size: Shape) -> None:
        self._wrap(_core.nn_adaptive_max_pool(self.axes or _axes(output_size), output_size))


class AdaptiveMaxPool1d(AdaptiveMaxPool):
    """Divides one axis into output_size windows and takes the maximum of each."""

    axes = 1


class AdaptiveMaxPool2d(AdaptiveMaxPool):
    """Divides each of two axes into output_size windows and takes the maximum of each."""

    axes = 2


class AdaptiveMaxPool3d(AdaptiveMaxPool):
    """Divides each of three axes into output_size windows and takes the maximum of each."""

    axes = 3


class AdaptiveMeanPool(Layer):
    """Divides each axis after the channels into output_size windows and takes the mean of each."""

    axes = 0

    def __init__(self, output_size: Shape) -> None:
        self._wrap(_core.nn_adaptive_mean_pool(self.axes or _axes(output_size), output_size))


class AdaptiveAvgPool1d(AdaptiveMeanPool):
    """Divides one axis into output_size windows and takes the mean of each."""

    axes = 1


class AdaptiveAvgPool2d(AdaptiveMeanPool):
    """Divides each of two axes into output_size windows and takes the mean of each."""

    axes = 2


class AdaptiveAvgPool3d(AdaptiveMeanPool):
    """Divides each of three axes into output_size windows and takes the mean of each."""

    axes = 3


class Resize(Layer):
    """Resizes the axes after the channels: nearest element, or with `smooth` linear interpolation."""

    def __init__(self, size: Shape, smooth: bool = False) -> None:
        self._wrap(_core.nn_resize(_axes(size), size, smooth))


class Upsample(Module):
    """yoke.interpolate as a layer."""

    def __init__(self, size: Shape | None = None, scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
                 align_corners: bool | None = None, recompute_scale_factor: bool | None = None) -> None:
        self._options = dict(size=size, scale_factor=scale_factor, mode=mode, align_corners=align_corners,
                         recompute_scale_factor=recompute_scale_factor)

    def forward(self, x: Tensor) -> Tensor:
        return _sampling.interpolate(x, **self._options)  # type: ignore[arg-type]
