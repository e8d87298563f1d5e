// SPDX-License-Identifier: Apache-2.0
// Tests sums of few elements each over any axes of strided and permuted tensors against loops, with
// integers, whose sums have no rounding.
#include "config.h"

#include "tap.h"
#include "yoke.h"

enum { RANK = 4, LIMIT = 1 << 18 };
static float x[LIMIT], got[LIMIT], want[LIMIT];

// A tensor as the loops see it: element i of an axis is `by` elements after the previous one.
struct view {
	int64_t dims[RANK], by[RANK], start;
};

static int64_t stored(const struct view *v, int64_t index)
{
	int64_t at = v->start;
	for (int d = RANK - 1; d >= 0; d--) {
		at += index % v->dims[d] * v->by[d];
		index /= v->dims[d];
	}
	return at;
}

static int64_t size_of(const struct view *v)
{
	int64_t n = 1;
	for (int d = 0; d < RANK; d++)
		n *= v->dims[d];
	return n;
}

// Adds up the elements for each position of the axes that are not in the mask; returns the number
// of sums.
static int64_t sum(const struct view *v, unsigned mask)
{
	int64_t sums = 1;
	for (int d = 0; d < RANK; d++)
		sums *= mask >> d & 1 ? 1 : v->dims[d];
	memset(want, 0, (size_t)sums * sizeof *want);
	for (int64_t i = 0; i < size_of(v); i++) {
		int64_t to = 0, size = 1, index = i;
		for (int d = RANK - 1; d >= 0; d--) {
			const int64_t k = index % v->dims[d];
			index /= v->dims[d];
			if (mask >> d & 1)
				continue;
			to += k * size;
			size *= v->dims[d];
		}
		want[to] += x[stored(v, i)];
	}
	return sums;
}

// dims: of the result of steps and order, before the reduction; steps below 0 flip the axis.
static void check(const int64_t *dims, const int64_t *steps, const int *order, unsigned mask)
{
	int64_t full[RANK], stride = 1, n = 1;
	struct view v = { .start = 0 }, own;
	for (int d = RANK - 1; d >= 0; d--) {
		const int64_t step = steps[d] < 0 ? 1 : steps[d];
		full[d] = dims[d] * step;
		own.dims[d] = dims[d];
		own.by[d] = steps[d] < 0 ? -stride : step * stride;
		v.start += steps[d] < 0 ? (dims[d] - 1) * stride : 0;
		stride *= full[d];
		n *= full[d];
	}
	for (int d = 0; d < RANK; d++) {
		v.dims[d] = own.dims[order[d]];
		v.by[d] = own.by[order[d]];
	}
	for (int64_t i = 0; i < n; i++)
		x[i] = (float)rnd_int(-3, 3);
	yoke_scope *s = yoke_scope_begin("sums");
	yoke_tensor *t = yoke_from(yoke_f32, RANK, full, x);
	unsigned flips = 0;
	for (int d = 0; d < RANK; d++) {
		if (steps[d] > 1)
			t = yoke_slice(t, d, 0, full[d], steps[d]);
		flips |= steps[d] < 0 ? 1u << d : 0;
	}
	if (flips)
		t = yoke_flip(t, flips);
	t = yoke_sum(yoke_permute(t, order), mask);
	const int64_t sums = sum(&v, mask);
	memset(got, 0xff, sizeof got);
	int64_t wrong = yoke_read(t, got, (uint64_t)sums * sizeof *got) < 0;
	for (int64_t i = 0; i < sums; i++)
		wrong += got[i] != want[i];
	ok(!wrong,
	   "%lld sums of %lldx%lldx%lldx%lld, steps %lld %lld %lld %lld, axes %x: %lld wrong: %s",
	   (long long)sums, (long long)v.dims[0], (long long)v.dims[1], (long long)v.dims[2],
	   (long long)v.dims[3], (long long)steps[order[0]], (long long)steps[order[1]],
	   (long long)steps[order[2]], (long long)steps[order[3]], mask, (long long)wrong,
	   yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
}

int main(void)
{
	static const int orders[][RANK] = { { 0, 1, 2, 3 }, { 3, 1, 0, 2 }, { 2, 3, 1, 0 } };
	// windows of 2 to 65 elements, rows of 1 to 2,049 sums
	static const int64_t sizes[][RANK] = {
		{ 3, 5, 4, 2 },    { 2, 3, 5, 3 },   { 7, 1, 19, 8 },  { 3, 2, 1025, 3 },
		{ 1, 3, 2049, 5 }, { 9, 5, 13, 5 },  { 2, 64, 17, 1 }, { 2, 65, 17, 1 },
		{ 5, 33, 9, 2 },   { 4, 16, 65, 1 }, { 4, 7, 64, 7 },  { 6, 15, 15, 3 }
	};
	static const int64_t steps[][RANK] = {
		{ 1, 1, 1, 1 }, { 1, 1, 2, 1 }, { 1, 1, 1, 2 }, { 2, 1, 3, 1 }, { 1, 1, -1, 1 }
	};
	static const unsigned masks[] = { 8, 2, 10, 1, 4 };

	tap_seed();
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
		for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
			for (size_t m = 0; m < sizeof masks / sizeof *masks; m++)
				check(sizes[k], steps[i], orders[(k + i + m) % 3], masks[m]);
	return done();
}
