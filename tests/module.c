// SPDX-License-Identifier: Apache-2.0
// Tests modules: layers against float64 loops, gradients against finite differences, names,
// sharing, freezing, files, and refused arguments.
#include "config.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"
#include "yoke-nn.h"
#include "yoke-optim.h"

enum { B = 3, T = 5, E = 8, LIMIT = 4096 };

static const char file[] = "module.safetensors";

// ---- values ----

static int count_of(const yoke_tensor *t)
{
	return (int)yoke_count(t);
}

static int64_t dim(int64_t n)
{
	return n;
}

// Random values as f32, and the same in float64.
static yoke_tensor *random_x(int rank, const int64_t *dims, double *to)
{
	float x[LIMIT];
	int64_t n = 1;
	for (int i = 0; i < rank; i++)
		n *= dims[i];
	for (int64_t i = 0; i < n; i++)
		to[i] = x[i] = (float)rnd_real(-2, 2);
	return yoke_from(yoke_f32, rank, dims, x);
}

static void values(yoke_tensor *t, double *to)
{
	float x[LIMIT];
	if (yoke_read(t, x, yoke_bytes(t)) < 0)
		memset(x, 0xff, sizeof x);
	for (int i = 0; i < count_of(t); i++)
		to[i] = x[i];
}

static void refused(int code, int got, const char *word)
{
	ok(got == code && strstr(yoke_error(), word), "'%s': %s", word, yoke_error());
	yoke_error_clear();
}

// Random values for all parameters, none near 0 or 1.
static int shake(void *arg, const char *path, yoke_tensor *t, unsigned flags)
{
	float x[LIMIT];
	(void)path;
	for (int i = 0; i < count_of(t); i++)
		x[i] = (float)rnd_real(flags & YOKE_MODULE_BUFFER ? 0.5 : -1, 1.5);
	++*(int *)arg;
	return yoke_put(t, x, yoke_bytes(t));
}

static yoke_module *shaken(yoke_module *m)
{
	int n = 0;
	yoke_module_each(m, shake, &n);
	return m;
}

static void param(yoke_module *m, const char *path, double *to)
{
	values(yoke_module_find(m, path), to);
}

// Equal to a layer's result, within 1e-5 of the largest element.
static void same(yoke_tensor *y, const double *want, int n, const char *what)
{
	double got[LIMIT], scale = 1e-3;
	for (int i = 0; i < n; i++)
		scale = fmax(scale, fabs(want[i]));
	if (!y || count_of(y) != n) {
		ok(false, "%s: %s", what, yoke_error());
		return;
	}
	values(y, got);
	near(got, want, (size_t)n, 1e-5, scale, what);
}

// ---- layers ----

static void linear_ref(const double *x, int rows, int in, int out, const double *w, const double *b,
		       double *y)
{
	for (int r = 0; r < rows; r++)
		for (int o = 0; o < out; o++) {
			y[r * out + o] = b ? b[o] : 0;
			for (int i = 0; i < in; i++)
				y[r * out + o] += x[r * in + i] * w[o * in + i];
		}
}

static void test_linear(void)
{
	double x[LIMIT], w[LIMIT], b[LIMIT], y[LIMIT];
	for (int bias = 0; bias < 2; bias++) {
		yoke_scope *s = yoke_scope_begin("linear");
		yoke_module *m = yoke_nn_linear(E, 6, bias);
		// of n numbers that are uniform in -1 .. 1 none is above 0.9 once in 1e187, their
		// mean is 13 deviations of 1/sqrt(3 n)
		enum { IN = 64, OUT = 64 };
		yoke_module *wide = yoke_nn_linear(IN, OUT, bias);
		double bound = 0, sum = 0;
		param(wide, "weight", w);
		for (int i = 0; i < IN * OUT; i++)
			bound = fmax(bound, fabs(w[i])), sum += w[i];
		ok(bound <= 1 / sqrt(IN) && bound > 0.9 / sqrt(IN) &&
			   fabs(sum / (IN * OUT)) < 0.12 / sqrt(IN),
		   "initial weights are uniform: %g, mean %g", bound, sum / (IN * OUT));
		yoke_module_free(wide);
		shaken(m);
		yoke_tensor *in = random_x(2, (int64_t[]){ B, E }, x);
		param(m, "weight", w);
		if (bias)
			param(m, "bias", b);
		linear_ref(x, B, E, 6, w, bias ? b : NULL, y);
		same(yoke_call(m, in), y, B * 6, bias ? "linear" : "linear without bias");
		yoke_module_free(m);
		yoke_scope_end(s);
	}
}

// Over groups of n consecutive elements.
static void normalise(const double *x, int groups, int n, double eps, bool center, double *y)
{
	for (int g = 0; g < groups; g++) {
		double mean = 0, var = 0;
		for (int i = 0; i < n && center; i++)
			mean += x[g * n + i] / n;
		for (int i = 0; i < n; i++)
			var += (x[g * n + i] - mean) * (x[g * n + i] - mean) / n;
		for (int i = 0; i < n; i++)
			y[g * n + i] = (x[g * n + i] - mean) / sqrt(var + eps);
	}
}

static void test_norms(void)
{
	double x[LIMIT], w[LIMIT], b[LIMIT], y[LIMIT];
	yoke_scope *s = yoke_scope_begin("norms");
	yoke_module *m[] = { shaken(yoke_nn_layer_norm(E, 1e-3)), shaken(yoke_nn_rms_norm(E, 1e-3)),
			     shaken(yoke_nn_group_norm(2, 4, 1e-3)) };
	for (int k = 0; k < 3; k++) {
		const int64_t rows[] = { B, T, E }, maps[] = { B, 4, 3, 2 };
		const int n = k < 2 ? B * T * E : B * 4 * 3 * 2;
		yoke_tensor *in = k < 2 ? random_x(3, rows, x) : random_x(4, maps, x);
		param(m[k], "weight", w);
		if (k != 1)
			param(m[k], "bias", b);
		normalise(x, k < 2 ? B * T : B * 2, k < 2 ? E : 12, 1e-3, k != 1, y);
		for (int i = 0; i < n; i++) {
			const int c = k < 2 ? i % E : i / 6 % 4;
			y[i] = y[i] * w[c] + (k == 1 ? 0 : b[c]);
		}
		same(yoke_call(m[k], in), y, n,
		     (const char *[]){ "layer norm", "rms norm", "group norm" }[k]);
		yoke_module_free(m[k]);
	}
	yoke_scope_end(s);
}

