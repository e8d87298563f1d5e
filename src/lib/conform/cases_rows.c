// SPDX-License-Identifier: Apache-2.0
// Cases of named ops over rows: SOFTMAX, LAYER_NORM, RMS_NORM, CROSS_ENTROPY and their gradients.
// Tolerances are multiples of the accumulator dtype's rounding unit, bounded by the error of any
// valid order of operations; half-precision storage rounds once more.
#include "config.h"

#include <math.h>

#include "conform/case.h"
#include "yoke.h"

static double unit_of(int dtype)
{
	return 2 * yk_num_unit(yk_num_acc(dtype));
}

// Rows of `cols` elements: dims of rank 1 .. 4.
static int draw_rows(struct yk_case *c, int64_t *dims, int64_t max_cols)
{
	int rank = (int)yk_draw_int(c, 1, 4), times = yk_case_large(c) ? 3 : 1;
	dims[rank - 1] = yk_draw_size(c, times * max_cols);
	int64_t left = times * 20000 / dims[rank - 1] + 1;
	for (int d = rank - 2; d >= 0; d--) {
		dims[d] = yk_draw_size(c, left);
		left /= dims[d];
	}
	if (rank > 1 && !yk_case_plain(c) && yk_draw_one_in(c, 24))
		dims[0] = 0;
	return rank;
}

// Sometimes -infinity or NaN, which affects only its own row.
static struct yk_num odd_number(struct yk_case *c, int dtype, int64_t index)
{
	(void)index;
	double x = yk_draw_one_in(c, 200)  ? -INFINITY :
		   yk_draw_one_in(c, 2000) ? NAN :
					     yk_num_round(yk_draw_real(c, -5, 5), dtype);
	return (struct yk_num){ .f = x };
}

// ---- softmax ----

static void softmax_row(struct yk_expected *y, const struct yk_num *x, int64_t n, int dtype,
			bool logarithm)
{
	const double unit = unit_of(dtype), min = yk_num_min(yk_num_acc(dtype));
	double max = -INFINITY, sum = 0;
	for (int64_t i = 0; i < n; i++)
		max = fmax(max, x[i].f);
	for (int64_t i = 0; i < n; i++)
		sum += exp(x[i].f - max);
	for (int64_t i = 0; i < n; i++) {
		double d = x[i].f - max, p = exp(d) / sum;
		double loss = unit * (12 + fabs(d) + sqrt((double)n));
		if (logarithm)
			yk_expect_real(&y[i], dtype, d - log(sum),
				     loss + 4 * unit * fabs(max));
		else
			yk_expect_real(&y[i], dtype, p, loss * p + 2 * min);
	}
}

bool yk_make_softmax(struct yk_case *c, int dtype)
{
	int64_t dims[YOKE_MAX_RANK];

	yk_case_op(c, YOKE_OP_SOFTMAX);
	int rank = draw_rows(c, dims, 5003);
	const int64_t n = dims[rank - 1];
	double high = yk_draw_one_in(c, 4) ? 60 : 5;
	uint32_t y = yk_case_out(c, dtype, rank, dims, YK_ROWS);
	uint32_t x = yk_draw_one_in(c, 4) ?
			     yk_case_in_by(c, dtype, rank, dims, YK_ROWS, odd_number) :
			     yk_case_in(c, dtype, rank, dims, YK_ROWS | YK_REPEATED,
					-high / 2, high);
	c->op.nattr = 1;
	c->op.attr[0].i = c->number / 3 % 2;
	for (int64_t i = 0; i < c->array[y].n; i += n)
		softmax_row(c->array[y].want + i, c->array[x].num + i, n, dtype,
			    c->op.attr[0].i);
	if (yk_draw_one_in(c, 3))
		yk_case_alias(c, y, x, 0);
	yk_case_note(c, c->op.attr[0].i ? "logarithm" : "");
	return true;
}

