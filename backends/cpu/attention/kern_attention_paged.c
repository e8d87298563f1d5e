// SPDX-License-Identifier: Apache-2.0
// PAGED_ATTENTION in f32.  A work item is a tile: some consecutive queries of one sequence, and the
// heads that share keys.  Each page is converted to f32 once for all of them; its keys are
// transposed, so that lanes are keys.  A query's keys are divided into intervals of PART positions,
// from position 0 on, whose results are combined in order.  So its bits depend neither on the tile
// it belongs to nor on which work item computes which interval: with few queries, intervals are
// work items of their own.
#include "config.h"

#include <stdatomic.h>

#include "../move/walk.h"
#include "kern_attention_tile.h"

#define CELL float
#define CELL_ALIGN 4
#include "../vector/transpose.h"

enum {
	PAGE = 16,
	PART = 256,     // positions of an interval
	// max rows of a tile, a row being a query of one head, unless one query has more
	TILE_ROWS = 32,
	FEW = 16,       // max queries whose intervals are work items of their own
	BLOCK = 8,      // rows multiplied with a page at a time
	WIDE = 2,       // vectors of head elements summed at a time, for up to 4 rows
	AHEAD = 2       // pages that are prefetched ahead
};

struct pages {
	const char *base;
	int64_t page, slot, head; // strides in bytes
	int dtype;
};

struct job {
	int64_t T, H, D, G, R, Dp;
	int64_t N, M, rows; // pages; pages and rows of the table
	struct heads q, o; // their axes are T, H, D
	struct pages k, v;
	const int32_t *table, *row, *pos;
	float scale, cap;
	int64_t window;
	int32_t *tile; // first query of each tile, and the end of the last one
	int64_t tiles;
	int64_t parts; // work items of a tile; 1: one item computes all intervals
	float *part;   // [T,H,parts]: maximum, sum, D sums of values; with parts > 1
	atomic_bool no_memory;
};

// Positions from .. to - 1 are visible.
struct range {
	int64_t from, to;
};

static bool is_i32(const struct yoke_view *v)
{
	return v->kind == YOKE_VIEW_BUFFER && v->dtype == yoke_i32 && yk_dense(v);
}

static bool are_pages(const struct yoke_view *v)
{
	return is_rows(v) && v->rank == 4 && v->dims[1] == PAGE;
}

static uint64_t can(const struct yoke_op *op)
{
	if (op->nin != 6 || op->nout != 1 || op->nattr != 3)
		return 0;
	const struct yoke_view *q = &op->in[0], *k = &op->in[1], *v = &op->in[2], *o = &op->out[0];
	if (!is_rows(q) || !is_rows(o) || q->rank != 3 || o->dtype != q->dtype || o->rank != 3 ||
	    !same_dims(q->dims, o->dims, 3))
		return 0;
	if (!are_pages(k) || !are_pages(v) || k->dtype != v->dtype ||
	    !same_dims(k->dims, v->dims, 4) || k->dims[3] != q->dims[2] || k->dims[2] < 1 ||
	    q->dims[1] % k->dims[2])
		return 0;
	for (int i = 3; i < 6; i++)
		if (!is_i32(&op->in[i]))
			return 0;
	return op->in[3].rank == 2 && op->in[4].rank == 1 && op->in[5].rank == 1 &&
	       op->in[4].dims[0] == q->dims[0] && op->in[5].dims[0] == q->dims[0];
}

static int64_t parts_of(const struct yoke_op *op)
{
	const int64_t parts = (op->in[3].dims[1] * PAGE + PART - 1) / PART;
	return op->in[0].dims[0] <= FEW && parts > 1 ? parts : 1;
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	const struct yoke_view *q = &op->in[0];
	const int64_t parts = parts_of(op);
	(void)impl;
	return (uint64_t)(q->dims[0] + 1) * sizeof(int32_t) + 64 +
	       (parts > 1 ? (uint64_t)(q->dims[0] * q->dims[1] * parts) *
				    (uint64_t)(2 + q->dims[2]) * sizeof(float) :
			    0);
}

