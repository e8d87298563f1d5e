// SPDX-License-Identifier: Apache-2.0
// Random programs of the public API for tests/random.c: statements over slots. The shape and
// state of each slot are tracked, so that every program is valid.
#ifndef YK_RANDOM_PROGRAM_H
#define YK_RANDOM_PROGRAM_H

#include "random_interp.h"

enum { SLOTS = 256, STATEMENTS = 256 };
// Statements that are no operations.
#define STATEMENTS_ONLY(X) \
	X(FROM, from) \
	X(NEW_SCALAR, scalar) X(PUT, put) X(ASSIGN, assign) X(KEEP, keep) X(FREE, free) \
		X(LIFT, lift) X(CARRY_OVER, carry) X(READ, read) X(EVAL, eval) \
			X(SET_SCALAR, scalar_set) X(SCOPE, scope) \
				X(SCOPE_END, scope_end)
enum { LAST_OP = OPS_END - 1, STATEMENTS_ONLY(NUMBER) };

enum kind { VARIABLE, CARRY, SCALAR, LITERAL, TEMPORARY };
enum state { MATERIAL, PENDING, DEAD };

struct slot {
	int kind, dtype, rank, state, depth; // depth: of the scope that owns it
	bool kept, held;                     // held: to the end of the program
	bool released;                          // an evaluation computed it, and kept no bytes
	// slots from which it, or a variable's version, is computed
	uint64_t of[SLOTS / 64 + 1];
	int64_t dims[YOKE_MAX_RANK], n;
};

struct stmt {
	int op, out, nin, in[4];
	int64_t a[16];
	double x;
};

struct program {
	uint64_t seed;
	int slots, stmts, depth;
	bool wild,
		scalars_used; // wild: data with infinities and NaN; a scalar is pending
	int64_t base[4], largest; // sizes of axes; elements of a tensor
	struct slot slot[SLOTS];
	struct stmt stmt[STATEMENTS];
};

// ---- writing a program ----

static bool one_in(int n)
{
	return rnd_int(1, n) == 1;
}

static int add_slot(struct program *p, int kind, int dtype, int rank, const int64_t *dims)
{
	struct slot *s = &p->slot[p->slots];
	*s = (struct slot){
		.kind = kind, .dtype = dtype, .rank = rank, .n = 1, .depth = p->depth
	};
	for (int i = 0; i < rank; i++)
		s->n *= s->dims[i] = dims[i];
	return p->slots++;
}

static struct stmt *add_stmt(struct program *p, int op, int nin, int a, int b, int c)
{
	struct stmt *s = &p->stmt[p->stmts++];
	*s = (struct stmt){ .op = op, .out = -1, .nin = nin, .in = { a, b, c } };
	for (int i = 0; i < nin && op < OPS_END; i++)
		p->scalars_used |= p->slot[s->in[i]].kind == SCALAR;
	return s;
}

static void depends_on(uint64_t *of, const struct program *p, int k)
{
	for (int i = 0; i <= SLOTS / 64; i++)
		of[i] |= p->slot[k].of[i];
	if (p->slot[k].kind == TEMPORARY)
		of[k / 64] |= 1ull << k % 64;
}

// A statement and what its result depends on.
static struct stmt *finish_op(struct program *p, struct stmt *s)
{
	for (int i = 0; i < s->nin; i++)
		depends_on(p->slot[s->out].of, p, s->in[i]);
	return s;
}

static bool full(const struct program *p)
{
	return p->slots + 24 > SLOTS || p->stmts + 24 > STATEMENTS;
}

// A statement with a result, and the slot for it.
static struct stmt *add_op(struct program *p, int op, int dtype, int rank,
			   const int64_t *dims, int nin, int a, int b, int c)
{
	struct stmt *s = add_stmt(p, op, nin, a, b, c);
	s->out = add_slot(p, TEMPORARY, dtype, rank, dims);
	p->slot[s->out].state = op == FROM ? MATERIAL : PENDING;
	return finish_op(p, s);
}

static int like(struct program *p, int op, int x, int nin, int b)
{
	struct slot s = p->slot[x];
	return add_op(p, op, s.dtype, s.rank, s.dims, nin, x, b, 0)->out;
}

// limit: 0, or indices below it
static int leaf(struct program *p, int dtype, int rank, const int64_t *dims,
		int64_t limit)
{
	struct stmt *s = add_op(p, FROM, dtype, rank, dims, 0, 0, 0, 0);
	s->a[0] = limit;
	return s->out;
}

static bool is_tensor(const struct slot *s)
{
	return s->kind != SCALAR && s->kind != LITERAL && s->state != DEAD;
}

