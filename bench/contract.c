// SPDX-License-Identifier: Apache-2.0
// Measures contractions beside OpenBLAS and oneDNN, which are called directly, and beside the
// multiply-add peak.
// For each shape, all implementations run in turn in every round; the results are medians of the
// times and of the per-round ratios to the faster peer. Before each turn the process sleeps, so
// that the threads of the last implementation stop spinning, and the next one warms up: otherwise
// spinning threads share a processor with the threads under measurement. A shape fails when the
// upper confidence bound of the median ratio (one-sided, 95 %, from order statistics) is below
// 0.97, or below 0.90 for shapes no larger than a 256-cube. Flops: 2 M N K per matrix.
// Arguments: f32, bf16, and shapes MxNxK or MxNxKxBATCH followed by NT or TN; default: all.
// YOKE_CPU_ISA and YOKE_THREADS apply.
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "operand.h"
#include "peers/peers.h"
#include "rounds.h"

enum { ROUNDS = 21, LIMIT = 64 };
static const double SECONDS = 0.4;  // approximate seconds per shape
static const double WARM_UP = 1e-3; // seconds before each turn

static const struct {
	int m, n, k, batch;
} sizes[] = {
	{ 64, 64, 64, 1 },       { 128, 128, 128, 1 },    { 256, 256, 256, 1 },
	{ 512, 512, 512, 1 },    { 1024, 1024, 1024, 1 }, { 2048, 2048, 2048, 1 },
	{ 4096, 4096, 4096, 1 }, { 1024, 768, 768, 1 },   { 1024, 3072, 768, 1 },
	{ 512, 512, 128, 1 },    { 128, 128, 64, 48 },    { 1, 4096, 4096, 1 },
	{ 8, 4096, 4096, 1 },    { 16, 4096, 4096, 1 },
};

// Upper confidence bound of the median of n values: the first sorted value that exceeds it with a
// probability of at least 19/20.
static double upper_bound(const double *from, int n)
{
	double v[LIMIT], term = pow(0.5, n), sum = term;
	int j = 0;

	memcpy(v, from, (size_t)n * sizeof *v);
	qsort(v, (size_t)n, sizeof *v, by_value);
	for (; sum < 0.95 && j < n - 1; j++) {
		term *= (double)(n - j) / (j + 1);
		sum += term;
	}
	return v[j];
}

struct problem {
	struct peer_shape s;
	struct yk_segment a, b, c, w;
	struct yoke_view in[2], out;
	struct yoke_op op;
	struct yk_prepared *prepared;
	struct peer_matmul *matmul;
};

static struct yoke_view view(struct yk_segment *s, int dtype, int64_t batch, int64_t rows,
			     int64_t cols, bool t)
{
	struct yoke_view v = { .segment = s,
			       .kind = YOKE_VIEW_BUFFER,
			       .dtype = (uint8_t)dtype,
			       .rank = 3,
			       .align = 64 };

	v.dims[0] = batch;
	v.dims[1] = rows;
	v.dims[2] = cols;
	v.strides[0] = rows * cols;
	v.strides[1] = t ? 1 : cols;
	v.strides[2] = t ? rows : 1;
	return v;
}

static void problem_init(struct problem *p, const struct yk_isa *isa,
			 const struct peer_shape *s)
{
	int64_t m = s->m, n = s->n, k = s->k;
	int dtype = s->bf16 ? yoke_bf16 : yoke_f32;
	uint64_t bytes, e = yk_esize(dtype);

	memset(p, 0, sizeof *p);
	p->s = *s;
	p->a = operand_memory((uint64_t)(m * k * s->batch) * e, dtype);
	p->b = operand_memory((uint64_t)(k * n * s->batch) * e, dtype);
	p->c = operand_memory((uint64_t)(m * n * s->batch) * e, dtype);
	p->in[0] = view(&p->a, dtype, s->batch, m, k, s->ta);
	p->in[1] = view(&p->b, dtype, s->batch, k, n, s->tb);
	p->out = view(&p->c, dtype, s->batch, m, n, false);
	p->op = (struct yoke_op){ .size = sizeof p->op,
				  .code = YOKE_OP_CONTRACT,
				  .nout = 1,
				  .nin = 2,
				  .out = &p->out,
				  .in = p->in };
	const struct yk_kernel *kernel = isa->op[YOKE_OP_CONTRACT];
	bytes = kernel->workspace(&p->op, 0);
	if (yk_kernel_prepare(kernel, &p->op, 0, &p->prepared) < 0)
		exit(1);
	p->w = operand_memory(bytes, yoke_f32);
	if (bytes)
		p->op.workspace = view(&p->w, yoke_u8, 1, 1, (int64_t)bytes, false);
	p->matmul = peer_matmul_new(s, p->a.base, p->b.base, p->c.base);
}

