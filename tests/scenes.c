// SPDX-License-Identifier: Apache-2.0
// Tests pipelines over scenes of different sizes: statistics and training against float64 loops
// over all pixels, metrics, checkpoints. The node local_rx is compared with such loops, at edges
// and beside masked pixels, and with finite differences.
#include "config.h"

#include <sys/stat.h>

#include "fit/node.h"
#include "graph/context.h"
#include "tap.h"
#include "yoke-cube.h"
#include "yoke-op.h"
#include "yoke-pipeline.h"
#include "yoke-plugin.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum { SCENES = 5, C = 4, MAX_L = 14, MAX_S = 17, MAX_PIXELS = MAX_L * MAX_S };
static const int size[SCENES][2] = { { 9, 13 }, { 14, 5 }, { 1, 17 }, { 12, 12 }, { 7, 11 } };
static float x[SCENES][MAX_PIXELS * C];
static uint8_t label[SCENES][MAX_PIXELS], mask[SCENES][MAX_PIXELS];
static char path[SCENES][3][40];

static int pixels_of(int k)
{
	return size[k][0] * size[k][1];
}

static void write_cube(const char *name, int lines, int samples, int bands, const char *type,
		       const float *v)
{
	const struct yoke_cube_info i = { .size = sizeof i,
					  .lines = lines,
					  .samples = samples,
					  .bands = bands,
					  .type = type,
					  .interleave = "bsq",
					  .ignore = NAN };
	if (yoke_cube_write(name, &i, v) < 0)
		diag("%s", yoke_error());
}

static void fill(void)
{
	float f[MAX_PIXELS];
	for (int k = 0; k < SCENES; k++) {
		snprintf(path[k][0], sizeof path[k][0], k % 2 ? "scene%d.npy" : "scene%d.hdr", k);
		snprintf(path[k][1], sizeof path[k][1], "label%d.hdr", k);
		snprintf(path[k][2], sizeof path[k][2], "mask%d.hdr", k);
		for (int p = 0; p < pixels_of(k); p++) {
			label[k][p] = rnd_int(0, 5) == 0;
			mask[k][p] = rnd_int(0, 4) != 0;
			for (int i = 0; i < C; i++)
				x[k][p * C + i] = (float)(10 * k + rnd_real(-1, 1) * (1 + i) +
							  3 * label[k][p]);
		}
		write_cube(path[k][0], size[k][0], size[k][1], C, "f32", x[k]);
		for (int p = 0; p < pixels_of(k); p++)
			f[p] = label[k][p];
		write_cube(path[k][1], size[k][0], size[k][1], 1, "u8", f);
		for (int p = 0; p < pixels_of(k); p++)
			f[p] = mask[k][p];
		write_cube(path[k][2], size[k][0], size[k][1], 1, "u8", f);
	}
}

// The first n scenes, with labels and masks.
static yoke_dataset *set_of(int n)
{
	const char *cube[SCENES], *labels[SCENES], *masks[SCENES];
	for (int k = 0; k < n; k++) {
		cube[k] = path[k][0];
		labels[k] = path[k][1];
		masks[k] = path[k][2];
	}
	const struct yoke_cube_files o = {
		.size = sizeof o, .n = n, .path = cube, .label = labels, .mask = masks
	};
	yoke_dataset *d = yoke_dataset_cube_files(&o);
	if (!d)
		diag("%s", yoke_error());
	return d;
}

// ---- sets ----

// Does a batch's row hold a scene, with weight 0 past its ends?
static bool holds(void *const *data, int64_t (*dims)[YOKE_MAX_RANK + 1], int row, int k)
{
	const int64_t lines = dims[0][1], samples = dims[0][2];
	const float *v = (const float *)data[0] + row * lines * samples * C,
		    *w = (const float *)data[1] + row * lines * samples;
	const uint8_t *l = (const uint8_t *)data[2] + row * lines * samples;
	const int32_t *extent = (const int32_t *)data[3] + row * 2;
	bool right = extent[0] == size[k][0] && extent[1] == size[k][1];
	for (int64_t i = 0; i < lines && right; i++)
		for (int64_t j = 0; j < samples && right; j++) {
			const int64_t at = i * samples + j, own = i * size[k][1] + j;
			if (i < size[k][0] && j < size[k][1])
				right = !memcmp(v + at * C, x[k] + own * C, C * sizeof *v) &&
					w[at] == (float)mask[k][own] && l[at] == label[k][own];
			else
				right = w[at] == 0 && l[at] == 0 && v[at * C] == 0;
		}
	return right;
}

static void batches(yoke_dataset *d, int batch, const char *what)
{
	char settings[80];
	void *data[4];
	int64_t dims[4][YOKE_MAX_RANK + 1];
	int k = 0;
	bool right = d != NULL;
	snprintf(settings, sizeof settings, "batch=%d last=keep shuffle=0 epochs=1", batch);
	yoke_loader *l = d ? yoke_loader_new(d, settings) : NULL;
	for (int64_t rows = 1; right && rows > 0; k += (int)rows) {
		rows = yoke_loader_host(l, 4, data, dims);
		int lines = 0, samples = 0;
		for (int r = 0; r < rows; r++) {
			lines = size[k + r][0] > lines ? size[k + r][0] : lines;
			samples = size[k + r][1] > samples ? size[k + r][1] : samples;
		}
		right = rows >= 0 && (!rows || (dims[0][1] == lines && dims[0][2] == samples));
		for (int r = 0; r < rows && right; r++)
			right = holds(data, dims, r, k + r);
	}
	ok(right && k == SCENES, "%s: batches of %d have the largest size among their scenes %s",
	   what, batch, yoke_error());
	yoke_loader_free(l);
}

