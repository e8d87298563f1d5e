// SPDX-License-Identifier: Apache-2.0
// What the files of the resolvent's kernels share: rows, or chunks of a row, go side by side as lanes of vectors.
//
// A row of n elements is cut into `chunks` of `length` elements, by shape alone; lane row * chunks + c is chunk c of
// a row.  What a chunk needs of its neighbours, 1/L in front of it and 1/R behind it, is found first (entries).
// A lane's result depends on nothing but its row, so that lanes go together in any company.
#ifndef YK_KERN_RESOLVENT_H
#define YK_KERN_RESOLVENT_H

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "../map/kern_map.h"
#include "../move/walk.h"
#include "../vector/vhalf.h"

enum { TIER_F64 = 1, TIER_F32, TIER_MIXED, TIER_F16, TIER_BF16 }; // as in the ABI
enum { EXACT, DIAG, INVERSE, HYBRID, STEP5 };

// An operand or result: [rows.., elements], or [rows.., elements, 2].
struct chain_view {
	char *base; // NULL: absent
	yk_load_fn *load;
	yk_store_fn *store;
	int dtype, rank; // rank: of the rows' axes
	int64_t size, along, pair; // bytes; steps between elements and between real and imaginary parts
	int64_t dims[YOKE_MAX_RANK], strides[YOKE_MAX_RANK];
};

// 1/L in front of a chunk and 1/R behind it; then the cotangents of L behind it and of R in front.
struct chain_entry {
	double before[2], behind[2];
	double from_right[2], from_left[2];
};

// What chunks are chained by, complex: of the elements' matrices, products from the first element and from the
// second one on, (u0, u1) and (v0, v1); in the backward pass what leaves a chunk to the left and to the
// right is [0] + [1] times what enters, and [2] + [3].
struct chain_link {
	double of[4][2];
};

struct chain_job {
	struct chain_view a, b, c, z, g, out[4];
	int64_t n, rows, length, chunks;
	int side, tier, sweeps, gradient;
	double tolerance, blend, adaptive;
	bool one_z;                // of all rows
	struct chain_entry *entry; // of lanes; NULL: rows are whole
	struct chain_link *link;
	// Tier half: of each lane the change of L and R, negative where f32 does not serve it, and the largest |Im G|.
	float *bound;
	unsigned char *flag;   // of rows, see kern_resolvent.c
	_Atomic int64_t bad;   // the first row with an operand that is refused
	_Atomic int64_t singular; // the first row of which z is an eigenvalue
	_Atomic bool no_memory;
};

// Where a lane is: elements first .. first + length - 1 of a row.
struct chain_lane {
	int64_t index, row, first, length;
};

// Lanes that go together, at most `width`.
struct chain_pack {
	struct chain_job *job;
	const struct chain_lane *lane;
	int count;
	bool divide; // the last division is in f64
};

// Lanes in f32 or in f64.
struct chain_lanes {
	int width;
	// Of each lane: marks in `failed` those that the disc leaves open after w elements.
	void (*disc)(const struct chain_pack *, int64_t w, bool *failed);
	// marks in `odd`, here and below, lanes that f32 does not serve; NULL in f64, which serves all
	void (*matrices)(const struct chain_pack *, bool *odd);
	void (*forward)(const struct chain_pack *, bool *odd);
	// first: only links are made
	void (*back)(const struct chain_pack *, bool first, bool *odd);
	// entries of the backward pass, from w elements beside a lane; marks as disc
	void (*near)(const struct chain_pack *, int64_t w, bool *failed);
};

extern const struct chain_lanes ISA(yk_chain_f32), ISA(yk_chain_f64);
// The tier half: results of all lanes, and their bounds.
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

// One number, for what is met once a row.
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

// z of a row; a row of which it is refused is noted.
static inline void z_of(struct chain_job *j, int64_t row, double *x, double *y)
{
	const char *at = row_of(&j->z, row);
	*x = number_at(&j->z, at);
	*y = number_at(&j->z, at + j->z.along * j->z.size);
	if (!isfinite(*x) || !isfinite(*y) || *y == 0)
		note_first(&j->bad, row);
}

#endif
