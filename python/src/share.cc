// SPDX-License-Identifier: Apache-2.0
// Memory that is shared: NumPy arrays over a tensor's bytes, and DLPack capsules both ways.
//
// Out: on the CPU the very bytes (yoke_share), read-only, held by a handle of their own, which any thread may free.
// In: memory of whoever made the capsule, used where it lies (yoke_wrap), released when yoke gives it back.
#include "core.h"

#include <cstring>

namespace py {

// ---- bytes out ----

// A value's bytes at an address that stays.
struct Bytes {
	yoke_tensor *shared = nullptr; // NULL: they are a copy
	std::vector<char> copy;
	const void *at = nullptr;
	size_t size = 0;
	~Bytes()
	{
		if (shared)
			yoke_free(shared);
		yoke_error_clear();
	}
};

static uint64_t copies, copied_bytes; // out, of what has no address on the host

static std::shared_ptr<Bytes> bytes_of(Tensor *t, bool copy)
{
	auto b = std::make_shared<Bytes>();
	yoke_tensor *h = t->h;
	alive(t, "numpy");
	b->size = yoke_bytes(h);
	if (yoke_error_code())
		fail();
	const auto read = [h, b, copy]() -> int64_t {
		if (!copy) {
			b->shared = yoke_share(h, &b->at);
			if (b->shared || yoke_error_code() != YOKE_EUNSUPPORTED)
				return yoke_error_code();
			yoke_error_clear();
		}
		b->copy.resize(b->size + !b->size);
		b->at = b->copy.data();
		return yoke_read(h, b->copy.data(), b->size);
	};
	evaluated(1, &h, false, read, read);
	if (!b->shared) {
		copies++;
		copied_bytes += b->size;
	}
	return b;
}

// The object that NumPy's arrays have as their base.
struct Buffer {
	PyObject_HEAD
	std::shared_ptr<Bytes> *bytes;
};
static PyTypeObject *buffer_type;

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
	const Bytes &b = **reinterpret_cast<Buffer *>(self)->bytes;
	return PyBuffer_FillInfo(view, self, const_cast<void *>(b.at), static_cast<Py_ssize_t>(b.size), 1, flags);
}

static void buffer_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	delete reinterpret_cast<Buffer *>(self)->bytes;
	PyObject_Free(self);
	Py_DECREF(reinterpret_cast<PyObject *>(type));
}

PyObject *tensor_numpy(PyObject *self, PyObject *)
{
	try {
		enter();
		auto b = bytes_of(as_tensor(self), false);
		Buffer *buffer = PyObject_New(Buffer, buffer_type);
		if (!buffer)
			return nullptr;
		buffer->bytes = new std::shared_ptr<Bytes>(b);
		nb::object base = nb::steal(reinterpret_cast<PyObject *>(buffer));
		static PyObject *array;
		if (!array)
			array = nb::object(nb::module_::import_("numpy").attr("ndarray")).release().ptr();
		nb::object shape = shape_object(as_tensor(self)->h);
		nb::object type = dtype_object(yoke_dtype(as_tensor(self)->h)).attr("numpy");
		if (b->size)
			return nb::handle(array)(shape, type, base).release().ptr();
		nb::object empty = nb::handle(array)(shape, type);
		empty.attr("setflags")("write"_a = false);
		return empty.release().ptr();
	} catch (nb::python_error &e) {
		e.restore();
	} catch (const std::exception &e) {
		PyErr_SetString(PyExc_RuntimeError, e.what());
	}
	return nullptr;
}

// ---- DLPack (version 1.0 of the format, and the one before) ----

struct DLDevice {
	int32_t type, id;
};
struct DLDataType {
	uint8_t code, bits;
	uint16_t lanes;
};
struct DLTensor {
	void *data;
	DLDevice device;
	int32_t ndim;
	DLDataType dtype;
	int64_t *shape, *strides;
	uint64_t byte_offset;
};
struct Managed { // DLManagedTensor
	DLTensor t;
	void *context;
	void (*deleter)(Managed *);
};
struct Versioned { // DLManagedTensorVersioned
	uint32_t major, minor;
	void *context;
	void (*deleter)(Versioned *);
	uint64_t flags;
	DLTensor t;
};
enum { ON_CPU = 1, ON_CUDA_HOST = 3 };
enum { READ_ONLY = 1, IS_COPIED = 2 };
enum { CODE_INT, CODE_UINT, CODE_FLOAT, CODE_BFLOAT = 4, CODE_BOOL = 6 };