static void sets(void)
{
	yoke_dataset *d = set_of(SCENES);
	batches(d, 1, "files");
	batches(d, 2, "files");
	batches(d, 5, "files");
	// there is memory for some of 5 scenes
	yoke_dataset *kept = d ? yoke_dataset_cache(d, 9000) : NULL;
	for (int i = 0; i < 2; i++)
		batches(kept, 1, "in memory");
	yoke_dataset_free(kept);
	yoke_dataset *other = set_of(SCENES - 1);
	ok(d && other && yoke_dataset_fingerprint(d) != yoke_dataset_fingerprint(other),
	   "fingerprints differ");
	yoke_dataset_free(other);
	yoke_dataset_free(d);

	const char *two[] = { "scene0.hdr", "bands.npy" },
		   *labels[] = { "label0.hdr", "label0.hdr" };
	write_cube(two[1], 3, 2, 6, "f32", x[0]);
	d = yoke_dataset_cubes(2, two, NULL, NULL);
	ok(!d && yoke_error_code() == YOKE_ESHAPE && strstr(yoke_error(), two[0]) &&
		   strstr(yoke_error(), two[1]) && strstr(yoke_error(), "4") &&
		   strstr(yoke_error(), "6"),
	   "other bands: both files and counts are named: %s", yoke_error());
	yoke_error_clear();
	d = yoke_dataset_cubes(2, two, NULL, "bands=1,3");
	ok(d != NULL, "a selection makes bands equal %s", yoke_error());
	yoke_dataset_free(d);
	d = yoke_dataset_cubes(2, two, labels, "bands=1,3");
	ok(!d && yoke_error_code() == YOKE_ESHAPE && strstr(yoke_error(), labels[1]) &&
		   strstr(yoke_error(), two[1]),
	   "labels of another size: both files are named: %s", yoke_error());
	yoke_error_clear();
}

// ---- statistics, training, metrics ----

#define NODES "\"nodes\": [{\"name\": \"a\", \"type\": \"standard\"}, {\"name\": \"b\", \"type\": \"linear\", \"k\": 1, \"train\": true}]"

static void read_state(const yoke_pipeline *p, const char *node, const char *state, double *to,
		       size_t n)
{
	float f[64];
	yoke_tensor *t = yoke_pipeline_state(p, node, state);
	if (!t || yoke_read(t, f, n * sizeof *f) < 0)
		diag("%s", yoke_error());
	for (size_t i = 0; i < n; i++)
		to[i] = f[i];
}

struct seen {
	double auc, loss;
};

static void on_line(void *arg, const char *stage, int64_t step, int n, const char *const *name,
		    const double *value)
{
	struct seen *s = arg;
	(void)step;
	for (int i = 0; i < n && !strcmp(stage, "valid"); i++) {
		s->auc = !strcmp(name[i], "roc_auc") ? value[i] : s->auc;
		s->loss = !strcmp(name[i], "loss") ? value[i] : s->loss;
	}
}

// The area, by counting pairs, and the mean cross entropy of w x + b, x scaled by mean and scale.
static struct seen by_loops(const double *mean, const double *scale, const double *w, double b)
{
	static double score[SCENES * MAX_PIXELS];
	static uint8_t is[SCENES * MAX_PIXELS];
	double right = 0, pairs = 0, sum = 0;
	int n = 0;
	for (int k = 0; k < SCENES; k++)
		for (int p = 0; p < pixels_of(k); p++) {
			if (!mask[k][p])
				continue;
			score[n] = b;
			for (int i = 0; i < C; i++)
				score[n] += w[i] * (x[k][p * C + i] - mean[i]) * scale[i];
			is[n] = label[k][p];
			sum += log1p(exp(is[n] ? -score[n] : score[n]));
			n++;
		}
	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++)
			if (is[i] && !is[k]) {
				pairs++;
				right += score[i] > score[k] ? 1 : score[i] == score[k] ? 0.5 : 0;
			}
	return (struct seen){ right / pairs, sum / n };
}

