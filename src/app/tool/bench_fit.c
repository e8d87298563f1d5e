// SPDX-License-Identifier: Apache-2.0
// yoke bench fit: fits and trains a pipeline once per device and attributes the wall time to parts:
//   loader      both phases wait for batches
//   pass        phase 1 computes the statistics of one pass, without that wait
//   eigen       phase 1 fits nodes by eigendecomposition
//   upload      phase 2 copies between host and device
//   forward, backward, optimizer
//               steps of phase 2 that were recorded for one of these
//   joint       steps of phase 2 that were recorded for several of these
//   plans       phase 2 plans
//   validation  validations as a whole
//   rest        the remaining wall time: recording, and other work of the host
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/number.h"
#include "base/param.h"
#include "fit/node.h"
#include "tool/bench.h"
#include "tool/fit_config.h"
#include "tool/tool.h"
#include "yoke-observe.h"

#define NODES \
	"\"nodes\": [{\"name\": \"scale\", \"type\": \"min_max\"}, {\"name\": \"pca\", \"type\": \"pca\", \"k\": 20, \"train\": true}," \
	"{\"name\": \"less\", \"type\": \"pca\", \"k\": 10, \"train\": true}, {\"name\": \"rx\", \"type\": \"rx\", \"train\": true}," \
	"{\"name\": \"logit\", \"type\": \"logit\", \"train\": true}]," \
	"\"losses\": [{\"type\": \"orthogonality\", \"of\": \"pca\", \"weight\": 0.1}," \
	"{\"type\": \"orthogonality\", \"of\": \"less\", \"weight\": 0.1}, {\"type\": \"bce\", \"of\": \"logit\"}]," \
	"\"metrics\": [\"roc_auc\"]"

static const char small[] =
	"{\"data\": {\"synthetic\": \"count=200 lines=128 samples=128 bands=50\", \"batch\": 16, \"cache\": \"all\"}, " NODES
	", \"trainer\": {\"max_epochs\": 5}}";
static const char large[] =
	"{\"data\": {\"synthetic\": \"count=1000 lines=256 samples=256 bands=100\", \"batch\": 32}, " NODES
	"}";

enum { PASSES = YOKE_PIPELINE_PASSES, LIMIT = 4, KEYS = 64, SCALED = 4 };
enum phase {
	LOADER,
	EIGEN,
	UPLOAD,
	FORWARD,
	BACKWARD,
	OPTIMIZER,
	JOINT,
	PLAN,
	VALIDATION,
	REST,
	PHASES
};
static const char *const names[PHASES] = { "loader",    "eigen", "upload", "forward",    "backward",
					   "optimizer", "joint", "plans",  "validation", "rest" };

struct result {
	char device[48];
	double began, wall, phase[PHASES], pass[PASSES]; // seconds
	int passes;
	int64_t samples;   // samples read in phase 1, trained and validated in phase 2
	uint64_t predicted, peak; // predicted and measured peak of the device's pool, bytes
};

struct bench {
	const char *workload, *list, *scale; // list: devices
	bool json;
	int64_t loader_ms, count; // count: number of cubes in a scaling measurement
	char *key[KEYS];   // key=value, overriding the workload
	int keys;
	char scaled[SCALED][100]; // keys of the current point of a scaling measurement
	json_t *results;
};

// ---- a run ----

static int delayed_map(void *arg, const struct yoke_item *from, struct yoke_item *to)
{
	const int64_t ms = *(const int64_t *)arg;
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
	(void)from, (void)to;
	nanosleep(&t, NULL);
	return 0;
}

static int load(const struct bench *b, const char *device, struct yk_fit_config *c)
{
	char word[100];
	const bool built_in = !strcmp(b->workload, "small") || !strcmp(b->workload, "large");
	*c = (struct yk_fit_config){ .root = NULL };
	int err = built_in ? 0 : yk_fit_config_load(c, b->workload);
	if (built_in)
		c->root = json_loads(*b->workload == 's' ? small : large, 0, NULL);
	for (int i = 0; i < b->keys && !err; i++)
		err = yk_fit_config_set(c, b->key[i]);
	for (int i = 0; i < SCALED && !err && *b->scaled[i]; i++)
		err = yk_fit_config_set(c, b->scaled[i]);
	snprintf(word, sizeof word, "trainer.accelerator=%s", device);
	if (!err && device)
		err = yk_fit_config_set(c, word);
	return err;
}

