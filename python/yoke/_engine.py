# SPDX-License-Identifier: Apache-2.0
"""yoke.Engine: many requests share each pass through a language model."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from . import _core
from ._model import LanguageModel
from ._record import Record


class Engine:
    """Serves a language model: requests of any lengths share each step, and prompts that begin alike share their computation.

        with yoke.Engine(yoke.load(path)) as e:
            request = e.submit("Once upon a time", max_new_tokens=20)
            for event in e.run():
                print(event.request, event.token)

    slots: max sequences that run at once.  queue: max requests that wait.  step: max tokens of a step.  pages: of 16 tokens; 0: as many
    as the slots need, at most 2 GB.  alike: a request has the same bits whatever else is computed.  reuse: prompts that begin alike
    share pages.  adapters: folders of LoRA adapters by name.

    submit, cancel and stats may be called from any thread, the others by one at a time."""

    def __init__(self, model: LanguageModel, *, slots: int = 0, queue: int = 0, step: int = 0, pages: int = 0, alike: bool = True,
                 reuse: bool = True, adapters: Mapping[str, Any] | None = None) -> None:
        self._model = model
        self._e = _core.engine_new(model._m, slots=slots, queue=queue, step=step, pages=pages, alike=alike, reuse=reuse)
        for name, folder in (adapters or {}).items():
            _core.engine_adapter(self._e, name, str(folder))

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends all requests without events, and frees the cache."""
        _core.engine_free(self._e)

    @property
    def context(self) -> int:
        """Max tokens of a sequence, prompt included."""
        return _core.engine_context(self._e)

    @property
    def stats(self) -> Record:
        """Counters: running, queued, pages, tokens."""
        return _core.engine_stats(self._e)

    def submit(self, prompt: str | Sequence[int], max_new_tokens: int = 256, *, choices: int = 1, temperature: float = 0.0, top_k: int = 0,
               top_p: float = 0.0, min_p: float = 0.0, repetition_penalty: float = 0.0, frequency_penalty: float = 0.0,
               presence_penalty: float = 0.0, logit_bias: Mapping[int, float] | None = None, seed: int = 0, stop: Sequence[int] = (),
               stop_at_end: bool = True, adapter: str | None = None, logprobs: int = 0, mask: Any = None) -> int:
        """Adds a request, a text or ids, and gives its number.  Parameters of sampling are those of LanguageModel.generate.  stop: ids
        that end the text too.  logprobs: report that many of the most likely tokens, up to 20; -1: of the token alone.
        mask(choice, ids) gives the allowed ids after those generated so far, or None for all."""
        ids = self._model._begin(prompt) if isinstance(prompt, str) else [int(i) for i in prompt]
        return _core.engine_submit(self._e, ids, tokens=max_new_tokens, choices=choices, bias=dict(logit_bias or {}),
                                   repetition=repetition_penalty, frequency=frequency_penalty, presence=presence_penalty,
                                   temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, seed=seed, stop=list(stop),
                                   past_end=not stop_at_end, adapter=adapter, logprobs=logprobs, mask=mask)

    def cancel(self, request: int) -> None:
        """Ends a request; each of its choices still gets an event with the reason "cancelled"."""
        _core.engine_cancel(self._e, request)

    def step(self) -> list[Record]:
        """Computes one step and gives its events.  An event has request, choice, end (is it the choice's last one?), token (None: none)
        and generated; a token's also logprob and alternatives, (id, logprob) each; a last one's reason ("stop", "length", "cancelled",
        "error"), error, prompt and cached, numbers of tokens."""
        _core.engine_step(self._e)
        return self._events()

    def run(self) -> Iterator[Record]:
        """Steps until no request is left, and gives the events."""
        left = 1
        while left:
            left = _core.engine_step(self._e)
            yield from self._events()

    def generate(self, prompts: Sequence[str | Sequence[int]], max_new_tokens: int = 256, **sampling: Any) -> list[Any]:
        """The continuations of several prompts, texts of texts and ids of ids."""
        waiting = list(enumerate(prompts))[::-1]
        number: dict[int, int] = {}
        new: list[list[int]] = [[] for _ in prompts]
        while waiting or number:
            while waiting and len(number) < 32:
                i, prompt = waiting.pop()
                number[self.submit(prompt, max_new_tokens, **sampling)] = i
            for event in self.step():
                if event.request not in number:
                    continue
                if not event.end:
                    new[number[event.request]].append(event.token)
                    continue
                del number[event.request]
                if event.error:
                    raise RuntimeError(f"generate: {event.error}")
        tokenizer = self._model.tokenizer if any(isinstance(p, str) for p in prompts) else None
        return [tokenizer.decode(n, skip_special=True) if tokenizer and isinstance(p, str) else n for p, n in zip(prompts, new)]

    def _events(self) -> list[Record]:
        events = []
        while (event := _core.engine_next(self._e)) is not None:
            events.append(event)
        return events
