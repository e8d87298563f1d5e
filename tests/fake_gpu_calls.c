// SPDX-License-Identifier: Apache-2.0
// Tests the fake drivers (tests/fake_gpu) through the vendor's own calls: kernels compute what
// loops on the host compute, and defects of kernels, copies or synchronization are detected.
// Compiled once for each vendor.
#include "config.h"

#include <dlfcn.h>
#include <sys/wait.h>

#include "fake_gpu/vendor.h"
#include "tap.h"

// ---- the libraries ----

#define X(library, need, result, symbol, params) result(*symbol) params;
static struct {
	FAKE_CALLS(X)
} call;
#undef X

enum library { DRIVER, COMPILER, PRODUCTS, TELEMETRY, RANGES, COLLECTIVES, BLAS };
static const char *const files[] = {
	TWIN("libcuda.so.1", "libamdhip64.so.6"),
	TWIN("libnvrtc.so.13", "libhiprtc.so.6"),
	TWIN("libcublasLt.so.13", "libhipblaslt.so.1"),
	TWIN("libnvidia-ml.so.1", "librocm_smi64.so.7"),
	TWIN("libnvToolsExt.so.1", "libroctx64.so.4"),
	TWIN("libnccl.so.2", "librccl.so.1"),
#ifdef FAKE_HIP
	"librocblas.so.4",
#endif
};

enum { LIBRARIES = sizeof files / sizeof *files };
static const char *missing; // the first missing symbol

static void find(void *const *library, enum library of, const char *name, void **to)
{
	if (!(*to = dlsym(library[of], name)) && !missing)
		missing = name;
}

static bool open_libraries(void)
{
	const char *folder = getenv("YOKE_TEST_FAKE");
	void *library[LIBRARIES] = { NULL };
	char path[4096];

	for (size_t i = 0; i < LIBRARIES; i++) {
		snprintf(path, sizeof path, "%s/%s", folder ? folder : ".", files[i]);
		if (!(library[i] = dlopen(path, RTLD_NOW | RTLD_LOCAL))) {
			diag("%s", dlerror());
			return false;
		}
	}
#define X(of, need, result, symbol, params) find(library, of, #symbol, (void **)&call.symbol);
	FAKE_CALLS(X)
#undef X
	return !missing;
}

#define STREAM TWIN(CUstream, hipStream_t)
#define EVENT TWIN(CUevent, hipEvent_t)
#define FUNCTION TWIN(CUfunction, hipFunction_t)
#define MODULE TWIN(CUmodule, hipModule_t)
#define ADDRESS TWIN(CUdeviceptr, hipDeviceptr_t)
#define CALL(cuda, hip) call.TWIN(cuda, hip)
#define AT(p) ((ADDRESS)(uintptr_t)(p))

static const char *name_of(int code)
{
#ifdef FAKE_HIP
	return call.hipGetErrorName(code);
#else
	const char *name = NULL;
	return call.cuGetErrorName(code, &name) ? "no such code" : name;
#endif
}

// Is it the expected value?
static bool is(int code, int want, const char *what)
{
	return ok(code == want, "%s: %s", what, name_of(code));
}

