// SPDX-License-Identifier: Apache-2.0
// Classes of yoke's objects, and bindings of functions that bind.py cannot generate.
#include "module.h"
#include "docs.h"

#include <cstring>
#include <nanobind/stl/optional.h>

namespace py {

#define FREED(X) X(dataset) X(loader) X(statistic) X(pipeline) X(recorder) X(scaler) X(cube) X(group)
#define FREE(x) template <> void free_of(yoke_##x *p) { unlocked([p] { yoke_##x##_free(p); return 0; }); }
FREED(FREE)
template <> void free_of(yoke_profile *p) { yoke_profile_free(p); }
template <> void free_of(yoke_leaks *p) { yoke_leaks_end(p); }
template <> void free_of(yoke_run *p) { yoke_run_close(p, "done", nullptr); }

// ---- contexts, scopes ----

static Made<Context> made_context(yoke_context *c)
{
	if (!c)
		fail();
	Context *k = known(c);
	k->ours = true;
	return { nb::cast(k, nb::rv_policy::reference) };
}

static std::string named(Text t, const char *call)
{
	return OwnText(t.o, call).text;
}

static Tensor *tensor_of(nb::handle o, const char *call)
{
	if (!is_tensor(o.ptr())) {
		PyErr_Format(PyExc_TypeError, "%s: takes a tensor", call);
		throw nb::python_error();
	}
	return as_tensor(o.ptr());
}

void tensor_link(Tensor *, Scope *);
void tensor_unlink(Tensor *);

static TensorRet keep(Operand x)
{
	enter();
	Tensor *t = tensor_of(x.o, "keep");
	if (!yoke_keep(t->h))
		fail();
	if (t->scope)
		tensor_unlink(t);
	return { nb::borrow(x.o) };
}

static TensorRet lift(Operand x)
{
	enter();
	Tensor *t = tensor_of(x.o, "lift");
	if (!yoke_lift(t->h))
		fail();
	if (Scope *s = t->scope) {
		tensor_unlink(t);
		if (s->outer)
			tensor_link(t, s->outer);
	}
	return { nb::borrow(x.o) };
}

static void contexts_setup(nb::module_ &m)
{
	nb::class_<Context>(m, "Context", "A device, and what is recorded for it.");
	nb::class_<Scope>(m, "Scope", "An open scope.");
	m.def("context_new", [](Text b) {
		enter();
		OwnText t(b.o, "context_new");
		return made_context(yoke_context_new(t.c()));
	}, "backend"_a = nb::none(), DOC_context_new);
	m.def("context_new_on", [](Text d) { enter(); return made_context(yoke_context_new_on(named(d, "context_new_on").c_str())); },
	      "device"_a, DOC_context_new_on);
	m.def("context_on", [](Text d) {
		enter();
		yoke_context *c = yoke_context_on(named(d, "context_on").c_str());
		if (!c)
			fail();
		return Made<Context>{ nb::cast(known(c, true), nb::rv_policy::reference) };
	}, "device"_a, DOC_context_on);
	m.def("trim", [] {
		enter();
		return trim();
	}, "Returns free memory that the pools of the devices of this thread's contexts keep for reuse, after waiting for their "
	   "work: arenas of plans, buffers of uploads, and freed values.  Returns the bytes given back.");
	m.def("to", [](Operand x, Text device) {
		enter();
		Tensor *t = tensor_of(x.o, "to");
		alive(t, "to");
		yoke_tensor *copy = yoke_to(t->h, named(device, "to").c_str());
		if (!copy)
			fail();
		return TensorRet{ nb::steal(give(copy, context_of(copy))) };
	}, "t"_a, "device"_a, DOC_to);
	m.def("context_dry", [](Text b) {
		enter();
		OwnText t(b.o, "context_dry");
		return made_context(yoke_context_dry(t.c()));
	}, "backend"_a = nb::none(), DOC_context_dry);
	m.def("pipeline_context", [](Text json) {
		enter();
		return made_context(yoke_pipeline_context(named(json, "pipeline_context").c_str()));
	}, "json"_a, DOC_pipeline_context);
	m.def("context_free", [](Context &c) {
		enter();
		if (c.c)
			yoke_context_free(c.c);
		c.c = nullptr;
		if (yoke_error_code())
			fail();
	}, "context"_a, DOC_context_free);
	m.def("use", [](Context *c) {
		enter();
		if (c && !c->c)
			throw nb::value_error("use: the context was freed before");
		yoke_context *was = yoke_use(c ? c->c : nullptr);
		return was ? std::optional(Made<Context>{ nb::cast(known(was, true), nb::rv_policy::reference) }) : std::nullopt;
	}, "context"_a.none(), DOC_use);
	m.def("scope_begin", [](Text name) {
		return Made<Scope>{ nb::cast(scope_begin(named(name, "scope_begin").c_str()), nb::rv_policy::reference) };
	}, "name"_a, DOC_scope_begin);
	m.def("scope_end", [](Scope *s) {
		Context *ctx = current();
		for (Scope *k = ctx->top; k; k = k->outer)
			if (k == s)
				return scope_end(s, false);
		throw nb::value_error("scope_end: no such scope is open");
	}, "scope"_a, DOC_scope_end);
	m.def("keep", keep, "t"_a, DOC_keep);
	m.def("lift", lift, "t"_a, DOC_lift);
	m.def("free", [](Operand x) {
		enter();
		Tensor *t = tensor_of(x.o, "free");
		alive(t, "free");
		if (t->held != Held::OURS)
			throw nb::value_error("free: the tensor belongs to another object, or its scope has ended");
		if (t->scope)
			tensor_unlink(t);
		t->held = Held::FREED;
		yoke_free(t->h);
		if (yoke_error_code())
			fail();
	}, "t"_a, "Frees it now; it would be when nothing refers to it any more.");
	m.def("error", [] { return std::string(yoke_error()); }, "This thread's error; errors are raised, so there is none.");
	m.def("error_code", [] { return yoke_error_code(); }, "Its number, 0.");
	m.def("error_clear", [] { yoke_error_clear(); }, DOC_error_clear);
	m.def("setting_get", [](Text name) {
		char text[4096];
		check(yoke_setting_get(named(name, "setting_get").c_str(), text, sizeof text));
		return std::string(text);
	}, "name"_a, DOC_setting_get);
}

// ---- of yoke.h ----

static RecordRet moments(Operand x, Optional weight, bool diagonal)
{
	enter();
	Op a, w;
	a.take(x.o, false, "moments");
	w.take(weight.o, true, "moments");
	struct yoke_moments r = {};
	r.size = sizeof r;
	check(yoke_moments(a.h, w.h, diagonal, &r));
	nb::object rec = record();
	Context *ctx = a.ctx ? a.ctx : current();
	rec.attr("weight") = nb::steal(give(r.weight, ctx));
	rec.attr("mean") = nb::steal(give(r.mean, ctx));
	rec.attr("square") = nb::steal(give(r.square, ctx));
	rec.attr("min") = nb::steal(give(r.min, ctx));
	rec.attr("max") = nb::steal(give(r.max, ctx));
	return { rec };
}

static Pair scaler_check(Handle<yoke_scaler> &s, Tensors p, Tensors g)
{
	enter();
	Ops grads(g.o, false, "scaler_check");
	Ops params(p.o, false, "scaler_check");
	same_count("scaler_check", params.h.size(), grads.h.size());
	yoke_tensor *norm = nullptr, *skip = nullptr;
	check(yoke_scaler_check(s.get("scaler_check"), grads.n(), params.h.data(), grads.h.data(), &norm, &skip));
	nb::object one = nb::steal(give(norm, grads.ctx));
	return { nb::make_tuple(one, nb::steal(give(skip, grads.ctx))) };
}

static ListPair unscale_check(Tensors g, Operand scale)
{
	enter();
	Ops grads(g.o, false, "unscale_check");
	Op by;
	by.take(scale.o, false, "unscale_check");
	std::vector<yoke_tensor *> to(grads.h.size());
	yoke_tensor *overflow = nullptr;
	check(yoke_unscale_check(grads.n(), grads.h.data(), by.h, to.data(), &overflow));
	nb::object list = list_of(to, grads.ctx).o;
	return { nb::make_tuple(list, nb::steal(give(overflow, grads.ctx))) };
}

// ---- data ----

// A Python function that reads samples, for C's threads.
struct Reader {
	nb::object fn;
	std::vector<struct yoke_field> fields;
	std::vector<std::string> names;
};

static int read_samples(void *arg, int64_t n, struct yoke_item *const *items)
{
	auto *r = static_cast<Reader *>(arg);
	Locked gil;
	int failed = 0;
	for (int64_t i = 0; i < n; i++) {
		struct yoke_item *s = items[i];
		try {
			nb::object values = r->fn(s->number);
			for (size_t f = 0; f < r->fields.size(); f++) {
				const struct yoke_field &d = r->fields[f];
				nb::object v = r->fields.size() == 1 && !PyTuple_Check(values.ptr()) ?
						       values : nb::steal(PySequence_GetItem(values.ptr(), static_cast<Py_ssize_t>(f)));
				if (!v.is_valid())
					throw nb::python_error();
				nb::object a = nb::module_::import_("yoke._arrays").attr("host")(v, dtype_object(d.dtype));
				Py_buffer b;
				if (PyObject_GetBuffer(a.ptr(), &b, PyBUF_C_CONTIGUOUS | PyBUF_ND) < 0)
					throw nb::python_error();
				bool good = b.ndim == d.rank;
				for (int k = 0; good && k < d.rank; k++)
					good = d.multiple[k] ? b.shape[k] <= d.dims[k] : b.shape[k] == d.dims[k];
				for (int k = 0; good && k < d.rank; k++)
					if (d.multiple[k])
						s->dims[f][k] = b.shape[k];
				if (good)
					memcpy(s->to[f], b.buf, static_cast<size_t>(b.len));
				PyBuffer_Release(&b);
				if (!good)
					throw nb::value_error(("field '" + r->names[f] + "' has another shape").c_str());
			}
		} catch (const std::exception &e) {
			snprintf(s->why, s->why_size, "%s", line_of(e).c_str());
			s->code = YOKE_EIO;
			failed = YOKE_EIO;
		}
	}
	return n == 1 ? failed : 0;
}

static void drop_reader(void *arg)
{
	delete static_cast<Reader *>(arg);
}

static void reader_free(void *arg)
{
	release_later(drop_reader, arg);
}

static Made<Handle<yoke_dataset>> dataset_new(nb::object read, int64_t count, nb::object fields, Text name, uint64_t fingerprint)
{
	enter();
	auto r = std::make_unique<Reader>();
	r->fn = read;
	const Py_ssize_t n = PySequence_Size(fields.ptr());
	for (Py_ssize_t i = 0; i < n; i++) { // (name, dtype, shape[, multiple[, pad]])
		nb::tuple f = nb::tuple(nb::steal(PySequence_GetItem(fields.ptr(), i)));
		if (f.size() < 3)
			throw nb::value_error("dataset_new: a field is (name, dtype, shape[, multiple[, pad]])");
		struct yoke_field d = {};
		d.size = sizeof d;
		r->names.push_back(nb::cast<std::string>(f[0]));
		d.dtype = dtype_of(f[1]);
		std::vector<int64_t> dims = shape_of(nb::object(f[2]), "dataset_new");
		if (dims.size() > YOKE_MAX_RANK)
			throw nb::value_error("dataset_new: too many axes");
		d.rank = static_cast<int>(dims.size());
		std::copy(dims.begin(), dims.end(), d.dims);
		if (f.size() > 3)
			fill(nb::object(f[3]), d.multiple, d.rank, "dataset_new");
		if (f.size() > 4)
			d.pad = nb::cast<double>(f[4]);
		r->fields.push_back(d);
	}
	for (size_t i = 0; i < r->fields.size(); i++)
		r->fields[i].name = r->names[i].c_str();
	OwnText called(name.o, "dataset_new");
	struct yoke_dataset_options o = {};
	o.size = sizeof o;
	o.name = called.c();
	o.count = count;
	o.fields = static_cast<int>(r->fields.size());
	o.field = r->fields.data();
	o.read = read_samples;
	o.serial = 1; // Python's functions run one at a time
	o.arg = r.get();
	o.free_fn = reader_free;
	o.fingerprint = fingerprint;
	auto d = made(yoke_dataset_new(&o));
	r.release();
	return d;
}

static std::vector<struct yoke_field> fields_of(const yoke_dataset *d)
{
	const int n = static_cast<int>(check(yoke_dataset_fields(d, 0, nullptr)));
	std::vector<struct yoke_field> f(static_cast<size_t>(n));
	if (n) {
		f[0].size = sizeof f[0];
		check(yoke_dataset_fields(d, n, f.data()));
	}
	return f;
}

static Records dataset_fields(Handle<yoke_dataset> &d)
{
	enter();
	nb::list all;
	for (const struct yoke_field &f : fields_of(d.get("dataset_fields"))) {
		nb::object rec = record();
		nb::list dims, multiple;
		for (int i = 0; i < f.rank; i++) {
			dims.append(f.dims[i]);
			multiple.append(f.multiple[i]);
		}
		rec.attr("name") = nb::str(f.name);
		rec.attr("dtype") = dtype_object(f.dtype);
		rec.attr("dims") = nb::tuple(dims);
		rec.attr("multiple") = nb::tuple(multiple);
		rec.attr("pad") = nb::cast(f.pad);
		all.append(rec);
	}
	return { nb::object(std::move(all)) };
}

// A NumPy array of its own, with room.
static nb::object array_of(int rank, const int64_t *dims, int dtype)
{
	nb::list shape;
	for (int i = 0; i < rank; i++)
		shape.append(dims[i]);
	return nb::module_::import_("numpy").attr("zeros")(nb::tuple(shape), dtype_object(dtype).attr("numpy"));
}

static void *address(nb::handle array)
{
	return reinterpret_cast<void *>(nb::cast<uintptr_t>(array.attr("ctypes").attr("data")));
}

static Arrays dataset_read(Handle<yoke_dataset> &d, int64_t number, uint64_t seed, int64_t epoch, int64_t draw)
{
	enter();
	const yoke_dataset *set = d.get("dataset_read");
	std::vector<struct yoke_field> f = fields_of(set);
	std::vector<void *> to;
	std::vector<int64_t> dims(f.size() * YOKE_MAX_RANK + 1);
	std::vector<nb::object> arrays;
	for (const struct yoke_field &one : f) {
		arrays.push_back(array_of(one.rank, one.dims, one.dtype));
		to.push_back(address(arrays.back()));
	}
	auto *at = reinterpret_cast<int64_t(*)[YOKE_MAX_RANK]>(dims.data());
	check(unlocked([&] { return yoke_dataset_read(set, number, seed, epoch, draw, to.data(), at); }));
	nb::list all;
	for (size_t i = 0; i < f.size(); i++) { // what varies is row major in its own dims
		int64_t n = 1;
		nb::list shape;
		for (int k = 0; k < f[i].rank; k++) {
			n *= at[i][k];
			shape.append(at[i][k]);
		}
		nb::object flat = arrays[i].attr("reshape")(-1);
		all.append(flat[nb::slice(static_cast<Py_ssize_t>(n))].attr("reshape")(nb::tuple(shape)));
	}
	return { nb::tuple(all) };
}

static Made<Handle<yoke_dataset>> dataset_cubes(Strings path, nb::object label, nb::object mask, Text settings)
{
	enter();
	std::vector<std::string> files = strings_of(path.o, "dataset_cubes"), labels = strings_of(label, "dataset_cubes"),
				 masks = strings_of(mask, "dataset_cubes");
	if (!label.is_none())
		same_count("dataset_cubes", files.size(), labels.size());
	if (!mask.is_none())
		same_count("dataset_cubes", files.size(), masks.size());
	OwnText s(settings.o, "dataset_cubes");
	std::vector<const char *> p = pointers(files), l = pointers(labels), k = pointers(masks);
	struct yoke_cube_files o = {};
	o.size = sizeof o;
	o.n = static_cast<int>(p.size());
	o.path = p.data();
	o.label = label.is_none() ? nullptr : l.data();
	o.mask = mask.is_none() ? nullptr : k.data();
	o.settings = s.c();
	return made(unlocked([&] { return yoke_dataset_cube_files(&o); }));
}

static int fields_of_loader(Handle<yoke_loader> &l)
{
	return nb::cast<int>(l.keep);
}

static Made<Handle<yoke_loader>> loader_new(Handle<yoke_dataset> &d, Text settings)
{
	enter();
	current();
	OwnText s(settings.o, "loader_new");
	const yoke_dataset *set = d.get("loader_new");
	int parts = 1, of = 0;
	if (s.there) { // how many tensors a batch has
		const char *split = strstr(s.c(), "split="), *few = strstr(s.c(), "parts=");
		parts = split ? std::max(1, atoi(split + 6)) : 1;
		of = few ? atoi(few + 6) : 0;
	}
	const int n = static_cast<int>(check(yoke_dataset_fields(set, 0, nullptr))) * (of ? of : parts);
	yoke_loader *p = unlocked([&] { return yoke_loader_new(const_cast<yoke_dataset *>(set), s.c()); });
	auto l = made(p);
	nb::cast<Handle<yoke_loader> &>(l.o).keep = nb::int_(n);
	return l;
}

static Batch loader_next(Handle<yoke_loader> &l, bool weight)
{
	enter();
	const int n = fields_of_loader(l);
	std::vector<yoke_tensor *> to(static_cast<size_t>(n));
	yoke_tensor *w = nullptr;
	yoke_loader *p = l.get("loader_next");
	Context *ctx = current();
	const int64_t rows = check(unlocked([&] { return yoke_loader_next(p, n, to.data(), weight ? &w : nullptr); }));
	if (!rows)
		return { nb::none() };
	nb::list all;
	for (yoke_tensor *t : to)
		all.append(nb::steal(give(t, ctx)));
	if (weight)
		all.append(nb::steal(give(w, ctx)));
	return { nb::tuple(all) };
}

static int64_t loader_put(Handle<yoke_loader> &l, Tensors variable)
{
	enter();
	Ops v(variable.o, false, "loader_put");
	yoke_loader *p = l.get("loader_put");
	return check(unlocked([&] { return yoke_loader_put(p, v.n(), v.h.data()); }));
}

static HostBatch loader_host(Handle<yoke_loader> &l, Handle<yoke_dataset> &d)
{
	enter();
	std::vector<struct yoke_field> f = fields_of(d.get("loader_host"));
	const int n = fields_of_loader(l);
	same_count("loader_host", f.size(), static_cast<size_t>(n));
	std::vector<void *> data(static_cast<size_t>(n));
	std::vector<int64_t> dims(static_cast<size_t>(n) * (YOKE_MAX_RANK + 1) + 1);
	auto *at = reinterpret_cast<int64_t(*)[YOKE_MAX_RANK + 1]>(dims.data());
	yoke_loader *p = l.get("loader_host");
	const int64_t rows = check(unlocked([&] { return yoke_loader_host(p, n, data.data(), at); }));
	if (!rows)
		return { nb::none() };
	nb::list all;
	for (int i = 0; i < n; i++) {
		nb::object a = array_of(f[i].rank + 1, at[i], f[i].dtype);
		memcpy(address(a), data[i], nb::cast<size_t>(a.attr("nbytes")));
		all.append(a);
	}
	return { nb::tuple(all) };
}

// ---- statistics, cubes, ranks, runs, profiles ----

static nb::object doubles(nb::list shape)
{
	return nb::module_::import_("numpy").attr("zeros")(nb::tuple(shape), "float64");
}

static Array statistic_read(Handle<yoke_statistic> &s, int what)
{
	enter();
	const int64_t c = yoke_statistic_channels(s.get("statistic_read"));
	nb::list shape;
	const bool square = what == YOKE_STATISTIC_COVARIANCE || what == YOKE_STATISTIC_CORRELATION;
	for (int i = 0; i < (what == YOKE_STATISTIC_COUNT ? 0 : square ? 2 : 1); i++)
		shape.append(c);
	nb::object a = doubles(shape);
	check(yoke_statistic_read(s.p, what, static_cast<double *>(address(a)), nb::cast<size_t>(a.attr("size"))));
	return { a };
}

static nb::object as_array(nb::object x, const char *type)
{
	return nb::module_::import_("numpy").attr("ascontiguousarray")(x, type);
}

static double roc_auc(nb::object score, nb::object label)
{
	nb::object s = as_array(score, "float32"), l = as_array(label, "uint8");
	same_count("roc_auc", nb::cast<size_t>(s.attr("size")), nb::cast<size_t>(l.attr("size")));
	double to = 0;
	check(yoke_roc_auc(nb::cast<size_t>(s.attr("size")), static_cast<float *>(address(s)),
			   static_cast<unsigned char *>(address(l)), &to));
	return to;
}

static RecordRet cube_info(Handle<yoke_cube> &c)
{
	struct yoke_cube_info i = {};
	i.size = sizeof i;
	check(yoke_cube_info(c.get("cube_info"), &i));
	nb::object rec = record();
	rec.attr("lines") = i.lines;
	rec.attr("samples") = i.samples;
	rec.attr("bands") = i.bands;
	rec.attr("items") = i.items;
	rec.attr("stack") = i.stack != 0;
	rec.attr("type") = i.type;
	rec.attr("interleave") = i.interleave;
	rec.attr("big_endian") = i.big_endian != 0;
	rec.attr("offset") = i.offset;
	rec.attr("scale") = i.scale;
	rec.attr("ignore") = i.ignore;
	nb::list w;
	for (int64_t k = 0; i.wavelength && k < i.bands; k++)
		w.append(i.wavelength[k]);
	rec.attr("wavelength") = w;
	rec.attr("data") = i.data;
	return { rec };
}

static Arrays cube_read(Handle<yoke_cube> &c)
{
	enter();
	struct yoke_cube_info i = {};
	i.size = sizeof i;
	const yoke_cube *p = c.get("cube_read");
	check(yoke_cube_info(p, &i));
	const int64_t dims[] = { i.lines, i.samples, i.bands };
	nb::object x = array_of(3, dims, yoke_f32), w = array_of(2, dims, yoke_f32);
	auto *to = static_cast<float *>(address(x)), *weight = static_cast<float *>(address(w));
	check(unlocked([&] { return yoke_cube_read(p, to, weight); }));
	return { nb::make_tuple(x, w) };
}

static void cube_write(Text path, nb::object x, const std::string &type, const std::string &interleave, bool big_endian,
		       double scale, double ignore, nb::object wavelength)
{
	enter();
	OwnText file(path.o, "cube_write");
	nb::object a = as_array(x, "float32");
	std::vector<int64_t> dims = shape_of(a.attr("shape"), "cube_write");
	if (dims.size() != 3)
		throw nb::value_error("cube_write: takes [lines,samples,bands]");
	std::vector<double> w = wavelength.is_none() ? std::vector<double>() : numbers_of(wavelength, "cube_write");
	if (!w.empty())
		same_count("cube_write", w.size(), static_cast<size_t>(dims[2]));
	struct yoke_cube_info i = {};
	i.size = sizeof i;
	i.lines = dims[0];
	i.samples = dims[1];
	i.bands = dims[2];
	i.type = type.c_str();
	i.interleave = interleave.c_str();
	i.big_endian = big_endian;
	i.scale = scale;
	i.ignore = ignore;
	i.wavelength = w.empty() ? nullptr : w.data();
	check(yoke_cube_write(file.c(), &i, static_cast<float *>(address(a))));
}

static void group_spawn(Strings argv, int n)
{
	enter();
	std::vector<std::string> words = strings_of(argv.o, "group_spawn");
	std::vector<char *> v;
	for (std::string &w : words)
		v.push_back(w.data());
	v.push_back(nullptr);
	check(unlocked([&] { return yoke_group_spawn(n, v.data()); }));
}

static nb::list group_exchange(Handle<yoke_group> &g, nb::bytes mine)
{
	enter();
	yoke_group *p = g.get("group_exchange");
	std::vector<char> all(mine.size() * static_cast<size_t>(yoke_group_size(p)) + 1);
	check(unlocked([&] { return yoke_group_exchange(p, mine.data(), mine.size(), all.data()); }));
	nb::list list;
	for (int i = 0; i < yoke_group_size(p); i++)
		list.append(nb::bytes(all.data() + static_cast<size_t>(i) * mine.size(), mine.size()));
	return list;
}

static Made<Handle<yoke_run>> run_open(Text folder, Text device, Text driver, Text config, uint64_t data, int64_t step, bool tensorboard)
{
	OwnText f(folder.o, "run_open"), d(device.o, "run_open"), r(driver.o, "run_open"), c(config.o, "run_open");
	struct yoke_run_options o = {};
	o.size = sizeof o;
	o.device = d.c();
	o.driver = r.c();
	o.config = c.c();
	o.data = data;
	o.step = step;
	o.tensorboard = tensorboard;
	return made(yoke_run_open(f.c(), &o));
}

static void run_log(Handle<yoke_run> &r, int64_t step, Text stage, nb::dict values)
{
	OwnText s(stage.o, "run_log");
	std::vector<std::string> names;
	std::vector<double> numbers;
	for (auto [k, v] : values) {
		names.push_back(nb::cast<std::string>(k));
		numbers.push_back(PyFloat_AsDouble(v.ptr()));
		if (PyErr_Occurred())
			throw nb::python_error();
	}
	check(yoke_run_log(r.get("run_log"), step, s.c(), static_cast<int>(names.size()), pointers(names).data(), numbers.data()));
}

static Made<Handle<yoke_profile>> profile_new(unsigned flags, int64_t skip_first, int64_t wait, int64_t warmup, int64_t active, int64_t repeat,
			      bool skip_first_wait, Text folder, uint64_t max_bytes)
{
	enter();
	current();
	OwnText f(folder.o, "profile_new");
	struct yoke_profile_options o = {};
	o.size = sizeof o;
	o.flags = flags;
	o.skip_first = skip_first;
	o.wait = wait;
	o.warmup = warmup;
	o.active = active;
	o.repeat = repeat;
	o.skip_first_wait = skip_first_wait;
	o.folder = f.c();
	o.max_bytes = max_bytes;
	return made(yoke_profile_new(&o));
}

static std::string profile_table(Handle<yoke_profile> &p, int rows, Text column)
{
	enter();
	OwnText c(column.o, "profile_table");
	const int64_t n = check(yoke_profile_table(p.get("profile_table"), rows, c.c(), nullptr, 0));
	std::string text(static_cast<size_t>(n) + 1, '\0');
	check(yoke_profile_table(p.p, rows, c.c(), text.data(), text.size()));
	text.resize(static_cast<size_t>(n));
	return text;
}

static void pipeline_train(Handle<yoke_pipeline> &p, Handle<yoke_dataset> &train, nb::object valid, Text loader, nb::object run,
			   Text folder, bool resume)
{
	enter();
	OwnText l(loader.o, "pipeline_train"), f(folder.o, "pipeline_train");
	struct yoke_training o = {};
	o.size = sizeof o;
	o.train = train.get("pipeline_train");
	o.valid = valid.is_none() ? nullptr : nb::cast<Handle<yoke_dataset> &>(valid).get("pipeline_train");
	o.loader = l.c();
	o.run = run.is_none() ? nullptr : nb::cast<Handle<yoke_run> &>(run).get("pipeline_train");
	o.folder = f.c();
	o.resume = resume;
	yoke_pipeline *line = p.get("pipeline_train");
	check(unlocked([&] { return yoke_pipeline_train(line, &o); }));
}

template <typename T> static nb::class_<Handle<T>> class_of(nb::module_ &m, const char *name, const char *doc)
{
	return nb::class_<Handle<T>>(m, name, doc);
}

void data_setup(nb::module_ &m)
{
	contexts_setup(m);
	class_of<yoke_dataset>(m, "Dataset", "Samples.");
	class_of<yoke_loader>(m, "Loader", "Batches of a set; `for` goes through them.")
		.def("__iter__", [](nb::object self) { return self; }, nb::sig("def __iter__(self) -> Loader"))
		.def("__next__", [](Handle<yoke_loader> &l) {
			nb::object batch = loader_next(l, false).o;
			if (batch.is_none())
				throw nb::stop_iteration();
			return batch;
		}, nb::sig("def __next__(self) -> tuple[Tensor, ...]"));
	class_of<yoke_statistic>(m, "Statistic", "Statistics of a stream.");
	class_of<yoke_pipeline>(m, "Pipeline", "Nodes that are fitted.");
	class_of<yoke_run>(m, "Run", "Records of a run.");
	class_of<yoke_profile>(m, "Profile", "A profile.");
	class_of<yoke_leaks>(m, "Leaks", "Looks for memory that stays.");
	class_of<yoke_recorder>(m, "Recorder", "Samples of a device and the host.");
	class_of<yoke_scaler>(m, "Scaler", "A dynamic loss scale.");
	class_of<yoke_cube>(m, "Cube", "A hyperspectral cube's file.");
	class_of<yoke_group>(m, "Group", "An ordered set of ranks.");
	m.def("moments", moments, "x"_a, "weight"_a = nb::none(), "diagonal"_a = false, DOC_moments);
	m.def("scaler_check", scaler_check, "scaler"_a, "p"_a, "g"_a, DOC_scaler_check);
	m.def("scaler_inverse", [](nb::object self) {
		enter();
		yoke_tensor *t = yoke_scaler_inverse(nb::cast<Handle<yoke_scaler> &>(self).get("scaler_inverse"));
		return TensorRet{ nb::steal(lend(t, current(), self.ptr())) };
	}, "scaler"_a, DOC_scaler_inverse);
	m.def("unscale_check", unscale_check, "g"_a, "scale"_a, DOC_unscale_check);
	m.def("dataset_new", dataset_new, "read"_a, "count"_a, "fields"_a, "name"_a = nb::str("data"), "fingerprint"_a = 0,
	      "A set of what read(number) gives: for each field, (name, dtype, shape), an array.  Threads call it, one at a time.");
	m.def("dataset_fields", dataset_fields, "dataset"_a, DOC_dataset_fields);
	m.def("dataset_read", dataset_read, "dataset"_a, "number"_a, "seed"_a = 0, "epoch"_a = 0, "draw"_a = 0, DOC_dataset_read);
	m.def("dataset_cubes", dataset_cubes, "path"_a, "label"_a = nb::none(), "mask"_a = nb::none(), "settings"_a = nb::none(), DOC_dataset_cubes);
	m.def("loader_new", loader_new, "dataset"_a, "settings"_a = nb::none(), DOC_loader_new);
	m.def("loader_next", loader_next, "loader"_a, "weight"_a = false, "The next batch's tensors; None after the last epoch.");
	m.def("loader_put", loader_put, "loader"_a, "variable"_a, DOC_loader_put);
	m.def("loader_host", loader_host, "loader"_a, "dataset"_a, "The next batch as NumPy arrays; None after the last epoch.");
	m.def("statistic_read", statistic_read, "statistic"_a, "what"_a, DOC_statistic_read);
	m.def("roc_auc", roc_auc, "score"_a, "label"_a, DOC_roc_auc);
	m.def("cube_info", cube_info, "cube"_a, DOC_cube_info);
	m.def("cube_read", cube_read, "cube"_a, "All pixels, and their weights.");
	m.def("cube_write", cube_write, "path"_a, "x"_a, "type"_a = "f32", "interleave"_a = "bip", "big_endian"_a = false,
	      "scale"_a = 1.0, "ignore"_a = NAN, "wavelength"_a = nb::none(), DOC_cube_write);
	m.def("group_spawn", group_spawn, "argv"_a, "n"_a, DOC_group_spawn);
	m.def("group_exchange", group_exchange, "group"_a, "mine"_a, DOC_group_exchange);
	m.def("run_open", run_open, "folder"_a, nb::kw_only(), "device"_a = nb::none(), "driver"_a = nb::none(),
	      "config"_a = nb::none(), "data"_a = 0, "step"_a = 0, "tensorboard"_a = false, DOC_run_open);
	m.def("run_log", run_log, "run"_a, "step"_a, "stage"_a, "values"_a, DOC_run_log);
	m.def("run_close", [](Handle<yoke_run> &r, Text ended, Text error) {
		OwnText how(ended.o, "run_close"), why(error.o, "run_close");
		yoke_run *p = r.get("run_close");
		r.p = nullptr;
		yoke_run_close(p, how.c(), why.c());
	}, "run"_a, "ended"_a = nb::str("done"), "error"_a = nb::none(), DOC_run_close);
	m.def("profile_new", profile_new, "flags"_a = 0, "skip_first"_a = 0, "wait"_a = 0, "warmup"_a = 0, "active"_a = 1,
	      "repeat"_a = 0, "skip_first_wait"_a = false, "folder"_a = nb::none(), "max_bytes"_a = 0, DOC_profile_new);
	m.def("profile_table", profile_table, "profile"_a, "rows"_a = 0, "column"_a = nb::none(), DOC_profile_table);
	m.def("pipeline_train", pipeline_train, "pipeline"_a, "train"_a, "valid"_a = nb::none(), "loader"_a = nb::none(),
	      "run"_a = nb::none(), "folder"_a = nb::none(), "resume"_a = false, DOC_pipeline_train);
	m.def("pipeline_state", [](nb::object self, Text node, Text state) {
		enter();
		OwnText n(node.o, "pipeline_state"), s(state.o, "pipeline_state");
		yoke_tensor *t = yoke_pipeline_state(nb::cast<Handle<yoke_pipeline> &>(self).get("pipeline_state"), n.c(), s.c());
		return TensorRet{ nb::steal(lend(t, current(), self.ptr())) };
	}, "pipeline"_a, "node"_a, "state"_a, DOC_pipeline_state);
	m.def("recorder_new", [](Text path, double seconds, Text run, int rank) {
		enter();
		current();
		OwnText file(path.o, "recorder_new"), name(run.o, "recorder_new");
		struct yoke_recorder_options o = {};
		o.size = sizeof o;
		o.path = file.c();
		o.seconds = seconds;
		o.run = name.c();
		o.rank = rank;
		return made(yoke_recorder_new(&o));
	}, "path"_a, "seconds"_a = 1.0, "run"_a = nb::none(), "rank"_a = 0, DOC_recorder_new);
	m.def("counters_between", [](nb::object former, nb::object later) {
		nb::object rec = record();
		for (nb::handle k : nb::object(nb::module_::import_("builtins").attr("vars")(later)))
			rec.attr(nb::cast<const char *>(k)) = later.attr(nb::cast<const char *>(k)) - former.attr(nb::cast<const char *>(k));
		return RecordRet{ rec };
	}, "former"_a, "later"_a, DOC_counters_between);
}

} // namespace py
