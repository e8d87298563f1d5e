# SPDX-License-Identifier: Apache-2.0
"""yoke: train and run neural networks on whatever compute a machine has.

	import yoke
	x = yoke.tensor([[1., 2.], [3., 4.]])
	print((x @ x.T + 1).numpy())

An operation checks shapes at once and is recorded; nothing runs until a value is read (numpy, item, print) or yoke.eval is
called.  Functions are those of yoke's headers, under their names without `yoke_`; yoke.nn, yoke.optim and yoke.fit train.
"""
from __future__ import annotations

from . import _core
from ._core import *
from ._record import Record as Record, dtype as dtype

_core._set_classes(dtype, Record)

from . import nn as nn, optim as optim
from ._arrays import arange as arange, from_ as from_, ones as ones, put as put
from ._arrays import tensor as tensor, variable_of as variable_of, zeros as zeros
from ._fit import fit as fit
from ._grad import grad as grad, value_and_grad as value_and_grad
from ._op import custom_grad as custom_grad, op as op
from ._with import device as device, profile as profile, scope as scope, setting as setting

f32, f64, f16, bf16 = dtype.f32, dtype.f64, dtype.f16, dtype.bf16
i8, u8, i32, i64, bool_ = dtype.i8, dtype.u8, dtype.i32, dtype.i64, dtype.bool
__version__ = _core.version()


def _methods() -> None:
    """Functions whose first operand is a tensor, as its methods."""
    from typing import Any, Callable

    def method(fn: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Tensor, *args: Any, **kwargs: Any) -> Any:
            return fn(self, *args, **kwargs)

        call.__doc__ = fn.__doc__
        return call

    for name in _core_methods:
        setattr(Tensor, name, method(globals()[name]))
    setattr(Tensor, "astype", method(_core.cast))
    setattr(Tensor, "tolist", lambda self: self.numpy().tolist())
    setattr(Tensor, "__array__", _as_array)
    setattr(Tensor, "__array_ufunc__", None)  # NumPy leaves operators to the tensor


def _as_array(self: Tensor, dtype: object = None, copy: object = None) -> object:
    a = self.numpy()
    if dtype is not None and a.dtype != dtype:
        return a.astype(dtype)
    return a.copy() if copy else a


_core_methods = (
    "abs sign floor round ceil exp log log1p expm1 sqrt rsqrt recip square sin cos tanh sigmoid erf isfinite relu gelu silu "
    "clamp sum mean prod reduce_max reduce_min argmax argmin any all cumsum cumprod var std norm reshape permute broadcast_to "
    "slice pad flip gather take_along sort topk contiguous softmax log_softmax logsumexp stop_grad cast bitcast keep lift "
    "put assign free matmul"
).split()
_methods()

import atexit as _atexit

_atexit.register(_core._forget)