#define DO(expression) \
	do { \
		const int code_ = (expression); \
		if (code_) { \
			ok(false, "%s: %s", #expression, name_of(code_)); \
			return; \
		} \
	} while (0)

static int current;

static int use_device(int device)
{
	current = device;
#ifdef FAKE_HIP
	return call.hipSetDevice(device);
#else
	CUcontext context;
	const int code = call.cuDevicePrimaryCtxRetain(&context, device);
	return code ? code : call.cuCtxSetCurrent(context);
#endif
}

static void *device_memory(size_t bytes)
{
	TWIN(CUdeviceptr, void *) p = 0;

	return CALL(cuMemAlloc_v2, hipMalloc)(&p, bytes) ? NULL : TO_POINTER(p);
}

static STREAM new_stream(void)
{
	STREAM s = NULL;

	CALL(cuStreamCreate, hipStreamCreateWithFlags)(&s, 1);
	return s;
}

static EVENT new_event(void)
{
	EVENT e = NULL;

	CALL(cuEventCreate, hipEventCreateWithFlags)(&e, 0);
	return e;
}

static int put(void *to, const void *from, size_t bytes, STREAM s)
{
	return CALL(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync)(AT(to), (void *)(uintptr_t)from,
							      bytes, s);
}

static int get(void *to, void *from, size_t bytes, STREAM s)
{
	return CALL(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync)(to, AT(from), bytes, s);
}

static int finish(STREAM s)
{
	return CALL(cuStreamSynchronize, hipStreamSynchronize)(s);
}

static int launch(FUNCTION f, unsigned groups, unsigned items, STREAM s, void **params)
{
	return CALL(cuLaunchKernel, hipModuleLaunchKernel)(f, groups, 1, 1, items, 1, 1, 0, s,
							   params, NULL);
}

// ---- texts ----

static const char shuffles[] =
#ifdef FAKE_HIP
	"#define SHUFFLE_XOR(x, by) __shfl_xor(x, by)\n"
	"#define SHUFFLE_DOWN(x, by) __shfl_down(x, by)\n"
	"#define BALLOT(x) __ballot(x)\n";
#else
	"#define SHUFFLE_XOR(x, by) __shfl_xor_sync(0xffffffffu, x, by)\n"
	"#define SHUFFLE_DOWN(x, by) __shfl_down_sync(0xffffffffu, x, by)\n"
	"#define BALLOT(x) __ballot_sync(0xffffffffu, x)\n";
#endif

static const char text[] =
	"struct three { long n; double scale; char c; };\n"
	"#define K extern \"C\" __global__ void\n"
	"K scale(float *y, const float *x, three s)\n"
	"{ long i = (long)blockIdx.x * blockDim.x + threadIdx.x;\n"
	"	if (i < s.n) y[i] = (float)(s.scale * x[i]) + (float)s.c; }\n"
	"K __launch_bounds__((8) * (16)) sum(double *y, const float *x)\n"
	"{ __shared__ double s[128]; int t = threadIdx.y * 8 + threadIdx.x;\n"
	"	s[t] = x[blockIdx.x * 128 + t]; __syncthreads();\n"
	"	for (int w = 64; w; w /= 2) { if (t < w) s[t] += s[t + w]; __syncthreads(); }\n"
	"	if (!t) y[blockIdx.x] = s[0]; }\n"
	"K warps(float *y, const float *x)\n"
	"{ int t = threadIdx.x; float v = x[t];\n"
	"	for (int w = warpSize / 2; w; w /= 2) v += SHUFFLE_XOR(v, w);\n"
	"	y[t] = v; y[t + blockDim.x] = SHUFFLE_DOWN(x[t], 3);\n"
	"	unsigned long long b = BALLOT(x[t] > 0);\n"
	"	y[t + 2 * blockDim.x] = (float)(__popcll(b) * 2 + (b >> (t % warpSize) & 1)); }\n"
	"K count(unsigned *bins, const unsigned *x) { atomicAdd(&bins[x[blockIdx.x * blockDim.x + threadIdx.x] % 7], 1u); }\n"
	"K spin(volatile int *go) { while (!*go) ; }\n"
	"K add(int *x, int by) { x[threadIdx.x] += by; }\n"
	"K missing(float *y) { __shared__ float s[64]; s[threadIdx.x] = 1.0f; y[threadIdx.x] = s[63 - threadIdx.x]; }\n"
	"K diverged(int *x) { if (threadIdx.x < 5) __syncthreads(); x[threadIdx.x] = 1; }\n"
	"K elsewhere(int *x) { if (threadIdx.x < 5)\n__syncthreads();\nelse\n__syncthreads();\nx[threadIdx.x] = 1; }\n"
	"K torn(float *x) { if (threadIdx.x & 1) x[threadIdx.x] = SHUFFLE_XOR(x[0], 2); else __syncthreads(); }\n"
	"K over(float *x, int n) { x[(int)(blockIdx.x * blockDim.x + threadIdx.x) + n] = 1.0f; }\n"
	"struct __align__(16) quad { unsigned w[4]; };\n"
	"K odd(char *x, int n) { quad q = *(const quad *)(x + n); *(quad *)(x + 32) = q; }\n"
	"K over_local(float *x, int n) { __shared__ float a[31], b[64]; b[threadIdx.x] = a[threadIdx.x % 31] = 1.0f;\n"
	"	x[threadIdx.x] = b[threadIdx.x] + a[(int)threadIdx.x + n]; }\n";

static FUNCTION kernel(const char *name)
{
	static MODULE modules[2];
	MODULE module = modules[current];
	FUNCTION f = NULL;
	char *whole = malloc(sizeof shuffles + sizeof text);

	if (!module) {
		TWIN(nvrtcProgram, hiprtcProgram) p;
		static const char *const options[] = {
			TWIN("--gpu-architecture=sm_80", "--offload-arch=gfx90a"), "-DUNUSED=1"
		};
		size_t bytes = 0;
		snprintf(whole, sizeof shuffles + sizeof text, "%s%s", shuffles, text);
		CALL(nvrtcCreateProgram, hiprtcCreateProgram)(&p, whole, "text", 0, NULL, NULL);
		const int code = CALL(nvrtcCompileProgram, hiprtcCompileProgram)(
			p, 2, (const char **)(uintptr_t)options);
		if (code) {
			CALL(nvrtcGetProgramLogSize, hiprtcGetProgramLogSize)(p, &bytes);
			char *log = malloc(bytes);
			CALL(nvrtcGetProgramLog, hiprtcGetProgramLog)(p, log);
			diag("%s", log);
			free(log);
		} else {
			CALL(nvrtcGetCUBINSize, hiprtcGetCodeSize)(p, &bytes);
			char *binary = malloc(bytes);
			CALL(nvrtcGetCUBIN, hiprtcGetCode)(p, binary);
			CALL(cuModuleLoadData, hipModuleLoadData)(&modules[current], binary);
			module = modules[current];
			free(binary);
		}
		CALL(nvrtcDestroyProgram, hiprtcDestroyProgram)(&p);
	}
	if (module)
		CALL(cuModuleGetFunction, hipModuleGetFunction)(&f, module, name);
	free(whole);
	return f;
}

// ---- kernels ----

enum { N = 1000 };

static void test_kernels(void)
{
	float x[N], y[3 * 256];
	unsigned k[N / 10 * 10], bins[7] = { 0 }, want_bins[7] = { 0 };
	double sums[7];
	const STREAM s = new_stream();
	void *dx = device_memory(sizeof x), *dy = device_memory(sizeof x),
	     *dk = device_memory(sizeof k);
	struct {
		long n;
		double scale;
		char c;
	} by = { N - 3, 1.25, 7 };
	int wrong = 0, at = -1;

	for (int i = 0; i < N; i++)
		x[i] = (float)rnd_real(-1, 1);
	DO(put(dx, x, sizeof x, s));
	DO(CALL(cuMemsetD32Async, hipMemsetD32Async)(AT(dy), 0x7fc00000, N, s));
	DO(launch(kernel("scale"), 8, 128, s, (void *[]){ &dy, &dx, &by }));
	float *all = malloc(sizeof x);
	DO(get(all, dy, sizeof x, s));
	for (int i = 0; i < N; i++)
		if (i < by.n ? all[i] != (float)(by.scale * x[i]) + by.c : all[i] == all[i])
			wrong++, at = i;
	ok(!wrong, "a map with a struct by value: %d wrong, [%d]", wrong, at);
	free(all);

	DO(CALL(cuLaunchKernel, hipModuleLaunchKernel)(kernel("sum"), 7, 1, 1, 8, 16, 1, 0, s,
						       (void *[]){ &dy, &dx }, NULL));
	DO(get(sums, dy, sizeof sums, s));
	double worst = 0;
	for (int g = 0; g < 7; g++) {
		double want = 0;
		for (int i = 0; i < 128; i++)
			want += x[g * 128 + i];
		worst = fmax(worst, fabs(want - sums[g]));
	}
	ok(worst < 1e-12, "sums in local memory, by barriers: off by %g", worst);

	const int warp = TWIN(32, 64);
	DO(launch(kernel("warps"), 1, 256, s, (void *[]){ &dy, &dx }));
	DO(get(y, dy, sizeof y, s));
	worst = wrong = 0;
	for (int i = 0; i < 256; i++) {
		double want = 0;
		int positive = 0;
		for (int l = 0; l < warp; l++) {
			want += x[i / warp * warp + l];
			positive += x[i / warp * warp + l] > 0;
		}
		worst = fmax(worst, fabs(want - y[i]));
		wrong += y[256 + i] != x[i % warp + 3 < warp ? i + 3 : i];
		wrong += y[512 + i] != (float)(2 * positive + (x[i] > 0));
	}
	ok(worst < 1e-5, "sums by shuffles of warps of %d: off by %g", warp, worst);
	ok(!wrong, "shuffles down and ballots: %d wrong", wrong);

	for (int i = 0; i < N; i++)
		want_bins[(k[i] = (unsigned)rnd()) % 7]++;
	DO(put(dk, k, sizeof k, s));
	DO(put(dy, bins, sizeof bins, s));
	DO(launch(kernel("count"), N / 10, 10, s, (void *[]){ &dy, &dk }));
	DO(get(bins, dy, sizeof bins, s));
	ok(!memcmp(bins, want_bins, sizeof bins), "atomics");

	// A missing barrier is found, because unwritten memory is NaN and groups start from either
	// end.
	DO(launch(kernel("missing"), 1, 64, s, (void *[]){ &dy }));
	DO(get(y, dy, 64 * sizeof *y, s));
	wrong = 0;
	for (int i = 0; i < 64; i++)
		wrong += y[i] != 1.0f;
	ok(wrong > 0, "a missing barrier shows in %d of 64 elements", wrong);
}

// ---- kernels that are wrong ----

static const char *said_path(void)
{
	static char path[4096];
	const char *folder = getenv("TMPDIR");

	snprintf(path, sizeof path, "%s/said", folder ? folder : "/tmp");
	return path;
}

static void says(const char *what, const char *want)
{
	char line[1024] = "", all[4096] = "";
	FILE *f = fopen(said_path(), "r");

	while (f && fgets(line, sizeof line, f))
		snprintf(all + strlen(all), sizeof all - strlen(all), "%s", line);
	if (f)
		fclose(f);
	ok(strstr(all, want) && strchr(all, '\n') == strrchr(all, '\n'), "%s: %.*s", what,
	   (int)strcspn(all, "\n"), all);
}

// Runs in its own process, because the device is lost.
static void fails(const char *name, unsigned groups, unsigned items, int by, size_t bytes, int want,
		  const char *said)
{
	fflush(stdout);
	const pid_t pid = fork();
	if (!pid) {
		tap_failed = 0;
		setenv("YOKE_FAKE_CHECK", "1", 1);
		if (!freopen(said_path(), "w", stderr) || !open_libraries() ||
		    CALL(cuInit, hipInit)(0) || use_device(0))
			_exit(9);
		const STREAM s = new_stream();
		void *memory = device_memory(bytes);
		int code = launch(kernel(name), groups, items, s, (void *[]){ &memory, &by });
		if (code)
			_exit(8);
		code = finish(s);
		fflush(stderr);
		// the error is sticky
		if (finish(s) != code ||
		    (code && launch(kernel("add"), 1, 1, s, (void *[]){ &memory, &by }) != code))
			_exit(7);
		_exit(code == want ? 0 : 6);
	}
	int status = -1;
	waitpid(pid, &status, 0);
	ok(WIFEXITED(status) && !WEXITSTATUS(status),
	   "%s by %d in %u: code %d, in a process with status %d", name, by, items, want, status);
	if (said)
		says(name, said);
}

static void test_wrong_kernels(void)
{
	const bool is_gcc =
		!system("${YOKE_FAKE_CXX:-g++} --version 2>/dev/null | grep -q 'Free Software'");

	fails("over", 4, 25, 0, 400, OK, NULL);
	fails("over", 4, 25, 1, 400, ILLEGAL_ADDRESS,
	      "kernel over: a store of 4 bytes at 0x");
	says("where", ": 0 bytes behind the end of 400, block (3,0,0), thread (24,0,0)");
	fails("over", 4, 25, -1, 400, ILLEGAL_ADDRESS,
	      ": 4 bytes before the start of 400, block (0,0,0), thread (0,0,0)");
	fails("over", 1, 2, 1, 7, ILLEGAL_ADDRESS, ": 4 bytes into memory of 7, ");
	fails("odd", 1, 2, 0, 400, OK, NULL);
	fails("over_local", 1, 31, 0, 400, OK, NULL);
	if (is_gcc) { // clang does not check these
		fails("over_local", 1, 31, 1, 400, ILLEGAL_ADDRESS, "a load of 4 bytes at 0x");
		fails("odd", 1, 2, 8, 400, MISALIGNED,
		      " wants to lie at a multiple of 16, block (0,0,0)");
	}
	fails("over", 1, 1, 1 << 28, 400, ILLEGAL_ADDRESS, "is outside of all memory");
	fails("diverged", 1, 5, 0, 400, OK, NULL);
	fails("diverged", 1, 6, 0, 400, LAUNCH_FAILED, "waits at the barrier of line ");
	says("which", "thread (5,0,0) has ended");
	fails("elsewhere", 1, 5, 0, 400, OK, NULL);
	fails("elsewhere", 1, 6, 0, 400, LAUNCH_FAILED, "barrier divergence");
	fails("torn", 1, 32, 0, 400, LAUNCH_FAILED, "waits at the exchange of its warp of line ");
}

// ---- order ----

static void test_streams(void)
{
	const STREAM a = new_stream(), b = new_stream();
	const EVENT start = new_event(), e = new_event(), f = new_event();
	int x[8] = { 0 }, two = 2, three = 3, got[8];
	void *dx = device_memory(sizeof x), *go = NULL;
	float ms = -1;

	DO(CALL(cuMemHostAlloc, hipHostMalloc)(&go, 4, 0));
	*(volatile int *)go = 0;
	DO(CALL(cuEventRecord, hipEventRecord)(start, a));
	is(CALL(cuEventQuery, hipEventQuery)(f), OK, "an event that is nowhere is over");
	DO(put(dx, x, sizeof x, a));
	DO(launch(kernel("spin"), 1, 1, a, (void *[]){ &go }));
	DO(launch(kernel("add"), 1, 8, a, (void *[]){ &dx, &two }));
	DO(CALL(cuEventRecord, hipEventRecord)(e, a));
	DO(CALL(cuStreamWaitEvent, hipStreamWaitEvent)(b, e, 0));
	DO(CALL(cuMemsetD8Async, hipMemsetD8Async)(AT(dx), 0xff, 4, b));
	DO(CALL(cuEventRecord, hipEventRecord)(f, b));
	is(CALL(cuEventQuery, hipEventQuery)(e), NOT_READY, "a stream runs beside the host");
	is(CALL(cuEventQuery, hipEventQuery)(f), NOT_READY, "another waits for it");
	is(CALL(cuEventElapsedTime, hipEventElapsedTime)(&ms, start, e), NOT_READY,
	   "a time that is not known");
	*(volatile int *)go = 1;
	is(CALL(cuEventSynchronize, hipEventSynchronize)(f), OK, "both are over");
	is(CALL(cuEventElapsedTime, hipEventElapsedTime)(&ms, start, f), OK, "a time");
	ok(ms >= 0, "%g ms", ms);
	DO(launch(kernel("add"), 1, 8, b, (void *[]){ &dx, &three }));
	DO(get(got, dx, sizeof got, b));
	ok(got[0] == 2 && got[1] == 5 && got[7] == 5, "in order: %d %d", got[0], got[1]);
	is(CALL(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync)(AT(dx), AT((char *)dx + 4), sizeof x, a),
	   INVALID_VALUE, "a copy of more than there is");
	is(launch(kernel("sum"), 1, 129, a, (void *[]){ &dx, &dx }), INVALID_VALUE,
	   "more items than the kernel's bounds");
}

static void test_graphs(void)
{
	const STREAM a = new_stream(), b = new_stream();
	const EVENT e = new_event(), f = new_event();
	TWIN(CUgraph, hipGraph_t) graph = NULL;
	TWIN(CUgraphExec, hipGraphExec_t) exec = NULL;
	int x[2] = { 0 }, one = 1, ten = 10;
	void *p = device_memory(sizeof x), *q = (char *)p + 4;

	DO(put(p, x, sizeof x, a));
	DO(finish(a));
	DO(CALL(cuStreamBeginCapture_v2, hipStreamBeginCapture)(a, 1));
	DO(launch(kernel("add"), 1, 1, a, (void *[]){ &p, &one }));
	DO(CALL(cuEventRecord, hipEventRecord)(e, a));
	DO(CALL(cuStreamWaitEvent, hipStreamWaitEvent)(b, e, 0));
	DO(launch(kernel("add"), 1, 1, b, (void *[]){ &q, &ten }));
	DO(CALL(cuEventRecord, hipEventRecord)(f, b));
	DO(CALL(cuStreamWaitEvent, hipStreamWaitEvent)(a, f, 0));
	one = 50; // they were accepted
	DO(CALL(cuStreamEndCapture, hipStreamEndCapture)(a, &graph));
	DO(get(x, p, sizeof x, a));
	ok(!x[0] && !x[1], "captured work does not run");
	DO(CALL(cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags)(&exec, graph, 0));
	DO(CALL(cuGraphDestroy, hipGraphDestroy)(graph));
	for (int i = 0; i < 3; i++)
		DO(CALL(cuGraphLaunch, hipGraphLaunch)(exec, a));
	DO(CALL(cuGraphExecDestroy, hipGraphExecDestroy)(exec));
	DO(get(x, p, sizeof x, a));
	ok(x[0] == 3 && x[1] == 30, "three replays of two streams: %d %d", x[0], x[1]);

	DO(CALL(cuStreamBeginCapture_v2, hipStreamBeginCapture)(a, 1));
	is(finish(a), CAPTURE_UNSUPPORTED, "nobody waits for what is captured");
	is(CALL(cuStreamEndCapture, hipStreamEndCapture)(a, &graph), CAPTURE_INVALIDATED,
	   "that ends it");
	DO(CALL(cuStreamBeginCapture_v2, hipStreamBeginCapture)(a, 1));
	ok(!device_memory(4), "no memory is available meanwhile");
	is(CALL(cuStreamEndCapture, hipStreamEndCapture)(a, &graph), CAPTURE_INVALIDATED,
	   "that ends it");
	DO(CALL(cuStreamBeginCapture_v2, hipStreamBeginCapture)(a, 1));
	DO(CALL(cuEventRecord, hipEventRecord)(e, a));
	DO(CALL(cuStreamWaitEvent, hipStreamWaitEvent)(b, e, 0));
	is(CALL(cuStreamEndCapture, hipStreamEndCapture)(a, &graph), CAPTURE_UNJOINED,
	   "a stream that nobody waited for");
	is(finish(b), OK, "which goes on");
}

// ---- products, of columns: d = op(a) op(b) + bias, not below 0 ----

#define OF(cuda, hip) TWIN(CUBLAS##cuda, HIPBLAS##hip)
#define LAYOUT TWIN(cublasLtMatrixLayout_t, hipblasLtMatrixLayout_t)

static LAYOUT layout_of(uint64_t rows, uint64_t cols, int64_t ld, int64_t step)
{
	LAYOUT l = NULL;
	const int32_t two = 2;

	CALL(cublasLtMatrixLayoutCreate, hipblasLtMatrixLayoutCreate)
	(&l, TWIN(CUDA_R_32F, HIP_R_32F), rows, cols, ld);
	CALL(cublasLtMatrixLayoutSetAttribute, hipblasLtMatrixLayoutSetAttribute)(l,
		OF(LT_MATRIX_LAYOUT_BATCH_COUNT, LT_MATRIX_LAYOUT_BATCH_COUNT), &two, sizeof two);
	CALL(cublasLtMatrixLayoutSetAttribute, hipblasLtMatrixLayoutSetAttribute)
	(l, OF(LT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, LT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET), &step,
	 sizeof step);
	return l;
}

static void test_product(bool transpose_a, bool transpose_b)
{
	enum { M = 7, COLS = 5, K = 6, LD = 8, STEP = 80, BYTES = 2 * STEP * sizeof(float) };
	float a[2 * STEP], b[2 * STEP], d[2 * STEP], bias[M], one = 1, zero = 0;
	const STREAM s = new_stream();
	void *da = device_memory(BYTES), *db = device_memory(BYTES), *dd = device_memory(BYTES),
	     *dbias = device_memory(sizeof bias);
	const LAYOUT la = layout_of(transpose_a ? K : M, transpose_a ? M : K, LD, STEP),
		     lb = layout_of(transpose_b ? COLS : K, transpose_b ? K : COLS, LD, STEP),
		     ld = layout_of(M, COLS, LD, STEP);
	const int32_t op[2] = { transpose_a ? OF(_OP_T, _OP_T) : OF(_OP_N, _OP_N),
				transpose_b ? OF(_OP_T, _OP_T) : OF(_OP_N, _OP_N) };
	const int32_t epilogue = OF(LT_EPILOGUE_RELU_BIAS, LT_EPILOGUE_RELU_BIAS);
	TWIN(cublasLtHandle_t, hipblasLtHandle_t) h = NULL;
	TWIN(cublasLtMatmulDesc_t, hipblasLtMatmulDesc_t) desc = NULL;
	TWIN(cublasLtMatmulPreference_t, hipblasLtMatmulPreference_t) preference = NULL;
	TWIN(cublasLtMatmulHeuristicResult_t, hipblasLtMatmulHeuristicResult_t) algo[4];
	int found = 0;
	double worst = 0;

	for (int i = 0; i < 2 * STEP; i++) {
		a[i] = (float)rnd_real(-1, 1);
		b[i] = (float)rnd_real(-1, 1);
	}
	for (int i = 0; i < M; i++)
		bias[i] = (float)rnd_real(-1, 1);
	DO(put(da, a, sizeof a, s));
	DO(put(db, b, sizeof b, s));
	DO(put(dbias, bias, sizeof bias, s));
	CALL(cublasLtCreate, hipblasLtCreate)(&h);
	CALL(cublasLtMatmulDescCreate, hipblasLtMatmulDescCreate)
	(&desc, OF(_COMPUTE_32F, _COMPUTE_32F), TWIN(CUDA_R_32F, HIP_R_32F));
#define SET(what, value) \
	CALL(cublasLtMatmulDescSetAttribute, hipblasLtMatmulDescSetAttribute) \
	(desc, OF(LT_MATMUL_DESC_##what, LT_MATMUL_DESC_##what), value, sizeof *(value))
	SET(TRANSA, &op[0]);
	SET(TRANSB, &op[1]);
	SET(EPILOGUE, &epilogue);
	SET(BIAS_POINTER, &dbias);
	CALL(cublasLtMatmulPreferenceCreate, hipblasLtMatmulPreferenceCreate)(&preference);
	CALL(cublasLtMatmulAlgoGetHeuristic, hipblasLtMatmulAlgoGetHeuristic)
	(h, desc, la, lb, ld, ld, preference, 4, algo, &found);
	ok(found == 1 && !algo[0].workspaceSize, "one algorithm needs no workspace");
#define MATMUL(to) \
	CALL(cublasLtMatmul, hipblasLtMatmul) \
	(h, desc, &one, da, la, db, lb, &zero, to, ld, to, ld, &algo[0].algo, NULL, 0, (void *)s)
	ok(MATMUL((char *)dd + 400) != 0, "a product outside of memory is refused");
#ifndef FAKE_HIP
	algo[0].algo.data[4] = 128;
	ok(MATMUL((char *)dd + 4) != 0, "an operand that is less aligned than stated is refused");
#endif
	ok(MATMUL(dd) == 0, "a product");
	DO(get(d, dd, sizeof d, s));
	for (int z = 0; z < 2; z++)
		for (int i = 0; i < M; i++)
			for (int j = 0; j < COLS; j++) {
				double want = bias[i];
				for (int k = 0; k < K; k++)
					want += (double)a[z * STEP +
							  (transpose_a ? k + i * LD : i + k * LD)] *
						b[z * STEP +
						  (transpose_b ? j + k * LD : k + j * LD)];
				worst = fmax(worst, fabs(fmax(want, 0) - d[z * STEP + i + j * LD]));
			}
	ok(worst < 1e-6, "transposed %d %d: off by %g", transpose_a, transpose_b, worst);
	CALL(cublasLtMatmulPreferenceDestroy, hipblasLtMatmulPreferenceDestroy)(preference);
	CALL(cublasLtMatmulDescDestroy, hipblasLtMatmulDescDestroy)(desc);
	CALL(cublasLtMatrixLayoutDestroy, hipblasLtMatrixLayoutDestroy)(la);
	CALL(cublasLtMatrixLayoutDestroy, hipblasLtMatrixLayoutDestroy)(lb);
	CALL(cublasLtMatrixLayoutDestroy, hipblasLtMatrixLayoutDestroy)(ld);
	CALL(cublasLtDestroy, hipblasLtDestroy)(h);
}

static void test_products(void)
{
	for (int i = 0; i < 4; i++)
		test_product(i & 1, i >> 1);
}

// ---- settings ----

static void test_settings(void)
{
	size_t free_bytes = 0, total = 0;
	int x[64], y[64] = { 0 };
	int can = 0;
	void *a = device_memory(600000), *b;

	ok(a && !device_memory(600000), "no more memory than YOKE_FAKE_MEMORY");
	DO(CALL(cuMemGetInfo_v2, hipMemGetInfo)(&free_bytes, &total));
	ok(total == 1000000 && free_bytes == 400000, "free: %zu of %zu", free_bytes, total);
	is(CALL(cuMemFree_v2, hipFree)((TWIN(CUdeviceptr, void *))(uintptr_t)a), OK, "free");
	is(CALL(cuMemFree_v2, hipFree)((TWIN(CUdeviceptr, void *))(uintptr_t)a), INVALID_VALUE,
	   "free once more");
	ok((a = device_memory(sizeof x)) != NULL, "freed memory is available again");
	DO(CALL(cuDeviceCanAccessPeer, hipDeviceCanAccessPeer)(&can, 0, 1));
	DO(use_device(1));
	b = device_memory(sizeof x);
	for (int i = 0; i < 64; i++)
		x[i] = (int)rnd();
	const STREAM s = new_stream();
	DO(put(a, x, sizeof x, s));
	DO(CALL(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync)(AT(b), AT(a), sizeof x, s));
	DO(get(y, b, sizeof y, s));
	ok(can && memcmp(x, y, sizeof x), "a corrupting copy between peers");
	DO(get(y, a, sizeof y, s));
	ok(!memcmp(x, y, sizeof x), "copies on a single device are correct");
	const EVENT e = new_event();
	is(CALL(cuEventRecord, hipEventRecord)(e, s), OK, "the first record");
	is(CALL(cuEventRecord, hipEventRecord)(e, s), 999, "the second of YOKE_FAKE_FAIL");
	is(CALL(cuEventRecord, hipEventRecord)(e, s), OK, "the third");
	void *p = b;
	int by = 1;
	DO(launch(kernel("add"), 1, 1, s, (void *[]){ &p, &by }));
	is(finish(s), OK, "the first kernel");
	DO(launch(kernel("add"), 1, 1, s, (void *[]){ &p, &by }));
	is(finish(s), LAUNCH_FAILED, "the second, which is lost where it runs");
	ok(!device_memory(4), "the device is lost");
	DO(use_device(0));
	ok(device_memory(4) != NULL, "the other device still works");
}

// Runs a test in a process that loads the libraries under these settings.
static void with(const char *what, void (*test)(void), const char *const *settings)
{
	fflush(stdout);
	int status = -1, counted[2] = { 0, 0 };
	FILE *f = tmpfile();
	const pid_t pid = fork();
	if (!pid) {
		for (; settings && *settings; settings += 2)
			setenv(settings[0], settings[1], 1);
		ok(open_libraries(), "%s: the libraries%s%s", what, missing ? " lack " : "",
		   missing ? missing : "");
		if (!tap_failed && is(CALL(cuInit, hipInit)(0), OK, "init") &&
		    is(use_device(0), OK, "device 0") && ok(kernel("scale"), "a text compiles"))
			test();
		rewind(f);
		fprintf(f, "%d %d", tap_count, tap_failed);
		fflush(f);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	rewind(f);
	const bool whole = fscanf(f, "%d %d", &counted[0], &counted[1]) == 2;
	fclose(f);
	if (whole) {
		tap_count = counted[0];
		tap_failed = counted[1];
	}
	ok(whole && WIFEXITED(status) && !WEXITSTATUS(status), "%s ended", what);
}

static bool has_compiler(void)
{
	return !system(
		"${YOKE_FAKE_CXX:-g++} --version >/dev/null 2>&1 || c++ --version >/dev/null 2>&1 || "
		"clang++ --version >/dev/null 2>&1");
}

int main(void)
{
	static const char *const delays[] = { "YOKE_FAKE_DELAY", "7", NULL };
	static const char *const checks[] = { "YOKE_FAKE_CHECK", "1", NULL };
	static const char *const settings[] = {
		"YOKE_FAKE_MEMORY",
		"1000000",
		"YOKE_FAKE_DEVICES",
		"2",
		"YOKE_FAKE_PEER",
		"lie",
		"YOKE_FAKE_FAIL",
		TWIN("cuEventRecord:2:CUDA_ERROR_UNKNOWN,kernel:2:CUDA_ERROR_LAUNCH_FAILED",
		     "hipEventRecord:2:hipErrorUnknown,kernel:2:hipErrorLaunchFailure"),
		NULL,
	};

	if (!getenv("YOKE_TEST_FAKE"))
		return skip_all("YOKE_TEST_FAKE does not name the fake drivers");
	if (!has_compiler())
		return skip_all("no C++ compiler");
	tap_seed();
	with("kernels", test_kernels, NULL);
	with("kernels, each access checked", test_kernels, checks);
	test_wrong_kernels();
	with("streams", test_streams, NULL);
	with("streams with delays", test_streams, delays);
	with("graphs", test_graphs, NULL);
	with("graphs with delays", test_graphs, delays);
	with("products", test_products, NULL);
	with("settings", test_settings, settings);
	return done();
}
