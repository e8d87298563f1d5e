# SPDX-License-Identifier: Apache-2.0
"""Padding as a function and layers, with PyTorch's names and arguments."""
from __future__ import annotations

from typing import Any, Sequence

from .. import _core
from .._arrays import tensor
from .._common import Tensor, _of
from ._function import UnaryModule
from ._module import Shape

MODES = ("constant", "reflect", "replicate", "circular")


def pad(input: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Adds elements before and after the last axes: pad is (before, after) of the last axis, then of the one before it, and so
    on; negative numbers remove elements.  mode "constant" adds value, by default 0; "reflect" the elements in reverse order
    without the edge; "replicate" the edge; "circular" those of the other end.  ValueError: pad or mode do not fit."""
    x, sizes = _of(input), [int(n) for n in pad]
    if mode not in MODES:
        raise ValueError(f"pad: mode is one of {', '.join(MODES)}, not {mode!r}")
    if len(sizes) % 2 or len(sizes) > 2 * x.ndim:
        raise ValueError(f"pad: takes two numbers for each of the last axes of {list(x.shape)}, got {sizes}")
    lo = [0] * (x.ndim - len(sizes) // 2) + sizes[-2::-2]
    hi = [0] * (x.ndim - len(sizes) // 2) + sizes[::-2]
    if any(n + a + b < 0 or (n and -min(a, b, 0) > n) for n, a, b in zip(x.shape, lo, hi)):
        raise ValueError(f"pad: {sizes} removes more elements than {list(x.shape)} has")
    if mode != "constant":
        if value is not None:
            raise ValueError(f"pad: value is for mode 'constant', not {mode!r}")
        for axis, (n, a, b) in enumerate(zip(x.shape, lo, hi)):
            if a or b:
                x = _core.gather(x, tensor(_positions(mode, n, a, b)), axis)
        return x
    for axis, (n, a, b) in enumerate(zip(x.shape, lo, hi)):
        if a < 0 or b < 0:
            x = _core.slice(x, axis, -min(a, 0), n + min(b, 0))
    lo, hi = [max(n, 0) for n in lo], [max(n, 0) for n in hi]
    return _core.pad(x, lo, hi, 0.0 if value is None else value) if any(lo) or any(hi) else x


def _positions(mode: str, n: int, lo: int, hi: int) -> Any:
    """Where the elements of a padded axis come from."""
    import numpy

    limit = {"reflect": n - 1, "circular": n}.get(mode, max(lo, hi))
    if max(lo, hi) > limit or n < 1:
        raise ValueError(f"pad: mode {mode!r} adds at most {max(limit, 0)} elements to an axis of {n}, got {lo} and {hi}")
    at = numpy.arange(-lo, n + hi)
    if mode == "circular":  # around what negative numbers leave
        first, left = -min(lo, 0), n + min(lo, 0) + min(hi, 0)
        return (at - first) % left + first
    return numpy.clip(at, 0, n - 1) if mode == "replicate" else (n - 1) - abs((n - 1) - abs(at))


class _Pad(UnaryModule):
    axes, mode = 1, "constant"

    def __init__(self, padding: Shape) -> None:
        self.padding = _both_sides(type(self).__name__, padding, self.axes)

    def forward(self, input: Any) -> Tensor:
        """x [B,C,S..] or [C,S..] with its last axes padded."""
        x = _of(input)
        if x.ndim not in (self.axes + 1, self.axes + 2):
            raise ValueError(f"{type(self).__name__}: takes {self.axes + 1} or {self.axes + 2} axes, got {list(x.shape)}")
        return pad(x, self.padding, self.mode)

    def extra_repr(self) -> str:
        return str(self.padding)


def _both_sides(call: str, padding: Shape, axes: int) -> tuple[int, ...]:
    sizes = (padding,) * (2 * axes) if isinstance(padding, int) else tuple(padding)
    if len(sizes) != 2 * axes:
        raise ValueError(f"{call}: padding is one number or {2 * axes}, got {padding}")
    return sizes


class _ConstantPad(_Pad):
    def __init__(self, padding: Shape, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Tensor:
        """x with its last axes padded."""
        return pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Shape) -> None:
        super().__init__(padding, 0.0)


class ConstantPad1d(_ConstantPad):
    """Value is added before and after the last axis.  padding: one number, or
    (before, after)."""


class ConstantPad2d(_ConstantPad):
    """Value is added before and after each of the last two axes.  padding: one number, or
    (left, right, top, bottom)."""

    axes = 2


class ConstantPad3d(_ConstantPad):
    """Value is added before and after each of the last three axes.  padding: one number, or
    (left, right, top, bottom, front, back)."""

    axes = 3


class ZeroPad1d(_ZeroPad):
    """0 is added before and after the last axis.  padding: one number, or
    (before, after)."""


class ZeroPad2d(_ZeroPad):
    """0 is added before and after each of the last two axes.  padding: one number, or
    (left, right, top, bottom)."""

    axes = 2


class ZeroPad3d(_ZeroPad):
    """0 is added before and after each of the last three axes.  padding: one number, or
    (left, right, top, bottom, front, back)."""

    axes = 3


class ReflectionPad1d(_Pad):
    """The elements in reverse order, without the edge, are added before and after the last axis.  padding: one number, or
    (before, after)."""

    mode = "reflect"


class ReflectionPad2d(_Pad):
    """The elements in reverse order, without the edge, are added before and after each of the last two axes.  padding: one
    number, or (left, right, top, bottom)."""

    axes, mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """The elements in reverse order, without the edge, are added before and after each of the last three axes.  padding: one
    number, or (left, right, top, bottom, front, back)."""

    axes, mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """The edge is repeated before and after the last axis.  padding: one number, or
    (before, after)."""

    mode = "replicate"


class ReplicationPad2d(_Pad):
    """The edge is repeated before and after each of the last two axes.  padding: one number, or
    (left, right, top, bottom)."""

    axes, mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """The edge is repeated before and after each of the last three axes.  padding: one number, or
    (left, right, top, bottom, front, back)."""

    axes, mode = 3, "replicate"


class CircularPad1d(_Pad):
    """The elements of the other end are added before and after the last axis.  padding: one number, or
    (before, after)."""

    mode = "circular"


class CircularPad2d(_Pad):
    """The elements of the other end are added before and after each of the last two axes.  padding: one number, or
    (left, right, top, bottom)."""

    axes, mode = 2, "circular"


class CircularPad3d(_Pad):
    """The elements of the other end are added before and after each of the last three axes.  padding: one number, or
    (left, right, top, bottom, front, back)."""

    axes, mode = 3, "circular"
