// SPDX-License-Identifier: Apache-2.0
// Shared by the attention kernels of both directions: operands, tiles of scores, and the small
// matrix products.
//
// Tiles are stored transposed: queries along the lanes of vectors, keys and head elements along the
// rows. So k and v are read in place, one element broadcast at a time; maxima and sums over keys
// need no reduction across lanes; only q and o are transposed, once per tile. f16 and bf16 are
// converted to f32 in scratch, one block at a time. Included by kern_attention*.c only.
#ifndef YK_ATTENTION_TILE_H
#define YK_ATTENTION_TILE_H

#include "../rows/operand.h"
#include "../vector/vfun.h"
#include "../vector/vhalf.h"

enum {
	FEW_QUERIES = 4, // max number of queries for which the forward kernel by rows is faster
	TILE = 32,      // queries in a tile
	NV = TILE / VF, // vectors of queries in a tile
	KEYS = 64,      // keys per block
	// a register block has ROWS * BV sums, which take that many registers and BV + 1 more
	ROWS = VF == 16 ? 8 : 6,
	BV = 2,
	ONE_PASS = 1024 // max keys for a single pass backward; with more, keys of a work item
};

// A tensor [B,T,H,D]: strides in elements; D is dense.
struct heads {
	char *base;
	int64_t b, t, h;
	int dtype, size;
	yk_load_fn *load; // converts f16 and bf16; NULL for f32; likewise `store`
	yk_store_fn *store;
};

// Rows as floats, `step` elements apart.
struct block {
	const float *at;
	int64_t step;
};

struct attention {
	int64_t B, T, H, D, S, G;
	int64_t group; // H / G: query heads per head of k and v
	int64_t Dp;    // D rounded up to whole vectors
	const int64_t *keys; // valid keys of batch entry b: keys[b * keys_b]; NULL: `every`
	int64_t keys_b, every;
	bool converted;      // some operand is not f32
	struct heads q, k, v, o, g, dq, dk, dv;
	float *lse;        // [B,H,T]
	const char *mask;  // NULL: none
	int mask_dtype;
	int64_t mask_b, mask_h, mask_t, mask_s;
	bool causal;
	float scale, dropout;
	uint64_t key; // key of the dropout's random number generator
	int64_t step;
};

// One tile: queries t .. t + rows - 1 of a head, and the number of keys visible to each vector.
struct tile {
	int64_t b, h, t;
	int64_t seen; // keys 0 .. seen - 1 are valid
	int rows, nv;
	int64_t sees[NV]; // keys 0 .. sees - 1 are visible to some query of the vector; ascending
};

// Keys from .. to - 1 of a block are visible only to vectors v .. nv - 1.
struct strip {
	int64_t from, to;
	int v;
};

static inline char *head_at(const struct heads *x, int64_t b, int64_t t, int64_t h)
{
	return x->base + (b * x->b + t * x->t + h * x->h) * x->size;
}

// n rows from t on, in place or converted into `buffer`.
static inline struct block rows_from(const struct attention *a, const struct heads *x,
				     int64_t b, int64_t t, int64_t h, int64_t n, float *buffer)
{
	const char *at = head_at(x, b, t, h);
	if (!x->load)
		return (struct block){ (const float *)at, x->t };
	for (int64_t i = 0; i < n; i++)
		x->load(buffer + i * a->Dp, at + i * x->t * x->size, 1, a->D);
	return (struct block){ buffer, a->Dp };
}

// Stores `from` as row t.
static inline void row_put_at(const struct attention *a, const struct heads *x, int64_t b,
			      int64_t t, int64_t h, const float *from)
{
	if (x->store)
		x->store(head_at(x, b, t, h), from, 1, a->D);
	else
		memcpy(head_at(x, b, t, h), from, (size_t)a->D * sizeof *from);
}

static inline int64_t keys_of(const struct attention *a, int64_t b)
{
	return a->keys ? a->keys[b * a->keys_b] : a->every;
}

