// SPDX-License-Identifier: Apache-2.0
// MOVE: a strided copy, x -> y, same dims and dtype. Axes are ordered by y's strides and collapsed;
// the two innermost form planes, which are copied in tiles if x is contiguous along the other one
// of them (a transpose), otherwise row by row.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "../cpu.h"
#include "../host/scalar.h"
#include "../vector/vec.h"
#include "plane.h"

enum { TILE = 64, PER_ITEM = 1 << 15 }; // elements: edge of a transposed tile; per work item

struct job {
	char *y;
	const char *x;
	size_t size;
	int rank; // outer axes, then b, then a
	int64_t dims[YOKE_MAX_RANK], to[YOKE_MAX_RANK], from[YOKE_MAX_RANK];
	int64_t tile_a, tile_b, tiles_a, tiles_b, units, each;
	bool stream; // write y with non-temporal stores
};

static uint64_t can(const struct yoke_op *op)
{
	if (op->nin != 1 || op->nout != 1)
		return 0;
	const struct yoke_view *x = &op->in[0], *y = &op->out[0];
	if (y->kind != YOKE_VIEW_BUFFER || x->kind == YOKE_VIEW_NONE || x->dtype != y->dtype ||
	    y->dtype < yoke_f32 || y->dtype > yoke_bool)
		return 0;
	if (x->kind == YOKE_VIEW_SCALAR)
		return 1;
	if (x->rank != y->rank)
		return 0;
	for (int d = 0; d < x->rank; d++)
		if (x->dims[d] != y->dims[d])
			return 0;
	return 1;
}

// ---- planes ----

typedef uint32_t v8 __attribute__((vector_size(32)));

