// SPDX-License-Identifier: Apache-2.0
// Tests the gradient of every op definition by every operand, and gradients of those gradients,
// against central differences in float64.
#include "config.h"

#include "graph/context.h"
#include "graph/handle.h"
#include "ops/list.h"
#include "tap.h"
#include "yoke-linalg.h"
#include "yoke-math.h"

enum { LIMIT = 8, ELEMENTS = 512 };

struct input {
	int rank;
	int64_t dims[YOKE_MAX_RANK];
	double lo, hi;
};

struct row {
	const char *name;
	int n;
	struct input in[LIMIT];
	yoke_tensor *(*fn)(yoke_tensor *const *in);
	double tol; // 0: the usual
};

// The operands covered by the gradients computed here; a list counts as one operand.
enum { MATTERED = 1, WHOLE = 2, FLOATING = 4 };
static uint8_t met[YK_OPS][16];

// Records which operands are between x and the most recent node.
static void note(yoke_tensor *const *x, int n)
{
	const struct yoke_context *ctx = yk_current();
	const struct yk_graph *g = &ctx->graph;
	uint8_t *matters = calloc(g->values + 1, 1);
	for (int k = 0; k < n; k++) {
		const struct yk_tensor *t = yk_tensor(x[k], "test");
		if (t->leaf != YK_NIL && t->leaf_epoch == ctx->history.epoch)
			matters[t->leaf] = 1;
	}
	for (size_t k = 0; k < g->nodes; k++) {
		const struct yk_node *node = &g->node[k];
		const uint32_t lists_in = yk_lists_in(node->op, yk_attrs(g, node));
		const uint32_t lists = lists_in * node->list;
		bool any = false;
		for (uint32_t i = 0; i < node->nin; i++) {
			yk_id v = g->arg[node->in + i];
			uint32_t at = i < lists ? i / node->list :
						  i - lists + lists_in;
			if (v == YK_NIL)
				continue;
			if (at < 16)
				met[node->op][at] |=
					(matters[v] ? MATTERED : 0) |
					(yk_is_float(g->value[v].dtype) ? FLOATING : WHOLE);
			any |= matters[v];
		}
		for (uint32_t i = 0; i < node->nout; i++)
			matters[node->out + i] |= any && node->op != YK_STOP_GRAD;
	}
	free(matters);
}

// Was there a gradient by every floating-point operand of every op that has one?
static void all_rows_met(void)
{
	for (int op = 0; op < YK_OPS; op++) {
		const struct yk_op_def *row = yk_op_def(op);
		bool good = true, none = !row->grad && !row->decompose && op != YK_SLICE;
		// by tests/ranks.c and, only f32, largest.c
		if (row->flags & YK_F_RANKS || op == YK_RANKS_IN || op == YK_LARGEST)
			continue;
		// for inference; of solve and inv, which have gradients
		if (op == YK_PAGED_ATTENTION || op == YK_LU_SOLVE)
			continue;
		if (op == YK_RECURRENT_BACKWARD || op == YK_CTC_BACKWARD) // once
			continue;
		if (op == YK_POOL_ARGMAX || op == YK_CUM_ARG) // their results are places
			continue;
		if (op == YK_DEQUANT || op == YK_QLINEAR || op == YK_QGATHER) // by tests/quant.c
			continue;
		if (row->max_in == 0 || none) {
			ok(row->max_in == 0 ||
				   row->flags & (YK_F_FLAT | YK_F_COMPARE | YK_F_BITS) ||
				   op == YK_ARGMAX || op == YK_ARGMIN || op == YK_RAND_BITS ||
				   op == YK_TRANSFER || op == YK_BITCAST,
			   "%s: that the gradient is undefined is correct", row->name);
			continue;
		}
		for (uint32_t k = 0; k < row->max_in && k < 16; k++) {
			uint8_t m = met[op][k];
			bool fine = m & MATTERED || m == WHOLE || (!m && k >= row->min_in) ||
				    (op == YK_LOG_DET && k == 3); // a scale, always a constant
			if (!fine)
				diag("%s: no gradient by operand %u was taken", row->name, k);
			good &= fine;
		}
		ok(good, "%s: gradients by all operands", row->name);
	}
}

static int32_t ids[6] = { 3, 0, 2, 2, 4, 1 };

// One of three results is not read.
static yoke_tensor *barrier(yoke_tensor *const *x)
{
	yoke_tensor *y[3];
	if (yoke_barrier(3, (yoke_tensor *[]){ x[0], x[1], x[1] }, 1, x, y) < 0)
		return NULL;
	return yoke_mul(y[0], y[2]);
}

#define UNARY(op) static yoke_tensor *f_##op(yoke_tensor *const *x) { return yoke_##op(x[0]); }
#define BINARY(op) \
	static yoke_tensor *f_##op(yoke_tensor *const *x) { return yoke_##op(x[0], x[1]); }
#define FN(op, expression) static yoke_tensor *f_##op(yoke_tensor *const *x) { return expression; }

BINARY(add) BINARY(sub) BINARY(mul) BINARY(div) BINARY(pow) BINARY(min) BINARY(max) BINARY(mod)
UNARY(neg) UNARY(abs) UNARY(exp) UNARY(log) UNARY(log1p) UNARY(expm1) UNARY(sqrt) UNARY(rsqrt)
UNARY(recip) UNARY(square) UNARY(sin) UNARY(cos) UNARY(tanh) UNARY(sigmoid) UNARY(erf)
UNARY(asin) UNARY(acos) UNARY(atan) UNARY(lgamma) UNARY(digamma) UNARY(erfinv)
BINARY(atan2) BINARY(hypot)
UNARY(relu) UNARY(gelu) UNARY(gelu_tanh) UNARY(silu) UNARY(contiguous)
FN(softmax, yoke_softmax(x[0], -1))
FN(log_softmax, yoke_log_softmax(x[0], -1))
FN(logsumexp, yoke_logsumexp(x[0], -1))
FN(softmax_first, yoke_softmax(x[0], 0))
FN(logsumexp_first, yoke_logsumexp(x[0], 0))
BINARY(mse) BINARY(swiglu)
FN(bce, yoke_bce_logits(x[0], yoke_sigmoid(x[1])))
FN(select, yoke_select(yoke_gt(x[0], x[1]), x[0], yoke_square(x[1])))
FN(sum, yoke_sum(x[0], YOKE_AXIS(0) | YOKE_AXIS(2)))
FN(sum_keep, yoke_sum(x[0], YOKE_AXIS(1) | YOKE_KEEP))
FN(mean, yoke_mean(x[0], YOKE_AXIS(1)))
FN(prod, yoke_prod(x[0], YOKE_AXIS(1)))
FN(rmax, yoke_reduce_max(x[0], YOKE_AXIS(1)))
FN(rmin, yoke_reduce_min(x[0], YOKE_ALL))
FN(mm, yoke_matmul(x[0], x[1], 0))
FN(mm_ta, yoke_matmul(x[0], x[1], YOKE_TA))
FN(mm_tb, yoke_matmul(x[0], x[1], YOKE_TB))
FN(mm_tatb, yoke_matmul(x[0], x[1], YOKE_TA | YOKE_TB))
FN(linear, yoke_linear(x[0], x[1], x[2]))
FN(reshape, yoke_reshape(x[0], 2, (int64_t[]){ -1, 4 }))
FN(permute, yoke_permute(x[0], (int[]){ 2, 0, 1 }))
FN(broadcast, yoke_broadcast_to(x[0], 3, (int64_t[]){ 4, 3, 5 }))
FN(slice, yoke_slice(x[0], 1, 1, 3, 1))
FN(slice_step, yoke_slice(x[0], 1, 0, 5, 2))
FN(split, yoke_mul(yoke_slice(x[0], 1, 0, 2, 1),
		   yoke_mul(yoke_slice(x[0], 1, 2, 4, 1), yoke_exp(yoke_slice(x[0], 1, 4, 6, 1)))))
FN(overlap, yoke_mul(yoke_slice(x[0], 1, 0, 4, 1), yoke_slice(x[0], 1, 2, 6, 1)))
FN(pad, yoke_pad(x[0], (int64_t[]){ 1, 0 }, (int64_t[]){ 0, 2 }, 0.5))
FN(concat, yoke_concat(2, x, 1))
FN(flip, yoke_mul(yoke_flip(x[0], YOKE_AXIS(1)), x[0]))
FN(update, yoke_slice_update(x[0], (int64_t[]){ 1, 2 }, x[1]))
FN(slice_at, yoke_square(yoke_slice_at(x[0], (yoke_tensor *[]){ yoke_const(1), yoke_const(2) },
				       (int64_t[]){ 2, 2 })))
FN(update_at, yoke_slice_update_at(x[0], (yoke_tensor *[]){ YOKE_NONE, yoke_const(2) },
				   yoke_square(x[1])))
FN(frexp, yoke_frexp(x[0], NULL))
FN(copysign, yoke_square(yoke_copysign(x[0], x[1])))
FN(nextafter, yoke_floor(yoke_nextafter(x[0], x[1])))
FN(roll, yoke_mul(yoke_roll_axes(x[0], 2, (int64_t[]){ 1, -7 }), x[0]))
FN(masked_scatter,
   yoke_square(yoke_masked_scatter(
	   x[0], yoke_gt(yoke_iota(yoke_i64, 1, (int64_t[]){ 5 }, 0), yoke_const(1)), x[1])))
FN(masked_select,
   yoke_square(yoke_masked_select(
	   x[0], yoke_gt(yoke_iota(yoke_i64, 1, (int64_t[]){ 5 }, 0), yoke_const(1)), 12, NULL)))
FN(searchsorted,
   yoke_square(yoke_gather(x[0],
			   yoke_searchsorted(yoke_iota(yoke_i64, 1, (int64_t[]){ 4 }, 0),
					     yoke_const(2), 0),
			   0)))
FN(scatter_set,
   yoke_square(yoke_scatter_set(x[0],
				yoke_from(yoke_i32, 1, (int64_t[]){ 6 },
					  (const int32_t[]){ 4, -1, 0, 4, 2, -1 }),
				x[1])))
