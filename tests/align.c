// SPDX-License-Identifier: Apache-2.0
// Tests padding of products for matrix units, on a device that prefers multiples of 16. Random
// products and their gradients are compared with float64 loops, and bit for bit with unpadded
// products where sums are exact. Infinities and NaN keep their positions in memory filled with
// NaN; a value is padded once per plan; the cost rule and refused cases.

#include "config.h"

#include "device/pool.h"
#include "dtypes.h"
#include "graph/context.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "tap.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum { UNIT = 16, LIMIT = 70, LEAD = 3, FACTOR = LEAD * LIMIT * LIMIT };

static bool has_multiples; // does the current context's device have any?

// The most recently used plan.
static const struct yk_plan *last_plan(void)
{
	const struct yk_planner *pl = yk_current()->planner;
	const struct yk_plan *last = NULL;
	for (int i = 0; pl && i < YK_BUCKETS; i++)
		for (const struct yk_plan *p = pl->cache.bucket[i]; p; p = p->cached.next)
			last = !last || p->cached.used > last->cached.used ? p : last;
	return last;
}

// Fill steps that begin the padding of factors.
static int fills(const struct yk_plan *p)
{
	int n = 0;
	for (size_t i = 0; i < p->steps; i++)
		n += p->step[i].kind == YK_STEP_FILL && p->step[i].opcode == YK_PAD;
	return n;
}

static int64_t max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

// Fills the pool's memory with NaN, so that later allocations hold NaN.
static void dirty(void)
{
	yoke_tensor *t[4];
	yoke_scope *s = yoke_scope_begin("dirt");
	for (int i = 0; i < 4; i++)
		t[i] = yoke_keep(yoke_full(yoke_f32, 1, DIMS(1 << 18), NAN));
	yoke_eval(4, t);
	for (int i = 0; i < 4; i++)
		yoke_free(t[i]);
	yoke_scope_end(s);
}

// ---- random products ----

struct problem {
	int dtype, to;
	unsigned flags;
	int64_t m, n, k, la, lb; // la, lb: leading axis of a and b, 0: none
	// part: factors are views of larger tensors; odd: there are infinities and NaN
	bool bias, part, exact, odd;
};

struct numbers {
	double y[FACTOR], a[FACTOR], b[FACTOR]; // and gradients
};

static double x[2][FACTOR], cot[FACTOR], bias[LIMIT];

static int64_t matrices(const struct problem *p)
{
	return max(1, max(p->la, p->lb));
}

// An element of a factor and its offset.
static int64_t at(const struct problem *p, int i, int64_t matrix, int64_t row, int64_t col)
{
	const int64_t rows = i ? p->k : p->m, cols = i ? p->n : p->k, lead = i ? p->lb : p->la;
	const bool turned = p->flags & (i ? YOKE_TB : YOKE_TA);
	return (lead > 1 ? matrix * rows * cols : 0) +
	       (turned ? col * rows + row : row * cols + col);
}

static double draw(const struct problem *p)
{
	if (p->odd && rnd_int(0, 40) == 0)
		return rnd_int(0, 2) ? (rnd() & 1 ? INFINITY : -INFINITY) : NAN;
	return p->exact ? (double)rnd_int(-3, 3) : rounded(p->dtype, rnd_real(-1, 1));
}

static struct problem choose(void)
{
	static const int dtype[] = { yoke_f32,  yoke_f32,  yoke_f64, yoke_f16,
				     yoke_bf16, yoke_bf16, yoke_i32 };
	static const int64_t size[] = { 1, 2, 15, 16, 17, 31, 32, 33, 48, 61, 64 };
	enum { SIZES = sizeof size / sizeof *size };
	struct problem p = { .dtype = dtype[rnd_int(0, 6)] };
	p.to = p.dtype;
	if ((p.dtype == yoke_f16 || p.dtype == yoke_bf16) && rnd() & 1)
		p.to = yoke_f32;
	p.flags = (rnd() & 1 ? YOKE_TA : 0) | (rnd() & 1 ? YOKE_TB : 0);
	p.m = size[rnd_int(0, SIZES - 1)];
	p.n = size[rnd_int(0, SIZES - 1)];
	p.k = size[rnd_int(0, SIZES - 1)];
	p.la = rnd_int(0, 2) ? 0 : rnd() & 1 ? LEAD : 1;
	p.lb = rnd_int(0, 2) ? 0 : rnd() & 1 ? LEAD : 1;
	p.bias = rnd() & 1;
	p.part = rnd_int(0, 2) == 0;
	p.odd = p.dtype != yoke_i32 && rnd_int(0, 4) == 0;
	p.exact = !p.odd && (p.dtype == yoke_i32 || rnd() & 1);
	for (int i = 0; i < FACTOR; i++) {
		x[0][i] = draw(&p);
		x[1][i] = draw(&p);
		cot[i] = p.exact ? (double)rnd_int(-2, 2) : rnd_real(-1, 1);
	}
	for (int i = 0; i < LIMIT; i++)
		bias[i] = (double)rnd_int(-3, 3);
	return p;
}

