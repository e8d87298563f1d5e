// SPDX-License-Identifier: Apache-2.0
// Contractions on an OpenCL device: every implementation that is offered, against sums in
// float64, over dtypes, layouts, leading axes, sizes around the tiles, empty ones; and with a
// map behind, against that map of the product that the same implementation gives.
#include "config.h"

#include "map_scalar.h"
#include "opencl_host.h"

static void *queue;
static bool has_f64;
static unsigned seen[8]; // how often implementation i ran
enum { CLBLAST = 3 };    // its number

struct matrix {
	struct yoke_view view;
	int64_t elements;
	unsigned char *host, *before;
	void *segment;
};

enum layout { DENSE, TRANSPOSED, WILD };

// Axes from the fastest on in memory: the last two, exchanged, or all in random order with
// gaps. Leading axes of inputs are broadcast now and then.
static void lay_out(struct matrix *x, int dtype, int rank, const int64_t *dims,
		    enum layout layout, bool output)
{
	struct yoke_view *v = &x->view;
	int64_t n = 1;
	int order[YOKE_MAX_RANK];

	*v = (struct yoke_view){ .kind = YOKE_VIEW_BUFFER,
				 .dtype = (uint8_t)dtype,
				 .rank = (uint8_t)rank,
				 .align = 1 };
	for (int i = 0; i < rank; i++)
		order[i] = rank - 1 - i;
	if (layout == TRANSPOSED) {
		order[0] = rank - 2;
		order[1] = rank - 1;
	}
	for (int i = rank - 1; layout == WILD && i > 0; i--) {
		int j = (int)rnd_int(0, i), t = order[i];
		order[i] = order[j];
		order[j] = t;
	}
	for (int i = 0; i < rank; i++) {
		int axis = order[i];
		v->dims[axis] = dims[axis];
		if (!output && axis < rank - 2 && rnd_int(0, 2) == 0)
			continue; // stride 0
		v->strides[axis] = n;
		n *= dims[axis] + (layout == WILD ? rnd_int(0, 1) : 0);
	}
	v->offset = (uint64_t)rnd_int(0, 5) * dtype_bytes(dtype);
	x->elements = n + 8;
}

static void *element(const struct matrix *x, const int64_t *index)
{
	const struct yoke_view *v = &x->view;
	int64_t at = 0;

	for (int i = 0; i < v->rank; i++)
		at += index[i] * v->strides[i];
	return x->host + v->offset + (uint64_t)at * dtype_bytes(v->dtype);
}

static double number(const struct matrix *x, const int64_t *index)
{
	struct value v = load(x->view.dtype, element(x, index));

	return is_real(x->view.dtype) ? v.r : (double)v.i;
}

// NaN, or bits that no sum of small integers has, marks what was not written.
static void fill(struct matrix *x, bool output)
{
	int d = x->view.dtype;
	size_t size = dtype_bytes(d), bytes = (size_t)x->elements * size;

	x->host = malloc(bytes);
	x->before = malloc(bytes);
	for (int64_t i = 0; i < x->elements; i++) {
		struct value v = { .r = rnd_real(-1, 1), .i = rnd_int(-9, 9) };
		if (is_real(d))
			v.r = round_real(d, v.r);
		if (d == yoke_u8)
			v.i = labs(v.i);
		store(d, v, x->host + (size_t)i * size);
	}
	if (output)
		memset(x->host, 0xff, bytes);
	memcpy(x->before, x->host, bytes);
	must(cl->segment_new(device, 0, bytes, &x->segment), "segment");
	must(cl->put(queue, x->segment, 0, x->host, bytes), "put");
	x->view.segment = x->segment;
}

static void forget(struct matrix *x)
{
	cl->segment_free(device, x->segment);
	free(x->host);
	free(x->before);
}

static void finish(void)
{
	void *e;
	must(cl->event_mark(queue, &e), "event_mark");
	must(cl->event_wait(e), "event_wait");
	cl->event_free(e);
}

static bool next(int64_t *index, const int64_t *dims, int rank)
{
	for (int i = rank - 1; i >= 0; i--) {
		if (++index[i] < dims[i])
			return true;
		index[i] = 0;
	}
	return false;
}

