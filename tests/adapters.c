// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters: their gradients are those of finite differences and of the dense matrix W +
// alpha/r B A; a quantized base gives the gradients of its dequantized form; runs with adapters
// resume with the same bits, store no frozen weights, and refuse another base.
#include "config.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "formats/checkpoint.h"
#include "models/adapter.h"
#include "models/pretrained.h"
#include "nn/lora.h"
#include "nn/module.h"
#include "tap.h"
#include "../tests/models/recorded_files.h"
#include "train/trained.h"
#include "train/validate.h"
#include "yoke-quant.h"

enum {
	MODELS = sizeof recorded / sizeof *recorded,
	RANK = 3,
	MAX_LAYERS = 64,
	ROWS = 2,
	WIDTH = 7
};
static const double alpha = 5;

static const struct recorded *named(const char *name)
{
	for (int i = 0; i < MODELS; i++)
		if (!strcmp(recorded[i].name, name))
			return &recorded[i];
	return NULL;
}

static const char *write_model(const struct recorded *r)
{
	struct tensors all = tensors_of(r);
	const char *path = write_folder(r->name, r->config, &all);
	tensors_free(&all);
	return path;
}

// ---- networks ----

// All matrices of the blocks, but for every third.
static size_t layers_of(const struct yk_network *n, struct yk_lora_layer *to)
{
	const struct yk_parameters *p = yk_network_base(n);
	size_t count = 0;
	for (int i = 0; i < p->count; i++) {
		const char *name = p->row[i].name;
		char layer[48];
		snprintf(layer, sizeof layer, "%.*s", (int)(strrchr(name, '.') - name), name);
		if (strncmp(name, "layer", 5) || !yk_ends_with(name, ".weight") ||
		    p->row[i].rank != 2 || i % 3 == 0)
			continue;
		to[count] = (struct yk_lora_layer){ .rank = RANK, .alpha = alpha };
		strcpy(to[count++].name, layer);
	}
	return count;
}

// Values of A and B that depend on the parameter's index only.
static void set_adapters(struct yk_network *n, double size)
{
	for (int i = 0; i < n->params.count; i++) {
		const size_t count = (size_t)yoke_count(n->params.var[i]);
		float *host = malloc(count * sizeof *host);
		for (size_t k = 0; k < count; k++)
			host[k] =
				(float)(size * ((mix(k, (uint32_t)i * 7919) >> 8) / 8388608.0 - 1));
		yoke_put(n->params.var[i], host, count * sizeof *host);
		free(host);
	}
}

static struct yk_network *adapted(const char *path, const struct yoke_model_options *o)
{
	struct yk_pretrained p;
	struct yk_lora_layer l[MAX_LAYERS];
	if (yk_pretrained_open(path, o, &p) < 0)
		return NULL;
	if (yk_network_adapt(p.net, layers_of(p.net, l), l) == 0) {
		set_adapters(p.net, 0.3);
		return p.net;
	}
	yk_network_free(p.net);
	return NULL;
}

static yoke_tensor *loss_of(const struct yk_network *n)
{
	int32_t ids[ROWS * WIDTH];
	for (int i = 0; i < ROWS * WIDTH; i++)
		ids[i] = recorded_ids[i % RECORDED_TOKENS];
	return yk_windows_loss(n, yoke_from(yoke_i32, 2, (int64_t[]){ ROWS, WIDTH }, ids), 0);
}

static double loss_now(const struct yk_network *n)
{
	float loss = NAN;
	yoke_scope *s = yoke_scope_begin("loss");
	yoke_read(loss_of(n), &loss, sizeof loss);
	yoke_scope_end(s);
	return (double)loss;
}

// The gradients of all parameters, one after another, for the caller to free.
static float *gradients(const struct yk_network *n, size_t *count)
{
	const struct yk_parameters *p = &n->params;
	yoke_tensor **g = calloc((size_t)p->count, sizeof *g);
	size_t all = 0;
	for (int i = 0; i < p->count; i++)
		all += (size_t)yoke_count(p->var[i]);
	float *host = malloc(all * sizeof *host);
	for (size_t i = 0; i < all; i++)
		host[i] = NAN;
	yoke_scope *s = yoke_scope_begin("gradients");
	size_t at = 0;
	if (yoke_grad(loss_of(n), p->count, p->var, g) == 0 && yoke_eval(p->count, g) == 0)
		for (int i = 0; i < p->count; i++) {
			yoke_read(g[i], host + at, (size_t)yoke_bytes(g[i]));
			at += (size_t)yoke_count(g[i]);
		}
	yoke_scope_end(s);
	free(g);
	*count = all;
	return host;
}

