# SPDX-License-Identifier: Apache-2.0
"""Errors, scopes, threads, forks, Ctrl-C, constant memory."""
import gc
import os
import resource
import sys
import threading
import time

import numpy as np
import pytest

import yoke


def lines(e):
    assert "\n" not in str(e.value)
    return str(e.value)


def test_errors_are_exceptions_with_yokes_line():
    x = yoke.tensor(np.zeros((2, 3), "f4"))
    with pytest.raises(ValueError, match="add"):
        x + yoke.tensor(np.zeros(4, "f4"))
    with pytest.raises(IndexError, match="no axis 5"):
        yoke.softmax(x, 5)
    with pytest.raises(TypeError, match="takes a tensor"):
        yoke.exp("a")
    with pytest.raises(TypeError):
        yoke.matmul(yoke.tensor([[True]]), yoke.tensor([[True]]))
    with pytest.raises(ValueError, match="frobnicate"):
        yoke.optim_new("frobnicate")
    with pytest.raises(yoke.DeviceError):
        with yoke.device("nosuch:0"):
            pass
    assert (yoke.sqrt(yoke.tensor([4])).item(), yoke.sqrt(yoke.tensor([4])).dtype) == (2, yoke.f32)
    assert issubclass(yoke.DeviceError, RuntimeError) and issubclass(yoke.ReleasedError, RuntimeError)
    # and nothing of them stays
    assert yoke.error_code() == 0 and (x + 1).numpy().sum() == 6


def test_a_value_that_is_released_says_so():
    v = yoke.variable_of(np.ones(3, "f4"))
    with yoke.scope("step"):
        y = v * 2
        z = y + 1
        yoke.eval(z)
        yoke.assign(v, v + 1)
        yoke.eval()
        with pytest.raises(yoke.ReleasedError):
            y.numpy()


def test_what_objects_hold_is_computed_once():
    x = yoke.tensor(np.arange(8, dtype="f4"))
    a = x * 2
    b = a + 1
    b.numpy()
    assert yoke.stats().repeated == yoke.stats().repeated
    before = yoke.stats().repeated
    a.numpy()
    assert yoke.stats().repeated == before


def test_tensors_of_a_scope_are_gone_behind_it():
    with yoke.scope("outer"):
        with yoke.scope("inner"):
            a = yoke.tensor([1.0]) + 1
            kept = yoke.keep(a * 2)
            lifted = yoke.lift(a * 3)
        with pytest.raises(ValueError, match="after its scope ended") as e:
            a + 1
        lines(e)
        assert lifted.item() == 6
    assert kept.item() == 4
    with pytest.raises(ValueError):
        lifted.numpy()
    assert "gone" in repr(lifted)
    s = yoke.scope_begin("a")
    yoke.scope_end(s)
    with pytest.raises(ValueError, match="no such scope"):
        yoke.scope_end(s)


def test_a_freed_tensor_says_so():
    x = yoke.tensor([1.0]) + 1
    yoke.free(x)
    with pytest.raises(ValueError, match="after it was freed"):
        x + 1
    with pytest.raises(ValueError):
        yoke.free(x)


