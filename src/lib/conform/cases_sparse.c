// SPDX-License-Identifier: Apache-2.0
// Cases of SPARSE and its gradients, and of CUM_ARG; references are loops over the definitions.
#include "config.h"

#include <math.h>

#include "conform/case.h"

// ---- sparse matrices ----

struct sparse {
	int64_t groups, before, columns, rows, after, entries;
	bool shared, weights, max, rejects;
	struct yk_num *idx, *first; // first NULL: rows of equal length
};

static struct sparse draw(struct yk_case *c, bool max)
{
	const int64_t many = yk_case_large(c) ? 300 : 12;
	struct sparse s = { .groups = yk_draw_int(c, 1, 3),
			    .before = yk_draw_size(c, yk_draw_one_in(c, 3) ? 19 : 4),
			    .columns = yk_draw_size(c, many),
			    .rows = yk_draw_size(c, many),
			    .after = yk_draw_one_in(c, 2) ? 1 : yk_draw_size(c, 20),
			    .shared = yk_draw_one_in(c, 2),
			    .weights = !max && !yk_draw_one_in(c, 3),
			    .max = max };
	if (yk_draw_one_in(c, 2)) {
		s.first = yk_case_alloc(c, (uint64_t)(s.rows + 1) * sizeof *s.first);
		s.first[0].i = yk_draw_int(c, 0, 1);
		for (int64_t i = 0; i < s.rows; i++)
			s.first[i + 1].i = s.first[i].i + yk_draw_int(c, 0, 4);
		s.entries = s.first[s.rows].i + yk_draw_int(c, 0, 2);
	} else {
		s.entries = s.rows * yk_draw_int(c, 1, 5);
	}
	const int64_t n = (s.shared ? 1 : s.groups) * s.entries;
	s.idx = yk_case_alloc(c, (uint64_t)n * sizeof *s.idx);
	for (int64_t i = 0; i < n; i++)
		s.idx[i].i = yk_draw_one_in(c, 8) ? -1 : yk_draw_int(c, 0, s.columns - 1);
	if (n && yk_draw_one_in(c, 12)) {
		s.idx[yk_draw_int(c, 0, n - 1)].i = yk_draw_one_in(c, 2) ? -2 : s.columns;
		s.rejects = true;
	}
	return s;
}

static uint32_t tensor(struct yk_case *c, const struct sparse *s, int dtype, int64_t n, bool out)
{
	const int64_t dims[] = { s->groups, s->before, n, s->after };
	return out ? yk_case_out(c, dtype, 4, dims, YK_ANY) :
		     yk_case_in(c, dtype, 4, dims, YK_ANY, -1, 1);
}

// Adds idx, w unless there is none of it, and first.
static const struct yk_num *matrix(struct yk_case *c, const struct sparse *s, int dtype, bool w)
{
	const int64_t dims[] = { s->shared ? 1 : s->groups, s->entries }, rows = s->rows + 1;
	uint32_t at = 0;
	yk_case_in_of(c, yk_draw_one_in(c, 2) ? yoke_i32 : yoke_i64, 2, dims, YK_DENSE, s->idx);
	if (w && s->weights)
		at = yk_case_in(c, dtype, 2, dims, YK_DENSE, -1, 1);
	else if (w)
		yk_case_none(c);
	if (s->first)
		yk_case_in_of(c, yoke_i64, 1, &rows, YK_DENSE, s->first);
	else
		yk_case_none(c);
	return at ? c->array[at].num : NULL;
}

// Calls fn for each product, with the indices in x, y and w.
typedef void each_fn(void *arg, int64_t x, int64_t y, int64_t w);

static void each(const struct sparse *s, each_fn *fn, void *arg)
{
	for (int64_t lead = 0; lead < s->groups * s->before; lead++)
		for (int64_t i = 0; i < s->rows; i++) {
			const int64_t taps = s->entries / s->rows,
				      m0 = s->first ? s->first[i].i : i * taps;
			const int64_t m1 = s->first ? s->first[i + 1].i : (i + 1) * taps;
			for (int64_t m = m0; m < m1; m++) {
				const int64_t w = (s->shared ? 0 : lead / s->before * s->entries) +
						  m,
					      column = s->idx[w].i;
				for (int64_t r = 0; r < s->after && column >= 0; r++)
					fn(arg, (lead * s->columns + column) * s->after + r,
					   (lead * s->rows + i) * s->after + r, w);
			}
		}
}

struct sums {
	const struct yk_num *x, *y, *w; // NULL: ones
	char to;                        // 'x', 'y' or 'w'
	double *sum, *size;
	bool max;
};

static void add(void *arg, int64_t x, int64_t y, int64_t w)
{
	const struct sums *s = arg;
	double v = 1;
	int64_t at = w;
	if (s->to != 'w' && s->w)
		v *= s->w[w].f;
	if (s->to != 'x')
		v *= s->x[x].f;
	if (s->to != 'y')
		v *= s->y[y].f;
	if (s->to != 'w')
		at = s->to == 'x' ? x : y;
	if (s->max) {
		s->sum[at] = fmax(s->sum[at], v);
		return;
	}
	s->sum[at] += v;
	s->size[at] += fabs(v);
}

