# SPDX-License-Identifier: Apache-2.0
"""Functions and modules of yoke.nn beside PyTorch's of the same names and arguments, in float64: values and gradients."""
import copy
import inspect
import pickle

import numpy as np
import pytest

import yoke
import yoke.nn.functional as F
from conftest import SEED
from yoke import nn

torch = pytest.importorskip("torch")


class Make:
    """Operands of a case, drawn from one generator in the order of the calls."""

    def __init__(self, seed=SEED):
        self.r = np.random.default_rng(seed)

    def x(self, *shape):
        """Numbers with some that are 0 or at the kinks of activations."""
        a = self.r.normal(size=shape) * 2
        return np.where(self.r.uniform(size=shape) < 0.1, self.r.choice([0.0, 30.0, -30.0, 1000.0, -1000.0], shape), a)

    def n(self, *shape):
        return self.r.normal(size=shape)

    def pos(self, *shape):
        return self.r.uniform(0.2, 3, shape)

    def weight(self, *shape):
        return Const(self.pos(*shape))

    def prob(self, *shape):
        return self.r.uniform(0.01, 0.99, shape)

    def logp(self, *shape):
        a = self.r.normal(size=shape)
        return a - np.log(np.exp(a).sum(1, keepdims=True))

    def dist(self, *shape):
        return np.exp(self.logp(*shape))

    def ids(self, n, *shape):
        return self.r.integers(0, n, shape)

    def sign(self, *shape):
        return Const(self.r.choice([-1.0, 1.0], shape))

    def bits(self, *shape):
        return self.r.integers(0, 2, shape).astype("f8")


class Const:
    """An operand by which PyTorch has no gradient."""

    def __init__(self, a):
        self.a = a


def ours(a):
    return yoke.tensor(a) if isinstance(a, np.ndarray) else yoke.tensor(a.a) if isinstance(a, Const) else a


def theirs(a):
    t = torch.from_numpy(np.array(a.a if isinstance(a, Const) else a)) if isinstance(a, (np.ndarray, Const)) else a
    return t.requires_grad_() if isinstance(a, np.ndarray) and t.is_floating_point() else t


def flat(y):
    return [y] if not isinstance(y, (tuple, list)) else [t for z in y if z is not None for t in flat(z)]


def close(got, want, about, rtol):
    assert tuple(got.shape) == tuple(want.shape), f"{about}: {got.shape}, and {tuple(want.shape)} in PyTorch"
    want = want.detach().numpy()
    scale = max(1.0, float(np.abs(want[np.isfinite(want)]).max(initial=0)))
    np.testing.assert_allclose(got.numpy(), want, rtol=rtol, atol=1e-12 * scale, err_msg=about)


def compare(mine, its, args, kwargs, about, leaves=((), ()), rtol=1e-9):
    """Calls both with the same operands; compares the results, and the gradients by floating-point operands and leaves."""
    a, ka = [ours(t) for t in args], {k: ours(t) for k, t in kwargs.items()}
    b, kb = [theirs(t) for t in args], {k: theirs(t) for k, t in kwargs.items()}
    got, want = flat(mine(*a, **ka)), flat(its(*b, **kb))
    assert len(got) == len(want), about
    for y, z in zip(got, want):
        close(y, z, about, rtol)
    pairs = [(t, u) for t, u in zip([*a, *ka.values(), *leaves[0]], [*b, *kb.values(), *leaves[1]])
             if isinstance(u, torch.Tensor) and u.requires_grad]
    diff = [(y, z) for y, z in zip(got, want) if z.requires_grad]
    if not diff or not pairs:
        return
    r = np.random.default_rng(SEED + 1)
    total, sum_ = 0, 0
    for y, z in diff:
        w = r.normal(size=tuple(z.shape))
        total, sum_ = total + (y * yoke.tensor(w)).sum(), sum_ + (z * torch.from_numpy(w)).sum()
    grads = torch.autograd.grad(sum_, [u for _, u in pairs], allow_unused=True)
    wanted = [(t, g) for (t, _), g in zip(pairs, grads) if g is not None]
    for k, (g, (_, h)) in enumerate(zip(yoke.grad(total, [t for t, _ in wanted]), wanted)):
        close(g, h, f"{about}: gradient {k}", rtol)


REDUCTIONS = ("mean", "sum", "none")
SHAPES = ((3, 5), (4,), (2, 3, 4))

# Each case: a function of a Make to (operands, options).  The name of the function is that before the first space.
CASES = {}


def case(name, make):
    CASES[name] = make


def losses(name, make, **more):
    """A case for each reduction, and for each set of options."""
    for r in REDUCTIONS:
        case(f"{name} {r}", lambda m, r=r: (make(m), {"reduction": r}))
    for k, options in more.items():
        for r in ("mean", "none"):
            case(f"{name} {k} {r}", lambda m, r=r, o=options: (make(m), {"reduction": r, **(o(m) if callable(o) else o)}))


for s in SHAPES:
    more = losses if s == SHAPES[0] else lambda name, make, **options: losses(name, make)
    pair = lambda m, s=s: [m.n(*s), m.n(*s)]
    more(f"mse_loss {s}", pair, weight=lambda m, s=s: {"weight": m.weight(*s)})
    more(f"l1_loss {s}", pair, weight=lambda m, s=s: {"weight": m.weight(*s)})
    more(f"huber_loss {s}", pair, delta={"delta": 0.4}, weight=lambda m, s=s: {"weight": m.weight(*s)})
    more(f"smooth_l1_loss {s}", pair, beta={"beta": 0.3}, zero={"beta": 0})
    more(f"binary_cross_entropy {s}", lambda m, s=s: [m.prob(*s), m.prob(*s)], weight=lambda m, s=s: {"weight": m.weight(*s)},
           broadcast=lambda m, s=s: {"weight": m.weight(s[-1])})
    more(f"binary_cross_entropy_with_logits {s}", lambda m, s=s: [m.x(*s), m.bits(*s)], weight=lambda m, s=s: {"weight": m.weight(*s)},
           pos=lambda m, s=s: {"pos_weight": m.weight(s[-1]), "weight": m.weight(s[-1])})
    more(f"kl_div {s}", lambda m, s=s: [np.log(m.prob(*s)), m.prob(*s)])
    more(f"poisson_nll_loss {s}", lambda m, s=s: [m.n(*s), m.pos(*s)], full={"full": True})
    more(f"soft_margin_loss {s}", lambda m, s=s: [m.x(*s), m.sign(*s)])
    more(f"hinge_embedding_loss {s}", lambda m, s=s: [m.n(*s), m.sign(*s)], margin={"margin": 0.3})
losses("mse_loss broadcast", lambda m: [m.n(3, 1), m.n(5)])
losses("l1_loss at 0", lambda m: [np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 3.0])])
losses("binary_cross_entropy at 0 and 1", lambda m: [np.array([0.0, 0.0, 1.0, 1.0, 0.5]), Const(np.array([0.0, 1.0, 0.0, 1.0, 0.3]))])
losses("kl_div zeros", lambda m: [m.logp(3, 4), Const(m.dist(3, 4) * m.bits(3, 4))])
for r in REDUCTIONS:
    case(f"kl_div logarithms {r}", lambda m, r=r: ([m.logp(3, 4), m.logp(3, 4)], {"reduction": r, "log_target": True}))
case("kl_div batchmean", lambda m: ([m.logp(3, 4), m.dist(3, 4)], {"reduction": "batchmean"}))
losses("poisson_nll_loss counts", lambda m: [m.pos(3, 4), Const(m.ids(4, 3, 4).astype("f8"))], plain={"log_input": False, "full": True, "eps": 1e-3})
losses("gaussian_nll_loss", lambda m: [m.n(4, 5), m.n(4, 5), m.pos(4, 5)], full={"full": True})
losses("gaussian_nll_loss rows", lambda m: [m.n(4, 5), m.n(4, 5), m.pos(4)])
losses("gaussian_nll_loss column", lambda m: [m.n(4, 5), m.n(4, 5), m.pos(4, 1)])
losses("gaussian_nll_loss small", lambda m: [m.n(4, 5), m.n(4, 5), m.pos(4, 5) - 0.2], eps={"eps": 0.5})
case("gaussian_nll_loss number", lambda m: ([m.n(4, 5), m.n(4, 5), 0.7], {}))
for name, x, t in (("rows", (6, 4), (6,)), ("one", (4,), ()), ("images", (2, 4, 3, 5), (2, 3, 5)), ("sequences", (2, 4, 3), (2, 3))):
    ids = lambda m, t=t: np.asarray(m.ids(4, *t))
    some = lambda m, t=t: np.where(m.bits(*t) * m.bits(*t) > 0, -100, m.ids(4, *t))
    weights = {"weight": lambda m: {"weight": m.weight(4)}, "ignore": {"ignore_index": 2},
               "both": lambda m: {"weight": m.weight(4), "ignore_index": 1}}
    losses(f"cross_entropy {name}", lambda m, x=x, f=ids: [m.x(*x), f(m)], smooth={"label_smoothing": 0.2},
           smooth_weight=lambda m: {"weight": m.weight(4), "label_smoothing": 0.3, "ignore_index": 1}, **weights)
    losses(f"nll_loss {name}", lambda m, x=x, f=ids: [m.n(*x), f(m)], **weights)
    if len(x) > 1:
        losses(f"cross_entropy some {name}", lambda m, x=x, f=some: [m.n(*x), f(m)], smooth={"label_smoothing": 0.2})
        losses(f"nll_loss some {name}", lambda m, x=x, f=some: [m.n(*x), f(m)])
        losses(f"cross_entropy probabilities {name}", lambda m, x=x: [m.n(*x), m.dist(*x)], smooth={"label_smoothing": 0.2},
               weight=lambda m: {"weight": m.weight(4), "label_smoothing": 0.3})
