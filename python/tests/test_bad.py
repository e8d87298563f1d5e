# SPDX-License-Identifier: Apache-2.0
"""Bad input: one error line each, no side effects, no crash, and no error left for the next call."""
import gc
import re
import threading

import numpy as np
import pytest

import yoke
from yoke import nn, optim


class Net(nn.Module):
    def __init__(self):
        self.a = nn.Linear(3, 4)
        self.w = nn.Parameter(np.ones(3, "f4"))
        self.b = nn.Buffer(np.zeros(2, "f4"))

    def forward(self, x):
        return self.a(x * self.w)


X = np.ones((2, 3), "f4")


def refused(fn, kind, text):
    """fn raises one line with that text, and leaves no error behind."""
    with pytest.raises(kind) as e:
        fn()
    line = str(e.value)
    assert re.search(text, line) and "\n" not in line, line
    assert yoke.error_code() == 0
    assert (yoke.tensor([1.0]) + 1).item() == 2


class Same:
    """A network's names and bits, before and after a call."""

    def __init__(self, net):
        self.net, self.before = net, net.state_dict()

    def __enter__(self):
        return self.net

    def __exit__(self, *error):
        gc.collect()
        after = self.net.state_dict()
        assert list(after) == list(self.before)
        for n in after:
            assert np.array_equal(after[n], self.before[n])
        self.net(yoke.tensor(X)).numpy()


def test_modules_that_do_not_fit_change_nothing(tmp_path):
    net, layer, relu = Net(), nn.Linear(3, 3), nn.ReLU()
    outer = Net()
    outer.inner = net
    with Same(net):
        refused(lambda: setattr(net, "w", nn.Parameter(np.ones(5, "f4"))), ValueError, "a 'w' already")
        refused(lambda: setattr(net, "a", nn.Parameter(np.ones(5, "f4"))), ValueError, "a module already")
        refused(lambda: setattr(net, "w", np.ones(7)), ValueError, r"is \[3\]")
        refused(lambda: setattr(net, "w", layer), ValueError, "a parameter or buffer already")
        refused(lambda: setattr(net, "a", layer), ValueError, "a module already")
        refused(lambda: setattr(net, "x.y", layer), ValueError, "no name")
        refused(lambda: setattr(net, "me", net), ValueError, "part of itself")
        refused(lambda: setattr(net, "up", outer), ValueError, "part of itself")
        refused(lambda: setattr(Net(), "q", net), ValueError, "part of another")
        refused(lambda: nn.Sequential(layer, net), ValueError, "part of another")
        refused(lambda: nn.Residual(net), ValueError, "part of another")
        refused(lambda: nn.Sequential(layer, layer), ValueError, "is there before")
        refused(lambda: nn.Sequential(layer, 3), TypeError, "takes modules")
        refused(lambda: nn.LoRA(relu), ValueError, "around a linear layer")
        refused(lambda: nn.LoRA(layer, 0), ValueError, "rank is 0")
        refused(lambda: net.share("a.weight", "w"), ValueError, r"'a.weight' is \[4,3\], 'w' is \[3\]")
        refused(lambda: net.share("a.weight", "nothing"), ValueError, "'nothing'")
        refused(lambda: net.share("b", "w"), ValueError, "must be parameters")
        refused(lambda: net.freeze("nothing*"), ValueError, "'nothing\\*'")
        refused(lambda: net.unfreeze("nothing*"), ValueError, "'nothing\\*'")
        refused(lambda: net.cast("i32"), (TypeError, ValueError), "i32")
        net.save(tmp_path / "a.safetensors")
        load = lambda fn: lambda: net.load(tmp_path / "a.safetensors", rename=fn)
        refused(load(lambda name: 1 / 0), ZeroDivisionError, "division")
        refused(load(lambda name: 5), TypeError, "rename gives a text for 'w'")
        refused(load(lambda name: "w"), ValueError, "'w' is there twice.*'b' is missing")
        refused(lambda: net.load(tmp_path), (ValueError, OSError), "regular file")
        o = optim.AdamW(net, lr=1e-2)
        refused(lambda: o.set("nothing*", weight_decay=0), ValueError, "'nothing\\*' matches none")
        refused(lambda: o.set("*", weight_decax=0), ValueError, "did you mean 'weight_decay'")
        refused(lambda: yoke.optim_move(o._o, yoke.context_new("cpu"), [yoke.tensor(X)]), ValueError, "lists of 1 and 3 elements")
    assert layer(yoke.tensor(X)).shape == (2, 3) and relu(yoke.tensor(X)).shape == (2, 3)
    assert nn.Sequential(layer, relu)(yoke.tensor(X)).shape == (2, 3)