// ---- gradients ----

static void check_differences(const struct recorded *r, struct yk_network *n, const float *g)
{
	const double step = 0.02;
	double worst = 0, largest = 0;
	size_t at = 0;
	for (int i = 0; i < n->params.count; i++) {
		const size_t count = (size_t)yoke_count(n->params.var[i]),
			     k = mix((uint64_t)i, 77) % count;
		float *host = malloc(count * sizeof *host);
		double loss[2];
		yoke_read(n->params.var[i], host, count * sizeof *host);
		const float was = host[k];
		for (int side = 0; side < 2; side++) {
			host[k] = was + (float)(side ? step : -step);
			yoke_put(n->params.var[i], host, count * sizeof *host);
			loss[side] = loss_now(n);
		}
		host[k] = was;
		yoke_put(n->params.var[i], host, count * sizeof *host);
		free(host);
		const double d = (loss[1] - loss[0]) / (2 * step);
		worst = fmax(worst, fabs(d - (double)g[at + k]));
		largest = fmax(largest, fabs(d));
		at += count;
	}
	ok(worst < 0.02 * largest + 2e-4,
	   "%s: gradients are those of finite differences, got a difference of %g of %g", r->name,
	   worst, largest);
}

// to [rows,columns] += scale b a
static void add_product(float *to, const float *a, const float *b, int64_t rows, int64_t rank,
			int64_t columns, double scale)
{
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < columns; j++) {
			double sum = 0;
			for (int64_t k = 0; k < rank; k++)
				sum += (double)b[i * rank + k] * (double)a[k * columns + j];
			to[i * columns + j] = (float)((double)to[i * columns + j] + scale * sum);
		}
}

// Index of the weight of adapter i in the dense network.
static int dense_index(const struct yk_network *n, size_t i, const struct yk_network *dense)
{
	const char *name = n->adapter[i].as.name;
	const size_t layer = strlen(name);
	for (int k = 0; k < dense->params.count; k++)
		if (!strncmp(dense->params.row[k].name, name, layer) &&
		    !strcmp(dense->params.row[k].name + layer, ".weight"))
			return k;
	return -1;
}

static float *host_of(yoke_tensor *t)
{
	float *host = malloc((size_t)yoke_bytes(t));
	yoke_read(t, host, (size_t)yoke_bytes(t));
	return host;
}

// A network with W + scale B A: the same loss, and gradients scale B' G and scale G A' for its
// gradient G.
static void check_dense(const struct recorded *r, const char *path, const struct yk_network *n,
			const float *g)
{
	struct yk_pretrained p;
	size_t count, at = 0;
	double worst = 0, largest = 0;
	if (!ok(yk_pretrained_open(
			path,
			&(struct yoke_model_options){ .size = sizeof(struct yoke_model_options),
						      .dtype = "f32" },
			&p) == 0,
		"%s: opens as f32 %s", r->name, yoke_error()))
		return;
	const double plain = loss_now(p.net);
	for (size_t i = 0; i < n->adapters; i++) {
		const struct yk_network_adapter *l = &n->adapter[i];
		yoke_tensor *a = n->params.var[l->a], *b = n->params.var[l->a + 1],
			    *w = p.net->params.var[dense_index(n, i, p.net)];
		float *x[] = { host_of(a), host_of(b), host_of(w) };
		add_product(x[2], x[0], x[1], yoke_dim(w, 0), RANK, yoke_dim(w, 1), alpha / RANK);
		yoke_put(w, x[2], (size_t)yoke_bytes(w));
		for (int k = 0; k < 3; k++)
			free(x[k]);
	}
	const double got = loss_now(n), want = loss_now(p.net);
	ok(fabs(got - want) < 1e-5 * fabs(want) && fabs(plain - want) > 1e-3,
	   "%s: the loss is that of a dense network, got %.8g, wanted %.8g (without adapters %.8g)",
	   r->name, got, want, plain);
	float *dense = gradients(p.net, &count);
	for (size_t i = 0; i < n->adapters; i++) {
		const struct yk_network_adapter *l = &n->adapter[i];
		yoke_tensor *a = n->params.var[l->a], *b = n->params.var[l->a + 1];
		const int64_t in = yoke_dim(a, 1), out = yoke_dim(b, 0);
		float *x[] = { host_of(a), host_of(b) };
		size_t from = 0;
		for (int k = 0; k < dense_index(n, i, p.net); k++)
			from += (size_t)yoke_count(p.net->params.var[k]);
		const float *gw = dense + from, *ga = g + at, *gb = ga + RANK * in;
		for (int64_t k = 0; k < RANK; k++) {
			for (int64_t j = 0; j < in; j++) {
				double sum = 0;
				for (int64_t o = 0; o < out; o++)
					sum += (double)x[1][o * RANK + k] * (double)gw[o * in + j];
				worst = fmax(worst,
					     fabs(alpha / RANK * sum - (double)ga[k * in + j]));
				largest = fmax(largest, fabs(alpha / RANK * sum));
			}
			for (int64_t o = 0; o < out; o++) {
				double sum = 0;
				for (int64_t j = 0; j < in; j++)
					sum += (double)gw[o * in + j] * (double)x[0][k * in + j];
				worst = fmax(worst,
					     fabs(alpha / RANK * sum - (double)gb[o * RANK + k]));
			}
		}
		at += (size_t)(RANK * (in + out));
		free(x[0]);
		free(x[1]);
	}
	ok(worst < 1e-5 * largest,
	   "%s: gradients are those of a dense network, got a difference of %g of %g", r->name,
	   worst, largest);
	free(dense);
	yk_network_free(p.net);
}

