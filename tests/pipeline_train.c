// SPDX-License-Identifier: Apache-2.0
// Tests the training phase of pipelines: one step of each loss against its closed-form gradient,
// of each node against finite differences; frozen parameters keep their bits; micro-batches add
// up; areas under ROC curves against counting pairs; records; pipelines that cannot be trained.
#include "config.h"

#include <sys/stat.h>

#include "fit/scores.h"
#include "tap.h"
#include "yoke-pipeline.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum { N = 8, PIXELS = 25, C = 4, ALL = N * PIXELS };
static float x[N][PIXELS][C], weight[N][PIXELS];
static uint8_t label[N][PIXELS];

static int read_sample(void *arg, int64_t n, struct yoke_item *const *s)
{
	for (int64_t i = 0; i < n; i++) {
		memcpy(s[i]->to[0], x[s[i]->number], sizeof x[0]);
		memcpy(s[i]->to[1], weight[s[i]->number], sizeof weight[0]);
		if (arg)
			memcpy(s[i]->to[2], label[s[i]->number], sizeof label[0]);
	}
	return 0;
}

static yoke_dataset *set(bool labels)
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
						.fields = labels ? 3 : 2,
						.field = f,
						.read = read_sample,
						.arg = labels ? x : NULL };
	return yoke_dataset_new(&o);
}

static void fill(void)
{
	for (int i = 0; i < N; i++)
		for (int p = 0; p < PIXELS; p++) {
			label[i][p] = (uint8_t)(rnd_int(0, 3) == 0);
			weight[i][p] = (float)(rnd_int(0, 5) != 0);
			for (int k = 0; k < C; k++)
				x[i][p][k] = (float)(rnd_real(-1, 1) + (label[i][p] ? k : 0));
		}
}

static double before[64], after[64];

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

// Fits and trains: the state before and after; returns the number of values.
static size_t trained(const char *nodes, const char *rest, const char *loader, bool labels,
		      const char *node, const char *state)
{
	char json[2000];
	yoke_dataset *d = set(labels);
	snprintf(json, sizeof json, "{\"nodes\": [%s], %s}", nodes, rest);
	yoke_pipeline *p = yoke_pipeline_new(json);
	const struct yoke_training o = { .size = sizeof o, .train = d, .loader = loader };
	int err = p ? yoke_pipeline_fit(p, d, loader) : -1;
	size_t n = 0;
	memset(after, 0xff, sizeof after);
	if (!err) {
		read_state(p, node, state, before);
		err = yoke_pipeline_train(p, &o);
	}
	if (!err)
		n = read_state(p, node, state, after);
	yoke_pipeline_free(p);
	yoke_dataset_free(d);
	return n;
}

#define ONE_STEP "\"optimizer\": {\"name\": \"sgd\", \"lr\": 1}, \"trainer\": {\"max_epochs\": 1}"

// The gradient implied by one step of SGD with lr 1.
static void step(const char *what, const char *nodes, const char *losses, const char *node,
		 const char *state, const double *want, size_t n)
{
	char rest[600];
	double got[64];
	snprintf(rest, sizeof rest, "\"losses\": [%s], " ONE_STEP, losses);
	const size_t count = trained(nodes, rest, "batch=8 workers=0", true, node, state);
	for (size_t i = 0; i < n; i++)
		got[i] = before[i] - after[i];
	ok(count == n, "%s: %zu numbers %s", what, count, yoke_error());
	yoke_error_clear();
	near(got, want, n, 2e-5, 1, what);
}

#define LINEAR(k) "{\"name\": \"a\", \"type\": \"linear\", \"k\": " #k ", \"train\": true}"

