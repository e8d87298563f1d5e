// SPDX-License-Identifier: Apache-2.0
// POOL_MAX, POOL_MAX_BACKWARD and POOL_ARGMAX. Each plane [S..] is copied with a border of -inf to
// a grid for each combination of remainders by the strides, so that a tap of all positions is one
// run.  Positions that lie in a grid and are no results are computed, too, and left out. The
// gradient's sums have the copy's layout. Windows of two elements that tile dense lines are reduced
// in place (kern_pool_pairs.h).
#include "config.h"

#include <math.h>
#include <string.h>

#include "../vector/half.h"
#include "walk.h"

enum {
	AXES = 3,
	PER_ITEM = 1 << 12, // elements per work item
	CHUNK = 2048,       // positions whose maxima stay in L1
	LIMIT = 1 << 22     // max elements of a plane's copy, which is in thread scratch
};

enum { IN_PAIRS, IN_PLANES }; // implementations

struct axis {
	int64_t window, stride, dilation, lo, n, out;
};

struct job {
	const struct yoke_view *x, *g, *to; // to: y, x's gradient, or the maxima's places
	bool places;
	struct axis axis[AXES]; // the first ones may be missing
	int64_t run[AXES];      // of a grid
	int64_t grid, copy,
		positions; // elements of a grid, of all; positions in a grid up to the last result
	int64_t lines;     // lines of a grid per chunk
	int64_t planes, each;
	atomic_bool no_memory;
};

static struct axis axis_of(const struct yoke_op *op, const struct yoke_view *x,
			   const struct yoke_view *y, int k)
{
	const int axes = x->rank - 2, at = k - AXES + axes;
	if (at < 0)
		return (struct axis){ 1, 1, 1, 0, 1, 1 };
	const uint64_t p = (uint64_t)op->attr[axes + at].i;
	return (struct axis){ op->attr[at].i,   p & 0xffff,      p >> 16 & 0xffff,
			      p >> 32 & 0xffff, x->dims[2 + at], y->dims[2 + at] };
}

static void job_init(struct job *j, const struct yoke_op *op)
{
	*j = (struct job){ .x = &op->in[0],
			   .g = op->nin > 1 ? &op->in[1] : NULL,
			   .to = &op->out[0],
			   .places = op->code == YOKE_OP_POOL_ARGMAX };
	for (int k = 0; k < AXES; k++)
		j->axis[k] = axis_of(op, j->x, j->g ? j->g : j->to, k);
	j->grid = j->copy = 1;
	for (int k = 0; k < AXES; k++) {
		const struct axis *a = &j->axis[k];
		j->run[k] =
			((a->out - 1) * a->stride + (a->window - 1) * a->dilation) / a->stride + 1;
		j->grid *= j->run[k];
		j->copy *= j->run[k] * a->stride;
	}
	j->positions = ((j->axis[0].out - 1) * j->run[1] + j->axis[1].out - 1) * j->run[2] +
		       j->axis[2].out;
	j->lines = j->run[2] < CHUNK ? CHUNK / j->run[2] : 1;
	j->planes = j->x->dims[0] * j->x->dims[1];
	j->each = j->copy < PER_ITEM ? PER_ITEM / j->copy : 1;
}

// Do windows of two elements along the last axis tile dense operands?
static bool can_pairs(const struct yoke_op *op)
{
	const struct yoke_view *x = &op->in[0], *y = op->nin > 1 ? &op->in[1] : &op->out[0];
	const struct axis last = axis_of(op, x, y, AXES - 1);

	if (op->code == YOKE_OP_POOL_ARGMAX || x->dtype > yoke_f64 || last.window != 2)
		return false;
	for (int k = 0; k < AXES; k++) {
		const struct axis a = axis_of(op, x, y, k);
		if (a.stride != a.window || a.dilation != 1 || a.lo || a.n != a.out * a.window)
			return false;
	}
	return yk_dense(x) && yk_dense(y) && yk_dense(&op->out[0]);
}

