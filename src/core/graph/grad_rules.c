// SPDX-License-Identifier: Apache-2.0
// Gradient rules: given the cotangents of a node's results, append those of its operands.
// In the comments g is the cotangent, y the result, S(x, a) sums x down to the shape of a.

#include "config.h"

#include <math.h>
#include <string.h>

#include "graph/op.h"

// A node's operands and results; copied, since appending moves the arrays.
struct at {
	yk_id in[12], y;
	uint32_t nin;
	union yoke_attr attr[3 * YOKE_MAX_RANK];
	uint16_t op;
};

static struct at at(const struct yk_graph *g, uint32_t node)
{
	struct at a = { .op = g->node[node].op, .y = g->node[node].out };
	const struct yk_node *n = &g->node[node];
	a.nin = n->nin < 12 ? n->nin : 12;
	memcpy(a.in, yk_ins(g, n), a.nin * sizeof *a.in);
	memcpy(a.attr, yk_attrs(g, n),
	       (n->nattr < 24u ? n->nattr : 24u) * sizeof *a.attr);
	return a;
}

// mask ? x : 0
static yk_id where(struct yk_graph *g, yk_id mask, yk_id x)
{
	if (x == YK_BAD)
		return YK_BAD;
	return yk_tri(g, YK_SELECT, mask, x, yk_lit(g, g->value[x].dtype, 0));
}

// g times 1 where a wins, 1/2 where a and b are equal, 0 else; wins: YK_GT or YK_LT
static yk_id share(struct yk_graph *g, yk_id cot, yk_id a, yk_id b, int wins)
{
	yk_id half = yk_bin_lit(g, YK_MUL, cot, 0.5);
	yk_id tie = where(g, yk_bin(g, YK_EQ, a, b), half);
	return yk_tri(g, YK_SELECT, yk_bin(g, wins, a, b), cot, tie);
}

// d y / d x of a map of one operand, times g
static yk_id unary(struct yk_graph *g, int op, yk_id x, yk_id y, yk_id cot)
{
	yk_id t;
	switch (op) {
	case YK_NEG: return yk_un(g, YK_NEG, cot);
	case YK_ABS: return yk_bin(g, YK_MUL, cot, yk_un(g, YK_SIGN, x));
	case YK_EXP: return yk_bin(g, YK_MUL, cot, y);
	case YK_LOG: return yk_bin(g, YK_DIV, cot, x);
	case YK_LOG1P: return yk_bin(g, YK_DIV, cot, yk_bin_lit(g, YK_ADD, x, 1));
	case YK_EXPM1: return yk_bin(g, YK_MUL, cot, yk_bin_lit(g, YK_ADD, y, 1));
	case YK_SQRT: return yk_bin(g, YK_DIV, cot, yk_bin_lit(g, YK_MUL, y, 2));
	case YK_RSQRT: // -g y^3 / 2
		t = yk_bin(g, YK_MUL, y, yk_un(g, YK_SQUARE, y));
		return yk_bin(g, YK_MUL, cot, yk_bin_lit(g, YK_MUL, t, -0.5));
	case YK_RECIP:
		return yk_un(g, YK_NEG, yk_bin(g, YK_MUL, cot, yk_un(g, YK_SQUARE, y)));
	case YK_SQUARE: return yk_bin(g, YK_MUL, cot, yk_bin_lit(g, YK_MUL, x, 2));
	case YK_SIN: return yk_bin(g, YK_MUL, cot, yk_un(g, YK_COS, x));
	case YK_COS: return yk_un(g, YK_NEG, yk_bin(g, YK_MUL, cot, yk_un(g, YK_SIN, x)));
	case YK_TANH: // g (1 - y^2)
		t = yk_bin_lit(g, YK_ADD, yk_un(g, YK_NEG, yk_un(g, YK_SQUARE, y)), 1);
		return yk_bin(g, YK_MUL, cot, t);
	case YK_SIGMOID: // g y (1 - y)
		t = yk_bin_lit(g, YK_ADD, yk_un(g, YK_NEG, y), 1);
		return yk_bin(g, YK_MUL, cot, yk_bin(g, YK_MUL, y, t));
	case YK_ERF: // g 2/sqrt(pi) exp(-x^2)
		t = yk_un(g, YK_EXP, yk_un(g, YK_NEG, yk_un(g, YK_SQUARE, x)));
		return yk_bin(g, YK_MUL, cot, yk_bin_lit(g, YK_MUL, t, M_2_SQRTPI));
	}
	return YK_NIL;
}

