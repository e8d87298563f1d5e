// SPDX-License-Identifier: Apache-2.0
// SCAN, SORT, CHECK, GATHER_ALONG and SCATTER_ADD_ALONG of the CPU backend over random layouts of
// operands and results, in every instruction set, against loops over elements.
#include "config.h"

#include "cpu_program.h"

#ifdef YK_ON_OPENCL // arrays come and go
enum { CASES = 16, LONG_CASES = 2000 };
static const double order_bound = 1e-14; // sums of f64 may be cut, of their terms' sizes
#else
enum { CASES = 100, LONG_CASES = 10000 };
static const double order_bound = 0;
#endif

static const struct yk_isa *isa;

// A random shape of at least one axis; `most` elements.
static int some_shape(int64_t *dims, int64_t most)
{
	int rank = random_shape(dims, most);
	if (rank == 0)
		rank = 1, dims[0] = rnd_int(0, 9);
	return rank;
}

// Elements behind an axis: element (o,i,r) of a row-major array is at (o * n + i) * inner + r.
static int64_t inner_of(int rank, const int64_t *dims, int axis)
{
	int64_t inner = 1;
	for (int d = axis + 1; d < rank; d++)
		inner *= dims[d];
	return inner;
}

static bool wrong(const char *what, const struct yoke_view *x, int axis, int64_t at)
{
	diag("%s: %s of dtype %d, rank %d, axis %d: element %lld", isa->name, what,
	     x->dtype, x->rank, axis, (long long)at);
	return false;
}

static bool scan(void)
{
	int64_t dims[YOKE_MAX_RANK] = { 0 };
	int t = (int)rnd_int(yoke_f32, yoke_i64),
	    rank = some_shape(dims, rnd() % 6 ? 4000 : 90000);
	int axis = (int)rnd_int(0, rank - 1);
	bool prod = rnd() % 2, back = rnd() % 2, good = true;
	struct yoke_view x = random_layout(t, rank, dims, false),
			 y = random_layout(t, rank, dims, true);
	struct yoke_op op = op_of(YOKE_OP_SCAN, 1, &y, 1, &x);
	op.nattr = 3;
	op.attr[0].i = axis, op.attr[2].i = back;
	op.attr[1].i = prod ? YOKE_REDUCE_PROD : YOKE_REDUCE_SUM;
	good = !call(isa, &op);
	int64_t n = dims[axis], inner = inner_of(rank, dims, axis), all = yk_elements(&x);
	for (int64_t line = 0; n && line < all / n && good; line++) {
		double f = prod, terms = 0;
		uint64_t u = prod;
		for (int64_t k = 0; k < n && good; k++) {
			int64_t i = back ? n - 1 - k : k,
				at = (line / inner * n + i) * inner + line % inner;
			struct value v = fetch(element(&x, at), t),
				     got = fetch(element(&y, at), t);
			f = prod ? f * v.f : f + v.f;
			u = prod ? u * (uint64_t)v.i : u + (uint64_t)v.i;
			struct value want = { to_dtype(f, t), wrap(u, t) };
			terms += fabs(v.f);
			bool cut_sum = t == yoke_f64 && !prod &&
				       fabs(got.f - want.f) <= order_bound * terms;
			if (!same_value(got, want, t) && !cut_sum)
				good = wrong(prod ? "product" : "sum", &x, axis, at);
		}
	}
	return arrays_free() && good;
}

