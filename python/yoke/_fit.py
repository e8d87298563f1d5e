# SPDX-License-Identifier: Apache-2.0
"""The training loop, over anything that gives batches."""
from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator

from . import _core
from ._arrays import tensor
from ._grad import value_and_grad
from ._with import scope
from .nn import Module
from .optim import AdamW, Optimizer

Loss = Callable[..., _core.Tensor]
Data = Iterable[Any] | Callable[[], Iterable[Any]]


def _batches(data: Data) -> Iterator[Any]:
    return iter(data() if callable(data) else data)


def _tensors(batch: Any) -> list[_core.Tensor]:
    parts = batch if isinstance(batch, (list, tuple)) else [batch]
    return [x if isinstance(x, _core.Tensor) else _core.from_dlpack(x) if hasattr(x, "__dlpack__") else tensor(x)
            for x in parts]


def _loss_of(model: Module, loss: Loss) -> Callable[..., _core.Tensor]:
    """The loss of a batch: what comes last in it is the target, if there are several."""

    def of(net: Module, parts: list[_core.Tensor]) -> _core.Tensor:
        return loss(net(*parts[:-1]), parts[-1]) if len(parts) > 1 else loss(net(parts[0]))

    return of


def fit(model: Module, data: Data, loss: Loss, optimizer: Optimizer | None = None, *, epochs: int = 1, valid: Data | None = None,
        accumulate: int = 1, seed: int = 0, log: Callable[[int, float], None] | None = None) -> list[float]:
    """Trains: data is anything that gives batches, once an epoch (an iterable, or a function that gives one); a batch is an
    array, or a tuple whose last one is the target; arrays are NumPy's, PyTorch's, JAX's or tensors.  loss(output, target), or
    loss(output).  By default with AdamW.  accumulate: batches of a step, whose losses are averaged.  log(step, loss).

    Gives the loss of each step, and with `valid` the mean loss over it at the end, as the last one.  A step is one scope,
    "step", and its random numbers follow from the seed and its number."""
    o = optimizer or AdamW(model)
    both = value_and_grad(_loss_of(model, loss))
    losses: list[float] = []
    for _ in range(epochs):
        source = _batches(data)
        while True:
            got: list[Any] = []
            for batch in source:
                got.append(batch)
                if len(got) == accumulate:
                    break
            if not got:
                break
            losses.append(_step(model, o, both, got, seed, o.steps + 1))
            if log:
                log(len(losses), losses[-1])
    if valid is not None:
        losses.append(evaluate(model, valid, loss))
    return losses


def _step(model: Module, o: Optimizer, both: Callable[..., Any], got: list[Any], seed: int, number: int) -> float:
    _core.random_set(seed, number)
    with scope("step"):
        total: Any = None
        grads: dict[str, _core.Tensor] = {}
        for batch in got:
            value, g = both(model, _tensors(batch))
            total = value if total is None else total + value
            grads = {n: grads[n] + g[n] for n in g} if grads else g
        if len(got) > 1:
            total = total / len(got)
            grads = {n: x / len(got) for n, x in grads.items()}
        o.step(grads)
        return float(total)


def evaluate(model: Module, data: Data, loss: Loss) -> float:
    """The mean of the batches' losses, as the model is used."""
    was = model.training
    model.eval()
    total, n = 0.0, 0
    of = _loss_of(model, loss)
    try:
        for batch in _batches(data):
            with scope("valid"):
                total += float(of(model, _tensors(batch)))
                n += 1
    finally:
        model.train(was)
    return total / n if n else float("nan")
