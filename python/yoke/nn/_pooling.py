# SPDX-License-Identifier: Apache-2.0
"""Pooling, its inverses, and resizing, as functions and layers."""
from __future__ import annotations

import math
from typing import Any, Sequence

from .. import _core, _sampling
from .._arrays import tensor
from .._common import Tensor, _of
from ._conv import _each
from ._function import UnaryModule, floating
from ._layer import Layer
from ._module import Module, Shape

# ---- functions ----

def _pooled(call: str, axes: int, input: Any) -> Tensor:
    x = _of(input)
    if x.ndim not in (axes + 1, axes + 2):
        raise ValueError(f"{call}: takes x with {axes} axes after the channels, with a batch or without, got {list(x.shape)}")
    return x


def _windows(call: str, axes: int, kernel_size: Shape, stride: Shape | None, padding: Shape) -> dict[str, Any]:
    window = _each(call, "kernel_size", kernel_size, axes)
    at = _each(call, "padding", padding, axes)
    if any(2 * p > k for p, k in zip(at, window)):
        raise ValueError(f"{call}: padding {list(at)} is more than half of the window, {list(window)}")
    step = _each(call, "stride", stride, axes) if stride else window
    return dict(window=window, stride=step, lo=at, hi=at, axes=axes)


def _max_pool(call: str, axes: int, input: Any, kernel_size: Shape, stride: Shape | None, padding: Shape, dilation: Shape, ceil_mode: bool,
              return_indices: bool) -> Any:
    x, how = _pooled(call, axes, input), _windows(call, axes, kernel_size, stride, padding)
    pool = _core.max_pool_indices if return_indices else _core.max_pool
    return pool(x, **how, dilation=_each(call, "dilation", dilation, axes), ceil_mode=ceil_mode)