static void test_gradients(const struct recorded *r)
{
	const char *path = write_model(r);
	struct yk_network *n = adapted(path, NULL);
	size_t count;
	if (!ok(n && n->adapters > 3, "%s: has %zu adapters %s", r->name, n ? n->adapters : 0,
		yoke_error()))
		return;
	float *g = gradients(n, &count);
	check_differences(r, n, g);
	check_dense(r, path, n, g);
	free(g);
	yk_network_free(n);
	yoke_error_clear();
}

// ---- a quantized base ----

// Replaces a network's frozen weights by f32 with their values.
static int dequantize(struct yk_network *n)
{
	struct yk_parameters *p = &n->frozen;
	int e = 0;
	for (int i = 0; i < p->count && e == 0; i++) {
		if (p->row[i].format == YOKE_QUANT_F32)
			continue;
		yoke_scope *s = yoke_scope_begin("dequantize");
		float *host = host_of(
			yoke_dequant(p->var[i], p->row[i].format, p->row[i].dims[1], yoke_f32));
		yoke_scope_end(s);
		yoke_tensor *w = yoke_variable(p->row[i].name, yoke_f32, 2, p->row[i].dims);
		e = yoke_put(w, host, (size_t)yoke_bytes(w));
		free(host);
		yoke_free(p->var[i]);
		if (e == 0)
			e = yk_parameters_set(p, i, w, YOKE_QUANT_F32);
	}
	return e;
}

static void test_quantized(const struct recorded *r, const char *quant)
{
	const struct yoke_model_options o = { .size = sizeof o, .quant = quant };
	const char *path = write_model(r);
	struct yk_network *n[2] = { adapted(path, &o), adapted(path, &o) };
	size_t count;
	int quantized = 0;
	if (!ok(n[0] && n[1], "%s: opens as %s %s", r->name, quant, yoke_error()))
		return;
	for (int i = 0; i < n[0]->frozen.count; i++)
		quantized += n[0]->frozen.row[i].format != YOKE_QUANT_F32;
	ok(dequantize(n[1]) == 0 && quantized > 8, "%s: has %d quantized matrices %s", r->name,
	   quantized, yoke_error());
	float *g[] = { gradients(n[0], &count), gradients(n[1], &count) };
	double worst = 0, largest = 0;
	for (size_t i = 0; i < count; i++) {
		const double d = fabs((double)g[0][i] - (double)g[1][i]);
		worst = d <= worst ? worst : d; // also for NaN
		largest = fmax(largest, fabs((double)g[1][i]));
	}
	ok(worst < 1e-3 * largest,
	   "%s: gradients with %s are those of the dequantized base, got a difference of %g of %g",
	   r->name, quant, worst, largest);
	ok(fabs(loss_now(n[0]) - loss_now(n[1])) < 1e-3, "%s: so is the loss", r->name);
	for (int i = 0; i < 2; i++) {
		free(g[i]);
		yk_network_free(n[i]);
	}
	yoke_error_clear();
}

// ---- runs ----

