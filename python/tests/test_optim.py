# SPDX-License-Identifier: Apache-2.0
"""Optimizers against PyTorch's in float64, on parameters of 0, 1, 2 and 4 axes together."""
import numpy as np
import pytest

import yoke
from yoke import optim

torch = pytest.importorskip("torch")

SHAPES = {"scale": (), "bias": (7,), "weight": (5, 3), "wide": (3, 8), "kernel": (4, 3, 2, 5)}
ADAM = [dict(), dict(lr=0.02, betas=(0.8, 0.95), eps=1e-4), dict(weight_decay=0.1)]
DECOUPLED = [*ADAM, dict(weight_decay=0.1, decoupled_weight_decay=True)]
CASES = [
    *[("NAdam", o) for o in [*DECOUPLED, dict(momentum_decay=0.1)]],
    *[("RAdam", o) for o in [*DECOUPLED, dict(betas=(0.9, 0.6))]],
    *[("Adamax", o) for o in ADAM],
    *[("Adafactor", o) for o in [dict(), dict(lr=0.1, beta2_decay=-0.5, weight_decay=0.1), dict(eps=(1e-3, 0.1), d=1.5), dict(eps=(None, 0.1))]],
    *[("Rprop", o) for o in [dict(), dict(lr=1e-3, etas=(0.3, 1.7), step_sizes=(5e-4, 2e-3))]],
    *[("ASGD", o) for o in [dict(), dict(lr=0.1, lambd=0.3, alpha=0.5, t0=3, weight_decay=0.1)]],
]


