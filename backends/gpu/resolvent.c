// SPDX-License-Identifier: Apache-2.0
// RESOLVENT and RESOLVENT_BACKWARD: cl/resolvent.cl and cl/resolvent_backward.cl; f32, f16 and
// bf16, and f64 where the device supports it. One launch if a group can hold a row; otherwise one
// launch computes the links of the row's parts, and another uses them.
#include "config.h"

#include <string.h>

#include "rows.h"

enum { TIER_F64 = 1, TIER_F32, TIER_MIXED, TIER_F16, TIER_BF16 }; // numbers as in the ABI
enum { AXES = 4, RECORD = 32, LINK = 8 }; // from cl/resolvent_chain.cl, resolvent_link.cl
enum { WHOLE, LINKS, FROM_LINKS, LAST }; // the phase of a launch: macro WHICH
enum { MARKED = 1, ODD_ROWS }; // handling of rows where f32 is insufficient: macro ODD
// GPU_LOCAL: bytes of local memory that every GPU offers per group
enum { GPU_EACH = 8, GPU_LOCAL = 48 * 1024 };
// CPU_LIKE_VECTOR in bytes
enum { CPU_LIKE_EACH = 512, CPU_LIKE_EACH_BACKWARD = 256, CPU_LIKE_MIN = 64, CPU_LIKE_VECTOR = 64 };

struct chain_tensor {
	int64_t strides[AXES], along, pair;
};

struct chain_args {
	int64_t rank, dims[AXES];
	int64_t n, rows, len, chunks, sides, parts;
	int64_t sweeps;
	float tolerance, blend, blend_rest, adaptive;
	int32_t has_b, has_c, has_bound, marks;
	int64_t marked;
	struct chain_tensor a, b, c, z, g, out[4];
};

// Division of work of one program.
struct cut {
	int64_t items, width, each;
	bool wide; // compute in f64
};

static bool is_backward(const struct yoke_op *op)
{
	return op->code == YOKE_OP_RESOLVENT_BACKWARD;
}

static bool halves(const struct yoke_op *op)
{
	return !is_backward(op) && op->attr[1].i >= TIER_F16;
}

// ---- supported ops ----

// Collects the axes before the row axis and each tensor's strides along them; merges neighbours
// where all tensors allow it.
static bool outer(const struct yoke_op *op, struct chain_args *s)
{
	const struct yoke_view *a = &op->in[0], *all[] = { a,
							   &op->in[1],
							   &op->in[2],
							   &op->in[3],
							   is_backward(op) ? &op->in[4] : a,
							   &op->out[0],
							   &op->out[1],
							   is_backward(op) ? &op->out[2] : a,
							   is_backward(op) ? &op->out[3] : a };
	struct chain_tensor *to[] = { &s->a,      &s->b,      &s->c,      &s->z,     &s->g,
				      &s->out[0], &s->out[1], &s->out[2], &s->out[3] };
	enum { ALL = sizeof all / sizeof *all };

	s->rows = 1;
	for (int d = 0; d < a->rank - 1; d++) {
		bool merge = s->rank > 0;
		if (a->dims[d] == 1)
			continue;
		for (int k = 0; k < ALL; k++)
			merge = merge &&
				(!yk_gpu_present(all[k]) ||
				 to[k]->strides[s->rank - 1] == all[k]->strides[d] * a->dims[d]);
		if (!merge && s->rank == AXES)
			return false;
		s->rank += !merge;
		s->dims[s->rank - 1] = merge ? s->dims[s->rank - 1] * a->dims[d] : a->dims[d];
		for (int k = 0; k < ALL; k++)
			to[k]->strides[s->rank - 1] =
				yk_gpu_present(all[k]) ? all[k]->strides[d] : 0;
		s->rows *= a->dims[d];
	}
	return true;
}

static void tensor(struct chain_tensor *to, const struct yoke_view *v, int last_axes)
{
	if (!yk_gpu_present(v) || last_axes < 1)
		return;
	to->along = v->strides[v->rank - last_axes];
	to->pair = last_axes > 1 ? v->strides[v->rank - 1] : 1;
}

