# SPDX-License-Identifier: Apache-2.0
"""Modules, optimizers and the loop."""
import gc
import os
import subprocess
import sys

import numpy as np
import pytest

import yoke
from yoke import nn, optim


class Net(nn.Module):
    def __init__(self):
        self.layers = [nn.Linear(4, 8), nn.Linear(8, 3)]
        self.scale = nn.Parameter(np.ones(3, "f4"))
        self.seen = nn.Buffer(shape=(), dtype="f32")
        self.hidden = None

    def forward(self, x, factor=1.0):
        self.hidden = self.layers[0](x).relu()
        return self.layers[1](self.hidden) * self.scale * factor


NAMES = ["scale", "seen", "layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"]


def test_a_class_with_attributes_is_a_module(rng, tmp_path):
    net = Net()
    assert list(net.parameters()) == [n for n in NAMES if n != "seen"]
    state = net.state_dict()
    assert list(state) == NAMES
    x = rng.normal(size=(5, 4)).astype("f4")
    w = {n: a.astype("f8") for n, a in state.items()}
    hidden = np.maximum(x @ w["layers.0.weight"].T + w["layers.0.bias"], 0)
    want = (hidden @ w["layers.1.weight"].T + w["layers.1.bias"]) * 2
    got = net(yoke.tensor(x), factor=2.0)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6)
    # what the module remembers is alive behind its call
    np.testing.assert_allclose(net.hidden.numpy(), hidden, rtol=1e-5, atol=1e-6)
    net.save(tmp_path / "a.safetensors")
    other = Net()
    other.load(tmp_path / "a.safetensors")
    for n in NAMES:
        assert np.array_equal(other.state_dict()[n], state[n])
    safetensors = pytest.importorskip("safetensors.numpy")
    assert sorted(safetensors.load_file(tmp_path / "a.safetensors")) == sorted(NAMES)


def test_weights_of_another_network_change_nothing(tmp_path):
    net = Net()
    before = net.state_dict()
    state = dict(before)
    del state["scale"]
    state["extra"] = np.zeros(1)
    state["layers.0.bias"] = np.zeros(99)
    with pytest.raises(ValueError) as e:
        net.load_state_dict(state)
    for name in ("scale", "extra", "layers.0.bias"):
        assert name in str(e.value)
    assert "\n" not in str(e.value)
    nn.Linear(4, 2).save(tmp_path / "b.safetensors")
    with pytest.raises(ValueError):
        net.load(tmp_path / "b.safetensors")
    for n in NAMES:
        assert np.array_equal(net.state_dict()[n], before[n])
    state = {n: a + 1 for n, a in before.items()}
    net.load_state_dict(state)
    assert np.array_equal(net.scale.numpy(), before["scale"] + 1)
    net.scale = np.zeros(3)
    assert net.scale.numpy().tolist() == [0, 0, 0]


def test_bad_modules_are_errors(rng):
    net = Net()
    with pytest.raises(ValueError, match="already"):
        net.layers = [nn.Linear(1, 1)]
    with pytest.raises(ValueError, match="part of"):
        other = Net()
        other.again = net.layers[0]
    with pytest.raises(ValueError):
        net.me = net
    with pytest.raises(ValueError, match="no parameter has a name"):
        net.freeze("nothing*")
    with pytest.raises(AttributeError):
        net.nothing
    with pytest.raises(NotImplementedError):
        nn.Module()(1)
    with pytest.raises(ValueError):
        nn.Activation("frob")
    with pytest.raises(ValueError):
        net(yoke.tensor(rng.normal(size=(5, 7)).astype("f4")))
    # an exception in forward leaves no scope open
    class Bad(nn.Module):
        def forward(self, x):
            raise KeyError("mine")
    with pytest.raises(KeyError, match="mine"):
        Bad()(yoke.tensor([1.0]))
    with pytest.raises(KeyError, match="mine"):
        nn.Sequential(nn.ReLU(), Bad())(yoke.tensor([1.0]))
    assert (yoke.tensor([1.0]) + 1).item() == 2


