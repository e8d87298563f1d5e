// SPDX-License-Identifier: Apache-2.0
// Tests fitting of pipelines: few passes over a counted stream give the same as one pass per
// node; results against float64 loops; saving and loading; invalid JSON.
#include "config.h"

#include <stdatomic.h>

#include "base/log.h"
#include "tap.h"
#include "yoke-pipeline.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum { CUBES = 6, PIXELS = 600, C = 9 };
static float x[CUBES][PIXELS][C], weight[CUBES][PIXELS];
static atomic_int reads;

static int read_cubes(void *arg, int64_t n, struct yoke_item *const *item)
{
	(void)arg;
	for (int64_t i = 0; i < n; i++) {
		reads++;
		memcpy(item[i]->to[0], x[item[i]->number], sizeof x[0]);
		if (arg)
			memcpy(item[i]->to[1], weight[item[i]->number], sizeof weight[0]);
	}
	return 0;
}

static yoke_dataset *cubes(bool weighed)
{
	const struct yoke_field field[2] = { { .size = sizeof *field,
					       .name = "x",
					       .dtype = yoke_f32,
					       .rank = 2,
					       .dims = { PIXELS, C } },
					     { .size = sizeof *field,
					       .name = "weight",
					       .dtype = yoke_f32,
					       .rank = 1,
					       .dims = { PIXELS } } };
	const struct yoke_dataset_options o = { .size = sizeof o,
						.name = "cubes",
						.count = CUBES,
						.fields = weighed ? 2 : 1,
						.field = field,
						.read = read_cubes,
						.arg = weighed ? x : NULL };
	return yoke_dataset_new(&o);
}

static void fill(void)
{
	double mix[C][C];
	const uint64_t state = tap_state;
	// with this seed, components' variances differ by a fifth, also for scaled channels:
	// components of equal variance are not unique
	tap_state = 643;
	for (int i = 0; i < C; i++)
		for (int k = 0; k < C; k++)
			mix[i][k] = (rnd_real(-0.15, 0.15) + (i == k)) /
				    (1 + i); // no direction of zero variance
	tap_state = state;
	for (int q = 0; q < CUBES; q++)
		for (int r = 0; r < PIXELS; r++) {
			double e[C];
			weight[q][r] = (float)rnd_int(0, 1);
			for (int i = 0; i < C; i++)
				e[i] = rnd_real(-3, 3);
			for (int k = 0; k < C; k++) {
				double sum = 100 + k;
				for (int i = 0; i < C; i++)
					sum += 10 * mix[i][k] * e[i];
				x[q][r][k] = (float)sum;
			}
		}
}

// A fitted pipeline of these nodes; NULL after an error.
static yoke_pipeline *fit(const char *nodes, const char *passes, bool weighed, int want_passes)
{
	char json[2000], what[300];
	struct yoke_pipeline_stats s = { .size = sizeof s };
	snprintf(json, sizeof json, "{\"nodes\": [%s], \"trainer\": {\"passes\": \"%s\"}}", nodes,
		 passes);
	yoke_dataset *d = cubes(weighed);
	yoke_pipeline *p = yoke_pipeline_new(json);
	reads = 0;
	int err = p ? yoke_pipeline_fit(p, d, "batch=4 workers=0") : -1;
	yoke_dataset_free(d);
	if (p)
		yoke_pipeline_stats(p, &s);
	if (want_passes >= 0) {
		snprintf(what, sizeof what, "%.200s", nodes);
		ok(!err && s.passes == want_passes && reads == want_passes * CUBES &&
			   s.samples == reads,
		   "passes=%s: %d passes, %d reads, of %s %s", passes, s.passes, (int)reads, what,
		   yoke_error());
	}
	if (!err)
		return p;
	yoke_pipeline_free(p);
	return NULL;
}

