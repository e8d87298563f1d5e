# SPDX-License-Identifier: Apache-2.0
"""Layers beside PyTorch's with the same weights: values and gradients by the input and all parameters."""
import itertools
import os
import random

import numpy as np
import pytest

import yoke
from conftest import SEED
from yoke import nn

torch = pytest.importorskip("torch")


def close(got, want, what=""):
    """To 1e-5 of the largest number there, and of each."""
    want = want.detach().numpy() if isinstance(want, torch.Tensor) else want
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * max(1.0, float(np.abs(want).max(initial=0))), err_msg=what)


def compare(ours, theirs, *inputs, what="", updates=0):
    """Loads the weights of theirs into ours; inputs of floating point have gradients, too."""
    names = [n for n in theirs.state_dict() if not n.endswith("num_batches_tracked")]
    ours.load_state_dict({n: theirs.state_dict()[n].numpy() for n in names})
    for _ in range(updates):
        x = np.random.default_rng(SEED + _).normal(_ % 3, 2, inputs[0].shape).astype("f4")
        with yoke.scope("update"):
            yoke.eval(ours(yoke.tensor(x)))
        theirs(torch.from_numpy(x))
    xs = [torch.from_numpy(x).requires_grad_(x.dtype.kind == "f") for x in inputs]
    y = theirs(*xs)
    weight = np.random.default_rng(SEED).normal(size=tuple(y.shape)).astype("f4")
    wanted = [x for x in xs if x.requires_grad] + list(theirs.parameters())
    grads = torch.autograd.grad((y * torch.from_numpy(weight)).sum(), wanted)
    ins = [yoke.tensor(x) for x in inputs]
    out = ours(*ins)
    close(out.numpy(), y, f"{what}: output")
    params = ours.parameters()
    by = [t for t, x in zip(ins, xs) if x.requires_grad] + [params[n] for n, _ in theirs.named_parameters()]
    for g, want, k in zip(yoke.grad((out * yoke.tensor(weight)).sum(), by), grads, itertools.count()):
        close(g.numpy(), want, f"{what}: gradient {k}")
    state = ours.state_dict()
    for n in names:  # running statistics
        close(state[n], theirs.state_dict()[n], f"{what}: {n}")


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("transposed", [False, True], ids=["conv", "transposed"])
def test_convolutions(axes, transposed, rng):
    kinds = list(itertools.product([1, 2, 3], [1, 2, 3], [1, 2, 4], [0, 1, 2], [1, 2, 3], [True, False]))
    if not os.environ.get("YOKE_TEST_LONG"):
        kinds = random.Random(SEED).sample(kinds, 12)
    theirs_of = getattr(torch.nn, f"Conv{'Transpose' if transposed else ''}{axes}d")
    ours_of = getattr(nn, f"Conv{'Transposed' if transposed else ''}{axes}d")
    for stride, dilation, groups, padding, kernel, bias in kinds:
        more = {"output_padding": stride - 1} if transposed else {}
        theirs = theirs_of(4, 8, kernel, stride=stride, dilation=dilation, groups=groups, padding=padding, bias=bias, **more)
        ours = ours_of(4, 8, (kernel,) * axes, stride=stride, dilation=dilation, groups=groups, padding=padding, bias=bias,
                       **({"more": more["output_padding"]} if more else {}))
        x = rng.normal(size=(2, 4, 11, 9)[:2 + axes]).astype("f4")
        compare(ours, theirs, x, what=f"{axes} axes, stride {stride}, dilation {dilation}, groups {groups}, padding {padding}, "
                                      f"kernel {kernel}, bias {bias}")


@pytest.mark.parametrize("shape", [(16, 5), (8, 5, 7), (4, 5, 6, 3)], ids=str)
@pytest.mark.parametrize("updates", [0, 100])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(shape, updates, training, rng):
    theirs = getattr(torch.nn, {2: "BatchNorm1d", 3: "BatchNorm1d", 4: "BatchNorm2d"}[len(shape)])(5)
    torch.nn.init.normal_(theirs.weight)
    torch.nn.init.normal_(theirs.bias)
    ours = nn.BatchNorm(5)
    if not training and updates:  # statistics of 100 batches, then used
        compare(ours, theirs, rng.normal(size=shape).astype("f4"), updates=updates)
        updates = 0
    theirs.train(training)
    ours.train(training)
    compare(ours, theirs, rng.normal(3, 2, shape).astype("f4"), updates=updates)


