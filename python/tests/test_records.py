# SPDX-License-Identifier: Apache-2.0
"""The records of yoke.fit, and signals that end it."""
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import yoke
from yoke import nn, optim

COMMAND = Path(yoke.__file__).with_name("_prefix") / "bin" / "yoke"


def command(*args):
    done = subprocess.run([COMMAND, *map(str, args)], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode in (0, 1) and not done.stderr, done.stderr
    return done.stdout


def lines(out, stage):
    rows = [json.loads(s) for s in (out / "metrics.jsonl").read_text().splitlines()]
    return [r for r in rows if r["stage"] == stage]


def train(rng, out, **how):
    x, y = rng.normal(size=(8, 4)).astype("f4"), rng.normal(size=(8, 3)).astype("f4")
    net = nn.Linear(4, 3)
    return yoke.fit(net, [(x, y)] * 12, yoke.mse, optim.SGD(net, lr=0.1), out=out, valid=[(x, y)], valid_every=5, telemetry=0, **how)


def test_the_commands_read_the_records(rng, tmp_path):
    out, seen = tmp_path / "run", []
    losses = train(rng, out, log=lambda s: seen.append(s), config={"note": "mine", "depth": 3}, tensorboard=True, save_every=6)
    steps, valid = lines(out, "train"), lines(out, "valid")
    assert [r["loss"] for r in steps] == losses[:-1] and [r["step"] for r in steps] == list(range(1, 13))
    told = [s for s in seen if s.valid != s.valid]
    assert all(r["lr"] == s.lr and r["grad_norm"] == s.grad_norm for r, s in zip(steps, told, strict=True))
    assert [r["val_loss"] for r in valid] == [s.valid for s in seen if s.valid == s.valid] and valid[-1]["val_loss"] == losses[-1]
    about = json.loads((out / "run.json").read_text())
    assert about["steps"] == 12 and about["parameters"] == 15 and about["ended"]["how"] == "done"
    assert {"note": "mine", "depth": 3, "data": "list of 12", "optimizer": "sgd", "lr": "0.1"}.items() <= about["config"].items()
    assert list(out.glob("events.out.tfevents.*")) and not (out / "telemetry.jsonl").exists()
    run = json.loads(command("report", out, "--json"))["runs"][0]
    assert (run["state"], run["how"], run["step"]) == ("ended", "done", 12)
    assert isinstance(json.loads(command("doctor", out, "--json"))["conditions"], list)
    top = json.loads(command("dashboard", "terminal", out, "--json"))["runs"][0]
    assert top["state"] == "ended" and np.float32(top["numbers"]["train"]["loss"]) == np.float32(losses[-2])


def test_an_exception_is_the_error_of_the_run(rng, tmp_path):
    def bad(*_):
        raise KeyError("my key")

    net = nn.Linear(4, 3)
    x = rng.normal(size=(8, 4)).astype("f4")
    with pytest.raises(KeyError, match="my key"):
        yoke.fit(net, [(x, x)], bad, out=tmp_path / "run")
    ended = json.loads((tmp_path / "run" / "run.json").read_text())["ended"]
    assert ended["how"] == "failed" and "my key" in ended["error"] and yoke.error_code() == 0
    with pytest.raises(TypeError):
        train(rng, tmp_path / "other", config={"x": object()})


PROGRAM = """
import json, os, signal, sys, threading, time
import numpy as np, yoke
how, number, times = sys.argv[1], getattr(signal, sys.argv[2]), int(sys.argv[3])
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_IGN if sys.argv[4:] else signal.SIG_DFL)
before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
net = yoke.nn.Linear(3, 1)
x = np.ones((4, 3), "f4")
calls = 0
def loss(a, b):  # a signal within a step, too
    global calls
    calls += 1
    if calls == 3:
        os.kill(os.getpid(), number)
        while times > 1:
            os.kill(os.getpid(), number)
    return yoke.mse(a, b)
try:
    n = len(yoke.fit(net, [(x, x[:, :1])] * 8, loss, out="run", signals=how if how != "None" else None, telemetry=0))
    print("returned", n)
except KeyboardInterrupt:
    print("KeyboardInterrupt")
except SystemExit as e:
    print("exit", e.code)
assert before == [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
about = json.load(open("run/run.json"))
print(about["ended"]["how"], os.path.exists("run/manifest.json"))
"""


@pytest.mark.parametrize("how,name,want", [
    ("save", "SIGINT", "returned SIGINT"), ("save", "SIGTERM", "returned SIGTERM"), ("save", "SIGHUP", "returned SIGHUP"),
    ("raise", "SIGINT", "KeyboardInterrupt SIGINT"), ("raise", "SIGTERM", "exit 143 SIGTERM"), ("None", "SIGINT", "KeyboardInterrupt SIGINT"),
])
def test_a_signal_ends_the_run_that_is_saved(how, name, want, program, tmp_path):
    first, last = program(PROGRAM, how, name, "1", cwd=tmp_path).strip().split("\n")
    ended, saved = last.split()
    assert saved == "True" and ended == want.split()[-1] and first.startswith(want.rsplit(" ", 1)[0])
    assert first != "returned 8" and 3 <= len(lines(tmp_path / "run", "train")) < 8


def test_an_ignored_hangup_changes_nothing(program, tmp_path):
    assert program(PROGRAM, "save", "SIGHUP", "1", "ignored", cwd=tmp_path).split() == ["returned", "8", "done", "True"]


def test_a_second_signal_acts_at_once(program, tmp_path):
    assert program(PROGRAM, "save", "SIGINT", "2", cwd=tmp_path).split("\n")[0] == "KeyboardInterrupt"
    path = tmp_path / "twice.py"
    path.write_text(PROGRAM)
    assert subprocess.run([sys.executable, path, "save", "SIGTERM", "2"], cwd=tmp_path, check=False, timeout=600).returncode == -signal.SIGTERM


def test_signals_are_of_the_main_thread(rng, tmp_path):
    with pytest.raises(ValueError, match="signals"):
        train(rng, tmp_path / "a", signals="never")
    got = []

    def work():
        try:
            train(rng, tmp_path / "b", signals="save")
        except ValueError as e:
            got.append(str(e))
        got.append(len(train(rng, tmp_path / "c")))

    before = signal.getsignal(signal.SIGINT)
    t = threading.Thread(target=work)
    t.start()
    t.join()
    assert "main thread" in got[0] and got[1] == 13 and signal.getsignal(signal.SIGINT) is before


KILLED = """
import os, signal
import numpy as np, yoke
net = yoke.nn.Linear(3, 1)
x = np.ones((4, 3), "f4")
yoke.fit(net, [(x, x[:, :1])] * 9, yoke.mse, out="run", log=lambda s: s.step == 5 and os.kill(os.getpid(), signal.SIGKILL), save_every=2)
"""


def test_a_killed_run_is_lost(program, tmp_path):
    program(KILLED, fails=True, cwd=tmp_path)
    top = json.loads(command("dashboard", "terminal", tmp_path / "run", "--json"))["runs"][0]
    assert top["state"] == "lost" and top["step"] == 5
    assert "ended" not in json.loads((tmp_path / "run" / "run.json").read_text())
