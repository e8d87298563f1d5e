// SPDX-License-Identifier: Apache-2.0
// Optimizer steps over lists of tensors, one pass over memory: AdamW, SGD with momentum,
// and the norm of all gradients together, f32.  Definitions: Loshchilov and Hutter 2019;
// PyTorch's SGD. Each tensor is cut into chunks of its own, so results depend on shapes
// alone.
#include "config.h"

#include <math.h>

#include "../rows/operand.h"
#include "../vector/vec.h"

enum { CHUNK = 16384 }; // elements of a piece

// The workspace: first[i] is the number of tensor i's first piece, first[list] that of
// all pieces; behind it one double for each piece of MULTI_NORM.
struct job {
	const struct yoke_op *op;
	int64_t *first;
	double *sum;
	double lr, c1, c2, scale;
	bool start; // SGD: there is no momentum yet
};

static int64_t chunks_of(const struct yoke_view *v)
{
	return pieces_of(yk_elements(v), CHUNK);
}

static void cut(struct job *j, const struct yoke_view *tensors)
{
	const uint32_t list = j->op->list;
	j->first = yk_ptr(&j->op->workspace);
	j->sum = (double *)(j->first + list + 1);
	j->first[0] = 0;
	for (uint32_t i = 0; i < list; i++)
		j->first[i + 1] = j->first[i] + chunks_of(&tensors[i]);
}

struct chunk {
	uint32_t tensor;
	int64_t from, n; // elements
};

static struct chunk chunk_of(const struct job *j, const struct yoke_view *tensors,
			     int64_t piece)
{
	uint32_t lo = 0, hi = j->op->list; // first[lo] <= piece < first[hi]
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (j->first[mid] <= piece)
			lo = mid;
		else
			hi = mid;
	}
	struct chunk c = { .tensor = lo, .from = (piece - j->first[lo]) * CHUNK };
	c.n = yk_elements(&tensors[lo]) - c.from;
	if (c.n > CHUNK)
		c.n = CHUNK;
	return c;
}

// Tensor `tensor` of list k of views, from an element on.
static float *part(const struct job *j, const struct yoke_view *views, int k,
		   const struct chunk *c)
{
	return (float *)yk_ptr(&views[(uint32_t)k * j->op->list + c->tensor]) + c->from;
}

// m = b1 m + (1-b1) g, v = b2 v + (1-b2) g^2,
// p = p (1 - lr wd) - (lr / c1) m / (sqrt v / sqrt c2 + eps)
static void adamw(void *arg, int64_t piece)
{
	const struct job *j = arg;
	const struct yoke_op *op = j->op;
	const struct chunk c = chunk_of(j, op->in, piece);
	const float *p0 = part(j, op->in, 0, &c), *g0 = part(j, op->in, 1, &c);
	const float *m0 = part(j, op->in, 2, &c), *v0 = part(j, op->in, 3, &c);
	float *p1 = part(j, op->out, 0, &c), *m1 = part(j, op->out, 1, &c);
	float *v1 = part(j, op->out, 2, &c);
	const double beta1 = op->attr[0].f, beta2 = op->attr[1].f;
	const vf b1 = vf_splat((float)beta1), b1c = vf_splat((float)(1 - beta1));
	const vf b2 = vf_splat((float)beta2), b2c = vf_splat((float)(1 - beta2));
	const vf eps = vf_splat((float)op->attr[2].f);
	const vf keep = vf_splat((float)(1 - j->lr * op->attr[3].f));
	const vf step = vf_splat((float)(j->lr / j->c1)),
		 root = vf_splat((float)sqrt(j->c2));
	const vf scale = vf_splat((float)j->scale);
	for (int64_t i = 0; i < c.n; i += VF) {
		const int64_t left = c.n - i;
		vf g = vf_get(g0 + i, left) * scale;
		vf m = b1 * vf_get(m0 + i, left) + b1c * g;
		vf v = b2 * vf_get(v0 + i, left) + b2c * (g * g);
		vf p = vf_get(p0 + i, left) * keep - step * m / (vf_sqrt(v) / root + eps);
		vf_put(p1 + i, p, left);
		vf_put(m1 + i, m, left);
		vf_put(v1 + i, v, left);
	}
}

