// SPDX-License-Identifier: Apache-2.0
// A template for new backends: one device in host memory that adds and multiplies matrices in f32.
// All other ops run on the CPU backend. doc/plugins.md explains it section by section.
//
// It is minimal but complete: a driver for real hardware additionally enqueues the work on the
// device instead of doing it immediately.
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "yoke-plugin.h"

static const struct yoke_host *host;

// Records the message and returns the code: `return fail(YOKE_EINVAL, "...");`
static int fail(int code, const char *text)
{
	host->error(code, text);
	return code;
}

// ---- 1. devices ----

static int probe(uint32_t *n)
{
	*n = 1;
	return 0;
}

static int device_info(uint32_t device, struct yoke_device_info *i)
{
	if (device != 0)
		return fail(YOKE_ENODEV, "skeleton has one device");
	// The core has zeroed the struct; 0 means "nothing special".
	i->kind = YOKE_DEVICE_OTHER; // never chosen by default
	i->flags = YOKE_DEVICE_UNIFIED;
	i->units = 1;
	i->memory = (uint64_t)1 << 30;
	i->max_segment = (uint64_t)1 << 28;
	i->align = 64;
	strcpy(i->name, "skeleton in host memory");
	strcpy(i->vendor, "yoke");
	return 0;
}

// ---- 2. segments: large blocks of memory, which the core's pool subdivides ----

struct segment {
	char *base;
	uint64_t bytes;
};

static int segment_new(uint32_t device, int kind, uint64_t bytes, void **to)
{
	(void)device, (void)kind; // pinned staging memory is not special here
	struct segment *s = malloc(sizeof *s);
	if (!s || posix_memalign((void **)&s->base, 64, bytes)) {
		free(s);
		return fail(YOKE_ENOMEM, "no host memory for a segment");
	}
	s->bytes = bytes;
	*to = s;
	return 0;
}

static void segment_free(uint32_t device, void *segment)
{
	struct segment *s = segment;
	(void)device;
	free(s->base);
	free(s);
}

// Devices whose memory has no host address return NULL.
static void *segment_host(void *segment)
{
	return ((struct segment *)segment)->base;
}

// ---- 3. queues: all work is done before a call returns, so a queue has no state ----

static int queue_new(uint32_t device, int kind, void **to)
{
	(void)device, (void)kind;
	*to = &host; // any non-NULL address
	return 0;
}

static void queue_free(void *queue)
{
	(void)queue;
}

static int put(void *queue, void *segment, uint64_t offset, const void *from, uint64_t bytes)
{
	struct segment *s = segment;
	(void)queue;
	memcpy(s->base + offset, from, bytes);
	return 0;
}

static int get(void *queue, void *segment, uint64_t offset, void *to, uint64_t bytes)
{
	struct segment *s = segment;
	(void)queue;
	memcpy(to, s->base + offset, bytes);
	return 0;
}

static int copy(void *queue, void *to, uint64_t to_offset, void *from, uint64_t from_offset,
		uint64_t bytes)
{
	struct segment *t = to, *f = from;
	(void)queue;
	memmove(t->base + to_offset, f->base + from_offset, bytes);
	return 0;
}

// ---- 4. events: NULL is an event that has already completed, the only kind needed here ----

static int event_mark(void *queue, void **event)
{
	(void)queue;
	*event = NULL;
	return 0;
}

static int event_after(void *queue, void *event)
{
	(void)queue, (void)event;
	return 0;
}

static int event_done(void *event)
{
	(void)event;
	return 1;
}

static int event_wait(void *event)
{
	(void)event;
	return 0;
}

static void event_free(void *event)
{
	(void)event;
}

// ---- 5. ops: which are supported, and how they are computed ----

static bool is_f32(const struct yoke_view *v)
{
	return v->kind == YOKE_VIEW_BUFFER && v->dtype == yoke_f32;
}

// First element of an operand. For run only: in can, operands have no memory yet.
static float *data(const struct yoke_view *v)
{
	return (float *)(void *)(((struct segment *)v->segment)->base + v->offset);
}

// True if the map program is out = in 0 + in 1 (or in 0 + in 0), and nothing else.
static bool is_add(const struct yoke_op *op)
{
	const struct yoke_map *m = op->map;
	if (!m || m->nout != 1 || m->nconst || op->nout != 1 || op->nin != m->nin ||
	    m->ninsn != m->nin + 1)
		return false;
	const struct yoke_insn *add = &m->insn[m->out[0]];
	if (add->op != YOKE_MAP_ADD || add->dtype != yoke_f32)
		return false;
	return m->insn[add->a].op == YOKE_MAP_INPUT && m->insn[add->b].op == YOKE_MAP_INPUT &&
	       m->insn[add->a].dtype == yoke_f32 && m->insn[add->b].dtype == yoke_f32;
}