// Adds up the work items of phase 2, except those of validations.
static int sum_rows(yoke_profile *p, int64_t cycle, int partial, void *arg)
{
	struct result *r = arg;
	(void)cycle, (void)partial;
	const int n = yoke_profile_rows(p, 0, NULL);
	struct yoke_profile_row *row = calloc((size_t)(n > 0 ? n : 1), sizeof *row);
	if (!row)
		return yk_fail(YOKE_ENOMEM, "out of memory for a profile");
	row->size = sizeof *row;
	yoke_profile_rows(p, n, row);
	for (int i = 0; i < n; i++) {
		const double s = isnan(row[i].total) ? row[i].host : row[i].total;
		enum phase to = JOINT;
		if (!strncmp(row[i].range, "validate", 8))
			continue;
		for (int k = FORWARD; k <= OPTIMIZER; k++)
			if (!strcmp(row[i].range, names[k]))
				to = (enum phase)k;
		if (!strcmp(row[i].op, "upload") || !strcmp(row[i].op, "download"))
			to = UPLOAD;
		else if (!strcmp(row[i].op, "plan"))
			to = PLAN;
		if (strcmp(row[i].op, "wait"))
			r->phase[to] += s;
	}
	free(row);
	return 0;
}

static int train(yoke_pipeline *p, const struct yoke_training *o, struct result *r)
{
	const struct yoke_profile_options po = { .size = sizeof po,
						 .flags = YOKE_PROFILE_RANGES,
						 .active = INT64_MAX,
						 .cycle = sum_rows,
						 .arg = r };
	yoke_profile *profile = yoke_profile_new(&po);
	int err = profile ? yoke_pipeline_train(p, o) : yk_error_last();
	if (!err)
		err = yoke_sync();
	r->wall = yk_seconds() - r->began;
	if (profile)
		yoke_profile_step(profile);
	yoke_profile_free(profile);
	return err;
}

static int phases(struct yk_fit_config *c, yoke_pipeline *p, yoke_dataset *set, struct result *r)
{
	struct yoke_pipeline_stats s = { .size = sizeof s };
	struct yoke_stats pool = { .size = sizeof pool };
	const int64_t n = yoke_dataset_count(set), first = llround(c->split[0] * (double)n),
		      second = llround((c->split[0] + c->split[1]) * (double)n);
	yoke_dataset *part[2] = { first > 0 ? yoke_dataset_subset(set, 0, first, NULL) : NULL,
				  second > first ?
					  yoke_dataset_subset(set, first, second - first, NULL) :
					  NULL };
	const struct yoke_training o = {
		.size = sizeof o, .train = part[0], .valid = part[1], .loader = c->loader
	};
	yoke_stats_reset_peaks();
	r->began = yk_seconds();
	int err = part[0] ? yoke_pipeline_fit(p, part[0], c->loader) :
			    yk_fail(YOKE_EINVAL, "data: split: leaves no sample for training");
	if (!err)
		err = train(p, &o, r);
	yoke_dataset_free(part[0]);
	yoke_dataset_free(part[1]);
	if (err)
		return err;
	yoke_pipeline_stats(p, &s);
	yoke_stats(&pool);
	r->predicted = pool.predicted_peak;
	r->peak = pool.pool_allocated_peak;
	r->passes = s.passes < PASSES ? s.passes : PASSES;
	r->samples = s.samples + p->plan.keys.max_epochs * second;
	r->phase[LOADER] = s.loading;
	r->phase[EIGEN] = s.solving;
	r->phase[VALIDATION] = s.validating;
	r->phase[REST] = r->wall;
	for (int i = 0; i < r->passes; i++)
		r->phase[REST] -= r->pass[i] = s.pass[i];
	for (int i = 0; i < REST; i++)
		r->phase[REST] -= r->phase[i];
	return 0;
}

