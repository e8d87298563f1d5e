// SPDX-License-Identifier: Apache-2.0
// Factorizations of dense matrices in f32 or f64, by blocks, and the runner that distributes a
// batch of matrices. A matrix is row-major; its rows are `ld` elements apart, padded with zeros to
// whole units of UNIT columns. How work is divided follows from the shape, so results do not depend
// on the number of threads.
#ifndef YK_DENSE_H
#define YK_DENSE_H

#include <stdatomic.h>

#include "matrix.h"

enum { UNIT = 16 }; // columns; a multiple of the vector length of f32 and f64

static inline int64_t dense_ld(int64_t n)
{
	const int64_t ld = (n + UNIT - 1) / UNIT * UNIT;
	// rows should not all map to one set of a cache
	return ld >= 256 && ld % 128 == 0 ? ld + UNIT : ld;
}

struct yk_dense {
	size_t element; // bytes
	void (*load)(const struct matrix *from, int64_t m, int64_t n, void *to, int64_t ld);
	void (*store)(const struct matrix *to, int64_t m, int64_t n, const void *from, int64_t ld);
	// Overwrites a [m,n] with L, whose unit diagonal is not stored, and U. perm [m] receives
	// the row of a that each row of L U is. Returns the permutation's sign. memory:
	// lu_elements(m) elements.
	int (*lu)(int64_t m, int64_t n, void *a, int64_t ld, void *memory, int64_t *perm);
	int64_t (*lu_elements)(int64_t m);
	// Overwrites x [n,k] with the solution of t y = x for the lower or upper triangle of t
	// [n,n]; transposed: t' y = x. triangle: x is lower triangular and so is y, so only those
	// elements are computed (lower and not transposed).
	void (*triangular)(int64_t n, int64_t k, const void *t, int64_t ldt, bool upper,
			   bool transposed, bool unit, bool triangle, void *x, int64_t ldx);
	// Overwrites a [m,n] with R; below the diagonal it is undefined. memory: qr_elements(m, n)
	// elements, which q reads.
	void (*qr)(int64_t m, int64_t n, void *a, int64_t ld, void *memory);
	int64_t (*qr_elements)(int64_t m, int64_t n);
	// Overwrites x [m,k] with Q x; k is a multiple of UNIT. q_columns: with the first k columns
	// of Q, for any k.
	void (*q)(int64_t m, int64_t n, int64_t k, const void *memory, void *x, int64_t ld);
	void (*q_columns)(int64_t m, int64_t n, int64_t k, const void *memory, void *x, int64_t ld);
	// exp(a) [n,n] -> y; a is overwritten. memory: 6 n ld + lu_elements(n) elements.
	void (*exponential)(int64_t n, void *a, void *y, int64_t ld, void *memory, int64_t *perm);
};

extern const struct yk_dense ISA(yk_dense_f32), ISA(yk_dense_f64);

static inline const struct yk_dense *dense_of(int dtype)
{
	return dtype == yoke_f64 ? &ISA(yk_dense_f64) : &ISA(yk_dense_f32);
}

// ---- batches ----

enum { EACH = 4 }; // with at least this many matrices, each is computed by one thread

struct dense_batch {
	const struct yoke_op *op;
	const struct yk_dense *dense;
	int64_t count, group; // matrices; matrices per work item
	size_t bytes;         // of memory for a matrix
	void (*one)(struct dense_batch *, int64_t index, void *memory);
	_Atomic int64_t bad;  // the smallest code that `one` reports with record_first
	atomic_bool no_memory;
};

static inline void dense_group(void *arg, int64_t item)
{
	struct dense_batch *b = arg;
	void *memory = yk_team_scratch(b->bytes + 64); // not 0 bytes
	const int64_t end = (item + 1) * b->group < b->count ? (item + 1) * b->group : b->count;
	if (!memory) {
		atomic_store(&b->no_memory, true);
		return;
	}
	for (int64_t i = item * b->group; i < end; i++)
		b->one(b, i, memory);
}

// Bytes of workspace for a batch whose matrices are computed one after another.
static inline uint64_t dense_workspace(int64_t count, size_t bytes)
{
	return count < EACH ? bytes : 0;
}

// Computes all matrices. work: operations per matrix, roughly.
static inline int dense_run(struct dense_batch *b, double work)
{
	atomic_init(&b->bad, INT64_MAX);
	atomic_init(&b->no_memory, false);
	if (b->count < EACH) {
		for (int64_t i = 0; i < b->count; i++)
			b->one(b, i, b->bytes ? yk_ptr(&b->op->workspace) : NULL);
		return 0;
	}
	b->group = work < 1 << 14 ? (int64_t)((1 << 14) / (work + 1)) + 1 : 1;
	yk_team_run((b->count + b->group - 1) / b->group, dense_group, b);
	return atomic_load(&b->no_memory) ? YOKE_ENOMEM : 0;
}

static inline size_t dense_align(size_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

#endif
