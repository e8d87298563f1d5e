// SPDX-License-Identifier: Apache-2.0
// Tests merging of axes: an op's views get as few axes as its definition and strides permit, with
// the same elements in the same order.

#include "config.h"

#include "kernel/merge.h"
#include "tap.h"

struct shape {
	int rank;
	int64_t dims[YOKE_MAX_RANK], strides[YOKE_MAX_RANK];
};

enum { LIMIT = 6 };

static const struct row {
	const char *what;
	uint16_t code;
	int nout, n, nattr;
	int64_t attr[2];
	struct shape was[LIMIT]; // outputs, then inputs; rank -1: absent
	struct shape now[LIMIT];
	int64_t attr_now[2];
} rows[] = {
	{ "map, dense",
	  YOKE_OP_MAP,
	  1,
	  2,
	  0,
	  { 0 },
	  { { 3, { 2, 3, 4 }, { 12, 4, 1 } }, { 3, { 2, 3, 4 }, { 12, 4, 1 } } },
	  { { 1, { 24 }, { 1 } }, { 1, { 24 }, { 1 } } },
	  { 0 } },
	{ "map, a row for all",
	  YOKE_OP_MAP,
	  1,
	  2,
	  0,
	  { 0 },
	  { { 4, { 2, 3, 1, 4 }, { 12, 4, 9, 1 } }, { 4, { 2, 3, 1, 4 }, { 0, 0, 7, 1 } } },
	  { { 2, { 6, 4 }, { 4, 1 } }, { 2, { 6, 4 }, { 0, 1 } } },
	  { 0 } },
	{ "map, transposed",
	  YOKE_OP_MAP,
	  1,
	  2,
	  0,
	  { 0 },
	  { { 3, { 2, 3, 4 }, { 12, 4, 1 } }, { 3, { 2, 3, 4 }, { 4, 8, 1 } } },
	  { { 3, { 2, 3, 4 }, { 12, 4, 1 } }, { 3, { 2, 3, 4 }, { 4, 8, 1 } } },
	  { 0 } },
	{ "map, backwards",
	  YOKE_OP_MAP,
	  1,
	  1,
	  0,
	  { 0 },
	  { { 3, { 2, 3, 4 }, { -12, -4, -1 } } },
	  { { 1, { 24 }, { -1 } } },
	  { 0 } },
	{ "map, one element",
	  YOKE_OP_MAP,
	  1,
	  1,
	  0,
	  { 0 },
	  { { 3, { 1, 1, 1 }, { 5, 6, 1 } } },
	  { { 1, { 1 }, { 1 } } },
	  { 0 } },
	{ "map, no element",
	  YOKE_OP_MAP,
	  1,
	  1,
	  0,
	  { 0 },
	  { { 3, { 2, 0, 4 }, { 0, 4, 1 } } },
	  { { 1, { 0 }, { 1 } } },
	  { 0 } },
	{ "reduce, apart from what stays",
	  YOKE_OP_REDUCE,
	  1,
	  2,
	  2,
	  { YOKE_REDUCE_SUM, 12 },
	  { { 4, { 2, 3, 1, 1 }, { 3, 1, 1, 1 } }, { 4, { 2, 3, 4, 5 }, { 60, 20, 5, 1 } } },
	  { { 2, { 6, 1 }, { 1, 1 } }, { 2, { 6, 20 }, { 20, 1 } } },
	  { YOKE_REDUCE_SUM, 2 } },
	{ "reduce, across an axis of one element",
	  YOKE_OP_REDUCE,
	  1,
	  2,
	  2,
	  { YOKE_REDUCE_MAX, 2 + 8 },
	  { { 4, { 2, 1, 4, 1 }, { 4, 9, 1, 0 } }, { 4, { 2, 1, 4, 5 }, { 20, 7, 5, 1 } } },
	  { { 2, { 8, 1 }, { 1, 0 } }, { 2, { 8, 5 }, { 5, 1 } } },
	  { YOKE_REDUCE_MAX, 2 } },
	{ "reduce, between axes that stay",
	  YOKE_OP_REDUCE,
	  1,
	  2,
	  2,
	  { YOKE_REDUCE_SUM, 6 },
	  { { 4, { 2, 1, 1, 5 }, { 5, 0, 0, 1 } }, { 4, { 2, 3, 4, 5 }, { 60, 20, 5, 1 } } },
	  { { 3, { 2, 1, 5 }, { 5, 0, 1 } }, { 3, { 2, 12, 5 }, { 60, 5, 1 } } },
	  { YOKE_REDUCE_SUM, 2 } },
	{ "the axis of a place stays",
	  YOKE_OP_REDUCE,
	  1,
	  2,
	  2,
	  { YOKE_REDUCE_ARGMAX, 2 },
	  { { 3, { 2, 1, 3 }, { 3, 0, 1 } }, { 3, { 2, 1, 3 }, { 3, 3, 1 } } },
	  { { 3, { 2, 1, 3 }, { 3, 0, 1 } }, { 3, { 2, 1, 3 }, { 3, 3, 1 } } },
	  { YOKE_REDUCE_ARGMAX, 2 } },
	{ "contract, the matrices stay",
	  YOKE_OP_CONTRACT,
	  1,
	  3,
	  0,
	  { 0 },
	  { { 4, { 2, 3, 1, 5 }, { 15, 5, 5, 1 } },
	    { 4, { 2, 3, 1, 1 }, { 3, 1, 1, 1 } },
	    { 4, { 2, 3, 1, 5 }, { 0, 0, 5, 1 } } },
	  { { 3, { 6, 1, 5 }, { 5, 5, 1 } },
	    { 3, { 6, 1, 1 }, { 1, 1, 1 } },
	    { 3, { 6, 1, 5 }, { 0, 5, 1 } } },
	  { 0 } },
	{ "move",
	  YOKE_OP_MOVE,
	  1,
	  2,
	  0,
	  { 0 },
	  { { 3, { 2, 3, 4 }, { 12, 4, 1 } }, { 3, { 2, 3, 4 }, { 4, 8, 1 } } },
	  { { 3, { 2, 3, 4 }, { 12, 4, 1 } }, { 3, { 2, 3, 4 }, { 4, 8, 1 } } },
	  { 0 } },
	{ "gather, its three parts",
	  YOKE_OP_GATHER,
	  1,
	  3,
	  1,
	  { 2 },
	  { { 6, { 2, 3, 4, 5, 6, 7 }, { 2520, 840, 210, 42, 7, 1 } },
	    { 5, { 2, 3, 9, 6, 7 }, { 1134, 378, 42, 7, 1 } },
	    { 2, { 4, 5 }, { 5, 1 } } },
	  { { 3, { 6, 20, 42 }, { 840, 42, 1 } },
	    { 3, { 6, 9, 42 }, { 378, 42, 1 } },
	    { 1, { 20 }, { 1 } } },
	  { 1 } },
	{ "scatter into nothing",
	  YOKE_OP_SCATTER_ADD,
	  1,
	  4,
	  0,
	  { 0 },
	  { { 3, { 9, 2, 3 }, { 6, 3, 1 } },
	    { -1, { 0 }, { 0 } },
	    { 2, { 4, 5 }, { 5, 1 } },
	    { 4, { 4, 5, 2, 3 }, { 30, 6, 3, 1 } } },
	  { { 2, { 9, 6 }, { 6, 1 } },
	    { -1, { 0 }, { 0 } },
	    { 1, { 20 }, { 1 } },
	    { 2, { 20, 6 }, { 6, 1 } } },
	  { 0 } },
	{ "scan, around its axis",
	  YOKE_OP_SCAN,
	  1,
	  2,
	  2,
	  { 2, YOKE_REDUCE_SUM },
	  { { 5, { 2, 3, 4, 5, 1 }, { 60, 20, 5, 1, 1 } },
	    { 5, { 2, 3, 4, 5, 1 }, { 60, 20, 5, 1, 8 } } },
	  { { 3, { 6, 4, 5 }, { 20, 5, 1 } }, { 3, { 6, 4, 5 }, { 20, 5, 1 } } },
	  { 1, YOKE_REDUCE_SUM } },
	{ "sort, its last axis stays",
	  YOKE_OP_SORT,
	  2,
	  3,
	  0,
	  { 0 },
	  { { 3, { 2, 3, 1 }, { 3, 1, 1 } },
	    { -1, { 0 }, { 0 } },
	    { 3, { 2, 3, 4 }, { 12, 4, 1 } } },
	  { { 2, { 6, 1 }, { 1, 1 } }, { -1, { 0 }, { 0 } }, { 2, { 6, 4 }, { 4, 1 } } },
	  { 0 } },
	{ "layer norm, w and b are columns'",
	  YOKE_OP_LAYER_NORM,
	  3,
	  6,
	  0,
	  { 0 },
	  { { 3, { 2, 3, 4 }, { 12, 4, 1 } },
	    { 2, { 2, 3 }, { 3, 1 } },
	    { 2, { 2, 3 }, { 3, 1 } },
	    { 3, { 2, 3, 4 }, { 12, 4, 1 } },
	    { 1, { 4 }, { 1 } },
	    { 1, { 4 }, { 1 } } },
	  { { 2, { 6, 4 }, { 4, 1 } },
	    { 1, { 6 }, { 1 } },
	    { 1, { 6 }, { 1 } },
	    { 2, { 6, 4 }, { 4, 1 } },
	    { 1, { 4 }, { 1 } },
	    { 1, { 4 }, { 1 } } },
	  { 0 } },
	{ "one row of a norm",
	  YOKE_OP_RMS_NORM,
	  2,
	  4,
	  0,
	  { 0 },
	  { { 2, { 1, 4 }, { 4, 1 } },
	    { 1, { 1 }, { 1 } },
	    { 2, { 1, 4 }, { 4, 1 } },
	    { 1, { 4 }, { 1 } } },
	  { { 1, { 4 }, { 1 } }, { 0, { 0 }, { 0 } }, { 1, { 4 }, { 1 } }, { 1, { 4 }, { 1 } } },
	  { 0 } },
	{ "attention stays as it is",
	  YOKE_OP_ATTENTION,
	  1,
	  2,
	  0,
	  { 0 },
	  { { 4, { 2, 3, 4, 5 }, { 60, 20, 5, 1 } }, { 4, { 2, 3, 4, 5 }, { 60, 20, 5, 1 } } },
	  { { 4, { 2, 3, 4, 5 }, { 60, 20, 5, 1 } }, { 4, { 2, 3, 4, 5 }, { 60, 20, 5, 1 } } },
	  { 0 } },
};

