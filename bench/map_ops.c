// SPDX-License-Identifier: Apache-2.0
// The ops that bench/map measures: maps, reductions, and memory-bound named ops.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "kernel/formula.h"
#include "map.h"

enum { COLS = 1024, CLASSES = 8192 };

// ---- programs ----

static int insn(struct yoke_map *m, int op, int a, int b)
{
	m->insn[m->ninsn] = (struct yoke_insn){
		.op = (uint16_t)op, .dtype = yoke_f32, .a = (uint16_t)a, .b = (uint16_t)b
	};
	m->out[0] = m->ninsn;
	return m->ninsn++;
}

static int constant(struct yoke_map *m, float x)
{
	memcpy(&m->konst[m->nconst], &x, sizeof x);
	return insn(m, YOKE_MAP_CONST, m->nconst++, 0);
}

static struct yoke_map program(int nin)
{
	struct yoke_map m = { .size = sizeof m, .nin = (uint16_t)nin, .nout = 1 };
	for (int k = 0; k < nin; k++)
		insn(&m, YOKE_MAP_INPUT, k, 0);
	return m;
}

static struct yoke_map simple(int nin, int op)
{
	struct yoke_map m = program(nin);
	if (op)
		insn(&m, op, 0, nin - 1);
	return m;
}

// x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3)
static struct yoke_map gelu(void)
{
	struct yoke_map m = program(1);
	int u = insn(&m, YOKE_MAP_MUL, insn(&m, YOKE_MAP_SQUARE, 0, 0), 0);
	u = insn(&m, YOKE_MAP_ADD, insn(&m, YOKE_MAP_MUL, u, constant(&m, 0.044715f)), 0);
	u = insn(&m, YOKE_MAP_TANH, insn(&m, YOKE_MAP_MUL, u, constant(&m, 0.797884561f)),
		 0);
	u = insn(&m, YOKE_MAP_ADD, u, constant(&m, 1));
	insn(&m, YOKE_MAP_MUL, insn(&m, YOKE_MAP_MUL, 0, constant(&m, 0.5f)), u);
	return m;
}

// g (1/2 (1 + t) + x/2 (1 - t^2) sqrt(2/pi) (1 + 3 * 0.044715 x^2)), t = tanh(u)
static struct yoke_map gelu_backward(void)
{
	struct yoke_map m = program(2);
	int one = constant(&m, 1), half = constant(&m, 0.5f), c = constant(&m, 0.044715f);
	int s = insn(&m, YOKE_MAP_SQUARE, 0, 0), r = constant(&m, 0.797884561f);
	int u = insn(&m, YOKE_MAP_ADD,
		     insn(&m, YOKE_MAP_MUL, insn(&m, YOKE_MAP_MUL, s, 0), c), 0);
	int t = insn(&m, YOKE_MAP_TANH, insn(&m, YOKE_MAP_MUL, u, r), 0);
	int d = insn(&m, YOKE_MAP_MUL, s, constant(&m, 0.134145f));
	d = insn(&m, YOKE_MAP_MUL, insn(&m, YOKE_MAP_ADD, d, one), r);
	d = insn(&m, YOKE_MAP_MUL, d,
		 insn(&m, YOKE_MAP_SUB, one, insn(&m, YOKE_MAP_SQUARE, t, 0)));
	d = insn(&m, YOKE_MAP_MUL, d, insn(&m, YOKE_MAP_MUL, 0, half));
	t = insn(&m, YOKE_MAP_MUL, insn(&m, YOKE_MAP_ADD, t, one), half);
	insn(&m, YOKE_MAP_MUL, 1, insn(&m, YOKE_MAP_ADD, t, d));
	return m;
}

// x [u >= p] / (1 - p)
static struct yoke_map dropout(void)
{
	struct yoke_map m = program(1);
	int index = insn(&m, YOKE_MAP_INDEX, 0, 0), key = constant(&m, 0),
	    step = constant(&m, 0);
	int bits = insn(&m, YOKE_MAP_RAND, index, key),
	    u = insn(&m, YOKE_MAP_UNIFORM, bits, 0);
	int keep = insn(&m, YOKE_MAP_GE, u, constant(&m, 0.1f));
	int y = insn(&m, YOKE_MAP_MUL, 0, constant(&m, 1 / 0.9f)), zero = constant(&m, 0);
	insn(&m, YOKE_MAP_SELECT, keep, y);
	m.insn[m.out[0]].c = (uint16_t)zero;
	m.insn[bits].c = (uint16_t)step, m.insn[bits].dtype = yoke_i32,
	m.insn[keep].dtype = yoke_bool;
	m.insn[index].dtype = m.insn[key].dtype = m.insn[step].dtype = yoke_i64;
	return m;
}

