# SPDX-License-Identifier: Apache-2.0
"""Pretrained models: logits, generation, tokenizers, quantization."""
import json
import math
import pathlib
import struct

import numpy as np
import pytest

import yoke

VOCAB, WIDTH, HIDDEN, HEADS, LAYERS = 40, 16, 24, 2, 2
models = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "models"


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, x in tensors.items():
        header[name] = {"dtype": "F32", "shape": x.shape, "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(x.tobytes() for x in tensors.values()))


def write_model(folder, end=1, width=WIDTH, hidden=HIDDEN, size=1.0):
    """A llama with random weights, whose tokens are w0, w1, ..; `end` ends a text."""
    r = np.random.default_rng(5)
    sizes = {"model.embed_tokens.weight": (VOCAB, width), "model.norm.weight": (width,), "lm_head.weight": (VOCAB, width)}
    for i in range(LAYERS):
        sizes |= {f"model.layers.{i}.{name}.weight": shape for name, shape in {
            "self_attn.q_proj": (width, width), "self_attn.k_proj": (width, width), "self_attn.v_proj": (width, width),
            "self_attn.o_proj": (width, width), "mlp.gate_proj": (hidden, width), "mlp.up_proj": (hidden, width),
            "mlp.down_proj": (width, hidden), "input_layernorm": (width,), "post_attention_layernorm": (width,)}.items()}
    folder.mkdir(exist_ok=True)
    write_safetensors(folder / "model.safetensors", {n: (size * r.normal(size=s)).astype("f4") for n, s in sizes.items()})
    (folder / "config.json").write_text(json.dumps({
        "model_type": "llama", "vocab_size": VOCAB, "hidden_size": width, "intermediate_size": hidden, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False}))
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "WordLevel", "unk_token": "w0", "vocab": {f"w{i}": i for i in range(VOCAB)}}}))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [end]}))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("models") / "llama")


def test_a_model_and_its_tokenizer(folder):
    m = yoke.load(folder)
    assert (m.config.family, m.config.vocabulary, m.config.layers, m.config.width) == ("llama", VOCAB, LAYERS, WIDTH)
    assert sum(x.size for x in m.parameters().values()) == m.config.parameters
    t = m.tokenizer
    assert t.encode("w3 w17  w5") == [3, 17, 5] and t.decode([3, 17]) == "w3 w17"
    assert (len(t), t.eos_ids, t.bos_id, t.pad_id, t.chat_template) == (VOCAB, [1], None, None, None)
    assert t.token(7) == "w7" and t.id("w7") == 7 and t.id("none") is None and t.token(VOCAB) is None
    assert not t.is_special(3)
    del m  # the tokenizer keeps the model
    assert t.encode("w9") == [9]
    with pytest.raises(FileNotFoundError):
        yoke.load(folder / "none")


def test_generation(folder):
    m = yoke.load(folder)
    ids = [3, 17, 5]
    want = list(ids)  # by a pass over all tokens for each
    with yoke.scope("logits"):
        assert m.logits(ids).shape == (3, VOCAB) and m.logits([ids, ids]).shape == (2, 3, VOCAB)
        assert np.allclose(m.logits("w3 w17 w5").numpy(), m.logits([ids]).numpy()[0])
        for _ in range(6):
            want.append(int(m.logits(want).numpy()[-1].argmax()))
    got = m.generate(ids, 6, temperature=0, stop_at_end=False)
    assert got == want[3:]
    assert list(m.generate(ids, 6, temperature=0, stop_at_end=False, stream=True)) == got
    assert list(m.generate(np.array(ids), 6, temperature=0, stop_at_end=False)) == got
    text = m.generate("w3 w17 w5", 6, temperature=0, stop_at_end=False)
    assert text == "".join(f" w{i}" for i in got)
    assert "".join(m.generate("w3 w17 w5", 6, temperature=0, stop_at_end=False, stream=True)) == text
    # several prompts have the tokens they have alone
    both = m.generate([ids, [8]], 6, temperature=0.9, top_k=10, seed=4, repetition_penalty=1.1)
    assert both == [m.generate(ids, 6, temperature=0.9, top_k=10, seed=4, repetition_penalty=1.1),
                    m.generate([8], 6, temperature=0.9, top_k=10, seed=4, repetition_penalty=1.1)]
    assert m.generate(["w8", "w3 w17 w5"], 6, temperature=0, stop_at_end=False)[1] == text
    assert m.generate(ids, 0) == []


