// SPDX-License-Identifier: Apache-2.0
// Measures and caches the peak rates of devices, and determines which of them bounds a kernel.
#include "config.h"

#include "observe/roof.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/param.h"
#include "base/sized.h"
#include "graph/context.h"

YK_PARAM(limits_setting, "profile.limits", YK_BOOL, "1",
	 "measure the peak rates of a device, for the roofline of a profile");

enum { SIDE = 2048, TRIES = 5 };
#define COPY_MAX (UINT64_C(256) << 20)

// ---- by the device's own ops ----

static double product_seconds(yoke_tensor *a, yoke_tensor *b)
{
	yoke_scope *s = yoke_scope_begin("limit");
	const double began = yk_seconds();
	yoke_tensor *y = yoke_matmul(a, b, 0);
	if (y && yoke_eval(1, &y) == 0)
		yoke_sync();
	const double t = yk_seconds() - began;
	return yoke_scope_end(s) < 0 ? INFINITY : t;
}

static double own_product(struct yk_device *d, int dtype)
{
	const int64_t dims[] = { SIDE, SIDE };
	struct yoke_context *ctx = yoke_context_new(NULL);
	double best = INFINITY;
	if (!ctx)
		return 0;
	struct yoke_context *was = yoke_use(ctx);
	yoke_tensor *x[] = { yoke_full(dtype, 2, dims, 1), yoke_full(dtype, 2, dims, 1) };
	if (ctx->device == d && yoke_eval(2, x) == 0)
		for (int i = 0; i <= TRIES; i++) {
			const double t = product_seconds(x[0], x[1]);
			best = i && t < best ? t : best; // the first run plans and compiles
		}
	yoke_use(was);
	yoke_context_free(ctx);
	return isfinite(best) ? 2.0 * SIDE * SIDE * SIDE / best : 0;
}

static double copy_seconds(struct yk_queue *q, void *const segment[2], uint64_t bytes)
{
	const double began = yk_seconds();
	int e = yk_queue_copy(q, segment[1], 0, segment[0], 0, bytes);
	e = e < 0 ? e : yk_queue_drain(q);
	return e < 0 ? INFINITY : yk_seconds() - began;
}

static double own_copy(struct yk_device *d)
{
	const unsigned char zero = 0;
	uint64_t bytes = d->info.memory / 16 < COPY_MAX ? d->info.memory / 16 : COPY_MAX;
	void *segment[2] = { NULL, NULL };
	struct yk_queue *q;
	double best = INFINITY;
	bytes = (bytes < d->info.max_segment ? bytes : d->info.max_segment) & ~(uint64_t)255;
	if (yk_queue_new(d, YOKE_QUEUE_COMPUTE, &q) < 0)
		return 0;
	int e = 0;
	for (int i = 0; i < 2 && e == 0; i++) {
		e = d->ops->segment_new(d->index, YOKE_SEGMENT_DEVICE, bytes, &segment[i]);
		e = e < 0 ? e : yk_queue_fill(q, segment[i], 0, bytes, &zero, 1);
	}
	for (int i = 0; i <= TRIES && e == 0; i++) {
		const double t = copy_seconds(q, segment, bytes);
		best = i && t < best ? t : best;
	}
	yk_queue_free(q);
	for (int i = 0; i < 2; i++)
		if (segment[i])
			d->ops->segment_free(d->index, segment[i]);
	return isfinite(best) ? 2 * (double)bytes / best : 0;
}

// ---- all of a device ----

static void query_backend(struct yk_device *d, struct yk_roof *r)
{
	struct yoke_limits l = { .size = sizeof l };
	char why[8];
	const struct yoke_limits_ext *x = d->ops->ext("limits");
	const bool had = yoke_error_code() != 0;
	if (!x || x->size < sizeof *x)
		return;
	const int code = x->measure(d->index, &l);
	if (code < 0) {
		yk_backend_detail(had, code, why, sizeof why);
		return;
	}
	for (int i = 0; i < YOKE_MAX_DTYPES; i++)
		r->flops[i] = isfinite(l.flops[i]) && l.flops[i] > 0 ? l.flops[i] : 0;
	r->copy = isfinite(l.copy) && l.copy > 0 ? l.copy : 0;
	r->launch_ns = isfinite(l.launch_ns) && l.launch_ns > 0 ? l.launch_ns : 0;
	r->wait_ns = isfinite(l.wait_ns) && l.wait_ns > 0 ? l.wait_ns : 0;
}

