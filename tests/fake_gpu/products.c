// SPDX-License-Identifier: Apache-2.0
// Fake cuBLASLt and, compiled with FAKE_HIP, hipBLASLt: products by plain loops, in a stream of
// the fake driver, which must be loaded already.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "multiply.h"

#define FAKE_OF_PRODUCTS ~, FAKE_YES
FAKE_CALLS(FAKE_DECLARE)

#define STATUS TWIN(cublasStatus_t, hipblasStatus_t)
#define HANDLE TWIN(cublasLtHandle_t, hipblasLtHandle_t)
#define DESC TWIN(cublasLtMatmulDesc_t, hipblasLtMatmulDesc_t)
#define LAYOUT TWIN(cublasLtMatrixLayout_t, hipblasLtMatrixLayout_t)
#define PREFERENCE TWIN(cublasLtMatmulPreference_t, hipblasLtMatmulPreference_t)
#define HEURISTIC TWIN(cublasLtMatmulHeuristicResult_t, hipblasLtMatmulHeuristicResult_t)
#define ALGO TWIN(cublasLtMatmulAlgo_t, hipblasLtMatmulAlgo_t)
#define OF(cuda, hip) TWIN(CUBLAS##cuda, HIPBLAS##hip)

enum { INVALID = TWIN(7, 3), EXECUTION_FAILED = TWIN(13, 6), WORKSPACE = 4096 };

struct preference {
	uint64_t workspace;
	uint32_t align[4]; // alignments in bytes of a, b, c and d
};

int fake_code_of(const char *name)
{
	static const struct {
		const char *name;
		int code;
	} codes[] = {
		{ TWIN("CUBLAS_STATUS_NOT_INITIALIZED", "HIPBLAS_STATUS_NOT_INITIALIZED"), 1 },
		{ TWIN("CUBLAS_STATUS_ALLOC_FAILED", "HIPBLAS_STATUS_ALLOC_FAILED"),
		  OF(_STATUS_ALLOC_FAILED, _STATUS_ALLOC_FAILED) },
		{ TWIN("CUBLAS_STATUS_NOT_SUPPORTED", "HIPBLAS_STATUS_NOT_SUPPORTED"),
		  OF(_STATUS_NOT_SUPPORTED, _STATUS_NOT_SUPPORTED) },
		{ TWIN("CUBLAS_STATUS_EXECUTION_FAILED", "HIPBLAS_STATUS_EXECUTION_FAILED"),
		  EXECUTION_FAILED },
	};

	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (!strcmp(codes[i].name, name))
			return codes[i].code;
	return 0; // another library's
}

#define ENTER(cuda, hip) \
	do { \
		const int fault = fake_fault(TWIN(#cuda, #hip)); \
		if (fault) \
			return fault; \
	} while (0)

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
	return fake_fault(TWIN("cublasLtDestroy", "hipblasLtDestroy"));
}

#ifdef FAKE_HIP
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
	return (size_t)fake_number("CUBLASLT", 130000);
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

// An object that is to be freed by `free`.
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
	return fake_fault(TWIN("cublasLtMatmulDescDestroy", "hipblasLtMatmulDescDestroy"));
}

STATUS TWIN(cublasLtMatmulDescSetAttribute, hipblasLtMatmulDescSetAttribute)(
	DESC desc, TWIN(cublasLtMatmulDescAttributes_t, hipblasLtMatmulDescAttributes_t) what,
	const void *value, size_t bytes)
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

STATUS TWIN(cublasLtMatrixLayoutCreate, hipblasLtMatrixLayoutCreate)(LAYOUT *layout, TYPE type,
								     uint64_t rows, uint64_t cols,
								     int64_t ld)
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
	return fake_fault(TWIN("cublasLtMatrixLayoutDestroy", "hipblasLtMatrixLayoutDestroy"));
}