FN(gather0, yoke_gather(x[0], yoke_from(yoke_i32, 2, (int64_t[]){ 2, 3 }, ids), 0))
FN(gather1, yoke_gather(x[0], yoke_from(yoke_i32, 1, (int64_t[]){ 6 }, ids), 1))
FN(gather2, yoke_gather(x[0], yoke_from(yoke_i32, 1, (int64_t[]){ 6 }, ids), 2))
FN(scatter, yoke_scatter_add(x[0], yoke_from(yoke_i32, 1, (int64_t[]){ 6 }, ids), x[1]))
FN(layer_norm, yoke_layer_norm(x[0], x[1], x[2], 1e-5))
static yoke_tensor *f_batch_norm(yoke_tensor *const *x)
{
	return yoke_batch_norm(x[0], x[1], x[2], 1e-5, NULL, NULL);
}
static yoke_tensor *f_batch_norm_bare(yoke_tensor *const *x)
{
	yoke_tensor *mean, *var,
		*y = yoke_batch_norm(x[0], YOKE_NONE, YOKE_NONE, 1e-5, &mean, &var);
	yoke_tensor *s = yoke_add(yoke_square(mean), var); // by-products have gradients too
	return yoke_add(y, yoke_reshape(s, 3, (int64_t[]){ 1, 4, 1 }));
}
FN(layer_norm_bare, yoke_layer_norm(x[0], YOKE_NONE, YOKE_NONE, 1e-5))
FN(rms_norm, yoke_rms_norm(x[0], x[1], 1e-5))
FN(xent, yoke_cross_entropy(x[0], yoke_from(yoke_i32, 1, (int64_t[]){ 6 }, ids), 2, 0.1))
FN(attention, yoke_attention(x[0], x[1], x[2], YOKE_NONE, 1, 0, 0))
FN(attention_mask, yoke_attention(x[0], x[1], x[2], x[3], 0, 0.7, 0))
FN(attention_mask_drop, yoke_attention(x[0], x[1], x[2], x[3], 1, 0, 0.4))
FN(attention_keys, yoke_attention_keys(x[0], x[1], x[2], yoke_const(4), YOKE_NONE, 1, 0, 0))
FN(attention_each, yoke_attention_keys(x[0], x[1], x[2], yoke_from(yoke_i64, 1, (int64_t[]){ 2 },
	(int64_t[]){ 6, 3 }), x[3], 1, 0, 0))
FN(attention_mask_keys, yoke_attention_keys(x[0], x[1], x[2], yoke_const(4), x[3], 1, 0, 0))
// a position bias, by its distance
FN(attention_bias,
   yoke_attention(x[0], x[0], x[0],
		  yoke_reshape(yoke_gather(x[1],
					   yoke_from(yoke_i32, 2, (int64_t[]){ 2, 2 },
						     (int32_t[]){ 1, 0, 2, 1 }),
					   1),
			       4, (int64_t[]){ 1, 2, 2, 2 }),
		  0, 0, 0))
FN(rope, yoke_rope(x[0], yoke_cos(x[1]), yoke_square(x[2])))
// one matrix at two z; k of both signs
FN(resolvent,
   yoke_resolvent(x[0], x[1], x[2],
		  yoke_add(x[3], yoke_from(yoke_f64, 1, (int64_t[]){ 2 }, (double[]){ 0.1, 2.5 })),
		  NULL))
FN(resolvent_left,
   yoke_resolvent(x[0], YOKE_NONE, x[1],
		  yoke_add(x[2], yoke_from(yoke_f64, 1, (int64_t[]){ 2 }, (double[]){ 0.1, -2.5 })),
		  &(struct yoke_resolvent){ .size = sizeof(struct yoke_resolvent),
					    .side = YOKE_SIDE_LEFT,
					    .sweeps = YOKE_SWEEPS,
					    .tolerance = 1 }))
// complex elements on the diagonal, as of leads, at z off the real axis
#define Z_OF(x) yoke_add(x, yoke_from(yoke_f64, 1, (int64_t[]){ 2 }, (double[]){ 0.1, 2.5 }))
FN(resolvent_complex, yoke_resolvent_complex(x[0], x[1], x[2], x[3], Z_OF(x[4]), YOKE_SIDE_BOTH))
FN(resolvent_corner, yoke_resolvent_corner(x[0], x[1], x[2], x[3], Z_OF(x[4])))
FN(resolvent_log_det, yoke_resolvent_log_det(x[0], x[1], x[2], x[3], Z_OF(x[4])))
FN(window, yoke_square(yoke_window(x[0], 1, 3, 2, 2)))
static const struct yoke_conv_options how = { .size = sizeof how,
					      .groups = 2,
					      .stride = { 2, 1 },
					      .dilation = { 1, 2 },
					      .lo = { 1, 0 },
					      .hi = { 0, 2 } };
static const struct yoke_pool_options pools = {
	.size = sizeof pools, .window = { 2, 3 }, .stride = { 2, 1 }, .lo = { 1, 1 }, .hi = { 0, 1 }
};
FN(max_pool, yoke_max_pool(x[0], &pools))
// of the gradient's square: by what is pooled, flat, and by what is shared
static yoke_tensor *max_pool_backward(yoke_tensor *const *x)
{
	yoke_tensor *y = yoke_max_pool(x[0], &pools), *g;
	if (!y || yoke_grad(yoke_sum(yoke_mul(y, x[1]), YOKE_ALL), 1, &x[0], &g) < 0)
		return NULL;
	return yoke_square(g);
}
FN(conv, yoke_conv(x[0], x[1], &how))
static yoke_tensor *bag_of(yoke_tensor *w, yoke_tensor *by, int mode)
{
	struct yoke_embedding_bag o = YOKE_EMBEDDING_BAG_INIT;
	o.mode = mode;
	o.weights = by;
	o.offsets = yoke_from(yoke_i64, 1, (int64_t[]){ 3 }, (int64_t[]){ 0, 2, 2 });
	return yoke_embedding_bag(
		w, yoke_from(yoke_i64, 1, (int64_t[]){ 6 }, (int64_t[]){ 3, 0, 3, 1, 4, 2 }), &o);
}
FN(bag, bag_of(x[0], x[1], YOKE_BAG_SUM))
FN(bag_max, yoke_square(bag_of(x[0], YOKE_NONE, YOKE_BAG_MAX)))
static const struct yoke_interpolate cubic = { .size = sizeof cubic, .mode = YOKE_CUBIC };
FN(interpolate, yoke_square(yoke_interpolate(x[0], (int64_t[]){ 5, 2 }, &cubic)))
FN(grid_sample, yoke_grid_sample(x[0], x[1], YOKE_CUBIC, YOKE_PADDING_BORDER, 0))
FN(conv_transposed, yoke_conv_transposed(x[0], x[1], &how))
FN(grouped,
   yoke_grouped_matmul(x[0], x[1],
		       yoke_from(yoke_i64, 1, (int64_t[]){ 4 }, (int64_t[]){ 0, 2, 2, 4 })))
FN(kl, yoke_kl(yoke_log_softmax(x[0], -1), yoke_log_softmax(x[1], -1)))
FN(attention_drop, yoke_attention(x[0], x[1], x[2], YOKE_NONE, 1, 0, 0.4))
FN(cumsum, yoke_cumsum(x[0], 1, 0))
FN(cumsum_backward, yoke_cumsum(x[0], 0, 1))
FN(cumprod, yoke_cumprod(x[0], 1, 0))
FN(cumprod_backward, yoke_cumprod(x[0], -2, 1))
FN(cumprod_zeros, yoke_cumprod(yoke_concat(2, x, 1), 1, 0))
FN(prod_zeros, yoke_prod(yoke_concat(2, x, 1), YOKE_AXIS(1)))
FN(prod_axes, yoke_prod(x[0], YOKE_AXIS(0) | YOKE_AXIS(2)))
FN(prod_none, yoke_prod(x[0], 0))
FN(sort_up, yoke_sort(x[0], 0, 0, NULL))
FN(sort_down, yoke_mul(yoke_sort(x[0], 1, 1, NULL), x[0]))
FN(top, yoke_topk(x[0], 3, 1, 1, NULL))
FN(take, yoke_take_along(x[0], yoke_from(yoke_i32, 2, (int64_t[]){ 3, 2 }, ids), 1))
FN(take_spread, yoke_take_along(x[0], yoke_from(yoke_i32, 2, (int64_t[]){ 1, 6 }, ids), 1))
FN(add_along,
   yoke_scatter_add_along(x[0], yoke_from(yoke_i32, 2, (int64_t[]){ 3, 2 }, ids), x[1], 1))
FN(var, yoke_var(x[0], YOKE_AXIS(0) | YOKE_AXIS(2), 1))
FN(std, yoke_std(x[0], YOKE_AXIS(1) | YOKE_KEEP, 0))
FN(norm1, yoke_norm(x[0], 1, YOKE_AXIS(1)))
FN(norm2, yoke_norm(x[0], 2, YOKE_AXIS(0)))
FN(norm3, yoke_norm(x[0], 3.5, YOKE_AXIS(1)))
FN(norm_half, yoke_norm(x[0], 0.5, YOKE_ALL))
FN(norm_inf, yoke_norm(x[0], INFINITY, YOKE_AXIS(1)))
FN(norm_zero, yoke_add(yoke_norm(yoke_mul(x[0], yoke_const(0)), 2, YOKE_AXIS(1)),
		       yoke_norm(yoke_mul(x[0], yoke_const(0)), 3, YOKE_AXIS(1))))
FN(quantile, yoke_quantile(x[0], yoke_const(0.3), 1))
FN(quantile_of, yoke_quantile(x[0], x[1], 0))
FN(cov, yoke_cov(x[0], 1))
FN(corr, yoke_corr(x[0]))
FN(clamp, yoke_clamp(x[0], yoke_const(-0.7), x[1]))
FN(check, yoke_mul(yoke_check_finite(x[0]), x[0]))
FN(dropout, yoke_dropout(x[0], 0.4))
FN(barrier, barrier(x))
FN(stop, yoke_mul(x[0], yoke_stop_grad(yoke_full(yoke_f64, 1, (int64_t[]){ 5 }, 2))))
FN(twice, yoke_add(yoke_mul(x[0], x[0]), yoke_exp(x[0])))
FN(cast, yoke_mul(yoke_cast(yoke_cast(x[0], yoke_f64), yoke_f64), x[0]))

