// SPDX-License-Identifier: Apache-2.0
// Tests every op that scans, sorts, selects or moves elements along an axis, in every dtype and
// layout, against loops over indices; also long rows, which kernels split.
#include "config.h"

#include "rows.h"

static struct arr a, b, idx, want;
static char text[120];

static const char *say(const char *op, int layout, int axis)
{
	snprintf(text, sizeof text, "%s %s along %d, %s", op, yoke_dtype_name(a.dtype),
		 axis, layout_name[layout]);
	return text;
}

// ---- running totals ----

static void scan_reference(int axis, bool prod, bool reverse)
{
	int64_t ix[YOKE_MAX_RANK] = { 0 }, at[YOKE_MAX_RANK];
	set_dims(&want, a.dtype, a.rank, a.dims);
	for (int64_t k = 0; k < want.n; k++, next_index(a.rank, a.dims, ix)) {
		long double total = prod;
		__int128 whole = prod;
		memcpy(at, ix, sizeof at);
		int64_t first = reverse ? ix[axis] : 0,
			end = reverse ? a.dims[axis] : ix[axis] + 1;
		for (int64_t i = first; i < end; i++) {
			at[axis] = i;
			struct value v = a.v[number_of(&a, at)];
			total = prod ? total * v.r : total + v.r;
			whole = yk_num_wrap((uint64_t)(prod ? whole * v.i : whole + v.i), a.dtype);
		}
		want.v[k] = (struct value){ round_real(a.dtype, total), (int64_t)whole };
	}
}

static void scans(int d)
{
	bool good = true;
	for (int layout = 0; layout < LAYOUTS; layout++)
		for (int kind = 0; kind < 4; kind++) {
			bool prod = kind & 1, reverse = kind & 2;
			make(&a, d, layout, prod ? 1.7 : 9, !is_real(d));
			if (is_real(d) && a.n > 2 && layout % 2) {
				a.v[rnd_int(0, a.n - 1)].r = NAN;
				a.v[rnd_int(0, a.n - 1)].r = -INFINITY;
				lay_plain(&a);
			}
			for (int axis = 0; axis < a.rank; axis++) {
				// sums of f64 are in f64, all others in a wider type
				struct bound bound = { 1.01 * unit_of(d) *
							       (d == yoke_f64 ? 16 : 1),
						       d == yoke_f64 ? 1e-14 : 0, true };
				if (d == yoke_f32)
					bound.absolute = 1e-14;
				scan_reference(axis, prod, reverse);
				yoke_tensor *y =
					prod ? yoke_cumprod(view_of(&a), axis - a.rank,
							    reverse) :
					       yoke_cumsum(view_of(&a), axis, reverse);
				good = same(y, &want, bound, say("scan", layout, axis)) &&
				       good;
			}
		}
	ok(good, "cumsum, cumprod %s", yoke_dtype_name(d));
}

// A few long lines are split; integers in f64 are exact in any order.
static void long_scan(int64_t rows, int64_t n, int axis, int dtype)
{
	int64_t dims[2] = { axis ? rows : n, axis ? n : rows }, bad = -1;
	size_t count = (size_t)(rows * n);
	double *x = malloc(count * sizeof *x), *y = malloc(count * sizeof *y);
	for (size_t i = 0; i < count; i++)
		x[i] = (double)rnd_int(-50, 50), y[i] = NAN;
	for (int reverse = 0; reverse < 2; reverse++) {
		yoke_tensor *t = yoke_cast(yoke_from(yoke_f64, 2, dims, x), dtype);
		t = yoke_cast(yoke_cumsum(t, axis, reverse), yoke_f64);
		yoke_read(t, y, count * sizeof *y);
		for (int64_t r = 0; r < rows; r++) {
			double sum = 0;
			for (int64_t i = 0; i < n; i++) {
				int64_t at = reverse ? n - 1 - i : i;
				size_t k = (size_t)(axis ? r * n + at : at * rows + r);
				sum += x[k];
				if (y[k] != (dtype == yoke_i8 ?
						     (double)(int8_t)(int64_t)sum :
						     sum))
					bad = bad < 0 ? (int64_t)k : bad;
			}
		}
	}
	ok(bad < 0, "cumsum of %lld lines of %lld %s, axis %d: first wrong %lld %s",
	   (long long)rows, (long long)n, yoke_dtype_name(dtype), axis, (long long)bad,
	   yoke_error());
	free(x);
	free(y);
}

// ---- sorting ----

