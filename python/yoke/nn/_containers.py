# SPDX-License-Identifier: Apache-2.0
"""Modules that hold other modules."""
from __future__ import annotations

from typing import Any, Iterable, Iterator, Mapping

from .. import _core
from ._layer import Layer
from ._module import Module
from ._pooling import MaxPool


class ModuleList(Module):
    """A list of modules; their names are their indices."""

    _child_attributes = ("_list",)

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        object.__setattr__(self, "_list", [])
        for m in modules:
            self.append(m)

    def append(self, m: Module) -> ModuleList:
        setattr(self, str(len(self._list)), m)
        self._list.append(m)
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        for m in modules:
            self.append(m)
        return self

    def __getitem__(self, i: Any) -> Any:
        return self._list[i]

    def __len__(self) -> int:
        return len(self._list)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._list)

    def __contains__(self, m: object) -> bool:
        return any(m is x for x in self._list)


class ModuleDict(Module):
    """Modules by name, as a dictionary."""

    _child_attributes = ("_by_name",)

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        object.__setattr__(self, "_by_name", {})
        self.update(modules or {})

    def update(self, modules: Mapping[str, Module]) -> None:
        for name, m in modules.items():
            self[name] = m

    def __setitem__(self, name: str, m: Module) -> None:
        if not isinstance(m, Module):
            raise TypeError(f"ModuleDict: takes modules, and '{name}' is a {type(m).__name__}")
        if name in self.__dict__ or hasattr(ModuleDict, name):
            if name not in self._by_name and name not in self.__dict__:
                raise ValueError(f"ModuleDict: '{name}' is an attribute of the class; choose another name")
        setattr(self, name, m)
        self._by_name[name] = m

    def __getitem__(self, name: str) -> Module:
        return self._by_name[name]  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def keys(self) -> Iterable[str]:
        return self._by_name.keys()  # type: ignore[no-any-return]

    def values(self) -> Iterable[Module]:
        return self._by_name.values()  # type: ignore[no-any-return]

    def items(self) -> Iterable[tuple[str, Module]]:
        return self._by_name.items()  # type: ignore[no-any-return]


class Sequential(Layer):
    """Applies modules one after another."""

    _child_attributes = ("_list",)

    def __init__(self, *modules: Module) -> None:
        for i, m in enumerate(modules):
            if not isinstance(m, Module):
                raise TypeError(f"Sequential: takes modules, and operand {i} is a {type(m).__name__}")
            if isinstance(m, MaxPool) and m.return_indices:
                raise ValueError(f"Sequential: operand {i}, {type(m).__name__} with return_indices, gives two results")
        self._wrap(_core.nn_sequential([m._module() for m in modules]))
        for i, m in enumerate(modules):
            object.__setattr__(m, "_name", str(i))
        object.__setattr__(self, "_list", modules)

    def named_children(self) -> Iterator[tuple[str, Module]]:
        return ((str(i), m) for i, m in enumerate(self.__dict__.get("_list", ())))

    def __getitem__(self, i: Any) -> Any:
        return self._list[i]

    def __iter__(self) -> Iterator[Module]:
        return iter(self._list)

    def __len__(self) -> int:
        return len(self._list)


class Residual(Layer):
    """x + inner(x)."""

    _child_attributes = ("inner",)

    def __init__(self, inner: Module) -> None:
        self._wrap(_core.nn_residual(inner._module()))
        object.__setattr__(self, "inner", inner)
