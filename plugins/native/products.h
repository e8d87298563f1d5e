// SPDX-License-Identifier: Apache-2.0
// Matrix products by vendor libraries: declarations shared by the library with epilogues
// (products.c) and those without. The libraries are column-major, so for our row-major matrices
// they compute y^T = b^T a^T.
#ifndef YK_NATIVE_PRODUCTS_H
#define YK_NATIVE_PRODUCTS_H

#include "../../backends/gpu/contract.h"
#include "native.h"

enum yk_native_operand { YK_Y, YK_A, YK_B, YK_OPERANDS };

// Everything that a library call depends on. Padding is zeroed, so that problems can be compared as
// bytes.
struct yk_native_problem {
	int dtype, to, tf32, then; // to: dtype of the result; then: YK_THEN_*
	int apart;                 // the op's map follows as a kernel of its own
	int64_t m, n, k, batch;
	// in elements; step: distance between matrices of a batch
	int64_t ld[YK_OPERANDS], step[YK_OPERANDS];
	int transposed[YK_OPERANDS];
	uint32_t align[YK_OPERANDS];
};

// The problem's bit in a mask of operand and result dtypes: YOKE_MAX_DTYPES bits for results of the
// operands' dtype, then as many for results in f32.
static inline uint32_t yk_native_factors(const struct yk_native_problem *p)
{
	return 1u << (p->dtype + (p->to == yoke_f32 ? YOKE_MAX_DTYPES : 0));
}

// True if a test showed that the library computes such products wrongly. The device's lock is not
// needed.
static inline bool yk_native_wrong(const struct yk_gpu_device *d, const struct yk_native_problem *p)
{
	return atomic_load(&yk_native_of(d)->wrong[p->then]) & yk_native_factors(p);
}

// Addresses for one entry of a batch: the matrices, the bias, and the library's workspace.
struct yk_native_addresses {
	void *at[YK_OPERANDS], *bias, *work;
};

// One library call in a stream; `plan` belongs to the library.
typedef int yk_native_multiply(struct yk_gpu_device *, const struct yk_native_problem *,
			       const void *plan, const struct yk_native_addresses *, v_stream);

// ---- products_problem.c ----

// Declares the setting V_NAME.products; true if it selects the library whenever it can compute an
// op.
bool yk_native_products_always(void);
// True if the library is much faster than yoke's own kernels in large products of a dtype, and the
// setting allows its use.
bool yk_native_products_pay(const struct yk_gpu_device *, int dtype);
// Fills the problem and brings c into the library's form. `maps`: the library has epilogues. A map
// that is none of them, or one that a test found wrong, is apart. False: a library does not compute
// this op, because of its form, a rule or the setting.
bool yk_native_problem_of(const struct yk_gpu_device *, struct yk_gpu_contract *c, bool maps,
			  struct yk_native_problem *to);
// Records the call `run` with a copy of its data, and the map if it is apart; `workspace`: bytes
// that the library needs.
int yk_native_products_record(struct yk_gpu_record *, const struct yk_gpu_contract *,
			      const struct yk_native_problem *, size_t workspace,
			      yk_gpu_call_fn *run, const void *data, size_t bytes);
// Computes all matrices of an op's batch.
int yk_native_products_run(struct yk_gpu_queue *, const struct yoke_op *,
			   const struct yk_gpu_contraction *, const struct yk_native_problem *,
			   const void *plan, yk_native_multiply *);

// ---- products_map.c ----

// The epilogue (YK_THEN_*) equal to the map of a contraction; -1: libraries have none. product: its
// dtype.
int yk_native_then_of(const struct yoke_op *, int product);

// ---- products_try.c ----

enum { YK_TRY_SIDE = 32 };
// The problem used to check a library's product.
void yk_native_try_problem(struct yk_native_problem *to, int dtype, int result, int then);
// Computes that problem with `workspace` bytes for the library; *good: the results were right.
int yk_native_try(struct yk_gpu_device *, const struct yk_native_problem *, const void *plan,
		  size_t workspace, yk_native_multiply *, bool *good);

#endif
