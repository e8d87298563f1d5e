// SPDX-License-Identifier: Apache-2.0
// Local RX (Reed and Yu 1990, with a dual window). Along a line, the moments of the columns that
// enter a ring are merged with those of the columns already in it, in f64. Moments are only merged
// (Chan, Golub and LeVeque 1979) and never subtracted, so that a bright pixel leaves no rounding
// error in the moments after it has left the window. Each line starts anew, so that results do not
// depend on how lines are divided among threads.
#include "config.h"

#include "fit/local_rx.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 4 };
typedef double vec __attribute__((vector_size(8 * LANES)));
#define AT(p) (*(vec *)(p))
#define INLINE static inline __attribute__((always_inline))

static int64_t padded(int64_t n)
{
	return (n + LANES - 1) / LANES * LANES;
}

struct yk_rx_range yk_rx_window(int64_t at, int64_t width, int64_t n)
{
	const int64_t w = width < n ? width : n, last = n - w, from = at - width / 2;
	const int64_t inside = from < last ? from : last;
	return (struct yk_rx_range){ inside > 0 ? inside : 0, (inside > 0 ? inside : 0) + w };
}

int64_t yk_rx_pixels(const struct yk_rx_keys *k, int64_t channels)
{
	const int64_t pixels = k->pixels ? k->pixels : channels + 1;
	return pixels > 2 ? pixels : 2;
}

// ---- moments ----

// Moments of a set of pixels, as an array of numbers: [0] their weight; [1] their count; from LANES
// on the mean [c]; then the upper triangle of the sums of products of deviations, row by row. c is
// the number of channels rounded up to vectors, and row i begins with column i rounded down.

// The index at which column 0 of row i would be.
INLINE int64_t row_of(int64_t c, int64_t i)
{
	const int64_t q = i / LANES;
	return LANES + c + LANES * q * c - LANES * LANES * q * (q - 1) / 2 +
	       (i - q * LANES) * (c - q * LANES) - q * LANES;
}

// to = the merged moments of a and b; to may be a.  d: scratch for c numbers.
INLINE void join(double *to, const double *a, const double *b, int64_t c, int64_t size, double *d)
{
	if (a[0] == 0 || b[0] == 0) {
		const double *one = a[0] == 0 ? b : a;
		if (to != one)
			memcpy(to, one, (size_t)size * sizeof *to);
		return;
	}
	const double n = a[0] + b[0], share = b[0] / n, factor = a[0] * share;
	for (int64_t i = 0; i < c; i += LANES) {
		AT(d + i) = AT(b + LANES + i) - AT(a + LANES + i);
		AT(to + LANES + i) = AT(a + LANES + i) + share * AT(d + i);
	}
	for (int64_t i = 0; i < c; i++) {
		const int64_t row = row_of(c, i);
		const double f = factor * d[i];
		for (int64_t k = i / LANES * LANES; k < c; k += LANES)
			AT(to + row + k) = AT(a + row + k) + AT(b + row + k) + f * AT(d + k);
	}
	to[0] = n;
	to[1] = a[1] + b[1];
}

// ---- a ring ----

// The moments of columns first .. end - 1, as a queue of two stacks. For a column before `middle`,
// `suffix` has the merged moments from that column to `middle`; `back` has the merged moments of
// the columns from `middle` on.
struct queue {
	int64_t first, middle, end;
	double *suffix, *back; // suffix: of column j at j % width
};

enum { RIGHT, INSIDE, LEFT, QUEUES }; // of columns, relative to the inner window
enum { OUTSIDE, ALL, KINDS };         // lines above and below the inner window; all lines

struct yk_rx_work {
	struct yk_rx_scene s;
	struct yk_rx_keys k;
	int64_t c, size, width;// padded channels; numbers of moments; columns of the window
	double *column[KINDS];      // of column j at j % width
	struct queue queue[QUEUES];
	double *ring;               // moments
	double *d, *y;              // [c]
	double *seen, *weight;      // of the pixels of a column: [padded(outer),c], [padded(outer)]
	double *block;
};

static const int kind_of[QUEUES] = { ALL, OUTSIDE, ALL };

INLINE double *column_at(const struct yk_rx_work *w, int kind, int64_t j)
{
	return w->column[kind] + j % w->width * w->size;
}

