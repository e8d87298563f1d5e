// SPDX-License-Identifier: Apache-2.0
// Top-k compression of gradients with error feedback.
#include "config.h"

#include "parallel/compress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "comm/ranks.h"
#include "graph/context.h"
#include "parallel/bucket.h"

enum { MIN_SIZE = 1024 }; // elements: smaller tensors are sent completely

struct yk_compress {
	struct yk_parameters errors;
	int *error;      // per parameter: index into errors, -1: sent completely
	int64_t *sent;   // per parameter: number of elements sent
	int64_t after;   // number of first steps that are not compressed
	yoke_tensor **scratch; // length: twice the number of parameters
	// with loss scaling, per compressed parameter: the remainder, until the step is known not
	// to be skipped
	yoke_tensor **rest;
};

static bool compresses(const struct yk_config *c)
{
	return strcmp(yk_config_str(c, YK_KEY_compress), "none");
}

bool yk_compress_selects(int64_t elements)
{
	return elements >= MIN_SIZE && elements <= INT32_MAX;
}

int yk_compress_check(const struct yk_config *c)
{
	if (!compresses(c))
		return 0;
	if (yk_config_int(c, YK_KEY_zero) > 1)
		return yk_fail(
			YOKE_EINVAL,
			"compress=topk needs complete gradients on each rank, but zero=%lld shards them: use "
			"zero=1 or 0",
			(long long)yk_config_int(c, YK_KEY_zero));
	if (yk_config_int(c, YK_KEY_tensor) > 1)
		return yk_fail(
			YOKE_EINVAL,
			"compress=topk selects the largest elements of complete tensors, but tensor=%lld shards them: "
			"use tensor=1",
			(long long)yk_config_int(c, YK_KEY_tensor));
	return 0;
}

int yk_compress_new(struct yk_replica *t)
{
	const struct yk_parameters *ps = &t->net->params;
	const double ratio = yk_config_real(t->config, YK_KEY_compress_ratio);
	if (!compresses(t->config))
		return 0;
	struct yk_compress *c = t->compress = calloc(1, sizeof *c);
	if (c) {
		c->after = yk_config_int(t->config, YK_KEY_compress_after);
		if (yk_current()->mode.dry && c->after > 1) // a rehearsal has only a few steps
			c->after = 1;
		c->error = calloc((size_t)ps->count + 1, sizeof *c->error);
		c->sent = calloc((size_t)ps->count + 1, sizeof *c->sent);
		c->scratch = calloc(2 * (size_t)ps->count + 1, sizeof *c->scratch);
		c->rest = calloc((size_t)ps->count + 1, sizeof *c->rest);
	}
	if (!c || !c->error || !c->sent || !c->scratch || !c->rest)
		return yk_fail(YOKE_ENOMEM, "compress: out of memory");
	for (int i = 0; i < ps->count; i++) {
		const int64_t n = yoke_count(ps->var[i]), k = (int64_t)(ratio * (double)n + 1e-6);
		c->error[i] = -1;
		if (!yk_compress_selects(n))
			continue;
		c->sent[i] = k < 1 ? 1 : k < n ? k : n;
		c->error[i] = c->errors.count;
		if (!yk_parameters_like(&c->errors, ps, i, "error"))
			return yoke_error_code();
	}
	return 0;
}

void yk_compress_free(struct yk_compress *c)
{
	if (!c)
		return;
	yk_parameters_fini(&c->errors);
	free(c->error);
	free(c->sent);
	free(c->scratch);
	free(c->rest);
	free(c);
}

const struct yk_parameters *yk_compress_errors(const struct yk_compress *c)
{
	return &c->errors;
}

bool yk_compress_now(const struct yk_replica *t)
{
	return t->compress && t->step >= t->compress->after;
}

// ---- a step ----

// Adds to x [n] what one rank sent: k indices and k values, at element `at` of all.
static yoke_tensor *add_sent(yoke_tensor *x, yoke_tensor *all, int64_t at, int64_t k)
{
	yoke_tensor *v = yoke_bitcast(yoke_slice(all, 0, at + k, at + 2 * k, 1), yoke_f32);
	return yoke_scatter_add_along(x, yoke_slice(all, 0, at, at + k, 1), v, 0);
}