// The largest difference between the adapters of two runs; negative: they cannot be opened, or
// differ in number.
static double distance(const char *a, const char *b)
{
	struct yk_trained m[2] = { 0 };
	double sum = yk_trained_open(a, NULL, &m[0]) == 0 && yk_trained_open(b, NULL, &m[1]) == 0 ?
			     0 :
			     -1;
	if (sum == 0 && (!m[0].net->adapters || m[0].net->params.count != m[1].net->params.count))
		sum = -2;
	for (int i = 0; sum >= 0 && i < m[0].net->params.count; i++) {
		float *x[] = { host_of(m[0].net->params.var[i]), host_of(m[1].net->params.var[i]) };
		for (int64_t k = 0; k < yoke_count(m[0].net->params.var[i]); k++)
			sum = fmax(sum, fabs((double)x[0][k] - (double)x[1][k]));
		free(x[0]);
		free(x[1]);
	}
	yk_trained_close(&m[0]);
	yk_trained_close(&m[1]);
	return sum;
}

static int64_t size_of(const char *run, const char *name)
{
	char path[400];
	struct stat st;
	snprintf(path, sizeof path, "%s/%s", run, name);
	return stat(path, &st) == 0 ? (int64_t)st.st_size : -1;
}

// Trains four steps at once and in two runs, with further keys; both must end with the same bits.
static void test_resume(const char *init, const char *what, const char *keys)
{
	char once[300], twice[300], name[2][64];
	snprintf(name[0], sizeof *name, "%s-once", what);
	snprintf(name[1], sizeof *name, "%s-twice", what);
	snprintf(once, sizeof once, "%s/%s", folder, name[0]);
	snprintf(twice, sizeof twice, "%s/%s", folder, name[1]);
	int e = train(init, name[0], 4, keys);
	ok(e == 0, "%s: trains %s", what, yoke_error());
	yoke_error_clear();
	e = train(init, name[1], 2, keys);
	if (e == 0)
		e = train(init, name[1], 4, keys);
	ok(e == 0, "%s: resumes %s", what, yoke_error());
	yoke_error_clear();
	const double d = distance(once, twice);
	ok(d == 0,
	   "%s: a resumed run has the adapters of an uninterrupted one, got a difference of %g %s",
	   what, d, yoke_error());
	yoke_error_clear();
}

static void test_runs(const struct recorded *r)
{
	char init[300], run[300];
	struct yk_trained t = { 0 };
	struct yk_network *n;
	snprintf(init, sizeof init, "%s", write_model(r));
	snprintf(run, sizeof run, "%s/plain-once", folder);
	test_resume(init, "plain", "lora=2 accumulate=2");
	int e = yk_trained_open(run, NULL, &t);
	ok(e == 0, "the run opens %s", yoke_error());
	yoke_error_clear();
	if (!(n = t.net))
		return;
	ok(n->adapters == (size_t)(2 * n->shape.layers) &&
		   n->params.count == (int)(2 * n->adapters),
	   "q and v of each layer have adapters: %zu", n->adapters);
	const int64_t elements = n->params.elements, model = size_of(run, "model.1.safetensors"),
		      states = size_of(run, "optimizer.1.safetensors");
	ok(elements < 2000 && model < 4 * elements + 4000 && states < 8 * elements + 8000,
	   "the checkpoint holds %lld elements of adapters and their states: %lld and %lld bytes",
	   (long long)elements, (long long)model, (long long)states);
	yk_trained_close(&t);
	test_resume(init, "ranks", "lora=2 ranks=2 zero=2");
	test_resume(init, "recompute", "lora=2 recompute=block lora_targets=all");
	test_resume(init, "mixed", "lora=2 precision=bf16-mixed allow_emulated=1 accumulate=2");
	test_resume(init, "quantized",
		    "lora=2 quant=q8_0 lora_alpha=3 lora_targets=o,gate,up,down,k");
	char name[2][300];
	snprintf(name[0], sizeof *name, "%s/recompute-once", folder);
	e = train(init, "kept", 4, "lora=2 lora_targets=all");
	ok(e == 0, "trains without recompute %s", yoke_error());
	snprintf(name[1], sizeof *name, "%s/kept", folder);
	ok(distance(name[0], name[1]) == 0, "recompute gives the same bits");
	yoke_error_clear();
}