INLINE void push(struct yk_rx_work *w, int which)
{
	struct queue *q = &w->queue[which];
	join(q->back, q->back, column_at(w, kind_of[which], q->end), w->c, w->size, w->d);
	q->end++;
}

INLINE void pop(struct yk_rx_work *w, int which)
{
	struct queue *q = &w->queue[which];
	if (q->first == q->middle) {
		for (int64_t j = q->end - 1; j >= q->first; j--) {
			double *to = q->suffix + j % w->width * w->size;
			const double *one = column_at(w, kind_of[which], j);
			if (j + 1 < q->end)
				join(to, one, q->suffix + (j + 1) % w->width * w->size, w->c,
				     w->size, w->d);
			else
				memcpy(to, one, (size_t)w->size * sizeof *to);
		}
		q->middle = q->end;
		q->back[0] = 0;
	}
	q->first++;
}

// Merges the moments of all columns in the queues.
INLINE void join_all(struct yk_rx_work *w)
{
	w->ring[0] = w->ring[1] = 0;
	for (int k = 0; k < QUEUES; k++) {
		const struct queue *q = &w->queue[k];
		if (q->first < q->middle)
			join(w->ring, w->ring, q->suffix + q->first % w->width * w->size, w->c,
			     w->size, w->d);
		join(w->ring, w->ring, q->back, w->c, w->size, w->d);
	}
}

// Appends the pixels of lines from .. to - 1 of column j after the n already taken.
INLINE int64_t take(struct yk_rx_work *w, int64_t from, int64_t to, int64_t j, int64_t n)
{
	const struct yk_rx_scene *s = &w->s;
	for (int64_t i = from; i < to; i++) {
		const int64_t at = i * s->stride + j;
		const float weight = s->weight ? s->weight[at] : 1;
		if (weight == 0)
			continue;
		for (int64_t k = 0; k < s->channels; k++)
			w->seen[n * w->c + k] = (double)s->x[at * s->channels + k];
		w->weight[n++] = (double)weight;
	}
	return n;
}

// Computes the moments of the n pixels taken.
INLINE void sum_up(struct yk_rx_work *w, int64_t n, double *m)
{
	const int64_t c = w->c;
	double *mean = m + LANES;
	memset(m, 0, (size_t)w->size * sizeof *m);
	m[1] = (double)n;
	for (int64_t a = 0; a < n; a++)
		m[0] += w->weight[a];
	for (int64_t a = 0; a < n; a++)
		for (int64_t k = 0; k < c; k += LANES)
			AT(mean + k) += w->weight[a] / m[0] * AT(w->seen + a * c + k);
	for (int64_t a = 0; a < n; a++)
		for (int64_t k = 0; k < c; k += LANES)
			AT(w->seen + a * c + k) -= AT(mean + k);
	for (; n % LANES; n++) {
		w->weight[n] = 0;
		memset(w->seen + n * c, 0, (size_t)c * sizeof *w->seen);
	}
	for (int64_t a = 0; a < n; a += LANES) { // four pixels at a time: fewer loads and stores
		const double *x0 = w->seen + a * c, *x1 = x0 + c, *x2 = x1 + c, *x3 = x2 + c,
			     *weight = w->weight + a;
		for (int64_t i = 0; i < w->s.channels; i++) {
			double *row = m + row_of(c, i);
			const double f0 = weight[0] * x0[i], f1 = weight[1] * x1[i],
				     f2 = weight[2] * x2[i], f3 = weight[3] * x3[i];
			for (int64_t k = i / LANES * LANES; k < c; k += LANES)
				AT(row + k) += f0 * AT(x0 + k) + f1 * AT(x1 + k) + f2 * AT(x2 + k) +
					       f3 * AT(x3 + k);
		}
	}
}

// Adds a column to the outer window.
INLINE void enter(struct yk_rx_work *w, struct yk_rx_range outer, struct yk_rx_range inner)
{
	const int64_t j = w->queue[RIGHT].end;
	double *outside = column_at(w, OUTSIDE, j), *all = column_at(w, ALL, j);
	sum_up(w, take(w, inner.to, outer.to, j, take(w, outer.from, inner.from, j, 0)), outside);
	sum_up(w, take(w, inner.from, inner.to, j, 0), all);
	join(all, all, outside, w->c, w->size, w->d);
	push(w, RIGHT);
}

