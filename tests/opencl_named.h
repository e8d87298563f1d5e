// SPDX-License-Identifier: Apache-2.0
// The tests of named ops on the OpenCL backend: arrays go to segments, each at a place of its
// own, and come back after the run.  Included by named_op.h.
#ifndef YK_OPENCL_NAMED_H
#define YK_OPENCL_NAMED_H

#include "opencl_host.h"

enum { IMPLS = 8 };

static void *queue;

// As the table of an instruction set: the name, and the names of implementations.
static struct yk_isa on_opencl = { .name = "opencl" };

static inline uint64_t impls(const struct yk_isa *isa, const struct yoke_op *op)
{
	uint64_t mask = cl->can(device, op);
	static struct yk_kernel k[YOKE_OP_LIMIT];
	for (uint32_t i = 0; i < IMPLS; i++)
		if (mask >> i & 1)
			k[op->code].impl[i] = cl->impl_name(device, op, i);
	on_opencl.op[op->code] = &k[op->code];
	return isa == &on_opencl ? mask : 0;
}

static inline void *segment_of(uint64_t bytes)
{
	void *s;
	must(cl->segment_new(device, YOKE_SEGMENT_DEVICE, bytes ? bytes : 1, &s),
	     "segment_new");
	return s;
}

// What the device says of all that was enqueued.
static inline int finish(void)
{
	void *e;
	must(cl->event_mark(queue, &e), "mark");
	int code = cl->event_wait(e);
	if (code != YOKE_ERANGE) // some values are refused
		must(code, "wait");
	cl->event_free(e);
	return code;
}

// Where array i lies while an op runs; guards on both sides come back unchanged.
struct placed {
	void *segment;
	uint64_t at, bytes;
	char *host;
};

static inline int array_of(const struct yoke_view *v)
{
	for (int i = 0; i < array_count; i++)
		if (v->segment == &arrays[i].segment)
			return i;
	return -1;
}

static inline void place_views(struct placed *p, const struct yoke_view *from, uint32_t n,
			       struct yoke_view *to)
{
	for (uint32_t k = 0; k < n; k++) {
		int i = from[k].kind == YOKE_VIEW_BUFFER ? array_of(&from[k]) : -1;
		to[k] = from[k];
		if (i < 0)
			continue;
		if (!p[i].segment) {
			p[i].at = (uint64_t)rnd_int(0, 3) * 192;
			p[i].bytes = p[i].at + arrays[i].bytes + GUARD;
			p[i].host = malloc(p[i].bytes);
			memset(p[i].host, 0x5a, p[i].at);
			memcpy(p[i].host + p[i].at, arrays[i].segment.base,
			       arrays[i].bytes + GUARD);
			p[i].segment = segment_of(p[i].bytes);
			must(cl->put(queue, p[i].segment, 0, p[i].host, p[i].bytes), "put");
		}
		to[k].segment = p[i].segment;
		to[k].offset += p[i].at;
	}
}

// Brings the arrays back; were their guards untouched?
static inline bool take_back(struct placed *p)
{
	bool good = true;
	for (int i = 0; i < array_count; i++)
		if (p[i].segment)
			must(cl->get(queue, p[i].segment, 0, p[i].host, p[i].bytes), "get");
	finish();
	for (int i = 0; i < array_count; i++) {
		if (!p[i].segment)
			continue;
		for (uint64_t b = 0; b < p[i].at; b++)
			good &= p[i].host[b] == 0x5a;
		memcpy(arrays[i].segment.base, p[i].host + p[i].at, arrays[i].bytes + GUARD);
		free(p[i].host);
		cl->segment_free(device, p[i].segment);
	}
	return good;
}

static inline int run_once(const struct yoke_op *op, uint32_t impl)
{
	struct placed placed[ARRAYS] = { { 0 } };
	struct yoke_view *views = malloc((op->nin + op->nout + 1) * sizeof *views);
	struct yoke_op with = *op;
	uint64_t bytes = 0;
	void *handle;

	must(cl->prepare(device, op, impl, 0, &handle, &bytes), "prepare");
	char *space = malloc(bytes + GUARD), *behind = malloc(bytes + GUARD);
	memset(space, 0xff, bytes);
	memset(space + bytes, 0x5a, GUARD);
	void *segment = segment_of(bytes + GUARD);
	must(cl->put(queue, segment, 0, space, bytes + GUARD), "put");
	if (bytes)
		with.workspace = (struct yoke_view){ .segment = segment,
						     .kind = YOKE_VIEW_BUFFER,
						     .dtype = yoke_u8,
						     .rank = 1,
						     .align = 64,
						     .dims = { (int64_t)bytes },
						     .strides = { 1 } };
	place_views(placed, op->in, op->nin, views);
	place_views(placed, op->out, op->nout, views + op->nin);
	with.in = views;
	with.out = views + op->nin;
	int code = cl->run(queue, handle, &with), late = finish();
	cl->release(handle);
	code = code ? code : late;
	if (code && code != YOKE_ERANGE)
		diag("run: %d %s", code, last_error);
	must(cl->get(queue, segment, 0, behind, bytes + GUARD), "get");
	if (!take_back(placed) || memcmp(behind + bytes, space + bytes, GUARD))
		code = YOKE_EFAILED;
	cl->segment_free(device, segment);
	free(space);
	free(behind);
	free(views);
	return code;
}

static inline void copy_arrays(char *const to[], bool back)
{
	for (int i = 0; i < array_count; i++)
		if (back)
			memcpy(arrays[i].segment.base, to[i], arrays[i].bytes);
		else
			memcpy(to[i], arrays[i].segment.base, arrays[i].bytes);
}

// Runs op twice from the same start and compares every byte of every array.  Returns the code,
// or EUNSUPPORTED where the backend does not take it.
static inline int call_impl(const struct yk_isa *isa, const struct yoke_op *op, uint32_t impl)
{
	char *before[ARRAYS], *first[ARRAYS];
	if (!(impls(isa, op) >> impl & 1))
		return YOKE_EUNSUPPORTED;
	for (int i = 0; i < array_count; i++) {
		before[i] = malloc(arrays[i].bytes + 1);
		first[i] = malloc(arrays[i].bytes + 1);
		if (!before[i] || !first[i])
			abort();
	}
	copy_arrays(before, false);
	int code = run_once(op, impl);
	copy_arrays(first, false);
	copy_arrays(before, true);
	bool same = run_once(op, impl) == code;
	for (int i = 0; i < array_count; i++) {
		same &= !memcmp(first[i], arrays[i].segment.base, arrays[i].bytes);
		free(before[i]);
		free(first[i]);
	}
	if (!same)
		ok(false, "op %d gives the same bits twice", op->code);
	return code;
}

static inline int call(const struct yk_isa *isa, const struct yoke_op *op)
{
	uint64_t can = impls(isa, op);
	return can ? call_impl(isa, op, (uint32_t)__builtin_ctzll(can)) :
		     YOKE_EUNSUPPORTED;
}

// One target, or none, with the reason said.
static inline int isas(const struct yk_isa *list[3])
{
	uint32_t n = 0;
	const char *why = test_load(getenv("YOKE_TEST_OPENCL"), &n);

	if (why) {
		exit(skip_all(why));
	}
	tap_seed();
	must(cl->queue_new(device, YOKE_QUEUE_COMPUTE, &queue), "queue_new");
	list[0] = &on_opencl;
	return 1;
}

#endif
