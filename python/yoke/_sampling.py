# SPDX-License-Identifier: Apache-2.0
"""Interpolation, sampling, bags and windows, as PyTorch has them."""
from __future__ import annotations

import builtins
from typing import Any, Sequence

from . import _core
from ._common import Tensor, _of

__all__ = [
    "interpolate", "grid_sample", "affine_grid", "embedding_bag", "unfold", "fold", "max_unpool",
]


_MODES = {"nearest": 0, "nearest-exact": 1, "linear": 2, "bilinear": 2, "trilinear": 2, "bicubic": 3}
_PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}
_AXES_OF = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
_BAGS = {"sum": 0, "mean": 1, "max": 2}


def _choice(call: str, what: str, name: str, choices: dict[str, int]) -> int:
    if name not in choices:
        raise ValueError(f"{call}: {what} {name!r} is none of {', '.join(choices)}")
    return choices[name]


def interpolate(x: Any, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None,
                mode: str = "nearest", align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Tensor:
    """x [B,C,S..] to another size, or by a factor, as PyTorch's: mode nearest, nearest-exact, linear, bilinear, trilinear,
    bicubic or area.  With recompute_scale_factor positions are those of the size, not of the factor."""
    x = _of(x)
    axes = builtins.max(len(x.shape) - 2, 0)
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: give either size or scale_factor")
    factors: tuple[float, ...] = ()
    if size is not None:
        to = (size,) * axes if isinstance(size, int) else tuple(size)
    else:
        assert scale_factor is not None
        factors = (float(scale_factor),) * axes if isinstance(scale_factor, (int, float)) else tuple(map(float, scale_factor))
        to = tuple(int(n * f) for n, f in zip(x.shape[2:], factors))
        if recompute_scale_factor:
            factors = ()
    if len(to) != axes or (factors and len(factors) != axes):
        raise ValueError(f"interpolate: {len(to)} sizes for x of shape {tuple(x.shape)}, which has {axes} axes after the channels")
    if axes != _AXES_OF.get(mode, axes):
        raise ValueError(f"interpolate: mode {mode} is for {_AXES_OF[mode]} axes after the channels, and x is {list(x.shape)}")
    if mode == "area":
        return _core.adaptive_mean_pool(x, to)
    return _core.interpolate(x, to, mode=_choice("interpolate", "mode", mode, _MODES), align_corners=bool(align_corners),
                             antialias=antialias, scale=factors)


def grid_sample(x: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = False) -> Tensor:
    """The images x [B,C,H,W] at the positions of grid [B,P,Q,2], or volumes at [B,O,P,Q,3]; mode bilinear, nearest or
    bicubic, padding_mode zeros, border or reflection."""
    return _core.grid_sample(_of(x), _of(grid), _choice("grid_sample", "mode", mode, _MODES),
                             _choice("grid_sample", "padding_mode", padding_mode, _PADDINGS), bool(align_corners))


def affine_grid(theta: Any, size: Sequence[int], align_corners: bool | None = False) -> Tensor:
    """The positions, for grid_sample, of affine maps theta [B,2,3] or [B,3,4]; size: that of the images, [B,C,H,W] or
    [B,C,D,H,W]."""
    return _core.affine_grid(_of(theta), tuple(size)[2:], bool(align_corners))


def embedding_bag(ids: Any, weight: Any, offsets: Any = None, mode: str = "mean", per_sample_weights: Any = None,
                  include_last_offset: bool = False, padding_idx: int | None = None) -> Tensor:
    """Sums, means or maxima of rows of weight [N,C]: of each row of ids [B,L], or of ids [M] from each of the offsets on."""
    w = _of(weight)
    padding = -1 if padding_idx is None else padding_idx + (w.shape[0] if padding_idx < 0 else 0)
    return _core.embedding_bag(w, _of(ids), mode=_choice("embedding_bag", "mode", mode, _BAGS), padding=padding,
                               offsets=None if offsets is None else _of(offsets),
                               weights=None if per_sample_weights is None else _of(per_sample_weights),
                               include_last=include_last_offset)


def unfold(x: Any, kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1, padding: int | Sequence[int] = 0,
           stride: int | Sequence[int] = 1) -> Tensor:
    """The windows of x [B,C,S..] as columns: [B,C times the window,L]."""
    return _core.unfold(_of(x), window=kernel_size, dilation=dilation, lo=padding, hi=padding, stride=stride)


def fold(x: Any, output_size: int | Sequence[int], kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1,
         padding: int | Sequence[int] = 0, stride: int | Sequence[int] = 1) -> Tensor:
    """Columns [B,C times the window,L], added up into [B,C,output_size..]: the adjoint of unfold."""
    to = (output_size,) * 2 if isinstance(output_size, int) else tuple(output_size)
    return _core.fold(_of(x), to, window=kernel_size, dilation=dilation, lo=padding, hi=padding, stride=stride, axes=len(to))


def max_unpool(x: Any, indices: Any, size: int | Sequence[int]) -> Tensor:
    """Zeros of [B,C,size..] with the elements of x at the places that max_pool_indices gave."""
    return _core.max_unpool(_of(x), _of(indices), size)
