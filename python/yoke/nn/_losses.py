# SPDX-License-Identifier: Apache-2.0
"""Losses of classes, probabilities and numbers as functions and modules, with PyTorch's names and arguments; _margins.py has
those of margins and distances.

Every loss takes reduction: "mean" over all elements, "sum", or "none", which gives each element's loss.
"""
from __future__ import annotations

import math
from typing import Any, Sequence

from .. import _core
from .._arrays import tensor
from .._common import Tensor, _of
from .._op import custom_grad
from .._shapes import moveaxis
from ._function import FunctionModule, floating, same_shape, together

_REDUCTIONS = {"mean": 0, "sum": 1, "none": 2}  # enum yoke_reduction


def reduction_of(call: str, reduction: str) -> int:
    """A reduction's number in the C library.  ValueError: there is no such reduction."""
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{call}: reduction is 'mean', 'sum' or 'none', not {reduction!r}")
    return _REDUCTIONS[reduction]


def reduced(call: str, loss: Tensor, reduction: str) -> Tensor:
    """The elements' losses, their mean or their sum."""
    kind = reduction_of(call, reduction)
    return loss if kind == 2 else _core.sum(loss) if kind else _core.mean(loss)


def nonnegative(x: Tensor) -> Tensor:
    """x where it is not below 0, else 0; at 0 the gradient passes, as in PyTorch's clamp_min."""
    return _core.select(x < 0, 0, x)


# ---- losses of classes ----

def _classes_last(call: str, input: Any, target: Any, weight: Any, probabilities: bool) -> tuple[Tensor, Tensor, Tensor | None]:
    """Scores with their classes as last axis, targets as i64 ids or such probabilities, and weights of classes."""
    x, y = _of(input), _of(target)
    if x.ndim < 1 or not x.dtype.is_floating_point:
        raise ValueError(f"{call}: input is floating point, [C], [B,C] or [B,C,d1,..], got {x.dtype.name} {list(x.shape)}")
    axis = 0 if x.ndim == 1 else 1
    if y.dtype.is_floating_point:
        if not probabilities:
            raise TypeError(f"{call}: target holds class ids, integers, got {y.dtype.name}")
        if y.shape != x.shape:
            raise ValueError(f"{call}: input {list(x.shape)} and probabilities {list(y.shape)} have different shapes")
        y = _core.cast(moveaxis(y, axis, -1), x.dtype)
    else:
        if y.shape != x.shape[:axis] + x.shape[axis + 1:]:
            raise ValueError(f"{call}: for input {list(x.shape)}, ids have the shape {list(x.shape[:axis] + x.shape[axis + 1:])}"
                             f", got {list(y.shape)}")
        y = _core.cast(y, "i64")
    w = None if weight is None else _core.cast(_of(weight), x.dtype)
    if w is not None and w.shape != (x.shape[axis],):
        raise ValueError(f"{call}: weight has one number for each of {x.shape[axis]} classes, got {list(w.shape)}")
    return moveaxis(x, axis, -1), y, w