static const struct {
	int dtype;
	uint8_t code, bits;
} types[] = { { yoke_f32, CODE_FLOAT, 32 }, { yoke_f64, CODE_FLOAT, 64 }, { yoke_f16, CODE_FLOAT, 16 },
	      { yoke_bf16, CODE_BFLOAT, 16 }, { yoke_i8, CODE_INT, 8 }, { yoke_u8, CODE_UINT, 8 }, { yoke_i32, CODE_INT, 32 },
	      { yoke_i64, CODE_INT, 64 }, { yoke_bool, CODE_BOOL, 8 } };

// What a capsule of ours holds, of either kind.
template <typename M> struct Out {
	M m;
	std::shared_ptr<Bytes> bytes;
	int64_t shape[YOKE_MAX_RANK + 1], strides[YOKE_MAX_RANK + 1];
};

template <typename M> static void out_delete(M *m)
{
	delete static_cast<Out<M> *>(m->context);
}

template <typename M> static const char *capsule_name();
template <> const char *capsule_name<Managed>() { return "dltensor"; }
template <> const char *capsule_name<Versioned>() { return "dltensor_versioned"; }

template <typename M> static void capsule_free(PyObject *capsule)
{
	if (!PyCapsule_IsValid(capsule, capsule_name<M>())) // somebody has taken it over
		return;
	M *m = static_cast<M *>(PyCapsule_GetPointer(capsule, capsule_name<M>()));
	if (m->deleter)
		m->deleter(m);
}

template <typename M> static PyObject *capsule_of(Tensor *t, const std::shared_ptr<Bytes> &b)
{
	auto *o = new Out<M>();
	o->bytes = b;
	o->m.context = o;
	o->m.deleter = out_delete<M>;
	const int rank = yoke_rank(t->h), dtype = yoke_dtype(t->h);
	int64_t n = 1;
	for (int i = rank - 1; i >= 0; i--) {
		o->shape[i] = yoke_dim(t->h, i);
		o->strides[i] = n;
		n *= o->shape[i];
	}
	DLTensor &d = o->m.t;
	d.data = const_cast<void *>(b->at);
	d.device = { ON_CPU, 0 };
	d.ndim = rank;
	d.shape = o->shape;
	d.strides = o->strides;
	d.byte_offset = 0;
	for (const auto &k : types)
		if (k.dtype == dtype)
			d.dtype = { k.code, k.bits, 1 };
	if constexpr (std::is_same_v<M, Versioned>) {
		o->m.major = 1;
		o->m.minor = 0;
		o->m.flags = b->shared ? READ_ONLY : IS_COPIED;
	}
	PyObject *c = PyCapsule_New(&o->m, capsule_name<M>(), capsule_free<M>);
	if (!c)
		delete o;
	return c;
}

// JAX's arrays are never written, and it asks in the old way (JAX 0.10: with stream=None alone), which says nothing of who
// asks: so the caller's module has to.
static bool asked_by_jax()
{
	nb::object frame = nb::borrow(reinterpret_cast<PyObject *>(PyEval_GetFrame()));
	if (!frame.is_valid())
		return false;
	nb::object name = frame.attr("f_globals").attr("get")("__name__", "");
	return PyUnicode_Check(name.ptr()) && nb::cast<std::string>(name).rfind("jax.", 0) == 0;
}

[[noreturn]] static void refuse(PyObject *kind, const char *format, long long a = 0, long long b = 0, long long c = 0)
{
	PyErr_Format(kind, format, a, b, c);
	throw nb::python_error();
}

