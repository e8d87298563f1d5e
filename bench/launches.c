// SPDX-License-Identifier: Apache-2.0
// Compares a planned step on OpenCL with the same launches made directly. This program's
// definitions of clSetKernelArg and clEnqueueNDRangeKernel precede the driver's; they record the
// calls of a step, which are then replayed in turn with whole steps (record, key, launch, wait).
// "by hand" sets all arguments of each launch, as an application would; "min" sets only the
// arguments that differ from the previous launch of the kernel, as the backend does. Prints
// medians over 51 rounds, and for the ratios also quartiles, for matrices of several widths.
//
//	YOKE_PLUGIN_PATH=.../backends/opencl/.libs YOKE_BACKEND=opencl bench/launches

#include "config.h"

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers.h"
#include "rounds.h"

enum { ROUNDS = 51, WARM = 5, MAX_CALLS = 1 << 16, MAX_ARG = 512, MAX_SET = 1 << 14 };

// ---- the driver's calls ----

static struct call {
	cl_kernel kernel;
	cl_command_queue queue; // NULL: an argument
	cl_uint index, dims;
	size_t bytes, items[3], group[3];
	bool local, grouped, kept; // kept: an argument that was not set again
	unsigned char value[MAX_ARG];
} *calls, *arguments; // arguments: the current arguments of each kernel
static size_t ncalls, nlaunches, narguments;
static bool noting, measuring;

typedef cl_int set_fn(cl_kernel, cl_uint, size_t, const void *);
typedef cl_int launch_fn(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,
			 const size_t *, cl_uint, const cl_event *, cl_event *);

static void *next(const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);

	if (!f) {
		fprintf(stderr, "bench/launches: no %s\n", name);
		exit(1);
	}
	return f;
}

static struct call *place(struct call *in, size_t *n, size_t max)
{
	if (*n == max) {
		fprintf(stderr, "bench/launches: more than %zu calls a step, or arguments\n", max);
		exit(1);
	}
	return &in[(*n)++];
}

static struct call *argument(cl_kernel kernel, cl_uint index)
{
	for (size_t i = 0; i < narguments; i++)
		if (arguments[i].kernel == kernel && arguments[i].index == index)
			return &arguments[i];
	return place(arguments, &narguments, MAX_SET);
}

__attribute__((visibility("default")))
cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes, const void *value)
{
	static set_fn *f;

	if (!f)
		*(void **)&f = next("clSetKernelArg");
	if (!measuring && bytes <= MAX_ARG) {
		struct call *c = argument(kernel, index);
		*c = (struct call){
			.kernel = kernel, .index = index, .bytes = bytes, .local = !value
		};
		if (value)
			memcpy(c->value, value, bytes);
	}
	return f(kernel, index, bytes, value);
}

static void note_arguments(cl_kernel kernel)
{
	for (size_t i = 0; i < narguments; i++)
		if (arguments[i].kernel == kernel) {
			if (noting)
				*place(calls, &ncalls, MAX_CALLS) = arguments[i];
			arguments[i].kept = true;
		}
}

__attribute__((visibility("default"))) cl_int
clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset,
		       const size_t *items, const size_t *group, cl_uint nwait,
		       const cl_event *wait, cl_event *event)
{
	static launch_fn *f;

	if (!f)
		*(void **)&f = next("clEnqueueNDRangeKernel");
	if (!measuring)
		note_arguments(kernel);
	if (noting) {
		struct call *c = place(calls, &ncalls, MAX_CALLS);
		*c = (struct call){
			.kernel = kernel, .queue = queue, .dims = dims, .grouped = group
		};
		memcpy(c->items, items, dims * sizeof *items);
		if (group)
			memcpy(c->group, group, dims * sizeof *group);
		nlaunches++;
	}
	return f(queue, kernel, dims, offset, items, group, nwait, wait, event);
}

static int by_hand(bool min)
{
	cl_command_queue queue = NULL;

	for (size_t i = 0; i < ncalls; i++) {
		struct call *c = &calls[i];
		if (c->queue)
			queue = c->queue;
		else if (min && c->kept)
			continue;
		cl_int code = c->queue ?
				      clEnqueueNDRangeKernel(c->queue, c->kernel, c->dims, NULL,
							     c->items, c->grouped ? c->group : NULL,
							     0, NULL, NULL) :
				      clSetKernelArg(c->kernel, c->index, c->bytes,
						     c->local ? NULL : c->value);
		if (code != CL_SUCCESS)
			return code;
	}
	return queue ? clFinish(queue) : 0;
}

// ---- the step ----

enum { PLANNED, HAND, MINIMAL, WAYS };

// Runs each variant once, in turn; microseconds.
static int round_of(const struct layers *l, double us[WAYS])
{
	int err = 0;

	for (int way = 0; way < WAYS && !err; way++) {
		double at = yk_seconds() * 1e6;
		err = way == PLANNED ? layers_step(l, 1) : by_hand(way == MINIMAL);
		us[way] = yk_seconds() * 1e6 - at;
	}
	return err;
}

static void print(int64_t n, double us[WAYS][ROUNDS], double ratio[WAYS][ROUNDS])
{
	printf("%6lld  %8zu", (long long)n, nlaunches);
	for (int way = 0; way < WAYS; way++) {
		qsort(us[way], ROUNDS, sizeof **us, by_value);
		qsort(ratio[way], ROUNDS, sizeof **ratio, by_value);
		printf("  %10.1f", us[way][ROUNDS / 2]);
	}
	for (int way = HAND; way < WAYS; way++)
		printf("  %6.3f (%.3f..%.3f)", ratio[way][ROUNDS / 2], ratio[way][ROUNDS / 4],
		       ratio[way][ROUNDS * 3 / 4]);
	printf("\n");
}

static int measure(int64_t n)
{
	static double us[WAYS][ROUNDS], ratio[WAYS][ROUNDS];
	struct layers l;
	int err = layers_make(&l, n);

	for (int t = 0; t < WARM && !err; t++)
		err = layers_step(&l, 1);
	ncalls = nlaunches = 0;
	noting = true;
	err = err ? err : layers_step(&l, 1);
	noting = false;
	if (!err && !nlaunches) {
		fprintf(stderr,
			"bench/launches: the step launches nothing on OpenCL: set YOKE_BACKEND=opencl\n");
		exit(1);
	}
	measuring = true;
	for (int t = 0; t < ROUNDS && !err; t++) {
		double round[WAYS];
		err = round_of(&l, round);
		for (int way = 0; way < WAYS; way++) {
			us[way][t] = round[way];
			ratio[way][t] = round[PLANNED] / round[way];
		}
	}
	measuring = false;
	if (err)
		return err;
	print(n, us, ratio);
	layers_free(&l);
	return 0;
}

int main(void)
{
	static const int64_t widths[] = { 16, 64, 128, 256 };

	calls = malloc(MAX_CALLS * sizeof *calls);
	arguments = malloc(MAX_SET * sizeof *arguments);
	if (!calls || !arguments)
		return 1;
	printf(" width  launches  planned us  by hand us    least us  to by hand"
	       "               to least\n");
	for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
		if (measure(widths[i])) {
			fprintf(stderr, "bench/launches: %s\n", yoke_error());
			return 1;
		}
	free(calls);
	free(arguments);
	return 0;
}
