// SPDX-License-Identifier: Apache-2.0
// MAP of the CPU backend: random programs over random layouts, equal to the bit to an
// interpreter of one element; aliasing; programs it must refuse; chains of elementary
// functions within tolerance.
#include "config.h"

#include "cpu_program.h"

enum { PROGRAMS = 600, LONG_PROGRAMS = 20000 };

// Lets some outputs lie on inputs of the same dtype and layout; returns the mask.
static uint64_t random_alias(const struct yoke_map *m, struct yoke_view *out,
			     struct yoke_view *in)
{
	uint64_t mask = 0;
	for (int k = 0; k < m->nout; k++)
		for (int j = 0; j < m->nin; j++) {
			bool whole = in[j].kind == YOKE_VIEW_BUFFER &&
				     in[j].dtype == out[k].dtype && !(mask >> j & 1) &&
				     rnd() % 2;
			for (int d = 0; d < in[j].rank && whole; d++)
				whole = in[j].strides[d] != 0 || in[j].dims[d] == 1;
			if (!whole)
				continue;
			out[k] = in[j];
			mask |= (uint64_t)1 << j;
			break;
		}
	return mask;
}

static void print_program(const struct yoke_map *m)
{
	static const char *const name[] = {
#define X(n, number) [number] = #n,
		YOKE_MAP_CODES(X)
#undef X
	};
	for (int k = 0; k < m->ninsn; k++)
		diag("  %%%d = %s.%d %d %d %d", k, name[m->insn[k].op], m->insn[k].dtype,
		     m->insn[k].a, m->insn[k].b, m->insn[k].c);
}

// One random program on one table; false: something differs.
static bool program(const struct yk_isa *isa)
{
	struct yoke_view in[YOKE_MAP_MAX_INPUTS], out[YOKE_MAP_MAX_OUTPUTS];
	struct value v[YOKE_MAP_MAX_INSNS], *want[YOKE_MAP_MAX_OUTPUTS];
	struct yoke_map m = random_program((int)rnd_int(0, 5), (int)rnd_int(0, 3),
					   (int)rnd_int(0, 40));
	int64_t dims[YOKE_MAX_RANK] = { 0 }, n = 1;
	int rank = random_shape(dims, rnd() % 8 ? 3000 : 70000);
	bool good = true;

	for (int d = 0; d < rank; d++)
		n *= dims[d];
	m.nout = (uint16_t)rnd_int(1, 4);
	for (int k = 0; k < m.nin; k++)
		in[k] = random_input(m.insn[k].dtype, rank, dims);
	for (int k = 0; k < m.nout; k++) {
		m.out[k] = (uint16_t)(rnd() % 4 ? m.ninsn - 1 - rnd_int(0, m.ninsn / 4) :
						  rnd_int(0, m.ninsn - 1));
		out[k] = random_layout(m.insn[m.out[k]].dtype, rank, dims, true);
		want[k] = malloc((size_t)(n + 1) * sizeof **want);
	}
	struct yoke_op op = op_of(YOKE_OP_MAP, m.nout, out, m.nin, in);
	op.rank = (uint8_t)rank;
	memcpy(op.dims, dims, sizeof dims);
	op.map = &m;
	op.alias_mask = rnd() % 3 ? 0 : random_alias(&m, out, in);
	for (int64_t i = 0; i < n; i++) {
		interpret(&m, in, i, v);
		for (int k = 0; k < m.nout; k++)
			want[k][i] = v[m.out[k]];
	}
	int code = call(isa, &op);
	for (int k = 0; k < m.nout && !code && good; k++)
		for (int64_t i = 0; i < n && good; i++) {
			int t = out[k].dtype;
			struct value got = fetch(element(&out[k], i), t);
			if (same_value(got, want[k][i], t))
				continue;
			diag("%s: output %d dtype %d [%lld of %lld] got %.17g want %.17g "
			     "alias %llx",
			     isa->name, k, t, (long long)i, (long long)n, show(got, t),
			     show(want[k][i], t), (unsigned long long)op.alias_mask);
			good = false;
		}
	for (int k = 0; k < m.nout; k++)
		free(want[k]);
	if (code)
		diag("%s: code %d", isa->name, code);
	if (!good || code)
		print_program(&m);
	return arrays_free() && good && !code;
}