static void pow_rule(struct yk_graph *g, yk_id a, yk_id b, yk_id y, yk_id cot, yk_id *gin)
{
	// base: g b a^(b-1), 0 where b is 0
	yk_id zero = yk_lit(g, g->value[a].dtype, 0), one = yk_lit(g, g->value[a].dtype, 1);
	yk_id less = yk_bin(g, YK_POW, a, yk_bin_lit(g, YK_SUB, b, 1));
	yk_id da = yk_bin(g, YK_MUL, cot, yk_bin(g, YK_MUL, b, less));
	gin[0] = yk_sum_to(g, where(g, yk_bin(g, YK_NE, b, zero), da), a);
	// exponent: g y log a, 0 where a is negative; 0 where y is 0, which is the limit, and for 0^0
	yk_id none = yk_bin(g, YK_AND, yk_bin(g, YK_EQ, a, zero), yk_bin(g, YK_EQ, b, zero));
	none = yk_bin(g, YK_OR, none, yk_bin(g, YK_OR, yk_bin(g, YK_LT, a, zero), yk_bin(g, YK_EQ, y, zero)));
	yk_id log = yk_un(g, YK_LOG, yk_tri(g, YK_SELECT, none, one, a));
	gin[1] = yk_sum_to(g, yk_bin(g, YK_MUL, cot, yk_bin(g, YK_MUL, where(g, yk_un(g, YK_NOT, none), y), log)), b);
}

// Is a rule of more than one operation that rounds?  Such are computed in the accumulator's dtype.
static bool rounds_often(const struct yk_graph *g, const struct at *n)
{
	switch (n->op) {
	case YK_ADD:
	case YK_SUB:
	case YK_MIN:
	case YK_MAX:
	case YK_SELECT:
	case YK_NEG:
	case YK_ABS:
	case YK_EXP:
	case YK_LOG: return false;
	case YK_MUL: // a product, and a sum where it was broadcast
		return !yk_same_shape(&g->value[n->in[0]], &g->value[n->in[1]]);
	default: return true;
	}
}

void yk_grad_map(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct at n = at(g, node);
	yk_id a = n.in[0], b = n.in[1], cot = gout[0], t;
	int wins;
	if (rounds_often(g, &n)) {
		a = yk_up(g, a);
		b = n.nin > 1 ? yk_up(g, b) : YK_NIL;
		n.y = yk_up(g, n.y);
		cot = yk_up(g, cot);
	}
	switch (n.op) {
	case YK_ADD:
	case YK_SUB:
		gin[0] = yk_sum_to(g, cot, a);
		gin[1] = yk_sum_to(g, cot, b);
		if (n.op == YK_SUB)
			gin[1] = yk_un(g, YK_NEG, gin[1]);
		break;
	case YK_MUL:
		gin[0] = yk_sum_to(g, yk_bin(g, YK_MUL, cot, b), a);
		gin[1] = yk_sum_to(g, yk_bin(g, YK_MUL, cot, a), b);
		break;
	case YK_DIV:
		t = yk_bin(g, YK_DIV, cot, b);
		gin[0] = yk_sum_to(g, t, a);
		gin[1] = yk_sum_to(g, yk_un(g, YK_NEG, yk_bin(g, YK_MUL, t, n.y)), b);
		break;
	case YK_POW: pow_rule(g, a, b, n.y, cot, gin); break;
	case YK_MOD: // a - y is a whole number of b, but for its rounding
		t = yk_un(g, YK_ROUND, yk_bin(g, YK_DIV, yk_bin(g, YK_SUB, a, n.y), b));
		gin[0] = yk_sum_to(g, cot, a);
		gin[1] = yk_sum_to(g, yk_un(g, YK_NEG, yk_bin(g, YK_MUL, cot, t)), b);
		break;
	case YK_MIN:
	case YK_MAX:
		wins = n.op == YK_MIN ? YK_LT : YK_GT;
		gin[0] = yk_sum_to(g, share(g, cot, a, b, wins), a);
		gin[1] = yk_sum_to(g, share(g, cot, b, a, wins), b);
		break;
	case YK_SELECT:
		t = yk_lit(g, g->value[cot].dtype, 0);
		gin[1] = yk_sum_to(g, yk_tri(g, YK_SELECT, a, cot, t), b);
		gin[2] = yk_sum_to(g, yk_tri(g, YK_SELECT, a, t, cot), n.in[2]);
		break;
	default: gin[0] = unary(g, n.op, a, n.y, cot);
	}
	for (uint32_t i = 0; i < n.nin; i++)
		if (gin[i] != YK_NIL)
			gin[i] = yk_down(g, gin[i], n.in[i]);
}

