// SPDX-License-Identifier: Apache-2.0
// SPARSE, SPARSE_X and SPARSE_W: a sparse matrix and a tensor along an axis.  Work is divided over
// the leading axes and over rows of the result, or, for SPARSE_X, over ranges of its axis, so that
// each result has one owner that sums in the order of the entries.
#include "config.h"

#include <limits.h>
#include <math.h>

#include "kern_gather.h"
#include "sparse_lanes.h"
#include "../vector/vec.h"

enum {
	PER_ITEM = 1 << 14, // elements of a work item
	RANGES = 16,        // max ranges of SPARSE_X along its axis
	LONG = 16,          // min elements after the axis for which it is divided
	CHANNELS = 8,       // leading indices that read an entry together
	TAPS = 4,           // entries that they read at a time
	TRANSPOSED = 8      // min entries of a work item per column that it transposes
};

struct job {
	const struct yoke_view *x, *y; // y: with the matrix's rows; x: with its columns
	const struct yoke_view *idx, *w, *first;
	const struct yoke_view *to;    // SPARSE_W: its result
	// taps: entries per row, without first
	int64_t groups, before, columns, rows, after, entries, taps;
	bool shared; // one matrix for all groups
	bool max, skips; // skips: some entries are left out
	int64_t blocks, each; // per leading index: work items, and rows or columns of each
	int64_t together;     // leading indices per work item
	int lanes;            // vectors of them, by sparse_lanes; 0: by other means
};

static bool is_kind(const struct yoke_view *v, int dtype, int rank)
{
	return v->kind == YOKE_VIEW_BUFFER && v->dtype == dtype && v->rank == rank;
}

static bool dense_pairs(const struct yoke_view *v)
{
	return v->kind == YOKE_VIEW_BUFFER && v->rank == 2 && dense_from(v, 0);
}

static bool job_init(struct job *j, const struct yoke_op *op)
{
	const uint32_t at = op->code == YOKE_OP_SPARSE_W ? 2 : 1;
	if (op->nin != 4 || op->nout != 1)
		return false;
	*j = (struct job){
		.idx = &op->in[at], .w = &op->in[2], .first = &op->in[3], .to = &op->out[0]
	};
	switch (op->code) {
	case YOKE_OP_SPARSE: j->x = &op->in[0], j->y = &op->out[0]; break;
	case YOKE_OP_SPARSE_X: j->x = &op->out[0], j->y = &op->in[0]; break;
	default: j->x = &op->in[0], j->y = &op->in[1], j->w = NULL;
	}
	const int dtype = j->x->dtype;
	if ((dtype != yoke_f32 && dtype != yoke_f64) || !is_kind(j->x, dtype, 4) ||
	    !is_kind(j->y, dtype, 4) || !is_index(j->idx) || !dense_pairs(j->idx) ||
	    (op->code == YOKE_OP_SPARSE_W && (j->to->dtype != dtype || !dense_pairs(j->to))))
		return false;
	if (j->w && j->w->kind == YOKE_VIEW_NONE)
		j->w = NULL;
	if (j->w && (j->w->dtype != dtype || !dense_pairs(j->w)))
		return false;
	if (j->first->kind == YOKE_VIEW_NONE)
		j->first = NULL;
	if (j->first && (j->first->kind != YOKE_VIEW_BUFFER || j->first->dtype != yoke_i64 ||
			 j->first->rank != 1 || !dense_from(j->first, 0)))
		return false;
	j->groups = j->x->dims[0];
	j->before = j->x->dims[1];
	j->columns = j->x->dims[2];
	j->after = j->x->dims[3];
	j->rows = j->y->dims[2];
	j->entries = j->idx->dims[1];
	j->shared = j->idx->dims[0] == 1;
	j->max = op->code == YOKE_OP_SPARSE && op->attr[1].i;
	j->taps = j->first || !j->rows ? 0 : j->entries / j->rows;
	return true;
}

