// SPDX-License-Identifier: Apache-2.0
// Tests the built-in models, GPT and MLP: outputs against float64 loops, gradients against their
// finite differences, causality, the key-value cache, the manifest.
#include "config.h"

#include <unistd.h>

#include "base/error.h"
#include "nn/model.h"
#include "stats.h"
#include "tap.h"

// ---- in float64, one window ----

enum { V = 13, C = 7, L = 2, H = 3, E = 12, D = E / H, B = 3, HISTORY = 3 };
enum { GPT = 4 + 12 * L, MLP = 3 + 2 * L, LIMIT = GPT }; // tensors

typedef void forward_fn(const int32_t *ids, int T, double (*logits)[V]);

static double *param[LIMIT]; // in the order of the model's list
static int64_t sizes[LIMIT];
static double nearest; // smallest distance from 0 of a relu's input

static void norm_row(const double *x, const double *w, const double *b, double *y)
{
	double mean = 0, var = 0;

	for (int i = 0; i < E; i++)
		mean += x[i] / E;
	for (int i = 0; i < E; i++)
		var += (x[i] - mean) * (x[i] - mean) / E;
	for (int i = 0; i < E; i++)
		y[i] = (x[i] - mean) / sqrt(var + 1e-5) * w[i] + b[i];
}

static void linear_row(const double *x, int in, const double *w, const double *b, int out,
		       double *y)
{
	for (int i = 0; i < out; i++) {
		y[i] = b ? b[i] : 0;
		for (int k = 0; k < in; k++)
			y[i] += x[k] * w[i * in + k];
	}
}

static void attention_ref(const double (*qkv)[3 * E], int T, int t, double *y)
{
	for (int h = 0; h < H; h++) {
		double p[C], max = -INFINITY, sum = 0;
		for (int s = 0; s <= t && s < T; s++) {
			p[s] = 0;
			for (int d = 0; d < D; d++)
				p[s] += qkv[t][h * D + d] * qkv[s][E + h * D + d] / sqrt(D);
			max = fmax(max, p[s]);
		}
		for (int s = 0; s <= t; s++)
			sum += p[s] = exp(p[s] - max);
		for (int d = 0; d < D; d++) {
			y[h * D + d] = 0;
			for (int s = 0; s <= t; s++)
				y[h * D + d] += p[s] / sum * qkv[s][2 * E + h * D + d];
		}
	}
}

// ids [T] -> logits [T,V]
static void gpt_ref(const int32_t *ids, int T, double (*logits)[V])
{
	double x[C][E], n[E], qkv[C][3 * E], y[E], z[E], up[4 * E];

	for (int t = 0; t < T; t++)
		for (int i = 0; i < E; i++)
			x[t][i] = param[0][ids[t] * E + i] + param[1][t * E + i];
	for (int l = 0; l < L; l++) {
		double *const *p = &param[2 + 12 * l];
		for (int t = 0; t < T; t++) {
			norm_row(x[t], p[0], p[1], n);
			linear_row(n, E, p[2], p[3], 3 * E, qkv[t]);
		}
		for (int t = 0; t < T; t++) {
			attention_ref((const double (*)[3 * E])qkv, T, t, y);
			linear_row(y, E, p[4], p[5], E, z);
			for (int i = 0; i < E; i++)
				x[t][i] += z[i];
			norm_row(x[t], p[6], p[7], n);
			linear_row(n, E, p[8], p[9], 4 * E, up);
			for (int i = 0; i < 4 * E; i++)
				up[i] *= 0.5 * (1 + tanh(sqrt(2 / M_PI) *
							 (up[i] + 0.044715 * pow(up[i], 3))));
			linear_row(up, 4 * E, p[10], p[11], E, z);
			for (int i = 0; i < E; i++)
				x[t][i] += z[i];
		}
	}
	for (int t = 0; t < T; t++) {
		norm_row(x[t], param[2 + 12 * L], param[3 + 12 * L], n);
		linear_row(n, E, param[0], NULL, V, logits[t]);
	}
}

