// SPDX-License-Identifier: Apache-2.0
// CONTRACT with a map behind it, on the CPU backend: random exact programs over the product
// of a plain contraction, by the interpreter of one element, to the bit; elementary functions
// by a MAP behind a CONTRACT; what must be refused.
#include "config.h"

#include "cpu_levels.h"
#include "cpu_program.h"

enum { PROGRAMS = 130, LONG_PROGRAMS = 8000 };

struct shape {
	int rank;
	int64_t a[YOKE_MAX_RANK], b[YOKE_MAX_RANK], c[YOKE_MAX_RANK];
};

// m, n, k at the edges of tiles, and what makes each way of cutting work; up to two
// leading axes.
static struct shape random_matrices(void)
{
	static const int64_t size[] = { 1,  2,  3,  4,  5,  7,  8,  11, 12,  13,
					16, 17, 31, 32, 33, 49, 64, 65, 129, 263 };
	static const int64_t depth[] = { 0, 1, 2, 5, 16, 33, 64, 100, 257, 513, 770 };
	struct shape s = { .rank = (int)rnd_int(2, 4) };
	int r = s.rank;

	for (int d = 0; d < r - 2; d++)
		s.a[d] = s.b[d] = s.c[d] = rnd_int(1, 4);
	s.a[r - 2] = s.c[r - 2] = size[rnd() % (sizeof size / sizeof *size)];
	s.b[r - 1] = s.c[r - 1] = size[rnd() % (sizeof size / sizeof *size)];
	s.a[r - 1] = s.b[r - 2] = depth[rnd() % (sizeof depth / sizeof *depth)];
	return s;
}

// Values in (-1, 1): rows or columns dense, the same for all leading indices now and then.
static struct yoke_view factor(int dtype, int rank, const int64_t *dims)
{
	int64_t strides[YOKE_MAX_RANK], n = dims[rank - 1] * dims[rank - 2];
	bool columns = rnd() % 2, same = rnd() % 4 == 0;
	char *p;

	strides[rank - 1] = columns ? dims[rank - 2] : 1;
	strides[rank - 2] = columns ? 1 : dims[rank - 1];
	for (int d = rank - 3; d >= 0; d--) {
		strides[d] = same ? 0 : n;
		n *= same ? 1 : dims[d];
	}
	p = array_new((size_t)n * yk_esize(dtype));
	for (int64_t i = 0; i < n; i++) {
		struct value v = { to_dtype(rnd_real(-1, 1), dtype), 0 };
		uint64_t u = bits_of(v, dtype);
		memcpy(p + (size_t)i * yk_esize(dtype), &u, yk_esize(dtype));
	}
	return strided(p, dtype, rank, dims, strides);
}

static struct yoke_op contraction(int dtype, uint32_t nout, const struct yoke_view *out,
				  uint32_t nin, const struct yoke_view *in,
				  const struct yoke_map *m)
{
	struct yoke_op op = op_of(YOKE_OP_CONTRACT, nout, out, nin, in);

	op.map = m;
	op.nattr = 1;
	op.attr[0].i = dtype;
	return op;
}

// The product by itself, row major.
static struct yoke_view product_of(const struct yk_isa *isa, int dtype,
				   const struct shape *s, const struct yoke_view *in)
{
	int64_t n = 1;
	for (int d = 0; d < s->rank; d++)
		n *= s->c[d];
	struct yoke_view c =
		dense(array_new((size_t)n * yk_esize(dtype)), dtype, s->rank, s->c);
	struct yoke_op op = contraction(dtype, 1, &c, 2, in, NULL);

	int code = run_once(isa->op[YOKE_OP_CONTRACT], &op, 0);
	if (code < 0)
		ok(false, "%s: the product alone: code %d", isa->name, code);
	return c;
}

// A random program whose input 0 has this dtype.
static struct yoke_map program_for(int dtype)
{
	struct yoke_map m;

	do
		m = random_program((int)rnd_int(1, 4), (int)rnd_int(0, 3),
				   (int)rnd_int(0, 30));
	while (m.insn[0].dtype != dtype);
	return m;
}

