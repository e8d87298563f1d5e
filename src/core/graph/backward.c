// SPDX-License-Identifier: Apache-2.0
// Reverse-mode differentiation, graph to graph: visits the nodes in reverse order and appends the
// gradient rule of each node that depends on one of p.
//
// Cotangents of slices are set aside until the sliced value is visited: slices that tile an axis
// become one concat, so splitting a projection into q, k and v costs neither padding nor additions.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/op.h"

#define NONE UINT32_MAX

struct slice {         // the cotangent of a slice
	uint32_t node; // the slice node
	yk_id cot;
	uint32_t next; // next slice of the same value, or NONE
};

struct pass {
	struct yk_graph *g;
	yk_id *cot;       // for each value that existed at the start
	uint8_t *matters; // by value: depends on one of p
	uint32_t *slices; // first slice of each value, or NONE
	struct slice *slice;
	size_t nslice;
	int err;
};

static void accumulate(struct pass *s, yk_id v, yk_id cot)
{
	if (cot == YK_NIL || v == YK_NIL)
		return;
	if (cot == YK_BAD)
		s->err = yk_error_last();
	else
		s->cot[v] =
			s->cot[v] == YK_NIL ? cot : yk_bin(s->g, YK_ADD, s->cot[v], cot);
	if (s->cot[v] == YK_BAD)
		s->err = yk_error_last();
}

// The only axis that the slice narrows, if its step is 1 there; -1: several axes or steps.
static int sliced_axis(const struct yk_graph *g, uint32_t node, int64_t *start,
		     int64_t *size)
{
	const struct yk_node *n = &g->node[node];
	const union yoke_attr *a = yk_attrs(g, n);
	const struct yk_value *x = &g->value[yk_ins(g, n)[0]];
	int axis = -1;
	for (int i = 0; i < x->rank; i++) {
		if (a[x->rank + i].i == 1 && a[i].i == 0 &&
		    a[2 * x->rank + i].i == x->dims[i])
			continue;
		if (axis >= 0 || a[x->rank + i].i != 1)
			return -1;
		axis = i;
	}
	*start = axis < 0 ? 0 : a[axis].i;
	*size = axis < 0 ? 0 : a[2 * x->rank + axis].i;
	return axis;
}

// The cotangents of v's slices as one concat if the slices tile one axis; YK_NIL otherwise.
static yk_id tile(struct pass *s, yk_id v)
{
	yk_id in[YOKE_MAX_RANK * 4];
	uint32_t n = 0;
	int axis = -1;
	int64_t at = 0, start, size;
	for (;;) { // find the slice that begins where the last one ended
		uint32_t p = s->slices[v], found = NONE;
		for (; p != NONE; p = s->slice[p].next) {
			int k = sliced_axis(s->g, s->slice[p].node, &start, &size);
			if (k < 0 || (axis >= 0 && k != axis))
				return YK_NIL;
			axis = k;
			if (start == at && size > 0)
				found = p;
			else if (start < at && start + size > at)
				return YK_NIL;
		}
		if (found == NONE || n == sizeof in / sizeof *in)
			return YK_NIL;
		sliced_axis(s->g, s->slice[found].node, &start, &size);
		in[n++] = s->slice[found].cot;
		at += size;
		if (at == s->g->value[v].dims[axis])
			break;
	}
	uint32_t slices = 0;
	for (uint32_t p = s->slices[v]; p != NONE; p = s->slice[p].next)
		slices++;
	if (slices != n) // two slices overlap
		return YK_NIL;
	return yk_record(s->g, YK_CONCAT, n, in, 1, &(union yoke_attr){ .i = axis });
}

