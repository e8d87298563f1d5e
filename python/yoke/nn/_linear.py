# SPDX-License-Identifier: Apache-2.0
"""Linear and bilinear layers, low-rank adapters, multilayer perceptrons and embeddings."""
from __future__ import annotations

import math
from typing import Any

from .. import _core, _sampling
from .._common import Tensor, _of
from ._function import floating
from ._layer import Layer
from ._module import Module, Parameter


def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """x w' + b of x [..,in], weight [out,in] or [in] and bias [out] or [], or None -> [..,out], or [..].  ValueError: shapes
    do not fit."""
    x, w, *b = floating("linear", input, weight, *(() if bias is None else (bias,)))
    if x.ndim < 1 or w.ndim not in (1, 2) or x.shape[-1] != w.shape[-1] or any(t.shape != w.shape[:-1] for t in b):
        raise ValueError(f"linear: takes [..,in], [out,in] and [out], got {', '.join(str(list(t.shape)) for t in (x, w, *b))}")
    if w.ndim == 1:
        y = _core.reshape(linear(x, _core.reshape(w, (1, -1))), x.shape[:-1])
        return y + b[0] if b else y
    return _core.linear(x, w, *b)


def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Tensor:
    """x1' W x2 + b of x1 [..,I], x2 [..,J], weight [out,I,J] and bias [out] -> [..,out].  ValueError: shapes do not fit."""
    x, y, w, *b = floating("bilinear", input1, input2, weight, *(() if bias is None else (bias,)))
    fits = w.ndim == 3 and x.ndim and x.shape[:-1] == y.shape[:-1] and x.shape[-1:] + y.shape[-1:] == w.shape[1:]
    if not fits or any(t.shape != w.shape[:1] for t in b):
        given = ", ".join(str(list(t.shape)) for t in (x, y, w, *b))
        raise ValueError(f"bilinear: takes [..,I], [..,J], [out,I,J] and [out], got {given}")
    out, i, j = w.shape
    left = _core.reshape(_core.linear(x, _core.reshape(_core.permute(w, (0, 2, 1)), (out * j, i))), (*x.shape[:-1], out, j))
    z = _core.sum(left * _core.reshape(y, (*y.shape[:-1], 1, j)), -1)
    return z + b[0] if b else z


def _row(call: str, index: int, rows: int) -> int:
    if not -rows <= index < rows:
        raise ValueError(f"{call}: padding_idx {index} is no row of {rows}")
    return index % rows


