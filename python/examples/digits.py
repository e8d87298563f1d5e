# SPDX-License-Identifier: Apache-2.0
"""The digits of scikit-learn by a custom convolutional network: digits.py [FILE].

FILE gets the digits, for examples/digits.c, which is this program in C and has the same losses, bit for bit."""
import os
import sys
import tempfile

import numpy as np
from sklearn.datasets import load_digits  # type: ignore

import yoke
from yoke import nn, optim

TRAIN = 1440


class Net(nn.Module):
    def __init__(self) -> None:
        self.first = nn.Conv2d(1, 16, (3, 3), padding=1)
        self.second = nn.Conv2d(16, 32, (3, 3), padding=1)
        self.out = nn.Linear(32 * 4 * 4, 10)

    def forward(self, x: yoke.Tensor) -> yoke.Tensor:
        x = yoke.max_pool(self.first(x).relu(), window=2)
        return self.out(self.second(x).relu().reshape((x.shape[0], -1)))


def digits(path: str) -> yoke.Dataset:
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(images))
    np.savez(path, image=(images[order] / 16).astype("f4").reshape(-1, 1, 8, 8), label=labels[order].astype("i8"))
    return yoke.dataset_open(path)


def main(path: str) -> float:
    data = digits(path)
    train = yoke.dataset_subset(data, 0, TRAIN)
    test = yoke.dataset_subset(data, TRAIN, yoke.dataset_count(data) - TRAIN)
    yoke.random_set(1)
    net = Net()
    losses = yoke.fit(net, yoke.loader_new(train, "batch=32 epochs=12 seed=1"), lambda y, t: yoke.cross_entropy(y, t),
                      optim.AdamW(net, lr=3e-3, schedule="cosine", warmup=20, steps=540),
                      log=lambda s: print(f"step {s.step} loss {s.loss:.9g}"))
    net.eval()
    images, labels = next(yoke.loader_new(test, f"batch={yoke.dataset_count(test)} shuffle=0"))
    right = float((net(images).argmax(1).numpy() == labels.numpy()).mean())
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, right {100 * right:.1f} %")
    return right


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(folder, "digits.npz"))
