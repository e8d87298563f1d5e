// SPDX-License-Identifier: Apache-2.0
// Attention forward, in f32: softmax(scale q k' + mask) v by tiles; a running maximum and sum avoid
// storing a T x S matrix (Milakov and Gimelshein 2018; Dao et al. 2022). A work item is one tile of
// queries of one head; few queries are computed by rows (kern_attention_row.c).
#include "config.h"

#include <stdatomic.h>

#include "kern_attention_tile.h"
#include "../vector/philox.h"
#include "../vector/vfun.h"

struct job {
	struct attention a;
	int64_t tiles; // per head
	atomic_bool no_memory;
};

static float keep_or_drop(const struct attention *a, float kept, uint32_t bits)
{
	return yk_uniform_f32(bits) >= a->dropout ? kept : 0;
}

// Dropout factors if rows of random numbers are not aligned to groups of four: one query at a time.
static void keep_any(const struct attention *a, const struct tile *x, float kept,
		     uint64_t first, int64_t n, float *to)
{
	for (int lane = 0; lane < x->rows; lane++) {
		uint32_t bits[KEYS];
		yk_philox_fill(bits, first + (uint64_t)(lane * a->S), n, a->key,
			       (uint64_t)a->step);
		for (int64_t i = 0; i < n; i++)
			to[i * TILE + lane] = keep_or_drop(a, kept, bits[i]);
	}
}

// Dropout factors for aligned rows: four keys of all queries at a time.
static void keep_fours(const struct attention *a, float kept, uint64_t first, int64_t n,
		       float *to)
{
	const uint64_t step = (uint64_t)a->step, group = first / 4,
		       row = (uint64_t)a->S / 4;
	const uint32_t k0 = (uint32_t)a->key, k1 = (uint32_t)(a->key >> 32);
	for (int64_t i = 0; i < n; i += 4) {
		uint32_t w[4][TILE];
		for (int lane = 0; lane < TILE; lane++) {
			const uint64_t c = group + (uint64_t)lane * row + (uint64_t)i / 4;
			w[0][lane] = (uint32_t)c;
			w[1][lane] = (uint32_t)(c >> 32);
			w[2][lane] = (uint32_t)step;
			w[3][lane] = (uint32_t)(step >> 32);
		}
		YK_SIMD
		for (int lane = 0; lane < TILE; lane++)
			yk_philox(&w[0][lane], &w[1][lane], &w[2][lane], &w[3][lane], k0,
				  k1);
		for (int k = 0; k < 4; k++) {
			float *key = to + (i + k) * TILE;
			YK_SIMD
			for (int lane = 0; lane < TILE; lane++)
				key[lane] = keep_or_drop(a, kept, w[k][lane]);
		}
	}
}

void ISA(yk_attention_keep)(const struct attention *a, const struct tile *x, int64_t j,
			    const struct strip *s, int strips, float *to)
{
	const int64_t n = s[strips - 1].to, row = (x->b * a->H + x->h) * a->T + x->t;
	const uint64_t first = (uint64_t)(row * a->S + j);
	const float kept = 1 / (1 - a->dropout);
	if (a->S % 4)
		keep_any(a, x, kept, first, n, to);
	else
		keep_fours(a, kept, first, n, to);
}

// Running maxima and sums of a tile's queries.
struct running {
	vf max[NV], sum[NV];
};

// Turns vector v of a block of n scores into exp(score - maximum); rescales the sum and the output
// (D, TILE) so far by the change of the maximum.
static void softmax_block(const struct attention *a, struct running *r, int v, int64_t n,
		   float *score, float *out)
{
	const vf min = vf_splat(-__builtin_inff());
	vf max = r->max[v];
	for (int64_t i = 0; i < n; i++)
		max = vf_max(vf_load(score + i * TILE), max);
	// a query that has seen no key yet keeps a maximum of -inf; exp(-inf - 0) is 0
	const vf base = vf_select(max == min, vf_splat(0), max);
	const vf shrink = vf_exp(r->max[v] - base);
	vf sum = r->sum[v] * shrink;
	for (int64_t i = 0; i < n; i++) {
		vf e = vf_exp(vf_load(score + i * TILE) - base);
		vf_store(score + i * TILE, e);
		sum += e;
	}
	for (int64_t d = 0; d < a->D; d++)
		vf_store(out + d * TILE, vf_load(out + d * TILE) * shrink);
	r->max[v] = max;
	r->sum[v] = sum;
}

