// SPDX-License-Identifier: Apache-2.0
// Rows over lists of tensors, steps of optimizers and what goes with them: shapes, and the parts that
// define them.  Arithmetic is f32, or f64 for f64, whatever the storage; states and gradients of half
// precision parameters may be f32.

#include "config.h"

#include <math.h>

#include "graph/shape.h"

// ---- shapes ----

// Lists of a call agree in shape, tensor by tensor, with the first list, and have its dtype or that of
// its accumulator.  List `optional`, when that is not 0, may be absent as a whole.
static int want_lists(struct yk_graph *g, const struct yk_call *c, uint32_t lists,
		      uint32_t optional)
{
	for (uint32_t i = 0; i < c->list; i++) {
		const struct yk_value *p = IN(i);
		if (want_float(g, c, p) < 0)
			return YOKE_EDTYPE;
		for (uint32_t l = 1; l < lists; l++) {
			const uint32_t at = l * c->list + i;
			if (!has(c, at) && l == optional)
				continue;
			if (!has(c, at))
				return yk_op_fail(g, c->op, YOKE_EINVAL, "list %u is absent", l);
			const struct yk_value *x = IN(at);
			if (x->dtype != p->dtype && x->dtype != yk_acc(p->dtype))
				return fail_two(g, c, YOKE_EDTYPE, "dtypes differ:", p, x);
			if (!yk_same_shape(x, p))
				return fail_two(g, c, YOKE_ESHAPE, "shapes differ:", p, x);
		}
	}
	return 0;
}

// The numbers behind the lists are of one element each; with bit i of `optional`, i may be absent.
static int want_numbers(struct yk_graph *g, const struct yk_call *c, uint32_t lists, uint32_t n,
			const char *const *name, unsigned optional)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t at = lists * c->list + i;
		char text[160];
		if (!has(c, at) && optional >> i & 1)
			continue;
		if (!has(c, at))
			return yk_op_fail(g, c->op, YOKE_EINVAL, "%s is absent", name[i]);
		if (yk_count(IN(at)) != 1 || !yk_is_float(IN(at)->dtype))
			return yk_op_fail(g, c->op, YOKE_ESHAPE,
					  "%s is one floating-point number, got %s", name[i],
					  yk_describe(IN(at), text));
	}
	return 0;
}

// Results like the lists from[0], from[1], .. of the operands.
static void like_lists(const struct yk_graph *g, const struct yk_call *c, int lists,
		       const uint32_t *from, struct yk_value *out)
{
	for (int l = 0; l < lists; l++)
		for (uint32_t i = 0; i < c->list; i++) {
			yk_id x = c->in[from[l] * c->list + i];
			*out++ = g->value[x == YK_NIL ? c->in[i] : x];
		}
}

// lists p g m v; lr c1 c2 gscale -> lists p m v
int yk_shape_multi_adam(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	static const char *const name[] = { "lr", "c1", "c2", "scale" };
	int e = want_lists(g, c, 4, 0);

	e = e < 0 ? e : want_numbers(g, c, 4, 4, name, 1 << 3);
	if (e == 0)
		like_lists(g, c, 3, (uint32_t[]){ 0, 2, 3 }, out);
	return e;
}

// lists p g b; lr first gscale -> lists p b
int yk_shape_multi_sgd(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	static const char *const name[] = { "lr", "first", "scale" };
	int e = want_lists(g, c, 3, 2);

	// without buffers no step is the first
	e = e < 0 ? e : want_numbers(g, c, 3, 3, name, 1 << 2 | (has(c, 2 * c->list) ? 0 : 1 << 1));
	if (e == 0)
		like_lists(g, c, 2, (uint32_t[]){ 0, 2 }, out);
	return e;
}

int yk_shape_multi_norm(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	*out = (struct yk_value){ .dtype = yoke_f32 };
	return want_lists(g, c, 1, 0);
}

// list g; scale -> list of its accumulators' dtypes, bool []
int yk_shape_multi_unscale(struct yk_graph *g, const struct yk_call *c,
			   struct yk_value *out)
{
	like_lists(g, c, 1, (uint32_t[]){ 0 }, out);
	for (uint32_t i = 0; i < c->list; i++)
		out[i].dtype = (uint8_t)yk_acc(out[i].dtype);
	out[c->list] = (struct yk_value){ .dtype = yoke_bool };
	int e = want_lists(g, c, 1, 0);
	return e < 0 ? e : want_numbers(g, c, 1, 1, (const char *const[]){ "scale" }, 0);
}

