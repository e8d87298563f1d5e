// SPDX-License-Identifier: Apache-2.0
// Cases of ATTENTION, its gradient, and ROPE.
#include "config.h"

#include <math.h>

#include "base/philox.h"
#include "conform/case.h"
#include "conform/program.h"

// Extents as in yoke-plugin.h; view indices of the operands.
struct heads {
	int64_t B, T, H, D, S, G;
	struct yk_num *seen; // number of visible keys for each batch row
	uint32_t q, k, v, mask, key, step, n;
	int64_t mask_b, mask_h; // extents of the mask, 1 or B, H
	int64_t hidden;         // a key hidden from all queries, NaN in k and v; -1: none
	bool causal, masked;
	double scale, dropout;
};

static struct heads draw_heads(struct yk_case *c)
{
	static const int64_t wide[] = { 1, 2, 3, 8, 15, 16, 17, 32, 33, 48, 64, 80, 128 };
	struct heads h = { .B = yk_draw_int(c, 1, 2), .G = yk_draw_int(c, 1, 2) };

	h.H = h.G * yk_draw_int(c, 1, 3);
	h.D = wide[yk_draw(c) % (sizeof wide / sizeof *wide)];
	h.T = yk_draw_one_in(c, 3) ? 1 : yk_draw_size(c, 130);
	h.S = yk_draw_one_in(c, 3) ? h.T : yk_draw_size(c, 260);
	if (yk_case_large(c)) { // more keys than a kernel processes at once
		h.S = yk_draw_int(c, 1025, 1400);
		// a few queries take a separate code path
		h.T = yk_draw_int(c, 1, c->number / 12 % 3 == 1 ? 24 : 4);
		h.D = yk_draw_int(c, 1, 9);
	}
	while (h.B * h.H * h.T * h.S * h.D > 2000000) {
		h.S = yk_draw_size(c, (h.S + 1) / 2);
		h.T = yk_draw_size(c, h.T);
	}
	h.seen = yk_case_alloc(c, (uint64_t)h.B * sizeof *h.seen);
	for (int64_t b = 0; b < h.B; b++)
		h.seen[b].i = h.S;
	h.causal = yk_draw_one_in(c, 2);
	h.scale = 1 / sqrt((double)h.D);
	h.dropout =
		yk_draw_one_in(c, 4) || (yk_case_large(c) && c->number / 12 % 3 == 2) ? 0.25 : 0;
	h.masked = yk_draw_one_in(c, 3);
	h.mask_b = yk_draw_one_in(c, 2) ? 1 : h.B;
	h.mask_h = yk_draw_one_in(c, 2) ? 1 : h.H;
	h.hidden = h.masked && yk_draw_one_in(c, 2) ? yk_draw_int(c, 0, h.S - 1) : -1;
	return h;
}

static uint32_t add_mask(struct yk_case *c, int dtype, const struct heads *h)
{
	const int64_t dims[4] = { h->mask_b, h->mask_h, h->T, h->S }, n = yk_count_of(4, dims);
	const int beside = yk_case_beside(c, dtype);
	struct yk_num *num = yk_case_alloc(c, (uint64_t)n * sizeof *num);
	for (int64_t i = 0; i < n; i++) {
		const bool none = yk_draw_one_in(c, 5) || i % h->S == h->hidden;
		num[i].f = none ? -INFINITY : yk_num_round(yk_draw_real(c, -2, 2), beside);
	}
	return yk_case_in_of(c, beside, 4, dims, YK_ROWS, num);
}