static void mlp_ref(const int32_t *ids, int T, double (*logits)[V])
{
	double x[HISTORY * E], h[2][4 * E];

	for (int t = 0; t < T; t++) {
		for (int i = 0; i < HISTORY * E; i++) {
			int at = t - HISTORY + 1 + i / E;
			x[i] = at < 0 ? 0 : param[0][ids[at] * E + i % E];
		}
		for (int l = 0; l < L; l++) {
			linear_row(l ? h[(l + 1) % 2] : x, l ? 4 * E : HISTORY * E,
				   param[1 + 2 * l], param[2 + 2 * l], 4 * E, h[l % 2]);
			for (int i = 0; i < 4 * E; i++) {
				nearest = fmin(nearest, fabs(h[l % 2][i]));
				h[l % 2][i] = fmax(h[l % 2][i], 0);
			}
		}
		linear_row(h[(L + 1) % 2], 4 * E, param[1 + 2 * L], param[2 + 2 * L], V, logits[t]);
	}
}

// Mean over [B,T] of -log softmax(logits)[target]
static double loss_ref(forward_fn *forward, const int32_t *ids, const int32_t *targets, int T)
{
	double logits[C][V], loss = 0;

	for (int b = 0; b < B; b++) {
		forward(ids + b * T, T, logits);
		for (int t = 0; t < T; t++) {
			double sum = 0;
			for (int i = 0; i < V; i++)
				sum += exp(logits[t][i]);
			loss += (log(sum) - logits[t][targets[b * T + t]]) / (B * T);
		}
	}
	return loss;
}

// Random values for the model and the reference: norms near 1, the rest large enough to matter.
static void draw(struct yk_network *n)
{
	for (int i = 0; i < n->params.count; i++) {
		yoke_tensor *var = n->params.var[i];
		const char *name = n->params.row[i].name;
		double base = strstr(name, "norm") && strstr(name, "weight") ? 1 : 0;
		sizes[i] = yoke_count(var);
		param[i] = malloc((size_t)sizes[i] * sizeof(double));
		float *f = malloc((size_t)sizes[i] * sizeof(float));
		for (int64_t k = 0; k < sizes[i]; k++) {
			f[k] = (float)(base + rnd_real(-0.4, 0.4));
			param[i][k] = f[k];
		}
		yoke_put(var, f, yoke_bytes(var));
		free(f);
	}
}

// |a - b| / |b|
static double apart(const double *a, const double *b, int n)
{
	double off = 0, all = 0;
	for (int i = 0; i < n; i++) {
		off += (a[i] - b[i]) * (a[i] - b[i]);
		all += b[i] * b[i];
	}
	return sqrt(off / all);
}

