// SPDX-License-Identifier: Apache-2.0
// CONTRACT of the CPU backend: every instruction set here, every dtype, any strides, against
// loops in f64; the same bits with one thread and with all, and when run again.
#include "config.h"

#include <float.h>

#include "cpu_levels.h"
#include "tap.h"

enum { PAD = 3 }; // elements of NaN before, between and behind what an output owns

struct operand {
	struct yk_segment segment;
	struct yoke_view view;
	int64_t elements; // of the segment
	double *number;   // what they are, of an operand that is read
};

struct problem {
	int dtype;
	int64_t m, n, k;
	struct operand a, b, c;
};

// ---- elements ----

static float half_value(int dtype, uint16_t h)
{
	float f;
	uint32_t u = (uint32_t)h << 16;
	int e = h >> 10 & 31, s = h & 0x3ff;

	if (dtype == yoke_bf16) {
		memcpy(&f, &u, 4);
		return f;
	}
	f = e == 31 ? (s ? NAN : INFINITY) :
	    e       ? ldexpf((float)(s + 1024), e - 25) :
		      ldexpf((float)s, -24);
	return h & 0x8000 ? -f : f;
}

static double get(const struct operand *o, int64_t i)
{
	const char *p = o->segment.base;

	switch (o->view.dtype) {
	case yoke_f32: return ((const float *)p)[i];
	case yoke_f64: return ((const double *)p)[i];
	case yoke_i32: return ((const int32_t *)p)[i];
	case yoke_i64: return (double)((const int64_t *)p)[i];
	case yoke_i8: return ((const int8_t *)p)[i];
	case yoke_u8: return ((const uint8_t *)p)[i];
	default: return half_value(o->view.dtype, ((const uint16_t *)p)[i]);
	}
}

// A random value that is exact in the dtype.
static void set_random(struct operand *o, int64_t i)
{
	char *p = o->segment.base;

	switch (o->view.dtype) {
	case yoke_f32: ((float *)p)[i] = (float)rnd_real(-1, 1); break;
	case yoke_f64: ((double *)p)[i] = rnd_real(-1, 1); break;
	case yoke_i32: ((int32_t *)p)[i] = (int32_t)rnd_int(-9, 9); break;
	case yoke_i64: ((int64_t *)p)[i] = rnd_int(-9, 9); break;
	case yoke_i8: ((int8_t *)p)[i] = (int8_t)rnd_int(-2, 2); break;
	case yoke_u8: ((uint8_t *)p)[i] = (uint8_t)rnd_int(0, 2); break;
	case yoke_f16: // exponents 2^-5 .. 2^0, any mantissa and sign; now and then
		       // subnormal
		((uint16_t *)p)[i] =
			(uint16_t)(rnd_int(0, 1) << 15 | rnd_int(0, 1023) |
				   (rnd_int(0, 20) ? rnd_int(10, 14) << 10 : 0));
		break;
	case yoke_bf16:
		((uint16_t *)p)[i] = (uint16_t)(rnd_int(0, 1) << 15 | rnd_int(0, 127) |
						rnd_int(122, 126) << 7);
	}
}

static double epsilon(int dtype) // of one rounding
{
	return dtype == yoke_f32  ? FLT_EPSILON :
	       dtype == yoke_f64  ? DBL_EPSILON :
	       dtype == yoke_f16  ? 0x1p-11 :
	       dtype == yoke_bf16 ? 0x1p-8 :
				    0;
}

// ---- problems ----

// Of the last two axes; FLIPPED: rows from last to first; BROADCAST: one for all the batch.
enum layout { ROWS, COLUMNS, GAPS, FLIPPED, BROADCAST };

