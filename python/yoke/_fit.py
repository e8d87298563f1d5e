# SPDX-License-Identifier: Apache-2.0
"""The training loop of yoke_fit over any iterable of batches."""
from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any, Callable, Iterable, Mapping

from . import _core
from ._arrays import tensor
from ._record import Record
from ._model import LanguageModel
from .nn import Module
from .optim import AdamW, Optimizer

Loss = Callable[..., _core.Tensor]
Data = Iterable[Any] | Callable[[], Iterable[Any]] | _core.Loader


def _tensors(batch: Any) -> list[_core.Tensor]:
    if isinstance(batch, (dict, str, set)) or batch is None:
        raise TypeError(f"fit: a batch is an array or a tuple of arrays, got {type(batch).__name__}")
    parts = batch if isinstance(batch, (list, tuple)) else [batch]
    return [x if isinstance(x, _core.Tensor) else _core.from_dlpack(x) if hasattr(x, "__dlpack__") else tensor(x)
            for x in parts]


class _Batches:
    """Batches by their numbers, from one that may be behind others: those of a run before."""

    def __init__(self, data: Data, epochs: int, name: str = "data") -> None:
        self._data, self._epochs, self._name = data, epochs, name
        if not callable(data) and not isinstance(data, _core.Loader):
            if not hasattr(data, "__iter__") and not hasattr(data, "__getitem__"):
                raise TypeError(f"fit: {name} gives batches: an iterable, a function that gives one, or a loader; "
                                f"got {type(data).__name__}")
            if epochs > 1 and iter(data) is data:
                raise ValueError(f"fit: {name} is an iterator, whose batches come once, and there are {epochs} epochs; give a list, "
                                 "or a function that gives an iterator for each epoch")
        self._begin()

    def _begin(self) -> None:
        self._at = 0
        self._all = (batch for epoch in range(self._epochs) for batch in self._once(epoch))

    def _once(self, epoch: int) -> Iterable[Any]:
        if isinstance(self._data, _core.Loader):
            _core.loader_seek(self._data, epoch=0, index=0)
            yield from self._data
            return
        n = 0
        for batch in self._data() if callable(self._data) else self._data:
            n += 1
            yield batch
        if n == 0:
            raise ValueError(f"fit: {self._name} gives no batches" + (f" in epoch {epoch + 1}" if epoch else ""))

    def __call__(self, number: int) -> list[_core.Tensor] | None:
        if number < self._at:
            if not callable(self._data) and not isinstance(self._data, _core.Loader) and iter(self._data) is self._data:
                raise ValueError(f"fit: {self._name} is an iterator, whose batches come once, and they are wanted again; give a list, "
                                 "or a function that gives an iterator")
            self._begin()
        for batch in self._all:
            self._at += 1
            if self._at > number:
                return _tensors(batch)
        return None

    def __len__(self) -> int:
        """Batches in all, as far as that is known; else 0."""
        once: Any = () if callable(self._data) else self._data
        return len(once) * self._epochs if hasattr(once, "__len__") else 0