static int some_dtype(void)
{
	static const int d[] = { yoke_f32, yoke_f32, yoke_f32, yoke_f64, yoke_f16, yoke_bf16,
				 yoke_i8,  yoke_u8,  yoke_i32, yoke_i64, yoke_bool };
	return d[rnd_int(0, sizeof d / sizeof *d - 1)];
}

static int some_dims(const struct program *p, int64_t *dims)
{
	int rank = (int)rnd_int(0, 4);
	int64_t n = 1;
	for (int i = 0; i < rank; i++) {
		dims[i] = one_in(4) ? 1 : p->base[rnd_int(0, 3)];
		if (n * dims[i] > p->largest)
			dims[i] = 1;
		n *= dims[i];
	}
	return rank;
}

// A tensor, preferably a recent one; dtype 0: any.
static int pick(struct program *p, int dtype)
{
	for (int k = p->slots - 1; k > p->slots - 4 && one_in(3); k--) // a chain continues
		if (is_tensor(&p->slot[k]) && (!dtype || p->slot[k].dtype == dtype))
			return k;
	for (int t = 0; t < 60; t++) {
		int lo = one_in(2) && p->slots > 10 ? p->slots - 10 : 0,
		    k = (int)rnd_int(lo, p->slots - 1);
		if (is_tensor(&p->slot[k]) && (!dtype || p->slot[k].dtype == dtype))
			return k;
	}
	int64_t dims[YOKE_MAX_RANK];
	int rank = some_dims(p, dims);
	return leaf(p, dtype ? dtype : yoke_f32, rank, dims, 0);
}

// A whole number in -most .. most that the dtype can represent.
static double filling(int dtype, int64_t max)
{
	bool sign = dtype != yoke_bool && dtype != yoke_u8;
	return (double)rnd_int(sign ? -max : 0, dtype == yoke_bool ? 1 : max);
}

// Can every dtype represent the scalar of this slot?
static bool is_whole(int slot)
{
	return slot % 2 == 0;
}

// A scalar or literal that is valid as an operand for the dtype; 0: any.
static int pick_number(struct program *p, int dtype)
{
	for (;;) {
		int k = (int)rnd_int(0, p->slots - 1);
		if (p->slot[k].kind == LITERAL && dtype && !is_real(dtype) &&
		    p->slot[k - 1].kind >= SCALAR)
			continue; // a fraction: of the literals the first is 0
		if (p->slot[k].kind == SCALAR && dtype && !is_real(dtype) && !is_whole(k))
			continue;
		if ((p->slot[k].kind == SCALAR || p->slot[k].kind == LITERAL) &&
		    p->slot[k].state != DEAD)
			return k;
	}
}

// Broadcasts b's shape into dims.
static bool join(int *rank, int64_t *dims, const struct slot *b, int64_t max)
{
	int64_t to[YOKE_MAX_RANK], n = 1;
	int r = *rank > b->rank ? *rank : b->rank;
	for (int i = 0; i < r; i++) {
		int ia = i - (r - *rank), ib = i - (r - b->rank);
		int64_t da = ia < 0 ? 1 : dims[ia], db = ib < 0 ? 1 : b->dims[ib];
		if (da != db && da != 1 && db != 1)
			return false;
		n *= to[i] = da == 1 ? db : da;
	}
	if (n > max)
		return false;
	memcpy(dims, to, sizeof *to * (size_t)r);
	*rank = r;
	return true;
}

// A tensor of x's dtype that broadcasts with dims, and is merged into it.
static int partner(struct program *p, int dtype, int *rank, int64_t *dims, bool number)
{
	for (int t = 0; t < 10; t++) {
		int b = pick(p, dtype);
		if (join(rank, dims, &p->slot[b], p->largest))
			return b;
	}
	if (number && one_in(2))
		return pick_number(p, dtype);
	int64_t d[YOKE_MAX_RANK];
	int r = (int)rnd_int(0, *rank);
	for (int i = 0; i < r; i++)
		d[i] = one_in(3) ? 1 : dims[i + *rank - r];
	return leaf(p, dtype, r, d, 0);
}