// q, k, v, mask, key, step
static void add_operands(struct yk_case *c, int dtype, struct heads *h)
{
	int64_t q[4] = { h->B, h->T, h->H, h->D }, k[4] = { h->B, h->S, h->G, h->D };

	h->q = yk_case_in(c, dtype, 4, q, YK_ROWS, -2, 2);
	h->k = yk_case_in(c, dtype, 4, k, YK_ROWS, -2, 2);
	h->v = yk_case_in(c, dtype, 4, k, YK_ROWS, -2, 2);
	if (h->hidden >= 0) {
		struct yk_num *from = yk_case_alloc(c, (uint64_t)h->B * sizeof *from);
		for (int64_t b = 0; b < h->B; b++)
			from[b].i = h->hidden;
		yk_case_spoil(c, h->k, 1, from, 1);
		yk_case_spoil(c, h->v, 1, from, 1);
	}
	h->mask = h->masked ? add_mask(c, dtype, h) : yk_case_none(c);
	if (h->dropout > 0) {
		h->key = yk_case_value(c, yoke_i64,
				       (struct yk_num){ .i = (int64_t)yk_draw(c) });
		h->step = yk_case_value(c, yoke_i64,
					(struct yk_num){ .i = yk_draw_int(c, 0, 99) });
	} else {
		yk_case_none(c);
		yk_case_none(c);
	}
	c->op.nattr = 3;
	c->op.attr[0].i = h->causal;
	c->op.attr[1].f = h->scale;
	c->op.attr[2].f = h->dropout;
	yk_case_note(c, "S %lld%s%s%s%s", (long long)h->S, h->causal ? " causal" : "",
		     h->masked ? " masked" : "", h->hidden >= 0 ? " with NaN behind the mask" : "",
		     h->dropout > 0 ? " dropout" : "");
}

// How the number of keys is given: not at all (all keys), one number, or one per batch row.
enum keys { ALL, ONE, EACH };

static enum keys draw_keys(struct yk_case *c, struct heads *h)
{
	const enum keys keys = (enum keys)yk_draw_int(c, ALL, EACH);
	const int64_t one = yk_draw_int(c, 0, h->S);
	for (int64_t b = 0; b < h->B && keys; b++)
		h->seen[b].i = keys == ONE ? one : yk_draw_int(c, 0, h->S);
	return keys;
}

static void add_keys(struct yk_case *c, const struct heads *h, enum keys keys)
{
	for (uint32_t k = h->k; k <= h->v && !c->rejects; k++)
		yk_case_spoil(c, k, 1, h->seen, INT64_MAX);
	if (keys == ALL)
		yk_case_none(c);
	else if (keys == ONE)
		yk_case_value(c, yoke_i64, h->seen[0]);
	else
		yk_case_in_of(c, yoke_i64, 1, &h->B, YK_ANY, h->seen);
	for (int64_t b = 0; b < h->B && keys; b++)
		yk_case_note(c, "%s%lld", b ? "and " : "of ", (long long)h->seen[b].i);
}

// One query of one head: probabilities, those that dropout keeps, the logarithm of the sum, and the
// error bound of a score.
struct query {
	double *p, *kept;
	double lse, lost;
};

static const struct yk_num *row_of(const struct yk_case *c, uint32_t k, int64_t b,
				   int64_t t, int64_t h)
{
	const int64_t *dims = c->view[k].dims;
	return c->array[k].num + ((b * dims[1] + t) * dims[2] + h) * dims[3];
}

