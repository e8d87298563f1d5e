#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes recorded.h: small models of each family and the logits that `transformers` computes for them.

The weights are a formula of the tensor's name and the element's index, which tests/models.c repeats, so that no
weights have to be stored.  Run it again when a family is added:

    python3 record.py >recorded.h
"""
import json
import sys

import numpy as np
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

VOCAB, TOKENS = 61, 14
SHOWN = (0, 6, 13)  # positions whose logits are recorded

LLAMA = {
    "vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
    "tie_word_embeddings": False, "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}
GEMMA = LLAMA | {
    "num_hidden_layers": 4, "head_dim": 16, "query_pre_attn_scalar": 24, "sliding_window": 5, "tie_word_embeddings": True,
    "hidden_activation": "gelu_pytorch_tanh", "hidden_act": "gelu_pytorch_tanh",
}
NEWER = {k: v for k, v in LLAMA.items() if k != "rope_theta"} | {"dtype": "bfloat16"}
MINIMAL = {"vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
MODELS = {
    "llama": LLAMA | {"model_type": "llama"},
    "llama_bias": LLAMA | {"model_type": "llama", "attention_bias": True, "mlp_bias": True, "num_key_value_heads": 4,
                           "tie_word_embeddings": True},
    "llama_linear": LLAMA | {"model_type": "llama", "rope_scaling": {"rope_type": "linear", "factor": 4.0}},
    "llama_llama3": LLAMA | {"model_type": "llama", "max_position_embeddings": 4096, "rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64}},
    "llama_yarn": LLAMA | {"model_type": "llama", "max_position_embeddings": 256, "rope_scaling": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 32.0, "beta_slow": 1.0}},
    "mistral": LLAMA | {"model_type": "mistral", "sliding_window": 5, "head_dim": 16},
    "qwen2": LLAMA | {"model_type": "qwen2", "use_sliding_window": False},
    "qwen3": LLAMA | {"model_type": "qwen3", "head_dim": 16, "use_sliding_window": False},
    "phi3": LLAMA | {"model_type": "phi3", "sliding_window": None, "resid_pdrop": 0.0, "embd_pdrop": 0.0},
    "gemma2": GEMMA | {"model_type": "gemma2", "attn_logit_softcapping": 3.0, "final_logit_softcapping": 2.0},
    "gemma3": GEMMA | {"model_type": "gemma3_text", "rope_local_base_freq": 500.0, "sliding_window_pattern": 3,
                       "layer_types": ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"]},
    # windows of some layers
    "qwen2_window": LLAMA | {"model_type": "qwen2", "num_hidden_layers": 4, "use_sliding_window": True, "sliding_window": 5,
                             "max_window_layers": 2},
    "qwen3_window": LLAMA | {"model_type": "qwen3", "num_hidden_layers": 4, "head_dim": 16, "use_sliding_window": True,
                             "sliding_window": 5, "max_window_layers": 28, "layer_types": [
                                 "sliding_attention", "full_attention", "full_attention", "sliding_attention"]},
    "gemma2_window": GEMMA | {"model_type": "gemma2", "attn_logit_softcapping": None, "layer_types": [
        "full_attention", "sliding_attention", "sliding_attention", "full_attention"]},
    "mistral_window": LLAMA | {"model_type": "mistral", "sliding_window": 5, "layer_types": ["full_attention", "sliding_attention"]},
    # as newer versions of transformers write them
    "llama_newer": NEWER | {"model_type": "llama", "rope_parameters": {
        "rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}},
    "qwen3_newer": NEWER | {"model_type": "qwen3", "head_dim": 16, "rope_parameters": {
        "rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 16, "mscale": 1.0,
        "mscale_all_dim": 0.5}},
    "phi3_newer": NEWER | {"model_type": "phi3", "original_max_position_embeddings": 8, "rope_parameters": {
        "rope_type": "longrope", "rope_theta": 500.0, "partial_rotary_factor": 1.0, "original_max_position_embeddings": 32,
        "short_factor": [1.0, 1.5, 2.0, 2.5], "long_factor": [1.5, 2.0, 4.0, 8.0]}},
    "gemma3_newer": GEMMA | {"model_type": "gemma3_text", "dtype": "float32", "layer_types": [
        "sliding_attention", "full_attention", "full_attention", "sliding_attention"], "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 500.0},
            "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 2000.0}}},
    # what else a configuration can say is absent
    "llama_minimal": MINIMAL | {"model_type": "llama"},
    "mistral_minimal": MINIMAL | {"model_type": "mistral", "num_attention_heads": 8},
    "qwen2_minimal": MINIMAL | {"model_type": "qwen2", "hidden_size": 128, "num_attention_heads": 32},
    "qwen3_minimal": MINIMAL | {"model_type": "qwen3", "num_attention_heads": 32},
    "phi3_minimal": MINIMAL | {"model_type": "phi3", "pad_token_id": 0},
    "gemma2_minimal": MINIMAL | {"model_type": "gemma2"},
    "gemma3_minimal": MINIMAL | {"model_type": "gemma3_text", "num_hidden_layers": 6},
    "gpt2_minimal": {"model_type": "gpt2", "vocab_size": VOCAB, "n_embd": 32, "n_layer": 2, "n_head": 4},
    "gpt2": {"model_type": "gpt2", "vocab_size": VOCAB, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64,
             "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "bos_token_id": 1, "eos_token_id": 2},
}


def values(name, shape):
    """Uniform in -1 .. 1, by the name's FNV-1a hash and the element's index."""
    seed = 2166136261
    for c in name.encode():
        seed = (seed ^ c) * 16777619 & 0xffffffff
    u = np.arange(int(np.prod(shape)), dtype=np.uint64)
    u = (u * 2654435761 + seed) & 0xffffffff
    u ^= u >> 15
    u = u * 2246822519 & 0xffffffff
    u ^= u >> 13
    return ((u >> 8).astype(np.float64) / 2**23 - 1).reshape(shape)


def weights(model, embedding):
    """Norms are 1 or, where the file stores the weight less 1, 0, and something; all else is scaled by its inputs."""
    state = model.state_dict()
    offset = model.config.model_type.startswith("gemma")
    filled = {}
    for name, tensor in state.items():
        if model.config.tie_word_embeddings and name == "lm_head.weight":
            continue  # is the embedding, and is not stored
        v = values(name, tuple(tensor.shape))
        if tensor.ndim == 1:
            v = 0.2 * v + (0 if offset or name.endswith("bias") else 1)
        else:
            v = v * (embedding if "embed" in name or "wte" in name or "wpe" in name else 0.4)
        filled[name] = torch.tensor(v, dtype=torch.float32)
    model.load_state_dict(filled, strict=False)
    model.tie_weights()
    return filled


def main():
    torch.manual_seed(0)
    print("// SPDX-License-Identifier: Apache-2.0")
    print("// Written by record.py: small models of each family, and the logits that transformers computes for them.")
    print(f"// transformers {transformers.__version__}, PyTorch {torch.__version__.split('+')[0]}")
    print("// clang-format off")
    print(f"enum {{ RECORDED_VOCAB = {VOCAB}, RECORDED_TOKENS = {TOKENS}, RECORDED_SHOWN = {len(SHOWN)} }};")
    print(f"static const int recorded_shown[] = {{ {', '.join(map(str, SHOWN))} }};")
    ids = [(7 * i * i + 3 * i + 5) % VOCAB for i in range(TOKENS)]
    print(f"static const int32_t recorded_ids[] = {{ {', '.join(map(str, ids))} }};")
    print("static const struct recorded {\n\tconst char *name, *config;\n\tconst char *tensors; // \"name:dims ..\""
          "\n\tdouble embedding; // factor of its elements\n\tfloat logits[RECORDED_SHOWN * RECORDED_VOCAB];\n} recorded[] = {")
    for name, config in MODELS.items():
        kind = config["model_type"]
        made = AutoConfig.for_model(kind, **{k: v for k, v in config.items() if k != "model_type"})
        model = AutoModelForCausalLM.from_config(made, attn_implementation="eager").eval().float()
        embedding = 0.01 if name.endswith("_minimal") else 1.0  # so small that the epsilon of the first norm matters
        filled = weights(model, embedding)
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0].double().numpy()
        tensors = " ".join(n + ":" + ",".join(map(str, filled[n].shape)) for n in filled)
        quoted = json.dumps(json.dumps(config))
        print(f"{{\n\"{name}\",\n{quoted},\n\"{tensors}\",\n{embedding},\n{{")
        shown = logits[list(SHOWN)].reshape(-1)
        for i in range(0, len(shown), 12):
            print(" ".join(f"{v:.6g}," for v in shown[i:i + 12]))
        print("} },")
        print(f"{name}: {np.abs(logits).max():.3g}", file=sys.stderr)
    print("};")


if __name__ == "__main__":
    main()
