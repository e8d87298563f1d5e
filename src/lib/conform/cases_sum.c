// SPDX-License-Identifier: Apache-2.0
// Cases of sums other than REDUCE: SCATTER_ADD, SCATTER_ADD_ALONG, SCAN.
#include "config.h"

#include <math.h>

#include "conform/case.h"

// The running sum of one element.
struct total {
	long double f; // for sums of f64
	double abs;
	uint64_t i;
	int64_t n;
};

static void add(struct total *t, struct yk_num x)
{
	t->f += x.f;
	t->abs += fabs(x.f);
	t->i += (uint64_t)x.i;
	t->n++;
}

static void finish(struct yk_expected *w, const struct total *t, int dtype)
{
	const double unit = 2 * yk_num_unit(yk_num_acc(dtype));
	if (yk_num_real(
		    dtype)) // repeated values: all may round alike
		yk_expect_real(w, dtype, (double)t->f,
			     (2 + (double)t->n / 2) * unit * t->abs);
	else
		yk_expect_int(w, yk_num_wrap(t->i, dtype));
}

static struct yk_num *draw_indices(struct yk_case *c, int64_t count, int64_t n)
{
	struct yk_num *idx = yk_case_alloc(c, (uint64_t)count * sizeof *idx);
	bool few = yk_draw_one_in(c, 3); // many terms are added to the same element
	for (int64_t i = 0; i < count; i++)
		idx[i].i = yk_draw_int(c, 0, few && n > 2 ? 2 : n - 1);
	if (count && yk_draw_one_in(c, 12)) {
		idx[yk_draw_int(c, 0, count - 1)].i = yk_draw_one_in(c, 2) ? -1 : n;
		c->rejects = true;
	}
	return idx;
}

bool yk_make_scatter_add(struct yk_case *c, int dtype)
{
	int64_t yd[YOKE_MAX_RANK], id[2], vd[YOKE_MAX_RANK], count = 1, inner = 1;
	int itype = yk_draw_one_in(c, 2) ? yoke_i32 : yoke_i64;
	const double min = dtype == yoke_u8 ? 0 : -3;

	yk_case_op(c, YOKE_OP_SCATTER_ADD);
	int rank = (int)yk_draw_int(c, 1, 3), irank = (int)yk_draw_int(c, 0, 2);
	for (int d = 0; d < rank; d++)
		yd[d] = yk_draw_size(c, d ? 130 / rank : 300);
	for (int d = 0; d < irank; d++)
		id[d] = vd[d] = yk_draw_one_in(c, 24) ? 0 : yk_draw_size(c, 33);
	for (int d = 1; d < rank; d++) {
		vd[irank + d - 1] = yd[d];
		inner *= yd[d];
	}
	count = yk_count_of(irank, id);
	uint32_t y = yk_case_out(c, dtype, rank, yd, YK_DENSE);
	uint32_t x = yk_draw_one_in(c, 2) ?
			     yk_case_in(c, dtype, rank, yd, YK_DENSE, min, 3) :
			     yk_case_none(c);
	uint32_t idx =
		yk_case_in_of(c, itype, irank, id, YK_ANY, draw_indices(c, count, yd[0]));
	uint32_t v = yk_case_in(c, dtype, irank + rank - 1, vd, YK_DENSE, min, 3);
	struct total *t = yk_case_alloc(c, (uint64_t)c->array[y].n * sizeof *t);
	for (int64_t i = 0; i < c->array[y].n && c->array[x].num; i++)
		add(&t[i], c->array[x].num[i]);
	for (int64_t i = 0; i < count && !c->rejects; i++)
		for (int64_t r = 0; r < inner; r++)
			add(&t[c->array[idx].num[i].i * inner + r],
			    c->array[v].num[i * inner + r]);
	for (int64_t i = 0; i < c->array[y].n; i++)
		finish(&c->array[y].want[i], &t[i], dtype);
	if (c->array[x].num && yk_draw_one_in(c, 2))
		yk_case_alias(c, y, x, 0);
	return true;
}

