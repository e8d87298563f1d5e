// SPDX-License-Identifier: Apache-2.0
// Tests fusion on OpenCL: a product, bias, relu and dropout are one launch, or two (the product
// and a map); also the generated map source for comparisons and for constants in half precision.
#include "config.h"

#include <math.h>

#include "tap.h"
#include "yoke.h"

static uint64_t launches(void)
{
	struct yoke_stats s = { .size = sizeof s };
	yoke_stats(&s);
	return s.launches;
}

static float *randoms(size_t n)
{
	float *p = malloc(n * sizeof *p);
	for (size_t i = 0; p && i < n; i++)
		p[i] = (float)rnd_real(-1, 1);
	return p;
}

// x (M,K) w (K,N) + b (N), relu, dropout of a quarter
static void shape(int64_t M, int64_t N, int64_t K)
{
	float *x = randoms((size_t)(M * K)), *w = randoms((size_t)(K * N));
	float *b = randoms((size_t)N), *y = malloc((size_t)(M * N) * sizeof *y);
	yoke_scope *s = yoke_scope_begin("fused");
	yoke_tensor *tx = yoke_from(yoke_f32, 2, (int64_t[]){ M, K }, x);
	yoke_tensor *tw = yoke_from(yoke_f32, 2, (int64_t[]){ K, N }, w);
	yoke_tensor *tb = yoke_from(yoke_f32, 1, &N, b);
	const uint64_t before = launches();
	yoke_tensor *h = yoke_add(yoke_matmul(tx, tw, 0), tb);
	yoke_tensor *ty = yoke_dropout(yoke_relu(h), 0.25);
	const bool good = !yoke_eval(1, &ty);
	const uint64_t steps = launches() - before;

	ok(good && steps && steps <= 2, "%lldx%lldx%lld: %llu launches%s", (long long)M,
	   (long long)N, (long long)K, (unsigned long long)steps, good ? "" : yoke_error());
	memset(y, 0xff, (size_t)(M * N) * sizeof *y);
	if (!ok(!yoke_read(ty, y, (size_t)(M * N) * sizeof *y), "the result's values")) {
		diag("%s", yoke_error());
		exit(done());
	}
	double worst = 0;
	int64_t dropped = 0, positive = 0;
	for (int64_t i = 0; i < M * N; i++) {
		double want = b[i % N];
		for (int64_t k = 0; k < K; k++)
			want += (double)x[i / N * K + k] * w[k * N + i % N];
		want = want > 0 ? want / 0.75 : 0;
		positive += want > 1e-3;
		dropped += want > 1e-3 && y[i] == 0;
		if (y[i] != 0 || isnan(y[i]))
			worst = fmax(worst, isnan(y[i]) ? INFINITY : fabs(y[i] - want));
	}
	ok(worst < 1e-5 * sqrt((double)K), "values not dropped are at most %.2g off", worst);
	const double share = (double)dropped / (double)positive;
	const double off = 5 * sqrt(0.25 * 0.75 / (double)positive);
	ok(fabs(share - 0.25) < off, "%.4f of %lld values dropped, 0.25 +- %.4f", share,
	   (long long)positive, off);
	yoke_scope_end(s);
	free(x), free(w), free(b), free(y);
}

// Each comparison of smaller, equal, greater values and NaN, and numbers as bool, in one launch.
static void comparisons(void)
{
	enum { N = 16 };
	static yoke_tensor *(*const compare[])(yoke_tensor *, yoke_tensor *) = {
		yoke_eq, yoke_ne, yoke_lt, yoke_le, yoke_gt, yoke_ge
	};
	const float v[] = { -1, 0, 2, NAN };
	float a[N], b[N], got[N];
	const int64_t n = N;
	int wrong = 0;
	for (int i = 0; i < N; i++) {
		a[i] = v[i / 4];
		b[i] = v[i % 4];
	}
	yoke_scope *s = yoke_scope_begin("compared");
	yoke_tensor *x = yoke_from(yoke_f32, 1, &n, a), *y = yoke_from(yoke_f32, 1, &n, b),
		    *sum = NULL;
	for (int k = 0; k < 6; k++) {
		yoke_tensor *one =
			yoke_mul(yoke_cast(compare[k](x, y), yoke_f32), yoke_const(1 << k));
		sum = sum ? yoke_add(sum, one) : one;
	}
	sum = yoke_add(sum, yoke_mul(yoke_cast(yoke_cast(x, yoke_bool), yoke_f32), yoke_const(64)));
	int err = yoke_read(sum, got, sizeof got);
	for (int i = 0; i < N && !err; i++)
		wrong += got[i] != (float)((a[i] != 0) << 6 | (a[i] == b[i]) | (a[i] != b[i]) << 1 |
					   (a[i] < b[i]) << 2 | (a[i] <= b[i]) << 3 |
					   (a[i] > b[i]) << 4 | (a[i] >= b[i]) << 5);
	ok(!err && !wrong, "comparisons: %d differ %s", wrong, yoke_error());
	yoke_scope_end(s);
}

// From f64 to f16 in one rounding: numbers next to the midpoint of two halves, which f32 would
// round to the midpoint.
static void narrowed(void)
{
	enum { N = 8 };
	double a[N];
	uint16_t got[N];
	const int64_t n = N;
	int wrong = 0;
	for (int i = 0; i < N; i++) // halves in [1, 2) are 2^-10 apart
		a[i] = 1 + (i + 0.5) * 0x1p-10 + (i % 2 ? -0x1p-40 : 0x1p-40);
	yoke_scope *s = yoke_scope_begin("narrowed");
	yoke_tensor *x = yoke_from(yoke_f64, 1, &n, a);
	int err = yoke_read(yoke_cast(yoke_mul(x, yoke_const(1)), yoke_f16), got, sizeof got);
	for (int i = 0; i < N && !err; i++)
		wrong += got[i] != 0x3c00 + i + !(i % 2);
	ok(!err && !wrong, "f64 to f16: %d are rounded twice %s", wrong, yoke_error());
	yoke_scope_end(s);
}

int main(void)
{
	const char *module = getenv("YOKE_TEST_OPENCL");
	const char *slash = module ? strrchr(module, '/') : NULL;
	char folder[4096];

	if (!slash)
		return skip_all("YOKE_TEST_OPENCL does not name the module");
	snprintf(folder, sizeof folder, "%.*s", (int)(slash - module), module);
	setenv("YOKE_PLUGIN_PATH", folder, 1);
	yoke_context *c = yoke_context_new("opencl");
	if (!c)
		return skip_all(yoke_error());
	yoke_use(c);
	tap_seed();
	shape(128, 512, 96);
	shape(65, 33, 17);
	shape(300, 100, 520);
	comparisons();
	narrowed();
	struct yoke_stats s = { .size = sizeof s };
	yoke_stats(&s);
	ok(!s.fallbacks, "nothing fell back");
	yoke_context_free(c);
	return done();
}
