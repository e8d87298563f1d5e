// SPDX-License-Identifier: Apache-2.0
// Quantized weights: dequantization, matrix products, and gathering of rows. The decompositions
// extract the bits with integer operations, so that they run on every device. All products before
// the last sum are exact in f32 except for Q6_K, so the numbers have the same bits everywhere.
#include "config.h"

#include "base/endian.h"
#include "graph/record.h"
#include "ops/rules.h"
#include "yoke-quant.h"

// The attributes of all three ops.
enum { FORMAT, LENGTH, DTYPE, ATTRS, BY_ROW = ATTRS };

struct format {
	uint8_t number, elements_log2, bytes;
	const char *name;
};

static const struct format formats[] = {
	{ YOKE_QUANT_F32, 0, 4, "F32" },     { YOKE_QUANT_F16, 0, 2, "F16" },
	{ YOKE_QUANT_Q4_0, 5, 18, "Q4_0" },  { YOKE_QUANT_Q4_1, 5, 20, "Q4_1" },
	{ YOKE_QUANT_Q5_0, 5, 22, "Q5_0" },  { YOKE_QUANT_Q5_1, 5, 24, "Q5_1" },
	{ YOKE_QUANT_Q8_0, 5, 34, "Q8_0" },  { YOKE_QUANT_Q4_K, 8, 144, "Q4_K" },
	{ YOKE_QUANT_Q5_K, 8, 176, "Q5_K" }, { YOKE_QUANT_Q6_K, 8, 210, "Q6_K" },
	{ YOKE_QUANT_BF16, 0, 2, "BF16" },
};

static const struct format *format_of(int64_t number)
{
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (formats[i].number == number)
			return &formats[i];
	return NULL;
}

int64_t yoke_quant_bytes(int format, int64_t k)
{
	const struct format *f = format_of(format);
	int64_t bytes;
	if (!f || k < 1 || k & ((1 << f->elements_log2) - 1) ||
	    __builtin_mul_overflow(k >> f->elements_log2, (int64_t)f->bytes, &bytes))
		return 0;
	return bytes;
}

// ---- shapes ----

static int want_quantized(struct yk_graph *g, const struct yk_call *c, const struct yk_value *w)
{
	const struct format *f = format_of(c->attr[FORMAT].i);
	const int64_t k = c->attr[LENGTH].i, dtype = c->attr[DTYPE].i;
	char text[160];
	if (!f || f->number == YOKE_QUANT_F32)
		return yk_op_fail(g, c->op, YOKE_EINVAL,
				  "takes F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K or "
				  "Q6_K, got the format number %lld",
				  (long long)c->attr[FORMAT].i);
	if (dtype != yoke_f32 && dtype != yoke_f16 && dtype != yoke_bf16)
		return yk_op_fail(g, c->op, YOKE_EDTYPE, "computes f32, f16 or bf16, not %s",
				  yoke_dtype_size((int)dtype) ? yoke_dtype_name((int)dtype) :
								"an unknown dtype");
	if (w->dtype != yoke_u8)
		return fail_one(g, c, YOKE_EDTYPE, "takes quantized weights as u8, got", w);
	const int64_t bytes = yoke_quant_bytes((int)c->attr[FORMAT].i, k);
	if (!bytes)
		return yk_op_fail(g, c->op, YOKE_ESHAPE,
				  "rows of %s have a positive multiple of %d elements, not %lld",
				  f->name, 1 << f->elements_log2, (long long)k);
	if (w->rank != 2 || w->dims[1] != bytes)
		return yk_op_fail(g, c->op, YOKE_ESHAPE,
				  "rows of %lld elements in %s are u8 [N,%lld], got %s",
				  (long long)k, f->name, (long long)bytes, yk_describe(w, text));
	return 0;
}

// w u8 [N,bytes] -> [N,K]
static int shape_dequant(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const int err = want_quantized(g, c, IN(0));
	if (err)
		return err;
	*out = (struct yk_value){ .dtype = (uint8_t)c->attr[DTYPE].i,
				  .rank = 2,
				  .dims = { IN(0)->dims[0], c->attr[LENGTH].i } };
	return want_size(g, c, out);
}

// x [..,K], w u8 [N,bytes] -> [..,N]
static int shape_qlinear(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const int err = want_quantized(g, c, IN(1));
	if (err)
		return err;
	*out = *IN(0);
	out->dims[out->rank - 1] = IN(1)->dims[0];
	return want_size(g, c, out);
}