static uint64_t can(const struct yoke_op *op)
{
	struct job j;
	return job_init(&j, op);
}

static int64_t begin_of(const struct job *j, int64_t row)
{
	return j->first ? ((const int64_t *)yk_ptr(j->first))[row] : row * j->taps;
}

// Checks all indices, and that the rows do not overlap.
static int check(struct job *j)
{
	const int64_t n = j->idx->dims[0] * j->entries;
	int64_t bad = -1;
	if (j->idx->dtype == yoke_i32) {
		const int32_t *idx = yk_ptr(j->idx);
		const uint32_t limit =
			j->columns < INT32_MAX ? (uint32_t)j->columns + 1 : (uint32_t)INT32_MAX + 1;
		uint32_t wrong = 0, all = 0;
		for (int64_t i = 0; i < n; i++) {
			wrong |= (uint32_t)idx[i] + 1 >= limit;
			all |= (uint32_t)idx[i];
		}
		j->skips = all >> 31;
		for (int64_t i = 0; wrong && i < n && bad < 0; i++)
			bad = (uint32_t)idx[i] + 1 >= limit ? i : -1;
	} else {
		const int64_t *idx = yk_ptr(j->idx);
		uint64_t wrong = 0, all = 0;
		for (int64_t i = 0; i < n; i++) {
			wrong |= (uint64_t)idx[i] + 1 > (uint64_t)j->columns;
			all |= (uint64_t)idx[i];
		}
		j->skips = all >> 63;
		for (int64_t i = 0; wrong && i < n && bad < 0; i++)
			bad = idx[i] < -1 || idx[i] >= j->columns ? i : -1;
	}
	if (bad >= 0)
		return out_of_range("sparse", j->idx, bad, j->columns);
	for (int64_t i = 0; i < j->rows && j->first; i++)
		if (begin_of(j, i) < 0 || begin_of(j, i) > begin_of(j, i + 1) ||
		    begin_of(j, i + 1) > j->entries)
			return yk_cpu_fail(
				YOKE_ERANGE,
				"sparse: row %lld begins at entry %lld and ends at %lld of %lld",
				(long long)i, (long long)begin_of(j, i),
				(long long)begin_of(j, i + 1), (long long)j->entries);
	return 0;
}

// Rows of results of one element, from `taps` entries each.
#define ROW_SUMS(name, T, I) \
	static inline __attribute__((always_inline)) void name( \
		const T *x, const I *idx, const T *w, int64_t taps, bool skips, T *y, int64_t n) \
	{ \
		for (int64_t i = 0; i < n; i++, idx += taps) { \
			T sum = 0; \
			for (int64_t t = 0; t < taps; t++) { \
				const bool in = !skips || idx[t] >= 0; \
				const T v = x[in ? idx[t] : 0] * (w ? w[i * taps + t] : 1); \
				sum += in ? v : 0; \
			} \
			y[i] = sum; \
		} \
	}

