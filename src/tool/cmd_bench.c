// SPDX-License-Identifier: Apache-2.0
// yoke bench: times the cases of the chosen suites and prints them beside the machine's
// limits.
#include "config.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/param.h"
#include "device/device.h"
#include "tool/bench.h"
#include "tool/tool.h"

struct bench {
	const char *file;      // JSON goes here; NULL: nowhere
	const char *suites[8]; // chosen; none: all
	int nsuites, threads;
	bool cpu;           // the limits are the device's
	double flops, copy; // limits
	json_t *results;
};

// ---- arguments ----

static int suite_names(const char *names[16])
{
	int n = 0;

	for (const struct yk_case *c = yk_cases; c->suite; c++)
		if (!n || strcmp(names[n - 1], c->suite))
			names[n++] = c->suite;
	return n;
}

static int parse(struct bench *b, int argc, char **argv)
{
	const char *names[16];
	char hint[160];
	int n = suite_names(names), k;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json")) {
			if (++i == argc)
				return yk_usage("bench", "--json wants a file");
			b->file = argv[i];
			continue;
		}
		for (k = 0; k < n && strcmp(argv[i], names[k]); k++)
			;
		if (k == n)
			return yk_usage("bench", "no suite '%s'; %s", argv[i],
					yk_hint(argv[i], names, n, hint, sizeof hint));
		if (b->nsuites < 8)
			b->suites[b->nsuites++] = names[k];
	}
	return YK_DONE;
}

static bool chosen(const struct bench *b, const char *suite)
{
	for (int i = 0; i < b->nsuites; i++)
		if (!strcmp(b->suites[i], suite))
			return true;
	return b->nsuites == 0;
}

// ---- measuring ----

static int run_case(void *arg)
{
	struct yk_case *c = arg;

	return c->run(c);
}

static void share(const struct bench *b, double rate, double limit, char to[16])
{
	snprintf(to, 16, "%s", "-");
	if (b->cpu && rate > 0 && limit > 0)
		snprintf(to, 16, "%.2f", rate / limit);
}

static void print_case(const struct bench *b, const struct yk_case *c,
		       const struct yk_timing *t)
{
	double flops = c->flops / t->median, bytes = c->bytes / t->median;
	char of_flops[16], of_copy[16];

	share(b, flops, b->flops, of_flops);
	share(b, bytes, b->copy, of_copy);
	printf("%-10s %-26s %9.3f ms %6.1f %%", c->suite, c->name, 1e3 * t->median,
	       100 * t->spread / t->median);
	if (c->flops > 0)
		printf(" %8.1f GFLOP/s %5s", 1e-9 * flops, of_flops);
	else
		printf(" %22s", "-");
	if (c->bytes > 0)
		printf(" %7.2f GB/s %5s", 1e-9 * bytes, of_copy);
	if (c->tokens > 0)
		printf(" %8.0f tokens/s", c->tokens / t->median);
	putchar('\n');
	fflush(stdout);
}

static int measure(struct bench *b, struct yk_case *c)
{
	struct yk_timing t;
	int e = c->make(c);

	if (e == 0)
		e = yk_bench_time(run_case, c, &t);
	c->drop(c);
	if (e < 0)
		return e;
	print_case(b, c, &t);
	json_t *o = json_pack("{s:s, s:s, s:f, s:f, s:i, s:f, s:f, s:f}", "suite",
			      c->suite, "case", c->name, "median_s", t.median, "spread_s",
			      t.spread, "samples", t.samples, "flops", c->flops, "bytes",
			      c->bytes, "tokens", c->tokens);
	if (json_array_append_new(b->results, o) < 0)
		return yk_fail(YOKE_ENOMEM, "out of memory for the results");
	return 0;
}

static int save(const struct bench *b, const struct yk_device *d)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:i, s:{s:f, s:f}, s:O}", "version",
			      yoke_version(), "device", d->id, "name", d->info.name,
			      "threads", b->threads, "limits", "flops_per_s", b->flops,
			      "copy_bytes_per_s", b->copy, "results", b->results);
	int e = o ? yk_json_save(b->file, o) :
		    yk_fail(YOKE_ENOMEM, "out of memory, or a name that is not UTF-8");

	json_decref(o);
	return e;
}

static int bench(struct bench *b)
{
	struct yk_device *d = yk_device_choose(NULL), *cpu = yk_device_cpu();
	int e = 0;

	if (!d || !cpu)
		return yoke_error_code();
	b->threads = (int)cpu->info.units;
	b->cpu = d == cpu;
	b->flops = yk_limit_flops(b->threads);
	b->copy = yk_limit_copy(b->threads);
	printf("%s, %s; CPU threads: %d\n", d->id, d->info.name, b->threads);
	printf("limits of the CPU, measured now: %.1f GFLOP/s in fp32 multiply-adds, "
	       "%.2f GB/s in a "
	       "copy\n",
	       1e-9 * b->flops, 1e-9 * b->copy);
	printf("%-10s %-26s %12s %8s %16s %5s %12s %5s\n", "suite", "case", "median",
	       "spread", "rate", "of 1", "rate", "of 1");
	for (struct yk_case *c = yk_cases; e == 0 && c->suite; c++)
		if (chosen(b, c->suite))
			e = measure(b, c);
	if (e == 0 && b->file)
		e = save(b, d);
	return e;
}

int yk_cmd_bench(int argc, char **argv)
{
	struct bench b = { 0 };
	int status = parse(&b, argc, argv);

	if (status != YK_DONE)
		return status;
	b.results = json_array();
	if (!b.results)
		yk_fail(YOKE_ENOMEM, "out of memory for the results");
	if (!b.results || bench(&b) < 0)
		status = yk_failed("bench");
	json_decref(b.results);
	return yk_finish("bench", status);
}
