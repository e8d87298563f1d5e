# SPDX-License-Identifier: Apache-2.0
"""Layers against PyTorch's with the same weights: values and gradients by the input and all parameters."""
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


@pytest.mark.parametrize("axes", [1, 2, 3])
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
                       **more)
        x = rng.normal(size=(2, 4, 11, 9, 7)[:2 + axes]).astype("f4")
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
    "max pool, ceil": lambda: (nn.MaxPool2d(3, 2, 1, ceil_mode=True), torch.nn.MaxPool2d(3, 2, 1, ceil_mode=True), (2, 3, 9, 8)),
    "max pool, 3 axes": lambda: (nn.MaxPool3d(2), torch.nn.MaxPool3d(2), (2, 3, 5, 6, 4)),
    "avg pool": lambda: (nn.AvgPool2d(3, 2, 1, True), torch.nn.AvgPool2d(3, 2, 1, True), (2, 3, 9, 8)),
    "avg pool, 3 axes": lambda: (nn.AvgPool3d(2), torch.nn.AvgPool3d(2), (2, 3, 5, 6, 4)),
    "avg pool without a batch": lambda: (nn.AvgPool1d(3, 2, 1), torch.nn.AvgPool1d(3, 2, 1), (3, 9)),
    "adaptive avg pool, 3 axes": lambda: (nn.AdaptiveAvgPool3d(2), torch.nn.AdaptiveAvgPool3d(2), (2, 3, 5, 4, 3)),
    "upsample": lambda: (nn.Upsample(scale_factor=1.7, mode="bilinear"), torch.nn.Upsample(scale_factor=1.7, mode="bilinear"), (2, 3, 9, 8)),
    "upsample, bicubic": lambda: (nn.Upsample((5, 17), mode="bicubic", align_corners=True),
                                  torch.nn.Upsample((5, 17), mode="bicubic", align_corners=True), (2, 3, 9, 8)),
    "unfold": lambda: (nn.Unfold(3, 2, 1, 2), torch.nn.Unfold(3, 2, 1, 2), (2, 3, 9, 8)),
    "fold": lambda: (nn.Fold((5, 6), 2), torch.nn.Fold((5, 6), 2), (2, 12, 20)),
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


# Expressions of PyTorch's tensors a and b, f32 [3,4], c f32 [2,3,4], i i64 [3,4], m bool [3,4], ids i64 [5].
EXPRESSIONS = """
t.cat([a, b], dim=1); t.stack([a, b], dim=0); t.concat([a, b], dim=-1); t.chunk(a, 3, dim=1); t.chunk(a, 2, dim=0); t.where(m, a, b)
t.where(a > 0, a, 0.0); a.sum(dim=1); a.mean(dim=0, keepdim=True); t.sum(a, dim=-1); t.max(a); t.min(a); t.max(a, b); t.min(a, b)
a.argmax(); a.argmax(dim=1); a.argmin(dim=0, keepdim=True); t.amax(a, dim=1); t.amin(a, dim=(0, 1)); t.maximum(a, b); t.cumsum(a, dim=1); t.cumprod(a, dim=0)
a.unsqueeze(0); a.unsqueeze(-1); t.unsqueeze(a, dim=1); a[None].squeeze(0); t.squeeze(a[:, None], dim=1); a.flatten(); c.flatten(1); c.flatten(0, 1)
c.flatten(start_dim=1, end_dim=2); a.permute(1, 0); c.permute((2, 0, 1)); a.reshape(2, 6); a.view(4, 3); a.view(-1); a.expand(2, 3, 4); a[:1].expand(5, -1)
t.softmax(a, dim=1); t.log_softmax(a, dim=0); a.softmax(dim=-1); t.logsumexp(a, dim=1); t.logsumexp(a, dim=1, keepdim=True); t.sigmoid(a); t.relu(a)
t.clamp(a, min=0); t.clamp(a, -0.5, 0.5); a.clamp(max=0.3); t.clip(a, min=-0.1); t.tril(a); t.triu(a, 1); t.eye(3); t.eye(2, 4); t.zeros(2, 3); t.ones(3)
t.arange(5); t.arange(1, 7); t.arange(0, 1, 0.25); t.linspace(0, 1, 5); t.full((2, 3), 4); t.full((2,), 0.5); t.zeros_like(a); t.ones_like(i); t.full_like(a, 3)
t.einsum("ij,kj->ik", a, b); t.einsum("bij,ij->b", c, a); t.matmul(c, a.T); a @ b.T; t.outer(a[0], b[0]); t.dot(a[0], b[0]); t.isnan(a / 0 * 0); t.isinf(a / 0)
t.isfinite(a); t.topk(a, 2, dim=1); t.sort(a, dim=0); t.sort(a, dim=1, descending=True); t.argsort(a, dim=1); t.median(a[0, :3]); t.norm(a); t.diff(a, dim=0)
t.tile(a, (2, 1)); t.flip(a, (0,)); t.flip(a, dims := (0, 1)); t.roll(a, 1, 0); t.masked_fill(a, m, 0.0); a.masked_fill(m, -1.0); a[m]; a[a > 0]; a.T; c.mT
a.clone(); a.detach(); t.div(i, 2); t.div(i, 4, rounding_mode="floor"); t.div(a, 0.3, rounding_mode="trunc"); i / 2; i // 2; i % 3; -i % 3; i ** 2; a.abs().sqrt()
t.diagonal(c, 0, 1, 2); t.trace(a[:, :3]); t.diag(a[0]); t.prod(a, 1); t.any(m, 1); t.all(m, 0); t.std(a, dim=1, correction=1); t.var(a, 0, correction=0)
t.square(a); t.rsqrt(a.abs()); t.exp2(a); t.log2(a.abs()); t.sign(a); t.fmod(a, 0.3); t.atan2(a, b); t.erf(a); t.moveaxis(c, 0, 2); t.swapaxes(c, 0, 1); t.ravel(c)
i.sum(); (i > 3).sum(); i.float() / 3; a.double(); i.to(t.float32); a.half(); t.exp(i); t.nan_to_num(a / 0); t.allclose(a, a); t.isclose(a, b); t.count_nonzero(i, 0)
"""
LINES = [e for line in EXPRESSIONS.strip().split("\n") for e in line.split("; ")]
NAMES = ["f32", "f64", "f16", "bf16", "i8", "u8", "i32", "i64", "bool"]


