# SPDX-License-Identifier: Apache-2.0
"""The class Tensor beyond the extension's operators: methods, printing, copies, NumPy's protocols."""
from __future__ import annotations

import inspect
from typing import Any, Callable, Iterator, NoReturn

from . import _arrays, _core, _elements, _methods, _print, _reductions, _shapes
from ._record import dtype as _dtype

Tensor = _core.Tensor


def _method(name: str) -> Callable[..., Any]:
    """A function of the extension as a method, with its description and arguments."""
    fn = getattr(_core, name)

    def call(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return fn(self, *args, **kwargs)

    said, _, doc = (fn.__doc__ or "").partition("\n\n")
    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc or said
    call.__signature__ = _signature(said)  # type: ignore[attr-defined]
    return call


def _signature(said: str) -> inspect.Signature:
    """That of the line that begins a function's description, with the first operand as self."""
    import ast

    node = ast.parse("def " + said.split("\n")[0].strip().removeprefix("def ").rstrip(":") + ": ...").body[0]
    assert isinstance(node, ast.FunctionDef)
    a, kind = node.args, inspect.Parameter
    defaults = [None] * (len(a.args) - len(a.defaults)) + list(a.defaults)
    params = [kind("self", kind.POSITIONAL_ONLY)]
    for arg, default in [*list(zip(a.args, defaults))[1:], *zip(a.kwonlyargs, a.kw_defaults)]:
        params.append(kind(arg.arg, kind.KEYWORD_ONLY if arg in a.kwonlyargs else kind.POSITIONAL_OR_KEYWORD,
                           default=kind.empty if default is None else ast.literal_eval(default),
                           annotation=ast.unparse(arg.annotation).replace("yoke._core.", "") if arg.annotation else kind.empty))
    returns = ast.unparse(node.returns).replace("yoke._core.", "") if node.returns else inspect.Signature.empty
    return inspect.Signature(params, return_annotation=returns)


# ---- in place ----

def _in_place(name: str) -> Callable[[Tensor, Any], Any]:
    def update(self: Tensor, other: Any) -> Any:
        y = getattr(self, f"__{name}__")(other)
        if y is NotImplemented or not self.is_variable:
            return y
        if y.shape != self.shape:
            raise ValueError(f"{name}: a variable of shape {list(self.shape)} cannot become one of {list(y.shape)} in place")
        if y.dtype is not self.dtype:
            kinds = [0 if t.dtype.name == "bool" else 2 if t.dtype.is_floating_point else 1 for t in (self, y)]
            if kinds[1] > kinds[0]:
                raise TypeError(f"{name}: a variable of {self.dtype.name} cannot become one of {y.dtype.name} in place; "
                                "cast the other operand")
            y = _core.cast(y, self.dtype)
        _core.assign(self, y)
        return self

    update.__name__ = f"__i{name}__"
    update.__doc__ = "Of a variable: assigns it the result, without changing its dtype or shape.  Of another tensor: a new one."
    return update


# ---- elements ----

def _iterated(self: Tensor) -> Iterator[Tensor]:
    if self.ndim == 0:
        raise TypeError("iteration over a tensor without axes")
    return (self[i] for i in range(self.shape[0]))


def _contains(self: Tensor, value: Any) -> bool:
    return bool(_reductions.any(self == value))


def _rounded(self: Tensor, decimals: int | None = None) -> Any:
    return _elements.round(self, decimals or 0)


def _divmod(self: Tensor, other: Any) -> tuple[Any, Any]:
    return self // other, self % other


# ---- copies ----

def _deepcopy(self: Tensor, memo: Any) -> Tensor:
    return _arrays.unpacked(*_arrays.packed(self), self.is_variable)


def _copy(self: Tensor) -> Tensor:
    return _deepcopy(self, None) if self.is_variable else _elements.clone(self)


def _reduce(self: Tensor) -> Any:
    return _arrays.unpacked, (*_arrays.packed(self), self.is_variable)


# ---- NumPy's protocols ----

def _as_array(self: Tensor, dtype: Any = None, copy: Any = None) -> Any:
    a = self.numpy()
    if dtype is not None and a.dtype != dtype:
        return a.astype(dtype)
    return a.copy() if copy else a


_BY_OPERATOR = {
    "add": "add", "subtract": "sub", "multiply": "mul", "true_divide": "truediv", "divide": "truediv", "floor_divide": "floordiv",
    "remainder": "mod", "power": "pow", "matmul": "matmul", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
    "left_shift": "lshift", "right_shift": "rshift",
}
_COMPARED = {"less": "lt", "less_equal": "le", "equal": "eq", "not_equal": "ne", "greater": "gt", "greater_equal": "ge"}
_SWAPPED = {"lt": "gt", "le": "ge", "eq": "eq", "ne": "ne", "gt": "lt", "ge": "le"}
_BY_NAME = {"absolute": "abs", "fabs": "abs", "negative": "neg", "reciprocal": "recip", "invert": "not_", "arctan": "atan",
            "arcsin": "asin", "arccos": "acos", "arctan2": "atan2", "rint": "round"}


def _array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """numpy.exp(x) and array * x of a tensor x are yoke's."""
    import yoke

    if method != "__call__" or kwargs:
        return NotImplemented
    name, x = ufunc.__name__, [i if isinstance(i, (Tensor, int, float)) else _arrays.tensor(i) for i in inputs]
    if len(x) == 2 and name in _COMPARED:
        op = _COMPARED[name]
        return getattr(x[0], f"__{op}__")(x[1]) if isinstance(x[0], Tensor) else getattr(x[1], f"__{_SWAPPED[op]}__")(x[0])
    if len(x) == 2 and name in _BY_OPERATOR:
        op = _BY_OPERATOR[name]
        return getattr(x[0], f"__{op}__")(x[1]) if isinstance(x[0], Tensor) else getattr(x[1], f"__r{op}__")(x[0])
    fn = getattr(yoke, _BY_NAME.get(name, name), None)
    return fn(*x) if callable(fn) else NotImplemented


# ---- PyTorch's names that have no counterpart ----

_GRADIENTS = "a gradient is that of a function: loss, grads = yoke.value_and_grad(f)(net), or yoke.grad(loss, [x])"
_INSTEAD = {
    **dict.fromkeys(("backward", "grad", "grad_fn", "requires_grad", "requires_grad_", "retain_grad"), _GRADIENTS),
    "data": "x.detach() has the values without gradients", "is_cuda": "x.device is the device's name", "type": "x.dtype, and x.to(dtype)",
    "apply_": "functions of elements are operations, or yoke.op", "pin_memory": "a loader does that",
}
_INSTEAD_OF_FUNCTIONS = {
    **dict.fromkeys(("no_grad", "inference_mode", "enable_grad", "set_grad_enabled"),
                    "nothing is needed; gradients are computed by yoke.grad and yoke.value_and_grad alone"),
    "compile": "nothing is needed; each step is planned as a whole, and the plan is found again", "save": "net.save(path), or numpy.save",
    "cuda": "yoke.devices() lists devices, with yoke.device('cuda'): uses one", "utils": "yoke.fit takes lists, functions and loaders",
    "set_default_dtype": "functions that create tensors take dtype=", "set_num_threads": "YOKE_THREADS in the environment",
}


def _missing(self: Tensor, name: str) -> NoReturn:
    why = _INSTEAD.get(name)
    if why is None and name.endswith("_") and not name.startswith("_"):
        new = f"x = x.{name[:-1]}(..)" if hasattr(Tensor, name[:-1]) else "an operation"
        why = f"tensors are not changed in place; {new} gives a new one"
    raise AttributeError(f"a tensor has no '{name}'" + (f": {why}" if why else ""), name=name, obj=self)


def missing_function(name: str) -> NoReturn:
    """The package has no such name."""
    why = _INSTEAD_OF_FUNCTIONS.get(name)
    raise AttributeError(f"yoke has no '{name}'" + (f": {why}" if why else ""), name=name)


def set_up() -> None:
    """Gives the class its methods."""
    Tensor.__getattr__ = _missing  # type: ignore[attr-defined]
    for name in _methods.CORE_METHODS:
        setattr(Tensor, name, _method(name))
    for name in _methods.METHODS:
        setattr(Tensor, name, _methods.function(name))
    for op in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
        setattr(Tensor, f"__i{op}__", _in_place(op))
    for name, fn in {
        "__repr__": _print.text, "__format__": _print.formatted, "__iter__": _iterated, "__contains__": _contains,
        "__round__": _rounded, "__divmod__": _divmod, "__deepcopy__": _deepcopy, "__copy__": _copy, "__reduce__": _reduce,
        "__array__": _as_array, "__array_ufunc__": _array_ufunc, "view": _shapes.reshape, "copy": _elements.clone, "put": _arrays.put,
        "div": _elements.div, "maximum": _reductions.maximum, "minimum": _reductions.minimum,
        "nbytes": property(lambda self: self.size * self.dtype.itemsize, doc="Bytes of all elements."),
        "mT": property(lambda self: _shapes.swapaxes(self, -1, -2), doc="With its last two axes exchanged."),
    }.items():
        setattr(Tensor, name, fn)
    for name, kind in {"half": "f16", "float": "f32", "double": "f64", "int": "i32", "long": "i64", "bool": "bool"}.items():
        setattr(Tensor, name, _named(name, f"In {kind}.", lambda self, kind=kind: _core.cast(self, kind)))
    for name, doc, method in (
            ("add", "self + other.", lambda self, other: self + other), ("sub", "self - other.", lambda self, other: self - other),
            ("mul", "self * other.", lambda self, other: self * other), ("neg", "-self.", lambda self: -self),
            ("pow", "self to the power exponent.", lambda self, exponent: self ** exponent),
            ("numel", "The number of elements.", lambda self: self.size), ("dim", "The number of axes.", lambda self: self.ndim),
            ("cpu", "On the CPU.", lambda self: self.to("cpu:0")),
            ("cuda", "On the best CUDA device.", lambda self: self.to("cuda"))):
        setattr(Tensor, name, _named(name, doc, method))


def _named(name: str, doc: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """A method by its name."""
    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = doc
    fn.__signature__ = inspect.Signature([p for p in inspect.signature(fn).parameters.values()  # type: ignore[attr-defined]
                                          if p.default is inspect.Parameter.empty])
    return fn
