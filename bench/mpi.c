// SPDX-License-Identifier: Apache-2.0
// Times all_reduce of f32 in an MPI library, the peer of `yoke bench ranks`:
//
//	mpirun -n 2 bench/mpi BYTES ..
//
// Needs the library's module in YOKE_PLUGIN_PATH. Each size is measured with 2 warm-up and 7 timed
// samples of about 20 ms; rank 0 prints the median in the columns of `yoke bench ranks`.
#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "comm/launch_env.h"
#include "comm/mpi_load.h"
#include "comm/ranks.h"
#include "rounds.h"

enum { SAMPLES = 7, WARM = 2, TIMES = 1000 };
#define SAMPLE_S 0.02
#define LIMIT ((uint64_t)256 << 20)

// Sets the number of calls per sample on all ranks from the duration of a call on rank 0.
static int settle(const struct yk_mpi *m, double each, int *times)
{
	double all[YK_MAX_RANKS];
	if (m->gather(&each, sizeof each, all) < 0)
		return yk_fail(YOKE_ERANK, "%s", m->error());
	*times = all[0] * TIMES > SAMPLE_S ? (int)(SAMPLE_S / all[0]) + 1 : TIMES;
	return 0;
}

static int measure(const struct yk_mpi *m, double sample[SAMPLES], const float *in, float *out,
		   size_t n)
{
	int times = WARM, e = 0;
	for (int k = -WARM; k < SAMPLES && e == 0; k++) {
		const double began = yk_seconds();
		for (int i = 0; i < times && e == 0; i++)
			if (m->sum(in, out, n) < 0)
				e = yk_fail(YOKE_ERANK, "%s", m->error());
		const double each = (yk_seconds() - began) / times;
		if (k >= 0)
			sample[k] = each;
		else if (e == 0)
			e = settle(m, each, &times);
	}
	return e;
}

static int size(const struct yk_mpi *m, const char *name, uint32_t rank, uint32_t ranks,
		uint64_t bytes)
{
	const size_t n = bytes / sizeof(float);
	float *in = calloc(n, sizeof *in), *out = calloc(n, sizeof *out);
	double sample[SAMPLES];
	int e = in && out ? measure(m, sample, in, out, n) :
			    yk_fail(YOKE_ENOMEM, "out of memory for two arrays of %zu elements", n);
	if (e == 0 && rank == 0) {
		const double each = median(sample, SAMPLES), algbw = (double)bytes / each;
		printf("%12llu  %-9s %12.2f us %9.3f GB/s %9.3f GB/s\n", (unsigned long long)bytes,
		       name, 1e6 * each, 1e-9 * algbw, 1e-9 * algbw * 2 * (ranks - 1) / ranks);
		fflush(stdout);
	}
	free(in);
	free(out);
	return e;
}

static int run(int n, char **word)
{
	struct yk_started p;
	const char *name;
	uint32_t rank = 0, ranks = 0;
	int e = yk_started_find(&p);
	const struct yk_mpi *m = e > 0 ? yk_mpi_open(&p, &name) : NULL;
	if (!m)
		return e ? yk_error_last() : yk_fail(YOKE_EINVAL, "it must run under mpirun");
	e = m->begin(&rank, &ranks) < 0 ? yk_fail(YOKE_ERANK, "%s", m->error()) : 0;
	for (int i = 0; e == 0 && i < n; i++)
		e = size(m, name, rank, ranks, strtoull(word[i], NULL, 10));
	if (e == 0)
		m->end();
	return e;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		char *end;
		errno = 0;
		const unsigned long long bytes = strtoull(argv[i], &end, 10);
		if (*end || errno || bytes < sizeof(float) || bytes > LIMIT ||
		    bytes % sizeof(float))
			argc = 0;
	}
	if (argc < 2) {
		fprintf(stderr,
			"usage: mpirun -n RANKS bench/mpi BYTES .. (multiples of %zu up to %llu)\n",
			sizeof(float), (unsigned long long)LIMIT);
		return 2;
	}
	if (run(argc - 1, argv + 1) == 0)
		return 0;
	fprintf(stderr, "bench/mpi: %s\n", yoke_error());
	return 1;
}
