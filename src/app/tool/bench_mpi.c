// SPDX-License-Identifier: Apache-2.0
// all_reduce of MPI libraries, for `yoke bench ranks`: starts this program with `--peer` under the
// mpirun of each MPI library that has a module.
#include "config.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "device/child.h"
#include "device/plugin.h"
#include "comm/launch_env.h"
#include "comm/mpi_load.h"
#include "comm/ranks.h"
#include "tool/bench.h"
#include "tool/tool.h"
#include "train/trial.h"

enum { SAMPLES = 7, WARM = 2, TIMES = 1000, LIMIT_S = 120 };
#define SAMPLE_S 0.02

// ---- a rank under mpirun ----

static int measure(const struct yk_mpi *m, bool leads, size_t n)
{
	float *in = calloc(n, sizeof *in), *out = calloc(n, sizeof *out);
	double sample[SAMPLES], spread;
	int times = WARM, e = in && out ? 0 : yk_fail(YOKE_ENOMEM, "no memory for two arrays of %zu elements", n);
	for (int k = -WARM; k < SAMPLES && e == 0; k++) {
		const double began = yk_seconds();
		for (int i = 0; i < times && e == 0; i++)
			if (m->sum(in, out, n) < 0)
				e = yk_fail(YOKE_ERANK, "%s", m->error());
		double each[1] = { (yk_seconds() - began) / times };
		double all[YK_MAX_RANKS];
		if (k >= 0)
			sample[k] = each[0];
		else if (e == 0 && m->gather(each, sizeof each, all) < 0)
			e = yk_fail(YOKE_ERANK, "%s", m->error());
		else if (e == 0)
			times = all[0] * TIMES > SAMPLE_S ? (int)(SAMPLE_S / all[0]) + 1 : TIMES;
	}
	if (e == 0 && leads) {
		printf("%zu %.9g\n", n * sizeof *in, yk_median(SAMPLES, sample, &spread));
		fflush(stdout);
	}
	free(in);
	free(out);
	return e;
}

int yk_bench_mpi_rank(int sizes, const uint64_t *bytes)
{
	struct yk_started p;
	const char *name;
	uint32_t rank = 0, ranks = 0;
	int e = yk_started_find(&p);
	const struct yk_mpi *m = e > 0 ? yk_mpi_open(&p, &name) : NULL;
	if (!m)
		return e ? yk_error_last() : yk_fail(YOKE_EINVAL, "--peer must run under mpirun");
	e = m->begin(&rank, &ranks) < 0 ? yk_fail(YOKE_ERANK, "%s", m->error()) : 0;
	for (int i = 0; e == 0 && i < sizes; i++)
		e = measure(m, rank == 0, bytes[i] / sizeof(float));
	if (e == 0)
		m->end();
	return e;
}

// ---- the parent ----

// Finds the program in PATH.
static bool program(const char *name, char to[PATH_MAX])
{
	const char *path = getenv("PATH");
	while (path && *path) {
		const size_t n = strcspn(path, ":");
		if (snprintf(to, PATH_MAX, "%.*s/%s", (int)n, path, name) < PATH_MAX && access(to, X_OK) == 0)
			return true;
		path += n + (path[n] == ':');
	}
	return false;
}

int yk_bench_mpi(const char *name, int ranks, int sizes, const uint64_t *bytes, struct yk_bench_peer *to)
{
	char run[64], path[PATH_MAX], self[PATH_MAX], module[PATH_MAX], n[16], answer[8192], outcome[400], *at, *rest;
	char list[24 * YK_BENCH_SIZES];
	const char *const argv[] = { path, "-n", n, self, "bench", "ranks", "--peer", list, NULL };
	const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
	snprintf(run, sizeof run, "mpirun.%s", name);
	to->n = 0;
	if (length <= 0 || !yk_module_find(name, module, sizeof module) || (!program(run, path) && !program("mpirun", path)))
		return 0;
	self[length] = '\0';
	snprintf(n, sizeof n, "%d", ranks);
	for (int i = 0, end = 0; i < sizes; i++)
		end += snprintf(list + end, sizeof list - (size_t)end, "%s%" PRIu64, i ? "," : "bytes=", bytes[i]);
	const int told = yk_child_watch(argv, LIMIT_S, "bench ranks", answer, sizeof answer, outcome, sizeof outcome);
	rest = told < 0 ? NULL : answer;
	while ((at = strsep(&rest, "\n")) && to->n < YK_BENCH_SIZES)
		if (sscanf(at, "%" SCNu64 " %lf", &to->bytes[to->n], &to->seconds[to->n]) == 2)
			to->n++;
	return to->n ? 0 : yk_fail(YOKE_EIO, "%s: %s", run, outcome);
}