#define KERNELS(name, T, I) \
	ROW_SUMS(name##_row, T, I) \
	typedef T name##_vec __attribute__((vector_size(64))); \
	/* the first elements of the sum of entries m .. end - 1, which stay in `vectors` \
	   registers */ \
	static inline __attribute__((always_inline)) void name##_sum( \
		T *y, const T *x, const I *idx, const T *w, int64_t step, int64_t m, int64_t end, \
		int vectors) \
	{ \
		name##_vec sum[4] = { 0 }; \
		for (; m < end; m++) { \
			const T *from = x + (int64_t)idx[m] * step, by = w ? w[m] : 1; \
			if (idx[m] < 0) \
				continue; \
			for (int k = 0; k < vectors; k++) { \
				name##_vec v; \
				memcpy(&v, from + k * (int)(sizeof v / sizeof(T)), sizeof v); \
				sum[k] += by * v; \
			} \
		} \
		memcpy(y, sum, (size_t)vectors * sizeof *sum); \
	} \
	static void name##_row_of(T *y, const T *x, const I *idx, const T *w, int64_t step, \
				  int64_t m, int64_t end, int64_t n) \
	{ \
		enum { LANES = 64 / sizeof(T) }; \
		int64_t c = 0; \
		for (; c + 4 * LANES <= n; c += 4 * LANES) \
			name##_sum(y + c, x + c, idx, w, step, m, end, 4); \
		for (; c + LANES <= n; c += LANES) \
			name##_sum(y + c, x + c, idx, w, step, m, end, 1); \
		for (; c < n; c++) { \
			T sum = 0; \
			for (int64_t k = m; k < end; k++) \
				sum += idx[k] < 0 ? 0 : \
				       (w ? w[k] : 1) * x[(int64_t)idx[k] * step + c]; \
			y[c] = sum; \
		} \
	} \
	/* adds entries m .. m + taps - 1 of a row to the sums of CHANNELS leading indices xs \
	   apart; columns are step apart */ \
	static inline __attribute__((always_inline)) void name##_taps( \
		T *sum, const T *x, const I *idx, const T *w, int64_t xs, int64_t step, \
		int64_t m, int taps) \
	{ \
		const T *from[TAPS]; \
		T by[TAPS]; \
		for (int t = 0; t < taps; t++) { \
			from[t] = x + (int64_t)idx[m + t] * step; \
			by[t] = w ? w[m + t] : 1; \
		} \
		for (int64_t c = 0; c < CHANNELS; c++) { \
			T v = sum[c]; \
			for (int t = 0; t < taps; t++) \
				v += by[t] * from[t][c * xs]; \
			sum[c] = v; \
		} \
	} \
	/* rows i .. end - 1 of one element each, for CHANNELS leading indices xs and ys apart */ \
	static void name##_channels(const struct job *j, const T *x, const I *idx, const T *w, \
				    T *y, int64_t i, int64_t end) \
	{ \
		const int64_t xs = j->x->strides[1], ys = j->y->strides[1], \
			      step = j->x->strides[2], to = j->y->strides[2]; \
		for (; i < end; i++) { \
			const int64_t last = (i + 1) * j->taps; \
			T sum[CHANNELS] = { 0 }; \
			for (int64_t m = i * j->taps; m < last;) { \
				/* below 0: fewer than TAPS are left, or one of them is skipped */ \
				I signs = m + TAPS <= last ? 0 : -1; \
				for (int t = 0; t < TAPS && signs >= 0; t++) \
					signs |= idx[m + t]; \
				if (signs >= 0) { \
					name##_taps(sum, x, idx, w, xs, step, m, TAPS); \
					m += TAPS; \
					continue; \
				} \
				if (idx[m] >= 0) \
					name##_taps(sum, x, idx, w, xs, step, m, 1); \
				m++; \
			} \
			for (int c = 0; c < CHANNELS; c++) \
				y[i * to + c * ys] = sum[c]; \
		} \
	} \
	static void name##_sums(const struct job *j, const T *x, const I *idx, const T *w, T *y, \
				int64_t i, int64_t end) \
	{ \
		const int64_t step = j->x->strides[2], to = j->y->strides[2], \
			      xs = j->x->strides[3], ys = j->y->strides[3]; \
		if (j->after == 1 && j->columns && !j->max && j->taps && (w || j->taps == 1) && \
		    step == 1 && to == 1) { \
			idx += i * j->taps; \
			w = w ? w + i * j->taps : w; \
			if (!w && j->skips) \
				name##_row(x, idx, NULL, 1, true, y + i, end - i); \
			else if (!w) \
				name##_row(x, idx, NULL, 1, false, y + i, end - i); \
			else if (j->skips && j->taps == 4) \
				name##_row(x, idx, w, 4, true, y + i, end - i); \
			else if (j->skips) \
				name##_row(x, idx, w, j->taps, true, y + i, end - i); \
			else if (j->taps == 2) \
				name##_row(x, idx, w, 2, false, y + i, end - i); \
			else if (j->taps == 4) \
				name##_row(x, idx, w, 4, false, y + i, end - i); \
			else \
				name##_row(x, idx, w, j->taps, false, y + i, end - i); \
			return; \
		} \
		for (; i < end; i++) { \
			T *row = y + i * to; \
			const int64_t last = begin_of(j, i + 1); \
			int64_t m = begin_of(j, i); \
			const bool dense = xs == 1 && ys == 1 && !j->max; \
			if (dense && !w && m + 1 == last && idx[m] >= 0) { \
				vf_copy(row, x + (int64_t)idx[m] * step, \
					(size_t)j->after * sizeof(T)); \
				continue; \
			} \
			if (dense) { \
				name##_row_of(row, x, idx, w, step, m, last, j->after); \
				continue; \
			} \
			for (int64_t r = 0; r < j->after; r++) \
				row[r * ys] = j->max ? (T)-INFINITY : (T)0; \
			for (; m < last; m++) { \
				const T *from = x + (int64_t)idx[m] * step; \
				const T by = w ? w[m] : 1; \
				if (idx[m] < 0) \
					continue; \
				if (j->max) \
					for (int64_t r = 0; r < j->after; r++) { \
						const T v = from[r * xs], old = row[r * ys]; \
						row[r * ys] = v > old || v != v ? v : old; \
					} \
				else \
					for (int64_t r = 0; r < j->after; r++) \
						row[r * ys] += by * from[r * xs]; \
			} \
		} \
	} \
	/* adds to columns c .. end - 1 of x */ \
	static void name##_adds(const struct job *j, T *x, const I *idx, const T *w, const T *y, \
				int64_t c, int64_t end) \
	{ \
		const int64_t to = j->x->strides[2], step = j->y->strides[2], \
			      xs = j->x->strides[3], ys = j->y->strides[3]; \
		if (xs == 1 && to == j->after) \
			memset(x + c * to, 0, (size_t)((end - c) * to) * sizeof(T)); \
		for (int64_t i = c; i < end && !(xs == 1 && to == j->after); i++) \
			for (int64_t r = 0; r < j->after; r++) \
				x[i * to + r * xs] = 0; \
		for (int64_t i = 0; i < j->rows; i++) { \
			const T *from = y + i * step; \
			const int64_t last = begin_of(j, i + 1); \
			for (int64_t m = begin_of(j, i); m < last; m++) { \
				const T by = w ? w[m] : 1; \
				T *row = x + (int64_t)idx[m] * to; \
				if (idx[m] < c || idx[m] >= end) \
					continue; \
				if (j->after == 1) \
					*row += by * *from; \
				else if (xs == 1 && ys == 1) \
					for (int64_t r = 0; r < j->after; r++) \
						row[r] += by * from[r]; \
				else \
					for (int64_t r = 0; r < j->after; r++) \
						row[r * xs] += by * from[r * ys]; \
			} \
		} \
	} \
	/* adds one leading index's products to the sums of rows i .. end - 1 */ \
	static void name##_dots(const struct job *j, const T *x, const T *y, const I *idx, T *to, \
				int64_t i, int64_t end) \
	{ \
		const int64_t xn = j->x->strides[2], yn = j->y->strides[2], \
			      xs = j->x->strides[3], ys = j->y->strides[3]; \
		for (; i < end; i++) { \
			const int64_t last = begin_of(j, i + 1); \
			for (int64_t m = begin_of(j, i); m < last; m++) { \
				const T *a = x + (int64_t)idx[m] * xn, *b = y + i * yn; \
				if (idx[m] < 0) \
					continue; \
				T sum = 0; \
				for (int64_t r = 0; r < j->after; r++) \
					sum += a[r * xs] * b[r * ys]; \
				to[m] += sum; \
			} \
		} \
	}