static bool is_nan(const struct value *v)
{
	return is_real(a.dtype) && isnan(v->r);
}

static bool before(const struct value *x, const struct value *y, bool descending)
{
	if (is_nan(x) || is_nan(y))
		return !is_nan(x) && is_nan(y);
	if (is_real(a.dtype))
		return descending ? x->r > y->r : x->r < y->r;
	return descending ? x->i > y->i : x->i < y->i;
}

static struct arr places;

// Insertion sort of each line, from its first element on: stable.
static void sort_reference(int axis, int64_t k, bool descending)
{
	int64_t dims[YOKE_MAX_RANK], ix[YOKE_MAX_RANK] = { 0 }, at[YOKE_MAX_RANK];
	memcpy(dims, a.dims, sizeof dims);
	dims[axis] = k;
	set_dims(&want, a.dtype, a.rank, dims);
	set_dims(&places, yoke_i64, a.rank, dims);
	dims[axis] = 1;
	if (!want.n)
		return;
	do {
		int64_t order[ELEMENTS];
		memcpy(at, ix, sizeof at);
		for (int64_t i = 0; i < a.dims[axis]; i++) {
			at[axis] = i;
			const struct value *v = &a.v[number_of(&a, at)];
			int64_t n = i;
			for (; n > 0; n--) {
				at[axis] = order[n - 1];
				if (!before(v, &a.v[number_of(&a, at)], descending))
					break;
				order[n] = order[n - 1];
			}
			order[n] = i;
		}
		for (int64_t i = 0; i < k; i++) {
			at[axis] = order[i];
			struct value v = a.v[number_of(&a, at)];
			at[axis] = i;
			want.v[number_of(&want, at)] = v;
			places.v[number_of(&places, at)].i = order[i];
		}
	} while (next_index(a.rank, dims, ix));
}

static void sorts(int d)
{
	bool good = true;
	for (int layout = 0; layout < LAYOUTS; layout++)
		for (int down = 0; down < 2; down++) {
			make(&a, d, layout, 3, down);
			for (int axis = 0; axis < a.rank; axis++) {
				yoke_tensor *i,
					*y = yoke_sort(view_of(&a), axis, down, &i);
				sort_reference(axis, a.dims[axis], down);
				yoke_eval(2, (yoke_tensor *[]){ y, i });
				good = same(y, &want, exact, say("sort", layout, axis)) &&
				       good;
				good = same(i, &places, exact,
					    say("order", layout, axis)) &&
				       good;
				int64_t k = rnd_int(0, a.dims[axis]);
				y = yoke_topk(view_of(&a), k, axis - a.rank, down, NULL);
				sort_reference(axis, k, down);
				good = same(y, &want, exact, say("topk", layout, axis)) &&
				       good;
				yoke_topk(view_of(&a), k, axis, down, &i);
				good = same(i, &places, exact,
					    say("topk places", layout, axis)) &&
				       good;
			}
		}
	ok(good, "sort, topk %s", yoke_dtype_name(d));
}

// Rows around the sizes at which the kernel changes its method, with many equal elements.
static void long_sorts(int d)
{
	static const int64_t sizes[] = { 2, 31, 32, 33, 63, 255, 256, 257, 511 };
	bool good = true;
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
		for (int t = 0; t < 8; t++) {
			int64_t n = sizes[s],
				k = t < 2 ? n : rnd_int(0, t < 6 ? n / 6 : n);
			set_dims(&a, d, 1, &n);
			for (int64_t i = 0; i < n; i++)
				a.v[i] = any_value(d, t & 1 ? 4 : 1e4, t & 2);
			lay_plain(&a);
			yoke_tensor *i, *y = yoke_topk(view_of(&a), k, 0, t & 1, &i);
			sort_reference(0, k, t & 1);
			yoke_eval(2, (yoke_tensor *[]){ y, i });
			good = same(y, &want, exact, say("topk", PLAIN, 0)) && good;
			good = same(i, &places, exact, say("places", PLAIN, 0)) && good;
		}
	ok(good, "long rows sorted, %s", yoke_dtype_name(d));
}

// ---- picking and adding along an axis ----

// Indices like a, but for `size` elements along the axis.
static void make_index(int axis, int64_t size, int layout)
{
	int64_t dims[YOKE_MAX_RANK];
	int dtype = layout % 2 ? yoke_i32 : yoke_i64;
	memcpy(dims, a.dims, sizeof dims);
	dims[axis] = size;
	set_dims(&idx, dtype, a.rank, dims);
	for (int64_t i = 0; i < idx.n; i++)
		idx.v[i].i = rnd_int(0, a.dims[axis] - 1);
	lay_plain(&idx);
}

