// SPDX-License-Identifier: Apache-2.0
// The op table.

#include "config.h"

#include "graph/op.h"

#define MAP_CAST(N, NAME, nin, more, policy) [YK_##N] = { \
	.name = NAME, .code = YOKE_OP_MAP, .map = YOKE_MAP_##N, .flags = YK_F_MAP | YK_F_STRIDED | (more), \
	.min_in = nin, .max_in = nin, .nout = 1, .cast = policy, .shape = yk_shape_map, .grad = yk_grad_map }
#define MAP(N, NAME, nin, more) MAP_CAST(N, NAME, nin, more, YK_CAST_WIDEST)
#define MAP0(N, NAME, nin, more) [YK_##N] = { \
	.name = NAME, .code = YOKE_OP_MAP, .map = YOKE_MAP_##N, .flags = YK_F_MAP | YK_F_STRIDED | (more), \
	.min_in = nin, .max_in = nin, .nout = 1, .cast = YK_CAST_WIDEST, .shape = yk_shape_map }
#define REDUCE(N, NAME, KIND, policy, rule) [YK_##N] = { \
	.name = NAME, .code = YOKE_OP_REDUCE, .map = YOKE_REDUCE_##KIND, .flags = YK_F_REDUCE, \
	.min_in = 1, .max_in = 1, .nout = 1, .cast = policy, .shape = yk_shape_reduce, .grad = rule }
#define SCAN(N, NAME, rule) [YK_##N] = { \
	.name = NAME, .code = YOKE_OP_SCAN, .min_in = 1, .max_in = 1, .nout = 1, .cast = YK_CAST_F32, \
	.shape = yk_shape_scan, .grad = rule, .decompose = yk_decompose_scan, \
	.inplace = { { 0, 0 } }, .ninplace = 1 }
#define RANKS(N, NAME, s, g) [YK_RANKS_##N] = { \
	.name = NAME, .flags = YK_F_RANKS, .min_in = 1, .max_in = 1, .nout = 1, .shape = s, .grad = g }
#define RANKS_LIST(N, NAME, g) [YK_RANKS_##N] = { \
	.name = NAME, .flags = YK_F_RANKS, .min_in = 1, .max_in = 1, .nout = 1, .lists_in = 1, .lists_out = 1, \
	.shape = yk_shape_ranks, .grad = g }
#define CONV(N, NAME, rule) [YK_##N] = { \
	.name = NAME, .code = YOKE_OP_##N, .flags = YK_F_FLOAT, .min_in = 2, .max_in = 2, .nout = 1, \
	.cast = YK_CAST_HALF, .shape = yk_shape_##rule, .grad = yk_grad_##rule, .decompose = yk_decompose_##rule }
#define SPECIAL(N, NAME, nin, family) [YK_##N] = { \
	.name = NAME, .flags = YK_F_FLOAT, .min_in = nin, .max_in = nin, .nout = 1, .cast = YK_CAST_F32, \
	.shape = yk_shape_map, .grad = yk_grad_##family, .decompose = yk_decompose_##family }
#define VIEW(N, NAME, more, s, g) [YK_##N] = { \
	.name = NAME, .flags = YK_F_VIEW | (more), .min_in = 1, .max_in = 1, .nout = 1, .shape = s, .grad = g }

