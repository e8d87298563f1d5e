// SPDX-License-Identifier: Apache-2.0
// CONV, CONV_X and CONV_W as products of a matrix and the windows of an operand, with the packed
// kernels of CONTRACT. A run copies that operand once, zero-padded, unless its windows are single
// elements; windows exist only in packed panels. The whole batch is one product. CONV_X takes one
// product per remainder of the position modulo the stride: the taps that contribute are then evenly
// spaced, and the stride becomes 1.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "../vector/half.h"
#include "../vector/second.h"
#include "kern_conv.h"

enum {
	AXES = YK_CONV_AXES,
	PARTS = 4096,
	PER_ITEM = 1 << 14,
	SLACK = 64,
	RUN = 32    // max row length for which rows are gathered; longer ones are read in place
};

enum { WINOGRAD, IMPLICIT }; // implementations

// Along one axis: tap m at position t reads element t * step + off + m * by of the copied operand.
struct line {
	int64_t taps, tap, tap_step; // tap m is w's tap + m * tap_step
	int64_t count;               // number of positions
	int64_t step, off, by;
	int64_t out, out_step;       // position t is element out + t * out_step of the result
};

// One product, for one remainder along each axis.
struct part {
	struct yk_gemm g;
	struct yk_windows win;
	struct line line[AXES];
};

// The operand that is copied (b of the product), and the layout of its copy.
struct source {
	int64_t batch, channels, n[AXES];    // sizes of the operand
	int64_t min[AXES], extent[AXES];   // the copy holds elements min .. min + extent - 1
	// along the last axis: the stride, and the number of elements per remainder
	int64_t step, plane;
	int64_t row, layer, channel, image;  // strides of the copy; layer: a plane of an image
	int64_t stride[2 + AXES];            // strides of the operand after thinning
	uint64_t read[AXES]; // bit mask of remainders modulo `step` that some tap reads
	int dtype;
};

struct conv {
	struct source src;
	bool wide;              // f64
	bool copies;            // the source; otherwise it is read in place
	bool copies_a;          // otherwise a is read in place
	// bytes of the copy, of the copied matrix, of the products' workspace
	uint64_t copy, a, max;
	int64_t groups, outputs, channels; // channels and outputs per group
	int64_t taps[AXES], positions;     // of w; total positions of CONV's result
	int parts;
	int64_t *at; // tables of the parts, stored after the last part
	struct part part[];
};

static struct line line_without_stride(const struct yk_conv_axis *a, int64_t taps, int64_t count)
{
	return (struct line){ taps, 0, 1, count, a->stride, -a->lo, a->dilation, 0, 1 };
}

// Positions of x with remainder `rest` modulo the stride: the taps that reach them, and their
// positions in y.
static struct line remainder_of(const struct yk_conv_axis *a, int64_t taps, int64_t n, int64_t rest)
{
	struct line l = { .count = rest < n ? (n - 1 - rest) / a->stride + 1 : 0,
			  .step = 1,
			  .out = rest,
			  .out_step = a->stride };
	int64_t gcd = a->stride, other = a->dilation, k = 0;
	while (other) {
		const int64_t t = gcd % other;
		gcd = other;
		other = t;
	}
	l.tap_step = a->stride / gcd;
	while (k < taps && k < l.tap_step && (rest + a->lo - k * a->dilation) % a->stride)
		k++;
	if (k == taps || k == l.tap_step)
		return l;
	l.tap = k;
	l.taps = (taps - 1 - k) / l.tap_step + 1;
	l.off = (rest + a->lo - k * a->dilation) / a->stride;
	l.by = -l.tap_step * a->dilation / a->stride;
	return l;
}

static int64_t parts_along(const struct yoke_op *op, const struct yk_conv_operands *o, int axis)
{
	const int64_t stride = yk_conv_axis_of(op, o->x->rank, axis).stride,
		      n = yk_conv_dim(o->x, axis);
	return op->code != YOKE_OP_CONV_X ? 1 : stride < n ? stride : n;
}

