// SPDX-License-Identifier: Apache-2.0
// Tests slices, updates and assignments whose starts are tensor values, against loops over the
// elements: every dtype, ranks 1 to 8, starts on the host and the device, one plan for all
// starts, in-place updates, out-of-range starts. Repeats all on a device that has neither op.

#include "config.h"

#include "stats.h"
#include "tap.h"
#include "yoke.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum { LIMIT = 4096 };

static int expect(int err, int want, const char *a, const char *b, const char *what)
{
	bool good = err == want && strstr(yoke_error(), a) && strstr(yoke_error(), b);
	if (!good)
		diag("got %s \"%s\", want %s with \"%s\" and \"%s\"", yoke_error_name(err),
		     yoke_error(), yoke_error_name(want), a, b);
	yoke_error_clear();
	return ok(good, "%s", what);
}

struct box {
	int rank;
	int64_t dims[YOKE_MAX_RANK], part[YOKE_MAX_RANK], start[YOKE_MAX_RANK];
};

static int64_t product(int rank, const int64_t *dims)
{
	int64_t n = 1;
	for (int i = 0; i < rank; i++)
		n *= dims[i];
	return n;
}

// Index in the whole tensor of element i of the slice.
static int64_t whole_index(const struct box *b, int64_t i)
{
	int64_t at = 0, step = 1;
	for (int k = b->rank - 1; k >= 0; k--) {
		at += (i % b->part[k] + b->start[k]) * step;
		i /= b->part[k];
		step *= b->dims[k];
	}
	return at;
}

static struct box random_box(int rank)
{
	struct box b = { .rank = rank };
	for (int i = 0; i < rank; i++) {
		b.dims[i] = rnd_int(1, rank > 4 ? 3 : 7);
		b.part[i] = rnd_int(1, b.dims[i]);
		b.start[i] = rnd_int(0, b.dims[i] - b.part[i]);
	}
	return b;
}

// A start as a host scalar, a literal, a value on the device, or absent where it is 0.
static yoke_tensor *start_of(int64_t at)
{
	switch (rnd_int(at ? 1 : 0, 3)) {
	case 0: return YOKE_NONE;
	case 1: return yoke_scalar((double)at);
	case 2: return yoke_const((double)at);
	}
	return yoke_from(yoke_i64, 0, NULL, &at);
}

static void fill(void *to, size_t bytes, int dtype)
{
	unsigned char *p = to;
	for (size_t i = 0; i < bytes; i++)
		p[i] = (unsigned char)(dtype == yoke_bool ? rnd() & 1 : rnd());
}

static void values(int dtype, int rank, bool permuted)
{
	static unsigned char x[LIMIT * 8], v[LIMIT * 8], want[LIMIT * 8], got[LIMIT * 8];
	struct box b = random_box(rank);
	const size_t size = yoke_dtype_size(dtype);
	const int64_t n = product(rank, b.dims), m = product(rank, b.part);
	yoke_tensor *starts[YOKE_MAX_RANK];
	int order[YOKE_MAX_RANK];
	int64_t turned[YOKE_MAX_RANK];
	fill(x, (size_t)n * size, dtype);
	fill(v, (size_t)m * size, dtype);
	yoke_scope *s = yoke_scope_begin("values");
	for (int i = 0; i < rank; i++) {
		starts[i] = start_of(b.start[i]);
		order[i] = rank - 1 - i;
		turned[i] = b.dims[rank - 1 - i];
	}
	yoke_tensor *t = yoke_from(dtype, rank, b.dims, x);
	if (permuted) { // the same elements, in reversed layout
		t = yoke_contiguous(yoke_permute(t, order));
		t = yoke_permute(yoke_reshape(t, rank, turned), order);
	}
	yoke_tensor *part = yoke_slice_at(t, starts, b.part);
	yoke_tensor *whole = yoke_slice_update_at(t, starts, yoke_from(dtype, rank, b.part, v));
	memset(got, 0xff, sizeof got);
	int err = yoke_eval(2, (yoke_tensor *[]){ part, whole });
	if (!err)
		err = yoke_read(part, got, (size_t)m * size);
	for (int64_t i = 0; i < m; i++)
		memcpy(want + (size_t)i * size, x + (size_t)whole_index(&b, i) * size, size);
	bool good = !err && !memcmp(got, want, (size_t)m * size);
	memset(got, 0xff, sizeof got);
	if (!err)
		err = yoke_read(whole, got, (size_t)n * size);
	memcpy(want, x, (size_t)n * size);
	for (int64_t i = 0; i < m; i++)
		memcpy(want + (size_t)whole_index(&b, i) * size, v + (size_t)i * size, size);
	bool also = !err && !memcmp(got, want, (size_t)n * size);
	yoke_scope_end(s);
	ok(good && also, "%s, rank %d%s: slice_at %s, slice_update_at %s %s",
	   yoke_dtype_name(dtype), rank, permuted ? ", permuted" : "", good ? "right" : "wrong",
	   also ? "right" : "wrong", yoke_error());
	yoke_error_clear();
}

