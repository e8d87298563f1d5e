// SPDX-License-Identifier: Apache-2.0
// Tests the keys of pipelines: defaults, permitted values, round trip through the effective
// configuration, refused values; which states patterns freeze; devices; validation schedules;
// metrics against loops; interrupted and resumed phases; statistics on a separate device.
#include "config.h"

#include <jansson.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "fit/scores.h"
#include "tap.h"
#include "yoke-pipeline.h"

// ---- the table ----

static const struct row {
	const char *section, *key, *def, *other, *bad; // JSON; bad NULL: any value is valid
	const char *with; // "key": value of the same section, which `other` requires
} rows[] = {
	{ "trainer", "max_epochs", "1", "7", "-1", NULL },
	{ "trainer", "accelerator", "\"cpu\"", "\"auto\"", "3", NULL },
	{ "trainer", "devices", "1", "[0]", "2", NULL },
	{ "trainer", "precision", "\"32-true\"", "\"bf16-mixed\"", "\"8\"", NULL },
	{ "trainer", "accumulate_grad_batches", "1", "4", "0", NULL },
	{ "trainer", "enable_progress_bar", "true", "false", "1", NULL },
	{ "trainer", "enable_checkpointing", "false", "true", "\"yes\"", NULL },
	{ "trainer", "log_every_n_steps", "50", "3", "0", NULL },
	{ "trainer", "val_check_interval", "1.0", "0.25", "1.5", NULL },
	{ "trainer", "val_check_interval", "1.0", "10", "0", NULL },
	{ "trainer", "check_val_every_n_epoch", "1", "2", "0.5", NULL },
	{ "trainer", "gradient_clip_val", "null", "0.5", "-1.0", NULL },
	{ "trainer", "deterministic", "false", "true", "0", NULL },
	{ "trainer", "benchmark", "false", "true", "null", NULL },
	{ "trainer", "statistics", "\"cpu\"", "\"device\"", "\"gpu\"", NULL },
	{ "trainer", "passes", "\"one\"", "\"each\"", "\"two\"", NULL },
	{ "optimizer", "name", "\"adam\"", "\"sgd\"", "\"adan\"", NULL },
	{ "optimizer", "lr", "0.001", "0.5", "-1", NULL },
	{ "optimizer", "weight_decay", "0.0", "0.1", "\"0\"", NULL },
	{ "optimizer", "betas", "null", "[0.8, 0.99]", "[0.8]", NULL },
	{ "optimizer", "momentum", "0.0", "0.9", "2", "\"name\": \"sgd\"" },
	{ NULL, "seed", "42", "7", "-1", NULL },
	{ NULL, "monitors", "[\"metrics\"]", "[\"metrics\", \"tensorboard\", \"maps\"]",
	  "[\"mail\"]", NULL },
	{ NULL, "freeze", "[]", "\"pca.*\"", "\"nothing\"", NULL },
	{ NULL, "unfreeze", "[]", "[\"*.w\"]", "[3]", NULL },
	{ NULL, "metrics", "[]",
	  "[{\"type\": \"f1\", \"threshold\": 0.5, \"q\": [0.5], \"of\": \"rx\"}]", "[\"f2\"]",
	  NULL },
	{ NULL, "losses", "[]",
	  "[{\"type\": \"mse\", \"of\": \"pca\", \"node\": \"pca\", \"weight\": 2.0, \"pos_weight\": 1.0}]",
	  "[{\"type\": \"mae\"}]", NULL },
};

#define NODES "\"nodes\": [{\"name\": \"pca\", \"type\": \"pca\", \"k\": 2, \"train\": true}, {\"name\": \"rx\", \"type\": \"rx\"}]"

