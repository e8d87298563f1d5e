// SPDX-License-Identifier: Apache-2.0
// DEQUANT: w u8 [N,bytes] -> y [N,K]. QGATHER: w, idx [I..] -> y [I..,K], rows of w. Numbers are
// computed in f32 and rounded once, and have the same bits as the decompositions'.
#define YK_VECTORS_128 // where SVE has longer ones: bytes of 128 bits are combined
#include "config.h"

#include "../move/kern_gather.h"
#include "../rows/operand.h"
#include "blocks.h"

struct job {
	const struct yoke_op *op;
	const struct yoke_view *w, *idx; // idx: NULL for DEQUANT
	struct rows out;
	int format;
	int64_t each;
	_Atomic int64_t bad;    // position of the first invalid index
	_Atomic bool no_memory;
};

static uint64_t can_rows(const struct yoke_view *w, const struct yoke_view *y,
			 const struct yoke_op *op)
{
	if (op->nout != 1 || op->nattr < 2 || op->attr[0].i < 0 || op->attr[0].i > BF16)
		return 0;
	const int f = (int)op->attr[0].i, bytes = block_bytes(f);
	const int64_t k = op->attr[1].i;
	return bytes && w->kind == YOKE_VIEW_BUFFER && w->dtype == yoke_u8 && w->rank == 2 &&
	       w->strides[1] == 1 && is_rows(y) && k > 0 && k % block_elements(f) == 0 &&
	       y->dims[y->rank - 1] == k && w->dims[1] == k / block_elements(f) * bytes;
}

static uint64_t can_dequant(const struct yoke_op *op)
{
	return op->nin == 1 && can_rows(&op->in[0], &op->out[0], op) && op->out[0].rank == 2 &&
	       op->out[0].dims[0] == op->in[0].dims[0];
}

static uint64_t can_gather(const struct yoke_op *op)
{
	return op->nin == 2 && is_index(&op->in[1]) && can_rows(&op->in[0], &op->out[0], op) &&
	       op->out[0].rank == op->in[1].rank + 1 &&
	       same_dims(op->out[0].dims, op->in[1].dims, op->in[1].rank);
}

YK_INLINE float f16_at(const uint8_t *p)
{
	return yk_f32_of_f16(half_at(p));
}

// Scale and minimum of group g of a block; `half`: of the half of a group of Q6_K.
YK_INLINE float scale_at(const int f, const uint8_t *b, const int g, const int half, float *min)
{
	*min = 0;
	if (f == Q4_1 || f == Q5_1)
		*min = f16_at(b + 2);
	if (!is_long(f))
		return f16_at(b);
	if (f == Q6_K)
		return f16_at(b + 208) * (float)(int8_t)b[192 + 2 * g + half];
	const uint8_t *s = b + 4;
	const int j = g & 3, a = g < 4 ? s[j] & 63 : (s[j + 8] & 15) | s[j] >> 6 << 4;
	const int m = g < 4 ? s[j + 4] & 63 : s[j + 8] >> 4 | s[j + 4] >> 6 << 4;
	*min = -(f16_at(b + 2) * (float)m);
	return f16_at(b) * (float)a;
}

YK_INLINE void decode(const int f, const uint8_t *b, int64_t k, float *y)
{
	const int bytes = block_bytes(f), groups = is_long(f) ? CHUNK_GROUPS : 1;
	for (int64_t i = 0; i < k; b += bytes)
#pragma GCC unroll 8
		for (int g = 0; g < groups; g++, i += GROUP) {
			int16_t q[GROUP];
			const struct group v = group_of(f, b, g, false);
			memcpy(q, &v, sizeof q);
			for (int half = 0; half < 2; half++) {
				float min;
				const float s = scale_at(f, b, g, half, &min);
				for (int e = 16 * half; e < 16 * half + 16; e++) {
					const float x = s * (float)(q[e] - middle(f));
					y[i + e] = has_min(f) ? x + min : x;
				}
			}
		}
}

#define DECODE(f) \
	static void decode_##f(const uint8_t *b, int64_t k, float *y) \
	{ \
		decode(f, b, k, y); \
	}
EACH_FORMAT(DECODE)
#undef DECODE

static void decode_row(int format, const uint8_t *b, int64_t k, float *y)
{
	switch (format) {
#define CASE(f) \
	case f: decode_##f(b, k, y); break;
		EACH_FORMAT(CASE)
#undef CASE
	default: ISA(yk_load)(format == F16 ? yoke_f16 : yoke_bf16)(y, b, 1, k);
	}
}

static void item(void *arg, int64_t index)
{
	struct job *j = arg;
	const int64_t k = j->out.cols, end = (index + 1) * j->each < j->out.count ?
						     (index + 1) * j->each :
						     j->out.count;
	float *line = row_lines(j->out.store, 1, k);
	if (!line)
		atomic_store(&j->no_memory, true);
	for (int64_t i = index * j->each; line && i < end; i++) {
		const int64_t row = j->idx ? index_at(j->idx, i) : i;
		if (row < 0 || row >= j->w->dims[0]) {
			record_first(&j->bad, i);
			continue;
		}
		decode_row(j->format, (const uint8_t *)yk_ptr(j->w) + row * j->w->strides[0], k,
			   row_to(&j->out, i, line));
		row_put(&j->out, i, line);
	}
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job j = {
		.op = op, .w = &op->in[0], .out = rows_of(&op->out[0]), .format = (int)op->attr[0].i
	};
	(void)impl, (void)prepared;
	if (op->code == YOKE_OP_QGATHER)
		j.idx = &op->in[1];
	if (!yk_elements(&op->out[0]))
		return 0;
	atomic_init(&j.bad, INT64_MAX);
	j.each = rows_per_item(j.out.count, j.out.cols, 0);
	yk_team_run(items_of(j.out.count, j.each), item, &j);
	if (atomic_load(&j.no_memory))
		return yk_cpu_fail(YOKE_ENOMEM, "dequant: no memory for a row");
	const int64_t bad = atomic_load(&j.bad);
	return bad == INT64_MAX ? 0 : out_of_range("qgather", j.idx, bad, j.w->dims[0]);
}

YK_KERNEL(dequant, DEQUANT) = { .can = can_dequant, .run = run, .impl = { "rows" } };
YK_KERNEL(qgather, QGATHER) = { .can = can_gather, .run = run, .impl = { "rows" } };
