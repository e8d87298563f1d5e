// SPDX-License-Identifier: Apache-2.0
// Modules, and optimizers over their parameters.
#include "module.h"
#include "docs.h"

#include <algorithm>
#include <map>

namespace py {

// ---- trees ----

Tree::~Tree()
{
	if (root)
		yoke_module_free(root);
	yoke_error_clear();
}

yoke_module *Module::get(const char *call) const
{
	const Tree *t = tree.get();
	while (t && t->into)
		t = t->into.get();
	if (!t || !t->root) {
		PyErr_Format(PyExc_ValueError, "%s: the module was freed before", call);
		throw nb::python_error();
	}
	return m;
}

Made<Module> made(yoke_module *m)
{
	if (!m)
		fail();
	adopt();
	auto *o = new Module;
	o->m = m;
	o->tree = std::make_shared<Tree>();
	o->tree->root = m;
	return { nb::cast(o, nb::rv_policy::take_ownership) };
}

// The module is a part of the other one from now on.
static void joined(Module &child, const Module &to)
{
	child.tree->root = nullptr;
	child.tree->into = to.tree;
}

// Who takes a module takes one that is nobody's: C would free it after an error, too.
static void need_root(const Module &child, const char *call)
{
	child.get(call);
	if (child.tree->into) {
		PyErr_Format(PyExc_ValueError, "%s: the module is part of another one already", call);
		throw nb::python_error();
	}
}

// What fits C frees for want of memory alone.
static void freed_for_memory(Module &child, const yoke_module *made)
{
	if (!made && yoke_error_code() == YOKE_ENOMEM)
		child.tree->root = nullptr;
}

// ---- modules that are written in Python ----

struct Python {
	PyObject *weak; // of the object
	std::string name;
};

static void drop(void *o)
{
	Py_DECREF(static_cast<PyObject *>(o));
}

static int python_forward(yoke_module *, void *state, int n, yoke_tensor *const *in, int k, yoke_tensor **out)
{
	Locked gil;
	auto *p = static_cast<Python *>(state);
	Scope *scope = nullptr;
	try {
		Context *ctx = current();
		nb::object self = nb::steal(PyObject_CallNoArgs(p->weak));
		if (self.is_none())
			throw std::runtime_error(p->name + ": its object is gone");
		scope = scope_of_c(ctx);
		nb::object args = nb::steal(PyTuple_New(n));
		for (int i = 0; i < n; i++)
			PyTuple_SetItem(args.ptr(), i, lend(in[i], ctx, Py_None));
		nb::object forward = self.attr("forward");
		nb::object y = nb::steal(PyObject_Call(forward.ptr(), args.ptr(), nullptr));
		if (!y.is_valid())
			throw nb::python_error();
		for (int i = 0; i < k; i++) {
			nb::object one = k == 1 && is_tensor(y.ptr()) ? y : nb::steal(PySequence_GetItem(y.ptr(), i));
			if (!one.is_valid() || !is_tensor(one.ptr()))
				throw nb::type_error("forward: a module gives tensors");
			Tensor *t = as_tensor(one.ptr());
			alive(t, "forward");
			if (t->scope == scope && t->held == Held::OURS) {
				out[i] = t->h;
				t->held = Held::LENT; // C lifts it
			} else { // an operand, a parameter: somebody else's
				int64_t dims[YOKE_MAX_RANK];
				const int rank = static_cast<int>(check(yoke_rank(t->h)));
				for (int k = 0; k < rank; k++)
					dims[k] = yoke_dim(t->h, k);
				if (!(out[i] = yoke_reshape(t->h, rank, dims)))
					fail();
			}
		}
		Scope *s = scope;
		scope = nullptr;
		scope_end(s, true);
		return 0;
	} catch (nb::python_error &e) {
		e.restore();
	} catch (const std::exception &e) {
		PyErr_SetString(PyExc_RuntimeError, e.what());
	}
	if (scope)
		scope_end(scope, false);
	return YOKE_EINVAL; // Python's own exception goes on
}

static void python_release(void *state)
{
	auto *p = static_cast<Python *>(state);
	release_later(drop, p->weak);
	delete p;
}

// A class is C's for as long as the process lives.
static const yoke_module_class *class_of(const std::string &name)
{
	static std::map<std::string, yoke_module_class> classes;
	auto at = classes.emplace(name, yoke_module_class{}).first;
	at->second = { sizeof(yoke_module_class), at->first.c_str(), python_forward, python_release };
	return &at->second;
}

static Made<Module> module_new(const std::string &name, nb::object weak)
{
	enter();
	current();
	return made(yoke_module_new(class_of(name), new Python{ weak.release().ptr(), name }));
}

static TensorRet lent(yoke_tensor *t, nb::handle owner)
{
	return { nb::steal(lend(t, current(), owner.ptr())) };
}

struct Entry {
	std::string path;
	yoke_tensor *t;
	unsigned flags;
};

static int note(void *arg, const char *path, yoke_tensor *t, unsigned flags)
{
	static_cast<std::vector<Entry> *>(arg)->push_back({ path, t, flags });
	return 0;
}

static nb::list module_each(nb::object self)
{
	enter();
	std::vector<Entry> all;
	check(yoke_module_each(nb::cast<Module &>(self).get("module_each"), note, &all));
	nb::list list;
	for (const Entry &e : all)
		list.append(nb::make_tuple(e.path, lent(e.t, self).o, e.flags));
	return list;
}

static nb::tuple module_parameters(nb::object self)
{
	enter();
	yoke_module *m = nb::cast<Module &>(self).get("module_parameters");
	const int n = static_cast<int>(check(yoke_module_parameters(m, 0, nullptr, nullptr)));
	std::vector<yoke_tensor *> t(static_cast<size_t>(n));
	std::vector<const char *> name(static_cast<size_t>(n));
	check(yoke_module_parameters(m, n, t.data(), name.data()));
	nb::list names, tensors;
	for (size_t i = 0; i < t.size(); i++) {
		names.append(nb::str(name[i]));
		tensors.append(lent(t[i], self).o);
	}
	return nb::make_tuple(tensors, names);
}

// A parameter becomes the one that `to` is, which is lent by the module that owns it.
static bool module_tied(Module &self, Text name, nb::handle to)
{
	enter();
	OwnText n(name.o, "module_tie");
	if (!is_tensor(to.ptr()) || as_tensor(to.ptr())->held != Held::LENT || !nb::isinstance<Module>(as_tensor(to.ptr())->owner))
		return false;
	Module &of = nb::cast<Module &>(nb::handle(as_tensor(to.ptr())->owner));
	std::vector<Entry> all;
	check(yoke_module_each(of.get("module_tie"), note, &all));
	for (const Entry &e : all)
		if (e.t == as_tensor(to.ptr())->h && !(e.flags & YOKE_MODULE_BUFFER)) {
			check(yoke_module_tie(self.get("module_tie"), n.c(), of.m, e.path.c_str()));
			return true;
		}
	return false;
}

struct Renamed {
	nb::object fn;
	std::exception_ptr error;
};

static void rename_by(void *arg, const char *name, char *to, size_t room)
{
	auto *r = static_cast<Renamed *>(arg);
	std::string text = name;
	try {
		if (!r->error) {
			nb::object to_name = r->fn(name);
			if (!PyUnicode_Check(to_name.ptr()))
				throw nb::type_error(("module_load: rename gives a text for '" + text + "'").c_str());
			text = nb::cast<std::string>(to_name);
		}
	} catch (...) {
		r->error = std::current_exception();
	}
	snprintf(to, room, "%s", text.c_str());
}

static void module_load(Module &m, Text path, bool partial, bool exact, nb::object rename)
{
	enter();
	OwnText file(path.o, "module_load");
	Renamed r{ rename, nullptr };
	struct yoke_module_load o = {};
	o.size = sizeof o;
	o.partial = partial;
	o.exact = exact;
	o.rename = rename.is_none() ? nullptr : rename_by;
	o.arg = &r;
	const int err = yoke_module_load(m.get("module_load"), file.c(), &o);
	if (r.error) {
		yoke_error_clear();
		std::rethrow_exception(r.error);
	}
	check(err);
}

static TensorList forward(Module &m, Tensors in, int count)
{
	enter();
	Ops x(in.o, false, "forward");
	std::vector<yoke_tensor *> out(static_cast<size_t>(std::max(count, 0)));
	const int err = yoke_forward(m.get("forward"), x.n(), x.h.data(), count, out.data());
	if (err)
		fail(err);
	return list_of(out, x.ctx ? x.ctx : current());
}

static Made<Module> sequential(nb::sequence list)
{
	enter();
	std::vector<yoke_module *> m;
	for (nb::handle o : list) {
		yoke_module *one = nb::cast<Module &>(o).m;
		need_root(nb::cast<Module &>(o), "nn_sequential");
		if (std::find(m.begin(), m.end(), one) != m.end()) {
			PyErr_Format(PyExc_ValueError, "nn_sequential: module %zu is there before; a module has one place, its "
				     "parameters may be shared", m.size());
			throw nb::python_error();
		}
		m.push_back(one);
	}
	yoke_module *all = yoke_nn_sequential(static_cast<int>(m.size()), m.data());
	for (nb::handle o : list)
		freed_for_memory(nb::cast<Module &>(o), all);
	Made<Module> made_all = made(all);
	for (nb::handle o : list)
		joined(nb::cast<Module &>(o), nb::cast<Module &>(made_all.o));
	return made_all;
}

template <typename F> static Made<Module> around(Module &inner, const char *call, F fn)
{
	enter();
	need_root(inner, call);
	yoke_module *m = fn(inner.m);
	freed_for_memory(inner, m);
	Made<Module> all = made(m);
	joined(inner, nb::cast<Module &>(all.o));
	return all;
}

// ---- optimizers ----

template <> void free_of(yoke_optim *o)
{
	yoke_optim_free(o);
}

static void optim_add(Handle<yoke_optim> &o, Tensors p, Strings names, Text settings)
{
	enter();
	Ops t(p.o, false, "optim_add");
	std::vector<std::string> name = strings_of(names.o, "optim_add");
	same_count("optim_add", t.h.size(), name.size());
	OwnText s(settings.o, "optim_add");
	check(yoke_optim_add(o.get("optim_add"), t.n(), t.h.data(), pointers(name).data(), s.c()));
	if (!o.keep.is_valid())
		o.keep = nb::list();
	nb::cast<nb::list>(o.keep).append(nb::list(p.o)); // parameters outlive it
}

static yoke_tensor *loss_of(void *arg)
{
	try {
		nb::object y = (*static_cast<nb::object *>(arg))();
		if (!is_tensor(y.ptr()))
			throw nb::type_error("optim_step: loss gives a tensor");
		as_tensor(y.ptr())->held = Held::LENT; // C has it from now on, in the scope or the caller's
		return as_tensor(y.ptr())->h;
	} catch (nb::python_error &e) {
		e.restore();
	} catch (const std::exception &e) {
		PyErr_SetString(PyExc_TypeError, e.what());
	}
	return nullptr;
}

static std::optional<TensorRet> optim_step(Handle<yoke_optim> &o, Tensors grads, Optional scale, Optional skip,
					    nb::object precondition, std::optional<double> lr, nb::object loss, bool norm)
{
	enter();
	Ops g(grads.o, false, "optim_step");
	Op by, held;
	by.take(scale.o, true, "optim_step");
	held.take(skip.o, true, "optim_step");
	std::optional<Ops> pre;
	if (!precondition.is_none()) {
		pre.emplace(precondition, false, "optim_step");
		same_count("optim_step", pre->h.size(), g.h.size());
	}
	yoke_tensor *length = nullptr;
	struct yoke_step s = {};
	s.size = sizeof s;
	s.scale = by.h;
	s.skip = held.h;
	s.precondition = pre ? pre->h.data() : nullptr;
	s.lr = lr ? &*lr : nullptr;
	s.loss = loss.is_none() ? nullptr : loss_of;
	s.arg = &loss;
	s.norm = norm ? &length : nullptr;
	check(yoke_optim_step(o.get("optim_step"), g.n(), g.h.data(), &s));
	if (norm)
		return TensorRet{ nb::steal(give(length, g.ctx)) };
	return std::nullopt;
}

static TensorRet optim_state(nb::object self, Text parameter, Text state)
{
	enter();
	OwnText p(parameter.o, "optim_state"), s(state.o, "optim_state");
	return lent(yoke_optim_state(nb::cast<Handle<yoke_optim> &>(self).get("optim_state"), p.c(), s.c()), self);
}

// ---- a call of a module that is written in Python ----

static nb::object called(nb::handle self, const std::string &name, nb::args args, nb::kwargs kwargs)
{
	Scope *s = scope_begin(name.c_str());
	nb::object y = nb::steal(PyObject_Call(nb::object(self.attr("forward")).ptr(), args.ptr(), kwargs.ptr()));
	if (!y.is_valid()) {
		PyObject *type, *value, *trace;
		PyErr_Fetch(&type, &value, &trace);
		try {
			scope_end(s, true);
		} catch (nb::python_error &) { // the first one counts
		}
		PyErr_Restore(type, value, trace);
		throw nb::python_error();
	}
	scope_end(s, true);
	return y;
}

void nn_setup(nb::module_ &m)
{
	nb::class_<Module>(m, "ModuleHandle", "A module of C's; yoke.nn.Module is for people.");
	nb::class_<Handle<yoke_optim>>(m, "Optim", "An optimizer of C's; yoke.optim has classes.");
	m.def("module_new", module_new, "name"_a, "ref"_a, "A module without parameters, whose forward function is that of the object "
	      "that ref() gives.");
	m.def("module_free", [](Module &o) {
		enter();
		need_root(o, "module_free");
		o.tree->root = nullptr;
		check(yoke_module_free(o.m));
	}, "module"_a, "Frees it with its parameters, buffers and children; it would be when nothing refers to it any more.");
	m.def("module_parameter", [](nb::object self, Text name, Dtype dtype, Shape shape, int first, double value) {
		enter();
		OwnText n(name.o, "module_parameter");
		std::vector<int64_t> dims = shape_of(shape.o, "module_parameter");
		return lent(yoke_module_parameter(nb::cast<Module &>(self).get("module_parameter"), n.c(), dtype_of(dtype.o),
			static_cast<int>(dims.size()), dims.data(), first, value), self);
	}, "module"_a, "name"_a, "dtype"_a, "shape"_a, "first"_a = 0, "value"_a = 0.0, DOC_module_parameter);
	m.def("module_buffer", [](nb::object self, Text name, Dtype dtype, Shape shape, double value) {
		enter();
		OwnText n(name.o, "module_buffer");
		std::vector<int64_t> dims = shape_of(shape.o, "module_buffer");
		return lent(yoke_module_buffer(nb::cast<Module &>(self).get("module_buffer"), n.c(), dtype_of(dtype.o),
			static_cast<int>(dims.size()), dims.data(), value), self);
	}, "module"_a, "name"_a, "dtype"_a, "shape"_a, "value"_a = 0.0, DOC_module_buffer);
	m.def("module_own", [](nb::object self, int i) {
		enter();
		return lent(yoke_module_own(nb::cast<Module &>(self).get("module_own"), i), self);
	}, "module"_a, "i"_a, DOC_module_own);
	m.def("module_child", [](Module &self, Text name, Module &child) {
		enter();
		OwnText n(name.o, "module_child");
		yoke_module *to = self.get("module_child");
		bool part = false; // of itself; C leaves it alone then
		for (const Tree *t = self.tree.get(); t; t = t->into.get())
			part |= t == child.tree.get();
		if (!part)
			need_root(child, "module_child");
		int err = yoke_module_child(to, n.c(), child.m);
		if (!err)
			joined(child, self);
		else if (!part)
			child.tree->root = nullptr; // it was freed
		check(err);
	}, "module"_a, "name"_a, "child"_a, DOC_module_child);
	m.def("module_at", [](Module &self, int i) -> std::optional<Made<Module>> {
		enter();
		yoke_module *c = yoke_module_at(self.get("module_at"), i);
		if (!c)
			return std::nullopt;
		auto *o = new Module;
		o->m = c;
		o->tree = self.tree;
		return Made<Module>{ nb::cast(o, nb::rv_policy::take_ownership) };
	}, "module"_a, "i"_a, DOC_module_at);
	m.def("module_each", module_each, "module"_a, "Its parameters and buffers: (path, tensor, flags).");
	m.def("module_parameters", module_parameters, "module"_a, "Its parameters that are not frozen, and their names.");
	m.def("module_find", [](nb::object self, Text path) {
		enter();
		OwnText p(path.o, "module_find");
		return lent(yoke_module_find(nb::cast<Module &>(self).get("module_find"), p.c()), self);
	}, "module"_a, "path"_a, DOC_module_find);
	m.def("module_load", module_load, "module"_a, "path"_a, nb::kw_only(), "partial"_a = false, "exact"_a = false,
	      "rename"_a = nb::none(), DOC_module_load);
	m.def("module_move", [](Module &self, nb::object ctx) {
		enter();
		check(yoke_module_move(self.get("module_move"), nb::cast<Context *>(ctx)->c));
	}, "module"_a, "to"_a, DOC_module_move);
	m.def("forward", forward, "module"_a, "x"_a, "count"_a = 1, "Records what the module computes: count tensors of some.");
	m.def("call", [](Module &self, Operand x) {
		enter();
		Op v;
		v.take(x.o, false, "call");
		yoke_tensor *y = yoke_call(self.get("call"), v.h);
		return TensorRet{ nb::steal(give(y, v.ctx ? v.ctx : current())) };
	}, "module"_a, "x"_a, "Of one tensor one.");
	m.def("nn_sequential", sequential, "modules"_a, DOC_nn_sequential);
	m.def("nn_residual", [](Module &inner) { return around(inner, "nn_residual", yoke_nn_residual); }, "inner"_a, DOC_nn_residual);
	m.def("nn_lora", [](Module &linear, int64_t rank, double alpha) {
		return around(linear, "nn_lora", [=](yoke_module *l) { return yoke_nn_lora(l, rank, alpha); });
	}, "linear"_a, "rank"_a, "alpha"_a, DOC_nn_lora);
	m.def("optim_add", optim_add, "optim"_a, "p"_a, "name"_a, "settings"_a = nb::none(), DOC_optim_add);
	m.def("optim_step", optim_step, "optim"_a, "g"_a, nb::kw_only(), "scale"_a = nb::none(), "skip"_a = nb::none(),
	      "precondition"_a = nb::none(), "lr"_a = nb::none(), "loss"_a = nb::none(), "norm"_a = false, DOC_optim_step);
	m.def("optim_state", optim_state, "optim"_a, "parameter"_a.none(), "state"_a, DOC_optim_state);
	m.def("optim_move", [](Handle<yoke_optim> &o, nb::object to, Tensors p) {
		enter();
		Ops t(p.o, false, "optim_move");
		size_t added = 0;
		if (o.keep.is_valid())
			for (nb::handle some : o.keep)
				added += nb::len(some);
		same_count("optim_move", t.h.size(), added);
		check(yoke_optim_move(o.get("optim_move"), nb::cast<Context *>(to)->c, t.h.data()));
		o.keep = nb::list();
		nb::cast<nb::list>(o.keep).append(nb::list(p.o));
	}, "optim"_a, "to"_a, "p"_a, DOC_optim_move);
	m.def("_module_tied", module_tied, "module"_a, "name"_a, "to"_a);
	m.def("_called", called, "_self"_a, "_name"_a, "args"_a, "kwargs"_a);
}

} // namespace py
