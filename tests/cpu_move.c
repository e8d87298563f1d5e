// SPDX-License-Identifier: Apache-2.0
// MOVE, GATHER and SCATTER_ADD of the CPU backend over random layouts, against loops over
// elements; indices out of range are reported and nothing is touched outside.
#include "config.h"

#include "cpu_program.h"

#ifdef YK_ON_OPENCL // arrays come and go
enum { CASES = 36, LONG_CASES = 3000 };
#else
enum { CASES = 130, LONG_CASES = 20000 };
#endif

static bool move(const struct yk_isa *isa)
{
	int64_t dims[YOKE_MAX_RANK] = { 0 };
	int t = (int)rnd_int(yoke_f32, yoke_bool),
	    rank = random_shape(dims, rnd() % 6 ? 5000 : 200000);
	struct yoke_view x = random_layout(t, rank, dims, false),
			 y = random_layout(t, rank, dims, true);
	struct yoke_op op = op_of(YOKE_OP_MOVE, 1, &y, 1, &x);
	bool good = !call(isa, &op);
	for (int64_t i = 0; i < yk_elements(&y) && good; i++)
		good = same_bits(&x, i, &y, i);
	if (!good)
		diag("%s: move of rank %d dtype %d", isa->name, rank, t);
	return arrays_free() && good;
}

// An index array of random rank and layout with values in 0..n-1; broadcast axes keep one
// value.
static struct yoke_view random_indices(int64_t n, int most_rank)
{
	static const int64_t size[] = { 1, 2, 5, 17, 64, 129 };
	int64_t dims[YOKE_MAX_RANK];
	int rank = (int)rnd_int(0, most_rank < 2 ? most_rank : 2);
	for (int d = 0; d < rank; d++)
		dims[d] = n ? size[rnd() % 6] : 0;
	struct yoke_view idx =
		random_layout(rnd() % 2 ? yoke_i32 : yoke_i64, rank, dims, false);
	for (int64_t i = 0; i < yk_elements(&idx); i++)
		put_index(&idx, i, rnd_int(0, n - 1));
	return idx;
}

static bool gather(const struct yk_isa *isa)
{
	int64_t dims[YOKE_MAX_RANK] = { 0 }, outs[YOKE_MAX_RANK];
	int t = (int)rnd_int(yoke_f32, yoke_bool), rank = random_shape(dims, 3000);
	if (rank == 0)
		rank = 1, dims[0] = 5;
	int axis = (int)rnd_int(0, rank - 1);
	if (dims[axis] == 0)
		dims[axis] = 1;
	struct yoke_view idx = random_indices(dims[axis], YOKE_MAX_RANK + 1 - rank);
	int n = 0;
	for (int d = 0; d < rank; d++)
		if (d != axis)
			outs[n++] = dims[d];
		else
			for (int e = 0; e < idx.rank; e++)
				outs[n++] = idx.dims[e];
	struct yoke_view y = random_layout(t, n, outs, true);
	struct yoke_view in[2] = { random_layout(t, rank, dims, false), idx };
	struct yoke_op op = op_of(YOKE_OP_GATHER, 1, &y, 2, in);
	op.nattr = 1, op.attr[0].i = axis;
	bool good = !call(isa, &op);
	int64_t inner = 1, count = yk_elements(&idx);
	for (int d = axis + 1; d < rank; d++)
		inner *= dims[d];
	for (int64_t i = 0; i < yk_elements(&y) && good; i++) {
		int64_t r = i % inner, k = i / inner % count, o = i / inner / count;
		good = same_bits(&in[0],
				 (o * dims[axis] + read_index(&idx, k)) * inner + r, &y,
				 i);
	}
	if (!good)
		diag("%s: gather along %d of rank %d dtype %d", isa->name, axis, rank, t);
	return arrays_free() && good;
}

