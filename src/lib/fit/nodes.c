// SPDX-License-Identifier: Apache-2.0
// The built-in node types: how each is fitted to statistics of its input, and its forward
// operations. yk_node_types at the end lists them.
#include "config.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/number.h"
#include "base/param.h"
#include "fit/node.h"
#include "yoke-math.h"

#define EPS { .name = "eps", .def = 1e-6, .min = 0, .max = 1e30 }

// Default eps of nodes that divide by variances, as a fraction of the mean variance: far below the
// noise of any sensor, far above the rounding errors of a direction in which the input is constant.
#define EPS_SHARE { .name = "eps", .def = 1e-11, .min = 0, .max = 1e30 }
#define RELATIVE { .name = "relative", .words = YOKE_NODE_WHOLE, .def = 1, .min = 0, .max = 1 }

static int64_t same(const double *key, int64_t in, char *why, size_t why_size)
{
	(void)key, (void)why, (void)why_size;
	return in;
}

static int line(const double *key, int64_t in, int state, int64_t *dims)
{
	(void)key, (void)state;
	dims[0] = in;
	return 1;
}

// (x - state 0) * state 1
static yoke_tensor *shift_scale(const struct yoke_node_call *c, yoke_tensor *x)
{
	return yoke_mul(yoke_sub(x, c->state[0]), c->state[1]);
}

static void affine_shift_scale(const double *key, int64_t in, const double *const *state, double *a,
			       double *t)
{
	(void)key;
	memset(a, 0, (size_t)(in * in) * sizeof *a);
	for (int64_t i = 0; i < in; i++) {
		a[i * in + i] = state[1][i];
		t[i] = -state[0][i] * state[1][i];
	}
}

static double mean_variance(const struct yoke_node_fit *f)
{
	double mean = 0;
	for (int64_t i = 0; i < f->in; i++)
		mean += f->variance[i] / (double)f->in;
	return mean;
}

// The amount that the keys eps and relative add to each variance; eps itself for a constant input.
static double added_variance(const struct yoke_node_fit *f, double eps, bool relative)
{
	const double mean = mean_variance(f);
	return relative && mean > 0 ? eps * mean : eps;
}

static double key_named(const struct yoke_node_type *t, const double *key, const char *name)
{
	for (int i = 0; i < t->keys; i++)
		if (!strcmp(t->key[i].name, name))
			return key[i];
	return NAN;
}

double yk_node_added(const struct yoke_node_type *t, const struct yoke_node_fit *f, double *mean)
{
	const double relative = key_named(t, f->key, "relative"), eps = key_named(t, f->key, "eps");
	if (isnan(relative) || key_named(t, f->key, "whiten") == 0)
		return NAN;
	*mean = mean_variance(f);
	const double added = added_variance(f, eps, relative != 0);
	yk_log(YOKE_LOG_INFO, "fit", "%s: eps=%g adds %.4g to each variance; their mean is %.4g",
	       f->node, eps, added, *mean);
	if (*mean > 0 && added > 1e-3 * *mean)
		yk_warn("fit",
			"%s: eps=%g adds %.3g to each variance, which is large compared with their mean %.3g and "
			"distorts results; set eps=%.3g%s",
			f->node, eps, added, *mean, relative != 0 ? 1e-11 : 1e-11 * *mean,
			relative != 0 ? "" : ", or relative=1 with eps=1e-11");
	return added;
}

// ---- standard, min_max ----

// Warns once about channels that vary by less than eps and are therefore divided by eps.
static void warn_constant(const struct yoke_node_fit *f, const double *width, double eps)
{
	int64_t first = -1, count = 0;
	double min = INFINITY;
	for (int64_t i = 0; i < f->in; i++)
		if (!(width[i] > eps)) {
			first = first < 0 ? i : first;
			min = width[i] > 0 ? fmin(min, width[i]) : min;
			count++;
		}
	if (count && isfinite(min))
		yk_warn("fit",
			"%s: %lld of %lld channels vary by less than eps=%g and are divided by eps instead; set eps=%.3g",
			f->node, (long long)count, (long long)f->in, eps, 1e-3 * min);
	else if (count)
		yk_warn("fit", "%s: channel %lld does not vary%s; dividing by eps=%g instead",
			f->node, (long long)first, count > 1 ? ", and others do not either" : "",
			eps);
}

