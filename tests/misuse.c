// SPDX-License-Identifier: Apache-2.0
// Tests calls with invalid operands: each is refused when it is recorded, with the error code and
// the op's name in one line, creates nothing, and leaves the context usable.
#include "config.h"

#include "graph/context.h"
#include "tap.h"
#include "yoke.h"

static yoke_tensor *x, *y, *row, *cube, *vec, *flat, *wide, *yes, *ids, *row_ids, *whole, *dbl,
	*one;
static const int64_t d23[] = { 2, 3 }, d2[] = { 2 }, d3[] = { 3 }, d33[] = { 3, 3 }, d4[] = { 4 },
		     d222[] = { 2, 2, 2 }, d2342[] = { 2, 3, 4, 2 }, negative[] = { -2, 3 },
		     crowd[] = { INT64_MAX / 2, 3 }, hollow[] = { INT64_MAX, INT64_MAX, 0 },
		     half[] = { INT64_MAX / 2 + 1 };

// Checks one call; failed: the call returned an error.
static void judge(const char *call, bool failed, int code, const char *name)
{
	// the line begins with the call: "cov in misuse: ..", not with an op of its decomposition
	const char *line = yoke_error(), *public = strstr(call, "yoke_") + 5;
	size_t n = strcspn(public, "(");
	bool named = !strncmp(line, public, n) && (line[n] == ':' || line[n] == ' ');
	if (!strncmp(public, "setting_set", n))
		named = true;
	bool good = failed && yoke_error_code() == code && strstr(line, name) && named &&
		    !strchr(line, '\n');

	ok(good, "%s: %s", call, line);
	if (!good)
		diag("wanted %s with '%s', got %s", yoke_error_name(code), name,
		     yoke_error_name(yoke_error_code()));
	yoke_error_clear();
}

#define NONE(call, code, name) judge(#call, !(call), YOKE_##code, name)
#define FAIL(call, code, name) judge(#call, (call) == YOKE_##code, YOKE_##code, name)

static void of_maps(void)
{
	NONE(yoke_add(x, flat), ESHAPE, "add");
	NONE(yoke_add(x, whole), EDTYPE, "add");
	NONE(yoke_add(yes, yes), EDTYPE, "add");
	NONE(yoke_exp(whole), EDTYPE, "exp");
	NONE(yoke_and(x, x), EDTYPE, "and");
	NONE(yoke_select(x, x, x), EDTYPE, "select");
	NONE(yoke_select(yes, x, dbl), EDTYPE, "select");
	NONE(yoke_cast(x, 77), EDTYPE, "cast");
	NONE(yoke_dropout(x, 1), ERANGE, "dropout");
	NONE(yoke_dropout(x, -0.5), ERANGE, "dropout");
	NONE(yoke_dropout(x, NAN), ERANGE, "dropout");
	NONE(yoke_rand_bits(9, d2342), ESHAPE, "rank 9");
	NONE(yoke_uniform(yoke_i32, 1, d2), EDTYPE, "uniform");
	NONE(yoke_iota(yoke_i64, 2, d23, 2), ERANGE, "no axis 2 in i64 [2,3]");
	NONE(yoke_iota(77, 2, d23, 0), EDTYPE, "77");
	NONE(yoke_iota(yoke_i64, 9, d2342, 0), ESHAPE, "rank 9");
	NONE(yoke_full(99, 1, d2, 0), EDTYPE, "99");
	NONE(yoke_full(yoke_f32, 2, negative, 0), ESHAPE, "negative");
	NONE(yoke_full(yoke_f32, 2, crowd, 0), ESHAPE, "too many elements");
	NONE(yoke_full(yoke_f32, 3, hollow, 0), ESHAPE, "too many elements");
	NONE(yoke_add(NULL, x), EINVAL, "NULL");
}

static void of_literals(void)
{
	static const int64_t zero[] = { 0, 0 };
	NONE(yoke_add(whole, yoke_const(0.5)), ERANGE, "0.5 is no number of i32");
	NONE(yoke_mul(whole, yoke_const(3e9)), ERANGE, "3e+09 is no number of i32");
	NONE(yoke_eq(yes, yoke_const(2)), ERANGE, "2 is no number of bool");
	NONE(yoke_clamp(whole, yoke_const(-INFINITY), YOKE_NONE), ERANGE, "-inf");
	NONE(yoke_full(yoke_i8, 1, d2, 300), ERANGE, "300 is no number of i8");
	NONE(yoke_full(yoke_i8, 1, d2, 128), ERANGE, "128");
	NONE(yoke_full(yoke_u8, 1, d2, -1), ERANGE, "u8");
	NONE(yoke_full(yoke_i64, 1, d2, 0x1p63), ERANGE, "i64");
	NONE(yoke_full(yoke_i32, 1, d2, NAN), ERANGE, "nan");
	NONE(yoke_pad(whole, zero, zero, 1.25), ERANGE, "1.25");
	NONE(yoke_slice_at(x, (yoke_tensor *[]){ yoke_const(0.5), YOKE_NONE }, d23), ERANGE, "0.5");
	ok(yoke_full(yoke_i8, 1, d2, -128) && yoke_full(yoke_u8, 1, d2, 255) &&
		   yoke_full(yoke_i64, 1, d2, -0x1p63) && yoke_eq(yes, yoke_const(1)) &&
		   yoke_add(x, yoke_const(0.5)) && yoke_full(yoke_f16, 1, d2, 1e9),
	   "valid operands are accepted: %s", yoke_error());
}

