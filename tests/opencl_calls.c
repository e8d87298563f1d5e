// SPDX-License-Identifier: Apache-2.0
// Observes and fails the driver calls of a planned step on OpenCL (this program's definitions of
// the calls precede the driver's). The host never waits inside a step, and each failure is an
// error that names call, code, kernel, sizes, op, scope and device.
#include "config.h"

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>

#include "device/device.h"
#include "tap.h"
#include "yoke.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum call { LAUNCH, ARGUMENT, BUFFER, WAIT, FLUSH, BUILD, CALLS };
static int count[CALLS];
static cl_int fails[CALLS]; // what it returns ..
static int times[CALLS];    // .. so often

// Records the call; returns its failure, if it must fail.
static cl_int note(enum call c)
{
	count[c]++;
	return times[c] > 0 && times[c]-- ? fails[c] : CL_SUCCESS;
}

static void forget(void)
{
	memset(count, 0, sizeof count);
	memset(times, 0, sizeof times);
}

static void arm(enum call c, cl_int code, int n)
{
	forget();
	fails[c] = code;
	times[c] = n;
}

// The driver's function of a name, cached in `f`.
#define NEXT(f, name) \
	(f ? (void)0 : (void)(*(void **)&f = dlsym(RTLD_NEXT, name)))

__attribute__((visibility("default")))
cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes, const void *value)
{
	static cl_int (*f)(cl_kernel, cl_uint, size_t, const void *);
	NEXT(f, "clSetKernelArg");
	cl_int code = note(ARGUMENT);
	return code ? code : f(kernel, index, bytes, value);
}

__attribute__((visibility("default"))) cl_int
clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset,
		       const size_t *items, const size_t *group, cl_uint nwait,
		       const cl_event *wait, cl_event *event)
{
	static cl_int (*f)(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,
			   const size_t *, cl_uint, const cl_event *, cl_event *);
	NEXT(f, "clEnqueueNDRangeKernel");
	cl_int code = note(LAUNCH);
	return code ? code : f(queue, kernel, dims, offset, items, group, nwait, wait, event);
}

__attribute__((visibility("default")))
cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *to)
{
	static cl_mem (*f)(cl_context, cl_mem_flags, size_t, void *, cl_int *);
	NEXT(f, "clCreateBuffer");
	cl_int code = note(BUFFER);
	if (!code)
		return f(context, flags, bytes, host, to);
	*to = code;
	return NULL;
}

__attribute__((visibility("default")))
cl_int clFinish(cl_command_queue queue)
{
	static cl_int (*f)(cl_command_queue);
	NEXT(f, "clFinish");
	note(WAIT);
	return f(queue);
}

// Completed work is not waited for.
__attribute__((visibility("default")))
cl_int clWaitForEvents(cl_uint n, const cl_event *events)
{
	static cl_int (*f)(cl_uint, const cl_event *);
	cl_int status = CL_COMPLETE;
	NEXT(f, "clWaitForEvents");
	for (cl_uint i = 0; i < n && status == CL_COMPLETE; i++)
		clGetEventInfo(events[i], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status,
			       NULL);
	if (status != CL_COMPLETE)
		note(WAIT);
	return f(n, events);
}

__attribute__((visibility("default"))) cl_int
clEnqueueReadBuffer(cl_command_queue queue, cl_mem mem, cl_bool blocking, size_t at, size_t bytes,
		    void *to, cl_uint nwait, const cl_event *wait, cl_event *event)
{
	static cl_int (*f)(cl_command_queue, cl_mem, cl_bool, size_t, size_t, void *, cl_uint,
			   const cl_event *, cl_event *);
	NEXT(f, "clEnqueueReadBuffer");
	if (blocking)
		note(WAIT);
	return f(queue, mem, blocking, at, bytes, to, nwait, wait, event);
}

__attribute__((visibility("default")))
cl_int clFlush(cl_command_queue queue)
{
	static cl_int (*f)(cl_command_queue);
	NEXT(f, "clFlush");
	note(FLUSH);
	return f(queue);
}

