# SPDX-License-Identifier: Apache-2.0
"""Two devices at once: copies, gradients through them, and cached memory."""
import os
import subprocess
import sys

import numpy as np
import pytest

import yoke
from yoke import nn

# Run in a process of its own, since plugins are looked for once.
TWO = """
import threading
import numpy as np, yoke
from yoke import nn, optim
there = "fault:0"
here = yoke.tensor([0.0]).device
assert here == "cpu:0"
x = np.linspace(-1, 1, 6, dtype="f4")
for kind in ("f32", "f64", "f16", "i8", "u8", "i32", "i64", "bool"):
    t = yoke.cast(yoke.tensor(x * 5), kind)
    u = t.to(there)
    assert (u.device, u.dtype, t.device) == (there, t.dtype, here)
    assert (u.numpy() == t.numpy()).all() and (u.to(here).numpy() == t.numpy()).all() and (u.cpu().numpy() == t.numpy()).all()
v = yoke.tensor(x)
assert v.to(here) is v and v.to(device=here) is v and v.to("f32", here) is v and v.to("cpu").device == here
assert v.to(there, yoke.f64).dtype is yoke.f64 and v.to("f16", there).device == there and v.to(yoke.device(there)).device == there
for wrong in (lambda: v.to(), lambda: v.to(there, here), lambda: v.to("f16", "f32"), lambda: v.to(device="f16", dtype=there)):
    try:
        wrong()
        raise SystemExit("no error")
    except (TypeError, yoke.DeviceError):
        pass
try:
    v + v.to(there)
    raise SystemExit("no error")
except ValueError as e:
    assert "yoke.to(" in str(e) and "another context" in str(e), e
try:
    v.to("nothing:0")
    raise SystemExit("no error")
except yoke.DeviceError as e:
    assert "nothing" in str(e) and "\\n" not in str(e), e

# gradients: d/dv sum exp(v)^2 w = 2 exp(2v) w, d/dw = exp(2v)
w = yoke.tensor(2 * x).to(there)
g, h = yoke.grad(lambda v, w: (yoke.exp(v).to(there).square() * w).sum(), (0, 1))(v, w)
assert (g.device, h.device) == (here, there)
np.testing.assert_allclose(g.numpy(), 4 * x * np.exp(2 * x), rtol=2e-5)
np.testing.assert_allclose(h.numpy(), np.exp(2 * x), rtol=2e-5)
assert ((g + v).numpy() == g.numpy() + x).all() and (h * w).device == there
second = yoke.grad(lambda v: yoke.grad(lambda v: (v.to(there) ** 3).sum().to(here))(v).sum())(v)
np.testing.assert_allclose(second.numpy(), 6 * x, rtol=1e-5)

# a network in two halves
a, b = nn.Linear(6, 6), nn.Linear(6, 1).to(there)
one, other = optim.SGD(a, lr=0.05), optim.SGD(b, lr=0.05)
xs = yoke.tensor(np.eye(6, dtype="f4"))
losses = []
for _ in range(8):
    z = a(xs).to(there)
    with yoke.device(there):
        loss = (b(z) - 1).square().mean()
    pa, pb = list(a.parameters().values()), list(b.parameters().values())
    grads = yoke.grad(loss, pa + pb)
    one.step(grads[:len(pa)])
    with yoke.device(there):
        other.step(grads[len(pa):])
    losses.append(loss.item())
assert losses[-1] < losses[0] / 2, losses

# another thread has contexts of its own, which end with it
got = []
def work():
    t = yoke.tensor(x)
    got.append(((t.to(there) * 2).to(here) + t).numpy())
    got.append(yoke.empty_cache())
for _ in range(3):
    k = threading.Thread(target=work)
    k.start()
    k.join()
assert len(got) == 6 and (got[0] == 3 * x).all() and all(n >= 0 for n in got[1::2])

big = yoke.tensor(np.zeros(1 << 22, "f4")).to(there)
del big
assert yoke.empty_cache() >= 1 << 24 and yoke.empty_cache() == 0
assert (v.numpy() == x).all() and (w.numpy() == 2 * x).all()
print("done")
"""


def test_two_devices():
    plugins = os.path.join(os.environ.get("YOKE_TEST_BUILD", ""), "tests", "fault", ".libs")
    if not os.path.exists(os.path.join(plugins, "yoke_fault.so")):
        pytest.skip("the build has no second device")
    r = subprocess.run([sys.executable, "-c", TWO], env={**os.environ, "YOKE_PLUGIN_PATH": plugins, "YOKE_BACKEND": "cpu"},
                       capture_output=True, text=True)
    assert r.returncode == 0 and r.stdout == "done\n", r.stdout + r.stderr


def test_one_device():
    x = yoke.tensor(np.arange(6, dtype="f4"))
    assert x.to(x.device) is x and x.to(x.device, "f64").dtype is yoke.f64
    with pytest.raises(yoke.DeviceError, match="cpu:99"):
        x.to("cpu:99")
    with pytest.raises(TypeError, match="no dtype"):
        x.to("float33")
    net = nn.Linear(2, 2)
    assert net.to(x.device) is net and net.to("f64").weight.dtype is yoke.f64


def test_empty_cache():
    x = yoke.tensor(np.zeros(1 << 22, "f4"))
    total = (x * 2 + 1).sum().item()
    kept, gone = yoke.tensor([1.0]) + 1, x + 1
    yoke.eval(kept, gone)
    yoke.empty_cache()
    reserved = yoke.stats().pool_reserved
    del x, gone
    freed = yoke.empty_cache()
    assert total == 1 << 22 and freed >= 1 << 24 and yoke.stats().pool_reserved == reserved - freed
    assert kept.item() == 2 and yoke.empty_cache() == 0
