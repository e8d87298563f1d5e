// SPDX-License-Identifier: Apache-2.0
// Cases of a paged cache: PAGED_ATTENTION, SCATTER_SET.
#include "config.h"

#include <math.h>

#include "conform/case.h"

enum { PAGE = 16 };

struct paged {
	int64_t T, H, G, D, pages, rows, M, window;
	double scale, cap;
	struct yk_num *table, *row, *pos;
	uint32_t q, k, v;
};

static struct paged draw(struct yk_case *c)
{
	struct paged p = { .T = yk_draw_one_in(c, 4) ? yk_draw_int(c, 64, 80) : yk_draw_size(c, 40),
			   .G = yk_draw_int(c, 1, 3),
			   .D = yk_draw_size(c, 70),
			   .rows = yk_draw_int(c, 1, 5),
			   .M = yk_draw_int(c, 1, yk_case_large(c) ? 40 : 5),
			   .scale = yk_draw_real(c, 0.1, 1) };
	p.H = p.G * yk_draw_int(c, 1, 5);
	p.pages = p.rows * p.M + yk_draw_int(c, 0, 3);
	p.window = yk_draw_one_in(c, 3) ? yk_draw_int(c, 1, 2 * PAGE) : 0;
	p.cap = yk_draw_one_in(c, 3) ? yk_draw_real(c, 0.5, 4) : 0;
	p.table = yk_case_alloc(c, (uint64_t)(p.rows * p.M) * sizeof *p.table);
	p.row = yk_case_alloc(c, (uint64_t)p.T * sizeof *p.row);
	p.pos = yk_case_alloc(c, (uint64_t)p.T * sizeof *p.pos);
	for (int64_t i = 0; i < p.rows * p.M; i++)
		p.table[i].i = p.pages - 1 - i;
	for (int64_t i = p.rows * p.M - 1; i > 0; i--) {
		const int64_t k = yk_draw_int(c, 0, i);
		const struct yk_num other = p.table[k];
		p.table[k] = p.table[i];
		p.table[i] = other;
	}
	for (int64_t t = 0; t < p.T; t++) {
		const bool follows = t && !yk_draw_one_in(c, 4) && p.row[t - 1].i >= 0 &&
				     p.pos[t - 1].i + 1 < p.M * PAGE;
		p.row[t].i = follows ? p.row[t - 1].i : yk_draw_int(c, -1, p.rows - 1);
		p.pos[t].i = follows ? p.pos[t - 1].i + 1 : yk_draw_int(c, 0, p.M * PAGE - 1);
	}
	return p;
}

static bool sees(const struct paged *p, int64_t t, int64_t s)
{
	return p->row[t].i >= 0 && s <= p->pos[t].i && (!p->window || s > p->pos[t].i - p->window);
}

// Index of position s of a query's sequence among all positions of the cache.
static int64_t place(const struct paged *p, int64_t t, int64_t s)
{
	return p->table[p->row[t].i * p->M + s / PAGE].i * PAGE + s % PAGE;
}

// A cache with NaN where no query looks.
static uint32_t add_cache(struct yk_case *c, int dtype, const struct paged *p)
{
	const int64_t dims[] = { p->pages, PAGE, p->G, p->D }, each = p->G * p->D;
	struct yk_num *num = yk_case_alloc(c, (uint64_t)(p->pages * PAGE * each) * sizeof *num);
	for (int64_t i = 0; i < p->pages * PAGE * each; i++)
		num[i].f = NAN;
	for (int64_t t = 0; t < p->T; t++)
		for (int64_t s = 0; s < p->M * PAGE; s++)
			for (int64_t i = 0; sees(p, t, s) && i < each; i++) {
				struct yk_num *to = &num[place(p, t, s) * each + i];
				if (isnan(to->f))
					to->f = yk_num_round(yk_draw_real(c, -2, 2), dtype);
			}
	return yk_case_in_of(c, dtype, 4, dims, YK_ROWS, num);
}

static const struct yk_num *key(const struct yk_case *c, const struct paged *p, uint32_t k,
				int64_t t, int64_t s, int64_t g)
{
	return c->array[k].num + (place(p, t, s) * p->G + g) * p->D;
}

// One query of one head.
static void attend(struct yk_case *c, const struct paged *p, int dtype, int64_t t, int64_t h,
		   double *w)
{
	const double unit = 2 * yk_num_unit(yk_num_acc(dtype)),
		     rounds = yk_case_rounding(c->tf32, yk_num_acc(dtype));
	const struct yk_num *q = c->array[p->q].num + (t * p->H + h) * p->D;
	const int64_t g = h / (p->H / p->G), n = p->M * PAGE;
	double max = -INFINITY, sum = 0, lost = 0;
	for (int64_t s = 0; s < n; s++) {
		double score = 0, abs = 0;
		w[s] = -INFINITY;
		if (!sees(p, t, s))
			continue;
		const struct yk_num *k = key(c, p, p->k, t, s, g);
		for (int64_t d = 0; d < p->D; d++) {
			score += q[d].f * k[d].f;
			abs += fabs(q[d].f * k[d].f);
		}
		abs *= p->scale;
		w[s] = score * p->scale;
		lost = fmax(lost, unit * ((8 + sqrt((double)p->D)) * abs) + rounds * abs);
		if (p->cap > 0) {
			w[s] = p->cap * tanh(w[s] / p->cap);
			lost = fmax(lost, lost + unit * 8 * p->cap);
		}
		max = fmax(max, w[s]);
	}
	for (int64_t s = 0; s < n; s++)
		sum += w[s] = isinf(max) ? 0 : exp(w[s] - max);
	for (int64_t d = 0; d < p->D; d++) {
		double y = 0, abs = 0;
		for (int64_t s = 0; s < n; s++) {
			if (w[s] == 0)
				continue;
			const double v = key(c, p, p->v, t, s, g)[d].f * w[s] / sum;
			y += v;
			abs += fabs(v);
		}
		yk_expect_real(
			&c->array[0].want[(t * p->H + h) * p->D + d], dtype, y,
			(2 * lost + unit * (16 + sqrt((double)n) + max * (max > 0)) + rounds) *
				abs);
	}
}

