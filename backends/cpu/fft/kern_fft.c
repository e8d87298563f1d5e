// SPDX-License-Identifier: Apache-2.0
// FFT: mixed radices 8, 5, 4, 3, 2 and odd ones up to 13 (Stockham's order); other lengths as
// convolutions (Bluestein 1970). A work item computes transforms of its own, so results do not
// depend on the number of threads.
#include "config.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../algebra/matrix.h"

enum { COMPLEX, REAL_TO_HALF, HALF_TO_REAL };
enum {
	MAX_RADIX = 13,
	LONG = 2048,   // a lane's transform above this does not stay in L2
	ALONE = 8192,  // elements that one thread transforms before the team is worth waking
	CHUNK = 4096,  // elements of an item in loops over one transform
	MIN_FLAT = 128 // the shortest transform that is worth dividing
};

#define NO_IM INT64_MIN // instead of a distance to imaginary parts

struct attrs {
	int64_t kind, n, inverse, weight;
	double scale;
};

static struct attrs attrs_of(const struct yoke_op *op)
{
	return (struct attrs){ op->attr[0].i, op->attr[1].i, op->attr[2].i, op->attr[3].i,
			       op->attr[4].f };
}

// ---- numbers ----

// cos and sin of -2 pi k / n, by the octant, so that all symmetries are exact
static void turn_of(int64_t k, int64_t n, double *c, double *s)
{
	k %= n;
	const bool below = 2 * k > n;
	if (below)
		k = n - k;
	const bool left = 4 * k > n;
	if (left)
		k = n - 2 * k; // in halves of a step from here on
	else
		k *= 2;
	const bool steep = 4 * k > n;
	const double a = M_PI * (double)(steep ? n - 2 * k : 2 * k) / (double)(2 * n);
	*c = steep ? sin(a) : cos(a);
	*s = steep ? cos(a) : sin(a);
	if (left)
		*c = -*c;
	if (!below)
		*s = -*s;
}

static int factors_of(int64_t n, int *to)
{
	static const int radix[] = { 8, 5, 4, 3, 2, 7, 11, 13 };
	int count = 0;
	for (size_t i = 0; i < sizeof radix / sizeof *radix; i++)
		for (; n % radix[i] == 0; n /= radix[i])
			to[count++] = radix[i];
	return count;
}

static bool is_smooth(int64_t n)
{
	static const int prime[] = { 2, 3, 5, 7, 11, 13 };
	for (int i = 0; i < 6; i++)
		while (n % prime[i] == 0)
			n /= prime[i];
	return n == 1;
}

// The smallest product of 2, 3 and 5 from n on whose odd part is short
static int64_t smooth_above(int64_t n)
{
	static const int odd[] = { 1, 3, 5, 9, 15 };
	int64_t best = INT64_MAX;
	for (int i = 0; i < 5; i++) {
		int64_t m = odd[i];
		while (m < n)
			m *= 2;
		best = m < best ? m : best;
	}
	return best;
}

// The largest divisor of n up to sqrt(n)
static int64_t balanced(int64_t n)
{
	int64_t best = 1;
	for (int64_t a = 2; a * a <= n; a++)
		if (n % a == 0)
			best = a;
	return best;
}

static int64_t padded(int64_t n, int64_t by)
{
	return (n + by - 1) / by * by;
}

// The elements of the columns and rows of a single transform
static int64_t flat_length(int64_t n)
{
	return is_smooth(n) ? n : smooth_above(2 * n - 1);
}

static bool flat_is_better(int64_t n, int64_t count, int lanes)
{
	const int64_t m = flat_length(n);
	return (m > LONG || (n >= MIN_FLAT && 2 * count <= lanes)) && balanced(m) >= 8;
}

static int64_t chunks_of(int64_t n)
{
	return (n + CHUNK - 1) / CHUNK;
}

static int64_t length_of(const struct attrs *f)
{
	return f->kind != COMPLEX && !(f->n & 1) ? f->n / 2 : f->n;
}

// ---- memory of tables: measured first, without a base, then filled ----

struct table {
	char *base;
	int64_t used;
	bool failed;
};

static void *take(struct table *t, int64_t bytes)
{
	char *at = t->base ? t->base + t->used : NULL;
	t->used += padded(bytes, 64);
	return at;
}

// ---- the transforms of an op ----

struct rows {
	int64_t count, dims[YOKE_MAX_RANK];
	const int64_t *xs, *ys;
	int rank;
};

static void rows_of(struct rows *r, const struct yoke_view *x, const struct yoke_view *y, int rank)
{
	*r = (struct rows){ 1, { 0 }, x->strides, y->strides, rank };
	for (int i = 0; i < rank; i++) {
		r->dims[i] = x->dims[i];
		r->count *= x->dims[i];
	}
}

static void rows_at(const struct rows *r, int64_t index, int64_t *at)
{
	for (int i = r->rank - 1; i >= 0; i--) {
		at[i] = index % r->dims[i];
		index /= r->dims[i];
	}
}

// The offsets of the current row, in elements; advances to the next one.
static void rows_next(const struct rows *r, int64_t *at, int64_t *x, int64_t *y)
{
	*x = *y = 0;
	for (int i = 0; i < r->rank; i++) {
		*x += at[i] * r->xs[i];
		*y += at[i] * r->ys[i];
	}
	for (int i = r->rank - 1; i >= 0 && ++at[i] == r->dims[i]; i--)
		at[i] = 0;
}

#include "../vector/vec_f32.h"
#define FFT(name) name##_f32
#include "kern_fft_passes.h"
#include "kern_fft_lanes.h"
#include "kern_fft_flat.h"
#undef FFT

#include "../vector/vec_f64.h"
#define FFT(name) name##_f64
#include "kern_fft_passes.h"
#include "kern_fft_lanes.h"
#include "kern_fft_flat.h"

// ---- the kernel ----

static bool is_real(const struct yoke_view *v, int dtype)
{
	return v->kind == YOKE_VIEW_BUFFER && v->dtype == dtype &&
	       (dtype == yoke_f32 || dtype == yoke_f64);
}

static uint64_t can(const struct yoke_op *op)
{
	return op->nattr == 5 && is_real(&op->in[0], op->in[0].dtype) &&
	       is_real(&op->out[0], op->in[0].dtype);
}

// Transforms of the op
static int64_t count_of(const struct yoke_op *op, const struct attrs *f)
{
	const struct yoke_view *x = &op->in[0];
	int64_t n = 1;
	for (int i = 0; i < x->rank - 1 - (f->kind != REAL_TO_HALF); i++)
		n *= x->dims[i];
	return n;
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	const struct attrs f = attrs_of(op);
	(void)impl;
	return op->in[0].dtype == yoke_f64 ? work_f64(&f, count_of(op, &f)) :
					     work_f32(&f, count_of(op, &f));
}

static void *prepare(const struct yoke_op *op, uint32_t impl)
{
	const struct attrs f = attrs_of(op);
	(void)impl;
	return op->in[0].dtype == yoke_f64 ? prepare_f64(&f, count_of(op, &f)) :
					     prepare_f32(&f, count_of(op, &f));
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	const struct attrs f = attrs_of(op);
	(void)impl;
	const int err =
		op->in[0].dtype == yoke_f64 ? run_f64(op, &f, prepared) : run_f32(op, &f, prepared);
	if (err)
		return yk_cpu_fail(err, "fft: no memory for %lld elements", (long long)f.n);
	return 0;
}

YK_KERNEL(fft, FFT) = {
	.can = can, .workspace = workspace, .prepare = prepare, .run = run, .impl = { "lanes" }
};
