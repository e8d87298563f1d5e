// SPDX-License-Identifier: Apache-2.0
// Tests the engine's rules: values, versions, roots, scopes, the plan cache, donation, random
// numbers, errors.

#include "config.h"

#include "stats.h"
#include "tap.h"
#include "yoke.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

static bool equal(const float *got, const float *want, int n, const char *what)
{
	double g[64], w[64];
	for (int i = 0; i < n; i++) {
		g[i] = (double)got[i];
		w[i] = (double)want[i];
	}
	return near(g, w, (size_t)n, 0, 1, what);
}

static int expect(int err, int want, const char *word, const char *what)
{
	bool good = err == want && strstr(yoke_error(), word);
	if (!good)
		diag("got %s \"%s\", want %s with \"%s\"", yoke_error_name(err), yoke_error(),
		     yoke_error_name(want), word);
	yoke_error_clear();
	return ok(good, "%s", what);
}

static void thin_path(void)
{
	float a[6] = { 1, 2, 3, 4, 5, 6 }, b[6] = { 1, 0, 2, 1, 0, 3 }, y[4],
	      want[4] = { 6, 12, 13, 27 };
	yoke_tensor *x = yoke_from(yoke_f32, 2, DIMS(2, 3), a),
		    *w = yoke_from(yoke_f32, 2, DIMS(3, 2), b);
	yoke_tensor *p = yoke_add(yoke_matmul(x, w, 0), yoke_const(1));
	ok(!yoke_read(p, y, sizeof y), "read a matmul and a map: %s", yoke_error());
	want[0] = 1 * 1 + 2 * 2 + 3 * 0 + 1;
	want[1] = 1 * 0 + 2 * 1 + 3 * 3 + 1;
	want[2] = 4 * 1 + 5 * 2 + 6 * 0 + 1;
	want[3] = 4 * 0 + 5 * 1 + 6 * 3 + 1;
	equal(y, want, 4, "a matmul and a map");
}

// The example of yoke's README: a step is planned once.
static void training_step(void)
{
	float w0[2] = { 0.5f, -0.25f }, l, first = 0;
	yoke_tensor *w = yoke_variable("w", yoke_f32, 1, DIMS(2)),
		    *x = yoke_variable("x", yoke_f32, 2, DIMS(4, 2));
	yoke_tensor *y = yoke_variable("y", yoke_f32, 1, DIMS(4)), *lr = yoke_scalar(0);
	yoke_put(w, w0, sizeof w0);
	struct yoke_stats before = stats();
	for (int t = 0; t < 50; t++) {
		float bx[8], by[4];
		for (int i = 0; i < 8; i++)
			bx[i] = (float)rnd_real(-1, 1);
		for (int i = 0; i < 4; i++)
			by[i] = 2 * bx[2 * i] - bx[2 * i + 1];
		yoke_scope *s = yoke_scope_begin("step");
		yoke_put(x, bx, sizeof bx);
		yoke_put(y, by, sizeof by);
		yoke_scalar_set(lr, t % 3 == 0 ? 0 : t % 3 == 1 ? 1 : 0.3);
		yoke_tensor *o = yoke_sum(yoke_mul(x, w), YOKE_AXIS(1)), *g;
		yoke_tensor *loss = yoke_mse(o, y);
		yoke_grad(loss, 1, &w, &g);
		yoke_assign(w, yoke_sub(w, yoke_mul(lr, g)));
		yoke_read(loss, &l, sizeof l);
		if (!t)
			first = l;
		if (yoke_scope_end(s) < 0)
			break;
	}
	struct yoke_stats after = stats();
	ok(!yoke_error_code() && l < first / 10, "50 steps: loss %g -> %g %s", (double)first,
	   (double)l, yoke_error());
	ok(after.plan_misses - before.plan_misses == 1 || tap_eager(),
	   "one plan serves 50 steps with a changing scalar, got %llu",
	   (unsigned long long)(after.plan_misses - before.plan_misses));
	ok(after.pending_nodes == before.pending_nodes && after.live_handles == before.live_handles,
	   "pending nodes and handles do not grow: %llu, %llu; %llu, %llu",
	   (unsigned long long)before.pending_nodes, (unsigned long long)after.pending_nodes,
	   (unsigned long long)before.live_handles, (unsigned long long)after.live_handles);
	yoke_free(w);
	yoke_free(x);
	yoke_free(y);
	yoke_free(lr);
}