const struct yk_op_row yk_op_rows[YK_OPS] = {
	[YK_LEAF] = { .name = "leaf", .flags = YK_F_LEAF, .nout = 1 },
	[YK_SCALAR] = { .name = "scalar", .flags = YK_F_LEAF, .nout = 1 },
	[YK_CONST] = { .name = "const", .flags = YK_F_LEAF, .nout = 1, .shape = yk_shape_leaf },
	// the row-major index of the element, in the dtype i64
	[YK_IOTA] = { .name = "iota", .code = YOKE_OP_MAP, .map = YOKE_MAP_INDEX,
		.flags = YK_F_MAP | YK_F_STRIDED, .nout = 1, .shape = yk_shape_fill },
	// key and step (i64 scalars)
	[YK_RAND_BITS] = { .name = "rand_bits", .code = YOKE_OP_MAP, .map = YOKE_MAP_RAND,
		.flags = YK_F_MAP | YK_F_STRIDED, .min_in = 2, .max_in = 2, .nout = 1,
		.shape = yk_shape_fill },
	MAP0(UNIFORM, "uniform", 1, YK_F_FLAT),
	MAP0(NORMAL, "normal", 2, YK_F_FLOAT | YK_F_FLAT),
	MAP(ADD, "add", 2, 0), MAP(SUB, "sub", 2, 0), MAP(MUL, "mul", 2, 0), MAP(DIV, "div", 2, 0),
	MAP_CAST(POW, "pow", 2, YK_F_FLOAT, YK_CAST_F32), MAP(MIN, "min", 2, 0), MAP(MAX, "max", 2, 0),
	MAP(MOD, "mod", 2, 0),
	MAP(NEG, "neg", 1, 0), MAP(ABS, "abs", 1, 0), MAP0(SIGN, "sign", 1, YK_F_FLAT),
	MAP0(FLOOR, "floor", 1, YK_F_FLAT), MAP0(ROUND, "round", 1, YK_F_FLAT),
	MAP0(CEIL, "ceil", 1, YK_F_FLAT),
	MAP_CAST(EXP, "exp", 1, YK_F_FLOAT, YK_CAST_F32),
	MAP_CAST(LOG, "log", 1, YK_F_FLOAT, YK_CAST_F32),
	MAP_CAST(LOG1P, "log1p", 1, YK_F_FLOAT, YK_CAST_F32),
	MAP_CAST(EXPM1, "expm1", 1, YK_F_FLOAT, YK_CAST_F32),
	MAP(SQRT, "sqrt", 1, YK_F_FLOAT), MAP(RSQRT, "rsqrt", 1, YK_F_FLOAT),
	MAP(RECIP, "recip", 1, YK_F_FLOAT), MAP(SQUARE, "square", 1, 0),
	MAP(SIN, "sin", 1, YK_F_FLOAT), MAP(COS, "cos", 1, YK_F_FLOAT),
	MAP(TANH, "tanh", 1, YK_F_FLOAT), MAP(SIGMOID, "sigmoid", 1, YK_F_FLOAT),
	MAP(ERF, "erf", 1, YK_F_FLOAT),
	MAP0(EQ, "eq", 2, YK_F_COMPARE | YK_F_BOOL), MAP0(NE, "ne", 2, YK_F_COMPARE | YK_F_BOOL),
	MAP0(LT, "lt", 2, YK_F_COMPARE | YK_F_BOOL), MAP0(LE, "le", 2, YK_F_COMPARE | YK_F_BOOL),
	MAP0(GT, "gt", 2, YK_F_COMPARE | YK_F_BOOL), MAP0(GE, "ge", 2, YK_F_COMPARE | YK_F_BOOL),
	MAP0(ISFINITE, "isfinite", 1, YK_F_COMPARE | YK_F_FLOAT),
	MAP0(AND, "and", 2, YK_F_BITS | YK_F_BOOL), MAP0(OR, "or", 2, YK_F_BITS | YK_F_BOOL),
	MAP0(XOR, "xor", 2, YK_F_BITS | YK_F_BOOL), MAP0(NOT, "not", 1, YK_F_BITS | YK_F_BOOL),
	MAP0(SHL, "shl", 2, YK_F_BITS), MAP0(SHR, "shr", 2, YK_F_BITS),
	MAP(SELECT, "select", 3, YK_F_BOOL),
	[YK_CAST] = { .name = "cast", .code = YOKE_OP_MAP, .map = YOKE_MAP_CAST,
		.flags = YK_F_MAP | YK_F_STRIDED | YK_F_BOOL, .min_in = 1, .max_in = 1, .nout = 1,
		.shape = yk_shape_map, .grad = yk_grad_cast },

	REDUCE(SUM, "sum", SUM, YK_CAST_F32, yk_grad_sum),
	REDUCE(PROD, "prod", PROD, YK_CAST_F32, yk_grad_prod),
	REDUCE(REDUCE_MAX, "reduce_max", MAX, YK_CAST_F32, yk_grad_extreme),
	REDUCE(REDUCE_MIN, "reduce_min", MIN, YK_CAST_F32, yk_grad_extreme),
	REDUCE(ARGMAX, "argmax", ARGMAX, YK_CAST_NONE, NULL),
	REDUCE(ARGMIN, "argmin", ARGMIN, YK_CAST_NONE, NULL),

	SCAN(CUMSUM, "cumsum", yk_grad_cumsum), SCAN(CUMPROD, "cumprod", NULL),
	// how many results it has says the program in its attributes: see yk_scanned
	[YK_SCAN_MAP] = { .name = "scan", .code = YOKE_OP_SCAN_MAP, .flags = YK_F_PARTIAL, .min_in = 1,
		.max_in = YOKE_MAP_MAX_INPUTS, .shape = yk_shape_scan_map, .decompose = yk_decompose_scan_map,
		.inplace = { { 0, 0 }, { 1, 1 }, { 2, 2 } }, .ninplace = 3 },
	[YK_SORT] = { .name = "sort", .code = YOKE_OP_SORT, .flags = YK_F_PARTIAL, .min_in = 1,
		.max_in = 1, .nout = 2, .shape = yk_shape_sort, .grad = yk_grad_sort },
	[YK_TAKE_ALONG] = { .name = "take_along", .code = YOKE_OP_GATHER_ALONG, .min_in = 2,
		.max_in = 2, .nout = 1, .shape = yk_shape_take_along,
		.grad = yk_grad_take_along },
	[YK_SCATTER_ADD_ALONG] = { .name = "scatter_add_along",
		.cast = YK_CAST_WIDEST, .code = YOKE_OP_SCATTER_ADD_ALONG, .min_in = 3, .max_in = 3, .nout = 1,
		.shape = yk_shape_scatter_add_along, .grad = yk_grad_scatter_add_along,
		.inplace = { { 0, 0 } }, .ninplace = 1 },
	[YK_CHECK_FINITE] = { .name = "check_finite", .code = YOKE_OP_CHECK, .flags = YK_F_FLOAT,
		.min_in = 1, .max_in = 1, .nout = 1, .shape = yk_shape_check,
		.grad = yk_grad_contiguous, .inplace = { { 0, 0 } }, .ninplace = 1 },

	[YK_MATMUL] = { .name = "matmul", .code = YOKE_OP_CONTRACT, .flags = YK_F_STRIDED,
		.cast = YK_CAST_HALF, .min_in = 2, .max_in = 2, .nout = 1, .shape = yk_shape_matmul,
		.grad = yk_grad_matmul },

	[YK_EIGH] = { .name = "eigh", .code = YOKE_OP_EIGH, .flags = YK_F_FLOAT | YK_F_PARTIAL,
		.cast = YK_CAST_F32, .min_in = 1, .max_in = 1, .nout = 2, .shape = yk_shape_eigh,
		.grad = yk_grad_eigh },
	[YK_CHOLESKY] = { .name = "cholesky", .code = YOKE_OP_CHOLESKY, .flags = YK_F_FLOAT,
		.cast = YK_CAST_F32, .min_in = 1, .max_in = 1, .nout = 1, .shape = yk_shape_cholesky,
		.grad = yk_grad_cholesky },
	[YK_SOLVE_TRIANGULAR] = { .name = "solve_triangular", .code = YOKE_OP_SOLVE_TRIANGULAR,
		.flags = YK_F_FLOAT, .cast = YK_CAST_F32, .min_in = 2, .max_in = 2, .nout = 1,
		.shape = yk_shape_solve_triangular, .grad = yk_grad_solve_triangular },

	[YK_MOMENTS] = { .name = "moments", .code = YOKE_OP_MOMENTS, .flags = YK_F_FLOAT | YK_F_PARTIAL,
		.cast = YK_CAST_F32, .min_in = 2, .max_in = 2, .nout = 5, .shape = yk_shape_moments,
		.decompose = yk_decompose_moments },

	VIEW(RESHAPE, "reshape", 0, yk_shape_reshape, yk_grad_reshape),
	VIEW(PERMUTE, "permute", 0, yk_shape_permute, yk_grad_permute),
	VIEW(BROADCAST, "broadcast_to", 0, yk_shape_broadcast, yk_grad_broadcast),
	VIEW(SLICE, "slice", 0, yk_shape_slice, NULL), // its gradient is gathered by yk_backward
	VIEW(STOP_GRAD, "stop_grad", YK_F_FLAT, yk_shape_same, NULL),
	VIEW(WINDOW, "window", 0, yk_shape_window, yk_grad_window),
	VIEW(BITCAST, "bitcast", 0, yk_shape_bitcast, NULL),

	[YK_CONTIGUOUS] = { .name = "contiguous", .code = YOKE_OP_MOVE, .min_in = 1, .max_in = 1,
		.nout = 1, .shape = yk_shape_same, .grad = yk_grad_contiguous },
	[YK_PAD] = { .name = "pad", .code = YOKE_OP_MOVE, .min_in = 1, .max_in = 1, .nout = 1,
		.shape = yk_shape_pad, .grad = yk_grad_pad },
	[YK_CONCAT] = { .name = "concat", .code = YOKE_OP_MOVE, .min_in = 1, .max_in = UINT32_MAX, .nout = 1,
		.cast = YK_CAST_WIDEST, .shape = yk_shape_concat, .grad = yk_grad_concat },
	[YK_SLICE_UPDATE] = { .name = "slice_update", .code = YOKE_OP_MOVE, .min_in = 2, .max_in = 2,
		.cast = YK_CAST_WIDEST, .nout = 1, .shape = yk_shape_slice_update, .grad = yk_grad_slice_update,
		.inplace = { { 0, 0 } }, .ninplace = 1 },
	[YK_GATHER] = { .name = "gather", .code = YOKE_OP_GATHER, .min_in = 2, .max_in = 2, .nout = 1,
		.shape = yk_shape_gather, .grad = yk_grad_gather },
	[YK_SCATTER_ADD] = { .name = "scatter_add", .code = YOKE_OP_SCATTER_ADD, .min_in = 3, .max_in = 3,
		.cast = YK_CAST_WIDEST, .nout = 1, .shape = yk_shape_scatter_add, .grad = yk_grad_scatter_add,
		.inplace = { { 0, 0 } }, .ninplace = 1 },
	[YK_NUMBERS] = { .name = "numbers", .nout = 1 }, // see plan/replay.c
	[YK_TRANSFER] = { .name = "transfer", .min_in = 1, .max_in = 1, .nout = 1,
		.shape = yk_shape_same },

	[YK_SLICE_AT] = { .name = "slice_at", .code = YOKE_OP_SLICE_AT, .min_in = 1, .max_in = 9,
		.nout = 1, .shape = yk_shape_slice_at, .grad = yk_grad_slice_at },
	[YK_SLICE_UPDATE_AT] = { .name = "slice_update_at", .code = YOKE_OP_SLICE_UPDATE_AT,
		.cast = YK_CAST_WIDEST, .min_in = 2, .max_in = 10, .nout = 1, .shape = yk_shape_slice_update_at,
		.grad = yk_grad_slice_update_at, .inplace = { { 0, 0 } }, .ninplace = 1 },
	// not launched: see plan/order.c
	[YK_BARRIER] = { .name = "barrier", .min_in = 1, .max_in = UINT32_MAX, .nout = 1, .lists_in = 1,
		.lists_out = 1, .shape = yk_shape_barrier, .grad = yk_grad_barrier },

	[YK_SOFTMAX] = { .name = "softmax", .code = YOKE_OP_SOFTMAX, .flags = YK_F_FLOAT,
		.cast = YK_CAST_INSIDE, .min_in = 1, .max_in = 1, .nout = 1, .shape = yk_shape_softmax,
		.grad = yk_grad_softmax,
		.decompose = yk_decompose_softmax, .inplace = { { 0, 0 } }, .ninplace = 1 },
	[YK_SOFTMAX_BACK] = { .name = "softmax_backward", .code = YOKE_OP_SOFTMAX_BACK,
		.flags = YK_F_FLOAT, .min_in = 2, .max_in = 2, .nout = 1, .shape = yk_shape_softmax_backward,
		.decompose = yk_decompose_softmax_backward, .inplace = { { 1, 0 } }, .ninplace = 1 },
	[YK_LAYER_NORM] = { .name = "layer_norm", .code = YOKE_OP_LAYER_NORM, .flags = YK_F_FLOAT,
		.cast = YK_CAST_INSIDE, .min_in = 3, .max_in = 3, .nout = 3, .shape = yk_shape_norm,
		.grad = yk_grad_norm,
		.decompose = yk_decompose_layer_norm },
	[YK_LAYER_NORM_BACK] = { .name = "layer_norm_backward", .code = YOKE_OP_LAYER_NORM_BACK,
		.flags = YK_F_FLOAT | YK_F_PARTIAL, .min_in = 5, .max_in = 5, .nout = 3,
		.shape = yk_shape_norm_backward, .decompose = yk_decompose_layer_norm_backward,
		.inplace = { { 4, 0 } }, .ninplace = 1 },
	[YK_RMS_NORM] = { .name = "rms_norm", .code = YOKE_OP_RMS_NORM, .flags = YK_F_FLOAT,
		.cast = YK_CAST_INSIDE, .min_in = 2, .max_in = 2, .nout = 2, .shape = yk_shape_norm,
		.grad = yk_grad_norm,
		.decompose = yk_decompose_rms_norm },
	[YK_RMS_NORM_BACK] = { .name = "rms_norm_backward", .code = YOKE_OP_RMS_NORM_BACK,
		.flags = YK_F_FLOAT | YK_F_PARTIAL, .min_in = 4, .max_in = 4, .nout = 2,
		.shape = yk_shape_norm_backward, .decompose = yk_decompose_rms_norm_backward,
		.inplace = { { 3, 0 } }, .ninplace = 1 },
	[YK_BATCH_NORM] = { .name = "batch_norm", .flags = YK_F_FLOAT, .cast = YK_CAST_INSIDE, .min_in = 3, .max_in = 3,
		.nout = 3, .shape = yk_shape_batch_norm, .grad = yk_grad_batch_norm, .decompose = yk_decompose_batch_norm },
	[YK_CROSS_ENTROPY] = { .name = "cross_entropy", .code = YOKE_OP_CROSS_ENTROPY,
		.cast = YK_CAST_INSIDE, .flags = YK_F_FLOAT, .min_in = 2, .max_in = 2, .nout = 2,
		.shape = yk_shape_cross_entropy, .grad = yk_grad_cross_entropy,
		.decompose = yk_decompose_cross_entropy },
	[YK_CROSS_ENTROPY_BACK] = { .name = "cross_entropy_backward", .code = YOKE_OP_CROSS_ENTROPY_BACK,
		.flags = YK_F_FLOAT, .min_in = 4, .max_in = 4, .nout = 1,
		.shape = yk_shape_cross_entropy_backward, .decompose = yk_decompose_cross_entropy_backward,
		.inplace = { { 0, 0 } }, .ninplace = 1 },
	[YK_ATTENTION] = { .name = "attention", .code = YOKE_OP_ATTENTION, .flags = YK_F_FLOAT,
		.cast = YK_CAST_HALF, .min_in = 7, .max_in = 7, .nout = 2, .shape = yk_shape_attention,
		.grad = yk_grad_attention, .decompose = yk_decompose_attention },
	[YK_ATTENTION_BACK] = { .name = "attention_backward", .code = YOKE_OP_ATTENTION_BACK,
		.flags = YK_F_FLOAT | YK_F_STRIDED, .min_in = 10, .max_in = 10, .nout = 3,
		.shape = yk_shape_attention_backward, .decompose = yk_decompose_attention_backward },
	// no kernel has it: always in parts
	[YK_ATTENTION_MASK_BACK] = { .name = "attention_mask_backward", .flags = YK_F_FLOAT,
		.min_in = 10, .max_in = 10, .nout = 1, .shape = yk_shape_attention_mask_backward,
		.decompose = yk_decompose_attention_mask_backward },
	// which operands are lists, and what is computed, say the attributes: see yk_listed
	[YK_LIST_MAP] = { .name = "list_map", .code = YOKE_OP_LIST_MAP, .min_in = 1, .max_in = 255,
		.shape = yk_shape_list_map, .decompose = yk_decompose_list_map },
	[YK_LIST_REDUCE] = { .name = "list_reduce", .code = YOKE_OP_LIST_REDUCE, .min_in = 1,
		.max_in = 255, .nout = 1, .shape = yk_shape_list_reduce,
		.decompose = yk_decompose_list_reduce },
	[YK_ROPE] = { .name = "rope", .code = YOKE_OP_ROPE, .flags = YK_F_FLOAT, .min_in = 3,
		.cast = YK_CAST_INSIDE, .max_in = 3, .nout = 1, .shape = yk_shape_rope, .grad = yk_grad_rope,
		.decompose = yk_decompose_rope, .inplace = { { 0, 0 } }, .ninplace = 1 },
	[YK_RESOLVENT] = { .name = "resolvent", .code = YOKE_OP_RESOLVENT, .flags = YK_F_FLOAT | YK_F_PARTIAL,
		.min_in = 4, .max_in = 4, .nout = 2, .cast = YK_CAST_F32, .shape = yk_shape_resolvent,
		.grad = yk_grad_resolvent, .decompose = yk_decompose_resolvent },
	[YK_RESOLVENT_BACK] = { .name = "resolvent_backward", .code = YOKE_OP_RESOLVENT_BACK,
		.flags = YK_F_FLOAT | YK_F_PARTIAL, .min_in = 5, .max_in = 5, .nout = 4,
		.shape = yk_shape_resolvent_backward, .decompose = yk_decompose_resolvent_backward },
	// no backend has these: see rows_chain.c
	[YK_PIVOTS] = { .name = "pivots", .flags = YK_F_FLOAT | YK_F_ALL_RESULTS, .min_in = 3, .max_in = 3, .nout = 2, .shape = yk_shape_pivots,
		.grad = yk_grad_pivots, .decompose = yk_decompose_pivots },
	[YK_LINEAR] = { .name = "linear_recurrence", .flags = YK_F_FLOAT | YK_F_ALL_RESULTS, .min_in = 4, .max_in = 4, .nout = 2,
		.shape = yk_shape_linear, .grad = yk_grad_linear, .decompose = yk_decompose_linear },
	[YK_LOG_DET] = { .name = "log_det", .flags = YK_F_FLOAT | YK_F_ALL_RESULTS, .min_in = 4, .max_in = 4, .nout = 2,
		.shape = yk_shape_log_det, .grad = yk_grad_log_det, .decompose = yk_decompose_log_det },
	[YK_GROUPED] = { .name = "grouped_matmul", .code = YOKE_OP_GROUPED, .flags = YK_F_FLOAT, .min_in = 3,
		.max_in = 3, .nout = 1, .cast = YK_CAST_HALF, .shape = yk_shape_grouped, .grad = yk_grad_grouped,
		.decompose = yk_decompose_grouped },
	[YK_GROUPED_BACK] = { .name = "grouped_matmul_backward", .code = YOKE_OP_GROUPED_BACK, .flags = YK_F_FLOAT,
		.min_in = 3, .max_in = 3, .nout = 1, .shape = yk_shape_grouped_backward, .grad = yk_grad_grouped_backward,
		.decompose = yk_decompose_grouped_backward },
	[YK_WINDOW_ADD] = { .name = "window_add", .code = YOKE_OP_WINDOW_ADD, .flags = YK_F_FLOAT, .min_in = 1,
		.max_in = 1, .nout = 1, .shape = yk_shape_window_add, .grad = yk_grad_window_add,
		.decompose = yk_decompose_window_add },
	[YK_POOL_MAX] = { .name = "pool_max", .code = YOKE_OP_POOL_MAX, .flags = YK_F_FLOAT, .min_in = 1, .max_in = 1,
		.nout = 1, .shape = yk_shape_pool_max, .grad = yk_grad_pool_max, .decompose = yk_decompose_pool_max },
	[YK_POOL_MAX_BACK] = { .name = "pool_max_backward", .code = YOKE_OP_POOL_MAX_BACK, .flags = YK_F_FLOAT, .min_in = 2,
		.max_in = 2, .nout = 1, .shape = yk_shape_pool_max_backward, .grad = yk_grad_pool_max_backward,
		.decompose = yk_decompose_pool_max_backward },
	// x, what is added to it or none -> values, places, rest
	[YK_LARGEST] = { .name = "largest", .code = YOKE_OP_LARGEST, .flags = YK_F_FLOAT | YK_F_PARTIAL, .min_in = 2,
		.max_in = 2, .nout = 3, .shape = yk_shape_largest, .grad = yk_grad_largest,
		.decompose = yk_decompose_largest, .inplace = { { 0, 2 }, { 1, 2 } }, .ninplace = 2 },
	SPECIAL(ASIN, "asin", 1, special), SPECIAL(ACOS, "acos", 1, special), SPECIAL(ATAN, "atan", 1, special),
	SPECIAL(ATAN2, "atan2", 2, atan2), SPECIAL(LGAMMA, "lgamma", 1, special), SPECIAL(DIGAMMA, "digamma", 1, special),
	SPECIAL(ERFINV, "erfinv", 1, special),
	CONV(CONV, "conv", conv), CONV(CONV_X, "conv_x", conv_x), CONV(CONV_W, "conv_w", conv_w),

	// their attributes: see yk_ranked
	RANKS_LIST(ALL_REDUCE, "all_reduce", yk_grad_ranks_all_reduce),
	RANKS(REDUCE_SCATTER, "reduce_scatter", yk_shape_ranks_cut, yk_grad_ranks_cut),
	RANKS(ALL_GATHER, "all_gather", yk_shape_ranks_gather, yk_grad_ranks_gather),
	RANKS_LIST(BROADCAST, "broadcast", yk_grad_ranks_broadcast),
	RANKS_LIST(REDUCE, "reduce", yk_grad_ranks_reduce),
	RANKS(ALL_TO_ALL, "all_to_all", yk_shape_ranks_cut, yk_grad_ranks_exchange),
	RANKS(SEND, "send", yk_shape_ranks_send, yk_grad_ranks_send),
	[YK_RANKS_RECV] = { .name = "recv", .flags = YK_F_RANKS, .min_in = 0, .max_in = 1, .nout = 1,
		.shape = yk_shape_ranks_recv, .grad = yk_grad_ranks_recv },
	[YK_RANKS_SHARES] = { .name = "gather_shares", .flags = YK_F_RANKS, .min_in = 1, .max_in = UINT32_MAX, .nout = 1,
		.lists_in = 1, .lists_out = 1, .shape = yk_shape_ranks_shares },
	[YK_RANKS_REDUCE_SHARES] = { .name = "reduce_shares", .flags = YK_F_RANKS, .min_in = 1, .max_in = UINT32_MAX,
		.nout = 1, .lists_in = 1, .shape = yk_shape_ranks_reduce_shares },
	VIEW(RANKS_IN, "tensor_in", 0, yk_shape_same, yk_grad_ranks_in),
};

uint32_t yk_nout_listed(const struct yk_op_row *row, const struct yk_call *c)
{
	if (c->op == YK_SCAN_MAP)
		return yk_scanned(c->attr).map.nout;
	return row->nout - row->lists_out + yk_lists_out(c->op, c->attr) * c->list;
}
