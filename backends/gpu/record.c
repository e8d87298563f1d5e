// SPDX-License-Identifier: Apache-2.0
// Handles of prepared ops: records their launches through the op's family and runs them.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ext.h"
#include "launch_priv.h"
#include "report.h"
#include "rows.h"

// Some drivers start no work before a flush. Flushing lets the device work while the rest of a step
// is enqueued.
enum { FLUSH = 16 }; // launches between two flushes

// ---- recording an op ----

static uint32_t views_of(const struct yoke_op *op)
{
	return op->nout + op->nin;
}

static const struct yoke_view *view_of(const struct yoke_op *op, uint32_t k)
{
	return k < op->nout ? &op->out[k] : &op->in[k - op->nout];
}

// Frees the tables; the driver keeps a buffer alive until the launches that read it are done.
static void drop_tables(struct yk_gpu_record *r)
{
	struct yk_gpu_list *l = &r->launches->table;

	while (l->n)
		yk_gpu_buffer_free(r->device, ((void **)l->at)[--l->n], NULL);
}

static void drop_kernels(struct yk_gpu_list *l)
{
	const struct yk_gpu_launch *all = l->at;

	for (size_t i = 0; i < l->n; i++)
		if (all[i].kernel)
			yk_gpu_driver.kernel_free(all[i].kernel);
	l->n = 0;
}

// Records the launches again, for an op as prepare sees it or, if `bound`, for one that is run.
static int record(struct yk_gpu_record *r, const struct yoke_op *op, bool bound)
{
	const uint32_t n = views_of(op);
	struct yk_gpu_launches *l = r->launches;
	struct yoke_view *v = malloc((n + 1) * sizeof *v);

	if (!v)
		return yk_gpu_error(YOKE_ENOMEM, "no memory for an op's launches");
	for (uint32_t k = 0; k < n; k++) {
		v[k] = *view_of(op, k);
		v[k].segment = yk_gpu_mark_of(k);
		v[k].offset = 0;
	}
	drop_tables(r);
	const struct yk_gpu_list last = l->launch;
	l->launch = l->spare;
	l->spare = last;
	l->launch.n = l->arg.n = l->number.n = l->data.n = 0;
	r->err = 0;
	r->placed = false;
	r->bind = NULL;
	r->report.op = NULL;
	r->bound = bound ? op : NULL;
	r->op = *op;
	r->op.out = v;
	r->op.in = v + op->nout;
	r->op.workspace =
		(struct yoke_view){ .segment = yk_gpu_mark_of(n), .dtype = yoke_u8, .rank = 1 };
	int err = r->kind->record(r, &r->op, r->impl);
	err = err ? err : r->err;
	yk_gpu_abort_launch(r);
	drop_kernels(&l->spare);
	free(v);
	r->op.out = r->op.in = NULL;
	r->bound = NULL;
	return err;
}

int yk_gpu_record_new(struct yk_gpu_device *d, const struct yk_gpu_op *kind,
		      const struct yoke_op *op, uint32_t impl, struct yk_gpu_record **to)
{
	struct yk_gpu_record *r = calloc(1, sizeof *r);

	if (!r || !(r->launches = calloc(1, sizeof *r->launches))) {
		free(r);
		return yk_gpu_error(YOKE_ENOMEM, "no memory for an op's launches");
	}
	r->device = d;
	r->kind = kind;
	r->impl = impl;
	int err = record(r, op, false);
	if (err) {
		yk_gpu_record_free(r);
		return err;
	}
	*to = r;
	return 0;
}

void yk_gpu_record_free(struct yk_gpu_record *r)
{
	struct yk_gpu_launches *l = r->launches;

	drop_tables(r);
	drop_kernels(&l->launch);
	free(l->table.at);
	free(l->launch.at);
	free(l->spare.at);
	free(l->arg.at);
	free(l->number.at);
	free(l->data.at);
	free(l->place);
	free(l);
	free(r);
}

void *yk_gpu_record_largest(const struct yk_gpu_record *r, size_t *group)
{
	const struct yk_gpu_launch *l = r->launches->launch.at, *best = NULL;
	size_t max = 0;

	for (size_t i = 0; i < r->launches->launch.n; i++) {
		size_t items = 1;
		for (uint32_t k = 0; k < l[i].dims; k++)
			items *= l[i].items[k];
		if (l[i].kernel && items > max) {
			max = items;
			best = &l[i];
		}
	}
	*group = best ? 1 : 0;
	for (uint32_t k = 0; best && k < best->dims; k++)
		*group *= best->group[k];
	return best ? best->kernel : NULL;
}

// ---- runs ----

// True if the operands are at the addresses for which the launches were recorded.
static bool same_places(const struct yk_gpu_record *r, const struct yoke_op *op)
{
	const struct yk_gpu_position *p = r->launches->place;

	for (uint32_t k = 0; p && k < views_of(op); k++)
		if (p[k].segment != view_of(op, k)->segment ||
		    p[k].offset != view_of(op, k)->offset)
			return false;
	return p;
}

static int record_here(struct yk_gpu_record *r, const struct yoke_op *op)
{
	const uint32_t n = views_of(op);
	struct yk_gpu_launches *l = r->launches;
	int err;

	free(l->place);
	l->place = NULL;
	if ((err = record(r, op, true)) || !r->placed)
		return err;
	if (!(l->place = malloc((n + 1) * sizeof *l->place)))
		return 0; // will be recorded again at the next run
	for (uint32_t k = 0; k < n; k++)
		l->place[k] =
			(struct yk_gpu_position){ view_of(op, k)->segment, view_of(op, k)->offset };
	return 0;
}