// The run refuses another model in the place of its own, and finds its own elsewhere.
static void test_base(const struct recorded *r)
{
	char init[300], moved[300], run[300], file[320];
	struct yk_trained t = { 0 };
	snprintf(init, sizeof init, "%s", write_model(r));
	snprintf(moved, sizeof moved, "%s/moved", folder);
	snprintf(run, sizeof run, "%s/base", folder);
	int e = train(init, "base", 2, "lora=2");
	ok(e == 0 && rename(init, moved) == 0, "trains, and its base is moved %s", yoke_error());
	e = yk_trained_open(run, NULL, &t);
	ok(e == YOKE_ENOENT && !strchr(yoke_error(), '\n'), "refused: a run without its base: %s",
	   yoke_error());
	yoke_error_clear();
	e = train(moved, "base", 3, "lora=2");
	ok(e == 0, "resumes with init= where the base is now %s", yoke_error());
	yoke_error_clear();
	e = yk_trained_open(run, NULL, &t);
	ok(e == 0, "the run then refers to it %s", yoke_error());
	yk_trained_close(&t);
	yoke_error_clear();
	snprintf(file, sizeof file, "%s/model.safetensors", moved);
	FILE *f = fopen(file, "r+b");
	fseek(f, -2, SEEK_END);
	const int last = fgetc(f);
	fseek(f, -2, SEEK_END);
	fputc(last ^ 1, f);
	fclose(f);
	e = yk_trained_open(run, NULL, &t);
	ok(e == YOKE_EINVAL && !strchr(yoke_error(), '\n'),
	   "refused: a base with another weight: %s", yoke_error());
	yoke_error_clear();
	e = train(moved, "base", 4, "lora=2");
	ok(e == YOKE_EINVAL, "refused: resuming on it: %s", yoke_error());
	yoke_error_clear();
}

// Replaces text in a file, of which `from` is a part, without changing its size.
static void edit(const char *path, const char *from, const char *to)
{
	char *text, *at = NULL;
	size_t bytes;
	if (!ok(yk_file_read(path, 1 << 20, &text, &bytes) == 0 && (at = strstr(text, from)),
		"%s has %s", path, from))
		return;
	memcpy(at, to, strlen(to));
	FILE *f = fopen(path, "r+b");
	fwrite(text, 1, bytes, f);
	fclose(f);
	free(text);
}

static void expect_base(int want, const char *what, const char *run, const char *base)
{
	struct yk_trained t = { 0 };
	const char *name = strrchr(run, '/') + 1;
	int e = yk_trained_open(run, NULL, &t);
	ok(e == want && !strchr(yoke_error(), '\n'), "%s: opening the run gives %d, wanted %d: %s",
	   what, e, want, yoke_error());
	yoke_error_clear();
	yk_trained_close(&t);
	e = train(base, name, 1, "lora=2");
	ok(e == want, "%s: so does resuming it, got %d: %s", what, e, yoke_error());
	yoke_error_clear();
}

// The configuration of the frozen model identifies it, too; the times of its files do not.
static void test_configuration(const struct recorded *r)
{
	static const char *const edits[][2] = {
		{ "\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": 1e-03" },
		{ "\"rope_theta\": 10000.0", "\"rope_theta\": 20000.0" },
		{ "\"max_position_embeddings\": 64", "\"max_position_embeddings\": 48" },
	};
	char init[300], run[300], config[340], weights[340], name[80];
	const struct timespec old[] = { { 1000000000, 0 }, { 1000000000, 0 } };
	struct stat st;
	snprintf(init, sizeof init, "%s", write_model(r));
	snprintf(name, sizeof name, "%s-configured", r->name);
	snprintf(run, sizeof run, "%s/%s", folder, name);
	snprintf(config, sizeof config, "%s/config.json", init);
	snprintf(weights, sizeof weights, "%s/model.safetensors", init);
	int e = train(init, name, 1, "lora=2");
	ok(e == 0, "%s: trains %s", r->name, yoke_error());
	yoke_error_clear();
	for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
		edit(config, edits[i][0], edits[i][1]);
		expect_base(YOKE_EINVAL, edits[i][1], run, init);
		edit(config, edits[i][1], edits[i][0]);
	}
	expect_base(0, "the first configuration", run, init);
	utimensat(AT_FDCWD, weights, old, 0);
	expect_base(0, "weights with another time", run, init);
	// one bit in the middle of the file, which keeps its time
	FILE *f = fopen(weights, "r+b");
	fstat(fileno(f), &st);
	fseek(f, (long)st.st_size / 2, SEEK_SET);
	const int byte = fgetc(f);
	fseek(f, (long)st.st_size / 2, SEEK_SET);
	fputc(byte ^ 1, f);
	fclose(f);
	utimensat(AT_FDCWD, weights, (struct timespec[]){ st.st_atim, st.st_mtim }, 0);
	expect_base(YOKE_EINVAL, "weights with another bit and the same time", run, init);
}

