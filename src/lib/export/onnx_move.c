// SPDX-License-Identifier: Apache-2.0
// Views, copies, indexed reads and updates, and constants as ONNX operators.
#include "config.h"

#include "export/onnx.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "graph/op.h"

static const struct yk_value *value_of(const struct yk_onnx *e, yk_id v)
{
	return &e->g.value[v];
}

static bool is_empty(const struct yk_onnx *e, yk_id v)
{
	return !yk_count(value_of(e, v));
}

const char *yk_onnx_reshape(struct yk_onnx *e, const char *x, int rank, const int64_t *dims)
{
	return yk_onnx_2(e, "Reshape", x, yk_onnx_ints(e, rank, dims));
}

const char *yk_onnx_full(struct yk_onnx *e, int dtype, int rank, const int64_t *dims,
			 const char *number)
{
	const char *y = yk_onnx_2(e, "Expand", number, yk_onnx_ints(e, rank, dims));
	return yk_onnx_cast(e, y, yk_onnx_wide_type(dtype), yk_onnx_type_of(dtype));
}

// The number of a dtype with these bits, as a constant of the type it is computed in.
static const char *number_of(struct yk_onnx *e, int dtype, uint64_t bits)
{
	const struct yk_num x = yk_num_of_bits(bits, dtype);
	const int wide = yk_onnx_wide_type(dtype);
	return yk_num_real(dtype) ? yk_onnx_number(e, wide, x.f) : yk_onnx_integer(e, wide, x.i);
}

// ---- views ----

static const char *permuted(struct yk_onnx *e, const char *x, int rank,
			    const union yoke_attr *order)
{
	int64_t perm[YOKE_MAX_RANK];
	for (int i = 0; i < rank; i++)
		perm[i] = order[i].i;
	const struct yk_onnx_attr attr = YK_ONNX_L("perm", rank, perm);
	return yk_onnx_node(e, "Transpose", 1, &x, 1, &attr);
}

// Elements start, start + step, .. of each axis, `size` of them.
static const char *sliced(struct yk_onnx *e, const char *x, int rank, const int64_t *dims,
			  const int64_t *start, const int64_t *step, const int64_t *size)
{
	int64_t from[YOKE_MAX_RANK], to[YOKE_MAX_RANK], axes[YOKE_MAX_RANK], by[YOKE_MAX_RANK],
		n = 0;
	for (int i = 0; i < rank; i++) {
		if (start[i] == 0 && size[i] == dims[i] && (step[i] == 1 || size[i] == 1))
			continue;
		const int64_t last = start[i] + (size[i] - 1) * step[i];
		from[n] = start[i];
		to[n] = step[i] > 0   ? last + 1 :
			last - 1 >= 0 ? last - 1 :
					INT64_MIN; // -1 would be the last element
		by[n] = step[i];
		axes[n++] = i;
	}
	if (!n)
		return x;
	const char *in[] = { x, yk_onnx_ints(e, n, from), yk_onnx_ints(e, n, to),
			     yk_onnx_ints(e, n, axes), yk_onnx_ints(e, n, by) };
	return yk_onnx_node(e, "Slice", 5, in, 0, NULL);
}

static const char *slice_of(struct yk_onnx *e, const struct yk_node *n)
{
	const yk_id x = yk_ins(&e->g, n)[0];
	const struct yk_value *v = value_of(e, x);
	const union yoke_attr *a = yk_attrs(&e->g, n);
	int64_t part[3][YOKE_MAX_RANK];
	for (int k = 0; k < 3; k++)
		for (int i = 0; i < v->rank; i++)
			part[k][i] = a[k * v->rank + i].i;
	return sliced(e, yk_onnx_name(e, x), v->rank, v->dims, part[0], part[1], part[2]);
}

static const char *broadcast_of(struct yk_onnx *e, const struct yk_node *n)
{
	const yk_id x = yk_ins(&e->g, n)[0];
	const struct yk_value *v = value_of(e, n->out);
	if (yk_same_shape(v, value_of(e, x)))
		return yk_onnx_name(e, x);
	const char *shape = yk_onnx_ints(e, v->rank, v->dims);
	if (v->dtype != yoke_bf16)
		return yk_onnx_2(e, "Expand", yk_onnx_name(e, x), shape);
	return yk_onnx_cast(e, yk_onnx_2(e, "Expand", yk_onnx_wide(e, x), shape), YK_ONNX_F32,
			    YK_ONNX_BF16);
}

