# SPDX-License-Identifier: Apache-2.0
"""Sequences of several lengths in one tensor, with the names and layouts of torch.nn.utils.rnn.

A packed sequence has as many rows as all sequences have steps, so its shape, and with it the plan of a training step,
changes with each batch.  A padded tensor and the argument lengths of yoke.nn.RNN, LSTM and GRU keep their shapes.
"""
from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from .. import _core, _creation, _methods, _shapes
from .._arrays import tensor

Tensor = _core.Tensor


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Any
    sorted_indices: Any = None
    unsorted_indices: Any = None


class PackedSequence(_Fields):
    """Sequences in decreasing order of length, step by step.  data [N,..]: the first steps of all sequences, the second steps of
    those that have one, and so on; batch_sizes [T]: how many sequences have each step; sorted_indices [B]: which sequence each
    of them was before it was sorted, unsorted_indices the inverse; None: they were in order.  The last three are NumPy arrays
    of i64.  yoke.nn.RNN, LSTM and GRU take and give them."""

    __slots__ = ()

    def __new__(cls, data: Tensor, batch_sizes: Any, sorted_indices: Any = None, unsorted_indices: Any = None) -> PackedSequence:
        import numpy

        sizes = _whole("PackedSequence", "batch_sizes", batch_sizes)
        if sizes.size == 0 or (sizes < 1).any() or (numpy.diff(sizes) > 0).any() or data.ndim < 1 or data.shape[0] != sizes.sum():
            raise ValueError(f"PackedSequence: data {list(data.shape)} and batch_sizes {_shown(sizes)} do not fit: sizes are "
                             "positive, do not increase, and add up to the rows of data")
        order = None if sorted_indices is None else _whole("PackedSequence", "sorted_indices", sorted_indices)
        back = numpy.argsort(order) if order is not None else None
        if unsorted_indices is not None:
            back = _whole("PackedSequence", "unsorted_indices", unsorted_indices)
            order = numpy.argsort(back) if order is None else order
        if order is not None and back is not None and (order.size != sizes[0] or back.size != sizes[0] or (
                order[back] != numpy.arange(sizes[0])).any()):
            raise ValueError(f"PackedSequence: sorted_indices {_shown(order)} and unsorted_indices {_shown(back)} are no "
                             f"permutation of {int(sizes[0])} sequences and its inverse")
        return super().__new__(cls, data, sizes, order, back)

    def to(self, *to: Any, **kwargs: Any) -> PackedSequence:
        """data in another dtype, or on another device; as Tensor.to."""
        return self._replace(data=_methods.to(self.data, *to, **kwargs))


def _whole(call: str, what: str, x: Any) -> Any:
    """Integers on the host as an array [N] of i64."""
    import numpy

    a = numpy.asarray(x.numpy() if isinstance(x, Tensor) else x)
    if a.ndim != 1 or (a.size and a.dtype.kind not in "iu"):
        raise ValueError(f"{call}: {what} has one axis of integers, got {a.dtype} of shape {list(a.shape)}")
    return a.astype("i8")


def _shown(a: Any) -> str:
    return str(a.tolist() if a.size <= 8 else f"[{', '.join(map(str, a[:4].tolist()))}, .., {int(a[-1])}] of {a.size}")


def _lengths(sizes: Any) -> Any:
    """The lengths of sequences, which do not increase, from batch_sizes; batch_sizes from such lengths."""
    import numpy

    return (sizes[None, :] > numpy.arange(sizes[0])[:, None]).sum(1)


def _packed_at(lengths: Any, order: Any, by_step: int, by_row: int) -> Tensor:
    """Where the rows of packed sequences are in padded ones, flattened: step t of row b at t by_step + b by_row."""
    import numpy

    t = numpy.arange(lengths[0])[:, None]
    return tensor((t * by_step + order[None, :] * by_row)[t < lengths[None, :]].astype("i8"))


def _padded_at(sizes: Any, lengths: Any, back: Any) -> Any:
    """For each step and sequence [T,B] its row in packed data, the first one for steps that it does not have."""
    import numpy

    start = numpy.cumsum(sizes) - sizes
    at = start[:, None] + numpy.arange(sizes[0])[None, :]
    at = numpy.where(numpy.arange(len(sizes))[:, None] < lengths[None, :], at, 0)
    return at if back is None else at[:, back]