def test_a_text_ends_at_its_end_token(folder, tmp_path):
    all_ = yoke.load(folder).generate([3, 17, 5], 6, temperature=0, stop_at_end=False)
    m = yoke.load(write_model(tmp_path / "ends", end=all_[3]))
    assert m.generate([3, 17, 5], 6, temperature=0) == all_[:all_.index(all_[3])]


def test_bad_arguments_of_generation(folder):
    m = yoke.load(folder)
    for prompt, options in [([], {}), ("", {}), ([VOCAB], {}), ([-1], {}), ([[1], []], {}), ([1], {"temperature": -1.0}),
                            ([1], {"temperature": float("nan")}), ([1], {"top_k": -1}), ([[1]] * 65, {}), ([[1], [2]], {"stream": True})]:
        with pytest.raises((ValueError, IndexError)) as e:
            m.generate(prompt, 2, **options)
        assert "\n" not in str(e.value)
    with pytest.raises(ValueError):
        m.logits([[[1]]])
    with pytest.raises(ValueError):
        m.logits([1] * 65)


@pytest.mark.skipif(not models.is_dir(), reason="the tokenizers are not beside the tests")
@pytest.mark.parametrize("name", ["llama2", "llama3", "gpt2"])
def test_text_of_tokens_one_at_a_time(name):
    from yoke._model import _Text

    t = yoke.Tokenizer(models / f"{name}.json")
    for text in ("Hello world, it is 42.", "Grüße aus Köln", "你好, 🌍🌍 !", "  two  blanks\n\tand a tab", "a"):
        ids = t.encode(text, special=False)
        assert t.decode(ids) == t.decode(tuple(np.array(ids)))
        for begin in (0, 1, 2):
            stream = _Text(t, ids[:begin])
            pieces = [stream.add(i) for i in ids[begin:]]
            before = t.decode(ids[:begin], skip_special=True)
            assert before + "".join(pieces) + stream.rest() == t.decode(ids, skip_special=True) or "\ufffd" in before


def test_trained_tokenizer(tmp_path):
    texts = ["It's 123 o'clock, isn't IT?  Two  blanks\n\n", "Grüße aus Köln, 你好 🌍\n" * 20, ""]
    try:
        t = yoke.Tokenizer.train(texts, 400)
    except NotImplementedError:
        pytest.skip("this build has no regular expressions")
    t.save(tmp_path / "tokenizer.json")
    again = yoke.Tokenizer(tmp_path / "tokenizer.json")
    assert len(t) == len(again) and t.token(0) == "<|endoftext|>" and t.eos_ids == [0] and t.is_special(0)
    for text in [*texts, "nothing of it, 🚀\t<|endoftext|>"]:
        assert t.encode(text) == again.encode(text) and t.decode(t.encode(text)) == text
    assert t.encode("a<|endoftext|>", parse=True)[-1] == 0
    assert yoke.Tokenizer.train("ab ab ab", 258).token(257) == "ab"
    for bad in [lambda: yoke.Tokenizer.train(texts, 256), lambda: yoke.Tokenizer.train([1]), lambda: again.save(tmp_path / "no")]:
        with pytest.raises((ValueError, TypeError, IndexError)):
            bad()