PyObject *tensor_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static const char *names[] = { "stream", "max_version", "dl_device", "copy", nullptr };
	PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO", const_cast<char **>(names), &stream, &version, &device, &copy))
		return nullptr;
	try {
		enter();
		bool is_new = false;
		if (version != Py_None) {
			std::vector<int64_t> v = shape_of(version, "__dlpack__");
			if (v.size() != 2)
				refuse(PyExc_ValueError, "__dlpack__: max_version is a pair (major, minor), not of %lld", static_cast<long long>(v.size()));
			is_new = v[0] >= 1;
		}
		if (device != Py_None) {
			std::vector<int64_t> d = shape_of(device, "__dlpack__");
			if (d.size() != 2 || d[0] != ON_CPU) {
				PyErr_SetString(PyExc_BufferError, "__dlpack__: a tensor is given out in the host's memory (1, 0) only");
				throw nb::python_error();
			}
		}
		if (stream != Py_None) {
			PyErr_SetString(PyExc_BufferError, "__dlpack__: memory of the host has no stream");
			throw nb::python_error();
		}
		// a reader of the old kind cannot be told that it must not write
		const bool trusted = is_new || asked_by_jax();
		const bool own = copy == Py_True || !trusted;
		if (copy == Py_False && !trusted) {
			PyErr_SetString(PyExc_BufferError, "__dlpack__: what is shared is read-only, which takes max_version=(1, 0)");
			throw nb::python_error();
		}
		auto b = bytes_of(as_tensor(self), own);
		if (copy == Py_False && !b->shared) {
			PyErr_SetString(PyExc_BufferError, "__dlpack__: the device's memory has no address on the host; copy=False cannot be");
			throw nb::python_error();
		}
		return is_new ? capsule_of<Versioned>(as_tensor(self), b) : capsule_of<Managed>(as_tensor(self), b);
	} catch (nb::python_error &e) {
		e.restore();
	} catch (const std::exception &e) {
		PyErr_SetString(PyExc_RuntimeError, e.what());
	}
	return nullptr;
}

PyObject *tensor_dlpack_device(PyObject *, PyObject *)
{
	return Py_BuildValue("(ii)", ON_CPU, 0);
}

// ---- in ----

template <typename M> static void give_back(void *m)
{
	if (static_cast<M *>(m)->deleter)
		static_cast<M *>(m)->deleter(static_cast<M *>(m));
}

template <typename M> static void later(void *m)
{
	release_later(give_back<M>, m);
}

// The tensor's bytes are elements one after another; `order` of its axes from the slowest on.
static bool in_order(const DLTensor &t, int *order)
{
	for (int i = 0; i < t.ndim; i++)
		order[i] = i;
	for (int i = 1; i < t.ndim; i++) // insertion: few axes
		for (int k = i; k > 0 && t.strides[order[k]] > t.strides[order[k - 1]] && t.shape[order[k]] != 1; k--)
			std::swap(order[k], order[k - 1]);
	int64_t n = 1;
	for (int i = t.ndim - 1; i >= 0; i--) {
		if (t.shape[order[i]] != 1 && t.strides[order[i]] != n)
			return false;
		n *= t.shape[order[i]];
	}
	return true;
}

static void gather(const DLTensor &t, int axis, const char *from, size_t size, char *&to)
{
	if (axis == t.ndim) {
		memcpy(to, from, size);
		to += size;
		return;
	}
	for (int64_t i = 0; i < t.shape[axis]; i++)
		gather(t, axis + 1, from + i * t.strides[axis] * static_cast<int64_t>(size), size, to);
}

