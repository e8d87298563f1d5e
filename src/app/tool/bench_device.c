// SPDX-License-Identifier: Apache-2.0
// Limits of a device. A CPU is measured by dedicated loops, whichever backend drives it. Any other
// device is measured by its fastest matrix product and its own copy operation.
#include "config.h"

#include "base/error.h"
#include "device/device.h"
#include "observe/roof.h"
#include "tool/bench.h"

enum { SIDE = 4096, QUICK_SIDE = 64, ROUNDS = 8 };
#define MAX_BYTES (UINT64_C(256) << 20)
#define QUICK_BYTES (UINT64_C(1) << 20)

static int product(void *arg)
{
	yoke_tensor *const *x = arg;
	yoke_scope *s = yoke_scope_begin("limit");
	yoke_tensor *y = yoke_matmul(x[0], x[1], 0);
	int e = y ? yoke_eval(1, &y) : yoke_error_code();

	if (e == 0)
		e = yoke_sync();
	int f = yoke_scope_end(s);
	return e < 0 ? e : f;
}

static int product_rate(bool quick, double *to)
{
	const int64_t side = quick ? QUICK_SIDE : SIDE, dims[] = { side, side };
	struct yk_timing t;
	yoke_scope *s = yoke_scope_begin("limits");
	yoke_tensor *x[] = { yoke_uniform(yoke_f32, 2, dims), yoke_uniform(yoke_f32, 2, dims) };
	int e = yoke_eval(2, x);

	if (e == 0)
		e = yk_bench_time(product, x, quick, &t);
	if (e == 0)
		*to = 2.0 * (double)(side * side * side) / t.median;
	int f = yoke_scope_end(s);
	return e < 0 ? e : f;
}

struct copy {
	const struct yoke_backend *ops;
	struct yk_queue *queue;
	void *segment[2];
	uint64_t bytes;
};

static int copy_rounds(void *arg)
{
	struct copy *c = arg;
	int e = 0;

	for (int i = 0; i < ROUNDS && e == 0; i++)
		e = c->ops->copy(c->queue->handle, c->segment[i % 2], 0, c->segment[1 - i % 2], 0,
				 c->bytes);
	return e < 0 ? e : yk_queue_wait(c->queue);
}

static int copy_rate(struct yk_device *d, bool quick, double *to)
{
	const unsigned char zero = 0;
	const uint64_t max = quick ? QUICK_BYTES : MAX_BYTES;
	struct copy c = { .ops = d->ops, .bytes = d->info.memory / 16 };
	struct yk_timing t;
	int e = yk_queue_new(d, YOKE_QUEUE_COMPUTE, &c.queue);

	c.bytes = c.bytes < max ? c.bytes : max;
	for (int i = 0; i < 2 && e == 0; i++) {
		e = d->ops->segment_new(d->index, YOKE_SEGMENT_DEVICE, c.bytes, &c.segment[i]);
		if (e == 0)
			e = d->ops->fill(c.queue->handle, c.segment[i], 0, c.bytes, &zero, 1);
	}
	if (e == 0)
		e = yk_bench_time(copy_rounds, &c, quick, &t);
	if (e == 0)
		*to = 2.0 * ROUNDS * (double)c.bytes / t.median;
	if (e < 0)
		yk_fail(e, "the copy on %s failed", d->id);
	for (int i = 0; i < 2; i++)
		if (c.segment[i])
			d->ops->segment_free(d->index, c.segment[i]);
	yk_queue_free(c.queue);
	return e;
}

int yk_limits_measure(struct yk_device *d, bool quick, struct yk_bench_limits *to)
{
	int e;

	if (d->info.kind == YOKE_DEVICE_CPU) {
		*to = (struct yk_bench_limits){
			.flops = yk_limit_flops((int)d->info.units, false),
			.flops_of = "fp32 multiply-adds in registers",
			.copy = yk_limit_copy((int)d->info.units),
			.copy_of = "bytes read and written by a copy between buffers larger than "
				   "the caches",
		};
		return 0;
	}
	*to = (struct yk_bench_limits){
		.flops_of = quick ? "a product of 64 x 64 x 64" : "a product of 4096 x 4096 x 4096",
		.copy_of = "bytes read and written by the device's copy command",
	};
	e = product_rate(quick, &to->flops);
	return e < 0 ? e : copy_rate(d, quick, &to->copy);
}
