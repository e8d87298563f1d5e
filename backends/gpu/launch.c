// SPDX-License-Identifier: Apache-2.0
// Builds the launches of an op while its family records them; see launch.h.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"
#include "launch_priv.h"

enum { ALIGN = 16 }; // alignment of items in `data`, in bytes

// Reserves room for `n` more elements. NULL: out of memory, with an error recorded.
static void *add(struct yk_gpu_record *r, struct yk_gpu_list *l, size_t n, size_t size)
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

static void add_arg(struct yk_gpu_record *r, enum yk_gpu_arg_kind kind, uint32_t operand,
		    uint64_t word)
{
	struct yk_gpu_arg *a = add(r, &r->launches->arg, 1, sizeof *a);

	if (a)
		*a = (struct yk_gpu_arg){ (uint8_t)kind, false, r->args++, operand, word, 0 };
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
	struct yk_gpu_list *data = &r->launches->data;
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

void yk_gpu_abort_launch(struct yk_gpu_record *r)
{
	if (r->kernel)
		yk_gpu_driver.kernel_free(r->kernel);
	r->kernel = NULL;
}

static void *spare(struct yk_gpu_record *r, const struct yk_gpu_entry *entry)
{
	struct yk_gpu_launch *l = r->launches->spare.at;

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
	yk_gpu_abort_launch(r);
	r->entry = entry;
	r->args = 0;
	r->args_at = r->launches->arg.n;
	r->code = 0;
	if ((r->kernel = spare(r, entry)))
		return;
	int err = yk_gpu_kernel_new(r->device, entry->program, &entry->build, &r->kernel);
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
		add_arg(r, YK_GPU_ARG_BYTES, (uint32_t)r->bytes, r->bytes_at);
	}
	struct yk_gpu_number_at *n = add(r, &r->launches->number, 1, sizeof *n);
	if (n)
		*n = (struct yk_gpu_number_at){ r->bytes_at + at, operand_of(v->segment) };
}

void yk_gpu_arg_segment(struct yk_gpu_record *r, const struct yoke_view *v)
{
	add_arg(r, YK_GPU_ARG_SEGMENT, operand_of(v->segment), 0);
}

void yk_gpu_arg_offset(struct yk_gpu_record *r, const struct yoke_view *v)
{
	add_arg(r, YK_GPU_ARG_OFFSET, operand_of(v->segment), v->offset);
}

void yk_gpu_arg_view(struct yk_gpu_record *r, const struct yoke_view *v)
{
	yk_gpu_arg_segment(r, v);
	yk_gpu_arg_offset(r, v);
}

void yk_gpu_arg_view_or(struct yk_gpu_record *r, const struct yoke_view *v,
			const struct yoke_view *dummy)
{
	yk_gpu_arg_view(r, v->kind != YOKE_VIEW_NONE ? v : dummy);
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
	int err = yk_gpu_driver.buffer_new(r->device, YOKE_SEGMENT_DEVICE, n * sizeof *words, words,
					   own, &host);
	if (err)
		r->launches->table.n--;
	else
		*to = *own;
	return err;
}

void yk_gpu_arg_map(struct yk_gpu_record *r, const struct yoke_op *op,
		    const struct yoke_map_call *call)
{
	for (uint32_t i = 0; i < call->narg; i++) {
		const struct yoke_map_arg *a = &call->arg[i];
		if (a->kind == YOKE_MAP_ARG_WORD) {
			yk_gpu_arg_word(r, a->word);
			continue;
		}
		const struct yoke_view *v = a->operand < op->nout ? &op->out[a->operand] :
								    &op->in[a->operand - op->nout];
		if (a->kind == YOKE_MAP_ARG_SEGMENT)
			yk_gpu_arg_segment(r, v);
		else
			yk_gpu_arg_offset(r, v);
	}
}

void yk_gpu_arg_slot(struct yk_gpu_record *r)
{
	add_arg(r, YK_GPU_ARG_SLOTS, 0, 0);
	add_arg(r, YK_GPU_ARG_SLOT, 0, 0);
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

	part.segment = yk_gpu_mark_of(r->op.nout + r->op.nin + 1);
	return part;
}

const struct yoke_view *yk_gpu_bound(const struct yk_gpu_record *r, const struct yoke_view *v)
{
	const uint32_t k = operand_of(v->segment);

	return k < r->op.nout ? &r->bound->out[k] : &r->bound->in[k - r->op.nout];
}

int yk_gpu_arg_failed(const struct yk_gpu_device *d, uint32_t index, const char *name, int code)
{
	char call[100];

	snprintf(call, sizeof call, "%.30s %u of %.60s", yk_gpu_driver.arg_call, index, name);
	return yk_gpu_fail(d, call, code);
}

int yk_gpu_launch(struct yk_gpu_record *r, uint32_t dims, const size_t *items, const size_t *group,
		  const char *name)
{
	if (r->code)
		return yk_gpu_arg_failed(r->device, r->bad, name, r->code);
	struct yk_gpu_launch *l = r->err ? NULL : add(r, &r->launches->launch, 1, sizeof *l);
	if (!l)
		return r->err;
	*l = (struct yk_gpu_launch){ .entry = r->entry,
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
	struct yk_gpu_launch *l = add(r, &r->launches->launch, 1, sizeof *l);

	if (l)
		*l = (struct yk_gpu_launch){ .call = call, .arg = at };
	return r->err;
}
