# SPDX-License-Identifier: Apache-2.0
"""Modules as PyTorch's users write them: assigned and tied weights, containers, printing, copies, pickles, autocast, fit."""
import copy
import inspect
import pickle
import warnings

import numpy as np
import pytest

import yoke
from yoke import nn, optim

X = np.arange(12, dtype="f4").reshape(3, 4) / 10


@pytest.mark.parametrize("of", ["array", "list", "tensor", "Parameter", "f64"])
def test_weights_of_layers_are_set(of):
    w = np.arange(8, dtype="f4").reshape(2, 4)
    layer = nn.Linear(4, 2, bias=False)
    layer.weight = {"array": w, "list": w.tolist(), "tensor": yoke.tensor(w), "Parameter": nn.Parameter(w), "f64": yoke.tensor(w, "f64")}[of]
    assert np.array_equal(layer.weight.numpy(), w) and layer.weight.dtype is yoke.f32
    np.testing.assert_allclose(layer(yoke.tensor(X)).numpy(), X @ w.T, rtol=1e-6)
    assert list(layer.parameters()) == ["weight"]
    for bad in (np.zeros((4, 2)), nn.Parameter(np.zeros(3)), yoke.zeros(8)):
        with pytest.raises(ValueError):
            layer.weight = bad
    assert np.array_equal(layer.weight.numpy(), w)


def test_every_layers_parameters_are_set():
    made = [nn.Linear(3, 2), nn.Embedding(4, 3), nn.LayerNorm(3), nn.RMSNorm(3), nn.GroupNorm(1, 2), nn.BatchNorm(3), nn.Conv1d(2, 2, 3),
            nn.Conv2d(1, 2, 3), nn.ConvTransposed2d(1, 2, 3)]
    for layer in made:
        for name in layer.state_dict():
            setattr(layer, name, np.full(getattr(layer, name).shape, 0.25))
            assert (layer.state_dict()[name] == 0.25).all(), (layer, name)
            with pytest.raises(ValueError):
                setattr(layer, name, np.zeros((7, 7, 7)))
        layer.note = "kept"
        assert layer.note == "kept" and "note" not in layer.state_dict()


def test_tied_weights_are_one():
    a, b = nn.Linear(4, 4), nn.Linear(4, 4)
    b.weight = a.weight
    a.weight = np.eye(4) * 3
    np.testing.assert_allclose((b(yoke.tensor(X)) - b.bias).numpy(), 3 * X, rtol=1e-5, atol=1e-6)
    net = nn.Sequential(a, nn.Tanh(), b)
    assert list(net.parameters()) == ["0.weight", "0.bias", "2.bias"]
    loss = lambda n: (n(yoke.tensor(X)) ** 2).sum()
    g = yoke.grad(loss)(net)["0.weight"].numpy()
    eps, want = 1e-2, np.zeros((4, 4))
    for i in range(4):
        for k in range(4):
            for sign in (1, -1):
                w = np.eye(4) * 3
                w[i, k] += sign * eps
                b.weight = w
                want[i, k] += sign * loss(net).item() / (2 * eps)
    np.testing.assert_allclose(g, want, rtol=0.02, atol=0.02)

    class Text(nn.Module):
        def __init__(self):
            self.embed = nn.Embedding(6, 4)
            self.head = nn.Linear(4, 6, bias=False)
            self.embed.weight = self.head.weight  # the second one comes first

        def forward(self, ids):
            return self.head(self.embed(ids))

    net = Text()
    assert list(net.parameters()) == ["embed.weight"]
    optim.AdamW(net, lr=0.1)
    with pytest.raises(ValueError, match="one shape"):
        net.head.weight = nn.Linear(3, 6).weight
    weight = a.weight
    del net, a
    assert weight.shape == (4, 4) and b.weight.shape == (4, 4)
    c = nn.Linear(4, 4)
    c.weight = b.weight
    del b
    assert c(yoke.tensor(X)).shape == (3, 4)


