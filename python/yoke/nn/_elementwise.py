# SPDX-License-Identifier: Apache-2.0
"""Dropout and layers that only change the shape."""
from __future__ import annotations

from typing import Any

from .. import _core
from ._layer import Layer
from ._module import Module


class Dropout(Layer):
    """In training, zeroes each element with probability p and divides the others by 1 - p."""

    def __init__(self, p: float = 0.5) -> None:
        self._wrap(_core.nn_dropout(p))


class Identity(Module):
    """Returns its operand."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def forward(self, x: Any) -> Any:
        return x


class Flatten(Layer):
    """x [B,..] -> [B,n]."""

    def __init__(self) -> None:
        self._wrap(_core.nn_flatten())
