# SPDX-License-Identifier: Apache-2.0
"""Operations beside PyTorch's in float64, values and gradients, with unusual arguments: negative axes, ellipses, empty
tensors, broadcasting, ties, NaN.  A case is yoke's call, PyTorch's call and the operands; those of floating point are
differentiated.  Bad arguments are one line that names the operation."""
import numpy as np
import pytest

import yoke

torch = pytest.importorskip("torch")
F, L, N = torch.nn.functional, yoke.linalg, torch.linalg
r = np.random.default_rng(20260601)


def real(*shape):
    return r.standard_normal(shape)


def firm(*shape):
    """Matrices far from singular."""
    return real(*shape) + 3 * np.eye(shape[-2], shape[-1])


def apart(*shape):
    """Distinct numbers, in any order."""
    return r.permutation(int(np.prod(shape))).reshape(shape) / 3 - 2.0


def whole(high, *shape):
    return r.integers(0, high, shape)


def leaves(x):
    return [t for part in x for t in leaves(part)] if isinstance(x, (tuple, list)) else [x]


CASES = {
    # 1: products
    "einsum": (lambda a, b: yoke.einsum("ij,jk->ik", a, b), lambda a, b: torch.einsum("ij,jk->ik", a, b), [real(3, 4), real(4, 2)]),
    "einsum implicit": (lambda a, b: yoke.einsum("kj, ji", a, b), lambda a, b: torch.einsum("kj, ji", a, b), [real(3, 4), real(4, 2)]),
    "einsum ellipsis": (lambda a, b: yoke.einsum("...ij,...jk->...ik", a, b), lambda a, b: torch.einsum("...ij,...jk->...ik", a, b),
                        [real(5, 1, 3, 4), real(2, 4, 2)]),
    "einsum ellipsis in the middle": (lambda a, b: yoke.einsum("b...i,io->bo...", a, b), lambda a, b: torch.einsum("b...i,io->bo...", a, b),
                                      [real(2, 3, 4, 5), real(5, 6)]),
    "einsum ellipsis summed": (lambda a: yoke.einsum("i...->...", a), lambda a: torch.einsum("i...->...", a),
                               [real(2, 3, 4)]),
    "einsum diagonal": (lambda a: yoke.einsum("ii->i", a), lambda a: torch.einsum("ii->i", a), [real(4, 4)]),
    "einsum trace": (lambda a: yoke.einsum("ii", a), lambda a: torch.einsum("ii", a), [real(4, 4)]),
    "einsum repeated and batched": (lambda a, b: yoke.einsum("iij,jkk->jk", a, b), lambda a, b: torch.einsum("iij,jkk->jk", a, b),
                                    [real(3, 3, 4), real(4, 2, 2)]),
    "einsum of four": (lambda *x: yoke.einsum("ab,bc,cd,de->ae", *x), lambda *x: torch.einsum("ab,bc,cd,de->ae", *x),
                       [real(2, 9), real(9, 3), real(3, 8), real(8, 4)]),
    "einsum outer": (lambda a, b: yoke.einsum("i,j", a, b), lambda a, b: torch.einsum("i,j", a, b), [real(3), real(4)]),
    "einsum to a number": (lambda a, b: yoke.einsum("ij,ij->", a, b), lambda a, b: torch.einsum("ij,ij->", a, b), [real(3, 4), real(3, 4)]),
    "einsum of the same tensor": (lambda a: yoke.einsum("ij,ik->jk", a, a), lambda a: torch.einsum("ij,ik->jk", a, a), [real(3, 4)]),
    "einsum empty": (lambda a, b: yoke.einsum("ij,jk->ik", a, b), lambda a, b: torch.einsum("ij,jk->ik", a, b), [real(3, 0), real(0, 2)]),
    "einsum capitals": (lambda a, b: yoke.einsum("aB,Bc->ac", a, b), lambda a, b: torch.einsum("aB,Bc->ac", a, b), [real(3, 4), real(4, 2)]),
    "tensordot": (lambda a, b: yoke.tensordot(a, b, 2), lambda a, b: torch.tensordot(a, b, 2), [real(2, 3, 4), real(3, 4, 5)]),
    "tensordot axes": (lambda a, b: yoke.tensordot(a, b, ([-1, 0], [1, -1])), lambda a, b: torch.tensordot(a, b, ([-1, 0], [1, -1])),
                       [real(2, 3, 4), real(5, 4, 2)]),
    "tensordot over an empty axis": (lambda a, b: yoke.tensordot(a, b, 1), lambda a, b: torch.tensordot(a, b, 1), [real(3, 0), real(0, 2)]),
    "tensordot of none": (lambda a, b: yoke.tensordot(a, b, 0), lambda a, b: torch.tensordot(a, b, 0), [real(2, 3), real(4)]),
    "outer": (yoke.outer, torch.outer, [real(3), real(4)]),
    "outer empty": (yoke.outer, torch.outer, [real(0), real(4)]),
    "kron": (yoke.kron, torch.kron, [real(2, 3), real(4, 2)]),
    "kron of ranks": (yoke.kron, torch.kron, [real(2, 3, 2), real(3)]),
    # 2: sizes that depend on values
    "nonzero": (yoke.nonzero, lambda x: torch.nonzero(x, as_tuple=True), [whole(2, 3, 4, 2)]),
    "nonzero none": (yoke.nonzero, lambda x: torch.nonzero(x, as_tuple=True), [np.zeros((3, 2), "i8")]),
    "nonzero of a number": (yoke.nonzero, lambda x: torch.nonzero(x, as_tuple=True), [np.array(3)]),
    "nonzero empty": (yoke.nonzero, lambda x: torch.nonzero(x, as_tuple=True), [np.zeros((0, 2), "i8")]),
    "masked_select": (yoke.masked_select, torch.masked_select, [real(3, 4), whole(2, 3, 4) > 0]),
    "masked_select broadcast": (yoke.masked_select, torch.masked_select, [real(3, 4), np.array([[True], [False], [True]])]),
    "masked_select broadcast x": (yoke.masked_select, torch.masked_select, [real(4), whole(2, 3, 4) > 0]),
    "masked_select none": (yoke.masked_select, torch.masked_select, [real(3, 4), np.zeros((3, 4), bool)]),
    "unique": (lambda x: yoke.unique(x, return_inverse=True, return_counts=True), lambda x: torch.unique(x, return_inverse=True, return_counts=True),
               [whole(5, 4, 6)]),
    "unique empty": (yoke.unique, torch.unique, [np.zeros(0, "i8")]),
    "unique bool": (yoke.unique, torch.unique, [whole(2, 5) > 0]),
    # 3: arranging
    "where numbers": (lambda c, x: yoke.where(c, x, 2.0), lambda c, x: torch.where(c, x, 2.0), [whole(2, 3, 4) > 0, real(4)]),
    "where two numbers": (lambda c: yoke.where(c, 1.5, -1.0), lambda c: torch.where(c, 1.5, -1.0).double(), [whole(2, 3, 4) > 0]),
    "stack": (lambda a, b: yoke.stack([a, b], -1), lambda a, b: torch.stack([a, b], -1), [real(3, 4), real(3, 4)]),
    "stack empty": (lambda a, b: yoke.stack([a, b], 1), lambda a, b: torch.stack([a, b], 1), [real(3, 0), real(3, 0)]),
    "split": (lambda x: yoke.split(x, [2, 3], -1), lambda x: torch.tensor_split(x, [2, 3], -1), [real(3, 7)]),
    "chunk": (lambda x: yoke.chunk(x, 3, -1), lambda x: torch.chunk(x, 3, -1), [real(3, 7)]),
    "chunk more than there are": (lambda x: yoke.chunk(x, 5), lambda x: torch.chunk(x, 5), [real(3, 2)]),
    "tril": (lambda x: yoke.tril(x, -1), lambda x: torch.tril(x, -1), [real(2, 4, 5)]),
    "triu": (lambda x: yoke.triu(x, 2), lambda x: torch.triu(x, 2), [real(2, 4, 5)]),
    "triu far": (lambda x: yoke.triu(x, -9), lambda x: torch.triu(x, -9), [real(4, 3)]),
    "diag": (lambda x: yoke.diag(x, 1), lambda x: torch.diag(x, 1), [real(4)]),
    "diag of a matrix": (lambda x: yoke.diag(x, -1), lambda x: torch.diag(x, -1), [real(4, 5)]),
    "diagonal": (lambda x: yoke.diagonal(x, 1, -1, 0), lambda x: torch.diagonal(x, 1, -1, 0), [real(4, 3, 5)]),
    "one_hot": (lambda i: yoke.one_hot(i, 6), lambda i: F.one_hot(i, 6), [whole(6, 2, 3)]),
    "one_hot inferred": (yoke.one_hot, F.one_hot, [np.array([[0, 4], [2, 1]])]),
    "roll": (lambda x: yoke.roll(x, (-2, 7), (0, -1)), lambda x: torch.roll(x, (-2, 7), (0, -1)), [real(3, 4)]),
    "roll flat": (lambda x: yoke.roll(x, 5), lambda x: torch.roll(x, 5), [real(3, 4)]),
    "roll the same axis": (lambda x: yoke.roll(x, (1, 5, -1), (-1, 0, 1)), lambda x: torch.roll(x, (1, 5, -1), (-1, 0, 1)), [real(3, 4, 2)]),
    "roll empty": (lambda x: yoke.roll(x, (1, 2), (0, 1)), lambda x: torch.roll(x, (1, 2), (0, 1)), [real(3, 0)]),
    "roll bool": (lambda x: yoke.roll(x, 2, -1), lambda x: torch.roll(x, 2, -1), [whole(2, 3, 5) > 0]),
    "roll twice": (lambda x: yoke.roll(x, (1, 1), (0, 0)), lambda x: torch.roll(x, (1, 1), (0, 0)), [real(3, 4)]),
    "repeat": (lambda x: yoke.repeat(x, 3, -1), lambda x: torch.repeat_interleave(x, 3, -1), [real(2, 3)]),
    "repeat each": (lambda x: yoke.repeat(x, yoke.tensor([2, 0, 3]), 1), lambda x: torch.repeat_interleave(x, torch.tensor([2, 0, 3]), 1),
                    [real(2, 3)]),
    "repeat flat": (lambda x: yoke.repeat(x, 2), lambda x: torch.repeat_interleave(x, 2), [real(2, 3)]),
    "tile": (lambda x: yoke.tile(x, (2, 1, 3)), lambda x: torch.tile(x, (2, 1, 3)), [real(2, 3)]),
    "tile fewer": (lambda x: yoke.tile(x, (2,)), lambda x: torch.tile(x, (2,)), [real(2, 3)]),
    "tile of none": (lambda x: yoke.tile(x, (0, 2)), lambda x: torch.tile(x, (0, 2)), [real(2, 3)]),
    "meshgrid": (lambda a, b: yoke.meshgrid(a, b, indexing="ij"), lambda a, b: torch.meshgrid(a, b, indexing="ij"), [real(3), real(4)]),
    "meshgrid xy": (lambda a, b: yoke.meshgrid(a, b), lambda a, b: torch.meshgrid(a, b, indexing="xy"), [real(3), real(4)]),
    "index_put": (lambda x, i, v: yoke.index_put(x, (i,), v), lambda x, i, v: torch.index_put(x, (i,), v), [real(5, 3), np.array([-1, 0, 2]), real(3, 3)]),
    "index_put adds": (lambda x, i, k, v: yoke.index_put(x, (i, k), v, True), lambda x, i, k, v: torch.index_put(x, (i, k), v, True),
                       [real(5, 3), whole(5, 7), whole(3, 7), real(7)]),
    "index_put broadcast": (lambda x, i, k, v: yoke.index_put(x, (i, k), v, True), lambda x, i, k, v: torch.index_put(x, (i, k), v, True),
                            [real(5, 3), whole(5, 4, 1), np.array([-1, 0]), real(1)]),
    "index_put mask": (lambda x, m, v: yoke.index_put(x, (m,), v), lambda x, m, v: torch.index_put(x, (m,), v), [real(3, 2), np.array([[1, 0], [0, 1], [1, 1]]) > 0, real(4)]),
    "masked_scatter": (yoke.masked_scatter, torch.masked_scatter, [real(3, 4), whole(2, 3, 4) > 0, real(12)]),
    "masked_scatter, a row": (yoke.masked_scatter, torch.masked_scatter, [real(3, 4), np.array([True, False, True, True]), real(3, 3)]),
    "masked_scatter empty": (yoke.masked_scatter, torch.masked_scatter, [real(0, 4), whole(2, 0, 4) > 0, real(2)]),
    "masked_fill": (lambda x, m: yoke.masked_fill(x, m, 2.5), lambda x, m: torch.masked_fill(x, m, 2.5), [real(3, 4), whole(2, 4) > 0]),
    "searchsorted": (lambda s, v: yoke.searchsorted(s, v, right=True), lambda s, v: torch.searchsorted(s, v, right=True),
                     [np.array([0.0, 1, 1, 3]), np.array([[1.0, 3, -1], [np.inf, 0, 2]])], False),
    "searchsorted rows": (yoke.searchsorted, torch.searchsorted, [np.sort(real(2, 3, 6), -1), real(2, 3, 4)], False),
    "bucketize": (lambda v, s: yoke.bucketize(v, s, right=True), lambda v, s: torch.bucketize(v, s, right=True), [whole(6, 3, 4), np.array([0, 2, 2, 4])]),
    "histc": (lambda x: yoke.histc(x, 5, -1, 1), lambda x: torch.histc(x, 5, -1, 1), [np.append(real(40), [-1.0, 1.0])], False),
    "histc of the range": (lambda x: yoke.histc(x, 5), lambda x: torch.histc(x, 5), [real(40)], False),
    "histc weights": (lambda x, w: yoke.histc(x, 5, -1, 1, weight=w), lambda x, w: torch.histogram(x, 5, range=(-1.0, 1.0), weight=w)[0],
                      [real(40), real(40)], False),
    # 4: interpolation, windows
    **{f"interpolate {mode} {axes}d {how}": (
        lambda x, mode=mode, how=how: yoke.interpolate(x, mode=mode, **how), lambda x, mode=mode, how=how: F.interpolate(x, mode=mode, **how),
        [real(*(2, 3, 5, 4, 3)[:2 + axes])])
       for mode, axes in (("nearest", 1), ("nearest-exact", 2), ("linear", 1), ("bilinear", 2), ("bicubic", 2), ("trilinear", 3), ("area", 2))
       for how in ([dict(size=7), dict(scale_factor=1.7), dict(scale_factor=0.6)] + ([dict(size=7, align_corners=True), dict(
           scale_factor=1.3, align_corners=True), dict(scale_factor=1.7, recompute_scale_factor=True)] if "linear" in mode or "cubic" in mode else []))},
    "interpolate antialias": (lambda x: yoke.interpolate(x, size=(3, 4), mode="bicubic", antialias=True),
                              lambda x: F.interpolate(x, size=(3, 4), mode="bicubic", antialias=True), [real(2, 3, 9, 11)]),
    **{f"grid_sample {mode} {pad} {corners}": (
        lambda x, g, a=(mode, pad, corners): yoke.grid_sample(x, g, *a), lambda x, g, a=(mode, pad, corners): F.grid_sample(x, g, *a),
        [real(2, 3, 5, 4), r.uniform(-1.4, 1.4, (2, 3, 4, 2))], mode != "nearest")
       for mode in ("bilinear", "nearest", "bicubic") for pad in ("zeros", "border", "reflection") for corners in (False, True)},
    "grid_sample volumes": (yoke.grid_sample, lambda x, g: F.grid_sample(x, g, align_corners=False), [real(2, 3, 5, 4, 3), r.uniform(-1.2, 1.2, (2, 2, 3, 4, 3))]),
    **{f"grid_sample of {b} images, {p} positions": (yoke.grid_sample, lambda x, g: F.grid_sample(x, g, align_corners=False),
                                                     [real(b, 11, 5, 4), r.uniform(-1.2, 1.2, (b, p, 4, 2))]) for b, p in ((0, 3), (2, 0), (2, 3))},
    "affine_grid": (lambda t: yoke.affine_grid(t, (2, 1, 4, 5), True), lambda t: F.affine_grid(t, (2, 1, 4, 5), True), [real(2, 2, 3)]),
    **{f"conv {axes}d": (lambda x, w, b: yoke.conv(x, w, stride=2, lo=1, hi=1, dilation=2, groups=2) + b, lambda x, w, b, axes=axes: getattr(
        F, f"conv{axes}d")(x, w, None, 2, 1, 2, 2) + b, [real(*(2, 4, 7, 6, 5)[:2 + axes]), real(*(6, 2, 3, 2, 2)[:2 + axes]), real(1)]) for axes in (1, 2, 3)},
    **{f"conv_transposed {axes}d": (
        lambda x, w: yoke.conv_transposed(x, w, stride=3, lo=1, hi=1, more=2, groups=2),
        lambda x, w, axes=axes: getattr(F, f"conv_transpose{axes}d")(x, w, None, 3, 1, 2, 2),
        [real(*(2, 4, 4, 3, 3)[:2 + axes]), real(*(4, 3, 3, 2, 3)[:2 + axes])]) for axes in (1, 2, 3)},
    "conv without a batch": (lambda x, w: yoke.conv(x, w, lo=1, hi=1), lambda x, w: F.conv2d(x, w, padding=1), [real(3, 6, 5), real(4, 3, 3, 3)]),
    **{f"max_pool {axes}d, indices": (
        lambda x, axes=axes: yoke.max_pool_indices(x, window=3, stride=2, lo=1, hi=1, ceil_mode=True),
        lambda x, axes=axes: getattr(F, f"max_pool{axes}d")(x, 3, 2, 1, ceil_mode=True, return_indices=True), [apart(*(2, 3, 8, 7, 6)[:2 + axes])]) for axes in (1, 2, 3)},
    "max_unpool": (lambda x, i: yoke.max_unpool(x, i, (3, 3)), lambda x, i: F.max_unpool2d(x, i, 2, output_size=(3, 3)),
                   [real(2, 3, 1, 2), r.permuted(np.broadcast_to(np.arange(9), (2, 3, 9)), axis=-1)[..., None, :2]]),
    "avg_pool 3d": (lambda x: yoke.mean_pool(x, window=3, stride=2, lo=1, hi=1, count_include_pad=True), lambda x: F.avg_pool3d(x, 3, 2, 1), [real(2, 3, 5, 6, 7)]),
    "cummax": (lambda x: yoke.cummax_indices(x, -2), lambda x: torch.cummax(x, -2), [apart(3, 5, 2)]),
    "cummin": (lambda x: yoke.cummin_indices(x, -1), lambda x: torch.cummin(x, -1), [apart(3, 5, 2)]),
    **{f"{name} of equals": (lambda x, f=getattr(yoke, name): f(x, 0), lambda x, f=getattr(torch, name): f(x, 0)[0], [whole(3, 9, 2) / 2.0])
       for name in ("cummax", "cummin")},
    "cummax bool": (lambda x: yoke.cummax_indices(x, 0), lambda x: torch.cummax(x, 0), [np.array([False, True, False, True])]),
    "cummax NaN": (lambda x: yoke.cummax_indices(x, 0)[0], lambda x: torch.cummax(x, 0)[0], [np.array([1.0, np.nan, 3, 2])], False),
    "unfold": (lambda x: yoke.unfold(x, (2, 3), 2, 1, (1, 2)), lambda x: F.unfold(x, (2, 3), 2, 1, (1, 2)), [real(2, 3, 7, 8)]),
    "fold": (lambda x: yoke.fold(x, (5, 6), (2, 3), 1, 1, 2), lambda x: F.fold(x, (5, 6), (2, 3), 1, 1, 2), [real(2, 18, 9)]),
    **{f"embedding_bag {mode}": (lambda w, i, o, m=mode: yoke.embedding_bag(i, w, o, m), lambda w, i, o, m=mode: F.embedding_bag(i, w, o, mode=m),
                                 [apart(7, 3), whole(7, 9), np.array([0, 2, 2, 5])]) for mode in ("sum", "mean", "max")},
    "embedding_bag weights": (lambda w, i, s: yoke.embedding_bag(i, w, mode="sum", per_sample_weights=s, padding_idx=2),
                              lambda w, i, s: F.embedding_bag(i, w, mode="sum", per_sample_weights=s, padding_idx=2), [real(7, 3), whole(7, 4, 3), real(4, 3)]),
    # 5: linear algebra
    "inv": (L.inv, N.inv, [firm(2, 3, 4, 4)]), "det": (L.det, N.det, [firm(2, 4, 4)]), "det of a singular matrix": (L.det, N.det, [np.ones((3, 3))], False),
    "slogdet": (lambda a: L.slogdet(a).logabsdet, lambda a: N.slogdet(a).logabsdet, [firm(2, 4, 4)]),
    "inv empty": (L.inv, N.inv, [real(0, 3, 3)]), "det of 0 x 0": (L.det, N.det, [real(2, 0, 0)]),
    "solve": (L.solve, N.solve, [firm(2, 4, 4), real(2, 4, 3)]), "solve a vector": (L.solve, N.solve, [firm(4, 4), real(4)]),
    "solve broadcast": (L.solve, N.solve, [firm(4, 4), real(3, 4, 2)]),
    "solve x a = b": (lambda a, b: L.solve(a, b, left=False), lambda a, b: N.solve(a, b, left=False), [firm(2, 4, 4), real(2, 3, 4)]),
    "solve a vector each": (L.solve, N.solve, [firm(2, 3, 3), real(2, 3)]),
    "rank of no values": (L.matrix_rank, N.matrix_rank, [real(2, 3, 0)]),
    **{f"lstsq gels {m} x {n}, {k}": (lambda a, b: L.lstsq(a, b, driver="gels").solution, lambda a, b: N.lstsq(a, b, driver="gels").solution,
                                      [real(m, n), real(m, k)]) for m, n, k in ((6, 3, 1), (4, 4, 2), (40, 7, 30), (3, 5, 2), (5, 3, 0))},
    "lstsq tall": (lambda a, b: L.lstsq(a, b).solution, lambda a, b: N.lstsq(a, b).solution, [real(2, 6, 3), real(2, 6, 2)]),
    "lstsq wide": (lambda a, b: L.lstsq(a, b).solution, lambda a, b: N.lstsq(a, b).solution, [real(3, 6), real(3, 2)]),
    "qr": (lambda a: list(L.qr(a)), lambda a: list(N.qr(a)), [firm(2, 5, 3)]), "qr wide": (lambda a: list(L.qr(a)), lambda a: list(N.qr(a)), [firm(3, 5)]),
    "svdvals": (L.svdvals, N.svdvals, [real(2, 4, 3)]),
    "svd": (lambda a: (lambda u, s, v: [s, (u * s[..., None, :]) @ v, (u * u) @ (v * v)])(*L.svd(a, False)),
            lambda a: (lambda u, s, v: [s, (u * s[..., None, :]) @ v, (u * u) @ (v * v)])(*N.svd(a, False)), [real(2, 5, 3)]),
    "pinv": (L.pinv, N.pinv, [real(2, 5, 3)]), "pinv wide": (L.pinv, N.pinv, [real(3, 5)]),
    "matrix_exp": (L.matrix_exp, N.matrix_exp, [real(2, 4, 4)]), "matrix_power": (lambda a: L.matrix_power(a, 5), lambda a: N.matrix_power(a, 5), [real(2, 3, 3)]),
    "matrix_power of an inverse": (lambda a: L.matrix_power(a, -2), lambda a: N.matrix_power(a, -2), [firm(3, 3)]),
    "matrix_power 0": (lambda a: L.matrix_power(a, 0) + a, lambda a: N.matrix_power(a, 0) + a, [real(2, 3, 3)]),
    # 6: elements, quantiles, transforms, CTC
    "copysign of zeros": (yoke.copysign, torch.copysign, [np.array([0.0, -0.0, 1, -2]), np.array([[-1.0], [0.0], [-0.0]])]),
    "copysign of integers": (yoke.copysign, torch.copysign, [whole(3, 4) - 1, whole(3, 4) - 1]),
    "copysign": (yoke.copysign, torch.copysign, [real(3, 4), real(4)]), "nextafter": (yoke.nextafter, torch.nextafter, [real(3, 4), real(4)], False),
    "hypot": (yoke.hypot, torch.hypot, [real(3, 4), real(4)]), "frexp": (lambda x: list(yoke.frexp(x)), lambda x: list(torch.frexp(x)), [real(3, 4)], False),
    **{f"quantile {m}": (lambda x, m=m: yoke.quantile(x, [0.0, 0.3, 1.0], 1, method=m), lambda x, m=m: torch.quantile(
        x, torch.tensor([0.0, 0.3, 1.0], dtype=torch.float64), 1, interpolation=m), [apart(3, 6)]) for m in ("linear", "lower", "higher", "midpoint", "nearest")},
    "quantile keepdims": (lambda x: yoke.quantile(x, 0.4, -2, keepdims=True), lambda x: torch.quantile(x, 0.4, -2, keepdim=True), [apart(3, 6, 2)]),
    "ctc": (lambda x: yoke.loss_ctc(yoke.log_softmax(x), yoke.tensor([[1, 2, 2], [3, 0, 0]]), yoke.tensor([6, 5]), yoke.tensor([3, 1]), 0, yoke.LOSS_MEAN, 0),
            lambda x: F.ctc_loss(F.log_softmax(x, -1), torch.tensor([[1, 2, 2], [3, 0, 0]]), torch.tensor([6, 5]), torch.tensor([3, 1])), [real(6, 2, 4)]),
    **{f"{name} {n} {norm}": (
        lambda x, f=name, n=n, m=norm: getattr(yoke, f)(x, n, norm=m),
        lambda x, f=name, n=n, m=norm: (lambda y: y if f == "irfft" else torch.view_as_real(y))(getattr(torch.fft, f)(
            x if f == "rfft" else torch.view_as_complex(x), n, norm=m)), [real(3, 7) if name == "rfft" else real(3, 7, 2)])
       for name in ("fft", "ifft", "rfft", "irfft") for n in (None, 5, 11, 12) for norm in (None, "ortho", "forward")},
    "stft": (lambda x, w: yoke.stft(x, 8, 3, window=w), lambda x, w: torch.view_as_real(torch.stft(x, 8, 3, window=w, return_complex=True)), [real(2, 40), r.uniform(0.5, 1, 8)]),
}


