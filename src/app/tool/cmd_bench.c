// SPDX-License-Identifier: Apache-2.0
// yoke bench: times the cases of the chosen suites on one or several devices and prints the results
// beside each device's limits.
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "base/param.h"
#include "observe/memory.h"
#include "tool/bench.h"
#include "tool/tool.h"

enum { MAX_DEVICES = 4, QUICK = 12 }; // 12: divisible by the number of heads of every model

// A device with its context.
struct on {
	struct yk_device *device;
	yoke_context *context;
	struct yk_bench_limits limits;
	struct yk_timing timing; // of the current case
};

struct bench {
	const char *page;      // HTML output; NULL: none
	const char *list;      // "cpu,opencl"; NULL: the default device
	const char *suites[16]; // chosen suites; none: all
	bool json, quick;
	int nsuites, n;
	struct on on[MAX_DEVICES];
	json_t *results;
};

// ---- arguments ----

static int suite_names(const char *names[16])
{
	int n = 0;

	for (const struct yk_bench_case *c = yk_cases; c->suite; c++)
		if (!n || strcmp(names[n - 1], c->suite))
			names[n++] = c->suite;
	return n;
}

static int parse(struct bench *b, int argc, char **argv)
{
	const char *names[16], *value;
	char hint[160];
	int n = suite_names(names), k;

	for (int i = 1; i < argc; i++) {
		const char *twice = yk_option_twice(argv, i);
		if (twice)
			return yk_usage("bench", "argument '%s' repeats '%s'; give it once",
					argv[i], twice);
		if (!strcmp(argv[i], "--json")) {
			b->json = true;
		} else if ((value = yk_option("--html", argc, argv, &i))) {
			if (!*value)
				return yk_usage("bench", "--html needs a file name");
			b->page = value;
		} else if (!strcmp(argv[i], "--quick")) {
			b->quick = true;
		} else if (!strncmp(argv[i], "devices=", 8)) {
			b->list = argv[i] + 8;
			if (!*b->list)
				return yk_usage(
					"bench",
					"devices= needs a list, for example devices=cpu,opencl");
		} else if (argv[i][0] == '-' || strchr(argv[i], '=')) {
			return yk_usage("bench",
					"unknown option '%s'; the options are devices=, --quick, "
					"--json and --html",
					argv[i]);
		} else {
			for (k = 0; k < n && strcmp(argv[i], names[k]); k++)
				;
			if (k == n)
				return yk_usage("bench", "no suite '%s'; %s", argv[i],
						yk_hint(argv[i], names, n, hint, sizeof hint));
			if (b->nsuites < 16)
				b->suites[b->nsuites++] = names[k];
		}
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

// ---- devices ----

// Measures the limits once for all devices that are the same CPU.
static int find_limits(struct bench *b, struct on *x)
{
	const struct yoke_device_info *info = &x->device->info;

	for (struct on *o = b->on; o != x; o++)
		if (info->kind == YOKE_DEVICE_CPU && o->device->info.kind == info->kind &&
		    o->device->info.units == info->units) {
			x->limits = o->limits;
			return 0;
		}
	return yk_limits_measure(x->device, b->quick, &x->limits);
}

static int open_device(struct bench *b, const char *name)
{
	struct on *x = &b->on[b->n];

	if (b->n == MAX_DEVICES)
		return yk_fail(YOKE_EINVAL, "devices=%s: more than %d devices", b->list,
			       MAX_DEVICES);
	if (!(x->device = yk_option_device(name)))
		return yoke_error_code();
	for (int i = 0; i < b->n; i++)
		if (b->on[i].device == x->device)
			return yk_fail(YOKE_EINVAL, "devices=%s: %s is listed twice", b->list,
				       x->device->id);
	x->context = yoke_context_new(name ? x->device->backend->table.name : NULL);
	if (!x->context)
		return yoke_error_code();
	b->n++;
	yoke_use(x->context);
	return find_limits(b, x);
}

static int open_devices(struct bench *b)
{
	char name[64], *request = strdup(yk_param_str(yk_param_find("device")));
	const char *at = b->list;
	int e = 0;

	if (!request)
		return yk_fail(YOKE_ENOMEM, "out of memory for the names of devices");
	if (!at)
		e = open_device(b, NULL);
	for (; e == 0 && at && *at; at += *at == ',') {
		size_t n = strcspn(at, ",");
		snprintf(name, sizeof name, "%.*s", (int)n, at);
		yk_param_set("device", request, YK_ARGUMENT); // applies "opencl:1"
		e = open_device(b, name);
		at += n;
	}
	free(request);
	return e;
}

static void close_devices(struct bench *b)
{
	yoke_use(NULL);
	while (b->n)
		yoke_context_free(b->on[--b->n].context);
}

// ---- printing ----

static const char *share(double rate, double limit, char to[16])
{
	if (rate > 0 && limit > 0)
		snprintf(to, 16, "%.0f %%", 100 * rate / limit);
	else
		snprintf(to, 16, "-");
	return to;
}

static void print_head(const struct bench *b)
{
	for (int i = 0; i < b->n; i++) {
		const struct on *x = &b->on[i];
		char units[64];
		printf("%s, %s, %s; limits measured in this run:\n", x->device->id,
		       x->device->info.name, yk_counted(units, x->device->info.units, "unit"));
		printf("  peak %10.1f GFLOP/s  %s\n", 1e-9 * x->limits.flops, x->limits.flops_of);
		printf("  copy %10.2f GB/s     %s\n", 1e-9 * x->limits.copy, x->limits.copy_of);
	}
	if (b->quick)
		printf("--quick: all extents are reduced to at most %d, so the figures are "
		       "meaningless.\n",
		       (int)QUICK);
	printf("Rates above 100 %% of the copy come from caches.%s\n\n",
	       b->n > 1 ? "  GFLOP/s are compared with the peak, GB/s with the copy." : "");
	if (b->n == 1) {
		printf("%-10s %-32s %12s %8s %16s %8s %12s %8s\n", "suite", "case", "median",
		       "spread", "arithmetic", "of peak", "memory", "of copy");
		return;
	}
	printf("%-43s", "");
	for (int i = 0; i < b->n; i++)
		printf("  %-*s", i ? 48 : 39, b->on[i].device->id);
	printf("\n%-10s %-32s", "suite", "case");
	for (int i = 0; i < b->n; i++)
		printf("  %12s %16s %9s%s", "median", "rate", "of limit", i ? "  of time" : "");
	printf("\n");
}

// One device: both rates, each beside its limit.
static void print_case(const struct on *x, const struct yk_bench_case *c)
{
	const struct yk_timing *t = &x->timing;
	double flops = c->flops / t->median, bytes = c->bytes / t->median;
	char of[16];

	printf("%-10s %-32s %9.3f ms %6.1f %%", c->suite, c->name, 1e3 * t->median,
	       100 * t->spread / t->median);
	if (c->flops > 0)
		printf(" %8.1f GFLOP/s %8s", 1e-9 * flops, share(flops, x->limits.flops, of));
	else
		printf(" %16s %8s", "-", "-");
	if (c->bytes > 0)
		printf(" %7.2f GB/s %8s", 1e-9 * bytes, share(bytes, x->limits.copy, of));
	if (c->samples > 0) {
		char peak[32];
		printf(" %8.1f samples/s %8.3f ms/sample  peak %s", c->samples / t->median,
		       1e3 * t->median / c->samples, yk_bytes_text(peak, c->peak));
	} else if (c->tokens > 0) {
		printf(" %8.0f tokens/s", c->tokens / t->median);
	}
}

// Several devices: the relevant rate of each, and its time relative to the first.
static void print_comparison(const struct bench *b, const struct yk_bench_case *c)
{
	char of[16];

	printf("%-10s %-32s", c->suite, c->name);
	for (int i = 0; i < b->n; i++) {
		const struct on *x = &b->on[i];
		bool flops = c->flops > 0;
		double rate = (flops ? c->flops : c->bytes) / x->timing.median;
		printf("  %9.3f ms %8.1f %-7s %9s", 1e3 * x->timing.median, 1e-9 * rate,
		       flops ? "GFLOP/s" : "GB/s",
		       share(rate, flops ? x->limits.flops : x->limits.copy, of));
		if (i)
			printf("  %5.2f x", x->timing.median / b->on[0].timing.median);
	}
}

// ---- measuring ----

static int run_case(void *arg)
{
	struct yk_bench_case *c = arg;

	return c->run(c);
}

static int measure_on(struct bench *b, struct on *x, struct yk_bench_case *c)
{
	struct yk_timing *t = &x->timing;

	yoke_use(x->context);
	yoke_stats_reset_peaks();
	int e = c->make(c);
	if (e == 0)
		e = yk_bench_time(run_case, c, b->quick, t);
	struct yoke_stats stats = { .size = sizeof stats };
	if (e == 0 && c->samples > 0 && yoke_stats(&stats) == 0)
		c->peak = stats.pool_allocated_peak;
	c->drop(c);
	if (e < 0)
		return e;
	json_t *o = json_pack("{s:s, s:s, s:s, s:f, s:f, s:i, s:f, s:f, s:f}", "device",
			      x->device->id, "suite", c->suite, "case", c->name, "median_s",
			      t->median, "spread_s", t->spread, "samples", t->samples, "flops",
			      c->flops, "bytes", c->bytes, "tokens", c->tokens);
	if (o && c->x > 0)
		json_object_set_new(o, "size", json_real(c->x));
	if (o && c->samples > 0) {
		json_object_set_new(o, "samples_per_s", json_real(c->samples / t->median));
		json_object_set_new(o, "peak_bytes", json_integer((json_int_t)c->peak));
	}
	if (o && c->launches)
		json_object_set_new(o, "launches", json_integer((json_int_t)c->launches));
	if (json_array_append_new(b->results, o) < 0)
		return yk_fail(YOKE_ENOMEM, "out of memory for the results");
	return 0;
}

// Is a CPU among the devices?
static bool on_processor(const struct bench *b)
{
	for (int i = 0; i < b->n; i++)
		if (b->on[i].device->info.kind == YOKE_DEVICE_CPU)
			return true;
	return false;
}

// *full: set to the suite if its case does not fit.
static int measure(struct bench *b, struct yk_bench_case *c, const char **full)
{
	for (int i = 0; i < b->n && c->fits; i++) {
		yoke_use(b->on[i].context);
		if (c->fits(c))
			continue;
		*full = c->suite;
		printf("%-10s %-32s is predicted not to fit on %s\n", c->suite, c->name,
		       b->on[i].device->id);
		return 0;
	}
	for (int i = 0; i < b->n; i++) {
		int e = measure_on(b, &b->on[i], c);
		if (e < 0)
			return e;
	}
	if (b->n == 1)
		print_case(&b->on[0], c);
	else
		print_comparison(b, c);
	putchar('\n');
	fflush(stdout);
	return 0;
}

static json_t *devices_json(const struct bench *b)
{
	json_t *devices = json_array();

	for (int i = 0; i < b->n; i++) {
		const struct on *x = &b->on[i];
		json_array_append_new(devices,
				      json_pack("{s:s, s:s, s:i, s:f, s:f, s:{s:f, s:f}}", "device",
						x->device->id, "name", x->device->info.name,
						"units", (int)x->device->info.units, "flops_per_s",
						x->limits.flops, "copy_bytes_per_s", x->limits.copy,
						"limits", "flops_per_s", x->limits.flops,
						"copy_bytes_per_s", x->limits.copy));
	}
	return devices;
}

static int save(const struct bench *b, FILE *to)
{
	json_t *devices = devices_json(b);
	json_t *o = json_pack("{s:s, s:o, s:O}", "version", yoke_version(), "devices", devices,
			      "results", b->results);
	if (json_array_size(devices) == (size_t)b->n)
		return yk_json_end(to, o);
	json_decref(o);
	return yk_json_end(to, NULL);
}

static int bench(struct bench *b)
{
	int e = open_devices(b);
	FILE *json = NULL;

	if (e == 0 && b->json && !(json = yk_json_only()))
		e = YOKE_EIO;
	if (e == 0)
		print_head(b);
	const char *full = NULL;
	for (struct yk_bench_case *c = yk_cases;
	     e == 0 && c->suite && (b->json || b->page || !yk_reader_exited()); c++)
		if (chosen(b, c->suite) && (!full || strcmp(full, c->suite)) &&
		    !(c->accelerator && on_processor(b))) {
			for (int i = 0; b->quick && i < (int)(sizeof c->size / sizeof *c->size);
			     i++)
				c->size[i] = c->size[i] < QUICK ? c->size[i] : QUICK;
			e = measure(b, c, &full);
			fflush(stdout);
		}
	if (e == 0 && json)
		e = save(b, json);
	if (e == 0 && b->page) {
		json_t *devices = devices_json(b);
		e = yk_bench_page(b->page, devices, NULL, b->results);
		json_decref(devices);
	}
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
	close_devices(&b);
	json_decref(b.results);
	return status;
}