static void closed_forms(void)
{
	double want[64], w[64], sum;
	// bce of a linear node, with weights and pos_weight 3: the values of w first
	trained(LINEAR(1), "\"losses\": [], " ONE_STEP, "batch=8", true, "a", "w");
	memcpy(w, before, sizeof w);
	memset(want, 0, sizeof want);
	sum = 0;
	for (int q = 0; q < ALL; q++) {
		const float *v = x[q / PIXELS][q % PIXELS];
		const double y = label[q / PIXELS][q % PIXELS],
			     one = weight[q / PIXELS][q % PIXELS];
		double s = 0;
		for (int k = 0; k < C; k++)
			s += w[k] * v[k];
		s = 1 / (1 + exp(-s));
		sum += one;
		for (int k = 0; k < C; k++)
			want[k] += one * ((1 - y) * s - 3 * y * (1 - s)) * v[k];
	}
	for (int k = 0; k < C; k++)
		want[k] /= sum;
	step("bce", LINEAR(1), "{\"type\": \"bce\", \"of\": \"a\", \"pos_weight\": 3}", "a", "w",
	     want, C);
	for (int k = 0; k < C; k++)
		want[k] *= 0.5;
	step("half of it", LINEAR(1),
	     "{\"type\": \"bce\", \"of\": \"a\", \"pos_weight\": 3, \"weight\": 0.5}", "a", "w",
	     want, C);

	// orthogonality: 4 (W W' - 1) W
	trained(LINEAR(3), "\"losses\": [], " ONE_STEP, "batch=8", true, "a", "w");
	memcpy(w, before, sizeof w);
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < C; k++) {
			want[i * C + k] = 0;
			for (int j = 0; j < 3; j++) {
				double off = -(i == j);
				for (int q = 0; q < C; q++)
					off += w[i * C + q] * w[j * C + q];
				want[i * C + k] += 4 * off * w[j * C + k];
			}
		}
	step("orthogonality", LINEAR(3), "{\"type\": \"orthogonality\", \"of\": \"a\"}", "a", "w",
	     want, 3 * C);

	// mse with the stream: 2 / (n C) sum (W x - x) x'
	trained(LINEAR(4), "\"losses\": [], " ONE_STEP, "batch=8", true, "a", "w");
	memcpy(w, before, sizeof w);
	memset(want, 0, sizeof want);
	for (int q = 0; q < ALL; q++) {
		const float *v = x[q / PIXELS][q % PIXELS];
		for (int i = 0; i < C; i++) {
			double e = -v[i];
			for (int k = 0; k < C; k++)
				e += w[i * C + k] * v[k];
			for (int k = 0; k < C; k++)
				want[i * C + k] +=
					2 * weight[q / PIXELS][q % PIXELS] * e * v[k] / (sum * C);
		}
	}
	step("mse", LINEAR(4), "{\"type\": \"mse\", \"of\": \"a\", \"node\": \"input\"}", "a", "w",
	     want, C * C);

	// entropy of softmax(l / 5): -p (log p + H) / 5
	static const char pick[] =
		"{\"name\": \"a\", \"type\": \"select\", \"n\": 2, \"train\": true}";
	trained(pick, "\"losses\": [], " ONE_STEP, "batch=8", true, "a", "l");
	double p[C], all = 0, h = 0;
	for (int k = 0; k < C; k++)
		all += p[k] = exp(before[k] / 5);
	for (int k = 0; k < C; k++) {
		p[k] /= all;
		h -= p[k] * log(p[k]);
	}
	for (int k = 0; k < C; k++)
		want[k] = -p[k] * (log(p[k]) + h) / 5;
	step("entropy", pick, "{\"type\": \"entropy\", \"of\": \"a\"}", "a", "l", want, C);
}

// ---- nodes, against differences of loops in float64 ----

enum kind { SHIFT, PCA, RX, SELECT, LINEAR };
enum behind { NOTHING, SIGMOID, UNIT };
enum { STATES = 3 };

struct node_case {
	const char *what, *nodes, *of;
	enum kind kind;
	enum behind behind;
	const char *state[STATES];
	int trained; // one bit per node
};

static double held[STATES][C * C]; // the states that the node has before a step

// For one pixel; returns the number of channels.
static int node_value(const struct node_case *c, const float *v, double *y)
{
	double (*s)[C * C] = held, sum = 0;
	for (int j = 0; j < C; j++) {
		y[j] = c->kind == LINEAR ? s[1][j] :
		       c->kind == SHIFT  ? (v[j] - s[0][j]) * s[1][j] :
					   0;
		for (int i = 0; i < C && c->kind != SHIFT; i++)
			y[j] += c->kind == LINEAR ? s[0][j * C + i] * v[i] :
				c->kind == SELECT ? 0 :
						    s[1][j * C + i] * (v[i] - s[0][i]);
		y[j] *= c->kind == PCA ? s[2][j] : 1;
	}
	for (int j = 0; j < C && c->kind == SELECT; j++)
		sum += y[j] = exp(s[0][j] / 5);
	for (int j = 0; j < C && c->kind == SELECT; j++)
		y[j] *= 2 * v[j] / sum;
	for (int j = 0; j < C && c->kind == RX; j++)
		sum += y[j] * y[j];
	if (c->kind == RX)
		return y[0] = sum, 1;
	for (int j = 0; j < C && c->behind == UNIT; j++)
		sum += y[j] * y[j];
	for (int j = 0; j < C && c->behind; j++)
		y[j] = c->behind == UNIT ? y[j] / sqrt(sum) : 1 / (1 + exp(-y[j]));
	return C;
}

