#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's Muon and Adafactor beside yoke's, in turn, on 10 million f32 parameters in matrices.

    PYTHONPATH=BUILD/python matrices_torch.py [rounds=5] [threads=2] [muon] [adafactor] [adamw]

Prints the median step of both with the smallest and largest, and how many times as long PyTorch's takes.
"""
import statistics
import sys
import time

import numpy as np
import torch

import yoke

SHAPES = {"square": [(1024, 1024)] * 10, "gpt": [(1536, 512), (512, 512), (2048, 512), (512, 2048)] * 3 + [(512, 512)] * 4}
KINDS = {"muon": ("Muon", {"lr": 0.02}), "adafactor": ("Adafactor", {}), "adamw": ("AdamW", {})}


def ours(kind, options, shapes, rng):
    p = {str(i): yoke.variable_of(rng.normal(size=s).astype("f4"), str(i)) for i, s in enumerate(shapes)}
    g = [yoke.variable_of(rng.normal(size=s).astype("f4"), "g") for s in shapes]
    o = getattr(yoke.optim, kind)(p, **options)

    def step():
        with yoke.scope("step"):
            o.step(g)
            yoke.eval()
        p["0"].numpy()

    return step


def theirs(kind, options, shapes, rng):
    p = [torch.tensor(rng.normal(size=s).astype("f4"), requires_grad=True) for s in shapes]
    for x in p:
        x.grad = torch.tensor(rng.normal(size=tuple(x.shape)).astype("f4"))
    return getattr(torch.optim, kind)(p, **options).step


def main():
    o = {"rounds": 5, "threads": 2}
    rows = []
    for a in sys.argv[1:]:
        key, sign, value = a.partition("=")
        if sign:
            o[key] = int(value)
        else:
            rows.append(a)
    torch.set_num_threads(o["threads"])
    for row in rows or KINDS:
        for name, shapes in SHAPES.items():
            kind, options = KINDS[row]
            steps = [f(kind, options, shapes, np.random.default_rng(1)) for f in (ours, theirs)]
            took = [[], []]
            for k in range(o["rounds"] + 2):  # the first two make plans
                for i, step in enumerate(steps):
                    begin = time.perf_counter()
                    step()
                    took[i].append((time.perf_counter() - begin) * 1e3)
            a, b = (t[2:] for t in took)
            count = sum(m * n for m, n in shapes) / 1e6
            print(f"{row:10} {name:8} {count:.1f} M   yoke {statistics.median(a):7.1f} ms ({min(a):.1f} .. {max(a):.1f})   "
                  f"torch {statistics.median(b):7.1f} ms ({min(b):.1f} .. {max(b):.1f})   "
                  f"{statistics.median(b) / statistics.median(a):.2f} times", flush=True)


if __name__ == "__main__":
    main()