// 2 x [x > 0], the gradient of relu
static struct yoke_map relu_backward(void)
{
	struct yoke_map m = program(2);
	int zero = constant(&m, 0), test = insn(&m, YOKE_MAP_GT, 0, zero);
	m.insn[test].dtype = yoke_bool;
	insn(&m, YOKE_MAP_SELECT, test, 1);
	m.insn[m.out[0]].c = (uint16_t)zero;
	return m;
}

static struct yoke_map of_dtype(struct yoke_map m, int dtype)
{
	for (int k = 0; k < m.ninsn; k++)
		m.insn[k].dtype = (uint8_t)dtype;
	return m;
}

// ---- operands ----

static struct yoke_view view(int array, int dtype, int rank, const int64_t *dims)
{
	struct yoke_view v = { .segment = &yk_bench_array[array],
			       .kind = YOKE_VIEW_BUFFER,
			       .dtype = (uint8_t)dtype,
			       .rank = (uint8_t)rank,
			       .align = 64 };
	int64_t n = 1;
	for (int d = rank - 1; d >= 0; d--) {
		v.dims[d] = dims[d], v.strides[d] = n;
		n *= dims[d];
	}
	return v;
}

static struct yoke_view matrix(int array, int64_t elements, int64_t cols)
{
	return view(array, yoke_f32, 2, (int64_t[]){ elements / cols, cols });
}

static struct yoke_view vector(int array, int64_t n)
{
	return view(array, yoke_f32, 1, &n);
}

static struct yoke_view number(float x)
{
	struct yoke_view v = { .kind = YOKE_VIEW_SCALAR, .dtype = yoke_f32 };
	memcpy(&v.offset, &x, sizeof x);
	return v;
}

// ---- the list ----

struct list {
	struct yk_bench_op *op;
	int count, room;
};

// arrays: how many arrays' bytes the op moves.
static struct yk_bench_op *append(struct list *l, const char *name, int code,
				  enum yk_limit fit, double arrays, int nin, int nout)
{
	struct yk_bench_op *b = &l->op[l->count];
	if (l->count == l->room)
		abort();
	l->count++;
	*b = (struct yk_bench_op){ .name = name, .fit = fit };
	b->bytes = arrays * (double)yk_bench_count * 4;
	b->op = (struct yoke_op){ .size = sizeof b->op,
				  .code = (uint16_t)code,
				  .rank = 2,
				  .nin = (uint32_t)nin,
				  .nout = (uint32_t)nout,
				  .in = b->in,
				  .out = b->out,
				  .map = &b->map };
	b->op.dims[0] = yk_bench_count / COLS;
	b->op.dims[1] = COLS;
	return b;
}

// From arrays 0 and 1 to array `to`.
static void map(struct list *l, const char *name, struct yoke_map m, int to)
{
	const int nin = m.nin, dtype = m.insn[m.out[0]].dtype;
	const enum yk_limit fit = to == 0 ? SCALE : nin == 2 ? TRIAD : COPY;
	const int64_t size = (int64_t)yk_esize(dtype);
	const int64_t n = yk_bench_count * 4 / size;
	const int64_t dims[2] = { n / COLS, COLS };
	struct yk_bench_op *b = append(l, name, YOKE_OP_MAP, fit, nin + 1, nin, 1);
	b->map = m;
	b->op.dims[0] = dims[0];
	for (int k = 0; k < nin; k++)
		b->in[k] = view(k, dtype, 2, dims);
	b->out[0] = view(to, dtype, 2, dims);
	b->op.alias_mask = to == 0;
}

// Casts array 0 of one dtype to array 2 of another.
static void cast(struct list *l, const char *name, int from, int to)
{
	const int64_t size =
		(int64_t)(yk_esize(from) > yk_esize(to) ? yk_esize(from) : yk_esize(to));
	const int64_t n = yk_bench_count * 4 / size, dims[2] = { n / COLS, COLS };
	const double arrays = (double)(yk_esize(from) + yk_esize(to)) / (double)size;
	struct yk_bench_op *b = append(l, name, YOKE_OP_MAP, COPY, arrays, 1, 1);
	b->map = simple(1, YOKE_MAP_CAST);
	b->map.insn[0].dtype = (uint8_t)from;
	b->map.insn[1].dtype = (uint8_t)to;
	b->op.dims[0] = dims[0];
	b->in[0] = view(0, from, 2, dims);
	b->out[0] = view(2, to, 2, dims);
}

// Array 0 and one row of array 1 to array 2.
static void add_row(struct list *l)
{
	map(l, "add a row", simple(2, YOKE_MAP_ADD), 2);
	struct yk_bench_op *b = &l->op[l->count - 1];
	b->in[1].strides[0] = 0;
	b->fit = COPY;
	b->bytes = 2 * (double)yk_bench_count * 4;
}

