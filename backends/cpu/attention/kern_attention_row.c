// SPDX-License-Identifier: Apache-2.0
// Attention forward for few queries (token generation with a key/value cache), in f32. A tile of
// queries would have mostly empty lanes, so lanes are head elements and each query loops over the
// keys on its own. A work item is PART keys and one query of one head; or, if that leaves enough
// work items, of all heads that share the keys, which are then read from memory once. The parts of
// a query are combined afterwards, in order.
#include "config.h"

#include <stdatomic.h>

#include "kern_attention_tile.h"
#include "../vector/philox.h"
#include "../vector/vfun.h"

enum {
	PART = 512,  // keys per work item
	MIN_ITEMS = 16, // enough work items
	WIDE = 4     // vectors of head elements summed at a time
};

struct job {
	struct attention a;
	int64_t parts; // per query
	int64_t heads; // heads per work item
	float *part;   // (rows, parts, 2 + D): maximum, sum, output before division by the sum
	atomic_bool no_memory;
};

// p[i] = q k_i, i < n; q (Dp) is scaled, zeros after D
YK_INLINE void dot_keys(const int dtype, const struct attention *a, const float *q,
			const char *k, int64_t n, float *p)
{
	const int size = dtype == yoke_f32 ? 4 : 2;
	const int64_t step = a->k.t * size;
	int64_t i = 0;
	for (; i + 4 <= n; i += 4, k += 4 * step) {
		vf sum[4] = { { 0 } };
		for (int64_t d = 0; d < a->D; d += VF) {
			const vf x = vf_load(q + d);
			for (int m = 0; m < 4; m++)
				sum[m] = vf_fma(x,
						vf_get_as(dtype, k + m * step + d * size,
							  a->D - d),
						sum[m]);
		}
		for (int m = 0; m < 4; m++)
			p[i + m] = vf_sum(sum[m]);
	}
	for (; i < n; i++, k += step) {
		vf sum = { 0 };
		for (int64_t d = 0; d < a->D; d += VF)
			sum = vf_fma(vf_load(q + d),
				     vf_get_as(dtype, k + d * size, a->D - d), sum);
		p[i] = vf_sum(sum);
	}
}

// out (D) = sum of p[i] v_i, i < n; seen: skips p[i] == 0, whatever the values are
YK_INLINE void sum_values(const int dtype, const struct attention *a, const float *p,
			  const char *v, int64_t n, const bool seen, float *out)
{
	const int size = dtype == yoke_f32 ? 4 : 2;
	const int64_t step = a->v.t * size;
	int64_t d = 0;
	for (; d + WIDE * VF <= a->D; d += WIDE * VF) {
		vf sum[WIDE] = { { 0 } };
		for (int64_t i = 0; i < n; i++) {
			if (seen && p[i] == 0)
				continue;
			const vf x = vf_splat(p[i]);
			const char *at = v + i * step;
			for (int m = 0; m < WIDE; m++)
				sum[m] = vf_fma(
					x, vf_get_as(dtype, at + (d + m * VF) * size, VF),
					sum[m]);
		}
		for (int m = 0; m < WIDE; m++)
			vf_store(out + d + m * VF, sum[m]);
	}
	for (; d < a->D; d += VF) {
		vf sum = { 0 };
		for (int64_t i = 0; i < n; i++)
			if (!seen || p[i] != 0)
				sum = vf_fma(vf_splat(p[i]),
					     vf_get_as(dtype, v + i * step + d * size, a->D - d),
					     sum);
		vf_put(out + d, sum, a->D - d);
	}
}

// p[i] += element i of the mask, i < n, starting at its element `first`
YK_INLINE void add_row_mask(const int dtype, const struct attention *a, int64_t first,
			    int64_t n, float *p)
{
	for (int64_t i = 0; i < n; i++)
		p[i] = masked(p[i], number_at(dtype, a->mask, first + i * a->mask_s));
}

static void drop(const struct attention *a, int64_t first, int64_t n, uint32_t *bits,
		 float *p)
{
	const float kept = 1 / (1 - a->dropout);
	yk_philox_fill(bits, (uint64_t)first, n, a->key, (uint64_t)a->step);
	for (int64_t i = 0; i < n; i++)
		p[i] = yk_uniform_f32(bits[i]) >= a->dropout ? p[i] * kept : 0;
}

// Stores the row's output and lse, given the sum of its weighted values.
static void finish(const struct attention *a, int64_t row, float max, float sum,
		   float *from)
{
	const int64_t t = row % a->T, h = row / a->T % a->H, b = row / a->T / a->H;
	const vf inverse = vf_splat(sum == 0 ? 0 : 1 / sum);
	float *o = a->o.store ? from : (float *)head_at(&a->o, b, t, h);
	for (int64_t d = 0; d < a->D; d += VF)
		vf_put(o + d, vf_get(from + d, a->D - d) * inverse, a->D - d);
	if (a->o.store)
		row_put_at(a, &a->o, b, t, h, o);
	a->lse[row] = max + yk_log_f32(sum);
}