def _limited(weight: Tensor, ids: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """The table whose rows of these ids have at most a norm; the gradient ignores the scaling.  A variable is changed so."""
    rows = _core.stop_grad(weight)
    norms = _core.norm(rows, norm_type, 1, keepdims=True)
    flat = _core.reshape(ids, (-1,))
    used = _core.scatter_add(_core.full("f32", (weight.shape[0], 1), 0), flat, _core.full("f32", (ids.size, 1), 1)) > 0
    shorter = _core.select(used & (norms > max_norm), rows * (max_norm / (norms + 1e-7)), rows)
    table = weight + (shorter - rows)
    if weight.is_variable:
        _core.assign(weight, shorter)
    return table


def embedding(input: Any, weight: Any, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """Rows of weight [N,C] by ids [..] -> [..,C].  The row padding_idx gets no gradient.  max_norm: rows that are used and
    whose norm_type-norm is larger are scaled to it first, also in weight if it is a variable, whose gradient is then taken
    within an open yoke.scope.  scale_grad_by_freq divides a row's gradient by the number of its uses.  sparse has no
    effect.  IndexError, at evaluation: an id is no row."""
    w, ids = _of(weight), _of(input)
    if w.ndim != 2 or ids.dtype.is_floating_point:
        raise ValueError(f"embedding: takes integers and a table [N,C], got {ids.dtype.name} {list(ids.shape)} and {list(w.shape)}")
    if max_norm is not None:
        w = _limited(w, ids, max_norm, norm_type)
    y = _core.embedding(w, ids)
    if padding_idx is not None:
        y = _core.select(_core.reshape(ids == _row("embedding", padding_idx, w.shape[0]), (*ids.shape, 1)), _core.stop_grad(y), y)
    if scale_grad_by_freq:
        flat = _core.reshape(ids, (-1,))
        uses = _core.scatter_add(_core.full(w.dtype, (w.shape[0],), 0), flat, _core.full(w.dtype, flat.shape, 1))
        share = 1 / _core.reshape(_core.gather(uses, flat, 0), (*ids.shape, 1))
        y = y * share + _core.stop_grad(y - y * share)
    return y


def embedding_bag(input: Any, weight: Any, offsets: Any = None, max_norm: float | None = None, norm_type: float = 2.0,
                  scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Any = None,
                  include_last_offset: bool = False, padding_idx: int | None = None) -> Tensor:
    """Sums, means or maxima of rows of weight [N,C]: of each row of ids [B,L], or of ids [M] from each of the offsets [B] on
    -> [B,C]. per_sample_weights, for sums: numbers that rows are multiplied by.  Rows of padding_idx do not count.
    max_norm as in embedding; scale_grad_by_freq is not possible.  ValueError: shapes or mode do not fit; IndexError, at
    evaluation: an id is no row."""
    if scale_grad_by_freq:
        raise ValueError("embedding_bag: scale_grad_by_freq is not possible; embedding has it")
    w = _of(weight)
    if max_norm is not None:
        w = _limited(w, _of(input), max_norm, norm_type)
    return _sampling.embedding_bag(input, w, offsets, mode, per_sample_weights, include_last_offset, padding_idx)


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
    """Rows of a table by index: ids [..] -> [..,embedding_dim].  The row padding_idx is zeros at first and not trained.
    max_norm, norm_type and scale_grad_by_freq as in yoke.nn.functional.embedding."""

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
                 norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> None:
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = None if padding_idx is None else _row("nn.Embedding", padding_idx, num_embeddings)
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        if padding_idx is None and max_norm is None and not scale_grad_by_freq:
            self._wrap(_core.nn_embedding(num_embeddings, embedding_dim))
            return
        setattr(self, "weight", Parameter(shape=(num_embeddings, embedding_dim), normal=1.0))
        if self.padding_idx is not None:
            zeros = _core.full("f32", (1, embedding_dim), 0)
            self.weight = _core.slice_update(getattr(self, "weight"), (self.padding_idx, 0), zeros)

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None, max_norm: float | None = None,
                        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Embedding:
        """A layer with a given table [N,C], which is not trained unless freeze is False."""
        table = _of(embeddings)
        if table.ndim != 2:
            raise ValueError(f"nn.Embedding.from_pretrained: takes a table [N,C], got {list(table.shape)}")
        rows, width = table.shape
        layer = cls(rows, width, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        layer.weight = table
        if freeze:
            layer.freeze()
        return layer

    def _compose(self, x: Any) -> Tensor:
        return embedding(x, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq)


class EmbeddingBag(Module):
    """Sums, means or maxima of rows of a table: yoke.nn.functional.embedding_bag with a trained table."""

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, *, include_last_offset: bool = False,
                 padding_idx: int | None = None) -> None:
        self.weight = Parameter(shape=(num_embeddings, embedding_dim), normal=1.0)
        self._options = dict(max_norm=max_norm, norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq, mode=mode,
                             include_last_offset=include_last_offset, padding_idx=padding_idx)

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Tensor:
        """ids [B,L], or [M] with offsets [B] -> [B,embedding_dim]."""
        return embedding_bag(input, self.weight, offsets, per_sample_weights=per_sample_weights, **self._options)  # type: ignore[arg-type]


class Bilinear(Module):
    """x1' W x2 + b for each output: x1 [..,in1], x2 [..,in2] -> [..,out]."""

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True) -> None:
        bound = 1 / math.sqrt(in1_features)
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = Parameter(shape=(out_features, in1_features, in2_features), uniform=bound)
        self.bias = Parameter(shape=(out_features,), uniform=bound) if bias else None

    def forward(self, input1: Any, input2: Any) -> Tensor:
        return bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}"
