# SPDX-License-Identifier: Apache-2.0
"""Functions and layers that only change the shape or the order of elements, with PyTorch's names and arguments."""
from __future__ import annotations

from typing import Any, Sequence

from .. import _core
from .._common import Tensor, _of
from .._shapes import flatten, unflatten
from ._function import UnaryModule
from ._layer import Layer
from ._module import Module


def pixel_shuffle(input: Any, upscale_factor: int) -> Tensor:
    """x [..,C r^2,H,W] -> [..,C,H r,W r], r = upscale_factor: channels become pixels (Shi et al. 2016).  ValueError: r^2 does
    not divide the channels."""
    x, r = _of(input), upscale_factor
    if x.ndim < 3 or r < 1 or x.shape[-3] % (r * r):
        raise ValueError(f"pixel_shuffle: takes [..,C r^2,H,W], got {list(x.shape)} and r = {r}")
    *lead, c, h, w = x.shape
    n = len(lead)
    y = _core.permute(_core.reshape(x, (*lead, c // (r * r), r, r, h, w)), (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return _core.reshape(y, (*lead, c // (r * r), h * r, w * r))


def pixel_unshuffle(input: Any, downscale_factor: int) -> Tensor:
    """x [..,C,H r,W r] -> [..,C r^2,H,W], r = downscale_factor: the inverse of pixel_shuffle.  ValueError: r does not divide
    the axes."""
    x, r = _of(input), downscale_factor
    if x.ndim < 3 or r < 1 or x.shape[-1] % r or x.shape[-2] % r:
        raise ValueError(f"pixel_unshuffle: takes [..,C,H r,W r], got {list(x.shape)} and r = {r}")
    *lead, c, h, w = x.shape
    n = len(lead)
    y = _core.permute(_core.reshape(x, (*lead, c, h // r, r, w // r, r)), (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return _core.reshape(y, (*lead, c * r * r, h // r, w // r))


def channel_shuffle(input: Any, groups: int) -> Tensor:
    """x [B,C,..]: takes the channels of all groups in turn (Zhang et al. 2018).  ValueError: groups do not divide the
    channels."""
    x = _of(input)
    if x.ndim < 3 or groups < 1 or x.shape[1] % groups:
        raise ValueError(f"channel_shuffle: takes [B,C,S..] and groups that divide C, got {list(x.shape)} and {groups}")
    y = _core.reshape(x, (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]))
    return _core.reshape(_core.permute(y, (0, 2, 1, *range(3, y.ndim))), x.shape)


class Identity(Module):
    """Returns its operand."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def forward(self, x: Any) -> Any:
        return x


class Flatten(Layer):
    """Joins axes start_dim to end_dim; by default x [B,..] -> [B,n]."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim
        if (start_dim, end_dim) == (1, -1):
            self._wrap(_core.nn_flatten())

    def _compose(self, x: Any) -> Tensor:
        return flatten(x, self.start_dim, self.end_dim)


class Unflatten(UnaryModule):
    """Divides axis dim into axes of the lengths unflattened_size, of which one may be -1."""

    _function = staticmethod(unflatten)

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        self._set(dim=dim, unflattened_size=tuple(unflattened_size))

    def forward(self, input: Any) -> Tensor:
        return unflatten(input, self.dim, self.unflattened_size)


class PixelShuffle(UnaryModule):
    _function = staticmethod(pixel_shuffle)

    def __init__(self, upscale_factor: int) -> None:
        self._set(upscale_factor=upscale_factor)


class PixelUnshuffle(UnaryModule):
    _function = staticmethod(pixel_unshuffle)

    def __init__(self, downscale_factor: int) -> None:
        self._set(downscale_factor=downscale_factor)


class ChannelShuffle(UnaryModule):
    _function = staticmethod(channel_shuffle)

    def __init__(self, groups: int) -> None:
        self._set(groups=groups)
