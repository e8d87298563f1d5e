# SPDX-License-Identifier: Apache-2.0
"""What functions give beside tensors: numbers by name; and element types."""
from __future__ import annotations

import enum
import types
from typing import Any


class Record(types.SimpleNamespace):
    """Numbers by name, as a struct of C has them."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no '{name}' in this; it has {', '.join(vars(self))}")


_NAMES = {
    "float32": 1, "float64": 2, "float16": 3, "bfloat16": 4, "int8": 5, "uint8": 6, "int32": 7, "int64": 8, "float": 1,
    "int": 8,
}


class dtype(enum.IntEnum):
    """An element's type.  Made of a tensor, a name (f32, float32), a NumPy dtype, or float, int and bool."""

    f32 = 1
    f64 = 2
    f16 = 3
    bf16 = 4
    i8 = 5
    u8 = 6
    i32 = 7
    i64 = 8
    bool = 9

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
        if name in cls.__members__:
            return cls.__members__[name]
        if name in _NAMES:
            return cls(_NAMES[name])
        raise TypeError(f"yoke has no dtype {value!r}; it has {', '.join(cls.__members__)}")

    @property
    def numpy(self) -> Any:
        """NumPy's dtype; of bf16 that of the package ml_dtypes."""
        import numpy

        if self is dtype.bf16:
            try:
                import ml_dtypes
            except ImportError:
                raise TypeError("bf16 has no dtype of NumPy's; install ml_dtypes, or cast to f32") from None
            return numpy.dtype(ml_dtypes.bfloat16)
        return numpy.dtype({1: "f4", 2: "f8", 3: "f2", 5: "i1", 6: "u1", 7: "i4", 8: "i8", 9: "?"}[int(self)])

    def __repr__(self) -> str:
        return f"yoke.{self.name}"

    __str__ = __repr__