// batch[]: two leading axes.  The segment is filled with NaN (all bits set), then with
// values.
static void operand_init(struct operand *o, int dtype, const int64_t batch[2],
			 int64_t rows, int64_t cols, enum layout layout, bool values)
{
	struct yoke_view *v = &o->view;
	int64_t size = (int64_t)yk_esize(dtype), step = layout == GAPS ? 2 : 1, one;

	*v = (struct yoke_view){ .segment = &o->segment,
				 .dtype = (uint8_t)dtype,
				 .rank = 4,
				 .kind = YOKE_VIEW_BUFFER,
				 .align = (uint32_t)size,
				 .dims = { batch[0], batch[1], rows, cols } };
	v->offset = (uint64_t)(PAD * size);
	if (layout == COLUMNS) {
		v->strides[2] = 1;
		v->strides[3] = rows + PAD;
		one = (rows + PAD) * cols;
	} else {
		v->strides[3] = step;
		v->strides[2] = step * cols + PAD;
		one = v->strides[2] * rows;
	}
	if (layout == FLIPPED && rows > 0) {
		v->offset += (uint64_t)((rows - 1) * v->strides[2] * size);
		v->strides[2] = -v->strides[2];
	}
	v->strides[1] = layout == BROADCAST ? 0 : one;
	v->strides[0] = layout == BROADCAST ? 0 : one * batch[1];
	o->elements = 2 * PAD + one * batch[0] * batch[1] + 64;
	o->segment.bytes = (uint64_t)(o->elements * size + 63) / 64 * 64;
	o->segment.base = aligned_alloc(64, o->segment.bytes);
	memset(o->segment.base, 0xff, o->segment.bytes);
	o->number = values ? malloc((size_t)o->elements * sizeof *o->number) : NULL;
	for (int64_t i = 0; values && i < o->elements; i++) {
		set_random(o, i);
		o->number[i] = get(o, i);
	}
}

static void operand_fini(struct operand *o)
{
	free(o->segment.base);
	free(o->number);
}

static int64_t index_of(const struct yoke_view *v, int64_t b0, int64_t b1, int64_t i,
			int64_t j)
{
	return (int64_t)v->offset / (int64_t)yk_esize(v->dtype) + b0 * v->strides[0] +
	       b1 * v->strides[1] + i * v->strides[2] + j * v->strides[3];
}

// Runs it on one table with so many threads; the output is filled with NaN first.
static int contract(const struct yk_isa *isa, struct problem *p, int threads)
{
	const struct yk_kernel *kernel = isa->op[YOKE_OP_CONTRACT];
	struct yoke_view in[2] = { p->a.view, p->b.view };
	struct yoke_op op = { .size = sizeof op,
			      .code = YOKE_OP_CONTRACT,
			      .nout = 1,
			      .nin = 2,
			      .out = &p->c.view,
			      .in = in };
	struct yk_segment work;
	uint64_t bytes, mask = kernel->can(&op);
	int rc;

	if (!(mask & 1))
		return YOKE_EUNSUPPORTED;
	bytes = kernel->workspace(&op, 0);
	work = (struct yk_segment){ aligned_alloc(64, (bytes + 127) / 64 * 64), bytes };
	memset(work.base, 0xff, bytes + 64);
	if (bytes)
		op.workspace = (struct yoke_view){ .segment = &work,
						   .kind = YOKE_VIEW_BUFFER,
						   .rank = 1,
						   .dtype = yoke_u8,
						   .align = 64,
						   .dims = { (int64_t)bytes },
						   .strides = { 1 } };
	memset(p->c.segment.base, 0xff, p->c.segment.bytes);
	yk_team_limit(threads);
	rc = yk_kernel_once(kernel, &op, 0);
	yk_team_limit(0);
	for (int i = 0; i < 64; i++)
		if ((uint8_t)work.base[bytes + (uint64_t)i] != 0xff)
			rc = YOKE_ERANGE; // wrote behind its workspace
	free(work.base);
	return rc;
}

// What one element should be, and how far off it may be.
static double reference(const struct problem *p, const int64_t at[4], double *bound)
{
	double sum = 0, size = 0, unit = p->dtype == yoke_f64 ? DBL_EPSILON : FLT_EPSILON;
	const double *a = p->a.number + index_of(&p->a.view, at[0], at[1], at[2], 0);
	const double *b = p->b.number + index_of(&p->b.view, at[0], at[1], 0, at[3]);

	for (int64_t l = 0; l < p->k; l++) {
		double x = a[l * p->a.view.strides[3]] * b[l * p->b.view.strides[2]];
		sum += x;
		size += fabs(x);
	}
	if (p->dtype == yoke_i8)
		sum = (int8_t)(int64_t)sum;
	else if (p->dtype == yoke_u8)
		sum = (uint8_t)(int64_t)sum;
	// a sum of k terms in f32 or f64, then one rounding to the dtype
	*bound = (sqrt((double)p->k) + 2) * size * unit + fabs(sum) * epsilon(p->dtype);
	if (p->dtype == yoke_f16)
		*bound += 0x1p-25; // half of its last place
	if (!epsilon(p->dtype))
		*bound = 0;
	return sum;
}

