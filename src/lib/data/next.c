// SPDX-License-Identifier: Apache-2.0
// Delivers a loader's batches: as tensors, into variables, or in host memory.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/loader.h"
#include "graph/context.h"
#include "graph/handle.h"

// Returns the next batch for a call with a list of n fields or micro-batches of fields, copied to
// the device of ctx.  *rows: the call's result if there is no batch.
static struct yk_batch *next(struct yoke_loader *l, int n, const void *list,
			     struct yoke_context *ctx, const char *call, int64_t *rows)
{
	bool end;
	int e = yk_require_as(l, call, "loader");
	if (!e && n != yk_loader_tensors(l))
		e = yk_fail(YOKE_EINVAL,
			    "%s: needs one tensor per field%s of its dataset, %d; got %d", call,
			    l->feed.split > 1 ? "and micro-batch" : "", yk_loader_tensors(l), n);
	if (!e)
		e = yk_require_as(list, call, "list of fields");
	if (e) {
		*rows = e;
		return NULL;
	}
	e = ctx ? yk_loader_bind(l, ctx) : 0;
	struct yk_batch *s = e == 0 ? yk_loader_wait(l, &end) : NULL;
	if (s && ctx)
		e = yk_loader_send(l);
	if (e == 0 && s && !yk_loader_take(l, s))
		s = NULL;
	*rows = e < 0 ? e : s ? yk_batch_delivered(s, s->samples) : end ? 0 : l->error.code;
	return e < 0 ? NULL : s;
}

static yoke_tensor *weights(const struct yk_batch *s)
{
	const int64_t rows = yk_batch_delivered(s, s->rows);
	float *w = calloc((size_t)rows, sizeof *w);
	if (!w) {
		yk_fail(YOKE_ENOMEM, "loader_next: no memory for %lld weights", (long long)rows);
		return NULL;
	}
	for (int64_t i = 0; i < yk_batch_delivered(s, s->samples); i++)
		w[i] = 1;
	yoke_tensor *t = yoke_from(yoke_f32, 1, &rows, w);
	free(w);
	return t;
}

// A tensor for the CPU, which uses the slot's memory in place.
static yoke_tensor *in_place(struct yk_batch *s, int f, int64_t part, bool copy)
{
	const struct yk_field *x = &s->loader->set->field[f];
	int64_t dims[YOKE_MAX_RANK + 1];
	void *at = yk_batch_part(s, f, part);
	yk_batch_dims(s, f, dims);
	if (copy)
		return yoke_from(x->dtype, x->rank + 1, dims, at);
	yk_batch_hold(s);
	return yoke_wrap(x->dtype, x->rank + 1, dims, at, yk_batch_unhold, s);
}

int64_t yoke_loader_next(yoke_loader *l, int n, yoke_tensor **to, yoke_tensor **weight)
{
	int64_t rows;
	struct yoke_context *ctx = yk_current();
	for (int k = 0; to && k < n; k++)
		to[k] = NULL;
	if (weight)
		*weight = NULL;
	if (!ctx)
		return yoke_error_code();
	struct yk_batch *s = next(l, n, to, ctx, "loader_next", &rows);
	yoke_tensor **sent = s ? yk_loader_sent(l) : NULL;
	const bool copy = s && yk_loader_out(l) >= l->feed.held; // read-ahead needs the other slots
	for (int k = 0; s && k < n; k++) {
		to[k] = sent ? yk_prefetch_share(sent[k]) :
			       in_place(s, k / (int)l->feed.parts, k % l->feed.parts, copy);
		if (!to[k])
			rows = yoke_error_code();
	}
	if (s && weight && !(*weight = weights(s)))
		rows = yoke_error_code();
	return rows;
}

// Stores a micro-batch of a field in a variable: the tensor that was uploaded ahead, or a copy.
static int put(struct yk_batch *s, int f, int64_t part, yoke_tensor *variable, yoke_tensor *sent)
{
	const struct yk_field *x = &s->loader->set->field[f];
	const struct yk_tensor *t = variable ? yk_tensor(variable, "loader_put") : NULL;
	int64_t dims[YOKE_MAX_RANK + 1];
	yk_batch_dims(s, f, dims);
	bool same = t && t->dtype == x->dtype && t->rank == x->rank + 1;
	for (int k = 0; same && k <= x->rank; k++)
		same = t->dims[k] == dims[k];
	if (!same)
		return yk_fail(
			YOKE_ESHAPE,
			"loader_put: field %s of this batch differs from its variable in shape or dtype",
			x->name);
	if (!sent || t->host)
		return yoke_put(variable, yk_batch_part(s, f, part), yoke_bytes(variable));
	return yk_prefetch_put(variable, sent);
}

int64_t yoke_loader_put(yoke_loader *l, int n, yoke_tensor *const *variable)
{
	int64_t rows;
	struct yoke_context *ctx = yk_current();
	if (!ctx)
		return yoke_error_code();
	for (int k = 1; variable && k < n; k++)
		for (int i = 0; i < k; i++)
			if (variable[i] && variable[i] == variable[k])
				return yk_fail(
					YOKE_EINVAL,
					"loader_put: fields %d and %d have the same variable", i,
					k);
	struct yk_batch *s = next(l, n, variable, ctx, "loader_put", &rows);
	yoke_tensor **sent = s ? yk_loader_sent(l) : NULL;
	for (int k = 0; s && k < n && rows >= 0; k++) {
		const int64_t parts = l->feed.parts;
		const int e = put(s, k / (int)parts, k % parts, variable[k], sent ? sent[k] : NULL);
		rows = e < 0 ? e : rows;
	}
	return rows;
}

int64_t yoke_loader_host(yoke_loader *l, int n, void **data, int64_t (*dims)[YOKE_MAX_RANK + 1])
{
	int64_t rows;
	struct yk_batch *s = next(l, n, data, NULL, "loader_host", &rows);
	for (int k = 0; s && k < n; k++) {
		const int f = k / (int)l->feed.parts;
		data[k] = yk_batch_part(s, f, k % l->feed.parts);
		if (dims)
			yk_batch_dims(s, f, dims[k]);
	}
	return rows;
}
