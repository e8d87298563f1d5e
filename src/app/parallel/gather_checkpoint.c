// SPDX-License-Identifier: Apache-2.0
// Moves complete tensors of sharded models from ranks to checkpoint files, one window at a time.
#include "config.h"

#include "parallel/gather_checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "comm/ranks.h"
#include "parallel/compress.h"
#include "parallel/load_states.h"
#include "parallel/zero.h"
#include "plan/eval.h"

struct range {
	int64_t from, to; // in elements
};

// A tensor of a checkpoint file. Only the ranks of its stage have it. Each tensor rank has a shard,
// stored as a flat row of elements, and each data rank a range of that row.
struct entry {
	yoke_tensor *var;   // the local part; NULL: none
	struct yk_shard_range shard; // of this rank, or the one it would have in that stage
	struct range owns;  // the range of its row that this rank sends
	int64_t at;         // offset in the row of the first element of `var`
	bool here;          // rank 0 has all of it
};

struct yk_checkpoint_gather {
	yoke_group *group; // all ranks; NULL: there is one
	int64_t tensor;    // number of tensor ranks
	struct list {
		struct yk_stages_list names;
		struct entry *entry;
	} part[YK_CHECKPOINT_PARTS];
	struct range *owns; // per rank, for the tensor requested last
	char *window; // buffer for one window
};

// A request that rank 0 broadcasts: these elements of a tensor; part -1: no more requests.
struct request {
	int32_t part, i;
	struct range of;
};

// ---- shard layout ----

// Within every `segment` elements of the complete tensor, elements from .. to - 1 belong to a
// tensor rank; its row is their concatenation.
struct row_layout {
	int64_t segment, from, to;
};

static struct row_layout layout_of(const struct yk_host_tensor *h, const struct yk_shard_range *c,
				   int64_t rank, int64_t ranks)
{
	int64_t inner = 1;
	for (int d = c->blocks ? c->axis + 1 : 0; d < h->rank; d++)
		inner *= h->dims[d];
	if (!c->blocks)
		return (struct row_layout){ inner, 0, inner };
	const int64_t n = c->all / c->blocks;
	return (struct row_layout){ n * inner, rank * n / ranks * inner,
				    (rank + 1) * n / ranks * inner };
}

// Number of elements of the row that precede element a of the complete tensor.
static int64_t before(const struct row_layout *l, int64_t a)
{
	const int64_t n = l->to - l->from, in = a % l->segment - l->from;
	return a / l->segment * n + (in < 0 ? 0 : in > n ? n : in);
}

// The range of its row that a rank sends for the elements `of` of the complete tensor.
static struct range sent_of(const struct row_layout *l, struct range owns, struct range of)
{
	const struct range r = { before(l, of.from), before(l, of.to) };
	return (struct range){ r.from > owns.from ? r.from : owns.from,
			       r.to < owns.to ? r.to : owns.to };
}

// Copies elements r of a row to their positions in the complete tensor; `to` begins at its element
// `first`.
static void spread(const struct row_layout *l, struct range r, int64_t first, size_t each,
		   const char *from, char *to)
{
	const int64_t n = l->to - l->from;
	while (r.from < r.to) {
		const int64_t k = r.from / n, in = r.from % n, left = n - in,
			      some = left < r.to - r.from ? left : r.to - r.from;
		memcpy(to + (size_t)(k * l->segment + l->from + in - first) * each, from,
		       (size_t)some * each);
		from += (size_t)some * each;
		r.from += some;
	}
}

// ---- lists of tensors ----

// The shard that this rank would have of parameter i of all stages.
static int shard_of_other(const struct yk_network *n, int i, struct yk_shard_range *to)
{
	int64_t dims[2] = { n->all[i].dims[0], n->all[i].dims[1] };
	return yk_shard_range_of(n->params.shard, n->all[i].name, n->all[i].rank, dims, to);
}