KERNELS(f32_i32, float, int32_t)
KERNELS(f32_i64, float, int64_t)
KERNELS(f64_i32, double, int32_t)
KERNELS(f64_i64, double, int64_t)
#undef KERNELS

// Calls the kernel for the dtypes: fn(T, I, name).
#define EACH_DTYPE(j, fn) \
	if ((j)->x->dtype == yoke_f32 && (j)->idx->dtype == yoke_i32) \
		fn(float, int32_t, f32_i32); \
	else if ((j)->x->dtype == yoke_f32) \
		fn(float, int64_t, f32_i64); \
	else if ((j)->idx->dtype == yoke_i32) \
		fn(double, int32_t, f64_i32); \
	else \
		fn(double, int64_t, f64_i64)

// First element of leading index `lead` (group, then the axes before) of x or y.
static int64_t lead_of(const struct job *j, const struct yoke_view *v, int64_t lead)
{
	return lead / j->before * v->strides[0] + lead % j->before * v->strides[1];
}

static int64_t entries_of(const struct job *j, int64_t group)
{
	return j->shared ? 0 : group * j->entries;
}

static void sum_item(void *arg, int64_t item)
{
	const struct job *j = arg;
	const int64_t i = item % j->blocks * j->each,
		      end = i + j->each < j->rows ? i + j->each : j->rows;
	const int64_t parts = (j->before + j->together - 1) / j->together, part = item / j->blocks;
	const int64_t group = part / parts, first = part % parts * j->together,
		      m = entries_of(j, group);
	const int64_t many = first + j->together < j->before ? j->together : j->before - first,
		      lead = group * j->before + first;
	void *scratch = j->lanes && many == j->lanes * SPARSE_LANES ?
				yk_team_scratch(sparse_lanes_size(j->lanes, j->columns)) :
				NULL;
	if (scratch) {
		const int64_t at = m + i * j->taps;
		const struct sparse_lanes s = {
			.x = (const float *)yk_ptr(j->x) + lead_of(j, j->x, lead),
			.xs = j->x->strides[1],
			.columns = j->columns,
			.idx = (const int32_t *)yk_ptr(j->idx) + at,
			.w = j->w ? (const float *)yk_ptr(j->w) + at : NULL,
			.taps = j->taps,
			.y = (float *)yk_ptr(j->y) + lead_of(j, j->y, lead) + i,
			.ys = j->y->strides[1],
			.rows = end - i,
		};
		if (j->lanes == 1)
			sparse_lanes(&s, 1, scratch);
		else
			sparse_lanes(&s, 2, scratch);
		return;
	}
#define SUMS(T, I, name) \
	do { \
		const I *idx = (const I *)yk_ptr(j->idx) + m; \
		const T *w = j->w ? (const T *)yk_ptr(j->w) + m : NULL; \
		const T *x = (const T *)yk_ptr(j->x) + lead_of(j, j->x, lead); \
		T *y = (T *)yk_ptr(j->y) + lead_of(j, j->y, lead); \
		if (many == CHANNELS) \
			name##_channels(j, x, idx, w, y, i, end); \
		else \
			for (int64_t k = 0; k < many; k++) \
				name##_sums(j, x + k * j->x->strides[1], idx, w, \
					    y + k * j->y->strides[1], i, end); \
	} while (0)
	EACH_DTYPE(j, SUMS);
