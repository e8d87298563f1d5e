# SPDX-License-Identifier: Apache-2.0
"""Distances, and losses of margins and distances, as functions and modules with PyTorch's names and arguments."""
from __future__ import annotations

from typing import Any, Callable

from .. import _core
from .._common import Tensor, _axis_of, _of
from ._function import FunctionModule, floating, same_shape, together
from ._losses import LossModule, PlainLoss, nonnegative, reduced, reduction_of

# ---- distances ----

def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along an axis: x1 x2 / (|x1| |x2|), with lengths of at least eps.  The operands
    broadcast.  ValueError: they do not; IndexError: no such axis."""
    a, b = floating("cosine_similarity", x1, x2)
    together("cosine_similarity", x1=a, x2=b)
    axis = dim if dim < 0 else _axis_of(a if a.ndim >= b.ndim else b, dim, "cosine_similarity") - max(a.ndim, b.ndim)
    return _core.sum(_unit(a, axis, eps) * _unit(b, axis, eps), axis)


def _unit(x: Tensor, axis: int, eps: float) -> Tensor:
    """Vectors along an axis over their lengths, which are at least eps."""
    if x.ndim < -axis:
        x = _core.reshape(x, (1,) * (-axis - x.ndim) + tuple(x.shape))
    square = _core.sum(_core.square(x), axis, keepdims=True)
    return x / _core.sqrt(_core.select(square > eps * eps, square, eps * eps))


def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Tensor:
    """Vectors along an axis, or several, over their p-norm, which is at least eps.  IndexError: no such axis."""
    (x,) = floating("normalize", input)
    for axis in (dim,) if isinstance(dim, int) else dim:
        _axis_of(x, axis, "normalize")
    length = _core.norm(x, p, dim, keepdims=True)
    return x / _core.select(length > eps, length, eps)


def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last axis.  The operands broadcast.  ValueError: they do not."""
    a, b = floating("pairwise_distance", x1, x2)
    together("pairwise_distance", x1=a, x2=b)
    return _core.norm(a - b + eps, p, -1, keepdims=keepdim)


def pdist(input: Any, p: float = 2.0) -> Tensor:
    """The p-norms of the differences of all rows i < j of input [N,C], [N (N - 1) / 2] in row-major order.  ValueError: input
    is no matrix."""
    import numpy

    (x,) = floating("pdist", input)
    if x.ndim != 2:
        raise ValueError(f"pdist: takes [N,C], got {list(x.shape)}")
    i, j = (_of(k) for k in numpy.triu_indices(x.shape[0], 1))
    return _core.norm(_core.gather(x, i, 0) - _core.gather(x, j, 0), p, -1)


# ---- losses ----

def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, *, reduction: str = "mean") -> Tensor:
    """max(0, -y (x1 - x2) + margin), y = target: 1 where x1 should be the larger one, -1 where x2.  ValueError: the operands
    do not broadcast."""
    call = "margin_ranking_loss"
    reduction_of(call, reduction)
    a, b, y = floating(call, input1, input2, target)
    together(call, input1=a, input2=b, target=y)
    return reduced(call, nonnegative(margin - y * (a - b)), reduction)


def hinge_embedding_loss(input: Any, target: Any, margin: float = 1.0, *, reduction: str = "mean") -> Tensor:
    """The distance x = input where target is 1, max(0, margin - x) where it is -1.  ValueError: the operands do not broadcast."""
    call = "hinge_embedding_loss"
    reduction_of(call, reduction)
    x, y = floating(call, input, target)
    together(call, input=x, target=y)
    return reduced(call, _core.select(y != 1, nonnegative(margin - x), 0) + _core.select(y != -1, x, 0), reduction)


def cosine_embedding_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, *, reduction: str = "mean") -> Tensor:
    """1 - cos where target is 1, max(0, cos - margin) where it is -1, for the cosine between vectors input1 and input2 [B,C] or
    [C]; target [B] or [].  ValueError: shapes do not fit."""
    call = "cosine_embedding_loss"
    reduction_of(call, reduction)
    a, b, y = floating(call, input1, input2, target)
    if a.ndim not in (1, 2) or a.ndim != b.ndim or y.ndim != a.ndim - 1:
        raise ValueError(f"{call}: takes [B,C], [B,C] and [B], or [C], [C] and [], got {list(a.shape)}, {list(b.shape)} and "
                         f"{list(y.shape)}")
    together(call, input1=a, input2=b)
    product, square_a, square_b = (_core.sum(t, -1) for t in (a * b, a * a, b * b))
    cosine = product / _core.sqrt((square_a + 1e-12) * (square_b + 1e-12))
    together(call, cosines=cosine, target=y)
    loss = _core.select(y == 1, 1 - cosine, _core.select(y == -1, nonnegative(cosine - margin), 0))
    return reduced(call, loss, reduction)