FN(turned, yoke_permute(x[0], (int[]){ 7, 0, 3, 1, 6, 2, 5, 4 }))
FN(sum_even, yoke_sum(x[0], YOKE_AXIS(0) | YOKE_AXIS(2) | YOKE_AXIS(4) | YOKE_AXIS(6)))
FN(gather_none, yoke_gather(x[0], yoke_from(yoke_i32, 1, (int64_t[]){ 0 }, ids), 0))
FN(scatter_none, yoke_scatter_add(x[0], yoke_from(yoke_i32, 1, (int64_t[]){ 0 }, ids), x[1]))
FN(slice_none, yoke_slice(x[0], 1, 2, 2, 1))
FN(pad_none, yoke_pad(x[0], (int64_t[]){ 2, 0 }, (int64_t[]){ 1, 0 }, 0.5))
FN(reshape_none, yoke_reshape(x[0], 3, (int64_t[]){ 4, 0, 7 }))

// A formula over lists of one tensor each: all results, concatenated.
static yoke_tensor *formula(enum yk_formula_id id, yoke_tensor *const *x, const double *constant)
{
	struct yoke_context *ctx = yk_current();
	const struct yk_formula *f = &yk_formulas[id];
	const int outs = yk_formula_count(f->results);
	yk_id in[LIMIT], out;
	yoke_tensor *y[4];
	int64_t n;
	for (int k = 0; k < yk_formula_count(f->lists) + yk_formula_count(f->numbers); k++)
		in[k] = yk_operand(ctx, x[k], yoke_f64);
	if (yk_list_map(&ctx->graph, &(struct yk_list_call){ f, 1, in, constant, NULL, NULL },
			&out) < 0)
		return NULL;
	for (int k = 0; k < outs; k++) {
		y[k] = yk_handle_of(ctx, out + (yk_id)k);
		n = yoke_count(y[k]);
		y[k] = yoke_reshape(y[k], 1, &n);
	}
	return yoke_concat(outs, y, 0);
}

// The sum of a list's elements, of two tensors together (0), of each (1), or both (2).
static yoke_tensor *reduced(yoke_tensor *const *x, int kind, int each)
{
	struct yoke_context *ctx = yk_current();
	yk_id in[2] = { yk_operand(ctx, x[0], yoke_f64), yk_operand(ctx, x[1], yoke_f64) };
	struct yk_list_call c = { &yk_formulas[YK_FORMULA_SQUARE], 2, in, NULL, NULL, NULL };
	return yk_handle_of(ctx, yk_list_reduce(&ctx->graph, &c, kind, each));
}

#define FORMULA(op, ID, ...) FN(op, formula(YK_FORMULA_##ID, x, (double[]){ __VA_ARGS__ }))
FORMULA(adamw, ADAMW, 0.9, 0.99, 1e-3, 0.1)
FORMULA(lamb, LAMB, 0.9, 0.99, 1e-3, 0.1)
FORMULA(lamb_step, LAMB_STEP, 0, INFINITY)
FORMULA(sgd, SGD, 0.1)
FORMULA(momentum, MOMENTUM, 0.1, 0.9, 0.1, 0)
FORMULA(nesterov, MOMENTUM, 0.1, 0.9, 0, 1)
FORMULA(scale, SCALE, 0)
FN(sum_each, reduced(x, YOKE_REDUCE_SUM, 1))
FN(sum_both, reduced(x, YOKE_REDUCE_SUM, 2))
FN(max_all, reduced(x, YOKE_REDUCE_MAX, 0))

// s' = a s + x s2, s2' = sin s along the last axis of a and x; the first of two sequences, times
// the last s2.
static yoke_tensor *recurrence(yoke_tensor *const *x, bool from_end)
{
	static const struct yoke_map m = { .size = sizeof m,
					   .ninsn = 8,
					   .nin = 4,
					   .nout = 3,
					   .out = { 6, 6, 7 },
					   .insn = { { YOKE_MAP_INPUT, yoke_f64, 0, 0, 0, 0 },
						     { YOKE_MAP_INPUT, yoke_f64, 0, 1, 0, 0 },
						     { YOKE_MAP_INPUT, yoke_f64, 0, 2, 0, 0 },
						     { YOKE_MAP_INPUT, yoke_f64, 0, 3, 0, 0 },
						     { YOKE_MAP_MUL, yoke_f64, 0, 0, 2, 0 },
						     { YOKE_MAP_MUL, yoke_f64, 0, 1, 3, 0 },
						     { YOKE_MAP_ADD, yoke_f64, 0, 4, 5, 0 },
						     { YOKE_MAP_SIN, yoke_f64, 0, 2, 0, 0 } } };
	struct yoke_context *ctx = yk_current();
	yk_id in[4], out;
	for (int k = 0; k < 4; k++)
		in[k] = yk_operand(ctx, x[k], yoke_f64);
	int64_t dims[2] = { yoke_dim(x[0], 0), yoke_dim(x[0], 1) };
	struct yk_scan_op s = { .map = &m,
				.in = in,
				.rank = 2,
				.axis = 1,
				.dims = dims,
				.from_end = from_end,
				.carried = 2 };
	if (yk_scan(&ctx->graph, &s, &out) < 0)
		return NULL;
	return yoke_mul(yk_handle_of(ctx, out), yk_handle_of(ctx, out + 2));
}
FN(scan, recurrence(x, false))
FN(scan_backward, recurrence(x, true))

// A symmetric matrix with separated eigenvalues: 0, 5, 10, .. and (x + x') / 4.
static yoke_tensor *symmetric(yoke_tensor *x)
{
	const int64_t n = yoke_dim(x, -1);
	yoke_tensor *i = yoke_iota(yoke_f64, 2, (int64_t[]){ n, n }, 0),
		    *k = yoke_iota(yoke_f64, 2, (int64_t[]){ n, n }, 1);
	yoke_tensor *apart = yoke_select(yoke_eq(i, k), yoke_mul(i, yoke_const(5)), yoke_const(0));
	yoke_tensor *turned =
		yoke_permute(x, yoke_rank(x) == 2 ? (int[]){ 1, 0 } : (int[]){ 0, 2, 1 });
	return yoke_add(apart, yoke_mul(yoke_add(x, turned), yoke_const(0.25)));
}

static yoke_tensor *f_eigenvectors(yoke_tensor *const *x)
{
	yoke_tensor *v, *w = yoke_eigh(symmetric(x[0]), &v);
	return yoke_mul(v, w);
}

// t with 3 more on its diagonal
static yoke_tensor *firm(yoke_tensor *t)
{
	yoke_tensor *i = yoke_iota(yoke_f64, 2, (int64_t[]){ 4, 4 }, 0),
		    *k = yoke_iota(yoke_f64, 2, (int64_t[]){ 4, 4 }, 1);
	return yoke_add(t, yoke_mul(yoke_cast(yoke_eq(i, k), yoke_f64), yoke_const(3)));
}

FN(eigenvalues, yoke_eigh(symmetric(x[0]), NULL))
FN(cholesky, yoke_cholesky(yoke_add(symmetric(x[0]), yoke_matmul(x[1], x[1], YOKE_TB))))
FN(solve, yoke_solve_triangular(firm(x[0]), x[1], 0))
FN(solve_backward, yoke_solve_triangular(firm(x[0]), x[1], YOKE_TRANSPOSED))
FN(solve_upper, yoke_solve_triangular(firm(x[0]), x[1], YOKE_UPPER | YOKE_UNIT))
FN(solve_upper_backward, yoke_solve_triangular(firm(x[0]), x[1], YOKE_UPPER | YOKE_TRANSPOSED))

FN(inv, yoke_inv(firm(x[0])))
FN(solve_full, yoke_solve(firm(x[0]), x[1]))
FN(det, yoke_det(x[0]))
FN(pinv, yoke_pinv(x[0], -1))
FN(matrix_exp, yoke_matrix_exp(x[0]))
FN(matrix_power, yoke_matrix_power(firm(x[0]), -3))
FN(lstsq, yoke_lstsq(x[0], x[1], 0, -1))
FN(lstsq_qr, yoke_lstsq(x[0], x[1], 1, -1))

static yoke_tensor *f_slogdet(yoke_tensor *const *x)
{
	yoke_tensor *log, *sign = yoke_slogdet(firm(x[0]), &log);
	return yoke_add(log, sign);
}

// columns that stay independent, and pivots that stay the same: 5 j more on the diagonal
static yoke_tensor *apart(yoke_tensor *t)
{
	const int64_t dims[] = { yoke_dim(t, -2), yoke_dim(t, -1) };
	yoke_tensor *i = yoke_iota(yoke_f64, 2, dims, 0), *k = yoke_iota(yoke_f64, 2, dims, 1);
	return yoke_add(t, yoke_mul(yoke_cast(yoke_eq(i, k), yoke_f64),
				    yoke_add(yoke_mul(k, yoke_const(5)), yoke_const(5))));
}

FN(lu, yoke_lu(apart(x[0]), NULL))

static yoke_tensor *f_qr(yoke_tensor *const *x)
{
	yoke_tensor *r, *q = yoke_qr(apart(x[0]), 0, &r);
	return yoke_matmul(yoke_square(q), yoke_add(r, yoke_const(1)), 0);
}

// independent of the vectors' signs
static yoke_tensor *f_svd(yoke_tensor *const *x)
{
	yoke_tensor *s, *vh, *u = yoke_svd(apart(x[0]), 0, &s, &vh);
	return yoke_add(yoke_matmul(yoke_mul(u, yoke_exp(yoke_neg(s))), vh, 0),
			yoke_sum(yoke_square(yoke_square(u)), YOKE_ALL));
}

static yoke_tensor *moments(yoke_tensor *const *x, yoke_tensor *weight, int diagonal)
{
	struct yoke_moments m = { .size = sizeof m };
	yoke_moments(x[0], weight, diagonal, &m);
	return yoke_add(yoke_mul(m.square, m.weight), yoke_add(m.mean, yoke_mul(m.min, m.max)));
}
FN(moments, moments(x, YOKE_NONE, 0))
FN(moments_weighed, moments(x, x[1], 0))
FN(moments_diagonal, moments(x, x[1], 1))

