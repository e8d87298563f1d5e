#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of whole programs on the CPU, the same text with the package yoke and with PyTorch: each in a process of its own,
in turn.

    programs_torch.py [NAME ..] [turns=40] [seconds=15] [threads=2]

Both networks begin with PyTorch's weights. Prints the median time of a step of either, their ratio, and the losses of the
first and the last step, which are equal up to rounding but where a program draws random numbers.

A program sees one library as m, its layers as nn, its functions as F, and a generator of NumPy; it defines a class Net, arrays
X and Y, and a function loss.
"""
import multiprocessing
import os
import statistics
import sys
import time

REST = 0.02  # seconds before each step, after which the other library's threads have stopped to spin

PROGRAMS = {
    "mnist convolutions": '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2, self.pool = nn.Conv2d(1, 32, 3, padding=1), nn.Conv2d(32, 64, 3, padding=1), nn.MaxPool2d(2)
        self.f1, self.f2, self.drop = nn.Linear(64 * 7 * 7, 128), nn.Linear(128, 10), nn.Dropout(0.5)

    def forward(self, x):
        x = self.pool(self.c1(x).relu())
        x = self.pool(self.c2(x).relu())
        return self.f2(self.drop(self.f1(x.flatten(1)).relu()))

X, Y = random.normal(size=(64, 1, 28, 28)).astype("f4"), random.integers(0, 10, 64)
loss = lambda net, x, y: F.cross_entropy(net(x), y)
''',
    "cifar residual": '''
class Block(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o)
        self.c2, self.b2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
        same = stride == 1 and i == o
        self.short = nn.Identity() if same else nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        return (self.b2(self.c2(self.b1(self.c1(x)).relu())) + self.short(x)).relu()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        sizes = [(16, 16, 1), (16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1)]
        self.blocks, self.head = nn.Sequential(*[Block(*s) for s in sizes]), nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))

X, Y = random.normal(size=(32, 3, 32, 32)).astype("f4"), random.integers(0, 10, 32)
loss = lambda net, x, y: F.cross_entropy(net(x), y)
''',
    "u-net": '''
def double(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU(), nn.Conv2d(o, o, 3, padding=1), nn.ReLU())

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1, self.d2, self.d3, self.pool = double(1, 16), double(16, 32), double(32, 64), nn.MaxPool2d(2)
        self.u2, self.e2 = nn.ConvTranspose2d(64, 32, 2, 2), double(64, 32)
        self.u1, self.e1, self.out = nn.ConvTranspose2d(32, 16, 2, 2), double(32, 16), nn.Conv2d(16, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(self.pool(a))
        b = self.e2(m.cat([self.u2(self.d3(self.pool(b))), b], 1))
        return self.out(self.e1(m.cat([self.u1(b), a], 1)))

X, Y = random.normal(size=(4, 1, 96, 96)).astype("f4"), (random.normal(size=(4, 1, 96, 96)) > 0).astype("f4")
loss = lambda net, x, y: F.binary_cross_entropy_with_logits(net(x), y)
''',
    "variational autoencoder": '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.mean, self.spread = nn.Linear(784, 400), nn.Linear(400, 20), nn.Linear(400, 20)
        self.d1, self.d2 = nn.Linear(20, 400), nn.Linear(400, 784)

    def forward(self, x):
        h = self.e(x).relu()
        mean, spread = self.mean(h), self.spread(h)
        return self.d2(self.d1(mean + (0.5 * spread).exp() * m.randn_like(mean)).relu()), mean, spread

X = Y = (random.random(size=(128, 784)) > 0.5).astype("f4")

def loss(net, x, y):
    out, mean, spread = net(x)
    return F.binary_cross_entropy_with_logits(out, y) * 784 - 0.5 * (1 + spread - mean ** 2 - spread.exp()).sum(1).mean()
''',
    "transformer by hand": '''
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (t.reshape(B, T, self.heads, -1).permute(0, 2, 1, 3) for t in m.chunk(self.qkv(x), 3, -1))
        scores = q @ k.permute(0, 1, 3, 2) * (D // self.heads) ** -0.5
        scores = m.softmax(m.masked_fill(scores, m.tril(m.ones(T, T)) == 0, float("-inf")), -1)
        return self.out((scores @ v).permute(0, 2, 1, 3).reshape(B, T, D))

class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention, self.n1, self.n2 = Attention(width, heads), nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.n1(x))
        return x + self.mlp(self.n2(x))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(96, 128), nn.Embedding(128, 128)
        self.blocks, self.norm, self.head = nn.Sequential(*[Block(128, 4) for _ in range(4)]), nn.LayerNorm(128), nn.Linear(128, 96)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.tokens(x) + self.places(m.arange(x.shape[1])))))

X, Y = random.integers(0, 96, (16, 128)), random.integers(0, 96, 16 * 128)
loss = lambda net, x, y: F.cross_entropy(net(x).reshape(-1, 96), y)
''',
    "transformer encoder": '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True, norm_first=True)
        self.tokens, self.encoder, self.head = nn.Embedding(96, 128), nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), nn.Linear(128, 96)

    def forward(self, x):
        return self.head(self.encoder(self.tokens(x)))

X, Y = random.integers(0, 96, (16, 128)), random.integers(0, 96, 16 * 128)
loss = lambda net, x, y: F.cross_entropy(net(x).reshape(-1, 96), y)
''',
    "lstm": '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.steps, self.head = nn.Embedding(96, 256), nn.LSTM(256, 256, 2, batch_first=True), nn.Linear(256, 96)

    def forward(self, x):
        return self.head(self.steps(self.tokens(x))[0])

X, Y = random.integers(0, 96, (32, 64)), random.integers(0, 96, 32 * 64)
loss = lambda net, x, y: F.cross_entropy(net(x).reshape(-1, 96), y)
''',
    "gru encoder and decoder": '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.head = nn.Embedding(60, 64), nn.Linear(256, 60)
        self.encoder, self.decoder = nn.GRU(64, 128, batch_first=True, bidirectional=True), nn.GRU(64, 256, batch_first=True)

    def forward(self, x):
        x = self.tokens(x)
        last = self.encoder(x)[1]
        return self.head(self.decoder(x, m.cat([last[0], last[1]], -1)[None])[0])

X, Y = random.integers(0, 60, (32, 40)), random.integers(0, 60, 32 * 40)
loss = lambda net, x, y: F.cross_entropy(net(x).reshape(-1, 60), y)
''',
}


def built(library, program, threads):
    """The network, and a function that trains it a step and returns the loss."""
    import numpy

    if library == "yoke":
        import yoke as m
        from yoke import nn, optim
    else:
        import torch as m
        from torch import nn, optim
        m.set_num_threads(threads)
    names = {"m": m, "nn": nn, "F": nn.functional, "random": numpy.random.default_rng(0)}
    exec(PROGRAMS[program], names)
    net, x, y, loss = names["Net"](), names["X"], names["Y"], names["loss"]
    if library == "yoke":
        rule = optim.AdamW(net, lr=1e-3, weight_decay=0.01)
        of = m.value_and_grad(lambda net, x, y: loss(net, x, y))

        def step():
            with m.scope("step"):
                value, grads = of(net, m.tensor(x), m.tensor(y))
                rule.step(grads)
                return value.item()
    else:
        rule = optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.01)

        def step():
            rule.zero_grad()
            value = loss(net, m.from_numpy(x), m.from_numpy(y))
            value.backward()
            rule.step()
            return value.item()
    return net, step


def work(library, program, threads, pipe):
    """A library's process: sends or takes the weights, then trains a step for each message and answers with its time and loss."""
    net, step = built(library, program, threads)
    if library == "yoke":
        net.load_state_dict(pipe.recv())
    else:
        pipe.send({n: t.detach().numpy() for n, t in net.state_dict().items() if not n.endswith("num_batches_tracked")})
    while pipe.recv():
        time.sleep(REST)
        start = time.perf_counter()
        loss = step()
        pipe.send((time.perf_counter() - start, loss))


