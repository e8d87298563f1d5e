# SPDX-License-Identifier: Apache-2.0
"""Resolvents of tridiagonal matrices."""
from __future__ import annotations

from typing import Any

from . import _core
from ._arrays import tensor
from ._common import Tensor, _of
from ._reductions import _floating

__all__ = [
    "resolvent", "resolvent_corner", "resolvent_log_det",
]


_RESOLVENT_WORDS = {
    "side": {"both": 0, "left": 1},
    "tier": {"auto": 0, "f64": 1, "f32": 2, "mixed": 3, "half": 4},
    "gradient": {"exact": 0, "diag": 1, "inverse": 2, "hybrid": 3, "step5": 4},
}


def _energy(z: Any, to: Any) -> Tensor:
    """Complex numbers as pairs along a last axis of 2; pairs as they are."""
    import numpy

    if isinstance(z, Tensor):
        return z if z.dtype == to else z.astype(to)
    z = numpy.asarray(z)
    if numpy.iscomplexobj(z) or not z.ndim:
        z = numpy.stack([z.real, z.imag], -1)
    elif z.shape[-1] != 2:
        raise ValueError(f"resolvent: z of shape {list(z.shape)} is real; pairs are [..,2], and real energies are z + 0j")
    return tensor(z, dtype=to)


def _chain(a: Any, b: Any, c: Any, z: Any, imag: Any) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None, Tensor]:
    """a, its imaginary part, b, c and z as tensors of one dtype."""
    import numpy

    if not isinstance(a, Tensor) and numpy.iscomplexobj(a):
        if imag is not None:
            raise ValueError("resolvent: a is complex; imag= is for a real one")
        a, imag = numpy.real(a), numpy.imag(a)
    x = _floating(_of(a))
    im, above, below = (t if t is None else _of(t).astype(x.dtype) for t in (imag, b, c))
    return x, im, above, below, _energy(z, x.dtype)


def resolvent(a: Any, b: Any = None, c: Any = None, z: Any = 1j, *, imag: Any = None, side: str | int = "both",
              tier: str | int = "auto", gradient: str | int = "exact", half: Any = "f16", **how: Any) -> Tensor:
    """The diagonal G_i = [(H - z)^-1]_ii of the resolvent of a tridiagonal matrix H with H_ii = a_i, H_i,i+1 = b_i and
    H_i+1,i = c_i: a [..,N], b and c [..,N-1] (None: ones), z a complex number, an array of them [..] or pairs [..,2].
    Leading axes broadcast.  The result is [..,N,2], real and imaginary parts; with L_0 = a_0 - z,
    L_i = a_i - z - b_(i-1) c_(i-1) / L_(i-1), and R the same from the end, G_i = 1 / (L_i + R_i - a_i + z).

    a may be complex, with the self-energies of leads at its ends; of a tensor imag= is the imaginary part [..,N].  Then all
    is computed in f64, and tier, gradient and what follows them do not apply.  resolvent_corner and resolvent_log_det
    give G_1N and log det(z - H) of the same operands.

    side="left": 1 / L_i, the last diagonal element for the leading block 0..i.  tier: auto, f64, f32, mixed or half, with
    half=, sweeps=, tolerance= as yoke_resolvent has them; gradient: exact, diag, inverse, hybrid or step5, with blend=,
    adaptive=.  RuntimeError, when it is evaluated, where z is an eigenvalue or an operand is not finite.
    """
    words: dict[str, Any] = {"side": side, "tier": tier, "gradient": gradient}
    for key, value in words.items():
        if isinstance(value, str):
            if value not in _RESOLVENT_WORDS[key]:
                raise ValueError(f"resolvent: {key}={value!r} is none of {', '.join(_RESOLVENT_WORDS[key])}")
            words[key] = _RESOLVENT_WORDS[key][value]
    x, im, above, below, energy = _chain(a, b, c, z, imag)
    if im is None:
        return _core.resolvent(x, above, below, energy, half=half, **words, **how)
    if words["tier"] > _RESOLVENT_WORDS["tier"]["f64"] or words["gradient"] or how:
        raise ValueError("resolvent: of a complex a the tier is f64 and the gradient exact")
    return _core.resolvent_complex(x, im, above, below, energy, side=words["side"])


def resolvent_corner(a: Any, b: Any = None, c: Any = None, z: Any = 1j, *, imag: Any = None) -> Tensor:
    """The corner G_1N = [(H - z)^-1]_1N = -b_1 .. b_(N-1) / det(z - H) of the resolvent of a tridiagonal matrix, with the
    operands of resolvent: [..,2], real and imaginary parts.  Real z is as good as complex.  A chain between two leads of
    self-energies S_L and S_R, which are added to its first and last element, transmits T = G_L G_R |G_1N|^2 at z = E, with
    G = -2 Im S:

        E = numpy.linspace(-1.9, 1.9, 39)
        a = numpy.zeros((39, 100), complex)
        a[:, [0, -1]] = ((E - 1j * numpy.sqrt(4 - E * E)) / 2)[:, None]
        g = yoke.resolvent_corner(a, z=E + 0j).numpy()
        T = (4 - E * E) * (g ** 2).sum(-1)                      # 1 at all energies
    """
    return _core.resolvent_corner(*_chain(a, b, c, z, imag))


def resolvent_log_det(a: Any, b: Any = None, c: Any = None, z: Any = 1j, *, imag: Any = None) -> Tensor:
    """log det(z - H) of a tridiagonal matrix, with the operands of resolvent: [..,2], log |det| and the phase.  Its derivative
    by z is the trace of (z - H)^-1.  The phase is a sum of N arguments in (-pi, pi] and not reduced to one turn: it is
    continuous in Im z > 0 where no b c is negative and no imaginary part of a positive.  For real H and z with no b c
    negative it is pi times the number of eigenvalues above z.  If a b c is negative, it is only an argument of det: it is
    defined up to whole turns.
    """
    return _core.resolvent_log_det(*_chain(a, b, c, z, imag))