// g += wd p; b = first ? g : mu b + (1 - damp) g; p -= lr (nesterov ? g + mu b : b)
static void sgd(void *arg, int64_t piece)
{
	const struct job *j = arg;
	const struct yoke_op *op = j->op;
	const struct chunk c = chunk_of(j, op->in, piece);
	const bool momentum = op->lists_in > 2;
	const float *p0 = part(j, op->in, 0, &c), *g0 = part(j, op->in, 1, &c);
	const float *b0 = momentum ? part(j, op->in, 2, &c) : NULL;
	float *p1 = part(j, op->out, 0, &c),
	      *b1 = momentum ? part(j, op->out, 1, &c) : NULL;
	const vf mu = vf_splat((float)op->attr[0].f),
		 undamped = vf_splat((float)(1 - op->attr[1].f));
	const vf decay = vf_splat((float)op->attr[2].f);
	const bool nesterov = op->attr[3].i;
	const vf lr = vf_splat((float)j->lr), scale = vf_splat((float)j->scale);
	for (int64_t i = 0; i < c.n; i += VF) {
		const int64_t left = c.n - i;
		vf p = vf_get(p0 + i, left);
		vf g = vf_get(g0 + i, left) * scale + decay * p;
		if (momentum) {
			vf b = j->start ? g : mu * vf_get(b0 + i, left) + undamped * g;
			vf_put(b1 + i, b, left);
			g = nesterov ? g + mu * b : b;
		}
		vf_put(p1 + i, p - lr * g, left);
	}
}

static void squares(void *arg, int64_t piece)
{
	const struct job *j = arg;
	const struct chunk c = chunk_of(j, j->op->in, piece);
	const float *g = part(j, j->op->in, 0, &c);
	vd lo = { 0 }, hi = { 0 };
	for (int64_t i = 0; i < c.n; i += VF) {
		vf v = vf_get(g + i, c.n - i);
		vd a = vd_widen(v, 0), b = vd_widen(v, 1);
		lo += a * a;
		hi += b * b;
	}
	j->sum[piece] = vd_sum(lo + hi);
}

// ---- operands ----

static bool dense_lists(const struct yoke_view *views, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!is_f32(&views[i]) || !yk_dense(&views[i]))
			return false;
	return true;
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	(void)impl;
	return ((uint64_t)op->list + 1) * sizeof(int64_t);
}

static uint64_t can_adamw(const struct yoke_op *op)
{
	const struct yoke_view *s = op->in + 4 * op->list;
	return op->lists_in == 4 && op->lists_out == 3 &&
	       dense_lists(op->in, 4 * op->list) && dense_lists(op->out, 3 * op->list) &&
	       is_value(&s[0]) && is_value(&s[1]) && is_value(&s[2]) &&
	       is_value_or_none(&s[3]);
}

static int run_adamw(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	(void)impl, (void)prepared;
	const struct yoke_view *s = op->in + 4 * op->list;
	struct job j = {
		.op = op,
		.lr = value_real(&s[0], 0),
		.c1 = value_real(&s[1], 1),
		.c2 = value_real(&s[2], 1),
		.scale = value_real(&s[3], 1),
	};
	cut(&j, op->in);
	yk_team_run(j.first[op->list], adamw, &j);
	return 0;
}

static uint64_t can_sgd(const struct yoke_op *op)
{
	const uint32_t lists = op->lists_in;
	const struct yoke_view *s = op->in + lists * op->list;
	return (lists == 2 || lists == 3) && op->lists_out == lists - 1 &&
	       dense_lists(op->in, lists * op->list) &&
	       dense_lists(op->out, (lists - 1) * op->list) && is_value(&s[0]) &&
	       is_value_or_none(&s[1]) && is_value_or_none(&s[2]);
}

static int run_sgd(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	(void)impl, (void)prepared;
	const struct yoke_view *s = op->in + op->lists_in * op->list;
	struct job j = {
		.op = op,
		.lr = value_real(&s[0], 0),
		.start = value_real(&s[1], 0) != 0,
		.scale = value_real(&s[2], 1),
	};
	cut(&j, op->in);
	yk_team_run(j.first[op->list], sgd, &j);
	return 0;
}

static uint64_t can_norm(const struct yoke_op *op)
{
	return op->lists_in == 1 && dense_lists(op->in, op->list) && is_f32(&op->out[0]);
}

static uint64_t workspace_norm(const struct yoke_op *op, uint32_t impl)
{
	uint64_t pieces = 0;
	for (uint32_t i = 0; i < op->list; i++)
		pieces += (uint64_t)chunks_of(&op->in[i]);
	return workspace(op, impl) + pieces * sizeof(double);
}

static int run_norm(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	(void)impl, (void)prepared;
	struct job j = { .op = op };
	double sum = 0;
	cut(&j, op->in);
	yk_team_run(j.first[op->list], squares, &j);
	for (int64_t i = 0; i < j.first[op->list]; i++)
		sum += j.sum[i];
	*(float *)yk_ptr(&op->out[0]) = (float)sqrt(sum);
	return 0;
}

const struct yk_kernel ISA(yk_multi_adamw) = {
	.can = can_adamw,
	.workspace = workspace,
	.run = run_adamw,
	.impl = { "chunks" },
};
const struct yk_kernel ISA(yk_multi_sgd) = {
	.can = can_sgd,
	.workspace = workspace,
	.run = run_sgd,
	.impl = { "chunks" },
};
const struct yk_kernel ISA(yk_multi_norm) = {
	.can = can_norm,
	.workspace = workspace_norm,
	.run = run_norm,
	.impl = { "chunks" },
};
