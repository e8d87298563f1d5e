// SPDX-License-Identifier: Apache-2.0
// The optimizer's state shared out among ranks.
#include "config.h"

#include "train/zero.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "dist/ranks.h"
#include "formats/checkpoint.h"
#include "train/compress.h"
#include "train/ranks.h"

enum { CHUNK = 1 << 20 }; // elements that a rank hands over at a time when states are collected

struct yk_zero {
	uint32_t ranks, rank;
	int stage;
	int64_t unit;
	int n;                    // parameters
	struct yk_optim_cut *cut; // [ranks][n]
	int buckets, *first;      // of each bucket: the last layers' come first
	int64_t *elements;        // of each that are this rank's, at least 1
	yoke_tensor **share;      // of each bucket, while a step is recorded: this rank's gradients
	struct yk_optim_share takes;
	struct yk_shape *shape;     // of each parameter
	struct yk_parameters held;  // stage 3: of each the cut that is this rank's, flat
	struct yk_host_list states, weights; // all, on rank 0, since yk_zero_collect; of stage 3 both
};

// ---- who has what ----

static const struct yk_optim_cut *cut_of(const struct yk_zero *z, uint32_t rank, int i)
{
	return &z->cut[rank * (size_t)z->n + (size_t)i];
}

static int bucket_end(const struct yk_zero *z, int b)
{
	return b ? z->first[b - 1] : z->n;
}

// Bucket b of parameters first .. end - 1.
static void cut_bucket(struct yk_zero *z, int b, const int64_t *count)
{
	const int first = z->first[b], end = bucket_end(z, b);
	const uint32_t tensors = (uint32_t)(end - first);
	for (uint32_t r = 0; r < z->ranks; r++) {
		const int64_t from = yk_share_at(z->ranks, r, z->unit, tensors, count + first),
			      to = yk_share_at(z->ranks, r + 1, z->unit, tensors, count + first);
		int64_t start = 0;
		for (int i = first; i < end; start += count[i++]) {
			struct yk_optim_cut *c = &z->cut[r * (size_t)z->n + (size_t)i];
			yk_share_of(from, to, start, count[i], &c->from, &c->to);
			c->all = count[i];
		}
		if (r == z->rank)
			z->elements[b] = to > from ? to - from : 1;
	}
}

// What the bucket's parameters are to be, of this rank's share.
static yoke_tensor *join(int first, int end, yoke_tensor *const *piece, yoke_tensor **room)
{
	const int64_t one = 1;
	int n = 0;
	for (int i = first; i < end; i++)
		if (piece[i])
			room[n++] = piece[i];
	return n ? yoke_concat(n, room, 0) : yoke_full(yoke_f32, 1, &one, 0);
}

static int renew(void *arg, yoke_tensor *const *piece)
{
	const struct yk_trainer *t = arg;
	const struct yk_zero *z = t->zero;
	const struct yk_parameters *ps = &t->net->params;
	yoke_tensor **to = calloc((size_t)ps->count, sizeof *to);
	int e = to ? 0 : yk_fail(YOKE_ENOMEM, "ranks: no memory");
	for (int b = 0; b < z->buckets && e == 0; b++) {
		const int first = z->first[b], end = bucket_end(z, b);
		yoke_tensor *mine = join(first, end, piece, to);
		e = yk_gather_shares(t->group, z->unit, end - first, ps->var + first, mine, to + first);
		for (int i = first; i < end && e == 0; i++)
			e = yoke_assign(ps->var[i], to[i]);
	}
	free(to);
	return e;
}

static yoke_tensor *sum(void *arg, yoke_tensor *x)
{
	const struct yk_trainer *t = arg;
	return yoke_all_reduce(t->group, YOKE_REDUCE_SUM, x);
}

static int make(struct yk_zero *z, const struct yk_parameters *ps)
{
	const size_t n = (size_t)ps->count;
	int64_t *count = calloc(n, sizeof *count);
	z->n = ps->count;
	z->cut = calloc(z->ranks * n, sizeof *z->cut);
	z->first = calloc(n, sizeof *z->first);
	z->elements = calloc(n, sizeof *z->elements);
	z->share = calloc(n, sizeof *z->share);
	z->shape = calloc(n, sizeof *z->shape);
	const bool good = count && z->cut && z->first && z->elements && z->share && z->shape;
	for (int i = 0; i < ps->count && good; i++) {
		count[i] = yoke_count(ps->var[i]);
		z->shape[i].rank = yoke_rank(ps->var[i]);
		for (int d = 0; d < z->shape[i].rank; d++)
			z->shape[i].dims[d] = yoke_dim(ps->var[i], d);
	}
	for (int end = ps->count; end > 0 && good; end = z->first[z->buckets++]) {
		const int first = yk_ranks_bucket(ps, end), least = z->stage > 2 ? end - YK_GATHERED : 0;
		z->first[z->buckets] = first > least ? first : least;
		cut_bucket(z, z->buckets, count);
	}
	free(count);
	return good ? 0 : yk_fail(YOKE_ENOMEM, "ranks: no memory");
}

