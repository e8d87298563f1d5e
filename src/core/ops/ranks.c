// SPDX-License-Identifier: Apache-2.0
// Collective operations of ranks: shapes and gradients. They run once, in the order of recording;
// src/lib/comm executes them.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "ops/rules.h"

static bool reduces(int op)
{
	return op == YK_RANKS_ALL_REDUCE || op == YK_RANKS_REDUCE ||
	       op == YK_RANKS_REDUCE_SCATTER || op == YK_RANKS_REDUCE_SHARDS;
}

// Operand k must have a dtype that can be summed or compared.
static int want_number(struct yk_graph *g, const struct yk_call *c, uint32_t k)
{
	if (reduces(c->op) && IN(k)->dtype == yoke_bool)
		return fail_one(g, c, YOKE_EDTYPE, "takes numbers, got", IN(k));
	if (reduces(c->op) && IN(k)->dtype != IN(0)->dtype)
		return fail_two(g, c, YOKE_EDTYPE, "dtypes differ:", IN(0), IN(k));
	return 0;
}

// list x -> list of the same shapes
static int shape_ranks(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	int err = 0;
	for (uint32_t i = 0; i < c->nin && !err; i++) {
		err = want_number(g, c, i);
		out[i] = *IN(i);
	}
	return err;
}

// x [N a,..] -> [a,..] of reduce_scatter; all_to_all keeps the shape.
static int shape_ranks_cut(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_ranked r = yk_ranked(c->attr);
	char text[160];
	*out = *IN(0);
	if (!out->rank || out->dims[0] % r.ranks)
		return yk_op_fail(g, c->op, YOKE_ESHAPE,
				  "%lld ranks cut the first axis into equal parts, got %s",
				  (long long)r.ranks, yk_describe(IN(0), text));
	if (c->op == YK_RANKS_REDUCE_SCATTER)
		out->dims[0] /= r.ranks;
	return want_number(g, c, 0);
}

// x [a,..] -> [N a,..]
static int shape_ranks_gather(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	*out = *IN(0);
	if (!out->rank)
		return fail_one(g, c, YOKE_ESHAPE, "parts are put along the first axis, got",
				IN(0));
	if (__builtin_mul_overflow(out->dims[0], yk_ranked(c->attr).ranks, &out->dims[0]))
		return fail_one(g, c, YOKE_ESHAPE, "too many elements of all ranks:", IN(0));
	return want_size(g, c, out);
}

// Shapes of a gather of whole tensors: rank and dims of each, after the attributes that all
// collectives have.
static int whole_shapes(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const union yoke_attr *a = c->attr + YK_RANKED;
	for (uint32_t i = 0; i < c->list; i++) {
		out[i] = (struct yk_value){ .dtype = IN(0)->dtype, .rank = (uint8_t)(a++)->i };
		for (int d = 0; d < out[i].rank; d++)
			out[i].dims[d] = (a++)->i;
	}
	return 0;
}

// list x, and the new values of this rank's shard -> list of the same shapes; whole: only the shard
// is filled
static int shape_ranks_gather_shards(struct yk_graph *g, const struct yk_call *c,
				     struct yk_value *out)
{
	if (yk_ranked(c->attr).whole)
		return whole_shapes(g, c, out);
	for (uint32_t i = 0; i < c->list; i++) {
		if (IN(i)->dtype != IN(c->list)->dtype)
			return fail_two(g, c, YOKE_EDTYPE, "dtypes differ:", IN(i), IN(c->list));
		out[i] = *IN(i);
	}
	return 0;
}

// list x -> this rank's shard of the sums, flat
static int shape_ranks_reduce_shards(struct yk_graph *g, const struct yk_call *c,
				     struct yk_value *out)
{
	int err = 0;
	for (uint32_t i = 0; i < c->nin && !err; i++)
		err = want_number(g, c, i);
	*out = (struct yk_value){ .dtype = IN(0)->dtype,
				  .rank = 1,
				  .dims = { c->attr[YK_RANKED].i } };
	return err;
}

