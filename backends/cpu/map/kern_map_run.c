// SPDX-License-Identifier: Apache-2.0
// Executes a prepared map program on strips of its iteration space.
#include "config.h"

#include <string.h>

#include "../move/plane.h"
#include "../vector/half.h"
#include "kern_map_chain.h"
#include "../vector/philox.h"

// ---- uniform values ----

static void splat(void *to, uint64_t bits, size_t size)
{
	uint32_t *y4 = to;
	uint64_t *y8 = to;
	if (size == 1)
		memset(to, (int)(bits & 0xff), YK_BLOCK);
	for (size_t i = 0; size == 4 && i < YK_BLOCK; i++)
		y4[i] = (uint32_t)bits;
	for (size_t i = 0; size == 8 && i < YK_BLOCK; i++)
		y8[i] = bits;
}

// Fills a register with a value given as bits of its dtype.
static void splat_value(void *to, uint64_t bits, int dtype)
{
	if (yk_is_half(dtype)) {
		uint16_t h = (uint16_t)bits;
		bits = yk_bits_f32(dtype == yoke_f16 ? yk_f32_of_f16(h) : yk_f32_of_bf16(h));
	}
	if (dtype == yoke_bool)
		bits = (bits & 0xff) != 0;
	splat(to, bits, yk_esize(yk_reg(dtype)));
}

static uint64_t input_bits(const struct yk_operand *o)
{
	uint64_t bits;
	uint32_t word;
	uint16_t half;
	if (o->scalar)
		return o->bits;
	switch (o->size) {
	case 1: return *(const uint8_t *)(const void *)o->base;
	case 2: return memcpy(&half, o->base, sizeof half), half;
	case 4: return memcpy(&word, o->base, sizeof word), word;
	default: return memcpy(&bits, o->base, sizeof bits), bits;
	}
}

static void random_any(uint32_t *y, const struct yk_arg *va, const struct yk_arg *vb,
		       const struct yk_arg *vc, int64_t n)
{
	const uint64_t *a = va->at, *b = vb->at, *c = vc->at;
	for (; n > 0; n -= YK_BLOCK, y += YK_BLOCK) {
		int m = n < YK_BLOCK ? (int)n : YK_BLOCK;
		for (int i = 0; i < m; i++)
			y[i] = yk_philox_at(a[i], b[i], c[i]);
		a += va->step, b += vb->step, c += vc->step;
	}
}

static void compute(struct yk_frame *f, const struct yk_step *s, void *to, int64_t n)
{
	const struct yk_arg *a = &f->value[s->a], *b = &f->value[s->b], *c = &f->value[s->c];
	if (s->kind == YK_STEP_RANDOM)
		random_any(to, a, b, c, n);
	else
		s->fn(to, a, b, c, n);
}

void ISA(yk_frame_init)(struct yk_frame *f, const struct yk_prog *p, void *memory)
{
	f->prog = p;
	f->registers = memory;
	f->link = (struct yk_link *)(f->registers + p->links);
	f->move = (struct yk_move *)(f->link + p->nform);
	f->was = (struct yk_was *)(f->move + 3 * (size_t)p->nform);
	f->shifts = false;
	memset(f->wide, 0, sizeof f->wide);
	for (int k = 0; k < p->nstep; k++) {
		const struct yk_step *s = &p->step[k];
		const struct yoke_insn *i = &p->map->insn[s->value];
		void *to = f->registers + s->place;
		if (!p->uniform[s->value])
			continue;
		if (i->op == YOKE_MAP_CONST)
			splat_value(to, p->map->konst[i->a], i->dtype);
		else if (i->op == YOKE_MAP_INPUT)
			splat_value(to, input_bits(&p->in[i->a]), i->dtype);
		else
			compute(f, s, to, YK_BLOCK);
		f->value[s->value] = (struct yk_arg){ to, 0 };
		if (s->round)
			s->round(to, &f->value[s->value], NULL, NULL, YK_BLOCK);
	}
}