// Moves the windows, of lines `outer` and `inner`, to column j.
INLINE void move_to(struct yk_rx_work *w, int64_t j, struct yk_rx_range outer,
		    struct yk_rx_range inner)
{
	const struct yk_rx_range columns = yk_rx_window(j, w->k.outer, w->s.samples),
				 inside = yk_rx_window(j, w->k.inner, w->s.samples);
	while (w->queue[LEFT].first < columns.from) // its slot is needed by the column that enters
		pop(w, LEFT);
	while (w->queue[RIGHT].end < columns.to)
		enter(w, outer, inner);
	while (w->queue[RIGHT].first < inside.to) {
		pop(w, RIGHT);
		push(w, INSIDE);
	}
	while (w->queue[INSIDE].first < inside.from) {
		pop(w, INSIDE);
		push(w, LEFT);
	}
}

// ---- a pixel ----

// Eliminates the rows of covariance + e, four at a time; y = L^-1 d, where L D L' is the matrix.
// Returns y' D^-1 y = d' (covariance + e)^-1 d; NaN if the matrix contains NaN, -1 if it is not
// positive definite.
INLINE double eliminate(struct yk_rx_work *w)
{
	const int64_t c = w->c, n = w->s.channels;
	double *m = w->ring, sum = 0;
	for (int64_t b = 0; b < c; b += LANES) {
		const double *r[LANES];
		double p[LANES];
		for (int a = 0; a < LANES; a++) {
			const double *row = r[a] = m + row_of(c, b + a);
			const double pivot = row[b + a];
			if (!(pivot > 0))
				return isnan(pivot) ? NAN : -1;
			p[a] = 1 / pivot;
			w->y[b + a] = w->d[b + a];
			const double f = w->d[b + a] * p[a];
			sum += w->d[b + a] * f;
			for (int64_t k = b; k < c; k += LANES)
				AT(w->d + k) -= f * AT(row + k);
			for (int o = a + 1; o < LANES; o++) {
				double *to = m + row_of(c, b + o);
				const double g = row[b + o] * p[a];
				for (int64_t k = b; k < c; k += LANES)
					AT(to + k) -= g * AT(row + k);
			}
		}
		for (int64_t i = b + LANES; i < n; i++) {
			double *to = m + row_of(c, i);
			const double f0 = r[0][i] * p[0], f1 = r[1][i] * p[1], f2 = r[2][i] * p[2],
				     f3 = r[3][i] * p[3];
			for (int64_t k = i / LANES * LANES; k < c; k += LANES)
				AT(to + k) -= f0 * AT(r[0] + k) + f1 * AT(r[1] + k) +
					      f2 * AT(r[2] + k) + f3 * AT(r[3] + k);
		}
	}
	return sum;
}

// z = L'^-1 D^-1 y
static void substitute(struct yk_rx_work *w, double *z)
{
	const int64_t n = w->s.channels;
	for (int64_t k = n - 1; k >= 0; k--) {
		const double *row = w->ring + row_of(w->c, k);
		double sum = w->y[k];
		for (int64_t i = k + 1; i < n; i++)
			sum -= row[i] * z[i];
		z[k] = sum / row[k];
	}
}

// Computes the result from the ring's moments; false: the covariance is singular.
INLINE bool score(struct yk_rx_work *w, int64_t at, const struct yk_rx_result *to)
{
	const int64_t c = w->c, n = w->s.channels;
	const float *x = w->s.x + at * n;
	double *m = w->ring, trace = 0;
	const double scale = 1 / (m[0] - 1);
	for (int64_t i = 0; i < c; i++) {
		double *row = m + row_of(c, i);
		for (int64_t k = i / LANES * LANES; k < c; k += LANES)
			AT(row + k) *= scale;
		trace += row[i];
		w->d[i] = i < n ? (double)x[i] - m[LANES + i] : 0;
	}
	const bool share = w->k.relative && trace > 0;
	const double added = share ? w->k.eps * (trace / (double)n) : w->k.eps;
	for (int64_t i = 0; i < c; i++)
		m[row_of(c, i) + i] = i < n ? m[row_of(c, i) + i] + added : 1;
	const double y = eliminate(w);
	if (to->y)
		to->y[at] = (float)y;
	if (!to->z || !(y >= 0))
		return !(y < 0);
	double square = 0, *z = to->z + at * n;
	substitute(w, z);
	for (int64_t k = 0; k < n; k++)
		square += z[k] * z[k];
	memcpy(to->mean + at * n, m + LANES, (size_t)n * sizeof *m);
	to->facts[2 * at] = m[0];
	to->facts[2 * at + 1] = share ? -square * w->k.eps / (double)n : 0;
	return true;
}