// [..,n,..] -> [..,Q,..,size]
static const char *window_of(struct yk_onnx *e, const struct yk_node *n)
{
	const struct yk_value *y = value_of(e, n->out);
	const union yoke_attr *a = yk_attrs(&e->g, n);
	const int axis = (int)a[0].i, rank = y->rank;
	const int64_t q = y->dims[axis], size = a[1].i;
	int64_t *at = malloc((size_t)(q * size) * sizeof *at);
	union yoke_attr order[YOKE_MAX_RANK];
	if (!at) {
		e->err = yk_fail(YOKE_ENOMEM, "onnx_write: no memory");
		return NULL;
	}
	for (int64_t i = 0; i < q * size; i++)
		at[i] = i / size * a[2].i + i % size * a[3].i;
	const char *index =
		yk_onnx_reshape(e, yk_onnx_ints(e, q * size, at), 2, (int64_t[]){ q, size });
	free(at);
	const struct yk_onnx_attr along = YK_ONNX_I("axis", axis);
	const char *in[] = { yk_onnx_name(e, yk_ins(&e->g, n)[0]), index };
	for (int i = 0; i < rank; i++) // the window's axis lies after `axis` and moves to the end
		order[i].i = i <= axis ? i : i == rank - 1 ? axis + 1 : i + 1;
	return permuted(e, yk_onnx_node(e, "Gather", 2, in, 1, &along), rank, order);
}

// ---- copies ----

static const char *pad_of(struct yk_onnx *e, const struct yk_node *n)
{
	const yk_id x = yk_ins(&e->g, n)[0];
	const struct yk_value *v = value_of(e, n->out);
	const union yoke_attr *a = yk_attrs(&e->g, n);
	int64_t pads[2 * YOKE_MAX_RANK];
	const char *number = number_of(e, v->dtype, (uint64_t)a[2 * v->rank].i);
	const int type = yk_onnx_type_of(v->dtype), wide = yk_onnx_wide_type(v->dtype);
	if (is_empty(e, x))
		return yk_onnx_full(e, v->dtype, v->rank, v->dims, number);
	for (int i = 0; i < 2 * v->rank; i++)
		pads[i] = a[i].i;
	const char *in[] = { yk_onnx_wide(e, x), yk_onnx_ints(e, 2 * v->rank, pads), number };
	return v->rank ? yk_onnx_cast(e, yk_onnx_node(e, "Pad", 3, in, 0, NULL), wide, type) :
			 yk_onnx_name(e, x);
}

static const char *joined(struct yk_onnx *e, uint32_t n, const char *const *x, int64_t axis)
{
	const struct yk_onnx_attr attr = YK_ONNX_I("axis", axis);
	return n == 1 ? x[0] : yk_onnx_node(e, "Concat", n, x, 1, &attr);
}

static const char *concat_of(struct yk_onnx *e, const struct yk_node *n)
{
	const char **x = malloc((n->nin + 1) * sizeof *x);
	uint32_t count = 0;
	if (!x) {
		e->err = yk_fail(YOKE_ENOMEM, "onnx_write: no memory");
		return NULL;
	}
	for (uint32_t i = 0; i < n->nin; i++)
		if (!is_empty(e, yk_ins(&e->g, n)[i]))
			x[count++] = yk_onnx_name(e, yk_ins(&e->g, n)[i]);
	const char *y = joined(e, count, x, yk_attrs(&e->g, n)[0].i);
	free(x);
	return y;
}

// x of these dims with v at `start`, from `axis` on: what lies before v, v, and what lies after it.
static const char *updated(struct yk_onnx *e, const char *x, int64_t *dims, const char *v,
			   const struct yk_value *part, const union yoke_attr *start, int axis)
{
	static const int64_t ones[YOKE_MAX_RANK] = { 1, 1, 1, 1, 1, 1, 1, 1 };
	const int rank = part->rank;
	if (axis == rank)
		return v;
	const int64_t n = dims[axis], first = start[axis].i, count = part->dims[axis];
	const char *piece[3];
	uint32_t pieces = 0;
	int64_t from[YOKE_MAX_RANK] = { 0 }, size[YOKE_MAX_RANK];
	memcpy(size, dims, sizeof size);
	size[axis] = first;
	if (first)
		piece[pieces++] = sliced(e, x, rank, dims, from, ones, size);
	from[axis] = first;
	size[axis] = count;
	const char *inner = sliced(e, x, rank, dims, from, ones, size);
	dims[axis] = count;
	piece[pieces++] = updated(e, inner, dims, v, part, start, axis + 1);
	dims[axis] = n;
	from[axis] = first + count;
	size[axis] = n - first - count;
	if (size[axis])
		piece[pieces++] = sliced(e, x, rank, dims, from, ones, size);
	return joined(e, pieces, piece, axis);
}