static void alongs(int d)
{
	bool good = true;
	for (int layout = 0; layout < LAYOUTS; layout++) {
		make(&a, d, layout, 5, true);
		for (int axis = 0; axis < a.rank; axis++) {
			int64_t ix[YOKE_MAX_RANK] = { 0 }, at[YOKE_MAX_RANK];
			make_index(axis, a.dims[axis] ? rnd_int(0, 4) : 0, layout);
			set_dims(&want, d, a.rank, idx.dims);
			for (int64_t k = 0; k < want.n;
			     k++, next_index(a.rank, idx.dims, ix)) {
				memcpy(at, ix, sizeof at);
				at[axis] = idx.v[k].i;
				want.v[k] = a.v[number_of(&a, at)];
			}
			yoke_tensor *y = yoke_take_along(view_of(&a), view_of(&idx),
							 axis - a.rank);
			good = same(y, &want, exact, say("take_along", layout, axis)) &&
			       good;
		}
	}
	ok(good, "take_along %s", yoke_dtype_name(d));
}

static void adds(int d)
{
	bool good = true;
	for (int layout = 0; layout < LAYOUTS; layout++) {
		make(&a, d, layout, 5, !is_real(d));
		for (int axis = 0; axis < a.rank; axis++) {
			static long double sum[ELEMENTS];
			int64_t ix[YOKE_MAX_RANK] = { 0 }, at[YOKE_MAX_RANK];
			make_index(axis, a.dims[axis] ? rnd_int(0, 4) : 0, layout);
			set_dims(&b, d, a.rank, idx.dims);
			for (int64_t k = 0; k < b.n; k++)
				b.v[k] = any_value(d, 5, false);
			lay_plain(&b);
			want = a;
			for (int64_t k = 0; k < a.n; k++)
				sum[k] = a.v[k].r;
			for (int64_t k = 0; k < b.n;
			     k++, next_index(a.rank, b.dims, ix)) {
				memcpy(at, ix, sizeof at);
				at[axis] = idx.v[k].i;
				int64_t to = number_of(&a, at);
				sum[to] += b.v[k].r;
				want.v[to].i =
					yk_num_wrap((uint64_t)want.v[to].i + (uint64_t)b.v[k].i, d);
			}
			for (int64_t k = 0; k < a.n; k++)
				want.v[k].r = round_real(d, sum[k]);
			double unit = d == yoke_f64 ? 0x1p-53 : 0x1p-24;
			struct bound bound = { 2.1 * unit_of(d), 100 * unit, true };
			yoke_tensor *y = yoke_scatter_add_along(
				view_of(&a), view_of(&idx), view_of(&b), axis);
			good = same(y, &want, bound,
				    say("scatter_add_along", layout, axis)) &&
			       good;
		}
	}
	ok(good, "scatter_add_along %s", yoke_dtype_name(d));
}

// ---- moves ----

// want[ix] = a[where(ix)], where: start + step ix along each axis, -1 outside: fill
static void place(const int64_t *dims, const int64_t *start, const int64_t *step,
		  struct value fill)
{
	int64_t ix[YOKE_MAX_RANK] = { 0 }, at[YOKE_MAX_RANK];
	set_dims(&want, a.dtype, a.rank, dims);
	for (int64_t k = 0; k < want.n; k++, next_index(a.rank, dims, ix)) {
		bool inside = true;
		for (int i = 0; i < a.rank; i++) {
			at[i] = start[i] + step[i] * ix[i];
			inside &= at[i] >= 0 && at[i] < a.dims[i];
		}
		want.v[k] = inside ? a.v[number_of(&a, at)] : fill;
	}
}

