// SPDX-License-Identifier: Apache-2.0
// Generated map kernels on an OpenCL device against a scalar interpreter: each
// instruction in each dtype, all casts, random programs over random layouts; and binaries
// kept between processes.
#include "config.h"

#include "map_scalar.h"
#include "opencl_host.h"

static void *queue;
static bool has_f64;
static bool exact_division;

// ---- one program ----

struct operand {
	struct yoke_view view;
	void *segment;
	unsigned char *host;
	uint64_t bytes;
};

static int64_t place(const struct yoke_view *v, int64_t element)
{
	int64_t at = 0;
	for (int i = v->rank - 1; i >= 0; i--) {
		at += element % v->dims[i] * v->strides[i];
		element /= v->dims[i];
	}
	return at;
}

static void *element_of(const struct operand *o, int64_t element)
{
	return o->host + o->view.offset +
	       (uint64_t)place(&o->view, element) * dtype_bytes(o->view.dtype);
}

// layout 0: dense; 1: axes in random order with gaps, inputs broadcast along some; 2: one
// element
static struct operand make_operand(int dtype, int rank, const int64_t *dims, bool output,
				   int layout)
{
	struct operand o = { .view = dense_view(NULL, 0, dtype, rank, dims) };
	struct yoke_view *v = &o.view;
	int64_t n = 1, size = (int64_t)dtype_bytes(dtype);
	int order[YOKE_MAX_RANK];

	for (int i = 0; i < rank; i++) {
		int j = layout == 0 ? i : (int)rnd_int(0, i);
		order[i] = order[j];
		order[j] = i;
	}
	for (int i = rank - 1; i >= 0; i--) {
		int axis = order[i];
		bool still =
			!output && (layout == 2 || (layout == 1 && rnd_int(0, 3) == 0));
		v->strides[axis] = still ? 0 : n;
		if (!still)
			n *= dims[axis] + (layout == 1 ? rnd_int(0, 1) : 0);
	}
	v->offset = (uint64_t)(rnd_int(0, 7) * size);
	v->align = (uint32_t)size;
	o.bytes = v->offset + (uint64_t)((n + 3) * size);
	o.host = malloc(o.bytes);
	for (int64_t i = 0; i * size < (int64_t)o.bytes; i++)
		store(dtype, output ? (struct value){ NAN, -1 } : random_value(dtype),
		      o.host + i * size);
	must(cl->segment_new(device, YOKE_SEGMENT_DEVICE, o.bytes, &o.segment),
	     "segment_new");
	must(cl->put(queue, o.segment, 0, o.host, o.bytes), "put");
	v->segment = o.segment;
	return o;
}

static bool same(int dtype, struct value got, struct value want, double tol)
{
	if (!is_real(dtype))
		return got.i == want.i;
	if (isnan(want.r) || isnan(got.r))
		return isnan(want.r) && isnan(got.r);
	if (got.r == want.r)
		return true;
	return fabs(got.r - want.r) <= tol * fabs(want.r) ||
	       (tol > 0 && fabs(want.r) < 1e-35 && fabs(got.r) < 1e-35);
}

static bool check(const struct yoke_op *op, struct operand *out, struct operand *in,
		  double tol)
{
	const struct yoke_map *m = op->map;
	struct value v[YOKE_MAP_MAX_INSNS], x[YOKE_MAP_MAX_INPUTS];
	int64_t n = 1;

	for (int i = 0; i < op->rank; i++)
		n *= op->dims[i];
	for (int64_t e = 0; e < n; e++) {
		for (int k = 0; k < m->nin; k++)
			x[k] = in[k].view.kind == YOKE_VIEW_SCALAR ?
			       load(in[k].view.dtype, &in[k].view.offset) :
			       load(in[k].view.dtype, element_of(&in[k], e));
		map_scalar(m, x, e, v);
		for (int k = 0; k < m->nout; k++) {
			int d = out[k].view.dtype;
			struct value got = load(d, element_of(&out[k], e)),
				     want = v[m->out[k]];
			if (same(d, got, want, tol))
				continue;
			diag("output %d [%lld] got %.17g %lld want %.17g %lld; inputs "
			     "%.17g %lld, "
			     "%.17g %lld",
			     k, (long long)e, got.r, (long long)got.i, want.r,
			     (long long)want.i, x[0].r, (long long)x[0].i, x[1].r,
			     (long long)x[1].i);
			return false;
		}
	}
	return true;
}

