// SPDX-License-Identifier: Apache-2.0
// Softmax of the CPU backend against float64 loops, its gradient against finite
// differences.
#include "config.h"

#include "named_op.h"

static void reference(const double *x, int64_t n, bool logarithm, double *y)
{
	double m = -INFINITY, sum = 0;
	for (int64_t i = 0; i < n; i++)
		m = fmax(m, x[i]);
	for (int64_t i = 0; i < n; i++)
		sum += exp(x[i] - m);
	for (int64_t i = 0; i < n; i++)
		y[i] = logarithm ? x[i] - m - log(sum) : exp(x[i] - m) / sum;
}

// d (sum g y) / dx by central differences
static void differences(double *x, const double *g, int64_t n, bool logarithm, double *dx,
			double *y)
{
	const double h = 1e-5;
	for (int64_t i = 0; i < n; i++) {
		double sum[2] = { 0, 0 }, at = x[i];
		for (int s = 0; s < 2; s++) {
			x[i] = at + (s ? h : -h);
			reference(x, n, logarithm, y);
			for (int64_t k = 0; k < n; k++)
				sum[s] += g[k] * y[k];
		}
		x[i] = at;
		dx[i] = (sum[1] - sum[0]) / (2 * h);
	}
}

static void shape(const struct yk_isa *isa, int64_t rows, int64_t cols, bool logarithm,
		  bool alias)
{
	const int64_t xs = cols + (alias ? 0 : 3), ys = alias ? xs : cols + 5,
		      gs = cols + 1;
	float *x = randoms(rows * xs, -8, 8), *y = alias ? x : nans(rows * ys);
	float *g = randoms(rows * gs, -1, 1), *dx = alias ? g : nans(rows * cols);
	double *wx = array_new((size_t)(rows * cols) * 8),
	       *wg = array_new((size_t)cols * 8);
	double *want = array_new((size_t)(rows * cols) * 8),
	       *row = array_new((size_t)cols * 8);
	double *wantd = array_new((size_t)(rows * cols) * 8);
	char what[120];
	for (int64_t r = 0; r < rows; r++) {
		for (int64_t c = 0; c < cols; c++) {
			wx[r * cols + c] = x[r * xs + c];
			wg[c] = g[r * gs + c];
		}
		reference(wx + r * cols, cols, logarithm, want + r * cols);
		differences(wx + r * cols, wg, cols, logarithm, wantd + r * cols, row);
	}
	struct yoke_view in[2] = { matrix(x, rows, cols, xs) },
			 out = matrix(y, rows, cols, ys);
	struct yoke_op op = op_of(YOKE_OP_SOFTMAX, 1, &out, 1, in);
	op.attr[0].i = logarithm;
	op.alias_mask = alias;
	snprintf(what, sizeof what, "%s: %ssoftmax %lldx%lld%s", isa->name,
		 logarithm ? "log " : "", (long long)rows, (long long)cols,
		 alias ? " in place" : "");
	if (!ok(!call(isa, &op), "%s runs", what))
		return;
	near_rows(y, ys, want, rows, cols, 2e-6, logarithm ? 1 : 1e-3, what);

	in[0] = out;
	in[1] = matrix(g, rows, cols, gs);
	out = alias ? in[1] : matrix(dx, rows, cols, cols);
	op = op_of(YOKE_OP_SOFTMAX_BACK, 1, &out, 2, in);
	op.attr[0].i = logarithm;
	op.alias_mask = alias ? 2 : 0;
	strcat(what, ", gradient");
	if (ok(!call(isa, &op), "%s runs", what))
		near_rows(dx, alias ? gs : cols, wantd, rows, cols, 2e-6,
			  logarithm ? 8 : 1, what);
	ok(arrays_free(), "%s stays inside", what);
}

// Two strided outer axes; rows with infinities.
static void special(const struct yk_isa *isa)
{
	const int64_t dims[] = { 3, 2, 5 }, strides[] = { 7, 40, 1 };
	float *x = randoms(100, -1, 1), *y = nans(30);
	double want[30];
	for (int i = 0; i < 6; i++) {
		double row[5];
		if (i == 4)
			x[i / 2 * 7 + i % 2 * 40 + 1] = -INFINITY;
		for (int c = 0; c < 5; c++)
			row[c] = x[i / 2 * 7 + i % 2 * 40 + c];
		reference(row, 5, false, want + i * 5);
	}
	struct yoke_view in = strided(x, yoke_f32, 3, dims, strides),
			 out = dense(y, yoke_f32, 3, dims);
	struct yoke_op op = op_of(YOKE_OP_SOFTMAX, 1, &out, 1, &in);
	ok(!call(isa, &op), "%s: strided outer axes run", isa->name);
	near_rows(y, 5, want, 6, 5, 2e-6, 1e-3, "strided outer axes");
	in.strides[2] = 2;
	ok(call(isa, &op) == YOKE_EUNSUPPORTED, "%s: a strided last axis is refused",
	   isa->name);
	in.strides[2] = 1;
	in.dtype = yoke_f64;
	ok(call(isa, &op) == YOKE_EUNSUPPORTED, "%s: f64 is refused", isa->name);
	ok(arrays_free(), "%s: special cases stay inside", isa->name);

	float *nan = randoms(20, -1, 1), *z = nans(20);
	nan[13] = NAN;
	in = vector(nan, 20);
	out = vector(z, 20);
	op = op_of(YOKE_OP_SOFTMAX, 1, &out, 1, &in);
	bool all = !call(isa, &op);
	for (int i = 0; i < 20; i++)
		all &= isnan(z[i]);
	ok(all, "%s: one NaN makes the row NaN", isa->name);
	arrays_free();
}

