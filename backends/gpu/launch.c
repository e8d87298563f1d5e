// SPDX-License-Identifier: Apache-2.0
// Records an op's launches once and submits them at every run; see launch.h.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ext.h"
#include "launch.h"
#include "report.h"
#include "rows.h"

// Some drivers start no work before a flush. Flushing lets the device work while the rest of a step
// is enqueued.
enum { FLUSH = 16 }; // launches between two flushes

enum { ALIGN = 16 }; // alignment of items in `data`, in bytes

enum arg_kind {
	BYTES,   // bytes stored in `data`
	SEGMENT, // buffer of an operand's segment
	OFFSET,  // offset of an operand, plus `word`
	SLOTS,   // the buffer of the queue's reports
	SLOT     // the op's slot number in that buffer
};

// An argument that differs between runs. Constant arguments are set in the kernel when its launch
// is recorded.
struct arg {
	uint8_t kind;
	bool set;         // the kernel's argument currently is `now`
	uint32_t index;
	uint32_t operand; // BYTES: number of bytes
	uint64_t word;    // BYTES: their offset in `data`
	uint64_t now;
};

// Each launch owns a kernel object, because setting an argument of a driver's kernel takes longer
// than finding that it is unchanged.
struct launch {
	const struct yk_gpu_entry *entry;
	void *kernel;
	yk_gpu_call_fn *call; // called instead of a kernel; its data are at offset `arg`
	const char *name;
	size_t arg, args;
	uint32_t dims;
	size_t items[3], group[3];
};

// A struct yk_gpu_number in `data` that holds the value of a SCALAR operand.
struct number {
	size_t at;
	uint32_t operand;
};

struct list {
	void *at;
	size_t n, cap;
};

struct yk_gpu_launches {
	struct list launch, arg, number, data, table;
	struct list spare; // launches of the previous recording, whose kernels are reused
	uint64_t released; // the device's count when segments were last set
	// Addresses of the operands that the launches were recorded for, if they depend on them.
	struct place {
		const void *segment;
		uint64_t offset;
	} *place;
};

// ---- recording ----

// Reserves room for `n` more elements. NULL: out of memory, with an error recorded.
static void *add(struct yk_gpu_record *r, struct list *l, size_t n, size_t size)
{
	if (l->n + n > l->cap) {
		const size_t cap = 2 * (l->n + n);
		void *more = realloc(l->at, cap * size);
		if (!more) {
			r->err = yk_gpu_error(YOKE_ENOMEM, "no memory for an op's launches");
			return NULL;
		}
		l->at = more;
		l->cap = cap;
	}
	l->n += n;
	return (char *)l->at + (l->n - n) * size;
}

static void add_arg(struct yk_gpu_record *r, enum arg_kind kind, uint32_t operand, uint64_t word)
{
	struct arg *a = add(r, &r->launches->arg, 1, sizeof *a);

	if (a)
		*a = (struct arg){ (uint8_t)kind, false, r->args++, operand, word, 0 };
}

// Sets an argument that is the same for all runs.
static void set_now(struct yk_gpu_record *r, size_t bytes, const void *value)
{
	const uint32_t index = r->args++;

	if (!r->kernel || r->code)
		return;
	r->code = yk_gpu_driver.arg(r->kernel, index, bytes, value);
	r->bad = index;
}

// Copies bytes to `data` and returns their offset.
static size_t add_bytes(struct yk_gpu_record *r, const void *from, size_t bytes)
{
	struct list *data = &r->launches->data;
	const size_t at = data->n;
	char *to = add(r, data, (bytes + ALIGN - 1) / ALIGN * ALIGN, 1);

	if (to)
		memcpy(to, from, bytes);
	return at;
}

// The operand's number, encoded in the marker segment that its views have during recording.
static uint32_t operand_of(const void *segment)
{
	return (uint32_t)(uintptr_t)segment - 1;
}

static void *mark_of(uint32_t operand)
{
	return (void *)(uintptr_t)(operand + 1);
}

// Frees the kernel of a launch that was begun but not completed.
static void drop_begun(struct yk_gpu_record *r)
{
	if (r->kernel)
		yk_gpu_driver.kernel_free(r->kernel);
	r->kernel = NULL;
}

static void *spare(struct yk_gpu_record *r, const struct yk_gpu_entry *entry)
{
	struct launch *l = r->launches->spare.at;

	for (size_t i = 0; i < r->launches->spare.n; i++)
		if (l[i].entry == entry && l[i].kernel) {
			void *kernel = l[i].kernel;
			l[i].kernel = NULL;
			return kernel;
		}
	return NULL;
}

void yk_gpu_begin(struct yk_gpu_record *r, const struct yk_gpu_entry *entry)
{
	drop_begun(r);
	r->entry = entry;
	r->args = 0;
	r->args_at = r->launches->arg.n;
	r->code = 0;
	if ((r->kernel = spare(r, entry)))
		return;
	int err = yk_gpu_driver.kernel_new(r->device, entry->program, entry->build.name, &r->kernel);
	if (err)
		r->err = err;
}