static void problem_fini(struct problem *p)
{
	peer_matmul_free(p->matmul);
	yk_kernel_release(p->prepared);
	free(p->a.base);
	free(p->b.base);
	free(p->c.base);
	free(p->w.base);
}

// ---- who runs ----

enum { OURS, BLAS, ONEDNN, WHO };

static bool run(struct problem *p, int who)
{
	switch (who) {
	case OURS:
		if (yk_kernel_run(p->prepared, &p->op) < 0)
			exit(1);
		return true;
	case BLAS:
		return !p->s.bf16 &&
		       peer_sgemm(&p->s, (const float *)p->a.base,
				  (const float *)p->b.base, (float *)p->c.base);
	default:
		if (p->matmul)
			peer_matmul_run(p->matmul);
		return p->matmul;
	}
}

// Number of runs that fill so many seconds, estimated from the first run.
static int repeats(struct problem *p, int who)
{
	double t = yk_seconds();

	run(p, who);
	t = SECONDS / (WHO * ROUNDS) / (yk_seconds() - t);
	return t < 1 ? 1 : t > 10000 ? 10000 : (int)t;
}

// Seconds per run. The threads are awake when the clock starts, as in a step.
static double time_of(struct problem *p, int who, int repeat)
{
	double t;

	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL); // longer than any thread spins
	t = yk_seconds();
	do
		run(p, who);
	while (yk_seconds() - t < WARM_UP);
	t = yk_seconds();
	for (int r = 0; r < repeat; r++)
		run(p, who);
	return (yk_seconds() - t) / repeat;
}

struct summary {
	int shapes, failed, slow; // slow: f32 from 512 cubed on below 0.75 of the peak
	double logs;              // of the ratios
};

static void measure(const struct yk_isa *isa, const struct peer_shape *s, double peak,
		    struct summary *sum)
{
	double flops = 2. * s->m * s->n * s->k * s->batch, t[WHO][LIMIT], ratio[LIMIT];
	double mid[WHO], max = 0, mark, bound, of_peak;
	bool there[WHO], small = (double)s->m * s->n * s->k < 256. * 256 * 256;
	int repeat[WHO], best = 0;
	struct problem p;

	problem_init(&p, isa, s);
	for (int w = 0; w < WHO; w++) {
		there[w] = run(&p, w); // warm-up
		repeat[w] = there[w] ? repeats(&p, w) : 0;
	}
	for (int i = 0; i < ROUNDS; i++)
		for (int w = 0; w < WHO; w++)
			if (there[w])
				t[w][i] = time_of(&p, w, repeat[w]);
	for (int w = 0; w < WHO; w++)
		mid[w] = there[w] ? median(t[w], ROUNDS) : 0;
	for (int w = BLAS; w < WHO; w++)
		if (there[w] && (!best || mid[w] < mid[best]))
			best = w;
	of_peak = peak > 0 ? flops / mid[OURS] * 1e-9 / peak : 0;
	printf("%-4s %4d %4d %4d %-3.0d %c%c %8.1f %8.1f %8.1f", s->bf16 ? "bf16" : "f32",
	       s->m, s->n, s->k, s->batch > 1 ? s->batch : 0, "NT"[s->ta], "NT"[s->tb],
	       flops / mid[OURS] * 1e-9, there[BLAS] ? flops / mid[BLAS] * 1e-9 : 0,
	       there[ONEDNN] ? flops / mid[ONEDNN] * 1e-9 : 0);
	if (best) {
		for (int i = 0; i < ROUNDS; i++)
			ratio[i] = t[best][i] / t[OURS][i];
		max = median(ratio, ROUNDS);
		bound = upper_bound(ratio, ROUNDS);
		mark = small ? 0.90 : 0.97;
		sum->shapes++;
		sum->failed += bound < mark;
		sum->logs += log(max);
		printf("  %5.2f %5.2f %-4s", max, bound, bound < mark ? "FAIL" : "ok");
	}
	if (peak > 0)
		printf(" %5.2f", of_peak);
	if (!s->bf16 && s->m >= 512 && s->m == s->n && s->n == s->k && of_peak < 0.75)
		sum->slow++;
	printf("\n");
	fflush(stdout);
	problem_fini(&p);
}

// ---- the command ----

