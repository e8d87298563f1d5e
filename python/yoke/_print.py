# SPDX-License-Identifier: Apache-2.0
"""Tensors as text."""
from __future__ import annotations

from typing import Any

from . import _core


def text(x: _core.Tensor) -> str:
    """The values as NumPy prints them, with dtype and device.  It evaluates the tensor; where that fails, it shows shape and dtype only."""
    try:
        shape, kind, device = x.shape, x.dtype, x.device
    except Exception:  # of a scope, or a thread's context, that has ended
        return "<yoke.Tensor that is gone>"
    about = f"dtype={kind.name}, device={device}"
    try:
        a = (_core.cast(x, "f32") if kind.name == "bf16" else x).numpy()
    except Exception as e:
        return f"<yoke.Tensor of shape {shape}, {about}, without a value: {e}>"
    import numpy

    if a.size == 0:
        return f"tensor([], shape={shape}, {about})"
    return f"tensor({numpy.array2string(a, separator=', ', prefix='tensor(')}, {about})"


def formatted(x: _core.Tensor, spec: str) -> str:
    """f"{x:.2f}" of one element; without a format any tensor."""
    if not spec:
        return str(x)
    if x.size != 1:
        raise TypeError(f"a tensor of {x.size} elements has no format {spec!r}; format its elements")
    value: Any = x.item()
    return format(value, spec)