static int gen_binary(struct program *p, int x)
{
	int dtype = p->slot[x].dtype, rank = p->slot[x].rank, op;
	int64_t dims[YOKE_MAX_RANK];
	memcpy(dims, p->slot[x].dims, sizeof dims);
	int b = one_in(5) ? pick_number(p, dtype) : partner(p, dtype, &rank, dims, true);
	if (dtype == yoke_bool)
		op = (int)(one_in(2) ? rnd_int(EQ, GE) : rnd_int(AND, XOR));
	else if (!is_real(dtype) && one_in(3))
		op = (int)rnd_int(SHL, XOR);
	else
		op = one_in(4) ? (int)rnd_int(EQ, GE) :
				 (int)rnd_int(ADD, is_real(dtype) ? POW : MOD);
	bool turned = one_in(2);
	return add_op(p, op, op >= EQ ? yoke_bool : dtype, rank, dims, 2, turned ? b : x,
		      turned ? x : b, 0)
		->out;
}

static int gen_unary(struct program *p, int x)
{
	struct slot s = p->slot[x];
	if (s.dtype == yoke_bool)
		return like(p, one_in(2) ? NOT : STOP_GRAD, x, 1, 0);
	if (!is_real(s.dtype) && one_in(8))
		return like(p, NOT, x, 1, 0);
	if (is_real(s.dtype) && one_in(8))
		return add_op(p, ISFINITE, yoke_bool, s.rank, s.dims, 1, x, 0, 0)->out;
	return like(p, (int)rnd_int(NEG, is_real(s.dtype) ? ERF : STOP_GRAD), x, 1, 0);
}

static int gen_cast(struct program *p, int x)
{
	struct slot s = p->slot[x];
	int dtype = some_dtype();
	if (dtype == s.dtype) // would be x itself under another name
		return x;
	return add_op(p, CAST, dtype, s.rank, s.dims, 1, x, 0, 0)->out;
}

static int gen_select(struct program *p, int x)
{
	struct slot s = p->slot[x];
	int c = partner(p, yoke_bool, &s.rank, s.dims, false);
	int b = one_in(4) ? pick_number(p, s.dtype) : partner(p, s.dtype, &s.rank, s.dims, true);
	bool turned = one_in(2);
	return add_op(p, SELECT, s.dtype, s.rank, s.dims, 3, c, turned ? b : x,
		      turned ? x : b)
		->out;
}

static int gen_slice(struct program *p, int x, int axis, int64_t start, int64_t stop,
		     int64_t step)
{
	struct slot s = p->slot[x];
	int64_t n = s.dims[axis];
	s.dims[axis] = (stop - start + step - 1) / step;
	struct stmt *t = add_op(p, SLICE, s.dtype, s.rank, s.dims, 1, x, 0, 0);
	bool back = one_in(3); // count from the end
	t->a[0] = one_in(3) ? axis - s.rank : axis;
	t->a[1] = back && start < n ? start - n : start;
	t->a[2] = back && stop < n ? stop - n : stop;
	t->a[3] = step;
	return t->out;
}

static int gen_reshape(struct program *p, int x)
{
	struct slot s = p->slot[x];
	int64_t dims[YOKE_MAX_RANK] = { 0 }, left = s.n;
	int rank = 0;
	while (rank < 5 && s.n && (left > 1 || one_in(3))) { // a random factor a time
		int64_t f = rnd_int(1, left);
		while (left % f)
			f--;
		dims[rank] = rank == 4 ? left : f;
		left /= dims[rank++];
	}
	if (!s.n)
		dims[rank++] = 0;
	return add_op(p, RESHAPE, s.dtype, rank, dims, 1, x, 0, 0)->out;
}

static int gen_permute(struct program *p, int x)
{
	struct slot s = p->slot[x], y = s;
	int64_t order[YOKE_MAX_RANK];
	for (int i = 0; i < s.rank; i++) {
		int k = (int)rnd_int(0, i);
		order[i] = order[k];
		order[k] = i;
	}
	for (int i = 0; i < s.rank; i++)
		y.dims[i] = s.dims[order[i]];
	struct stmt *t = add_op(p, PERMUTE, s.dtype, s.rank, y.dims, 1, x, 0, 0);
	memcpy(t->a, order, sizeof order);
	return t->out;
}

static int gen_flip(struct program *p, int x)
{
	int y = like(p, FLIP, x, 1, 0);
	p->stmt[p->stmts - 1].a[0] = rnd_int(0, (1 << p->slot[x].rank) - 1);
	return y;
}

static int gen_bitcast(struct program *p, int x)
{
	struct slot s = p->slot[x];
	int dtype = some_dtype();
	int64_t was = (int64_t)yoke_dtype_size(s.dtype), size = (int64_t)yoke_dtype_size(dtype);
	if (dtype == s.dtype || dtype == yoke_bool || (was != size && !s.rank))
		return x;
	if (was != size &&
	    (s.dims[s.rank - 1] * was % size || s.n * was > p->largest * size ||
	     s.dims[s.rank - 1] * was > 128 * size)) // products of long axes would be large
		return x;
	if (was != size)
		s.dims[s.rank - 1] = s.dims[s.rank - 1] * was / size;
	return add_op(p, BITCAST, dtype, s.rank, s.dims, 1, x, 0, 0)->out;
}