// bce for one channel, otherwise mse with the stream.
static double node_loss(const struct node_case *c)
{
	double loss = 0, all = 0, y[C];
	for (int q = 0; q < ALL; q++) {
		const float *v = x[q / PIXELS][q % PIXELS];
		const double one = weight[q / PIXELS][q % PIXELS];
		const int n = node_value(c, v, y);
		all += one;
		for (int j = 0; j < n; j++)
			loss += one * (n == 1 ? (1 - label[q / PIXELS][q % PIXELS]) * y[0] +
							log1p(exp(-y[0])) :
						(y[j] - v[j]) * (y[j] - v[j]) / n);
	}
	return loss / all;
}

static void node_gradients(void)
{
	static const struct node_case cases[] = {
		{ "standard",
		  "\"standard\", \"train\": true}",
		  "a",
		  SHIFT,
		  NOTHING,
		  { "mean", "scale" },
		  3 },
		{ "min_max",
		  "\"min_max\", \"scope\": \"channel\", \"train\": true}",
		  "a",
		  SHIFT,
		  NOTHING,
		  { "min", "scale" },
		  3 },
		{ "logit",
		  "\"logit\", \"train\": true}",
		  "a",
		  SHIFT,
		  NOTHING,
		  { "threshold", "scale" },
		  3 },
		{ "pca",
		  "\"pca\", \"k\": 4, \"train\": true}",
		  "a",
		  PCA,
		  NOTHING,
		  { "mean", "w", "scale" },
		  2 },
		{ "pca, whitened",
		  "\"pca\", \"k\": 4, \"whiten\": 1, \"train\": true}",
		  "a",
		  PCA,
		  NOTHING,
		  { "mean", "w", "scale" },
		  2 },
		{ "rx", "\"rx\", \"train\": true}", "a", RX, NOTHING, { "mean", "u" }, 3 },
		{ "select",
		  "\"select\", \"n\": 2, \"train\": true}",
		  "a",
		  SELECT,
		  NOTHING,
		  { "l" },
		  1 },
		{ "linear",
		  "\"linear\", \"k\": 4, \"train\": true}",
		  "a",
		  LINEAR,
		  NOTHING,
		  { "w", "b" },
		  3 },
		{ "sigmoid",
		  "\"linear\", \"k\": 4, \"train\": true}, {\"name\": \"z\", \"type\": \"sigmoid\"}",
		  "z",
		  LINEAR,
		  SIGMOID,
		  { "w", "b" },
		  3 },
		{ "unit",
		  "\"linear\", \"k\": 4, \"train\": true}, {\"name\": \"z\", \"type\": \"unit\"}",
		  "z",
		  LINEAR,
		  UNIT,
		  { "w", "b" },
		  3 },
	};
	char json[800];
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		const struct node_case *c = &cases[k];
		double got[STATES * C * C], want[STATES * C * C];
		size_t count[STATES] = { 0 }, n = 0;
		yoke_dataset *d = set(true);
		snprintf(
			json, sizeof json,
			"{\"nodes\": [{\"name\": \"a\", \"type\": %s], \"losses\": [%s\"of\": \"%s\"}], " ONE_STEP
			"}",
			c->nodes,
			c->kind == RX ? "{\"type\": \"bce\", " :
					"{\"type\": \"mse\", \"node\": \"input\", ",
			c->of);
		yoke_pipeline *p = yoke_pipeline_new(json);
		const struct yoke_training o = { .size = sizeof o,
						 .train = d,
						 .loader = "batch=8 workers=0" };
		int err = p ? yoke_pipeline_fit(p, d, o.loader) : -1;
		for (int s = 0; s < STATES && !err && c->state[s]; s++)
			count[s] = read_state(p, "a", c->state[s], held[s]);
		if (!err)
			err = yoke_pipeline_train(p, &o);
		for (int s = 0; s < STATES && !err && c->state[s]; s++) {
			double behind[64];
			read_state(p, "a", c->state[s], behind);
			for (size_t i = 0; i < count[s] && c->trained >> s & 1; i++, n++) {
				const double was = held[s][i], h = 1e-5;
				held[s][i] = was + h;
				want[n] = node_loss(c);
				held[s][i] = was - h;
				want[n] = (want[n] - node_loss(c)) / (2 * h);
				held[s][i] = was;
				got[n] = was - behind[i];
			}
		}
		ok(!err && n, "%s: %zu numbers %s", c->what, n, yoke_error());
		near(got, want, n, 2e-5, 1, c->what);
		yoke_error_clear();
		yoke_pipeline_free(p);
		yoke_dataset_free(d);
	}
}

#define CHAIN "{\"name\": \"s\", \"type\": \"standard\"}, {\"name\": \"pca\", \"type\": \"pca\", \"k\": 3, \"train\": true}, " \
	      "{\"name\": \"rx\", \"type\": \"rx\"}, {\"name\": \"logit\", \"type\": \"logit\", \"train\": true}"
#define LOSSES "\"losses\": [{\"type\": \"bce\", \"of\": \"logit\"}, {\"type\": \"orthogonality\", \"of\": \"pca\", \"weight\": 0.1}]"