// The pipeline with a value of the row's key; value NULL: without the key.
static yoke_pipeline *with(const struct row *r, const char *value)
{
	char inside[1000] = "", json[2000];
	if (value)
		snprintf(inside, sizeof inside, "%s%s\"%s\": %s", r->with ? r->with : "",
			 r->with ? ", " : "", r->key, value);
	if (r->section)
		snprintf(json, sizeof json, "{" NODES ", \"%s\": {%s}}", r->section, inside);
	else
		snprintf(json, sizeof json, "{" NODES "%s%s}", value ? ", " : "", inside);
	return yoke_pipeline_new(json);
}

// Does the key of the effective configuration have this value?
static bool is(const yoke_pipeline *p, const struct row *r, const char *value)
{
	json_t *root = p ? json_loads(yoke_pipeline_config(p), 0, NULL) : NULL,
	       *want = json_loads(value, JSON_DECODE_ANY, NULL);
	const json_t *in = r->section ? json_object_get(root, r->section) : root;
	const bool equal = want && json_equal(json_object_get(in, r->key), want);
	json_decref(root);
	json_decref(want);
	return equal;
}

static void table(void)
{
	unsetenv("YOKE_BACKEND");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *r = &rows[i];
		yoke_pipeline *def = with(r, NULL), *other = with(r, r->other);
		yoke_pipeline *again =
			other ? yoke_pipeline_new(yoke_pipeline_config(other)) : NULL;
		ok(is(def, r, r->def) && is(other, r, r->other) && again &&
		   !strcmp(yoke_pipeline_config(again), yoke_pipeline_config(other)),
		   "%s: %s, %s, and as it was written: %s", r->key, r->def, r->other, yoke_error());
		yoke_error_clear();
		yoke_pipeline *bad = with(r, r->bad);
		ok(!bad && yoke_error_code() < 0 && !strchr(yoke_error(), '\n'), "%s: %s: %s",
		   r->key, r->bad, yoke_error());
		yoke_error_clear();
		yoke_pipeline_free(def);
		yoke_pipeline_free(other);
		yoke_pipeline_free(again);
		yoke_pipeline_free(bad);
	}
	yoke_pipeline *train = yoke_pipeline_new(
		"{" NODES ", \"trainer\": {\"epochs\": 7, \"accumulate\": 4, \"clip\": 0.5, "
		"\"log_every\": 3, \"progress\": 0, \"precision\": \"fp16-mixed\"}}");
	static const struct row same[] = {
		{ "trainer", "max_epochs", "7", NULL, NULL, NULL },
		{ "trainer", "accumulate_grad_batches", "4", NULL, NULL, NULL },
		{ "trainer", "gradient_clip_val", "0.5", NULL, NULL, NULL },
		{ "trainer", "log_every_n_steps", "3", NULL, NULL, NULL },
		{ "trainer", "enable_progress_bar", "false", NULL, NULL, NULL },
		{ "trainer", "precision", "\"16-mixed\"", NULL, NULL, NULL }
	};
	for (size_t i = 0; i < sizeof same / sizeof *same; i++)
		ok(is(train, &same[i], same[i].def), "%s by its name in yoke train is %s: %s",
		   same[i].key, same[i].def, yoke_error());
	yoke_pipeline_free(train);
	static const char *const pairs[] = {
		"{" NODES ", \"trainer\": {\"epochs\": 2, \"max_epochs\": 2}}",
		"{" NODES ", \"trainer\": {\"deterministic\": true, \"benchmark\": true}}",
		"{" NODES ", \"trainer\": {\"deterministic\": true, \"accelerator\": \"auto\"}}",
		"{" NODES ", \"optimizer\": {\"name\": \"adam\", \"momentum\": 0.9}}",
		"{" NODES
		", \"freeze\": \"*\", \"losses\": [{\"type\": \"orthogonality\", \"of\": \"pca\"}]}"
	};
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		yoke_pipeline *p = yoke_pipeline_new(pairs[i]);
		ok(!p && yoke_error_code() == YOKE_EINVAL, "incompatible keys are refused: %s",
		   yoke_error());
		yoke_error_clear();
		yoke_pipeline_free(p);
	}
}

