// SPDX-License-Identifier: Apache-2.0
// Measures contractions of f32 against the installed CBLAS and the multiply-add peak.
// Each shape: interleaved pairs of runs of both, medians, quartiles of the pairs' ratios.
// Flops are counted as 2 M N K a matrix.  Arguments: none, or shapes as MxNxK or MxNxKxBATCH,
// with NT or TN behind them.  YOKE_CPU_ISA and YOKE_THREADS hold.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../backends/cpu/frame.h"

bool peer_sgemm(bool ta, bool tb, int m, int n, int k, const float *a, const float *b,
		float *c);
const char *peer_sgemm_name(void);

enum { PAIRS = 25 };
static const double SECONDS = 0.2; // a shape, about

struct shape {
	int m, n, k, batch;
	bool ta, tb;
};

static const struct shape shapes[] = {
	{ 256, 256, 256, 1, 0, 0 },    { 512, 512, 512, 1, 0, 0 },
	{ 1024, 1024, 1024, 1, 0, 0 }, { 2048, 2048, 2048, 1, 0, 0 },
	{ 256, 256, 256, 1, 0, 1 },    { 256, 256, 256, 1, 1, 0 },
	{ 512, 512, 512, 1, 0, 1 },    { 1024, 1024, 1024, 1, 0, 1 },
	{ 1024, 1024, 1024, 1, 1, 0 }, { 4096, 128, 128, 1, 0, 0 },
	{ 4096, 512, 128, 1, 0, 0 },   { 4096, 128, 512, 1, 0, 0 },
	{ 4096, 512, 128, 1, 0, 1 },   { 4096, 128, 512, 1, 0, 1 },
	{ 128, 512, 4096, 1, 1, 0 },   { 512, 128, 4096, 1, 1, 0 },
	{ 128, 128, 4096, 1, 1, 0 },   { 4096, 1536, 384, 1, 0, 0 },
	{ 4096, 384, 1536, 1, 0, 1 },  { 384, 1536, 4096, 1, 1, 0 },
	{ 1024, 768, 768, 1, 0, 0 },   { 128, 128, 64, 48, 0, 1 },
	{ 128, 64, 128, 48, 0, 0 },    { 256, 256, 64, 96, 0, 1 },
	{ 1, 512, 512, 1, 0, 0 },      { 8, 512, 512, 1, 0, 0 },
	{ 16, 512, 512, 1, 0, 0 },     { 1, 4096, 1024, 1, 0, 0 },
	{ 8, 4096, 1024, 1, 0, 0 },    { 1, 4096, 1024, 1, 0, 1 },
	{ 8, 4096, 1024, 1, 0, 1 },    { 64, 64, 64, 1, 0, 0 },
	{ 128, 128, 128, 1, 0, 0 },
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

// Multiply-adds on registers, as many threads as the team has: the most that any product
// could do.
#if defined __x86_64__
#include <immintrin.h>
__attribute__((target("avx512f"))) static float peak_avx512(int64_t n)
{
	typedef float vec __attribute__((vector_size(64)));
	vec x = (vec){ 0 } + 0.999f, y = (vec){ 0 } + 0.001f, s[12];

#pragma GCC unroll 12
	for (int i = 0; i < 12; i++)
		s[i] = (vec){ 0 } + (float)i;
	for (int64_t k = 0; k < n; k++) {
#pragma GCC unroll 12
		for (int i = 0; i < 12; i++)
			s[i] = (vec)_mm512_fmadd_ps((__m512)s[i], (__m512)x, (__m512)y);
	}
#pragma GCC unroll 12
	for (int i = 1; i < 12; i++)
		s[0] += s[i];
	return s[0][0];
}

__attribute__((target("avx2,fma"))) static float peak_avx2(int64_t n)
{
	typedef float vec __attribute__((vector_size(32)));
	vec x = (vec){ 0 } + 0.999f, y = (vec){ 0 } + 0.001f, s[12];

#pragma GCC unroll 12
	for (int i = 0; i < 12; i++)
		s[i] = (vec){ 0 } + (float)i;
	for (int64_t k = 0; k < n; k++) {
#pragma GCC unroll 12
		for (int i = 0; i < 12; i++)
			s[i] = (vec)_mm256_fmadd_ps((__m256)s[i], (__m256)x, (__m256)y);
	}
#pragma GCC unroll 12
	for (int i = 1; i < 12; i++)
		s[0] += s[i];
	return s[0][0];
}
#endif

struct peak {
	float (*fn)(int64_t n);
	int64_t n;
	float sink[1024];
};

static void peak_piece(void *arg, int64_t piece)
{
	struct peak *p = arg;

	p->sink[piece % 1024] = p->fn(p->n);
}

static double peak_gflops(const struct yk_isa *isa)
{
	struct peak p = { .n = 100000 };
	int lanes = 0, pieces = yk_team_size();
	double best = 0;

#if defined __x86_64__
	if (!strcmp(isa->name, "avx512"))
		p.fn = peak_avx512, lanes = 16;
	else if (!strcmp(isa->name, "avx2"))
		p.fn = peak_avx2, lanes = 8;
#endif
	if (!p.fn)
		return 0;
	for (int i = 0; i < 50; i++) {
		double t = now();
		yk_team_run(pieces, peak_piece, &p);
		t = 2. * 12 * lanes * (double)p.n * pieces / (now() - t) * 1e-9;
		if (t > best)
			best = t;
	}
	return best;
}

struct problem {
	struct shape s;
	struct yk_segment a, b, c, w;
	struct yoke_view in[2], out;
	struct yoke_op op;
	const struct yk_kernel *kernel;
};

// Large pages where the system has them, as the backend's segments.
static struct yk_segment memory(uint64_t bytes)
{
	const uint64_t page = 2 << 20, all = (bytes / page + 1) * page;
	struct yk_segment s = { aligned_alloc(page, all), bytes };

	if (!s.base) {
		fprintf(stderr, "bench/contract: out of memory\n");
		exit(1);
	}
#ifdef MADV_HUGEPAGE
	madvise(s.base, all, MADV_HUGEPAGE);
#endif
	for (uint64_t i = 0; i + 4 <= bytes; i += 4)
		memcpy(s.base + i, &(float){ (float)(i % 1021) / 1021 - 0.5f }, 4);
	return s;
}

static struct yoke_view view(struct yk_segment *s, int64_t batch, int64_t rows,
			     int64_t cols, bool t)
{
	struct yoke_view v = { .segment = s,
			       .kind = YOKE_VIEW_BUFFER,
			       .dtype = yoke_f32,
			       .rank = 3,
			       .align = 64 };

	v.dims[0] = batch;
	v.dims[1] = t ? cols : rows;
	v.dims[2] = t ? rows : cols;
	v.strides[0] = rows * cols;
	v.strides[1] = t ? 1 : cols;
	v.strides[2] = t ? cols : 1;
	return v;
}

static void problem_init(struct problem *p, const struct yk_isa *isa,
			 const struct shape *s)
{
	int64_t m = s->m, n = s->n, k = s->k;
	uint64_t bytes;

	memset(p, 0, sizeof *p);
	p->s = *s;
	p->a = memory((uint64_t)(m * k * s->batch) * 4);
	p->b = memory((uint64_t)(k * n * s->batch) * 4);
	p->c = memory((uint64_t)(m * n * s->batch) * 4);
	p->in[0] = view(&p->a, s->batch, s->ta ? k : m, s->ta ? m : k, s->ta);
	p->in[1] = view(&p->b, s->batch, s->tb ? n : k, s->tb ? k : n, s->tb);
	p->out = view(&p->c, s->batch, m, n, false);
	p->op = (struct yoke_op){ .size = sizeof p->op,
				  .code = YOKE_OP_CONTRACT,
				  .nout = 1,
				  .nin = 2,
				  .out = &p->out,
				  .in = p->in };
	p->kernel = isa->op[YOKE_OP_CONTRACT];
	bytes = p->kernel->workspace(&p->op, 0);
	p->w = memory(bytes);
	if (bytes) {
		p->op.workspace = view(&p->w, 1, 1, (int64_t)bytes, false);
		p->op.workspace.dtype = yoke_u8;
	}
}

static void problem_fini(struct problem *p)
{
	free(p->a.base);
	free(p->b.base);
	free(p->c.base);
	free(p->w.base);
}

static void ours(struct problem *p)
{
	if (p->kernel->run(&p->op, 0) < 0)
		exit(1);
}

static bool theirs(struct problem *p)
{
	const struct shape *s = &p->s;
	bool there = true;

	for (int64_t i = 0; i < s->batch; i++)
		there = peer_sgemm(s->ta, s->tb, s->m, s->n, s->k,
				   (float *)p->a.base + i * s->m * s->k,
				   (float *)p->b.base + i * s->k * s->n,
				   (float *)p->c.base + i * s->m * s->n);
	return there;
}

// An OpenMP team goes on spinning for a while after its work; neither side may pay for
// the other's.
static void settle(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
}

static void measure(const struct yk_isa *isa, const struct shape *s, double peak)
{
	double flops = 2. * s->m * s->n * s->k * s->batch, t0, once, t[2][PAIRS],
	       ratio[PAIRS];
	struct problem p;
	bool peer;
	int repeat, pairs = PAIRS;

	problem_init(&p, isa, s);
	ours(&p); // warm-up
	peer = theirs(&p);
	t0 = now();
	ours(&p);
	once = now() - t0;
	repeat = (int)(SECONDS / (2 * PAIRS) / once);
	repeat = repeat < 1 ? 1 : repeat;
	if (once * 2 * PAIRS > 4 * SECONDS)
		pairs = 11;
	for (int i = 0; i < pairs; i++) {
		settle();
		ours(&p); // the team is awake, as it is within a step
		t0 = now();
		for (int r = 0; r < repeat; r++)
			ours(&p);
		t[0][i] = (now() - t0) / repeat;
		settle();
		theirs(&p);
		t0 = now();
		for (int r = 0; r < repeat; r++)
			theirs(&p);
		t[1][i] = (now() - t0) / repeat;
		ratio[i] = t[1][i] / t[0][i];
	}
	qsort(t[0], (size_t)pairs, sizeof **t, by_value);
	qsort(t[1], (size_t)pairs, sizeof **t, by_value);
	qsort(ratio, (size_t)pairs, sizeof *ratio, by_value);
	printf("%5d %5d %5d x%-3d %c%c %9.1f ", s->m, s->n, s->k, s->batch, "NT"[s->ta],
	       "NT"[s->tb], flops / t[0][pairs / 2] * 1e-9);
	if (peer)
		printf("%9.1f   %5.2f  %5.2f..%-5.2f", flops / t[1][pairs / 2] * 1e-9,
		       ratio[pairs / 2], ratio[pairs / 4], ratio[pairs * 3 / 4]);
	if (peak > 0)
		printf("  %5.2f", flops / t[0][pairs / 2] * 1e-9 / peak);
	printf("\n");
	fflush(stdout);
	problem_fini(&p);
}

int main(int argc, char **argv)
{
	const char *wish = getenv("YOKE_CPU_ISA"), *threads = getenv("YOKE_THREADS");
	const struct yk_isa *isa = yk_isa_choose(wish ? wish : "");
	double peak;

	if (!isa) {
		fprintf(stderr, "bench/contract: YOKE_CPU_ISA=%s cannot be used here\n",
			wish);
		return 1;
	}
	yk_team_limit(threads ? atoi(threads) : 0);
	peak = peak_gflops(isa);
	printf("# f32, %s, %d threads (%s)%s%s; peer: %s\n", isa->name, yk_team_size(),
	       yk_team_bound(), threads ? ", limit " : "", threads ? threads : "",
	       peer_sgemm_name());
	printf("# multiply-add peak %.1f GFLOP/s; one warm-up run, medians of %d "
	       "interleaved pairs\n",
	       peak, PAIRS);
	printf("%5s %5s %5s %-4s %-2s %9s %9s  %6s  %-12s  %s\n", "M", "N", "K", "", "",
	       "GFLOP/s", "peer", "ratio", "quartiles", "of peak");
	for (int i = 1; i < argc; i++) {
		struct shape s = { .batch = 1 };
		char ta = 'N', tb = 'N';
		const char *t = argv[i] + strcspn(argv[i], "NT");
		if (sscanf(argv[i], "%dx%dx%dx%d", &s.m, &s.n, &s.k, &s.batch) < 3 ||
		    s.m < 1 || s.n < 1 || s.k < 1 || s.batch < 1) {
			fprintf(stderr, "usage: contract [MxNxK[xBATCH][NT|TN|TT]]...\n");
			return 2;
		}
		if (*t)
			sscanf(t, "%c%c", &ta, &tb);
		s.ta = ta == 'T';
		s.tb = tb == 'T';
		measure(isa, &s, peak);
	}
	for (size_t i = 0; argc == 1 && i < sizeof shapes / sizeof *shapes; i++)
		measure(isa, &shapes[i], peak);
	return 0;
}
