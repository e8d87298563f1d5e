// SPDX-License-Identifier: Apache-2.0
// Operations on lists of tensors: one launch maps or reduces all tensors of a list by a formula;
// used by optimizers.
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/handle.h"
#include "graph/record.h"
#include "ops/list.h"
#include "ops/rules.h"

// ---- recording ----

// The dtype in which a call computes.
static int dtype_of(const struct yk_graph *g, const struct yk_list_call *c, int lists)
{
	int dtype = yoke_f32;
	for (int l = 0; l < lists; l++)
		if (g->value[c->in[(uint32_t)l * c->n]].dtype == yoke_f64)
			dtype = yoke_f64;
	return dtype;
}

// A number in that dtype; its shape is [] unless it has one element per tensor.
static int add_number(struct yk_graph *g, yk_id x, int dtype, yk_id *to)
{
	x = yk_cast(g, x, dtype);
	if (x != YK_BAD && g->value[x].rank != 1)
		x = yk_reshape(g, x, 0, NULL);
	*to = x;
	return x == YK_BAD ? YOKE_EINVAL : 0;
}

static int record(struct yk_graph *g, const struct yk_list_call *c, int op, int kind, int each,
		  bool wide, yk_id *out)
{
	const int lists = yk_formula_count(c->formula->lists), dtype = dtype_of(g, c, lists);
	const uint32_t in_lists = (uint32_t)lists * c->n,
		       numbers = (uint32_t)yk_formula_count(c->formula->numbers);
	uint8_t dtypes[2 * YOKE_MAP_MAX_INPUTS];
	union yoke_attr attr[YK_LISTED];
	struct yk_listed l;
	struct yk_call call = { .op = (uint16_t)op, .list = c->n, .nin = in_lists,
				.nattr = YK_LISTED, .attr = attr };
	yk_id *in = malloc((in_lists + numbers + 1) * sizeof *in);
	if (!in)
		return yk_op_fail(g, op, YOKE_ENOMEM, "no memory for %u operands",
				  in_lists + numbers);
	memcpy(in, c->in, in_lists * sizeof *in);
	for (int k = 0; k < lists; k++)
		dtypes[k] = g->value[in[(uint32_t)k * c->n]].dtype;
	int err = 0;
	for (uint32_t k = 0; k < numbers && !err; k++) {
		yk_id x = c->in[in_lists + k];
		dtypes[(uint32_t)lists + k] = 0;
		if (x == YK_NIL)
			continue;
		err = add_number(g, x, dtype, &in[call.nin++]);
		dtypes[(uint32_t)lists + k] = (uint8_t)dtype;
	}
	if (c->skip && !err)
		err = add_number(g, *c->skip, dtype, &in[call.nin++]);
	memset(&l, 0, sizeof l); // attributes are compared as bytes, padding included
	if (c->map)
		l.map = *c->map;
	else if (!err)
		err = (c->skip ? yk_formula_map_skipped : yk_formula_map)(c->formula, dtype, dtypes,
									  c->constant, &l.map);
	if (err < 0 && !yoke_error_code())
		yk_op_fail(g, op, err, "%s makes no map program", c->formula->name);
	l.lists = lists;
	l.kind = kind;
	l.each = each;
	l.wide = wide;
	memcpy(attr, &l, sizeof l);
	call.in = in;
	if (!err)
		err = yk_append(g, &call, out);
	free(in);
	return err;
}

int yk_list_map(struct yk_graph *g, const struct yk_list_call *c, yk_id *out)
{
	return record(g, c, YK_LIST_MAP, 0, 0, false, out);
}

yk_id yk_list_reduce(struct yk_graph *g, const struct yk_list_call *c, int kind, int each)
{
	yk_id out;
	return record(g, c, YK_LIST_REDUCE, kind, each, false, &out) < 0 ? YK_BAD : out;
}

yk_id yk_list_reduce_wide(struct yk_graph *g, const struct yk_list_call *c, int kind, int each)
{
	yk_id out;
	return record(g, c, YK_LIST_REDUCE, kind, each, true, &out) < 0 ? YK_BAD : out;
}

// ---- shapes ----

