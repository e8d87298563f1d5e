// SPDX-License-Identifier: Apache-2.0
// Attention backward, in f32: probabilities are recomputed from lse, tile by tile (Dao et al.
// 2022).
//
// With P = exp(S - lse), M the dropout factors, r_t = sum_d g_td o_td:
// dv = (P M)' g, dP = M (g v'), dS = P (dP - r), dq = scale dS k, dk = scale dS' q.
//
// With up to ONE_PASS keys, a work item is one head of k and v with all its queries: dk and dv are
// summed over tiles in order, and dq is computed along. With more keys, work items for dk and dv
// are chunks of keys, and a second pass, divided by queries, computes dq, which repeats the
// products for P and dP.
#include "config.h"

#include <stdatomic.h>

#include "kern_attention_tile.h"
#include "../vector/vfun.h"

struct job {
	struct attention a;
	int64_t tiles;  // per head
	int64_t chunks; // of keys
	atomic_bool no_memory;
};

// Scratch of one work item, in floats.
struct scratch {
	float *q, *g;           // (D, TILE) of the tile: scaled queries, output gradients
	float *q_rows, *g_rows; // (TILE, Dp), not transposed, not scaled; zeros after D
	float *p, *dp, *keep;   // (KEYS, TILE)
	float *dq;              // (D, TILE)
	float *dk, *dv;         // (keys, Dp); NULL: compute only dq
	float *converted_k, *converted_v; // converted rows
	vf lse[NV], r[NV];
	bool finite;            // q and g of the tile; otherwise 0 times them is NaN
};

static bool scratch_init(struct scratch *s, const struct attention *a, int64_t keys)
{
	const int64_t lanes = a->D * TILE, rows = a->Dp * TILE, block = KEYS * TILE;
	const int64_t summed = 3 * lanes + 2 * rows + 3 * block + 2 * keys * a->Dp;
	const int64_t converted = converted_size(a), all = summed + 2 * converted;
	float *at = yk_team_scratch((size_t)all * sizeof *at);
	if (!at)
		return false;
	memset(at, 0, (size_t)summed * sizeof *at);
	s->q = at;
	s->converted_k = at + summed;
	s->converted_v = s->converted_k + converted;
	s->g = s->q + lanes;
	s->dq = s->g + lanes;
	s->q_rows = s->dq + lanes;
	s->g_rows = s->q_rows + rows;
	s->p = s->g_rows + rows;
	s->dp = s->p + block;
	s->keep = s->dp + block;
	s->dk = keys ? s->keep + block : NULL;
	s->dv = keys ? s->dk + keys * a->Dp : NULL;
	return true;
}

static void copy_rows(const struct attention *a, const struct heads *from,
		      const struct tile *x, float *to)
{
	for (int i = 0; i < x->rows; i++) {
		const char *row = head_at(from, x->b, x->t + i, x->h);
		if (from->load)
			from->load(to + i * a->Dp, row, 1, a->D);
		else
			memcpy(to + i * a->Dp, row, (size_t)a->D * sizeof *to);
	}
}

// True if all numbers in n rows are finite.
static bool rows_finite(const struct attention *a, const struct block *b, int64_t n)
{
	uint32_t max = 0;
	for (int64_t i = 0; i < n; i++)
		for (int64_t d = 0; d < a->D; d++) {
			uint32_t bits;
			memcpy(&bits, b->at + i * b->step + d, sizeof bits);
			bits &= 0x7fffffff;
			max = bits > max ? bits : max;
		}
	return max < 0x7f800000;
}

static void begin_tile(const struct attention *a, const struct tile *x, struct scratch *s)
{
	const float *lse = a->lse + (x->b * a->H + x->h) * a->T + x->t;
	float r[TILE] = { 0 };
	load_lanes(a, &a->q, x, a->scale, s->q, s->converted_k);
	load_lanes(a, &a->g, x, 1, s->g, s->converted_k);
	if (s->dk) {
		copy_rows(a, &a->q, x, s->q_rows);
		copy_rows(a, &a->g, x, s->g_rows);
	}
	s->finite = !s->dk || !a->mask ||
		    (rows_finite(a, &(struct block){ s->q_rows, a->Dp }, x->rows) &&
		     rows_finite(a, &(struct block){ s->g_rows, a->Dp }, x->rows));
	const struct block os = rows_from(a, &a->o, x->b, x->t, x->h, x->rows, s->converted_v);
	const struct block gs = rows_from(a, &a->g, x->b, x->t, x->h, x->rows, s->converted_k);
	for (int i = 0; i < x->rows; i++) {
		const float *o = os.at + i * os.step, *g = gs.at + i * gs.step;
		vf sum = { 0 };
		for (int64_t d = 0; d < a->D; d += VF)
			sum += vf_get(o + d, a->D - d) * vf_get(g + d, a->D - d);
		r[i] = vf_sum(sum);
	}
	for (int v = 0; v < x->nv; v++) {
		vf l = vf_get(lse + v * VF, x->rows - v * VF);
		// for a query that sees no key: exp(-inf - inf) is 0
		s->lse[v] = vf_select(l == vf_splat(-__builtin_inff()), -l, l);
		s->r[v] = vf_load(r + v * VF);
	}
}

