// SPDX-License-Identifier: Apache-2.0
// Times implementations of a contraction.  Each is first checked against conformance cases and, at
// the extents to be timed, against sums in float64; then they are timed in turn, keeping each one's
// minimum.
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/number.h"
#include "conform/run.h"
#include "conform/sample.h"
#include "conform/tune.h"

enum {
	IMPLS = 64,
	CASES = 16,  // conformance cases, except those with a map, which would need compilation
	PLACES = 200 // elements compared at the class's extents; all must be numbers
};
static const double ROUND = 4e6, SECONDS = 0.3e9; // nanoseconds of a turn, and of all turns
enum { TURNS = 9, TOO_SLOW = 8 };                 // factor over the best: too slow to be timed
						  // again

struct problem {
	struct yk_device *device;
	struct yk_queue *queue;
	struct yk_tuning_class c;
	struct yoke_view view[3]; // y, a, b
	struct yoke_op op;
	char *host[3];
	uint64_t bytes[3], work_bytes;
	void *segment[3], *work;
	const char *name[IMPLS]; // candidates
	const char *last;        // the last one started
	bool wrong[IMPLS];
	double best[IMPLS]; // nanoseconds, 0: not measured
	FILE *to;
};

// ---- the problem ----

static void set_view(struct problem *p, int k, int64_t rows, int64_t cols, bool transposed)
{
	const struct yk_tuning_class *c = &p->c;

	p->view[k] = (struct yoke_view){ .kind = YOKE_VIEW_BUFFER,
					 .dtype = (uint8_t)c->dtype,
					 .rank = 3,
					 .align = p->device->info.align,
					 .dims = { c->batch, rows, cols },
					 .strides = { rows * cols, transposed ? 1 : cols,
						      transposed ? rows : 1 } };
}

static void describe(struct problem *p, struct yk_device *d, const struct yk_tuning_class *c)
{
	p->device = d;
	p->c = *c;
	set_view(p, 0, c->m, c->n, false);
	set_view(p, 1, c->m, c->k, c->ta);
	set_view(p, 2, c->k, c->n, c->tb);
	p->op = (struct yoke_op){ .size = sizeof p->op,
				  .code = YOKE_OP_CONTRACT,
				  .nout = 1,
				  .nin = 2,
				  .out = p->view,
				  .in = p->view + 1 };
}

int yk_tune_offered(struct yk_device *d, const struct yk_tuning_class *c)
{
	struct problem p;

	describe(&p, d, c);
	return __builtin_popcountll(yk_device_can(d, &p.op));
}

static int64_t at(const struct yoke_view *v, int64_t batch, int64_t row, int64_t col)
{
	return batch * v->strides[0] + row * v->strides[1] + col * v->strides[2];
}

static struct yk_num load(const struct problem *p, int k, int64_t element)
{
	size_t size = yoke_dtype_size(p->c.dtype);

	return yk_num_load(p->host[k] + (uint64_t)element * size, p->c.dtype);
}

// Multiples of 1/16 from -1 to 1, which every dtype represents exactly.
static void fill(struct problem *p, int k)
{
	size_t size = yoke_dtype_size(p->c.dtype);
	uint32_t state = 12345 + (uint32_t)k;

	for (uint64_t i = 0; i < p->bytes[k]; i += size) {
		state = state * 1664525 + 1013904223;
		struct yk_num x = { .f = (double)(state >> 27) / 16 - 1 };
		yk_num_store(p->host[k] + i, x, p->c.dtype);
	}
}

static int make(struct problem *p)
{
	const struct yoke_backend *ops = p->device->ops;
	uint32_t index = p->device->index;
	int err = yk_queue_new(p->device, YOKE_QUEUE_COMPUTE, &p->queue);

	for (int k = 0; k < 3 && !err; k++) {
		const struct yoke_view *v = &p->view[k];
		p->bytes[k] = (uint64_t)(v->dims[0] * v->dims[1] * v->dims[2]) *
			      yoke_dtype_size(v->dtype);
		if (!(p->host[k] = malloc(p->bytes[k])))
			return yk_fail(YOKE_ENOMEM, "no host memory for %llu bytes",
				       (unsigned long long)p->bytes[k]);
		if (k)
			fill(p, k);
		err = ops->segment_new(index, YOKE_SEGMENT_DEVICE, p->bytes[k],
				       &p->segment[k]);
		if (!err && k)
			err = ops->put(p->queue->handle, p->segment[k], 0, p->host[k],
				       p->bytes[k]);
		p->view[k].segment = p->segment[k];
	}
	return err ? err : yk_queue_wait(p->queue);
}

static void drop(struct problem *p)
{
	const struct yoke_backend *ops = p->device->ops;

	yk_queue_free(p->queue);
	for (int k = 0; k < 3; k++) {
		if (p->segment[k])
			ops->segment_free(p->device->index, p->segment[k]);
		free(p->host[k]);
	}
	if (p->work)
		ops->segment_free(p->device->index, p->work);
}

