// SPDX-License-Identifier: Apache-2.0
// Reductions, products, sorting and the layers that ONNX has operators for.
#include "config.h"

#include "export/onnx.h"

#include <math.h>
#include <string.h>

#include "graph/op.h"
#include "ops/conv.h"

static const struct yk_value *value_of(const struct yk_onnx *e, yk_id v)
{
	return &e->g.value[v];
}

static const char *as_type(struct yk_onnx *e, yk_id x, int type)
{
	return yk_onnx_cast(e, yk_onnx_wide(e, x), yk_onnx_wide_type(value_of(e, x)->dtype), type);
}

// ---- reductions ----

static const char *reduced(struct yk_onnx *e, const char *op, const char *x, int rank,
			   unsigned axes, int64_t keep)
{
	int64_t list[YOKE_MAX_RANK], n = 0;
	for (int i = 0; i < rank; i++)
		if (axes >> i & 1)
			list[n++] = i;
	const struct yk_onnx_attr attr = YK_ONNX_I("keepdims", keep);
	return n ? yk_onnx_node(e, op, 2, (const char *[]){ x, yk_onnx_ints(e, n, list) }, 1,
				&attr) :
		   x;
}

static const char *part(struct yk_onnx *e, const char *x, int axis, int64_t from, int64_t to)
{
	const int64_t along = axis;
	const char *in[] = { x, yk_onnx_ints(e, 1, &from), yk_onnx_ints(e, 1, &to),
			     yk_onnx_ints(e, 1, &along) };
	return yk_onnx_node(e, "Slice", 4, in, 0, NULL);
}

// Sums and products of integers wrap; onnxruntime's reductions compute them in floating point.  So
// halves are added, again and again.
static const char *halved(struct yk_onnx *e, const char *op, const char *x,
			  const struct yk_value *v, unsigned axes)
{
	int64_t perm[YOKE_MAX_RANK], dims[YOKE_MAX_RANK], n = 1;
	int rank = 0, kept = 0;
	for (int last = 0; last < 2; last++)
		for (int i = 0; i < v->rank; i++)
			if ((axes >> i & 1) == (unsigned)last) {
				perm[rank++] = i;
				if (last)
					n *= v->dims[i];
				else
					dims[kept++] = v->dims[i];
			}
	const struct yk_onnx_attr order = YK_ONNX_L("perm", rank, perm);
	dims[kept] = n;
	x = yk_onnx_reshape(e, yk_onnx_node(e, "Transpose", 1, &x, 1, &order), kept + 1, dims);
	const struct yk_onnx_attr along = YK_ONNX_I("axis", kept);
	while (n > 1) {
		const int64_t half = n / 2;
		const char *y = yk_onnx_2(e, op, part(e, x, kept, 0, half),
					  part(e, x, kept, half, 2 * half));
		const char *both[] = { y, n % 2 ? part(e, x, kept, n - 1, n) : NULL };
		x = n % 2 ? yk_onnx_node(e, "Concat", 2, both, 1, &along) : y;
		n = half + n % 2;
	}
	return x;
}

static void reduce(struct yk_onnx *e, const struct yk_node *n, const char *op, double none)
{
	const yk_id x = yk_ins(&e->g, n)[0];
	const struct yk_value *v = value_of(e, x), *y = value_of(e, n->out);
	const union yoke_attr *a = yk_attrs(&e->g, n);
	const unsigned axes = (unsigned)a[0].i & ((1u << v->rank) - 1);
	if (yk_count(v) && axes && !yk_is_float(v->dtype))
		yk_onnx_set_wide(e, n->out,
				 yk_onnx_reshape(e,
						 halved(e, none == 0 ? "Add" : "Mul",
							yk_onnx_wide(e, x), v, axes),
						 y->rank, y->dims));
	else if (yk_count(v))
		yk_onnx_set_wide(
			e, n->out,
			reduced(e, op, yk_onnx_wide(e, x), v->rank, (unsigned)a[0].i, a[1].i));
	else
		yk_onnx_set(e, n->out,
			    yk_onnx_full(e, y->dtype, y->rank, y->dims,
					 yk_onnx_number(e, yk_onnx_wide_type(y->dtype), none)));
}

// onnxruntime's extremes may lose NaN.
static void extreme(struct yk_onnx *e, const struct yk_node *n, const char *op)
{
	const yk_id x = yk_ins(&e->g, n)[0];
	const struct yk_value *v = value_of(e, x);
	const union yoke_attr *a = yk_attrs(&e->g, n);
	const char *y = reduced(e, op, yk_onnx_wide(e, x), v->rank, (unsigned)a[0].i, a[1].i);
	if (yk_is_float(v->dtype)) {
		const char *any = reduced(e, "ReduceMax", yk_onnx_1(e, "IsNaN", yk_onnx_wide(e, x)),
					  v->rank, (unsigned)a[0].i, a[1].i);
		y = yk_onnx_3(e, "Where", any, yk_onnx_number(e, yk_onnx_wide_type(v->dtype), NAN),
			      y);
	}
	yk_onnx_set_wide(e, n->out, y);
}