// w u8 [N,bytes], ids [I..] -> [I..,K]
static int shape_qgather(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *ids = IN(1);
	if (want_index(g, c, ids) < 0)
		return YOKE_EDTYPE;
	const int err = want_quantized(g, c, IN(0));
	if (err)
		return err;
	if (ids->rank == YOKE_MAX_RANK)
		return fail_one(g, c, YOKE_ESHAPE, "too many axes:", ids);
	*out = *ids;
	out->dtype = (uint8_t)c->attr[DTYPE].i;
	out->dims[out->rank++] = c->attr[LENGTH].i;
	return want_size(g, c, out);
}

// ---- decompositions ----

// Blocks [N,B,bytes] of a matrix.
struct blocks {
	struct yk_graph *g;
	yk_id x;
	int64_t rows, count;
};

// Bytes from .. from + n - 1 of each block, as n / size elements of a dtype: [N,B,n/size].
static yk_id field(const struct blocks *b, int64_t from, int64_t n, int dtype)
{
	const yk_id x = yk_slice_axis(b->g, b->x, 2, from, n);
	return dtype == yoke_u8 ?
		       x :
		       yk_record(b->g, YK_BITCAST, 1, &x, 1, &(union yoke_attr){ .i = dtype });
}

// The same of a dtype of several bytes, which blocks have in little-endian order on every host.
static yk_id little(const struct blocks *b, int64_t from, int64_t n, int dtype)
{
	const int64_t size = (int64_t)yoke_dtype_size(dtype),
		      dims[] = { b->rows, b->count, n / size, size };
	struct blocks reversed = *b;
	if (!YK_HOST_BIG)
		return field(b, from, n, dtype);
	yk_id x = yk_reshape(b->g, field(b, from, n, yoke_u8), 4, dims);
	x = yk_slice(b->g, x, (int64_t[]){ 0, 0, 0, size - 1 }, (int64_t[]){ 1, 1, 1, -1 }, dims);
	reversed.x = yk_reshape(b->g, x, 3, (int64_t[]){ b->rows, b->count, n });
	return field(&reversed, 0, n, dtype);
}

// The same as integers, or as f32.
static yk_id bytes_at(const struct blocks *b, int64_t from, int64_t n)
{
	return yk_cast(b->g, field(b, from, n, yoke_u8), yoke_i32);
}

static yk_id scale_at(const struct blocks *b, int64_t from)
{
	return yk_cast(b->g, little(b, from, 2, yoke_f16), yoke_f32);
}

// x, whose axes replace the third one of [N,B,..].
static yk_id shaped(const struct blocks *b, yk_id x, int rank, const int64_t *dims)
{
	int64_t full[YOKE_MAX_RANK] = { b->rows, b->count };
	for (int i = 0; i < rank; i++)
		full[2 + i] = dims[i];
	return yk_reshape(b->g, x, 2 + rank, full);
}

// x >> step * (0 .. n - 1), where the counter is an axis followed by `after` axes; masked.
static yk_id bits(const struct blocks *b, yk_id x, int64_t n, int step, int after, int mask)
{
	int64_t dims[YOKE_MAX_RANK] = { n, 1, 1 };
	yk_id by = yk_bin_lit(b->g, YK_MUL, yk_cast(b->g, yk_counting(b->g, n), yoke_i32), step);
	by = yk_reshape(b->g, by, 1 + after, dims);
	return yk_bin_lit(b->g, YK_AND, yk_bin(b->g, YK_SHR, x, by), mask);
}

// low | high << 4
static yk_id join(const struct blocks *b, yk_id low, yk_id high)
{
	return yk_bin(b->g, YK_OR, low, yk_bin_lit(b->g, YK_SHL, high, 4));
}

// scale * (q - middle), of integers q
static yk_id scaled(const struct blocks *b, yk_id scale, yk_id q, int middle)
{
	if (middle)
		q = yk_bin_lit(b->g, YK_SUB, q, middle);
	return yk_bin(b->g, YK_MUL, scale, yk_cast(b->g, q, yoke_f32));
}

