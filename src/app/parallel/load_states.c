// SPDX-License-Identifier: Apache-2.0
// Loads optimizer states and compression remainders from checkpoints, whose tensors are complete.
#include "config.h"

#include "parallel/load_states.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "parallel/compress.h"
#include "parallel/shared_load.h"
#include "parallel/zero.h"

int yk_file_list(const struct yk_replica *t, const struct yk_parameters *ps, int each,
		 struct yk_stages_list *to)
{
	struct yk_stages_list own = { 0 };
	// the list of a caller's network has buffers between parameters
	const bool listed = t->zero && (t->net || ps != t->kept);
	int e = listed ? yk_zero_list(t, ps, each, &own.l) :
			 yk_host_list_describe(ps, true, &own.l);
	if (e == 0 && t->stages)
		e = yk_stages_list(t->net, &own.l, each, to);
	if (e < 0 || t->stages) {
		yk_host_list_free(&own.l);
		return e;
	}
	if (!(own.own = calloc((size_t)ps->count + 1, sizeof *own.own))) {
		yk_host_list_free(&own.l);
		return yk_fail(YOKE_ENOMEM, "checkpoint: out of host memory for %d arrays",
			       ps->count);
	}
	for (int k = 0; k < ps->count; k++)
		own.own[k] = k;
	*to = own;
	return 0;
}

// Target of a read: optimizer states, then remainders if compression is still used.
struct target {
	const struct yk_replica *t;
	int states;
	const int *own; // NULL, or per state its index on this stage, -1: another stage's
	float share; // factor for remainders: previous ranks / current ranks
	yk_checkpoint_sink_fn *put;
	void *arg;
};

static int take(void *arg, int i, const void *data, uint64_t bytes)
{
	const struct target *l = arg;
	if (i < l->states)
		return l->own && l->own[i] < 0 ?
			       0 :
			       l->put(l->arg, l->own ? l->own[i] : i, data, bytes);
	if (!l->t->compress)
		return 0;
	float *part = malloc(bytes + 1);
	if (!part)
		return yk_fail(YOKE_ENOMEM,
			       "checkpoint: out of host memory for the states that no rank sent");
	for (uint64_t k = 0; k < bytes / sizeof *part; k++)
		part[k] = l->share * ((const float *)data)[k];
	const int e = yoke_put(yk_compress_errors(l->t->compress)->var[i - l->states], part, bytes);
	free(part);
	return e;
}

// Describes the remainders "error.NAME" of compressed parameters; `to` and `name` have space for
// all parameters.
static int describe(const struct yk_host_list *all, struct yk_host_tensor *to, char (*name)[160])
{
	int n = 0;
	for (int i = 0; i < all->count; i++) {
		struct yk_host_tensor h = all->tensor[i];
		const size_t count = yk_host_bytes(&h) / sizeof(float);
		if (!yk_compress_selects((int64_t)count))
			continue;
		snprintf(name[n], sizeof name[n], "error.%s", h.name);
		h.name = name[n];
		to[n++] = h;
	}
	return n;
}

// Loads states and remainders from a file that contains both.
static int load_both(const struct yk_replica *t, const char *folder, const struct yk_checkpoint *ck,
		     const struct yk_host_list *states, const struct yk_host_list *weights,
		     struct target *l)
{
	struct yk_host_tensor *all =
		calloc((size_t)(states->count + weights->count) + 1, sizeof *all);
	char (*name)[160] = calloc((size_t)weights->count + 1, sizeof *name);
	int e = all && name ? 0 :
			      yk_fail(YOKE_ENOMEM, "checkpoint: out of host memory for %d arrays",
				      weights->count);
	l->states = states->count;
	if (e == 0) {
		memcpy(all, states->tensor, (size_t)states->count * sizeof *all);
		const int n = states->count + describe(weights, all + states->count, name);
		e = yk_shared_load(&t->grid, folder, ck, YK_CHECKPOINT_OPTIMIZER, n, all, take, l);
	}
	free(all);
	free(name);
	return e;
}

static int load(const struct yk_replica *t, const char *folder, const struct yk_checkpoint *ck,
		const struct yk_host_list *states, yk_checkpoint_sink_fn *put, void *arg)
{
	const char *had = json_string_value(json_object_get(ck->config, "compress")),
		   *was = json_string_value(json_object_get(ck->config, "ranks"));
	const double ranks = was ? yk_strtod(was, NULL) :
				   json_number_value(json_object_get(ck->config, "ranks"));
	const int each = yk_replica_states_each(t);
	struct target l = { .t = t, .put = put, .arg = arg, .share = 1 };
	struct yk_stages_list weights = { 0 }, whole = { 0 };
	if (!had || !strcmp(had, "none"))
		return yk_stages_load(&t->grid, t->net, folder, ck, YK_CHECKPOINT_OPTIMIZER, each,
				      states, put, arg);
	if (ranks >= 1)
		l.share = (float)(ranks / (t->group ? yoke_group_size(t->group) : 1));
	int e = yk_file_list(t, t->stage > 2 ? yk_zero_held(t->zero) : t->kept, 1, &weights);
	if (e == 0 && t->stages)
		e = yk_stages_list(t->net, states, each, &whole);
	l.own = whole.own;
	if (e == 0)
		e = load_both(t, folder, ck, t->stages ? &whole.l : states, &weights.l, &l);
	yk_stages_list_free(&weights);
	yk_stages_list_free(&whole);
	return e;
}

int yk_load_states(const struct yk_replica *t, const char *folder, const struct yk_checkpoint *ck)
{
	const struct yk_parameters *states = yk_optim_states(t->optim);
	struct yk_host_list l = { 0 };
	if (!t->zero && !t->net) // an application's network, which is not compressed
		return yk_host_list_load(folder, ck, YK_CHECKPOINT_OPTIMIZER, states);
	int e = t->zero ? yk_zero_list(t, states, yk_replica_states_each(t), &l) :
			  yk_host_list_describe(states, true, &l);
	if (e == 0)
		e = load(t, folder, ck, &l, t->zero ? yk_zero_put : yk_host_list_take,
			 (void *)(uintptr_t)(t->zero ? (const void *)t : states));
	yk_host_list_free(&l);
	return e;
}
