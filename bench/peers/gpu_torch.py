#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch on a GPU, beside yoke in bench/gpu.sh.

    gpu_torch.py train layers=12 heads=12 embed=768 context=1024 batch=8 [vocab=50257] [precision=bf16-mixed] [mode=compile]
    gpu_torch.py attention

train: a GPT on random tokens, since only speed is compared, with the fastest of everything that torch has: its own
attention, AdamW as one kernel, autocast for bf16-mixed, mode=compile for torch.compile.  Prints "figure tokens/s N", the
median over steps.

attention: scaled_dot_product_attention, causal, bf16, of the shapes of `yoke bench attention`, forward and with the
gradients of all three operands.  Prints "figure CASE N", N in TFLOP/s, counted as there.
"""
import sys
import time

import torch
import torch.nn.functional as F


class Block(torch.nn.Module):
    def __init__(self, embed, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(embed), torch.nn.LayerNorm(embed)
        self.qkv, self.proj = torch.nn.Linear(embed, 3 * embed), torch.nn.Linear(embed, embed)
        self.up, self.down = torch.nn.Linear(embed, 4 * embed), torch.nn.Linear(4 * embed, embed)

    def forward(self, x):
        b, t, e = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, e // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, e))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(torch.nn.Module):
    def __init__(self, o):
        super().__init__()
        self.tokens, self.places = torch.nn.Embedding(o["vocab"], o["embed"]), torch.nn.Embedding(o["context"], o["embed"])
        self.blocks = torch.nn.ModuleList(Block(o["embed"], o["heads"]) for _ in range(o["layers"]))
        self.norm = torch.nn.LayerNorm(o["embed"])

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy((self.norm(x) @ self.tokens.weight.T).float().flatten(0, 1), targets.flatten())


def train(words):
    precision, mode = words.pop("precision", "fp32"), words.pop("mode", "eager")
    o = {"vocab": 256, **{k: int(v) for k, v in words.items()}}
    torch.manual_seed(1)
    model = GPT(o).cuda()
    run = torch.compile(model) if mode == "compile" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids = torch.randint(o["vocab"], (o["batch"], o["context"] + 1), device="cuda")
    times = []
    for step in range(40):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16-mixed"):
            loss = run(ids[:, :-1], ids[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        if step >= 10:
            times.append(time.perf_counter() - begin)
    print("torch", torch.__version__, torch.cuda.get_device_name(), "loss", float(loss))
    print("figure tokens/s %.0f" % (o["batch"] * o["context"] / sorted(times)[len(times) // 2]))


def seconds(run):
    """Median over 30 runs after 5 of warm-up, by the device's own clock."""
    times = []
    for i in range(35):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        if i >= 5:
            times.append(begin.elapsed_time(end) * 1e-3)
    return sorted(times)[len(times) // 2]


def attention(words):
    for b, t, h, d in ((8, 1024, 12, 64), (4, 4096, 16, 128)):
        q, k, v, g = (torch.randn(b, h, t, d, device="cuda", dtype=torch.bfloat16) for _ in range(4))
        flops = 2.0 * b * h * t * t * d
        with torch.no_grad():
            took = seconds(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))
        print("figure B%dT%dH%dD%dbf16 %.4g" % (b, t, h, d, flops / took * 1e-12))
        for x in (q, k, v):
            x.requires_grad_()
        took = seconds(lambda: torch.autograd.grad(F.scaled_dot_product_attention(q, k, v, is_causal=True), (q, k, v), g))
        print("figure B%dT%dH%dD%dbf16+grad %.4g" % (b, t, h, d, 3.5 * flops / took * 1e-12))


def main():
    {"train": train, "attention": attention}[sys.argv[1]](dict(a.split("=") for a in sys.argv[2:]))


if __name__ == "__main__":
    main()
