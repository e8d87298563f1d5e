// SPDX-License-Identifier: Apache-2.0
// Custom operations: yoke-op.h with Python functions, which hold the GIL while they run.
#include "core.h"

#include <map>

namespace py {

// For the life of the process, as the op.
struct Own {
	nb::object shape, decompose, gradient, geometry;
	std::string name, text, entry;
};

static std::vector<Own *> owns;

void ops_forget()
{
	for (Own *o : owns)
		for (nb::object *fn : { &o->shape, &o->decompose, &o->gradient, &o->geometry })
			fn->reset();
}

static nb::object spec_of(const struct yoke_op_tensor &t)
{
	if (t.dtype == YOKE_DTYPE_NONE)
		return nb::none();
	nb::list dims;
	for (int i = 0; i < t.rank; i++)
		dims.append(t.dims[i]);
	nb::object rec = record();
	rec.attr("dtype") = dtype_object(t.dtype);
	rec.attr("shape") = nb::tuple(dims);
	return rec;
}

static nb::tuple specs_of(const struct yoke_op_args *a)
{
	nb::list all;
	for (int i = 0; i < a->nin; i++)
		all.append(spec_of(a->in[i]));
	return nb::tuple(all);
}

// What an op's function gives for n of something: a list of as many.
static void need_list(const char *op, nb::handle y, int n, const char *of)
{
	if (PyUnicode_Check(y.ptr()) || is_tensor(y.ptr()) || !PySequence_Check(y.ptr()))
		PyErr_Format(PyExc_TypeError, "%s gives %R, and should give a list of %d, %s", op, Py_TYPE(y.ptr()), n, of);
	else if (size_of(y) != n)
		PyErr_Format(PyExc_ValueError, "%s gives a list of %zd, and should give one of %d, %s", op, size_of(y), n, of);
	else
		return;
	throw nb::python_error();
}

// Runs fn with the GIL; an exception of Python's is the op's error.
template <typename F> static int run(const struct yoke_op_args *a, F fn)
{
	if (!Py_IsInitialized())
		return yoke_op_fail(a, YOKE_EINVAL, "Python has ended");
	Locked gil;
	Recording alone;
	std::string why;
	try {
		Own &o = *static_cast<Own *>(a->arg);
		if (!o.shape.is_valid())
			throw std::runtime_error("its functions are gone: Python is at its end");
		fn(o);
		return 0;
	} catch (const std::exception &e) {
		why = line_of(e);
	}
	return yoke_op_fail(a, YOKE_EINVAL, why.c_str());
}

static int own_shape(const struct yoke_op_args *a, struct yoke_op_tensor *out)
{
	return run(a, [&](Own &o) {
		nb::object list = nb::steal(PyObject_CallObject(o.shape.ptr(), specs_of(a).ptr()));
		if (!list.is_valid())
			throw nb::python_error();
		need_list("shape", list, a->nout, "what each result is");
		for (int i = 0; i < a->nout; i++) {
			nb::object one = item_of(list, i);
			std::vector<int64_t> dims = shape_of(nb::object(one.attr("shape")), a->name);
			if (dims.size() > YOKE_MAX_RANK)
				throw nb::value_error("a result has too many axes");
			out[i].dtype = dtype_of(nb::object(one.attr("dtype")));
			out[i].rank = static_cast<int>(dims.size());
			std::copy(dims.begin(), dims.end(), out[i].dims);
		}
	});
}

// What a function records with tensors that are C's goes to C; `none`: a result may be None.
static void recorded(const char *what, nb::object &fn, nb::tuple args, int n, bool none, yoke_tensor **to)
{
	const char *of = none ? "the gradient by each operand" : "the results";
	Scope *scope = scope_of_c(current());
	try {
		nb::object y = nb::steal(PyObject_CallObject(fn.ptr(), args.ptr()));
		if (!y.is_valid())
			throw nb::python_error();
		const bool single = n == 1 && (is_tensor(y.ptr()) || (y.is_none() && none));
		if (!single)
			need_list(what, y, n, of);
		for (int i = 0; i < n; i++) {
			nb::object one = single ? y : item_of(y, i);
			if (one.is_none() && none) {
				to[i] = YOKE_NONE;
				continue;
			}
			if (!is_tensor(one.ptr())) {
				PyErr_Format(PyExc_TypeError, "%s gives %R at %d, and should give a tensor", what, Py_TYPE(one.ptr()), i);
				throw nb::python_error();
			}
			to[i] = as_tensor(one.ptr())->h;
			if (as_tensor(one.ptr())->scope == scope)
				as_tensor(one.ptr())->held = Held::LENT;
		}
	} catch (...) {
		scope_end(scope, false);
		throw;
	}
	scope_end(scope, false);
}

static nb::object lent_list(int n, yoke_tensor *const *t)
{
	nb::list all;
	for (int i = 0; i < n; i++)
		all.append(t[i] == YOKE_NONE ? nb::none() : nb::steal(lend(t[i], current(), Py_None)));
	return nb::object(std::move(all));
}

static int own_decompose(const struct yoke_op_args *a, yoke_tensor *const *in, yoke_tensor **out)
{
	return run(a, [&](Own &o) { recorded("decompose", o.decompose, nb::tuple(lent_list(a->nin, in)), a->nout, false, out); });
}

static int own_gradient(const struct yoke_op_args *a, yoke_tensor *const *in, yoke_tensor *const *out, yoke_tensor *const *g,
			yoke_tensor **to)
{
	return run(a, [&](Own &o) {
		recorded("gradient", o.gradient, nb::make_tuple(lent_list(a->nin, in), lent_list(a->nout, out), lent_list(a->nout, g)), a->nin,
			 true, to);
	});
}

static int own_geometry(const struct yoke_op_args *a, uint64_t global[3], uint64_t local[3])
{
	return run(a, [&](Own &o) {
		nb::object g = nb::steal(PyObject_CallObject(o.geometry.ptr(), specs_of(a).ptr()));
		if (!g.is_valid())
			throw nb::python_error();
		std::vector<int64_t> all = shape_of(nb::object(g[0]), a->name), group = shape_of(nb::object(g[1]), a->name);
		for (size_t i = 0; i < 3; i++) {
			global[i] = i < all.size() ? static_cast<uint64_t>(all[i]) : 1;
			local[i] = i < group.size() ? static_cast<uint64_t>(group[i]) : 0;
		}
	});
}

static int op_register(const std::string &name, int inputs, int outputs, nb::object shape, Text text, Text entry,
		       nb::object decompose, nb::object gradient, nb::object geometry, unsigned optional)
{
	enter();
	OwnText t(text.o, "op_register"), e(entry.o, "op_register");
	auto o = std::make_unique<Own>(Own{ shape, decompose, gradient, geometry, name, t.text, e.text });
	struct yoke_op_def d = {};
	d.size = sizeof d;
	d.name = o->name.c_str();
	d.nin = inputs;
	d.nout = outputs;
	d.optional = optional;
	d.shape = own_shape;
	d.decompose = decompose.is_none() ? nullptr : own_decompose;
	d.gradient = gradient.is_none() ? nullptr : own_gradient;
	d.geometry = geometry.is_none() ? nullptr : own_geometry;
	d.text = t.there ? o->text.c_str() : nullptr;
	d.entry = e.there ? o->entry.c_str() : nullptr;
	d.arg = o.get();
	const int op = static_cast<int>(check(yoke_op_register(&d)));
	owns.push_back(o.release());
	return op;
}

void op_setup(nb::module_ &m)
{
	m.def("op_register", op_register, "name"_a, "inputs"_a, "outputs"_a, "shape"_a, nb::kw_only(), "text"_a = nb::none(),
	      "entry"_a = nb::none(), "decompose"_a = nb::none(), "gradient"_a = nb::none(), "geometry"_a = nb::none(),
	      "optional"_a = 0, "For the life of the process: gives the op's number.  yoke.op is for people.");
	m.def("op_find", [](const std::string &name) { return check(yoke_op_find(name.c_str())); }, "name"_a,
	      "The number of a name.");
	m.def("op_call", [](int op, Optionals in, int outputs) {
		enter();
		Ops x(in.o, true, "op_call");
		std::vector<yoke_tensor *> out(static_cast<size_t>(std::max(0, outputs)));
		check(yoke_op_call(op, x.n(), x.h.data(), 0, nullptr, outputs, out.data()));
		return list_of(out, x.ctx ? x.ctx : current());
	}, "op"_a, "x"_a, "outputs"_a = 1, "Records the op.");
	m.def("op_check", [](int op, Optionals in, double tolerance) {
		enter();
		Ops x(in.o, true, "op_check");
		check(yoke_op_check(op, x.n(), x.h.data(), 0, nullptr, tolerance));
	}, "op"_a, "x"_a, "tolerance"_a = 0.0,
	"Computes it in each way that it has, and compares; its gradient with differences.  ValueError names what differs.");
}

} // namespace py