// Parameters give way to their cuts.
static int hold(struct yk_trainer *t)
{
	struct yk_zero *z = t->zero;
	struct yk_parameters *ps = &t->net->params;
	yoke_scope *s = yoke_scope_begin("shares");
	for (int i = 0; i < ps->count && !z->held.error; i++) {
		const struct yk_optim_cut *c = cut_of(z, z->rank, i);
		const int64_t all = c->all, n = c->to - c->from;
		yk_parameters_add(&z->held, 1, &n, "%s", ps->row[i].name);
		if (z->held.error)
			break;
		z->held.row[i].decay = ps->row[i].decay;
		yoke_assign(z->held.var[i], yoke_slice(yoke_reshape(ps->var[i], 1, &all), 0, c->from, c->to, 1));
	}
	int e = z->held.error ? z->held.error : yoke_eval(0, NULL);
	const int ended = yoke_scope_end(s);
	for (int i = 0; i < ps->count && e == 0; i++) {
		yoke_free(ps->var[i]);
		ps->var[i] = NULL;
	}
	return e ? e : ended;
}

int yk_zero_enter(struct yk_trainer *t)
{
	const struct yk_zero *z = t->zero;
	yoke_tensor **var = t->net->params.var, *part[YK_GATHERED + 1];
	const int64_t one = 1;
	int e = 0;
	for (int b = t->stage < 3 ? -1 : z->buckets - 1; b >= 0 && e == 0; b--) { // in the order in which they are read
		const int first = z->first[b], end = bucket_end(z, b);
		int n = 0;
		for (int i = first; i < end; i++)
			if (yoke_count(z->held.var[i]))
				part[n++] = z->held.var[i];
		part[n++] = yoke_full(yoke_f32, 1, &one, 0); // so that they are joined, which can be done late
		e = yk_gather_whole(t->group, z->unit, end - first, z->shape + first, yoke_concat(n, part, 0), var + first);
	}
	return e;
}

void yk_zero_leave(struct yk_trainer *t)
{
	for (int i = 0; i < t->net->params.count && t->stage > 2; i++)
		t->net->params.var[i] = NULL;
}

int yk_zero_whole(struct yk_trainer *t)
{
	const struct yk_parameters *ps = &t->net->params;
	if (t->stage < 3)
		return 0;
	yoke_scope *s = yoke_scope_begin("whole");
	int e = yk_zero_enter(t);
	for (int i = 0; i < ps->count && e == 0; i++)
		e = yoke_keep(ps->var[i]) ? 0 : yoke_error_code();
	if (e == 0)
		e = yoke_eval(0, NULL);
	const int ended = yoke_scope_end(s);
	if (e < 0 || ended < 0)
		yk_zero_leave(t);
	return e ? e : ended;
}

void yk_zero_apart(struct yk_trainer *t)
{
	for (int i = 0; i < t->net->params.count && t->stage > 2; i++)
		yoke_free(t->net->params.var[i]);
	yk_zero_leave(t);
}

int yk_zero_new(struct yk_trainer *t)
{
	const bool whole = !strcmp(yk_config_str(t->config, YK_KEY_optimizer), "lamb"); // its norms are of whole tensors
	struct yk_zero *z = calloc(1, sizeof *z);
	if (!z)
		return yk_fail(YOKE_ENOMEM, "ranks: no memory");
	*z = (struct yk_zero){ .ranks = (uint32_t)yoke_group_size(t->group), .rank = (uint32_t)yoke_group_rank(t->group),
			       .stage = (int)yk_config_int(t->config, YK_KEY_zero), .unit = whole ? 0 : YK_OPTIM_PIECE };
	const int e = make(z, &t->net->params);
	if (e < 0) {
		yk_zero_free(z);
		return e;
	}
	z->takes = (struct yk_optim_share){ .cut = cut_of(z, z->rank, 0), .renew = renew, .held = z->stage > 2, .sum = sum,
					    .arg = t };
	t->zero = z;
	return z->stage > 2 ? hold(t) : 0;
}

void yk_zero_free(struct yk_zero *z)
{
	if (!z)
		return;
	yk_host_list_free(&z->states);
	yk_host_list_free(&z->weights);
	yk_parameters_fini(&z->held);
	free(z->shape);
	free(z->cut);
	free(z->first);
	free(z->elements);
	free(z->share);
	free(z);
}

