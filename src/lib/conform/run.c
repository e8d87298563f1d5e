// SPDX-License-Identifier: Apache-2.0
// Runs cases: copies operands into two segments with guard bytes around them, and fills results
// with 0xff bytes (NaN in every floating dtype, not a valid bool).  Afterwards it reads both
// segments back: every byte outside the results' elements must be unchanged.
#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "conform/run.h"

enum { GUARD = 128, GUARD_BYTE = 0xa5, NO_NUMBER = 0xff, MIN_ROOM = 1 << 20 };

__attribute__((format(printf, 2, 3))) static bool blame(struct yk_case_verdict *v,
							const char *fmt, ...)
{
	va_list ap;
	if (!v->good)
		return false;
	v->good = false;
	va_start(ap, fmt);
	yk_vsnprintf(v->why, sizeof v->why, fmt, ap);
	va_end(ap);
	return false;
}

// ---- segments ----

int yk_runner_init(struct yk_runner *r, struct yk_device *d)
{
	*r = (struct yk_runner){ .device = d };
	return yk_queue_new(d, YOKE_QUEUE_COMPUTE, &r->queue);
}

static void drop_segment(struct yk_runner *r, int k)
{
	if (r->segment[k])
		r->device->ops->segment_free(r->device->index, r->segment[k]);
	free(r->before[k]);
	free(r->after[k]);
	free(r->writable[k]);
	r->segment[k] = r->before[k] = r->after[k] = NULL;
	r->writable[k] = NULL;
	r->room[k] = 0;
}

void yk_runner_fini(struct yk_runner *r)
{
	yk_queue_free(r->queue);
	for (int k = 0; k < 2; k++)
		drop_segment(r, k);
}

static int reserve(struct yk_runner *r, int k, uint64_t bytes)
{
	struct yk_device *d = r->device;
	if (r->segment[k] && bytes <= r->room[k])
		return 0;
	bytes = bytes < MIN_ROOM ? MIN_ROOM : bytes + bytes / 2;
	drop_segment(r, k);
	r->before[k] = malloc(bytes);
	r->after[k] = malloc(bytes);
	r->writable[k] = malloc(bytes);
	if (!r->before[k] || !r->after[k] || !r->writable[k])
		return yk_fail(YOKE_ENOMEM, "no host memory for %llu bytes",
			       (unsigned long long)bytes);
	int code =
		d->ops->segment_new(d->index, YOKE_SEGMENT_DEVICE, bytes, &r->segment[k]);
	if (code < 0) {
		r->segment[k] = NULL;
		return yk_fail(code, "%s: no segment of %llu bytes", d->id,
			       (unsigned long long)bytes);
	}
	r->room[k] = bytes;
	return 0;
}

// Grows both segments to at least these sizes.
static int reserve_both(struct yk_runner *r, uint64_t bytes0, uint64_t bytes1)
{
	int code = reserve(r, 0, bytes0);
	return code ? code : reserve(r, 1, bytes1);
}

// ---- placing a case in the segments ----

static uint64_t block_align(const struct yk_runner *r)
{
	return r->device->info.align > 256 ? r->device->info.align : 256;
}

// Allocates the next bytes: after a guard, `shift` bytes past an aligned address.
static uint64_t take(struct yk_runner *r, int k, uint64_t bytes, uint64_t shift)
{
	const uint64_t align = block_align(r);
	uint64_t at = (r->used[k] + GUARD + align - 1) / align * align + shift;
	r->used[k] = at + bytes + GUARD;
	return at;
}

// Alignment of a segment's address that the device guarantees.
static uint32_t alignment(const struct yk_runner *r, uint64_t offset)
{
	uint64_t a = offset | r->device->info.align;
	return (uint32_t)(a & -a);
}

struct layout {
	int segment[YK_CASE_VIEWS];
	uint64_t at[YK_CASE_VIEWS]; // of an array's data
	uint64_t work;
};

static int lay_out(struct yk_runner *r, const struct yk_case *c, uint64_t work,
		   struct layout *l)
{
	r->used[0] = r->used[1] = GUARD; // a segment is never empty
	for (uint32_t k = 0; k < c->views; k++) {
		const struct yk_array *a = &c->array[k];
		bool result = k < c->op.nout;
		if (!a->data)
			continue;
		l->segment[k] = yk_case_plain(c) ? !result :
						   (int)((c->number * 7 + k * 5) / 3 % 2);
		l->at[k] = take(r, l->segment[k], a->bytes,
				a->shift * yoke_dtype_size(c->view[k].dtype));
	}
	l->work = take(r, 1, work, 0);
	return reserve_both(r, r->used[0], r->used[1]);
}