FN(fft, yoke_fft(x[0], 0, 0, YOKE_FFT_ORTHO))
FN(ifft, yoke_ifft(x[0], 0, 0, YOKE_FFT_ORTHO))
FN(rfft, yoke_rfft(x[0], 0, 1, YOKE_FFT_ORTHO))
FN(irfft, yoke_irfft(x[0], 6, 0, YOKE_FFT_ORTHO))
FN(irfft_odd, yoke_irfft(x[0], 7, 0, YOKE_FFT_ORTHO))
FN(stft, yoke_stft(x[0], x[1], 4, NULL))
FN(istft, yoke_istft(x[0], x[1], 4, 0, NULL))

// Results and last states of a layer: x, w_ih, w_hh, b_ih, b_hh, h0, c0
static yoke_tensor *recurrent(yoke_tensor *const *x, int cell, int reverse, const int64_t *length)
{
	const bool projected = cell == YOKE_CELL_LSTM && yoke_dim(x[2], 0) != 4 * yoke_dim(x[2], 1);
	const struct yoke_recurrent o = { .size = sizeof o,
					  .w_ih = x[1],
					  .w_hh = x[2],
					  .b_ih = x[3],
					  .b_hh = x[4],
					  .cell = cell,
					  .reverse = reverse,
					  .w_hr = projected ? x[7] : NULL };
	const int64_t n = yoke_dim(x[0], 1);
	yoke_tensor *h, *c, *lengths = length ? yoke_from(yoke_i64, 1, &n, length) : YOKE_NONE;
	yoke_tensor *y = yoke_recurrent(x[0], &o, x[5], x[6], lengths, &h, &c);
	yoke_tensor *all[] = { y, h, c };
	for (int i = 0; i < 3; i++)
		all[i] = yoke_reshape(all[i], 1, (int64_t[]){ -1 });
	return yoke_concat(3, all, 0);
}
FN(lstm, recurrent(x, YOKE_CELL_LSTM, 0, NULL))
FN(lstm_lengths, recurrent(x, YOKE_CELL_LSTM, 0, (int64_t[]){ 2, 4 }))
FN(lstm_reverse, recurrent(x, YOKE_CELL_LSTM, 1, (int64_t[]){ 2, 4 }))
FN(lstm_projected, recurrent(x, YOKE_CELL_LSTM, 0, (int64_t[]){ 4, 2 }))
FN(lstm_projected_reverse, recurrent(x, YOKE_CELL_LSTM, 1, (int64_t[]){ 1, 4 }))
FN(gru, recurrent(x, YOKE_CELL_GRU, 0, (int64_t[]){ 4, 1 }))
FN(gru_reverse, recurrent(x, YOKE_CELL_GRU, 1, (int64_t[]){ 3, 4 }))
FN(rnn, recurrent(x, YOKE_CELL_TANH, 0, NULL))
FN(rnn_reverse, recurrent(x, YOKE_CELL_TANH, 1, (int64_t[]){ 4, 2 }))

// x [5,2,4]
static yoke_tensor *f_ctc(yoke_tensor *const *x)
{
	static const int64_t targets[2][2] = { { 1, 1 }, { 2, 3 } }, steps[2] = { 5, 4 },
			     labels[2] = { 2, 1 };
	yoke_tensor *t = yoke_from(yoke_i64, 2, (int64_t[]){ 2, 2 }, targets);
	return yoke_loss_ctc(x[0], t, yoke_from(yoke_i64, 1, (int64_t[]){ 2 }, steps),
			     yoke_from(yoke_i64, 1, (int64_t[]){ 2 }, labels), 0, YOKE_LOSS_NONE,
			     0);
}

#define LAYER(gates) \
	{ M3(4, 2, 3), M2(gates * 2, 3), M2(gates * 2, 2), M1(gates * 2), M1(gates * 2), M2(2, 2), \
	  M2(2, 2) }
#define PROJECTED \
	{ M3(4, 2, 3), M2(12, 3), M2(12, 2), M1(12), M1(12), M2(2, 2), M2(2, 3), M2(2, 3) }
#define N1 { 1, { 1 }, 0.3, 0.9 }
#define M1(a) { 1, { a }, -2, 2 }
#define P1(a) { 1, { a }, 0.3, 2 }
#define M2(a, b) { 2, { a, b }, -2, 2 }
#define P2(a, b) { 2, { a, b }, 0.3, 2 }
#define M3(a, b, c) { 3, { a, b, c }, -2, 2 }
#define M4(a, b, c, d) { 4, { a, b, c, d }, -1, 1 }
#define M8(...) { 8, { __VA_ARGS__ }, -1, 1 }

// Without second derivatives
static const struct row once[] = {
	{ "lstm", 7, LAYER(4), f_lstm, 0 }, { "lstm, lengths", 7, LAYER(4), f_lstm_lengths, 0 },
	{ "lstm, reverse", 7, LAYER(4), f_lstm_reverse, 0 }, { "gru", 7, LAYER(3), f_gru, 0 },
	{ "lstm, projected", 8, PROJECTED, f_lstm_projected, 0 },
	{ "lstm, projected, reverse", 8, PROJECTED, f_lstm_projected_reverse, 0 },
	{ "gru, reverse", 7, LAYER(3), f_gru_reverse, 0 }, { "rnn", 7, LAYER(1), f_rnn, 0 },
	{ "rnn, reverse", 7, LAYER(1), f_rnn_reverse, 0 }, { "ctc", 1, { M3(5, 2, 4) }, f_ctc, 0 },
};

