# SPDX-License-Identifier: Apache-2.0
"""The base class of built-in layers, which the C library computes."""
from __future__ import annotations

import inspect
from typing import Any, Iterable

from .. import _core
from .._arrays import put, tensor
from ._module import Module, Weights

Tensor = _core.Tensor


class Layer(Module):
    """A layer that the C library computes; or, with options that it lacks there, `_compose`.  Keeps the arguments of its
    constructor for printing and pickles."""

    _prints_parameters = False
    _wraps = False
    _init_args: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})

    def __init_subclass__(cls, **how: Any) -> None:
        super().__init_subclass__(**how)
        if cls.__module__.rpartition(".")[0] != __package__ and ("forward" in vars(cls) or "__call__" in vars(cls)):
            raise TypeError(f"{cls.__name__}: a built-in layer computes by its own function, also inside of others; write a Module "
                            "with the layer as an attribute")

    def __new__(cls, *args: Any, **kwargs: Any) -> Layer:
        self = super().__new__(cls)
        object.__setattr__(self, "_init_args", (args, kwargs))
        return self

    def _wrap(self, c: _core.ModuleHandle) -> None:
        """Makes this object the wrapper of a module of the C library."""
        object.__setattr__(self, "_c", c)
        object.__setattr__(self, "_wraps", True)

    def __call__(self, x: Any) -> Tensor:
        return _core.call(self._module(), x) if self._wraps else super().__call__(x)

    def forward(self, x: Any) -> Tensor:
        """The layer's computation."""
        return _core.call(self._module(), x) if self._wraps else self._compose(x)

    def _compose(self, x: Any) -> Tensor:
        """The computation by other operations, for options that the C library's layer lacks."""
        raise NotImplementedError

    def _own_names(self) -> Iterable[str]:
        if self._c is None:
            return ()
        below = tuple(f"{name}." for name, _ in self.named_children())
        return [p for p, _, _ in _core.module_each(self._c) if not p.startswith(below)]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and self._c is not None:
            try:
                return _core.module_find(self._c, name)
            except ValueError:
                pass
        raise AttributeError(f"{type(self).__name__} has no '{name}'")

    def extra_repr(self) -> str:
        args, kwargs = self._init_args
        try:
            bound = inspect.signature(type(self).__init__).bind(self, *args, **kwargs)
        except TypeError:  # a subclass with a __new__ of its own
            return ""
        bound.apply_defaults()
        shown = []
        for (name, value), parameter in zip(list(bound.arguments.items())[1:], list(bound.signature.parameters.values())[1:]):
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL or isinstance(value, Module) or (
                    value == parameter.default and parameter.kind is inspect.Parameter.KEYWORD_ONLY) or name == "inplace":
                continue
            shown.append(f"{name}={value!r}")
        return ", ".join(shown)

    def __reduce__(self) -> Any:
        kept = {k: v for k, v in self.__dict__.items() if k not in ("_c", "_wraps", "_init_args", "_name", "_own", *self._child_attributes)}
        own = [(n, Weights.of(getattr(self, n))) for n in self._own_names()]
        frozen = [p for p, _, flags in _core.module_each(self._module()) if flags & _core.MODULE_FROZEN]
        return _layer_unpickled, (type(self), *self._init_args), {"kept": kept, "own": own, "frozen": frozen, "training": self.training}

    def __setstate__(self, state: dict[str, Any]) -> None:
        kinds = {w.dtype for _, w in state["own"] if w.dtype in ("f64", "f16", "bf16")}
        if len(kinds) == 1 and not any(True for _ in self.named_children()):
            self.cast(kinds.pop())
        for name, w in state["own"]:
            put(getattr(self, name), tensor(w.array))
            w.placed(_ByPath(self._module()), name)
        for name, value in state["kept"].items():
            object.__setattr__(self, name, value)
        self._take_mode(state)


class _ByPath:
    """A layer's parameters as attributes named by their paths, for Weights.placed."""

    c: _core.ModuleHandle

    def __init__(self, c: _core.ModuleHandle) -> None:
        object.__setattr__(self, "c", c)

    def __getattr__(self, path: str) -> Tensor:
        return _core.module_find(self.c, path)

    def __setattr__(self, path: str, value: Tensor) -> None:
        _core._module_tied(self.c, path, value)


def _layer_unpickled(kind: type[Layer], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Layer:
    return kind(*args, **kwargs)
