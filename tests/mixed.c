// SPDX-License-Identifier: Apache-2.0
// Tests mixed precision as calls are recorded: the op table's casting policy against a list
// written by hand, results for half and f32 operands and scalars, scopes kept in f32, nesting,
// gradients of f32 variables. Counted in launches: how often a weight is cast, and that kernels
// read half operands directly.

#include "config.h"

#include "dtypes.h"
#include "graph/autocast.h"
#include "graph/context.h"
#include "tap.h"
#include "yoke.h"

// ---- the column ----

static const char *const to_half = " matmul attention grouped_matmul conv conv_x conv_w qlinear ";
static const char *const to_f32 =
	" pow exp log log1p expm1 sum prod reduce_max reduce_min cumsum cumprod resolvent"
	" eigh cholesky solve_triangular lu solve inv det slogdet cofactor qr lstsq svd pinv matrix_exp"
	" moments asin acos atan atan2 lgamma digamma erfinv hypot"
	" sparse sparse_x sparse_w fft recurrent ctc grid_sample ";
static const char *const widest =
	" uniform normal add sub mul div min max mod neg abs sign floor round ceil sqrt rsqrt recip square sin cos"
	" tanh sigmoid erf eq ne lt le gt ge isfinite and or xor not shl shr select concat slice_update scatter_add"
	" scatter_add_along slice_update_at scatter_set copysign ";
static const char *const inside = " softmax layer_norm batch_norm rms_norm cross_entropy rope ";

static void column(void)
{
	static const char *const names[] = { "none", "half", "f32", "widest", "f32 inside" };
	for (int op = 0; op < YK_OPS; op++) {
		const struct yk_op_def *row = yk_op_def(op);
		char name[64];
		snprintf(name, sizeof name, " %s ", row->name);
		int want = strstr(to_half, name) ? YK_CAST_HALF :
			   strstr(to_f32, name)  ? YK_CAST_F32 :
			   strstr(widest, name)  ? YK_CAST_WIDEST :
			   strstr(inside, name)  ? YK_CAST_INSIDE :
						   YK_CAST_NONE;
		if (row->cast != want)
			ok(false, "%s: %s, want %s", row->name, names[row->cast], names[want]);
	}
	ok(true, "%d rows", YK_OPS);
}

// ---- what calls give ----

enum { N = 8 };
static const int64_t square[] = { N, N };
static int half; // the dtype that it is cast to

static yoke_tensor *filled(int dtype, int rank, const int64_t *dims)
{
	return yoke_add(yoke_cast(yoke_uniform(yoke_f32, rank, dims), dtype), yoke_const(0.5));
}

static void gives(yoke_tensor *y, int want, const char *what)
{
	int got = y ? yoke_dtype(y) : 0;
	ok(got == want, "%s: %s %s%s", what, yoke_dtype_name(half),
	   got ? yoke_dtype_name(got) : yoke_error(), got == want ? "" : ", another is wanted");
	yoke_error_clear();
}

