// SPDX-License-Identifier: Apache-2.0
// POOL_MAX, POOL_MAX_BACKWARD and POOL_ARGMAX. Each plane [S..] is copied with a border of -inf, and the elements
// that a stride visits along the last axis are made contiguous, so that a tap of all positions of a
// line is one run. The gradient's sums have the copy's layout.
#include "config.h"

#include <math.h>
#include <string.h>

#include "../vector/half.h"
#include "walk.h"

enum {
	AXES = 3,
	PER_ITEM = 1 << 14, // elements per work item
	LIMIT = 1 << 22   // max elements of a plane's copy, which is in thread scratch
};

struct axis {
	int64_t window, stride, dilation, lo, n, out;
};

struct job {
	const struct yoke_view *x, *g, *to; // to: y, x's gradient, or the maxima's places
	bool places;
	struct axis axis[AXES];             // the first ones may be missing
	int64_t lines;    // of a plane
	int64_t run, row; // elements of a copied line: per stride remainder; in all
	int64_t planes, each;
	atomic_bool no_memory;
};

static struct axis axis_of(const struct yoke_op *op, const struct yoke_view *x, const struct yoke_view *y, int k)
{
	const int axes = x->rank - 2, at = k - AXES + axes;
	if (at < 0)
		return (struct axis){ 1, 1, 1, 0, 1, 1 };
	const uint64_t p = (uint64_t)op->attr[axes + at].i;
	return (struct axis){ op->attr[at].i, p & 0xffff, p >> 16 & 0xffff, p >> 32 & 0xffff, x->dims[2 + at], y->dims[2 + at] };
}

static void job_init(struct job *j, const struct yoke_op *op)
{
	*j = (struct job){ .x = &op->in[0], .g = op->nin > 1 ? &op->in[1] : NULL, .to = &op->out[0],
			    .places = op->code == YOKE_OP_POOL_ARGMAX };
	for (int k = 0; k < AXES; k++)
		j->axis[k] = axis_of(op, j->x, j->g ? j->g : j->to, k);
	const struct axis *a = &j->axis[2];
	j->lines = j->axis[0].n * j->axis[1].n;
	j->run = ((a->out - 1) * a->stride + (a->window - 1) * a->dilation) / a->stride + 1;
	j->row = j->run * a->stride;
	j->planes = j->x->dims[0] * j->x->dims[1];
	const int64_t plane = j->lines * j->row;
	j->each = plane < PER_ITEM ? PER_ITEM / plane : 1;
}

static uint64_t can(const struct yoke_op *op)
{
	const bool back = op->code == YOKE_OP_POOL_MAX_BACKWARD;
	if (op->nin != (back ? 2 : 1) || op->nout != 1)
		return 0;
	const struct yoke_view *x = &op->in[0], *y = back ? &op->in[1] : &op->out[0];
	if (x->rank < 3 || x->rank > 2 + AXES || y->rank != x->rank || op->nattr < 2 * (x->rank - 2) || x->dtype < yoke_f32 ||
	    x->dtype > yoke_bf16)
		return 0;
	for (uint32_t k = 0; k < 2 + (uint32_t)back; k++) {
		const struct yoke_view *v = k ? &op->in[k - 1] : &op->out[0];
		const int dtype = !k && op->code == YOKE_OP_POOL_ARGMAX ? yoke_i64 : x->dtype;
		if (v->kind != YOKE_VIEW_BUFFER || v->dtype != dtype || v->rank != x->rank)
			return 0;
	}
	for (int i = 0; i < x->rank; i++)
		if (x->dims[i] < 1 || y->dims[i] < 1)
			return 0;
	struct job j;
	job_init(&j, op);
	return (double)j.row * (2 * (double)j.axis[0].n * (double)j.axis[1].n + 1) <= LIMIT;
}

