# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning of pretrained models: the losses and adapters are those of `yoke train`; adapters are saved, opened, merged;
chat templates; wrong arguments."""
import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

import yoke
from test_models import LAYERS, VOCAB, write_model

STEPS, CONTEXT, BATCH, SEED = 5, 8, 4, 3
TEMPLATE = ("{% for m in messages %}{{ '<|' + m.role + '|> ' + m['content'] | trim + ' <|end|> ' }}{% endfor %}"
            "{% if add_generation_prompt %}<|assistant|>{{ ' ' }}{% endif %}{% if shout is defined %}{{ shout }}{% endif %}")
SPECIAL = {"<|user|>": 36, "<|assistant|>": 37, "<|end|>": 38}
TALK = [{"role": "user", "content": "w3 w4"}, {"role": "assistant", "content": "w5 w6 w7"},
        {"role": "user", "content": "w8<|end|> w9"}, {"role": "assistant", "content": "w10"}]
command = os.environ.get("YOKE_TEST_BUILD", "/nonexistent") + "/yoke"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = write_model(tmp_path_factory.mktemp("models") / "llama", end=38, width=32, hidden=64, size=0.3)
    path = folder / "tokenizer.json"
    words = json.loads(path.read_text())
    words["model"]["vocab"] = {w: i for w, i in words["model"]["vocab"].items() if i not in SPECIAL.values()}
    words["added_tokens"] = [{"id": i, "content": w, "special": True, "single_word": False, "lstrip": False, "rstrip": False,
                              "normalized": False} for w, i in SPECIAL.items()]
    path.write_text(json.dumps(words))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE, "eos_token": "<|end|>"}))
    return folder


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(" ".join(f"w{i}" for i in np.random.default_rng(1).integers(1, 36, 1000)))
    return path


def talks():
    r = np.random.default_rng(2)
    words = lambda: " ".join(f"w{i}" for i in r.integers(1, 36, r.integers(1, 4)))  # noqa: E731
    return [[{"role": "user", "content": words()}, {"role": "assistant", "content": words()}] for _ in range(30)]


def train(folder, data, out, *keys, steps=STEPS):
    """The losses of `yoke train`."""
    if not os.path.exists(command):
        pytest.skip("the command is not beside the tests")
    subprocess.run([command, "train", f"init={folder}", f"data={data}", f"steps={steps}", f"context={CONTEXT}", f"batch={BATCH}",
                    f"seed={SEED}", "valid=0", "log_every=1", f"out={out}", *keys], check=True, capture_output=True)
    lines = [json.loads(x) for x in (out / "metrics.jsonl").read_text().splitlines()]
    return [x["loss"] for x in lines if "loss" in x]


def fit(m, data, **more):
    return yoke.fit(m, data, steps=STEPS, context=CONTEXT, batch=BATCH, seed=SEED, **more)


def logits(m, ids=(3, 4, 5, 6)):
    with yoke.scope("logits"):
        return m.logits(list(ids)).numpy()


def weights(folder):
    """The tensors of a safetensors file by name."""
    data = (folder / "adapter_model.safetensors").read_bytes()
    n = int.from_bytes(data[:8], "little")
    head = json.loads(data[8:8 + n])
    return {k: np.frombuffer(data[8 + n:][slice(*v["data_offsets"])], "f4").reshape(v["shape"])
            for k, v in head.items() if k != "__metadata__"}


@pytest.mark.parametrize("options", [{}, {"dtype": "f16"}, {"quant": "q8_0"}], ids=["file", "f16", "q8_0"])
def test_adapters_have_the_losses_of_the_command(folder, text, tmp_path, options):
    m = yoke.load(folder, **options)
    before = logits(m)
    got = fit(m, text, lora=4, lora_alpha=8, lora_targets="q,v,down")
    want = train(folder, text, tmp_path / "run", "lora=4", "lora_alpha=8", "lora_targets=q,v,down",
                 *(f"{k}={v}" for k, v in options.items()))
    assert len(got) == STEPS and [round(x, 6) for x in got] == [round(x, 6) for x in want]
    assert list(m.trainable_parameters())[:2] == ["layer0.attn.q.lora_A.weight", "layer0.attn.q.lora_B.weight"]
    assert not np.array_equal(logits(m), before)
    # bit for bit: the adapters after the last step
    m.save_adapter(tmp_path / "adapter")
    mine, theirs = weights(tmp_path / "adapter"), weights(tmp_path / "run")
    assert len(mine) == 3 * 2 * LAYERS and mine.keys() == theirs.keys()
    assert all(np.array_equal(mine[n], theirs[n]) for n in mine)
    # a run is an adapter, too
    assert np.array_equal(logits(yoke.load(folder, adapter=tmp_path / "run", **options)), logits(m))


def test_dropout_is_of_training_alone(folder, text, tmp_path):
    m = yoke.load(folder)
    r = np.random.default_rng(6)
    fit(m, text, lora=4, lora_dropout=0.5)
    x = r.integers(0, VOCAB, (2, 9)).astype("i4")
    for t in m.trainable_parameters().values():
        t.put(r.normal(size=t.shape).astype("f4"))

    def loss(seed):
        yoke.random_set(seed)
        with yoke.scope("loss"):
            return m.loss(x).item()

    assert loss(1) == loss(2)
    m.train()
    assert loss(1) != loss(2) and loss(1) == loss(1)
    m.train(False)
    assert loss(1) == loss(2)
    # the run of an adapter with dropout is that of the command
    m.save_adapter(tmp_path / "adapter")
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert config["lora_dropout"] == 0.5
    other = yoke.load(folder, adapter=tmp_path / "adapter")
    want = train(folder, text, tmp_path / "run", f"adapter={tmp_path / 'adapter'}")
    assert [round(x, 6) for x in fit(other, text)] == [round(x, 6) for x in want]


def test_all_weights_have_the_losses_of_the_command(folder, text, tmp_path):
    got = fit(yoke.load(folder, dtype="f32"), text, lr=1e-3)
    want = train(folder, text, tmp_path / "run", "lr=1e-3")
    assert [round(x, 6) for x in got] == [round(x, 6) for x in want]


@pytest.mark.parametrize("pack", [True, False])
def test_conversations_have_the_losses_of_the_command(folder, tmp_path, pack):
    path = tmp_path / "talks.jsonl"
    path.write_text("".join(json.dumps({"messages": t}) + "\n" for t in talks()))
    want = train(folder, path, tmp_path / "run", "lora=4", f"pack={int(pack)}")
    for data in (path, talks(), tuple({"messages": t} for t in talks())):
        got = fit(yoke.load(folder), data, lora=4, pack=pack)
        assert [round(x, 6) for x in got] == [round(x, 6) for x in want]


def test_kinds_of_data(folder, text):
    m = yoke.load(folder)
    ids = m.tokenizer.encode(text.read_text())
    want = fit(m, text, lora=4)
    for data in (ids, np.array(ids), np.array(ids, "u2")):
        assert fit(yoke.load(folder), data, lora=4) == want
    assert len(fit(yoke.load(folder), [" ".join(f"w{i}" for i in range(1, 30)), "w1 w2 w3"], lora=4)) == STEPS
    # one epoch, followed by a validation
    m = yoke.load(folder)
    *got, last = yoke.fit(m, ids[:129], valid=ids[-100:], context=8, batch=4, lora=2, lora_targets="all")
    assert len(got) == 4 and np.isfinite(last)
    with yoke.scope("mean"):
        x = np.array([ids[-100:][i:i + 9] for i in range(0, 96, 8)])
        assert abs(m.loss(x).item() - last) < 1e-5
    # batches and a loss of one's own
    windows = np.array(ids[:9 * 8]).reshape(2, 4, 9)
    batches = [(x[:, :-1].astype("i4"), x[:, 1:].astype("i4")) for x in windows]
    own = yoke.fit(yoke.load(folder), batches, lambda y, t: yoke.cross_entropy(y.reshape(-1, VOCAB), t.reshape(-1)), lora=4, seed=SEED)
    same = yoke.fit(yoke.load(folder), list(windows.astype("i4")), lora=4, seed=SEED)
    assert np.allclose(own, same, rtol=1e-6) and len(own) == 2


def test_gradients_are_differences(folder):
    m = yoke.load(folder, quant="q8_0").adapt(2, alpha=4, targets="v,up", seed=1)
    r = np.random.default_rng(4)
    p = m.trainable_parameters()
    for t in p.values():
        t.put(r.normal(size=t.shape).astype("f4") * 0.3)
    x = r.integers(0, VOCAB, (2, 7)).astype("i4")

    def loss():
        with yoke.scope("loss"):
            return m.loss(x).item()

    with yoke.scope("grad"):
        g = {n: t.numpy() for n, t in zip(p, yoke.grad(m.loss(x), list(p.values())))}
    for name, t in p.items():
        at, step = t.numpy().copy(), 1e-2
        direction = r.normal(size=t.shape).astype("f4")
        t.put(at + step * direction)
        up = loss()
        t.put(at - step * direction)
        down = loss()
        t.put(at)
        want = float((g[name].astype("f8") * direction).sum())
        assert abs((up - down) / (2 * step) - want) < 2e-2 * max(1, abs(want)), name


def test_saved_and_merged(folder, text, tmp_path):
    m = yoke.load(folder)
    base = logits(m)
    fit(m, text, lora=4, lora_targets="all")
    want = logits(m)
    m.save_adapter(tmp_path / "adapter")
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert (config["peft_type"], config["r"], config["lora_alpha"]) == ("LORA", 4, 16)
    assert sorted(os.listdir(tmp_path / "adapter")) == ["adapter_config.json", "adapter_model.safetensors"]
    assert np.array_equal(logits(yoke.load(folder, adapter=tmp_path / "adapter")), want)
    # nothing is overwritten
    for there in (tmp_path / "adapter", tmp_path, folder):
        with pytest.raises(ValueError):
            m.save_adapter(there)
    for there in (tmp_path, folder):
        with pytest.raises(ValueError):
            m.save_adapter(there, overwrite=True)
    m.save_adapter(tmp_path / "adapter", overwrite=True)
    parameters = m.config.parameters
    for dtype, error in (("f32", 1e-4), ("f16", 5e-3)):
        other = yoke.load(folder, adapter=tmp_path / "adapter", dtype=dtype)
        near = logits(other)
        assert np.abs(logits(other.merge_adapter()) - near).max() < error * np.abs(near).max()
        assert other.config.parameters == parameters and len(other.parameters()) == len(m.parameters())
        with pytest.raises(ValueError):
            other.merge_adapter()
        other.adapt(2)  # and adapted again
        assert np.abs(logits(other) - near).max() < error * np.abs(near).max()
    with pytest.raises(NotImplementedError):
        yoke.load(folder, adapter=tmp_path / "adapter", quant="q8_0").merge_adapter()
    # generation uses them
    assert m.generate([3, 4], 4, temperature=0, stop_at_end=False)[0] == int(logits(m, [3, 4])[-1].argmax())
    assert not np.array_equal(base, want)


def test_training_goes_on(folder, text, tmp_path):
    want = fit(yoke.load(folder), text, lora=4)
    for steps in (2, STEPS):
        m = yoke.load(folder).adapt(4, seed=SEED)
        got = yoke.fit(m, text, optimizer=yoke.optim.AdamW(m, beta2=0.99, weight_decay=0.1, clip=1.0, schedule="cosine", steps=STEPS, warmup=100),
                       steps=steps, context=CONTEXT, batch=BATCH, seed=SEED, out=tmp_path / "run", resume=True)
    assert got == want[2:]


def test_chat_templates(folder):
    m = yoke.load(folder)
    t = m.tokenizer
    text = t.apply_chat_template(TALK, tokenize=False)
    assert text == "<|user|> w3 w4 <|end|> <|assistant|> w5 w6 w7 <|end|> <|user|> w8<|end|> w9 <|end|> <|assistant|> w10 <|end|> "
    ids = t.apply_chat_template(TALK[:2], add_generation_prompt=True)
    assert ids == [36, 3, 4, 38, 37, 5, 6, 7, 38, 37]
    # a special token in a message is text
    ids = t.apply_chat_template(TALK)
    assert ids.count(38) == 4 and t.encode(text, special=False, parse=True).count(38) == 5
    assert t.apply_chat_template(TALK[:1], tokenize=False, shout="LOUD").endswith("LOUD")
    assert t.apply_chat_template(TALK[:1], tokenize=False, chat_template="{{ messages | length }}{{ tools | length }}", tools=[{}, {}]) == "12"
    answer = m.chat(TALK[:1], 3, temperature=0, stop_at_end=False)
    assert answer == "".join(m.chat(TALK[:1], 3, temperature=0, stop_at_end=False, stream=True))
    prompt = t.apply_chat_template(TALK[:1], add_generation_prompt=True)
    new = m.generate(prompt, 3, temperature=0, stop_at_end=False)
    assert answer == t.decode(prompt + new, skip_special=True)[len(t.decode(prompt, skip_special=True)):]


@pytest.mark.parametrize("template", [TEMPLATE, "{{ messages[0].content | upper }}\n  {%- for m in messages[1:] %}{{ loop.index }}{{ m.content | tojson }}\n{% endfor %}",
                                      "{% set ns = namespace(n=0) %}{% for m in messages if m.role == 'user' %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}"])
def test_templates_as_jinja(folder, template):
    pytest.importorskip("jinja2")
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    e = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    e.filters["tojson"] = lambda x: json.dumps(x, ensure_ascii=False)
    t = yoke.load(folder).tokenizer
    talk = [*TALK, {"role": "user", "content": "Grüße, \"你好\" 🌍\n\t<b>"}]
    for prompt in (False, True):
        want = e.from_string(template).render(messages=talk, add_generation_prompt=prompt)
        assert t.apply_chat_template(talk, tokenize=False, add_generation_prompt=prompt, chat_template=template) == want


def test_wrong_arguments(folder, text, tmp_path):
    m = yoke.load(folder)
    adapted = yoke.load(folder).adapt(2)
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"messages": [{"role": "user", "content": "w1"}]}\n{"nothing": 1}\n')
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "adapter_config.json").write_text('{"peft_type": "IA3"}')
    t = m.tokenizer
    endless = []
    endless.append(endless)
    for call in [
        lambda: yoke.load(folder, dtype="f99"), lambda: yoke.load(folder, quant="q9"), lambda: yoke.load(folder, dtype="f16", quant="q8_0"),
        lambda: yoke.load(folder, kv="bf16"), lambda: yoke.load(folder, adapter=tmp_path / "none"), lambda: yoke.load(folder, adapter=tmp_path / "half"),
        lambda: yoke.load(folder, adapter=folder),
        lambda: m.adapt(0), lambda: m.adapt(-1), lambda: m.adapt(1 << 40), lambda: m.adapt(2, float("nan")), lambda: m.adapt(2, targets="x"), lambda: m.adapt(2, dropout=1.0),
        lambda: m.adapt(2, targets=""), lambda: m.adapt(2, targets="q,,v"), lambda: adapted.adapt(2), lambda: adapted.load_adapter(tmp_path / "half"),
        lambda: m.save_adapter(tmp_path / "new"), lambda: m.merge_adapter(), lambda: m.trainable_parameters(), lambda: yoke.optim.AdamW(m),
        lambda: adapted.save_adapter(text / "new"),
        lambda: m.loss([[1]]), lambda: m.loss([1, 2]), lambda: m.loss(np.zeros((1, 66), "i4")), lambda: m.loss(np.zeros((1, 2, 8), "i4")),
        lambda: m.loss(np.zeros((1, 3, 65), "i4")), lambda: fit(m, text), lambda: fit(m, text, lora=-1), lambda: fit(adapted, text, lora=2),
        lambda: fit(adapted, tmp_path / "none"), lambda: fit(adapted, bad), lambda: fit(adapted, "one/of\0them"), lambda: fit(adapted, [1, 2]),
        lambda: fit(adapted, [VOCAB] * 100), lambda: fit(adapted, [-1] * 100), lambda: fit(adapted, [1 << 40] * 100), lambda: fit(adapted, []),
        lambda: fit(adapted, np.zeros((3, 4), "i4")), lambda: fit(adapted, [[{"role": "user"}]]), lambda: fit(adapted, [[{"role": "user", "content": 3}]]),
        lambda: fit(adapted, [[{"role": "user", "content": "w1"}]]), lambda: fit(adapted, ["a\0b"]), lambda: fit(adapted, [{"messages": endless}]),
        lambda: fit(adapted, None), lambda: fit(adapted, {"a": 1}), lambda: fit(adapted, text, loss=lambda y, t: y),
        lambda: yoke.fit(adapted, text, context=65), lambda: yoke.fit(adapted, text, context=-1), lambda: yoke.fit(adapted, text, batch=0),
        lambda: fit(adapted, text, lr=1e-3, optimizer=yoke.optim.AdamW(adapted)), lambda: fit(adapted, text, optimizer=yoke.optim.AdamW(yoke.nn.Linear(2, 2))),
        lambda: yoke.fit(yoke.nn.Linear(2, 2), [np.zeros((2, 2), "f4")]), lambda: yoke.fit(yoke.nn.Linear(2, 2), "text.txt", lambda y: y.sum()),
        lambda: t.apply_chat_template("w1"), lambda: t.apply_chat_template(TALK[0]), lambda: t.apply_chat_template([["user", "w1"]]),
        lambda: t.apply_chat_template([{"role": {1}}]), lambda: t.apply_chat_template([{"role": "user", "content": float("nan")}]),
        lambda: t.apply_chat_template(TALK, chat_template="{% if %}"), lambda: t.apply_chat_template(TALK, chat_template="{{ raise_exception('no') }}"),
        lambda: t.apply_chat_template(TALK, chat_template="{% for i in range(10**9) %}{% endfor %}"),
        lambda: t.apply_chat_template(TALK, chat_template="{{ '(' * 10**9 }}"), lambda: t.apply_chat_template(TALK, tools={1}),
        lambda: t.apply_chat_template([{"role": "user", "content": "\ud800"}]),
        lambda: m.chat(TALK, temperature=-1.0),
    ]:
        with pytest.raises((ValueError, TypeError, OSError, IndexError, NotImplementedError, UnicodeError)) as e:
            call()
        assert str(e.value) and "\n" not in str(e.value), str(e.value)
    assert np.array_equal(logits(m), logits(yoke.load(folder)))


def test_a_model_without_a_template(tmp_path):
    m = yoke.load(write_model(tmp_path / "plain"))
    for call in (lambda: m.tokenizer.apply_chat_template(TALK), lambda: m.chat(TALK), lambda: fit(m.adapt(2), [TALK])):
        with pytest.raises((OSError, ValueError)) as e:
            call()
        assert "\n" not in str(e.value)


def test_the_lines_of_the_page(folder, text, tmp_path, monkeypatch):
    page = pathlib.Path(__file__).resolve().parent.parent.parent / "doc" / "python.md"
    if not page.exists():
        pytest.skip("the page is not beside the tests")
    lines = page.read_text().split("## Fine-tuning a pretrained model")[1].split("```")[1]
    (tmp_path / "SmolLM2-135M-Instruct").symlink_to(folder)
    (tmp_path / "text.txt").symlink_to(text)
    monkeypatch.chdir(tmp_path)
    done: dict = {"yoke": yoke}
    # shorter: the model of the tests has 64 tokens at most
    exec(lines.replace("context=256, batch=8, steps=200", "context=32, batch=4, steps=6"), done)
    assert len(done["losses"]) == 6 and all(np.isfinite(done["losses"]))


def test_peft_reads_them(folder, text, tmp_path):
    peft = pytest.importorskip("peft")
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    m = yoke.load(folder)
    fit(m, text, lora=4, lora_targets="q,v,gate,down")
    m.save_adapter(tmp_path / "adapter")
    theirs = peft.PeftModel.from_pretrained(transformers.AutoModelForCausalLM.from_pretrained(folder), tmp_path / "adapter")
    ids = [3, 4, 5, 6, 7]
    with torch.no_grad():
        want = theirs(torch.tensor([ids])).logits[0].numpy()
    got = logits(m, ids)
    assert np.abs(got - want).max() < 1e-4 * np.abs(want).max()


@pytest.mark.parametrize("keys", [[], ["tokenizer=word"], ["tokenizer=bpe", "vocab=270"]])
def test_a_run_of_the_command_is_a_model(tmp_path, text, keys):
    run = tmp_path / "run"
    train("", text, run, "layers=1", "heads=2", "embed=16", "lr=0.01", *keys, steps=60)
    done = subprocess.run([command, "generate", str(run), "prompt=w3 w4", "tokens=12", "temperature=0"], check=True, capture_output=True,
                          text=True)
    m = yoke.load(run)
    assert (m.config.family, m.config.layers, m.config.width, m.config.context) == ("gpt2", 1, 16, CONTEXT)
    t = m.tokenizer
    new = m.generate(t.encode("w3 w4"), 12, temperature=0)
    assert len(new) == 12 and t.decode(t.encode("w3 w4") + new) == done.stdout.removesuffix("\n")
    assert "".join(done.stdout.split()) == "".join(("w3 w4" + m.generate("w3 w4", 12, temperature=0)).split())

    done = subprocess.run([command, "eval", str(run), f"data={text}", "batch=8"], check=True, capture_output=True, text=True)
    ids = t.encode(text.read_text())
    rows = [ids[i:i + CONTEXT + 1] for i in range(0, len(ids) - CONTEXT, CONTEXT)]
    with yoke.scope("loss"):
        loss = float(m.loss(rows).numpy())
    assert loss == pytest.approx(float(dict(x.split()[:2] for x in done.stdout.splitlines())["loss"]), rel=1e-5)
    fit(yoke.load(run), text, lora=2)