static uint64_t byte_of(const struct yoke_view *v, const int64_t *i)
{
	int64_t at = 0;
	for (int d = 0; d < v->rank; d++)
		at += i[d] * v->strides[d];
	return v->offset + (uint64_t)(at * (int64_t)yoke_dtype_size(v->dtype));
}

static int which(const struct yk_runner *r, const struct yoke_view *v)
{
	return v->segment == r->segment[1];
}

// Sets the alignments that bind() will honor.
static void promise(const struct yk_runner *r, struct yk_case *c)
{
	for (uint32_t k = 0; k < c->views; k++) {
		const uint32_t owner = c->array[k].alias >= 0 ? (uint32_t)c->array[k].alias : k;
		const struct yk_array *a = &c->array[owner];
		if (c->view[k].kind == YOKE_VIEW_BUFFER)
			c->view[k].align = alignment(
				r, a->shift * yoke_dtype_size(c->view[owner].dtype) + a->origin);
	}
}

// Binds the views and builds the images to upload.
static void bind(struct yk_runner *r, struct yk_case *c, const struct layout *l,
		 uint64_t work)
{
	for (int k = 0; k < 2; k++) {
		memset(r->before[k], GUARD_BYTE, r->used[k]);
		memset(r->writable[k], 0, r->used[k]);
	}
	for (uint32_t k = 0; k < c->views; k++) {
		struct yk_array *a = &c->array[k];
		struct yoke_view *v = &c->view[k];
		uint32_t owner = a->alias >= 0 ? (uint32_t)a->alias : k;
		if (v->kind != YOKE_VIEW_BUFFER)
			continue;
		v->segment = r->segment[l->segment[owner]];
		v->offset = l->at[owner] + c->array[owner].origin;
		if (k >= c->op.nout)
			memcpy(r->before[l->segment[k]] + l->at[k], a->data, a->bytes);
	}
	for (uint32_t k = 0; k < c->op.nout; k++) {
		const struct yoke_view *v = &c->view[k];
		int64_t i[YOKE_MAX_RANK] = { 0 };
		size_t size = yoke_dtype_size(v->dtype);
		if (v->kind != YOKE_VIEW_BUFFER || !c->array[k].n)
			continue;
		do {
			uint64_t at = byte_of(v, i);
			memset(r->writable[which(r, v)] + at, 1, size);
			if (c->array[k].alias < 0)
				memset(r->before[which(r, v)] + at, NO_NUMBER, size);
		} while (yk_next_index(i, v));
	}
	memset(r->before[1] + l->work, NO_NUMBER, work);
	memset(r->writable[1] + l->work, 2, work);
	c->op.workspace = (struct yoke_view){ .kind = YOKE_VIEW_NONE };
	if (work)
		c->op.workspace =
			(struct yoke_view){ .kind = YOKE_VIEW_BUFFER,
					    .segment = r->segment[1],
					    .offset = l->work,
					    .dtype = yoke_u8,
					    .rank = 1,
					    .dims = { (int64_t)work },
					    .strides = { 1 },
					    .align = alignment(r, l->work) };
}

static void unbind(struct yk_case *c)
{
	for (uint32_t k = 0; k < c->views; k++)
		if (c->view[k].kind == YOKE_VIEW_BUFFER)
			c->view[k].segment = NULL;
}

// ---- comparing ----

void yk_case_describe(const struct yk_case *c, char *to, size_t cap)
{
	size_t n = 0;
	for (uint32_t k = 0; k < c->views && n < cap; k++) {
		const struct yoke_view *v = &c->view[k];
		const char *kind = v->kind == YOKE_VIEW_NONE ? "none" :
				   v->kind == YOKE_VIEW_SCALAR ?
							       "scalar" :
							       yoke_dtype_name(v->dtype);
		n += (size_t)snprintf(to + n, cap - n, "%s%s",
				      !k              ? "" :
				      k == c->op.nout ? " <- " :
							", ",
				      kind);
		if (v->kind != YOKE_VIEW_BUFFER)
			continue;
		for (int d = 0; d < v->rank && n < cap; d++)
			n += (size_t)snprintf(to + n, cap - n, "%c%lld:%lld",
					      d ? ',' : '[', (long long)v->dims[d],
					      (long long)v->strides[d]);
		if (n < cap)
			n += (size_t)snprintf(to + n, cap - n, "%s", v->rank ? "]" : "");
	}
}