static int run(const struct bench *b, const char *device, struct result *r)
{
	struct yk_fit_config c;
	*r = (struct result){ .wall = 0 };
	int err = load(b, device, &c);
	if (!err)
		err = yk_fit_config_data(&c);
	yoke_profile_prepare();
	yoke_context *ctx = err ? NULL : yk_fit_config_context(&c),
		     *before = ctx ? yoke_use(ctx) : NULL;
	yoke_pipeline *p = ctx ? yk_fit_config_pipeline(&c) : NULL;
	int64_t ms = b->loader_ms;
	yoke_dataset *set =
		p && ms ? yoke_dataset_map(c.set, 0, NULL, delayed_map, &ms, NULL) : NULL;
	if (!p || (ms && !set))
		err = yk_error_last();
	if (!err) {
		snprintf(r->device, sizeof r->device, "%.40s", p->plan.keys.accelerator);
		err = phases(&c, p, set ? set : c.set, r);
	}
	yoke_dataset_free(set);
	yoke_pipeline_free(p);
	if (ctx)
		yoke_use(before);
	yoke_context_free(ctx);
	yk_fit_config_fini(&c);
	return err;
}

// ---- output ----

static json_t *describe(const struct bench *b, const struct result *r)
{
	json_t *o = json_pack("{s:s, s:s, s:f, s:I, s:I, s:I, s:s}", "workload", b->workload,
			      "device", r->device, "wall", r->wall, "samples",
			      (json_int_t)r->samples, "predicted_peak", (json_int_t)r->predicted,
			      "peak", (json_int_t)r->peak, "scaled", b->scaled[0]);
	json_t *passes = json_array();
	for (int i = 0; i < r->passes; i++)
		json_array_append_new(passes, json_real(r->pass[i]));
	json_object_set_new(o, "statistics", passes);
	for (int i = 0; i < PHASES; i++)
		json_object_set_new(o, names[i], json_real(r->phase[i]));
	return o;
}

static void line(const char *name, const double *s, int n, const struct result *r)
{
	printf("%-14s", name);
	for (int i = 0; i < n; i++)
		printf(" %10.3f s %4.1f %%", s[i], 100 * s[i] / r[i].wall);
	for (int i = 1; i < n; i++)
		if (s[0] > 0)
			printf("  %7.2f", s[i] / s[0]);
		else
			printf("  %7s", "-");
	putchar('\n');
}

// Prints one column per device, followed by each device's time relative to the first.
static void show(const struct result *r, int n)
{
	char n_samples[64];
	double s[LIMIT];
	char name[32];
	printf("%-14s", "");
	for (int i = 0; i < n; i++)
		printf(" %19s", r[i].device);
	for (int i = 1; i < n; i++)
		printf("  : %s", r[0].device);
	putchar('\n');
	for (int k = 0; k < PHASES; k++) {
		for (int i = 0; i < n; i++)
			s[i] = r[i].phase[k];
		line(names[k], s, n, r);
		for (int pass = 0; k == LOADER && pass < r[0].passes; pass++) {
			for (int i = 0; i < n; i++)
				s[i] = r[i].pass[pass];
			snprintf(name, sizeof name, "statistics %d", pass + 1);
			line(name, s, n, r);
		}
	}
	for (int i = 0; i < n; i++)
		s[i] = r[i].wall;
	line("total", s, n, r);
	for (int i = 0; i < n; i++)
		printf("%s: %s, %.1f samples/s, %.2f ms per sample; peak of the memory pool %.1f "
		       "MiB, planned %.1f MiB per step\n",
		       r[i].device, yk_counted(n_samples, r[i].samples, "sample"),
		       (double)r[i].samples / r[i].wall, 1e3 * r[i].wall / (double)r[i].samples,
		       (double)r[i].peak / 1048576, (double)r[i].predicted / 1048576);
}

// Measures all devices once; prints a table unless this is a point of a scaling measurement.
static int measure(struct bench *b)
{
	struct result r[LIMIT];
	char list[300], *rest = list, *device;
	int n = 0, err = 0;
	snprintf(list, sizeof list, "%s", b->list ? b->list : "");
	while (!err && n < LIMIT && (device = strsep(&rest, ","))) {
		err = run(b, *device ? device : NULL, &r[n]);
		if (!err)
			json_array_append_new(b->results, describe(b, &r[n++]));
	}
	if (err)
		return err;
	if (!b->scale) {
		show(r, n);
		return 0;
	}
	printf("%-50s", b->scaled[0]);
	for (int i = 0; i < n; i++)
		printf("  %s %.3f s %.1f samples/s %.2f ms %.1f MiB (planned %.1f)", r[i].device,
		       r[i].wall, (double)r[i].samples / r[i].wall,
		       1e3 * r[i].wall / (double)r[i].samples, (double)r[i].peak / 1048576,
		       (double)r[i].predicted / 1048576);
	for (int i = 1; i < n; i++)
		printf("  %.2f", r[0].wall / r[i].wall);
	putchar('\n');
	fflush(stdout);
	return 0;
}