static void drop(const struct attention *a, const struct tile *x, int64_t j,
		 const struct strip *s, int strips, float *keep, float *p)
{
	ISA(yk_attention_keep)(a, x, j, s, strips, keep);
	for (int i = 0; i < strips; i++)
		for (int64_t n = s[i].from; n < s[i].to; n++)
			for (int v = s[i].v; v < x->nv; v++) {
				float *at = p + n * TILE + v * VF;
				vf_store(at,
					 vf_load(at) * vf_load(keep + n * TILE + v * VF));
			}
}

static void finish(const struct attention *a, const struct tile *x,
		   const struct running *r, float *out, float *buffer)
{
	float *lse = a->lse + (x->b * a->H + x->h) * a->T + x->t;
	for (int v = 0; v < x->nv; v++) {
		const vf sum = r->sum[v], none = vf_splat(0);
		// all keys hidden: 0, and log 0 = -inf
		const vf inverse = vf_select(sum == none, none, vf_splat(1) / sum);
		for (int64_t d = 0; d < a->D; d++) {
			float *at = out + d * TILE + v * VF;
			vf_store(at, vf_load(at) * inverse);
		}
		vf_put(lse + v * VF, r->max[v] + vf_log(sum), x->rows - v * VF);
	}
	store_lanes(a, &a->o, x, 1, out, buffer);
}

// Scratch of one work item, in floats.
struct scratch {
	float *q, *out;         // (D, TILE)
	float *p, *keep;        // (KEYS, TILE)
	float *converted_k, *converted_v; // converted rows
};

// out = the weighted values of a tile's queries, not yet divided by the sums. seen: skips weights
// of 0, whatever their values are.
static struct running attend(const struct attention *a, const struct tile *x,
			     const struct scratch *w, bool seen)
{
	const int64_t sees = x->sees[x->nv - 1], h = x->h / a->group;
	struct running r;
	for (int v = 0; v < NV; v++)
		r.max[v] = vf_splat(-__builtin_inff()), r.sum[v] = vf_splat(0);
	memset(w->out, 0, (size_t)a->D * TILE * sizeof *w->out);
	for (int64_t j = 0; j < sees; j += KEYS) {
		struct strip s[NV];
		const int strips = cut_strips(x, j, KEYS, s);
		const int64_t keys = s[strips - 1].to;
		if (is_hidden(a, x, j, s, strips))
			continue;
		const struct block k = rows_from(a, &a->k, x->b, j, h, keys, w->converted_k),
				   value = rows_from(a, &a->v, x->b, j, h, keys, w->converted_v);
		scores(a, x, w->q, &k, j, s, strips, w->p);
		for (int v = 0; v < x->nv; v++) {
			const int64_t n = x->sees[v] - j < KEYS ? x->sees[v] - j : KEYS;
			if (n > 0)
				softmax_block(a, &r, v, n, w->p + v * VF, w->out + v * VF);
		}
		if (a->dropout > 0)
			drop(a, x, j, s, strips, w->keep, w->p);
		for (int i = 0; i < strips; i++) {
			const int64_t n = s[i].to - s[i].from;
			const float *rows = value.at + s[i].from * value.step,
				    *p = w->p + s[i].from * TILE + s[i].v * VF;
			if (seen)
				add_weighted(a->D, x->nv - s[i].v, n, rows, value.step, p,
					     w->out + s[i].v * VF);
			else
				product(a->D, x->nv - s[i].v, n, rows, 1, value.step, p, TILE,
					w->out + s[i].v * VF, TILE, true);
		}
	}
	return r;
}

bool ISA(yk_attention_tile)(const struct attention *a, int64_t b, int64_t h, int64_t t)
{
	const struct tile x = tile_of(a, b, h, t);
	const int64_t converted = converted_size(a);
	struct scratch w = { .q = yk_team_scratch(
				     (size_t)((2 * a->D + 2 * KEYS) * TILE + 2 * converted) *
				     sizeof *w.q) };
	if (!w.q)
		return false;
	w.out = w.q + a->D * TILE;
	w.p = w.out + a->D * TILE;
	w.keep = w.p + KEYS * TILE;
	w.converted_k = w.keep + KEYS * TILE;
	w.converted_v = w.converted_k + converted;
	load_lanes(a, &a->q, &x, a->scale, w.q, w.converted_k);
	struct running r = attend(a, &x, &w, false);
	// a NaN may come from values hidden from the query: repeat, skipping weights of 0
	if ((a->mask || a->causal) && has_nan(w.out, a->D * TILE))
		r = attend(a, &x, &w, true);
	finish(a, &x, &r, w.out, w.converted_k);
	return true;
}