bool yk_make_paged_attention(struct yk_case *c, int dtype)
{
	static const int narrow[] = { yoke_f32, yoke_f16, yoke_bf16 };
	struct paged p = draw(c);
	const int64_t dims[] = { p.T, p.H, p.D }, table[] = { p.rows, p.M };
	const int cache = dtype == yoke_f64 ? dtype : narrow[yk_draw_int(c, 0, 2)];
	yk_case_op(c, YOKE_OP_PAGED_ATTENTION);
	yk_case_out(c, dtype, 3, dims, YK_ROWS);
	p.q = yk_case_in(c, dtype, 3, dims, YK_ROWS, -2, 2);
	p.k = add_cache(c, cache, &p);
	p.v = add_cache(c, cache, &p);
	double *w = yk_case_alloc(c, (uint64_t)(p.M * PAGE) * sizeof *w);
	for (int64_t t = 0; t < p.T; t++)
		for (int64_t h = 0; h < p.H; h++)
			attend(c, &p, dtype, t, h, w);
	if (yk_draw_one_in(c, 12)) {
		const int64_t t = yk_draw_int(c, 0, p.T - 1);
		c->rejects = true;
		if (p.row[t].i < 0 || yk_draw_one_in(c, 2))
			p.row[t].i = yk_draw_one_in(c, 2) ? -2 : p.rows;
		else
			p.table[p.row[t].i * p.M + p.pos[t].i / PAGE].i =
				yk_draw_one_in(c, 2) ? -1 : p.pages;
	}
	yk_case_in_of(c, yoke_i32, 2, table, YK_DENSE, p.table);
	yk_case_in_of(c, yoke_i32, 1, &p.T, YK_DENSE, p.row);
	yk_case_in_of(c, yoke_i32, 1, &p.T, YK_DENSE, p.pos);
	c->op.nattr = 3;
	c->op.attr[0].f = p.scale;
	c->op.attr[1].i = p.window;
	c->op.attr[2].f = p.cap;
	yk_case_note(c, "%lld heads for %lld, %lld pages each%s%s", (long long)p.H, (long long)p.G,
		     (long long)p.M, p.window ? " window" : "", p.cap > 0 ? " cap" : "");
	return true;
}

bool yk_make_scatter_set(struct yk_case *c, int dtype)
{
	int64_t x[4], v[5];
	const int rank = (int)yk_draw_int(c, 1, 3), irank = (int)yk_draw_int(c, 0, 2),
		  itype = yk_draw_one_in(c, 2) ? yoke_i32 : yoke_i64;
	int64_t each = 1, count = 1;
	yk_case_op(c, YOKE_OP_SCATTER_SET);
	x[0] = yk_draw_size(c, 300);
	for (int d = 1; d < rank; d++)
		each *= x[d] = yk_draw_size(c, 40);
	for (int d = 0; d < irank; d++)
		count *= v[d] = yk_draw_one_in(c, 24) ? 0 : yk_draw_size(c, 12);
	for (int d = 1; d < rank; d++)
		v[irank + d - 1] = x[d];
	struct yk_num *idx = yk_case_alloc(c, (uint64_t)count * sizeof *idx);
	for (int64_t i = 0; i < count; i++)
		idx[i].i = yk_draw_int(c, -1, x[0] - 1);
	if (count && yk_draw_one_in(c, 12)) {
		idx[yk_draw_int(c, 0, count - 1)].i = yk_draw_one_in(c, 2) ? -2 : x[0];
		c->rejects = true;
	}
	const uint32_t y = yk_case_out(c, dtype, rank, x, YK_DENSE),
		       from = yk_case_in(c, dtype, rank, x, YK_ANY, 0, 9);
	yk_case_in_of(c, itype, irank, v, YK_ANY, idx);
	const uint32_t rows = yk_case_in(c, dtype, irank + rank - 1, v, YK_DENSE, 10, 19);
	for (int64_t i = 0; i < x[0] * each; i++)
		c->array[y].want[i] = (struct yk_expected){ .f = c->array[from].num[i].f,
							    .i = c->array[from].num[i].i };
	for (int64_t i = 0; i < count && !c->rejects; i++)
		for (int64_t k = 0; idx[i].i >= 0 && k < each; k++) {
			const struct yk_num n = c->array[rows].num[i * each + k];
			c->array[y].want[idx[i].i * each + k] =
				(struct yk_expected){ .f = n.f, .i = n.i };
		}
	if (yk_draw_one_in(c, 2))
		yk_case_alias(c, y, from, 0);
	return true;
}