LAYERS = {
    "linear": lambda: (nn.Linear(6, 9), torch.nn.Linear(6, 9), (3, 4, 6)),
    "linear without bias": lambda: (nn.Linear(6, 9, bias=False), torch.nn.Linear(6, 9, bias=False), (4, 6)),
    "layer norm": lambda: (nn.LayerNorm(7), torch.nn.LayerNorm(7), (3, 4, 7)),
    "RMS norm": lambda: (nn.RMSNorm(7), torch.nn.RMSNorm(7, eps=1e-6), (3, 4, 7)),
    "group norm": lambda: (nn.GroupNorm(3, 6), torch.nn.GroupNorm(3, 6), (2, 6, 5, 4)),
    "max pool": lambda: (nn.MaxPool(3, 2, 1), torch.nn.MaxPool2d(3, 2, 1), (2, 3, 9, 8)),
    "dilated max pool": lambda: (nn.MaxPool((2, 3), 1, (1, 1), 2), torch.nn.MaxPool2d((2, 3), 1, 1, 2), (2, 3, 9, 8)),
    "mean pool": lambda: (nn.MeanPool(3, 2, 1), torch.nn.AvgPool2d(3, 2, 1, count_include_pad=False), (2, 3, 9, 8)),
    "adaptive max pool": lambda: (nn.AdaptiveMaxPool((4, 3)), torch.nn.AdaptiveMaxPool2d((4, 3)), (2, 3, 9, 8)),
    "adaptive mean pool": lambda: (nn.AdaptiveMeanPool((4, 3)), torch.nn.AdaptiveAvgPool2d((4, 3)), (2, 3, 9, 8)),
    "nearest": lambda: (nn.Resize((5, 17)), torch.nn.Upsample((5, 17), mode="nearest"), (2, 3, 9, 8)),
    "bilinear": lambda: (nn.Resize((5, 17), True), torch.nn.Upsample((5, 17), mode="bilinear"), (2, 3, 9, 8)),
    "relu": lambda: (nn.ReLU(), torch.nn.ReLU(), (5, 7)),
    "gelu": lambda: (nn.GELU(), torch.nn.GELU(), (5, 7)),
    "gelu_tanh": lambda: (nn.Activation("gelu_tanh"), torch.nn.GELU("tanh"), (5, 7)),
    "silu": lambda: (nn.Activation("silu"), torch.nn.SiLU(), (5, 7)),
    "tanh": lambda: (nn.Activation("tanh"), torch.nn.Tanh(), (5, 7)),
    "sigmoid": lambda: (nn.Activation("sigmoid"), torch.nn.Sigmoid(), (5, 7)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, rng):
    ours, theirs, shape = LAYERS[name]()
    for p in theirs.parameters():
        torch.nn.init.normal_(p)
    compare(ours, theirs, rng.normal(size=shape).astype("f4"), what=name)


def test_embedding(rng):
    compare(nn.Embedding(11, 4), torch.nn.Embedding(11, 4), rng.integers(0, 11, (3, 5)))


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal, rng):
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    torch.nn.init.normal_(theirs.in_proj_bias)
    torch.nn.init.normal_(theirs.out_proj.bias)
    ours = nn.Attention(8, 2, causal=causal)
    w, b = theirs.in_proj_weight.detach().numpy(), theirs.in_proj_bias.detach().numpy()
    o = theirs.out_proj
    state = ours.state_dict()
    parts = {n.rsplit(".", 1)[0] for n in state}
    assert parts == {"q", "k", "v", "out"} or parts == {"q", "k", "v", "o"} or parts == {"q", "k", "v", "proj"}, parts
    last = (parts - {"q", "k", "v"}).pop()
    for i, n in enumerate("qkv"):
        state[f"{n}.weight"], state[f"{n}.bias"] = w[8 * i:8 * i + 8], b[8 * i:8 * i + 8]
    state[f"{last}.weight"], state[f"{last}.bias"] = o.weight.detach().numpy(), o.bias.detach().numpy()
    ours.load_state_dict(state)
    x = rng.normal(size=(3, 5, 8)).astype("f4")
    t = torch.from_numpy(x).requires_grad_()
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5) if causal else None
    want = theirs(t, t, t, need_weights=False, attn_mask=mask)[0]
    a = yoke.tensor(x)
    got = ours(a)
    close(got.numpy(), want)
    want.square().sum().backward()
    grads = yoke.grad((got * got).sum(), [a, ours.parameters()["q.weight"]])
    close(grads[0].numpy(), t.grad)
    close(grads[1].numpy(), theirs.in_proj_weight.grad[:8])
