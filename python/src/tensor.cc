// SPDX-License-Identifier: Apache-2.0
// The class Tensor: a handle as an object, with Python's operators and NumPy's indexing.
//
// It is a type of its own and no nanobind class, since an operation costs little more than its object.
#include "core.h"
#include "docs.h"


namespace py {

void tensor_link(Tensor *, Scope *);
void tensor_unlink(Tensor *);
PyObject *tensor_numpy(PyObject *, PyObject *);
PyObject *tensor_dlpack(PyObject *, PyObject *, PyObject *);
PyObject *tensor_dlpack_device(PyObject *, PyObject *);

PyTypeObject *tensor_type;

// ---- objects ----

static Tensor *object_of(yoke_tensor *h, Context *ctx, Held held)
{
	Tensor *t = PyObject_New(Tensor, tensor_type);
	if (!t)
		throw nb::python_error();
	t->h = h;
	t->ctx = ctx;
	t->scope = nullptr;
	t->next = t->prev = nullptr;
	t->owner = nullptr;
	t->held = held;
	return t;
}

PyObject *give(yoke_tensor *h, Context *ctx, bool root)
{
	if (!h)
		fail();
	Tensor *t = object_of(h, ctx, Held::OURS);
	if (ctx && ctx->top)
		tensor_link(t, ctx->top);
	else if (root && !yoke_keep(h))
		fail();
	return reinterpret_cast<PyObject *>(t);
}

PyObject *lend(yoke_tensor *h, Context *ctx, PyObject *owner)
{
	if (!h)
		fail();
	Tensor *t = object_of(h, ctx, Held::LENT);
	t->owner = Py_NewRef(owner);
	return reinterpret_cast<PyObject *>(t);
}

static void dealloc(PyObject *o)
{
	Tensor *t = as_tensor(o);
	PyTypeObject *type = Py_TYPE(o);
	if (t->scope)
		tensor_unlink(t);
	if (t->held == Held::OURS) {
		yoke_free(t->h);
		if (yoke_error_code()) // of one whose context is gone
			yoke_error_clear();
	}
	Py_XDECREF(t->owner);
	PyObject_Free(o);
	Py_DECREF(reinterpret_cast<PyObject *>(type));
}

// A function that throws, as one that Python calls.
template <typename F> static PyObject *guarded(F fn)
{
	try {
		return fn();
	} catch (nb::python_error &e) {
		e.restore();
	} catch (const std::exception &e) {
		PyErr_SetString(PyExc_RuntimeError, e.what());
	}
	return nullptr;
}

// ---- arithmetic ----

using Two = yoke_tensor *(*)(yoke_tensor *, yoke_tensor *);
using One = yoke_tensor *(*)(yoke_tensor *);

static bool is_operand(PyObject *o)
{
	return is_tensor(o) || PyFloat_Check(o) || PyLong_Check(o) || PyList_Check(o) || PyTuple_Check(o) ||
	       PyObject_HasAttrString(o, "__array__");
}

static PyObject *two(PyObject *a, PyObject *b, Two fn, const char *name, bool real = false)
{
	if (is_tensor(a) && is_tensor(b) && !real && as_tensor(a)->held < Held::GONE && as_tensor(b)->held < Held::GONE) { // what is most often met
		Tensor *x = as_tensor(a), *y = as_tensor(b);
		if (yoke_dtype(x->h) == yoke_dtype(y->h))
			return guarded([&] {
				enter();
				return give(fn(x->h, y->h), x->ctx);
			});
	}
	if (!is_operand(a) || !is_operand(b))
		Py_RETURN_NOTIMPLEMENTED;
	return guarded([&] {
		Op x, y;
		enter();
		x.take(a, false, name);
		y.take(b, false, name);
		promote({ &x, &y }, real);
		return give(fn(x.h, y.h), x.number ? y.ctx : x.ctx);
	});
}

static bool is_real(yoke_tensor *t)
{
	const int d = yoke_dtype(t);
	if (d < 0) // of a freed tensor: computing with it is an error
		yoke_error_clear();
	return d == yoke_f32 || d == yoke_f64 || d == yoke_f16 || d == yoke_bf16;
}

// Temporary results of one expression.
struct Chain {
	std::vector<yoke_tensor *> t;
	yoke_tensor *operator()(yoke_tensor *x)
	{
		if (x)
			t.push_back(x);
		return x;
	}
	~Chain()
	{
		for (yoke_tensor *x : t)
			yoke_free(x);
	}
};

// Of the quotient and the remainder towards minus infinity, as Python has them.
static yoke_tensor *remainder(yoke_tensor *a, yoke_tensor *b)
{
	Chain c;
	yoke_tensor *r = c(yoke_mod(a, b)), *zero = c(yoke_const(0));
	yoke_tensor *other = c(yoke_ne(c(yoke_lt(r, zero)), c(yoke_lt(b, zero))));
	yoke_tensor *wrong = c(yoke_and(c(yoke_ne(r, zero)), other));
	return yoke_select(wrong, c(yoke_add(r, b)), r);
}

static yoke_tensor *floor_div(yoke_tensor *a, yoke_tensor *b)
{
	Chain c;
	yoke_tensor *q = yoke_div(c(yoke_sub(a, c(remainder(a, b)))), b);
	if (!q || !is_real(q))
		return q;
	c(q);
	return yoke_round(q);
}

// A matrix product, also of vectors.
static yoke_tensor *product(yoke_tensor *a, yoke_tensor *b)
{
	Chain c;
	const int ra = yoke_rank(a), rb = yoke_rank(b);
	if (ra != 1 && rb != 1)
		return yoke_matmul(a, b, 0);
	const int64_t row[] = { 1, yoke_dim(a, -1) }, column[] = { yoke_dim(b, 0), 1 };
	yoke_tensor *x = ra == 1 ? c(yoke_reshape(a, 2, row)) : a, *y = rb == 1 ? c(yoke_reshape(b, 2, column)) : b;
	yoke_tensor *p = c(yoke_matmul(x, y, 0));
	int64_t dims[YOKE_MAX_RANK];
	int n = 0;
	for (int i = 0; i < yoke_rank(p); i++)
		if (!(ra == 1 && i == yoke_rank(p) - 2) && !(rb == 1 && i == yoke_rank(p) - 1))
			dims[n++] = yoke_dim(p, i);
	return yoke_reshape(p, n, dims);
}

static PyObject *power(PyObject *a, PyObject *b, PyObject *mod)
{
	if (mod != Py_None || !is_operand(a) || !is_operand(b))
		Py_RETURN_NOTIMPLEMENTED;
	return guarded([&] {
		Op x, y;
		enter();
		x.take(a, false, "pow");
		if (PyLong_Check(b) && PyLong_AsLong(b) == 2 && !x.number) // of integers, too
			return give(yoke_square(x.h), x.ctx);
		PyErr_Clear();
		y.take(b, false, "pow");
		promote({ &x, &y });
		const bool ints = (x.number ? x.number < 3 : !is_real(x.h)) && (y.number ? y.number < 3 : !is_real(y.h));
		if (ints && y.number && y.value < 0) {
			PyErr_SetString(PyExc_ValueError, "pow: integers have no negative powers; make one operand floating point");
			throw nb::python_error();
		}
		if (ints)
			return give(yoke_integer_pow(x.h, y.h), x.number ? y.ctx : x.ctx);
		if (PyFloat_Check(b)) { // an exponent is part of the plan
			yoke_context *was = yoke_use(x.ctx->c);
			y.own(yoke_const(y.value));
			yoke_use(was);
		}
		return give(yoke_pow(x.h, y.h), x.number ? y.ctx : x.ctx);
	});
}

static bool both_bool(yoke_tensor *a, yoke_tensor *b)
{
	const bool yes = yoke_dtype(a) == yoke_bool && yoke_dtype(b) == yoke_bool;
	yoke_error_clear(); // a number has no dtype of its own
	return yes;
}

// Of bool as NumPy has them: or, and.
static yoke_tensor *sum_of(yoke_tensor *a, yoke_tensor *b)
{
	return both_bool(a, b) ? yoke_or(a, b) : yoke_add(a, b);
}

static yoke_tensor *product_of(yoke_tensor *a, yoke_tensor *b)
{
	return both_bool(a, b) ? yoke_and(a, b) : yoke_mul(a, b);
}

#define TWO(name, call) static PyObject *name(PyObject *a, PyObject *b) { return two(a, b, call, #name); }
TWO(add, sum_of)
TWO(subtract, yoke_sub)
TWO(multiply, product_of)
TWO(mod, remainder)
TWO(floor_divide, floor_div)
TWO(matmul, product)
TWO(bit_and, yoke_and)
TWO(bit_or, yoke_or)
TWO(bit_xor, yoke_xor)
TWO(shift_left, yoke_shl)
TWO(shift_right, yoke_shr)

static PyObject *divide(PyObject *a, PyObject *b)
{
	const bool ints = (is_tensor(a) && !is_real(as_tensor(a)->h)) || (is_tensor(b) && !is_real(as_tensor(b)->h));
	return two(a, b, yoke_div, "div", ints);
}

static PyObject *one(PyObject *a, One fn)
{
	return guarded([&] {
		enter();
		alive(as_tensor(a), "operator");
		return give(fn(as_tensor(a)->h), as_tensor(a)->ctx);
	});
}
static PyObject *negative(PyObject *a) { return one(a, yoke_neg); }
static PyObject *absolute(PyObject *a) { return one(a, yoke_abs); }
static PyObject *invert(PyObject *a) { return one(a, yoke_not); }
static PyObject *positive(PyObject *a) { return Py_NewRef(a); }

static PyObject *compare(PyObject *a, PyObject *b, int op)
{
	static const Two fn[] = { yoke_lt, yoke_le, yoke_eq, yoke_ne, yoke_gt, yoke_ge };
	return two(a, b, fn[op], "compare");
}

// ---- numbers ----

static double number_of(Tensor *t, int *dtype)
{
	union {
		float f;
		double d;
		int64_t i;
		int32_t w;
		uint16_t h;
		int8_t b;
		uint8_t u;
		char bytes[8];
	} v = {};
	alive(t, "item");
	int64_t n = yoke_count(t->h);
	if (n < 0)
		fail();
	if (n != 1) {
		PyErr_Format(PyExc_ValueError, "item: a tensor of %lld elements is no number", static_cast<long long>(n));
		throw nb::python_error();
	}
	*dtype = yoke_dtype(t->h);
	yoke_tensor *h = t->h, *wide = nullptr;
	if (*dtype == yoke_f16 || *dtype == yoke_bf16)
		h = wide = yoke_cast(h, yoke_f32);
	const size_t bytes = yoke_bytes(h);
	std::shared_ptr<std::vector<char>> to = std::make_shared<std::vector<char>>(8);
	try {
		const auto read = [h, to, bytes] { return yoke_read(h, to->data(), bytes); };
		evaluated(1, &h, false, read, read);
	} catch (...) {
		yoke_free(wide);
		throw;
	}
	yoke_free(wide);
	std::copy(to->begin(), to->end(), v.bytes);
	switch (*dtype) {
	case yoke_f64: return v.d;
	case yoke_i8: return v.b;
	case yoke_u8: return v.u;
	case yoke_bool: return v.u;
	case yoke_i32: return v.w;
	case yoke_i64: return static_cast<double>(v.i); // asked for by integer_of instead
	default: return v.f;
	}
}

static PyObject *item(PyObject *self, PyObject *)
{
	return guarded([&]() -> PyObject * {
		enter();
		alive(as_tensor(self), "item");
		int dtype = static_cast<int>(check(yoke_dtype(as_tensor(self)->h)));
		if (dtype == yoke_i64 && yoke_count(as_tensor(self)->h) == 1) {
			auto to = std::make_shared<int64_t>(0);
			yoke_tensor *h = as_tensor(self)->h;
			const auto read = [h, to] { return yoke_read(h, to.get(), sizeof *to); };
			evaluated(1, &h, false, read, read);
			return PyLong_FromLongLong(*to);
		}
		double v = number_of(as_tensor(self), &dtype);
		if (dtype == yoke_bool)
			return PyBool_FromLong(v != 0);
		if (dtype == yoke_i8 || dtype == yoke_u8 || dtype == yoke_i32)
			return PyLong_FromLong(static_cast<long>(v));
		return PyFloat_FromDouble(v);
	});
}

static PyObject *to_float(PyObject *self)
{
	nb::object v = nb::steal(item(self, nullptr));
	return v.is_valid() ? PyNumber_Float(v.ptr()) : nullptr;
}

static PyObject *to_int(PyObject *self)
{
	nb::object v = nb::steal(item(self, nullptr));
	return v.is_valid() ? PyNumber_Long(v.ptr()) : nullptr;
}

static PyObject *to_index(PyObject *self)
{
	if (is_real(as_tensor(self)->h)) {
		PyErr_SetString(PyExc_TypeError, "only a tensor of one integer is an index");
		return nullptr;
	}
	return to_int(self);
}

static int to_bool(PyObject *self)
{
	nb::object v = nb::steal(item(self, nullptr));
	return v.is_valid() ? PyObject_IsTrue(v.ptr()) : -1;
}

// ---- facts ----

static yoke_tensor *known_alive(PyObject *self)
{
	alive(as_tensor(self), "tensor");
	return as_tensor(self)->h;
}

static PyObject *get_shape(PyObject *self, void *)
{
	return guarded([&] { return shape_object(known_alive(self)).release().ptr(); });
}

static PyObject *get_dtype(PyObject *self, void *)
{
	return guarded([&] { return dtype_object(yoke_dtype(known_alive(self))).release().ptr(); });
}

static PyObject *get_ndim(PyObject *self, void *)
{
	return guarded([&] { return PyLong_FromLongLong(check(yoke_rank(known_alive(self)))); });
}

static PyObject *get_size(PyObject *self, void *)
{
	return guarded([&] { return PyLong_FromLongLong(check(yoke_count(known_alive(self)))); });
}

static PyObject *get_t(PyObject *self, void *)
{
	return guarded([&] {
		Tensor *t = as_tensor(self);
		int order[YOKE_MAX_RANK];
		const int rank = static_cast<int>(check(yoke_rank(known_alive(self))));
		for (int i = 0; i < rank; i++)
			order[i] = rank - 1 - i;
		return give(yoke_permute(t->h, order), t->ctx);
	});
}

static Py_ssize_t length(PyObject *self)
{
	nb::object shape = nb::steal(get_shape(self, nullptr));
	if (!shape.is_valid())
		return -1;
	if (PyTuple_Size(shape.ptr()) < 1) {
		PyErr_SetString(PyExc_TypeError, "a tensor without axes has no length");
		return -1;
	}
	return PyLong_AsSsize_t(nb::object(shape[0]).ptr());
}

static PyObject *get_device(PyObject *self, void *)
{
	return guarded([&] {
		const char *name = yoke_device_of(known_alive(self));
		if (!name)
			fail();
		return PyUnicode_FromString(name);
	});
}

static PyObject *get_is_variable(PyObject *self, void *)
{
	return guarded([&] { return PyBool_FromLong(check(yoke_is_variable(known_alive(self)))); });
}

// The object stands for another value from now on, which lives as long as the one before would have.
static void become(nb::handle self, nb::handle value)
{
	Tensor *t = as_tensor(self.ptr()), *v = as_tensor(value.ptr());
	alive(t, "setitem");
	alive(v, "setitem");
	if (v->held != Held::OURS || t->ctx != v->ctx) {
		PyErr_SetString(PyExc_ValueError, "setitem: the new value belongs to somebody else");
		throw nb::python_error();
	}
	Scope *home = t->held == Held::OURS ? t->scope : v->scope; // an operand of a module's lives as long as the call
	while (v->scope && v->scope != home) {
		Scope *outer = v->scope->outer;
		if (!(home ? yoke_lift(v->h) : yoke_keep(v->h)))
			fail();
		tensor_unlink(v);
		if (home && outer)
			tensor_link(v, outer);
	}
	if (t->scope)
		tensor_unlink(t);
	if (v->scope)
		tensor_unlink(v);
	std::swap(t->h, v->h);
	std::swap(t->owner, v->owner);
	std::swap(t->held, v->held); // the value before goes with the other object
	if (home) {
		tensor_link(t, home);
		if (v->held == Held::OURS)
			tensor_link(v, home);
	}
}

// ---- indexing ----

// Integers, slices, None and `...`; what has arrays in it is done by yoke._index.
static yoke_tensor *basic(Tensor *self, const std::vector<nb::object> &key, Chain &chain)
{
	yoke_tensor *x = self->h;
	const int rank = static_cast<int>(check(yoke_rank(x)));
	int used = 0, axis = 0;
	bool whole = false;
	for (const nb::object &k : key) {
		if (k.ptr() == Py_Ellipsis) {
			if (whole)
				PyErr_SetString(PyExc_IndexError, "an index has one `...` only");
			whole = true;
		} else {
			used += k.ptr() != Py_None;
		}
	}
	if (!PyErr_Occurred() && used > rank)
		PyErr_Format(PyExc_IndexError, "%d indices for a tensor of %d axes", used, rank);
	if (PyErr_Occurred())
		throw nb::python_error();
	std::vector<int64_t> dims;
	bool reshaped = false;
	for (const nb::object &k : key) {
		if (k.ptr() == Py_Ellipsis) {
			for (int i = rank - used; i > 0; i--)
				dims.push_back(yoke_dim(x, axis++));
		} else if (k.ptr() == Py_None) {
			dims.push_back(1);
			reshaped = true;
		} else if (PySlice_Check(k.ptr())) {
			Py_ssize_t start, stop, step;
			if (PySlice_Unpack(k.ptr(), &start, &stop, &step) < 0)
				throw nb::python_error();
			Py_ssize_t n = PySlice_AdjustIndices(yoke_dim(x, axis), &start, &stop, step);
			if (step < 0) { // the same elements from the other end
				x = chain(yoke_flip(x, YOKE_AXIS(axis)));
				if (!x)
					fail();
				start = yoke_dim(x, axis) - 1 - start;
				step = -step;
			}
			stop = n ? start + (n - 1) * step + 1 : start;
			if (start != 0 || step != 1 || stop != yoke_dim(x, axis))
				x = chain(yoke_slice(x, axis, n ? start : 0, n ? stop : 0, step));
			if (!x)
				fail();
			dims.push_back(yoke_dim(x, axis++));
		} else {
			nb::object i = nb::steal(PyNumber_Index(k.ptr()));
			const long long at = i.is_valid() ? PyLong_AsLongLong(i.ptr()) : 0;
			if (PyErr_Occurred())
				throw nb::python_error();
			const int64_t n = yoke_dim(x, axis);
			if (at < -n || at >= n) {
				PyErr_Format(PyExc_IndexError, "index %lld is out of range of axis %d with %lld elements", at,
					     axis, static_cast<long long>(n));
				throw nb::python_error();
			}
			const int64_t from = at < 0 ? at + n : at;
			x = chain(yoke_slice(x, axis, from, from + 1, 1));
			if (!x)
				fail();
			axis++;
			reshaped = true;
		}
	}
	for (; axis < rank; axis++)
		dims.push_back(yoke_dim(x, axis));
	if (dims.size() > YOKE_MAX_RANK) {
		PyErr_Format(PyExc_IndexError, "the result would have %zu axes; %d are possible", dims.size(), YOKE_MAX_RANK);
		throw nb::python_error();
	}
	if (reshaped || x == self->h)
		x = chain(yoke_reshape(x, static_cast<int>(dims.size()), dims.data()));
	if (x)
		chain.t.pop_back();
	return x;
}

static std::vector<nb::object> keys_of(PyObject *key, bool *arrays)
{
	std::vector<nb::object> list;
	*arrays = false;
	if (PyTuple_Check(key))
		for (Py_ssize_t i = 0; i < PyTuple_Size(key); i++)
			list.push_back(nb::borrow(PyTuple_GetItem(key, i)));
	else
		list.push_back(nb::borrow(key));
	for (const nb::object &k : list) {
		PyObject *o = k.ptr();
		*arrays |= PyBool_Check(o) || !(o == Py_None || o == Py_Ellipsis || PySlice_Check(o) || PyLong_Check(o) ||
						(PyIndex_Check(o) && !PyObject_HasAttrString(o, "shape")));
	}
	return list;
}

static PyObject *get_item(PyObject *self, PyObject *key)
{
	return guarded([&]() -> PyObject * {
		bool arrays;
		enter();
		alive(as_tensor(self), "index");
		std::vector<nb::object> list = keys_of(key, &arrays);
		if (arrays)
			return nb::module_::import_("yoke._index").attr("arrays")(nb::handle(self), nb::handle(key)).release().ptr();
		Chain chain;
		return give(basic(as_tensor(self), list, chain), as_tensor(self)->ctx);
	});
}

static int set_item(PyObject *self, PyObject *key, PyObject *value)
{
	nb::object done = nb::steal(guarded([&]() -> PyObject * {
		if (!value) {
			PyErr_SetString(PyExc_TypeError, "elements of a tensor cannot be deleted");
			throw nb::python_error();
		}
		return nb::module_::import_("yoke._index").attr("assign")(nb::handle(self), nb::handle(key), nb::handle(value))
			.release().ptr();
	}));
	return done.is_valid() ? 0 : -1;
}

static PyObject *sequence_item(PyObject *self, Py_ssize_t i)
{
	nb::object at = nb::steal(PyLong_FromSsize_t(i));
	return get_item(self, at.ptr());
}

static PyObject *hash_none(PyObject *self, PyObject *)
{
	return PyLong_FromVoidPtr(as_tensor(self)->h);
}

void tensor_setup(nb::module_ &m)
{
	static PyMethodDef methods[] = {
		{ "item", item, METH_NOARGS, "The number that a tensor of one element is.  Evaluates, and waits." },
		{ "numpy", tensor_numpy, METH_NOARGS,
		  "A NumPy array of the value, which cannot be written: on the CPU its very bytes, elsewhere a copy.  Evaluates, "
		  "and waits." },
		{ "__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(tensor_dlpack)),
		  METH_VARARGS | METH_KEYWORDS, "The value as a DLPack capsule, read-only." },
		{ "__dlpack_device__", tensor_dlpack_device, METH_NOARGS, "The device of __dlpack__." },
		{ "_handle", hash_none, METH_NOARGS, "A number that identifies the tensor." },
		{}
	};
	static PyGetSetDef facts[] = {
		{ "shape", get_shape, nullptr, "Elements along each axis.", nullptr },
		{ "dtype", get_dtype, nullptr, "The elements' type.", nullptr },
		{ "ndim", get_ndim, nullptr, "Axes.", nullptr },
		{ "size", get_size, nullptr, "Elements in all.", nullptr },
		{ "T", get_t, nullptr, "With its axes in reverse order.", nullptr },
		{ "device", get_device, nullptr, "The name of the device that computes it, as yoke.device takes it.", nullptr },
		{ "is_variable", get_is_variable, nullptr, "Is it a variable, which can be assigned?", nullptr },
		{}
	};
	static PyType_Slot slots[] = {
		{ Py_tp_doc, const_cast<char *>("A tensor: a value that is computed when it is read, or a variable.") },
		{ Py_tp_dealloc, reinterpret_cast<void *>(dealloc) },
		{ Py_tp_richcompare, reinterpret_cast<void *>(compare) },
		{ Py_tp_hash, reinterpret_cast<void *>(PyObject_HashNotImplemented) },
		{ Py_tp_methods, methods },
		{ Py_tp_getset, facts },
		{ Py_nb_add, reinterpret_cast<void *>(add) },
		{ Py_nb_subtract, reinterpret_cast<void *>(subtract) },
		{ Py_nb_multiply, reinterpret_cast<void *>(multiply) },
		{ Py_nb_true_divide, reinterpret_cast<void *>(divide) },
		{ Py_nb_floor_divide, reinterpret_cast<void *>(floor_divide) },
		{ Py_nb_remainder, reinterpret_cast<void *>(mod) },
		{ Py_nb_power, reinterpret_cast<void *>(power) },
		{ Py_nb_matrix_multiply, reinterpret_cast<void *>(matmul) },
		{ Py_nb_and, reinterpret_cast<void *>(bit_and) },
		{ Py_nb_or, reinterpret_cast<void *>(bit_or) },
		{ Py_nb_xor, reinterpret_cast<void *>(bit_xor) },
		{ Py_nb_lshift, reinterpret_cast<void *>(shift_left) },
		{ Py_nb_rshift, reinterpret_cast<void *>(shift_right) },
		{ Py_nb_negative, reinterpret_cast<void *>(negative) },
		{ Py_nb_positive, reinterpret_cast<void *>(positive) },
		{ Py_nb_absolute, reinterpret_cast<void *>(absolute) },
		{ Py_nb_invert, reinterpret_cast<void *>(invert) },
		{ Py_nb_bool, reinterpret_cast<void *>(to_bool) },
		{ Py_nb_float, reinterpret_cast<void *>(to_float) },
		{ Py_nb_int, reinterpret_cast<void *>(to_int) },
		{ Py_nb_index, reinterpret_cast<void *>(to_index) },
		{ Py_mp_length, reinterpret_cast<void *>(length) },
		{ Py_mp_subscript, reinterpret_cast<void *>(get_item) },
		{ Py_mp_ass_subscript, reinterpret_cast<void *>(set_item) },
		{ Py_sq_length, reinterpret_cast<void *>(length) },
		{ Py_sq_item, reinterpret_cast<void *>(sequence_item) },
		{}
	};
	static PyType_Spec spec = { "yoke._core.Tensor", sizeof(Tensor), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
				    slots };
	tensor_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
	if (!tensor_type)
		throw nb::python_error();
	m.attr("Tensor") = nb::handle(reinterpret_cast<PyObject *>(tensor_type));
	m.def("_become", become, "self"_a, "value"_a);
	m.def("device_of", [](Operand t) { return nb::object(t.o.attr("device")); }, "t"_a,
	      nb::sig("def device_of(t: Tensor) -> str"), DOC_device_of);
	m.def("is_variable", [](Operand t) { return nb::object(t.o.attr("is_variable")); }, "t"_a,
	      nb::sig("def is_variable(t: Tensor) -> bool"), DOC_is_variable);
}

} // namespace py
