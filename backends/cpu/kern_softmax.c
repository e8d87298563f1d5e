// SPDX-License-Identifier: Apache-2.0
// Softmax and its logarithm over the last axis, and their gradients, f32.
// A piece of work is a run of whole rows; y may be x, dx may be y or g.
#include "config.h"

#include <math.h>

#include "operand.h"
#include "softrow.h"

struct job {
	struct rows a, b, out; // b: g of the gradient
	int64_t each;          // rows in a piece
	bool logarithm;
};

static int64_t end_of(const struct job *j, int64_t piece)
{
	int64_t end = (piece + 1) * j->each;
	return end < j->out.count ? end : j->out.count;
}

// y = x * a + b, n elements
static void scale_row(float *y, const float *x, int64_t n, float a, float b)
{
	const vf av = vf_splat(a), bv = vf_splat(b);
	for (int64_t i = 0; i < n; i += VF)
		vf_put(y + i, vf_get(x + i, n - i) * av + bv, n - i);
}

static void forward(void *arg, int64_t piece)
{
	const struct job *j = arg;
	const int64_t n = j->out.cols, end = end_of(j, piece);
	for (int64_t r = piece * j->each; r < end; r++) {
		const float *x = row_at(&j->a, r);
		float *y = row_at(&j->out, r);
		float m = row_max(x, n);
		if (j->logarithm) {
			// x - m first: the sum m + log(..) would round away a small
			// logarithm
			float lse = logf(row_exp(NULL, x, n, m));
			scale_row(y, x, n, 1, -m);
			scale_row(y, y, n, 1, -lse);
		} else {
			scale_row(y, y, n, 1 / row_exp(y, x, n, m), 0);
		}
	}
}

// softmax: dx = y (g - sum g y); logarithm: dx = g - exp(y) sum g
static void backward(void *arg, int64_t piece)
{
	const struct job *j = arg;
	const int64_t n = j->out.cols, end = end_of(j, piece);
	for (int64_t r = piece * j->each; r < end; r++) {
		const float *y = row_at(&j->a, r), *g = row_at(&j->b, r);
		float *dx = row_at(&j->out, r);
		vf sum = { 0 };
		for (int64_t i = 0; i < n; i += VF) {
			vf gv = vf_get(g + i, n - i);
			sum += j->logarithm ? gv : gv * vf_get(y + i, n - i);
		}
		const vf s = vf_splat(vf_sum(sum));
		for (int64_t i = 0; i < n; i += VF) {
			vf gv = vf_get(g + i, n - i), yv = vf_get(y + i, n - i);
			vf_put(dx + i, j->logarithm ? gv - vf_exp(yv) * s : yv * (gv - s),
			       n - i);
		}
	}
}

static uint64_t can(const struct yoke_op *op)
{
	return is_rows(&op->in[0]) && is_rows(&op->out[0]);
}

static uint64_t can_back(const struct yoke_op *op)
{
	return can(op) && is_rows(&op->in[1]);
}

static int run_rows(const struct yoke_op *op, void (*fn)(void *, int64_t),
		    const struct yoke_view *b)
{
	struct job j = {
		.a = rows_of(&op->in[0]),
		.b = rows_of(b),
		.out = rows_of(&op->out[0]),
		.logarithm = op->attr[0].i,
	};
	if (!yk_elements(&op->out[0]))
		return 0;
	j.each = rows_per_piece(j.out.count, j.out.cols, 0);
	yk_team_run(pieces_of(j.out.count, j.each), fn, &j);
	return 0;
}

static int run(const struct yoke_op *op, uint32_t impl)
{
	(void)impl;
	return run_rows(op, forward, &op->in[0]);
}

static int run_back(const struct yoke_op *op, uint32_t impl)
{
	(void)impl;
	return run_rows(op, backward, &op->in[1]);
}

const struct yk_kernel ISA(yk_softmax) = { .can = can, .run = run, .impl = { "rows" } };
const struct yk_kernel ISA(yk_softmax_back) = {
	.can = can_back, .run = run_back, .impl = { "rows" },
};
