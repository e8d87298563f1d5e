// SPDX-License-Identifier: Apache-2.0
// Matrix products by rocBLAS, used if hipBLASLt is missing: without epilogues, and with rocBLAS's
// own choice of algorithm.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "../native/products.h"

struct library {
	rocblas_handle handle;
	uint32_t tried; // mask of yk_native_factors already tested
};

struct work {
	struct yk_native_problem problem;
	struct yk_gpu_contraction s;
};

static bool takes(const struct yk_gpu_device *device, struct yk_gpu_contract *c)
{
	struct yk_native_problem p;

	return yk_native_problem_of(device, c, false, &p) && !yk_native_open(YK_PRODUCTS, NULL) &&
	       yk_native_open(YK_BLAS, NULL) && !yk_native_wrong(device, &p);
}

static int check(const struct yk_gpu_device *d, const char *call, int code, int error)
{
	if (code == rocblas_status_memory_error)
		error = YOKE_ENOMEM;
	return code ? yk_native_library_failed(d, error, call, YK_BLAS_CODE, code) : 0;
}

static int type_of(int dtype)
{
	return dtype == yoke_f64 ? rocblas_datatype_f64_r :
	       dtype == yoke_f16 ? rocblas_datatype_f16_r :
	       dtype == yoke_bf16 ? rocblas_datatype_bf16_r : rocblas_datatype_f32_r;
}

static int transposes(const struct yk_native_problem *p, enum yk_native_operand o)
{
	return p->transposed[o] ? rocblas_operation_transpose : rocblas_operation_none;
}

static int multiply(struct yk_gpu_device *d, const struct yk_native_problem *p, const void *plan,
		    const struct yk_native_addresses *to, v_stream stream)
{
	const struct library *l = yk_native_of(d)->blas;
	const bool wide = p->dtype == yoke_f64;
	const double one = 1, zero = 0;
	const float one32 = 1, zero32 = 0;
	const int factors = type_of(p->dtype), result = type_of(p->to);
	const char *call;
	int code;

	(void)plan;
	yk_native_split(&call, &code, V(rocblas_set_stream, l->handle, stream));
	if (!code)
		yk_native_split(&call, &code,
				V(rocblas_gemm_strided_batched_ex, l->handle, transposes(p, YK_B),
				  transposes(p, YK_A), (int)p->n, (int)p->m, (int)p->k,
				  wide ? (const void *)&one : &one32, to->at[YK_B], factors,
				  (int)p->ld[YK_B], p->step[YK_B], to->at[YK_A], factors,
				  (int)p->ld[YK_A], p->step[YK_A],
				  wide ? (const void *)&zero : &zero32, to->at[YK_Y], result,
				  (int)p->ld[YK_Y], p->step[YK_Y], to->at[YK_Y], result,
				  (int)p->ld[YK_Y], p->step[YK_Y], (int)p->batch,
				  wide ? rocblas_datatype_f64_r : rocblas_datatype_f32_r,
				  rocblas_gemm_algo_standard, 0, 0));
	return check(d, call, code, YOKE_EDEVICE);
}

static int run(struct yk_gpu_queue *q, const struct yoke_op *op, const void *data)
{
	struct work w;

	memcpy(&w, data, sizeof w);
	return yk_native_products_run(q, op, &w.s, &w.problem, NULL, multiply);
}

// Opens the library on the device, with atomic (nondeterministic) sums disabled.
static int open_on(struct yk_gpu_device *d)
{
	struct yk_native_device *n = yk_native_of(d);
	struct library *l = calloc(1, sizeof *l);
	int err = l ? check(d, V(rocblas_create_handle, &l->handle), YOKE_EUNSUPPORTED) :
		      yk_gpu_error(YOKE_ENOMEM, "no memory for a library's record");

	if (!err &&
	    (err = check(d, V(rocblas_set_atomics_mode, l->handle, rocblas_atomics_not_allowed),
			 YOKE_EUNSUPPORTED)))
		yk_native_code(V(rocblas_destroy_handle, l->handle));
	if (err)
		free(l);
	else
		n->blas = l;
	return err;
}

// Tests the library once with these dtypes; called with the device's lock held.
static int open_and_test(struct yk_gpu_device *d, const struct yk_native_problem *p)
{
	struct yk_native_device *n = yk_native_of(d);
	struct yk_native_problem trial;
	bool good = false;
	int err = yk_native_use(d);

	if (!err && !n->blas)
		err = open_on(d);
	if (err)
		return err;
	struct library *l = n->blas;
	if (l->tried & yk_native_factors(p))
		return yk_native_wrong(d, p) ? YOKE_EUNSUPPORTED : 0;
	yk_native_try_problem(&trial, p->dtype, p->to, YK_THEN_NOTHING);
	err = yk_native_try(d, &trial, NULL, 0, multiply, &good);
	l->tried |= yk_native_factors(p);
	if (!good)
		atomic_fetch_or(&n->wrong[p->then], yk_native_factors(p));
	if (good || err)
		return err;
	return yk_gpu_error(
		YOKE_EUNSUPPORTED,
		"%s computes wrong products on %s:%u (%s): such products use yoke's own "
		"kernels",
		yk_native_library(YK_BLAS), V_NAME, d->index, d->info.name);
}

static int record(struct yk_gpu_record *r, const struct yk_gpu_contract *c)
{
	struct yk_gpu_contract form = *c;
	struct work w;

	memset(&w, 0, sizeof w);
	// takes() has already normalized c
	yk_native_problem_of(r->device, &form, false, &w.problem);
	w.s = form.s;
	int err = open_and_test(r->device, &w.problem);
	return err ? err : yk_native_products_record(r, &form, &w.problem, 0, run, &w, sizeof w);
}

const struct yk_gpu_library yk_rocm_blas = {
	"rocblas", { takes, record }, yk_native_products_always, NULL
};