static void forward(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct attention *a = &job->a;
	// causal: the last tile of a head sees most keys, so it starts first
	const int64_t t = (job->tiles - 1 - item % job->tiles) * TILE, bh = item / job->tiles;
	if (!ISA(yk_attention_tile)(a, bh / a->H, bh % a->H, t))
		job->no_memory = true;
}

// ---- operands ----

// True for i64: one number, or one per batch entry.
static bool is_keys(const struct yoke_view *v, int64_t batch)
{
	return v->dtype == yoke_i64 &&
	       (v->kind == YOKE_VIEW_SCALAR || !v->rank ||
		(v->rank == 1 && v->dims[0] == batch));
}

bool ISA(yk_attention_fits)(const struct yoke_op *op)
{
	const struct yoke_view *in = op->in, *m = &in[3];
	return is_heads(&in[0]) && is_heads(&in[1]) && is_heads(&in[2]) &&
	       (!present(m) || (is_narrow(m) && m->rank == 4)) && is_value_or_none(&in[4]) &&
	       is_value_or_none(&in[5]) && (!(op->attr[2].f > 0) || present(&in[4])) &&
	       (!seen_of(op) || is_keys(seen_of(op), in[0].dims[0])) && !op->alias_mask;
}

static int set_keys(const struct yoke_op *op, struct attention *a)
{
	const struct yoke_view *v = seen_of(op);
	a->every = v ? value_int(v, 0) : a->S;
	if (v && v->kind == YOKE_VIEW_BUFFER) {
		a->keys = yk_ptr(v);
		a->keys_b = v->rank ? v->strides[0] : 0;
	}
	for (int64_t b = 0; b < a->B; b++)
		if (keys_of(a, b) < 0 || keys_of(a, b) > a->S)
			return yk_cpu_fail(
				YOKE_ERANGE,
				"attention (step %llu): the number of keys, %lld, is not in 0..%lld",
				(unsigned long long)op->id, (long long)keys_of(a, b),
				(long long)a->S);
	return 0;
}

int ISA(yk_attention_of)(const struct yoke_op *op, struct attention *to)
{
	const struct yoke_view *in = op->in, *m = &in[3];
	struct attention a = {
		.B = in[0].dims[0],
		.T = in[0].dims[1],
		.H = in[0].dims[2],
		.D = in[0].dims[3],
		.S = in[1].dims[1],
		.G = in[1].dims[2],
		.q = heads_of(&in[0]),
		.k = heads_of(&in[1]),
		.v = heads_of(&in[2]),
		.causal = op->attr[0].i,
		.scale = (float)op->attr[1].f,
		.dropout = (float)op->attr[2].f,
		.key = (uint64_t)value_int(&in[4], 0),
		.step = value_int(&in[5], 0),
	};
	int err = set_keys(op, &a);
	if (err)
		return err;
	a.converted = a.q.load || a.k.load || a.v.load;
	a.group = a.H / a.G;
	a.Dp = (a.D + VF - 1) / VF * VF;
	if (present(m)) {
		a.mask = yk_ptr(m);
		a.mask_dtype = m->dtype;
		a.mask_b = m->dims[0] == 1 ? 0 : m->strides[0];
		a.mask_h = m->dims[1] == 1 ? 0 : m->strides[1];
		a.mask_t = m->strides[2];
		a.mask_s = m->strides[3];
	}
	*to = a;
	return 0;
}

enum { ROWS_IMPL, TILES_IMPL };

static uint64_t can(const struct yoke_op *op)
{
	if (!ISA(yk_attention_fits)(op) || !is_heads(&op->out[0]) ||
	    !is_f32(&op->out[1]) || !yk_dense(&op->out[1]))
		return 0;
	return 1u << TILES_IMPL | (op->in[0].dims[1] <= FEW_QUERIES) << ROWS_IMPL;
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	return impl == ROWS_IMPL ? ISA(yk_attention_rows_space)(op) : 0;
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job job = { 0 };
	int err = ISA(yk_attention_of)(op, &job.a);
	(void)prepared;
	if (err)
		return err;
	job.a.o = heads_of(&op->out[0]);
	job.a.converted |= job.a.o.store != NULL;
	job.a.lse = yk_ptr(&op->out[1]);
	if (impl == ROWS_IMPL)
		return ISA(yk_attention_rows)(op, &job.a);
	job.tiles = items_of(job.a.T, TILE);
	yk_team_run(job.a.B * job.a.H * job.tiles, forward, &job);
	if (job.no_memory)
		return yk_cpu_fail(YOKE_ENOMEM, "attention: no memory for a tile");
	return 0;
}

const struct yk_kernel ISA(yk_attention) = {
	.can = can, .workspace = workspace, .run = run, .impl = { "rows", "tiles" },
};