// One random program behind one random product; false: something differs.
static bool program(const struct yk_isa *isa, int dtype)
{
	struct yoke_view in[YOKE_MAP_MAX_INPUTS + 1], out[YOKE_MAP_MAX_OUTPUTS];
	struct yoke_view seen[YOKE_MAP_MAX_INPUTS]; // by the program
	struct value v[YOKE_MAP_MAX_INSNS], *want[YOKE_MAP_MAX_OUTPUTS];
	struct yoke_map m = program_for(dtype);
	struct shape s = random_matrices();
	int64_t n = 1;
	bool good = true;

	for (int d = 0; d < s.rank; d++)
		n *= s.c[d];
	in[0] = factor(dtype, s.rank, s.a);
	in[1] = factor(dtype, s.rank, s.b);
	seen[0] = product_of(isa, dtype, &s, in);
	for (int k = 1; k < m.nin; k++)
		in[k + 1] = seen[k] = random_input(m.insn[k].dtype, s.rank, s.c);
	m.nout = (uint16_t)rnd_int(1, 4);
	for (int k = 0; k < m.nout; k++) {
		m.out[k] = (uint16_t)(rnd() % 4 ? m.ninsn - 1 - rnd_int(0, m.ninsn / 4) :
						  rnd_int(0, m.ninsn - 1));
		out[k] = random_layout(m.insn[m.out[k]].dtype, s.rank, s.c, true);
		want[k] = malloc((size_t)(n + 1) * sizeof **want);
	}
	for (int64_t i = 0; i < n; i++) {
		interpret(&m, seen, i, v);
		for (int k = 0; k < m.nout; k++)
			want[k][i] = v[m.out[k]];
	}
	struct yoke_op op = contraction(dtype, m.nout, out, (uint32_t)m.nin + 1, in, &m);
	int code = call(isa, &op);
	for (int k = 0; k < m.nout && !code && good; k++)
		for (int64_t i = 0; i < n && good; i++) {
			int t = out[k].dtype;
			struct value got = fetch(element(&out[k], i), t);
			if (same_value(got, want[k][i], t))
				continue;
			diag("%s: output %d dtype %d [%lld of %lld] got %.17g want %.17g",
			     isa->name, k, t, (long long)i, (long long)n, show(got, t),
			     show(want[k][i], t));
			good = false;
		}
	for (int k = 0; k < m.nout; k++)
		free(want[k]);
	if (code || !good)
		diag("%s dtype %d: code %d, rank %d, m %lld n %lld k %lld", isa->name,
		     dtype, code, s.rank, (long long)s.c[s.rank - 2],
		     (long long)s.c[s.rank - 1], (long long)s.a[s.rank - 1]);
	return arrays_free() && good && !code;
}

// y = h sigmoid(h), h = product + bias; z = h + residual, which z may overwrite
static struct yoke_map bias_silu(int t)
{
	struct yoke_map m = { .size = sizeof m, .nin = 3, .nout = 2, .ninsn = 7 };
	static const uint16_t code[7][3] = {
		{ YOKE_MAP_INPUT, 0, 0 },   { YOKE_MAP_INPUT, 1, 0 },
		{ YOKE_MAP_INPUT, 2, 0 },   { YOKE_MAP_ADD, 0, 1 },
		{ YOKE_MAP_SIGMOID, 3, 0 }, { YOKE_MAP_MUL, 3, 4 },
		{ YOKE_MAP_ADD, 3, 2 },
	};

	for (int k = 0; k < m.ninsn; k++)
		m.insn[k] = (struct yoke_insn){ .op = code[k][0],
						.dtype = (uint8_t)t,
						.a = code[k][1],
						.b = code[k][2] };
	m.out[0] = 5;
	m.out[1] = 6;
	return m;
}