// Sums parameter i's gradient over all ranks' messages, which are `each` elements long and contain
// it at `at`. Order T: the messages of a rank and its neighbour are added to zeros one after the
// other; then pairs of these sums are added.
static yoke_tensor *sum_sent(const struct yk_replica *t, int i, yoke_tensor *all, int64_t each,
			     int64_t at)
{
	const yoke_tensor *like = t->net->params.var[i];
	const int ranks = t->group ? yoke_group_size(t->group) : 1, rank = yoke_rank(like);
	const int64_t n = yoke_count(like), k = t->compress->sent[i];
	yoke_tensor *x[(YK_MAX_RANKS + 1) / 2];
	int64_t dims[YOKE_MAX_RANK];
	const int pairs = (ranks + 1) / 2;
	for (int p = 0; p < pairs; p++) {
		x[p] = add_sent(yoke_full(yoke_f32, 1, &n, 0), all, 2 * p * each + at, k);
		if (2 * p + 1 < ranks)
			x[p] = add_sent(x[p], all, (2 * p + 1) * each + at, k);
	}
	for (int d = 1; d < pairs; d *= 2)
		for (int p = 0; p + d < pairs; p += 2 * d)
			x[p] = yoke_add(x[p], x[p + d]);
	for (int d = 0; d < rank; d++)
		dims[d] = yoke_dim(like, d);
	return yoke_reshape(x[0], rank, dims);
}

// Reduces the parameters that are not compressed.
static int reduce_whole(struct yk_replica *t, int first, int end)
{
	yoke_tensor **small = t->compress->scratch;
	int n = 0, e = 0;
	for (int i = first; i < end; i++)
		if (t->compress->error[i] < 0)
			small[n++] = yk_bucket_cast(t->config, t->grad[i]);
	if (n)
		e = yoke_all_reduce_list(t->group, YOKE_REDUCE_SUM, n, small, small);
	for (int i = first, k = 0; i < end; i++)
		if (t->compress->error[i] < 0)
			t->grad[i] = yoke_cast(small[k++], yoke_f32);
	return e;
}

int yk_compress_reduce(struct yk_replica *t, int first, int end)
{
	const struct yk_compress *c = t->compress;
	int64_t each = 0, at = 0;
	int n = 0, e = t->group ? reduce_whole(t, first, end) : 0;
	for (int i = first; i < end; i++) {
		if (c->error[i] < 0)
			continue;
		yoke_tensor *error = c->errors.var[c->error[i]], **rest = &c->rest[c->error[i]],
			    *places;
		yoke_tensor *carried = t->scaler ? yoke_scaler_scale(t->scaler, error) : error;
		yoke_tensor *value = yoke_largest(t->grad[i], carried, c->sent[i], &places, rest);
		if (!t->scaler)
			yoke_assign(error, *rest);
		c->scratch[n++] = places;
		c->scratch[n++] = yoke_bitcast(value, yoke_i32);
		each += 2 * c->sent[i];
	}
	if (!n || e < 0)
		return e;
	yoke_tensor *all = yoke_concat(n, c->scratch, 0);
	if (t->group)
		all = yoke_all_gather(t->group, all);
	for (int i = first; i < end; i++) {
		if (c->error[i] < 0)
			continue;
		t->grad[i] = sum_sent(t, i, all, each, at);
		at += 2 * c->sent[i];
	}
	return yoke_error_code();
}

void yk_compress_keep(const struct yk_replica *t, yoke_tensor *skip)
{
	const struct yk_compress *c = t->compress;
	for (int k = 0; k < c->errors.count; k++) {
		yoke_tensor *error = c->errors.var[k],
			    *rest = yoke_mul(c->rest[k], yoke_scaler_inverse(t->scaler));
		yoke_assign(error, yoke_select(yoke_ne(skip, yoke_const(0)), error, rest));
	}
}

// ---- checkpoints ----

int yk_compress_mean(struct yk_replica *t)
{
	const struct yk_parameters *ps = t->compress ? &t->compress->errors : NULL;
	if (!ps || !ps->count || !t->group)
		return 0;
	yoke_scope *s = yoke_scope_begin("error");
	int e = 0;
	for (int end = ps->count, first; end > 0 && e == 0; end = first) {
		yoke_tensor **to = t->compress->scratch;
		first = yk_bucket_first(ps, end);
		e = yoke_all_reduce_list(t->group, YOKE_REDUCE_SUM, end - first, ps->var + first,
					 to);
		for (int i = first; i < end && e == 0; i++)
			e = yoke_assign(ps->var[i],
					yoke_mul(to[i - first],
						 yoke_const(1.0 / yoke_group_size(t->group))));
	}
	if (e == 0)
		e = yoke_eval(0, NULL);
	const int ended = yoke_scope_end(s);
	return e ? e : ended;
}
