# SPDX-License-Identifier: Apache-2.0
"""Expressions that mean the same in NumPy and in yoke: each line is evaluated with arrays and with tensors.

xp is the package; a and b are f64 [3,4], c f64 [2,3,4] with equal elements, s f64 [4,4], v f64 [4], z has NaN and infinities,
i and j are i64 [3,4], n i32 [4], w i64 [4] without 0, u u8 [5] and h i8 [5] of large numbers, m bool [3,4], k bool [4]."""
import copy
import pickle

import numpy as np
import pytest

import yoke

EXPRESSIONS = """
a + b; a - b; a * b; a / b; a // b; a % b; a ** 2; abs(a) ** 0.5; 2 ** a; -a; +a; abs(a); a @ b.T; v @ v; s @ v; c @ s
a + v; a[:, :1] + v; 1 - a; 2 / b; 7 // w; i + 1; i * j; i // w; i % w; i / w; i ** 2; n ** 3; i & j; i | j; i ^ j; ~i; i << 2; i >> 1
a < b; a <= b; a == a; a != b; a > 0; i >= j; (a > 0) & (b > 0); (a > 0) | m; ~m; m ^ k; m == False
a.sum(); a.sum(0); a.sum(axis=1); a.sum((0, 1)); a.sum(-1, keepdims=True); c.sum((0, 2)); c.sum(axis=(0, -1), keepdims=True)
a.mean(); a.mean(1); a.mean(axis=0, keepdims=True); a.max(); a.max(1); a.min(); a.min(axis=0, keepdims=True); c.max((1, 2))
a.prod(); a.prod(0); a.var(); a.var(1); a.var(ddof=1); a.std(); a.std(axis=0, ddof=1, keepdims=True)
u.sum(); h.sum(); n.sum(); i.sum(0); m.sum(); m.sum(1); u.prod(); h.prod(); u.mean(); i.mean(1); m.mean(); u.max(); h.min(); m.max(); m.min(0)
u.var(); u.cumsum(); h.cumsum(); m.cumsum(0); n.cumprod(); a.cumsum(); a.cumsum(1); a.cumprod(axis=0); u.astype(xp.int64).sum()
a.argmax(); a.argmax(0); a.argmin(axis=1); c.argmax(); c.argmax(1); c.argmin(-1); u.argmax(); m.argmax(1); a.argmax(1, keepdims=True)
a.any(); a.all(1); (a > 0).any(0); (a > 9).any(); m.all(); m.any(1, keepdims=True); i.any(1); i.all()
xp.sum(a); xp.sum(a, 0); xp.sum(a, axis=1); xp.mean(a, 1); xp.max(a, 1); xp.min(a, 0); xp.max(a, axis=-1, keepdims=True); xp.amax(c, (0, 1))
xp.maximum(a, b); xp.minimum(a, 0); xp.maximum(a, v); xp.prod(a, 1); xp.var(a, 0); xp.std(a); xp.median(a); xp.median(a, axis=1)
xp.quantile(a, 0.3); xp.quantile(a, 0.25, axis=1); xp.argmax(a); xp.argmin(a, 1); xp.any(m, 0); xp.all(m); xp.count_nonzero(i); xp.count_nonzero(m, 1)
xp.cumsum(a, 0); xp.cumprod(a, 1); xp.diff(v); xp.diff(a, axis=0); xp.diff(a, n=2)
xp.exp(a); xp.log(abs(a)); xp.sqrt(abs(a)); xp.sin(a); xp.cos(a); xp.tanh(a); xp.expm1(a); xp.log1p(abs(a)); xp.log2(abs(b)); xp.log10(abs(b))
xp.exp2(a); xp.floor(a); xp.ceil(a); xp.trunc(a); xp.round(a); xp.round(a, 2); xp.round(a * 100, -1); a.round(1); xp.sign(a); xp.square(a); xp.abs(i)
xp.sqrt(w); xp.exp(n); xp.power(a, 2); xp.clip(a, -0.5, 0.5); xp.clip(a, None, 0.1); a.clip(-1, 1); i.clip(2, 5); xp.isnan(z); xp.isinf(z); xp.isfinite(z)
xp.isnan(a); xp.isfinite(i); xp.nan_to_num(z); xp.nan_to_num(z, nan=1.0, posinf=2.0, neginf=3.0); xp.maximum(z, 0.0); z.max(); z == z
xp.where(m, a, b); xp.where(a > 0, a, 0); xp.where(a > 0, 1, 0); xp.where(m, i, b); xp.where(k, v, a); xp.where(m); xp.nonzero(i); m.nonzero()
xp.logical_and(m, k); xp.logical_or(a > 0, m); xp.logical_not(m); xp.logical_xor(m, k); xp.isclose(a, a + 1e-9); xp.allclose(a, b); xp.array_equal(a, a)
a.reshape(4, 3); a.reshape((2, 6)); a.reshape(-1); a.reshape(2, -1, 3); xp.reshape(a, (6, 2)); a.T; c.T; a.transpose(); a.transpose(1, 0)
c.transpose((2, 0, 1)); xp.transpose(c, (1, 2, 0)); xp.swapaxes(c, 0, 2); c.swapaxes(-1, -2); xp.moveaxis(c, 0, -1); xp.moveaxis(c, (0, 1), (-1, 0))
a[None].squeeze(); a[None].squeeze(0); xp.squeeze(a[:, None]); xp.expand_dims(a, 0); xp.expand_dims(a, -1); xp.expand_dims(a, (0, 2)); a.ravel(); xp.ravel(c)
xp.broadcast_to(v, (3, 4)); xp.concatenate([a, b]); xp.concatenate([a, b], 1); xp.concatenate((a, b), axis=-1); xp.concatenate([a, c], None)
xp.concatenate([i, a]); xp.stack([a, b]); xp.stack((a, b), axis=1); xp.stack([a, b], -1); xp.vstack([v, a]); xp.hstack([a, b]); xp.hstack([v, v])
xp.split(a, 3); xp.split(a, 2, axis=1); xp.split(v, [1, 3]); xp.split(a, [1], 1); xp.repeat(v, 2); xp.repeat(a, 3, axis=1); xp.repeat(v, [0, 1, 2, 3])
xp.tile(v, 2); xp.tile(a, (2, 1)); xp.roll(v, 1); xp.roll(a, -2, axis=1); xp.roll(a, 3); xp.roll(a, (1, -1), axis=(0, 1)); xp.flip(a); xp.flip(a, 0); xp.flip(c, (0, 2))
xp.zeros((2, 3)); xp.zeros(4); xp.zeros((2, 2), dtype=xp.int32); xp.ones((2, 3)); xp.ones((2,), xp.int64); xp.full((2, 2), 7); xp.full(3, 0.5); xp.full((2,), True)
xp.zeros_like(a); xp.ones_like(i); xp.full_like(n, 3); xp.zeros_like(a, dtype=xp.int64); xp.eye(3); xp.eye(2, 4); xp.eye(3, k=1); xp.eye(3, 3, -1)
xp.arange(5); xp.arange(1, 7); xp.arange(0, 10, 2); xp.arange(5, 0, -2); xp.arange(0.0, 1.0, 0.25); xp.arange(3, dtype=xp.float64); xp.arange(4, 2)
xp.linspace(0, 1, 5); xp.linspace(1, 2, 4, endpoint=False); xp.logspace(0, 2, 3); xp.meshgrid(v, v[:2]); xp.meshgrid(v, v[:3], indexing="ij")
xp.tril(s); xp.triu(s); xp.tril(a, 1); xp.triu(c, -1); xp.diag(s); xp.diag(v); xp.diag(v, 1); xp.diag(a, -1); xp.trace(s); xp.diagonal(c, 0, 1, 2)
xp.dot(v, v); xp.dot(s, v); xp.outer(v, v); xp.matmul(a, s); xp.einsum("ij,jk->ik", a, s); xp.einsum("ij,kj->ik", a, b); xp.einsum("bij,jk->bik", c, s)
xp.einsum("ij->ji", a); xp.einsum("ij->", a); xp.einsum("ii", s); xp.einsum("ii->i", s); xp.einsum("i,i", v, v); xp.einsum("i,j->ij", v, v); xp.einsum("ij,ij->i", a, b)
xp.einsum("...j,jk->...k", c, s); xp.einsum("bij,bkj->bik", c, c); xp.einsum("ij,jk,kl->il", a, s, s); xp.einsum("ijk->k", c); xp.einsum("...ij->...ji", c)
a[1]; a[-1]; a[1:]; a[:, 1]; a[::2, ::-1]; a[..., 0]; a[None, :, 1]; a[[0, 2]]; a[[0, 1], [1, 3]]; a[:, [3, 0]]; a[xp.arange(2)]
a[m]; a[a > 0]; a[k[:3]]; a[:, k]; a[m, ...]; c[:, m]; c[:, m[:, 0]]; c[:, :, k]; a[~m] ** 2; i[i > 3]; a[m & (a > 0)]; a[:0]; a[[]]; a[xp.nonzero(m)]
a.astype(xp.int32); i.astype(xp.float64); m.astype(xp.int64); a.astype("float32"); len(a); a.shape; a.ndim; a.size; a.tolist(); list(v)[2]; float(v[1]); int(i[0, 0])
a.take([0, 5]); a.take([0, 2], axis=1); xp.take(v, [1, 1]); f"{v[0]:.3f}"; round(float(v[2]), 2); 3.0 in xp.arange(4); bool(m[0, 0]); [float(x) for x in v]
xp.argsort(v); xp.argsort(a, 0); xp.sum(c[0] * a); (a - a.mean(1, keepdims=True)) / a.std(1, keepdims=True); a.nbytes; c.trace(); c.diagonal(); a.repeat(2, 0)
xp.add(a, b); xp.subtract(a, b); xp.multiply(a, v); xp.negative(a); v + [1, 2, 3, 4]; [1, 2, 3, 4] - v; v == (1, 2, 3, 4); v * [True, False, True, True]; m + k; m * m; m + 1; divmod(i, w); xp.where([True, False], [1, 2], [3, 4]); xp.sum([1, 2, 3]); xp.exp([0.0, 1.0]); xp.mod(i, -w); xp.fmod(a, b); xp.mod(a, b); xp.divide(i, w); xp.absolute(a); xp.pad(a, 1); xp.pad(a, (1, 2)); xp.pad(a, ((0, 1), (2, 0))); xp.pi * a; xp.inf > a; xp.tan(a); xp.sinh(a); xp.cosh(a); xp.cbrt(a); xp.hypot(a, b); xp.logaddexp(a, b)
xp.deg2rad(a); xp.rad2deg(a); xp.nansum(z); xp.nansum(z, 1); xp.nanmean(z, 0); xp.nanmax(z); xp.nanmin(z, 1); xp.ptp(a); xp.ptp(a, 0); xp.average(a)
xp.average(a, 1, v); xp.average(a, weights=abs(b)); xp.searchsorted(w, [2, 3, 9]); xp.searchsorted(w, v, "right"); xp.searchsorted(w, 3, side="right")
xp.unique(i); xp.bincount(i.ravel()); xp.bincount(w, minlength=9); xp.argwhere(m); xp.take_along_axis(a, xp.argsort(a, 1), 1); xp.tensordot(a, s, 1)
xp.tensordot(c, a, axes=([1, 2], [0, 1])); xp.inner(a, b); xp.inner(v, v); xp.vdot(a, b); xp.kron(a, s); xp.kron(v, a); xp.array_split(v, 3); xp.array_split(a, 2, 1)
xp.column_stack([v, v]); xp.column_stack([a, b]); xp.append(v, [1.0]); xp.append(a, b, 0); xp.append(a, 1.0); xp.atleast_1d(a[0, 0]); xp.atleast_2d(v); xp.fliplr(a)
xp.flipud(a); xp.copy(a); a.copy(); xp.zeros_like(xp.empty((2, 3))); xp.identity(3); xp.zeros_like(xp.empty_like(a)); a.flatten(); s.dot(v); a.dtype == np.float64; i.dtype == "int64"
xp.nanprod(z, 0); xp.nanvar(z[:, :1]); xp.nanstd(a, 1, ddof=1); xp.nanmedian(z[:, 0]); xp.nanmedian(z[:, :3], 1); xp.nanquantile(z[:1], 0.3, axis=1); xp.nanmedian(z, 0, keepdims=True)
xp.sinc(a); xp.fmax(z, a); xp.fmin(z, a); xp.heaviside(z, a); xp.signbit(z); xp.isin(i, w); xp.isin(a, v); xp.equal(a, b); xp.greater(i, j); xp.bitwise_xor(i, j); xp.logaddexp2(a, b)
xp.arcsinh(a); xp.arctan2(a, b); xp.reciprocal(a); xp.positive(a); xp.vander(v); xp.cross(a[:, :3], b[:, :3]); xp.dstack([a, b]); xp.hsplit(a, 2); xp.vsplit(a, 3); xp.rot90(a, 3)
xp.atleast_3d(v); xp.diagflat(v, 1); xp.corrcoef(a); xp.trapezoid(a, v, axis=1); xp.broadcast_arrays(a, v); xp.broadcast_shapes((3, 1), (4,)); xp.floor_divide(i, w); xp.less_equal(a, v)
"""
LINES = [e for line in EXPRESSIONS.strip().split("\n") for e in line.split("; ")]