static void look(const struct yk_case *c, const struct heads *h, int64_t b, int64_t head,
		 int64_t t, struct query *to)
{
	const int dtype = c->view[h->q].dtype;
	const double unit = 2 * yk_num_unit(yk_num_acc(dtype)),
		     rounds = yk_case_rounding(c->tf32, dtype);
	const struct yk_num *q = row_of(c, h->q, b, t, head);
	const int64_t seen = h->seen[b].i;
	double max = -INFINITY, sum = 0;

	to->lost = 0;
	for (int64_t s = 0; s < h->S; s++) {
		double score = 0, abs = 0;
		bool sees = s < seen && (!h->causal || s <= t + seen - h->T);
		to->p[s] = to->kept[s] = 0;
		if (!sees) {
			to->p[s] = -INFINITY;
			continue;
		}
		const struct yk_num *k = row_of(c, h->k, b, s, head / (h->H / h->G));
		for (int64_t d = 0; d < h->D; d++) {
			score += q[d].f * k[d].f;
			abs += fabs(q[d].f * k[d].f);
		}
		score *= h->scale;
		abs *= h->scale;
		const double rounded = rounds * abs;
		if (h->masked) {
			int64_t mb = h->mask_b == 1 ? 0 : b,
				mh = h->mask_h == 1 ? 0 : head;
			double m =
				c->array[h->mask]
					.num[((mb * h->mask_h + mh) * h->T + t) * h->S +
					     s]
					.f;
			score += m;
			abs += isfinite(m) ? fabs(m) : 0;
		}
		to->p[s] = score;
		max = fmax(max, score);
		abs = (6 + sqrt((double)h->D)) * abs +
		      (isfinite(score) ? fabs(score) : 0);
		to->lost = fmax(to->lost, unit * abs + rounded);
	}
	for (int64_t s = 0; s < h->S; s++)
		sum += to->p[s] = isinf(max) ? 0 : exp(to->p[s] - max);
	to->lse = sum > 0 ? max + log(sum) : -INFINITY;
	for (int64_t s = 0; s < h->S; s++) {
		double p = sum > 0 ? to->p[s] / sum : 0;
		uint64_t index = (uint64_t)(((b * h->H + head) * h->T + t) * h->S + s);
		to->p[s] = to->kept[s] = p;
		if (!(h->dropout > 0))
			continue;
		uint32_t bits = yk_philox(index, (uint64_t)c->array[h->key].num[0].i,
					  (uint64_t)c->array[h->step].num[0].i);
		to->kept[s] =
			(bits >> 8) * 0x1p-24 >= h->dropout ? p / (1 - h->dropout) : 0;
	}
	to->lost = 2 * to->lost +
		   unit * (16 + sqrt((double)h->S)); // relative error of a probability
}

// Error of a weight x rounded to half precision for matrix units or, for f32, of it and its factor
// together; 0 for other dtypes.
static double rounding(const struct yk_case *c, double x, int dtype)
{
	return yk_num_acc(dtype) == dtype ? yk_case_rounding(c->tf32, dtype) * fabs(x) :
					    yk_num_unit(dtype) * fabs(x) + yk_num_min(dtype) / 2;
}

static void draw_query(struct yk_case *c, const struct heads *h, struct query *to)
{
	to->p = yk_case_alloc(c, (uint64_t)h->S * sizeof *to->p);
	to->kept = yk_case_alloc(c, (uint64_t)h->S * sizeof *to->kept);
}

static void attend(struct yk_case *c, const struct heads *h, uint32_t o, uint32_t lse,
		   int dtype)
{
	const int stat = yk_num_acc(dtype);
	const double unit = 2 * yk_num_unit(stat);
	struct query x;

	draw_query(c, h, &x);
	for (int64_t b = 0; b < h->B; b++)
		for (int64_t t = 0; t < h->T; t++)
			for (int64_t head = 0; head < h->H; head++) {
				int64_t at = ((b * h->T + t) * h->H + head) * h->D;
				int64_t stat_at = (b * h->H + head) * h->T + t;
				look(c, h, b, head, t, &x);
				yk_expect_real(
					&c->array[lse].want[stat_at], stat, x.lse,
					x.lost + 6 * unit *
							 fabs(isinf(x.lse) ? 0 : x.lse));
				for (int64_t d = 0; d < h->D; d++) {
					double y = 0, abs = 0, lost = 0;
					for (int64_t s = 0; s < h->S; s++) {
						double v = row_of(c, h->v, b, s,
								  head / (h->H / h->G))[d]
								   .f;
						y += x.kept[s] * v;
						abs += fabs(x.kept[s] * v);
						lost += rounding(c, x.kept[s], dtype) * fabs(v);
					}
					yk_expect_real(&c->array[o].want[at + d], dtype, y,
						     x.lost * abs + lost);
				}
			}
}

