// SPDX-License-Identifier: Apache-2.0
// Cases of ops over lists of tensors: MULTI_ADAMW, MULTI_LAMB, MULTI_SGD, MULTI_NORM, MULTI_UNSCALE.
#include "config.h"

#include <math.h>

#include "conform/case.h"

// A list's tensors: how many, their shapes.
struct list {
	uint32_t n;
	int rank[7];
	int64_t dims[7][3];
};

static struct list draw_list(struct yk_case *c, uint32_t most)
{
	struct list l = { .n = (uint32_t)yk_draw_int(c, 1, most) };
	for (uint32_t i = 0; i < l.n; i++) {
		int64_t left = 20011;
		l.rank[i] = (int)yk_draw_int(c, 0, 3);
		for (int d = l.rank[i] - 1; d >= 0; d--) {
			l.dims[i][d] = yk_draw_size(c, left);
			left /= l.dims[i][d];
		}
		if (l.rank[i] && !yk_case_plain(c) && yk_draw_one_in(c, 16))
			l.dims[i][0] = 0;
	}
	return l;
}

static uint32_t outs(struct yk_case *c, int dtype, const struct list *l)
{
	uint32_t first = c->views;
	for (uint32_t i = 0; i < l->n; i++)
		yk_case_out(c, dtype, l->rank[i], l->dims[i], YK_DENSE);
	return first;
}

static uint32_t ins(struct yk_case *c, int dtype, const struct list *l, double lo,
		    double hi)
{
	uint32_t first = c->views;
	for (uint32_t i = 0; i < l->n; i++)
		yk_case_in(c, dtype, l->rank[i], l->dims[i], YK_DENSE, lo, hi);
	return first;
}

static void close_list(struct yk_case *c, const struct list *l, int lists_out,
		       int lists_in)
{
	c->op.list = l->n;
	c->op.lists_out = (uint8_t)lists_out;
	c->op.lists_in = (uint8_t)lists_in;
}

static void over(struct yk_case *c, const struct list *l, uint32_t out, uint32_t in,
		 int bit)
{
	for (uint32_t i = 0; i < l->n; i++)
		yk_case_alias(c, out + i, in + i, bit);
}

static double value(struct yk_case *c, int dtype, double x)
{
	return c->array[yk_case_value(c, dtype, (struct yk_num){ .f = x })].num[0].f;
}

static double scale_or_none(struct yk_case *c, int dtype)
{
	if (!yk_draw_one_in(c, 2))
		return value(c, dtype, 0.5);
	yk_case_none(c);
	return 1;
}

// ---- Adam ----

struct adam {
	double b1, b2, eps, decay, lr, c1, c2, scale;
};

// One element's moments and p (1 - lr decay) - (lr / c1) m / (sqrt(v) / sqrt(c2) + eps), with what
// they may have lost.
struct element {
	double m, v, m_abs, step, step_abs;
};

static struct element adam_element(const struct adam *a, double g, double m, double v)
{
	struct element e;
	g *= a->scale;
	e.m = a->b1 * m + (1 - a->b1) * g;
	e.v = a->b2 * v + (1 - a->b2) * g * g;
	e.m_abs = fabs(a->b1 * m) + fabs((1 - a->b1) * g);
	double root = sqrt(e.v) / sqrt(a->c2) + a->eps;
	e.step = e.m / a->c1 / root;
	e.step_abs = e.m_abs / a->c1 / root;
	return e;
}