// The result for the first cube; returns the number of values.
static size_t result(yoke_pipeline *p, const char *node, float *to)
{
	yoke_scope *s = yoke_scope_begin("result");
	yoke_tensor *y =
		p ? yoke_pipeline_apply(p, node, yoke_from(yoke_f32, 2, DIMS(PIXELS, C), x[0])) :
		    NULL;
	const size_t n = y ? (size_t)yoke_count(y) : 0;
	if (!y || n > PIXELS * 2 * C || yoke_read(y, to, n * sizeof *to) < 0)
		diag("%s", yoke_error());
	yoke_scope_end(s);
	return n;
}

// Which comparison of results is possible: each number; per pixel the sum of squares, where equal
// variances leave the vectors of all channels free; or nothing, where the selection of channels is
// free.
enum equal { NUMBERS, LENGTHS, NOTHING };

static void lengths(float *y, size_t *n, int64_t channels)
{
	for (size_t i = 0; i < *n / (size_t)channels; i++) {
		double sum = 0;
		for (int64_t k = 0; k < channels; k++)
			sum += y[i * (size_t)channels + (size_t)k] *
			       y[i * (size_t)channels + (size_t)k];
		y[i] = (float)sum;
	}
	*n /= (size_t)channels;
}

// Are results of one pass and of one pass per node equal, up to the sign of nearly equal vectors?
static void both_to(enum equal what, const char *nodes, int one, int each, bool weighed)
{
	static float got[2][PIXELS * 2 * C];
	size_t n[2];
	double worst = 0, max = 0;
	for (int k = 0; k < 2; k++) {
		char chunk[20]; // values are computed in chunks of any size
		snprintf(chunk, sizeof chunk, "%d", k ? 1 << 20 : (int)rnd_int(1, 4 * PIXELS * C));
		yoke_setting_set("fit.chunk", chunk);
		yoke_pipeline *p = fit(nodes, k ? "each" : "one", weighed, k ? each : one);
		memset(got[k], 0xff, sizeof got[k]);
		n[k] = result(p, NULL, got[k]);
		if (what == LENGTHS)
			lengths(got[k], &n[k], (int64_t)n[k] / PIXELS);
		yoke_pipeline_free(p);
	}
	if (what == NOTHING)
		return;
	for (size_t i = 0; i < n[0]; i++)
		max = fmax(max, fabs(got[0][i]));
	for (size_t i = 0; i < n[0]; i++)
		worst = isnan(got[0][i]) || isnan(got[1][i]) ?
				INFINITY :
				fmax(worst, fabs(got[0][i] - got[1][i]) / max);
	ok(n[0] == n[1] && n[0] && worst < 1e-5, "both results agree: %.2g of the largest %s",
	   worst, yoke_error());
	yoke_error_clear();
}

static void both(const char *nodes, int one, int each, bool weighed)
{
	both_to(NUMBERS, nodes, one, each, weighed);
}

// Means m and covariances s of the stream, and the inverse of s with `added` on its diagonal, after
// C columns of [.., 2C].
static void moments_of_stream(double *m, double (*s)[C], double added, double (*inverse)[2 * C])
{
	const double n = CUBES * PIXELS;
	memset(m, 0, C * sizeof *m);
	memset(s, 0, C * sizeof *s);
	for (int q = 0; q < CUBES; q++)
		for (int r = 0; r < PIXELS; r++)
			for (int k = 0; k < C; k++)
				m[k] += x[q][r][k] / n;
	for (int q = 0; q < CUBES; q++)
		for (int r = 0; r < PIXELS; r++)
			for (int k = 0; k < C; k++)
				for (int i = 0; i < C; i++)
					s[k][i] +=
						(x[q][r][k] - m[k]) * (x[q][r][i] - m[i]) / (n - 1);
	for (int k = 0; k < C; k++)
		for (int i = 0; i < 2 * C; i++)
			inverse[k][i] = i < C ? s[k][i] + (i == k ? added : 0) : i - C == k;
	for (int k = 0; k < C; k++) { // Gauss and Jordan; it is positive definite
		const double pivot = inverse[k][k];
		for (int i = 0; i < 2 * C; i++)
			inverse[k][i] /= pivot;
		for (int r = 0; r < C; r++) {
			const double f = r == k ? 0 : inverse[r][k];
			for (int i = 0; i < 2 * C; i++)
				inverse[r][i] -= f * inverse[k][i];
		}
	}
}