static void bits(void)
{
	double kept[64];
	static const char rest[] =
		LOSSES ", \"trainer\": {\"max_epochs\": 3}, \"optimizer\": {\"lr\": 0.01}";
	size_t n = trained(CHAIN, rest, "batch=3 workers=0", true, "rx", "u");
	ok(n == 9 && !memcmp(before, after, n * sizeof *after), "a frozen node keeps its bits %s",
	   yoke_error());
	n = trained(CHAIN, rest, "batch=3 workers=0", true, "pca", "w");
	ok(n == 12 && memcmp(before, after, n * sizeof *after), "a trained node changes");
	memcpy(kept, after, sizeof kept);
	trained(CHAIN, rest, "batch=3 workers=3", true, "pca", "w");
	ok(!memcmp(kept, after, n * sizeof *after),
	   "the same bits with any number of reading threads");
	trained(CHAIN,
		LOSSES
		", \"trainer\": {\"max_epochs\": 3}, \"optimizer\": {\"lr\": 0.01}, \"seed\": 5",
		"batch=3", true, "pca", "w");
	ok(memcmp(kept, after, n * sizeof *after), "another seed gives another order");
	// 4 batches of 2 equal one of 8 if all weights are 1, because means are per batch
	for (int i = 0; i < ALL; i++)
		weight[i / PIXELS][i % PIXELS] = 1;
	trained(CHAIN, LOSSES ", " ONE_STEP, "batch=8", true, "pca", "w");
	memcpy(kept, after, sizeof kept);
	trained(CHAIN,
		LOSSES
		", \"optimizer\": {\"name\": \"sgd\", \"lr\": 1}, \"trainer\": {\"max_epochs\": 1, \"accumulate_grad_batches\": 4}",
		"batch=2", true, "pca", "w");
	near(after, kept, n, 1e-5, 1, "4 micro-batches of 2 equal one batch of 8");
	// the norm of the gradient is clipped: the step is no longer than lr times the limit
	trained(CHAIN,
		LOSSES
		", \"optimizer\": {\"name\": \"sgd\", \"lr\": 1}, \"trainer\": {\"gradient_clip_val\": 1e-3}",
		"batch=8", true, "pca", "w");
	double norm = 0;
	for (size_t i = 0; i < n; i++)
		norm += (before[i] - after[i]) * (before[i] - after[i]);
	ok(norm > 0 && sqrt(norm) <= 1.001e-3, "a clipped step is %.3g long", sqrt(norm));
	fill();
}

// ---- areas ----

static double by_pairs(size_t n, const float *s, const uint8_t *l)
{
	double above = 0, pairs = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			if (l[i] && !l[k]) {
				pairs++;
				above += s[i] > s[k] ? 1 : s[i] == s[k] ? 0.5 : 0;
			}
	return above / pairs;
}

static void areas(void)
{
	float s[300] = { 0 };
	uint8_t l[300];
	double got = NAN, bound;
	for (int turn = 0; turn < 4; turn++) {
		const size_t n = 2 + (size_t)rnd_int(0, 298);
		for (size_t i = 0; i < n; i++) {
			l[i] = i < 2 ? (uint8_t)i : (uint8_t)rnd_int(0, 1);
			s[i] = (float)(turn == 3 ? 1 :
						   rnd_int(-9, 9) * (turn == 2 ? 1e30 : 1) +
							   (turn ? 0 : rnd_real(0, 1)));
		}
		const double want = by_pairs(n, s, l);
		int err = yoke_roc_auc(n, s, l, &got);
		ok(!err && fabs(got - want) < 1e-12, "area %.6f of %.6f, %zu scores", got, want, n);
		struct yk_scores a;
		yk_scores_init(&a, 100);
		// by approximation, beyond the number that is kept
		for (size_t i = 0; i < n; i += 50)
			yk_scores_add(&a, n - i < 50 ? n - i : 50, s + i, l + i, NULL);
		got = yk_scores_area(&a, &bound);
		ok(fabs(got - want) <= bound + 1e-12 && (n > 100) == (a.bin != NULL),
		   "from a histogram: %.6f within %.2g", got, bound);
		yk_scores_fini(&a);
	}
	memset(l, 1, sizeof l);
	ok(!yoke_roc_auc(300, s, l, &got) && isnan(got), "without negatives there is no area");
	s[7] = NAN;
	ok(yoke_roc_auc(300, s, l, &got) == YOKE_ERANGE, "nor with a NaN score");
	yoke_error_clear();
}

// ---- records ----