// ---- pages ----

// kt (D, PAGE): the keys of a page, transposed; rows (PAGE, Dp): scratch
YK_INLINE void load_keys(const int dtype, const struct job *j, const char *from, float *rows,
			 float *kt)
{
	const int size = dtype == yoke_f32 ? 4 : 2;
	if (dtype == yoke_f32) {
		pack_transposed(kt, PAGE, from, j->k.slot, PAGE, j->D);
		return;
	}
	for (int i = 0; i < PAGE; i++)
		for (int64_t d = 0; d < j->D; d += VF)
			vf_store(rows + i * j->Dp + d,
				 vf_get_as(dtype, from + i * j->k.slot + d * size, j->D - d));
	pack_transposed(kt, PAGE, (const char *)rows, j->Dp * (int64_t)sizeof(float), PAGE, j->D);
}

// to (PAGE, Dp): values from .. end - 1 of a page
YK_INLINE void load_values(const int dtype, const struct job *j, const char *at, int64_t from,
			   int64_t end, float *to)
{
	const int size = dtype == yoke_f32 ? 4 : 2;
	for (int64_t i = from; i < end; i++)
		for (int64_t d = 0; d < j->D; d += VF)
			vf_store(to + i * j->Dp + d,
				 vf_get_as(dtype, at + i * j->v.slot + d * size, j->D - d));
}

// p (rows, step apart): scores of n rows of q with the keys of a page
YK_INLINE void dot_rows(const int n, int64_t D, const float *q, int64_t ldq, const float *kt,
			float *p, int64_t step)
{
	for (int l = 0; l < PAGE; l += VF) {
		vf sum[BLOCK];
#pragma GCC unroll 8
		for (int i = 0; i < n; i++)
			sum[i] = vf_splat(0);
		for (int64_t d = 0; d < D; d++) {
			const vf k = vf_load(kt + d * PAGE + l);
#pragma GCC unroll 8
			for (int i = 0; i < n; i++)
				sum[i] = vf_fma(vf_splat(q[i * ldq + d]), k, sum[i]);
		}
#pragma GCC unroll 8
		for (int i = 0; i < n; i++)
			vf_store(p + i * step + l, sum[i]);
	}
}

static void dot_page(int64_t rows, int64_t D, const float *q, int64_t ldq, const float *kt,
		     float *p, int64_t step)
{
	int64_t i = 0;
	for (; i + BLOCK <= rows; i += BLOCK)
		dot_rows(BLOCK, D, q + i * ldq, ldq, kt, p + i * step, step);
	for (; i + 3 <= rows; i += 3)
		dot_rows(3, D, q + i * ldq, ldq, kt, p + i * step, step);
	for (; i < rows; i++)
		dot_rows(1, D, q + i * ldq, ldq, kt, p + i * step, step);
}

// out (n, Dp) += p (n, step apart) times values from .. end - 1
YK_INLINE void add_rows(const int n, int64_t Dp, const float *p, int64_t step, const float *v,
			int64_t from, int64_t end, float *out)
{
	int64_t d = 0;
	for (; d + WIDE * VF <= Dp; d += WIDE * VF) {
		vf sum[4 * WIDE];
#pragma GCC unroll 8
		for (int i = 0; i < n * WIDE; i++)
			sum[i] = vf_load(out + i / WIDE * Dp + d + i % WIDE * VF);
		for (int64_t k = from; k < end; k++) {
			const vf a = vf_load(v + k * Dp + d), b = vf_load(v + k * Dp + d + VF);
#pragma GCC unroll 4
			for (int i = 0; i < n; i++) {
				const vf x = vf_splat(p[i * step + k]);
				sum[i * WIDE] = vf_fma(x, a, sum[i * WIDE]);
				sum[i * WIDE + 1] = vf_fma(x, b, sum[i * WIDE + 1]);
			}
		}
#pragma GCC unroll 8
		for (int i = 0; i < n * WIDE; i++)
			vf_store(out + i / WIDE * Dp + d + i % WIDE * VF, sum[i]);
	}
	for (; d < Dp; d += VF)
		for (int i = 0; i < n; i++) {
			vf sum = vf_load(out + i * Dp + d);
			for (int64_t k = from; k < end; k++)
				sum = vf_fma(vf_splat(p[i * step + k]), vf_load(v + k * Dp + d),
					     sum);
			vf_store(out + i * Dp + d, sum);
		}
}