// Few long lines are cut: whole numbers, whose sums are exact however that is done.
static void long_scan(int t, int64_t rows, int64_t n, int axis, bool back)
{
	int64_t dims[2] = { axis ? rows : n, axis ? n : rows };
	size_t size = yk_esize(t), bytes = (size_t)(rows * n) * size;
	struct yoke_view x = dense(array_new(bytes), t, 2, dims),
			 y = dense(array_new(bytes), t, 2, dims);
	for (int64_t i = 0; i < rows * n; i++) {
		int64_t k = rnd_int(-20, 20);
		uint64_t u = bits_of((struct value){ (double)k, k }, t);
		memcpy(element(&x, i), &u, size);
	}
	struct yoke_op op = op_of(YOKE_OP_SCAN, 1, &y, 1, &x);
	op.nattr = 3;
	op.attr[0].i = axis, op.attr[1].i = YOKE_REDUCE_SUM, op.attr[2].i = back;
	bool good = !call(isa, &op);
	for (int64_t r = 0; r < rows && good; r++) {
		struct value sum = { 0, 0 };
		for (int64_t k = 0; k < n && good; k++) {
			int64_t i = back ? n - 1 - k : k,
				at = axis ? r * n + i : i * rows + r;
			struct value v = fetch(element(&x, at), t);
			sum.f += v.f, sum.i = wrap((uint64_t)(sum.i + v.i), t);
			struct value want = { to_dtype(sum.f, t), sum.i };
			if (!same_value(fetch(element(&y, at), t), want, t))
				good = wrong("long sum", &x, axis, at);
		}
	}
	good &= arrays_free();
	ok(good, "%s: sums of %lld x %lld of dtype %d along %d%s", isa->name,
	   (long long)rows, (long long)n, t, axis, back ? ", from the end" : "");
}

// -1, 0, 1: a before, with, behind b.
static int order(struct value a, struct value b, int t, bool descending)
{
	if (is_float(t) && (isnan(a.f) || isnan(b.f)))
		return !isnan(b.f) - !isnan(a.f) < 0 ? -1 : isnan(a.f) && !isnan(b.f);
	int c = is_float(t) ? (a.f > b.f) - (a.f < b.f) : (a.i > b.i) - (a.i < b.i);
	return descending ? -c : c;
}

static bool sort(void)
{
	int64_t dims[YOKE_MAX_RANK] = { 0 }, outs[YOKE_MAX_RANK];
	int t = (int)rnd_int(yoke_f32, yoke_bool),
	    rank = some_shape(dims, rnd() % 6 ? 2500 : 50000);
	int64_t n = dims[rank - 1], k = rnd() % 2 ? n : rnd_int(0, rnd() % 2 ? n : n / 9);
	bool down = rnd() % 2, good;
	memcpy(outs, dims, sizeof outs);
	outs[rank - 1] = k;
	struct yoke_view x = random_layout(t, rank, dims, false);
	struct yoke_view out[2] = { random_layout(t, rank, outs, true),
				    random_layout(yoke_i64, rank, outs, true) };
	int lacks = (int)(rnd() % 6); // one of the results may not be wanted
	struct yoke_view full[2] = { out[0], out[1] };
	struct yoke_op op = op_of(YOKE_OP_SORT, 2, out, 1, &x);
	op.nattr = 2;
	op.attr[0].i = k, op.attr[1].i = down;
	good = !call(isa, &op);
	if (lacks < 2) { // the other one comes out as before
		int64_t bytes = yk_elements(&full[1 - lacks]);
		struct yoke_view again =
			random_layout(lacks ? t : yoke_i64, rank, outs, true);
		struct yoke_view two[2] = { lacks ? again : absent,
					    lacks ? absent : again };
		op = op_of(YOKE_OP_SORT, 2, two, 1, &x);
		op.nattr = 2;
		op.attr[0].i = k, op.attr[1].i = down;
		good = good && !call(isa, &op);
		for (int64_t i = 0; i < bytes && good; i++)
			if (!same_bits(&again, i, &full[1 - lacks], i))
				good = wrong("sort of one result", &x, rank - 1, i);
	}
	uint8_t *seen = calloc((size_t)n + 1, 1);
	for (int64_t r = 0; k && r < yk_elements(&out[0]) / k && good; r++) {
		int64_t last = -1;
		memset(seen, 0, (size_t)n);
		for (int64_t i = 0; i < k && good; i++) {
			int64_t at = read_index(&out[1], r * k + i);
			if (at < 0 || at >= n || seen[at]++ ||
			    !same_bits(&x, r * n + at, &out[0], r * k + i))
				good = wrong("sorted element", &x, rank - 1, r * k + i);
			if (good && last >= 0) {
				int c = order(fetch(element(&x, r * n + last), t),
					      fetch(element(&x, r * n + at), t), t, down);
				if (c > 0 || (c == 0 && last > at))
					good = wrong("order", &x, rank - 1, r * k + i);
			}
			last = at;
		}
		for (int64_t i = 0; i < n && good;
		     i++) { // what was left is not before the last
			int c = seen[i] ? 1 :
					  order(fetch(element(&x, r * n + i), t),
						fetch(element(&x, r * n + last), t), t,
						down);
			if (c < 0 || (c == 0 && i < last))
				good = wrong("left element", &x, rank - 1, r * n + i);
		}
	}
	free(seen);
	return arrays_free() && good;
}