def test_modules_of_python_and_c_contain_each_other(rng):
    class Double(nn.Module):
        def __init__(self):
            self.w = nn.Parameter([2.0])

        def forward(self, x):
            return x * self.w

    net = nn.Sequential(nn.Linear(3, 3), Double(), nn.Residual(nn.Linear(3, 3)))
    assert list(net.parameters()) == ["0.weight", "0.bias", "1.w", "2.inner.weight", "2.inner.bias"]
    x = rng.normal(size=(2, 3)).astype("f4")
    s = {k: v.astype("f8") for k, v in net.state_dict().items()}
    h = (x @ s["0.weight"].T + s["0.bias"]) * 2
    want = h + h @ s["2.inner.weight"].T + s["2.inner.bias"]
    np.testing.assert_allclose(net(yoke.tensor(x)).numpy(), want, rtol=1e-5, atol=1e-6)
    inner = nn.Linear(2, 2)
    weight = inner.weight
    del net
    holder = nn.Sequential(inner)
    del holder
    assert inner(yoke.tensor([[1.0, 2.0]])).shape == (1, 2) and weight.shape == (2, 2)


def test_frozen_parameters_are_not_trained(rng):
    net = Net()
    net.freeze("layers.0.*")
    assert list(net.parameters()) == ["scale", "layers.1.weight", "layers.1.bias"]
    before = net.state_dict()
    x, y = rng.normal(size=(8, 4)).astype("f4"), rng.normal(size=(8, 3)).astype("f4")
    yoke.fit(net, [(x, y)] * 3, yoke.mse, optim.SGD(net, lr=0.1))
    after = net.state_dict()
    for n in NAMES:
        assert np.array_equal(after[n], before[n]) == (n in ("seen", "layers.0.weight", "layers.0.bias")), n


def test_dropout_and_batch_norm_know_training(rng):
    net = nn.Sequential(nn.BatchNorm(4), nn.Dropout(0.5))
    x = rng.normal(2, 3, (64, 4)).astype("f4")
    assert net.training
    out = net(yoke.tensor(x)).numpy()
    assert (out == 0).mean() > 0.2
    net.eval()
    assert not net.training
    s = net.state_dict()
    want = (x - s["0.running_mean"]) / np.sqrt(s["0.running_var"] + 1e-5)
    np.testing.assert_allclose(net(yoke.tensor(x)).numpy(), want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(s["0.running_mean"], 0.1 * x.mean(0), rtol=1e-4, atol=1e-5)
    net.train()
    assert net.training


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "i64", "i32", "u8", "i8", "bool"])
def test_making_a_network_evaluates_nothing(dtype):
    class Counted(nn.Module):
        def __init__(self):
            self.b = nn.Buffer(shape=(3, 2), dtype=dtype, value=1)
            self.norm = nn.BatchNorm(4)
            self.up = nn.Linear(4, 5)

    evals = yoke.stats().evals
    net = Counted()
    assert yoke.stats().evals == evals
    assert yoke.cast(net.b, "f32").numpy().tolist() == [[1, 1]] * 3
    assert net.norm.running_var.numpy().tolist() == [1] * 4
    if not dtype.startswith(("f", "b")):
        with pytest.raises((ValueError, TypeError, IndexError)):
            net.more = nn.Buffer(shape=(3,), dtype=dtype, value=1.5)


@pytest.mark.parametrize("kind", ["SGD", "HeavyBall", "Adam", "AdamW", "LAMB", "RMSprop", "Adagrad", "Adadelta", "Accelerated",
                                  "NAdam", "RAdam", "Adamax", "Rprop", "ASGD", "Muon", "Adafactor"])
def test_optimizers_go_downhill(kind):
    p = {"a": yoke.variable_of(np.array([3.0, -2.0], "f4"), "a")}
    o = getattr(optim, kind)(p, lr={"Adadelta": 1.0, "Adagrad": 0.5, "LAMB": 0.05}.get(kind, 0.05))
    first = None
    for _ in range(20):
        with yoke.scope("step"):
            loss, g = yoke.value_and_grad(lambda q: (q["a"] ** 2).sum())(p)
            o.step(g)
            first = first or loss.item()
            last = loss.item()
    assert last < first and o.steps == 20


