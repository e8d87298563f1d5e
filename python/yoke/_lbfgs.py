# SPDX-License-Identifier: Apache-2.0
"""L-BFGS with PyTorch's options, stopping rules and line search."""
from __future__ import annotations

import math
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence

from . import _core
from ._shapes import concat
from ._with import scope

Tensor = _core.Tensor
Closure = Callable[[], tuple[Tensor, Mapping[str, Tensor] | Sequence[Tensor]]]


def _kept(x: Tensor) -> Tensor:
    """x, evaluated: it outlives the scope, and its operands may go."""
    x = _core.keep(x)
    _core.eval([])
    return x


def _flat(values: Iterable[Tensor]) -> Tensor:
    return concat([v.reshape(-1) for v in values])


def _dot(a: Tensor, b: Tensor) -> float:
    return float((a * b).sum().item())


def _largest(x: Tensor) -> float:
    return float(abs(x).max().item())


def _plus(x: Tensor, by: float, y: Tensor) -> Tensor:
    """x + by y; another number needs no new plan."""
    return _kept(x + y * by)


class _Point(NamedTuple):
    """A step along the direction: its length, the loss there, the slope of the loss, and the gradient."""

    t: float
    f: float
    slope: float
    g: Tensor


def _cubic(a: _Point, b: _Point, low: float, high: float) -> float:
    """The minimum of the cubic through both points with both slopes, within low .. high (Nocedal and Wright 2006, 3.59)."""
    if a.t > b.t:
        a, b = b, a
    d1 = a.slope + b.slope - 3 * (a.f - b.f) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    d2 = math.sqrt(square)
    below = b.slope - a.slope + 2 * d2
    return min(max(b.t - (b.t - a.t) * ((b.slope + d2 - d1) / below), low), high) if below else (low + high) / 2


def _strong_wolfe(at: Callable[[float], _Point], start: _Point, t: float, width: float, tolerance: float,
                  most: int) -> tuple[_Point, int]:
    """A point that meets the strong Wolfe conditions, or the lowest that `most` evaluations found, and how many it took:
    Nocedal and Wright 2006, algorithms 3.5 and 3.6, with the safeguards of minFunc (Schmidt 2005)."""

    def too_high(p: _Point) -> bool:
        return p.f > start.f + 1e-4 * p.t * start.slope

    def flat(p: _Point) -> bool:
        return abs(p.slope) <= -0.9 * start.slope

    before, now, n = start, at(t), 0
    while n < most:
        if too_high(now) or (n > 1 and now.f >= before.f):
            break
        if flat(now):
            return now, n + 1
        if now.slope >= 0:
            break
        t = _cubic(before, now, now.t + 0.01 * (now.t - before.t), 10 * now.t)
        before, now, n = now, at(t), n + 1
    else:
        before = start
    low, high = (before, now) if before.f <= now.f else (now, before)
    stuck = False
    while n < most and abs(high.t - low.t) * width >= tolerance:
        first, last = sorted((low.t, high.t))
        t, margin = _cubic(low, high, first, last), 0.1 * (last - first)
        near = min(last - t, t - first) < margin
        if near and (stuck or t >= last or t <= first):
            t, near = (last - margin if abs(t - last) < abs(t - first) else first + margin), False
        stuck = near
        now, n = at(t), n + 1
        if too_high(now) or now.f >= low.f:
            low, high = (low, now) if low.f <= now.f else (now, low)
        elif flat(now):
            return now, n + 1
        else:
            low, high = now, low if now.slope * (high.t - low.t) >= 0 else high
    return low, n + 1