// standard, pca, rx against loops: rx after pca of all channels is the squared Mahalanobis distance
// of the stream.
static void by_hand(void)
{
	static double m[C], s[C][C], inverse[C][2 * C];
	static float got[PIXELS * 2 * C];
	double want[PIXELS], mine[PIXELS];
	moments_of_stream(m, s, 0, inverse);
	yoke_pipeline *p = fit(
		"{\"name\": \"a\", \"type\": \"standard\"}, {\"name\": \"b\", \"type\": \"pca\", \"k\": 9},"
		"{\"name\": \"c\", \"type\": \"rx\", \"eps\": 0}",
		"one", false, 1);
	result(p, NULL, got);
	for (int r = 0; r < PIXELS; r++) {
		want[r] = 0;
		mine[r] = got[r];
		for (int k = 0; k < C; k++)
			for (int i = 0; i < C; i++)
				want[r] += (x[0][r][k] - m[k]) * inverse[k][C + i] *
					   (x[0][r][i] - m[i]);
	}
	near(mine, want, PIXELS, 1e-4, 1, "the Mahalanobis distance");
	result(p, "b", got); // components: uncorrelated, of falling variance over the whole stream
	float ratio[C];
	yoke_read(yoke_pipeline_state(p, "b", "ratio"), ratio, sizeof ratio);
	double sum = 0;
	bool falls = true;
	for (int k = 0; k < C; k++) {
		sum += ratio[k];
		falls &= !k || ratio[k] <= ratio[k - 1];
	}
	ok(falls && fabs(sum - 1) < 1e-6, "fractions of variance decrease and sum to %.7g", sum);
	yoke_pipeline_free(p);
	// to a target: the angle, and the coherence of whitened pixels
	static const double target[C] = { 1, -2, 3, 0.5, 0, 2, 1, -1, 4 };
	static const char text[] = "\"target\": [1, -2, 3, 0.5, 0, 2, 1, -1, 4]";
	char nodes[400];
	double angle[PIXELS];
	snprintf(
		nodes, sizeof nodes,
		"{\"name\": \"a\", \"type\": \"sam\", %s}, {\"name\": \"b\", \"type\": \"ace\", \"in\": \"input\", "
		"\"eps\": 0, %s}, {\"name\": \"c\", \"type\": \"unit\", \"in\": [\"a\", \"b\"]}",
		text, text);
	float kept[C];
	memcpy(kept, x[0][1], sizeof kept);
	for (int k = 0; k < C; k++)
		x[0][1]
		 [k] = (float)(target[k] *
			       (1 +
				(k ? 0 :
				     1e-4))); // an angle whose cosine f32 cannot distinguish from 1
	moments_of_stream(m, s, 0, inverse);
	p = fit(nodes, "one", false, 1);
	for (int r = 0; r < PIXELS; r++) {
		double xx = 0, tt = 0, xt = 0, zz = 0, ss = 0, zs = 0;
		for (int k = 0; k < C; k++) {
			xx += x[0][r][k] * (double)x[0][r][k];
			tt += target[k] * target[k];
			xt += x[0][r][k] * target[k];
			for (int i = 0; i < C; i++) {
				zz += (x[0][r][k] - m[k]) * inverse[k][C + i] * (x[0][r][i] - m[i]);
				ss += (target[k] - m[k]) * inverse[k][C + i] * (target[i] - m[i]);
				zs += (x[0][r][k] - m[k]) * inverse[k][C + i] * (target[i] - m[i]);
			}
		}
		angle[r] = acos(xt / sqrt(xx * tt));
		want[r] = zs * zs / (zz * ss);
	}
	result(p, "a", got);
	for (int r = 0; r < PIXELS; r++)
		mine[r] = got[r];
	near(mine, angle, PIXELS, 1e-6, 1, "angles to a target");
	ok(fabs(mine[1] / angle[1] - 1) < 2e-2, "a small angle: %g of %g", mine[1], angle[1]);
	result(p, "b", got);
	for (int r = 0; r < PIXELS; r++)
		mine[r] = got[r];
	near(mine, want, PIXELS, 1e-5, 1, "coherence with a target");
	memcpy(x[0][1], kept, sizeof kept);
	yoke_pipeline_free(p);
}

