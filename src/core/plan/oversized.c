// SPDX-License-Identifier: Apache-2.0
// Values larger than a device's largest allocation: a call that produces or reads one is computed
// in slices along an axis, each equal, bit for bit, to that part of the whole; if that is
// impossible, on the CPU, which is logged once.
//
// The slices are joined in host memory.  A reader that is computed in the same slices uses them
// directly, so that nothing is copied to the host between such calls: the joined value then has no
// readers and is dropped.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "plan/lower.h"
#include "plan/passes.h"
#include "plan/planner.h"
#include "plan/work.h"

enum { CANNOT = -2, WHOLE = -1 }; // instead of an operand's axis

const char yk_too_large[] = "larger than the largest allocation";

struct cut {
	int axis;     // of the result
	int64_t rows; // elements along it
	int64_t step; // elements per slice
};

uint64_t yk_bytes_of_value(const struct yk_value *v)
{
	return (uint64_t)yk_count(v) * yoke_dtype_size(v->dtype);
}

bool yk_is_too_large(const struct yk_work *w, yk_id v)
{
	return yk_is_hosts(w->ctx, yk_bytes_of_value(&w->g.value[v]));
}

bool yk_is_large(const struct yk_work *w, const struct yk_call *c, uint32_t nout,
		 const struct yk_value *outs)
{
	bool large = false;
	for (uint32_t i = 0; i < nout; i++)
		large |= yk_is_hosts(w->ctx, yk_bytes_of_value(&outs[i]));
	for (uint32_t i = 0; i < c->nin; i++)
		large |= c->in[i] != YK_NIL && yk_is_too_large(w, w->value[c->in[i]].place.base);
	return large;
}

// ---- which axes can be split ----

// The axis of x that corresponds to an axis of the result to which x is broadcast.
static int broadcast_axis(const struct yk_value *x, const struct yk_value *y, int axis)
{
	int k = axis - (y->rank - x->rank);
	return k >= 0 && x->dims[k] == y->dims[axis] ? k : WHOLE;
}

// Each row is reduced by itself; for sums across rows, the kernel's partition depends on the shape
// of the whole.
static int reduced_axis(const struct yk_call *c, const struct yk_value *x, int axis)
{
	unsigned axes = (unsigned)c->attr[0].i & ((1u << x->rank) - 1);
	return axes & ((2u << axis) - 1) ? CANNOT : axis;
}

// The axis along which operand i is split if the result is split along `axis`.
static int operand_axis(const struct yk_work *w, const struct yk_call *c, const struct yk_value *y,
			int axis, uint32_t i)
{
	const struct yk_value *x = &w->g.value[c->in[i]];
	unsigned flags = yk_op_def(c->op)->flags;
	if (flags & YK_F_REDUCE)
		return reduced_axis(c, x, axis);
	if (flags & YK_F_MAP) // some maps use the element's index
		return c->op == YK_IOTA || c->op == YK_RAND_BITS ? CANNOT :
								   broadcast_axis(x, y, axis);
	switch (c->op) {
	case YK_CONTIGUOUS: return axis;
	case YK_MATMUL:
		if (axis < y->rank - 2)
			return broadcast_axis(x, y, axis);
		if (axis == y->rank - 1)
			return CANNOT;
		return i ? WHOLE : x->rank - (c->attr[0].i & YOKE_TA ? 1 : 2);
	case YK_SOFTMAX:
	case YK_SOFTMAX_BACKWARD: return axis < y->rank - 1 ? axis : CANNOT;
	case YK_LAYER_NORM:
	case YK_RMS_NORM: return i ? WHOLE : axis < y->rank - 1 ? axis : CANNOT;
	case YK_GATHER:
		return c->attr[0].i || axis >= w->g.value[c->in[1]].rank ? CANNOT :
		       i ? axis :
		       WHOLE;
	}
	return CANNOT;
}

// Bytes of a row of v that the call may need: the decomposition of a named op computes in the
// accumulator's dtype.
static uint64_t row_bytes(const struct yk_call *c, const struct yk_value *v, int64_t rows)
{
	size_t size = yoke_dtype_size(v->dtype), acc = yoke_dtype_size(yk_acc(v->dtype));
	if (yk_op_def(c->op)->decompose && yk_is_float(v->dtype) && acc > size)
		size = acc;
	return (uint64_t)(yk_count(v) / rows) * size;
}