// p (keys, TILE) = P M and dp = dS of the block of keys from key j on
static void gradients(const struct attention *a, const struct tile *x,
		      const struct block *k, const struct block *value, int64_t j,
		      const struct strip *strip, int strips, struct scratch *s)
{
	scores(a, x, s->q, k, j, strip, strips, s->p);
	if (a->dropout > 0)
		ISA(yk_attention_keep)(a, x, j, strip, strips, s->keep);
	for (int i = 0; i < strips; i++) {
		const struct strip *t = &strip[i];
		product(t->to - t->from, x->nv - t->v, a->D,
			value->at + t->from * value->step, value->step, 1,
			s->g + t->v * VF, TILE,
			s->dp + t->from * TILE + t->v * VF, TILE, false);
		for (int v = t->v; v < x->nv; v++)
			for (int64_t n = t->from; n < t->to; n++) {
				float *p = s->p + n * TILE + v * VF,
				      *dp = s->dp + n * TILE + v * VF;
				const vf none = vf_splat(0), hidden = vf_splat(-__builtin_inff()),
					 score = vf_load(p);
				vf pv = vf_select(score == hidden, none, vf_exp(score - s->lse[v])),
				   dpv = vf_load(dp), kept = pv;
				if (a->dropout > 0) {
					vf m = vf_load(s->keep + n * TILE + v * VF);
					dpv *= m;
					kept = pv * m;
				}
				vf_store(p, kept);
				// g v' of a hidden value may be NaN
				vf_store(dp, vf_select(pv == none, none, pv * (dpv - s->r[v])));
			}
	}
}

// Few queries have their lse from the kernel by rows, which adds the products of a score in another
// order.  At scores of about 100 such rounding errors are a larger part of a weight than those of
// lse, so that lse is corrected by the logarithm of the sum of the weights.
static void renew_lse(const struct attention *a, const struct tile *x, struct scratch *s)
{
	const vf none = vf_splat(0), hidden = vf_splat(-__builtin_inff());
	const int64_t to = x->sees[x->nv - 1];
	vf sum[NV] = { { 0 } };
	for (int64_t j = 0; j < to; j += KEYS) {
		struct strip strip[NV];
		const int strips = cut_strips(x, j, to - j < KEYS ? to - j : KEYS, strip);
		const struct block k = rows_from(a, &a->k, x->b, j, x->h / a->group,
						 strip[strips - 1].to, s->converted_k);
		scores(a, x, s->q, &k, j, strip, strips, s->p);
		for (int i = 0; i < strips; i++)
			for (int v = strip[i].v; v < x->nv; v++)
				for (int64_t n = strip[i].from; n < strip[i].to; n++) {
					const vf score = vf_load(s->p + n * TILE + v * VF);
					sum[v] += vf_select(score == hidden, none,
							    vf_exp(score - s->lse[v]));
				}
	}
	for (int v = 0; v < x->nv; v++)
		s->lse[v] = vf_select(sum[v] > none, s->lse[v] + vf_log(sum[v]), s->lse[v]);
}

// Processes one tile of queries and the keys from .. to - 1; dk and dv start at key `from`.
static void tile_backward(const struct attention *a, const struct tile *x, int64_t from,
		      int64_t to, bool dq, struct scratch *s)
{
	begin_tile(a, x, s);
	if (a->T <= FEW_QUERIES)
		renew_lse(a, x, s);
	if (dq)
		memset(s->dq, 0, (size_t)a->D * TILE * sizeof *s->dq);
	if (to > x->sees[x->nv - 1])
		to = x->sees[x->nv - 1];
	for (int64_t j = from; j < to; j += KEYS) {
		struct strip strip[NV];
		const int strips = cut_strips(x, j, to - j < KEYS ? to - j : KEYS, strip);
		const int64_t block = strip[strips - 1].to, h = x->h / a->group;
		if (s->finite && is_hidden(a, x, j, strip, strips))
			continue;
		const struct block k = rows_from(a, &a->k, x->b, j, h, block, s->converted_k),
				   v = rows_from(a, &a->v, x->b, j, h, block, s->converted_v);
		const bool plain = !dq || (!a->mask && !a->causal) || rows_finite(a, &k, block);
		gradients(a, x, &k, &v, j, strip, strips, s);
		for (int i = 0; i < strips; i++) {
			const struct strip *t = &strip[i];
			const int64_t keys = t->to - t->from, at = j - from + t->from;
			const int lane = t->v * VF, lanes = x->rows - lane;
			const float *p = s->p + t->from * TILE + lane;
			const float *ds = s->dp + t->from * TILE + lane;
			if (s->dk) {
				product(keys, a->Dp / VF, lanes, p, TILE, 1,
					s->g_rows + lane * a->Dp, a->Dp,
					s->dv + at * a->Dp, a->Dp, true);
				product(keys, a->Dp / VF, lanes, ds, TILE, 1,
					s->q_rows + lane * a->Dp, a->Dp,
					s->dk + at * a->Dp, a->Dp, true);
			}
			if (dq && plain)
				product(a->D, x->nv - t->v, keys,
					k.at + t->from * k.step, 1, k.step, ds, TILE,
					s->dq + lane, TILE, true);
			else if (dq)
				add_weighted(a->D, x->nv - t->v, keys, k.at + t->from * k.step,
					     k.step, ds, s->dq + lane);
		}
	}
	if (dq)
		store_lanes(a, &a->dq, x, a->scale, s->dq, s->converted_k);
}