// EINVAL: eps and the width of a channel are both 0, which would divide by 0.
static int check_eps(const struct yoke_node_fit *f, const double *width, double eps, char *why,
		     size_t why_size)
{
	for (int64_t i = 0; i < f->in && eps == 0; i++)
		if (!(width[i] > 0)) {
			snprintf(
				why, why_size,
				"channel %lld does not vary, so eps=0 would divide it by 0; set eps above 0",
				(long long)i);
			return YOKE_EINVAL;
		}
	return 0;
}

static int fit_standard(const struct yoke_node_fit *f, double *const *state, char *why,
			size_t why_size)
{
	for (int64_t i = 0; i < f->in; i++) {
		state[0][i] = f->mean[i];
		state[1][i] = sqrt(f->variance[i]);
	}
	if (check_eps(f, state[1], f->key[0], why, why_size) < 0)
		return YOKE_EINVAL;
	warn_constant(f, state[1], f->key[0]);
	for (int64_t i = 0; i < f->in; i++)
		state[1][i] = 1 / fmax(state[1][i], f->key[0]);
	return 0;
}

enum { SCOPE_GLOBAL, SCOPE_CHANNEL };

static int fit_min_max(const struct yoke_node_fit *f, double *const *state, char *why,
		       size_t why_size)
{
	double low = INFINITY, high = -INFINITY;
	for (int64_t i = 0; i < f->in; i++) {
		low = fmin(low, f->min[i]);
		high = fmax(high, f->max[i]);
	}
	for (int64_t i = 0; i < f->in; i++) {
		const bool by_channel = f->key[0] == SCOPE_CHANNEL;
		const double lo = by_channel ? f->min[i] : low, hi = by_channel ? f->max[i] : high;
		state[0][i] = lo;
		state[1][i] = hi - lo;
	}
	if (check_eps(f, state[1], f->key[1], why, why_size) < 0)
		return YOKE_EINVAL;
	warn_constant(f, state[1], f->key[1]);
	for (int64_t i = 0; i < f->in; i++)
		state[1][i] = 1 / fmax(state[1][i], f->key[1]);
	return 0;
}

// ---- pca ----

static int64_t channels_k(const double *key, int64_t in, char *why, size_t why_size)
{
	if (key[0] <= (double)in)
		return (int64_t)key[0];
	yk_snprintf(why, why_size, "k=%g exceeds the %lld channels of its input", key[0],
		    (long long)in);
	return 0;
}

enum { PCA_MEAN, PCA_W, PCA_SCALE, PCA_RATIO };

static int dims_pca(const double *key, int64_t in, int state, int64_t *dims)
{
	const int64_t k = (int64_t)key[0];
	dims[0] = state == PCA_MEAN ? in : k;
	dims[1] = in;
	return state == PCA_W ? 2 : 1;
}

