// SPDX-License-Identifier: Apache-2.0
// Measures causal attention of the CPU backend, with q, k and v as slices of one tensor: GFLOP/s
// of the forward and backward kernels for each instruction set, beside the multiply-add peak of
// the same threads in the same run.
// Flops: 2 products forward and 5 backward, each 2 D operations per visible pair of query and
// key.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../backends/cpu/host/frame.h"
#include "rounds.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { RUNS = 11, WARM = 2, CHAINS = 12, LOOPS = 100000 };

// ---- the machine's limit: independent chains of multiply-adds in registers ----

static volatile float sink;

// clang-format off: it folds a loop into the line of its pragma
#define PEAK(name, target_, type, set1, multiply_add) \
	target_ static void name(void *unused, int64_t piece) \
	{ \
		type x[CHAINS], a = set1(0.999f), b = set1((float)piece); \
		union { type v; float f[16]; } sum = { .v = b }; \
		(void)unused; \
		_Pragma("GCC unroll 12") \
		for (int c = 0; c < CHAINS; c++) \
			x[c] = set1((float)c); \
		for (int i = 0; i < LOOPS; i++) { \
			_Pragma("GCC unroll 12") \
			for (int c = 0; c < CHAINS; c++) \
				x[c] = multiply_add(x[c], a, b); \
		} \
		_Pragma("GCC unroll 12") \
		for (int c = 0; c < CHAINS; c++) \
			sum.v += x[c]; \
		sink = sum.f[0]; \
	}
// clang-format on

typedef float v4 __attribute__((vector_size(16)));
#define SET1(x) ((v4){ (x), (x), (x), (x) })
#define MULTIPLY_ADD(x, a, b) ((x) * (a) + (b))
PEAK(peak_base, , v4, SET1, MULTIPLY_ADD)
#ifdef __x86_64__
PEAK(peak_avx2, __attribute__((target("avx2,fma"))), __m256, _mm256_set1_ps,
     _mm256_fmadd_ps)
PEAK(peak_avx512, __attribute__((target("avx512f"))), __m512, _mm512_set1_ps,
     _mm512_fmadd_ps)
#endif

// FLOP/s of the team
static double peak(const char *isa)
{
	void (*fn)(void *, int64_t) = peak_base;
	int lanes = 4;
#ifdef __x86_64__
	if (!strcmp(isa, "avx512"))
		fn = peak_avx512, lanes = 16;
	else if (!strcmp(isa, "avx2"))
		fn = peak_avx2, lanes = 8;
#endif
	const int pieces = 4 * yk_team_size();
	double start = yk_seconds();
	yk_team_run(pieces, fn, NULL);
	return 2.0 * lanes * CHAINS * LOOPS * pieces / (yk_seconds() - start);
}

// ---- attention ----

struct problem {
	int64_t B, T, H, D;
	struct yk_segment qkv, dqkv, o, g, lse;
	struct yoke_view in[9], out_forward[2], out_backward[3];
	struct yoke_op forward, back;
};

static struct yoke_view view(struct yk_segment *s, int64_t at, int rank,
			     const int64_t *dims, const int64_t *strides)
{
	struct yoke_view v = { .segment = s,
			       .offset = (uint64_t)at * sizeof(float),
			       .align = 64,
			       .dtype = yoke_f32,
			       .rank = (uint8_t)rank,
			       .kind = YOKE_VIEW_BUFFER };
	memcpy(v.dims, dims, sizeof *dims * (size_t)rank);
	memcpy(v.strides, strides, sizeof *strides * (size_t)rank);
	return v;
}

static void fill(struct yk_segment *s, int64_t floats)
{
	s->bytes = (uint64_t)floats * sizeof(float);
	s->base = aligned_alloc(64, (s->bytes + 63) / 64 * 64);
	if (!s->base)
		exit(1);
	for (int64_t i = 0; i < floats; i++)
		((float *)s->base)[i] = (float)(i * 2654435761 % 1000) * 0.002f - 1;
}