#undef SUMS
}

static void add_item(void *arg, int64_t item)
{
	const struct job *j = arg;
	const int64_t lead = item / j->blocks, i = item % j->blocks * j->each;
	const int64_t end = i + j->each < j->columns ? i + j->each : j->columns,
		      m = entries_of(j, lead / j->before);
#define ADDS(T, I, name) \
	name##_adds(j, (T *)yk_ptr(j->x) + lead_of(j, j->x, lead), (const I *)yk_ptr(j->idx) + m, \
		    j->w ? (const T *)yk_ptr(j->w) + m : NULL, \
		    (const T *)yk_ptr(j->y) + lead_of(j, j->y, lead), i, end)
	EACH_DTYPE(j, ADDS);
#undef ADDS
}

// All leading indices of a matrix, for some of its rows.
static void dot_item(void *arg, int64_t item)
{
	const struct job *j = arg;
	const int64_t group = item / j->blocks, i = item % j->blocks * j->each;
	const int64_t end = i + j->each < j->rows ? i + j->each : j->rows, m = entries_of(j, group);
	const int64_t leads = (j->shared ? j->groups : 1) * j->before;
	const int64_t begin = begin_of(j, i), last = begin_of(j, end);
#define DOTS(T, I, name) \
	do { \
		T *to = (T *)yk_ptr(j->to) + m; \
		memset(to + begin, 0, (size_t)(last - begin) * sizeof(T)); \
		for (int64_t lead = group * leads; lead < (group + 1) * leads; lead++) \
			name##_dots(j, (const T *)yk_ptr(j->x) + lead_of(j, j->x, lead), \
				    (const T *)yk_ptr(j->y) + lead_of(j, j->y, lead), \
				    (const I *)yk_ptr(j->idx) + m, to, i, end); \
	} while (0)
	EACH_DTYPE(j, DOTS);
