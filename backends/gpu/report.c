// SPDX-License-Identifier: Apache-2.0
// Reports: kernels record values that an op must reject; the error is returned later, by the event
// after the op. A queue has slots in a small buffer, one per op that may report. An event mark
// reads and clears them, in order with the kernels. The reports belong to the queue until an event
// at or after that mark has completed, which then fails with the first error.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

#define SLOTS 512 // more than a graph of a large model's layers has
// Batches whose slots are read into pinned memory, so that the copy is asynchronous. Further
// batches use ordinary memory, for which some drivers copy synchronously.
#define PINNED 8

// As in cl/report.cl; all bits set: nothing reported.
struct slot {
	uint32_t first, count; // the smallest rejected position; count - 1
	int64_t value, max;    // the value is outside 0..max, for kinds with a value
};

// The ops enqueued between two reads of the slots.
struct batch {
	struct batch *next;
	uint64_t number; // number of the read
	unsigned n;
	struct slot *slot; // n slots, in `pinned` or allocated; NULL before they are read
	struct yk_gpu_report what[SLOTS];
};

struct yk_gpu_reports {
	struct yk_gpu_device *device;
	pthread_mutex_t lock; // guards `read` and `taken`; the rest belongs to the queue
	void *slots;          // created on first use
	struct batch *open;
	struct batch *read, **end; // oldest first
	uint64_t number;
	void *area; // pinned buffer of PINNED batches, created at the first read
	struct slot *pinned;
	unsigned taken; // bit i: batch i of `area` is in use
};

int yk_gpu_reports_new(struct yk_gpu_device *d, struct yk_gpu_reports **to)
{
	struct yk_gpu_reports *r = calloc(1, sizeof *r);

	if (!r || pthread_mutex_init(&r->lock, NULL)) {
		free(r);
		return yk_gpu_error(YOKE_ENOMEM, "no memory for a queue's reports");
	}
	r->device = d;
	r->end = &r->read;
	*to = r;
	return 0;
}

static bool is_pinned(const struct yk_gpu_reports *r, const struct slot *s)
{
	return r->pinned && s >= r->pinned && s < r->pinned + PINNED * SLOTS;
}

static struct slot *slots_new(struct yk_gpu_reports *r)
{
	struct slot *s = NULL;

	pthread_mutex_lock(&r->lock);
	for (int i = 0; i < PINNED && r->pinned && !s; i++)
		if (!(r->taken >> i & 1)) {
			r->taken |= 1u << i;
			s = r->pinned + i * SLOTS;
		}
	pthread_mutex_unlock(&r->lock);
	return s ? s : malloc(SLOTS * sizeof *s);
}

static void slots_free(struct yk_gpu_reports *r, struct slot *s)
{
	if (!is_pinned(r, s)) {
		free(s);
		return;
	}
	pthread_mutex_lock(&r->lock);
	r->taken &= ~(1u << (s - r->pinned) / SLOTS);
	pthread_mutex_unlock(&r->lock);
}

static void free_list(struct yk_gpu_reports *r, struct batch *b)
{
	while (b) {
		struct batch *next = b->next;
		slots_free(r, b->slot);
		free(b);
		b = next;
	}
}

