// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the extension's files: Python tensors, errors as exceptions, waits.
//
// A tensor that Python has is the caller's where no scope is open, and kept (yoke_keep), so that it
// is a root of the next evaluation for as long as an object holds it.  Inside `with yoke.scope(..)`
// it belongs to that scope, whose end takes it from all objects that are left; a module's call
// lifts them out instead.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <yoke-cube.h>
#include <yoke-data.h>
#include <yoke-dist.h>
#include <yoke-engine.h>
#include <yoke-fit.h>
#include <yoke-linalg.h>
#include <yoke-math.h>
#include <yoke-model.h>
#include <yoke-nn.h>
#include <yoke-observe.h>
#include <yoke-op.h>
#include <yoke-optim.h>
#include <yoke-pipeline.h>
#include <yoke-quant.h>
#include <yoke-run.h>
#include <yoke-serve.h>
#include <yoke-tokenizer.h>
#include <yoke.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace py {

struct Scope;

// The most recent autocast setting.
struct Autocast {
	int dtype = YOKE_DTYPE_NONE;
	bool keeps = false;
	std::string keep_f32;
};

// A context, which lives as long as the process.
struct Context {
	yoke_context *c = nullptr;
	Autocast cast;
	Scope *top = nullptr; // the innermost scope that Python opened
	bool ours = false;    // made here
};

// ---- tensors ----

enum class Held : uint8_t {
	OURS, // freed with the object
	LENT, // owned by a module or an optimizer
	GONE, // its scope has ended
	FREED,
};

struct Tensor {
	PyObject_HEAD
	yoke_tensor *h;
	Context *ctx;
	Scope *scope; // the list that it is in, or NULL
	Tensor *next, *prev;
	PyObject *owner; // borrowed
	Held held;
};

extern PyTypeObject *tensor_type;
inline bool is_tensor(PyObject *o)
{
	return Py_TYPE(o) == tensor_type;
}
inline Tensor *as_tensor(PyObject *o)
{
	return reinterpret_cast<Tensor *>(o);
}
// Raises the error that explains why a handle is stale.
void alive(const Tensor *, const char *call);
// A new object that owns the handle, or raises yoke's error when it is NULL. root: outside of
// scopes the next evaluation computes it; views of memory that others may write are excluded.
PyObject *give(yoke_tensor *, Context *, bool root = true);
// An object whose handle somebody else frees.
PyObject *lend(yoke_tensor *, Context *, PyObject *owner);
void tensor_setup(nb::module_ &);
void share_setup(nb::module_ &);
void wait_setup(nb::module_ &);
void nn_setup(nb::module_ &);
void data_setup(nb::module_ &);
void op_setup(nb::module_ &);
void fit_setup(nb::module_ &);
void model_setup(nb::module_ &);
void engine_setup(nb::module_ &);
void serve_setup(nb::module_ &);

// ---- scopes, contexts ----

struct Scope {
	yoke_scope *s;
	Scope *outer;
	Context *ctx;
	Tensor *first; // open ones
	Autocast cast; // of the enclosing scope, restored at the end
};

// The thread's context; raises when none can be made.
Context *current();
// Python's record of a context. A current context of the thread that has no record yet is
// registered.
Context *known(yoke_context *, bool current = false);
// The record of a tensor's context.
Context *context_of(const yoke_tensor *);
// yoke_trim in each of the thread's contexts.
int64_t trim();
// C code may have made a context for the thread: it is registered from now on.
void adopt();
Scope *scope_begin(const char *name);
// Registers a scope that C opened, and will end.
Scope *scope_of_c(Context *);
// lift: values held by objects move to the enclosing scope. Raises yoke's error unless an exception
// is set already.
void scope_end(Scope *, bool lift);

// ---- errors ----

// Raises this thread's error as a Python exception; if the call gave only `code`, an exception for
// it.
[[noreturn]] void fail(int code = 0);
// Checks the result of a function that returns 0 or an error.
inline int64_t check(int64_t r)
{
	if (r < 0)
		fail(static_cast<int>(r));
	return r;
}
void set_error(int code, const char *text);
// The text of an exception, in one line.
std::string line_of(const std::exception &);

// ---- waits ----

// Releases the GIL and takes it back: nanobind's guard, plus a record for code that must know
// whether it holds the GIL, because the stable ABI has no PyGILState_Check.
inline thread_local bool without_gil;
template <typename G, bool without> struct Noted {
	bool was = without_gil;
	G gil;
	Noted() { without_gil = without; }
	~Noted() { without_gil = was; }
};
using Unlocked = Noted<nb::gil_scoped_release, true>;
using Locked = Noted<nb::gil_scoped_acquire, false>;
// Does this thread hold the GIL? A thread unknown to Python holds none.
inline bool locked()
{
	return !without_gil && PyGILState_GetThisThreadState();
}

// Callbacks from C into Python objects are over: at exit.
void ops_forget();

