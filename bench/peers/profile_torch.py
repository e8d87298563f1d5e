#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What torch.profiler (shapes, memory) costs active steps of a GPT: the peer of `bench/watching steps`.

    profile_torch.py ROUNDS [layers=2] [heads=4] [embed=128] [context=64] [batch=8] [vocab=256] [threads=1]

Groups of steps with and without it go in turns, of a quarter of a second of processors or more; prints the medians of
the rounds' ratios of steps a second, by the wall and by the processors' time.
"""
import math
import statistics
import sys
import time

import torch
from gpt_torch import loss_of

rounds = int(sys.argv[1])
o = dict(layers=2, heads=4, embed=128, context=64, batch=8, vocab=256, threads=1)
o.update((k, int(v)) for k, v in (a.split("=", 1) for a in sys.argv[2:]))
torch.set_num_threads(o["threads"])
e, context = o["embed"], o["context"]
shapes = {"wte.weight": (o["vocab"], e), "wpe.weight": (context, e), "norm.weight": (e,), "norm.bias": (e,)}
for i in range(o["layers"]):
    for name, shape in (("norm1", (e,)), ("norm2", (e,)), ("attn.qkv", (3 * e, e)), ("attn.proj", (e, e)),
                        ("mlp.up", (4 * e, e)), ("mlp.down", (e, 4 * e))):
        shapes[f"layer{i}.{name}.weight"] = shape
        shapes[f"layer{i}.{name}.bias"] = shape[:1]
p = {k: (torch.randn(s) * 0.02).requires_grad_() for k, s in shapes.items()}
opt = torch.optim.AdamW(p.values(), lr=1e-4)
mask = torch.full((context, context), -math.inf).triu(1)
ids = torch.randint(o["vocab"], (o["batch"], context + 1))


def steps(n, profiler):
    for _ in range(n):
        opt.zero_grad(set_to_none=True)
        loss = loss_of(p, ids, o["layers"], o["heads"], mask)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(p.values()), 1.0)
        opt.step()
        loss.item()
        if profiler:
            profiler.step()


def group(n, watched):
    if not watched:
        wall, busy = time.perf_counter(), time.process_time()
        steps(n, None)
        return time.perf_counter() - wall, time.process_time() - busy
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True,
                                profile_memory=True) as profiler:
        wall, busy = time.perf_counter(), time.process_time()
        steps(n, profiler)
        return time.perf_counter() - wall, time.process_time() - busy


n = 1
while group(n, False)[1] < 0.25:
    n *= 2
group(n, True)
wall, busy = [], []
for _ in range(rounds):
    a, b = group(n, False), group(n, True)
    wall.append(a[0] / b[0])
    busy.append(a[1] / b[1])
print(f"{rounds} rounds of {n} steps: torch.profiler {statistics.median(wall):.3f} of the steps/s, "
      f"{statistics.median(busy):.3f} by processors")