static inline struct tile tile_of(const struct attention *a, int64_t b, int64_t h,
				  int64_t t)
{
	struct tile x = { .b = b, .h = h, .t = t, .seen = keys_of(a, b) };
	x.rows = (int)(a->T - t < TILE ? a->T - t : TILE);
	x.nv = (x.rows + VF - 1) / VF;
	for (int v = 0; v < x.nv; v++) {
		int64_t end = (v + 1) * VF < x.rows ? (v + 1) * VF : x.rows;
		int64_t n = a->causal ? t + end + x.seen - a->T : x.seen;
		x.sees[v] = n < 0 ? 0 : n < x.seen ? n : x.seen;
	}
	return x;
}

// Splits a block of n keys from key j on into strips; returns their number, at most NV.
static inline int cut_strips(const struct tile *x, int64_t j, int64_t n, struct strip *s)
{
	int count = 0;
	int64_t from = 0;
	for (int v = 0; v < x->nv; v++) {
		int64_t to = x->sees[v] - j < n ? x->sees[v] - j : n;
		if (to <= from)
			continue;
		s[count++] = (struct strip){ from, to, v };
		from = to;
	}
	return count;
}

// ---- products ----

// c (mr, nv vectors) = or += a (mr, k) b (k, nv vectors); a's element (i,p) is a[i * ai + p * ap].
// Sums stay in registers only if all loops over them are unrolled.
static inline __attribute__((always_inline)) void
block(const int mr, const int nv, int64_t k, const float *a, int64_t ai, int64_t ap,
      const float *b, int64_t ldb, float *c, int64_t ldc, bool add)
{
	vf sum[ROWS * BV];
#pragma GCC unroll 16
	for (int i = 0; i < mr; i++)
#pragma GCC unroll 2
		for (int v = 0; v < nv; v++)
			sum[i * nv + v] = add ? vf_load(c + i * ldc + v * VF) : vf_splat(0);
	for (int64_t p = 0; p < k; p++, a += ap, b += ldb) {
		vf bv[BV];
#pragma GCC unroll 2
		for (int v = 0; v < nv; v++)
			bv[v] = vf_load(b + v * VF);
#pragma GCC unroll 16
		for (int i = 0; i < mr; i++) {
			const vf x = vf_splat(a[i * ai]);
#pragma GCC unroll 2
			for (int v = 0; v < nv; v++)
				sum[i * nv + v] = vf_fma(x, bv[v], sum[i * nv + v]);
		}
	}
#pragma GCC unroll 16
	for (int i = 0; i < mr; i++)
#pragma GCC unroll 2
		for (int v = 0; v < nv; v++)
			vf_store(c + i * ldc + v * VF, sum[i * nv + v]);
}

static inline __attribute__((always_inline)) void
column(int64_t m, const int nv, int64_t k, const float *a, int64_t ai, int64_t ap,
       const float *b, int64_t ldb, float *c, int64_t ldc, bool add)
{
	int64_t i = 0;
	for (; i + ROWS <= m; i += ROWS)
		block(ROWS, nv, k, a + i * ai, ai, ap, b, ldb, c + i * ldc, ldc, add);
	if (i + 4 <= m) {
		block(4, nv, k, a + i * ai, ai, ap, b, ldb, c + i * ldc, ldc, add);
		i += 4;
	}
	if (i + 2 <= m) {
		block(2, nv, k, a + i * ai, ai, ap, b, ldb, c + i * ldc, ldc, add);
		i += 2;
	}
	if (i < m)
		block(1, nv, k, a + i * ai, ai, ap, b, ldb, c + i * ldc, ldc, add);
}

// The same for any m and any number of vectors.
static inline void product(int64_t m, int64_t nv, int64_t k, const float *a, int64_t ai,
			   int64_t ap, const float *b, int64_t ldb, float *c, int64_t ldc,
			   bool add)
{
	for (; nv >= BV; nv -= BV, b += BV * VF, c += BV * VF)
		column(m, BV, k, a, ai, ap, b, ldb, c, ldc, add);
	if (nv)
		column(m, 1, k, a, ai, ap, b, ldb, c, ldc, add);
}