// One step of SGD with lr 1 by all scenes as one batch, or as several whose gradients add up.
static void training(const char *loader, const char *trainer)
{
	char json[600];
	double mean[C] = { 0 }, variance[C] = { 0 }, got[C], want[C], scale[C], w[C], b,
	       g[C + 1] = { 0 }, n = 0;
	struct seen s = { NAN, NAN };
	yoke_dataset *d = set_of(SCENES);
	snprintf(
		json, sizeof json,
		"{" NODES
		", \"losses\": [{\"type\": \"bce\", \"of\": \"b\"}], \"metrics\": [\"roc_auc\"], \"optimizer\": {\"name\": "
		"\"sgd\", \"lr\": 1}, \"trainer\": {\"max_epochs\": 1%s}}",
		trainer);
	yoke_pipeline *p = yoke_pipeline_new(json);
	const struct yoke_training o = { .size = sizeof o,
					 .train = d,
					 .valid = d,
					 .loader = loader,
					 .logged = on_line,
					 .arg = &s };
	ok(p && yoke_pipeline_fit(p, d, loader) == 0, "%s: fitted %s", loader, yoke_error());
	for (int k = 0; k < SCENES; k++)
		for (int q = 0; q < pixels_of(k); q++)
			for (int i = 0; i < C && mask[k][q]; i++) {
				n += i == 0;
				mean[i] += x[k][q * C + i];
			}
	for (int i = 0; i < C; i++)
		mean[i] /= n;
	for (int k = 0; k < SCENES; k++)
		for (int q = 0; q < pixels_of(k); q++)
			for (int i = 0; i < C && mask[k][q]; i++)
				variance[i] += pow(x[k][q * C + i] - mean[i], 2) / (n - 1);
	read_state(p, "a", "mean", got, C);
	near(got, mean, C, 1e-6, 1, "means");
	read_state(p, "a", "scale", got, C);
	for (int i = 0; i < C; i++)
		want[i] = scale[i] = 1 / sqrt(variance[i]);
	near(got, want, C, 1e-6, 1, "deviations");
	read_state(p, "b", "w", w, C);
	for (int k = 0; k < SCENES; k++)
		for (int q = 0; q < pixels_of(k); q++) {
			double y = 0;
			for (int i = 0; i < C; i++)
				y += w[i] * (x[k][q * C + i] - mean[i]) * scale[i];
			y = 1 / (1 + exp(-y)) - label[k][q];
			for (int i = 0; i <= C && mask[k][q]; i++)
				g[i] += y * (i < C ? (x[k][q * C + i] - mean[i]) * scale[i] : 1) /
					n;
		}
	ok(yoke_pipeline_train(p, &o) == 0, "%s%s: trained %s", loader, trainer, yoke_error());
	read_state(p, "b", "w", got, C);
	for (int i = 0; i < C; i++)
		want[i] = w[i] - g[i];
	near(got, want, C, 2e-5, 1, "the step");
	memcpy(w, got, sizeof w);
	read_state(p, "b", "b", &b, 1);
	const struct seen loops = by_loops(mean, scale, w, b);
	// some pairs of scores are closer than a rounding of f32; one swapped pair is 3e-5
	near(&s.auc, &loops.auc, 1, 2e-4, 1, "the area of the ROC curve");
	near(&s.loss, &loops.loss, 1, 1e-5, 1, "the loss");
	yoke_pipeline_free(p);
	yoke_dataset_free(d);
	yoke_error_clear();
}

struct stopping {
	int calls, at;
};

static int on_stop(void *arg)
{
	struct stopping *s = arg;
	return ++s->calls == s->at;
}

// Both phases, into the directory; `at`: they end after that many batches, and a second call
// continues.
static bool run_both(const char *folder, int at, double *w)
{
	static const char json[] =
		"{" NODES
		", \"losses\": [{\"type\": \"bce\", \"of\": \"b\"}], \"metrics\": [\"roc_auc\"], \"trainer\": "
		"{\"max_epochs\": 3, \"enable_checkpointing\": true}}";
	yoke_dataset *d = set_of(SCENES);
	int err = 1;
	mkdir(folder, 0777);
	for (int i = 0; i < 3 && err > 0; i++) {
		struct stopping s = { 0, i ? -1 : at };
		yoke_pipeline *p = yoke_pipeline_new(json);
		const struct yoke_fitting f = { .size = sizeof f,
						.set = d,
						.loader = "batch=2 workers=0",
						.folder = folder,
						.resume = i > 0,
						.stop = on_stop,
						.arg = &s };
		struct yoke_training t = { .size = sizeof t,
					   .train = d,
					   .valid = d,
					   .loader = "batch=2 workers=0",
					   .folder = folder,
					   .stop = on_stop,
					   .arg = &s };
		const int64_t done = i ? yoke_pipeline_resume(p, folder) : 0;
		t.resume = done > 0;
		err = done > 0 ? 0 : done < 0 ? (int)done : yoke_pipeline_fit_as(p, &f);
		if (!err)
			err = yoke_pipeline_train(p, &t);
		if (!err)
			read_state(p, "b", "w", w, C);
		yoke_pipeline_free(p);
	}
	yoke_dataset_free(d);
	return err == 0;
}

static void resuming(void)
{
	double whole[C] = { 1 }, cut[C] = { 2 };
	bool right = run_both("whole", -1, whole);
	for (int at = 1; at < 12 && right; at += 2) { // 3 batches of statistics, then of 3 epochs
		char folder[20];
		snprintf(folder, sizeof folder, "cut%d", at);
		right = run_both(folder, at, cut) && !memcmp(whole, cut, sizeof cut);
	}
	ok(right, "stopped in either phase and resumed, with the same bits %s", yoke_error());
	yoke_error_clear();
}

// ---- local_rx ----

// [lo, lo + width) of n around a position.
static int low(int at, int width, int n)
{
	int from = at - width / 2;
	from = from > n - width ? n - width : from;
	return from < 0 ? 0 : from;
}