// Host scalars are checked by the evaluation that reads them, which then has no effect.
static void of_scalars(void)
{
	static const struct {
		int dtype;
		double bad, good;
	} rows[] = {
		{ yoke_u8, 300, 245 },    { yoke_u8, -1, 0 },         { yoke_u8, 1.5, 1 },
		{ yoke_i8, 128, 127 },    { yoke_i32, NAN, -7 },      { yoke_i32, 0x1p31, 5 },
		{ yoke_i64, 0x1p63, -3 }, { yoke_i64, -INFINITY, 9 }, { yoke_bool, 0.5, 1 },
		{ yoke_bool, 2, 0 },
	};
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		const int dtype = rows[k].dtype;
		double got = NAN;
		yoke_scope *s = yoke_scope_begin("scalars");
		yoke_tensor *n = yoke_scalar(rows[k].bad), *v = yoke_full(dtype, 0, NULL, 1);
		yoke_tensor *sum =
			yoke_cast(dtype == yoke_bool ? yoke_xor(v, n) : yoke_add(v, n), yoke_f64);
		const int err = yoke_read(sum, &got, sizeof got);
		ok(err == YOKE_ERANGE && isnan(got), "%s 1 with the host scalar %g: %s",
		   yoke_dtype_name(dtype), rows[k].bad, yoke_error());
		yoke_error_clear();
		yoke_scalar_set(n, rows[k].good);
		const bool read = yoke_read(sum, &got, sizeof got) == 0;
		const double want = dtype == yoke_bool ? 1 - rows[k].good :
				    dtype == yoke_i8 && rows[k].good == 127 ? -128 :
				    1 + rows[k].good;
		ok(read && got == want, "%s 1 with the host scalar %g, then %g: %g, want %g: %s",
		   yoke_dtype_name(dtype), rows[k].bad, rows[k].good, got, want, yoke_error());
		yoke_error_clear();
		yoke_scope_end(s);
	}
	yoke_scope *s = yoke_scope_begin("scalars");
	float got = 0;
	yoke_tensor *v = yoke_mul(yoke_full(yoke_f32, 0, NULL, 2), yoke_scalar(NAN));
	ok(yoke_read(v, &got, sizeof got) == 0 && isnan(got),
	   "a floating-point host scalar may be NaN: %s", yoke_error());
	yoke_scope_end(s);
}

static void of_reductions(void)
{
	NONE(yoke_sum(x, 1u << 2), ERANGE, "no axis 2 in f32 [2,3]");
	NONE(yoke_sum(x, 1u << 5 | 1), ERANGE, "no axis 5 in f32 [2,3]");
	NONE(yoke_sum(x, 0x401), EINVAL, "0x400");
	NONE(yoke_prod(x, 0x200), EINVAL, "0x200");
	NONE(yoke_reduce_max(x, 0x200), EINVAL, "0x200");
	NONE(yoke_mean(x, 0x200), EINVAL, "0x200");
	NONE(yoke_mean(x, 8), ERANGE, "no axis 3 in f32 [2,3]");
	NONE(yoke_var(x, 0x200, 1), EINVAL, "0x200");
	NONE(yoke_std(x, 4, 1), ERANGE, "no axis 2");
	NONE(yoke_std(whole, 1, 1), EDTYPE, "i32 [2,3]");
	NONE(yoke_norm(x, 2, 0x200), EINVAL, "0x200");
	NONE(yoke_norm(x, NAN, 1), EINVAL, "NaN");
	NONE(yoke_any(yes, 0x200), EINVAL, "0x200");
	NONE(yoke_all(yes, 4), ERANGE, "no axis 2 in bool [2,3]");
	NONE(yoke_argmax(x, 2), ERANGE, "argmax");
	NONE(yoke_argmax(x, -3), ERANGE, "argmax");
	NONE(yoke_mean(whole, 1), EDTYPE, "mean");
	NONE(yoke_any(x, 1), EDTYPE, "any");
	NONE(yoke_cumsum(x, 5, 0), ERANGE, "cumsum");
	NONE(yoke_cumsum(one, 0, 0), ERANGE, "cumsum");
	NONE(yoke_sort(x, 4, 0, NULL), ERANGE, "sort");
	NONE(yoke_topk(x, 9, 1, 1, NULL), ERANGE, "9 of 3");
	NONE(yoke_topk(x, -1, 1, 1, NULL), ERANGE, "-1 of 3");
	NONE(yoke_quantile(x, vec, 3), ERANGE, "no axis 3 in f32 [2,3]");
	NONE(yoke_quantile(x, yoke_const(1.5), 1), ERANGE, "1.5 is not in 0..1");
	NONE(yoke_quantile(x, yoke_const(-0.1), 1), ERANGE, "-0.1");
	NONE(yoke_quantile(x, yoke_const(NAN), 1), ERANGE, "nan");
	NONE(yoke_quantile(x, ids, 1), ESHAPE, "i64 [2]");
	NONE(yoke_histogram(x, 0, 0, 1), ERANGE, "histogram");
	NONE(yoke_histogram(x, 4, 1, 1), ERANGE, "histogram");
	NONE(yoke_cov(vec, 1), ESHAPE, "cov");
	NONE(yoke_check_finite(whole), EDTYPE, "check_finite");
}

