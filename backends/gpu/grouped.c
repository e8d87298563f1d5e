// SPDX-License-Identifier: Apache-2.0
// GROUPED and GROUPED_BACKWARD: cl/grouped.cl; f32, f64, f16 and bf16, any layout. One launch,
// whose size does not depend on the group offsets.
#include "config.h"

#include "rows.h"
#include "tile.h"

// Matches struct grouped_args of cl/grouped.cl.
struct grouped_args {
	int64_t rows, columns, depth, groups;
	int64_t a_m, a_k, b_k, b_n, b_e, y_m, y_n, y_e, first;
};

static bool is_backward(const struct yoke_op *op)
{
	return op->code == YOKE_OP_GROUPED_BACKWARD;
}

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const bool back = is_backward(op);

	if (op->nin != 3 || op->nout != 1 || op->nattr < !back)
		return 0;
	const struct yoke_view *x = &op->in[0], *w = &op->in[1], *first = &op->in[2],
			       *y = &op->out[0];
	for (int i = 0; i < 4; i++)
		if ((const struct yoke_view *[]){ x, w, first, y }[i]->kind != YOKE_VIEW_BUFFER)
			return 0;
	return x->rank == 2 && w->rank == (back ? 2 : 3) && y->rank == (back ? 3 : 2) &&
	       first->rank == 1 && first->dtype == yoke_i64 && first->dims[0] >= 1 &&
	       w->dtype == x->dtype && y->dtype == x->dtype && yk_gpu_real(x->dtype) &&
	       (x->dtype != yoke_f64 || yk_gpu_f64(d)) &&
	       d->info.max_args >= sizeof(struct grouped_args) + 10 * 8 &&
	       yk_gpu_tiling_of(d, x->dtype, 0);
}

static struct grouped_args args_of(const struct yoke_op *op)
{
	const struct yoke_view *x = &op->in[0], *w = &op->in[1], *y = &op->out[0];
	struct grouped_args s = { .rows = x->dims[0],
				  .groups = op->in[2].dims[0] - 1,
				  .first = op->in[2].strides[0] };

	if (is_backward(op)) {
		s.depth = y->dims[1];
		s.columns = y->dims[2];
		s.a_m = x->strides[1];
		s.a_k = x->strides[0];
		s.b_k = w->strides[0];
		s.b_n = w->strides[1];
		s.y_e = y->strides[0];
		s.y_m = y->strides[1];
		s.y_n = y->strides[2];
	} else {
		const int turned = op->attr[0].i != 0;
		s.depth = x->dims[1];
		s.columns = y->dims[1];
		s.a_m = x->strides[0];
		s.a_k = x->strides[1];
		s.b_e = w->strides[0];
		s.b_k = w->strides[1 + turned];
		s.b_n = w->strides[2 - turned];
		s.y_m = y->strides[0];
		s.y_n = y->strides[1];
	}
	return s;
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const bool back = is_backward(op);
	const int dtype = op->in[0].dtype;
	const struct yk_gpu_tiling *t = yk_gpu_tiling_of(r->device, dtype, 0);
	const struct grouped_args s = args_of(op);
	const int64_t block = t->items_m * t->m;
	// GROUPED: full blocks, plus one partial block per group and one for rows outside all
	// groups
	const int64_t blocks =
		back ? yk_gpu_ceil_div(s.depth, block) : s.rows / block + s.groups + 2;
	const size_t group[2] = { (size_t)t->items_n, (size_t)t->items_m };
	const size_t items[2] = { (size_t)yk_gpu_ceil_div(s.columns, t->items_n * t->n) * group[0],
				  (size_t)(blocks * (back ? s.groups : 1)) * group[1] };
	struct yk_gpu_build b = { .file = "grouped.cl", .name = "grouped" };
	struct yk_gpu_entry *kernel;

	(void)impl;
	if (!yk_gpu_elements(&op->out[0]))
		return 0;
	yk_gpu_tiling_define(&b, t);
	yk_gpu_define(&b, "DTYPE", dtype);
	yk_gpu_flag(&b, "BACK", back);
	yk_gpu_flag(&b, "USE_F64", dtype == yoke_f64);
	int err = yk_gpu_kernel_file(r->device, &b, &kernel);
	if (err)
		return err;
	yk_gpu_reports(r, YK_GPU_GROUPS, back ? "grouped_matmul_backward" : "grouped_matmul",
		       s.rows);
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view(r, &op->out[0]);
	for (int i = 0; i < 3; i++)
		yk_gpu_arg_view(r, &op->in[i]);
	yk_gpu_arg_struct(r, &s, sizeof s);
	yk_gpu_arg_slot(r);
	return yk_gpu_launch(r, 2, items, group, "grouped");
}

static const char *const names[] = { "tiled" };
YK_GPU_OP(grouped, GROUPED,
	  GROUPED_BACKWARD) = { .names = names, .nimpl = 1, .can = can, .record = record };
