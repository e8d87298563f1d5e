// SPDX-License-Identifier: Apache-2.0
// Contexts and scopes of Python's threads, errors as exceptions, and conversion of arguments.
#include "core.h"
#include "docs.h"

#include <cctype>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <unistd.h>

namespace py {

// ---- contexts and scopes ----

static std::mutex contexts_lock;
static std::vector<Context *> contexts; // for as long as the process lives, as their tensors may

static void context_end(Context *made)
{
	yoke_context *c;
	{
		std::lock_guard<std::mutex> g(contexts_lock);
		c = made->c;
		made->c = nullptr;
	}
	yoke_context *now = yoke_use(nullptr);
	if (now != c)
		yoke_use(now);
	yoke_context_free(c); // NULL: it has gone before
}

// A thread's own contexts, which current() or C made for calls that needed one, end with it: the main thread's with the
// process, others' with the dict that Python keeps for a thread, before join() returns.
struct Thread {
	std::vector<Context *> made;
	~Thread()
	{
		for (Context *c : made)
			context_end(c);
	}
};
static thread_local Thread thread;

static void thread_ends(PyObject *capsule)
{
	context_end(static_cast<Context *>(PyCapsule_GetPointer(capsule, "yoke.context")));
}

static void goes_with_thread(Context *made)
{
	thread.made.push_back(made);
	PyObject *mine = getpid() == gettid() ? nullptr : PyThreadState_GetDict();
	nb::object end = nb::steal(mine ? PyCapsule_New(made, "yoke.context", thread_ends) : nullptr);
	if (end.is_valid() && PyDict_SetItem(mine, end.ptr(), Py_None) < 0) { // one of several, where each has been put aside
		PyErr_Clear();
		PyCapsule_SetDestructor(end.ptr(), nullptr); // it goes a little later
	}
}

Context *known(yoke_context *c, bool current)
{
	Context *made = nullptr;
	{
		std::lock_guard<std::mutex> g(contexts_lock);
		for (Context *k : contexts)
			if (k->c == c)
				return k;
		contexts.push_back(made = new Context);
		made->c = c;
	}
	if (current)
		goes_with_thread(made);
	return made;
}

void adopt()
{
	yoke_context *c = yoke_use(nullptr);
	yoke_use(c);
	if (c)
		known(c, true);
}

Context *current()
{
	static thread_local Context *last;
	yoke_context *c = yoke_use(nullptr);
	if (!c && !(c = yoke_context_new(nullptr)))
		fail();
	yoke_use(c);
	if (!last || last->c != c)
		last = known(c, true);
	return last;
}

Context *context_of(const yoke_tensor *t)
{
	yoke_context *c = yoke_context_of(t);
	if (!c)
		fail();
	return known(c, true);
}

int64_t trim()
{
	Context *now = current();
	int64_t freed = check(yoke_trim());
	for (Context *k : thread.made) {
		if (k == now || !k->c)
			continue;
		yoke_context *was = yoke_use(k->c);
		const int64_t more = yoke_trim();
		yoke_use(was);
		freed += check(more);
	}
	return freed;
}

Scope *scope_begin(const char *name)
{
	enter();
	Context *ctx = current();
	yoke_scope *s = yoke_scope_begin(name);
	if (!s)
		fail();
	return ctx->top = new Scope{ s, ctx->top, ctx, nullptr, ctx->cast };
}

Scope *scope_of_c(Context *ctx)
{
	return ctx->top = new Scope{ nullptr, ctx->top, ctx, nullptr, ctx->cast };
}

static void unlink(Tensor *t)
{
	(t->prev ? t->prev->next : t->scope->first) = t->next;
	if (t->next)
		t->next->prev = t->prev;
	t->next = t->prev = nullptr;
	t->scope = nullptr;
}

static void link(Tensor *t, Scope *s)
{
	t->scope = s;
	t->prev = nullptr;
	if ((t->next = s->first))
		s->first->prev = t;
	s->first = t;
}

void scope_end(Scope *s, bool lift)
{
	Context *ctx = s->ctx;
	if (ctx->top != s) {
		PyErr_SetString(PyExc_ValueError, "scope: it is not the innermost one; scopes end in reverse order");
		throw nb::python_error();
	}
	for (Tensor *t = s->first, *next; t; t = next) {
		next = t->next;
		unlink(t);
		if (t->held == Held::LENT) // C's from now on
			continue;
		if (!lift || !yoke_lift(t->h)) {
			t->held = Held::GONE;
		} else if (s->outer) {
			link(t, s->outer);
		} else {
			yoke_keep(t->h);
		}
	}
	ctx->top = s->outer;
	ctx->cast = s->cast;
	int err = 0;
	if (s->s) {
		yoke_context *was = yoke_use(ctx->c);
		err = yoke_scope_end(s->s);
		yoke_use(was);
	}
	delete s;
	if (PyErr_Occurred())
		yoke_error_clear();
	else
		check(err);
}

// ---- errors ----

static nb::object device_error, released_error;

static PyObject *kind_of(int code)
{
	switch (code) {
	case YOKE_EDTYPE: return PyExc_TypeError;
	case YOKE_ERANGE: return PyExc_IndexError;
	case YOKE_ENOMEM:
	case YOKE_EGRAPH: return PyExc_MemoryError;
	case YOKE_EIO: return PyExc_OSError;
	case YOKE_EPERM: return PyExc_PermissionError;
	case YOKE_EUNSUPPORTED: return PyExc_NotImplementedError;
	case YOKE_ERELEASED: return released_error.ptr();
	case YOKE_EFAILED:
	case YOKE_EDEVICE:
	case YOKE_ENODEV:
	case YOKE_EPLUGIN:
	case YOKE_EABI:
	case YOKE_EFORK:
	case YOKE_ERANK: return device_error.ptr();
	case YOKE_EBUSY: return PyExc_RuntimeError;
	default: return PyExc_ValueError;
	}
}

// A message of C's with Python's names: yoke_module_share is yoke.module_share here.
static std::string in_python(const char *text)
{
	std::string to;
	for (const char *p = text; *p; p++) {
		const bool begins = p == text || !(isalnum(static_cast<unsigned char>(p[-1])) || p[-1] == '_' || p[-1] == '/');
		if (begins && !strncmp(p, "yoke_", 5) && isalpha(static_cast<unsigned char>(p[5]))) {
			to += "yoke.";
			p += 4;
		} else if (begins && !strncmp(p, "YOKE_DTYPE_NONE", 15)) {
			to += "None";
			p += 14;
		} else if (begins && !strncmp(p, "YOKE_NONE", 9)) {
			to += "None";
			p += 8;
		} else if (begins && !strncmp(p, "NULL", 4) && !isalnum(static_cast<unsigned char>(p[4])) && p[4] != '_') {
			to += "None";
			p += 3;
		} else {
			to += *p;
		}
	}
	return to;
}

// The function that a message begins with, as people call it here: "nn_layer_norm: .." is of nn.LayerNorm, "module_load: .."
// of Module.load.
static std::string renamed(const std::string &text)
{
	static const struct {
		const char *c, *python;
	} special[] = { { "mlp", "MLP" }, { "lora", "LoRA" }, { "rms_norm", "RMSNorm" } };
	const size_t end = text.find(':');
	const std::string name = end == std::string::npos ? "" : text.substr(0, end);
	std::string to;
	if (name.rfind("module_", 0) == 0) {
		to = "Module." + name.substr(7);
	} else if (name.rfind("optim_", 0) == 0) {
		to = "Optimizer." + name.substr(6);
	} else if (name.rfind("nn_", 0) == 0) {
		bool upper = true;
		to = "nn.";
		for (const auto &k : special)
			if (name == std::string("nn_") + k.c)
				return to + k.python + text.substr(end);
		for (size_t i = 3; i < end; i++) {
			if (name[i] == '_') {
				upper = true;
			} else {
				to += upper ? static_cast<char>(toupper(static_cast<unsigned char>(name[i]))) : name[i];
				upper = false;
			}
		}
	}
	return to.empty() || name.find(' ') != std::string::npos ? text : to + text.substr(end);
}

void set_error(int code, const char *text)
{
	PyObject *kind = kind_of(code);
	if ((code == YOKE_EIO || code == YOKE_ENOENT) && strstr(text, strerror(ENOENT)))
		kind = PyExc_FileNotFoundError;
	PyErr_SetString(kind, *text ? renamed(in_python(text)).c_str() : yoke_error_name(code));
}

void fail(int code)
{
	std::string text = yoke_error();
	if (yoke_error_code())
		code = yoke_error_code();
	yoke_error_clear();
	if (!PyErr_Occurred()) // one of a function that yoke called is what it is about
		set_error(code, text.c_str());
	throw nb::python_error();
}

std::string line_of(const std::exception &e)
{
	std::string text = e.what();
	if (auto *p = dynamic_cast<const nb::python_error *>(&e))
		text = nb::cast<std::string>(nb::str("{}: {}").attr("format")(p->type().attr("__name__"), p->value()));
	for (char &c : text)
		c = c == '\n' ? ' ' : c;
	return text;
}

[[noreturn]] static void type_error(const char *call, const char *wants, nb::handle got)
{
	PyErr_Format(PyExc_TypeError, "%s: takes %s, got %R", call, wants, reinterpret_cast<PyObject *>(Py_TYPE(got.ptr())));
	throw nb::python_error();
}

// ---- operands ----

Op::~Op()
{
	if (temporary && h && h != YOKE_NONE)
		yoke_free(h);
}

void Op::own(yoke_tensor *t)
{
	if (temporary && h)
		yoke_free(h);
	h = t;
	temporary = true;
	number = 0;
	if (!t)
		fail();
}

void Op::make_number()
{
	const int kind = number;
	own(kind == 3 ? yoke_scalar(value) : yoke_const(value)); // floating point may change from step to step
	number = kind;
}

void beside(std::initializer_list<Op *> ops)
{
	Context *ctx = nullptr;
	for (Op *o : ops)
		ctx = ctx ? ctx : o->number ? nullptr : o->ctx;
	if (!ctx)
		return;
	for (Op *o : ops)
		if (o->number && o->ctx != ctx) {
			yoke_context *was = yoke_use(ctx->c);
			try {
				o->make_number();
			} catch (...) {
				yoke_use(was);
				throw;
			}
			yoke_use(was);
			o->ctx = ctx;
		}
}

void alive(const Tensor *t, const char *call)
{
	if (t->held < Held::GONE)
		return;
	PyErr_Format(PyExc_ValueError, t->held == Held::FREED ? "%s: a tensor was used after it was freed" :
		     "%s: a tensor was used after its scope ended; yoke.keep or yoke.lift it before that", call);
	throw nb::python_error();
}

void Op::take(nb::handle o, bool optional, const char *call)
{
	PyObject *p = o.ptr();
	if (is_tensor(p)) {
		alive(as_tensor(p), call);
		h = as_tensor(p)->h;
		ctx = as_tensor(p)->ctx;
		return;
	}
	if (o.is_none()) {
		if (!optional)
			type_error(call, "a tensor", o);
		h = YOKE_NONE;
		return;
	}
	if (PyBool_Check(p) || PyLong_Check(p)) { // part of the plan
		double v = PyBool_Check(p) ? p == Py_True : PyLong_AsDouble(p);
		if (v == -1 && PyErr_Occurred())
			throw nb::python_error();
		ctx = current();
		value = v;
		number = PyBool_Check(p) ? 1 : 2;
		make_number();
	} else if (PyFloat_Check(p)) {
		ctx = current();
		value = PyFloat_AsDouble(p);
		number = 3;
		make_number();
	} else if (PyList_Check(p) || PyTuple_Check(p) || PyObject_HasAttrString(p, "__array__") || PyObject_HasAttrString(p, "__dlpack__")) {
		static PyObject *tensor_of;
		if (!tensor_of)
			tensor_of = nb::object(nb::module_::import_("yoke").attr("tensor")).release().ptr();
		holder = nb::handle(tensor_of)(o);
		h = as_tensor(holder.ptr())->h;
		ctx = as_tensor(holder.ptr())->ctx;
	} else {
		type_error(call, "a tensor or a number", o);
	}
}

enum Kind { BOOL, INTEGER, REAL };
static Kind kind_of_dtype(int d)
{
	switch (d) {
	case yoke_bool: return BOOL;
	case yoke_i8:
	case yoke_u8:
	case yoke_i32:
	case yoke_i64: return INTEGER;
	default: return REAL;
	}
}

static int join(int a, int b)
{
	if (a == b || !b)
		return a;
	if (!a)
		return b;
	Kind ka = kind_of_dtype(a), kb = kind_of_dtype(b);
	if (ka != kb)
		return ka > kb ? a : b;
	if (ka == INTEGER) {
		if (a == yoke_i64 || b == yoke_i64)
			return yoke_i64;
		return yoke_i32; // also of i8 beside u8
	}
	if (a == yoke_f64 || b == yoke_f64)
		return yoke_f64;
	return yoke_f32; // also of f16 beside bf16
}

void promote(std::initializer_list<Op *> ops, bool real)
{
	int dtype = 0, kind = BOOL;
	beside(ops);
	for (Op *o : ops) {
		if (!o->h || o->h == YOKE_NONE)
			continue;
		if (o->number) {
			kind = std::max(kind, o->number - 1);
			continue;
		}
		int d = yoke_dtype(o->h);
		if (d < 0)
			fail(d);
		dtype = join(dtype, d);
	}
	if (!dtype)
		return;
	if (kind > kind_of_dtype(dtype))
		dtype = kind == REAL ? yoke_f32 : yoke_i64;
	if (real && kind_of_dtype(dtype) != REAL)
		dtype = yoke_f32;
	for (Op *o : ops) {
		const int d = o->h && o->h != YOKE_NONE && !o->number ? yoke_dtype(o->h) : 0;
		if (d && d != dtype) // a host scalar has no dtype: it takes that of the others
			o->own(yoke_cast(o->h, dtype));
	}
}

Ops::Ops(nb::handle list, bool optional, const char *call)
{
	if (is_tensor(list.ptr()) || !PySequence_Check(list.ptr()))
		type_error(call, "a list of tensors", list);
	const Py_ssize_t n = size_of(list);
	for (Py_ssize_t i = 0; i < n; i++) {
		nb::object item = item_of(list, i);
		if (!optional && !is_tensor(item.ptr()))
			type_error(call, "a list of tensors", item);
		op.push_back(std::make_unique<Op>());
		op.back()->take(item, optional, call);
		h.push_back(op.back()->h);
		if (!ctx)
			ctx = op.back()->ctx;
	}
}

void same_count(const char *call, size_t a, size_t b)
{
	if (a == b)
		return;
	PyErr_Format(PyExc_ValueError, "%s: lists of %zu and %zu elements; they must be as long as each other", call, a, b);
	throw nb::python_error();
}

// ---- other arguments ----

static int64_t integer(nb::handle o, const char *call)
{
	nb::object i = nb::steal(PyNumber_Index(o.ptr()));
	if (!i.is_valid()) {
		PyErr_Clear();
		type_error(call, "integers", o);
	}
	long long v = PyLong_AsLongLong(i.ptr());
	if (v == -1 && PyErr_Occurred())
		throw nb::python_error();
	return v;
}

Py_ssize_t size_of(nb::handle list)
{
	const Py_ssize_t n = PySequence_Size(list.ptr());
	if (n < 0)
		throw nb::python_error();
	return n;
}

nb::object item_of(nb::handle list, Py_ssize_t i)
{
	nb::object item = nb::steal(PySequence_GetItem(list.ptr(), i));
	if (!item.is_valid())
		throw nb::python_error();
	return item;
}

std::vector<int64_t> shape_of(nb::handle o, const char *call)
{
	std::vector<int64_t> v;
	if (!PySequence_Check(o.ptr()) || is_tensor(o.ptr())) {
		v.push_back(integer(o, call));
		return v;
	}
	const Py_ssize_t n = size_of(o);
	for (Py_ssize_t i = 0; i < n; i++) {
		nb::object item = item_of(o, i);
		v.push_back(integer(item, call));
	}
	return v;
}

void fill(nb::handle o, int64_t *to, int n, const char *call)
{
	if (!PySequence_Check(o.ptr())) {
		int64_t v = integer(o, call);
		for (int i = 0; i < n; i++)
			to[i] = v;
		return;
	}
	std::vector<int64_t> v = shape_of(o, call);
	if (v.size() > static_cast<size_t>(n)) {
		PyErr_Format(PyExc_ValueError, "%s: %zu numbers where there are %d", call, v.size(), n);
		throw nb::python_error();
	}
	for (size_t i = 0; i < v.size(); i++)
		to[i] = v[i];
}

unsigned axes_of(nb::handle o, bool keep, const yoke_tensor *x, const char *call)
{
	unsigned mask = YOKE_ALL;
	if (!o.is_none()) {
		mask = 0;
		int rank = x ? yoke_rank(x) : 0;
		for (int64_t a : shape_of(o, call)) {
			int64_t k = a < 0 ? a + rank : a;
			if (k < 0 || k >= rank) {
				PyErr_Format(PyExc_IndexError, "%s: no axis %lld in a tensor of %d", call, static_cast<long long>(a), rank);
				throw nb::python_error();
			}
			if (mask & YOKE_AXIS(k)) {
				PyErr_Format(PyExc_ValueError, "%s: axis %lld is given twice", call, static_cast<long long>(a));
				throw nb::python_error();
			}
			mask |= YOKE_AXIS(k);
		}
	}
	return mask | (keep ? YOKE_KEEP : 0u);
}

static std::vector<nb::object> dtypes; // by number
static nb::object dtype_class, record_class;

int dtype_of(nb::handle o)
{
	if (o.is_none())
		return YOKE_DTYPE_NONE;
	nb::object d = Py_TYPE(o.ptr()) == reinterpret_cast<PyTypeObject *>(dtype_class.ptr()) ? nb::borrow(o) : dtype_class(o);
	for (size_t i = 1; i < dtypes.size(); i++)
		if (dtypes[i].ptr() == d.ptr())
			return static_cast<int>(i);
	return YOKE_DTYPE_NONE;
}

nb::object dtype_object(int d)
{
	if (d < 0)
		fail(d);
	return dtypes.at(static_cast<size_t>(d));
}

nb::object shape_object(const yoke_tensor *t)
{
	int rank = yoke_rank(t);
	if (rank < 0)
		fail(rank);
	nb::object shape = nb::steal(PyTuple_New(rank));
	for (int i = 0; i < rank; i++)
		PyTuple_SetItem(shape.ptr(), i, PyLong_FromLongLong(yoke_dim(t, i)));
	return shape;
}

nb::object record()
{
	return record_class();
}

TensorList list_of(const std::vector<yoke_tensor *> &h, Context *ctx)
{
	nb::list list;
	for (yoke_tensor *t : h)
		list.append(nb::steal(give(t, t && yoke_context_of(t) != ctx->c ? context_of(t) : ctx)));
	return { nb::object(std::move(list)) };
}

std::vector<std::string> strings_of(nb::handle o, const char *call)
{
	std::vector<std::string> v;
	if (o.is_none())
		return v;
	if (PyUnicode_Check(o.ptr()) || !PySequence_Check(o.ptr()))
		type_error(call, "a list of texts", o);
	const Py_ssize_t n = size_of(o);
	for (Py_ssize_t i = 0; i < n; i++)
		v.push_back(OwnText(item_of(o, i), call).text);
	return v;
}

std::vector<const char *> pointers(const std::vector<std::string> &s)
{
	std::vector<const char *> p;
	for (const std::string &t : s)
		p.push_back(t.c_str());
	return p;
}

std::vector<double> numbers_of(nb::handle o, const char *call)
{
	std::vector<double> v;
	if (!PySequence_Check(o.ptr()))
		type_error(call, "a list of numbers", o);
	const Py_ssize_t n = size_of(o);
	for (Py_ssize_t i = 0; i < n; i++) {
		nb::object item = item_of(o, i);
		v.push_back(PyFloat_AsDouble(item.ptr()));
		if (v.back() == -1 && PyErr_Occurred())
			throw nb::python_error();
	}
	return v;
}

OwnText::OwnText(nb::handle o, const char *call) : there(!o.is_none())
{
	if (!there)
		return;
	nb::object path;
	if (!PyUnicode_Check(o.ptr())) {
		path = nb::steal(PyOS_FSPath(o.ptr()));
		if (!path.is_valid() || !PyUnicode_Check(path.ptr())) {
			PyErr_Clear();
			type_error(call, "a text", o);
		}
		o = path;
	}
	Py_ssize_t size;
	const char *s = PyUnicode_AsUTF8AndSize(o.ptr(), &size);
	if (!s)
		throw nb::python_error();
	if (strlen(s) != static_cast<size_t>(size)) {
		PyErr_Format(PyExc_ValueError, "%s: a text with a NUL in it", call);
		throw nb::python_error();
	}
	text.assign(s, static_cast<size_t>(size));
}

// What Python's part of the package has defined.
void args_setup(nb::module_ &m)
{
	device_error = nb::steal(PyErr_NewExceptionWithDoc("yoke.DeviceError",
		"A device, or what it held, is lost; or it cannot be used here.", PyExc_RuntimeError, nullptr));
	released_error = nb::steal(PyErr_NewExceptionWithDoc("yoke.ReleasedError",
		"A value would have to be computed again of something that has been overwritten since.",
		PyExc_RuntimeError, nullptr));
	m.attr("DeviceError") = device_error;
	m.attr("ReleasedError") = released_error;
	m.def("_set_classes", [](nb::object dtype, nb::object rec) {
		dtype_class = dtype;
		record_class = rec;
		dtypes.assign(YOKE_MAX_DTYPES, nb::none());
		nb::object all = nb::steal(PyObject_GetIter(dtype.ptr()));
		for (size_t i = 1; PyObject *d = PyIter_Next(all.ptr()); i++) // in the order of their numbers
			dtypes.at(i) = nb::steal(d);
	});
	m.def("autocast", [](Dtype dtype, Text keep_f32) {
		enter();
		OwnText keep(keep_f32.o, "autocast");
		const Autocast next{ dtype_of(dtype.o), keep.there, keep.text };
		Context *ctx = current();
		check(yoke_autocast(next.dtype, keep.c()));
		ctx->cast = next;
	}, "dtype"_a = nb::none(), "keep_f32"_a = nb::none(), DOC_autocast);
	m.def("_autocast", [] { // what is in force, as autocast takes it
		const Autocast &a = current()->cast;
		return nb::make_tuple(a.dtype == YOKE_DTYPE_NONE ? nb::none() : dtype_object(a.dtype),
				      a.keeps ? nb::object(nb::str(a.keep_f32.c_str())) : nb::none());
	});
	m.def("_joined", [](Dtype a, Dtype b) { return dtype_object(join(dtype_of(a.o), dtype_of(b.o))); }, "a"_a, "b"_a,
	      nb::sig("def _joined(a: typing.Any, b: typing.Any) -> yoke._record.dtype"));
	m.def("_forget", [] { // so that nothing is left at exit
		device_error.reset();
		released_error.reset();
		dtypes.clear();
		dtype_class.reset();
		record_class.reset();
		ops_forget();
	});
}

// ---- lists of tensors, for tensor.cc ----

void tensor_link(Tensor *t, Scope *s)
{
	link(t, s);
}

void tensor_unlink(Tensor *t)
{
	unlink(t);
}

} // namespace py
