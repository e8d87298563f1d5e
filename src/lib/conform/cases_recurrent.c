// SPDX-License-Identifier: Apache-2.0
// Cases of RECURRENT, RECURRENT_BACKWARD, CTC and CTC_BACKWARD. References are loops in float64
// over the rounded operands; those of CTC add probabilities, not logarithms.
#include "config.h"

#include <math.h>

#include "conform/case.h"

enum { TANH, RELU, LSTM, GRU };

struct layer {
	int64_t steps, rows, units, gates;
	int cell;
	bool reverse, lengths, begins; // begins: h0 and c0 are given
	const struct yk_num *length;
};

// Values by [T,B,..] in row-major order, as doubles; NULL: absent.
struct trace {
	double *x, *w, *b, *h0, *c0;                // operands
	double *y, *h, *c, *values, *more;          // results
	double *dy, *dh, *dc, *dx, *dp, *dh0, *dc0; // backward
};

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

static double *room(struct yk_case *c, int64_t n)
{
	return yk_case_alloc(c, (uint64_t)(n + 1) * sizeof(double));
}

static bool takes(const struct layer *l, int64_t t, int64_t b)
{
	return !l->lengths || t < l->length[b].i;
}

static void forward(struct yk_case *c, const struct layer *l, struct trace *v)
{
	const int64_t n = l->units, g = l->gates, all = l->rows * n;
	double *p = room(c, g * n);
	v->y = room(c, l->steps * all);
	v->more = room(c, l->steps * all);
	v->values = room(c, l->steps * all * g);
	v->h = room(c, all);
	v->c = room(c, all);
	for (int64_t i = 0; i < all && l->begins; i++) {
		v->h[i] = v->h0[i];
		v->c[i] = l->cell == LSTM ? v->c0[i] : 0;
	}
	for (int64_t s = 0; s < l->steps; s++)
		for (int64_t b = 0; b < l->rows; b++) {
			const int64_t t = l->reverse ? l->steps - 1 - s : s, at = t * l->rows + b;
			const double *x = v->x + at * g * n;
			double *h = v->h + b * n, *state = v->c + b * n, *y = v->y + at * n,
			       *more = v->more + at * n, *q = v->values + at * g * n;
			if (!takes(l, t, b))
				continue;
			for (int64_t k = 0; k < g * n; k++) {
				p[k] = v->b ? v->b[k] : 0;
				for (int64_t u = 0; u < n; u++)
					p[k] += h[u] * v->w[k * n + u];
			}
			for (int64_t u = 0; u < n; u++) {
				if (l->cell == LSTM) {
					for (int k = 0; k < 4; k++) {
						const double z = x[k * n + u] + p[k * n + u];
						q[k * n + u] = k == 2 ? tanh(z) : sigmoid(z);
					}
					more[u] = state[u] =
						q[n + u] * state[u] + q[u] * q[2 * n + u];
					h[u] = q[3 * n + u] * tanh(state[u]);
				} else if (l->cell == GRU) {
					more[u] = p[2 * n + u];
					q[u] = sigmoid(x[u] + p[u]);
					q[n + u] = sigmoid(x[n + u] + p[n + u]);
					q[2 * n + u] = tanh(x[2 * n + u] + q[u] * more[u]);
					h[u] = (1 - q[n + u]) * q[2 * n + u] + q[n + u] * h[u];
				} else {
					const double z = x[u] + p[u];
					h[u] = q[u] = l->cell == TANH ? tanh(z) : fmax(z, 0);
				}
				y[u] = h[u];
			}
		}
}