def soft_margin_loss(input: Any, target: Any, *, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-y x)), x = input, y = target: 1 or -1.  ValueError: the operands do not broadcast."""
    call = "soft_margin_loss"
    kind = reduction_of(call, reduction)
    x, y = floating(call, input, target)
    together(call, input=x, target=y)
    return _core.loss_bce_logits(x * y, 1.0, reduction=kind)


def multi_margin_loss(input: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None, *, reduction: str = "mean") -> Tensor:
    """The mean over classes i of max(0, margin - x[y] + x[i])^p, 0 for i = y, of scores x = input [B,C] or [C] and class ids y
    = target [B] or []; p is 1 or 2.  weight [C] multiplies by the weight of y.  ValueError: shapes or p do not fit;
    IndexError, at evaluation: an id is no class."""
    call = "multi_margin_loss"
    reduction_of(call, reduction)
    (x,), y = floating(call, input), _of(target)
    if x.ndim not in (1, 2) or y.shape != x.shape[:-1] or y.dtype.is_floating_point or p not in (1, 2):
        raise ValueError(f"{call}: takes scores [B,C], ids [B] and p 1 or 2, got {list(x.shape)}, {y.dtype.name} {list(y.shape)} and {p}")
    at = _core.reshape(_core.cast(y, "i64"), (*y.shape, 1))
    z = nonnegative(margin - _core.take_along(x, at, -1) + x)
    loss = _core.select(_classes(x) == at, 0, z if p == 1 else z * z)
    if weight is not None:
        w = _core.cast(_of(weight), x.dtype)
        if w.shape != x.shape[-1:]:
            raise ValueError(f"{call}: weight has one number for each of {x.shape[-1]} classes, got {list(w.shape)}")
        loss = loss * _core.gather(w, at, 0)
    return reduced(call, _core.mean(loss, -1), reduction)


def _classes(x: Tensor) -> Tensor:
    """0 .. C - 1 for x [..,C]."""
    import numpy

    return _of(numpy.arange(x.shape[-1]))


def multilabel_margin_loss(input: Any, target: Any, *, reduction: str = "mean") -> Tensor:
    """The sum over labels y and all other classes i of max(0, 1 - x[y] + x[i]), over C, of scores x = input [B,C] or [C].
    target, of the same shape, has each row's labels before the first -1.  It takes memory for C^2 numbers per row.
    ValueError: shapes do not fit."""
    call = "multilabel_margin_loss"
    reduction_of(call, reduction)
    (x,), y = floating(call, input), _of(target)
    if x.ndim not in (1, 2) or y.shape != x.shape or y.dtype.is_floating_point:
        raise ValueError(f"{call}: takes scores [B,C] and labels of this shape, got {list(x.shape)} and {y.dtype.name} {list(y.shape)}")
    label = _core.cumprod(_core.cast(y >= 0, "i64"), -1) > 0
    at = _core.select(label, _core.cast(y, "i64"), 0)
    is_label = _core.any((_core.reshape(at, (*at.shape, 1)) == _classes(x)) & _core.reshape(label, (*label.shape, 1)), -2)
    z = 1 - _core.reshape(_core.take_along(x, at, -1), (*x.shape, 1)) + _core.reshape(x, (*x.shape[:-1], 1, x.shape[-1]))
    counts = _core.reshape(label, (*x.shape, 1)) & ~_core.reshape(is_label, (*x.shape[:-1], 1, x.shape[-1]))
    return reduced(call, _core.sum(_core.select(counts, nonnegative(z), 0), (-2, -1)) / x.shape[-1], reduction)


def multilabel_soft_margin_loss(input: Any, target: Any, weight: Any = None, *, reduction: str = "mean") -> Tensor:
    """The mean over classes of binary_cross_entropy_with_logits, for input and target [..,C], 0 or 1; weight [C] multiplies
    the terms of classes.  ValueError: shapes do not fit."""
    call = "multilabel_soft_margin_loss"
    reduction_of(call, reduction)
    x, y = floating(call, input, target)
    together(call, input=x, target=y)
    loss = _core.loss_bce_logits(x, y, reduction=_core.LOSS_NONE)
    if weight is not None:
        w = _core.cast(_of(weight), x.dtype)
        together(call, input=x, weight=w)
        loss = loss * w
    return reduced(call, _core.mean(loss, -1), reduction)


def triplet_margin_loss(anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
                        swap: bool = False, *, reduction: str = "mean") -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d the pairwise_distance along the last axis; with swap the
    second distance is at most d(positive, negative).  ValueError: the operands do not broadcast, or margin is not positive."""
    return _triplet("triplet_margin_loss", anchor, positive, negative, lambda a, b: pairwise_distance(a, b, p, eps), margin, swap,
                    reduction)