// What any order of sums keeps: 2 (K + 1) of the accumulator's units of sum |a b|, and half
// a unit of the stored dtype; integers are exact.
static double allowed(int d, int64_t k, double want, double size)
{
	double sums = 2 * (double)(k + 1) * size * (d == yoke_f64 ? 0x1p-53 : 0x1p-24);

	if (!is_real(d))
		return 0;
	return sums + (d == yoke_f16  ? 0x1p-11 * fabs(want) + 0x1p-25 :
		       d == yoke_bf16 ? 0x1p-8 * fabs(want) :
					0);
}

static bool compare(struct matrix x[3], int64_t k)
{
	int64_t index[YOKE_MAX_RANK] = { 0 }, a[YOKE_MAX_RANK], b[YOKE_MAX_RANK];
	int rank = x[0].view.rank, d = x[0].view.dtype;
	size_t size = dtype_bytes(d);
	unsigned char *written = calloc(1, (size_t)x[0].elements);
	bool good = true;

	do {
		double want = 0, all = 0;
		memcpy(a, index, sizeof a);
		memcpy(b, index, sizeof b);
		for (int64_t l = 0; l < k; l++) {
			a[rank - 1] = b[rank - 2] = l;
			double p = number(&x[1], a) * number(&x[2], b);
			want += p;
			all += fabs(p);
		}
		if (!is_real(d)) {
			int64_t bits = 8 * (int64_t)size, one = (int64_t)want;
			if (bits < 64) { // wraps
				one = (int64_t)((uint64_t)one << (64 - bits)) >> (64 - bits);
				want = d == yoke_u8 ? (uint8_t)one : (double)one;
			}
		}
		double got = number(&x[0], index);
		unsigned char *at = element(&x[0], index);
		written[(size_t)(at - x[0].host) / size] = 1;
		if (good && !(fabs(got - want) <= allowed(d, k, want, all))) {
			diag("[.., %d, %d] got %.9g want %.9g", (int)index[rank - 2],
			     (int)index[rank - 1], got, want);
			good = false;
		}
	} while (next(index, x[0].view.dims, rank));
	for (int64_t i = 0; good && i < x[0].elements; i++)
		if (!written[i] && memcmp(x[0].host + (size_t)i * size,
					  x[0].before + (size_t)i * size, size)) {
			diag("element %d of the segment, none of y, was written", (int)i);
			good = false;
		}
	free(written);
	return good;
}

// Runs one implementation on an op; y comes back.
static void run(struct yoke_op *op, uint32_t impl, struct matrix *out)
{
	uint64_t work = 0;
	void *w = NULL, *handle = NULL;
	size_t bytes = (size_t)out->elements * dtype_bytes(out->view.dtype);

	must(cl->prepare(device, op, impl, 0, &handle, &work), "prepare");
	op->workspace = (struct yoke_view){ .kind = YOKE_VIEW_NONE };
	if (work) { // at an offset, full of NaN
		const uint64_t align = 256;
		unsigned char *nan = memset(malloc(work + align), 0xff, work + align);
		const int64_t dims[] = { (int64_t)work };
		must(cl->segment_new(device, 0, work + align, &w), "segment");
		must(cl->put(queue, w, 0, nan, work + align), "put");
		finish();
		free(nan);
		op->workspace = dense_view(w, align, yoke_u8, 1, dims);
	}
	must(cl->put(queue, out->segment, 0, out->before, bytes), "put");
	must(cl->run(queue, handle, op), "run");
	must(cl->get(queue, out->segment, 0, out->host, bytes), "get");
	finish();
	cl->release(handle);
	if (w)
		cl->segment_free(device, w);
}

static struct yoke_op contract(struct matrix x[3], struct yoke_view in[2])
{
	in[0] = x[1].view;
	in[1] = x[2].view;
	return (struct yoke_op){ .size = sizeof(struct yoke_op),
				 .code = YOKE_OP_CONTRACT,
				 .nout = 1,
				 .nin = 2,
				 .out = &x[0].view,
				 .in = in };
}

struct problem {
	int64_t m, n, k;
	int batch; // leading axes
	int dtype;
	enum layout layout[3];
};

static struct problem problem_of(int64_t m, int64_t n, int64_t k, int batch, int dtype,
				 enum layout a, enum layout b)
{
	return (struct problem){ m, n, k, batch, dtype, { DENSE, a, b } };
}

