// SPDX-License-Identifier: Apache-2.0
// Fake rocBLAS: products by plain loops, without epilogues.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "multiply.h"

#define FAKE_OF_BLAS ~, FAKE_YES
FAKE_CALLS(FAKE_DECLARE)

struct _rocblas_handle {
	hipStream_t stream;
};

int fake_code_of(const char *name)
{
	return !strcmp(name, "rocblas_status_memory_error") ? rocblas_status_memory_error : 0;
}

#define ENTER(call) \
	do { \
		const int fault = fake_fault(#call); \
		if (fault) \
			return fault; \
	} while (0)

enum { INVALID_HANDLE_STATUS = 1, INTERNAL_ERROR = 6, INVALID_VALUE_STATUS = 11 };

rocblas_status rocblas_create_handle(rocblas_handle *handle)
{
	ENTER(rocblas_create_handle);
	*handle = calloc(1, sizeof **handle);
	return *handle ? rocblas_status_success : rocblas_status_memory_error;
}

rocblas_status rocblas_destroy_handle(rocblas_handle handle)
{
	free(handle);
	return fake_fault("rocblas_destroy_handle");
}

rocblas_status rocblas_set_stream(rocblas_handle handle, hipStream_t stream)
{
	ENTER(rocblas_set_stream);
	if (!handle)
		return INVALID_HANDLE_STATUS;
	handle->stream = stream;
	return rocblas_status_success;
}

rocblas_status rocblas_set_atomics_mode(rocblas_handle handle, rocblas_atomics_mode mode)
{
	ENTER(rocblas_set_atomics_mode);
	return !handle                             ? INVALID_HANDLE_STATUS :
	       mode == rocblas_atomics_not_allowed ? 0 :
						     INVALID_VALUE_STATUS;
}

const char *rocblas_status_to_string(rocblas_status code)
{
	return code == rocblas_status_memory_error ? "rocblas_status_memory_error" :
	       code == INTERNAL_ERROR              ? "rocblas_status_internal_error" :
						     "rocblas_status of another kind";
}

static hipDataType type_of(rocblas_datatype t)
{
	return t == rocblas_datatype_f64_r ? HIP_R_64F : t == rocblas_datatype_f32_r ? HIP_R_32F :
	       t == rocblas_datatype_f16_r ? HIP_R_16F : HIP_R_16BF;
}

static struct layout layout_of(rocblas_datatype type, int rows, int cols, rocblas_int ld,
			       rocblas_stride step, rocblas_int batch)
{
	return (struct layout){ type_of(type), (uint64_t)rows, (uint64_t)cols, ld, step, batch };
}

rocblas_status rocblas_gemm_strided_batched_ex(
	rocblas_handle handle, rocblas_operation turn_a, rocblas_operation turn_b, rocblas_int m,
	rocblas_int n, rocblas_int k, const void *alpha, const void *a, rocblas_datatype a_type,
	rocblas_int a_ld, rocblas_stride a_step, const void *b, rocblas_datatype b_type,
	rocblas_int b_ld, rocblas_stride b_step, const void *beta, const void *c,
	rocblas_datatype c_type, rocblas_int c_ld, rocblas_stride c_step, void *d,
	rocblas_datatype d_type, rocblas_int d_ld, rocblas_stride d_step, rocblas_int batch,
	rocblas_datatype compute, rocblas_gemm_algo algo, int32_t solution, uint32_t flags)
{
	const bool ta = turn_a == rocblas_operation_transpose,
		   tb = turn_b == rocblas_operation_transpose;

	ENTER(rocblas_gemm_strided_batched_ex);
	if (!handle)
		return INVALID_HANDLE_STATUS;
	if (algo || solution || flags ||
	    (compute == rocblas_datatype_f64_r) != (a_type == rocblas_datatype_f64_r))
		return INVALID_VALUE_STATUS;
	struct product *p = calloc(1, sizeof *p);
	if (!p)
		return rocblas_status_memory_error;
	*p = (struct product){ .desc = { type_of(compute), { ta, tb }, 1, NULL },
			       .a = layout_of(a_type, ta ? k : m, ta ? m : k, a_ld, a_step, batch),
			       .b = layout_of(b_type, tb ? n : k, tb ? k : n, b_ld, b_step, batch),
			       .c = layout_of(c_type, m, n, c_ld, c_step, batch),
			       .d = layout_of(d_type, m, n, d_ld, d_step, batch),
			       .a_at = a, .b_at = b, .c_at = c, .d_at = d };
	p->alpha = fake_number_at(alpha, p->desc.scale, 0);
	p->beta = fake_number_at(beta, p->desc.scale, 0);
	switch (fake_multiply(p, handle->stream)) {
	case MULTIPLIED: return rocblas_status_success;
	case BAD_PRODUCT: return INVALID_VALUE_STATUS;
	default: return INTERNAL_ERROR;
	}
}