static uint64_t can(uint32_t device, const struct yoke_op *op)
{
	(void)device;
	for (uint32_t i = 0; i < op->nin; i++)
		if (!is_f32(&op->in[i]))
			return 0;
	for (uint32_t i = 0; i < op->nout; i++)
		if (!is_f32(&op->out[i]))
			return 0;
	switch (op->code) {
	case YOKE_OP_MAP:
		return is_add(op);
	case YOKE_OP_CONTRACT:
		return !op->map && op->nin == 2 && op->nout == 1;
	}
	return 0; // also for op codes that this plugin does not know
}

// Advances to the next index of the first `rank` axes, row-major; false after the last.
static bool next(int64_t *index, const int64_t *dims, int rank)
{
	for (int k = rank - 1; k >= 0; k--) {
		if (++index[k] < dims[k])
			return true;
		index[k] = 0;
	}
	return false;
}

// Offset of an index in elements; a broadcast axis has stride 0.
static int64_t at(const struct yoke_view *v, const int64_t *index, int rank)
{
	int64_t sum = 0;
	for (int k = 0; k < rank; k++)
		sum += index[k] * v->strides[k];
	return sum;
}

static bool empty(const int64_t *dims, int rank)
{
	for (int k = 0; k < rank; k++)
		if (!dims[k])
			return true;
	return false;
}

// ---- 6. handles: precompute what follows from an op's shapes, strides and program ----

struct handle {
	int (*run)(const struct handle *, const struct yoke_op *);
	uint32_t a, b; // an addition's operands
};

static int run_add(const struct handle *h, const struct yoke_op *op)
{
	const struct yoke_view *a = &op->in[h->a], *b = &op->in[h->b], *y = op->out;
	const float *pa = data(a), *pb = data(b);
	float *py = data(y);
	int64_t i[YOKE_MAX_RANK] = { 0 };

	if (empty(op->dims, op->rank))
		return 0;
	do
		py[at(y, i, op->rank)] = pa[at(a, i, op->rank)] + pb[at(b, i, op->rank)];
	while (next(i, op->dims, op->rank));
	return 0;
}

// a [..,M,K] b [..,K,N] -> y [..,M,N]
static int run_contract(const struct handle *h, const struct yoke_op *op)
{
	const struct yoke_view *a = &op->in[0], *b = &op->in[1], *y = op->out;
	int lead = y->rank - 2, m = lead, n = lead + 1; // axes of y; a's are m and k, b's k and n
	int64_t depth = a->dims[lead + 1], i[YOKE_MAX_RANK] = { 0 };

	(void)h;
	if (empty(y->dims, y->rank))
		return 0;
	do {
		const float *pa = data(a) + at(a, i, lead) + i[m] * a->strides[lead];
		const float *pb = data(b) + at(b, i, lead) + i[n] * b->strides[lead + 1];
		float sum = 0; // f32 sums for f32, in a fixed order
		for (int64_t k = 0; k < depth; k++)
			sum += pa[k * a->strides[lead + 1]] * pb[k * b->strides[lead]];
		data(y)[at(y, i, y->rank)] = sum;
	} while (next(i, y->dims, y->rank));
	return 0;
}

static int prepare(uint32_t device, const struct yoke_op *op, uint32_t impl, uint64_t plan,
		   void **to, uint64_t *workspace)
{
	// no workspace: *workspace stays 0, as set by the core
	(void)impl, (void)plan, (void)workspace;
	if (!can(device, op))
		return fail(YOKE_EUNSUPPORTED, "skeleton does not support this op");
	struct handle *h = malloc(sizeof *h);
	if (!h)
		return fail(YOKE_ENOMEM, "no host memory for a handle");
	*h = (struct handle){ .run = run_contract };
	if (op->code == YOKE_OP_MAP) {
		const struct yoke_insn *add = &op->map->insn[op->map->out[0]];
		h->run = run_add;
		h->a = op->map->insn[add->a].a;
		h->b = op->map->insn[add->b].a;
	}
	*to = h;
	return 0;
}

static int run(void *queue, void *handle, const struct yoke_op *op)
{
	const struct handle *h = handle;
	(void)queue;
	return h->run(h, op);
}

static void release(void *handle)
{
	free(handle);
}

// ---- 7. the table and the one exported symbol ----

static const struct yoke_backend backend = {
	.size = sizeof backend,
	.abi = YOKE_ABI,
	.name = "skeleton",
	.version = "1",
	.probe = probe,
	.device_info = device_info,
	.segment_new = segment_new,
	.segment_free = segment_free,
	.segment_host = segment_host,
	.queue_new = queue_new,
	.queue_free = queue_free,
	.put = put,
	.get = get,
	.copy = copy,
	.event_mark = event_mark,
	.event_after = event_after,
	.event_done = event_done,
	.event_wait = event_wait,
	.event_free = event_free,
	.can = can,
	.prepare = prepare,
	.run = run,
	.release = release,
};

__attribute__((visibility("default"))) int yoke_plugin_init(uint32_t core_abi,
							    const struct yoke_host *core_host,
							    const struct yoke_backend **to)
{
	*to = &backend; // also when refusing: the message can then name the plugin's ABI
	if (core_abi >> 16 != YOKE_ABI_MAJOR)
		return YOKE_EABI;
	host = core_host;
	return 0;
}
