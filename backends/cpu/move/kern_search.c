// SPDX-License-Identifier: Apache-2.0
// SEARCHSORTED: for each element of v the number of elements of a sorted row that come before it.
// All searches in a row of n elements take the same steps, so that TOGETHER of them proceed side by
// side and their cache misses overlap.
#include "config.h"

#include "../vector/half.h"
#include "walk.h"

enum { TOGETHER = 16, PER_ITEM = 1 << 12 };

// Searches m elements of v, `step` apart, in s [n]; n is at least 1.
typedef void search_fn(int64_t *y, const char *s, int64_t n, const char *v, int64_t m, int64_t step,
		       int64_t to_step);

struct job {
	const struct yoke_view *s, *v, *y;
	search_fn *search;
	int64_t n, m, chunks; // of each row of v
};

#define SAME(x) (x)

#define SEARCH(name, T, K, LOAD, BEFORE) \
	static void name(int64_t *y, const char *sv, int64_t n, const char *vv, int64_t m, \
			 int64_t step, int64_t to_step) \
	{ \
		const T *s = (const T *)sv, *v = (const T *)vv; \
		for (int64_t i = 0; i < m; i += TOGETHER) { \
			const int64_t some = m - i < TOGETHER ? m - i : TOGETHER; \
			int64_t at[TOGETHER] = { 0 }; \
			K key[TOGETHER] = { 0 }; \
			for (int64_t k = 0; k < some; k++) \
				key[k] = LOAD(v[(i + k) * step]); \
			for (int64_t left = n; left > 1; left -= left / 2) \
				for (int k = 0; k < TOGETHER; k++) \
					at[k] += LOAD(s[at[k] + left / 2 - 1]) BEFORE key[k] ? \
						 left / 2 : 0; \
			for (int64_t k = 0; k < some; k++) \
				y[(i + k) * to_step] = at[k] + (LOAD(s[at[k]]) BEFORE key[k]); \
		} \
	}
#define BOTH(name, T, K, LOAD) \
	SEARCH(less_##name, T, K, LOAD, <) \
	SEARCH(up_to_##name, T, K, LOAD, <=)
BOTH(f32, float, float, SAME)
BOTH(f64, double, double, SAME)
BOTH(f16, uint16_t, float, yk_f32_of_f16)
BOTH(bf16, uint16_t, float, yk_f32_of_bf16)
BOTH(i8, int8_t, int8_t, SAME)
BOTH(u8, uint8_t, uint8_t, SAME)
BOTH(i32, int32_t, int32_t, SAME)
BOTH(i64, int64_t, int64_t, SAME)

static search_fn *const table[][2] = {
	[yoke_f32] = { less_f32, up_to_f32 }, [yoke_f64] = { less_f64, up_to_f64 },
	[yoke_f16] = { less_f16, up_to_f16 }, [yoke_bf16] = { less_bf16, up_to_bf16 },
	[yoke_i8] = { less_i8, up_to_i8 },    [yoke_u8] = { less_u8, up_to_u8 },
	[yoke_i32] = { less_i32, up_to_i32 }, [yoke_i64] = { less_i64, up_to_i64 },
};

static uint64_t can(const struct yoke_op *op)
{
	if (op->nin != 2 || op->nout != 1 || op->nattr < 1)
		return 0;
	const struct yoke_view *s = &op->in[0], *v = &op->in[1], *y = &op->out[0];
	const int last = s->rank - 1;
	return s->kind == YOKE_VIEW_BUFFER && v->kind == YOKE_VIEW_BUFFER &&
	       y->kind == YOKE_VIEW_BUFFER && s->dtype == v->dtype && s->dtype != yoke_bool &&
	       y->dtype == yoke_i64 && last >= 0 && v->rank == s->rank && y->rank == s->rank &&
	       same_dims(s->dims, v->dims, last) && same_dims(y->dims, v->dims, s->rank) &&
	       (s->strides[last] == 1 || s->dims[last] < 2);
}

static void item(void *arg, int64_t index)
{
	const struct job *j = arg;
	const int last = j->s->rank - 1;
	const int64_t row = index / j->chunks, first = index % j->chunks * PER_ITEM,
		      size = (int64_t)yk_esize(j->s->dtype);
	const int64_t m = j->m - first < PER_ITEM ? j->m - first : PER_ITEM,
		      step = j->v->strides[last], to_step = j->y->strides[last];
	int64_t *y = (int64_t *)yk_ptr(j->y) + offset_of(j->y->dims, j->y->strides, last, row) +
		     first * to_step;
	if (!j->n) {
		for (int64_t i = 0; i < m; i++)
			y[i * to_step] = 0;
		return;
	}
	j->search(y,
		  (const char *)yk_ptr(j->s) +
			  offset_of(j->s->dims, j->s->strides, last, row) * size,
		  j->n,
		  (const char *)yk_ptr(j->v) +
			  (offset_of(j->v->dims, j->v->strides, last, row) + first * step) * size,
		  m, step, to_step);
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job j = { .s = &op->in[0], .v = &op->in[1], .y = &op->out[0] };
	const int last = j.s->rank - 1;
	int64_t rows = 1;
	(void)impl, (void)prepared;
	for (int d = 0; d < last; d++)
		rows *= j.s->dims[d];
	j.n = j.s->dims[last];
	j.m = j.v->dims[last];
	j.chunks = (j.m + PER_ITEM - 1) / PER_ITEM;
	j.search = table[j.s->dtype][op->attr[0].i != 0];
	yk_team_run(rows * j.chunks, item, &j);
	return 0;
}

YK_KERNEL(searchsorted, SEARCHSORTED) = { .can = can, .run = run, .impl = { "binary" } };