bool yk_make_softmax_backward(struct yk_case *c, int dtype)
{
	int64_t dims[YOKE_MAX_RANK];
	const double unit = unit_of(dtype);

	yk_case_op(c, YOKE_OP_SOFTMAX_BACKWARD);
	int rank = draw_rows(c, dims, 5003);
	const int64_t n = dims[rank - 1];
	bool logarithm = c->number / 3 % 2;
	uint32_t dx = yk_case_out(c, dtype, rank, dims, YK_ROWS);
	uint32_t y =
		yk_case_in(c, dtype, rank, dims, YK_ROWS | YK_REPEATED,
			   logarithm ? -8 : 0, logarithm ? -0.1 : 2 / (double)(n + 1));
	uint32_t g = yk_case_in(c, dtype, rank, dims, YK_ROWS | YK_REPEATED, -1, 1);
	c->op.nattr = 1;
	c->op.attr[0].i = logarithm;
	for (int64_t i = 0; i < c->array[dx].n; i += n) {
		const struct yk_num *yr = c->array[y].num + i, *gr = c->array[g].num + i;
		double sum = 0, abs = 0, more = 8 + sqrt((double)n);
		for (int64_t k = 0; k < n; k++) {
			double t = logarithm ? gr[k].f : gr[k].f * yr[k].f;
			sum += t;
			abs += fabs(t);
		}
		for (int64_t k = 0; k < n; k++) {
			double e = exp(yr[k].f), p = logarithm ? e : yr[k].f;
			double v =
				logarithm ? gr[k].f - e * sum : yr[k].f * (gr[k].f - sum);
			double loss = p * (more * abs + 8 * fabs(gr[k].f)) + 4 * fabs(v);
			if (logarithm)
				loss += 4 * fabs(gr[k].f) +
					e * fabs(sum) * (8 + fabs(yr[k].f));
			yk_expect_real(&c->array[dx].want[i + k], dtype, v, unit * loss);
		}
	}
	if (yk_draw_one_in(c, 3))
		yk_case_alias(c, dx, g, 1);
	yk_case_note(c, logarithm ? "logarithm" : "");
	return true;
}

// ---- norms ----

// Mean, 1 / deviation and their error bounds; RMS norm has no mean.
struct moments {
	double mean, rstd, mean_tol, rstd_rel, abs;
};

static struct moments moments_of(const struct yk_num *x, int64_t n, bool layer,
				 double eps, double unit)
{
	struct moments m = { .mean = 0 };
	double square = 0;
	for (int64_t i = 0; i < n; i++) {
		m.mean += x[i].f / (double)n;
		m.abs += fabs(x[i].f) / (double)n;
	}
	if (!layer)
		m.mean = 0;
	for (int64_t i = 0; i < n; i++)
		square += (x[i].f - m.mean) * (x[i].f - m.mean) / (double)n;
	m.rstd = 1 / sqrt(square + eps);
	m.mean_tol = layer ? unit * (4 + sqrt((double)n)) * m.abs : 0;
// the variance has the error of its own sum and, twice, that of the mean
	double lost = unit * (8 + sqrt((double)n)) * square +
		      4 * m.mean_tol * sqrt(square) + m.mean_tol * m.mean_tol;
	m.rstd_rel = 0.5 * lost / (square + eps) + 6 * unit;
	return m;
}

static bool make_norm(struct yk_case *c, int dtype, bool layer)
{
	int64_t dims[YOKE_MAX_RANK];
	const int stat = yk_num_acc(dtype), beside = yk_case_beside(c, dtype);
	const double unit = unit_of(dtype), eps = yk_draw_one_in(c, 2) ? 1e-5 : 1e-3;

	yk_case_op(c, layer ? YOKE_OP_LAYER_NORM : YOKE_OP_RMS_NORM);
	int rank = draw_rows(c, dims, 5003);
	const int64_t n = dims[rank - 1];
	uint32_t y = yk_case_out(c, dtype, rank, dims, YK_ROWS);
	uint32_t mean = layer ? yk_case_out(c, stat, rank - 1, dims, YK_DENSE) : 0;
	uint32_t rstd = yk_case_out(c, stat, rank - 1, dims, YK_DENSE);
	uint32_t x = yk_case_in(c, dtype, rank, dims, YK_ROWS | YK_REPEATED, -1, 3);
	bool has_w = !yk_draw_one_in(c, 4), has_b = layer && !yk_draw_one_in(c, 4);
	uint32_t w =
		has_w ? yk_case_in(c, beside, 1, &n, YK_DENSE, -2, 2) : yk_case_none(c);
	uint32_t b = !layer ? 0 :
		     has_b  ? yk_case_in(c, beside, 1, &n, YK_DENSE, -1, 1) :
			      yk_case_none(c);
	c->op.nattr = 1;
	c->op.attr[0].f = eps;
	for (int64_t r = 0; n && r < c->array[rstd].n; r++) {
		const struct yk_num *row = c->array[x].num + r * n;
		struct moments m = moments_of(row, n, layer, eps, unit);
		if (layer)
			yk_expect_real(&c->array[mean].want[r], stat, m.mean, m.mean_tol);
		yk_expect_real(&c->array[rstd].want[r], stat, m.rstd, m.rstd * m.rstd_rel);
		for (int64_t i = 0; i < n; i++) {
			double wi = has_w ? c->array[w].num[i].f : 1,
			       bi = has_b ? c->array[b].num[i].f : 0;
			double h = (row[i].f - m.mean) * m.rstd;
			double loss = fabs(h) * m.rstd_rel +
				      m.rstd * (m.mean_tol +
						unit * (fabs(row[i].f) + fabs(m.mean)));
			yk_expect_real(&c->array[y].want[r * n + i], dtype, h * wi + bi,
				     fabs(wi) * loss +
					     4 * unit * (fabs(h * wi) + fabs(bi)));
		}
	}
	yk_case_note(c, "%s%s %s", has_w ? "w" : "", has_b ? "b" : "", yoke_dtype_name(beside));
	return true;
}