// Formats of 32 elements: f16 d, for some f16 m, for some u32 of fifth bits, then 16 bytes, of
// which byte j has element j low and element j + 16 high.
static yk_id of_32(const struct blocks *b, bool min, bool fifth)
{
	const int64_t at = min ? 4 : 2;
	yk_id q = shaped(b, bytes_at(b, at + (fifth ? 4 : 0), 16), 2, (int64_t[]){ 1, 16 });
	q = shaped(b, bits(b, q, 2, 4, 1, 15), 1, (int64_t[]){ 32 });
	if (fifth)
		q = join(b, q, bits(b, little(b, at, 4, yoke_i32), 32, 1, 0, 1));
	const int middle = fifth ? 16 : 8;
	const yk_id y = scaled(b, scale_at(b, 0), q, min ? 0 : middle);
	return min ? yk_bin(b->g, YK_ADD, y, scale_at(b, 2)) : y;
}

static yk_id concat_groups(const struct blocks *b, yk_id low, yk_id high)
{
	const yk_id x = yk_record(b->g, YK_CONCAT, 2, (yk_id[]){ low, high }, 1,
				  &(union yoke_attr){ .i = 2 });
	return shaped(b, yk_cast(b->g, x, yoke_f32), 2, (int64_t[]){ 8, 1 });
}

// Q4_K, Q5_K: f16 d, f16 D, 12 bytes with the 6-bit scales and minima of 8 groups, for Q5_K 32
// bytes of which bit g of byte l is the fifth bit of element l of group g, then 128 bytes.
static yk_id of_256(const struct blocks *b, bool fifth)
{
	struct yk_graph *g = b->g;
	const yk_id s0 = bytes_at(b, 4, 4), s4 = bytes_at(b, 8, 4), s8 = bytes_at(b, 12, 4);
	const yk_id a =
		concat_groups(b, yk_bin_lit(g, YK_AND, s0, 63),
			      join(b, yk_bin_lit(g, YK_AND, s8, 15), yk_bin_lit(g, YK_SHR, s0, 6)));
	const yk_id m =
		concat_groups(b, yk_bin_lit(g, YK_AND, s4, 63),
			      join(b, yk_bin_lit(g, YK_SHR, s8, 4), yk_bin_lit(g, YK_SHR, s4, 6)));
	yk_id q = shaped(b, bytes_at(b, fifth ? 48 : 16, 128), 3, (int64_t[]){ 4, 1, 32 });
	q = shaped(b, bits(b, q, 2, 4, 1, 15), 2, (int64_t[]){ 8, 32 });
	if (fifth)
		q = join(b, q,
			 bits(b, shaped(b, bytes_at(b, 16, 32), 2, (int64_t[]){ 1, 32 }), 8, 1, 1,
			      1));
	const int64_t one[] = { 1, 1 };
	const yk_id d = yk_bin(g, YK_MUL, shaped(b, scale_at(b, 0), 2, one), a);
	const yk_id min = yk_bin(g, YK_MUL, shaped(b, scale_at(b, 2), 2, one), m);
	return yk_bin(g, YK_SUB, scaled(b, d, q, 0), min);
}

// Q6_K: 128 bytes of low nibbles, 64 of pairs of high bits, i8 scales of 16 groups, f16 d. In each
// half, groups of 32 elements share bytes: two in low and two in high nibbles, four in pairs.
static yk_id q6_k(const struct blocks *b)
{
	yk_id q = shaped(b, bytes_at(b, 0, 128), 4, (int64_t[]){ 2, 1, 2, 32 });
	q = shaped(b, bits(b, q, 2, 4, 2, 15), 3, (int64_t[]){ 2, 4, 32 });
	const yk_id high = shaped(b, bytes_at(b, 128, 64), 3, (int64_t[]){ 2, 1, 32 });
	q = shaped(b, join(b, q, bits(b, high, 4, 2, 1, 3)), 2, (int64_t[]){ 16, 16 });
	const yk_id a = yk_cast(
		b->g, shaped(b, field(b, 192, 16, yoke_i8), 2, (int64_t[]){ 16, 1 }), yoke_f32);
	const yk_id d = shaped(b, scale_at(b, 208), 2, (int64_t[]){ 1, 1 });
	return scaled(b, yk_bin(b->g, YK_MUL, d, a), q, 32);
}