// The first of the extremes, by keys: 2 for NaN, 1 for the extreme, else 0.
static void position(struct yk_onnx *e, const struct yk_node *n, const char *op)
{
	const yk_id in = yk_ins(&e->g, n)[0];
	const struct yk_value *v = value_of(e, in);
	const unsigned axes = (unsigned)yk_attrs(&e->g, n)[0].i;
	const char *x = yk_onnx_wide(e, in);
	const char *key = yk_onnx_2(e, "Equal", x, reduced(e, op, x, v->rank, axes, 1));
	key = yk_onnx_cast(e, key, YK_ONNX_BOOL, YK_ONNX_I32);
	if (yk_is_float(v->dtype))
		key = yk_onnx_3(e, "Where", yk_onnx_1(e, "IsNaN", x),
				yk_onnx_number(e, YK_ONNX_I32, 2), key);
	const struct yk_onnx_attr attr[] = { YK_ONNX_I("axis", __builtin_ctz(axes)),
					     YK_ONNX_I("keepdims", yk_attrs(&e->g, n)[1].i) };
	yk_onnx_set(e, n->out, yk_onnx_node(e, "ArgMax", 1, &key, 2, attr));
}

// ---- products ----

static const char *turned(struct yk_onnx *e, const char *x, int rank)
{
	int64_t perm[YOKE_MAX_RANK];
	for (int i = 0; i < rank; i++)
		perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
	const struct yk_onnx_attr attr = YK_ONNX_L("perm", rank, perm);
	return yk_onnx_node(e, "Transpose", 1, &x, 1, &attr);
}

static void matmul(struct yk_onnx *e, const struct yk_node *n)
{
	const yk_id a = yk_ins(&e->g, n)[0], b = yk_ins(&e->g, n)[1];
	const struct yk_value *va = value_of(e, a), *vb = value_of(e, b), *y = value_of(e, n->out);
	const int64_t flags = yk_attrs(&e->g, n)[0].i;
	const bool ta = flags & YOKE_TA, tb = flags & YOKE_TB;
	const int type = yk_onnx_wide_type(va->dtype), to = yk_onnx_type_of(y->dtype);
	const bool flat = va->rank == 2 && vb->rank == 2 && yk_is_float(va->dtype) && (ta || tb);
	const struct yk_onnx_attr attr[] = { YK_ONNX_I("transA", ta), YK_ONNX_I("transB", tb) };
	const char *in[] = { yk_onnx_wide(e, a), yk_onnx_wide(e, b) }, *v;
	if (!yk_count(va) || !yk_count(vb)) {
		yk_onnx_set(e, n->out,
			    yk_onnx_full(e, y->dtype, y->rank, y->dims,
					 yk_onnx_number(e, yk_onnx_wide_type(y->dtype), 0)));
		return;
	}
	if (flat) {
		v = yk_onnx_node(e, "Gemm", 2, in, 2, attr);
	} else {
		in[0] = ta ? turned(e, in[0], va->rank) : in[0];
		in[1] = tb ? turned(e, in[1], vb->rank) : in[1];
		v = yk_onnx_node(e, "MatMul", 2, in, 0, NULL);
	}
	if (y->dtype == va->dtype)
		yk_onnx_set_wide(e, n->out, v);
	else
		yk_onnx_set(e, n->out, yk_onnx_cast(e, v, type, to));
}

// ---- sorting ----

// The positions of the first k in order along the last axis; equal ones stay in order.
static const char *order(struct yk_onnx *e, const char *x, int64_t k, bool descending)
{
	const struct yk_onnx_attr attr[] = { YK_ONNX_I("axis", -1),
					     YK_ONNX_I("largest", descending),
					     YK_ONNX_I("sorted", 1) };
	const char *out[2] = { NULL, NULL };
	yk_onnx_node_many(e, "TopK", 2, (const char *[]){ x, yk_onnx_ints(e, 1, &k) }, 3, attr, 2,
			  out);
	return out[1];
}

static const char *picked(struct yk_onnx *e, const char *x, const char *at)
{
	const struct yk_onnx_attr attr = YK_ONNX_I("axis", -1);
	return yk_onnx_node(e, "GatherElements", 2, (const char *[]){ x, at }, 1, &attr);
}

