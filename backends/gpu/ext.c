// SPDX-License-Identifier: Apache-2.0
// Extension tables implemented by the launch layer for all drivers: limits, measured with dedicated
// kernels, and occupancy, from what a driver knows of the kernel that an op launches.
#include "config.h"

#include <string.h>
#include <time.h>

#include "ext.h"

enum { CHAINS = 12, TRIES = 5, LAUNCHES = 200, GROUP = 256 };
#define MAX_COPY (UINT64_C(256) << 20)

int yk_gpu_ext_device(uint32_t device, struct yk_gpu_device **to)
{
	int err = yk_gpu_forked();

	if (err)
		return err;
	*to = yk_gpu_device_at(device);
	return *to ? 0 : YOKE_ENODEV;
}

void yk_gpu_ext_write(void *to, const void *answer)
{
	uint32_t capacity, size;

	memcpy(&capacity, to, sizeof capacity);
	memcpy(&size, answer, sizeof size);
	size = capacity < size ? capacity : size;
	memcpy(to, answer, size);
	memcpy(to, &size, sizeof size);
}

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// ---- limits ----

// Runs a kernel of limits.cl `n` times and waits. Returns a negative value on failure.
static double run_kernel(struct yk_gpu_queue *q, const struct yk_gpu_entry *k, void *buffer,
			 uint64_t rounds, int n)
{
	const struct yk_gpu_device *d = q->device;
	const size_t group = d->cpu_like ? 1 : GROUP < d->max_group ? GROUP : d->max_group;
	const size_t items =
		(size_t)(d->info.units ? d->info.units : 1) * group * (d->cpu_like ? 4 : 16);
	if (yk_gpu_driver.arg(k->kernel, 0, sizeof buffer, &buffer) ||
	    yk_gpu_driver.arg(k->kernel, 1, sizeof rounds, &rounds))
		return -1;
	const double began = seconds();
	int code = 0;
	for (int i = 0; i < n && !code; i++)
		code = yk_gpu_driver.launch(q, k->kernel, 1, &items, &group);
	if (code || yk_gpu_driver.finish(q))
		return -1;
	return seconds() - began;
}

static double items_of(const struct yk_gpu_device *d)
{
	const size_t group = d->cpu_like ? 1 : GROUP < d->max_group ? GROUP : d->max_group;
	return (double)(d->info.units ? d->info.units : 1) * (double)group * (d->cpu_like ? 4 : 16);
}

// Increases the rounds until a run takes some milliseconds, and takes the fastest of several runs.
static double flops(struct yk_gpu_queue *q, const char *name, bool f64, void *buffer)
{
	struct yk_gpu_build b = { .file = "limits.cl", .name = name };
	struct yk_gpu_device *d = q->device;
	struct yk_gpu_entry *k;
	uint64_t rounds = 256;
	double t = 0, best = -1;
	if (f64)
		yk_gpu_define(&b, "USE_F64", 1);
	else
		yk_gpu_define(&b, "VEC_WIDTH", d->vector);
	if (yk_gpu_kernel_file(d, &b, &k))
		return 0;
	while (rounds < UINT64_C(1) << 24 && (t = run_kernel(q, k, buffer, rounds, 1)) >= 0 &&
	       t < 4e-3)
		rounds *= 2;
	for (int i = 0; i < TRIES && t >= 0; i++) {
		t = run_kernel(q, k, buffer, rounds, 1);
		best = t >= 0 && (best < 0 || t < best) ? t : best;
	}
	const double lanes = f64 ? 1 : d->vector;
	return best > 0 ? 2.0 * CHAINS * (double)rounds * lanes * items_of(d) / best : 0;
}

static double copy(struct yk_gpu_queue *q)
{
	struct yk_gpu_device *d = q->device;
	uint64_t bytes = d->info.memory / 16 < MAX_COPY ? d->info.memory / 16 : MAX_COPY;
	void *buffer[2] = { NULL, NULL }, *host[2] = { NULL, NULL };
	const unsigned char zero = 0;
	double best = -1;
	bytes = bytes < d->info.max_segment ? bytes : d->info.max_segment;
	bool good = true;
	for (int i = 0; i < 2 && good; i++)
		good = !yk_gpu_driver.buffer_new(d, YOKE_SEGMENT_DEVICE, bytes, NULL, &buffer[i],
						 &host[i]) &&
		       !yk_gpu_driver.fill(q, buffer[i], 0, bytes, &zero, 1);
	good = good && !yk_gpu_driver.finish(q);
	for (int i = 0; i <= TRIES && good; i++) {
		const double began = seconds();
		good = !yk_gpu_driver.copy(q, buffer[1], 0, buffer[0], 0, bytes) &&
		       !yk_gpu_driver.finish(q);
		const double t = seconds() - began;
		best = i && good && (best < 0 || t < best) ? t : best;
	}
	for (int i = 0; i < 2; i++)
		if (buffer[i])
			yk_gpu_buffer_free(d, buffer[i], host[i]);
	return best > 0 ? 2 * (double)bytes / best : 0;
}