// What a resumed run repeats may be written otherwise, and its adapter's folder may be gone.
static void test_repeated(const struct recorded *r)
{
	char init[300], from[300], gone[300], keys[400];
	snprintf(init, sizeof init, "%s", write_model(r));
	snprintf(from, sizeof from, "%s/repeated", folder);
	snprintf(gone, sizeof gone, "%s/gone", folder);
	int e = train(init, "repeated", 1, "lora=2 lora_alpha=16");
	ok(e == 0, "trains %s", yoke_error());
	e = train(init, "repeated", 2, "lora=2.0 lora_alpha=1.6e1");
	ok(e == 0, "resumes with lora_alpha=1.6e1 instead of 16 %s", yoke_error());
	yoke_error_clear();
	e = train(init, "repeated", 3, "lora_alpha=16.5");
	ok(e == YOKE_EINVAL, "refused: resuming with lora_alpha=16.5 %s", yoke_error());
	yoke_error_clear();
	snprintf(keys, sizeof keys, "adapter=%s lora_alpha=16.0", from);
	e = train(init, "further", 1, keys);
	ok(e == 0, "trains from an adapter, with the default of lora_alpha in another form %s",
	   yoke_error());
	yoke_error_clear();
	ok(rename(from, gone) == 0, "the adapter's folder is moved");
	snprintf(keys, sizeof keys, "adapter=%s", from);
	e = train(init, "further", 2, keys);
	ok(e == 0, "resumes with adapter= of a folder that is gone %s", yoke_error());
	yoke_error_clear();
	snprintf(keys, sizeof keys, "adapter=%s", gone);
	e = train(init, "further", 3, keys);
	ok(e == YOKE_EINVAL, "refused: resuming with another adapter= %s", yoke_error());
	yoke_error_clear();
	snprintf(keys, sizeof keys, "adapter=%s", from);
	e = train(init, "anew", 1, keys);
	ok(e == YOKE_ENOENT, "refused: a new run from a folder that is gone %s", yoke_error());
	yoke_error_clear();
}

// A copy in PEFT's format that cannot be written does not end the run.
static void test_copy(const struct recorded *r)
{
	char init[300], path[400];
	struct yk_checkpoint ck;
	snprintf(init, sizeof init, "%s", write_model(r));
	snprintf(path, sizeof path, "%s/copy/adapter_model.safetensors/in_the_way", folder);
	yk_dir_make(path);
	const int e = train(init, "copy", 2, "lora=2 save_every=1");
	ok(e == 0, "trains although adapter_model.safetensors cannot be written %s", yoke_error());
	yoke_error_clear();
	snprintf(path, sizeof path, "%s/copy", folder);
	if (ok(yk_checkpoint_open(path, &ck) == 0 && ck.step == 2,
	       "and keeps the checkpoint of step 2 %s", yoke_error()))
		yk_checkpoint_fini(&ck);
}

