// SPDX-License-Identifier: Apache-2.0
// Cases of RESOLVENT, its adjoint, and grouped matrix products.
#include "config.h"

#include <math.h>

#include "base/complex.h"
#include "conform/case.h"

struct chains {
	uint32_t a, b, c, z; // views; b and c may be absent
	int64_t rows, n, lead[2];
	int rank; // number of batch axes
	bool left;
};

// Loads one row: alpha and k, where k[i] lies between i - 1 and i.
static void row_of(const struct yk_case *c, const struct chains *h, int64_t row,
		   double complex *alpha, double *k)
{
	const struct yk_num *z = c->array[h->z].num + 2 * row;
	for (int64_t i = 0; i < h->n; i++) {
		alpha[i] = CMPLX(c->array[h->a].num[row * h->n + i].f - z[0].f, -z[1].f);
		k[i] = i > 0;
		if (i && h->b)
			k[i] *= c->array[h->b].num[row * (h->n - 1) + i - 1].f;
		if (i && h->c)
			k[i] *= c->array[h->c].num[row * (h->n - 1) + i - 1].f;
	}
	k[h->n] = 0;
}

static void ratios(int64_t n, const double complex *alpha, const double *k, double complex *l,
		   double complex *r)
{
	for (int64_t i = 0; i < n; i++)
		l[i] = alpha[i] - (i ? k[i] / l[i - 1] : 0);
	for (int64_t i = n - 1; i >= 0; i--)
		r[i] = alpha[i] - (i < n - 1 ? k[i + 1] / r[i + 1] : 0);
}

static struct yk_num point(struct yk_case *c, int dtype, int64_t index)
{
	double v = index % 2 ? (yk_draw_one_in(c, 2) ? 1 : -1) * yk_draw_real(c, 0.6, 1.2) :
			       yk_draw_real(c, -1, 1);
	return (struct yk_num){ .f = yk_num_round(v, dtype) };
}

// Draws the shapes first, because results are added before operands.
static struct chains shape(struct yk_case *c)
{
	struct chains h = { .rows = 1,
			    .left = yk_draw_one_in(c, 3),
			    .rank = (int)yk_draw_int(c, 0, 2) };
	// rows of several parts: where a group is items, and where it is one of 16 lanes of 512
	h.n = !yk_case_large(c)    ? yk_draw_size(c, 200) :
	      yk_draw_one_in(c, 3) ? yk_draw_int(c, 8193, 9300) :
				     yk_draw_int(c, 1025, 2300);
	for (int d = 0; d < h.rank; d++) {
		h.lead[d] = yk_draw_size(c, yk_case_large(c) ? 3 : 9);
		h.rows *= h.lead[d];
	}
	return h;
}

static void operands(struct yk_case *c, int dtype, struct chains *h)
{
	int64_t dims[4] = { h->lead[0], h->lead[1] };
	dims[h->rank] = h->n;
	h->a = yk_case_in(c, dtype, h->rank + 1, dims, YK_ANY | YK_REPEATED, -2, 2);
	dims[h->rank] = h->n - 1;
	h->b = yk_draw_one_in(c, 2) ?
		       yk_case_in(c, dtype, h->rank + 1, dims, YK_ANY | YK_REPEATED, 0.3, 1.5) :
		       0;
	if (!h->b)
		yk_case_none(c);
	h->c = yk_draw_one_in(c, 2) ?
		       yk_case_in(c, dtype, h->rank + 1, dims, YK_ANY | YK_REPEATED, 0.3, 1.5) :
		       0;
	if (!h->c)
		yk_case_none(c);
	dims[h->rank] = 2;
	h->z = yk_case_in_by(c, dtype, h->rank + 1, dims, YK_ANY, point);
}

static void attributes(struct yk_case *c, int dtype, bool left)
{
	const bool wide = dtype == yoke_f64 || yk_draw_one_in(c, 6);
	c->op.nattr = 7;
	c->op.attr[0].i = left;
	c->op.attr[1].i = wide ? 1 : yk_draw_one_in(c, 2) ? 2 : yk_draw_int(c, 3, 5);
	c->op.attr[2].i = 8;
	c->op.attr[3].f = 1e-4;
	c->op.attr[4].i = 0;
	c->op.attr[5].f = 0.5;
	c->op.attr[6].f = 1e-2;
	yk_case_note(c, "%s, tier %d", left ? "left" : "both", (int)c->op.attr[1].i);
}

