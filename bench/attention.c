// SPDX-License-Identifier: Apache-2.0
// Measures causal attention of the CPU backend in f32 and bf16, with q, k and v as slices of one
// tensor: GFLOP/s of the forward and backward kernels for each instruction set, beside the peak of
// multiply-adds, or of vdpbf16ps for bf16, of the same threads in the same run.
// Flops: 2 products forward and 5 backward, each 2 D operations per visible pair of query and
// key.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../backends/cpu/host/frame.h"
#include "../backends/cpu/vector/half.h"
#include "peers/peers.h"
#include "rounds.h"

enum { RUNS = 11, WARM = 2 };

struct problem {
	int64_t B, T, H, D;
	int dtype;
	struct yk_segment qkv, dqkv, o, g, lse;
	struct yoke_view in[9], out_forward[2], out_backward[3];
	struct yoke_op forward, back;
};

static struct yoke_view view(struct yk_segment *s, int dtype, int64_t at, int rank,
			     const int64_t *dims, const int64_t *strides)
{
	struct yoke_view v = { .segment = s,
			       .offset = (uint64_t)at * yk_esize(dtype),
			       .align = 64,
			       .dtype = (uint8_t)dtype,
			       .rank = (uint8_t)rank,
			       .kind = YOKE_VIEW_BUFFER };
	memcpy(v.dims, dims, sizeof *dims * (size_t)rank);
	memcpy(v.strides, strides, sizeof *strides * (size_t)rank);
	return v;
}

static void fill(struct yk_segment *s, int dtype, int64_t n)
{
	s->bytes = (uint64_t)n * yk_esize(dtype);
	s->base = aligned_alloc(64, (s->bytes + 63) / 64 * 64);
	if (!s->base)
		exit(1);
	for (int64_t i = 0; i < n; i++) {
		const float x = (float)(i * 2654435761 % 1000) * 0.002f - 1;
		if (dtype == yoke_f32)
			((float *)(void *)s->base)[i] = x;
		else
			((uint16_t *)(void *)s->base)[i] = yk_bf16_of_f32(x);
	}
}

static void problem_init(struct problem *p)
{
	const int64_t C = p->H * p->D, dims[] = { p->B, p->T, p->H, p->D };
	const int64_t in3[] = { p->T * 3 * C, 3 * C, p->D, 1 }, own[] = { p->T * C, C, p->D, 1 };
	const int64_t lse_dims[] = { p->B, p->H, p->T }, lse[] = { p->H * p->T, p->T, 1 };
	fill(&p->qkv, p->dtype, p->B * p->T * 3 * C);
	fill(&p->dqkv, p->dtype, p->B * p->T * 3 * C);
	fill(&p->o, p->dtype, p->B * p->T * C);
	fill(&p->g, p->dtype, p->B * p->T * C);
	fill(&p->lse, yoke_f32, p->B * p->H * p->T);
	for (int i = 0; i < 3; i++) {
		p->in[i] = view(&p->qkv, p->dtype, i * C, 4, dims, in3);
		p->out_backward[i] = view(&p->dqkv, p->dtype, i * C, 4, dims, in3);
	}
	p->in[6] = p->out_forward[0] = view(&p->o, p->dtype, 0, 4, dims, own);
	p->in[7] = p->out_forward[1] = view(&p->lse, yoke_f32, 0, 3, lse_dims, lse);
	p->in[8] = view(&p->g, p->dtype, 0, 4, dims, own);
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
	const bool level = isa->products != 0;
	const double peak = level ? peak_bf16_gflops(isa->name) : peak_gflops(isa->name);
	double forward[RUNS], back[RUNS];
	const double pairs = (double)(p->B * p->H) * (double)p->T * (double)(p->T + 1) / 2;
	for (int i = -WARM; i < RUNS; i++) {
		double f = seconds(isa, &p->forward), b = seconds(isa, &p->back);
		if (i < 0)
			continue;
		forward[i] = 2 * 2 * (double)p->D * pairs / f;
		back[i] = 5 * 2 * (double)p->D * pairs / b;
	}
	qsort(forward, RUNS, sizeof *forward, by_value);
	qsort(back, RUNS, sizeof *back, by_value);
	const int m = RUNS / 2, q = RUNS / 4, q3 = RUNS - 1 - q;
	printf("%-11s %-4s %3lld %4lld %2lld %3lld  %6.1f (%5.1f..%5.1f) %3.0f%%  %6.1f "
	       "(%5.1f..%5.1f) %3.0f%%  %6.1f\n",
	       isa->name, p->dtype == yoke_f32 ? "f32" : "bf16", (long long)p->B, (long long)p->T,
	       (long long)p->H, (long long)p->D, forward[m] / 1e9, forward[q] / 1e9,
	       forward[q3] / 1e9, peak > 0 ? forward[m] / 1e7 / peak : 0, back[m] / 1e9,
	       back[q] / 1e9, back[q3] / 1e9, peak > 0 ? back[m] / 1e7 / peak : 0, peak);
}

static void compare(struct problem *p, const struct yk_isa *const *list, int n)
{
	problem_init(p);
	for (int i = 0; i < n; i++)
		if (p->dtype == yoke_bf16 || !list[i]->products) // levels differ in bf16 only
			measure(list[i], p);
	struct yk_segment *s[] = { &p->qkv, &p->dqkv, &p->o, &p->g, &p->lse };
	for (size_t i = 0; i < sizeof s / sizeof *s; i++)
		free(s[i]->base);
}

int main(void)
{
	const struct yk_isa *list[YK_ISA_LEVELS];
	const int n = yk_isa_levels(list);
	printf("attention, causal, %d threads; median (quartiles) of %d runs after %d, GFLOP/s and "
	       "share "
	       "of the peak\n",
	       yk_team_size(), RUNS, WARM);
	printf("isa         type   B    T  H   D  forward                     backward             "
	       "       "
	       "peak\n");
	for (int half = 0; half < 2; half++) {
		const int dtype = half ? yoke_bf16 : yoke_f32;
		struct problem small = { .B = 32, .T = 128, .H = 4, .D = 32, .dtype = dtype };
		struct problem large = { .B = 16, .T = 256, .H = 6, .D = 64, .dtype = dtype };
		compare(&small, list, n);
		compare(&large, list, n);
	}
	return 0;
}
