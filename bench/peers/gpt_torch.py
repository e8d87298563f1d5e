#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch as a peer of `yoke train`: the same model, weights, windows, optimizer and schedule.

    yoke train data=TEXT steps=0 out=START layers=2 ...
    gpt_torch.py START TEXT steps=500 lr=1e-3 warmup=100 [batch=32] [threads=2] [ranks=2] [micro_batches=2]
                 [bf16=1] [sdpa=1] [fused=1] [compile=1]

bf16=1 is autocast to bfloat16, sdpa=1 scaled_dot_product_attention instead of products and softmax, fused=1 the fused AdamW,
compile=1 torch.compile.

With ranks=N as many processes, each with its share of a step's parts of `batch` windows, by DistributedDataParallel
over gloo; threads are a process's.  One process takes its parts one behind another.

Reads the weights and shape of a checkpoint that was saved before the first step, trains on the very
windows yoke would, prints tokens/s (median over steps after warm=10 of them), the growth of the resident
set over start-up at its highest, and the validation loss over all validation windows.
"""
import contextlib
import json
import math
import os
import resource
import socket
import struct
import subprocess
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

# the value that yoke train uses for auto with adamw
AUTO = {"lr": 1e-3, "warmup": 100, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.99, "clip": 1}
MASK64 = (1 << 64) - 1


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK64
    return z ^ z >> 31


def permuted(i, n, key):
    """Element i of yoke's permutation of 0 .. n-1 (src/lib/text/data.c)."""
    half = 1
    while half < 32 and 1 << 2 * half < n:
        half += 1
    mask = (1 << half) - 1
    while True:
        left, right = i >> half, i & mask
        for r in range(6):
            f = mix((key + r * 0x9E3779B97F4A7C15 + right) & MASK64) & mask
            left, right = right, left ^ f
        i = left << half | right
        if i < n:
            return i