// Descriptions of adapters in manifests, which may be damaged.
static void test_manifests(void)
{
	static const struct {
		const char *text;
		int want;
	} cases[] = {
		{ "{\"base\": \"m\", \"dtype\": \"file\", \"quant\": \"none\", \"layers\": "
		  "[{\"name\": \"layer0.attn.q\", "
		  "\"rank\": 2, \"alpha\": 4}]}",
		  0 },
		{ "{\"base\": \"m\", \"dtype\": \"file\", \"quant\": \"none\", \"dropout\": 0.5, "
		  "\"state\": 7, \"layers\": "
		  "[{\"name\": \"layer0.attn.q\", \"rank\": 2, \"alpha\": 4}]}",
		  0 },
		{ "{\"base\": \"m\", \"dtype\": \"file\", \"quant\": \"none\", \"dropout\": 1, "
		  "\"layers\": [{\"name\": "
		  "\"layer0.attn.q\", \"rank\": 2, \"alpha\": 4}]}",
		  YOKE_EFORMAT },
		{ "{\"base\": \"m\", \"dtype\": \"file\", \"quant\": \"none\", \"dropout\": -0.5, "
		  "\"layers\": [{\"name\": "
		  "\"layer0.attn.q\", \"rank\": 2, \"alpha\": 4}]}",
		  YOKE_EFORMAT },
		{ "{\"base\": \"m\", \"dtype\": \"file\", \"quant\": \"none\", \"dropout\": "
		  "\"0.5\", \"layers\": [{\"name\": "
		  "\"layer0.attn.q\", \"rank\": 2, \"alpha\": 4}]}",
		  YOKE_EFORMAT },
		{ "{\"base\": \"m\", \"dtype\": \"file\", \"quant\": \"none\", \"dropout\": null, "
		  "\"layers\": [{\"name\": "
		  "\"layer0.attn.q\", \"rank\": 2, \"alpha\": 4}]}",
		  YOKE_EFORMAT },
		{ "{\"base\": \"m\", \"dtype\": \"file\", \"quant\": \"none\", \"layers\": "
		  "[{\"name\": \"layer0.attn.q\", "
		  "\"rank\": 0, \"alpha\": 4}]}",
		  YOKE_EFORMAT },
		{ "{\"base\": \"m\", \"dtype\": \"file\", \"quant\": \"none\", \"layers\": []}",
		  YOKE_EFORMAT },
		{ "[]", YOKE_EFORMAT },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct yk_adapter_manifest m = { 0 };
		json_t *o = json_loads(cases[i].text, 0, NULL);
		const int e = yk_adapter_parse("run", o, &m);
		ok(e == cases[i].want && (e < 0 || m.n == 1), "manifest %zu: got %d, wanted %d %s",
		   i, e, cases[i].want, yoke_error());
		yoke_error_clear();
		free(m.layer);
		json_decref(o);
	}
}

// Elements of x are dropped before A, the others divided by 1 - p; only in a training's loss.
static void test_dropout(const struct recorded *r)
{
	enum { WIDE = 512 };
	static const double p = 0.25;
	struct yk_network *n = adapted(write_model(r), NULL);
	if (!n)
		return;
	yoke_module *layer = n->adapter[0].module;
	const int64_t in = layer->own[0].dims[1], out = layer->own[0].dims[0];
	float *y[3], *x = calloc((size_t)(WIDE * in), sizeof *x);
	for (int64_t i = 0; i < WIDE; i++) // one element other than 0 per row
		x[i * in + i % in] = 1;
	yk_network_refresh(n);
	for (int k = 0; k < 3; k++) { // W x; with adapters; with dropout
		n->adapter_dropout = k ? p : 0;
		n->trains = k == 2;
		const struct yk_low_rank *lora = layer->lora;
		layer->lora = k ? lora : NULL;
		yoke_scope *s = yoke_scope_begin("dropout");
		yoke_random_set(5, 0);
		y[k] = host_of(
			yoke_call(layer, yoke_from(yoke_f32, 2, (int64_t[]){ WIDE, in }, x)));
		yoke_scope_end(s);
		layer->lora = lora;
	}
	int kept = 0, dropped = 0;
	double worst = 0;
	for (int64_t i = 0; i < WIDE; i++) {
		double as[2] = { 0 };
		for (int64_t o = 0; o < out; o++) {
			const double w = (double)y[0][i * out + o],
				     added = (double)y[1][i * out + o] - w,
				     got = (double)y[2][i * out + o] - w;
			as[0] = fmax(as[0], fabs(got));
			as[1] = fmax(as[1], fabs(got - added / (1 - p)));
		}
		dropped += as[0] <= as[1];
		kept += as[0] > as[1];
		worst = fmax(worst, fmin(as[0], as[1]));
	}
	ok(worst < 1e-5 && abs(dropped - (int)(p * WIDE)) < 60,
	   "of %d elements %d are dropped and %d kept, with a difference of %g", WIDE, dropped,
	   kept, worst);
	for (int k = 0; k < 3; k++)
		free(y[k]);
	free(x);
	yk_network_free(n);
	yoke_error_clear();
}