def pack_padded_sequence(input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """input [T,B,..], or [B,T,..] with batch_first, without the steps after each row's length; lengths [B], 1 to T.  The rows
    are sorted by length; with enforce_sorted they must be already.  ValueError: lengths do not fit."""
    import numpy

    x = input if isinstance(input, Tensor) else tensor(input)
    n = _whole("pack_padded_sequence", "lengths", lengths)
    if x.ndim < 2:
        raise ValueError(f"pack_padded_sequence: takes [T,B,..] or, with batch_first, [B,T,..], got {list(x.shape)}")
    rows, steps = x.shape[:2] if batch_first else x.shape[1::-1]
    if n.size != rows or not rows or (n < 1).any() or (n > steps).any():
        raise ValueError(f"pack_padded_sequence: lengths {_shown(n)} for {rows} rows of {steps} steps, got input {list(x.shape)}: "
                         "each row has a length from 1 to all steps")
    order = numpy.argsort(-n, kind="stable")
    if enforce_sorted and (numpy.diff(n) > 0).any():
        raise ValueError(f"pack_padded_sequence: lengths {_shown(n)} increase; give enforce_sorted=False, and the rows are sorted")
    n = n[order]
    at = _packed_at(n, order, 1 if batch_first else rows, steps if batch_first else 1)
    data = _core.gather(_core.reshape(x, (rows * steps, *x.shape[2:])), at, 0)
    return PackedSequence(data, _lengths(n), None if enforce_sorted else order)


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
                        total_length: int | None = None) -> tuple[Tensor, Tensor]:
    """The inverse of pack_padded_sequence: [T,B,..], or [B,T,..] with batch_first, in the order of before, and the lengths, i64 [B].
    Steps after a length are padding_value; total_length: T, at least the longest length."""
    import numpy

    _want_packed("pad_packed_sequence", sequence)
    sizes, back = sequence.batch_sizes, sequence.unsorted_indices
    n = _lengths(sizes)
    at = _padded_at(sizes, n, back)
    n = n if back is None else n[back]
    if total_length is not None:
        if total_length < len(sizes):
            raise ValueError(f"pad_packed_sequence: total_length {total_length} is below the longest length, {len(sizes)}")
        at = numpy.concatenate([at, numpy.zeros((total_length - len(sizes), at.shape[1]), "i8")])
    there = numpy.arange(len(at))[:, None] < n[None, :]
    if batch_first:
        at, there = at.T, there.T
    x = _core.gather(sequence.data, tensor(numpy.ascontiguousarray(at)), 0)
    if not there.all():
        mask = tensor(numpy.ascontiguousarray(there).reshape(there.shape + (1,) * (x.ndim - 2)))
        x = _core.select(mask, x, _creation.full_like(x, padding_value))
    return x, tensor(n)


def _want_packed(call: str, sequence: Any) -> None:
    if not isinstance(sequence, PackedSequence):
        raise TypeError(f"{call}: takes a PackedSequence, got {type(sequence).__name__}")


def _all_of(call: str, sequences: Sequence[Any]) -> list[Tensor]:
    x = [s if isinstance(s, Tensor) else tensor(s) for s in sequences]
    if not x or any(s.ndim < 1 or s.shape[1:] != x[0].shape[1:] for s in x):
        raise ValueError(f"{call}: takes sequences that differ in their first axis alone, got {[list(s.shape) for s in x[:4]]}")
    return _shapes._promoted(x)


def pad_sequence(sequences: Sequence[Any], batch_first: bool = False, padding_value: float = 0.0,
                 padding_side: str = "right") -> Tensor:
    """Sequences [T_i,..] in one tensor [T,B,..], or [B,T,..] with batch_first, filled up with padding_value on the "right" or
    "left"."""
    if padding_side not in ("right", "left"):
        raise ValueError(f"pad_sequence: padding_side is 'right' or 'left', not {padding_side!r}")
    x = _all_of("pad_sequence", sequences)
    longest = max(s.shape[0] for s in x)
    zeros = [0] * (x[0].ndim - 1)
    sides = [([0, *zeros], [longest - s.shape[0], *zeros]) for s in x]
    return _shapes.stack([_core.pad(s, *(side if padding_side == "right" else side[::-1]), padding_value)
                             for s, side in zip(x, sides)], 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """The rows of [T,B,..], or [B,T,..] with batch_first, each up to its length."""
    x = padded_sequences if isinstance(padded_sequences, Tensor) else tensor(padded_sequences)
    n = _whole("unpad_sequence", "lengths", lengths)
    if x.ndim < 2 or n.size != x.shape[0 if batch_first else 1] or (n < 0).any() or (n > x.shape[1 if batch_first else 0]).any():
        raise ValueError(f"unpad_sequence: lengths {_shown(n)} for sequences {list(x.shape)}, which do not fit")
    return [x[i, :int(k)] if batch_first else x[:int(k), i] for i, k in enumerate(n)]


def pack_sequence(sequences: Sequence[Any], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences [T_i,..], packed.  They are sorted by length; with enforce_sorted they must be already."""
    x = _all_of("pack_sequence", sequences)
    return pack_padded_sequence(pad_sequence(x), [s.shape[0] for s in x], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences [T_i,..] of a packed one, in the order of before."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences))
