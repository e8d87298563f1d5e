# SPDX-License-Identifier: Apache-2.0
"""yoke.nn.RNN, LSTM and GRU against NumPy in float64, and, where PyTorch is installed, with its state dicts, gradients and
packed sequences; projections; cells; packing; loss_ctc."""
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


def grads_of(net, y, others):
    names = list(net.parameters())
    g = yoke._core.grad(y, [*others, *(net.parameters()[k] for k in names)])
    return [v.numpy() for v in g[:len(others)]], dict(zip(names, (v.numpy() for v in g[len(others):])))


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("lengths", [None, [6, 2, 4]], ids=["whole", "lengths"])
def test_projection_torch(both, lengths, rng):
    """LSTM with proj_size in float64: results, last states and all gradients."""
    torch = pytest.importorskip("torch")
    how = dict(num_layers=2, bidirectional=both, proj_size=3)
    theirs, mine = torch.nn.LSTM(5, 7, **how).double(), yoke.nn.LSTM(5, 7, **how)
    mine.cast("f64")
    mine.load_state_dict({k: v.detach().numpy() for k, v in theirs.state_dict().items()})
    layers = 4 if both else 2
    x, h, c = (rng.standard_normal(s) for s in ((6, 3, 5), (layers, 3, 3), (layers, 3, 7)))
    t = [torch.tensor(a, requires_grad=True) for a in (x, h, c)]
    v = [yoke.tensor(a) for a in (x, h, c)]
    if lengths is None:
        y, (a, b) = theirs(t[0], (t[1], t[2]))
    else:
        packed = torch.nn.utils.rnn.pack_padded_sequence(t[0], lengths, enforce_sorted=False)
        y, (a, b) = theirs(packed, (t[1], t[2]))
        y, _ = torch.nn.utils.rnn.pad_packed_sequence(y)
    ((y ** 2).sum() + (a ** 3).sum() + b.sin().sum()).backward()
    z, (d, e) = mine(v[0], (v[1], v[2]), lengths=lengths)
    g, of = grads_of(mine, (z * z).sum() + (d * d * d).sum() + e.sin().sum(), v)
    for got, want in ((z, y), (d, a), (e, b)):
        np.testing.assert_allclose(got.numpy(), want.detach().numpy(), atol=1e-13)
    for got, want in zip(g, t):
        np.testing.assert_allclose(got, want.grad.numpy(), atol=1e-12)
    for k, p in theirs.named_parameters():
        np.testing.assert_allclose(of[k], p.grad.numpy(), atol=1e-12, err_msg=k)


def test_projection_loops(rng):
    """One layer in f32 against a loop in float64, without PyTorch."""
    net = yoke.nn.LSTM(4, 6, proj_size=2, bias=False)
    w = {k: v.astype("f8") for k, v in net.state_dict().items()}
    assert list(w) == ["weight_ih_l0", "weight_hh_l0", "weight_hr_l0"]
    x = rng.standard_normal((5, 3, 4)).astype("f4")
    h, c, want = np.zeros((3, 2)), np.zeros((3, 6)), []
    for t in range(5):
        i, f, g, o = np.split(x[t] @ w["weight_ih_l0"].T + h @ w["weight_hh_l0"].T, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c) @ w["weight_hr_l0"].T
        want.append(h)
    y, (last, cells) = net(yoke.tensor(x))
    np.testing.assert_allclose(y.numpy(), want, atol=2e-6)
    np.testing.assert_allclose(last.numpy()[0], h, atol=2e-6)
    np.testing.assert_allclose(cells.numpy()[0], c, atol=2e-6)
    for bad in (6, 7, -1):
        with pytest.raises(ValueError, match="proj_size"):
            yoke.nn.LSTM(4, 6, proj_size=bad)


