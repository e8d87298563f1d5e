// SPDX-License-Identifier: Apache-2.0
// Functions that arrange elements, composed of views, copies and scatters: stack, split, triangles,
// diagonals, roll, repeat, tile, meshgrid, one_hot.
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "graph/handle.h"
#include "graph/record.h"
#include "ops/rules.h"
#include "yoke-math.h"

// ---- joining and dividing ----

yoke_tensor *yoke_stack(int n, yoke_tensor *const *x, int axis)
{
	struct yk_rec r;
	yk_id *in = yk_rec_list(&r, "stack", YK_CONCAT, n, x), y = YK_BAD;
	char a[160], b[160];
	if (!in)
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value v = r.g->value[in[0]];
	const int k = axis < 0 ? axis + v.rank + 1 : axis;
	int64_t dims[YOKE_MAX_RANK];
	bool good = k >= 0 && k <= v.rank && v.rank < YOKE_MAX_RANK;
	if (!good)
		yk_rec_fail(&r, YOKE_ERANGE, "no position %d for an axis in %s", axis,
			    yk_describe(&v, a));
	for (int i = 0; good && i <= v.rank; i++)
		dims[i] = i == k ? 1 : v.dims[i - (i > k)];
	for (int i = 0; good && i < n; i++) {
		const struct yk_value other = r.g->value[in[i]];
		good = yk_same_shape(&other, &v) && other.dtype == v.dtype;
		if (!good)
			yk_rec_fail(&r, other.dtype == v.dtype ? YOKE_ESHAPE : YOKE_EDTYPE,
				    "tensors 0 and %d differ: %s and %s", i, yk_describe(&v, a),
				    yk_describe(&other, b));
		else
			good = (in[i] = yk_reshape(r.g, in[i], v.rank + 1, dims)) != YK_BAD;
	}
	if (good)
		y = yk_record(r.g, YK_CONCAT, (uint32_t)n, in, 1, &(union yoke_attr){ .i = k });
	free(in);
	return yk_rec_end(&r, y);
}

// Slices of an axis, one after the other; sizes NULL: n of them, each but the last `each` elements.
static int slices(struct yk_rec *r, int k, int n, const int64_t *sizes, int64_t each,
		  yoke_tensor **to)
{
	const int64_t all = r->g->value[r->in[0]].dims[k];
	int64_t start = 0;
	for (int i = 0; i < n; i++) {
		const int64_t left = all - start, size = sizes       ? sizes[i] :
							 each < left ? each :
								       left;
		yk_id y = yk_slice_axis(r->g, r->in[0], k, start, size);
		if (y == YK_BAD || !(to[i] = yk_handle_of(r->ctx, y)))
			return yk_error_last();
		start += size;
	}
	return 0;
}

int yoke_split(yoke_tensor *x, int axis, int n, const int64_t *sizes, yoke_tensor **to)
{
	if (yk_require(to, "list of results"))
		return yk_error_last();
	struct yk_rec r = yk_rec_begin(1, &x);
	const int k = yk_rec_axis(&r, r.in[0], axis);
	int err = k < 0 || !yk_rec_array(&r, n, sizes, "sizes") ? yk_error_last() : 0;
	if (!err) {
		const struct yk_value v = r.g->value[r.in[0]];
		int64_t left = v.dims[k];
		char text[160];
		bool good = n >= 1;
		for (int i = 0; i < n && good; i++) {
			good = sizes[i] >= 0 && sizes[i] <= left;
			left -= good ? sizes[i] : 0;
		}
		if (!good || left)
			err = yk_rec_fail(&r, YOKE_ESHAPE,
					  "%d sizes do not add up to axis %d of %s", n, k,
					  yk_describe(&v, text));
		else
			err = slices(&r, k, n, sizes, 0, to);
	}
	yk_rec_end(&r, YK_BAD);
	return yk_results(err, n, to);
}