// Inserts step - 1 zeros after each of n elements along an axis: x [P,n,Q] -> [P,n*step,Q].
static yk_id stretch(struct yk_graph *g, yk_id x, int axis, int64_t step)
{
	if (x == YK_BAD)
		return YK_BAD;
	struct yk_value v = g->value[x];
	int64_t d[4] = { 1, v.dims[axis], 1, 1 };
	for (int i = 0; i < v.rank; i++)
		d[i < axis ? 0 : 3] *= i == axis ? 1 : v.dims[i];
	x = yk_pad(g, yk_reshape(g, x, 4, d), (int64_t[4]){ 0 },
		   (int64_t[4]){ 0, 0, step - 1, 0 }, 0);
	v.dims[axis] *= step;
	return yk_reshape(g, x, v.rank, v.dims);
}

// A slice's cotangent as a cotangent of the sliced value: zeros around it, and between its elements
// if the slice had a step.
static yk_id spread(struct pass *s, const struct slice *p)
{
	struct yk_graph *g = s->g;
	const struct yk_node *n = &g->node[p->node];
	struct yk_value x = g->value[yk_ins(g, n)[0]];
	union yoke_attr a[3 * YOKE_MAX_RANK];
	memcpy(a, yk_attrs(g, n), n->nattr * sizeof *a);
	yk_id cot = p->cot;
	int64_t lo[YOKE_MAX_RANK] = { 0 }, hi[YOKE_MAX_RANK] = { 0 };
	for (int i = 0; i < x.rank && cot != YK_BAD; i++) {
		int64_t start = a[i].i, step = a[x.rank + i].i,
			size = a[2 * x.rank + i].i;
		int64_t from[YOKE_MAX_RANK] = { 0 }, by[YOKE_MAX_RANK],
			many[YOKE_MAX_RANK];
		for (int k = 0; k < x.rank; k++) {
			by[k] = 1;
			many[k] = g->value[cot].dims[k];
		}
		if (step < 0 && size) {
			from[i] = size - 1;
			by[i] = -1;
			cot = yk_slice(g, cot, from, by, many);
			start += (size - 1) * step;
			step = -step;
			from[i] = 0;
			by[i] = 1;
		}
		if (step > 1 && size) {
			cot = stretch(g, cot, i, step);
			many[i] = size * step < x.dims[i] - start ? size * step :
								    x.dims[i] - start;
			cot = yk_slice(g, cot, from, by, many);
		}
		if (cot == YK_BAD)
			return YK_BAD;
		lo[i] = size ? start : 0;
		hi[i] = x.dims[i] - lo[i] - g->value[cot].dims[i];
	}
	return yk_pad(g, cot, lo, hi, 0);
}

static int through_decomposition(struct pass *, uint32_t node, yk_id *gin);

// Cotangents of a node's operands by its gradient rule.  An operand that the rule leaves out is an
// error, since a gradient of 0 would go unnoticed; only a barrier has operands without gradients.
static int by_rule(struct pass *s, uint32_t node, yk_id *gin)
{
	struct yk_graph *g = s->g;
	const struct yk_node n = g->node[node];
	char text[160];
	yk_op_def(n.op)->grad(g, node, &s->cot[n.out], gin);
	const uint32_t max = yk_op_def(n.op)->joined ? n.nin - n.nout : n.nin;
	for (uint32_t i = 0; i < max && n.op != YK_BARRIER; i++) {
		yk_id x = g->arg[n.in + i];
		if (x != YK_NIL && gin[i] == YK_NIL && s->matters[x] &&
		    yk_is_float(g->value[x].dtype))
			return yk_op_fail(g, n.op, YOKE_EUNSUPPORTED,
					  "%s has no gradient by operand %u, %s",
					  yk_op_def(n.op)->name, i,
					  yk_describe(&g->value[x], text));
	}
	return 0;
}

// Adds the cotangents of slices that were set aside for v to its cotangent.
static void gather_slices(struct pass *s, yk_id v)
{
	if (s->slices[v] == NONE)
		return;
	yk_id whole = tile(s, v);
	if (whole != YK_NIL)
		accumulate(s, v, whole);
	else
		for (uint32_t p = s->slices[v]; p != NONE && !s->err;
		     p = s->slice[p].next)
			accumulate(s, v, spread(s, &s->slice[p]));
	s->slices[v] = NONE;
}