static bool scatter_add(const struct yk_isa *isa)
{
	static const int64_t wide[] = { 1, 3, 64, 257, 511, 512, 513 };
	int t = (int)rnd_int(yoke_f32, yoke_i64), width = (int)rnd_int(0, 2);
	int64_t N = rnd_int(1, 300), rows[3] = { N, wide[rnd() % 7], rnd_int(1, 3) };
	struct yoke_view idx = random_indices(N, 2);
	int64_t vd[YOKE_MAX_RANK], I = yk_elements(&idx), R = 1;
	for (int d = 0; d < idx.rank; d++)
		vd[d] = idx.dims[d];
	for (int d = 0; d < width; d++)
		vd[idx.rank + d] = rows[d + 1], R *= rows[d + 1];
	size_t bytes = yk_esize(t);
	struct yoke_view in[3] = { absent, idx,
				   dense(array_new((size_t)(I * R) * bytes), t,
					 idx.rank + width, vd) };
	struct yoke_view y =
		dense(array_new((size_t)(N * R) * bytes), t, 1 + width, rows);
	int how = (int)rnd_int(0, 2); // no x, an x, x is y
	if (how)
		in[0] = how == 2 ? y :
				   dense(array_new((size_t)(N * R) * bytes), t, 1 + width,
					 rows);
	struct yoke_op op = op_of(YOKE_OP_SCATTER_ADD, 1, &y, 3, in);
	op.alias_mask = how == 2;
	double *want = calloc((size_t)(N * R), 8), *size = calloc((size_t)(N * R), 8);
	int64_t *whole = calloc((size_t)(N * R), 8);
	for (int p = how ? 0 : 2; p < 3; p += 2)
		for (int64_t i = 0; i < yk_elements(&in[p]); i++) {
			struct value v = { to_dtype(rnd_real(-2, 2), t), rnd_int(0, 50) };
			uint64_t u = bits_of(v, t);
			memcpy(element(&in[p], i), &u, bytes);
			int64_t to = p ? read_index(&idx, i / R) * R + i % R : i;
			want[to] += v.f, size[to] += fabs(v.f), whole[to] += v.i;
		}
	bool good = !call(isa, &op);
	double last = t == yoke_f16  ? 0x1p-11 :
		      t == yoke_bf16 ? 0x1p-8 :
				       0; // the one rounding
	for (int64_t i = 0; i < N * R && good; i++) {
		struct value got = fetch(element(&y, i), t);
		good = is_float(t) ? fabs(got.f - want[i]) <=
					     (t == yoke_f64 ? 1e-14 : 2e-6) * size[i] +
						     1.01 * last * fabs(want[i]) + 3e-8 :
				     got.i == wrap((uint64_t)whole[i], t);
		if (!good)
			diag("%s: scatter_add dtype %d [%lld] got %g want %g / %lld",
			     isa->name, t, (long long)i, show(got, t), want[i],
			     (long long)whole[i]);
	}
	free(want), free(size), free(whole);
	return arrays_free() && good;
}

static void bad_indices(const struct yk_isa *isa, int dtype, int64_t bad)
{
	int64_t n = 2000, rows[2] = { 50, 16 }, vd[2] = { n, 16 };
	struct yoke_view idx = dense(array_new((size_t)n * 8), dtype, 1, &n);
	float *x = randoms(50 * 16, 0, 1), *v = randoms(n * 16, 0, 1), *y = nans(50 * 16),
	      *g = nans(n * 16);
	for (int64_t i = 0; i < n; i++)
		put_index(&idx, i, rnd_int(0, 49));
	put_index(&idx, 1500, 50);
	put_index(&idx, 777, bad);
	struct yoke_view in[3] = { dense(x, yoke_f32, 2, rows), idx,
				   dense(v, yoke_f32, 2, vd) };
	struct yoke_view out = dense(g, yoke_f32, 2, vd),
			 sum = dense(y, yoke_f32, 2, rows);
	struct yoke_op op = op_of(YOKE_OP_GATHER, 1, &out, 2, in);
	op.nattr = 1, op.id = 42;
	ok(call(isa, &op) == YOKE_ERANGE && isnan(g[777 * 16]) &&
		   g[776 * 16] == g[776 * 16],
	   "%s: gather reports index %lld", isa->name, (long long)bad);
	op = op_of(YOKE_OP_SCATTER_ADD, 1, &sum, 3, in);
	ok(call(isa, &op) == YOKE_ERANGE && isnan(y[0]),
	   "%s: scatter_add reports index %lld", isa->name, (long long)bad);
	ok(arrays_free(), "%s: and nothing outside is written", isa->name);
}

// Matrices, transposed or with gaps behind the rows, around the tiles.
static void matrix_move(const struct yk_isa *isa, int dtype, int64_t a, int64_t b, bool turn)
{
	int64_t dims[2] = { a, b }, row = b + 3;
	size_t bytes = (size_t)(a * row) * yk_esize(dtype);
	uint8_t *from = array_new(bytes);
	struct yoke_view y = dense(array_new((size_t)(a * b) * yk_esize(dtype)), dtype, 2, dims);
	struct yoke_view x = strided(from, dtype, 2, dims,
				     turn ? (int64_t[]){ 1, a } : (int64_t[]){ row, 1 });
	for (size_t i = 0; i < bytes; i++)
		from[i] = dtype == yoke_bool ? rnd() & 1 : (uint8_t)rnd();
#ifdef YK_ON_OPENCL // where arrays lie on lines
	y.align = 64;
#endif
	struct yoke_op op = op_of(YOKE_OP_MOVE, 1, &y, 1, &x);
	bool good = !call(isa, &op);
	for (int64_t i = 0; i < a * b && good; i++)
		good = same_bits(&x, i, &y, i);
	good &= arrays_free();
	ok(good, "%s: %s [%lld,%lld] of dtype %d", isa->name, turn ? "transpose" : "copy",
	   (long long)a, (long long)b, dtype);
}

