// SPDX-License-Identifier: Apache-2.0
// Cross entropy of the CPU backend against float64 loops; its gradient against finite
// differences.
#include "config.h"

#include "named_op.h"

enum { IGNORE = -100 };

static double row_loss(const double *x, int64_t n, int64_t id, double smooth, double *lse)
{
	double m = -INFINITY, sum = 0, mean = 0;
	for (int64_t i = 0; i < n; i++)
		m = fmax(m, x[i]);
	for (int64_t i = 0; i < n; i++)
		sum += exp(x[i] - m), mean += x[i] / (double)n;
	*lse = m + log(sum);
	return id == IGNORE ?
		       0 :
		       *lse - (1 - smooth) * x[id] - (smooth > 0 ? smooth * mean : 0);
}

struct ids {
	struct yoke_view view;
	int64_t *i64;
	int32_t *i32;
};

static struct ids ids_new(int64_t n, bool wide)
{
	struct ids x = { .i64 = array_new((size_t)n * 8),
			 .i32 = array_new((size_t)n * 4) };
	x.view = dense(wide ? (void *)x.i64 : (void *)x.i32, wide ? yoke_i64 : yoke_i32,
		       1, &n);
	return x;
}

static void id_set(struct ids *x, int64_t at, int64_t id)
{
	x->i64[at] = id;
	x->i32[at] = (int32_t)id;
}

static void shape(const struct yk_isa *isa, int64_t rows, int64_t cols, bool wide,
		  double smooth, bool alias)
{
	const int64_t xs = cols + 3, ds = alias ? xs : cols + 1;
	const double g = 1.75;
	float *x = randoms(rows * xs, -6, 6), *dx = alias ? x : nans(rows * ds);
	float *loss = nans(1), *lse = nans(rows);
	double *row = array_new((size_t)cols * 8), *wlse = array_new((size_t)rows * 8);
	double *wdx = array_new((size_t)(rows * cols) * 8), wloss = 0, unused;
	struct ids ids = ids_new(rows, wide);
	int64_t count = 0;
	char what[120], name[160];
	snprintf(what, sizeof what, "%s: %lldx%lld %s smooth %g%s", isa->name,
		 (long long)rows, (long long)cols, wide ? "i64" : "i32", smooth,
		 alias ? " in place" : "");
	for (int64_t r = 0; r < rows; r++) {
		id_set(&ids, r, r % 5 == 3 ? IGNORE : rnd_int(0, cols - 1));
		count += ids.i64[r] != IGNORE;
	}
	for (int64_t r = 0; r < rows; r++) {
		const int64_t id = ids.i64[r];
		const double h = 1e-5;
		for (int64_t c = 0; c < cols; c++)
			row[c] = x[r * xs + c];
		wloss += row_loss(row, cols, id, smooth, &wlse[r]) / (double)count;
		for (int64_t c = 0; c < cols; c++) {
			double at = row[c];
			row[c] = at + h;
			double up = row_loss(row, cols, id, smooth, &unused);
			row[c] = at - h;
			double down = row_loss(row, cols, id, smooth, &unused);
			row[c] = at;
			wdx[r * cols + c] = (up - down) / (2 * h) * g / (double)count;
		}
	}
	struct yoke_view in[4] = { matrix(x, rows, cols, xs), ids.view };
	struct yoke_view out[2] = { dense(loss, yoke_f32, 0, NULL), vector(lse, rows) };
	struct yoke_op op = op_of(YOKE_OP_CROSS_ENTROPY, 2, out, 2, in);
	op.attr[0].i = IGNORE;
	op.attr[1].f = smooth;
	if (!ok(!call(isa, &op), "%s runs", what))
		return;
	near_rows(loss, 1, &wloss, 1, 1, 1e-6, 1, what);
	snprintf(name, sizeof name, "%s, lse", what);
	near_rows(lse, rows, wlse, 1, rows, 1e-6, 1, name);

	in[2] = out[1];
	in[3] = scalar(wide ? yoke_f64 : yoke_f32, g);
	out[0] = alias ? in[0] : matrix(dx, rows, cols, ds);
	op = op_of(YOKE_OP_CROSS_ENTROPY_BACK, 1, out, 4, in);
	op.attr[0].i = IGNORE;
	op.attr[1].f = smooth;
	op.alias_mask = alias;
	if (ok(!call(isa, &op), "%s, gradient runs", what)) {
		snprintf(name, sizeof name, "%s, gradient", what);
		near_rows(dx, ds, wdx, rows, cols, 2e-6, g / (double)count, name);
	}
	ok(arrays_free(), "%s stays inside", what);
}