static void test_batch_norm(void)
{
	enum { C = 4, S = 6, N = B * C * S };
	double x[N], w[C], b[C], mean[C] = { 0 }, var[C] = { 1, 1, 1, 1 }, y[N];
	yoke_module *m = yoke_nn_batch_norm(C, 1e-3, 0.25);
	const int64_t dims[] = { B, C, 3, 2 };
	bool good = m;
	for (int step = 0; step < 100; step++) {
		yoke_scope *s = yoke_scope_begin("batch norm");
		yoke_tensor *in = random_x(4, dims, x);
		if (step == 0)
			for (int i = 0; i < 2; i++) {
				float first[C];
				for (int c = 0; c < C; c++)
					(i ? b : w)[c] = first[c] = (float)rnd_real(0.5, 2);
				good &= yoke_put(yoke_module_own(m, i), first, sizeof first) == 0;
			}
		for (int c = 0; c < C; c++) {
			double now = 0, around = 0;
			for (int i = 0; i < N; i++)
				if (i / S % C == c)
					now += x[i] / (B * S);
			for (int i = 0; i < N; i++)
				if (i / S % C == c)
					around += (x[i] - now) * (x[i] - now) / (B * S);
			for (int i = 0; i < N; i++)
				if (i / S % C == c)
					y[i] = (x[i] - now) / sqrt(around + 1e-3) * w[c] + b[c];
			mean[c] = 0.75 * mean[c] + 0.25 * now;
			var[c] = 0.75 * var[c] + 0.25 * around * (B * S) / (B * S - 1);
		}
		yoke_tensor *out = yoke_call(m, in);
		if (step % 50 == 0)
			same(out, y, N, "batch norm in training");
		else
			good &= yoke_eval(1, &out) == 0;
		yoke_scope_end(s);
	}
	yoke_scope *s = yoke_scope_begin("evaluation");
	yoke_call(m, yoke_full(yoke_f32, 2, (int64_t[]){ 1, C }, 1));
	refused(YOKE_ESHAPE, yoke_error_code(), "too few elements of each channel, 1;");
	same(yoke_module_find(m, "running_mean"), mean, C, "the running mean of 100 steps");
	same(yoke_module_find(m, "running_var"), var, C, "the running variance of 100 steps");
	yoke_module_mode(m, 0);
	yoke_tensor *in = random_x(4, dims, x);
	for (int i = 0; i < N; i++) {
		const int c = i / S % C;
		y[i] = (x[i] - mean[c]) / sqrt(var[c] + 1e-3) * w[c] + b[c];
	}
	same(yoke_call(m, in), y, N, "batch norm in evaluation");
	yoke_scope_end(s);
	ok(good, "batch norm: %s", yoke_error());
	yoke_module_free(m);
}

// x [B,T,E], context [B,S,E] in float64, with the module's own weights.
static void attention_ref(yoke_module *m, const double *x, const double *context, int S, int H,
			  int G, bool causal, double base, double *y)
{
	enum { ROOM = B * 8 * E };
	const int D = E / H;
	double w[E * E], b[E], q[ROOM], k[ROOM], v[ROOM], mixed[ROOM];
	const bool fused = yoke_module_find(m, "qkv.weight");
	yoke_error_clear();
	if (fused) {
		double all[3 * E * E], bias[3 * E];
		param(m, "qkv.weight", all), param(m, "qkv.bias", bias);
		linear_ref(x, B * T, E, E, all, bias, q);
		linear_ref(x, B * T, E, G * D, all + E * E, bias + E, k);
		linear_ref(x, B * T, E, G * D, all + (E + G * D) * E, bias + E + G * D, v);
	} else {
		param(m, "q.weight", w), param(m, "q.bias", b);
		linear_ref(x, B * T, E, E, w, b, q);
		param(m, "k.weight", w), param(m, "k.bias", b);
		linear_ref(context, B * S, E, G * D, w, b, k);
		param(m, "v.weight", w), param(m, "v.bias", b);
		linear_ref(context, B * S, E, G * D, w, b, v);
	}
	for (int of = 0; of < 2 && base > 0; of++) {
		double *z = of ? k : q;
		const int rows = of ? S : T, wide = of ? G : H;
		for (int i = 0; i < B * rows * wide; i++)
			for (int d = 0; d < D / 2; d++) {
				const double angle = i / wide % rows * pow(base, -2. * d / D),
					     c = cos(angle), n = sin(angle);
				double *at = z + i * D + d, x0 = at[0], x1 = at[D / 2];
				at[0] = x0 * c - x1 * n;
				at[D / 2] = x1 * c + x0 * n;
			}
	}
	for (int i = 0; i < B * T * H; i++) {
		const int h = i % H, t = i / H % T, r = i / H / T, g = h / (H / G);
		double p[16], sum = 0;
		const int seen = causal ? t + S - T + 1 : S;
		for (int s = 0; s < seen; s++) {
			p[s] = 0;
			for (int d = 0; d < D; d++)
				p[s] += q[i * D + d] * k[((r * S + s) * G + g) * D + d] / sqrt(D);
			sum += p[s] = exp(p[s]);
		}
		for (int d = 0; d < D; d++) {
			mixed[i * D + d] = 0;
			for (int s = 0; s < seen; s++)
				mixed[i * D + d] += p[s] / sum * v[((r * S + s) * G + g) * D + d];
		}
	}
	param(m, fused ? "proj.weight" : "out.weight", w),
		param(m, fused ? "proj.bias" : "out.bias", b);
	linear_ref(mixed, B * T, E, E, w, b, y);
}

static void test_attention(void)
{
	double x[LIMIT], c[LIMIT], y[LIMIT];
	for (int k = 0; k < 4; k++) {
		yoke_scope *s = yoke_scope_begin("attention");
		const struct yoke_nn_attention_options o = {
			.size = sizeof o,
			.width = E,
			.heads = 4,
			.kv_heads = k & 1 ? 2 : 0,
			.causal = k != 1,
			.bias = 1,
			.rope = k >= 2 ? 100 : 0,
		};
		const int S = k == 1 ? 7 : T;
		yoke_module *m = shaken(yoke_nn_attention(&o));
		yoke_tensor *in[] = { random_x(3, (int64_t[]){ B, T, E }, x),
				      random_x(3, (int64_t[]){ B, S, E }, c) };
		yoke_tensor *out = NULL;
		attention_ref(m, x, k == 1 ? c : x, S, 4, k & 1 ? 2 : 4, o.causal, o.rope, y);
		yoke_forward(m, k == 1 ? 2 : 1, in, 1, &out);
		same(out, y, B * T * E,
		     (const char *[]){ "attention", "attention to a context, grouped",
				       "attention with RoPE", "grouped attention with RoPE" }[k]);
		yoke_module_free(m);
		yoke_scope_end(s);
	}
}

