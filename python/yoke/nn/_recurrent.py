# SPDX-License-Identifier: Apache-2.0
"""Recurrent networks and their cells as modules with PyTorch's arguments, names and layouts of parameters."""
from __future__ import annotations

from typing import Any

from .. import _core
from .._arrays import tensor
from ._sequences import PackedSequence, _lengths, _packed_at, _padded_at
from ._module import Module, Parameter

Tensor = _core.Tensor

_NONLINEARITIES = ("tanh", "relu")


def _is_relu(call: str, nonlinearity: str) -> int:
    if nonlinearity not in _NONLINEARITIES:
        raise ValueError(f"{call}: nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")
    return int(nonlinearity == "relu")


class _Recurrent(Module):
    """Recurrent layers.  forward(x, state, lengths=): x is [T,B,I], or [B,T,I] with batch_first, or [T,I], or a PackedSequence;
    lengths [B] are the steps that each row has.  Gives y, as x is, and the last state [layers,B,H], twice as many in both
    directions.  ValueError: shapes do not fit."""

    _cell, _gates = 0, 1
    proj_size = 0

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False) -> None:
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, dropout, bidirectional
        size, out, bound = self._gates * hidden_size, self.proj_size or hidden_size, hidden_size ** -0.5
        for layer, end in self._layers():
            width = input_size if layer == 0 else out * (2 if bidirectional else 1)
            shapes = {"weight_ih": (size, width), "weight_hh": (size, out), "bias_ih": (size,), "bias_hh": (size,),
                      "weight_hr": (out, hidden_size)}
            for name in self._names():
                setattr(self, f"{name}_l{layer}{end}", Parameter(shape=shapes[name], uniform=bound))

    def _names(self) -> list[str]:
        """The parameters of a layer in one direction."""
        return ["weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if self.bias else []), *(["weight_hr"] if self.proj_size else [])]

    def _layers(self) -> list[tuple[int, str]]:
        return [(k, end) for k in range(self.num_layers) for end in ("", "_reverse")[:1 + self.bidirectional]]

    def _states(self, state: Any) -> tuple[Any, Any]:
        return state, None

    def _last(self, h: Tensor, c: Tensor) -> Any:
        return h

    def forward(self, x: Any, state: Any = None, lengths: Any = None) -> tuple[Any, Any]:
        """y and the last state."""
        call = type(self).__name__
        first, second = self._states(state)
        if isinstance(x, PackedSequence):
            if lengths is not None:
                raise ValueError(f"{call}: a PackedSequence has its lengths; give no others")
            return self._of_packed(x, first, second)
        if x.ndim not in (2, 3):
            raise ValueError(f"{call}: takes [T,I] or [{'B,T' if self.batch_first else 'T,B'},I], got {list(x.shape)}")
        flat = x.ndim == 2
        if flat:
            x = x.reshape(x.shape[0], 1, x.shape[1])
            first, second = (None if s is None else s.reshape(s.shape[0], 1, s.shape[1]) for s in (first, second))
        elif self.batch_first:
            x = _core.permute(x, (1, 0, 2))
        y, h, c = self._steps(x, first, second, None if lengths is None else tensor(lengths, "i64"))
        if flat:
            y, h, c = y.reshape(y.shape[0], y.shape[2]), h.reshape(h.shape[0], h.shape[2]), c.reshape(c.shape[0], c.shape[2])
        elif self.batch_first:
            y = _core.permute(y, (1, 0, 2))
        return y, self._last(h, c)

    def _of_packed(self, x: PackedSequence, first: Any, second: Any) -> tuple[PackedSequence, Any]:
        """The padded steps of the sorted sequences with their lengths, and the results packed again."""
        import numpy

        sizes, order, back = x.batch_sizes, x.sorted_indices, x.unsorted_indices
        n, rows = _lengths(sizes), int(sizes[0])
        for s in (first, second):
            if s is not None and (s.ndim != 3 or s.shape[1] != rows):
                raise ValueError(f"{type(self).__name__}: a state for {rows} packed sequences is [layers,{rows},H], got {list(s.shape)}")
        if order is not None:
            first, second = (None if s is None else _core.gather(s, tensor(order), 1) for s in (first, second))
        padded = _core.gather(x.data, tensor(_padded_at(sizes, n, None)), 0)
        if padded.ndim != 3:
            raise ValueError(f"{type(self).__name__}: takes packed steps [N,I], got {list(x.data.shape)}")
        y, h, c = self._steps(padded, first, second, None if n[-1] == n[0] else tensor(n))
        if back is not None:
            h, c = (_core.gather(s, tensor(back), 1) for s in (h, c))
        at = _packed_at(n, numpy.arange(rows), rows, 1)
        return x._replace(data=_core.gather(_core.reshape(y, (-1, y.shape[2])), at, 0)), self._last(h, c)

    def _steps(self, x: Tensor, first: Any, second: Any, lengths: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """x [T,B,I] -> y [T,B,..], the last h and c [layers and directions,B,..]."""
        h: list[Tensor] = []
        c: list[Tensor] = []
        sides: list[Tensor] = []
        for layer, end in self._layers():
            if not end and layer:
                x = sides[0] if len(sides) == 1 else _core.concat(sides, 2)
                if self.dropout and self.training:
                    x = _core.dropout(x, self.dropout)
            if not end:
                sides = []
            w = {name[0] + name[-3:]: getattr(self, f"{name}_l{layer}{end}") for name in self._names()}
            one = [None if s is None else s[len(h)] for s in (first, second)]
            y, last, cell = _core.recurrent(x, cell=self._cell, reverse=bool(end), h0=one[0], c0=one[1], lengths=lengths, **w)
            sides.append(y)
            h.append(last.reshape(1, *last.shape))
            c.append(cell.reshape(1, *cell.shape))
        return sides[0] if len(sides) == 1 else _core.concat(sides, 2), _core.concat(h, 0), _core.concat(c, 0)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + (f", proj_size={self.proj_size}" if self.proj_size else "") + \
            (f", num_layers={self.num_layers}" if self.num_layers > 1 else "") + \
            (", bidirectional=True" if self.bidirectional else "")


class RNN(_Recurrent):
    __doc__ = _Recurrent.__doc__

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False) -> None:
        self.nonlinearity, self._cell = nonlinearity, _is_relu("RNN", nonlinearity)
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional)