// Number of products of the forward pass whose shapes the device would pad: leading axes of a count
// as rows where b has none.
static int wants(const struct problem *p)
{
	const bool joined = p->la && !p->lb && !(p->flags & YOKE_TA);
	const int64_t m = joined ? p->m * p->la : p->m;
	return has_multiples && (m % UNIT || p->n % UNIT || p->k % UNIT);
}

static yoke_tensor *factor(const struct problem *p, int i)
{
	const int64_t lead = i ? p->lb : p->la;
	const bool turned = p->flags & (i ? YOKE_TB : YOKE_TA);
	int64_t rows = i ? p->k : p->m, cols = i ? p->n : p->k, n = max(1, lead);
	if (turned) {
		const int64_t t = rows;
		rows = cols;
		cols = t;
	}
	const int64_t dims[] = { n, rows, cols }, more = p->part ? 3 : 0;
	const int64_t whole[] = { n, rows + more, cols + more };
	double *v = malloc((size_t)(n * whole[1] * whole[2]) * sizeof *v);
	for (int64_t e = 0; e < n * whole[1] * whole[2]; e++)
		v[e] = NAN;
	for (int64_t e = 0; e < n * rows * cols; e++)
		v[e / (rows * cols) * whole[1] * whole[2] + e / cols % rows * whole[2] + e % cols] =
			x[i][e];
	if (p->dtype == yoke_i32)
		for (int64_t e = 0; e < n * whole[1] * whole[2]; e++)
			v[e] = isnan(v[e]) ? 99 : v[e];
	yoke_tensor *t = yoke_cast(from(yoke_f64, 3, whole, v), p->dtype);
	free(v);
	if (p->part)
		t = yoke_slice(yoke_slice(t, 1, 0, rows, 1), 2, 0, cols, 1);
	return lead ? t : yoke_reshape(t, 2, dims + 1);
}

static int fetch(yoke_tensor *t, double *to)
{
	t = yoke_cast(t, yoke_f64);
	return yoke_read(t, to, yoke_bytes(t));
}

// Computes it, and gradients on request. *padded: number of padded products in the plan of the
// result.
static int compute(const struct problem *p, bool gradients, struct numbers *to, size_t *padded)
{
	yoke_scope *s = yoke_scope_begin("product");
	yoke_tensor *f[2] = { factor(p, 0), factor(p, 1) }, *g[2];
	yoke_tensor *y = yoke_matmul_to(f[0], f[1], p->flags, p->to);
	if (p->bias)
		y = yoke_add(y, yoke_cast(from(yoke_f64, 1, &p->n, bias), p->to));
	int err = 0;
	if (gradients) {
		int64_t dims[] = { matrices(p), p->m, p->n };
		yoke_tensor *c = from(yoke_f64, yoke_rank(y), dims + 3 - yoke_rank(y), cot);
		yoke_tensor *loss = yoke_sum(yoke_mul(yoke_cast(y, yoke_f64), c), YOKE_ALL);
		yoke_tensor *all[3];
		err = yoke_grad(loss, 2, f, g);
		if (!err) {
			all[0] = yoke_keep(y);
			all[1] = yoke_keep(g[0]);
			all[2] = yoke_keep(g[1]);
			err = yoke_eval(3, all);
			*padded = err ? 0 : last_plan()->padded;
			err = err ? err : fetch(g[0], to->a);
			err = err ? err : fetch(g[1], to->b);
			err = err ? err : fetch(y, to->y);
			for (int i = 0; i < 3; i++)
				yoke_free(all[i]);
		}
	} else {
		yoke_keep(y);
		err = yoke_eval(1, &y);
		*padded = err ? 0 : last_plan()->padded;
		err = err ? err : fetch(y, to->y);
		yoke_free(y);
	}
	int end = yoke_scope_end(s);
	return err ? err : end;
}

