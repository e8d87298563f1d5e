// SPDX-License-Identifier: Apache-2.0
// REDUCE: every kind over random axes, layouts and programs in front,
// against loops in wide types; places and integers exactly; the order must not depend on
// what is in front.
#include "config.h"

#include "cpu_program.h"

#ifdef YK_ON_OPENCL // a kernel is built for each case
enum { CASES = 10, LONG_CASES = 500 };
#else
enum { CASES = 120, LONG_CASES = 10000 };
#endif

struct wide {
	long double f, size; // size, for errors: sum of |terms|, of |log2| of factors
	uint64_t i;
	int64_t at, count;
};

static void take_in(struct wide *w, int kind, int t, struct value v, int64_t at)
{
	bool first = w->count++ == 0, f = is_float(t), nan = f && isnan(v.f);
	bool more = f ? v.f > (double)w->f : v.i > (int64_t)w->i;
	bool less = f ? v.f < (double)w->f : v.i < (int64_t)w->i;
	bool high = kind == YOKE_REDUCE_MAX || kind == YOKE_REDUCE_ARGMAX;

	if (kind == YOKE_REDUCE_SUM || kind == YOKE_REDUCE_PROD) {
		bool sum = kind == YOKE_REDUCE_SUM;
		w->f = first ? v.f : sum ? w->f + v.f : w->f * v.f;
		w->i = first ? (uint64_t)v.i :
		       sum   ? w->i + (uint64_t)v.i :
			       w->i * (uint64_t)v.i;
		w->size += sum                        ? fabs(v.f) :
			   v.f == 0 || !isfinite(v.f) ? 0 :
							fabs(log2(fabs(v.f)));
	} else if (first ||
		   (!(f && isnan((double)w->f)) && (nan || (high ? more : less)))) {
		w->f = v.f, w->i = (uint64_t)v.i, w->at = at;
	}
}

// Number of the output, row major over the kept axes, and place along the reduced ones.
static void split(const struct yoke_op *op, int64_t index, int64_t *output,
		  int64_t *place)
{
	int64_t at[YOKE_MAX_RANK];
	for (int d = op->rank - 1; d >= 0; d--) {
		at[d] = index % op->dims[d];
		index /= op->dims[d];
	}
	*output = *place = 0;
	for (int d = 0; d < op->rank; d++) {
		int64_t *to = op->attr[1].i >> d & 1 ? place : output;
		*to = *to * op->dims[d] + at[d];
	}
}

static bool agrees(struct value got, const struct wide *w, int kind, int value, int t)
{
	if (kind >= YOKE_REDUCE_ARGMAX)
		return got.i == w->at;
	if (!is_float(t))
		return got.i == wrap(kind == YOKE_REDUCE_PROD && !w->count ? 1 : w->i, t);
	double want = kind == YOKE_REDUCE_PROD && !w->count ? 1 : to_dtype(w->f, t);
	if (kind == YOKE_REDUCE_PROD && w->size > 120)
		return true; // parts of it may overflow, or vanish
	if (isnan(want) || isnan(got.f))
		return isnan(want) && isnan(got.f);
	if (isinf(want) || isinf(got.f) || kind == YOKE_REDUCE_MAX ||
	    kind == YOKE_REDUCE_MIN)
		return got.f == want;
	double eps = t == yoke_f16 ? 0x1p-10 : t == yoke_bf16 ? 0x1p-7 : 0;
	double deep = value == yoke_f64 ? 0x1p-46 : 0x1p-20;
	if (kind == YOKE_REDUCE_PROD)
		return fabs(got.f - want) <=
		       (deep * (double)(w->count + 1) + eps) * fabs(want) + 1e-30;
	return fabs(got.f - want) <= deep * (double)w->size + eps * fabs(want) + 1e-30;
}

static void keep_tame(struct yoke_view *v) // no infinities, so that sums say something
{
	int64_t n = v->kind == YOKE_VIEW_BUFFER ? yk_elements(v) : 0;
	for (int64_t i = 0; i < n; i++) {
		struct value x = { to_dtype(rnd_real(-1.5, 1.5), v->dtype),
				   rnd_int(-3, 3) };
		x.i = wrap((uint64_t)x.i, v->dtype);
		uint64_t u = bits_of(x, v->dtype);
		memcpy(element(v, i), &u, yk_esize(v->dtype));
	}
}