static bool slices(int layout, int axis)
{
	int64_t start[8] = { 0 }, step[8], dims[8], n = a.dims[axis];
	bool good = true;
	struct value none = { 0, 0 };
	for (int i = 0; i < 8; i++)
		step[i] = 1, dims[i] = a.dims[i];
	start[axis] = rnd_int(0, n);
	step[axis] = rnd_int(1, 3);
	int64_t stop = rnd_int(start[axis], n);
	dims[axis] = (stop - start[axis] + step[axis] - 1) / step[axis];
	place(dims, start, step, none);
	yoke_tensor *y = yoke_slice(view_of(&a), axis, start[axis], stop, step[axis]);
	good = same(y, &want, exact, say("slice", layout, axis)) && good;
	dims[axis] = n;
	start[axis] = n - 1;
	step[axis] = -1;
	place(dims, start, step, none);
	y = yoke_flip(view_of(&a), 1u << axis);
	good = same(y, &want, exact, say("flip", layout, axis)) && good;
	int64_t lo[8] = { 0 }, hi[8] = { 0 };
	lo[axis] = rnd_int(0, 2), hi[axis] = rnd_int(0, 2);
	start[axis] = -lo[axis], step[axis] = 1;
	dims[axis] = n + lo[axis] + hi[axis];
	struct value fill = insn_of(YOKE_MAP_CAST, yoke_f64, a.dtype, (struct value){ 1, 0 },
				    (struct value){ 1, 0 });
	place(dims, start, step, fill);
	y = yoke_pad(view_of(&a), lo, hi, 1);
	return same(y, &want, exact, say("pad", layout, axis)) && good;
}

static bool joins(int layout, int axis)
{
	// [a, flipped a]: element i of 2n is i or 2n - 1 - i; then a slice of it is overwritten
	int64_t ix[8] = { 0 }, at[8], dims[8], n = a.dims[axis], starts[8] = { 0 };
	bool good;
	memcpy(dims, a.dims, sizeof dims);
	dims[axis] = 2 * n;
	set_dims(&want, a.dtype, a.rank, dims);
	for (int64_t k = 0; k < want.n; k++, next_index(a.rank, dims, ix)) {
		memcpy(at, ix, sizeof at);
		at[axis] = ix[axis] < n ? ix[axis] : 2 * n - 1 - ix[axis];
		want.v[k] = a.v[number_of(&a, at)];
	}
	yoke_tensor *y = yoke_concat(
		2, (yoke_tensor *[]){ view_of(&a), yoke_flip(view_of(&a), 1u << axis) },
		axis);
	good = same(y, &want, exact, say("concat", layout, axis));
	if (n < 2)
		return good;
	memset(ix, 0, sizeof ix);
	want = a;
	starts[axis] = 1;
	dims[axis] = n - 1; // x[1..] = x[..n-1]
	do {
		memcpy(at, ix, sizeof at);
		at[axis]++;
		want.v[number_of(&a, at)] = a.v[number_of(&a, ix)];
	} while (next_index(a.rank, dims, ix));
	y = yoke_slice_update(view_of(&a), starts,
			      yoke_slice(view_of(&a), axis, 0, n - 1, 1));
	return same(y, &want, exact, say("slice_update", layout, axis)) && good;
}

static bool shapes(int layout)
{
	int order[8];
	int64_t ix[8] = { 0 }, at[8], dims[8], flat = a.n;
	for (int i = 0; i < a.rank; i++) { // rotated by one
		order[i] = (i + 1) % a.rank;
		dims[i] = a.dims[order[i]];
	}
	set_dims(&want, a.dtype, a.rank, dims);
	for (int64_t k = 0; k < want.n; k++, next_index(a.rank, dims, ix)) {
		for (int i = 0; i < a.rank; i++)
			at[order[i]] = ix[i];
		want.v[k] = a.v[number_of(&a, at)];
	}
	bool good = same(yoke_permute(view_of(&a), order), &want, exact,
			 say("permute", layout, 0));
	want = a;
	good = same(yoke_contiguous(view_of(&a)), &want, exact,
		    say("contiguous", layout, 0)) &&
	       good;
	set_dims(&want, a.dtype, 1, &flat);
	good = same(yoke_reshape(view_of(&a), 1, &flat), &want, exact,
		    say("reshape", layout, 0)) &&
	       good;
	if (a.rank == 8)
		return good;
	dims[0] = 2;
	for (int i = 0; i < a.rank; i++)
		dims[i + 1] = a.dims[i];
	set_dims(&want, a.dtype, a.rank + 1, dims);
	for (int64_t k = 0; k < want.n; k++)
		want.v[k] = a.v[k % a.n];
	return same(yoke_broadcast_to(view_of(&a), a.rank + 1, dims), &want, exact,
		    say("broadcast_to", layout, 0)) &&
	       good;
}