@pytest.fixture
def double():
    """PyTorch keeps step numbers and products of NAdam in the default dtype."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("kind, options", CASES, ids=lambda x: x if isinstance(x, str) else " ".join(map(str, x)) or "defaults")
def test_steps_are_pytorchs(double, rng, kind, options):
    start = {n: rng.normal(size=s) for n, s in SHAPES.items()}
    ours = {n: yoke.variable_of(x, n) for n, x in start.items()}
    theirs = {n: torch.tensor(x, requires_grad=True) for n, x in start.items()}
    a = getattr(optim, kind)(ours, **options)
    b = getattr(torch.optim, kind)(theirs.values(), **options)
    for _ in range(12):
        g = {n: rng.normal(size=s) for n, s in SHAPES.items()}
        with yoke.scope("step"):
            a.step({n: yoke.tensor(x) for n, x in g.items()})
            yoke.eval()
        for n, p in theirs.items():
            p.grad = torch.tensor(g[n])
        b.step()
    for n, p in theirs.items():
        want = p.detach().numpy()
        np.testing.assert_allclose(ours[n].numpy(), want, rtol=1e-11, atol=1e-12, err_msg=n)
        assert np.abs(want - start[n]).max() > 1e-4
        if kind == "ASGD":
            np.testing.assert_allclose(a.state(n, "average").numpy(), b.state[p]["ax"].numpy(), rtol=1e-11, atol=1e-12)


MUON = [dict(lr=0.02), dict(lr=0.01, momentum=0.5, nesterov=False, ns_steps=3, adjust_lr_fn="match_rms_adamw"),
        dict(lr=0.02, weight_decay=0.5, adjust_lr_fn="spectral_unclamped"), dict(adjust_lr_fn=None)]


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this PyTorch has no Muon")
@pytest.mark.parametrize("options", MUON, ids=lambda x: " ".join(x))
def test_muon_is_pytorchs(rng, options):
    """Both round the Newton-Schulz steps to bf16: to some per cent of the way."""
    start = {n: rng.normal(size=s).astype("f4") for n, s in {"wide": (20, 48), "tall": (33, 17), "square": (32, 32)}.items()}
    ours = {n: yoke.variable_of(x, n) for n, x in start.items()}
    theirs = {n: torch.tensor(x, requires_grad=True) for n, x in start.items()}
    a, b = optim.Muon(ours, **options), torch.optim.Muon(theirs.values(), **options)
    for _ in range(8):
        g = {n: rng.normal(size=x.shape).astype("f4") for n, x in start.items()}
        with yoke.scope("step"):
            a.step({n: yoke.tensor(x) for n, x in g.items()})
            yoke.eval()
        for n, p in theirs.items():
            p.grad = torch.tensor(g[n])
        b.step()
    for n, p in theirs.items():
        want = p.detach().numpy()
        np.testing.assert_allclose(a.state(n, "momentum").numpy(), b.state[p]["momentum_buffer"].numpy(), rtol=1e-4, atol=1e-6)
        assert np.linalg.norm(ours[n].numpy() - want) < 0.03 * np.linalg.norm(want - start[n]), n


def test_muon_updates_other_shapes_as_adamw(rng):
    p = {n: yoke.variable_of(np.ones(s), n) for n, s in SHAPES.items()}
    q = {n: yoke.variable_of(np.ones(s), n) for n, s in SHAPES.items()}
    a, b = optim.Muon(p, lr=0.1, adamw_lr=0.01, eps=1e-8), optim.AdamW(q, lr=0.01, weight_decay=0.1)
    a.set("w*", orthogonalize=False)
    for _ in range(3):
        g = {n: yoke.tensor(rng.normal(size=s)) for n, s in SHAPES.items()}
        a.step(g)
        b.step(g)
        yoke.eval()
    for n in SHAPES:
        np.testing.assert_allclose(p[n].numpy(), q[n].numpy(), rtol=1e-12)
    with pytest.raises(ValueError, match="changes which states"):
        a.set("weight", orthogonalize=True)


SEARCH = [dict(lr=0.1), dict(lr=0.05, history_size=3, max_iter=7), dict(line_search_fn="strong_wolfe"),
          dict(line_search_fn="strong_wolfe", lr=0.5, history_size=4, max_iter=9, max_eval=30)]


@pytest.mark.parametrize("options", SEARCH, ids=lambda x: " ".join(x))
def test_lbfgs_is_pytorchs(double, rng, options):
    """Rosenbrock's function in several parameters, whose Hessian is indefinite in places."""
    start = {n: rng.normal(size=s) for n, s in {"a": (3,), "b": (2, 2), "c": ()}.items()}
    ours = {n: yoke.variable_of(x, n) for n, x in start.items()}
    theirs = {n: torch.tensor(x, requires_grad=True) for n, x in start.items()}

    def loss(p, concat):
        x = concat([p[n].reshape(-1) for n in start])
        return (10 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    def closure():
        b.zero_grad()
        y = loss(theirs, torch.cat)
        y.backward()
        return y

    a, b = optim.LBFGS(ours, **options), torch.optim.LBFGS(theirs.values(), **options)
    for _ in range(4):
        got = a.step(lambda: yoke.value_and_grad(lambda p: loss(p, yoke.concat))(ours)).item()
        want = b.step(closure).item()
        assert got == pytest.approx(want, rel=1e-7)
        assert a.evaluations == b.state[theirs["a"]]["func_evals"]
    for n, p in theirs.items():
        np.testing.assert_allclose(ours[n].numpy(), p.detach().numpy(), rtol=1e-6, atol=1e-8, err_msg=n)


def test_lbfgs_of_a_module(rng):
    x, y = rng.normal(size=(40, 3)).astype("f4"), rng.normal(size=(40, 1)).astype("f4")
    net = yoke.nn.Linear(3, 1)
    o = optim.LBFGS(net, line_search_fn="strong_wolfe")
    o.step(lambda: yoke.value_and_grad(lambda net: ((net(yoke.tensor(x)) - yoke.tensor(y)) ** 2).mean())(net))
    want = np.linalg.lstsq(np.c_[x, np.ones(40)], y, rcond=None)[0].ravel()
    got = np.r_[net.weight.numpy().ravel(), net.bias.numpy()]
    np.testing.assert_allclose(got, want, atol=1e-3)
    with pytest.raises(ValueError, match="1 gradients for 2 parameters"):
        o.step(lambda: (yoke.tensor(1.0), [net.bias]))
    with pytest.raises(ValueError, match="strong_wolfe"):
        optim.LBFGS(net, line_search_fn="armijo")