// Tokens that come in chunks, of sequences in one cache or in one cache each, give the same as all
// at once.
static void test_attention_cache(void)
{
	enum { KV = 2, H = 4, ROOM = 7, PARTS = 3 };
	const int end[PARTS] = { 2, 3, T };
	double x[LIMIT], y[LIMIT], want[LIMIT];
	for (int k = 0; k < 4; k++) {
		const struct yoke_nn_attention_options o = {
			.size = sizeof o,
			.width = E,
			.heads = H,
			.kv_heads = KV,
			.causal = 1,
			.bias = 1,
			.rope = k & 1 ? 50 : 0,
			.fused = k & 1,
		};
		const int caches = k < 2 ? 1 : B;
		const int64_t dims[] = { B / caches, ROOM, KV, E / H };
		yoke_tensor *in[1 + 4 * B] = { NULL }, *out = NULL;
		yoke_module *m = shaken(yoke_nn_attention(&o));
		yoke_scope *s = yoke_scope_begin("cache");
		yoke_tensor *whole = random_x(3, (int64_t[]){ B, T, E }, x);
		attention_ref(m, x, x, T, H, KV, true, o.rope, y);
		same(yoke_call(m, whole), y, B * T * E,
		     o.fused ? "fused attention" : "attention of groups");
		for (int c = 0; c < caches; c++) {
			in[1 + 4 * c] = yoke_keep(yoke_variable("keys", yoke_f32, 4, dims));
			in[2 + 4 * c] = yoke_keep(yoke_variable("values", yoke_f32, 4, dims));
			in[3 + 4 * c] = yoke_scalar(0);
			in[4 + 4 * c] = yoke_scalar(0);
		}
		for (int p = 0, from = 0; p < PARTS; from = end[p++]) {
			const int n = end[p] - from;
			for (int c = 0; c < caches; c++) {
				yoke_scalar_set(in[3 + 4 * c], from);
				yoke_scalar_set(in[4 + 4 * c], end[p]);
			}
			in[0] = yoke_slice(whole, 1, from, end[p], 1);
			yoke_forward(m, 1 + 4 * caches, in, 1, &out);
			for (int i = 0; i < B * n * E; i++)
				want[i] = y[(i / (n * E) * T + from) * E + i % (n * E)];
			same(out, want, B * n * E,
			     caches > 1 ? "tokens behind those of a cache each" :
					  "tokens behind those of one cache");
		}
		ok(yoke_forward(m, 4, in, 1, &out) == YOKE_EINVAL &&
			   strstr(yoke_error(), "seen of each cache"),
		   "refused: %s", yoke_error());
		yoke_error_clear();
		for (int c = 0; c < caches; c++) {
			yoke_free(in[1 + 4 * c]);
			yoke_free(in[2 + 4 * c]);
		}
		yoke_scope_end(s);
		yoke_error_clear();
		yoke_module_free(m);
	}
}

// ---- all of a network ----

// A network of most kinds of layers: ids [B,T] -> [B,T,6].
static yoke_module *network(double dropout)
{
	const struct yoke_nn_attention_options o = {
		.size = sizeof o,
		.width = E,
		.heads = 2,
		.causal = 1,
		.bias = 1,
		.dropout = dropout,
		.rope = 50,
	};
	yoke_module *parts[] = { yoke_nn_embedding(11, E),
				 yoke_nn_block(&o),
				 yoke_nn_residual(yoke_nn_mlp(E, 9, E, "silu", dropout)),
				 yoke_nn_rms_norm(E, 1e-5),
				 yoke_nn_dropout(dropout),
				 yoke_nn_linear(E, 6, 0) };
	return yoke_nn_sequential(6, parts);
}

static yoke_tensor *some_ids(int below)
{
	int32_t ids[B * T];
	for (int i = 0; i < B * T; i++)
		ids[i] = (int32_t)rnd_int(0, below - 1);
	return yoke_from(yoke_i32, 2, (int64_t[]){ B, T }, ids);
}

static double loss_of(yoke_module *m, yoke_tensor *ids, yoke_tensor *targets)
{
	float loss = NAN;
	yoke_scope *s = yoke_scope_begin("loss");
	yoke_read(yoke_cross_entropy(yoke_call(m, ids), targets, -1, 0), &loss, sizeof loss);
	yoke_scope_end(s);
	return loss;
}

// In f64 against differences of the loss, for a few elements of each parameter.
static void test_gradients(void)
{
	yoke_tensor *p[64], *g[64];
	const char *names[64];
	yoke_module *m = network(0);
	yoke_module_cast(m, yoke_f64);
	yoke_scope *s = yoke_scope_begin("gradients");
	int n = yoke_module_parameters(m, 64, p, names), wrong = 0, looked = 0;
	yoke_tensor *ids = yoke_keep(some_ids(11)), *targets = yoke_keep(some_ids(6));
	yoke_tensor *loss = yoke_cross_entropy(yoke_call(m, ids), targets, -1, 0);
	bool good = n == 23 && yoke_grad(loss, n, p, g) == 0 && yoke_eval(n, g) == 0;
	for (int i = 0; i < n && good; i++) {
		double v[LIMIT], d[LIMIT];
		const size_t bytes = yoke_bytes(p[i]);
		good = yoke_read(p[i], v, bytes) == 0 && yoke_read(g[i], d, bytes) == 0;
		for (int k = 0; k < 3 && good; k++) {
			const int at = (int)rnd_int(0, yoke_count(p[i]) - 1);
			double x = v[at], h = 1e-5, side[2];
			for (int j = 0; j < 2; j++) {
				double l;
				v[at] = x + (j ? -h : h);
				yoke_put(p[i], v, bytes);
				yoke_scope *in = yoke_scope_begin("loss");
				yoke_read(yoke_cross_entropy(yoke_call(m, ids), targets, -1, 0), &l,
					  sizeof l);
				yoke_scope_end(in);
				side[j] = l;
			}
			v[at] = x;
			yoke_put(p[i], v, bytes);
			const double want = (side[0] - side[1]) / (2 * h);
			if (fabs(want - d[at]) > 1e-6 * (1 + fabs(want))) {
				diag("%s[%d]: %g, by differences %g", names[i], at, d[at], want);
				wrong++;
			}
			looked++;
		}
	}
	yoke_free(ids);
	yoke_free(targets);
	yoke_scope_end(s);
	ok(good && looked == 3 * n && !wrong, "gradients of %d parameters, %d elements: %s", n,
	   looked, yoke_error());
	yoke_module_free(m);
}

static int note(void *arg, const char *path, yoke_tensor *t, unsigned flags)
{
	char *to = arg;
	(void)t;
	strcat(strcat(strcat(to, path), flags & YOKE_MODULE_BUFFER ? "(buffer)" :
					flags & YOKE_MODULE_FROZEN ? "(frozen)" :
								     ""),
	       " ");
	return 0;
}

static void names_are(yoke_module *m, const char *want, const char *what)
{
	char got[2000] = "";
	yoke_module_each(m, note, got);
	if (!ok(!strcmp(got, want), "%s", what))
		diag("%s", got), diag("%s", want);
}