// ---- scaling ----

// Each point uses the synthetic cubes of `small` with one number changed. The number of components
// is limited by the number of channels.
static int measure_scale(struct bench *b)
{
	static const int batch[] = { 4, 8, 16, 32 }, channels[] = { 10, 20, 50, 100, 200 },
			 side[] = { 32, 64, 128, 256 };
	const bool by_batch = !strcmp(b->scale, "batch"),
		   by_channels = !strcmp(b->scale, "channels");
	const int *value = by_batch    ? batch :
			   by_channels ? channels :
					 side,
		  n = by_channels ? 5 : 4;
	int err = 0;
	for (int i = 0; i < n && !err; i++) {
		const int lines = by_batch || by_channels ? 128 : value[i],
			  bands = by_channels ? value[i] : 50;
		char (*to)[sizeof *b->scaled] = b->scaled;
		if (by_batch)
			snprintf(*to++, sizeof *to, "data.batch=%d", value[i]);
		snprintf(*to++, sizeof *to,
			 "data.synthetic=count=%" PRId64 " lines=%d samples=%d bands=%d", b->count,
			 lines, lines, bands);
		for (int k = 0; k < 2 && bands < 20 && !strcmp(b->workload, "small"); k++)
			snprintf(*to++, sizeof *to, "nodes.%s.k=%d", k ? "less" : "pca",
				 k ? bands / 2 : bands);
		err = measure(b);
	}
	return err;
}

// ---- the command ----

static int parse(struct bench *b, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		uint64_t n;
		const char *equals = strchr(argv[i], '=');
		if (!strcmp(argv[i], "--json")) {
			b->json = true;
		} else if (!strncmp(argv[i], "workload=", 9)) {
			b->workload = argv[i] + 9;
		} else if (!strncmp(argv[i], "devices=", 8)) {
			b->list = argv[i] + 8;
		} else if (!strncmp(argv[i], "scale=", 6)) {
			b->scale = argv[i] + 6;
			if (strcmp(b->scale, "batch") && strcmp(b->scale, "channels") &&
			    strcmp(b->scale, "side"))
				return yk_usage("bench fit",
						"scale=%s: must be batch, channels or side",
						b->scale);
		} else if (!strncmp(argv[i], "loader_ms=", 10)) {
			if (yk_option_number(argv[i] + 10, &n) < 0 || n > 100000)
				return yk_usage(
					"bench fit",
					"'%s': must be a number of milliseconds up to 100000",
					argv[i]);
			b->loader_ms = (int64_t)n;
		} else if (!strncmp(argv[i], "count=", 6)) {
			if (yk_option_number(argv[i] + 6, &n) < 0 || n < 2 || n > 1000000)
				return yk_usage("bench fit",
						"'%s': must be a number of cubes from 2 to 1000000",
						argv[i]);
			b->count = (int64_t)n;
		} else if (equals && memchr(argv[i], '.', (size_t)(equals - argv[i])) &&
			   b->keys < KEYS) {
			b->key[b->keys++] = argv[i];
		} else {
			return yk_usage("bench fit",
					"unknown argument '%s'; the arguments are "
					"workload=small|large|FILE, devices=, loader_ms=, scale=, "
					"count=, --json and the keys of yoke fit",
					argv[i]);
		}
	}
	return YK_DONE;
}

int yk_bench_fit(int argc, char **argv)
{
	struct bench b = { .workload = "small", .count = 200 };
	int status = parse(&b, argc, argv);
	if (status != YK_DONE)
		return status;
	yoke_setting_set("profile.limits", "0"); // not needed here
	FILE *json = b.json ? yk_json_only() : NULL;
	if (b.json && !json)
		return yk_failed("bench fit");
	b.results = json_array();
	int err = b.results ? b.scale ? measure_scale(&b) : measure(&b) :
			      yk_fail(YOKE_ENOMEM, "out of memory for results");
	if (!err && json)
		err = yk_json_end(json, json_pack("{s:s, s:O}", "version", yoke_version(),
						  "results", b.results));
	json_decref(b.results);
	return err ? yk_failed("bench fit") : YK_DONE;
}