// c (D, TILE) += transposed rows (keys, D), `step` apart, times weights (keys, TILE), for `nv`
// vectors. Skips weights of 0 whatever the row holds, because 0 * NaN would be NaN. Slow; only for
// tiles where that matters.
static inline void add_weighted(int64_t D, int nv, int64_t keys, const float *rows, int64_t step,
				const float *weights, float *c)
{
	const vf none = vf_splat(0);
	for (int64_t n = 0; n < keys; n++)
		for (int v = 0; v < nv; v++) {
			const vf weight = vf_load(weights + n * TILE + v * VF);
			for (int64_t d = 0; d < D; d++) {
				float *at = c + d * TILE + v * VF;
				const vf sum = vf_load(at),
					 more = vf_fma(vf_splat(rows[n * step + d]), weight, sum);
				vf_store(at, vf_select(weight == none, sum, more));
			}
		}
}

// True if one of n floats is NaN.
static inline bool has_nan(const float *x, int64_t n)
{
	bool found = false;
	for (int64_t i = 0; i < n; i++)
		found |= x[i] != x[i];
	return found;
}

// ---- tiles ----

typedef float v4 __attribute__((vector_size(16)));

// to[c * ldt + r] = scale * from[r * ldf + c], r < rows, c < cols
static inline void transpose(float *to, int64_t ldt, const float *from, int64_t ldf,
			     int64_t rows, int64_t cols, float scale)
{
	const v4 s = { scale, scale, scale, scale };
	int64_t r = 0;
	for (; r + 4 <= rows; r += 4) {
		int64_t c = 0;
		for (; c + 4 <= cols; c += 4) {
			v4 x[4], y[4];
			for (int i = 0; i < 4; i++)
				memcpy(&x[i], from + (r + i) * ldf + c, sizeof x[i]);
			y[0] = YK_SHUFFLE(x[0], x[1], 0, 4, 1, 5);
			y[1] = YK_SHUFFLE(x[2], x[3], 0, 4, 1, 5);
			y[2] = YK_SHUFFLE(x[0], x[1], 2, 6, 3, 7);
			y[3] = YK_SHUFFLE(x[2], x[3], 2, 6, 3, 7);
			x[0] = YK_SHUFFLE(y[0], y[1], 0, 1, 4, 5) * s;
			x[1] = YK_SHUFFLE(y[0], y[1], 2, 3, 6, 7) * s;
			x[2] = YK_SHUFFLE(y[2], y[3], 0, 1, 4, 5) * s;
			x[3] = YK_SHUFFLE(y[2], y[3], 2, 3, 6, 7) * s;
			for (int i = 0; i < 4; i++)
				memcpy(to + (c + i) * ldt + r, &x[i], sizeof x[i]);
		}
		for (; c < cols; c++)
			for (int i = 0; i < 4; i++)
				to[c * ldt + r + i] = from[(r + i) * ldf + c] * scale;
	}
	for (; r < rows; r++)
		for (int64_t c = 0; c < cols; c++)
			to[c * ldt + r] = from[r * ldf + c] * scale;
}

// Scratch floats that rows_from, load_lanes and store_lanes need for KEYS rows; two such blocks may
// be in use.
static inline int64_t converted_size(const struct attention *a)
{
	return a->converted ? KEYS * a->Dp : 0;
}

// to (D, TILE) = scale * the tile's rows of x, transposed; lanes without a query are 0
static inline void load_lanes(const struct attention *a, const struct heads *x,
			      const struct tile *i, float scale, float *to, float *buffer)
{
	const struct block from = rows_from(a, x, i->b, i->t, i->h, i->rows, buffer);
	if (i->rows < TILE)
		memset(to, 0, (size_t)a->D * TILE * sizeof *to);
	transpose(to, TILE, from.at, from.step, i->rows, a->D, scale);
}