static const char *slice_update_of(struct yk_onnx *e, const struct yk_node *n)
{
	const yk_id x = yk_ins(&e->g, n)[0], v = yk_ins(&e->g, n)[1];
	int64_t dims[YOKE_MAX_RANK];
	if (is_empty(e, v))
		return yk_onnx_name(e, x);
	memcpy(dims, value_of(e, x)->dims, sizeof dims);
	return updated(e, yk_onnx_name(e, x), dims, yk_onnx_name(e, v), value_of(e, v),
		       yk_attrs(&e->g, n), 0);
}

// ---- positions that the graph computes ----

// start, start + 1, .. as i64 [n]
static const char *counted(struct yk_onnx *e, const char *start, int64_t n)
{
	const char *in[] = { yk_onnx_number(e, YK_ONNX_I64, 0),
			     yk_onnx_number(e, YK_ONNX_I64, (double)n),
			     yk_onnx_number(e, YK_ONNX_I64, 1) };
	const char *y = yk_onnx_node(e, "Range", 3, in, 0, NULL);
	return start ? yk_onnx_2(e, "Add", y, start) : y;
}

static const char *taken(struct yk_onnx *e, const char *x, const char *at, int axis)
{
	const struct yk_onnx_attr attr = YK_ONNX_I("axis", axis);
	return yk_onnx_node(e, "Gather", 2, (const char *[]){ x, at }, 1, &attr);
}

static const char *slice_at_of(struct yk_onnx *e, const struct yk_node *n)
{
	static const int64_t ones[YOKE_MAX_RANK] = { 1, 1, 1, 1, 1, 1, 1, 1 }, zeros[YOKE_MAX_RANK];
	const yk_id *in = yk_ins(&e->g, n);
	const struct yk_value *x = value_of(e, in[0]), *y = value_of(e, n->out);
	int64_t size[YOKE_MAX_RANK];
	const char *v = yk_onnx_name(e, in[0]);
	for (int i = 0; i < x->rank; i++)
		size[i] = in[1 + i] == YK_NIL ? y->dims[i] : x->dims[i];
	v = sliced(e, v, x->rank, x->dims, zeros, ones, size);
	for (int i = 0; i < x->rank; i++)
		if (in[1 + i] != YK_NIL)
			v = taken(e, v, counted(e, yk_onnx_name(e, in[1 + i]), y->dims[i]), i);
	return v;
}

// x with v at starts, from `axis` on.
static const char *updated_at(struct yk_onnx *e, const char *x, const char *v,
			      const struct yk_value *part, const yk_id *start, int axis)
{
	int64_t column[YOKE_MAX_RANK], dims[YOKE_MAX_RANK];
	if (axis == part->rank)
		return v;
	const char *at = counted(e, start[axis] == YK_NIL ? NULL : yk_onnx_name(e, start[axis]),
				 part->dims[axis]);
	const char *inner = updated_at(e, taken(e, x, at, axis), v, part, start, axis + 1);
	// later axes of `inner` are those of x, whole
	const struct yk_value *whole = part + 1;
	for (int i = 0; i < part->rank; i++) {
		column[i] = i == axis ? part->dims[i] : 1;
		dims[i] = i <= axis ? part->dims[i] : whole->dims[i];
	}
	const struct yk_onnx_attr attr = YK_ONNX_I("axis", axis);
	at = yk_onnx_2(e, "Expand", yk_onnx_reshape(e, at, part->rank, column),
		       yk_onnx_ints(e, part->rank, dims));
	return yk_onnx_node(e, "ScatterElements", 3, (const char *[]){ x, at, inner }, 1, &attr);
}

static const char *slice_update_at_of(struct yk_onnx *e, const struct yk_node *n)
{
	const yk_id *in = yk_ins(&e->g, n), v = in[n->nin - 1];
	const struct yk_value parts[] = { *value_of(e, v), *value_of(e, in[0]) };
	if (is_empty(e, v))
		return yk_onnx_name(e, in[0]);
	return updated_at(e, yk_onnx_name(e, in[0]), yk_onnx_name(e, v), parts, in + 1, 0);
}

// ---- indices ----

static const char *along(struct yk_onnx *e, const struct yk_node *n, const char *op)
{
	const yk_id *in = yk_ins(&e->g, n);
	const struct yk_onnx_attr attr = YK_ONNX_I("axis", yk_attrs(&e->g, n)[0].i);
	return yk_onnx_node(e, op, 2,
			    (const char *[]){ yk_onnx_name(e, in[0]), yk_onnx_name(e, in[1]) }, 1,
			    &attr);
}

