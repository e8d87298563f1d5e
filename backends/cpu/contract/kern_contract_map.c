// SPDX-License-Identifier: Apache-2.0
// Contraction epilogues: run the fused map program on a finished tile while it is in cache. The
// tile replaces the program's input 0; other inputs and outputs are addressed as for MAP. Uses
// MAP's interpreter, so results are the same bits as from a separate MAP.
#include "config.h"

#include <string.h>

#include "../vector/half.h"
#include "kern_contract.h"

// As in kern_map.c: a strip of the program covers several shorter rows.
enum { LONG_ROW = 256 };

struct yoke_view ISA(yk_epilogue_product)(const struct yoke_op *op)
{
	struct yoke_view v = op->out[0];
	int64_t stride = 1;

	v.dtype = (uint8_t)op->attr[0].i;
	for (int i = v.rank - 1; i >= 0; i--) {
		v.strides[i] = stride;
		stride *= v.dims[i];
	}
	return v;
}

// Builds the map op that remains after the product; in[] has room for the program's inputs.
static void map_op(struct yoke_op *m, struct yoke_view *in, const struct yoke_op *op)
{
	const struct yoke_view *shape = &op->out[0];

	in[0] = ISA(yk_epilogue_product)(op);
	for (uint32_t k = 2; k < op->nin; k++)
		in[k - 1] = op->in[k];
	*m = (struct yoke_op){ .size = sizeof *m,
			       .code = YOKE_OP_MAP,
			       .rank = shape->rank,
			       .nout = op->nout,
			       .nin = op->nin - 1,
			       .out = op->out,
			       .in = in,
			       .map = op->map };
	memcpy(m->dims, shape->dims, sizeof m->dims);
}

static bool same_dims(const struct yoke_view *v, const struct yoke_view *shape)
{
	return v->rank == shape->rank &&
	       !memcmp(v->dims, shape->dims, (size_t)v->rank * sizeof *v->dims);
}

bool ISA(yk_epilogue_can)(const struct yoke_op *op)
{
	struct yoke_view in[YOKE_MAP_MAX_INPUTS];
	struct yoke_op m;

	if (op->nin < 2 || op->nin - 1 > YOKE_MAP_MAX_INPUTS || op->nout < 1 ||
	    op->nattr < 1 || !yk_gemm_can_return(op->in[0].dtype, (int)op->attr[0].i))
		return false;
	for (uint32_t k = 0; k < op->nout; k++)
		if (!same_dims(&op->out[k], &op->out[0]))
			return false;
	for (uint32_t k = 2; k < op->nin; k++)
		if (op->in[k].kind == YOKE_VIEW_BUFFER &&
		    !same_dims(&op->in[k], &op->out[0]))
			return false;
	map_op(&m, in, op);
	return ISA(yk_map).can(&m) != 0;
}

void ISA(yk_epilogue_init)(struct yk_epilogue *e, void *memory, const struct yoke_op *op)
{
	struct yoke_view in[YOKE_MAP_MAX_INPUTS];
	struct yoke_op m;
	struct yk_prog *p = &e->prog;

	map_op(&m, in, op);
	ISA(yk_prog_init)(p, memory, &m, NULL, (int)m.nout);
	e->cols = m.dims[m.rank - 1];
	e->dtype = p->in[0].dtype;
	e->round = NULL;
	if (!yk_is_half(p->in[0].dtype))
		return;
	// The tile's sums are rounded in place and stay f32.
	e->round = ISA(yk_strip_round)(p->in[0].dtype);
	p->in[0].dtype = yoke_f32;
	p->in[0].size = sizeof(float);
	for (int k = 0; k < p->nstep; k++)
		if (p->step[k].kind == YK_STEP_INPUT && p->step[k].input == 0)
			p->step[k].load = ISA(yk_load)(yoke_f32);
}

void ISA(yk_epilogue_bind)(struct yk_epilogue *e, void *memory, const struct yoke_op *op)
{
	// input k of the map is operand k + 1, except for the product
	if (ISA(yk_prog_bind)(&e->prog, op->map, op->out, op->in + 1, 1))
		return;
	ISA(yk_epilogue_init)(e, memory, op);
	ISA(yk_prog_bind)(&e->prog, op->map, op->out, op->in + 1, 1);
}