// ---- parts ----

// Tensor i of a list in the accumulator's dtype; a number that all tensors share in that of x.
static yk_id item(struct yk_graph *g, const struct yk_call *c, uint32_t list, uint32_t i)
{
	return yk_up(g, c->in[list * c->list + i]);
}

static yk_id shared(struct yk_graph *g, yk_id number, yk_id x)
{
	if (number == YK_NIL || number == YK_BAD)
		return number;
	if (g->value[number].rank) // [1] against a tensor of no axes would give it one
		number = yk_reshape(g, number, 0, NULL);
	return yk_down(g, number, x);
}

// x a + y b, with literals a and b
static yk_id blend(struct yk_graph *g, yk_id x, double a, yk_id y, double b)
{
	return yk_bin(g, YK_ADD, yk_bin_lit(g, YK_MUL, x, a), yk_bin_lit(g, YK_MUL, y, b));
}

// What Adam and what follows it have in common: m, v and sqrt(v) / sqrt(c2) + eps.
struct moments {
	yk_id p, m, v, root, lr, c1;
};

static struct moments moments(struct yk_graph *g, const struct yk_call *c, uint32_t i)
{
	const yk_id *single = c->in + 4 * c->list;
	struct moments a = { .p = item(g, c, 0, i) };
	yk_id cot = item(g, c, 1, i), scale = shared(g, single[3], a.p);
	double beta1 = c->attr[0].f, beta2 = c->attr[1].f;
	a.lr = shared(g, single[0], a.p);
	a.c1 = shared(g, single[1], a.p);
	if (scale != YK_NIL)
		cot = yk_bin(g, YK_MUL, cot, scale);
	a.m = blend(g, item(g, c, 2, i), beta1, cot, 1 - beta1);
	a.v = blend(g, item(g, c, 3, i), beta2, yk_un(g, YK_SQUARE, cot), 1 - beta2);
	a.root = yk_bin(g, YK_DIV, yk_un(g, YK_SQRT, a.v),
			yk_un(g, YK_SQRT, shared(g, single[2], a.p)));
	a.root = yk_bin_lit(g, YK_ADD, a.root, c->attr[2].f);
	return a;
}

static void moments_out(struct yk_graph *g, const struct yk_call *c, uint32_t i,
			const struct moments *a, yk_id p, yk_id *out)
{
	uint32_t n = c->list;
	out[i] = yk_down(g, p, c->in[i]);
	out[n + i] = yk_down(g, a->m, c->in[2 * n + i]);
	out[2 * n + i] = yk_down(g, a->v, c->in[3 * n + i]);
}

void yk_decompose_multi_adamw(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	for (uint32_t i = 0; i < c->list; i++) {
		struct moments a = moments(g, c, i);
		// p (1 - lr decay) - (lr / c1) m / (sqrt(v) / sqrt(c2) + eps)
		yk_id keep = yk_bin_lit(g, YK_MUL, a.lr, -c->attr[3].f);
		yk_id p = yk_bin(g, YK_MUL, a.p, yk_bin_lit(g, YK_ADD, keep, 1));
		yk_id step = yk_bin(g, YK_MUL, yk_bin(g, YK_DIV, a.lr, a.c1),
				    yk_bin(g, YK_DIV, a.m, a.root));
		moments_out(g, c, i, &a, yk_bin(g, YK_SUB, p, step), out);
	}
}

// The 2-norm of all elements.
static yk_id norm(struct yk_graph *g, yk_id x)
{
	yk_id sum = yk_reduce(g, YK_SUM, yk_un(g, YK_SQUARE, x), YOKE_ALL, false);
	return yk_un(g, YK_SQRT, sum);
}

// phi(|p|) / |r|, 1 where a norm is 0 (You et al. 2020); phi keeps |p| in attr[4] .. attr[5]
static yk_id trust(struct yk_graph *g, const struct yk_call *c, yk_id p, yk_id r)
{
	double least = c->attr[4].f, most = c->attr[5].f;
	yk_id of_p = norm(g, p), of_r = norm(g, r), phi = of_p;
	if (of_p == YK_BAD)
		return of_p;
	int dtype = g->value[of_p].dtype;
	if (least > 0)
		phi = yk_bin_lit(g, YK_MAX, phi, least);
	if (most < INFINITY)
		phi = yk_bin_lit(g, YK_MIN, phi, most);
	yk_id zero = yk_lit(g, dtype, 0);
	yk_id none = yk_bin(g, YK_OR, yk_bin(g, YK_EQ, of_p, zero),
			    yk_bin(g, YK_EQ, of_r, zero));
	return yk_tri(g, YK_SELECT, none, yk_lit(g, dtype, 1),
		      yk_bin(g, YK_DIV, phi, of_r));
}

