# SPDX-License-Identifier: Apache-2.0
"""Networks of modules, those of yoke-nn.h: a class with modules and parameters as attributes is one.

	class Net(yoke.nn.Module):
	    def __init__(self) -> None:
	        self.up = yoke.nn.Linear(64, 128)
	        self.down = yoke.nn.Linear(128, 10)

	    def forward(self, x: yoke.Tensor) -> yoke.Tensor:
	        return self.down(self.up(x).relu())

Parameters have the path of attributes to them, "up.weight"; files have these names too, as in C.
"""
from __future__ import annotations

import inspect
import os
import warnings
import weakref
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

from . import _core, _sampling
from ._arrays import host, packed, put, tensor
from ._record import dtype
from ._with import context_of, device_name

Tensor = _core.Tensor
Shape = int | Sequence[int]

__all__ = [
    "Activation", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool",
    "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AdaptiveMeanPool", "Attention", "AvgPool1d",
    "AvgPool2d", "AvgPool3d", "BatchNorm", "BatchNorm1d", "BatchNorm2d", "Block", "Buffer", "Conv1d", "Conv2d",
    "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "ConvTransposed1d", "ConvTransposed2d",
    "ConvTransposed3d", "Dropout", "Embedding", "EmbeddingBag", "Flatten", "Fold", "GELU", "GRU", "GRUCell", "GroupNorm",
    "Identity", "LSTM", "LSTMCell", "LayerNorm", "Linear", "LoRA", "MLP", "MaxPool", "MaxPool1d", "MaxPool2d", "MaxPool3d",
    "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "MeanPool", "Module", "ModuleDict", "ModuleList", "PackedSequence", "Parameter",
    "RMSNorm", "RNN", "RNNCell", "ReLU", "Residual", "Resize", "Sequential", "SiLU", "Sigmoid", "Tanh", "Unfold", "Upsample",
    "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence", "unpack_sequence", "unpad_sequence",
]


def __dir__() -> list[str]:
    return __all__


class Parameter:
    """What a module's attribute becomes a parameter by: data; or a shape with first values, all `value`, uniform in
    -uniform .. uniform, or normal of the deviation `normal`."""

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
    """What is saved with a module and not trained."""

    buffer = True


_dtype = dtype