def max_pool1d(input: Any, kernel_size: Shape, stride: Shape | None = None, padding: Shape = 0, dilation: Shape = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Any:
    """The maximum of each window of x [B,C,S] or [C,S]; stride is by default kernel_size.  With return_indices a pair: the
    maxima, and their row-major indices in the pooled axes, i64, which max_unpool1d takes.  ValueError: shapes do not fit."""
    return _max_pool("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(input: Any, kernel_size: Shape, stride: Shape | None = None, padding: Shape = 0, dilation: Shape = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Any:
    """max_pool1d of two axes: x [B,C,H,W] or [C,H,W]."""
    return _max_pool("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(input: Any, kernel_size: Shape, stride: Shape | None = None, padding: Shape = 0, dilation: Shape = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Any:
    """max_pool1d of three axes: x [B,C,D,H,W] or [C,D,H,W]."""
    return _max_pool("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _avg_pool(call: str, axes: int, input: Any, kernel_size: Shape, stride: Shape | None, padding: Shape, ceil_mode: bool,
              count_include_pad: bool, divisor_override: int | None = None) -> Tensor:
    import numpy

    x, how = _pooled(call, axes, input), _windows(call, axes, kernel_size, stride, padding)
    if divisor_override is None:
        return _core.mean_pool(x, **how, ceil_mode=ceil_mode, count_include_pad=count_include_pad)
    if divisor_override == 0:
        raise ValueError(f"{call}: divisor_override is 0")
    y = _core.mean_pool(x, **how, ceil_mode=ceil_mode, count_include_pad=True)
    counts = numpy.ones((), "i8")
    for q, n, k, s, p in zip(y.shape[-axes:], x.shape[-axes:], how["window"], how["stride"], how["lo"]):
        first = numpy.arange(q) * s  # in the padded axis, whose elements count; those that ceil_mode adds do not
        counts = numpy.multiply.outer(counts, numpy.minimum(first + k, n + 2 * p) - first)
    return y * _core.cast(tensor(counts / divisor_override), y.dtype)


def avg_pool1d(input: Any, kernel_size: Shape, stride: Shape | None = None, padding: Shape = 0, ceil_mode: bool = False,
               count_include_pad: bool = True) -> Tensor:
    """The mean of each window of x [B,C,S] or [C,S]; stride is by default kernel_size.  Padding counts as zeros, unless
    count_include_pad is False.  ValueError: shapes do not fit."""
    return _avg_pool("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(input: Any, kernel_size: Shape, stride: Shape | None = None, padding: Shape = 0, ceil_mode: bool = False,
               count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
    """avg_pool1d of two axes: x [B,C,H,W] or [C,H,W]; divisor_override: what sums are divided by, instead of their number."""
    return _avg_pool("avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(input: Any, kernel_size: Shape, stride: Shape | None = None, padding: Shape = 0, ceil_mode: bool = False,
               count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
    """avg_pool1d of three axes: x [B,C,D,H,W] or [C,D,H,W]; divisor_override: what sums are divided by, instead of their
    number."""
    return _avg_pool("avg_pool3d", 3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _lp_pool(call: str, axes: int, input: Any, norm_type: float, kernel_size: Shape, stride: Shape | None, ceil_mode: bool) -> Tensor:
    (x,) = floating(call, input)
    n = math.prod(_each(call, "kernel_size", kernel_size, axes))
    y = _core.relu(_avg_pool(call, axes, x ** norm_type, kernel_size, stride, 0, ceil_mode, True)) * n
    positive = y > 0  # the gradient of a window of zeros is 0
    return _core.select(positive, _core.select(positive, y, 1) ** (1 / norm_type), 0)


def lp_pool1d(input: Any, norm_type: float, kernel_size: Shape, stride: Shape | None = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x^p)^(1/p) of each window of x [B,C,S] or [C,S], p = norm_type, 0 where the sum is negative; its gradient is 0
    where the sum is 0 (NaN in PyTorch).  ValueError: shapes do not fit."""
    return _lp_pool("lp_pool1d", 1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input: Any, norm_type: float, kernel_size: Shape, stride: Shape | None = None, ceil_mode: bool = False) -> Tensor:
    """lp_pool1d of two axes: x [B,C,H,W] or [C,H,W]."""
    return _lp_pool("lp_pool2d", 2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input: Any, norm_type: float, kernel_size: Shape, stride: Shape | None = None, ceil_mode: bool = False) -> Tensor:
    """lp_pool1d of three axes: x [B,C,D,H,W] or [C,D,H,W]."""
    return _lp_pool("lp_pool3d", 3, input, norm_type, kernel_size, stride, ceil_mode)


def _adaptive(call: str, axes: int, input: Any, output_size: Any) -> tuple[Tensor, tuple[int, ...]]:
    """The operand with a batch axis, and the lengths of its pooled axes; None: as before."""
    x = _pooled(call, axes, input)
    sizes = (output_size,) * axes if output_size is None or isinstance(output_size, int) else tuple(output_size)
    if len(sizes) != axes or any(n is not None and n < 1 for n in sizes):
        raise ValueError(f"{call}: output_size is one positive number or {axes}, got {output_size}")
    to = tuple(n if m is None else m for m, n in zip(sizes, x.shape[-axes:]))
    return x if x.ndim == axes + 2 else _core.reshape(x, (1, *x.shape)), to


def _adaptive_avg(call: str, axes: int, input: Any, output_size: Any) -> Tensor:
    x, to = _adaptive(call, axes, input, output_size)
    y = _core.adaptive_mean_pool(x, to)
    return y if _of(input).ndim == axes + 2 else _core.reshape(y, y.shape[1:])


def _adaptive_max(call: str, axes: int, input: Any, output_size: Any, return_indices: bool) -> Any:
    import numpy

    x, to = _adaptive(call, axes, input, output_size)
    single = _of(input).ndim == axes + 1
    if not return_indices:
        y = _core.adaptive_max_pool(x, to)
        return _core.reshape(y, y.shape[1:]) if single else y
    # the elements of each window, the last ones repeated up to the longest window's number: [to.., elements]
    at = numpy.zeros((1,) * (2 * axes), "i8")
    for axis, (n, m) in enumerate(zip(x.shape[2:], to)):
        first, last = numpy.arange(m) * n // m, -(-(numpy.arange(m) + 1) * n // m) - 1
        inside = numpy.minimum(first[:, None] + numpy.arange((last - first).max() + 1), last[:, None])
        at = at * n + inside.reshape([s for k in range(axes) for s in ((m,) if k == axis else (1,))] +
                                     [s for k in range(axes) for s in ((inside.shape[1],) if k == axis else (1,))])
    at = at.reshape(*to, -1)
    flat = _core.reshape(x, (*x.shape[:2], math.prod(x.shape[2:])))
    best = _core.argmax(_core.stop_grad(_core.reshape(_core.gather(flat, tensor(at.reshape(-1)), 2), (*x.shape[:2], *at.shape))), -1)
    rows = tensor(numpy.arange(math.prod(to)).reshape(to) * at.shape[-1])
    indices = _core.gather(tensor(at.reshape(-1)), best + rows, 0)
    y = _core.reshape(_core.take_along(flat, _core.reshape(indices, (*x.shape[:2], math.prod(to))), 2), indices.shape)
    return (_core.reshape(y, y.shape[1:]), _core.reshape(indices, indices.shape[1:])) if single else (y, indices)


def adaptive_avg_pool1d(input: Any, output_size: Any) -> Tensor:
    """Divides the last axis of x [B,C,S] or [C,S] into output_size windows and takes the mean of each.  ValueError: shapes do
    not fit."""
    return _adaptive_avg("adaptive_avg_pool1d", 1, input, output_size)


def adaptive_avg_pool2d(input: Any, output_size: Any) -> Tensor:
    """adaptive_avg_pool1d of two axes: x [B,C,H,W] or [C,H,W]; an output_size of None leaves an axis as it is."""
    return _adaptive_avg("adaptive_avg_pool2d", 2, input, output_size)


def adaptive_avg_pool3d(input: Any, output_size: Any) -> Tensor:
    """adaptive_avg_pool1d of three axes: x [B,C,D,H,W] or [C,D,H,W]; an output_size of None leaves an axis as it is."""
    return _adaptive_avg("adaptive_avg_pool3d", 3, input, output_size)


def adaptive_max_pool1d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Divides the last axis of x [B,C,S] or [C,S] into output_size windows and takes the maximum of each; with return_indices
    also its index.  ValueError: shapes do not fit."""
    return _adaptive_max("adaptive_max_pool1d", 1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """adaptive_max_pool1d of two axes: x [B,C,H,W] or [C,H,W]; an output_size of None leaves an axis as it is."""
    return _adaptive_max("adaptive_max_pool2d", 2, input, output_size, return_indices)


def adaptive_max_pool3d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """adaptive_max_pool1d of three axes: x [B,C,D,H,W] or [C,D,H,W]; an output_size of None leaves an axis as it is."""
    return _adaptive_max("adaptive_max_pool3d", 3, input, output_size, return_indices)


def _max_unpool(call: str, axes: int, x: Any, indices: Any, kernel_size: Shape, stride: Shape | None, padding: Shape,
                output_size: Sequence[int] | None) -> Tensor:
    kernel, pad = _each(call, "kernel_size", kernel_size, axes), _each(call, "padding", padding, axes)
    step = _each(call, "stride", stride, axes) if stride else kernel
    x, indices = _of(x), _of(indices)
    if x.ndim not in (axes + 1, axes + 2) or tuple(x.shape) != tuple(indices.shape):
        raise ValueError(f"{call}: takes x with {axes} axes after the channels, and indices of its shape, got "
                         f"{list(x.shape)} and {list(indices.shape)}")
    to = [(q - 1) * s - 2 * p + k for q, k, s, p in zip(x.shape[-axes:], kernel, step, pad)]
    if output_size is not None:
        given = list(output_size)[-axes:]
        if len(output_size) not in (axes, x.ndim) or any(abs(g - t) >= s for g, t, s in zip(given, to, step)):
            raise ValueError(f"{call}: output_size {list(output_size)} is not within a stride, {list(step)}, of {to}")
        to = given
    if x.ndim == axes + 1:
        y = _core.max_unpool(_core.reshape(x, (1, *x.shape)), _core.reshape(indices, (1, *x.shape)), to)
        return _core.reshape(y, y.shape[1:])
    return _core.max_unpool(x, indices, to)


def max_unpool1d(input: Any, indices: Any, kernel_size: Shape, stride: Shape | None = None, padding: Shape = 0,
                 output_size: Sequence[int] | None = None) -> Tensor:
    """The inverse of max_pool1d as far as there is one: zeros with the elements of x [B,C,Q] or [C,Q] at the indices that the
    pool returned.  output_size: the size before pooling, by default (Q - 1) stride - 2 padding + kernel_size; it is within
    a stride of that.  Of several elements at one index the mean remains.  ValueError: shapes do not fit; an index outside
    is an error at evaluation."""
    return _max_unpool("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(input: Any, indices: Any, kernel_size: Shape, stride: Shape | None = None, padding: Shape = 0,
                 output_size: Sequence[int] | None = None) -> Tensor:
    """max_unpool1d of two axes."""
    return _max_unpool("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(input: Any, indices: Any, kernel_size: Shape, stride: Shape | None = None, padding: Shape = 0,
                 output_size: Sequence[int] | None = None) -> Tensor:
    """max_unpool1d of three axes."""
    return _max_unpool("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)


# ---- layers ----

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

    def __init__(self, kernel_size: Shape, stride: Shape | None = None, padding: Shape = 0, ceil_mode: bool = False,
                 count_include_pad: bool = False) -> None:
        self._wrap(_core.nn_mean_pool(window=kernel_size, stride=stride or 0, lo=padding, hi=padding, axes=self.axes,
                                      ceil_mode=ceil_mode, count_include_pad=count_include_pad))


class AvgPool1d(MeanPool):
    """The mean of each window; padding counts as zeros, unless count_include_pad is False."""

    axes = 1

    def __init__(self, kernel_size: Shape, stride: Shape | None = None, padding: Shape = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)


class AvgPool2d(AvgPool1d):
    """The mean of each window of two axes; divisor_override: what sums are divided by, instead of their number."""

    axes = 2

    def __init__(self, kernel_size: Shape, stride: Shape | None = None, padding: Shape = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True, divisor_override: int | None = None) -> None:
        self.divisor_override = divisor_override
        if divisor_override is None:
            super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)
        else:
            self._how = (kernel_size, stride, padding, ceil_mode, count_include_pad)

    def _compose(self, x: Any) -> Tensor:
        return _avg_pool(type(self).__name__, self.axes, x, *self._how, self.divisor_override)


class AvgPool3d(AvgPool2d):
    """The mean of each window of three axes; divisor_override: what sums are divided by, instead of their number."""

    axes = 3


class _LPPool(UnaryModule):
    def __init__(self, norm_type: float, kernel_size: Shape, stride: Shape | None = None, ceil_mode: bool = False) -> None:
        self._set(norm_type=norm_type, kernel_size=kernel_size, stride=stride, ceil_mode=ceil_mode)


class LPPool1d(_LPPool):
    _function = staticmethod(lp_pool1d)


class LPPool2d(_LPPool):
    _function = staticmethod(lp_pool2d)


class LPPool3d(_LPPool):
    _function = staticmethod(lp_pool3d)


class _MaxUnpool(Module):
    """The inverse of a maximum pooling as far as there is one: forward(x, indices, output_size=None) gives zeros with the
    elements of x [B,C,Q..] or [C,Q..] at the indices that the pool returned.  output_size: the size before pooling, by
    default (Q - 1) stride - 2 padding + kernel_size; it is within a stride of that, and may have all axes or the spatial
    ones alone.  Of several elements at one index the mean remains.  ValueError: shapes do not fit; an index outside is an
    error when it is evaluated."""

    axes = 0

    def __init__(self, kernel_size: Shape, stride: Shape | None = None, padding: Shape = 0) -> None:
        each = [(v,) * self.axes if isinstance(v, int) else tuple(v) for v in (kernel_size, stride or kernel_size, padding)]
        if any(len(v) != self.axes for v in each):
            raise ValueError(f"{type(self).__name__}: kernel_size, stride and padding have {self.axes} numbers each, got "
                             f"{kernel_size}, {stride} and {padding}")
        self.kernel_size, self.stride, self.padding = each

    def forward(self, x: Any, indices: Any, output_size: Sequence[int] | None = None) -> Tensor:
        return _max_unpool(type(self).__name__, self.axes, x, indices, self.kernel_size, self.stride, self.padding, output_size)

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


def _lengths(to: Any, axes: int) -> Any:
    """Sizes that the C library's layer takes, or None: there are such as follow the operand's."""
    if to is None or (not isinstance(to, int) and any(n is None for n in to)):
        return None
    return (to,) * axes if isinstance(to, int) and axes else to


class AdaptiveMaxPool(Layer):
    """Divides each axis after the channels into output_size windows and takes the maximum of each.  AdaptiveMaxPool1d, 2d and
    3d fix the number of these axes, so an output_size of None can leave an axis as it is.  With return_indices they give a
    pair: the maxima and their row-major indices in these axes."""

    axes = 0

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        self.output_size, self.return_indices = output_size, return_indices
        to = _lengths(output_size, self.axes)
        if return_indices and not self.axes:
            raise ValueError("nn.AdaptiveMaxPool: return_indices is for AdaptiveMaxPool1d, 2d and 3d, which fix the number of axes")
        if to is not None and not return_indices:
            self._wrap(_core.nn_adaptive_max_pool(self.axes or _axes(to), to))

    def _compose(self, x: Any) -> Any:
        return _adaptive_max(f"nn.{type(self).__name__}", self.axes, x, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(AdaptiveMaxPool):
    """Divides one axis into output_size windows and takes the maximum of each; with return_indices also its index."""

    axes = 1


class AdaptiveMaxPool2d(AdaptiveMaxPool):
    """Divides each of two axes into output_size windows and takes the maximum of each; with return_indices also its index."""

    axes = 2


class AdaptiveMaxPool3d(AdaptiveMaxPool):
    """Divides each of three axes into output_size windows and takes the maximum of each; with return_indices also its index."""

    axes = 3


class AdaptiveMeanPool(Layer):
    """Divides each axis after the channels into output_size windows and takes the mean of each."""

    axes = 0

    def __init__(self, output_size: Any) -> None:
        self.output_size = output_size
        to = _lengths(output_size, self.axes)
        if to is not None:
            self._wrap(_core.nn_adaptive_mean_pool(self.axes or _axes(to), to))

    def _compose(self, x: Any) -> Tensor:
        return _adaptive_avg(f"nn.{type(self).__name__}", self.axes, x, self.output_size)


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


class UpsamplingNearest2d(Upsample):
    """Upsample of two axes with mode="nearest"."""

    def __init__(self, size: Shape | None = None, scale_factor: float | Sequence[float] | None = None) -> None:
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """Upsample of two axes with mode="bilinear" and align_corners."""

    def __init__(self, size: Shape | None = None, scale_factor: float | Sequence[float] | None = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)