// False: more axes than AXES remain after merging.
static bool args_of(const struct yoke_op *op, struct chain_args *s)
{
	const bool back = is_backward(op);

	memset(s, 0, sizeof *s);
	s->n = op->in[0].dims[op->in[0].rank - 1];
	s->sweeps = op->attr[2].i;
	s->tolerance = (float)op->attr[3].f;
	s->has_b = yk_gpu_present(&op->in[1]);
	s->has_c = yk_gpu_present(&op->in[2]);
	s->blend = (float)op->attr[5].f;
	s->blend_rest = (float)(op->attr[5].f - (double)s->blend);
	s->adaptive = (float)op->attr[6].f;
	for (int k = 0; k < 4; k++)
		tensor((struct chain_tensor *[]){ &s->a, &s->b, &s->c, &s->z }[k], &op->in[k], 1);
	if (back)
		tensor(&s->g, &op->in[4], 2);
	for (uint32_t k = 0; k < op->nout; k++)
		tensor(&s->out[k], &op->out[k], back ? 1 : k ? 0 : 2);
	if (!back)
		s->has_bound = yk_gpu_present(&op->out[1]);
	return outer(op, s);
}

static bool is_real(const struct yoke_view *v, int dtype, bool needed)
{
	return yk_gpu_present(v) ? v->kind == YOKE_VIEW_BUFFER && v->dtype == dtype : !needed;
}

// Bytes of local memory per group.
static uint64_t local_of(const struct yoke_op *op, const struct cut *c)
{
	const int64_t pitch = c->items > 1 ? c->items + 1 : 1, lanes = c->items * c->width;
	const int64_t planes = is_backward(op) ? 8 : halves(op) && !op->attr[0].i ? 6 : 4;
	const int64_t beside = is_backward(op) ? 26 :
			       halves(op)      ? 8 :
						 6,
		      segs = c->items > 1 ? c->items / 4 : 1;
	const int64_t reals =
		(planes * c->each + 1) * pitch * c->width + beside * lanes + 12 * segs;

	return (uint64_t)reals * (c->wide ? 8 : 4) + 64;
}

static bool cut_of(const struct yk_gpu_device *d, const struct yoke_op *op, bool wide,
		   struct cut *c)
{
	const int64_t n = op->in[0].dims[op->in[0].rank - 1];

	*c = (struct cut){ 1, 1, GPU_EACH, wide };
	if (d->cpu_like) {
		c->width = CPU_LIKE_VECTOR / (wide ? 8 : 4);
		c->each = is_backward(op) ? CPU_LIKE_EACH_BACKWARD : CPU_LIKE_EACH;
		while (c->each > GPU_EACH && local_of(op, c) > d->local_bytes)
			c->each /= 2;
		return local_of(op, c) <= d->local_bytes;
	}
	const uint64_t max = d->local_bytes < GPU_LOCAL ? d->local_bytes : GPU_LOCAL;
	for (c->items = 64; c->items * c->each < n && c->items < 256;)
		c->items *= 2;
	while (c->items >= 16 && ((size_t)c->items > d->max_group ||
				  (size_t)c->items > d->max_items[0] || local_of(op, c) > max))
		c->items /= 2;
	if (c->items < 16)
		c->items = 1;
	return local_of(op, c) <= max;
}

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const bool back = is_backward(op);
	const int dtype = op->in[0].dtype;
	struct chain_args s;
	struct cut c;

	if (op->nin != (back ? 5 : 4) || op->nout != (back ? 4 : 2) || op->nattr < 7 ||
	    !yk_gpu_real(dtype) || op->in[0].rank < 1 || op->in[0].dims[op->in[0].rank - 1] < 1 ||
	    op->attr[1].i < TIER_F64 || op->attr[1].i > TIER_BF16 || op->attr[4].i < 0 ||
	    op->attr[4].i > 4 || d->info.max_args < sizeof s + 24 * 8)
		return 0;
	for (uint32_t k = 0; k < op->nin; k++)
		if (!is_real(&op->in[k], dtype, k != 1 && k != 2))
			return 0;
	for (uint32_t k = 0; k < op->nout; k++)
		if (!is_real(&op->out[k], !back && k == 1 && dtype != yoke_f64 ? yoke_f32 : dtype,
			     !back && !k))
			return 0;
	const bool wide =
		dtype == yoke_f64 || op->attr[1].i == TIER_F64 || op->attr[1].i == TIER_MIXED;
	// tested here, because record runs with the device's lock held
	const bool f64 = yk_gpu_f64(d);
	return (!wide || f64) && args_of(op, &s) && cut_of(d, op, false, &c) &&
	       (!wide || cut_of(d, op, true, &c));
}