static const struct row rows[] = {
	{ "add", 2, { M2(3, 5), M1(5) }, f_add, 0 },
	{ "sub", 2, { M2(3, 1), M3(2, 1, 5) }, f_sub, 0 },
	{ "mul", 2, { M2(3, 5), M2(3, 1) }, f_mul, 0 },
	{ "div", 2, { M2(3, 5), P2(1, 5) }, f_div, 0 },
	{ "pow", 2, { P2(3, 5), M2(3, 5) }, f_pow, 0 },
	{ "min", 2, { M2(3, 5), M2(3, 5) }, f_min, 0 },
	{ "max", 2, { M2(3, 5), M1(5) }, f_max, 0 },
	{ "mod", 2, { { 2, { 3, 5 }, -5.6, -4.4 }, { 1, { 5 }, 1.95, 2.05 } }, f_mod, 0 },
	{ "neg", 1, { M2(3, 5) }, f_neg, 0 },
	{ "abs", 1, { M2(3, 5) }, f_abs, 0 },
	{ "exp", 1, { M2(3, 5) }, f_exp, 0 },
	{ "log", 1, { P2(3, 5) }, f_log, 0 },
	{ "log1p", 1, { P2(3, 5) }, f_log1p, 0 },
	{ "expm1", 1, { M2(3, 5) }, f_expm1, 0 },
	{ "sqrt", 1, { P2(3, 5) }, f_sqrt, 0 },
	{ "rsqrt", 1, { P2(3, 5) }, f_rsqrt, 0 },
	{ "recip", 1, { P2(3, 5) }, f_recip, 0 },
	{ "square", 1, { M2(3, 5) }, f_square, 0 },
	{ "sin", 1, { M2(3, 5) }, f_sin, 0 },
	{ "cos", 1, { M2(3, 5) }, f_cos, 0 },
	{ "tanh", 1, { M2(3, 5) }, f_tanh, 0 },
	{ "sigmoid", 1, { M2(3, 5) }, f_sigmoid, 0 },
	{ "erf", 1, { M2(3, 5) }, f_erf, 0 },
	{ "select", 2, { M2(3, 5), M2(3, 5) }, f_select, 0 },
	{ "cast", 1, { M2(3, 5) }, f_cast, 0 },
	{ "relu", 1, { M2(3, 5) }, f_relu, 0 },
	{ "gelu", 1, { M2(3, 5) }, f_gelu, 0 },
	{ "gelu_tanh", 1, { M2(3, 5) }, f_gelu_tanh, 0 },
	{ "silu", 1, { M2(3, 5) }, f_silu, 0 },
	{ "asin", 1, { { 2, { 3, 5 }, -0.8, 0.8 } }, f_asin, 0 },
	{ "acos", 1, { { 2, { 3, 5 }, -0.8, 0.8 } }, f_acos, 0 },
	{ "atan", 1, { M2(3, 5) }, f_atan, 0 },
	{ "atan2", 2, { M2(3, 5), P2(1, 5) }, f_atan2, 0 },
	{ "lgamma", 1, { P2(3, 5) }, f_lgamma, 0 },
	{ "lgamma below 0", 1, { { 2, { 3, 5 }, -2.7, -2.3 } }, f_lgamma, 0 },
	{ "digamma", 1, { P2(3, 5) }, f_digamma, 0 },
	{ "digamma below 0", 1, { { 2, { 3, 5 }, -2.7, -2.3 } }, f_digamma, 0 },
	{ "erfinv", 1, { { 2, { 3, 5 }, -0.8, 0.8 } }, f_erfinv, 0 },
	{ "dropout", 1, { M2(7, 5) }, f_dropout, 0 },
	{ "sum", 1, { M3(3, 4, 5) }, f_sum, 0 },
	{ "sum keep", 1, { M3(3, 4, 5) }, f_sum_keep, 0 },
	{ "mean", 1, { M3(3, 4, 5) }, f_mean, 0 },
	{ "prod", 1, { M3(3, 4, 5) }, f_prod, 0 },
	{ "prod of zeros", 2, { M2(3, 4), { 2, { 3, 1 }, 0, 0 } }, f_prod_zeros, 0 },
	{ "prod of more zeros", 2, { M2(3, 3), { 2, { 3, 2 }, 0, 0 } }, f_prod_zeros, 0 },
	{ "prod of two axes", 1, { M3(3, 4, 5) }, f_prod_axes, 0 },
	{ "prod of no axes", 1, { M2(3, 4) }, f_prod_none, 0 },
	{ "cumsum", 1, { M2(3, 5) }, f_cumsum, 0 },
	{ "cumsum back", 1, { M2(7, 5) }, f_cumsum_backward, 0 },
	{ "cumprod", 1, { M2(3, 5) }, f_cumprod, 0 },
	{ "cumprod back", 1, { M3(2, 6, 3) }, f_cumprod_backward, 0 },
	{ "cumprod of zeros", 2, { M2(3, 2), { 2, { 3, 3 }, 0, 0 } }, f_cumprod_zeros, 0 },
	{ "scan", 4, { M2(3, 5), M2(3, 5), M2(3, 1), M1(1) }, f_scan, 0 },
	{ "scan back", 4, { M2(2, 7), M2(2, 7), M2(2, 1), M1(1) }, f_scan_backward, 0 },
	{ "eigenvalues", 1, { M3(2, 4, 4) }, f_eigenvalues, 0 },
	{ "eigenvectors", 1, { M2(4, 4) }, f_eigenvectors, 0 },
	{ "cholesky", 2, { M2(4, 4), { 2, { 4, 4 }, 2, 4 } }, f_cholesky, 1e-5 },
	{ "solve_triangular", 2, { M2(4, 4), M2(4, 3) }, f_solve, 0 },
	{ "solve_triangular transposed", 2, { M3(2, 4, 4), M2(4, 2) }, f_solve_backward, 0 },
	{ "solve_triangular upper", 2, { M2(4, 4), M2(4, 3) }, f_solve_upper, 0 },
	{ "solve_triangular upper transposed",
	  2,
	  { M2(4, 4), M2(4, 3) },
	  f_solve_upper_backward,
	  0 },
	{ "inv", 1, { M3(2, 4, 4) }, f_inv, 0 },
	{ "solve", 2, { M3(2, 4, 4), M2(4, 3) }, f_solve_full, 0 },
	{ "det", 1, { M3(2, 3, 3) }, f_det, 0 },
	{ "slogdet", 1, { M2(4, 4) }, f_slogdet, 0 },
	{ "pinv", 1, { M2(3, 5) }, f_pinv, 0 },
	{ "pinv of a tall matrix", 1, { M3(2, 5, 3) }, f_pinv, 0 },
	{ "matrix_exp", 1, { M3(2, 3, 3) }, f_matrix_exp, 0 },
	{ "matrix_power", 1, { M2(4, 4) }, f_matrix_power, 0 },
	{ "lstsq", 2, { M2(5, 3), M2(5, 2) }, f_lstsq, 0 },
	{ "lstsq by QR", 2, { M2(5, 3), M2(5, 2) }, f_lstsq_qr, 0 },
	{ "lstsq by QR, wide", 2, { M2(3, 5), M2(3, 2) }, f_lstsq_qr, 0 },
	{ "lu", 1, { M3(2, 4, 4) }, f_lu, 0 },
	{ "lu of a tall matrix", 1, { M2(5, 3) }, f_lu, 0 },
	{ "lu of a wide matrix", 1, { M2(3, 5) }, f_lu, 0 },
	{ "qr", 1, { M3(2, 4, 4) }, f_qr, 0 },
	{ "qr of a tall matrix", 1, { M2(5, 3) }, f_qr, 0 },
	{ "qr of a wide matrix", 1, { M2(3, 5) }, f_qr, 0 },
	{ "svd", 1, { M2(4, 4) }, f_svd, 0 },
	{ "svd of a tall matrix", 1, { M2(5, 3) }, f_svd, 0 },
	{ "svd of a wide matrix", 1, { M2(3, 5) }, f_svd, 0 },
	{ "moments", 1, { M2(5, 3) }, f_moments, 0 },
	{ "moments with weights", 2, { M2(5, 3), { 1, { 5 }, 0.5, 2 } }, f_moments_weighed, 0 },
	{ "moments, diagonal", 2, { M2(5, 3), { 1, { 5 }, 0.5, 2 } }, f_moments_diagonal, 0 },
	{ "fft", 1, { M3(5, 3, 2) }, f_fft, 0 },
	{ "ifft", 1, { M3(6, 2, 2) }, f_ifft, 0 },
	{ "rfft", 1, { M2(3, 6) }, f_rfft, 0 },
	{ "rfft of odd sizes", 1, { M2(3, 7) }, f_rfft, 0 },
	{ "irfft", 1, { M3(4, 2, 2) }, f_irfft, 0 },
	{ "irfft of odd sizes", 1, { M3(4, 2, 2) }, f_irfft_odd, 0 },
	{ "stft", 2, { M1(9), P1(4) }, f_stft, 0 },
	{ "istft", 2, { M3(3, 5, 2), P1(4) }, f_istft, 0 },
	{ "sort", 1, { M2(7, 3) }, f_sort_up, 0 },
	{ "sort down", 1, { M3(2, 5, 3) }, f_sort_down, 0 },
	{ "topk", 1, { M2(3, 9) }, f_top, 0 },
	{ "take_along", 1, { M2(3, 5) }, f_take, 0 },
	{ "take_along spread", 1, { M2(3, 5) }, f_take_spread, 0 },
	{ "scatter_add_along", 2, { M2(3, 5), M2(3, 2) }, f_add_along, 0 },
	{ "var", 1, { M3(3, 4, 5) }, f_var, 0 },
	{ "std", 1, { M2(3, 5) }, f_std, 0 },
	{ "norm 1", 1, { M2(3, 5) }, f_norm1, 0 },
	{ "norm 2", 1, { M2(3, 5) }, f_norm2, 0 },
	{ "norm 3.5", 1, { M2(3, 5) }, f_norm3, 0 },
	{ "norm 1/2", 1, { P2(2, 3) }, f_norm_half, 0 },
	{ "norm inf", 1, { M2(3, 5) }, f_norm_inf, 0 },
	{ "norm of zeros", 1, { M2(3, 5) }, f_norm_zero, 0 },
	{ "quantile", 1, { M2(3, 6) }, f_quantile, 0 },
	{ "quantile of", 2, { M2(6, 3), { 1, { 2 }, 0.1, 0.9 } }, f_quantile_of, 0 },
	{ "cov", 1, { M3(2, 3, 5) }, f_cov, 0 },
	{ "corr", 1, { M2(4, 6) }, f_corr, 0 },
	{ "clamp", 2, { M2(3, 5), { 1, { 5 }, 0.5, 1.5 } }, f_clamp, 0 },
	{ "check_finite", 1, { M2(3, 5) }, f_check, 0 },
	{ "reduce_max", 1, { M3(3, 4, 5) }, f_rmax, 0 },
	{ "reduce_min", 1, { M2(3, 4) }, f_rmin, 0 },
	{ "matmul", 2, { M2(3, 4), M2(4, 5) }, f_mm, 0 },
	{ "matmul ta", 2, { M2(4, 3), M2(4, 5) }, f_mm_ta, 0 },
	{ "matmul tb", 2, { M2(3, 4), M2(5, 4) }, f_mm_tb, 0 },
	{ "matmul ta tb", 2, { M2(4, 3), M2(5, 4) }, f_mm_tatb, 0 },
	{ "matmul batch", 2, { M3(2, 3, 4), M3(2, 4, 5) }, f_mm, 0 },
	{ "matmul batch tb", 2, { M3(2, 3, 4), M3(2, 5, 4) }, f_mm_tb, 0 },
	{ "matmul batch ta", 2, { M3(2, 4, 3), M3(1, 4, 5) }, f_mm_ta, 0 },
	{ "matmul rows", 2, { M3(2, 3, 4), M2(4, 5) }, f_mm, 0 },
	{ "matmul broadcast", 2, { M4(2, 1, 3, 4), M3(3, 4, 2) }, f_mm, 0 },
	{ "linear", 3, { M3(2, 3, 4), M2(5, 4), M1(5) }, f_linear, 0 },
	{ "reshape", 1, { M3(2, 3, 4) }, f_reshape, 0 },
	{ "permute", 1, { M3(2, 3, 4) }, f_permute, 0 },
	{ "broadcast_to", 1, { M2(3, 1) }, f_broadcast, 0 },
	{ "slice", 1, { M3(2, 5, 3) }, f_slice, 0 },
	{ "slice step", 1, { M3(2, 5, 3) }, f_slice_step, 0 },
	{ "split", 1, { M2(3, 6) }, f_split, 0 },
	{ "overlapping slices", 1, { M2(3, 6) }, f_overlap, 0 },
	{ "pad", 1, { M2(3, 4) }, f_pad, 0 },
	{ "concat", 2, { M2(3, 4), M2(3, 2) }, f_concat, 0 },
	{ "flip", 1, { M2(3, 4) }, f_flip, 0 },
	{ "slice_update", 2, { M2(3, 5), M2(2, 2) }, f_update, 0 },
	{ "slice_at", 1, { M2(3, 5) }, f_slice_at, 0 },
	{ "slice_update_at", 2, { M2(3, 5), M2(2, 2) }, f_update_at, 0 },
	{ "gather rows", 1, { M2(5, 3) }, f_gather0, 0 },
	{ "gather axis 1", 1, { M3(2, 5, 3) }, f_gather1, 0 },
	{ "gather axis 2", 1, { M3(2, 3, 5) }, f_gather2, 0 },
	{ "hypot", 2, { M2(3, 5), P2(1, 5) }, f_hypot, 0 },
	{ "frexp", 1, { { 2, { 3, 5 }, 0.55, 0.95 } }, f_frexp, 0 },
	{ "copysign", 2, { P2(3, 5), M2(1, 5) }, f_copysign, 0 },
	{ "roll", 1, { M2(3, 5) }, f_roll, 0 },
	{ "nextafter",
	  2,
	  { { 2, { 3, 5 }, 0.55, 0.95 }, { 2, { 1, 5 }, 0.55, 0.95 } },
	  f_nextafter,
	  0 },
	{ "masked_scatter", 2, { M2(3, 5), M2(4, 3) }, f_masked_scatter, 0 },
	{ "masked_select", 1, { M2(3, 5) }, f_masked_select, 0 },
	{ "searchsorted", 1, { M2(3, 5) }, f_searchsorted, 0 },
	{ "scatter_set", 2, { M2(5, 3), M2(6, 3) }, f_scatter_set, 0 },
	{ "scatter_add", 2, { M2(5, 3), M2(6, 3) }, f_scatter, 0 },
	{ "contiguous", 1, { M2(3, 4) }, f_contiguous, 0 },
	{ "softmax", 1, { M2(3, 5) }, f_softmax, 0 },
	{ "log_softmax", 1, { M2(3, 5) }, f_log_softmax, 0 },
	{ "logsumexp", 1, { M2(3, 5) }, f_logsumexp, 0 },
	{ "softmax, axis 0", 1, { M2(3, 5) }, f_softmax_first, 0 },
	{ "logsumexp, axis 0", 1, { M2(3, 5) }, f_logsumexp_first, 0 },
	{ "layer_norm", 3, { M3(2, 3, 5), M1(5), M1(5) }, f_layer_norm, 1e-5 },
	{ "batch_norm", 3, { M3(3, 4, 5), M1(4), M1(4) }, f_batch_norm, 1e-5 },
	{ "batch_norm bare, with its statistics", 1, { M3(3, 4, 5) }, f_batch_norm_bare, 1e-5 },
	{ "layer_norm bare", 1, { M2(3, 5) }, f_layer_norm_bare, 1e-5 },
	{ "rms_norm", 2, { M3(2, 3, 5), M1(5) }, f_rms_norm, 1e-5 },
	{ "cross_entropy", 1, { M2(6, 5) }, f_xent, 0 },
	{ "attention", 3, { M4(2, 3, 4, 5), M4(2, 3, 2, 5), M4(2, 3, 2, 5) }, f_attention, 0 },
	{ "attention mask",
	  4,
	  { M4(2, 3, 2, 4), M4(2, 5, 2, 4), M4(2, 5, 2, 4), M4(1, 2, 3, 5) },
	  f_attention_mask,
	  0 },
	{ "attention, a mask for all",
	  4,
	  { M4(2, 3, 2, 4), M4(2, 5, 1, 4), M4(2, 5, 1, 4), M4(1, 1, 3, 5) },
	  f_attention_mask,
	  0 },
	{ "attention, a mask for each",
	  4,
	  { M4(2, 3, 2, 4), M4(2, 5, 2, 4), M4(2, 5, 2, 4), M4(2, 2, 3, 5) },
	  f_attention_mask,
	  0 },
	{ "attention, mask and dropout",
	  4,
	  { M4(2, 3, 2, 3), M4(2, 3, 2, 3), M4(2, 3, 2, 3), M4(2, 1, 3, 3) },
	  f_attention_mask_drop,
	  0 },
	{ "attention, mask and keys",
	  4,
	  { M4(2, 3, 2, 3), M4(2, 6, 1, 3), M4(2, 6, 1, 3), M4(1, 2, 3, 6) },
	  f_attention_mask_keys,
	  0 },
	{ "attention, a learned bias", 2, { M4(2, 2, 2, 3), M2(2, 3) }, f_attention_bias, 0 },
	{ "attention keys",
	  3,
	  { M4(2, 3, 2, 3), M4(2, 6, 1, 3), M4(2, 6, 1, 3) },
	  f_attention_keys,
	  0 },
	{ "attention, keys of each",
	  4,
	  { M4(2, 3, 2, 3), M4(2, 6, 1, 3), M4(2, 6, 1, 3), M4(2, 1, 3, 6) },
	  f_attention_each,
	  0 },
	{ "rope", 3, { M4(2, 3, 2, 6), M2(3, 3), M2(3, 3) }, f_rope, 0 },
	{ "resolvent", 4, { M2(2, 5), M2(1, 4), M1(4), M2(2, 2) }, f_resolvent, 0 },
	{ "resolvent, left", 3, { M1(6), M1(5), M2(2, 2) }, f_resolvent_left, 0 },
	{ "resolvent of one element", 4, { M2(2, 1), M2(2, 0), M1(0), M1(2) }, f_resolvent, 0 },
	{ "resolvent, complex",
	  5,
	  { M2(2, 5), M2(1, 5), M2(1, 4), M1(4), M2(2, 2) },
	  f_resolvent_complex,
	  0 },
	{ "resolvent, corner",
	  5,
	  { M2(2, 5), M2(1, 5), M2(1, 4), M1(4), M2(2, 2) },
	  f_resolvent_corner,
	  0 },
	{ "resolvent, log det",
	  5,
	  { M2(2, 5), M2(1, 5), M2(1, 4), M1(4), M2(2, 2) },
	  f_resolvent_log_det,
	  0 },
	{ "window", 1, { M3(2, 8, 2) }, f_window, 0 },
	{ "max_pool", 1, { M4(2, 2, 3, 4) }, f_max_pool, 0 },
	{ "max_pool_backward", 2, { M4(2, 2, 3, 4), M4(2, 2, 2, 4) }, max_pool_backward, 0 },
	{ "embedding_bag", 2, { M2(5, 3), M1(6) }, f_bag, 0 },
	{ "embedding_bag, max", 1, { M2(5, 3) }, f_bag_max, 0 },
	{ "interpolate", 1, { M4(1, 2, 3, 4) }, f_interpolate, 0 },
	{ "grid_sample", 2, { M4(1, 2, 3, 4), M4(1, 2, 2, 2) }, f_grid_sample, 0 },
	{ "conv", 2, { M4(2, 4, 4, 5), M4(4, 2, 2, 2) }, f_conv, 0 },
	{ "conv_transposed", 2, { M4(1, 4, 2, 3), M4(4, 1, 2, 3) }, f_conv_transposed, 0 },
	{ "grouped_matmul", 2, { M2(5, 3), M3(3, 3, 2) }, f_grouped, 0 },
	{ "swiglu", 2, { M2(3, 5), M2(3, 5) }, f_swiglu, 0 },
	{ "bce_logits", 2, { M2(3, 5), M2(3, 5) }, f_bce, 0 },
	{ "kl", 2, { M2(3, 5), M2(3, 5) }, f_kl, 0 },
	{ "attention dropout",
	  3,
	  { M4(1, 4, 2, 3), M4(1, 4, 2, 3), M4(1, 4, 2, 3) },
	  f_attention_drop,
	  0 },
	{ "barrier", 2, { M2(3, 5), M2(3, 5) }, f_barrier, 0 },
	{ "stop_grad", 1, { M2(3, 5) }, f_stop, 0 },
	{ "mse", 2, { M2(3, 5), M2(3, 5) }, f_mse, 0 },
	{ "two uses", 1, { M2(3, 5) }, f_twice, 0 },
	{ "adamw", 8, { M1(5), M1(5), M1(5), { 1, { 5 }, 0.3, 2 }, N1, N1, N1, N1 }, f_adamw, 0 },
	{ "lamb", 7, { M1(5), M1(5), M1(5), { 1, { 5 }, 0.3, 2 }, N1, N1, N1 }, f_lamb, 0 },
	{ "lamb, its step", 5, { M1(5), M1(5), N1, N1, N1 }, f_lamb_step, 0 },
	{ "sgd", 4, { M2(2, 3), M2(2, 3), N1, N1 }, f_sgd, 0 },
	{ "sgd, momentum", 6, { M2(2, 3), M2(2, 3), M2(2, 3), N1, N1, N1 }, f_momentum, 0 },
	{ "sgd, a later step",
	  6,
	  { M1(5), M1(5), M1(5), N1, N1, { 1, { 1 }, 0, 0 } },
	  f_nesterov,
	  0 },
	{ "scale of a list", 2, { M2(2, 3), N1 }, f_scale, 0 },
	{ "squares of each tensor", 2, { M2(2, 3), M1(5) }, f_sum_each, 0 },
	{ "squares of each tensor and of all", 2, { M2(2, 3), M1(5) }, f_sum_both, 0 },
	{ "the largest square", 2, { M2(2, 3), M1(5) }, f_max_all, 0 },
	// eight axes
	{ "mul of rank 8",
	  2,
	  { M8(2, 1, 3, 1, 2, 1, 1, 2), M8(1, 2, 1, 1, 2, 2, 1, 2) },
	  f_mul,
	  0 },
	{ "permute of rank 8", 1, { M8(2, 1, 3, 1, 2, 2, 1, 2) }, f_turned, 0 },
	{ "sum of rank 8", 1, { M8(2, 1, 3, 2, 2, 1, 1, 2) }, f_sum_even, 0 },
	{ "matmul of rank 8",
	  2,
	  { M8(2, 1, 1, 2, 1, 1, 2, 3), M8(1, 2, 1, 2, 1, 1, 3, 2) },
	  f_mm,
	  0 },
	{ "softmax of rank 8", 1, { M8(1, 2, 1, 1, 2, 1, 1, 3) }, f_softmax, 0 },
	{ "concat of rank 8",
	  2,
	  { M8(1, 2, 1, 1, 2, 1, 1, 3), M8(1, 1, 1, 1, 2, 1, 1, 3) },
	  f_concat,
	  0 },
	// empty tensors, alone and concatenated
	{ "add of nothing", 2, { M2(0, 5), M1(5) }, f_add, 0 },
	{ "mul of nothing", 2, { M2(3, 0), M2(3, 1) }, f_mul, 0 },
	{ "exp of nothing", 1, { M2(0, 5) }, f_exp, 0 },
	{ "sum of nothing", 1, { M3(3, 0, 5) }, f_sum, 0 },
	{ "sum over nothing", 1, { M3(3, 0, 5) }, f_sum_keep, 0 },
	{ "prod over nothing", 1, { M2(3, 0) }, f_prod, 0 },
	{ "cumsum of nothing", 1, { M2(3, 0) }, f_cumsum, 0 },
	{ "sort of nothing", 1, { M2(0, 3) }, f_sort_up, 0 },
	{ "matmul, no k", 2, { M2(3, 0), M2(0, 5) }, f_mm, 0 },
	{ "matmul, no m", 2, { M2(0, 4), M2(4, 5) }, f_mm, 0 },
	{ "matmul, no n", 2, { M2(3, 4), M2(0, 4) }, f_mm_tb, 0 },
	{ "matmul, no batch", 2, { M3(0, 3, 4), M2(4, 5) }, f_mm, 0 },
	{ "linear of nothing", 3, { M2(0, 4), M2(5, 4), M1(5) }, f_linear, 0 },
	{ "reshape of nothing", 1, { M2(0, 7) }, f_reshape_none, 0 },
	{ "permute of nothing", 1, { M3(2, 0, 4) }, f_permute, 0 },
	{ "slice to nothing", 1, { M2(3, 5) }, f_slice_none, 0 },
	{ "pad of nothing", 1, { M2(0, 3) }, f_pad_none, 0 },
	{ "concat with nothing", 2, { M2(3, 4), M2(3, 0) }, f_concat, 0 },
	{ "gather of nothing", 1, { M2(5, 3) }, f_gather_none, 0 },
	{ "scatter_add of nothing", 2, { M2(5, 3), M2(0, 3) }, f_scatter_none, 0 },
	{ "softmax of nothing", 1, { M2(0, 5) }, f_softmax, 0 },
	{ "logsumexp of nothing", 1, { M2(0, 5) }, f_logsumexp, 0 },
	{ "layer_norm of nothing", 3, { M2(0, 5), M1(5), M1(5) }, f_layer_norm, 0 },
	{ "rms_norm of nothing", 2, { M2(0, 5), M1(5) }, f_rms_norm, 0 },
	{ "attention of nothing",
	  3,
	  { M4(0, 3, 2, 5), M4(0, 3, 2, 5), M4(0, 3, 2, 5) },
	  f_attention,
	  0 },
	{ "attention without queries",
	  3,
	  { M4(2, 0, 2, 5), M4(2, 3, 2, 5), M4(2, 3, 2, 5) },
	  f_attention,
	  0 },
};