bool yk_make_scatter_add_along(struct yk_case *c, int dtype)
{
	int64_t yd[YOKE_MAX_RANK], id[YOKE_MAX_RANK], inner = 1;
	int itype = yk_draw_one_in(c, 2) ? yoke_i32 : yoke_i64;
	const double min = dtype == yoke_u8 ? 0 : -3;

	yk_case_op(c, YOKE_OP_SCATTER_ADD_ALONG);
	int rank = (int)yk_draw_int(c, 1, 3), axis = (int)yk_draw_int(c, 0, rank - 1);
	for (int d = 0; d < rank; d++)
		yd[d] = id[d] = yk_draw_size(c, 33);
	yd[axis] = yk_draw_size(c, 130);
	id[axis] = yk_draw_one_in(c, 24) ? 0 : yk_draw_size(c, 40);
	for (int d = axis + 1; d < rank; d++)
		inner *= yd[d];
	uint32_t y = yk_case_out(c, dtype, rank, yd, YK_ANY);
	uint32_t x = yk_draw_one_in(c, 2) ?
			     yk_case_in(c, dtype, rank, yd, YK_ANY, min, 3) :
			     yk_case_none(c);
	uint32_t idx = yk_case_in_of(c, itype, rank, id, YK_ANY,
				     draw_indices(c, yk_count_of(rank, id), yd[axis]));
	uint32_t v = yk_case_in(c, dtype, rank, id, YK_ANY | YK_REPEATED, min, 3);
	c->op.nattr = 2;
	c->op.attr[0].i = axis;
	c->op.attr[1].i = yd[axis];
	struct total *t = yk_case_alloc(c, (uint64_t)c->array[y].n * sizeof *t);
	for (int64_t i = 0; i < c->array[y].n && c->array[x].num; i++)
		add(&t[i], c->array[x].num[i]);
	for (int64_t i = 0; i < c->array[v].n && !c->rejects; i++) {
		int64_t o = i / inner / id[axis], r = i % inner;
		add(&t[(o * yd[axis] + c->array[idx].num[i].i) * inner + r],
		    c->array[v].num[i]);
	}
	for (int64_t i = 0; i < c->array[y].n; i++)
		finish(&c->array[y].want[i], &t[i], dtype);
	if (c->array[x].num && yk_draw_one_in(c, 2))
		yk_case_alias(c, y, x, 0);
	return true;
}

static struct yk_num near_one(struct yk_case *c, int dtype, int64_t index)
{
	(void)index;
	if (!yk_num_real(dtype))
		return (struct yk_num){ .i = 1 + (dtype == yoke_u8 ? 2 : -2) *
							 yk_draw_one_in(c, 5) };
	return (struct yk_num){ .f = yk_num_round(yk_draw_real(c, 0.95, 1.05), dtype) };
}

bool yk_make_scan(struct yk_case *c, int dtype)
{
	int64_t dims[3], inner = 1;
	bool large = yk_case_large(c), prod = c->number % 4 == 1, back = yk_draw_one_in(c, 2);

	yk_case_op(c, YOKE_OP_SCAN);
	int rank = (int)yk_draw_int(c, 1, 3), axis = (int)yk_draw_int(c, 0, rank - 1);
	for (int d = 0; d < rank; d++)
		dims[d] = yk_draw_size(c, d == axis ? (prod ? 130 : 2100) :
					  rank == 3 ? 9 :
						      65);
	for (int d = 0; d < rank && large; d++) // few long lines, each of which is split
		dims[d] = d == axis ? yk_draw_int(c, 1 << 17, 150000) : yk_draw_int(c, 1, 2);
	if (!yk_case_plain(c) && yk_draw_one_in(c, 24))
		dims[0] = 0;
	for (int d = axis + 1; d < rank; d++)
		inner *= dims[d];
	uint32_t y = yk_case_out(c, dtype, rank, dims, YK_ANY);
	uint32_t x = prod ? yk_case_in_by(c, dtype, rank, dims, YK_ANY, near_one) :
			    yk_case_in(c, dtype, rank, dims, YK_ANY | YK_REPEATED,
				       dtype == yoke_u8 || large ? 0 : -3, 3);
	c->op.nattr = 3;
	c->op.attr[0].i = axis;
	c->op.attr[1].i = prod ? YOKE_REDUCE_PROD : YOKE_REDUCE_SUM;
	c->op.attr[2].i = back;
	const int64_t n = dims[axis], lines = n ? c->array[y].n / n : 0;
	const double unit = 2 * yk_num_unit(yk_num_acc(dtype));
	for (int64_t line = 0; line < lines; line++) {
		struct total t = { .i = 0 };
		double p = 1;
		uint64_t q = 1;
		for (int64_t s = 0; s < n; s++) {
			int64_t k = back ? n - 1 - s : s;
			int64_t at = (line / inner * n + k) * inner + line % inner;
			struct yk_num e = c->array[x].num[at];
			struct yk_expected *w = &c->array[y].want[at];
			add(&t, e);
			p *= e.f;
			q *= (uint64_t)e.i;
			if (!prod)
				finish(w, &t, dtype);
			else if (yk_num_real(dtype))
				yk_expect_real(w, dtype, p,
					     (double)(s + 2) * unit * fabs(p));
			else
				yk_expect_int(w, yk_num_wrap(q, dtype));
		}
	}
	if (yk_draw_one_in(c, 3))
		yk_case_alias(c, y, x, 0);
	yk_case_note(c, "axis %d%s%s", axis, prod ? " prod" : "",
		     back ? " from the end" : "");
	return true;
}