void yk_gpu_arg_word(struct yk_gpu_record *r, uint64_t word)
{
	set_now(r, sizeof word, &word);
}

void yk_gpu_arg_struct(struct yk_gpu_record *r, const void *from, size_t bytes)
{
	r->from = from;
	r->bytes = bytes;
	set_now(r, bytes, from);
}

void yk_gpu_arg_number(struct yk_gpu_record *r, size_t at, const struct yoke_view *v)
{
	if (v->kind != YOKE_VIEW_SCALAR)
		return;
	if (r->from) { // so far it was recorded as constant: make it a per-run argument
		r->bytes_at = add_bytes(r, r->from, r->bytes);
		r->from = NULL;
		r->args--;
		add_arg(r, BYTES, (uint32_t)r->bytes, r->bytes_at);
	}
	struct number *n = add(r, &r->launches->number, 1, sizeof *n);
	if (n)
		*n = (struct number){ r->bytes_at + at, operand_of(v->segment) };
}

void yk_gpu_arg_segment(struct yk_gpu_record *r, const struct yoke_view *v)
{
	add_arg(r, SEGMENT, operand_of(v->segment), 0);
}

void yk_gpu_arg_offset(struct yk_gpu_record *r, const struct yoke_view *v)
{
	add_arg(r, OFFSET, operand_of(v->segment), v->offset);
}

void yk_gpu_arg_view(struct yk_gpu_record *r, const struct yoke_view *v)
{
	yk_gpu_arg_segment(r, v);
	yk_gpu_arg_offset(r, v);
}

void yk_gpu_arg_view_or(struct yk_gpu_record *r, const struct yoke_view *v,
			const struct yoke_view *dummy)
{
	yk_gpu_arg_view(r, yk_gpu_present(v) ? v : dummy);
}

void yk_gpu_arg_mem(struct yk_gpu_record *r, void *mem)
{
	set_now(r, sizeof mem, &mem);
}

int yk_gpu_table(struct yk_gpu_record *r, const uint64_t *words, size_t n, void **to)
{
	void **own = add(r, &r->launches->table, 1, sizeof *own), *host = NULL;

	if (!own)
		return r->err;
	int err = yk_gpu_driver.buffer_new(r->device, YOKE_SEGMENT_DEVICE, n * sizeof *words, words, own, &host);
	if (err)
		r->launches->table.n--;
	else
		*to = *own;
	return err;
}

void yk_gpu_arg_map(struct yk_gpu_record *r, const struct yoke_map_call *call)
{
	for (uint32_t i = 0; i < call->narg; i++) {
		const struct yoke_map_arg *a = &call->arg[i];
		if (a->kind == YOKE_MAP_ARG_WORD)
			yk_gpu_arg_word(r, a->word);
		else
			add_arg(r, a->kind == YOKE_MAP_ARG_SEGMENT ? SEGMENT : OFFSET, a->operand, 0);
	}
}

void yk_gpu_arg_slot(struct yk_gpu_record *r)
{
	add_arg(r, SLOTS, 0, 0);
	add_arg(r, SLOT, 0, 0);
}

void yk_gpu_reports(struct yk_gpu_record *r, int kind, const char *op, int64_t max)
{
	r->report = (struct yk_gpu_report){ .kind = kind, .op = op, .max = max };
}

void yk_gpu_workspace(struct yk_gpu_record *r, uint64_t bytes)
{
	r->workspace = bytes;
	if (bytes)
		r->op.workspace.kind = YOKE_VIEW_BUFFER;
}

struct yoke_view yk_gpu_part(const struct yk_gpu_record *r, const struct yoke_view *of)
{
	struct yoke_view part = *of;

	part.segment = mark_of(r->op.nout + r->op.nin + 1);
	return part;
}

const struct yoke_view *yk_gpu_bound(const struct yk_gpu_record *r, const struct yoke_view *v)
{
	const uint32_t k = operand_of(v->segment);

	return k < r->op.nout ? &r->bound->out[k] : &r->bound->in[k - r->op.nout];
}

static int arg_failed(const struct yk_gpu_device *d, uint32_t index, const char *name, int code)
{
	char call[100];

	snprintf(call, sizeof call, "%.30s %u of %.60s", yk_gpu_driver.arg_call, index, name);
	return yk_gpu_fail(d, call, code);
}

int yk_gpu_launch(struct yk_gpu_record *r, uint32_t dims, const size_t *items, const size_t *group,
		  const char *name)
{
	if (r->code)
		return arg_failed(r->device, r->bad, name, r->code);
	struct launch *l = r->err ? NULL : add(r, &r->launches->launch, 1, sizeof *l);
	if (!l)
		return r->err;
	*l = (struct launch){ .entry = r->entry,
			      .kernel = r->kernel,
			      .name = name,
			      .arg = r->args_at,
			      .args = r->launches->arg.n - r->args_at,
			      .dims = dims };
	r->kernel = NULL;
	memcpy(l->items, items, dims * sizeof *items);
	memcpy(l->group, group, dims * sizeof *group);
	return 0;
}