// The reference; lost: sums of absolute values.
static void define(const struct problem *p, struct numbers *want, struct numbers *lost)
{
	memset(want, 0, sizeof *want);
	memset(lost, 0, sizeof *lost);
	for (int64_t l = 0; l < matrices(p); l++)
		for (int64_t i = 0; i < p->m; i++)
			for (int64_t j = 0; j < p->n; j++) {
				const int64_t e = (l * p->m + i) * p->n + j;
				const double c =
					p->to == yoke_f64 ? cot[e] : rounded(p->to, cot[e]);
				for (int64_t k = 0; k < p->k; k++) {
					const int64_t ia = at(p, 0, l, i, k),
						      ib = at(p, 1, l, k, j);
					const double a = x[0][ia], b = x[1][ib];
					want->y[e] += a * b;
					lost->y[e] += fabs(a * b);
					want->a[ia] += c * b;
					lost->a[ia] += fabs(c * b);
					want->b[ib] += c * a;
					lost->b[ib] += fabs(c * a);
				}
				if (p->bias)
					want->y[e] += bias[j];
			}
}

// Compares elements, each within its rounding bound.
static bool compare(const struct problem *p, const double *got, const double *want,
		    const double *lost, int64_t n, const char *what)
{
	// the product is rounded once to its dtype; a gradient is rounded to the product's dtype
	// first, too
	const double acc = p->dtype == yoke_f64 ? ulp(yoke_f64) : ulp(yoke_f32);
	const double unit = p->dtype == yoke_i32       ? 0 :
			    ulp(p->dtype) > ulp(p->to) ? ulp(p->dtype) :
							 ulp(p->to);
	for (int64_t i = 0; i < n; i++) {
		const double e = 4 * unit * (lost[i] + 3) + 300 * acc * lost[i];
		if (isnan(want[i]) ? isnan(got[i]) :
		    isinf(want[i]) ? got[i] == want[i] :
				     fabs(got[i] - want[i]) <= e)
			continue;
		diag("%s[%lld] got %.9g want %.9g within %.3g", what, (long long)i, got[i], want[i],
		     e);
		return false;
	}
	return true;
}

static bool try_problem(const struct problem *p, size_t *padded)
{
	static struct numbers got, plain, want, lost;
	const bool gradients = !p->odd && p->dtype != yoke_i32;
	const int64_t y = matrices(p) * p->m * p->n;
	const int64_t a = max(1, p->la) * p->m * p->k, b = max(1, p->lb) * p->k * p->n;
	size_t none, one = 0;
	define(p, &want, &lost);
	yoke_setting_set("align", "0");
	int err = compute(p, gradients, &plain, &none);
	yoke_setting_set("align", "2");
	dirty();
	err = err ? err : compute(p, gradients, &got, padded);
	if (gradients && !err) {
		static struct numbers again;
		err = compute(p, false, &again, &one);
	} else {
		one = *padded;
	}
	if (err || none || one != (size_t)wants(p)) {
		diag("%zu of the plain one padded, %zu of the other, which should be %d: %s", none,
		     one, wants(p), yoke_error());
		return false;
	}
	bool good = compare(p, got.y, want.y, lost.y, y, "y") &&
		    (!gradients || (compare(p, got.a, want.a, lost.a, a, "da") &&
				    compare(p, got.b, want.b, lost.b, b, "db")));
	for (int64_t i = 0; i < y && good && p->exact; i++)
		good = got.y[i] == plain.y[i];
	for (int64_t i = 0; i < a && good && p->exact && gradients; i++)
		good = got.a[i] == plain.a[i];
	for (int64_t i = 0; i < b && good && p->exact && gradients; i++)
		good = got.b[i] == plain.b[i];
	return good;
}