// ---- samples ----

enum { N = 10, PIXELS = 30, C = 4 };
static float x[N][PIXELS][C], weight[N][PIXELS];
static uint8_t label[N][PIXELS];
static atomic_int reads, stop_at;

static int read_sample(void *arg, int64_t n, struct yoke_item *const *s)
{
	(void)arg;
	for (int64_t i = 0; i < n; i++) {
		if (++reads == stop_at)
			return YOKE_EIO;
		memcpy(s[i]->to[0], x[s[i]->number], sizeof x[0]);
		memcpy(s[i]->to[1], weight[s[i]->number], sizeof weight[0]);
		memcpy(s[i]->to[2], label[s[i]->number], sizeof label[0]);
	}
	return 0;
}

static yoke_dataset *set(void)
{
	const struct yoke_field f[3] = { { .size = sizeof *f,
					   .name = "x",
					   .dtype = yoke_f32,
					   .rank = 2,
					   .dims = { PIXELS, C } },
					 { .size = sizeof *f,
					   .name = "weight",
					   .dtype = yoke_f32,
					   .rank = 1,
					   .dims = { PIXELS } },
					 { .size = sizeof *f,
					   .name = "label",
					   .dtype = yoke_u8,
					   .rank = 1,
					   .dims = { PIXELS } } };
	const struct yoke_dataset_options o = { .size = sizeof o,
						.name = "samples",
						.count = N,
						.fields = 3,
						.field = f,
						.read = read_sample };
	return yoke_dataset_new(&o);
}

static void fill(void)
{
	for (int i = 0; i < N; i++)
		for (int p = 0; p < PIXELS; p++) {
			label[i][p] = (uint8_t)(rnd_int(0, 3) == 0);
			weight[i][p] = (float)(rnd_int(0, 5) != 0);
			for (int k = 0; k < C; k++)
				x[i][p][k] =
					(float)(rnd_real(-1, 1) * (1 + k) + (label[i][p] ? k : 0));
		}
}

#define CHAIN "{\"nodes\": [{\"name\": \"s\", \"type\": \"standard\"}, {\"name\": \"pca\", \"type\": \"pca\", \"k\": 3, \"train\": true}, " \
	      "{\"name\": \"rx\", \"type\": \"rx\"}, {\"name\": \"logit\", \"type\": \"logit\", \"train\": true}], " \
	      "\"losses\": [{\"type\": \"bce\", \"of\": \"logit\"}, {\"type\": \"orthogonality\", \"of\": \"pca\", \"weight\": 0.1}], "

static size_t read_state(const yoke_pipeline *p, const char *node, const char *state, double *to)
{
	float f[64] = { 0 };
	yoke_tensor *t = yoke_pipeline_state(p, node, state);
	const size_t n = t ? (size_t)yoke_count(t) : 0;
	if (!t || n > 64 || yoke_read(t, f, n * sizeof *f) < 0)
		diag("%s", yoke_error());
	for (size_t i = 0; i < n && n <= 64; i++)
		to[i] = f[i];
	return n;
}

struct told {
	int fit, train, valid;
	bool good;
};

static void tell(void *arg, const struct yoke_fitting_progress *p)
{
	struct told *t = arg;
	t->fit += !strcmp(p->stage, "fit");
	t->train += !strcmp(p->stage, "train");
	t->valid += !strcmp(p->stage, "valid");
	t->good &= p->done >= 1 && p->done <= p->all && p->round >= 1;
}

