// SPDX-License-Identifier: Apache-2.0
// Attention forward of bf16, as kern_attention.c with products of pairs. A work item is a run of
// tiles of one head. Other dtypes, few queries, and values that are not finite are left to the
// kernel in f32.
#include "config.h"

#include <stdatomic.h>

#include "kern_attention_pairs.h"
#include "../vector/vfun.h"

struct job {
	struct attention a;
	int64_t run, runs; // tiles per work item, work items per head
	atomic_bool no_memory;
};

// Scratch of a work item.
struct scratch {
	uint16_t *k;     // (keys, ld)
	P *v;            // for each block of keys (ld, KEYS / 2): pairs of keys
	uint16_t *rows;  // (KEYS, ld)
	P *pairs;        // (KEYS / 2, ld)
	P *q;            // (ld / 2, TILE)
	float *out;      // (ld, TILE)
	float *s, *keep; // (KEYS, TILE)
	P *p;            // (KEYS / 2, TILE): probabilities, in pairs of keys
	int64_t ld;      // D, padded
};

static bool scratch_init(struct scratch *s, const struct attention *a, int64_t keys)
{
	const int64_t ld = padded(a->D), blocks = items_of(keys, KEYS);
	uintptr_t at = 0;
	for (int pass = 0; pass < 2; pass++) { // the first one adds up sizes
		s->k = next_array(&at, blocks * KEYS * ld * 2);
		s->v = next_array(&at, blocks * KEYS * ld * 2);
		s->rows = next_array(&at, KEYS * ld * 2);
		s->pairs = next_array(&at, KEYS * ld * 2);
		s->q = next_array(&at, ld * TILE * 2);
		s->out = next_array(&at, ld * TILE * 4);
		s->s = next_array(&at, KEYS * TILE * 4);
		s->keep = next_array(&at, KEYS * TILE * 4);
		s->p = next_array(&at, KEYS * TILE * 2);
		if (!pass && !(at = (uintptr_t)yk_team_scratch(at)))
			return false;
	}
	s->ld = ld;
	return true;
}

// Running maxima and sums of a tile's queries.
struct running {
	vf max[NV], sum[NV];
};

// Turns vector v of n scores into exp(score - maximum); rescales the sum and the output so far by
// the change of the maximum.
static void softmax_block(const struct attention *a, struct running *r, int v, int64_t n,
			  float *score, float *out)
{
	const vf min = vf_splat(-__builtin_inff());
	const vf scale = vf_splat(late_scale(a));
	vf high = min;
	for (int64_t i = 0; i < n; i++)
		high = vf_max(vf_load(score + i * TILE), high);
	const vf max = vf_max(high * scale, r->max[v]);
	// a query that has seen no key yet keeps a maximum of -inf; exp(-inf - 0) is 0
	const vf base = vf_select(max == min, vf_splat(0), max);
	const vf shrink = vf_exp(r->max[v] - base);
	vf sum = r->sum[v] * shrink;
	for (int64_t i = 0; i < n; i += 4) {
		vf e[4];
		YK_EACH(k, 4) e[k] = vf_fma(vf_load(score + (i + k) * TILE), scale, -base);
		v_exp(e, 4);
		YK_EACH(k, 4) vf_store(score + (i + k) * TILE, e[k]);
		sum += (e[0] + e[1]) + (e[2] + e[3]);
	}
	for (int64_t d = 0; d < a->D; d++)
		vf_store(out + d * TILE, vf_load(out + d * TILE) * shrink);
	r->max[v] = max;
	r->sum[v] = sum;
}

// p = the probabilities e of n keys as bf16, in pairs of keys
static void pair_lanes(P *p, const float *e, const float *keep, int64_t n)
{
	for (int64_t i = 0; i < n; i += 2, p += TILE) {
		uint16_t lanes[2][TILE];
		for (int k = 0; k < 2; k++) {
			vf x[NV];
			for (int v = 0; v < NV; v++) {
				x[v] = vf_load(e + (i + k) * TILE + v * VF);
				if (keep)
					x[v] *= vf_load(keep + (i + k) * TILE + v * VF);
			}
			put_lanes(lanes[k], x);
		}
		yk_join32(p, p + 16, lanes[0], lanes[1]);
	}
}