// Every element near its reference, nothing else written?  worst: of errors over bounds.
static bool right(const struct problem *p, double *worst, char *where, size_t cap)
{
	const int64_t *dims = p->c.view.dims;
	int64_t n = yk_elements(&p->c.view), size = (int64_t)yk_esize(p->dtype);
	char *untouched = malloc(p->c.segment.bytes);
	bool good = true;

	memcpy(untouched, p->c.segment.base, p->c.segment.bytes);
	for (int64_t e = 0; e < n && good; e++) {
		int64_t at[4], rest = e, place;
		double want, got, bound, error;
		for (int k = 3; k >= 0; k--) {
			at[k] = rest % dims[k];
			rest /= dims[k];
		}
		place = index_of(&p->c.view, at[0], at[1], at[2], at[3]);
		want = reference(p, at, &bound);
		got = get(&p->c, place);
		error = fabs(got - want);
		good = error <= bound;
		if (!good)
			snprintf(where, cap,
				 "[%lld,%lld,%lld,%lld] got %.9g want %.9g bound %.3g",
				 (long long)at[0], (long long)at[1], (long long)at[2],
				 (long long)at[3], got, want, bound);
		if (bound > 0 && error / bound > *worst)
			*worst = error / bound;
		memset(untouched + place * size, 0xff, (size_t)size);
	}
	for (size_t i = 0; good && i < p->c.segment.bytes; i++) {
		good = (uint8_t)untouched[i] == 0xff;
		if (!good)
			snprintf(where, cap, "byte %zu outside the output was written",
				 i);
	}
	free(untouched);
	return good;
}

static uint64_t bits(const struct problem *p)
{
	uint64_t h = 1469598103934665603u;

	for (uint64_t i = 0; i < p->c.segment.bytes; i++)
		h = (h ^ (uint8_t)p->c.segment.base[i]) * 1099511628211u;
	return h;
}

static const char *dtype_name(int dtype)
{
	static const char *const names[] = { "",   "f32", "f64", "f16", "bf16",
					     "i8", "u8",  "i32", "i64", "bool" };
	return names[dtype];
}

static const char *layout_name(enum layout l)
{
	static const char *const names[] = { "rows", "columns", "gaps", "flipped",
					     "broadcast" };
	return names[l];
}

struct tally {
	int runs, bad;
	double worst;
};

static void try(const struct yk_isa *isa, int dtype, int64_t m, int64_t n, int64_t k,
		const int64_t batch[2], enum layout la, enum layout lb, enum layout lc,
		struct tally *t)
{
	struct problem p = { .dtype = dtype, .m = m, .n = n, .k = k };
	char where[200] = "";
	uint64_t first, again;
	bool good;
	int rc;

	operand_init(&p.a, dtype, batch, m, k, la, true);
	operand_init(&p.b, dtype, batch, k, n, lb, true);
	operand_init(&p.c, dtype, batch, m, n, lc, false);
	rc = contract(isa, &p, 1);
	good = rc == 0 && right(&p, &t->worst, where, sizeof where);
	first = bits(&p);
	for (int i = 0; good && i < 2; i++) {
		rc = contract(isa, &p, 0);
		again = bits(&p);
		if (rc || first != again) {
			snprintf(where, sizeof where,
				 "other bits with %d threads, run %d", yk_team_size(), i);
			good = false;
		}
	}
	if (!good)
		diag("%s %s m %lld n %lld k %lld batch %lldx%lld a %s b %s c %s: code %d "
		     "%s",
		     isa->name, dtype_name(dtype), (long long)m, (long long)n,
		     (long long)k, (long long)batch[0], (long long)batch[1],
		     layout_name(la), layout_name(lb), layout_name(lc), rc, where);
	t->runs++;
	t->bad += !good;
	operand_fini(&p.a);
	operand_fini(&p.b);
	operand_fini(&p.c);
}

static const int dtypes[] = { yoke_f32, yoke_f64, yoke_f16, yoke_bf16,
			      yoke_i8,  yoke_u8,  yoke_i32, yoke_i64 };

// Sizes at the edges of tiles (rows 4, 6, 12; columns 4 .. 32; panels 256, 384, 512) and
// primes.
static int64_t some_size(bool deep)
{
	static const int64_t sizes[] = { 1,  2,  3,  4,  5,  7,  8,  11,  12, 13,
					 15, 16, 17, 23, 24, 25, 31, 32,  33, 47,
					 48, 49, 53, 63, 64, 65, 97, 127, 131 };
	static const int64_t depths[] = {
		1,   2,   3,   4,   5,   8,   15,  16,  17,  61,
		255, 256, 257, 383, 385, 511, 512, 513, 521, 769
	};

	return deep ? depths[rnd_int(0, sizeof depths / sizeof *depths - 1)] :
		      sizes[rnd_int(0, sizeof sizes / sizeof *sizes - 1)];
}