static void backward(struct yk_case *c, const struct layer *l, struct trace *v)
{
	const int64_t n = l->units, g = l->gates, all = l->rows * n;
	v->dx = room(c, l->steps * all * g);
	v->dp = room(c, l->steps * all * g);
	v->dh0 = room(c, all);
	v->dc0 = room(c, all);
	for (int64_t i = 0; i < all; i++) {
		v->dh0[i] = v->dh ? v->dh[i] : 0;
		v->dc0[i] = v->dc ? v->dc[i] : 0;
	}
	for (int64_t s = 0; s < l->steps; s++)
		for (int64_t b = 0; b < l->rows; b++) {
			const int64_t t = l->reverse ? s : l->steps - 1 - s, at = t * l->rows + b;
			const int64_t before = l->reverse ? t + 1 : t - 1,
				      to = before * l->rows + b;
			const bool begins =
				before < 0 || before >= l->steps || !takes(l, before, b);
			const double *q = v->values + at * g * n;
			double *dh = v->dh0 + b * n, *dc = v->dc0 + b * n, *dx = v->dx + at * g * n,
			       *dp = v->dp + at * g * n;
			if (!takes(l, t, b))
				continue;
			for (int64_t u = 0; u < n; u++) {
				const double d = dh[u] + (v->dy ? v->dy[at * n + u] : 0),
					     more = v->more[at * n + u];
				const double h = !begins   ? v->y[to * n + u] :
						 l->begins ? v->h0[b * n + u] :
							     0;
				dh[u] = 0;
				if (l->cell == LSTM) {
					const double i = q[u], f = q[n + u], a = q[2 * n + u],
						     o = q[3 * n + u], z = tanh(more);
					const double state = !begins   ? v->more[to * n + u] :
							     l->begins ? v->c0[b * n + u] :
									 0;
					dc[u] += d * o * (1 - z * z);
					dx[u] = dc[u] * a * i * (1 - i);
					dx[n + u] = dc[u] * state * f * (1 - f);
					dx[2 * n + u] = dc[u] * i * (1 - a * a);
					dx[3 * n + u] = d * z * o * (1 - o);
					dc[u] *= f;
				} else if (l->cell == GRU) {
					const double r = q[u], z = q[n + u], a = q[2 * n + u];
					dx[2 * n + u] = d * (1 - z) * (1 - a * a);
					dx[n + u] = d * (h - a) * z * (1 - z);
					dx[u] = dx[2 * n + u] * more * r * (1 - r);
					dh[u] = d * z;
				} else {
					dx[u] = l->cell == TANH ? d * (1 - q[u] * q[u]) :
						q[u] > 0        ? d :
								  0;
				}
				for (int k = 0; k < g; k++)
					dp[k * n + u] = dx[k * n + u] *
							(l->cell == GRU && k == 2 ? q[u] : 1);
			}
			for (int64_t u = 0; u < n; u++)
				for (int64_t k = 0; k < g * n; k++)
					dh[u] += dp[k] * v->w[k * n + u];
		}
}

static struct layer draw_layer(struct yk_case *c)
{
	static const int64_t gates[] = { 1, 1, 4, 3 };
	struct layer l = { .steps = yk_draw_int(c, 1, 7),
			   .rows = yk_draw_int(c, 1, 9),
			   .units = yk_draw_size(c, 40),
			   .cell = (int)yk_draw_int(c, 0, 3) };
	if (yk_case_large(c)) {
		// GPUs divide the units of a step of wide layers, and give an item several of many
		// rows
		static const int64_t rows[][2] = { { 1, 6 }, { 17, 35 }, { 2049, 2080 } };
		static const int64_t units[][2] = { { 257, 290 }, { 60, 100 }, { 1, 5 } };
		const int64_t k = yk_draw_int(c, 0, 2);
		l.rows = yk_draw_int(c, rows[k][0], rows[k][1]);
		l.units = yk_draw_int(c, units[k][0], units[k][1]);
	}
	l.gates = gates[l.cell];
	l.reverse = yk_draw_one_in(c, 2);
	l.begins = yk_draw_one_in(c, 2);
	l.lengths = yk_draw_one_in(c, 2);
	return l;
}

// Numbers from -1 to 1, times scale, rounded, as an operand of the case; returns them as doubles
static double *operand(struct yk_case *c, int dtype, int rank, const int64_t *dims, double scale)
{
	const uint32_t at = yk_case_in(c, dtype, rank, dims, YK_ANY | YK_REPEATED, -scale, scale);
	double *v = room(c, c->array[at].n);
	for (int64_t i = 0; i < c->array[at].n; i++)
		v[i] = c->array[at].num[i].f;
	return v;
}

static void result(struct yk_case *c, uint32_t at, int dtype, const double *v, double abs)
{
	for (int64_t i = 0; i < c->array[at].n; i++)
		yk_expect_real(&c->array[at].want[i], dtype, v[i], abs);
}

static void lengths(struct yk_case *c, struct layer *l)
{
	struct yk_num *n = yk_case_alloc(c, (uint64_t)l->rows * sizeof *n);
	if (!l->lengths) {
		yk_case_none(c);
		return;
	}
	for (int64_t b = 0; b < l->rows; b++)
		n[b].i = yk_draw_int(c, 0, l->steps + 1);
	l->length = n;
	yk_case_in_of(c, yoke_i64, 1, &l->rows, YK_ANY, n);
}