losses("margin_ranking_loss", lambda m: [m.n(3, 4), m.n(3, 4), m.sign(3, 4)], margin={"margin": 0.5})
losses("cosine_embedding_loss", lambda m: [m.n(5, 4), m.n(5, 4), m.sign(5)], margin={"margin": 0.2})
losses("cosine_embedding_loss one", lambda m: [m.n(4), m.n(4), m.sign()])
losses("multi_margin_loss", lambda m: [m.n(5, 4), m.ids(4, 5)], square={"p": 2}, margin={"margin": 0.3},
       weight=lambda m: {"weight": m.weight(4)})
losses("multi_margin_loss one", lambda m: [m.n(4), np.asarray(m.ids(4))])
losses("multilabel_margin_loss", lambda m: [m.n(3, 5), np.array([[3, 0, -1, 1, 2], [-1, 0, 1, 2, 3], [0, 1, 2, 3, 4]])])
losses("multilabel_margin_loss one", lambda m: [m.n(4), np.array([3, 0, -1, 1])])
losses("multilabel_soft_margin_loss", lambda m: [m.x(3, 5), m.bits(3, 5)], weight=lambda m: {"weight": m.weight(5)})
losses("triplet_margin_loss", lambda m: [m.n(4, 6), m.n(4, 6), m.n(4, 6)], swap={"swap": True}, p={"p": 1.0, "margin": 0.5, "eps": 1e-3})
losses("triplet_margin_with_distance_loss", lambda m: [m.n(4, 6), m.n(4, 6), m.n(4, 6)], swap={"swap": True, "margin": 2.0})
for r in REDUCTIONS:
    case(f"ctc_loss {r}", lambda m, r=r: ([m.logp(9, 5, 3).swapaxes(1, 2), 1 + m.ids(4, 3, 4), np.array([9, 8, 9]), np.array([4, 2, 3])],
                                          {"reduction": r}))
    case(f"ctc_loss joined {r}", lambda m, r=r: ([m.logp(9, 5, 3).swapaxes(1, 2), 1 + m.ids(4, 9), np.array([9, 8, 9]), np.array([4, 2, 3])],
                                                 {"reduction": r, "blank": 0}))
    case(f"ctc_loss infinite {r}", lambda m, r=r: ([m.logp(3, 5, 3).swapaxes(1, 2), np.full((3, 3), 2), np.array([3, 3, 3]), np.array([3, 1, 2])],
                                                   {"reduction": r, "zero_infinity": True}))
case("ctc_loss one", lambda m: ([m.logp(9, 5), 1 + m.ids(4, 4), np.array(9), np.array(4)], {}))

for name in ("relu relu6 leaky_relu elu celu selu gelu silu mish sigmoid logsigmoid softplus softsign softshrink hardshrink tanh "
             "tanhshrink hardtanh hardsigmoid rrelu").split():
    for s in ((6, 50), (7,), ()):
        case(f"{name} {s}", lambda m, s=s: ([np.asarray(m.x(*s))], {}))
kinks = lambda m: [np.array([-6.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0, 20.0, 1e5, -1e5])]
for name in "relu6 hardtanh hardsigmoid softshrink hardshrink leaky_relu elu selu softplus softsign".split():
    case(f"{name} kinks", lambda m: (kinks(m), {}))
for name, options in (("leaky_relu", {"negative_slope": 0.3}), ("elu", {"alpha": 0.7}), ("celu", {"alpha": 2.0}),
                      ("gelu", {"approximate": "tanh"}), ("softplus", {"beta": 2.5}), ("softplus", {"beta": 0.5, "threshold": 3.0}),
                      ("softshrink", {"lambd": 1.1}), ("hardshrink", {"lambd": 1.1}), ("hardtanh", {"min_val": -0.3, "max_val": 2.0}),
                      ("rrelu", {"lower": 0.2, "upper": 0.4}), ("relu", {"inplace": False})):
    case(f"{name} {options}", lambda m, o=options: ([m.x(6, 50)], o))
case("threshold", lambda m: ([m.x(6, 5), 0.3, 20.0], {}))
case("prelu one", lambda m: ([m.x(3, 4, 5), m.n(1)], {}))
case("prelu channels", lambda m: ([m.x(3, 4, 5), m.n(4)], {}))
case("prelu vector", lambda m: ([m.x(5), m.n(1)], {}))
for dim in (-1, 0, 1):
    case(f"glu {dim}", lambda m, d=dim: ([m.x(4, 6, 8)], {"dim": d}))
    for name in ("softmax", "softmin", "log_softmax"):
        case(f"{name} {dim}", lambda m, d=dim: ([m.x(4, 6, 8)], {"dim": d}))
    case(f"cosine_similarity {dim}", lambda m, d=dim: ([m.n(4, 6), m.n(4, 6)], {"dim": d}))
    case(f"normalize {dim}", lambda m, d=dim: ([m.n(4, 6)], {"dim": d}))
case("cosine_similarity broadcast", lambda m: ([m.n(4, 1, 6), m.n(5, 6), -1], {}))
case("cosine_similarity broadcast 2", lambda m: ([m.n(4, 1, 6), m.n(5, 6), 2], {}))
case("cosine_similarity zero", lambda m: ([np.zeros((2, 3)), m.n(2, 3)], {"eps": 0.5}))
case("normalize options", lambda m: ([m.n(4, 6)], {"p": 3.0, "eps": 2.0}))
case("pairwise_distance", lambda m: ([m.n(4, 6), m.n(4, 6)], {}))
case("pairwise_distance options", lambda m: ([m.n(4, 6), m.n(6)], {"p": 1.0, "eps": 0.1, "keepdim": True}))
case("pdist", lambda m: ([m.n(5, 3)], {}))
case("pdist options", lambda m: ([m.n(5, 3)], {"p": 1.0}))


def after_softmax(fn, package):
    """The gradient of PyTorch's CTC loss is right only if a log_softmax precedes it."""
    return lambda x, *args, **kwargs: fn(package.log_softmax(x, -1), *args, **kwargs)


# PyTorch's constants 1/6 and 1e-12 in the gradients of these have the precision of f32.
LOOSE = {"hardsigmoid": 1e-7, "Hardsigmoid": 1e-7, "binary_cross_entropy": 1e-8}


def hidden(m, *shape):
    """A mask of bool in which no row hides all keys."""
    mask = m.r.uniform(size=shape) < 0.4
    mask[..., 0] = False
    return mask


qkv = lambda m, t=5, s=7, lead=(2, 3): [m.n(*lead, t, 8), m.n(*lead, s, 8), m.n(*lead, s, 6)]
SDPA = "scaled_dot_product_attention"
for lead in ((2, 3), (4,), (), (2, 1, 3)):
    case(f"{SDPA} {lead}", lambda m, a=lead: (qkv(m, lead=a), {}))
    case(f"{SDPA} causal {lead}", lambda m, a=lead: (qkv(m, lead=a), {"is_causal": True}))
    case(f"{SDPA} bool {lead}", lambda m, a=lead: (qkv(m, lead=a), {"attn_mask": ~hidden(m, *a, 5, 7)}))
    case(f"{SDPA} float {lead}", lambda m, a=lead: (qkv(m, lead=a), {"attn_mask": m.n(*a, 5, 7)}))
    case(f"{SDPA} one mask {lead}", lambda m, a=lead: (qkv(m, lead=a), {"attn_mask": ~hidden(m, 5, 7), "scale": 0.3}))