def test_parameters_of_classes_are_tied():
    class Scale(nn.Module):
        def __init__(self):
            self.w = nn.Parameter(np.ones(4))

        def forward(self, x):
            return x * self.w

    one, two = Scale(), Scale()
    two.w = one.w
    one.w += 1
    assert two.w.tolist() == [2, 2, 2, 2]
    one.w = one.w * 2
    assert two.w.tolist() == [4, 4, 4, 4]
    two.w = nn.Parameter(np.zeros(4))
    assert one.w.tolist() == [0, 0, 0, 0]


def test_autocast_is_a_function_and_a_context():
    x = yoke.ones(2, 2)
    kind = lambda: (x @ x).dtype
    with yoke.autocast(yoke.bf16) as c:
        assert kind() is yoke.bf16
        with yoke.autocast("f16"):
            assert kind() is yoke.f16
            with yoke.autocast(None):
                assert kind() is yoke.f32
            assert kind() is yoke.f16
        assert kind() is yoke.bf16
    assert kind() is yoke.f32
    with c:
        assert kind() is yoke.bf16
    assert kind() is yoke.f32
    for error in (KeyError, ZeroDivisionError):
        with pytest.raises(error):
            with yoke.autocast(dtype=yoke.bf16):
                raise error
        assert kind() is yoke.f32
    with pytest.raises(TypeError):
        yoke.autocast("i32")
    assert kind() is yoke.f32
    with yoke.scope("step"):
        yoke.autocast(yoke.f16)
        assert kind() is yoke.f16
        with yoke.autocast(yoke.bf16), yoke.scope("inner"):
            assert kind() is yoke.bf16
            yoke.autocast(None)
            assert kind() is yoke.f32
        assert kind() is yoke.f16
    assert kind() is yoke.f32
    yoke.autocast(yoke.bf16)  # for good
    assert kind() is yoke.bf16
    yoke.autocast(None)
    assert kind() is yoke.f32


def test_autocast_inside_of_a_fit_gives_back_its_precision():
    seen = []

    class Net(nn.Module):
        def __init__(self):
            self.up, self.down = nn.Linear(4, 4), nn.Linear(4, 1)

        def forward(self, x):
            seen.append(self.up(x).dtype)
            with yoke.autocast(None):
                seen.append(self.up(x).dtype)
            seen.append(self.up(x).dtype)
            return self.down(self.up(x))

    yoke.fit(Net(), [(X, X[:, :1])], yoke.mse, precision="bf16-mixed", allow_emulated=True)
    assert seen[:3] == [yoke.bf16, yoke.f32, yoke.bf16]


class Net(nn.Module):
    def __init__(self):
        self.body = [nn.Linear(4, 4), nn.Sequential(nn.LayerNorm(4), nn.Residual(nn.Linear(4, 4)))]
        self.heads = {"one": nn.Linear(4, 1), "two": nn.Linear(4, 2)}
        self.scale = nn.Parameter(np.ones(4, "f4"))
        self.seen = nn.Buffer(np.zeros(2, "i8"))
        self.body[1][1].inner.weight = self.body[0].weight
        self.notes = ["text", 3]

    def forward(self, x):
        for m in self.body:
            x = m(x)
        return self.heads["two"](x * self.scale)


def test_modules_print_as_trees():
    said = repr(Net())
    for line in ("Net(", "  (body): ModuleList(", "    (0): Linear(in_features=4, out_features=4, bias=True)", "      (1): Residual(",
                 "        (inner): Linear(in_features=4, out_features=4, bias=True)", "    (two): Linear(in_features=4, out_features=2, bias=True)",
                 "  (scale): f32 [4]", ")"):
        assert line in said.split("\n"), said
    for make in (nn.Embedding(3, 2), nn.Conv2d(1, 2, 3, padding=1), nn.MaxPool(2), nn.GELU(), nn.Dropout(0.3), nn.Attention(4, 2), nn.MLP(2, 3, 4)):
        assert repr(make).startswith(type(make).__name__ + "(") and "\n" not in repr(make)