static struct yoke_view view_of(const struct shape *s)
{
	struct yoke_view v = { .kind = s->rank < 0 ? YOKE_VIEW_NONE : YOKE_VIEW_BUFFER,
			       .dtype = yoke_f32 };
	v.rank = (uint8_t)(s->rank < 0 ? 0 : s->rank);
	memcpy(v.dims, s->dims, sizeof v.dims);
	memcpy(v.strides, s->strides, sizeof v.strides);
	return v;
}

static bool is(const struct yoke_view *v, const struct shape *s)
{
	bool same = v->kind == YOKE_VIEW_NONE || v->rank == s->rank;
	for (int i = 0; i < v->rank && same; i++)
		same = v->dims[i] == s->dims[i] && v->strides[i] == s->strides[i];
	if (!same)
		for (int i = 0; i < v->rank; i++)
			diag("axis %d: %lld elements, stride %lld", i, (long long)v->dims[i],
			     (long long)v->strides[i]);
	return same;
}

static void table(void)
{
	for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
		const struct row *x = &rows[r];
		struct yoke_view v[LIMIT];
		struct yoke_op op = { .size = sizeof op, .code = x->code, .nout = (uint32_t)x->nout,
				      .nin = (uint32_t)(x->n - x->nout), .nattr = (uint8_t)x->nattr,
				      .out = v, .in = v + x->nout };
		bool good = true;
		for (int k = 0; k < x->n; k++)
			v[k] = view_of(&x->was[k]);
		for (int k = 0; k < x->nattr; k++)
			op.attr[k].i = x->attr[k];
		if (x->code == YOKE_OP_MAP || x->code == YOKE_OP_REDUCE) {
			op.rank = v[x->n - 1].rank;
			memcpy(op.dims, v[x->n - 1].dims, sizeof op.dims);
		}
		yk_merge_axes(&op, v, v + x->nout);
		for (int k = 0; k < x->n; k++)
			good &= is(&v[k], &x->now[k]);
		for (int k = 0; k < x->nattr; k++)
			good &= op.attr[k].i == x->attr_now[k];
		if (op.rank)
			good &= op.rank == v[x->n - 1].rank &&
				!memcmp(op.dims, v[x->n - 1].dims, op.rank * sizeof *op.dims);
		ok(good, "%s", x->what);
	}
}

