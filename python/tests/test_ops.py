# SPDX-License-Identifier: Apache-2.0
"""Every function of yoke.h and yoke-math.h that returns a tensor, against NumPy in float64; a function without a case fails."""
import os
import pathlib

import numpy as np
import pytest

import yoke
from test_headers import load

special = pytest.importorskip("scipy.special")
linalg = pytest.importorskip("scipy.linalg")
here = pathlib.Path(__file__).resolve().parent
include = pathlib.Path(os.environ.get("YOKE_TEST_INCLUDE", here.parent.parent / "include"))
SHAPE = (2, 3, 5)


def softmax(a, axis=-1):
    return special.softmax(a, axis)


def onehot(ids, n):
    return np.eye(n)[ids]


def scattered(fn):
    def run(x, i, v):
        y = x.copy()
        for b in range(i.shape[0]):
            for k in range(i.shape[1]):
                for c in range(i.shape[2]):
                    y[b, i[b, k, c], c] = fn(y[b, i[b, k, c], c], v[b, k, c])
        return y
    return run


def conv(x, w, stride=1, pad=0, dilation=1):
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad)))
    q = (x.shape[2] - dilation * (w.shape[2] - 1) - 1) // stride + 1
    return np.stack([np.einsum("bck,ock->bo", x[:, :, i * stride:i * stride + dilation * (w.shape[2] - 1) + 1:dilation], w)
                     for i in range(q)], 2)


def conv_transposed(x, w, stride=1):
    y = np.zeros((x.shape[0], w.shape[1], (x.shape[2] - 1) * stride + w.shape[2]))
    for i in range(x.shape[2]):
        y[:, :, i * stride:i * stride + w.shape[2]] += np.einsum("bc,cok->bok", x[:, :, i], w)
    return y


def pooled(fn, size, stride):
    return lambda x: np.stack([fn(x[:, :, i:i + size], 2) for i in range(0, x.shape[2] - size + 1, stride)], 2)