def test_trained_tokenizer_as_the_library(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    text = (models.parent.parent / "doc" / "python.md").read_text() if models.is_dir() else "It's 123 o'clock, isn't IT? " * 9
    yoke.Tokenizer.train(text, 1500).save(tmp_path / "tokenizer.json")
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.train_from_iterator([text], tokenizers.trainers.BpeTrainer(
        vocab_size=1500, special_tokens=["<|endoftext|>"], initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    ours = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert ours.get_vocab() == theirs.get_vocab()
    for t in (text, "Grüße, 你好 🚀\t<|endoftext|>"):
        assert ours.encode(t).ids == theirs.encode(t).ids == yoke.Tokenizer(tmp_path / "tokenizer.json").encode(t, parse=True)


def write_bert(folder, prefix=""):
    r = np.random.default_rng(6)
    layer = {"attention.self.query": (WIDTH, WIDTH), "attention.self.key": (WIDTH, WIDTH), "attention.self.value": (WIDTH, WIDTH),
             "attention.output.dense": (WIDTH, WIDTH), "intermediate.dense": (HIDDEN, WIDTH), "output.dense": (WIDTH, HIDDEN)}
    w = {f"embeddings.{n}_embeddings.weight": r.normal(size=(k, WIDTH)) for n, k in
         {"word": VOCAB, "position": 32, "token_type": 2}.items()}
    norms = ["embeddings.LayerNorm"]
    for i in range(LAYERS):
        for n, s in layer.items():
            w[f"encoder.layer.{i}.{n}.weight"] = r.normal(size=s) * 0.4
            w[f"encoder.layer.{i}.{n}.bias"] = r.normal(size=s[:1]) * 0.2
        norms += [f"encoder.layer.{i}.attention.output.LayerNorm", f"encoder.layer.{i}.output.LayerNorm"]
    for n in norms:
        w[n + ".weight"], w[n + ".bias"] = 1 + 0.2 * r.normal(size=WIDTH), 0.2 * r.normal(size=WIDTH)
    w["pooler.dense.weight"] = r.normal(size=(WIDTH, WIDTH))
    w = {n: x.astype("f4") for n, x in w.items()}
    folder.mkdir()
    write_safetensors(folder / "model.safetensors", {prefix + n: x for n, x in w.items()})
    (folder / "config.json").write_text(json.dumps({
        "model_type": "bert", "vocab_size": VOCAB, "hidden_size": WIDTH, "intermediate_size": HIDDEN, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "max_position_embeddings": 32, "layer_norm_eps": 1e-12, "hidden_act": "gelu"}))
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": {"type": "BertProcessing", "cls": ["w1", 1], "sep": ["w2", 2]},
        "model": {"type": "WordLevel", "unk_token": "w0", "vocab": {f"w{i}": i for i in range(VOCAB)}}}))
    return w


def hidden_of_bert(w, ids, layers=LAYERS, heads=HEADS):
    """Devlin et al. 2018, in float64."""
    w = {n: x.astype("f8") for n, x in w.items()}
    erf = np.vectorize(math.erf)

    def norm(x, n):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12) * w[n + ".weight"] + w[n + ".bias"]

    def linear(x, n):
        return x @ w[n + ".weight"].T + w[n + ".bias"]

    e = "embeddings."
    x = norm(w[e + "word_embeddings.weight"][ids] + w[e + "position_embeddings.weight"][:len(ids)] + w[e + "token_type_embeddings.weight"][0],
             e + "LayerNorm")
    width = x.shape[1]
    for i in range(layers):
        p, d = f"encoder.layer.{i}.", width // heads
        q, k, v = (linear(x, p + "attention.self." + n).reshape(-1, heads, d).transpose(1, 0, 2) for n in ("query", "key", "value"))
        s = np.exp(q @ k.transpose(0, 2, 1) / np.sqrt(d))
        y = (s / s.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(-1, width)
        x = norm(x + linear(y, p + "attention.output.dense"), p + "attention.output.LayerNorm")
        y = linear(x, p + "intermediate.dense")
        x = norm(x + linear(y / 2 * (1 + erf(y / np.sqrt(2))), p + "output.dense"), p + "output.LayerNorm")
    return x


@pytest.mark.parametrize("prefix", ["", "bert."])
def test_embeddings_of_an_encoder(tmp_path, prefix):
    w = write_bert(tmp_path / "bert", prefix)
    m = yoke.load(tmp_path / "bert")
    texts = ["w3 w4 w5 w6 w7 w8 w9", "w11", "", " ".join(f"w{i}" for i in range(3, 40))]
    ids = [[1, *range(3, 10), 2], [1, 11, 2], [1, 2], [1, *range(3, 33), 2]]  # the last is cut to 32
    hidden = [hidden_of_bert(w, i) for i in ids]
    for pooling, pooled in {"mean": lambda x: x.mean(0), "cls": lambda x: x[0], "max": lambda x: x.max(0), "last": lambda x: x[-1]}.items():
        want = np.array([pooled(x) for x in hidden])
        got = m.embed(texts, pooling=pooling)
        assert got.shape == (4, WIDTH) and np.abs(got - want).max() < 1e-4, (pooling, np.abs(got - want).max())
        unit = m.embed(texts, pooling=pooling, normalize=True)
        assert np.abs(unit - want / np.linalg.norm(want, axis=1, keepdims=True)).max() < 1e-4
    assert np.abs(m.embed(texts[0]) - m.embed(texts)[0]).max() < 1e-5  # padding has no influence
    # sentence-transformers' files
    (tmp_path / "bert" / "modules.json").write_text(json.dumps([
        {"path": "", "type": "sentence_transformers.models.Transformer"}, {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]))
    (tmp_path / "bert" / "1_Pooling").mkdir()
    (tmp_path / "bert" / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}))
    assert np.array_equal(m.embed(texts), m.embed(texts, pooling="cls", normalize=True))
    (tmp_path / "bert" / "modules.json").write_text(json.dumps([{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}]))
    for wrong in (lambda: m.embed("w3"), lambda: m.embed("w3", pooling="none"), lambda: m.logits([1]), lambda: m.generate([1])):
        with pytest.raises((ValueError, NotImplementedError, RuntimeError, OSError)) as e:
            wrong()
        assert "\n" not in str(e.value)