#ifndef YK_ON_OPENCL
// The bits of a few rows at a time, which are not written past the caches: how many parts differ?
static int64_t parts_that_differ(const struct yk_isa *isa, const struct yoke_op *whole, float *x,
				 const float *y)
{
	enum { FEW = 101, COLS = WIDE_COLS };
	struct yoke_op op = *whole;
	float *z = nans(FEW * COLS);
	const int64_t rows = wide_rows();
	int64_t wrong = 0;

	for (int64_t r = 0; r < rows; r += FEW) {
		const int64_t m = rows - r < FEW ? rows - r : FEW;
		struct yoke_view in = matrix(x + r * COLS, m, COLS, COLS);
		struct yoke_view out = matrix(z, m, COLS, COLS);
		op.in = &in, op.out = &out;
		wrong += run_once(isa->op[op.code], &op, 0) ||
			 memcmp(z, y + r * COLS, (size_t)(m * COLS) * sizeof *z);
	}
	return wrong;
}
#endif

// So large that it is written past the caches, a row behind.
static void streamed(const struct yk_isa *isa, bool logarithm)
{
	const int64_t rows = wide_rows(), cols = WIDE_COLS;
	float *x = randoms(rows * cols, -8, 8), *y = nans(rows * cols);
	double *wide = array_new((size_t)cols * 8), *want = malloc((size_t)(rows * cols) * 8);
	struct yoke_view in = matrix(x, rows, cols, cols), out = matrix(y, rows, cols, cols);
	struct yoke_op op = op_of(YOKE_OP_SOFTMAX, 1, &out, 1, &in);
	char what[80];

	op.attr[0].i = logarithm;
	snprintf(what, sizeof what, "%s: %ssoftmax of %lld rows", isa->name, logarithm ? "log " : "",
		 (long long)rows);
	ok(!call(isa, &op), "%s runs", what);
	for (int64_t r = 0; r < rows; r++) {
		for (int64_t c = 0; c < cols; c++)
			wide[c] = x[r * cols + c];
		reference(wide, cols, logarithm, want + r * cols);
	}
	near_rows(y, cols, want, rows, cols, 2e-6, logarithm ? 1 : 1e-3, what);
	free(want);
#ifndef YK_ON_OPENCL
	const int64_t wrong = parts_that_differ(isa, &op, x, y);
	ok(!wrong, "%s: %lld parts differ from those alone", what, (long long)wrong);
#endif
	ok(arrays_free(), "%s stays inside", what);
}

// The gradient: y and g are any numbers; dx in float64 of them.
static void streamed_back(const struct yk_isa *isa, bool logarithm)
{
	const int64_t rows = wide_rows(), cols = WIDE_COLS;
	float *y = logarithm ? randoms(rows * cols, -9, 0) : randoms(rows * cols, 0, 1);
	float *g = randoms(rows * cols, -1, 1), *dx = nans(rows * cols);
	double *want = malloc((size_t)(rows * cols) * 8);
	struct yoke_view in[2] = { matrix(y, rows, cols, cols), matrix(g, rows, cols, cols) };
	struct yoke_view out = matrix(dx, rows, cols, cols);
	struct yoke_op op = op_of(YOKE_OP_SOFTMAX_BACK, 1, &out, 2, in);
	char what[80];

	op.attr[0].i = logarithm;
	snprintf(what, sizeof what, "%s: gradient of %ssoftmax of %lld rows", isa->name,
		 logarithm ? "log " : "", (long long)rows);
	ok(!call(isa, &op), "%s runs", what);
	for (int64_t r = 0; r < rows; r++) {
		const float *yr = y + r * cols, *gr = g + r * cols;
		double sum = 0;
		for (int64_t c = 0; c < cols; c++)
			sum += gr[c] * (logarithm ? 1.0 : (double)yr[c]);
		for (int64_t c = 0; c < cols; c++)
			want[r * cols + c] = logarithm ? gr[c] - exp(yr[c]) * sum :
							 yr[c] * (gr[c] - sum);
	}
	near_rows(dx, cols, want, rows, cols, 2e-6, sqrt((double)cols), what);
	free(want);
	ok(arrays_free(), "%s stays inside", what);
}

int main(void)
{
	static const int64_t cols[] = { 1,  2,  3,  7,  8,  9,   15, 16,
					17, 31, 33, 63, 65, 127, 257 };
	const struct yk_isa *list[3];
	int n = isas(list);
	for (int i = 0; i < n; i++) {
		for (size_t c = 0; c < sizeof cols / sizeof *cols; c++)
			for (int k = 0; k < 4; k++)
				shape(list[i], k & 1 ? 5 : 1, cols[c], k & 1, k & 2);
		shape(list[i], 1031, 33, false, false);
		special(list[i]);
		for (int logarithm = 0; logarithm < 2; logarithm++) {
			streamed(list[i], logarithm);
			streamed_back(list[i], logarithm);
		}
	}
	return done();
}
