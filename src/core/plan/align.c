// SPDX-License-Identifier: Apache-2.0
// Alignment for matrix units: a large product whose m, n or k is not a multiple of the device's
// preferred unit is lowered with factors padded by zeros, and its result is a view of the padded
// product.  Gradients are recorded as products themselves, so padding needs no gradient.
//
// Both factors are padded along k, so the padding adds 0 * 0 to each sum, whatever the operands
// hold: infinities and NaN stay where they are.  Products of a factor's infinity with zeros along m
// and n lie outside of the view.  The bits are those of the plain product if a kernel's order of
// summation does not depend on the size of the product, except that a sum of only -0 may become +0.
//
// A value is padded once per plan, because equal nodes are merged: a weight that several products
// read, or one that is used forward and backward.

#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/param.h"
#include "plan/lower.h"
#include "plan/planner.h"
#include "plan/work.h"

YK_PARAM(align, "align", YK_INT, "1",
	 "1: pad large products to multiples that suit the device's matrix units; 0: none; 2: all "
		"(for tests)", .max = 2);

// The cost that padding may have, in arithmetic: two products, because matrix units lose more on
// unaligned rows: on an H200, products of 8192 x 50257 x 768 in bf16 ran at a fifth to a seventh of
// the rate of 50264.  A byte of additional memory traffic counts as the operations that such a unit
// does in the same time: 50 to 300 on recent processors.
static const double WORTH = 2, OPERATIONS_A_BYTE = 128;

enum { M, N, K };
enum { MAX_NOTED = 512 }; // products in a report
// No memory holds larger extents, and sums of them and a multiple could overflow 64 bits.
static const int64_t LIMIT = (int64_t)1 << 40;

struct product {
	int64_t size[3], wants[3], to[3]; // to: the padded size, as far as padding is allowed
	double matrices[3];               // of a, b and the result
	double bytes[3];                  // bytes of an element of each
	bool by_row;
};

static int64_t multiple_of(int64_t x, int64_t unit)
{
	return unit < 2 || x % unit == 0 ? x : x + unit - x % unit;
}

// Does the device prefer other sizes than the product has?
static bool find(const struct yk_work *w, const struct yk_call *c, const struct yk_value *y,
		 struct product *p)
{
	const int64_t flags = c->attr[0].i;
	const struct yk_value *a = &w->g.value[c->in[0]], *b = &w->g.value[c->in[1]];
	const uint16_t *unit = w->ctx->device->info.multiple[a->dtype];
	const struct yk_value *all[] = { a, b, y };
	bool wants = false;
	*p = (struct product){ .by_row = flags & YOKE_BY_ROW };
	p->size[M] = y->dims[y->rank - 2];
	p->size[N] = y->dims[y->rank - 1];
	p->size[K] = a->dims[a->rank - (flags & YOKE_TA ? 2 : 1)];
	for (int i = 0; i < 3; i++) {
		if (p->size[i] < 1 || p->size[i] > LIMIT)
			return false;
		p->wants[i] = multiple_of(p->size[i], unit[i]);
		wants |= p->wants[i] != p->size[i];
		// with by_row, the other rows must not affect the order in which a row is summed
		p->to[i] = p->by_row && i != M ? p->size[i] : p->wants[i];
		p->bytes[i] = (double)yoke_dtype_size(all[i]->dtype);
		p->matrices[i] = (double)yk_count(all[i]);
	}
	p->matrices[0] /= (double)p->size[M] * (double)p->size[K];
	p->matrices[1] /= (double)p->size[K] * (double)p->size[N];
	p->matrices[2] /= (double)p->size[M] * (double)p->size[N];
	return wants && p->matrices[2] >= 1;
}

// Elements of a factor or of the result.
static double elements(const struct product *p, int i, const int64_t *size)
{
	const int row = i == 1 ? K : M, column = i == 0 ? K : N;
	return p->matrices[i] * (double)size[row] * (double)size[column];
}

static bool fits(const struct yk_work *w, const struct product *p)
{
	bool good = true;
	for (int i = 0; i < 3; i++)
		good &= elements(p, i, p->to) * p->bytes[i] <= (double)yk_largest(w->ctx);
	return good;
}

// Traffic: a factor is filled with zeros and then copied into; the result is read again by a map
// that could otherwise be the product's epilogue.
static bool gains(const struct product *p)
{
	const double plain = 2 * elements(p, 2, p->size) * (double)p->size[K];
	double bytes = 0;
	for (int i = 0; i < 3; i++) {
		const double was = elements(p, i, p->size), is = elements(p, i, p->to);
		if (is > was)
			bytes += p->bytes[i] * (i == 2 ? 2 * was : is + 2 * was);
	}
	return 2 * elements(p, 2, p->to) * (double)p->to[K] - plain + OPERATIONS_A_BYTE * bytes <=
	       WORTH * plain;
}