// Checks what the capsule says, and makes a tensor of it.  free_fn is called once, now or when yoke gives the memory back.
static nb::object taken(const DLTensor &t, bool copy, bool may_copy, void (*free_fn)(void *), void *arg)
{
	struct Guard {
		void (*fn)(void *);
		void *arg;
		~Guard()
		{
			if (fn)
				fn(arg);
		}
	} guard{ free_fn, arg };
	if (t.device.type != ON_CPU && t.device.type != ON_CUDA_HOST)
		refuse(PyExc_BufferError, "from_dlpack: memory of a device of kind %lld; bring it to the host (1) first", t.device.type);
	if (t.ndim < 0 || t.ndim > YOKE_MAX_RANK)
		refuse(PyExc_ValueError, "from_dlpack: %lld axes; 0 to %lld are possible", t.ndim, YOKE_MAX_RANK);
	int dtype = 0;
	for (const auto &k : types)
		if (k.code == t.dtype.code && k.bits == t.dtype.bits && t.dtype.lanes == 1)
			dtype = k.dtype;
	if (!dtype)
		refuse(PyExc_TypeError, "from_dlpack: no dtype of yoke's has kind %lld, %lld bits and %lld lanes; cast it first",
		       t.dtype.code, t.dtype.bits, t.dtype.lanes);
	const size_t size = yoke_dtype_size(dtype);
	int64_t dims[YOKE_MAX_RANK + 1], strides[YOKE_MAX_RANK + 1];
	uint64_t count = 1;
	DLTensor d = t;
	for (int i = t.ndim - 1; i >= 0; i--) {
		if (!t.shape || t.shape[i] < 0)
			refuse(PyExc_ValueError, "from_dlpack: axis %lld has a negative length", i);
		dims[i] = t.shape[i];
		strides[i] = t.strides ? t.strides[i] : static_cast<int64_t>(count);
		if (strides[i] < 0)
			refuse(PyExc_ValueError, "from_dlpack: axis %lld runs backwards; copy it first", i);
		if (__builtin_mul_overflow(count, static_cast<uint64_t>(dims[i]), &count) || count > (1ull << 56))
			refuse(PyExc_ValueError, "from_dlpack: axis %lld makes it too large", i);
	}
	d.shape = dims;
	d.strides = strides;
	char *data = static_cast<char *>(t.data) + t.byte_offset;
	if (!t.data && count)
		refuse(PyExc_ValueError, "from_dlpack: there is no data");
	Context *ctx = current();
	int order[YOKE_MAX_RANK + 1];
	const bool dense = count && in_order(d, order);
	if (copy || !dense) {
		if (!copy && !may_copy && count)
			refuse(PyExc_BufferError, "from_dlpack: elements do not lie one after another; copy=False cannot be");
		std::vector<char> bytes(count * size + 1);
		char *to = bytes.data();
		if (count)
			gather(d, 0, data, size, to);
		return nb::steal(give(yoke_from(dtype, t.ndim, dims, bytes.data()), ctx));
	}
	if (!may_copy && reinterpret_cast<uintptr_t>(data) % size)
		refuse(PyExc_BufferError, "from_dlpack: elements are not aligned to their size; copy=False cannot be");
	int64_t lie[YOKE_MAX_RANK + 1];
	int back[YOKE_MAX_RANK + 1];
	bool as_it_is = true;
	for (int i = 0; i < t.ndim; i++) {
		lie[i] = dims[order[i]];
		back[order[i]] = i;
		as_it_is &= order[i] == i;
	}
	guard.fn = nullptr;
	nb::object x = nb::steal(give(yoke_wrap(dtype, t.ndim, lie, data, free_fn, arg), ctx));
	if (as_it_is)
		return x;
	return nb::steal(give(yoke_permute(as_tensor(x.ptr())->h, back), ctx, false));
}

static nb::object from_capsule(nb::handle c, bool copy, bool may_copy)
{
	if (PyCapsule_IsValid(c.ptr(), "dltensor_versioned")) {
		auto *m = static_cast<Versioned *>(PyCapsule_GetPointer(c.ptr(), "dltensor_versioned"));
		if (m->major != 1)
			refuse(PyExc_BufferError, "from_dlpack: version %lld.%lld of DLPack; 1 is known", m->major, m->minor);
		PyCapsule_SetName(c.ptr(), "used_dltensor_versioned");
		return taken(m->t, copy, may_copy, later<Versioned>, m);
	}
	if (PyCapsule_IsValid(c.ptr(), "dltensor")) {
		auto *m = static_cast<Managed *>(PyCapsule_GetPointer(c.ptr(), "dltensor"));
		PyCapsule_SetName(c.ptr(), "used_dltensor");
		return taken(m->t, copy, may_copy, later<Managed>, m);
	}
	PyErr_SetString(PyExc_ValueError, PyCapsule_IsValid(c.ptr(), "used_dltensor") ||
						  PyCapsule_IsValid(c.ptr(), "used_dltensor_versioned") ?
						  "from_dlpack: the capsule was used before" : "from_dlpack: the capsule is none of DLPack's");
	throw nb::python_error();
}