#define LINES(T, I, name) \
	static void name##_place(void *max, void *at, const void *from, int64_t n, int64_t tap) \
	{ \
		T *m = max; \
		I *a = at; \
		const T *x = from; \
		for (int64_t i = 0; i < n; i++) { \
			const bool more = x[i] > m[i] || x[i] != x[i]; \
			a[i] = more ? (I)tap : a[i]; \
			m[i] = more ? x[i] : m[i]; \
		} \
	} \
	static void name##_max(void *max, const void *from, int64_t n) \
	{ \
		T *m = max; \
		const T *x = from; \
		for (int64_t i = 0; i < n; i++) \
			m[i] = x[i] > m[i] || x[i] != x[i] ? x[i] : m[i]; \
	} \
	static void name##_ties(void *ties, const void *max, const void *from, int64_t n) \
	{ \
		T *t = ties; \
		const T *m = max, *x = from; \
		for (int64_t i = 0; i < n; i++) \
			t[i] += x[i] == m[i] ? (T)1 : (T)0; \
	} \
	static void name##_give(void *to, const void *share, const void *max, const void *from, int64_t n) \
	{ \
		T *s = to; \
		const T *g = share, *m = max, *x = from; \
		for (int64_t i = 0; i < n; i++) \
			s[i] += x[i] == m[i] ? g[i] : (T)0; \
	} \
	static void name##_divide(void *share, const void *ties, int64_t n) \
	{ \
		T *g = share; \
		const T *t = ties; \
		for (int64_t i = 0; i < n; i++) \
			g[i] /= t[i]; \
	} \
	static void name##_fill(void *to, double value, int64_t n) \
	{ \
		for (int64_t i = 0; i < n; i++) \
			((T *)to)[i] = (T)value; \
	}
LINES(float, int32_t, f32)
LINES(double, int64_t, f64)

// Makes strides 1 and 2 constants, for which compilers generate vector code.
#define EACH(stride, n, statement) \
	if ((stride) == 1) \
		for (int64_t i = 0, at = 0; i < (n); i++, at++) \
			statement; \
	else if ((stride) == 2) \
		for (int64_t i = 0, at = 0; i < (n); i++, at += 2) \
			statement; \
	else \
		for (int64_t i = 0, at = 0; i < (n); i++, at += (stride)) \
			statement
#define MOVES(T, S, name, LOAD, STORE) \
	static void name##_take(void *to, const char *from, int64_t stride, int64_t n) \
	{ \
		const T *x = (const T *)from; \
		S *y = to; \
		EACH(stride, n, y[i] = LOAD(x[at])); \
	} \
	static void name##_put(char *to, int64_t stride, const void *from, int64_t n) \
	{ \
		const S *x = from; \
		T *y = (T *)to; \
		EACH(stride, n, y[at] = STORE(x[i])); \
	}
#define PLAIN(x) (x)
MOVES(float, float, f32, PLAIN, PLAIN)
MOVES(double, double, f64, PLAIN, PLAIN)
MOVES(uint16_t, float, f16, yk_f32_of_f16, yk_f16_of_f32)
MOVES(uint16_t, float, bf16, yk_f32_of_bf16, yk_bf16_of_f32)

static const struct kind {
	size_t size; // bytes per element of the computation dtype
	void (*take)(void *, const char *, int64_t, int64_t);
	void (*put)(char *, int64_t, const void *, int64_t);
	void (*max)(void *, const void *, int64_t);
	void (*place)(void *, void *, const void *, int64_t, int64_t);
	void (*ties)(void *, const void *, const void *, int64_t);
	void (*give)(void *, const void *, const void *, const void *, int64_t);
	void (*divide)(void *, const void *, int64_t);
	void (*fill)(void *, double, int64_t);
} kinds[] = {
#define KIND(T, name, lines) { sizeof(T), name##_take, name##_put, lines##_max, lines##_place, lines##_ties, lines##_give, lines##_divide, lines##_fill }
	[yoke_f32] = KIND(float, f32, f32),
	[yoke_f64] = KIND(double, f64, f64),
	[yoke_f16] = KIND(float, f16, f32),
	[yoke_bf16] = KIND(float, bf16, f32),
};