static size_t count(const struct input *in)
{
	size_t n = 1;
	for (int i = 0; i < in->rank; i++)
		n *= (size_t)in->dims[i];
	return n;
}

// sum(w f(x)) with fixed weights that differ by element, so that a wrong order shows.
static yoke_tensor *weighed(const struct row *r, yoke_tensor *const *x)
{
	yoke_tensor *y = r->fn(x);
	if (!y)
		return NULL;
	int64_t dims[YOKE_MAX_RANK];
	for (int i = 0; i < yoke_rank(y); i++)
		dims[i] = yoke_dim(y, i);
	yoke_tensor *w = yoke_iota(yoke_f64, 1, (int64_t[]){ yoke_count(y) }, 0);
	w = yoke_reshape(yoke_cos(yoke_mul(w, yoke_const(0.7))), yoke_rank(y), dims);
	return yoke_sum(yoke_mul(y, w), YOKE_ALL);
}

// A scope with the same random numbers each time.
static yoke_scope *step_begin(void)
{
	yoke_random_set(7, 3);
	return yoke_scope_begin("step");
}

static double value(const struct row *r, double data[LIMIT][ELEMENTS])
{
	double y = NAN;
	yoke_tensor *x[LIMIT];
	yoke_scope *s = step_begin();
	for (int k = 0; k < r->n; k++)
		x[k] = yoke_from(yoke_f64, r->in[k].rank, r->in[k].dims, data[k]);
	yoke_read(weighed(r, x), &y, sizeof y);
	yoke_scope_end(s);
	return y;
}

