# SPDX-License-Identifier: Apache-2.0
"""yoke: train and run neural networks on whatever compute a machine has.

	import yoke
	x = yoke.tensor([[1., 2.], [3., 4.]])
	print(x @ x.T + 1)

An operation checks shapes at once and is recorded; nothing runs until a value is read (numpy, item, print) or yoke.eval is
called.  Functions of NumPy have its names and arguments here, the others those of yoke's headers without `yoke_`; yoke.nn,
yoke.optim and yoke.fit train.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from . import _core
from ._core import *
from ._record import Record as Record, dtype as dtype, finfo as finfo, iinfo as iinfo

_core._set_classes(dtype, Record)

from . import _fft, _print, _tensor
from ._fft import *
from ._shapes import *
from ._reductions import *
from ._creation import *
from ._elements import *
from ._indexing import *
from ._statistics import *
from ._matrices import *
from ._resolvents import *
from ._sampling import *
from . import linalg as linalg, nn as nn, optim as optim, random as random
from .random import (bernoulli as bernoulli, multinomial as multinomial, rand as rand, rand_like as rand_like, randint as randint,
                     randint_like as randint_like, randn as randn, randn_like as randn_like, randperm as randperm, seed as manual_seed)
from ._arrays import asarray as asarray, from_ as from_, put as put, tensor as tensor, variable_of as variable_of
from ._fit import fit as fit
from ._grad import grad as grad, value_and_grad as value_and_grad
from ._engine import Engine as Engine
from ._model import LanguageModel as LanguageModel, Tokenizer as Tokenizer, load as load
from ._serve import Server as Server
from ._op import custom_grad as custom_grad, op as op
from ._with import autocast as autocast, device as device, profile as profile, scope as scope, setting as setting

f32, f64, f16, bf16 = dtype.f32, dtype.f64, dtype.f16, dtype.bf16
i8, u8, i32, i64, bool_ = dtype.i8, dtype.u8, dtype.i32, dtype.i64, dtype.bool
bool = bool_
float32, float64, float16, bfloat16 = f32, f64, f16, bf16
int8, uint8, int32, int64 = i8, u8, i32, i64
pi, e, inf, nan, newaxis = 3.141592653589793, 2.718281828459045, float("inf"), float("nan"), None
__version__ = _core.version()


def devices() -> list[str]:
    """The names of the devices that are there, best first, as yoke.device and YOKE_DEVICE take them: "cpu:0"."""
    names: list[str] = []
    while (name := _core.device_name(len(names))) is not None:
        names.append(name)
    return names


def empty_cache() -> int:
    """Returns memory that is cached for reuse to the devices of this thread, after waiting for their work: arenas of plans,
    freed tensors, buffers of copies.  Tensors and compiled kernels stay.  Gives the bytes returned, as yoke_trim does."""
    return _core.trim()


_tensor.set_up()
if not TYPE_CHECKING:
    __getattr__ = _tensor.missing_function  # for type checkers it would stand for all names
_hidden = {"annotations", "TYPE_CHECKING"}


def __dir__() -> list[str]:
    return sorted(n for n in globals() if n not in _hidden and not (n.startswith("_") and not n.startswith("__")))


import atexit as _atexit

_atexit.register(_core._forget)