// Runs a program over dims with operands of the given layouts and compares.
static bool run_program(const struct yoke_map *m, int rank, const int64_t *dims,
			int layout, const int *in_dtypes, double tol)
{
	struct operand out[YOKE_MAP_MAX_OUTPUTS], in[YOKE_MAP_MAX_INPUTS];
	struct yoke_view vo[YOKE_MAP_MAX_OUTPUTS], vi[YOKE_MAP_MAX_INPUTS];
	struct yoke_op op = { .size = sizeof op,
			      .code = YOKE_OP_MAP,
			      .rank = (uint8_t)rank,
			      .nout = m->nout,
			      .nin = m->nin,
			      .out = vo,
			      .in = vi,
			      .map = m };
	void *e;

	memcpy(op.dims, dims, (size_t)rank * sizeof *dims);
	for (int k = 0; k < m->nout; k++) {
		out[k] = make_operand(m->insn[m->out[k]].dtype, rank, dims, true, layout);
		vo[k] = out[k].view;
	}
	for (int k = 0; k < m->nin; k++) {
		in[k] = make_operand(in_dtypes[k], rank, dims, false,
				     layout && rnd_int(0, 2) == 0 ? 2 : layout);
		if (layout && rnd_int(0, 5) == 0) { // by value
			struct value v = random_value(in_dtypes[k]);
			in[k].view.kind = YOKE_VIEW_SCALAR;
			in[k].view.offset = 0;
			store(in_dtypes[k], v, &in[k].view.offset);
		}
		vi[k] = in[k].view;
	}
	bool good = cl->can(device, &op) == 1;
	if (good) {
		must(run_op(queue, &op, 0), "run");
		for (int k = 0; k < m->nout; k++)
			must(cl->get(queue, out[k].segment, 0, out[k].host, out[k].bytes),
			     "get");
		must(cl->event_mark(queue, &e), "mark");
		must(cl->event_wait(e), "wait");
		cl->event_free(e);
		good = check(&op, out, in, tol);
	} else {
		diag("refused");
	}
	for (int k = 0; k < m->nout + m->nin; k++) {
		struct operand *o = k < m->nout ? &out[k] : &in[k - m->nout];
		cl->segment_free(device, o->segment);
		free(o->host);
	}
	return good;
}

// ---- programs ----

static unsigned add(struct yoke_map *m, int op, int dtype, unsigned a, unsigned b,
		    unsigned c)
{
	m->insn[m->ninsn] =
		(struct yoke_insn){ (uint16_t)op, (uint8_t)dtype, 0,
				    (uint16_t)a,  (uint16_t)b,    (uint16_t)c };
	return m->ninsn++;
}

static const char *const dtype_names[] = { "",   "f32", "f64", "f16", "bf16",
					   "i8", "u8",  "i32", "i64", "bool" };

// Relative error allowed to a function; f16 and bf16 may round a result that is off to
// the neighbour.
static double tolerance(int op, int dtype)
{
	double unit = dtype == yoke_f64 ? 0x1p-52 : dtype == yoke_f32 ? 0x1p-23 :
		      dtype == yoke_f16 ? 0x1p-10 : 0x1p-7;
	bool exact = op <= YOKE_MAP_MUL || (op >= YOKE_MAP_MIN && op <= YOKE_MAP_CEIL) ||
		     op == YOKE_MAP_SQUARE;
	if (exact ||
	    ((op == YOKE_MAP_DIV || op == YOKE_MAP_SQRT || op == YOKE_MAP_RECIP) &&
	     exact_division))
		return 0;
	return dtype == yoke_f32 || dtype == yoke_f64 ? 20 * unit : unit;
}

static bool defined(int op, int d)
{
	bool logic = op == YOKE_MAP_AND || op == YOKE_MAP_OR || op == YOKE_MAP_NOT;

	if (op < YOKE_MAP_ADD || op >= YOKE_MAP_SELECT || (logic && d != yoke_bool))
		return false;
	if (op >= YOKE_MAP_EQ || op == YOKE_MAP_MIN || op == YOKE_MAP_MAX)
		return true;
	if (is_real(d))
		return true;
	return d != yoke_bool && (op <= YOKE_MAP_CEIL || op == YOKE_MAP_SQUARE);
}

