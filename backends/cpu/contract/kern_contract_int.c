// SPDX-License-Identifier: Apache-2.0
// Contractions of integers: plain loops with wrapping i64 sums, truncated to the result's dtype:
// the operands', or i32 for bytes. Used for indices and tests, not in training, so they are not
// optimized.
#include "config.h"

#include <string.h>

#include "kern_contract.h"

static uint64_t load(int dtype, const char *p)
{
	int32_t i32;
	uint64_t i64;

	switch (dtype) {
	case yoke_i8: return (uint64_t)(int64_t) * (const int8_t *)p;
	case yoke_u8: return *(const uint8_t *)p;
	case yoke_i32: memcpy(&i32, p, 4); return (uint64_t)(int64_t)i32;
	default: memcpy(&i64, p, 8); return i64;
	}
}

static void store(int dtype, char *p, uint64_t v)
{
	switch (dtype) {
	case yoke_i8:
	case yoke_u8: *(uint8_t *)p = (uint8_t)v; break;
	case yoke_i32: memcpy(p, &(uint32_t){ (uint32_t)v }, 4); break;
	default: memcpy(p, &v, 8);
	}
}

static void row(const struct yk_gemm *g, int64_t batch, int64_t i)
{
	int64_t e = (int64_t)g->esize, a, b, c;

	yk_gemm_batch(g, batch, &a, &b, &c);
	for (int64_t j = 0; j < g->n; j++) {
		const char *pa = g->a + (a + i * g->am) * e;
		const char *pb = g->b + (b + j * g->bn) * e;
		uint64_t sum = 0;
		for (int64_t l = 0; l < g->k; l++)
			sum += load(g->dtype, pa + l * g->ak * e) *
			       load(g->dtype, pb + l * g->bk * e);
		store(g->to, g->c + (c + i * g->cm + j * g->cn) * (int64_t)g->csize, sum);
	}
}

// Rows per work item: enough products to be worth a thread.
static int64_t rows_per_item(const struct yk_gemm *g)
{
	int64_t products;

	if (__builtin_mul_overflow(g->n, g->k, &products) || products >= 65536)
		return 1;
	return 65536 / products;
}

static void rows(void *arg, int64_t item)
{
	const struct yk_gemm *g = arg;
	int64_t step = rows_per_item(g), i = item * step, end = i + step;

	if (end > g->batches * g->m)
		end = g->batches * g->m;
	for (; i < end; i++)
		row(g, i / g->m, i % g->m);
}

int ISA(yk_gemm_int)(const struct yk_gemm *g)
{
	int64_t step = rows_per_item(g);

	yk_team_run((g->batches * g->m + step - 1) / step, rows, (void *)g);
	return 0;
}