static void versions(void)
{
	float d[4] = { 1, 2, 3, 4 }, got[4];
	yoke_tensor *a = yoke_variable("a", yoke_f32, 1, DIMS(4)),
		    *b = yoke_variable("b", yoke_f32, 1, DIMS(4));
	yoke_scope *s = yoke_scope_begin("versions");
	yoke_put(a, d, sizeof d);
	yoke_tensor *before = yoke_add(a, yoke_const(10)); // reads the old version
	yoke_assign(a, yoke_mul(a, yoke_const(2)));
	yoke_tensor *after = yoke_keep(yoke_add(a, yoke_const(10)));
	yoke_read(before, got, sizeof got);
	equal(got, (float[]){ 11, 12, 13, 14 }, 4, "a reader recorded before an assignment");
	yoke_read(after, got, sizeof got);
	equal(got, (float[]){ 12, 14, 16, 18 }, 4, "a reader recorded after it");
	yoke_free(after);
	// swap
	yoke_put(b, d, sizeof d);
	yoke_tensor *old = yoke_contiguous(a);
	yoke_assign(a, b);
	yoke_assign(b, old);
	yoke_read(a, got, sizeof got);
	equal(got, d, 4, "swapped, first");
	yoke_read(b, got, sizeof got);
	equal(got, (float[]){ 2, 4, 6, 8 }, 4, "swapped, second");
	// overlapping shift both ways, reverse
	yoke_put(a, d, sizeof d);
	yoke_assign(a, yoke_slice_update(a, DIMS(1), yoke_slice(a, 0, 0, 3, 1)));
	yoke_read(a, got, sizeof got);
	equal(got, (float[]){ 1, 1, 2, 3 }, 4, "shift up");
	yoke_put(a, d, sizeof d);
	yoke_assign(a, yoke_slice_update(a, DIMS(0), yoke_slice(a, 0, 1, 4, 1)));
	yoke_read(a, got, sizeof got);
	equal(got, (float[]){ 2, 3, 4, 4 }, 4, "shift down");
	yoke_put(a, d, sizeof d);
	yoke_assign(a, yoke_flip(a, YOKE_ALL));
	yoke_read(a, got, sizeof got);
	equal(got, (float[]){ 4, 3, 2, 1 }, 4, "reverse");
	yoke_assign(a, yoke_add(a, yoke_flip(a, YOKE_ALL)));
	yoke_read(a, got, sizeof got);
	equal(got, (float[]){ 5, 5, 5, 5 }, 4, "add to its own reverse");
	yoke_put(a, d, sizeof d);
	yoke_tensor *m = yoke_reshape(a, 2, DIMS(2, 2));
	yoke_assign(a, yoke_reshape(yoke_add(m, yoke_permute(m, (int[]){ 1, 0 })), 1, DIMS(4)));
	yoke_read(a, got, sizeof got);
	equal(got, (float[]){ 2, 5, 5, 8 }, 4, "add to its own transpose");
	// two assignments: the first is dead
	yoke_assign(a, yoke_mul(a, yoke_const(100)));
	yoke_assign(a, yoke_add(a, yoke_const(1)));
	yoke_read(a, got, sizeof got);
	equal(got, (float[]){ 201, 501, 501, 801 }, 4, "two assignments in one evaluation");
	yoke_scope_end(s);
	yoke_free(a);
	yoke_free(b);
}

static void held_values(void)
{
	float d[4] = { 1, 2, 3, 4 }, got[4];
	yoke_tensor *v = yoke_variable("v", yoke_f32, 1, DIMS(4)), *held[4], *released = NULL;
	yoke_put(v, d, sizeof d);
	for (int t = 0; t < 4; t++) {
		yoke_scope *s = yoke_scope_begin("step");
		yoke_tensor *h = yoke_exp(v);
		if (!t)
			released = h;
		held[t] = yoke_keep(yoke_reshape(yoke_mul(h, yoke_const(1)), 2, DIMS(2, 2)));
		yoke_assign(v, yoke_add(v, yoke_const(1)));
		yoke_eval(0, NULL);
		if (!t)
			expect(yoke_read(released, got, sizeof got), YOKE_ERELEASED,
			       "keep it before eval", "a released value says what to do");
		yoke_scope_end(s);
	}
	for (int t = 0; t < 4; t++) {
		float want[4];
		double g[4], w[4];
		yoke_read(held[t], got, sizeof got);
		for (int i = 0; i < 4; i++) {
			want[i] = expf(d[i] + (float)t);
			g[i] = (double)got[i];
			w[i] = (double)want[i];
		}
		near(g, w, 4, 1e-6, 1, "a kept view outlives later steps");
		yoke_free(held[t]);
	}
	yoke_free(v);
}

