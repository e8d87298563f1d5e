# SPDX-License-Identifier: Apache-2.0
"""Shared memory with NumPy, PyTorch and JAX in both directions, without copies; refused arrays; lifetimes."""
import ctypes
import gc
import itertools
import os
import random
import resource
import threading
import time
import weakref

import numpy as np
import pytest

import yoke
from conftest import SEED

torch = None
try:
    import torch
except ImportError:
    pass
jax = None
try:
    import jax
    import jax.numpy as jnp
except ImportError:
    pass


# Does the device that the tests run on compute in the host's memory?  Others copy, and so what is written later is not seen.
SHARES = os.environ.get("YOKE_BACKEND", "cpu").startswith("cpu")
shared = pytest.mark.skipif(not SHARES, reason="the device has no addresses of the host: it copies")


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def address(a):
    return a.__array_interface__["data"][0]


@shared
def test_numpy_comes_in_where_it_lies_at_any_alignment():
    base = np.arange(200, dtype="f4")
    for skip in (0, 1, 2, 3, 5, 8, 15, 16, 17):
        a = base[skip:skip + 100]
        up = yoke.stats().bytes_up
        t = yoke.from_dlpack(a)
        assert yoke.stats().bytes_up == up
        assert address(t.numpy()) == address(a)
        a[0] = 1e6 + skip  # what is written is seen
        assert (t + 0)[0].item() == 1e6 + skip
        want = a.astype("f8")
        np.testing.assert_allclose((t * 2 + t).sum().item(), (want * 3).sum(), rtol=1e-6)
        m = t.reshape((10, 10))
        np.testing.assert_allclose((m @ m).numpy(), want.reshape(10, 10) @ want.reshape(10, 10), rtol=1e-5)
        np.testing.assert_allclose(yoke.softmax(m * 1e-6).numpy().sum(1), 1, rtol=1e-5)
        assert np.array_equal(yoke.bitcast(t, "u8").numpy(), a.view("u1"))
        assert np.array_equal(yoke.bitcast(t, "f64").numpy(), np.ascontiguousarray(a).view("f8"))


def test_every_dtype_and_shape_comes_in_and_goes_out():
    for dtype in ("f4", "f8", "f2", "i1", "u1", "i4", "i8", "?"):
        for shape in [(), (1,), (0, 3), (3, 5)]:
            a = np.ones(shape, dtype)
            t = yoke.from_dlpack(a)
            assert t.shape == shape
            b = np.from_dlpack(t)
            assert np.array_equal(a, b) and b.dtype == a.dtype and b.shape == shape and b.flags.writeable != SHARES


@shared
def test_axes_in_another_order_are_not_copied_and_gaps_are():
    a = np.arange(60, dtype="f4").reshape(3, 4, 5)
    t = yoke.from_dlpack(a.transpose(2, 0, 1), copy=False)
    a[0, 0, 1] = -5
    assert (t + 0)[1, 0, 0].item() == -5
    assert np.array_equal(t.numpy(), a.transpose(2, 0, 1))
    assert np.array_equal(yoke.from_dlpack(a[:, ::2]).numpy(), a[:, ::2])
    with pytest.raises(BufferError, match="do not lie one after another"):
        yoke.from_dlpack(a[:, ::2], copy=False)
    b = np.broadcast_to(np.arange(5.0), (3, 5))
    assert np.array_equal(yoke.from_dlpack(b).numpy(), b)


@shared
def test_out_is_the_same_bytes_and_cannot_be_written():
    x = yoke.tensor(np.arange(1000, dtype="f4")) + 1
    a, b = x.numpy(), np.from_dlpack(x)
    assert address(a) == address(b)
    with pytest.raises(ValueError):
        a[0] = 1
    with pytest.raises(ValueError):
        b[0] = 1
    with pytest.raises(ValueError):
        a.setflags(write=True)


@pytest.mark.skipif(not os.environ.get("YOKE_TEST_LONG"), reason="takes 2 GiB: YOKE_TEST_LONG=1")
def test_a_gibibyte_in_and_out_is_no_copy():
    """Less than 1 MiB more, and at most a thousandth of a copy's time; each way by its best of five."""
    a = np.ones(1 << 28, "f4")
    yoke.from_dlpack(a[:10]).numpy()

    def cost(fn):
        took = []
        for _ in range(5):
            before, begin = resident(), time.perf_counter()
            x = fn()
            took.append(time.perf_counter() - begin)
            assert resident() - before < 1 << 20
            del x
        return min(took)

    begin = time.perf_counter()
    b = a.copy()
    copy = time.perf_counter() - begin
    del b
    t = yoke.from_dlpack(a)
    for fn in (lambda: yoke.from_dlpack(a), lambda: t.numpy(), lambda: np.from_dlpack(t)):
        assert cost(fn) < 1e-3 * copy