// Pads v with rows and columns of zeros at the end: 1, or 0 if the device cannot.
static int fill_up(struct yk_work *w, yk_id v, int64_t rows, int64_t columns, yk_id *out)
{
	struct yk_value x = w->g.value[v];
	const int rank = x.rank;
	union yoke_attr attr[2 * YOKE_MAX_RANK + 1] = { { 0 } }; // before, after, value
	*out = v;
	if (x.dims[rank - 2] == rows && x.dims[rank - 1] == columns)
		return 1;
	attr[2 * rank - 2].i = rows - x.dims[rank - 2];
	attr[2 * rank - 1].i = columns - x.dims[rank - 1];
	x.dims[rank - 2] = rows;
	x.dims[rank - 1] = columns;
	struct yk_call c = {
		.op = YK_PAD, .nin = 1, .in = &v, .nattr = (uint32_t)(2 * rank + 1), .attr = attr
	};
	return yk_lower_try(w, &c, 1, &x, YK_STREAM_DEVICE, "for the matrix units", out);
}

// The first rows and columns of v, in the shape of y.
static int part_of(struct yk_work *w, yk_id v, const struct yk_value *y, yk_id *out)
{
	const int rank = y->rank;
	union yoke_attr attr[3 * YOKE_MAX_RANK] = { { 0 } }; // start, step, size
	for (int i = 0; i < rank; i++) {
		attr[rank + i].i = 1;
		attr[2 * rank + i].i = y->dims[i];
	}
	struct yk_call c = {
		.op = YK_SLICE, .nin = 1, .in = &v, .nattr = (uint32_t)(3 * rank), .attr = attr
	};
	*out = v;
	return yk_same_shape(&w->g.value[v], y) ? 0 : yk_lower_view(w, &c, y, out);
}

// The padded product: 1, or 0 if the device does not support it; nodes added for it are then dead.
static int pad(struct yk_work *w, const struct yk_call *c, const struct yk_value *y,
	       const struct product *p, yk_id *out)
{
	const int64_t flags = c->attr[0].i;
	struct yk_call padded = *c;
	struct yk_value whole = *y;
	yk_id in[2], v;
	padded.in = in;
	whole.dims[y->rank - 2] = p->to[M];
	whole.dims[y->rank - 1] = p->to[N];
	for (int i = 0; i < 2; i++) {
		const bool turned = flags & (i ? YOKE_TB : YOKE_TA);
		const int64_t rows = p->to[i ? K : M], columns = p->to[i ? N : K];
		int good = fill_up(w, c->in[i], turned ? columns : rows, turned ? rows : columns,
				   &in[i]);
		if (good < 1)
			return good;
	}
	int good = yk_lower_try(w, &padded, 1, &whole, YK_STREAM_DEVICE, "padded", &v);
	if (good < 1)
		return good;
	int err = part_of(w, v, y, out);
	return err ? err : 1;
}

// Records the product for reports, once per scope and shape, with whether the latest plan padded
// it.
static int note(struct yk_work *w, const struct yk_call *c, const struct yk_value *y,
		const struct product *p, bool padded)
{
	struct yk_planner *pl = w->ctx->planner;
	struct yk_misaligned m = { .scope = w->g.scope,
				   .dtype = w->g.value[c->in[0]].dtype,
				   .to = y->dtype,
				   .flags = (uint8_t)c->attr[0].i };
	memcpy(m.size, p->size, sizeof m.size);
	memcpy(m.wants, p->wants, sizeof m.wants);
	for (int i = 0; i < 3; i++)
		m.matrices[i] = (int64_t)p->matrices[i];
	for (size_t i = 0; i < pl->misaligned.n; i++) {
		m.padded = pl->misaligned.product[i].padded; // memcmp compares the other members
		if (!memcmp(&pl->misaligned.product[i], &m, sizeof m)) {
			pl->misaligned.product[i].padded = padded;
			return 0;
		}
	}
	m.padded = padded;
	if (pl->misaligned.n == MAX_NOTED)
		return 0;
	if (yk_grow(&pl->misaligned.product, &pl->misaligned.cap, pl->misaligned.n + 1,
		    sizeof m) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	pl->misaligned.product[pl->misaligned.n++] = m;
	return 0;
}

int yk_lower_aligned(struct yk_work *w, const struct yk_call *c, const struct yk_value *outs,
		     yk_id *out)
{
	const struct yk_value y = *outs; // a copy: the caller's may be in an array that is
					 // reallocated
	const int64_t mode = yk_param_int(&align);
	struct product p;
	int good = 0;
	if (!find(w, c, &y, &p))
		return 0;
	// with YOKE_CHECK=nan, results must be those of the recorded ops
	if (mode && !w->wanted.plain && !w->ctx->planner->check.nan &&
	    memcmp(p.to, p.size, sizeof p.to) && fits(w, &p) && (mode > 1 || gains(&p)))
		good = pad(w, c, &y, &p, out);
	if (good < 0)
		return good;
	w->plan->padded += good != 0;
	int err = note(w, c, &y, &p, good);
	return err ? err : good;
}