int yoke_chunk(yoke_tensor *x, int axis, int n, yoke_tensor **to)
{
	if (yk_require(to, "list of results"))
		return yk_error_last();
	struct yk_rec r = yk_rec_begin(1, &x);
	const int k = yk_rec_axis(&r, r.in[0], axis);
	int err = k < 0 ? yk_error_last() : 0, many = 0;
	if (!err && n < 1) {
		err = yk_rec_fail(&r, YOKE_EINVAL, "%d chunks", n);
	} else if (!err) {
		const int64_t all = r.g->value[r.in[0]].dims[k], each = all / n + (all % n != 0);
		many = each ? (int)(all / each + (all % each != 0)) : n;
		err = slices(&r, k, many, NULL, each, to);
	}
	yk_rec_end(&r, YK_BAD);
	for (int i = err ? 0 : many; i < n; i++)
		to[i] = NULL;
	return err ? err : many;
}

int yoke_meshgrid(int n, yoke_tensor *const *x, yoke_tensor **to)
{
	if (yk_require(to, "list of results"))
		return yk_error_last();
	struct yk_rec r;
	yk_id *in = yk_rec_list(&r, "meshgrid", YK_LEAF, n, x);
	int64_t dims[YOKE_MAX_RANK], one[YOKE_MAX_RANK];
	char text[160];
	int err = in ? 0 : yk_error_last();
	if (!err && n > YOKE_MAX_RANK)
		err = yk_rec_fail(&r, YOKE_ESHAPE, "a grid of %d axes; %d are possible", n,
				  YOKE_MAX_RANK);
	for (int i = 0; i < n && !err; i++) {
		const struct yk_value v = r.g->value[in[i]];
		dims[i] = yk_count(&v);
		if (v.rank > 1)
			err = yk_rec_fail(&r, YOKE_ESHAPE, "takes vectors, got %s",
					  yk_describe(&v, text));
	}
	for (int i = 0; i < n && !err; i++) {
		for (int k = 0; k < n; k++)
			one[k] = k == i ? dims[i] : 1;
		yk_id y = yk_broadcast(r.g, yk_reshape(r.g, in[i], n, one), n, dims);
		if (y == YK_BAD || !(to[i] = yk_handle_of(r.ctx, y)))
			err = yk_error_last();
	}
	free(in);
	yk_rec_end(&r, YK_BAD);
	return yk_results(err, n, to);
}

// ---- triangles and diagonals ----

// The last two axes of x, if it has them.
static bool matrices(struct yk_rec *r, int64_t dims[2])
{
	char text[160];
	if (r->in[0] == YK_BAD)
		return false;
	const struct yk_value v = r->g->value[r->in[0]];
	if (v.rank < 2) {
		yk_rec_fail(r, YOKE_ESHAPE, "takes at least two axes, got %s",
			    yk_describe(&v, text));
		return false;
	}
	dims[0] = v.dims[v.rank - 2];
	dims[1] = v.dims[v.rank - 1];
	return true;
}

// Keeps the elements with column - row <= k, or, `above`, >= k.
static yoke_tensor *triangle(const char *call, yoke_tensor *x, int64_t k, bool above)
{
	struct yk_rec r = yk_rec_begin_as(call, YK_LEAF, 0, 1, &x);
	int64_t dims[2];
	if (!matrices(&r, dims))
		return yk_rec_end(&r, YK_BAD);
	const int64_t reach = dims[0] + dims[1];
	// comparisons of i32 take half of the time
	const int dtype = reach < INT32_MAX / 2 ? yoke_i32 : yoke_i64;
	k = k < -reach ? -reach : k > reach ? reach : k;
	yk_id row = yk_reshape(r.g, yk_cast(r.g, yk_counting(r.g, dims[0]), dtype), 2,
			       (int64_t[]){ dims[0], 1 });
	yk_id column = yk_cast(r.g, yk_counting(r.g, dims[1]), dtype);
	yk_id kept =
		yk_bin(r.g, above ? YK_GE : YK_LE, column, yk_bin_lit(r.g, YK_ADD, row, (double)k));
	return yk_rec_end(&r, yk_tri(r.g, YK_SELECT, kept, r.in[0],
				     yk_lit(r.g, r.g->value[r.in[0]].dtype, 0)));
}