def operands():
    r = np.random.default_rng(7)
    z = r.normal(size=(3, 4))
    z[0, 1], z[1, 2], z[2, 3] = np.nan, np.inf, -np.inf
    return {"a": r.normal(size=(3, 4)), "b": r.normal(size=(3, 4)), "c": r.integers(0, 5, (2, 3, 4)).astype("f8"),
            "s": r.normal(size=(4, 4)), "v": r.normal(size=4), "z": z, "i": r.integers(0, 9, (3, 4)), "j": r.integers(0, 9, (3, 4)),
            "n": np.array([1, 2, 3, -4], "i4"), "w": np.array([1, 2, 3, 5]), "u": np.array([250, 251, 252, 253, 7], "u1"),
            "h": np.array([-128, -100, 100, 127, -120], "i1"), "m": r.integers(0, 2, (3, 4)) > 0,
            "k": np.array([True, False, True, True])}


def same(got, want, about):
    if isinstance(want, (tuple, list)) and not (want and isinstance(want[0], (int, float))):
        assert len(got) == len(want), about
        for x, y in zip(got, want):
            same(x, y, about)
    elif isinstance(got, yoke.Tensor):
        assert isinstance(want, (np.ndarray, np.generic)), about
        assert got.shape == want.shape, f"{about}: {got.shape}, and {want.shape} in NumPy"
        kinds = {"u": "i"}
        kind = got.dtype.numpy.kind
        assert kinds.get(kind, kind) == kinds.get(want.dtype.kind, want.dtype.kind), f"{about}: {got.dtype}, and {want.dtype} in NumPy"
        if want.dtype.kind in "iu":
            assert np.array_equal(got.numpy(), want), about
        else:
            np.testing.assert_allclose(got.numpy(), want, rtol=2e-6 if got.dtype is yoke.f32 else 1e-12,
                                       atol=2e-6 if got.dtype is yoke.f32 else 1e-12, err_msg=about)
    else:
        assert got == want or got == pytest.approx(want), f"{about}: {got}, and {want} in NumPy"