static bool in(int at, int of, int width, int n)
{
	const int from = low(of, width, n);
	return at >= from && at < from + width;
}

struct local {
	int inner, outer, pixels;
	double eps;
	bool relative;
};

// The squared distance of x to the n pixels `of` with weights, by elimination with pivots.
static double distance(const struct local *o, const float *v, const float *const *of,
		       const double *weight, int n)
{
	double sum = 0, m[C] = { 0 }, s[C][C + 1] = { { 0 } }, trace = 0, z[C], y = 0;
	for (int a = 0; a < n; a++)
		sum += weight[a];
	for (int a = 0; a < n; a++)
		for (int k = 0; k < C; k++)
			m[k] += weight[a] * of[a][k] / sum;
	for (int a = 0; a < n; a++)
		for (int k = 0; k < C; k++)
			for (int q = 0; q < C; q++)
				s[k][q] += weight[a] * (of[a][k] - m[k]) * (of[a][q] - m[q]) /
					   (sum - 1);
	for (int k = 0; k < C; k++)
		trace += s[k][k];
	for (int k = 0; k < C; k++) {
		s[k][k] += o->relative && trace > 0 ? o->eps * trace / C : o->eps;
		s[k][C] = v[k] - m[k];
	}
	for (int k = 0; k < C; k++)
		for (int r = k + 1; r < C; r++)
			for (int q = C; q >= k; q--)
				s[r][q] -= s[r][k] / s[k][k] * s[k][q];
	for (int k = C - 1; k >= 0; k--) {
		z[k] = s[k][C];
		for (int q = k + 1; q < C; q++)
			z[k] -= s[k][q] * z[q];
		z[k] /= s[k][k];
		y += z[k] * (v[k] - m[k]);
	}
	return y;
}

static void local_by_loops(const struct local *o, const float *v, const float *weight, int lines,
			   int samples, double *to)
{
	static const float *of[MAX_PIXELS];
	static double its[MAX_PIXELS];
	for (int at = 0; at < lines * samples; at++) {
		const int i = at / samples, j = at % samples;
		double sum = 0;
		int n = 0;
		for (int q = 0; q < lines * samples; q++) {
			const int a = q / samples, b = q % samples;
			const double w = weight ? weight[q] : 1;
			if (w == 0 || !in(a, i, o->outer, lines) || !in(b, j, o->outer, samples) ||
			    (in(a, i, o->inner, lines) && in(b, j, o->inner, samples)))
				continue;
			of[n] = v + q * C;
			its[n++] = w;
			sum += w;
		}
		const bool none = (weight && weight[at] == 0) || sum <= 1 ||
				  n < (o->pixels ? o->pixels : C + 1);
		to[at] = none ? 0 : distance(o, v + at * C, of, its, n);
	}
}

static yoke_pipeline *local_pipeline(const struct local *o)
{
	char json[300];
	snprintf(
		json, sizeof json,
		"{\"nodes\": [{\"name\": \"a\", \"type\": \"local_rx\", \"inner\": %d, \"outer\": %d, \"eps\": %g, \"relative\": %d, "
		"\"pixels\": %d}]}",
		o->inner, o->outer, o->eps, o->relative, o->pixels);
	return yoke_pipeline_new(json);
}

static yoke_dataset *lone_set(int channels)
{
	const char *one[] = { "lone.npy" };
	write_cube(one[0], 3, 3, channels, "f32", x[0]);
	return yoke_dataset_cubes(1, one, NULL, NULL);
}

// Results of the public call, of all scenes, against the loops.
static void local_scenes(const struct local *o)
{
	static float got[MAX_PIXELS];
	static double mine[MAX_PIXELS], want[MAX_PIXELS];
	yoke_pipeline *p = local_pipeline(o);
	yoke_dataset *d = lone_set(C);
	ok(p && yoke_pipeline_fit(p, d, NULL) == 0,
	   "inner %d, outer %d, eps %g, relative %d, pixels %d %s", o->inner, o->outer, o->eps,
	   o->relative, o->pixels, yoke_error());
	for (int k = 0; k < SCENES; k++) {
		char what[40];
		const int n = pixels_of(k);
		yoke_scope *s = yoke_scope_begin("scene");
		yoke_tensor *y = yoke_pipeline_apply(
			p, NULL, yoke_from(yoke_f32, 3, DIMS(size[k][0], size[k][1], C), x[k]));
		memset(got, 0xff, sizeof got);
		if (!y || yoke_read(y, got, (size_t)n * sizeof *got) < 0)
			diag("%s", yoke_error());
		yoke_scope_end(s);
		local_by_loops(o, x[k], NULL, size[k][0], size[k][1], want);
		for (int i = 0; i < n; i++)
			mine[i] = got[i];
		snprintf(what, sizeof what, "scene of %d x %d", size[k][0], size[k][1]);
		near(mine, want, (size_t)n, 1e-6, 1, what);
	}
	yoke_pipeline_free(p);
	yoke_dataset_free(d);
	yoke_error_clear();
}

