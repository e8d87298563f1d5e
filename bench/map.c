// SPDX-License-Identifier: Apache-2.0
// Measures memory-bound ops of the CPU backend: maps, reductions and named ops, in GB/s beside
// the limit for the same kind of traffic, inside and beyond the caches. Bytes: each operand read
// or written once. Every round runs all limits and then all ops, so that other load on the
// machine affects both; the figures are medians of the rounds.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "map.h"
#include "rounds.h"

enum { OPS = 48, ROUNDS = 7 }; // the first round does not count

// Gap between arrays: equal indices must not be equal modulo a page, which slows any loop that
// loads from one array what it has just stored to another.
enum { STAGGER = 1088, LARGE = 2 << 20 };

static const double enough = 0.90, min_seconds = 2e-3;

struct yk_segment yk_bench_array[ARRAYS];
int64_t yk_bench_count;

struct measure {
	double bytes, seconds[ROUNDS], rate, spread;
};

static void run_op(const struct yk_bench_op *b)
{
	yk_kernel_run(b->prepared, &b->op);
}

// Seconds per call, over as many calls as fill min_seconds.
static double once(const struct yk_bench_op *b, const struct yk_limit_loop *loop)
{
	double t = yk_seconds(), spent;
	int n = 0;
	do {
		if (b)
			run_op(b);
		else
			loop->run();
		n++;
		spent = yk_seconds() - t;
	} while (spent < min_seconds);
	return spent / n;
}

static void settle(struct measure *m)
{
	double *s = m->seconds + 1;
	qsort(s, ROUNDS - 1, sizeof *s, by_value);
	double median = (s[(ROUNDS - 1) / 2] + s[(ROUNDS - 2) / 2]) / 2;
	m->rate = m->bytes / median / 1e9;
	m->spread = s[ROUNDS - 2] / s[0];
}

// False: the kernel does not support it, or there is no memory.
static bool prepare(const struct yk_isa *isa, struct yk_bench_op *b,
		    struct yk_segment *space)
{
	const struct yk_kernel *k = isa->op[b->op.code];
	if (!k->can(&b->op))
		return false;
	space->bytes = k->workspace ? k->workspace(&b->op, 0) : 0;
	space->base = aligned_alloc(64, (space->bytes / 64 + 1) * 64);
	b->op.workspace =
		(struct yoke_view){ .segment = space, .kind = YOKE_VIEW_BUFFER };
	return space->base && !yk_kernel_prepare(k, &b->op, 0, &b->prepared);
}

static double limit_of(const struct measure *limit, enum yk_limit fit)
{
	double plain = limit[fit].rate;
	double nt = fit == COPY || fit == TRIAD ? limit[fit + 1].rate : 0;
	return plain > nt ? plain : nt;
}

static void table(const struct yk_isa *isa, const char *only)
{
	static struct yk_bench_op op[OPS];
	static struct yk_segment space[OPS];
	struct measure limit[LIMITS] = { 0 }, got[OPS] = { 0 };
	int n = yk_bench_ops(op, OPS), kept = 0;

	for (int i = 0; i < n; i++) {
		if (only && !strstr(op[i].name, only))
			continue;
		if (i != kept) {
			op[kept] = op[i];
			op[kept].op.in = op[kept].in, op[kept].op.out = op[kept].out;
			op[kept].op.map = &op[kept].map;
		}
		if (prepare(isa, &op[kept], &space[kept]))
			got[kept].bytes = op[kept].bytes, kept++;
		else
			printf("%-7s %-18s cannot run\n", isa->name, op[kept].name);
	}
	for (int r = 0; r < ROUNDS; r++) {
		for (int k = 0; k < LIMITS; k++)
			limit[k].seconds[r] = once(NULL, &yk_limit_loops[k]);
		for (int i = 0; i < kept; i++)
			got[i].seconds[r] = once(&op[i], NULL);
	}
	for (int k = 0; k < LIMITS; k++) {
		limit[k].bytes = (double)yk_bench_count * 4 * yk_limit_loops[k].arrays;
		settle(&limit[k]);
		printf("limit   %-18s %8.2f GB/s                      spread %.2f\n",
		       yk_limit_loops[k].name, limit[k].rate, limit[k].spread);
	}
	for (int i = 0; i < kept; i++) {
		settle(&got[i]);
		double ratio = got[i].rate / limit_of(limit, op[i].fit);
		printf("%-7s %-18s %8.2f GB/s  %5.2f of %-8s %s  spread %.2f\n", isa->name,
		       op[i].name, got[i].rate, ratio, yk_limit_loops[op[i].fit].name,
		       ratio >= enough ? "   " : "LOW", got[i].spread);
		free(space[i].base);
	}
}

// Allocated on huge pages, as the backend's segments are.
static char *array_block(size_t bytes)
{
	bytes = (bytes + LARGE - 1) / LARGE * LARGE;
	char *base = aligned_alloc(LARGE, bytes);
#ifdef MADV_HUGEPAGE
	if (base)
		madvise(base, bytes, MADV_HUGEPAGE);
#endif
	return base;
}

static void fill(char *base)
{
	for (int k = 0; k < ARRAYS; k++) {
		yk_bench_array[k] = (struct yk_segment){
			base + k * (yk_bench_count * 4 + STAGGER),
			(uint64_t)yk_bench_count * 8
		};
		for (int64_t i = 0; i < yk_bench_count; i++)
			array_at(k)[i] = (float)(i % 2003) * 0.002f - (k < 3 ? 2.0f : 0);
	}
}

int main(int argc, char **argv)
{
	static const int64_t sizes[] = { 256, 4096, 524288 }; // KiB
	const struct yk_isa *list[3];
	const char *only = argc > 3 ? argv[3] : NULL;
	const int n = yk_isa_usable(list);
	int64_t request = argc > 1 ? atol(argv[1]) : 0;

	if (argc > 4 || request < 0 || request > 4 << 20)
		return fprintf(stderr, "usage: map [KiB of an array, 0: several] "
				       "[instruction set, all, or a backend] [part of a name]\n"),
		       2;
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		const int64_t kib = request ? (request + 255) / 256 * 256 : sizes[s];
		yk_bench_count = kib << 8;
		char *base = array_block((size_t)yk_bench_count * 4 * ARRAYS + 4096);
		if (!base)
			return fprintf(stderr, "map: no memory\n"), 1;
		bool known = argc < 3 || !strcmp(argv[2], "all");
		for (int i = 0; i < n; i++)
			known = known || !strcmp(argv[2], list[i]->name);
		if (!known) {
			fill(base);
			printf("%lld KiB an array\n", (long long)kib);
			if (yk_bench_beside(list[n - 1], argv[2], only))
				return 1;
		}
		for (int i = 0; i < n; i++) {
			if (argc > 2 ? strcmp(argv[2], "all") && strcmp(argv[2], list[i]->name) :
				       i < n - 1)
				continue;
			fill(base);
			printf("%lld KiB an array, %s, %d threads, median of %d\n",
			       (long long)kib, list[i]->name, yk_team_size(), ROUNDS - 1);
			table(list[i], only);
		}
		free(base);
		if (request)
			break;
	}
	return 0;
}