// Error of an element, in units of its tolerance.
static double miss(struct yk_num got, const struct yk_expected *want, int dtype)
{
	if (want->loose)
		return 0;
	if (!yk_num_real(dtype))
		return got.i == want->i ? 0 : INFINITY;
	if (isnan(want->f) || isnan(got.f))
		return isnan(want->f) && isnan(got.f) ? 0 : INFINITY;
	if (got.f == want->f)
		return 0;
	double e = fabs(got.f - want->f);
	if (isinf(want->f) ||
	    isinf(got.f)) { // a value beyond the largest number may round to it
		double max = yk_num_round(INFINITY, dtype);
		double near = yk_num_round(want->f + copysign(want->tol, want->f), dtype);
		return isinf(got.f) && isinf(near) && near == copysign(max, got.f) ?
			       1 :
			       INFINITY;
	}
	return want->tol > 0 ? e / want->tol : INFINITY;
}

static void compare_result(struct yk_runner *r, const struct yk_case *c, uint32_t k,
			   struct yk_case_verdict *verdict)
{
	const struct yoke_view *v = &c->view[k];
	int64_t i[YOKE_MAX_RANK] = { 0 }, n = 0, wrong = 0;
	char place[160] = "", *end = place;

	if (v->kind != YOKE_VIEW_BUFFER || !c->array[k].n)
		return;
	do {
		const struct yk_expected *want = &c->array[k].want[n++];
		struct yk_num got =
			yk_num_load(r->after[which(r, v)] + byte_of(v, i), v->dtype);
		double e = miss(got, want, v->dtype);
		unsigned char byte = (unsigned char)r->after[which(r, v)][byte_of(v, i)];
		if (v->dtype == yoke_bool && byte > 1)
			e = INFINITY;
		if (e > verdict->worst)
			verdict->worst = e;
		if (e <= 1 || wrong++)
			continue;
		for (int d = 0; d < v->rank; d++)
			end += sprintf(end, "%s%lld", d ? "," : "", (long long)i[d]);
		if (yk_num_real(v->dtype))
			blame(verdict, "result %u [%s]: got %.9g, want %.9g within %.3g",
			      k, place, got.f, want->f, want->tol);
		else if (v->dtype == yoke_bool)
			blame(verdict, "result %u [%s]: got byte %d, want %d", k, place,
			      byte, (int)want->i);
		else
			blame(verdict, "result %u [%s]: got %lld, want %lld", k, place,
			      (long long)got.i, (long long)want->i);
	} while (yk_next_index(i, v));
	size_t used = strlen(verdict->why);
	if (wrong)
		snprintf(verdict->why + used, sizeof verdict->why - used,
			 "; %lld of %lld are wrong", (long long)wrong, (long long)n);
}

// Reports the first byte changed outside all results, relative to the nearest view.
static void compare_guards(struct yk_runner *r, const struct yk_case *c,
			   struct yk_case_verdict *verdict)
{
	for (int s = 0; s < 2; s++)
		for (uint64_t at = 0; at < r->used[s]; at++) {
			if (r->writable[s][at] || r->before[s][at] == r->after[s][at])
				continue;
			uint32_t near = 0;
			uint64_t best = UINT64_MAX;
			for (uint32_t k = 0; k < c->views; k++) {
				uint64_t from = c->view[k].offset;
				uint64_t far = from > at ? from - at : at - from;
				if (c->view[k].kind == YOKE_VIEW_BUFFER &&
				    which(r, &c->view[k]) == s && far < best)
					best = far, near = k;
			}
			blame(verdict,
			      "wrote outside of its results: byte %lld from %s %u",
			      (long long)(at - c->view[near].offset),
			      near < c->op.nout ? "result" : "operand",
			      near < c->op.nout ? near : near - c->op.nout);
			return;
		}
}

