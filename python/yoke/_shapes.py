# SPDX-License-Identifier: Apache-2.0
"""Other shapes of tensors: axes, parts, repetitions, as NumPy and PyTorch have them."""
from __future__ import annotations

import builtins
from typing import Any, Sequence

from . import _core
from ._arrays import tensor
from ._common import Axis, Tensor, _axis_of, _of, _one, _shape_of

__all__ = [
    "reshape", "permute", "transpose", "swapaxes", "moveaxis", "squeeze", "unsqueeze", "expand_dims", "flatten", "ravel",
    "broadcast_to", "expand", "concat", "concatenate", "cat", "stack", "vstack", "hstack", "split", "chunk", "repeat",
    "repeat_interleave", "tile", "roll", "flip", "array_split", "column_stack", "append", "atleast_1d", "atleast_2d",
    "fliplr", "flipud", "movedim", "swapdims", "row_stack", "t", "unbind", "narrow", "unflatten", "tensor_split", "vsplit",
    "hsplit", "dsplit", "atleast_3d", "dstack", "rot90", "broadcast_shapes", "broadcast_tensors", "broadcast_arrays",
    "cartesian_prod", "combinations",
]


def reshape(x: Any, *shape: Any) -> Tensor:
    """The same elements in another shape, given as a tuple or as several integers; one may be -1, which is inferred."""
    return _core.reshape(_of(x), _shape_of("reshape", shape))


def permute(x: Any, *axes: Any) -> Tensor:
    """Axis k of the result is axis axes[k] of x; axes are a tuple or several integers."""
    return _core.permute(_of(x), _shape_of("permute", axes))


def transpose(x: Any, *axes: Any) -> Tensor:
    """The axes in reverse order, or in the order given, as NumPy's.  swapaxes exchanges two, as PyTorch's transpose does."""
    y: Tensor = _of(x)
    if not axes or axes == (None,):
        return y.T
    order = _shape_of("transpose", axes)
    if len(order) != y.ndim:
        raise ValueError(f"transpose: {len(order)} axes for a tensor of {y.ndim}; swapaxes exchanges two of them")
    return _core.permute(y, order)


def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    """Two axes exchanged."""
    x = _of(x)
    order = list(range(x.ndim))
    a, b = _axis_of(x, axis1, "swapaxes"), _axis_of(x, axis2, "swapaxes")
    order[a], order[b] = order[b], order[a]
    return _core.permute(x, order)