// Fits and trains the chain with these keys into `run`; the pipeline, or NULL.
static yoke_pipeline *trained(const char *rest, const char *loader, const char *folder,
			      struct told *told)
{
	char json[3000];
	yoke_dataset *d = set();
	snprintf(json, sizeof json, CHAIN "%s}", rest);
	yoke_pipeline *p = yoke_pipeline_new(json);
	const struct yoke_fitting f = { .size = sizeof f,
					.set = d,
					.loader = loader,
					.progress = told ? tell : NULL,
					.arg = told };
	const struct yoke_run_options ro = { .size = sizeof ro };
	yoke_run *run = folder ? yoke_run_open(folder, &ro) : NULL;
	const struct yoke_training o = { .size = sizeof o,
					 .train = d,
					 .valid = d,
					 .loader = loader,
					 .run = run,
					 .progress = told ? tell : NULL,
					 .arg = told };
	int err = p ? yoke_pipeline_fit_as(p, &f) : -1;
	if (!err)
		err = yoke_pipeline_train(p, &o);
	yoke_run_close(run, "done", NULL);
	yoke_dataset_free(d);
	if (!err)
		return p;
	yoke_pipeline_free(p);
	return NULL;
}

// ---- what is trained ----

static void patterns(void)
{
	double w[64], s[64], t[64];
	yoke_pipeline *p =
		trained("\"trainer\": {\"max_epochs\": 0}", "batch=5 workers=0", NULL, NULL);
	double w0[64], s0[64], t0[64];
	read_state(p, "pca", "w", w0);
	read_state(p, "logit", "scale", s0);
	read_state(p, "logit", "threshold", t0);
	yoke_pipeline_free(p);
	p = trained(
		"\"freeze\": [\"*\"], \"unfreeze\": [\"*.scale\", \"pc?\"], \"optimizer\": {\"lr\": 0.1}",
		"batch=5 workers=0", NULL, NULL);
	if (p) {
		read_state(p, "pca", "w", w);
		read_state(p, "logit", "scale", s);
		read_state(p, "logit", "threshold", t);
	}
	ok(p && memcmp(w, w0, 12 * sizeof *w) && s[0] != s0[0] && t[0] == t0[0],
	   "frozen states keep their bits, unfrozen ones change %s", yoke_error());
	yoke_error_clear();
	yoke_pipeline_free(p);
}

// ---- when ----

static int lines(const char *file, const char *word)
{
	char line[2000];
	int n = 0;
	FILE *f = fopen(file, "r");
	while (f && fgets(line, sizeof line, f))
		n += strstr(line, word) != NULL;
	if (f)
		fclose(f);
	return n;
}

static void when(void)
{
	static const struct {
		const char *rest, *loader;
		int train, valid, batches; // lines of steps, validations; reported batches
	} c[] = {
		// 5 batches: 0.4 of them are 2
		{ "\"trainer\": {\"val_check_interval\": 0.4, \"log_every_n_steps\": 1}",
		  "batch=2 workers=0", 5, 3, 5 },
		{ "\"trainer\": {\"val_check_interval\": 5, \"log_every_n_steps\": 1, \"max_epochs\": 2}",
		  "batch=2 workers=0", 10, 2, 10 },
		{ "\"trainer\": {\"val_check_interval\": 1, \"check_val_every_n_epoch\": 2, \"max_epochs\": 3}",
		  "batch=2 workers=0", 1, 6, 15 },
		// 4 batches, of which 3 are a step, and the last is one
		{ "\"trainer\": {\"accumulate_grad_batches\": 3, \"log_every_n_steps\": 1}",
		  "batch=3 workers=0", 2, 1, 4 },
		{ "\"trainer\": {\"enable_progress_bar\": false, \"log_every_n_steps\": 1}",
		  "batch=5 workers=0", 2, 1, 0 },
	};
	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		char folder[20], file[60];
		struct told told = { .good = true };
		snprintf(folder, sizeof folder, "when%zu", i);
		snprintf(file, sizeof file, "%s/metrics.jsonl", folder);
		yoke_pipeline *p = trained(c[i].rest, c[i].loader, folder, &told);
		const int train = lines(file, "\"train\""), valid = lines(file, "\"valid\"");
		ok(p && train == c[i].train && valid == c[i].valid && told.train == c[i].batches &&
			   told.good && !told.fit == !c[i].batches,
		   "%s: %d lines of steps, %d validations, %d batches reported %s", c[i].rest,
		   train, valid, told.train, yoke_error());
		yoke_error_clear();
		yoke_pipeline_free(p);
	}
	yoke_pipeline *p = trained("\"trainer\": {\"val_check_interval\": 9}", "batch=2 workers=0",
				   NULL, NULL);
	ok(!p && strstr(yoke_error(), "an epoch has 5 batches"), "an interval beyond an epoch: %s",
	   yoke_error());
	yoke_error_clear();
	yoke_pipeline_free(p);
}