@pytest.mark.parametrize("how", ["deepcopy", "pickle"])
def test_modules_are_copied_and_pickled(how):
    def again(m):
        return copy.deepcopy(m) if how == "deepcopy" else pickle.loads(pickle.dumps(m))

    net = Net()
    net.freeze("heads.one.*")
    net.body[0].eval()
    other = again(net)
    assert list(other.parameters()) == list(net.parameters()) and list(other.state_dict()) == list(net.state_dict())
    for n, a in net.state_dict().items():
        assert np.array_equal(other.state_dict()[n], a) and other.state_dict()[n].dtype == a.dtype
    assert np.array_equal(other(yoke.tensor(X)).numpy(), net(yoke.tensor(X)).numpy()) and other.notes == ["text", 3]
    assert other.training and not other.body[0].training and repr(other) == repr(net)
    other.body[0].weight = np.zeros((4, 4))  # a copy, in which the two are tied
    assert not other.body[1][1].inner.weight.numpy().any() and net.body[0].weight.numpy().any()
    for layer in (nn.Linear(3, 2, bias=False), nn.BatchNorm(3), nn.Attention(4, 2), nn.Block(4, 2, causal=True), nn.LoRA(nn.Linear(3, 3), 2),
                  nn.MLP(2, 3, 4), nn.Conv1d(2, 3, 3), nn.ModuleList([nn.ReLU()]), nn.ModuleDict({"a": nn.Linear(1, 1)}), nn.Identity()):
        two = again(layer)
        assert list(two.state_dict()) == list(layer.state_dict()) and repr(two) == repr(layer)
        assert all(np.array_equal(two.state_dict()[n], a) for n, a in layer.state_dict().items())
    half = again(nn.Linear(3, 3).cast("f16"))
    assert half.weight.dtype is yoke.f16


def test_lists_and_dicts_of_modules():
    layers = nn.ModuleList([nn.Linear(2, 2)])
    layers.append(nn.ReLU()).extend([nn.Linear(2, 1)])
    assert len(layers) == 3 and list(layers.parameters()) == ["0.weight", "0.bias", "2.weight", "2.bias"] and layers[1] in layers
    assert layers[-1] is layers[2] and list(layers)[0] is layers[0]
    by_name = nn.ModuleDict({"a": nn.Linear(2, 2)})
    by_name["b"] = nn.Tanh()
    assert list(by_name) == ["a", "b"] and "a" in by_name and len(by_name) == 2 and list(by_name.parameters()) == ["a.weight", "a.bias"]
    assert [n for n, _ in by_name.items()] == list(by_name.keys()) and list(by_name.values())[1] is by_name["b"]
    with pytest.raises(TypeError):
        by_name["c"] = 3
    with pytest.raises(KeyError):
        by_name["c"]
    with pytest.raises(ValueError, match="keys"):
        by_name["keys"] = nn.ReLU()
    net = Net()
    assert isinstance(net.body, nn.ModuleList) and isinstance(net.heads, nn.ModuleDict)
    assert {n for n, _ in net.named_modules()} >= {"", "body", "body.0", "body.1", "body.1.1.inner", "heads.two"}
    assert [n for n, _ in net.named_children()] == ["body", "heads"] and len(list(net.modules())) == len(list(net.named_modules()))
    assert dict(net.named_parameters()).keys() == net.parameters().keys()


@pytest.mark.parametrize("value", [lambda: {"a": nn.Linear(1, 1), "b": 3}, lambda: [nn.Linear(1, 1), None], lambda: [[nn.Linear(1, 1)]],
                                   lambda: {1: nn.Linear(1, 1)}, lambda: {"a": [nn.Linear(1, 1)]}])
def test_containers_that_register_nothing_warn(value):
    net = nn.Module()
    with pytest.warns(UserWarning, match="not registered"):
        net.parts = value()
    later = nn.Module()
    later.layers = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        later.parameters()
    later.layers.append(nn.Linear(1, 1))
    with pytest.warns(UserWarning, match="layers"):
        later.parameters()