// x in half, f and g in f32, d in f64, i integers
static void calls(void)
{
	const int other = half == yoke_f16 ? yoke_bf16 : yoke_f16;
	yoke_scope *s = yoke_scope_begin("calls");
	yoke_tensor *x = filled(half, 2, square), *f = filled(yoke_f32, 2, square),
		    *v = filled(yoke_f32, 1, square);
	yoke_tensor *o = filled(other, 2, square), *d = filled(yoke_f64, 2, square),
		    *hv = filled(half, 1, square);
	yoke_tensor *i = yoke_iota(yoke_i32, 2, square, 0),
		    *ids = yoke_iota(yoke_i32, 1, square, 0);
	const int64_t four[] = { 1, N, 2, 4 }, table[] = { N, 2 };
	yoke_tensor *q = filled(yoke_f32, 4, four), *k = filled(half, 4, four);
	yoke_tensor *c = filled(yoke_f32, 2, table), *hc = filled(half, 2, table);
	yoke_tensor *mask = yoke_full(yoke_f32, 4, (int64_t[]){ 1, 1, N, N }, 0);
	ok(!yoke_autocast(half, NULL), "casts are enabled by the scope");
	gives(yoke_matmul(f, f, 0), half, "matmul of f32");
	gives(yoke_matmul(x, f, YOKE_TB), half, "matmul of half and f32");
	gives(yoke_matmul(x, o, 0), half, "matmul of both halves");
	gives(yoke_matmul(d, d, 0), yoke_f64, "matmul of f64");
	gives(yoke_matmul(i, i, 0), yoke_i32, "matmul of integers");
	gives(yoke_matmul_to(f, x, 0, yoke_f32), yoke_f32, "matmul_to f32");
	gives(yoke_linear(f, f, v), half, "linear");
	gives(yoke_linear(x, f, YOKE_NONE), half, "linear without b");
	gives(yoke_attention(q, k, q, YOKE_NONE, 1, 0, 0), half, "attention");
	gives(yoke_attention(q, k, q, mask, 0, 0, 0), half, "attention with a mask of f32");
	gives(yoke_attention_keys(q, k, k, yoke_scalar(3), YOKE_NONE, 1, 0, 0), half,
	      "attention_keys");
	gives(yoke_add(x, x), half, "add of half");
	gives(yoke_add(x, f), yoke_f32, "add of half and f32");
	gives(yoke_mul(x, o), yoke_f32, "mul of both halves");
	gives(yoke_mul(x, d), yoke_f64, "mul of half and f64");
	gives(yoke_mul(x, yoke_const(2)), half, "half times a number");
	gives(yoke_mul(yoke_scalar(2), x), half, "a number times half");
	gives(yoke_select(yoke_lt(x, f), x, f), yoke_f32, "select");
	gives(yoke_clamp(x, YOKE_NONE, v), yoke_f32, "clamp by f32");
	gives(yoke_tanh(x), half, "tanh");
	gives(yoke_gelu(x), half, "gelu");
	gives(yoke_swiglu(x, f), yoke_f32, "swiglu of half and f32");
	gives(yoke_exp(x), yoke_f32, "exp");
	gives(yoke_log(x), yoke_f32, "log");
	gives(yoke_pow(x, yoke_const(0.1)), yoke_f32, "pow");
	gives(yoke_sum(x, 1), yoke_f32, "sum");
	gives(yoke_sum(i, 1), yoke_i32, "sum of integers");
	gives(yoke_mean(x, YOKE_ALL), yoke_f32, "mean");
	gives(yoke_reduce_max(x, 1), yoke_f32, "reduce_max");
	gives(yoke_argmax(x, 1), yoke_i64, "argmax");
	gives(yoke_cumsum(x, 0, 0), yoke_f32, "cumsum");
	gives(yoke_var(x, 1, 1), yoke_f32, "var");
	gives(yoke_norm(x, 2, 1), yoke_f32, "norm");
	gives(yoke_quantile(x, yoke_const(0.5), 0), yoke_f32, "quantile");
	gives(yoke_logsumexp(x, -1), yoke_f32, "logsumexp");
	gives(yoke_mse(x, f), yoke_f32, "mse");
	gives(yoke_mse(x, x), yoke_f32, "mse of half");
	gives(yoke_bce_logits(x, f), yoke_f32, "bce_logits");
	gives(yoke_kl(x, x), yoke_f32, "kl");
	gives(yoke_cross_entropy(x, ids, -1, 0), yoke_f32, "cross_entropy");
	gives(yoke_softmax(x, -1), half, "softmax");
	gives(yoke_softmax(f, -1), yoke_f32, "softmax of f32");
	gives(yoke_layer_norm(x, v, v, 1e-5), half, "layer_norm");
	gives(yoke_batch_norm(x, v, v, 1e-5, NULL, NULL), half, "batch_norm");
	gives(yoke_layer_norm(f, hv, v, 1e-5), yoke_f32, "layer_norm with w in half");
	gives(yoke_rms_norm(x, v, 1e-5), half, "rms_norm");
	gives(yoke_rope(k, c, c), half, "rope");
	gives(yoke_rope(q, hc, hc), yoke_f32, "rope of f32 with tables in half");
	gives(yoke_concat(3, (yoke_tensor *[]){ x, x, x }, 0), half, "concat of half");
	gives(yoke_concat(3, (yoke_tensor *[]){ x, x, f }, 0), yoke_f32, "concat of half and f32");
	gives(yoke_slice_update(f, (int64_t[]){ 0, 0 }, x), yoke_f32, "slice_update");
	gives(yoke_scatter_add(f, ids, x), yoke_f32, "scatter_add");
	gives(yoke_embedding(f, ids), yoke_f32, "embedding");
	gives(yoke_dropout(x, 0.5), half, "dropout");
	gives(yoke_reshape(x, 1, (int64_t[]){ N * N }), half, "reshape");
	gives(yoke_cast(f, other), other, "cast");
	ok(!yoke_eval(0, NULL) && !yoke_scope_end(s), "and disabled when it ends %s", yoke_error());

	s = yoke_scope_begin("off");
	x = filled(half, 2, square);
	ok(!yoke_add(x, filled(yoke_f32, 2, square)) && yoke_error_code() == YOKE_EDTYPE,
	   "without a scope nothing is cast: %s", yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
}

// 0.1 as a half is off by 2e-4: a scalar takes the dtype of its operand, and is rounded once.
static void numbers(void)
{
	float got[2];
	const double x = 1.5;
	yoke_scope *s = yoke_scope_begin("numbers");
	yoke_tensor *h = yoke_full(half, 1, (int64_t[]){ 1 }, x);
	yoke_autocast(half, NULL);
	yoke_read(yoke_pow(h, yoke_const(0.1)), got, sizeof *got);
	yoke_read(yoke_pow(h, yoke_scalar(0.1)), got + 1, sizeof *got);
	for (int i = 0; i < 2; i++)
		near(&(double){ (double)got[i] }, &(double){ pow(x, 0.1) }, 1, 1e-6, 1,
		     i ? "a scalar" : "a literal");
	ok(!yoke_scope_end(s), "numbers %s", yoke_error());
}

// ---- scopes ----

static int product_in(const char *scope)
{
	char text[128];
	yoke_scope *s[4] = { NULL };
	int n = 0;
	snprintf(text, sizeof text, "%s", scope);
	for (char *p = strtok(text, "/"); p; p = strtok(NULL, "/"))
		s[n++] = yoke_scope_begin(p);
	yoke_tensor *f = filled(yoke_f32, 2, square);
	int dtype = yoke_dtype(yoke_matmul(f, f, 0));
	while (n)
		yoke_scope_end(s[--n]);
	return dtype;
}

static void scopes(void)
{
	yoke_scope *outer = yoke_scope_begin("outer"), *s;
	yoke_autocast(half, "norm*,head, layer1/mlp");
	ok(product_in("a") == half && product_in("layer0/mlp") == half &&
		   product_in("layer11/mlp") == half,
	   "names that do not match a pattern");
	ok(product_in("norm") == yoke_f32 && product_in("layer0/norm2") == yoke_f32 &&
		   product_in("head/inner") == yoke_f32 && product_in("layer1/mlp") == yoke_f32,
	   "names that match");
	ok(product_in("layer1") == half && product_in("mlp") == half && product_in("ahead") == half,
	   "substrings of a pattern, and longer names");
	s = yoke_scope_begin("norm");
	yoke_tensor *x = yoke_cast(filled(yoke_f32, 2, square), half);
	gives(yoke_softmax(x, -1), yoke_f32, "softmax of half where f32 is kept");
	gives(yoke_gelu(x), yoke_f32, "gelu of half where f32 is kept");
	yoke_scope_end(s);
	s = yoke_scope_begin("inner");
	yoke_autocast(YOKE_DTYPE_NONE, NULL);
	ok(product_in("a") == yoke_f32, "a pattern keeps its scope in f32");
	yoke_autocast(half == yoke_f16 ? yoke_bf16 : yoke_f16, NULL);
	ok(product_in("a") == (half == yoke_f16 ? yoke_bf16 : yoke_f16), "another scope has casts");
	yoke_scope_end(s);
	ok(product_in("a") == half && product_in("norm") == yoke_f32,
	   "the former state is restored");
	ok(!yoke_scope_end(outer), "each pattern matched a scope %s", yoke_error());
	ok(product_in("a") == yoke_f32, "outside of the scope casts are disabled");

	outer = yoke_scope_begin("outer");
	yoke_autocast(half, "norm*,haed");
	product_in("norm1");
	int err = yoke_scope_end(outer);
	ok(err == YOKE_EINVAL && strstr(yoke_error(), "haed"),
	   "a pattern that matches no scope: %s", yoke_error());
	yoke_error_clear();
	ok(product_in("norm") == yoke_f32 && yoke_autocast(yoke_f64, NULL) == YOKE_EDTYPE,
	   "a dtype that is no half: %s", yoke_error());
	yoke_error_clear();
	char many[200] = "";
	for (int i = 0; i < 33; i++)
		strcat(many, "abcd,");
	ok(yoke_autocast(half, many) == YOKE_ERANGE, "too many patterns: %s", yoke_error());
	yoke_error_clear();
}

// The memory of a scope that enabled casts is reused by the next scope, which enables none; the
// context is freed while that is open.
static void left_open(void)
{
	yoke_context *ctx = yoke_context_new(NULL), *former = yoke_use(ctx);
	yoke_scope_begin("outer");
	yoke_autocast(half, "norm");
	yoke_scope *s = yoke_scope_begin("norm");
	yoke_autocast(half, "inner");
	product_in("inner");
	ok(!yoke_scope_end(s), "a scope that enabled casts ends %s", yoke_error());
	yoke_scope_begin("norm");
	yoke_use(former);
	yoke_context_free(ctx);
	ok(!yoke_error_code(), "a context with open scopes is freed %s", yoke_error());
}

// ---- gradients, and how often a weight is cast ----

static uint64_t launches(void)
{
	struct yoke_stats s = { .size = sizeof s };
	yoke_stats(&s);
	return s.launches;
}

// One weight in three products, the gradient by it.
static void weights(void)
{
	float got[N * N], want[N * N];
	yoke_tensor *w = yoke_variable("w", yoke_f32, 2, square), *g;
	uint64_t steps[2];
	for (int i = 0; i < N * N; i++)
		got[i] = (float)rnd_real(-1, 1);
	yoke_put(w, got, sizeof got);
	for (int mixed = 0; mixed < 2; mixed++) {
		yoke_scope *s = yoke_scope_begin("weights");
		yoke_tensor *x = yoke_from(yoke_f32, 2, square, got);
		if (mixed)
			yoke_autocast(half, NULL);
		for (int i = 0; i < 3; i++)
			x = yoke_matmul(x, w, 0);
		int err = yoke_grad(yoke_sum(x, YOKE_ALL), 1, &w, &g);
		ok(!err && yoke_dtype(g) == yoke_f32, "the gradient of an f32 variable is f32 %s",
		   yoke_error());
		uint64_t before = launches();
		yoke_read(g, mixed ? got : want, sizeof got);
		steps[mixed] = launches() - before;
		yoke_scope_end(s);
	}
	double a[N * N], b[N * N], max = 0;
	for (int i = 0; i < N * N; i++)
		a[i] = (double)got[i], b[i] = (double)want[i], max = fmax(max, fabs(b[i]));
	near(a, b, N * N, half == yoke_f16 ? 0.01 : 0.08, max, "and close to the f32 gradient");
	// x and w; the returned gradient is added to the sum of gradients
	ok(tap_eager() || steps[1] <= steps[0] + 2, "w is cast once: %d launches, %d in f32",
	   (int)steps[1], (int)steps[0]);
	yoke_free(w);
}

// Gradients by u, used in one product, and by v, used in two, in the second of two passes; the
// launches of both.
static void two_passes(bool hold, bool change, float (*x)[N * N], float (*got)[N * N],
		       uint64_t *count)
{
	yoke_tensor *w[] = { yoke_variable("u", yoke_f32, 2, square),
			     yoke_variable("v", yoke_f32, 2, square) },
		    *g[2];
	struct yoke_context *ctx = yk_current();
	bool good = true;
	for (int k = 0; k < 2; k++)
		yoke_put(w[k], x[k], sizeof *x);
	for (int pass = 0; pass < 2; pass++) {
		yoke_scope *s = yoke_scope_begin("pass");
		yoke_autocast(half, NULL);
		yoke_tensor *y = yoke_matmul(yoke_from(yoke_f32, 2, square, x[2 + pass]), w[0], 0);
		y = yoke_matmul(yoke_matmul(y, w[1], 0), w[1], 0);
		good &= !yoke_grad(yoke_sum(yoke_square(y), YOKE_ALL), 2, w, g);
		if (pass)
			yk_autocast_release(ctx);
		else if (hold)
			good &= !yk_autocast_hold(ctx);
		uint64_t before = launches();
		good &= !yoke_eval(2, g);
		count[pass] = launches() - before;
		for (int k = 0; k < 2; k++)
			good &= !yoke_read(g[k], got[k], sizeof *got);
		good &= !yoke_scope_end(s);
		if (change)
			yoke_put(w[0], x[3], sizeof *x);
	}
	ok(good, "two passes%s%s %s", hold ? ", casts are held" : "", change ? ", u changes" : "",
	   yoke_error());
	yoke_free(w[0]);
	yoke_free(w[1]);
}

static void held(void)
{
	float x[4][N * N], got[2][2][N * N];
	uint64_t count[2][2];
	for (int i = 0; i < 4 * N * N; i++)
		x[i / (N * N)][i % (N * N)] = (float)rnd_real(-1, 1);
	for (int change = 0; change < 2; change++) {
		for (int hold = 0; hold < 2; hold++)
			two_passes(hold, change, x, got[hold], count[hold]);
		ok(!memcmp(got[0], got[1], sizeof *got),
		   "gradients of both passes are equal, bit for bit");
		ok(tap_eager() ||
			   (count[1][0] == count[0][0] && count[1][1] == count[0][1] - !change),
		   "u is cast in the first pass%s: %d and %d launches, %d and %d if nothing is held",
		   change ? ", and as it changes in the second" : " alone", (int)count[1][0],
		   (int)count[1][1], (int)count[0][0], (int)count[0][1]);
	}
}

// ---- kernels that take half ----

enum kernel { SOFTMAX, LAYER, RMS, ENTROPY, ATTENTION, ROPE, ADAMW, KERNELS };

static uint64_t launched(enum kernel kind, int dtype)
{
	const int64_t four[] = { 1, N, 2, 4 }, table[] = { N, 2 };
	yoke_scope *s = yoke_scope_begin("kernel");
	yoke_tensor *x = yoke_variable("x", dtype, 2, square),
		    *q = yoke_variable("q", dtype, 4, four), *g[1];
	yoke_tensor *v = yoke_variable("v", yoke_f32, 1, square),
		    *c = yoke_variable("c", yoke_f32, 2, table);
	yoke_tensor *m = yoke_variable("m", yoke_f32, 2, square),
		    *u = yoke_variable("u", yoke_f32, 2, square);
	yoke_tensor *ids = yoke_variable("ids", yoke_i32, 1, square);
	yoke_tensor *all[] = { x, q, v, c, m, u, ids }, *y = NULL, *of = x, *lr = yoke_scalar(0.1);
	yoke_eval(7, all);
	uint64_t before = launches();
	yoke_autocast(dtype == yoke_f32 ? YOKE_DTYPE_NONE : dtype, NULL);
	if (kind == SOFTMAX)
		y = yoke_softmax(x, -1);
	else if (kind == LAYER)
		y = yoke_layer_norm(x, v, v, 1e-5);
	else if (kind == RMS)
		y = yoke_rms_norm(x, v, 1e-5);
	else if (kind == ENTROPY)
		y = yoke_cross_entropy(x, ids, -1, 0);
	else if (kind == ATTENTION)
		y = yoke_attention(of = q, q, q, YOKE_NONE, 1, 0, 0);
	else if (kind == ROPE)
		y = yoke_rope(of = q, c, c);
	if (kind == ADAMW) {
		yoke_adamw_step(1, &x, &x, &m, &u,
				&(struct yoke_adamw){ .size = sizeof(struct yoke_adamw),
						      .lr = lr,
						      .c1 = lr,
						      .c2 = lr,
						      .scale = YOKE_NONE,
						      .skip = YOKE_NONE });
		yoke_eval(0, NULL);
	} else {
		yoke_grad(kind == ENTROPY ? y : yoke_sum(y, YOKE_ALL), 1, &of, g);
		yoke_eval(2, (yoke_tensor *[]){ y, g[0] });
	}
	uint64_t n = launches() - before;
	ok(!yoke_scope_end(s), "kernel %d in %s %s", kind, yoke_dtype_name(dtype), yoke_error());
	for (int i = 0; i < 7; i++)
		yoke_free(all[i]);
	return n;
}

static void kernels(void)
{
	static const char *const names[KERNELS] = { "softmax",       "layer_norm", "rms_norm",
						    "cross_entropy", "attention",  "rope",
						    "adamw" };
	for (int k = 0; k < KERNELS; k++) {
		uint64_t single = launched((enum kernel)k, yoke_f32),
			 mixed = launched((enum kernel)k, half);
		ok(mixed == single, "%s, cast and back: %d launches in %s, %d in f32", names[k],
		   (int)mixed, yoke_dtype_name(half), (int)single);
	}
}

// Weights beyond f16 become its largest numbers in products, and get gradients of the right sign;
// weights within f16 keep their bits; an infinite one becomes NaN.
static void saturated(void)
{
	enum { W = 8 };
	const int64_t dims[] = { 1, W }, one[] = { 1, 1 };
	const float w[W] = { 1e6f, -7e4f, 65504, 65510, 3, -0.0f, 1e-7f, INFINITY }, x = 0.5f;
	float y[W], g[W];
	yoke_tensor *v = yoke_variable("w", yoke_f32, 2, dims), *dv;
	yoke_put(v, w, sizeof w);
	yoke_scope *s = yoke_scope_begin("saturated");
	yoke_autocast(half, NULL);
	yoke_tensor *p = yoke_matmul(yoke_from(yoke_f32, 2, one, &x), v, 0);
	yoke_autocast(YOKE_DTYPE_NONE, NULL);
	yoke_tensor *to = yoke_cast(p, yoke_f32);
	yoke_grad(yoke_sum(yoke_slice(to, 1, 0, W - 1, 1), YOKE_ALL), 1, &v, &dv);
	bool good = !yoke_read(to, y, sizeof y) && !yoke_read(dv, g, sizeof g);
	for (int i = 0; i < W - 1; i++) {
		const float max = half == yoke_f16 ? 65504 : INFINITY,
			    c = fminf(fmaxf(w[i], -max), max);
		const double want = x * (double)c, near = half == yoke_f16 ? 0x1p-11 : 0x1p-8;
		good = good && fabs(y[i] - want) <= near * fabs(want) + 0x1p-25 && g[i] > 0 &&
		       g[i] <= x && (fabsf(w[i]) > max || g[i] == x);
	}
	good = good && !isfinite(y[W - 1]);
	ok(good && !yoke_scope_end(s),
	   "%s: weights of 1e6, -7e4, 65504, 65510 give %g %g %g %g, gradients %g %g: %s",
	   yoke_dtype_name(half), (double)y[0], (double)y[1], (double)y[2], (double)y[3],
	   (double)g[0], (double)g[4], yoke_error());
	yoke_error_clear();
	yoke_free(v);
}

int main(void)
{
	tap_seed();
	yoke_random_set(tap_seed_value(), 0);
	column();
	for (half = yoke_f16; half <= yoke_bf16; half++) {
		calls();
		numbers();
		scopes();
		left_open();
		weights();
		held();
		saturated();
		if (!tap_eager())
			kernels();
	}
	return done();
}