static const double h = 1e-5; // of differences

// Central differences of fourth order, of values h, -h, 2 h and -2 h from a point: long products,
// scans and inverses near a pole have slopes of about 300, so the sine of their results turns by
// 300 h per step, and second-order differences err by (300 h)^2, 1e-5.
static const int steps[] = { 1, -1, 2, -2 };

static double slope(const double v[4])
{
	return (8 * (v[0] - v[1]) - (v[2] - v[3])) / (12 * h);
}

// Random numbers of a case, whose absolute values are so far from each other, and from the
// constants of this file, that no difference crosses a kink or jump of abs, max, a sort, a bound or
// a quantile.
static void draw(const struct row *r, double data[LIMIT][ELEMENTS])
{
	static double seen[6 + LIMIT * ELEMENTS] = { 0, 0.2, 0.4, 0.6, 0.7, 0.8 };
	size_t n = 6;
	for (int k = 0; k < r->n; k++)
		for (size_t i = 0; i < count(&r->in[k]); i++) {
			double x;
			bool close;
			do {
				x = rnd_real(r->in[k].lo, r->in[k].hi);
				close = false;
				for (size_t j = 0; j < n; j++)
					close |= fabs(fabs(x) - seen[j]) < 5 * h;
			} while (close && r->in[k].lo < r->in[k].hi);
			data[k][i] = x;
			seen[n++] = fabs(x);
		}
}

static void check(const struct row *r)
{
	static double data[LIMIT][ELEMENTS], got[LIMIT][ELEMENTS], want[LIMIT][ELEMENTS];
	draw(r, data);
	yoke_tensor *x[LIMIT], *g[LIMIT];
	yoke_scope *s = step_begin();
	for (int k = 0; k < r->n; k++)
		x[k] = yoke_from(yoke_f64, r->in[k].rank, r->in[k].dims, data[k]);
	yoke_tensor *y = weighed(r, x);
	note(x, r->n);
	int err = y ? yoke_grad(y, r->n, x, g) : yoke_error_code();
	if (!err)
		err = yoke_eval(r->n, g);
	for (int k = 0; k < r->n && !err; k++)
		err = yoke_read(g[k], got[k], count(&r->in[k]) * sizeof(double));
	if (!ok(!err, "%s: gradient computed%s%s", r->name, err ? ": " : "",
		err ? yoke_error() : "")) {
		yoke_error_clear();
		yoke_scope_end(s);
		return;
	}
	yoke_scope_end(s);
	for (int k = 0; k < r->n; k++)
		for (size_t i = 0; i < count(&r->in[k]); i++) {
			double keep = data[k][i], v[4];
			for (int side = 0; side < 4; side++) {
				data[k][i] = keep + steps[side] * h;
				v[side] = value(r, data);
			}
			data[k][i] = keep;
			want[k][i] = slope(v);
		}
	for (int k = 0; k < r->n; k++) {
		char text[80];
		snprintf(text, sizeof text, "%s: operand %d", r->name, k);
		near(got[k], want[k], count(&r->in[k]), r->tol > 0 ? r->tol : 1e-6, 1, text);
	}
}

// d2/dx2 of sum(x^3 + exp(x)) is 6x + exp(x).
static void second_order(void)
{
	double x[5], got[5], want[5];
	for (int i = 0; i < 5; i++) {
		x[i] = rnd_real(-1, 1);
		want[i] = 6 * x[i] + exp(x[i]);
	}
	yoke_tensor *v = yoke_from(yoke_f64, 1, (int64_t[]){ 5 }, x), *g, *gg;
	yoke_tensor *y = yoke_sum(yoke_add(yoke_mul(v, yoke_square(v)), yoke_exp(v)), YOKE_ALL);
	yoke_grad(y, 1, &v, &g);
	yoke_grad(yoke_sum(g, YOKE_ALL), 1, &v, &gg);
	ok(!yoke_read(gg, got, sizeof got), "second order computed: %s", yoke_error());
	near(got, want, 5, 1e-12, 1, "second order");
}

// Of each operand once more: d/dx of sum |df/dx|^2 against central differences of the first.
static yoke_tensor *norm_of_gradient(const struct row *r, yoke_tensor *const *x)
{
	// the sine makes the cotangents of the rules depend on x as well
	yoke_tensor *g[LIMIT], *y = yoke_sin(weighed(r, x)), *sum = yoke_const(0);
	if (yoke_grad(y, r->n, x, g) < 0)
		return NULL;
	for (int k = 0; k < r->n; k++)
		sum = yoke_add(sum, yoke_sum(yoke_square(g[k]), YOKE_ALL));
	return sum;
}

static void second_order_row(const struct row *r)
{
	static double data[LIMIT][ELEMENTS], got[LIMIT][ELEMENTS], want[ELEMENTS];
	yoke_tensor *x[LIMIT], *g[LIMIT];
	char text[80];
	draw(r, data);
	memset(got, 0xff, sizeof got);
	yoke_scope *s = step_begin();
	for (int k = 0; k < r->n; k++)
		x[k] = yoke_from(yoke_f64, r->in[k].rank, r->in[k].dims, data[k]);
	yoke_tensor *y = norm_of_gradient(r, x);
	note(x, r->n);
	yoke_grad(y, r->n, x, g);
	yoke_eval(r->n, g);
	for (int k = 0; k < r->n; k++)
		yoke_read(g[k], got[k], count(&r->in[k]) * sizeof **got);
	yoke_scope_end(s);
	for (int k = 0; k < r->n; k++) {
		for (size_t at = 0; at < count(&r->in[k]); at++) {
			double v[4] = { NAN, NAN, NAN, NAN }, keep = data[k][at];
			for (int side = 0; side < 4; side++) {
				s = step_begin();
				data[k][at] = keep + steps[side] * h;
				for (int i = 0; i < r->n; i++)
					x[i] = yoke_from(yoke_f64, r->in[i].rank, r->in[i].dims,
							 data[i]);
				yoke_read(norm_of_gradient(r, x), &v[side], sizeof *v);
				yoke_scope_end(s);
			}
			data[k][at] = keep;
			want[at] = slope(v);
		}
		snprintf(text, sizeof text, "%s: second order, operand %d %s", r->name, k,
			 yoke_error());
		near(got[k], want, count(&r->in[k]), 1e-5, 1, text);
	}
	yoke_error_clear();
}

// Points where the rules define a value that differences cannot give: ties, zeros and NaN. n
// elements, b may be absent.
static void edge(const char *name, yoke_tensor *(*fn)(yoke_tensor *const *), int n, const double *a,
		 const double *b, const double *ga, const double *gb)
{
	double got[8];
	char text[80];
	yoke_scope *s = yoke_scope_begin("edge");
	yoke_tensor *x[2], *g[2];
	for (int k = 0; k < (b ? 2 : 1); k++)
		x[k] = yoke_from(yoke_f64, 1, (int64_t[]){ n }, k ? b : a);
	yoke_grad(yoke_sum(fn(x), YOKE_ALL), b ? 2 : 1, x, g);
	yoke_eval(b ? 2 : 1, g);
	for (int k = 0; k < (gb ? 2 : 1); k++) {
		memset(got, 0xff, sizeof got);
		yoke_read(g[k], got, (size_t)n * sizeof *got);
		snprintf(text, sizeof text, "%s: operand %d %s", name, k, yoke_error());
		near(got, k ? gb : ga, (size_t)n, 1e-15, 1, text);
	}
	yoke_error_clear();
	yoke_scope_end(s);
}

FN(all_max, yoke_reduce_max(x[0], YOKE_ALL))
FN(all_min, yoke_reduce_min(x[0], YOKE_ALL))
FN(all_prod, yoke_prod(x[0], YOKE_ALL))
FN(clamp_one, yoke_clamp(x[0], yoke_const(-1), yoke_const(1)))
FN(all_norm, yoke_norm(x[0], 2, YOKE_ALL))
FN(sign, yoke_sign(x[0]))
FN(all_std, yoke_std(x[0], YOKE_ALL, 1))
FN(sorted, yoke_mul(yoke_sort(x[0], 0, 1, NULL), x[1]))