// Omits result `at` of some cases
static void drop(struct yk_case *c, uint32_t at)
{
	if (!yk_case_plain(c) && yk_draw_one_in(c, 4))
		c->view[at] = (struct yoke_view){ .kind = YOKE_VIEW_NONE };
}

static double tolerance(const struct layer *l, int dtype)
{
	return (double)((l->steps + 1) * (l->units + 16)) * (dtype == yoke_f64 ? 0x1p-50 : 0x1p-22);
}

bool yk_make_recurrent(struct yk_case *c, int dtype)
{
	yk_case_op(c, YOKE_OP_RECURRENT);
	struct layer l = draw_layer(c);
	struct trace v = { .x = NULL };
	const int64_t x[3] = { l.steps, l.rows, l.gates * l.units },
		      y[3] = { l.steps, l.rows, l.units }, w[2] = { l.gates * l.units, l.units },
		      state[2] = { l.rows, l.units };
	const uint32_t out[5] = { yk_case_out(c, dtype, 3, y, YK_ANY),
				  yk_case_out(c, dtype, 2, state, YK_ANY),
				  yk_case_out(c, dtype, 2, state, YK_ANY),
				  yk_case_out(c, dtype, 3, x, YK_ANY),
				  yk_case_out(c, dtype, 3, y, YK_ANY) };
	v.x = operand(c, dtype, 3, x, 1);
	v.w = operand(c, dtype, 2, w, 1 / sqrt((double)l.units));
	if (yk_draw_one_in(c, 2))
		v.b = operand(c, dtype, 1, w, 1);
	else
		yk_case_none(c);
	for (int k = 0; k < 2; k++) {
		if (l.begins && (!k || l.cell == LSTM))
			*(k ? &v.c0 : &v.h0) = operand(c, dtype, 2, state, 1);
		else
			yk_case_none(c);
	}
	lengths(c, &l);
	c->op.nattr = 2;
	c->op.attr[0].i = l.cell;
	c->op.attr[1].i = l.reverse;
	forward(c, &l, &v);
	const double *const want[5] = { v.y, v.h, v.c, v.values, v.more };
	for (int k = 0; k < 5; k++) {
		result(c, out[k], dtype, want[k], tolerance(&l, dtype));
		if (k)
			drop(c, out[k]);
	}
	yk_case_note(c, "cell %d, T %lld, B %lld, H %lld%s%s", l.cell, (long long)l.steps,
		     (long long)l.rows, (long long)l.units, l.reverse ? ", reverse" : "",
		     l.lengths ? ", lengths" : "");
	return true;
}

// An operand of given numbers, which are rounded in place; NULL: absent
static void given(struct yk_case *c, int dtype, int rank, const int64_t *dims, double *v)
{
	const int64_t n = yk_count_of(rank, dims);
	struct yk_num *num = yk_case_alloc(c, (uint64_t)(n + 1) * sizeof *num);
	if (!v) {
		yk_case_none(c);
		return;
	}
	for (int64_t i = 0; i < n; i++)
		num[i].f = v[i] = yk_num_round(v[i], dtype);
	yk_case_in_of(c, dtype, rank, dims, YK_ANY, num);
}

static double *drawn(struct yk_case *c, int dtype, int64_t n, double scale)
{
	double *v = room(c, n);
	for (int64_t i = 0; i < n; i++)
		v[i] = yk_num_round(yk_draw_real(c, -scale, scale), dtype);
	return v;
}

