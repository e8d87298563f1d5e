// SPDX-License-Identifier: Apache-2.0
// Cases of data movement: MOVE, CHECK, SLICE_AT, SLICE_UPDATE_AT, GATHER, GATHER_ALONG, SORT.
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "conform/draw_program.h"

static int draw_dims(struct yk_case *c, int64_t *dims, int min_rank, int64_t max)
{
	int rank = (int)yk_draw_int(c, min_rank, yk_draw_one_in(c, 5) ? 6 : 3);
	for (int d = rank - 1; d >= 0; d--) {
		dims[d] = yk_draw_size(c, max);
		max /= dims[d];
	}
	if (rank && !yk_case_plain(c) && yk_draw_one_in(c, 24))
		dims[yk_draw_int(c, 0, rank - 1)] = 0;
	return rank;
}

// Element i of result `out` is exactly the number x.
static void want(struct yk_case *c, uint32_t out, int64_t i, struct yk_num x)
{
	c->array[out].want[i] = (struct yk_expected){ .f = x.f, .i = x.i };
}

// A matrix transpose with sizes around tile sizes.
static bool make_turn(struct yk_case *c, int dtype)
{
	static const int64_t edge[] = { 1, 7, 8, 9, 31, 33, 63, 64, 65, 127, 257 };
	enum { EDGES = sizeof edge / sizeof *edge };
	const int64_t m = edge[yk_draw(c) % EDGES], n = edge[yk_draw(c) % EDGES];

	yk_case_out(c, dtype, 2, (int64_t[]){ m, n }, YK_DENSE);
	uint32_t x = yk_case_in(c, dtype, 2, (int64_t[]){ n, m }, YK_DENSE, 0, 9);
	struct yoke_view *v = &c->view[x];
	v->dims[0] = m, v->dims[1] = n;
	v->strides[1] = v->strides[0], v->strides[0] = 1;
	for (int64_t i = 0; i < m * n; i++)
		want(c, 0, i, c->array[x].num[i % n * m + i / n]);
	yk_case_note(c, "turned");
	return true;
}

bool yk_make_move(struct yk_case *c, int dtype)
{
	int64_t dims[YOKE_MAX_RANK];

	yk_case_op(c, YOKE_OP_MOVE);
	if (c->number % 4 == 1)
		return make_turn(c, dtype);
	int rank = draw_dims(c, dims, 0, 40000);
	yk_case_out(c, dtype, rank, dims, YK_ANY);
	uint32_t x = yk_draw_one_in(c, 2) ?
			     yk_case_in_by(c, dtype, rank, dims, YK_ANY, yk_draw_wild) :
			     yk_case_in(c, dtype, rank, dims,
					YK_ANY | YK_REPEATED | YK_OR_SCALAR, 0, 9);
	for (int64_t i = 0; i < c->array[x].n; i++)
		want(c, 0, i, c->array[x].num[i]);
	return true;
}

bool yk_make_check(struct yk_case *c, int dtype)
{
	int64_t dims[YOKE_MAX_RANK];

	yk_case_op(c, YOKE_OP_CHECK);
	int rank = draw_dims(c, dims, 0, 20000);
	uint32_t y = yk_case_out(c, dtype, rank, dims, YK_ANY);
	struct yk_num *num = yk_case_alloc(c, (uint64_t)c->array[y].n * sizeof *num);
	for (int64_t i = 0; i < c->array[y].n; i++)
		num[i].f = yk_num_round(yk_draw_real(c, -9, 9), dtype);
	if (c->array[y].n && yk_draw_one_in(c, 4)) {
		num[yk_draw_int(c, 0, c->array[y].n - 1)].f =
			yk_draw_one_in(c, 2) ? NAN : INFINITY;
		c->rejects = true;
	}
	uint32_t x = yk_case_in_of(c, dtype, rank, dims, YK_ANY, num);
	for (int64_t i = 0; i < c->array[x].n; i++)
		want(c, y, i, c->array[x].num[i]);
	if (yk_draw_one_in(c, 3))
		yk_case_alias(c, y, x, 0);
	return true;
}

// ---- slices with dynamic starts ----

// Draws a slice's extents and start; *given: which starts are operands, the others are 0.
static void draw_part(struct yk_case *c, int rank, const int64_t *whole, int64_t *part,
		      int64_t *start, bool *given)
{
	for (int d = 0; d < rank; d++) {
		given[d] = !yk_draw_one_in(c, 3);
		part[d] = whole[d] ? yk_draw_int(c, 1, whole[d]) : 0;
		start[d] = given[d] ? yk_draw_int(c, 0, whole[d] - part[d]) : 0;
	}
	if (rank && given[0] && yk_draw_one_in(c, 10)) {
		start[0] = yk_draw_one_in(c, 2) ? -1 : whole[0] - part[0] + 1;
		c->rejects = true;
	}
}