def test_parts_of_networks_stay():
    net = Net()
    for change in (lambda: setattr(net, "body", None), lambda: setattr(net, "heads", 3), lambda: delattr(net, "body"),
                   lambda: delattr(net, "scale"), lambda: delattr(net.body[0], "weight")):
        with pytest.raises(ValueError, match="stays"):
            change()
    del net.notes
    assert not hasattr(net, "notes") and len(list(net.parameters())) == len(list(Net().parameters()))
    assert nn.Linear(2, 2).to("f64").weight.dtype is yoke.f64 and nn.Linear(2, 2).to("cpu:0").weight.device == "cpu:0"


def test_activations_and_identity():
    x = yoke.tensor(X - 0.5)
    sigmoid = 1 / (1 + np.exp(-(X - 0.5)))
    for layer, want in [(nn.Tanh(), np.tanh(X - 0.5)), (nn.SiLU(), (X - 0.5) * sigmoid), (nn.Sigmoid(), sigmoid), (nn.Identity(), X - 0.5),
                        (nn.Sequential(nn.Identity(), nn.Identity()), X - 0.5)]:
        np.testing.assert_allclose(layer(x).numpy(), want, rtol=1e-5, atol=1e-6)
    assert (x + 1).shape == (3, 4)


class Returns(nn.Module):
    def __init__(self):
        self.w = nn.Parameter(np.ones(3))
        self.kept = yoke.tensor([1.0, 2.0])

    def forward(self, x):
        return self.w if x.ndim == 1 else self.kept


def test_a_module_may_give_what_it_did_not_make():
    net = nn.Sequential(Returns())
    for _ in range(3):
        assert net(yoke.ones(2)).tolist() == [1, 1, 1] and net(yoke.ones(2, 2)).tolist() == [1, 2]
    assert net[0].w.tolist() == [1, 1, 1] and net[0].kept.tolist() == [1, 2]


def test_fit_needs_batches():
    net, batch = nn.Linear(4, 1), (X, X[:, :1])

    def batches(n):
        for _ in range(n):
            yield batch

    for data, how, text in [(batches(3), dict(epochs=2), "iterator"), ([], {}, "no batches"), (iter([]), {}, "no batches"),
                            (lambda: iter([]), {}, "no batches"), ([batch], dict(valid=[]), "no batches"),
                            ([batch], dict(accumulate=2), "too few"), ([batch] * 3, dict(valid=batches(1), valid_every=1), "iterator")]:
        with pytest.raises(ValueError, match=text):
            yoke.fit(net, data, yoke.mse, **how)
    with pytest.raises(TypeError, match="a tuple of arrays, got dict"):
        yoke.fit(net, [{"x": X}], yoke.mse)
    with pytest.raises(TypeError, match="gives batches"):
        yoke.fit(net, 3, yoke.mse)
    assert len(yoke.fit(net, batches(3), yoke.mse)) == 3
    assert len(yoke.fit(net, lambda: batches(3), yoke.mse, epochs=2)) == 6
    assert len(yoke.fit(net, map(lambda k: batch, range(4)), yoke.mse)) == 4


@pytest.mark.parametrize("tqdm", [True, False])
def test_fit_shows_progress(tqdm, capsys, monkeypatch):
    if tqdm:
        pytest.importorskip("tqdm")
    else:
        import sys

        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    net = nn.Linear(4, 1)
    yoke.fit(net, [(X, X[:, :1])] * 5, yoke.mse, epochs=2)
    assert capsys.readouterr().err == ""  # no terminal
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    yoke.fit(net, [(X, X[:, :1])] * 5, yoke.mse, log=lambda s: None)
    assert capsys.readouterr().err == ""
    yoke.fit(net, [(X, X[:, :1])] * 5, yoke.mse, epochs=2, progress=True)
    said = capsys.readouterr().err
    assert "10" in said and "loss" in said and said.endswith("\n")