def outcome(y):
    """Values of either library on the host."""
    return [np.asarray((t.detach() if isinstance(t, torch.Tensor) else t).numpy()) for t in leaves(y)]


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    ours, theirs, arrays, *more = CASES[name]
    differentiable = [a.dtype.kind == "f" and (not more or more[0]) for a in arrays]
    x = [yoke.tensor(a) for a in arrays]
    t = [torch.tensor(a, requires_grad=d) for a, d in zip(arrays, differentiable)]
    y, z = leaves(ours(*x)), leaves(theirs(*t))
    got, want = outcome(y), outcome(z)
    assert len(got) == len(want)
    for a, b in zip(got, want):
        assert a.shape == b.shape and a.dtype.kind == b.dtype.kind, (a.shape, b.shape, a.dtype, b.dtype)
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-11)
    along = [k for k, v in enumerate(z) if v.requires_grad]
    if not along:
        return
    weights = [np.cos(np.arange(want[k].size)).reshape(want[k].shape) for k in along]
    used = [k for k, d in enumerate(differentiable) if d]
    theirs_grad = torch.autograd.grad([z[k] for k in along], [t[k] for k in used], [torch.tensor(w) for w in weights], allow_unused=True)
    loss = None
    for k, w in zip(along, weights):
        term = (y[k] * yoke.tensor(w)).sum()
        loss = term if loss is None else loss + term
    for a, b in zip(yoke.grad(loss, [x[k] for k in used]), theirs_grad):
        assert b is not None
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-8, atol=1e-9)