// As many instructions to a program as it has outputs, since building is what takes the
// time.
static void test_instructions(int d)
{
	static const struct { const char *name; int op; } all[] = {
#define X(name, number) { #name, number },
		YOKE_MAP_CODES(X)
#undef X
	};
	enum { N = sizeof all / sizeof *all };
	const int64_t dims[] = { 1009 };
	const int in[] = { d, d };
	size_t next = 0;

	while (next < N) {
		struct yoke_map m = { .size = sizeof m, .nin = 2 };
		char names[128] = "";
		double tol = 0;
		add(&m, YOKE_MAP_INPUT, d, 0, 0, 0);
		add(&m, YOKE_MAP_INPUT, d, 1, 0, 0);
		for (; next < N && m.nout < YOKE_MAP_MAX_OUTPUTS; next++) {
			int op = all[next].op;
			double t = is_real(d) && op < YOKE_MAP_EQ ? tolerance(op, d) : 0;
			if (!defined(op, d))
				continue;
			if (m.nout && !t != !tol) // what is exact stays by itself
				break;
			tol = t;
			m.out[m.nout++] = (uint16_t)add(
				&m, op, op >= YOKE_MAP_EQ ? yoke_bool : d, 0, 1, 0);
			snprintf(names + strlen(names), 16, " %s", all[next].name);
		}
		if (m.nout)
			ok(run_program(&m, 1, dims, 0, in, tol), "%s:%s", dtype_names[d],
			   names);
	}
}

static void test_casts(int from)
{
	const int64_t dims[] = { 4001 };

	for (int to = yoke_f32; to <= yoke_bool;) {
		struct yoke_map m = { .size = sizeof m, .nin = 1 };
		char names[128] = "";
		add(&m, YOKE_MAP_INPUT, from, 0, 0, 0);
		for (; to <= yoke_bool && m.nout < YOKE_MAP_MAX_OUTPUTS; to++) {
			if (to == yoke_f64 && !has_f64)
				continue;
			m.out[m.nout++] = (uint16_t)add(&m, YOKE_MAP_CAST, to, 0, 0, 0);
			snprintf(names + strlen(names), 16, " %s", dtype_names[to]);
		}
		ok(run_program(&m, 1, dims, 0, &from, 0), "casts from %s to%s",
		   dtype_names[from], names);
	}
}

static void test_random_numbers(void)
{
	const int64_t dims[] = { 3, 5, 67 };
	struct yoke_map m = { .size = sizeof m, .nin = 2, .nout = 3, .nconst = 1 };
	const int in[] = { yoke_i64, yoke_i64 };

	m.konst[0] = 1;
	add(&m, YOKE_MAP_INDEX, yoke_i64, 0, 0, 0);
	add(&m, YOKE_MAP_INPUT, yoke_i64, 0, 0, 0);
	add(&m, YOKE_MAP_INPUT, yoke_i64, 1, 0, 0);
	m.out[0] = (uint16_t)add(&m, YOKE_MAP_RAND, yoke_i32, 0, 1, 2);
	m.out[1] = (uint16_t)add(&m, YOKE_MAP_UNIFORM, yoke_f32, 3, 0, 0);
	add(&m, YOKE_MAP_CONST, yoke_i64, 0, 0, 0);
	add(&m, YOKE_MAP_ADD, yoke_i64, 1, 5, 0);
	add(&m, YOKE_MAP_RAND, yoke_i32, 0, 6, 2);
	add(&m, YOKE_MAP_UNIFORM, yoke_f32, 7, 0, 0);
	m.out[2] = (uint16_t)add(&m, YOKE_MAP_NORMAL, yoke_f32, 4, 8, 0);
	m.nout = 2;
	ok(run_program(&m, 3, dims, 1, in, 0), "random bits and uniforms are exact");
	m.nout = 3;
	// near zeros of the cosine the relative error of 2 pi b in f32 shows
	ok(run_program(&m, 3, dims, 2, in, 2e-3), "normals");
	// known answer of Random123: counter and key 0
	ok((uint32_t)philox(0, 0, 0) == 0x6627e8d5 &&
		   (uint32_t)philox(1, 0, 0) == 0xe169c58d &&
		   (uint32_t)philox(2, 0, 0) == 0xbc57ac4c &&
		   (uint32_t)philox(3, 0, 0) == 0x9b00dbd8,
	   "the reference gives the known answer");
}