def test_names_and_signatures_are_real():
    for package, wanted in [(nn, {"Linear", "Module", "ModuleDict", "Tanh"}), (optim, {"AdamW", "SGD"}), (yoke.random, {"seed", "normal"}),
                            (yoke, {"sum", "zeros", "nn", "fit", "Tensor", "devices"})]:
        names = {n for n in dir(package) if not n.startswith("_")}
        assert names >= wanted
        assert not names & {"Any", "Callable", "Iterable", "Iterator", "Sequence", "Mapping", "annotations", "os", "sys", "inspect", "weakref",
                            "warnings", "builtins", "host", "put" if package is not yoke else ""}, names
    x = yoke.ones(2, 3)
    for name in [n for n in dir(x) if not n.startswith("_")]:
        member = getattr(type(x), name)
        assert member.__doc__, name
        if inspect.isfunction(member):
            assert "args" not in inspect.signature(member).parameters, name
    assert list(inspect.signature(x.sum).parameters)[:2] == ["axis", "dtype"] and "over an axis" in x.sum.__doc__
    assert list(inspect.signature(x.matmul).parameters) == ["b", "flags"]
    for name in [n for n in dir(nn) if n != "Activation"]:
        assert getattr(nn, name).__doc__, name


def test_missing_files_are_files_not_found(tmp_path):
    gone = tmp_path / "gone"
    for call in (lambda: nn.Linear(1, 1).load(gone), lambda: optim.AdamW(nn.Linear(1, 1)).load(gone), lambda: yoke.dataset_open(f"{gone}.npy"),
                 lambda: yoke.cube_open(f"{gone}.hdr"), lambda: yoke.statistic_load(str(gone)), lambda: nn.Linear(1, 1).load(f"{gone}.index.json")):
        with pytest.raises(FileNotFoundError, match="gone"):
            call()


def test_messages_name_pythons_functions():
    a, b = nn.Linear(1, 1), nn.Linear(1, 1)
    net = nn.Sequential(a, b)
    for call in (lambda: nn.Sequential(a), lambda: setattr(nn.Module(), "x", a), lambda: yoke.sum(yoke.ones(2), 3), lambda: yoke.ones(2).max(4),
                 lambda: yoke.ones(2).reshape(3), lambda: yoke.attention(yoke.ones(1), yoke.ones(1), yoke.ones(1)), lambda: net.share("x", "y")):
        with pytest.raises((ValueError, IndexError)) as e:
            call()
        assert "yoke_" not in str(e.value) and "NULL" not in str(e.value) and "YOKE_" not in str(e.value), e.value
    for call, name in [(lambda: nn.Linear(0, 1), "nn.Linear"), (lambda: nn.Dropout(2), "nn.Dropout"), (lambda: nn.GroupNorm(3, 4), "nn.GroupNorm"),
                       (lambda: net.freeze("no"), "Module.freeze"), (lambda: optim.SGD(net).step([]), "Optimizer.step")]:
        with pytest.raises(ValueError, match=f"^{name}: "):
            call()
    with pytest.raises(IndexError, match="^max: no axis 4"):
        yoke.ones(2).max(4)


def test_a_profile_says_nothing_on_its_own(program):
    text = """
import yoke
with yoke.profile() as p:
    (yoke.tensor([1.0, 2.0]) * 2).numpy()
assert p.rows() and p.table()
"""
    assert program(text) == ""


def test_a_forward_function_may_assign_its_operand():
    class Marks(nn.Module):
        def forward(self, x):
            x[0] = 7
            return x * 2

    for net in (Marks(), nn.Sequential(Marks()), nn.Sequential(nn.Identity(), Marks(), nn.ReLU())):
        for _ in range(2):
            assert net(yoke.ones(2)).tolist() == [14, 2]


def test_a_layers_function_is_not_overridden_in_silence():
    with pytest.raises(TypeError, match="as an attribute"):
        class Twice(nn.Linear):
            def forward(self, x):
                return super().forward(x) * 2

    class Wide(nn.Linear):
        """A subclass that only chooses its arguments."""

        def __init__(self, n):
            super().__init__(n, 2 * n)

    assert Wide(3)(yoke.ones(1, 3)).shape == (1, 6) and repr(Wide(3)) == "Wide(n=3)"
    assert pickle.loads(pickle.dumps(nn.Linear(2, 3)))(yoke.ones(1, 2)).shape == (1, 3)
    assert repr(optim.SGD(Wide(2), lr=0.1)) == "SGD(2 parameters, lr=0.1)"