static void problem_init(struct problem *p)
{
	const int64_t C = p->H * p->D, dims[] = { p->B, p->T, p->H, p->D };
	const int64_t in3[] = { p->T * 3 * C, 3 * C, p->D, 1 },
		      own[] = { p->T * C, C, p->D, 1 };
	const int64_t lse_dims[] = { p->B, p->H, p->T }, lse[] = { p->H * p->T, p->T, 1 };
	fill(&p->qkv, p->B * p->T * 3 * C);
	fill(&p->dqkv, p->B * p->T * 3 * C);
	fill(&p->o, p->B * p->T * C);
	fill(&p->g, p->B * p->T * C);
	fill(&p->lse, p->B * p->H * p->T);
	for (int i = 0; i < 3; i++) {
		p->in[i] = view(&p->qkv, i * C, 4, dims, in3);
		p->out_backward[i] = view(&p->dqkv, i * C, 4, dims, in3);
	}
	p->in[6] = p->out_forward[0] = view(&p->o, 0, 4, dims, own);
	p->in[7] = p->out_forward[1] = view(&p->lse, 0, 3, lse_dims, lse);
	p->in[8] = view(&p->g, 0, 4, dims, own);
	p->forward = (struct yoke_op){
		.size = sizeof p->forward,
		.code = YOKE_OP_ATTENTION,
		.nout = 2,
		.nin = 6,
		.out = p->out_forward,
		.in = p->in,
		.attr = { { .i = 1 }, { .f = 0.125 }, { .f = 0 }, { .i = 0 } },
	};
	p->back = p->forward;
	p->back.code = YOKE_OP_ATTENTION_BACKWARD;
	p->back.nout = 3;
	p->back.nin = 9;
	p->back.out = p->out_backward;
}

static double seconds(const struct yk_isa *isa, const struct yoke_op *op)
{
	const struct yk_kernel *k = isa->op[op->code];
	double start = yk_seconds();
	if (yk_kernel_once(k, op, (uint32_t)__builtin_ctzll(k->can(op))))
		exit(1);
	return yk_seconds() - start;
}

static void measure(const struct yk_isa *isa, const struct problem *p)
{
	double limit[RUNS], forward[RUNS], back[RUNS];
	const double pairs =
		(double)(p->B * p->H) * (double)p->T * (double)(p->T + 1) / 2;
	for (int i = -WARM; i < RUNS; i++) {
		double l = peak(isa->name), f = seconds(isa, &p->forward),
		       b = seconds(isa, &p->back);
		if (i < 0)
			continue;
		limit[i] = l;
		forward[i] = 2 * 2 * (double)p->D * pairs / f;
		back[i] = 5 * 2 * (double)p->D * pairs / b;
	}
	qsort(limit, RUNS, sizeof *limit, by_value);
	qsort(forward, RUNS, sizeof *forward, by_value);
	qsort(back, RUNS, sizeof *back, by_value);
	const int m = RUNS / 2, q = RUNS / 4, q3 = RUNS - 1 - q;
	printf("%-7s %3lld %4lld %2lld %3lld  %6.1f (%5.1f..%5.1f) %3.0f%%  %6.1f "
	       "(%5.1f..%5.1f) %3.0f%%"
	       "  %6.1f\n",
	       isa->name, (long long)p->B, (long long)p->T, (long long)p->H,
	       (long long)p->D, forward[m] / 1e9, forward[q] / 1e9, forward[q3] / 1e9,
	       100 * forward[m] / limit[m], back[m] / 1e9, back[q] / 1e9, back[q3] / 1e9,
	       100 * back[m] / limit[m], limit[m] / 1e9);
}

int main(void)
{
	struct problem p[] = {
		{ .B = 32, .T = 128, .H = 4, .D = 32 },
		{ .B = 16, .T = 256, .H = 6, .D = 64 },
	};
	const struct yk_isa *list[3];
	const int n = yk_isa_usable(list);
	printf("attention, causal, f32, %d threads; median (quartiles) of %d runs after "
	       "%d, GFLOP/s and "
	       "share of the peak\n",
	       yk_team_size(), RUNS, WARM);
	printf("isa       B    T  H   D  forward                     backward            "
	       "         "
	       "peak\n");
	for (size_t k = 0; k < sizeof p / sizeof *p; k++) {
		problem_init(&p[k]);
		for (int i = 0; i < n; i++)
			measure(list[i], &p[k]);
		struct yk_segment *s[] = { &p[k].qkv, &p[k].dqkv, &p[k].o, &p[k].g,
					   &p[k].lse };
		for (size_t i = 0; i < sizeof s / sizeof *s; i++)
			free(s[i]->base);
	}
	return 0;
}