// The epilogue against a launch of its own, with the residual overwritten in both.
static void as_two_launches(const struct yk_isa *isa, int dtype, int64_t rows,
			    int64_t cols, int64_t depth)
{
	struct shape s = {
		.rank = 2, .a = { rows, depth }, .b = { depth, cols }, .c = { rows, cols }
	};
	size_t bytes = (size_t)(rows * cols) * yk_esize(dtype);
	struct yoke_map m = bias_silu(dtype);
	struct yoke_view in[4], seen[3], out[2][2];
	bool good = true;

	in[0] = factor(dtype, 2, s.a);
	in[1] = factor(dtype, 2, s.b);
	in[2] = factor(dtype, 2, (int64_t[]){ 1, cols });
	in[2].dims[0] = rows;
	in[2].strides[0] = 0;
	in[3] = dense(array_new(bytes), dtype, 2, s.c);
	for (int i = 0; i < 2; i++) {
		out[i][0] = dense(array_new(bytes), dtype, 2, s.c);
		out[i][1] = dense(array_new(bytes), dtype, 2, s.c);
	}
	for (int64_t i = 0; i < rows * cols; i++) {
		struct value v = { to_dtype(rnd_real(-1, 1), dtype), 0 };
		uint64_t u = bits_of(v, dtype);
		memcpy(element(&in[3], i), &u, yk_esize(dtype));
	}
	memcpy(yk_ptr(&out[0][1]), yk_ptr(&in[3]), bytes);
	memcpy(yk_ptr(&out[1][1]), yk_ptr(&in[3]), bytes);
	// two launches
	seen[0] = product_of(isa, dtype, &s, in);
	seen[1] = in[2];
	seen[2] = out[0][1];
	struct yoke_op op = op_of(YOKE_OP_MAP, 2, out[0], 3, seen);
	op.rank = 2;
	memcpy(op.dims, s.c, sizeof op.dims);
	op.map = &m;
	op.alias_mask = 4;
	good &= call(isa, &op) == 0;
	// one
	in[3] = out[1][1];
	op = contraction(dtype, 2, out[1], 4, in, &m);
	op.alias_mask = 8;
	good &= call(isa, &op) == 0;
	for (int k = 0; k < 2; k++)
		good &= !memcmp(yk_ptr(&out[0][k]), yk_ptr(&out[1][k]), bytes);
	ok(good && arrays_free(),
	   "%s dtype %d: %lldx%lldx%lld with bias and silu, as two launches", isa->name,
	   dtype, (long long)rows, (long long)cols, (long long)depth);
}

static void refusals(const struct yk_isa *isa)
{
	const struct yk_kernel *k = isa->op[YOKE_OP_CONTRACT];
	int64_t square[2] = { 8, 8 };
	struct yoke_map m = bias_silu(yoke_f32), bad = m;
	struct yoke_view in[4], out[2], wrong;
	bool right;

	for (int i = 0; i < 4; i++)
		in[i] = factor(yoke_f32, 2, square);
	for (int i = 0; i < 2; i++)
		out[i] = dense(array_new(256), yoke_f32, 2, square);
	struct yoke_op good = contraction(yoke_f32, 2, out, 4, in, &m), op = good;
	right = k->can(&op) == 1;
	op.attr[0].i = yoke_f64; // a product of another dtype
	right &= !k->can(&op);
	op = good, op.nin = 3; // an input too few
	right &= !k->can(&op);
	op = good, op.nout = 1;
	right &= !k->can(&op);
	op = good, op.map = NULL; // what is left over
	right &= !k->can(&op);
	op = good, op.map = &bad;
	bad.insn[4].op = 999;
	right &= !k->can(&op);
	bad = m, bad.insn[5].dtype = yoke_f64;
	right &= !k->can(&op);
	op = good, wrong = in[3];
	in[3].dims[0] = 7;
	right &= !k->can(&op);
	in[3] = wrong, wrong = out[1];
	out[1].dims[1] = 7;
	right &= !k->can(&op);
	out[1] = wrong;
	for (int i = 0; i < 4; i++)
		in[i].dtype = yoke_i32;
	op.attr[0].i = yoke_i32;
	right &= !k->can(&op);
	ok(right && arrays_free(), "%s: refuses what does not fit", isa->name);
}

int main(void)
{
	static const int dtypes[] = { yoke_f32, yoke_f64, yoke_f16, yoke_bf16 };
	const struct yk_isa *list[YK_ISA_LEVELS + 1];
	int n = levels(list), programs = tap_cases(PROGRAMS, LONG_PROGRAMS);

	tap_seed();
	for (int i = 0; i < n; i++) {
		for (int d = 0; d < 4; d++) {
			int wrong = 0, t = dtypes[d];
			if (is_repeated(list[i], t))
				continue;
			for (int p = 0; p < programs && wrong < 3; p++)
				wrong += !program(list[i], t);
			ok(wrong == 0, "%s dtype %d: %d random programs", list[i]->name,
			   t, programs);
			as_two_launches(list[i], t, 1, 300, 520);
			as_two_launches(list[i], t, 7, 600, 100);
			as_two_launches(list[i], t, 300, 5, 70);
			as_two_launches(list[i], t, 140, 530, 600);
			as_two_launches(list[i], t, 257, 1100, 30);
		}
		refusals(list[i]);
	}
	return done();
}