def test_adamw_is_its_formula(rng):
    a, g = rng.normal(size=7), rng.normal(size=(5, 7))
    v = yoke.variable_of(a)
    o = optim.AdamW({"a": v}, lr=0.01, weight_decay=0.1)
    m = s = np.zeros(7)
    for t in range(1, 6):
        o.step([yoke.tensor(g[t - 1])])
        yoke.eval()
        a = a * (1 - 0.01 * 0.1)
        m, s = 0.9 * m + 0.1 * g[t - 1], 0.999 * s + 0.001 * g[t - 1] ** 2
        a = a - 0.01 * (m / (1 - 0.9 ** t)) / (np.sqrt(s / (1 - 0.999 ** t)) + 1e-8)
    # what cancels is as exact as what it was made of, some 1
    np.testing.assert_allclose(v.numpy(), a, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(o.state("a", "m").numpy(), m, rtol=1e-12, atol=1e-14)
    with pytest.raises(ValueError, match="no gradient of a"):
        o.step({"b": v})
    with pytest.raises(ValueError):
        o.step([])
    with pytest.raises(ValueError):
        optim.AdamW({"a": v}, lrate=1)


def test_optimizers_states_are_saved(tmp_path, rng):
    def make():
        v = yoke.variable_of(np.ones(4, "f4"), "v")
        return v, optim.Adam({"v": v}, lr=0.1)

    v, o = make()
    g = [yoke.tensor(rng.normal(size=4).astype("f4")) for _ in range(4)]
    for x in g[:2]:
        o.step([x])
        yoke.eval()
    o.save(tmp_path / "o.safetensors")
    w, q = make()
    yoke.put(w, v.numpy())
    q.load(tmp_path / "o.safetensors")
    for x in g[2:]:
        o.step([x])
        q.step([x])
        yoke.eval()
    assert np.array_equal(v.numpy(), w.numpy()) and q.steps == 4
    assert o.lr() == pytest.approx(0.1)


def test_fit_takes_any_iterable_and_accumulates(rng):
    x, y = rng.normal(size=(32, 4)).astype("f4"), rng.normal(size=(32, 3)).astype("f4")

    def run(**how):
        yoke.random_set(5)
        net = Net()
        state = {n: np.full_like(a, 0.1) for n, a in net.state_dict().items()}
        net.load_state_dict(state)
        return yoke.fit(net, loss=yoke.mse, optimizer=optim.SGD(net, lr=0.1), **how)

    whole = run(data=[(x, y)], epochs=3)
    halves = run(data=lambda: ((x[i:i + 16], y[i:i + 16]) for i in (0, 16)), epochs=3, accumulate=2)
    np.testing.assert_allclose(whole, halves, rtol=1e-5)
    assert whole[2] < whole[0]
    seen = []
    valid = run(data=[[yoke.tensor(x), yoke.tensor(y)]], valid=[(x, y)], log=lambda s: seen.append((s.step, s.loss, s.valid)))
    assert len(valid) == 2 and seen[0][:2] == (1, valid[0]) and seen[1][2] == valid[1] < valid[0]
    # three batches for steps of two: the last one is left out
    assert run(data=[(x, y)] * 3, accumulate=2) == pytest.approx(whole[:1], rel=1e-5)
    assert run(data=[(x, y)] * 5, log=lambda s: s.step == 2) == pytest.approx(whole[:2], rel=1e-5)
    assert len(run(data=[(x, y)] * 9, steps=4)) == 4


class Deep(nn.Module):
    def __init__(self):
        self.body = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm(16), nn.GELU(), nn.Dropout(0.2))
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.body(x))


