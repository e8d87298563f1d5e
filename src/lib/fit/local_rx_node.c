// SPDX-License-Identifier: Apache-2.0
// The node type local_rx: custom ops that compute the scores of scenes and their gradient.
#include "config.h"

#include "fit/local_rx.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "fit/node.h"
#include "yoke-op.h"

// ---- scenes ----

enum { X, WEIGHT, EXTENT, FORWARD_IN };                   // operands of the scores
enum { Z = FORWARD_IN, MEAN, FACTS, G, BACKWARD_IN };     // operands of the gradient
enum { INNER, OUTER, SHARE_EPS, RELATIVE, PIXELS, KEYS }; // attributes

static struct yk_rx_keys keys_of(const union yoke_attr *a)
{
	return (struct yk_rx_keys){ a[INNER].i, a[OUTER].i, a[SHARE_EPS].f, a[RELATIVE].i != 0,
				    a[PIXELS].i };
}

// x [..,lines,samples,channels]
struct shape {
	int64_t scenes, lines, samples, channels;
};

static struct shape shape_of(const struct yoke_op_tensor *x)
{
	struct shape s = { .scenes = 1,
			   .lines = x->dims[x->rank - 3],
			   .samples = x->dims[x->rank - 2],
			   .channels = x->dims[x->rank - 1] };
	for (int i = 0; i < x->rank - 3; i++)
		s.scenes *= x->dims[i];
	return s;
}

// Limits n to 0 .. max.
static int64_t clamped(int64_t n, int64_t max)
{
	const int64_t at_least_0 = n > 0 ? n : 0;
	return at_least_0 < max ? at_least_0 : max;
}

static struct yk_rx_scene scene_of(const struct yoke_op_args *a, const struct shape *s,
				   int64_t number)
{
	const int64_t first = number * s->lines * s->samples;
	const float *x = a->in[X].data,
		    *weight = a->in[WEIGHT].dtype == YOKE_DTYPE_NONE ? NULL : a->in[WEIGHT].data;
	const int32_t *extent = a->in[EXTENT].dtype == YOKE_DTYPE_NONE ? NULL : a->in[EXTENT].data;
	const int64_t lines = extent ? extent[2 * number] : s->lines,
		      samples = extent ? extent[2 * number + 1] : s->samples;
	return (struct yk_rx_scene){ .x = x + first * s->channels,
				     .weight = weight ? weight + first : NULL,
				     .lines = clamped(lines, s->lines),
				     .samples = clamped(samples, s->samples),
				     .stride = s->samples,
				     .channels = s->channels };
}

// Checks dtypes and shapes of the operands.
static int check(const struct yoke_op_args *a)
{
	const struct yoke_op_tensor *x = &a->in[X], *w = &a->in[WEIGHT], *e = &a->in[EXTENT];
	if (x->dtype != yoke_f32 || (w->dtype != YOKE_DTYPE_NONE && w->dtype != yoke_f32) ||
	    (e->dtype != YOKE_DTYPE_NONE && e->dtype != yoke_i32))
		return yoke_op_fail(a, YOKE_EDTYPE, "x and weights must be f32, sizes i32");
	bool same = x->rank >= 3;
	for (int i = 0; same && w->dtype != YOKE_DTYPE_NONE && i < x->rank - 1; i++)
		same = w->rank == x->rank - 1 && w->dims[i] == x->dims[i];
	if (same && e->dtype != YOKE_DTYPE_NONE)
		same = e->rank == 2 && e->dims[0] == shape_of(x).scenes && e->dims[1] == 2;
	return same ? 0 :
		      yoke_op_fail(
			      a, YOKE_ESHAPE,
			      "x must be [..,lines,samples,channels], weights [..,lines,samples], sizes [scenes,2]");
}

static void last_axis(struct yoke_op_tensor *to, const struct yoke_op_tensor *x, int dtype,
		      int64_t n)
{
	*to = *x;
	to->dtype = dtype;
	to->dims[x->rank - 1] = n;
}

// ---- scores ----

static int shape_score(const struct yoke_op_args *a, struct yoke_op_tensor *out)
{
	last_axis(&out[0], &a->in[X], yoke_f32, 1);
	return check(a);
}