# Expressions of either library t: a, b real [3,4], p in 0 .. 1 [3,4], c [2,3,4], d [2,4,3], v, w [4], s [4,4] far from singular,
# z with NaN and infinities; without gradients: e with equal elements [3,4], i 0 .. 2 [3,4], k a permutation of 0 .. 2, h i32 [3,4], m bool [3,4].
EXPRESSIONS = """
t.reciprocal(a); t.positive(a); t.frac(a * 3); t.signbit(z); t.asinh(a * 5); t.asinh(a * 1e9); t.acosh(p + 1); t.acosh(p * 1e9 + 2); t.atanh(p); t.sinc(a); t.sinc(a * i)
t.logit(p); t.logit(p, 0.3); t.xlogy(a, p); t.xlogy(a * i, p * i).detach(); t.logaddexp2(a, b); t.heaviside(e - 2, b.detach()); t.heaviside(e, b.detach()); t.fmax(z, b); t.fmin(z, b); t.lerp(a, b, 0.3)
t.lerp(a, b, 0.8); t.lerp(a, b, p); t.addcmul(a, b, v); t.addcmul(a, b, v, value=0.5); t.addcdiv(a, b, p, value=-2); t.clamp_min(a, 0.1); t.clamp_max(a, b); t.aminmax(e)
t.aminmax(a, dim=1, keepdim=True); t.isposinf(z); t.isneginf(z); t.isposinf(i); t.not_equal(i, 1); t.greater(a, b); t.greater_equal(i, 1); t.less(a, 0); t.less_equal(a, v)
t.bitwise_and(h, i); t.bitwise_or(h, 5); t.bitwise_xor(h, h + 1); t.bitwise_not(h); t.bitwise_not(m); t.floor_divide(h, 3); t.fix(a * 3); t.arcsin(p); t.arccos(p); t.arctan(a)
t.arctan2(a, b); t.arcsinh(a); t.arctanh(p); t.take_along_dim(a, i, 0); t.take_along_dim(a, i); t.isin(i, k[:2]); t.isin(a, a[1]); t.index_select(a, 1, k); t.index_select(a, -2, k)
t.index_add(a, 0, k, b); t.index_add(c, -1, k, c[:, :, 1:], alpha=2.5); t.index_copy(a, 0, k, b); t.index_copy(c, 1, k[:2], c[:, 1:]); t.index_fill(a, 1, k, 0.5)
t.scatter(a, 0, i, b).detach(); t.scatter(a, 0, i[:2], b).detach(); t.scatter(a, 1, i[:, :3], 2.0); t.scatter(a, 1, i[:2, :1], b).detach(); t.scatter(a, 0, i, b, reduce="add").detach(); t.scatter(a, 0, k[:, None], b).detach(); t.scatter(a, 0, k[:, None] + 0 * i, b)
t.scatter_reduce(a, 0, i, b, "sum"); t.scatter_reduce(a, 0, i, b, "sum", include_self=False); t.scatter_reduce(a, 0, i, b, "mean"); t.scatter_reduce(a, 1, i, b, "mean", include_self=False)
t.scatter_reduce(a, 0, i, b, "amax"); t.scatter_reduce(a, 1, i, b, "amin", include_self=False); t.scatter_reduce(a, 0, i, b, "prod"); t.scatter_reduce(h, 0, i, h + 3, "amax", include_self=False)
t.scatter_reduce(h, 0, i, h - 300, "amax", include_self=False); t.scatter_reduce(h, 0, i, h, "mean"); t.movedim(c, 0, -1); t.swapdims(c, 0, 2); t.row_stack([a, v]); t.t(a); t.t(v); a.t()
t.unbind(c); t.unbind(c, -1); t.narrow(a, 1, 1, 2); t.narrow(a, 0, -2, 1); t.unflatten(c, -1, (2, -1)); t.unflatten(a, 0, (3, 1)); t.tensor_split(a, 3, 1); t.tensor_split(v, (1, 3)); t.vsplit(a, 3)
t.hsplit(a, 2); t.hsplit(v, [1]); t.dsplit(c, 2); t.atleast_3d(v); t.atleast_3d(a); t.dstack([v, w]); t.dstack([a, b]); t.rot90(a); t.rot90(a, -1); t.rot90(c, 2, (0, 2)); t.rot90(c, 3, (2, 1))
t.broadcast_tensors(a, v, p[:, :1]); t.cartesian_prod(v, w[:2]); t.cartesian_prod(v); t.combinations(v); t.combinations(v, 3); t.combinations(v, 2, True); t.combinations(v[:1], 2)
t.mm(a, s); t.mv(a, v); t.bmm(c, d); t.addmm(a, b, s); t.addmm(v, b, s, beta=0.5, alpha=2); t.addmm(z, b, s, beta=0); t.addmv(v[:3], a, v); t.addr(a, v[:3], w, alpha=3); t.baddbmm(c[:, :, :3], c, d)
t.addbmm(a[:, :3], c, d, beta=2); t.cross(a[:, :3], b[:, :3], dim=-1); t.cross(c, c * c, dim=1); t.cdist(a, b); t.cdist(c, a); t.cdist(a, b, 1.0); t.cdist(a, b, float("inf")); t.cdist(a, a)
t.block_diag(a, v, s); t.diag_embed(a); t.diag_embed(a, 2); t.diag_embed(a, -1, 0, 2); t.diag_embed(c, 1, 1, -1); t.diagflat(a); t.diagflat(v, -2); t.vander(v).detach(); t.vander(v, 3, True).detach(); t.inverse(s)
t.pinverse(a); t.logdet(s @ s.T); t.logdet(-t.eye(3)); t.nansum(z, 1); t.kthvalue(a, 2); t.kthvalue(a, 3, 0, True); t.dist(a, b); t.dist(a, b, 1); t.corrcoef(a); t.trapezoid(a); t.trapz(a, v); t.trapezoid(a, dx=0.5, dim=0)
t.trapezoid(a, t.cumsum(p, 1), dim=1); a.eq(b); a.ne(0); a.lt(b); a.ge(v); a.where(m, b); a.where(a > 0, 0.0); a.view_as(a.reshape(4, 3)); v.expand_as(a); i.type_as(a); a.new_zeros(2, 3); i.new_ones((2,))
a.new_full((2, 2), 1.5); a.new_tensor([1, 2]); a.index_select(0, k); a.scatter(1, i, 0.0); a.lerp(b, 0.5); a.unbind(1); a.addmm(b, s); c.bmm(d); a.mm(s); a.mv(v); a.logical_and(m); a.atan2(b); a.tan(); p.acos(); p.digamma()
a.copysign(b); a.remainder(0.7); s.det(); s.inverse() if t is torch else s.inv(); a.amax(1); v.outer(w); a.rot90(); a.diag(); a.isneginf(); a.argwhere(); a.reciprocal(); a.absolute(); a.subtract(b); a.multiply(v)
""".strip().replace("\n", "; ").split("; ")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_and_its_gradients(text):
    rng = np.random.default_rng(5)
    arrays = {"a": rng.normal(size=(3, 4)), "b": rng.normal(size=(3, 4)), "p": rng.uniform(0.1, 0.9, (3, 4)), "c": rng.normal(size=(2, 3, 4)),
              "d": rng.normal(size=(2, 4, 3)), "v": rng.normal(size=4), "w": rng.normal(size=4), "s": rng.normal(size=(4, 4)) + 3 * np.eye(4)}
    z = rng.normal(size=(3, 4))
    z[0, 1], z[1, 2], z[2, 3], z[0, 0] = np.nan, np.inf, -np.inf, -0.0
    fixed = {"z": z, "e": rng.integers(0, 5, (3, 4)).astype("f8"), "i": rng.integers(0, 3, (3, 4)), "k": rng.permutation(3),
             "h": rng.integers(-9, 9, (3, 4), "i4"), "m": rng.integers(0, 2, (3, 4)) > 0}
    theirs = {n: torch.tensor(x, requires_grad=True) for n, x in arrays.items()}
    ours = {n: yoke.tensor(x) for n, x in arrays.items()}
    want = leaves(eval(text, {"t": torch, "torch": torch, **theirs, **{n: torch.tensor(x) for n, x in fixed.items()}}))
    got = leaves(eval(text, {"t": yoke, "torch": torch, **ours, **{n: yoke.tensor(x) for n, x in fixed.items()}}))
    assert len(got) == len(want)
    loss = other = None
    for y, x in zip(got, want):
        assert tuple(y.shape) == tuple(x.shape) and y.dtype == x.dtype, (y.shape, x.shape, y.dtype, x.dtype)
        np.testing.assert_allclose(y.numpy(), x.detach().numpy(), rtol=1e-10, atol=1e-11)
        if x.requires_grad:
            weight = np.cos(np.arange(x.numel())).reshape(x.shape)
            loss, other = ((0 if sofar is None else sofar) + (r * of(weight)).sum() for sofar, r, of in ((loss, y, yoke.tensor), (other, x, torch.tensor)))
    if loss is not None:
        used = [n for n, g in zip(theirs, torch.autograd.grad(other, list(theirs.values()), allow_unused=True, retain_graph=True)) if g is not None]
        for g, x in zip(yoke.grad(loss, [ours[n] for n in used]), torch.autograd.grad(other, [theirs[n] for n in used])):
            np.testing.assert_allclose(g.numpy(), x.numpy(), rtol=1e-8, atol=1e-9)


