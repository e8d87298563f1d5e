// SPDX-License-Identifier: Apache-2.0
// Whether a device computes in f64: what it advertises counts once the kernel of cl/f64.cl has given
// the host's own results.
#include "config.h"

#include <math.h>
#include <string.h>

#include "opencl.h"

enum { INPUTS = 4, ALL = 14 };
enum { UNKNOWN, GOOD, BAD };

// As the kernel's x; volatile, so that it is the processor that computes.
static void expected(double x[ALL])
{
	const volatile double a = 1 + 0x1p-30, b = -3 + 0x1p-49, tiny = 0x3p-1073,
			      big = 0x1p1000;
	const volatile double product = a * b;
	const double all[ALL] = { a,
				  b,
				  tiny,
				  big,
				  a + b,
				  a - b,
				  product,
				  a / b,
				  sqrt(a),
				  product - a,
				  tiny * 0.5,
				  big * a,
				  (double)(int64_t)(a * 1e15),
				  (double)(float)a };

	memcpy(x, all, sizeof all);
}

static int run_kernel(struct yk_cl_queue *q, struct yk_cl_segment *s, double x[ALL])
{
	struct yk_cl_device *d = q->device;
	struct yk_cl_entry *kernel;
	const size_t one = 1;
	int err = yk_cl_kernel_file(d, "f64.cl", "-DUSE_F64", "f64_results", &kernel);

	if (err)
		return err;
	struct yk_cl_args args = { kernel->kernel, 0, CL_SUCCESS };
	yk_cl_arg_segment(&args, s);
	if ((err = yk_cl_launch(q, &args, 1, &one, &one, "f64_results")))
		return err;
	cl_int code = clEnqueueReadBuffer(q->queue, s->mem, CL_TRUE, 0, ALL * sizeof *x,
					  x, 0, NULL, NULL);
	return yk_cl_check(d, "clEnqueueReadBuffer", code);
}

// On a queue and a buffer of its own.
static int results(struct yk_cl_device *d, double x[ALL])
{
	struct yk_cl_queue q = { .device = d };
	struct yk_cl_segment s = { .device = d, .bytes = ALL * sizeof *x };
	cl_int code;

	q.queue = clCreateCommandQueue(d->context, d->id, 0, &code);
	if (code != CL_SUCCESS)
		return yk_cl_fail(d, "clCreateCommandQueue", code);
	s.mem = clCreateBuffer(d->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
			       s.bytes, x, &code);
	int err = yk_cl_check(d, "clCreateBuffer", code);
	if (!err) {
		err = run_kernel(&q, &s, x);
		clFinish(q.queue);
		yk_cl_release(d, s.mem);
	}
	clReleaseCommandQueue(q.queue);
	return err;
}

static int test(struct yk_cl_device *d)
{
	double want[ALL], got[ALL];

	expected(want);
	memset(got, 0xff, sizeof got);
	memcpy(got, want, INPUTS * sizeof *got);
	if (results(d, got)) {
		yk_cl_log(YOKE_LOG_WARN,
			  "opencl:%u (%s) offers f64, but its test fails: without f64",
			  d->index, d->info.name);
		return BAD;
	}
	for (int i = 0; i < ALL; i++)
		if (memcmp(&want[i], &got[i], sizeof *got)) {
			yk_cl_log(
				YOKE_LOG_WARN,
				"opencl:%u (%s) offers f64, but result %d of its test is "
				"%a and not %a: without f64",
				d->index, d->info.name, i - INPUTS, got[i], want[i]);
			return BAD;
		}
	return GOOD;
}

bool yk_cl_f64(struct yk_cl_device *d)
{
	int state = __atomic_load_n(&d->f64, __ATOMIC_ACQUIRE);

	if (state != UNKNOWN || !(d->info.flags & YOKE_DEVICE_F64))
		return state == GOOD;
	if (yk_cl_forked() || yk_cl_device_open(d))
		return false;
	pthread_mutex_lock(&d->lock);
	if ((state = d->f64) == UNKNOWN)
		__atomic_store_n(&d->f64, state = test(d), __ATOMIC_RELEASE);
	pthread_mutex_unlock(&d->lock);
	return state == GOOD;
}