static int shape_solve(const struct yoke_op_args *a, struct yoke_op_tensor *out)
{
	const int64_t c = a->in[X].dims[a->in[X].rank - 1];
	last_axis(&out[0], &a->in[X], yoke_f64, c);
	last_axis(&out[1], &a->in[X], yoke_f64, c);
	last_axis(&out[2], &a->in[X], yoke_f64, 2);
	return check(a);
}

// Zeroes the padding of a scene that is smaller than the largest one.
static void clear_padding(const struct yk_rx_scene *s, const struct shape *all,
			  const struct yk_rx_result *to)
{
	for (int64_t at = 0; at < all->lines * all->samples; at++)
		if (at / s->stride >= s->lines || at % s->stride >= s->samples)
			yk_rx_clear(to, at, s->channels);
}

static int no_inverse(const struct yoke_op_args *a, int64_t line, int64_t sample)
{
	const struct yk_rx_keys k = keys_of(a->attr);
	char why[200], advice[60] = "increase eps, or set relative=1 and eps=1e-11";
	if (k.relative)
		yk_snprintf(advice, sizeof advice, "increase eps, for example to eps=%.3g",
			    fmax(1e-11, 10 * k.eps));
	yk_snprintf(
		why, sizeof why,
		"line %lld, sample %lld: the covariance of the surrounding ring is singular; %s",
		(long long)line, (long long)sample, advice);
	return yoke_op_fail(a, YOKE_ERANGE, why);
}

// Computes one chunk: the lines of all scenes are divided evenly among `chunks`.
static int compute(const struct yoke_op_args *a, int64_t chunk, int64_t chunks)
{
	const struct shape s = shape_of(&a->in[X]);
	const struct yk_rx_keys k = keys_of(a->attr);
	const int64_t all = s.scenes * s.lines, from = all * chunk / chunks,
		      to = all * (chunk + 1) / chunks;
	int err = 0;
	for (int64_t number = from / (s.lines ? s.lines : 1), at = from; at < to && !err;
	     number++) {
		const int64_t first = number * s.lines,
			      end = to < first + s.lines ? to : first + s.lines,
			      pixel = first * s.samples;
		const struct yk_rx_scene scene = scene_of(a, &s, number);
		struct yk_rx_result r = { .y = NULL };
		if (a->nout == 1)
			r.y = (float *)a->out[0].data + pixel;
		else
			r = (struct yk_rx_result){
				.z = (double *)a->out[0].data + pixel * s.channels,
				.mean = (double *)a->out[1].data + pixel * s.channels,
				.facts = (double *)a->out[2].data + pixel * 2
			};
		struct yk_rx_work *w = yk_rx_new(&scene, &k);
		err = w ? 0 : yoke_op_fail(a, YOKE_ENOMEM, "no memory for the moments of a window");
		if (at == first && w)
			clear_padding(&scene, &s, &r);
		for (; at < end && !err; at++) {
			int64_t sample;
			if (at - first < scene.lines && yk_rx_line(w, at - first, &r, &sample) < 0)
				err = no_inverse(a, at - first, sample);
		}
		yk_rx_free(w);
	}
	return err;
}

// ---- the gradient ----

// Derivatives of the score y of pixel p, with z = A^-1 (x_p - m), A the covariance of the ring plus
// the added variance, n the ring's weight:
//   by x_p                               2 z
//   by x_q in the ring, with weight w:  -2 w (z / n + z (z.(x_q - m)) / (n - 1))
//                                       + 2 w y'(trace) (x_q - m) / (n - 1)

static double dot(const double *z, const float *x, const double *mean, int64_t n)
{
	double sum[4] = { 0 };
	int64_t k = 0;
	for (; k + 4 <= n; k += 4)
		for (int l = 0; l < 4; l++)
			sum[l] += z[k + l] * ((double)x[k + l] - mean[k + l]);
	for (; k < n; k++)
		sum[0] += z[k] * ((double)x[k] - mean[k]);
	return sum[0] + sum[1] + sum[2] + sum[3];
}

static bool has(struct yk_rx_range r, int64_t at)
{
	return at >= r.from && at < r.to;
}