def alike(got, want, about):
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want), about
        for x, y in zip(got, want):
            alike(x, y, about)
    elif isinstance(want, torch.Tensor):
        assert tuple(got.shape) == tuple(want.shape), f"{about}: {got.shape}, and {tuple(want.shape)} in PyTorch"
        assert got.dtype == want.dtype, f"{about}: {got.dtype}, and {want.dtype} in PyTorch"
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6, err_msg=about)
    else:
        assert got == want, about


@pytest.mark.parametrize("text", LINES)
def test_an_expression_is_pytorchs(text):
    r = np.random.default_rng(SEED)
    arrays = {"a": r.normal(size=(3, 4)).astype("f4"), "b": r.normal(size=(3, 4)).astype("f4"), "c": r.normal(size=(2, 3, 4)).astype("f4"),
              "i": r.integers(0, 9, (3, 4)), "m": r.integers(0, 2, (3, 4)) > 0}
    want = eval(text, {"t": torch, **{n: torch.from_numpy(x) for n, x in arrays.items()}})
    got = eval(text, {"t": yoke, **{n: yoke.tensor(x) for n, x in arrays.items()}})
    alike(got, want, text)


def test_one_hot_and_functions_of_nn():
    ids = np.array([[0, 2], [1, 4]])
    assert np.array_equal(yoke.one_hot(ids).numpy(), torch.nn.functional.one_hot(torch.from_numpy(ids)).numpy())
    assert np.array_equal(yoke.one_hot(yoke.tensor(ids), 7).numpy(), torch.nn.functional.one_hot(torch.from_numpy(ids), 7).numpy())
    assert yoke.dtype(torch.float32) is yoke.f32 and yoke.zeros(2).dtype == torch.float32 and yoke.tensor(torch.ones(2)).dtype is yoke.f32


MORE = {
    "Tanh": ((), (5, 7)), "SiLU": ((), (5, 7)), "Sigmoid": ((), (5, 7)), "Identity": ((), (5, 7)), "ReLU": ((), (5, 7)),
    "GELU": (("tanh",), (5, 7)), "Flatten": ((), (2, 3, 4)), "LayerNorm": (((7,),), (5, 7)), "GroupNorm": ((3, 6), (2, 6, 5)),
}


@pytest.mark.parametrize("name", MORE)
def test_layers_have_pytorchs_names(name, rng):
    args, shape = MORE[name]
    theirs = getattr(torch.nn, name)(*args) if name != "GELU" else torch.nn.GELU(approximate=args[0])
    compare(getattr(nn, name)(*args), theirs, rng.normal(size=shape).astype("f4"), what=name)


