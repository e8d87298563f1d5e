// SPDX-License-Identifier: Apache-2.0
// Attention backward of bf16: the algorithm and the division of kern_attention_backward.c with
// products of pairs. Other dtypes and values that are not finite are left to the kernel in f32.
#include "config.h"

#include <stdatomic.h>

#include "kern_attention_pairs.h"
#include "../vector/vfun.h"

struct job {
	struct attention a;
	int64_t chunks;    // of keys
	int64_t run, runs; // second pass: tiles per work item, work items per head
	atomic_bool no_memory;
};

// Scratch of a work item, for keys from .. to - 1.
struct scratch {
	int64_t from, to, ld;               // ld: D, padded
	uint16_t *k, *v;                    // (keys, ld)
	P *kt;                              // for each block of keys (ld, KEYS / 2): pairs of keys
	uint16_t *q_rows, *g_rows, *o_rows; // (TILE, ld) of the tile
	P *q, *g;                           // (ld / 2, TILE): pairs of head elements
	P *q_pairs, *g_pairs;               // (TILE / 2, ld): pairs of queries
	float *s, *dp, *keep;               // (KEYS, TILE)
	uint16_t *p_rows, *ds_rows;         // (KEYS, TILE)
	P *pairs;                           // (KEYS / 2, ld or TILE)
	float *dq;                          // (ld, TILE)
	float *dk, *dv;                     // (keys, ld); NULL: compute only dq
	vf lse[NV], r[NV];
};

static bool scratch_init(struct scratch *s, const struct attention *a, int64_t from, int64_t to,
			 bool dk)
{
	const int64_t ld = padded(a->D), keys = items_of(to - from, KEYS) * KEYS;
	uintptr_t at = 0;
	for (int pass = 0; pass < 2; pass++) { // the first one adds up sizes
		s->k = next_array(&at, keys * ld * 2);
		s->v = next_array(&at, keys * ld * 2);
		s->kt = next_array(&at, keys * ld * 2);
		s->q_rows = next_array(&at, TILE * ld * 2);
		s->g_rows = next_array(&at, TILE * ld * 2);
		s->o_rows = next_array(&at, TILE * ld * 2);
		s->q = next_array(&at, TILE * ld * 2);
		s->g = next_array(&at, TILE * ld * 2);
		s->q_pairs = next_array(&at, TILE * ld * 2);
		s->g_pairs = next_array(&at, TILE * ld * 2);
		s->s = next_array(&at, KEYS * TILE * 4);
		s->dp = next_array(&at, KEYS * TILE * 4);
		s->keep = next_array(&at, KEYS * TILE * 4);
		s->p_rows = next_array(&at, KEYS * TILE * 2);
		s->ds_rows = next_array(&at, KEYS * TILE * 2);
		s->pairs = next_array(&at, KEYS * (ld > TILE ? ld : TILE) * 2);
		s->dq = next_array(&at, ld * TILE * 4);
		s->dk = next_array(&at, dk ? keys * ld * 4 : 0);
		s->dv = next_array(&at, dk ? keys * ld * 4 : 0);
		if (!pass && !(at = (uintptr_t)yk_team_scratch(at)))
			return false;
	}
	s->from = from;
	s->to = to;
	s->ld = ld;
	if (dk) {
		memset(s->dk, 0, (size_t)(keys * ld) * sizeof *s->dk);
		memset(s->dv, 0, (size_t)(keys * ld) * sizeof *s->dv);
	} else {
		s->dk = s->dv = NULL;
	}
	return true;
}

// Copies keys and values; dq: also keys in pairs. False if some are not finite.
static bool copy_keys(const struct attention *a, const struct scratch *s, int64_t b, int64_t g,
		      bool dq)
{
	if (!copy_rows(a, &a->k, b, s->from, g, s->to - s->from, s->k, s->ld) ||
	    !copy_rows(a, &a->v, b, s->from, g, s->to - s->from, s->v, s->ld))
		return false;
	for (int64_t j = 0; j < s->to - s->from && dq; j += KEYS) {
		const int64_t n = s->to - s->from - j < KEYS ? s->to - s->from - j : KEYS;
		pair_block(s->kt + j / 2 * s->ld, s->k + j * s->ld, padded(n), s->ld, s->pairs);
	}
	return true;
}

static vf row_product(const uint16_t *x, const uint16_t *y, int64_t n)
{
	vf sum = { 0 };
	for (int64_t d = 0; d < n; d += VF)
		sum = vf_fma(vf_of_bf16(vh_load(x + d)), vf_of_bf16(vh_load(y + d)), sum);
	return sum;
}

