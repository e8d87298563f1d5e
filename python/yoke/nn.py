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

import os
import weakref
from typing import Any, Callable, Iterable, Iterator, Sequence

from . import _core
from ._arrays import host, put, tensor
from ._record import dtype

Tensor = _core.Tensor
Shape = int | Sequence[int]


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
        if isinstance(value, Module):
            if isinstance(self.__dict__.get(name), Module):
                raise ValueError(f"{type(self).__name__}.{name} is a module already; a part of a network stays")
            if name in self.__dict__.get("_own", ()):
                raise ValueError(f"{type(self).__name__}.{name} is a parameter or buffer already; choose another name")
            if not name or set(name) & set(".,!*?[]\\"):  # C would take the module and free it
                raise ValueError(f"{type(self).__name__}: {name!r} is no name: one has letters, and none of . , ! * ? [ ] \\")
            _core.module_child(self._module(), name, value._module())
            object.__setattr__(value, "_name", name)
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
        elif name in self.__dict__.get("_own", ()):
            if isinstance(value, Tensor) and value.dtype == getattr(self, name).dtype:
                _core.assign(getattr(self, name), value)
            else:
                put(getattr(self, name), value)
            return
        object.__setattr__(self, name, value)

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
        """Those that are trained, by their names."""
        t, names = _core.module_parameters(self._module())
        return dict(zip(names, t))

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

    def save(self, path: str | os.PathLike[str], most: int | None = None) -> None:
        """Into a safetensors file; or, of most bytes each, into several beside an index, NAME.safetensors.index.json."""
        if most is None:
            _core.module_save(self._module(), os.fspath(path))
        else:
            _core.module_save_split(self._module(), os.fspath(path), most)

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

    def fold(self) -> Module:
        """Batch norms, norms' weights and LoRA into the matrices beside them, for use."""
        _core.module_fold(self._module())
        return self


class ModuleList(Module):
    """Modules in a row, each with its number as name."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        object.__setattr__(self, "_list", [])
        for m in modules:
            self.append(m)

    def append(self, m: Module) -> None:
        setattr(self, str(len(self._list)), m)
        self._list.append(m)

    def __getitem__(self, i: int) -> Module:
        return self._list[i]  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self._list)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._list)


class _Layer(Module):
    """One of C's."""

    def _is(self, c: _core.ModuleHandle) -> None:
        object.__setattr__(self, "_c", c)

    def __call__(self, x: Any) -> Tensor:
        return _core.call(self._module(), x)

    forward = __call__

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            try:
                return _core.module_find(self._module(), name)
            except ValueError:
                pass
        raise AttributeError(f"{type(self).__name__} has no '{name}'")


class Linear(_Layer):
    """x [..,in] -> [..,out]."""

    def __init__(self, in_: int, out: int, bias: bool = True) -> None:
        self._is(_core.nn_linear(in_, out, bias))


class Embedding(_Layer):
    """ids [..] -> [..,width]."""

    def __init__(self, count: int, width: int) -> None:
        self._is(_core.nn_embedding(count, width))


class LayerNorm(_Layer):
    def __init__(self, width: int, eps: float = 1e-5) -> None:
        self._is(_core.nn_layer_norm(width, eps))


class RMSNorm(_Layer):
    def __init__(self, width: int, eps: float = 1e-6) -> None:
        self._is(_core.nn_rms_norm(width, eps))


class GroupNorm(_Layer):
    def __init__(self, groups: int, channels: int, eps: float = 1e-5) -> None:
        self._is(_core.nn_group_norm(groups, channels, eps))


