# SPDX-License-Identifier: Apache-2.0
"""yoke.Engine: requests together have the tokens they have alone, which are those of generate."""
import threading

import pytest

import yoke
from test_models import write_model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return yoke.load(write_model(tmp_path_factory.mktemp("engine") / "llama"))


PROMPTS = [[3, 4, 5], [7], list(range(2, 36)), [3, 4, 5, 6] * 6]


def test_greedy_tokens_are_those_of_generate(model):
    with yoke.Engine(model, slots=3, step=8) as e:
        together = e.generate(PROMPTS, 12, stop_at_end=False)
        assert together == [model.generate(p, 12, temperature=0, stop_at_end=False) for p in PROMPTS]
        assert e.generate(PROMPTS, 12, stop_at_end=False) == together
        s = e.stats
        assert s.running == s.queued == s.pages_used == 0 and s.cached_tokens > 0 and s.ended == 8
        assert e.context == 64


def test_texts(model):
    with yoke.Engine(model) as e:
        assert e.generate(["w3 w4 w5"], 5, stop_at_end=False) == [model.tokenizer.decode(e.generate([[3, 4, 5]], 5, stop_at_end=False)[0])]


def test_events(model):
    with yoke.Engine(model) as e:
        request = e.submit([3, 4, 5], 4, choices=2, temperature=1.0, seed=5, stop_at_end=False, logprobs=3)
        events = list(e.run())
        assert {v.request for v in events} == {request}
        for choice in 0, 1:
            own = [v for v in events if v.choice == choice]
            assert [v.generated for v in own] == [1, 2, 3, 4, 4] and own[-1].end and own[-1].reason == "length"
            assert all(len(v.alternatives) == 3 and v.logprob <= v.alternatives[0][1] for v in own[:-1])
            alone = e.submit([3, 4, 5], 4, temperature=1.0, seed=5 + choice, stop_at_end=False)
            assert [v.token for v in e.run() if v.request == alone and not v.end] == [v.token for v in own[:-1]]


def test_a_mask_is_a_function(model):
    with yoke.Engine(model) as e:
        e.submit([3, 4, 5], 6, mask=lambda choice, ids: [10 + len(ids)])
        assert [v.token for v in e.run() if not v.end] == [10, 11, 12, 13, 14, 15]
        e.submit([3, 4, 5], 6, mask=lambda choice, ids: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            list(e.run())


def test_errors(model):
    with yoke.Engine(model) as e:
        for bad in ([], [99], [-1], list(range(64))):
            with pytest.raises((ValueError, IndexError)):
                e.submit(bad, 3)
        with pytest.raises(Exception):
            e.submit([1], 3, adapter="none")
    with pytest.raises(ValueError):
        e.submit([1], 3)


def test_threads_submit(model):
    with yoke.Engine(model, queue=100) as e:
        def client():
            for _ in range(10):
                e.submit([3, 4, 5], 3, stop_at_end=False)
        threads = [threading.Thread(target=client) for _ in range(4)]
        for t in threads:
            t.start()
        ends = 0
        while ends < 40:
            ends += sum(v.end for v in e.step())
        for t in threads:
            t.join()
        assert e.stats.ended == 40
