#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes recorded_adapters.h: adapters as PEFT saves them for the models of record.py, and the logits with them.

As in record.py, the values of A and B are a formula of the tensor's name and the element's index.

    python3 record_adapters.py >recorded_adapters.h
"""
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import peft
import torch
import transformers
from peft import LoraConfig, get_peft_model
from safetensors import safe_open
from transformers import AutoConfig, AutoModelForCausalLM

import record

ADAPTERS = {
    "llama": dict(r=4, lora_alpha=16, target_modules=["q_proj", "v_proj"]),
    "llama_bias": dict(r=3, lora_alpha=6, target_modules="all-linear", use_rslora=True),
    "llama_llama3": dict(r=2, lora_alpha=5, target_modules=r".*\.1\.self_attn\.(k|o)_proj"),
    "qwen2": dict(r=4, lora_alpha=8, target_modules=["q_proj", "k_proj", "down_proj"], rank_pattern={"layers.1.mlp.down_proj": 2, "k_proj": 3},
                  alpha_pattern={"k_proj": 7}),
    "qwen3": dict(r=2, lora_alpha=3, target_modules=["gate_proj", "up_proj"], layers_to_transform=[0]),
    "phi3": dict(r=3, lora_alpha=4, target_modules=["qkv_proj", "gate_up_proj", "o_proj"]),
    "gemma3": dict(r=2, lora_alpha=2, target_modules=["q_proj", "o_proj", "up_proj"]),
    "gpt2": dict(r=3, lora_alpha=6, target_modules=["c_attn", "mlp.c_proj"], fan_in_fan_out=True),
}


def main():
    torch.manual_seed(0)
    ids = [(7 * i * i + 3 * i + 5) % record.VOCAB for i in range(record.TOKENS)]
    print("// SPDX-License-Identifier: Apache-2.0")
    print("// Written by record_adapters.py: adapters that PEFT saved for the models of recorded.h, and the logits with them.")
    print(f"// peft {peft.__version__}, transformers {transformers.__version__}, PyTorch {torch.__version__.split('+')[0]}")
    print("// clang-format off")
    print("static const struct recorded_adapter {\n\tconst char *model, *config;\n\tconst char *tensors; // \"name:dims ..\""
          "\n\tfloat logits[RECORDED_SHOWN * RECORDED_VOCAB];\n} recorded_adapters[] = {")
    for name, options in ADAPTERS.items():
        config = record.MODELS[name]
        made = AutoConfig.for_model(config["model_type"], **{k: v for k, v in config.items() if k != "model_type"})
        model = AutoModelForCausalLM.from_config(made, attn_implementation="eager").eval().float()
        record.weights(model)
        adapted = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.1, **options)).eval()
        state = {}
        for key, tensor in adapted.state_dict().items():
            if ".lora_" in key:
                v = 0.4 * record.values(key.replace(".default", ""), tuple(tensor.shape))
                state[key] = torch.tensor(v, dtype=torch.float32)
        adapted.load_state_dict(state, strict=False)
        with torch.no_grad():
            logits = adapted(torch.tensor([ids])).logits[0].double().numpy()
        with tempfile.TemporaryDirectory() as folder:
            adapted.save_pretrained(folder)
            saved = json.loads((Path(folder) / "adapter_config.json").read_text())
            with safe_open(Path(folder) / "adapter_model.safetensors", "np") as f:
                tensors = " ".join(f"{k}:{','.join(map(str, f.get_slice(k).get_shape()))}" for k in f.keys())
        saved["target_modules"] = saved["target_modules"] if isinstance(saved["target_modules"], str) else sorted(saved["target_modules"])
        print(f"{{\n\"{name}\",\n{json.dumps(json.dumps(saved))},\n\"{tensors}\",\n{{")
        shown = logits[list(record.SHOWN)].reshape(-1)
        for i in range(0, len(shown), 12):
            print(" ".join(f"{v:.6g}," for v in shown[i:i + 12]))
        print("} },")
        print(f"{name}: {np.abs(logits).max():.3g}", file=sys.stderr)
    print("};")


if __name__ == "__main__":
    main()
