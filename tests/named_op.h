// SPDX-License-Identifier: Apache-2.0
// What the tests of named ops share whatever runs them: arrays with guards behind them, views
// of them, comparisons.  A test is built for the CPU backend, or, with YK_ON_OPENCL, for the
// OpenCL backend.
#ifndef YK_NAMED_OP_H
#define YK_NAMED_OP_H

#include <stdio.h>

#include "../backends/cpu/host/frame.h"
#include "tap.h"

enum { ARRAYS = 256, GUARD = 64 };

static struct {
	struct yk_segment segment;
	size_t bytes;
} arrays[ARRAYS];
static int array_count;

// Bytes filled with 0xff (NaN as floats), followed by a guard.
static inline void *array_new(size_t bytes)
{
	char *p = malloc(bytes + GUARD);
	if (!p || array_count == ARRAYS)
		abort();
	memset(p, 0xff, bytes);
	memset(p + bytes, 0x5a, GUARD);
	arrays[array_count].segment = (struct yk_segment){ p, bytes };
	arrays[array_count++].bytes = bytes;
	return p;
}

static inline float *nans(int64_t n)
{
	return array_new((size_t)n * sizeof(float));
}

static inline float *randoms(int64_t n, double lo, double hi)
{
	float *p = nans(n);
	for (int64_t i = 0; i < n; i++)
		p[i] = (float)rnd_real(lo, hi);
	return p;
}

// Frees all arrays; were their guards untouched?
static inline bool arrays_free(void)
{
	bool good = true;
	while (array_count) {
		char *p = arrays[--array_count].segment.base;
		for (int i = 0; i < GUARD; i++)
			good &= p[arrays[array_count].bytes + (size_t)i] == 0x5a;
		free(p);
	}
	return good;
}

// A matrix of f32 that is written past the caches.
enum { WIDE_COLS = 1040 };

static inline int64_t wide_rows(void)
{
	return tap_stream_bytes() / (WIDE_COLS * (int64_t)sizeof(float)) + 1;
}

// ---- views ----

static const struct yoke_view absent = { .kind = YOKE_VIEW_NONE };

// A view of an array from array_new, or of a place inside one.
static inline struct yoke_view strided(void *p, int dtype, int rank, const int64_t *dims,
				       const int64_t *strides)
{
	struct yoke_view v = { .kind = YOKE_VIEW_BUFFER,
			       .dtype = (uint8_t)dtype,
			       .rank = (uint8_t)rank,
			       .align = 4 };
	for (int i = 0; i < array_count && !v.segment; i++) {
		char *base = arrays[i].segment.base;
		if ((char *)p >= base && (char *)p <= base + arrays[i].bytes) {
			v.segment = &arrays[i].segment;
			v.offset = (uint64_t)((char *)p - base);
		}
	}
	for (int i = 0; i < rank; i++) {
		v.dims[i] = dims[i];
		v.strides[i] = strides[i];
	}
	return v;
}

static inline struct yoke_view dense(void *p, int dtype, int rank, const int64_t *dims)
{
	int64_t strides[YOKE_MAX_RANK], n = 1;
	for (int i = rank - 1; i >= 0; i--) {
		strides[i] = n;
		n *= dims[i];
	}
	return strided(p, dtype, rank, dims, strides);
}

static inline struct yoke_view vector(float *p, int64_t n)
{
	return dense(p, yoke_f32, 1, &n);
}

static inline struct yoke_view matrix(float *p, int64_t rows, int64_t cols,
				      int64_t stride)
{
	return strided(p, yoke_f32, 2, (int64_t[]){ rows, cols },
		       (int64_t[]){ stride, 1 });
}

static inline struct yoke_view scalar(int dtype, double x)
{
	struct yoke_view v = { .kind = YOKE_VIEW_SCALAR, .dtype = (uint8_t)dtype };
	float f = (float)x;
	int64_t i = (int64_t)x;
	if (dtype == yoke_f32)
		memcpy(&v.offset, &f, sizeof f);
	else if (dtype == yoke_f64)
		memcpy(&v.offset, &x, sizeof x);
	else
		memcpy(&v.offset, &i, sizeof i);
	return v;
}

static inline struct yoke_op op_of(int code, uint32_t nout, const struct yoke_view *out,
				   uint32_t nin, const struct yoke_view *in)
{
	return (struct yoke_op){ .size = sizeof(struct yoke_op),
				 .code = (uint16_t)code,
				 .nout = nout,
				 .nin = nin,
				 .out = out,
				 .in = in };
}

// ---- comparison ----

// got: floats at p, p + stride, ..
static inline bool near_rows(const float *p, int64_t stride, const double *want,
			     int64_t rows, int64_t cols, double tol, double scale,
			     const char *what)
{
	size_t n = (size_t)(rows * cols);
	double *got = malloc((n + 1) * sizeof *got);
	if (!got)
		abort();
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < cols; c++)
			got[r * cols + c] = p[r * stride + c];
	bool good = near(got, want, n, tol, scale, what);
	free(got);
	return good;
}

#ifdef YK_ON_OPENCL
#include "opencl_named.h"
#else
#include "cpu_named.h"
#endif

#endif