// x -> 0, f32 []: its cotangent brings the gradient back to x
static int shape_ranks_send(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	(void)g;
	(void)c;
	*out = (struct yk_value){ .dtype = yoke_f32 };
	return 0;
}

// none, or an f32 [] by which a gradient can be requested -> the received value
static int shape_ranks_recv(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	*out = (struct yk_value){ .dtype = (uint8_t)c->attr[YK_RANKED].i,
				  .rank = (uint8_t)(c->nattr - YK_RANKED - 1) };
	for (int i = 0; i < out->rank; i++)
		out->dims[i] = c->attr[YK_RANKED + 1 + i].i;
	if (c->nin && (IN(0)->dtype != yoke_f32 || IN(0)->rank))
		return fail_one(g, c, YOKE_ESHAPE, "the operand that orders it must be f32 [], got",
				IN(0));
	return want_size(g, c, out);
}

// ---- gradients ----

// Appends collective `op` on list x for the same ranks; returns the first result.
static yk_id together(struct yk_graph *g, int op, uint32_t n, const yk_id *x, struct yk_ranked r)
{
	union yoke_attr attr[YK_RANKED];
	struct yk_call c = { .op = (uint16_t)op,
			     .list = yk_op_def(op)->lists_in ? n : 0,
			     .nin = n,
			     .in = x,
			     .nattr = YK_RANKED,
			     .attr = attr };
	yk_id out;
	memcpy(attr, &r, sizeof r);
	for (uint32_t i = 0; i < n; i++)
		if (x[i] == YK_BAD)
			return YK_BAD;
	return yk_append(g, &c, &out) < 0 ? YK_BAD : out;
}

static struct yk_ranked of(const struct yk_graph *g, uint32_t node)
{
	return yk_ranked(yk_attrs(g, &g->node[node]));
}

// The cotangents of all tensors of a list are sent together, zeros for missing ones, so that all
// ranks agree.
static void list_backward(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin, int op)
{
	const struct yk_node n = g->node[node];
	const struct yk_ranked r = of(g, node);
	if (r.kind && r.kind != YOKE_REDUCE_SUM)
		return; // no gradient; the caller reports it
	yk_id *x = malloc(n.list * sizeof *x);
	for (uint32_t i = 0; i < n.list && x; i++)
		x[i] = gout[i] == YK_NIL ? yk_full_like(g, n.out + i, 0) : gout[i];
	yk_id out = YK_BAD;
	if (x)
		out = together(g, op, n.list, x,
			       (struct yk_ranked){ r.group, r.ranks, r.rank,
						   op == YK_RANKS_BROADCAST ? 0 : YOKE_REDUCE_SUM,
						   r.peer, 0 });
	else
		yk_op_fail(g, n.op, YOKE_ENOMEM, "no memory for %u cotangents", n.list);
	for (uint32_t i = 0; i < n.list; i++)
		gin[i] = out == YK_BAD ? YK_BAD : out + i;
	free(x);
}

static void grad_ranks_all_reduce(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	if (!of(g, node).whole)
		list_backward(g, node, gout, gin, YK_RANKS_ALL_REDUCE);
	for (uint32_t i = 0; i < g->node[node].list && of(g, node).whole; i++)
		gin[i] = gout[i];
}

static void grad_ranks_broadcast(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	list_backward(g, node, gout, gin, YK_RANKS_REDUCE);
}

static void grad_ranks_reduce(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	list_backward(g, node, gout, gin, YK_RANKS_BROADCAST);
}

static void grad_ranks_in(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	gin[0] = together(g, YK_RANKS_ALL_REDUCE, 1, gout, of(g, node));
}