static int fit_pca(const struct yoke_node_fit *f, double *const *state, char *why, size_t why_size)
{
	const int64_t n = f->in, k = (int64_t)f->key[0];
	double *values = calloc((size_t)(n + n * n), sizeof *values), *vectors = values + n,
	       trace = 0;
	yoke_tensor *v;
	if (!values)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for %lld channels", f->node,
			       (long long)n);
	yoke_scope *s = yoke_scope_begin(f->node);
	yoke_tensor *w = yoke_eigh(yoke_from(yoke_f64, 2, (int64_t[]){ n, n }, f->covariance), &v);
	int err = yoke_eval(2, (yoke_tensor *[]){ w, v });
	const double added = f->key[1] != 0 ? added_variance(f, f->key[2], f->key[3] != 0) : 0;
	if (!err)
		err = yoke_read(w, values, (size_t)n * sizeof *values);
	if (!err)
		err = yoke_read(v, vectors, (size_t)(n * n) * sizeof *vectors);
	yoke_scope_end(s);
	for (int64_t i = 0; i < n; i++) {
		trace += f->covariance[i * (n + 1)];
		state[PCA_MEAN][i] = f->mean[i];
	}
	for (int64_t j = 0; j < k && !err; j++) {
		const double lambda = fmax(values[n - 1 - j], 0);
		if (f->key[1] != 0 && added == 0 &&
		    !(lambda > (double)n * DBL_EPSILON * values[n - 1])) {
			snprintf(
				why, why_size,
				"component %lld does not vary, so whiten=1 with eps=0 would divide it by 0; set eps above 0",
				(long long)j);
			err = YOKE_EINVAL;
		}
		for (int64_t i = 0; i < n; i++)
			state[PCA_W][j * n + i] = vectors[i * n + n - 1 - j];
		state[PCA_SCALE][j] = f->key[1] != 0 ? 1 / sqrt(lambda + added) : 1;
		state[PCA_RATIO][j] = trace > 0 ? lambda / trace : 0;
	}
	free(values);
	return err;
}

static yoke_tensor *forward_pca(const struct yoke_node_call *c, yoke_tensor *x)
{
	yoke_tensor *y = yoke_linear(yoke_sub(x, c->state[PCA_MEAN]), c->state[PCA_W], YOKE_NONE);
	return yoke_mul(y, c->state[PCA_SCALE]);
}

static void affine_pca(const double *key, int64_t in, const double *const *state, double *a,
		       double *t)
{
	for (int64_t j = 0; j < (int64_t)key[0]; j++) {
		t[j] = 0;
		for (int64_t i = 0; i < in; i++) {
			a[j * in + i] = state[PCA_W][j * in + i] * state[PCA_SCALE][j];
			t[j] -= a[j * in + i] * state[PCA_MEAN][i];
		}
	}
}

// ---- rx ----

static int64_t channels_one(const double *key, int64_t in, char *why, size_t why_size)
{
	(void)key, (void)in, (void)why, (void)why_size;
	return 1;
}

static int dims_rx(const double *key, int64_t in, int state, int64_t *dims)
{
	(void)key;
	dims[0] = dims[1] = in;
	return state ? 2 : 1;
}

// The smallest eigenvalue of the covariance, from which a message suggests eps; 0 if it cannot be
// computed.
static double min_eigenvalue(const struct yoke_node_fit *f)
{
	double *values = calloc((size_t)f->in, sizeof *values), min = 0;
	yoke_error_clear();
	yoke_scope *s = yoke_scope_begin(f->node);
	yoke_tensor *c = yoke_from(yoke_f64, 2, (int64_t[]){ f->in, f->in }, f->covariance);
	if (values && !yoke_read(yoke_eigh(c, NULL), values, (size_t)f->in * sizeof *values))
		min = values[0];
	yoke_scope_end(s);
	free(values);
	return min;
}

static int fit_rx(const struct yoke_node_fit *f, double *const *state, char *why, size_t why_size)
{
	const int64_t n = f->in;
	double *c = calloc((size_t)(2 * n * n), sizeof *c), *one = c + n * n;
	const double added = added_variance(f, f->key[0], f->key[1] != 0);
	if (!c)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for %lld channels", f->node,
			       (long long)n);
	memcpy(c, f->covariance, (size_t)(n * n) * sizeof *c);
	for (int64_t i = 0; i < n; i++) {
		c[i * (n + 1)] += added;
		one[i * (n + 1)] = 1;
		state[0][i] = f->mean[i];
	}
	yoke_scope *s = yoke_scope_begin(f->node);
	const int64_t dims[2] = { n, n };
	yoke_tensor *l = yoke_cholesky(yoke_from(yoke_f64, 2, dims, c));
	int err = yoke_read(yoke_solve_triangular(l, yoke_from(yoke_f64, 2, dims, one), 0),
			    state[1], (size_t)(n * n) * sizeof *c);
	yoke_scope_end(s);
	if (err == YOKE_ERANGE || err == YOKE_EFAILED) {
		char pivot[80];
		const char *cause = strstr(yoke_error(), "pivot of row");
		snprintf(pivot, sizeof pivot, "%s", cause ? cause : "pivot is not positive");
		const double mean = mean_variance(f), unit = f->key[1] != 0 && mean > 0 ? mean : 1;
		const double min = min_eigenvalue(f);
		yk_snprintf(why, why_size,
			    "the covariance of its input is singular: the %s; set eps=%.3g", pivot,
			    fmax(2 * fabs(min), mean > 0 ? 1e-12 * mean : 1e-12) / unit);
		err = YOKE_ERANGE;
	}
	free(c);
	return err;
}