static void add_starts(struct yk_case *c, int rank, const int64_t *start,
		       const bool *given)
{
	for (int d = 0; d < rank; d++)
		if (given[d])
			yk_case_value(c, yoke_i64, (struct yk_num){ .i = start[d] });
		else
			yk_case_none(c);
}

// Row-major index in `whole` of element i of the slice.
static int64_t part_index(int rank, const int64_t *whole, const int64_t *part,
			  const int64_t *start, int64_t i)
{
	int64_t at = 0, step = 1;
	for (int d = rank - 1; d >= 0; d--) {
		at += (i % part[d] + start[d]) * step;
		i /= part[d];
		step *= whole[d];
	}
	return at;
}

bool yk_make_slice_at(struct yk_case *c, int dtype)
{
	int64_t whole[YOKE_MAX_RANK], part[YOKE_MAX_RANK], start[YOKE_MAX_RANK];
	bool given[YOKE_MAX_RANK];

	yk_case_op(c, YOKE_OP_SLICE_AT);
	int rank = draw_dims(c, whole, 1, 20000);
	draw_part(c, rank, whole, part, start, given);
	uint32_t y = yk_case_out(c, dtype, rank, part, YK_ANY);
	uint32_t x = yk_case_in(c, dtype, rank, whole, YK_ANY | YK_REPEATED, 0, 9);
	add_starts(c, rank, start, given);
	for (int64_t i = 0; i < c->array[y].n && !c->rejects; i++)
		want(c, y, i, c->array[x].num[part_index(rank, whole, part, start, i)]);
	return true;
}

bool yk_make_slice_update_at(struct yk_case *c, int dtype)
{
	int64_t whole[YOKE_MAX_RANK], part[YOKE_MAX_RANK], start[YOKE_MAX_RANK];
	bool given[YOKE_MAX_RANK];

	yk_case_op(c, YOKE_OP_SLICE_UPDATE_AT);
	int rank = draw_dims(c, whole, 1, 20000);
	draw_part(c, rank, whole, part, start, given);
	uint32_t y = yk_case_out(c, dtype, rank, whole, YK_ANY);
	uint32_t x = yk_case_in(c, dtype, rank, whole, YK_ANY | YK_REPEATED, 0, 9);
	add_starts(c, rank, start, given);
	uint32_t v = yk_case_in(c, dtype, rank, part, YK_ANY | YK_REPEATED, 10, 19);
	for (int64_t i = 0; i < c->array[y].n; i++)
		want(c, y, i, c->array[x].num[i]);
	for (int64_t i = 0; i < c->array[v].n && !c->rejects; i++)
		want(c, y, part_index(rank, whole, part, start, i), c->array[v].num[i]);
	if (yk_draw_one_in(c, 2))
		yk_case_alias(c, y, x, 0);
	return true;
}

// ---- indices ----

static struct yk_num *draw_indices(struct yk_case *c, int64_t count, int64_t n)
{
	struct yk_num *idx = yk_case_alloc(c, (uint64_t)count * sizeof *idx);
	for (int64_t i = 0; i < count; i++)
		idx[i].i = yk_draw_int(c, 0, n - 1);
	if (count && yk_draw_one_in(c, 12)) {
		idx[yk_draw_int(c, 0, count - 1)].i = yk_draw_one_in(c, 2) ? -1 : n;
		c->rejects = true;
	}
	return idx;
}

bool yk_make_gather(struct yk_case *c, int dtype)
{
	int64_t xd[YOKE_MAX_RANK], id[2], yd[YOKE_MAX_RANK];
	int itype = yk_draw_one_in(c, 2) ? yoke_i32 : yoke_i64, k = 0;
	int64_t outer = 1, inner = 1, count = 1;

	yk_case_op(c, YOKE_OP_GATHER);
	int rank = (int)yk_draw_int(c, 1, 3), irank = (int)yk_draw_int(c, 0, 2);
	int axis = yk_case_plain(c) ? 0 : (int)yk_draw_int(c, 0, rank - 1);
	for (int d = 0; d < rank; d++)
		xd[d] = yk_draw_size(c, d == axis ? 300 : 65);
	for (int d = 0; d < irank; d++)
		id[d] = yk_draw_one_in(c, 24) ? 0 : yk_draw_size(c, 20);
	for (int d = 0; d < rank; d++) {
		if (d == axis)
			for (int e = 0; e < irank; e++)
				yd[k++] = id[e], count *= id[e];
		else
			yd[k++] = xd[d], *(d < axis ? &outer : &inner) *= xd[d];
	}
	uint32_t y = yk_case_out(c, dtype, k, yd, YK_ANY);
	uint32_t x = yk_case_in(c, dtype, rank, xd, YK_ANY | YK_REPEATED, 0, 100);
	uint32_t idx = yk_case_in_of(c, itype, irank, id, YK_ANY,
				     draw_indices(c, count, xd[axis]));
	c->op.nattr = 1;
	c->op.attr[0].i = axis;
	for (int64_t o = 0; o < outer && !c->rejects; o++)
		for (int64_t i = 0; i < count; i++)
			for (int64_t r = 0; r < inner; r++)
				want(c, y, (o * count + i) * inner + r,
				     c->array[x].num[(o * xd[axis] +
						      c->array[idx].num[i].i) *
							     inner +
						     r]);
	return true;
}