static void of_products(void)
{
	NONE(yoke_matmul(x, x, 0), ESHAPE, "matmul");
	NONE(yoke_matmul(x, dbl, YOKE_TB), EDTYPE, "matmul");
	NONE(yoke_matmul(yes, yes, YOKE_TB), EDTYPE, "takes numbers");
	NONE(yoke_matmul(x, one, 0), ESHAPE, "matmul");
	NONE(yoke_matmul(vec, x, 0), ESHAPE, "matmul");
	NONE(yoke_linear(x, y, YOKE_NONE), ESHAPE, "f32 [3,2]");
	NONE(yoke_linear(x, yoke_slice(x, 0, 0, 1, 1), vec), ESHAPE, "f32 [1,3] and f32 [2]");
	NONE(yoke_linear(x, x, dbl), ESHAPE, "b [N]");
	NONE(yoke_linear(x, x, one), ESHAPE, "b [N]");
	NONE(yoke_matmul(x, y, 8), EINVAL, "0x8");
	NONE(yoke_matmul(x, y, YOKE_TB | 0x100), EINVAL, "0x102");
	NONE(yoke_matmul_to(x, y, 16, yoke_f32), EINVAL, "0x10");
	NONE(yoke_matmul_to(x, y, 0, yoke_f64), EDTYPE, "of f32 the result is f32, or f32 of f16");
	NONE(yoke_matmul_to(yoke_cast(x, yoke_f16), yoke_cast(y, yoke_f16), 0, yoke_bf16), EDTYPE,
	     "not bf16");
	NONE(yoke_matmul_to(whole, whole, YOKE_TB, yoke_f32), EDTYPE, "matmul_to");
	NONE(yoke_matmul_to(x, y, 0, 99), EDTYPE, "matmul_to");
	NONE(yoke_matmul_to(x, y, 0, yoke_i32), EDTYPE, "i32 of i8 and u8, not i32");
	NONE(yoke_linear(x, x, flat), ESHAPE, "b [N]");
}

static void of_moves(void)
{
	static const int twice[] = { 0, 0 };
	static const int64_t minus[] = { -1, 0 }, zero[] = { 0, 0 }, far[] = { 0, 2 };
	yoke_tensor *long_one = yoke_full(yoke_i8, 1, half, 0);

	NONE(yoke_reshape(x, 1, d4), ESHAPE, "reshape");
	NONE(yoke_reshape(x, 2, (int64_t[]){ 4, -1 }), ESHAPE, "reshape");
	NONE(yoke_reshape(x, 9, d2342), ESHAPE, "reshape");
	NONE(yoke_permute(x, twice), ESHAPE, "permute");
	NONE(yoke_broadcast_to(x, 2, d33), ESHAPE, "broadcast");
	NONE(yoke_broadcast_to(x, 1, d3), ESHAPE, "broadcast");
	NONE(yoke_slice(x, 2, 0, 1, 1), ERANGE, "slice");
	NONE(yoke_slice(x, 0, 0, 3, 1), ERANGE, "slice");
	NONE(yoke_slice(x, 0, 0, 2, 0), ERANGE, "slice");
	NONE(yoke_pad(x, minus, zero, 0), ESHAPE, "pad");
	NONE(yoke_concat(0, NULL, 0), EINVAL, "concat");
	NONE(yoke_concat(2, (yoke_tensor *[]){ x, y }, 0), ESHAPE, "concat");
	NONE(yoke_concat(2, (yoke_tensor *[]){ x, dbl }, 0), EDTYPE, "concat");
	NONE(yoke_concat(2, (yoke_tensor *[]){ x, x }, 2), ERANGE, "concat");
	NONE(yoke_concat(2, (yoke_tensor *[]){ long_one, long_one }, 0), ESHAPE, "concat");
	NONE(yoke_cast(long_one, yoke_f64), ESHAPE, "cast");
	NONE(yoke_reshape(yoke_full(yoke_f32, 1, zero, 0), 3, hollow), ESHAPE, "reshape");
	NONE(yoke_flip(x, 1u << 3), ERANGE, "no axis 3 in f32 [2,3]");
	NONE(yoke_flip(x, 1 | YOKE_KEEP), EINVAL, "0x100");
	NONE(yoke_slice(x, 1, 0, 9, 1), ERANGE, "0 to 9 by 1 along axis 1 of f32 [2,3]");
	NONE(yoke_slice_update(x, far, x), ERANGE, "slice_update");
	NONE(yoke_slice_update(x, zero, dbl), EDTYPE, "slice_update");
	NONE(yoke_slice_update(x, zero, vec), ESHAPE, "slice_update");
	NONE(yoke_slice_at(YOKE_NONE, NULL, d23), EINVAL, "NULL");
	NONE(yoke_slice_update_at(x, (yoke_tensor *[]){ YOKE_NONE, YOKE_NONE }, vec), ESHAPE,
	     "slice_update_at");
	NONE(yoke_gather(x, x, 0), EDTYPE, "gather");
	NONE(yoke_gather(x, ids, 2), ERANGE, "gather");
	NONE(yoke_scatter_add(x, ids, dbl), EDTYPE, "scatter_add");
	NONE(yoke_scatter_add(x, row_ids, y), ESHAPE, "scatter_add");
	NONE(yoke_scatter_add(yes, ids, yes), EDTYPE, "scatter_add");
	NONE(yoke_take_along(x, ids, 1), ESHAPE, "take_along");
	NONE(yoke_take_along(x, x, 1), EDTYPE, "take_along");
	NONE(yoke_take_along(one, ids, 0), ERANGE, "take_along");
}