// NaN come last: the order by values, then by whether they are NaN.
static void sort(struct yk_onnx *e, const struct yk_node *n)
{
	const yk_id in = yk_ins(&e->g, n)[0];
	const struct yk_value *v = value_of(e, in);
	const union yoke_attr *a = yk_attrs(&e->g, n);
	const int64_t all = v->dims[v->rank - 1], k = a[0].i;
	const bool real = yk_is_float(v->dtype);
	const char *x = as_type(e, in,
				v->dtype == yoke_bool ? YK_ONNX_I32 : yk_onnx_wide_type(v->dtype)),
		   *at;
	if (real) {
		const char *none = yk_onnx_1(e, "IsNaN", x),
			   *zero = yk_onnx_number(e, yk_onnx_wide_type(v->dtype), 0);
		const char *first =
			order(e, yk_onnx_3(e, "Where", none, zero, x), all, a[1].i != 0);
		none = picked(e, yk_onnx_cast(e, none, YK_ONNX_BOOL, YK_ONNX_I32), first);
		at = picked(e, first, order(e, none, k, false));
	} else {
		at = order(e, x, k, a[1].i != 0);
	}
	if (e->value[n->out].live)
		yk_onnx_set(e, n->out, picked(e, yk_onnx_name(e, in), at));
	yk_onnx_set(e, n->out + 1, at);
}

// ---- layers ----

static void softmax(struct yk_onnx *e, const struct yk_node *n)
{
	const char *x = yk_onnx_wide(e, yk_ins(&e->g, n)[0]);
	const struct yk_onnx_attr attr = YK_ONNX_I("axis", -1);
	yk_onnx_set_wide(e, n->out,
			 yk_onnx_node(e, yk_attrs(&e->g, n)[0].i ? "LogSoftmax" : "Softmax", 1, &x,
				      1, &attr));
}

// y, mean, rstd; of f64 it is decomposed
static void layer_norm(struct yk_onnx *e, const struct yk_node *n)
{
	const yk_id *in = yk_ins(&e->g, n);
	const struct yk_value *v = value_of(e, in[0]);
	const int64_t *width = &v->dims[v->rank - 1];
	const char *one = yk_onnx_number(e, YK_ONNX_F32, 1),
		   *zero = yk_onnx_number(e, YK_ONNX_F32, 0);
	const struct yk_onnx_attr attr[] = { YK_ONNX_I("axis", -1),
					     YK_ONNX_F("epsilon", (float)yk_attrs(&e->g, n)[0].f) };
	const char *x[3] = { yk_onnx_wide(e, in[0]), NULL, NULL }, *out[3] = { NULL, "", "" };
	uint32_t results = 1;
	for (uint32_t i = 1; i < 3; i++)
		if (e->value[n->out + i].live) {
			out[i] = NULL;
			results = i + 1;
		}
	x[1] = in[1] == YK_NIL ? yk_onnx_full(e, yoke_f32, 1, width, one) :
				 as_type(e, in[1], YK_ONNX_F32);
	if (in[2] != YK_NIL)
		x[2] = as_type(e, in[2], YK_ONNX_F32);
	else if (results > 1) // without a bias and with statistics, onnxruntime 1.17 crashes
		x[2] = yk_onnx_full(e, yoke_f32, 1, width, zero);
	yk_onnx_node_many(e, "LayerNormalization", x[2] ? 3 : 2, x, 2, attr, results, out);
	yk_onnx_set_wide(e, n->out, out[0]);
	for (uint32_t i = 1; i < 3; i++) {
		const struct yk_value *y = value_of(e, n->out + i);
		if (e->value[n->out + i].live)
			yk_onnx_set(e, n->out + i, yk_onnx_reshape(e, out[i], y->rank, y->dims));
	}
}

// Attributes of operators with windows, whose packed axes begin at a[first].
struct windows {
	struct yk_onnx_attr attr[6];
	int64_t stride[YK_CONV_AXES], dilation[YK_CONV_AXES], pads[2 * YK_CONV_AXES],
		kernel[YK_CONV_AXES], more[YK_CONV_AXES];
};

static void windows_of(struct windows *w, int axes, const union yoke_attr *packed,
		       const int64_t *kernel)
{
	for (int i = 0; i < axes; i++) {
		const struct yk_conv_axis a = yk_conv_axis(packed[i].i);
		w->stride[i] = a.stride;
		w->dilation[i] = a.dilation;
		w->pads[i] = a.lo;
		w->pads[axes + i] = a.hi;
		w->kernel[i] = kernel[i];
		w->more[i] = 0;
	}
	const struct yk_onnx_attr attr[] = { YK_ONNX_L("strides", axes, w->stride),
					     YK_ONNX_L("dilations", axes, w->dilation),
					     YK_ONNX_L("pads", 2 * axes, w->pads),
					     YK_ONNX_L("kernel_shape", axes, w->kernel) };
	memcpy(w->attr, attr, sizeof attr);
}