class LBFGS:
    """L-BFGS (Liu and Nocedal 1989) with PyTorch's options.  The closure of a step computes the loss and its gradients, and is
    called several times, each time at other parameters:

	o = yoke.optim.LBFGS(net, line_search_fn="strong_wolfe")
	o.step(lambda: yoke.value_and_grad(lambda net: loss_of(net(x), y))(net))
"""

    def __init__(self, target: Any, lr: float = 1, max_iter: int = 20, max_eval: int | None = None, tolerance_grad: float = 1e-7,
                 tolerance_change: float = 1e-9, history_size: int = 100, line_search_fn: str | None = None) -> None:
        from .optim import parameters_of

        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f"line_search_fn={line_search_fn!r}: must be None or 'strong_wolfe'")
        if lr < 0:
            raise ValueError(f"lr={lr}: must be at least 0")
        self.parameters = parameters_of(target)
        if not self.parameters:
            raise ValueError("LBFGS: there are no parameters")
        self.lr, self.max_iter, self.history_size = lr, max_iter, history_size
        self.max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        self.tolerance_grad, self.tolerance_change = tolerance_grad, tolerance_change
        self.line_search_fn = line_search_fn
        self.iterations = self.evaluations = 0
        self._history: list[tuple[Tensor, Tensor, float]] = []  # steps, changes of the gradient, 1 over their product
        self._scale, self._t = 1.0, 0.0
        self._d: Tensor | None = None
        self._g: Tensor | None = None  # gradient of the last iteration

    def _evaluate(self, closure: Closure) -> tuple[Tensor, Tensor]:
        loss, grads = closure()
        self.evaluations += 1
        if isinstance(grads, Mapping):
            missing = [n for n in self.parameters if n not in grads]
            if missing:
                raise ValueError("step: no gradient of " + ", ".join(missing))
            grads = [grads[n] for n in self.parameters]
        if len(grads) != len(self.parameters):
            raise ValueError(f"step: {len(grads)} gradients for {len(self.parameters)} parameters")
        return _core.keep(loss), _kept(_flat(grads))

    def _move(self, x: Tensor, t: float, d: Tensor) -> None:
        """Sets the parameters to x + t d."""
        with scope("move"):
            to, at = x + d * t, 0
            for p in self.parameters.values():
                count = math.prod(p.shape)
                _core.assign(p, to[at:at + count].reshape(p.shape))
                at += count
            _core.eval([])

    def _direction(self, g: Tensor) -> Tensor:
        """-H g with the inverse Hessian H of the history: the two loops of Nocedal 1980."""
        d, by = _kept(-g), []
        for s, y, r in reversed(self._history):
            by.append(_dot(s, d) * r)
            d = _plus(d, -by[-1], y)
        d = _kept(d * self._scale)
        for s, y, r in self._history:
            d = _plus(d, by.pop() - _dot(y, d) * r, s)
        return d

    def _remember(self, g: Tensor) -> None:
        assert self._d is not None and self._g is not None
        y, s = _kept(g - self._g), _kept(self._d * self._t)
        ys = _dot(y, s)
        if ys > 1e-10:
            del self._history[:max(0, len(self._history) + 1 - self.history_size)]
            self._history.append((s, y, 1 / ys))
            self._scale = ys / _dot(y, y)

    def step(self, closure: Closure) -> Tensor:
        """Up to max_iter iterations.  The closure returns the loss and the gradients, by names or in the parameters' order.
        Returns the loss before the step."""
        first, g = self._evaluate(closure)
        loss, evals = float(first.item()), 1
        if _largest(g) <= self.tolerance_grad:
            return first
        for n in range(1, self.max_iter + 1):
            if self.iterations:
                self._remember(g)
            self.iterations += 1
            d = self._direction(g)
            t = self.lr if self.iterations > 1 else min(1.0, 1 / float(abs(g).sum().item())) * self.lr
            self._d, self._t, self._g, before = d, t, g, loss
            slope = _dot(g, d)
            if slope > -self.tolerance_change:
                break
            x = _kept(_flat(self.parameters.values()))
            if self.line_search_fn:

                def at(t: float, x: Tensor = x, d: Tensor = d) -> _Point:
                    self._move(x, t, d)
                    f, g = self._evaluate(closure)
                    return _Point(t, float(f.item()), _dot(g, d), g)

                best, took = _strong_wolfe(at, _Point(0, loss, slope, g), t, _largest(d), self.tolerance_change,
                                           self.max_eval - evals)
                self._t = best.t
                self._move(x, best.t, d)
                loss, g, evals = best.f, best.g, evals + took
            else:
                self._move(x, t, d)
                if n == self.max_iter:
                    break
                f, g = self._evaluate(closure)
                loss, evals = float(f.item()), evals + 1
            if n == self.max_iter or evals >= self.max_eval or _largest(g) <= self.tolerance_grad:
                break
            if _largest(d) * abs(self._t) <= self.tolerance_change or abs(loss - before) < self.tolerance_change:
                break
        return first
