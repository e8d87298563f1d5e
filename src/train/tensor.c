// SPDX-License-Identifier: Apache-2.0
// Parameters in cuts, as a trainer has them.
#include "config.h"

#include "train/tensor.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "train/zero.h"

enum { CHUNK = 1 << 22 }; // bytes that a rank hands over at a time

struct yk_cuts {
	bool *counts;                       // by parameter: is it this rank that counts it in sums over all
	struct yk_host_list weights, states; // whole, on rank 0, since yk_cuts_collect
};

int yk_cuts_new(struct yk_trainer *t)
{
	const struct yk_parameters *ps = &t->net->params;
	if (!t->grid.over_tensor)
		return 0;
	struct yk_cuts *x = calloc(1, sizeof *x);
	if (!x || !(x->counts = calloc((size_t)ps->count, sizeof *x->counts))) {
		free(x);
		return yk_fail(YOKE_ENOMEM, "tensor ranks: no memory");
	}
	for (int i = 0; i < ps->count; i++)
		x->counts[i] = ps->row[i].cut.blocks || t->grid.p == 0;
	t->cuts = x;
	return 0;
}

void yk_cuts_free(struct yk_cuts *x)
{
	if (!x)
		return;
	yk_host_list_free(&x->weights);
	yk_host_list_free(&x->states);
	free(x->counts);
	free(x);
}

static yoke_tensor *total(void *arg, yoke_tensor *x)
{
	const struct yk_trainer *t = arg;
	return yoke_all_reduce(t->grid.over_tensor, YOKE_REDUCE_SUM, x);
}

void yk_cuts_share(const struct yk_trainer *t, struct yk_optim_share *to)
{
	to->counts = t->cuts->counts;
	to->total = total;
	to->arg = (void *)(uintptr_t)t;
}

int yk_cuts_start(const struct yk_trainer *t)
{
	const struct yk_parameters *ps = &t->net->params;
	yoke_tensor **to = calloc(2 * (size_t)ps->count + 1, sizeof *to), **var = to + ps->count;
	int n = 0;
	if (!to)
		return yk_fail(YOKE_ENOMEM, "tensor ranks: no memory");
	yoke_scope *s = yoke_scope_begin("start");
	for (int i = 0; i < ps->count; i++)
		if (!ps->row[i].cut.blocks)
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

// ---- whole tensors ----

// The same cut of another rank.
static struct yk_cut cut_at(const struct yk_cut *c, int64_t rank, int64_t ranks)
{
	const int64_t n = c->blocks ? c->all / c->blocks : 0;
	struct yk_cut to = *c;
	to.from = rank * n / ranks;
	to.to = (rank + 1) * n / ranks;
	return to;
}

static size_t bytes_of(const struct yk_host_tensor *h)
{
	size_t bytes = yoke_dtype_size(h->dtype);
	for (int d = 0; d < h->rank; d++)
		bytes *= (size_t)h->dims[d];
	return bytes;
}

// Replaces a cut by the whole, on the first rank; the others only hand theirs over.
static int join(const struct yk_trainer *t, const struct yk_cut *cut, struct yk_host_tensor *h, char *room)
{
	const int64_t ranks = t->grid.tensor;
	const size_t unit = bytes_of(h) / (size_t)(cut->blocks * (cut->to - cut->from)); // bytes for each element of the axis
	struct yk_host_tensor whole = *h;
	size_t most = 0, *bytes = calloc((size_t)ranks, sizeof *bytes);
	char **part = calloc((size_t)ranks, sizeof *part);
	const bool leads = t->grid.p == 0;
	int e = bytes && part ? 0 : yk_fail(YOKE_ENOMEM, "no host memory for %s", h->name);
	whole.dims[cut->axis] = cut->all;
	whole.data = NULL;
	for (int64_t r = 0; r < ranks && e == 0; r++) {
		const struct yk_cut c = cut_at(cut, r, ranks);
		bytes[r] = unit * (size_t)(c.blocks * (c.to - c.from));
		most = bytes[r] > most ? bytes[r] : most;
		if (leads && !(part[r] = malloc(bytes[r] + 1)))
			e = yk_fail(YOKE_ENOMEM, "no host memory for %s", h->name);
	}
	if (leads && e == 0 && !(whole.data = malloc(bytes_of(&whole) + 1)))
		e = yk_fail(YOKE_ENOMEM, "no host memory for %s", h->name);
	for (size_t at = 0; at < most && e == 0; at += CHUNK) {
		const size_t n = most - at < CHUNK ? most - at : CHUNK, own = bytes[t->grid.p] - (at < bytes[t->grid.p] ? at : bytes[t->grid.p]);
		memcpy(room, (char *)h->data + at, own < n ? own : n);
		e = yoke_group_exchange(t->grid.over_tensor, room, n, room + CHUNK);
		for (int64_t r = 0; r < ranks && e == 0 && leads; r++)
			if (at < bytes[r])
				memcpy(part[r] + at, room + CHUNK + (size_t)r * n, bytes[r] - at < n ? bytes[r] - at : n);
	}
	for (int64_t r = 0; r < ranks && e == 0 && leads; r++) {
		const struct yk_cut c = cut_at(cut, r, ranks);
		yk_cut_put(&c, whole.rank, whole.dims, yoke_dtype_size(whole.dtype), part[r], whole.data);
	}
	for (int64_t r = 0; r < ranks && part; r++)
		free(part[r]);
	free(part);
	free(bytes);
	if (e < 0 || !leads) {
		free(whole.data);
		return e;
	}
	free(h->data);
	*h = whole;
	return 0;
}

// Of a list with `each` tensors of each parameter behind those of none.
static int join_all(const struct yk_trainer *t, int each, struct yk_host_list *l)
{
	const struct yk_parameters *ps = &t->net->params;
	const int numbers = l->count - each * ps->count;
	char *room = calloc((size_t)t->grid.tensor + 1, CHUNK);
	int e = room ? 0 : yk_fail(YOKE_ENOMEM, "tensor ranks: no memory");
	for (int k = numbers; k < l->count && e == 0; k++) {
		const struct yk_cut *cut = &ps->row[(k - numbers) / each].cut;
		if (cut->blocks)
			e = join(t, cut, &l->tensor[k], room);
	}
	free(room);
	return e;
}

int yk_cuts_collect(struct yk_trainer *t)
{
	struct yk_cuts *x = t->cuts;
	yk_cuts_drop(t);
	if (t->grid.d > 0) // what the data ranks have is the same
		return 0;
	int e = t->stage > 2 ? yk_zero_weights(t->zero, &x->weights) : yk_host_list_read(t->kept, &x->weights);
	if (e == 0)
		e = t->zero ? yk_zero_states(t->zero, &x->states) : yk_host_list_read(yk_optim_states(t->optim), &x->states);
	if (e == 0)
		e = join_all(t, 1, &x->weights);
	if (e == 0)
		e = join_all(t, yk_optim_states_each(t->config), &x->states);
	if (e < 0 || t->grid.p > 0)
		yk_cuts_drop(t);
	return e;
}

void yk_cuts_drop(struct yk_trainer *t)
{
	yk_host_list_free(&t->cuts->weights);
	yk_host_list_free(&t->cuts->states);
}

int yk_cuts_weights(const struct yk_cuts *x, struct yk_host_list *to)
{
	return yk_host_list_copy(&x->weights, to);
}

int yk_cuts_states(const struct yk_cuts *x, struct yk_host_list *to)
{
	return yk_host_list_copy(&x->states, to);
}