static yoke_tensor *forward_rx(const struct yoke_node_call *c, yoke_tensor *x)
{
	yoke_tensor *y = yoke_linear(yoke_sub(x, c->state[0]), c->state[1], YOKE_NONE);
	return yoke_sum(yoke_square(y), YOKE_AXIS(yoke_rank(x) - 1) | YOKE_KEEP);
}

// ---- unit ----

static yoke_tensor *forward_unit(const struct yoke_node_call *c, yoke_tensor *x)
{
	const unsigned last = YOKE_AXIS(yoke_rank(x) - 1) | YOKE_KEEP;
	yoke_tensor *norm = yoke_norm(x, 2, last);
	(void)c;
	return yoke_div(x, yoke_select(yoke_eq(norm, yoke_const(0)), yoke_const(1), norm));
}

// ---- sam, ace ----

// For types whose last key is the list `target`: its length must be the number of channels.
static int64_t channels_target(double count, int64_t in, char *why, size_t why_size)
{
	if (count == (double)in)
		return 1;
	yk_snprintf(why, why_size,
		    "target has %.0f numbers, but its input has %lld channels; they must be equal",
		    count, (long long)in);
	return 0;
}

static int64_t channels_sam(const double *key, int64_t in, char *why, size_t why_size)
{
	return channels_target(key[0], in, why, why_size);
}

// Scales x to Euclidean length 1; false if x is 0.
static bool to_unit(double *x, int64_t n)
{
	double max = 0, sum = 0;
	for (int64_t i = 0; i < n; i++)
		max = fmax(max, fabs(x[i]));
	for (int64_t i = 0; i < n && max > 0; i++)
		sum += x[i] / max * (x[i] / max);
	for (int64_t i = 0; i < n && max > 0; i++)
		x[i] = x[i] / max / sqrt(sum);
	return max > 0;
}

static int fit_sam(const struct yoke_node_fit *f, double *const *state, char *why, size_t why_size)
{
	memcpy(state[0], f->list, (size_t)f->in * sizeof *f->list);
	if (to_unit(state[0], f->in))
		return 0;
	snprintf(why, why_size, "target is 0 in all channels, so the angle to it is undefined");
	return YOKE_EINVAL;
}

// 2 atan2(|u - t|, |u + t|), which is exact for small angles as well (Kahan 2006)
static yoke_tensor *forward_sam(const struct yoke_node_call *c, yoke_tensor *x)
{
	const unsigned last = YOKE_AXIS(yoke_rank(x) - 1) | YOKE_KEEP;
	yoke_tensor *u = forward_unit(c, x), *t = c->state[0];
	yoke_tensor *angle =
		yoke_atan2(yoke_norm(yoke_sub(u, t), 2, last), yoke_norm(yoke_add(u, t), 2, last));
	return yoke_mul(angle, yoke_const(2));
}

enum { ACE_MEAN, ACE_U, ACE_TARGET };

static int64_t channels_ace(const double *key, int64_t in, char *why, size_t why_size)
{
	return channels_target(key[2], in, why, why_size);
}