static uint64_t can(const struct yoke_op *op)
{
	if (op->nin != 2 || op->nout != 1 || op->map || op->in[0].rank < 3 ||
	    op->in[0].rank > 2 + AXES)
		return 0;
	const struct yk_conv_operands o = yk_conv_operands_of(op);
	const int rank = o.x->rank, dtype = o.x->dtype;
	if (o.w->rank != rank || o.y->rank != rank || o.w->dtype != dtype || o.y->dtype != dtype ||
	    op->nattr < rank - 1 || o.x->kind != YOKE_VIEW_BUFFER ||
	    o.w->kind != YOKE_VIEW_BUFFER || o.y->kind != YOKE_VIEW_BUFFER)
		return 0;
	if (op->attr[0].i < 1 || (op->code == YOKE_OP_CONV_W && !yk_dense(o.w)))
		return 0;
	double parts = 1, copied = (double)o.x->dims[0] *
				   (double)(op->code == YOKE_OP_CONV_X ? o.y : o.x)->dims[1];
	// bound: the copy is no longer than the padded operand, or than the result and w
	for (int i = 0; i < AXES; i++) {
		const struct yk_conv_axis a = yk_conv_axis_of(op, rank, i);
		copied *= (double)yk_conv_dim(o.x, i) +
			  (double)yk_conv_dim(o.y, i) * (double)a.stride +
			  (double)yk_conv_dim(o.w, i) * (double)a.dilation;
		parts *= (double)parts_along(op, &o, i);
	}
	if (copied > 1e12 || parts > PARTS)
		return 0;
	if (dtype != yoke_f32 && dtype != yoke_f64 && dtype != yoke_f16 && dtype != yoke_bf16)
		return 0;
	return 1 << IMPLICIT | (ISA(yk_winograd_can)(op) ? 1 << WINOGRAD : 0);
}

static int64_t lowest(const struct line *l)
{
	return l->off + (l->by < 0 ? (l->taps - 1) * l->by : 0);
}

static int64_t highest(const struct line *l)
{
	return (l->count - 1) * l->step + l->off + (l->by > 0 ? (l->taps - 1) * l->by : 0);
}

static bool is_empty(const struct part *p)
{
	for (int i = 0; i < AXES; i++)
		if (!p->line[i].taps || !p->line[i].count)
			return true;
	return false;
}

static int64_t product_of(const int64_t *n)
{
	int64_t all = 1;
	for (int i = 0; i < AXES; i++)
		all *= n[i];
	return all;
}

// True if windows are single elements of a dense image that is large enough: reads that run over
// the end of a channel, for which a copy has SLACK, stay in the operand.
static bool reads_source_in_place(const struct conv *c, const struct yoke_view *v)
{
	const struct source *s = &c->src;
	int64_t dense = 1;

	if (v->dtype != (c->wide ? yoke_f64 : yoke_f32) || c->parts != 1 ||
	    product_of(c->taps) != 1 || s->step != 1)
		return false;
	for (int i = AXES - 1; i >= 0; dense *= s->n[i--])
		if (s->min[i] || s->extent[i] != s->n[i] ||
		    (s->n[i] > 1 && s->stride[2 + i] != dense))
			return false;
	return s->stride[1] == dense && dense >= SLACK;
}

// thin: only every thin[i]-th element of an axis is used.
static void take_source(struct conv *c, const struct yoke_view *v, int64_t step,
			const int64_t *thin)
{
	struct source *s = &c->src;
	bool first = true;

	s->batch = v->dims[0];
	s->channels = v->dims[1];
	s->dtype = v->dtype;
	s->step = step;
	for (int i = 0; i < 2; i++)
		s->stride[i] = v->strides[i];
	for (int k = 0; k < c->parts; k++) {
		if (is_empty(&c->part[k]))
			continue;
		for (int i = 0; i < AXES; i++) {
			const int64_t lo = lowest(&c->part[k].line[i]),
				      hi = highest(&c->part[k].line[i]);
			const int64_t end = s->min[i] + s->extent[i] - 1;
			const int64_t min = first || lo < s->min[i] ? lo : s->min[i];
			s->extent[i] = (first || hi > end ? hi : end) - min + 1;
			s->min[i] = min;
		}
		first = false;
	}
	for (int i = 0; i < AXES; i++) {
		s->n[i] = (yk_conv_dim(v, i) + thin[i] - 1) / thin[i];
		s->stride[2 + i] = yk_conv_stride(v, i) * thin[i];
	}
	c->copies = !reads_source_in_place(c, v);
	if (!c->copies) {
		s->plane = s->row = s->n[AXES - 1];
		s->layer = s->row * s->n[AXES - 2];
		s->channel = s->stride[1];
		s->image = s->stride[0];
		return;
	}
	s->plane = (s->extent[AXES - 1] + step - 1) / step;
	s->row = s->plane * step;
	s->layer = s->row * s->extent[AXES - 2];
	s->channel = s->layer * s->extent[0];
	s->image = s->channel * s->channels;
	c->copy = ((uint64_t)(s->image * s->batch) + SLACK) *
		  (c->wide ? sizeof(double) : sizeof(float));
}