static void decompose_dequant(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const int64_t rows = IN(0)->dims[0], bytes = IN(0)->dims[1], k = c->attr[LENGTH].i;
	const struct format *f = format_of(c->attr[FORMAT].i);
	const int64_t dims[] = { rows, bytes / f->bytes, f->bytes };
	const struct blocks b = {
		.g = g, .x = yk_reshape(g, c->in[0], 3, dims), .rows = rows, .count = dims[1]
	};
	yk_id y;
	switch (f->number) {
	case YOKE_QUANT_F16: y = yk_cast(g, field(&b, 0, 2, yoke_f16), yoke_f32); break;
	case YOKE_QUANT_BF16: y = yk_cast(g, field(&b, 0, 2, yoke_bf16), yoke_f32); break;
	case YOKE_QUANT_Q8_0:
		y = yk_bin(g, YK_MUL, scale_at(&b, 0),
			   yk_cast(g, field(&b, 2, 32, yoke_i8), yoke_f32));
		break;
	case YOKE_QUANT_Q4_K:
	case YOKE_QUANT_Q5_K: y = of_256(&b, f->number == YOKE_QUANT_Q5_K); break;
	case YOKE_QUANT_Q6_K: y = q6_k(&b); break;
	default:
		y = of_32(&b, f->number == YOKE_QUANT_Q4_1 || f->number == YOKE_QUANT_Q5_1,
			  f->number == YOKE_QUANT_Q5_0 || f->number == YOKE_QUANT_Q5_1);
	}
	out[0] = yk_cast(g, yk_reshape(g, y, 2, (int64_t[]){ rows, k }), (int)c->attr[DTYPE].i);
}

// The matrix in a dtype; weights that are stored in it are used as they are.
static yk_id dequant(struct yk_graph *g, yk_id w, const union yoke_attr *attr, int dtype)
{
	const bool same = (attr[FORMAT].i == YOKE_QUANT_F16 && dtype == yoke_f16) ||
			  (attr[FORMAT].i == YOKE_QUANT_BF16 && dtype == yoke_bf16);
	const union yoke_attr to[ATTRS] = { attr[FORMAT], attr[LENGTH], { .i = dtype } };
	return same ? yk_record(g, YK_BITCAST, 1, &w, 1, &to[DTYPE]) :
		      yk_record(g, YK_DEQUANT, 1, &w, ATTRS, to);
}

// x [..,C] times the matrix w [N,C] transposed, or times w [C,N]. 16-bit x is multiplied with
// weights that are rounded to its dtype, as in other mixed-precision products.
static yk_id times(struct yk_graph *g, yk_id x, yk_id w, const union yoke_attr *attr,
		   unsigned flags)
{
	if (x == YK_BAD || w == YK_BAD)
		return YK_BAD;
	struct yk_value like = g->value[x];
	w = dequant(g, w, attr, like.dtype);
	if (w == YK_BAD)
		return YK_BAD;
	const int last = like.rank - 1;
	int64_t rows = 1;
	for (int i = 0; i < last; i++)
		rows *= like.dims[i];
	const yk_id flat = yk_reshape(g, x, 2, (int64_t[]){ rows, like.dims[last] });
	const yk_id y = yk_matmul(g, flat, w, flags);
	like.dims[last] = g->value[w].dims[flags & YOKE_TB ? 0 : 1];
	return yk_reshape(g, y, like.rank, like.dims);
}

static void decompose_qlinear(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	out[0] = times(g, c->in[0], c->in[1], c->attr,
		       c->nattr > BY_ROW && c->attr[BY_ROW].i ? YOKE_TB | YOKE_BY_ROW : YOKE_TB);
}

static void decompose_qgather(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_value ids = g->value[c->in[1]];
	int64_t dims[YOKE_MAX_RANK] = { 0 };
	for (int i = 0; i < ids.rank; i++)
		dims[i] = ids.dims[i];
	dims[ids.rank] = c->attr[LENGTH].i;
	const yk_id flat = yk_reshape(g, c->in[1], 1, (int64_t[]){ yk_count(&ids) });
	const yk_id rows = yk_record(g, YK_GATHER, 2, (yk_id[]){ c->in[0], flat }, 1,
				     &(union yoke_attr){ .i = 0 });
	out[0] = yk_reshape(g, yk_record(g, YK_DEQUANT, 1, &rows, ATTRS, c->attr), ids.rank + 1,
			    dims);
}

// ---- gradients ----

static void grad_none(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	(void)g, (void)node, (void)gout, (void)gin;
}

enum { MAX_TILES = 64 };