bool yk_make_layer_norm(struct yk_case *c, int dtype)
{
	return make_norm(c, dtype, true);
}

bool yk_make_rms_norm(struct yk_case *c, int dtype)
{
	return make_norm(c, dtype, false);
}

static void column_sums(struct yk_case *c, uint32_t k, const double *sum, const double *abs,
			int64_t n, int64_t rows)
{
	const double unit = unit_of(c->view[k].dtype);
	for (int64_t i = 0; i < n && c->view[k].kind; i++)
		yk_expect_real(&c->array[k].want[i], c->view[k].dtype, sum[i],
			     unit * (16 + sqrt((double)rows)) * abs[i]);
}

// With h = (x - mean) rstd and u = g w: dx = rstd (u - mean u - h mean(u h)), dw = sum g h, db =
// sum g; RMS norm has no mean u.
static bool make_norm_backward(struct yk_case *c, int dtype, bool layer)
{
	int64_t dims[YOKE_MAX_RANK];
	const int stat = yk_num_acc(dtype), beside = yk_case_beside(c, dtype);
	const double unit = unit_of(dtype);

	yk_case_op(c, layer ? YOKE_OP_LAYER_NORM_BACKWARD : YOKE_OP_RMS_NORM_BACKWARD);
	int rank = draw_rows(c, dims, 2049);
	const int64_t n = dims[rank - 1], rows = yk_count_of(rank - 1, dims);
	uint32_t dx = yk_case_out(c, dtype, rank, dims, YK_ROWS);
	uint32_t dw = yk_case_out(c, beside, 1, &n, YK_DENSE);
	uint32_t db = layer ? yk_case_out(c, beside, 1, &n, YK_DENSE) : 0;
	c->op.nattr = 1;
	c->op.attr[0].i = beside;
	uint32_t x = yk_case_in(c, dtype, rank, dims, YK_ROWS, -1, 3);
	bool has_w = !yk_draw_one_in(c, 4);
	uint32_t w =
		has_w ? yk_case_in(c, beside, 1, &n, YK_DENSE, -2, 2) : yk_case_none(c);
	struct yk_num *means = yk_case_alloc(c, (uint64_t)rows * sizeof *means);
	struct yk_num *rstds = yk_case_alloc(c, (uint64_t)rows * sizeof *rstds);
	for (int64_t r = 0; r < rows; r++) {
		struct moments m =
			moments_of(c->array[x].num + r * n, n, layer, 1e-5, unit);
		means[r].f = m.mean;
		rstds[r].f = m.rstd;
	}
	uint32_t mean =
		layer ? yk_case_in_of(c, stat, rank - 1, dims, YK_DENSE, means) : 0;
	uint32_t rstd = yk_case_in_of(c, stat, rank - 1, dims, YK_DENSE, rstds);
	uint32_t g = yk_case_in(c, dtype, rank, dims, YK_ROWS, -1, 1);
	if (!yk_case_plain(c)) { // results that are not requested
		uint32_t gone = (uint32_t)yk_draw_int(c, 0, layer ? 3 : 2);
		if (gone < c->op.nout)
			c->view[gone] = (struct yoke_view){ .kind = YOKE_VIEW_NONE };
	}
	double *sum = yk_case_alloc(c, (uint64_t)n * 4 * sizeof *sum), *abs = sum + n;
	double *gsum = abs + n, *gabs = gsum + n;
	for (int64_t r = 0; r < rows; r++) {
		const struct yk_num *xr = c->array[x].num + r * n,
				    *gr = c->array[g].num + r * n;
		double mr = layer ? c->array[mean].num[r].f : 0,
		       rs = c->array[rstd].num[r].f;
		double mu = 0, muh = 0, au = 0, auh = 0, more = 16 + sqrt((double)n);
		for (int64_t i = 0; i < n; i++) {
			double u = gr[i].f * (has_w ? c->array[w].num[i].f : 1),
			       h = (xr[i].f - mr) * rs;
			double wide = (fabs(xr[i].f) + fabs(mr)) * rs;
			mu += u / (double)n, au += fabs(u) / (double)n;
			muh += u * h / (double)n, auh += fabs(u) * wide / (double)n;
			sum[i] += gr[i].f * h, abs[i] += fabs(gr[i].f) * wide;
			gsum[i] += gr[i].f, gabs[i] += fabs(gr[i].f);
		}
		if (!layer)
			mu = au = 0;
		for (int64_t i = 0; i < n; i++) {
			double u = gr[i].f * (has_w ? c->array[w].num[i].f : 1),
			       h = (xr[i].f - mr) * rs;
			double wide = (fabs(xr[i].f) + fabs(mr)) * rs;
			yk_expect_real(&c->array[dx].want[r * n + i], dtype,
				     rs * (u - mu - h * muh),
				     unit * more * rs * (fabs(u) + au + wide * auh));
		}
	}
	column_sums(c, dw, sum, abs, n, rows);
	if (layer)
		column_sums(c, db, gsum, gabs, n, rows);
	yk_case_note(c, "w %s", yoke_dtype_name(beside));
	if (c->view[dx].kind && yk_draw_one_in(c, 3))
		yk_case_alias(c, dx, g, layer ? 4 : 3);
	return true;
}

