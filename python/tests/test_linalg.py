# SPDX-License-Identifier: Apache-2.0
"""yoke.linalg against numpy.linalg and scipy.linalg in float64."""
import numpy as np
import pytest

import yoke

scipy = pytest.importorskip("scipy.linalg")
L, N = yoke.linalg, np.linalg
TOL = {"f32": 2e-4, "f64": 1e-10}


def close(got, want, dtype="f64"):
    np.testing.assert_allclose(np.asarray(got, "f8"), np.asarray(want, "f8"), rtol=TOL[dtype], atol=TOL[dtype])


@pytest.mark.parametrize("dtype", TOL)
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (3, 5, 5), (2, 2, 17, 17), (40, 40), (2, 130, 130)])
def test_square_matrices_are_numpys(rng, shape, dtype):
    n = shape[-1]
    a = (rng.standard_normal(shape) / np.sqrt(n) + 2 * np.eye(n)).astype({"f32": "f4", "f64": "f8"}[dtype])
    b = rng.standard_normal((n, 3)).astype(a.dtype)
    t, wide = yoke.tensor(a), a.astype("f8")
    close(L.inv(t).numpy(), N.inv(wide), dtype)
    close(L.solve(t, b).numpy(), N.solve(wide, np.broadcast_to(b, shape[:-1] + (3,)).astype("f8")), dtype)
    close(L.solve(t, b[:, 0]).numpy(), N.solve(wide, np.broadcast_to(b[:, :1], shape[:-1] + (1,)).astype("f8"))[..., 0], dtype)
    sign, log = N.slogdet(wide)
    got = L.slogdet(t)
    close(got.sign.numpy(), sign, dtype)
    close(got.logabsdet.numpy(), log, dtype)
    np.testing.assert_allclose(L.det(t).numpy(), (sign * np.exp(log)).astype(a.dtype), rtol=TOL[dtype] * 10)
    close(L.matrix_power(t, 3).numpy() / 3.0**3, N.matrix_power(wide, 3) / 3.0**3, dtype)
    close(L.matrix_exp(t).numpy() / np.exp(2), np.stack([scipy.expm(m) for m in wide.reshape(-1, n, n)]).reshape(shape) / np.exp(2), dtype)
    p, lower, upper = (x.numpy().astype("f8") for x in L.lu(t))
    close(p @ lower @ upper, wide, dtype)


@pytest.mark.parametrize("dtype", TOL)
@pytest.mark.parametrize("shape", [(3, 3), (5, 2), (2, 5), (4, 33, 17), (2, 20, 70), (120, 110)])
def test_factorizations_are_numpys(rng, shape, dtype):
    a = rng.standard_normal(shape).astype({"f32": "f4", "f64": "f8"}[dtype])
    t, wide = yoke.tensor(a), a.astype("f8")
    values = N.svd(wide, compute_uv=False)
    close(L.svdvals(t).numpy(), values, dtype)
    for full in (False, True):
        u, s, vh = (x.numpy().astype("f8") for x in L.svd(t, full))
        want = N.svd(wide, full)
        assert u.shape == want[0].shape and vh.shape == want[2].shape
        k = s.shape[-1]
        close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], wide, dtype)
        close(u.swapaxes(-1, -2) @ u, np.broadcast_to(np.eye(u.shape[-1]), u.shape[:-2] + (u.shape[-1],) * 2), dtype)
        close(vh @ vh.swapaxes(-1, -2), np.broadcast_to(np.eye(vh.shape[-2]), vh.shape[:-2] + (vh.shape[-2],) * 2), dtype)
    for mode in ("reduced", "complete"):
        got = L.qr(t, mode)
        q, r = N.qr(wide, mode)
        close(got.Q.numpy(), q, dtype)
        close(got.R.numpy(), r, dtype)
    assert L.qr(t, "r").Q is None
    close(L.pinv(t).numpy(), N.pinv(wide), dtype)
    assert (L.matrix_rank(t).numpy() == min(shape[-2:])).all()
    close(L.cond(t).numpy() / N.cond(wide), np.ones(shape[:-2]), dtype)


@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (2, 6, 4)])
def test_least_squares_are_numpys(rng, shape):
    a, b = rng.standard_normal(shape), rng.standard_normal((*shape[:-1], 2))
    want = np.stack([N.lstsq(x, y, None)[0] for x, y in zip(a.reshape(-1, *shape[-2:]), b.reshape(-1, shape[-2], 2))])
    for driver in (None, "gels"):
        close(L.lstsq(a, b, driver=driver).solution.numpy().reshape(want.shape), want)
    if len(shape) == 2:
        low = np.concatenate([a, a[:, :1]], 1)
        got, one = L.lstsq(low, b[:, 0]), N.lstsq(low, b[:, 0], None)
        close(got.solution.numpy(), one[0])
        assert got.rank.item() == one[2]
        close(got.singular_values.numpy(), one[3])


def test_norms_and_products_are_numpys(rng):
    a = rng.standard_normal((3, 5, 4))
    for order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        close(L.norm(a, order, axis=(-2, -1)).numpy(), N.norm(a, order, axis=(-2, -1)))
        close(L.norm(a, order, axis=(2, 0), keepdims=True).numpy(), N.norm(a, order, axis=(2, 0), keepdims=True))
        close(L.norm(a[0], order).numpy(), N.norm(a[0], order))
    close(L.norm(a).numpy(), N.norm(a))
    close(L.norm(a[0, 0], 3).numpy(), N.norm(a[0, 0], 3))
    chain = [rng.standard_normal(s) for s in ((10, 100), (100, 5), (5, 50), (50,))]
    close(L.multi_dot(chain).numpy(), N.multi_dot(chain))
    close(L.multi_dot(chain[:-1]).numpy(), N.multi_dot(chain[:-1]))
    close(L.multi_dot([chain[3], chain[3]]).numpy(), chain[3] @ chain[3])
    spd = a[0] @ a[0].T + np.eye(5)
    close(L.cholesky(spd, upper=True).numpy(), N.cholesky(spd).T)
    close(L.eigh(spd, "U").eigenvalues.numpy(), N.eigvalsh(spd))
    close(L.solve_triangular(np.triu(spd), a[0], upper=True).numpy(), scipy.solve_triangular(spd, a[0]))
    close(L.solve_triangular(spd, a[0].T, left=False).numpy(), scipy.solve_triangular(spd.T, a[0]).T)


def test_a_matrix_without_inverse(rng):
    a = np.ones((2, 3, 3))
    for call in (L.inv, lambda x: L.solve(x, np.ones((3, 1)))):
        with pytest.raises(IndexError, match="singular"):
            call(a).numpy()
    assert (L.det(a).numpy() == 0).all()
    assert (L.slogdet(a).logabsdet.numpy() == -np.inf).all()
    assert (L.matrix_rank(a).numpy() == 1).all()
    close(L.pinv(a).numpy(), N.pinv(a))
    with pytest.raises(ValueError, match=r"inv.*\[2,3\]"):
        L.inv(np.ones((2, 3)))


def test_gradients_of_the_pseudoinverse_at_equal_values_are_finite():
    x = yoke.tensor(np.eye(4) * 3.0)
    u, s, vh = L.svd(x)
    for y in (L.pinv(x).sum(), (u * s).sum() + vh.sum(), L.svdvals(x).sum(), L.det(x)):
        assert np.isfinite(yoke.grad(y, [x])[0].numpy()).all()