def attention(q, k, v, seen=None, causal=False):
    k, v = (np.repeat(a, q.shape[2] // a.shape[2], 2) for a in (k, v))
    s = np.einsum("bthd,bshd->bhts", q, k) / np.sqrt(q.shape[3])
    t, n = s.shape[2:]
    hidden = np.zeros((t, n), bool)
    keys = n if seen is None else seen
    if causal:
        hidden |= np.arange(n)[None] > np.arange(t)[:, None] + keys - t
    hidden |= np.arange(n)[None] >= keys
    return np.einsum("bhts,bshd->bthd", softmax(np.where(hidden, -np.inf, s)), v)


def paged(q, k, v):
    k, v = (np.concatenate([a[2], a[0]])[None] for a in (k, v))
    return np.concatenate([attention(q[None, t:t + 1], k[:, :n], v[:, :n])[0] for t, n in enumerate((10, 21))])


def replaced(x, i, v):
    y = x.copy()
    for k, row in zip(i, v):
        if k >= 0:
            y[k] = row
    return y


def rope(x, c, s):
    a, b = np.split(x, 2, -1)
    c, s = c[None, :, None], s[None, :, None]
    return np.concatenate([a * c - b * s, a * s + b * c], -1)


def norm(x, w, b, eps=1e-5):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * w + b


def columns(x):
    return np.stack([x[:, :, i:i + 3].reshape(x.shape[0], -1) for i in range(0, x.shape[2] - 2, 2)], 2)


def reached(fn, x):
    return np.stack([fn(x[:, :i + 1], 1) for i in range(x.shape[1])], 1)


def resized(x, n):
    at = np.clip((np.arange(n) + 0.5) * x.shape[2] / n - 0.5, 0, x.shape[2] - 1)
    lo = np.floor(at).astype(int)
    hi = np.minimum(lo + 1, x.shape[2] - 1)
    return x[:, :, lo] * (1 - at + lo) + x[:, :, hi] * (at - lo)


def adaptive(fn, to):
    def run(x):
        n = x.shape[2]
        return np.stack([fn(x[:, :, i * n // to:-(-(i + 1) * n // to)], 2) for i in range(to)], 2)
    return run


def bce(x, y):
    return np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x)))


def updated(x, at, v):
    y = x.copy()
    y[tuple(slice(a, a + n) for a, n in zip(at, v.shape))] = v
    return y


def filled(a, m, v):
    y = a.copy()
    y[m] = v[:m.sum()]
    return y


def put(a, i, j, v):
    y = a.copy()
    np.add.at(y, (i, j), v)
    return y


def any_real(r, *shape):
    return r.normal(size=shape or SHAPE)


def positive(r, *shape):
    return r.uniform(0.3, 3, shape or SHAPE)


def inside(r):
    return r.uniform(-0.9, 0.9, SHAPE)


def whole(r, low=-9, high=9, shape=SHAPE):
    return r.integers(low, high, shape)


def indices(r):
    return np.stack([np.stack([r.permutation(3)[:2] for _ in range(5)], 1) for _ in range(2)])


# name: (operands of a generator, yoke's call or None, the reference)
ONE = {
    "neg": np.negative, "abs": np.abs, "sign": np.sign, "floor": np.floor, "round": np.round, "ceil": np.ceil, "exp": np.exp,
    "expm1": np.expm1, "square": np.square, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "sigmoid": special.expit,
    "erf": special.erf, "relu": lambda a: np.maximum(a, 0), "silu": lambda a: a * special.expit(a),
    "gelu": lambda a: a * special.ndtr(a), "atan": np.arctan, "isfinite": np.isfinite, "check_finite": lambda a: a,
    "gelu_tanh": lambda a: 0.5 * a * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a ** 3))),
    "stop_grad": lambda a: a, "contiguous": lambda a: a, "keep": lambda a: a,
    "softmax": softmax, "log_softmax": lambda a: special.log_softmax(a, -1), "logsumexp": lambda a: special.logsumexp(a, -1),
    "sum": np.sum, "mean": np.mean, "prod": np.prod, "reduce_max": np.max, "reduce_min": np.min,
    "var": np.var, "std": np.std, "norm": lambda a: np.sqrt((a * a).sum()),
    "cov": lambda a: np.stack([np.cov(m) for m in a]), "corr": lambda a: np.stack([np.corrcoef(m) for m in a]),
}
OVER_0 = {"log": np.log, "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda a: 1 / np.sqrt(a), "recip": lambda a: 1 / a,
          "lgamma": special.gammaln, "digamma": special.digamma}
WITHIN_1 = {"asin": np.arcsin, "acos": np.arccos, "erfinv": special.erfinv}
TWO = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "mod": np.mod, "fmod": np.fmod, "min": np.minimum,
       "max": np.maximum, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
       "ge": np.greater_equal, "atan2": np.arctan2, "floor_div": np.floor_divide, "remainder": np.remainder,
       "swiglu": lambda g, a: g * special.expit(g) * a}
AXIS_1 = {"argmax": np.argmax, "argmin": np.argmin, "cumsum": np.cumsum, "cumprod": np.cumprod,
          "cummax": np.maximum.accumulate, "cummin": np.minimum.accumulate, "logcumsumexp": np.logaddexp.accumulate}