void yk_grad_cast(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct at n = at(g, node);
	if (yk_is_float(g->value[n.in[0]].dtype))
		gin[0] = yk_cast(g, gout[0], g->value[n.in[0]].dtype);
}

// x [..], reduced over `axes` to y: y's or its cotangent's elements, back in the shape of x
static yk_id unreduce(struct yk_graph *g, yk_id y, yk_id x, unsigned axes)
{
	if (y == YK_BAD)
		return YK_BAD;
	struct yk_value v = g->value[x], kept = v;
	for (int i = 0; i < v.rank; i++)
		if (axes >> i & 1)
			kept.dims[i] = 1;
	if (!yk_same_shape(&g->value[y], &kept))
		y = yk_reshape(g, y, kept.rank, kept.dims);
	return yk_broadcast(g, y, v.rank, v.dims);
}

void yk_grad_sum(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct at n = at(g, node);
	gin[0] = unreduce(g, gout[0], n.in[0], (unsigned)n.attr[0].i);
}

void yk_grad_extreme(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	// broadcast(g) [x = y] / how many are equal, which is counted and divided in the accumulator's dtype; compared
	// twice, once within the sum, rather than kept for all of x
	struct at n = at(g, node);
	unsigned axes = (unsigned)n.attr[0].i;
	yk_id x = n.in[0], y = unreduce(g, n.y, x, axes);
	yk_id one = yk_cast(g, yk_bin(g, YK_EQ, x, y), yk_acc(g->value[x].dtype));
	yk_id ties = yk_reduce(g, YK_SUM, one, axes, n.attr[1].i != 0);
	yk_id each = yk_down(g, yk_bin(g, YK_DIV, yk_up(g, gout[0]), ties), x);
	each = unreduce(g, each, x, axes);
	yk_id zero = yk_lit(g, g->value[x].dtype, 0);
	gin[0] = yk_tri(g, YK_SELECT, yk_bin(g, YK_NE, x, y), zero, each);
}

// The product of what stands before each element along the last axis of x [..,N], or behind it.
static yk_id others(struct yk_graph *g, yk_id x, bool behind)
{
	if (x == YK_BAD)
		return YK_BAD;
	int64_t start[YOKE_MAX_RANK] = { 0 }, step[YOKE_MAX_RANK], size[YOKE_MAX_RANK];
	int64_t lo[YOKE_MAX_RANK] = { 0 }, hi[YOKE_MAX_RANK] = { 0 };
	int rank = g->value[x].rank, last = rank - 1;
	for (int i = 0; i < rank; i++) {
		step[i] = 1;
		size[i] = g->value[x].dims[i];
	}
	size[last]--;
	start[last] = behind;
	*(behind ? &hi[last] : &lo[last]) = 1;
	yk_id t = yk_record(g, YK_CUMPROD, 1, &x, 3,
			    (union yoke_attr[]){ { .i = last },
						 { .i = YOKE_REDUCE_PROD },
						 { .i = behind } });
	return yk_pad(g, yk_slice(g, t, start, step, size), lo, hi, 1);
}

void yk_grad_prod(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	// g times the product of the others: those before times those behind, no division
	struct at n = at(g, node);
	unsigned axes = (unsigned)n.attr[0].i;
	yk_id x = n.in[0];
	struct yk_value v = g->value[x];
	int order[YOKE_MAX_RANK], back[YOKE_MAX_RANK], rank = 0, kept = 0;
	int64_t dims[YOKE_MAX_RANK], all[YOKE_MAX_RANK], count = 1;
	if (!(axes & ((1u << v.rank) - 1)) || !yk_count(&v)) { // there are no others
		gin[0] = yk_count(&v) ? gout[0] : yk_full_like(g, x, 0);
		return;
	}
	for (int last = 0; last < 2; last++) // reduced axes last, as one
		for (int i = 0; i < v.rank; i++)
			if ((axes >> i & 1) == (unsigned)last) {
				all[rank] = v.dims[i];
				back[i] = rank;
				order[rank++] = i;
				if (last)
					count *= v.dims[i];
				else
					dims[kept++] = v.dims[i];
			}
	dims[kept] = count;
	x = yk_reshape(g, yk_permute(g, x, order), kept + 1, dims);
	x = yk_bin(g, YK_MUL, others(g, x, false), others(g, x, true));
	x = yk_permute(g, yk_reshape(g, x, v.rank, all), back);
	gin[0] = yk_bin(g, YK_MUL, unreduce(g, gout[0], n.in[0], axes), x);
}