static void records(void)
{
	char line[600];
	int train = 0, valid = 0, areas_of = 0;
	yoke_dataset *d = set(true);
	const struct yoke_run_options ro = { .size = sizeof ro };
	yoke_run *run = yoke_run_open("run", &ro);
	yoke_pipeline *p = yoke_pipeline_new(
		"{\"nodes\": [" CHAIN "], " LOSSES
		", \"metrics\": [\"roc_auc\"], \"optimizer\": {\"lr\": 0.02}, "
		"\"trainer\": {\"max_epochs\": 4, \"log_every_n_steps\": 2, \"check_val_every_n_epoch\": 2}}");
	const struct yoke_training o = {
		.size = sizeof o, .train = d, .valid = d, .loader = "batch=4 workers=0", .run = run
	};
	int err = p ? yoke_pipeline_fit(p, d, o.loader) : -1;
	if (!err)
		err = yoke_pipeline_train(p, &o);
	yoke_run_close(run, err ? "failed" : "done", NULL);
	FILE *f = fopen("run/metrics.jsonl", "r");
	while (f && fgets(line, sizeof line, f)) {
		train += strstr(line, "\"train\"") && strstr(line, "\"bce\"") &&
			 strstr(line, "\"orthogonality\"");
		valid += strstr(line, "\"valid\"") && strstr(line, "\"loss\"");
		areas_of += strstr(line, "roc_auc") != NULL;
	}
	if (f)
		fclose(f);
	// 8 steps: the first and every second one; validations after epochs 2 and 4
	ok(!err && train == 5 && valid == 2 && areas_of == 2,
	   "%d lines of steps, %d of validations, %d areas %s", train, valid, areas_of,
	   yoke_error());
	yoke_error_clear();
	yoke_pipeline_free(p);
	yoke_dataset_free(d);
}

// ---- groups of unequal weight ----

// The last number of that name in a line of that stage; NaN: none.
static double logged(const char *stage, const char *name)
{
	char line[2000], word[80];
	double value = NAN;
	FILE *f = fopen("run/metrics.jsonl", "r");
	while (f && fgets(line, sizeof line, f)) {
		snprintf(word, sizeof word, "\"%s\"", stage);
		if (!strstr(line, word))
			continue;
		snprintf(word, sizeof word, "\"%s\":", name);
		const char *at = strstr(line, word);
		value = at ? strtod(at + strlen(word), NULL) : NAN;
	}
	if (f)
		fclose(f);
	return value;
}

// Sample 1 has no weighted pixel, sample 2 one, others have fractions. Pixels without weight
// contain arbitrary numbers.
static void weigh_unequally(void)
{
	for (int i = 0; i < N; i++)
		for (int p = 0; p < PIXELS; p++) {
			weight[i][p] = i == 1 || (i == 2 && p) ?
					       0 :
					       (float)(rnd_int(0, i) ? rnd_real(0.1, i + 1) : 0);
			for (int k = 0; k < C && weight[i][p] == 0; k++)
				x[i][p][k] = k % 2 ? -3.4e38f : 3e38f;
		}
	weight[2][0] = 0.5f;
	for (int k = 0; k < C; k++)
		x[2][0][k] = (float)(k - 1);
}

// One pass of gradient descent, recorded; returns the number of states.
static size_t recorded(const char *nodes, const char *losses, const char *trainer,
		       const char *loader, double *to)
{
	char json[2000];
	yoke_dataset *d = set(true);
	const struct yoke_run_options ro = { .size = sizeof ro };
	yoke_run *run = yoke_run_open("run", &ro);
	snprintf(
		json, sizeof json,
		"{\"nodes\": [%s], \"losses\": [%s], \"metrics\": [\"accuracy\"], \"optimizer\": {\"name\": \"sgd\", "
		"\"lr\": 0.1}, \"trainer\": {\"log_every_n_steps\": 1, %s}}",
		nodes, losses, trainer);
	yoke_pipeline *p = yoke_pipeline_new(json);
	const struct yoke_training o = {
		.size = sizeof o, .train = d, .valid = d, .loader = loader, .run = run
	};
	int err = p ? yoke_pipeline_fit(p, d, loader) : -1;
	if (!err)
		err = yoke_pipeline_train(p, &o);
	yoke_run_close(run, err ? "failed" : "done", NULL);
	memset(to, 0xff, 64 * sizeof *to);
	const size_t n = err ? 0 : read_state(p, "a", "w", to);
	yoke_pipeline_free(p);
	yoke_dataset_free(d);
	return n;
}

#define BCE "{\"type\": \"bce\", \"of\": \"a\", \"weight\": 2}"
#define TIES ", {\"type\": \"orthogonality\", \"of\": \"a\", \"weight\": 0.3}"