// ---- tiles ----

static struct range range_of(const struct job *j, int64_t t)
{
	const int64_t pos = j->pos[t], s = j->M * PAGE;
	struct range r = { 0, pos + 1 < s ? pos + 1 : s };
	if (j->window > 0 && pos + 1 > j->window)
		r.from = pos + 1 - j->window;
	return r;
}

static struct range within(struct range r, int64_t from, int64_t to)
{
	return (struct range){ r.from > from ? r.from : from, r.to < to ? r.to : to };
}

static const char *page_at(const struct job *j, const struct pages *x, int64_t row, int64_t page,
			   int64_t g)
{
	return x->base + j->table[row * j->M + page] * x->page + g * x->head;
}

// Prefetches a head's slots of page `page` of an interval that ends before page `end`: pages and
// slots are too far apart for the hardware's prefetch.
static void prefetch_page(const struct job *j, const struct pages *x, int64_t row, int64_t page,
			  int64_t end, int64_t g)
{
	if (page >= end)
		return;
	const char *from = page_at(j, x, row, page, g);
	const int64_t bytes = j->D * (x->dtype == yoke_f32 ? 4 : 2);
	for (int i = 0; i < PAGE; i++)
		for (int64_t k = 0; k < bytes; k += 64)
			__builtin_prefetch(from + i * x->slot + k);
}

// Scratch of a tile of some rows.
struct chunk {
	int64_t t, n, g; // queries t .. t + n - 1, heads g R .. (g + 1) R - 1
	int64_t ld;      // of p
	float *q, *p, *out, *line, *page, *max, *sum, *acc;
};

enum { LD = PART + 2 * PAGE };

static bool tile_begin(struct job *j, int64_t t, int64_t n, int64_t g, struct chunk *to)
{
	const int64_t rows = n * j->R, line = PAGE * j->Dp;
	float *at = yk_team_scratch((size_t)(rows * (3 * j->Dp + LD + 2 * VF) + 2 * line + VF) *
				    sizeof *at);
	if (!at) {
		j->no_memory = true;
		return false;
	}
	*to = (struct chunk){ .t = t, .n = n, .g = g };
	to->q = at;
	to->out = to->q + rows * j->Dp;
	to->acc = to->out + rows * j->Dp;
	to->p = to->acc + rows * j->Dp;
	to->line = to->p + rows * LD;
	to->page = to->line + line;
	to->max = to->page + line;
	to->sum = to->max + rows;
	const float by = j->cap > 0 ? j->scale / j->cap : j->scale;
	for (int64_t i = 0; i < rows; i++) {
		const char *from = head_at(&j->q, t + i / j->R, g * j->R + i % j->R, 0);
		float *q = to->q + i * j->Dp;
		if (j->q.load)
			j->q.load(q, from, 1, j->D);
		else
			memcpy(q, from, (size_t)j->D * sizeof *q);
		for (int64_t d = 0; d < j->D; d++)
			q[d] *= by;
	}
	return true;
}

static void cap_scores(float cap, float *p)
{
	for (int i = 0; i < PAGE; i += VF) {
		vf x = vf_load(p + i);
		v_tanh(&x, 1);
		vf_store(p + i, x * vf_splat(cap));
	}
}