// Adds v at indices along an axis; x: what it is added to, in the type that is computed in.
static void add_along(struct yk_onnx *e, const struct yk_node *n, const char *index, const char *v,
		      int64_t axis)
{
	const yk_id x = yk_ins(&e->g, n)[0], given = yk_ins(&e->g, n)[2];
	const struct yk_value *y = value_of(e, n->out);
	struct yk_onnx_attr attr[] = { YK_ONNX_I("axis", axis), YK_ONNX_S("reduction", "add") };
	const char *zero = yk_onnx_number(e, yk_onnx_wide_type(y->dtype), 0);
	const char *base = x != YK_NIL ?
				   yk_onnx_wide(e, x) :
				   yk_onnx_2(e, "Expand", zero, yk_onnx_ints(e, y->rank, y->dims));
	const char *in[] = { base, index, v };
	yk_onnx_set_wide(e, n->out,
			 is_empty(e, given) ? base :
					      yk_onnx_node(e, "ScatterElements", 3, in, 2, attr));
}

static void scatter_add(struct yk_onnx *e, const struct yk_node *n)
{
	const yk_id *in = yk_ins(&e->g, n);
	const struct yk_value *i = value_of(e, in[1]), *y = value_of(e, n->out);
	int64_t column[YOKE_MAX_RANK] = { yk_count(i) }, dims[YOKE_MAX_RANK];
	if (is_empty(e, in[2])) {
		add_along(e, n, NULL, NULL, 0);
		return;
	}
	memcpy(dims, y->dims, sizeof dims);
	dims[0] = column[0];
	for (int k = 1; k < y->rank; k++)
		column[k] = 1;
	const char *index = yk_onnx_reshape(e, yk_onnx_name(e, in[1]), y->rank, column);
	if (y->rank > 1)
		index = yk_onnx_2(e, "Expand", index, yk_onnx_ints(e, y->rank, dims));
	add_along(e, n, index, yk_onnx_reshape(e, yk_onnx_wide(e, in[2]), y->rank, dims), 0);
}

// ---- constants ----

static const char *iota_of(struct yk_onnx *e, const struct yk_node *n)
{
	const struct yk_value *v = value_of(e, n->out);
	const char *y = counted(e, NULL, yk_count(v));
	return v->rank == 1 ? y : yk_onnx_reshape(e, y, v->rank, v->dims);
}

static const char *literal_of(struct yk_onnx *e, const struct yk_node *n)
{
	return number_of(e, value_of(e, n->out)->dtype, (uint64_t)yk_attrs(&e->g, n)[1].i);
}

bool yk_onnx_move(struct yk_onnx *e, const struct yk_node *n)
{
	const yk_id x = n->nin ? yk_ins(&e->g, n)[0] : YK_NIL;
	const struct yk_value *v = value_of(e, n->out);
	const char *y;
	switch (n->op) {
	case YK_CONST: e->value[n->out].wide = literal_of(e, n); return true;
	case YK_SCATTER_ADD: scatter_add(e, n); return true;
	case YK_SCATTER_ADD_ALONG:
		add_along(e, n, yk_onnx_name(e, yk_ins(&e->g, n)[1]),
			  yk_onnx_wide(e, yk_ins(&e->g, n)[2]), yk_attrs(&e->g, n)[0].i);
		return true;
	case YK_BARRIER:
		for (uint32_t i = 0; i < n->nout; i++)
			yk_onnx_set(e, n->out + i, yk_onnx_name(e, yk_ins(&e->g, n)[i]));
		return true;
	case YK_BITCAST: // between i8 and u8, whose casts keep the bits
		y = yk_onnx_cast(e, yk_onnx_name(e, x), yk_onnx_type_of(value_of(e, x)->dtype),
				 yk_onnx_type_of(v->dtype));
		break;
	case YK_IOTA: y = iota_of(e, n); break;
	case YK_RESHAPE:
		y = yk_same_shape(v, value_of(e, x)) ?
			    yk_onnx_name(e, x) :
			    yk_onnx_reshape(e, yk_onnx_name(e, x), v->rank, v->dims);
		break;
	case YK_PERMUTE: y = permuted(e, yk_onnx_name(e, x), v->rank, yk_attrs(&e->g, n)); break;
	case YK_BROADCAST: y = broadcast_of(e, n); break;
	case YK_SLICE: y = slice_of(e, n); break;
	case YK_WINDOW: y = window_of(e, n); break;
	case YK_STOP_GRAD:
	case YK_CONTIGUOUS:
	case YK_CHECK_FINITE: y = yk_onnx_name(e, x); break;
	case YK_PAD: y = pad_of(e, n); break;
	case YK_CONCAT: y = concat_of(e, n); break;
	case YK_SLICE_UPDATE: y = slice_update_of(e, n); break;
	case YK_SLICE_AT: y = slice_at_of(e, n); break;
	case YK_SLICE_UPDATE_AT: y = slice_update_at_of(e, n); break;
	case YK_GATHER: y = along(e, n, "Gather"); break;
	case YK_TAKE_ALONG: y = along(e, n, "GatherElements"); break;
	default: return false;
	}
	yk_onnx_set(e, n->out, y);
	return true;
}