static void unequal(void)
{
	double w[64], want[64], loss = 0, sum = 0;
	char loader[60], what[100];
	weigh_unequally();
	for (int batch = 1; batch <= N; batch = batch == 3 ? N : batch + 1) {
		snprintf(loader, sizeof loader, "batch=%d workers=0", batch);
		const size_t n = recorded(LINEAR(1), BCE TIES, "\"max_epochs\": 0", loader, w);
		loss = sum = 0;
		for (int q = 0; q < ALL; q++) {
			double z = 0;
			const double one = weight[q / PIXELS][q % PIXELS];
			for (int k = 0; k < C && one > 0; k++)
				z += w[k] * x[q / PIXELS][q % PIXELS][k];
			sum += one;
			loss += one * ((1 - label[q / PIXELS][q % PIXELS]) * z + fmax(-z, 0) +
				       log1p(exp(-fabs(z))));
		}
		double off = -1;
		for (int k = 0; k < C; k++)
			off += w[k] * w[k];
		const double got[3] = { logged("valid", "bce"), logged("valid", "orthogonality"),
					logged("valid", "loss") };
		const double all[3] = { loss / sum, off * off, 2 * loss / sum + 0.3 * off * off };
		snprintf(what, sizeof what, "validation in batches of %d: %.7g of %.7g", batch,
			 got[0], all[0]);
		near(got, all, n ? 3 : 0, 1e-5, 1, what);
	}
	// one step of all samples, in one batch or in several
	const size_t n =
		recorded(LINEAR(1), BCE TIES, "\"max_epochs\": 2", "batch=8 workers=0", want);
	const double bce = logged("train", "bce"), all = logged("train", "loss");
	ok(n == C && isfinite(want[0]), "pixels without weight may hold any value: %g", want[0]);
	for (int batch = 1; batch < N; batch = batch == 2 ? 3 : batch + 1) {
		char trainer[100];
		snprintf(loader, sizeof loader, "batch=%d workers=0", batch);
		snprintf(trainer, sizeof trainer,
			 "\"max_epochs\": 2, \"accumulate_grad_batches\": %d",
			 (N + batch - 1) / batch);
		recorded(LINEAR(1), BCE TIES, trainer, loader, w);
		snprintf(what, sizeof what, "batches of %d that add up to one of %d", batch, N);
		near(w, want, n, 2e-6, 1, what);
		near(&(double){ logged("train", "bce") }, &bce, 1, 2e-6, 1, "the logged loss");
		near(&(double){ logged("train", "loss") }, &all, 1, 2e-6, 1,
		     "the loss over all samples");
		if (batch == 3)
			break;
	}
	// no pixels at all
	memset(weight, 0, sizeof weight);
	weight[0][0] = weight[0][1] = 1;
	yoke_dataset *d = set(true), *none = yoke_dataset_subset(d, 1, 2, NULL);
	yoke_pipeline *p = yoke_pipeline_new("{\"nodes\": [" LINEAR(1) "], \"losses\": [" BCE
					     "], \"trainer\": {\"max_epochs\": 1}}");
	const struct yoke_run_options ro = { .size = sizeof ro };
	yoke_run *run = yoke_run_open("run", &ro);
	const struct yoke_training o = { .size = sizeof o,
					 .train = none,
					 .valid = none,
					 .loader = "batch=1 workers=0",
					 .run = run };
	int err = p ? yoke_pipeline_fit(p, d, o.loader) : -1;
	if (!err)
		err = yoke_pipeline_train(p, &o);
	yoke_run_close(run, "done", NULL);
	ok(!err && isnan(logged("valid", "bce")) && isnan(logged("train", "bce")),
	   "a loss over no pixel has no value %s", yoke_error());
	weight[3][5] = -1;
	yoke_pipeline *collects = yoke_pipeline_new("{\"nodes\": [" CHAIN "]}");
	ok(yoke_pipeline_fit(collects, d, o.loader) == YOKE_ERANGE,
	   "a negative weight in phase 1: %s", yoke_error());
	yoke_error_clear();
	yoke_pipeline_free(collects);
	const struct yoke_training t = { .size = sizeof t,
					 .train = d,
					 .loader = "batch=8 workers=0" };
	err = yoke_pipeline_train(p, &t);
	ok(err == YOKE_ERANGE || err == YOKE_EINVAL, "and in phase 2: %s", yoke_error());
	yoke_error_clear();
	yoke_pipeline_free(p);
	yoke_dataset_free(none);
	yoke_dataset_free(d);
	fill();
}

// ---- checkpoints ----