// half: 0, or the dtype of the casts. The bounds are multiples of its rounding: a loss depends on
// two dozen roundings in sequence, which add up like a random walk, a gradient on twice as many. A
// difference across the kink of a relu is not a slope, so no relu input is within 48 h of 0:
// parameters are at most 0.4, and moving one by h moves the first layer's relu inputs by at most 3
// * 0.4 h, and the next layer's by 48 * 0.4 times that, 23 h. The rounding of f32 there is about
// 1e-7.
// that, 23 h.  What f32 rounds there is some 1e-7.
static void test_loss(struct yk_network *m, forward_fn *forward, int T, int half)
{
	const double u = half == yoke_bf16 ? 0x1p-8 : 0x1p-11;
	const char *name = m->model->name;
	int32_t ids[B * C], targets[B * C];
	yoke_tensor *g[LIMIT];
	double got[64], want[64];
	const double h = 1e-6;
	float loss = NAN;
	char what[96];
	int n = 0;

	do {
		for (int i = 0; i < B * T; i++) {
			ids[i] = (int32_t)rnd_int(0, V - 1);
			targets[i] = (int32_t)rnd_int(0, V - 1);
		}
		nearest = INFINITY;
		*want = loss_ref(forward, ids, targets, T);
	} while (nearest < 48 * h);
	yoke_scope *s = yoke_scope_begin("test");
	const int64_t dims[] = { B, T };
	if (half)
		yoke_autocast(half, NULL);
	yoke_tensor *y = m->model->loss(m, yoke_from(yoke_i32, 2, dims, ids),
					yoke_from(yoke_i32, 2, dims, targets), 0);
	if (yoke_grad(y, m->params.count, m->params.var, g) == 0) {
		for (int i = 0; i < m->params.count; i++)
			yoke_keep(half && yoke_dtype(g[i]) != yoke_f32 ? NULL : g[i]);
		yoke_read(y, &loss, sizeof loss);
	}
	*got = loss;
	snprintf(what, sizeof what, "%s: loss, %d of %d positions, %s", name, T, C,
		 yoke_dtype_name(half ? half : yoke_f32));
	near(got, want, 1, half ? 8 * u : 1e-5, 1, what);
	for (int i = 0; i < m->params.count && !isnan(loss); i++) {
		float *all = malloc((size_t)sizes[i] * sizeof *all);
		memset(all, 0xff, (size_t)sizes[i] * sizeof *all);
		yoke_read(g[i], all, (size_t)sizes[i] * sizeof *all);
		for (int k = 0; k < 2; k++, n++) {
			int64_t at = rnd_int(0, sizes[i] - 1);
			double was = param[i][at];
			param[i][at] = was + h;
			want[n] = loss_ref(forward, ids, targets, T);
			param[i][at] = was - h;
			want[n] = (want[n] - loss_ref(forward, ids, targets, T)) / (2 * h);
			param[i][at] = was;
			got[n] = all[at];
		}
		free(all);
		yoke_free(g[i]);
	}
	snprintf(what, sizeof what, "%s: gradients, %d of %d positions", name, T, C);
	const double off = apart(got, want, n);
	if (half) // and its precision is the half's: f32 would be a thousand times closer
		ok(off <= 16 * u && off >= u / 64, "%s in %s: %.2g off, %.2g allowed", what,
		   yoke_dtype_name(half), off, 16 * u);
	else
		near(got, want, (size_t)n, 1e-4, 0.02, what);
	int e = yoke_scope_end(s);
	ok(e == 0, "no error %s", yoke_error());
	yoke_error_clear();
}

// Later tokens must not change the prediction at a token.
static void test_causal(struct yk_network *m, forward_fn *forward)
{
	int32_t ids[C];
	double want[C][V], g[3 * V], w[3 * V];
	float got[C][V];

	for (int i = 0; i < C; i++)
		ids[i] = (int32_t)rnd_int(0, V - 1);
	forward(ids, 3, want);
	for (int i = 3; i < C; i++)
		ids[i] = 0;
	memset(got, 0xff, sizeof got);
	yoke_scope *s = yoke_scope_begin("test");
	const int64_t dims[] = { 1, C };
	yoke_tensor *x = yoke_from(yoke_i32, 2, dims, ids);
	yoke_read(m->model->logits(m, yk_network_forward(m, x, 0)), got, sizeof got);
	yoke_scope_end(s);
	for (int i = 0; i < 3 * V; i++)
		g[i] = got[i / V][i % V], w[i] = want[i / V][i % V];
	near(g, w, 3 * V, 1e-5, 1, "logits do not depend on later tokens");
	x = yoke_from(yoke_i32, 2, (int64_t[]){ 1, C + 1 }, (int32_t[C + 1]){ 0 });
	ok(!yk_network_forward(m, x, 0) && yoke_error_code() == YOKE_ESHAPE,
	   "a sequence that is too long: %s", yoke_error());
	yoke_error_clear();
	yoke_free(x);
}