def test_there_are_enough():
    assert len(LINES) > 300 and len(set(LINES)) == len(LINES)


@pytest.mark.parametrize("text", LINES)
def test_an_expression_is_numpys(text):
    arrays = operands()
    tensors = {n: yoke.tensor(a) for n, a in arrays.items()}
    with np.errstate(all="ignore"):
        want = eval(text, {"xp": np, "np": np, **arrays})
        got = eval(text, {"xp": yoke, "np": np, **tensors})
        same(got, want, text)
    for n, a in arrays.items():
        assert np.array_equal(tensors[n].numpy(), a, equal_nan=a.dtype.kind == "f"), f"{text} changed {n}"


# np's functions of a tensor are the tensor's
@pytest.mark.parametrize("text", """np.sum(a); np.sum(a, axis=1); np.mean(a); np.mean(a, axis=0, keepdims=True); np.max(a); np.min(a, 1); np.std(a)
np.var(a, ddof=1); np.prod(a); np.argmax(a); np.any(m); np.all(m, axis=1); np.exp(a); np.add(a, 1); np.maximum(a, 0); np.clip(a, -1, 1)
np.cumsum(a, axis=0); np.squeeze(a); np.transpose(a); np.round(a, 1); np.float64(2) * a; np.ones(4) * a; np.ones(4) < a; np.sqrt(abs(a)); np.ones((2, 3)) @ a
np.array(a); np.asarray(a, "f4"); np.concatenate([a, b]); np.where(m, a, b); np.linalg.norm(a); np.allclose(a, a); np.isnan(a); np.greater(np.zeros(4), a)
""".replace("\n", "; ").strip("; ").split("; "))
def test_numpys_functions_take_tensors(text):
    arrays = operands()
    want = eval(text, {"np": np, **arrays})
    got = eval(text, {"np": np, **{n: yoke.tensor(a) for n, a in arrays.items()}})
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6, atol=1e-12)