bool yk_make_attention(struct yk_case *c, int dtype)
{
	struct heads h = draw_heads(c);

	yk_case_op(c, YOKE_OP_ATTENTION);
	uint32_t o = yk_case_out(c, dtype, 4, (int64_t[]){ h.B, h.T, h.H, h.D }, YK_ROWS);
	uint32_t lse = yk_case_out(c, yk_num_acc(dtype), 3, (int64_t[]){ h.B, h.H, h.T },
				   YK_DENSE);
	add_operands(c, dtype, &h);
	const enum keys keys = draw_keys(c, &h);
	if (keys && yk_draw_one_in(c, 12)) {
		h.seen[keys == ONE ? 0 : h.B - 1].i = yk_draw_one_in(c, 2) ? -1 : h.S + 1;
		c->rejects = true;
	}
	add_keys(c, &h, keys);
	if (!c->rejects)
		attend(c, &h, o, lse, dtype);
	return true;
}

// ---- the gradient ----

struct grads {
	double *dq, *dk, *dv, *aq, *ak, *av; // and their error bounds
};

// Adds the contributions of query t of a head: with P the probabilities, Pk those that dropout
// keeps, dP = g.v over kept, dS = P (dP - g.o), dq = scale dS k, dk = scale dS q, dv = Pk g.
static void back_query(const struct yk_case *c, const struct heads *h, int64_t b,
		       int64_t head, int64_t t, uint32_t o, uint32_t g,
		       const struct query *x, struct grads *to)
{
	const int dtype = c->view[h->q].dtype;
	const double unit = 2 * yk_num_unit(yk_num_acc(dtype)),
		     rounds = yk_case_rounding(c->tf32, dtype);
	const struct yk_num *gr = row_of(c, g, b, t, head),
			    *orow = row_of(c, o, b, t, head);
	const struct yk_num *q = row_of(c, h->q, b, t, head);
	const int64_t group = head / (h->H / h->G),
		      at = ((b * h->T + t) * h->H + head) * h->D;
	double delta = 0, delta_abs = 0,
	       more = unit * (16 + sqrt((double)(h->D + h->S + h->T))) + x->lost;

	for (int64_t d = 0; d < h->D; d++) {
		delta += gr[d].f * orow[d].f;
		delta_abs += fabs(gr[d].f * orow[d].f);
	}
	for (int64_t s = 0; s < h->S; s++) {
		if (x->p[s] == 0)
			continue;
		const struct yk_num *k = row_of(c, h->k, b, s, group),
				    *v = row_of(c, h->v, b, s, group);
		const int64_t to_at = ((b * h->S + s) * h->G + group) * h->D;
		double keep = x->kept[s] / x->p[s], dp = 0, abs = 0;
		for (int64_t d = 0; d < h->D; d++) {
			dp += gr[d].f * v[d].f * keep;
			abs += fabs(gr[d].f * v[d].f * keep);
		}
		double ds = x->p[s] * (dp - delta) * h->scale;
		double ds_abs = (more * (abs + delta_abs) + rounds * abs) * x->p[s] * h->scale +
				rounding(c, ds, dtype);
		double lost = more * x->kept[s] + rounding(c, x->kept[s], dtype);
		for (int64_t d = 0; d < h->D; d++) {
			to->dq[at + d] += ds * k[d].f;
			to->aq[at + d] += ds_abs * fabs(k[d].f);
			to->dk[to_at + d] += ds * q[d].f;
			to->ak[to_at + d] += ds_abs * fabs(q[d].f);
			to->dv[to_at + d] += x->kept[s] * gr[d].f;
			to->av[to_at + d] += lost * fabs(gr[d].f);
		}
	}
}

static void set_wants(struct yk_case *c, uint32_t k, int dtype, const double *v,
		      const double *abs)
{
	for (int64_t i = 0; i < c->array[k].n; i++)
		yk_expect_real(&c->array[k].want[i], dtype, v[i], abs[i]);
}