static void test_tree(void)
{
	yoke_tensor *p[8];
	yoke_module *m = yoke_nn_sequential(
		4, (yoke_module *[]){ yoke_nn_embedding(6, 4), yoke_nn_batch_norm(5, 1e-5, .1),
				      yoke_nn_linear(4, 6, 1), yoke_nn_dropout(0.5) });
	names_are(
		m,
		"0.weight 1.weight 1.bias 1.running_mean(buffer) 1.running_var(buffer) 2.weight 2.bias ",
		"names");
	ok(yoke_module_share(m, "2.weight", "0.weight") == 0 &&
		   yoke_module_find(m, "2.weight") == yoke_module_find(m, "0.weight"),
	   "a tied weight: %s", yoke_error());
	names_are(m,
		  "0.weight 1.weight 1.bias 1.running_mean(buffer) 1.running_var(buffer) 2.bias ",
		  "comes once, under its first name");
	ok(yoke_module_freeze(m, "*.weight,!0.*", 1) == 0 &&
		   yoke_module_parameters(m, 8, p, NULL) == 2,
	   "an excluding pattern does not see the other name: %d left",
	   yoke_module_parameters(m, 8, p, NULL));
	yoke_module_freeze(m, "*", 0);
	ok(yoke_module_freeze(m, "1.*", 1) == 0 && yoke_module_parameters(m, 8, p, NULL) == 2,
	   "two parameters are frozen");
	names_are(
		m,
		"0.weight 1.weight(frozen) 1.bias(frozen) 1.running_mean(buffer) 1.running_var(buffer) 2.bias ",
		"and say so");
	ok(yoke_module_training(yoke_module_at(m, 3)) && yoke_module_mode(m, 0) == 0 &&
		   !yoke_module_training(yoke_module_at(m, 3)) && !yoke_module_at(m, 4),
	   "the mode of a network applies to its layers");
	ok(yoke_module_cast(m, yoke_bf16) == 0 &&
		   yoke_dtype(yoke_module_find(m, "2.weight")) == yoke_bf16 &&
		   yoke_module_find(m, "2.weight") == yoke_module_find(m, "0.weight"),
	   "after a cast the weight is still tied: %s", yoke_error());
	yoke_module_free(m);
}

// Two linear layers of 4 to 4.
static yoke_module *two_layers(void)
{
	return yoke_nn_sequential(
		2, (yoke_module *[]){ yoke_nn_linear(4, 4, 1), yoke_nn_linear(4, 4, 0) });
}

static void test_ties(void)
{
	yoke_tensor *p[8];
	yoke_module *m = two_layers(), *n = two_layers(), *l = yoke_nn_linear(4, 4, 0);
	ok(yoke_module_share(m, "0.weight", "1.weight") == 0,
	   "the first layer's weight is the second's: %s", yoke_error());
	names_are(m, "0.weight 0.bias ", "and comes once, whichever was tied to the other");
	ok(yoke_module_share(m, "0.weight", "1.weight") == 0, "tying again changes nothing");
	ok(yoke_module_tie(l, "weight", m, "1.weight") == 0 &&
		   yoke_module_find(l, "weight") == yoke_module_find(m, "0.weight"),
	   "a layer of another network shares it as well: %s", yoke_error());
	ok(yoke_module_tie(n, "0.weight", l, "weight") == 0 &&
		   yoke_module_share(n, "1.weight", "0.weight") == 0,
	   "and two layers of a third network: %s", yoke_error());
	yoke_tensor *w = yoke_module_find(m, "0.weight");
	float one[16], got[16];
	for (int i = 0; i < 16; i++)
		one[i] = (float)i, got[i] = NAN;
	yoke_module_free(m);
	ok(yoke_put(w, one, sizeof one) == 0 &&
		   yoke_read(yoke_module_find(n, "1.weight"), got, sizeof got) == 0 &&
		   got[15] == 15,
	   "it remains when its first network is freed: %s", yoke_error());
	ok(yoke_module_cast(n, yoke_f64) == 0 &&
		   yoke_dtype(yoke_module_find(n, "0.weight")) == yoke_f64 &&
		   yoke_module_find(n, "0.weight") == yoke_module_find(n, "1.weight") &&
		   yoke_module_parameters(n, 8, p, NULL) == 2,
	   "cast in one network, tied there");
	ok(yoke_module_find(l, "weight") == w && yoke_dtype(w) == yoke_f32,
	   "and unchanged in the other network");
	const int code = yoke_module_tie(n, "0.weight", l, "weight");
	ok(code == YOKE_EDTYPE, "tied parameters have one dtype: got %d, want %d", code,
	   YOKE_EDTYPE);
	yoke_error_clear();
	yoke_module_free(l);
	yoke_module_free(n);
	ok(yoke_is_variable(w) < 0, "it is freed with the last module that holds it");
	yoke_error_clear();
}

static void test_facts(void)
{
	yoke_tensor *v = yoke_variable("v", yoke_f32, 0, NULL), *c = yoke_const(1);
	ok(yoke_is_variable(v) == 1 && yoke_is_variable(c) == 0,
	   "a variable is recognized, a literal is not");
	const char *on = yoke_device_of(v);
	int n = 0, found = 0;
	for (const char *name; (name = yoke_device_name(n)); n++)
		found += on && !strcmp(name, on);
	ok(found == 1 && !yoke_device_name(n) && !yoke_device_name(-1) && yoke_error_code() == 0,
	   "a tensor's device, %s, is one of the %d devices", on ? on : "NULL", n);
	yoke_free(v);
	yoke_free(c);
}

// ---- own classes ----

static int released;

static void release(void *state)
{
	released += *(int *)state;
}

// x, y -> x w + y, x
static int pair(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
		yoke_tensor **out)
{
	(void)state;
	if (n != 2 || k != 2)
		return YOKE_EINVAL;
	out[0] = yoke_add(yoke_mul(in[0], yoke_module_own(m, 0)), in[1]);
	out[1] = in[0];
	return 0;
}

static const struct yoke_module_class pair_class = { sizeof pair_class, "pair", pair, release };

static void test_own(void)
{
	int state = 7;
	double x[4], y[4], want[4];
	const int64_t four = 4;
	yoke_module *m = yoke_module_new(&pair_class, &state);
	yoke_module_parameter(m, "w", yoke_f32, 0, NULL, YOKE_FIRST_VALUE, 3);
	yoke_scope *s = yoke_scope_begin("own");
	yoke_tensor *in[] = { random_x(1, &four, x), random_x(1, &four, y) }, *out[2];
	const int err = yoke_forward(m, 2, in, 2, out);
	for (int i = 0; i < 4; i++)
		want[i] = 3 * x[i] + y[i];
	ok(err == 0 && out[1] == in[0],
	   "a custom module returns two values, and may return an operand: %s", yoke_error());
	same(out[0], want, 4, "a class of one's own");
	yoke_scope_end(s);
	ok(yoke_module_state(m) == &state && yoke_module_free(m) == 0 && released == 7,
	   "its state is freed");
}

// ---- files ----

static void swap_prefix(void *arg, const char *name, char *to, size_t room)
{
	(void)arg;
	snprintf(to, room, "%s", strncmp(name, "inner.", 6) ? name : name + 6);
}