// ---- position of a strip ----

struct strip {
	int64_t first, n, col;     // col: in the first row
	int64_t at[YOKE_MAX_RANK]; // index of the first row along the outer axes
	bool one;                  // within one row
};

static void strip_init(struct strip *s, const struct yk_prog *p, int64_t first, int64_t n)
{
	int64_t row = first / p->row;
	s->first = first, s->n = n;
	s->col = first - row * p->row;
	s->one = n <= p->row - s->col;
	for (int d = p->rank - 2; d >= 0; d--) {
		s->at[d] = d ? row % p->dims[d] : row;
		row /= p->dims[d];
	}
}

static int64_t row_offset(const struct yk_prog *p, const struct yk_operand *o, const int64_t *at)
{
	int64_t offset = 0;
	for (int d = 0; d < p->rank - 1; d++)
		offset += at[d] * o->strides[d];
	return offset;
}

// Advances by n along an axis but the last, at most to its end.
static void advance(const struct yk_prog *p, int64_t *at, int axis, int64_t n)
{
	if (axis < 0)
		return;
	for (at[axis] += n; axis > 0 && at[axis] == p->dims[axis]; at[--axis]++)
		at[axis] = 0;
}

// The number of whole rows, at least one, with which `left` elements from a row's first one on
// begin, and which are evenly spaced for all operands.
static int64_t even_rows(const struct yk_prog *p, const int64_t *at, int64_t left)
{
	const int64_t rows = left / p->row,
		      even = p->rank > 1 ? p->dims[p->rank - 2] - at[p->rank - 2] : 1;
	return rows < even ? rows : even;
}

static int64_t row_step(const struct yk_prog *p, const struct yk_operand *o)
{
	return p->rank > 1 ? o->strides[p->rank - 2] : 0;
}

// Address of the strip's elements of an operand if they are contiguous; otherwise NULL.
static char *in_place(const struct yk_prog *p, const struct yk_operand *o, const struct strip *s)
{
	if (o->linear)
		return o->base + s->first * o->size;
	if (!s->one || o->strides[p->rank - 1] != 1)
		return NULL;
	return o->base + (row_offset(p, o, s->at) + s->col) * o->size;
}

// Does a tile begin at the index, and are there enough elements for it?
static bool at_tile(const struct yk_prog *p, const int64_t *at, int64_t left)
{
	bool first = p->tile && left >= p->tile;
	for (int d = p->tile_axis + 1; d < p->rank - 1; d++)
		first &= at[d] == 0;
	return first;
}

// Loads tiles from index `at` on, element by element for all of them; returns the number of tiles
// along their axis in `left` elements.
static int64_t load_tiles(const struct yk_prog *p, const struct yk_operand *o, const int64_t *at,
			  int64_t left, char *to)
{
	const char *from = o->base + row_offset(p, o, at) * o->size;
	const int axis = p->tile_axis;
	const int64_t n = yk_min(left / p->tile, p->dims[axis] - at[axis]), step = o->strides[axis];
	int64_t index[YOKE_MAX_RANK] = { 0 }, offset[YK_MAX_TILE], next = 0;

	for (int64_t k = 0; k < p->tile; k++) {
		offset[k] = next;
		for (int d = p->rank - 1; d > axis; d--) {
			next += o->strides[d];
			if (++index[d] < p->dims[d])
				break;
			next -= p->dims[d] * o->strides[d];
			index[d] = 0;
		}
	}
	if (o->size == 4 && yk_plane_permuted(to, from, n, p->tile, step, offset))
		return n;
	for (int64_t k = 0; k < p->tile; k++)
		yk_plane(o->size, to + k * o->size, from + offset[k] * o->size, n, 1, p->tile, 1,
			 step, 0);
	return n;
}