def test_windows_and_limits():
    for name in ("hann", "hamming", "blackman", "bartlett", "kaiser"):
        for n in (0, 1, 2, 7):
            for periodic in (True, False):
                theirs = getattr(torch, f"{name}_window")(n, periodic, dtype=torch.float64).numpy()
                np.testing.assert_allclose(getattr(yoke, f"{name}_window")(n, periodic, dtype="f64").numpy(), theirs, atol=1e-9)
    for kind in ("float16", "bfloat16", "float32", "float64"):
        mine, theirs = yoke.finfo(kind), torch.finfo(getattr(torch, kind))
        assert all(getattr(mine, n) == getattr(theirs, n) for n in ("bits", "eps", "max", "min", "tiny"))
    for kind in ("int8", "uint8", "int32", "int64"):
        mine, theirs = yoke.iinfo(kind), torch.iinfo(getattr(torch, kind))
        assert all(getattr(mine, n) == getattr(theirs, n) for n in ("bits", "max", "min"))


def test_random_numbers_follow_their_distributions():
    """Means and deviations of 2^16 numbers within five standard errors, and draws in the proportion of their weights."""
    n, random = 1 << 16, yoke.random
    random.seed(7)
    for x, mean, deviation in [(random.exponential(2.0, n), 2, 2), (random.laplace(1.0, 0.5, n), 1, 0.5 ** 0.5), (random.gumbel(0, 1, n), np.euler_gamma, np.pi / 6 ** 0.5),
                               (random.lognormal(0, 0.5, n), np.exp(0.125), ((np.exp(0.25) - 1) * np.exp(0.25)) ** 0.5), (random.bernoulli(0.3, n), 0.3, 0.21 ** 0.5),
                               (yoke.rand_like(yoke.zeros(n)), 0.5, 12 ** -0.5), (yoke.randn_like(yoke.zeros(n)), 0, 1), (yoke.randint(5, (n,)).double(), 2, 2 ** 0.5)]:
        x = x.numpy().astype("f8")
        assert x.shape == (n,) and abs(x.mean() - mean) < 5 * deviation / n ** 0.5 and abs(x.std() / deviation - 1) < 0.05
    drawn = np.bincount(yoke.multinomial([1.0, 0.0, 2.0, 5.0], n, True).numpy(), minlength=4) / n
    assert drawn[1] == 0 and np.abs(drawn - np.array([1, 0, 2, 5]) / 8).max() < 5 * 0.5 / n ** 0.5
    first = yoke.multinomial(np.tile([1.0, 0.0, 2.0, 5.0], (n, 1)), 3).numpy()
    assert (np.sort(first, 1) == [0, 2, 3]).all()
    assert np.abs(np.bincount(first[:, 0], minlength=4) / n - np.array([1, 0, 2, 5]) / 8).max() < 5 * 0.5 / n ** 0.5
    assert (yoke.bernoulli(yoke.tensor([0.0, 1.0])).numpy() == [0, 1]).all() and yoke.randint_like(yoke.zeros(3, dtype="i32"), 4).dtype is yoke.i32
    assert sorted(yoke.randperm(9).tolist()) == list(range(9))