// Builds the kernels and gives the op its workspace; the caller releases *handle.
static int prepare(struct problem *p, uint32_t impl, void **handle)
{
	const struct yoke_backend *ops = p->device->ops;
	uint64_t bytes = 0;

	*handle = NULL;
	p->op.workspace = (struct yoke_view){ .kind = YOKE_VIEW_NONE };
	int err = ops->prepare(p->device->index, &p->op, impl, 0, handle, &bytes);
	if (!err && bytes > p->work_bytes) {
		if (p->work)
			ops->segment_free(p->device->index, p->work);
		p->work = NULL;
		p->work_bytes = 0;
		err = ops->segment_new(p->device->index, YOKE_SEGMENT_DEVICE, bytes,
				       &p->work);
		p->work_bytes = err ? 0 : bytes;
	}
	if (!err && bytes)
		p->op.workspace = (struct yoke_view){ .kind = YOKE_VIEW_BUFFER,
						      .segment = p->work,
						      .dtype = yoke_u8,
						      .rank = 1,
						      .align = p->device->info.align,
						      .dims = { (int64_t)bytes },
						      .strides = { 1 } };
	return err;
}

// ---- correctness ----

__attribute__((format(printf, 3, 4))) static void blame(struct problem *p, uint32_t impl,
							const char *fmt, ...)
{
	char why[300];
	va_list ap;

	va_start(ap, fmt);
	yk_vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	for (char *c = why; *c; c++)
		*c = *c == '\n' ? ' ' : *c;
	fprintf(p->to, "wrong %s %s\n", p->name[impl], why);
	p->wrong[impl] = true;
	yoke_error_clear();
}

static void met(struct problem *p, uint32_t impl)
{
	if (p->last != p->name[impl])
		fprintf(p->to, "try %s\n", p->name[impl]);
	fflush(p->to); // the process may crash in the next run
	p->last = p->name[impl];
}

// The implementation of the problem that has this name, or -1.
static int known(const struct problem *p, const char *name)
{
	for (int i = 0; i < IMPLS && name; i++)
		if (p->name[i] && !strcmp(p->name[i], name))
			return i;
	return -1;
}

// Checks cases with other extents: odd, empty, with gaps and batches.
static int check_cases(struct problem *p)
{
	const struct yk_device *d = p->device;
	struct yk_arena memory = { 0 };
	struct yk_case *c = malloc(sizeof *c);
	struct yk_runner r;
	int err = c ? yk_runner_init(&r, p->device) :
		      yk_fail(YOKE_ENOMEM, "no host memory");

	for (uint32_t number = 0; number < CASES && !err; number++) {
		if (!yk_case_make(c, yk_case_row(YOKE_OP_CONTRACT), p->c.dtype, number, 1,
				  d->info.flags, &memory)) {
			err = yk_fail(YOKE_ENOMEM, "no host memory");
			break;
		}
		uint64_t impls = c->op.map ? 0 : yk_runner_can(&r, c);
		for (uint32_t i = 0; i < IMPLS; i++) {
			if (!(impls >> i & 1))
				continue;
			int k = known(p, d->ops->impl_name(d->index, &c->op, i));
			if (k < 0 || p->wrong[k])
				continue;
			met(p, (uint32_t)k);
			struct yk_case_verdict v = yk_runner_run(&r, c, i, number % 4 == 0);
			if (!v.good)
				blame(p, (uint32_t)k, "contract.%s.%u: %s",
				      yoke_dtype_name(p->c.dtype), number, v.why);
		}
	}
	if (c)
		yk_runner_fini(&r);
	yk_arena_fini(&memory);
	free(c);
	return err;
}

// Compares one element with its sum; false: marks it wrong.
static bool check_at(struct problem *p, uint32_t impl, const int64_t i[3])
{
	struct yk_expected want;
	long double sum = 0;
	double abs = 0, unit = 2 * yk_num_unit(yk_num_acc(p->c.dtype));
	const double rounding =
		yk_case_rounding(p->device->info.flags & YOKE_DEVICE_TF32, p->c.dtype);

	for (int64_t k = 0; k < p->c.k; k++) {
		double x = load(p, 1, at(&p->view[1], i[0], i[1], k)).f;
		double z = load(p, 2, at(&p->view[2], i[0], k, i[2])).f;
		sum += (long double)x * z;
		abs += fabs(x * z);
	}
	yk_expect_real(&want, p->c.dtype, (double)sum,
		     ((4 + sqrt((double)p->c.k)) * unit + rounding) * abs);
	double got = load(p, 0, at(&p->view[0], i[0], i[1], i[2])).f;
	if (fabs(got - want.f) <= want.tol)
		return true;
	blame(p, impl, "element %lld,%lld,%lld: got %.9g, want %.9g within %.3g",
	      (long long)i[0], (long long)i[1], (long long)i[2], got, want.f, want.tol);
	return false;
}