static void load(const struct yk_prog *p, const struct yk_operand *o, const struct strip *s,
		 yk_load_fn *fn, char *to)
{
	const size_t reg = yk_esize(yk_reg(o->dtype));
	const int64_t stride = o->strides[p->rank - 1];
	const bool half = yk_is_half(o->dtype);
	int64_t at[YOKE_MAX_RANK], col = s->col, left = s->n, m;

	memcpy(at, s->at, sizeof at);
	for (; left > 0; left -= m, to += (size_t)m * reg, col = 0) {
		if (!col && !half && at_tile(p, at, left)) {
			const int64_t n = load_tiles(p, o, at, left, to);
			m = n * p->tile;
			advance(p, at, p->tile_axis, n);
			continue;
		}
		const char *from = o->base + (row_offset(p, o, at) + col * stride) * o->size;
		int64_t rows = col || half ? 1 : even_rows(p, at, left);
		if (rows > 1) {
			m = rows * p->row;
			yk_plane(reg, to, from, rows, p->row, p->row, 1, row_step(p, o), stride);
		} else {
			rows = 1;
			m = left < p->row - col ? left : p->row - col;
			fn(to, from, stride, m);
		}
		advance(p, at, p->rank - 2, rows);
	}
}

static void load_index(const struct yk_prog *p, const struct strip *s, int64_t *to)
{
	const int64_t stride = p->index.strides[p->rank - 1];
	int64_t at[YOKE_MAX_RANK], col = s->col, left = s->n;

	if (p->index.linear) {
		for (int64_t i = 0; i < s->n; i++)
			to[i] = s->first + i;
		return;
	}
	memcpy(at, s->at, sizeof at);
	while (left > 0) {
		int64_t m = left < p->row - col ? left : p->row - col;
		int64_t from = row_offset(p, &p->index, at) + col * stride;
		for (int64_t i = 0; i < m; i++)
			to[i] = from + i * stride;
		to += m;
		left -= m, col = 0;
		advance(p, at, p->rank - 2, 1);
	}
}

// The elements of a strip that chains compute, in whole blocks.
static int64_t in_chains(int64_t n)
{
	return n - n % YK_SMALL_BLOCK;
}

// The size of the blocks for a strip of n elements.
static enum yk_link_size size_of(int64_t n)
{
	const bool large = YK_LARGE_BLOCK > YK_SMALL_BLOCK && n % YK_LARGE_BLOCK == 0;
	return large ? YK_LINK_LARGE : YK_LINK_SMALL;
}

// Leaves the elements in place for chains to convert; only the remainder that does not fill a block
// is converted here.
static struct yk_arg load_narrow(struct yk_frame *f, const struct yk_step *st, char *from,
				 int64_t n)
{
	const int64_t done = in_chains(n);
	char *to = f->registers + st->place;
	if (done < n)
		st->load(to + done * 4, from + done * 2, 1, n - done);
	f->wide[st->value] = to;
	return (struct yk_arg){ from, YK_BLOCK };
}

static struct yk_arg load_input(struct yk_frame *f, const struct yk_step *st, const struct strip *s)
{
	const struct yk_prog *p = f->prog;
	const struct yk_operand *o = &p->in[st->input];
	char *to = f->registers + st->place, *from = in_place(p, o, s);

	f->wide[st->value] = NULL;
	if (from && !yk_is_half(o->dtype) && !st->copy)
		return (struct yk_arg){ from, YK_BLOCK };
	if (from && st->narrow)
		return load_narrow(f, st, from, s->n);
	if (from) {
		st->load(to, from, 1, s->n);
		return (struct yk_arg){ to, YK_BLOCK };
	}
	if (s->one && o->strides[p->rank - 1] == 0) {
		st->load(to, o->base + row_offset(p, o, s->at) * o->size, 0,
			 s->n < YK_BLOCK ? s->n : YK_BLOCK);
		return (struct yk_arg){ to, 0 };
	}
	load(p, o, s, st->load, to);
	return (struct yk_arg){ to, YK_BLOCK };
}

// ---- results ----