static bool make_adam(struct yk_case *c, int dtype, bool lamb)
{
	const double unit = 2 * yk_num_unit(yk_num_acc(dtype));
	struct list l = draw_list(c, 7);
	struct adam a = { 0.9, 0.98, 1e-6, yk_draw_one_in(c, 2) ? 0.1 : 0, 0, 0, 0, 0 };
	bool adapt = yk_draw_one_in(c, 2);
	const int wide = dtype == yoke_f64 ? yoke_f64 : yoke_f32;
	int state = yk_draw_one_in(c, 2) ? wide :
					   dtype; // moments of half precision may be f32

	yk_case_op(c, lamb ? YOKE_OP_MULTI_LAMB : YOKE_OP_MULTI_ADAMW);
	uint32_t p1 = outs(c, dtype, &l), m1 = outs(c, state, &l),
		 v1 = outs(c, state, &l);
	uint32_t p = ins(c, dtype, &l, -1, 1), g = ins(c, dtype, &l, -1, 1);
	uint32_t m = ins(c, state, &l, -1, 1), v = ins(c, state, &l, 0, 1);
	a.lr = value(c, wide, 0.01);
	a.c1 = value(c, wide, 0.19);
	a.c2 = value(c, wide, 0.05);
	a.scale = scale_or_none(c, wide);
	close_list(c, &l, 3, 4);
	c->op.nattr = lamb ? 7 : 4;
	c->op.attr[0].f = a.b1;
	c->op.attr[1].f = a.b2;
	c->op.attr[2].f = a.eps;
	c->op.attr[3].f = a.decay;
	if (lamb) {
		c->op.attr[4].f = 0.01;
		c->op.attr[5].f = 10;
		c->op.attr[6].i = adapt;
	}
	for (uint32_t i = 0; i < l.n; i++) {
		double pp = 0, rr = 0, ratio = 1, lost = 0;
		for (int pass = lamb ? 0 : 1; pass < 2; pass++) {
			for (int64_t k = 0; k < c->array[p + i].n; k++) {
				double x = c->array[p + i].num[k].f;
				struct element e =
					adam_element(&a, c->array[g + i].num[k].f,
						     c->array[m + i].num[k].f,
						     c->array[v + i].num[k].f);
				double r = e.step + a.decay * x;
				pp += pass ? 0 : x * x;
				rr += pass ? 0 : r * r;
				if (!pass)
					continue;
				double y =
					lamb ? x - a.lr * ratio * r :
					       x * (1 - a.lr * a.decay) - a.lr * e.step;
				double abs = fabs(x) +
					     a.lr * ratio *
						     (e.step_abs + fabs(a.decay * x)) *
						     (1 + lost);
				yk_want_real(&c->array[p1 + i].want[k], dtype, y,
					     16 * unit * abs);
				yk_want_real(&c->array[m1 + i].want[k], state, e.m,
					     6 * unit * e.m_abs);
				yk_want_real(&c->array[v1 + i].want[k], state, e.v,
					     8 * unit * e.v);
			}
			if (lamb && adapt && !pass && pp > 0 && rr > 0)
				ratio = fmin(fmax(sqrt(pp), 0.01), 10) / sqrt(rr);
			lost = sqrt((double)c->array[p + i].n);
		}
	}
	if (yk_draw_one_in(c, 2)) {
		over(c, &l, p1, p, 0);
		over(c, &l, m1, m, 2);
		over(c, &l, v1, v, 3);
	}
	yk_case_note(c, "%u tensors", l.n);
	return true;
}

bool yk_make_multi_adamw(struct yk_case *c, int dtype)
{
	return make_adam(c, dtype, false);
}

bool yk_make_multi_lamb(struct yk_case *c, int dtype)
{
	return make_adam(c, dtype, true);
}

// ---- SGD: g += decay p; b = first ? g : mu b + (1 - damp) g; p -= lr (nesterov ? g + mu b : b) ----