static TensorRet from_dlpack(nb::object x, std::optional<bool> copy)
{
	enter();
	nb::object c = x;
	const bool wanted = copy.value_or(false);
	if (!PyCapsule_CheckExact(x.ptr())) {
		if (!nb::hasattr(x, "__dlpack__"))
			throw nb::type_error("from_dlpack: takes an array that has __dlpack__, or a capsule");
		std::vector<int64_t> device = shape_of(x.attr("__dlpack_device__")(), "from_dlpack");
		if (device.size() != 2 || (device[0] != ON_CPU && device[0] != ON_CUDA_HOST))
			refuse(PyExc_BufferError, "from_dlpack: memory of a device of kind %lld; bring it to the host (1) first",
			       device.empty() ? 0 : device[0]);
		try {
			c = x.attr("__dlpack__")("max_version"_a = nb::make_tuple(1, 0));
		} catch (nb::python_error &e) {
			if (!e.matches(PyExc_TypeError)) // one that knows no versions
				throw;
			c = x.attr("__dlpack__")();
		}
	}
	nb::object t = from_capsule(c, wanted, !copy.has_value() || wanted);
	enter(); // what was copied is given back at once
	return { t };
}

// Copies an array that NumPy made: aligned, row major, native.
static TensorRet from_host(nb::object array, Dtype dtype)
{
	enter();
	Py_buffer view;
	if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_C_CONTIGUOUS) < 0)
		throw nb::python_error();
	std::vector<int64_t> dims = shape_of(array.attr("shape"), "from");
	int d = 0;
	yoke_tensor *t = nullptr;
	Context *ctx = nullptr;
	static const char none = 0;
	try {
		d = dtype_of(dtype.o);
		ctx = current();
		t = yoke_from(d, static_cast<int>(dims.size()), dims.data(), view.buf ? view.buf : &none);
	} catch (...) {
		PyBuffer_Release(&view);
		throw;
	}
	PyBuffer_Release(&view);
	return { nb::steal(give(t, ctx)) };
}

static void put(nb::handle variable, nb::object array)
{
	enter();
	if (!is_tensor(variable.ptr()))
		throw nb::type_error("put: takes a variable");
	Py_buffer view;
	if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_C_CONTIGUOUS) < 0)
		throw nb::python_error();
	static const char none = 0;
	const int err = yoke_put(as_tensor(variable.ptr())->h, view.buf ? view.buf : &none, static_cast<size_t>(view.len));
	PyBuffer_Release(&view);
	check(err);
}

void share_setup(nb::module_ &m)
{
	static PyType_Slot slots[] = {
		{ Py_tp_dealloc, reinterpret_cast<void *>(buffer_dealloc) },
		{ Py_bf_getbuffer, reinterpret_cast<void *>(get_buffer) },
		{}
	};
	static PyType_Spec spec = { "yoke._core.Buffer", sizeof(Buffer), 0,
				    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots };
	buffer_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
	if (!buffer_type)
		throw nb::python_error();
	m.def("from_dlpack", from_dlpack, "x"_a, nb::kw_only(), "copy"_a = nb::none(),
	      "A tensor over the memory of an array that has __dlpack__ (NumPy's, PyTorch's, JAX's), or of a capsule: on the CPU "
	      "where it lies, and what is written there is seen; yoke never writes it.  copy=True copies, copy=False raises "
	      "BufferError where that would be needed.");
	m.def("_from_host", from_host, "array"_a, "dtype"_a);
	m.def("_put", put, "variable"_a, "array"_a);
	m.def("_copies", [] { return nb::make_tuple(copies, copied_bytes); },
	      "Times and bytes that values given out were copied, since their device has no addresses on the host.");
}

} // namespace py
