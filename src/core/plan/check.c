// SPDX-License-Identifier: Apache-2.0
// YOKE_CHECK=nan: reads back every result of a step and reports the first element that is not
// finite although the operands are.  Plans for it neither fuse nor write in place, so that a step
// is one op and its operands are still intact after it.

#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "base/log.h"
#include "base/num.h"
#include "base/number.h"
#include "base/param.h"
#include "plan/launch.h"
#include "plan/plan.h"
#include "plan/planner.h"

YK_PARAM(check, "check", YK_STRING, "",
	 "nan: copy every result to the host and report the op that produces the first infinity or NaN");

int yk_check_setting(bool *nan)
{
	const char *what = yk_param_str(&check);
	*nan = !strcmp(what, "nan");
	if (*what && !*nan)
		return yk_fail(YOKE_EINVAL, "check '%s': nan is all that can be checked for",
			       what);
	return 0;
}

// ---- numbers ----

static double number_of(int dtype, const void *at)
{
	float f;
	double d;
	uint16_t h;
	switch (dtype) {
	case yoke_f32: memcpy(&f, at, sizeof f); return (double)f;
	case yoke_f64: memcpy(&d, at, sizeof d); return d;
	case yoke_f16: memcpy(&h, at, sizeof h); return (double)yk_float_of_f16(h);
	case yoke_bf16: memcpy(&h, at, sizeof h); return (double)yk_float_of_bf16(h);
	}
	return 0; // integers are always finite
}

// ---- views ----

struct seen { // summary of the elements of a view
	bool nan, inf, empty;
	int64_t at;   // row-major index of the first NaN, else of the first infinity
	double value; // the value at that index
};

struct fetched {
	char *bytes;    // the view's elements, from the lowest address on
	int64_t origin; // offset of the first element in them
};

static int64_t elements(const struct yoke_view *v)
{
	int64_t n = 1;
	for (int i = 0; i < v->rank; i++)
		n *= v->dims[i];
	return n;
}

// The offset, in elements from the first one, of the k-th element in row-major order.
static int64_t place(const struct yoke_view *v, int64_t k)
{
	int64_t at = 0;
	for (int i = v->rank; i-- > 0; k /= v->dims[i])
		at += k % v->dims[i] * v->strides[i];
	return at;
}

static int fetch(struct yk_queue *q, const struct yoke_view *v, struct fetched *to)
{
	const struct yoke_backend *ops = q->device->ops;
	int64_t lo = 0, hi = 1, size = (int64_t)yoke_dtype_size(v->dtype);
	for (int i = 0; i < v->rank; i++)
		*(v->strides[i] < 0 ? &lo : &hi) += (v->dims[i] - 1) * v->strides[i];
	uint64_t bytes = (uint64_t)((hi - lo) * size);
	if (!(to->bytes = malloc(bytes)))
		return yk_fail(YOKE_ENOMEM, "check: no host memory for %llu bytes of a result",
			       (unsigned long long)bytes);
	to->origin = -lo;
	int err = ops->get(q->handle, v->segment, v->offset - (uint64_t)(-lo * size),
			   to->bytes, bytes);
	if (!err)
		err = yk_queue_drain(q);
	if (err) {
		free(to->bytes);
		to->bytes = NULL;
	}
	return err;
}

static double element(const struct yoke_view *v, const struct fetched *f, int64_t k)
{
	int64_t size = (int64_t)yoke_dtype_size(v->dtype);
	return number_of(v->dtype, f->bytes + (f->origin + place(v, k)) * size);
}

static void note(struct seen *s, double x, int64_t k)
{
	if (isfinite(x) || s->nan || (isinf(x) && s->inf))
		return;
	s->nan = isnan(x);
	s->inf |= !s->nan;
	s->at = k;
	s->value = x;
}

static int look(struct yk_queue *q, const struct yoke_view *v, struct seen *to)
{
	struct fetched f = { 0 };
	*to = (struct seen){ .empty = v->kind != YOKE_VIEW_NONE && !elements(v) };
	if (v->kind == YOKE_VIEW_NONE || to->empty || !yk_is_float(v->dtype))
		return 0;
	if (v->kind == YOKE_VIEW_SCALAR) {
		note(to, yk_num_of_bits(v->offset, v->dtype).f, 0);
		return 0;
	}
	int err = fetch(q, v, &f);
	for (int64_t k = 0, n = err ? 0 : elements(v); k < n; k++)
		note(to, element(v, &f, k), k);
	free(f.bytes);
	return err;
}

// ---- a step ----