static void visit(struct pass *s, uint32_t node)
{
	struct yk_graph *g = s->g;
	struct yk_node n = g->node[node];
	const struct yk_op_def *row = yk_op_def(n.op);
	bool any = false, wanted = false;
	for (uint32_t i = 0; i < n.nout; i++) {
		gather_slices(s, n.out + i);
		any |= s->cot[n.out + i] != YK_NIL;
	}
	for (uint32_t i = 0; i < n.nin; i++)
		wanted |= g->arg[n.in + i] != YK_NIL && s->matters[g->arg[n.in + i]];
	if (!any || !wanted || s->err)
		return;
	g->scope = n.scope;
	g->site = n.site;
	g->back = n.op;
	g->call = n.call;
	if (n.op == YK_SLICE) {
		yk_id x = g->arg[n.in];
		s->slice[s->nslice] = (struct slice){ node, s->cot[n.out], s->slices[x] };
		s->slices[x] = (uint32_t)s->nslice++;
		return;
	}
	// most rules use only the first cotangent; those of by-products (lse, rstd) go through the
	// decomposition
	bool by_products = false;
	for (uint32_t i = 1; i < n.nout && !(row->flags & YK_F_ALL_RESULTS); i++)
		by_products |= s->cot[n.out + i] != YK_NIL;
	bool parts = yk_has_parts(g, n.op, yk_ins(g, &n), yk_attrs(g, &n)) &&
		     (!row->grad || by_products);
	if (row->flags & YK_F_FLAT)
		return;
	if (!row->grad && !parts) {
		s->err = yk_op_fail(g, n.op, YOKE_EUNSUPPORTED, "%s has no gradient",
				    row->name);
		return;
	}
	yk_id *gin = malloc((n.nin + (size_t)1) * sizeof *gin);
	if (!gin) {
		s->err = yk_fail(YOKE_ENOMEM, "gradient: no memory");
		return;
	}
	for (uint32_t i = 0; i < n.nin; i++)
		gin[i] = YK_NIL;
	if (parts)
		s->err = through_decomposition(s, node, gin);
	else
		s->err = by_rule(s, node, gin);
	for (uint32_t i = 0; i < n.nin; i++) {
		yk_id x = g->arg[n.in + i];
		if (x != YK_NIL && s->matters[x])
			accumulate(s, x, gin[i]);
	}
	free(gin);
}

// ---- passes ----

// Prepares a pass over `nodes` nodes and `values` values.
static int pass_init(struct pass *s, struct yk_graph *g, size_t values, size_t nodes)
{
	*s = (struct pass){
		.g = g,
		.cot = malloc(values * sizeof *s->cot),
		.matters = calloc(values, 1),
		.slices = malloc(values * sizeof *s->slices),
		.slice = malloc((nodes + 1) * sizeof *s->slice),
	};
	if (!s->cot || !s->matters || !s->slices || !s->slice)
		return s->err = yk_fail(YOKE_ENOMEM,
					"gradient: no memory for %zu operations", nodes);
	memset(s->cot, 0xff, values * sizeof *s->cot);
	memset(s->slices, 0xff, values * sizeof *s->slices);
	return 0;
}

static void pass_fini(struct pass *s)
{
	free(s->cot);
	free(s->matters);
	free(s->slices);
	free(s->slice);
}

// Marks the values that depend on marked ones, among nodes first .. end - 1.
static void spread_matters(struct pass *s, size_t first, size_t end)
{
	const struct yk_graph *g = s->g;
	for (size_t k = first; k < end; k++) {
		const struct yk_node *node = &g->node[k];
		uint8_t m = 0;
		for (uint32_t i = 0; i < node->nin && !m; i++)
			m = g->arg[node->in + i] != YK_NIL &&
			    s->matters[g->arg[node->in + i]];
		for (uint32_t i = 0; i < node->nout && m && node->op != YK_STOP_GRAD; i++)
			s->matters[node->out + i] = 1;
	}
}