static int gen_view(struct program *p, int x)
{
	struct slot s = p->slot[x];
	if (one_in(6))
		return gen_bitcast(p, x);
	switch (rnd_int(0, 5)) {
	case 0: return gen_reshape(p, x);
	case 1: return gen_permute(p, x);
	case 2: return gen_flip(p, x);
	case 3: {
		int rank = s.rank + (int)rnd_int(0, s.rank < 4);
		int64_t dims[YOKE_MAX_RANK], n = 1;
		for (int i = 0; i < rank; i++) {
			int k = i - (rank - s.rank);
			n *= dims[i] = k < 0 || s.dims[k] == 1 ? p->base[rnd_int(0, 3)] :
								 s.dims[k];
		}
		if (n > p->largest)
			return x;
		return add_op(p, BROADCAST, s.dtype, rank, dims, 1, x, 0, 0)->out;
	}
	}
	if (!s.rank)
		return gen_reshape(p, x);
	int axis = (int)rnd_int(0, s.rank - 1);
	int64_t start = rnd_int(0, s.dims[axis]),
		stop = one_in(20) ? start : rnd_int(start, s.dims[axis]);
	return gen_slice(p, x, axis, start / 2, stop, rnd_int(1, 3));
}

static int gen_reduce(struct program *p, int x)
{
	struct slot s = p->slot[x], y = s;
	bool truth = s.dtype == yoke_bool;
	int op = (int)rnd_int(SUM, s.n && s.rank ? ARGMIN : s.n ? REDUCE_MIN : PROD);
	if (op == MEAN && !is_real(s.dtype))
		op = SUM;
	if (truth)
		op = one_in(2) ? ANY : ALL;
	bool arg = !truth && op >= ARGMAX, keep = !arg && one_in(2);
	unsigned axes = one_in(4) ? YOKE_ALL : (unsigned)rnd_int(0, (1 << s.rank) - 1);
	if (arg)
		axes = 1u << rnd_int(0, s.rank - 1);
	y.rank = 0;
	y.n = 1;
	for (int i = 0; i < s.rank; i++)
		if (!(axes >> i & 1) || keep)
			y.n *= y.dims[y.rank++] = axes >> i & 1 ? 1 : s.dims[i];
	if (y.n > p->largest) // of nothing
		return x;
	struct stmt *t =
		add_op(p, op, arg ? yoke_i64 : s.dtype, y.rank, y.dims, 1, x, 0, 0);
	t->a[0] = arg ? __builtin_ctz(axes) : (int64_t)(axes | (keep ? YOKE_KEEP : 0));
	return t->out;
}

// Along an axis: cumulative sums, sorting, the indices of a sort.
static int gen_along(struct program *p, int x)
{
	struct slot s = p->slot[x];
	if (!s.rank)
		return x;
	int op = s.dtype == yoke_bool || one_in(2) ? (one_in(3) ? ORDER : SORT) :
						     (one_in(3) ? CUMPROD : CUMSUM);
	struct stmt *t = add_op(p, op, op == ORDER ? yoke_i64 : s.dtype, s.rank, s.dims,
				1, x, 0, 0);
	t->a[0] = rnd_int(-s.rank, s.rank - 1);
	t->a[1] = one_in(2);
	return t->out;
}

static int gen_clamp(struct program *p, int x)
{
	struct slot s = p->slot[x];
	if (s.dtype == yoke_bool)
		return x;
	return add_op(p, CLAMP, s.dtype, s.rank, s.dims, 3, x, pick_number(p, s.dtype),
		      pick_number(p, s.dtype))
		->out;
}