// Tabulates the offsets of a part's taps in the copy, from a group's first channel on: all taps of
// one channel, then of the next, ...
static int64_t *tabulate(const struct conv *c, const struct part *p, int64_t channels, int64_t *at)
{
	const struct source *s = &c->src;
	const struct line *l = p->line;
	for (int64_t k = 0; k < channels; k++)
		for (int64_t h = 0; h < l[0].taps; h++)
			for (int64_t i = 0; i < l[1].taps; i++)
				for (int64_t j = 0; j < l[2].taps; j++) {
					const int64_t layer = l[0].off - s->min[0] + h * l[0].by;
					const int64_t row = l[1].off - s->min[1] + i * l[1].by;
					const int64_t x = l[2].off - s->min[2] + j * l[2].by;
					*at++ = k * s->channel + layer * s->layer + row * s->row +
						x % s->step * s->plane + x / s->step;
				}
	return at;
}

// Tabulates the offsets of the same taps in the transposed w, for all outputs of a group and its
// first channel.
static int64_t *tabulate_w(const struct conv *c, const struct part *p, int64_t *at)
{
	const struct line *l = p->line;
	for (int64_t k = 0; k < c->outputs; k++)
		for (int64_t h = 0; h < l[0].taps; h++)
			for (int64_t i = 0; i < l[1].taps; i++)
				for (int64_t j = 0; j < l[2].taps; j++) {
					const int64_t layer =
						k * c->taps[0] + l[0].tap + h * l[0].tap_step;
					const int64_t row =
						layer * c->taps[1] + l[1].tap + i * l[1].tap_step;
					*at++ = (row * c->taps[2] + l[2].tap + j * l[2].tap_step) *
						c->channels;
				}
	return at;
}

// Remainders modulo the step that the first part reads. If the step is above 1 there is only that
// part.
static uint64_t remainders_read(const struct conv *c, int axis)
{
	const struct line *l = &c->part[0].line[axis];
	uint64_t read = 0;

	if (l->step == 1 || l->step > 64)
		return ~(uint64_t)0;
	for (int64_t m = 0; m < l->taps; m++)
		read |= (uint64_t)1 << (l->off - c->src.min[axis] + m * l->by) % l->step;
	return read;
}

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + 63) & ~(uint64_t)63;
}

