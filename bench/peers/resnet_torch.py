#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of ResNet-18 by the package yoke beside PyTorch's, with the same weights, images and optimizer, f32.

    resnet_torch.py [batch=8] [side=224] [steps=9] [threads=2]

Each library is in a process of its own, and they take turns, step by step.  Prints seconds of a step (the median after two of
warm-up) and of processors' time, the ratio of both of each turn with its quartiles, the largest resident set since before the network was there, and
the losses.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

CLASSES = 100
WARM_UP = 2


def network(nn):
    """ResNet-18 (He et al. 2015) of either library's layers."""
    norm = getattr(nn, "BatchNorm2d", None) or nn.BatchNorm
    pool = getattr(nn, "MaxPool2d", None) or nn.MaxPool
    mean = getattr(nn, "AdaptiveAvgPool2d", None) or nn.AdaptiveMeanPool

    class Block(nn.Module):
        def __init__(self, of, to, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(of, to, 3, stride=stride, padding=1, bias=False)
            self.bn1 = norm(to)
            self.conv2 = nn.Conv2d(to, to, 3, padding=1, bias=False)
            self.bn2 = norm(to)
            self.down = None
            if of != to:
                self.down = nn.Sequential(nn.Conv2d(of, to, 1, stride=stride, bias=False), norm(to))

        def forward(self, x):
            y = self.bn1(self.conv1(x)).relu()
            y = self.bn2(self.conv2(y))
            return (y + (self.down(x) if self.down is not None else x)).relu()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
            self.bn1 = norm(64)
            self.pool = pool(3, stride=2, padding=1)
            blocks = []
            for of, to, stride in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)):
                blocks += [Block(of, to, stride), Block(to, to, 1)]
            self.blocks = nn.Sequential(*blocks)
            self.mean = mean((1, 1))
            self.out = nn.Linear(512, CLASSES)

        def forward(self, x):
            x = self.blocks(self.pool(self.bn1(self.conv1(x)).relu()))
            return self.out(self.mean(x).reshape((x.shape[0], 512)))

    return Net()


def resident(field):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith(field))


def by_torch(path, threads):
    import torch

    torch.set_num_threads(threads)
    before = resident("VmRSS")
    torch.manual_seed(1)
    net = network(torch.nn)
    np.savez(path, **{n: t.numpy() for n, t in net.state_dict().items() if not n.endswith("num_batches_tracked")})
    o = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def step(x, t):
        loss = torch.nn.functional.cross_entropy(net(torch.from_numpy(x)), torch.from_numpy(t))
        loss.backward()
        o.step()
        o.zero_grad()
        return loss.item()

    return step, before


def by_yoke(path, threads):
    os.environ["YOKE_THREADS"] = str(threads)
    import yoke

    yoke.tensor([1.0]).numpy()
    before = resident("VmRSS")
    net = network(yoke.nn)
    with np.load(path) as state:
        net.load_state_dict(dict(state))
    o = yoke.optim.SGD(net, lr=0.01, momentum=0.9)
    both = yoke.value_and_grad(lambda net, x, t: yoke.cross_entropy(net(x), t))

    def step(x, t):
        with yoke.scope("step"):
            loss, g = both(net, yoke.from_dlpack(x), yoke.from_dlpack(t))
            o.step(g)
            return loss.item()

    return step, before


def child(which, path, batch, side, threads):
    step, before = (by_torch if which == "torch" else by_yoke)(path, threads)
    rng = np.random.default_rng(1)
    print("ready", flush=True)
    for _ in sys.stdin:
        x = rng.normal(size=(batch, 3, side, side)).astype("f4")
        t = rng.integers(0, CLASSES, batch)
        begin, cpu = time.perf_counter(), time.process_time()
        loss = step(x, t)
        print(time.perf_counter() - begin, loss, resident("VmHWM") - before, time.process_time() - cpu, flush=True)


def main(batch=8, side=224, steps=9, threads=2):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "weights.npz")
        peers = []
        for which in ("torch", "yoke"):  # the first one writes the weights
            p = subprocess.Popen([sys.executable, __file__, which, path, str(batch), str(side), str(threads)], text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            assert p.stdout.readline() == "ready\n"
            peers.append(p)
        rounds = []
        for _ in range(WARM_UP + steps):
            turn = []
            for p in peers:
                p.stdin.write("\n")
                p.stdin.flush()
                turn.append([float(v) for v in p.stdout.readline().split()])
            rounds.append(turn)
        for p in peers:
            p.stdin.close()
            p.wait()
    timed = rounds[WARM_UP:]
    print(f"ResNet-18, batch {batch}, {side} x {side}, f32, {threads} threads, {steps} steps after {WARM_UP}")
    for i, name in enumerate(("PyTorch", "yoke")):
        print(f"{name:8} {statistics.median(r[i][0] for r in timed):.4f} s a step, {statistics.median(r[i][3] for r in timed):.4f} s of "
              f"processors, {rounds[-1][i][2] / 2**20:.1f} MiB, "
              f"losses {rounds[0][i][1]:.6f} {rounds[1][i][1]:.6f} .. {rounds[-1][i][1]:.6f}")
    ratios = sorted(r[0][0] / r[1][0] for r in timed)
    print(f"PyTorch's time by yoke's {statistics.median(ratios):.3f} ({ratios[len(ratios) // 4]:.3f}..{ratios[len(ratios) * 3 // 4]:.3f}), "
          f"yoke's memory by PyTorch's {rounds[-1][1][2] / rounds[-1][0][2]:.3f}")


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in ("torch", "yoke"):
        child(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
    else:
        main(**{k: int(v) for k, v in (a.split("=") for a in sys.argv[1:])})
