// SPDX-License-Identifier: Apache-2.0
// Measures the limits of memory-bound kernels: plain loops over the same arrays by the same team,
// with regular and with streaming stores.
#include "config.h"

#include "map.h"

#if defined __SSE2__
#include <immintrin.h>
#endif

enum { PIECE = 1 << 14 }; // floats

typedef float vec4 __attribute__((vector_size(16)));
enum { LANES = 4, STEPS = PIECE / LANES };

// k = 0 .. STEPS - 1, one cache line at a time
#define EACH(k) \
	for (int line_ = 0; line_ < STEPS; line_ += 4) \
		_Pragma("GCC unroll 4") for (int k = line_; k < line_ + 4; k++)

static vec4 *piece_of(int k, int64_t i)
{
	return (vec4 *)(array_at(k) + i * PIECE);
}

// Streaming store where the processor has one: the line is not read before it is written.
static void stream(vec4 *to, vec4 v)
{
#if defined __SSE2__
	_mm_stream_ps((float *)to, (__m128)v);
#else
	*to = v;
#endif
}

static void fence(void)
{
#if defined __SSE2__
	_mm_sfence();
#endif
}

static void read_piece(void *unused, int64_t i)
{
	const vec4 *x = piece_of(0, i);
	vec4 s[8] = { { 0 } };

	(void)unused;
	for (int k = 0; k < STEPS; k += 8)
		for (int j = 0; j < 8; j++)
			s[j] += x[k + j];
	for (int j = 1; j < 8; j++)
		s[0] += s[j];
	__asm__ volatile("" : : "r"(s) : "memory"); // makes the sum used
}

static void copy_piece(void *unused, int64_t i)
{
	vec4 *y = piece_of(2, i);
	const vec4 *x = piece_of(0, i);

	(void)unused;
	EACH(k)
		y[k] = x[k];
}

static void copy_nt_piece(void *unused, int64_t i)
{
	vec4 *y = piece_of(2, i);
	const vec4 *x = piece_of(0, i);

	(void)unused;
	EACH(k)
		stream(y + k, x[k]);
	fence();
}

static void triad_piece(void *unused, int64_t i)
{
	vec4 *y = piece_of(2, i);
	const vec4 *a = piece_of(0, i), *b = piece_of(1, i);

	(void)unused;
	EACH(k)
		y[k] = a[k] + b[k] * 3.0f;
}

static void triad_nt_piece(void *unused, int64_t i)
{
	vec4 *y = piece_of(2, i);
	const vec4 *a = piece_of(0, i), *b = piece_of(1, i);

	(void)unused;
	EACH(k)
		stream(y + k, a[k] + b[k] * 3.0f);
	fence();
}

static void scale_piece(void *unused, int64_t i)
{
	vec4 *y = piece_of(2, i);

	(void)unused;
	EACH(k)
		y[k] *= 0.9999f;
}

// Three arrays updated in place from a fourth: the traffic of AdamW.
static void step_piece(void *unused, int64_t i)
{
	vec4 *p = piece_of(0, i), *m = piece_of(2, i), *v = piece_of(3, i);
	const vec4 *g = piece_of(1, i);

	(void)unused;
	EACH(k) {
		m[k] = m[k] * 0.9f + g[k];
		v[k] = v[k] * 0.9f + 0.1f;
		p[k] = p[k] - m[k] * 0.0001f;
	}
}

#define LOOP(name) \
	static void name##_all(void) \
	{ \
		yk_team_run(yk_bench_count / PIECE, name##_piece, NULL); \
	}
LOOP(read)
LOOP(copy)
LOOP(copy_nt)
LOOP(triad)
LOOP(triad_nt)
LOOP(scale)
LOOP(step)
#undef LOOP

const struct yk_limit_loop yk_limit_loops[LIMITS] = {
	[READ] = { "read", 1, read_all },
	[COPY] = { "copy", 2, copy_all },
	[COPY_NT] = { "copy, streaming", 2, copy_nt_all },
	[TRIAD] = { "triad", 3, triad_all },
	[TRIAD_NT] = { "triad, streaming", 3, triad_nt_all },
	[SCALE] = { "in place", 2, scale_all },
	[STEP] = { "4 in, 3 in place", 7, step_all },
};