void yk_rx_clear(const struct yk_rx_result *to, int64_t at, int64_t channels)
{
	if (to->y)
		to->y[at] = 0;
	for (int64_t k = 0; to->z && k < channels; k++)
		to->z[at * channels + k] = to->mean[at * channels + k] = 0;
	if (to->facts)
		to->facts[2 * at] = to->facts[2 * at + 1] = 0;
}

INLINE int do_line(struct yk_rx_work *w, int64_t i, const struct yk_rx_result *to, int64_t *failed)
{
	const struct yk_rx_scene *s = &w->s;
	const struct yk_rx_range outer = yk_rx_window(i, w->k.outer, s->lines),
				 inner = yk_rx_window(i, w->k.inner, s->lines);
	const double pixels = (double)yk_rx_pixels(&w->k, s->channels);
	for (int k = 0; k < QUEUES; k++) {
		w->queue[k].first = w->queue[k].middle = w->queue[k].end = 0;
		w->queue[k].back[0] = 0;
	}
	for (int64_t j = 0; j < s->samples; j++) {
		const int64_t at = i * s->stride + j;
		move_to(w, j, outer, inner);
		yk_rx_clear(to, at, s->channels);
		if (s->weight && s->weight[at] == 0)
			continue;
		join_all(w);
		if (w->ring[0] > 1 && w->ring[1] >= pixels && !score(w, at, to)) {
			*failed = j;
			return -1;
		}
	}
	return 0;
}

static int any_line(struct yk_rx_work *w, int64_t i, const struct yk_rx_result *to, int64_t *failed)
{
	return do_line(w, i, to, failed);
}

#if defined __x86_64__
__attribute__((target("avx2,fma"))) static int
avx2_line(struct yk_rx_work *w, int64_t i, const struct yk_rx_result *to, int64_t *failed)
{
	return do_line(w, i, to, failed);
}
#endif

int yk_rx_line(struct yk_rx_work *w, int64_t i, const struct yk_rx_result *to, int64_t *failed)
{
#if defined __x86_64__
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return avx2_line(w, i, to, failed);
#endif
	return any_line(w, i, to, failed);
}

// ---- memory ----

struct yk_rx_work *yk_rx_new(const struct yk_rx_scene *s, const struct yk_rx_keys *k)
{
	struct yk_rx_work *w = calloc(1, sizeof *w);
	if (!w)
		return NULL;
	w->s = *s;
	w->k = *k;
	w->c = padded(s->channels);
	w->size = row_of(w->c, w->c - 1) + w->c;
	w->width = s->samples > 0 ? s->samples : 1;
	w->width = k->outer < w->width ? k->outer : w->width;
	const int64_t rows = padded(k->outer), moments = (KINDS + QUEUES) * w->width + QUEUES + 1;
	const size_t bytes =
		(size_t)(moments * w->size + 2 * w->c + rows * (w->c + 1)) * sizeof(double);
	if (!(w->block = aligned_alloc(64, (bytes + 63) & ~(size_t)63))) {
		free(w);
		return NULL;
	}
	double *at = w->block;
	for (int i = 0; i < KINDS; i++, at += w->width * w->size)
		w->column[i] = at;
	for (int i = 0; i < QUEUES; i++) {
		w->queue[i].suffix = at;
		w->queue[i].back = at + w->width * w->size;
		at += (w->width + 1) * w->size;
	}
	w->ring = at;
	w->d = at + w->size;
	w->y = w->d + w->c;
	w->seen = w->y + w->c;
	w->weight = w->seen + rows * w->c;
	memset(w->seen, 0, (size_t)(rows * w->c) * sizeof *w->seen); // the channel padding stays 0
	return w;
}

void yk_rx_free(struct yk_rx_work *w)
{
	if (w)
		free(w->block);
	free(w);
}