int yk_gpu_call(struct yk_gpu_record *r, yk_gpu_call_fn *call, const void *data, size_t bytes)
{
	const size_t at = add_bytes(r, data, bytes);
	struct launch *l = add(r, &r->launches->launch, 1, sizeof *l);

	if (l)
		*l = (struct launch){ .call = call, .arg = at };
	return r->err;
}

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
	struct list *l = &r->launches->table;

	while (l->n)
		yk_gpu_buffer_free(r->device, ((void **)l->at)[--l->n], NULL);
}

static void drop_kernels(struct list *l)
{
	const struct launch *all = l->at;

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
		v[k].segment = mark_of(k);
		v[k].offset = 0;
	}
	drop_tables(r);
	const struct list last = l->launch;
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
	r->op.workspace = (struct yoke_view){ .segment = mark_of(n), .dtype = yoke_u8, .rank = 1 };
	int err = r->kind->record(r, &r->op, r->impl);
	err = err ? err : r->err;
	drop_begun(r);
	drop_kernels(&l->spare);
	free(v);
	r->op.out = r->op.in = NULL;
	r->bound = NULL;
	return err;
}

int yk_gpu_record_new(struct yk_gpu_device *d, const struct yk_gpu_op *kind, const struct yoke_op *op,
		      uint32_t impl, struct yk_gpu_record **to)
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
	const struct launch *l = r->launches->launch.at, *best = NULL;
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
	const struct place *p = r->launches->place;

	for (uint32_t k = 0; p && k < views_of(op); k++)
		if (p[k].segment != view_of(op, k)->segment || p[k].offset != view_of(op, k)->offset)
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
		l->place[k] = (struct place){ view_of(op, k)->segment, view_of(op, k)->offset };
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

static int set_arg(const struct run *x, void *kernel, struct arg *a)
{
	const struct list *data = &x->record->launches->data;
	uint64_t word = a->word;
	size_t bytes = sizeof word;
	void *buffer = NULL;

	switch (a->kind) {
	case BYTES: return yk_gpu_driver.arg(kernel, a->index, a->operand, (const char *)data->at + word);
	case OFFSET: word += operand(x, a->operand)->offset; break;
	case SLOT: word = x->slot; break;
	case SEGMENT: buffer = ((struct yk_gpu_segment *)operand(x, a->operand)->segment)->buffer; break;
	case SLOTS: buffer = yk_gpu_report_slots(x->queue); break;
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

static int launch_failed(const struct yk_gpu_queue *q, const struct launch *l, int code)
{
	char call[300], sizes[2][64];

	snprintf(call, sizeof call, "%.30s of %.60s, %s work items in groups of %s", yk_gpu_driver.launch_call,
		 l->name, sizes_text(sizes[0], l->dims, l->items),
		 sizes_text(sizes[1], l->dims, l->group));
	return yk_gpu_fail(q->device, call, code);
}

static int launch(const struct run *x, const struct launch *l)
{
	struct arg *a = (struct arg *)x->record->launches->arg.at + l->arg;
	struct yk_gpu_queue *q = x->queue;
	int code;

	for (size_t i = 0; i < l->args; i++)
		if ((code = set_arg(x, l->kernel, &a[i])))
			return arg_failed(q->device, a[i].index, l->name, code);
	code = yk_gpu_driver.launch(q, l->kernel, l->dims, l->items, l->group[0] ? l->group : NULL);
	if (code)
		return launch_failed(q, l, code);
	// a flush that fails here fails again at the next event, where the error is returned
	if (++q->launches % FLUSH == 0)
		yk_gpu_driver.flush(q->queue);
	return 0;
}

// Gives the tables of a recorded run to the graph; the next run creates new ones.
static int give_tables(struct yk_gpu_queue *q, struct yk_gpu_record *r)
{
	struct yk_gpu_launches *l = r->launches;

	if (!yk_gpu_graph_keep(q, l->table.at, l->table.n))
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
	const struct number *number = l->number.at;
	for (size_t i = 0; i < l->number.n; i++) {
		const struct yk_gpu_number n = yk_gpu_number_of(operand(&x, number[i].operand), 0);
		memcpy((char *)l->data.at + number[i].at, &n, sizeof n);
	}
	// a buffer created since may have the same pointer as one freed since
	const uint64_t released = __atomic_load_n(&r->device->released, __ATOMIC_ACQUIRE);
	for (size_t i = 0; i < l->arg.n && l->released != released; i++)
		((struct arg *)l->arg.at)[i].set = false;
	l->released = released;
	const struct launch *all = l->launch.at;
	for (size_t i = 0; i < l->launch.n && !err; i++)
		err = all[i].call ? all[i].call(q, op, (const char *)l->data.at + all[i].arg) :
				    launch(&x, &all[i]);
	return err || !q->graph || !l->table.n ? err : give_tables(q, r);
}