static void of_named(void)
{
	NONE(yoke_softmax(one, -1), ESHAPE, "softmax");
	NONE(yoke_softmax(whole, -1), EDTYPE, "softmax");
	NONE(yoke_logsumexp(one, -1), ESHAPE, "logsumexp");
	NONE(yoke_softmax(x, 2), ERANGE, "softmax");
	NONE(yoke_log_softmax(x, -3), ERANGE, "no axis -3 in f32 [2,3]");
	NONE(yoke_logsumexp(x, 2), ERANGE, "no axis 2");
	NONE(yoke_layer_norm(x, flat, YOKE_NONE, 1e-5), ESHAPE, "layer_norm");
	NONE(yoke_layer_norm(x, row, dbl, 1e-5), EDTYPE, "layer_norm");
	NONE(yoke_layer_norm(one, YOKE_NONE, YOKE_NONE, 1e-5), ESHAPE, "layer_norm");
	NONE(yoke_rms_norm(whole, YOKE_NONE, 1e-5), EDTYPE, "rms_norm");
	NONE(yoke_rms_norm(x, flat, 1e-5), ESHAPE, "rms_norm");
	NONE(yoke_rope(x, x, x), ESHAPE, "rope");
	NONE(yoke_rope(wide, dbl, dbl), EDTYPE, "rope");
	NONE(yoke_embedding(x, x), EDTYPE, "i32 or i64");
	NONE(yoke_embedding(cube, ids), ESHAPE, "w is [N,C], got f32 [2,2,2]");
	NONE(yoke_embedding(vec, ids), ESHAPE, "f32 [2]");
	NONE(yoke_attention(x, x, x, YOKE_NONE, 1, 0, 0), ESHAPE, "attention");
	NONE(yoke_attention(wide, wide, dbl, YOKE_NONE, 1, 0, 0), EDTYPE, "attention");
	NONE(yoke_attention(wide, wide, wide, YOKE_NONE, 1, 0, 1), ERANGE, "attention");
	NONE(yoke_attention(wide, wide, wide, x, 1, 0, 0), ESHAPE, "the mask is [B|1,H|1,T,S]");
	NONE(yoke_attention(wide, wide, wide, yoke_gt(wide, wide), 1, 0, 0), ESHAPE,
	     "the mask is [B|1,H|1,T,S]");
	NONE(yoke_attention(wide, wide, wide, yoke_cast(wide, yoke_i64), 1, 0, 0), EDTYPE,
	     "i64 [2,3,4,2]");
	NONE(yoke_attention_keys(wide, wide, wide, x, YOKE_NONE, 1, 0, 0), EDTYPE, "attention");
	NONE(yoke_attention_keys(wide, wide, wide, yoke_cast(flat, yoke_i64), YOKE_NONE, 1, 0, 0),
	     ESHAPE, "one for each of the batch: got");
	yoke_tensor *w = yoke_slice(flat, 0, 0, 3, 1), *x16 = yoke_cast(x, yoke_f16);
	NONE(yoke_layer_norm(x, w, yoke_cast(w, yoke_f64), 1e-5), EDTYPE, "f32 [3] and f64 [3]");
	NONE(yoke_layer_norm(x16, w, yoke_cast(w, yoke_f16), 1e-5), EDTYPE, "f32 [3] and f16 [3]");
	NONE(yoke_rms_norm(x, yoke_cast(w, yoke_f16), 1e-5), EDTYPE, "f32 [3] and f16 [3]");
	NONE(yoke_rms_norm(x16, yoke_cast(w, yoke_bf16), 1e-5), EDTYPE, "f16 [3] and bf16 [3]");
	NONE(yoke_cross_entropy(x, row_ids, -1, 0), ESHAPE, "cross_entropy");
	NONE(yoke_cross_entropy(x, vec, -1, 0), EDTYPE, "cross_entropy");
	NONE(yoke_cross_entropy(cube, ids, -1, 0), ESHAPE, "cross_entropy");
	NONE(yoke_cross_entropy(x, ids, -1, 1.5), ERANGE, "cross_entropy");
	NONE(yoke_mse(x, y), ESHAPE, "f32 [3,2]");
	NONE(yoke_mse(x, dbl), EDTYPE, "f64 [2,3]");
	NONE(yoke_swiglu(x, dbl), EDTYPE, "f64 [2,3]");
	NONE(yoke_kl(x, dbl), EDTYPE, "f64 [2,3]");
	NONE(yoke_bce_logits(x, dbl), EDTYPE, "f64 [2,3]");
	NONE(yoke_bce_logits(x, y), ESHAPE, "f32 [3,2]");
	NONE(yoke_gelu(whole), EDTYPE, "i32");
	NONE(yoke_gelu_tanh(yes), EDTYPE, "bool");
	NONE(yoke_mse(whole, whole), EDTYPE, "i32");
	NONE(yoke_swiglu(whole, whole), EDTYPE, "i32");
	NONE(yoke_dropout(whole, 0.5), EDTYPE, "i32");
	NONE(yoke_silu(whole), EDTYPE, "i32");
}

static void of_leaves(void)
{
	float f[6] = { 0 };

	NONE(yoke_variable("v", 42, 1, d2), EDTYPE, "42");
	NONE(yoke_variable("v", yoke_f32, 1, negative), ESHAPE, "negative");
	NONE(yoke_variable("v", yoke_f32, 9, d2342), ESHAPE, "rank 9");
	NONE(yoke_variable("v", yoke_f32, 3, hollow), ESHAPE, "too many bytes");
	NONE(yoke_from(yoke_f32, 2, d23, NULL), EINVAL, "from");
	FAIL(yoke_put(x, f, 5), ESHAPE, "put");
	FAIL(yoke_put(NULL, f, sizeof f), EINVAL, "put");
	FAIL(yoke_put(one, f, sizeof f), EINVAL, "put");
	FAIL(yoke_assign(x, dbl), EDTYPE, "assign");
	FAIL(yoke_assign(x, y), ESHAPE, "assign");
	FAIL(yoke_assign(x, YOKE_NONE), EINVAL, "assign");
	FAIL(yoke_assign(one, one), EINVAL, "assign");
	FAIL(yoke_scalar_set(x, 1), EINVAL, "scalar");
	FAIL(yoke_scalar_set(NULL, 1), EINVAL, "scalar");
	FAIL(yoke_read(x, f, 3), ESHAPE, "read");
	FAIL(yoke_read(x, NULL, sizeof f), EINVAL, "read");
	FAIL(yoke_eval(1, (yoke_tensor *[]){ NULL }), EINVAL, "an operand is NULL");
	FAIL(yoke_scope_end(NULL), EINVAL, "scope_end");
}

