# SPDX-License-Identifier: Apache-2.0
"""Activations, dropout and layers that only change the shape."""
from __future__ import annotations

from typing import Any

from .. import _core
from ._layer import Layer
from ._module import Module


class Activation(Layer):
    """An activation by name: relu, gelu, gelu_tanh, silu, tanh or sigmoid."""

    def __init__(self, name: str) -> None:
        self._wrap(_core.nn_activation(name))


class ReLU(Activation):
    """max(x, 0)."""

    def __init__(self) -> None:
        super().__init__("relu")


class GELU(Activation):
    """x/2 (1 + erf(x / sqrt 2)), or its approximation by tanh."""

    def __init__(self, approximate: str = "none") -> None:
        if approximate not in ("none", "tanh"):
            raise ValueError(f"GELU: approximate is 'none' or 'tanh', not {approximate!r}")
        super().__init__("gelu_tanh" if approximate == "tanh" else "gelu")


class SiLU(Activation):
    """x sigmoid(x)."""

    def __init__(self) -> None:
        super().__init__("silu")


class Tanh(Activation):
    """The hyperbolic tangent."""

    def __init__(self) -> None:
        super().__init__("tanh")


class Sigmoid(Activation):
    """1 / (1 + exp(-x))."""

    def __init__(self) -> None:
        super().__init__("sigmoid")


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