static int dominated; // lines for an eps that affects results

static void count_dominated(int level, const char *topic, const char *text, void *arg)
{
	(void)arg;
	dominated += level == YOKE_LOG_WARN && !strcmp(topic, "fit") &&
		     strstr(text, "distorts results") != NULL;
}

// rx and whitened pca of the stream in any unit: eps is a fraction of the mean variance, or with
// relative=0 a variance.
static void scaled(void)
{
	static const struct {
		const char *keys;
		double eps, scale;
		bool relative, dominates;
	} how[] = { { "", 1e-11, 1e-4, true, false },
		    { "", 1e-11, 1, true, false },
		    { "", 1e-11, 1e4, true, false },
		    { "", 1e-11, 1e-20, true, false },
		    { "", 1e-11, 1e15, true, false },
		    { ", \"eps\": 0.5", 0.5, 1e-4, true, true },
		    { ", \"eps\": 1e-6, \"relative\": 0", 1e-6, 1, false, false },
		    { ", \"eps\": 1e-6, \"relative\": 0", 1e-6, 1e-4, false, true } };
	static double m[C], s[C][C], inverse[C][2 * C];
	static float got[PIXELS * 2 * C], kept[CUBES][PIXELS][C];
	double want[PIXELS], mine[PIXELS], square[PIXELS];
	memcpy(kept, x, sizeof x);
	for (size_t h = 0; h < sizeof how / sizeof *how; h++) {
		char nodes[300];
		double mean = 0;
		for (int q = 0; q < CUBES; q++)
			for (int r = 0; r < PIXELS; r++)
				for (int k = 0; k < C; k++)
					x[q][r][k] = (float)(how[h].scale * kept[q][r][k]);
		moments_of_stream(m, s, 0, inverse);
		for (int k = 0; k < C; k++)
			mean += s[k][k] / C;
		moments_of_stream(m, s, how[h].eps * (how[h].relative ? mean : 1), inverse);
		snprintf(
			nodes, sizeof nodes,
			"{\"name\": \"white\", \"type\": \"pca\", \"k\": %d, \"whiten\": 1%s}, "
			"{\"name\": \"rx\", \"type\": \"rx\", \"in\": \"input\"%s}, "
			"{\"name\": \"both\", \"type\": \"standard\", \"in\": [\"white\", \"rx\"]}",
			C, how[h].keys, how[h].keys);
		dominated = 0;
		yk_log_to(count_dominated, NULL);
		yoke_pipeline *p = fit(nodes, "one", false, -1);
		yk_log_to(NULL, NULL);
		result(p, "rx", got);
		for (int r = 0; r < PIXELS; r++) {
			want[r] = 0;
			mine[r] = got[r];
			for (int k = 0; k < C; k++)
				for (int i = 0; i < C; i++)
					want[r] += (x[0][r][k] - m[k]) * inverse[k][C + i] *
						   (x[0][r][i] - m[i]);
		}
		near(mine, want, PIXELS, 1e-4, 1, "rx of scaled pixels");
		result(p, "white", got);
		for (int r = 0; r < PIXELS; r++) {
			square[r] = 0;
			for (int k = 0; k < C; k++)
				square[r] += (double)got[r * C + k] * (double)got[r * C + k];
		}
		near(square, want, PIXELS, 1e-4, 1, "the norms of whitened components");
		ok(dominated == (how[h].dominates ? 2 : 0),
		   "scaled by %g%s: %d nodes of an eps that dominates %s", how[h].scale,
		   how[h].keys, dominated, yoke_error());
		yoke_pipeline_free(p);
	}
	memcpy(x, kept, sizeof x);
}