static void store_run(const struct yk_operand *o, yk_store_fn *fn, int64_t offset, int64_t stride,
		      const struct yk_arg *v, int64_t done, int64_t n)
{
	const size_t reg = yk_esize(yk_reg(o->dtype));
	if (v->step) {
		fn(o->base + offset * o->size, (const char *)v->at + (size_t)done * reg, stride, n);
		return;
	}
	for (int64_t i = 0; i < n; i += YK_BLOCK)
		fn(o->base + (offset + i * stride) * o->size, v->at, stride,
		   n - i < YK_BLOCK ? n - i : YK_BLOCK);
}

static void store(const struct yk_prog *p, const struct yk_operand *o, const struct strip *s,
		  const struct yk_arg *v)
{
	yk_store_fn *fn = ISA(yk_store)(o->dtype);
	const int64_t stride = o->strides[p->rank - 1];
	int64_t at[YOKE_MAX_RANK], col = s->col, done = 0;

	if (o->linear) {
		store_run(o, fn, s->first, 1, v, 0, s->n);
		return;
	}
	memcpy(at, s->at, sizeof at);
	while (done < s->n) {
		int64_t m = s->n - done < p->row - col ? s->n - done : p->row - col;
		const int64_t offset = row_offset(p, o, at) + col * stride;
		const int64_t rows =
			col || !v->step || yk_is_half(o->dtype) ? 1 : even_rows(p, at, s->n - done);
		if (rows > 1) {
			m = rows * p->row;
			yk_plane(o->size, o->base + offset * o->size,
				 (const char *)v->at + done * o->size, rows, p->row, row_step(p, o),
				 stride, p->row, 1);
		} else {
			store_run(o, fn, offset, stride, v, done, m);
		}
		done += m, col = 0;
		advance(p, at, p->rank - 2, rows > 1 ? rows : 1);
	}
}

// Copies the register just written to output `out` over the strip, with non-temporal stores, if the
// output is dense there.
static void stream(const struct yk_prog *p, int out, const struct strip *s, const struct yk_arg *v,
		   bool *written)
{
	char *there = in_place(p, &p->out[out], s);
	if (there)
		vf_stream_copy(there, v->at, (size_t)s->n * p->out[out].size);
	else
		store(p, &p->out[out], s, v);
	written[out] = true;
}

static bool random_run(struct yk_frame *f, const struct yk_step *s, const struct strip *at,
		       void *to)
{
	const struct yk_prog *p = f->prog;
	const struct yk_arg *b = &f->value[s->b], *c = &f->value[s->c];
	if (p->map->insn[s->a].op != YOKE_MAP_INDEX || !p->index.linear || b->step || c->step)
		return false;
	yk_philox_fill(to, (uint64_t)at->first, at->n, *(const uint64_t *)b->at,
		       *(const uint64_t *)c->at);
	return true;
}

// ---- chains ----

// Where a step writes: the output itself if possible, otherwise the register.
static char *target(struct yk_frame *f, const struct yk_step *s, const struct strip *at,
		    bool *written)
{
	const struct yk_prog *p = f->prog;
	char *there = NULL;
	if (s->out >= 0 && !yk_is_half(p->out[s->out].dtype))
		there = in_place(p, &p->out[s->out], at);
	if (there)
		written[s->out] = true;
	return there ? there : f->registers + s->place;
}

static void bind(struct yk_frame *f, const struct yk_form *form, struct yk_link *to,
		 const struct strip *at, bool *written)
{
	const struct yk_prog *p = f->prog;
	const enum yk_link_size size = size_of(at->n);
	to->fn = form->links.fn[size];
	to->loop = NULL;
	for (int k = 0; k < 3 && form->value[k] >= 0; k++) {
		const struct yk_arg *v = &f->value[form->value[k]];
		to->p[k] = (char *)(uintptr_t)v->at;
		to->mask[k] = v->step ? -1 : 0;
	}
	if (yk_is_link(form->narrow) && f->wide[form->value[0]])
		to->fn = form->narrow.fn[size];
	if (form->out < 0)
		return;
	const struct yk_operand *o = &p->out[form->out];
	if (yk_is_half(o->dtype)) {
		char *there = in_place(p, o, at);
		if (there)
			to->p[0] = there, written[form->out] = true;
		else
			to->fn = ISA(yk_link_store)(yoke_f32, false).fn[size];
		if (there && p->stream[form->out] && (uintptr_t)there % 64 == 0)
			to->fn = ISA(yk_link_store)(o->dtype, true).fn[size];
	} else if (p->stream[form->out] && written[form->out] && (uintptr_t)to->p[0] % 64 == 0) {
		to->fn = ISA(yk_link_store)(yoke_f32, true).fn[size];
	}
}

