# SPDX-License-Identifier: Apache-2.0
"""Normalization layers."""
from __future__ import annotations

from .. import _core
from ._layer import Layer
from ._module import Shape


def _width(call: str, shape: Shape) -> int:
    dims = [shape] if isinstance(shape, int) else list(shape)
    if len(dims) != 1:
        raise ValueError(f"{call}: norms are of the last axis, not of {len(dims)}")
    return dims[0]


class LayerNorm(Layer):
    """(x - mean) / standard deviation of the last axis, times weight, plus bias."""

    def __init__(self, normalized_shape: Shape, eps: float = 1e-5) -> None:
        self._wrap(_core.nn_layer_norm(_width("LayerNorm", normalized_shape), eps))


class RMSNorm(Layer):
    """x / root mean square of the last axis, times weight."""

    def __init__(self, normalized_shape: Shape, eps: float = 1e-6) -> None:
        self._wrap(_core.nn_rms_norm(_width("RMSNorm", normalized_shape), eps))


class GroupNorm(Layer):
    """x [B,channels,..]: normalizes each group of channels, then times weight, plus bias."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5) -> None:
        self._wrap(_core.nn_group_norm(num_groups, num_channels, eps))


class BatchNorm(Layer):
    """x [B,channels,..]: normalizes each channel over the batch and all other axes."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        self._wrap(_core.nn_batch_norm(num_features, eps, momentum))


# PyTorch's names, one for each number of axes; BatchNorm takes any number.
BatchNorm1d = BatchNorm2d = BatchNorm
