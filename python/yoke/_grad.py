# SPDX-License-Identifier: Apache-2.0
"""Gradients of values, and of functions."""
from __future__ import annotations

import collections
from typing import Any, Callable, Sequence, overload

from . import _core
from ._arrays import tensor
from .nn import Module


def _leaves(x: Any, to: list[_core.Tensor]) -> Any:
    """The tensors in lists, tuples and dicts, and how they are put together; a module stands for its parameters."""
    if isinstance(x, Module):
        names = []
        for name, p in x.parameters().items():
            names.append(name)
            to.append(p)
        return lambda g: {name: next(g) for name in names}
    if isinstance(x, dict):
        inner = {k: _leaves(v, to) for k, v in x.items()}
        return lambda g: {k: f(g) for k, f in inner.items()}
    if isinstance(x, (list, tuple)):
        parts, kind = [_leaves(v, to) for v in x], type(x)
        return lambda g: kind([f(g) for f in parts])
    if not isinstance(x, _core.Tensor):
        raise TypeError(f"grad: {type(x).__name__} has no gradient; give a tensor, a module, or a list or dict of them")
    to.append(x)
    return lambda g: next(g)


def value_and_grad(fn: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., tuple[Any, Any]]:
    """A function that gives fn's value, and its gradient by an argument, or by several: tensors, modules (a dict by
    parameters' names), or lists and dicts of them.  fn gives a tensor of one element, or a tuple that begins with one."""
    which = [argnums] if isinstance(argnums, int) else list(argnums)

    def both(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        all_args = [tensor(a) if i in which and isinstance(a, (int, float)) else a for i, a in enumerate(args)]
        leaves: list[_core.Tensor] = []
        together, at = [], []
        for i in which:
            at.append(len(leaves))
            together.append(_leaves(all_args[i], leaves))
        times = collections.Counter(t._handle() for t in leaves)
        for k, t in enumerate(leaves):  # the same tensor as two arguments: each has a gradient of its own
            if times[t._handle()] > 1:
                leaves[k] = _core.reshape(t, t.shape)
        for i, first, f in zip(which, at, together):
            all_args[i] = all_args[i] if isinstance(all_args[i], Module) else f(iter(leaves[first:]))
        value = fn(*all_args, **kwargs)
        y = value[0] if isinstance(value, tuple) else value
        g = iter(_core.grad(y, leaves))
        grads = [f(g) for f in together]
        return value, grads[0] if isinstance(argnums, int) else tuple(grads)

    return both


@overload
def grad(y: _core.Tensor, p: Sequence[_core.Tensor]) -> list[_core.Tensor]: ...
@overload
def grad(y: Callable[..., Any], p: int | Sequence[int] = 0) -> Callable[..., Any]: ...
def grad(y: Any, p: Any = 0) -> Any:
    """Of a tensor of one element: its gradients by each of p.  Of a function: one that gives its gradient by the arguments of
    these numbers, as value_and_grad."""
    if isinstance(y, _core.Tensor):
        return _core.grad(y, p)
    both = value_and_grad(y, p)
    return lambda *args, **kwargs: both(*args, **kwargs)[1]