const struct yk_parameters *yk_zero_held(const struct yk_zero *z)
{
	return &z->held;
}

const struct yk_optim_share *yk_zero_share(const struct yk_zero *z)
{
	return &z->takes;
}

int yk_zero_buckets(const struct yk_zero *z, const int64_t **elements)
{
	*elements = z->elements;
	return z->buckets;
}

yoke_tensor **yk_zero_reduce(struct yk_trainer *t)
{
	struct yk_zero *z = t->zero;
	for (int b = 0; b < z->buckets; b++) {
		for (int i = z->first[b]; i < bucket_end(z, b); i++)
			t->grad[i] = yk_ranks_narrow(t, t->grad[i]);
		z->share[b] = yoke_cast(yk_reduce_shares(t->group, z->unit, bucket_end(z, b) - z->first[b],
							 t->grad + z->first[b]), yoke_f32);
	}
	return z->share;
}

void yk_zero_take(struct yk_trainer *t)
{
	const struct yk_zero *z = t->zero;
	for (int b = 0; b < z->buckets; b++) {
		int64_t at = 0;
		for (int i = z->first[b]; i < bucket_end(z, b); i++) {
			const struct yk_optim_cut *c = cut_of(z, z->rank, i);
			const int64_t n = c->to - c->from;
			t->grad[i] = n ? yoke_slice(z->share[b], 0, at, at + n, 1) : NULL;
			at += n;
		}
	}
}

void yk_zero_cut(struct yk_trainer *t)
{
	const struct yk_zero *z = t->zero;
	for (int i = 0; i < z->n; i++) {
		const struct yk_optim_cut *c = cut_of(z, z->rank, i);
		const int64_t all = c->all;
		t->grad[i] = c->to > c->from ? yoke_slice(yoke_reshape(t->grad[i], 1, &all), 0, c->from, c->to, 1) : NULL;
	}
}

uint64_t yk_zero_most(const struct yk_trainer *t)
{
	const struct yk_zero *z = t->zero;
	int64_t most = 0;
	for (uint32_t r = 0; r < z->ranks; r++) {
		int64_t n = 0;
		for (int i = 0; i < z->n; i++)
			n += cut_of(z, r, i)->to - cut_of(z, r, i)->from;
		most = n > most ? n : most;
	}
	return (uint64_t)most * sizeof(float);
}

// ---- whole states ----

// States, or cuts of parameters, as files have them.  Numbers of no parameter come first, then `each` of each parameter.
static int describe(const struct yk_trainer *t, const struct yk_parameters *s, int each, bool data, struct yk_host_list *to)
{
	const int numbers = s->count - each * t->zero->n;
	*to = (struct yk_host_list){ .tensor = calloc((size_t)s->count + 1, sizeof *to->tensor) };
	for (int k = 0; k < s->count && to->tensor; k++) {
		struct yk_host_tensor *h = &to->tensor[to->count++];
		size_t bytes = yoke_dtype_size(yoke_dtype(s->var[k]));
		*h = (struct yk_host_tensor){ .name = s->row[k].name, .dtype = yoke_dtype(s->var[k]) };
		h->rank = k < numbers ? 0 : t->zero->shape[(k - numbers) / each].rank;
		for (int d = 0; d < h->rank; d++)
			bytes *= (size_t)(h->dims[d] = t->zero->shape[(k - numbers) / each].dims[d]);
		if (data && !(h->data = malloc(bytes + 1)))
			break;
	}
	if (to->tensor && to->count == s->count && (!data || !s->count || to->tensor[s->count - 1].data))
		return 0;
	yk_host_list_free(to);
	return yk_fail(YOKE_ENOMEM, "no host memory for the optimizer's state");
}

// The parameter that state k is of, -1: none.
static int member_of(const struct yk_trainer *t, const struct yk_parameters *s, int each, int k)
{
	const int numbers = s->count - each * t->zero->n;
	return k < numbers ? -1 : (k - numbers) / each;
}

// The dims of parameter i as files have it, which may be more than this rank's ranks have of it.
static int file_dims(const struct yk_trainer *t, int i, int64_t *dims)
{
	const struct yk_cut *cut = &t->net->params.row[i].cut;
	const struct yk_shape *s = &t->zero->shape[i];
	memcpy(dims, s->dims, (size_t)s->rank * sizeof *dims);
	if (cut->blocks)
		dims[cut->axis] = cut->all;
	return s->rank;
}