// A matrix nearly square, of whole lines, so large that it is written past the caches.
static void huge_move(const struct yk_isa *isa, int dtype, bool turn)
{
	const int64_t size = (int64_t)yk_esize(dtype), least = tap_stream_bytes() / size;
	const int64_t line = 64 / size, cols = ((int64_t)sqrt((double)least) / line + 1) * line;

	matrix_move(isa, dtype, least / cols + 1, cols, turn);
}

// A part so large that it is written past the caches, in place, from a column on that may be inside
// a line.
static void huge_update(const struct yk_isa *isa, int64_t start, int dtype)
{
	const int64_t rows = tap_stream_bytes() / (4096 * 4) + 101, dims[2] = { rows, 4112 };
	const int64_t part[2] = { rows, 4096 }, n = rows * dims[1];
	int32_t *x = array_new((size_t)n * sizeof *x);
	int32_t *v = array_new((size_t)(part[0] * part[1]) * sizeof *v);
	int64_t *at = array_new(sizeof *at), wrong = 0;
	struct yoke_view y = dense(x, yoke_i32, 2, dims);
#ifdef YK_ON_OPENCL
	y.align = 64;
#endif
	struct yoke_view in[4] = { y, scalar(yoke_i64, 0), scalar(yoke_i64, (double)start),
				   dense(v, yoke_i32, 2, part) };
	struct yoke_op op = op_of(YOKE_OP_SLICE_UPDATE_AT, 1, &y, 4, in);

	op.alias_mask = 1;
	*at = start;
	if (dtype) // of a start on the device
		in[2] = dense(at, dtype, 1, (int64_t[]){ 1 });
	for (int64_t i = 0; i < n; i++)
		x[i] = (int32_t)i;
	for (int64_t i = 0; i < part[0] * part[1]; i++)
		v[i] = (int32_t)~i;
	int code = call(isa, &op);
	for (int64_t i = 0; i < n; i++) {
		const int64_t r = i / dims[1], c = i % dims[1] - start;
		wrong += x[i] != (c < 0 || c >= part[1] ? (int32_t)i : (int32_t)~(r * part[1] + c));
	}
	ok(arrays_free() && !code && !wrong, "%s: update from column %lld, %s, code %d: %lld wrong",
	   isa->name, (long long)start, dtype ? "which the device knows" : "which the host knows", code,
	   (long long)wrong);
}

int main(void)
{
	static const int64_t edge[] = { 1, 7, 8, 9, 63, 64, 65, 257 };
	const struct yk_isa *list[3];
	int n = isas(list), cases = tap_cases(CASES, LONG_CASES);

	for (int i = 0; i < n; i++) {
		int wrong[3] = { 0 };
		for (int c = 0; c < cases; c++) {
			wrong[0] += !move(list[i]);
			wrong[1] += !gather(list[i]);
			wrong[2] += !scatter_add(list[i]);
		}
		ok(!wrong[0], "%s: %d random moves", list[i]->name, cases);
		ok(!wrong[1], "%s: %d random gathers", list[i]->name, cases);
		ok(!wrong[2], "%s: %d random scatter_adds", list[i]->name, cases);
		for (int a = 0; a < 8; a++)
			for (int b = 0; b < 8; b++)
				matrix_move(list[i], 1 + (a + b) % 9, edge[a], edge[b], true);
		matrix_move(list[i], yoke_f32, 513, 1029, true);
		for (int k = 0; k < 4; k++)
			huge_update(list[i], k % 2 ? 1 : 16, k / 2 ? yoke_i64 : 0);
		huge_move(list[i], yoke_i64, true);
		huge_move(list[i], yoke_i64, false);
		huge_move(list[i], yoke_f32, true);
#ifdef YK_ON_OPENCL
		huge_move(list[i], yoke_f16, true);
		huge_move(list[i], yoke_u8, false);
#endif
		bad_indices(list[i], yoke_i32, -1);
		bad_indices(list[i], yoke_i64, (int64_t)1 << 40);
	}
	return done();
}