// One query of one head for one part of its keys.
static void query_part(struct job *job, int64_t b, int64_t h, int64_t t, int64_t part)
{
	const struct attention *a = &job->a;
	const int64_t row = (b * a->H + h) * a->T + t;
	const int64_t seen = keys_of(a, b);
	int64_t sees = a->causal ? t + 1 + seen - a->T : seen, from = part * PART;
	sees = sees < from + PART ? sees : from + PART;
	const int64_t n = sees > from ? sees - from : 0;

	float *q = yk_team_scratch(((size_t)a->Dp * 2 + 2 * PART + VF) * sizeof *q);
	if (!q) {
		job->no_memory = true;
		return;
	}
	float *out = q + a->Dp, *p = out + a->Dp, max, sum;
	const struct block query = rows_from(a, &a->q, b, t, h, 1, q);
	for (int64_t d = 0; d < a->Dp; d += VF)
		vf_store(q + d, vf_get(query.at + d, a->D - d) * vf_splat(a->scale));
	EACH_DTYPE(a->k.dtype, dot_keys, a, q, head_at(&a->k, b, from, h / a->group), n, p);
	if (a->mask)
		EACH_DTYPE(a->mask_dtype, add_row_mask, a,
			   b * a->mask_b + h * a->mask_h + t * a->mask_t + from * a->mask_s,
			   n, p);
	exponentials(p, n, &max, &sum);
	if (a->dropout > 0)
		drop(a, row * a->S + from, n, (uint32_t *)(p + PART + VF), p);
	const char *v = head_at(&a->v, b, from, h / a->group);
	EACH_DTYPE(a->v.dtype, sum_values, a, p, v, n, false, out);
	if (a->mask && has_nan(out, a->D)) // a NaN may come from values hidden from the query
		EACH_DTYPE(a->v.dtype, sum_values, a, p, v, n, true, out);
	if (job->parts == 1) {
		finish(a, row, max, sum, out);
		return;
	}
	float *to = job->part + (row * job->parts + part) * (2 + a->D);
	to[0] = max;
	to[1] = sum;
	memcpy(to + 2, out, (size_t)a->D * sizeof *out);
}

static void forward(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct attention *a = &job->a;
	const int64_t part = item % job->parts, t = item / job->parts % a->T;
	const int64_t first = item / job->parts / a->T * job->heads; // counted over all b and h
	for (int64_t i = first; i < first + job->heads; i++)
		query_part(job, i / a->H, i % a->H, t, part);
}

// Adds parts 1 and up of a row to its part 0, scaled to their common maximum.
static void join(void *arg, int64_t row)
{
	const struct job *job = arg;
	const struct attention *a = &job->a;
	const int64_t size = 2 + a->D;
	float *to = job->part + row * job->parts * size, max = to[0], sum = 0;
	for (int64_t i = 1; i < job->parts; i++)
		max = to[i * size] > max ? to[i * size] : max;
	const float base = max == -__builtin_inff() ? 0 : max;
	for (int64_t i = 0; i < job->parts; i++) {
		const float *from = to + i * size, scale = yk_exp_f32(from[0] - base);
		sum += from[1] * scale;
		for (int64_t d = 2; d < size; d++)
			to[d] = (i ? to[d] : 0) + from[d] * scale;
	}
	finish(a, row, max, sum, to + 2);
}

uint64_t ISA(yk_attention_rows_space)(const struct yoke_op *op)
{
	const struct yoke_view *q = &op->in[0];
	const int64_t parts = items_of(op->in[1].dims[1], PART);
	if (parts <= 1)
		return 0;
	return (uint64_t)(q->dims[0] * q->dims[1] * q->dims[2] * parts) *
	       (uint64_t)(2 + q->dims[3]) * sizeof(float);
}

int ISA(yk_attention_rows)(const struct yoke_op *op, const struct attention *a)
{
	const int64_t rows = a->B * a->H * a->T, parts = items_of(a->S, PART);
	struct job job = { .a = *a, .parts = parts > 1 ? parts : 1, .heads = 1 };
	if (a->B * a->G * a->T * job.parts >= MIN_ITEMS)
		job.heads = a->group ? a->group : 1;
	if (parts > 1)
		job.part = yk_ptr(&op->workspace);
	yk_team_run(rows / job.heads * job.parts, forward, &job);
	if (job.parts > 1)
		yk_team_run(rows, join, &job);
	if (job.no_memory)
		return yk_cpu_fail(YOKE_ENOMEM, "attention: no memory for a row");
	return 0;
}