// The tile's rows of x = scale * from (D, TILE), transposed
static inline void store_lanes(const struct attention *a, const struct heads *x,
			       const struct tile *i, float scale, const float *from,
			       float *buffer)
{
	if (!x->store) {
		transpose((float *)head_at(x, i->b, i->t, i->h), x->t, from, TILE, a->D,
			  i->rows, scale);
		return;
	}
	transpose(buffer, a->Dp, from, TILE, a->D, i->rows, scale);
	for (int r = 0; r < i->rows; r++)
		row_put_at(a, x, i->b, i->t + r, i->h, buffer + r * a->Dp);
}

YK_INLINE float number_at(const int dtype, const char *p, int64_t i)
{
	if (dtype == yoke_f32)
		return ((const float *)p)[i];
	const uint16_t h = ((const uint16_t *)p)[i];
	return dtype == yoke_bf16 ? yk_f32_of_bf16(h) : yk_f32_of_f16(h);
}

// Adds the mask to a score; -inf hides the key even if its score is NaN.
static inline float masked(float score, float mask)
{
	return mask == -__builtin_inff() ? mask : score + mask;
}

// Adds the mask to scores (keys, TILE) of a block from key j on.
YK_INLINE void add_mask(const int dtype, const struct attention *a, const struct tile *x,
			int64_t j, const struct strip *s, int strips, float *to)
{
	const int64_t first = x->b * a->mask_b + x->h * a->mask_h + x->t * a->mask_t;
	for (int i = 0; i < strips; i++)
		for (int64_t n = s[i].from; n < s[i].to; n++)
			for (int lane = s[i].v * VF; lane < x->rows; lane++)
				to[n * TILE + lane] = masked(to[n * TILE + lane], number_at(
					dtype, a->mask,
					first + lane * a->mask_t + (j + n) * a->mask_s));
}

YK_INLINE bool hides(const int dtype, const struct attention *a, const struct tile *x, int64_t j,
		     const struct strip *s, int strips)
{
	const int64_t first = x->b * a->mask_b + x->h * a->mask_h + x->t * a->mask_t;
	for (int i = 0; i < strips; i++)
		for (int lane = s[i].v * VF; lane < x->rows; lane++)
			for (int64_t n = s[i].from; n < s[i].to; n++)
				if (number_at(dtype, a->mask,
					      first + lane * a->mask_t + (j + n) * a->mask_s) !=
				    -__builtin_inff())
					return false;
	return true;
}

// Does the mask hide all keys of a block from all queries of the tile, as between texts that are
// packed into one sequence? Such a block adds only zeros, and is left out.
static inline bool is_hidden(const struct attention *a, const struct tile *x, int64_t j,
			     const struct strip *s, int strips)
{
	if (!a->mask)
		return false;
	if (a->mask_dtype == yoke_f32)
		return hides(yoke_f32, a, x, j, s, strips);
	return a->mask_dtype == yoke_bf16 ? hides(yoke_bf16, a, x, j, s, strips) :
					    hides(yoke_f16, a, x, j, s, strips);
}

// Scores of a block of keys, k from key j on: to (keys, TILE) = k qt + mask, -inf where
// hidden. qt (D, TILE): queries, scaled.
static inline void scores(const struct attention *a, const struct tile *x,
			  const float *qt, const struct block *k, int64_t j,
			  const struct strip *s, int strips, float *to)
{
	for (int i = 0; i < strips; i++)
		product(s[i].to - s[i].from, x->nv - s[i].v, a->D,
			k->at + s[i].from * k->step, k->step, 1, qt + s[i].v * VF, TILE,
			to + s[i].from * TILE + s[i].v * VF, TILE, false);
	if (a->mask && a->mask_dtype == yoke_f32)
		add_mask(yoke_f32, a, x, j, s, strips, to);
	else if (a->mask && a->mask_dtype == yoke_bf16)
		add_mask(yoke_bf16, a, x, j, s, strips, to);
	else if (a->mask)
		add_mask(yoke_f16, a, x, j, s, strips, to);
	if (!a->causal)
		return;
	// only a strip's first vector may have some of the strip's keys hidden
	for (int i = 0; i < strips; i++) {
		const int64_t first =
			x->t + s[i].v * VF + x->seen - a->T; // last key of its lane 0
		for (int64_t n = first + 1 - j > s[i].from ? first + 1 - j : s[i].from;
		     n < s[i].to; n++) {
			float *row = to + n * TILE + s[i].v * VF;
			vi hidden = vi_iota() < vi_splat((int32_t)(j + n - first));
			vf_store(row, vf_select(hidden, vf_splat(-__builtin_inff()),
						vf_load(row)));
		}
	}
}

