#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where the time of a training step goes, by kind of kernel, with the rate of products as a share of the processor's peak.

    bench/step_table.py YOKE PEAK data=TEXT layers=12 heads=12 embed=768 context=256 batch=4 [key=value ..]

Trains 8 steps with profile=1 in a temporary directory and prints a table in Markdown: milliseconds per step, percent of the
step, launches, and GFLOP/s where the flops are known.  The first two steps are left out: they plan, compile and touch
memory.  PEAK is the multiply-add peak in GFLOP/s that bench/contract prints; products count 2 M N K flops.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile

STEPS, WARM_UP = 8, 2


def kind_of(nodes, name):
    """The row of the table for a kernel that computes these nodes."""
    ops = nodes.split(": ", 1)[-1].replace(";", "").split()
    if "matmul" in ops:
        if "sigmoid" in ops:
            return "products with the gradient of GELU" if ops[0] != "matmul" else "products with bias and GELU"
        return "products with bias or residual" if "add" in ops else "products"
    if name in ("list_map", "list_reduce"):
        return "optimizer and norm of the gradient"
    return {"layer_norm_backward": "layer norm, gradient", "layer_norm": "layer norm", "attention_backward": "attention, gradient",
            "sum": "gradients of biases"}.get(name, name if name in ("attention", "softmax_xent") else "other")


def main():
    yoke, peak, keys = os.path.abspath(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([yoke, "train", *keys, "out=" + folder + "/run", "steps=%d" % STEPS, "eval_every=0", "profile=1"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(folder + "/run/trace.json") as f:
            events = [e for e in json.load(f)["traceEvents"] if e["ph"] == "X"]
    kernels = sorted((e for e in events if e.get("args", {}).get("nodes", "").startswith("step/")), key=lambda e: e["ts"])
    # a step ends with the kernels of the optimizer
    ends = [a["ts"] + a["dur"] for a, b in zip(kernels, kernels[1:] + [None])
            if a["name"] == "list_map" and (b is None or b["name"] != "list_map")]
    begin, end, steps = ends[WARM_UP - 1], ends[-1], len(ends) - WARM_UP
    us, flops, launches = collections.Counter(), collections.Counter(), collections.Counter()
    for e in kernels:
        if begin <= e["ts"] < end:
            kind = kind_of(e["args"]["nodes"], e["name"])
            us[kind] += e["dur"]
            launches[kind] += 1
            if kind.startswith("products"):
                flops[kind] += e["args"].get("flops", 0)
    wall = end - begin
    us["between kernels"] = wall - sum(us.values())
    print("| part | ms per step | % | launches | GFLOP/s | of the peak |\n|---|---|---|---|---|---|")
    for kind, t in us.most_common():
        rate = flops[kind] / t / 1e3
        print("| %s | %.1f | %.1f | %d | %s | %s |" % (kind, t / steps / 1e3, 100 * t / wall, launches[kind] / steps,
                                                     "%.0f" % rate if rate else "", "%.2f" % (rate / peak) if rate else ""))
    print("| step | %.1f | 100 | %d | %.0f | %.2f |" % (wall / steps / 1e3, sum(launches.values()) / steps,
                                                    sum(flops.values()) / wall / 1e3, sum(flops.values()) / wall / 1e3 / peak))


if __name__ == "__main__":
    main()
