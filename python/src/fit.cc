// SPDX-License-Identifier: Apache-2.0
// The loop of yoke_fit around a Python network: it runs without the GIL; its callbacks take it while they run.
#include "module.h"

#include <cmath>
#include <exception>

namespace py {

struct Fit {
	nb::object next, loss, valid, log;
	yoke_loader *loader;
	nb::object batch, value;  // tensors that C has until the next ones
	Autocast cast;            // that the precision means
	std::exception_ptr error; // of the first function that raised; it ends the run
	volatile int stop;        // number of the signal that ends the run
};

// Sets the error of the run, which its records contain, from an exception.
static void state(const std::exception_ptr &error)
{
	struct yoke_op_args fit = {};
	fit.name = "fit"; // begins the message
	try {
		std::rethrow_exception(error);
	} catch (const std::exception &e) {
		yoke_op_fail(&fit, YOKE_EINVAL, line_of(e).c_str());
	} catch (...) {
		yoke_op_fail(&fit, YOKE_EINVAL, "unknown exception");
	}
}

// Calls fn with the GIL, in a scope of C's if it is in one: with `lift`, values that objects hold stay.
template <typename F> static int called(Fit *f, bool scoped, bool lift, int wrong, F fn)
{
	Locked gil;
	Scope *scope = nullptr;
	try {
		scope = scoped ? scope_of_c(current()) : nullptr;
		if (scope)
			current()->cast = f->cast;
		const int n = fn(scope);
		Scope *s = scope;
		scope = nullptr;
		if (s)
			scope_end(s, lift);
		return n;
	} catch (...) {
		if (!f->error)
			f->error = std::current_exception();
	}
	if (scope)
		scope_end(scope, false);
	if (wrong <= 0)
		state(f->error);
	return wrong;
}

// The tensors that a function of Python's gives for a batch; None: there are no more.
static int batch_of(Fit *f, nb::object &fn, int64_t number, int max, yoke_tensor **in)
{
	return called(f, true, true, YOKE_EINVAL, [&](Scope *) {
		f->batch = nb::none(); // the last one's may go
		nb::object got = fn(number);
		if (got.is_none())
			return 0;
		Ops x(got, false, "fit");
		for (int i = 0; i < x.n() && i < max; i++)
			in[i] = x.h[static_cast<size_t>(i)];
		f->batch = got;
		return x.n();
	});
}

static int next(void *arg, int64_t part, int max, yoke_tensor **in)
{
	auto *f = static_cast<Fit *>(arg);
	if (!f->loader)
		return batch_of(f, f->next, part, max, in);
	const int fields = nb::cast<int>(f->next);
	const int64_t rows = yoke_loader_next(f->loader, fields, in, nullptr);
	return rows > 0 ? fields : static_cast<int>(rows);
}

static int valid(void *arg, int64_t number, int max, yoke_tensor **in)
{
	auto *f = static_cast<Fit *>(arg);
	return batch_of(f, f->valid, number, max, in);
}

static yoke_tensor *loss(void *arg, yoke_module *, int n, yoke_tensor *const *in)
{
	auto *f = static_cast<Fit *>(arg);
	yoke_tensor *y = nullptr;
	called(f, true, false, 0, [&](Scope *scope) {
		nb::list parts;
		for (int i = 0; i < n; i++)
			parts.append(nb::steal(lend(in[i], current(), Py_None)));
		f->value = f->loss(parts);
		if (!is_tensor(f->value.ptr()))
			throw nb::type_error("fit: loss gives a tensor");
		Tensor *t = as_tensor(f->value.ptr());
		alive(t, "fit");
		if (t->scope == scope)
			t->held = Held::LENT; // C's
		y = t->h;
		return 0;
	});
	return y;
}

static nb::object step_of(const struct yoke_fit_step &s)
{
	nb::object rec = record();
	rec.attr("step") = s.step;
	rec.attr("skipped") = s.skipped;
	rec.attr("loss") = s.loss;
	rec.attr("grad_norm") = s.grad_norm;
	rec.attr("lr") = s.lr;
	rec.attr("scale") = s.scale;
	rec.attr("valid") = s.valid;
	rec.attr("seconds") = s.seconds;
	return rec;
}

// The function returns a signal that ends the run after the step, true to end it, or 0.
static int log(void *arg, const struct yoke_fit_step *s)
{
	auto *f = static_cast<Fit *>(arg);
	return called(f, false, false, 1, [&](Scope *) {
		nb::object got = f->log(step_of(*s));
		if (PyErr_CheckSignals() < 0)
			throw nb::python_error();
		if (PyBool_Check(got.ptr()))
			return got.is(nb::handle(Py_True)) ? 1 : 0;
		f->stop = nb::cast<int>(got);
		return 0;
	});
}

static RecordRet fit(Module &net, Handle<yoke_optim> &optim, nb::object next_, nb::object loss_, nb::object valid_, nb::object log_,
		     int64_t steps, int64_t accumulate, int64_t log_every, int64_t valid_every, int64_t save_every, Text out, bool resume,
		     Text precision, Text keep_f32, bool allow_emulated, uint64_t seed, int ranks, int zero,
		     Text accumulate_order, Text config, int64_t steps_expected, double telemetry, bool tensorboard)
{
	enter();
	current();
	OwnText folder(out.o, "fit"), kind(precision.o, "fit"), kept(keep_f32.o, "fit"), order(accumulate_order.o, "fit"),
		settings(config.o, "fit");
	Fit f{ next_, loss_, valid_, log_, nullptr, nb::none(), nb::none(), {}, nullptr, 0 };
	struct yoke_fit o = {};
	o.size = sizeof o;
	Handle<yoke_loader> *loader = nullptr;
	if (nb::try_cast(next_, loader) && loader) {
		o.data = f.loader = loader->get("fit");
		f.next = loader->keep; // how many tensors a batch has
	}
	if (kind.text.rfind("bf16", 0) == 0)
		f.cast = { yoke_bf16, kept.there, kept.text };
	else if (kind.text.rfind("fp16", 0) == 0)
		f.cast = { yoke_f16, kept.there, kept.text };
	o.net = net.get("fit");
	o.optim = optim.get("fit");
	o.steps = steps;
	o.accumulate = accumulate;
	o.next = next;
	o.loss = loss;
	o.valid = valid_.is_none() ? nullptr : valid;
	o.log = log;
	o.arg = &f;
	o.log_every = log_every;
	o.valid_every = valid_every;
	o.save_every = save_every;
	o.out = folder.c();
	o.resume = resume;
	o.precision = kind.c();
	o.keep_f32 = kept.c();
	o.allow_emulated = allow_emulated;
	o.seed = seed;
	o.ranks = ranks;
	o.zero = zero;
	o.accumulate_order = order.c();
	o.config = settings.c();
	o.steps_expected = steps_expected;
	o.telemetry = telemetry;
	o.tensorboard = tensorboard;
	o.stop = &f.stop;
	struct yoke_fit_end end = {};
	end.size = sizeof end;
	const int err = unlocked([&] { return yoke_fit(&o, &end); });
	const std::string why = yoke_error(); // before tensors go
	yoke_error_clear();
	f.batch.reset();
	f.value.reset();
	if (f.error)
		std::rethrow_exception(f.error);
	if (err) {
		set_error(err, why.c_str());
		throw nb::python_error();
	}
	nb::object rec = record();
	rec.attr("step") = end.step;
	rec.attr("loss") = end.loss;
	rec.attr("valid") = end.valid;
	rec.attr("signal") = end.signal;
	return { rec };
}

void fit_setup(nb::module_ &m)
{
	m.def("_fit", fit, "net"_a, "optim"_a, "next"_a, "loss"_a, "valid"_a.none(), "log"_a, nb::kw_only(), "steps"_a, "accumulate"_a,
	      "log_every"_a, "valid_every"_a, "save_every"_a, "out"_a.none(), "resume"_a, "precision"_a.none(), "keep_f32"_a.none(),
	      "allow_emulated"_a, "seed"_a, "ranks"_a, "zero"_a, "accumulate_order"_a.none(), "config"_a.none(),
	      "steps_expected"_a, "telemetry"_a, "tensorboard"_a);
}

} // namespace py