static void grad_ranks_cut(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct yk_ranked r = of(g, node);
	if (r.kind != YOKE_REDUCE_SUM)
		return;
	r.kind = 0;
	gin[0] = together(g, YK_RANKS_ALL_GATHER, 1, gout, r);
}

static void grad_ranks_gather(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct yk_ranked r = of(g, node);
	r.kind = YOKE_REDUCE_SUM;
	gin[0] = together(g, YK_RANKS_REDUCE_SCATTER, 1, gout, r);
}

static void grad_ranks_exchange(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	gin[0] = together(g, YK_RANKS_ALL_TO_ALL, 1, gout, of(g, node));
}

// The sender receives the cotangent of the received value, after the cotangent of the 0 that it
// returned.
static void grad_ranks_send(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_ranked r = of(g, node);
	const struct yk_value x = g->value[yk_ins(g, &g->node[node])[0]];
	union yoke_attr attr[YK_RANKED + 1 + YOKE_MAX_RANK];
	memcpy(attr, &r, sizeof r);
	attr[YK_RANKED].i = x.dtype;
	for (int i = 0; i < x.rank; i++)
		attr[YK_RANKED + 1 + i].i = x.dims[i];
	gin[0] = yk_record(g, YK_RANKS_RECV, 1, gout, YK_RANKED + 1u + x.rank, attr);
}

static void grad_ranks_recv(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	if (g->node[node].nin)
		gin[0] = together(g, YK_RANKS_SEND, 1, gout, of(g, node));
}

#define RANKS_LIST(N, NAME, g) YK_OP(RANKS_##N) = { \
	.name = NAME, .flags = YK_F_RANKS, .min_in = 1, .max_in = 1, .nout = 1, .lists_in = 1, \
	.lists_out = 1, .shape = shape_ranks, .grad = g };
#define RANKS(N, NAME, s, g) YK_OP(RANKS_##N) = { \
	.name = NAME, .flags = YK_F_RANKS, .min_in = 1, .max_in = 1, .nout = 1, \
	.shape = s, .grad = g };
#define VIEW(N, NAME, more, s, g) YK_OP(N) = { \
	.name = NAME, .flags = YK_F_VIEW | (more), .min_in = 1, .max_in = 1, .nout = 1, \
	.shape = s, .grad = g };

// their attributes: see yk_ranked
RANKS_LIST(ALL_REDUCE, "all_reduce", grad_ranks_all_reduce)
RANKS(REDUCE_SCATTER, "reduce_scatter", shape_ranks_cut, grad_ranks_cut)
RANKS(ALL_GATHER, "all_gather", shape_ranks_gather, grad_ranks_gather)
RANKS_LIST(BROADCAST, "broadcast", grad_ranks_broadcast)
RANKS_LIST(REDUCE, "reduce", grad_ranks_reduce)
RANKS(ALL_TO_ALL, "all_to_all", shape_ranks_cut, grad_ranks_exchange)
RANKS(SEND, "send", shape_ranks_send, grad_ranks_send)
YK_OP(RANKS_RECV) = { .name = "recv", .flags = YK_F_RANKS, .min_in = 0, .max_in = 1, .nout = 1,
	.shape = shape_ranks_recv, .grad = grad_ranks_recv };
YK_OP(RANKS_GATHER_SHARDS) = { .name = "gather_shares",
			       .flags = YK_F_RANKS,
			       .min_in = 1,
			       .max_in = UINT32_MAX,
			       .nout = 1,
			       .lists_in = 1,
			       .lists_out = 1,
			       .shape = shape_ranks_gather_shards };
YK_OP(RANKS_REDUCE_SHARDS) = { .name = "reduce_shares",
			       .flags = YK_F_RANKS,
			       .min_in = 1,
			       .max_in = UINT32_MAX,
			       .nout = 1,
			       .lists_in = 1,
			       .shape = shape_ranks_reduce_shards };
VIEW(RANKS_IN, "tensor_in", 0, yk_shape_same, grad_ranks_in)
