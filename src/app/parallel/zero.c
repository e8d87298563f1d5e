// SPDX-License-Identifier: Apache-2.0
// Sharding of optimizer state, gradients and parameters among ranks (ZeRO stages 1 to 3).
#include "config.h"

#include "parallel/zero.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "comm/ranks.h"
#include "formats/checkpoint.h"
#include "parallel/bucket.h"

struct yk_zero {
	uint32_t ranks, rank;
	int stage;
	int64_t unit;
	int n;                    // number of parameters
	struct yk_optim_range *range; // [ranks][n]
	int buckets, *first; // first parameter of each bucket; the last layers' buckets come first
	int64_t *elements;        // per bucket: elements of this rank's shard, at least 1
	yoke_tensor **shard;      // per bucket, while a step is recorded: this rank's gradients
	struct yk_optim_sharding sharding;
	struct yk_shape *shape;     // per parameter
	struct yk_parameters held;  // stage 3: this rank's shard of each parameter, flat
	struct yk_gathered gathered;
};

// ---- ownership ----

static const struct yk_optim_range *range_of(const struct yk_zero *z, uint32_t rank, int i)
{
	return &z->range[rank * (size_t)z->n + (size_t)i];
}

static int bucket_end(const struct yk_zero *z, int b)
{
	return b ? z->first[b - 1] : z->n;
}

// Divides bucket b among the ranks.
static void shard_bucket(struct yk_zero *z, int b, const int64_t *count)
{
	const int first = z->first[b], end = bucket_end(z, b);
	const uint32_t tensors = (uint32_t)(end - first);
	for (uint32_t r = 0; r < z->ranks; r++) {
		const int64_t from = yk_shard_at(z->ranks, r, z->unit, tensors, count + first),
			      to = yk_shard_at(z->ranks, r + 1, z->unit, tensors, count + first);
		int64_t start = 0;
		for (int i = first; i < end; start += count[i++]) {
			struct yk_optim_range *c = &z->range[r * (size_t)z->n + (size_t)i];
			yk_shard_overlap(from, to, start, count[i], &c->from, &c->to);
			c->all = count[i];
		}
		if (r == z->rank)
			z->elements[b] = to > from ? to - from : 1;
	}
}

// Concatenates this rank's shards of a bucket's parameters.
static yoke_tensor *join(int first, int end, yoke_tensor *const *shard, yoke_tensor **scratch)
{
	const int64_t one = 1;
	int n = 0;
	for (int i = first; i < end; i++)
		if (shard[i])
			scratch[n++] = shard[i];
	return n ? yoke_concat(n, scratch, 0) : yoke_full(yoke_f32, 1, &one, 0);
}

static int renew(void *arg, yoke_tensor *const *shard)
{
	const struct yk_replica *t = arg;
	const struct yk_zero *z = t->zero;
	const struct yk_parameters *ps = t->params;
	yoke_tensor **to = calloc((size_t)ps->count, sizeof *to);
	int e = to ? 0 : yk_fail(YOKE_ENOMEM, "ranks: out of memory");
	for (int b = 0; b < z->buckets && e == 0; b++) {
		const int first = z->first[b], end = bucket_end(z, b);
		yoke_tensor *mine = join(first, end, shard, to);
		e = yk_gather_shards(t->group, z->unit, end - first, ps->var + first, mine,
				     to + first);
		for (int i = first; i < end && e == 0; i++)
			e = yoke_assign(ps->var[i], to[i]);
	}
	free(to);
	return e;
}

static yoke_tensor *sum(void *arg, yoke_tensor *x)
{
	const struct yk_replica *t = arg;
	return yoke_all_reduce(t->group, YOKE_REDUCE_SUM, x);
}

static int make(struct yk_zero *z, const struct yk_parameters *ps)
{
	const size_t n = (size_t)ps->count;
	int64_t *count = calloc(n, sizeof *count);
	z->n = ps->count;
	z->range = calloc(z->ranks * n, sizeof *z->range);
	z->first = calloc(n, sizeof *z->first);
	z->elements = calloc(n, sizeof *z->elements);
	z->shard = calloc(n, sizeof *z->shard);
	z->shape = calloc(n, sizeof *z->shape);
	const bool good = count && z->range && z->first && z->elements && z->shard && z->shape;
	for (int i = 0; i < ps->count && good; i++) {
		count[i] = yoke_count(ps->var[i]);
		z->shape[i].rank = yoke_rank(ps->var[i]);
		for (int d = 0; d < z->shape[i].rank; d++)
			z->shape[i].dims[d] = yoke_dim(ps->var[i], d);
	}
	for (int end = ps->count; end > 0 && good; end = z->first[z->buckets++]) {
		const int first = yk_bucket_first(ps, end),
			  min = z->stage > 2 ? end - YK_GATHERED : 0;
		z->first[z->buckets] = first > min ? first : min;
		shard_bucket(z, z->buckets, count);
	}
	free(count);
	return good ? 0 : yk_fail(YOKE_ENOMEM, "ranks: out of memory");
}