static bool check(void)
{
	int64_t dims[YOKE_MAX_RANK] = { 0 }, bad = -1;
	int t = (int)rnd_int(yoke_f32, yoke_bf16),
	    rank = random_shape(dims, rnd() % 4 ? 3000 : 300000);
	struct yoke_view x = random_layout(t, rank, dims, false),
			 y = random_layout(t, rank, dims, true);
	size_t size = yk_esize(t);
	int64_t n = yk_elements(&x), odd_one = n && rnd() % 2 ? rnd_int(0, n - 1) : -1;
	for (int64_t i = 0; i < n; i++) {
		uint64_t u =
			bits_of((struct value){ to_dtype(rnd_real(-9, 9), t), 0 }, t);
		memcpy(element(&x, i), &u, size);
	}
	if (odd_one >= 0) {
		uint64_t u = bits_of((struct value){ rnd() % 2 ? NAN : -INFINITY, 0 }, t);
		memcpy(element(&x, odd_one), &u, size);
	}
	for (int64_t i = 0; i < n && bad < 0;
	     i++) // a broadcast element is at several places
		if (!isfinite(fetch(element(&x, i), t).f))
			bad = i;
	bool same = rnd() % 4 == 0;
	for (int d = 0; d < rank; d++)
		same &= x.strides[d] != 0 || dims[d] == 1;
	struct yoke_op op = op_of(YOKE_OP_CHECK, 1, same ? &x : &y, 1, &x);
	op.alias_mask = same;
	bool good = call(isa, &op) == (bad < 0 ? 0 : YOKE_ERANGE);
	for (int64_t i = 0; i < n && good; i++)
		good = same || same_bits(&x, i, &y, i);
	if (!good)
		wrong("check", &x, 0, bad);
	return arrays_free() && good;
}

// Indices like dims but for `size` along the axis, all within 0..n-1.
static struct yoke_view indices(int rank, const int64_t *dims, int axis, int64_t size)
{
	int64_t d[YOKE_MAX_RANK];
	memcpy(d, dims, sizeof d);
	d[axis] = size;
	struct yoke_view v =
		random_layout(rnd() % 2 ? yoke_i32 : yoke_i64, rank, d, false);
	for (int64_t i = 0; i < yk_elements(&v); i++)
		put_index(&v, i, rnd_int(0, dims[axis] - 1));
	return v;
}

static bool gather(void)
{
	int64_t dims[YOKE_MAX_RANK] = { 0 };
	int t = (int)rnd_int(yoke_f32, yoke_bool), rank = some_shape(dims, 3000);
	int axis = (int)rnd_int(0, rank - 1);
	int64_t I = dims[axis] ? rnd_int(0, 9) : 0;
	struct yoke_view idx = indices(rank, dims, axis, I),
			 y = random_layout(t, rank, idx.dims, true);
	struct yoke_view in[2] = { random_layout(t, rank, dims, false), idx };
	struct yoke_op op = op_of(YOKE_OP_GATHER_ALONG, 1, &y, 2, in);
	op.nattr = 1, op.attr[0].i = axis;
	int64_t inner = inner_of(rank, dims, axis), n = yk_elements(&idx), bad = -1;
	if (n && rnd() % 8 == 0)
		put_index(&idx, bad = rnd_int(0, n - 1), rnd() % 2 ? -1 : dims[axis]);
	bool good = call(isa, &op) == (bad < 0 ? 0 : YOKE_ERANGE);
	for (int64_t i = 0; i < n && good; i++) {
		int64_t at = read_index(&idx, i),
			from = (i / inner / I * dims[axis] + at) * inner + i % inner;
		if (at >= 0 && at < dims[axis] && !same_bits(&in[0], from, &y, i))
			good = wrong("gathered", &in[0], axis, i);
	}
	return arrays_free() && good;
}