// ---- launches ----

// Sets the number of chunks per row and rows per group, by shape and kind of device.
static void chunks_of(const struct yk_gpu_device *d, const struct cut *c, struct chain_args *s)
{
	const int64_t lanes = c->items * c->width;

	s->len = c->each;
	s->chunks = yk_gpu_ceil_div(s->n, s->len);
	if (d->cpu_like && s->chunks <= lanes) { // split rows so that otherwise idle lanes work
		const int64_t free = s->rows < lanes ? lanes / s->rows : 1,
			      max = yk_gpu_ceil_div(s->n, CPU_LIKE_MIN);
		s->chunks = s->chunks > free ? s->chunks : yk_gpu_min(free, max);
		s->len = yk_gpu_ceil_div(s->n, s->chunks);
		s->chunks = yk_gpu_ceil_div(s->n, s->len);
	}
	s->parts = 1;
	if (s->chunks > lanes) {
		s->parts = yk_gpu_ceil_div(s->chunks, lanes);
		s->chunks = lanes;
	}
	s->sides = lanes / s->chunks;
}

static int kernel_of(struct yk_gpu_device *d, const struct yoke_op *op, const struct cut *c,
		     int serve, int odd, int which, struct yk_gpu_entry **to)
{
	const bool back = is_backward(op), mixed = !back && op->attr[1].i == TIER_MIXED;
	struct yk_gpu_build b = { .file = back ? "resolvent_backward.cl" : "resolvent.cl",
				  .name = back ? "resolvent_backward" : "resolvent" };

	yk_gpu_define(&b, "DTYPE", op->in[0].dtype);
	yk_gpu_define(&b, "ITEMS", c->items);
	yk_gpu_define(&b, "VEC_WIDTH", c->width);
	yk_gpu_define(&b, "CHUNK", c->each);
	yk_gpu_define(&b, "LEFT", op->attr[0].i != 0);
	yk_gpu_flag(&b, "USE_F64", c->wide || mixed || op->in[0].dtype == yoke_f64);
	yk_gpu_flag(&b, "WIDE_ACC", c->wide || mixed);
	yk_gpu_flag(&b, "F64_LANES", c->wide);
	yk_gpu_flag(&b, "DIVIDE", mixed);
	if (odd)
		yk_gpu_define(&b, "ODD", odd);
	if (halves(op) && !c->wide)
		yk_gpu_define(&b, "HALF", op->attr[1].i == TIER_F16 ? 3 : 4);
	if (back && op->attr[4].i)
		yk_gpu_define(&b, "SURROGATE", op->attr[4].i);
	if (serve)
		yk_gpu_define(&b, "SERVE", serve);
	if (which)
		yk_gpu_define(&b, "WHICH", which);
	return yk_gpu_kernel_file(d, &b, to);
}

static int launch(struct yk_gpu_record *r, const struct yoke_op *op, const struct cut *c,
		  const struct chain_args *s, int serve, int odd, int which)
{
	const struct yoke_view *a = &op->in[0];
	struct yk_gpu_entry *kernel;
	int err = kernel_of(r->device, op, c, serve, odd, which, &kernel);

	if (err)
		return err;
	yk_gpu_begin(r, kernel);
	for (uint32_t k = 0; k < op->nout; k++)
		yk_gpu_arg_view_or(r, &op->out[k], a);
	for (int k = 0; k < 4; k++)
		yk_gpu_arg_view_or(r, &op->in[k], a);
	yk_gpu_arg_view_or(r, &op->workspace, a);
	if (is_backward(op))
		yk_gpu_arg_view(r, &op->in[4]);
	yk_gpu_arg_struct(r, s, sizeof *s);
	yk_gpu_arg_slot(r);
	return yk_gpu_launch_groups(
		r, s->parts > 1 ? s->rows * s->parts : yk_gpu_ceil_div(s->rows, s->sides),
		(size_t)c->items, kernel->build.name);
}