// Rows are written and a window of them is read, by one plan, in the variable's memory.
static void cache(void)
{
	enum { N = 64, C = 5, W = 3 };
	float rows[N][C], got[W * C];
	yoke_tensor *var = yoke_variable("cache", yoke_f32, 2, DIMS(N, C));
	yoke_tensor *row = yoke_variable("row", yoke_f32, 2, DIMS(1, C));
	yoke_tensor *at = yoke_scalar(0), *from = yoke_scalar(0);
	struct yoke_stats first = { 0 };
	bool good = true;
	for (int t = 0; t < N; t++) {
		yoke_scope *s = yoke_scope_begin("step");
		for (int i = 0; i < C; i++)
			rows[t][i] = (float)rnd_real(-1, 1);
		yoke_put(row, rows[t], sizeof rows[t]);
		yoke_scalar_set(at, t);
		yoke_scalar_set(from, t < W ? 0 : t + 1 - W);
		yoke_assign_at(var, (yoke_tensor *[]){ at, YOKE_NONE }, row);
		yoke_tensor *y =
			yoke_slice_at(var, (yoke_tensor *[]){ from, YOKE_NONE }, DIMS(W, C));
		memset(got, 0xff, sizeof got);
		yoke_read(y, got, sizeof got);
		if (t >= W - 1)
			good &= !memcmp(got, rows[t + 1 - W], sizeof got);
		yoke_scope_end(s);
		if (!t)
			first = stats();
	}
	ok(good && !yoke_error_code(), "windows of a cache that is filled %s", yoke_error());
	ok(stats().plan_misses == first.plan_misses, "one plan serves all starts");
	ok(stats().assign_copies == first.assign_copies, "the cache is updated in place");
	ok(stats().live_handles == first.live_handles,
	   "the number of handles is constant: %llu, at first %llu",
	   (unsigned long long)stats().live_handles, (unsigned long long)first.live_handles);
	yoke_free(var);
	yoke_free(row);
	yoke_free(at);
	yoke_free(from);
}

// The written value comes from the variable itself, and readers were recorded before: as if by
// value.
static void hazards(void)
{
	enum { N = 9, M = 6 };
	for (int from = 0; from <= N - M; from++)
		for (int to = 0; to <= N - M; to++) {
			float x[N], want[N], before[N], got[N];
			yoke_scope *s = yoke_scope_begin("shift");
			for (int i = 0; i < N; i++)
				x[i] = want[i] = (float)rnd_real(-1, 1);
			memmove(want + to, x + from, M * sizeof *x);
			yoke_tensor *var = yoke_variable("x", yoke_f32, 1, DIMS(N));
			yoke_put(var, x, sizeof x);
			yoke_tensor *a = yoke_scalar(from), *b = yoke_scalar(to);
			yoke_tensor *old = yoke_keep(yoke_neg(var));
			yoke_assign_at(var, &b, yoke_slice_at(var, &a, DIMS(M)));
			yoke_tensor *sum = yoke_add(var, old);
			yoke_read(sum, got, sizeof got);
			bool good = true;
			for (int i = 0; i < N; i++)
				good &= got[i] == want[i] - x[i];
			yoke_read(var, got, sizeof got);
			good &= !memcmp(got, want, sizeof got);
			yoke_read(old, before, sizeof before);
			for (int i = 0; i < N; i++)
				good &= before[i] == -x[i];
			yoke_free(var);
			yoke_free(old);
			yoke_scope_end(s);
			ok(good && !yoke_error_code(),
			   "%d elements from %d to %d of the same variable %s", M, from, to,
			   yoke_error());
		}
}