// ---- random programs ----

// Of the instructions that are exact, over what was computed before; all dtypes mixed by
// casts.
static unsigned random_insn(struct yoke_map *m)
{
	static const int codes[] = { YOKE_MAP_ADD,   YOKE_MAP_SUB,  YOKE_MAP_MUL,
				     YOKE_MAP_MIN,   YOKE_MAP_MAX,  YOKE_MAP_NEG,
				     YOKE_MAP_ABS,   YOKE_MAP_SIGN, YOKE_MAP_FLOOR,
				     YOKE_MAP_ROUND, YOKE_MAP_CEIL, YOKE_MAP_SQUARE };
	unsigned a = (unsigned)rnd_int(0, m->ninsn - 1), b = a;
	int d = m->insn[a].dtype, op = codes[rnd() % (sizeof codes / sizeof *codes)], to;

	for (int i = 0; i < 30; i++) { // another of the same dtype, if one is found
		unsigned k = (unsigned)rnd_int(0, m->ninsn - 1);
		if (m->insn[k].dtype == d && k != a)
			b = k;
	}
	switch (rnd_int(0, 5)) {
	case 0:
		do
			to = (int)rnd_int(yoke_f32, yoke_bool);
		while (to == yoke_f64 && !has_f64);
		return add(m, YOKE_MAP_CAST, to, a, 0, 0);
	case 1:
		return add(m, (int)rnd_int(YOKE_MAP_EQ, YOKE_MAP_GE), yoke_bool, a, b, 0);
	case 2:
		for (unsigned k = 0; k < m->ninsn; k++)
			if (m->insn[k].dtype == yoke_bool)
				return add(m, YOKE_MAP_SELECT, d, k, a, b);
		return add(m, YOKE_MAP_ISFINITE, yoke_bool, a, 0, 0);
	default:
		if (d == yoke_bool)
			op = rnd_int(0, 1) ? YOKE_MAP_AND : YOKE_MAP_OR;
		return add(m, op, d, a, b, 0);
	}
}

static void test_random_program(int number)
{
	struct yoke_map m = { .size = sizeof m, .nin = (uint16_t)rnd_int(2, 12),
			      .nconst = (uint16_t)rnd_int(0, 16) };
	static const int64_t sizes[] = { 1, 2, 3, 7, 13, 16, 17 };
	int in[YOKE_MAP_MAX_INPUTS], rank = (int)rnd_int(0, 4);
	int64_t dims[YOKE_MAX_RANK];

	for (int i = 0; i < rank; i++)
		dims[i] = sizes[rnd() % (sizeof sizes / sizeof *sizes)];
	for (unsigned k = 0; k < (unsigned)m.nin + m.nconst; k++) {
		int d = (int)rnd_int(yoke_f32, yoke_bool);
		if (d == yoke_f64 && !has_f64)
			d = yoke_f32;
		if (k < m.nin) {
			in[k] = d;
			add(&m, YOKE_MAP_INPUT, d, k, 0, 0);
			continue;
		}
		store(d, random_value(d), &m.konst[k - m.nin]);
		add(&m, YOKE_MAP_CONST, d, k - m.nin, 0, 0);
	}
	add(&m, YOKE_MAP_INDEX, yoke_i64, 0, 0, 0);
	int insns = (int)rnd_int(m.ninsn + 1, YOKE_MAP_MAX_INSNS);
	while (m.ninsn < insns)
		random_insn(&m);
	m.nout = (uint16_t)rnd_int(1, YOKE_MAP_MAX_OUTPUTS);
	for (int k = 0; k < m.nout; k++)
		m.out[k] = (uint16_t)(m.ninsn - 1 - k);
	ok(run_program(&m, rank, dims, number % 2, in, 0),
	   "random program %d: rank %d, %d instructions", number, rank, m.ninsn);
}

