# SPDX-License-Identifier: Apache-2.0
"""The base class of modules: parameters and children as attributes, state, copies and pickles."""
from __future__ import annotations

import os
import warnings
import weakref
from typing import Any, Callable, Iterable, Iterator, Sequence

from .. import _core
from .._arrays import host, packed, put, tensor
from .._record import dtype
from .._with import context_of, device_name

Tensor = _core.Tensor
Shape = int | Sequence[int]
_dtype = dtype


class Parameter:
    """An attribute of a module assigned from this becomes a trained parameter.  Takes data; or a shape and the initial values: all
    `value`, uniform in [-uniform, uniform], or normal with standard deviation `normal`."""

    buffer = False

    def __init__(self, data: Any = None, *, shape: Shape = (), dtype: Any = None, value: float = 0.0,
                 uniform: float | None = None, normal: float | None = None) -> None:
        self.data = None if data is None else tensor(data, dtype)
        self.shape = shape if self.data is None else self.data.shape
        self.dtype = _dtype(dtype or "f32") if self.data is None else self.data.dtype
        self.first, self.value = 0, value
        if uniform is not None:
            self.first, self.value = 1, uniform
        elif normal is not None:
            self.first, self.value = 2, normal


class Buffer(Parameter):
    """As Parameter, for values that are saved with a module but not trained."""

    buffer = True