static void random_shapes(const struct yk_isa *isa, int dtype, int count)
{
	struct tally t = { 0 };

	for (int i = 0; i < count; i++) {
		int64_t batch[2] = { 1, 1 };
		int64_t m = some_size(false), n = some_size(false),
			k = some_size(rnd_int(0, 1));
		if (rnd_int(0, 2) == 0) {
			batch[0] = rnd_int(1, 3);
			batch[1] = rnd_int(1, 4);
			m = m % 40 + 1;
			n = n % 50 + 1;
		}
		try(isa, dtype, m, n, k, batch, (enum layout)rnd_int(ROWS, BROADCAST),
		    (enum layout)rnd_int(ROWS, BROADCAST),
		    (enum layout)rnd_int(ROWS, FLIPPED), &t);
	}
	ok(!t.bad, "%s %s: %d random contractions, %d wrong, error %.2f of the bound",
	   isa->name, dtype_name(dtype), t.runs, t.bad, t.worst);
}

// Large enough for packed panels shared by the team, in each orientation.
static void large_shapes(const struct yk_isa *isa, int dtype)
{
	static const int64_t one[2] = { 1, 1 }, two[2] = { 2, 1 };
	struct tally t = { 0 };

	for (int ta = ROWS; ta <= COLUMNS; ta++)
		for (int tb = ROWS; tb <= COLUMNS; tb++)
			for (int tc = ROWS; tc <= GAPS; tc++)
				try(isa, dtype, 101, 139, 97, one, (enum layout)ta,
				    (enum layout)tb, (enum layout)tc, &t);
	try(isa, dtype, 63, 67, 1031, two, ROWS, ROWS, ROWS, &t);
	try(isa, dtype, 63, 67, 1031, two, COLUMNS, BROADCAST, ROWS, &t);
	try(isa, dtype, 61, 517, 53, one, ROWS, COLUMNS, ROWS, &t);
	try(isa, dtype, 517, 61, 53, one, ROWS, COLUMNS, COLUMNS, &t);
	if (tap_long()) {
		try(isa, dtype, 300, 4200, 515, one, ROWS, ROWS, ROWS, &t);
		try(isa, dtype, 100, 300, 9000, one, COLUMNS, ROWS, ROWS, &t);
	}
	ok(!t.bad, "%s %s: %d large contractions, %d wrong, error %.2f of the bound",
	   isa->name, dtype_name(dtype), t.runs, t.bad, t.worst);
}

// Few rows: operands in place, columns in groups of 3, 4 and 12, vectors of 32 along k with a rest.
static void few_rows(const struct yk_isa *isa, int dtype)
{
	static const int64_t rows[] = { 5, 8, 9, 15, 16, 17 }, columns[] = { 1, 2, 11, 13, 37 };
	static const int64_t depths[] = { 31, 32, 33, 511, 512, 513, 1031 };
	static const int64_t one[2] = { 1, 1 }, two[2] = { 2, 1 };
	struct tally t = { 0 };

	for (int i = 0; i < 6; i++)
		for (int j = 0; j < 5; j++)
			for (int l = 0; l < 7; l++)
				if (!tap_sample() || (i * 5 + j) % 7 == l)
					try(isa, dtype, rows[i], columns[j], depths[l],
					    l % 2 ? one : two, l % 3 ? ROWS : COLUMNS,
					    j % 4 ? COLUMNS : ROWS, ROWS, &t);
	// rows of b in blocks, to be found in the second cache; then far beyond it
	for (int i = 1; i < 45; i += 7)
		try(isa, dtype, i, 299, 515, one, i % 2 ? ROWS : COLUMNS, ROWS, ROWS, &t);
	for (int i = 0; i < 2 && !tap_sample(); i++)
		try(isa, dtype, i ? 21 : 7, (5 << 20) / 1031 / (int64_t)yk_esize(dtype),
		    1031, one, ROWS, i ? COLUMNS : ROWS, ROWS, &t);
	ok(!t.bad, "%s %s: %d contractions of few rows, %d wrong, error %.2f of the bound",
	   isa->name, dtype_name(dtype), t.runs, t.bad, t.worst);
}

