# SPDX-License-Identifier: Apache-2.0
"""Custom operations, and functions with custom gradients."""
from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

from . import _core
from ._arrays import tensor
from ._record import Record

Tensor = _core.Tensor


def _first(*operands: Any) -> list[Any]:
    """A result like the first operand."""
    return [operands[0]]


class op:
    """An operation of a name ("acme.gate"), by a kernel's text in yoke's dialect (yoke-op.h says what its parameters are),
    by a decomposition into others, or both.

    shape(*operands) gives what each result is, things with dtype and shape; by default one result like the first operand.
    gradient(inputs, outputs, g) gives the gradient by each operand, or None where it is 0.  geometry(*operands) gives work items
    and those of a group.  check(*tensors) compares all that were given with each other and with differences."""

    def __init__(self, name: str, *, inputs: int = 1, outputs: int = 1, source: str | None = None, entry: str | None = None,
                 shape: Callable[..., Sequence[Any]] = _first, decompose: Callable[..., Any] | None = None,
                 gradient: Callable[..., Any] | None = None, geometry: Callable[..., Any] | None = None) -> None:
        self.name, self.outputs = name, outputs
        self._op = _core.op_register(name, inputs, outputs, shape, text=source, entry=entry or (source and name.split(".")[-1]),
                                     decompose=decompose, gradient=gradient, geometry=geometry)

    def __call__(self, *x: Any) -> Any:
        y = _core.op_call(self._op, [t if isinstance(t, Tensor) else tensor(t) for t in x], self.outputs)
        return y[0] if self.outputs == 1 else tuple(y)

    def check(self, *x: Any, tolerance: float = 0.0) -> None:
        _core.op_check(self._op, [t if isinstance(t, Tensor) else tensor(t) for t in x], tolerance)


_made = [0]


class custom_grad:
    """A function of tensors whose gradient is another function's:

        @yoke.custom_grad
        def clipped(x):
            return x.clamp(-1, 1)

        @clipped.gradient
        def _(inputs, outputs, g):
            return [g[0]]
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        functools.update_wrapper(self, fn)
        self._fn = fn
        self._grad: Callable[..., Any] | None = None
        self._ops: dict[tuple[int, int], op] = {}
        self._shapes: dict[Any, list[Record]] = {}

    def gradient(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """gradient(inputs, outputs, g) gives the gradient by each input, or None where it is 0."""
        self._grad = fn
        return fn

    def _shape(self, *operands: Any) -> list[Record]:
        return self._shapes[tuple((o.dtype, tuple(o.shape)) for o in operands)]

    def __call__(self, *args: Any) -> Any:
        if self._grad is None:
            raise TypeError(f"{self._fn.__name__} has no gradient of its own; decorate one with @{self._fn.__name__}.gradient")
        x = [a if isinstance(a, Tensor) else tensor(a) for a in args]
        key = tuple((t.dtype, tuple(t.shape)) for t in x)
        if key not in self._shapes:  # recorded once to see what it gives, and dropped
            y = self._fn(*x)
            results = [y] if isinstance(y, Tensor) else list(y)
            self._shapes[key] = [Record(dtype=t.dtype, shape=tuple(t.shape)) for t in results]
        n = len(self._shapes[key])
        if (len(x), n) not in self._ops:
            _made[0] += 1
            name = "".join(c if c.isascii() and c.isalnum() else "_" for c in self._fn.__name__)
            self._ops[len(x), n] = op(f"python.{name}_{_made[0]}", inputs=len(x), outputs=n, shape=self._shape,
                                      decompose=self._fn, gradient=self._grad)
        return self._ops[len(x), n](*x)