// p = the scores of all rows with positions from part on; those that a row does not see are -inf
static void score_part(const struct job *j, const struct chunk *x, int64_t part, struct range pages)
{
	const float none = -__builtin_inff();
	const int64_t rows = x->n * j->R, row = j->row[x->t];
	for (int i = 0; i < AHEAD; i++)
		prefetch_page(j, &j->k, row, pages.from + i, pages.to, x->g);
	for (int64_t page = pages.from; page < pages.to; page++) {
		const char *from = page_at(j, &j->k, row, page, x->g);
		prefetch_page(j, &j->k, row, page + AHEAD, pages.to, x->g);
		if (page + AHEAD >= pages.to) // the first values, which are next
			prefetch_page(j, &j->v, row, pages.from + page + AHEAD - pages.to, pages.to,
				      x->g);
		float *p = x->p + page * PAGE - part;
		EACH_DTYPE(j->k.dtype, load_keys, j, from, x->line, x->page);
		dot_page(rows, j->D, x->q, j->Dp, x->page, p, LD);
		for (int64_t i = 0; i < rows; i++) {
			const struct range r = within(range_of(j, x->t + i / j->R), page * PAGE,
						      (page + 1) * PAGE);
			float *to = p + i * LD - page * PAGE;
			if (j->cap > 0)
				cap_scores(j->cap, p + i * LD);
			for (int64_t s = page * PAGE; s < (page + 1) * PAGE; s++)
				if (s < r.from || s >= r.to)
					to[s] = none;
		}
	}
}

// out = the sums of values with positions from part on, weighted with p
static void sum_part(const struct job *j, const struct chunk *x, int64_t part, struct range pages)
{
	const int64_t rows = x->n * j->R;
	memset(x->out, 0, (size_t)(rows * j->Dp) * sizeof *x->out);
	for (int64_t page = pages.from; page < pages.to; page++) {
		const int64_t first = page * PAGE;
		prefetch_page(j, &j->v, j->row[x->t], page + AHEAD, pages.to, x->g);
		const struct range all = {
			within(range_of(j, x->t), first, first + PAGE).from,
			within(range_of(j, x->t + x->n - 1), first, first + PAGE).to
		};
		EACH_DTYPE(j->v.dtype, load_values, j, page_at(j, &j->v, j->row[x->t], page, x->g),
			   all.from - first, all.to - first, x->page);
		for (int64_t i = 0; i < rows;) {
			const struct range r =
				within(range_of(j, x->t + i / j->R), first, first + PAGE);
			const float *p = x->p + i * LD + first - part;
			float *out = x->out + i * j->Dp;
			int64_t n = 1;
			while (n < 4 && i + n < rows) {
				const struct range next = within(range_of(j, x->t + (i + n) / j->R),
								 first, first + PAGE);
				if (next.from != r.from || next.to != r.to)
					break;
				n++;
			}
			if (n == 4)
				add_rows(4, j->Dp, p, LD, x->page, r.from - first, r.to - first,
					 out);
			else if (n == 3)
				add_rows(3, j->Dp, p, LD, x->page, r.from - first, r.to - first,
					 out);
			else if (n == 2)
				add_rows(2, j->Dp, p, LD, x->page, r.from - first, r.to - first,
					 out);
			else
				add_rows(1, j->Dp, p, LD, x->page, r.from - first, r.to - first,
					 out);
			i += n;
		}
	}
}

// The results of positions part .. part + PART - 1 in x->out, x->max and x->sum.  False: no row
// sees any.
static bool compute_part(const struct job *j, const struct chunk *x, int64_t part)
{
	const struct range r = { within(range_of(j, x->t), part, part + PART).from,
				 within(range_of(j, x->t + x->n - 1), part, part + PART).to };
	const struct range pages = { r.from / PAGE, (r.to + PAGE - 1) / PAGE };
	if (r.from >= r.to)
		return false;
	score_part(j, x, part, pages);
	for (int64_t i = 0; i < x->n * j->R; i++) {
		const struct range own = within(range_of(j, x->t + i / j->R), part, part + PART);
		const int64_t from = own.from / PAGE * PAGE - part;
		x->sum[i] = 0;
		if (own.from < own.to)
			exponentials(x->p + i * LD + from,
				     (own.to - part + PAGE - 1) / PAGE * PAGE - from, &x->max[i],
				     &x->sum[i]);
		else
			x->max[i] = -__builtin_inff();
	}
	sum_part(j, x, part, pages);
	return true;
}

