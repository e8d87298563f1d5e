// SPDX-License-Identifier: Apache-2.0
// Models: GPT and MLP against float64 loops, gradients against differences of those,
// causality.
#include "config.h"

#include "nn/gpt.h"
#include "nn/mlp.h"
#include "tap.h"

// ---- a GPT in float64, one window ----

enum { V = 13, C = 7, L = 2, H = 3, E = 12, D = E / H, B = 3 };
enum { PARAMS = 4 + 12 * L }; // tensors

static double *param[PARAMS]; // in the order of the model's list
static int64_t sizes[PARAMS];

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
		double p[C], most = -INFINITY, sum = 0;
		for (int s = 0; s <= t && s < T; s++) {
			p[s] = 0;
			for (int d = 0; d < D; d++)
				p[s] += qkv[t][h * D + d] * qkv[s][E + h * D + d] / sqrt(D);
			most = fmax(most, p[s]);
		}
		for (int s = 0; s <= t; s++)
			sum += p[s] = exp(p[s] - most);
		for (int d = 0; d < D; d++) {
			y[h * D + d] = 0;
			for (int s = 0; s <= t; s++)
				y[h * D + d] += p[s] / sum * qkv[s][2 * E + h * D + d];
		}
	}
}

// ids [T] -> logits [T,V]
static void forward_ref(const int32_t *ids, int T, double (*logits)[V])
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

// Mean over [B,T] of -log softmax(logits)[target]
static double loss_ref(const int32_t *ids, const int32_t *targets, int T)
{
	double logits[C][V], loss = 0;

	for (int b = 0; b < B; b++) {
		forward_ref(ids + b * T, T, logits);
		for (int t = 0; t < T; t++) {
			double sum = 0;
			for (int i = 0; i < V; i++)
				sum += exp(logits[t][i]);
			loss += (log(sum) - logits[t][targets[b * T + t]]) / (B * T);
		}
	}
	return loss;
}