def triplet_margin_with_distance_loss(anchor: Any, positive: Any, negative: Any, *,
                                      distance_function: Callable[[Any, Any], Tensor] | None = None, margin: float = 1.0,
                                      swap: bool = False, reduction: str = "mean") -> Tensor:
    """triplet_margin_loss by another distance, a function of two tensors."""
    return _triplet("triplet_margin_with_distance_loss", anchor, positive, negative, distance_function or pairwise_distance, margin, swap,
                    reduction)


def _triplet(call: str, anchor: Any, positive: Any, negative: Any, distance: Callable[[Any, Any], Tensor], margin: float, swap: bool,
             reduction: str) -> Tensor:
    reduction_of(call, reduction)
    a, b, c = floating(call, anchor, positive, negative)
    together(call, anchor=a, positive=b, negative=c)
    if not margin > 0:
        raise ValueError(f"{call}: margin is positive, got {margin}")
    near, far = distance(a, b), distance(a, c)
    if swap:
        far = _core.min(far, distance(b, c))
    return reduced(call, nonnegative(near - far + margin), reduction)


# ---- modules ----

class CosineSimilarity(FunctionModule):
    _function = staticmethod(cosine_similarity)

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        self._set(dim=dim, eps=eps)

    def forward(self, x1: Any, x2: Any) -> Tensor:
        """The cosines between the vectors of x1 and x2."""
        y: Tensor = self._apply(x1, x2)
        return y


class PairwiseDistance(FunctionModule):
    _function = staticmethod(pairwise_distance)

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        self._set(p=p, eps=eps, keepdim=keepdim)

    def forward(self, x1: Any, x2: Any) -> Tensor:
        """The distances between the vectors of x1 and x2."""
        y: Tensor = self._apply(x1, x2)
        return y


class MarginRankingLoss(FunctionModule):
    _function = staticmethod(margin_ranking_loss)

    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        self._set(margin=margin, reduction=reduction)

    def forward(self, input1: Any, input2: Any, target: Any) -> Tensor:
        """The loss of two inputs and a target, with the module's options."""
        y: Tensor = self._apply(input1, input2, target)
        return y


class CosineEmbeddingLoss(FunctionModule):
    _function = staticmethod(cosine_embedding_loss)

    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        self._set(margin=margin, reduction=reduction)

    def forward(self, input1: Any, input2: Any, target: Any) -> Tensor:
        """The loss of two inputs and a target, with the module's options."""
        y: Tensor = self._apply(input1, input2, target)
        return y


class HingeEmbeddingLoss(LossModule):
    _function = staticmethod(hinge_embedding_loss)

    def __init__(self, margin: float = 1.0, *, reduction: str = "mean") -> None:
        self._set(margin=margin, reduction=reduction)


class SoftMarginLoss(PlainLoss):
    _function = staticmethod(soft_margin_loss)


class MultiLabelMarginLoss(PlainLoss):
    _function = staticmethod(multilabel_margin_loss)


class MultiLabelSoftMarginLoss(LossModule):
    _function = staticmethod(multilabel_soft_margin_loss)

    def __init__(self, weight: Any = None, *, reduction: str = "mean") -> None:
        self._set(weight=weight, reduction=reduction)


class MultiMarginLoss(LossModule):
    _function = staticmethod(multi_margin_loss)

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Any = None, *, reduction: str = "mean") -> None:
        self._set(p=p, margin=margin, weight=weight, reduction=reduction)


class TripletMarginLoss(FunctionModule):
    _function = staticmethod(triplet_margin_loss)

    def __init__(self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, *, reduction: str = "mean") -> None:
        self._set(margin=margin, p=p, eps=eps, swap=swap, reduction=reduction)

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Tensor:
        """The loss of anchors, positive and negative examples, with the module's options."""
        y: Tensor = self._apply(anchor, positive, negative)
        return y


class TripletMarginWithDistanceLoss(FunctionModule):
    _function = staticmethod(triplet_margin_with_distance_loss)

    def __init__(self, *, distance_function: Callable[[Any, Any], Tensor] | None = None, margin: float = 1.0, swap: bool = False,
                 reduction: str = "mean") -> None:
        self._set(distance_function=distance_function, margin=margin, swap=swap, reduction=reduction)

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Tensor:
        """The loss of anchors, positive and negative examples, with the module's options."""
        y: Tensor = self._apply(anchor, positive, negative)
        return y