// Shapes must agree across lists, tensor by tensor, and dtypes with the program.
static int check(struct yk_graph *g, const struct yk_call *c, const struct yk_listed *l)
{
	uint8_t dtype[YOKE_MAP_MAX_INPUTS] = { 0 };
	const uint32_t lists = (uint32_t)l->lists, n = c->list;
	for (int k = 0; k < l->map.ninsn; k++)
		if (l->map.insn[k].op == YOKE_MAP_INPUT)
			dtype[l->map.insn[k].a] = l->map.insn[k].dtype;
	for (uint32_t k = 0; k < c->nin; k++) {
		const bool list = k < lists * n;
		const uint32_t input = list ? k / n : k - lists * n + lists;
		const struct yk_value *x = IN(k), *like = IN(k % n);
		if (dtype[input] && x->dtype != dtype[input])
			return fail_one(g, c, YOKE_EDTYPE, "the program is for another dtype than",
					x);
		if (list && !yk_same_shape(x, like))
			return fail_two(g, c, YOKE_ESHAPE, "shapes differ:", like, x);
		if (!list && yk_count(x) != 1 && (x->rank != 1 || x->dims[0] != n))
			return fail_one(g, c, YOKE_ESHAPE, "not a number, nor one a tensor:", x);
	}
	return 0;
}

static int shape_list_map(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_listed l = yk_listed(c->attr);
	for (uint32_t k = 0; k < l.map.nout * c->list; k++) {
		out[k] = *IN(k % c->list);
		out[k].dtype = l.map.insn[l.map.out[k / c->list]].dtype;
	}
	return check(g, c, &l);
}

static int shape_list_reduce(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_listed l = yk_listed(c->attr);
	*out = (struct yk_value){ .dtype = l.wide ? yoke_f64 : l.map.insn[l.map.out[0]].dtype,
				  .rank = l.each != 0,
				  .dims = { c->list + (l.each == 2) } };
	return check(g, c, &l);
}

// ---- decompositions ----

// The number for tensor i.
static yk_id number(struct yk_graph *g, yk_id x, int64_t i)
{
	if (g->value[x].rank && yk_count(&g->value[x]) > 1)
		x = yk_slice(g, x, &i, &(int64_t){ 1 }, &(int64_t){ 1 });
	return x == YK_BAD || !g->value[x].rank ? x : yk_reshape(g, x, 0, NULL);
}

// The program's results for tensor i, in its shape.
static void tensor(struct yk_graph *g, const struct yk_call *c, const struct yk_listed *l,
		   uint32_t i, yk_id *out)
{
	const uint32_t lists = (uint32_t)l->lists;
	const struct yk_value like = *IN(i);
	yk_id in[YOKE_MAP_MAX_INPUTS];
	for (uint32_t k = 0; k < l->map.nin; k++)
		in[k] = k < lists ? c->in[k * c->list + i] :
				    number(g, c->in[lists * c->list + k - lists], i);
	yk_program_parts(g, &l->map, in, out);
	for (int k = 0; k < l->map.nout; k++)
		out[k] = yk_broadcast_like(g, out[k], &like);
}

static void decompose_list_map(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_listed l = yk_listed(c->attr);
	yk_id one[YOKE_MAP_MAX_OUTPUTS];
	for (uint32_t i = 0; i < c->list; i++) {
		tensor(g, c, &l, i, one);
		for (uint32_t k = 0; k < l.map.nout; k++)
			out[k * c->list + i] = one[k];
	}
}

// Without `wide`, by kernels that round to the program's dtype; then cast to f64.
static void narrow(struct yk_graph *g, const struct yk_call *c, struct yk_listed l, yk_id *out)
{
	union yoke_attr attr[YK_LISTED];
	struct yk_call call = *c;
	yk_id x;
	l.wide = 0;
	memcpy(attr, &l, sizeof l);
	call.attr = attr;
	*out = yk_append(g, &call, &x) < 0 ? YK_BAD : yk_cast(g, x, yoke_f64);
}