void yk_gpu_reports_free(struct yk_gpu_reports *r)
{
	if (r->slots)
		yk_gpu_buffer_free(r->device, r->slots, NULL);
	free_list(r, r->open);
	free_list(r, r->read);
	if (r->area)
		yk_gpu_buffer_free(r->device, r->area, r->pinned);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

static int clear_slots(struct yk_gpu_queue *q, void *slots)
{
	const uint32_t none = UINT32_MAX;

	q->busy = true;
	return yk_gpu_driver.fill(q, slots, 0, SLOTS * sizeof(struct slot), &none, sizeof none);
}

int yk_gpu_reports_ready(struct yk_gpu_queue *q, struct yk_gpu_reports *r)
{
	void *host = NULL;
	int err = yk_gpu_driver.buffer_new(q->device, YOKE_SEGMENT_DEVICE,
					   SLOTS * sizeof(struct slot), NULL, &r->slots, &host);

	return err ? err : clear_slots(q, r->slots);
}

// Enqueues reading the slots into a batch, which the queue then owns, and clearing them.
static int read_slots(struct yk_gpu_queue *q, void *slots, struct batch *b)
{
	struct yk_gpu_reports *r = q->reports;
	void *host = NULL;
	int err = r->area ? 0 :
			    yk_gpu_driver.buffer_new(q->device, YOKE_SEGMENT_HOST,
						     PINNED * SLOTS * sizeof(struct slot), NULL,
						     &r->area, &host);

	if (!err && host)
		r->pinned = host;
	if (!err && !(b->slot = slots_new(r)))
		err = yk_gpu_error(YOKE_ENOMEM, "no memory for reports");
	if (!err && (err = yk_gpu_driver.get(q, slots, 0, b->slot, b->n * sizeof *b->slot))) {
		slots_free(r, b->slot);
		b->slot = NULL;
	}
	if (err)
		return err;
	b->number = ++r->number;
	if (r->open == b)
		r->open = NULL;
	pthread_mutex_lock(&r->lock);
	*r->end = b;
	r->end = &b->next;
	pthread_mutex_unlock(&r->lock);
	return clear_slots(q, slots);
}

int yk_gpu_reports_replay(struct yk_gpu_queue *q, struct yk_gpu_reports *graphs)
{
	const struct batch *what = graphs->open;
	struct batch *b = what ? malloc(sizeof *b) : NULL;

	if (!what)
		return 0;
	if (!b)
		return yk_gpu_error(YOKE_ENOMEM, "no memory for reports");
	*b = *what;
	b->next = NULL;
	int err = read_slots(q, graphs->slots, b);
	if (err && b->number == 0)
		free(b);
	return err;
}

int yk_gpu_report_slot(struct yk_gpu_queue *q, const struct yk_gpu_report *what,
		       uint64_t *slot)
{
	struct yk_gpu_reports *r = q->reports;
	int err = r->slots ? 0 : yk_gpu_reports_ready(q, r);

	if (!err && r->open && r->open->n == SLOTS)
		err = q->graph ?
			      yk_gpu_error(YOKE_EUNSUPPORTED,
					   "a graph with more than %d ops that can report errors",
					   SLOTS) :
			      read_slots(q, r->slots, r->open);
	if (err)
		return err;
	if (!r->open && !(r->open = calloc(1, sizeof *r->open)))
		return yk_gpu_error(YOKE_ENOMEM, "no memory for reports");
	*slot = r->open->n;
	r->open->what[r->open->n++] = *what;
	return 0;
}

void *yk_gpu_report_slots(const struct yk_gpu_queue *q)
{
	return q->reports->slots;
}

int yk_gpu_report_length(struct yk_gpu_record *r, const char *op, const struct yoke_view *v,
			 int64_t max)
{
	const struct yk_gpu_build b = { .file = "report_length.cl", .name = "report_length" };
	const size_t one = 1;
	struct yk_gpu_entry *kernel;
	int err = yk_gpu_kernel_file(r->device, &b, &kernel);

	if (err)
		return err;
	yk_gpu_reports(r, YK_GPU_LENGTH, op, max);
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view(r, v);
	yk_gpu_arg_word(r, v->rank ? (uint64_t)v->dims[0] : 1);
	yk_gpu_arg_word(r, v->rank ? (uint64_t)v->strides[0] : 0);
	yk_gpu_arg_word(r, (uint64_t)max);
	yk_gpu_arg_slot(r);
	return yk_gpu_launch(r, 1, &one, &one, "report_length");
}

int yk_gpu_reports_mark(struct yk_gpu_queue *q, uint64_t *number)
{
	struct yk_gpu_reports *r = q->reports;
	int err = r->open ? read_slots(q, r->slots, r->open) : 0;

	*number = r->number;
	return err;
}

static int report_error(const struct yk_gpu_report *what, const struct slot *s)
{
	char text[160];

	switch (what->kind) {
	case YK_GPU_INDEX:
		snprintf(text, sizeof text, "the index at position %u is not in 0..%lld",
			 s->first, (long long)what->max);
		break;
	case YK_GPU_START:
		snprintf(text, sizeof text, "start %lld of axis %u is not in 0..%lld",
			 (long long)s->value, s->first, (long long)s->max);
		break;
	case YK_GPU_LENGTH:
		snprintf(text, sizeof text, "%lld is not in 0..%lld", (long long)s->value,
			 (long long)s->max);
		break;
	case YK_GPU_CHAIN:
		snprintf(
			text, sizeof text,
			"in row %u z or an element of a, b or c is infinite or NaN, or z is an eigenvalue",
			s->first);
		break;
	case YK_GPU_GROUPS:
		snprintf(text, sizeof text,
			 "group %u begins at row %lld, which is not in %lld..%lld", s->first,
			 (long long)s->value, (long long)s->max, (long long)what->max);
		break;
	case YK_GPU_PAGES:
		snprintf(text, sizeof text,
			 "the row of query %u of %lld, or one of its pages, does not exist",
			 s->first, (long long)what->max);
		break;
	case YK_GPU_SEQUENCES:
		snprintf(
			text, sizeof text,
			"the steps, the labels or a target of sequence %u of %lld are out of range",
			s->first, (long long)what->max);
		break;
	default:
		snprintf(text, sizeof text, "element %u of %lld is not finite", s->first,
			 (long long)what->max);
	}
	return yk_gpu_error(YOKE_ERANGE, "%s (step %llu): %s", what->op,
			    (unsigned long long)what->step, text);
}

int yk_gpu_reports_check(struct yk_gpu_reports *r, uint64_t number)
{
	struct batch *list, **end;
	int err = 0;

	pthread_mutex_lock(&r->lock);
	for (end = &r->read; *end && (*end)->number <= number;)
		end = &(*end)->next;
	list = end == &r->read ? NULL : r->read;
	if (list) {
		r->read = *end;
		*end = NULL;
		if (!r->read)
			r->end = &r->read;
	}
	pthread_mutex_unlock(&r->lock);
	for (struct batch *b = list; b && !err; b = b->next)
		for (unsigned i = 0; i < b->n && !err; i++) {
			if (b->what[i].kind == YK_GPU_CHAIN && b->slot[i].count != UINT32_MAX)
				yk_gpu_host->promoted((uint64_t)b->slot[i].count + 1);
			if (b->slot[i].first != UINT32_MAX)
				err = report_error(&b->what[i], &b->slot[i]);
		}
	free_list(r, list);
	return err;
}
