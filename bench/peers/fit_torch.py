#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What yoke bench fit does, by PyTorch: statistics of cubes, PCA, RX, then training, of the same graph and cached data.

    fit_torch.py YOKE [count=200] [lines=128] [samples=128] [bands=50] [batch=16] [epochs=5] [threads=N] [rounds=3]

Makes the cubes with `yoke cubes make` in a folder of its own, reads them into memory, which is not counted, and does
what the workload small does, the statistics by one pass with moments in float64 and one with the scores.  Then runs
`yoke bench fit` on the same files, in turn.  Prints the fastest of both, and how many times as long torch takes.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch


def orthogonality(w):
    return ((w @ w.T - torch.eye(w.shape[0])) ** 2).sum()


class Chain(torch.nn.Module):
    """min_max, pca, pca, rx, logit."""

    def __init__(self, mean, cov, low, high):
        super().__init__()
        scale = 1 / max(high - low, 1e-6)
        mean, cov = (mean - low) * scale, cov * scale * scale
        self.low, self.scale = low, scale
        self.mean, self.w = [], torch.nn.ParameterList()
        for k in 20, 10:
            values, vectors = torch.linalg.eigh(cov)
            w = vectors[:, -k:].flip(1).T.contiguous()
            self.mean.append(mean.float())
            self.w.append(torch.nn.Parameter(w.float()))
            mean, cov = torch.zeros(k, dtype=torch.float64), w @ cov @ w.T
        u = torch.linalg.inv(torch.linalg.cholesky(cov + 1e-6 * torch.eye(len(cov), dtype=torch.float64)))
        self.centre = torch.nn.Parameter(mean.float())
        self.u = torch.nn.Parameter(u.float())
        self.threshold = torch.nn.Parameter(torch.zeros(1))
        self.slope = torch.nn.Parameter(torch.ones(1))

    def scores(self, x):
        x = (x - self.low) * self.scale
        for mean, w in zip(self.mean, self.w):
            x = (x - mean) @ w.T
        return (((x - self.centre) @ self.u.T) ** 2).sum(-1)

    def forward(self, x):
        return (self.scores(x) - self.threshold) * self.slope


def statistics(batches):
    """One pass: count, mean, products of deviations, extremes, as batches merge."""
    n, mean, square, low, high = 0, None, None, np.inf, -np.inf
    for x in batches:
        x = x.reshape(-1, x.shape[-1])
        low, high = min(low, float(x.min())), max(high, float(x.max()))
        m, one = x.shape[0], x.double().mean(0)
        d = x.double() - one
        s = d.T @ d
        if mean is None:
            n, mean, square = m, one, s
            continue
        delta = one - mean
        square += s + torch.outer(delta, delta) * (n * m / (n + m))
        mean = mean + delta * (m / (n + m))
        n += m
    return mean, square / (n - 1), low, high


def run(x, y, batch, epochs):
    train = int(round(0.8 * len(x)))
    parts = [slice(i, min(i + batch, train)) for i in range(0, train, batch)]
    began = time.perf_counter()
    chain = Chain(*statistics(x[p] for p in parts))
    with torch.no_grad():
        total = [torch.zeros(2, dtype=torch.float64), 0]
        for p in parts:
            s = chain.scores(x[p]).double()
            total[0] += torch.stack([s.sum(), (s * s).sum()])
            total[1] += s.numel()
        mean = total[0][0] / total[1]
        deviation = ((total[0][1] - total[1] * mean**2) / (total[1] - 1)).sqrt()
        chain.threshold.fill_(float(mean + 2 * deviation))
    fitted = time.perf_counter()
    optim = torch.optim.Adam(chain.parameters(), lr=1e-3, fused=True)
    bce = torch.nn.BCEWithLogitsLoss()
    for _ in range(epochs):
        for i in torch.randperm(train).split(batch):
            optim.zero_grad()
            loss = bce(chain(x[i]), y[i]) + sum(0.1 * orthogonality(w) for w in chain.w)
            loss.backward()
            optim.step()
        with torch.no_grad():
            for p in range(train, len(x), batch):
                bce(chain(x[p : p + batch]), y[p : p + batch])
    return fitted - began, time.perf_counter() - fitted


def main():
    yoke = os.path.abspath(sys.argv[1])
    keys = {"count": 200, "lines": 128, "samples": 128, "bands": 50, "batch": 16, "epochs": 5, "rounds": 3,
            "threads": os.cpu_count()}
    for word in sys.argv[2:]:
        key, value = word.split("=")
        keys[key] = int(value)
    torch.set_num_threads(keys["threads"])
    shape = (keys["lines"], keys["samples"], keys["bands"])
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([yoke, "cubes", "make", folder + "/set"] + ["%s=%d" % (k, keys[k]) for k in ("count", "lines", "samples", "bands")],
                       check=True)
        files = sorted(glob.glob(folder + "/set/*.img"))
        x = torch.from_numpy(np.stack([np.fromfile(f, "<f4").reshape(shape) for f in files]))
        y = torch.from_numpy(np.stack([np.load(f[:-4] + "_mask.npy")[..., 0] for f in files])).float()
        best = {"torch": [np.inf] * 2, "yoke": [np.inf] * 2}
        command = [yoke, "bench", "fit", "workload=small", "data.synthetic=null", "data.cubes=%s/set/*.hdr" % folder,
                   "data.labels=%s/set/*_mask.npy" % folder, "data.batch=%d" % keys["batch"],
                   "trainer.max_epochs=%d" % keys["epochs"], "--json", folder + "/out.json"]
        for _ in range(keys["rounds"]):
            t = run(x, y, keys["batch"], keys["epochs"])
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=dict(os.environ, YOKE_THREADS=str(keys["threads"])))
            r = json.load(open(folder + "/out.json"))["results"][0]
            fit = sum(r["statistics"]) + r["eigen"]
            for name, value in (("torch", t), ("yoke", (fit, r["wall"] - fit))):
                best[name] = [min(a, b) for a, b in zip(best[name], value)]
    print("%d cubes %s, batch %d, %d epochs, %d threads, torch %s" % (len(x), shape, keys["batch"], keys["epochs"], keys["threads"],
                                                                   torch.__version__))
    for i, phase in enumerate(("statistics", "training")):
        print("%-11s torch %8.3f s  yoke %8.3f s  %5.2f" % (phase, best["torch"][i], best["yoke"][i], best["torch"][i] / best["yoke"][i]))
    a, b = sum(best["torch"]), sum(best["yoke"])
    print("%-11s torch %8.3f s  yoke %8.3f s  %5.2f" % ("in all", a, b, a / b))


main()
