// SPDX-License-Identifier: Apache-2.0
// QLINEAR: x [..,K], w u8 [N,bytes] -> y [..,N]. Few rows of x are multiplied with w as it is read,
// STRIP rows of it at a time. For more rows, integers of w are packed into panels that
// many rows of x use. F16 and BF16 weights are multiplied in f32.
#define YK_VECTORS_128 // where SVE has longer ones: bytes of 128 bits are combined
#include "config.h"

#include <math.h>

#include "../move/walk.h"
#include "kern_qlinear_job.h"

#ifdef YK_DOT // a second build, which the others call on processors with products of bytes
#define QLINEAR_KERNEL yk_qlinear_dot
#define QLINEAR_RUN yk_qlinear_run_dot
#else
#define QLINEAR_KERNEL ISA(yk_qlinear)
#define QLINEAR_RUN ISA(yk_qlinear_run)
#endif

enum { BLOCKS, INT8 }; // implementations

enum {
	FEW = 4,      // max rows multiplied as w is read, with 8-bit activations
	SEVERAL = 32, // the same with 16-bit ones
	MIN_ITEM = 1 << 15, // bytes of w per work item for few rows
	MAX_ITEM = 1 << 18,
	ITEMS = 16,   // where items are between these limits
	AHEAD = 1280, // bytes between the rows that are read and prefetched, besides a strip
	MAX_8 = 127,
	MAX_16 = INT16_MAX,
	MAX_Q6_K = 16383, // so that 32 products with scaled integers fit into 32 bits
	DOT_ROWS = VF == 16 ? 8 : 4,
	DOT_COLS = 3,       // products in f32: as many sums as registers hold
	DOT_BYTES = 1 << 17 // of x that stay in a cache
};

static uint64_t can(const struct yoke_op *op)
{
	if (op->nin != 2 || op->nout != 1 || op->nattr < 2 || op->attr[0].i < 0 ||
	    op->attr[0].i > BF16)
		return 0;
	const struct yoke_view *x = &op->in[0], *w = &op->in[1], *y = &op->out[0];
	const int f = (int)op->attr[0].i, bytes = block_bytes(f), last = x->rank - 1;
	const int64_t k = op->attr[1].i;
	if (!bytes || !is_rows(x) || !is_rows(y) || w->kind != YOKE_VIEW_BUFFER ||
	    w->dtype != yoke_u8 || w->rank != 2 || w->strides[1] != 1 || k <= 0 ||
	    k % block_elements(f) != 0 || x->dims[last] != k ||
	    w->dims[1] != k / block_elements(f) * bytes || y->rank != x->rank ||
	    !same_dims(x->dims, y->dims, last) || y->dims[last] != w->dims[0])
		return 0;
	return yk_int8_activations && !is_plain(f) ? 1 << INT8 : 1 << BLOCKS;
}

static int64_t rows_in(const struct yoke_op *op)
{
	return yk_elements(&op->in[0]) / op->attr[1].i;
}

static uint64_t padded(int64_t bytes)
{
	return ((uint64_t)bytes + 63) & ~(uint64_t)63;
}

// k, rounded up to whole vectors.
static int64_t whole_vectors(int64_t k)
{
	return (k + VF - 1) / VF * VF;
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	const int64_t m = rows_in(op), k = op->attr[1].i;
	(void)impl;
	if (is_plain((int)op->attr[0].i))
		return padded(m * whole_vectors(k) * 4);
	return padded(m * k * 2) + 4 * padded(m * (k / GROUP) * 4);
}

// ---- activations ----