static void decompose_list_reduce(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_listed l = yk_listed(c->attr);
	if (l.wide && l.map.insn[l.map.out[0]].dtype != yoke_f64) {
		narrow(g, c, l, out);
		return;
	}
	const bool sum = l.kind == YOKE_REDUCE_SUM, max = l.kind == YOKE_REDUCE_MAX;
	const int fold = sum ? YK_ADD : max ? YK_MAX : YK_MIN;
	const int reduce = sum ? YK_SUM : max ? YK_REDUCE_MAX : YK_REDUCE_MIN;
	yk_id *each = malloc((c->list + 1) * sizeof *each), all = YK_NIL;
	*out = YK_BAD;
	if (!each) {
		yk_op_fail(g, c->op, YOKE_ENOMEM, "no memory for %u tensors", c->list);
		return;
	}
	for (uint32_t i = 0; i < c->list; i++) {
		yk_id x;
		tensor(g, c, &l, i, &x);
		if (x == YK_BAD)
			goto done;
		const int dtype = g->value[x].dtype;
		if (yk_count(&g->value[x]) || sum)
			x = yk_reduce(g, reduce, x, YOKE_ALL, false);
		else // an empty tensor
			x = yk_lit(g, dtype, max ? -INFINITY : INFINITY);
		if (l.each)
			each[i] = x == YK_BAD ? x : yk_reshape(g, x, 1, &(int64_t){ 1 });
		if (l.each != 1)
			all = i ? yk_bin(g, fold, all, x) : x;
	}
	if (l.each == 2)
		each[c->list] = all == YK_BAD ? all : yk_reshape(g, all, 1, &(int64_t){ 1 });
	*out = l.each ? yk_record(g, YK_CONCAT, c->list + (l.each == 2), each, 1,
				  &(union yoke_attr){ .i = 0 }) :
			all;
done:
	free(each);
}

// the attributes determine which operands are lists, and the program: see yk_listed
YK_OP(LIST_MAP) = { .name = "list_map", .code = YOKE_OP_LIST_MAP, .min_in = 1, .max_in = 255,
	.shape = shape_list_map, .decompose = decompose_list_map };
YK_OP(LIST_REDUCE) = { .name = "list_reduce", .code = YOKE_OP_LIST_REDUCE, .min_in = 1,
	.max_in = 255, .nout = 1, .shape = shape_list_reduce,
	.decompose = decompose_list_reduce };

// ---- on handles ----

// Enters the context and fills in the call; always paired with leave.
static struct yoke_context *enter(const struct yk_list_step *s, struct yk_list_call *c, yk_id **in)
{
	const int lists = yk_formula_count(s->formula->lists),
		  numbers = yk_formula_count(s->formula->numbers);
	struct yoke_context *ctx = yk_enter_list(s->n, s->list[0], s->what);
	*in = ctx ? yk_lists(ctx, s->n, lists, s->list, numbers) : NULL;
	if (!*in)
		return ctx;
	const int dtype = ctx->graph.value[**in].dtype;
	for (int k = 0; k < numbers; k++) {
		yk_id x = (*in)[lists * s->n + k] = yk_operand(ctx, s->number[k], dtype);
		if (x != YK_BAD)
			continue;
		free(*in);
		*in = NULL;
		return ctx;
	}
	*c = (struct yk_list_call){ s->formula, (uint32_t)s->n, *in, s->constant, s->map, NULL };
	return ctx;
}

static void leave(struct yoke_context *ctx, yk_id *in)
{
	free(in);
	if (ctx)
		yk_leave(ctx);
}

// Assigns or returns the results from `out` on.
static int take(struct yoke_context *ctx, const struct yk_list_step *s, yk_id out)
{
	const int results = yk_formula_count(s->formula->results);
	int err = yk_recorded(ctx);
	if (!err)
		err = yk_roots_reserve(ctx, (size_t)results * (size_t)s->n);
	for (int k = 0; k < results; k++)
		for (int i = 0; i < s->n && !err; i++) {
			const yk_id id = out + (yk_id)(k * s->n + i);
			struct yk_tensor *var = s->to[k] ? yk_tensor(s->to[k][i], s->what) : NULL;
			if (var)
				err = yk_assign(var, id);
			else if (s->to[k] || !(s->made[i] = yk_handle_of(ctx, id)))
				err = yk_error_last();
		}
	return err;
}

int yk_list_step(const struct yk_list_step *s)
{
	struct yk_list_call c;
	yk_id *in, out;
	struct yoke_context *ctx = enter(s, &c, &in);
	int err = in ? yk_list_map(&ctx->graph, &c, &out) : yk_error_last();
	if (!err)
		err = take(ctx, s, out);
	leave(ctx, in);
	return err;
}

yoke_tensor *yk_list_sum(const struct yk_list_step *s, int each)
{
	struct yk_list_call c;
	yoke_tensor *t = NULL;
	yk_id *in;
	struct yoke_context *ctx = enter(s, &c, &in);
	yk_id sum = in ? (s->wide ? yk_list_reduce_wide : yk_list_reduce)(
				 &ctx->graph, &c, YOKE_REDUCE_SUM, each) :
		    YK_BAD;
	if (sum != YK_BAD && !yk_recorded(ctx))
		t = yk_handle_of(ctx, sum);
	leave(ctx, in);
	return t;
}