static struct yk_roof *roof_new(struct yk_device *d)
{
	struct yk_roof *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	query_backend(d, r);
	if (d->info.kind == YOKE_DEVICE_CPU && !r->flops[yoke_f32])
		r->flops[yoke_f32] = yk_limit_flops((int)d->info.units, false);
	if (d->info.kind == YOKE_DEVICE_CPU && !r->flops[yoke_f64])
		r->flops[yoke_f64] = yk_limit_flops((int)d->info.units, true);
	if (d->info.kind == YOKE_DEVICE_CPU && !r->copy)
		r->copy = yk_limit_copy((int)d->info.units);
	if (!r->copy) {
		r->copy = own_copy(d);
		r->own_copy = true;
	}
	return r;
}

bool yk_roof_enabled(void)
{
	return yk_param_bool(&limits_setting);
}

const struct yk_roof *yk_roof_of(struct yk_device *d, int dtype)
{
	struct yk_error_aside *was = yk_error_aside();
	if (!d->roof)
		d->roof = roof_new(d);
	struct yk_roof *r = d->roof;
	const bool half = dtype == yoke_f16 || dtype == yoke_bf16;
	const bool real = half || dtype == yoke_f32 || dtype == yoke_f64;
	if (r && real && !r->queried[dtype]) {
		r->queried[dtype] = true;
		if (!r->flops[dtype] && (!half || d->info.products >> dtype & 1)) {
			r->flops[dtype] = own_product(d, dtype);
			r->own[dtype] = true;
		} else if (!r->flops[dtype]) {
			r->flops[dtype] = yk_roof_of(d, yoke_f32)->flops[yoke_f32];
			r->own[dtype] = r->own[yoke_f32];
		}
	}
	yk_error_restore(was);
	return r;
}

struct yk_bounded yk_roofline(const struct yk_roof *r, int dtype, double flops, double bytes,
			      double seconds)
{
	struct yk_bounded b = { YOKE_BOUND_UNKNOWN, NAN };
	const double peak = r ? r->flops[dtype] : 0, copy = r ? r->copy : 0;
	if (!(seconds > 0) || !(copy > 0) || !(bytes > 0))
		return b;
	if (!(flops > 0)) { // no arithmetic: it only moves data
		b.bound = YOKE_BOUND_MEMORY;
		b.share = bytes / seconds / copy;
	} else if (peak > 0) {
		const double by_memory = copy * flops / bytes;
		b.bound = by_memory < peak ? YOKE_BOUND_MEMORY : YOKE_BOUND_COMPUTE;
		b.share = flops / seconds / (by_memory < peak ? by_memory : peak);
	}
	if (r->launch_ns > 0 && 1e9 * seconds < 4 * r->launch_ns)
		b.bound = YOKE_BOUND_LAUNCH;
	return b;
}

int yoke_limits(struct yoke_limits *to)
{
	static const uint8_t reals[] = { yoke_f32, yoke_f64, yoke_f16, yoke_bf16 };
	struct yoke_context *ctx = yk_current();
	struct yoke_limits l = { 0 };
	const int size = ctx ? yk_sized_check(to, sizeof to->size, "limits", "yoke_limits") :
			       yk_error_last();
	if (size < 0)
		return size;
	for (size_t i = 0; i < sizeof reals; i++) {
		const struct yk_roof *r = yk_roof_of(ctx->device, reals[i]);
		if (!r)
			return yk_fail(YOKE_ENOMEM, "limits: no memory");
		l.flops[reals[i]] = r->flops[reals[i]];
		l.copy = r->copy;
		l.launch_ns = r->launch_ns;
		l.wait_ns = r->wait_ns;
	}
	l.size = (size_t)size < sizeof l ? (uint32_t)size : (uint32_t)sizeof l;
	memcpy(to, &l, l.size);
	return 0;
}