def compare(program, turns, seconds, threads):
    """Prints a row."""
    processes = multiprocessing.get_context("spawn")
    pipes, begin, rows = [], time.time(), []
    for library in ("torch", "yoke"):
        mine, other = processes.Pipe()
        processes.Process(target=work, args=(library, program, threads, other), daemon=True).start()
        pipes.append(mine)
    peer, ours = pipes
    ours.send(peer.recv())
    while len(rows) < turns and time.time() - begin < seconds:
        row = []
        for pipe in (ours, peer):
            pipe.send(True)
            row.append(pipe.recv())
        rows.append(row)
    for pipe in pipes:
        pipe.send(False)
    mine, other = (1e3 * statistics.median(row[k][0] for row in rows) for k in (0, 1))
    losses = " .. ".join(f"{row[0][1]:.5f} {row[1][1]:.5f}" for row in (rows[0], rows[-1]))
    print(f"{program:26} {mine:9.2f} {other:11.2f} {other / mine:6.2f}  {losses}", flush=True)


def main():
    how = dict(a.split("=", 1) for a in sys.argv[1:] if "=" in a)
    chosen = [a for a in sys.argv[1:] if "=" not in a]
    threads = int(how.get("threads", 2))
    os.environ.setdefault("YOKE_THREADS", str(threads))
    print(f"{'program':26} {'yoke ms':>9} {'PyTorch ms':>11} {'ratio':>6}  losses, first and last")
    for program in chosen or PROGRAMS:
        compare(program, int(how.get("turns", 40)), float(how.get("seconds", 15)), threads)


if __name__ == "__main__":
    main()