// One group: integers x / scale, rounded. If an element is not finite, the scale is NaN.
static void to_integers(const struct job *j, const float *x, int max, int64_t row, int64_t group)
{
	const int64_t at = row * j->a.groups + group;
	const vf magic = vf_splat(0x1.8p23f); // adding it rounds to an integer in the low bits
	int32_t q[GROUP], sum[2] = { 0, 0 };
	vi largest_bits = { 0 }; // of the moduli, which are ordered as their bits are
	for (int i = 0; i < GROUP; i += VF) {
		const vi bits = (vi)vf_load(x + i) & INT32_MAX, above = bits > largest_bits;
		largest_bits = (bits & above) | (largest_bits & ~above);
	}
	int32_t top = 0;
	for (int i = 0; i < VF; i++)
		top = largest_bits[i] > top ? largest_bits[i] : top;
	const float largest = yk_f32_bits((uint32_t)top);
	const bool finite = isfinite(largest);
	const float up = largest < 0x1p-60f ? 0x1p60f : 1; // or the reciprocal might overflow
	const float by = largest > 0 && finite ? (float)max / (largest * up) : 0;
	for (int i = 0; i < GROUP; i += VF) {
		const vf v = (finite ? vf_load(x + i) : (vf){ 0 }) * vf_splat(up) * vf_splat(by);
		const vi n = (vi)(v + magic) - (vi)magic;
		memcpy(q + i, &n, sizeof n);
	}
	for (int i = 0; i < GROUP; i++)
		sum[i / (GROUP / 2)] += q[i];
	const float scale = finite ? largest / (float)max : NAN;
	((float *)j->a.scale)[at] = scale;
	((float *)j->a.sum)[at] = scale * (float)(sum[0] + sum[1]);
	((int32_t *)j->a.isum)[at] = sum[0] + sum[1];
	((int32_t *)j->a.first)[at] = sum[0];
	int16_t *to = (int16_t *)j->a.q + at * GROUP;
	int8_t *to8 = (int8_t *)j->a.q8 + at * GROUP;
	if (j->few && j->way == SPLIT)
		for (int i = 0; i < GROUP; i++) { // 2 GROUP bytes
			to8[at * GROUP + i] = (int8_t)(uint8_t)q[i];
			to8[at * GROUP + GROUP + i] = (int8_t)(q[i] >> 8);
		}
	else if (j->few && !is_words(j->way))
		for (int i = 0; i < GROUP; i++)
			to8[i] = (int8_t)q[i];
	else if (j->few)
		for (int i = 0; i < GROUP / 4; i++) {
			to[i] = (int16_t)q[2 * i];
			to[8 + i] = (int16_t)q[2 * i + 1];
			to[16 + i] = (int16_t)q[16 + 2 * i];
			to[24 + i] = (int16_t)q[17 + 2 * i];
		}
	else
		j->many->put_group(j, row, group, q);
}

static void quantize_row(const struct job *j, int64_t row, const float *x)
{
	const int words = j->format == Q6_K ? MAX_Q6_K : MAX_16,
		  max = yk_int8_activations ? MAX_8 : words;
	for (int64_t g = 0; g < j->a.groups; g++)
		to_integers(j, x + g * GROUP, max, row, g);
}

// Rows of x in the group that begins with row `first`.
static int64_t rows_of_group(const struct job *j, int64_t first)
{
	return j->x.count - first < DOT_ROWS ? j->x.count - first : DOT_ROWS;
}

// Stores a row of x in f32. Groups of DOT_ROWS rows are [k / VF][rows][VF], so that they are read
// as one stream.
static void pack_row(const struct job *j, int64_t row, const float *x)
{
	const int64_t in = row % DOT_ROWS, rows = rows_of_group(j, row - in);
	float *to = j->f32 + (row - in) * whole_vectors(j->k) + in * VF;
	for (int64_t i = 0; i < j->k; i += VF, to += rows * VF)
		vf_store(to, vf_get(x + i, j->k - i));
}

static void prepare_row(void *arg, int64_t row)
{
	struct job *j = arg;
	float *line = row_lines(j->x.load, 1, j->k);
	if (!line) {
		atomic_store(&j->no_memory, true);
		return;
	}
	const float *x = row_get(&j->x, row, line);
	if (j->f32)
		pack_row(j, row, x);
	else
		quantize_row(j, row, x);
}