// Per-run values that launches use.
struct run {
	struct yk_gpu_queue *queue;
	struct yk_gpu_record *record;
	const struct yoke_op *op;
	struct yoke_view part;
	uint64_t slot;
};

static const struct yoke_view *operand(const struct run *x, uint32_t k)
{
	const uint32_t n = views_of(x->op);

	return k < n ? view_of(x->op, k) : k == n ? &x->op->workspace : &x->part;
}

static int set_arg(const struct run *x, void *kernel, struct yk_gpu_arg *a)
{
	const struct yk_gpu_list *data = &x->record->launches->data;
	uint64_t word = a->word;
	size_t bytes = sizeof word;
	void *buffer = NULL;

	switch (a->kind) {
	case YK_GPU_ARG_BYTES:
		return yk_gpu_driver.arg(kernel, a->index, a->operand,
					 (const char *)data->at + word);
	case YK_GPU_ARG_OFFSET: word += operand(x, a->operand)->offset; break;
	case YK_GPU_ARG_SLOT: word = x->slot; break;
	case YK_GPU_ARG_SEGMENT:
		buffer = ((struct yk_gpu_segment *)operand(x, a->operand)->segment)->buffer;
		break;
	case YK_GPU_ARG_SLOTS: buffer = yk_gpu_report_slots(x->queue); break;
	}
	if (buffer) {
		word = (uintptr_t)buffer; // a pointer argument is passed as its bytes
		bytes = sizeof buffer;
	}
	if (a->set && a->now == word)
		return 0;
	a->now = word;
	const int code = yk_gpu_driver.arg(kernel, a->index, bytes, &word);
	a->set = !code;
	return code;
}

// "512x16"
static char *sizes_text(char to[64], uint32_t dims, const size_t *size)
{
	int n = 0;
	for (uint32_t i = 0; i < dims; i++)
		n += snprintf(to + n, 64 - (size_t)n, "%s%zu", i ? "x" : "", size[i]);
	return to;
}

static int launch_failed(const struct yk_gpu_queue *q, const struct yk_gpu_launch *l, int code)
{
	char call[300], sizes[2][64];

	snprintf(call, sizeof call, "%.30s of %.60s, %s work items in groups of %s",
		 yk_gpu_driver.launch_call, l->name, sizes_text(sizes[0], l->dims, l->items),
		 sizes_text(sizes[1], l->dims, l->group));
	return yk_gpu_fail(q->device, call, code);
}

static int launch(const struct run *x, const struct yk_gpu_launch *l)
{
	struct yk_gpu_arg *a = (struct yk_gpu_arg *)x->record->launches->arg.at + l->arg;
	struct yk_gpu_queue *q = x->queue;
	int code;

	for (size_t i = 0; i < l->args; i++)
		if ((code = set_arg(x, l->kernel, &a[i])))
			return yk_gpu_arg_failed(q->device, a[i].index, l->name, code);
	code = yk_gpu_driver.launch(q, l->kernel, l->dims, l->items, l->group[0] ? l->group : NULL);
	if (code)
		return launch_failed(q, l, code);
	// a flush that fails here fails again at the next event, where the error is returned
	if (++q->launches % FLUSH == 0)
		yk_gpu_driver.flush(q->queue);
	return 0;
}

// Gives the tables of a recorded run to the graph; the next run creates new ones.
static int move_tables_to_graph(struct yk_gpu_queue *q, struct yk_gpu_record *r)
{
	struct yk_gpu_launches *l = r->launches;

	if (!yk_gpu_graph_adopt(q, l->table.at, l->table.n))
		return yk_gpu_error(YOKE_ENOMEM, "no memory for a graph's record");
	l->table.n = 0;
	r->placed = true;
	free(l->place);
	l->place = NULL;
	return 0;
}

int yk_gpu_record_run(struct yk_gpu_queue *q, struct yk_gpu_record *r, const struct yoke_op *op)
{
	struct yk_gpu_launches *l = r->launches;
	struct run x = { .queue = q, .record = r, .op = op };
	int err = 0;

	if (r->op.alias_mask != op->alias_mask || (r->placed && !same_places(r, op)))
		err = record_here(r, op);
	if (!err && r->bind)
		err = r->bind(op, &x.part);
	if (!err && l->launch.n && r->report.op) {
		r->report.step = op->id;
		err = yk_gpu_report_slot(q, &r->report, &x.slot);
	}
	const struct yk_gpu_number_at *number = l->number.at;
	for (size_t i = 0; i < l->number.n; i++) {
		const struct yk_gpu_number n = yk_gpu_number_of(operand(&x, number[i].operand), 0);
		memcpy((char *)l->data.at + number[i].at, &n, sizeof n);
	}
	// a buffer created since may have the same pointer as one freed since
	const uint64_t released = __atomic_load_n(&r->device->released, __ATOMIC_ACQUIRE);
	for (size_t i = 0; i < l->arg.n && l->released != released; i++)
		((struct yk_gpu_arg *)l->arg.at)[i].set = false;
	l->released = released;
	const struct yk_gpu_launch *all = l->launch.at;
	for (size_t i = 0; i < l->launch.n && !err; i++)
		err = all[i].call ? all[i].call(q, op, (const char *)l->data.at + all[i].arg) :
				    launch(&x, &all[i]);
	return err || !q->graph || !l->table.n ? err : move_tables_to_graph(q, r);
}