def test_own_ops_that_do_not_fit():
    def of(name, **how):
        return yoke.op("bad." + name, **{"decompose": lambda x: x * 3, **how})

    class Like:
        def __init__(self, shape, dtype="f32"):
            self.shape, self.dtype = shape, dtype

    times = []

    def lies(x):
        times.append(1)
        return [Like((2, 3 + (len(times) > 1)))]

    x, good = yoke.tensor(X), of("good")
    refused(lambda: of("good"), ValueError, "bad.good already; choose another name")
    refused(lambda: yoke.op("nodot", decompose=lambda x: x), ValueError, "no name; one is like acme.gate")
    refused(lambda: yoke.op("bad.nothing"), ValueError, "neither a decomposition")
    refused(lambda: good(x, x), ValueError, "takes 1 operands .* got 2")
    for counts in (dict(outputs=0), dict(outputs=9), dict(inputs=-1), dict(inputs=17)):
        refused(lambda: of("counts", **counts), ValueError, "bad.counts takes 0 to 16 operands")
    refused(lambda: of("short", decompose=lambda x: x.sum())(x).numpy(), ValueError, r"f32 \[\] .* f32 \[2,3\]")
    refused(lambda: of("number", decompose=lambda x: 5)(x), ValueError, "decompose gives .*int.* list of 1")
    refused(lambda: of("few", outputs=2, shape=lambda x: [x, x], decompose=lambda x: [x])(x), ValueError, "list of 1, .* 2")
    refused(lambda: of("reads", decompose=lambda x: yoke.tensor((x + 1).numpy()))(x), ValueError, "do not evaluate")
    refused(lambda: of("raises", shape=lambda x: 1 / 0)(x), ValueError, "bad.raises: ZeroDivisionError")
    refused(lambda: of("five", shape=lambda x: 5)(x), ValueError, "shape gives .*int.* list of 1")
    refused(lambda: of("dtype", shape=lambda x: [Like((1,), "f9")])(x), ValueError, "no dtype 'f9'")
    refused(lambda: of("negative", shape=lambda x: [Like((-1,))])(x), ValueError, "invalid tensor")
    refused(lambda: of("lies", shape=lies)(x).numpy(), ValueError, r"f32 \[2,4\] .* f32 \[2,3\]")
    g = of("gradient", gradient=lambda i, o, g: 5)
    refused(lambda: yoke.grad(g(x).sum(), [x]), ValueError, "gradient gives .*int.* list of 1")
    g = of("gradient2", gradient=lambda i, o, g: [g[0].sum()])
    refused(lambda: yoke.grad(g(x).sum(), [x]), ValueError, r"gradient gives f32 \[\] .* f32 \[2,3\]")
    refused(lambda: yoke.grad(good(x).sum(), [x]), NotImplementedError, "bad.good has no gradient")
    assert np.array_equal(good(x).numpy(), X * 3)


def test_arrays_that_do_not_fit():
    class Gives:
        def __init__(self, device=(1, 0)):
            self.device = device

        def __dlpack__(self, **kwargs):
            return 5

        def __dlpack_device__(self):
            return self.device

    refused(lambda: yoke.from_dlpack(np.arange(4, dtype=">f4")), BufferError, "byte order")
    refused(lambda: yoke.from_dlpack(np.arange(4, dtype="f4")[::-1]), ValueError, "runs backwards; copy it first")
    refused(lambda: yoke.from_dlpack(7), TypeError, "an array that has __dlpack__")
    refused(lambda: yoke.from_dlpack(Gives()), ValueError, "none of DLPack's")
    refused(lambda: yoke.from_dlpack(Gives((2, 0))), BufferError, "device of kind 2")
    refused(lambda: yoke.from_dlpack(Gives("abc")), TypeError, "integers")
    refused(lambda: yoke.tensor(np.zeros(3, "i4,f4")), TypeError, "no dtype")
    x = yoke.tensor(X)
    refused(lambda: x.__dlpack__(max_version="a"), TypeError, "integers")
    refused(lambda: x.__dlpack__(max_version=1), ValueError, "a pair")
    refused(lambda: x.__dlpack__(stream=1, max_version=(1, 0)), BufferError, "no stream")
    refused(lambda: x.__dlpack__(dl_device=1, max_version=(1, 0)), BufferError, "host's memory")
    assert np.array_equal(np.from_dlpack(x), X)