// ---- metrics ----

static int up(const void *a, const void *b)
{
	const double *p = a, *q = b;
	return (*p > *q) - (*p < *q);
}

static double quantile(const double *sorted, int n, double q)
{
	const double at = q * (n - 1);
	const int low = (int)at;
	return low + 1 < n ? sorted[low] + (at - low) * (sorted[low + 1] - sorted[low]) :
			     sorted[low];
}

static double value_of(const char *file, const char *stage, const char *key)
{
	char line[4000];
	double found = NAN;
	FILE *f = fopen(file, "r");
	while (f && fgets(line, sizeof line, f)) {
		json_t *j = json_loads(line, 0, NULL);
		const char *its = json_string_value(json_object_get(j, "stage"));
		if (its && !strcmp(its, stage) && json_object_get(j, key))
			found = json_number_value(json_object_get(j, key));
		json_decref(j);
	}
	if (f)
		fclose(f);
	return found;
}

static void metrics(void)
{
	static const char rest[] =
		"\"metrics\": [\"precision\", \"recall\", \"f1\", \"iou\", \"accuracy\", \"quantiles\", "
		"{\"type\": \"f1\", \"threshold\": 1.5}, {\"type\": \"quantiles\", \"of\": \"rx\", \"q\": [0, 0.3, 1]}, "
		"\"explained_variance\", \"orthogonality\"], \"trainer\": {\"max_epochs\": 0}";
	static float score[2][N * PIXELS];
	static double kept[2][N * PIXELS], in[C], out[3], w[64], mean[C], scale[C];
	yoke_pipeline *p = trained(rest, "batch=3 workers=0", "metrics", NULL);
	int n = 0;
	double count[2][2][2] = { 0 }, all = 0;
	for (int k = 0; k < 2 && p; k++) {
		yoke_scope *s = yoke_scope_begin("scores");
		yoke_read(
			yoke_pipeline_apply(p, k ? "rx" : NULL,
					    yoke_from(yoke_f32, 3, (int64_t[]){ N, PIXELS, C }, x)),
			score[k], sizeof score[k]);
		yoke_scope_end(s);
	}
	for (int i = 0; i < N * PIXELS; i++) {
		const float *pixel = x[i / PIXELS][i % PIXELS];
		if (weight[i / PIXELS][i % PIXELS] == 0)
			continue;
		for (int k = 0; k < 2; k++) {
			kept[k][n] = score[k][i];
			count[k][label[i / PIXELS][i % PIXELS]][score[0][i] > (k ? 1.5f : 0)]++;
		}
		n++;
		for (int c = 0; c < C; c++)
			mean[c] += pixel[c], scale[c] += pixel[c] * pixel[c];
	}
	// explained: of the output of standard, whose channels have variance 1 and mean 0
	if (p)
		read_state(p, "pca", "w", w);
	for (int c = 0; c < C; c++) {
		mean[c] /= n;
		scale[c] = 1 / sqrt((scale[c] - n * mean[c] * mean[c]) / (n - 1));
	}
	for (int i = 0; i < N * PIXELS; i++) {
		const float *pixel = x[i / PIXELS][i % PIXELS];
		if (weight[i / PIXELS][i % PIXELS] == 0)
			continue;
		for (int j = 0; j < 3; j++) {
			double y = 0;
			for (int c = 0; c < C; c++)
				y += w[j * C + c] * (pixel[c] - mean[c]) * scale[c];
			out[j] += y * y;
		}
		for (int c = 0; c < C; c++)
			in[c] += (pixel[c] - mean[c]) * (pixel[c] - mean[c]) * scale[c] * scale[c];
	}
	for (int c = 0; c < C; c++)
		all += in[c];
	qsort(kept[0], (size_t)n, sizeof **kept, up);
	qsort(kept[1], (size_t)n, sizeof **kept, up);
	const double tp = count[0][1][1], fp = count[0][0][1], fn = count[0][1][0],
		     tn = count[0][0][0];
	const double tp2 = count[1][1][1], fp2 = count[1][0][1], fn2 = count[1][1][0];
	const struct {
		const char *name;
		double want;
	} want[] = { { "precision", tp / (tp + fp) },
		     { "recall", tp / (tp + fn) },
		     { "f1", 2 * tp / (2 * tp + fp + fn) },
		     { "iou", tp / (tp + fp + fn) },
		     { "accuracy", (tp + tn) / (tp + fp + fn + tn) },
		     { "f12", 2 * tp2 / (2 * tp2 + fp2 + fn2) },
		     { "quantiles_0.5", quantile(kept[0], n, 0.5) },
		     { "quantiles_0.99", quantile(kept[0], n, 0.99) },
		     { "quantiles2_0", kept[1][0] },
		     { "quantiles2_0.3", quantile(kept[1], n, 0.3) },
		     { "quantiles2_1", kept[1][n - 1] },
		     { "explained_variance.pca", (out[0] + out[1] + out[2]) / all },
		     { "orthogonality.pca", 0 } };
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		const double got = value_of("metrics/metrics.jsonl", "valid", want[i].name);
		ok((isnan(got) && isnan(want[i].want)) ||
			   fabs(got - want[i].want) <= 1e-5 * (1 + fabs(want[i].want)),
		   "%s: %.9g of %.9g %s", want[i].name, got, want[i].want, yoke_error());
	}
	yoke_pipeline_free(p);
	// quantiles over more scores than are kept are in the correct histogram bin
	struct yk_scores s;
	double q[3] = { 0.1, 0.5, 1 }, to[3];
	yk_scores_init(&s, 20);
	static const uint8_t none[N * PIXELS];
	yk_scores_add(&s, N * PIXELS, score[1], none, &weight[0][0]);
	yk_scores_quantiles(&s, 3, q, to);
	bool near_all = s.bin != NULL;
	for (int i = 0; i < 3; i++)
		near_all &= fabs(to[i] - quantile(kept[1], n, q[i])) <=
			    fabs(quantile(kept[1], n, q[i])) / 100;
	ok(near_all, "quantiles from a histogram: %.4g %.4g %.4g", to[0], to[1], to[2]);
	yk_scores_fini(&s);
}