class LSTM(_Recurrent):
    __doc__ = (_Recurrent.__doc__ or "") + """  The state is a pair (h, c).  With proj_size, P, below hidden_size the states h are
    projected by weight_hr [P,H]: y and h have P elements, c has H."""
    _cell, _gates = 2, 4

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0) -> None:
        if not 0 <= proj_size < hidden_size:
            raise ValueError(f"LSTM: proj_size is below hidden_size, {hidden_size}, or 0 for no projection; got {proj_size}")
        self.proj_size = proj_size
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional)

    def _states(self, state: Any) -> tuple[Any, Any]:
        return (None, None) if state is None else (state[0], state[1])

    def _last(self, h: Tensor, c: Tensor) -> Any:
        return h, c


class GRU(_Recurrent):
    __doc__ = _Recurrent.__doc__
    _cell, _gates = 3, 3


class _Cell(Module):
    """One step of a recurrent layer.  forward(x, state): x is [B,I] or [I], the state [B,H] or [H], by default zeros; gives the
    next state."""

    _cell, _gates = 0, 1

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        size, bound = self._gates * hidden_size, hidden_size ** -0.5
        self.weight_ih = Parameter(shape=(size, input_size), uniform=bound)
        self.weight_hh = Parameter(shape=(size, hidden_size), uniform=bound)
        if bias:
            self.bias_ih = Parameter(shape=(size,), uniform=bound)
            self.bias_hh = Parameter(shape=(size,), uniform=bound)

    def _step(self, x: Any, h: Any, c: Any) -> tuple[Tensor, Tensor]:
        if x.ndim not in (1, 2):
            raise ValueError(f"{type(self).__name__}: takes [B,I] or [I], got {list(x.shape)}")
        flat = x.ndim == 1
        h0, c0 = (s if s is None or not flat else s.reshape(1, -1) for s in (h, c))
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")[:4 if self.bias else 2]
        w: dict[str, Any] = {name[0] + name[-3:]: getattr(self, name) for name in names}
        _, h, c = _core.recurrent(x.reshape(1, *((1,) if flat else ()), *x.shape), cell=self._cell, h0=h0, c0=c0, lengths=None, **w)
        return (h.reshape(-1), c.reshape(-1)) if flat else (h, c)

    def forward(self, x: Any, state: Any = None) -> Any:
        """The next state."""
        return self._step(x, state, None)[0]

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(_Cell):
    __doc__ = _Cell.__doc__

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh") -> None:
        self.nonlinearity, self._cell = nonlinearity, _is_relu("RNNCell", nonlinearity)
        super().__init__(input_size, hidden_size, bias)


class LSTMCell(_Cell):
    __doc__ = (_Cell.__doc__ or "") + "  It is a pair (h, c)."
    _cell, _gates = 2, 4

    def forward(self, x: Any, state: Any = None) -> Any:
        """The next state."""
        return self._step(x, *((None, None) if state is None else state))


class GRUCell(_Cell):
    __doc__ = _Cell.__doc__
    _cell, _gates = 3, 3