#undef DOTS
}

// Vectors of channels for sparse_lanes: f32, and so many entries that transposing the columns pays.
// 0: other means are better.
static int lanes_of(const struct job *j)
{
	if (j->after != 1 || !j->taps || j->max || (!j->w && j->taps > 1) ||
	    j->before < SPARSE_LANES || j->x->dtype != yoke_f32 || j->idx->dtype != yoke_i32 ||
	    j->x->strides[2] != 1 || j->y->strides[2] != 1 || j->columns > SPARSE_COLUMNS ||
	    j->entries < j->columns || j->y->strides[1] > INT_MAX / 4)
		return 0;
	return j->before % SPARSE_CHANNELS || 2 * j->columns > SPARSE_COLUMNS ? 1 : 2;
}

// Divides `n` rows or columns of `size` elements into blocks.
static void divide(struct job *j, int64_t n, int64_t size)
{
	j->each = size < PER_ITEM ? PER_ITEM / (size > 0 ? size : 1) : 1;
	j->blocks = (n + j->each - 1) / j->each;
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job j = { 0 };
	(void)impl, (void)prepared;
	job_init(&j, op);
	const int err = check(&j);
	if (err < 0)
		return err;
	const int64_t leads = j.groups * j.before, mean = j.rows ? j.entries / j.rows + 1 : 1;
	if (op->code == YOKE_OP_SPARSE) {
		j.lanes = lanes_of(&j);
		j.together = 1;
		if (j.lanes)
			j.together = j.lanes * SPARSE_LANES;
		else if (j.after == 1 && j.taps > 1 && !j.max && j.before >= CHANNELS)
			j.together = CHANNELS;
		divide(&j, j.rows, mean * j.after * j.together);
		if (j.lanes && j.each * j.taps < TRANSPOSED * j.columns) {
			j.each = TRANSPOSED * j.columns / j.taps;
			j.blocks = (j.rows + j.each - 1) / j.each;
		}
		yk_team_run(j.groups * ((j.before + j.together - 1) / j.together) * j.blocks,
			    sum_item, &j);
	} else if (op->code == YOKE_OP_SPARSE_X) {
		const bool ranges = j.after >= LONG && leads < RANGES && j.columns >= RANGES;
		j.each = ranges ? (j.columns + RANGES - 1) / RANGES : j.columns;
		j.blocks = j.columns ? (j.columns + j.each - 1) / j.each : 0;
		yk_team_run(leads * j.blocks, add_item, &j);
	} else {
		memset(yk_ptr(j.to), 0,
		       (size_t)(j.idx->dims[0] * j.entries) * yk_esize(j.to->dtype));
		divide(&j, j.rows, mean * j.after * j.before * (j.shared ? j.groups : 1));
		yk_team_run(j.idx->dims[0] * j.blocks, dot_item, &j);
	}
	return 0;
}

YK_KERNEL(sparse, SPARSE, SPARSE_X, SPARSE_W) = { .can = can, .run = run, .impl = { "rows" } };