static void test_init(void)
{
	struct yk_model_shape shape = { .vocab = 257, .context = 64, .layers = 2, .heads = 4,
					.embed = 64 };
	struct yk_network *a = NULL, *b = NULL;
	static float x[257 * 64], y[257 * 64];
	double sum = 0, square = 0;
	const double n = 257 * 64;

	bool good = yk_network_new(&yk_model_gpt, &shape, &a) == 0 &&
		    yk_network_new(&yk_model_gpt, &shape, &b) == 0 &&
		    yk_parameters_draw(&a->params, 5) == 0 &&
		    yk_parameters_draw(&b->params, 5) == 0;
	if (!ok(good, "gpt: initialized %s", yoke_error()))
		return;
	ok(yk_model_elements(&yk_model_gpt, &shape) == a->params.elements && a->params.elements ==
	   (257 + 64) * 64 + 2 * (12 * 64 * 64 + 13 * 64) + 2 * 64, "gpt: number of parameters");
	yoke_read(a->params.var[0], x, sizeof x);
	yoke_read(b->params.var[0], y, sizeof y);
	ok(!memcmp(x, y, sizeof x), "gpt: the seed determines the parameters");
	for (int i = 0; i < 257 * 64; i++)
		sum += x[i], square += (double)x[i] * x[i];
	ok(fabs(sum / n) < 5 * 0.02 / sqrt(n), "gpt: mean %.2g", sum / n);
	ok(fabs(sqrt(square / n) / 0.02 - 1) < 0.03, "gpt: deviation %.4g", sqrt(square / n));
	yoke_read(a->params.var[2 + 12 + 8], y, 64 * 4 * 64 * sizeof *y);
	ok(memcmp(x, y, 256 * sizeof *x), "gpt: parameters differ from each other");
	square = 0;
	yoke_read(a->params.var[2 + 12 + 10], y, 64 * 4 * 64 * sizeof *y);
	for (int i = 0; i < 64 * 4 * 64; i++)
		square += (double)y[i] * y[i];
	ok(fabs(sqrt(square / (64 * 4 * 64)) / (0.02 / 2) - 1) < 0.03,
	   "gpt: projections are scaled by 1/sqrt(2L)");
	yoke_read(a->params.var[2 + 24], y, 64 * sizeof *y);
	ok(y[0] == 1 && y[63] == 1, "gpt: norms are 1");
	yoke_read(a->params.var[2 + 3], y, 3 * 64 * sizeof *y);
	ok(y[0] == 0 && y[191] == 0, "gpt: biases are 0");
	yk_network_free(a);
	yk_network_free(b);
}

// Tokens that come in chunks, with a cache, against the whole window at once.
static void test_cache(const struct yk_model *model, int64_t history)
{
	enum { N = 2, TOKENS = 24, VOCAB = 31, PIECES = 12 };
	static const int64_t piece[PIECES] = { 6, 1, 1, 1, 1, 5, 1, 1, 1, 1, 1, 4 };
	struct yk_model_shape shape = { .vocab = VOCAB, .context = TOKENS, .layers = 2, .heads = 2,
					.embed = 16, .history = history };
	struct yk_network *m = NULL;
	struct yk_network_cache *cache[N] = { NULL };
	static float want[N][TOKENS][VOCAB], got[N][TOKENS][VOCAB], row[N * TOKENS * VOCAB];
	static double g[N * TOKENS * VOCAB], w[N * TOKENS * VOCAB];
	int32_t ids[N][TOKENS], part[N * TOKENS];

	int e = yk_network_new(model, &shape, &m);
	if (!e)
		e = yk_parameters_draw(&m->params, 3);
	for (int i = 0; i < N && !e; i++)
		e = yk_network_cache_new(m, m->shape.context, &cache[i]);
	if (!ok(!e, "%s: a key-value cache %s", model->name, yoke_error()))
		return;
	// the second call finds the first one's keys before its own
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < N * TOKENS; i++)
			ids[i / TOKENS][i % TOKENS] = (int32_t)rnd_int(0, VOCAB - 1);
		yoke_scope *s = yoke_scope_begin("window");
		const int64_t dims[] = { N, TOKENS };
		yoke_tensor *all = yk_network_forward(m, yoke_from(yoke_i32, 2, dims, ids), 0);
		yoke_read(model->logits(m, all), want, sizeof want);
		yoke_scope_end(s);
		memset(got, 0xff, sizeof got);
		uint64_t misses = 0, copies = stats().assign_copies;
		cache[0]->length = cache[1]->length = 0;
		for (int i = 0, at = 0; i < PIECES; at += (int)piece[i++]) {
			const int64_t t = piece[i], size[] = { N, t };
			s = yoke_scope_begin("extend");
			for (int k = 0; k < N * t; k++)
				part[k] = ids[k / t][at + k % t];
			yoke_tensor *h =
				yk_network_extend(m, cache, yoke_from(yoke_i32, 2, size, part));
			yoke_read(model->logits(m, h), row, (size_t)(N * t * VOCAB) * sizeof *row);
			yoke_scope_end(s);
			for (int k = 0; k < N * t; k++)
				memcpy(got[k / t][at + k % t], row + k * VOCAB, sizeof *got[0]);
			if (i == 1)
				misses = stats().plan_misses;
			if (i == 4)
				ok(stats().plan_misses == misses,
				   "%s: one plan serves all further tokens", model->name);
		}
		for (int i = 0; i < N * TOKENS * VOCAB; i++) {
			g[i] = (double)got[i / VOCAB / TOKENS][i / VOCAB % TOKENS][i % VOCAB];
			w[i] = (double)want[i / VOCAB / TOKENS][i / VOCAB % TOKENS][i % VOCAB];
		}
		near(g, w, N * TOKENS * VOCAB, 4e-6, 1, "logits of tokens that come in chunks");
		ok(model != &yk_model_gpt || stats().assign_copies == copies,
		   "the cache is updated in place");
	}
	yoke_scope *s = yoke_scope_begin("full");
	yoke_tensor *h =
		yk_network_extend(m, cache, yoke_from(yoke_i32, 2, (int64_t[]){ N, 1 }, ids));
	ok(!h && yoke_error_code() == YOKE_ESHAPE, "%s: a full cache: %s", model->name,
	   yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
	for (int i = 0; i < N; i++)
		yk_network_cache_free(cache[i]);
	yk_network_free(m);
}