// ---- elementary functions in chains ----

static int insn(struct yoke_map *m, int op, int dtype, int a, int b)
{
	m->insn[m->ninsn] = (struct yoke_insn){ .op = (uint16_t)op,
						.dtype = (uint8_t)dtype,
						.a = (uint16_t)a,
						.b = (uint16_t)b };
	return m->ninsn++;
}

static int constant(struct yoke_map *m, int dtype, double x)
{
	m->konst[m->nconst] = bits_of((struct value){ to_dtype(x, dtype), 0 }, dtype);
	return insn(m, YOKE_MAP_CONST, dtype, m->nconst++, 0);
}

// y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), Hendrycks and Gimpel 2016
static struct yoke_map gelu(int t)
{
	struct yoke_map m = { .size = sizeof m, .nin = 1, .nout = 1 };
	int x = insn(&m, YOKE_MAP_INPUT, t, 0, 0);
	int cube = insn(&m, YOKE_MAP_MUL, t, insn(&m, YOKE_MAP_SQUARE, t, x, 0), x);
	int u = insn(&m, YOKE_MAP_MUL, t, cube, constant(&m, t, 0.044715));
	u = insn(&m, YOKE_MAP_ADD, t, u, x);
	u = insn(&m, YOKE_MAP_MUL, t, u, constant(&m, t, 0.79788456080286536));
	u = insn(&m, YOKE_MAP_TANH, t, u, 0);
	u = insn(&m, YOKE_MAP_ADD, t, u, constant(&m, t, 1));
	int half = insn(&m, YOKE_MAP_MUL, t, x, constant(&m, t, 0.5));
	m.out[0] = (uint16_t)insn(&m, YOKE_MAP_MUL, t, half, u);
	return m;
}

static void gelu_chain(const struct yk_isa *isa, int t, int64_t n, double tol,
		       bool in_place)
{
	char *x = array_new((size_t)n * yk_esize(t));
	char *y = in_place ? x : array_new((size_t)n * yk_esize(t));
	double *got = malloc((size_t)n * 8), *want = malloc((size_t)n * 8);
	struct yoke_map m = gelu(t);
	struct yoke_view in = dense(x, t, 1, &n), out = dense(y, t, 1, &n);
	struct yoke_op op = op_of(YOKE_OP_MAP, 1, &out, 1, &in);

	op.rank = 1, op.dims[0] = n, op.map = &m, op.alias_mask = in_place;
	for (int64_t i = 0; i < n; i++) {
		struct value v = { to_dtype(rnd_real(-6, 6), t), 0 };
		uint64_t u = bits_of(v, t);
		memcpy(element(&in, i), &u, yk_esize(t));
		want[i] = 0.5 * v.f *
			  (1 + tanh(0.79788456080286536 *
				    (v.f + 0.044715 * v.f * v.f * v.f)));
	}
	int code = call(isa, &op);
	for (int64_t i = 0; i < n; i++)
		got[i] = fetch(element(&out, i), t).f;
	char what[96];
	snprintf(what, sizeof what, "%s: gelu of dtype %d, %lld elements%s", isa->name, t,
		 (long long)n, in_place ? ", in place" : "");
	near(got, want, code ? 0 : (size_t)n, tol, 0.1, what);
	ok(!code && arrays_free(), "%s: runs", what);
	free(got), free(want);
}