// The elements of a value from `done` on.
static struct yk_arg rest(const struct yk_frame *f, int value, int64_t done)
{
	struct yk_arg v = f->value[value];
	if (f->wide[value])
		return (struct yk_arg){ f->wide[value] + done * 4, YK_BLOCK };
	if (v.step)
		v.at = (const char *)v.at +
		       (size_t)done * yk_esize(yk_reg(f->prog->map->insn[value].dtype));
	return v;
}

// Computes the remainder of the strip that does not fill a block with the strip functions.
static void chain_rest(struct yk_frame *f, const struct yk_step *s, int64_t done,
		       const struct strip *at)
{
	const struct yk_prog *p = f->prog;
	struct yk_arg a = rest(f, s->a, done), b = rest(f, s->b, done), c = rest(f, s->c, done),
		      v = rest(f, s->value, done);
	char *to = (char *)(uintptr_t)v.at, *there;
	s->fn(to, &a, &b, &c, at->n - done);
	if (s->round)
		s->round(to, &v, NULL, NULL, at->n - done);
	if (s->out >= 0 && yk_is_half(p->out[s->out].dtype) &&
	    (there = in_place(p, &p->out[s->out], at)))
		ISA(yk_store)(p->out[s->out].dtype)(there + done * 2, to, 1, at->n - done);
}

static void run_chain(struct yk_frame *f, const struct yk_step *first, const struct strip *at,
		      bool *written)
{
	const struct yk_prog *p = f->prog;
	const struct yk_step *end = first + first->chain, *s;
	const struct yk_form *form = &p->form[first->form];
	const int64_t done = in_chains(at->n);
	struct yk_link *link = f->link;

	for (s = first; s < end; s++)
		if (!p->uniform[s->value])
			f->value[s->value] = (struct yk_arg){ target(f, s, at, written),
							      s->local ? 0 : YK_BLOCK };
	do
		bind(f, form, link, at, written);
	while (link++, (form++)->links.fn[YK_LINK_SMALL] != ISA(yk_link_end).fn[YK_LINK_SMALL]);
	ISA(yk_chain_run)(f->link, size_of(at->n), done);
	for (s = first; s < end && done < at->n; s++)
		if (!p->uniform[s->value])
			chain_rest(f, s, done, at);
}

// True if the program may compute an element twice.
static bool repeatable(const struct yk_prog *p)
{
	for (int o = 0; o < p->nout; o++)
		if (p->over[o] || p->stream[o])
			return false;
	return true;
}

// True if the last strip, of n elements, was computed entirely by one chain on operands in place,
// or the same for a row.
static bool one_chain(struct yk_frame *f, int64_t n, const bool *written)
{
	const struct yk_prog *p = f->prog;
	int chains = 0;

	f->splats = 0;
	for (int o = 0; o < p->nout; o++)
		if (!written[o])
			return false;
	for (int k = 0; k < p->nstep; k++) {
		const struct yk_step *s = &p->step[k];
		const struct yk_arg *v = &f->value[s->value];
		if (p->uniform[s->value])
			continue;
		if (s->chain) {
			k += s->chain - 1;
			chains++;
		} else if (s->kind != YK_STEP_INPUT) {
			return false;
		} else if ((uintptr_t)v->at - (uintptr_t)f->registers < p->frame) {
			if (v->step || p->rank != 2)
				return false;
			f->splat[f->splats++] = s;
		}
	}
	return chains == 1 && p->rank <= 2 &&
	       (n % YK_SMALL_BLOCK == 0 || (n > YK_SMALL_BLOCK && repeatable(p)));
}

