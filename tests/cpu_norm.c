// SPDX-License-Identifier: Apache-2.0
// Layer norm and RMS norm of the CPU backend against float64 loops; gradients against
// finite differences of those loops.
#include "config.h"

#include "named_op.h"

#define EPS 1e-5

static void reference(const double *x, const double *w, const double *b, int64_t n,
		      bool rms, double *y, double *mean, double *rstd)
{
	double m = 0, s = 0;
	for (int64_t i = 0; i < n && !rms; i++)
		m += x[i] / (double)n;
	for (int64_t i = 0; i < n; i++)
		s += (x[i] - m) * (x[i] - m) / (double)n;
	*mean = m;
	*rstd = 1 / sqrt(s + EPS);
	for (int64_t i = 0; i < n; i++)
		y[i] = (x[i] - m) * *rstd * (w ? w[i] : 1) + (b ? b[i] : 0);
}

struct problem {
	int64_t rows, cols;
	bool rms;
	double *x, *w, *b, *g; // w, b: NULL when absent
};

// sum of g y over row r
static double weighted(const struct problem *p, int64_t r, double *y)
{
	double mean, rstd, sum = 0;
	reference(p->x + r * p->cols, p->w, p->b, p->cols, p->rms, y, &mean, &rstd);
	for (int64_t i = 0; i < p->cols; i++)
		sum += p->g[r * p->cols + i] * y[i];
	return sum;
}

// by central differences; at: the variable, row r is the only one that matters
static double difference(const struct problem *p, int64_t r, double *at, double *y)
{
	const double h = 1e-5, was = *at;
	*at = was + h;
	double up = weighted(p, r, y);
	*at = was - h;
	double down = weighted(p, r, y);
	*at = was;
	return (up - down) / (2 * h);
}

static double *widen(const float *from, int64_t rows, int64_t cols, int64_t stride)
{
	double *to = array_new((size_t)(rows * cols) * sizeof *to);
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < cols; c++)
			to[r * cols + c] = from[r * stride + c];
	return to;
}

static double *doubles(int64_t n)
{
	double *p = array_new((size_t)n * sizeof *p);
	memset(p, 0, (size_t)n * sizeof *p);
	return p;
}

static void shape(const struct yk_isa *isa, int64_t rows, int64_t cols, bool rms,
		  bool affine, bool alias)
{
	const int64_t xs = cols + 2, gs = cols + 3;
	float *x = randoms(rows * xs, -2, 3), *g = randoms(rows * gs, -1, 1),
	      *y = nans(rows * cols);
	float *w = randoms(cols, -1, 2), *b = randoms(cols, -1, 1);
	float *mean = nans(rows), *rstd = nans(rows);
	float *dx = alias ? g : nans(rows * gs), *dw = nans(cols), *db = nans(cols);
	struct problem p = {
		rows,
		cols,
		rms,
		widen(x, rows, cols, xs),
		affine ? widen(w, 1, cols, cols) : NULL,
		affine && !rms ? widen(b, 1, cols, cols) : NULL,
		widen(g, rows, cols, gs),
	};
	double *wy = doubles(rows * cols), *wdx = doubles(rows * cols),
	       *row = doubles(cols);
	double *wmean = doubles(rows), *wrstd = doubles(rows), *wdw = doubles(cols),
	       *wdb = doubles(cols);
	char what[120], name[180];
	for (int64_t r = 0; r < rows; r++) {
		reference(p.x + r * cols, p.w, p.b, cols, rms, wy + r * cols, &wmean[r],
			  &wrstd[r]);
		for (int64_t i = 0; i < cols; i++) {
			double *xi = &p.x[r * cols + i];
			wdx[r * cols + i] = difference(&p, r, xi, row);
			wdw[i] += p.g[r * cols + i] * (*xi - wmean[r]) * wrstd[r];
			wdb[i] += p.g[r * cols + i];
		}
	}
	double steep = 1; // how much the rounding of x - mean grows
	for (int64_t r = 0; r < rows; r++)
		steep = fmax(steep, wrstd[r]);
	snprintf(what, sizeof what, "%s: %s norm %lldx%lld%s%s", isa->name,
		 rms ? "RMS" : "layer", (long long)rows, (long long)cols,
		 affine ? " affine" : "", alias ? " in place" : "");

	struct yoke_view vx = matrix(x, rows, cols, xs), vg = matrix(g, rows, cols, gs);
	struct yoke_view vw = affine ? vector(w, cols) : absent,
			 vb = affine ? vector(b, cols) : absent;
	struct yoke_view vm = vector(mean, rows), vr = vector(rstd, rows);
	struct yoke_view out[3] = { matrix(y, rows, cols, cols), vm, vr },
			 in[5] = { vx, vw, vb };
	struct yoke_op op =
		op_of(rms ? YOKE_OP_RMS_NORM : YOKE_OP_LAYER_NORM, 3, out, 3, in);
	if (rms) {
		out[1] = vr;
		op.nout = op.nin = 2;
	}
	op.attr[0].f = EPS;
	if (!ok(!call(isa, &op), "%s runs", what))
		return;
	near_rows(y, cols, wy, rows, cols, 1e-6, 3 * steep, what);
	snprintf(name, sizeof name, "%s, rstd", what);
	near_rows(rstd, rows, wrstd, 1, rows, 1e-6, steep * steep, name);
	if (!rms) {
		snprintf(name, sizeof name, "%s, mean", what);
		near_rows(mean, rows, wmean, 1, rows, 1e-6, 1, name);
	}

	struct yoke_view back[5] = { vx, vw, vm, vr, vg };
	struct yoke_view dout[3] = { alias ? vg : matrix(dx, rows, cols, gs),
				     vector(dw, cols), vector(db, cols) };
	op = op_of(rms ? YOKE_OP_RMS_NORM_BACK : YOKE_OP_LAYER_NORM_BACK, 3, dout, 5,
		   back);
	if (rms) {
		back[2] = vr;
		back[3] = vg;
		op.nin = 4;
		op.nout = 2;
	} else if (!affine) {
		dout[1] = dout[2] = absent;
	}
	op.alias_mask = alias ? (rms ? 8 : 16) : 0;
	if (!ok(!call(isa, &op), "%s, gradient runs", what))
		return;
	snprintf(name, sizeof name, "%s, dx", what);
	near_rows(dx, gs, wdx, rows, cols, 1e-6, 10 * steep * steep, name);
	if (affine || rms) {
		snprintf(name, sizeof name, "%s, dw", what);
		near_rows(dw, cols, wdw, 1, cols, 1e-6, 3 * (sqrt((double)rows) + steep),
			  name);
	}
	if (affine && !rms) {
		snprintf(name, sizeof name, "%s, db", what);
		near_rows(db, cols, wdb, 1, cols, 3e-6, sqrt((double)rows) + 3, name);
	}
	ok(arrays_free(), "%s stays inside", what);
}