static uint64_t can(const struct yoke_op *op)
{
	const bool back = op->code == YOKE_OP_POOL_MAX_BACKWARD;
	if (op->nin != (back ? 2 : 1) || op->nout != 1)
		return 0;
	const struct yoke_view *x = &op->in[0], *y = back ? &op->in[1] : &op->out[0];
	if (x->rank < 3 || x->rank > 2 + AXES || y->rank != x->rank ||
	    op->nattr < 2 * (x->rank - 2) || x->dtype < yoke_f32 || x->dtype > yoke_bf16)
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
	double copy = 1;
	for (int k = 0; k < AXES; k++) {
		const struct axis a = axis_of(op, x, y, k);
		copy *= (double)(a.out - 1) * (double)a.stride +
			(double)(a.window - 1) * (double)a.dilation + (double)a.stride;
	}
	return (can_pairs(op) ? 1 << IN_PAIRS : 0) | (2 * copy <= LIMIT ? 1 << IN_PLANES : 0);
}

#define LINES(T, I, name) \
	static void name##_place(void *max, void *at, const void *from, int64_t n, int64_t place) \
	{ \
		T *m = max; \
		I *a = at; \
		const T *x = from; \
		for (int64_t i = 0; i < n; i++) { \
			const bool more = x[i] > m[i] || x[i] != x[i]; \
			a[i] = more ? (I)place : a[i]; \
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
	static void name##_give(void *to, const void *share, const void *max, const void *from, \
				int64_t n) \
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
#define KIND(T, name, lines) \
	{ \
		sizeof(T), name##_take, name##_put, lines##_max, lines##_place, lines##_ties, \
			lines##_give, lines##_divide, lines##_fill \
	}
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

// For remainder q of the last axis's stride: *first: first element of the line, *place: its index
// in the run. Returns the number of elements.
static int64_t remainder_elements(const struct job *j, int64_t q, int64_t *place, int64_t *first)
{
	const struct axis *a = &j->axis[2];
	const int64_t skip = a->lo > q ? (a->lo - q + a->stride - 1) / a->stride : 0;
	*place = skip;
	*first = skip * a->stride + q - a->lo;
	const int64_t n = *first < a->n ? (a->n - 1 - *first) / a->stride + 1 : 0;
	return n < j->run[2] - skip ? n : j->run[2] - skip;
}

// Offset in the copy of the element at these distances from the beginning of the border; -1: no
// window reaches it.
static int64_t offset(const struct job *j, const int64_t at[AXES])
{
	int64_t grid = 0, within = 0;
	for (int k = 0; k < AXES; k++) {
		grid = grid * j->axis[k].stride + at[k] % j->axis[k].stride;
		within = within * j->run[k] + at[k] / j->axis[k].stride;
		if (at[k] / j->axis[k].stride >= j->run[k])
			return -1;
	}
	return grid * j->grid + within;
}

// Offset of the beginning of line `line` of the plane, as above.
static int64_t line_offset(const struct job *j, int64_t line)
{
	const struct axis *a = &j->axis[0], *b = &j->axis[1];
	return offset(j, (const int64_t[]){ line / b->n + a->lo, line % b->n + b->lo, 0 });
}

// Bytes between elements along a pool's axis; 0: it is missing.
static int64_t step_along(const struct yoke_view *v, int k)
{
	const int at = v->rank - AXES + k;
	return at < 2 ? 0 : v->strides[at] * (int64_t)yk_esize(v->dtype);
}

static void copy_in(const struct job *j, const struct kind *k, char *copy, int64_t plane)
{
	const struct axis *a = &j->axis[0], *b = &j->axis[1], *c = &j->axis[2];
	const int64_t by_a = step_along(j->x, 0), by_b = step_along(j->x, 1),
		      by_c = step_along(j->x, 2);
	int64_t stride, place, first;
	const char *x = line_of(j->x, plane, 0, &stride);
	k->fill(copy, -INFINITY, j->copy);
	for (int64_t q = 0; q < c->stride; q++) {
		const int64_t n = remainder_elements(j, q, &place, &first);
		for (int64_t la = 0; la < a->n && n > 0; la++) {
			const int64_t ia = (la + a->lo) / a->stride, qa = (la + a->lo) % a->stride;
			int64_t ib = b->lo / b->stride, qb = b->lo % b->stride;
			for (int64_t lb = 0; lb < b->n && ia < j->run[0] && ib < j->run[1]; lb++) {
				const int64_t grid = (qa * b->stride + qb) * c->stride + q;
				const int64_t at =
					grid * j->grid + (ia * j->run[1] + ib) * j->run[2] + place;
				k->take(copy + (size_t)at * k->size,
					x + la * by_a + lb * by_b + first * by_c,
					stride * c->stride, n);
				if (++qb == b->stride) {
					qb = 0;
					ib++;
				}
			}
		}
	}
}

static void copy_out(const struct job *j, const struct kind *k, const char *sums, int64_t plane)
{
	const int64_t size = (int64_t)yk_esize(j->x->dtype), step = j->axis[2].stride;
	for (int64_t y = 0; y < j->axis[0].n * j->axis[1].n; y++) {
		int64_t stride, place, first, end = 0;
		char *to = line_of(j->to, plane, y, &stride);
		const int64_t at = line_offset(j, y);
		for (int64_t q = 0; q < step && at >= 0; q++) {
			const int64_t n = remainder_elements(j, q, &place, &first);
			if (n <= 0)
				continue;
			k->put(to + first * stride * size, stride * step,
			       sums + (size_t)(at + q * j->grid + place) * k->size, n);
			end = first + (n - 1) * step + 1 > end ? first + (n - 1) * step + 1 : end;
		}
		for (; end < j->axis[2].n; end++) // not reached by any window
			memset(to + end * stride * size, 0, (size_t)size);
	}
}

// The distance of tap t from a window's beginning, along each axis.
static void distances(const struct job *j, int64_t t, int64_t to[AXES])
{
	for (int k = AXES; k-- > 0; t /= j->axis[k].window)
		to[k] = t % j->axis[k].window * j->axis[k].dilation;
}

// Offset in the copy of tap t for the first position.
static int64_t tap_of(const struct job *j, int64_t t)
{
	int64_t at[AXES];
	distances(j, t, at);
	return offset(j, at);
}

// Offset in the plane of an element at these distances.
static int64_t in_plane(const struct job *j, int64_t a, int64_t b, int64_t c)
{
	return (a * j->axis[1].n + b) * j->axis[2].n + c;
}

static int64_t get_place(const struct job *j, const void *places, int64_t i)
{
	return j->x->dtype == yoke_f64 ? ((const int64_t *)places)[i] :
					 ((const int32_t *)places)[i];
}

static void set_place(const struct job *j, void *places, int64_t i, int64_t place)
{
	if (j->x->dtype == yoke_f64)
		((int64_t *)places)[i] = place;
	else
		((int32_t *)places)[i] = (int32_t)place;
}

// Writes the places of the maxima at (ya, yb, ..) from those within their windows.
static void put_places(const struct job *j, const void *places, int64_t plane, int64_t ya,
		       int64_t yb)
{
	const struct axis *a = &j->axis[0], *b = &j->axis[1], *c = &j->axis[2];
	const int64_t first =
		in_plane(j, ya * a->stride - a->lo, yb * b->stride - b->lo, -c->lo);
	int64_t stride, *to = (int64_t *)line_of(j->to, plane, ya * b->out + yb, &stride);
	for (int64_t q = 0; q < c->out; q++) {
		const int64_t place = get_place(j, places, q);
		to[q * stride] = place < 0 ? -1 : first + q * c->stride + place;
	}
}

// The distance of the first tap along an axis of position q that is within the plane; -1: none.
static int64_t first_within(const struct axis *a, int64_t q)
{
	const int64_t off = a->lo - q * a->stride,
		      k = off > 0 ? (off + a->dilation - 1) / a->dilation : 0;
	return k < a->window && k * a->dilation - off < a->n ? k * a->dilation : -1;
}

// The place within its window of the first tap of each position at (ya, yb, ..) that is within the
// plane; -1: none.
static void first_places(const struct job *j, void *places, int64_t ya, int64_t yb)
{
	const struct axis *c = &j->axis[2];
	const int64_t la = first_within(&j->axis[0], ya), lb = first_within(&j->axis[1], yb);
	for (int64_t q = 0; q < c->out; q++) {
		const int64_t lc = first_within(c, q);
		set_place(j, places, q,
			  la < 0 || lb < 0 || lc < 0 ? -1 : in_plane(j, la, lb, lc));
	}
}

struct line {               // of results
	int64_t ya, yb, at; // at: of its first position in a chunk; -1: before the first line
};

// The next line of results among lines from .. to - 1 of a grid; false: there is none.
static bool next_line(const struct job *j, int64_t from, int64_t to, struct line *l)
{
	int64_t line = l->at < 0 ? from : from + l->at / j->run[2] + 1;
	if (line < to && line % j->run[1] >= j->axis[1].out)
		line = (line / j->run[1] + 1) * j->run[1];
	*l = (struct line){ line / j->run[1], line % j->run[1], (line - from) * j->run[2] };
	return line < to;
}

// The positions of the grid's lines from .. to - 1, n of them.
static void chunk_of(const struct job *j, const struct kind *k, char *copy, char *sums, char *max,
		     int64_t plane, int64_t from, int64_t to, int64_t n)
{
	const int64_t taps = j->axis[0].window * j->axis[1].window * j->axis[2].window,
		      begin = from * j->run[2];
	char *ties = max + (size_t)n * k->size, *share = ties + (size_t)n * k->size;
	const char *here = copy + (size_t)begin * k->size;
	int64_t stride;

	k->fill(max, -INFINITY, n);
	if (j->places)
		k->fill(ties, 0, n);
	for (struct line l = { .at = -1 }; j->places && next_line(j, from, to, &l);)
		first_places(j, ties + (size_t)l.at * k->size, l.ya, l.yb);
	for (int64_t t = 0; t < taps; t++) {
		int64_t at[AXES];
		distances(j, t, at);
		const char *x = here + (size_t)offset(j, at) * k->size;
		if (j->places)
			k->place(max, ties, x, n, in_plane(j, at[0], at[1], at[2]));
		else
			k->max(max, x, n);
	}
	for (struct line l = { .at = -1 }; !j->g && next_line(j, from, to, &l);) {
		if (j->places) {
			put_places(j, ties + (size_t)l.at * k->size, plane, l.ya, l.yb);
			continue;
		}
		char *to_line = line_of(j->to, plane, l.ya * j->axis[1].out + l.yb, &stride);
		k->put(to_line, stride, max + (size_t)l.at * k->size, j->axis[2].out);
	}
	if (!j->g)
		return;
	k->fill(share, 0, n);
	for (struct line l = { .at = -1 }; next_line(j, from, to, &l);) {
		const char *g = line_of(j->g, plane, l.ya * j->axis[1].out + l.yb, &stride);
		k->take(share + (size_t)l.at * k->size, g, stride, j->axis[2].out);
	}
	k->fill(ties, 0, n);
	for (int64_t t = 0; t < taps; t++)
		k->ties(ties, max, here + (size_t)tap_of(j, t) * k->size, n);
	k->divide(share, ties, n);
	for (int64_t t = 0; t < taps; t++) {
		const int64_t at = begin + tap_of(j, t);
		k->give(sums + (size_t)at * k->size, share, max, copy + (size_t)at * k->size, n);
	}
}

static void plane_of(const struct job *j, const struct kind *k, char *memory, int64_t plane)
{
	char *copy = memory, *sums = copy + (size_t)j->copy * k->size,
	     *max = sums + (j->g ? (size_t)j->copy * k->size : 0);
	const int64_t lines = (j->positions + j->run[2] - 1) / j->run[2];

	copy_in(j, k, copy, plane);
	if (j->g)
		k->fill(sums, 0, j->copy);
	for (int64_t from = 0; from < lines; from += j->lines) {
		const int64_t to = from + j->lines < lines ? from + j->lines : lines;
		const int64_t left = j->positions - from * j->run[2], n = (to - from) * j->run[2];
		chunk_of(j, k, copy, sums, max, plane, from, to, n < left ? n : left);
	}
	if (j->g)
		copy_out(j, k, sums, plane);
}

static void item(void *arg, int64_t index)
{
	struct job *j = arg;
	const struct kind *k = &kinds[j->x->dtype];
	const int64_t end = (index + 1) * j->each < j->planes ? (index + 1) * j->each : j->planes;
	char *memory = yk_team_scratch((size_t)(2 * j->copy + 3 * j->lines * j->run[2]) * k->size);

	if (!memory) {
		j->no_memory = true;
		return;
	}
	for (int64_t plane = index * j->each; plane < end; plane++)
		plane_of(j, k, memory, plane);
}

// ---- windows of two elements that tile dense lines ----

enum { PAIRS_PER_ITEM = 4096 }; // elements of rows in a work item, which stay in a near cache

struct pairs {
	const struct yoke_view *x, *g, *to;
	struct axis axis[AXES];
	int64_t width, rows; // of x's lines; rows of a window
	int64_t lines, each; // of windows; per work item
	atomic_bool no_memory;
};

#define T float
#define PAIRS(name) f32_pairs_##name
#include "kern_pool_pairs.h"
#define T double
#define PAIRS(name) f64_pairs_##name
#include "kern_pool_pairs.h"

static void pairs_item(void *arg, int64_t index)
{
	struct pairs *p = arg;
	const int64_t first = index * p->each,
		      n = p->lines - first < p->each ? p->lines - first : p->each;
	void *memory = yk_team_scratch((size_t)(3 * p->each * p->width) * yk_esize(p->x->dtype));

	if (!memory)
		p->no_memory = true;
	else if (p->x->dtype == yoke_f32)
		(p->g ? f32_pairs_backward : f32_pairs_forward)(p, first, n, memory);
	else
		(p->g ? f64_pairs_backward : f64_pairs_forward)(p, first, n, memory);
}

static int run_pairs(const struct yoke_op *op)
{
	struct pairs p = { .x = &op->in[0],
			   .g = op->nin > 1 ? &op->in[1] : NULL,
			   .to = &op->out[0] };

	for (int k = 0; k < AXES; k++)
		p.axis[k] = axis_of(op, p.x, p.g ? p.g : p.to, k);
	p.width = p.axis[2].n;
	p.rows = p.axis[0].window * p.axis[1].window;
	p.lines = p.x->dims[0] * p.x->dims[1] * p.axis[0].out * p.axis[1].out;
	p.each = p.width < PAIRS_PER_ITEM ? PAIRS_PER_ITEM / p.width : 1;
	yk_team_run((p.lines + p.each - 1) / p.each, pairs_item, &p);
	return p.no_memory ? yk_cpu_fail(YOKE_ENOMEM, "pool: no memory for a line") : 0;
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job j;

	(void)prepared;
	if (impl == IN_PAIRS)
		return run_pairs(op);
	job_init(&j, op);
	yk_team_run((j.planes + j.each - 1) / j.each, item, &j);
	return j.no_memory ? yk_cpu_fail(YOKE_ENOMEM, "pool: no memory for a plane") : 0;
}

YK_KERNEL(pool_max, POOL_MAX, POOL_MAX_BACKWARD,
	  POOL_ARGMAX) = { .can = can, .run = run, .impl = { "pairs", "planes" } };
