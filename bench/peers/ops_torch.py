#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operations of the package yoke beside PyTorch's, on the CPU, at 10^4 and 10^6 elements.

    ops_torch.py [NAME ..] [sizes=10000,1000000] [turns=9] [threads=2] [batch=10]

NAME selects the cases whose names begin with it.  Each library is in a process of its own, and they take turns; a turn
repeats the call, recording and evaluation included, for about `batch` ms.  Prints the median time of a call in
microseconds, the median over turns of the ratio of both with its quartiles, and `slow` where yoke takes more than 1.2
times as long.  `differs`: the results are not equal to 1e-4.

A case is a name, a function of NumPy's generator and the size that makes arrays, and the call of either library, given
the module and the arrays as tensors.  Append cases to CASES.
"""
import os
import pickle
import statistics
import subprocess
import sys
import time

import numpy as np

LIMIT = 1.2
REST = 0.02 # seconds before each turn, after which the other library's threads have stopped to spin


def f32(r, *shape):
    return r.standard_normal(shape).astype("f4")


def side(n):
    return int(n ** 0.5)


def square(r, n):
    return [f32(r, side(n), side(n))]


def vector(r, n):
    return [f32(r, n)]


def two(r, n):
    return [f32(r, n), f32(r, n)]


def cube(n):
    return (round(n ** (1 / 3)),) * 3


def image(r, n):
    return [f32(r, 1, 16, side(n // 16), side(n // 16))]


def whole(r, high, *shape):
    return r.integers(0, high, shape)


def firm(r, n, batch=False):
    """A square matrix, or many of 16 x 16, far from singular."""
    k, many = (16, n // 256) if batch else (side(n), 1)
    return [f32(r, *((many, k, k) if batch else (k, k))) + np.eye(k, dtype="f4") * 3 * k ** 0.5]


def layer(r, n, gates):
    """x [T,B,k] and a recurrent layer's state, weights and biases."""
    k = 64 if n < 100000 else 256
    return [f32(r, max(1, 4 * n // k ** 2), k // 4, k), f32(r, k // 4, k), *[f32(r, gates * k, k) / k ** 0.5 for _ in range(2)],
            *[f32(r, gates * k) for _ in range(2)]]


def alignment(r, n):
    """CTC: log probabilities [T,N,C], targets, steps and labels."""
    many = max(1, n // 1000)
    x = f32(r, 50, many, 20)
    return [x - np.log(np.exp(x).sum(2, keepdims=True)), 1 + whole(r, 19, many, 10), np.full(many, 50), np.full(many, 10)]


# name, arrays of the generator and the size, yoke's call, PyTorch's call
CASES = [
    # products
    ("einsum ij,jk", lambda r, n: [f32(r, side(n), side(n)), f32(r, side(n), side(n))], lambda y, a, b: y.einsum("ij,jk->ik", a, b), lambda t, a, b: t.einsum("ij,jk->ik", a, b)),
    ("einsum bij,bjk", lambda r, n: [f32(r, n // 400, 20, 20), f32(r, n // 400, 20, 20)], lambda y, a, b: y.einsum("bij,bjk->bik", a, b), lambda t, a, b: t.einsum("bij,bjk->bik", a, b)),
    ("einsum three", lambda r, n: [f32(r, n // 50, 50), f32(r, 50, 50), f32(r, 50, 8)], lambda y, a, b, c: y.einsum("ij,jk,kl->il", a, b, c), lambda t, a, b, c: t.einsum("ij,jk,kl->il", a, b, c)),
    ("einsum ii", square, lambda y, x: y.einsum("ii->i", x), lambda t, x: t.einsum("ii->i", x).contiguous()),
    ("tensordot", lambda r, n: [f32(r, n // 400, 20, 20), f32(r, 20, 20, 30)], lambda y, a, b: y.tensordot(a, b, 2), lambda t, a, b: t.tensordot(a, b, 2)),
    ("outer", lambda r, n: [f32(r, side(n)), f32(r, side(n))], lambda y, a, b: y.outer(a, b), lambda t, a, b: t.outer(a, b)),
    ("kron", lambda r, n: [f32(r, side(n) // 10, side(n) // 10), f32(r, 10, 10)], lambda y, a, b: y.kron(a, b), lambda t, a, b: t.kron(a, b)),
    # sizes that depend on values
    ("nonzero", lambda r, n: [(r.random(n) < 0.3).astype("f4")], lambda y, x: y.nonzero(x), lambda t, x: t.nonzero(x, as_tuple=True)),
    ("nonzero 2d", lambda r, n: [r.random((side(n), side(n))) < 0.3], lambda y, x: y.nonzero(x), lambda t, x: t.nonzero(x, as_tuple=True)),
    ("masked_select", lambda r, n: [f32(r, n), r.random(n) < 0.3], lambda y, x, m: y.masked_select(x, m), lambda t, x, m: t.masked_select(x, m)),
    ("unique", lambda r, n: [whole(r, n // 10, n)], lambda y, x: y.unique(x), lambda t, x: t.unique(x)),
    ("unique all", lambda r, n: [whole(r, n // 10, n)], lambda y, x: y.unique(x, return_inverse=True, return_counts=True),
     lambda t, x: t.unique(x, return_inverse=True, return_counts=True)),
    ("unique f32", lambda r, n: [np.round(f32(r, n), 2)], lambda y, x: y.unique(x), lambda t, x: t.unique(x)),
    # arranging
    ("where", lambda r, n: [r.random(n) < 0.5, f32(r, n)], lambda y, c, x: y.where(c, x, 0.0), lambda t, c, x: t.where(c, x, 0.0)),
    ("where scalars", lambda r, n: [r.random(n) < 0.5], lambda y, c: y.where(c, 1.0, 0.0), lambda t, c: t.where(c, 1.0, 0.0)),
    ("stack", two, lambda y, a, b: y.stack([a, b], 1), lambda t, a, b: t.stack([a, b], 1)),
    ("split", square, lambda y, x: [p + 1.0 for p in y.split(x, 5, 1)], lambda t, x: [p + 1.0 for p in t.tensor_split(x, 5, 1)]),
    ("chunk", square, lambda y, x: [p + 1.0 for p in y.chunk(x, 3, 1)], lambda t, x: [p + 1.0 for p in t.chunk(x, 3, 1)]),
    ("tril", square, lambda y, x: y.tril(x), lambda t, x: t.tril(x)),
    ("triu", square, lambda y, x: y.triu(x, 1), lambda t, x: t.triu(x, 1)),
    ("diag", lambda r, n: [f32(r, side(n))], lambda y, x: y.diag(x), lambda t, x: t.diag(x)),
    ("diagonal", lambda r, n: [f32(r, n // 100, 10, 10)], lambda y, x: y.diagonal(x, 0, 1, 2) + 1.0, lambda t, x: t.diagonal(x, 0, 1, 2) + 1.0),
    ("one_hot", lambda r, n: [whole(r, 100, n // 100)], lambda y, i: y.one_hot(i, 100), lambda t, i: t.nn.functional.one_hot(i, 100)),
    ("roll", square, lambda y, x: y.roll(x, (3, 5), (0, 1)), lambda t, x: t.roll(x, (3, 5), (0, 1))),
    ("roll flat", vector, lambda y, x: y.roll(x, 3), lambda t, x: t.roll(x, 3)),
    ("repeat", lambda r, n: [f32(r, n // 4)], lambda y, x: y.repeat(x, 4), lambda t, x: t.repeat_interleave(x, 4)),
    ("repeat rows", lambda r, n: [f32(r, n // 200, 50)], lambda y, x: y.repeat(x, 4, 0), lambda t, x: t.repeat_interleave(x, 4, 0)),
    ("repeat each", lambda r, n: [f32(r, n // 200, 50), whole(r, 8, n // 200)], lambda y, x, k: y.repeat(x, k, 0), lambda t, x, k: t.repeat_interleave(x, k, 0)),
    ("tile", lambda r, n: [f32(r, side(n) // 4, side(n))], lambda y, x: y.tile(x, (2, 2)), lambda t, x: t.tile(x, (2, 2))),
    ("meshgrid", lambda r, n: [f32(r, side(n)), f32(r, side(n))], lambda y, a, b: [g + 1.0 for g in y.meshgrid(a, b, indexing="ij")],
     lambda t, a, b: [g + 1.0 for g in t.meshgrid(a, b, indexing="ij")]),
    ("index_put", lambda r, n: [f32(r, n), r.permutation(n)[: n // 4], f32(r, n // 4)], lambda y, x, i, v: y.index_put(x, (i,), v), lambda t, x, i, v: t.index_put(x, (i,), v)),
    ("index_put 2d", lambda r, n: [f32(r, side(n), side(n)), whole(r, side(n), n // 4), whole(r, side(n), n // 4), f32(r, n // 4)],
     lambda y, x, i, j, v: y.index_put(x, (i, j), v, True), lambda t, x, i, j, v: t.index_put(x, (i, j), v, True)),
    ("masked_fill", lambda r, n: [f32(r, n), r.random(n) < 0.3], lambda y, x, m: y.masked_fill(x, m, 2.0), lambda t, x, m: t.masked_fill(x, m, 2.0)),
    ("masked_scatter", lambda r, n: [f32(r, n), r.random(n) < 0.3, f32(r, n)], lambda y, x, m, v: y.masked_scatter(x, m, v), lambda t, x, m, v: t.masked_scatter(x, m, v)),
    ("searchsorted", lambda r, n: [np.sort(f32(r, n // 10)), f32(r, n)], lambda y, s, v: y.searchsorted(s, v), lambda t, s, v: t.searchsorted(s, v)),
    ("searchsorted rows", lambda r, n: [np.sort(f32(r, 100, n // 1000)), f32(r, 100, n // 100)], lambda y, s, v: y.searchsorted(s, v), lambda t, s, v: t.searchsorted(s, v)),
    ("bucketize", lambda r, n: [f32(r, n), np.linspace(-3, 3, 64, dtype="f4")], lambda y, v, s: y.bucketize(v, s), lambda t, v, s: t.bucketize(v, s)),
    ("histc", vector, lambda y, x: y.histogram(x, 50, -3.0, 3.0), lambda t, x: t.histc(x, 50, -3.0, 3.0)),
    ("histc weights", lambda r, n: [f32(r, n), r.random(n).astype("f4")], lambda y, x, w: y.histogram_weighted(x, w, 50, -3.0, 3.0),
     lambda t, x, w: t.histogram(x, 50, range=(-3.0, 3.0), weight=w)[0]),
    # elements, quantiles
    ("copysign", two, lambda y, a, b: y.copysign(a, b), lambda t, a, b: t.copysign(a, b)),
    ("nextafter", two, lambda y, a, b: y.nextafter(a, b), lambda t, a, b: t.nextafter(a, b)),
    ("hypot", two, lambda y, a, b: y.hypot(a, b), lambda t, a, b: t.hypot(a, b)),
    ("frexp", vector, lambda y, x: y.frexp(x), lambda t, x: t.frexp(x)),
    ("quantile", vector, lambda y, x: y.quantile(x, 0.3), lambda t, x: t.quantile(x, 0.3)),
    ("quantile rows", lambda r, n: [f32(r, n // 100, 100)], lambda y, x: y.quantile(x, 0.3, 1, method="nearest"), lambda t, x: t.quantile(x, 0.3, 1, interpolation="nearest")),
    # windows, interpolation, bags
    ("conv3d", lambda r, n: [f32(r, 1, 16, *cube(n // 16)), f32(r, 16, 16, 3, 3, 3)], lambda y, x, w: y.conv(x, w, lo=1, hi=1), lambda t, x, w: t.nn.functional.conv3d(x, w, padding=1)),
    ("conv_transposed3d", lambda r, n: [f32(r, 1, 16, *cube(n // 128)), f32(r, 16, 16, 2, 2, 2)], lambda y, x, w: y.conv_transposed(x, w, stride=2), lambda t, x, w: t.nn.functional.conv_transpose3d(x, w, stride=2)),
    ("max_pool3d", lambda r, n: [f32(r, 1, 16, *cube(n // 16))], lambda y, x: y.max_pool(x, window=2), lambda t, x: t.nn.functional.max_pool3d(x, 2)),
    ("max_pool3d, indices", lambda r, n: [f32(r, 1, 16, *cube(n // 16))], lambda y, x: y.max_pool_indices(x, window=2)[1], lambda t, x: t.nn.functional.max_pool3d(x, 2, return_indices=True)[1]),
    ("avg_pool3d", lambda r, n: [f32(r, 1, 16, *cube(n // 16))], lambda y, x: y.mean_pool(x, window=2), lambda t, x: t.nn.functional.avg_pool3d(x, 2)),
    ("adaptive_avg_pool2d", image, lambda y, x: y.adaptive_mean_pool(x, (7, 7)), lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, 7)),
    *[(f"interpolate {m}", lambda r, n: image(r, n // 4), lambda y, x, m=m: y.interpolate(x, scale_factor=2, mode=m),
       lambda t, x, m=m: t.nn.functional.interpolate(x, scale_factor=2, mode=m)) for m in ("nearest", "bilinear", "bicubic")],
    ("interpolate, antialias", lambda r, n: image(r, 4 * n), lambda y, x: y.interpolate(x, scale_factor=0.5, mode="bilinear", antialias=True), lambda t, x: t.nn.functional.interpolate(x, scale_factor=0.5, mode="bilinear", antialias=True)),
    *[(f"grid_sample {m}", lambda r, n: image(r, n) + [r.uniform(-1, 1, (1, side(n // 16), side(n // 16), 2)).astype("f4")],
       lambda y, x, g, m=m: y.grid_sample(x, g, m), lambda t, x, g, m=m: t.nn.functional.grid_sample(x, g, m, align_corners=False))
      for m in ("bilinear", "nearest", "bicubic")],
    ("unfold", image, lambda y, x: y.unfold(x, 3, padding=1), lambda t, x: t.nn.functional.unfold(x, 3, padding=1)),
    ("cummax, indices", square, lambda y, x: y.cummax_indices(x, 1)[1], lambda t, x: t.cummax(x, 1)[1]),
    *[(f"embedding_bag {m}", lambda r, n: [whole(r, 10000, n // 640 + 1, 10), f32(r, 10000, 64)], lambda y, i, w, m=m: y.embedding_bag(i, w, mode=m),
       lambda t, i, w, m=m: t.nn.functional.embedding_bag(i, w, mode=m)) for m in ("sum", "mean", "max")],
    # recurrent layers, losses
    ("lstm", lambda r, n: layer(r, n, 4), lambda y, x, h, i, w, a, b: y.recurrent(x, w_ih=i, w_hh=w, b_ih=a, b_hh=b, cell=2, h0=h, c0=h, lengths=None)[0],
     lambda t, x, h, i, w, a, b: t.lstm(x, (h[None], h[None]), (i, w, a, b), True, 1, 0.0, False, False, False)[0]),
    ("gru", lambda r, n: layer(r, n, 3), lambda y, x, h, i, w, a, b: y.recurrent(x, w_ih=i, w_hh=w, b_ih=a, b_hh=b, cell=3, h0=h, c0=None, lengths=None)[0],
     lambda t, x, h, i, w, a, b: t.gru(x, h[None], (i, w, a, b), True, 1, 0.0, False, False, False)[0]),
    ("ctc", alignment, lambda y, x, s, t, l: y.loss_ctc(x, s, t, l, 0, y.LOSS_MEAN, 0), lambda t, x, s, k, l: t.nn.functional.ctc_loss(x, s, k, l, 0)),
    # linear algebra: one matrix, and many of 16 x 16
    ("inv", firm, lambda y, a: y.linalg.inv(a), lambda t, a: t.linalg.inv(a)),
    ("inv of many", lambda r, n: firm(r, n, True), lambda y, a: y.linalg.inv(a), lambda t, a: t.linalg.inv(a)),
    ("solve", lambda r, n: firm(r, n) + [f32(r, side(n), 8)], lambda y, a, b: y.linalg.solve(a, b), lambda t, a, b: t.linalg.solve(a, b)),
    ("solve of many", lambda r, n: firm(r, n, True) + [f32(r, n // 256, 16, 4)], lambda y, a, b: y.linalg.solve(a, b), lambda t, a, b: t.linalg.solve(a, b)),
    ("slogdet", firm, lambda y, a: y.linalg.slogdet(a).logabsdet, lambda t, a: t.linalg.slogdet(a).logabsdet),
    ("det of many", lambda r, n: [x / 12 for x in firm(r, n, True)], lambda y, a: y.linalg.det(a), lambda t, a: t.linalg.det(a)),
    ("lstsq", lambda r, n: [f32(r, 2 * side(n), side(n) // 2), f32(r, 2 * side(n), 4)], lambda y, a, b: y.linalg.lstsq(a, b, driver="gels").solution, lambda t, a, b: t.linalg.lstsq(a, b, driver="gels").solution),
    ("qr", square, lambda y, a: list(y.linalg.qr(a)), lambda t, a: list(t.linalg.qr(a))),
    ("qr of many", lambda r, n: firm(r, n, True), lambda y, a: list(y.linalg.qr(a)), lambda t, a: list(t.linalg.qr(a))),
    ("svd", square, lambda y, a: [(lambda f: f.U * f.S @ f.Vh)(y.linalg.svd(a, False))], lambda t, a: [(lambda f: f.U * f.S @ f.Vh)(t.linalg.svd(a, False))]),
    ("svd of many", lambda r, n: firm(r, n, True), lambda y, a: [(lambda f: (f.U * f.S[..., None, :]) @ f.Vh)(y.linalg.svd(a, False))], lambda t, a: [(lambda f: (f.U * f.S[..., None, :]) @ f.Vh)(t.linalg.svd(a, False))]),
    ("svdvals", square, lambda y, a: y.linalg.svdvals(a), lambda t, a: t.linalg.svdvals(a)),
    ("pinv", lambda r, n: [f32(r, 2 * side(n), side(n) // 2)], lambda y, a: y.linalg.pinv(a), lambda t, a: t.linalg.pinv(a)),
    ("matrix_exp", lambda r, n: [f32(r, side(n), side(n)) / side(n) ** 0.5], lambda y, a: y.linalg.matrix_exp(a), lambda t, a: t.linalg.matrix_exp(a)),
    ("matrix_exp of many", lambda r, n: [f32(r, n // 256, 16, 16) / 4], lambda y, a: y.linalg.matrix_exp(a), lambda t, a: t.linalg.matrix_exp(a)),
    ("matrix_power", lambda r, n: [f32(r, side(n), side(n)) / side(n) ** 0.5], lambda y, a: y.linalg.matrix_power(a, 5), lambda t, a: t.linalg.matrix_power(a, 5)),
]


def flat(result):
    if isinstance(result, (tuple, list)):
        return [t for r in result for t in flat(r)]
    return [result]


def serve(library, threads):
    """One library's process: reads (case, size) or (case, size, times), answers with results or with seconds of a call."""
    if library == "torch":
        import torch as module

        module.set_num_threads(threads)
        module.set_grad_enabled(False)
        tensor = module.from_numpy
    else:
        import yoke as module

        tensor = module.tensor
    ready = {}
    source, to = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            k, n, times = pickle.load(source)
        except EOFError:
            return
        if (k, n) not in ready:
            ready.clear()
            ready[k, n] = [tensor(a) for a in CASES[k][1](np.random.default_rng(1), n)]
        call, x = CASES[k][2 if library == "yoke" else 3], ready[k, n]

        def once():
            y = call(module, *x)
            if library == "yoke":
                module.eval(*flat(y))
            return y

        try:
            if not times:
                for _ in range(3):
                    y = once()
                answer = [np.asarray(t.numpy()) for t in flat(y)]
            else:
                time.sleep(REST)
                once()
                began = time.perf_counter()
                for _ in range(times):
                    once()
                answer = (time.perf_counter() - began) / times
        except (AttributeError, TypeError, ValueError, RuntimeError, NotImplementedError) as e:
            answer = f"{type(e).__name__}: {e}".split("\n")[0]
        pickle.dump(answer, to)
        to.flush()


class Peer:
    def __init__(self, library, threads):
        env = dict(os.environ, OMP_NUM_THREADS=str(threads), YOKE_THREADS=str(threads))
        self.process = subprocess.Popen([sys.executable, __file__, "serve=" + library, f"threads={threads}"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)

    def ask(self, *what):
        pickle.dump(what, self.process.stdin)
        self.process.stdin.flush()
        return pickle.load(self.process.stdout)


def equal(a, b):
    return len(a) == len(b) and all(x.shape == y.shape and np.allclose(x, y, 1e-4, 1e-4, True) for x, y in zip(a, b))


def main():
    keys = {"sizes": "10000,1000000", "turns": "9", "threads": "2", "batch": "10", "serve": ""}
    names = []
    for word in sys.argv[1:]:
        key, is_key, value = word.partition("=")
        if is_key:
            keys[key] = value
        else:
            names.append(word)
    threads = int(keys["threads"])
    if keys["serve"]:
        return serve(keys["serve"], threads)
    yoke, torch = Peer("yoke", threads), Peer("torch", threads)
    print("%-20s %8s %10s %10s %7s %s" % ("", "n", "yoke us", "torch us", "ratio", "quartiles"))
    for k, case in enumerate(CASES):
        if names and not any(case[0].startswith(name) for name in names):
            continue
        for n in map(int, keys["sizes"].split(",")):
            results = [peer.ask(k, n, 0) for peer in (yoke, torch)]
            failed = [f"{peer}: {r}" for peer, r in zip(("yoke", "torch"), results) if isinstance(r, str)]
            if failed:
                print("%-20s %8d %s" % (case[0], n, "; ".join(failed)), flush=True)
                continue
            one = [peer.ask(k, n, 2) for peer in (yoke, torch)]
            times = [max(1, int(float(keys["batch"]) / 1e3 / s)) for s in one]
            took = [[peer.ask(k, n, many) for peer, many in zip((yoke, torch), times)] for _ in range(int(keys["turns"]))]
            ratios = sorted(a / b for a, b in took)
            ratio = statistics.median(ratios)
            print("%-20s %8d %10.1f %10.1f %7.2f %.2f-%.2f%s%s" % (
                case[0], n, 1e6 * statistics.median(a for a, _ in took), 1e6 * statistics.median(b for _, b in took), ratio,
                ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4], " slow" if ratio > LIMIT else "",
                "" if equal(*results) else " differs"), flush=True)


if __name__ == "__main__":
    main()
