// SPDX-License-Identifier: Apache-2.0
// Tests products followed by bias, relu or gelu, which vendor libraries compute in one call,
// against float64 on the current device. `epilogues.t DTYPE` tests one dtype, `epilogues.t DTYPE
// plain` only products without epilogue. tests/fake_gpu.sh counts the library's calls.
#include "config.h"

#include "tap.h"
#include "yoke.h"

enum { M = 40, N = 48, K = 56 };
static float a[M * K], b[K * N], row[N], y[M * N];

enum { NOTHING, RELU, GELU_TANH, GELU_ERF, KINDS };
static const char *const names[] = { "nothing", "relu", "gelu by tanh", "gelu by erf" };

static double of_half(double x, int dtype) // x rounded to dtype
{
	int e;

	if (dtype == yoke_f32)
		return (double)(float)x;
	(void)frexp(x, &e);
	const double step = ldexp(dtype == yoke_f16 ? 0x1p-11 : 0x1p-8, e);
	return x == 0 ? 0 : rint(x / step) * step;
}

static yoke_tensor *from(int dtype, int rank, int64_t rows, int64_t cols, const float *x)
{
	const int64_t dims[] = { rows, cols };

	return yoke_cast(yoke_from(yoke_f32, rank, rank == 2 ? dims : dims + 1, x), dtype);
}

static double then(int kind, double x)
{
	switch (kind) {
	case RELU: return x > 0 ? x : 0;
	case GELU_TANH: return x / 2 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
	case GELU_ERF: return x / 2 * (1 + erf(x * M_SQRT1_2));
	default: return x;
	}
}

static int compute(int dtype, int kind, bool bias)
{
	yoke_tensor *f[] = { from(dtype, 2, M, K, a), from(dtype, 2, K, N, b),
			     from(dtype, 1, 1, N, row) };
	int err = yoke_eval(3, f);
	yoke_tensor *x = yoke_matmul(f[0], f[1], 0);

	x = bias ? yoke_add(x, f[2]) : x;
	x = kind == RELU      ? yoke_relu(x) :
	    kind == GELU_TANH ? yoke_gelu_tanh(x) :
	    kind == GELU_ERF  ? yoke_gelu(x) :
				x;
	err = err ? err : yoke_eval(1, &x);
	x = yoke_cast(x, yoke_f32);
	return err ? err : yoke_read(x, y, sizeof y);
}

static void check(int dtype, int kind, bool bias)
{
	const double unit = dtype == yoke_f32 ? 0x1p-22 : dtype == yoke_f16 ? 0x1p-10 : 0x1p-7;
	double worst = 0;

	for (int i = 0; i < M * K; i++)
		a[i] = (float)of_half(rnd_real(-1, 1), dtype);
	for (int i = 0; i < K * N; i++)
		b[i] = (float)of_half(rnd_real(-1, 1), dtype);
	for (int i = 0; i < N; i++)
		row[i] = (float)of_half(rnd_real(-1, 1), dtype);
	memset(y, 0xff, sizeof y);
	yoke_scope *s = yoke_scope_begin("epilogue");
	int err = compute(dtype, kind, bias);
	err = yoke_scope_end(s) || err;
	for (int i = 0; i < M * N; i++) {
		double sum = bias ? (double)row[i % N] : 0, abs = fabs(sum);
		for (int k = 0; k < K; k++) {
			sum += (double)a[i / N * K + k] * (double)b[k * N + i % N];
			abs += fabs((double)a[i / N * K + k] * (double)b[k * N + i % N]);
		}
		const double off = fabs((double)y[i] - then(kind, sum));
		// f32 sums, rounded to the dtype once at the end, or after the product, the row and
		// the end
		worst = fmax(worst, !(off >= 0) ?
					    1e9 :
					    off / (abs * 0x1p-21 + 2 * unit * (1 + fabs(sum))));
	}
	ok(!err && worst < 1, "%s, %s%s: %.2g of the rounding bound %s", yoke_dtype_name(dtype),
	   names[kind], bias ? " of a product and a row" : " of a product", worst, yoke_error());
	yoke_error_clear();
}

int main(int argc, char **argv)
{
	static const int dtypes[] = { yoke_f32, yoke_f16, yoke_bf16 };

	tap_seed();
	for (int i = 0; i < 3; i++)
		for (int kind = NOTHING; kind < (argc > 2 ? RELU : KINDS); kind++)
			for (int bias = 0; bias < (argc > 2 ? 1 : 2); bias++)
				if (argc < 2 || !strcmp(argv[1], yoke_dtype_name(dtypes[i])))
					check(dtypes[i], kind, bias);
	return done();
}
