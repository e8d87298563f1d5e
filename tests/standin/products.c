// SPDX-License-Identifier: Apache-2.0
// The calls of cuBLASLt and, compiled with STANDIN_HIP, of hipBLASLt: products in loops, in a stream of the driver's
// stand-in, which is there already.
#include "config.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "vendor.h"

#define STANDIN_DECLARE_DRIVER STANDIN_NO
#define STANDIN_DECLARE_COMPILER STANDIN_NO
#define STANDIN_DECLARE_PRODUCTS STANDIN_YES
#define STANDIN_DECLARE_TELEMETRY STANDIN_NO
STANDIN_CALLS(STANDIN_DECLARE)

#define STATUS TWIN(cublasStatus_t, hipblasStatus_t)
#define TYPE TWIN(cudaDataType_t, hipDataType)
#define HANDLE TWIN(cublasLtHandle_t, hipblasLtHandle_t)
#define DESC TWIN(cublasLtMatmulDesc_t, hipblasLtMatmulDesc_t)
#define LAYOUT TWIN(cublasLtMatrixLayout_t, hipblasLtMatrixLayout_t)
#define PREFERENCE TWIN(cublasLtMatmulPreference_t, hipblasLtMatmulPreference_t)
#define HEURISTIC TWIN(cublasLtMatmulHeuristicResult_t, hipblasLtMatmulHeuristicResult_t)
#define ALGO TWIN(cublasLtMatmulAlgo_t, hipblasLtMatmulAlgo_t)
#define OF(cuda, hip) TWIN(CUBLAS##cuda, HIPBLAS##hip)

enum { INVALID = TWIN(7, 3), EXECUTION_FAILED = TWIN(13, 6), WORKSPACE = 4096 };

struct desc {
	TYPE scale;
	int transpose[2], epilogue;
	const void *bias;
};

struct layout {
	TYPE type;
	uint64_t rows, cols;
	int64_t ld, stride;
	int32_t batch;
};

struct preference {
	uint64_t workspace;
	uint32_t align[4]; // bytes, of a, b, c and d
};

struct product {
	struct desc desc;
	struct layout a, b, c, d;
	double alpha, beta;
	const void *a_at, *b_at, *c_at;
	void *d_at;
};

int standin_code_of(const char *name)
{
	static const struct {
		const char *name;
		int code;
	} codes[] = {
		{ TWIN("CUBLAS_STATUS_NOT_INITIALIZED", "HIPBLAS_STATUS_NOT_INITIALIZED"), 1 },
		{ TWIN("CUBLAS_STATUS_ALLOC_FAILED", "HIPBLAS_STATUS_ALLOC_FAILED"), OF(_STATUS_ALLOC_FAILED, _STATUS_ALLOC_FAILED) },
		{ TWIN("CUBLAS_STATUS_NOT_SUPPORTED", "HIPBLAS_STATUS_NOT_SUPPORTED"), OF(_STATUS_NOT_SUPPORTED, _STATUS_NOT_SUPPORTED) },
		{ TWIN("CUBLAS_STATUS_EXECUTION_FAILED", "HIPBLAS_STATUS_EXECUTION_FAILED"), EXECUTION_FAILED },
	};

	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (!strcmp(codes[i].name, name))
			return codes[i].code;
	return 0; // another library's
}

#define ENTER(cuda, hip) \
	do { \
		const int fault = standin_fault(TWIN(#cuda, #hip)); \
		if (fault) \
			return fault; \
	} while (0)

// ---- numbers ----

static float f32_of_bits(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof x);
	return x;
}

static uint32_t bits_of_f32(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof bits);
	return bits;
}

static float f32_of_f16(uint16_t h)
{
	const uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 0x3ff;
	const float x = e == 31 ? f32_of_bits(0x7f800000 | m << 13) : e ? f32_of_bits((e + 112) << 23 | m << 13) :
									  (float)m * 0x1p-24f;

	return sign ? -x : x;
}