bool yk_make_multi_sgd(struct yk_case *c, int dtype)
{
	const double unit = 2 * yk_num_unit(yk_num_acc(dtype));
	struct list l = draw_list(c, 7);
	bool momentum = yk_draw_one_in(c, 2), nesterov = momentum && yk_draw_one_in(c, 2);
	bool start = momentum && yk_draw_one_in(c, 3);
	double mu = momentum ? 0.9 : 0, damp = yk_draw_one_in(c, 2) ? 0.5 : 0;
	double decay = yk_draw_one_in(c, 2) ? 0.1 : 0;
	const int wide = dtype == yoke_f64 ? yoke_f64 : yoke_f32;

	yk_case_op(c, YOKE_OP_MULTI_SGD);
	uint32_t p1 = outs(c, dtype, &l), b1 = momentum ? outs(c, dtype, &l) : 0;
	uint32_t p = ins(c, dtype, &l, -1, 1), g = ins(c, dtype, &l, -1, 1);
	uint32_t b = momentum ? ins(c, dtype, &l, -1, 1) : 0;
	double lr = value(c, wide, 0.01);
	value(c, wide, start);
	double scale = scale_or_none(c, wide);
	close_list(c, &l, 1 + momentum, 2 + momentum);
	c->op.nattr = 4;
	c->op.attr[0].f = mu;
	c->op.attr[1].f = damp;
	c->op.attr[2].f = decay;
	c->op.attr[3].i = nesterov;
	for (uint32_t i = 0; i < l.n; i++)
		for (int64_t k = 0; k < c->array[p + i].n; k++) {
			double x = c->array[p + i].num[k].f,
			       gk = c->array[g + i].num[k].f * scale + decay * x;
			double bk = momentum && !start ? c->array[b + i].num[k].f : 0;
			double sum = !momentum || start ? gk : mu * bk + (1 - damp) * gk;
			double abs = fabs(mu * bk) + fabs(gk) + fabs(decay * x);
			double step = nesterov ? gk + mu * sum : sum;
			yk_want_real(&c->array[p1 + i].want[k], dtype, x - lr * step,
				     4 * unit * (fabs(x) + 2 * lr * abs));
			if (momentum)
				yk_want_real(&c->array[b1 + i].want[k], dtype, sum,
					     4 * unit * abs);
		}
	if (yk_draw_one_in(c, 2)) {
		over(c, &l, p1, p, 0);
		if (momentum)
			over(c, &l, b1, b, 2);
	}
	yk_case_note(c, "%u tensors%s%s", l.n, momentum ? " momentum" : "",
		     nesterov ? " nesterov" : "");
	return true;
}

// ---- what looks at all tensors ----

bool yk_make_multi_norm(struct yk_case *c, int dtype)
{
	struct list l = draw_list(c, 7);
	double sum = 0;
	int64_t n = 0;

	yk_case_op(c, YOKE_OP_MULTI_NORM);
	uint32_t y = yk_case_out(c, yoke_f32, 0, NULL, YK_DENSE);
	uint32_t g = ins(c, dtype, &l, -1, 2);
	close_list(c, &l, 0, 1);
	for (uint32_t i = 0; i < l.n; i++)
		for (int64_t k = 0; k < c->array[g + i].n; k++, n++)
			sum += c->array[g + i].num[k].f * c->array[g + i].num[k].f;
	yk_want_real(&c->array[y].want[0], yoke_f32, sqrt(sum),
		     (8 + sqrt((double)n)) * 0x1p-24 * sqrt(sum));
	yk_case_note(c, "%u tensors", l.n);
	return true;
}

bool yk_make_multi_unscale(struct yk_case *c, int dtype)
{
	static const double never[] = { NAN, INFINITY, -INFINITY };
	struct list l = draw_list(c, 7);
	const int wide = yk_num_acc(dtype);
	const double unit = 2 * yk_num_unit(wide);
	bool bad = false, spoil = yk_draw_one_in(c, 2);

	yk_case_op(c, YOKE_OP_MULTI_UNSCALE);
	uint32_t y = outs(c, wide, &l),
		 found = yk_case_out(c, yoke_bool, 0, NULL, YK_DENSE);
	uint32_t g = c->views;
	for (uint32_t i = 0; i < l.n; i++) {
		int64_t n = yk_count_of(l.rank[i], l.dims[i]);
		struct yk_num *num = yk_case_alloc(c, (uint64_t)n * sizeof *num);
		for (int64_t k = 0; k < n; k++)
			num[k].f = yk_num_round(yk_draw_real(c, -9, 9), dtype);
		if (n && spoil && yk_draw_one_in(c, 2))
			num[yk_draw_int(c, 0, n - 1)].f = never[yk_draw(c) % 3];
		yk_case_in_of(c, dtype, l.rank[i], l.dims[i], YK_DENSE, num);
	}
	double scale = value(c, wide, 0x1p-3 * 1.1);
	close_list(c, &l, 1, 1);
	for (uint32_t i = 0; i < l.n; i++)
		for (int64_t k = 0; k < c->array[g + i].n; k++) {
			double x = c->array[g + i].num[k].f;
			bad |= !isfinite(x);
			yk_want_real(&c->array[y + i].want[k], wide, x * scale,
				     unit * fabs(x * scale));
		}
	yk_want_int(&c->array[found].want[0], bad);
	if (wide == dtype && yk_draw_one_in(c, 2))
		over(c, &l, y, g, 0);
	yk_case_note(c, "%u tensors%s", l.n, bad ? " not finite" : "");
	return true;
}