// So large that y and dx are written past the caches; the gradient by its closed form.
static void streamed(const struct yk_isa *isa, bool rms)
{
	const int64_t rows = wide_rows(), cols = WIDE_COLS, n = rows * cols;
	float *x = randoms(n, -2, 3), *g = randoms(n, -1, 1), *y = nans(n), *dx = nans(n);
	float *w = randoms(cols, -1, 2), *mean = nans(rows), *rstd = nans(rows), *dw = nans(cols);
	double *want = malloc((size_t)n * sizeof *want), *wdx = malloc((size_t)n * sizeof *wdx);
	double *wide = doubles(cols), *ww = widen(w, 1, cols, cols), *wdw = doubles(cols);
	struct yoke_view vx = matrix(x, rows, cols, cols), vg = matrix(g, rows, cols, cols);
	struct yoke_view vw = vector(w, cols), vm = vector(mean, rows), vr = vector(rstd, rows);
	struct yoke_view in[3] = { vx, vw, absent };
	struct yoke_view out[3] = { matrix(y, rows, cols, cols), vm, vr };
	struct yoke_view back[5] = { vx, vw, vm, vr, vg },
			 dout[3] = { matrix(dx, rows, cols, cols), vector(dw, cols), absent };
	struct yoke_op op = op_of(rms ? YOKE_OP_RMS_NORM : YOKE_OP_LAYER_NORM, 3, out, 3, in);
	char what[80], name[120];

	snprintf(what, sizeof what, "%s: %s norm of %lld rows", isa->name, rms ? "RMS" : "layer",
		 (long long)rows);
	if (rms) {
		out[1] = vr;
		back[2] = vr, back[3] = vg;
		op.nout = op.nin = 2;
	}
	op.attr[0].f = EPS;
	ok(!call(isa, &op), "%s runs", what);
	for (int64_t r = 0; r < rows; r++) {
		double m, s, u = 0, uh = 0;
		for (int64_t c = 0; c < cols; c++)
			wide[c] = x[r * cols + c];
		reference(wide, ww, NULL, cols, rms, want + r * cols, &m, &s);
		for (int64_t c = 0; c < cols; c++) {
			const double gr = g[r * cols + c], h = (wide[c] - m) * s;
			u += rms ? 0 : gr * ww[c] / (double)cols;
			uh += gr * ww[c] * h / (double)cols;
			wdw[c] += gr * h;
		}
		for (int64_t c = 0; c < cols; c++)
			wdx[r * cols + c] =
				s * (g[r * cols + c] * ww[c] - u - (wide[c] - m) * s * uh);
	}
	near_rows(y, cols, want, rows, cols, 1e-6, 3, what);
	op = rms ? op_of(YOKE_OP_RMS_NORM_BACK, 2, dout, 4, back) :
		   op_of(YOKE_OP_LAYER_NORM_BACK, 3, dout, 5, back);
	ok(!call(isa, &op), "%s, gradient runs", what);
	snprintf(name, sizeof name, "%s, dx", what);
	near_rows(dx, cols, wdx, rows, cols, 1e-6, 10, name);
	snprintf(name, sizeof name, "%s, dw", what);
	near_rows(dw, cols, wdw, 1, cols, 1e-6, 3 * sqrt((double)rows), name);
	free(want);
	free(wdx);
	ok(arrays_free(), "%s stays inside", what);
}

int main(void)
{
	static const int64_t cols[] = { 2, 3, 7, 8, 9, 16, 17, 31, 33, 65, 127 };
	const struct yk_isa *list[3];
	int n = isas(list);
	for (int i = 0; i < n; i++) {
		for (size_t c = 0; c < sizeof cols / sizeof *cols; c++)
			for (int k = 0; k < 8; k++)
				shape(list[i], k & 1 ? 1 : 5, cols[c], k & 2, k & 4,
				      k & 1);
		shape(list[i], 3, 1, false, true, false);
		shape(list[i], 3, 1, true, true, false);
		shape(list[i], 2053, 19, false, true, true);
		shape(list[i], 211, 127, true, true, false);
		shape(list[i], 3, 521, false, true, false);
		for (int rms = 0; rms < 2; rms++)
			streamed(list[i], rms);
	}
	return done();
}