static void donation(void)
{
	float d[256] = { 1 }, got[256];
	yoke_tensor *v = yoke_variable("v", yoke_f32, 1, DIMS(256));
	yoke_put(v, d, sizeof d);
	struct yoke_stats s0 = stats();
	for (int t = 0; t < 5; t++) {
		yoke_scope *s = yoke_scope_begin("step");
		yoke_assign(v, yoke_add(v, yoke_const(1)));
		yoke_eval(0, NULL);
		yoke_scope_end(s);
	}
	struct yoke_stats s1 = stats();
	ok(s1.assign_copies == s0.assign_copies, "an update is in place");
	for (int t = 0; t < 5; t++) { // evaluated in the scope after the assignment's
		yoke_scope *s = yoke_scope_begin("step");
		yoke_eval(0, NULL);
		yoke_assign(v, yoke_add(v, yoke_const(1)));
		yoke_scope_end(s);
	}
	yoke_eval(0, NULL);
	s1 = stats();
	ok(s1.assign_copies == s0.assign_copies, "also if the next step evaluates it");
	yoke_tensor *total = yoke_variable("total", yoke_f32, 1, DIMS(256)),
		    *x = yoke_from(yoke_f32, 1, DIMS(256), d);
	for (int t = 0; t < 5; t++) { // recording for a loss keeps no parameters alive
		yoke_scope *s = yoke_scope_begin("step");
		yoke_tensor *loss = yoke_square(yoke_mul(v, x)), *g;
		yoke_grad(yoke_sum(loss, YOKE_ALL), 1, &v, &g);
		yoke_assign(v, yoke_sub(v, g));
		yoke_assign(total, yoke_add(total, loss));
		yoke_eval(0, NULL);
		yoke_scope_end(s);
	}
	s1 = stats();
	ok(s1.assign_copies == s0.assign_copies, "also beside a sum of losses");
	yoke_free(total);
	yoke_free(x);
	yoke_put(v, d, sizeof d);
	for (int t = 0; t < 5; t++) {
		yoke_scope *s = yoke_scope_begin("step");
		yoke_assign(v, yoke_add(v, yoke_const(1)));
		yoke_eval(0, NULL);
		yoke_scope_end(s);
	}
	yoke_tensor *alias = yoke_variable("alias", yoke_f32, 1, DIMS(256));
	yoke_assign(alias, v);
	yoke_eval(0, NULL);
	yoke_assign(v, yoke_add(v, yoke_const(1)));
	yoke_eval(0, NULL);
	ok(stats().assign_copies == s1.assign_copies + !tap_eager(),
	   "not while a view holds the old version");
	yoke_read(alias, got, sizeof got);
	ok(got[0] == 6 && got[1] == 5, "the view keeps its elements: %g %g", (double)got[0],
	   (double)got[1]);
	yoke_read(v, got, sizeof got);
	ok(got[0] == 7 && got[1] == 6, "the new version has new elements: %g %g", (double)got[0],
	   (double)got[1]);
	yoke_free(v);
	yoke_free(alias);
}

// x * 1 is simplified to x, except where 1 has more elements.
static void ones(void)
{
	float d[3] = { 5, 6, 7 }, got[6] = { 0 };
	yoke_tensor *x = yoke_from(yoke_f32, 1, DIMS(3), d);
	yoke_read(yoke_mul(x, yoke_full(yoke_f32, 2, DIMS(2, 3), 1)), got, sizeof got);
	equal(got, (float[]){ 5, 6, 7, 5, 6, 7 }, 6, "x times a matrix of ones");
	yoke_read(yoke_mul(yoke_full(yoke_f32, 1, DIMS(3), 1), x), got, sizeof d);
	equal(got, d, 3, "x times as many ones");
}