def test_copy_copies():
    a = np.ones(10, "f4")
    t = yoke.from_dlpack(a, copy=True)
    a[0] = 5
    assert t[0].item() == 1
    b = np.from_dlpack(t, copy=True)
    assert b.flags.writeable and address(b) != address(t.numpy())


def test_a_variable_given_out_stays_as_it_was():
    v = yoke.variable_of(np.ones(1000, "f4"))
    a = v.numpy()
    for _ in range(5):
        yoke.assign(v, v + 1)
        yoke.eval()
    assert (a == 1).all() and (v.numpy() == 6).all() and address(v.numpy()) != address(a)
    yoke.put(v, np.zeros(1000, "f4"))
    assert (a == 1).all()


class Owner:
    """An array's memory with a deleter that tells."""

    def __init__(self):
        self.a = np.arange(100, dtype="f4")

    def __dlpack__(self, **kwargs):
        self.memory = self.a
        return Capsule(self).capsule

    def __dlpack_device__(self):
        return (1, 0)


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("type", ctypes.c_int32), ("id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("t", DLTensor)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
capsule_new = ctypes.pythonapi.PyCapsule_New
capsule_new.restype, capsule_new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
NAME = b"dltensor_versioned"


def capsule(a, shape=None, strides=None, device=1, code=2, bits=32, lanes=1, major=1, name=NAME, data=True, ndim=None):
    """A capsule of any content: it, how often its memory was given back, and what has to stay."""
    given = []
    shape = list(a.shape) if shape is None else shape
    dims = (ctypes.c_int64 * len(shape))(*shape)
    steps = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
    deleter = DELETER(lambda _: given.append(1))
    m = Versioned(major, 0, None, ctypes.cast(deleter, ctypes.c_void_p), 0,
                  DLTensor(address(a) if data else None, device, 0, len(shape) if ndim is None else ndim, code, bits, lanes,
                           dims, steps, 0))
    return capsule_new(ctypes.addressof(m), name, None), given, (a, dims, steps, deleter, m)


@shared
def test_memory_is_given_back_once_in_any_order_of_dropping():
    a = np.arange(100, dtype="f4")
    for order in range(4):
        c, given, alive = capsule(a)
        t = yoke.from_dlpack(c)
        y = t + 1
        out = t.numpy()
        things = {"t": t, "y": y, "out": out, "c": c}
        del t, y, out, c
        names = ["t", "y", "out", "c"]
        for n in names[order:] + names[:order]:
            assert not given
            if n == "y":
                assert things["y"].numpy()[5] == 6
            if n == "out":
                assert things["out"][5] == 5
            del things[n]
        gc.collect()
        yoke.sync()
        assert given == [1], order


def test_memory_is_given_back_from_another_thread_and_by_copies():
    a = np.arange(100, dtype="f4")
    c, given, alive = capsule(a)
    box = [yoke.from_dlpack(c)]
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    yoke.sync()
    assert given == [1]
    c, given, alive = capsule(a)
    t = yoke.from_dlpack(c, copy=True)
    assert given == [1] and t[3].item() == 3


@shared
def test_numpy_holds_the_tensor_and_the_tensor_holds_numpy():
    class Array(np.ndarray):
        pass

    a = np.arange(10, dtype="f4").view(Array)
    gone = weakref.ref(a)
    t = yoke.from_dlpack(a)
    del a
    gc.collect()
    assert gone() is not None and t.numpy()[9] == 9
    b = t.numpy()
    del t
    gc.collect()
    assert b[9] == 9
    del b
    yoke.sync()
    gc.collect()
    assert gone() is None


BAD = [
    (dict(device=2), BufferError, "device of kind 2"),
    (dict(bits=31), TypeError, "31 bits"),
    (dict(code=5), TypeError, "kind 5"),
    (dict(lanes=4), TypeError, "4 lanes"),
    (dict(major=2), BufferError, "version 2.0"),
    (dict(shape=[10], strides=[-1]), ValueError, "runs backwards"),
    (dict(shape=[-1]), ValueError, "negative length"),
    (dict(shape=[1 << 40, 1 << 40]), ValueError, "too large"),
    (dict(ndim=9, shape=[1] * 9), ValueError, "9 axes"),
    (dict(ndim=-1), ValueError, "-1 axes"),
    (dict(data=False), ValueError, "no data"),
    (dict(name=b"something"), ValueError, "none of DLPack's"),
]


@pytest.mark.parametrize("how,kind,text", BAD, ids=[b[2] for b in BAD])
def test_bad_capsules_are_one_line_and_no_crash(how, kind, text):
    c, given, alive = capsule(np.zeros(10, "f4"), **how)
    with pytest.raises(kind, match=text) as e:
        yoke.from_dlpack(c)
    assert "\n" not in str(e.value)
    yoke.sync()
    assert len(given) == (0 if "major" in how or "name" in how else 1)


def test_a_capsule_serves_once():
    c, given, alive = capsule(np.zeros(10, "f4"))
    yoke.from_dlpack(c)
    with pytest.raises(ValueError, match="used before"):
        yoke.from_dlpack(c)
    with pytest.raises(TypeError):
        yoke.from_dlpack([1, 2])


def test_arrays_that_are_no_capsules():
    assert yoke.tensor(np.arange(4, dtype=">f4")).numpy().tolist() == [0, 1, 2, 3]
    for a in (np.zeros(3, "u2"), np.zeros(3, "c8"), np.array(["a"]), np.array([object()])):
        with pytest.raises(TypeError):
            yoke.tensor(a)
    with pytest.raises((TypeError, BufferError)):
        yoke.from_dlpack(np.zeros(3, "u2"))
    with pytest.raises(BufferError):
        yoke.tensor([1.0]).__dlpack__(max_version=(1, 0), dl_device=(2, 0))
    with pytest.raises(BufferError):
        yoke.tensor([1.0]).__dlpack__(copy=False)


def test_bfloat16_goes_by_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    t = yoke.tensor(a)
    assert t.dtype is yoke.bf16 and t.numpy().dtype == a.dtype and np.array_equal(t.numpy(), a)


def test_bfloat16_of_numbers_needs_no_ml_dtypes(rng, monkeypatch):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = rng.integers(0, 1 << 32, 100_000, dtype="u4").view("f4")
    a[:6] = [np.inf, -np.inf, np.nan, 0, -0.0, 3.3895314e38 * 1.001]
    a[6:9] = np.array([0x3F808000, 0x3F818000, 0x3F808001], "u4").view("f4")  # ties, and above one
    with np.errstate(all="ignore"):
        want = a.astype(ml_dtypes.bfloat16)
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    t = yoke.tensor(a, "bf16")
    assert t.dtype is yoke.bf16
    got, there = yoke.bitcast(t, "u8").numpy().view("u2"), ~np.isnan(a)
    assert np.array_equal(got[there], want.view("u2")[there]) and np.isnan(want[~there].astype("f4")).all()
    assert (got[~there] & 0x7F80 == 0x7F80).all() and (got[~there] & 0x7F).all()
    assert yoke.tensor(1.5, "bf16").item() == 1.5 and yoke.tensor([1, 2], "bf16").sum().item() == 3
    v = yoke.variable_of([1.0, 2.0], dtype="bf16")
    yoke.put(v, [3.0, 4.0])
    assert yoke.cast(v, "f32").numpy().tolist() == [3, 4]
    with pytest.raises(TypeError, match="install ml_dtypes"):
        v.numpy()


# ---- other libraries: an array of a range, its address, its from_dlpack ----

class NumPy:
    name, module = "NumPy", np
    arange = staticmethod(lambda n: np.arange(n, dtype="f4"))
    address = staticmethod(address)
    take = staticmethod(np.from_dlpack)


class Torch:
    name, module = "PyTorch", torch
    arange = staticmethod(lambda n: torch.arange(n, dtype=torch.float32))
    address = staticmethod(lambda a: a.data_ptr())
    take = staticmethod(lambda t: torch.from_dlpack(t))


class Jax:
    name, module = "JAX", jax
    arange = staticmethod(lambda n: jnp.arange(n, dtype=jnp.float32))
    address = staticmethod(lambda a: a.unsafe_buffer_pointer())
    take = staticmethod(lambda t: jnp.from_dlpack(t))


@pytest.fixture(params=[NumPy, Torch, Jax], ids=lambda k: k.name)
def kind(request):
    if request.param.module is None:
        pytest.skip(f"no {request.param.name}")
    return request.param


@shared
def test_both_ways_without_a_copy(kind):
    a = kind.arange(1000)
    up = yoke.stats().bytes_up
    t = yoke.from_dlpack(a)
    assert address(t.numpy()) == kind.address(a) and yoke.stats().bytes_up == up
    y = t * 2 + 1
    copies = yoke._core._copies()
    b = kind.take(y)
    assert yoke._core._copies() == copies
    if kind.address(b) != address(y.numpy()):  # an importer may copy what it holds to be too little aligned
        assert kind is Jax and address(y.numpy()) % 64
    want = np.arange(1000, dtype="f4") * 2 + 1
    assert np.array_equal(np.asarray(b), want)
    back = yoke.from_dlpack(b)
    assert address(back.numpy()) == kind.address(b)
    del y, t
    gc.collect()
    assert np.array_equal(np.asarray(b), want) and np.array_equal(back.numpy(), want)
    copy = yoke.from_dlpack(a, copy=True)
    assert address(copy.numpy()) != kind.address(a)


def test_every_order_of_dropping(kind):
    """The array that came in, its tensor, a value that is pending, one that was computed, what went out of both, an array of
    another thread's: what is left is right, whatever has gone before."""
    n = 300
    want = np.arange(n, dtype="f4")
    names = ["a", "t", "pending", "computed", "out", "same"]
    orders = list(itertools.permutations(names))
    if not os.environ.get("YOKE_TEST_LONG"):
        orders = random.Random(SEED).sample(orders, 6)
    for order in orders:
        a = kind.arange(n)
        t = yoke.from_dlpack(a)
        computed = t * 3
        computed.numpy()
        box = {"a": a, "t": t, "pending": t + 1, "computed": computed, "out": kind.take(computed), "same": kind.take(t)}
        del a, t, computed
        for k, name in enumerate(order):
            if k % 2:
                thread = threading.Thread(target=box.pop, args=(name,))
                thread.start()
                thread.join()
            else:
                del box[name]
            for left, x in box.items():
                by, more = {"pending": (1, 1), "computed": (3, 0), "out": (3, 0)}.get(left, (1, 0))
                got = x.numpy() if isinstance(x, yoke.Tensor) and left != "pending" else np.asarray(x) if left != "pending" else None
                assert got is None or np.array_equal(got, want * by + more), (order, name, left)
        gc.collect()
    handles = yoke.stats().live_handles
    for _ in range(3):
        a = kind.arange(n)
        b = kind.take(yoke.from_dlpack(a) + 1)
        del a, b
        gc.collect()
        yoke.sync()
    assert yoke.stats().live_handles <= handles


ELSEWHERE = """
import numpy as np, yoke
try:
    yoke.device("opencl:0").__enter__()
except yoke.DeviceError as e:
    print("none:", e)
    raise SystemExit(0)
a = np.arange(100, dtype="f4")
t = yoke.from_dlpack(a)
y = t * 2
before = yoke._core._copies()
assert np.array_equal(np.from_dlpack(y), a * 2) and np.array_equal((t + y).numpy(), a * 3)
times, size = (n - m for n, m in zip(yoke._core._copies(), before))
if times:
    assert (times, size) == (2, 800)
    try:
        y.__dlpack__(max_version=(1, 0), copy=False)
        raise SystemExit("shared")
    except BufferError as e:
        assert "no address on the host" in str(e)
print("right", times)
"""


@pytest.mark.skipif(not os.environ.get("YOKE_TEST_OPENCL"), reason="no OpenCL backend is built beside the tests")
def test_a_device_without_the_hosts_addresses_copies_and_counts(program):
    said = program(ELSEWHERE, YOKE_PLUGIN_PATH=os.path.dirname(os.environ["YOKE_TEST_OPENCL"]), YOKE_SELFTEST="0")
    assert said.startswith("right") or said.startswith("none"), said


@pytest.mark.skipif(torch is None, reason="no PyTorch")
@shared
def test_what_pytorch_has_besides():
    a = torch.arange(100, dtype=torch.float32)[1:]
    t = yoke.from_dlpack(a)
    a[0] = 50
    assert (t + 0)[0].item() == 50
    half = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)
    t = yoke.from_dlpack(half)
    assert t.dtype is yoke.bf16 and (t + t).cast("f32").numpy().tolist() == [3.0, -4.0]
    assert torch.from_dlpack(t + t).dtype is torch.bfloat16
    m = torch.arange(12, dtype=torch.float64).reshape(3, 4).T
    assert np.array_equal(yoke.from_dlpack(m).numpy(), m.numpy())
    with pytest.raises((BufferError, RuntimeError)):  # PyTorch's own refusal
        yoke.from_dlpack(torch.ones(3, requires_grad=True))