bool yk_make_gather_along(struct yk_case *c, int dtype)
{
	int64_t xd[YOKE_MAX_RANK], id[YOKE_MAX_RANK], inner = 1;
	int itype = yk_draw_one_in(c, 2) ? yoke_i32 : yoke_i64;

	yk_case_op(c, YOKE_OP_GATHER_ALONG);
	int rank = (int)yk_draw_int(c, 1, 3), axis = (int)yk_draw_int(c, 0, rank - 1);
	for (int d = 0; d < rank; d++)
		xd[d] = id[d] = yk_draw_size(c, 33);
	xd[axis] = yk_draw_size(c, 130);
	id[axis] = yk_draw_one_in(c, 24) ? 0 : yk_draw_size(c, 40);
	for (int d = axis + 1; d < rank; d++)
		inner *= xd[d];
	uint32_t y = yk_case_out(c, dtype, rank, id, YK_ANY);
	uint32_t x = yk_case_in(c, dtype, rank, xd, YK_ANY | YK_REPEATED, 0, 100);
	uint32_t idx = yk_case_in_of(c, itype, rank, id, YK_ANY,
				     draw_indices(c, yk_count_of(rank, id), xd[axis]));
	c->op.nattr = 1;
	c->op.attr[0].i = axis;
	for (int64_t i = 0; i < c->array[y].n && !c->rejects; i++) {
		int64_t o = i / inner / id[axis], r = i % inner;
		want(c, y, i,
		     c->array[x]
			     .num[(o * xd[axis] + c->array[idx].num[i].i) * inner + r]);
	}
	return true;
}

// ---- SORT ----

struct key {
	struct yk_num x;
	int64_t at;
	bool real, down;
};

// Stable order with NaN last in both directions and -0 equal to 0.
static int by_value(const void *va, const void *vb)
{
	const struct key *a = va, *b = vb;
	int order = a->at < b->at ? -1 : 1;
	if (a->real && (isnan(a->x.f) || isnan(b->x.f)))
		return isnan(a->x.f) && isnan(b->x.f) ? order : isnan(a->x.f) ? 1 : -1;
	int less = a->real ? (a->x.f > b->x.f) - (a->x.f < b->x.f) :
			     (a->x.i > b->x.i) - (a->x.i < b->x.i);
	return less ? (a->down ? -less : less) : order;
}

bool yk_make_sort(struct yk_case *c, int dtype)
{
	int64_t dims[YOKE_MAX_RANK], to[YOKE_MAX_RANK];
	uint32_t none = yk_case_plain(c) || !yk_draw_one_in(c, 4) ?
				2 :
				(uint32_t)yk_draw_int(c, 0, 1);

	yk_case_op(c, YOKE_OP_SORT);
	int rank = draw_dims(c, dims, 1, 4000), last = rank - 1;
	const int64_t n = dims[last];
	int64_t k = yk_draw_one_in(c, 2) ? n : yk_draw_int(c, 0, n);
	for (int d = 0; d < rank; d++)
		to[d] = d == last ? k : dims[d];
	for (uint32_t i = 0; i < 2; i++) {
		yk_case_out(c, i ? yoke_i64 : dtype, rank, to, YK_ANY);
		if (i == none) // result not requested
			c->view[i] = (struct yoke_view){ .kind = YOKE_VIEW_NONE };
	}
	uint32_t x = yk_draw_one_in(c, 2) ?
			     yk_case_in_by(c, dtype, rank, dims, YK_ANY, yk_draw_wild) :
			     yk_case_in(c, dtype, rank, dims, YK_ANY | YK_REPEATED, 0, 9);
	c->op.nattr = 2;
	c->op.attr[0].i = k;
	c->op.attr[1].i = yk_draw_one_in(c, 2);
	struct key *key = yk_case_alloc(c, (uint64_t)n * sizeof *key);
	for (int64_t r = 0, rows = n ? c->array[x].n / n : 0; r < rows; r++) {
		for (int64_t i = 0; i < n; i++)
			key[i] = (struct key){ c->array[x].num[r * n + i], i,
					       yk_num_real(dtype), c->op.attr[1].i };
		qsort(key, (size_t)n, sizeof *key, by_value);
		for (int64_t i = 0; i < k; i++) {
			want(c, 0, r * k + i, key[i].x);
			want(c, 1, r * k + i, (struct yk_num){ .i = key[i].at });
		}
	}
	yk_case_note(c, "k %lld%s", (long long)k, c->op.attr[1].i ? " down" : "");
	return true;
}