// f(a,a), f(a,b), f(b,a): the alias class is in the key
static void aliases(void)
{
	float d[4] = { 1, 2, 3, 4 }, e[4] = { 10, 20, 30, 40 }, got[4];
	yoke_tensor *a = yoke_variable("a", yoke_f32, 1, DIMS(4)),
		    *b = yoke_variable("b", yoke_f32, 1, DIMS(4));
	yoke_put(a, d, sizeof d);
	yoke_put(b, e, sizeof e);
	yoke_tensor *const pair[3][2] = { { a, b }, { a, a }, { b, a } };
	const float want[3][4] = { { -9, -18, -27, -36 }, { 0 }, { 9, 18, 27, 36 } };
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 3; i++) {
			yoke_scope *s = yoke_scope_begin("f");
			yoke_read(yoke_sub(pair[i][0], pair[i][1]), got, sizeof got);
			equal(got, want[i], 4, "right for each aliasing");
			yoke_scope_end(s);
		}
	yoke_free(a);
	yoke_free(b);
}

static void cache(void)
{
	float got[64];
	struct yoke_stats s0 = stats();
	for (int t = 0; t < 20; t++) { // a branch on the host alternates between two plans
		yoke_scope *s = yoke_scope_begin("branch");
		yoke_tensor *x = yoke_full(yoke_f32, 1, DIMS(t % 2 ? 8 : 16), 2);
		yoke_tensor *y = t % 2 ? yoke_exp(x) : yoke_sqrt(x);
		yoke_read(y, got, sizeof *got * (t % 2 ? 8 : 16));
		yoke_scope_end(s);
	}
	ok(stats().plan_misses - s0.plan_misses == (tap_eager() ? 4 : 2),
	   "two branches, two plans: %llu",
	   (unsigned long long)(stats().plan_misses - s0.plan_misses));
	for (int n = 1; n <= 300; n++) {
		yoke_scope *s = yoke_scope_begin("shapes");
		float *big = calloc((size_t)n, sizeof *big);
		yoke_read(yoke_full(yoke_f32, 1, DIMS(n), n), big, (size_t)n * sizeof *big);
		if (big[n - 1] != (float)n)
			ok(false, "yoke_full of %d elements", n);
		free(big);
		yoke_scope_end(s);
	}
	ok(stats().plans <= 64, "the number of plans is bounded: %llu",
	   (unsigned long long)stats().plans);
}

static void random_numbers(void)
{
	float a[1000], b[1000], c[1000];
	double mean = 0, square = 0;
	yoke_random_set(42, 1);
	for (int round = 0; round < 3; round++) {
		float *to = round == 0 ? a : round == 1 ? b : c;
		yoke_random_set(42, round == 2 ? 2 : 1);
		yoke_scope *s = yoke_scope_begin("layer1");
		yoke_read(yoke_uniform(yoke_f32, 1, DIMS(1000)), to, sizeof a);
		yoke_scope_end(s);
	}
	ok(!memcmp(a, b, sizeof a), "the same seed, step and scope: the same numbers");
	ok(memcmp(a, c, sizeof a), "another step: other numbers");
	yoke_random_set(42, 1);
	yoke_scope *s = yoke_scope_begin("layer2");
	yoke_read(yoke_uniform(yoke_f32, 1, DIMS(1000)), c, sizeof c);
	ok(memcmp(a, c, sizeof a), "another scope: other numbers");
	yoke_read(yoke_normal(yoke_f32, 1, DIMS(1000)), c, sizeof c);
	yoke_scope_end(s);
	for (int i = 0; i < 1000; i++) {
		mean += (double)c[i] / 1000;
		square += (double)c[i] * (double)c[i] / 1000;
	}
	ok(fabs(mean) < 0.15 && fabs(square - 1) < 0.2, "normal: mean %.3f, mean square %.3f", mean,
	   square);
}

