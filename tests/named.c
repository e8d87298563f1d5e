// SPDX-License-Identifier: Apache-2.0
// Tests named ops against their decompositions, values and gradients, in f32 on the context's
// device.

#include "config.h"

#include "tap.h"
#include "yoke.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum { LIMIT = 5, ELEMENTS = 4096 };

struct row {
	const char *name;
	int n; // operands
	int rank[4];
	int64_t dims[4][4];
	yoke_tensor *(*fn)(yoke_tensor *const *x);
};

static int32_t ids[12] = { 3, 0, 16, 2, 4, 1, 7, 2, 9, 2, 11, 5 };

#define FN(name, expression) static yoke_tensor *name(yoke_tensor *const *x) { return expression; }
FN(softmax, yoke_softmax(x[0], -1))
FN(log_softmax, yoke_log_softmax(x[0], -1))
FN(layer_norm, yoke_layer_norm(x[0], x[1], x[2], 1e-5))
FN(layer_norm_bare, yoke_layer_norm(x[0], YOKE_NONE, YOKE_NONE, 1e-5))
FN(rms_norm, yoke_rms_norm(x[0], x[1], 1e-5))
FN(xent, yoke_cross_entropy(x[0], yoke_from(yoke_i32, 1, DIMS(12), ids), 2, 0))
FN(xent_smooth, yoke_cross_entropy(x[0], yoke_from(yoke_i32, 1, DIMS(12), ids), -1, 0.2))
FN(attention, yoke_attention(x[0], x[1], x[2], YOKE_NONE, 1, 0, 0))
FN(attention_mask, yoke_attention(x[0], x[1], x[2], yoke_stop_grad(x[3]), 0, 0.3, 0))
FN(attention_keys, yoke_attention_keys(x[0], x[1], x[2], yoke_const(5), YOKE_NONE, 1, 0, 0))
FN(attention_row, yoke_attention_keys(x[0], x[1], x[2], yoke_const(3), YOKE_NONE, 0, 0, 0))
FN(attention_drop, yoke_attention(x[0], x[1], x[2], YOKE_NONE, 1, 0, 0.4))
FN(cumsum, yoke_cumsum(x[0], 1, 0))
FN(cumprod, yoke_cumprod(yoke_mul(x[0], yoke_const(1.5)), 0, 1))
FN(global_norm, yoke_global_norm(3, x))
FN(strided, yoke_softmax(yoke_permute(x[0], (int[]){ 1, 0 }), -1))

static const struct row rows[] = {
	{ "softmax", 1, { 2 }, { { 13, 37 } }, softmax },
	{ "log_softmax", 1, { 3 }, { { 3, 5, 17 } }, log_softmax },
	{ "softmax of a permuted value", 1, { 2 }, { { 13, 37 } }, strided },
	{ "layer_norm", 3, { 3, 1, 1 }, { { 3, 7, 33 }, { 33 }, { 33 } }, layer_norm },
	{ "layer_norm bare", 1, { 2 }, { { 7, 16 } }, layer_norm_bare },
	{ "rms_norm", 2, { 2, 1 }, { { 19, 31 }, { 31 } }, rms_norm },
	{ "cross_entropy", 1, { 2 }, { { 12, 17 } }, xent },
	{ "cross_entropy, smoothed", 1, { 2 }, { { 12, 17 } }, xent_smooth },
	{ "attention",
	  3,
	  { 4, 4, 4 },
	  { { 2, 9, 4, 8 }, { 2, 9, 2, 8 }, { 2, 9, 2, 8 } },
	  attention },
	{ "attention, masked",
	  4,
	  { 4, 4, 4, 4 },
	  { { 1, 5, 2, 7 }, { 1, 6, 2, 7 }, { 1, 6, 2, 7 }, { 1, 2, 5, 6 } },
	  attention_mask },
	{ "attention, some keys",
	  3,
	  { 4, 4, 4 },
	  { { 2, 5, 4, 8 }, { 2, 9, 2, 8 }, { 2, 9, 2, 8 } },
	  attention_keys },
	{ "attention, one query",
	  3,
	  { 4, 4, 4 },
	  { { 2, 1, 4, 8 }, { 2, 9, 2, 8 }, { 2, 9, 2, 8 } },
	  attention_row },
	{ "attention, dropout",
	  3,
	  { 4, 4, 4 },
	  { { 2, 9, 2, 8 }, { 2, 9, 2, 8 }, { 2, 9, 2, 8 } },
	  attention_drop },
	{ "cumsum", 1, { 3 }, { { 3, 37, 5 } }, cumsum },
	{ "cumprod", 1, { 2 }, { { 19, 7 } }, cumprod },
	{ "global_norm", 3, { 2, 1, 3 }, { { 7, 9 }, { 31 }, { 2, 3, 4 } }, global_norm },
};

static size_t count(const struct row *r, int k)
{
	size_t n = 1;
	for (int i = 0; i < r->rank[k]; i++)
		n *= (size_t)r->dims[k][i];
	return n;
}