void yk_grad_matmul(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct at n = at(g, node);
	yk_id a = n.in[0], b = n.in[1], c = gout[0];
	if (g->value[c].dtype != g->value[a].dtype) { // rounded once, at the end
		a = yk_up(g, a);
		b = yk_up(g, b);
	}
	bool ta = n.attr[0].i & YOKE_TA, tb = n.attr[0].i & YOKE_TB;
	// a' and b' as the product uses them: ga' = c b'^T, gb' = a'^T c, transposed back where needed
	yk_id ga = ta ? yk_matmul(g, b, c, (tb ? YOKE_TA : 0) | YOKE_TB) :
			yk_matmul(g, c, b, tb ? 0 : YOKE_TB);
	yk_id gb = tb ? yk_matmul(g, c, a, YOKE_TA | (ta ? YOKE_TB : 0)) :
			yk_matmul(g, a, c, ta ? 0 : YOKE_TA);
	gin[0] = yk_down(g, yk_sum_to(g, ga, a), n.in[0]);
	gin[1] = yk_down(g, yk_sum_to(g, gb, b), n.in[1]);
}

void yk_grad_reshape(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct yk_value x = g->value[at(g, node).in[0]];
	gin[0] = yk_reshape(g, gout[0], x.rank, x.dims);
}

void yk_grad_permute(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct at n = at(g, node);
	int inverse[YOKE_MAX_RANK];
	for (int i = 0; i < g->value[n.y].rank; i++)
		inverse[n.attr[i].i] = i;
	gin[0] = yk_permute(g, gout[0], inverse);
}

void yk_grad_broadcast(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	gin[0] = yk_sum_to(g, gout[0], at(g, node).in[0]);
}

void yk_grad_contiguous(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	(void)g;
	(void)node;
	gin[0] = gout[0];
}

// The part of x that begins at `start` and has the shape of `like`.
static yk_id part(struct yk_graph *g, yk_id x, const int64_t *start, yk_id like)
{
	if (x == YK_BAD)
		return YK_BAD;
	int64_t step[YOKE_MAX_RANK], size[YOKE_MAX_RANK];
	for (int i = 0; i < g->value[like].rank; i++) {
		step[i] = 1;
		size[i] = g->value[like].dims[i];
	}
	return yk_slice(g, x, start, step, size);
}

void yk_grad_pad(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct at n = at(g, node);
	int64_t lo[YOKE_MAX_RANK];
	for (int i = 0; i < g->value[n.y].rank; i++)
		lo[i] = n.attr[i].i;
	gin[0] = part(g, gout[0], lo, n.in[0]);
}

void yk_grad_concat(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	int64_t start[YOKE_MAX_RANK] = { 0 };
	int64_t axis = yk_attrs(g, &g->node[node])[0].i;
	for (uint32_t k = 0; k < g->node[node].nin; k++) {
		yk_id x = yk_ins(g, &g->node[node])[k];
		gin[k] = part(g, gout[0], start, x);
		start[axis] += g->value[x].dims[axis];
	}
}

void yk_grad_slice_update(struct yk_graph *g, uint32_t node, const yk_id *gout,
			  yk_id *gin)
{
	struct at n = at(g, node);
	int64_t start[YOKE_MAX_RANK];
	for (int i = 0; i < g->value[n.y].rank; i++)
		start[i] = n.attr[i].i;
	yk_id none = yk_full_like(g, n.in[1], 0);
	gin[0] = yk_record(g, YK_SLICE_UPDATE, 2, (yk_id[]){ gout[0], none },
			   g->value[n.y].rank, n.attr);
	gin[1] = part(g, gout[0], start, n.in[1]);
}