def cross_entropy(input: Any, target: Any, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:
    """The cross entropy of logits [C], [B,C] or [B,C,d1,..] with class ids [..] of the same axes without C, or with
    probabilities of the logits' shape.  weight [C]: of classes; "mean" divides by the sum of the weights of ids, and for
    probabilities by the number of rows.  Ids equal to ignore_index have no loss.  label_smoothing, at least 0 and below 1,
    mixes the target with the uniform distribution.  ValueError: shapes do not fit; IndexError, at evaluation: an id is no
    class."""
    kind = reduction_of("cross_entropy", reduction)
    if not 0 <= label_smoothing < 1:
        raise ValueError(f"cross_entropy: label_smoothing is at least 0 and below 1, got {label_smoothing}")
    x, y, w = _classes_last("cross_entropy", input, target, weight, True)
    return _core.loss_cross_entropy(x, y, weight=w, reduction=kind, ignore=ignore_index, ignores=1, smooth=label_smoothing)


def nll_loss(input: Any, target: Any, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean") -> Tensor:
    """The negative log-likelihood of class ids [..] given log-probabilities [C], [B,C] or [B,C,d1,..]: cross_entropy after
    log_softmax.  weight [C] and ignore_index as there.  ValueError: shapes do not fit; IndexError, at evaluation: an id is no
    class."""
    kind = reduction_of("nll_loss", reduction)
    x, y, w = _classes_last("nll_loss", input, target, weight, False)
    ignored = y == ignore_index
    at = _core.select(ignored, 0, y)
    loss = -_core.reshape(_core.take_along(x, _core.reshape(at, (*y.shape, 1)), -1), y.shape)
    each = _core.cast(~ignored, x.dtype) if w is None else _core.select(ignored, 0, _core.gather(w, at, 0))
    loss = _core.select(ignored, 0, loss if w is None else loss * each)
    return loss if kind == 2 else _core.sum(loss) if kind else _core.sum(loss) / _core.sum(each)


# ---- losses of probabilities ----

@custom_grad
def _log_likelihood(p: Tensor, y: Tensor) -> Tensor:
    """y log p + (1 - y) log (1 - p); the logarithms are at least -100."""
    return y * _core.clamp(_core.log(p), -100.0) + (1 - y) * _core.clamp(_core.log1p(-p), -100.0)


@_log_likelihood.gradient
def _(inputs: Sequence[Tensor], outputs: Sequence[Tensor], g: Sequence[Tensor]) -> list[Tensor]:
    p, y = inputs
    by_y = _core.clamp(_core.log(p), -100.0) - _core.clamp(_core.log1p(-p), -100.0)
    return [g[0] * (y - p) / _core.max(p * (1 - p), 1e-12), g[0] * by_y]


def binary_cross_entropy(input: Any, target: Any, weight: Any = None, *, reduction: str = "mean") -> Tensor:
    """-(y log p + (1 - y) log (1 - p)) of probabilities p = input, 0 to 1, and targets y of its shape; the logarithms are at
    least -100.  weight multiplies each element's loss and broadcasts.  Of logits, binary_cross_entropy_with_logits is more
    accurate.  ValueError: shapes do not fit."""
    call = "binary_cross_entropy"
    reduction_of(call, reduction)
    p, y = floating(call, input, target)
    same_shape(call, input=p, target=y)
    loss = -_log_likelihood(p, y)
    if weight is not None:
        w = _core.cast(_of(weight), p.dtype)
        together(call, input=p, weight=w)
        loss = loss * w
    return reduced(call, loss, reduction)


def binary_cross_entropy_with_logits(input: Any, target: Any, weight: Any = None, *, reduction: str = "mean",
                                     pos_weight: Any = None) -> Tensor:
    """binary_cross_entropy of sigmoid(input), stable for all logits.  weight multiplies each element's loss, pos_weight the
    terms of y alone; both broadcast.  ValueError: shapes do not fit."""
    call = "binary_cross_entropy_with_logits"
    kind = reduction_of(call, reduction)
    x, y = floating(call, input, target)
    same_shape(call, input=x, target=y)
    w, pos = (None if t is None else _core.cast(_of(t), x.dtype) for t in (weight, pos_weight))
    together(call, input=x, **{n: t for n, t in (("weight", w), ("pos_weight", pos)) if t is not None})
    return _core.loss_bce_logits(x, y, weight=w, pos_weight=pos, reduction=kind)


def kl_div(input: Any, target: Any, *, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """The Kullback-Leibler divergence of each element: y (log y - x), x = input a log-probability and y = target a
    probability, 0 where y is 0; with log_target the target is log y.  reduction may also be "batchmean", the sum over the
    first axis' length, which is the divergence of distributions.  ValueError: the operands do not broadcast."""
    if reduction != "batchmean":
        reduction_of("kl_div", reduction)
    x, y = floating("kl_div", input, target)
    together("kl_div", input=x, target=y)
    if log_target:
        loss = _core.exp(y) * (y - x)
    else:
        zero = y == 0
        loss = _core.select(zero, 0, y * _core.log(_core.select(zero, 1, y))) - y * x
    return _core.sum(loss) / max(x.shape[0] if x.ndim else 1, 1) if reduction == "batchmean" else reduced("kl_div", loss, reduction)


def ctc_loss(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
             zero_infinity: bool = False) -> Tensor:
    """Connectionist temporal classification: the negative log-likelihood of label sequences given log_probs [T,B,C] or [T,C].
    targets [B,S] or [S]: labels, which are not blank; or the labels of all rows in one axis [sum of target_lengths], whose
    lengths are read.  input_lengths, target_lengths [B] or numbers.  "mean" divides each loss by its target's length first.
    zero_infinity: rows whose target needs more steps have loss 0 instead of infinity."""
    kind = reduction_of("ctc_loss", reduction)
    x, y = _of(log_probs), _core.cast(_of(targets), "i64")
    steps, labels = (_core.cast(_core.reshape(_of(n), (-1,)), "i64") for n in (input_lengths, target_lengths))
    single = x.ndim == 2
    if single:
        x = _core.reshape(x, (x.shape[0], 1, x.shape[1]))
    if x.ndim != 3 or y.ndim not in (1, 2) or steps.shape != labels.shape or steps.shape != x.shape[1:2] or (
            y.ndim == 2 and y.shape[0] != x.shape[1]):
        raise ValueError(f"ctc_loss: takes log_probs [T,B,C], targets [B,S] and two lengths for each row, got "
                         f"{list(_of(log_probs).shape)}, {list(y.shape)}, {list(steps.shape)} and {list(labels.shape)}")
    if y.ndim == 1:
        y = _core.reshape(y, (1, -1)) if single else _rows_of(y, labels)
    loss = _core.loss_ctc(x, y, steps, labels, blank, kind, zero_infinity)
    return _core.reshape(loss, ()) if single else loss


def _rows_of(targets: Tensor, lengths: Tensor) -> Tensor:
    """Label sequences one after another as rows [B,S], filled up with 0."""
    import numpy

    labels, n = targets.numpy(), lengths.numpy()
    if (n < 0).any() or n.sum() != labels.size:
        raise ValueError(f"ctc_loss: target_lengths add up to {n.sum()}, and targets has {labels.size} labels")
    rows = numpy.zeros((n.size, max(int(n.max(initial=0)), 1)), "i8")
    rows[numpy.arange(rows.shape[1])[None, :] < n[:, None]] = labels
    return tensor(rows)


# ---- losses of numbers ----

def _differences(call: str, input: Any, target: Any, weight: Any, reduction: str) -> tuple[Tensor, Tensor, Tensor | None]:
    reduction_of(call, reduction)
    x, y = floating(call, input, target)
    together(call, input=x, target=y)
    w = None if weight is None else _core.cast(_of(weight), x.dtype)
    if w is not None:
        same_shape(call, input=x, weight=w)
    return x, y, w


def mse_loss(input: Any, target: Any, *, reduction: str = "mean", weight: Any = None) -> Tensor:
    """(input - target)^2.  The operands broadcast; weight has the shape of input, and "mean" divides by its sum.  ValueError:
    shapes do not fit."""
    x, y, w = _differences("mse_loss", input, target, weight, reduction)
    if w is not None and reduction == "mean":
        return _core.loss_mse(x, y, weight=w, reduction=_core.LOSS_SUM) / _core.sum(w)
    return _core.loss_mse(x, y, weight=w, reduction=reduction_of("mse_loss", reduction))


def l1_loss(input: Any, target: Any, *, reduction: str = "mean", weight: Any = None) -> Tensor:
    """|input - target|.  The operands broadcast; weight has the shape of input, and "mean" divides by its sum.  ValueError:
    shapes do not fit."""
    x, y, w = _differences("l1_loss", input, target, weight, reduction)
    loss = _core.abs(x - y)
    if w is None:
        return reduced("l1_loss", loss, reduction)
    return _core.sum(loss * w) / _core.sum(w) if reduction == "mean" else reduced("l1_loss", loss * w, reduction)


def smooth_l1_loss(input: Any, target: Any, *, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """d^2 / (2 beta) for d = |input - target| below beta, else d - beta/2.  The operands broadcast.  ValueError: they do not,
    or beta is negative."""
    if beta < 0:
        raise ValueError(f"smooth_l1_loss: beta is not negative, got {beta}")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    x, y, _ = _differences("smooth_l1_loss", input, target, None, reduction)
    return reduced("smooth_l1_loss", _huber(x - y, beta) * (1 / beta), reduction)


def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None) -> Tensor:
    """d^2 / 2 for d = |input - target| up to delta, else delta (d - delta/2).  The operands broadcast; weight has the shape of
    input and multiplies each loss.  ValueError: shapes do not fit, or delta is not positive."""
    if not delta > 0:
        raise ValueError(f"huber_loss: delta is positive, got {delta}")
    x, y, w = _differences("huber_loss", input, target, weight, reduction)
    loss = _huber(x - y, delta)
    return reduced("huber_loss", loss if w is None else loss * w, reduction)


def _huber(d: Tensor, delta: float) -> Tensor:
    size = _core.abs(d)
    return _core.select(size < delta, _core.square(d) * 0.5, (size - 0.5 * delta) * delta)


def gaussian_nll_loss(input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> Tensor:
    """1/2 (log v + (input - target)^2 / v), v = var, at least eps (which the gradient ignores); full adds log(2 pi)/2.  var: a
    number, or of the shape of input, without its last axis, or with 1 for an axis.  ValueError: shapes do not fit, or eps
    is not positive."""
    call = "gaussian_nll_loss"
    reduction_of(call, reduction)
    if not eps > 0 or (isinstance(var, (int, float)) and var < 0):
        raise ValueError(f"{call}: eps is positive and var not negative, got eps {eps}" + (f" and var {var}" if eps > 0 else ""))
    x, y, v = floating(call, input, target, var)
    if v.ndim and v.shape != x.shape and v.shape == x.shape[:-1]:
        v = _core.reshape(v, (*v.shape, 1))
    together(call, input=x, target=y, var=v)
    v = v + _core.stop_grad(_core.max(v, eps) - v)
    loss = (_core.log(v) + _core.square(x - y) / v) * 0.5
    return reduced(call, loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def poisson_nll_loss(input: Any, target: Any, log_input: bool = True, full: bool = False, *, eps: float = 1e-8,
                     reduction: str = "mean") -> Tensor:
    """exp(x) - y x of x = input, the logarithm of the expected count, and counts y = target; without log_input x is the count
    itself and the loss x - y log(x + eps).  full adds Stirling's y log y - y + log(2 pi y)/2 where y is above 1.
    ValueError: the operands do not broadcast."""
    call = "poisson_nll_loss"
    reduction_of(call, reduction)
    x, y = floating(call, input, target)
    together(call, input=x, target=y)
    loss = _core.exp(x) - y * x if log_input else x - y * _core.log(x + eps)
    if full:
        large = y > 1
        z = _core.select(large, y, 1)
        loss = loss + _core.select(large, z * _core.log(z) - z + 0.5 * _core.log(z * (2 * math.pi)), 0)
    return reduced(call, loss, reduction)


# ---- modules ----

class LossModule(FunctionModule):
    """Base class of losses of an input and a target."""

    def forward(self, input: Any, target: Any) -> Tensor:
        """The loss of input and target, with the module's options."""
        loss: Tensor = self._apply(input, target)
        return loss


class PlainLoss(LossModule):
    """Base class of losses without options of their own."""

    def __init__(self, *, reduction: str = "mean") -> None:
        self._set(reduction=reduction)


class CrossEntropyLoss(LossModule):
    _function = staticmethod(cross_entropy)

    def __init__(self, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0) -> None:
        self._set(weight=weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing)


class NLLLoss(LossModule):
    _function = staticmethod(nll_loss)

    def __init__(self, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean") -> None:
        self._set(weight=weight, ignore_index=ignore_index, reduction=reduction)


class BCELoss(LossModule):
    _function = staticmethod(binary_cross_entropy)

    def __init__(self, weight: Any = None, *, reduction: str = "mean") -> None:
        self._set(weight=weight, reduction=reduction)


class BCEWithLogitsLoss(LossModule):
    _function = staticmethod(binary_cross_entropy_with_logits)

    def __init__(self, weight: Any = None, *, reduction: str = "mean", pos_weight: Any = None) -> None:
        self._set(weight=weight, reduction=reduction, pos_weight=pos_weight)


class KLDivLoss(LossModule):
    _function = staticmethod(kl_div)

    def __init__(self, *, reduction: str = "mean", log_target: bool = False) -> None:
        self._set(reduction=reduction, log_target=log_target)


class CTCLoss(FunctionModule):
    _function = staticmethod(ctc_loss)

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        self._set(blank=blank, reduction=reduction, zero_infinity=zero_infinity)

    def forward(self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any) -> Tensor:
        """The loss of log_probs and targets, with the module's options."""
        y: Tensor = self._apply(log_probs, targets, input_lengths, target_lengths)
        return y


class MSELoss(PlainLoss):
    _function = staticmethod(mse_loss)


class L1Loss(PlainLoss):
    _function = staticmethod(l1_loss)


class SmoothL1Loss(LossModule):
    _function = staticmethod(smooth_l1_loss)

    def __init__(self, *, reduction: str = "mean", beta: float = 1.0) -> None:
        self._set(reduction=reduction, beta=beta)


class HuberLoss(LossModule):
    _function = staticmethod(huber_loss)

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        self._set(reduction=reduction, delta=delta)


class GaussianNLLLoss(FunctionModule):
    _function = staticmethod(gaussian_nll_loss)

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        self._set(full=full, eps=eps, reduction=reduction)

    def forward(self, input: Any, target: Any, var: Any) -> Tensor:
        """The loss of input and target, normal of variance var, with the module's options."""
        y: Tensor = self._apply(input, target, var)
        return y


class PoissonNLLLoss(LossModule):
    _function = staticmethod(poisson_nll_loss)

    def __init__(self, log_input: bool = True, full: bool = False, *, eps: float = 1e-8, reduction: str = "mean") -> None:
        self._set(log_input=log_input, full=full, eps=eps, reduction=reduction)
