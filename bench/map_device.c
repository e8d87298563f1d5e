// SPDX-License-Identifier: Apache-2.0
// Measures the ops of bench/map on a device of another backend, through the backend's function
// table, beside the CPU backend's kernels. The two run in turn in every round; the figure is the
// median of the per-round ratios.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "map.h"
#include "rounds.h"

enum { OPS = 48, ROUNDS = 7 }; // the first round does not count

static const double enough = 0.85, min_seconds = 2e-3;

// An op on the device: its views into segments of the device.
struct device_op {
	struct yk_bench_op b;
	uint32_t impl;
	void *handle, *work;
};

struct bench {
	const struct yoke_backend *t;
	uint32_t device;
	void *queue, *arrays, *ids;
};

static void finish(const struct bench *b)
{
	void *e;
	if (!b->t->event_mark(b->queue, &e)) {
		b->t->event_wait(e);
		b->t->event_free(e);
	}
}

static double on_device(const struct bench *b, const struct device_op *w)
{
	double t = yk_seconds(), spent;
	int n = 0;
	do {
		b->t->run(b->queue, w->handle, &w->b.op);
		finish(b);
		n++;
		spent = yk_seconds() - t;
	} while (spent < min_seconds);
	return spent / n;
}

static double on_cpu(const struct yk_bench_op *b)
{
	double t = yk_seconds(), spent;
	int n = 0;
	do {
		yk_kernel_run(b->prepared, &b->op);
		n++;
		spent = yk_seconds() - t;
	} while (spent < min_seconds);
	return spent / n;
}

// Array k has the same offset in the device's segment as in the host's block.
static void move_views(const struct bench *b, struct yoke_view *v, uint32_t n)
{
	const char *base = yk_bench_array[0].base;
	for (uint32_t i = 0; i < n; i++) {
		const struct yk_segment *s = v[i].segment;
		if (v[i].kind != YOKE_VIEW_BUFFER)
			continue;
		bool array = s >= yk_bench_array && s < yk_bench_array + ARRAYS;
		v[i].segment = array ? b->arrays : b->ids;
		v[i].offset += array ? (uint64_t)((const char *)s->base - base) : 0;
	}
}

static bool alias_init(const struct bench *b, struct device_op *w, const struct yk_bench_op *from)
{
	uint64_t bytes = 0, can;

	w->b = *from;
	w->b.op.in = w->b.in, w->b.op.out = w->b.out;
	if (w->b.op.map)
		w->b.op.map = &w->b.map;
	move_views(b, w->b.in, w->b.op.nin);
	move_views(b, w->b.out, w->b.op.nout);
	if (!(can = b->t->can(b->device, &w->b.op)))
		return false;
	w->impl = (uint32_t)__builtin_ctzll(can);
	if (b->t->prepare(b->device, &w->b.op, w->impl, 0, &w->handle, &bytes))
		return false;
	if (bytes && b->t->segment_new(b->device, 0, bytes, &w->work))
		return false;
	w->b.op.workspace = (struct yoke_view){
		.segment = w->work, .kind = bytes ? YOKE_VIEW_BUFFER : YOKE_VIEW_NONE
	};
	return true;
}

static bool prepare_cpu(const struct yk_isa *isa, struct yk_bench_op *o,
			struct yk_segment *space)
{
	const struct yk_kernel *k = isa->op[o->op.code];
	if (!k->can(&o->op))
		return false;
	space->bytes = k->workspace ? k->workspace(&o->op, 0) : 0;
	space->base = malloc(space->bytes + 1);
	o->op.workspace =
		(struct yoke_view){ .segment = space, .kind = YOKE_VIEW_BUFFER };
	return space->base && !yk_kernel_prepare(k, &o->op, 0, &o->prepared);
}

static void measure(const struct yk_isa *isa, const struct bench *b, struct yk_bench_op *o)
{
	double cpu[ROUNDS], dev[ROUNDS], quotient[ROUNDS];
	struct yk_segment space;
	struct device_op w = { .handle = NULL };

	if (!prepare_cpu(isa, o, &space))
		return;
	if (!alias_init(b, &w, o)) {
		printf("%-20s cannot run\n", o->name);
		free(space.base);
		return;
	}
	for (int r = 0; r < ROUNDS; r++) {
		cpu[r] = on_cpu(o);
		dev[r] = on_device(b, &w);
		quotient[r] = cpu[r] / dev[r];
	}
	qsort(cpu + 1, ROUNDS - 1, sizeof *cpu, by_value);
	qsort(dev + 1, ROUNDS - 1, sizeof *dev, by_value);
	qsort(quotient + 1, ROUNDS - 1, sizeof *quotient, by_value);
	const double q = quotient[ROUNDS / 2];
	printf("%-20s %-12s %8.2f GB/s, cpu %8.2f GB/s  %5.2f (%.2f - %.2f) %s\n", o->name,
	       b->t->impl_name(b->device, &w.b.op, w.impl),
	       o->bytes / dev[ROUNDS / 2] / 1e9, o->bytes / cpu[ROUNDS / 2] / 1e9, q,
	       quotient[1], quotient[ROUNDS - 1], q >= enough ? "" : "LOW");
	fflush(stdout);
	if (w.handle)
		b->t->release(w.handle);
	yk_kernel_release(o->prepared);
	if (w.work)
		b->t->segment_free(b->device, w.work);
	free(space.base);
}

static bool upload(const struct bench *b, void **segment, const void *from, uint64_t bytes)
{
	if (b->t->segment_new(b->device, 0, bytes, segment) ||
	    b->t->put(b->queue, *segment, 0, from, bytes))
		return false;
	finish(b);
	return true;
}

int yk_bench_beside(const struct yk_isa *isa, const char *name, const char *only)
{
	static struct yk_bench_op op[OPS];
	const struct yk_device *d = yk_devices(name);
	struct bench b = { 0 };
	int n = yk_bench_ops(op, OPS);

	if (!d || !d->ops)
		return fprintf(stderr, "map: no device of backend %s\n", name), 1;
	b.t = d->ops, b.device = d->index;
	const uint64_t bytes = (uint64_t)((const char *)yk_bench_array[ARRAYS - 1].base -
					  (const char *)yk_bench_array[0].base) +
			       (uint64_t)yk_bench_count * 4;
	static const char zeros[1 << 20];
	if (b.t->queue_new(b.device, YOKE_QUEUE_COMPUTE, &b.queue) ||
	    !upload(&b, &b.arrays, yk_bench_array[0].base, bytes) ||
	    !upload(&b, &b.ids, zeros, sizeof zeros))
		return fprintf(stderr, "map: no memory on %s\n", d->info.name), 1;
	printf("%s, %s\n", d->info.name, d->info.driver);
	for (int i = 0; i < n; i++)
		if (!only || strstr(op[i].name, only))
			measure(isa, &b, &op[i]);
	b.t->queue_free(b.queue);
	b.t->segment_free(b.device, b.arrays);
	b.t->segment_free(b.device, b.ids);
	return 0;
}