yoke_tensor *yoke_tril(yoke_tensor *x, int64_t k)
{
	return triangle("tril", x, k, false);
}

yoke_tensor *yoke_triu(yoke_tensor *x, int64_t k)
{
	return triangle("triu", x, k, true);
}

yk_id yk_diagonal(struct yk_graph *g, yk_id x, int64_t k, int i, int j)
{
	if (x == YK_BAD)
		return x;
	struct yk_value v = g->value[x];
	const int64_t rows = v.dims[i], columns = v.dims[j];
	int64_t start[YOKE_MAX_RANK] = { 0 }, step[YOKE_MAX_RANK];
	int order[YOKE_MAX_RANK], n = 0;
	for (int a = 0; a < v.rank; a++)
		if (a != i && a != j)
			order[n++] = a;
	order[n] = i;
	order[n + 1] = j;
	for (int a = 0; a < n; a++) {
		v.dims[a] = g->value[x].dims[order[a]];
		step[a] = 1;
	}
	const int64_t down = k < 0 ? rows + (k < -rows ? -rows : k) : rows,
		      right = k > 0 ? columns - (k > columns ? columns : k) : columns;
	v.dims[n] = rows * columns;
	if (i != n || j != n + 1)
		x = yk_permute(g, x, order);
	x = yk_reshape(g, x, n + 1, v.dims);
	v.dims[n] = down < right ? down : right;
	step[n] = columns + 1;
	start[n] = !v.dims[n] ? 0 : k < 0 ? -k * columns : k;
	return yk_slice(g, x, start, step, v.dims);
}

yoke_tensor *yoke_diagonal(yoke_tensor *x, int64_t k, int axis1, int axis2)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	const int i = yk_rec_axis(&r, r.in[0], axis1),
		  j = i < 0 ? i : yk_rec_axis(&r, r.in[0], axis2);
	if (i >= 0 && i == j)
		yk_rec_fail(&r, YOKE_EINVAL, "axes %d and %d are one", axis1, axis2);
	return yk_rec_end(&r,
			  i < 0 || j < 0 || i == j ? YK_BAD : yk_diagonal(r.g, r.in[0], k, i, j));
}

yoke_tensor *yoke_diag(yoke_tensor *x, int64_t k)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	char text[160];
	if (r.in[0] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value v = r.g->value[r.in[0]];
	if (v.rank == 2)
		return yk_rec_end(&r, yk_diagonal(r.g, r.in[0], k, 0, 1));
	int64_t side, all;
	if (v.rank != 1 || v.dtype == yoke_bool ||
	    __builtin_add_overflow(v.dims[0], k < 0 ? -k : k, &side) ||
	    __builtin_mul_overflow(side, side, &all)) {
		yk_rec_fail(&r, v.dtype == yoke_bool ? YOKE_EDTYPE : YOKE_ESHAPE,
			    "takes a vector or a matrix of numbers, got %s", yk_describe(&v, text));
		return yk_rec_end(&r, YK_BAD);
	}
	yk_id at = yk_bin_lit(r.g, YK_MUL, yk_counting(r.g, v.dims[0]), (double)(side + 1));
	at = yk_bin_lit(r.g, YK_ADD, at, (double)(k < 0 ? -k * side : k));
	yk_id y = yk_record(r.g, YK_SCATTER_ADD, 3, (yk_id[]){ YK_NIL, at, r.in[0] }, 1,
			    &(union yoke_attr){ .i = all });
	return yk_rec_end(&r, yk_reshape(r.g, y, 2, (int64_t[]){ side, side }));
}