// The op itself, of scenes of different sizes in one padded batch, with weights.
static void local_batch(const struct local *o)
{
	static float v[SCENES][MAX_L][MAX_S][C], w[SCENES][MAX_L][MAX_S], got[SCENES][MAX_L][MAX_S],
		own[MAX_PIXELS];
	static double mine[MAX_PIXELS], want[MAX_PIXELS];
	int32_t extent[SCENES][2];
	memset(v, 0, sizeof v);
	memset(w, 0, sizeof w);
	memset(got, 0xff, sizeof got);
	for (int k = 0; k < SCENES; k++)
		for (int q = 0; q < pixels_of(k); q++) {
			const int i = q / size[k][1], j = q % size[k][1];
			extent[k][0] = size[k][0];
			extent[k][1] = size[k][1];
			memcpy(v[k][i][j], x[k] + q * C, C * sizeof(float));
			// weights other than 1 are counts
			w[k][i][j] = mask[k][q] ? (float)(1 + (q % 3 == 0)) : 0;
			if (!mask[k][q])
				v[k][i][j][1] = NAN; // does not count
		}
	const int op = yoke_op_find("fit.local_rx");
	const union yoke_attr attr[] = { { .i = o->inner },
					 { .i = o->outer },
					 { .f = o->eps },
					 { .i = o->relative },
					 { .i = o->pixels } };
	yoke_scope *s = yoke_scope_begin("batch");
	yoke_tensor *in[] = { yoke_from(yoke_f32, 4, DIMS(SCENES, MAX_L, MAX_S, C), v),
			      yoke_from(yoke_f32, 3, DIMS(SCENES, MAX_L, MAX_S), w),
			      yoke_from(yoke_i32, 2, DIMS(SCENES, 2), extent) },
		    *y;
	ok(op > 0 && yoke_op_call(op, 3, in, 5, attr, 1, &y) == 0 &&
		   yoke_read(y, got, sizeof got) == 0,
	   "a padded batch with weights %s", yoke_error());
	yoke_scope_end(s);
	for (int k = 0; k < SCENES; k++) {
		char what[40];
		bool rest = true;
		for (int q = 0; q < pixels_of(k); q++) {
			own[q] = w[k][q / size[k][1]][q % size[k][1]];
			mine[q] = got[k][q / size[k][1]][q % size[k][1]];
		}
		for (int i = 0; i < MAX_L; i++)
			for (int j = 0; j < MAX_S; j++)
				rest &= (i < size[k][0] && j < size[k][1]) || got[k][i][j] == 0;
		local_by_loops(o, x[k], own, size[k][0], size[k][1], want);
		snprintf(what, sizeof what, "scene %d of the batch", k);
		near(mine, want, (size_t)pixels_of(k), 1e-6, 1, what);
		ok(rest, "results outside of a scene are zeros");
	}
	yoke_error_clear();
}

// The gradient: yoke_op_check compares it with differences.
static void local_gradient(const struct local *o)
{
	enum { L = 7, S = 8 };
	float v[2][L][S][C], w[2][L][S];
	const int32_t extent[2][2] = { { L, S }, { L - 2, S - 1 } };
	for (int i = 0; i < 2 * L * S; i++) {
		(&w[0][0][0])[i] = rnd_int(0, 6) ? 1 : 0;
		for (int k = 0; k < C; k++)
			(&v[0][0][0][0])[i * C + k] = (float)rnd_real(-1, 1);
	}
	const union yoke_attr attr[] = { { .i = o->inner },
					 { .i = o->outer },
					 { .f = o->eps },
					 { .i = o->relative },
					 { .i = o->pixels } };
	yoke_scope *s = yoke_scope_begin("gradient");
	yoke_tensor *in[] = { yoke_from(yoke_f32, 4, DIMS(2, L, S, C), v), YOKE_NONE,
			      yoke_from(yoke_i32, 2, DIMS(2, 2), extent) };
	ok(yoke_op_check(yoke_op_find("fit.local_rx"), 3, in, 5, attr, 0) == 0,
	   "gradient: inner %d, outer %d, eps %g, relative %d %s", o->inner, o->outer, o->eps,
	   o->relative, yoke_error());
	yoke_error_clear();
	// with weights by a sum of the scores, along one direction at a time
	yoke_tensor *variable = yoke_variable("x", yoke_f32, 4, DIMS(2, L, S, C)), *y, *g;
	static float got[2 * L * S * C], score[2][2 * L * S];
	double worst = 0, max = 0;
	in[0] = variable;
	in[1] = yoke_from(yoke_f32, 3, DIMS(2, L, S), w);
	bool right = !yoke_put(variable, v, sizeof v) &&
		     !yoke_op_call(yoke_op_find("fit.local_rx"), 3, in, 5, attr, 1, &y) &&
		     !yoke_grad(yoke_sum(y, YOKE_ALL), 1, &variable, &g) &&
		     !yoke_read(g, got, sizeof got);
	for (int t = 0; t < 40 && right; t++) {
		float *at = &v[0][0][0][0] + rnd_int(0, 2 * L * S * C - 1);
		const float was = *at;
		double difference = 0;
		for (int side = 0; side < 2; side++) {
			*at = was + (side ? 1e-3f : -1e-3f);
			right &= !yoke_put(variable, v, sizeof v) &&
				 !yoke_op_call(yoke_op_find("fit.local_rx"), 3, in, 5, attr, 1,
					       &y) &&
				 !yoke_read(y, score[side], sizeof score[side]);
		}
		for (int q = 0; q < 2 * L * S; q++)
			difference += ((double)score[1][q] - (double)score[0][q]) / 2e-3;
		*at = was;
		const double its = got[at - &v[0][0][0][0]];
		worst = fmax(worst, fabs(its - difference));
		max = fmax(max, fabs(difference));
	}
	ok(right && max > 0 && worst < 5e-3 * max, "with weights: off by %.2g of %.2g %s", worst,
	   max, yoke_error());
	yoke_free(variable);
	yoke_scope_end(s);
	yoke_error_clear();
}