static bool one_case(const struct yk_isa *isa)
{
	struct yoke_view in[3], out;
	struct value v[YOKE_MAP_MAX_INSNS];
	struct yoke_map m = random_program((int)rnd_int(1, 3), 1,
					   rnd() % 2 ? 0 : (int)rnd_int(1, 12));
	int64_t dims[YOKE_MAX_RANK] = { 0 }, outs[YOKE_MAX_RANK], n = 1, outputs = 1;
	int rank = random_shape(dims, rnd() % 6 ? 5000 : 300000);
	int kind = (int)rnd_int(YOKE_REDUCE_SUM, YOKE_REDUCE_ARGMIN);
	int64_t mask = (int64_t)(rnd() & ((1u << rank) - 1));
	bool good = true;

	m.nout = 1, m.out[0] = (uint16_t)(m.ninsn - 1);
	if (m.ninsn == m.nin + 1 || rnd() % 3 == 0)
		m.out[0] = 0;
	if (kind >= YOKE_REDUCE_ARGMAX)
		mask = rank ? (int64_t)1 << rnd_int(0, rank - 1) : 0;
	for (int d = 0; d < rank; d++) {
		if ((mask >> d & 1) && dims[d] == 0 && kind != YOKE_REDUCE_SUM &&
		    kind != YOKE_REDUCE_PROD)
			dims[d] = 1;
		outs[d] = mask >> d & 1 ? 1 : dims[d];
		n *= dims[d], outputs *= outs[d];
	}
	if (kind >= YOKE_REDUCE_ARGMAX && !mask)
		return true;
	int value = m.insn[m.out[0]].dtype;
	int t = kind >= YOKE_REDUCE_ARGMAX ? yoke_i64 : value;
	if (!is_float(t) && kind <= YOKE_REDUCE_PROD && kind != YOKE_REDUCE_MAX &&
	    rnd() % 2)
		t = yoke_i64;
	for (int k = 0; k < m.nin; k++) {
		in[k] = random_input(m.insn[k].dtype, rank, dims);
		if (rnd() % 4)
			keep_tame(&in[k]);
	}
	out = random_layout(t, rank, outs, true);
	struct yoke_op op = op_of(YOKE_OP_REDUCE, 1, &out, m.nin, in);
	op.rank = (uint8_t)rank, op.map = &m, op.nattr = 2;
	op.attr[0].i = kind, op.attr[1].i = mask;
	memcpy(op.dims, dims, sizeof dims);
	struct wide *want = calloc((size_t)outputs + 1, sizeof *want);
	for (int64_t i = 0; i < n; i++) {
		int64_t o, place;
		interpret(&m, in, i, v);
		split(&op, i, &o, &place);
		take_in(&want[o], kind, value, v[m.out[0]], place);
	}
	int code = call(isa, &op);
	for (int64_t o = 0; o < outputs && !code && good; o++) {
		struct value got = fetch(element(&out, o), t);
		good = agrees(got, &want[o], kind, value, t);
		if (!good)
			diag("%s: kind %d mask %llx rank %d dtype %d [%lld] got %.17g "
			     "want %.17Lg / %lld at "
			     "%lld",
			     isa->name, kind, (unsigned long long)mask, rank, t,
			     (long long)o, show(got, t), want[o].f, (long long)want[o].i,
			     (long long)want[o].at);
	}
	if (code || !good) {
		diag("%s: code %d, dims %lld %lld %lld %lld", isa->name, code,
		     (long long)dims[0], (long long)dims[1], (long long)dims[2],
		     (long long)dims[3]);
	}
	free(want);
	return arrays_free() && good && !code;
}

static struct yoke_map identity(int nin)
{
	struct yoke_map m = {
		.size = sizeof m, .ninsn = (uint16_t)nin, .nin = (uint16_t)nin, .nout = 1
	};
	for (int k = 0; k < nin; k++)
		m.insn[k] = (struct yoke_insn){ .op = YOKE_MAP_INPUT,
						.dtype = yoke_f32,
						.a = (uint16_t)k };
	return m;
}