ASSIGNED = """t[0] = 5; t[1, 2] = 7; t[:, 1] = 9; t[m] = 0; t[t > 0] = -1; t[[0, 2]] = 3; t[::2] = 1; t[:, ::-1] = b; t[...] = 2; t[[0, 1], [1, 3]] = 8
t[m] = b[m]; t[:, k] = 4; t[-1] = v; t[[1, 1]] = b[:2]; t[:, [3, 0]] = b[:, :2]; t[k[:3], 1] = 6; t[1:, 2:] = v[:2]; t[a > 9] = 1; t[[]] = 1; t[None, 0] = 3
t[:, 2] += 1; t[m] *= 2; t[0] -= v; t[1:0] = 3; t[0] = True"""


@pytest.mark.parametrize("kind", ["variable", "tensor"])
@pytest.mark.parametrize("text", ASSIGNED.replace("\n", "; ").split("; "))
def test_elements_are_assigned_as_numpys(text, kind):
    arrays = operands()
    tensors = {n: yoke.tensor(a) for n, a in arrays.items()}
    arrays["t"] = arrays["a"].copy()
    tensors["t"] = yoke.variable_of(arrays["a"]) if kind == "variable" else yoke.tensor(arrays["a"])
    t = tensors["t"]
    exec(text, arrays)
    exec(text, tensors)
    assert tensors["t"] is t and t.is_variable == (kind == "variable")
    assert np.array_equal(t.numpy(), arrays["t"]), text
    assert np.array_equal(tensors["a"].numpy(), operands()["a"])