USES = dict(
    add=lambda z, x: z + 1, radd=lambda z, x: 1 + z, beside=lambda z, x: x * z, div=lambda z, x: z / 2, power=lambda z, x: z ** 2,
    floor=lambda z, x: z // 2, product=lambda z, x: z @ z, negative=lambda z, x: -z, less=lambda z, x: z < 1, length=lambda z, x: len(z),
    loop=lambda z, x: list(z), truth=lambda z, x: bool(z), number=lambda z, x: float(z), item=lambda z, x: z.item(),
    index=lambda z, x: z[0], part=lambda z, x: z[:, 1:], rows=lambda z, x: z[[0]], by=lambda z, x: x[z],
    put=lambda z, x: z.__setitem__(0, 1), turned=lambda z, x: z.T, shape=lambda z, x: z.shape, dtype=lambda z, x: z.dtype,
    size=lambda z, x: z.size, numpy=lambda z, x: z.numpy(), dlpack=lambda z, x: z.__dlpack__(), total=lambda z, x: z.sum(),
    cast=lambda z, x: z.cast("f64"), concat=lambda z, x: yoke.concat([z, x], 0), keep=lambda z, x: yoke.keep(z),
    lift=lambda z, x: yoke.lift(z), evaluated=lambda z, x: yoke.eval(z), gradient=lambda z, x: yoke.grad(x.sum(), [z]),
    assign=lambda z, x: yoke.assign(z, x), asarray=lambda z, x: np.asarray(z), variable=lambda z, x: yoke.variable_of(z),
    network=lambda z, x: nn.Linear(3, 2)(z), op=lambda z, x: yoke.custom_grad(lambda y: y)(z))


def in_thread(fn):
    box = []

    def run():
        try:
            box.append(fn())
        except Exception as e:  # looked at by the caller
            box.append(e)

    t = threading.Thread(target=run)
    t.start()
    t.join()
    return box[0]


@pytest.mark.parametrize("use", USES, ids=str)
@pytest.mark.parametrize("of", ["a closed scope", "a thread that has ended"])
def test_tensors_that_are_gone(of, use):
    if of == "a closed scope":
        with yoke.scope("s"):
            z = yoke.tensor(X) + 1
    else:
        z = in_thread(lambda: yoke.tensor(X) + 1)
    refused(lambda: USES[use](z, yoke.tensor(X)), (ValueError, TypeError), "after its|after it was|no gradient of its own")
    assert "gone" in repr(z)


def test_a_network_of_another_thread():
    net = Net()
    x = yoke.tensor(X)
    with Same(net):
        for fn, text in [(lambda: x + yoke.tensor([1.0]), "another context"),
                         (lambda: net(x), "another context than the current one"),
                         (lambda: net(yoke.tensor(X)), "another context"),
                         (lambda: setattr(net, "new", nn.Parameter([1.0])), "'new' is of another context"),
                         (lambda: setattr(net, "more", nn.Linear(1, 1)), "'more' is of another context")]:
            e = in_thread(fn)
            assert isinstance(e, ValueError) and text in str(e) and "\n" not in str(e), e
        in_thread(lambda: net.cast("f64"))  # in the context that it is in
        assert net.w.dtype is yoke.f64
        net.cast("f32")


def test_a_network_of_a_thread_that_has_ended(tmp_path):
    net, o = in_thread(lambda: (lambda n: (n, optim.AdamW(n)))(nn.Linear(3, 3)))
    for fn in (lambda: net(yoke.tensor(X)), net.state_dict, lambda: net.save(tmp_path / "a"), lambda: net.cast("f64"),
               lambda: o.step([yoke.tensor(X)] * 2), lambda: o.save(tmp_path / "o"), lambda: o.load(tmp_path / "o"),
               lambda: yoke.fit(net, [(X, X)], yoke.mse, o)):
        refused(fn, ValueError, "was used after|is gone|another context|no longer exists")
    for _ in range(200):  # it has gone before the thread is joined, whatever call wanted a context first
        refused(in_thread(lambda: nn.Linear(3, 3)).state_dict, ValueError, "was used after")


def test_an_optimizer_goes_with_its_network():
    def run(at):
        yoke.random_set(3)
        net = nn.Linear(3, 2)
        o = optim.AdamW(net, lr=0.1)
        losses = []

        def steps(n):
            for _ in range(n):
                with yoke.scope("step"):
                    loss, g = yoke.value_and_grad(lambda net: (net(yoke.tensor(X)) ** 2).sum())(net)
                    o.step(g)
                    losses.append(loss.item())

        if at is not None:
            steps(at)
            there = yoke.context_new("cpu")
            net.move(there)
            o.move(there, net)
            was = yoke.use(there)
            steps(4 - at)
            yoke.use(was)
        else:
            steps(4)
        return losses

    whole = run(None)
    assert run(0) == whole and run(2) == whole


OPS = """
import sys
import numpy as np, yoke
from yoke import nn
net = nn.Linear(2, 3)
triple = yoke.op("exit.triple", decompose=lambda x: net(x) * 3, shape=lambda x: [yoke.Record(dtype="f32", shape=(1, 3))])
triple(yoke.tensor(np.ones((1, 2), "f4"))).numpy()
class Late:
    def __del__(self):
        try:
            triple(yoke.tensor(np.ones((1, 2), "f4")))
        except Exception:
            pass
late = Late()
"""


def test_ops_of_python_leave_nothing_at_exit(program):
    assert program(OPS) == ""