static void test_files(void)
{
	yoke_module *m = shaken(network(0.1)), *other = network(0.1),
		    *small = yoke_nn_linear(3, 4, 1),
		    *wrapped = yoke_nn_residual(yoke_nn_linear(3, 4, 1)),
		    *wide = yoke_nn_linear(3, 5, 1), *none = yoke_nn_linear(3, 4, 0);
	yoke_scope *s = yoke_scope_begin("files");
	yoke_tensor *ids = some_ids(11), *targets = some_ids(6);
	yoke_module_mode(m, 0), yoke_module_mode(other, 0);
	const double before = loss_of(other, ids, targets), want = loss_of(m, ids, targets);
	ok(yoke_module_save(m, file) == 0 && yoke_module_load(other, file, NULL) == 0 &&
		   loss_of(other, ids, targets) == want && before != want,
	   "saved and loaded: %g, %g before: %s", want, before, yoke_error());
	double w[LIMIT], got[LIMIT];
	shaken(small), shaken(wrapped);
	param(wrapped, "inner.weight", w);
	ok(yoke_module_save(wrapped, file) == 0 &&
		   yoke_module_load(
			   small, file,
			   &(struct yoke_module_load){ .size = sizeof(struct yoke_module_load),
						       .rename = swap_prefix }) == 0,
	   "a file with the names of another module: %s", yoke_error());
	same(yoke_module_find(small, "weight"), w, 12, "are renamed");
	// invalid ones change nothing, and all are named
	param(wide, "weight", w);
	ok(yoke_module_load(wide, file, NULL) == YOKE_EFORMAT &&
		   strstr(yoke_error(), "'inner.weight' is not known") &&
		   strstr(yoke_error(), "'bias' is missing"),
	   "a file with other names: %s", yoke_error());
	yoke_error_clear();
	ok(yoke_module_save(small, file) == 0 &&
		   yoke_module_load(wide, file, NULL) == YOKE_ESHAPE &&
		   strstr(yoke_error(), "'weight' is [4,3], not [5,3]") &&
		   strstr(yoke_error(), "'bias'"),
	   "a file with other shapes: %s", yoke_error());
	yoke_error_clear();
	param(wide, "weight", got);
	ok(!memcmp(w, got, 15 * sizeof *w), "refused files change nothing");
	ok(yoke_module_load(none, file, NULL) == YOKE_EFORMAT,
	   "a file with one additional tensor: %s", yoke_error());
	yoke_error_clear();
	ok(yoke_module_load(none, file,
			    &(struct yoke_module_load){ .size = sizeof(struct yoke_module_load),
							.partial = 1 }) == 0,
	   "a partial load: %s", yoke_error());
	yoke_module_cast(none, yoke_f16);
	ok(yoke_module_load(none, file,
			    &(struct yoke_module_load){ .size = sizeof(struct yoke_module_load),
							.partial = 1,
							.exact = 1 }) == YOKE_EDTYPE,
	   "an exact dtype is required: %s", yoke_error());
	yoke_error_clear();
	ok(yoke_module_load(none, file,
			    &(struct yoke_module_load){ .size = sizeof(struct yoke_module_load),
							.partial = 1 }) == 0,
	   "or values are cast: %s", yoke_error());
	param(small, "weight", w);
	yoke_module_cast(none, yoke_f32);
	param(none, "weight", got);
	near(got, w, 12, 1e-3, 1, "cast to halves");
	yoke_scope_end(s);
	yoke_module *all[] = { m, other, small, wrapped, wide, none };
	for (int i = 0; i < 6; i++)
		yoke_module_free(all[i]);
	unlink(file);
}

// ---- several files under an index ----

static const char folder[] = "split";

static const char *at(const char *name)
{
	static char path[4][320];
	static int k;
	snprintf(path[k = (k + 1) % 4], sizeof path[0], "%s/%s", folder, name);
	return path[k];
}

// Number of files whose names begin so, and their bytes.
static int files(const char *begin, long *bytes)
{
	struct dirent *e;
	struct stat st;
	int n = 0;
	DIR *d = opendir(folder);
	for (*bytes = 0; d && (e = readdir(d));)
		if (!strncmp(e->d_name, begin, strlen(begin)) && stat(at(e->d_name), &st) == 0)
			*bytes += st.st_size, n++;
	if (d)
		closedir(d);
	return n;
}

static void write_text(const char *name, const char *text)
{
	FILE *f = fopen(at(name), "w");
	if (f)
		fputs(text, f), fclose(f);
}

// An index of two files that is refused and changes nothing.
static void refused_index(yoke_module *m, int code, const char *text, const char *word)
{
	double before[LIMIT], after[LIMIT];
	param(m, "0.weight", before);
	write_text("bad.safetensors.index.json", text);
	refused(code, yoke_module_load(m, at("bad.safetensors.index.json"), NULL), word);
	param(m, "0.weight", after);
	ok(!memcmp(before, after, 12 * sizeof *before), "and nothing is changed");
}