// False if a query or the gradient of an output is not finite.
static bool begin_tile(const struct attention *a, const struct tile *x, struct scratch *s)
{
	const float *lse = a->lse + (x->b * a->H + x->h) * a->T + x->t;
	const int64_t half = s->ld / 2;
	float r[TILE] = { 0 };
	if (!copy_rows(a, &a->q, x->b, x->t, x->h, x->rows, s->q_rows, s->ld) ||
	    !copy_rows(a, &a->g, x->b, x->t, x->h, x->rows, s->g_rows, s->ld))
		return false;
	copy_rows(a, &a->o, x->b, x->t, x->h, x->rows, s->o_rows, s->ld);
	transpose_pairs(s->q, TILE, (const P *)(const void *)s->q_rows, half, TILE, half);
	transpose_pairs(s->g, TILE, (const P *)(const void *)s->g_rows, half, TILE, half);
	if (s->dk) {
		pair_rows(s->q_pairs, s->q_rows, TILE, s->ld);
		pair_rows(s->g_pairs, s->g_rows, TILE, s->ld);
	}
	for (int i = 0; i < x->rows; i++)
		r[i] = vf_sum(row_product(s->o_rows + i * s->ld, s->g_rows + i * s->ld, s->ld));
	for (int v = 0; v < NV; v++) {
		const int64_t lanes = x->rows - v * VF;
		const vf l = lanes > 0 ? vf_get(lse + v * VF, lanes) : vf_splat(0);
		// for a query that sees no key: exp(-inf - inf) is 0
		s->lse[v] = vf_select(l == vf_splat(-__builtin_inff()), -l, l);
		s->r[v] = vf_load(r + v * VF);
	}
	return true;
}

// Rows of n keys: p_rows = P M and ds_rows = dS, from scores and products g v'.
static void gradients(const struct attention *a, const struct scratch *s, int64_t n)
{
	const vf none = vf_splat(0), hidden = vf_splat(-__builtin_inff()),
		 scale = vf_splat(late_scale(a));
	for (int64_t i = 0; i < n; i++) {
		vf p[NV], ds[NV];
		for (int v = 0; v < NV; v++)
			p[v] = vf_fma(vf_load(s->s + i * TILE + v * VF), scale, -s->lse[v]);
		for (int v = 0; v < NV; v += 2)
			v_exp(p + v, 2);
		for (int v = 0; v < NV; v++) {
			const int64_t at = i * TILE + v * VF;
			vf dp = vf_load(s->dp + at), kept;
			kept = p[v] = vf_select(vf_load(s->s + at) == hidden, none, p[v]);
			if (a->dropout > 0) {
				const vf m = vf_load(s->keep + at);
				dp *= m;
				kept *= m;
			}
			ds[v] = vf_select(p[v] == none, none, p[v] * (dp - s->r[v]));
			p[v] = kept;
		}
		put_lanes(s->p_rows + i * TILE, p);
		put_lanes(s->ds_rows + i * TILE, ds);
	}
}

// Processes one tile of queries. False if some of its operands are not finite.
static bool tile_backward(const struct attention *a, const struct tile *x, bool dq,
			  struct scratch *s)
{
	const int64_t ld = s->ld, half = ld / 2, sees = x->sees[x->nv - 1];
	const int64_t to = s->to < sees ? s->to : sees;
	if (!begin_tile(a, x, s))
		return false;
	if (dq)
		memset(s->dq, 0, (size_t)(ld * TILE) * sizeof *s->dq);
	for (int64_t j = s->from; j < to; j += KEYS) {
		const int64_t keys = to - j < KEYS ? to - j : KEYS, n = padded(keys),
			      at = j - s->from;
		if (is_hidden(a, x, j, &(struct strip){ 0, keys, 0 }, 1))
			continue;
		multiply(n, TILE, half, (const P *)(const void *)(s->k + at * ld), half, s->q, TILE,
			 s->s, TILE, false);
		multiply(n, TILE, half, (const P *)(const void *)(s->v + at * ld), half, s->g, TILE,
			 s->dp, TILE, false);
		finish_scores(a, x, j, keys, n, s->s);
		if (a->dropout > 0)
			keep_factors(a, x, j, keys, n, s->keep);
		gradients(a, s, n);
		if (s->dk) {
			multiply(n, ld, TILE / 2, (const P *)(const void *)s->p_rows, TILE / 2,
				 s->g_pairs, ld, s->dv + at * ld, ld, true);
			multiply(n, ld, TILE / 2, (const P *)(const void *)s->ds_rows, TILE / 2,
				 s->q_pairs, ld, s->dk + at * ld, ld, true);
		}
		if (dq) {
			pair_rows(s->pairs, s->ds_rows, n, TILE);
			multiply(ld, TILE, n / 2, s->kt + at / 2 * ld, KEYS / 2, s->pairs, TILE,
				 s->dq, TILE, true);
		}
	}
	if (dq) {
		vf scale[NV];
		for (int v = 0; v < NV; v++)
			scale[v] = vf_splat(a->scale);
		store_queries(a, &a->dq, x, scale, s->dq, ld, s->o_rows, s->pairs);
	}
	return true;
}