def rss():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize("how", ["recorded", "evaluated", "from_host"])
def test_tensors_that_are_dropped_leave_nothing(how):
    n = 1_000_000 if os.environ.get("YOKE_TEST_LONG") else 60_000
    x = yoke.tensor(np.ones(16, "f4"))
    one = np.ones(4, "f4")

    def some(count):
        y = x
        for i in range(count):
            if how == "from_host":
                y = yoke.from_dlpack(one)
            else:
                y = x + x if i % 3 else y + x
            if how == "evaluated" and i % 500 == 0:
                y.numpy()
        y.numpy()

    some(n // 4)
    handles, before = yoke.stats().live_handles, rss()
    some(n)
    assert yoke.stats().live_handles == handles
    assert rss() - before < 2 << 20


def test_modules_that_are_dropped_leave_nothing():
    n = 10_000 if os.environ.get("YOKE_TEST_LONG") else 500

    def some(count):
        for _ in range(count):
            yoke.nn.Sequential(yoke.nn.Linear(4, 4), yoke.nn.ReLU())
        gc.collect()
        yoke.sync()

    some(n // 2)
    handles, before = yoke.stats().live_handles, rss()
    some(n)
    assert yoke.stats().live_handles == handles and rss() - before < 4 << 20


def test_each_thread_has_a_context_and_frees_what_others_made():
    got = []

    def work():
        x = yoke.tensor(np.arange(1000, dtype="f4"))
        got.append(((x * 2).sum().item(), x))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [g[0] for g in got] == [999000.0] * 3
    with pytest.raises((ValueError, RuntimeError)) as e:  # its thread's context went with the thread
        got[0][1] + 1
    lines(e)
    got.clear()
    assert yoke.tensor([1.0]).item() == 1


def test_the_gil_is_free_while_yoke_waits():
    n = 0
    done = threading.Event()

    def count():
        nonlocal n
        while not done.is_set():
            n += 1
            time.sleep(0)

    x = yoke.tensor(np.ones((700, 700), "f4"))
    (x @ x).numpy()
    t = threading.Thread(target=count)
    was = sys.getswitchinterval()
    sys.setswitchinterval(100)  # nobody is made to give the GIL away
    try:
        t.start()
        before = n
        for _ in range(1000):  # a busy machine may leave the other thread no processor meanwhile
            (x @ x).numpy()
            if n > before:
                break
        assert n > before
    finally:
        sys.setswitchinterval(was)
        done.set()
        t.join()


CTRL_C = """
import os, signal, threading, time
import numpy as np, yoke
signal.signal(signal.SIGINT, signal.default_int_handler)  # who starts tests in the background has it ignored
x = yoke.tensor(np.ones((1200, 1200), "f4"))
y = x
for _ in range(40):
    y = y @ x * 1e-3
try:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    y.numpy()
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
# it goes on, and the next call waits for it
print((yoke.tensor([1.0]) + 1).item(), y.shape)
"""


def test_ctrl_c_ends_a_wait(program):
    assert program(CTRL_C, YOKE_THREADS="1").split("\n")[:2] == ["interrupted", "2.0 (1200, 1200)"]


FIT = """
import os, pathlib, signal
import numpy as np, yoke
signal.signal(signal.SIGINT, signal.default_int_handler)
net = yoke.nn.Linear(3, 1)
x = np.ones((4, 3), "f4")
def told(s):
    if s.step == 5:
        os.kill(os.getpid(), signal.SIGINT)
try:
    yoke.fit(net, [(x, x[:, :1])] * 1000, yoke.mse, out="run", log=told)
except KeyboardInterrupt:
    print("interrupted", pathlib.Path("run/manifest.json").exists())
"""


def test_ctrl_c_ends_a_run_that_is_saved(program, tmp_path):
    assert program(FIT, cwd=tmp_path).strip() == "interrupted True"


FORK = """
import os, sys
import numpy as np, yoke
x = yoke.tensor(np.ones(4, "f4")) + 1
x.numpy()
pid = os.fork()
if pid == 0:
    try:
        (x + 1).numpy()
        os._exit(1)
    except yoke.DeviceError as e:
        os._exit(7 if "fork" in str(e) else 2)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), x.numpy().sum())
"""


def test_a_forked_child_gets_an_error_at_once(program):
    # Python 3.12 itself warns of a fork beside other threads
    assert program(FORK, PYTHONWARNINGS="ignore::DeprecationWarning").strip() == "7 8.0"


SPAWN = """
import multiprocessing
import numpy as np
def work(n):
    import yoke
    return (yoke.tensor(np.ones(n, "f4")) * 2).sum().item()
if __name__ == "__main__":
    import yoke
    yoke.tensor([1.0]).numpy()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, [3, 4]))
"""


def test_spawned_processes_work(program):
    assert program(SPAWN).strip() == "[6.0, 8.0]"


def test_nothing_is_said_at_exit(program):
    text = """
import numpy as np, yoke
kept = yoke.tensor(np.ones(100, "f4"))
out = (kept * 2).numpy()
inn = yoke.from_dlpack(np.ones(10, "f4"))
net = yoke.nn.Sequential(yoke.nn.Linear(2, 3))
o = yoke.optim.AdamW(net)
s = yoke.scope_begin("open")
t = kept + 1
"""
    assert program(text) == ""


def test_an_error_names_the_python_line(program):
    text = """
import numpy as np, yoke
def model(x):
    return yoke.check_finite(yoke.log(x))
y = model(yoke.tensor([-1.0]))
y.numpy()
"""
    said = program(text, fails=True, YOKE_TRACE_OPS="1")
    assert "program.py:4 in model" in said.strip().split("\n")[-1]


def test_settings_devices_and_profiles(tmp_path):
    was = yoke.setting_get("plan.max")
    with yoke.setting("plan.max", 3):
        assert yoke.setting_get("plan.max") == "3"
    assert yoke.setting_get("plan.max") == was
    with pytest.raises(ValueError):
        with yoke.setting("plan.max", "many"):
            pass
    with pytest.raises(ValueError, match="no setting"):
        with yoke.setting("plan.maximum", 3):
            pass
    x = yoke.tensor([1.0])
    with yoke.device("cpu:0"):
        y = yoke.tensor([2.0])
        assert (y * 2).item() == 4
        if x.device == "cpu:0":  # the thread's context there
            assert (x + y).item() == 3
    assert (y + 1).item() == 3 and (x + 1).item() == 2
    with yoke.profile(tmp_path / "trace.json") as p:
        (yoke.tensor(np.ones(1000, "f4")) * 2 + 1).numpy()
    assert (tmp_path / "trace.json").stat().st_size > 100 and "total" in p.table().split("\n")[0]
    assert any(r.calls > 0 for r in p.rows())
    assert yoke.stats().evals > 0 and isinstance(yoke.counters().launches, int)
    with pytest.raises(AttributeError, match="evals"):
        yoke.stats().eval


@pytest.mark.parametrize("call, hint", [
    (lambda x: x.backward(), "value_and_grad"), (lambda x: x.grad, "value_and_grad"), (lambda x: x.add_(1), "x = x.add"),
    (lambda x: x.zero_(), "an operation"), (lambda x: yoke.no_grad(), "nothing is needed"), (lambda x: yoke.save(x, "f"), "net.save")])
def test_names_of_pytorch_that_there_are_not_say_what_to_write(call, hint):
    with pytest.raises(AttributeError, match="has no '") as e:
        call(yoke.ones(2))
    assert hint in str(e.value) and "\n" not in str(e.value)
    assert not hasattr(yoke.ones(2), "backward") and not hasattr(yoke, "no_grad") and "no_grad" not in dir(yoke)