// Sets up the product of a part, whose windows are defined.
static void take_product(struct conv *c, struct part *p, const struct yoke_op *op,
			 const struct yk_conv_operands *o)
{
	struct yk_gemm *g = &p->g;
	const struct yoke_view *r = &op->out[0];
	const struct line *l = p->line;
	const int64_t taps = l[0].taps * l[1].taps * l[2].taps,
		      image = l[0].count * l[1].count * l[2].count;
	const int64_t positions = c->src.batch * image;
	const bool along = op->code == YOKE_OP_CONV_W;

	*g = (struct yk_gemm){ .batches = c->groups,
			       .rank = 1,
			       .dims = { c->groups },
			       .dtype = c->wide ? yoke_f64 : yoke_f32,
			       .esize = c->wide ? sizeof(double) : sizeof(float),
			       .to = r->dtype,
			       .csize = yk_esize(r->dtype),
			       .ak = 1,
			       .win = &p->win };
	g->m = op->code == YOKE_OP_CONV_X ? c->channels : c->outputs;
	g->k = along ? positions : taps * (op->code == YOKE_OP_CONV_X ? c->outputs : c->channels);
	g->n = along ? taps * c->channels : positions;
	g->am = g->k;
	g->sa[0] = g->m * g->k;
	g->sb[0] = (op->code == YOKE_OP_CONV_X ? c->outputs : c->channels) * c->src.channel;
	g->cm = r->strides[along ? 0 : 1];
	g->cn = along;
	g->sc[0] = g->m * g->cm;
	if (op->code == YOKE_OP_CONV_X) { // w, transposed: (outputs, taps, channels)
		g->am = 1;
		g->ak = 0;
		g->sa[0] = c->outputs * product_of(c->taps) * c->channels;
	}
	p->win.padded = c->copies;
	p->win.along = along;
	p->win.width = l[2].count;
	p->win.height = l[1].count;
	p->win.depth = l[0].count;
	p->win.row_step = l[1].step * c->src.row;
	p->win.plane_step = l[0].step * c->src.layer;
	p->win.image_step = c->src.image;
	p->win.c_image = r->strides[0];
	p->win.c_plane = yk_conv_stride(r, 0) * l[0].out_step;
	p->win.c_row = yk_conv_stride(r, 1) * l[1].out_step;
	p->win.c_x = yk_conv_stride(r, 2) * l[2].out_step;
	// treat a plane as one row, and then the image
	if (p->win.height == 1 || (p->win.row_step == p->win.width &&
				   (along || p->win.c_row == p->win.width * p->win.c_x))) {
		p->win.width *= p->win.height;
		p->win.height = 1;
		if (p->win.plane_step == p->win.width &&
		    (along || p->win.c_plane == p->win.width * p->win.c_x)) {
			p->win.width *= p->win.depth;
			p->win.depth = 1;
		}
	}
	if (along && !c->copies_a) {
		g->am = o->y->strides[1];
		g->sa[0] = g->m * g->am;
		p->win.a_run = o->y->dims[0] > 1 ? image : 0;
		p->win.a_image = o->y->strides[0];
	}
	const uint64_t bytes = c->wide ? ISA(yk_gemm_f64_block)(g) : ISA(yk_gemm_f32_block)(g);
	c->max = bytes > c->max ? bytes : c->max;
}

// Number of elements per image and channel.
static int64_t spatial(const struct yoke_view *v)
{
	int64_t n = 1;
	for (int i = 0; i < AXES; i++)
		n *= yk_conv_dim(v, i);
	return n;
}

// True if the matrix can be read in place.
static bool reads_a_in_place(const struct conv *c, const struct yoke_op *op,
			     const struct yk_conv_operands *o)
{
	const int own = c->wide ? yoke_f64 : yoke_f32;
	if (o->x->dtype != own)
		return false;
	if (op->code == YOKE_OP_CONV_X && product_of(c->taps) > 1)
		return false;
	return op->code != YOKE_OP_CONV_W ? yk_dense(o->w) :
	       yk_dense(o->y) && (o->y->dims[0] == 1 || spatial(o->y) >= RUN);
}

static struct conv *build(const struct yoke_op *op)
{
	const struct yk_conv_operands o = yk_conv_operands_of(op);
	int64_t along[AXES], thin[AXES];
	struct yk_conv_axis axis[AXES];
	for (int i = 0; i < AXES; i++) {
		along[i] = parts_along(op, &o, i);
		axis[i] = yk_conv_axis_of(op, o.x->rank, i);
		thin[i] = 1;
	}
	const int64_t groups = op->attr[0].i, parts = product_of(along);
	const int64_t channels = o.w->dims[1], outputs = o.w->dims[0] / groups;
	const bool x = op->code == YOKE_OP_CONV_X;
	const int64_t taps = spatial(o.w), entries = (x ? outputs : channels) * taps;
	struct conv *c = calloc(1, sizeof *c + (size_t)parts * sizeof *c->part +
					   (size_t)(x ? 2 * entries : entries) * sizeof *c->at);