bool yk_make_attention_backward(struct yk_case *c, int dtype)
{
	struct heads h = draw_heads(c);
	int64_t q[4] = { h.B, h.T, h.H, h.D }, k[4] = { h.B, h.S, h.G, h.D };
	int64_t stat[3] = { h.B, h.H, h.T };
	struct query x;
	struct grads to;

	yk_case_op(c, YOKE_OP_ATTENTION_BACKWARD);
	uint32_t dq = yk_case_out(c, dtype, 4, q, YK_ROWS),
		 dk = yk_case_out(c, dtype, 4, k, YK_ROWS);
	uint32_t dv = yk_case_out(c, dtype, 4, k, YK_ROWS);
	add_operands(c, dtype, &h);
// o and lse are results of the forward op, which needs n first; n follows them in the operands
	struct yk_case *f = yk_case_alloc(c, sizeof *f);
	*f = *c;
	int64_t nq = yk_count_of(4, q), nk = yk_count_of(4, k), ns = yk_count_of(3, stat);
	f->array[0].want = yk_case_alloc(c, (uint64_t)nq * sizeof(struct yk_expected));
	f->array[1].want = yk_case_alloc(c, (uint64_t)ns * sizeof(struct yk_expected));
	const enum keys keys = draw_keys(c, &h);
	attend(f, &h, 0, 1, dtype);
	struct yk_num *num = yk_case_alloc(c, (uint64_t)(nq + ns) * sizeof *num);
	for (int64_t i = 0; i < nq; i++)
		num[i].f = f->array[0].want[i].f;
	for (int64_t i = 0; i < ns; i++)
		num[nq + i].f = f->array[1].want[i].f;
	uint32_t o = yk_case_in_of(c, dtype, 4, q, YK_ROWS, num);
	yk_case_in_of(c, yk_num_acc(dtype), 3, stat, YK_DENSE, num + nq);
	uint32_t g = yk_case_in(c, dtype, 4, q, YK_ROWS, -1, 1);
	add_keys(c, &h, keys);

	double *all = yk_case_alloc(c, (uint64_t)(2 * nq + 4 * nk) * sizeof *all);
	to = (struct grads){ all,      all + 2 * nq,          all + 2 * nq + nk,
			     all + nq, all + 2 * nq + 2 * nk, all + 2 * nq + 3 * nk };
	draw_query(c, &h, &x);
	for (int64_t b = 0; b < h.B; b++)
		for (int64_t head = 0; head < h.H; head++)
			for (int64_t t = 0; t < h.T; t++) {
				look(c, &h, b, head, t, &x);
				back_query(c, &h, b, head, t, o, g, &x, &to);
			}
	set_wants(c, dq, dtype, to.dq, to.aq);
	set_wants(c, dk, dtype, to.dk, to.ak);
	set_wants(c, dv, dtype, to.dv, to.av);
	return true;
}

// ---- rope ----

bool yk_make_rope(struct yk_case *c, int dtype)
{
	const double unit = 2 * yk_num_unit(yk_num_acc(dtype));
	int64_t D = 2 * yk_draw_size(c, 65), B = yk_draw_int(c, 1, 3),
		H = yk_draw_int(c, 1, 4);
	int64_t T = yk_draw_size(c, 130), half = D / 2, dims[4] = { B, T, H, D };

	yk_case_op(c, YOKE_OP_ROPE);
	uint32_t y = yk_case_out(c, dtype, 4, dims, YK_ROWS);
	uint32_t x = yk_case_in(c, dtype, 4, dims, YK_ROWS, -2, 2);
	const int beside = yk_case_beside(c, dtype);
	uint32_t cs = yk_case_in(c, beside, 2, (int64_t[]){ T, half }, YK_DENSE, -1, 1);
	uint32_t sn = yk_case_in(c, beside, 2, (int64_t[]){ T, half }, YK_DENSE, -1, 1);
	for (int64_t r = 0; r < B * T * H; r++)
		for (int64_t d = 0; d < half; d++) {
			const struct yk_num *row = c->array[x].num + r * D;
			struct yk_expected *w = c->array[y].want + r * D;
			int64_t at = r / H % T * half + d;
			double co = c->array[cs].num[at].f, si = c->array[sn].num[at].f;
			double a = row[d].f, b = row[half + d].f;
			yk_expect_real(&w[d], dtype, a * co - b * si,
				     2 * unit * (fabs(a * co) + fabs(b * si)));
			yk_expect_real(&w[half + d], dtype, b * co + a * si,
				     2 * unit * (fabs(b * co) + fabs(a * si)));
		}
	if (yk_draw_one_in(c, 2))
		yk_case_alias(c, y, x, 0);
	return true;
}
