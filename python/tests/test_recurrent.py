# SPDX-License-Identifier: Apache-2.0
"""yoke.nn.RNN, LSTM and GRU against NumPy in float64, and, where PyTorch is installed, with its state dicts, gradients and
packed sequences; loss_ctc."""
import numpy as np
import pytest

import yoke

CELLS = ["RNN", "LSTM", "GRU"]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def cell(name, x, h, c, w):
    p, q = x @ w["weight_ih"].T + w["bias_ih"], h @ w["weight_hh"].T + w["bias_hh"]
    if name == "RNN":
        return np.tanh(p + q), c
    if name == "LSTM":
        i, f, g, o = np.split(p + q, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    (a, b, n), (d, e, m) = np.split(p, 3, -1), np.split(q, 3, -1)
    z = sigmoid(b + e)
    return (1 - z) * np.tanh(n + sigmoid(a + d) * m) + z * h, c


def loops(name, net, x, lengths):
    state = net.state_dict()
    for layer, end in net._layers():
        w = {k: state[f"{k}_l{layer}{end}"].astype("f8") for k in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
        if not end:
            below, sides = (x if layer == 0 else np.concatenate(sides, -1)), []
        h, c = np.zeros((x.shape[1], net.hidden_size)), np.zeros((x.shape[1], net.hidden_size))
        y = np.zeros((x.shape[0], *h.shape))
        for t in range(x.shape[0])[::-1 if end else 1]:
            new, cells = cell(name, below[t], h, c, w)
            on = (t < lengths)[:, None]
            h, c = np.where(on, new, h), np.where(on, cells, c)
            y[t] = np.where(on, h, 0)
        sides.append(y)
    return np.concatenate(sides, -1), h


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("both", [False, True])
def test_loops(name, both, rng):
    net = getattr(yoke.nn, name)(5, 7, num_layers=2, bidirectional=both)
    x, lengths = rng.standard_normal((6, 3, 5)).astype("f4"), np.array([6, 2, 4])
    y, last = net(yoke.tensor(x), lengths=lengths)
    want, h = loops(name, net, x, lengths)
    np.testing.assert_allclose(y.numpy(), want, atol=2e-6)
    np.testing.assert_allclose((last[0] if name == "LSTM" else last).numpy()[-1], h, atol=2e-6)


@pytest.mark.parametrize("name", CELLS)
def test_torch(name, rng):
    torch = pytest.importorskip("torch")
    theirs = getattr(torch.nn, name)(5, 7, num_layers=2, bidirectional=True, batch_first=True)
    mine = getattr(yoke.nn, name)(5, 7, num_layers=2, bidirectional=True, batch_first=True)
    mine.load_state_dict({k: v.detach().numpy() for k, v in theirs.state_dict().items()})
    x = rng.standard_normal((3, 6, 5)).astype("f4")
    t = torch.tensor(x, requires_grad=True)
    packed = torch.nn.utils.rnn.pack_padded_sequence(t, [6, 2, 4], batch_first=True, enforce_sorted=False)
    want, _ = torch.nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True)
    (want ** 2).sum().backward()
    names = list(mine.parameters())
    p = [mine.parameters()[k] for k in names]
    v = yoke.tensor(x)
    y, _ = mine(v, lengths=[6, 2, 4])
    g = yoke._core.grad((y * y).sum(), [v, *p])
    np.testing.assert_allclose(y.numpy(), want.detach().numpy(), atol=2e-6)
    np.testing.assert_allclose(g[0].numpy(), t.grad.numpy(), atol=1e-5)
    for k, one in zip(names, g[1:]):
        np.testing.assert_allclose(one.numpy(), getattr(theirs, k).grad.numpy(), atol=3e-5)


def test_one_sequence(rng):
    net = yoke.nn.LSTM(4, 3)
    x = rng.standard_normal((5, 4)).astype("f4")
    y, (h, c) = net(yoke.tensor(x))
    assert y.shape == (5, 3) and h.shape == (1, 3) and c.shape == (1, 3)
    again, _ = net(yoke.tensor(x[2:]), tuple(s for s in net(yoke.tensor(x[:2]))[1]))
    np.testing.assert_allclose(again.numpy(), y.numpy()[2:], atol=1e-6)
    with pytest.raises(ValueError):
        yoke.nn.RNN(4, 3, nonlinearity="sin")


def test_ctc(rng):
    """Two labels in three steps: all five alignments."""
    x = rng.standard_normal((3, 1, 3))
    p = np.exp(x[:, 0])
    want = sum(p[0, a] * p[1, b] * p[2, c] for a, b, c in ((1, 2, 0), (1, 0, 2), (0, 1, 2), (1, 1, 2), (1, 2, 2)))
    one = lambda v: yoke.tensor(np.array(v))  # noqa: E731
    got = yoke.loss_ctc(yoke.tensor(x), one([[1, 2]]), one([3]), one([2]), 0, yoke.LOSS_SUM, 0)
    np.testing.assert_allclose(got.numpy(), -np.log(want), rtol=1e-12)