def test_embeddings_of_a_decoder(folder):
    m = yoke.load(folder)
    assert m.embed(["w3 w4", "w5"]).shape == (2, WIDTH) and np.abs(m.embed(["w3 w4", "w5"])[1] - m.embed("w5")).max() < 1e-4


def test_quantized_bytes():
    x = np.random.default_rng(2).normal(size=(3, 64)).astype("f4")
    q = yoke.quantize(yoke.QUANT_Q8_0, x)
    assert q.shape == (3, 2 * 34) and q.dtype == np.uint8
    blocks = q.reshape(3, 2, 34)
    scale = np.ascontiguousarray(blocks[:, :, :2]).view("f2").astype("f4")
    assert np.abs(scale * np.ascontiguousarray(blocks[:, :, 2:]).view("i1") - x.reshape(3, 2, 32)).max() <= np.abs(x).max() / 127 * 0.51
    assert np.array_equal(yoke.dequant(yoke.tensor(q), yoke.QUANT_Q8_0, 64, yoke.f32).numpy().reshape(3, 2, 32),
                          scale * np.ascontiguousarray(blocks[:, :, 2:]).view("i1"))
    with pytest.raises(ValueError):
        yoke.quantize(yoke.QUANT_Q8_0, x[:, :33])
    with pytest.raises(ValueError):
        yoke.quantize(99, x)


def test_onnx_write(tmp_path):
    path = str(tmp_path / "product.onnx")
    w = yoke.tensor(np.arange(6, dtype=np.float32).reshape(3, 2))
    x = yoke.tensor(np.ones((4, 2), dtype=np.float32))
    y = yoke.linear(x, w)
    yoke.onnx_write(path, [x], [y], name="product", input_names=["x"], output_names=["y"], weights={"fc.weight": w})
    data = pathlib.Path(path).read_bytes()
    assert all(name in data for name in (b"product", b"fc.weight", b"yoke"))
    with pytest.raises(ValueError):
        yoke.onnx_write(path, [x], [y], input_names=["x", "z"])
    with pytest.raises(NotImplementedError):
        yoke.onnx_write(path, [x], [yoke.dropout(x, 0.5)])
    assert pathlib.Path(path).read_bytes() == data
    ort = pytest.importorskip("onnxruntime")
    got = ort.InferenceSession(path).run(None, {"x": x.numpy()})[0]
    np.testing.assert_allclose(got, y.numpy(), rtol=1e-6)