static void test_random(const char *backend, int problems)
{
	int bad = 0, some = 0;
	for (int i = 0; i < problems && bad < 5; i++) {
		const uint64_t seed = tap_state;
		struct problem p = choose();
		size_t padded = 0;
		if (!try_problem(&p, &padded)) {
			diag("%s: state %llu: %s to %s, flags %u, m %lld n %lld k %lld, leading %lld %lld%s%s%s%s",
			     backend, (unsigned long long)seed, yoke_dtype_name(p.dtype),
			     yoke_dtype_name(p.to), p.flags, (long long)p.m, (long long)p.n,
			     (long long)p.k, (long long)p.la, (long long)p.lb,
			     p.bias ? ", bias" : "", p.part ? ", part" : "",
			     p.exact ? ", exact" : "", p.odd ? ", odd" : "");
			bad++;
		}
		some += padded > 0;
		yoke_error_clear();
	}
	ok(!bad && some * 2 > problems * has_multiples, "%s: %d random products, %d padded",
	   backend, problems, some);
}

// ---- by row ----

// A row has the same bits whether its product is padded or not.
static void test_by_row(void)
{
	enum { M_ = 33, N_ = 21, K_ = 37 };
	double a[M_ * K_], b[K_ * N_];
	float one[N_], all[M_ * N_];
	int bad = 0;
	size_t padded;
	for (int i = 0; i < M_ * K_; i++)
		a[i] = rnd_real(-1, 1);
	for (int i = 0; i < K_ * N_; i++)
		b[i] = rnd_real(-1, 1);
	yoke_setting_set("align", "2");
	yoke_scope *s = yoke_scope_begin("rows");
	yoke_tensor *y = yoke_matmul(from(yoke_f32, 2, DIMS(M_, K_), a),
				     from(yoke_f32, 2, DIMS(K_, N_), b), YOKE_BY_ROW);
	int err = yoke_read(y, all, sizeof all);
	padded = last_plan()->padded;
	yoke_setting_set("align", "0");
	for (int i = 0; i < M_ && !err; i++) {
		y = yoke_matmul(from(yoke_f32, 2, DIMS(1, K_), a + i * K_),
				from(yoke_f32, 2, DIMS(K_, N_), b), YOKE_BY_ROW);
		err = yoke_read(y, one, sizeof one);
		bad += memcmp(one, all + i * N_, sizeof one) != 0;
	}
	yoke_scope_end(s);
	ok(!err && !bad && padded == 1,
	   "%d rows computed alone: %d differ from the padded product %s", M_, bad, yoke_error());
}

// ---- what a plan does ----

// Two products with one weight, the sum of their squares, its gradients; returns the sum.
static float shared_weight(yoke_tensor *w, yoke_tensor *const *in, int products)
{
	yoke_tensor *p[3] = { w, in[0], in[1] }, *g[3], *loss = NULL;
	float out = NAN;
	yoke_scope *s = yoke_scope_begin("shared");
	for (int i = 0; i < products; i++) {
		yoke_tensor *y = yoke_square(yoke_matmul(in[i], w, 0));
		loss = loss ? yoke_add(loss, yoke_sum(y, YOKE_ALL)) : yoke_sum(y, YOKE_ALL);
	}
	if (!yoke_grad(loss, products + 1, p, g)) {
		yoke_keep(g[0]);
		for (int i = 1; i <= products; i++)
			yoke_keep(g[i]);
		yoke_read(loss, &out, sizeof out);
		for (int i = 0; i <= products; i++)
			yoke_free(g[i]);
	}
	yoke_scope_end(s);
	return out;
}