STATUS TWIN(cublasLtMatrixLayoutSetAttribute, hipblasLtMatrixLayoutSetAttribute)(
	LAYOUT layout, TWIN(cublasLtMatrixLayoutAttribute_t, hipblasLtMatrixLayoutAttribute_t) what,
	const void *value, size_t bytes)
{
	struct layout *l = TO_POINTER(layout);

	ENTER(cublasLtMatrixLayoutSetAttribute, hipblasLtMatrixLayoutSetAttribute);
	if (what == OF(LT_MATRIX_LAYOUT_BATCH_COUNT, LT_MATRIX_LAYOUT_BATCH_COUNT) &&
	    bytes == sizeof l->batch)
		memcpy(&l->batch, value, bytes);
	else if (what == OF(LT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
			    LT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) &&
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
			p->align[i] = TWIN(256, 1); // hipBLASLt receives no alignment
	return give(p, (void **)preference);
}

STATUS TWIN(cublasLtMatmulPreferenceDestroy,
	    hipblasLtMatmulPreferenceDestroy)(const PREFERENCE preference)
{
	free(TO_POINTER(preference));
	return fake_fault(
		TWIN("cublasLtMatmulPreferenceDestroy", "hipblasLtMatmulPreferenceDestroy"));
}

STATUS TWIN(cublasLtMatmulPreferenceSetAttribute,
	    hipblasLtMatmulPreferenceSetAttribute)(PREFERENCE preference,
						   TWIN(cublasLtMatmulPreferenceAttributes_t,
							hipblasLtMatmulPreferenceAttributes_t) what,
						   const void *value, size_t bytes)
{
	struct preference *p = TO_POINTER(preference);

	ENTER(cublasLtMatmulPreferenceSetAttribute, hipblasLtMatmulPreferenceSetAttribute);
#ifndef FAKE_HIP
	const int operand = what - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
	if (operand >= 0 && operand < 4 && bytes == sizeof *p->align) {
		memcpy(&p->align[operand], value, bytes);
		return p->align[operand] ? 0 : INVALID;
	}
	if (what == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK && bytes == sizeof(uint32_t))
		return 0; // its sums are not split
#endif
	if (what != OF(LT_MATMUL_PREF_MAX_WORKSPACE_BYTES, LT_MATMUL_PREF_MAX_WORKSPACE_BYTES) ||
	    bytes != sizeof p->workspace)
		return INVALID;
	memcpy(&p->workspace, value, bytes);
	return 0;
}

// Two algorithms: one that needs no workspace, and a better one that needs some.
STATUS TWIN(cublasLtMatmulAlgoGetHeuristic,
	    hipblasLtMatmulAlgoGetHeuristic)(HANDLE handle, DESC desc, LAYOUT a, LAYOUT b, LAYOUT c,
					     LAYOUT d, PREFERENCE preference, int wanted,
					     HEURISTIC *to, int *found)
{
	const struct preference *p = TO_POINTER(preference);
	struct product q = { .desc = *(const struct desc *)TO_POINTER(desc),
			     .a = *(const struct layout *)TO_POINTER(a),
			     .b = *(const struct layout *)TO_POINTER(b),
			     .c = *(const struct layout *)TO_POINTER(c),
			     .d = *(const struct layout *)TO_POINTER(d) };

	ENTER(cublasLtMatmulAlgoGetHeuristic, hipblasLtMatmulAlgoGetHeuristic);
	*found = 0;
	if (!handle || wanted < 1)
		return INVALID;
	if (!fake_fits(&q))
		return OF(_STATUS_NOT_SUPPORTED, _STATUS_NOT_SUPPORTED);
	if (TWIN(false, q.desc.epilogue & 4 && !q.desc.bias)) // as hipBLASLt before ROCm 6.2
		return 0;
	for (int id = 1; id >= 0 && *found < wanted; id--) {
		if (id && p->workspace < WORKSPACE)
			continue;
		memset(&to[*found], 0, sizeof *to);
		to[*found].algo.data[0] = (uint8_t)(id + 1);
		for (int i = 0; i < 4; i++)
			to[*found].algo.data[1 + i] =
				(uint8_t)(p->align[i] < 128 ? p->align[i] : 128);
		to[*found].workspaceSize = id ? WORKSPACE : 0;
		to[*found].wavesCount = 1;
		++*found;
	}
	return 0;
}

// Are the operands aligned as the heuristic was told?
static bool is_aligned(const ALGO *algo, const struct product *p)
{
	const void *const at[] = { p->a_at, p->b_at, p->c_at, p->d_at };

	for (int i = 0; i < 4; i++)
		if (algo && algo->data[1 + i] && (uintptr_t)at[i] % algo->data[1 + i])
			return false;
	return true;
}

STATUS TWIN(cublasLtMatmul, hipblasLtMatmul)(HANDLE handle, DESC desc, const void *alpha,
					     const void *a, LAYOUT a_layout, const void *b,
					     LAYOUT b_layout, const void *beta, const void *c,
					     LAYOUT c_layout, void *d, LAYOUT d_layout,
					     const ALGO *algo, void *work, size_t work_bytes,
					     TWIN(cudaStream_t, hipStream_t) stream)
{
	ENTER(cublasLtMatmul, hipblasLtMatmul);
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
	p->alpha = fake_number_at(alpha, p->desc.scale, 0);
	p->beta = fake_number_at(beta, p->desc.scale, 0);
	if (!is_aligned(algo, p)) {
		free(p);
		return INVALID;
	}
	switch (fake_multiply(p, stream)) {
	case MULTIPLIED: return 0;
	case NO_DRIVER: return 1; // not initialised
	case BAD_PRODUCT: return INVALID;
	default: return EXECUTION_FAILED;
	}
}
