// SPDX-License-Identifier: Apache-2.0
// Products by the vendors' libraries: what those that take epilogues (products.c) and those that do not share.
// They are made over columns: of ours, which go by rows, they compute y^T = b^T a^T.
#ifndef YK_NATIVE_PRODUCTS_H
#define YK_NATIVE_PRODUCTS_H

#include "../../backends/gpu/contract.h"
#include "native.h"

enum yk_native_operand { YK_Y, YK_A, YK_B, YK_OPERANDS };

// All that a call of a library depends on, with zeros between its fields.
struct yk_native_problem {
	int dtype, to, tf32, then; // to: of the result
	int64_t m, n, k, batch;
	int64_t ld[YK_OPERANDS], step[YK_OPERANDS]; // elements; step: between matrices
	int transposed[YK_OPERANDS];
	uint32_t align[YK_OPERANDS];
};

// Its bit among factors, of which there are YOKE_MAX_DTYPES for results of their own dtype and as many for those in f32.
static inline uint32_t yk_native_factors(const struct yk_native_problem *p)
{
	return 1u << (p->dtype + (p->to == yoke_f32 ? YOKE_MAX_DTYPES : 0));
}

// Did the library do such a product wrongly?  With or without the device's lock.
static inline bool yk_native_wrong(const struct yk_gpu_device *d, const struct yk_native_problem *p)
{
	return atomic_load(&yk_native_of(d)->wrong[p->then]) & yk_native_factors(p);
}

// What runs at one place of a batch: matrices, the row that is added, memory of the library's.
struct yk_native_place {
	void *at[YK_OPERANDS], *bias, *work;
};

// One call of a library, in a stream; `plan` is the library's own.
typedef int yk_native_multiply(struct yk_gpu_device *, const struct yk_native_problem *, const void *plan,
			       const struct yk_native_place *, v_stream);

// ---- products_problem.c ----

// Declares the setting, V_NAME.products; is it to do whatever it can?
bool yk_native_products_always(void);
// False: the problem is none for a library, by its form, by rule or by the setting; `maps`: may it have an epilogue?
// Brings c into the form that the library wants.
bool yk_native_problem_of(const struct yk_gpu_device *, struct yk_gpu_contract *c, bool maps,
			  struct yk_native_problem *to);
// All matrices of an op.
int yk_native_products_run(struct yk_gpu_queue *, const struct yoke_op *, const struct yk_gpu_contraction *,
			   const struct yk_native_problem *, const void *plan, yk_native_multiply *);

// ---- products_map.c ----

// What the map of a contraction does, YK_THEN_*; -1: nothing that libraries know.  product: its dtype.
int yk_native_then_of(const struct yoke_op *, int product);

// ---- products_try.c ----

enum { YK_TRY_SIDE = 32 };
// The problem of a product that is checked.
void yk_native_try_problem(struct yk_native_problem *to, int dtype, int result, int then);
// Has it computed, with so much memory for the library; *good: were its results right?
int yk_native_try(struct yk_gpu_device *, const struct yk_native_problem *, const void *plan, size_t workspace,
		  yk_native_multiply *, bool *good);

#endif
