#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's optimizers beside yoke's: bench/optim and the best form of each, in turn.

    optim_torch.py BUILD/bench/optim [millions=32] [rounds=8] [turns=3] [compile=1] [row ..]

Each turn runs bench/optim for a row and then every form of the optimizer that torch has: one tensor at a
time, foreach, fused, and compiled, over as many parameters in as many tensors.  Prints the fastest step of
both, which other work on the machine changes least, torch's best form, and how many times as long that takes.
"""
import re
import subprocess
import sys
import time

import torch

TENSORS = 200
ROWS = {  # of bench/optim: torch's class, its options
    "sgd": (torch.optim.SGD, {}),
    "sgd momentum": (torch.optim.SGD, {"momentum": 0.9}),
    "sgd nesterov": (torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
    "adam": (torch.optim.Adam, {}),
    "adam amsgrad": (torch.optim.Adam, {"amsgrad": True}),
    "adamw": (torch.optim.AdamW, {}),
    "adamw amsgrad": (torch.optim.AdamW, {"amsgrad": True}),
    "rmsprop": (torch.optim.RMSprop, {}),
    "rmsprop momentum": (torch.optim.RMSprop, {"momentum": 0.9}),
    "rmsprop centered": (torch.optim.RMSprop, {"centered": True}),
    "rmsprop all": (torch.optim.RMSprop, {"centered": True, "momentum": 0.9}),
    "adagrad": (torch.optim.Adagrad, {}),
    "adadelta": (torch.optim.Adadelta, {}),
    "nadam": (torch.optim.NAdam, {}),
    "radam": (torch.optim.RAdam, {}),
    "adamax": (torch.optim.Adamax, {}),
    "rprop": (torch.optim.Rprop, {}),
    "asgd": (torch.optim.ASGD, {}),
}
FORMS = {"single": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}


class Form:
    """An optimizer in one form, ready to step."""

    def __init__(self, kind, options, form, compiled, count):
        self.p = [torch.rand(count // TENSORS).sub_(0.5).requires_grad_() for _ in range(TENSORS)]
        for p in self.p:
            p.grad = torch.rand_like(p).sub_(0.5)
        self.optim = kind(self.p, lr=1e-3, **options, **form)
        self.step = torch.compile(self.optim.step) if compiled else self.optim.step
        for _ in range(3):
            self.step()

    def milliseconds(self, rounds):
        took = []
        for _ in range(rounds):
            begin = time.perf_counter()
            self.step()
            took.append((time.perf_counter() - begin) * 1e3)
        return took


def ours(program, millions, row, rounds):
    out = subprocess.run([program, str(millions), row, str(rounds)], check=True, text=True, capture_output=True)
    for line in out.stdout.splitlines():
        if line[:21].strip() == row:
            return float(re.search(r"fastest +([0-9.]+)", line).group(1))
    raise ValueError(f"bench/optim has no row {row!r}")


def measure(program, row, o):
    kind, options = ROWS[row]
    count = int(o["millions"] * 1e6)
    mine, theirs = [], {}
    for _ in range(int(o["turns"])):
        mine.append(ours(program, o["millions"], row, int(o["rounds"])))
        for name in [*FORMS, "compiled"]:
            if name == "compiled" and not o["compile"]:
                continue
            try:  # one at a time, for memory's sake
                form = Form(kind, options, FORMS.get(name, {"foreach": True}), name == "compiled", count)
                theirs.setdefault(name, []).extend(form.milliseconds(int(o["rounds"])))
            except (RuntimeError, TypeError) as e:
                theirs.setdefault(name, [])
                if o["verbose"]:
                    print(f"# {row} {name}: {e}", file=sys.stderr)
    theirs = {name: min(ms) for name, ms in theirs.items() if ms}
    best = min(theirs, key=theirs.get)
    print(f"{row:18} ours {min(mine):7.1f} ms   torch {theirs[best]:7.1f} ms, {best}: "
          f"{theirs[best] / min(mine):5.2f} times   ("
          + ", ".join(f"{name} {ms:.1f}" for name, ms in theirs.items()) + ")", flush=True)


def main():
    o = {"millions": 32.0, "rounds": 8.0, "turns": 3.0, "compile": 1.0, "threads": 2.0, "verbose": 0.0}
    rows = []
    for a in sys.argv[2:]:
        key, sign, value = a.partition("=")
        if sign:
            o[key] = float(value)
        else:
            rows.append(a)
    torch.set_num_threads(int(o["threads"]))
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {o['millions']:g} million parameters")
    for row in rows or ROWS:
        measure(sys.argv[1], row, o)


if __name__ == "__main__":
    main()