// Shapes of training: bias gradients, norms of rows, whole tensors; a program in front or
// its values in memory give the same bits.
static void shapes(const struct yk_isa *isa, int64_t a, int64_t b, int64_t mask)
{
	int64_t dims[2] = { a, b }, outs[2] = { mask & 1 ? 1 : a, mask & 2 ? 1 : b };
	float *x = randoms(a * b, -1, 1), *w = randoms(b, -1, 1), *xw = nans(a * b);
	float *y = nans(outs[0] * outs[1]), *y2 = nans(outs[0] * outs[1]);
	struct yoke_view in[2] = { dense(x, yoke_f32, 2, dims),
				   strided(w, yoke_f32, 2, dims, (int64_t[]){ 0, 1 }) };
	struct yoke_view out = dense(y, yoke_f32, 2, outs),
			 ready = dense(xw, yoke_f32, 2, dims);
	struct yoke_map product = identity(2), plain = identity(1);
	double *want = calloc((size_t)(outs[0] * outs[1]), 8);

	product.insn[2] = (struct yoke_insn){
		.op = YOKE_MAP_MUL, .dtype = yoke_f32, .a = 0, .b = 1
	};
	product.ninsn = 3, product.out[0] = 2;
	for (int64_t i = 0; i < a * b; i++) {
		xw[i] = x[i] * w[i % b];
		want[(mask & 1 ? 0 : i / b) * outs[1] + (mask & 2 ? 0 : i % b)] += xw[i];
	}
	struct yoke_op op = op_of(YOKE_OP_REDUCE, 1, &out, 2, in);
	op.rank = 2, op.map = &product, op.nattr = 2;
	op.attr[0].i = YOKE_REDUCE_SUM, op.attr[1].i = mask;
	op.dims[0] = a, op.dims[1] = b;
	int code = call(isa, &op);
	out = dense(y2, yoke_f32, 2, outs);
	op.in = &ready, op.nin = 1, op.map = &plain;
	code |= call(isa, &op);
	char what[96];
	snprintf(what, sizeof what, "%s: sum of [%lld,%lld] over %lld", isa->name,
		 (long long)a, (long long)b, (long long)mask);
	double terms = (double)(a * b) /
		       (double)(outs[0] * outs[1]); // of 1/4 each, without sign
	near_rows(y, outs[1], want, outs[0], outs[1], 3e-7, terms / 4, what);
	ok(!code && !memcmp(y, y2, (size_t)(outs[0] * outs[1]) * 4),
	   "%s: same bits unfused", what);
	free(want);
	arrays_free();
}

// Sums and products of nothing, behind and in front of kept axes, beside reduced ones that have
// elements.
static void empty(const struct yk_isa *isa, const int64_t dims[3], int64_t mask)
{
	int64_t outs[3], n = 1;
	struct yoke_map plain = identity(1);

	for (int d = 0; d < 3; d++)
		n *= outs[d] = mask >> d & 1 ? 1 : dims[d];
	for (int kind = YOKE_REDUCE_SUM; kind <= YOKE_REDUCE_PROD;
	     kind += YOKE_REDUCE_PROD - YOKE_REDUCE_SUM) {
		float *y = nans(n);
		struct yoke_view x = dense(nans(0), yoke_f32, 3, dims),
				 out = dense(y, yoke_f32, 3, outs);
		struct yoke_op op = op_of(YOKE_OP_REDUCE, 1, &out, 1, &x);
		int64_t wrong = 0;
		op.rank = 3, op.map = &plain, op.nattr = 2;
		op.attr[0].i = kind, op.attr[1].i = mask;
		memcpy(op.dims, dims, 3 * sizeof *dims);
		int code = call(isa, &op);
		for (int64_t i = 0; i < n; i++)
			wrong += y[i] != (kind == YOKE_REDUCE_PROD);
		ok(!code && !wrong && arrays_free(),
		   "%s: kind %d of [%lld,%lld,%lld] over %lld, code %d, wrong %lld", isa->name,
		   kind, (long long)dims[0], (long long)dims[1], (long long)dims[2],
		   (long long)mask, code, (long long)wrong);
	}
}

int main(void)
{
	static const int64_t size[][2] = { { 4096, 512 },  { 1, 100003 }, { 100003, 1 },
					   { 1025, 1023 }, { 65537, 3 },  { 3, 65537 },
					   { 127, 16 },    { 129, 1025 } };
	static const struct {
		int64_t dims[3], mask;
	} none[] = { { { 0, 5, 7 }, 1 }, { { 0, 5, 7 }, 3 }, { { 0, 5, 7 }, 5 }, { { 0, 5, 7 }, 7 },
		     { { 5, 0, 7 }, 2 }, { { 5, 0, 7 }, 3 }, { { 5, 0, 7 }, 6 }, { { 5, 7, 0 }, 4 },
		     { { 5, 7, 0 }, 5 }, { { 5, 7, 0 }, 6 }, { { 5, 0, 7 }, 5 } };
	const struct yk_isa *list[3];
	int n = isas(list), cases = tap_cases(CASES, LONG_CASES);

	for (int i = 0; i < n; i++) {
		int wrong = 0;
		for (int c = 0; c < cases && wrong < 3; c++)
			wrong += !one_case(list[i]);
		ok(wrong == 0, "%s: %d random reductions", list[i]->name, cases);
		for (size_t s = 0; s < sizeof size / sizeof *size; s++)
			for (int64_t mask = 1; mask < 4; mask++)
				shapes(list[i], size[s][0], size[s][1], mask);
		for (size_t s = 0; s < sizeof none / sizeof *none; s++)
			empty(list[i], none[s].dims, none[s].mask);
	}
	return done();
}