// Address of a line of a plane; *stride: its element stride.
static char *line_of(const struct yoke_view *v, int64_t plane, int64_t line, int64_t *stride)
{
	const int64_t size = (int64_t)yk_esize(v->dtype);
	int64_t at = plane / v->dims[1] * v->strides[0] + plane % v->dims[1] * v->strides[1];
	for (int d = v->rank - 2; d >= 2; line /= v->dims[d--])
		at += line % v->dims[d] * v->strides[d];
	*stride = v->strides[v->rank - 1];
	return (char *)yk_ptr(v) + at * size;
}

// For remainder q of the stride: *first: first element of the line, *place: its index in the run.
// Returns the number of elements.
static int64_t remainder_elements(const struct job *j, int64_t q, int64_t *place, int64_t *first)
{
	const struct axis *a = &j->axis[2];
	const int64_t skip = a->lo > q ? (a->lo - q + a->stride - 1) / a->stride : 0;
	*place = skip;
	*first = skip * a->stride + q - a->lo;
	const int64_t n = *first < a->n ? (a->n - 1 - *first) / a->stride + 1 : 0;
	return n < j->run - skip ? n : j->run - skip;
}

static void copy_in(const struct job *j, const struct kind *k, char *copy, int64_t plane)
{
	const int64_t size = (int64_t)yk_esize(j->x->dtype), step = j->axis[2].stride;
	k->fill(copy, -INFINITY, (j->lines + 1) * j->row);
	for (int64_t y = 0; y < j->lines; y++) {
		int64_t stride, place, first;
		const char *from = line_of(j->x, plane, y, &stride);
		for (int64_t q = 0; q < step; q++) {
			const int64_t n = remainder_elements(j, q, &place, &first);
			if (n > 0)
				k->take(copy + (size_t)((y * step + q) * j->run + place) * k->size, from + first * stride * size,
					stride * step, n);
		}
	}
}

static void copy_out(const struct job *j, const struct kind *k, const char *sums, int64_t plane)
{
	const int64_t size = (int64_t)yk_esize(j->x->dtype), step = j->axis[2].stride;
	for (int64_t y = 0; y < j->lines; y++) {
		int64_t stride, place, first, end = 0;
		char *to = line_of(j->to, plane, y, &stride);
		for (int64_t q = 0; q < step; q++) {
			const int64_t n = remainder_elements(j, q, &place, &first);
			if (n <= 0)
				continue;
			k->put(to + first * stride * size, stride * step, sums + (size_t)((y * step + q) * j->run + place) * k->size, n);
			end = first + (n - 1) * step + 1 > end ? first + (n - 1) * step + 1 : end;
		}
		for (; end < j->axis[2].n; end++) // not reached by any window
			memset(to + end * stride * size, 0, (size_t)size);
	}
}

// Offset in the copy of tap t for the positions of line y of the results; -1: outside the plane.
static int64_t tap_of(const struct job *j, int64_t y, int64_t t)
{
	const struct axis *a = &j->axis[0], *b = &j->axis[1], *c = &j->axis[2];
	const int64_t tb = t / c->window, off = t % c->window * c->dilation;
	const int64_t la = y / b->out * a->stride + tb / b->window * a->dilation - a->lo;
	const int64_t lb = y % b->out * b->stride + tb % b->window * b->dilation - b->lo;
	if (la < 0 || la >= a->n || lb < 0 || lb >= b->n)
		return -1;
	return (la * b->n + lb) * j->row + off % c->stride * j->run + off / c->stride;
}

// Writes the places of line y's maxima from their taps.
static void put_places(const struct job *j, const void *taps, int64_t plane, int64_t y)
{
	const struct axis *a = &j->axis[0], *b = &j->axis[1], *c = &j->axis[2];
	int64_t stride, *to = (int64_t *)line_of(j->to, plane, y, &stride);
	for (int64_t q = 0; q < c->out; q++) {
		const int64_t tap = j->x->dtype == yoke_f64 ? ((const int64_t *)taps)[q] : ((const int32_t *)taps)[q];
		const int64_t tb = tap / c->window;
		const int64_t la = y / b->out * a->stride + tb / b->window * a->dilation - a->lo;
		const int64_t lb = y % b->out * b->stride + tb % b->window * b->dilation - b->lo;
		const int64_t at = (la * b->n + lb) * c->n + q * c->stride + tap % c->window * c->dilation - c->lo;
		to[q * stride] = tap < 0 ? -1 : at;
	}
}

