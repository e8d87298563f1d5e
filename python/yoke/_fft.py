# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms with NumPy's arguments.  Complex numbers are pairs (re, im) along a last axis of 2, which axis and axes
do not count; complex arrays of NumPy are taken, too."""
from __future__ import annotations

from typing import Any, Sequence

from . import _core
from ._arrays import tensor

Tensor = _core.Tensor
__all__ = ["fft", "ifft", "rfft", "irfft", "fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn", "fftfreq",
           "rfftfreq", "stft", "istft"]
Axes = Sequence[int] | None
Sizes = Sequence[int] | None


def _pairs(x: Any) -> Tensor:
    kind = getattr(getattr(x, "dtype", None), "kind", "")
    if kind == "c":
        x = x.copy().view(x.real.dtype).reshape(*x.shape, 2)
    return _reals(x)


def _reals(x: Any) -> Tensor:
    x = x if isinstance(x, Tensor) else tensor(x)
    return x if x.dtype.name in ("f32", "f64") else _core.cast(x, "f32")


def _norm(call: str, norm: str | None) -> int:
    names = ("backward", "ortho", "forward")
    if norm is None:
        return 0
    if norm not in names:
        raise ValueError(f"{call}: norm is one of {', '.join(names)}, not {norm!r}")
    return names.index(norm)


def _size(call: str, n: int | None) -> int:
    if n is not None and n < 1:
        raise ValueError(f"{call}: n is {n}; a transform has one element at least")
    return n or 0


def fft(x: Any, n: int | None = None, axis: int = -1, norm: str | None = None, *, dim: int | None = None) -> Tensor:
    """The discrete Fourier transform of pairs along an axis."""
    return _core.fft(_pairs(x), _size("fft", n), axis if dim is None else dim, _norm("fft", norm))


def ifft(x: Any, n: int | None = None, axis: int = -1, norm: str | None = None, *, dim: int | None = None) -> Tensor:
    """The inverse of fft."""
    return _core.ifft(_pairs(x), _size("ifft", n), axis if dim is None else dim, _norm("ifft", norm))


def rfft(x: Any, n: int | None = None, axis: int = -1, norm: str | None = None, *, dim: int | None = None) -> Tensor:
    """The first half of the spectrum of real numbers, as pairs."""
    return _core.rfft(_reals(x), _size("rfft", n), axis if dim is None else dim, _norm("rfft", norm))


def irfft(x: Any, n: int | None = None, axis: int = -1, norm: str | None = None, *, dim: int | None = None) -> Tensor:
    """The inverse of rfft, of n real numbers."""
    return _core.irfft(_pairs(x), _size("irfft", n), axis if dim is None else dim, _norm("irfft", norm))


def _along(call: str, rank: int, s: Sizes, axes: Axes) -> list[tuple[int, int]]:
    """Axis and size (0: as it is) of each transform."""
    if axes is None:
        axes = range(rank) if s is None else range(rank - len(s), rank)
    sizes = [0] * len(axes) if s is None else [int(n) for n in s]
    if len(sizes) != len(axes):
        raise ValueError(f"{call}: {len(sizes)} sizes of {len(axes)} axes")
    return [(a + rank if a < 0 else a, n) for a, n in zip(axes, sizes)]


def fftn(x: Any, s: Sizes = None, axes: Axes = None, norm: str | None = None) -> Tensor:
    """fft along several axes."""
    y = _pairs(x)
    for axis, n in _along("fftn", y.ndim - 1, s, axes):
        y = _core.fft(y, n, axis, _norm("fftn", norm))
    return y


def ifftn(x: Any, s: Sizes = None, axes: Axes = None, norm: str | None = None) -> Tensor:
    """ifft along several axes."""
    y = _pairs(x)
    for axis, n in _along("ifftn", y.ndim - 1, s, axes):
        y = _core.ifft(y, n, axis, _norm("ifftn", norm))
    return y


def rfftn(x: Any, s: Sizes = None, axes: Axes = None, norm: str | None = None) -> Tensor:
    """rfft along the last of several axes, fft along the others."""
    x = _reals(x)
    *others, (axis, n) = _along("rfftn", x.ndim, s, axes)
    y = _core.rfft(x, n, axis, _norm("rfftn", norm))
    for axis, n in others:
        y = _core.fft(y, n, axis, _norm("rfftn", norm))
    return y


def irfftn(x: Any, s: Sizes = None, axes: Axes = None, norm: str | None = None) -> Tensor:
    """The inverse of rfftn; s: sizes of the result."""
    y = _pairs(x)
    *others, (last, size) = _along("irfftn", y.ndim - 1, s, axes)
    for axis, n in others:
        y = _core.ifft(y, n, axis, _norm("irfftn", norm))
    return _core.irfft(y, size, last, _norm("irfftn", norm))


def fft2(x: Any, s: Sizes = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Tensor:
    """fft along two axes."""
    return fftn(x, s, axes, norm)


def ifft2(x: Any, s: Sizes = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Tensor:
    """ifft along two axes."""
    return ifftn(x, s, axes, norm)


def rfft2(x: Any, s: Sizes = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Tensor:
    """rfftn along two axes."""
    return rfftn(x, s, axes, norm)


def irfft2(x: Any, s: Sizes = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Tensor:
    """irfftn along two axes."""
    return irfftn(x, s, axes, norm)


def fftfreq(n: int, d: float = 1.0) -> Tensor:
    """The frequencies of fft's results, for samples d apart."""
    return tensor([(k if k < (n + 1) // 2 else k - n) / (n * d) for k in range(n)], "f32")


def rfftfreq(n: int, d: float = 1.0) -> Tensor:
    """The frequencies of rfft's results, for samples d apart."""
    return tensor([k / (n * d) for k in range(n // 2 + 1)], "f32")


def _window(window: Any, win_length: int | None, like: Tensor) -> Any:
    if window is None:
        return None if win_length is None else _core.full(like.dtype, (win_length,), 1.0)
    return _core.cast(window if isinstance(window, Tensor) else tensor(window), like.dtype)


def stft(x: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None, *,
         center: bool = True, normalized: bool = False) -> Tensor:
    """rfft of frames of n_fft elements, hop_length apart (n_fft // 4), times a window: [..,n_fft // 2 + 1,frames,2]."""
    x = _reals(x)
    return _core.stft(x, _window(window, win_length, x), n_fft, hop=hop_length or 0, uncentered=not center, normalized=normalized)


def istft(x: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None, *,
          center: bool = True, normalized: bool = False, length: int | None = None) -> Tensor:
    """The inverse of stft."""
    x = _pairs(x)
    return _core.istft(x, _window(window, win_length, x), n_fft, length or 0, hop=hop_length or 0, uncentered=not center,
                       normalized=normalized)
