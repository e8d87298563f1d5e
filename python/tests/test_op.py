# SPDX-License-Identifier: Apache-2.0
"""Custom operations, and gradients."""
import numpy as np
import pytest

import yoke

TEXT = """#include "prologue.h"
KERNEL void triple(GLOBAL uchar *y, ulong y0, GLOBAL uchar *x, ulong x0)
{
	ulong i = GLOBAL_ID(0);
	((GLOBAL float *)(y + y0))[i] = 3 * ((GLOBAL const float *)(x + x0))[i];
}
"""


def test_an_op_of_a_decomposition_and_a_gradient(rng):
    a = rng.normal(size=(3, 4))
    triple = yoke.op("test.triple", source=TEXT, decompose=lambda x: x * 3, gradient=lambda i, o, g: [g[0] * 3])
    x = yoke.tensor(a.astype("f4"))
    np.testing.assert_allclose(triple(x).numpy(), 3 * a, rtol=1e-6)
    np.testing.assert_allclose(yoke.grad((triple(x) ** 2).sum(), [x])[0].numpy(), 18 * a, rtol=1e-5)
    triple.check(x)
    wrong = yoke.op("test.wrong", decompose=lambda x: x * 3, gradient=lambda i, o, g: [g[0] * 2])
    with pytest.raises(ValueError) as e:
        wrong.check(x)
    assert "\n" not in str(e.value)
    with pytest.raises(ValueError):
        yoke.op("test.triple", decompose=lambda x: x)
    with pytest.raises(ValueError):
        triple(x, x)

    def bad(x):
        raise KeyError("no such thing")

    with pytest.raises(ValueError, match="no such thing") as e:
        yoke.op("test.bad", decompose=bad)(x).numpy()
    assert "\n" not in str(e.value)
    assert (x + 1).shape == (3, 4)


def test_a_function_with_its_own_gradient(rng):
    a = rng.normal(0, 2, size=10)

    @yoke.custom_grad
    def clipped(x):
        return x.clamp(-1, 1)

    with pytest.raises(TypeError, match="no gradient of its own"):
        clipped(yoke.tensor(a))

    @clipped.gradient
    def _(inputs, outputs, g):
        return [g[0] * 7]

    x = yoke.tensor(a)
    np.testing.assert_allclose(clipped(x).numpy(), np.clip(a, -1, 1))
    np.testing.assert_allclose(yoke.grad(clipped(x).sum(), [x])[0].numpy(), np.full(10, 7.0))

    @yoke.custom_grad
    def both(x, y):
        return x + y, x * y

    both.gradient(lambda i, o, g: [g[0] + g[1], None])
    p, q = both(x, x * 2)
    y = yoke.tensor(a)
    s, t = both(x, y)
    gx, gy = yoke.grad((s + 2 * t).sum(), [x, y])
    np.testing.assert_allclose(gx.numpy(), np.full(10, 3.0))
    assert not gy.numpy().any()
    np.testing.assert_allclose(q.numpy(), 2 * a * a)