	if (!c)
		return NULL;
	c->wide = o.x->dtype == yoke_f64;
	c->groups = groups;
	c->outputs = outputs;
	c->channels = channels;
	for (int i = 0; i < AXES; i++)
		c->taps[i] = yk_conv_dim(o.w, i);
	c->parts = (int)parts;
	c->at = (int64_t *)(c->part + parts);
	c->copies_a = !reads_a_in_place(c, op, &o);
	for (int i = 0; i < AXES; i++)
		// elements skipped by the stride are never read
		if (!x && c->taps[i] == 1 && axis[i].lo == 0) {
			thin[i] = axis[i].stride;
			axis[i].stride = 1;
		}
	for (int64_t k = 0; k < parts; k++) {
		int64_t rest = k;
		for (int i = AXES - 1; i >= 0; rest /= along[i--])
			c->part[k].line[i] =
				x ? remainder_of(&axis[i], c->taps[i], yk_conv_dim(o.x, i),
						 rest % along[i]) :
				    line_without_stride(&axis[i], c->taps[i], yk_conv_dim(o.y, i));
	}
	take_source(c, x ? o.y : o.x, x ? 1 : axis[AXES - 1].stride, thin);
	for (int i = 0; i < AXES; i++)
		c->src.read[i] = remainders_read(c, i);
	int64_t *at = c->at;
	for (int64_t k = 0; k < parts; k++) {
		struct part *p = &c->part[k];
		if (is_empty(p) || !channels || !outputs || !c->src.batch)
			continue;
		p->win.at = at;
		at = tabulate(c, p, x ? outputs : channels, at);
		if (x) {
			p->win.a_at = at;
			at = tabulate_w(c, p, at);
		}
		take_product(c, p, op, &o);
	}
	const int64_t a = yk_elements(op->code == YOKE_OP_CONV_W ? o.y : o.w);
	c->a = c->copies_a ? (uint64_t)a * (c->wide ? sizeof(double) : sizeof(float)) : 0;
	return c;
}

static void *prepare(const struct yoke_op *op, uint32_t impl)
{
	return impl == WINOGRAD ? (void *)ISA(yk_winograd_new)(op) : build(op);
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	void *p = prepare(op, impl);
	const struct conv *c = p;
	uint64_t bytes = 0;

	if (p)
		bytes = impl == WINOGRAD ? ISA(yk_winograd_bytes)(p) :
					   round_up(c->copy) + round_up(c->a) + c->max;
	free(p);
	return bytes;
}

// ---- copies ----

// Loads n elements of dtype, `stride` apart, as T to element `at` of `to`.
static void take(const struct conv *c, char *to, int64_t at, int dtype, const char *from,
		 int64_t stride, int64_t n)
{
	if (c->wide) {
		for (int64_t i = 0; i < n; i++)
			((double *)to)[at + i] = ((const double *)from)[i * stride];
	} else if (dtype == yoke_f32 && stride == 1) {
		memcpy((float *)to + at, from, (size_t)n * sizeof(float));
	} else if (dtype == yoke_f32 && stride == 2) {
		yk_take_second((float *)to + at, from, n);
	} else if (dtype == yoke_f32) {
		for (int64_t i = 0; i < n; i++)
			((float *)to)[at + i] = ((const float *)from)[i * stride];
	} else if (dtype == yoke_f16) {
		for (int64_t i = 0; i < n; i++)
			((float *)to)[at + i] = yk_f32_of_f16(((const uint16_t *)from)[i * stride]);
	} else {
		for (int64_t i = 0; i < n; i++)
			((float *)to)[at + i] =
				yk_f32_of_bf16(((const uint16_t *)from)[i * stride]);
	}
}

static void zero(const struct conv *c, char *to, int64_t at, int64_t n)
{
	if (c->wide) {
		memset((double *)to + at, 0, (size_t)n * sizeof(double));
		return;
	}
	if (n > 4) {
		memset((float *)to + at, 0, (size_t)n * sizeof(float));
		return;
	}
	for (int64_t i = 0; i < n; i++) // the border of a line, mostly
		((float *)to)[at + i] = 0;
}

struct job {
	const struct conv *c;
	const struct yoke_op *op;
	const char *from;
	char *to;
	int64_t each; // per work item
};