// 8 x 8 elements of 4 bytes: y[b][a] = x[a][b]; strides in elements.
static void transpose_8(uint32_t *y, int64_t to_b, const uint32_t *x, int64_t from_a)
{
	v8 r[8], s[8];
	for (int i = 0; i < 8; i++)
		memcpy(&r[i], x + i * from_a, sizeof r[i]);
	for (int i = 0; i < 8; i += 2) {
		s[i] = YK_SHUFFLE(r[i], r[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
		s[i + 1] = YK_SHUFFLE(r[i], r[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
	}
	for (int i = 0; i < 8; i++) {
		int k = (i & 4) | (i & 1);
		r[i] = i & 2 ? YK_SHUFFLE(s[k], s[k + 2], 2, 3, 10, 11, 6, 7, 14, 15) :
			       YK_SHUFFLE(s[k], s[k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
	}
	for (int i = 0; i < 8; i++) {
		int k = i & 3;
		v8 t = i & 4 ? YK_SHUFFLE(r[k], r[k + 4], 4, 5, 6, 7, 12, 13, 14, 15) :
			       YK_SHUFFLE(r[k], r[k + 4], 0, 1, 2, 3, 8, 9, 10, 11);
		memcpy(y + i * to_b, &t, sizeof t);
	}
}

// y[b][a] = x[a][b], both dense along their last index.
static void transpose_32(uint32_t *y, const uint32_t *x, int64_t nb, int64_t na, int64_t to_b,
			 int64_t from_a)
{
	int64_t a = 0;
	// by rows of x: reads whole cache lines, while those of one column may map to the same set
	// of the cache
	for (; a + 8 <= na; a += 8) {
		int64_t b = 0;
		for (; b + 8 <= nb; b += 8)
			transpose_8(y + b * to_b + a, to_b, x + a * from_a + b, from_a);
		yk_plane_32(y + b * to_b + a, x + a * from_a + b, nb - b, 8, to_b, 1, 1, from_a);
	}
	yk_plane_32(y + a, x + a * from_a, nb, na - a, to_b, 1, 1, from_a);
}

// Copies a plane; y's rows are tb elements apart.
static void plane(const struct job *j, char *y, int64_t tb, const char *x, int64_t nb, int64_t na)
{
	const int a = j->rank - 1, b = j->rank - 2;
	const int64_t ta = j->to[a], fa = j->from[a], fb = j->from[b];

	if (j->size == 4 && ta == 1 && fb == 1 && fa != 1 && fa != 0)
		transpose_32((uint32_t *)y, (const uint32_t *)x, nb, na, tb, fa);
	else
		yk_plane(j->size, y, x, nb, na, tb, ta, fb, fa);
}

// The same with non-temporal stores. y is dense along a; if x is not, it goes through a tile, and
// the next tile's part of x is prefetched, because its runs are too short for the hardware.
static void stream_plane(const struct job *j, char *y, const char *x, int64_t nb, int64_t na)
{
	const int a = j->rank - 1, b = j->rank - 2;
	const int64_t size = (int64_t)j->size, to = j->to[b] * size, row = na * size;
	int64_t from = j->from[b] * size;
	_Alignas(64) char tile[TILE * TILE * 8];

	if (j->from[a] != 1) {
		const char *next = x + na * j->from[a] * size;
		for (int64_t k = 0; k < na; k++, next += j->from[a] * size)
			for (int64_t i = 0; i < nb * size; i += 64)
				__builtin_prefetch(next + i, 0, 2);
		plane(j, tile, na, x, nb, na);
		x = tile, from = row;
	}
	for (int64_t k = 0; k < nb; k++, y += to, x += from)
		vf_stream_copy(y, x, (size_t)row);
}

// ---- axes ----

static void swap_axes(struct job *j, int a, int b)
{
	int64_t *const list[] = { j->dims, j->to, j->from };
	for (int k = 0; k < 3; k++) {
		int64_t t = list[k][a];
		list[k][a] = list[k][b];
		list[k][b] = t;
	}
}

// Orders axes by decreasing stride of y and merges them; keeps at least two.
static void order_axes(struct job *j)
{
	int rank = 0;
	for (int d = 1; d < j->rank; d++)
		for (int e = d; e > 0 && llabs(j->to[e - 1]) < llabs(j->to[e]); e--)
			swap_axes(j, e - 1, e);
	for (int d = 0; d < j->rank; d++) {
		bool merge = rank > 0 && j->to[rank - 1] == j->to[d] * j->dims[d] &&
			     j->from[rank - 1] == j->from[d] * j->dims[d];
		rank += !merge;
		j->dims[rank - 1] = merge ? j->dims[rank - 1] * j->dims[d] : j->dims[d];
		j->to[rank - 1] = j->to[d];
		j->from[rank - 1] = j->from[d];
	}
	while (rank < 2) {
		memmove(j->dims + 1, j->dims, sizeof *j->dims);
		memmove(j->to + 1, j->to, sizeof *j->to);
		memmove(j->from + 1, j->from, sizeof *j->from);
		j->dims[0] = 1, j->to[0] = j->from[0] = 0;
		if (rank++ == 0)
			j->dims[1] = 1, j->to[1] = j->from[1] = 1;
	}
	j->rank = rank;
}

static void cut(struct job *j)
{
	const int a = j->rank - 1;
	int other = -1; // the axis along which x is dense
	for (int d = 0; d < a; d++)
		if (j->from[d] == 1 && j->dims[d] > 1)
			other = d;
	if (j->from[a] != 1 && j->from[a] != 0 && other >= 0) {
		swap_axes(j, other, a - 1);
		j->tile_a = j->tile_b = TILE;
	} else {
		j->tile_a = j->dims[a] < PER_ITEM ? j->dims[a] : PER_ITEM;
		j->tile_b = PER_ITEM / j->tile_a;
		j->stream &= j->from[a] == 1; // otherwise its tiles are too large
	}
	j->tiles_a = (j->dims[a] + j->tile_a - 1) / j->tile_a;
	j->tiles_b = (j->dims[a - 1] + j->tile_b - 1) / j->tile_b;
	j->units = j->tiles_a * j->tiles_b;
	for (int d = 0; d < a - 1; d++)
		j->units *= j->dims[d];
	int64_t nb = j->dims[a - 1] < j->tile_b ? j->dims[a - 1] : j->tile_b;
	j->each = PER_ITEM / (nb * j->tile_a) + 1;
}

static void unit(const struct job *j, int64_t index)
{
	const int a = j->rank - 1, b = a - 1;
	int64_t ia = index % j->tiles_a * j->tile_a;
	index /= j->tiles_a;
	int64_t ib = index % j->tiles_b * j->tile_b;
	index /= j->tiles_b;
	int64_t to = ia * j->to[a] + ib * j->to[b], from = ia * j->from[a] + ib * j->from[b];
	for (int d = b - 1; d >= 0; d--) {
		to += index % j->dims[d] * j->to[d];
		from += index % j->dims[d] * j->from[d];
		index /= j->dims[d];
	}
	int64_t na = j->dims[a] - ia, nb = j->dims[b] - ib;
	nb = nb < j->tile_b ? nb : j->tile_b;
	na = na < j->tile_a ? na : j->tile_a;
	char *y = j->y + to * (int64_t)j->size;
	const char *x = j->x + from * (int64_t)j->size;
	if (j->stream)
		stream_plane(j, y, x, nb, na);
	else
		plane(j, y, j->to[b], x, nb, na);
}

static void item(void *arg, int64_t index)
{
	const struct job *j = arg;
	int64_t end = (index + 1) * j->each < j->units ? (index + 1) * j->each : j->units;
	for (int64_t u = index * j->each; u < end; u++)
		unit(j, u);
	vf_fence();
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	const struct yoke_view *x = &op->in[0], *y = &op->out[0];
	const bool scalar = x->kind == YOKE_VIEW_SCALAR;
	struct job j = { .y = yk_ptr(y), .size = yk_esize(y->dtype) };
	bool same = true;

	(void)impl, (void)prepared;
	j.x = scalar ? yk_low_bytes(&x->offset, j.size) : yk_ptr(x);
	for (int d = 0; d < y->rank; d++) {
		int64_t from = scalar ? 0 : x->strides[d];
		if (y->dims[d] == 0)
			return 0;
		if (y->dims[d] == 1)
			continue;
		same &= from == y->strides[d];
		j.dims[j.rank] = y->dims[d];
		j.to[j.rank] = y->strides[d];
		j.from[j.rank++] = from;
	}
	if (same && j.x == j.y)
		return 0;
	order_axes(&j);
	j.stream = j.to[j.rank - 1] == 1 && yk_elements(y) >= yk_stream_bytes / (int64_t)j.size;
	cut(&j);
	yk_team_run((j.units + j.each - 1) / j.each, item, &j);
	return 0;
}

YK_KERNEL(move, MOVE) = { .can = can, .run = run, .impl = { "planes" } };