static void of_lists(void)
{
	yoke_tensor *p[2] = { x, y }, *g[2] = { x, y }, *bad[2] = { x, x }, *other[2] = { dbl, y };
	yoke_tensor *got[2], *over, *loss = yoke_mean(x, YOKE_ALL);
	struct yoke_adamw adamw = { .size = sizeof adamw,
				    .lr = one, .c1 = one, .c2 = one, .scale = YOKE_NONE };
	struct yoke_sgd plain = { .size = sizeof plain,
				  .lr = one,
				  .first = YOKE_NONE,
				  .scale = YOKE_NONE },
			heavy = plain;
	heavy.momentum = 0.9;

	FAIL(yoke_grad(NULL, 1, p, got), EINVAL, "NULL");
	FAIL(yoke_grad(x, 1, p, got), ESHAPE, "grad");
	FAIL(yoke_grad(loss, 0, p, got), EINVAL, "grad");
	FAIL(yoke_grad(ids, 1, p, got), ESHAPE, "grad");
	FAIL(yoke_sgd_step(2, p, bad, NULL, &plain), ESHAPE, "shapes differ");
	FAIL(yoke_sgd_step(2, p, other, NULL, &plain), EDTYPE, "dtypes differ");
	FAIL(yoke_sgd_step(2, p, g, NULL, &heavy), EINVAL, "sgd_step");
	plain.lr = vec;
	FAIL(yoke_sgd_step(2, p, g, NULL, &plain), ESHAPE, "lr");
	plain.lr = one, plain.scale = ids;
	FAIL(yoke_sgd_step(2, p, g, NULL, &plain), ESHAPE, "scale");
	FAIL(yoke_adamw_step(2, p, NULL, p, p, &adamw), EINVAL, "list 1");
	FAIL(yoke_adamw_step(2, p, g, p, NULL, &adamw), EINVAL, "list 3");
	adamw.c2 = vec;
	FAIL(yoke_adamw_step(2, p, g, p, p, &adamw), ESHAPE, "c2");
	FAIL(yoke_unscale_check(2, p, vec, got, &over), ESHAPE, "scale");
	FAIL(yoke_sgd_step(0, p, g, NULL, &plain), EINVAL, "sgd_step");
	NONE(yoke_global_norm(0, NULL), EINVAL, "global_norm");
	FAIL(yoke_barrier(1, p, -1, NULL, got), EINVAL, "barrier");
}

// Structs begin with their size: a size that no version has is an error by name, a shorter struct
// has defaults for the rest, and bytes after a longer struct are not read.
static void of_sizes(void)
{
	static const float two[6] = { 2, 2, 2, 2, 2, 2 };
	float got[6];
	yoke_tensor *v = yoke_variable("v", yoke_f32, 2, d23);
	struct yoke_sgd sgd = {
		.lr = one, .first = YOKE_NONE, .scale = YOKE_NONE, .weight_decay = 1
	};
	struct {
		struct yoke_fallback known;
		char more[16];
	} fell[2] = { { .known.size = 0 } };
	struct yoke_stats stats = { .size = 0 };

	FAIL(yoke_sgd_step(1, &v, &v, NULL, &sgd), EINVAL, "set size to sizeof(struct yoke_sgd)");
	FAIL(yoke_sgd_step(1, &v, &v, NULL, NULL), EINVAL, "yoke_sgd is NULL");
	FAIL(yoke_adamw_step(1, &v, &v, &v, &v, &(struct yoke_adamw){ .lr = one }), EINVAL,
	     "set size to sizeof(struct yoke_adamw)");
	FAIL(yoke_lamb_step(1, &v, &v, &v, &v, &(struct yoke_lamb){ .lr = one }), EINVAL,
	     "set size to sizeof(struct yoke_lamb)");
	FAIL(yoke_stats(&stats), EINVAL, "set size");
	FAIL(yoke_fallbacks(2, &fell[0].known), EINVAL, "set size");

	// v - (2 v + decay v), with decay 0 if the caller's struct lacks it
	static const size_t size[] = { offsetof(struct yoke_sgd, weight_decay), sizeof sgd, 4096 };
	for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
		sgd.size = size[i];
		yoke_put(v, two, sizeof two);
		yoke_tensor *g = yoke_mul(v, yoke_const(2));
		int err = yoke_sgd_step(1, &v, &g, NULL, &sgd);
		err = err ? err : yoke_read(v, got, sizeof got);
		ok(!err && got[5] == (i < 1 ? -2 : -4), "a struct of %zu bytes: %g", size[i],
		   got[5]);
	}
	static const size_t none[] = { 1, sizeof(size_t),
				       offsetof(struct yoke_sgd, weight_decay) + 4, (1 << 16) + 8,
				       SIZE_MAX };
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		sgd.size = none[i];
		FAIL(yoke_sgd_step(1, &v, &v, NULL, &sgd), EINVAL,
		     "set size to sizeof(struct yoke_sgd)");
	}
	fell[0].known.size = sizeof *fell;
	memset(fell[1].more, 7, sizeof fell[1].more);
	ok(yoke_fallbacks(2, &fell[0].known) == 0 && yoke_fallbacks(0, NULL) == 0 &&
		   fell[1].more[15] == 7,
	   "nothing fell back");
	yoke_free(v);
}