__attribute__((visibility("default"))) cl_int
clBuildProgram(cl_program program, cl_uint n, const cl_device_id *devices, const char *options,
	       void(CL_CALLBACK *notify)(cl_program, void *), void *data)
{
	static cl_int (*f)(cl_program, cl_uint, const cl_device_id *, const char *,
			   void(CL_CALLBACK *)(cl_program, void *), void *);
	NEXT(f, "clBuildProgram");
	note(BUILD);
	return f(program, n, devices, options, notify, data);
}

// ---- steps ----

enum { N = 8, LAYERS = 12, STEPS = 6 };

// A layer is a softmax, a product and a map; all layers, a gradient and an update.
static void steps(void)
{
	yoke_tensor *w[LAYERS], *g[LAYERS];
	int waits = 0, launches = 0, flushes = 0, builds = 0, err = 0;
	float loss[STEPS];

	for (int i = 0; i < LAYERS; i++) {
		float x[N * N];
		for (int k = 0; k < N * N; k++)
			x[k] = (float)rnd_real(-1, 1);
		w[i] = yoke_variable("w", yoke_f32, 2, DIMS(N, N));
		yoke_put(w[i], x, sizeof x);
	}
	for (int t = 0; t < STEPS && !err; t++) {
		yoke_scope *s = yoke_scope_begin("step");
		yoke_tensor *h = w[0];
		for (int i = 1; i < LAYERS; i++)
			h = yoke_tanh(yoke_matmul(yoke_softmax(h, -1), w[i], 0));
		yoke_tensor *l = yoke_mean(yoke_square(h), YOKE_ALL);
		yoke_grad(l, LAYERS, w, g);
		for (int i = 0; i < LAYERS; i++)
			yoke_assign(w[i], yoke_sub(w[i], yoke_mul(g[i], yoke_const(0.5))));
		forget();
		err = yoke_eval(1, &l);
		// the first step plans and builds, the second finds plans of both layouts
		if (t >= 2) {
			waits += count[WAIT];
			launches += count[LAUNCH];
			flushes += count[FLUSH];
			builds += count[BUILD];
		}
		if (!err)
			err = yoke_read(l, &loss[t], sizeof *loss);
		yoke_scope_end(s);
	}
	ok(!err && loss[STEPS - 1] < loss[0], "steps: %g to %g %s", (double)loss[0],
	   (double)loss[STEPS - 1], yoke_error());
	ok(launches >= (STEPS - 2) * 3 * LAYERS && !waits && !builds,
	   "%d launches, %d waits inside a step, %d builds", launches, waits, builds);
	ok(flushes >= launches / 16, "%d flushes", flushes);
	yoke_error_clear();
	for (int i = 0; i < LAYERS; i++)
		yoke_free(w[i]);
}

// ---- failures ----

// The square of a row, in a new context; returns the code.
static int evaluate(bool *right)
{
	static int n = 4; // a different one each time: equal arguments are not set
	float x[64], got[64];

	n++;
	for (int i = 0; i < n; i++)
		x[i] = (float)rnd_int(-99, 99);
	memset(got, 0xff, sizeof got);
	yoke_context *ctx = yoke_context_new("opencl"), *former = yoke_use(ctx);
	yoke_scope *s = yoke_scope_begin("outer");
	yoke_tensor *y = yoke_square(yoke_from(yoke_f32, 1, DIMS(n), x));
	int err = yoke_eval(1, &y);
	if (!err)
		err = yoke_read(y, got, (size_t)n * sizeof *got);
	*right = !err;
	for (int i = 0; i < n; i++)
		*right &= got[i] == x[i] * x[i];
	yoke_scope_end(s);
	yoke_use(former);
	yoke_context_free(ctx);
	return err;
}