bool yk_make_recurrent_backward(struct yk_case *c, int dtype)
{
	yk_case_op(c, YOKE_OP_RECURRENT_BACKWARD);
	struct layer l = draw_layer(c);
	struct trace v = { .x = NULL };
	const int64_t x[3] = { l.steps, l.rows, l.gates * l.units },
		      y[3] = { l.steps, l.rows, l.units }, w[2] = { l.gates * l.units, l.units },
		      state[2] = { l.rows, l.units }, all = l.rows * l.units;
	const uint32_t out[4] = { yk_case_out(c, dtype, 3, x, YK_ANY),
				  yk_case_out(c, dtype, 3, x, YK_ANY),
				  yk_case_out(c, dtype, 2, state, YK_ANY),
				  yk_case_out(c, dtype, 2, state, YK_ANY) };
	v.x = drawn(c, dtype, l.steps * all * l.gates, 1);
	v.w = operand(c, dtype, 2, w, 1 / sqrt((double)l.units));
	if (l.begins) {
		v.h0 = drawn(c, dtype, all, 1);
		v.c0 = l.cell == LSTM ? drawn(c, dtype, all, 1) : NULL;
	}
	given(c, dtype, 2, state, v.h0);
	given(c, dtype, 2, state, v.c0);
	lengths(c, &l);
	forward(c, &l, &v);
	given(c, dtype, 3, y, v.y);
	given(c, dtype, 3, x, v.values);
	given(c, dtype, 3, y, v.more);
	v.dy = yk_draw_one_in(c, 4) ? NULL : drawn(c, dtype, l.steps * all, 1);
	v.dh = yk_draw_one_in(c, 2) ? NULL : drawn(c, dtype, all, 1);
	v.dc = l.cell != LSTM || yk_draw_one_in(c, 2) ? NULL : drawn(c, dtype, all, 1);
	given(c, dtype, 3, y, v.dy);
	given(c, dtype, 2, state, v.dh);
	given(c, dtype, 2, state, v.dc);
	c->op.nattr = 2;
	c->op.attr[0].i = l.cell;
	c->op.attr[1].i = l.reverse;
	backward(c, &l, &v);
	const double *const want[4] = { v.dx, v.dp, v.dh0, v.dc0 };
	for (int k = 0; k < 4; k++) {
		result(c, out[k], dtype, want[k], 4 * tolerance(&l, dtype));
		drop(c, out[k]);
	}
	yk_case_note(c, "cell %d, T %lld, B %lld, H %lld%s%s", l.cell, (long long)l.steps,
		     (long long)l.rows, (long long)l.units, l.reverse ? ", reverse" : "",
		     l.lengths ? ", lengths" : "");
	return true;
}

// ---- connectionist temporal classification ----

struct sequences {
	int64_t steps, count, classes, labels, states, blank; // states: 2 labels + 1
	const struct yk_num *x, *target, *step, *label;
};

static int64_t class_of(const struct sequences *q, int64_t n, int64_t s)
{
	return s & 1 ? q->target[n * q->labels + s / 2].i : q->blank;
}

static bool skips(const struct sequences *q, int64_t n, int64_t s)
{
	return s & 1 && s > 1 && class_of(q, n, s) != class_of(q, n, s - 2);
}

static double chance(const struct sequences *q, int64_t n, int64_t t, int64_t s)
{
	return exp(q->x[(t * q->count + n) * q->classes + class_of(q, n, s)].f);
}

// alpha [T,states]: probabilities of all beginnings; returns the likelihood
static double likelihood(const struct sequences *q, int64_t n, double *alpha)
{
	const int64_t steps = q->step[n].i, states = 2 * q->label[n].i + 1;
	for (int64_t t = 0; t < steps; t++)
		for (int64_t s = 0; s < states; s++) {
			const double *a = alpha + (t - 1) * q->states + s;
			double p =
				t ? a[0] + (s ? a[-1] : 0) + (skips(q, n, s) ? a[-2] : 0) : s < 2;
			alpha[t * q->states + s] = p * chance(q, n, t, s);
		}
	if (!steps)
		return states == 1;
	const double *last = alpha + (steps - 1) * q->states + states - 1;
	return last[0] + (states > 1 ? last[-1] : 0);
}

static struct sequences draw_sequences(struct yk_case *c, int dtype)
{
	struct sequences q = { .steps = yk_draw_int(c, 1, 12),
			       .count = yk_draw_int(c, 1, 5),
			       .classes = yk_draw_int(c, 2, 9),
			       .labels = yk_draw_int(c, 0, 5) };
	if (yk_case_large(c)) { // more states and classes than a group of a GPU has items
		q.steps = yk_draw_int(c, 60, 140);
		q.classes = yk_draw_int(c, 2, 300);
		q.labels = yk_draw_int(c, 64, 90);
	}
	q.states = 2 * q.labels + 1;
	q.blank = yk_draw_int(c, 0, q.classes - 1);
	struct yk_num *x = yk_case_alloc(c, (uint64_t)(q.steps * q.count * q.classes) * sizeof *x);
	struct yk_num *target =
		yk_case_alloc(c, (uint64_t)(q.count * q.labels + 1) * sizeof *target);
	struct yk_num *step = yk_case_alloc(c, (uint64_t)q.count * sizeof *step),
		      *label = yk_case_alloc(c, (uint64_t)q.count * sizeof *label);
	for (int64_t i = 0; i < q.steps * q.count * q.classes; i++)
		x[i].f = yk_num_round(yk_draw_real(c, -3, 0), dtype);
	for (int64_t i = 0; i < q.count * q.labels; i++)
		target[i].i = yk_draw_int(c, 0, q.classes - 1); // also the blank one
	for (int64_t i = 0; i < q.count; i++) {
		step[i].i = yk_draw_one_in(c, 2) ? q.steps : yk_draw_int(c, 0, q.steps);
		label[i].i = yk_draw_int(c, 0, q.labels);
	}
	q.x = x;
	q.target = target;
	q.step = step;
	q.label = label;
	return q;
}