static int put(void *arg, int k, const void *data, uint64_t bytes)
{
	const struct yk_trainer *t = arg;
	const struct yk_parameters *s = yk_optim_states(t->optim);
	yoke_tensor *var = s->var[k];
	const int i = member_of(t, s, yk_optim_states_each(t->config), k);
	if (i < 0)
		return yoke_put(var, data, bytes);
	const struct yk_optim_cut *share = cut_of(t->zero, t->zero->rank, i);
	float *part = malloc((size_t)share->all * sizeof *part + 1);
	int64_t dims[YOKE_MAX_RANK];
	if (!part)
		return yk_fail(YOKE_ENOMEM, "no host memory for the optimizer's state");
	yk_cut_take(&t->net->params.row[i].cut, file_dims(t, i, dims), dims, sizeof *part, data, part);
	const int e = yoke_count(var) ? yoke_put(var, part + share->from, yoke_bytes(var)) : 0;
	free(part);
	return e;
}

int yk_zero_load(const struct yk_trainer *t, const char *folder, const struct yk_checkpoint *ck)
{
	struct yk_host_list l;
	int e = describe(t, yk_optim_states(t->optim), yk_optim_states_each(t->config), false, &l);
	if (e < 0)
		return e;
	for (int k = 0; k < l.count; k++) {
		const int i = member_of(t, yk_optim_states(t->optim), yk_optim_states_each(t->config), k);
		if (i >= 0)
			file_dims(t, i, l.tensor[k].dims);
	}
	e = yk_compress_load(t, folder, ck, &l, put, (void *)(uintptr_t)t);
	yk_host_list_free(&l);
	return e;
}

// All ranks' shares of a state of parameter i; to: NULL, or the whole one.
static int collect(const struct yk_trainer *t, yoke_tensor *var, int i, float *to, float *mine, float *all)
{
	const struct yk_zero *z = t->zero;
	const size_t bytes = yoke_bytes(var);
	float *own = malloc(bytes + 1);
	int64_t longest = 0;
	int e = !own ? yk_fail(YOKE_ENOMEM, "no host memory for the optimizer's state") : bytes ? yoke_read(var, own, bytes) : 0;
	for (uint32_t r = 0; r < z->ranks; r++) {
		const int64_t n = cut_of(z, r, i)->to - cut_of(z, r, i)->from;
		longest = n > longest ? n : longest;
	}
	for (int64_t at = 0; at < longest && e == 0; at += CHUNK) {
		const int64_t n = longest - at < CHUNK ? longest - at : CHUNK, have = (int64_t)(bytes / sizeof *own) - at;
		if (have > 0)
			memcpy(mine, own + at, (size_t)(have < n ? have : n) * sizeof *own);
		e = yoke_group_exchange(t->group, mine, (size_t)n * sizeof *mine, all);
		for (uint32_t r = 0; r < z->ranks && e == 0 && to; r++) {
			const struct yk_optim_cut *c = cut_of(z, r, i);
			const int64_t left = c->to - c->from - at;
			if (left > 0)
				memcpy(to + c->from + at, all + (size_t)r * (size_t)n, (size_t)(left < n ? left : n) * sizeof *to);
		}
	}
	free(own);
	return e;
}

static int collect_all(struct yk_trainer *t, const struct yk_parameters *s, int each, struct yk_host_list *to)
{
	struct yk_zero *z = t->zero;
	float *mine = calloc(CHUNK * (size_t)(z->ranks + 1), sizeof *mine), *all = mine + CHUNK;
	struct yk_host_list whole = { 0 };
	int e = !mine ? yk_fail(YOKE_ENOMEM, "no host memory for the optimizer's state") :
		z->rank == 0 ? describe(t, s, each, true, &whole) : 0;
	for (int k = 0; k < s->count && e == 0; k++) {
		const int i = member_of(t, s, each, k);
		float *data = z->rank == 0 ? whole.tensor[k].data : NULL;
		if (i >= 0)
			e = collect(t, s->var[k], i, data, mine, all);
		else if (data)
			e = yoke_read(s->var[k], data, yoke_bytes(s->var[k]));
	}
	free(mine);
	yk_host_list_free(to);
	*to = whole;
	return e;
}

int yk_zero_collect(struct yk_trainer *t)
{
	struct yk_zero *z = t->zero;
	int e = collect_all(t, yk_optim_states(t->optim), yk_optim_states_each(t->config), &z->states);
	return e == 0 && z->stage > 2 ? collect_all(t, &z->held, 1, &z->weights) : e;
}

int yk_zero_states(const struct yk_zero *z, struct yk_host_list *to)
{
	return yk_host_list_copy(&z->states, to);
}

int yk_zero_weights(const struct yk_zero *z, struct yk_host_list *to)
{
	return yk_host_list_copy(&z->weights, to);
}
