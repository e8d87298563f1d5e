// SPDX-License-Identifier: Apache-2.0
// Builds operands for benchmarks that call the CPU backend's kernels directly.
#ifndef BENCH_OPERAND_H
#define BENCH_OPERAND_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../backends/cpu/host/frame.h"

// Allocates on huge pages where the system has them, as the backend's segments; values in (-0.5,
// 0.5), f32 or bf16.
static inline struct yk_segment operand_memory(uint64_t bytes, int dtype)
{
	const uint64_t page = 2 << 20, all = (bytes / page + 1) * page;
	struct yk_segment s = { aligned_alloc(page, all), bytes };

	if (!s.base) {
		fprintf(stderr, "bench: no memory for an operand of %llu bytes\n",
			(unsigned long long)bytes);
		exit(1);
	}
#ifdef MADV_HUGEPAGE
	madvise(s.base, all, MADV_HUGEPAGE);
#endif
	for (uint64_t i = 0, e = dtype == yoke_bf16 ? 2 : 4; (i + 1) * e <= bytes; i++) {
		const float f = (float)(i % 1021) / 1021 - 0.5f;
		memcpy(s.base + i * e, (const char *)&f + 4 - e, e); // bf16: the upper half
	}
	return s;
}

// A dense operand, with its elements in the order of the axes.
static inline struct yoke_view operand_view(struct yk_segment *s, int dtype, int rank,
					    const int64_t *dims)
{
	struct yoke_view v = { .segment = s,
			       .kind = YOKE_VIEW_BUFFER,
			       .dtype = (uint8_t)dtype,
			       .rank = (uint8_t)rank,
			       .align = 64 };
	int64_t n = 1;

	for (int i = rank - 1; i >= 0; n *= dims[i--]) {
		v.dims[i] = dims[i];
		v.strides[i] = n;
	}
	return v;
}
#endif
