// SPDX-License-Identifier: Apache-2.0
// Batches given out: as tensors, into variables, in host memory.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/loader.h"

// The next batch for a call with n fields; *rows: what the call returns where there is none.
static struct yk_slot *next(struct yoke_loader *l, int n, const char *call, int64_t *rows)
{
	bool end;
	if (!l || n != l->set->fields) {
		*rows = yk_fail(YOKE_EINVAL, "%s: takes a loader and as many fields as its set has, %d; got %d", call,
				l ? l->set->fields : 0, n);
		return NULL;
	}
	struct yk_slot *s = yk_loader_take(l, &end);
	*rows = s ? s->samples : end ? 0 : l->failed;
	return s;
}

static void dims_of(const struct yk_slot *s, int f, int64_t dims[YOKE_MAX_RANK + 1])
{
	dims[0] = s->rows;
	memcpy(dims + 1, s->shape[f], sizeof s->shape[f]);
}

static yoke_tensor *weights(const struct yk_slot *s)
{
	float *w = malloc(sizeof *w * (size_t)s->rows);
	if (!w) {
		yk_fail(YOKE_ENOMEM, "loader_next: no memory for %lld weights", (long long)s->rows);
		return NULL;
	}
	for (int64_t i = 0; i < s->rows; i++)
		w[i] = i < s->samples;
	yoke_tensor *t = yoke_from(yoke_f32, 1, &s->rows, w);
	free(w);
	return t;
}

int64_t yoke_loader_next(yoke_loader *l, int n, yoke_tensor **to, yoke_tensor **weight)
{
	int64_t rows, dims[YOKE_MAX_RANK + 1];
	struct yk_slot *s = next(l, n, "loader_next", &rows);
	const bool copy = s && yk_loader_out(l) >= YK_LOADER_HELD; // what is read ahead needs the others
	for (int f = 0; f < n; f++) {
		to[f] = NULL;
		if (!s || rows < 0)
			continue;
		const struct yk_field *x = &l->set->field[f];
		dims_of(s, f, dims);
		if (copy) {
			to[f] = yoke_from(x->dtype, x->rank + 1, dims, yk_slot_field(s, f));
		} else {
			yk_slot_hold(s);
			to[f] = yoke_wrap(x->dtype, x->rank + 1, dims, yk_slot_field(s, f), yk_slot_unhold, s);
		}
		if (!to[f])
			rows = yoke_error_code();
	}
	if (weight)
		*weight = s && rows >= 0 ? weights(s) : NULL;
	if (s && weight && !*weight)
		rows = yoke_error_code();
	if (s)
		yk_loader_release(l);
	return rows;
}

int64_t yoke_loader_put(yoke_loader *l, int n, yoke_tensor *const *variable)
{
	int64_t rows, dims[YOKE_MAX_RANK + 1];
	struct yk_slot *s = next(l, n, "loader_put", &rows);
	for (int f = 0; s && f < n && rows >= 0; f++) {
		const struct yk_field *x = &l->set->field[f];
		bool same = yoke_dtype(variable[f]) == x->dtype && yoke_rank(variable[f]) == x->rank + 1;
		dims_of(s, f, dims);
		for (int k = 0; same && k <= x->rank; k++)
			same = yoke_dim(variable[f], k) == dims[k];
		const int e = same ? yoke_put(variable[f], yk_slot_field(s, f), yoke_bytes(variable[f])) :
				     yk_fail(YOKE_ESHAPE, "loader_put: field %s of this batch has another shape or dtype "
					     "than its variable", x->name);
		rows = e < 0 ? e : rows;
	}
	return rows;
}

int64_t yoke_loader_host(yoke_loader *l, int n, void **data, int64_t (*dims)[YOKE_MAX_RANK + 1])
{
	int64_t rows;
	struct yk_slot *s = next(l, n, "loader_host", &rows);
	for (int f = 0; s && f < n; f++) {
		data[f] = yk_slot_field(s, f);
		if (dims)
			dims_of(s, f, dims[f]);
	}
	return rows;
}
