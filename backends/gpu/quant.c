// SPDX-License-Identifier: Apache-2.0
// Quantized weights as operands of kernels: formats, alignment, and the macros of cl/quant.cl.
#include "config.h"

#include "quant.h"

static const struct format {
	uint8_t number; // GGUF's number of the type
	uint8_t elements_log2, bytes; // of a block
} formats[] = {
	{ 1, 0, 2 },    { 30, 0, 2 },                   // F16, BF16
	{ 2, 5, 18 },   { 3, 5, 20 },                   // Q4_0, Q4_1
	{ 6, 5, 22 },   { 7, 5, 24 },                   // Q5_0, Q5_1
	{ 8, 5, 34 },                                   // Q8_0
	{ 12, 8, 144 }, { 13, 8, 176 }, { 14, 8, 210 }, // Q4_K, Q5_K, Q6_K
};

static const struct format *format_of(const struct yoke_op *op)
{
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (op->attr[0].i == formats[i].number)
			return &formats[i];
	return NULL;
}

bool yk_gpu_is_quantized(const struct yoke_op *op, const struct yoke_view *w)
{
	const struct format *f = op->nattr >= 2 ? format_of(op) : NULL;
	const int64_t k = f ? op->attr[1].i : 0;

	return f && k > 0 && k <= INT32_MAX / 2 && k % (1 << f->elements_log2) == 0 &&
	       w->kind == YOKE_VIEW_BUFFER && w->dtype == yoke_u8 && w->rank == 2 &&
	       (w->strides[1] == 1 || w->dims[1] <= 1) &&
	       w->dims[1] == (k >> f->elements_log2) * f->bytes;
}

int64_t yk_gpu_quant_groups(const struct yoke_op *op)
{
	return yk_gpu_ceil_div(op->attr[1].i, YK_GPU_QUANT_GROUP);
}

int yk_gpu_quant_width(const struct yk_gpu_device *d, const struct yoke_view *const *rows,
		       int64_t k)
{
	return d->cpu_like ? 4 : yk_gpu_row_width(d, rows, k);
}

// The largest of 4, 2 and 1 that divides the addresses of all blocks.
static int align_of(const struct format *f, const struct yoke_view *w)
{
	int align = 4;

	while (align > 1 && (!yk_gpu_aligned(w, (size_t)align) || f->bytes % align ||
			     (w->dims[0] > 1 && w->strides[0] % align)))
		align /= 2;
	return align;
}

void yk_gpu_quant_defines(struct yk_gpu_build *b, const struct yk_gpu_device *d,
			  const struct yoke_op *op, size_t items, int width)
{
	const struct format *f = format_of(op);

	yk_gpu_row_defines(b, d, items, width, &op->out[0]);
	yk_gpu_define(b, "FORMAT", f->number);
	yk_gpu_define(b, "ALIGN", align_of(f, &op->in[op->code == YOKE_OP_QLINEAR]));
}