// Adds an interval's results to those of earlier ones: *max, *sum and acc (D).
static void join(const struct job *j, float max, float sum, const float *out, float *to_max,
		 float *to_sum, float *acc)
{
	const float top = max > *to_max ? max : *to_max, base = top == -__builtin_inff() ? 0 : top;
	const float was = yk_exp_f32(*to_max - base), now = yk_exp_f32(max - base);
	*to_sum = *to_sum * was + sum * now;
	*to_max = top;
	for (int64_t d = 0; d < j->D; d++)
		acc[d] = acc[d] * was + out[d] * now;
}

static void finish(const struct job *j, int64_t t, int64_t h, float sum, float *acc)
{
	const float by = sum == 0 ? 0 : 1 / sum;
	char *to = head_at(&j->o, t, h, 0);
	for (int64_t d = 0; d < j->D; d++)
		acc[d] *= by;
	if (j->o.store)
		j->o.store(to, acc, 1, j->D);
	else
		memcpy(to, acc, (size_t)j->D * sizeof *acc);
}

static void whole_tile(struct job *j, int64_t t, int64_t n, int64_t g)
{
	struct chunk x;
	if (!tile_begin(j, t, n, g, &x))
		return;
	const int64_t rows = n * j->R, last = range_of(j, t + n - 1).to;
	float *max = x.sum + rows, *sum = max + rows;
	for (int64_t i = 0; i < rows; i++) {
		max[i] = -__builtin_inff();
		sum[i] = 0;
	}
	memset(x.acc, 0, (size_t)(rows * j->Dp) * sizeof *x.acc);
	for (int64_t part = range_of(j, t).from / PART * PART; part < last; part += PART)
		if (compute_part(j, &x, part))
			for (int64_t i = 0; i < rows; i++)
				if (x.max[i] != -__builtin_inff() || x.sum[i] != 0)
					join(j, x.max[i], x.sum[i], x.out + i * j->Dp, &max[i],
					     &sum[i], x.acc + i * j->Dp);
	for (int64_t i = 0; i < rows; i++)
		finish(j, t + i / j->R, g * j->R + i % j->R, sum[i], x.acc + i * j->Dp);
}

static float *part_at(const struct job *j, int64_t t, int64_t h, int64_t part)
{
	return j->part + ((t * j->H + h) * j->parts + part) * (2 + j->D);
}

static void one_part(struct job *j, int64_t t, int64_t n, int64_t g, int64_t part)
{
	struct chunk x;
	if (range_of(j, t + n - 1).to <= part * PART || range_of(j, t).from >= (part + 1) * PART ||
	    !tile_begin(j, t, n, g, &x) || !compute_part(j, &x, part * PART))
		return;
	for (int64_t i = 0; i < n * j->R; i++) {
		float *to = part_at(j, t + i / j->R, g * j->R + i % j->R, part);
		to[0] = x.max[i];
		to[1] = x.sum[i];
		memcpy(to + 2, x.out + i * j->Dp, (size_t)j->D * sizeof *to);
	}
}

static void item(void *arg, int64_t i)
{
	struct job *j = arg;
	const int64_t part = i % j->parts, g = i / j->parts % j->G, tile = i / j->parts / j->G;
	const int64_t t = j->tile[tile], n = j->tile[tile + 1] - t;
	if (j->row[t] < 0) {
		for (int64_t h = g * j->R; h < (g + 1) * j->R && part == 0; h++)
			memset(head_at(&j->o, t, h, 0), 0, (size_t)(j->D * j->o.size));
		return;
	}
	if (j->parts == 1)
		whole_tile(j, t, n, g);
	else
		one_part(j, t, n, g, part);
}