// Offsets of a view's elements in the order of the space; the view broadcasts along axes where its
// length is 1.
static void walk(const struct yoke_view *v, int64_t *to)
{
	int64_t i[YOKE_MAX_RANK] = { 0 };
	for (int axis = 0; axis >= 0;) {
		*to = 0;
		for (int k = 0; k < v->rank; k++)
			*to += i[k] * v->strides[k];
		to++;
		for (axis = v->rank - 1; axis >= 0 && ++i[axis] == v->dims[axis]; axis--)
			i[axis] = 0;
	}
}

// Views with few distinct strides, so that many axes merge: all keep the order of their elements,
// and no neighbouring axes that could be merged remain.
static void at_random(void)
{
	enum { VIEWS = 3, ELEMENTS = 6561 };
	static int64_t before[VIEWS][ELEMENTS], after[ELEMENTS];
	int bad = 0, left = 0, merged = 0;
	for (int round = 0; round < 3000; round++) {
		struct yoke_view v[VIEWS];
		const int rank = (int)rnd_int(0, YOKE_MAX_RANK);
		int64_t dims[YOKE_MAX_RANK], n = 1;
		for (int i = 0; i < rank; i++)
			n *= dims[i] = rnd_int(1, 3);
		for (int k = 0; k < VIEWS; k++) {
			v[k] = (struct yoke_view){ .kind = YOKE_VIEW_BUFFER,
						   .rank = (uint8_t)rank };
			int64_t at = 1;
			for (int i = rank - 1; i >= 0; i--) {
				v[k].dims[i] = dims[i];
				v[k].strides[i] = at;
				at *= rnd_int(0, 9) ? dims[i] : 2;
			}
			walk(&v[k], before[k]);
		}
		struct yoke_op op = { .size = sizeof op,
				      .code = YOKE_OP_MAP,
				      .nout = 1,
				      .nin = VIEWS - 1,
				      .rank = (uint8_t)rank };
		memcpy(op.dims, dims, sizeof *dims * (size_t)rank);
		yk_merge_axes(&op, v, v + 1);
		for (int k = 0; k < VIEWS; k++) {
			walk(&v[k], after);
			bad += memcmp(before[k], after, (size_t)n * sizeof n) != 0 ||
			       v[k].rank != op.rank;
		}
		for (int i = 0; i + 1 < op.rank; i++) {
			bool runs = true;
			for (int k = 0; k < VIEWS; k++)
				runs &= v[k].strides[i] == v[k].strides[i + 1] * v[k].dims[i + 1];
			left += runs;
		}
		merged += op.rank < rank;
	}
	ok(!bad, "merging keeps elements and their order: %d views differ", bad);
	ok(!left && merged > 1000, "%d of 3000 views have fewer axes, %d could have fewer still",
	   merged, left);
}

int main(void)
{
	tap_seed();
	table();
	at_random();
	return done();
}