// Returns the error that reading reports for an operation that the device refused.
static int refused(void)
{
	return tap_late() ? YOKE_EFAILED : YOKE_ERANGE;
}

static void out_of_range(void)
{
	float x[10], y[4], got[10];
	int64_t far = 7;
	for (int i = 0; i < 10; i++)
		x[i] = (float)i;
	yoke_tensor *var = yoke_variable("x", yoke_f32, 1, DIMS(10)), *at = yoke_scalar(7);
	yoke_tensor *v = yoke_from(yoke_f32, 1, DIMS(4), (float[]){ 20, 21, 22, 23 });
	yoke_put(var, x, sizeof x);
	yoke_tensor *part = yoke_slice_at(var, &at, DIMS(4));
	memset(y, 0xff, sizeof y);
	expect(yoke_read(part, y, sizeof y), YOKE_ERANGE, "slice_at", "axis 0 7 is not in 0..6",
	       "a start behind the end");
	yoke_scalar_set(at, -1);
	expect(yoke_read(part, y, sizeof y), YOKE_ERANGE, "slice_at", "-1",
	       "a start before the beginning");
	yoke_scalar_set(at, 6);
	ok(!yoke_read(part, y, sizeof y) && y[0] == 6 && y[3] == 9,
	   "the same evaluation succeeds with a valid start %s",
	   yoke_error());

	yoke_scalar_set(at, 8);
	yoke_assign_at(var, &at, v);
	expect(yoke_eval(0, NULL), YOKE_ERANGE, "slice_update_at", "8",
	       "an assignment after the end");
	yoke_scalar_set(at, 1);
	ok(!yoke_read(var, got, sizeof got) && got[0] == 0 && got[1] == 20 && got[4] == 23 &&
		   got[5] == 5,
	   "no value was lost %s", yoke_error());

	yoke_tensor *device = yoke_from(yoke_i64, 0, NULL, &far);
	expect(yoke_read(yoke_slice_at(var, &device, DIMS(4)), y, sizeof y), refused(), "slice_at",
	       "start 7 of axis 0", "a start on the device behind the end");
	yoke_assign_at(var, &device, v);
	if (tap_late())
		skip("an assignment at an out-of-range start on the device fails and loses the variable",
		     "the device says so late: what it wrote has failed");
	else
		expect(yoke_eval(0, NULL), YOKE_ERANGE, "slice_update_at", "start 7",
		       "an assignment at a start on the device behind the end");
	expect(yoke_read(var, got, sizeof got), YOKE_EFAILED, "x", "lost",
	       "and what it wrote has failed");
	yoke_put(var, x, sizeof x);
	ok(!yoke_read(var, got, sizeof got) && got[9] == 9, "the variable can be set again %s",
	   yoke_error());

	yoke_tensor *i32 = yoke_from(yoke_i32, 0, NULL, &(int32_t){ 1 });
	expect(yoke_slice_at(var, &i32, DIMS(4)) ? 0 : yoke_error_code(), YOKE_EDTYPE, "slice_at",
	       "i64", "a start of i32");
	expect(yoke_slice_at(var, &at, DIMS(11)) ? 0 : yoke_error_code(), YOKE_ERANGE, "slice_at",
	       "11", "more elements than there are");
	expect(yoke_assign_at(var, &at, yoke_from(yoke_f64, 1, DIMS(1), (double[]){ 1 })),
	       YOKE_EDTYPE, "assign_at: ", "f64", "another dtype");
	expect(yoke_assign_at(v, &at, v), YOKE_EINVAL, "assign", "variable", "not a variable");
	yoke_free(var);
}

enum { B = 3, ROOM = 9, HEADS = 2, WIDTH = 5, TOKEN = HEADS * WIDTH };

// Query [TOKEN] of a sequence of n keys and values, at [ROOM][TOKEN].
static void attend(const double *q, const double (*k)[TOKEN], const double (*v)[TOKEN], int64_t n,
		   double *y)
{
	for (int h = 0; h < HEADS; h++) {
		double p[ROOM], sum = 0;
		for (int64_t s = 0; s < n; s++) {
			p[s] = 0;
			for (int d = h * WIDTH; d < (h + 1) * WIDTH; d++)
				p[s] += q[d] * k[s][d] / sqrt(WIDTH);
			sum += p[s] = exp(p[s]);
		}
		for (int d = h * WIDTH; d < (h + 1) * WIDTH; d++) {
			y[d] = 0;
			for (int64_t s = 0; s < n; s++)
				y[d] += p[s] / sum * v[s][d];
		}
	}
}