// Work between Python's calls and yoke's: releases objects that yoke returned, and waits for an
// evaluation that Ctrl-C abandoned.
void enter();
// While one exists, this thread is in an op's function, which may only record: nothing waits for
// another thread.
struct Recording {
	bool was;
	Recording();
	~Recording();
};
// Calls fn without the GIL, and raises its error. On the main thread another thread runs it, so
// that Ctrl-C ends the wait; fn then continues, so it must own its data.
int64_t wait_for(std::function<int64_t()> fn);
// For calls that must not be abandoned: without the GIL, in this thread.
template <typename F> auto unlocked(F fn)
{
	Unlocked gil;
	return fn();
}
// Evaluates tensors in this thread if that is brief, and then calls `read`; otherwise
// wait_for(whole).
template <typename Read, typename Whole>
int64_t evaluated(int n, yoke_tensor *const *t, bool all, const Read &read, Whole whole)
{
	int64_t result = 0;
	const int brief = unlocked([&] {
		const int b = yoke_eval_brief(n, t, all);
		result = b == 1 ? read() : b;
		return b;
	});
	if (!brief)
		return wait_for(std::move(whole));
	enter();
	return check(result);
}
// One of the next calls drops Python's reference; may be called from any thread.
void release_later(void (*fn)(void *), void *arg);

// ---- arguments ----

// An argument without conversion, with a name for signatures.
template <typename Tag> struct Arg {
	nb::handle o;
};
struct OperandTag {
	static constexpr auto name = nb::detail::const_name("yoke._core.Tensor | float");
};
struct OptionalTag {
	static constexpr auto name = nb::detail::const_name("yoke._core.Tensor | float | None");
};
struct TensorsTag {
	static constexpr auto name =
		nb::detail::const_name("collections.abc.Sequence[yoke._core.Tensor]");
};
struct OptionalsTag {
	static constexpr auto name = nb::detail::const_name(
		"collections.abc.Sequence[yoke._core.Tensor | float | None]");
};
struct ShapeTag {
	static constexpr auto name = nb::detail::const_name("int | collections.abc.Sequence[int]");
};
struct AxesTag {
	static constexpr auto name =
		nb::detail::const_name("int | collections.abc.Sequence[int] | None");
};
struct DtypeTag { static constexpr auto name = nb::detail::const_name("typing.Any"); };
struct StringsTag {
	static constexpr auto name = nb::detail::const_name("collections.abc.Sequence[str]");
};
struct NumbersTag {
	static constexpr auto name = nb::detail::const_name("collections.abc.Sequence[float]");
};
struct TextTag { static constexpr auto name = nb::detail::const_name("str | None"); };
using Operand = Arg<OperandTag>;
using Optional = Arg<OptionalTag>;
using Tensors = Arg<TensorsTag>;
using Optionals = Arg<OptionalsTag>;
using Shape = Arg<ShapeTag>;
using Axes = Arg<AxesTag>;
using Dtype = Arg<DtypeTag>;
using Strings = Arg<StringsTag>;
using Numbers = Arg<NumbersTag>;
using Text = Arg<TextTag>;

// Results, with a name for signatures.
template <typename Tag> struct Ret {
	nb::object o;
};
struct TensorTag { static constexpr auto name = nb::detail::const_name("yoke._core.Tensor"); };
struct BatchTag {
	static constexpr auto name = nb::detail::const_name("tuple[yoke._core.Tensor, ...] | None");
};
struct HostBatchTag {
	static constexpr auto name =
		nb::detail::const_name("tuple[numpy.ndarray[typing.Any, typing.Any], ...] | None");
};
struct ListPairTag {
	static constexpr auto name =
		nb::detail::const_name("tuple[list[yoke._core.Tensor], yoke._core.Tensor]");
};
struct ArrayTag {
	static constexpr auto name =
		nb::detail::const_name("numpy.ndarray[typing.Any, typing.Any]");
};
struct ArraysTag {
	static constexpr auto name =
		nb::detail::const_name("tuple[numpy.ndarray[typing.Any, typing.Any], ...]");
};
struct TensorListTag {
	static constexpr auto name = nb::detail::const_name("list[yoke._core.Tensor]");
};
struct PairTag {
	static constexpr auto name =
		nb::detail::const_name("tuple[yoke._core.Tensor, yoke._core.Tensor]");
};
struct ThreeTag {
	static constexpr auto name = nb::detail::const_name(
		"tuple[yoke._core.Tensor, yoke._core.Tensor, yoke._core.Tensor]");
};
struct FourTag {
	static constexpr auto name = nb::detail::const_name(
		"tuple[yoke._core.Tensor, yoke._core.Tensor, yoke._core.Tensor, yoke._core.Tensor]");
};
struct RecordTag { static constexpr auto name = nb::detail::const_name("yoke._record.Record"); };
struct RecordsTag {
	static constexpr auto name = nb::detail::const_name("list[yoke._record.Record]");
};
struct DtypeRetTag { static constexpr auto name = nb::detail::const_name("yoke._record.dtype"); };
using TensorRet = Ret<TensorTag>;
using TensorList = Ret<TensorListTag>;
using Pair = Ret<PairTag>;
using Three = Ret<ThreeTag>;
using Four = Ret<FourTag>;
using RecordRet = Ret<RecordTag>;
using Records = Ret<RecordsTag>;
using Batch = Ret<BatchTag>;
using HostBatch = Ret<HostBatchTag>;
using ListPair = Ret<ListPairTag>;
using Array = Ret<ArrayTag>;
using Arrays = Ret<ArraysTag>;