def test_arguments_have_pytorchs_names(rng):
    for name, theirs, how, shape in [
            ("Linear", "Linear", dict(in_features=3, out_features=4, bias=True), (2, 3)),
            ("Conv2d", "Conv2d", dict(in_channels=2, out_channels=3, kernel_size=3, stride=2, padding=1, dilation=1, groups=1, bias=False), (1, 2, 7, 7)),
            ("ConvTransposed2d", "ConvTranspose2d", dict(in_channels=2, out_channels=3, kernel_size=3, stride=2, padding=1, output_padding=1), (1, 2, 5, 5)),
            ("BatchNorm", "BatchNorm1d", dict(num_features=4), (6, 4)),
            ("MaxPool", "MaxPool2d", dict(kernel_size=2, stride=2), (1, 2, 6, 6))]:
        compare(getattr(nn, name)(**how), getattr(torch.nn, theirs)(**how), rng.normal(size=shape).astype("f4"), what=name)


def test_tied_weights_train_as_pytorchs(rng):
    """Five steps of SGD of an embedding and a head that share their weight."""
    table, x = rng.normal(size=(6, 4)).astype("f4"), rng.integers(0, 6, (8, 3))
    embed, head = torch.nn.Embedding(6, 4), torch.nn.Linear(4, 6, bias=False)
    head.weight = embed.weight
    embed.weight.data = torch.from_numpy(table.copy())
    theirs = torch.optim.SGD([embed.weight], lr=0.1)

    class Net(nn.Module):
        def __init__(self):
            self.embed, self.head = nn.Embedding(6, 4), nn.Linear(4, 6, bias=False)
            self.head.weight = self.embed.weight
            self.embed.weight = table

        def forward(self, ids):
            return self.head(self.embed(ids))

    net = Net()
    ours = yoke.optim.SGD(net, lr=0.1)
    for _ in range(5):
        loss = torch.nn.functional.cross_entropy(head(embed(torch.from_numpy(x))).reshape(-1, 6), torch.from_numpy(x).reshape(-1))
        theirs.zero_grad()
        loss.backward()
        theirs.step()
        with yoke.scope("step"):
            got, g = yoke.value_and_grad(lambda n: yoke.cross_entropy(n(yoke.tensor(x)).reshape(-1, 6), yoke.tensor(x).reshape(-1)))(net)
            ours.step(g)
            assert abs(got.item() - loss.item()) < 1e-5
    close(net.head.weight.numpy(), embed.weight)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("batch", [True, False], ids=["batch", "no batch"])
def test_max_unpool(axes, batch, rng):
    """Indices, the inverse in its default size and in a given one, and the gradient through both, in float64."""
    pool, unpool = getattr(torch.nn, f"MaxPool{axes}d")(2, return_indices=True), getattr(torch.nn, f"MaxUnpool{axes}d")(2)
    mine, back = getattr(nn, f"MaxPool{axes}d")(2, return_indices=True), getattr(nn, f"MaxUnpool{axes}d")(2)
    for dims, given in (((2, 3, 8, 6, 4), False), ((2, 3, 9, 8, 7), True)):
        shape = dims[0 if batch else 1:2 + axes]
        x = rng.normal(size=shape)
        t, v = torch.tensor(x, requires_grad=True), yoke.tensor(x)
        y, i = pool(t)
        z, k = mine(v)
        assert np.array_equal(k.numpy(), i.numpy()) and np.array_equal(z.numpy(), y.detach().numpy())
        size = shape[-axes:] if given else None
        want = unpool(y, i, output_size=size)
        got = back(z, k, output_size=size)
        assert np.array_equal(got.numpy(), want.detach().numpy())
        g = torch.autograd.grad((want ** 3).sum(), t, retain_graph=True)[0]
        np.testing.assert_allclose(yoke.grad((got * got * got).sum(), [v])[0].numpy(), g.numpy(), rtol=1e-13)
    assert np.array_equal(back(z, k, output_size=shape).numpy(), got.numpy())
    for bad in (lambda: back(z, k, output_size=[99] * axes), lambda: back(z, k[..., :1]), lambda: getattr(nn, f"MaxUnpool{axes}d")((2,) * 4),
                lambda: nn.Sequential(mine)):
        with pytest.raises(ValueError):
            bad()