// ---- the loops of each format ----

#define STRIP_OF(f, way, name) \
	static void strip_##f##_##name(const uint8_t *const *row, const uint8_t *next, \
				       const struct activations *x, int64_t m, float *y) \
	{ \
		strip(f, way, row, next, x, m, y); \
	}
#define STRIP_ROWS(f, way, name) \
	static void strip_rows_##f##_##name(const uint8_t *const *row, const uint8_t *next, \
					    const struct activations *x, int64_t m, int64_t count, \
					    float *y) \
	{ \
		strip_of_rows(f, way, row, next, x, m, count, y); \
	}
#define PACK(f) \
	static void pack_##f(const uint8_t *const *row, int64_t from, int groups, int16_t *panel, \
			     float *scale, float *min, int64_t step) \
	{ \
		if (groups == CHUNK_GROUPS) \
			pack(f, row, from, CHUNK_GROUPS, panel, scale, min, step); \
		else \
			for (int g = 0; g < groups; g++) \
				pack(f, row, from + g, 1, panel + g * GROUP * TILE_COLS, \
				     scale + g * step, min + g * step, step); \
	}
#if defined YK_DOT
#define STRIP_BYTES(f) \
	STRIP_OF(f, BYTES, bytes) STRIP_OF(f, SPLIT, split) \
	STRIP_ROWS(f, BYTES, bytes) STRIP_ROWS(f, SPLIT, split)
#define BYTES_ENTRY(f) [BYTES] = strip_##f##_bytes, [SPLIT] = strip_##f##_split,
#define BYTES_ROWS(f) [BYTES] = strip_rows_##f##_bytes, [SPLIT] = strip_rows_##f##_split,
#elif VF > 4
#define STRIP_BYTES(f) STRIP_OF(f, BYTES, bytes)
#define BYTES_ENTRY(f) [BYTES] = strip_##f##_bytes,
#else
#define STRIP_BYTES(f)
#define BYTES_ENTRY(f)
#endif
#ifndef BYTES_ROWS
#define BYTES_ROWS(f)
#endif
#ifdef HAVE_VNNI
#define STRIP_VNNI(f) STRIP_OF(f, VNNI, vnni) STRIP_OF(f, PAIRS, pairs) STRIP_ROWS(f, PAIRS, pairs)
#define VNNI_ENTRY(f) [VNNI] = strip_##f##_vnni, [PAIRS] = strip_##f##_pairs,
#define VNNI_ROWS(f) [PAIRS] = strip_rows_##f##_pairs,
#else
#define STRIP_VNNI(f)
#define VNNI_ENTRY(f)
#define VNNI_ROWS(f)
#endif
#define ROUTINES(f) \
	STRIP_OF(f, WORDS, words) STRIP_BYTES(f) STRIP_VNNI(f) STRIP_ROWS(f, WORDS, words) PACK(f)
EACH_FORMAT(ROUTINES)
#undef ROUTINES