static void sequences_in(struct yk_case *c, int dtype, const struct sequences *q)
{
	yk_case_in_of(c, dtype, 3, (int64_t[]){ q->steps, q->count, q->classes }, YK_ANY, q->x);
	yk_case_in_of(c, yoke_i64, 2, (int64_t[]){ q->count, q->labels }, YK_ANY, q->target);
	yk_case_in_of(c, yoke_i64, 1, &q->count, YK_ANY, q->step);
	yk_case_in_of(c, yoke_i64, 1, &q->count, YK_ANY, q->label);
	c->op.nattr = 1;
	c->op.attr[0].i = q->blank;
	yk_case_note(c, "T %lld, N %lld, C %lld, S %lld", (long long)q->steps, (long long)q->count,
		     (long long)q->classes, (long long)q->labels);
}

static double error_of(double v, int dtype)
{
	return isfinite(v) ? (dtype == yoke_f64 ? 0x1p-46 : 0x1p-17) * (1 + fabs(v)) : 0;
}

bool yk_make_ctc(struct yk_case *c, int dtype)
{
	yk_case_op(c, YOKE_OP_CTC);
	const struct sequences q = draw_sequences(c, dtype);
	const uint32_t loss = yk_case_out(c, dtype, 1, &q.count, YK_ANY);
	const uint32_t alpha =
		yk_case_out(c, dtype, 3, (int64_t[]){ q.count, q.steps, q.states }, YK_ANY);
	sequences_in(c, dtype, &q);
	for (int64_t n = 0; n < q.count; n++) {
		double *a = room(c, q.steps * q.states);
		const double v = -log(likelihood(&q, n, a));
		yk_expect_real(&c->array[loss].want[n], dtype, v, error_of(v, dtype));
		for (int64_t i = 0; i < q.steps * q.states; i++)
			yk_expect_real(&c->array[alpha].want[n * q.steps * q.states + i], dtype,
				       log(a[i]), error_of(log(a[i]), dtype));
	}
	drop(c, alpha);
	return true;
}

bool yk_make_ctc_backward(struct yk_case *c, int dtype)
{
	yk_case_op(c, YOKE_OP_CTC_BACKWARD);
	const struct sequences q = draw_sequences(c, dtype);
	const int64_t each = q.steps * q.states;
	const uint32_t dx =
		yk_case_out(c, dtype, 3, (int64_t[]){ q.steps, q.count, q.classes }, YK_ANY);
	double *loss = room(c, q.count), *alpha = room(c, q.count * each),
	       *g = drawn(c, dtype, q.count, 1);
	double *want = room(c, q.steps * q.count * q.classes), *next = room(c, 2 * q.states);
	sequences_in(c, dtype, &q);
	for (int64_t n = 0; n < q.count; n++) {
		const int64_t states = 2 * q.label[n].i + 1;
		double *a = room(c, each), *b = next, *later = next + q.states;
		const double p = likelihood(&q, n, a);
		loss[n] = -log(p);
		if (p == 0)
			g[n] = 0;
		for (int64_t i = 0; i < each; i++)
			alpha[n * each + i] = log(a[i]);
		for (int64_t t = q.step[n].i - 1; t >= 0 && g[n] != 0; t--) {
			for (int64_t s = 0; s < states; s++) {
				b[s] = s >= states - 2;
				if (t < q.step[n].i - 1) {
					b[s] = later[s] * chance(&q, n, t + 1, s);
					if (s + 1 < states)
						b[s] += later[s + 1] * chance(&q, n, t + 1, s + 1);
					if (s + 2 < states && skips(&q, n, s + 2))
						b[s] += later[s + 2] * chance(&q, n, t + 1, s + 2);
				}
				want[(t * q.count + n) * q.classes + class_of(&q, n, s)] -=
					g[n] * a[t * q.states + s] * b[s] / p;
			}
			double *swap = b;
			b = later;
			later = swap;
		}
	}
	given(c, dtype, 1, &q.count, loss);
	given(c, dtype, 3, (int64_t[]){ q.count, q.steps, q.states }, alpha);
	given(c, dtype, 1, &q.count, g);
	result(c, dx, dtype, want, dtype == yoke_f64 ? 0x1p-44 : 0x1p-15);
	return true;
}