static void test_plans(void)
{
	enum { ROWS = 32, K_ = 48, N_ = 39 };
	double v[K_ * N_];
	struct yoke_stats before = { .size = sizeof before }, now = before;
	for (int i = 0; i < K_ * N_; i++)
		v[i] = rnd_real(-1, 1);
	yoke_setting_set("align", "2");
	yoke_tensor *w = yoke_variable("w", yoke_f32, 2, DIMS(K_, N_)), *in[2];
	put(w, v);
	for (int i = 0; i < 2; i++) {
		in[i] = yoke_variable("in", yoke_f32, 2, DIMS(ROWS, K_));
		put(in[i], v);
	}
	yoke_stats(&before);
	float first = shared_weight(w, in, 2), again = 0;
	const struct yk_plan *p = last_plan();
	// y = a w, da = dy w', dw = a' dy: one padded copy of w and of each dy
	ok(p->padded == 6 && fills(p) == 3,
	   "two products with one weight, and gradients: %zu padded, %d fills", p->padded,
	   fills(p));
	for (int i = 0; i < 3; i++)
		again = shared_weight(w, in, 2);
	yoke_stats(&now);
	ok(first == again && now.plan_misses - before.plan_misses == 1 && last_plan() == p,
	   "the padded plan is reused: %llu plans made",
	   (unsigned long long)(now.plan_misses - before.plan_misses));
	yoke_setting_set("align", "0");
	float plain = shared_weight(w, in, 2);
	ok(last_plan() != p && !last_plan()->padded && !fills(last_plan()) &&
		   fabsf(plain - first) < 1e-4f * plain,
	   "align=0 makes another plan: %g and %g", (double)plain, (double)first);
	for (int i = 0; i < 2; i++)
		yoke_free(in[i]);
	yoke_free(w);
}

// Number of products in the last plan with a fused map.
static int epilogues(const struct yk_plan *p)
{
	int n = 0;
	for (size_t i = 0; i < p->steps; i++)
		n += p->step[i].kind == YK_STEP_RUN && p->step[i].op.code == YOKE_OP_CONTRACT &&
		     p->step[i].map;
	return n;
}

// A map after a product stays its epilogue where only k grows.
static void test_epilogue(void)
{
	double v[48 * 48];
	float y[48 * 48];
	int found[2];
	for (int i = 0; i < 48 * 48; i++)
		v[i] = rnd_real(-1, 1);
	yoke_setting_set("align", "2");
	for (int i = 0; i < 2; i++) {
		const int64_t k = i ? 48 : 39, n = i ? 39 : 48;
		yoke_scope *s = yoke_scope_begin("epilogue");
		yoke_tensor *z = yoke_matmul(from(yoke_f32, 2, DIMS(32, k), v),
					     from(yoke_f32, 2, DIMS(k, n), v), 0);
		yoke_read(yoke_relu(z), y, (size_t)(32 * n) * sizeof *y);
		found[i] = last_plan()->padded == 1 ? epilogues(last_plan()) : -1;
		yoke_scope_end(s);
	}
	ok(found[0] == 1 && found[1] == 0,
	   "products fused with a map: %d where k grows, %d where n grows %s", found[0], found[1],
	   yoke_error());
}

// With YOKE_CHECK, an infinity in a factor is no error of the product.
static void test_check(const char *backend)
{
	double a[9 * 5], b[5 * 7];
	float y[9 * 7];
	for (int i = 0; i < 9 * 5; i++)
		a[i] = i == 13 ? INFINITY : 1;
	for (int i = 0; i < 5 * 7; i++)
		b[i] = 2;
	yoke_setting_set("align", "2");
	yoke_setting_set("check", "nan");
	yoke_context *ctx = yoke_context_new(backend), *was = yoke_use(ctx);
	yoke_scope *s = yoke_scope_begin("check");
	int err = yoke_read(
		yoke_matmul(from(yoke_f32, 2, DIMS(9, 5), a), from(yoke_f32, 2, DIMS(5, 7), b), 0),
		y, sizeof y);
	yoke_scope_end(s);
	ok(!err && isinf(y[2 * 7]) && y[0] == 10,
	   "check=nan accepts an infinite factor: %g and %g %s", (double)y[2 * 7], (double)y[0],
	   yoke_error());
	yoke_use(was);
	yoke_context_free(ctx);
	yoke_setting_set("check", "");
	yoke_error_clear();
}

// ---- what is worth it ----