static uint64_t bits_of(const struct yk_runner *r)
{
	uint64_t h = 0xcbf29ce484222325u; // FNV-1a
	for (int s = 0; s < 2; s++)
		for (uint64_t at = 0; at < r->used[s]; at++)
			if (r->writable[s][at] == 1)
				h = (h ^ (unsigned char)r->after[s][at]) * 0x100000001b3u;
	return h;
}

// Sets the expected results of the case's part from the downloaded results.
static void want_of_part(struct yk_runner *r, struct yk_case *c)
{
	for (uint32_t k = 0; k < c->op.nout; k++) {
		const struct yoke_view *v = &c->view[k];
		struct yk_array *part = &c->part->array[k];
		int64_t i[YOKE_MAX_RANK] = { 0 }, n = -c->part_at;
		do {
			struct yk_num got =
				yk_num_load(r->after[which(r, v)] + byte_of(v, i), v->dtype);
			if (n >= 0 && n < part->n)
				part->want[n] = (struct yk_expected){ .f = got.f, .i = got.i };
			n++;
		} while (yk_next_index(i, v));
	}
}

// ---- running ----

static int upload(struct yk_runner *r)
{
	const struct yk_device *d = r->device;
	int code = 0;
	for (int s = 0; s < 2 && !code; s++)
		code = d->ops->put(r->queue->handle, r->segment[s], 0, r->before[s],
				   r->used[s]);
	return code;
}

static int download(struct yk_runner *r)
{
	const struct yk_device *d = r->device;
	int code = 0;
	for (int s = 0; s < 2 && !code; s++)
		code = d->ops->get(r->queue->handle, r->segment[s], 0, r->after[s],
				   r->used[s]);
	return code ? code : yk_queue_wait(r->queue);
}

// Waits, and clears the queue's error, so that the next case can use it.
static int settle(struct yk_runner *r, int code)
{
	struct yk_queue_failure failure;
	int waited = yk_queue_wait(r->queue);
	int taken = yk_queue_take(r->queue, &failure);
	return code ? code : waited ? waited : taken;
}

static bool failed(struct yk_case_verdict *v, const char *what, int code)
{
	v->code = v->good ? code : v->code;
	blame(v, "%s failed: %s: %s", what, yoke_error_name(code),
	      *yoke_error() ? yoke_error() : yk_error_text(code));
	yoke_error_clear();
	return false;
}

// Records the work that `work` enqueues into a graph, from a fresh image. NULL: the backend has no
// graphs, or the verdict names an error.
static void *record(struct yk_runner *r, int (*work)(struct yk_runner *, void *), void *arg,
		    struct yk_case_verdict *v)
{
	const struct yk_device *d = r->device;
	void *graph = NULL;
	int code = upload(r), ended;
	code = code ? code : yk_queue_wait(r->queue);
	if (code) {
		failed(v, "put", settle(r, code));
		return NULL;
	}
	code = d->ops->graph_begin(r->queue->handle);
	if (code == YOKE_EUNSUPPORTED) {
		yoke_error_clear();
		return NULL;
	}
	if (!code) {
		code = work(r, arg);
		ended = d->ops->graph_end(r->queue->handle, &graph);
		code = code ? code : ended;
	}
	code = code ? code : download(r);
	if (code)
		failed(v, "recording a graph", settle(r, code));
	for (int s = 0; s < 2 && !code; s++)
		if (memcmp(r->before[s], r->after[s], r->used[s]))
			{
			blame(v, "work recorded in a graph was executed immediately");
			code = YOKE_EFAILED;
		}
	if (code && graph) {
		d->ops->graph_free(graph);
		return NULL;
	}
	return graph;
}

struct op_run {
	void *handle;
	const struct yoke_op *op;
};

static int run_op(struct yk_runner *r, void *arg)
{
	const struct op_run *o = arg;
	return r->device->ops->run(r->queue->handle, o->handle, o->op);
}

// One run of the op or of a graph that contains it, from a fresh image; the downloaded result is in
// r->after.
static bool run_once(struct yk_runner *r, struct yk_case *c, void *handle, void *graph,
		     struct yk_case_verdict *v)
{
	struct op_run o = { handle, &c->op };
	int code = upload(r);
	if (code)
		return failed(v, "put", settle(r, code));
	code = settle(r,
		      graph ? r->device->ops->graph_run(r->queue->handle, graph) : run_op(r, &o));
	if (code == YOKE_ERANGE && c->rejects) {
		yoke_error_clear();
	} else if (code) {
		return failed(v, "run", code);
	} else {
		v->silent |= c->rejects;
	}
	code = download(r);
	if (code)
		return failed(v, "get", settle(r, code));
	return true;
}