// ---- precision ----

static void precisions(void)
{
	double w[3][64], worst[3] = { 0 };
	static const char *const words[] = { "32-true", "bf16-mixed", "16-mixed" };
	for (int k = 0; k < 3; k++) {
		char rest[300];
		snprintf(
			rest, sizeof rest,
			"\"trainer\": {\"precision\": \"%s\", \"max_epochs\": 3}, \"optimizer\": {\"name\": \"sgd\", \"lr\": 0.05}",
			words[k]);
		yoke_pipeline *p = trained(rest, "batch=5 workers=0", NULL, NULL);
		memset(w[k], 0xff, sizeof w[k]);
		if (p)
			read_state(p, "pca", "w", w[k]);
		for (int i = 0; i < 12; i++)
			worst[k] =
				isnan(w[k][i]) ? INFINITY : fmax(worst[k], fabs(w[k][i] - w[0][i]));
		yoke_pipeline_free(p);
	}
	ok(worst[1] > 0 && worst[1] < 0.05 && worst[2] > 0 && worst[2] < 0.01,
	   "bf16-mixed and 16-mixed train as f32 does: %.2g, %.2g apart %s", worst[1], worst[2],
	   yoke_error());
	yoke_error_clear();
}

// ---- determinism ----

// First, since the setting is read with the CPU's devices.
static void deterministic(void)
{
	yoke_pipeline *p = yoke_pipeline_new(CHAIN "\"trainer\": {\"deterministic\": true}}");
	yoke_dataset *d = set();
	ok(p && !yoke_setting_set("cpu.lapack", "1") &&
		   yoke_pipeline_fit(p, d, NULL) == YOKE_EINVAL &&
		   strstr(yoke_error(), "cpu.lapack=1"),
	   "deterministic: %s", yoke_error());
	yoke_error_clear();
	yoke_setting_set("cpu.lapack", "0");
	yoke_pipeline_free(p);
	yoke_dataset_free(d);
}