// Fills in tensor k of a list: tensors of no parameter first, then `each` per parameter. shared:
// sharded among data ranks.
static int enter(const struct yk_replica *t, const struct yk_parameters *ps, int each, bool shared,
		 const struct list *l, int k, struct entry *to)
{
	const struct yk_grid *g = &t->grid;
	const int own = l->names.own[k], all = t->stages ? (int)t->net->alls : t->params->count;
	const int numbers = l->names.l.count - each * all,
		  i = k < numbers ? -1 : (k - numbers) / each;
	// index among this rank's parameters
	const int here = i < 0 || own < 0 ? -1 : (own - numbers) / each;
	int e = 0;
	*to = (struct entry){ .var = own < 0 ? NULL : ps->var[own] };
	if (here >= 0 && t->net)
		to->shard = t->net->params.row[here].shard;
	else if (i >= 0 && t->stages)
		e = shard_of_other(t->net, i, &to->shard);
	if (here >= 0 && shared) {
		const struct yk_optim_range *c = &yk_zero_sharding(t->zero)->range[here];
		to->owns = (struct range){ c->from, c->to };
		to->at = c->from;
	} else if (to->var && g->d == 0) {
		to->owns.to = yoke_count(to->var);
	}
	const bool first = i < 0 ? g->d + g->s + g->p == 0 : to->shard.blocks || g->p == 0;
	if (!to->var || !first || (t->stages && i >= 0 && t->net->all[i].copied))
		to->owns = (struct range){ 0, 0 };
	to->here = to->var && (i < 0 || !(shared || to->shard.blocks));
	return e;
}

// Appends tensors that are equal on all ranks.
static int append(struct list *l, const struct yk_parameters *ps)
{
	struct yk_stages_list *w = &l->names;
	const size_t n = (size_t)(w->l.count + ps->count) + 1;
	struct yk_host_list more = { 0 };
	int e = yk_host_list_describe(ps, true, &more);
	struct yk_host_tensor *all = e ? NULL : realloc(w->l.tensor, n * sizeof *all);
	w->l.tensor = all ? all : w->l.tensor;
	int *own = all ? realloc(w->own, n * sizeof *own) : NULL;
	w->own = own ? own : w->own;
	struct entry *entry = own ? realloc(l->entry, n * sizeof *entry) : NULL;
	l->entry = entry ? entry : l->entry;
	for (int k = 0; k < ps->count && entry; k++) {
		all[w->l.count] = more.tensor[k];
		own[w->l.count] = k;
		entry[w->l.count++] = (struct entry){ .var = ps->var[k], .here = true };
	}
	yk_host_list_free(&more);
	return e ? e :
	       entry ?
		   0 :
		   yk_fail(YOKE_ENOMEM, "checkpoint: out of host memory for %d arrays", ps->count);
}

// shared: tensors are sharded among data ranks.
static int list(const struct yk_replica *t, const struct yk_parameters *ps, int each, bool shared,
		struct list *to)
{
	int e = yk_file_list(t, ps, each, &to->names);
	if (e == 0 && !(to->entry = calloc((size_t)to->names.l.count + 1, sizeof *to->entry)))
		e = yk_fail(YOKE_ENOMEM, "checkpoint: out of host memory for %d arrays",
			    to->names.l.count);
	for (int k = 0; k < to->names.l.count && e == 0; k++)
		e = enter(t, ps, each, shared, to, k, &to->entry[k]);
	return e;
}

int yk_checkpoint_gather_begin(struct yk_replica *t)
{
	struct yk_checkpoint_gather *w = t->whole = calloc(1, sizeof *w);
	if (!w)
		return yk_fail(YOKE_ENOMEM, "checkpoint: out of host memory");
	w->group = t->grid.all;
	w->tensor = t->grid.tensor;
	const size_t ranks = w->group ? (size_t)yoke_group_size(w->group) : 1;
	w->owns = calloc(ranks, sizeof *w->owns);
	int e = w->owns ? 0 : yk_fail(YOKE_ENOMEM, "checkpoint: out of host memory");
	if (e == 0)
		e = list(t, t->stage > 2 ? yk_zero_held(t->zero) : t->kept, 1, t->stage > 2,
			 &w->part[YK_CHECKPOINT_MODEL]);
	if (e == 0)
		e = list(t, yk_optim_states(t->optim),
			 t->net || t->zero ? yk_replica_states_each(t) : 0, t->zero,
			 &w->part[YK_CHECKPOINT_OPTIMIZER]);
	if (e == 0 && t->compress)
		e = append(&w->part[YK_CHECKPOINT_OPTIMIZER], yk_compress_errors(t->compress));
	return e;
}

// ---- requests ----

