// SPDX-License-Identifier: Apache-2.0
// REDUCE of up to YK_REDUCE_WINDOW f32 elements each to their sums, such as windows of mean pools.
// The outputs along the last kept axis are computed side by side from elements that are read in
// place; every output adds its elements in their order, DEPTH at a time.
#include "config.h"

#include <string.h>

#include "../vector/shuffle.h"
#include "../vector/vmath.h"
#include "kern_reduce.h"

enum {
	DEPTH = 16,        // elements per partial sum
	NARROW = 64,       // dense rows of at least so many columns are not for this file
	TILE = 1024,       // columns per unit
	PER_ITEM = 1 << 15 // min elements per work item
};

typedef float eight __attribute__((vector_size(32)));

struct job {
	const struct yk_reduce_windows *w;
	float *to;
	const float *from;
	int64_t tiles, units, each; // tiles per row; units: rows * tiles; units per work item
};

// Appends the axis to the kept axes, or merges it with the last one.
static void keep(struct yk_reduce_windows *w, int64_t size, int64_t stride)
{
	const int last = w->rank - 1;
	if (w->rank && w->strides[last] == size * stride) {
		w->dims[last] *= size;
		w->strides[last] = stride;
		return;
	}
	w->dims[w->rank] = size;
	w->strides[w->rank++] = stride;
}

bool ISA(yk_reduce_windows_init)(struct yk_reduce_windows *w, const struct yoke_op *op,
				 const struct yoke_view *x)
{
	const uint64_t mask = (uint64_t)op->attr[1].i;
	int64_t outputs = 1;
	int run = 1; // contiguous elements of a window

	*w = (struct yk_reduce_windows){ .count = 1, .cols = 1, .stride = 1 };
	for (int d = 0; d < op->rank; d++) {
		const int64_t size = op->dims[d], stride = x->strides[d];
		if (!(mask >> d & 1)) {
			outputs *= size;
			if (size != 1)
				keep(w, size, stride);
			continue;
		}
		if (size > YK_REDUCE_WINDOW / w->count)
			return false;
		for (int i = w->count *= (int)size; i-- > 0;)
			w->offset[i] = w->offset[i / size] + i % size * stride;
	}
	if (w->rank) {
		w->cols = w->dims[--w->rank];
		w->stride = w->strides[w->rank];
	}
	w->rows = outputs / w->cols;
	while (run < w->count && w->offset[run] == run)
		run++;
	return w->count > 1 && run < DEPTH &&
	       !(yk_dense(x) && w->stride == 1 && w->cols >= NARROW);
}

// ---- sums of the windows at x, x + stride, .. ----

// Loads the elements at x, x + stride, ..; the lanes after `lanes` are 0. All lanes: stride 1 or 2.
YK_INLINE void load(eight *v, const float *x, int lanes, int64_t stride)
{
	eight next;

	if (lanes < 8) {
		*v = (eight){ 0 };
		for (int i = 0; i < lanes; i++)
			(*v)[i] = x[i * stride];
		return;
	}
	memcpy(v, x, sizeof *v);
	if (stride == 2) {
		memcpy(&next, x + 7, sizeof next);
		*v = YK_SHUFFLE(*v, next, 0, 2, 4, 6, 9, 11, 13, 15);
	}
}

YK_INLINE void sums(float *to, const float *x, const struct yk_reduce_windows *w, int lanes,
		    int64_t stride)
{
	eight total = { 0 }, v;

	for (int i = 0; i < w->count;) {
		const int end = (int)yk_min(i + DEPTH, w->count);
		eight part = { 0 };
		for (; i < end; i++) {
			load(&v, x + w->offset[i], lanes, stride);
			part += v;
		}
		total += part;
	}
	memcpy(to, &total, (size_t)lanes * sizeof *to);
}

static void row(float *to, const float *x, const struct yk_reduce_windows *w, int64_t cols)
{
	const int64_t stride = w->stride;
	int64_t c = 0;

	for (; stride == 1 && c + 8 <= cols; c += 8)
		sums(to + c, x + c, w, 8, 1);
	for (; stride == 2 && c + 8 <= cols; c += 8)
		sums(to + c, x + 2 * c, w, 8, 2);
	for (; c + 4 <= cols; c += 4)
		sums(to + c, x + c * stride, w, 4, stride);
	for (; c < cols; c++)
		sums(to + c, x + c * stride, w, 1, stride);
}

static void item(void *arg, int64_t index)
{
	const struct job *j = arg;
	const struct yk_reduce_windows *w = j->w;
	const int64_t first = index * j->each, end = yk_min(first + j->each, j->units);
	int64_t at = first / j->tiles, tile = first % j->tiles;
	int64_t coordinate[YOKE_MAX_RANK]; // of row `at` of the outputs
	const float *x = j->from;

	for (int64_t d = w->rank, rest = at; d-- > 0; rest /= w->dims[d]) {
		coordinate[d] = rest % w->dims[d];
		x += coordinate[d] * w->strides[d];
	}
	for (int64_t unit = first; unit < end; unit++) {
		const int64_t c = tile * TILE;
		row(j->to + at * w->cols + c, x + c * w->stride, w, yk_min(TILE, w->cols - c));
		if (++tile < j->tiles)
			continue;
		tile = 0;
		at++;
		for (int d = w->rank; d-- > 0;) {
			x += w->strides[d];
			if (++coordinate[d] < w->dims[d])
				break;
			x -= w->dims[d] * w->strides[d];
			coordinate[d] = 0;
		}
	}
}

void ISA(yk_reduce_windows_run)(const struct yk_reduce_windows *w, float *to, const float *from)
{
	struct job j = { .w = w, .to = to, .from = from, .tiles = yk_ceil_div(w->cols, TILE) };

	j.units = w->rows * j.tiles;
	j.each = yk_max(1, PER_ITEM / (w->count * yk_min(w->cols, TILE)));
	yk_team_run(yk_ceil_div(j.units, j.each), item, &j);
}