static void make(struct matrix x[3], const struct problem *p, char *text, size_t cap)
{
	static const char *const names = "NTW";
	int64_t dims[3][YOKE_MAX_RANK] = { 0 };
	const int64_t last[3][2] = { { p->m, p->n }, { p->m, p->k }, { p->k, p->n } };
	size_t length = (size_t)snprintf(text, cap, "dtype %d, %c%c%c, ", p->dtype,
					 names[p->layout[0]], names[p->layout[1]],
					 names[p->layout[2]]);

	for (int i = 0; i < p->batch; i++) {
		dims[0][i] = rnd_int(1, 3);
		length += (size_t)snprintf(text + length, cap - length, "%d x ",
					   (int)dims[0][i]);
	}
	snprintf(text + length, cap - length, "%d x %d x %d", (int)p->m, (int)p->n,
		 (int)p->k);
	for (int t = 0; t < 3; t++) {
		memcpy(dims[t], dims[0], sizeof dims[0][0] * (size_t)p->batch);
		memcpy(dims[t] + p->batch, last[t], sizeof last[t]);
		lay_out(&x[t], p->dtype, p->batch + 2, dims[t], p->layout[t], t == 0);
		fill(&x[t], t == 0);
	}
}

static void test_problem(struct problem p)
{
	struct matrix x[3];
	struct yoke_view in[2];
	char text[256];
	bool empty = !p.m || !p.n;

	make(x, &p, text, sizeof text);
	struct yoke_op op = contract(x, in);
	uint64_t impls = cl->can(device, &op);
	ok(impls != 0, "%s: offered", text);
	for (uint32_t i = 0; i < 8; i++) {
		if (!(impls >> i & 1))
			continue;
		const char *name = cl->impl_name(device, &op, i);
		run(&op, i, &x[0]);
		seen[i] += !empty;
		ok(empty ? !memcmp(x[0].host, x[0].before,
				   (size_t)x[0].elements * dtype_bytes(p.dtype)) :
			   compare(x, p.k),
		   "%s: %s", name, text);
	}
	for (int t = 0; t < 3; t++)
		forget(&x[t]);
}

static int64_t any(const int64_t *from, size_t n)
{
	return from[rnd_int(0, (int64_t)n - 1)];
}

// Each dtype is a program to build, so GPUs' kernels see some of them on drivers of CPUs.
static void test_sizes(int rounds, bool gpu)
{
	static const int64_t sizes[] = { 1,  2,  3,  11, 12, 13, 16, 17, 23, 24,
					 31, 32, 33, 63, 64, 65, 97, 129 };
	static const int dtypes[] = { yoke_f32, yoke_f32, yoke_f16, yoke_bf16, yoke_f64,
				      yoke_i32, yoke_u8,  yoke_i64 };
	const size_t n = sizeof sizes / sizeof *sizes;

	for (int i = 0; i < rounds; i++) {
		struct problem p = { any(sizes, n), any(sizes, n), any(sizes, n),
				     i % 5 < 3 ? i % 5 : 0, dtypes[i % 8], { 0 } };
		if ((p.dtype == yoke_f64 && !has_f64) || (gpu && !tap_long() && i % 2))
			p.dtype = yoke_f32;
		for (int t = 0; t < 3; t++)
			p.layout[t] = (enum layout)rnd_int(0, 2);
		test_problem(p);
	}
}

// Few rows or columns beside dense ones, as rows takes them.
static void test_skinny(int rounds, bool gpu)
{
	static const int64_t few[] = { 1, 2, 4, 5, 8, 9, 15, 16 };
	static const int64_t many[] = { 31, 32, 33, 63, 255, 256, 257, 300, 512, 515 };
	static const int64_t depth[] = { 1, 7, 15, 16, 17, 31, 256, 263 };
	static const int dtypes[] = { yoke_f32, yoke_f16, yoke_bf16 };

	for (int i = 0; i < rounds; i++) {
		int dtype = gpu && !tap_long() ? yoke_f32 : dtypes[i % 3];
		int64_t m = any(few, 8), n = any(many, 10);
		if (dtype != yoke_f32 && !tap_long())
			m = m % 2 ? 1 : 8; // fewer programs
		bool tall = i % 4 == 3;
		struct problem p = problem_of(tall ? n : m, tall ? m : n, any(depth, 8),
					      i % 3 == 2, dtype,
					      (enum layout)rnd_int(0, 1),
					      (enum layout)rnd_int(0, 1));
		p.layout[0] = (enum layout)rnd_int(0, 1);
		test_problem(p);
	}
}

