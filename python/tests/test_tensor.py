# SPDX-License-Identifier: Apache-2.0
"""Tensors: operators, dtypes, indexing, against NumPy in float64."""
import operator

import numpy as np
import pytest

import yoke

REAL = ["f32", "f64", "f16", "bf16"]
TYPES = REAL + ["i8", "u8", "i32", "i64", "bool"]


def close(got, want, dtype="f64"):
    tolerance = {"f16": 2e-3, "bf16": 2e-2, "f32": 2e-6}.get(str(dtype), 1e-13)
    got = np.asarray(got.numpy() if isinstance(got, yoke.Tensor) else got).astype("f8")
    want = np.asarray(want, "f8")
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def make(rng, dtype, shape=(3, 4)):
    if dtype == "bf16":
        pytest.importorskip("ml_dtypes")  # NumPy has none
    a = rng.integers(1, 6, shape) if dtype[0] in "iu" else rng.integers(0, 2, shape) > 0 if dtype == "bool" else \
        rng.uniform(0.5, 2, shape)
    t = yoke.tensor(a, dtype)
    return t, t.numpy().astype("f8")


@pytest.mark.parametrize("dtype", TYPES)
def test_a_round_trip_keeps_shape_dtype_and_numbers(rng, dtype):
    for shape in [(), (1,), (0,), (7,), (2, 0, 3), (2, 3, 5)]:
        t, a = make(rng, dtype, shape)
        assert t.shape == shape and t.dtype is getattr(yoke.dtype, dtype) and t.size == a.size and t.ndim == len(shape)
        assert not t.numpy().flags.writeable
        assert np.array_equal(yoke.tensor(t.numpy()).numpy(), t.numpy()) and yoke.tensor(t.numpy()).dtype is t.dtype


ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod]
COMPARE = [operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]


@pytest.mark.parametrize("op", ARITHMETIC + COMPARE, ids=lambda f: f.__name__)
def test_operators_promote_and_broadcast(rng, op):
    for a in ["f32", "f64", "i32", "i64", "u8"]:
        for b in ["f32", "f64", "i32", "i8"]:
            x, nx = make(rng, a, (3, 1, 4))
            y, ny = make(rng, b, (2, 1))
            got = op(x, y)
            both = {a, b}
            f = "f64" if "f64" in both else "f32"
            if op in COMPARE:
                assert got.dtype is yoke.dtype.bool
            elif both & {"f32", "f64"} or op is operator.truediv:
                assert got.dtype is getattr(yoke.dtype, f), (a, b, got.dtype)
            else:
                assert got.dtype is (yoke.i64 if "i64" in both else yoke.i32)
            if op in (operator.floordiv, operator.mod) and not got.dtype.name.startswith("i"):
                continue  # a quotient that rounds to a whole number in f32
            close(got, op(nx, ny), got.dtype.name)