void ISA(yk_frame_run)(struct yk_frame *f, int64_t first, int64_t n)
{
	const struct yk_prog *p = f->prog;
	struct strip strip;
	bool written[YOKE_MAP_MAX_OUTPUTS] = { false };

	strip_init(&strip, p, first, n);
	for (int k = 0; k < p->nstep; k++) {
		const struct yk_step *s = &p->step[k];
		struct yk_arg *v = &f->value[s->value];

		if (p->uniform[s->value])
			continue;
		if (s->chain) {
			run_chain(f, s, &strip, written);
			k += s->chain - 1;
			continue;
		}
		if (s->kind == YK_STEP_INPUT) {
			*v = load_input(f, s, &strip);
			continue;
		}
		const bool past = s->out >= 0 && p->stream[s->out]; // use non-temporal stores
		char *to = past ? f->registers + s->place : target(f, s, &strip, written);
		if (s->kind == YK_STEP_INDEX)
			load_index(p, &strip, (int64_t *)to);
		else if (s->kind != YK_STEP_RANDOM || !random_run(f, s, &strip, to))
			compute(f, s, to, n);
		*v = (struct yk_arg){ to, YK_BLOCK };
		if (s->round)
			s->round(to, v, NULL, NULL, n);
		if (past)
			stream(p, s->out, &strip, v, written);
	}
	for (int o = 0; o < p->nout; o++)
		if (!written[o])
			store(p, &p->out[o], &strip, &f->value[p->map->out[o]]);
	f->shifts = one_chain(f, n, written);
}

// Compares the links of the second strip with those of the first, and finds a loop for the strips
// after them.
static void find_shifts(struct yk_frame *f, enum yk_link_size size)
{
	const struct yk_prog *p = f->prog;

	f->link->loop = ISA(yk_link_loop)(f->link, size);
	f->moves = 0;
	for (int i = 0; i < p->nform; i++) {
		const struct yk_form *form = &p->form[i];
		for (int k = 0; k < 3; k++) {
			int64_t by = form->value[k] < 0 ? 0 :
							  (int64_t)((uintptr_t)f->link[i].p[k] -
								    (uintptr_t)f->was[i].p[k]);
			if (by)
				f->move[f->moves++] = (struct yk_move){ &f->link[i].p[k], by };
			// non-temporal stores were selected by alignment
			if (form->out >= 0 && p->stream[form->out] && by % 64)
				f->shifts = false;
		}
	}
}

void ISA(yk_frame_next)(struct yk_frame *f, int64_t strip, int64_t first, int64_t n)
{
	const enum yk_link_size size = size_of(n);

	if (strip > 1 && f->shifts) {
		for (int i = 0; i < f->moves; i++)
			*f->move[i].at += f->move[i].by;
		for (int i = 0; i < f->splats; i++) {
			const struct yk_step *s = f->splat[i];
			const struct yk_operand *o = &f->prog->in[s->input];
			s->load(f->registers + s->place,
				o->base + first / f->prog->row * o->strides[0] * o->size, 0,
				size == YK_LINK_LARGE ? YK_LARGE_BLOCK : YK_SMALL_BLOCK);
		}
		ISA(yk_chain_run)(f->link, size, n);
		return;
	}
	if (strip == 1 && f->shifts)
		for (int i = 0; i < f->prog->nform; i++)
			memcpy(f->was[i].p, f->link[i].p, sizeof f->was[i].p);
	ISA(yk_frame_run)(f, first, n);
	if (strip == 1 && f->shifts)
		find_shifts(f, size);
	else if (strip > 1)
		f->shifts = false; // strips differ in more than addresses
}