yoke_tensor *yoke_one_hot(yoke_tensor *ids, int64_t classes, int dtype)
{
	struct yk_rec r = yk_rec_begin(1, &ids);
	char text[160];
	if (r.in[0] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	struct yk_value v = r.g->value[r.in[0]];
	const int64_t n = yk_count(&v);
	int64_t all;
	if ((v.dtype != yoke_i32 && v.dtype != yoke_i64) || !yoke_dtype_size(dtype) ||
	    classes < 0 || v.rank == YOKE_MAX_RANK || __builtin_mul_overflow(n, classes, &all)) {
		yk_rec_fail(
			&r, classes < 0 || v.rank == YOKE_MAX_RANK ? YOKE_ESHAPE : YOKE_EDTYPE,
			"takes ids of i32 or i64 and a dtype, got %lld classes, dtype %d and %s",
			(long long)classes, dtype, yk_describe(&v, text));
		return yk_rec_end(&r, YK_BAD);
	}
	const int number = dtype == yoke_bool ? yoke_u8 : dtype;
	yk_id id = yk_reshape(r.g, yk_cast(r.g, r.in[0], yoke_i64), 1, &n),
	      zero = yk_lit(r.g, yoke_i64, 0);
	yk_id at = yk_bin(r.g, YK_ADD,
			  yk_bin_lit(r.g, YK_MUL, yk_counting(r.g, n), (double)classes), id);
	yk_id good = yk_bin(r.g, YK_AND, yk_bin_lit(r.g, YK_GE, id, 0),
			    yk_bin_lit(r.g, YK_LT, id, (double)classes));
	yk_id in[] = { YK_NIL, yk_tri(r.g, YK_SELECT, good, at, zero), yk_cast(r.g, good, number) };
	yk_id y = all ? yk_record(r.g, YK_SCATTER_ADD, 3, in, 1, &(union yoke_attr){ .i = all }) :
			yk_broadcast(r.g, yk_lit(r.g, number, 0), 1, &all);
	y = number == dtype ? y : yk_bin_lit(r.g, YK_NE, y, 0);
	v.dims[v.rank] = classes;
	return yk_rec_end(&r, yk_reshape(r.g, y, v.rank + 1, v.dims));
}

// ---- moving and repeating ----

// The elements along axis k from `from` on, then those before; all further axes likewise.
static yk_id rolled(struct yk_graph *g, yk_id x, int k, const union yoke_attr *from)
{
	if (x == YK_BAD || k == g->value[x].rank)
		return x;
	const int64_t n = g->value[x].dims[k], start = from[k].i;
	if (!start)
		return rolled(g, x, k + 1, from);
	yk_id part[] = { yk_slice_axis(g, x, k, start, n - start),
			 yk_slice_axis(g, x, k, 0, start) };
	for (int i = 0; i < 2; i++)
		part[i] = rolled(g, part[i], k + 1, from);
	return yk_record(g, YK_CONCAT, 2, part, 1, &(union yoke_attr){ .i = k });
}

// attr: for each axis the element that becomes the first
static void decompose_roll(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	out[0] = rolled(g, c->in[0], 0, c->attr);
}

static void grad_roll(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct yk_node_copy n = yk_node_copy(g, node);
	const struct yk_value v = g->value[n.y];
	for (int i = 0; i < v.rank; i++) // back
		n.attr[i].i = n.attr[i].i ? v.dims[i] - n.attr[i].i : 0;
	gin[0] = yk_record(g, YK_ROLL, 1, gout, v.rank, n.attr);
}

YK_OP(ROLL) = { .name = "roll",
		.min_in = 1,
		.max_in = 1,
		.nout = 1,
		.shape = yk_shape_same,
		.grad = grad_roll,
		.decompose = decompose_roll };

// Records a roll by shift[i] along each axis.
static yk_id roll(struct yk_graph *g, yk_id x, const int64_t *shift)
{
	const struct yk_value v = g->value[x];
	union yoke_attr from[YOKE_MAX_RANK] = { 0 };
	bool moves = false;
	for (int i = 0; i < v.rank; i++) {
		const int64_t n = v.dims[i], by = n ? shift[i] % n : 0;
		from[i].i = by > 0 ? n - by : -by;
		moves = moves || from[i].i;
	}
	return moves ? yk_record(g, YK_ROLL, 1, &x, v.rank, from) : x;
}

yoke_tensor *yoke_roll(yoke_tensor *x, int64_t shift, int axis)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	const int k = yk_rec_axis(&r, r.in[0], axis);
	int64_t by[YOKE_MAX_RANK] = { 0 };
	if (k < 0)
		return yk_rec_end(&r, YK_BAD);
	by[k] = shift;
	return yk_rec_end(&r, roll(r.g, r.in[0], by));
}