// Dropout factors for the probabilities of a block: to (keys, TILE) = 0 or 1 / (1 - p)
void ISA(yk_attention_keep)(const struct attention *, const struct tile *, int64_t j,
			    const struct strip *, int strips, float *to);

// ---- operands ----

// True if the kernels support the operands q k v mask key step and the number of keys.
bool ISA(yk_attention_fits)(const struct yoke_op *);
// ERANGE if a number of keys is outside 0 .. S.
int ISA(yk_attention_of)(const struct yoke_op *, struct attention *);

int ISA(yk_attention_backward_of)(const struct yoke_op *, struct attention *);

// One tile of queries from t on; false: out of memory.
bool ISA(yk_attention_tile)(const struct attention *, int64_t b, int64_t h, int64_t t);
// dk and dv of up to ONE_PASS keys, the first one `from`, of head g of k and v; also dq of all
// queries if there are no other keys. False: out of memory.
bool ISA(yk_attention_backward_keys)(const struct attention *, int64_t b, int64_t g, int64_t from);
// dq of one tile of queries.
bool ISA(yk_attention_backward_queries)(const struct attention *, int64_t b, int64_t h, int64_t t);

// Forward pass by rows instead of tiles, for few queries: its workspace in bytes, and the run.
uint64_t ISA(yk_attention_rows_space)(const struct yoke_op *);
int ISA(yk_attention_rows)(const struct yoke_op *, const struct attention *);

// The number of valid keys, the last operand in both directions; NULL: all.
static inline const struct yoke_view *seen_of(const struct yoke_op *op)
{
	const uint32_t at = op->code == YOKE_OP_ATTENTION ? 6 : 9;
	return op->nin > at && present(&op->in[at]) ? &op->in[at] : NULL;
}

// Views [B,T,H,D] with a dense last axis.
static inline bool is_heads(const struct yoke_view *v)
{
	return v->rank == 4 && is_rows(v);
}

static inline struct heads heads_of(const struct yoke_view *v)
{
	struct heads x = { .base = yk_ptr(v),
			   .b = v->strides[0],
			   .t = v->strides[1],
			   .h = v->strides[2],
			   .dtype = v->dtype,
			   .size = (int)yk_esize(v->dtype) };
	if (yk_is_half(v->dtype)) {
		x.load = ISA(yk_load)(v->dtype);
		x.store = ISA(yk_store)(v->dtype);
	}
	return x;
}

// Calls a function with a constant dtype, one of the three.
#define EACH_DTYPE(dtype, fn, ...) \
	((dtype) == yoke_f32  ? fn(yoke_f32, __VA_ARGS__) : \
	 (dtype) == yoke_bf16 ? fn(yoke_bf16, __VA_ARGS__) : \
				fn(yoke_f16, __VA_ARGS__))

// p[i] = exp(p[i] - maximum), i < n; p has room for whole vectors
static inline void exponentials(float *p, int64_t n, float *max, float *sum)
{
	const vf min = vf_splat(-__builtin_inff());
	vf high = min, total = { 0 };
	vf_store(p + n, min);
	for (int64_t i = 0; i < n; i += VF)
		high = vf_max(vf_load(p + i), high);
	*max = vf_hmax(high);
	// all keys hidden: exp(-inf - 0) is 0
	const vf base = vf_splat(*max == -__builtin_inff() ? 0 : *max);
	for (int64_t i = 0; i < n; i += VF) {
		vf e = vf_exp(vf_load(p + i) - base);
		vf_store(p + i, e);
		total += e;
	}
	*sum = vf_sum(total);
}

#endif