static void conv(struct yk_onnx *e, const struct yk_node *n)
{
	const yk_id *in = yk_ins(&e->g, n);
	const struct yk_value *w = value_of(e, in[1]);
	const union yoke_attr *a = yk_attrs(&e->g, n);
	struct windows is;
	windows_of(&is, w->rank - 2, a + 1, w->dims + 2);
	is.attr[4] = (struct yk_onnx_attr)YK_ONNX_I("group", a[0].i);
	const char *x[] = { yk_onnx_wide(e, in[0]), yk_onnx_wide(e, in[1]) };
	yk_onnx_set_wide(e, n->out, yk_onnx_node(e, "Conv", 2, x, 5, is.attr));
}

// The windows' sums do not reach what hi left out of the result's end, so it is implied by the
// sizes.
static void conv_transposed(struct yk_onnx *e, const struct yk_node *n)
{
	const yk_id *in = yk_ins(&e->g, n);
	const struct yk_value *g = value_of(e, in[0]), *w = value_of(e, in[1]),
			      *y = value_of(e, n->out);
	const union yoke_attr *a = yk_attrs(&e->g, n);
	const int axes = w->rank - 2;
	struct windows is;
	windows_of(&is, axes, a + 1, w->dims + 2);
	for (int i = 0; i < axes; i++) {
		const int64_t all = (g->dims[2 + i] - 1) * is.stride[i] +
				    (w->dims[2 + i] - 1) * is.dilation[i] + 1 - is.pads[i];
		is.pads[axes + i] = all > y->dims[2 + i] ? all - y->dims[2 + i] : 0;
		is.more[i] = y->dims[2 + i] > all ? y->dims[2 + i] - all : 0;
	}
	is.attr[4] = (struct yk_onnx_attr)YK_ONNX_I("group", a[0].i);
	is.attr[5] = (struct yk_onnx_attr)YK_ONNX_L("output_padding", axes, is.more);
	const char *x[] = { yk_onnx_wide(e, in[0]), yk_onnx_wide(e, in[1]) };
	yk_onnx_set_wide(e, n->out, yk_onnx_node(e, "ConvTranspose", 2, x, 6, is.attr));
}

static void pool_max(struct yk_onnx *e, const struct yk_node *n)
{
	const yk_id in = yk_ins(&e->g, n)[0];
	const union yoke_attr *a = yk_attrs(&e->g, n);
	const int axes = value_of(e, in)->rank - 2;
	const char *x = yk_onnx_wide(e, in);
	int64_t kernel[YK_CONV_AXES];
	struct windows is;
	for (int i = 0; i < axes; i++)
		kernel[i] = a[i].i;
	windows_of(&is, axes, a + axes, kernel);
	// onnxruntime's maximum loses NaN: windows with one are found by another maximum
	const int type = yk_onnx_wide_type(value_of(e, in)->dtype);
	const char *none = yk_onnx_cast(e, yk_onnx_1(e, "IsNaN", x), YK_ONNX_BOOL, type);
	none = yk_onnx_2(e, "Greater", yk_onnx_node(e, "MaxPool", 1, &none, 4, is.attr),
			 yk_onnx_number(e, type, 0));
	const char *y = yk_onnx_node(e, "MaxPool", 1, &x, 4, is.attr);
	yk_onnx_set_wide(e, n->out, yk_onnx_3(e, "Where", none, yk_onnx_number(e, type, NAN), y));
}

bool yk_onnx_sum(struct yk_onnx *e, const struct yk_node *n)
{
	switch (n->op) {
	case YK_SUM: reduce(e, n, "ReduceSum", 0); return true;
	case YK_PROD: reduce(e, n, "ReduceProd", 1); return true;
	case YK_REDUCE_MAX: extreme(e, n, "ReduceMax"); return true;
	case YK_REDUCE_MIN: extreme(e, n, "ReduceMin"); return true;
	case YK_ARGMAX: position(e, n, "ReduceMax"); return true;
	case YK_ARGMIN: position(e, n, "ReduceMin"); return true;
	case YK_MATMUL: matmul(e, n); return true;
	case YK_SORT: sort(e, n); return true;
	case YK_SOFTMAX: softmax(e, n); return true;
	case YK_LAYER_NORM: layer_norm(e, n); return true;
	case YK_CONV: conv(e, n); return true;
	case YK_CONV_X: conv_transposed(e, n); return true;
	case YK_POOL_MAX: pool_max(e, n); return true;
	}
	return false;
}