// Replaces a bucket's parameters, which have values, by this rank's shards.
static int hold_bucket(struct yk_replica *t, int b)
{
	struct yk_zero *z = t->zero;
	yoke_tensor **var = t->net->params.var;
	yoke_scope *s = yoke_scope_begin("shares");
	for (int i = z->first[b]; i < bucket_end(z, b); i++) {
		const struct yk_optim_range *c = range_of(z, z->rank, i);
		const int64_t all = c->all;
		yoke_assign(z->held.var[i],
			    yoke_slice(yoke_reshape(var[i], 1, &all), 0, c->from, c->to, 1));
	}
	const int e = yoke_eval(0, NULL), ended = yoke_scope_end(s);
	for (int i = z->first[b]; i < bucket_end(z, b) && e == 0; i++) {
		yoke_free(var[i]);
		var[i] = NULL;
	}
	return e ? e : ended;
}

int yk_zero_hold(struct yk_replica *t, yk_zero_fill *fill)
{
	struct yk_zero *z = t->zero;
	const struct yk_parameters *ps = t->params;
	for (int i = 0; i < ps->count && !z->held.error; i++) {
		const struct yk_optim_range *c = range_of(z, z->rank, i);
		const int64_t n = c->to - c->from;
		yk_parameters_add(&z->held, 1, &n, "%s", ps->row[i].name);
		if (!z->held.error)
			z->held.row[i].decay = ps->row[i].decay;
	}
	int e = z->held.error;
	for (int b = 0; b < z->buckets && e == 0; b++) {
		e = fill ? fill(t, z->first[b], bucket_end(z, b)) : 0;
		if (e == 0)
			e = hold_bucket(t, b);
	}
	return e;
}

int yk_zero_enter(struct yk_replica *t)
{
	const struct yk_zero *z = t->zero;
	yoke_tensor **var = t->net->params.var, *part[YK_GATHERED + 1];
	const int64_t one = 1;
	int e = 0;
	// in the order in which the pass reads them
	for (int b = t->stage < 3 ? -1 : z->buckets - 1; b >= 0 && e == 0; b--) {
		const int first = z->first[b], end = bucket_end(z, b);
		int n = 0;
		for (int i = first; i < end; i++)
			if (yoke_count(z->held.var[i]))
				part[n++] = z->held.var[i];
		// a dummy element forces a concatenation, which can be executed late
		part[n++] = yoke_full(yoke_f32, 1, &one, 0);
		e = yk_gather_tensors(t->group, z->unit, end - first, z->shape + first,
				      yoke_concat(n, part, 0), var + first);
	}
	return e;
}

void yk_zero_leave(struct yk_replica *t)
{
	for (int i = 0; i < t->net->params.count && t->stage > 2; i++)
		t->net->params.var[i] = NULL;
}

static int enter(void *arg)
{
	return yk_zero_enter(arg);
}

static void leave(void *arg)
{
	yk_zero_leave(arg);
}

const struct yk_gathered *yk_zero_gathered(const struct yk_replica *t)
{
	return t->stage < 3 ? NULL : &t->zero->gathered;
}

int yk_zero_new(struct yk_replica *t)
{
	// lamb's norms are of complete tensors, so they are not split
	const bool whole = !strcmp(yk_config_str(t->config, YK_KEY_optimizer), "lamb");
	struct yk_zero *z = calloc(1, sizeof *z);
	if (!z)
		return yk_fail(YOKE_ENOMEM, "ranks: out of memory");
	*z = (struct yk_zero){ .ranks = (uint32_t)yoke_group_size(t->group),
			       .rank = (uint32_t)yoke_group_rank(t->group),
			       .stage = (int)yk_config_int(t->config, YK_KEY_zero),
			       .unit = whole ? 0 : YK_OPTIM_INTERVAL };
	const int e = make(z, t->params);
	if (e < 0) {
		yk_zero_free(z);
		return e;
	}
	z->sharding = (struct yk_optim_sharding){ .range = range_of(z, z->rank, 0),
						  .renew = renew,
						  .held = z->stage > 2,
						  .sum = sum,
						  .arg = t };
	z->gathered = (struct yk_gathered){ enter, leave, t };
	t->zero = z;
	return 0;
}

void yk_zero_free(struct yk_zero *z)
{
	if (!z)
		return;
	yk_parameters_fini(&z->held);
	free(z->shape);
	free(z->range);
	free(z->first);
	free(z->elements);
	free(z->shard);
	free(z);
}

const struct yk_parameters *yk_zero_held(const struct yk_zero *z)
{
	return &z->held;
}