// Determines how to split the call along an axis of the result; false: impossible.
static bool cut_along(const struct yk_work *w, const struct yk_call *c, uint32_t nout,
		      const struct yk_value *outs, int axis, struct cut *to)
{
	uint64_t row = 1;
	*to = (struct cut){ .axis = axis, .rows = outs->dims[axis] };
	for (uint32_t i = 0; i < nout; i++) {
		if (outs[i].rank <= axis || outs[i].dims[axis] != to->rows)
			return false;
		uint64_t n = row_bytes(c, &outs[i], to->rows);
		row = n > row ? n : row;
	}
	for (uint32_t i = 0; i < c->nin; i++) {
		if (c->in[i] == YK_NIL)
			continue;
		int k = operand_axis(w, c, outs, axis, i);
		if (k == CANNOT || (k == WHOLE && yk_is_too_large(w, c->in[i])))
			return false;
		uint64_t n = k == WHOLE ? 0 : row_bytes(c, &w->g.value[c->in[i]], to->rows);
		row = n > row ? n : row;
	}
	to->step = (int64_t)(yk_largest(w->ctx) / row);
	if (to->step > 64) // so that kernels partition slices like the whole
		to->step = to->step / 64 * 64;
	if (!to->step) // rows are too large: split them along a later axis
		to->step = 1;
	return true;
}

// Splits along the first possible axis.
static bool find_cut(const struct yk_work *w, const struct yk_call *c, uint32_t nout,
		     const struct yk_value *outs, struct cut *to)
{
	for (int axis = 0; axis < outs->rank && !c->list; axis++)
		if (outs->dims[axis] > 1 && cut_along(w, c, nout, outs, axis, to))
			return true;
	return false;
}

// ---- splitting ----

static const struct yk_joined *joined_as(const struct yk_work *w, yk_id v, int axis, int64_t step)
{
	for (size_t i = w->lowering.njoined; i-- > 0;)
		if (w->lowering.joined[i].whole == v && w->lowering.joined[i].axis == axis &&
		    w->lowering.joined[i].step == step)
			return &w->lowering.joined[i];
	return NULL;
}

// Rows at .. at + n - 1 of v along an axis, on the device unless they are too large for it.
static int slice(struct yk_work *w, yk_id v, int axis, int64_t step, int64_t at, int64_t n,
		 yk_id *out)
{
	const struct yk_joined *j = joined_as(w, v, axis, step);
	if (j) {
		*out = j->slice[at / step];
		return 0;
	}
	struct yk_value part = w->g.value[v];
	union yoke_attr a[3 * YOKE_MAX_RANK];
	part.dims[axis] = n;
	for (int i = 0; i < part.rank; i++) {
		a[i].i = i == axis ? at : 0;
		a[part.rank + i].i = 1;
		a[2 * part.rank + i].i = part.dims[i];
	}
	struct yk_call c = {
		.op = YK_SLICE, .nin = 1, .in = &v, .nattr = 3u * part.rank, .attr = a
	};
	int err = yk_lower_view(w, &c, &part, out);
	return err || yk_is_too_large(w, *out) ? err : yk_lower_on_device(w, *out, 0, out);
}

// One slice of each result.
static int compute_slice(struct yk_work *w, const struct yk_call *c, uint32_t nout,
			 const struct yk_value *outs, const struct cut *cut, int64_t at, yk_id *out)
{
	int64_t n = cut->rows - at < cut->step ? cut->rows - at : cut->step;
	struct yk_value *part = malloc(nout * sizeof *part);
	yk_id *in = malloc((c->nin + 1) * sizeof *in);
	int err = part && in ? 0 : yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (uint32_t i = 0; i < c->nin && !err; i++) {
		in[i] = c->in[i];
		int k = in[i] == YK_NIL ? WHOLE : operand_axis(w, c, outs, cut->axis, i);
		if (k != WHOLE)
			err = slice(w, in[i], k, cut->step, at, n, &in[i]);
	}
	for (uint32_t i = 0; i < nout && !err; i++) {
		part[i] = outs[i];
		part[i].dims[cut->axis] = n;
	}
	struct yk_call small = *c;
	small.in = in;
	bool large = false;
	for (uint32_t i = 0; i < nout && !err; i++)
		large |= yk_is_hosts(w->ctx, yk_bytes_of_value(&part[i]));
	for (uint32_t i = 0; i < c->nin && !err; i++)
		large |= in[i] != YK_NIL && yk_is_too_large(w, in[i]);
	// operands may still be views of a value that is too large; they are lowered later
	w->lowering.in_slice = true;
	if (!err)
		err = large ? yk_lower_large(w, &small, nout, part, out) :
			      yk_lower_node(w, &small, nout, part, 0, out);
	w->lowering.in_slice = false;
	free(part);
	free(in);
	return err;
}