// Limits how long a peer's threads spin when they are idle to about 50 us, as the backend's own
// threads do. The peer's library reads these settings when it is loaded.
static void limit_spinning(char **argv)
{
	static const char *const settings[][2] = {
		{ "OMP_WAIT_POLICY",
		  "passive" },                // OpenMP libraries other than libgomp: no spinning
		{ "GOMP_SPINCOUNT", "2000" }, // iterations
		{ "OPENBLAS_THREAD_TIMEOUT", "17" } // log2 of cycles
	};
	bool changed = false;

	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		if (getenv(settings[i][0]))
			continue;
		setenv(settings[i][0], settings[i][1], 1);
		changed = true;
	}
	if (!changed)
		return;
	execv("/proc/self/exe", argv);
	perror("bench/contract: cannot restart with settings for the peers");
	exit(1);
}

static bool parse(const char *text, struct peer_shape *s)
{
	const char *t = text + strcspn(text, "NT");
	char ta = 'N', tb = 'N';

	*s = (struct peer_shape){ .batch = 1 };
	if (sscanf(text, "%dx%dx%dx%d", &s->m, &s->n, &s->k, &s->batch) < 3 || s->m < 1 ||
	    s->n < 1 || s->k < 1 || s->batch < 1)
		return false;
	if (*t)
		sscanf(t, "%c%c", &ta, &tb);
	s->ta = ta == 'T';
	s->tb = tb == 'T';
	return true;
}

int main(int argc, char **argv)
{
	const char *request = getenv("YOKE_CPU_ISA"), *threads = getenv("YOKE_THREADS");
	const struct yk_isa *isa = yk_isa_choose(request ? request : "");
	bool only[2] = { false, false }, some = false;
	double peak[2];

	limit_spinning(argv);
	if (!isa) {
		fprintf(stderr, "bench/contract: YOKE_CPU_ISA=%s cannot be used here\n",
			request);
		return 1;
	}
	for (int i = 1; i < argc; i++) {
		struct peer_shape s;
		if (!strcmp(argv[i], "f32") || !strcmp(argv[i], "bf16")) {
			only[argv[i][0] == 'b'] = true;
		} else if (parse(argv[i], &s)) {
			some = true;
		} else {
			fprintf(stderr, "usage: contract [f32] [bf16] "
					"[MxNxK[xBATCH][NT|TN|TT]]...\n");
			return 2;
		}
	}
	yk_team_limit(threads ? atoi(threads) : 0);
	peak[0] = peak_gflops(isa->name);
	peak[1] = peak_bf16_gflops(isa->name);
	printf("# %s, %d threads (%s)%s%s; peers: %s; %s\n", isa->name, yk_team_size(),
	       yk_team_bound(), threads ? ", limit " : "", threads ? threads : "",
	       peer_sgemm_name(), peer_matmul_name());
	printf("# multiply-add peak f32 %.1f, bf16 %.1f GFLOP/s; %.0f ms of warm-up before "
	       "each turn, medians of %d rounds\n",
	       peak[0], peak[1], WARM_UP * 1e3, ROUNDS);
	printf("%-4s %4s %4s %4s %-3s %-2s %8s %8s %8s  %5s %5s %-4s %5s\n", "", "M", "N",
	       "K", "", "", "GFLOP/s", "blas", "onednn", "ratio", "upper", "", "peak");
	for (int bf16 = 0; bf16 < 2; bf16++) {
		struct summary sum = { 0 };
		struct peer_shape s;
		if ((only[0] || only[1]) && !only[bf16])
			continue;
		for (int i = 1; i < argc; i++)
			if (parse(argv[i], &s)) {
				s.bf16 = bf16;
				measure(isa, &s, peak[bf16], &sum);
			}
		for (size_t i = 0; !some && i < sizeof sizes / sizeof *sizes; i++)
			for (int t = 0; t < 3; t++) {
				s = (struct peer_shape){ sizes[i].m,   sizes[i].n,
							 sizes[i].k,   sizes[i].batch,
							 .ta = t == 2, .tb = t == 1,
							 .bf16 = bf16 };
				measure(isa, &s, peak[bf16], &sum);
			}
		if (sum.shapes)
			printf("# %s: %d shapes, %d failed, geometric mean %.3f; %d "
			       "cubes "
			       "from 512 on below 0.75 of the f32 peak\n",
			       bf16 ? "bf16" : "f32", sum.shapes, sum.failed,
			       exp(sum.logs / sum.shapes), sum.slow);
	}
	return 0;
}