// Array 0 to array 2; transposed: read along the columns of a square or nearly square matrix.
static void move(struct list *l, const char *name, bool transposed)
{
	const int64_t n = yk_bench_count;
	int64_t cols = 1;
	while (cols * cols < n)
		cols *= 2;
	struct yk_bench_op *b = append(l, name, YOKE_OP_MOVE, COPY, 2, 1, 1);
	b->op.dims[0] = n / cols, b->op.dims[1] = cols;
	b->in[0] = b->out[0] = matrix(0, n / cols * cols, cols);
	b->out[0].segment = &yk_bench_array[2];
	if (transposed)
		b->in[0].strides[0] = 1, b->in[0].strides[1] = n / cols;
}

// Over arrays 0 and 1 as one array of 2 * count elements.
static void reduce(struct list *l, const char *name, struct yoke_map m, int kind,
		   int64_t mask)
{
	struct yk_bench_op *b = append(l, name, YOKE_OP_REDUCE, READ, 2, 1, 1);
	const int64_t rows = 2 * yk_bench_count / COLS;
	b->map = m;
	b->op.dims[0] = rows;
	b->in[0] = matrix(0, 2 * yk_bench_count, COLS);
	b->out[0] = view(2, yoke_f32, 2,
			 (int64_t[]){ mask & 1 ? 1 : rows, mask & 2 ? 1 : COLS });
	b->op.nattr = 2;
	b->op.attr[0].i = kind;
	b->op.attr[1].i = mask;
}

static void rows(struct list *l)
{
	const int64_t n = yk_bench_count;
	struct yk_bench_op *b;

	for (int k = 0; k < 2; k++) {
		b = append(l, k ? "log softmax" : "softmax", YOKE_OP_SOFTMAX, COPY, 2, 1,
			   1);
		b->in[0] = matrix(0, n, COLS), b->out[0] = matrix(2, n, COLS);
		b->op.attr[0].i = k;
		b = append(l, k ? "log softmax back" : "softmax back",
			   YOKE_OP_SOFTMAX_BACKWARD, TRIAD, 3, 2, 1);
		b->in[0] = matrix(0, n, COLS), b->in[1] = matrix(1, n, COLS);
		b->out[0] = matrix(2, n, COLS);
		b->op.attr[0].i = k;
	}
	b = append(l, "layer norm", YOKE_OP_LAYER_NORM, COPY, 2, 3, 3);
	b->in[0] = matrix(0, n, COLS), b->out[0] = matrix(2, n, COLS);
	b->in[1] = vector(1, COLS), b->in[2] = vector(1, COLS);
	b->out[1] = vector(3, n / COLS), b->out[2] = vector(3, n / COLS);
	b->op.attr[0].f = 1e-5;
	b = append(l, "rms norm", YOKE_OP_RMS_NORM, COPY, 2, 2, 2);
	b->in[0] = matrix(0, n, COLS), b->out[0] = matrix(2, n, COLS);
	b->in[1] = vector(1, COLS), b->out[1] = vector(3, n / COLS);
	b->op.attr[0].f = 1e-5;
	b = append(l, "layer norm back", YOKE_OP_LAYER_NORM_BACKWARD, TRIAD, 3, 5, 3);
	b->in[0] = matrix(0, n, COLS), b->in[4] = matrix(1, n, COLS);
	b->in[1] = vector(3, COLS), b->in[2] = vector(3, n / COLS);
	b->in[3] = vector(3, n / COLS);
	b->out[0] = matrix(2, n, COLS), b->out[1] = vector(3, COLS);
	b->out[2] = vector(3, COLS);
	b = append(l, "rms norm back", YOKE_OP_RMS_NORM_BACKWARD, TRIAD, 3, 4, 2);
	b->in[0] = matrix(0, n, COLS), b->in[3] = matrix(1, n, COLS);
	b->in[1] = vector(3, COLS), b->in[2] = vector(3, n / COLS);
	b->out[0] = matrix(2, n, COLS), b->out[1] = vector(3, COLS);
}

static void losses(struct list *l, struct yk_segment *ids)
{
	const int64_t n = yk_bench_count / CLASSES;
	struct yk_bench_op *b;

	b = append(l, "cross entropy", YOKE_OP_CROSS_ENTROPY, READ, 1, 2, 2);
	b->in[0] = matrix(0, n * CLASSES, CLASSES);
	b->in[1] = view(0, yoke_i32, 1, &n), b->in[1].segment = ids;
	b->out[0] = view(3, yoke_f32, 0, NULL), b->out[1] = vector(3, n);
	b->op.attr[0].i = -1;
	b = append(l, "cross entropy back", YOKE_OP_CROSS_ENTROPY_BACKWARD, COPY, 2, 4, 1);
	b->in[0] = matrix(0, n * CLASSES, CLASSES);
	b->in[1] = view(0, yoke_i32, 1, &n), b->in[1].segment = ids;
	b->in[2] = vector(3, n), b->in[3] = number(1);
	b->out[0] = matrix(2, n * CLASSES, CLASSES);
	b->op.attr[0].i = -1;
}