// Checks its result, which was filled with NaN before.
static void check_result(struct problem *p, uint32_t impl)
{
	const int64_t n = p->c.batch * p->c.m * p->c.n,
		      last[3] = { p->c.batch - 1, p->c.m - 1, p->c.n - 1 };
	uint64_t state = 1;
	bool good = check_at(p, impl, last);

	for (int64_t e = 0; e < n && good; e++)
		if (!isfinite(load(p, 0, e).f)) {
			blame(p, impl, "element %lld of %lld is no number", (long long)e,
			      (long long)n);
			good = false;
		}
	for (int s = 0; s < PLACES && good; s++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		int64_t e = (int64_t)((state >> 16) % (uint64_t)n);
		const int64_t i[3] = { e / (p->c.m * p->c.n), e / p->c.n % p->c.m, e % p->c.n };
		good = check_at(p, impl, i);
	}
}

// ---- timing ----

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// Waits, and clears the queue's error, so that the next implementation starts clean.
static int settle(struct problem *p, int code)
{
	struct yk_queue_failure failure;
	int waited = yk_queue_wait(p->queue), taken = yk_queue_take(p->queue, &failure);

	return code ? code : waited ? waited : taken;
}

// Nanoseconds per run over several consecutive runs; negative: an error.
static double time_of(struct problem *p, uint32_t impl, int runs)
{
	const struct yoke_backend *ops = p->device->ops;
	void *handle;
	int err = prepare(p, impl, &handle);
	double start = now();

	for (int i = 0; i < runs && !err; i++)
		err = ops->run(p->queue->handle, handle, &p->op);
	double elapsed = settle(p, err) ? -1 : (now() - start) / runs;
	if (handle)
		ops->release(handle);
	return elapsed;
}

// Runs it at these extents and checks the result. The time of the second run counts: the first may
// load a library's kernels, which took 15 times as long as the product on an H200.
static void check_here(struct problem *p, uint32_t impl)
{
	const struct yoke_backend *ops = p->device->ops;
	void *q = p->queue->handle;

	met(p, impl);
	memset(p->host[0], 0xff, p->bytes[0]); // NaN in every dtype
	int err = ops->put(q, p->segment[0], 0, p->host[0], p->bytes[0]);
	if (settle(p, err) || time_of(p, impl, 1) < 0 ||
	    (p->best[impl] = time_of(p, impl, 1)) < 0) {
		blame(p, impl, "%s", *yoke_error() ? yoke_error() : "a launch failed");
		return;
	}
	err = ops->get(q, p->segment[0], 0, p->host[0], p->bytes[0]);
	if (settle(p, err))
		blame(p, impl, "%s", *yoke_error() ? yoke_error() : "its result is lost");
	else
		check_result(p, impl);
}

static void compete(struct problem *p)
{
	double min = INFINITY, elapsed = 0;

	for (uint32_t i = 0; i < IMPLS; i++)
		if (p->name[i] && !p->wrong[i])
			min = fmin(min, p->best[i]);
	for (int turn = 0; turn < TURNS && elapsed < SECONDS; turn++)
		for (uint32_t i = 0; i < IMPLS; i++) {
			if (!p->name[i] || p->wrong[i] || p->best[i] > TOO_SLOW * min)
				continue;
			int runs = (int)fmin(1 + ROUND / fmax(p->best[i], 1), 1000);
			met(p, i);
			double t = time_of(p, i, runs);
			elapsed += t * runs;
			if (t < 0)
				blame(p, i, "%s", yoke_error());
			else if (t < p->best[i])
				p->best[i] = t;
			if (t >= 0 && t < min)
				min = t;
		}
}

// ---- a class ----

static bool in_list(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (; *list; list += *list == ',') {
		size_t k = strcspn(list, ",");
		if (k == n && !memcmp(list, name, n))
			return true;
		list += k;
	}
	return false;
}

int yk_tune_class(struct yk_device *d, const struct yk_tuning_class *c, const char *without,
		  FILE *to)
{
	struct problem *p = calloc(1, sizeof *p);

	if (!p)
		return yk_fail(YOKE_ENOMEM, "no host memory");
	p->to = to;
	describe(p, d, c);
	uint64_t impls = yk_device_can(d, &p->op);
	for (uint32_t i = 0; i < IMPLS; i++) {
		const char *name = impls >> i & 1 ? d->ops->impl_name(d->index, &p->op, i) :
						    NULL;
		if (name && *name && !strpbrk(name, " =,\n") && !in_list(without, name))
			p->name[i] = name;
	}
	int err = make(p);
	if (!err)
		err = check_cases(p);
	for (uint32_t i = 0; i < IMPLS && !err; i++)
		if (p->name[i] && !p->wrong[i])
			check_here(p, i);
	if (!err)
		compete(p);
	for (uint32_t i = 0; i < IMPLS && !err; i++)
		if (p->name[i] && !p->wrong[i])
			yk_fprintf(to, "time %s %.0f\n", p->name[i], fmax(p->best[i], 1));
	if (!err)
		fprintf(to, "done\n");
	drop(p);
	free(p);
	return err;
}
