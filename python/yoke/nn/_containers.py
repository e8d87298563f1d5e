# SPDX-License-Identifier: Apache-2.0
"""Modules that hold other modules or parameters."""
from __future__ import annotations

from typing import Any, Iterable, Iterator, Mapping

from .. import _core
from .._common import Tensor
from ._layer import Layer
from ._module import Module, Parameter
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


class ParameterList(Module):
    """A list of parameters; their names are their indices.  Takes Parameters, tensors or arrays."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self.extend(values)

    def append(self, value: Any) -> ParameterList:
        setattr(self, str(len(self)), value if isinstance(value, Parameter) else Parameter(value))
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        for v in values:
            self.append(v)
        return self

    def _names(self) -> list[str]:
        return list(self._own_names())

    def __getitem__(self, i: Any) -> Any:
        names = self._names()[i]
        return [getattr(self, n) for n in names] if isinstance(names, list) else getattr(self, names)

    def __setitem__(self, i: int, value: Any) -> None:
        setattr(self, self._names()[i], value)

    def __len__(self) -> int:
        return len(self._names())

    def __iter__(self) -> Iterator[Tensor]:
        return (getattr(self, n) for n in self._names())


class ParameterDict(Module):
    """Parameters by name, as a dictionary.  Takes Parameters, tensors or arrays."""

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        self.update(parameters or {})

    def update(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        for name, value in dict(parameters).items():
            self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        if not isinstance(name, str) or (name not in self and (name in self.__dict__ or hasattr(ParameterDict, name))):
            raise ValueError(f"ParameterDict: {name!r} is no name, or an attribute of the class; choose another name")
        setattr(self, name, value if isinstance(value, Parameter) or name in self else Parameter(value))

    def __getitem__(self, name: str) -> Tensor:
        if name not in self:
            raise KeyError(name)
        return getattr(self, name)  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self.keys())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default

    def keys(self) -> list[str]:
        return list(self._own_names())

    def values(self) -> list[Tensor]:
        return [self[n] for n in self.keys()]

    def items(self) -> list[tuple[str, Tensor]]:
        return [(n, self[n]) for n in self.keys()]


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