static void bad_ids(const struct yk_isa *isa, int64_t bad, bool wide)
{
	float *x = randoms(7 * 5, -1, 1), *dx = nans(7 * 5), *loss = nans(1),
	      *lse = nans(7);
	struct ids ids = ids_new(7, wide);
	for (int i = 0; i < 7; i++)
		id_set(&ids, i, i < 4 ? i : bad);
	struct yoke_view in[4] = { matrix(x, 7, 5, 5), ids.view, vector(lse, 7),
				   scalar(yoke_f32, 1) };
	struct yoke_view out[2] = { dense(loss, yoke_f32, 0, NULL), vector(lse, 7) };
	struct yoke_op op = op_of(YOKE_OP_CROSS_ENTROPY, 2, out, 2, in);
	op.attr[0].i = IGNORE;
#ifdef YK_ON_OPENCL // found by a launch that goes on
	ok(call(isa, &op) == YOKE_ERANGE && isnan(*loss),
	   "id %lld of 5 is out of range, and makes the loss NaN", (long long)bad);
	out[0] = matrix(dx, 7, 5, 5);
	op = op_of(YOKE_OP_CROSS_ENTROPY_BACK, 1, out, 4, in);
	op.attr[0].i = IGNORE;
	bool good = call(isa, &op) == YOKE_ERANGE;
	for (int i = 0; i < 7 * 5; i++)
		good &= i / 5 < 4 ? isfinite(dx[i]) : isnan(dx[i]);
	ok(good, "in the gradient too, NaN in those rows and in no other");
	ok(arrays_free(), "nothing outside is written");
#else
	ok(call(isa, &op) == YOKE_ERANGE, "%s: id %lld of 5 is out of range", isa->name,
	   (long long)bad);
	out[0] = matrix(dx, 7, 5, 5);
	op = op_of(YOKE_OP_CROSS_ENTROPY_BACK, 1, out, 4, in);
	op.attr[0].i = IGNORE;
	ok(call(isa, &op) == YOKE_ERANGE && isnan(dx[0]),
	   "%s: in the gradient too, nothing written", isa->name);
	arrays_free();
#endif
}

// Rows whose maximum rises along the way, from nothing at all; a NaN at the beginning stays.
static void long_rows(const struct yk_isa *isa)
{
	enum { ROWS = 3, COLS = 6151 };
	float *x = randoms(ROWS * COLS, -1, 1), *loss = nans(1), *lse = nans(ROWS);
	double *row = array_new(COLS * 8), want[ROWS];
	struct ids ids = ids_new(ROWS, false);
	struct yoke_view in[2] = { matrix(x, ROWS, COLS, COLS), ids.view };
	struct yoke_view out[2] = { dense(loss, yoke_f32, 0, NULL), vector(lse, ROWS) };
	struct yoke_op op = op_of(YOKE_OP_CROSS_ENTROPY, 2, out, 2, in);

	op.attr[0].i = IGNORE;
	for (int c = 0; c < COLS; c++) {
		x[c] += (float)c * 0.05f;
		x[COLS + c] = c < 5000 ? -INFINITY : x[COLS + c];
	}
	x[2 * COLS + 1] = NAN;
	for (int r = 0; r < ROWS; r++) {
		id_set(&ids, r, COLS - 1);
		for (int c = 0; c < COLS; c++)
			row[c] = x[r * COLS + c];
		row_loss(row, COLS, COLS - 1, 0, &want[r]);
	}
	ok(!call(isa, &op), "%s: rows of %d run", isa->name, COLS);
	near_rows(lse, 2, want, 1, 2, 1e-6, 1, "long rows, lse");
	ok(isnan(lse[2]) && isnan(*loss), "%s: a NaN in a long row stays: %g, loss %g",
	   isa->name, (double)lse[2], (double)*loss);
	ok(arrays_free(), "%s: long rows stay inside", isa->name);
}

static void all_ignored(const struct yk_isa *isa)
{
	float *x = randoms(3 * 5, -1, 1), *dx = nans(3 * 5), *loss = nans(1),
	      *lse = nans(3);
	struct ids ids = ids_new(3, true);
	for (int i = 0; i < 3; i++)
		id_set(&ids, i, IGNORE);
	*loss = 0;
	struct yoke_view in[4] = { matrix(x, 3, 5, 5), ids.view, vector(lse, 3),
				   scalar(yoke_f32, 1) };
	struct yoke_view out[2] = { dense(loss, yoke_f32, 0, NULL), vector(lse, 3) };
	struct yoke_op op = op_of(YOKE_OP_CROSS_ENTROPY, 2, out, 2, in);
	op.attr[0].i = IGNORE;
	ok(!call(isa, &op) && isnan(*loss), "%s: the mean of no loss is NaN", isa->name);
	out[0] = matrix(dx, 3, 5, 5);
	op = op_of(YOKE_OP_CROSS_ENTROPY_BACK, 1, out, 4, in);
	op.attr[0].i = IGNORE;
	bool zero = !call(isa, &op);
	for (int i = 0; i < 15; i++)
		zero &= dx[i] == 0;
	ok(zero, "%s: its gradient is 0", isa->name);
	arrays_free();
}

int main(void)
{
	static const int64_t cols[] = { 1, 2, 7, 8, 9, 15, 16, 17, 33, 65, 127, 257 };
	const struct yk_isa *list[3];
	int n = isas(list);
	for (int i = 0; i < n; i++) {
		for (size_t c = 0; c < sizeof cols / sizeof *cols; c++)
			for (int k = 0; k < 8; k++)
				shape(list[i], k & 1 ? 7 : 1, cols[c], k & 2,
				      k & 4 ? 0.1 : 0, k & 1);
		shape(list[i], 1031, 65, true, 0.1, false);
		shape(list[i], 2, 2049, false, 0.1, false);
		long_rows(list[i]);
		for (int k = 0; k < 2; k++) {
			bad_ids(list[i], 5, k);
			bad_ids(list[i], -1, k);
		}
		bad_ids(list[i], INT64_C(1) << 40, true);
		all_ignored(list[i]);
	}
	return done();
}