static int dims_ace(const double *key, int64_t in, int state, int64_t *dims)
{
	(void)key;
	dims[0] = state == ACE_TARGET ? 1 : in;
	dims[1] = in;
	return state == ACE_MEAN ? 1 : 2;
}

static int fit_ace(const struct yoke_node_fit *f, double *const *state, char *why, size_t why_size)
{
	const int64_t n = f->in;
	double *to = state[ACE_TARGET];
	int err = fit_rx(f, state, why, why_size);
	for (int64_t i = 0; i < n && !err; i++) {
		to[i] = 0;
		for (int64_t k = 0; k <= i; k++) // U is lower triangular
			to[i] += state[ACE_U][i * n + k] * (f->list[k] - f->mean[k]);
	}
	if (err || to_unit(to, n))
		return err;
	snprintf(why, why_size,
		 "target equals the mean of its input, so its direction is undefined");
	return YOKE_EINVAL;
}

static yoke_tensor *forward_ace(const struct yoke_node_call *c, yoke_tensor *x)
{
	yoke_tensor *z = yoke_linear(yoke_sub(x, c->state[ACE_MEAN]), c->state[ACE_U], YOKE_NONE);
	return yoke_square(yoke_linear(forward_unit(c, z), c->state[ACE_TARGET], YOKE_NONE));
}

// ---- logit ----

static int fit_logit(const struct yoke_node_fit *f, double *const *state, char *why,
		     size_t why_size)
{
	(void)why, (void)why_size;
	for (int64_t i = 0; i < f->in; i++) {
		state[0][i] = f->mean[i] + 2 * sqrt(f->variance[i]);
		state[1][i] = 1;
	}
	return 0;
}

// ---- select ----

static int fit_select(const struct yoke_node_fit *f, double *const *state, char *why,
		      size_t why_size)
{
	const double added = added_variance(f, f->key[1], f->key[2] != 0);
	(void)why, (void)why_size;
	for (int64_t i = 0; i < f->in; i++)
		state[0][i] = log(f->variance[i] + added);
	return 0;
}

double yk_select_temperature(int64_t epoch)
{
	return fmax(0.1, 5 * pow(0.9, (double)epoch));
}

static yoke_tensor *forward_select(const struct yoke_node_call *c, yoke_tensor *x)
{
	const double n = c->key[0];
	yoke_tensor *l = c->state[0], *top_at;
	if (c->training)
		return yoke_mul(
			x, yoke_mul(yoke_softmax(yoke_div(l, yoke_scalar(yk_select_temperature(
								     c->epoch))),
						 -1),
				    yoke_const(n)));
	// of equal values, the first ones are selected
	yoke_tensor *top = yoke_topk(l, (int64_t)n, 0, 1, &top_at);
	yoke_tensor *none = yoke_full(yoke_f32, 1, (int64_t[]){ yoke_dim(l, 0) }, 0);
	return yoke_mul(x, yoke_scatter_add(none, top_at,
					    yoke_add(yoke_mul(top, yoke_const(0)), yoke_const(1))));
}

static void affine_select(const double *key, int64_t in, const double *const *state, double *a,
			  double *t)
{
	memset(a, 0, (size_t)(in * in) * sizeof *a);
	memset(t, 0, (size_t)in * sizeof *t);
	for (int64_t i = 0; i < in; i++) {
		int64_t before = 0;
		for (int64_t k = 0; k < in; k++)
			before +=
				state[0][k] > state[0][i] || (state[0][k] == state[0][i] && k < i);
		a[i * in + i] = (double)before < key[0];
	}
}

static int64_t channels_select(const double *key, int64_t in, char *why, size_t why_size)
{
	if (key[0] <= (double)in)
		return in;
	yk_snprintf(why, why_size, "n=%g exceeds the %lld channels of its input", key[0],
		    (long long)in);
	return 0;
}

// ---- linear ----

static int64_t channels_linear(const double *key, int64_t in, char *why, size_t why_size)
{
	(void)in, (void)why, (void)why_size;
	return (int64_t)key[0];
}