t33, ids = yoke.tensor(real(3, 3)), yoke.tensor(np.array([0, 1, 2]))
BAD = {
    "einsum": [lambda: yoke.einsum("ij,jk->ik", t33, yoke.zeros(4, 2)), lambda: yoke.einsum("ij->ik", t33), lambda: yoke.einsum("ij,jk", t33),
               lambda: yoke.einsum("ijk", t33), lambda: yoke.einsum("i$->i", t33), lambda: yoke.einsum("ij->iij", t33)],
    "tensordot": [lambda: yoke.tensordot(t33, yoke.zeros(4, 2), 1), lambda: yoke.tensordot(yoke.zeros(3, 1), yoke.zeros(1, 4), ([1, 1], [0, 0])), lambda: yoke.tensordot(t33, t33, 3), lambda: yoke.tensordot(t33, t33, ([0], [5]))],
    "masked_select": [lambda: yoke.masked_select(t33, yoke.zeros(2, dtype="bool"))],
    "stack": [lambda: yoke.stack([t33, ids]), lambda: yoke.stack([]), lambda: yoke.stack([t33, t33], 4)],
    "chunk": [lambda: yoke.chunk(t33, 0), lambda: yoke.chunk(t33, 2, 5)], "split": [lambda: yoke.split(t33, 2), lambda: yoke.split(t33, 3, 4)],
    "diagonal": [lambda: yoke.diagonal(ids), lambda: yoke.diagonal(t33, 0, 1, 1)], "one_hot": [lambda: yoke.one_hot(t33, 3)],
    "roll": [lambda: yoke.roll(t33, (1, 2), (0,)), lambda: yoke.roll(t33, 1, 3)], "repeat": [lambda: yoke.repeat(t33, -1), lambda: yoke.repeat(t33, yoke.tensor([1, 2]), 0)],
    "tile": [lambda: yoke.tile(t33, (-1,))], "index_put": [lambda: yoke.index_put(t33, (ids, ids, ids), 1.0), lambda: yoke.index_put(t33, (t33,), 1.0), lambda: yoke.index_put(t33, (yoke.zeros(2, dtype="bool"),), 1.0)],
    "searchsorted": [lambda: yoke.searchsorted(yoke.zeros(2, 3), yoke.zeros(3, 2))],
    "histc": [lambda: yoke.histc(t33, 0), lambda: yoke.histc(t33, 5, 2, 1)],
    "interpolate": [lambda: yoke.interpolate(yoke.zeros(1, 2, 3), size=4, mode="bilinear"), lambda: yoke.interpolate(yoke.zeros(1, 2, 3), size=4, mode="best"),
                    lambda: yoke.interpolate(yoke.zeros(1, 2, 3)), lambda: yoke.interpolate(yoke.zeros(1, 2, 3), size=0)],
    "grid_sample": [lambda: yoke.grid_sample(yoke.zeros(1, 2, 3, 3), yoke.zeros(2, 3, 3, 2)), lambda: yoke.grid_sample(yoke.zeros(1, 2, 3, 3), yoke.zeros(1, 3, 3, 2), "best")],
    "conv": [lambda: yoke.conv(yoke.zeros(1, 3, 5), yoke.zeros(4, 2, 3)), lambda: yoke.conv(yoke.zeros(1, 3, 2), yoke.zeros(4, 3, 3))],
    "max_unpool": [lambda: yoke.max_unpool(yoke.zeros(1, 1, 2), yoke.zeros(1, 1, 3, dtype="i64"), (4,))],
    "unfold": [lambda: yoke.unfold(yoke.zeros(1, 2, 3, 3), 5)], "fold": [lambda: yoke.fold(yoke.zeros(1, 8, 5), (3, 3), 2)],
    "embedding_bag": [lambda: yoke.embedding_bag(ids, t33), lambda: yoke.embedding_bag(yoke.tensor([[7]]), t33).numpy()],
    "inv": [lambda: L.inv(yoke.zeros(2, 3))], "solve": [lambda: L.solve(t33, yoke.zeros(4, 2))], "lstsq": [lambda: L.lstsq(t33, yoke.zeros(4, 2))],
    "svd": [lambda: L.svd(ids)], "qr": [lambda: L.qr(t33, "best")], "matrix_power": [lambda: L.matrix_power(yoke.zeros(2, 3), 2)],
    "quantile": [lambda: yoke.quantile(t33, 1.5), lambda: yoke.quantile(t33, 0.5, method="best"), lambda: yoke.quantile(t33, 0.5, 4)],
    "fft": [lambda: yoke.fft(yoke.zeros(())), lambda: yoke.fft(yoke.zeros(3, 2), 0), lambda: yoke.fft(yoke.zeros(3, 2), axis=4)],
    "unbind": [lambda: yoke.unbind(t33, 2)], "narrow": [lambda: yoke.narrow(t33, 0, 2, 2), lambda: yoke.narrow(t33, 1, -4, 1)],
    "unflatten": [lambda: yoke.unflatten(t33, 0, (2, -1)), lambda: yoke.unflatten(t33, 1, (2, 2))], "t": [lambda: yoke.t(yoke.zeros(2, 3, 4))],
    "rot90": [lambda: yoke.rot90(t33, 1, (0, 0))], "mm": [lambda: yoke.mm(t33, ids)], "bmm": [lambda: yoke.bmm(yoke.zeros(2, 3, 3), yoke.zeros(3, 3, 3))],
    "cross": [lambda: yoke.cross(yoke.zeros(2), yoke.zeros(2))], "cdist": [lambda: yoke.cdist(t33, yoke.zeros(3, 2))],
    "diag_embed": [lambda: yoke.diag_embed(t33, 0, 1, 1), lambda: yoke.diag_embed(t33, 0, 0, 5)], "kthvalue": [lambda: yoke.kthvalue(t33, 4), lambda: yoke.kthvalue(t33, 0)],
    "index_add": [lambda: yoke.index_add(t33, 0, ids, yoke.zeros(2, 3)), lambda: yoke.index_add(t33, 0, yoke.zeros(2, 2, dtype="i64"), t33)],
    "index_select": [lambda: yoke.index_select(t33, 3, ids)], "scatter": [lambda: yoke.scatter(t33, 0, ids, t33), lambda: yoke.scatter(t33, 0, ids[None], 1.0, reduce="best")],
    "scatter_reduce": [lambda: yoke.scatter_reduce(t33, 0, ids[None], t33, "best")], "nanquantile": [lambda: yoke.nanquantile(t33, 2)],
    "multinomial": [lambda: yoke.multinomial(ids, 4), lambda: yoke.multinomial(t33, 0, True)], "hann_window": [lambda: yoke.hann_window(-1)],
    "finfo": [lambda: yoke.finfo("i32")], "iinfo": [lambda: yoke.iinfo("f32")],
    "cummax_indices": [lambda: yoke.cummax_indices(t33, 2)],
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments(name):
    for k, call in enumerate(BAD[name]):
        with pytest.raises((ValueError, IndexError, TypeError)) as e:
            call()
        assert "\n" not in str(e.value) and name in str(e.value), (k, str(e.value))


@pytest.mark.parametrize("op", ["nonzero", "masked_select", "unique"])
def test_a_capacity_that_is_too_small(op):
    """The functions of C take a capacity: the count is right, and reading it is an error with both numbers."""
    x = yoke.tensor(np.arange(1, 8))
    count = getattr(yoke._core, op)(*([x, x > 0] if op == "masked_select" else [x]), 3)[-1]
    assert count.item() == 7
    with pytest.raises(IndexError, match="7.* 3") as e:
        yoke._core.counted(count, 3)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_of_attention_at_large_logits(causal):
    """In f32, logits of about 100: errors against float64 within twice those of PyTorch's f32."""
    scale, rng = 100 / 8, np.random.default_rng(3)
    q, k, v, g = (rng.standard_normal((2, 33, 4, 16)).astype("f4") for _ in range(4))
    q *= scale

    def theirs(dtype):
        x = [torch.tensor(a, dtype=dtype, requires_grad=True) for a in (q, k, v)]
        y = F.scaled_dot_product_attention(*(a.transpose(1, 2) for a in x), is_causal=causal).transpose(1, 2)
        return [a.numpy() for a in torch.autograd.grad(y, x, torch.tensor(g, dtype=dtype))]

    exact, single = theirs(torch.float64), theirs(torch.float32)
    x = [yoke.tensor(a) for a in (q, k, v)]
    mine = [a.numpy() for a in yoke.grad((yoke.attention(*x, causal=causal) * yoke.tensor(g)).sum(), x)]
    for name, a, b, c in zip("qkv", mine, single, exact):
        ours, others = (np.abs(y - c).max() for y in (a, b))
        assert ours <= 2 * others, (name, ours, others)
