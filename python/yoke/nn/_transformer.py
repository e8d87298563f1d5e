# SPDX-License-Identifier: Apache-2.0
"""Transformers (Vaswani et al. 2017) with PyTorch's names, arguments and parameters, so that its weights load.

Masks are those of MultiheadAttention: bool, true where a key is not visible, or numbers that are added.  Sequences are
[T,B,E], with batch_first [B,T,E], or without the axis B.  A mask is applied as given and never read to find out that it is
causal: is_causal, which replaces the mask, is faster."""
from __future__ import annotations

import copy
import math
from typing import Any, Callable

from .. import _core
from .._arrays import tensor
from .._common import Tensor
from ._activations import gelu, relu
from ._attention import MultiheadAttention
from ._containers import ModuleList
from ._dropout import Dropout
from ._linear import Linear
from ._module import Module
from ._norm import LayerNorm

Activation = str | Callable[[Any], Tensor]


def _activation(call: str, activation: Activation) -> Callable[[Any], Tensor]:
    if isinstance(activation, str):
        if activation not in ("relu", "gelu"):
            raise ValueError(f"{call}: activation is 'relu', 'gelu' or a function, not {activation!r}")
        return relu if activation == "relu" else gelu
    return activation


class TransformerEncoderLayer(Module):
    """Self-attention, then linear1, activation, linear2; each adds to its operand and is followed by a layer norm, or with
    norm_first preceded by it.  dropout applies to both results, between the linear layers and to attention weights.
    activation: "relu", "gelu" or a function."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = relu,
                 layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True) -> None:
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first)
        self.linear1 = Linear(d_model, dim_feedforward, bias)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _activation("TransformerEncoderLayer", activation)

    def forward(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False) -> Tensor:
        """src [T,B,E] -> [T,B,E]; src_mask [T,T] or [B H,T,T], src_key_padding_mask [B,T]."""
        def attention(x: Any) -> Tensor:
            y, _ = self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal)
            return self.dropout1(y)

        def feed_forward(x: Any) -> Tensor:
            return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))

        if self.norm_first:
            x: Tensor = src + attention(self.norm1(src))
            return x + feed_forward(self.norm2(x))
        x = self.norm1(src + attention(src))
        return self.norm2(x + feed_forward(x))


class TransformerDecoderLayer(Module):
    """Self-attention, then attention to the encoder's results, then linear1, activation, linear2; each adds to its operand and
    is followed by a layer norm, or with norm_first preceded by it.  The arguments are those of TransformerEncoderLayer."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = relu,
                 layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True) -> None:
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first)
        self.linear1 = Linear(d_model, dim_feedforward, bias)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _activation("TransformerDecoderLayer", activation)

    def forward(self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None, tgt_key_padding_mask: Any = None,
                memory_key_padding_mask: Any = None, tgt_is_causal: bool = False, memory_is_causal: bool = False) -> Tensor:
        """tgt [T,B,E], memory [S,B,E] -> [T,B,E]; tgt_mask [T,T] and memory_mask [T,S] or one for each [B H],
        tgt_key_padding_mask [B,T] and memory_key_padding_mask [B,S]."""
        def self_attention(x: Any) -> Tensor:
            y, _ = self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)
            return self.dropout1(y)

        def attention(x: Any) -> Tensor:
            y, _ = self.multihead_attn(x, memory, memory, memory_key_padding_mask, False, memory_mask, is_causal=memory_is_causal)
            return self.dropout2(y)

        def feed_forward(x: Any) -> Tensor:
            return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))

        if self.norm_first:
            x: Tensor = tgt + self_attention(self.norm1(tgt))
            x = x + attention(self.norm2(x))
            return x + feed_forward(self.norm3(x))
        x = self.norm1(tgt + self_attention(tgt))
        x = self.norm2(x + attention(x))
        return self.norm3(x + feed_forward(x))


def _copies(call: str, layer: Module, n: int) -> ModuleList:
    if n < 1:
        raise ValueError(f"{call}: num_layers is at least 1, got {n}")
    return ModuleList([copy.deepcopy(layer) for _ in range(n)])


class TransformerEncoder(Module):
    """num_layers copies of a layer, one after another, then norm unless it is None.  enable_nested_tensor and mask_check have
    no effect."""

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True,
                 mask_check: bool = True) -> None:
        self.layers = _copies("TransformerEncoder", encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(self, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool | None = None) -> Tensor:
        """src [T,B,E] -> [T,B,E], with the masks of TransformerEncoderLayer."""
        x = src
        for layer in self.layers:
            x = layer(x, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=bool(is_causal))
        return x if self.norm is None else self.norm(x)  # type: ignore[no-any-return]


class TransformerDecoder(Module):
    """num_layers copies of a layer, one after another, then norm unless it is None."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        self.layers = _copies("TransformerDecoder", decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None, tgt_key_padding_mask: Any = None,
                memory_key_padding_mask: Any = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False) -> Tensor:
        """tgt [T,B,E], memory [S,B,E] -> [T,B,E], with the masks of TransformerDecoderLayer."""
        x = tgt
        for layer in self.layers:
            x = layer(x, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                      memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=bool(tgt_is_causal),
                      memory_is_causal=memory_is_causal)
        return x if self.norm is None else self.norm(x)  # type: ignore[no-any-return]


class Transformer(Module):
    """An encoder and a decoder, each followed by a layer norm.  custom_encoder and custom_decoder: modules instead of them."""

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
                 dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = relu, custom_encoder: Module | None = None,
                 custom_decoder: Module | None = None, layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False,
                 bias: bool = True) -> None:
        how = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        self.encoder = custom_encoder or TransformerEncoder(TransformerEncoderLayer(*how), num_encoder_layers,
                                                            LayerNorm(d_model, layer_norm_eps, bias=bias))
        self.decoder = custom_decoder or TransformerDecoder(TransformerDecoderLayer(*how), num_decoder_layers,
                                                            LayerNorm(d_model, layer_norm_eps, bias=bias))
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        for p in self.parameters().values():
            if p.ndim > 1:  # Glorot and Bengio 2010
                _core.assign(p, (_core.uniform(p.dtype, p.shape) * 2 - 1) * math.sqrt(6 / (p.shape[0] + p.shape[1])))

    def forward(self, src: Any, tgt: Any, src_mask: Any = None, tgt_mask: Any = None, memory_mask: Any = None,
                src_key_padding_mask: Any = None, tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
                src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False) -> Tensor:
        """src [S,B,E], tgt [T,B,E] -> [T,B,E], with the masks of TransformerEncoderLayer and TransformerDecoderLayer."""
        batch = 0 if self.batch_first else 1
        if src.ndim != tgt.ndim or src.ndim not in (2, 3) or src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model or (
                src.ndim == 3 and src.shape[batch] != tgt.shape[batch]):
            raise ValueError(f"Transformer: takes sequences of width {self.d_model} with one batch axis or none, got {list(src.shape)} "
                             f"and {list(tgt.shape)}")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        y: Tensor = self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                                 memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
                                 memory_is_causal=memory_is_causal)
        return y

    @staticmethod
    def generate_square_subsequent_mask(sz: int, *, dtype: Any = "f32") -> Tensor:
        """[sz,sz]: 0 up to the diagonal, -inf above it, for queries that see no later keys."""
        import numpy

        return tensor(numpy.triu(numpy.full((sz, sz), -math.inf), 1), dtype)
