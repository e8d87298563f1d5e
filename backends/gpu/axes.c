// SPDX-License-Identifier: Apache-2.0
// Builds the common axes of several tensors and divides an iteration over them among groups and
// items.
#include "config.h"

#include <string.h>

#include "axes.h"

// Items per group on GPUs; elements that one item processes on CPU-like devices.
#define GROUP 256
#define BLOCK 16384

static bool mergeable(const struct yk_gpu_axes *a, int n, const int64_t *const *strides, int axis,
		      int64_t dim)
{
	for (int k = 0; k < n; k++)
		if (strides[k] && a->strides[k][a->rank - 1] != strides[k][axis] * dim)
			return false;
	return true;
}

void yk_gpu_axes_of(struct yk_gpu_axes *a, int rank, const int64_t *dims, int n,
		    const int64_t *const *strides)
{
	memset(a, 0, sizeof *a);
	for (int i = 0; i < rank; i++) {
		if (dims[i] == 1)
			continue;
		if (a->rank && mergeable(a, n, strides, i, dims[i]))
			a->dims[a->rank - 1] *= dims[i];
		else
			a->dims[a->rank++] = dims[i];
		for (int k = 0; k < n; k++)
			a->strides[k][a->rank - 1] = strides[k] ? strides[k][i] : 0;
	}
	if (!a->rank)
		a->dims[a->rank++] = 1;
	a->cols = a->dims[a->rank - 1];
	a->rows = 1;
	for (int i = 0; i < a->rank - 1; i++)
		a->rows *= a->dims[i];
}

void yk_gpu_positions(int64_t *to, int rank, const int64_t *dims)
{
	int64_t n = 1;

	for (int i = rank - 1; i >= 0; i--) {
		to[i] = n;
		n *= dims[i];
	}
}

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void cut_blocks(struct yk_gpu_division *c, const size_t want[2], size_t block)
{
	c->block[0] = min(want[0], block);
	c->block[1] = min(want[1], (block + c->block[0] - 1) / c->block[0]);
}

// A group covers as much of a row as possible, then further rows. If a launch cannot have enough
// groups, items process several elements of a row.
static void cut_groups(struct yk_gpu_division *c, const struct yk_gpu_device *d,
		       const struct yk_gpu_entry *kernel, const size_t want[2])
{
	size_t left = min(kernel->group, GROUP);

	for (int i = 0; i < 2; i++) {
		size_t max = min(left, d->max_items[i]);
		while (c->group[i] * 2 <= max && c->group[i] < want[i])
			c->group[i] *= 2;
		left /= c->group[i];
	}
	while (d->max_groups && want[0] / c->group[0] / c->block[0] >= (size_t)d->max_groups)
		c->block[0] *= 2;
}

struct yk_gpu_division yk_gpu_division_of(const struct yk_gpu_device *d,
					  const struct yk_gpu_entry *kernel, uint64_t cols,
					  uint64_t rows, uint64_t cost)
{
	const size_t want[2] = { cols, rows };
	struct yk_gpu_division c = { { 1, 1 }, { 1, 1 }, { 1, 1 } };

	if (d->cpu_like)
		cut_blocks(&c, want, cost < BLOCK ? BLOCK / cost : 1);
	else
		cut_groups(&c, d, kernel, want);
	for (int i = 0; i < 2; i++) {
		size_t each = c.block[i] * c.group[i];
		c.items[i] = (want[i] + each - 1) / each * c.group[i];
	}
	return c;
}

void yk_gpu_arg_division(struct yk_gpu_record *r, const struct yk_gpu_division *c)
{
	yk_gpu_arg_word(r, c->block[0]);
	yk_gpu_arg_word(r, c->block[1]);
}