static bool try_keys(const struct attention *a, int64_t b, int64_t g, struct scratch *s)
{
	const bool dq = a->S <= ONE_PASS;
	bool finite = copy_keys(a, s, b, g, dq);
	if (!finite)
		return false;
	begin_products();
	for (int64_t h = g * a->group; h < (g + 1) * a->group; h++)
		for (int64_t t = 0; t < a->T && finite; t += TILE) {
			const struct tile x = tile_of(a, b, h, t);
			finite = tile_backward(a, &x, dq, s);
		}
	end_products();
	return finite;
}

// Stores n rows from t on: scale * from (n, ld).
static void store_rows(const struct attention *a, const struct heads *x, int64_t b, int64_t t,
		       int64_t h, int64_t n, const float *from, int64_t ld, float scale)
{
	for (int64_t i = 0; i < n; i++, from += ld) {
		uint16_t *to = (uint16_t *)(void *)head_at(x, b, t + i, h);
		for (int64_t d = 0; d < a->D; d += UNIT) {
			uint16_t some[UNIT];
			vf y[NV];
			for (int v = 0; v < NV; v++)
				y[v] = vf_load(from + d + v * VF) * vf_splat(scale);
			put_lanes(a->D - d < UNIT ? some : to + d, y);
			if (a->D - d < UNIT)
				memcpy(to + d, some, (size_t)(a->D - d) * sizeof *to);
		}
	}
}

// Computes dk and dv of a chunk of keys of one head of k and v; also dq if there is only one chunk.
static void backward_keys(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct attention *a = &job->a;
	const int64_t from = item % job->chunks * ONE_PASS, bg = item / job->chunks;
	const int64_t to = from + ONE_PASS < a->S ? from + ONE_PASS : a->S;
	const int64_t b = bg / a->G, g = bg % a->G;
	struct scratch s;
	if (!scratch_init(&s, a, from, to, true)) {
		job->no_memory = true;
		return;
	}
	if (!try_keys(a, b, g, &s)) {
		if (!ISA(yk_attention_backward_keys)(a, b, g, from))
			job->no_memory = true;
		return;
	}
	store_rows(a, &a->dk, b, from, g, to - from, s.dk, s.ld, a->scale);
	store_rows(a, &a->dv, b, from, g, to - from, s.dv, s.ld, 1);
}

// Computes dq of a stretch.
static bool try_queries(const struct attention *a, const struct stretch *q, struct scratch *s)
{
	bool finite = copy_keys(a, s, q->b, q->h / a->group, true);
	if (!finite)
		return false;
	begin_products();
	for (int64_t t = q->first; t < q->end && finite; t += TILE) {
		const struct tile x = tile_of(a, q->b, q->h, t);
		finite = tile_backward(a, &x, true, s);
	}
	end_products();
	return finite;
}

static void backward_queries(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct attention *a = &job->a;
	const struct stretch q = stretch_of(a, job->run, job->runs, item);
	struct scratch s;
	if (!scratch_init(&s, a, 0, q.keys, false)) {
		job->no_memory = true;
		return;
	}
	if (try_queries(a, &q, &s))
		return;
	for (int64_t t = q.first; t < q.end; t += TILE)
		if (!ISA(yk_attention_backward_queries)(a, q.b, q.h, t))
			job->no_memory = true;
}

static uint64_t can(const struct yoke_op *op)
{
	return ISA(yk_attention_backward).can(op);
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job job = { 0 };
	struct attention *a = &job.a;
	int err = ISA(yk_attention_backward_of)(op, a);
	if (err)
		return err;
	if (!takes(a) || a->g.dtype != yoke_bf16)
		return ISA(yk_attention_backward).run(op, impl, prepared);
	// one chunk even without keys, which sets dq to 0
	job.chunks = a->S > ONE_PASS ? items_of(a->S, ONE_PASS) : 1;
	job.run = tiles_per_item(a);
	job.runs = items_of(items_of(a->T, TILE), job.run);
	yk_team_run(a->B * a->G * job.chunks, backward_keys, &job);
	if (job.chunks > 1)
		yk_team_run(a->B * a->H * job.runs, backward_queries, &job);
	if (job.no_memory)
		return yk_cpu_fail(YOKE_ENOMEM, "attention: no memory for a tile");
	return 0;
}

const struct yk_kernel LEVEL(yk_attention_backward) = {
	.can = can,
	.run = run,
	.impl = { "tiles" },
};