def safetensors(path):
    with open(path, "rb") as f:
        (n,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(n))
        data = f.read()
    header.pop("__metadata__", None)
    return {k: torch.from_numpy(np.frombuffer(data[v["data_offsets"][0]:v["data_offsets"][1]],
                                              dtype=np.float32).reshape(v["shape"]).copy())
            for k, v in header.items()}


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def forward(p, ids, layers, heads, mask, sdpa):
    b, t = ids.shape
    x = F.embedding(ids, p["wte.weight"]) + p["wpe.weight"][:t]
    e = x.shape[2]
    for i in range(layers):
        w = {k.split(".", 1)[1]: v for k, v in p.items() if k.startswith(f"layer{i}.")}
        h = F.layer_norm(x, (e,), w["norm1.weight"], w["norm1.bias"])
        q, k, v = F.linear(h, w["attn.qkv.weight"], w["attn.qkv.bias"]).split(e, 2)
        q, k, v = (z.view(b, t, heads, e // heads).transpose(1, 2) for z in (q, k, v))
        if sdpa:
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            a = (q @ k.transpose(2, 3)) * (1 / math.sqrt(e // heads)) + mask[:t, :t]
            a = F.softmax(a, 3) @ v
        a = a.transpose(1, 2).reshape(b, t, e)
        x = x + F.linear(a, w["attn.proj.weight"], w["attn.proj.bias"])
        h = F.layer_norm(x, (e,), w["norm2.weight"], w["norm2.bias"])
        h = F.gelu(F.linear(h, w["mlp.up.weight"], w["mlp.up.bias"]), approximate="tanh")
        x = x + F.linear(h, w["mlp.down.weight"], w["mlp.down.bias"])
    x = F.layer_norm(x, (e,), p["norm.weight"], p["norm.bias"])
    return F.linear(x, p["wte.weight"])


def loss_of(p, ids, layers, heads, mask, sdpa=False):
    logits = forward(p, ids[:, :-1], layers, heads, mask, sdpa)
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1))


class Net(torch.nn.Module):
    def __init__(self, p, *shape):
        super().__init__()
        self.names, self.shape = list(p), shape
        self.list = torch.nn.ParameterList(p.values())  # they are Parameters, which must remain those of p

    def forward(self, ids):
        return loss_of(dict(zip(self.names, self.list)), ids, *self.shape)


def start():
    """Processes of this program, each a rank."""
    n = int(dict(a.split("=", 1) for a in sys.argv[3:]).get("ranks", 1))
    if n == 1 or "RANK" in os.environ:
        return main()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    others = [subprocess.Popen([sys.executable, *sys.argv], env={
        **os.environ, "RANK": str(r), "WORLD_SIZE": str(n), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
        for r in range(n)]
    sys.exit(max(x.wait() for x in others))


def main():
    folder, text = sys.argv[1:3]
    o = dict(a.split("=", 1) for a in sys.argv[3:])
    torch.set_num_threads(int(o.get("threads", 2)))
    manifest = json.load(open(f"{folder}/manifest.json"))
    config = manifest["config"]
    get = lambda key: float(o.get(key, AUTO[key] if config[key] == "auto" else config[key]))
    flag = lambda key: o.get(key, "0") == "1"
    layers, heads, context, batch = (int(get(k)) for k in ("layers", "heads", "context", "batch"))
    steps, warmup, seed = int(get("steps")), int(get("warmup")), int(get("seed"))
    files = [f["name"] for f in manifest["files"]] if isinstance(manifest["files"], list) \
        else [f if isinstance(f, str) else f["name"] for f in manifest["files"].values()]
    weights = next(f for f in files if f.startswith("model"))
    data = np.frombuffer(open(text, "rb").read(), dtype=np.uint8).astype(np.int64)
    held = int(len(data) * get("valid"))
    valid_start = len(data) - held
    n_train, n_valid = (valid_start - 1) // context, (held - 1) // context
    start = resident()
    ranks, rank = int(o.get("ranks", 1)), int(os.environ.get("RANK", 0))
    mine = int(o.get("micro_batches", ranks)) // ranks  # micro-batches of a step
    p = {k: torch.nn.Parameter(v) for k, v in safetensors(f"{folder}/{weights}").items()}
    decay = [v for v in p.values() if v.dim() == 2]
    plain = [v for v in p.values() if v.dim() != 2]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": get("weight_decay")},
                             {"params": plain, "weight_decay": 0.0}],
                            lr=0.0, betas=(get("beta1"), get("beta2")), eps=1e-8, fused=flag("fused"))
    mask = torch.full((context, context), -math.inf).triu(1)
    net = Net(p, layers, heads, mask, flag("sdpa"))
    if flag("compile"):
        net = torch.compile(net)
    if ranks > 1:
        torch.distributed.init_process_group("gloo")
        net = torch.nn.parallel.DistributedDataParallel(net)
    at, epoch, seconds, peak = 0, 0, [], 0
    for t in range(1, steps + 1):
        rows = []
        for _ in range(batch * mine * ranks):
            if at == n_train:
                at, epoch = 0, epoch + 1
            w = permuted(at, n_train, mix(seed ^ mix(epoch + 1)))
            at += 1
            rows.append(data[w * context:w * context + context + 1])
        ids = torch.from_numpy(np.stack(rows)).view(ranks, mine, batch, context + 1)[rank]
        lr, least = get("lr"), 0.1 * get("lr")
        if t < warmup:
            lr *= t / warmup
        elif config["schedule"] == "cosine" and t > warmup:
            lr = least + 0.5 * (lr - least) * (1 + math.cos(math.pi * (t - warmup) / (steps - warmup)))
        for group in opt.param_groups:
            group["lr"] = lr
        begin = time.perf_counter()
        opt.zero_grad(set_to_none=True)
        for i in range(mine):
            # gradients are thus summed over processes only after the last micro-batch
            with net.no_sync() if ranks > 1 and i + 1 < mine else contextlib.nullcontext():
                with torch.autocast("cpu", torch.bfloat16, enabled=flag("bf16")):
                    loss = net(ids[i]) / mine
                loss.backward()
        torch.nn.utils.clip_grad_norm_(list(p.values()), get("clip"))
        opt.step()
        value = loss.item() * mine
        seconds.append(time.perf_counter() - begin)
        peak = max(peak, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
        if t % int(o.get("log", 100)) == 0:
            print(f"step {t} loss {value:.4f}", file=sys.stderr)
    total, count = 0.0, 0
    with torch.no_grad():
        if o.get("validate", "1") == "1":
            for first in range(0, n_valid, batch):
                rows = [data[valid_start + i * context:valid_start + i * context + context + 1]
                        for i in range(first, min(first + batch, n_valid))]
                ids = torch.from_numpy(np.stack(rows))
                total += loss_of(p, ids, layers, heads, mask).item() * len(rows)
                count += len(rows)
    if rank:
        return
    timed = sorted(seconds[min(int(o.get("warm", 10)), len(seconds) - 1):])
    print(json.dumps({"tokens_per_s": batch * mine * ranks * context / timed[len(timed) // 2],
                      "tokens_per_s_90": batch * mine * ranks * context / timed[len(timed) * 9 // 10],
                      "peak_bytes": peak - start,
                      "val_loss": total / count if count else None, "windows": [n_train, n_valid]}))


if __name__ == "__main__":
    start()
