# SPDX-License-Identifier: Apache-2.0
"""Results of functions other than tensors: numbers by name; and element types."""
from __future__ import annotations

import enum
import types
from typing import Any


class Record(types.SimpleNamespace):
    """Numbers by name, as a struct of C has them."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no '{name}' in this; it has {', '.join(vars(self))}")


_NAMES = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int8": "i8", "uint8": "u8", "int32": "i32",
    "int64": "i64", "float": "f32", "double": "f64", "half": "f16", "int": "i64", "long": "i64",
}


class dtype(enum.Enum):
    """An element type.  Made from a tensor, a name ("f32", "float32"), a dtype of NumPy or PyTorch, or float, int and bool.

    It equals every other name of the same type: x.dtype == "float32", x.dtype == numpy.float32.  A plain number is no
    dtype.  "i8" and "u8" are yoke's names, 8 bits wide (in NumPy these texts mean 8 bytes)."""

    f32 = "f32"
    f64 = "f64"
    f16 = "f16"
    bf16 = "bf16"
    i8 = "i8"
    u8 = "u8"
    i32 = "i32"
    i64 = "i64"
    bool = "bool"

    @classmethod
    def _missing_(cls, value: object) -> "dtype":
        have = getattr(value, "dtype", None)
        if isinstance(have, dtype):
            return have
        if isinstance(value, type) and value.__name__ in ("float", "int", "bool"):
            name = value.__name__
        elif isinstance(value, str):
            name = value
        else:
            name = str(getattr(value, "name", None) or getattr(value, "__name__", None) or value)
        name = name.removesuffix("_").rsplit(".", 1)[-1]
        name = _NAMES.get(name, name)
        if name in cls.__members__:
            return cls.__members__[name]
        if isinstance(value, str) and name[:1] in "<=>|fiub?":  # NumPy's codes: "f4", "<i8"
            import numpy

            try:
                name = numpy.dtype(value).name
            except TypeError:
                pass
            if name in _NAMES:
                return cls.__members__[_NAMES[name]]
        raise TypeError(f"yoke has no dtype {value!r}; it has {', '.join(cls.__members__)}")

    @property
    def numpy(self) -> Any:
        """NumPy's dtype; that of bf16 comes from the package ml_dtypes."""
        import numpy

        if self is dtype.bf16:
            try:
                import ml_dtypes
            except ImportError:
                raise TypeError("bf16 has no dtype in NumPy; install ml_dtypes, or cast to f32") from None
            return numpy.dtype(ml_dtypes.bfloat16)
        return numpy.dtype({"f32": "f4", "f64": "f8", "f16": "f2", "i8": "i1", "u8": "u1", "i32": "i4", "i64": "i8",
                            "bool": "?"}[self.name])

    @property
    def is_floating_point(self) -> "_bool":
        return self.name in ("f32", "f64", "f16", "bf16")

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return {"f32": 4, "f64": 8, "f16": 2, "bf16": 2, "i32": 4, "i64": 8}.get(self.name, 1)

    def __eq__(self, other: object) -> "_bool":
        if self is other:
            return True
        if other is None or isinstance(other, (dtype, int, float)):
            return False
        try:
            return self is dtype(other)
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"yoke.{self.name}"

    __str__ = __repr__


_bool = bool  # inside the class bool is a dtype


class finfo:
    """The limits of a floating-point dtype: bits, eps (the step above 1), max, min (-max), tiny (the least normal number)."""

    def __init__(self, of: Any) -> None:
        self.dtype = dtype(of)
        if not self.dtype.is_floating_point:
            raise TypeError(f"finfo: {self.dtype.name} is no floating-point dtype; iinfo is for integers")
        fraction, top = {"f16": (10, 15), "bf16": (7, 127), "f32": (23, 127), "f64": (52, 1023)}[self.dtype.name]
        self.bits = 8 * self.dtype.itemsize
        self.eps = 2.0 ** -fraction
        self.max = (2.0 - self.eps) * 2.0 ** top
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - top)

    def __repr__(self) -> str:
        return f"finfo({self.dtype.name}: eps={self.eps:g}, max={self.max:g}, tiny={self.tiny:g})"


class iinfo:
    """The limits of an integer dtype: bits, min, max."""

    def __init__(self, of: Any) -> None:
        self.dtype = dtype(of)
        if self.dtype.is_floating_point or self.dtype is dtype.bool:
            raise TypeError(f"iinfo: {self.dtype.name} is no integer dtype; finfo is for floating-point numbers")
        self.bits = 8 * self.dtype.itemsize
        signed = self.dtype is not dtype.u8
        self.max: int = 2 ** (self.bits - signed) - 1
        self.min: int = -self.max - 1 if signed else 0

    def __repr__(self) -> str:
        return f"iinfo({self.dtype.name}: min={self.min}, max={self.max})"