yoke_tensor *yoke_roll_axes(yoke_tensor *x, int rank, const int64_t *shifts)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	char text[160];
	if (r.in[0] == YK_BAD || !yk_rec_array(&r, rank, shifts, "shifts"))
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value v = r.g->value[r.in[0]];
	if (rank != v.rank) {
		yk_rec_fail(&r, YOKE_ESHAPE, "%d shifts for the axes of %s", rank,
			    yk_describe(&v, text));
		return yk_rec_end(&r, YK_BAD);
	}
	return yk_rec_end(&r, roll(r.g, r.in[0], shifts));
}

yoke_tensor *yoke_repeat(yoke_tensor *x, int64_t n, int axis)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	const int k = yk_rec_axis(&r, r.in[0], axis);
	char text[160];
	if (k < 0)
		return yk_rec_end(&r, YK_BAD);
	struct yk_value v = r.g->value[r.in[0]], wide = v;
	const int64_t size = v.dims[k];
	if (n < 0 || v.rank == YOKE_MAX_RANK || __builtin_mul_overflow(size, n, &v.dims[k])) {
		yk_rec_fail(&r, YOKE_ESHAPE, "%lld times axis %d of %s", (long long)n, k,
			    yk_describe(&wide, text));
		return yk_rec_end(&r, YK_BAD);
	}
	for (int i = wide.rank; i > k + 1; i--)
		wide.dims[i] = wide.dims[i - 1];
	wide.dims[k + 1] = 1;
	yk_id y = yk_reshape(r.g, r.in[0], wide.rank + 1, wide.dims);
	wide.dims[k + 1] = n;
	return yk_rec_end(&r, yk_reshape(r.g, yk_broadcast(r.g, y, wide.rank + 1, wide.dims),
					 v.rank, v.dims));
}