static void join_row(void *arg, int64_t i)
{
	struct job *j = arg;
	const int64_t t = i / j->H, h = i % j->H;
	if (j->row[t] < 0)
		return;
	const struct range r = range_of(j, t);
	float max = -__builtin_inff(), sum = 0, *acc = yk_team_scratch((size_t)j->Dp * sizeof *acc);
	if (!acc) {
		j->no_memory = true;
		return;
	}
	memset(acc, 0, (size_t)j->Dp * sizeof *acc);
	for (int64_t part = r.from / PART; part * PART < r.to; part++) {
		const float *from = part_at(j, t, h, part);
		if (from[0] != -__builtin_inff() || from[1] != 0)
			join(j, from[0], from[1], from + 2, &max, &sum, acc);
	}
	finish(j, t, h, sum, acc);
}

// Divides the queries into tiles, and checks rows and pages.
static int make_tiles(struct job *j)
{
	const int64_t most = j->R < TILE_ROWS ? TILE_ROWS / j->R : 1;
	for (int64_t t = 0; t < j->T; t++) {
		const int64_t row = j->row[t], before = j->tiles ? t - j->tile[j->tiles - 1] : most;
		if (row < -1 || row >= j->rows)
			return yk_cpu_fail(
				YOKE_ERANGE,
				"paged_attention: row %lld at query %lld is not in -1..%lld",
				(long long)row, (long long)t, (long long)j->rows - 1);
		if (before < most && row >= 0 && row == j->row[t - 1] &&
		    j->pos[t] == j->pos[t - 1] + 1)
			continue;
		j->tile[j->tiles++] = (int32_t)t;
	}
	j->tile[j->tiles] = (int32_t)j->T;
	for (int64_t i = 0; i < j->tiles; i++) {
		const int64_t first = j->tile[i], row = j->row[first];
		const struct range r = { range_of(j, first).from,
					 range_of(j, j->tile[i + 1] - 1).to };
		for (int64_t page = r.from / PAGE; row >= 0 && page * PAGE < r.to; page++) {
			const int64_t at = j->table[row * j->M + page];
			if (at < 0 || at >= j->N)
				return yk_cpu_fail(
					YOKE_ERANGE,
					"paged_attention: page %lld of row %lld is not in 0..%lld",
					(long long)at, (long long)row, (long long)j->N - 1);
		}
	}
	return 0;
}

static struct pages pages_of(const struct yoke_view *v)
{
	const int64_t size = (int64_t)yk_esize(v->dtype);
	return (struct pages){ yk_ptr(v), v->strides[0] * size, v->strides[1] * size,
			       v->strides[2] * size, v->dtype };
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	const struct yoke_view *q = &op->in[0], *k = &op->in[1], *table = &op->in[3];
	struct job j = { .T = q->dims[0],
			 .H = q->dims[1],
			 .D = q->dims[2],
			 .G = k->dims[2],
			 .R = q->dims[1] / k->dims[2],
			 .Dp = (q->dims[2] + VF - 1) / VF * VF,
			 .N = k->dims[0],
			 .rows = table->dims[0],
			 .M = table->dims[1],
			 .q = heads_of(q),
			 .o = heads_of(&op->out[0]),
			 .k = pages_of(k),
			 .v = pages_of(&op->in[2]),
			 .table = yk_ptr(table),
			 .row = yk_ptr(&op->in[4]),
			 .pos = yk_ptr(&op->in[5]),
			 .scale = (float)op->attr[0].f,
			 .window = op->attr[1].i,
			 .cap = (float)op->attr[2].f,
			 .tile = yk_ptr(&op->workspace),
			 .parts = parts_of(op) };
	(void)impl, (void)prepared;
	if (!j.T || !j.H)
		return 0;
	j.part = (float *)((char *)j.tile + ((size_t)(j.T + 1) * sizeof(int32_t) + 63) / 64 * 64);
	const int e = make_tiles(&j);
	if (e < 0)
		return e;
	yk_team_run(j.tiles * j.G * j.parts, item, &j);
	if (j.parts > 1)
		yk_team_run(j.T * j.H, join_row, &j);
	return j.no_memory ? yk_cpu_fail(YOKE_ENOMEM, "paged_attention: no memory for a tile") : 0;
}

YK_KERNEL(attention_paged, PAGED_ATTENTION) = {
	.can = can, .workspace = workspace, .run = run, .impl = { "pages" },
};