static void errors(void)
{
	float d[6] = { 0 };
	yoke_scope *s = yoke_scope_begin("outer"), *t = yoke_scope_begin("attn");
	yoke_tensor *a = yoke_from(yoke_f32, 2, DIMS(2, 3), d),
		    *b = yoke_from(yoke_f32, 1, DIMS(4), d);
	yoke_tensor *c = yoke_add(a, b);
	bool good = !c && strstr(yoke_error(), "add") && strstr(yoke_error(), "outer/attn") &&
		    strstr(yoke_error(), "[2,3]") && strstr(yoke_error(), "[4]");
	ok(good, "a shape error names op, scope and shapes: %s", yoke_error());
	ok(!yoke_exp(yoke_mul(c, a)), "NULL operands propagate");
	expect(yoke_read(c, d, sizeof d), YOKE_ESHAPE, "add", "and the first error stays");
	ok(!yoke_matmul(a, b, 0), "matmul of a vector is refused");
	expect(yoke_error_code(), YOKE_ESHAPE, "matmul", "matmul of a vector says so");
	yoke_tensor *i = yoke_cast(a, yoke_i32);
	ok(!yoke_add(a, i), "two dtypes are refused");
	expect(yoke_error_code(), YOKE_EDTYPE, "i32", "two dtypes say so");
	ok(!yoke_gather(a, b, 0), "f32 indices are refused");
	expect(yoke_error_code(), YOKE_EDTYPE, "gather", "indices of f32 say so");
	ok(!yoke_slice(a, 1, 1, 9, 1), "a slice out of range is refused");
	expect(yoke_error_code(), YOKE_ERANGE, "slice", "slice outside says so");
	expect(yoke_read(a, d, 4), YOKE_ESHAPE, "24 bytes", "read into too little");
	ok(!yoke_from(yoke_f32, 9, DIMS(1, 1, 1, 1, 1, 1, 1, 1, 1), d), "rank 9 is refused");
	expect(yoke_error_code(), YOKE_ESHAPE, "rank 9", "rank 9 says so");
	ok(!yoke_from(yoke_f32, 2, DIMS(INT64_MAX, 2), d), "a shape that is too large is refused");
	expect(yoke_error_code(), YOKE_ESHAPE, "too many", "too large says so");
	int32_t bad[2] = { 1, 2 };
	yoke_tensor *r = yoke_gather(a, yoke_from(yoke_i32, 1, DIMS(2), bad), 0);
	// a device names the first bad position, the CPU also the index
	expect(yoke_read(r, d, sizeof d), tap_late() ? YOKE_EFAILED : YOKE_ERANGE,
	       tap_late() ? "position 1" : "2", "an index outside is reported");
	yoke_scope_end(t);
	expect(yoke_scope_end(s), 0, "", "scopes end");
	yoke_context *ctx = yoke_context_new("nosuchbackend");
	ok(!ctx && strstr(yoke_error(), "nosuchbackend"), "an unknown backend is refused: %s",
	   yoke_error());
	yoke_error_clear();
}

static void contexts(void)
{
	float d[2] = { 1, 2 }, got[2];
	yoke_context *ctx = yoke_context_new("cpu"), *former = yoke_use(NULL);
	yoke_use(former);
	yoke_tensor *a = yoke_from(yoke_f32, 1, DIMS(2), d);
	former = yoke_use(ctx);
	yoke_tensor *b = yoke_from(yoke_f32, 1, DIMS(2), d);
	ok(!yoke_add(a, b), "tensors of two contexts are refused");
	expect(yoke_error_code(), YOKE_ECONTEXT, "another context",
	       "tensors of two contexts say so");
	yoke_read(yoke_add(b, b), got, sizeof got);
	equal(got, (float[]){ 2, 4 }, 2, "a second context works");
	yoke_use(former);
	yoke_context_free(ctx);
	yoke_free(a);
}

static void empty(void)
{
	float got[4] = { NAN, NAN, NAN, NAN };
	yoke_scope *s = yoke_scope_begin("empty");
	yoke_tensor *x = yoke_from(yoke_f32, 2, DIMS(0, 4), got),
		    *w = yoke_from(yoke_f32, 2, DIMS(4, 0), got);
	ok(!yoke_read(yoke_exp(x), got, 0), "nothing is read from an empty tensor");
	yoke_read(yoke_sum(x, YOKE_AXIS(0)), got, sizeof got);
	equal(got, (float[]){ 0, 0, 0, 0 }, 4, "an empty sum is 0");
	float p[16];
	yoke_read(yoke_matmul(w, x, 0), p, sizeof p);
	bool zero = true;
	for (int i = 0; i < 16; i++)
		zero &= p[i] == 0;
	ok(zero, "a contraction over nothing is 0: %s", yoke_error());
	yoke_read(yoke_mean(x, YOKE_ALL), got, 4);
	ok(isnan(got[0]), "a mean over nothing is NaN");
	ok(!yoke_reduce_max(x, YOKE_AXIS(0)), "a maximum of nothing is refused");
	expect(yoke_error_code(), YOKE_ESHAPE, "empty", "an empty max is an error at the call");
	yoke_scope_end(s);
}