@pytest.mark.parametrize("precision", ["fp32", "fp16-mixed"])
@pytest.mark.parametrize("kind", ["loader", "list"])
def test_a_run_that_is_resumed_has_the_bits_of_an_unbroken_one(kind, precision, rng, tmp_path):
    x, y = rng.normal(size=(64, 4)).astype("f4"), rng.normal(size=(64, 3)).astype("f4")
    samples = yoke.dataset_new(lambda n: (x[n], y[n]), 64, [("x", "f32", (4,)), ("y", "f32", (3,))], "rows")

    def run(steps, out):
        data = yoke.loader_new(samples, "batch=8 seed=3") if kind == "loader" else [(x[i::8], y[i::8]) for i in range(8)]
        yoke.random_set(3)
        net = Deep()
        losses = yoke.fit(net, data, yoke.mse, optim.AdamW(net, lr=1e-2, clip=1, schedule="cosine", steps=14, warmup=3), epochs=9,
                          steps=steps, accumulate=2, valid=[(x, y)], valid_every=5, out=out, resume=True, save_every=4, seed=5,
                          precision=precision, allow_emulated=True)
        return losses, net.state_dict()

    whole, state = run(14, tmp_path / "whole")
    first, _ = run(5, tmp_path / "parts")
    rest, again = run(14, tmp_path / "parts")
    assert len(whole) == 15 and whole == first[:-1] + rest
    assert all(np.array_equal(state[n], again[n]) for n in state)
    net = Deep()
    with pytest.raises(ValueError, match="resume"):
        yoke.fit(net, [(x, y)], yoke.mse, out=tmp_path / "whole")


RANKS = """
import sys
import numpy as np
import yoke
from yoke import nn, optim
rng = np.random.default_rng(3)
x, y = rng.normal(size=(64, 4)).astype("f4"), rng.normal(size=(64, 3)).astype("f4")
yoke.random_set(3)
net = nn.Sequential(nn.Linear(4, 16), nn.GELU(), nn.Dropout(0.2), nn.Linear(16, 3))
losses = yoke.fit(net, [(x[i::8], y[i::8]) for i in range(8)], yoke.mse, optim.AdamW(net, lr=1e-2), epochs=3, out=sys.argv[1],
                  accumulate=int(sys.argv[2]), ranks=int(sys.argv[3]), zero=int(sys.argv[4]), seed=5)
np.savez(sys.argv[5], losses=losses, **net.state_dict())
"""


@pytest.mark.parametrize("zero", ["0", "2"])
def test_processes_of_a_launcher_train_one_network(zero, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(RANKS)

    def start(rank, *args):
        env = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "localhost",
               "MASTER_PORT": "1"} if rank else {}
        return subprocess.Popen([sys.executable, str(program), *map(str, args)], env={**os.environ, **env})

    ranks = [start(r, tmp_path / "two", 2, 2, zero, tmp_path / f"{r}.npz") for r in "01"]
    alone = start(None, tmp_path / "one", 4, 1, 0, tmp_path / "one.npz")
    assert [p.wait(600) for p in (*ranks, alone)] == [0, 0, 0]
    whole = np.load(tmp_path / "one.npz")
    for r in "01":
        mine = np.load(tmp_path / f"{r}.npz")
        assert all(np.array_equal(whole[n], mine[n]) for n in whole.files)


def test_what_a_run_calls_may_raise(rng):
    x, y = rng.normal(size=(8, 4)).astype("f4"), rng.normal(size=(8, 3)).astype("f4")
    net = Net()

    def bad(*_):
        raise KeyError("mine")

    def batches():
        yield x, y
        raise KeyError("mine")

    for how in (dict(loss=bad), dict(data=batches), dict(log=bad), dict(valid=batches)):
        with pytest.raises(KeyError, match="mine"):
            yoke.fit(net, **{"data": [(x, y)], "loss": yoke.mse, **how})
    with pytest.raises(TypeError, match="gives a tensor"):
        yoke.fit(net, [(x, y)], lambda *_: 3)
    with pytest.raises(ValueError, match="24 numbers"):
        yoke.fit(net, [(x, y)], lambda a, b: a - b)
    with pytest.raises(ValueError, match="optimizer"):
        yoke.fit(net, [(x, y)], yoke.mse, optim.SGD(Net(), lr=0.1))
    kept = []
    yoke.fit(net, [(x, y)], lambda a, b: (kept.append(a), yoke.mse(a, b))[1])
    with pytest.raises(ValueError, match="after its scope ended"):
        kept[0] + 1
    assert (yoke.tensor([1.0]) + 1).item() == 2 and yoke.error_code() == 0