FIRST = {  # bounds of uniform numbers, or mean and deviation, of a weight [64,32,3,3]: 288 inputs, 576 outputs
    "uniform_": ((-0.5, 2.0), "uniform", (-0.5, 2.0)), "normal_": ((1.0, 0.5), "normal", (1.0, 0.5)),
    "xavier_uniform_": ((2.0,), "uniform", (-2 * (6 / 864) ** 0.5, 2 * (6 / 864) ** 0.5)), "xavier_normal_": ((2.0,), "normal", (0, 2 * (2 / 864) ** 0.5)),
    "kaiming_uniform_": ((5 ** 0.5,), "uniform", (-288 ** -0.5, 288 ** -0.5)), "kaiming_normal_": ((0, "fan_out", "relu"), "normal", (0, (2 / 576) ** 0.5)),
}


@pytest.mark.parametrize("name", FIRST)
def test_first_values(name):
    args, kind, (a, b) = FIRST[name]
    layer = nn.Conv2d(32, 64, 3)
    yoke.random.seed(5)
    assert getattr(nn.init, name)(layer.weight, *args)._handle() == layer.weight._handle()
    x = layer.weight.numpy().astype("f8")
    mean, deviation = ((a + b) / 2, (b - a) / 12 ** 0.5) if kind == "uniform" else (a, b)
    assert abs(x.mean() - mean) < 5 * deviation / x.size ** 0.5 and abs(x.std() / deviation - 1) < 0.03
    if kind == "uniform":
        assert a <= x.min() < a + (b - a) / 500 and b >= x.max() > b - (b - a) / 500
    assert getattr(nn.init, name)(layer.weight, *args).numpy().mean() != x.mean()


def test_first_values_of_other_kinds():
    init, p = nn.init, nn.Linear(40, 30).weight
    x = init.trunc_normal_(p, 0.5, 2.0, -1.0, 1.0).numpy()
    assert -1 <= x.min() and x.max() <= 1 and abs(x.mean() - 0.04) < 0.1
    for shape in ((30, 40), (40, 30)):
        q = init.orthogonal_(nn.Linear(shape[1], shape[0]).weight, 2.0).numpy()
        square = q @ q.T if shape[0] < shape[1] else q.T @ q
        np.testing.assert_allclose(square, 4 * np.eye(30), atol=1e-5)
    assert (init.eye_(p).numpy() == np.eye(30, 40)).all() and (init.ones_(p).numpy() == 1).all() and (init.constant_(p, 3).numpy() == 3).all()
    assert (init.zeros_(p).numpy() == 0).all() and init.calculate_gain("tanh") == 5 / 3 and init.calculate_gain("leaky_relu", 0.2) == (2 / 1.04) ** 0.5
    for bad in (lambda: init.xavier_normal_(nn.Linear(3, 3).bias), lambda: init.kaiming_normal_(p, mode="best"), lambda: init.calculate_gain("best"),
                lambda: init.trunc_normal_(p, a=1, b=0)):
        with pytest.raises(ValueError):
            bad()
    with pytest.raises(TypeError, match="parameter"):
        init.zeros_(yoke.ones(2))


def test_apply_and_registered_names():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 3), nn.ReLU())
            self.register_buffer("table", yoke.arange(3).float())
            self.register_buffer("mask", yoke.ones(3), persistent=False)
            self.register_parameter("scale", nn.Parameter([2.0]))
            self.register_parameter("none", None)

    seen, net = [], Net()
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net and seen == ["Linear", "Linear", "ReLU", "Sequential", "Net"]
    net.apply(lambda m: nn.init.zeros_(m.weight) if isinstance(m, nn.Linear) else None)
    assert not net.a.weight.numpy().any() and not net.b[0].weight.numpy().any() and net.scale.tolist() == [2.0] and net.none is None
    assert [n for n, _ in net.named_buffers()] == ["table"] and len(list(net.buffers())) == 1 and net.mask.tolist() == [1, 1, 1]
    assert "table" in net.state_dict() and "mask" not in net.state_dict() and "scale" in net.parameters()