void yk_checkpoint_gather_end(struct yk_replica *t)
{
	struct yk_checkpoint_gather *w = t->whole;
	const bool bad = yoke_error_code() != 0;
	if (!w)
		return;
	if (w->group && yoke_group_rank(w->group) == 0)
		yk_group_broadcast(w->group, 0, &(struct request){ .part = -1 },
				   sizeof(struct request));
	if (!bad) // missing ranks were already reported where their data was needed
		yoke_error_clear();
	for (int p = 0; p < YK_CHECKPOINT_PARTS; p++) {
		yk_stages_list_free(&w->part[p].names);
		free(w->part[p].entry);
	}
	free(w->owns);
	free(w->window);
	free(w);
	t->whole = NULL;
}

void yk_checkpoint_gather_arrays(const struct yk_checkpoint_gather *w,
				 struct yk_checkpoint_arrays to[YK_CHECKPOINT_PARTS])
{
	for (int p = 0; p < YK_CHECKPOINT_PARTS; p++)
		to[p] = (struct yk_checkpoint_arrays){ w->part[p].names.l.count,
						       w->part[p].names.l.tensor };
}

// Reads elements of this rank's row.
static int read_row(const struct entry *e, struct range r, size_t each, char *to)
{
	return yk_read_part(e->var, (uint64_t)(r.from - e->at) * each, to,
			    (size_t)(r.to - r.from) * each);
}

// All ranks, at the first window of a tensor: exchanges the ranges that each of them sends.
static int compare(struct yk_checkpoint_gather *w, const struct request *r)
{
	return r->of.from > 0 ? 0 :
				yoke_group_exchange(w->group, &w->part[r->part].entry[r->i].owns,
						    sizeof *w->owns, w->owns);
}

int yk_checkpoint_gather_source(void *arg, int part, int i, uint64_t from, size_t bytes, void *to)
{
	struct yk_checkpoint_gather *w = arg;
	const struct entry *own = &w->part[part].entry[i];
	const struct yk_host_tensor *h = &w->part[part].names.l.tensor[i];
	const size_t each = yk_safetensors_size(h->dtype);
	struct request want = { part,
				i,
				{ (int64_t)(from / each), (int64_t)((from + bytes) / each) } };
	if (own->here)
		return yk_read_part(own->var, from, to, bytes);
	if (!w->window && !(w->window = malloc(YK_SAFETENSORS_WINDOW)))
		return yk_fail(YOKE_ENOMEM, "checkpoint: out of host memory for %s", h->name);
	int e = yk_group_broadcast(w->group, 0, &want, sizeof want);
	if (e == 0)
		e = compare(w, &want);
	for (uint32_t r = 0; r < (uint32_t)yoke_group_size(w->group) && e == 0; r++) {
		const struct row_layout l = layout_of(h, &own->shard, r % w->tensor, w->tensor);
		const struct range sent = sent_of(&l, w->owns[r], want.of);
		const size_t n = (size_t)(sent.to - sent.from) * each;
		if (sent.from >= sent.to)
			continue;
		e = r == 0 ? read_row(own, sent, each, w->window) :
			     yk_group_recv(w->group, r, w->window, n);
		spread(&l, sent, want.of.from, each, w->window, to);
	}
	return e;
}

static int send(struct yk_checkpoint_gather *w, const struct request *r)
{
	const struct entry *own = &w->part[r->part].entry[r->i];
	const struct yk_host_tensor *h = &w->part[r->part].names.l.tensor[r->i];
	const struct row_layout l =
		layout_of(h, &own->shard, yoke_group_rank(w->group) % w->tensor, w->tensor);
	const struct range sent = sent_of(&l, own->owns, r->of);
	const size_t each = yk_safetensors_size(h->dtype);
	if (sent.from >= sent.to)
		return 0;
	char *window = malloc((size_t)(sent.to - sent.from) * each);
	int e = window ? read_row(own, sent, each, window) :
		       yk_fail(YOKE_ENOMEM, "checkpoint: out of host memory for %s", h->name);
	if (e == 0)
		e = yk_group_send(w->group, 0, window, (size_t)(sent.to - sent.from) * each);
	free(window);
	return e;
}

int yk_checkpoint_gather_serve(struct yk_replica *t)
{
	struct yk_checkpoint_gather *w = t->whole;
	struct request r;
	int e;
	while ((e = yk_group_broadcast(w->group, 0, &r, sizeof r)) == 0 && r.part >= 0)
		if ((e = compare(w, &r)) < 0 || (e = send(w, &r)) < 0)
			break;
	return e;
}