// A step over a list with a later tensor that is not a variable assigns none of them.
static void of_half_a_list(void)
{
	static const float two[6] = { 2, 2, 2, 2, 2, 2 };
	float got[6] = { NAN };
	yoke_tensor *v = yoke_variable("v", yoke_f32, 2, d23);
	yoke_put(v, two, sizeof two);
	yoke_tensor *p[2] = { v, yoke_neg(v) }, *g[2] = { v, v };
	struct yoke_sgd sgd = { .size = sizeof sgd,
				.lr = one, .first = YOKE_NONE, .scale = YOKE_NONE };

	FAIL(yoke_sgd_step(2, p, g, NULL, &sgd), EINVAL, "tensor 1 of list 0 is no variable");
	ok(!yoke_read(v, got, sizeof got) && got[0] == 2, "the first variable is unchanged: %g",
	   got[0]);
	// one variable twice: one of two new values would be lost
	yoke_tensor *w = yoke_variable("w", yoke_f32, 2, d23), *twice[] = { v, w, v },
		    *once[] = { v, w }, *three[] = { v, v, v };
	struct yoke_sgd heavy = {
		.size = sizeof heavy, .lr = one, .first = one, .scale = YOKE_NONE, .momentum = 0.5
	};
	struct yoke_adamw adamw = {
		.size = sizeof adamw, .lr = one, .c1 = one, .c2 = one, .scale = YOKE_NONE
	};
	struct yoke_lamb lamb = {
		.size = sizeof lamb, .lr = one, .c1 = one, .c2 = one, .scale = YOKE_NONE
	};
	FAIL(yoke_sgd_step(3, twice, three, NULL, &sgd), EINVAL, "variable v is given twice");
	FAIL(yoke_sgd_step(1, once, three, once, &heavy), EINVAL, "variable v is given twice");
	FAIL(yoke_adamw_step(2, once, three, once, once, &adamw), EINVAL, "is given twice");
	FAIL(yoke_lamb_step(1, once, three, twice + 1, once, &lamb), EINVAL,
	     "variable v is given twice");
	ok(!yoke_read(v, got, sizeof got) && got[0] == 2, "and nothing is assigned: %g", got[0]);
	yoke_free(w);
	yoke_free(v);
}

// A failing call returns its own error code, whatever earlier error has not been cleared.
static void of_second_errors(void)
{
	float f[6];
	yoke_tensor *inner = yoke_neg(x), *outer = yoke_exp(inner), *got[1];

	yoke_read(outer, f, sizeof f);
	yoke_add(x, flat);
	ok(yoke_error_code() == YOKE_ESHAPE, "an error that stays: %s", yoke_error());
	int err[] = { yoke_assign(x, inner),
		      yoke_assign(x, dbl),
		      yoke_read(inner, f, sizeof f),
		      yoke_eval(1, &inner),
		      yoke_grad(yoke_mean(x, YOKE_ALL), 1, &inner, got),
		      yoke_put(x, NULL, sizeof f),
		      yoke_read(x, f, 1),
		      yoke_sgd_step(1, &x, &x, NULL,
				    &(struct yoke_sgd){ .size = sizeof(struct yoke_sgd),
							.momentum = 1 }) };
	static const int want[] = { 0,		 YOKE_EDTYPE, 0, 0, 0, YOKE_ESHAPE,
				    YOKE_ESHAPE, YOKE_EINVAL };
	for (size_t i = 0; i < sizeof err / sizeof *err; i++)
		ok(err[i] == want[i], "call %zu after it: %s, wanted %s", i,
		   yoke_error_name(err[i]), yoke_error_name(want[i]));
	ok(yoke_error_code() == YOKE_ESHAPE, "the first error is kept: %s", yoke_error());
	yoke_error_clear();
}