uint64_t yk_runner_can(struct yk_runner *r, struct yk_case *c)
{
	promise(r, c); // some implementations need aligned operands
	return r->device->ops->can(r->device->index, &c->op);
}

// Prepares the handle for all runs, as a plan does: without data that is known only at launch.
static int prepare(const struct yk_device *d, struct yk_case *c, uint32_t impl, void **handle,
		   uint64_t *work)
{
	const uint64_t hidden = 0x5a5a5a5a5a5a5a40, alias = c->op.alias_mask;

	c->op.alias_mask = 0;
	for (uint32_t k = 0; k < c->views; k++)
		c->view[k].offset ^= hidden;
	int code = d->ops->prepare(d->index, &c->op, impl, 0, handle, work);
	for (uint32_t k = 0; k < c->views; k++)
		c->view[k].offset ^= hidden;
	c->op.alias_mask = alias;
	return code;
}

struct yk_case_verdict yk_runner_run(struct yk_runner *r, struct yk_case *c, uint32_t impl,
				bool twice)
{
	struct yk_case_verdict v = { .good = true };
	const struct yk_device *d = r->device;
	struct layout l = { .work = 0 };
	uint64_t work = 0;
	void *handle = NULL;

	yoke_error_clear();
	promise(r, c);
	int code = prepare(d, c, impl, &handle, &work);
	if (code) {
		failed(&v, "prepare", code);
		return v;
	}
	if (work > d->info.memory) {
		blame(&v, "requests a workspace of %llu bytes", (unsigned long long)work);
		goto out;
	}
	if ((code = lay_out(r, c, work, &l))) {
		failed(&v, "memory", code);
		goto out;
	}
	bind(r, c, &l, work);
	if (run_once(r, c, handle, NULL, &v)) {
		compare_guards(r, c, &v);
		for (uint32_t k = 0; k < c->op.nout && !c->rejects; k++)
			compare_result(r, c, k, &v);
		if (!c->rejects)
			v.bits = bits_of(r);
		if (v.good && c->part)
			want_of_part(r, c);
	}
	for (int s = 0; s < 2 && twice && v.good && !c->rejects; s++) {
		char *first = malloc(r->used[s] + 1);
		if (!first)
			break;
		memcpy(first, r->after[s], r->used[s]);
		void *graph = s ? record(r, run_op, &(struct op_run){ handle, &c->op }, &v) : NULL;
		if (v.good && run_once(r, c, handle, graph, &v))
			for (uint64_t at = 0; at < r->used[s] && v.good; at++)
				if (r->writable[s][at] == 1 &&
				    first[at] != r->after[s][at])
					blame(&v, "a second run%s gave other bits",
					      graph ? ", by a graph," : "");
		if (graph)
			d->ops->graph_free(graph);
		free(first);
	}
	unbind(c);
out:
	if (handle)
		d->ops->release(handle);
	return v;
}

void yk_runner_part(struct yk_runner *r, struct yk_case *c, struct yk_case_verdict *v)
{
	const struct yk_device *d = r->device;
	uint64_t impls = yk_runner_can(r, c->part);
	char views[200];

	yk_case_describe(c->part, views, sizeof views);
	if (!impls)
		blame(v, "is not supported for a part of the case: %s", views);
	for (uint32_t i = 0; i < 64 && v->good; i++) {
		if (!(impls >> i & 1))
			continue;
		struct yk_case_verdict part = yk_runner_run(r, c->part, i, false);
		const char *name = d->ops->impl_name(d->index, &c->part->op, i);
		if (!part.good)
			blame(v, "in part, by %s, %s: %s", name ? name : "", views, part.why);
	}
}

// ---- memory ----

static uint64_t mix(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	return z ^ z >> 31;
}