def moveaxis(x: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Axes at other positions; the others stay in their order."""
    x = _of(x)
    of = [source] if isinstance(source, int) else list(source)
    to = [destination] if isinstance(destination, int) else list(destination)
    if len(of) != len(to):
        raise ValueError(f"moveaxis: {len(of)} axes to {len(to)} positions")
    of, to = [_axis_of(x, a, "moveaxis") for a in of], [_axis_of(x, a, "moveaxis") for a in to]
    order = [a for a in range(x.ndim) if a not in of]
    for at, a in sorted(zip(to, of)):
        order.insert(at, a)
    return _core.permute(x, order)


def squeeze(x: Any, axis: Axis = None, *, dim: Axis = None) -> Tensor:
    """Without its axes of one element, or without those given."""
    x, axis = _of(x), _one("squeeze", axis, dim)
    if axis is None:
        return _core.reshape(x, [n for n in x.shape if n != 1])
    which = {_axis_of(x, a, "squeeze") for a in ([axis] if isinstance(axis, int) else axis)}
    for a in which:
        if x.shape[a] != 1:
            raise ValueError(f"squeeze: axis {a} has {x.shape[a]} elements, and not 1")
    return _core.reshape(x, [n for k, n in enumerate(x.shape) if k not in which])


def unsqueeze(x: Any, axis: int | None = None, *, dim: int | None = None) -> Tensor:
    """With a new axis of one element at that position."""
    x, axis = _of(x), _one("unsqueeze", axis, dim)
    if axis is None or not -x.ndim - 1 <= axis <= x.ndim:
        raise IndexError(f"unsqueeze: no position {axis} for an axis in a tensor of {x.ndim}")
    at = axis % (x.ndim + 1)
    return _core.reshape(x, x.shape[:at] + (1,) + x.shape[at:])


def expand_dims(x: Any, axis: int | Sequence[int]) -> Tensor:
    """With new axes of one element at these positions of the result."""
    x = _of(x)
    new = [axis] if isinstance(axis, int) else list(axis)
    rank = x.ndim + len(new)
    at = {a % rank if -rank <= a < rank else -1 for a in new}
    if -1 in at or len(at) != len(new):
        raise IndexError(f"expand_dims: no positions {axis} for axes in a tensor of {x.ndim}")
    left = iter(x.shape)
    return _core.reshape(x, [1 if k in at else next(left) for k in range(rank)])


def flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The axes from start_dim to end_dim as one, by default all."""
    x = _of(x)
    if x.ndim == 0:
        return _core.reshape(x, (1,))
    a, b = _axis_of(x, start_dim, "flatten"), _axis_of(x, end_dim, "flatten")
    if a > b:
        raise ValueError(f"flatten: axis {start_dim} comes after axis {end_dim}")
    n = 1
    for k in x.shape[a:b + 1]:
        n *= k
    return _core.reshape(x, x.shape[:a] + (n,) + x.shape[b + 1:])


def ravel(x: Any) -> Tensor:
    """All elements along one axis, in row-major order."""
    return _core.reshape(_of(x), (-1,)) if _of(x).size else _core.reshape(_of(x), (0,))


def broadcast_to(x: Any, *shape: Any) -> Tensor:
    """Repeated along axes of one element, as NumPy broadcasts; the shape is a tuple or several integers."""
    return _core.broadcast_to(_of(x), _shape_of("broadcast_to", shape))


def expand(x: Any, *shape: Any) -> Tensor:
    """broadcast_to, where -1 leaves an axis as it is, as in PyTorch."""
    x, dims = _of(x), list(_shape_of("expand", shape))
    new = len(dims) - x.ndim
    for k, n in enumerate(dims):
        if n == -1:
            if k < new:
                raise ValueError(f"expand: new axis {k} has no length to leave as it is")
            dims[k] = x.shape[k - new]
    return _core.broadcast_to(x, dims)


def concat(x: Sequence[Any], axis: int | None = 0, *, dim: int | None = None) -> Tensor:
    """Tensors joined along an axis; with axis=None all elements along one.  Their dtypes are promoted."""
    parts, at = [_of(t) for t in x], _one("concat", axis, dim, 0 if axis == 0 else None)
    if not parts:
        raise ValueError("concat: there are no tensors")
    if at is None:
        parts, at = [ravel(t) for t in parts], 0
    return _core.concat(_promoted(parts), at)


concatenate = cat = concat


def _promoted(parts: list[Tensor]) -> list[Tensor]:
    to = parts[0].dtype
    for t in parts[1:]:
        to = _core._joined(to, t.dtype)
    return [t if t.dtype is to else _core.cast(t, to) for t in parts]


def stack(x: Sequence[Any], axis: int = 0, *, dim: int | None = None) -> Tensor:
    """Tensors of one shape along a new axis."""
    parts, at = [_of(t) for t in x], _one("stack", axis, dim, 0)
    if not parts:
        raise ValueError("stack: there are no tensors")
    for k, t in enumerate(parts):
        if t.shape != parts[0].shape:
            raise ValueError(f"stack: tensor {k} is {list(t.shape)}, the first one is {list(parts[0].shape)}")
    rank = parts[0].ndim + 1
    if not -rank <= at < rank:
        raise IndexError(f"stack: no position {at} for an axis in a tensor of {rank - 1}")
    return _core.stack(_promoted(parts), at)


def vstack(x: Sequence[Any]) -> Tensor:
    """Joined along the first axis; vectors are rows."""
    return concat([_core.reshape(t, (1, -1)) if t.ndim < 2 else t for t in map(_of, x)], 0)


def hstack(x: Sequence[Any]) -> Tensor:
    """Joined along the second axis, vectors along their own."""
    parts = [_core.reshape(t, (1,)) if t.ndim == 0 else t for t in map(_of, x)]
    return concat(parts, 0 if parts and parts[0].ndim == 1 else 1)


def split(x: Any, indices_or_sections: int | Sequence[int], axis: int = 0, *, dim: int | None = None) -> list[Tensor]:
    """As many equal parts along an axis, or, of a list of positions, the parts between them; as NumPy's split."""
    x = _of(x)
    at = _axis_of(x, _one("split", axis, dim, 0), "split")
    n = x.shape[at]
    if isinstance(indices_or_sections, int):
        k = indices_or_sections
        if k < 1 or n % k:
            raise ValueError(f"split: {n} elements are not {k} equal parts; chunk gives parts of unequal lengths")
        cuts = list(range(n // k, n, n // k)) if n else [0] * (k - 1)
    else:
        cuts = [int(i) for i in indices_or_sections]
    ends = [slice(a, b).indices(n)[:2] for a, b in zip([0, *cuts], [*cuts, n])]
    return [_core.slice(x, at, a, builtins.max(a, b)) for a, b in ends]


def array_split(x: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """split, where parts may be of lengths that differ by one."""
    if not isinstance(indices_or_sections, int):
        return split(x, indices_or_sections, axis)
    x, k = _of(x), indices_or_sections
    if k < 1:
        raise ValueError(f"array_split: {k} parts; there is one at least")
    n = x.shape[_axis_of(x, axis, "array_split")]
    return split(x, [i * (n // k) + builtins.min(i, n % k) for i in range(1, k)], axis)


def column_stack(x: Sequence[Any]) -> Tensor:
    """Vectors as columns of a matrix; matrices beside each other."""
    return concat([_core.reshape(t, (-1, 1)) if t.ndim < 2 else t for t in map(_of, x)], 1)


def append(x: Any, values: Any, axis: int | None = None) -> Tensor:
    """Two tensors joined along an axis, or, without one, all elements."""
    return concat([x, values], axis)


def atleast_1d(x: Any) -> Tensor:
    """With one axis at least."""
    return _core.reshape(_of(x), (1,)) if _of(x).ndim == 0 else _of(x)


def atleast_2d(x: Any) -> Tensor:
    """With two axes at least; vectors are rows."""
    return _core.reshape(_of(x), (1, -1)) if _of(x).ndim < 2 else _of(x)


def fliplr(x: Any) -> Tensor:
    """Columns in reverse order."""
    return _core.flip(_of(x), 1)


def flipud(x: Any) -> Tensor:
    """Rows in reverse order."""
    return _core.flip(_of(x), 0)


def chunk(x: Any, chunks: int, axis: int = 0, *, dim: int | None = None) -> list[Tensor]:
    """At most so many parts along an axis, all but the last one of equal length, as in PyTorch."""
    x = _of(x)
    at = _axis_of(x, _one("chunk", axis, dim, 0), "chunk")
    if chunks < 1:
        raise ValueError(f"chunk: {chunks} parts of a tensor {list(x.shape)}; one at least")
    size = -(-x.shape[at] // chunks)
    return split(x, list(range(size, x.shape[at], size)) if size else [0] * (chunks - 1), at)


def repeat(x: Any, repeats: Any, axis: int | None = None, *, dim: int | None = None) -> Tensor:
    """Each element several times in a row, as NumPy's repeat (PyTorch's repeat is tile); repeats: a number, or one for each
    element, whose sum is read."""
    x, axis = _of(x), _one("repeat", axis, dim)
    if axis is None:
        x, axis = ravel(x), 0
    at = _axis_of(x, axis, "repeat")
    if hasattr(repeats, "__index__") and not isinstance(repeats, Tensor):
        return _core.repeat(x, repeats.__index__(), at)
    counts = _of(repeats)
    if counts.size == 1:
        return _core.repeat(x, int(counts.item()), at)
    return _core.repeat_each(x, counts, int(_core.sum(_core.cast(counts, "i64")).item()), at)


repeat_interleave = repeat


def tile(x: Any, *reps: Any) -> Tensor:
    """The whole tensor several times along each axis."""
    return _core.tile(_of(x), _shape_of("tile", reps))


def roll(x: Any, shift: int | Sequence[int], axis: Axis = None) -> Tensor:
    """Elements moved along an axis, several axes, or, without one, in row-major order; they wrap around."""
    x = _of(x)
    shifts = [shift] if isinstance(shift, int) else list(shift)
    if axis is None:
        if len(shifts) != 1:
            raise ValueError(f"roll: {len(shifts)} shifts without axes")
        if x.ndim == 1:
            return _core.roll(x, shifts[0], 0)
        return _core.reshape(_core.roll(_core.reshape(x, (x.size,)), shifts[0], 0), x.shape)
    axes = [axis] if isinstance(axis, int) else list(axis)
    if isinstance(shift, int):
        shifts *= len(axes)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: {len(shifts)} shifts for {len(axes)} axes")
    by = [0] * x.ndim
    for n, a in zip(shifts, axes):
        by[_axis_of(x, a, "roll")] += n
    return _core.roll_axes(x, by)


def flip(x: Any, axis: Axis = None, *, dim: Axis = None) -> Tensor:
    """The elements in reverse order along an axis, several axes, or all."""
    x, axis = _of(x), _one("flip", axis, dim)
    return _core.flip(x, tuple(range(x.ndim)) if axis is None else axis)


movedim, swapdims, row_stack = moveaxis, swapaxes, vstack


def t(x: Any) -> Tensor:
    """A matrix transposed; a vector or a number as it is."""
    x = _of(x)
    if x.ndim > 2:
        raise ValueError(f"t: takes a matrix, a vector or a number, got {list(x.shape)}; .mT exchanges the last two axes")
    return _core.permute(x, (1, 0)) if x.ndim == 2 else x


def unbind(x: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, without it."""
    x = _of(x)
    at = _axis_of(x, dim, "unbind")
    rest = x.shape[:at] + x.shape[at + 1:]
    return tuple(_core.reshape(_core.slice(x, at, k, k + 1), rest) for k in range(x.shape[at]))


def narrow(x: Any, dim: int, start: int, length: int) -> Tensor:
    """The elements start .. start + length - 1 of an axis; a start below 0 counts from the end."""
    x = _of(x)
    at = _axis_of(x, dim, "narrow")
    first = start + x.shape[at] if start < 0 else start
    if not 0 <= first <= first + length <= x.shape[at]:
        raise IndexError(f"narrow: {length} elements from {start} on are not in axis {at} of x {list(x.shape)}")
    return _core.slice(x, at, first, first + length)


def unflatten(x: Any, dim: int, sizes: Sequence[int]) -> Tensor:
    """An axis divided into several of these sizes, of which one may be -1."""
    x = _of(x)
    at = _axis_of(x, dim, "unflatten")
    known = 1
    for n in sizes:
        known *= builtins.max(int(n), 1 if n == -1 else 0)
    to = [x.shape[at] // known if n == -1 and known else int(n) for n in sizes]
    size = 1
    for n in to:
        size *= n
    if size != x.shape[at] or list(sizes).count(-1) > 1:
        raise ValueError(f"unflatten: axis {at} of x {list(x.shape)} has {x.shape[at]} elements, which are not {list(sizes)}")
    return _core.reshape(x, x.shape[:at] + tuple(to) + x.shape[at + 1:])


tensor_split = array_split


def vsplit(x: Any, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """split along the first axis."""
    return split(x, indices_or_sections, 0)


def hsplit(x: Any, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """split along the second axis, of a vector along its own."""
    return split(x, indices_or_sections, builtins.min(_of(x).ndim - 1, 1))


def dsplit(x: Any, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """split along the third axis."""
    return split(x, indices_or_sections, 2)


def atleast_3d(x: Any) -> Tensor:
    """With three axes at least: a vector is [1,N,1], a matrix [N,M,1]."""
    x = _of(x)
    return _core.reshape(x, (1, x.size, 1) if x.ndim < 2 else x.shape + (1,)) if x.ndim < 3 else x


def dstack(x: Sequence[Any]) -> Tensor:
    """Joined along the third axis."""
    return concat([atleast_3d(v) for v in x], 2)


def rot90(x: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """Rotated k times by 90 degrees, from the first of two axes to the second."""
    x = _of(x)
    a, b = (_axis_of(x, axis, "rot90") for axis in axes)
    if a == b:
        raise ValueError(f"rot90: axes {tuple(axes)} are one axis of x {list(x.shape)}")
    if k % 2 == 0:
        return flip(x, (a, b)) if k % 4 else x
    return flip(swapaxes(x, a, b), a if k % 4 == 1 else b)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape to which arrays of these shapes broadcast."""
    import numpy

    return tuple(int(n) for n in numpy.broadcast_shapes(*shapes))


def broadcast_tensors(*x: Any) -> list[Tensor]:
    """Tensors broadcast to one shape."""
    parts = [_of(v) for v in x]
    to = broadcast_shapes(*(v.shape for v in parts))
    return [_core.broadcast_to(v, to) for v in parts]


broadcast_arrays = broadcast_tensors


def cartesian_prod(*x: Any) -> Tensor:
    """All tuples of elements of vectors, in their order: [N,vectors]; of one vector the vector."""
    parts = [ravel(v) for v in x]
    n = len(parts)
    grid = broadcast_tensors(*(_core.reshape(v, [-1 if k == i else 1 for k in range(n)]) for i, v in enumerate(parts)))
    return parts[0] if n == 1 else stack([ravel(v) for v in grid], 1)


def combinations(x: Any, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of r elements of a vector, in their order: [N,r]."""
    import itertools

    x = _of(x)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    at = list(choose(range(x.shape[0]), r))
    return _core.gather(x, tensor(at, "i64"), 0) if at and r else _core.full(x.dtype, (len(at), r), 0)