static void test_split(void)
{
	yoke_module *m = shaken(network(0)), *other = network(0);
	yoke_scope *s = yoke_scope_begin("split");
	yoke_tensor *ids = some_ids(11), *targets = some_ids(6);
	const double want = loss_of(m, ids, targets);
	char index[320];
	snprintf(index, sizeof index, "%s", at("net.safetensors.index.json"));
	long bytes;
	bool good = yoke_module_save_split(m, index, 1500) == 0 &&
		    yoke_module_load(other, index, NULL) == 0;
	const int all = files("net-", &bytes);
	ok(good && all > 2 && loss_of(other, ids, targets) == want,
	   "saved in %d files, and loaded: %s", all, yoke_error());
	// over itself, twice: the same number of files, renamed and back
	for (int k = 0; k < 2; k++) {
		shaken(m);
		good = yoke_module_save_split(m, index, 1500) == 0 &&
		       yoke_module_load(other, index, NULL) == 0;
		const int plain = files("net-", &bytes), others = files("net.1-", &bytes);
		ok(good && loss_of(other, ids, targets) == loss_of(m, ids, targets) &&
			   plain == (k ? all : 0) && others == (k ? 0 : all),
		   "saved over itself: %d and %d files of each name: %s", plain, others,
		   yoke_error());
	}
	ok(yoke_module_save_split(m, index, 1 << 30) == 0 && files("net-", &bytes) == 1 &&
		   yoke_module_load(other, index, NULL) == 0,
	   "saved as one file, the others are removed: %s", yoke_error());
	refused(YOKE_EINVAL, yoke_module_save_split(m, at("net.safetensors"), 1500),
		"index is called");
	refused(YOKE_EINVAL, yoke_module_save(m, index), "yoke_module_save_split writes one");
	refused(YOKE_EINVAL, yoke_module_save_split(m, index, 0), "a byte at least");
	yoke_module_free(m);
	yoke_module_free(other);
	// partial, and invalid indexes; two files of a tensor each: a.* and b.*
	yoke_module *two = yoke_nn_sequential(
		2, (yoke_module *[]){ yoke_nn_linear(3, 4, 0), yoke_nn_linear(4, 2, 0) });
	yoke_module *three = yoke_nn_sequential(3, (yoke_module *[]){ yoke_nn_linear(3, 4, 0),
								      yoke_nn_linear(4, 2, 0),
								      yoke_nn_linear(2, 2, 0) });
	double w[LIMIT], got[LIMIT];
	shaken(two), shaken(three);
	snprintf(index, sizeof index, "%s", at("two.safetensors.index.json"));
	ok(yoke_module_save_split(two, index, 1) == 0 && files("two-", &bytes) == 2,
	   "one file per tensor: %s", yoke_error());
	refused(YOKE_EFORMAT, yoke_module_load(three, index, NULL), "'2.weight' is missing");
	ok(yoke_module_load(three, index,
			    &(struct yoke_module_load){ .size = sizeof(struct yoke_module_load),
							.partial = 1 }) == 0,
	   "a partial load of an index: %s", yoke_error());
	param(two, "1.weight", w), param(three, "1.weight", got);
	ok(!memcmp(w, got, 8 * sizeof *w), "loads the existing tensors");
	shaken(two);
#define A "\"0.weight\": \"two-00001-of-00002.safetensors\""
#define B2 "\"1.weight\": \"two-00002-of-00002.safetensors\""
#define MAP(x) "{\"weight_map\": {" x "}}"
	write_text("bad.safetensors.index.json",
		   "{\"metadata\": {\"total_size\": 80.0}, \"weight_map\": {" A ", " B2 "}}");
	ok(yoke_module_load(two, at("bad.safetensors.index.json"), NULL) == 0,
	   "a fractional size is refused: %s", yoke_error());
	static const char *const stale[] = {
		"{\"metadata\": {\"total_size\": 81}, \"weight_map\": {" A ", " B2 "}}",
		"{\"metadata\": {\"total_size\": \"80\"}, \"weight_map\": {" A ", " B2 "}}",
		"{\"metadata\": null, \"weight_map\": {" A ", " B2 "}}"
	};
	for (int i = 0; i < 3; i++) {
		write_text("bad.safetensors.index.json", stale[i]);
		ok(yoke_module_load(two, at("bad.safetensors.index.json"), NULL) == 0,
		   "a wrong total_size is accepted: %s", yoke_error());
	}
	refused_index(two, YOKE_ENOENT, MAP(A ", \"1.weight\": \"two-00003-of-00002.safetensors\""),
		      "'two-00003-of-00002.safetensors' is not in its directory");
	refused_index(two, YOKE_EFORMAT, MAP(A ", " B2 ", " A), "duplicate");
	refused_index(two, YOKE_EFORMAT,
		      MAP(A ", " B2 ", \"2.weight\": \"two-00002-of-00002.safetensors\""),
		      "'2.weight' is not in two-00002-of-00002.safetensors");
	refused_index(two, YOKE_EFORMAT,
		      MAP(A ", \"1.weight\": \"two-00001-of-00002.safetensors\""),
		      "'1.weight' is not in");
	refused_index(two, YOKE_EFORMAT, MAP(A), "is missing");
	refused_index(two, YOKE_EFORMAT,
		      MAP(A ", \"1.weight\": \"../two-00002-of-00002.safetensors\""),
		      "no name of a file");
	refused_index(two, YOKE_EFORMAT, MAP(A ", \"1.weight\": \"/etc/passwd\""),
		      "no name of a file");
	refused_index(two, YOKE_EFORMAT, MAP(A ", \"1.weight\": 2"), "no name of a file");
	refused_index(two, YOKE_EFORMAT, MAP(A ", \"1.weight\": \"bad.safetensors.index.json\""),
		      "bad.safetensors.index.json");
	refused_index(two, YOKE_EFORMAT, "{\"weight_map\": [1]}", "weight_map");
	refused_index(two, YOKE_EFORMAT, "[]", "weight_map");
	refused_index(two, YOKE_EFORMAT, "{\"weight_map\": {", "JSON");
	// a tensor in two files, and one that the index does not list
	if (rename(at("two-00002-of-00002.safetensors"), at("kept")) == 0 &&
	    link(at("two-00001-of-00002.safetensors"), at("two-00002-of-00002.safetensors")) == 0)
		refused_index(
			two, YOKE_EFORMAT, MAP(A ", " B2),
			"'0.weight' is in two-00001-of-00002.safetensors, as listed, and also in");
	unlink(at("two-00002-of-00002.safetensors"));
	ok(yoke_module_save(three, at("two-00002-of-00002.safetensors")) == 0, "another: %s",
	   yoke_error());
	refused_index(two, YOKE_EFORMAT,
		      MAP("\"0.weight\": \"two-00002-of-00002.safetensors\", " B2), "'2.weight'");
	ok(truncate(at("two-00001-of-00002.safetensors"), 100) == 0, "cut");
	refused_index(two, YOKE_EFORMAT, MAP(A ", " B2), "two-00001-of-00002.safetensors");
	yoke_module_free(two);
	yoke_module_free(three);
	yoke_scope_end(s);
}

// ---- training, LoRA, moving ----

