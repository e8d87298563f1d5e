// SPDX-License-Identifier: Apache-2.0
// Shards of parameters, and the layers that compute with them.
#include "config.h"

#include "nn/shard.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "nn/model.h"

// ---- shards ----

int yk_shard_cut(const struct yk_shard *s, const char *name, int rank, int64_t *dims, struct yk_cut *to)
{
	const struct yk_shard_rule *r = s && s->ranks > 1 ? s->rule : NULL;
	*to = (struct yk_cut){ 0 };
	while (r && r->pattern && fnmatch(r->pattern, name, 0))
		r++;
	if (!r || !r->pattern)
		return 0;
	const int axis = r->by == YK_ROW;
	const int64_t blocks = r->blocks ? r->blocks : 1;
	if (axis >= rank || dims[axis] % blocks || dims[axis] / blocks < s->ranks)
		return yk_fail(YOKE_EINVAL, "tensor=%lld: %s has %lld in its axis %d, too few for each rank to have one",
			       (long long)s->ranks, name, axis < rank ? (long long)(dims[axis] / blocks) : 0, axis);
	const int64_t n = dims[axis] / blocks;
	if (r->by != YK_VOCAB && n % s->ranks)
		return yk_fail(YOKE_EINVAL, "tensor=%lld does not divide the %lld of %s", (long long)s->ranks, (long long)n, name);
	*to = (struct yk_cut){ axis, (int)blocks, dims[axis], s->rank * n / s->ranks, (s->rank + 1) * n / s->ranks };
	dims[axis] = blocks * (to->to - to->from);
	return 0;
}

yoke_tensor *yk_cut_of(const struct yk_cut *c, yoke_tensor *whole)
{
	yoke_tensor *block[8];
	const int64_t n = c->blocks ? c->all / c->blocks : 0;
	for (int b = 0; b < c->blocks; b++)
		block[b] = yoke_slice(whole, c->axis, b * n + c->from, b * n + c->to, 1);
	return c->blocks == 0 ? whole : c->blocks == 1 ? block[0] : yoke_concat(c->blocks, block, c->axis);
}

// Copies between a whole and a shard, in either direction.
static void copy(const struct yk_cut *c, int rank, const int64_t *dims, size_t each, char *whole, char *cut, bool out)
{
	size_t outer = 1, inner = each;
	for (int d = 0; d < rank; d++)
		if (c->blocks && d < c->axis)
			outer *= (size_t)dims[d];
		else if (!c->blocks || d > c->axis)
			inner *= (size_t)dims[d];
	const size_t blocks = c->blocks ? (size_t)c->blocks : 1, n = c->blocks ? (size_t)c->all / blocks : 1,
		     from = (size_t)c->from * inner, bytes = c->blocks ? (size_t)(c->to - c->from) * inner : inner;
	for (size_t i = 0; i < outer * blocks; i++, cut += bytes) {
		char *at = whole + i * n * inner + from;
		memcpy(out ? cut : at, out ? at : cut, bytes);
	}
}

void yk_cut_take(const struct yk_cut *c, int rank, const int64_t *dims, size_t each, const void *whole, void *cut)
{
	copy(c, rank, dims, each, (char *)(uintptr_t)whole, cut, true);
}

void yk_cut_put(const struct yk_cut *c, int rank, const int64_t *dims, size_t each, const void *cut, void *whole)
{
	copy(c, rank, dims, each, whole, (char *)(uintptr_t)cut, false);
}

// ---- layers ----

yoke_tensor *yk_shard_column(const struct yk_network *n, yoke_tensor *x, yoke_tensor *w, yoke_tensor *b)
{
	return yk_network_linear(n, n->shard.group ? yoke_tensor_in(n->shard.group, x) : x, w, b);
}

yoke_tensor *yk_shard_row(const struct yk_network *n, yoke_tensor *x, yoke_tensor *w, yoke_tensor *b)
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
	return yoke_slice(yoke_tensor_in(s->group, x), -1, s->rank * width, (s->rank + 1) * width, 1);
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
	yoke_tensor *here = yoke_and(yoke_ge(at, zero), yoke_lt(at, yoke_const((double)yoke_dim(w, 0))));
	int64_t dims[YOKE_MAX_RANK];
	const int rank = yoke_rank(ids);
	for (int i = 0; i < rank; i++)
		dims[i] = yoke_dim(ids, i);
	dims[rank] = 1;
	yoke_tensor *rows = yoke_embedding(w, yoke_select(here, at, zero));
	return yoke_tensor_out(n->shard.group, yoke_select(yoke_reshape(here, rank + 1, dims), rows, zero));
}

yoke_tensor *yk_shard_cross_entropy(const struct yk_network *n, yoke_tensor *logits, yoke_tensor *ids)
{
	if (!n->shard.group)
		return yoke_cross_entropy(logits, ids, -1, 0);
	const int64_t all = yoke_count(ids), v = yoke_dim(logits, -1), two[] = { all, v }, one[] = { all, 1 };
	yoke_group *g = n->shard.group;
	const int wide = yoke_dtype(logits) == yoke_f64 ? yoke_f64 : yoke_f32;
	yoke_tensor *x = yoke_reshape(yoke_cast(logits, wide), 2, two);
	yoke_tensor *column = yoke_iota(yoke_i32, 1, &v, 0), *at = yoke_reshape(from_first(n, ids), 2, one);
	// from this shard: log of the sum of exponentials, and the target's logit, or 0 if it is
	// elsewhere
	yoke_tensor *own = yoke_logsumexp(x, -1);
	yoke_tensor *target = yoke_sum(yoke_select(yoke_eq(column, at), x, yoke_const(0)), YOKE_AXIS(1));
	yoke_tensor *most = yoke_stop_grad(yoke_all_reduce(g, YOKE_REDUCE_MAX, yoke_stop_grad(own)));
	yoke_tensor *both[] = { yoke_exp(yoke_sub(own, most)), target };
	yoke_tensor *sum = yoke_tensor_out(g, yoke_concat(2, both, 0));
	yoke_tensor *whole = yoke_add(yoke_log(yoke_slice(sum, 0, 0, all, 1)), most);
	return yoke_mean(yoke_sub(whole, yoke_slice(sum, 0, all, 2 * all, 1)), YOKE_ALL);
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