void yk_grad_gather(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct at n = at(g, node);
	struct yk_value x = g->value[n.in[0]], idx = g->value[n.in[1]], y = g->value[n.y];
	int axis = (int)n.attr[0].i;
	yk_id v = gout[0];
	int order[YOKE_MAX_RANK], back[YOKE_MAX_RANK];
	if (axis) { // rows first: y [A..,I..,R..] -> [I..,A..,R..]
		for (int i = 0; i < y.rank; i++)
			order[i] = i < idx.rank        ? axis + i :
				   i < idx.rank + axis ? i - idx.rank :
							 i;
		v = yk_permute(g, v, order);
	}
	union yoke_attr rows = { .i = x.dims[axis] };
	v = yk_record(g, YK_SCATTER_ADD, 3, (yk_id[]){ YK_NIL, n.in[1], v }, 1, &rows);
	if (axis) { // [N,A..,R..] -> [A..,N,R..]
		for (int i = 0; i < x.rank; i++)
			back[i] = i < axis ? i + 1 : i == axis ? 0 : i;
		v = yk_permute(g, v, back);
	}
	gin[0] = v;
}

void yk_grad_scatter_add(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct at n = at(g, node);
	if (n.in[0] != YK_NIL)
		gin[0] = gout[0];
	gin[2] = yk_record(g, YK_GATHER, 2, (yk_id[]){ gout[0], n.in[1] }, 1,
			   &(union yoke_attr){ .i = 0 });
}

void yk_grad_softmax(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct at n = at(g, node);
	gin[0] = yk_record(g, YK_SOFTMAX_BACK, 2, (yk_id[]){ n.y, gout[0] }, 1, n.attr);
}

// Results of a *_back op, given to gin where an operand is there.
static void back(struct yk_graph *g, struct yk_call *c, uint32_t n, const yk_id *operand,
		 const uint32_t *which, yk_id *gin)
{
	yk_id out = YK_BAD;
	for (uint32_t i = 0; i < c->nin; i++)
		if (c->in[i] == YK_BAD)
			goto bad;
	if (!yk_append(g, c, &out)) {
		for (uint32_t i = 0; i < n; i++)
			if (operand[which[i]] != YK_NIL)
				gin[which[i]] = out + i;
		return;
	}
bad:
	for (uint32_t i = 0; i < n; i++)
		gin[which[i]] = YK_BAD;
}

void yk_grad_norm(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	// mean and rstd are by-products: their cotangents are not used
	struct at n = at(g, node);
	bool layer = n.op == YK_LAYER_NORM;
	yk_id in[5] = { n.in[0], n.in[1], n.y + 1, n.y + 2, gout[0] };
	if (!layer)
		in[3] = gout[0];
	const struct yk_call forward = { .nin = n.nin, .in = n.in };
	union yoke_attr dtype = { .i = yk_norm_dtype(g, &forward) };
	struct yk_call c = { .op = layer ? YK_LAYER_NORM_BACK : YK_RMS_NORM_BACK,
			     .nin = layer ? 5 : 4,
			     .in = in,
			     .nattr = 1,
			     .attr = &dtype };
	if (gout[0] != YK_NIL)
		back(g, &c, layer ? 3 : 2, n.in, (uint32_t[]){ 0, 1, 2 }, gin);
}

void yk_grad_cross_entropy(struct yk_graph *g, uint32_t node, const yk_id *gout,
			   yk_id *gin)
{
	struct at n = at(g, node);
	if (gout[0] != YK_NIL)
		gin[0] = yk_record(g, YK_CROSS_ENTROPY_BACK, 4,
				   (yk_id[]){ n.in[0], n.in[1], n.y + 1, gout[0] }, 2,
				   n.attr);
}

void yk_grad_attention(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct at n = at(g, node);
	yk_id in[10] = { n.in[0], n.in[1], n.in[2], n.in[3], n.in[4],
			 n.in[5], n.y,     n.y + 1, gout[0], n.in[6] };
	struct yk_call c = {
		.op = YK_ATTENTION_BACK, .nin = 10, .in = in, .nattr = 3, .attr = n.attr
	};
	if (gout[0] == YK_NIL)
		return;
	back(g, &c, 3, n.in, (uint32_t[]){ 0, 1, 2 }, gin);
	if (n.in[3] != YK_NIL) // not computed unless something needs it
		gin[3] = yk_record(g, YK_ATTENTION_MASK_BACK, 10, in, 3, n.attr);
}