// The first tap of each position of a line that is within the plane; -1: none.
static void first_taps(const struct job *j, void *taps, int64_t y)
{
	const struct axis *c = &j->axis[2];
	int64_t row = 0;
	const int64_t rows = j->axis[0].window * j->axis[1].window;
	while (row < rows && tap_of(j, y, row * c->window) < 0)
		row++;
	for (int64_t q = 0; q < c->out; q++) {
		const int64_t off = c->lo - q * c->stride, k = off > 0 ? (off + c->dilation - 1) / c->dilation : 0;
		const bool in = row < rows && k < c->window && q * c->stride + k * c->dilation - c->lo < c->n;
		const int64_t tap = in ? row * c->window + k : -1;
		if (j->x->dtype == yoke_f64)
			((int64_t *)taps)[q] = tap;
		else
			((int32_t *)taps)[q] = (int32_t)tap;
	}
}

static void plane_of(const struct job *j, const struct kind *k, char *memory, int64_t plane)
{
	const struct axis *a = j->axis;
	// none: a line of -inf
	const int64_t none = j->lines * j->row, taps = a[0].window * a[1].window * a[2].window, n = a[2].out;
	char *copy = memory, *sums = copy + (size_t)(none + j->row) * k->size, *max = sums + (j->g ? (size_t)none * k->size : 0);
	char *ties = max + (size_t)n * k->size, *share = ties + (size_t)n * k->size;
	int64_t stride;

	copy_in(j, k, copy, plane);
	if (j->g)
		k->fill(sums, 0, none);
	for (int64_t y = 0; y < a[0].out * a[1].out; y++) {
		k->fill(max, -INFINITY, n);
		if (j->places)
			first_taps(j, ties, y);
		for (int64_t t = 0; t < taps; t++) {
			const int64_t at = tap_of(j, y, t);
			if (at >= 0 && j->places)
				k->place(max, ties, copy + (size_t)at * k->size, n, t);
			else if (at >= 0)
				k->max(max, copy + (size_t)at * k->size, n);
		}
		if (j->places) {
			put_places(j, ties, plane, y);
			continue;
		}
		if (!j->g) {
			char *to = line_of(j->to, plane, y, &stride);
			k->put(to, stride, max, n);
			continue;
		}
		const char *g = line_of(j->g, plane, y, &stride);
		k->take(share, g, stride, n);
		k->fill(ties, 0, n);
		for (int64_t t = 0; t < taps; t++) {
			const int64_t at = tap_of(j, y, t);
			k->ties(ties, max, copy + (size_t)(at >= 0 ? at : none) * k->size, n);
		}
		k->divide(share, ties, n);
		for (int64_t t = 0; t < taps; t++) {
			const int64_t at = tap_of(j, y, t);
			if (at >= 0)
				k->give(sums + (size_t)at * k->size, share, max, copy + (size_t)at * k->size, n);
		}
	}
	if (j->g)
		copy_out(j, k, sums, plane);
}

static void item(void *arg, int64_t index)
{
	struct job *j = arg;
	const struct kind *k = &kinds[j->x->dtype];
	const int64_t end = (index + 1) * j->each < j->planes ? (index + 1) * j->each : j->planes;
	char *memory = yk_team_scratch((size_t)(j->row * (2 * j->lines + 1) + 3 * j->axis[2].out) * k->size);

	if (!memory) {
		j->no_memory = true;
		return;
	}
	for (int64_t plane = index * j->each; plane < end; plane++)
		plane_of(j, k, memory, plane);
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job j;

	(void)impl, (void)prepared;
	job_init(&j, op);
	yk_team_run((j.planes + j.each - 1) / j.each, item, &j);
	return j.no_memory ? yk_cpu_fail(YOKE_ENOMEM, "pool: no memory for a plane") : 0;
}

YK_KERNEL(pool_max, POOL_MAX, POOL_MAX_BACKWARD, POOL_ARGMAX) = { .can = can, .run = run, .impl = { "planes" } };
