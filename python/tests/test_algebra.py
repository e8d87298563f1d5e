# SPDX-License-Identifier: Apache-2.0
"""Eigenvalues, Cholesky factors and triangular systems against NumPy's."""
import numpy as np
import pytest

import yoke


def symmetric(rng, n, values):
    q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return (q * values) @ q.T


SPECTRA = {
    "random": lambda rng, n: rng.uniform(-1, 1, n),
    "clustered": lambda rng, n: 1 + 1e-13 * rng.uniform(-1, 1, n) + 3 * (np.arange(n) % 3),
    "equal": lambda rng, n: np.ones(n),
    "zero": lambda rng, n: np.zeros(n),
    "huge": lambda rng, n: 1e150 * rng.uniform(-1, 1, n),
    "tiny": lambda rng, n: 1e-200 * rng.uniform(-1, 1, n),
}


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("n", [1, 2, 17, 50, 130])
def test_eigh_is_numpys(rng, spectrum, n):
    a = np.stack([symmetric(rng, n, SPECTRA[spectrum](rng, n)) for _ in range(2)])
    a = (a + a.transpose(0, 2, 1)) / 2
    w, v = (t.numpy() for t in yoke.eigh(yoke.tensor(a, "f64")))
    want = np.linalg.eigvalsh(a)
    scale = abs(want).max(axis=-1, keepdims=True) + (abs(want).max() == 0)
    eps = 50 * n * 2.0**-53
    assert (abs(w - want) / scale).max() <= eps
    assert (abs(a @ v - v * w[:, None]) / scale[..., None]).max() <= eps
    assert abs(v.transpose(0, 2, 1) @ v - np.eye(n)).max() <= eps


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("n", [1, 3, 33, 100])
def test_factors_and_systems_are_numpys(rng, dtype, n):
    x, b = rng.standard_normal((3, n, 2 * n + 2)), rng.standard_normal((3, n, 5))
    a = x @ x.transpose(0, 2, 1) / n + np.eye(n)
    a, b = yoke.tensor(a, dtype), yoke.tensor(b, dtype)
    wide, right = a.numpy().astype("f8"), b.numpy().astype("f8")
    tol = {"f32": 1e-4, "f64": 1e-12}[dtype]
    factor = np.linalg.cholesky(wide)
    got = yoke.cholesky(a)
    np.testing.assert_allclose(got.numpy(), factor, rtol=tol, atol=tol)
    solved = yoke.solve_triangular(yoke.tensor(factor, dtype), b, 0)
    np.testing.assert_allclose(solved.numpy(), np.linalg.solve(factor, right), rtol=tol, atol=tol)


@pytest.mark.parametrize("n", [2, 6])
def test_gradients_of_values_are_theirs(rng, n):
    """The gradient of the sum of c w is V diag(c) V'; of the sum of squares 2 A, at equal values as well."""
    for a in (symmetric(rng, n, np.arange(n) + 1.0), np.eye(n)):
        x = yoke.tensor((a + a.T) / 2, "f64")
        g = yoke.grad((yoke.eigh(x)[0] ** 2).sum(), [x])[0].numpy()
        assert np.isfinite(g).all()
        np.testing.assert_allclose((g + g.T) / 2, 2 * x.numpy(), rtol=1e-9, atol=1e-9)


def dense(a, b, c, z, left=False):
    h = np.diag(np.asarray(a, complex)) + np.diag(b, 1) + np.diag(c, -1)
    n = len(a)
    if left:
        return np.array([np.linalg.inv(h[:i + 1, :i + 1] - z * np.eye(i + 1))[i, i] for i in range(n)])
    return np.diag(np.linalg.inv(h - z * np.eye(n)))