// lora_dropout of an adapter is part of a run that continues from it.
static void test_dropout_run(const struct recorded *r)
{
	char init[300], from[300], path[400], keys[400], runs[2][300];
	json_t *c;
	snprintf(init, sizeof init, "%s", write_model(r));
	snprintf(from, sizeof from, "%s/undropped", folder);
	int e = train(init, "undropped", 2, "lora=2");
	snprintf(keys, sizeof keys, "adapter=%s", from);
	if (e == 0)
		e = train(init, "without", 4, keys);
	snprintf(from, sizeof from, "%s/dropping", folder);
	yk_dir_make(from);
	for (int i = 0; i < 2 && e == 0; i++) {
		static const char *const files[] = { "adapter_config.json",
						     "adapter_model.safetensors" };
		char to[400];
		snprintf(path, sizeof path, "%s/undropped/%s", folder, files[i]);
		snprintf(to, sizeof to, "%s/%s", from, files[i]);
		e = rename(path, to);
	}
	snprintf(path, sizeof path, "%s/adapter_config.json", from);
	c = yk_json_load(path);
	ok(e == 0 && json_number_value(json_object_get(c, "lora_dropout")) == 0,
	   "trains without dropout %s", yoke_error());
	json_object_set_new(c, "lora_dropout", json_real(0.5));
	yk_json_save(path, c);
	json_decref(c);
	snprintf(keys, sizeof keys, "adapter=%s", from);
	test_resume(init, "dropout", keys);
	test_resume(init, "dropout2", "lora=2");
	snprintf(keys, sizeof keys, "adapter=%s recompute=block", from);
	e = train(init, "dropout-block", 4, keys);
	snprintf(runs[0], sizeof *runs, "%s/dropout-once", folder);
	snprintf(runs[1], sizeof *runs, "%s/dropout-block", folder);
	ok(e == 0 && distance(runs[0], runs[1]) == 0, "recompute drops the same elements %s",
	   yoke_error());
	snprintf(runs[1], sizeof *runs, "%s/without", folder);
	ok(distance(runs[0], runs[1]) > 1e-4, "and training differs from that without dropout: %g",
	   distance(runs[0], runs[1]));
	snprintf(path, sizeof path, "%s/dropout-twice/adapter_config.json", folder);
	c = yk_json_load(path);
	ok(json_number_value(json_object_get(c, "lora_dropout")) == 0.5,
	   "the run's copy has lora_dropout");
	json_decref(c);
	yoke_error_clear();
}

static void refuse(const char *what, const char *init, const char *name, const char *keys)
{
	const int e = train(init, name, 2, keys);
	ok(e == YOKE_EINVAL && !strchr(yoke_error(), '\n'), "refused: %s: %s", what, yoke_error());
	yoke_error_clear();
}

static void test_refused(const struct recorded *r, const struct recorded *plain)
{
	static const char *const cases[] = {
		"lora=2 lora_targets=q,z",
		"lora=2 lora_targets=",
		"lora=2 lora_targets=q,,v",
		"lora=-1",
		"lora=2 lora_alpha=0",
		"lora=2 lora_alpha=nan",
		"quant=q8_0",
		"dtype=bf16",
		"lora_alpha=3",
		"lora_targets=k",
		"lora=2 quant=q8_0 dtype=f16",
		"lora=2 stages=2",
		"lora=2 zero=3",
	};
	char init[300], run[300];
	struct stat st;
	snprintf(init, sizeof init, "%s", write_model(r));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		refuse(cases[i], init, "none", cases[i]);
	refuse("lora without init", "", "none", "lora=2");
	refuse("a target that the model lacks", write_model(plain), "none",
	       "lora=2 lora_targets=gate");
	snprintf(run, sizeof run, "%s/none", folder);
	ok(stat(run, &st) < 0, "a refused run leaves nothing");
	const int e = train(init, "changed", 1, "lora=2");
	ok(e == 0, "trains %s", yoke_error());
	refuse("resuming with another rank", init, "changed", "lora=3");
	snprintf(run, sizeof run, "%s/changed", folder);
	refuse("a run with adapters as init=", run, "none", "lora=2");
}

int main(void)
{
	setenv("YOKE_CPU_DEVICES", "2", 1); // for ranks=2
	tap_folder();
	mkdir(folder, 0777);
	write_ids();
	for (int i = 0; i < MODELS; i++)
		if (!is_minimal(&recorded[i]))
			test_gradients(&recorded[i]);
	test_quantized(named("llama"), "q8_0");
	test_quantized(named("qwen2"), "q4_1");
	test_runs(named("llama"));
	test_base(named("qwen3"));
	test_configuration(named("llama"));
	test_configuration(named("phi3"));
	test_repeated(named("llama"));
	test_copy(named("llama"));
	test_manifests();
	test_dropout(named("llama"));
	test_dropout_run(named("llama"));
	test_refused(named("llama"), named("gpt2"));
	return done();
}