ROWS = {
    **{n: (lambda r: [any_real(r)], None, f) for n, f in ONE.items()},
    **{n: (lambda r: [positive(r)], None, f) for n, f in OVER_0.items()},
    **{n: (lambda r: [inside(r)], None, f) for n, f in WITHIN_1.items()},
    **{n: (lambda r: [any_real(r), any_real(r, 3, 1)], None, f) for n, f in TWO.items()},
    **{n: (lambda r: [any_real(r)], lambda f, x: f(x, 1), lambda a, g=g: g(a, 1)) for n, g in AXIS_1.items()},
    "pow": (lambda r: [positive(r), any_real(r)], None, np.power),
    "integer_pow": (lambda r: [whole(r), whole(r, 0, 5)], None, np.power),
    "and_": (lambda r: [whole(r), whole(r)], None, np.bitwise_and),
    "or_": (lambda r: [whole(r), whole(r)], None, np.bitwise_or),
    "xor": (lambda r: [whole(r), whole(r)], None, np.bitwise_xor),
    "not_": (lambda r: [whole(r)], None, np.invert),
    "shl": (lambda r: [whole(r), whole(r, 0, 9)], None, np.left_shift),
    "shr": (lambda r: [whole(r), whole(r, 0, 9)], None, np.right_shift),
    "any": (lambda r: [whole(r, 0, 2) > 0], None, np.any),
    "all": (lambda r: [whole(r, 0, 2) > 0], None, np.all),
    "select": (lambda r: [whole(r, 0, 2) > 0, any_real(r), any_real(r, 5)], None, np.where),
    "cast": (lambda r: [any_real(r)], lambda f, x: f(x, "i32"), lambda a: np.trunc(a)),
    "clamp": (lambda r: [any_real(r)], lambda f, x: f(x, -0.5, 0.7), lambda a: np.clip(a, -0.5, 0.7)),
    "quantile": (lambda r: [any_real(r)], lambda f, x: f(x, 0.3, 1), lambda a: np.quantile(a, 0.3, 1)),
    "histogram": (lambda r: [any_real(r)], lambda f, x: f(x, 7, -1.0, 2.0), lambda a: np.histogram(a, 7, (-1, 2))[0]),
    "matmul": (lambda r: [any_real(r), any_real(r, 5, 4)], None, np.matmul),
    "matmul_to": (lambda r: [any_real(r), any_real(r, 5, 4)], lambda f, a, b: f(a, b, 0, "f64"), np.matmul),
    "linear": (lambda r: [any_real(r), any_real(r, 4, 5), any_real(r, 4)], None, lambda x, w, b: x @ w.T + b),
    "eigh": (lambda r: [(lambda a: a + a.T)(any_real(r, 4, 4))], lambda f, a: f(a)[0], lambda a: np.linalg.eigh(a)[0]),
    "cholesky": (lambda r: [(lambda a: a @ a.T + np.eye(4))(any_real(r, 4, 4))], None, np.linalg.cholesky),
    "solve_triangular": (lambda r: [np.tril(any_real(r, 4, 4)) + 3 * np.eye(4), any_real(r, 4, 2)], None,
                         lambda t, b: linalg.solve_triangular(t, b, lower=True)),
    "lu": (lambda r: [any_real(r, 4, 4)], lambda f, a: f(a)[0], lambda a: linalg.lu_factor(a)[0]),
    "inv": (lambda r: [any_real(r, 4, 4)], None, np.linalg.inv), "det": (lambda r: [any_real(r, 2, 4, 4)], None, np.linalg.det),
    "solve": (lambda r: [any_real(r, 4, 4), any_real(r, 4, 2)], None, np.linalg.solve),
    "slogdet": (lambda r: [any_real(r, 4, 4)], lambda f, a: f(a)[1], lambda a: np.linalg.slogdet(a)[1]),
    "matrix_power": (lambda r: [any_real(r, 4, 4)], lambda f, a: f(a, -3), lambda a: np.linalg.matrix_power(a, -3)),
    "qr": (lambda r: [any_real(r, 5, 3)], lambda f, a: f(a)[1], lambda a: np.linalg.qr(a)[1]),
    "svd": (lambda r: [any_real(r, 3, 5)], lambda f, a: f(a)[1], lambda a: np.linalg.svd(a)[1]),
    "pinv": (lambda r: [any_real(r, 3, 5)], None, np.linalg.pinv),
    "lstsq": (lambda r: [any_real(r, 5, 3), any_real(r, 5, 2)], None, lambda a, b: np.linalg.lstsq(a, b, None)[0]),
    "matrix_exp": (lambda r: [any_real(r, 4, 4)], None, linalg.expm),
    "reshape": (lambda r: [any_real(r)], lambda f, x: f(x, (5, -1)), lambda a: a.reshape(5, -1)),
    "bitcast": (lambda r: [any_real(r)], lambda f, x: f(x, "i64"), lambda a: a.view("i8")),
    "permute": (lambda r: [any_real(r)], lambda f, x: f(x, (2, 0, 1)), lambda a: a.transpose(2, 0, 1)),
    "broadcast_to": (lambda r: [any_real(r, 3, 1)], lambda f, x: f(x, SHAPE), lambda a: np.broadcast_to(a, SHAPE)),
    "slice": (lambda r: [any_real(r)], lambda f, x: f(x, 2, 1, 5, 2), lambda a: a[:, :, 1:5:2]),
    "pad": (lambda r: [any_real(r)], lambda f, x: f(x, (0, 1, 2), (1, 0, 0), 3.0),
            lambda a: np.pad(a, ((0, 1), (1, 0), (2, 0)), constant_values=3)),
    "concat": (lambda r: [any_real(r), any_real(r)], lambda f, a, b: f([a, b], 1), lambda a, b: np.concatenate([a, b], 1)),
    "flip": (lambda r: [any_real(r)], lambda f, x: f(x, (0, 2)), lambda a: a[::-1, :, ::-1]),
    "slice_update": (lambda r: [any_real(r), any_real(r, 1, 2, 3)], lambda f, x, v: f(x, (1, 0, 2), v),
                     lambda a, v: updated(a, (1, 0, 2), v)),
    "slice_at": (lambda r: [any_real(r)], lambda f, x: f(x, [yoke.tensor(1), None, yoke.tensor(2)], (1, 2, 3)),
                 lambda a: a[1:2, 0:2, 2:5]),
    "slice_update_at": (lambda r: [any_real(r), any_real(r, 1, 2, 3)],
                        lambda f, x, v: f(x, [yoke.tensor(1), None, yoke.tensor(2)], v), lambda a, v: updated(a, (1, 0, 2), v)),
    "gather": (lambda r: [any_real(r), whole(r, 0, 3, (4,))], lambda f, x, i: f(x, i, 1), lambda a, i: a[:, i]),
    "scatter_add": (lambda r: [any_real(r, 4, 3), whole(r, 0, 4, (6,)), any_real(r, 6, 3)], None,
                    lambda a, i, v: a + onehot(i, 4).T @ v),
    "scatter_set": (lambda r: [any_real(r, 4, 3), np.array([3, -1, 0, 3, 2, -1]), any_real(r, 6, 3)], None, replaced),
    "take_along": (lambda r: [any_real(r), indices(r)], lambda f, x, i: f(x, i, 1), lambda a, i: np.take_along_axis(a, i, 1)),
    "scatter_add_along": (lambda r: [any_real(r), indices(r), any_real(r, 2, 2, 5)], lambda f, x, i, v: f(x, i, v, 1),
                          scattered(lambda a, b: a + b)),
    "sort": (lambda r: [any_real(r)], lambda f, x: f(x, 1)[0], lambda a: np.sort(a, 1)),
    "topk": (lambda r: [any_real(r)], lambda f, x: f(x, 2, 1)[0], lambda a: -np.sort(-a, 1)[:, :2]),
    "largest": (lambda r: [any_real(r).astype("f4")], lambda f, x: f(x, None, 4)[2],
                lambda a: np.where(np.abs(a) >= np.sort(np.abs(a), None)[-4], 0, a)),
    "layer_norm": (lambda r: [any_real(r), any_real(r, 5), any_real(r, 5)], None, norm),
    "batch_norm": (lambda r: [any_real(r, 3, 4, 5), any_real(r, 4), any_real(r, 4)], lambda f, x, w, b: f(x, w, b)[0],
                   lambda x, w, b: norm(x.transpose(1, 0, 2).reshape(4, 15), 1, 0).reshape(4, 3, 5).transpose(1, 0, 2)
                   * w[:, None] + b[:, None]),
    "rms_norm": (lambda r: [any_real(r), any_real(r, 5)], None, lambda x, w: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w),
    "rope": (lambda r: [any_real(r, 2, 3, 4, 6), any_real(r, 3, 3), any_real(r, 3, 3)], None, rope),
    "embedding": (lambda r: [any_real(r, 7, 3), whole(r, 0, 7, (2, 4))], None, lambda w, i: w[i]),
    "attention": (lambda r: [any_real(r, 2, 3, 4, 6), any_real(r, 2, 5, 2, 6), any_real(r, 2, 5, 2, 6)],
                  lambda f, q, k, v: f(q, k, v, causal=True), lambda q, k, v: attention(q, k, v, causal=True)),
    "attention_keys": (lambda r: [any_real(r, 2, 3, 4, 6), any_real(r, 2, 5, 2, 6), any_real(r, 2, 5, 2, 6)],
                       lambda f, q, k, v: f(q, k, v, yoke.tensor(4), causal=True),
                       lambda q, k, v: attention(q, k, v, 4, causal=True)),
    "paged_attention": (lambda r: [any_real(r, 2, 4, 6), any_real(r, 3, 16, 2, 6), any_real(r, 3, 16, 2, 6)],
                        lambda f, q, k, v: f(q, k, v, *(yoke.tensor(np.array(x, "i4")) for x in ([[2, 0]], [0, 0], [9, 20]))), paged),
    "cross_entropy": (lambda r: [any_real(r, 6, 4), whole(r, 0, 4, (6,))], None,
                      lambda a, i: -special.log_softmax(a, -1)[np.arange(6), i].mean()),
    "mse": (lambda r: [any_real(r), any_real(r)], None, lambda a, b: ((a - b) ** 2).mean()),
    "bce_logits": (lambda r: [any_real(r), r.uniform(size=SHAPE)], None, lambda x, y: bce(x, y).mean()),
    "kl": (lambda r: [special.log_softmax(any_real(r), -1), special.log_softmax(any_real(r), -1)], None,
           lambda p, q: (np.exp(p) * (p - q)).sum(-1).mean()),
    "loss_cross_entropy": (lambda r: [any_real(r, 6, 4), whole(r, 0, 4, (6,)), positive(r, 4)],
                           lambda f, a, i, w: f(a, i, weight=w, reduction=yoke.LOSS_SUM, smooth=0.2),
                           lambda a, i, w: -(special.log_softmax(a, -1) * (0.8 * onehot(i, 4) + 0.05) * w).sum()),
    "loss_bce_logits": (lambda r: [any_real(r), r.uniform(size=SHAPE), positive(r, 5)],
                        lambda f, x, y, w: f(x, y, pos_weight=w, reduction=yoke.LOSS_NONE),
                        lambda x, y, w: -(w * y * -np.log1p(np.exp(-x)) + (1 - y) * -np.log1p(np.exp(x)))),
    "loss_mse": (lambda r: [any_real(r), any_real(r), positive(r)], lambda f, a, b, w: f(a, b, weight=w, reduction=yoke.LOSS_SUM),
                 lambda a, b, w: (w * (a - b) ** 2).sum()),
    "searchsorted": (lambda r: [np.sort(any_real(r, 9)), any_real(r)], lambda f, s, v: f(s, v, 1),
                     lambda s, v: np.searchsorted(s, v, "right")),
    "scatter_along": (lambda r: [any_real(r), indices(r), any_real(r, 2, 2, 5)],
                      lambda f, x, i, v: f(x, i, v, 1, yoke.SCATTER_MAX), scattered(max)),
    "window": (lambda r: [any_real(r, 2, 9)], lambda f, x: f(x, 1, 3, 2), lambda a: np.stack([a[:, i:i + 3] for i in (0, 2, 4, 6)], 1)),
    "conv": (lambda r: [any_real(r, 2, 3, 11), any_real(r, 4, 3, 3)], lambda f, x, w: f(x, w, stride=2, lo=1, hi=1, dilation=2),
             lambda x, w: conv(x, w, 2, 1, 2)),
    "conv_transposed": (lambda r: [any_real(r, 2, 3, 5), any_real(r, 3, 4, 3)], lambda f, x, w: f(x, w, stride=2),
                        lambda x, w: conv_transposed(x, w, 2)),
    "max_pool": (lambda r: [any_real(r, 2, 3, 9)], lambda f, x: f(x, window=3, stride=2), pooled(np.max, 3, 2)),
    "mean_pool": (lambda r: [any_real(r, 2, 3, 9)], lambda f, x: f(x, window=3, stride=2), pooled(np.mean, 3, 2)),
    "adaptive_max_pool": (lambda r: [any_real(r, 2, 3, 9)], lambda f, x: f(x, (4,)), adaptive(np.max, 4)),
    "adaptive_mean_pool": (lambda r: [any_real(r, 2, 3, 9)], lambda f, x: f(x, (4,)), adaptive(np.mean, 4)),
    "cummax_indices": (lambda r: [any_real(r)], lambda f, x: f(x, 1)[1], lambda a: reached(np.argmax, a)),
    "cummin_indices": (lambda r: [any_real(r)], lambda f, x: f(x, 1)[1], lambda a: reached(np.argmin, a)),
    "max_pool_indices": (lambda r: [any_real(r, 2, 3, 9)], lambda f, x: f(x, window=3, stride=3)[1],
                         lambda x: pooled(np.argmax, 3, 3)(x) + np.arange(3) * 3),
    "max_unpool": (lambda r: [any_real(r, 1, 2, 2), np.array([[[3, 0], [1, 4]]])], lambda f, x, i: f(x, i, (5,)),
                   lambda x, i: np.stack([[[x[0, 0, 1], 0, 0, x[0, 0, 0], 0], [0, x[0, 1, 0], 0, 0, x[0, 1, 1]]]])),
    "unfold": (lambda r: [any_real(r, 2, 3, 9)], lambda f, x: f(x, 3, stride=2), columns),
    "fold": (lambda r: [any_real(r, 2, 6, 4)], lambda f, x: f(x, (8,), 2, stride=2),
             lambda x: x.reshape(2, 3, 2, 4).transpose(0, 1, 3, 2).reshape(2, 3, 8)),
    "interpolate": (lambda r: [any_real(r, 2, 3, 5)], lambda f, x: f(x, 8, mode="linear"), lambda x: resized(x, 8)),
    "grid_sample": (lambda r: [any_real(r, 2, 3, 2, 2), np.tile([[[[-1.0, -1], [1, 1]]]], (2, 1, 1, 1))],
                    lambda f, x, g: f(x, g, align_corners=True), lambda x, g: x[:, :, [0, 1], [0, 1]][:, :, None]),
    "affine_grid": (lambda r: [any_real(r, 2, 2, 3)], lambda f, t: f(t, (2, 1, 1, 1)), lambda t: t[:, :, 2].reshape(2, 1, 1, 2)),
    "embedding_bag": (lambda r: [whole(r, 0, 7, (2, 4)), any_real(r, 7, 3)], lambda f, i, w: f(i, w, mode="sum"),
                      lambda i, w: w[i].sum(1)),
    "resize": (lambda r: [any_real(r, 2, 3, 5)], lambda f, x: f(x, (8,), True), lambda x: resized(x, 8)),
    "grouped_matmul": (lambda r: [any_real(r, 6, 3), any_real(r, 2, 3, 4), np.array([1, 3, 5])], None,
                       lambda x, w, _: np.concatenate([np.zeros((1, 4)), x[1:3] @ w[0], x[3:5] @ w[1], np.zeros((1, 4))])),
    "barrier": (lambda r: [any_real(r), any_real(r)], lambda f, x, y: f([x], [y])[0], lambda a, b: a),
    "unscale_check": (lambda r: [any_real(r)], lambda f, x: f([x], yoke.scalar(0.5))[0][0], lambda a: a / 2),
    "global_norm": (lambda r: [any_real(r), any_real(r, 4)], lambda f, a, b: f([a, b]), lambda a, b: np.sqrt((a * a).sum() + (b * b).sum())),
    "grad_from": (lambda r: [any_real(r), any_real(r)], lambda f, x, c: f([x * x], [c], [x])[0], lambda a, c: 2 * a * c),
    "full": (lambda r: [], lambda f: f((2, 3), 1.5, "f64"), lambda: np.full((2, 3), 1.5)),
    "iota": (lambda r: [], lambda f: f("i32", (2, 3), 1), lambda: np.broadcast_to(np.arange(3), (2, 3))),
    "scalar": (lambda r: [], lambda f: f(2.5) + yoke.tensor(0.0), lambda: 2.5),
    "const": (lambda r: [], lambda f: f(2.5) + yoke.tensor(0.0), lambda: 2.5),
    "dropout": (lambda r: [any_real(r)], lambda f, x: f(x, 0.0), lambda a: a),
    "hypot": (lambda r: [any_real(r), any_real(r, 3, 1)], None, np.hypot),
    "copysign": (lambda r: [any_real(r), any_real(r, 3, 1)], None, np.copysign),
    "nextafter": (lambda r: [any_real(r), any_real(r, 3, 1)], None, np.nextafter),
    "frexp": (lambda r: [any_real(r)], lambda f, x: f(x)[0], lambda a: np.frexp(a)[0]),
    "einsum": (lambda r: [any_real(r), any_real(r, 5, 4), any_real(r, 4)], lambda f, a, b, c: f("bij,jk,k->kib", a, b, c),
               lambda a, b, c: np.einsum("bij,jk,k->kib", a, b, c)),
    "outer": (lambda r: [any_real(r), any_real(r, 4)], None, np.outer),
    "kron": (lambda r: [any_real(r, 2, 3), any_real(r, 4)], None, np.kron),
    "stack": (lambda r: [any_real(r), any_real(r)], lambda f, a, b: f([a, b], -2), lambda a, b: np.stack([a, b], -2)),
    "tril": (lambda r: [any_real(r)], lambda f, x: f(x, 1), lambda a: np.tril(a, 1)),
    "triu": (lambda r: [any_real(r)], lambda f, x: f(x, -1), lambda a: np.triu(a, -1)),
    "diagonal": (lambda r: [any_real(r)], lambda f, x: f(x, 1, 2, 0), lambda a: np.diagonal(a, 1, 2, 0)),
    "diag": (lambda r: [any_real(r, 5)], lambda f, x: f(x, -2), lambda a: np.diag(a, -2)),
    "one_hot": (lambda r: [whole(r, 0, 7, (3, 4))], lambda f, i: f(i, 7), lambda i: np.eye(7)[i]),
    "roll": (lambda r: [any_real(r)], lambda f, x: f(x, -3, 1), lambda a: np.roll(a, -3, 1)),
    "repeat": (lambda r: [any_real(r)], lambda f, x: f(x, 3, 1), lambda a: np.repeat(a, 3, 1)),
    "repeat_each": (lambda r: [any_real(r), np.array([2, 0, 5])], lambda f, x, k: f(x, k, 7, 1), lambda a, k: np.repeat(a, k, 1)),
    "roll_axes": (lambda r: [any_real(r, 3, 4)], lambda f, x: f(x, (-7, 2)), lambda a: np.roll(a, (-7, 2), (0, 1))),
    "tile": (lambda r: [any_real(r)], lambda f, x: f(x, (2, 1, 1, 3)), lambda a: np.tile(a, (2, 1, 1, 3))),
    "nonzero": (lambda r: [whole(r, 0, 2)], lambda f, x: yoke.stack(f(x)), lambda a: np.stack(np.nonzero(a))),
    "masked_select": (lambda r: [any_real(r), whole(r, 0, 2, (3, 5)) > 0], None, lambda a, m: a[np.broadcast_to(m, a.shape)]),
    "unique": (lambda r: [whole(r)], lambda f, x: yoke.concat(f(x, True, True), None), lambda a: np.concatenate(
        [np.ravel(t) for t in np.unique(a, return_inverse=True, return_counts=True)])),
    "where": (lambda r: [whole(r, 0, 2), any_real(r), any_real(r, 5)], None, np.where),
    "masked_fill": (lambda r: [any_real(r), whole(r, 0, 2) > 0], lambda f, x, m: f(x, m, 2.0), lambda a, m: np.where(m, 2.0, a)),
    "masked_scatter": (lambda r: [any_real(r), whole(r, 0, 2) > 0, any_real(r, 40)], None, filled),
    "index_put": (lambda r: [any_real(r), np.array([0, -1, 1]), np.array([[2], [-3]]), any_real(r, 5)],
                  lambda f, x, i, j, v: f(x, (i, j), v, True), put),
    "bucketize": (lambda r: [any_real(r), np.sort(any_real(r, 9))], None, lambda v, s: np.searchsorted(s, v)),
    "quantile_by": (lambda r: [any_real(r)], lambda f, x: f(x, 0.3, 1, yoke.QUANTILE_MIDPOINT),
                    lambda a: np.quantile(a, 0.3, 1, method="midpoint")),
    "histogram_weighted": (lambda r: [any_real(r), positive(r)], lambda f, x, w: f(x, w, 7, -1.0, 2.0),
                           lambda a, w: np.histogram(a, 7, (-1, 2), weights=w)[0]),
}
# what other tests have: of random numbers, scopes, variables, scalers, and the resolvent, whose numbers are complex
ELSEWHERE = {"fft", "ifft", "rfft", "irfft", "stft", "istft", "recurrent", "loss_ctc", "lift", "variable", "uniform", "normal", "rand_bits", "scaler_scale", "scaler_inverse", "scaler_check", "resolvent",
             "resolvent_complex", "resolvent_corner", "resolvent_log_det", "to"}