// Copies one channel: zero-padded lines, with the elements of each remainder contiguous.
static void copy_channel(const struct job *job, int64_t channel)
{
	const struct conv *c = job->c;
	const struct source *s = &c->src;
	const int64_t size = (int64_t)yk_esize(s->dtype), base = channel * s->channel;
	const char *from = job->from + (channel / s->channels * s->stride[0] +
					channel % s->channels * s->stride[1]) *
					       size;

	for (int64_t i = 0; i < s->extent[0] * s->extent[1]; i++) {
		const int64_t z = i / s->extent[1], y = i % s->extent[1];
		const int64_t layer = z + s->min[0], line = y + s->min[1], to = base + i * s->row;
		if (!(s->read[0] >> z % c->part[0].line[0].step % 64 & 1) ||
		    !(s->read[1] >> y % c->part[0].line[1].step % 64 & 1))
			continue;
		if (layer < 0 || layer >= s->n[0] || line < 0 || line >= s->n[1]) {
			zero(c, job->to, to, s->row);
			continue;
		}
		// element t of this remainder is element t * step + q + min of the line
		for (int64_t q = 0; q < s->step; q++) {
			const int64_t off = q + s->min[2], at = to + q * s->plane;
			if (!(s->read[2] >> q % 64 & 1))
				continue;
			int64_t first = off < 0 ? (-off + s->step - 1) / s->step : 0;
			int64_t end = off < s->n[2] ? (s->n[2] - 1 - off) / s->step + 1 : 0;
			first = first < s->plane ? first : s->plane;
			end = end < first ? first : end < s->plane ? end : s->plane;
			zero(c, job->to, at, first);
			take(c, job->to, at + first, s->dtype,
			     from + (layer * s->stride[2] + line * s->stride[3] +
				     (off + first * s->step) * s->stride[4]) *
					     size,
			     s->step * s->stride[4], end - first);
			zero(c, job->to, at + end, s->plane - end);
		}
	}
}

static void copy_item(void *arg, int64_t item)
{
	const struct job *job = arg;
	const int64_t all = job->c->src.batch * job->c->src.channels, end = (item + 1) * job->each;

	for (int64_t k = item * job->each; k < all && k < end; k++)
		copy_channel(job, k);
}

// Copies row i of CONV_W's matrix: the cotangents of one output.
static void copy_output(const struct job *job, int64_t i)
{
	const struct yoke_view *v = yk_conv_operands_of(job->op).y;
	const int64_t size = (int64_t)yk_esize(v->dtype), all = spatial(v),
		      cols = yk_conv_stride(v, 2);
	const int64_t layers = yk_conv_stride(v, 0), rows = yk_conv_stride(v, 1),
		      height = yk_conv_dim(v, 1);
	const bool whole = rows == yk_conv_dim(v, 2) * cols &&
			   (yk_conv_dim(v, 0) == 1 || layers == height * rows);
	const int64_t length = whole ? all : yk_conv_dim(v, 2), lines = length ? all / length : 0;
	int64_t at = i * v->dims[0] * all;

	for (int64_t b = 0; b < job->c->src.batch; b++)
		for (int64_t y = 0; y < lines; y++, at += length)
			take(job->c, job->to, at, v->dtype,
			     job->from + (b * v->strides[0] + i * v->strides[1] +
					  y / height * layers + y % height * rows) *
						 size,
			     cols, length);
}

// to[tap][channel] = from[channel][tap]
static void transpose_taps(float *to, const float *from, int64_t channels, int64_t taps)
{
	enum { NEAR = 64 }; // channels whose taps stay in L1

	for (int64_t c = 0; c < channels; c += NEAR)
		for (int64_t t = 0; t < taps; t++)
			for (int64_t k = c; k < channels && k < c + NEAR; k++)
				to[t * channels + k] = from[k * taps + t];
}

// Copies row i of w: the taps of one output; for CONV_X tap by tap.
static void copy_taps(const struct job *job, int64_t i)
{
	const struct conv *c = job->c;
	const struct yoke_view *v = yk_conv_operands_of(job->op).w;
	const int64_t size = (int64_t)yk_esize(v->dtype);
	const bool whole = yk_dense(v), turned = job->op->code == YOKE_OP_CONV_X;
	const int64_t taps = product_of(c->taps), each = c->channels * taps;

	if (turned && whole && v->dtype == yoke_f32) {
		transpose_taps((float *)job->to + i * each, (const float *)job->from + i * each,
			       c->channels, taps);
		return;
	}
	if (!turned && whole) {
		take(c, job->to, i * each, v->dtype, job->from + i * each * size, 1, each);
		return;
	}
	for (int64_t k = 0; k < each; k++) {
		const int64_t tap = k % taps,
			      to = i * each + (turned ? tap * c->channels + k / taps : k);
		int64_t from = i * v->strides[0] + k / taps * v->strides[1], rest = tap;
		for (int d = AXES - 1; d >= 0; rest /= c->taps[d--])
			from += rest % c->taps[d] * yk_conv_stride(v, d);
		take(c, job->to, to, v->dtype, job->from + from * size, 1, 1);
	}
}

