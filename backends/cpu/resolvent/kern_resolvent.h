// SPDX-License-Identifier: Apache-2.0
// Data structures of the resolvent kernels, which process rows, or chunks of a row, as lanes of
// vectors.
//
// A row of n elements is divided into `chunks` chunks of `length` elements, by shape alone; lane
// row * chunks + c is chunk c of a row. The values that cross a chunk's borders, 1/L before it and
// 1/R after it, are computed first (entries). A lane's result depends only on its row, so any lanes
// may be combined in a pack.
#ifndef YK_KERN_RESOLVENT_H
#define YK_KERN_RESOLVENT_H

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "../map/kern_map.h"
#include "../move/walk.h"
#include "../vector/vhalf.h"

enum { TIER_F64 = 1, TIER_F32, TIER_MIXED, TIER_F16, TIER_BF16 }; // numbers as in the ABI
enum { EXACT, DIAG, INVERSE, HYBRID, STEP5 };

// An operand or result: [rows..., elements], or [rows..., elements, 2] for complex values.
struct chain_view {
	char *base; // NULL: absent
	yk_load_fn *load;
	yk_store_fn *store;
	int dtype, rank; // rank: number of row axes
	// size: bytes per element; steps between elements, and between real and imaginary parts
	int64_t size, along, pair;
	int64_t dims[YOKE_MAX_RANK], strides[YOKE_MAX_RANK];
};

// 1/L before a chunk and 1/R after it; then the cotangents of L after it and of R before it.
struct chain_entry {
	double before[2], after[2];
	double from_right[2], from_left[2];
};

// How chunks are composed, complex. Forward: products of the elements' matrices from the first
// element and from the second one on, (u0, u1) and (v0, v1). Backward: the value that leaves a
// chunk to the left is [0] + [1] times the value that enters, to the right [2] + [3] times it.
struct chain_link {
	double of[4][2];
};

struct chain_job {
	struct chain_view a, b, c, z, g, out[4];
	int64_t n, rows, length, chunks;
	int side, tier, sweeps, gradient;
	double tolerance, blend, adaptive;
	bool one_z;                // one z for all rows
	struct chain_entry *entry; // per lane; NULL: rows are not chunked
	struct chain_link *link;
	// Half-precision tier, per lane: the change of L and R (negative where f32 is
	// insufficient), and the largest |Im G|.
	float *bound;
	unsigned char *flag;   // per row, see kern_resolvent.c
	_Atomic int64_t bad;   // the first row with a rejected operand
	_Atomic int64_t singular; // the first row whose z is an eigenvalue
	_Atomic bool no_memory;
};

// The range of a lane: elements first .. first + length - 1 of a row.
struct chain_lane {
	int64_t index, row, first, length;
};

// Lanes processed together, at most `width`.
struct chain_pack {
	struct chain_job *job;
	const struct chain_lane *lane;
	int count;
	bool divide; // do the last division in f64
};

// The implementation in f32 or in f64.
struct chain_lanes {
	int width;
	// Per lane: sets `failed` if the disc is not small enough after w elements.
	void (*disc)(const struct chain_pack *, int64_t w, bool *failed);
	// sets `odd`, here and below, for lanes where f32 is insufficient; NULL in f64, which
	// handles all
	void (*matrices)(const struct chain_pack *, bool *odd);
	void (*forward)(const struct chain_pack *, bool *odd);
	// first: compute only the links
	void (*back)(const struct chain_pack *, bool first, bool *odd);
	// entries of the backward pass, from w elements next to a lane; `failed` as for disc
	void (*near)(const struct chain_pack *, int64_t w, bool *failed);
};

extern const struct chain_lanes ISA(yk_chain_f32), ISA(yk_chain_f64);
// Half-precision tier: results of all lanes, and their error bounds.
void ISA(yk_chain_half)(const struct chain_pack *);

static inline struct chain_lane lane_at(const struct chain_job *j, int64_t index)
{
	struct chain_lane at = { index, index, 0, j->n };
	if (j->chunks > 1) { // divisions cost as much as steps
		at.row = index / j->chunks;
		at.first = (index - at.row * j->chunks) * j->length;
		at.length = j->n - at.first < j->length ? j->n - at.first : j->length;
	}
	return at;
}

static inline char *row_of(const struct chain_view *v, int64_t row)
{
	if (v->rank < 2)
		return v->rank ? v->base + row * v->strides[0] * v->size : v->base;
	return v->base + offset_of(v->dims, v->strides, v->rank, row) * v->size;
}

// Loads one number; for values that are read once per row.
static inline double number_at(const struct chain_view *v, const char *at)
{
	double wide;
	float narrow;
	if (v->dtype == yoke_f64) {
		memcpy(&wide, at, sizeof wide);
		return wide;
	}
	v->load(&narrow, at, 1, 1);
	return narrow;
}

// Loads z of a row; records the row if z is rejected.
static inline void z_of(struct chain_job *j, int64_t row, double *x, double *y)
{
	const char *at = row_of(&j->z, row);
	*x = number_at(&j->z, at);
	*y = number_at(&j->z, at + j->z.along * j->z.size);
	if (!isfinite(*x) || !isfinite(*y))
		record_first(&j->bad, row);
}

#endif
