# SPDX-License-Identifier: Apache-2.0
"""Modules that apply a function of yoke.nn.functional, and the checks that these functions share."""
from __future__ import annotations

from typing import Any, Callable

from .. import _core
from .._common import _of
from .._record import dtype
from .._shapes import _promoted
from ._module import Buffer, Module

Tensor = _core.Tensor


class FunctionModule(Module):
    """Calls `_function` with its operands and with the options that the constructor stored.  Options are attributes, so they
    may be changed; tensors among them are buffers, which are saved and moved with the module.  A class without a
    description of its own has the function's."""

    _prints_parameters = False
    _options: tuple[str, ...] = ()
    _function: Callable[..., Any]

    def __init_subclass__(cls, **how: Any) -> None:
        super().__init_subclass__(**how)
        fn = vars(cls).get("_function")
        if fn is not None and cls.__doc__ is None:
            cls.__doc__ = f"yoke.nn.functional.{fn.__name__} as a module.\n\n    {fn.__doc__}"

    def _set(self, **options: Any) -> None:
        """Stores the options of the constructor."""
        object.__setattr__(self, "_options", tuple(options))
        for name, value in options.items():
            setattr(self, name, Buffer(value) if isinstance(value, Tensor) or hasattr(value, "__array__") else value)

    def _apply(self, *operands: Any, **more: Any) -> Any:
        return self._function(*operands, **{name: getattr(self, name) for name in self._options}, **more)

    def extra_repr(self) -> str:
        values = ((name, getattr(self, name)) for name in self._options if name != "inplace")
        return ", ".join(f"{name}={'tensor' if isinstance(v, Tensor) else repr(v)}" for name, v in values if v is not None)


class UnaryModule(FunctionModule):
    """A function of one operand as a module."""

    def forward(self, input: Any) -> Tensor:
        """The function of input, with the module's options."""
        y: Tensor = self._apply(input)
        return y


class InPlaceModule(UnaryModule):
    """A function whose only option is `inplace`, which has no effect: tensors are values."""

    def __init__(self, inplace: bool = False) -> None:
        self._set(inplace=inplace)


def floating(call: str, *operands: Any) -> list[Tensor]:
    """The operands as tensors of one dtype, which is floating point; Python's numbers adopt that of the others.  TypeError: all
    are integers."""
    arrays = iter(_promoted([_of(t) for t in operands if not isinstance(t, (int, float))]))
    x = [None if isinstance(t, (int, float)) else next(arrays) for t in operands]
    kind = next((t.dtype for t in x if t is not None), dtype("f32"))
    if not kind.is_floating_point:
        raise TypeError(f"{call}: takes floating-point numbers, got {kind.name}")
    return [_core.full(kind, (), t) if y is None else y for t, y in zip(operands, x)]


def same_shape(call: str, **operands: Tensor) -> None:
    """ValueError: two operands differ in shape."""
    shapes = [tuple(t.shape) for t in operands.values()]
    if any(s != shapes[0] for s in shapes):
        given = ", ".join(f"{name} {list(s)}" for name, s in zip(operands, shapes))
        raise ValueError(f"{call}: takes operands of one shape, got {given}")


def together(call: str, **operands: Tensor) -> None:
    """ValueError: the operands do not broadcast."""
    import numpy

    try:
        numpy.broadcast_shapes(*(t.shape for t in operands.values()))
    except ValueError:
        given = ", ".join(f"{name} {list(t.shape)}" for name, t in operands.items())
        raise ValueError(f"{call}: shapes do not broadcast: {given}") from None