static void saved(void)
{
	static float a[PIXELS * 2 * C], b[PIXELS * 2 * C];
	static const char nodes[] =
		"{\"name\": \"a\", \"type\": \"min_max\"}, {\"name\": \"b\", \"type\": \"pca\", \"k\": 4, \"whiten\": 1},"
		"{\"name\": \"c\", \"type\": \"linear\", \"k\": 3}";
	char json[1000];
	yoke_pipeline *p = fit(nodes, "one", false, 1);
	const size_t n = result(p, NULL, a);
	ok(!yoke_pipeline_save(p, "p.safetensors"), "saved %s", yoke_error());
	yoke_pipeline_free(p);
	snprintf(json, sizeof json, "{\"nodes\": [%s]}", nodes);
	p = yoke_pipeline_new(json);
	ok(!yoke_pipeline_apply(p, NULL, yoke_full(yoke_f32, 1, DIMS(C), 1)) &&
		   yoke_error_code() == YOKE_EINVAL,
	   "an unfitted pipeline is not saved: %s", yoke_error());
	yoke_error_clear();
	ok(!yoke_pipeline_load(p, "p.safetensors") && result(p, NULL, b) == n &&
		   !memcmp(a, b, n * sizeof *a),
	   "the loaded pipeline gives the same bits %s", yoke_error());
	yoke_pipeline_free(p);
	p = yoke_pipeline_new("{\"nodes\": [{\"name\": \"a\", \"type\": \"standard\"}]}");
	ok(yoke_pipeline_load(p, "p.safetensors") == YOKE_EFORMAT,
	   "loaded into another pipeline: %s", yoke_error());
	yoke_error_clear();
	static const char head[] =
		"{\"a.mean\":{\"dtype\":\"F32\",\"shape\":[0,4611686018427387904],\"data_offsets\":[0,0]}}";
	const uint64_t length = sizeof head - 1; // of little endian
	FILE *f = fopen("empty.safetensors", "wb");
	fwrite(&length, 1, sizeof length, f);
	fwrite(head, 1, sizeof head - 1, f);
	fclose(f);
	ok(yoke_pipeline_load(p, "empty.safetensors") == YOKE_ERANGE,
	   "2^62 channels without an element: %s", yoke_error());
	yoke_error_clear();
	yoke_pipeline_free(p);
}

// ---- a type from outside: y = key * x, affine ----

static int64_t times_channels(const double *key, int64_t in, char *why, size_t size)
{
	(void)key, (void)why, (void)size;
	return in;
}
static yoke_tensor *times(const struct yoke_node_call *c, yoke_tensor *t)
{
	return yoke_mul(t, yoke_const(c->key[0]));
}
static void times_affine(const double *key, int64_t in, const double *const *state, double *a,
			 double *t)
{
	(void)state;
	memset(a, 0, (size_t)(in * in) * sizeof *a);
	memset(t, 0, (size_t)in * sizeof *t);
	for (int64_t i = 0; i < in; i++)
		a[i * in + i] = key[0];
}

