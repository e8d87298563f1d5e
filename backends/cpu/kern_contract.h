// SPDX-License-Identifier: Apache-2.0
// A contraction in normal form, and the kernels that take it; for kern_contract*.c.
#ifndef YK_KERN_CONTRACT_H
#define YK_KERN_CONTRACT_H

#include "cpu.h"

// c[i,j] = sum over l of a[i,l] * b[l,j], for each index of the batch; strides in elements.
struct yk_gemm {
	int64_t m, n, k;
	int64_t am, ak, bk, bn, cm, cn;
	int64_t batches; // the product of dims; axes that follow each other are merged
	int rank;
	int64_t dims[YOKE_MAX_RANK], sa[YOKE_MAX_RANK], sb[YOKE_MAX_RANK],
		sc[YOKE_MAX_RANK];
	int dtype;
	size_t esize; // bytes of an element
	const char *a, *b;
	char *c, *workspace;
};

// Offsets in elements of the batch's matrices.
static inline void yk_gemm_batch(const struct yk_gemm *g, int64_t batch, int64_t *a,
				 int64_t *b, int64_t *c)
{
	*a = *b = *c = 0;
	for (int i = g->rank - 1; i >= 0; i--) {
		int64_t at = batch % g->dims[i];
		batch /= g->dims[i];
		*a += at * g->sa[i];
		*b += at * g->sb[i];
		*c += at * g->sc[i];
	}
}

// cblas.c, compiled once: the library cuts a whole contraction, with threads of its own.
bool yk_cblas_wanted(const struct yk_gemm *);
int yk_cblas_run(const struct yk_gemm *);

#ifdef YK_ISA
// The packed kernels: f32, with f16 and bf16 by way of it; f64.  Workspace in bytes.
uint64_t ISA(yk_gemm_f32_workspace)(const struct yk_gemm *);
int ISA(yk_gemm_f32)(const struct yk_gemm *);
uint64_t ISA(yk_gemm_f64_workspace)(const struct yk_gemm *);
int ISA(yk_gemm_f64)(const struct yk_gemm *);
// Integers: sums in i64, plain loops.
int ISA(yk_gemm_int)(const struct yk_gemm *);
#endif

#endif