// Random values into the model and the reference: norms near 1, the rest wide enough to
// matter.
static void draw(struct yk_gpt *m)
{
	for (int i = 0; i < PARAMS; i++) {
		yoke_tensor *var = m->params.var[i];
		const char *name = m->params.row[i].name;
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

static void test_loss(struct yk_gpt *m, int T)
{
	int32_t ids[B * C], targets[B * C];
	yoke_tensor *g[PARAMS];
	double got[64], want[64];
	const double h = 1e-5;
	float loss = NAN;
	char what[64];
	int n = 0;

	for (int i = 0; i < B * T; i++) {
		ids[i] = (int32_t)rnd_int(0, V - 1);
		targets[i] = (int32_t)rnd_int(0, V - 1);
	}
	yoke_scope *s = yoke_scope_begin("test");
	const int64_t dims[] = { B, T };
	yoke_tensor *y = yk_gpt_loss(m, yoke_from(yoke_i32, 2, dims, ids),
				     yoke_from(yoke_i32, 2, dims, targets), 0);
	if (yoke_grad(y, PARAMS, m->params.var, g) == 0) {
		for (int i = 0; i < PARAMS; i++)
			yoke_keep(g[i]);
		yoke_read(y, &loss, sizeof loss);
	}
	*got = loss;
	*want = loss_ref(ids, targets, T);
	snprintf(what, sizeof what, "gpt: loss, %d of %d positions", T, C);
	near(got, want, 1, 1e-5, 1, what);
	for (int i = 0; i < PARAMS && !isnan(loss); i++) {
		float *all = malloc((size_t)sizes[i] * sizeof *all);
		memset(all, 0xff, (size_t)sizes[i] * sizeof *all);
		yoke_read(g[i], all, (size_t)sizes[i] * sizeof *all);
		for (int k = 0; k < 2; k++, n++) {
			int64_t at = rnd_int(0, sizes[i] - 1);
			double was = param[i][at];
			param[i][at] = was + h;
			want[n] = loss_ref(ids, targets, T);
			param[i][at] = was - h;
			want[n] = (want[n] - loss_ref(ids, targets, T)) / (2 * h);
			param[i][at] = was;
			got[n] = all[at];
		}
		free(all);
		yoke_free(g[i]);
	}
	snprintf(what, sizeof what, "gpt: gradients, %d of %d positions", T, C);
	near(got, want, (size_t)n, 1e-4, 0.02, what);
	int e = yoke_scope_end(s);
	ok(e == 0, "no error %s", yoke_error());
	yoke_error_clear();
}

// What lies behind a token must not change what is predicted at it.
static void test_causal(struct yk_gpt *m)
{
	int32_t ids[C];
	double want[C][V], g[3 * V], w[3 * V];
	float got[C][V];

	for (int i = 0; i < C; i++)
		ids[i] = (int32_t)rnd_int(0, V - 1);
	forward_ref(ids, 3, want);
	for (int i = 3; i < C; i++)
		ids[i] = 0;
	memset(got, 0xff, sizeof got);
	yoke_scope *s = yoke_scope_begin("test");
	const int64_t dims[] = { 1, C };
	yoke_tensor *x = yoke_from(yoke_i32, 2, dims, ids);
	yoke_read(yk_gpt_logits(m, yk_gpt_hidden(m, x, 0)), got, sizeof got);
	yoke_scope_end(s);
	for (int i = 0; i < 3 * V; i++)
		g[i] = got[i / V][i % V], w[i] = want[i / V][i % V];
	near(g, w, 3 * V, 1e-5, 1, "gpt: logits depend on what is before them alone");
}

static void test_init(void)
{
	struct yk_gpt_shape shape = { 257, 64, 2, 4, 64 };
	struct yk_gpt *a = NULL, *b = NULL;
	static float x[257 * 64], y[257 * 64];
	double sum = 0, square = 0;
	const double n = 257 * 64;

	bool good = yk_gpt_new(&shape, &a) == 0 && yk_gpt_new(&shape, &b) == 0 &&
		    yk_gpt_init(a, 5) == 0 && yk_gpt_init(b, 5) == 0;
	if (!ok(good, "gpt: drawn %s", yoke_error()))
		return;
	int64_t counted = -1;
	ok(yk_gpt_elements(&shape, &counted) == 0 &&
	   yk_parameters_elements(&a->params) == counted && counted ==
	   (257 + 64) * 64 + 2 * (12 * 64 * 64 + 13 * 64) + 2 * 64, "gpt: number of parameters");
	yoke_read(a->wte, x, sizeof x);
	yoke_read(b->wte, y, sizeof y);
	ok(!memcmp(x, y, sizeof x), "gpt: the seed decides");
	for (int i = 0; i < 257 * 64; i++)
		sum += x[i], square += (double)x[i] * x[i];
	ok(fabs(sum / n) < 5 * 0.02 / sqrt(n), "gpt: mean %.2g", sum / n);
	ok(fabs(sqrt(square / n) / 0.02 - 1) < 0.03, "gpt: deviation %.4g", sqrt(square / n));
	yoke_read(a->layer[1].up_w, y, 64 * 4 * 64 * sizeof *y);
	ok(memcmp(x, y, 256 * sizeof *x), "gpt: parameters differ from each other");
	square = 0;
	yoke_read(a->layer[1].down_w, y, 64 * 4 * 64 * sizeof *y);
	for (int i = 0; i < 64 * 4 * 64; i++)
		square += (double)y[i] * y[i];
	ok(fabs(sqrt(square / (64 * 4 * 64)) / (0.02 / 2) - 1) < 0.03,
	   "gpt: projections are scaled by 1/sqrt(2L)");
	yoke_read(a->norm_w, y, 64 * sizeof *y);
	ok(y[0] == 1 && y[63] == 1, "gpt: norms are 1");
	yoke_read(a->layer[0].qkv_b, y, 3 * 64 * sizeof *y);
	ok(y[0] == 0 && y[191] == 0, "gpt: biases are 0");
	yk_gpt_free(a);
	yk_gpt_free(b);
}

static struct yoke_stats stats(void)
{
	struct yoke_stats s = { .size = sizeof s };
	yoke_stats(&s);
	return s;
}

// Tokens that come in pieces, with a cache, against all of the window at once.
static void test_cache(void)
{
	enum { N = 2, TOKENS = 24, VOCAB = 31, PIECES = 12 };
	static const int64_t piece[PIECES] = { 6, 1, 1, 1, 1, 5, 1, 1, 1, 1, 1, 4 };
	struct yk_gpt_shape shape = { VOCAB, TOKENS, 2, 2, 16 };
	struct yk_gpt *m = NULL;
	struct yk_gpt_cache *cache = NULL;
	static float want[N][TOKENS][VOCAB], got[N][TOKENS][VOCAB], row[N * TOKENS * VOCAB];
	static double g[N * TOKENS * VOCAB], w[N * TOKENS * VOCAB];
	int32_t ids[N][TOKENS], part[N * TOKENS];

	int e = yk_gpt_new(&shape, &m);
	if (!e)
		e = yk_gpt_init(m, 3);
	if (!e)
		e = yk_gpt_cache_new(m, N, &cache);
	if (!ok(!e, "gpt: a cache %s", yoke_error()))
		return;
	for (int round = 0; round < 2; round++) { // the second finds the first one's keys behind its own
		for (int i = 0; i < N * TOKENS; i++)
			ids[i / TOKENS][i % TOKENS] = (int32_t)rnd_int(0, VOCAB - 1);
		yoke_scope *s = yoke_scope_begin("window");
		const int64_t dims[] = { N, TOKENS };
		yoke_read(yk_gpt_logits(m, yk_gpt_hidden(m, yoke_from(yoke_i32, 2, dims, ids), 0)), want,
			  sizeof want);
		yoke_scope_end(s);
		memset(got, 0xff, sizeof got);
		uint64_t misses = 0, copies = stats().assign_copies;
		cache->length = 0;
		for (int i = 0, at = 0; i < PIECES; at += (int)piece[i++]) {
			const int64_t t = piece[i], size[] = { N, t };
			s = yoke_scope_begin("extend");
			for (int k = 0; k < N * t; k++)
				part[k] = ids[k / t][at + k % t];
			yoke_tensor *h = yk_gpt_extend(m, cache, yoke_from(yoke_i32, 2, size, part));
			yoke_read(yk_gpt_logits(m, h), row, (size_t)(N * t * VOCAB) * sizeof *row);
			yoke_scope_end(s);
			for (int k = 0; k < N * t; k++)
				memcpy(got[k / t][at + k % t], row + k * VOCAB, sizeof *got[0]);
			if (i == 1)
				misses = stats().plan_misses;
			if (i == 4)
				ok(stats().plan_misses == misses, "gpt: one plan for each further token");
		}
		for (int i = 0; i < N * TOKENS * VOCAB; i++) {
			g[i] = (double)got[i / VOCAB / TOKENS][i / VOCAB % TOKENS][i % VOCAB];
			w[i] = (double)want[i / VOCAB / TOKENS][i / VOCAB % TOKENS][i % VOCAB];
		}
		near(g, w, N * TOKENS * VOCAB, 1e-6, 1, "gpt: logits of tokens that come in pieces");
		ok(stats().assign_copies == copies, "gpt: the cache is filled in place");
	}
	yoke_scope *s = yoke_scope_begin("full");
	yoke_tensor *h = yk_gpt_extend(m, cache, yoke_from(yoke_i32, 2, (int64_t[]){ N, 1 }, ids));
	ok(!h && yoke_error_code() == YOKE_ESHAPE, "gpt: a full cache: %s", yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
	yk_gpt_cache_free(m, cache);
	yk_gpt_free(m);
}

static void test_refused(void)
{
	struct yk_gpt *m = NULL;
	struct yk_gpt_shape shape = { 256, 8, 1, 3, 16 };
	int e;

	e = yk_gpt_new(&shape, &m);
	ok(e == YOKE_EINVAL && !m, "refused: %s", yoke_error());
	yoke_error_clear();
	shape = (struct yk_gpt_shape){ 256, 0, 1, 1, 16 };
	e = yk_gpt_new(&shape, &m);
	ok(e == YOKE_EINVAL && !m, "refused: %s", yoke_error());
	yoke_error_clear();
	const int64_t most = INT64_C(1) << 31;
	int64_t n = -1;
	shape = (struct yk_gpt_shape){ most, most, most, 1, most };
	e = yk_gpt_elements(&shape, &n);
	ok(e == YOKE_EINVAL && n == -1, "refused: %s", yoke_error());
	yoke_error_clear();
}

static void test_mlp(void)
{
	const int64_t widths[] = { 5, 17, 1, 3 }, dims[] = { 4, 5 };
	struct yk_mlp *m = NULL;
	float x[20], got[12], w[17 * 5], b[17];
	double h[2][17], g[12], want[12];

	bool good = yk_mlp_new(3, widths, yoke_relu, &m) == 0 && yk_mlp_init(m, 3) == 0;
	if (!ok(good, "mlp: made %s", yoke_error()))
		return;
	for (int i = 0; i < 20; i++)
		x[i] = (float)rnd_real(-1, 1);
	yoke_scope *s = yoke_scope_begin("test");
	memset(got, 0xff, sizeof got);
	yoke_read(yk_mlp_forward(m, yoke_from(yoke_f32, 2, dims, x)), got, sizeof got);
	yoke_scope_end(s);
	for (int r = 0; r < 4; r++) {
		for (int k = 0; k < 5; k++)
			h[0][k] = x[r * 5 + k];
		for (int l = 0; l < 3; l++) {
			yoke_read(m->params.var[2 * l], w, yoke_bytes(m->params.var[2 * l]));
			yoke_read(m->params.var[2 * l + 1], b, yoke_bytes(m->params.var[2 * l + 1]));
			for (int o = 0; o < widths[l + 1]; o++) {
				double y = b[o];
				for (int k = 0; k < widths[l]; k++)
					y += h[l % 2][k] * w[o * widths[l] + k];
				h[1 - l % 2][o] = l < 2 ? fmax(y, 0) : y;
			}
		}
		for (int o = 0; o < 3; o++)
			g[r * 3 + o] = got[r * 3 + o], want[r * 3 + o] = h[1][o];
	}
	near(g, want, 12, 1e-5, 0.1, "mlp: forward");
	yk_mlp_free(m);
}

int main(void)
{
	struct yk_gpt_shape shape = { V, C, L, H, E };
	struct yk_gpt *m = NULL;

	tap_seed();
	bool good = yk_gpt_new(&shape, &m) == 0 && m->params.count == PARAMS;
	if (!ok(good, "gpt: made %s", yoke_error()))
		return done();
	draw(m);
	test_loss(m, C);
	test_loss(m, 1);
	test_loss(m, 5);
	test_causal(m);
	yk_gpt_free(m);
	for (int i = 0; i < PARAMS; i++)
		free(param[i]);
	test_init();
	test_cache();
	test_refused();
	test_mlp();
	return done();
}
