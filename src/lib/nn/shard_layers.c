// SPDX-License-Identifier: Apache-2.0
// The layers of tensor parallelism: products, embedding and loss over sharded parameters.
#include "config.h"

#include "nn/shard_layers.h"

#include <stdio.h>

#include "yoke-observe.h"

yoke_tensor *yk_shard_column(const struct yk_network *n, yoke_tensor *x, yoke_tensor *w,
			     yoke_tensor *b)
{
	return yk_network_linear(n, n->shard.group ? yoke_tensor_in(n->shard.group, x) : x, w, b);
}

yoke_tensor *yk_shard_row(const struct yk_network *n, yoke_tensor *x, yoke_tensor *w,
			  yoke_tensor *b)
{
	if (!n->shard.group)
		return yk_network_linear(n, x, w, b);
	yoke_tensor *y = yoke_tensor_out(n->shard.group, yk_network_linear(n, x, w, YOKE_NONE));
	return b == YOKE_NONE ? y : yoke_add(y, yoke_cast(b, yoke_dtype(y)));
}

yoke_tensor *yk_shard_part(const struct yk_network *n, yoke_tensor *x)
{
	const struct yk_shard *s = &n->shard;
	if (!s->group)
		return x;
	const int64_t width = yoke_dim(x, -1) / s->ranks;
	return yoke_slice(yoke_tensor_in(s->group, x), -1, s->rank * width, (s->rank + 1) * width,
			  1);
}

// Token ids relative to the first token of this rank's shard of the vocabulary.
static yoke_tensor *from_first(const struct yk_network *n, yoke_tensor *ids)
{
	const struct yk_shard *s = &n->shard;
	return yoke_sub(ids, yoke_const((double)(s->rank * n->shape.vocab / s->ranks)));
}

yoke_tensor *yk_shard_embedding(const struct yk_network *n, yoke_tensor *w, yoke_tensor *ids)
{
	if (!n->shard.group)
		return yoke_embedding(w, ids);
	yoke_tensor *at = from_first(n, ids), *zero = yoke_const(0);
	yoke_tensor *here =
		yoke_and(yoke_ge(at, zero), yoke_lt(at, yoke_const((double)yoke_dim(w, 0))));
	int64_t dims[YOKE_MAX_RANK];
	const int rank = yoke_rank(ids);
	for (int i = 0; i < rank; i++)
		dims[i] = yoke_dim(ids, i);
	dims[rank] = 1;
	yoke_tensor *rows = yoke_embedding(w, yoke_select(here, at, zero));
	return yoke_tensor_out(n->shard.group,
			       yoke_select(yoke_reshape(here, rank + 1, dims), rows, zero));
}

yoke_tensor *yk_shard_cross_entropy(const struct yk_network *n, yoke_tensor *logits,
				    yoke_tensor *ids)
{
	if (!n->shard.group)
		return yoke_cross_entropy(logits, ids, -1, 0);
	const int64_t all = yoke_count(ids), v = yoke_dim(logits, -1), two[] = { all, v },
		      one[] = { all, 1 };
	yoke_group *g = n->shard.group;
	const int wide = yoke_dtype(logits) == yoke_f64 ? yoke_f64 : yoke_f32;
	yoke_tensor *x = yoke_reshape(yoke_cast(logits, wide), 2, two);
	yoke_tensor *column = yoke_iota(yoke_i32, 1, &v, 0),
		    *at = yoke_reshape(from_first(n, ids), 2, one);
	// from this shard: the log of the sum of exponentials, and the target's logit, or 0 if
	// another shard has the target
	yoke_tensor *own = yoke_logsumexp(x, -1);
	yoke_tensor *target =
		yoke_sum(yoke_select(yoke_eq(column, at), x, yoke_const(0)), YOKE_AXIS(1));
	yoke_tensor *max = yoke_stop_grad(yoke_all_reduce(g, YOKE_REDUCE_MAX, yoke_stop_grad(own)));
	yoke_tensor *both[] = { yoke_exp(yoke_sub(own, max)), target };
	yoke_tensor *sum = yoke_tensor_out(g, yoke_concat(2, both, 0));
	yoke_tensor *whole = yoke_add(yoke_log(yoke_slice(sum, 0, 0, all, 1)), max);
	return yoke_mean(yoke_sub(whole, yoke_slice(sum, 0, all, 2 * all, 1)), YOKE_ALL);
}

static yoke_tensor *loss_of(const struct yk_network *n, yoke_tensor *hidden, yoke_tensor *targets)
{
	yoke_tensor *logits = n->model->logits(n, hidden);
	yoke_range_pop();
	yoke_range_push("loss");
	yoke_tensor *loss = yk_shard_cross_entropy(n, logits, targets);
	yoke_range_pop();
	return loss;
}

yoke_tensor *yk_network_loss(const struct yk_network *n, yoke_tensor *ids, yoke_tensor *targets,
			     double dropout)
{
	yoke_range_push("forward");
	return loss_of(n, yk_network_forward(n, ids, dropout), targets);
}

yoke_tensor *yk_network_packed_loss(const struct yk_network *n, yoke_tensor *ids,
				    yoke_tensor *targets, yoke_tensor *positions, double dropout)
{
	yoke_range_push("forward");
	return loss_of(n, n->model->packed(n, ids, positions, dropout), targets);
}

yoke_scope *yk_shard_begin(const struct yk_network *n)
{
	char name[32];
	snprintf(name, sizeof name, "cut%lld", (long long)n->shard.rank);
	return n->shard.group ? yoke_scope_begin(name) : NULL;
}

yoke_tensor *yk_shard_end(yoke_scope *s, yoke_tensor *x)
{
	if (!s)
		return x;
	x = yoke_lift(x);
	yoke_scope_end(s);
	return x;
}