// Cotangents of a node's operands through its decomposition, where there is no rule or it does not
// apply.  So *_backward ops have gradients too.
static int through_decomposition(struct pass *s, uint32_t node, yk_id *gin)
{
	struct yk_graph *g = s->g;
	const struct yk_node n = g->node[node];
	size_t first = g->nodes;
	struct pass t = { 0 };
	yk_id *out = malloc((n.nout + n.nin + (size_t)1) * sizeof *out), *in = out + n.nout;
	union yoke_attr attr[UINT8_MAX];
	if (!out)
		return yk_fail(YOKE_ENOMEM, "gradient: no memory");
	memcpy(in, yk_ins(g, &n), n.nin * sizeof *in); // appending moves the arrays
	memcpy(attr, yk_attrs(g, &n), n.nattr * sizeof *attr);
	struct yk_call c = { .op = n.op,
			     .list = n.list,
			     .nin = n.nin,
			     .in = in,
			     .nattr = n.nattr,
			     .attr = attr };
	yk_op_def(n.op)->decompose(g, &c, out);
	int err = pass_init(&t, g, g->values, g->nodes - first);
	if (err)
		goto done;
	for (uint32_t i = 0; i < n.nin; i++)
		if (in[i] != YK_NIL)
			t.matters[in[i]] = s->matters[in[i]];
	size_t end = g->nodes;
	spread_matters(&t, first, end);
	for (uint32_t i = 0; i < n.nout && !t.err; i++) {
		if (out[i] == YK_BAD)
			t.err = yk_error_last();
		else if (out[i] != YK_NIL)
			accumulate(&t, out[i], s->cot[n.out + i]);
	}
	for (size_t k = end; k-- > first && !t.err;)
		visit(&t, (uint32_t)k);
	for (uint32_t i = 0; i < n.nin && !t.err; i++) {
		if (in[i] == YK_NIL || !t.matters[in[i]])
			continue;
		gather_slices(&t, in[i]);
		gin[i] = t.cot[in[i]];
		t.cot[in[i]] = YK_NIL; // taken once, even if two operands are the same value
	}
	err = t.err;
done:
	pass_fini(&t);
	free(out);
	return err;
}

int yk_backward(struct yk_graph *g, uint32_t ny, const yk_id *y, const yk_id *cot, uint32_t n,
		const yk_id *p, yk_id *grads)
{
	size_t values = 0, nodes = 0;
	bool any = false;
	for (uint32_t i = 0; i < ny; i++) {
		const size_t last = (size_t)g->value[y[i]].node + 1;
		if (y[i] + (size_t)yk_maker(g, y[i])->nout > values)
			values = y[i] + (size_t)yk_maker(g, y[i])->nout;
		nodes = last > nodes ? last : nodes;
	}
	for (uint32_t i = 0; i < n; i++)
		if (p[i] >= values)
			values = (size_t)p[i] + 1;
	uint32_t scope = g->scope, site = g->site;
	const char *call = g->call;
	struct pass s;
	if (pass_init(&s, g, values, nodes) < 0)
		goto out;
	for (uint32_t i = 0; i < n; i++)
		s.matters[p[i]] = 1;
	spread_matters(&s, 0, nodes);
	for (uint32_t i = 0; i < ny && !s.err; i++) {
		if (!s.matters[y[i]])
			continue;
		g->scope = yk_maker(g, y[i])->scope;
		accumulate(&s, y[i], cot ? cot[i] : yk_full_like(g, y[i], 1));
		any = true;
	}
	for (size_t k = nodes; any && k-- > 0 && !s.err;)
		visit(&s, (uint32_t)k);
	for (uint32_t i = 0; i < n && !s.err; i++) {
		gather_slices(&s, p[i]);
		grads[i] = s.cot[p[i]];
	}
out:
	g->scope = scope;
	g->site = site;
	g->call = call;
	g->back = 0;
	pass_fini(&s);
	return s.err;
}