class Module:
    """The base class of networks and layers: parameters, child modules and a function `forward`."""

    _c: _core.ModuleHandle | None = None
    _name: str | None = None
    _prints_parameters = True
    _child_attributes: Sequence[str] = ()  # attributes that hold the children

    def _module(self) -> _core.ModuleHandle:
        if self._c is None:
            made = _core.module_new(type(self).__name__, weakref.ref(self))
            object.__setattr__(self, "_c", made)
            return made
        return self._c

    def __setattr__(self, name: str, value: Any) -> None:
        value = _as_container(value)
        if _hides_modules(value):
            _warn_hidden(self, name, value)
        if isinstance(self.__dict__.get(name), Module):
            raise ValueError(f"{type(self).__name__}.{name} is a module already; a part of a network stays")
        if isinstance(value, Module):
            if name in self._own_names():
                raise ValueError(f"{type(self).__name__}.{name} is a parameter or buffer already; choose another name")
            if not name or set(name) & set(".,!*?[]\\"):  # C would take the module and free it
                raise ValueError(f"{type(self).__name__}: {name!r} is no name: one has letters, and none of . , ! * ? [ ] \\")
            _core.module_child(self._module(), name, value._module())
            object.__setattr__(value, "_name", name)
        elif name in self._own_names():
            self._set_own(name, value)
            return
        elif isinstance(value, Parameter):
            own = self.__dict__.setdefault("_own", {})
            if value.buffer:
                made = _core.module_buffer(self._module(), name, value.dtype, value.shape, value.value)
            else:
                made = _core.module_parameter(self._module(), name, value.dtype, value.shape, value.first, value.value)
            own[name] = len(own)
            if value.data is not None:
                put(made, value.data)
            return
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if isinstance(self.__dict__.get(name), Module) or name in self._own_names():
            raise ValueError(f"{type(self).__name__}.{name}: a part of a network stays")
        object.__delattr__(self, name)

    def _own_names(self) -> Iterable[str]:
        """Names of parameters and buffers of this module alone."""
        own: Iterable[str] = self.__dict__.get("_own", ())
        return own

    def _set_own(self, name: str, value: Any) -> None:
        """Ties the parameter to another module's, if value is one; else assigns new values to it."""
        mine = getattr(self, name)
        if isinstance(value, Parameter):
            if value.data is None or tuple(value.data.shape) != tuple(mine.shape):
                raise ValueError(f"{type(self).__name__}: there is a '{name}' already, of shape {list(mine.shape)}")
            value = value.data
        if isinstance(value, Tensor):
            if value._handle() == mine._handle() or _core._module_tied(self._module(), name, value):
                return
            if value.dtype == mine.dtype and value.shape == mine.shape:
                _core.assign(mine, value)
                return
        put(mine, value)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__.get("_own")
        if own is not None and name in own:
            return _core.module_own(self._module(), own[name])
        raise AttributeError(f"{type(self).__name__} has no '{name}'")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's computation; each subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__} has no function forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls forward in a scope named after the module; lifts its results, and tensors that objects still hold, out of the scope."""
        return _core._called(self, self._name or type(self).__name__, *args, **kwargs)

    # ---- the tree below ----

    def parameters(self) -> dict[str, Tensor]:
        """The trained parameters by path."""
        for m in self.modules():
            for name, value in list(m.__dict__.items()):
                if name not in ("_init_args", *m._child_attributes) and _hides_modules(value):
                    _warn_hidden(m, name, value)
        t, names = _core.module_parameters(self._module())
        return dict(zip(names, t))

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """The trained parameters with their paths."""
        return iter(self.parameters().items())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct children, with their names."""
        for name, value in self.__dict__.items():
            if isinstance(value, Module):
                yield name, value

    def children(self) -> Iterator[Module]:
        """The direct children."""
        return (m for _, m in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and all of its descendants, with their paths."""
        yield prefix, self
        for name, m in self.named_children():
            yield from m.named_modules(f"{prefix}.{name}" if prefix else name)

    def modules(self) -> Iterator[Module]:
        """This module and all of its descendants."""
        return (m for _, m in self.named_modules())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """What is saved with the network and not trained, with its path."""
        return ((path, t) for path, t, flags in _core.module_each(self._module()) if flags & _core.MODULE_BUFFER)

    def buffers(self) -> Iterator[Tensor]:
        """What is saved with the network and not trained."""
        return (t for _, t in self.named_buffers())

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """self.name = Buffer(tensor); if not persistent, an attribute that is neither saved nor moved."""
        setattr(self, name, Buffer(tensor) if persistent and tensor is not None else tensor)

    def register_parameter(self, name: str, param: Any) -> None:
        """self.name = Parameter(param); None is stored as it is."""
        setattr(self, name, param if param is None or isinstance(param, Parameter) else Parameter(param))

    def apply(self, fn: Callable[[Module], Any]) -> Module:
        """Calls fn with each module below, the deeper ones first, and with this one."""
        for m in self.children():
            m.apply(fn)
        fn(self)
        return self

    def state_dict(self) -> dict[str, Any]:
        """All parameters and buffers, copied to NumPy arrays, by path."""
        return {path: t.numpy() for path, t, _ in _core.module_each(self._module())}

    def load_state_dict(self, state: dict[str, Any], strict: bool = True) -> None:
        """Copies values into parameters and buffers, converted to their dtypes.  ValueError lists every missing or unknown name and
        every wrong shape; nothing is changed then.  PyTorch's num_batches_tracked, of batch norms, may be given where it is not used."""
        mine = {path: t for path, t, _ in _core.module_each(self._module())}
        wrong = []
        if strict:
            wrong += [f"{n} is missing" for n in mine if n not in state]
            wrong += [f"{n} is not known" for n in state if n not in mine and not n.endswith("num_batches_tracked")]
        new = {n: host(state[n].numpy() if isinstance(state[n], Tensor) else state[n], t.dtype)
               for n, t in mine.items() if n in state}
        wrong += [f"{n} is {list(a.shape)} and should be {list(mine[n].shape)}" for n, a in new.items()
                  if tuple(a.shape) != tuple(mine[n].shape)]
        if wrong:
            raise ValueError("load_state_dict: " + "; ".join(wrong))
        for n in new:
            put(mine[n], state[n])

    def save(self, path: str | os.PathLike[str], max_bytes: int | None = None) -> None:
        """Writes a safetensors file; with max_bytes, several of at most that size and an index, NAME.safetensors.index.json."""
        if max_bytes is None:
            _core.module_save(self._module(), os.fspath(path))
        else:
            _core.module_save_split(self._module(), os.fspath(path), max_bytes)

    def load(self, path: str | os.PathLike[str], *, partial: bool = False, exact: bool = False,
             rename: Callable[[str], str] | None = None) -> None:
        """Reads a safetensors file, or an index of several.  ValueError lists everything that does not fit; nothing is changed then."""
        _core.module_load(self._module(), os.fspath(path), partial=partial, exact=exact, rename=rename)

    def train(self, on: bool = True) -> Module:
        """Training mode: dropout is applied, batch norms use the batch's statistics."""
        _core.module_mode(self._module(), on)
        return self

    def eval(self) -> Module:
        """Inference mode."""
        return self.train(False)

    @property
    def training(self) -> bool:
        return _core.module_training(self._module())

    def freeze(self, pattern: str = "*") -> None:
        """Stops training of the parameters whose paths match."""
        _core.module_freeze(self._module(), pattern, True)

    def unfreeze(self, pattern: str = "*") -> None:
        _core.module_freeze(self._module(), pattern, False)

    def share(self, path: str, with_: str) -> None:
        """Ties two parameters: the one at `path` becomes the one at `with_`."""
        _core.module_share(self._module(), path, with_)

    def cast(self, dtype: Any) -> Module:
        """Converts floating-point parameters and buffers to a dtype."""
        _core.module_cast(self._module(), dtype)
        return self

    def move(self, to: _core.Context) -> Module:
        """Moves parameters and buffers to another context."""
        _core.module_move(self._module(), to)
        return self

    def to(self, to: Any) -> Module:
        """Converts to a floating-point dtype, or moves to a device by name ("opencl:0"; "cuda" is the best one)."""
        name = device_name(to)
        if name is None:
            return self.cast(to)
        on = next((t.device for _, t, _ in _core.module_each(self._module())), name)
        return self if on == name else self.move(context_of(name))

    def fold(self) -> Module:
        """Folds batch norms, weights of norms and LoRA into the adjacent matrices, for inference."""
        _core.module_fold(self._module())
        return self

    # ---- as text ----

    def extra_repr(self) -> str:
        """The text in the parentheses after the class's name when the module is printed."""
        return ""

    def __repr__(self) -> str:
        lines = [f"({name}): " + repr(m).replace("\n", "\n  ") for name, m in self.named_children()]
        if self._prints_parameters:
            for name in self._own_names():
                t = getattr(self, name)
                lines.append(f"({name}): {t.dtype.name} {list(t.shape)}")
        head, about = type(self).__name__, self.extra_repr()
        return f"{head}({about})" if not lines else "\n".join([f"{head}({about}", *(f"  {x}" for x in lines), ")"])

    # ---- copies and pickles ----

    def _weights(self) -> list[tuple[str, Weights, bool]]:
        """Parameters and buffers of this module alone: name, values, is it a buffer?"""
        if not self._own_names():
            return []
        buffers = {p for p, _, flags in _core.module_each(self._module()) if flags & _core.MODULE_BUFFER}
        return [(n, Weights.of(getattr(self, n)), n in buffers) for n in self._own_names()]

    def __reduce__(self) -> Any:
        frozen = [p for p, _, flags in _core.module_each(self._module()) if flags & _core.MODULE_FROZEN and "." not in p]
        kept = {k: v for k, v in self.__dict__.items() if k not in ("_c", "_own", "_name")}
        return _unpickled, (type(self),), {"kept": kept, "own": self._weights(), "frozen": frozen, "training": self.training}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, w, buffer in state["own"]:
            setattr(self, name, (Buffer if buffer else Parameter)(w.array, dtype=w.dtype))
            w.placed(self, name)
        for name, value in state["kept"].items():
            if isinstance(value, Module):
                setattr(self, name, value)
            else:
                object.__setattr__(self, name, value)
        self._take_mode(state)

    def _take_mode(self, state: dict[str, Any]) -> None:
        for pattern in state["frozen"]:
            self.freeze(pattern)
        if not state["training"]:
            self.eval()