static int gen_matmul(struct program *p, int x)
{
	struct slot s = p->slot[x];
	if (s.rank < 2 || s.dtype == yoke_bool)
		return x;
	unsigned flags = (unsigned)rnd_int(0, 3);
	int64_t m = s.dims[s.rank - 2], k = s.dims[s.rank - 1], dims[YOKE_MAX_RANK], n;
	if (flags & YOKE_TA)
		n = m, m = k, k = n;
	int b = -1;
	for (int t = 0; t < 20 && b < 0; t++) {
		int c = t < 2 ? x : pick(p, s.dtype);
		const struct slot *o = &p->slot[c];
		if (o->rank >= 2 && o->dims[o->rank - (flags & YOKE_TB ? 1 : 2)] == k)
			b = c;
	}
	if (b < 0) {
		n = p->base[rnd_int(0, 3)];
		int64_t d[2] = { flags & YOKE_TB ? n : k, flags & YOKE_TB ? k : n };
		b = leaf(p, s.dtype, 2, d, 0);
	}
	struct slot o = p->slot[b];
	n = o.dims[o.rank - (flags & YOKE_TB ? 2 : 1)];
	int rank = s.rank - 2;
	memcpy(dims, s.dims, sizeof dims);
	o.rank -= 2;
	if (!join(&rank, dims, &o, p->largest))
		return x;
	dims[rank++] = m;
	dims[rank++] = n;
	int64_t all = 1;
	for (int i = 0; i < rank; i++)
		all *= dims[i];
	if (rank > 5 || all > p->largest)
		return x;
	struct stmt *t = add_op(p, MATMUL, s.dtype, rank, dims, 2, x, b, 0);
	t->a[0] = flags;
	return t->out;
}

static int gen_pad(struct program *p, int x)
{
	struct slot s = p->slot[x];
	int64_t a[16] = { 0 };
	s.n = 1;
	for (int i = 0; i < s.rank; i++) {
		a[i] = rnd_int(0, 2);
		a[8 + i] = rnd_int(0, 2);
		s.n *= s.dims[i] += a[i] + a[8 + i];
	}
	if (s.n > p->largest)
		return x;
	struct stmt *t = add_op(p, PAD, s.dtype, s.rank, s.dims, 1, x, 0, 0);
	memcpy(t->a, a, sizeof a);
	t->x = filling(s.dtype, 2);
	return t->out;
}

static int gen_concat(struct program *p, int x)
{
	struct slot s = p->slot[x];
	if (!s.rank || 3 * s.n > p->largest)
		return x;
	int axis = (int)rnd_int(0, s.rank - 1), in[3] = { x }, n = (int)rnd_int(1, 3);
	int64_t all = s.dims[axis];
	for (int i = 1; i < n; i++) {
		in[i] = -1;
		for (int t = 0; t < 10 && in[i] < 0; t++) {
			int c = pick(p, s.dtype);
			struct slot o = p->slot[c];
			int64_t size = o.rank == s.rank ? o.dims[axis] : 0;
			o.dims[axis] = s.dims[axis];
			if (o.rank == s.rank &&
			    !memcmp(o.dims, s.dims, sizeof *s.dims * (size_t)s.rank) &&
			    o.n <= 3 * s.n + 8 && size < 64)
				in[i] = c;
		}
		if (in[i] < 0)
			in[i] = one_in(2)            ? x :
				s.dtype == yoke_bool ? like(p, NOT, x, 1, 0) :
						       like(p, SQUARE, x, 1, 0);
		all += p->slot[in[i]].dims[axis];
	}
	for (int i = n - 1; i > 0; i--) { // x anywhere
		int k = (int)rnd_int(0, i), c = in[i];
		in[i] = in[k];
		in[k] = c;
	}
	s.dims[axis] = all;
	struct stmt *t =
		add_op(p, CONCAT, s.dtype, s.rank, s.dims, n, in[0], in[1], in[2]);
	t->a[0] = axis;
	return t->out;
}

// x with a slice replaced by something, preferably by itself.
static int gen_slice_update(struct program *p, int x)
{
	struct slot s = p->slot[x];
	int v = x;
	for (int i = 0; i < s.rank; i++)
		if (one_in(2)) {
			int64_t a = rnd_int(0, s.dims[i]), b = rnd_int(a, s.dims[i]);
			v = gen_slice(p, v, i, a, b, 1);
		}
	if (one_in(3) || v == x)
		v = s.dtype == yoke_bool ? like(p, NOT, v, 1, 0) :
					   like(p, (int)rnd_int(NEG, SQUARE), v, 1, 0);
	if (one_in(4))
		v = leaf(p, s.dtype, p->slot[v].rank, p->slot[v].dims, 0);
	int y = like(p, SLICE_UPDATE, x, 2, v);
	for (int i = 0; i < s.rank; i++)
		p->stmt[p->stmts - 1].a[i] = rnd_int(0, s.dims[i] - p->slot[v].dims[i]);
	return y;
}