static void registered(void)
{
	struct yoke_node_type t = { .size = sizeof t,
				    .name = "times",
				    .keys = 1,
				    .key = { { .name = "by", .def = 2, .min = -10, .max = 10 } },
				    .channels = times_channels,
				    .forward = times,
				    .affine = times_affine,
				    .diagonal = 1 };
	ok(!yoke_node_register(&t), "a node type is registered %s", yoke_error());
	both("{\"name\": \"a\", \"type\": \"times\", \"by\": -3}, {\"name\": \"b\", \"type\": \"min_max\", \"scope\": \"channel\"}",
	     1, 1, false);
	ok(yoke_node_register(&t) == YOKE_EINVAL, "but not twice: %s", yoke_error());
	yoke_error_clear();
	t.forward = NULL;
	t.name = "less";
	ok(yoke_node_register(&t) == YOKE_EINVAL, "nor without a forward function: %s",
	   yoke_error());
	yoke_error_clear();
}

static void bad_json(void)
{
	static const struct {
		const char *nodes, *word;
	} bad[] = {
		{ "", "list of 1" },
		{ "{\"name\": \"a\"}", "type" },
		{ "{\"name\": \"a\", \"type\": \"pcb\"}", "pca" },
		{ "{\"name\": \"a\", \"type\": \"pca\"}", "give k" },
		{ "{\"name\": \"a\", \"type\": \"pca\", \"k\": 0}", "from 1" },
		{ "{\"name\": \"a\", \"type\": \"pca\", \"k\": \"many\"}", "number" },
		{ "{\"name\": \"a\", \"type\": \"pca\", \"k\": 2.5}", "whole" },
		{ "{\"name\": \"a\", \"type\": \"linear\", \"k\": 1.5}", "whole" },
		{ "{\"name\": \"a\", \"type\": \"select\", \"n\": 2.25}", "whole" },
		{ "{\"name\": \"a\", \"type\": \"pca\", \"k\": 2, \"whiten\": 0.5}", "whole" },
		{ "{\"name\": \"a\", \"type\": \"sam\"}", "give target" },
		{ "{\"name\": \"a\", \"type\": \"sam\", \"target\": 3}", "list" },
		{ "{\"name\": \"a\", \"type\": \"ace\", \"target\": [1, \"2\"]}", "number 1" },
		{ "{\"name\": \"a\", \"type\": \"pca\", \"q\": 2}", "no key 'q'" },
		{ "{\"name\": \"a\", \"type\": \"rx\", \"epz\": 2}", "eps" },
		{ "{\"name\": \"a\", \"type\": \"min_max\", \"scope\": \"all\"}",
		  "global channel" },
		{ "{\"name\": \"a.b\", \"type\": \"rx\"}", "no dot" },
		{ "{\"name\": \"a\", \"type\": \"rx\"}, {\"name\": \"a\", \"type\": \"rx\"}",
		  "two nodes" },
		{ "{\"name\": \"a\", \"type\": \"rx\", \"in\": \"bb\"}, {\"name\": \"b\", \"type\": \"unit\"}",
		  "no node 'bb'" },
		{ "{\"name\": \"a\", \"type\": \"rx\", \"in\": \"b\"}, {\"name\": \"b\", \"type\": \"unit\"}",
		  "cycle" },
		{ "{\"name\": \"a\", \"type\": \"rx\", \"in\": 3}", "in" },
		{ "{\"name\": \"a\", \"type\": \"rx\", \"in\": []}", "reads nothing" },
		{ "{\"name\": \"a\", \"type\": \"rx\"}, {\"name\": \"b\", \"type\": \"unit\", \"in\": \"input\"}",
		  "nothing reads it" },
		{ "3", "name" },
	};
	char json[1000];
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(json, sizeof json, "{\"nodes\": [%s]}", bad[i].nodes);
		yoke_pipeline *p = yoke_pipeline_new(json);
		ok(!p && strstr(yoke_error(), bad[i].word), "%s: %s", bad[i].nodes, yoke_error());
		yoke_error_clear();
		yoke_pipeline_free(p);
	}
	yoke_pipeline *p = yoke_pipeline_new("{\"nodez\": []}");
	ok(!p && strstr(yoke_error(), "nodes"), "an unknown key: %s", yoke_error());
	yoke_error_clear();
	p = yoke_pipeline_new("{");
	ok(!p && yoke_error_code() == YOKE_EFORMAT, "truncated JSON: %s", yoke_error());
	yoke_error_clear();
}