// A random put, get, copy or fill on the device and in its host image.
static int transfer(struct yk_runner *r, uint64_t *state, char *scratch)
{
	const struct yoke_backend *ops = r->device->ops;
	void *q = r->queue->handle;
	int s = (int)(mix(state) % 2), t = (int)(mix(state) % 2);
	uint64_t n = mix(state) % 3000, half = MIN_ROOM / 2;
	uint64_t at = mix(state) % (half - n), to = half + mix(state) % (half - n);
	uint64_t pattern = mix(state);
	uint32_t width = 1u << mix(state) % 4;

	switch (mix(state) % 4) {
	case 0:
		memset(scratch, (int)pattern, n);
		memcpy(r->before[s] + at, scratch, n);
		return ops->put(q, r->segment[s], at, scratch, n);
	case 1: // parts of one segment that do not overlap, or of two
		memcpy(r->before[t] + to, r->before[s] + at, n);
		return yk_queue_copy(r->queue, r->segment[t], to, r->segment[s], at, n);
	case 2:
		n -= n % width, at -= at % width;
		for (uint64_t i = 0; i < n; i += width)
			memcpy(r->before[s] + at + i, &pattern, width);
		return yk_queue_fill(r->queue, r->segment[s], at, n, &pattern, width);
	}
	return ops->get(q, r->segment[s], at, scratch, n);
}

// Fills both images with random bytes.
static int scatter(struct yk_runner *r, uint64_t *state)
{
	int code = reserve_both(r, MIN_ROOM, MIN_ROOM);

	yoke_error_clear();
	for (int s = 0; s < 2 && !code; s++) {
		r->used[s] = MIN_ROOM;
		for (uint64_t i = 0; i < MIN_ROOM; i++)
			r->before[s][i] = (char)mix(state);
	}
	return code;
}

static void compare_images(const struct yk_runner *r, struct yk_case_verdict *v)
{
	for (int s = 0; s < 2 && v->good; s++)
		for (uint64_t i = 0; i < MIN_ROOM && v->good; i++)
			if (r->before[s][i] != r->after[s][i])
				blame(v,
				      "segment %d, byte %llu: put, copy or fill left %#x, want %#x",
				      s, (unsigned long long)i, (unsigned char)r->after[s][i],
				      (unsigned char)r->before[s][i]);
}

struct yk_case_verdict yk_runner_memory(struct yk_runner *r, uint64_t seed)
{
	struct yk_case_verdict v = { .good = true };
	char *scratch = malloc(4096);
	int code = scratch ? scatter(r, &seed) : YOKE_ENOMEM;

	if (!code)
		code = upload(r);
	for (int i = 0; i < 200 && !code; i++) {
		code = transfer(r, &seed, scratch);
		if (!code) // scratch is used again
			code = yk_queue_wait(r->queue);
	}
	if (!code)
		code = download(r);
	if (code)
		failed(&v, "a transfer", settle(r, code));
	compare_images(r, &v);
	free(scratch);
	return v;
}

enum { AT = 64, FILLED = 4096, COPIED = 8192 };

static int fill_and_copy(struct yk_runner *r, void *pattern)
{
	const struct yoke_backend *ops = r->device->ops;
	void *q = r->queue->handle;
	int code = ops->fill(q, r->segment[0], AT, FILLED, pattern, 4);
	return code ? code : ops->copy(q, r->segment[1], 2 * AT, r->segment[0], 0, COPIED);
}

bool yk_runner_graph(struct yk_runner *r, uint64_t seed, struct yk_case_verdict *v)
{
	uint32_t pattern = (uint32_t)mix(&seed);
	int code = scatter(r, &seed);

	*v = (struct yk_case_verdict){ .good = true };
	void *graph = code ? NULL : record(r, fill_and_copy, &pattern, v);
	for (int i = 0; i < 2 && graph && !code; i++) {
		code = scatter(r, &seed);
		code = code ? code : upload(r);
		code = code ? code : r->device->ops->graph_run(r->queue->handle, graph);
		code = code ? code : download(r);
		for (int k = 0; k < FILLED; k += (int)sizeof pattern)
			memcpy(r->before[0] + AT + k, &pattern, sizeof pattern);
		memcpy(r->before[1] + 2 * AT, r->before[0], COPIED);
		if (!code)
			compare_images(r, v);
	}
	if (code)
		failed(v, "a graph", settle(r, code));
	if (graph)
		r->device->ops->graph_free(graph);
	return graph || !v->good;
}