static int gen_index(struct program *p, int64_t n)
{
	int dtype = one_in(2) ? yoke_i32 : yoke_i64;
	if (one_in(2)) { // something of ours, clamped
		int k = pick(p, dtype), lo = -1;
		for (int i = 0; i < p->slots && lo < 0; i++)
			lo = p->slot[i].kind == LITERAL ? i : -1; // the first is 0
		if (p->slot[k].rank <= 2 && p->slot[k].n < 40) {
			int64_t one = 1;
			int hi = leaf(p, dtype, 0, &one, 0);
			p->stmt[p->stmts - 1].a[1] = n; // n - 1 always
			return like(p, MIN, like(p, MAX, k, 2, lo), 2, hi);
		}
	}
	int64_t dims[2] = { rnd_int(0, 5), rnd_int(1, 3) };
	return leaf(p, dtype, (int)rnd_int(0, 2), dims, n);
}

static int gen_gather(struct program *p, int x, int idx, int axis)
{
	struct slot s = p->slot[x], i = p->slot[idx];
	int64_t dims[YOKE_MAX_RANK], n = 1;
	int rank = 0;
	for (int k = 0; k < s.rank; k++) {
		if (k != axis)
			dims[rank++] = s.dims[k];
		for (int l = 0; l < i.rank && k == axis; l++)
			dims[rank++] = i.dims[l];
	}
	for (int k = 0; k < rank; k++)
		n *= dims[k];
	if (n > p->largest)
		return x;
	struct stmt *t = add_op(p, GATHER, s.dtype, rank, dims, 2, x, idx, 0);
	t->a[0] = axis;
	return t->out;
}

static int gen_rows(struct program *p, int x)
{
	struct slot s = p->slot[x];
	if (!s.rank || !s.n || s.rank > 4)
		return x;
	int axis = one_in(2) ? 0 : (int)rnd_int(0, s.rank - 1),
	    idx = gen_index(p, s.dims[axis]);
	int rows = gen_gather(p, x, idx, axis);
	if (axis || s.dtype == yoke_bool || one_in(3) || rows == x)
		return rows;
	if (one_in(2))
		rows = leaf(p, s.dtype, p->slot[rows].rank, p->slot[rows].dims, 0);
	return add_op(p, SCATTER_ADD, s.dtype, s.rank, s.dims, 3, x, idx, rows)->out;
}

static int gen_fill(struct program *p)
{
	int64_t dims[YOKE_MAX_RANK];
	int rank = some_dims(p, dims), dtype = some_dtype();
	bool iota = rank && dtype != yoke_bool && one_in(2);
	struct stmt *t = add_op(p, iota ? IOTA : FULL, dtype, rank, dims, 0, 0, 0, 0);
	t->a[0] = iota ? rnd_int(0, rank - 1) : 0;
	t->x = filling(dtype, 3);
	return t->out;
}

static int gen_op(struct program *p, int x)
{
	switch (rnd_int(0, 19)) {
	case 18: return gen_along(p, x);
	case 19: return gen_clamp(p, x);
	case 0:
	case 1:
	case 2: return gen_unary(p, x);
	case 3:
	case 4:
	case 5:
	case 6: return gen_binary(p, x);
	case 7: return gen_select(p, x);
	case 8: return gen_cast(p, x);
	case 9:
	case 10:
	case 11: return gen_view(p, x);
	case 12: return gen_reduce(p, x);
	case 13: return gen_matmul(p, x);
	case 14: return one_in(2) ? gen_pad(p, x) : like(p, CONTIGUOUS, x, 1, 0);
	case 15: return gen_concat(p, x);
	case 16: return gen_slice_update(p, x);
	}
	return one_in(5) ? gen_fill(p) : gen_rows(p, x);
}

static bool alike(const struct slot *a, const struct slot *b)
{
	return a->dtype == b->dtype && a->rank == b->rank &&
	       !memcmp(a->dims, b->dims, sizeof *a->dims * (size_t)a->rank);
}

static int pick_variable(struct program *p)
{
	for (;;) {
		int k = (int)rnd_int(0, p->slots - 1);
		if (p->slot[k].kind == VARIABLE)
			return k;
	}
}

static void assign(struct program *p, int v, int x)
{
	if (!alike(&p->slot[v], &p->slot[x]))
		return;
	add_stmt(p, ASSIGN, 2, v, x, 0);
	struct slot *s = &p->slot[v];
	uint64_t of[SLOTS / 64 + 1] = { 0 };
	depends_on(of, p, x);
	memcpy(s->of, of, sizeof of);
	s->state = PENDING;
}