yoke_tensor *yoke_repeat_each(yoke_tensor *x, yoke_tensor *counts, int64_t total, int axis)
{
	struct yk_rec r = yk_rec_begin(2, (yoke_tensor *[]){ x, counts });
	const int k = yk_rec_axis(&r, r.in[0], axis);
	char a[160], b[160];
	if (k < 0 || r.in[1] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value v = r.g->value[r.in[0]], c = r.g->value[r.in[1]];
	if (c.rank != 1 || c.dims[0] != v.dims[k] || (c.dtype != yoke_i32 && c.dtype != yoke_i64) ||
	    total < 0 || (total && !c.dims[0])) {
		yk_rec_fail(
			&r, YOKE_ESHAPE,
			"takes i32 or i64 counts, one for each element of axis %d, got %s and %s for %lld elements",
			k, yk_describe(&v, a), yk_describe(&c, b), (long long)total);
		return yk_rec_end(&r, YK_BAD);
	}
	// the elements that have ended before each position, by a mark at each end
	const union yoke_attr along[] = { { .i = 0 }, { .i = YOKE_REDUCE_SUM }, { .i = 0 } };
	yk_id wide = yk_bin_lit(r.g, YK_MAX, yk_cast(r.g, r.in[1], yoke_i64), 0);
	yk_id end = yk_bin_lit(r.g, YK_MIN, yk_record(r.g, YK_CUMSUM, 1, &wide, 3, along),
			       (double)total);
	yk_id one = yk_broadcast(r.g, yk_lit(r.g, yoke_i64, 1), 1, c.dims);
	yk_id mark = yk_record(r.g, YK_SCATTER_ADD, 3, (yk_id[]){ YK_NIL, end, one }, 1,
			       &(union yoke_attr){ .i = total + 1 });
	mark = yk_slice_axis(r.g, mark, 0, 0, total);
	yk_id from = yk_bin_lit(r.g, YK_MIN, yk_record(r.g, YK_CUMSUM, 1, &mark, 3, along),
				(double)(c.dims[0] - 1));
	return yk_rec_end(&r, yk_record(r.g, YK_GATHER, 2, (yk_id[]){ r.in[0], from }, 1,
					&(union yoke_attr){ .i = k }));
}

// Each axis of x gets one for its repetitions before it; to: the dims of x, then those of the
// result.
static yk_id tiled(struct yk_graph *g, yk_id x, struct yk_value *to, const int64_t *times)
{
	int64_t one[2 * YOKE_MAX_RANK], many[2 * YOKE_MAX_RANK];
	int n = 0;
	for (int i = 0; i < to->rank; i++) {
		if (times[i] != 1) {
			one[n] = 1;
			many[n++] = times[i];
		}
		one[n] = many[n] = to->dims[i];
		n++;
		to->dims[i] *= times[i];
	}
	x = yk_reshape(g, x, n, one);
	return yk_reshape(g, yk_broadcast(g, x, n, many), to->rank, to->dims);
}

yoke_tensor *yoke_tile(yoke_tensor *x, int rank, const int64_t *times)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	char text[160];
	if (r.in[0] == YK_BAD || !yk_rec_array(&r, rank, times, "times"))
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value v = r.g->value[r.in[0]];
	struct yk_value to = { .dtype = v.dtype, .rank = (uint8_t)(rank > v.rank ? rank : v.rank) };
	int64_t all[YOKE_MAX_RANK], ignored;
	int repeated = 0;
	bool good = rank >= 0 && rank <= YOKE_MAX_RANK;
	for (int i = 0; good && i < to.rank; i++) {
		const int k = i - (to.rank - v.rank), t = i - (to.rank - rank);
		to.dims[i] = k < 0 ? 1 : v.dims[k];
		all[i] = t < 0 ? 1 : times[t];
		repeated += all[i] != 1;
		good = all[i] >= 0 && !__builtin_mul_overflow(to.dims[i], all[i], &ignored);
	}
	if (!good) {
		yk_rec_fail(&r, YOKE_ESHAPE, "%d numbers of times are negative or too many for %s",
			    rank, yk_describe(&v, text));
		return yk_rec_end(&r, YK_BAD);
	}
	yk_id y = yk_reshape(r.g, r.in[0], to.rank, to.dims);
	if (to.rank + repeated <= YOKE_MAX_RANK)
		return yk_rec_end(&r, tiled(r.g, y, &to, all));
	// one axis after the other, the axes before and after it merged
	for (int i = to.rank - 1; i >= 0; i--) {
		struct yk_value flat = { .dtype = v.dtype, .rank = 3, .dims = { 1, 1, 1 } };
		for (int k = 0; k < to.rank; k++)
			flat.dims[k < i ? 0 : k == i ? 1 : 2] *= to.dims[k];
		to.dims[i] *= all[i];
		y = yk_reshape(r.g, y, 3, flat.dims);
		y = yk_reshape(r.g, tiled(r.g, y, &flat, (int64_t[]){ 1, all[i], 1 }), to.rank,
			       to.dims);
	}
	return yk_rec_end(&r, y);
}