// Trains that many epochs with checkpoints in `folder`, from its last checkpoint if there is one.
static size_t epochs(int n, const char *folder, double *to)
{
	char json[2000];
	yoke_dataset *d = set(true);
	snprintf(json, sizeof json,
		 "{\"nodes\": [" CHAIN "], " LOSSES
		 ", \"optimizer\": {\"lr\": 0.01}, \"trainer\": {\"max_epochs\": %d, "
		 "\"enable_checkpointing\": true}}",
		 n);
	yoke_pipeline *p = yoke_pipeline_new(json);
	const int64_t done = p ? yoke_pipeline_resume(p, folder) : -1;
	const struct yoke_training o = { .size = sizeof o,
					 .train = d,
					 .loader = "batch=3 workers=2",
					 .folder = folder,
					 .resume = done > 0 };
	int err = done < 0 ? (int)done : done ? 0 : yoke_pipeline_fit(p, d, o.loader);
	if (!err)
		err = yoke_pipeline_train(p, &o);
	const size_t count = err ? 0 : read_state(p, "pca", "w", to);
	yoke_pipeline_free(p);
	yoke_dataset_free(d);
	return count;
}

static void checkpoints(void)
{
	double whole[64], cut[64];
	mkdir("whole", 0755);
	mkdir("cut", 0755);
	const size_t n = epochs(5, "whole", whole);
	epochs(2, "cut", cut);
	const bool differs = memcmp(whole, cut, n * sizeof *cut);
	epochs(5, "cut", cut);
	ok(n == 12 && differs && !memcmp(whole, cut, n * sizeof *cut),
	   "2 epochs and 3 more equal 5, bit for bit %s", yoke_error());
	yoke_error_clear();
	// killed after a checkpoint, before the previous one was removed
	static const char *const old[] = { "cut/states.4.safetensors",
					   "cut/optimizer.6.safetensors", "cut/collected.json" };
	bool gone = true;
	for (size_t i = 0; i < sizeof old / sizeof *old; i++)
		fclose(fopen(old[i], "w"));
	epochs(5, "cut", cut);
	for (size_t i = 0; i < sizeof old / sizeof *old; i++)
		gone &= access(old[i], F_OK) != 0;
	ok(gone && !memcmp(whole, cut, n * sizeof *cut),
	   "a checkpoint removes its predecessors after a resume %s", yoke_error());
	yoke_error_clear();
	FILE *f = fopen("cut/checkpoint.json", "w");
	fputs("{\"epoch\": 7, \"step\": -1}", f);
	fclose(f);
	epochs(5, "cut", cut);
	ok(yoke_error_code() == YOKE_EFORMAT, "an invalid checkpoint: %s", yoke_error());
	yoke_error_clear();
}

// ---- stopped ----

enum { LINES = 200 };
struct stopping {
	int calls, at; // 1 from that call on
	int lines;
	double line[LINES][8];
};

static int stop_at(void *arg)
{
	struct stopping *s = arg;
	return ++s->calls >= s->at;
}

static void keep_line(void *arg, const char *stage, int64_t step, int n, const char *const *name,
		      const double *value)
{
	struct stopping *s = arg;
	double *to = s->line[s->lines];
	if (s->lines + 1 < LINES)
		s->lines++;
	to[0] = *stage;
	to[1] = (double)step;
	for (int i = 0; i < 6; i++)
		to[2 + i] = i < n && *name[i] ? value[i] : 0;
}

// Both phases, or the rest of them; 1: stopped.
static int go(const char *folder, const char *trainer, struct stopping *s, double *to)
{
	char json[2000];
	yoke_dataset *d = set(true);
	snprintf(
		json, sizeof json,
		"{\"nodes\": [" CHAIN
		", {\"name\": \"more\", \"type\": \"standard\"}], \"losses\": [{\"type\": \"bce\", "
		"\"of\": \"logit\"}], \"optimizer\": {\"lr\": 0.01}, \"metrics\": [\"roc_auc\"], \"trainer\": {\"max_epochs\": 3, "
		"\"log_every_n_steps\": 1, \"val_check_interval\": 0.5, %s}}",
		trainer);
	yoke_pipeline *p = yoke_pipeline_new(json);
	const int64_t done = p ? yoke_pipeline_resume(p, folder) : -1;
	const struct yoke_fitting f = { .size = sizeof f,
					.set = d,
					.loader = "batch=3 workers=0",
					.folder = folder,
					.resume = 1,
					.stop = stop_at,
					.arg = s };
	const struct yoke_training o = { .size = sizeof o,
					 .train = d,
					 .valid = d,
					 .loader = "batch=1 workers=0",
					 .folder = folder,
					 .resume = done > 0,
					 .stop = stop_at,
					 .logged = keep_line,
					 .arg = s };
	int err = done < 0 ? (int)done : done ? 0 : yoke_pipeline_fit_as(p, &f);
	if (!err)
		err = yoke_pipeline_train(p, &o);
	if (!err)
		read_state(p, "pca", "w", to);
	yoke_pipeline_free(p);
	yoke_dataset_free(d);
	return err;
}