// x with its halves along an axis exchanged, or shifted along by something new.
static int gen_halves(struct program *p, int x)
{
	struct slot s = p->slot[x];
	if (!s.rank)
		return x;
	int axis = (int)rnd_int(0, s.rank - 1);
	int64_t cut = rnd_int(0, s.dims[axis]);
	int half[2];
	half[1] = gen_slice(p, x, axis, 0, cut, 1);
	half[0] = gen_slice(p, x, axis, cut, s.dims[axis], 1);
	for (int k = 0, fresh = (int)rnd_int(0, 3); k < 2; k++)
		if (k == fresh)
			half[k] = leaf(p, s.dtype, p->slot[half[k]].rank,
				       p->slot[half[k]].dims, 0);
		else if (one_in(2) && s.dtype != yoke_bool)
			half[k] = like(p, (int)rnd_int(NEG, SQUARE), half[k], 1, 0);
	struct stmt *t =
		add_op(p, CONCAT, s.dtype, s.rank, s.dims, 2, half[0], half[1], 0);
	t->a[0] = axis;
	return t->out;
}

// A new version of v computed from the old: in place where that is correct.
static void gen_update(struct program *p, int v)
{
	int x = v, y;
	for (int n = (int)rnd_int(1, 3); n > 0 && !full(p); n--) {
		struct slot s = p->slot[x];
		switch (rnd_int(0, 7)) {
		case 0: y = gen_flip(p, x); break;
		case 1: y = gen_slice_update(p, x); break;
		case 2: y = gen_halves(p, x); break;
		case 3: y = gen_permute(p, x); break;
		case 4: y = gen_select(p, x); break;
		case 5: y = gen_unary(p, x); break;
		default: y = gen_binary(p, x);
		}
		if (alike(&p->slot[y], &s))
			x = y;
	}
	if (!alike(&p->slot[x], &p->slot[v]))
		return;
	if (one_in(2) && p->slot[x].dtype != yoke_bool) // once more with its beginning
		x = like(p, one_in(2) ? ADD : SUB, x, 2, v);
	assign(p, v, x);
}

static void gen_swap(struct program *p, int v)
{
	int w = pick_variable(p);
	if (!alike(&p->slot[v], &p->slot[w]))
		return;
	int old = like(p, one_in(2) ? CONTIGUOUS : STOP_GRAD, v, 1, 0);
	assign(p, v, w);
	if (one_in(2))
		assign(p, w, old);
}

// Pending work and n more values are computed, with their operands. The rest stays pending. Values
// without bytes can then still be computed, unless a variable was overwritten.
static void evaluated(struct program *p, int n, const int *more)
{
	uint64_t needed[SLOTS / 64 + 1] = { 0 };
	bool overwrites = false, pending = false;
	for (int k = 0; k < p->slots; k++) {
		struct slot *s = &p->slot[k];
		if (s->state != PENDING || (s->kind == TEMPORARY && !s->kept))
			continue;
		depends_on(needed, p, k);
		overwrites |= s->kind == VARIABLE;
		s->state = MATERIAL;
	}
	for (int i = 0; i < n; i++) {
		depends_on(needed, p, more[i]);
		p->slot[more[i]].state = MATERIAL;
		p->slot[more[i]].released = false;
	}
	for (int k = 0; k < p->slots; k++) {
		struct slot *s = &p->slot[k];
		if (s->state == PENDING && needed[k / 64] >> k % 64 & 1)
			s->released = true;
		if (s->state == PENDING && s->released && overwrites)
			s->state = DEAD;
		pending |= s->state == PENDING && !s->released;
	}
	p->scalars_used = pending;
}

static void gen_read(struct program *p, int x)
{
	bool pending = p->slot[x].state == PENDING;
	add_stmt(p, READ, 1, x, 0, 0);
	if (pending)
		evaluated(p, 1, &x);
}

static void gen_eval(struct program *p)
{
	int n = (int)rnd_int(0, 3), in[3] = { 0 };
	for (int i = 0; i < n; i++)
		in[i] = pick(p, 0);
	add_stmt(p, EVAL, n, in[0], in[1], in[2]);
	evaluated(p, n, in);
}

static void gen_handle(struct program *p, int x)
{
	struct slot *s = &p->slot[x];
	if (s->kind != TEMPORARY)
		return;
	if (!s->kept) {
		if (s->depth == 2 && one_in(3)) {
			add_stmt(p, LIFT, 1, x, 0, 0);
			s->depth = 1;
			return;
		}
		add_stmt(p, KEEP, 1, x, 0, 0);
		s->kept = true;
		s->held = one_in(3);
		return;
	}
	for (int k = 0; k < p->slots; k++)
		if (p->slot[k].kind == CARRY && alike(&p->slot[k], s)) {
			add_stmt(p, CARRY_OVER, 2, k, x, 0);
			p->slot[k].state = s->state;
			memset(p->slot[k].of, 0, sizeof p->slot[k].of);
			depends_on(p->slot[k].of, p, x);
			s->state = DEAD;
			return;
		}
	add_stmt(p, FREE, 1, x, 0, 0);
	s->state = DEAD;
}