case(f"{SDPA} square causal", lambda m: (qkv(m, 6, 6), {"is_causal": True}))
case(f"{SDPA} groups", lambda m: ([m.n(2, 6, 5, 8), m.n(2, 3, 7, 8), m.n(2, 3, 7, 8)], {"enable_gqa": True}))
case(f"{SDPA} broadcast", lambda m: ([m.n(2, 3, 5, 8), m.n(3, 7, 8), m.n(1, 3, 7, 8)], {"attn_mask": ~hidden(m, 2, 1, 5, 7)}))
case("layer_norm", lambda m: ([m.n(3, 4, 5), (5,), m.n(5), m.n(5)], {}))
case("layer_norm two axes", lambda m: ([m.n(3, 4, 5), (4, 5), m.n(4, 5)], {"eps": 1e-2}))
case("rms_norm", lambda m: ([m.n(3, 4, 5), (5,), m.n(5)], {}))
case("rms_norm two axes", lambda m: ([m.n(3, 4, 5), (4, 5)], {"eps": 1e-2}))
case("group_norm", lambda m: ([m.n(3, 6, 5), 2, m.n(6), m.n(6)], {}))
case("group_norm plain", lambda m: ([m.n(3, 6, 5, 2), 3], {"eps": 1e-2}))
case("batch_norm", lambda m: ([m.n(3, 6, 5), Const(m.n(6)), Const(m.pos(6)), m.n(6), m.n(6)], {}))
case("batch_norm training", lambda m: ([m.n(3, 6, 5), None, None, m.n(6), m.n(6), True], {"eps": 1e-2}))
case("instance_norm", lambda m: ([m.n(3, 6, 5)], {}))
case("instance_norm options", lambda m: ([m.n(3, 6, 5, 4)], {"weight": m.n(6), "bias": m.n(6), "eps": 1e-2}))
case("instance_norm running", lambda m: ([m.n(3, 6, 5), Const(m.n(6)), Const(m.pos(6))], {"use_input_stats": False}))
case("local_response_norm", lambda m: ([m.n(3, 6, 5), 3], {}))
case("local_response_norm options", lambda m: ([m.n(3, 6, 5, 2), 4], {"alpha": 0.1, "beta": 0.5, "k": 2.0}))
case("linear", lambda m: ([m.n(3, 4, 5), m.n(6, 5), m.n(6)], {}))
case("linear vectors", lambda m: ([m.n(5), m.n(6, 5)], {}))
case("linear one", lambda m: ([m.n(3, 5), m.n(5)], {}))