class Module:
    """What has parameters and computes with them: subclass it, or use one of those here."""

    _c: _core.ModuleHandle | None = None
    _name: str | None = None

    def _module(self) -> _core.ModuleHandle:
        if self._c is None:
            made = _core.module_new(type(self).__name__, weakref.ref(self))
            object.__setattr__(self, "_c", made)
            return made
        return self._c

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, (list, tuple)) and value and all(isinstance(v, Module) for v in value):
            value = ModuleList(value)
        elif isinstance(value, dict) and value and all(isinstance(v, Module) and isinstance(k, str) for k, v in value.items()):
            value = ModuleDict(value)
        elif _hides_modules(value):
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
        """What the module computes; a subclass has one."""
        raise NotImplementedError(f"{type(self).__name__} has no function forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """forward, in a scope of the module's name; what it gives, and what objects still hold, is lifted out of it."""
        return _core._called(self, self._name or type(self).__name__, *args, **kwargs)

    # ---- all of it ----

    def parameters(self) -> dict[str, Tensor]:
        """The parameters that are trained, by their names."""
        for m in self.modules():
            for name, value in list(m.__dict__.items()):
                if name not in ("_made", *m._parts) and _hides_modules(value):
                    _warn_hidden(m, name, value)
        t, names = _core.module_parameters(self._module())
        return dict(zip(names, t))

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """The parameters that are trained, with their names."""
        return iter(self.parameters().items())

    _parts: Sequence[str] = ()  # attributes that hold children

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules that are parts of this one, with their names."""
        for name, value in self.__dict__.items():
            if isinstance(value, Module):
                yield name, value

    def children(self) -> Iterator[Module]:
        """The modules that are parts of this one."""
        return (m for _, m in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and all below, with the paths to them."""
        yield prefix, self
        for name, m in self.named_children():
            yield from m.named_modules(f"{prefix}.{name}" if prefix else name)

    def modules(self) -> Iterator[Module]:
        """This module and all below."""
        return (m for _, m in self.named_modules())

    def state_dict(self) -> dict[str, Any]:
        """All parameters and buffers as they are now, as NumPy arrays."""
        return {path: t.numpy() for path, t, _ in _core.module_each(self._module())}

    def load_state_dict(self, state: dict[str, Any], strict: bool = True) -> None:
        """Takes them, converted to the parameters' dtypes.  ValueError names all that do not fit, and nothing is changed."""
        mine = {path: t for path, t, _ in _core.module_each(self._module())}
        wrong = []
        if strict:
            wrong += [f"{n} is missing" for n in mine if n not in state] + [f"{n} is not known" for n in state if n not in mine]
        new = {n: host(state[n].numpy() if isinstance(state[n], Tensor) else state[n], t.dtype)
               for n, t in mine.items() if n in state}
        wrong += [f"{n} is {list(a.shape)} and should be {list(mine[n].shape)}" for n, a in new.items()
                  if tuple(a.shape) != tuple(mine[n].shape)]
        if wrong:
            raise ValueError("load_state_dict: " + "; ".join(wrong))
        for n in new:
            put(mine[n], state[n])

    def save(self, path: str | os.PathLike[str], max_bytes: int | None = None) -> None:
        """Into a safetensors file; or, of at most max_bytes each, into several beside an index, NAME.safetensors.index.json."""
        if max_bytes is None:
            _core.module_save(self._module(), os.fspath(path))
        else:
            _core.module_save_split(self._module(), os.fspath(path), max_bytes)

    def load(self, path: str | os.PathLike[str], *, partial: bool = False, exact: bool = False,
             rename: Callable[[str], str] | None = None) -> None:
        """From a safetensors file, or an index of several; ValueError names all that does not fit, and nothing is changed."""
        _core.module_load(self._module(), os.fspath(path), partial=partial, exact=exact, rename=rename)

    def train(self, on: bool = True) -> Module:
        """As it is trained: dropout drops, batch norms use the batch's statistics."""
        _core.module_mode(self._module(), on)
        return self

    def eval(self) -> Module:
        """As it is used."""
        return self.train(False)

    @property
    def training(self) -> bool:
        return _core.module_training(self._module())

    def freeze(self, pattern: str = "*") -> None:
        """Parameters whose names match are not trained any more."""
        _core.module_freeze(self._module(), pattern, True)

    def unfreeze(self, pattern: str = "*") -> None:
        _core.module_freeze(self._module(), pattern, False)

    def share(self, path: str, with_: str) -> None:
        """The parameter of one path becomes that of the other."""
        _core.module_share(self._module(), path, with_)

    def cast(self, dtype: Any) -> Module:
        """Parameters and buffers of floating point become of that dtype."""
        _core.module_cast(self._module(), dtype)
        return self

    def move(self, to: _core.Context) -> Module:
        """To another context."""
        _core.module_move(self._module(), to)
        return self

    def to(self, to: Any) -> Module:
        """Parameters and buffers in another floating-point dtype, or on the device of a name ("opencl:0", or "cuda": the best)."""
        name = device_name(to)
        if name is None:
            return self.cast(to)
        on = next((t.device for _, t, _ in _core.module_each(self._module())), name)
        return self if on == name else self.move(context_of(name))

    def fold(self) -> Module:
        """Batch norms, norms' weights and LoRA into the matrices beside them, for use."""
        _core.module_fold(self._module())
        return self


    # ---- as text ----

    def extra_repr(self) -> str:
        """The text in the parentheses after the class's name when the module is printed."""
        return ""

    def __repr__(self) -> str:
        lines = [f"({name}): " + repr(m).replace("\n", "\n  ") for name, m in self.named_children()]
        if not isinstance(self, _Layer):
            for name in self._own_names():
                t = getattr(self, name)
                lines.append(f"({name}): {t.dtype.name} {list(t.shape)}")
        head, about = type(self).__name__, self.extra_repr()
        return f"{head}({about})" if not lines else "\n".join([f"{head}({about}", *(f"  {x}" for x in lines), ")"])

    # ---- copies and pickles ----

    def _weights(self) -> list[tuple[str, _Weights, bool]]:
        """Parameters and buffers of this module alone: name, values, is it a buffer?"""
        if not self._own_names():
            return []
        buffers = {p for p, _, flags in _core.module_each(self._module()) if flags & _core.MODULE_BUFFER}
        return [(n, _Weights.of(getattr(self, n)), n in buffers) for n in self._own_names()]

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


def _hides_modules(value: Any) -> bool:
    """Is it a plain container of modules, which does not register them?"""
    if isinstance(value, dict):
        return any(isinstance(v, Module) or _hides_modules(v) for v in value.values())
    if isinstance(value, (list, tuple, set)):
        return any(isinstance(v, Module) or _hides_modules(v) for v in value)
    return False


def _warn_hidden(module: Module, name: str, value: Any) -> None:
    told = module.__dict__.get("_told", ())
    if name in told:
        return
    object.__setattr__(module, "_told", (*told, name))
    warnings.warn(f"{type(module).__name__}.{name}: the modules in this {type(value).__name__} are no parts of the network: they are "
                  "neither trained nor saved with it; use ModuleList or ModuleDict", stacklevel=3)


class _Weights:
    """A parameter's values for a pickle: one object for one tensor, so that tied parameters are tied again."""

    _made: weakref.WeakValueDictionary[int, _Weights] = weakref.WeakValueDictionary()

    def __init__(self, array: Any, dtype: str) -> None:
        self.array, self.dtype = array, dtype
        self._first: tuple[Module, str] | None = None

    @classmethod
    def of(cls, t: Tensor) -> _Weights:
        w = cls._made.get(t._handle())
        if w is None:
            cls._made[t._handle()] = w = cls(*packed(t))
        return w

    def __reduce__(self) -> Any:
        return _Weights, (self.array, self.dtype)

    def placed(self, module: Module, name: str) -> None:
        """A module has them; the second one has the first one's parameter."""
        if self._first is None:
            self._first = module, name
        else:
            setattr(module, name, getattr(*self._first))


class ModuleList(Module):
    """Modules in a row, each with its number as name."""

    _parts = ("_list",)

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
    """Modules by name."""

    _parts = ("_by_name",)

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


class Identity(Module):
    """Returns its operand."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def forward(self, x: Any) -> Any:
        return x


class _Layer(Module):
    """A layer of the C library.  The arguments that it was made with are kept for printing and pickles."""

    _made: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})

    def __init_subclass__(cls, **how: Any) -> None:
        super().__init_subclass__(**how)
        if cls.__module__ != __name__ and ("forward" in vars(cls) or "__call__" in vars(cls)):
            raise TypeError(f"{cls.__name__}: a built-in layer computes by its own function, also inside of others; write a Module "
                            "with the layer as an attribute")

    def __new__(cls, *args: Any, **kwargs: Any) -> _Layer:
        self = super().__new__(cls)
        object.__setattr__(self, "_made", (args, kwargs))
        return self

    def _is(self, c: _core.ModuleHandle) -> None:
        object.__setattr__(self, "_c", c)

    def __call__(self, x: Any) -> Tensor:
        return _core.call(self._module(), x)

    forward = __call__

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
        args, kwargs = self._made
        try:
            said = inspect.signature(type(self).__init__).bind(self, *args, **kwargs)
        except TypeError:  # a subclass with a __new__ of its own
            return ""
        said.apply_defaults()
        shown = []
        for (name, value), parameter in zip(list(said.arguments.items())[1:], list(said.signature.parameters.values())[1:]):
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL or isinstance(value, Module) or (
                    value == parameter.default and parameter.kind is inspect.Parameter.KEYWORD_ONLY):
                continue
            shown.append(f"{name}={value!r}")
        return ", ".join(shown)

    def __reduce__(self) -> Any:
        kept = {k: v for k, v in self.__dict__.items() if k not in ("_c", "_made", "_name", "_own", *self._parts)}
        own = [(n, _Weights.of(getattr(self, n))) for n in self._own_names()]
        frozen = [p for p, _, flags in _core.module_each(self._module()) if flags & _core.MODULE_FROZEN]
        return _layer_unpickled, (type(self), *self._made), {"kept": kept, "own": own, "frozen": frozen, "training": self.training}

    def __setstate__(self, state: dict[str, Any]) -> None:
        kinds = {w.dtype for _, w in state["own"] if w.dtype in ("f64", "f16", "bf16")}
        if len(kinds) == 1 and not any(True for _ in self.named_children()):
            self.cast(kinds.pop())
        for name, w in state["own"]:
            put(getattr(self, name), tensor(w.array))
            w.placed(_At(self._module()), name)
        for name, value in state["kept"].items():
            object.__setattr__(self, name, value)
        self._take_mode(state)


class _At:
    """A layer's parameters by their paths, as attributes."""

    c: _core.ModuleHandle

    def __init__(self, c: _core.ModuleHandle) -> None:
        object.__setattr__(self, "c", c)

    def __getattr__(self, path: str) -> Tensor:
        return _core.module_find(self.c, path)

    def __setattr__(self, path: str, value: Tensor) -> None:
        _core._module_tied(self.c, path, value)


def _layer_unpickled(kind: type[_Layer], args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Layer:
    return kind(*args, **kwargs)


class Linear(_Layer):
    """x [..,in] -> [..,out]."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        self._is(_core.nn_linear(in_features, out_features, bias))


class Embedding(_Layer):
    """ids [..] -> [..,width]."""

    def __init__(self, num_embeddings: int, embedding_dim: int) -> None:
        self._is(_core.nn_embedding(num_embeddings, embedding_dim))


def _width(call: str, shape: Shape) -> int:
    dims = [shape] if isinstance(shape, int) else list(shape)
    if len(dims) != 1:
        raise ValueError(f"{call}: norms are of the last axis, not of {len(dims)}")
    return dims[0]


class LayerNorm(_Layer):
    """Of the last axis: minus the mean, over the deviation, times weight, plus bias."""

    def __init__(self, normalized_shape: Shape, eps: float = 1e-5) -> None:
        self._is(_core.nn_layer_norm(_width("LayerNorm", normalized_shape), eps))


class RMSNorm(_Layer):
    """Of the last axis: over the root of the mean square, times weight."""

    def __init__(self, normalized_shape: Shape, eps: float = 1e-6) -> None:
        self._is(_core.nn_rms_norm(_width("RMSNorm", normalized_shape), eps))


class GroupNorm(_Layer):
    """x [B,channels,..]: each group of channels normalized, then times weight, plus bias."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5) -> None:
        self._is(_core.nn_group_norm(num_groups, num_channels, eps))


class BatchNorm(_Layer):
    """x [B,channels,..]: over all but the channels."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        self._is(_core.nn_batch_norm(num_features, eps, momentum))


class _Conv(_Layer):
    axes = 2

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Shape, stride: Shape = 1, padding: Shape = 0,
                 dilation: Shape = 1, groups: int = 1, bias: bool = True) -> None:
        self._is(_core.nn_conv(self.axes, in_channels, out_channels, kernel_size, groups=groups, stride=stride, dilation=dilation,
                               lo=padding, hi=padding, bias=bias))


class _ConvTransposed(_Layer):
    axes = 2

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Shape, stride: Shape = 1, padding: Shape = 0,
                 output_padding: Shape = 0, groups: int = 1, bias: bool = True, dilation: Shape = 1) -> None:
        self._is(_core.nn_conv_transposed(self.axes, in_channels, out_channels, kernel_size, groups=groups, stride=stride,
                                          dilation=dilation, lo=padding, hi=padding, more=output_padding, bias=bias))


class Conv1d(_Conv):
    """x [B,in,S] -> [B,out,Q]."""

    axes = 1


class Conv2d(_Conv):
    """x [B,in,S,S] -> [B,out,Q,Q]."""


class ConvTransposed1d(_ConvTransposed):
    """x [B,in,Q] -> [B,out,S]: what the gradient of a convolution by its operand is."""

    axes = 1


class ConvTransposed2d(_ConvTransposed):
    """x [B,in,Q,Q] -> [B,out,S,S]: what the gradient of a convolution by its operand is."""


class Conv3d(_Conv):
    """x [B,in,S,S,S] -> [B,out,Q,Q,Q]."""

    axes = 3


class ConvTransposed3d(_ConvTransposed):
    """x [B,in,Q,Q,Q] -> [B,out,S,S,S]: what the gradient of a convolution by its operand is."""

    axes = 3


class MaxPool(_Layer):
    """The maximum of each window over the spatial axes.  MaxPool1d, MaxPool2d and MaxPool3d fix the number of these axes,
    so they also take operands without a batch axis.  With return_indices it gives a pair: the maxima, and their row-major
    indices in the spatial axes, i64, which MaxUnpool takes."""

    axes = 0

    def __init__(self, kernel_size: Shape, stride: Shape | None = None, padding: Shape = 0, dilation: Shape = 1,
                 return_indices: bool = False, ceil_mode: bool = False) -> None:
        self._how: dict[str, Any] = dict(window=kernel_size, stride=stride or 0, lo=padding, hi=padding, dilation=dilation, axes=self.axes,
                                         ceil_mode=ceil_mode)
        self.return_indices = return_indices
        self._is(_core.nn_max_pool(**self._how))

    def __call__(self, x: Any) -> Any:
        return _core.max_pool_indices(x, **self._how) if self.return_indices else super().__call__(x)

    forward = __call__


class MeanPool(_Layer):
    """The mean of each window, of its elements alone."""

    axes = 0

    def __init__(self, kernel_size: Shape, stride: Shape = 0, padding: Shape = 0, ceil_mode: bool = False,
                 count_include_pad: bool = False) -> None:
        self._is(_core.nn_mean_pool(window=kernel_size, stride=stride or 0, lo=padding, hi=padding, axes=self.axes,
                                    ceil_mode=ceil_mode, count_include_pad=count_include_pad))


class MaxPool1d(MaxPool):
    """The maximum of each window of one axis."""

    axes = 1


class MaxPool2d(MaxPool):
    """The maximum of each window of two axes."""

    axes = 2


class MaxPool3d(MaxPool):
    """The maximum of each window of three axes."""

    axes = 3


class AvgPool1d(MeanPool):
    """The mean of each window; padding counts as zeros, unless count_include_pad is False."""

    axes = 1

    def __init__(self, kernel_size: Shape, stride: Shape = 0, padding: Shape = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)


class AvgPool2d(AvgPool1d):
    """The mean of each window of two axes."""

    axes = 2


class AvgPool3d(AvgPool1d):
    """The mean of each window of three axes."""

    axes = 3


class _MaxUnpool(Module):
    """The inverse of a maximum pooling as far as there is one: forward(x, indices, output_size=None) gives zeros with the elements of
    x [B,C,Q..] or [C,Q..] at the indices that the pool returned.  output_size: the size before pooling, by default (Q - 1) stride
    - 2 padding + kernel_size; it is within a stride of that, and may have all axes or the spatial ones alone.  Of several
    elements at one index the mean remains.  ValueError: shapes do not fit; an index outside is an error when it is evaluated."""

    axes = 0

    def __init__(self, kernel_size: Shape, stride: Shape | None = None, padding: Shape = 0) -> None:
        each = [(v,) * self.axes if isinstance(v, int) else tuple(v) for v in (kernel_size, stride or kernel_size, padding)]
        if any(len(v) != self.axes for v in each):
            raise ValueError(f"{type(self).__name__}: kernel_size, stride and padding have {self.axes} numbers each, got "
                             f"{kernel_size}, {stride} and {padding}")
        self.kernel_size, self.stride, self.padding = each

    def forward(self, x: Any, indices: Any, output_size: Sequence[int] | None = None) -> Tensor:
        call = type(self).__name__
        if x.ndim not in (self.axes + 1, self.axes + 2) or tuple(x.shape) != tuple(indices.shape):
            raise ValueError(f"{call}: takes x with {self.axes} axes after the channels, and indices of its shape, got "
                             f"{list(x.shape)} and {list(indices.shape)}")
        to = [(q - 1) * s - 2 * p + k for q, k, s, p in zip(x.shape[-self.axes:], self.kernel_size, self.stride, self.padding)]
        if output_size is not None:
            given = list(output_size)[-self.axes:]
            if len(output_size) not in (self.axes, x.ndim) or any(abs(g - t) >= s for g, t, s in zip(given, to, self.stride)):
                raise ValueError(f"{call}: output_size {list(output_size)} is not within a stride, {list(self.stride)}, of {to}")
            to = given
        if x.ndim == self.axes + 1:
            y = _core.max_unpool(x.reshape(1, *x.shape), indices.reshape(1, *x.shape), to)
            return y.reshape(*y.shape[1:])
        return _core.max_unpool(x, indices, to)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    __doc__ = _MaxUnpool.__doc__
    axes = 1


class MaxUnpool2d(_MaxUnpool):
    __doc__ = _MaxUnpool.__doc__
    axes = 2


class MaxUnpool3d(_MaxUnpool):
    __doc__ = _MaxUnpool.__doc__
    axes = 3


def _axes(to: Shape) -> int:
    return 2 if isinstance(to, int) else len(to)


class AdaptiveMaxPool(_Layer):
    """The maximum of so many windows along each axis behind the channels."""

    axes = 0

    def __init__(self, output_size: Shape) -> None:
        self._is(_core.nn_adaptive_max_pool(self.axes or _axes(output_size), output_size))


class AdaptiveMeanPool(_Layer):
    """The mean of so many windows along each axis behind the channels."""

    axes = 0

    def __init__(self, output_size: Shape) -> None:
        self._is(_core.nn_adaptive_mean_pool(self.axes or _axes(output_size), output_size))


class AdaptiveMaxPool1d(AdaptiveMaxPool):
    """The maximum of so many windows along one axis."""

    axes = 1


class AdaptiveMaxPool2d(AdaptiveMaxPool):
    """The maximum of so many windows along two axes."""

    axes = 2


class AdaptiveMaxPool3d(AdaptiveMaxPool):
    """The maximum of so many windows along three axes."""

    axes = 3


class AdaptiveAvgPool1d(AdaptiveMeanPool):
    """The mean of so many windows along one axis."""

    axes = 1


class AdaptiveAvgPool2d(AdaptiveMeanPool):
    """The mean of so many windows along two axes."""

    axes = 2


class AdaptiveAvgPool3d(AdaptiveMeanPool):
    """The mean of so many windows along three axes."""

    axes = 3


class Resize(_Layer):
    """To another size along the axes behind the channels: the nearest element, or with smooth linear between two."""

    def __init__(self, size: Shape, smooth: bool = False) -> None:
        self._is(_core.nn_resize(_axes(size), size, smooth))


class Upsample(Module):
    """yoke.interpolate as a layer."""

    def __init__(self, size: Shape | None = None, scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
                 align_corners: bool | None = None, recompute_scale_factor: bool | None = None) -> None:
        self._how = dict(size=size, scale_factor=scale_factor, mode=mode, align_corners=align_corners,
                         recompute_scale_factor=recompute_scale_factor)

    def forward(self, x: Tensor) -> Tensor:
        return _sampling.interpolate(x, **self._how)  # type: ignore[arg-type]


class EmbeddingBag(Module):
    """Sums, means or maxima of rows of a table: yoke.embedding_bag as a layer."""

    def __init__(self, num_embeddings: int, embedding_dim: int, mode: str = "mean", include_last_offset: bool = False,
                 padding_idx: int | None = None) -> None:
        self.weight = Parameter(shape=(num_embeddings, embedding_dim), normal=1.0)
        self._how = dict(mode=mode, include_last_offset=include_last_offset, padding_idx=padding_idx)

    def forward(self, ids: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return _sampling.embedding_bag(ids, self.weight, offsets, per_sample_weights=per_sample_weights, **self._how)  # type: ignore[arg-type]


class Unfold(Module):
    """Windows as columns: yoke.unfold as a layer."""

    def __init__(self, kernel_size: Shape, dilation: Shape = 1, padding: Shape = 0, stride: Shape = 1) -> None:
        self._how = dict(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        return _sampling.unfold(x, **self._how)


class Fold(Module):
    """Columns added up: yoke.fold as a layer."""

    def __init__(self, output_size: Shape, kernel_size: Shape, dilation: Shape = 1, padding: Shape = 0, stride: Shape = 1) -> None:
        self._how = dict(output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        return _sampling.fold(x, **self._how)


class Flatten(_Layer):
    """x [B,..] -> [B,all of it]."""

    def __init__(self) -> None:
        self._is(_core.nn_flatten())


class Dropout(_Layer):
    """In training each element is 0 with probability p, else over 1 - p."""

    def __init__(self, p: float = 0.5) -> None:
        self._is(_core.nn_dropout(p))


class Activation(_Layer):
    """relu, gelu, gelu_tanh, silu, tanh, sigmoid."""

    def __init__(self, name: str) -> None:
        self._is(_core.nn_activation(name))


class ReLU(Activation):
    """max(x, 0)."""

    def __init__(self) -> None:
        super().__init__("relu")


class GELU(Activation):
    """x/2 (1 + erf(x / sqrt 2)), or its approximation by tanh."""

    def __init__(self, approximate: str = "none") -> None:
        if approximate not in ("none", "tanh"):
            raise ValueError(f"GELU: approximate is 'none' or 'tanh', not {approximate!r}")
        super().__init__("gelu_tanh" if approximate == "tanh" else "gelu")


class SiLU(Activation):
    """x sigmoid(x)."""

    def __init__(self) -> None:
        super().__init__("silu")


class Tanh(Activation):
    """The hyperbolic tangent."""

    def __init__(self) -> None:
        super().__init__("tanh")


class Sigmoid(Activation):
    """1 / (1 + exp(-x))."""

    def __init__(self) -> None:
        super().__init__("sigmoid")


class Sequential(_Layer):
    """Each is given what the one before gives."""

    _parts = ("_list",)

    def __init__(self, *modules: Module) -> None:
        for i, m in enumerate(modules):
            if not isinstance(m, Module):
                raise TypeError(f"Sequential: takes modules, and operand {i} is a {type(m).__name__}")
            if isinstance(m, MaxPool) and m.return_indices:
                raise ValueError(f"Sequential: operand {i}, {type(m).__name__} with return_indices, gives two results")
        self._is(_core.nn_sequential([m._module() for m in modules]))
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


# The names of PyTorch's layers that are one here for any number of axes.
BatchNorm1d = BatchNorm2d = BatchNorm
ConvTranspose1d, ConvTranspose2d, ConvTranspose3d = ConvTransposed1d, ConvTransposed2d, ConvTransposed3d


class Residual(_Layer):
    """x + inner(x)."""

    _parts = ("inner",)

    def __init__(self, inner: Module) -> None:
        self._is(_core.nn_residual(inner._module()))
        object.__setattr__(self, "inner", inner)


class MLP(_Layer):
    """A linear layer, an activation, dropout, a linear layer."""

    def __init__(self, in_features: int, hidden: int, out_features: int, activation: str = "gelu", dropout: float = 0.0) -> None:
        self._is(_core.nn_mlp(in_features, hidden, out_features, activation, dropout))


class Attention(_Layer):
    """x [B,T,width], or x and context [B,S,width]."""

    def __init__(self, width: int, heads: int, *, kv_heads: int = 0, causal: bool = False, bias: bool = True,
                 dropout: float = 0.0, rope: float = 0.0) -> None:
        self._is(_core.nn_attention(width=width, heads=heads, kv_heads=kv_heads, causal=causal, bias=bias, dropout=dropout,
                                    rope=rope))

    def __call__(self, x: Any, context: Any = None) -> Tensor:
        return _core.forward(self._module(), [x] if context is None else [x, context])[0]

    forward = __call__


class Block(_Layer):
    """A pre-norm block: attention, then an MLP of four times the width."""

    def __init__(self, width: int, heads: int, *, kv_heads: int = 0, causal: bool = False, bias: bool = True,
                 dropout: float = 0.0, rope: float = 0.0) -> None:
        self._is(_core.nn_block(width=width, heads=heads, kv_heads=kv_heads, causal=causal, bias=bias, dropout=dropout,
                                rope=rope))


class LoRA(_Layer):
    """inner(x) + alpha/rank (x a') b' around a linear layer."""

    _parts = ("inner",)

    def __init__(self, linear: Linear, rank: int = 8, alpha: float = 16.0) -> None:
        self._is(_core.nn_lora(linear._module(), rank, alpha))
        object.__setattr__(self, "inner", linear)


from ._recurrent import GRU, GRUCell, LSTM, LSTMCell, RNN, RNNCell  # which need Module
from ._sequences import (PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence, pad_sequence, unpack_sequence,
                         unpad_sequence)