def _unpickled(kind: type[Module]) -> Module:
    return kind.__new__(kind)


def _as_container(value: Any) -> Any:
    """A list or dictionary of modules alone becomes a ModuleList or ModuleDict; any other value stays."""
    from ._containers import ModuleDict, ModuleList  # which derive from Module

    if isinstance(value, (list, tuple)) and value and all(isinstance(v, Module) for v in value):
        return ModuleList(value)
    if isinstance(value, dict) and value and all(isinstance(v, Module) and isinstance(k, str) for k, v in value.items()):
        return ModuleDict(value)
    return value


def _hides_modules(value: Any) -> bool:
    """Whether this is a plain container with modules in it, which registers none of them."""
    if isinstance(value, dict):
        return any(isinstance(v, Module) or _hides_modules(v) for v in value.values())
    if isinstance(value, (list, tuple, set)):
        return any(isinstance(v, Module) or _hides_modules(v) for v in value)
    return False


def _warn_hidden(module: Module, name: str, value: Any) -> None:
    warned = module.__dict__.get("_warned", ())
    if name in warned:
        return
    object.__setattr__(module, "_warned", (*warned, name))
    warnings.warn(f"{type(module).__name__}.{name}: the modules in this {type(value).__name__} are not registered: they are neither "
                  "trained nor saved with the network; use ModuleList or ModuleDict", stacklevel=3)


class Weights:
    """The values of a parameter in a pickle: one object per tensor, so that unpickling ties tied parameters again."""

    _by_handle: weakref.WeakValueDictionary[int, Weights] = weakref.WeakValueDictionary()

    def __init__(self, array: Any, dtype: str) -> None:
        self.array, self.dtype = array, dtype
        self._first: tuple[Module, str] | None = None

    @classmethod
    def of(cls, t: Tensor) -> Weights:
        w = cls._by_handle.get(t._handle())
        if w is None:
            cls._by_handle[t._handle()] = w = cls(*packed(t))
        return w

    def __reduce__(self) -> Any:
        return Weights, (self.array, self.dtype)

    def placed(self, module: Module, name: str) -> None:
        """Notes that module.name has these values; a second module is tied to the first."""
        if self._first is None:
            self._first = module, name
        else:
            setattr(module, name, getattr(*self._first))