bool yk_make_resolvent(struct yk_case *c, int dtype)
{
	yk_case_op(c, YOKE_OP_RESOLVENT);
	struct chains h = shape(c);
	int64_t dims[4] = { h.lead[0], h.lead[1] };
	dims[h.rank] = h.n;
	dims[h.rank + 1] = 2;
	const uint32_t y = yk_case_out(c, dtype, h.rank + 2, dims, YK_ANY);
	const uint32_t bound = yk_case_out(c, yk_num_acc(dtype), h.rank, dims, YK_DENSE);
	operands(c, dtype, &h);
	attributes(c, dtype, h.left);
	const size_t n = (size_t)h.n;
	double complex *alpha = yk_case_alloc(c, 3 * n * sizeof *alpha), *l = alpha + n, *r = l + n;
	double *k = yk_case_alloc(c, (n + 1) * sizeof *k);
	const int tier = (int)c->op.attr[1].i;
	const double tolerance = dtype == yoke_f64 ? 1e-14 : tier > 3 ? 1.1e-4 : 6e-6;
	for (int64_t row = 0; row < h.rows; row++) {
		row_of(c, &h, row, alpha, k);
		ratios(h.n, alpha, k, l, r);
		for (int64_t i = 0; i < h.n; i++) {
			const double complex g = 1 / (h.left ? l[i] : l[i] + r[i] - alpha[i]);
			struct yk_expected *w = c->array[y].want + 2 * (row * h.n + i);
			yk_expect_real(&w[0], dtype, creal(g), tolerance);
			yk_expect_real(&w[1], dtype, cimag(g), tolerance);
		}
		// the quality of a bound is up to the device
		c->array[bound].want[row] = (struct yk_expected){ .loose = tier > 3 };
	}
	if (!yk_case_plain(c) && yk_draw_one_in(c, 2))
		c->view[bound] = (struct yoke_view){ .kind = YOKE_VIEW_NONE };
	return true;
}

bool yk_make_resolvent_backward(struct yk_case *c, int dtype)
{
	yk_case_op(c, YOKE_OP_RESOLVENT_BACKWARD);
	struct chains h = shape(c);
	int64_t dims[4] = { h.lead[0], h.lead[1] };
	uint32_t out[4];
	for (int i = 0; i < 4; i++) {
		dims[h.rank] = i == 0 ? h.n : i == 3 ? 2 : h.n - 1;
		out[i] = yk_case_out(c, dtype, h.rank + 1, dims, YK_ANY);
	}
	operands(c, dtype, &h);
	dims[h.rank] = h.n;
	dims[h.rank + 1] = 2;
	const uint32_t cot = yk_case_in(c, dtype, h.rank + 2, dims, YK_ANY | YK_REPEATED, -1, 1);
	attributes(c, dtype, h.left);
	const size_t n = (size_t)h.n;
	double complex *alpha = yk_case_alloc(c, 7 * n * sizeof *alpha), *l = alpha + n, *r = l + n,
		       *lb = r + n, *rb = lb + n, *d = rb + n, *kb = d + n;
	double *k = yk_case_alloc(c, (n + 1) * sizeof *k);
	const double relative = dtype == yoke_f64 ? 1e-12 : 3e-5;
	for (int64_t row = 0; row < h.rows; row++) {
		double max = 1;
		double complex z = 0;
		row_of(c, &h, row, alpha, k);
		ratios(h.n, alpha, k, l, r);
		for (int64_t i = 0; i < h.n; i++) {
			const double complex g = 1 / (h.left ? l[i] : l[i] + r[i] - alpha[i]);
			const struct yk_num *of = c->array[cot].num + 2 * (row * h.n + i);
			lb[i] = rb[i] = d[i] = -g * g * CMPLX(of[0].f, -of[1].f);
			kb[i] = 0;
		}
		for (int64_t i = h.n - 1; i > 0; i--) {
			kb[i - 1] -= lb[i] / l[i - 1];
			lb[i - 1] += lb[i] * k[i] / (l[i - 1] * l[i - 1]);
		}
		for (int64_t i = 0; i < h.n - 1 && !h.left; i++) {
			kb[i] -= rb[i] / r[i + 1];
			rb[i + 1] += rb[i] * k[i + 1] / (r[i + 1] * r[i + 1]);
		}
		for (int64_t i = 0; i < h.n; i++)
			max = fmax(max, fmax(cabs(lb[i]) + cabs(rb[i]), 2 * cabs(kb[i])));
		for (int64_t i = 0; i < h.n; i++) {
			const double complex total = h.left ? lb[i] : lb[i] + rb[i] - d[i];
			yk_expect_real(&c->array[out[0]].want[row * h.n + i], dtype, creal(total),
				       relative * max);
			z += CMPLX(-creal(total), cimag(total));
			if (i == h.n - 1)
				break;
			const int64_t at = row * (h.n - 1) + i;
			const double b = h.b ? c->array[h.b].num[at].f : 1,
				     by = h.c ? c->array[h.c].num[at].f : 1;
			yk_expect_real(&c->array[out[1]].want[at], dtype, by * creal(kb[i]),
				       relative * max);
			yk_expect_real(&c->array[out[2]].want[at], dtype, b * creal(kb[i]),
				       relative * max);
		}
		yk_expect_real(&c->array[out[3]].want[2 * row], dtype, creal(z),
			       relative * max * sqrt((double)h.n) * 2);
		yk_expect_real(&c->array[out[3]].want[2 * row + 1], dtype, cimag(z),
			       relative * max * sqrt((double)h.n) * 2);
	}
	for (int i = 0; i < 4 && !yk_case_plain(c); i++)
		if (yk_draw_one_in(c, 4))
			c->view[out[i]] = (struct yoke_view){ .kind = YOKE_VIEW_NONE };
	return true;
}