def test_resolvent():
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=9), rng.normal(size=8), rng.normal(size=8)
    one = np.ones(8)

    def got(*args, **how):
        y = yoke.resolvent(*args, **how).numpy()
        return y[..., 0] + 1j * y[..., 1]

    assert np.allclose(got(a, z=0.3 + 1j), dense(a, one, one, 0.3 + 1j), atol=1e-5)
    assert np.allclose(got(a, b, b, 0.3 + 0.5j, side="left"), dense(a, b, b, 0.3 + 0.5j, True), atol=1e-5)
    z = np.array([0.1 + 1j, 0.2 - 1j])
    many = got(a, b, z=z)
    assert many.shape == (2, 9)
    for k in range(2):
        assert np.allclose(many[k], dense(a, b, one, z[k]), atol=1e-5)
    assert np.allclose(got(a, None, c, np.array([0.1, 1.0]), tier="f64"), dense(a, one, c, 0.1 + 1j), atol=1e-5)
    assert np.allclose(got([1, 2, 3]), dense([1, 2, 3], np.ones(2), np.ones(2), 1j), atol=1e-5)
    assert np.allclose(got(a, b, c, 7.5), dense(a, b, c, 7.5), atol=1e-6)
    assert np.allclose(got(a, z=np.array([-6, 6 + 0j]))[0], dense(a, one, one, -6), atol=1e-6)
    for bad in ({"z": np.array([1.0, 2.0, 3.0])}, {"side": "up"}, {"imag": a, "tier": "half"}, {"imag": a, "gradient": "diag"}):
        with pytest.raises(ValueError):
            yoke.resolvent(a, **bad)
    with pytest.raises(ValueError):
        yoke.resolvent(a + 1j, imag=a)
    with pytest.raises(IndexError):
        yoke.resolvent([0.0, 0.0, 0.0], z=0.0).numpy()


def pairs(y):
    y = y.numpy()
    return y[..., 0] + 1j * y[..., 1]


@pytest.mark.parametrize("n", [1, 2, 7, 64, 211])
@pytest.mark.parametrize("z", [9.0, 0.1234, 0.3 + 0.2j, -0.5 - 0.1j])
def test_chains_with_self_energies(rng, n, z):
    """Complex elements on the diagonal: all as numpy's, on the real axis as well."""
    a = yoke.tensor(rng.normal(size=n), "f64")
    im = -rng.uniform(size=n)
    b, c = rng.uniform(0.4, 1.4, n - 1), rng.uniform(0.4, 1.4, n - 1)
    h = np.diag(a.numpy() + 1j * im) + np.diag(b, 1) + np.diag(c, -1) - z * np.eye(n)
    full = np.linalg.inv(h)
    np.testing.assert_allclose(pairs(yoke.resolvent(a, b, c, z, imag=im)), np.diag(full), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(pairs(yoke.resolvent_corner(a, b, c, z, imag=im)), full[0, -1], rtol=1e-9, atol=1e-290)
    sign, size = np.linalg.slogdet(-h)
    det = pairs(yoke.resolvent_log_det(a, b, c, z, imag=im))
    assert abs(det.real - size) < 1e-10 * n and abs(np.exp(1j * det.imag) - sign) < 1e-9
    x = yoke.tensor([complex(z).real, complex(z).imag], "f64")
    g = yoke.grad(yoke.resolvent_log_det(a, b, c, x, imag=im)[0], [x])[0].numpy()
    np.testing.assert_allclose(g[0] - 1j * g[1], -np.trace(full), rtol=1e-9)


def test_a_complex_diagonal():
    a = np.array([0.5 - 1j, 0.25, -0.5j])
    h = np.diag(a) + np.diag([1, 1], 1) + np.diag([1, 1], -1)
    full = np.linalg.inv(h - 0.3 * np.eye(3))
    assert np.allclose(pairs(yoke.resolvent(a, z=0.3)), np.diag(full), atol=1e-6)
    assert np.allclose(pairs(yoke.resolvent_corner(a, z=0.3)), full[0, 2], atol=1e-6)


def test_the_transmission_of_the_help_text():
    text = yoke.resolvent_corner.__doc__
    lines = [line.strip() for line in text.split("\n") if line.startswith("        ")]
    names = {"numpy": np, "yoke": yoke}
    exec("\n".join(lines), names)
    assert names["T"].shape == (39,) and np.allclose(names["T"], 1, atol=1e-5)