def test_floor_division_and_remainder_are_pythons():
    a = np.array([7, -7, 7, -7, 6, -6, 0], "i4")
    b = np.array([2, 2, -2, -2, 3, 3, 5], "i4")
    for x, y in [(a, b), (a.astype("f8") + 0.5, b.astype("f8"))]:
        assert np.array_equal((yoke.tensor(x) // yoke.tensor(y)).numpy(), x // y)
        assert np.array_equal((yoke.tensor(x) % yoke.tensor(y)).numpy(), x % y)


def test_numbers_of_python_take_the_tensors_dtype(rng):
    for dtype in REAL + ["i32", "i64"]:
        x, a = make(rng, dtype)
        for got, want in [(x + 2, a + 2), (2 - x, 2 - a), (x * 3, a * 3), (7 // x, np.floor(7 / a))]:
            assert got.dtype is x.dtype
            close(got, want, dtype)
    i = yoke.tensor([1, 2], "i32")
    assert (i * 0.5).dtype is yoke.f32 and (i / 2).dtype is yoke.f32 and (i > 1.5).numpy().tolist() == [False, True]
    assert (yoke.tensor([True, False]) + 1).dtype is yoke.i64
    assert (yoke.tensor([1.0], "f16") + yoke.tensor([1.0], "bf16")).dtype is yoke.f32
    assert (yoke.tensor([1], "i8") + yoke.tensor([1], "u8")).dtype is yoke.i32
    assert (yoke.tensor([1.0], "f16") * yoke.tensor([3], "i64")).dtype is yoke.f16


def test_powers_bits_and_signs(rng):
    x, a = make(rng, "f64")
    close(x ** 2, a ** 2)
    close(x ** 0.5, a ** 0.5)
    close(2 ** x, 2 ** a)
    close(-x, -a)
    close(abs(-x), a)
    assert (+x) is x
    i, n = yoke.tensor([5, 12, 255], "i32"), np.array([5, 12, 255])
    for op in (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift):
        assert np.array_equal(op(i, 3).numpy(), op(n, 3))
    assert np.array_equal((~i).numpy(), ~n)
    assert np.array_equal((~yoke.tensor([True, False])).numpy(), [False, True])


def test_products_of_vectors_matrices_and_batches(rng):
    for a, b in [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 1, 2, 3), (4, 3, 6)),
                 ((3,), (5, 3, 4)), ((5, 2, 3), (3,))]:
        x, y = rng.normal(size=a), rng.normal(size=b)
        close(yoke.tensor(x) @ yoke.tensor(y), x @ y)


def test_numpy_on_the_left_leaves_the_operation_to_the_tensor(rng):
    x = yoke.tensor([1.0, 2.0])
    for got in (np.float32(2) * x, np.array([2.0, 2.0], "f4") * x, np.array(2, "f4") * x):
        assert isinstance(got, yoke.Tensor)
        assert got.numpy().tolist() == [2.0, 4.0]
    assert np.asarray(x).tolist() == [1.0, 2.0]


def test_numbers_out(rng):
    pytest.importorskip("ml_dtypes")
    assert yoke.tensor(3).item() == 3 and isinstance(yoke.tensor(3).item(), int)
    assert yoke.tensor(2 ** 62 + 1).item() == 2 ** 62 + 1
    assert float(yoke.tensor([2.5])) == 2.5 and int(yoke.tensor(7, "u8")) == 7 and bool(yoke.tensor(True)) is True
    assert yoke.tensor(1.5, "bf16").item() == 1.5 and [10, 20, 30][yoke.tensor(1)] == 20
    assert len(yoke.tensor([1, 2, 3])) == 3 and [int(x) for x in yoke.tensor([1, 2, 3])] == [1, 2, 3]
    with pytest.raises(ValueError, match="item: a tensor of 2 elements is no number"):
        yoke.tensor([1, 2]).item()
    with pytest.raises(TypeError):
        len(yoke.tensor(1.0))
    assert yoke.tensor([[1, 2]]).T.shape == (2, 1) and yoke.tensor([1.0]).astype("f64").dtype is yoke.f64


def keys():
    """Indices of an array of shape (4, 5, 6), of each kind and of kinds together."""
    one = [0, -1, 3, slice(None), slice(1, 3), slice(None, None, 2), slice(None, None, -1), slice(3, 0, -2), slice(2, 2),
           slice(-3, None), slice(0, 99), None, Ellipsis]
    for k in one:
        yield k
    yield ()
    for a in one[:10]:
        for b in one[3:9]:
            yield a, b
    yield None, 1, ..., slice(None, None, -2), None
    yield ..., 2
    yield 1, 2, 3
    yield [0, 2, 2]
    yield np.array([[0, 1], [-1, 3]])
    yield slice(1, 3), [0, 4, -1]
    yield [0, 1], [1, 2]
    yield [[0], [1]], [1, 2, 3]
    yield [0, 1], slice(None), [1, 5]
    yield 1, slice(None), [1, 5]
    yield slice(None), 2, [1, 5]
    yield ..., [0, 1, 2]
    yield None, [0, 1], ..., slice(None, None, -1)
    yield slice(None, None, -1), [3, 1], None, [0, 5]
    yield np.array([], "i8"),
    yield [0, 1], np.int64(2), slice(2, 5)


def test_indexing_is_numpys(rng):
    a = rng.normal(size=(4, 5, 6))
    x = yoke.tensor(a)
    n = 0
    for k in keys():
        want = a[k]
        got = x[k]
        assert got.shape == want.shape, k
        assert np.array_equal(got.numpy(), want), k
        n += 1
    assert n > 80
    i = yoke.tensor([0, -1, 2])
    assert np.array_equal(x[:, i].numpy(), a[:, [0, -1, 2]])


def test_bad_indices_are_errors_of_one_line(rng):
    x = yoke.tensor(np.zeros((4, 5)))
    for k, kind in [(4, IndexError), (-5, IndexError), ((0, 0, 0), IndexError), ((..., ...), IndexError), ([4], IndexError),
                    ([0.5], IndexError), (True, IndexError), ("a", Exception), (([0, 1], [0, 1, 2]), IndexError),
                    (np.array([True, False, True]), IndexError), (yoke.zeros((4, 4)) > 0, IndexError)]:
        with pytest.raises(kind) as e:
            x[k]
        assert "\n" not in str(e.value)


def test_parts_of_variables_are_assigned(rng):
    a = rng.normal(size=(4, 5))
    v = yoke.variable_of(a)
    for k, value in [((1, 2), 7.0), (slice(1, 3), np.ones(5)), ((..., -1), 2.0), ((slice(None), slice(1, 2)), 3.0), (0, 5)]:
        a[k] = value
        v[k] = value
    assert np.array_equal(v.numpy(), a)


def test_sums_sorts_and_shapes_beside_numpy(rng):
    a = rng.normal(size=(3, 4, 5))
    x = yoke.tensor(a)
    for axes in (None, 0, -1, (0, 2), (1,)):
        for keep in (False, True):
            close(x.sum(axes, keepdims=keep), a.sum(axes, keepdims=keep))
            close(x.mean(axes, keepdims=keep), a.mean(axes, keepdims=keep))
            close(x.reduce_max(axes, keepdims=keep), a.max(axes, keepdims=keep))
            close(x.var(axes, 0, keepdims=keep), a.var(axes, keepdims=keep))
    values, where = x.sort(1, True)
    close(values, -np.sort(-a, 1))
    assert np.array_equal(where.numpy(), np.argsort(-a, 1, kind="stable"))
    close(x.permute((2, 0, -2)), a.transpose(2, 0, 1))
    close(x.reshape((-1, 6)), a.reshape(-1, 6))
    close(yoke.concat([x, x], 2), np.concatenate([a, a], 2))
    close(yoke.pad(x, (1, 0, 2), (0, 0, 1), 9.0), np.pad(a, ((1, 0), (0, 0), (2, 1)), constant_values=9))
    close(x.cumsum(1), a.cumsum(1))
    close(yoke.select(x > 0, x, 0), np.where(a > 0, a, 0))
    close(x.clamp(-0.5, None), np.maximum(a, -0.5))
    with pytest.raises(IndexError, match="no axis 3"):
        x.sum(3)


UNARY = {"exp": np.exp, "log": np.log, "log1p": np.log1p, "expm1": np.expm1, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos,
         "tanh": np.tanh, "floor": np.floor, "ceil": np.ceil, "round": np.round, "sign": np.sign, "square": np.square,
         "rsqrt": lambda a: 1 / np.sqrt(a), "recip": lambda a: 1 / a, "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
         "relu": lambda a: np.maximum(a, 0), "silu": lambda a: a / (1 + np.exp(-a)), "neg": np.negative, "abs": np.abs}
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power, "min": np.minimum,
          "max": np.maximum, "mod": np.mod, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
          "gt": np.greater, "ge": np.greater_equal}


def test_elementwise_functions_beside_numpy(rng):
    a, b = rng.uniform(0.5, 2, (2, 3, 7))
    for name, f in UNARY.items():
        close(getattr(yoke, name)(yoke.tensor(a)), f(a))
    for name, f in BINARY.items():
        close(getattr(yoke, name)(yoke.tensor(a), yoke.tensor(b)), f(a, b))


def test_gradients_of_values_and_functions(rng):
    a = rng.normal(size=5)
    x = yoke.tensor(a)
    close(yoke.grad((x * x * x).sum(), [x])[0], 3 * a ** 2)
    close(yoke.grad(lambda v: (v ** 2).sum())(x), 2 * a)
    value, (gx, gy) = yoke.value_and_grad(lambda p, q: (p["a"] * q).sum(), (0, 1))({"a": x}, x)
    close(value, (a * a).sum())
    close(gx["a"], a)
    close(gy, a)
    second = yoke.grad(lambda v: yoke.grad(lambda u: (u ** 3).sum())(v).sum())(x)
    close(second, 6 * a)


def test_random_numbers_follow_from_seed_step_and_scope():
    def draw(seed, step):
        yoke.random_set(seed, step)
        with yoke.scope("draw"):
            return yoke.normal("f32", (100,)).numpy(), yoke.normal("f32", (100,)).numpy()

    one, two = draw(1, 0)
    assert not np.array_equal(one, two)
    again, _ = draw(1, 0)
    assert np.array_equal(one, again)
    assert not np.array_equal(one, draw(2, 0)[0]) and not np.array_equal(one, draw(1, 1)[0])


def test_chains_and_temporaries_leave_nothing(rng):
    x = yoke.tensor(np.ones(16, "f4"))
    before = yoke.stats().live_handles
    y = x
    for _ in range(100):
        y = (y + x) * 1.0 - x // 2
    y.numpy()
    del y
    assert yoke.stats().live_handles == before


def test_a_host_scalar_takes_the_dtype_of_the_other_operand():
    x, s = yoke.tensor([1.0], "f64"), yoke.scalar(0.1)
    assert (x * s).item() == (s * x).item() == 0.1 and (yoke.tensor([3]) * yoke.scalar(2)).tolist() == [6]
    yoke.scalar_set(s, 0.3)
    assert yoke.mul(x, s).item() == 0.3 and (yoke.ones(1, dtype="f16") * s).dtype is yoke.f16
