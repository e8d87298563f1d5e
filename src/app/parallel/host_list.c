// SPDX-License-Identifier: Apache-2.0
// Copies parameters to and from host memory and checkpoints.
#include "config.h"

#include "parallel/host_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

int yk_host_list_describe(const struct yk_parameters *ps, bool whole, struct yk_host_list *to)
{
	struct yk_host_list l = { .tensor = calloc((size_t)ps->count + 1, sizeof *l.tensor) };
	if (!l.tensor)
		return yk_fail(YOKE_ENOMEM, "checkpoint: out of host memory for %d arrays",
			       ps->count);
	for (; l.count < ps->count; l.count++) {
		const yoke_tensor *var = ps->var[l.count];
		struct yk_host_tensor *t = &l.tensor[l.count];
		t->name = ps->row[l.count].name;
		t->dtype = yoke_dtype(var);
		t->rank = yk_parameters_dims(ps, l.count, t->dims);
		for (int i = 0; i < t->rank && !whole; i++)
			t->dims[i] = yoke_dim(var, i);
	}
	*to = l;
	return 0;
}

size_t yk_host_bytes(const struct yk_host_tensor *h)
{
	size_t bytes = yoke_dtype_size(h->dtype);
	for (int d = 0; d < h->rank; d++)
		bytes *= (size_t)h->dims[d];
	return bytes;
}

void yk_host_list_free(struct yk_host_list *l)
{
	for (int i = 0; i < l->count; i++)
		free(l->tensor[i].data);
	free(l->tensor);
	*l = (struct yk_host_list){ 0 };
}

int yk_host_list_read(const struct yk_parameters *ps, struct yk_host_list *to)
{
	struct yk_host_list l = { 0 };
	int e = yk_host_list_describe(ps, false, &l);
	for (int i = 0; i < l.count && e == 0; i++) {
		size_t bytes = yoke_bytes(ps->var[i]);
		void *data = l.tensor[i].data = malloc(bytes);
		e = data ? yoke_read(ps->var[i], data, bytes) :
			   yk_fail(YOKE_ENOMEM, "checkpoint: out of host memory for %s",
				   ps->row[i].name);
	}
	if (e < 0)
		yk_host_list_free(&l);
	else
		*to = l;
	return e;
}

int yk_host_list_put(const struct yk_host_list *l, const struct yk_parameters *ps)
{
	int e = 0;
	for (int i = 0; i < l->count && e == 0; i++)
		e = yoke_put(ps->var[i], l->tensor[i].data, yoke_bytes(ps->var[i]));
	return e;
}

// ---- from a checkpoint ----

int yk_host_list_take(void *arg, int i, const void *data, uint64_t bytes)
{
	const struct yk_parameters *ps = arg;
	const struct yk_shard_range *range = &ps->row[i].shard;
	yoke_tensor *var = ps->var[i];
	int64_t dims[YOKE_MAX_RANK];
	if (!range->blocks)
		return yoke_put(var, data, bytes);
	char *part = malloc(yoke_bytes(var) + 1);
	if (!part)
		return yk_fail(YOKE_ENOMEM, "checkpoint: out of host memory for %s",
			       ps->row[i].name);
	yk_shard_extract(range, yk_parameters_dims(ps, i, dims), dims,
			 yoke_dtype_size(yoke_dtype(var)), data, part);
	const int e = yoke_put(var, part, yoke_bytes(var));
	free(part);
	return e;
}

int yk_host_list_load(const char *folder, const struct yk_checkpoint *ck, int part,
		    const struct yk_parameters *ps)
{
	struct yk_host_list l = { 0 };
	int e = yk_host_list_describe(ps, true, &l);
	if (e == 0)
		e = yk_checkpoint_load(folder, ck, part, l.count, l.tensor, yk_host_list_take,
				       (void *)ps);
	yk_host_list_free(&l);
	return e;
}