static void conclude(struct yk_case *c, const struct sparse *s, uint32_t out, int dtype,
		     struct sums *t)
{
	const int64_t n = c->array[out].n;
	if (c->rejects)
		return;
	t->sum = yk_case_alloc(c, (uint64_t)n * sizeof(double));
	t->size = yk_case_alloc(c, (uint64_t)n * sizeof(double));
	for (int64_t i = 0; i < n && t->max; i++)
		t->sum[i] = -INFINITY;
	each(s, add, t);
	const double terms = (double)(s->entries + s->groups * s->before * s->after + 4);
	for (int64_t i = 0; i < n; i++)
		yk_expect_real(&c->array[out].want[i], dtype, t->sum[i],
			       t->max ? 0 : terms * yk_num_unit(dtype) * t->size[i]);
}

bool yk_make_sparse(struct yk_case *c, int dtype)
{
	const struct sparse s = draw(c, yk_draw_one_in(c, 4));
	yk_case_op(c, YOKE_OP_SPARSE);
	c->rejects = s.rejects;
	const uint32_t y = tensor(c, &s, dtype, s.rows, true),
		       x = tensor(c, &s, dtype, s.columns, false);
	const struct yk_num *w = matrix(c, &s, dtype, true);
	c->op.nattr = 2;
	c->op.attr[0].i = s.rows;
	c->op.attr[1].i = s.max;
	conclude(c, &s, y, dtype,
		 &(struct sums){ .x = c->array[x].num, .w = w, .to = 'y', .max = s.max });
	return true;
}

bool yk_make_sparse_x(struct yk_case *c, int dtype)
{
	const struct sparse s = draw(c, false);
	yk_case_op(c, YOKE_OP_SPARSE_X);
	c->rejects = s.rejects;
	const uint32_t x = tensor(c, &s, dtype, s.columns, true),
		       y = tensor(c, &s, dtype, s.rows, false);
	const struct yk_num *w = matrix(c, &s, dtype, true);
	c->op.nattr = 1;
	c->op.attr[0].i = s.columns;
	conclude(c, &s, x, dtype, &(struct sums){ .y = c->array[y].num, .w = w, .to = 'x' });
	return true;
}

bool yk_make_sparse_w(struct yk_case *c, int dtype)
{
	const struct sparse s = draw(c, false);
	const int64_t dims[] = { s.shared ? 1 : s.groups, s.entries };
	yk_case_op(c, YOKE_OP_SPARSE_W);
	c->rejects = s.rejects;
	const uint32_t w = yk_case_out(c, dtype, 2, dims, YK_DENSE);
	const uint32_t x = tensor(c, &s, dtype, s.columns, false),
		       y = tensor(c, &s, dtype, s.rows, false);
	matrix(c, &s, dtype, false);
	conclude(c, &s, w, dtype,
		 &(struct sums){ .x = c->array[x].num, .y = c->array[y].num, .to = 'w' });
	return true;
}

// ---- places of running maxima ----

static struct yk_num draw_few(struct yk_case *c, int dtype, int64_t index)
{
	const int64_t v = yk_draw_int(c, 0, 4);
	(void)index;
	if (dtype < yoke_f32 || dtype > yoke_bf16)
		return (struct yk_num){ .i = v };
	return (struct yk_num){ .f = yk_draw_one_in(c, 40) ? NAN : (double)v };
}

bool yk_make_cum_arg(struct yk_case *c, int dtype)
{
	const int64_t dims[] = { yk_draw_size(c, 5), yk_draw_size(c, yk_case_large(c) ? 3000 : 60),
				 yk_draw_one_in(c, 2) ? 1 : yk_draw_size(c, 90) };
	const bool max = yk_draw_one_in(c, 2), real = dtype >= yoke_f32 && dtype <= yoke_bf16;
	yk_case_op(c, YOKE_OP_CUM_ARG);
	const uint32_t y = yk_case_out(c, yoke_i64, 3, dims, YK_ANY),
		       x = yk_case_in_by(c, dtype, 3, dims, YK_ANY, draw_few);
	c->op.nattr = 2;
	c->op.attr[0].i = 1;
	c->op.attr[1].i = max ? YOKE_REDUCE_ARGMAX : YOKE_REDUCE_ARGMIN;
	for (int64_t k = 0; k < dims[0] * dims[2]; k++) {
		const int64_t line = k / dims[2] * dims[1] * dims[2] + k % dims[2];
		double best = 0;
		int64_t place = 0;
		for (int64_t i = 0; i < dims[1]; i++) {
			const struct yk_num n = c->array[x].num[line + i * dims[2]];
			const double v = real ? n.f : (double)n.i;
			if (!i || isnan(v) || (max ? v >= best : v <= best)) {
				best = v;
				place = i;
			}
			yk_expect_int(&c->array[y].want[line + i * dims[2]], place);
		}
	}
	return true;
}
