# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms against NumPy in float64."""
import numpy as np
import pytest

import yoke

SIZES = [1, 2, 5, 12, 17, 100, 127, 1000, 1009, 4096]


def pairs(z):
    return np.stack([z.real, z.imag], -1)


def near(got, want, dtype="f8"):
    got, tol = got.numpy(), 1e-12 if dtype == "f8" else 1e-5
    want = pairs(want) if np.iscomplexobj(want) else want
    assert got.shape == want.shape and got.dtype == np.dtype(dtype)
    np.testing.assert_allclose(got, want, rtol=0, atol=tol * max(1, np.abs(want).max()))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_one_axis(n, norm, dtype, rng):
    x, z = rng.standard_normal((3, n)).astype(dtype), rng.standard_normal((n, 2, 2)).astype(dtype)
    c = z[..., 0] + 1j * z[..., 1]
    near(yoke.fft(z, axis=0, norm=norm), np.fft.fft(c, axis=0, norm=norm), dtype)
    near(yoke.ifft(z, axis=0, norm=norm), np.fft.ifft(c, axis=0, norm=norm), dtype)
    near(yoke.rfft(x, norm=norm), np.fft.rfft(x, norm=norm), dtype)
    if n > 1:
        near(yoke.irfft(z, axis=0, norm=norm), np.fft.irfft(c, axis=0, norm=norm), dtype)
        near(yoke.irfft(z, 2 * n - 1, 0, norm), np.fft.irfft(c, 2 * n - 1, 0, norm), dtype)


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"])
def test_several_axes(name, rng):
    z = rng.standard_normal((4, 5, 6)) + 1j * rng.standard_normal((4, 5, 6))
    a = z.real if name.startswith("rfft") else z
    near(getattr(yoke, name)(a), getattr(np.fft, name)(a))
    for s, axes in (((3, 7), (0, 2)), ((8, 4), (2, 0))):
        near(getattr(yoke, name)(a, s, axes, "ortho"), getattr(np.fft, name)(a, s, axes, "ortho"))


@pytest.mark.parametrize("n", [6, 7, 200])
def test_gradients(n, rng):
    x, w = rng.standard_normal((2, n)), rng.standard_normal((2, n // 2 + 1, 2))
    g = yoke.grad(lambda t: (yoke.rfft(t) * yoke.tensor(w)).sum())(yoke.tensor(x))
    k = np.arange(n // 2 + 1)[:, None] * np.arange(n)
    near(g, w[..., 0] @ np.cos(2 * np.pi * k / n) - w[..., 1] @ np.sin(2 * np.pi * k / n))


@pytest.mark.parametrize("center", [True, False])
def test_frames(center, rng):
    x, window = rng.standard_normal((2, 300)), np.hanning(25)[1:]
    z = yoke.stft(x, 32, 8, window=window, center=center)
    padded = np.pad(x, ((0, 0), (16, 16)), "reflect") if center else x
    frames = np.stack([padded[:, i:i + 32] for i in range(0, padded.shape[1] - 31, 8)], 1) * np.pad(window, 4)
    near(z, np.fft.rfft(frames).transpose(0, 2, 1))
    if center:
        near(yoke.istft(z, 32, 8, window=window, length=300), x)
    near(yoke.fftfreq(7, 0.5), np.fft.fftfreq(7, 0.5).astype("f4"), "f4")
    near(yoke.rfftfreq(8), np.fft.rfftfreq(8).astype("f4"), "f4")


def test_a_short_window_of_ones(rng):
    """win_length without a window: frames of so many ones, centred."""
    x = yoke.tensor(rng.standard_normal((2, 40)))
    want = yoke.stft(x, 8, 3, window=np.r_[0, np.ones(6), 0])
    np.testing.assert_allclose(yoke.stft(x, 8, 3, win_length=6).numpy(), want.numpy(), atol=1e-13)