class BatchNorm(_Layer):
    """x [B,channels,..]: over all but the channels."""

    def __init__(self, channels: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        self._is(_core.nn_batch_norm(channels, eps, momentum))


class _Conv(_Layer):
    axes = 2
    transposed = False

    def __init__(self, in_: int, out: int, kernel: Shape, *, stride: Shape = 1, padding: Shape = 0, dilation: Shape = 1,
                 groups: int = 1, bias: bool = True, more: Shape = 0) -> None:
        make = _core.nn_conv_transposed if self.transposed else _core.nn_conv
        self._is(make(self.axes, in_, out, kernel, groups=groups, stride=stride, dilation=dilation, lo=padding, hi=padding,
                      more=more, bias=bias))


class Conv1d(_Conv):
    """x [B,in,S] -> [B,out,Q]."""

    axes = 1


class Conv2d(_Conv):
    """x [B,in,S,S] -> [B,out,Q,Q]."""


class ConvTransposed1d(_Conv):
    axes = 1
    transposed = True


class ConvTransposed2d(_Conv):
    transposed = True


class MaxPool(_Layer):
    """The maximum of each window, along the axes behind the channels."""

    def __init__(self, window: Shape, stride: Shape = 0, padding: Shape = 0, dilation: Shape = 1) -> None:
        self._is(_core.nn_max_pool(window=window, stride=stride, lo=padding, hi=padding, dilation=dilation))


class MeanPool(_Layer):
    """The mean of each window."""

    def __init__(self, window: Shape, stride: Shape = 0, padding: Shape = 0) -> None:
        self._is(_core.nn_mean_pool(window=window, stride=stride, lo=padding, hi=padding))


def _axes(to: Shape) -> int:
    return 2 if isinstance(to, int) else len(to)


class AdaptiveMaxPool(_Layer):
    def __init__(self, to: Shape) -> None:
        self._is(_core.nn_adaptive_max_pool(_axes(to), to))


class AdaptiveMeanPool(_Layer):
    def __init__(self, to: Shape) -> None:
        self._is(_core.nn_adaptive_mean_pool(_axes(to), to))


class Resize(_Layer):
    def __init__(self, to: Shape, smooth: bool = False) -> None:
        self._is(_core.nn_resize(_axes(to), to, smooth))


class Flatten(_Layer):
    """x [B,..] -> [B,all of it]."""

    def __init__(self) -> None:
        self._is(_core.nn_flatten())


class Dropout(_Layer):
    def __init__(self, p: float = 0.5) -> None:
        self._is(_core.nn_dropout(p))


class Activation(_Layer):
    """relu, gelu, gelu_tanh, silu, tanh, sigmoid."""

    def __init__(self, name: str) -> None:
        self._is(_core.nn_activation(name))


class ReLU(Activation):
    def __init__(self) -> None:
        super().__init__("relu")


class GELU(Activation):
    def __init__(self) -> None:
        super().__init__("gelu")


class Sequential(_Layer):
    """Each is given what the one before gives."""

    def __init__(self, *modules: Module) -> None:
        for i, m in enumerate(modules):
            if not isinstance(m, Module):
                raise TypeError(f"Sequential: takes modules, and operand {i} is a {type(m).__name__}")
        self._is(_core.nn_sequential([m._module() for m in modules]))
        for i, m in enumerate(modules):
            object.__setattr__(m, "_name", str(i))
        object.__setattr__(self, "_list", modules)

    def __getitem__(self, i: int) -> Module:
        return self._list[i]  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self._list)


class Residual(_Layer):
    """x + inner(x)."""

    def __init__(self, inner: Module) -> None:
        self._is(_core.nn_residual(inner._module()))
        object.__setattr__(self, "inner", inner)


class MLP(_Layer):
    def __init__(self, in_: int, hidden: int, out: int, activation: str = "gelu", dropout: float = 0.0) -> None:
        self._is(_core.nn_mlp(in_, hidden, out, activation, dropout))


class Attention(_Layer):
    """x [B,T,width], or x and context [B,S,width]."""

    def __init__(self, width: int, heads: int, *, kv_heads: int = 0, causal: bool = False, bias: bool = True,
                 dropout: float = 0.0, rope: float = 0.0) -> None:
        self._is(_core.nn_attention(width=width, heads=heads, kv_heads=kv_heads, causal=causal, bias=bias, dropout=dropout,
                                    rope=rope))

    def __call__(self, x: Any, context: Any = None) -> Tensor:
        return _core.forward(self._module(), [x] if context is None else [x, context])[0]


class Block(_Layer):
    """A pre-norm block: attention, then an MLP of four times the width."""

    def __init__(self, width: int, heads: int, *, kv_heads: int = 0, causal: bool = False, bias: bool = True,
                 dropout: float = 0.0, rope: float = 0.0) -> None:
        self._is(_core.nn_block(width=width, heads=heads, kv_heads=kv_heads, causal=causal, bias=bias, dropout=dropout,
                                rope=rope))


class LoRA(_Layer):
    """inner(x) + alpha/rank (x a') b' around a linear layer."""

    def __init__(self, linear: Linear, rank: int = 8, alpha: float = 16.0) -> None:
        self._is(_core.nn_lora(linear._module(), rank, alpha))
        object.__setattr__(self, "inner", linear)
