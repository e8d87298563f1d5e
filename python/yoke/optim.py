# SPDX-License-Identifier: Apache-2.0
"""Optimizers, those of yoke-optim.h, over a module's parameters or over variables.

	o = yoke.optim.AdamW(net, lr=1e-3, clip=1)
	loss, g = yoke.value_and_grad(lambda net: loss_of(net(x), y))(net)
	o.step(g)
"""
from __future__ import annotations

import os
from typing import Any, Iterable, Mapping, Sequence

from . import _core
from ._lbfgs import LBFGS
from ._model import LanguageModel
from .nn import Module

Tensor = _core.Tensor

__all__ = ["ASGD", "Accelerated", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "HeavyBall", "LAMB", "LBFGS", "Muon", "NAdam", "Optimizer",
           "RAdam", "RMSprop", "Rprop", "SGD"]


def __dir__() -> list[str]:
    return __all__


# PyTorch's names of options that have other names here: of one number, of two
_NAMES = {"d": "clip_threshold"}
_PAIRS = {"betas": ("beta1", "beta2"), "eps": ("eps1", "eps2"), "etas": ("etaminus", "etaplus"),
          "step_sizes": ("step_size_min", "step_size_max")}


def _words(settings: Mapping[str, Any]) -> str:
    words: dict[str, Any] = {}
    for k, v in settings.items():
        if isinstance(v, (tuple, list)) and k in _PAIRS and len(v) == 2:
            words.update(zip(_PAIRS[k], v))
        else:
            words[_NAMES.get(k, k)] = v
    return " ".join(f"{k}={int(v) if isinstance(v, bool) else repr(v) if isinstance(v, float) else v}"
                    for k, v in words.items() if v is not None)


def parameters_of(target: Module | LanguageModel | Mapping[str, Tensor] | Iterable[Tensor]) -> dict[str, Tensor]:
    """The variables to update, by names."""
    if isinstance(target, LanguageModel):
        return dict(target.trainable_parameters())
    if isinstance(target, Module):
        return dict(target.parameters())
    return dict(target) if isinstance(target, Mapping) else {str(i): p for i, p in enumerate(target)}


class Optimizer:
    """One of a kind ("adamw"), with settings of yoke-optim.h as keywords: lr, weight_decay, clip, schedule, warmup ..
    PyTorch's pairs are taken, too: betas=(0.9, 0.95) for beta1 and beta2.  None: the default."""

    kind = ""

    def __init_subclass__(cls, kind: str = "", **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.kind = kind or cls.kind

    def __init__(self, target: Module | LanguageModel | Mapping[str, Tensor] | Iterable[Tensor], kind: str | None = None,
                 **settings: Any) -> None:
        self.parameters = params = parameters_of(target)
        self._settings = settings
        self._o = _core.optim_new(kind or self.kind, _words(settings))
        _core.optim_add(self._o, list(params.values()), list(params))

    def __repr__(self) -> str:
        said = ", ".join([f"{len(self.parameters)} parameters", *(f"{k}={v!r}" for k, v in self._settings.items())])
        return f"{type(self).__name__}({said})"

    def set(self, pattern: str | None = None, **settings: Any) -> None:
        """New settings of the parameters whose names match, or of all."""
        _core.optim_set(self._o, pattern, _words(settings))

    def step(self, grads: Mapping[str, Tensor] | Sequence[Tensor], **step: Any) -> Any:
        """Records a step: gradients by names, or in the parameters' order.  Keywords are those of yoke.optim_step."""
        if isinstance(grads, Mapping):
            missing = [n for n in self.parameters if n not in grads]
            if missing:
                raise ValueError("step: no gradient of " + ", ".join(missing))
            grads = [grads[n] for n in self.parameters]
        return _core.optim_step(self._o, grads, **step)

    def skipped(self) -> None:
        """The last step was skipped."""
        _core.optim_skipped(self._o)

    def check(self) -> None:
        """With check=1: waits; IndexError names the first parameter whose gradient was not finite."""
        _core.optim_check(self._o)

    @property
    def steps(self) -> int:
        return _core.optim_steps(self._o)

    def lr(self, step: int | None = None, parameter: str | None = None) -> float:
        """The schedule's learning rate of a step, by default the next one's."""
        name = parameter or next(iter(self.parameters))
        return _core.optim_lr(self._o, name, self.steps + 1 if step is None else step)

    def state(self, parameter: str | None, name: str) -> Tensor:
        return _core.optim_state(self._o, parameter, name)

    def move(self, to: _core.Context, target: Module | Mapping[str, Tensor]) -> Optimizer:
        """The states go to another context, where a module, or parameters by their names, was moved to."""
        params = target.parameters() if isinstance(target, Module) else target
        missing = [n for n in self.parameters if n not in params]
        if missing:
            raise ValueError("move: no parameter " + ", ".join(missing))
        moved = {n: params[n] for n in self.parameters}
        _core.optim_move(self._o, to, list(moved.values()))
        self.parameters = moved
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        _core.optim_save(self._o, os.fspath(path))

    def load(self, path: str | os.PathLike[str]) -> None:
        _core.optim_load(self._o, os.fspath(path))


# Their settings are those of yoke-optim.h; an unknown one is an error that lists them.


class SGD(Optimizer, kind="sgd"):
    """Stochastic gradient descent, with momentum as PyTorch's."""


class HeavyBall(Optimizer, kind="heavy_ball"):
    """The heavy ball of Polyak 1964."""


class Accelerated(Optimizer, kind="accelerated"):
    """Accelerated gradient descent with restarts, of O'Donoghue and Candes 2015."""


class Adam(Optimizer, kind="adam"):
    """Adam of Kingma and Ba 2015."""


class AdamW(Optimizer, kind="adamw"):
    """Adam with decoupled weight decay, of Loshchilov and Hutter 2019."""


class LAMB(Optimizer, kind="lamb"):
    """LAMB of You et al. 2020."""


class RMSprop(Optimizer, kind="rmsprop"):
    """RMSprop of Tieleman and Hinton 2012."""


class Adagrad(Optimizer, kind="adagrad"):
    """Adagrad of Duchi et al. 2011."""


class Adadelta(Optimizer, kind="adadelta"):
    """Adadelta of Zeiler 2012."""


class NAdam(Optimizer, kind="nadam"):
    """Adam with Nesterov momentum, of Dozat 2016."""


class RAdam(Optimizer, kind="radam"):
    """Rectified Adam of Liu et al. 2020."""


class Adamax(Optimizer, kind="adamax"):
    """Adam with the infinity norm, of Kingma and Ba 2015."""


class Rprop(Optimizer, kind="rprop"):
    """Resilient backpropagation of Riedmiller and Braun 1993."""


class ASGD(Optimizer, kind="asgd"):
    """Averaged SGD of Polyak and Juditsky 1992; the state "average" has the averaged parameters."""


class Muon(Optimizer, kind="muon"):
    """Muon of Jordan et al. 2024 for matrices, AdamW for parameters of other shapes and where orthogonalize=0 is set:

	o = yoke.optim.Muon(net, lr=0.02, adamw_lr=3e-4)
	o.set("*embed*", orthogonalize=False)
"""


class Adafactor(Optimizer, kind="adafactor"):
    """Adafactor of Shazeer and Stern 2018, whose states are a number per row and column of a matrix."""
