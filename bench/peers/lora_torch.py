#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""LoRA fine-tuning by PyTorch with transformers and PEFT beside `yoke train init= lora=`, on the same model and text.

    lora_torch.py YOKE MODEL TEXT [steps=6] [context=256] [batch=8] [rank=8] [rounds=3] [threads=N] [dtype=f32] [device=cpu]

MODEL is a folder that transformers opens; dtype is f32, or bf16: PyTorch holds all weights in bf16, and yoke trains with
precision=bf16-mixed.  device is a device of both, as cuda:0.  Adapters are on q and v, the optimizer is AdamW, and the text is its first 400,000 characters.  Each
program runs in a process of its own, in turn.  A step's first token counts to the end of its update; the first step is warm-up.
Prints, for each program, the median over rounds of the median step in tokens per second, the range of these medians, and the
largest peak of memory: resident on the CPU, allocated elsewhere; then the ratios, and the mean loss of the last step, which differs by the choice of windows.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

CHARACTERS = 400000


def by_torch(model, text, keys):
    """Steps in this process: a line of JSON."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(keys["threads"])
    torch.manual_seed(1)
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[keys["dtype"]]
    device = torch.device(keys["device"])
    net = AutoModelForCausalLM.from_pretrained(model, dtype=dtype).to(device)
    net = get_peft_model(net, LoraConfig(r=keys["rank"], lora_alpha=16, target_modules=["q_proj", "v_proj"]))
    ids = torch.tensor(AutoTokenizer.from_pretrained(model)(open(text, encoding="utf-8").read())["input_ids"]).to(device)
    optim = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=1e-4)
    seconds, loss = [], None
    for _ in range(keys["steps"]):
        at = torch.randint(0, len(ids) - keys["context"], (keys["batch"],))
        x = torch.stack([ids[i:i + keys["context"]] for i in at])
        began = time.perf_counter()
        loss = net(input_ids=x, labels=x).loss
        loss.backward()
        optim.step()
        optim.zero_grad()
        if device.type == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    tokens = keys["batch"] * keys["context"]
    print(json.dumps({"rate": tokens / statistics.median(seconds[1:]), "loss": loss.item(), "version": torch.__version__,
                      "peak": torch.cuda.max_memory_allocated() if device.type == "cuda" else None}))


def child(command, environment=None):
    """Runs a program: its output, and its peak of resident memory in bytes."""
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})})
    out = p.stdout.read()  # stderr is short enough for its pipe
    _, status, usage = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode:
        sys.exit("%s ended with %d:\n%s" % (" ".join(command), p.returncode, p.stderr.read()))
    return out, usage.ru_maxrss * 1024


def run_torch(model, text, keys):
    out, peak = child([sys.executable, os.path.abspath(__file__), "--torch", model, text] + ["%s=%s" % k for k in keys.items()],
                      {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1"})
    result = json.loads(out.strip().split("\n")[-1])
    return {**result, "peak": result["peak"] or peak}


def run_yoke(yoke, model, text, keys, folder):
    precision = "fp32" if keys["dtype"] == "f32" else "bf16-mixed"
    _, peak = child([yoke, "train", "init=" + model, "data=" + text, "out=" + folder, "lora=%d" % keys["rank"], "lora_alpha=16",
                     "steps=%d" % keys["steps"], "context=%d" % keys["context"], "batch=%d" % keys["batch"], "lr=1e-4",
                     "threads=%d" % keys["threads"], "backend=" + keys["device"].split(":")[0], "precision=" + precision, "valid=0", "log_every=1", "report=0", "progress=0"])
    with open(folder + "/metrics.jsonl", encoding="utf-8") as f:
        steps = [x for x in map(json.loads, f) if "tokens_per_s" in x]
    if keys["device"] != "cpu":
        peak = max(x["peak_bytes"] for x in steps)
    return {"rate": statistics.median(x["tokens_per_s"] for x in steps[1:]), "loss": steps[-1]["loss"], "peak": peak}


def main():
    keys = {"steps": 6, "context": 256, "batch": 8, "rank": 8, "rounds": 3, "threads": os.cpu_count(), "dtype": "f32", "device": "cpu"}
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    yoke, model, text = sys.argv[1:4]
    for word in sys.argv[4:]:
        key, value = word.split("=")
        keys[key] = value if key in ("dtype", "device") else int(value)
    if keys["steps"] < 2:
        sys.exit("steps=%d: the first step is warm-up; give 2 or more" % keys["steps"])
    if yoke == "--torch":
        return by_torch(model, text, keys)
    all_ = {"torch": [], "yoke": []}
    with tempfile.TemporaryDirectory() as folder:
        part = folder + "/text.txt"
        with open(text, encoding="utf-8") as f, open(part, "w", encoding="utf-8") as to:
            to.write(f.read(CHARACTERS))
        for i in range(keys["rounds"]):
            all_["torch"].append(run_torch(model, part, keys))
            all_["yoke"].append(run_yoke(os.path.abspath(yoke), model, part, keys, "%s/run%d" % (folder, i)))
    print("%s, %s, rank %d, context %d, batch %d, %d steps, %d rounds, %s, %d threads, torch %s"
          % (os.path.basename(os.path.normpath(model)), keys["dtype"], keys["rank"], keys["context"], keys["batch"], keys["steps"],
             keys["rounds"], keys["device"], keys["threads"], all_["torch"][0]["version"]))
    rate, peak = {}, {}
    for name, runs in all_.items():
        rates = [r["rate"] for r in runs]
        rate[name], peak[name] = statistics.median(rates), max(r["peak"] for r in runs)
        print("%-6s %8.1f tokens/s (%.1f to %.1f)  peak %6.0f MiB  loss %.3f"
              % (name, rate[name], min(rates), max(rates), peak[name] / 2**20, runs[-1]["loss"]))
    print("yoke / torch: speed %.2f, peak %.2f" % (rate["yoke"] / rate["torch"], peak["yoke"] / peak["torch"]))


main()