// A node that is trained before it, and one that is fitted after it, with scenes of different
// sizes.
static void local_training(void)
{
	static const char json[] =
		"{\"nodes\": [{\"name\": \"a\", \"type\": \"pca\", \"k\": 2, \"train\": true}, {\"name\": \"b\", \"type\": \"local_rx\", "
		"\"inner\": 1, \"outer\": 5}, {\"name\": \"c\", \"type\": \"logit\", \"train\": true}], \"losses\": [{\"type\": \"bce\", \"of\": "
		"\"c\"}], \"metrics\": [\"roc_auc\"], \"optimizer\": {\"name\": \"sgd\", \"lr\": 0.01}, \"trainer\": {\"max_epochs\": 2}}";
	double w[3][2 * C] = { { 0 } }, threshold[2] = { 0 }, moved = 0;
	struct seen s[2] = { { NAN, NAN }, { NAN, NAN } };
	bool right = true;
	// scenes one at a time, or all in a padded batch, add up to the same step
	for (int k = 0; k < 2; k++) {
		yoke_dataset *d = set_of(SCENES);
		char text[sizeof json + 60];
		snprintf(text, sizeof text, "%.*s, \"accumulate_grad_batches\": %d}}",
			 (int)sizeof json - 3, json, k ? 1 : SCENES);
		yoke_pipeline *p = yoke_pipeline_new(text);
		const char *loader = k ? "batch=5" : "batch=1";
		const struct yoke_training o = { .size = sizeof o,
						 .train = d,
						 .valid = d,
						 .loader = loader,
						 .logged = on_line,
						 .arg = &s[k] };
		right &= p && yoke_pipeline_fit(p, d, loader) == 0;
		read_state(p, "c", "threshold", threshold + k, 1);
		read_state(p, "a", "w", w[2], 2 * C);
		right &= yoke_pipeline_train(p, &o) == 0;
		read_state(p, "a", "w", w[k], 2 * C);
		yoke_pipeline_free(p);
		yoke_dataset_free(d);
	}
	for (int i = 0; i < 2 * C; i++)
		moved = fmax(moved, fabs(w[0][i] - w[2][i]));
	ok(right && moved > 1e-3, "trained through local_rx, by %.2g %s", moved, yoke_error());
	near(threshold, threshold + 1, 1, 1e-6, 1, "fitted equally");
	near(w[0], w[1], 2 * C, 1e-4, 1, "trained equally");
	near(&s[0].auc, &s[1].auc, 1, 1e-6, 1, "with the same area");
	yoke_error_clear();
}

static void refuses(const char *rest, int channels, int rank, const char *word)
{
	char json[300];
	snprintf(json, sizeof json, "{\"nodes\": [{\"name\": \"a\", \"type\": \"local_rx\"%s}]}",
		 rest);
	yoke_pipeline *p = yoke_pipeline_new(json);
	yoke_dataset *d = lone_set(channels);
	int err = p ? yoke_pipeline_fit(p, d, NULL) : yoke_error_code();
	if (!err) {
		const int64_t dims[3] = { 3, 3, channels };
		yoke_tensor *y = yoke_pipeline_apply(
			p, NULL, yoke_from(yoke_f32, rank, dims + 3 - rank, x[0]));
		err = y ? 0 : yoke_error_code();
	}
	ok(err == YOKE_EINVAL && strstr(yoke_error(), word), "%s, %d channels, rank %d: %s", rest,
	   channels, rank, yoke_error());
	yoke_error_clear();
	yoke_pipeline_free(p);
	yoke_dataset_free(d);
}

// Without eps the covariance of a constant ring has no inverse.
static void singular(void)
{
	static const float flat[6 * 6 * C] = { 1 };
	yoke_pipeline *p = local_pipeline(&(struct local){ 1, 3, 0, 0, true });
	yoke_dataset *d = lone_set(C);
	float got[36];
	int err = yoke_pipeline_fit(p, d, NULL);
	yoke_tensor *y =
		err ? NULL :
		      yoke_pipeline_apply(p, NULL, yoke_from(yoke_f32, 3, DIMS(6, 6, C), flat));
	err = y ? yoke_read(y, got, sizeof got) : yoke_error_code();
	ok(err == YOKE_ERANGE && strstr(yoke_error(), "line 0, sample 0"),
	   "the error names the pixel: %s", yoke_error());
	yoke_error_clear();
	yoke_pipeline_free(p);
	yoke_dataset_free(d);
}