static void test_training(void)
{
	yoke_tensor *p[64], *g[64];
	const char *names[64];
	// fixed sequences: two random ones may begin equally and differ later, which nothing can
	// learn
	yoke_random_set(5, 0);
	yoke_module *m = network(0.1);
	yoke_optim *o = yoke_optim_new("adamw", "lr=1e-2");
	int32_t of[2][B * T];
	for (int i = 0; i < B * T; i++) {
		of[0][i] = (7 * i + i / T) % 11; // 0, 3 and 6 first
		of[1][i] = (i * i + 2 * i) % 6;
	}
	yoke_tensor *ids = yoke_keep(yoke_from(yoke_i32, 2, (int64_t[]){ B, T }, of[0]));
	yoke_tensor *targets = yoke_keep(yoke_from(yoke_i32, 2, (int64_t[]){ B, T }, of[1]));
	int n = yoke_module_parameters(m, 64, p, names);
	bool good = yoke_optim_add(o, n, p, names, NULL) == 0;
	struct yoke_stats stats = { .size = sizeof stats };
	uint64_t misses = 0;
	for (int step = 0; step < 90 && good; step++) {
		yoke_random_set(5, step);
		yoke_scope *s = yoke_scope_begin("step");
		yoke_grad(yoke_cross_entropy(yoke_call(m, ids), targets, -1, 0), n, p, g);
		good = yoke_optim_step(o, n, g, NULL) == 0 && yoke_eval(0, NULL) == 0;
		good &= yoke_scope_end(s) == 0;
		yoke_stats(&stats);
		if (step == 2)
			misses = stats.plan_misses;
	}
	ok(good && (stats.plan_misses == misses || tap_eager()), "training makes one plan: %s",
	   yoke_error());
	yoke_module_mode(m, 0);
	ok(loss_of(m, ids, targets) < 0.2, "and memorizes %d targets: loss %g", B * T,
	   loss_of(m, ids, targets));
	// in evaluation nothing is dropped
	yoke_stats(&stats);
	const uint64_t handles = stats.live_handles, bytes = stats.pool_allocated;
	const double before = loss_of(m, ids, targets);
	double after = before;
	const int times = tap_cases(1000, 10000);
	double host = 0; // when the first tenth is over
	for (int i = 0; i < times; i++) {
		after = loss_of(m, ids, targets);
		if (i == times / 10)
			host = tap_resident();
	}
	yoke_stats(&stats);
	host = tap_resident() - host;
	ok(stats.live_handles == handles && stats.pool_allocated == bytes && after == before &&
		   host < 1 << 20,
	   "%d inferences leak nothing: %lld handles, %lld bytes of the device, %.0f of the host",
	   times, (long long)(stats.live_handles - handles),
	   (long long)(stats.pool_allocated - bytes), host);
	// to another context, bit for bit; the optimizer moves with it
	yoke_context *here = yoke_use(NULL), *there = yoke_context_new("cpu");
	yoke_use(here);
	float m1[E], m2[E];
	yoke_tensor *state = yoke_optim_state(o, "3.weight", "m");
	ok(yoke_count(state) == E && yoke_read(state, m1, sizeof m1) == 0,
	   "an optimizer's state: %s", yoke_error());
	refused(YOKE_ECONTEXT, yoke_optim_move(o, there, p), "context to move to");
	good = yoke_module_move(m, there) == 0 && yoke_module_parameters(m, 64, p, names) == n &&
	       yoke_optim_move(o, there, p) == 0;
	yoke_use(there);
	state = yoke_optim_state(o, "3.weight", "m");
	ok(good && yoke_read(state, m2, sizeof m2) == 0 && !memcmp(m1, m2, sizeof m1) &&
		   yoke_optim_steps(o) == 90,
	   "states of moved parameters follow: %s", yoke_error());
	yoke_scope *s = yoke_scope_begin("there");
	const int64_t dims[] = { B, T };
	after = loss_of(m, yoke_from(yoke_i32, 2, dims, of[0]),
			yoke_from(yoke_i32, 2, dims, of[1]));
	yoke_scope_end(s);
	ok(good && fabs(after - before) < 1e-5, "moved to another context: %g, %g: %s", after,
	   before, yoke_error());
	s = yoke_scope_begin("a step there");
	yoke_grad(yoke_cross_entropy(yoke_call(m, yoke_from(yoke_i32, 2, dims, of[0])),
				     yoke_from(yoke_i32, 2, dims, of[1]), -1, 0),
		  n, p, g);
	good = yoke_optim_step(o, n, g, NULL) == 0 && yoke_eval(0, NULL) == 0;
	ok(yoke_scope_end(s) == 0 && good, "and training continues there: %s", yoke_error());
	yoke_use(here);
	// from a context other than its own
	ok(yoke_module_cast(m, yoke_f64) == 0 &&
		   yoke_dtype(yoke_module_find(m, "3.weight")) == yoke_f64,
	   "cast in place: %s", yoke_error());
	refused(YOKE_ECONTEXT, (yoke_call(m, ids), yoke_error_code()), "another context");
	const int64_t three = 3;
	refused(YOKE_ECONTEXT,
		(yoke_module_parameter(yoke_module_at(m, 3), "b", yoke_f32, 1, &three, 0, 0),
		 yoke_error_code()),
		"'b' is of another context");
	refused(YOKE_ECONTEXT, yoke_module_child(m, "more", yoke_nn_linear(2, 2, 0)),
		"'more' is of another context");
	yoke_use(there);
	yoke_module_cast(m, yoke_f32);
	yoke_use(here);
	yoke_context_free(there);
	refused(YOKE_ECONTEXT, yoke_optim_save(o, file), "the context of");
	refused(YOKE_ECONTEXT, (yoke_optim_state(o, "3.weight", "m"), yoke_error_code()),
		"the context of");
	ok(yoke_module_cast(m, yoke_f64) < 0, "a module whose context is freed is not cast: %s",
	   yoke_error());
	yoke_error_clear();
	yoke_optim_free(o);
	yoke_error_clear();
	yoke_module_free(m);
	yoke_error_clear();
	yoke_free(ids);
	yoke_free(targets);
}

static void test_lora(void)
{
	double x[LIMIT], w[LIMIT], a[LIMIT], b[LIMIT], y[LIMIT];
	yoke_tensor *p[8];
	const char *names[8];
	yoke_module *m = yoke_nn_lora(yoke_nn_linear(E, 6, 0), 2, 4);
	const int n = yoke_module_parameters(m, 8, p, names);
	ok(n == 2 && !strcmp(names[0], "a") && !strcmp(names[1], "b"),
	   "LoRA trains only its two of %d parameters", n);
	shaken(m);
	yoke_scope *s = yoke_scope_begin("lora");
	yoke_tensor *in = random_x(2, (int64_t[]){ B, E }, x);
	param(m, "inner.weight", w), param(m, "a", a), param(m, "b", b);
	for (int o = 0; o < 6; o++)
		for (int i = 0; i < E; i++)
			for (int r = 0; r < 2; r++)
				w[o * E + i] += 2 * b[o * 2 + r] * a[r * E + i];
	linear_ref(x, B, E, 6, w, NULL, y);
	same(yoke_call(m, in), y, B * 6, "LoRA");
	ok(yoke_module_fold(m) == 0 && yoke_module_parameters(m, 8, p, NULL) == 0,
	   "folded LoRA gives the same: %s", yoke_error());
	names_are(m, "inner.weight(frozen) ", "the names of what is left stay");
	same(yoke_call(m, in), y, B * 6, "and it computes the same");
	yoke_scope_end(s);
	yoke_module_free(m);
}

// ---- what is refused ----

static int forward_nothing(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
			   yoke_tensor **out)
{
	(void)m, (void)state, (void)n, (void)in, (void)k, (void)out;
	return YOKE_EUNSUPPORTED;
}

static void test_refusals(void)
{
	const int64_t n = dim(3);
	yoke_module *m = yoke_nn_linear(3, 4, 1), *s = yoke_nn_sequential(1, &m),
		    *lone = yoke_nn_linear(3, 4, 1);
	double before[12], after[12];
	param(m, "weight", before);
	refused(YOKE_EINVAL, yoke_module_free(m), "is part of a sequential");
	refused(YOKE_EINVAL, yoke_module_child(m, "up", s), "part of itself");
	refused(YOKE_EINVAL, yoke_module_child(s, "0", yoke_nn_dropout(0)), "already");
	refused(YOKE_EINVAL, yoke_module_child(s, "again", m), "is part of a sequential already");
	refused(YOKE_EINVAL,
		(yoke_module_parameter(m, "bias", yoke_f32, 1, &n, 0, 0), yoke_error_code()),
		"already");
	refused(YOKE_EINVAL,
		(yoke_module_parameter(m, "a.b", yoke_f32, 1, &n, 0, 0), yoke_error_code()),
		"no name");
	refused(YOKE_EDTYPE,
		(yoke_module_parameter(m, "i", yoke_i32, 1, &n, 0, 0), yoke_error_code()),
		"floating point");
	refused(YOKE_ENOENT, yoke_module_freeze(s, "1.*", 1), "1.*");
	refused(YOKE_ENOENT, (yoke_module_find(s, "0.wait"), yoke_error_code()), "0.wait");
	refused(YOKE_ESHAPE, yoke_module_share(s, "0.bias", "0.weight"),
		"'0.bias' is [4], '0.weight' is [4,3]");
	refused(YOKE_EDTYPE, yoke_module_cast(s, yoke_i32), "i32");
	refused(YOKE_EINVAL, (yoke_call(NULL, YOKE_NONE), yoke_error_code()), "module is NULL");
	refused(YOKE_EINVAL, (yoke_nn_linear(0, 4, 1), yoke_error_code()), "in is 0");
	refused(YOKE_EINVAL, (yoke_nn_group_norm(3, 4, 0), yoke_error_code()), "do not divide");
	refused(YOKE_EINVAL, (yoke_nn_dropout(1), yoke_error_code()), "below 1");
	refused(YOKE_ENOENT, (yoke_nn_activation("rely"), yoke_error_code()), "gelu_tanh");
	refused(YOKE_EINVAL,
		(yoke_nn_attention(&(struct yoke_nn_attention_options){
			 .size = sizeof(struct yoke_nn_attention_options),
			 .width = 9,
			 .heads = 2 }),
		 yoke_error_code()),
		"do not divide");
	refused(YOKE_EINVAL, (yoke_nn_lora(s, 2, 1), yoke_error_code()), "linear layer");
	refused(YOKE_EINVAL, (yoke_nn_lora(m, 2, 1), yoke_error_code()), "is part of a sequential");
	refused(YOKE_EINVAL, (yoke_nn_lora(lone, 0, 1), yoke_error_code()), "rank is 0");
	names_are(s, "0.weight 0.bias ", "nothing of it changed names,");
	param(m, "weight", after);
	ok(!memcmp(before, after, sizeof before), "nor are numbers");
	yoke_module_free(lone); // which still belongs to the caller
	refused(YOKE_ENOENT, yoke_module_load(s, "/nonexistent/net", NULL), "nonexistent");
	yoke_module *two[] = { yoke_nn_linear(3, 4, 1), yoke_nn_linear(3, 4, 1) },
		    *bad = yoke_nn_sequential(2, two);
	yoke_scope *scope = yoke_scope_begin("bad");
	yoke_tensor *x = yoke_full(yoke_f32, 1, &n, 1), *y = yoke_call(bad, x);
	ok(!y && strstr(yoke_error(), "sequential/1"), "an error names the layer: %s",
	   yoke_error());
	yoke_scope_end(scope);
	yoke_error_clear();
	yoke_module_free(bad);
	yoke_module_free(s);
}