// Bytes of a program's workspace.
static uint64_t records(const struct yk_gpu_device *d, const struct yoke_op *op,
			struct chain_args *s, bool wide)
{
	struct cut c;

	cut_of(d, op, wide, &c);
	chunks_of(d, &c, s);
	const int64_t record = c.items > 1 ? RECORD : RECORD + LINK * c.width;
	return s->parts > 1 ? (uint64_t)(s->rows * s->parts * record) * (wide ? 8 : 4) : 0;
}

// Records all launches of a program; the workspace is set. serve: see cl/resolvent_backward.cl;
// odd: cl/resolvent_chain.cl.
static int program(struct yk_gpu_record *r, const struct yoke_op *op, struct chain_args *s,
		   bool wide, int serve, int odd)
{
	struct cut c;

	cut_of(r->device, op, wide, &c);
	chunks_of(r->device, &c, s);
	if (s->parts == 1)
		return launch(r, op, &c, s, serve, odd, WHOLE);
	int err = launch(r, op, &c, s, serve, odd, LINKS);
	if (!err)
		err = launch(r, op, &c, s, serve, odd, FROM_LINKS);
	return err || !(is_backward(op) ? !op->attr[4].i : halves(op) && !wide) ?
		       err :
		       launch(r, op, &c, s, serve, odd, LAST);
}

static int whole(struct yk_gpu_record *r, const struct yoke_op *op, struct chain_args *s, bool wide)
{
	yk_gpu_workspace(r, records(r->device, op, s, wide));
	return program(r, op, s, wide, 0, 0);
}

// Computes all rows in f32, and then in f64 those where f32 is insufficient.
static int in_both(struct yk_gpu_record *r, const struct yoke_op *op, struct chain_args *s,
		   bool adaptive)
{
	const uint64_t wide = records(r->device, op, s, true),
		       narrow = records(r->device, op, s, false);
	const uint64_t marks_at = wide > narrow ? wide : narrow;

	s->marks = (int32_t)s->parts; // parts of the f32 program
	s->marked = (int64_t)marks_at;
	yk_gpu_workspace(r, marks_at + (uint64_t)(s->rows * s->parts) * sizeof(int32_t));
	int err = program(r, op, s, false, adaptive ? 2 : 0, MARKED);
	return err ? err : program(r, op, s, true, adaptive ? 1 : 0, ODD_ROWS);
}

// Gradients of the mixed and half-precision tiers: rows with small cotangents are computed in f64
// if the device has it. If rows are divided into parts, all rows are, so that there are only
// three launches.
static int record_adaptive(struct yk_gpu_record *r, const struct yoke_op *op, struct chain_args *s)
{
	struct cut c[2];

	for (int wide = 0; wide < 2; wide++) {
		cut_of(r->device, op, wide, &c[wide]);
		chunks_of(r->device, &c[wide], s);
		if (s->parts > 1)
			return whole(r, op, s, true);
	}
	return in_both(r, op, s, true);
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const bool wide = op->attr[1].i == TIER_F64;
	struct chain_args s;

	(void)impl;
	args_of(op, &s);
	if (!s.rows)
		return 0;
	yk_gpu_reports(r, YK_GPU_CHAIN, is_backward(op) ? "resolvent_backward" : "resolvent", 0);
	if (is_backward(op) && op->attr[1].i > TIER_F32 && s.adaptive > 0 && yk_gpu_f64(r->device))
		return record_adaptive(r, op, &s);
	struct cut c;
	if (wide || op->in[0].dtype == yoke_f64 || !yk_gpu_f64(r->device) ||
	    !cut_of(r->device, op, true, &c))
		return whole(r, op, &s, wide);
	return in_both(r, op, &s, false);
}

static const char *const names[] = { "lanes" };
YK_GPU_OP(resolvent, RESOLVENT,
	  RESOLVENT_BACKWARD) = { .names = names, .nimpl = 1, .can = can, .record = record };
