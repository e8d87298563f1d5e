// SPDX-License-Identifier: Apache-2.0
// Tests values larger than a device's largest allocation: they stay in host memory and are
// computed in tiles, with the bits of a device that holds them, or on the CPU. The fault backend
// computes as the CPU does and has segments of 1 MiB.
#include "config.h"

#include "tap.h"
#include "yoke.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum { M = 500, K = 96, N = 700, LIMIT = M * N }; // M N floats are 1.4 MB

static float av[M * K], bv[K * N], lv[M * N];
static yoke_tensor *a, *b;

static yoke_tensor *product(void)
{
	return yoke_matmul(a, b, 0);
}

static yoke_tensor *rows(void)
{
	return yoke_sum(product(), YOKE_AXIS(1));
}

static yoke_tensor *softmaxed(void)
{
	return yoke_reduce_max(yoke_softmax(product(), -1), YOKE_AXIS(1) | YOKE_KEEP);
}

static yoke_tensor *normed(void)
{
	yoke_tensor *y = yoke_layer_norm(yoke_tanh(product()), YOKE_NONE, YOKE_NONE, 1e-5);
	return yoke_argmax(yoke_mul(y, yoke_sum(b, YOKE_AXIS(0))), 1);
}

static yoke_tensor *turned(void) // both operands transposed
{
	yoke_tensor *at = yoke_contiguous(yoke_permute(a, (int[]){ 1, 0 })),
		    *bt = yoke_contiguous(yoke_permute(b, (int[]){ 1, 0 }));
	return yoke_sum(yoke_square(yoke_matmul(at, bt, YOKE_TA | YOKE_TB)), YOKE_AXIS(1));
}

static yoke_tensor *batches(void)
{
	yoke_tensor *x = yoke_reshape(a, 3, DIMS(1, M, K)), *y = yoke_reshape(b, 3, DIMS(1, K, N));
	return yoke_sum(yoke_exp(yoke_matmul(x, y, 0)), YOKE_AXIS(2));
}

static yoke_tensor *spread(void) // the first axis is not an axis of the product
{
	yoke_tensor *two =
		yoke_reshape(yoke_slice(yoke_slice(a, 0, 0, 1, 1), 1, 0, 2, 1), 3, DIMS(2, 1, 1));
	return yoke_sum(yoke_exp(yoke_mul(yoke_reshape(product(), 3, DIMS(1, M, N)), two)),
			YOKE_AXIS(2));
}

static yoke_tensor *rows_too_large(void) // 2 of 1.5 MB
{
	yoke_tensor *x = yoke_reshape(yoke_slice(b, 0, 0, 4, 1), 4, DIMS(2, 2, 700, 1));
	yoke_tensor *y = yoke_reshape(yoke_slice(a, 0, 0, 5, 1), 4, DIMS(1, 1, 1, 5 * K));
	return yoke_reduce_max(yoke_softmax(yoke_mul(x, y), -1), YOKE_AXIS(3));
}

static yoke_tensor *leaf(void)
{
	return yoke_from(yoke_f32, 2, DIMS(M, N), lv);
}

static yoke_tensor *of_a_leaf(void)
{
	return yoke_sum(yoke_tanh(leaf()), YOKE_AXIS(1));
}

static yoke_tensor *part_of_a_leaf(void)
{
	return yoke_mul(yoke_slice(leaf(), 0, 7, 90, 1), yoke_const(3));
}

static yoke_tensor *variable(void) // put, assigned twice, and read
{
	yoke_tensor *v = yoke_variable("v", yoke_f32, 2, DIMS(M, N));
	yoke_put(v, lv, sizeof lv);
	for (int i = 0; i < 2; i++) {
		yoke_assign(v, yoke_add(yoke_mul(v, yoke_const(0.5)), yoke_square(v)));
		yoke_eval(0, NULL);
	}
	return v;
}

static yoke_tensor *zeros(void)
{
	return yoke_variable("zeros", yoke_f32, 2, DIMS(M, N));
}

// a named op of halves is computed in f32, which needs twice the memory
static yoke_tensor *halves(void)
{
	yoke_tensor *h =
		yoke_cast(yoke_concat(2, (yoke_tensor *[]){ leaf(), leaf() }, 0), yoke_bf16);
	return yoke_cast(yoke_reduce_max(yoke_softmax(h, -1), YOKE_AXIS(1)), yoke_f32);
}

static yoke_tensor *summed_down(void) // along the axis of the tiles: not tiled
{
	return yoke_sum(product(), YOKE_AXIS(0));
}