// Does the rule pad a product of that many rows, columns and steps?
static bool is_worth(int dtype, int64_t m, int64_t n, int64_t k, unsigned flags)
{
	yoke_scope *s = yoke_scope_begin("big");
	yoke_tensor *a = yoke_full(dtype, 2, DIMS(m, k), 1),
		    *b = yoke_full(dtype, 2, DIMS(k, n), 1);
	yoke_tensor *y = yoke_matmul(yoke_keep(a), yoke_keep(b), flags);
	yoke_keep(y);
	bool good = !yoke_eval(1, &y) && last_plan()->padded;
	yoke_free(a);
	yoke_free(b);
	yoke_free(y);
	yoke_scope_end(s);
	return good;
}

// In a dry context, which computes nothing. By hand: 4096 x 1000 x 4096 in f32 are 3.36e10
// operations; padding k to 1008 moves 2 * 4 * (4096 * 1008 + 2 * 4096 * 1000) = 9.86e7 bytes, which
// count as 1.26e10 operations, and adds 2.7e8, together less than two products; with 512 for 4096
// it is 1.57e9 for 5.2e8. In bf16, 8192 x 768 x 50257, the gradient of a head, it is 3.2e11 for
// 6.3e11.
static void test_rule(const char *backend)
{
	static const struct {
		int dtype;
		int64_t m, n, k;
		unsigned flags;
		bool worth;
	} rule[] = {
		{ yoke_f32, 4096, 4096, 1000, 0, true },   { yoke_f32, 512, 512, 1000, 0, false },
		{ yoke_bf16, 2048, 2048, 1000, 0, true },  { yoke_f32, 4096, 4096, 1008, 0, false },
		{ yoke_f32, 37, 41, 53, 0, false },        { yoke_bf16, 8192, 50257, 768, 0, true },
		{ yoke_bf16, 1, 50257, 768, 0, false },    { yoke_bf16, 8192, 50257, 64, 0, false },
		{ yoke_bf16, 8192, 50257, 768, YOKE_BY_ROW, false },
		{ yoke_bf16, 8190, 4096, 4096, YOKE_BY_ROW, true },
		{ yoke_bf16, 8192, 768, 50257, 0, true },
	};
	yoke_setting_set("align", "1");
	yoke_context *ctx = yoke_context_dry(backend), *was = yoke_use(ctx);
	for (size_t i = 0; i < sizeof rule / sizeof *rule; i++) {
		bool got = is_worth(rule[i].dtype, rule[i].m, rule[i].n, rule[i].k, rule[i].flags);
		ok(got == rule[i].worth, "%s %lld x %lld x %lld%s: %s %s",
		   yoke_dtype_name(rule[i].dtype), (long long)rule[i].m, (long long)rule[i].n,
		   (long long)rule[i].k, rule[i].flags ? " by row" : "",
		   got ? "padded" : "as it is", yoke_error());
	}
	yoke_use(was);
	yoke_context_free(ctx);
}

// If memory suffices only for the unpadded plan, that plan is made.
static void test_memory(const char *backend)
{
	enum { SIDE = 1021 };
	const uint64_t matrix = (uint64_t)SIDE * SIDE * 4, room = (uint64_t)2 << 20;
	struct yoke_stats now = { .size = sizeof now };
	yoke_setting_set("align", "2");
	yoke_context *ctx = yoke_context_dry(backend), *was = yoke_use(ctx);
	yoke_tensor *a = yoke_variable("a", yoke_f32, 2, DIMS(SIDE, SIDE)), *y;
	for (int tight = 1; tight >= 0; tight--) {
		yk_pool_trim(ctx->device->pool);
		yoke_stats(&now);
		const uint64_t limit = tight ? yk_pool_limit(ctx->device->pool,
							     now.pool_allocated + matrix + room) :
					       0;
		yoke_setting_set("align", "2"); // no cached plan
		y = yoke_matmul(a, a, YOKE_TB);
		yoke_keep(y);
		int err = yoke_eval(1, &y);
		ok(!err && (last_plan()->padded == 0) == tight, "%s: padded %d %s",
		   tight ? "little memory" : "enough memory", !err && last_plan()->padded,
		   yoke_error());
		yoke_free(y);
		if (tight)
			yk_pool_limit(ctx->device->pool, limit);
	}
	yoke_free(a);
	yoke_use(was);
	yoke_context_free(ctx);
}

// ---- other passes ----