bool yk_make_layer_norm_backward(struct yk_case *c, int dtype)
{
	return make_norm_backward(c, dtype, true);
}

bool yk_make_rms_norm_backward(struct yk_case *c, int dtype)
{
	return make_norm_backward(c, dtype, false);
}

// ---- cross entropy ----

enum { IGNORED = -100 };

struct entropy {
	int64_t n, classes, count; // count: ids that are not ignored
	uint32_t x, ids;
	double smooth;
};

static struct entropy draw_entropy(struct yk_case *c)
{
	struct entropy e = { .n = yk_draw_size(c, 130),
			     .classes = yk_draw_size(c, 2049) };

	if (yk_case_large(c))
		e.classes = yk_draw_int(c, 4097, 9000);
	while (e.n * e.classes > 60000)
		e.n = yk_draw_size(c, e.n / 2);
	e.smooth = yk_draw_one_in(c, 2) ? 0 : 0.125;
	return e;
}

// Values that rise along the row, so that the maximum changes often, starting at -infinity.
static struct yk_num rising_number(struct yk_case *c, int dtype, int64_t index)
{
	double x = (double)index * 1e-3 + yk_draw_real(c, -1, 1);
	return (struct yk_num){ .f = index % 8192 < 2048 ? -INFINITY :
							   yk_num_round(x, dtype) };
}

static void add_logits(struct yk_case *c, int dtype, struct entropy *e, bool odd)
{
	const int64_t dims[] = { e->n, e->classes };
	bool all = yk_draw_one_in(c, 16);

	odd &= e->smooth == 0; // otherwise every class takes part in a mean
	e->x = odd && yk_case_large(c) ?
		       yk_case_in_by(c, dtype, 2, dims, YK_ROWS, rising_number) :
	       odd && yk_draw_one_in(c, 8) ?
		       yk_case_in_by(c, dtype, 2, dims, YK_ROWS, odd_number) :
		       yk_case_in(c, dtype, 2, dims, YK_ROWS, -6, 6);
	struct yk_num *ids = yk_case_alloc(c, (uint64_t)e->n * sizeof *ids);
	for (int64_t r = 0; r < e->n; r++) {
		ids[r].i = all || yk_draw_one_in(c, 6) ?
				   IGNORED :
				   yk_draw_int(c, 0, e->classes - 1);
		e->count += ids[r].i != IGNORED;
	}
	if (yk_draw_one_in(c, 12)) {
		ids[yk_draw_int(c, 0, e->n - 1)].i =
			yk_draw_one_in(c, 2) ? -1 : e->classes;
		c->rejects = true;
	}
	int itype = yk_draw_one_in(c, 2) ? yoke_i32 : yoke_i64;
	e->ids = yk_case_in_of(c, itype, 1, &e->n, YK_DENSE, ids);
	c->op.nattr = 2;
	c->op.attr[0].i = IGNORED;
	c->op.attr[1].f = e->smooth;
	yk_case_note(c, "%lld of %lld ids%s", (long long)e->count, (long long)e->n,
		     e->smooth > 0 ? " smoothed" : "");
}