static struct running attend(const struct attention *a, const struct tile *x,
			     const struct scratch *w)
{
	const int64_t sees = x->sees[x->nv - 1], half = w->ld / 2;
	struct running r;
	for (int v = 0; v < NV; v++)
		r.max[v] = vf_splat(-__builtin_inff()), r.sum[v] = vf_splat(0);
	memset(w->out, 0, (size_t)(w->ld * TILE) * sizeof *w->out);
	for (int64_t j = 0; j < sees; j += KEYS) {
		const int64_t keys = sees - j < KEYS ? sees - j : KEYS, n = padded(keys);
		if (is_hidden(a, x, j, &(struct strip){ 0, keys, 0 }, 1))
			continue;
		multiply(n, TILE, half, (const P *)(const void *)(w->k + j * w->ld), half, w->q,
			 TILE, w->s, TILE, false);
		finish_scores(a, x, j, keys, n, w->s);
		for (int v = 0; v < x->nv; v++)
			softmax_block(a, &r, v, n, w->s + v * VF, w->out + v * VF);
		if (a->dropout > 0)
			keep_factors(a, x, j, keys, n, w->keep);
		pair_lanes(w->p, w->s, a->dropout > 0 ? w->keep : NULL, n);
		multiply(w->ld, TILE, n / 2, w->v + j / 2 * w->ld, KEYS / 2, w->p, TILE, w->out,
			 TILE, true);
	}
	return r;
}

static void finish(const struct attention *a, const struct tile *x, const struct running *r,
		   const struct scratch *w)
{
	float *lse = a->lse + (x->b * a->H + x->h) * a->T + x->t;
	vf inverse[NV] = { { 0 } };
	for (int v = 0; v < x->nv; v++) {
		const vf sum = r->sum[v], none = vf_splat(0);
		// all keys hidden: 0, and log 0 = -inf
		inverse[v] = vf_select(sum == none, none, vf_splat(1) / sum);
		vf_put(lse + v * VF, r->max[v] + vf_log(sum), x->rows - v * VF);
	}
	store_queries(a, &a->o, x, inverse, w->out, w->ld, w->rows, w->pairs);
}

// Copies keys and values 0 .. keys - 1. False if a value is not finite.
static bool copy_keys(const struct attention *a, const struct scratch *w, int64_t b, int64_t g,
		      int64_t keys)
{
	copy_rows(a, &a->k, b, 0, g, keys, w->k, w->ld);
	for (int64_t j = 0; j < keys; j += KEYS) {
		const int64_t n = keys - j < KEYS ? keys - j : KEYS;
		if (!copy_rows(a, &a->v, b, j, g, n, w->rows, w->ld))
			return false;
		pair_block(w->v + j / 2 * w->ld, w->rows, padded(n), w->ld, w->pairs);
	}
	return true;
}

static void forward(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct attention *a = &job->a;
	const struct stretch s = stretch_of(a, job->run, job->runs, item);
	struct scratch w;
	if (!scratch_init(&w, a, s.keys)) {
		job->no_memory = true;
		return;
	}
	if (!copy_keys(a, &w, s.b, s.h / a->group, s.keys)) {
		for (int64_t t = s.first; t < s.end; t += TILE)
			if (!ISA(yk_attention_tile)(a, s.b, s.h, t))
				job->no_memory = true;
		return;
	}
	begin_products();
	for (int64_t t = s.first; t < s.end; t += TILE) {
		const struct tile x = tile_of(a, s.b, s.h, t);
		copy_rows(a, &a->q, s.b, t, s.h, x.rows, w.rows, w.ld);
		transpose_pairs(w.q, TILE, (const P *)(const void *)w.rows, w.ld / 2, TILE,
				w.ld / 2);
		const struct running r = attend(a, &x, &w);
		finish(a, &x, &r, &w);
	}
	end_products();
}

static uint64_t can(const struct yoke_op *op)
{
	return ISA(yk_attention).can(op);
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	return ISA(yk_attention).workspace(op, impl);
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job job = { 0 };
	struct attention *a = &job.a;
	int err = ISA(yk_attention_of)(op, a);
	if (err)
		return err;
	a->o = heads_of(&op->out[0]);
	a->lse = yk_ptr(&op->out[1]);
	if (!takes(a) || !strcmp(ISA(yk_attention).impl[impl], "rows"))
		return ISA(yk_attention).run(op, impl, prepared);
	a->converted = true;
	job.run = tiles_per_item(a);
	job.runs = items_of(items_of(a->T, TILE), job.run);
	yk_team_run(a->B * a->H * job.runs, forward, &job);
	if (job.no_memory)
		return yk_cpu_fail(YOKE_ENOMEM, "attention: no memory for a tile");
	return 0;
}

const struct yk_kernel LEVEL(yk_attention) = {
	.can = can,
	.workspace = workspace,
	.run = run,
	.impl = { "rows", "tiles" },
};