// A cache of sequences of several lengths, each of which gets one token per step, until one of them
// restarts: one plan, whatever the lengths.
static void sequences(void)
{
	static double k[B][ROOM][TOKEN], v[B][ROOM][TOKEN], q[B][TOKEN], want[B][TOKEN],
		got[B][TOKEN];
	float put[3][B][TOKEN], back[B][TOKEN];
	int64_t n[B] = { 0, 3, 1 };
	yoke_tensor *cache[2], *token[3], *lengths = yoke_variable("lengths", yoke_i64, 1, DIMS(B)),
					  *at[B];
	struct yoke_stats first = { 0 };
	for (int i = 0; i < 2; i++) {
		static float start[B][ROOM][TOKEN]; // entries not yet written are NaN
		for (int j = 0; j < B * ROOM * TOKEN; j++) {
			const int b = j / (ROOM * TOKEN), r = j / TOKEN % ROOM, d = j % TOKEN;
			start[b][r][d] = r < n[b] ? (float)rnd_real(-1, 1) : NAN;
			(i ? v : k)[b][r][d] = (double)start[b][r][d];
		}
		cache[i] = yoke_variable(i ? "v" : "k", yoke_f32, 4, DIMS(B, ROOM, HEADS, WIDTH));
		yoke_put(cache[i], start, sizeof start);
	}
	for (int i = 0; i < 3; i++)
		token[i] = yoke_variable("token", yoke_f32, 4, DIMS(B, 1, HEADS, WIDTH));
	for (int b = 0; b < B; b++)
		at[b] = yoke_scalar(0);
	for (int t = 0; t < ROOM - 3; t++) {
		yoke_scope *s = yoke_scope_begin("step");
		for (int b = 0; b < B; b++) {
			if (t == 4 && b == 1)
				n[b] = 0;
			for (int d = 0; d < TOKEN; d++) {
				for (int i = 0; i < 3; i++)
					put[i][b][d] = (float)rnd_real(-1, 1);
				q[b][d] = (double)put[0][b][d];
				k[b][n[b]][d] = (double)put[1][b][d];
				v[b][n[b]][d] = (double)put[2][b][d];
			}
			yoke_scalar_set(at[b], (double)n[b]++);
			attend(q[b], (const double(*)[TOKEN])k[b], (const double(*)[TOKEN])v[b],
			       n[b], want[b]);
		}
		yoke_put(lengths, n, sizeof n);
		for (int i = 0; i < 3; i++)
			yoke_put(token[i], put[i], sizeof put[i]);
		for (int i = 0; i < 2; i++)
			for (int b = 0; b < B; b++)
				yoke_assign_at(cache[i],
					       (yoke_tensor *[]){ yoke_const(b), at[b], YOKE_NONE,
								  YOKE_NONE },
					       yoke_slice(token[1 + i], 0, b, b + 1, 1));
		yoke_read(yoke_attention_keys(token[0], cache[0], cache[1], lengths, YOKE_NONE, 1,
					      0, 0),
			  back, sizeof back);
		for (int b = 0; b < B; b++)
			for (int d = 0; d < TOKEN; d++)
				got[b][d] = (double)back[b][d];
		near(got[0], want[0], B * TOKEN, 2e-6, 1, "one token of each sequence");
		yoke_scope_end(s);
		if (!t)
			first = stats();
	}
	ok(!yoke_error_code() && stats().plan_misses == first.plan_misses,
	   "one plan serves all lengths %s", yoke_error());
	for (int i = 0; i < 3; i++)
		yoke_free(token[i]);
	for (int b = 0; b < B; b++)
		yoke_free(at[b]);
	yoke_free(cache[0]);
	yoke_free(cache[1]);
	yoke_free(lengths);
}