static void launches(struct yk_gpu_queue *q, void *buffer, struct yoke_limits *to)
{
	struct yk_gpu_build b = { .file = "limits.cl", .name = "limit_nothing" };
	struct yk_gpu_entry *k;
	yk_gpu_define(&b, "VEC_WIDTH", q->device->vector);
	if (yk_gpu_kernel_file(q->device, &b, &k) || run_kernel(q, k, buffer, 0, 1) < 0)
		return;
	for (int i = 0; i < TRIES; i++) {
		const double many = run_kernel(q, k, buffer, 0, LAUNCHES),
			     one = run_kernel(q, k, buffer, 0, 1);
		if (many < 0 || one < 0)
			return;
		if (!i || 1e9 * many / LAUNCHES < to->launch_ns)
			to->launch_ns = 1e9 * many / LAUNCHES;
		if (!i || 1e9 * one < to->wait_ns)
			to->wait_ns = 1e9 * one;
	}
}

// The device is open and its lock held.
static int measure_locked(struct yk_gpu_device *d, bool f64, struct yoke_limits *to)
{
	struct yk_gpu_queue q = { .device = d };
	void *buffer, *host = NULL;
	int err = yk_gpu_driver.queue_new(d, false, &q.queue);
	if (err)
		return err;
	err = yk_gpu_driver.buffer_new(d, YOKE_SEGMENT_DEVICE, 256, NULL, &buffer, &host);
	if (!err) {
		to->flops[yoke_f32] = flops(&q, "limit_f32", false, buffer);
		to->flops[yoke_f64] = f64 ? flops(&q, "limit_f64", true, buffer) : 0;
		to->copy = copy(&q);
		launches(&q, buffer, to);
		const int over = yk_gpu_driver.finish(&q);
		err = over;
		yk_gpu_buffer_free(d, buffer, host);
	}
	yk_gpu_driver.queue_free(q.queue);
	return err;
}

static int measure(uint32_t device, struct yoke_limits *to)
{
	struct yoke_limits full = { .size = sizeof full };
	struct yk_gpu_device *d;
	int err = yk_gpu_ext_device(device, &d);

	if (err || (err = yk_gpu_device_open(d)))
		return err;
	const bool f64 = yk_gpu_f64(d); // takes the lock itself
	pthread_mutex_lock(&d->lock);
	err = measure_locked(d, f64, &full);
	pthread_mutex_unlock(&d->lock);
	if (!err)
		yk_gpu_ext_write(to, &full);
	return err;
}

// ---- occupancy ----

static int occupancy_locked(struct yk_gpu_device *d, const struct yk_gpu_op *kind,
			    const struct yoke_op *op, uint32_t impl, struct yoke_occupancy *to)
{
	struct yk_gpu_record *r;
	int err = yk_gpu_record_new(d, kind, op, impl, &r);
	if (err)
		return err;
	size_t group = 0;
	void *kernel = yk_gpu_record_largest(r, &group);
	to->group = (uint32_t)group;
	to->warp = (uint32_t)d->warp;
	if (kernel && yk_gpu_driver.kernel_use)
		yk_gpu_driver.kernel_use(d, kernel, group, to);
	yk_gpu_record_free(r);
	return kernel ? 0 : YOKE_EUNSUPPORTED;
}

static int query_occupancy(void *queue, const struct yoke_op *op, uint32_t impl,
			   struct yoke_occupancy *to)
{
	struct yoke_occupancy full = { .size = sizeof full, .share = -1 };
	struct yk_gpu_device *d = ((struct yk_gpu_queue *)queue)->device;
	const struct yk_gpu_op *kind = yk_gpu_op_of(op);
	int err = yk_gpu_forked();

	if (err)
		return err;
	if (!kind || impl >= kind->nimpl)
		return YOKE_EUNSUPPORTED;
	pthread_mutex_lock(&d->lock);
	err = occupancy_locked(d, kind, op, impl, &full);
	pthread_mutex_unlock(&d->lock);
	if (!err)
		yk_gpu_ext_write(to, &full);
	return err;
}

const void *yk_gpu_ext(const char *name)
{
	static const struct yoke_limits_ext limits = { sizeof limits, measure };
	static const struct yoke_occupancy_ext occupancy = { sizeof occupancy, query_occupancy };

	if (!strcmp(name, "limits"))
		return &limits;
	return strcmp(name, "occupancy") ? NULL : &occupancy;
}