static yoke_tensor *running(void) // no op that can be tiled
{
	return yoke_slice(yoke_cumsum(product(), 0, 0), 0, M - 3, M, 1);
}

static yoke_tensor *loss(void)
{
	yoke_tensor *ids = yoke_slice(yoke_iota(yoke_i64, 1, DIMS(N), 0), 0, 0, M, 1);
	return yoke_cross_entropy(product(), ids, -1, 0);
}

static yoke_tensor *gradient(void)
{
	yoke_tensor *g = NULL;
	yoke_scope *s = yoke_scope_begin("loss"); // which is not used
	yoke_grad(yoke_mean(yoke_square(yoke_sigmoid(product())), YOKE_ALL), 1, &a, &g);
	yoke_lift(g);
	yoke_scope_end(s);
	return g;
}

static const struct {
	const char *name;
	yoke_tensor *(*fn)(void);
	bool close; // the CPU's order of sums differs from the device's: near, not the same bits
	bool crosses; // something is computed, or concatenated, on the CPU
} row[] = { { "rows of a product", rows, false, false },
	    { "softmax", softmaxed, false, false },
	    { "layer norm, a broadcast row, argmax", normed, false, false },
	    { "turned operands", turned, false, false },
	    { "batches of one", batches, false, false },
	    { "a broadcast axis first", spread, false, true },
	    { "rows too large themselves", rows_too_large, false, false },
	    { "softmax of halves", halves, false, true },
	    { "a sum down the rows", summed_down, false, true },
	    { "running sums", running, false, true },
	    { "cross entropy", loss, true, true },
	    { "a result that is read", product, false, true },
	    { "a leaf", of_a_leaf, false, true },
	    { "part of a leaf", part_of_a_leaf, false, true },
	    { "a variable", variable, false, true },
	    { "a variable of zeros", zeros, false, false },
	    { "a gradient", gradient, false, false } };

static size_t run(const char *backend, size_t i, float *got, struct yoke_stats *s)
{
	yoke_context *ctx = yoke_context_new(backend), *former = yoke_use(ctx);
	size_t bytes = 0;
	if (!ctx)
		return 0;
	a = yoke_from(yoke_f32, 2, DIMS(M, K), av);
	b = yoke_from(yoke_f32, 2, DIMS(K, N), bv);
	yoke_tensor *y = row[i].fn();
	if (y && !yoke_read(y, got, yoke_bytes(y)))
		bytes = yoke_bytes(y);
	s->size = sizeof *s;
	yoke_stats(s);
	yoke_use(former);
	yoke_context_free(ctx);
	return bytes;
}

int main(void)
{
	static float want[LIMIT], got[LIMIT];
	const char *modules = getenv("YOKE_TEST_MODULES");
	tap_seed();
	setenv("YOKE_PLUGIN_PATH", modules ? modules : "", 1);
	setenv("YOKE_FAULT_MAX_SEGMENT", "1048576", 1);
	for (int i = 0; i < M * K; i++)
		av[i] = (float)rnd_real(-1, 1);
	for (int i = 0; i < K * N; i++)
		bv[i] = (float)rnd_real(-1, 1);
	for (int i = 0; i < M * N; i++)
		lv[i] = (float)rnd_real(-1, 1);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct yoke_stats s;
		memset(got, 0xff, sizeof got);
		size_t n = run("cpu", i, want, &s), m = run("fault", i, got, &s);
		bool same = n && n == m && !memcmp(got, want, n);
		if (row[i].close)
			same = n && n == m && fabsf(got[0] - want[0]) < 1e-5f * fabsf(want[0]);
		ok(same, "%s: %zu bytes, %llu launches, %llu on the CPU: %s", row[i].name, m,
		   (unsigned long long)s.launches, (unsigned long long)s.fallbacks, yoke_error());
		ok(row[i].crosses == (s.fallbacks > 0), "%s needed fallbacks",
		   row[i].crosses ? "some are" : "none is");
		yoke_error_clear();
	}
	// strict: an op that cannot be tiled is refused, with its size
	yoke_setting_set("strict", "1");
	struct yoke_stats s;
	size_t n = run("fault", 0, got, &s);
	ok(n, "tiles need no CPU: %s", yoke_error());
	n = run("fault", 9, got, &s);
	ok(!n && yoke_error_code() == YOKE_EUNSUPPORTED &&
		   strstr(yoke_error(), "largest allocation"),
	   "tiles work without the CPU: %s", yoke_error());
	yoke_error_clear();
	return done();
}
