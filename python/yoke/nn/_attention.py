# SPDX-License-Identifier: Apache-2.0
"""Attention as functions and modules.  Attention and Block are the C library's; the others have PyTorch's names and arguments."""
from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._common import Tensor, _of
from ._function import floating
from ._layer import Layer
from ._linear import Linear
from ._module import Module, Parameter


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


# ---- masks ----

def _causal(t: int, s: int) -> Tensor:
    """bool [T,S]: query i sees keys 0 .. i."""
    import numpy

    return _of(numpy.tri(t, s, dtype=bool))


def _mask(call: str, name: str, mask: Any) -> Tensor:
    m = _of(mask)
    if m.dtype.name != "bool" and not m.dtype.is_floating_point:
        raise TypeError(f"{call}: {name} is of bool or floating point, got {m.dtype.name}")
    return m


def _added(mask: Tensor, kind: Any) -> Tensor:
    """A mask of what is visible as numbers that are added to the scores."""
    return _core.select(mask, 0, _core.full(kind, (), -math.inf)) if mask.dtype.name == "bool" else _core.cast(mask, kind)


def _both(a: Tensor | None, b: Tensor | None, kind: Any) -> Tensor | None:
    """Two masks as one: bool, true where visible, or numbers that are added."""
    if a is None or b is None:
        return b if a is None else a
    return a & b if a.dtype.name == b.dtype.name == "bool" else _added(a, kind) + _added(b, kind)


# ---- functions ----

def scaled_dot_product_attention(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False) -> Tensor:
    """softmax(scale q k' + mask) v of query [..,H,T,D], key [..,H,S,D] and value [..,H,S,E], whose leading axes broadcast;
    with enable_gqa key and value may have fewer heads, a divisor of H.  attn_mask [..,T,S]: bool, true where a key is
    visible, or numbers that are added.  is_causal: query t sees keys 0 .. t.  scale is 1/sqrt(D) by default; dropout_p
    applies always.  A query without visible keys gives 0 (NaN in PyTorch).  ValueError: shapes do not fit."""
    import numpy

    call = "scaled_dot_product_attention"
    q, k, v = floating(call, query, key, value)
    if min(q.ndim, k.ndim, v.ndim) < 2 or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ValueError(f"{call}: takes [..,T,D], [..,S,D] and [..,S,E], got {list(q.shape)}, {list(k.shape)} and {list(v.shape)}")
    if is_causal and attn_mask is not None:
        raise ValueError(f"{call}: give attn_mask or is_causal, not both")
    grouped = enable_gqa and min(q.ndim, k.ndim, v.ndim) > 2
    try:
        outer = numpy.broadcast_shapes(*(x.shape[:-3] if grouped else x.shape[:-2] for x in (q, k, v)))
    except ValueError:
        raise ValueError(f"{call}: leading axes of {list(q.shape)}, {list(k.shape)} and {list(v.shape)} do not broadcast") from None
    outer, h = (outer, q.shape[-3]) if grouped else (outer[:-1], outer[-1] if outer else 1)
    b, t, s = math.prod(outer), q.shape[-2], k.shape[-2]
    groups = k.shape[-3] if grouped else h
    if grouped and (v.shape[-3] != groups or not groups or h % groups):
        raise ValueError(f"{call}: {groups} heads of keys and {v.shape[-3]} of values do not divide {h} of queries")

    def heads(x: Tensor, n: int) -> Tensor:
        """[..,n,T,D] as [B,T,n,D]."""
        rows = x.shape[-2:]
        x = _core.reshape(x, (*(x.shape[:-2] or (1,)), *rows))
        return _core.permute(_core.reshape(_core.broadcast_to(x, (*outer, n, *rows)), (b, n, *rows)), (0, 2, 1, 3))

    mask = None
    if attn_mask is not None:
        mask = _mask(call, "attn_mask", attn_mask)
        try:
            numpy.broadcast_to(numpy.empty(mask.shape, bool), (*outer, h, t, s))
        except ValueError:
            raise ValueError(f"{call}: attn_mask {list(mask.shape)} does not broadcast to {[*outer, h, t, s]}") from None
        if mask.ndim > 4 or (mask.ndim == 4 and len(outer) > 1):
            mask = _core.reshape(_core.broadcast_to(mask, (*outer, h, *mask.shape[-2:])), (b, h, *mask.shape[-2:]))
        mask = _core.reshape(mask, (1,) * (4 - mask.ndim) + tuple(mask.shape))
        mask = mask if mask.dtype.name == "bool" else _core.cast(mask, q.dtype)
    elif is_causal and t != s:
        mask = _core.reshape(_causal(t, s), (1, 1, t, s))
    y = _core.attention(heads(q, h), heads(k, groups), heads(v, groups), mask, is_causal and t == s, scale or 0.0, dropout_p)
    lead = (*outer, h) if max(q.ndim, k.ndim, v.ndim) > 2 else ()
    return _core.reshape(_core.permute(y, (0, 2, 1, 3)), (*lead, t, v.shape[-1]))