// Box-Muller over a row of counters: against the formula in f64, and roughly normal.
static void normals(const struct yk_isa *isa, int64_t n)
{
	struct yoke_map m = { .size = sizeof m, .nin = 2, .nout = 1 };
	int t = yoke_f32, index = insn(&m, YOKE_MAP_INDEX, yoke_i64, 0, 0);
	int key = insn(&m, YOKE_MAP_INPUT, yoke_i64, 0, 0);
	int step = insn(&m, YOKE_MAP_INPUT, yoke_i64, 1, 0);
	int r = insn(&m, YOKE_MAP_RAND, yoke_i32, index, key);
	m.insn[r].c = (uint16_t)step;
	int s = insn(&m, YOKE_MAP_RAND, yoke_i32, index, step);
	m.insn[s].c = (uint16_t)key;
	int a = insn(&m, YOKE_MAP_UNIFORM, t, r, 0),
	    b = insn(&m, YOKE_MAP_UNIFORM, t, s, 0);
	m.out[0] = (uint16_t)insn(&m, YOKE_MAP_NORMAL, t, a, b);
	float *y = nans(n);
	struct yoke_view in[2] = { scalar(yoke_i64, 12345), scalar(yoke_i64, 7) },
			 out = vector(y, n);
	struct yoke_op op = op_of(YOKE_OP_MAP, 1, &out, 2, in);
	double *want = malloc((size_t)n * 8), sum = 0, squares = 0;

	op.rank = 1, op.dims[0] = n, op.map = &m;
	int code = call(isa, &op);
	for (int64_t i = 0; i < n; i++) {
		double u = (philox_word((uint64_t)i, 12345, 7) >> 8) * 0x1p-24;
		double w = (philox_word((uint64_t)i, 7, 12345) >> 8) * 0x1p-24;
		want[i] = sqrt(-2 * log(1 - u)) * cos(2 * M_PI * w);
		sum += y[i], squares += (double)y[i] * y[i];
	}
	ok(!code && fabs(sum / (double)n) < 0.02 && fabs(squares / (double)n - 1) < 0.03,
	   "%s: normals have mean %.4f, variance %.4f", isa->name, sum / (double)n,
	   squares / (double)n);
	near_rows(y, n, want, 1, n, 1e-6, 1, "normals against the formula");
	free(want);
	arrays_free();
}

// An element's bits are the same in a block of a chain and alone, where strips compute it.
static void alone(const struct yk_isa *isa, int first, int last)
{
	enum { N = 256 };
	int wrong = 0;

	for (int code = first; code <= last; code++) {
		const bool two = code >= YOKE_MAP_ADD && code <= YOKE_MAP_MAX;
		struct yoke_map m = { .size = sizeof m, .nin = 2, .nout = 1 };
		float *x = randoms(2 * N, -20, 20), *y = nans(N), *z = nans(N);
		insn(&m, YOKE_MAP_INPUT, yoke_f32, 0, 0);
		insn(&m, YOKE_MAP_INPUT, yoke_f32, 1, 0);
		m.out[0] = (uint16_t)insn(&m, code, yoke_f32, 0, two);
		for (int i = 0; i < 2 * N; i += 3) {
			uint32_t u = (uint32_t)rnd();
			memcpy(x + i, &u, sizeof u);
		}
		for (int64_t i = -1; i < N; i++) { // all together, then each
			const int64_t n = i < 0 ? N : 1, at = i < 0 ? 0 : i;
			struct yoke_view in[2] = { vector(x + at, n),
						   vector(x + N + at, n) };
			struct yoke_view out = vector((i < 0 ? y : z) + at, n);
			struct yoke_op op = op_of(YOKE_OP_MAP, 1, &out, 2, in);
			op.rank = 1, op.dims[0] = n, op.map = &m;
			wrong += call(isa, &op) != 0;
		}
		for (int i = 0; i < N; i++)
			if (memcmp(y + i, z + i, 4) && (y[i] == y[i] || z[i] == z[i])) {
				wrong++;
				diag("%s: code %d of %a %a: %a together, %a alone",
				     isa->name, code, x[i], x[N + i], y[i], z[i]);
			}
		wrong += !arrays_free();
	}
	ok(wrong == 0, "%s: codes %d to %d give the same bits alone and in a row",
	   isa->name, first, last);
}

