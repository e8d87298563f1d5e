# SPDX-License-Identifier: Apache-2.0
"""Linear layers, their low-rank adapters, multilayer perceptrons and embeddings."""
from __future__ import annotations

from typing import Any

from .. import _core, _sampling
from .._common import Tensor
from ._function import floating
from ._layer import Layer
from ._module import Module, Parameter


def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """x w' + b of x [..,in], weight [out,in] or [in] and bias [out] or [], or None -> [..,out], or [..].  ValueError: shapes do not
    fit."""
    x, w, *b = floating("linear", input, weight, *(() if bias is None else (bias,)))
    if x.ndim < 1 or w.ndim not in (1, 2) or x.shape[-1] != w.shape[-1] or any(t.shape != w.shape[:-1] for t in b):
        raise ValueError(f"linear: takes [..,in], [out,in] and [out], got {', '.join(str(list(t.shape)) for t in (x, w, *b))}")
    if w.ndim == 1:
        y = _core.reshape(linear(x, _core.reshape(w, (1, -1))), x.shape[:-1])
        return y + b[0] if b else y
    return _core.linear(x, w, *b)


class Linear(Layer):
    """y = x w' + b: x [..,in] -> [..,out]."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        self.in_features, self.out_features = in_features, out_features
        self._wrap(_core.nn_linear(in_features, out_features, bias))
        if not bias:
            self.bias: Any = None


class LoRA(Layer):
    """A low-rank adapter around a linear layer: inner(x) + alpha/rank (x a') b'."""

    _child_attributes = ("inner",)

    def __init__(self, linear: Linear, rank: int = 8, alpha: float = 16.0) -> None:
        self._wrap(_core.nn_lora(linear._module(), rank, alpha))
        object.__setattr__(self, "inner", linear)


class MLP(Layer):
    """Linear, activation, dropout, linear."""

    def __init__(self, in_features: int, hidden: int, out_features: int, activation: str = "gelu", dropout: float = 0.0) -> None:
        self._wrap(_core.nn_mlp(in_features, hidden, out_features, activation, dropout))


class Embedding(Layer):
    """Rows of a table by index: ids [..] -> [..,width]."""

    def __init__(self, num_embeddings: int, embedding_dim: int) -> None:
        self._wrap(_core.nn_embedding(num_embeddings, embedding_dim))


class EmbeddingBag(Module):
    """Sums, means or maxima of rows of a table: yoke.embedding_bag as a layer."""

    def __init__(self, num_embeddings: int, embedding_dim: int, mode: str = "mean", include_last_offset: bool = False,
                 padding_idx: int | None = None) -> None:
        self.weight = Parameter(shape=(num_embeddings, embedding_dim), normal=1.0)
        self._options = dict(mode=mode, include_last_offset=include_last_offset, padding_idx=padding_idx)

    def forward(self, ids: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return _sampling.embedding_bag(ids, self.weight, offsets, per_sample_weights=per_sample_weights, **self._options)  # type: ignore[arg-type]