// The pipeline is refused, and the error has these words.
static void refuses(const char *what, const char *nodes, bool weighed, const char *word,
		    const char *other)
{
	yoke_pipeline *p = fit(nodes, "one", weighed, -1);
	ok(!p && strstr(yoke_error(), word) && strstr(yoke_error(), other), "%s: %s", what,
	   yoke_error());
	yoke_error_clear();
	yoke_pipeline_free(p);
}

static int constant;

static void count_constant(int level, const char *topic, const char *text, void *arg)
{
	(void)level, (void)arg;
	constant += !strcmp(topic, "fit") && strstr(text, "channel 4 does not vary") != NULL;
}

// A constant channel is divided by eps, which is reported once, and gives finite results.
static void constants(void)
{
	static float got[PIXELS * 2 * C], kept[CUBES][PIXELS];
	static const char *const types[] = { "\"standard\"",
					     "\"min_max\", \"scope\": \"channel\"" };
	for (int q = 0; q < CUBES; q++)
		for (int r = 0; r < PIXELS; r++) {
			kept[q][r] = x[q][r][4];
			x[q][r][4] = 7;
		}
	for (int k = 0; k < 2; k++) {
		char nodes[200];
		snprintf(nodes, sizeof nodes, "{\"name\": \"a\", \"type\": %s}", types[k]);
		constant = 0;
		yk_log_to(count_constant, NULL);
		yoke_pipeline *p = fit(nodes, "one", false, -1);
		yk_log_to(NULL, NULL);
		result(p, NULL, got);
		bool zero = true;
		for (int r = 0; r < PIXELS; r++)
			zero &= got[r * C + 4] == 0;
		ok(zero && constant == 1,
		   "%s of a constant channel is 0, which is reported %d times %s", types[k],
		   constant, yoke_error());
		yoke_pipeline_free(p);
	}
	for (int q = 0; q < CUBES; q++)
		for (int r = 0; r < PIXELS; r++)
			x[q][r][4] = kept[q][r];
}

static void bad_streams(void)
{
	float kept[CUBES][PIXELS];
	refuses("target", "{\"name\": \"a\", \"type\": \"sam\", \"target\": [1, 2]}", false,
		"2 numbers", "9 channels");
	refuses("target",
		"{\"name\": \"a\", \"type\": \"sam\", \"target\": [0, 0, 0, 0, 0, 0, 0, 0, 0]}",
		false, "target is 0", "a:");
	refuses("k", "{\"name\": \"a\", \"type\": \"pca\", \"k\": 12}", false, "k=12",
		"9 channels");
	for (int q = 0; q < CUBES; q++)
		for (int r = 0; r < PIXELS; r++) {
			kept[q][r] = x[q][r][3];
			x[q][r][3] = 0;
		}
	refuses("eps", "{\"name\": \"a\", \"type\": \"standard\", \"eps\": 0}", false, "channel 3",
		"eps=0");
	refuses("eps",
		"{\"name\": \"a\", \"type\": \"min_max\", \"scope\": \"channel\", \"eps\": 0}",
		false, "channel 3", "eps=0");
	refuses("eps", "{\"name\": \"a\", \"type\": \"pca\", \"k\": 9, \"whiten\": 1, \"eps\": 0}",
		false, "component 8", "eps=0");
	refuses("singular", "{\"name\": \"a\", \"type\": \"rx\", \"eps\": 0}", false, "row 3",
		"eps=");
	for (int q = 0; q < CUBES; q++)
		for (int r = 0; r < PIXELS; r++)
			x[q][r][3] = kept[q][r];
	x[1][7][5] = NAN;
	refuses("NaN", "{\"name\": \"a\", \"type\": \"standard\"}", false, "channel 5", "NaN");
	x[1][7][5] = 0;
	memset(weight, 0, sizeof weight);
	weight[0][0] = 1;
	refuses("one pixel", "{\"name\": \"a\", \"type\": \"standard\"}", true, "two observations",
		"a:");
}