def test_a_networks_memory_is_flat_over_inferences(rng):
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval()
    x = yoke.tensor(rng.normal(size=(2, 8)).astype("f4"))

    def some(n):
        for _ in range(n):
            with yoke.scope("use"):
                net(x).numpy()

    gc.collect()
    yoke.trim()  # what earlier tests left
    some(20)
    s = yoke.stats()
    some(300)
    t = yoke.stats()
    assert (t.live_handles, t.pool_allocated, t.pool_reserved, t.plans) == (
        s.live_handles, s.pool_allocated, s.pool_reserved, s.plans)


def test_loaders_read_by_a_python_function():
    d = yoke.dataset_new(lambda n: (np.full(3, n, "f4"), n % 2), 10, [("x", "f32", (3,)), ("y", "i32", ())], "mine")
    assert yoke.dataset_count(d) == 10 and yoke.dataset_name(d) == "mine"
    assert [f.name for f in yoke.dataset_fields(d)] == ["x", "y"]
    a, b = yoke.dataset_read(d, 7)
    assert a.tolist() == [7, 7, 7] and b == 1
    loader = yoke.loader_new(d, "batch=4 shuffle=0 last=drop epochs=1 workers=1")
    got = []
    while (batch := yoke.loader_next(loader)) is not None:
        got += batch[0].numpy()[:, 0].tolist()
        assert batch[1].dtype is yoke.i32
    assert got == list(range(8))
    bad = yoke.dataset_new(lambda n: np.zeros(5, "f4"), 4, [("x", "f32", (3,))], "bad")
    with pytest.raises(OSError, match="another shape"):
        yoke.loader_next(yoke.loader_new(bad, "batch=2 workers=0"))


def test_several_files_under_an_index(tmp_path):
    import json
    safetensors = pytest.importorskip("safetensors.numpy")
    net, other = Net(), Net()
    net.save(tmp_path / "net.safetensors.index.json", max_bytes=100)
    index = json.loads((tmp_path / "net.safetensors.index.json").read_text())
    state, seen = net.state_dict(), {}
    assert index["metadata"]["total_size"] == sum(a.nbytes for a in state.values())
    for file in sorted(set(index["weight_map"].values())):
        part = safetensors.load_file(tmp_path / file)
        assert all(index["weight_map"][n] == file for n in part)
        seen.update(part)
    assert list(sorted(seen)) == sorted(NAMES) and all(np.array_equal(seen[n], state[n]) for n in NAMES)
    # as others write them, in another dtype
    files = {"a-1.safetensors": NAMES[:3], "a-2.safetensors": NAMES[3:]}
    for file, names in files.items():
        safetensors.save_file({n: state[n].astype("f8") for n in names}, tmp_path / file)
    text = {"metadata": {}, "weight_map": {n: f for f, names in files.items() for n in names}}
    (tmp_path / "a.index.json").write_text(json.dumps(text))
    other.load(tmp_path / "a.index.json")
    assert all(np.array_equal(other.state_dict()[n], state[n]) for n in NAMES)
    with pytest.raises(TypeError, match="F64, not f32"):
        other.load(tmp_path / "a.index.json", exact=True)
    (tmp_path / "a-2.safetensors").unlink()
    with pytest.raises(ValueError, match="'a-2.safetensors' is not in its directory"):
        net.load(tmp_path / "a.index.json")
    with pytest.raises(ValueError, match="an index is called"):
        net.save(tmp_path / "b.safetensors", max_bytes=100)
    assert all(np.array_equal(net.state_dict()[n], state[n]) for n in NAMES)


def test_a_loop_draws_new_numbers_in_each_round():
    """Dropout in a scope, in a module alone, and after the same seed was set again."""
    net = nn.Dropout(0.5)

    def rounds(scoped):
        masks = []
        for _ in range(4):
            if scoped:
                with yoke.scope("step"):
                    masks.append(net(yoke.ones(200)).numpy())
            else:
                masks.append(net(yoke.ones(200)).numpy())
        return masks

    for scoped in (True, False):
        yoke.random.seed(3)
        first = rounds(scoped)
        assert not any(np.array_equal(a, b) for k, a in enumerate(first) for b in first[:k])
        yoke.random.seed(3)
        assert all(np.array_equal(a, b) for a, b in zip(first, rounds(scoped)))
    assert not np.array_equal(yoke.randn(9).numpy(), (net(yoke.ones(2)), yoke.randn(9))[1].numpy())