// Logits [R,V] of one more token of each of R sequences.
static int one_more(const struct yk_network *m, int r, struct yk_network_cache *const *cache,
		    const int32_t *ids, int64_t t, float *to)
{
	yoke_scope *s = yoke_scope_begin("more");
	yoke_tensor *h =
		yk_network_extend(m, cache, yoke_from(yoke_i32, 2, (int64_t[]){ r, t }, ids));
	h = yoke_slice(h, 1, t - 1, t, 1);
	yoke_read(m->model->logits(m, h), to, (size_t)r * (size_t)m->shape.vocab * sizeof *to);
	return yoke_scope_end(s);
}

// Sequences of several lengths that are continued together, some of which end: against each window
// at once, and bit for bit against each sequence alone.
static void test_together(const struct yk_model *model, int64_t history)
{
	enum {
		R = 40,
		TOKENS = 20,
		VOCAB = 31,
		STEPS = 8
	}; // more rows than have the bits of one without by_row
	int64_t begun[R], steps[R];
	struct yk_model_shape shape = { .vocab = VOCAB,
					.context = TOKENS,
					.layers = 2,
					.heads = 2,
					.embed = 96,
					.history = history };
	struct yk_network *m = NULL;
	struct yk_network_cache *cache[R] = { NULL }, *alone[R] = { NULL };
	static float logits[R * VOCAB], other[VOCAB], whole[TOKENS * VOCAB];
	int32_t ids[R][TOKENS], wrong = 0, bits = 0;
	uint64_t misses = 0, late = 0;
	double worst = 0;

	int e = yk_network_new(model, &shape, &m);
	if (!e)
		e = yk_parameters_draw(&m->params, 5);
	for (int i = 0; i < R && !e; i++) {
		e = yk_network_cache_new(m, m->shape.context, &cache[i]);
		if (!e)
			e = yk_network_cache_new(m, m->shape.context, &alone[i]);
	}
	if (!ok(!e, "%s: caches %s", model->name, yoke_error()))
		return;
	m->by_row = true;
	for (int i = 0; i < R * TOKENS; i++)
		ids[i / TOKENS][i % TOKENS] = (int32_t)rnd_int(0, VOCAB - 1);
	for (int i = 0; i < R; i++) {
		begun[i] = rnd_int(1, TOKENS - STEPS);
		steps[i] = i % 10 == 3 ? 3 : i % 10 == 7 ? 6 : STEPS;
		wrong += one_more(m, 1, &cache[i], ids[i], begun[i], other) < 0;
		wrong += one_more(m, 1, &alone[i], ids[i], begun[i], other) < 0;
	}
	for (int k = 0; k < STEPS; k++) {
		struct yk_network_cache *now[R];
		int32_t next[R];
		int of[R], n = 0;
		for (int i = 0; i < R; i++)
			if (k < steps[i]) {
				now[n] = cache[i];
				next[n] = ids[i][begun[i] + k];
				of[n++] = i;
			}
		uint64_t before = stats().plan_misses;
		memset(logits, 0xff, sizeof logits);
		wrong += one_more(m, n, now, next, 1, logits) < 0;
		late += k != 0 && k != 3 && k != 6 && stats().plan_misses != before;
		misses += stats().plan_misses - before;
		for (int j = 0; j < n; j++) {
			int i = of[j];
			const int64_t t = begun[i] + k + 1;
			wrong += one_more(m, 1, &alone[i], &next[j], 1, other) < 0;
			bits += memcmp(other, logits + j * VOCAB, sizeof other) != 0;
			yoke_scope *s = yoke_scope_begin("window");
			yoke_tensor *h = yk_network_forward(
				m, yoke_from(yoke_i32, 2, (int64_t[]){ 1, t }, ids[i]), 0);
			wrong += yoke_read(m->model->logits(m, h), whole,
					   (size_t)(t * VOCAB) * sizeof *whole) < 0;
			yoke_scope_end(s);
			for (int v = 0; v < VOCAB; v++)
				worst = fmax(worst, fabs((double)logits[j * VOCAB + v] -
							 (double)whole[(t - 1) * VOCAB + v]));
		}
	}
	ok(!wrong && worst < 2e-5, "%s: %d sequences together, the error is %.2g %s", model->name,
	   R, worst, yoke_error());
	ok(!bits, "%s: %d rows are not the bits of the sequence alone", model->name, bits);
	ok((!late && misses <= 3) || tap_eager(),
	   "%s: a plan for each number of sequences, %d and %d", model->name, (int)misses,
	   (int)late);
	cache[0]->length = 0;
	yoke_scope *s = yoke_scope_begin("wrong");
	ok(one_more(m, 2, cache, ids[0], 1, logits) == YOKE_ESHAPE,
	   "one sequence begins where another continues: %s", yoke_error());
	yoke_error_clear();
	yoke_tensor *many = yoke_full(yoke_i32, 2, (int64_t[]){ YK_SEQUENCES + 1, 1 }, 0);
	ok(!yk_network_extend(m, cache, many) && yoke_error_code() == YOKE_ESHAPE,
	   "too many sequences: %s", yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
	for (int i = 0; i < R; i++) {
		yk_network_cache_free(cache[i]);
		yk_network_cache_free(alone[i]);
	}
	yk_network_free(m);
}

// Thousands of passes, forward and from a cache, leak nothing.
static void test_flat(const struct yk_model *model)
{
	enum { TOKENS = 8, VOCAB = 31, BEGUN = 100 };
	struct yk_model_shape shape = { .vocab = VOCAB,
					.context = TOKENS,
					.layers = 2,
					.heads = 2,
					.embed = 16,
					.history = 3 };
	struct yk_network *m = NULL;
	struct yk_network_cache *cache = NULL;
	struct yoke_stats first = { 0 }, last;
	static float logits[TOKENS * VOCAB];
	int32_t ids[TOKENS] = { 0 };
	int wrong = 0, passes = tap_cases(2000, 10000);
	double memory = 0;

	int e = yk_network_new(model, &shape, &m);
	if (!e)
		e = yk_parameters_draw(&m->params, 3);
	if (!e)
		e = yk_network_cache_new(m, m->shape.context, &cache);
	if (!ok(!e, "%s: a network %s", model->name, yoke_error()))
		return;
	for (int i = 0; i < passes; i++) {
		if (i == BEGUN) {
			first = stats();
			memory = tap_resident();
		}
		ids[i % TOKENS] = (int32_t)rnd_int(0, VOCAB - 1);
		if (i % 2) {
			if (cache->length == TOKENS)
				cache->length = 0;
			wrong += one_more(m, 1, &cache, ids, 1, logits) < 0;
			continue;
		}
		yoke_scope *s = yoke_scope_begin("pass");
		yoke_tensor *x = yoke_from(yoke_i32, 2, (int64_t[]){ 1, TOKENS }, ids);
		wrong += yoke_read(m->model->logits(m, yk_network_forward(m, x, 0)), logits,
				   sizeof logits) < 0;
		wrong += yoke_scope_end(s) < 0;
	}
	last = stats();
	ok(!wrong && last.pool_allocated == first.pool_allocated &&
		   last.pool_reserved == first.pool_reserved &&
		   last.pool_allocated_peak == first.pool_allocated_peak &&
		   last.live_handles == first.live_handles,
	   "%s: after %d passes: %llu bytes, then %llu; %llu handles, then %llu %s", model->name,
	   passes, (unsigned long long)first.pool_allocated,
	   (unsigned long long)last.pool_allocated, (unsigned long long)first.live_handles,
	   (unsigned long long)last.live_handles, yoke_error());
	ok((last.plans == first.plans && last.plan_misses == first.plan_misses) || tap_eager(),
	   "%s: %llu plans after the first passes, then %llu", model->name,
	   (unsigned long long)first.plans, (unsigned long long)last.plans);
	ok(tap_resident() - memory < 1 << 20,
	   "%s: resident memory of the process grew by %+.0f bytes", model->name,
	   tap_resident() - memory);
	yk_network_cache_free(cache);
	yk_network_free(m);
}

// Evaluation draws no random numbers: dropout masks of a training step do not depend on it, and its
// bits do not depend on the seed.
static void test_evaluation(const struct yk_model *model)
{
	enum { N = 2, TOKENS = 8, VOCAB = 31 };
	struct yk_model_shape shape = { .vocab = VOCAB,
					.context = TOKENS,
					.layers = 2,
					.heads = 2,
					.embed = 16,
					.history = 3 };
	struct yk_network *m = NULL;
	static float plain[N * TOKENS * VOCAB], again[N * TOKENS * VOCAB];
	int32_t ids[N * TOKENS];
	float loss[3];
	const int64_t dims[] = { N, TOKENS };

	if (!ok(!yk_network_new(model, &shape, &m) && !yk_parameters_draw(&m->params, 3), "%s",
		model->name))
		return;
	for (int i = 0; i < N * TOKENS; i++)
		ids[i] = (int32_t)rnd_int(0, VOCAB - 1);
	for (int k = 0; k < 3;
	     k++) { // the second run has an evaluation inside, the third another seed
		yoke_random_set(k == 2 ? 8 : 7, 4);
		yoke_scope *s = yoke_scope_begin("step");
		yoke_tensor *x = yoke_from(yoke_i32, 2, dims, ids);
		if (k)
			yoke_read(m->model->logits(m, yk_network_forward(m, x, 0)),
				  k == 1 ? plain : again, sizeof plain);
		yoke_read(m->model->loss(m, x, x, 0.4), &loss[k], sizeof *loss);
		yoke_scope_end(s);
	}
	ok(loss[0] == loss[1] && loss[0] != loss[2],
	   "%s: losses with dropout %.7g, %.7g, with another seed %.7g", model->name,
	   (double)loss[0], (double)loss[1], (double)loss[2]);
	ok(!memcmp(plain, again, sizeof plain), "%s: without dropout both seeds give the same bits",
	   model->name);
	yk_network_free(m);
}

static void refuse(const struct yk_model *model, struct yk_model_shape shape, const char *part)
{
	struct yk_network *n = NULL;
	int e = yk_network_new(model, &shape, &n);

	ok(e == YOKE_EINVAL && !n && strstr(yoke_error(), part), "%s: refused: %s", model->name,
	   yoke_error());
	yoke_error_clear();
}

static void test_refused(void)
{
	struct yk_model_shape good = { .vocab = 256, .context = 8, .layers = 1, .heads = 2,
				       .embed = 16, .history = 8 }, bad = good;

	bad.heads = 3;
	refuse(&yk_model_gpt, bad, "heads=3 does not divide embed=16");
	bad = good, bad.context = 0;
	refuse(&yk_model_gpt, bad, "context=0");
	bad = good, bad.layers = INT64_C(1) << 31;
	refuse(&yk_model_gpt, bad, "layers=2147483648 is not in 1 .. 1000");
	bad = good, bad.history = 9;
	refuse(&yk_model_mlp, bad, "history=9 is more than the context=8");
	bad = good, bad.history = 0;
	refuse(&yk_model_mlp, bad, "history=0 is not in 1 .. 64");
	ok(!yk_model_find("bert") && yk_model_find("mlp") == &yk_model_mlp,
	   "models are found by name");
}

// A manifest, written and read; one that names another model.
static void test_manifest(const struct yk_model *model, int sizes_of)
{
	struct yk_model_shape shape = { .vocab = 256, .context = 8 }, got = { 0 };
	const struct yk_model *which = NULL;

	for (int k = 0; k < YK_SIZE_COUNT; k++)
		shape.size[k] = model->sizes >> k & 1 ? 2 : 0;
	json_t *o = yk_model_describe(model, &shape);
	ok(o && json_object_size(o) == (size_t)sizes_of &&
		   yk_model_parse(o, "m", &which, &got) == 0 && which == model &&
		   !memcmp(&got, &shape, sizeof got),
	   "%s: the manifest describes the model and restores it %s", model->name, yoke_error());
	json_object_set_new(o, "kind", json_string("bert"));
	int e = yk_model_parse(o, "m", &which, &got);
	ok(e == YOKE_EFORMAT &&
	   !strcmp(yoke_error(), "m: model of unknown kind 'bert'; this yoke knows gpt, mlp, bk"),
	   "refused: %s", yoke_error());
	yoke_error_clear();
	json_object_set_new(o, "kind", json_string(model->name));
	json_object_set_new(o, "embed", json_integer(65537));
	e = yk_model_parse(o, "m", &which, &got);
	ok(e == YOKE_EFORMAT && strstr(yoke_error(), "embed"), "refused: %s", yoke_error());
	yoke_error_clear();
	json_decref(o);
}

static void test_model(const struct yk_model *model, int params, forward_fn *forward)
{
	struct yk_model_shape shape = {
		.vocab = V, .context = C, .layers = L, .heads = H, .embed = E, .history = HISTORY
	};
	struct yk_network *m = NULL;

	bool good = yk_network_new(model, &shape, &m) == 0 && m->params.count == params &&
		    m->params.elements == yk_model_elements(model, &shape);
	if (!ok(good, "%s: created with %d parameters %s", model->name, params, yoke_error()))
		return;
	draw(m);
	test_loss(m, forward, C, 0);
	test_loss(m, forward, 1, 0);
	test_loss(m, forward, 5, 0);
	// relu's slope jumps
	for (int half = yoke_f16; half <= yoke_bf16 && model == &yk_model_gpt; half++)
		test_loss(m, forward, C, half);
	test_causal(m, forward);
	yk_network_free(m);
	for (int i = 0; i < params; i++)
		free(param[i]);
}

int main(void)
{
	tap_seed();
	test_model(&yk_model_gpt, GPT, gpt_ref);
	test_model(&yk_model_mlp, MLP, mlp_ref);
	test_init();
	test_cache(&yk_model_gpt, 0);
	test_cache(&yk_model_mlp, 1);
	test_cache(&yk_model_mlp, 5);
	test_together(&yk_model_gpt, 0);
	test_together(&yk_model_mlp, 1);
	test_together(&yk_model_mlp, 4);
	test_flat(&yk_model_gpt);
	test_flat(&yk_model_mlp);
	test_evaluation(&yk_model_gpt);
	test_evaluation(&yk_model_mlp);
	test_refused();
	test_manifest(&yk_model_gpt, 6);
	test_manifest(&yk_model_mlp, 6);
	return done();
}
