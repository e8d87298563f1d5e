# SPDX-License-Identifier: Apache-2.0
"""Dropout as functions and layers, with PyTorch's names and arguments.  `inplace` has no effect: tensors are values."""
from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._common import Tensor
from ._function import UnaryModule, floating
from ._layer import Layer

# ---- functions ----

def _probability(call: str, p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"{call}: p is a probability, 0 to 1, got {p}")


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, zeroes each element with probability p and divides the others by 1 - p (Srivastava et al. 2014).
    ValueError: p is no probability."""
    (x,) = floating("dropout", input)
    _probability("dropout", p)
    return x if not training else x * 0 if p == 1 else _core.dropout(x, p)


def _features(call: str, input: Any, p: float, training: bool, axes: tuple[int, ...], lead: int) -> tuple[Tensor, tuple[int, ...]]:
    """The operand, and the shape with one element for each feature map, whose first `lead` axes are batch and channels."""
    (x,) = floating(call, input)
    _probability(call, p)
    if x.ndim not in axes:
        raise ValueError(f"{call}: takes {' or '.join(map(str, axes))} axes, got {list(x.shape)}")
    return x, x.shape[:lead] + (1,) * (x.ndim - lead)


def _dropped_features(call: str, input: Any, p: float, training: bool, axes: tuple[int, ...], lead: int) -> Tensor:
    x, maps = _features(call, input, p, training, axes, lead)
    return x if not training else x * 0 if p == 1 else x * _core.dropout(_core.full(x.dtype, maps, 1), p)


def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """dropout of whole channels of x [B,C,S] or [C,S].  ValueError: x has other axes, or p is no probability."""
    return _dropped_features("dropout1d", input, p, training, (2, 3), 1 if getattr(input, "ndim", 3) == 2 else 2)


def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """dropout of whole channels of x [B,C,H,W], or as in PyTorch [B,C,S].  ValueError: x has other axes, or p is no
    probability."""
    return _dropped_features("dropout2d", input, p, training, (3, 4), 2)


def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """dropout of whole channels of x [B,C,D,H,W] or [C,D,H,W].  ValueError: x has other axes, or p is no probability."""
    return _dropped_features("dropout3d", input, p, training, (4, 5), 1 if getattr(input, "ndim", 5) == 4 else 2)


def _alpha(x: Tensor, p: float, shape: tuple[int, ...]) -> Tensor:
    """a (x kept + s (kept - 1) + s p) with one `kept` for each element of shape: mean and variance stay 0 and 1 (Klambauer
    2017)."""
    s = 1.0507009873554804934193349852946 * 1.6732632423543772848170429916717
    kept = _core.cast(_core.dropout(_core.full(x.dtype, shape, 1), p) > 0, x.dtype) if p < 1 else _core.full(x.dtype, shape, 0)
    a = 1 / math.sqrt((s * s * p + 1) * (1 - p)) if p < 1 else 0.0
    return x * (kept * a) + ((kept - 1) * (s * a) + s * a * p)


def alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """In training, sets elements with probability p to SELU's lowest value and scales all so that a mean of 0 and a variance
    of 1 stay (Klambauer et al. 2017).  ValueError: p is no probability."""
    (x,) = floating("alpha_dropout", input)
    _probability("alpha_dropout", p)
    return _alpha(x, p, x.shape) if training and p else x


def feature_alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """alpha_dropout of whole channels of x [B,C,..].  ValueError: x has less than two axes, or p is no probability."""
    x, maps = _features("feature_alpha_dropout", input, p, training, (2, 3, 4, 5), 2)
    return _alpha(x, p, maps) if training and p else x


# ---- modules ----

class Dropout(Layer):
    """In training, zeroes each element with probability p and divides the others by 1 - p."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        self.p = p
        if p != 1:
            self._wrap(_core.nn_dropout(p))

    def _compose(self, x: Any) -> Tensor:
        return dropout(x, self.p, self.training)


class DropoutModule(UnaryModule):
    """Base class of functions that drop with a probability p in training."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        _probability(f"nn.{type(self).__name__}", p)
        self._set(p=p, inplace=inplace)

    def forward(self, input: Any) -> Tensor:
        y: Tensor = self._apply(input, training=self.training)
        return y


class Dropout1d(DropoutModule):
    _function = staticmethod(dropout1d)


class Dropout2d(DropoutModule):
    _function = staticmethod(dropout2d)


class Dropout3d(DropoutModule):
    _function = staticmethod(dropout3d)


class AlphaDropout(DropoutModule):
    _function = staticmethod(alpha_dropout)


class FeatureAlphaDropout(DropoutModule):
    _function = staticmethod(feature_alpha_dropout)