// Summarizes all operands, including constants of a program; *bad: the first that has a NaN.
static int look_at_operands(struct yk_queue *q, const struct yoke_op *op, struct seen *all,
			    uint32_t *bad)
{
	struct seen s;
	int err = 0;
	*all = (struct seen){ 0 };
	*bad = op->nin;
	for (uint32_t i = 0; i < op->nin && !err; i++) {
		err = look(q, &op->in[i], &s);
		if (s.nan && *bad == op->nin)
			*bad = i;
		all->nan |= s.nan;
		all->inf |= s.inf;
		all->empty |= s.empty;
	}
	for (int i = 0; op->map && i < op->map->ninsn; i++) {
		const struct yoke_insn *k = &op->map->insn[i];
		if (k->op == YOKE_MAP_CONST && yk_is_float(k->dtype))
			note(all, number_of(k->dtype, &op->map->konst[k->a]), 0);
	}
	return err;
}

// The index in the recorded op's shape, if the result is its; else in the view's.
static int index_text(char *to, size_t cap, const struct yk_value *value,
		      const struct yoke_view *v, int64_t k)
{
	bool known = value && yk_count(value) == elements(v);
	const int64_t *dims = known ? value->dims : v->dims;
	int rank = known ? value->rank : v->rank, n = 0;
	int64_t index[YOKE_MAX_RANK];
	for (int i = rank; i-- > 0; k /= dims[i])
		index[i] = k % dims[i];
	n += snprintf(to, cap, "[");
	for (int i = 0; i < rank; i++)
		n += snprintf(to + n, cap - (size_t)n, "%s%lld", i ? "," : "",
			      (long long)index[i]);
	return n + snprintf(to + n, cap - (size_t)n, "]");
}

// For an elementwise op: the operands' values at that index, "-1, 2".
static void operands_text(char *to, size_t cap, struct yk_queue *q, const struct yoke_op *op,
			  int64_t k)
{
	struct fetched f = { 0 };
	size_t n = 0;
	*to = '\0';
	for (uint32_t i = 0; i < op->nin && op->code == YOKE_OP_MAP && n < cap; i++) {
		const struct yoke_view *v = &op->in[i];
		double x = NAN;
		if (!yk_is_float(v->dtype) || v->kind == YOKE_VIEW_NONE)
			continue;
		if (v->kind == YOKE_VIEW_SCALAR)
			x = yk_num_of_bits(v->offset, v->dtype).f;
		else if (!fetch(q, v, &f))
			x = element(v, &f, k);
		free(f.bytes);
		f.bytes = NULL;
		n += (size_t)yk_snprintf(to + n, cap - n, "%s%.9g", n ? ", " : " where they are ",
				      x);
	}
}

static const char *name_of(double x)
{
	return isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

// The log of a sum over no keys is -inf by definition.
static bool by_definition(const struct yoke_op *op, uint32_t out, const struct seen *s)
{
	return op->code == YOKE_OP_ATTENTION && out == 1 && !s->nan && s->value < 0;
}

static void report_leaf(struct yk_planner *pl, const struct yk_plan *p, const struct yk_step *s,
		       uint32_t operand)
{
	char text[700];
	if (operand >= s->op.nin || pl->check.leaf_logged ||
	    p->ref[s->view + s->op.nout + operand].where != YK_AT_LEAF)
		return;
	pl->check.leaf_logged = true;
	yk_step_text(pl, s, text, sizeof text);
	yk_warn("check", "operand %u of %s contains a NaN that no op of this plan produced: it "
		"was written by the host, or computed earlier (logged once)", operand, text);
}

int yk_check_step(struct yk_planner *pl, const struct yk_plan *p, const struct yk_step *s,
		  struct yk_queue *q)
{
	const struct yoke_op *op = &s->op;
	struct seen out, in = { 0 };
	bool known = false;
	uint32_t leaf = 0;
	if (s->kind != YK_STEP_RUN)
		return 0;
	for (uint32_t i = 0; i < op->nout; i++) {
		int err = look(q, &op->out[i], &out);
		if (!err && (out.nan || out.inf) && !known)
			err = look_at_operands(q, op, &in, &leaf);
		if (err)
			return err;
		if (!out.nan && !out.inf)
			continue;
		known = true;
		if (out.nan)
			report_leaf(pl, p, s, leaf);
		if (in.nan || (in.inf && !out.nan) || in.empty || by_definition(op, i, &out))
			continue;
		const struct yk_graph *g = &pl->ctx->graph;
		const struct yk_node *n = yk_step_recorded(pl, s);
		const struct yk_value *value = n && n->op == s->opcode && i < n->nout ?
						       &g->value[n->out + i] :
						       NULL;
		char index[200], operands[200];
		index_text(index, sizeof index, value, &op->out[i], out.at);
		operands_text(operands, sizeof operands, q, op, out.at);
		return yk_fail(YOKE_ERANGE, "it makes %s at %s of result %u of operands %s%s%s",
			       name_of(out.value), index, i,
			       in.inf ? "without nan" : "that are finite", operands,
			       " (YOKE_CHECK=nan)");
	}
	return 0;
}