static int join(struct yk_work *w, const struct cut *cut, const struct yk_value *whole,
		yk_id *slices, uint32_t n, yk_id *out)
{
	int device = yk_is_hosts(w->ctx, yk_bytes_of_value(whole));
	yk_id *in = yk_arena_alloc(&w->plan->memory, n * sizeof *in);
	if (!in || yk_grow(&w->lowering.joined, &w->lowering.joined_cap, w->lowering.njoined + 1,
			   sizeof *w->lowering.joined) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	memcpy(in, slices, n * sizeof *in);
	struct yk_call c = { .op = YK_CONCAT, .nin = n, .in = slices, .nattr = 1,
			     .attr = &(union yoke_attr){ .i = cut->axis } };
	int err = yk_lower_on(w, &c, 1, whole, device, yk_too_large, out);
	if (!err)
		w->lowering.joined[w->lowering.njoined++] = (struct yk_joined){
			.whole = *out, .axis = cut->axis, .step = cut->step, .slice = in
		};
	return err;
}

static int in_slices(struct yk_work *w, const struct yk_call *c, uint32_t nout,
		     const struct yk_value *outs, const struct cut *cut, yk_id *out)
{
	uint32_t n = (uint32_t)((cut->rows + cut->step - 1) / cut->step);
	yk_id *made = malloc((size_t)n * nout * sizeof *made), // slice by slice
	      *one = malloc(n * sizeof *one);
	int err = made && one ? 0 : yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (uint32_t i = 0; i < n && !err; i++)
		err = compute_slice(w, c, nout, outs, cut, i * cut->step, made + i * nout);
	for (uint32_t k = 0; k < nout && !err; k++) {
		for (uint32_t i = 0; i < n; i++)
			one[i] = made[i * nout + k];
		err = join(w, cut, &outs[k], one, n, &out[k]);
	}
	free(made);
	free(one);
	return err;
}

int yk_lower_large(struct yk_work *w, const struct yk_call *c, uint32_t nout,
		   const struct yk_value *outs, yk_id *out)
{
	struct yk_planner *pl = w->ctx->planner;
	const char *id = w->ctx->device->id;
	struct cut cut;
	char text[160];
	if (find_cut(w, c, nout, outs, &cut)) {
		yk_log(YOKE_LOG_DEBUG, "plan", "%s of %s: in slices of %lld "
			"rows", yk_op_def(c->op)->name,
			 yk_describe(outs, text), (long long)cut.step);
		return in_slices(w, c, nout, outs, &cut, out);
	}
	if (yk_strict())
		return yk_op_fail(
			&w->g, c->op, YOKE_EUNSUPPORTED,
			"%s, or what it is made of, is larger than the largest allocation of %s "
			"(%llu bytes), and YOKE_STRICT forbids the CPU",
			yk_describe(outs, text), id, (unsigned long long)yk_largest(w->ctx));
	if (!pl->attempt.large_logged)
		yk_warn("plan", "%s of %s, or its operand, is larger than the largest allocation "
			"of %s (%llu bytes): the CPU computes it (logged "
			"once)", yk_op_def(c->op)->name,
			yk_describe(outs, text), id, (unsigned long long)yk_largest(w->ctx));
	pl->attempt.large_logged = true;
	return yk_lower_on(w, c, nout, outs, 1, yk_too_large, out);
}

// ---- which are too large ----

bool yk_note_large(struct yk_work *w, yk_id v)
{
	struct yk_planner *pl = w->ctx->planner;
	uint32_t k = w->node[w->g.value[v].node].from;
	if (!yk_is_too_large(w, v) || pl->attempt.large[k])
		return false;
	pl->attempt.large[k] = true;
	w->replan = true;
	return true;
}