// An operand: a tensor's handle, or a scalar's, which is freed with this object.
class Op {
public:
	yoke_tensor *h = nullptr;
	Context *ctx = nullptr;
	Op() = default;
	Op(const Op &) = delete;
	Op &operator=(const Op &) = delete;
	~Op();
	void take(nb::handle, bool optional, const char *call);
	void own(yoke_tensor *); // freed at the end
	int number = 0; // 1, 2, 3: a Python bool, integer or float
	double value = 0;
	void make_number(); // in the current context
	nb::object holder; // made from an array
private:
	bool temporary = false;
};

// Scalar operands are made in the tensors' context.
void beside(std::initializer_list<Op *>);
// Tensor operands get one dtype, as in NumPy and PyTorch: bool < integers < floating point; scalars
// count only by their kind.
void promote(std::initializer_list<Op *>, bool real = false);

// A list of operands, which are freed with this object.
struct Ops {
	std::vector<yoke_tensor *> h;
	std::vector<std::unique_ptr<Op>> op;
	Context *ctx = nullptr;
	Ops(nb::handle list, bool optional, const char *call);
	int n() const { return static_cast<int>(h.size()); }
};
void same_count(const char *call, size_t a, size_t b);

// The length of a list, and one of its items; raises the list's exceptions.
Py_ssize_t size_of(nb::handle list);
nb::object item_of(nb::handle list, Py_ssize_t i);
std::vector<int64_t> shape_of(nb::handle, const char *call);
// n numbers, or one for all.
void fill(nb::handle, int64_t *to, int n, const char *call);
unsigned axes_of(nb::handle, bool keep, const yoke_tensor *x, const char *call);
int dtype_of(nb::handle);
std::vector<std::string> strings_of(nb::handle, const char *call);
std::vector<double> numbers_of(nb::handle, const char *call);
std::vector<const char *> pointers(const std::vector<std::string> &);
struct OwnText { // a text or NULL
	std::string text;
	bool there;
	OwnText(nb::handle, const char *call);
	const char *c() const { return there ? text.c_str() : nullptr; }
};

nb::object dtype_object(int dtype);
nb::object shape_object(const yoke_tensor *);
nb::object record();      // an empty one
TensorList list_of(const std::vector<yoke_tensor *> &, Context *);

// ---- objects of other kinds ----

template <typename T> void free_of(T *);

template <typename T> struct Handle {
	T *p = nullptr;
	nb::object keep; // an object that must live as long
	bool lent = false; // *p belongs to that object
	T *get(const char *call) const
	{
		if (!p) {
			PyErr_Format(PyExc_ValueError, "%s: the object was freed before", call);
			throw nb::python_error();
		}
		return p;
	}
	void drop()
	{
		T *was = p;
		p = nullptr;
		if (was && !lent)
			free_of(was);
		keep.reset();
	}
	~Handle()
	{
		drop();
		yoke_error_clear();
	}
};

// A new object of a class, with the class as its type in signatures.
template <typename C> struct Made {
	nb::object o;
	operator nb::object() const { return o; }
};

template <typename T> Made<Handle<T>> made(T *p)
{
	if (!p)
		fail();
	adopt();
	auto *h = new Handle<T>();
	h->p = p;
	return { nb::cast(h, nb::rv_policy::take_ownership) };
}

} // namespace py

namespace nanobind::detail {
template <typename Tag> struct type_caster<py::Arg<Tag>> {
	NB_TYPE_CASTER(py::Arg<Tag>, Tag::name)
	bool from_python(handle src, uint32_t, cleanup_list *) noexcept
	{
		value.o = src;
		return true;
	}
	static handle from_cpp(const py::Arg<Tag> &v, rv_policy, cleanup_list *) noexcept
	{
		return v.o.inc_ref();
	}
};
template <typename Tag> struct type_caster<py::Ret<Tag>> {
	NB_TYPE_CASTER(py::Ret<Tag>, Tag::name)
	bool from_python(handle, uint32_t, cleanup_list *) noexcept { return false; }
	static handle from_cpp(const py::Ret<Tag> &v, rv_policy, cleanup_list *) noexcept
	{
		return v.o.inc_ref();
	}
};
template <typename C> struct type_caster<py::Made<C>> {
	NB_TYPE_CASTER(py::Made<C>, make_caster<C>::Name)
	bool from_python(handle, uint32_t, cleanup_list *) noexcept { return false; }
	static handle from_cpp(const py::Made<C> &v, rv_policy, cleanup_list *) noexcept
	{
		return v.o.inc_ref();
	}
};
} // namespace nanobind::detail