const struct yk_optim_sharding *yk_zero_sharding(const struct yk_zero *z)
{
	return &z->sharding;
}

int yk_zero_buckets(const struct yk_zero *z, const int64_t **elements)
{
	*elements = z->elements;
	return z->buckets;
}

yoke_tensor **yk_zero_reduce(struct yk_replica *t)
{
	struct yk_zero *z = t->zero;
	for (int b = 0; b < z->buckets; b++) {
		for (int i = z->first[b]; i < bucket_end(z, b); i++)
			t->grad[i] = yk_bucket_cast(t->config, t->grad[i]);
		z->shard[b] = yoke_cast(yk_reduce_shards(t->group, z->unit,
							 bucket_end(z, b) - z->first[b],
							 t->grad + z->first[b]),
					yoke_f32);
	}
	return z->shard;
}

void yk_zero_take(struct yk_replica *t)
{
	const struct yk_zero *z = t->zero;
	for (int b = 0; b < z->buckets; b++) {
		int64_t at = 0;
		for (int i = z->first[b]; i < bucket_end(z, b); i++) {
			const struct yk_optim_range *c = range_of(z, z->rank, i);
			const int64_t n = c->to - c->from;
			t->grad[i] = n ? yoke_slice(z->shard[b], 0, at, at + n, 1) : NULL;
			at += n;
		}
	}
}

void yk_zero_take_reduced(struct yk_replica *t)
{
	const struct yk_zero *z = t->zero;
	for (int i = 0; i < z->n; i++) {
		const struct yk_optim_range *c = range_of(z, z->rank, i);
		const int64_t all = c->all;
		t->grad[i] = c->to > c->from ? yoke_slice(yoke_reshape(t->grad[i], 1, &all), 0,
							  c->from, c->to, 1) :
					       NULL;
	}
}

uint64_t yk_zero_max(const struct yk_replica *t)
{
	const struct yk_zero *z = t->zero;
	int64_t max = 0;
	for (uint32_t r = 0; r < z->ranks; r++) {
		int64_t n = 0;
		for (int i = 0; i < z->n; i++)
			n += range_of(z, r, i)->to - range_of(z, r, i)->from;
		max = n > max ? n : max;
	}
	return (uint64_t)max * sizeof(float);
}

// ---- lists of complete tensors ----

// The parameter of tensor k in a list, -1: none. Tensors of no parameter come first, then `each`
// per parameter.
static int member_of(const struct yk_replica *t, const struct yk_parameters *s, int each, int k)
{
	const int numbers = s->count - each * t->zero->n;
	return k < numbers ? -1 : (k - numbers) / each;
}

// The shape of parameter i in files, where it is complete even if tensor ranks have shards.
static int file_dims(const struct yk_replica *t, int i, int64_t *dims)
{
	const struct yk_shard_range *shard = &t->params->row[i].shard;
	const struct yk_shape *s = &t->zero->shape[i];
	memcpy(dims, s->dims, (size_t)s->rank * sizeof *dims);
	if (shard->blocks)
		dims[shard->axis] = shard->all;
	return s->rank;
}

int yk_zero_list(const struct yk_replica *t, const struct yk_parameters *s, int each,
		 struct yk_host_list *to)
{
	*to = (struct yk_host_list){ .count = s->count,
				     .tensor = calloc((size_t)s->count + 1, sizeof *to->tensor) };
	if (!to->tensor)
		return yk_fail(YOKE_ENOMEM, "checkpoint: out of host memory for %d arrays",
			       s->count);
	for (int k = 0; k < s->count; k++) {
		const int i = member_of(t, s, each, k);
		to->tensor[k] = (struct yk_host_tensor){ .name = s->row[k].name,
							 .dtype = yoke_dtype(s->var[k]) };
		if (i >= 0)
			to->tensor[k].rank = file_dims(t, i, to->tensor[k].dims);
	}
	return 0;
}

int yk_zero_put(void *arg, int k, const void *data, uint64_t bytes)
{
	const struct yk_replica *t = arg;
	const struct yk_parameters *s = yk_optim_states(t->optim);
	yoke_tensor *var = s->var[k];
	const int i = member_of(t, s, yk_replica_states_each(t), k);
	if (i < 0)
		return yoke_put(var, data, bytes);
	const struct yk_optim_range *range = range_of(t->zero, t->zero->rank, i);
	float *part = malloc((size_t)range->all * sizeof *part + 1);
	int64_t dims[YOKE_MAX_RANK];
	if (!part)
		return yk_fail(YOKE_ENOMEM, "out of host memory for the optimizer's state");
	yk_shard_extract(&t->params->row[i].shard, file_dims(t, i, dims), dims, sizeof *part, data,
			 part);
	const int e = yoke_count(var) ? yoke_put(var, part + range->from, yoke_bytes(var)) : 0;
	free(part);
	return e;
}