// ---- devices ----

static void devices(void)
{
	static const struct {
		const char *trainer;
		int code;
		const char *word;
	} c[] = { { "\"accelerator\": \"cpu\"", 0, "" },
		  { "\"accelerator\": \"auto\"", 0, "" },
		  { "\"accelerator\": \"cpu\", \"devices\": [0]", 0, "" },
		  { "\"accelerator\": \"cpu:0\"", 0, "" },
		  { "\"accelerator\": \"cpu\", \"devices\": [9]", YOKE_ENODEV, "cpu" },
		  { "\"accelerator\": \"nothing\"", YOKE_ENODEV, "nothing" },
		  { "\"accelerator\": \"cpu:0\", \"devices\": [0]", YOKE_EINVAL, "cpu:0" },
		  { "\"accelerator\": \"gpu\", \"devices\": [7]", YOKE_ENODEV, "number" } };
	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		char json[300];
		snprintf(json, sizeof json, "{\"trainer\": {%s}}", c[i].trainer);
		yoke_context *ctx = yoke_pipeline_context(json);
		ok(!ctx == !!c[i].code && yoke_error_code() == c[i].code &&
			   strstr(yoke_error(), c[i].word),
		   "%s: %s", c[i].trainer, yoke_error());
		yoke_error_clear();
		yoke_context_free(ctx);
	}
	// in separate processes, because a setting is read once
	ok(tap_run("YOKE_BACKEND=cpu YOKE_STRICT=1 $YOKE_FIT_KEYS gpu >err 2>&1; test $? = 3 && grep -q 'YOKE_STRICT forbids' err"),
	   "no GPU, and no fallback is permitted");
	ok(tap_run("YOKE_BACKEND=cpu $YOKE_FIT_KEYS gpu >err 2>&1; test $? = 0 && grep -q 'no GPU was found' err"),
	   "no GPU, and the CPU is the fallback");
}

// A missing GPU: 3, an error.
static int gpu_alone(void)
{
	yoke_context *ctx = yoke_pipeline_context("{\"trainer\": {\"accelerator\": \"gpu\"}}");
	if (!ctx)
		fprintf(stderr, "%s\n", yoke_error());
	yoke_context_free(ctx);
	return ctx ? 0 : 3;
}