// A chain of products whose activations are all recomputed: gradient of its first factor.
static int chain(const char *recompute, float *to, size_t bytes)
{
	enum { E = 27, DEPTH = 12 };
	double v[E * E];
	yoke_setting_set("align", "2");
	yoke_setting_set("recompute", recompute);
	tap_state = 77;
	for (int i = 0; i < E * E; i++)
		v[i] = rnd_real(-0.3, 0.3);
	yoke_scope *s = yoke_scope_begin("chain");
	yoke_tensor *w = from(yoke_f32, 2, DIMS(E, E), v), *h = w, *g;
	for (int i = 0; i < DEPTH; i++)
		h = yoke_tanh(yoke_matmul(h, w, i & 1 ? YOKE_TB : 0));
	int err = yoke_grad(yoke_sum(h, YOKE_ALL), 1, &w, &g);
	err = err ? err : yoke_read(g, to, bytes);
	if (!err && !last_plan()->padded)
		err = YOKE_EINVAL;
	yoke_scope_end(s);
	yoke_setting_set("recompute", "none");
	return err;
}

static void test_recompute(void)
{
	float a[27 * 27], b[27 * 27];
	int err = chain("none", a, sizeof a);
	err = err ? err : chain("block", b, sizeof b);
	ok(!err && !memcmp(a, b, sizeof a), "recomputed activations are padded: %s", yoke_error());
}

// A device without a preferred multiple has the same steps with any setting.
static void test_without_multiples(const char *backend)
{
	yoke_context *ctx = yoke_context_new(backend), *was = yoke_use(ctx);
	size_t steps[2];
	float y[13 * 17];
	struct { uint16_t code, views; uint64_t bytes; } seen[2][64];
	for (int k = 0; k < 2; k++) {
		yoke_setting_set("align", k ? "2" : "0");
		yoke_scope *s = yoke_scope_begin("none");
		yoke_tensor *a = yoke_iota(yoke_f32, 2, DIMS(13, 19), 1),
			    *b = yoke_iota(yoke_f32, 2, DIMS(19, 17), 0);
		yoke_read(yoke_relu(yoke_matmul(yoke_keep(a), yoke_keep(b), 0)), y, sizeof y);
		const struct yk_plan *p = last_plan();
		memset(seen[k], 0, sizeof seen[k]);
		for (steps[k] = 0; steps[k] < p->steps && steps[k] < 64; steps[k]++) {
			const struct yk_step *t = &p->step[steps[k]];
			seen[k][steps[k]].code = t->op.code;
			seen[k][steps[k]].views = (uint16_t)t->views;
			seen[k][steps[k]].bytes = t->bytes;
		}
		yoke_free(a);
		yoke_free(b);
		yoke_scope_end(s);
	}
	ok(steps[0] == steps[1] && !memcmp(seen[0], seen[1], sizeof seen[0]) &&
		   !ctx->planner->misaligned.n,
	   "%s: %zu steps, as without padding", backend, steps[1]);
	yoke_use(was);
	yoke_context_free(ctx);
}

int main(void)
{
	if (tap_eager())
		return skip_all("plans are of one op");
	tap_seed();
	tap_plugin_path();
	setenv("YOKE_FAULT_MULTIPLE", "16", 1);
	// the test reads printed plans
	static const char *const mode[][2] = { { "log", "error" },  { "fuse", "1" },
					       { "plan.cse", "1" }, { "plan.max", "64" },
					       { "check", "" },     { "recompute", "none" } };
	for (size_t i = 0; i < sizeof mode / sizeof *mode; i++)
		yoke_setting_set(mode[i][0], mode[i][1]);
	test_without_multiples("cpu");
	yoke_context *ctx = yoke_context_new("fault"), *was;
	if (!ctx) {
		skip("a device that likes multiples of 16", yoke_error());
		return done();
	}
	was = yoke_use(ctx);
	has_multiples = true;
	ok(ctx->device->info.multiple[yoke_f16][1] == UNIT, "the device likes multiples of %d",
	   ctx->device->info.multiple[yoke_f16][1]);
	test_random("fault", tap_cases(150, 5000));
	test_by_row();
	test_plans();
	test_epilogue();
	test_recompute();
	yoke_use(was);
	yoke_context_free(ctx);
	test_check("fault");
	test_rule("fault");
	test_memory("fault");
	return done();
}