static bool add(void)
{
	int64_t dims[YOKE_MAX_RANK] = { 0 };
	int t = (int)rnd_int(yoke_f32, yoke_i64), rank = some_shape(dims, 2000);
	int axis = (int)rnd_int(0, rank - 1);
	int64_t I = dims[axis] ? rnd_int(0, 9) : 0, inner = inner_of(rank, dims, axis);
	struct yoke_view idx = indices(rank, dims, axis, I),
			 y = random_layout(t, rank, dims, true);
	struct yoke_view in[3] = { absent, idx, random_layout(t, rank, idx.dims, false) };
	int how = (int)rnd_int(0, 2); // no x, an x, x is y
	if (how)
		in[0] = how == 2 ? y : random_layout(t, rank, dims, false);
	for (int p = how ? 0 : 2; p < 3; p += 2)
		for (int64_t i = 0; i < yk_elements(&in[p]); i++) {
			uint64_t u = bits_of((struct value){ to_dtype(rnd_real(-2, 2), t),
							     rnd_int(0, 50) },
					     t);
			memcpy(element(&in[p], i), &u, yk_esize(t));
		}
	struct yoke_op op = op_of(YOKE_OP_SCATTER_ADD_ALONG, 1, &y, 3, in);
	op.nattr = 2, op.attr[0].i = axis, op.attr[1].i = dims[axis];
	op.alias_mask = how == 2;
	int64_t n = yk_elements(&y), bad = -1;
	double *want = calloc((size_t)n + 1, 8), *size = calloc((size_t)n + 1, 8);
	int64_t *whole = calloc((size_t)n + 1, 8);
	for (int64_t i = 0; i < n && how; i++) {
		struct value v = fetch(element(&in[0], i), t);
		want[i] = v.f, size[i] = fabs(v.f), whole[i] = v.i;
	}
	for (int64_t i = 0; i < yk_elements(&idx); i++) {
		struct value v = fetch(element(&in[2], i), t);
		int64_t to = (i / inner / I * dims[axis] + read_index(&idx, i)) * inner +
			     i % inner;
		want[to] += v.f, size[to] += fabs(v.f), whole[to] += v.i;
	}
	if (yk_elements(&idx) && how < 2 && rnd() % 8 == 0)
		put_index(&idx, bad = rnd_int(0, yk_elements(&idx) - 1),
			  rnd() % 2 ? -1 : dims[axis]);
	bool good = call(isa, &op) == (bad < 0 ? 0 : YOKE_ERANGE);
	double last = t == yoke_f16 ? 0x1p-11 : t == yoke_bf16 ? 0x1p-8 : 0;
	for (int64_t i = 0; i < n && good; i++) {
		struct value got = fetch(element(&y, i), t);
		if (bad >= 0) { // nothing is written
			uint64_t none = UINT64_MAX;
			good = !memcmp(element(&y, i), &none, yk_esize(t)) ||
			       wrong("written beside", &y, axis, i);
			continue;
		}
		bool near_enough =
			is_float(t) ? fabs(got.f - want[i]) <=
					      (t == yoke_f64 ? 1e-14 : 2e-6) * size[i] +
						      1.01 * last * fabs(want[i]) + 3e-8 :
				      got.i == wrap((uint64_t)whole[i], t);
		good = near_enough || wrong("sum", &y, axis, i);
	}
	free(want), free(size), free(whole);
	return arrays_free() && good;
}

static void many(const char *what, bool (*fn)(void))
{
	int cases = tap_cases(CASES, LONG_CASES), bad = 0;
	for (int c = 0; c < cases; c++)
		bad += !fn();
	ok(!bad, "%s: %d random %s, %d wrong", isa->name, cases, what, bad);
}

int main(void)
{
	const struct yk_isa *list[3];
	int n = isas(list);
	tap_seed();
	for (int i = 0; i < n; i++) {
		isa = list[i];
		many("scans", scan);
		many("sorts", sort);
		many("checks", check);
		many("gathers along an axis", gather);
		many("sums along an axis", add);
		static const int64_t sizes[] = { 131071, 131072, 131073, 200003 };
		for (int k = 0; k < 4; k++) {
			long_scan(yoke_f64, 1, sizes[k], 1, k % 2);
			long_scan(k % 2 ? yoke_i8 : yoke_i64, 3, sizes[k], k / 2, k % 3);
		}
		long_scan(yoke_f32, 32, 131072, 0, false);
		long_scan(yoke_i32, 33, 131072, 1, true);
	}
	return done();
}