bool ISA(yk_attention_backward_keys)(const struct attention *a, int64_t b, int64_t g, int64_t from)
{
	const int64_t to = from + ONE_PASS < a->S ? from + ONE_PASS : a->S;
	struct scratch s;
	if (!scratch_init(&s, a, to - from))
		return false;
	for (int64_t h = g * a->group; h < (g + 1) * a->group; h++)
		for (int64_t t = 0; t < a->T; t += TILE) {
			const struct tile x = tile_of(a, b, h, t);
			tile_backward(a, &x, from, to, a->S <= ONE_PASS, &s);
		}
	for (int64_t j = from; j < to; j++) {
		float *dk = s.dk + (j - from) * a->Dp;
		for (int64_t d = 0; d < a->D; d += VF)
			vf_store(dk + d, vf_load(dk + d) * vf_splat(a->scale));
		row_put_at(a, &a->dk, b, j, g, dk);
		row_put_at(a, &a->dv, b, j, g, s.dv + (j - from) * a->Dp);
	}
	return true;
}

bool ISA(yk_attention_backward_queries)(const struct attention *a, int64_t b, int64_t h, int64_t t)
{
	const struct tile x = tile_of(a, b, h, t);
	struct scratch s;
	if (!scratch_init(&s, a, 0))
		return false;
	tile_backward(a, &x, 0, a->S, true, &s);
	return true;
}

static void backward_keys(void *arg, int64_t item)
{
	struct job *job = arg;
	const int64_t from = item % job->chunks * ONE_PASS, bg = item / job->chunks;
	if (!ISA(yk_attention_backward_keys)(&job->a, bg / job->a.G, bg % job->a.G, from))
		job->no_memory = true;
}

static void backward_queries(void *arg, int64_t item)
{
	struct job *job = arg;
	const int64_t t = (job->tiles - 1 - item % job->tiles) * TILE, bh = item / job->tiles;
	if (!ISA(yk_attention_backward_queries)(&job->a, bh / job->a.H, bh % job->a.H, t))
		job->no_memory = true;
}

int ISA(yk_attention_backward_of)(const struct yoke_op *op, struct attention *a)
{
	int err = ISA(yk_attention_of)(op, a);
	if (err)
		return err;
	a->o = heads_of(&op->in[6]);
	a->lse = yk_ptr(&op->in[7]);
	a->g = heads_of(&op->in[8]);
	a->dq = heads_of(&op->out[0]);
	a->dk = heads_of(&op->out[1]);
	a->dv = heads_of(&op->out[2]);
	a->converted |= a->o.load || a->g.load || a->dq.store;
	return 0;
}

static uint64_t can(const struct yoke_op *op)
{
	const struct yoke_view *in = op->in;
	return ISA(yk_attention_fits)(op) && is_heads(&in[6]) && is_f32(&in[7]) &&
	       yk_dense(&in[7]) && is_heads(&in[8]) && is_heads(&op->out[0]) &&
	       is_heads(&op->out[1]) && is_heads(&op->out[2]);
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	(void)impl, (void)prepared;
	struct job job = { 0 };
	const struct attention *a = &job.a;
	int err = ISA(yk_attention_backward_of)(op, &job.a);
	if (err)
		return err;
	job.tiles = items_of(a->T, TILE);
	// one chunk even without keys, which sets dq to 0
	job.chunks = a->S > ONE_PASS ? items_of(a->S, ONE_PASS) : 1;
	yk_team_run(a->B * a->G * job.chunks, backward_keys, &job);
	if (job.chunks > 1)
		yk_team_run(a->B * a->H * job.tiles, backward_queries, &job);
	if (job.no_memory)
		return yk_cpu_fail(YOKE_ENOMEM, "attention: no memory for a tile");
	return 0;
}

const struct yk_kernel ISA(yk_attention_backward) = {
	.can = can, .run = run, .impl = { "tiles" },
};