// A thread's copy of the program, whose input 0 moves with the tile; followed by the registers.
struct live {
	struct yk_prog prog;
	struct yk_frame frame;
	_Alignas(64) char registers[];
};

size_t ISA(yk_epilogue_memory)(const struct yk_epilogue *e)
{
	return sizeof(struct live) + e->prog.frame;
}

void ISA(yk_epilogue_begin)(const struct yk_epilogue *e, void *memory)
{
	static const double zero;
	struct live *l = memory;

	l->prog = e->prog;
	l->prog.in[0].base = (char *)&zero;
	ISA(yk_frame_init)(&l->frame, &l->prog, l->registers);
}

// Prefetches elements first .. first + cols - 1 of the operand, and as many in the next rows.
static void prefetch(const struct yk_epilogue *e, const struct yk_operand *o, int64_t first,
		     int64_t rows, int64_t cols)
{
	for (int64_t i = 0; o->linear && !o->scalar && i < rows; i++, first += e->cols)
		yk_prefetch_lines(o->base + first * o->size, cols * o->size);
}

void ISA(yk_epilogue_prefetch)(const struct yk_epilogue *e, int64_t first, int64_t rows,
			       int64_t cols)
{
	for (int k = 1; k < e->prog.map->nin; k++)
		prefetch(e, &e->prog.in[k], first, rows, cols);
	for (int o = 0; o < e->prog.nout; o++)
		prefetch(e, &e->prog.out[o], first, rows, cols);
}

// A result with one element is a uniform value, which is computed when the frame is prepared.
static void run_one(const struct yk_epilogue *e, struct live *l, const char *sum)
{
	struct yk_operand *in = &l->prog.in[0];
	float f;

	memcpy(&f, sum, sizeof f);
	if (e->dtype == yoke_bf16)
		in->bits = yk_bf16_of_f32(f);
	else if (e->dtype == yoke_f16)
		in->bits = yk_f16_of_f32(f);
	else if (in->size == sizeof f)
		in->bits = yk_bits_f32(f); // or an integer's
	else
		memcpy(&in->bits, sum, sizeof in->bits);
	in->scalar = true;
	ISA(yk_frame_init)(&l->frame, &l->prog, l->registers);
	ISA(yk_frame_run)(&l->frame, 0, 1);
}

// Processes columns first .. first + n - 1, n <= YK_STRIP, of rows of the result; sums are those of
// the first row.
static void run(const struct yk_epilogue *e, struct live *l, char *sums, int64_t ld,
		int64_t first, int64_t rows, int64_t n)
{
	struct yk_operand *in = &l->prog.in[0];

	for (int64_t i = 0; i < rows; i++, sums += ld * in->size, first += e->cols) {
		if (e->round)
			e->round(sums, &(struct yk_arg){ sums, YK_BLOCK }, NULL, NULL, n);
		// input 0 is row-major over the whole result: set the base it would have
		in->base = (char *)((uintptr_t)sums - (uintptr_t)(first * in->size));
		ISA(yk_frame_next)(&l->frame, i, first, n);
	}
}

void ISA(yk_epilogue_run)(const struct yk_epilogue *e, void *memory, void *tile,
			  int64_t ld, int64_t first, int64_t rows, int64_t cols)
{
	struct live *l = memory;
	int64_t size = l->prog.in[0].size;

	if (l->prog.in[0].uniform) {
		run_one(e, l, tile);
		return;
	}
	// combine short rows that are contiguous, also in the result, to longer strips
	if (cols < LONG_ROW && ld == cols && cols == e->cols) {
		cols *= rows;
		rows = 1;
	}
	for (int64_t j = 0; j < cols; j += YK_STRIP)
		run(e, l, (char *)tile + j * size, ld, first + j, rows,
		    cols - j < YK_STRIP ? cols - j : YK_STRIP);
}