void yk_decompose_multi_lamb(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	for (uint32_t i = 0; i < c->list; i++) {
		struct moments a = moments(g, c, i);
		// r = (m / c1) / (sqrt(v) / sqrt(c2) + eps) + decay p; p - lr ratio r
		yk_id r = yk_bin(g, YK_DIV, yk_bin(g, YK_DIV, a.m, a.c1), a.root);
		if (c->attr[3].f != 0)
			r = yk_bin(g, YK_ADD, r, yk_bin_lit(g, YK_MUL, a.p, c->attr[3].f));
		yk_id rate = a.lr;
		if (c->attr[6].i)
			rate = yk_bin(g, YK_MUL, rate, trust(g, c, a.p, r));
		yk_id p = yk_bin(g, YK_SUB, a.p, yk_bin(g, YK_MUL, rate, r));
		moments_out(g, c, i, &a, p, out);
	}
}

void yk_decompose_multi_sgd(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	uint32_t n = c->list;
	const yk_id *single = c->in + 3 * n;
	double momentum = c->attr[0].f, dampening = c->attr[1].f, decay = c->attr[2].f;
	for (uint32_t i = 0; i < n; i++) {
		yk_id p = item(g, c, 0, i), cot = item(g, c, 1, i), b = item(g, c, 2, i);
		yk_id scale = shared(g, single[2], p);
		if (scale != YK_NIL)
			cot = yk_bin(g, YK_MUL, cot, scale);
		if (decay != 0)
			cot = yk_bin(g, YK_ADD, cot, yk_bin_lit(g, YK_MUL, p, decay));
		out[n + i] = YK_NIL;
		if (b != YK_NIL) {
			// b = g at the first step
			yk_id next = blend(g, b, momentum, cot, 1 - dampening);
			yk_id first = shared(g, single[1], p);
			yk_id starts = yk_bin(g, YK_NE, first,
					      yk_lit(g, g->value[first].dtype, 0));
			b = yk_tri(g, YK_SELECT, starts, cot, next);
			out[n + i] = yk_down(g, b, c->in[2 * n + i]);
			cot = !c->attr[3].i ? b :
					      yk_bin(g, YK_ADD, cot,
						     yk_bin_lit(g, YK_MUL, b, momentum));
		}
		yk_id step = yk_bin(g, YK_MUL, shared(g, single[0], p), cot);
		out[i] = yk_down(g, yk_bin(g, YK_SUB, p, step), c->in[i]);
	}
}

void yk_decompose_multi_norm(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id sum = YK_NIL;
	bool wide = false; // all in f64 when one of them is
	for (uint32_t i = 0; i < c->list; i++)
		wide |= g->value[c->in[i]].dtype == yoke_f64;
	for (uint32_t i = 0; i < c->list; i++) {
		yk_id x = yk_cast(g, c->in[i], wide ? yoke_f64 : yoke_f32);
		yk_id s = yk_reduce(g, YK_SUM, yk_un(g, YK_SQUARE, x), YOKE_ALL, false);
		sum = sum == YK_NIL ? s : yk_bin(g, YK_ADD, sum, s);
	}
	out[0] = sum == YK_NIL ? yk_lit(g, yoke_f32, 0) :
				 yk_cast(g, yk_un(g, YK_SQRT, sum), yoke_f32);
}

void yk_decompose_multi_unscale(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id bad = yk_lit(g, yoke_f32, 0); // how many are not finite, or at least one
	for (uint32_t i = 0; i < c->list; i++) {
		yk_id x = item(g, c, 0, i);
		out[i] = yk_bin(g, YK_MUL, x, shared(g, c->in[c->list], x));
		yk_id finite = yk_un(g, YK_ISFINITE, out[i]);
		yk_id one = yk_cast(g, yk_un(g, YK_NOT, finite), yoke_f32);
		bad = yk_bin(g, YK_ADD, bad, yk_reduce(g, YK_SUM, one, YOKE_ALL, false));
	}
	out[c->list] = yk_bin(g, YK_NE, bad, yk_lit(g, yoke_f32, 0));
}