// The value (last of out) and the gradients of a weighed sum of it; -1: error.
static int64_t run(const struct row *r, float in[LIMIT][ELEMENTS], double out[LIMIT][ELEMENTS])
{
	static float got[ELEMENTS];
	yoke_tensor *x[LIMIT], *all[LIMIT];
	yoke_random_set(11, 2); // the same random numbers each time
	yoke_scope *s = yoke_scope_begin("row");
	for (int k = 0; k < r->n; k++)
		x[k] = yoke_from(yoke_f32, r->rank[k], r->dims[k], in[k]);
	yoke_tensor *y = r->fn(x);
	int64_t n = yoke_count(y);
	yoke_tensor *w = yoke_cos(yoke_iota(yoke_f32, 1, DIMS(n), 0));
	yoke_tensor *f = yoke_sum(yoke_mul(yoke_reshape(y, 1, DIMS(n)), w), YOKE_ALL);
	if (yoke_grad(f, r->n, x, all) < 0)
		return -1;
	all[r->n] = y;
	yoke_eval(r->n + 1, all);
	for (int k = 0; k <= r->n; k++) {
		yoke_read(all[k], got, yoke_bytes(all[k]));
		for (int64_t i = 0; i < yoke_count(all[k]); i++)
			out[k][i] = (double)got[i];
	}
	return yoke_scope_end(s) < 0 ? -1 : n;
}

static void compare(const struct row *r)
{
	static float in[LIMIT][ELEMENTS];
	static double whole[LIMIT][ELEMENTS], parts[LIMIT][ELEMENTS];
	for (int k = 0; k < r->n; k++)
		for (size_t i = 0; i < count(r, k); i++)
			in[k][i] = (float)rnd_real(-1, 1);
	yoke_setting_set("plan.named", "1");
	int64_t n = run(r, in, whole);
	yoke_setting_set("plan.named", "0");
	bool good = n >= 0 && run(r, in, parts) == n;
	if (!ok(good, "%s runs %s", r->name, yoke_error())) {
		yoke_error_clear();
		return;
	}
	near(whole[r->n], parts[r->n], (size_t)n, 3e-6, 1, r->name);
	for (int k = 0; k < r->n; k++) {
		char text[80];
		snprintf(text, sizeof text, "%s: gradient %d", r->name, k);
		near(whole[k], parts[k], count(r, k), 2e-5, 1, text);
	}
}

// Three steps of an optimizer on two tensors; out: the parameters and the first state.
static void steps(bool adam, const char *named, float start[2][64], double out[4][64])
{
	yoke_tensor *p[2], *a[2], *b[2], *g[2];
	yoke_tensor *lr = yoke_scalar(0), *c1 = yoke_scalar(0), *c2 = yoke_scalar(0);
	yoke_tensor *first = yoke_scalar(0), *scale = yoke_scalar(0.7);
	float got[64];
	yoke_setting_set("plan.named", named);
	for (int i = 0; i < 2; i++) {
		p[i] = yoke_variable("p", yoke_f32, 1, DIMS(i ? 64 : 7));
		a[i] = yoke_variable("a", yoke_f32, 1, DIMS(i ? 64 : 7));
		b[i] = yoke_variable("b", yoke_f32, 1, DIMS(i ? 64 : 7));
		yoke_put(p[i], start[i], yoke_bytes(p[i]));
	}
	for (int t = 1; t <= 3; t++) {
		yoke_scope *s = yoke_scope_begin("step");
		for (int i = 0; i < 2; i++)
			g[i] = yoke_sub(yoke_square(p[i]), yoke_const(0.3));
		yoke_scalar_set(lr, 0.02 * t);
		yoke_scalar_set(c1, 1 - pow(0.9, t));
		yoke_scalar_set(c2, 1 - pow(0.95, t));
		yoke_scalar_set(first, t == 1);
		struct yoke_adamw w = { .size = sizeof w, lr, c1, c2, scale, 0.9, 0.95, 1e-8, 0.1 };
		struct yoke_sgd m = { .size = sizeof m, lr, first, scale, 0.9, 0, 0.01, 1 };
		if (adam)
			yoke_adamw_step(2, p, g, a, b, &w);
		else
			yoke_sgd_step(2, p, g, a, &m);
		yoke_eval(0, NULL);
		yoke_scope_end(s);
	}
	for (int i = 0; i < 4; i++) {
		yoke_tensor *t = i < 2 ? p[i] : a[i - 2];
		yoke_read(t, got, yoke_bytes(t));
		for (int64_t k = 0; k < yoke_count(t); k++)
			out[i][k] = (double)got[k];
	}
	for (int i = 0; i < 2; i++) {
		yoke_free(p[i]);
		yoke_free(a[i]);
		yoke_free(b[i]);
	}
}

int main(void)
{
	static float start[2][64];
	static double whole[4][64], parts[4][64];
	tap_seed();
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		compare(&rows[i]);
	for (int i = 0; i < 128; i++)
		start[i / 64][i % 64] = (float)rnd_real(-1, 1);
	for (int adam = 0; adam < 2; adam++) {
		steps(adam, "1", start, whole);
		steps(adam, "0", start, parts);
		for (int i = 0; i < 4; i++)
			near(whole[i], parts[i], i % 2 ? 64 : 7, 5e-6, 1, adam ? "adamw" : "sgd");
	}
	ok(!yoke_error_code(), "no error %s", yoke_error());
	return done();
}