// Number of columns of a matrix [rows,k] that are dequantized at a time: whole blocks, or all
// columns of a small matrix.
static int64_t tile_of(int64_t rows, int64_t k, const struct format *f)
{
	enum { ELEMENTS = 8 << 20 };
	const int64_t block = INT64_C(1) << f->elements_log2;
	if (rows <= ELEMENTS / k)
		return k;
	const int64_t fit = ELEMENTS / rows / block * block;
	const int64_t min = (k / MAX_TILES / block + 1) * block; // at most MAX_TILES
	return fit > min ? fit : min;
}

// A large matrix is dequantized by tiles of columns: each element of the gradient is one sum over
// all rows, so tiles do not change its bits.
static void grad_qlinear(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node_copy n = yk_node_copy(g, node);
	const struct format *f = format_of(n.attr[FORMAT].i);
	const int64_t k = n.attr[LENGTH].i, tile = tile_of(g->value[n.in[1]].dims[0], k, f);
	yk_id part[MAX_TILES];
	uint32_t parts = 0;
	for (int64_t at = 0; at < k; at += tile) {
		const int64_t columns = k - at < tile ? k - at : tile;
		const union yoke_attr attr[] = { n.attr[FORMAT], { .i = columns } };
		const yk_id w = columns == k ?
					n.in[1] :
					yk_slice_axis(g, n.in[1], 1,
						      at / (1 << f->elements_log2) * f->bytes,
						      yoke_quant_bytes(f->number, columns));
		part[parts++] = times(g, gout[0], w, attr, 0);
	}
	gin[0] = parts == 1 ? part[0] :
			      yk_record(g, YK_CONCAT, parts, part, 1,
					&(union yoke_attr){ .i = g->value[gout[0]].rank - 1 });
}

YK_OP(DEQUANT) = { .name = "dequant",
		   .code = YOKE_OP_DEQUANT,
		   .min_in = 1,
		   .max_in = 1,
		   .nout = 1,
		   .shape = shape_dequant,
		   .grad = grad_none,
		   .decompose = decompose_dequant };
YK_OP(QLINEAR) = { .name = "qlinear",
		   .code = YOKE_OP_QLINEAR,
		   .min_in = 2,
		   .max_in = 2,
		   .nout = 1,
		   .cast = YK_CAST_HALF,
		   .shape = shape_qlinear,
		   .grad = grad_qlinear,
		   .decompose = decompose_qlinear };
YK_OP(QGATHER) = { .name = "qgather",
		   .code = YOKE_OP_QGATHER,
		   .min_in = 2,
		   .max_in = 2,
		   .nout = 1,
		   .shape = shape_qgather,
		   .grad = grad_none,
		   .decompose = decompose_qgather };

yoke_tensor *yoke_dequant(yoke_tensor *w, int format, int64_t k, int dtype)
{
	struct yk_rec r = yk_rec_begin(1, &w);
	const union yoke_attr attr[ATTRS] = { { .i = format }, { .i = k }, { .i = dtype } };
	return yk_rec_end(&r, yk_record(r.g, YK_DEQUANT, 1, r.in, ATTRS, attr));
}

yoke_tensor *yoke_qlinear(yoke_tensor *x, yoke_tensor *w, int format)
{
	struct yk_rec r = yk_rec_begin_op(YK_QLINEAR, 2, (yoke_tensor *[]){ x, w });
	if (r.in[0] == YK_BAD || !yk_rec_check_axis(&r))
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value *v = &r.g->value[r.in[0]];
	const bool by_row = format & YOKE_QUANT_BY_ROW;
	const union yoke_attr attr[] = { { .i = format & ~YOKE_QUANT_BY_ROW },
					 { .i = v->dims[v->rank - 1] },
					 { .i = v->dtype },
					 { .i = 1 } };
	return yk_rec_end(&r,
			  yk_record(r.g, YK_QLINEAR, 2, r.in, by_row ? ATTRS + 1 : ATTRS, attr));
}

yoke_tensor *yoke_qgather(yoke_tensor *w, yoke_tensor *ids, int format, int64_t k, int dtype)
{
	struct yk_rec r = yk_rec_begin(2, (yoke_tensor *[]){ w, ids });
	const union yoke_attr attr[ATTRS] = { { .i = format }, { .i = k }, { .i = dtype } };
	return yk_rec_end(&r, yk_record(r.g, YK_QGATHER, 2, r.in, ATTRS, attr));
}