class _Progress:
    """A line with step, loss and rate while it trains: tqdm's, or a plain one."""

    def __init__(self, show: bool | None, steps: int, done: int) -> None:
        self._bar: Any = None
        self._show = bool(getattr(sys.stderr, "isatty", bool)()) if show is None else show
        self._steps, self._done, self._began = steps, done, time.monotonic()
        self._text = ""
        if self._show:
            try:
                from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
            except ImportError:
                return
            self._bar = tqdm(total=steps or None, desc="fit", unit="step", leave=True)

    def step(self, step: Record) -> None:
        if not self._show:
            return
        if self._bar is not None:
            self._bar.set_postfix_str(f"loss {step.loss:.4g}", refresh=False)
            self._bar.update(1)
            return
        self._done += 1
        rate = self._done / max(1e-9, time.monotonic() - self._began)
        self._text = f"fit: step {step.step}" + (f" of {self._steps}" if self._steps else "") + \
            f", loss {step.loss:.4g}, {rate:.3g} steps/s"
        print("\r" + self._text, end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._text:
            print(file=sys.stderr)


class _Signals:
    """Lets signals end a run after its step.

    A second signal is handled as it would be without the run; signals within half a second count as one."""

    def __init__(self, how: str | None, saves: bool) -> None:
        self.number, self._counted = 0, 0.0
        self._before: dict[int, Any] = {}
        if how not in (None, "save", "raise"):
            raise ValueError(f"fit: signals={how!r}: must be None, 'save' or 'raise'")
        self._raises = how != "save"
        if threading.current_thread() is not threading.main_thread():
            if how is not None:
                raise ValueError(f"fit: signals={how!r}: only the main thread receives signals; call fit in it")
            return
        if how is None:
            if saves and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                self._take(signal.SIGINT)
            return
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
                self._take(number)

    def _take(self, number: int) -> None:
        if signal.getsignal(number) is not None:  # else a handler in C, which could not be restored
            self._before[number] = signal.signal(number, self._received)

    def _received(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not self.number:
            self.number, self._counted = number, now
            return
        if now - self._counted < 0.5:
            return
        before = self._before[number]
        self.end()
        if callable(before):
            before(number, frame)
        elif before != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def end(self) -> None:
        for number, before in self._before.items():
            if signal.getsignal(number) == self._received:
                signal.signal(number, before)
        self._before = {}

    def finish(self) -> None:
        if self.number and self._raises:
            raise KeyboardInterrupt if self.number == signal.SIGINT else SystemExit(128 + self.number)


def _source(data: Any) -> str:
    """The name of the data in run.json."""
    if isinstance(data, (str, os.PathLike)):
        return os.fspath(data)
    if callable(data):
        return getattr(data, "__qualname__", type(data).__name__)
    return type(data).__name__ + (f" of {len(data)}" if hasattr(data, "__len__") else "")


def _loader(data: _core.Dataset, batch: int, seed: int, epochs: int = 0) -> _core.Loader:
    order = "last=keep shuffle=0" if epochs else "shuffle=1"
    return _core.loader_new(data, f"batch={batch} seed={seed} epochs={epochs} {order}")


def _optimizer(model: LanguageModel, lr: float | None, steps: int) -> Optimizer:
    """The one of `yoke train`: matrices alone decay."""
    rate: dict[str, Any] = {} if lr is None else {"lr": lr}
    o = AdamW(model, beta2=0.99, weight_decay=0.1, clip=1.0, schedule="cosine", steps=steps, warmup=100, **rate)
    for name, p in o.parameters.items():
        if p.ndim < 2:
            o.set(name, weight_decay=0.0)
    return o


def fit(model: Module | LanguageModel, data: Any, loss: Loss | None = None, optimizer: Optimizer | None = None, *, epochs: int = 1, steps: int = 0,
        valid: Data | None = None, accumulate: int = 1, seed: int = 0, log: Callable[[Record], object] | None = None,
        valid_every: int = 0, out: str | os.PathLike[str] | None = None, resume: bool = False, save_every: int = 0,
        precision: str | None = None, keep_f32: str | None = None, allow_emulated: bool = False,
        progress: bool | None = None, ranks: int = 0, zero: int = 0,
        accumulate_order: str | None = None, lora: int = 0, lora_alpha: float = 16.0, lora_targets: str = "q,v",
        lora_dropout: float = 0.0,
        context: int = 0, batch: int = 16, pack: bool = True, lr: float | None = None,
        signals: str | None = None, config: Mapping[str, Any] | None = None, telemetry: float = 1.0,
        tensorboard: bool = False) -> list[float]:
    """Trains with the loop of `yoke train`, which is yoke_fit in C.

    data: the batches of an epoch, an iterable or a function that returns one; or a loader of yoke.loader_new, which counts epochs
    itself.  A batch is an array, or a tuple whose last element is the target; arrays are NumPy's, PyTorch's, JAX's or tensors.
    loss(output, target), or loss(output).  The default optimizer is AdamW.  steps: the total; 0: to the end of the data.
    accumulate: batches per step, whose losses are averaged; batches at the end that are too few for a step are not used.
    accumulate_order: "tree", or "fast", which keeps one copy of the gradients instead of log2(accumulate) and gives other bits.
    log(step) is called after each step with step, loss, grad_norm, lr, seconds .. as in struct yoke_fit_step; a true result ends
    the run.  valid: batches for a validation every valid_every steps and after the last step.

    out: the folder of a checkpoint, written every save_every steps and at the end, also after Ctrl-C; with resume=True the run
    continues from it, with the bits of an uninterrupted run.  The folder also has the records of the run, which `yoke report`,
    `yoke doctor` and `yoke dashboard` read: settings, the numbers of each step, events, and how the run ended.  config adds the
    program's own settings, with values that JSON can represent.  telemetry: seconds between samples of host and device; 0: none.
    tensorboard=True also writes TensorBoard's events.

    signals: None: Ctrl-C ends a run with `out` after the step, saves it and raises KeyboardInterrupt.  "save": SIGINT, SIGTERM and
    SIGHUP (unless it is ignored, as under nohup) end the run after the step; it is saved, and fit returns the losses so far.
    "raise": as "save", then KeyboardInterrupt for SIGINT, else SystemExit with 128 + the signal.  A second signal is handled as it
    would be without fit.  The handlers are restored at the end.  "save" and "raise" need the main thread.

    precision: "bf16-mixed" or "fp16-mixed", with keep_f32 as in yoke.autocast.

    progress: a bar on standard error, drawn by tqdm if it is installed; by default on a terminal, if there is no log.

    ranks: the number of processes started by mpirun, srun, torchrun or yoke.group_spawn that train one model together; 0: all of
    them.  fit starts none.  Each trains on the device of its model, which is the best one unless YOKE_DEVICE names another for
    that process.  All processes give the same `data` and `valid`, and each trains on its own share of the batches; a step has
    `accumulate` batches of each rank.  Epochs of a text are counted for `ranks`, which must be given then.  zero: 1: the ranks
    shard the optimizer's states; 2: also the gradients; 3 exists only in `yoke train`.  Rank 0 writes `out`.

    With a model of yoke.load: lora: the rank of low-rank adapters to add first, as model.adapt does; without it, the model's
    adapters are trained, or all weights if it was loaded with dtype="f32".  data and valid: the path of a text, of a .jsonl file
    of conversations, or of a folder or token file; an array or list of ids; a list of conversations, each a list of
    messages {"role": .., "content": ..}; or a list of texts.  It is divided into windows of `context` tokens (0: 128, or the
    model's maximum), `batch` of which are a batch, in a random order that the seed determines.  Of conversations only the
    assistant's tokens are learned; several are packed into a window, without attention between them, unless pack=False.  Custom
    batches with a custom loss are possible, too.  The default optimizer is that of `yoke train`, with its learning rate or lr;
    losses have the bits of `yoke train init= lora= valid=0`.

    Returns the loss of each step, followed with `valid` by the mean loss of the last validation.  A step is a scope, "step"; the
    seed and the number of the step determine its random numbers."""
    losses: list[float] = []
    source = data
    if lr is not None and optimizer is not None:
        raise TypeError("fit: lr is the optimizer's own setting; give one of them")
    if batch < 1 or accumulate < 1 or epochs < 0 or steps < 0:
        raise ValueError(f"fit: batch={batch} accumulate={accumulate} epochs={epochs} steps={steps}: the first two are at least 1, the others at least 0")
    if isinstance(model, LanguageModel):
        context = context or min(128, model.config.context)
        windows = model._windows(data, context, pack)
        if windows is not None and loss is not None:
            raise TypeError("fit: the loss of a text is the model's own; give batches with a loss")
        held_out = None if valid is None or windows is None else model._windows(valid, context, pack)
        if lora:
            model.adapt(lora, lora_alpha, lora_targets, dropout=lora_dropout, seed=seed)
        if windows is not None:
            if not (epochs or steps):
                raise ValueError("fit: epochs=0 steps=0: one of them says when training on a text ends")
            steps = steps or -(-epochs * _core.dataset_count(windows) // (batch * accumulate * max(1, ranks)))
            optimizer = optimizer or _optimizer(model, lr, steps)
            data = _loader(windows, batch, seed)
            lr = None
        if held_out is not None:
            valid = _loader(held_out, batch, seed, 1)
    elif lora or isinstance(data, (str, os.PathLike)):
        raise TypeError("fit: adapters and texts are for a model of yoke.load")
    elif loss is None:
        raise TypeError("fit: loss is missing")
    rate: dict[str, Any] = {} if lr is None else {"lr": lr}
    o = optimizer or AdamW(model, **rate)

    def loss_of(parts: list[_core.Tensor]) -> _core.Tensor:
        if loss is None:
            assert isinstance(model, LanguageModel)
            return model.train(_core.module_training(model._module())).loss(parts[0])
        return loss(model(*parts[:-1]), parts[-1]) if len(parts) > 1 else loss(model(parts[0]))

    settings: dict[str, Any] = dict(config or {})
    if not isinstance(source, _core.Loader):
        settings.setdefault("data", _source(source))
    if isinstance(model, LanguageModel):
        settings = {"context": str(context), "batch": str(batch), **({"lora": str(lora)} if lora else {}), **settings}
    if telemetry < 0:
        raise ValueError(f"fit: telemetry={telemetry}: must be at least 0")
    batches = data if isinstance(data, _core.Loader) else _Batches(data, epochs)
    known = len(batches) // accumulate if isinstance(batches, _Batches) and accumulate > 0 else 0
    bar = _Progress(False if log and progress is None else progress, min(steps, known) if steps and known else steps or known, 0)

    stops = _Signals(signals, out is not None)

    def on_step(step: Record) -> int:
        if step.valid != step.valid:  # not of a validation
            losses.append(step.loss)
            bar.step(step)
        enough = bool(log(step)) if log else False
        return stops.number or enough

    try:
        end = _core._fit(model._module(), o._o, batches, loss_of, None if valid is None else _Batches(valid, 1, "valid"), on_step,
                         steps=steps, accumulate=accumulate, log_every=1, valid_every=valid_every, save_every=save_every, out=None if out is None else os.fspath(out),
                         resume=resume, precision=precision, keep_f32=keep_f32, allow_emulated=allow_emulated, seed=seed,
                         ranks=ranks, zero=zero, accumulate_order=accumulate_order, config=json.dumps(settings),
                         steps_expected=0 if ranks > 1 else known, telemetry=telemetry or -1.0, tensorboard=tensorboard)
    finally:
        stops.end()
        bar.close()
        if isinstance(model, LanguageModel):
            model.train(False)
    stops.finish()
    if not losses and not resume and not end.signal and isinstance(batches, _Batches):
        raise ValueError(f"fit: data gives {batches._at} batches, too few for a step of accumulate={accumulate}")
    return losses if valid is None else [*losses, end.valid]