struct backward {
	const double *z, *mean, *facts;
	const float *g;
	struct yk_rx_scene s;
	struct yk_rx_keys k;
	double *sum; // [channels]
};

// Computes the gradient by pixel (i, j) into p->sum: of its own score, and of the scores whose
// rings contain it.
static void accumulate(const struct backward *p, int64_t i, int64_t j)
{
	const struct yk_rx_scene *s = &p->s;
	const int64_t c = s->channels, reach = p->k.outer, at = i * s->stride + j;
	const double weight = s->weight ? (double)s->weight[at] : 1;
	const float *x = s->x + at * c;
	for (int64_t k = 0; k < c; k++)
		p->sum[k] = p->facts[2 * at] > 0 ? 2 * (double)p->g[at] * p->z[at * c + k] : 0;
	for (int64_t a = i < reach ? 0 : i - reach; weight != 0 && a < s->lines && a <= i + reach;
	     a++) {
		const bool guard = has(yk_rx_window(a, p->k.inner, s->lines), i);
		if (!has(yk_rx_window(a, p->k.outer, s->lines), i))
			continue;
		for (int64_t b = j < reach ? 0 : j - reach; b < s->samples && b <= j + reach; b++) {
			const int64_t of = a * s->stride + b;
			const double n = p->facts[2 * of], g = 2 * weight * (double)p->g[of],
				     *z = p->z + of * c, *mean = p->mean + of * c;
			if (!(n > 0) || g == 0 ||
			    !has(yk_rx_window(b, p->k.outer, s->samples), j) ||
			    (guard && has(yk_rx_window(b, p->k.inner, s->samples), j)))
				continue;
			const double by_z = -g * (1 / n + dot(z, x, mean, c) / (n - 1)),
				     by_x = g * p->facts[2 * of + 1] / (n - 1);
			for (int64_t k = 0; k < c; k++)
				p->sum[k] += by_z * z[k] + by_x * ((double)x[k] - mean[k]);
		}
	}
}

static int shape_backward(const struct yoke_op_args *a, struct yoke_op_tensor *out)
{
	out[0] = a->in[X];
	return check(a);
}

static int compute_backward(const struct yoke_op_args *a, int64_t chunk, int64_t chunks)
{
	const struct shape s = shape_of(&a->in[X]);
	const int64_t all = s.scenes * s.lines, from = all * chunk / chunks,
		      to = all * (chunk + 1) / chunks;
	struct backward p = { .k = keys_of(a->attr),
			      .sum = calloc((size_t)s.channels + 1, sizeof *p.sum) };
	if (!p.sum)
		return yoke_op_fail(a, YOKE_ENOMEM, "no memory for the gradient of a pixel");
	for (int64_t at = from; at < to; at++) {
		const int64_t number = at / s.lines, pixel = number * s.lines * s.samples,
			      i = at % s.lines;
		float *line = (float *)a->out[0].data + at * s.samples * s.channels;
		p.s = scene_of(a, &s, number);
		p.z = (const double *)a->in[Z].data + pixel * s.channels;
		p.mean = (const double *)a->in[MEAN].data + pixel * s.channels;
		p.facts = (const double *)a->in[FACTS].data + pixel * 2;
		p.g = (const float *)a->in[G].data + pixel;
		memset(line, 0, (size_t)(s.samples * s.channels) * sizeof *line);
		for (int64_t j = 0; i < p.s.lines && j < p.s.samples; j++) {
			accumulate(&p, i, j);
			for (int64_t k = 0; k < s.channels; k++)
				line[j * s.channels + k] = (float)p.sum[k];
		}
	}
	free(p.sum);
	return 0;
}

// ---- op definitions ----

static int gradient(const struct yoke_op_args *, yoke_tensor *const *in, yoke_tensor *const *out,
		    yoke_tensor *const *g, yoke_tensor **to);