// Statistics on the CPU and on the device, as another backend computes them.
static void statistics(void)
{
	double w[2][64];
	yoke_context *ctx = getenv("YOKE_TEST_MODULES") ? yoke_context_new("fault") : NULL;
	if (!ctx) {
		skip("statistics", "YOKE_TEST_MODULES does not name the fault backend");
		yoke_error_clear();
		return;
	}
	yoke_context *before = yoke_use(ctx);
	for (int k = 0; k < 2; k++) {
		struct yoke_stats s = { .size = sizeof s };
		yoke_pipeline *p = trained(k ? "\"trainer\": {\"statistics\": \"device\"}" :
					       "\"trainer\": {\"statistics\": \"cpu\"}",
					   "batch=5 workers=0", NULL, NULL);
		memset(w[k], 0xff, sizeof w[k]);
		if (p)
			read_state(p, "pca", "w", w[k]);
		ok(p && !yoke_stats(&s), "statistics=%s %s", k ? "device" : "cpu", yoke_error());
		yoke_pipeline_free(p);
	}
	near(w[1], w[0], 12, 1e-5, 1, "both are equal");
	yoke_use(before);
	yoke_context_free(ctx);
}

static void benchmark(void)
{
	double w[2][64] = { { 0 } };
	for (int k = 0; k < 2; k++) {
		yoke_pipeline *p = trained(k ? "\"trainer\": {\"benchmark\": true}" :
					       "\"trainer\": {\"benchmark\": false}",
					   "batch=5 workers=0", NULL, NULL);
		if (p)
			read_state(p, "pca", "w", w[k]);
		yoke_pipeline_free(p);
	}
	near(w[1], w[0], 12, 1e-5, 1, "tuned products train to the same results");
}

// ---- broken off ----

static int broken(const char *folder, int at, double *w)
{
	yoke_dataset *d = set();
	yoke_pipeline *p =
		yoke_pipeline_new(CHAIN "\"trainer\": {\"enable_checkpointing\": true}}");
	const struct yoke_fitting f = { .size = sizeof f,
					.set = d,
					.loader = "batch=2 workers=0",
					.folder = folder,
					.resume = 1 };
	reads = 0;
	stop_at = at;
	int err = yoke_pipeline_fit_as(p, &f);
	stop_at = 0;
	if (!err) {
		read_state(p, "rx", "u", w);
		read_state(p, "logit", "threshold", w + 9);
	}
	yoke_pipeline_free(p);
	yoke_dataset_free(d);
	return err;
}

static void phase1(void)
{
	double whole[10], again[10];
	yoke_setting_set("fit.save", "0"); // after each batch
	mkdir("whole", 0755);
	const int err = broken("whole", 0, whole), all = reads;
	for (int at = 1; at <= all; at += 3) {
		char folder[20];
		snprintf(folder, sizeof folder, "cut%d", at);
		mkdir(folder, 0755);
		const int first = broken(folder, at, again);
		const int read = reads;
		yoke_error_clear();
		memset(again, 0xff, sizeof again);
		const int second = broken(folder, 0, again);
		// the samples of the interrupted batch are read once more
		ok(!err && first == YOKE_EIO && !second && !memcmp(whole, again, sizeof whole) &&
			   reads + read <= all + 2,
		   "interrupted at sample %d of %d, it resumes: %d more, the same bits %s", at, all,
		   (int)reads, yoke_error());
		yoke_error_clear();
	}
	memset(again, 0xff, sizeof again);
	ok(!broken("whole", 0, again) && !reads && !memcmp(whole, again, sizeof whole),
	   "a finished run reads nothing");
	FILE *f = fopen("whole/collected.json", "w");
	fputs("{\"of\": 3}", f);
	fclose(f);
	ok(!broken("whole", 0, again) && reads == all,
	   "with a checkpoint of another run it starts anew");
	yoke_error_clear();
}

int main(int argc, char **argv)
{
	char path[4096];
	if (argc > 1)
		return gpu_alone();
	tap_seed();
	const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	path[n > 0 ? n : 0] = '\0';
	setenv("YOKE_FIT_KEYS", path, 1);
	tap_plugin_path();
	tap_folder();
	fill();
	deterministic();
	table();
	patterns();
	when();
	metrics();
	precisions();
	devices();
	statistics();
	benchmark();
	phase1();
	(void)argv;
	return done();
}