static int dims_linear(const double *key, int64_t in, int state, int64_t *dims)
{
	dims[0] = (int64_t)key[0];
	dims[1] = in;
	return state ? 1 : 2;
}

// Uniform in +- 1 / sqrt(in), from a hash of the seed and the element's index.
static int fit_linear(const struct yoke_node_fit *f, double *const *state, char *why,
		      size_t why_size)
{
	const int64_t k = (int64_t)f->key[0];
	(void)why, (void)why_size;
	for (int64_t i = 0; i < k * f->in; i++) {
		const uint64_t bits = yk_hash_numbers(&i, sizeof i, 1, f->seed);
		state[0][i] = ((double)(bits >> 11) * 0x1p-52 - 1) / sqrt((double)f->in);
	}
	memset(state[1], 0, (size_t)k * sizeof **state);
	return 0;
}

static yoke_tensor *forward_linear(const struct yoke_node_call *c, yoke_tensor *x)
{
	return yoke_linear(x, c->state[0], c->state[1]);
}

static void affine_linear(const double *key, int64_t in, const double *const *state, double *a,
			  double *t)
{
	memcpy(a, state[0], (size_t)((int64_t)key[0] * in) * sizeof *a);
	memcpy(t, state[1], (size_t)key[0] * sizeof *t);
}

// ---- types without states ----

static yoke_tensor *forward_sigmoid(const struct yoke_node_call *c, yoke_tensor *x)
{
	(void)c;
	return yoke_sigmoid(x);
}

static yoke_tensor *forward_decide(const struct yoke_node_call *c, yoke_tensor *x)
{
	return yoke_cast(yoke_gt(x, yoke_const(c->key[0])), yoke_f32);
}

#define K(key_name) \
	{ .name = key_name, .words = YOKE_NODE_WHOLE, .def = NAN, .min = 1, .max = 1 << 15 }

#define TARGET { .name = "target", .words = YOKE_NODE_LIST, .def = NAN, .min = 1, .max = 1 << 15 }