// Indexed by SCORE, SOLVE, BACKWARD.
static const struct yoke_op_def ops[] = {
	{ .size = sizeof *ops,
	  .name = "fit.local_rx",
	  .nin = FORWARD_IN,
	  .nout = 1,
	  .nattr = KEYS,
	  .optional = 1 << WEIGHT | 1 << EXTENT,
	  .shape = shape_score,
	  .cpu = compute,
	  .gradient = gradient },
	{ .size = sizeof *ops,
	  .name = "fit.local_rx_solve",
	  .nin = FORWARD_IN,
	  .nout = 3,
	  .nattr = KEYS,
	  .optional = 1 << WEIGHT | 1 << EXTENT,
	  .shape = shape_solve,
	  .cpu = compute },
	{ .size = sizeof *ops,
	  .name = "fit.local_rx_backward",
	  .nin = BACKWARD_IN,
	  .nout = 1,
	  .nattr = KEYS,
	  .optional = 1 << WEIGHT | 1 << EXTENT,
	  .shape = shape_backward,
	  .cpu = compute_backward },
};
enum { SCORE, SOLVE, BACKWARD };

// The number of an op; registers it at its first use.  Keeps the thread's error.
static int number_of(int op)
{
	struct yk_error_aside *aside = yk_error_aside();
	int number = yoke_op_find(ops[op].name);
	if (number == YOKE_ENOENT) {
		yoke_error_clear();
		number = yoke_op_register(&ops[op]);
	}
	if (number == YOKE_EINVAL) { // another thread was first
		yoke_error_clear();
		number = yoke_op_find(ops[op].name);
	}
	if (aside)
		yk_error_restore(aside);
	return number;
}

static int gradient(const struct yoke_op_args *a, yoke_tensor *const *in, yoke_tensor *const *out,
		    yoke_tensor *const *g, yoke_tensor **to)
{
	yoke_tensor *both[BACKWARD_IN] = { in[X], in[WEIGHT], in[EXTENT] };
	const int solve = number_of(SOLVE), backward = number_of(BACKWARD);
	(void)out;
	both[G] = g[0];
	to[WEIGHT] = to[EXTENT] = YOKE_NONE;
	int err = solve < 0 || backward < 0 ?
			  yoke_error_code() :
			  yoke_op_call(solve, FORWARD_IN, in, KEYS, a->attr, 3, both + Z);
	return err ? err : yoke_op_call(backward, BACKWARD_IN, both, KEYS, a->attr, 1, to);
}

// ---- the node type ----

int64_t yk_local_rx_channels(const double *key, int64_t in, char *why, size_t why_size)
{
	const struct yk_rx_keys k = { (int64_t)key[INNER], (int64_t)key[OUTER], key[SHARE_EPS],
				      key[RELATIVE] != 0, (int64_t)key[PIXELS] };
	const int64_t ring = k.outer * k.outer - k.inner * k.inner, pixels = yk_rx_pixels(&k, in);
	if (k.inner % 2 == 0 || k.outer % 2 == 0 || k.inner >= k.outer)
		snprintf(why, why_size,
			 "inner=%lld and outer=%lld must be odd, and inner less than outer",
			 (long long)k.inner, (long long)k.outer);
	else if (ring < pixels)
		snprintf(
			why, why_size,
			"the ring between inner=%lld and outer=%lld has %lld pixels, fewer than the %lld required%s",
			(long long)k.inner, (long long)k.outer, (long long)ring, (long long)pixels,
			k.pixels ?
				" by the key pixels" :
				" (channels + 1); increase outer, or reduce the channels first, for example with pca");
	else
		return 1;
	return 0;
}

yoke_tensor *yk_local_rx_forward(const struct yoke_node_call *c, yoke_tensor *x)
{
	const int op = number_of(SCORE);
	yoke_tensor *in[FORWARD_IN] = { yoke_cast(x, yoke_f32), c->weight ? c->weight : YOKE_NONE,
					c->extent ? c->extent : YOKE_NONE },
		    *y;
	const union yoke_attr attr[KEYS] = { [INNER].i = (int64_t)c->key[INNER],
					     [OUTER].i = (int64_t)c->key[OUTER],
					     [SHARE_EPS].f = c->key[SHARE_EPS],
					     [RELATIVE].i = (int64_t)c->key[RELATIVE],
					     [PIXELS].i = (int64_t)c->key[PIXELS] };
	return op < 0 || yoke_op_call(op, FORWARD_IN, in, KEYS, attr, 1, &y) < 0 ? NULL : y;
}