IMAGES = {1: (7,), 2: (7, 6), 3: (5, 6, 4)}
for axes, size in IMAGES.items():
    for lead in ((2, 4), (4,)):
        x, more = (*lead, *size), "" if len(lead) == 2 else " single"
        image = lambda m, x=x: m.n(*x)
        n = axes
        for o in ({}, {"stride": 2, "padding": 1}, {"padding": "same", "dilation": 2}, {"padding": "valid"}, {"groups": 2, "padding": (1,) * axes}):
            g = o.get("groups", 1)
            case(f"conv{n}d {o}{more}", lambda m, f=image, n=n, o=o, g=g: ([f(m), m.n(6, 4 // g, *(3, 2, 2)[:n]), m.n(6)], o))
        case(f"conv{n}d no bias{more}", lambda m, f=image, n=n: ([f(m), m.n(6, 4, *(3,) * n)], {}))
        for o in ({}, {"stride": 2, "padding": 1, "output_padding": 1}, {"groups": 2, "dilation": 2}):
            g = o.get("groups", 1)
            case(f"conv_transpose{n}d {o}{more}", lambda m, f=image, n=n, o=o, g=g: ([f(m), m.n(4, 6 // g, *(3, 2, 2)[:n]), m.n(6)], o))
        for o in ({}, {"stride": 1, "padding": 1}, {"ceil_mode": True, "stride": 2}, {"return_indices": True, "padding": 1}, {"dilation": 2}):
            case(f"max_pool{n}d {o}{more}", lambda m, f=image, o=o: ([f(m), 2 if "dilation" in o else 3], o))
        for o in ({}, {"stride": 1, "padding": 1}, {"ceil_mode": True, "stride": 2}, {"count_include_pad": False, "padding": 1}):
            case(f"avg_pool{n}d {o}{more}", lambda m, f=image, o=o: ([f(m), 3], o))
            if n > 1:
                case(f"avg_pool{n}d divisor {o}{more}", lambda m, f=image, o=o: ([f(m), 3], {**o, "divisor_override": 5}))
        for to in (1, 3, *(() if n == 1 else ((None,) + (2,) * (n - 1),))):
            case(f"adaptive_avg_pool{n}d {to}{more}", lambda m, f=image, to=to: ([f(m), to], {}))
            case(f"adaptive_max_pool{n}d {to}{more}", lambda m, f=image, to=to: ([f(m), to], {}))
            case(f"adaptive_max_pool{n}d indices {to}{more}", lambda m, f=image, to=to: ([f(m), to], {"return_indices": True}))
        for o in ({}, {"stride": 1}, {"ceil_mode": True, "stride": 2}):
            case(f"lp_pool{n}d {o}{more}", lambda m, x=x, o=o: ([m.pos(*x), 3.0, 2], o))
            case(f"lp_pool{n}d square {o}{more}", lambda m, f=image, o=o: ([f(m), 2, 2], o))
        for mode in ("constant", "reflect", "replicate", "circular"):
            case(f"pad {n} {mode}{more}", lambda m, f=image, n=n, mode=mode: ([f(m), (1, 2, 3, 0, 1, 1)[:2 * n], mode], {}))
            case(f"pad {n} removes {mode}{more}", lambda m, f=image, n=n, mode=mode: ([f(m), (-1, 2, 1, -2, -1, -1)[:2 * n], mode], {}))
case("pad value", lambda m: ([m.n(3, 4), (1, 1), "constant", 2.5], {}))
case("pad all", lambda m: ([m.n(3, 4), [0, 1, 2, 0]], {}))
case("pad none", lambda m: ([m.n(3, 4), []], {}))
case("max_unpool2d", lambda m: ([m.n(1, 1, 2, 2), np.array([[[[0, 3], [9, 15]]]]), 2], {}))
case("max_unpool1d size", lambda m: ([m.n(1, 2), np.array([[1, 4]]), 2], {"output_size": (5,)}))
case("pixel_shuffle", lambda m: ([m.n(2, 12, 3, 4), 2], {}))
case("pixel_shuffle more", lambda m: ([m.n(2, 3, 9, 2, 1), 3], {}))
case("pixel_unshuffle", lambda m: ([m.n(2, 3, 4, 6), 2], {}))
case("channel_shuffle", lambda m: ([m.n(2, 6, 3, 2), 3], {}))
case("bilinear", lambda m: ([m.n(5, 2, 3), m.n(5, 2, 4), m.n(6, 3, 4), m.n(6)], {}))
case("bilinear plain", lambda m: ([m.n(3), m.n(4), m.n(6, 3, 4)], {}))
case("embedding", lambda m: ([m.ids(7, 3, 2), m.n(7, 4)], {}))
case("embedding padding", lambda m: ([m.ids(4, 9), m.n(4, 3)], {"padding_idx": -2}))
case("embedding frequencies", lambda m: ([m.ids(4, 3, 4), m.n(4, 3)], {"scale_grad_by_freq": True}))
case("embedding norm", lambda m: ([m.ids(4, 3), Const(m.n(6, 3))], {"max_norm": 1.0}))
for mode in ("sum", "mean", "max"):
    case(f"embedding_bag {mode}", lambda m, k=mode: ([m.ids(7, 3, 4), m.n(7, 5)], {"mode": k}))
    case(f"embedding_bag offsets {mode}", lambda m, k=mode: ([m.ids(7, 9), m.n(7, 5), np.array([0, 4, 5])], {"mode": k, "padding_idx": 1}))
for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"):
    s = {"dropout1d": (2, 3, 4), "dropout3d": (2, 3, 4, 2, 2)}.get(name, (2, 3, 4, 2))
    case(f"{name} in inference", lambda m, s=s: ([m.n(*s)], {"training": False}))
    case(f"{name} none", lambda m, s=s: ([m.n(*s)], {"p": 0.0, "training": True}))
    case(f"{name} all", lambda m, s=s: ([m.n(*s)], {"p": 1.0, "training": True}))
case("interpolate", lambda m: ([m.n(1, 2, 3, 4)], {"scale_factor": 2.0, "mode": "bilinear", "align_corners": True}))
case("grid_sample", lambda m: ([m.n(1, 2, 3, 4), m.n(1, 2, 2, 2)], {"align_corners": False}))
case("affine_grid", lambda m: ([m.n(1, 2, 3), [1, 2, 3, 4]], {"align_corners": False}))
case("unfold", lambda m: ([m.n(1, 2, 4, 5), 2], {"padding": 1}))
case("fold", lambda m: ([m.n(1, 8, 4), (3, 3), 2], {}))
case("one_hot", lambda m: ([m.ids(4, 3, 2), 4], {}))


@pytest.mark.parametrize("name", CASES)
def test_a_function_is_pytorchs(name):
    fn = name.split(" ")[0]
    args, kwargs = CASES[name](Make())
    mine, its = getattr(F, fn), getattr(torch.nn.functional, fn)
    if fn == "ctc_loss":
        mine, its = after_softmax(mine, yoke), after_softmax(its, torch)
    compare(mine, its, args, kwargs, name, rtol=LOOSE.get(fn, 1e-9))


# Modules: the class, its options, its operands.
MODULES = []


def module(name, make, **options):
    MODULES.append((name, options, make))


ROWS = lambda m: [m.x(4, 6)]
for name in ("ReLU ReLU6 ELU CELU SELU GELU SiLU Mish Sigmoid Tanh LeakyReLU LogSigmoid Softplus Softsign Softshrink Hardshrink Tanhshrink "
             "Hardtanh Hardsigmoid Hardswish GLU Softmax LogSoftmax Softmin PReLU").split():
    module(name, ROWS)
module("ReLU", ROWS, inplace=False)
module("ELU", ROWS, alpha=0.5)
module("CELU", ROWS, alpha=0.5)
module("LeakyReLU", ROWS, negative_slope=0.3)
module("Softplus", ROWS, beta=2.0, threshold=1.0)
module("Softshrink", ROWS, lambd=0.2)
module("Hardshrink", ROWS, lambd=0.2)
module("Hardtanh", ROWS, min_val=-2.0, max_val=0.5)
module("Threshold", ROWS, threshold=0.1, value=0.5)
module("GLU", ROWS, dim=0)
module("PReLU", ROWS, num_parameters=6, init=0.1)
module("Softmax", ROWS, dim=0)
module("LogSoftmax", ROWS, dim=1)
module("Softmin", ROWS, dim=-1)
module("Softmax2d", lambda m: [m.x(2, 3, 4, 5)])
for options in ({}, {"reduction": "sum"}, {"reduction": "none"}):
    for name in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "PoissonNLLLoss"):
        module(name, lambda m: [m.n(4, 5), m.n(4, 5)], **options)
    module("CrossEntropyLoss", lambda m: [m.x(6, 4), m.ids(4, 6)], **options, weight=np.array([0.5, 1.0, 2.0, 3.0]), ignore_index=1, label_smoothing=0.1)
    module("CrossEntropyLoss", lambda m: [m.x(6, 4), m.dist(6, 4)], **options)
    module("NLLLoss", lambda m: [m.logp(6, 4), m.ids(4, 6)], **options, weight=np.array([0.5, 1.0, 2.0, 3.0]))
    module("BCELoss", lambda m: [m.prob(6, 4), m.prob(6, 4)], **options, weight=np.array([0.5, 1.0, 2.0, 3.0]))
    module("BCEWithLogitsLoss", lambda m: [m.x(6, 4), m.prob(6, 4)], **options, pos_weight=np.array([0.5, 1.0, 2.0, 3.0]))
    module("KLDivLoss", lambda m: [m.logp(6, 4), m.logp(6, 4)], **options, log_target=True)
    module("CTCLoss", lambda m: [m.logp(9, 5, 3).swapaxes(1, 2), 1 + m.ids(4, 3, 4), np.array([9, 8, 9]), np.array([4, 2, 3])], **options)
    module("GaussianNLLLoss", lambda m: [m.n(4, 5), m.n(4, 5), m.pos(4, 5)], **options, full=True)
    module("SoftMarginLoss", lambda m: [m.x(4, 5), m.sign(4, 5)], **options)
    module("HingeEmbeddingLoss", lambda m: [m.n(4, 5), m.sign(4, 5)], **options, margin=0.5)
    module("CosineEmbeddingLoss", lambda m: [m.n(4, 5), m.n(4, 5), m.sign(4)], **options, margin=0.1)
    module("MarginRankingLoss", lambda m: [m.n(4), m.n(4), m.sign(4)], **options, margin=0.1)
    module("MultiMarginLoss", lambda m: [m.n(4, 5), m.ids(5, 4)], **options, p=2, margin=0.5)
    module("MultiLabelMarginLoss", lambda m: [m.n(1, 4), np.array([[3, 0, -1, 1]])], **options)
    module("MultiLabelSoftMarginLoss", lambda m: [m.n(4, 5), m.bits(4, 5)], **options)
    module("TripletMarginLoss", lambda m: [m.n(4, 6), m.n(4, 6), m.n(4, 6)], **options, swap=True)
    module("TripletMarginWithDistanceLoss", lambda m: [m.n(4, 6), m.n(4, 6), m.n(4, 6)], **options, margin=2.0)
module("CosineSimilarity", lambda m: [m.n(4, 5), m.n(4, 5)])
module("CosineSimilarity", lambda m: [m.n(4, 5), m.n(4, 5)], dim=0, eps=1e-3)
module("PairwiseDistance", lambda m: [m.n(4, 5), m.n(4, 5)])
module("PairwiseDistance", lambda m: [m.n(4, 5), m.n(4, 5)], p=1.0, keepdim=True)
for options in ({}, {"elementwise_affine": False}, {"bias": False}, {"eps": 1e-2}):
    module("LayerNorm", lambda m: [m.n(3, 4, 5)], normalized_shape=5, **options)
    module("LayerNorm", lambda m: [m.n(3, 4, 5)], normalized_shape=(4, 5), **options)
for options in ({"eps": 1e-6}, {"eps": 1e-6, "elementwise_affine": False}):
    module("RMSNorm", lambda m: [m.n(3, 4, 5)], normalized_shape=5, **options)
    module("RMSNorm", lambda m: [m.n(3, 4, 5)], normalized_shape=(4, 5), **options)
for options in ({}, {"affine": False}, {"eps": 1e-2}):
    module("GroupNorm", lambda m: [m.n(3, 6, 5)], num_groups=3, num_channels=6, **options)
for axes in (1, 2, 3):
    image = lambda m, n=axes: [m.n(3, 4, *(3, 2, 2)[:n])]
    for options in ({}, {"affine": False}, {"track_running_stats": False}, {"momentum": None}, {"momentum": 0.3, "eps": 1e-2}):
        module(f"BatchNorm{axes}d", image, num_features=4, **options)
    for options in ({}, {"affine": True}, {"affine": True, "track_running_stats": True}, {"momentum": None, "track_running_stats": True}):
        module(f"InstanceNorm{axes}d", image, num_features=4, **options)
    module(f"InstanceNorm{axes}d", lambda m, n=axes: [m.n(4, *(3, 2, 2)[:n])], num_features=4)
module("BatchNorm1d", lambda m: [m.n(3, 4)], num_features=4)
module("LocalResponseNorm", lambda m: [m.n(3, 6, 5)], size=3, alpha=0.1)
for axes, size in IMAGES.items():
    image = lambda m, s=size: [m.n(2, 4, *s)]
    single = lambda m, s=size: [m.n(4, *s)]
    for options in ({}, {"padding": "same", "dilation": 2}, {"padding": "valid", "bias": False}, {"padding_mode": "reflect", "padding": 1},
                    {"padding_mode": "circular", "padding": "same", "groups": 2}, {"padding_mode": "replicate", "padding": 2, "stride": 2, "bias": False}):
        module(f"Conv{axes}d", image, in_channels=4, out_channels=6, kernel_size=(3, 2, 2)[:axes], **options)
    module(f"Conv{axes}d", single, in_channels=4, out_channels=6, kernel_size=3, padding_mode="reflect", padding=1)
    module(f"ConvTranspose{axes}d", image, in_channels=4, out_channels=6, kernel_size=3, stride=2, output_padding=1, bias=False)
    module(f"MaxPool{axes}d", image, kernel_size=2, ceil_mode=True)
    module(f"AvgPool{axes}d", image, kernel_size=2, **({"divisor_override": 3} if axes > 1 else {}))
    module(f"AdaptiveAvgPool{axes}d", image, output_size=2)
    module(f"AdaptiveMaxPool{axes}d", image, output_size=2)
    module(f"AdaptiveMaxPool{axes}d", image, output_size=3, return_indices=True)
    if axes > 1:
        module(f"AdaptiveAvgPool{axes}d", single, output_size=(None,) + (2,) * (axes - 1))
    module(f"LPPool{axes}d", image, norm_type=2.0, kernel_size=2)
    for options in ({"padding": 1}, {"padding": (1, 2, 0, 1, 2, 1)[:2 * axes]}):
        for kind in ("Zero", "Reflection", "Replication", "Circular"):
            module(f"{kind}Pad{axes}d", image, **options)
        module(f"ConstantPad{axes}d", single, **options, value=1.5)
    module(f"Dropout{axes}d", image, p=0.0)
module("UpsamplingNearest2d", lambda m: [m.n(1, 2, 3, 4)], scale_factor=2)
module("UpsamplingBilinear2d", lambda m: [m.n(1, 2, 3, 4)], size=(5, 6))
module("Upsample", lambda m: [m.n(1, 2, 3, 4)], scale_factor=2)
module("Flatten", lambda m: [m.n(2, 3, 4, 5)])
module("Flatten", lambda m: [m.n(2, 3, 4, 5)], start_dim=0, end_dim=2)
module("Unflatten", lambda m: [m.n(2, 12)], dim=1, unflattened_size=(3, -1))
module("PixelShuffle", lambda m: [m.n(2, 8, 3, 4)], upscale_factor=2)
module("PixelUnshuffle", lambda m: [m.n(2, 3, 4, 4)], downscale_factor=2)
module("ChannelShuffle", lambda m: [m.n(2, 6, 4, 4)], groups=3)
module("Bilinear", lambda m: [m.n(5, 3), m.n(5, 4)], in1_features=3, in2_features=4, out_features=2)
module("Bilinear", lambda m: [m.n(5, 3), m.n(5, 4)], in1_features=3, in2_features=4, out_features=2, bias=False)
module("Linear", lambda m: [m.n(5, 3)], in_features=3, out_features=2)
module("Embedding", lambda m: [m.ids(7, 3, 2)], num_embeddings=7, embedding_dim=4)
module("Embedding", lambda m: [m.ids(3, 9)], num_embeddings=3, embedding_dim=4, padding_idx=1)
module("Embedding", lambda m: [m.ids(3, 9)], num_embeddings=3, embedding_dim=4, padding_idx=-1, scale_grad_by_freq=True)
module("EmbeddingBag", lambda m: [m.ids(7, 3, 2)], num_embeddings=7, embedding_dim=4, mode="sum")
module("Dropout", lambda m: [m.n(3, 4)], p=1.0)
module("AlphaDropout", lambda m: [m.n(3, 4)], p=0.0)
module("FeatureAlphaDropout", lambda m: [m.n(3, 4, 2)], p=0.0)
module("Identity", lambda m: [m.n(3, 4)])


def pair_of(name, options):
    """Both modules, in f64 and with the same weights."""
    its = getattr(torch.nn, name)(**{k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}).double()
    for p in its.parameters():
        torch.nn.init.normal_(p)
    mine = getattr(nn, name)(**{k: ours(v) for k, v in options.items()}).cast("f64")
    mine.load_state_dict({n: t.numpy() for n, t in its.state_dict().items()})
    return mine, its


@pytest.mark.parametrize("number", range(len(MODULES)), ids=[f"{n} {o}" for n, o, _ in MODULES])
def test_a_module_is_pytorchs(number):
    name, options, make = MODULES[number]
    mine, its = pair_of(name, options)
    params = mine.parameters()
    parts = ([params[n] for n, _ in its.named_parameters()], list(its.parameters()))
    if name == "CTCLoss":
        mine, its = after_softmax(mine, yoke), after_softmax(its, torch)
    compare(mine, its, make(Make()), {}, f"{name} {options}", parts, LOOSE.get(name, 1e-9))
    if "Norm" not in name or name == "LocalResponseNorm":
        return
    for other in range(2):  # running statistics, and their use
        args = make(Make(SEED + other))
        mine(*map(ours, args)), its(*map(theirs, args))
    for key, value in mine.state_dict().items():
        np.testing.assert_allclose(value, its.state_dict()[key].numpy(), rtol=1e-9, err_msg=key)
    mine.eval(), its.eval()
    compare(mine, its, make(Make(SEED + 2)), {}, f"{name} {options} in inference", parts)

MASKS = {
    "none": lambda m, b, h, t, s: {},
    "padding": lambda m, b, h, t, s: {"key_padding_mask": hidden(m, b, s)},
    "bool": lambda m, b, h, t, s: {"attn_mask": hidden(m, t, s)},
    "float": lambda m, b, h, t, s: {"attn_mask": m.n(t, s)},
    "heads": lambda m, b, h, t, s: {"attn_mask": hidden(m, b * h, t, s)},
    "float heads": lambda m, b, h, t, s: {"attn_mask": m.n(b * h, t, s)},
    "both": lambda m, b, h, t, s: {"attn_mask": hidden(m, t, s), "key_padding_mask": hidden(m, b, s)},
    "float both": lambda m, b, h, t, s: {"attn_mask": m.n(t, s), "key_padding_mask": Const(m.n(b, s))},
    "mixed": lambda m, b, h, t, s: {"attn_mask": np.where(hidden(m, t, s), -np.inf, 0), "key_padding_mask": Const(np.where(hidden(m, b, s), -np.inf, 0))},
    "causal": lambda m, b, h, t, s: {"attn_mask": np.triu(np.ones((t, s), bool), 1), "is_causal": True},
    "causal padding": lambda m, b, h, t, s: {"attn_mask": np.triu(np.ones((t, s), bool), 1), "is_causal": True, "key_padding_mask": hidden(m, b, s)},
}
HEADS = {
    "plain": ({}, {}), "means": ({}, {"need_weights": True}), "weights": ({}, {"need_weights": True, "average_attn_weights": False}),
    "batch first": ({"batch_first": True}, {}), "no bias": ({"bias": False}, {}), "bias kv": ({"add_bias_kv": True}, {"need_weights": True}),
    "zero": ({"add_zero_attn": True}, {}), "widths": ({"kdim": 6, "vdim": 10}, {}), "widths first": ({"kdim": 6, "vdim": 10, "batch_first": True}, {}),
    "all": ({"add_bias_kv": True, "add_zero_attn": True, "batch_first": True}, {"need_weights": True}), "all fast": ({"add_bias_kv": True, "add_zero_attn": True}, {}),
}


@pytest.mark.parametrize("how, mask", [(h, m) for h in HEADS for m in MASKS if h in ("plain", "means", "all") or m in ("none", "both", "causal")])
@pytest.mark.parametrize("kind", ["self", "cross", "three", "single"])
def test_multihead_attention_is_pytorchs(kind, how, mask):
    m, (options, call) = Make(), HEADS[how]
    if kind == "self" and "kdim" in options:
        pytest.skip("keys of another width are no queries")
    if how in ("zero", "bias kv", "all fast") and mask == "causal" and not call.get("need_weights"):
        pytest.skip("PyTorch hides the additional key with is_causal, unless weights or a padding mask are there")
    mine, its = pair_of("MultiheadAttention", dict(embed_dim=8, num_heads=2, **options))
    b, t, s = 1 if kind == "single" else 3, 5, 5 if kind in ("self", "single") else 4
    wide = options.get("kdim", 8), options.get("vdim", 8)
    sizes = [(t, 8), (s, wide[0]), (s, wide[1])]
    args = [m.n(n, d) if kind == "single" else m.n(*((b, n) if options.get("batch_first") else (n, b)), d) for (n, d) in sizes]
    kwargs = {"need_weights": False, **call, **MASKS[mask](m, b, 2, t, s)}
    if kind == "single" and "key_padding_mask" in kwargs:
        k = kwargs["key_padding_mask"]
        kwargs["key_padding_mask"] = Const(k.a[0]) if isinstance(k, Const) else k[0]
    params = mine.parameters()
    parts = [params[n] for n, _ in its.named_parameters()], list(its.parameters())
    args = args[:1] if kind == "self" else args[:2] if kind == "cross" and wide == (8, 8) else args
    full = lambda module: lambda *a, **k: module(*a, *[a[-1]] * (3 - len(a)), **k)
    its.eval()  # which differs in nothing without dropout
    compare(full(mine), full(its), args, kwargs, f"{kind} {how} {mask}", parts, 1e-8)


LAYERS = {"plain": {}, "batch first": {"batch_first": True}, "norm first": {"norm_first": True}, "gelu": {"activation": "gelu", "layer_norm_eps": 1e-2},
          "no bias": {"bias": False, "batch_first": True}, "norm first, batch first": {"norm_first": True, "batch_first": True}}
SIZE = dict(d_model=8, nhead=2, dim_feedforward=12, dropout=0.0)


def sequences(m, options, *lengths):
    return [m.n(*((3, n) if options.get("batch_first") else (n, 3)), 8) for n in lengths]


def alike(mine, its):
    names = [n for n, _ in its.named_parameters()]
    assert list(mine.parameters()) == names and list(mine.state_dict()) == list(its.state_dict())
    mine.load_state_dict({n: t.numpy() for n, t in its.state_dict().items()})
    params = mine.parameters()
    return [params[n] for n in names], list(its.parameters())


@pytest.mark.parametrize("masks", ["none", "padding", "bool", "float", "both", "causal"])
@pytest.mark.parametrize("how", LAYERS)
def test_transformer_layers_are_pytorchs(how, masks):
    m, options = Make(), LAYERS[how]
    given = MASKS[masks](m, 3, 2, 5, 5)
    kwargs = {{"attn_mask": "src_mask", "key_padding_mask": "src_key_padding_mask"}.get(k, k): v for k, v in given.items()}
    mine, its = pair_of("TransformerEncoderLayer", {**SIZE, **options})
    compare(mine, its, sequences(m, options, 5), kwargs, "encoder", alike(mine, its), 1e-8)
    kwargs = {{"attn_mask": "tgt_mask", "key_padding_mask": "tgt_key_padding_mask", "is_causal": "tgt_is_causal"}[k]: v for k, v in given.items()}
    if "padding" in masks or masks == "both":
        kwargs["memory_key_padding_mask"] = hidden(m, 3, 4)
    if masks in ("bool", "both"):
        kwargs["memory_mask"] = hidden(m, 5, 4)
    mine, its = pair_of("TransformerDecoderLayer", {**SIZE, **options})
    compare(mine, its, sequences(m, options, 5, 4), kwargs, "decoder", alike(mine, its), 1e-8)


@pytest.mark.parametrize("how", LAYERS)
def test_transformers_are_pytorchs(how):
    m, options = Make(), LAYERS[how]
    its = torch.nn.Transformer(num_encoder_layers=2, num_decoder_layers=2, **SIZE, **options).double()
    mine = nn.Transformer(num_encoder_layers=2, num_decoder_layers=2, **SIZE, **options).cast("f64")
    kwargs = {"tgt_mask": nn.Transformer.generate_square_subsequent_mask(5).numpy().astype("f8"), "src_key_padding_mask": hidden(m, 3, 4),
              "memory_key_padding_mask": hidden(m, 3, 4)}
    kwargs = {k: Const(v) for k, v in kwargs.items()}
    compare(mine, its, sequences(m, options, 4, 5), kwargs, how, alike(mine, its), 1e-8)
    mine.eval(), its.eval()
    compare(mine.encoder, its.encoder, sequences(m, options, 4), {}, how, rtol=1e-8)
    again = pickle.loads(pickle.dumps(mine))
    x = [yoke.tensor(t) for t in sequences(m, options, 4, 5)]
    assert np.array_equal(again(*x).numpy(), mine(*x).numpy())
    glorot = nn.Transformer(num_encoder_layers=1, num_decoder_layers=1, **SIZE).parameters()
    bounds = {n: np.sqrt(6 / sum(p.shape)) for n, p in glorot.items() if p.ndim > 1}
    assert all(0.8 * b < np.abs(glorot[n].numpy()).max() <= b for n, b in bounds.items())


def test_encoders_copy_their_layer():
    layer = nn.TransformerEncoderLayer(**SIZE)
    encoder = nn.TransformerEncoder(layer, 3)
    p = encoder.parameters()
    assert len(p) == 3 * len(layer.parameters()) and np.array_equal(p["layers.0.linear1.weight"].numpy(), p["layers.2.linear1.weight"].numpy())
    x = yoke.tensor(np.ones((4, 1, 8), "f4"))
    dropped = nn.TransformerEncoderLayer(8, 2, 12, 0.5)
    yoke.random.seed(1)
    once = dropped(x).numpy()
    yoke.random.seed(2)
    assert not np.array_equal(once, dropped(x).numpy())
    dropped.eval()
    assert np.array_equal(dropped(x).numpy(), dropped(x).numpy())


def test_a_query_without_visible_keys_gives_0():
    m = Make()
    q = yoke.tensor(m.n(2, 3, 4))
    mask = np.zeros((3, 3), bool)
    mask[1] = True
    for need in (True, False):
        mha = nn.MultiheadAttention(4, 2, bias=False, batch_first=True).cast("f64")
        y, w = mha(q, q, q, attn_mask=yoke.tensor(mask), need_weights=need)
        assert np.all(y.numpy()[:, 1] == 0) and np.isfinite(y.numpy()).all() and (w is None or np.all(w.numpy()[:, 1] == 0))
        g = yoke.grad((y * y).sum(), [q])[0].numpy()
        assert np.isfinite(g).all()


def test_dropouts_follow_their_distributions():
    x = yoke.tensor(np.ones((50, 40, 20), "f4"))
    for fn, share in ((F.dropout, 0.3), (F.dropout1d, 0.3), (F.dropout2d, 0.3)):
        y = fn(x, share).numpy()
        kept = y > 0
        assert abs(kept.mean() - 0.7) < 0.03 and np.allclose(y[kept], 1 / 0.7)
        assert fn is F.dropout or np.all(kept.all(2) == kept.any(2))
    z = yoke.random.normal(size=(300, 200))
    for fn in (F.alpha_dropout, F.feature_alpha_dropout):
        y = fn(z, 0.3, training=True).numpy()
        assert abs(y.mean()) < 0.05 and abs(y.std() - 1) < 0.05
    m = nn.Dropout2d(0.5)
    assert (m(x).numpy() == 0).any() and np.array_equal(m.eval()(x).numpy(), x.numpy())
    assert repr(m) == "Dropout2d(p=0.5)"


def test_transposed_convolutions_take_an_output_size():
    m = Make()
    mine, its = pair_of("ConvTranspose2d", dict(in_channels=2, out_channels=3, kernel_size=3, stride=2, padding=1))
    compare(lambda x: mine(x, output_size=(6, 7)), lambda x: its(x, output_size=(6, 7)), [m.n(1, 2, 3, 4)], {}, "output_size")
    with pytest.raises(ValueError, match="output_size"):
        mine(z(1, 2, 3, 4), output_size=(9, 9))


def test_embeddings_limit_norms_and_start_from_tables():
    m = Make()
    table, ids = m.n(5, 3) * 3, np.array([1, 1, 4])
    its = torch.nn.Embedding.from_pretrained(torch.from_numpy(table.copy()), freeze=False, max_norm=1.0)
    mine = nn.Embedding.from_pretrained(table.astype("f4"), freeze=False, max_norm=1.0).cast("f64")
    mine.weight = table
    w = mine.weight
    want = its(torch.from_numpy(ids))
    with yoke.scope("step"):
        y = mine(yoke.tensor(ids))
        (g,) = yoke.grad((y * y).sum(), [w])
        yoke.eval(y, g)
        y, g = y.numpy(), g.numpy()
    (want * want).sum().backward()
    np.testing.assert_allclose(y, want.detach().numpy(), rtol=1e-6)
    np.testing.assert_allclose(mine.weight.numpy(), its.weight.detach().numpy(), rtol=1e-6)
    np.testing.assert_allclose(g, its.weight.grad.numpy(), rtol=1e-6)
    frozen = nn.Embedding.from_pretrained(table)
    assert not frozen.parameters() and np.allclose(frozen(yoke.tensor(ids)).numpy(), table[ids])
    start = nn.Embedding(4, 3, padding_idx=-1).weight.numpy()
    assert np.all(start[3] == 0) and np.all(start[:3] != 0)


class Holder(nn.Module):
    def __init__(self):
        self.list = nn.ParameterList([np.ones(2, "f4"), nn.Parameter(shape=(3,))])
        self.dict = nn.ParameterDict({"a": np.ones(2, "f4")})

    def forward(self, x):
        return x * self.list[0] + self.dict["a"]


def test_lists_and_dicts_of_parameters():
    net = Holder()
    its = torch.nn.Module()
    its.list = torch.nn.ParameterList([torch.ones(2), torch.zeros(3)])
    its.dict = torch.nn.ParameterDict({"a": torch.ones(2)})
    assert list(net.state_dict()) == list(its.state_dict()) == list(net.parameters()) == ["list.0", "list.1", "dict.a"]
    assert len(net.list) == 2 and [p.shape for p in net.list] == [(2,), (3,)] and net.list[-1].shape == (3,) and len(net.list[:1]) == 1
    assert "a" in net.dict and list(net.dict) == ["a"] and [k for k, _ in net.dict.items()] == ["a"] and net.dict.get("b") is None
    net.list[0] = np.array([2, 3], "f4")
    net.dict["b"] = np.zeros(1, "f4")
    net.dict["a"] = np.array([1, 5], "f4")
    for again in (net, copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert again(yoke.tensor([1.0, 1.0])).tolist() == [3.0, 8.0] and list(again.parameters()) == ["list.0", "list.1", "dict.a", "dict.b"]
    with pytest.raises(KeyError):
        net.dict["c"]
    with pytest.raises(ValueError):
        net.dict["keys"] = np.ones(1)


ABSENT = {"size_average", "reduce", "device", "dtype", "_stacklevel", "out", "_weight", "_freeze"}


def parameters(of):
    return {n: p for n, p in inspect.signature(of).parameters.items() if n not in ABSENT and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


@pytest.mark.parametrize("name", sorted({n for n, _, _ in MODULES}))
def test_a_module_has_pytorchs_arguments(name):
    mine, its = parameters(getattr(nn, name)), parameters(getattr(torch.nn, name))
    assert set(its) - set(mine) - {"min_value", "max_value", "args"} == set()
    assert {n: p.default for n, p in its.items() if n in mine and p.default != mine[n].default} == {}
    assert (getattr(nn, name).__doc__ or "").strip()


def z(*shape):
    return yoke.zeros(*shape)


BAD = {
    "cross_entropy": [lambda: F.cross_entropy(z(3, 4), z(3)), lambda: F.cross_entropy(z(3, 4), np.zeros(4, "i8")),
                      lambda: F.cross_entropy(z(3, 4), np.zeros(3, "i8"), reduction="average"),
                      lambda: F.cross_entropy(z(3, 4), np.zeros(3, "i8"), z(3)),
                      lambda: F.cross_entropy(z(3, 4), np.zeros(3, "i8"), label_smoothing=2)],
    "nll_loss": [lambda: F.nll_loss(z(3, 4), z(3, 4)), lambda: F.nll_loss(z(3, 4), np.zeros(4, "i8"))],
    "binary_cross_entropy": [lambda: F.binary_cross_entropy(z(3, 4), z(3)), lambda: F.binary_cross_entropy(z(3, 4), z(3, 4), z(3))],
    "binary_cross_entropy_with_logits": [lambda: F.binary_cross_entropy_with_logits(z(3, 4), z(3)),
                                         lambda: F.binary_cross_entropy_with_logits(z(3), z(3), pos_weight=z(2))],
    "kl_div": [lambda: F.kl_div(z(3), z(4)), lambda: F.kl_div(z(3), z(3), reduction="batch")],
    "ctc_loss": [lambda: F.ctc_loss(z(4, 2, 3), np.zeros((3, 2), "i8"), np.array([4, 4]), np.array([1, 1])),
                 lambda: F.ctc_loss(z(4, 2, 3), np.zeros(5, "i8"), np.array([4, 4]), np.array([1, 1]))],
    "mse_loss": [lambda: F.mse_loss(z(3), z(4)), lambda: F.mse_loss(z(3), z(3), weight=z(1)),
                 lambda: F.mse_loss(np.zeros(3, "i8"), np.zeros(3, "i8"))],
    "l1_loss": [lambda: F.l1_loss(z(3), z(4))], "huber_loss": [lambda: F.huber_loss(z(3), z(4)), lambda: F.huber_loss(z(3), z(3), delta=0)],
    "smooth_l1_loss": [lambda: F.smooth_l1_loss(z(3), z(4)), lambda: F.smooth_l1_loss(z(3), z(3), beta=-1)],
    "gaussian_nll_loss": [lambda: F.gaussian_nll_loss(z(3), z(3), z(2)), lambda: F.gaussian_nll_loss(z(3), z(3), -1.0)],
    "poisson_nll_loss": [lambda: F.poisson_nll_loss(z(3), z(4))], "soft_margin_loss": [lambda: F.soft_margin_loss(z(3), z(4))],
    "margin_ranking_loss": [lambda: F.margin_ranking_loss(z(3), z(4), z(3))],
    "hinge_embedding_loss": [lambda: F.hinge_embedding_loss(z(3), z(4))],
    "cosine_embedding_loss": [lambda: F.cosine_embedding_loss(z(3, 4), z(3, 4), z(3, 4)), lambda: F.cosine_embedding_loss(z(3, 4), z(3, 5), z(3))],
    "multi_margin_loss": [lambda: F.multi_margin_loss(z(3, 4), np.zeros(4, "i8")), lambda: F.multi_margin_loss(z(3, 4), np.zeros(3, "i8"), p=3)],
    "multilabel_margin_loss": [lambda: F.multilabel_margin_loss(z(3, 4), np.zeros((3, 3), "i8"))],
    "multilabel_soft_margin_loss": [lambda: F.multilabel_soft_margin_loss(z(3, 4), z(3, 4), z(3))],
    "triplet_margin_loss": [lambda: F.triplet_margin_loss(z(3, 4), z(3, 4), z(3, 5)), lambda: F.triplet_margin_loss(z(3), z(3), z(3), margin=0)],
    "cosine_similarity": [lambda: F.cosine_similarity(z(3, 4), z(3, 5)), lambda: F.cosine_similarity(z(3), z(3), dim=1)],
    "pairwise_distance": [lambda: F.pairwise_distance(z(3, 4), z(3, 5))], "pdist": [lambda: F.pdist(z(3))],
    "normalize": [lambda: F.normalize(z(3), dim=1)], "prelu": [lambda: F.prelu(z(3, 4), z(3))], "celu": [lambda: F.celu(z(3), 0)],
    "gelu": [lambda: F.gelu(z(3), "sigmoid")], "glu": [lambda: F.glu(z(3)), lambda: F.glu(z(4), 1)], "softmax": [lambda: F.softmax(z(3), 1)],
    "softshrink": [lambda: F.softshrink(z(3), -1)], "hardtanh": [lambda: F.hardtanh(z(3), 1, 0)], "rrelu": [lambda: F.rrelu(z(3), 1, 0)],
    "scaled_dot_product_attention": [lambda: F.scaled_dot_product_attention(z(3, 4), z(3, 5), z(3, 5)),
                                     lambda: F.scaled_dot_product_attention(z(3, 4), z(3, 4), z(3, 4), attn_mask=z(4)),
                                     lambda: F.scaled_dot_product_attention(z(3, 4), z(3, 4), z(3, 4), attn_mask=np.zeros((3, 3), "i8")),
                                     lambda: F.scaled_dot_product_attention(z(2, 3, 4), z(3, 3, 4), z(3, 3, 4)),
                                     lambda: F.scaled_dot_product_attention(z(3, 4), z(3, 4), z(3, 4), attn_mask=z(3, 3), is_causal=True)],
    "multi_head_attention_forward": [lambda: nn.MultiheadAttention(4, 2)(z(3, 2, 5), z(3, 2, 4), z(3, 2, 4)),
                                     lambda: nn.MultiheadAttention(4, 2)(z(3, 2, 4), z(3, 1, 4), z(3, 1, 4)),
                                     lambda: nn.MultiheadAttention(4, 2)(z(3, 2, 4), z(3, 2, 4), z(3, 2, 4), attn_mask=z(3, 4)),
                                     lambda: nn.MultiheadAttention(4, 2)(z(3, 2, 4), z(3, 2, 4), z(3, 2, 4), key_padding_mask=z(3, 2))],
    "MultiheadAttention": [lambda: nn.MultiheadAttention(5, 2)], "TransformerEncoderLayer": [lambda: nn.TransformerEncoderLayer(4, 2, activation="elu")],
    "TransformerEncoder": [lambda: nn.TransformerEncoder(nn.Identity(), 0)],
    "Transformer": [lambda: nn.Transformer(4, 2, 1, 1, 8)(z(3, 2, 4), z(3, 1, 4))],
    "layer_norm": [lambda: F.layer_norm(z(3, 4), 3), lambda: F.layer_norm(z(3, 4), 4, z(3))], "rms_norm": [lambda: F.rms_norm(z(3, 4), (3,))],
    "group_norm": [lambda: F.group_norm(z(3, 4), 3), lambda: F.group_norm(z(3, 4), 2, z(3))],
    "batch_norm": [lambda: F.batch_norm(z(3, 4), None, None), lambda: F.batch_norm(z(3, 4), z(3), z(3)), lambda: F.batch_norm(z(1, 4), None, None, training=True),
                   lambda: F.batch_norm(z(3, 4), z(4), z(4), training=True)],
    "instance_norm": [lambda: F.instance_norm(z(3, 4)), lambda: F.instance_norm(z(3, 4, 1))], "InstanceNorm2d": [lambda: nn.InstanceNorm2d(3)(z(3, 4))],
    "local_response_norm": [lambda: F.local_response_norm(z(3, 4), 2)], "linear": [lambda: F.linear(z(3, 4), z(5, 3)), lambda: F.linear(z(3, 4), z(5, 4), z(4))],
    "conv2d": [lambda: F.conv2d(z(1, 2, 3, 3), z(4, 3, 2, 2)), lambda: F.conv2d(z(1, 2, 3, 3), z(4, 2, 2)), lambda: F.conv2d(z(1, 2, 3, 3), z(4, 2, 2, 2), z(3)),
               lambda: F.conv2d(z(1, 2, 3, 3), z(4, 2, 2, 2), padding="half"), lambda: F.conv2d(z(1, 2, 3, 3), z(4, 2, 2, 2), stride=2, padding="same")],
    "conv_transpose1d": [lambda: F.conv_transpose1d(z(1, 2, 3), z(3, 2, 2)), lambda: F.conv_transpose1d(z(1, 2, 3), z(2, 2, 2), output_padding=1)],
    "nn.Conv2d": [lambda: nn.Conv2d(2, 2, 3, padding_mode="mirror"), lambda: nn.Conv2d(3, 2, 3, groups=2, padding_mode="reflect"), lambda: nn.Conv2d(2, 2, (3, 3, 3)),
                  lambda: nn.Conv2d(2, 2, 3, stride=2, padding="same")],
    "max_pool2d": [lambda: F.max_pool2d(z(3, 3), 2), lambda: F.max_pool2d(z(1, 2, 3, 3), 2, padding=2), lambda: F.max_pool2d(z(1, 2, 3, 3), (2, 2, 2))],
    "avg_pool2d": [lambda: F.avg_pool2d(z(3, 3), 2), lambda: F.avg_pool2d(z(1, 2, 3, 3), 2, divisor_override=0)],
    "adaptive_max_pool2d": [lambda: F.adaptive_max_pool2d(z(3, 3), 2), lambda: F.adaptive_max_pool2d(z(1, 2, 3, 3), (2, 2, 2)), lambda: F.adaptive_max_pool2d(z(1, 2, 3, 3), 0)],
    "max_unpool1d": [lambda: F.max_unpool1d(z(1, 2, 3), np.zeros((1, 2, 2), "i8"), 2)], "lp_pool1d": [lambda: F.lp_pool1d(z(3), 2, 2)],
    "pad": [lambda: F.pad(z(3), (1, 1, 1, 1)), lambda: F.pad(z(3), (1, 1), "mirror"), lambda: F.pad(z(3), (3, 0), "reflect"), lambda: F.pad(z(3), (-2, -2)),
            lambda: F.pad(z(3), (4, 0), "circular"), lambda: F.pad(z(3), (1, 1), "reflect", 1.0), lambda: F.pad(z(3), (1,))],
    "ReflectionPad1d": [lambda: nn.ReflectionPad1d((1, 2, 3)), lambda: nn.ReflectionPad1d(1)(z(3))],
    "pixel_shuffle": [lambda: F.pixel_shuffle(z(3, 2, 2), 2)], "pixel_unshuffle": [lambda: F.pixel_unshuffle(z(3, 3, 2), 2)],
    "channel_shuffle": [lambda: F.channel_shuffle(z(1, 3, 2), 2)], "bilinear": [lambda: F.bilinear(z(3), z(4), z(2, 4, 3))],
    "embedding": [lambda: F.embedding(z(3), z(4, 2)), lambda: F.embedding(np.zeros(2, "i8"), z(4, 2), padding_idx=4)],
    "nn.Embedding": [lambda: nn.Embedding(4, 2, padding_idx=4)], "embedding_bag": [lambda: F.embedding_bag(np.zeros((2, 2), "i8"), z(4, 2), mode="median")],
    "dropout": [lambda: F.dropout(z(3), 1.5)], "dropout2d": [lambda: F.dropout2d(z(3))], "nn.Dropout1d": [lambda: nn.Dropout1d(-1)],
    "elu": [lambda: F.elu(np.zeros(3, "i8"))], "Softmax2d": [lambda: nn.Softmax2d()(z(3, 4))],
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_are_named(name):
    for call in BAD[name]:
        with pytest.raises((ValueError, TypeError, IndexError)) as e:
            call()
        assert str(e.value).startswith(f"{name}: ") and "\n" not in str(e.value), str(e.value)


def test_classes_that_do_not_exist_are_noticed():
    for loss in (F.cross_entropy, F.nll_loss, F.multi_margin_loss):
        with pytest.raises(IndexError):
            loss(z(3, 4), np.array([0, 1, 4])).item()


def test_random_activations_follow_their_distributions():
    x = yoke.tensor(-np.ones((200, 200), "f4"))
    a = -F.rrelu(x, 0.1, 0.5, training=True).numpy()
    assert a.min() >= 0.1 and a.max() <= 0.5 and abs(a.mean() - 0.3) < 0.005
    m = nn.RReLU(0.1, 0.5)
    assert np.ptp(m(x).numpy()) > 0.3 and np.allclose(m.eval()(x).numpy(), -0.3)
    logits = yoke.tensor(np.tile(np.log([0.1, 0.2, 0.7]), (20000, 1)).astype("f4"))
    hard = F.gumbel_softmax(logits, tau=0.5, hard=True)
    assert np.allclose(hard.numpy().mean(0), [0.1, 0.2, 0.7], atol=0.02) and set(np.unique(hard.numpy())) == {0.0, 1.0}
    soft = F.gumbel_softmax(logits, tau=0.5).numpy()
    assert np.allclose(soft.sum(1), 1, atol=1e-6) and 0 < soft.min() < soft.max() <= 1
    g = yoke.grad((F.gumbel_softmax(logits, hard=True) * yoke.tensor([1.0, 0.0, 0.0])).sum(), [logits])[0].numpy()
    assert np.isfinite(g).all() and np.abs(g).max() > 0.1


class WithLoss(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(3, 4)
        self.loss = nn.CrossEntropyLoss(yoke.tensor([1.0, 2.0, 3.0, 4.0]), reduction="sum")

    def forward(self, x, y):
        return self.loss(self.layer(x), y)


def test_options_are_attributes_and_tensors_among_them_buffers():
    net = WithLoss()
    assert list(net.state_dict()) == ["layer.weight", "layer.bias", "loss.weight"] and list(net.parameters()) == ["layer.weight", "layer.bias"]
    x, y = yoke.tensor(np.ones((2, 3), "f4")), yoke.tensor([1, 3])
    assert repr(net.loss) == "CrossEntropyLoss(weight=tensor, ignore_index=-100, reduction='sum', label_smoothing=0.0)"
    was = net(x, y).item()
    for again in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert again(x, y).item() == was
    net.loss.reduction = "none"
    assert np.isclose(net(x, y).numpy().sum(), was)
    in_sequence = nn.Sequential(nn.LeakyReLU(0.5), nn.PReLU(), nn.Softmax(-1))
    assert list(in_sequence.parameters()) == ["1.weight"] and np.allclose(in_sequence(x).numpy(), 1 / 3)


# Out of scope: what is deprecated, of compilers and quantization, in place, or of PyTorch's own dispatch.
MISSING = {
    "assert_int_or_pair", "boolean_dispatch", "handle_torch_function", "has_torch_function", "has_torch_function_unary",
    "has_torch_function_variadic", "conv_tbc", "grouped_mm", "linear_cross_entropy", "native_channel_shuffle", "scaled_addmm", "scaled_addmm_",
    "scaled_grouped_mm", "scaled_mm", "upsample", "upsample_bilinear", "upsample_nearest", "hardtanh_",
}


def test_every_function_of_pytorch_is_there_with_its_arguments():
    theirs_ = torch.nn.functional
    names = [n for n in dir(theirs_) if callable(getattr(theirs_, n)) and not inspect.isclass(getattr(theirs_, n)) and not n.startswith("_")
             and str(getattr(getattr(theirs_, n), "__module__", None) or "torch").startswith("torch") and not n.endswith("_")
             and "fractional" not in n and "with_indices" not in n]
    assert [n for n in names if n not in MISSING and not hasattr(F, n)] == []
    different = {}
    for n in set(names) & set(F.__all__):
        try:
            its = parameters(getattr(theirs_, n))
        except ValueError:
            continue
        mine = parameters(getattr(F, n))
        lacking = set(its) - set(mine) - {"input", "tensor", "static_k", "static_v"}
        if lacking and not set(its) <= {"args", "kwargs"}:
            different[n] = lacking
        for k, p in its.items():
            if k in mine and p.default is not p.empty and p.default != mine[k].default:
                different[n, k] = (p.default, mine[k].default)
    assert different == {("grid_sample", "align_corners"): (None, False), ("affine_grid", "align_corners"): (None, False)}