// Absent operands that are not optional: YOKE_NONE, and NULL, which stands for an earlier error.
static void of_absent(yoke_tensor *none, const char *word)
{
	static const int64_t zero[] = { 0, 0 };
	yoke_tensor *some[] = { x, none }, *got[2], *start[] = { one, one };
	struct yoke_sgd sgd = { .size = sizeof sgd,
				.lr = none, .first = YOKE_NONE, .scale = YOKE_NONE };
	struct yoke_sgd heavy = { .size = sizeof heavy,
				  .lr = one, .first = none, .scale = YOKE_NONE, .momentum = 0.9 };
	struct yoke_adamw adamw = { .size = sizeof adamw,
				    .lr = none, .c1 = one, .c2 = one, .scale = YOKE_NONE };

	NONE(yoke_exp(none), EINVAL, "operand");
	NONE(yoke_embedding(x, none), EINVAL, word);
	NONE(yoke_topk(none, 1, 0, 1, NULL), EINVAL, "operand");
	NONE(yoke_add(x, none), EINVAL, word);
	NONE(yoke_add(none, x), EINVAL, word);
	NONE(yoke_and(yes, none), EINVAL, word);
	NONE(yoke_select(none, x, x), EINVAL, none ? "operand 0" : word);
	NONE(yoke_select(yes, none, x), EINVAL, none ? "operand 1" : word);
	NONE(yoke_select(yes, x, none), EINVAL, word);
	NONE(yoke_clamp(none, one, one), EINVAL, word);
	NONE(yoke_mse(x, none), EINVAL, word);
	NONE(yoke_mse(none, x), EINVAL, word);
	NONE(yoke_kl(x, none), EINVAL, word);
	NONE(yoke_kl(none, x), EINVAL, word);
	NONE(yoke_bce_logits(x, none), EINVAL, word);
	NONE(yoke_bce_logits(none, x), EINVAL, word);
	NONE(yoke_matmul(x, none, 0), EINVAL, word);
	NONE(yoke_matmul(none, x, 0), EINVAL, word);
	NONE(yoke_linear(x, none, YOKE_NONE), EINVAL, word);
	NONE(yoke_linear(none, x, flat), EINVAL, word);
	NONE(yoke_concat(2, some, 0), EINVAL, word);
	NONE(yoke_gather(x, none, 0), EINVAL, word);
	NONE(yoke_gather(none, ids, 0), EINVAL, word);
	NONE(yoke_scatter_add(none, ids, x), EINVAL, word);
	NONE(yoke_scatter_add(x, none, x), EINVAL, word);
	NONE(yoke_scatter_add(x, ids, none), EINVAL, word);
	NONE(yoke_scatter_add_along(none, ids, x, 0), EINVAL, word);
	NONE(yoke_scatter_add_along(x, none, x, 0), EINVAL, word);
	NONE(yoke_scatter_add_along(x, ids, none, 0), EINVAL, word);
	NONE(yoke_take_along(x, none, 0), EINVAL, word);
	NONE(yoke_take_along(none, ids, 0), EINVAL, word);
	NONE(yoke_slice_update(none, zero, x), EINVAL, word);
	NONE(yoke_slice_update(x, zero, none), EINVAL, word);
	NONE(yoke_slice_at(none, start, d23), EINVAL, "operand");
	NONE(yoke_slice_update_at(x, start, none), EINVAL, word);
	NONE(yoke_slice_update_at(none, start, x), EINVAL, word);
	NONE(yoke_quantile(none, one, 0), EINVAL, "operand");
	NONE(yoke_swiglu(x, none), EINVAL, word);
	NONE(yoke_swiglu(none, x), EINVAL, word);
	NONE(yoke_rope(none, x, x), EINVAL, word);
	NONE(yoke_rope(wide, none, x), EINVAL, word);
	NONE(yoke_rope(wide, x, none), EINVAL, word);
	NONE(yoke_layer_norm(none, row, row, 1e-5), EINVAL, word);
	NONE(yoke_rms_norm(none, row, 1e-5), EINVAL, word);
	NONE(yoke_attention(none, wide, wide, YOKE_NONE, 1, 0, 0), EINVAL, word);
	NONE(yoke_attention(wide, none, wide, YOKE_NONE, 1, 0, 0), EINVAL, word);
	NONE(yoke_attention(wide, wide, none, YOKE_NONE, 1, 0, 0), EINVAL, word);
	NONE(yoke_cross_entropy(x, none, -1, 0), EINVAL, word);
	NONE(yoke_cross_entropy(none, ids, -1, 0), EINVAL, word);
	FAIL(yoke_assign(x, none), EINVAL, "");
	FAIL(yoke_assign(none, x), EINVAL, "assign");
	got[0] = got[1] = x;
	FAIL(yoke_grad(none, 1, some, got), EINVAL, "");
	ok(!got[0] && got[1] == x, "a gradient that was not computed is NULL");
	FAIL(yoke_sgd_step(1, &x, &none, NULL, &sgd), EINVAL, "");
	FAIL(yoke_sgd_step(1, &x, &x, NULL, &sgd), EINVAL, "");
	FAIL(yoke_sgd_step(1, &x, &x, &x, &heavy), EINVAL, "");
	FAIL(yoke_adamw_step(1, &x, &x, &x, &x, &adamw), EINVAL, "");
	got[0] = got[1] = x;
	FAIL(yoke_unscale_check(1, &x, none, got, got + 1), EINVAL, "");
	ok(!got[0] && !got[1], "nor are scaled gradients");
	got[0] = x;
	FAIL(yoke_barrier(1, &x, 1, &none, got), EINVAL, "");
	ok(!got[0], "nor a value after a barrier");
}

// Another value is refused, and the current one is accepted.  The environment may have set `value`.
static void is_late(const char *name, const char *value)
{
	char was[4096], now[4096];
	if (!ok(yoke_setting_get(name, was, sizeof was) >= 0, "setting %s %s", name, yoke_error()))
		return;
	value = strcmp(was, value) ? value : "1";
	FAIL(yoke_setting_set(name, value), EINVAL, name);
	yoke_setting_get(name, now, sizeof now);
	ok(!strcmp(was, now), "%s stays %s", name, now);
	ok(!yoke_setting_set(name, was), "%s may be set to what it is: %s", name, yoke_error());
}

// Another value is accepted.
static void is_open(const char *name, const char *value)
{
	char was[4096], now[4096];
	if (!ok(yoke_setting_get(name, was, sizeof was) >= 0, "setting %s %s", name, yoke_error()))
		return;
	const int err = yoke_setting_set(name, value);
	yoke_setting_get(name, now, sizeof now);
	ok(!err && !strcmp(now, value), "%s=%s may be set later: it is %s %s", name, value, now,
	   yoke_error());
	ok(!yoke_setting_set(name, was), "and %s again", was);
}

