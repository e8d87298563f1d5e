// SPDX-License-Identifier: Apache-2.0
// Data-parallel training.
#include "config.h"

#include "train/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { FIRST_BUCKET = 1 << 20, BUCKET = 25 << 20 }; // bytes, as in PyTorch's DDP (Li et al. 2020)

int yk_ranks_check(const struct yk_config *c)
{
	const int64_t ranks = yk_config_int(c, YK_KEY_ranks), parts = yk_config_int(c, YK_KEY_parts);
	char those[200] = "";
	if (parts != YK_AUTO && parts % ranks) {
		for (int64_t n = 1; n <= parts && n <= 1024 && strlen(those) < sizeof those - 24; n++)
			if (parts % n == 0)
				snprintf(those + strlen(those), sizeof those - strlen(those), " %lld", (long long)n);
		return yk_fail(YOKE_EINVAL, "ranks=%lld do not divide the parts=%lld of a step; these do:%s",
			       (long long)ranks, (long long)parts, those);
	}
	if (ranks > 1 && yk_config_int(c, YK_KEY_batch) == YK_AUTO)
		return yk_fail(YOKE_EINVAL, "batch=auto measures one device; with ranks=%lld give a number",
			       (long long)ranks);
	if (ranks > 1 && yk_config_int(c, YK_KEY_snapshot_every) > 0)
		return yk_fail(YOKE_EINVAL, "snapshot_every is for the change to another device; with ranks=%lld "
			       "use save_every", (long long)ranks);
	return 0;
}

int yk_ranks_join(struct yk_trainer *t)
{
	yoke_group *world = yoke_group_world();
	if (!world)
		return yoke_error_code();
	if (yoke_group_size(world) == 1)
		return 0;
	t->group = world;
	t->first = yoke_group_rank(world) * t->accumulate;
	t->wish = yoke_keep(yoke_scalar(0));
	return t->wish ? 0 : yoke_error_code();
}

void yk_ranks_leave(struct yk_trainer *t)
{
	yoke_free(t->wish);
	yoke_free(t->wished[0]);
	yoke_free(t->wished[1]);
	t->wish = t->wished[0] = t->wished[1] = NULL;
}

int yk_ranks_start(const struct yk_trainer *t)
{
	const struct yk_parameters *ps = &t->net->params;
	yoke_tensor **to = calloc((size_t)ps->count, sizeof *to);
	if (!to)
		return yk_fail(YOKE_ENOMEM, "ranks: no memory");
	yoke_scope *s = yoke_scope_begin("start");
	int e = yoke_broadcast_list(t->group, 0, ps->count, ps->var, to);
	for (int i = 0; i < ps->count && e == 0; i++)
		e = yoke_assign(ps->var[i], to[i]);
	if (e == 0)
		e = yoke_eval(0, NULL);
	const int ended = yoke_scope_end(s);
	free(to);
	return e ? e : ended;
}

// Gradients first .. end-1, which may be one.
static int reduce_bucket(const struct yk_trainer *t, int first, int end)
{
	return first < end ? yoke_all_reduce_list(t->group, YOKE_REDUCE_SUM, end - first, t->grad + first,
						  t->grad + first) : 0;
}

int yk_ranks_reduce(struct yk_trainer *t, yoke_tensor **loss)
{
	const int64_t one = 1;
	size_t bytes = 0, room = FIRST_BUCKET;
	int end = t->net->params.count, e = 0;
	// those of the last layers are made first
	for (int i = end - 1; i >= 0 && e == 0; i--) {
		bytes += yoke_bytes(t->grad[i]);
		if (bytes < room && i > 0)
			continue;
		e = reduce_bucket(t, i, end);
		end = i;
		bytes = 0;
		room = BUCKET;
	}
	yoke_tensor *said[] = { yoke_reshape(*loss, 1, &one),
				yoke_mul(yoke_full(yoke_f32, 1, &one, 1), t->wish) };
	yoke_tensor *all = yoke_all_reduce(t->group, YOKE_REDUCE_SUM, yoke_concat(2, said, 0));
	*loss = yoke_reshape(yoke_slice(all, 0, 0, 1, 1), 0, NULL);
	t->wished[1] = yoke_keep(yoke_slice(all, 0, 1, 2, 1));
	return e ? e : t->wished[1] ? 0 : yoke_error_code();
}

int yk_ranks_hear(struct yk_trainer *t)
{
	float wishes = 0;
	int e = t->wished[0] ? yoke_read(t->wished[0], &wishes, sizeof wishes) : 0;
	yoke_free(t->wished[0]);
	t->wished[0] = t->wished[1];
	t->wished[1] = NULL;
	t->ends |= wishes > 0;
	return e;
}