@pytest.mark.parametrize("first", [False, True], ids=["steps first", "rows first"])
def test_packing(first, rng):
    x, n = rng.standard_normal((4, 6, 2)), [3, 6, 1, 6]
    for i, k in enumerate(n):
        x[i, k:] = np.nan  # padding is not read
    packed = yoke.nn.pack_padded_sequence(yoke.tensor(x if first else x.swapaxes(0, 1)), n, first, enforce_sorted=False)
    order = [1, 3, 0, 2]
    assert packed.batch_sizes.tolist() == [4, 3, 3, 2, 2, 2] and packed.sorted_indices.tolist() == order
    assert packed.unsorted_indices.tolist() == [2, 0, 3, 1]
    want = [x[b, t] for t in range(6) for b in order if t < n[b]]
    np.testing.assert_array_equal(packed.data.numpy(), want)
    y, lengths = yoke.nn.pad_packed_sequence(packed, first, -7.0, total_length=8)
    assert lengths.numpy().tolist() == n
    wide = np.full((4, 8, 2), -7.0)
    for i, k in enumerate(n):
        wide[i, :k] = x[i, :k]
    np.testing.assert_array_equal(y.numpy(), wide if first else wide.swapaxes(0, 1))
    again = yoke.nn.pack_sequence([x[i, :k] for i, k in enumerate(n)], enforce_sorted=False)
    np.testing.assert_array_equal(again.data.numpy(), want)
    for a, b in zip(yoke.nn.unpack_sequence(again), x):
        np.testing.assert_array_equal(a.numpy(), b[:a.shape[0]])
    left = yoke.nn.pad_sequence([x[i, :k] for i, k in enumerate(n)], first, 9.0, "left").numpy()
    left = left if first else left.swapaxes(0, 1)
    for i, k in enumerate(n):
        assert np.array_equal(left[i, 6 - k:], x[i, :k]) and (left[i, :6 - k] == 9).all()


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("ordered", [False, True], ids=["any order", "sorted"])
def test_packed_torch(name, ordered, rng):
    """Packed sequences through two layers in both directions, in float64: data, states, gradients."""
    torch = pytest.importorskip("torch")
    rnn = torch.nn.utils.rnn
    theirs = getattr(torch.nn, name)(5, 4, num_layers=2, bidirectional=True).double()
    mine = getattr(yoke.nn, name)(5, 4, num_layers=2, bidirectional=True)
    mine.cast("f64")
    mine.load_state_dict({k: v.detach().numpy() for k, v in theirs.state_dict().items()})
    n = [6, 4, 2] if ordered else [2, 6, 4]
    x, h, c = rng.standard_normal((6, 3, 5)), rng.standard_normal((4, 3, 4)), rng.standard_normal((4, 3, 4))
    t, v = [torch.tensor(a, requires_grad=True) for a in (x, h, c)], [yoke.tensor(a) for a in (x, h, c)]
    lstm = name == "LSTM"
    a, s = theirs(rnn.pack_padded_sequence(t[0], n, enforce_sorted=ordered), (t[1], t[2]) if lstm else t[1])
    b, r = mine(yoke.nn.pack_padded_sequence(v[0], n, enforce_sorted=ordered), (v[1], v[2]) if lstm else v[1])
    assert isinstance(b, yoke.nn.PackedSequence) and b.batch_sizes.tolist() == a.batch_sizes.tolist()
    assert (b.sorted_indices is None) == ordered and (ordered or b.sorted_indices.tolist() == a.sorted_indices.tolist())
    np.testing.assert_allclose(b.data.numpy(), a.data.detach().numpy(), atol=1e-13)
    s, r = (s, r) if lstm else ((s,), (r,))
    for one, two in zip(s, r):
        np.testing.assert_allclose(two.numpy(), one.detach().numpy(), atol=1e-13)
    ((rnn.pad_packed_sequence(a)[0] ** 2).sum() + sum((p ** 3).sum() for p in s)).backward()
    y, lengths = yoke.nn.pad_packed_sequence(b)
    assert lengths.numpy().tolist() == n
    used = v if lstm else v[:2]
    loss = (y * y).sum()
    for p in r:
        loss = loss + (p * p * p).sum()
    g, of = grads_of(mine, loss, used)
    for got, want in zip(g, t):
        np.testing.assert_allclose(got, want.grad.numpy(), atol=1e-12)
    for k, p in theirs.named_parameters():
        np.testing.assert_allclose(of[k], p.grad.numpy(), atol=1e-12, err_msg=k)


def test_packed_as_padded(rng):
    """Without PyTorch: the results are those of the argument lengths, also of sequences of one length."""
    for n in ([2, 5, 4], [5, 5, 5]):
        net, x = yoke.nn.GRU(3, 4), yoke.tensor(rng.standard_normal((5, 3, 3)).astype("f4"))
        y, h = net(x, lengths=n)
        b, s = net(yoke.nn.pack_padded_sequence(x, n, enforce_sorted=False))
        assert np.array_equal(yoke.nn.pad_packed_sequence(b)[0].numpy(), y.numpy()) and np.array_equal(s.numpy(), h.numpy())


def test_packing_errors(rng):
    x = yoke.tensor(rng.standard_normal((4, 2, 3)))
    pack, packed = yoke.nn.pack_padded_sequence, yoke.nn.pack_padded_sequence(x, [4, 2])
    for bad, match in ((lambda: pack(x, [2, 4]), "increase"), (lambda: pack(x, [5, 1]), "lengths"), (lambda: pack(x, [4, 0]), "lengths"),
                       (lambda: pack(x, [4]), "lengths"), (lambda: pack(x, [4.5, 1]), "integers"), (lambda: pack(x[0, 0], [1]), "takes"),
                       (lambda: yoke.nn.pad_packed_sequence(packed, total_length=3), "total_length"),
                       (lambda: yoke.nn.pad_sequence([]), "sequences"), (lambda: yoke.nn.pad_sequence([x, x[:, :, :2]]), "sequences"),
                       (lambda: yoke.nn.PackedSequence(x, [3, 2]), "batch_sizes"), (lambda: yoke.nn.PackedSequence(x, [2, 1, 1], [0, 0]), "permutation"),
                       (lambda: yoke.nn.GRU(3, 4)(packed, lengths=[1, 2]), "lengths"),
                       (lambda: yoke.nn.GRU(3, 4)(packed, yoke.zeros(1, 3, 4)), "state"),
                       (lambda: yoke.nn.unpad_sequence(x, [1, 9]), "lengths")):
        with pytest.raises(ValueError, match=match) as e:
            bad()
        assert "\n" not in str(e.value)
    with pytest.raises(TypeError, match="PackedSequence"):
        yoke.nn.pad_packed_sequence(x)


@pytest.mark.parametrize("name", CELLS)
def test_cells(name, rng):
    """A cell's steps are those of a layer with its weights."""
    one, net = getattr(yoke.nn, name + "Cell")(3, 4), getattr(yoke.nn, name)(3, 4)
    net.load_state_dict({k + "_l0": v for k, v in one.state_dict().items()})
    x = yoke.tensor(rng.standard_normal((5, 2, 3)).astype("f4"))
    y, last = net(x)
    state = None
    for t in range(5):
        state = one(x[t], state)
        np.testing.assert_allclose((state[0] if name == "LSTM" else state).numpy(), y.numpy()[t], atol=1e-6)
    flat = one(x[0, 0])
    np.testing.assert_allclose((flat[0] if name == "LSTM" else flat).numpy(), y.numpy()[0, 0], atol=1e-6)
    if name == "LSTM":
        np.testing.assert_allclose(state[1].numpy(), last[1].numpy()[0], atol=1e-6)
