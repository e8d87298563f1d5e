#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch beside bench/resolvent and yoke train examples/resnet-bk.env.

  resolvent_torch.py recursion [rounds]   the two recursions of the resolvent as loops over elements, batched over rows
  resolvent_torch.py model [steps]        the model of examples/resnet-bk.env, its recursion as such a loop, tokens/s

One thread unless OMP_NUM_THREADS says otherwise; f32; medians behind warm-ups, with half of the distance between
quartiles.  The recursion's result is compared with a dense inverse in float64.
"""
import os
import statistics
import sys
import time

import torch
from torch import nn

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))


def spread(times):
    q = statistics.quantiles(times, n=4) if len(times) > 1 else [times[0]] * 3
    return statistics.median(times), (q[2] - q[0]) / 2


def up(alpha):
    """1/L of all elements of alpha [B,N], complex, ones beside the diagonal."""
    inverse = [1 / alpha[:, 0]]
    for i in range(1, alpha.shape[1]):
        inverse.append(1 / (alpha[:, i] - inverse[-1]))
    return torch.stack(inverse, 1)


def diagonal(a, eta=1.0):
    """The diagonal of (H - i eta)^-1, both sides."""
    alpha = torch.complex(a, torch.full_like(a, -eta))
    left, right = up(alpha), up(alpha.flip(1)).flip(1)
    total = alpha.clone()
    total[:, 1:] -= left[:, :-1]
    total[:, :-1] -= right[:, 1:]
    return 1 / total


def recursion(rounds):
    print("microseconds: forward, and with the gradient; medians of", rounds)
    for rows, n in [(1, 128), (16, 128), (16, 512), (16, 2048), (16, 4096)]:
        a = torch.rand(rows, n) * 4 - 2
        if n <= 512:
            dense = torch.diag_embed(a.to(torch.complex128) - 1j)
            beside = torch.arange(n - 1)
            dense[:, beside, beside + 1] = 1
            dense[:, beside + 1, beside] = 1
            want = torch.linalg.inv(dense).diagonal(dim1=1, dim2=2)
            off = (diagonal(a) - want).abs().max().item()
        else:
            off = float("nan")
        took = [[], []]
        for k in range(rounds + 2):
            began = time.perf_counter()
            with torch.no_grad():
                diagonal(a)
            between = time.perf_counter()
            x = a.clone().requires_grad_()
            torch.view_as_real(diagonal(x)).sum().backward()
            if k >= 2:
                took[0].append(between - began)
                took[1].append(time.perf_counter() - between)
        texts = ["%.1f +- %.1f" % tuple(1e6 * v for v in spread(t)) for t in took]
        print("%4d x %-6d %20s %20s   off %.1g" % (rows, n, *texts, off), flush=True)


class Expert(nn.Module):
    def __init__(self, embed):
        super().__init__()
        self.up, self.down = nn.Linear(embed, 2 * embed), nn.Linear(2 * embed, embed)

    def forward(self, x):
        return self.down(nn.functional.dropout(torch.relu(self.up(x)), 0.1, self.training))


class Layer(nn.Module):
    def __init__(self, embed, experts):
        super().__init__()
        self.norm, self.router = nn.LayerNorm(embed), nn.Linear(embed, experts)
        self.experts = nn.ModuleList(Expert(embed) for _ in range(experts))
        self.potential, self.feature = nn.Linear(embed, 1), nn.Linear(2, embed)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, h):
        x = self.norm(h)
        p = torch.softmax(self.router(x), -1)
        most, chosen = p.max(-1)
        f = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            mine = chosen == e
            f[mine] = expert(x[mine]) * most[mine].unsqueeze(-1)
        share = torch.stack([(chosen == e).float().mean() for e in range(len(self.experts))])
        balance = len(self.experts) * (share * p.mean((0, 1))).sum()
        v = self.potential(f).squeeze(-1).clamp(-3, 3)
        g = up(torch.complex(v - 2, torch.full_like(v, -1.0)))  # side left
        feature = torch.view_as_real(g).clamp(-10, 10)
        return h + f + self.scale * self.feature(feature), balance


class Model(nn.Module):
    def __init__(self, vocab=30000, embed=64, layers=4, context=128, experts=4):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, embed), nn.Embedding(context, embed)
        self.layers = nn.ModuleList(Layer(embed, experts) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(embed), nn.Linear(embed, vocab)

    def forward(self, ids, targets):
        h = self.tok(ids) + self.pos.weight
        balances = 0
        for layer in self.layers:
            h, balance = layer(h)
            balances = balances + balance
        logits = self.head(self.norm(h))
        return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()) + 0.01 * balances


def model(steps):
    torch.manual_seed(1)
    net = Model()
    print(sum(p.numel() for p in net.parameters()), "parameters")
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.01)
    took = []
    for k in range(steps + 2):
        ids = torch.randint(0, 30000, (20, 129))
        began = time.perf_counter()
        optimizer.zero_grad()
        loss = net(ids[:, :-1], ids[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        if k >= 2:
            took.append(time.perf_counter() - began)
    median, half = spread(took)
    print("%.1f ms a step, +- %.1f ms, %.0f tokens/s, loss %.4f" % (1e3 * median, 1e3 * half, 20 * 128 / median, loss.item()))


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    if what not in ("recursion", "model"):
        sys.exit(__doc__)
    recursion(count) if what == "recursion" else model(count)