static double log_sum(const struct yk_num *x, int64_t n, double *max)
{
	double sum = 0;
	*max = -INFINITY;
	for (int64_t i = 0; i < n; i++)
		*max = fmax(*max, x[i].f);
	for (int64_t i = 0; i < n; i++)
		sum += exp(x[i].f - *max);
	return log(sum);
}

bool yk_make_cross_entropy(struct yk_case *c, int dtype)
{
	const int stat = yk_num_acc(dtype);
	const double unit = unit_of(dtype);
	struct entropy e = draw_entropy(c);
	double loss = 0, abs = 0, max;

	yk_case_op(c, YOKE_OP_CROSS_ENTROPY);
	uint32_t y = yk_case_out(c, stat, 0, NULL, YK_DENSE);
	uint32_t lse = yk_case_out(c, stat, 1, &e.n, YK_DENSE);
	add_logits(c, dtype, &e, true);
	for (int64_t r = 0; r < e.n; r++) {
		const struct yk_num *row = c->array[e.x].num + r * e.classes;
		double sum = log_sum(row, e.classes, &max), mean = 0;
		int64_t id = c->array[e.ids].num[r].i;
		yk_expect_real(&c->array[lse].want[r], stat, max + sum,
			     unit * (12 + fabs(max) + sqrt((double)e.classes)));
		if (id < 0 || id >= e.classes)
			continue;
		for (int64_t i = 0; i < e.classes; i++)
			mean += row[i].f / (double)e.classes;
		loss += max + sum - (1 - e.smooth) * row[id].f -
			(e.smooth > 0 ? e.smooth * mean : 0);
		abs += fabs(max) + fabs(sum) + 12 + sqrt((double)e.classes);
	}
	double count = (double)e.count;
	yk_expect_real(&c->array[y].want[0], stat, loss / count,
		     e.count ? unit * (4 + sqrt(count)) * abs / count : 0);
	return true;
}

bool yk_make_cross_entropy_backward(struct yk_case *c, int dtype)
{
	const int stat = yk_num_acc(dtype);
	const double unit = unit_of(dtype);
	struct entropy e = draw_entropy(c);
	double max;

	yk_case_op(c, YOKE_OP_CROSS_ENTROPY_BACKWARD);
	uint32_t dx = yk_case_out(c, dtype, 2, (int64_t[]){ e.n, e.classes }, YK_ROWS);
	add_logits(c, dtype, &e, false);
	struct yk_num *num = yk_case_alloc(c, (uint64_t)e.n * sizeof *num);
	for (int64_t r = 0; r < e.n; r++) {
		num[r].f = log_sum(c->array[e.x].num + r * e.classes, e.classes, &max);
		num[r].f += max;
	}
	uint32_t lse = yk_case_in_of(c, stat, 1, &e.n, YK_DENSE, num);
	uint32_t g =
		yk_case_value(c, stat, (struct yk_num){ .f = yk_draw_real(c, 0.5, 2) });
	double scale = e.count ? c->array[g].num[0].f / (double)e.count : 0;
	for (int64_t r = 0; r < e.n; r++) {
		int64_t id = c->array[e.ids].num[r].i;
		for (int64_t i = 0; i < e.classes; i++) {
			double x = c->array[e.x].num[r * e.classes + i].f,
			       l = c->array[lse].num[r].f;
			double p = exp(x - l), target = e.smooth / (double)e.classes;
			if (i == id)
				target += 1 - e.smooth;
			double v = id == IGNORED ? 0 : (p - target) * scale;
			double abs = unit * scale *
				     ((12 + fabs(x) + fabs(l)) * p + 4 * target);
			yk_expect_real(&c->array[dx].want[r * e.classes + i], dtype, v,
				     id == IGNORED ? 0 : abs);
		}
	}
	if (yk_draw_one_in(c, 2))
		yk_case_alias(c, dx, e.x, 0);
	return true;
}
