# SPDX-License-Identifier: Apache-2.0
"""Attention and transformer blocks."""
from __future__ import annotations

from typing import Any

from .. import _core
from ._layer import Layer

Tensor = _core.Tensor


class Attention(Layer):
    """Multi-head attention: of x [B,T,width] to itself, or to context [B,S,width]."""

    def __init__(self, width: int, heads: int, *, kv_heads: int = 0, causal: bool = False, bias: bool = True,
                 dropout: float = 0.0, rope: float = 0.0) -> None:
        self._wrap(_core.nn_attention(width=width, heads=heads, kv_heads=kv_heads, causal=causal, bias=bias, dropout=dropout,
                                      rope=rope))

    def __call__(self, x: Any, context: Any = None) -> Tensor:
        return _core.forward(self._module(), [x] if context is None else [x, context])[0]

    forward = __call__


class Block(Layer):
    """A pre-norm transformer block: attention, then an MLP whose hidden width is four times the width."""

    def __init__(self, width: int, heads: int, *, kv_heads: int = 0, causal: bool = False, bias: bool = True,
                 dropout: float = 0.0, rope: float = 0.0) -> None:
        self._wrap(_core.nn_block(width=width, heads=heads, kv_heads=kv_heads, causal=causal, bias=bias, dropout=dropout,
                                  rope=rope))
