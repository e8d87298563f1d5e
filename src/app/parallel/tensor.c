// SPDX-License-Identifier: Apache-2.0
// Tensor parallelism in the trainer: sums over shards and the first values of unsharded parameters.
#include "config.h"

#include "parallel/tensor.h"

#include <stdlib.h>

#include "base/error.h"

struct yk_tensor_parallel {
	bool *counts; // per parameter: this rank includes it in sums over all ranks
};

int yk_tensor_parallel_new(struct yk_replica *t)
{
	const struct yk_parameters *ps = &t->net->params;
	if (!t->grid.over_tensor)
		return 0;
	struct yk_tensor_parallel *x = calloc(1, sizeof *x);
	if (!x || !(x->counts = calloc((size_t)ps->count, sizeof *x->counts))) {
		free(x);
		return yk_fail(YOKE_ENOMEM, "tensor ranks: out of memory");
	}
	for (int i = 0; i < ps->count; i++)
		x->counts[i] = ps->row[i].shard.blocks || t->grid.p == 0;
	t->tensor_parallel = x;
	return 0;
}

void yk_tensor_parallel_free(struct yk_tensor_parallel *x)
{
	if (!x)
		return;
	free(x->counts);
	free(x);
}

static yoke_tensor *total(void *arg, yoke_tensor *x)
{
	const struct yk_replica *t = arg;
	return yoke_all_reduce(t->grid.over_tensor, YOKE_REDUCE_SUM, x);
}

void yk_tensor_parallel_sharding(const struct yk_replica *t, struct yk_optim_sharding *to)
{
	to->counts = t->tensor_parallel->counts;
	to->total = total;
	to->arg = (void *)(uintptr_t)t;
}

int yk_tensor_parallel_start(const struct yk_replica *t, int first, int end)
{
	const struct yk_parameters *ps = &t->net->params;
	yoke_tensor **to = calloc(2 * (size_t)(end - first) + 1, sizeof *to),
		    **var = to + (end - first);
	int n = 0;
	if (!to)
		return yk_fail(YOKE_ENOMEM, "tensor ranks: out of memory");
	yoke_scope *s = yoke_scope_begin("start");
	for (int i = first; i < end; i++)
		if (!ps->row[i].shard.blocks)
			var[n++] = ps->var[i];
	int e = n ? yoke_broadcast_list(t->grid.over_tensor, 0, n, var, to) : 0;
	for (int i = 0; i < n && e == 0; i++)
		e = yoke_assign(var[i], to[i]);
	if (e == 0)
		e = yoke_eval(0, NULL);
	const int ended = yoke_scope_end(s);
	free(to);
	return e ? e : ended;
}