const struct yoke_node_type yk_node_types[] = {
	{ .name = "standard",
	  .keys = 1,
	  .key = { EPS },
	  .wants = YOKE_WANTS_VARIANCE,
	  .states = 2,
	  .state = { "mean", "scale" },
	  .trained = 3,
	  .channels = same,
	  .dims = line,
	  .fit = fit_standard,
	  .forward = shift_scale,
	  .affine = affine_shift_scale,
	  .diagonal = 1 },
	{ .name = "min_max",
	  .keys = 2,
	  .key = { { .name = "scope", .words = "global channel" }, EPS },
	  .wants = YOKE_WANTS_EXTREMES,
	  .states = 2,
	  .state = { "min", "scale" },
	  .trained = 3,
	  .channels = same,
	  .dims = line,
	  .fit = fit_min_max,
	  .forward = shift_scale,
	  .affine = affine_shift_scale,
	  .diagonal = 1 },
	{ .name = "pca",
	  .keys = 4,
	  .key = { K("k"),
		   { .name = "whiten", .words = YOKE_NODE_WHOLE, .def = 0, .min = 0, .max = 1 },
		   EPS_SHARE,
		   RELATIVE },
	  .wants = YOKE_WANTS_COVARIANCE,
	  .states = 4,
	  .state = { "mean", "w", "scale", "ratio" },
	  .trained = 2,
	  .channels = channels_k,
	  .dims = dims_pca,
	  .fit = fit_pca,
	  .forward = forward_pca,
	  .affine = affine_pca },
	{ .name = "rx",
	  .keys = 2,
	  .key = { EPS_SHARE, RELATIVE },
	  .wants = YOKE_WANTS_COVARIANCE,
	  .states = 2,
	  .state = { "mean", "u" },
	  .trained = 3,
	  .channels = channels_one,
	  .dims = dims_rx,
	  .fit = fit_rx,
	  .forward = forward_rx },
	{ .name = "logit",
	  .wants = YOKE_WANTS_VARIANCE,
	  .states = 2,
	  .state = { "threshold", "scale" },
	  .trained = 3,
	  .channels = same,
	  .dims = line,
	  .fit = fit_logit,
	  .forward = shift_scale,
	  .affine = affine_shift_scale,
	  .diagonal = 1 },
	{ .name = "select",
	  .keys = 3,
	  .key = { K("n"), EPS_SHARE, RELATIVE },
	  .wants = YOKE_WANTS_VARIANCE,
	  .states = 1,
	  .state = { "l" },
	  .trained = 1,
	  .channels = channels_select,
	  .dims = line,
	  .fit = fit_select,
	  .forward = forward_select,
	  .affine = affine_select,
	  .diagonal = 1 },
	{ .name = "linear",
	  .keys = 1,
	  .key = { K("k") },
	  .states = 2,
	  .state = { "w", "b" },
	  .trained = 3,
	  .channels = channels_linear,
	  .dims = dims_linear,
	  .fit = fit_linear,
	  .forward = forward_linear,
	  .affine = affine_linear },
	{ .name = "sam",
	  .keys = 1,
	  .key = { TARGET },
	  .states = 1,
	  .state = { "target" },
	  .channels = channels_sam,
	  .dims = line,
	  .fit = fit_sam,
	  .forward = forward_sam },
	{ .name = "ace",
	  .keys = 3,
	  .key = { EPS_SHARE, RELATIVE, TARGET },
	  .wants = YOKE_WANTS_COVARIANCE,
	  .states = 3,
	  .state = { "mean", "u", "target" },
	  .channels = channels_ace,
	  .dims = dims_ace,
	  .fit = fit_ace,
	  .forward = forward_ace },
	{ .name = "local_rx",
	  .keys = 5,
	  .key = { { .name = "inner", .words = YOKE_NODE_WHOLE, .def = 5, .min = 1, .max = 1021 },
		   { .name = "outer", .words = YOKE_NODE_WHOLE, .def = 21, .min = 3, .max = 1023 },
		   EPS_SHARE,
		   RELATIVE,
		   { .name = "pixels",
		     .words = YOKE_NODE_WHOLE,
		     .def = 0,
		     .min = 0,
		     .max = 1 << 20 } },
	  .channels = yk_local_rx_channels,
	  .forward = yk_local_rx_forward,
	  .spatial = 1 },
	{ .name = "sigmoid", .channels = same, .forward = forward_sigmoid },
	{ .name = "unit", .channels = same, .forward = forward_unit },
	{ .name = "decide",
	  .keys = 1,
	  .key = { { .name = "t", .def = 0, .min = -1e30, .max = 1e30 } },
	  .channels = same,
	  .forward = forward_decide },
};
const int yk_node_type_count = sizeof yk_node_types / sizeof *yk_node_types;

bool yk_node_keeps_bands(const yoke_pipeline *p, int node)
{
	while (node >= 0) {
		const struct yk_fit_node *n = &p->node[node];
		if (n->in.count != 1 ||
		    (n->type->channels != same && n->type->channels != channels_select))
			return false;
		node = n->in.from[0];
	}
	return true;
}

bool yk_node_spatial(const yoke_pipeline *p, int node)
{
	bool needed[YK_NODES] = { false }, spatial = false;
	if (node >= 0)
		needed[node] = true;
	for (int i = node; i >= 0 && !spatial; i--) {
		spatial = needed[i] && p->node[i].type->spatial;
		if (needed[i])
			yk_node_mark_inputs(&p->node[i].in, needed);
	}
	return spatial;
}

int yk_scenes_check(const yoke_pipeline *p, const char *call, int rank)
{
	for (int i = 0; i < p->nodes && rank < 3; i++)
		if (p->node[i].type->spatial)
			return yk_fail(
				YOKE_EINVAL,
				"%s: node %s needs neighbouring pixels, so x must be scenes [lines,samples,channels]; it "
				"has %d axes",
				call, p->node[i].name, rank);
	return 0;
}