// Outputs so large that they are written past the caches, at any alignment: by a chain; by a chain
// that reads it again, which is not; in place; of integers, which no chain takes, read again.
static void streamed(const struct yk_isa *isa, int64_t skip)
{
	const int64_t n = tap_stream_bytes() / 4 + 1000 + skip;
	const struct yk_kernel *k = isa->op[YOKE_OP_MAP];
	struct yoke_map m = { .size = sizeof m, .nin = 1, .nout = 4 };
	float *x = nans(n + skip), *y = nans(n + skip), *z = nans(n + skip);
	int32_t *w = array_new((size_t)(n + skip) * sizeof *w);
	int in = insn(&m, YOKE_MAP_INPUT, yoke_f32, 0, 0);
	int a = insn(&m, YOKE_MAP_ADD, yoke_f32, in, constant(&m, yoke_f32, 1));
	int b = insn(&m, YOKE_MAP_SQUARE, yoke_f32, a, 0);
	int d = insn(&m, YOKE_MAP_CAST, yoke_i32, a, 0);
	int c = insn(&m, YOKE_MAP_SUB, yoke_f32, b, insn(&m, YOKE_MAP_CAST, yoke_f32, d, 0));
	m.out[0] = (uint16_t)a, m.out[1] = (uint16_t)b, m.out[2] = (uint16_t)c;
	m.out[3] = (uint16_t)d;
	struct yoke_view from = vector(x + skip, n);
	struct yoke_view out[4] = { vector(y + skip, n), vector(z + skip, n), from,
				    dense(w + skip, yoke_i32, 1, &n) };
	struct yoke_op op = op_of(YOKE_OP_MAP, 4, out, 1, &from);
	int64_t wrong = 0;

	op.rank = 1, op.dims[0] = n, op.map = &m, op.alias_mask = 1;
	for (int64_t i = 0; i < n; i++)
		x[skip + i] = (float)(i % 1021);
	int code = k->can(&op) ? yk_kernel_once(k, &op, 0) : YOKE_EUNSUPPORTED;
	for (int64_t i = 0; i < n && !code; i++) {
		float v = (float)(i % 1021) + 1;
		wrong += y[skip + i] != v || z[skip + i] != v * v ||
			 x[skip + i] != v * v - v || w[skip + i] != (int32_t)v;
	}
	ok(!code && !wrong && arrays_free(),
	   "%s: outputs of %lld KiB, %lld elements off: %lld wrong", isa->name,
	   (long long)(n >> 8), (long long)skip, (long long)wrong);
}

static void refusals(const struct yk_isa *isa)
{
	const struct yk_kernel *k = isa->op[YOKE_OP_MAP];
	float *x = nans(4);
	struct yoke_view in = vector(x, 4), out = vector(x, 4);
	struct yoke_op op = op_of(YOKE_OP_MAP, 1, &out, 1, &in);
	struct yoke_map good = gelu(yoke_f32), m = good;

	op.rank = 1, op.dims[0] = 4, op.map = &m;
	bool right = k->can(&op) == 1;
	m.insn[1].op = 999;
	right &= !k->can(&op);
	m = good, m.insn[1].op = YOKE_MAP_AND;
	right &= !k->can(&op);
	m = good, m.insn[1].dtype = yoke_i32;
	right &= !k->can(&op);
	m = good, m.insn[2].b = 2; // itself
	right &= !k->can(&op);
	m = good, m.insn[0].a = 1; // no such input
	right &= !k->can(&op);
	m = good, m.out[0] = 60;
	right &= !k->can(&op);
	m = good, out.dtype = yoke_f64;
	right &= !k->can(&op);
	ok(right, "%s: refuses programs it cannot run", isa->name);
	arrays_free();
}

int main(void)
{
	static const int64_t sizes[] = { 1, 7, 63, 64, 65, 1023, 1024, 1025, 100003 };
	const struct yk_isa *list[3];
	int n = isas(list), programs = tap_cases(PROGRAMS, LONG_PROGRAMS);

	for (int i = 0; i < n; i++) {
		int wrong = 0;
		for (int p = 0; p < programs && wrong < 3; p++)
			wrong += !program(list[i]);
		ok(wrong == 0, "%s: %d random programs", list[i]->name, programs);
		for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
			gelu_chain(list[i], yoke_f32, sizes[s], 2e-6, s % 2);
			gelu_chain(list[i], yoke_f64, sizes[s], 1e-14, !(s % 2));
			gelu_chain(list[i], yoke_f16, sizes[s], 3e-2, s % 2);
			gelu_chain(list[i], yoke_bf16, sizes[s], 2e-1, !(s % 2));
		}
		normals(list[i], 50021);
		alone(list[i], YOKE_MAP_ADD, YOKE_MAP_MAX);
		alone(list[i], YOKE_MAP_NEG, YOKE_MAP_ERF);
		streamed(list[i], 0);
		streamed(list[i], 5);
		refusals(list[i]);
	}
	return done();
}