// In place: the output is its input's own block, element by element.
static void test_in_place(void)
{
	enum { N = 100003 };
	static float x[N];
	const int64_t dims[] = { N };
	struct yoke_map m = { .size = sizeof m, .nin = 1, .nout = 1, .out = { 1 } };
	struct yoke_view v;
	void *s, *e;
	int bad = 0;

	add(&m, YOKE_MAP_INPUT, yoke_f32, 0, 0, 0);
	add(&m, YOKE_MAP_SQUARE, yoke_f32, 0, 0, 0);
	for (int i = 0; i < N; i++)
		x[i] = (float)i;
	must(cl->segment_new(device, YOKE_SEGMENT_DEVICE, sizeof x, &s), "segment_new");
	must(cl->put(queue, s, 0, x, sizeof x), "put");
	v = dense_view(s, 0, yoke_f32, 1, dims);
	struct yoke_op op = { .size = sizeof op,
			      .code = YOKE_OP_MAP,
			      .rank = 1,
			      .nout = 1,
			      .nin = 1,
			      .dims = { N },
			      .out = &v,
			      .in = &v,
			      .map = &m,
			      .alias_mask = 1 };
	must(run_op(queue, &op, 0), "run");
	must(cl->get(queue, s, 0, x, sizeof x), "get");
	must(cl->event_mark(queue, &e), "mark");
	must(cl->event_wait(e), "wait");
	cl->event_free(e);
	for (int i = 0; i < N; i++)
		bad += x[i] != (float)i * (float)i;
	ok(!bad, "in place: %d wrong", bad);
	op.dims[0] = v.dims[0] = 0;
	ok(cl->can(device, &op) && !run_op(queue, &op, 0), "nothing to do is no error");
	cl->segment_free(device, s);
}

// Outputs so large that they are written past the caches: a row less x, and random bits.  Rows
// are a block or more and a rest; one row is one element less than a block more.
static void test_huge(int dtype, int64_t rows)
{
	const int64_t least = tap_stream_bytes() / (int64_t)dtype_bytes(dtype);
	const int64_t cols = rows == 1 ? least + 63 : 64 * (least / rows / 64 + 1) + 16;
	const int64_t n = rows * cols, dims[] = { rows, cols };
	const size_t size = dtype_bytes(dtype);
	const bool draws = dtype == yoke_f32;
	struct yoke_map m = { .size = sizeof m,
			      .nin = 2,
			      .nout = (uint16_t)(1 + draws),
			      .nconst = 2,
			      .konst = { 3, 1 },
			      .out = { 2, 6 } };
	unsigned char *host[4];
	const uint64_t bytes[] = { (uint64_t)n * size, (uint64_t)cols * size,
				   (uint64_t)n * size, (uint64_t)n * 4 };
	struct yoke_view v[4];
	void *segment[4], *e;
	int64_t bad = 0, bad_bits = 0;

	add(&m, YOKE_MAP_INPUT, dtype, 0, 0, 0);
	add(&m, YOKE_MAP_INPUT, dtype, 1, 0, 0);
	add(&m, YOKE_MAP_SUB, dtype, 1, 0, 0);
	add(&m, YOKE_MAP_INDEX, yoke_i64, 0, 0, 0);
	add(&m, YOKE_MAP_CONST, yoke_i64, 0, 0, 0);
	add(&m, YOKE_MAP_CONST, yoke_i64, 1, 0, 0);
	add(&m, YOKE_MAP_RAND, yoke_i32, 3, 4, 5);
	if (!draws)
		m.ninsn = 3;
	for (int k = 0; k < 4; k++) {
		host[k] = malloc(bytes[k]);
		memset(host[k], 0xff, bytes[k]);
		for (int64_t i = 0; k < 2 && i < (int64_t)(bytes[k] / size); i++)
			store(dtype, (struct value){ (double)(i % 1019), i % 1019 },
			      host[k] + (size_t)i * size);
		must(cl->segment_new(device, YOKE_SEGMENT_DEVICE, bytes[k], &segment[k]),
		     "segment_new");
		must(cl->put(queue, segment[k], 0, host[k], bytes[k]), "put");
		v[k] = dense_view(segment[k], 0, k == 3 ? yoke_i32 : dtype, 2, dims);
		v[k].align = 64;
	}
	v[1].strides[0] = 0;
	struct yoke_op op = { .size = sizeof op,
			      .code = YOKE_OP_MAP,
			      .rank = 2,
			      .nout = m.nout,
			      .nin = 2,
			      .dims = { rows, cols },
			      .out = &v[2],
			      .in = v,
			      .map = &m };
	must(run_op(queue, &op, 0), "run");
	must(cl->get(queue, segment[2], 0, host[2], bytes[2]), "get");
	must(cl->get(queue, segment[3], 0, host[3], bytes[3]), "get");
	must(cl->event_mark(queue, &e), "mark");
	must(cl->event_wait(e), "wait");
	cl->event_free(e);
	for (int64_t i = 0; i < n; i++) {
		struct value y = load(dtype, host[2] + (size_t)i * size);
		bad += y.r != (double)(i % cols % 1019 - i % 1019);
		bad_bits += draws && ((int32_t *)(void *)host[3])[i] != philox(i, 3, 1);
	}
	ok(!bad && !bad_bits, "%lld x %lld elements of %s: %lld wrong, %lld bits wrong",
	   (long long)rows, (long long)cols, dtype_names[dtype], (long long)bad,
	   (long long)bad_bits);
	for (int k = 0; k < 4; k++) {
		cl->segment_free(device, segment[k]);
		free(host[k]);
	}
}

