// SPDX-License-Identifier: Apache-2.0
// Cases of COMPACT and SEARCHSORTED.
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "conform/case.h"

bool yk_make_compact(struct yk_case *c, int dtype)
{
	const int64_t n = yk_draw_one_in(c, 20) ? 0 :
						  yk_draw_size(c, yk_case_large(c) ? 100000 : 3000),
		      per = yk_draw_int(c, 1, 9);
	const int64_t capacity =
		yk_draw_one_in(c, 3) ? yk_draw_int(c, 0, n / per) : n + yk_draw_int(c, 0, 20);
	struct yk_num *x = yk_case_alloc(c, (uint64_t)n * sizeof *x);
	int64_t count = 0;
	yk_case_op(c, YOKE_OP_COMPACT);
	const uint32_t y = yk_case_out(c, yoke_i64, 1, &capacity, YK_ANY),
		       number = yk_case_out(c, yoke_i64, 0, NULL, YK_DENSE);
	for (int64_t i = 0; i < n; i++) {
		x[i].i = yk_draw_one_in(c, (int)per);
		if (x[i].i && count < capacity)
			yk_expect_int(&c->array[y].want[count], i);
		count += x[i].i;
	}
	for (int64_t i = count; i < capacity; i++)
		yk_expect_int(&c->array[y].want[i], -1);
	yk_expect_int(c->array[number].want, count);
	yk_case_in_of(c, dtype, 1, &n, YK_ANY, x);
	c->op.nattr = 1;
	c->op.attr[0].i = capacity;
	yk_case_note(c, "%lld of %lld, capacity %lld", (long long)count, (long long)n,
		     (long long)capacity);
	return true;
}

static int real_order(const void *a, const void *b)
{
	const struct yk_num *x = a, *y = b;
	return (x->f > y->f) - (x->f < y->f);
}

static int whole_order(const void *a, const void *b)
{
	const struct yk_num *x = a, *y = b;
	return (x->i > y->i) - (x->i < y->i);
}

bool yk_make_searchsorted(struct yk_case *c, int dtype)
{
	int64_t s[3], v[3];
	const int rank = (int)yk_draw_int(c, 1, 3), last = rank - 1;
	const bool real = yk_num_real(dtype), right = yk_draw_one_in(c, 2);
	int64_t rows = 1;
	for (int d = 0; d < last; d++)
		rows *= s[d] = v[d] = yk_draw_size(c, 6);
	s[last] = yk_draw_one_in(c, 12) ? 0 : yk_draw_size(c, yk_case_large(c) ? 3000 : 100);
	v[last] = yk_draw_one_in(c, 24) ? 0 : yk_draw_size(c, 200);
	struct yk_num *sorted = yk_case_alloc(c, (uint64_t)(rows * s[last]) * sizeof *sorted);
	struct yk_num *key = yk_case_alloc(c, (uint64_t)(rows * v[last]) * sizeof *key);
	for (int64_t i = 0; i < rows * s[last]; i++) // halves, which each dtype has
		sorted[i] = (struct yk_num){ .f = (double)yk_draw_int(c, 0, 40) / 2,
					     .i = yk_draw_int(c, 0, 40) };
	for (int64_t i = 0; i < rows * v[last]; i++)
		key[i] = (struct yk_num){ .f = (double)yk_draw_int(c, 0, 40) / 2,
					  .i = yk_draw_int(c, 0, 40) };
	yk_case_op(c, YOKE_OP_SEARCHSORTED);
	const uint32_t y = yk_case_out(c, yoke_i64, rank, v, YK_ANY);
	for (int64_t r = 0; r < rows; r++) {
		struct yk_num *row = sorted + r * s[last];
		qsort(row, (size_t)s[last], sizeof *row, real ? real_order : whole_order);
		for (int64_t i = r * v[last]; i < (r + 1) * v[last]; i++) {
			int64_t n = 0;
			for (int64_t k = 0; k < s[last]; k++) {
				const int order = real ? real_order(&row[k], &key[i]) :
							 whole_order(&row[k], &key[i]);
				n += order < 0 || (right && !order);
			}
			yk_expect_int(&c->array[y].want[i], n);
		}
	}
	yk_case_in_of(c, dtype, rank, s, YK_ROWS, sorted);
	yk_case_in_of(c, dtype, rank, v, YK_ANY, key);
	c->op.nattr = 1;
	c->op.attr[0].i = right;
	return true;
}