static void edges(void)
{
	const double a[4] = { 1, 2, NAN, 3 }, b[4] = { 1, 1, 1, 4 };
	const double larger[4] = { 0.5, 1, 0, 0 }, other[4] = { 0.5, 0, 0, 1 };
	edge("max of ties and NaN", f_max, 4, a, b, larger, other);
	const double smaller[4] = { 0.5, 0, 0, 1 }, rest[4] = { 0.5, 1, 0, 0 };
	edge("min of ties and NaN", f_min, 4, a, b, smaller, rest);
	const double base[8] = { 0, 0, 3, 0, -2, 0, NAN, INFINITY },
		     power[8] = { 0, 1, 2, 2, 3, -1, 2, -1 },
		     gbase[8] = { 0, 1, 6, 0, 12, -INFINITY, NAN, 0 },
		     gpower[8] = { 0, 0, 9 * log(3), 0, 0, -INFINITY, NAN, 0 };
	edge("pow at 0 and below", f_pow, 8, base, power, gbase, gpower);
	const double nan_in[3] = { NAN, 1, 2 }, nothing[3] = { 0 };
	edge("reduce_max with NaN", f_all_max, 3, nan_in, NULL, nothing, NULL);
	edge("reduce_min with NaN", f_all_min, 3, nan_in, NULL, nothing, NULL);
	edge("sign", f_sign, 3, nan_in, NULL, nothing, NULL);
	const double zero[3] = { 0, 0, -0.0 }, none[3] = { 0 };
	edge("abs at 0", f_abs, 3, zero, NULL, none, NULL);
	edge("relu at 0", f_relu, 3, zero, NULL, none, NULL);
	const double equal[3] = { 0.75, 0.75, 0.75 };
	edge("std of equal elements", f_all_std, 3, equal, NULL, none, NULL);
	edge("norm of zeros", f_all_norm, 3, zero, NULL, none, NULL);
	const double ties[5] = { 2, -1, 2, -1, 0 }, shared[5] = { 0.5, 0, 0.5, 0, 0 },
		     low[5] = { 0, 0.5, 0, 0.5, 0 };
	edge("reduce_max of ties", f_all_max, 5, ties, NULL, shared, NULL);
	edge("reduce_min of ties", f_all_min, 5, ties, NULL, low, NULL);
	const double one_zero[3] = { 2, 0, 3 }, only[3] = { 0, 6, 0 }, two[3] = { 0, 5, 0 };
	edge("prod with a 0", f_all_prod, 3, one_zero, NULL, only, NULL);
	edge("prod with two", f_all_prod, 3, two, NULL, none, NULL);
	const double out[5] = { -2, -1, 0, 1, NAN }, inside[5] = { 0, 0.5, 1, 0.5, 0 };
	edge("clamp at its bounds", f_clamp_one, 5, out, NULL, inside, NULL);
	// descending, stable, NaN last: 3 1a 1b NaN, which get the weights in that order
	const double mixed[4] = { 1, NAN, 3, 1 }, weight[4] = { 10, 20, 30, 40 },
		     placed[4] = { 20, 40, 10, 30 };
	edge("sort of ties and NaN", f_sorted, 4, mixed, weight, placed, NULL);
}

// The norm of a list is f32, too coarse for differences: x / |x|.
static void norm_of_list(void)
{
	const double a[2] = { 2, 3 }, b[1] = { -6 }, want[2] = { 2 / 7., 3 / 7. }, other = -6 / 7.;
	double got[3] = { NAN, NAN, NAN };
	yoke_scope *s = yoke_scope_begin("list");
	yoke_tensor *x[2] = { yoke_from(yoke_f64, 1, (int64_t[]){ 2 }, a),
			      yoke_from(yoke_f64, 0, NULL, b) },
		    *g[2];
	yoke_tensor *y = yoke_global_norm(2, x);
	note(x, 2);
	yoke_grad(y, 2, x, g);
	yoke_eval(2, g);
	yoke_read(g[0], got, 2 * sizeof *got);
	yoke_read(g[1], got + 2, sizeof *got);
	near(got, want, 2, 1e-7, 1, "global_norm: the first tensor");
	near(got + 2, &other, 1, 1e-7, 1, "global_norm: the second tensor");
	yoke_scope_end(s);
}

// Operations that change nothing still give separate values: a gradient by one covers its readers,
// and by the operand all readers.
FN(same_cast, yoke_cast(x[0], yoke_f64))
FN(same_dropout, yoke_dropout(x[0], 0))
FN(same_clamp, yoke_clamp(x[0], YOKE_NONE, YOKE_NONE))
FN(same_resize, yoke_resize(x[0], (int64_t[]){ 1, 3 }, 0))
FN(same_smooth, yoke_resize(x[0], (int64_t[]){ 1, 3 }, 1))
FN(same_reshape, yoke_reshape(x[0], 4, (int64_t[]){ 1, 1, 1, 3 }))
FN(same_permute, yoke_permute(x[0], (int[]){ 0, 1, 2, 3 }))
FN(same_broadcast, yoke_broadcast_to(x[0], 4, (int64_t[]){ 1, 1, 1, 3 }))
FN(same_slice, yoke_slice(x[0], 3, 0, 3, 1))
FN(same_flip, yoke_flip(x[0], 0))
FN(same_pad, yoke_pad(x[0], (int64_t[]){ 0, 0, 0, 0 }, (int64_t[]){ 0, 0, 0, 0 }, 0))
FN(same_concat, yoke_concat(1, x, 0))
FN(same_sum, yoke_sum(x[0], YOKE_AXIS(0) | YOKE_KEEP))
FN(same_cumsum, yoke_cumsum(x[0], 0, 0))
FN(same_cummax, yoke_cummax(x[0], 1))
FN(same_logs, yoke_logcumsumexp(x[0], 2))
FN(same_contiguous, yoke_contiguous(x[0]))
FN(same_mean_pool, yoke_adaptive_mean_pool(x[0], (int64_t[]){ 1, 3 }))
FN(same_max_pool, yoke_adaptive_max_pool(x[0], (int64_t[]){ 1, 3 }))
FN(same_check, yoke_check_finite(x[0]))
FN(same_max, yoke_reduce_max(x[0], YOKE_AXIS(0) | YOKE_KEEP))

static void unchanged(void)
{
	static const struct {
		const char *name;
		yoke_tensor *(*fn)(yoke_tensor *const *);
	} row[] = {
		{ "cast", f_same_cast },
		{ "dropout", f_same_dropout },
		{ "clamp", f_same_clamp },
		{ "resize", f_same_resize },
		{ "resize, smooth", f_same_smooth },
		{ "reshape", f_same_reshape },
		{ "permute", f_same_permute },
		{ "broadcast_to", f_same_broadcast },
		{ "slice", f_same_slice },
		{ "flip", f_same_flip },
		{ "pad", f_same_pad },
		{ "concat", f_same_concat },
		{ "sum", f_same_sum },
		{ "cumsum", f_same_cumsum },
		{ "cummax", f_same_cummax },
		{ "logcumsumexp", f_same_logs },
		{ "contiguous", f_same_contiguous },
		{ "adaptive_mean_pool", f_same_mean_pool },
		{ "adaptive_max_pool", f_same_max_pool },
		{ "check_finite", f_same_check },
		{ "reduce_max", f_same_max },
	};
	const double a[3] = { 2, -3, 5 }, three[3] = { 3, 3, 3 }, four[3] = { 4, 4, 4 },
		     none[3] = { 0 };
	for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
		double by_x[3], by_y[3], apart[3];
		yoke_scope *s = yoke_scope_begin("same");
		yoke_tensor *x = yoke_from(yoke_f64, 4, (int64_t[]){ 1, 1, 1, 3 }, a),
			    *y = row[k].fn(&x), *g[2], *other;
		yoke_tensor *p[2] = { x, y },
			    *sum = yoke_sum(yoke_add(yoke_mul(y, yoke_const(3)), x), YOKE_ALL);
		bool good =
			y && !yoke_grad(sum, 2, p, g) &&
			!yoke_grad(yoke_sum(yoke_mul(x, yoke_const(3)), YOKE_ALL), 1, &y, &other) &&
			!yoke_read(g[0], by_x, sizeof by_x) &&
			!yoke_read(g[1], by_y, sizeof by_y) &&
			!yoke_read(other, apart, sizeof apart);
		ok(good && near(by_x, four, 3, 1e-15, 1, "by the operand") &&
			   near(by_y, three, 3, 1e-15, 1, "by the result") &&
			   near(apart, none, 3, 0, 1, "of what does not read it"),
		   "%s that changes nothing: %s", row[k].name, yoke_error());
		yoke_error_clear();
		yoke_scope_end(s);
	}
}

// An op without a rule gives an error, not a gradient of 0.
static void no_rule(void)
{
	const double a[2] = { 2, 3 };
	yoke_scope *s = yoke_scope_begin("none");
	yoke_tensor *x = yoke_from(yoke_f64, 1, (int64_t[]){ 2 }, a), *g = x;
	struct yoke_context *ctx = yk_current();
	yoke_tensor *y =
		yk_handle_of(ctx, yk_un(&ctx->graph, YK_TRANSFER, yk_operand(ctx, x, yoke_f64)));
	int err = yoke_grad(yoke_sum(y, YOKE_ALL), 1, &x, &g);
	ok(err == YOKE_EUNSUPPORTED && !g && strstr(yoke_error(), "transfer"),
	   "an op without a rule: %s", yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
}

int main(int argc, char **argv)
{
	tap_seed();
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (argc < 2 || !strcmp(argv[1], rows[i].name)) { // one row by its name
			check(&rows[i]);
			second_order_row(&rows[i]);
		}
	for (size_t i = 0; i < sizeof once / sizeof *once; i++)
		if (argc < 2 || !strcmp(argv[1], once[i].name))
			check(&once[i]);
	second_order();
	edges();
	unchanged();
	norm_of_list();
	no_rule();
	if (argc < 2)
		all_rows_met();
	return done();
}
