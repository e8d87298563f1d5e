#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's generation beside yoke's: bench/generate and a GPT of equal sizes with a cache, in turn.

    generate_torch.py BUILD/bench/generate [texts=1] [rounds=5] [turns=3] [layers=6] [heads=6] [embed=384]
                      [context=256] [threads=2]

torch's keys and values lie in tensors of the whole context that are written in place; attention is
scaled_dot_product_attention over those there are.  Each place in the context counts with its fastest time.
"""
import math
import re
import subprocess
import sys
import time

import torch
import torch.nn.functional as F


class Generation:
    def __init__(self, o):
        e, self.context, self.layers = o["embed"], o["context"], o["layers"]
        self.shape = (o["texts"], o["heads"], self.context, e // o["heads"])
        linear = lambda out, width: (torch.randn(out, width) * 0.02, torch.zeros(out))
        norm = lambda: (torch.ones(e), torch.zeros(e))
        self.wte, self.wpe = torch.randn(256, e) * 0.02, torch.randn(self.context, e) * 0.02
        self.block = [(norm(), linear(3 * e, e), linear(e, e), norm(), linear(4 * e, e), linear(e, 4 * e))
                      for _ in range(self.layers)]
        self.norm = norm()
        self.cache = [(torch.zeros(self.shape), torch.zeros(self.shape)) for _ in range(self.layers)]

    def token(self, ids, at):
        """The next token of each text behind ids [B], which stand at place `at`."""
        b, heads, _, d = self.shape
        x = F.embedding(ids, self.wte) + self.wpe[at]
        for (n1, qkv, proj, n2, up, down), (keys, values) in zip(self.block, self.cache):
            h = F.layer_norm(x, (heads * d,), *n1)
            q, k, v = F.linear(h, *qkv).view(b, 3, heads, 1, d).unbind(1)
            keys[:, :, at:at + 1] = k
            values[:, :, at:at + 1] = v
            a = F.scaled_dot_product_attention(q, keys[:, :, :at + 1], values[:, :, :at + 1])
            x = x + F.linear(a.reshape(b, heads * d), *proj)
            h = F.layer_norm(x, (heads * d,), *n2)
            x = x + F.linear(F.gelu(F.linear(h, *up), approximate="tanh"), *down)
        return F.linear(F.layer_norm(x, (heads * d,), *self.norm), self.wte).argmax(1)

    def seconds(self, rounds):
        least = [math.inf] * self.context
        for _ in range(rounds):
            ids = torch.full((self.shape[0],), 65)
            for at in range(self.context):
                begin = time.perf_counter()
                ids = self.token(ids, at)
                ids.tolist()
                least[at] = min(least[at], time.perf_counter() - begin)
        return least


def main():
    o = {"texts": 1, "rounds": 5, "turns": 3, "layers": 6, "heads": 6, "embed": 384, "context": 256, "threads": 2}
    o.update((k, int(v)) for k, v in (a.split("=") for a in sys.argv[2:]))
    torch.set_num_threads(o["threads"])
    ours, least = 0.0, [math.inf] * o["context"]
    with torch.inference_mode():
        peer = Generation(o)
        peer.seconds(1)
        for _ in range(o["turns"]):
            keys = ("texts", "rounds", "layers", "heads", "embed", "context")
            out = subprocess.run([sys.argv[1], *(str(o[k]) for k in keys)], check=True, text=True,
                                 capture_output=True).stdout
            print(out, end="")
            ours = max(ours, float(re.search(r"([0-9.]+) tokens/s", out).group(1)))
            least = [min(a, b) for a, b in zip(least, peer.seconds(o["rounds"]))]
    theirs = o["texts"] * (o["context"] - 1) / sum(least[1:])
    first, last = sum(least[1:9]) / 8, sum(least[-8:]) / 8
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads: {theirs:.1f} tokens/s, "
          f"first {first * 1e3:.3f} ms, last {last * 1e3:.3f} ms; ours {ours:.1f} tokens/s, {ours / theirs:.2f} times")


if __name__ == "__main__":
    main()
