# SPDX-License-Identifier: Apache-2.0
"""The training loop, which is yoke_fit's, over anything that gives batches."""
from __future__ import annotations

import os
from typing import Any, Callable, Iterable

from . import _core
from ._arrays import tensor
from ._record import Record
from .nn import Module
from .optim import AdamW, Optimizer

Loss = Callable[..., _core.Tensor]
Data = Iterable[Any] | Callable[[], Iterable[Any]] | _core.Loader


def _tensors(batch: Any) -> list[_core.Tensor]:
    parts = batch if isinstance(batch, (list, tuple)) else [batch]
    return [x if isinstance(x, _core.Tensor) else _core.from_dlpack(x) if hasattr(x, "__dlpack__") else tensor(x)
            for x in parts]


class _Batches:
    """Batches by their numbers, from one that may be behind others: those of a run before."""

    def __init__(self, data: Data, epochs: int) -> None:
        self._data, self._epochs = data, epochs
        self._begin()

    def _begin(self) -> None:
        self._at = 0
        self._all = (batch for _ in range(self._epochs) for batch in self._once())

    def _once(self) -> Iterable[Any]:
        if isinstance(self._data, _core.Loader):
            _core.loader_seek(self._data, epoch=0, index=0)
            return self._data
        return self._data() if callable(self._data) else self._data

    def __call__(self, number: int) -> list[_core.Tensor] | None:
        if number < self._at:
            self._begin()
        for batch in self._all:
            self._at += 1
            if self._at > number:
                return _tensors(batch)
        return None


def fit(model: Module, data: Data, loss: Loss, optimizer: Optimizer | None = None, *, epochs: int = 1, steps: int = 0,
        valid: Data | None = None, accumulate: int = 1, seed: int = 0, log: Callable[[Record], object] | None = None,
        valid_every: int = 0, out: str | os.PathLike[str] | None = None, resume: bool = False, save_every: int = 0,
        precision: str | None = None, keep_f32: str | None = None, allow_emulated: bool = False) -> list[float]:
    """Trains by the loop of `yoke train`, which is yoke_fit of C.

    data is anything that gives batches, once an epoch: an iterable, or a function that gives one; or a loader of
    yoke.loader_new, which has epochs of its own.  A batch is an array, or a tuple whose last one is the target; arrays are NumPy's,
    PyTorch's, JAX's or tensors.  loss(output, target), or loss(output).  By default with AdamW.  steps: in all; 0: to the end of
    the data.  accumulate: batches of a step, whose losses are averaged; those that are too few for a step in the end are left out.
    log(step) is told of each step: step, loss, grad_norm, lr, seconds .. as struct yoke_fit_step has them; what it gives, if true,
    ends the run.  valid: batches for a validation every valid_every steps, and behind the last one.

    out: the folder of a checkpoint, written every save_every steps and in the end, Ctrl-C included; with resume=True the run goes
    on from there, with the bits of one that was not broken off.  precision: "bf16-mixed" or "fp16-mixed", with keep_f32 as
    yoke.autocast has it.

    Gives the loss of each step, and with `valid` the mean loss of the last validation behind them.  A step is a scope, "step", and
    its random numbers follow from the seed and its number."""
    o = optimizer or AdamW(model)
    losses: list[float] = []

    def loss_of(parts: list[_core.Tensor]) -> _core.Tensor:
        return loss(model(*parts[:-1]), parts[-1]) if len(parts) > 1 else loss(model(parts[0]))

    def told(step: Record) -> bool:
        if step.valid != step.valid:  # not of a validation
            losses.append(step.loss)
        return bool(log(step)) if log else False

    end = _core._fit(model._module(), o._o, data if isinstance(data, _core.Loader) else _Batches(data, epochs), loss_of,
                     None if valid is None else _Batches(valid, 1), told, steps=steps, accumulate=accumulate, log_every=1,
                     valid_every=valid_every, save_every=save_every, out=out, resume=resume, precision=precision,
                     keep_f32=keep_f32, allow_emulated=allow_emulated, seed=seed)
    return losses if valid is None else [*losses, end.valid]
