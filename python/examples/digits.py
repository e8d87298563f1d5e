# SPDX-License-Identifier: Apache-2.0
"""The digits of scikit-learn by a convolutional network of one's own."""
import numpy as np
from sklearn.datasets import load_digits  # type: ignore[import-untyped]

import yoke
from yoke import nn, optim


class Net(nn.Module):
    def __init__(self) -> None:
        self.first = nn.Conv2d(1, 16, (3, 3), padding=1)
        self.second = nn.Conv2d(16, 32, (3, 3), padding=1)
        self.out = nn.Linear(32 * 4 * 4, 10)

    def forward(self, x: yoke.Tensor) -> yoke.Tensor:
        x = yoke.max_pool(self.first(x).relu(), window=2)
        return self.out(self.second(x).relu().reshape((x.shape[0], -1)))


def main() -> float:
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype("f4").reshape(-1, 1, 8, 8)
    order = np.random.default_rng(1).permutation(len(images))
    train, test = order[:1440], order[1440:]
    yoke.random_set(1)
    net = Net()

    def batches() -> list[tuple[np.ndarray, np.ndarray]]:
        shuffled = np.random.permutation(train)
        return [(images[i], labels[i]) for i in np.split(shuffled, 30)]

    np.random.seed(1)
    losses = yoke.fit(net, batches, lambda y, t: yoke.cross_entropy(y, t), optim.AdamW(net, lr=3e-3), epochs=8)
    net.eval()
    right = (net(yoke.from_dlpack(images[test])).argmax(1).numpy() == labels[test]).mean()
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, right {100 * right:.1f} %")
    return float(right)


if __name__ == "__main__":
    main()
