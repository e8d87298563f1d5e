// SPDX-License-Identifier: Apache-2.0
// Mixture of experts: routing, sorting of tokens by expert, and grouped products.
#include "config.h"

#include <math.h>

#include "nn/moe.h"

// Parameter indices.  The weights of all experts form one matrix, [experts E, 2E] and [experts 2E,
// E], each [in, out].
enum { ROUTER_W, ROUTER_B, UP_W, UP_B, DOWN_W, DOWN_B };

void yk_moe_parameters(struct yk_parameters *to, int64_t e, int64_t experts, const char *at)
{
	const int64_t hidden = 2 * e;
	yk_parameters_matrix(to, experts, e, 0.02, "%srouter.weight", at);
	yk_parameters_vector(to, experts, 0, "%srouter.bias", at);
	yk_parameters_matrix(to, experts * e, hidden, sqrt(2 / (double)e), "%sup.weight", at);
	yk_parameters_matrix(to, experts, hidden, 0, "%sup.bias", at);
	yk_parameters_matrix(to, experts * hidden, e, sqrt(1 / (double)hidden), "%sdown.weight",
			     at);
	yk_parameters_matrix(to, experts, e, 0, "%sdown.bias", at);
}

// Multiplies rows of x [A,in] by their group's weights [experts in, out] and adds its bias
// [experts, out].
static yoke_tensor *expert(yoke_tensor *x, yoke_tensor *w, yoke_tensor *b, yoke_tensor *first,
			   yoke_tensor *member)
{
	const int64_t experts = yoke_dim(b, 0),
		      dims[] = { experts, yoke_dim(w, 0) / experts, yoke_dim(w, 1) };
	yoke_tensor *y = yoke_grouped_matmul(x, yoke_reshape(w, 3, dims), first);
	return yoke_add(y, yoke_matmul(member, b, YOKE_BY_ROW));
}

// p [tokens,experts], in f32 even with mixed precision: routing compares numbers that are close to
// each other, and rounding them to half precision would send some tokens to other experts, with
// other gradients.
static yoke_tensor *router(const struct yk_network *n, const struct yk_moe *m, yoke_tensor *x)
{
	yoke_scope *s = yoke_scope_begin("router");
	if (!s || yoke_autocast(YOKE_DTYPE_NONE, NULL) < 0) {
		if (s)
			yoke_scope_end(s);
		return NULL;
	}
	yoke_tensor *p = yoke_lift(
		yoke_softmax(yk_network_linear(n, x, m->var[ROUTER_W], m->var[ROUTER_B]), -1));
	yoke_scope_end(s);
	return p;
}

yoke_tensor *yk_moe(const struct yk_network *n, const struct yk_moe *m, yoke_tensor *x,
		    yoke_tensor **balance, yoke_tensor **share)
{
	const int rank = yoke_rank(x);
	const int64_t tokens = yoke_count(x) / m->embed, all = tokens * m->active_experts;
	int64_t dims[YOKE_MAX_RANK];
	for (int i = 0; i < rank; i++)
		dims[i] = yoke_dim(x, i);
	x = yoke_reshape(x, 2, (int64_t[]){ tokens, m->embed });
	yoke_tensor *p = router(n, m, x), *chosen, *order;
	yoke_tensor *max = yoke_topk(p, m->active_experts, -1, 1, &chosen);
	if (m->active_experts > 1 && m->active_experts < m->experts)
		max = yoke_div(max, yoke_sum(max, YOKE_AXIS(1) | YOKE_KEEP));
	// each token appears active_experts times, sorted by expert
	yoke_tensor *sorted = yoke_sort(yoke_reshape(chosen, 1, &all), 0, 0, &order);
	yoke_tensor *token = m->active_experts == 1 ?
				     order :
				     yoke_div(order, yoke_const((double)m->active_experts));
	const int64_t bounds = m->experts + 1;
	yoke_tensor *before = yoke_lt(
		yoke_reshape(sorted, 2, (int64_t[]){ 1, all }),
		yoke_reshape(yoke_iota(yoke_i64, 1, &bounds, 0), 2, (int64_t[]){ bounds, 1 }));
	yoke_tensor *first = yoke_sum(yoke_cast(before, yoke_i64), YOKE_AXIS(1));
	yoke_tensor *member = yoke_cast(yoke_eq(yoke_reshape(sorted, 2, (int64_t[]){ all, 1 }),
						yoke_iota(yoke_i64, 1, &m->experts, 0)),
					yoke_dtype(m->var[UP_B]));
	yoke_tensor *y =
		expert(yoke_gather(x, token, 0), m->var[UP_W], m->var[UP_B], first, member);
	y = expert(yoke_dropout(yoke_relu(y), m->dropout), m->var[DOWN_W], m->var[DOWN_B], first,
		   member);
	if (m->gated)
		y = yoke_mul(y, yoke_reshape(yoke_gather(yoke_reshape(max, 1, &all), order, 0), 2,
					     (int64_t[]){ all, 1 }));
	y = yoke_scatter_add(yoke_full(yoke_dtype(y), 2, (int64_t[]){ tokens, m->embed }, 0), token,
			     y);
	yoke_tensor *size = yoke_sub(yoke_slice(first, 0, 1, bounds, 1),
				     yoke_slice(first, 0, 0, m->experts, 1));
	*share = yoke_lift(yoke_mul(yoke_cast(size, yoke_f32), yoke_const(1 / (double)all)));
	*balance = yoke_lift(
		yoke_mul(yoke_sum(yoke_mul(*share, yoke_cast(yoke_mean(p, YOKE_AXIS(0)), yoke_f32)),
				  YOKE_ALL),
			 yoke_const((double)m->experts)));
	return yoke_reshape(y, rank, dims);
}