static uint16_t f16_of_f32(float x)
{
	const uint16_t sign = bits_of_f32(x) >> 16 & 0x8000;
	const uint32_t b = bits_of_f32(x) & 0x7fffffff;

	if (b > 0x7f800000)
		return sign | 0x7e00;
	if (b >= 0x477ff000)
		return sign | 0x7c00;
	if (b >= 0x38800000)
		return sign | (uint16_t)((b - 0x38000000 + 0xfff + (b >> 13 & 1)) >> 13);
	// a multiple of 2^-24: the sum rounds to one
	return sign | (uint16_t)(bits_of_f32(f32_of_bits(b) + 0.5f) - bits_of_f32(0.5f));
}

static uint16_t bf16_of_f32(float x)
{
	const uint32_t b = bits_of_f32(x);

	return x != x ? (uint16_t)(b >> 16 | 0x40) : (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

static size_t bytes_of(TYPE type)
{
	return type == TWIN(CUDA_R_64F, HIP_R_64F) ? 8 : type == TWIN(CUDA_R_32F, HIP_R_32F) ? 4 : 2;
}

static double load(const void *at, TYPE type, int64_t i)
{
	switch (type) {
	case TWIN(CUDA_R_64F, HIP_R_64F): return ((const double *)at)[i];
	case TWIN(CUDA_R_32F, HIP_R_32F): return (double)((const float *)at)[i];
	case TWIN(CUDA_R_16F, HIP_R_16F): return (double)f32_of_f16(((const uint16_t *)at)[i]);
	default: return (double)f32_of_bits((uint32_t)((const uint16_t *)at)[i] << 16);
	}
}

static void store(void *at, TYPE type, int64_t i, double x)
{
	switch (type) {
	case TWIN(CUDA_R_64F, HIP_R_64F): ((double *)at)[i] = x; break;
	case TWIN(CUDA_R_32F, HIP_R_32F): ((float *)at)[i] = (float)x; break;
	case TWIN(CUDA_R_16F, HIP_R_16F): ((uint16_t *)at)[i] = f16_of_f32((float)x); break;
	default: ((uint16_t *)at)[i] = bf16_of_f32((float)x); break;
	}
}

// ---- products: matrices lie by columns ----

static void run(void *arg)
{
	const struct product *p = arg;
	const int64_t m = (int64_t)p->d.rows, n = (int64_t)p->d.cols;
	const int64_t k = (int64_t)(p->desc.transpose[0] ? p->a.rows : p->a.cols);
	const int64_t a_m = p->desc.transpose[0] ? p->a.ld : 1, a_k = p->desc.transpose[0] ? 1 : p->a.ld;
	const int64_t b_k = p->desc.transpose[1] ? p->b.ld : 1, b_n = p->desc.transpose[1] ? 1 : p->b.ld;

	for (int64_t z = 0; z < p->d.batch; z++)
		for (int64_t j = 0; j < n; j++)
			for (int64_t i = 0; i < m; i++) {
				double sum = 0;
				for (int64_t l = 0; l < k; l++)
					sum += load(p->a_at, p->a.type, z * p->a.stride + i * a_m + l * a_k) *
					       load(p->b_at, p->b.type, z * p->b.stride + l * b_k + j * b_n);
				sum *= p->alpha;
				if (p->beta != 0)
					sum += p->beta * load(p->c_at, p->c.type, z * p->c.stride + j * p->c.ld + i);
				if (p->desc.epilogue & 4)
					sum += load(p->desc.bias, p->d.type, i);
				if (p->desc.epilogue & 2)
					sum = sum > 0 || sum != sum ? sum : 0;
				store(p->d_at, p->d.type, z * p->d.stride + j * p->d.ld + i, sum);
			}
}

static bool fits(const struct product *p)
{
	const uint64_t m = p->d.rows, n = p->d.cols;
	const uint64_t k = p->desc.transpose[0] ? p->a.rows : p->a.cols;

	return (p->desc.transpose[0] ? p->a.cols : p->a.rows) == m && (p->desc.transpose[1] ? p->b.cols : p->b.rows) == k &&
	       (p->desc.transpose[1] ? p->b.rows : p->b.cols) == n && p->c.rows == m && p->c.cols == n &&
	       p->a.batch == p->d.batch && p->b.batch == p->d.batch && p->c.batch == p->d.batch && p->a.type == p->b.type &&
	       (p->a.type == TWIN(CUDA_R_64F, HIP_R_64F)) == (p->desc.scale == TWIN(CUDA_R_64F, HIP_R_64F)) &&
	       (p->desc.epilogue == 1 || p->desc.epilogue == 2 || p->desc.epilogue == 4 || p->desc.epilogue == 6);
}

static void *of_driver(const char *name)
{
	void *driver = dlopen(TWIN("libcuda.so.1", "libamdhip64.so.6"), RTLD_NOW | RTLD_NOLOAD);
	void *symbol = driver ? dlsym(driver, name) : NULL;

	if (driver)
		dlclose(driver);
	return symbol;
}

// Is all of a matrix in memory of the driver's?
static bool is_there(const void *at, const struct layout *l)
{
	bool (*within)(const void *, size_t);
	const size_t last = (size_t)((l->batch - 1) * l->stride + (int64_t)(l->cols - 1) * l->ld) + l->rows;

	*(void **)&within = of_driver("standin_within");
	return within && (l->batch == 1 || l->stride >= 0) && within(at, last * bytes_of(l->type));
}

// ---- handles ----

STATUS TWIN(cublasLtCreate, hipblasLtCreate)(HANDLE *handle)
{
	ENTER(cublasLtCreate, hipblasLtCreate);
	*handle = calloc(1, 1);
	return *handle ? 0 : OF(_STATUS_ALLOC_FAILED, _STATUS_ALLOC_FAILED);
}

STATUS TWIN(cublasLtDestroy, hipblasLtDestroy)(const HANDLE handle)
{
	free(TO_POINTER(handle));
	return standin_fault(TWIN("cublasLtDestroy", "hipblasLtDestroy"));
}

#ifdef STANDIN_HIP
hipblasStatus_t hipblasLtGetVersion(hipblasLtHandle_t handle, int *version)
{
	(void)handle;
	ENTER(, hipblasLtGetVersion);
	*version = 1000;
	return 0;
}
#else
size_t cublasLtGetVersion(void)
{
	return (size_t)standin_number("CUBLASLT", 130000);
}

const char *cublasLtGetStatusName(cublasStatus_t code)
{
	switch (code) {
	case 0: return "CUBLAS_STATUS_SUCCESS";
	case 1: return "CUBLAS_STATUS_NOT_INITIALIZED";
	case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
	case INVALID: return "CUBLAS_STATUS_INVALID_VALUE";
	case EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
	case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
	}
	return "unknown";
}
#endif

// One that is to be freed by `free`.
static STATUS give(void *made, void **to)
{
	*to = made;
	return made ? 0 : OF(_STATUS_ALLOC_FAILED, _STATUS_ALLOC_FAILED);
}

STATUS TWIN(cublasLtMatmulDescCreate, hipblasLtMatmulDescCreate)(DESC *desc,
	TWIN(cublasComputeType_t, hipblasComputeType_t) compute, TYPE scale)
{
	ENTER(cublasLtMatmulDescCreate, hipblasLtMatmulDescCreate);
	(void)compute;
	struct desc *d = calloc(1, sizeof *d);
	if (d) {
		d->scale = scale;
		d->epilogue = 1;
	}
	return give(d, (void **)desc);
}

STATUS TWIN(cublasLtMatmulDescDestroy, hipblasLtMatmulDescDestroy)(const DESC desc)
{
	free(TO_POINTER(desc));
	return standin_fault(TWIN("cublasLtMatmulDescDestroy", "hipblasLtMatmulDescDestroy"));
}

STATUS TWIN(cublasLtMatmulDescSetAttribute, hipblasLtMatmulDescSetAttribute)(DESC desc,
	TWIN(cublasLtMatmulDescAttributes_t, hipblasLtMatmulDescAttributes_t) what, const void *value, size_t bytes)
{
	struct desc *d = TO_POINTER(desc);
	int32_t number;

	ENTER(cublasLtMatmulDescSetAttribute, hipblasLtMatmulDescSetAttribute);
	if (what == OF(LT_MATMUL_DESC_BIAS_POINTER, LT_MATMUL_DESC_BIAS_POINTER)) {
		if (bytes != sizeof d->bias)
			return INVALID;
		memcpy(&d->bias, value, sizeof d->bias);
		return 0;
	}
	if (bytes != sizeof number)
		return INVALID;
	memcpy(&number, value, sizeof number);
	if (what == OF(LT_MATMUL_DESC_EPILOGUE, LT_MATMUL_DESC_EPILOGUE))
		d->epilogue = number;
	else if (what == OF(LT_MATMUL_DESC_TRANSA, LT_MATMUL_DESC_TRANSA))
		d->transpose[0] = number == OF(_OP_T, _OP_T);
	else if (what == OF(LT_MATMUL_DESC_TRANSB, LT_MATMUL_DESC_TRANSB))
		d->transpose[1] = number == OF(_OP_T, _OP_T);
	else
		return INVALID;
	return 0;
}

STATUS TWIN(cublasLtMatrixLayoutCreate, hipblasLtMatrixLayoutCreate)(LAYOUT *layout, TYPE type, uint64_t rows,
	uint64_t cols, int64_t ld)
{
	ENTER(cublasLtMatrixLayoutCreate, hipblasLtMatrixLayoutCreate);
	struct layout *l = calloc(1, sizeof *l);
	if (l)
		*l = (struct layout){ type, rows, cols, ld, 0, 1 };
	return give(l, (void **)layout);
}

STATUS TWIN(cublasLtMatrixLayoutDestroy, hipblasLtMatrixLayoutDestroy)(const LAYOUT layout)
{
	free(TO_POINTER(layout));
	return standin_fault(TWIN("cublasLtMatrixLayoutDestroy", "hipblasLtMatrixLayoutDestroy"));
}

STATUS TWIN(cublasLtMatrixLayoutSetAttribute, hipblasLtMatrixLayoutSetAttribute)(LAYOUT layout,
	TWIN(cublasLtMatrixLayoutAttribute_t, hipblasLtMatrixLayoutAttribute_t) what, const void *value, size_t bytes)
{
	struct layout *l = TO_POINTER(layout);

	ENTER(cublasLtMatrixLayoutSetAttribute, hipblasLtMatrixLayoutSetAttribute);
	if (what == OF(LT_MATRIX_LAYOUT_BATCH_COUNT, LT_MATRIX_LAYOUT_BATCH_COUNT) && bytes == sizeof l->batch)
		memcpy(&l->batch, value, bytes);
	else if (what == OF(LT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, LT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) &&
		 bytes == sizeof l->stride)
		memcpy(&l->stride, value, bytes);
	else
		return INVALID;
	return 0;
}

STATUS TWIN(cublasLtMatmulPreferenceCreate, hipblasLtMatmulPreferenceCreate)(PREFERENCE *preference)
{
	ENTER(cublasLtMatmulPreferenceCreate, hipblasLtMatmulPreferenceCreate);
	struct preference *p = calloc(1, sizeof *p);
	if (p)
		for (int i = 0; i < 4; i++)
			p->align[i] = TWIN(256, 1); // hipBLASLt is promised nothing
	return give(p, (void **)preference);
}

STATUS TWIN(cublasLtMatmulPreferenceDestroy, hipblasLtMatmulPreferenceDestroy)(const PREFERENCE preference)
{
	free(TO_POINTER(preference));
	return standin_fault(TWIN("cublasLtMatmulPreferenceDestroy", "hipblasLtMatmulPreferenceDestroy"));
}

STATUS TWIN(cublasLtMatmulPreferenceSetAttribute, hipblasLtMatmulPreferenceSetAttribute)(PREFERENCE preference,
	TWIN(cublasLtMatmulPreferenceAttributes_t, hipblasLtMatmulPreferenceAttributes_t) what, const void *value,
	size_t bytes)
{
	struct preference *p = TO_POINTER(preference);

	ENTER(cublasLtMatmulPreferenceSetAttribute, hipblasLtMatmulPreferenceSetAttribute);
#ifndef STANDIN_HIP
	const int operand = what - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
	if (operand >= 0 && operand < 4 && bytes == sizeof *p->align) {
		memcpy(&p->align[operand], value, bytes);
		return p->align[operand] ? 0 : INVALID;
	}
	if (what == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK && bytes == sizeof(uint32_t))
		return 0; // its sums are in one piece
#endif
	if (what != OF(LT_MATMUL_PREF_MAX_WORKSPACE_BYTES, LT_MATMUL_PREF_MAX_WORKSPACE_BYTES) ||
	    bytes != sizeof p->workspace)
		return INVALID;
	memcpy(&p->workspace, value, bytes);
	return 0;
}

// Two algorithms: one that needs no workspace, and, the better, one that needs some.
STATUS TWIN(cublasLtMatmulAlgoGetHeuristic, hipblasLtMatmulAlgoGetHeuristic)(HANDLE handle, DESC desc, LAYOUT a,
	LAYOUT b, LAYOUT c, LAYOUT d, PREFERENCE preference, int wanted, HEURISTIC *to, int *found)
{
	const struct preference *p = TO_POINTER(preference);
	struct product q = { .desc = *(const struct desc *)TO_POINTER(desc), .a = *(const struct layout *)TO_POINTER(a),
			     .b = *(const struct layout *)TO_POINTER(b), .c = *(const struct layout *)TO_POINTER(c),
			     .d = *(const struct layout *)TO_POINTER(d) };

	ENTER(cublasLtMatmulAlgoGetHeuristic, hipblasLtMatmulAlgoGetHeuristic);
	*found = 0;
	if (!handle || wanted < 1)
		return INVALID;
	if (!fits(&q))
		return OF(_STATUS_NOT_SUPPORTED, _STATUS_NOT_SUPPORTED);
	for (int id = 1; id >= 0 && *found < wanted; id--) {
		if (id && p->workspace < WORKSPACE)
			continue;
		memset(&to[*found], 0, sizeof *to);
		to[*found].algo.data[0] = (uint8_t)(id + 1);
		for (int i = 0; i < 4; i++)
			to[*found].algo.data[1 + i] = (uint8_t)(p->align[i] < 128 ? p->align[i] : 128);
		to[*found].workspaceSize = id ? WORKSPACE : 0;
		to[*found].wavesCount = 1;
		++*found;
	}
	return 0;
}

// Where the heuristic was told that they would lie?
static bool is_aligned(const ALGO *algo, const struct product *p)
{
	const void *const at[] = { p->a_at, p->b_at, p->c_at, p->d_at };

	for (int i = 0; i < 4; i++)
		if (algo && algo->data[1 + i] && (uintptr_t)at[i] % algo->data[1 + i])
			return false;
	return true;
}

STATUS TWIN(cublasLtMatmul, hipblasLtMatmul)(HANDLE handle, DESC desc, const void *alpha, const void *a, LAYOUT a_layout,
	const void *b, LAYOUT b_layout, const void *beta, const void *c, LAYOUT c_layout, void *d, LAYOUT d_layout,
	const ALGO *algo, void *work, size_t work_bytes, TWIN(cudaStream_t, hipStream_t) stream)
{
	int (*enqueue)(void *, void (*)(void *), void *);

	ENTER(cublasLtMatmul, hipblasLtMatmul);
	*(void **)&enqueue = of_driver("standin_enqueue");
	if (!enqueue)
		return 1; // not initialised
	if (!handle || (algo && algo->data[0] != 1 && algo->data[0] != 2) ||
	    (algo && algo->data[0] == 2 && (!work || work_bytes < WORKSPACE)))
		return INVALID;
	struct product *p = calloc(1, sizeof *p);
	if (!p)
		return OF(_STATUS_ALLOC_FAILED, _STATUS_ALLOC_FAILED);
	*p = (struct product){ .desc = *(const struct desc *)TO_POINTER(desc),
			       .a = *(const struct layout *)TO_POINTER(a_layout),
			       .b = *(const struct layout *)TO_POINTER(b_layout),
			       .c = *(const struct layout *)TO_POINTER(c_layout),
			       .d = *(const struct layout *)TO_POINTER(d_layout),
			       .a_at = a, .b_at = b, .c_at = c, .d_at = d };
	p->alpha = load(alpha, p->desc.scale, 0);
	p->beta = load(beta, p->desc.scale, 0);
	if (!fits(p) || !is_aligned(algo, p) || !is_there(a, &p->a) || !is_there(b, &p->b) || !is_there(d, &p->d) ||
	    (p->beta != 0 && !is_there(c, &p->c)) ||
	    ((p->desc.epilogue & 4) && !is_there(p->desc.bias, &(struct layout){ p->d.type, p->d.rows, 1, 1, 0, 1 }))) {
		free(p);
		return INVALID;
	}
	return enqueue(stream, run, p) ? EXECUTION_FAILED : 0;
}