static void keys_out_of_range(void)
{
	float y[4], x[12] = { 1 };
	yoke_tensor *q = yoke_from(yoke_f32, 4, DIMS(1, 1, 1, 4), x),
		    *k = yoke_from(yoke_f32, 4, DIMS(1, 3, 1, 4), x);
	yoke_tensor *n = yoke_scalar(4);
	yoke_tensor *o = yoke_attention_keys(q, k, k, n, YOKE_NONE, 1, 0, 0);
	expect(yoke_read(o, y, sizeof y), YOKE_ERANGE, "attention", "4 is not in 0..3",
	       "more keys than there are");
	yoke_scalar_set(n, 1);
	ok(!yoke_read(o, y, sizeof y) && y[0] == 1, "the same with one key %s", yoke_error());
	for (int named = 1; named >= 0; named--)
		for (int64_t i = -1; i <= 4; i += 5) {
			char text[8];
			snprintf(text, sizeof text, "%d", (int)i);
			yoke_setting_set("plan.named", named ? "1" : "0");
			o = yoke_attention_keys(q, k, k, yoke_from(yoke_i64, 0, NULL, &i),
						YOKE_NONE, 1, 0, 0);
			expect(yoke_read(o, y, sizeof y), refused(), "attention", text,
			       named ? "so many, on the device" :
				       "so many, on the device, in parts");
		}
	o = yoke_attention_keys(q, k, k, yoke_from(yoke_i64, 0, NULL, &(int64_t){ 3 }), YOKE_NONE,
				1, 0, 0);
	const double share = exp(0.5) / (exp(0.5) + 2);
	ok(!yoke_read(o, y, sizeof y) && fabs((double)y[0] - share) < 1e-6,
	   "all keys, on the device, in parts: "
	   "%g, want %g %s",
	   (double)y[0], share, yoke_error());
	float z[24] = { 0 }, w[8];
	for (int named = 1; named >= 0; named--)
		for (int64_t i = -1; i <= 4; i += 5) { // in a row of two
			char text[8];
			snprintf(text, sizeof text, "%d", (int)i);
			yoke_setting_set("plan.named", named ? "1" : "0");
			yoke_tensor *kk = yoke_from(yoke_f32, 4, DIMS(2, 3, 1, 4), z);
			yoke_tensor *qq = yoke_from(yoke_f32, 4, DIMS(2, 1, 1, 4), z);
			n = yoke_from(yoke_i64, 1, DIMS(2), (int64_t[]){ 3, i });
			expect(yoke_read(yoke_attention_keys(qq, kk, kk, n, YOKE_NONE, 1, 0, 0), w,
					 sizeof w),
			       refused(), named ? "attention" : "gather", named ? text : "1",
			       named ? "so many of a row" : "so many of a row, in parts");
		}
	yoke_setting_set("plan.named", "1");
}

static void everything(bool in_place)
{
	for (int dtype = yoke_f32; dtype <= yoke_bool; dtype++)
		for (int rank = 1; rank <= YOKE_MAX_RANK; rank++) {
			values(dtype, rank, false);
			values(dtype, rank, true);
		}
	if (in_place)
		cache();
	if (in_place)
		sequences();
	hazards();
	if (tap_eager()) {
		skip("out-of-range starts are refused",
		     "it is the call that fails, not the evaluation");
		return;
	}
	out_of_range();
	keys_out_of_range();
}

// Runs in its own process, whose device has neither op: the CPU computes them.
static int lacking(void)
{
	tap_seed();
	everything(false);
	struct yoke_fallback f[512] = { { .size = sizeof *f } };
	int n = yoke_fallbacks(512, f), other = 0;
	for (int i = 0; i < n && i < 512; i++)
		other += strncmp(f[i].op, "slice_", 6) != 0;
	ok(n > 0 && !other, "%d kinds of ops fell back, %d of them unexpected", n, other);
	return done();
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return lacking();
	tap_seed();
	everything(true);
	const char *modules = getenv("YOKE_TEST_MODULES");
	if (!modules) {
		skip("the same on a device with neither op",
		     "YOKE_TEST_MODULES does not say where the fault "
		     "backend is");
		return done();
	}
	char command[4096];
	snprintf(command, sizeof command,
		 "YOKE_PLUGIN_PATH='%s' YOKE_BACKEND=fault YOKE_FAULT_HOST=0 "
		 "YOKE_FAULT_LACKS=slice_at,slice_update_at '%s' lacking 2>&1",
		 modules, argv[0]);
	ok(tap_run(command), "the same on a device with neither op");
	return done();
}