#define NODE(name, rest) "{\"name\": \"" name "\", \"type\": " rest "}"

int main(void)
{
	static const char *const affine[] = { "\"standard\"",
					      "\"min_max\", \"scope\": \"channel\"",
					      "\"min_max\"",
					      "\"pca\", \"k\": 5",
					      "\"pca\", \"k\": 5, \"whiten\": 1",
					      "\"logit\"",
					      "\"select\", \"n\": 3",
					      "\"linear\", \"k\": 6" };
	enum { N = sizeof affine / sizeof *affine };
	tap_seed();
	tap_folder();
	fill();
	// the usual chain: all affine nodes at once, then the scores for the logit
	both(NODE("scale", "\"min_max\"") "," NODE("pca", "\"pca\", \"k\": 6") ","
	     NODE("less", "\"pca\", \"k\": 3") "," NODE("rx", "\"rx\"") ","
	     NODE("logit", "\"logit\""), 2, 5, true);
	// two parallel branches
	both(NODE("a", "\"standard\"") "," NODE("b", "\"pca\", \"k\": 2, \"in\": \"a\"") ","
	     NODE("c", "\"pca\", \"k\": 3, \"in\": \"a\"") ","
	     NODE("d", "\"standard\", \"in\": [\"b\", \"c\", \"input\"]") ","
	     NODE("e", "\"unit\""), 1, 4, false);
	// of two bases, so their combination is one; and out of order
	both(NODE("d", "\"standard\", \"in\": [\"b\", \"a\"]") ","
	     NODE("a", "\"standard\", \"in\": \"input\"") ","
	     NODE("b", "\"sigmoid\", \"in\": \"a\"") ","
	     NODE("e", "\"pca\", \"k\": 2, \"in\": \"d\""), 2, 3, false);
	// products of the stream, and of non-affine results, in parallel, one pass each
	both(NODE("a", "\"standard\"") "," NODE("b", "\"pca\", \"k\": 6") ","
	     NODE("c", "\"linear\", \"k\": 4") "," NODE("d", "\"sigmoid\"") ","
	     NODE("e", "\"pca\", \"k\": 3") "," NODE("f", "\"linear\", \"k\": 3") ","
	     NODE("g", "\"sigmoid\", \"in\": [\"f\", \"b\"]") ","
	     NODE("h", "\"standard\", \"in\": [\"g\", \"c\"]"), 3, 4, true);
	for (int i = 0; i < N; i++)
		for (int k = 0; k < N; k++) {
			char nodes[300];
			// extremes do not go through a matrix
			const bool matrix = strstr(affine[i], "pca") || strstr(affine[i], "linear");
			const bool first = !strstr(affine[i], "linear"),
				   second = !strstr(affine[k], "linear");
			if (!tap_long() && (i * N + k + (int)tap_seed_value()) % 5)
				continue;
			snprintf(nodes, sizeof nodes, NODE("a", "%s") "," NODE("b", "%s"),
				 affine[i], affine[k]);
			const bool white = strstr(affine[i], "whiten"),
				   alike = white || strstr(affine[i], "standard");
			both_to(white && strstr(affine[k], "pca")    ? LENGTHS :
				alike && strstr(affine[k], "select") ? NOTHING :
								       NUMBERS,
				nodes,
				first && second && matrix && strstr(affine[k], "min_max") ?
					2 :
					first || second,
				first + second, k & 1);
		}
	by_hand();
	scaled();
	saved();
	registered();
	constants();
	bad_json();
	bad_streams();
	return done();
}