def test_bad_assignments_are_errors():
    t = yoke.zeros(3, 4)
    for key, value, kind in [(5, 1, IndexError), ((0, 0, 0), 1, IndexError), (0, np.ones(3), ValueError), ([5], 1, IndexError),
                             (np.array([True]), 1, IndexError), (True, 1, IndexError), (0, np.ones((2, 4)), ValueError)]:
        with pytest.raises(kind):
            t[key] = value
    assert not t.numpy().any()


def test_elements_assigned_in_a_scope_outlive_it():
    t, v = yoke.zeros(3), yoke.variable_of(np.zeros(3, "f4"))
    with yoke.scope("outer"):
        inside = yoke.zeros(3)
        with yoke.scope("inner"):
            t[1] = v[1] = inside[1] = 5
        assert inside.tolist() == [0, 5, 0]
    assert t.tolist() == v.tolist() == [0, 5, 0]


def test_gradients_pass_masks_and_assignments():
    x = yoke.tensor([1.0, -2.0, 3.0])
    assert yoke.grad((x[x > 0] ** 2).sum(), [x])[0].tolist() == [2, 0, 6]
    y = x * 2
    y[1] = x[0] * 5
    assert yoke.grad(y.sum(), [x])[0].tolist() == [7, 0, 2]


def test_printed_copied_and_pickled():
    t = yoke.tensor([[1.0, 2.5], [3.0, -4.0]])
    assert "2.5" in str(t) and "-4." in repr(t) and "f32" in str(t) and "cpu:0" in str(t)
    assert "99" in str(yoke.arange(100000)) and len(str(yoke.arange(100000))) < 200
    assert f"{yoke.tensor(2.0):.2f}" == "2.00" and f"{yoke.tensor([7]):03d}" == "007" and f"{t}" == str(t)
    with pytest.raises(TypeError):
        format(t, ".2f")
    assert round(yoke.tensor([1.26, 2.0]), 1).tolist() == pytest.approx([1.3, 2.0])
    for dtype in ("f32", "f64", "f16", "bf16", "i8", "u8", "i32", "i64", "bool"):
        x = yoke.tensor([[0, 1, 1]]).astype(dtype)
        for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            assert y is not x and y.dtype is x.dtype and y.shape == x.shape and y.tolist() == x.tolist()
    v = yoke.variable_of([1.0, 2.0])
    w = copy.deepcopy(v)
    w[0] = copy.copy(v)[0] + 8
    assert copy.copy(v).is_variable
    assert w.is_variable and v.tolist() == [1, 2] and w.tolist() == [9, 2] and pickle.loads(pickle.dumps(v)).is_variable
    with pytest.raises(TypeError, match="without axes"):
        iter(yoke.tensor(1.0))