def _weighted(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float) -> tuple[Tensor, Tensor]:
    """Attention of q [B,T,H,D] to k and v [B,S,H,D] with its weights [B,H,T,S], step by step."""
    q, k, v = (_core.permute(x, (0, 2, 1, 3)) for x in (q, k, v))
    scores = _core.matmul(q * (1 / math.sqrt(q.shape[-1])), _core.permute(k, (0, 1, 3, 2)))
    if mask is None:
        weights = _core.softmax(scores, -1)
    else:
        scores = scores + _added(mask, q.dtype)
        blind = _core.reduce_max(scores, -1, keepdims=True) == -math.inf
        weights = _core.select(blind, 0, _core.softmax(_core.select(blind, 0, scores), -1))
    weights = _core.dropout(weights, dropout)
    return _core.permute(_core.matmul(weights, v), (0, 2, 1, 3)), weights


def multi_head_attention_forward(query: Any, key: Any, value: Any, embed_dim_to_check: int, num_heads: int, in_proj_weight: Any,
                                 in_proj_bias: Any, bias_k: Any, bias_v: Any, add_zero_attn: bool, dropout_p: float, out_proj_weight: Any,
                                 out_proj_bias: Any, training: bool = True, key_padding_mask: Any = None, need_weights: bool = True,
                                 attn_mask: Any = None, use_separate_proj_weight: bool = False, q_proj_weight: Any = None,
                                 k_proj_weight: Any = None, v_proj_weight: Any = None, *, average_attn_weights: bool = True,
                                 is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
    """Multi-head attention (Vaswani et al. 2017) of query [T,B,E] to key and value [S,B,..], or without the axis B; see
    yoke.nn.MultiheadAttention, which calls it, for masks and results.  in_proj_weight [3 E,E] holds the projections of
    queries, keys and values, in_proj_bias [3 E] their biases or None; with use_separate_proj_weight q_proj_weight [E,E],
    k_proj_weight [E,K] and v_proj_weight [E,V] are given instead.  bias_k, bias_v [1,1,E] or None: a key and a value added
    after the S ones; add_zero_attn: one of zeros.  out_proj_weight [E,E], out_proj_bias [E] or None.  dropout_p of the
    weights applies in training.  ValueError: shapes do not fit."""
    call = "multi_head_attention_forward"
    alone, same = key is query and value is query, value is key
    q, k, v = floating(call, query, key, value)
    single = q.ndim == 2
    if single:
        q, k, v = (_core.reshape(x, (x.shape[0], 1, *x.shape[1:])) for x in (q, k, v))
    t, b, e = q.shape if q.ndim == 3 else (0, 0, 0)
    fits = q.ndim == 3 and k.ndim == 3 and k.shape[:2] == v.shape[:2] and k.shape[1] == b and e == embed_dim_to_check
    if not fits or num_heads < 1 or e % num_heads:
        raise ValueError(f"{call}: takes query [T,B,{embed_dim_to_check}], key [S,B,..] and value [S,B,..], or these without B, and "
                         f"{num_heads} heads divide the width, got {[list(_of(x).shape) for x in (query, key, value)]}")
    # ---- projections ----
    biases = [None if in_proj_bias is None else _core.slice(_of(in_proj_bias), 0, i * e, (i + 1) * e) for i in range(3)]
    if use_separate_proj_weight:
        q, k, v = (_core.linear(x, w, bias) for x, w, bias in zip((q, k, v), (q_proj_weight, k_proj_weight, v_proj_weight), biases))
    elif alone:
        qkv = _core.linear(q, in_proj_weight, in_proj_bias)
        q, k, v = (_core.slice(qkv, 2, i * e, (i + 1) * e) for i in range(3))
    else:
        w = _of(in_proj_weight)
        q = _core.linear(q, _core.slice(w, 0, 0, e), biases[0])
        if same:
            kv_bias = None if in_proj_bias is None else _core.slice(_of(in_proj_bias), 0, e, 3 * e)
            kv = _core.linear(k, _core.slice(w, 0, e, 3 * e), kv_bias)
            k, v = _core.slice(kv, 2, 0, e), _core.slice(kv, 2, e, 2 * e)
        else:
            k, v = _core.linear(k, _core.slice(w, 0, e, 2 * e), biases[1]), _core.linear(v, _core.slice(w, 0, 2 * e, 3 * e), biases[2])
    given = s = k.shape[0]
    if bias_k is not None and bias_v is not None:
        k, v = (_core.concat([x, _core.broadcast_to(_core.reshape(more, (1, 1, e)), (1, b, e))], 0)
                for x, more in ((k, bias_k), (v, bias_v)))
    if add_zero_attn:
        k, v = (_core.pad(x, (0, 0, 0), (1, 0, 0)) for x in (k, v))
    s = k.shape[0]
    # ---- masks, bool true where visible or added, [B|1,H|1,T|1,S] ----
    mask: Tensor | None = None
    causal = is_causal and s == t == given
    if is_causal and not causal:
        mask = _core.reshape(_causal(t, given), (1, 1, t, given))
    elif attn_mask is not None and not is_causal:
        mask = _mask(call, "attn_mask", attn_mask)
        mask = ~mask if mask.dtype.name == "bool" else mask
        if mask.shape == (t, given):
            mask = _core.reshape(mask, (1, 1, t, given))
        elif mask.shape == (b * num_heads, t, given):
            mask = _core.reshape(mask, (b, num_heads, t, given))
        else:
            raise ValueError(f"{call}: attn_mask is [{t},{given}] or [{b * num_heads},{t},{given}], got {list(mask.shape)}")
    if key_padding_mask is not None:
        padding = _mask(call, "key_padding_mask", key_padding_mask)
        if padding.shape != ((given,) if single else (b, given)):
            raise ValueError(f"{call}: key_padding_mask is [{b},{given}], got {list(padding.shape)}")
        padding = _core.reshape(~padding if padding.dtype.name == "bool" else padding, (b, 1, 1, given))
        mask = _both(mask, padding, q.dtype)
    if mask is not None and s > given:
        more = _core.full(mask.dtype, (*mask.shape[:-1], s - given), mask.dtype.name == "bool")
        mask = _core.concat([mask, more], -1)
    if mask is not None and mask.dtype.name != "bool":
        mask = _core.cast(mask, q.dtype)
    # ---- attention ----
    q, k, v = (_core.permute(_core.reshape(x, (x.shape[0], b, num_heads, e // num_heads)), (1, 0, 2, 3)) for x in (q, k, v))
    drop = dropout_p if training else 0.0
    weights: Tensor | None = None
    if need_weights:
        if causal:
            mask = _both(mask, _core.reshape(_causal(t, s), (1, 1, t, s)), q.dtype)
        y, weights = _weighted(q, k, v, mask, drop)
        weights = _core.mean(weights, 1) if average_attn_weights else weights
        weights = _core.reshape(weights, weights.shape[1:]) if single else weights
    else:
        y = _core.attention(q, k, v, mask, causal, 0.0, drop)
    y = _core.linear(_core.reshape(_core.permute(y, (1, 0, 2, 3)), (t, b, e)), out_proj_weight, out_proj_bias)
    return _core.reshape(y, (t, e)) if single else y, weights


# ---- modules ----

class MultiheadAttention(Module):
    """Multi-head attention (Vaswani et al. 2017) with PyTorch's parameters: in_proj_weight [3 E,E], in_proj_bias [3 E],
    out_proj.weight [E,E] and out_proj.bias [E], E = embed_dim.  With other widths of keys and values, kdim and vdim,
    q_proj_weight, k_proj_weight and v_proj_weight replace in_proj_weight.  dropout: of the attention weights, in training.
    add_bias_kv: a trained key and value after the others; add_zero_attn: a key and value of zeros.  yoke.nn.Attention has
    less options and is C alone."""

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
                 add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False) -> None:
        if num_heads < 1 or embed_dim < 1 or embed_dim % num_heads:
            raise ValueError(f"MultiheadAttention: {num_heads} heads do not divide a width of {embed_dim}")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim, self.vdim, self.add_zero_attn = kdim or embed_dim, vdim or embed_dim, add_zero_attn
        self._separate = (self.kdim, self.vdim) != (embed_dim, embed_dim)
        shapes = {"in_proj_weight": (3 * embed_dim, embed_dim)} if not self._separate else {
            "q_proj_weight": (embed_dim, embed_dim), "k_proj_weight": (embed_dim, self.kdim), "v_proj_weight": (embed_dim, self.vdim)}
        for name, shape in shapes.items():
            setattr(self, name, Parameter(shape=shape, uniform=math.sqrt(6 / sum(shape))))  # Glorot and Bengio 2010
        self.in_proj_bias = Parameter(shape=(3 * embed_dim,)) if bias else None
        self.bias_k, self.bias_v = (Parameter(shape=(1, 1, embed_dim), normal=math.sqrt(1 / embed_dim)) if add_bias_kv else None
                                    for _ in range(2))
        self.out_proj = Linear(embed_dim, embed_dim, bias)
        if bias:
            self.out_proj.bias = _core.full("f32", (embed_dim,), 0)

    def forward(self, query: Any, key: Any, value: Any, key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None,
                average_attn_weights: bool = True, is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        """Of query [T,B,E] to key [S,B,kdim] and value [S,B,vdim], with batch_first [B,..,..], or without the axis B: (result
        [T,B,E], weights).  key_padding_mask [B,S]: bool, true where a key is not visible, or numbers that are added;
        attn_mask [T,S] or [B H,T,S], likewise.  is_causal: query t sees keys 0 .. t, and attn_mask is ignored.  The weights
        are the means over heads [B,T,S]; without average_attn_weights [B,H,T,S]; without need_weights None, which is faster
        and takes less memory.  A query without visible keys gives 0 (NaN in PyTorch).  ValueError: shapes do not fit."""
        q, k, v = query, key, value
        if self.batch_first and _of(query).ndim == 3:  # the same operand stays the same object
            q = _core.permute(_of(query), (1, 0, 2))
            k = q if key is query else _core.permute(_of(key), (1, 0, 2))
            v = q if value is query else k if value is key else _core.permute(_of(value), (1, 0, 2))
        separate = {n: getattr(self, n) for n in ("q_proj_weight", "k_proj_weight", "v_proj_weight")} if self._separate else {}
        y, weights = multi_head_attention_forward(
            q, k, v, self.embed_dim, self.num_heads, None if separate else self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v,
            self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask,
            need_weights, attn_mask, bool(separate), **separate, average_attn_weights=average_attn_weights, is_causal=is_causal)
        return _core.permute(y, (1, 0, 2)) if self.batch_first and y.ndim == 3 else y, weights

    def extra_repr(self) -> str:
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, dropout={self.dropout}, batch_first={self.batch_first}"