// The library is asked for wherever it can, and alone then; never, when it is not wanted.
static void test_clblast(void)
{
	const int64_t dims[] = { 128, 128 };
	struct yoke_view v[3];
	struct yoke_op op = { .size = sizeof op,
			      .code = YOKE_OP_CONTRACT,
			      .nout = 1,
			      .nin = 2,
			      .out = v,
			      .in = v + 1 };

	for (int i = 0; i < 3; i++)
		v[i] = dense_view(NULL, 0, yoke_f32, 2, dims);
	clblast = "0";
	ok(!(cl->can(device, &op) >> CLBLAST & 1), "no CLBlast where it is not wanted");
	clblast = "1";
	if (cl->can(device, &op) == 1 << CLBLAST) {
		for (int i = 0; i < 8; i++)
			test_problem(problem_of(rnd_int(1, 200), rnd_int(1, 200),
						rnd_int(1, 200), i % 3, yoke_f32,
						(enum layout)(i & 1), (enum layout)(i >> 1 & 1)));
		if (has_f64)
			test_problem(problem_of(100, 70, 90, 0, yoke_f64, DENSE, DENSE));
	} else {
		skip("contractions by CLBlast", "libclblast.so.1 is not there");
	}
	clblast = "";
}

// ---- maps behind products ----

// y = max(product + x, 0), z = y + index
static struct yoke_map program(int d)
{
	const struct yoke_insn insn[] = {
		{ YOKE_MAP_INPUT, (uint8_t)d, 0, 0, 0, 0 },
		{ YOKE_MAP_INPUT, (uint8_t)d, 0, 1, 0, 0 },
		{ YOKE_MAP_ADD, (uint8_t)d, 0, 0, 1, 0 },
		{ YOKE_MAP_CONST, (uint8_t)d, 0, 0, 0, 0 },
		{ YOKE_MAP_MAX, (uint8_t)d, 0, 2, 3, 0 },
		{ YOKE_MAP_INDEX, yoke_i64, 0, 0, 0, 0 },
		{ YOKE_MAP_CAST, (uint8_t)d, 0, 5, 0, 0 },
		{ YOKE_MAP_ADD, (uint8_t)d, 0, 4, 6, 0 },
	};
	struct yoke_map m = {
		.size = sizeof m, .ninsn = 8, .nconst = 1, .nin = 2, .nout = 2, .out = { 4, 7 }
	};

	memcpy(m.insn, insn, sizeof insn);
	return m;
}

static bool equal(int d, struct value a, struct value b)
{
	return is_real(d) ? a.r == b.r : a.i == b.i;
}

// x: y, a, b as they were run without a map; o: both outputs and the map's other input.
static bool compare_map(const struct yoke_map *m, const struct matrix *x,
			const struct matrix o[3])
{
	int64_t index[YOKE_MAX_RANK] = { 0 }, at = 0;
	int d = x->view.dtype;

	do {
		struct value in[2] = { load(d, element(x, index)),
				       load(d, element(&o[2], index)) };
		struct value v[YOKE_MAP_MAX_INSNS];
		map_scalar(m, in, at++, v);
		for (int k = 0; k < 2; k++) {
			struct value got = load(d, element(&o[k], index));
			if (equal(d, got, v[m->out[k]]))
				continue;
			diag("element %d of output %d: got %.9g want %.9g", (int)at - 1, k,
			     got.r, v[m->out[k]].r);
			return false;
		}
	} while (next(index, x->view.dims, x->view.rank));
	return true;
}

static void test_epilogue(struct problem p)
{
	struct matrix x[3], o[3];
	struct yoke_view in[2], mapped_in[3], out[2];
	struct yoke_map map = program(p.dtype);
	char text[256];

	make(x, &p, text, sizeof text);
	for (int t = 0; t < 3; t++) {
		lay_out(&o[t], p.dtype, p.batch + 2, x[0].view.dims,
			(enum layout)rnd_int(0, 2), t < 2);
		if (t == 2 && rnd_int(0, 1)) // a bias
			o[2].view.strides[p.batch] = 0;
		fill(&o[t], t < 2);
	}
	struct yoke_op plain = contract(x, in), op = contract(x, mapped_in);
	mapped_in[2] = o[2].view;
	out[0] = o[0].view;
	out[1] = o[1].view;
	op.out = out;
	op.nout = 2;
	op.nin = 3;
	op.nattr = 1;
	op.attr[0].i = p.dtype;
	op.map = &map;
	uint64_t impls = cl->can(device, &op), bare = cl->can(device, &plain);
	ok(impls != 0, "with a map, %s: offered", text);
	for (uint32_t i = 0; i < 8; i++) {
		if (!(impls & bare & 1u << i))
			continue;
		run(&plain, i, &x[0]);
		must(cl->put(queue, o[1].segment, 0, o[1].before,
			     (size_t)o[1].elements * dtype_bytes(p.dtype)), "put");
		run(&op, i, &o[0]);
		must(cl->get(queue, o[1].segment, 0, o[1].host,
			     (size_t)o[1].elements * dtype_bytes(p.dtype)), "get");
		finish();
		ok(compare_map(&map, &x[0], o), "with a map, %s: %s",
		   cl->impl_name(device, &op, i), text);
	}
	for (int t = 0; t < 3; t++) {
		forget(&x[t]);
		forget(&o[t]);
	}
}