// ---- binaries ----

// A copy of the module has no kernels yet: it finds the binaries that another one left.
static bool load_copy(const char *copy)
{
	static char buffer[1 << 16];
	FILE *from = fopen(getenv("YOKE_TEST_OPENCL"), "rb"), *to = fopen(copy, "wb");
	uint32_t n;
	size_t bytes;

	if (!from || !to)
		return false;
	while ((bytes = fread(buffer, 1, sizeof buffer, from)))
		fwrite(buffer, 1, bytes, to);
	fclose(from);
	if (fclose(to))
		return false;
	const char *why = test_load(copy, &n);
	remove(copy);
	if (why)
		diag("%s", why);
	return !why;
}

static void test_binaries(void)
{
	const int64_t dims[] = { 5, 7 };
	struct yoke_map m = { .size = sizeof m, .nin = 1, .nout = 1, .out = { 1 } };
	const int in[] = { yoke_f32 };

	add(&m, YOKE_MAP_INPUT, yoke_f32, 0, 0, 0);
	add(&m, YOKE_MAP_SQUARE, yoke_f32, 0, 0, 0);
	m.insn[1].b = 1; // unused, but another key
	keeps = "1";
	cl->queue_free(queue);
	if (!ok(load_copy("./yoke_opencl_one.so"), "a copy of the module starts"))
		return;
	must(cl->queue_new(device, YOKE_QUEUE_COMPUTE, &queue), "queue_new");
	spoilt = true;
	ok(run_program(&m, 2, dims, 0, in, 0), "a binary that is garbage is a miss");
	spoilt = false;
	cl->queue_free(queue);
	if (!ok(load_copy("./yoke_opencl_two.so"), "another one starts"))
		return;
	must(cl->queue_new(device, YOKE_QUEUE_COMPUTE, &queue), "queue_new");
	cache_hits = 0;
	bool good = run_program(&m, 2, dims, 0, in, 0);
	ok(good && (cache_hits == 1 || !nbinaries),
	   "a binary that was kept serves (%u of %u)", cache_hits, nbinaries);
	cl->queue_free(queue);
}

int main(void)
{
	struct yoke_device_info info = { .size = sizeof info };
	uint32_t n;
	const char *why = test_load(getenv("YOKE_TEST_OPENCL"), &n);

	if (why)
		return skip_all(why);
	tap_seed();
	must(cl->device_info(device, &info), "device_info");
	must(cl->queue_new(device, YOKE_QUEUE_COMPUTE, &queue), "queue_new");
	has_f64 = info.flags & YOKE_DEVICE_F64;
	exact_division = info.kind == YOKE_DEVICE_CPU;
	diag("%s, f64 %d", info.name, has_f64);
	for (int d = yoke_f32; d <= yoke_bool; d++) {
		if (d == yoke_f64 && !has_f64)
			continue;
		test_casts(d);
		bool usual = d == yoke_f16 || d == yoke_u8 || d == yoke_i32 || d == yoke_bool;
		if (tap_long() || d == yoke_f32 || (usual && tap_turn(dtype_names[d], 2)))
			test_instructions(d);
	}
	test_random_numbers();
	test_in_place();
	test_huge(yoke_f32, 1);
	test_huge(yoke_f32, 1009);
	test_huge(yoke_f16, 1);
	for (int i = 0; i < tap_cases(6, 200); i++)
		test_random_program(i);
	test_binaries();
	test_forget();
	return done();
}