static const struct routines {
	qlinear_strip_fn *strip[WAYS];
	qlinear_rows_fn *rows[WAYS]; // NULL: a row at a time
	qlinear_pack_fn *pack;
} routines[] = {
#define ENTRY(f) \
	[f] = { { [WORDS] = strip_##f##_words, BYTES_ENTRY(f) VNNI_ENTRY(f) }, \
		{ [WORDS] = strip_rows_##f##_words, VNNI_ROWS(f) BYTES_ROWS(f) }, \
		pack_##f },
	EACH_FORMAT(ENTRY)
#undef ENTRY
};

static bool has_vnni(void)
{
#ifdef HAVE_VNNI
	return VF == 16 ? yk_vnni_512 : yk_vnni_256;
#else
	return false;
#endif
}

// How words are multiplied.
static enum way way_of_words(void)
{
#ifdef YK_DOT
	return yk_arm_i8mm ? SPLIT : WORDS;
#else
	return has_vnni() ? PAIRS : WORDS;
#endif
}

// How few rows are multiplied with bytes.
static enum way way_of_bytes(void)
{
#ifdef YK_DOT
	return BYTES;
#else
	if (has_vnni())
		return VNNI;
	return VF > 4 ? BYTES : WORDS;
#endif
}

// Tiles depend on the format only by the last step of a group.
typedef void tile_fn(const struct activations *x, int64_t m, int64_t from, int64_t groups,
		     const int16_t *panel, const float *scale, const float *min, int64_t step,
		     float *acc);
#define TILE(f, way, name, rows) \
	static void tile_##f##_##name##_##rows(const struct activations *x, int64_t m, \
					       int64_t from, int64_t groups, const int16_t *panel, \
					       const float *scale, const float *min, int64_t step, \
					       float *acc) \
	{ \
		tile(f, way, rows, x, m, from, groups, panel, scale, min, step, acc); \
	}
#define TILES(f, way, name) \
	TILE(f, way, name, 1) TILE(f, way, name, 2) TILE(f, way, name, 3) TILE(f, way, name, 6)
#if VF == 16
#define TILES_OF(f, way, name) TILES(f, way, name) TILE(f, way, name, 12)
#define TILE_ENTRY(f, name) \
	{ \
		tile_##f##_##name##_12, tile_##f##_##name##_6, tile_##f##_##name##_3, \
			tile_##f##_##name##_2, tile_##f##_##name##_1 \
	}
static const int tile_rows[] = { 12, 6, 3, 2, 1 };
#else
#define TILES_OF(f, way, name) TILES(f, way, name)
#define TILE_ENTRY(f, name) \
	{ \
		tile_##f##_##name##_6, tile_##f##_##name##_3, tile_##f##_##name##_2, \
		tile_##f##_##name##_1 \
	}
static const int tile_rows[] = { 6, 3, 2, 1 };
#endif
enum { SIZES = sizeof tile_rows / sizeof *tile_rows };

#ifdef HAVE_VNNI
#define TILES_OF_FORMAT(f) \
	TILES_OF(f, WORDS, words) TILES_OF(f, PAIRS, pairs) \
	static tile_fn *const tiles_##f[][SIZES] = { TILE_ENTRY(f, words), TILE_ENTRY(f, pairs) };
#else
#define TILES_OF_FORMAT(f) \
	TILES_OF(f, WORDS, words) \
	static tile_fn *const tiles_##f[][SIZES] = { TILE_ENTRY(f, words) };
#endif
TILES_OF_FORMAT(Q8_0)
TILES_OF_FORMAT(Q4_0)
TILES_OF_FORMAT(Q5_0)
TILES_OF_FORMAT(Q4_1)

static tile_fn *const *tiles_of(int format)
{
	const enum way way = has_vnni() ? PAIRS : WORDS;
	if (has_min(format))
		return tiles_Q4_1[way];
	if (format == Q4_0)
		return tiles_Q4_0[way];
	return format == Q5_0 ? tiles_Q5_0[way] : tiles_Q8_0[way];
}

// ---- work items ----

static void put(const struct job *j, int64_t m, int64_t n, int64_t count, const float *from)
{
	char *to = row_at(&j->y, m) + n * j->y.size;
	if (j->y.store)
		j->y.store(to, from, 1, count);
	else
		memcpy(to, from, (size_t)count * sizeof *from);
}

static void few_rows(void *arg, int64_t item)
{
	const struct job *j = arg;
	const int64_t end = (item + 1) * j->cols < j->n ? (item + 1) * j->cols : j->n;
	qlinear_strip_fn *const multiply = routines[j->format].strip[j->way];
	for (int64_t n = item * j->cols; n < end; n += STRIP) {
		const uint8_t *row[STRIP];
		rows_of_w(j, n, STRIP, row);
		// the item's next strip, if there is one
		const uint8_t *next = n + STRIP < end ? row[0] + STRIP * j->step + AHEAD : row[0];
		const bool in_place = !j->y.store && n + STRIP <= end;
		qlinear_rows_fn *const together = routines[j->format].rows[j->way];
		if (j->x.count > 1 && together) {
			float y[SEVERAL * STRIP];
			for (int64_t from = 0; from < j->x.count; from += SEVERAL) {
				const int64_t rows =
					j->x.count - from < SEVERAL ? j->x.count - from : SEVERAL;
				together(row, next, &j->a, from, rows, y);
				for (int64_t m = 0; m < rows; m++)
					put(j, from + m, n, end - n < STRIP ? end - n : STRIP,
					    y + m * STRIP);
			}
			continue;
		}
		for (int64_t m = 0; m < j->x.count; m++) {
			float y[STRIP];
			float *to = in_place ? (float *)row_at(&j->y, m) + n : y;
			multiply(row, next, &j->a, m, to);
			if (!in_place)
				put(j, m, n, end - n < STRIP ? end - n : STRIP, y);
		}
	}
}

static void fill_panels(const struct job *j, int64_t n, int64_t from, int64_t groups,
			const struct panels *p)
{
	for (int c = 0; c < COLS && n + c < j->n; c += TILE_COLS) {
		const uint8_t *row[TILE_COLS];
		rows_of_w(j, n + c, TILE_COLS, row);
		for (int64_t g = 0; g < groups; g += CHUNK_GROUPS)
			routines[j->format].pack(
				row, from + g,
				(int)(groups - g < CHUNK_GROUPS ? groups - g : CHUNK_GROUPS),
				p->q + (int64_t)c * DEPTH + g * GROUP * TILE_COLS,
				p->scale + g * COLS + c, p->min + g * COLS + c, COLS);
	}
}

static void multiply_panels(const struct job *j, int64_t first, int64_t rows, int64_t cols,
			    int64_t from, int64_t groups, const struct panels *p)
{
	tile_fn *const *tiles = tiles_of(j->format);
	for (int64_t m = 0, size = 0; m < rows; m += tile_rows[size]) {
		while (tile_rows[size] > rows - m)
			size++;
		for (int64_t c = 0; c < cols; c += TILE_COLS)
			tiles[size](&j->a, first + m, from, groups, p->q + c * DEPTH, p->scale + c,
				    p->min + c, COLS, p->acc + m * COLS + c);
	}
}

static void put_words(const struct job *j, int64_t row, int64_t group, const int32_t *q)
{
	int16_t *to = (int16_t *)j->a.q + row * j->k + group * GROUP;
	for (int i = 0; i < GROUP; i++)
		to[i] = (int16_t)q[i];
}

static const struct qlinear_many words = { put_words, fill_panels, multiply_panels };

static void many_rows(void *arg, int64_t item)
{
	struct job *j = arg;
	const int64_t n = item % j->col_items * COLS, first = item / j->col_items * ROWS;
	const int64_t rows = j->x.count - first < ROWS ? j->x.count - first : ROWS,
		      cols = j->n - n < COLS ? j->n - n : COLS;
	enum { SCALES = DEPTH / GROUP * COLS };
	float *memory = yk_team_scratch(sizeof(int16_t) * COLS * DEPTH +
					sizeof(float) * (2 * SCALES + COLS * ROWS));
	if (!memory) {
		atomic_store(&j->no_memory, true);
		return;
	}
	const struct panels p = { (int16_t *)(memory + 2 * SCALES + COLS * ROWS), memory,
				  memory + SCALES, memory + 2 * SCALES };
	memset(p.acc, 0, sizeof(float) * COLS * (size_t)rows);
	for (int64_t from = 0; from < j->a.groups; from += DEPTH / GROUP) {
		const int64_t groups =
			j->a.groups - from < DEPTH / GROUP ? j->a.groups - from : DEPTH / GROUP;
		j->many->fill(j, n, from, groups, &p);
		j->many->multiply(j, first, rows, cols, from, groups, &p);
	}
	for (int64_t m = 0; m < rows; m++)
		put(j, first + m, n, cols, p.acc + m * COLS);
}

// ---- weights without blocks ----

// Adds the products of VF lanes of rows of x, packed, and `left` ones of rows of w. Several rows of
// w are prefetched to L2 while the ones before them are multiplied. One row is read faster by the
// hardware's prefetch alone.
YK_INLINE void add_dots(const int dtype, const int rows, const int cols, int64_t left,
			const float *x, const uint8_t *w, int64_t step, vf *sum)
{
	vf b[DOT_COLS];
#pragma GCC unroll 3
	for (int c = 0; c < cols; c++) {
		b[c] = vf_get_as(dtype, w + c * step, left);
		if (cols > 1)
			__builtin_prefetch(w + (c + cols) * step, 0, 2);
	}
#pragma GCC unroll 8
	for (int r = 0; r < rows; r++) {
		const vf a = vf_load(x + r * VF);
#pragma GCC unroll 3
		for (int c = 0; c < cols; c++)
			sum[r * cols + c] = vf_fma(a, b[c], sum[r * cols + c]);
	}
}

// y (rows, DOT_COLS) = rows of x times rows of w, each sum in VF lanes.
YK_INLINE void dots(const int dtype, const int rows, const int cols, int64_t k, const float *x,
		    const uint8_t *w, int64_t step, float *y)
{
	vf sum[DOT_ROWS * DOT_COLS];
	int64_t i = 0;
#pragma GCC unroll 24
	for (int q = 0; q < rows * cols; q++)
		sum[q] = (vf){ 0 };
	for (; i + VF <= k; i += VF, x += rows * VF)
		add_dots(dtype, rows, cols, VF, x, w + 2 * i, step, sum);
	if (i < k)
		add_dots(dtype, rows, cols, k - i, x, w + 2 * i, step, sum);
#pragma GCC unroll 24
	for (int q = 0; q < rows * cols; q++)
		y[q / cols * DOT_COLS + q % cols] = vf_sum(sum[q]);
}

typedef void dots_fn(int64_t k, const float *x, const uint8_t *w, int64_t step, float *y);

#define DOTS(rows, cols, dtype) \
	static void dots_##rows##_##cols##_##dtype(int64_t k, const float *x, const uint8_t *w, \
						   int64_t step, float *y) \
	{ \
		dots(yoke_##dtype, rows, cols, k, x, w, step, y); \
	}
#define EACH_DOTS(rows) \
	DOTS(rows, 1, f16) DOTS(rows, 3, f16) DOTS(rows, 1, bf16) DOTS(rows, 3, bf16)
#define ENTRY(rows) \
	{ { dots_##rows##_1_f16, dots_##rows##_3_f16 }, \
	  { dots_##rows##_1_bf16, dots_##rows##_3_bf16 } },
#if VF == 16
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#else
#define EACH_ROWS(X) X(1) X(2) X(3) X(4)
#endif
EACH_ROWS(EACH_DOTS)
static dots_fn *const dots_of[DOT_ROWS][2][2] = { EACH_ROWS(ENTRY) };

static void plain_rows(void *arg, int64_t item)
{
	const struct job *j = arg;
	const int64_t end = (item + 1) * j->cols < j->n ? (item + 1) * j->cols : j->n;
	const int64_t block = (DOT_BYTES / (j->k * 4) / DOT_ROWS + 1) * DOT_ROWS;
	float y[DOT_ROWS * DOT_COLS];
	for (int64_t from = 0; from < j->x.count; from += block)
		for (int64_t n = item * j->cols, cols; n < end; n += cols) {
			cols = j->x.count > 1 && end - n >= DOT_COLS ? DOT_COLS : 1;
			for (int64_t m = from; m < from + block && m < j->x.count; m += DOT_ROWS) {
				const int64_t rows = rows_of_group(j, m);
				dots_of[rows - 1][j->format == BF16][cols > 1](
					j->k, j->f32 + m * whole_vectors(j->k), j->w + n * j->step,
					j->step, y);
				for (int64_t r = 0; r < rows; r++)
					put(j, m + r, n, cols, y + r * DOT_COLS);
			}
		}
}

// Rows of w per work item. Items of consecutive rows are as large as there is work for many
// threads, because prefetching ends with an item.
static int64_t cols_of_item(int64_t n, int64_t row_bytes)
{
	int64_t bytes = n * row_bytes / ITEMS;
	if (bytes < MIN_ITEM)
		bytes = MIN_ITEM;
	if (bytes > MAX_ITEM)
		bytes = MAX_ITEM;
	return (bytes / row_bytes + STRIP) / STRIP * STRIP;
}

static void place(struct job *j, char *memory)
{
	const int64_t m = j->x.count, groups = j->k / GROUP;
	if (is_plain(j->format)) {
		j->f32 = (float *)memory;
		return;
	}
	char *scale = memory + padded(m * j->k * 2);
	const uint64_t step = padded(m * groups * 4);
	j->a = (struct activations){ (const int16_t *)memory,
				     (const int8_t *)memory,
				     (const float *)scale,
				     (const float *)(scale + step),
				     (const int32_t *)(scale + 2 * step),
				     (const int32_t *)(scale + 3 * step),
				     j->k,
				     groups };
}

// The most rows that are multiplied with w as it is read.
static int64_t max_few(const struct job *j)
{
#ifdef YK_DOT
	if (!is_words(j->way)) // faster than tiles of 16-bit integers
		return INT64_MAX;
#endif
	return is_words(j->way) ? SEVERAL : FEW;
}

int QLINEAR_RUN(const struct yoke_op *op, const struct qlinear_many *many)
{
	struct job j = { .op = op,
			 .x = rows_of(&op->in[0]),
			 .y = rows_of(&op->out[0]),
			 .w = yk_ptr(&op->in[1]),
			 .n = op->in[1].dims[0],
			 .k = op->attr[1].i,
			 .step = op->in[1].strides[0],
			 .format = (int)op->attr[0].i,
			 .many = many };
	if (!yk_elements(&op->out[0]))
		return 0;
	const bool plain = is_plain(j.format);
	j.way = yk_int8_activations ? way_of_bytes() : way_of_words();
	j.few = j.x.count <= max_few(&j);
	place(&j, yk_ptr(&op->workspace));
	if (j.x.count == 1)
		prepare_row(&j, 0);
	else
		yk_team_run(j.x.count, prepare_row, &j);
	j.cols = cols_of_item(j.n, op->in[1].dims[1]);
	j.col_items = j.few || plain ? items_of(j.n, j.cols) : items_of(j.n, COLS);
	if (!atomic_load(&j.no_memory)) {
		if (plain)
			yk_team_run(j.col_items, plain_rows, &j);
		else if (j.few)
			yk_team_run(j.col_items, few_rows, &j);
		else
			yk_team_run(j.col_items * items_of(j.x.count, ROWS), many_rows, &j);
	}
	return atomic_load(&j.no_memory) ?
		       yk_cpu_fail(YOKE_ENOMEM, "qlinear: no memory for a work item") :
		       0;
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	(void)impl, (void)prepared;
#if defined HAVE_ARM_DOT && !defined YK_DOT
	if (yk_arm_dot)
		return yk_qlinear_dot.run(op, impl, prepared);
#endif
	return QLINEAR_RUN(op, &words);
}

const struct yk_kernel QLINEAR_KERNEL = { .can = can,
					   .workspace = workspace,
					   .run = run,
					   .impl = { [BLOCKS] = "blocks", [INT8] = "int8" } };