static void test_epilogues(int rounds)
{
	static const int dtypes[] = { yoke_f32, yoke_bf16, yoke_f32 };

	for (int i = 0; i < rounds; i++)
		test_epilogue(problem_of(
			i % 3 == 1 ? rnd_int(1, 16) : rnd_int(1, 70),
			i % 3 == 2 ? rnd_int(1, 16) : rnd_int(1, 290), rnd_int(1, 300),
			i % 2, dtypes[i % 3], (enum layout)rnd_int(0, 1),
			(enum layout)rnd_int(0, 1)));
}

static void test_edges(void)
{
	test_problem(problem_of(3, 2, 5, 6, yoke_f32, WILD, WILD));
	test_problem(problem_of(1, 1, 0, 1, yoke_f32, DENSE, DENSE));
	test_problem(problem_of(33, 40, 0, 0, yoke_bf16, DENSE, DENSE));
	test_problem(problem_of(0, 4, 4, 0, yoke_f32, DENSE, DENSE));
	test_problem(problem_of(4, 0, 4, 1, yoke_f16, DENSE, DENSE));
	test_problem(problem_of(257, 130, 300, 0, yoke_f32, DENSE, TRANSPOSED));
	test_problem(problem_of(130, 257, 300, 1, yoke_f32, TRANSPOSED, DENSE));
	test_problem(problem_of(1, 1, 600, 0, yoke_f32, DENSE, DENSE));
}

static void test_refusals(void)
{
	const int64_t dims[] = { 2, 2 };
	struct yoke_view v[3], twin;
	struct yoke_op op = { .size = sizeof op,
			      .code = YOKE_OP_CONTRACT,
			      .nout = 1,
			      .nin = 2,
			      .out = v,
			      .in = v + 1 };

	for (int i = 0; i < 3; i++)
		v[i] = dense_view(NULL, 0, yoke_f32, 2, dims);
	ok(cl->can(device, &op) != 0, "takes a plain contraction");
	twin = v[1];
	v[1].dtype = yoke_f16;
	ok(!cl->can(device, &op), "not one of two dtypes");
	v[1] = twin;
	v[2].dims[0] = 3;
	ok(!cl->can(device, &op), "nor one whose shapes do not fit");
	v[2] = v[1];
	v[0].dtype = v[1].dtype = v[2].dtype = yoke_bool;
	ok(!cl->can(device, &op), "nor one of bools");
	op.code = YOKE_OP_MOVE;
	ok(!(cl->can(device, &op) & 16), "nor what is no contraction");
}

int main(void)
{
	struct yoke_device_info info = { .size = sizeof info };
	uint32_t n;
	const char *preset = getenv("YOKE_TEST_PRESET");
	const char *why = test_load(getenv("YOKE_TEST_OPENCL"), &n);

	if (why)
		return skip_all(why);
	tap_seed();
	must(cl->device_info(device, &info), "device_info");
	has_f64 = info.flags & YOKE_DEVICE_F64;
	diag("%s, %s", info.name, info.driver);
	must(cl->queue_new(device, YOKE_QUEUE_COMPUTE, &queue), "queue_new");
	test_refusals();
	bool gpu = preset ? !strcmp(preset, "gpu") : info.kind != YOKE_DEVICE_CPU;
	test_edges();
	test_sizes(tap_cases(16, 400), gpu);
	test_skinny(tap_cases(12, 200), gpu);
	test_epilogues(tap_cases(3, 60));
	test_clblast();
	for (uint32_t i = 0; i < 6; i++)
		if ((seen[i] || !gpu) && i != CLBLAST)
			ok(seen[i] > 0, "implementation %u: %u times", i, seen[i]);
	cl->queue_free(queue);
	test_forget();
	return done();
}