static void of_settings(void)
{
	FAIL(yoke_setting_set("plan.max", "-5"), EINVAL, "plan.max=-5: must be an integer from 0");
	FAIL(yoke_setting_set("graph.max", "-1"), EINVAL, "from 0");
	FAIL(yoke_setting_set("device.timeout", "-1"), EINVAL, "from 0");
	FAIL(yoke_setting_set("threads", "-5"), EINVAL, "from 0 to");
	FAIL(yoke_setting_set("opencl.no_such", "1"), ENOENT, "opencl.no_such");
	FAIL(yoke_setting_set("plan.mx", "1"), ENOENT, "plan.max");
	FAIL(yoke_setting_set("../x.y", "1"), ENOENT, "no setting");
	// read once, with the devices
	static const char *const late[][2] = {
		{ "memory", "123M" },        { "pool", "0" },
		{ "threads", "61" },         { "cpu.isa", "bogus" },
		{ "cpu.devices", "3" },      { "cpu.gemm", "onednn" },
		{ "cpu.lapack", "1" },       { "cpu.stream", "123" },
		{ "qmatmul", "int8" },       { "quirks", "/tmp/x" },
		{ "memory.history", "1" },   { "cpu.resolvent_entry", "disc" },
		{ "plugin.path", "/tmp/x" }, { "cpu.resolvent_chunk", "7" },
	};
	// read at each use, or when a context is made
	static const char *const later[][2] = {
		{ "plan.max", "63" }, { "memory.events", "77" }, { "memory.snapshot", "x" },
		{ "sync", "warn" },   { "graph.max", "99999" },  { "graph.warn", "99999" },
		{ "trace.ops", "1" }, { "eager", "1" },          { "profiler_ranges", "1" },
		{ "strict", "1" },    { "cache.max", "1M" },     { "graph.handles", "99" }
	};
	yoke_free(yoke_full(yoke_f32, 0, NULL, 1)); // makes a context
	for (size_t i = 0; i < sizeof late / sizeof *late; i++)
		is_late(late[i][0], late[i][1]);
	for (size_t i = 0; i < sizeof later / sizeof *later; i++)
		is_open(later[i][0], later[i][1]);
	yoke_setting_set("eager", "1");
	yoke_context *ctx = yoke_context_new("cpu"), *was = yoke_use(ctx);
	yoke_setting_set("eager", "0");
	ok(ctx && ctx->mode.eager, "a setting of contexts applies to one made later");
	yoke_use(was);
	yoke_context_free(ctx);
}

// Settings of the OpenCL backend, which is loaded here.
static void of_plugin_settings(void)
{
	static const char *const late[][2] = {
		{ "opencl.platform", "x" }, { "opencl.preset", "cpu" }, { "opencl.split", "2" },
		{ "opencl.stream", "123" }, { "opencl.binaries", "0" }, { "selftest", "0" }
	};
	static const char *const later[][2] = { { "opencl.profile", "1" },
						{ "opencl.clblast", "0" } };
	is_open("selftest", "force"); // the CPU backend has none
	yoke_context *ctx = yoke_context_new("opencl");
	if (!ctx) {
		skip("settings of the OpenCL backend", yoke_error());
		yoke_error_clear();
		return;
	}
	for (size_t i = 0; i < sizeof late / sizeof *late; i++)
		is_late(late[i][0], late[i][1]);
	for (size_t i = 0; i < sizeof later / sizeof *later; i++)
		is_open(later[i][0], later[i][1]);
	yoke_context_free(ctx);
}

static yoke_tensor *variable(int dtype, int rank, const int64_t *dims)
{
	yoke_tensor *v = yoke_variable("v", dtype, rank, dims);
	if (!v || yoke_assign(v, yoke_full(dtype, rank, dims, 0)) < 0)
		printf("Bail out! %s\n", yoke_error()), exit(1);
	return v;
}

int main(void)
{
	static const int64_t d32[] = { 3, 2 };
	float got[6];

	tap_plugin_path();
	if (!getenv("YOKE_BACKEND"))
		yoke_setting_set("backend", "cpu"); // as without plugins
	of_settings(); // before there is a context
	of_plugin_settings();
	x = variable(yoke_f32, 2, d23);
	y = variable(yoke_f32, 2, d32);
	cube = variable(yoke_f32, 3, d222);
	row = variable(yoke_f32, 1, d3);
	vec = variable(yoke_f32, 1, d2);
	flat = variable(yoke_f32, 1, d4);
	wide = variable(yoke_f32, 4, d2342);
	yes = variable(yoke_bool, 2, d23);
	ids = variable(yoke_i64, 1, d2);
	row_ids = variable(yoke_i64, 1, d3);
	whole = variable(yoke_i32, 2, d23);
	dbl = variable(yoke_f64, 2, d23);
	one = yoke_keep(yoke_scalar(1));
	yoke_scope *s = yoke_scope_begin("misuse");
	of_maps();
	of_literals();
	of_scalars();
	of_reductions();
	of_products();
	of_moves();
	of_named();
	of_leaves();
	of_lists();
	of_sizes();
	of_half_a_list();
	of_second_errors();
	of_absent(YOKE_NONE, "YOKE_NONE");
	of_absent(NULL, "NULL");
	yoke_tensor *sum = yoke_add(x, x);
	ok(yoke_read(sum, got, sizeof got) == 0 && got[5] == 0,
	   "the context is usable afterwards: %s", yoke_error());
	ok(yoke_scope_end(s) == 0, "and the scope ends: %s", yoke_error());
	yoke_tensor *all[] = {
		x, y, row, cube, vec, flat, wide, yes, ids, row_ids, whole, dbl, one
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		yoke_free(all[i]);
	return done();
}