static void failing(enum call c, cl_int code, int want, const char *const *words)
{
	const char *missing = NULL;
	bool right;

	arm(c, code, 1 << 20);
	int err = evaluate(&right);
	for (int i = 0; words[i]; i++)
		if (!strstr(yoke_error(), words[i]))
			missing = words[i];
	ok(err == want && !missing, "%s is %s: %s%s%s", words[0], yoke_error_name(err),
	   yoke_error(), missing ? ", without " : "", missing ? missing : "");
	yoke_error_clear();
	forget();
	err = evaluate(&right);
	ok(right, "and the next step works %s", yoke_error());
	yoke_error_clear();
}

static void failures(const char *name)
{
	bool right;

	arm(LAUNCH, CL_OUT_OF_RESOURCES, 1);
	int err = evaluate(&right);
	ok(!err && right && count[LAUNCH] == 2, "one out-of-resources error: %d attempts %s",
	   count[LAUNCH], yoke_error());
	arm(LAUNCH, CL_MEM_OBJECT_ALLOCATION_FAILURE, 1);
	err = evaluate(&right);
	ok(!err && right && count[LAUNCH] == 2,
	   "one out-of-memory error for an object: %d attempts %s", count[LAUNCH], yoke_error());
	yoke_error_clear();
	failing(LAUNCH, CL_OUT_OF_RESOURCES, YOKE_ENOMEM,
		(const char *[]){ "clEnqueueNDRangeKernel", "CL_OUT_OF_RESOURCES", "work items",
				  "a map", "square", "outer", "opencl:0", name, NULL });
	failing(LAUNCH, CL_INVALID_WORK_GROUP_SIZE, YOKE_EDEVICE,
		(const char *[]){ "clEnqueueNDRangeKernel", "CL_INVALID_WORK_GROUP_SIZE",
				  "work items", "a map", "square", "outer", "opencl:0", name,
				  NULL });
	failing(ARGUMENT, CL_INVALID_ARG_SIZE, YOKE_EDEVICE,
		(const char *[]){ "clSetKernelArg", "CL_INVALID_ARG_SIZE", "a map", "square",
				  "outer", "opencl:0", name, NULL });
}

// Requests more than the pool has.
static void memory(const char *name)
{
	const int64_t n = 40 << 20;

	arm(BUFFER, CL_MEM_OBJECT_ALLOCATION_FAILURE, 1 << 20);
	yoke_tensor *x = yoke_variable("x", yoke_u8, 1, &n);
	int err = yoke_error_code();
	ok(!x && err == YOKE_ENOMEM && strstr(yoke_error(), "CL_MEM_OBJECT_ALLOCATION_FAILURE") &&
		   strstr(yoke_error(), "clCreateBuffer") && strstr(yoke_error(), name) &&
		   strstr(yoke_error(), "40.00 MiB"),
	   "a buffer that cannot be allocated: %s", yoke_error());
	yoke_error_clear();
	forget();
	x = yoke_variable("x", yoke_u8, 1, &n);
	ok(x, "and the next one can %s", yoke_error());
	yoke_free(x);
}

int main(void)
{
	const char *module = getenv("YOKE_TEST_OPENCL");
	const char *name = NULL;
	size_t n;

	if (!module)
		return skip_all("YOKE_TEST_OPENCL does not name the module");
	if (tap_eager())
		return skip_all("each op is waited for");
	char *folder = strdup(module);
	*strrchr(folder, '/') = 0;
	setenv("YOKE_PLUGIN_PATH", folder, 1);
	setenv("YOKE_SELFTEST", "0", 1); // its calls would count
	free(folder);
	tap_seed();
	yoke_context *ctx = yoke_context_new("opencl");
	if (!ctx)
		return skip_all(yoke_error());
	yoke_use(ctx);
	struct yk_device *const *found = yk_devices_found("opencl", &n);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(found[i]->id, "opencl:0"))
			name = found[i]->info.name;
	steps();
	failures(name);
	memory(name);
	yoke_use(NULL);
	yoke_context_free(ctx);
	return done();
}