@pytest.mark.parametrize("name", sorted(set(ROWS) - ELSEWHERE))
def test_a_function_is_numpys(name, rng):
    operands, call, reference = ROWS[name]
    a = operands(rng)
    f = getattr(yoke, name)
    t = [yoke.tensor(x) for x in a]
    got = call(f, *t) if call else f(*t)
    want = np.asarray(reference(*a))
    assert got.shape == want.shape
    np.testing.assert_allclose(got.numpy().astype("f8"), want.astype("f8"), rtol=1e-6 if got.dtype is yoke.f32 else 1e-10, atol=1e-11)


@pytest.mark.skipif(not include.is_dir() or not (here.parent / "bind.py").exists(), reason="the headers are not beside the tests")
def test_each_function_has_a_row():
    bind = load()
    functions, _ = bind.read_headers(str(include))
    names = {bind.python_name(f.name) for f in functions
             if f.header in ("yoke.h", "yoke-linalg.h", "yoke-math.h") and f.name not in bind.ABSENT}
    tensors = {n for n in names if "Tensor" in (getattr(yoke, n).__doc__ or "").split("\n")[0].split("->")[-1]}
    assert tensors - set(ROWS) - ELSEWHERE == set()


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_products_of_bytes_have_whole_sums(dtype, rng):
    """i8 and u8 to i32: as NumPy has it with factors of i32."""
    info = np.iinfo(dtype)
    a = rng.integers(info.min, info.max, (3, 40, 301), dtype, True)
    b = rng.integers(info.min, info.max, (301, 50), dtype, True)
    got = yoke.matmul_to(yoke.tensor(a), yoke.tensor(b), 0, "i32")
    assert got.dtype is yoke.i32
    np.testing.assert_array_equal(got.numpy(), a.astype("i4") @ b.astype("i4"))


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles_by_all_methods(method, rng):
    a, q = rng.normal(size=(3, 8)), [0, 0.2, 0.5, 0.77, 1]
    np.testing.assert_allclose(yoke.quantile(a, q, 1, method=method).numpy(), np.quantile(a, q, 1, method=method), rtol=1e-12)


def test_values_that_occur_with_nans(rng):
    a = np.array([2, np.nan, 1, np.nan, 2])
    for got, want in zip(yoke.unique(yoke.tensor(a), True, True), np.unique(a, return_inverse=True, return_counts=True)):
        np.testing.assert_array_equal(got.numpy(), want)


def test_a_capacity_that_is_too_small_names_the_number():
    _, count = yoke._core.nonzero(yoke.tensor([1, 0, 2, 3]), 2)
    assert count.item() == 3
    with pytest.raises(Exception, match="3 elements, the capacity is 2"):
        yoke._core.counted(count, 2)


def test_histc_has_weights_and_finds_its_limits(rng):
    a, w = rng.normal(size=50), rng.uniform(size=50)
    np.testing.assert_array_equal(yoke.histc(a, 7).numpy(), np.histogram(a, 7)[0])
    np.testing.assert_allclose(yoke.histc(a, 7, -1, 2, weight=w).numpy(), np.histogram(a, 7, (-1, 2), weights=w)[0], rtol=1e-12)