// The eps that the error recommends is sufficient, whatever the magnitude of the numbers.
static void advice(bool relative)
{
	static float v[6 * 6 * C];
	struct local o = { 1, 3, 0, 0, relative };
	for (int i = 0; i < 6 * 6 * C; i++) // a covariance of rank 1, without roundings
		v[i] = (float)(1 << 17) * (float)(1 << i % C) * (float)(i / C * 5 % 11);
	for (int again = 0; again < 2; again++) {
		yoke_pipeline *p = local_pipeline(&o);
		yoke_dataset *d = lone_set(C);
		float got[36];
		int err = yoke_pipeline_fit(p, d, NULL);
		yoke_scope *s = yoke_scope_begin("advice");
		yoke_tensor *y = err ? NULL :
				       yoke_pipeline_apply(
					       p, NULL, yoke_from(yoke_f32, 3, DIMS(6, 6, C), v));
		err = y ? yoke_read(y, got, sizeof got) : yoke_error_code();
		ok(err == (again ? 0 : YOKE_ERANGE), "relative %d, eps %g: %s", o.relative, o.eps,
		   yoke_error());
		const char *eps = strstr(yoke_error(), "eps=");
		o.eps = eps ? strtod(eps + 4, NULL) : o.eps;
		o.relative |= strstr(yoke_error(), "relative=1") != NULL;
		yoke_error_clear();
		yoke_scope_end(s);
		yoke_pipeline_free(p);
		yoke_dataset_free(d);
	}
}

// An error of the thread survives the first use of local_rx, which registers its ops.
static void sticky_error(void)
{
	yoke_pipeline *p = local_pipeline(&(struct local){ 1, 3, 0, 1e-11, true });
	yoke_dataset *d = lone_set(C);
	float got[9];
	int err = yoke_pipeline_fit(p, d, NULL);
	yoke_scope *s = yoke_scope_begin("sticky");
	yoke_op_find("sought");
	yoke_tensor *y = yoke_pipeline_apply(p, NULL, yoke_from(yoke_f32, 3, DIMS(3, 3, C), x[0]));
	ok(!err && yoke_error_code() == YOKE_ENOENT && strstr(yoke_error(), "sought"),
	   "an earlier error is kept: %s", yoke_error());
	yoke_error_clear();
	ok(y && yoke_read(y, got, sizeof got) == 0, "and scores are computed %s", yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
	yoke_pipeline_free(p);
	yoke_dataset_free(d);
}

// ---- contexts, fields, nodes ----

// Fitting and training with scenes of different sizes leaves the caller's context as it was.
static void context_kept(void)
{
	struct yoke_context *ctx = yk_current();
	for (int vary = 0; vary < 2; vary++) {
		yoke_dataset *d = set_of(SCENES);
		yoke_pipeline *p = yoke_pipeline_new(
			"{\"nodes\": [{\"name\": \"a\", \"type\": \"linear\", \"k\": 1, \"train\": true}], \"losses\": "
			"[{\"type\": \"bce\", \"of\": \"a\"}], \"trainer\": {\"max_epochs\": 1}}");
		const struct yoke_training o = { .size = sizeof o, .train = d };
		ctx->mode.shapes_vary = vary;
		const int err = yoke_pipeline_fit(p, d, NULL);
		ok(!err && ctx->mode.shapes_vary == vary,
		   "fitted: whether plans may vary stays %d %s", vary, yoke_error());
		const int trained = yoke_pipeline_train(p, &o);
		ok(!trained && ctx->mode.shapes_vary == vary,
		   "trained: whether plans may vary stays %d %s", vary, yoke_error());
		yoke_error_clear();
		yoke_pipeline_free(p);
		yoke_dataset_free(d);
	}
	ctx->mode.shapes_vary = false;
}

static int no_item(void *arg, int64_t n, struct yoke_item *const *items)
{
	(void)arg, (void)n, (void)items;
	return YOKE_EIO;
}

// A field "size" holds the scenes' extents only if it is i32 [2] and x is scenes whose size varies.
static void size_fields(void)
{
	static const struct {
		const char *what;
		int extent, x_rank;
		int64_t lines, samples; // multiple
		int dtype, rank;
		int64_t dims[2];
	} set[] = {
		{ "scenes of different sizes", 1, 3, 1, 1, yoke_i32, 1, { 2 } },
		{ "scenes of different lines", 1, 3, 8, 0, yoke_i32, 1, { 2 } },
		{ "scenes of one size", -1, 3, 0, 0, yoke_i32, 1, { 2 } },
		{ "vectors", -1, 1, 1, 0, yoke_i32, 1, { 2 } },
		{ "a number size", -1, 3, 1, 1, yoke_i32, 0, { 0 } },
		{ "three numbers size", -1, 3, 1, 1, yoke_i32, 1, { 3 } },
		{ "a matrix size", -1, 3, 1, 1, yoke_i32, 2, { 2, 2 } },
		{ "size of f32", -1, 3, 1, 1, yoke_f32, 1, { 2 } },
	};
	for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
		const struct yoke_field field[2] = {
			{ .size = sizeof *field,
			  .name = "x",
			  .dtype = yoke_f32,
			  .rank = set[i].x_rank,
			  .dims = { 9, 7, C },
			  .multiple = { set[i].lines, set[i].samples } },
			{ .size = sizeof *field,
			  .name = "size",
			  .dtype = set[i].dtype,
			  .rank = set[i].rank,
			  .dims = { set[i].dims[0], set[i].dims[1] } },
		};
		const struct yoke_dataset_options o = { .size = sizeof o,
							.name = "sizes",
							.count = 3,
							.fields = 2,
							.field = field,
							.read = no_item };
		yoke_dataset *d = yoke_dataset_new(&o);
		struct yk_set_fields f = { .extent = -2 };
		int64_t channels;
		const int err = d ? yk_set_fields(d, "fields", &f, &channels) : yoke_error_code();
		ok(!err && f.extent == set[i].extent, "%s: the extents are field %d, want %d %s",
		   set[i].what, f.extent, set[i].extent, yoke_error());
		yoke_error_clear();
		yoke_dataset_free(d);
	}
}