static void scope_end(struct program *p)
{
	add_stmt(p, SCOPE_END, 0, 0, 0, 0);
	for (int k = 0; k < p->slots; k++)
		if (p->slot[k].depth == 2 && !p->slot[k].kept)
			p->slot[k].state = DEAD;
	p->depth = 1;
}

static void gen_number(struct program *p)
{
	int x = pick_number(p, 0);
	if (one_in(3))
		add_stmt(p, NEW_SCALAR, 0, 0, 0, 0)->out =
			add_slot(p, SCALAR, 0, 0, NULL);
	else if (p->slot[x].kind == SCALAR && !p->scalars_used)
		add_stmt(p, SET_SCALAR, 1, x, 0, 0);
}

static void gen_statement(struct program *p)
{
	int v = pick_variable(p);
	switch (rnd_int(0, 30)) {
	case 0:
	case 1:
	case 2: gen_update(p, v); break;
	case 3: gen_swap(p, v); break;
	case 4: assign(p, v, pick(p, p->slot[v].dtype)); break;
	case 5:
		add_stmt(p, PUT, 1, v, 0, 0);
		p->slot[v].state = MATERIAL;
		memset(p->slot[v].of, 0, sizeof p->slot[v].of);
		break;
	case 6:
	case 7:
	case 8: gen_handle(p, pick(p, 0)); break;
	case 9: gen_read(p, one_in(2) ? v : pick(p, 0)); break;
	case 10: gen_eval(p); break;
	case 11: gen_number(p); break;
	case 12:
		if (p->depth == 2) {
			scope_end(p);
		} else {
			p->depth = 2;
			add_stmt(p, SCOPE, 0, 0, 0, 0);
		}
		break;
	case 13: // as a chain
		for (int n = 3, x = pick(p, 0); n > 0; n--)
			x = one_in(3) ? gen_view(p, x) :
			    one_in(2) ? gen_unary(p, x) :
					gen_binary(p, x);
		break;
	default: gen_op(p, pick(p, 0));
	}
}

static void write_program(struct program *p, uint64_t seed)
{
	static const int64_t sizes[] = { 2, 3, 4, 5, 7, 8, 16, 17 };
	tap_state = seed;
	*p = (struct program){ .seed = seed, .scalars_used = true, .wild = one_in(12) };
	for (int i = 0; i < 4; i++)
		p->base[i] = one_in(40) ? 0 : sizes[rnd_int(0, one_in(3) ? 7 : 4)];
	if (one_in(2)) // square matrices
		p->base[1] = p->base[2];
	p->largest = 1500;
	if (one_in(12)) { // several strips of a map, and more than one worker's tile
		p->base[0] = p->base[3] = rnd_int(250, 4000);
		p->largest = 12000;
	}
	int64_t dims[YOKE_MAX_RANK];
	for (int n = (int)rnd_int(2, 4); n > 0; n--) { // variables, often two equal ones
		int rank = some_dims(p, dims), dtype = some_dtype();
		for (int twins = one_in(2) ? 2 : 1; twins > 0; twins--)
			add_slot(p, VARIABLE, dtype, rank, dims);
		if (one_in(2))
			add_slot(p, CARRY, dtype, rank, dims);
	}
	add_slot(p, LITERAL, 0, 0, NULL);
	for (int i = 0; i < 4; i++)
		add_slot(p, i < 2 ? SCALAR : LITERAL, 0, 0, NULL);
	p->depth = 1;
	for (int n = (int)rnd_int(5, 60); n > 0 && !full(p); n--)
		gen_statement(p);
	if (p->depth == 2)
		scope_end(p);
	bool together = one_in(
		2); // many roots in one evaluation, or one evaluation after another
	for (int k = 0; k < p->slots && !full(p) && together; k++)
		if (p->slot[k].kind == TEMPORARY && p->slot[k].state == PENDING &&
		    !p->slot[k].kept && one_in(3)) {
			add_stmt(p, KEEP, 1, k, 0, 0);
			p->slot[k].kept = true;
		}
	for (int k = p->slots; k-- > 0 && !full(p);)
		if (is_tensor(&p->slot[k]) && p->slot[k].kind == TEMPORARY &&
		    one_in(together ? 2 : 4))
			gen_read(p, k);
	add_stmt(p, EVAL, 0, 0, 0, 0);
}

#endif