static void count_release(void *count)
{
	++*(int *)count;
}

// A module with a parameter in the current context, which counts how often it is freed.
static yoke_module *counted(int *count)
{
	static const struct yoke_module_class class = {
		.size = sizeof class,
		.name = "counted",
		.forward = forward_nothing,
		.release = count_release,
	};
	yoke_module *m = yoke_module_new(&class, count);
	yoke_module_parameter(m, "w", yoke_f32, 1, (int64_t[]){ 2 }, YOKE_FIRST_VALUE, 1);
	return m;
}

// Modules that a sequence refuses are freed exactly once, also if one is given twice or together
// with a module that contains it.
static void test_refused_twice(void)
{
	int count[4] = { 0 };
	yoke_context *there = yoke_context_new("cpu"), *here = yoke_use(there);
	yoke_module *twice = counted(&count[0]), *inner = counted(&count[1]),
		    *outer = counted(&count[2]);
	yoke_module_child(outer, "inner", inner);
	yoke_use(here);
	refused(YOKE_ECONTEXT,
		(yoke_nn_sequential(3, (yoke_module *[]){ yoke_nn_linear(3, 3, 1), twice, twice }),
		 yoke_error_code()),
		"another context");
	refused(YOKE_ECONTEXT,
		(yoke_nn_sequential(3, (yoke_module *[]){ yoke_nn_linear(3, 3, 1), outer, inner }),
		 yoke_error_code()),
		"another context");
	ok(count[0] == 1 && count[1] == 1 && count[2] == 1,
	   "each module is freed once: %d, %d and %d times", count[0], count[1], count[2]);
	yoke_module *m = counted(&count[3]);
	refused(YOKE_EINVAL,
		(yoke_nn_sequential(3, (yoke_module *[]){ m, m, NULL }), yoke_error_code()),
		"part of a sequential");
	ok(count[3] == 1, "a module added twice is freed with the sequence: %d times", count[3]);
	yoke_context_free(there);
}

// Tensors of storage-only dtypes beside those of the module: ignored unless requested, and refused
// by name.
static void test_other_dtypes(void)
{
	static const struct {
		const char *dtype;
		int bytes;
	} table[] = { { "BOOL", 1 }, { "I64", 8 },     { "I16", 2 },     { "U64", 8 },
		      { "C64", 8 },  { "F8_E4M3", 1 }, { "F8_E5M2", 1 }, { "F8_E8M0", 1 } };
	for (size_t k = 0; k < sizeof table / sizeof *table; k++)
		for (int whole = 0; whole < 2; whole++) { // otherwise it is loaded with partial=1
			char head[500];
			float data[16] = { 1, 2, 3, 4, 5, 6, 7, 8 };
			const int n = snprintf(
				head, sizeof head,
				"{\"__metadata__\":null,\"weight\":{\"dtype\":\"F32\",\"shape\":[2,3],"
				"\"data_offsets\":[0,24]},\"bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]},"
				"\"%s\":{\"dtype\":\"%s\",\"shape\":[1],\"data_offsets\":[32,%d]}}",
				"other", table[k].dtype, 32 + table[k].bytes);
			const uint64_t length = (uint64_t)n;
			FILE *f = fopen(at("other.safetensors"), "wb");
			memset(data + 8, 0, sizeof data - 32);
			fwrite(&length, 8, 1, f), fwrite(head, 1, length, f),
				fwrite(data, 1, 32 + (size_t)table[k].bytes, f), fclose(f);
			yoke_module *m = yoke_nn_linear(3, 2, 1);
			double bias[LIMIT];
			if (whole) {
				refused(YOKE_EFORMAT,
					yoke_module_load(m, at("other.safetensors"), NULL),
					"'other' is not known");
			} else {
				const struct yoke_module_load partial = { .size = sizeof partial,
									  .partial = 1 };
				ok(yoke_module_load(m, at("other.safetensors"), &partial) == 0,
				   "beside %s: %s", table[k].dtype, yoke_error());
				param(m, "bias", bias);
				ok(bias[0] == 7 && bias[1] == 8, "the bias is %g, %g", bias[0],
				   bias[1]);
			}
			yoke_module_free(m);
		}
	static const char head[] =
		"{\"weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,3],\"data_offsets\":[0,6]}}";
	const uint64_t length = sizeof head - 1;
	FILE *f = fopen(at("eight.safetensors"), "wb");
	fwrite(&length, 8, 1, f), fwrite(head, 1, length, f), fwrite("abcdef", 1, 6, f), fclose(f);
	yoke_module *m = yoke_nn_linear(3, 2, 0);
	refused(YOKE_EDTYPE, yoke_module_load(m, at("eight.safetensors"), NULL),
		"'weight' is F8_E4M3, not f32");
	yoke_module_free(m);
}

int main(void)
{
	tap_folder();
	mkdir(folder, 0777);
	tap_seed();
	yoke_random_set(rnd(), 0);
	test_linear();
	test_norms();
	test_batch_norm();
	test_attention();
	test_attention_cache();
	test_gradients();
	test_tree();
	test_ties();
	test_facts();
	test_own();
	test_files();
	test_other_dtypes();
	test_split();
	test_training();
	test_lora();
	test_refusals();
	test_refused_twice();
	return done();
}