// Each node takes the two before it: what a node depends on is found in one pass.
static void many_inputs(void)
{
	for (int spatial = 0; spatial < 2; spatial++) {
		char json[8000];
		size_t n = (size_t)snprintf(
			json, sizeof json,
			"{\"nodes\": [{\"name\": \"n0\", \"type\": \"%s\"}, {\"name\": \"n1\", \"type\": "
			"\"sigmoid\"}",
			spatial ? "local_rx" : "sigmoid");
		for (int i = 2; i < YK_NODES; i++)
			n += (size_t)snprintf(
				json + n, sizeof json - n,
				", {\"name\": \"n%d\", \"type\": \"linear\", \"k\": 1, \"in\": "
				"[\"n%d\", \"n%d\"]}",
				i, i - 1, i - 2);
		snprintf(json + n, sizeof json - n, "]}");
		yoke_pipeline *p = yoke_pipeline_new(json);
		ok(p && yk_node_spatial(p, YK_NODES - 1) == spatial && !yk_node_spatial(p, -1),
		   "%d nodes of two inputs: spatial %d %s", YK_NODES, spatial, yoke_error());
		yoke_error_clear();
		yoke_pipeline_free(p);
	}
}

// A pipeline whose states do not tell how many channels the stream has is saved and loaded.
static void saved(void)
{
	yoke_pipeline *p = local_pipeline(&(struct local){ 1, 3, 0, 1e-11, true }),
		      *q = local_pipeline(&(struct local){ 1, 3, 0, 1e-11, true });
	yoke_dataset *d = lone_set(C);
	float a[9] = { 1 }, b[9] = { 2 };
	int err = yoke_pipeline_fit(p, d, NULL);
	err = err ? err : yoke_pipeline_save(p, "local.safetensors");
	err = err ? err : yoke_pipeline_load(q, "local.safetensors");
	yoke_scope *s = yoke_scope_begin("saved");
	for (int k = 0; k < 2 && !err; k++) {
		yoke_tensor *y = yoke_pipeline_apply(k ? q : p, NULL,
						     yoke_from(yoke_f32, 3, DIMS(3, 3, C), x[0]));
		err = y ? yoke_read(y, k ? b : a, sizeof a) : yoke_error_code();
	}
	ok(!err && !memcmp(a, b, sizeof a), "saved and loaded %s", yoke_error());
	yoke_tensor *y =
		yoke_pipeline_apply(q, NULL, yoke_from(yoke_f32, 3, DIMS(3, 3, C - 1), x[0]));
	ok(!y && yoke_error_code() == YOKE_ESHAPE, "the number of channels is known: %s",
	   yoke_error());
	yoke_scope_end(s);
	yoke_error_clear();
	yoke_pipeline_free(p);
	yoke_pipeline_free(q);
	yoke_dataset_free(d);
}

int main(void)
{
	static const struct local o[] = { { 1, 3, 0, 1e-11, true },
					  { 3, 7, 0, 0, true },
					  { 5, 9, 0, 1e-2, true },
					  { 3, 5, 2, 1e-3, false },
					  { 1, 21, 0, 1e-11, true } };
	tap_seed();
	tap_folder();
	fill();
	sticky_error();
	sets();
	context_kept();
	size_fields();
	many_inputs();
	training("batch=5 workers=0", "");
	training("batch=2", ", \"accumulate_grad_batches\": 3");
	training("batch=1", ", \"accumulate_grad_batches\": 5");
	resuming();
	for (size_t i = 0; i < sizeof o / sizeof *o; i++) {
		local_scenes(&o[i]);
		local_batch(&o[i]);
	}
	local_gradient(&(struct local){ 1, 5, 0, 1e-11, true });
	local_gradient(&(struct local){ 3, 7, 0, 0.2, true });
	local_gradient(&(struct local){ 1, 3, 0, 0.1, false });
	local_training();
	singular();
	advice(false);
	advice(true);
	saved();
	refuses(", \"inner\": 2", C, 3, "odd");
	refuses(", \"inner\": 7, \"outer\": 7", C, 3, "less than outer");
	refuses(", \"inner\": 3, \"outer\": 5", 16, 3, "16 pixels");
	refuses(", \"inner\": 1, \"outer\": 3, \"pixels\": 9", C, 3, "8 pixels");
	refuses("", C, 2, "scenes");
	return done();
}