static bool rows(int layout, int axis)
{
	// idx [2,2] into the axis, then those rows added to x along axis 0
	struct value v[4];
	int64_t ix[YOKE_MAX_RANK] = { 0 }, at[YOKE_MAX_RANK], dims[YOKE_MAX_RANK],
		n = a.dims[axis];
	if (a.rank == 8 || !n)
		return true;
	for (int i = 0; i < 4; i++)
		v[i] = (struct value){ 0, rnd_int(0, n - 1) };
	for (int i = 0, k = 0; i < a.rank; i++) {
		dims[k++] = i == axis ? 2 : a.dims[i];
		if (i == axis)
			dims[k++] = 2;
	}
	set_dims(&want, a.dtype, a.rank + 1, dims);
	for (int64_t k = 0; k < want.n; k++, next_index(a.rank + 1, dims, ix)) {
		for (int i = 0; i < a.rank; i++)
			at[i] = i < axis ? ix[i] :
				i > axis ? ix[i + 1] :
					   v[2 * ix[i] + ix[i + 1]].i;
		want.v[k] = a.v[number_of(&a, at)];
	}
	yoke_tensor *t =
		tensor_of(layout % 2 ? yoke_i32 : yoke_i64, 2, (int64_t[]){ 2, 2 }, v);
	yoke_tensor *y = yoke_gather(view_of(&a), t, axis);
	bool good = same(y, &want, exact, say("gather", layout, axis));
	if (axis || a.dtype == yoke_bool)
		return good;
	b = want;
	want = a;
	int64_t row = a.n / n;
	static long double sum[ELEMENTS];
	for (int64_t k = 0; k < a.n; k++)
		sum[k] = a.v[k].r;
	for (int64_t k = 0; k < 4 * row; k++) {
		int64_t to = v[k / row].i * row + k % row;
		sum[to] += b.v[k].r;
		want.v[to].i = yk_num_wrap((uint64_t)want.v[to].i + (uint64_t)b.v[k].i, a.dtype);
	}
	for (int64_t k = 0; k < a.n; k++)
		want.v[k].r = round_real(a.dtype, sum[k]);
	t = tensor_of(yoke_i64, 2, (int64_t[]){ 2, 2 }, v);
	y = yoke_scatter_add(view_of(&a), t, tensor_of(b.dtype, b.rank, b.dims, b.v));
	struct bound bound = { 2.1 * unit_of(a.dtype),
			       100 * (a.dtype == yoke_f64 ? 0x1p-53 : 0x1p-24), true };
	return same(y, &want, bound, say("scatter_add", layout, axis)) && good;
}

static void moves(int d)
{
	bool good = true;
	for (int layout = 0; layout < LAYOUTS; layout++) {
		make(&a, d, layout, 5, true);
		good = shapes(layout) && good;
		for (int axis = 0; axis < a.rank; axis++) {
			good = slices(layout, axis) && good;
			good = joins(layout, axis) && good;
		}
		make(&a, d, layout, 5, !is_real(d));
		for (int axis = 0; axis < a.rank; axis++)
			good = rows(layout, axis) && good;
	}
	ok(good, "moves %s", yoke_dtype_name(d));
}

int main(void)
{
	tap_seed();
	for (int d = yoke_f32; d <= yoke_bool; d++) {
		yoke_scope *s = yoke_scope_begin("rows");
		if (d != yoke_bool) {
			scans(d);
			adds(d);
		} else {
			make(&a, d, PLAIN, 1, false);
			make_index(0, 2, 0);
			ok(refused(yoke_cumsum(view_of(&a), 0, 0), YOKE_EDTYPE),
			   "cumsum refuses bool");
			ok(refused(yoke_cumprod(view_of(&a), 0, 0), YOKE_EDTYPE),
			   "cumprod refuses bool");
			ok(refused(yoke_scatter_add_along(
					   view_of(&a), view_of(&idx),
					   yoke_slice(view_of(&a), 0, 0, 2, 1), 0),
				   YOKE_EDTYPE),
			   "scatter_add_along refuses bool");
		}
		sorts(d);
		long_sorts(d);
		alongs(d);
		moves(d);
		yoke_scope_end(s);
	}
	yoke_scope *s = yoke_scope_begin("long");
	static const int64_t sizes[] = { 65535, 65537, 131072, 200003 };
	for (int i = 0; i < 4; i++) {
		long_scan(1, sizes[i], 1, yoke_f64);
		long_scan(3, sizes[i], i % 2, yoke_i64);
		long_scan(i == 3 ? 33 : 2, sizes[i] / 4, 0, i % 2 ? yoke_i8 : yoke_f64);
	}
	long_scan(600, 300, 0, yoke_f64);
	long_scan(300, 600, 1, yoke_i8);
	yoke_scope_end(s);
	ok(!yoke_error_code(), "no error is left: %s", yoke_error());
	return done();
}