// A formula over lists of one tensor; the results replace the lists named in `results`.
static void step(struct list *l, enum yk_formula_id id, const double *constant, const int *over,
		 enum yk_limit fit, double arrays)
{
	const struct yk_formula *f = &yk_formulas[id];
	const int lists = yk_formula_count(f->lists), numbers = yk_formula_count(f->numbers);
	const bool reduces = id == YK_FORMULA_SQUARE;
	const int64_t n = reduces ? 2 * yk_bench_count : yk_bench_count;
	struct yk_bench_op *b = append(l, f->name, reduces ? YOKE_OP_LIST_REDUCE : YOKE_OP_LIST_MAP,
				       fit, arrays, lists + numbers, yk_formula_count(f->results));
	static const uint8_t f32[8] = { yoke_f32, yoke_f32, yoke_f32, yoke_f32,
					yoke_f32, yoke_f32, yoke_f32, yoke_f32 };
	if (yk_formula_map(f, yoke_f32, f32, constant, &b->map) < 0)
		abort();
	b->op.list = 1, b->op.lists_in = (uint8_t)lists;
	b->op.nattr = 2, b->op.attr[0].i = YOKE_REDUCE_SUM;
	for (int k = 0; k < lists; k++)
		b->in[k] = vector(k, n);
	for (int k = 0; k < numbers; k++)
		b->in[lists + k] = number(k ? 0.5 : 1e-6);
	if (reduces)
		b->out[0] = view(3, yoke_f32, 0, NULL);
	for (uint32_t k = 0; k < b->op.nout && !reduces; k++) {
		b->out[k] = b->in[over[k]];
		b->op.alias_mask |= 1u << over[k];
		b->op.lists_out++;
	}
}

static void steps(struct list *l)
{
	step(l, YK_FORMULA_SQUARE, NULL, NULL, READ, 2);
	step(l, YK_FORMULA_MOMENTUM, (double[]){ 0.1, 0.9, 0, 0 }, (int[]){ 0, 2 }, TRIAD, 5);
	step(l, YK_FORMULA_ADAMW, (double[]){ 0.9, 0.999, 1e-8, 0.1 }, (int[]){ 0, 2, 3 }, STEP, 7);
}

int yk_bench_ops(struct yk_bench_op *to, int room)
{
	static struct yk_segment ids;
	struct list l = { .op = to, .room = room };

	ids.bytes = (uint64_t)(yk_bench_count / CLASSES + 1) * 4;
	ids.base = calloc(1, ids.bytes);
	if (!ids.base)
		abort();
	map(&l, "add", simple(2, YOKE_MAP_ADD), 2);
	map(&l, "add in place", simple(1, YOKE_MAP_ADD), 0);
	map(&l, "exp", simple(1, YOKE_MAP_EXP), 2);
	map(&l, "log", simple(1, YOKE_MAP_LOG), 2);
	map(&l, "tanh", simple(1, YOKE_MAP_TANH), 2);
	map(&l, "erf", simple(1, YOKE_MAP_ERF), 2);
	map(&l, "gelu", gelu(), 2);
	map(&l, "gelu back", gelu_backward(), 2);
	map(&l, "relu back", relu_backward(), 2);
	map(&l, "dropout", dropout(), 2);
	map(&l, "add bf16", of_dtype(simple(2, YOKE_MAP_ADD), yoke_bf16), 2);
	map(&l, "add f16", of_dtype(simple(2, YOKE_MAP_ADD), yoke_f16), 2);
	add_row(&l);
	cast(&l, "cast f32 to f16", yoke_f32, yoke_f16);
	cast(&l, "cast f32 to bf16", yoke_f32, yoke_bf16);
	cast(&l, "cast bf16 to f32", yoke_bf16, yoke_f32);
	cast(&l, "cast i32 to f32", yoke_i32, yoke_f32);
	move(&l, "copy", false);
	move(&l, "transpose", true);
	reduce(&l, "sum rows", simple(1, 0), YOKE_REDUCE_SUM, 2);
	reduce(&l, "sum columns", simple(1, 0), YOKE_REDUCE_SUM, 1);
	reduce(&l, "sum all", simple(1, 0), YOKE_REDUCE_SUM, 3);
	reduce(&l, "max rows", simple(1, 0), YOKE_REDUCE_MAX, 2);
	reduce(&l, "max columns", simple(1, 0), YOKE_REDUCE_MAX, 1);
	reduce(&l, "sum of squares", simple(1, YOKE_MAP_SQUARE), YOKE_REDUCE_SUM, 3);
	rows(&l);
	losses(&l, &ids);
	steps(&l);
	return l.count;
}