static void stopped(const char *trainer, const char *name)
{
	static struct stopping whole, cut;
	double want[64], got[64];
	char folder[60];
	whole = (struct stopping){ .at = INT32_MAX };
	snprintf(folder, sizeof folder, "%s-whole", name);
	mkdir(folder, 0755);
	int err = go(folder, trainer, &whole, want), stops = 0;
	bool right = !err, logs = true;
	for (int at = 1; at < whole.calls && right; at++) {
		snprintf(folder, sizeof folder, "%s-%d", name, at);
		mkdir(folder, 0755);
		cut = (struct stopping){ .at = at };
		err = go(folder, trainer, &cut, got);
		right = err == 1;
		stops += right;
		cut.at = INT32_MAX;
		err = right ? go(folder, trainer, &cut, got) : -1;
		right &= !err && !memcmp(got, want, 12 * sizeof *got);
		for (int k = 0; k < LINES && logs && memcmp(cut.line, whole.line, sizeof cut.line);
		     k++)
			if (memcmp(cut.line[k], whole.line[k], sizeof *cut.line)) {
				diag("stopped at %d: %d lines, line %d is %c %g %g %g, not %c %g %g %g",
				     at, cut.lines, k, (int)cut.line[k][0], cut.line[k][1],
				     cut.line[k][2], cut.line[k][3], (int)whole.line[k][0],
				     whole.line[k][1], whole.line[k][2], whole.line[k][3]);
				break;
			}
		logs &= cut.lines == whole.lines && !memcmp(cut.line, whole.line, sizeof cut.line);
	}
	ok(right && stops > 10,
	   "%s: stopped at each of %d points and resumed, with the same bits %s", name, stops,
	   yoke_error());
	ok(logs, "%s: with the same %d log lines", name, whole.lines);
	yoke_error_clear();
}

static void refuses(const char *nodes, const char *rest, bool labels, const char *word)
{
	trained(nodes, rest, "batch=8 workers=0", labels, "a", "w");
	const char *why = yoke_error();
	ok(strstr(why, word) != NULL, "%s: %s", rest, why);
	yoke_error_clear();
}

static void bad(void)
{
	refuses("{\"name\": \"a\", \"type\": \"linear\", \"k\": 1}",
		"\"losses\": [{\"type\": \"bce\", \"of\": \"a\"}]", true, "reaches no parameter");
	refuses(LINEAR(1), "\"losses\": [{\"type\": \"bcd\", \"of\": \"a\"}]", true,
		"orthogonality bce");
	refuses(LINEAR(1), "\"losses\": [{\"type\": \"bce\", \"of\": \"b\"}]", true, "no node 'b'");
	refuses(LINEAR(1), "\"losses\": [{\"type\": \"bce\", \"of\": \"a\", \"wait\": 1}]", true,
		"weight");
	refuses(LINEAR(1), "\"losses\": [{\"type\": \"entropy\", \"of\": \"a\"}]", true, "state l");
	refuses(LINEAR(2), "\"losses\": [{\"type\": \"bce\", \"of\": \"a\"}]", true, "must be 1");
	refuses(LINEAR(1), "\"losses\": [{\"type\": \"bce\", \"of\": \"a\"}]", false, "label");
	refuses(LINEAR(1), "\"losses\": 3", true, "must be a list");
	refuses(LINEAR(1), "\"metrics\": [\"auc\"]", true, "roc_auc");
	refuses(LINEAR(1), "\"trainer\": {\"max_epoch\": 3}", true, "max_epochs");
	refuses(LINEAR(1), "\"trainer\": {\"max_epochs\": -1}", true, "from 0");
	refuses(LINEAR(1), "\"trainer\": {\"passes\": \"two\"}", true, "one each");
	refuses(LINEAR(1), "\"optimizer\": {\"name\": \"adan\"}", true, "adam adamw sgd");
	refuses(LINEAR(1), "\"optimizer\": {\"betas\": [0.9]}", true, "two numbers");
	refuses(LINEAR(1), "\"optimizer\": {\"momentum\": 0.9}", true, "of sgd");
	refuses(LINEAR(1), "\"optimizer\": {\"lr\": \"1e-3\"}", true, "lr must be");
	refuses("{\"name\": \"a\", \"type\": \"sigmoid\", \"train\": true}", "\"seed\": 1", true,
		"nothing to train");
	refuses("{\"name\": \"a\", \"type\": \"rx\", \"train\": 1}", "\"seed\": 1", true,
		"true or false");
}

int main(void)
{
	tap_seed();
	tap_folder();
	fill();
	closed_forms();
	node_gradients();
	bits();
	areas();
	records();
	unequal();
	checkpoints();
	stopped("\"accumulate_grad_batches\": 1", "each");
	stopped("\"accumulate_grad_batches\": 3", "thirds");
	stopped("\"precision\": \"16-mixed\"", "scaled");
	bad();
	return done();
}