// A repeated step needs no plan and no new memory, and does not raise the peak.
static void steady_state(void)
{
	static float data[128 * 64];
	float l;
	yoke_tensor *w = yoke_variable("w", yoke_f32, 2, DIMS(64, 64)),
		    *x = yoke_variable("x", yoke_f32, 2, DIMS(128, 64));
	struct yoke_stats s0 = { .size = sizeof s0 };
	for (int i = 0; i < 64 * 64; i++)
		data[i] = (float)rnd_real(-0.1, 0.1);
	yoke_put(w, data, yoke_bytes(w));
	for (int t = 0; t < 200; t++) {
		if (t == 5) {
			yoke_stats_reset_peaks();
			s0 = stats();
		}
		yoke_scope *s = yoke_scope_begin("step");
		yoke_put(x, data, sizeof data);
		yoke_tensor *h = yoke_tanh(
				    yoke_matmul(yoke_gelu(yoke_matmul(x, w, 0)), w, YOKE_TB)),
			    *g;
		yoke_tensor *loss = yoke_mean(yoke_square(h), YOKE_ALL);
		yoke_grad(loss, 1, &w, &g);
		yoke_assign(w, yoke_sub(w, yoke_mul(g, yoke_const(0.01))));
		yoke_read(loss, &l, sizeof l);
		yoke_scope_end(s);
	}
	struct yoke_stats s1 = stats();
	double hits = (double)(s1.pool_hits - s0.pool_hits),
	       misses = (double)(s1.pool_misses - s0.pool_misses);
	ok(s1.plan_misses == s0.plan_misses, "195 steps make no new plan");
	ok(hits >= 0.99 * (hits + misses),
	   "the pool serves %.0f of %.0f requests without a new segment", hits, hits + misses);
	ok(s1.predicted_peak == s1.pool_allocated_peak, "predicted peak %llu, the pool's %llu",
	   (unsigned long long)s1.predicted_peak, (unsigned long long)s1.pool_allocated_peak);
	ok(s1.pool_reserved == s0.pool_reserved,
	   "reserved memory is constant, %llu", (unsigned long long)s1.pool_reserved);
	ok(s1.bytes_down - s0.bytes_down == 195 * 4 &&
		   s1.bytes_up - s0.bytes_up == 195 * sizeof data,
	   "per step only the batch is uploaded and the loss downloaded");
	ok(!s1.assign_copies || s1.assign_copies == s0.assign_copies, "updates are in place");
	yoke_free(w);
	yoke_free(x);
}

// 300,000 operations deep: no recursion, bounded time.
static void deep_graph(void)
{
	float one = 1, y, g1;
	yoke_tensor *x = yoke_from(yoke_f32, 1, DIMS(1), &one), *g;
	yoke_scope *s = yoke_scope_begin("deep");
	yoke_tensor *h = x;
	for (int i = 0; i < 100000; i++)
		h = yoke_add(yoke_mul(h, yoke_const(0.5)), yoke_const(0.5));
	yoke_grad(h, 1, &x, &g);
	int err = yoke_eval(2, (yoke_tensor *[]){ h, g });
	yoke_read(h, &y, sizeof y);
	yoke_read(g, &g1, sizeof g1);
	ok(!err && y == 1 && g1 == 0, "100,000 rounds deep, with gradient: %g, %g %s", (double)y,
	   (double)g1, yoke_error());
	yoke_scope_end(s);
	yoke_free(x);
}

int main(void)
{
	tap_seed();
	thin_path();
	steady_state();
	deep_graph();
	training_step();
	versions();
	held_values();
	donation();
	aliases();
	ones();
	cache();
	random_numbers();
	errors();
	contexts();
	empty();
	return done();
}