def test_dtypes_have_many_names():
    x = yoke.tensor([1.0])
    assert x.dtype == np.float32 and x.dtype == "float32" and x.dtype == "f32" and x.dtype == np.dtype("f4") and x.dtype == float
    assert x.dtype != np.float64 and x.dtype != "int32" and x.dtype != 1 and x.dtype != 3 and x.dtype is not None and x.dtype != "frob"
    for name in ("f64", "float64", "double", np.float64, np.dtype("f8"), yoke.float64, ">f8"):
        assert yoke.zeros(2, dtype=name).dtype is yoke.f64
    assert yoke.ones((2,), "int32").dtype is yoke.i32 and yoke.dtype("<i8") is yoke.i64 and yoke.dtype(bool) is yoke.bool_
    assert {x.dtype: 1}[yoke.f32] == 1 and pickle.loads(pickle.dumps(yoke.bf16)) is yoke.bf16
    for make in (lambda: yoke.tensor([1], 3), lambda: yoke.zeros((2, 3), 3), lambda: yoke.dtype(1), lambda: x.astype(3)):
        with pytest.raises(TypeError):
            make()
    assert yoke.zeros(2, 3).shape == (2, 3) and yoke.zeros(2, 3).dtype is yoke.f32
    with pytest.raises(TypeError):
        yoke.zeros(2.5)
    with pytest.raises(TypeError):
        yoke.arange(3, "f4")


def test_in_place_operators_update_variables():
    v = yoke.variable_of(np.ones(3, "f4"))
    same_one, i = v, yoke.variable_of([4, 5])
    for text in ("v += 1", "v *= 3", "v -= np.ones(3)", "v /= 2", "v **= 2", "v //= 2", "v %= 2", "i <<= 1", "i //= 3", "i |= 1"):
        names = {"v": v, "i": i, "np": np}
        exec(text, names)
        assert names["v"] is v and names["i"] is i
    assert same_one is v and v.tolist() == [1, 1, 1] and v.dtype is yoke.f32 and i.tolist() == [3, 3]
    with pytest.raises(TypeError, match="i64 cannot become one of f32"):
        i += 0.5
    with pytest.raises(ValueError, match="shape"):
        v += yoke.ones(2, 3)
    assert v.tolist() == [1, 1, 1] and i.tolist() == [3, 3]
    t = u = yoke.zeros(2)
    t += 1  # of a tensor that is a value: a new one, as with Python's numbers
    assert t.tolist() == [1, 1] and u.tolist() == [0, 0]


def test_random_numbers_by_numpys_names():
    def draw():
        yoke.random.seed(5)
        return [yoke.random.normal(2, 3, (1000,)), yoke.random.uniform(-1, 1, 1000), yoke.random.permutation(1000),
                yoke.random.randint(0, 6, (1000,)), yoke.random.rand(2, 3), yoke.random.randn(4), yoke.random.choice(5, 5, False),
                yoke.random.normal()]

    one, two = draw(), draw()
    assert all(np.array_equal(x.numpy(), y.numpy()) for x, y in zip(one, two))
    normal, uniform, order, whole, square, _, chosen, single = (x.numpy() for x in one)
    assert abs(normal.mean() - 2) < 0.5 and abs(normal.std() - 3) < 0.3 and -1 <= uniform.min() and uniform.max() < 1
    assert sorted(order.tolist()) == list(range(1000)) and order.tolist() != list(range(1000)) and set(whole.tolist()) == set(range(6))
    assert square.shape == (2, 3) and sorted(chosen.tolist()) == [0, 1, 2, 3, 4] and single.shape == ()
    assert not np.array_equal(yoke.random.rand(9).numpy(), yoke.random.rand(9).numpy())


def test_devices_have_names():
    assert "cpu:0" in yoke.devices() and yoke.zeros(2).device in yoke.devices() and yoke.nn.Linear(1, 1).weight.device in yoke.devices()
