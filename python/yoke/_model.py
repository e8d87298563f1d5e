# SPDX-License-Identifier: Apache-2.0
"""Pretrained language models: yoke.load, generation and tokenizers."""
from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from ._arrays import tensor
from ._record import Record

Ids = Sequence[int]
Messages = Sequence[Mapping[str, Any]]


class Tokenizer:
    """Text to token ids and back, with the same ids as the libraries that made the files.

    Tokenizer(path) opens tokenizer.json, tokenizer.model, or a folder that contains one of them."""

    def __init__(self, path: str | os.PathLike[str] | _core.TokenizerHandle) -> None:
        self._t = path if isinstance(path, _core.TokenizerHandle) else _core.tokenizer_open(os.fspath(path))
        self._template: _core.ChatTemplate | None = None

    @classmethod
    def train(cls, texts: str | Iterable[str], vocab: int = 4096) -> Tokenizer:
        """A byte-level BPE of at most `vocab` ids that is learned from texts, with the vocabulary and merges of BpeTrainer of Hugging
        Face `tokenizers`, the pre-tokenizer of GPT-2, and the special token <|endoftext|>, id 0."""
        return cls(_core.tokenizer_train([texts] if isinstance(texts, str) else list(texts), vocab))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the tokenizer.json of a tokenizer that `train` made."""
        _core.tokenizer_save(self._t, os.fspath(path))

    def encode(self, text: str, *, special: bool = True, parse: bool = False) -> list[int]:
        """The ids of a text.  special: add the special tokens of the model's format, such as BOS.  parse: special tokens
        written in the text become their ids; without it they are ordinary text, as user input must be."""
        return _core.tokenizer_encode(self._t, text, (_core.TOKENIZER_ADD if special else 0) | (_core.TOKENIZER_PARSE if parse else 0))

    def decode(self, ids: Ids, *, skip_special: bool = False) -> str:
        """The text of ids, without special tokens if skip_special."""
        text: str = _core.tokenizer_decode(self._t, [int(i) for i in ids], _core.TOKENIZER_SKIP if skip_special else 0)
        return text

    def __len__(self) -> int:
        return self.vocab_size

    @property
    def vocab_size(self) -> int:
        """The number of ids: the largest one + 1."""
        return _core.tokenizer_size(self._t)

    def token(self, id: int) -> str | None:
        """The token of an id as the file spells it; None if the id has none."""
        piece = _core.tokenizer_piece(self._t, id)
        return None if piece is None else piece.decode(errors="replace")

    def id(self, token: str) -> int | None:
        """The id of a token as the file spells it; None if there is none."""
        return _core.tokenizer_id(self._t, token)

    def is_special(self, id: int) -> bool:
        """Is the id a special token, such as BOS?"""
        return _core.tokenizer_is_special(self._t, id)

    @property
    def bos_id(self) -> int | None:
        """The token that begins a text."""
        return _core.tokenizer_bos(self._t)

    @property
    def eos_ids(self) -> list[int]:
        """The tokens that end a text."""
        return _core.tokenizer_eos(self._t)

    @property
    def pad_id(self) -> int | None:
        """The token for padding."""
        return _core.tokenizer_pad(self._t)

    @property
    def unknown_id(self) -> int | None:
        """The token for unknown text."""
        return _core.tokenizer_unknown(self._t)

    @property
    def chat_template(self) -> str | None:
        """The source of the chat template, a Jinja template."""
        return _core.tokenizer_template(self._t)

    def apply_chat_template(self, messages: Messages, *, add_generation_prompt: bool = False, tokenize: bool = True,
                            tools: Sequence[Any] | None = None, chat_template: str | None = None, now: int = 0,
                            **variables: Any) -> Any:
        """Writes a conversation with the model's chat template: ids, or with tokenize=False the text.

        messages: [{"role": "user", "content": "Hello"}, ..].  add_generation_prompt: the text ends where the assistant's
        answer begins.  A special token that a message has is text: only the template writes special tokens.  tools, and
        further keywords, are variables of the template; chat_template replaces the one of the files; now is the time, in
        seconds since 1970, that a template may write.

        FileNotFoundError: there is no template.  ValueError: it refuses the messages, with its own words."""
        if isinstance(messages, (str, bytes, Mapping)) or not all(isinstance(m, Mapping) for m in messages):
            raise TypeError("apply_chat_template: messages are a list of dicts with role and content")
        if chat_template is not None:
            template = _core.chat_template_parse(chat_template)
        else:
            template = self._template = self._template or _core.chat_template_of(self._t)
        text = _json(list(messages), "apply_chat_template: messages")
        how: dict[str, Any] = {"add_generation_prompt": add_generation_prompt, "now": now,
                               "tools": None if tools is None else _json(tools, "apply_chat_template: tools"),
                               "variables": _json(variables, "apply_chat_template: variables") if variables else None}
        if tokenize:
            return _core.chat_template_encode_json(template, self._t, text, **how)
        return _core.chat_template_render_json(template, text, **how)


def _json(value: Any, what: str) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()  # half of a surrogate pair
        return text
    except (TypeError, ValueError, RecursionError) as e:
        raise TypeError(f"{what} cannot be written as JSON: {e}") from None


class _Text:
    """The text of ids that arrive one at a time.  Characters whose bytes are incomplete wait for the next id."""

    def __init__(self, tokenizer: Tokenizer, prompt: Ids) -> None:
        self._t = tokenizer
        self._ids = list(prompt[-8:])  # decoders may treat the first token of a text in another way
        self._from, self._shown = 0, len(self._ids)

    def add(self, id: int) -> str:
        self._ids.append(id)
        now = self._decode(len(self._ids))
        if now.endswith("\ufffd"):
            return ""
        piece = now[len(self._decode(self._shown)):]
        self._from, self._shown = max(self._from, self._shown - 8), len(self._ids)
        return piece

    def rest(self) -> str:
        return self._decode(len(self._ids))[len(self._decode(self._shown)):]

    def _decode(self, end: int) -> str:
        return self._t.decode(self._ids[self._from:end], skip_special=True)


class LanguageModel:
    """A pretrained model, which yoke.load opens."""

    def __init__(self, path: str | os.PathLike[str], *, adapter: str | os.PathLike[str] | None = None, dtype: str | None = None,
                 quant: str | None = None, kv: str | None = None, context: int = 0) -> None:
        self._m = _core.model_open(os.fspath(path), context=context, dtype=_name_of(dtype), quant=quant, kv=_name_of(kv))
        self._tokenizer: Tokenizer | None = None
        self._trainable: _core.ModuleHandle | None = None
        self._path = os.fspath(path)
        if adapter is not None:
            self.load_adapter(adapter)

    def __repr__(self) -> str:
        return f"<{self.config.family} of {self.config.parameters:,} parameters from {self._path!r}>"

    @property
    def config(self) -> Record:
        """Family and sizes, as struct yoke_model_info has them: family, vocabulary, context, layers, width, heads, kv_heads,
        head_dim, hidden, parameters."""
        return _core.model_info(self._m)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that comes with the model.  FileNotFoundError: the files have none."""
        if self._tokenizer is None:
            self._tokenizer = Tokenizer(_core.model_tokenizer(self._m))
        return self._tokenizer

    def parameters(self) -> dict[str, _core.Tensor]:
        """The weights by name."""
        tensors, names = _core.model_parameters(self._m)
        return dict(zip(names, tensors))

    # ---- fine-tuning ----

    def adapt(self, rank: int = 8, alpha: float = 16.0, targets: str = "q,v", *, dropout: float = 0.0, seed: int = 0) -> LanguageModel:
        """Adds low-rank adapters (LoRA) to matrices of each block, whose own weights are frozen and may be quantized:
        y = W x + alpha/rank B (A x).  targets: q, k, v, o, gate, up, down, comma-separated, or all.  A is random, by the seed,
        and B is 0, so that the model is still the same.  dropout: of the inputs of A, in training.  Gives the model itself."""
        _core.model_adapt(self._m, rank=rank, alpha=alpha, targets=targets, dropout=dropout, seed=seed)
        self._trainable = None
        return self

    def load_adapter(self, folder: str | os.PathLike[str]) -> LanguageModel:
        """Adds the adapters of a folder that PEFT, save_adapter or `yoke train lora=` wrote.  Gives the model itself."""
        _core.model_load_adapter(self._m, os.fspath(folder))
        self._trainable = None
        return self

    def save_adapter(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes the adapters as PEFT does: adapter_config.json and adapter_model.safetensors.  ValueError: the folder exists;
        with overwrite, a folder is replaced that holds only the files of an adapter."""
        _core.model_save_adapter(self._m, os.fspath(folder), overwrite)

    def merge_adapter(self) -> LanguageModel:
        """Adds the adapters to the weights, and removes them.  NotImplementedError: a quantized weight."""
        _core.model_merge_adapter(self._m)
        self._trainable = None
        return self

    def _module(self) -> _core.ModuleHandle:
        if self._trainable is None:
            self._trainable = _core.model_module(self._m)
        return self._trainable

    def trainable_parameters(self) -> dict[str, _core.Tensor]:
        """The parameters that can be trained, by name: those of the adapters, or, without adapters, all weights of a model that was
        loaded with dtype="f32"."""
        tensors, names = _core.module_parameters(self._module())
        return dict(zip(names, tensors))

    def train(self, on: bool = True) -> LanguageModel:
        """From now on `loss` applies the dropout of adapters; train(False) ends that.  Gives the model itself."""
        _core.model_mode(self._m, on)
        return self

    def loss(self, windows: Any) -> _core.Tensor:
        """The mean loss of the next tokens in windows [B,T+1], or [B,3,T]: ids, targets (-1: none) and positions."""
        return _core.model_loss(self._m, windows if isinstance(windows, _core.Tensor) else tensor(windows, dtype="i32"))

    def __call__(self, ids: Any) -> _core.Tensor:
        """The logits of the next token after each: ids [B,T] give [B,T,V]."""
        return _core.model_logits(self._m, ids if isinstance(ids, _core.Tensor) else tensor(ids, dtype="i32"))

    def _windows(self, data: Any, context: int, pack: bool) -> _core.Dataset | None:
        """A dataset of windows of files, texts, conversations or ids; None: data is something else."""
        how: dict[str, Any] = {"context": context, "separate": not pack}
        if isinstance(data, (str, os.PathLike)):
            return _core.model_dataset(self._m, os.fspath(data), **how)
        if isinstance(data, _core.Dataset):
            return data
        ids = _ids_of(data)
        if ids is not None:
            return _core.model_dataset(self._m, None, ids=ids, **how)
        if not isinstance(data, (list, tuple)) or not data:
            return None
        if all(isinstance(x, (str, Mapping)) or _is_conversation(x) for x in data):
            lines = [{"text": x} if isinstance(x, str) else x if isinstance(x, Mapping) else {"messages": x} for x in data]
            return _core.model_dataset(self._m, "data.jsonl", text="\n".join(_json(x, "fit: data") for x in lines), **how)
        return None

    # ---- computing ----

    def chat(self, messages: Messages, max_new_tokens: int = 256, *, stream: bool = False, **sampling: Any) -> Any:
        """The assistant's answer to a conversation, by the model's chat template: a text, or with stream an iterator of pieces.
        Keywords are those of `generate`."""
        ids = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True)
        new = self.generate(ids, max_new_tokens, stream=stream, **sampling)
        return self._text_of(new, ids) if stream else self._continuation(ids, new)

    def logits(self, ids: Any) -> _core.Tensor:
        """The logits of the next token after each: ids [T] give [T,V], ids [B,T] give [B,T,V]; a text gives those of its
        tokens."""
        x = tensor(self.tokenizer.encode(ids) if isinstance(ids, str) else ids, dtype="i32")
        y = _core.model_logits(self._m, x if len(x.shape) != 1 else x.reshape(1, x.shape[0]))
        return y.reshape(*y.shape[1:]) if len(x.shape) == 1 else y

    def embed(self, texts: str | Sequence[str], *, pooling: str | None = None, normalize: bool | None = None) -> Any:
        """A vector for a text, or an array with one row per text.  pooling: "mean", "cls", "max" or "last"; normalize: to
        length 1; both by default as the model's files say."""
        one = isinstance(texts, str)
        to = 0 if normalize is None else 1 if normalize else -1
        vectors = _core.model_embed_texts(self._m, [texts] if isinstance(texts, str) else list(texts), pooling=pooling, normalize=to)
        return vectors[0] if one else vectors

    def generate(self, prompt: Any, max_new_tokens: int = 256, *, temperature: float = 0.8, top_k: int = 0, top_p: float = 0.9,
                 min_p: float = 0.0, repetition_penalty: float = 1.0, frequency_penalty: float = 0.0, presence_penalty: float = 0.0,
                 seed: int = 0, stop_at_end: bool = True, stream: bool = False) -> Any:
        """Continues a text, or ids, or each of several: a list of either, up to 64.  Gives the new text without the prompt,
        or the new ids.

        temperature=0 takes the most likely token; otherwise a token is drawn from the top_k most likely ones (0: all), then
        from the fewest of these with a total probability of top_p, then from those with at least min_p times the largest
        probability.  repetition_penalty divides positive logits of tokens that the text has, and multiplies negative ones;
        frequency_penalty is subtracted for each occurrence, presence_penalty once.  A token depends on the seed and on its
        index, not on other texts.  A text ends at a token that ends texts, unless stop_at_end=False.

        stream: gives an iterator of pieces of the text, or of ids, as they are computed; for one prompt."""
        texts = isinstance(prompt, str) or (isinstance(prompt, (list, tuple)) and len(prompt) > 0 and isinstance(prompt[0], str))
        one = isinstance(prompt, str) or not (texts or _is_nested(prompt))
        prompts = [prompt] if one else list(prompt)
        if stream and not one:
            raise ValueError("generate: stream=True takes one prompt")
        ids = [self._begin(p) if texts else [int(i) for i in p] for p in prompts]
        g = _core.generation_new(self._m, ids, tokens=max_new_tokens, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p,
                                 repetition=repetition_penalty, frequency=frequency_penalty, presence=presence_penalty, seed=seed,
                                 past_end=not stop_at_end)
        if stream:
            return self._text_of(_tokens(g), ids[0]) if texts else _tokens(g)
        new: list[list[int]] = [[] for _ in ids]
        for step in _steps(g):
            for text, id in zip(new, step):
                if id >= 0:
                    text.append(id)
        done = [self._continuation(p, n) for p, n in zip(ids, new)] if texts else new
        return done[0] if one else done

    def _begin(self, text: str) -> list[int]:
        ids = self.tokenizer.encode(text)
        if ids and ids[-1] in self.tokenizer.eos_ids:  # some formats add one, which would end the text here
            ids.pop()
        if not ids:
            raise ValueError("generate: the prompt has no tokens")
        return ids

    def _text_of(self, ids: Iterable[int], prompt: list[int]) -> Iterator[str]:
        text = _Text(self.tokenizer, prompt)
        for id in ids:
            piece = text.add(id)
            if piece:
                yield piece
        rest = text.rest()
        if rest:
            yield rest

    def _continuation(self, prompt: list[int], new: list[int]) -> str:
        text = _Text(self.tokenizer, prompt)
        return "".join([text.add(id) for id in new]) + text.rest()


def _name_of(dtype: Any) -> str | None:
    return None if dtype is None else str(getattr(dtype, "name", dtype))


def _is_conversation(x: Any) -> bool:
    return isinstance(x, (list, tuple)) and len(x) > 0 and all(isinstance(m, Mapping) for m in x)


def _ids_of(data: Any) -> Any:
    """One axis of whole numbers as an array of NumPy; None: it is something else."""
    if isinstance(data, (list, tuple)):
        if not data or not all(isinstance(i, (int, np.integer)) and not isinstance(i, bool) for i in data):
            return None
        data = np.array(data)
    if not isinstance(data, np.ndarray) or data.dtype.kind not in "iu":
        return None
    if data.ndim != 1:
        raise ValueError(f"fit: ids have {data.ndim} axes; they are one sequence, which is divided into windows")
    if data.size and not 0 <= int(data.min()) <= int(data.max()) < 1 << 31:
        raise ValueError(f"fit: ids are {data.min()} .. {data.max()}; there are none below 0 or above {(1 << 31) - 1}")
    return data


def _is_nested(ids: Any) -> bool:
    return len(ids) > 0 and hasattr(ids[0], "__len__")


def _steps(g: _core.Generation) -> Iterator[list[int]]:
    while (step := _core.generation_next(g)) is not None:
        yield step


def _tokens(g: _core.Generation) -> Iterator[int]:
    for step in _steps(g):
        yield step[0]


def load(path: str | os.PathLike[str], *, adapter: str | os.PathLike[str] | None = None, dtype: str | None = None,
         quant: str | None = None, kv: str | None = None, context: int = 0) -> LanguageModel:
    """Opens a language model: a folder with config.json and safetensors files, a GGUF file, or the folder of a run of `yoke train`
    (model=gpt, or from init=).  Nothing is downloaded.

    adapter: a folder of low-rank adapters for it.  Matrices stay in the format of the file, unless dtype ("f32", "f16", "bf16")
    converts or quant ("q8_0", "q4_0", "q4_1", "q5_0", "q5_1") quantizes them; with dtype="f32" all weights can be trained.
    kv: dtype of keys and values while it generates, "f16" or "f32".  context: max tokens of a sequence; 0: what the file says."""
    return LanguageModel(path, adapter=adapter, dtype=dtype, quant=quant, kv=kv, context=context)