static void row_item(void *arg, int64_t item)
{
	const struct job *job = arg;
	const int64_t rows = job->c->groups * job->c->outputs, end = (item + 1) * job->each;

	for (int64_t i = item * job->each; i < rows && i < end; i++)
		(job->op->code == YOKE_OP_CONV_W ? copy_output : copy_taps)(job, i);
}

// Clears elements of the result.
static void clear_item(void *arg, int64_t item)
{
	const struct job *job = arg;
	const struct yoke_view *v = &job->op->out[0];
	const int64_t size = (int64_t)yk_esize(v->dtype), n = yk_elements(v),
		      end = (item + 1) * job->each < n ? (item + 1) * job->each : n;

	if (yk_dense(v)) {
		memset((char *)yk_ptr(v) + item * job->each * size, 0,
		       (size_t)((end - item * job->each) * size));
		return;
	}
	for (int64_t i = item * job->each; i < end; i++) {
		int64_t at = 0, rest = i;
		for (int d = v->rank - 1; d >= 0; rest /= v->dims[d--])
			at += rest % v->dims[d] * v->strides[d];
		memset((char *)yk_ptr(v) + at * size, 0, (size_t)size);
	}
}

static void clear(const struct yoke_op *op)
{
	struct job job = { .op = op, .each = PER_ITEM };

	yk_team_run((yk_elements(&op->out[0]) + PER_ITEM - 1) / PER_ITEM, clear_item, &job);
}

static int64_t items(int64_t n, int64_t elements, int64_t *each)
{
	*each = elements < PER_ITEM ? PER_ITEM / (elements > 0 ? elements : 1) : 1;
	return (n + *each - 1) / *each;
}

static int run_implicit(struct conv *c, const struct yoke_op *op)
{
	const struct yk_conv_operands o = yk_conv_operands_of(op);
	bool whole = true;

	if (!yk_elements(&op->out[0]))
		return 0;
	for (int k = 0; k < c->parts; k++)
		whole &= c->part[k].g.k > 0;
	if (!whole) // some sums are empty
		clear(op);
	if (!yk_elements(&op->in[0]) || !yk_elements(&op->in[1]))
		return 0;
	char *memory = op->workspace.kind == YOKE_VIEW_NONE ? NULL : yk_ptr(&op->workspace),
	     *a = memory + round_up(c->copy);
	const struct yoke_view *from = op->code == YOKE_OP_CONV_X ? o.y : o.x;
	const struct yoke_view *of_a = op->code == YOKE_OP_CONV_W ? o.y : o.w;
	struct job job = { .c = c, .op = op, .from = yk_ptr(from), .to = memory };
	const int64_t copies = items(c->src.batch * c->src.channels, c->src.channel, &job.each);
	yk_team_run(c->copies ? copies : 0, copy_item, &job);
	if (c->copies_a) {
		job.from = yk_ptr(of_a);
		job.to = a;
		const int64_t rows = c->groups * c->outputs;
		const int64_t n = items(rows, yk_elements(of_a) / rows, &job.each);
		yk_team_run(n, row_item, &job);
	}
	int err = 0;
	for (int k = 0; k < c->parts && !err; k++) {
		struct yk_gemm *g = &c->part[k].g;
		if (!g->k)
			continue;
		g->a = c->copies_a ? a : yk_ptr(of_a);
		g->b = c->copies ? memory : yk_ptr(from);
		int64_t first = 0;
		for (int i = 0; i < AXES && op->code == YOKE_OP_CONV_X; i++)
			first += c->part[k].line[i].out * yk_conv_stride(&op->out[0], i);
		g->c = (char *)yk_ptr(&op->out[0]) + first * (int64_t)g->csize;
		g->workspace = a + round_up(c->a);
		err = c->wide ? ISA(yk_gemm_f64)(g) : ISA(yk_gemm_f32)(g);
	}
	return err;
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	return impl == WINOGRAD ? ISA(yk_winograd_run)(prepared, op) : run_implicit(prepared, op);
}

YK_KERNEL(conv, CONV, CONV_X, CONV_W) = { .can = can,
					  .workspace = workspace,
					  .prepare = prepare,
					  .run = run,
					  .impl = { "winograd", "implicit" } };