static void empty_shapes(const struct yk_isa *isa, int dtype)
{
	static const int64_t one[2] = { 1, 1 }, none[2] = { 2, 0 };
	struct tally t = { 0 };

	for (int tc = ROWS; tc <= GAPS; tc++) {
		try(isa, dtype, 0, 5, 7, one, ROWS, ROWS, (enum layout)tc, &t);
		try(isa, dtype, 5, 0, 7, one, ROWS, ROWS, (enum layout)tc, &t);
		try(isa, dtype, 5, 7, 0, one, ROWS, ROWS, (enum layout)tc, &t); // zeros
		try(isa, dtype, 5, 7, 3, none, ROWS, ROWS, (enum layout)tc, &t);
	}
	ok(!t.bad, "%s %s: empty m, n, k and batch", isa->name, dtype_name(dtype));
}

// One NaN in a makes its row of c NaN and no other; infinities arrive.
static void special_values(const struct yk_isa *isa)
{
	static const int64_t one[2] = { 1, 1 };
	struct problem p = { .dtype = yoke_f32, .m = 14, .n = 35, .k = 40 };
	bool good = true;
	float *a;

	operand_init(&p.a, yoke_f32, one, p.m, p.k, ROWS, true);
	operand_init(&p.b, yoke_f32, one, p.k, p.n, COLUMNS, true);
	operand_init(&p.c, yoke_f32, one, p.m, p.n, ROWS, false);
	a = (float *)p.a.segment.base;
	a[index_of(&p.a.view, 0, 0, 3, 39)] = NAN;
	a[index_of(&p.a.view, 0, 0, 5, 0)] = INFINITY;
	contract(isa, &p, 0);
	for (int64_t i = 0; i < p.m; i++)
		for (int64_t j = 0; j < p.n; j++) {
			double got = get(&p.c, index_of(&p.c.view, 0, 0, i, j));
			good &= i == 3 ? isnan(got) : i == 5 ? isinf(got) : isfinite(got);
		}
	ok(good, "%s: NaN and infinity stay in their rows", isa->name);
	operand_fini(&p.a);
	operand_fini(&p.b);
	operand_fini(&p.c);
}

static void refusals(const struct yk_isa *isa)
{
	static const int64_t one[2] = { 1, 1 };
	const struct yk_kernel *kernel = isa->op[YOKE_OP_CONTRACT];
	struct operand a, b, c;
	struct yoke_view in[2];
	struct yoke_op op = { .size = sizeof op,
			      .code = YOKE_OP_CONTRACT,
			      .nout = 1,
			      .nin = 2,
			      .out = &c.view,
			      .in = in };
	static const struct yoke_map map = { .size = sizeof map };

	operand_init(&a, yoke_f32, one, 3, 4, ROWS, true);
	operand_init(&b, yoke_f32, one, 4, 5, ROWS, true);
	operand_init(&c, yoke_f32, one, 3, 5, ROWS, false);
	in[0] = a.view;
	in[1] = b.view;
	ok(kernel->can(&op) == 1, "%s: takes a plain contraction", isa->name);
	op.map = &map;
	ok(kernel->can(&op) == 0, "%s: refuses an epilogue without results", isa->name);
	op.map = NULL;
	in[1].dims[2] = 5;
	ok(kernel->can(&op) == 0, "%s: refuses shapes that do not fit", isa->name);
	in[1].dims[2] = 4;
	in[1].dtype = yoke_f64;
	ok(kernel->can(&op) == 0, "%s: refuses mixed dtypes", isa->name);
	in[1].dtype = yoke_f32;
	in[0].kind = YOKE_VIEW_SCALAR;
	ok(kernel->can(&op) == 0, "%s: refuses a scalar operand", isa->name);
	operand_fini(&a);
	operand_fini(&b);
	operand_fini(&c);
}

int main(void)
{
	const struct yk_isa *isas[YK_ISA_LEVELS + 1];
	int n = levels(isas);

	tap_seed();
	diag("%d threads (%s)", yk_team_size(), yk_team_bound());
	ok(yk_amx_works_amx_emulated(), "the product AMX is checked with is right");
	for (int i = 0; i < n; i++) {
		refusals(isas[i]);
		special_values(isas[i]);
		for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
			bool real = epsilon(dtypes[d]) > 0;
			if (is_repeated(isas[i], dtypes[d]))
				continue;
			empty_shapes(isas[i], dtypes[d]);
			random_shapes(isas[i], dtypes[d],
				      tap_cases(real ? 20 : 5, real ? 1200 : 200));
			if (real) {
				few_rows(isas[i], dtypes[d]);
				large_shapes(isas[i], dtypes[d]);
			}
		}
	}
	return done();
}