// ---- grouped matrix products ----

// Draws where groups begin: some are empty, and some rows before the first and after the last
// belong to none.
static uint32_t groups(struct yk_case *c, int64_t rows, int64_t count)
{
	struct yk_num first[16];
	int64_t at = yk_draw_one_in(c, 4) ? yk_draw_int(c, 0, rows) : 0;
	for (int64_t e = 0; e <= count; e++) {
		first[e] = (struct yk_num){ .i = at };
		if (!yk_draw_one_in(c, 4))
			at = e == count - 1 && yk_draw_one_in(c, 2) ? rows :
								      yk_draw_int(c, at, rows);
	}
	return yk_case_in_of(c, yoke_i64, 1, (int64_t[]){ count + 1 }, YK_DENSE, first);
}

static double sum(const struct yk_num *x, int64_t xs, const struct yk_num *y, int64_t ys, int64_t n,
		  double *size)
{
	double s = 0;
	*size = 0;
	for (int64_t i = 0; i < n; i++) {
		s += x[i * xs].f * y[i * ys].f;
		*size += fabs(x[i * xs].f * y[i * ys].f);
	}
	return s;
}

bool yk_make_grouped(struct yk_case *c, int dtype)
{
	const double unit = yk_num_unit(yk_num_acc(dtype));
	const int64_t T = yk_draw_size(c, 140), K = yk_draw_size(c, 70), N = yk_draw_size(c, 70),
		      E = yk_draw_int(c, 1, 6);
	const bool turned = yk_draw_one_in(c, 2);

	yk_case_op(c, YOKE_OP_GROUPED);
	const uint32_t y = yk_case_out(c, dtype, 2, (int64_t[]){ T, N }, YK_ROWS);
	const uint32_t x = yk_case_in(c, dtype, 2, (int64_t[]){ T, K }, YK_ROWS, -1, 1);
	const uint32_t w =
		yk_case_in(c, dtype, 3, turned ? (int64_t[]){ E, N, K } : (int64_t[]){ E, K, N },
			   YK_ROWS, -1, 1);
	const uint32_t first = groups(c, T, E);
	c->op.nattr = 1;
	c->op.attr[0].i = turned;
	for (int64_t t = 0; t < T; t++)
		for (int64_t n = 0; n < N; n++) {
			double s = 0, size = 0;
			for (int64_t e = 0; e < E; e++) {
				const struct yk_num *of =
					c->array[w].num + e * K * N + (turned ? n * K : n);
				if (t >= c->array[first].num[e].i &&
				    t < c->array[first].num[e + 1].i)
					s = sum(c->array[x].num + t * K, 1, of, turned ? 1 : N, K,
						&size);
			}
			yk_expect_real(&c->array[y].want[t * N + n], dtype, s,
				       (double)(K + 4) * unit * size);
		}
	return true;
}

bool yk_make_grouped_backward(struct yk_case *c, int dtype)
{
	const double unit = yk_num_unit(yk_num_acc(dtype));
	const int64_t T = yk_draw_size(c, 140), K = yk_draw_size(c, 70), N = yk_draw_size(c, 70),
		      E = yk_draw_int(c, 1, 6);

	yk_case_op(c, YOKE_OP_GROUPED_BACKWARD);
	const uint32_t dw = yk_case_out(c, dtype, 3, (int64_t[]){ E, K, N }, YK_ROWS);
	const uint32_t x = yk_case_in(c, dtype, 2, (int64_t[]){ T, K }, YK_ROWS, -1, 1);
	const uint32_t g = yk_case_in(c, dtype, 2, (int64_t[]){ T, N }, YK_ROWS, -1, 1);
	const uint32_t first = groups(c, T, E);
	for (int64_t e = 0; e < E; e++) {
		const int64_t from = c->array[first].num[e].i,
			      rows = c->array[first].num[e + 1].i - from;
		for (int64_t k = 0; k < K; k++)
			for (int64_t n = 0; n < N; n++) {
				double size,
					s = sum(c->array[x].num + from * K + k, K,
						c->array[g].num + from * N + n, N, rows, &size);
				yk_expect_real(&c->array[dw].want[(e * K + k) * N + n], dtype, s,
					       (double)(rows + 4) * unit * size);
			}
	}
	return true;
}
