// SPDX-License-Identifier: Apache-2.0
// Builds cases: draws random extents, layouts and values.
#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "conform/case.h"
#include "yoke.h"

// ---- random numbers ----

uint64_t yk_draw(struct yk_case *c)
{
	uint64_t z = c->state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

int64_t yk_draw_int(struct yk_case *c, int64_t lo, int64_t hi)
{
	return lo + (int64_t)(yk_draw(c) % (uint64_t)(hi - lo + 1));
}

double yk_draw_real(struct yk_case *c, double lo, double hi)
{
	return lo + (hi - lo) * (double)(yk_draw(c) >> 11) * 0x1p-53;
}

bool yk_draw_one_in(struct yk_case *c, int n)
{
	return yk_draw(c) % (uint64_t)n == 0;
}

int64_t yk_draw_size(struct yk_case *c, int64_t max)
{
	static const int64_t size[] = {
		1,    2,    3,     4,     5,     7,      8,    9,    13,   15,
		16,   17,   31,    32,    33,    48,     61,   63,   64,   65,
		96,   127,  128,   129,   191,   255,    256,  257,  384,  511,
		512,  513,  1000,  1023,  1024,  1025,   2047, 2048, 2049, 4097,
		5003, 8191, 16385, 20011, 65537, 131073,
	};
	int n = 0;
	while (n < (int)(sizeof size / sizeof *size) && size[n] <= max)
		n++;
	return n ? size[yk_draw_int(c, 0, n - 1)] : 1;
}

// ---- memory ----

void *yk_case_alloc(struct yk_case *c, uint64_t bytes)
{
	void *p = bytes < SIZE_MAX - 64 ? yk_arena_alloc(c->memory, bytes + 1) : NULL;
	if (!p)
		longjmp(*c->no_memory, 1);
	return p;
}

int64_t yk_count_of(int rank, const int64_t *dims)
{
	int64_t n = 1;
	for (int i = 0; i < rank; i++)
		n *= dims[i];
	return n;
}

void yk_case_note(struct yk_case *c, const char *fmt, ...)
{
	size_t n = strlen(c->note);
	va_list ap;

	if (n + 1 < sizeof c->note && n)
		c->note[n++] = ' ';
	va_start(ap, fmt);
	yk_vsnprintf(c->note + n, sizeof c->note - n, fmt, ap);
	va_end(ap);
}

// ---- views ----

void yk_case_op(struct yk_case *c, int code)
{
	c->op = (struct yoke_op){ .size = sizeof c->op,
				  .code = (uint16_t)code,
				  .out = c->view };
	c->views = 0;
	c->rejects = false;
	c->note[0] = '\0';
}

// Appends a view; results must come first.
static uint32_t add(struct yk_case *c, bool result)
{
	uint32_t k = c->views++;
	c->view[k] = (struct yoke_view){ .kind = YOKE_VIEW_NONE };
	c->array[k] = (struct yk_array){ .alias = -1 };
	if (result)
		c->op.nout++;
	else
		c->op.nin++;
	c->op.in = c->view + c->op.nout;
	return k;
}

// Draws the strides of an array; returns its element count, and *low, the index of the first
// element in it.
static int64_t draw_strides(struct yk_case *c, int rank, const int64_t *dims, int layout,
			    int64_t *strides, int64_t *low)
{
	int order[YOKE_MAX_RANK], kind = yk_case_plain(c) ? YK_DENSE : layout & 3;
	int64_t n = 1;
	bool gaps = kind != YK_DENSE && yk_draw_one_in(c, 2);
	bool permute = kind == YK_ANY && yk_draw_one_in(c, 3);
	bool back = kind == YK_ANY && yk_draw_one_in(c, 6);
	bool repeat = layout & YK_REPEATED && yk_draw_one_in(c, 3);

	*low = 0;
	for (int d = 0; d < rank; d++)
		order[d] = d;
	for (int d = rank - 1; permute && d > 0; d--) {
		int e = (int)yk_draw_int(c, 0, d), t = order[d];
		order[d] = order[e], order[e] = t;
	}
	for (int k = rank - 1; k >= 0; k--) {
		int d = order[k];
		if (repeat && yk_draw_one_in(c, 2)) {
			strides[d] = 0;
			continue;
		}
		bool gap =
			gaps && (kind == YK_ANY || d < rank - 1) && yk_draw_one_in(c, 2);
		strides[d] = n;
		if (gap && kind == YK_ANY && d == rank - 1)
			strides[d] = n * yk_draw_int(c, 2, 3);
		else if (gap)
			strides[d] = n + yk_draw_int(c, 1, 5);
		n = strides[d] * (dims[d] > 0 ? dims[d] : 1);
		if (back && yk_draw_one_in(c, 2)) {
			*low += strides[d] * (dims[d] > 0 ? dims[d] - 1 : 0);
			strides[d] = -strides[d];
		}
	}
	return n;
}

static uint32_t add_buffer(struct yk_case *c, bool result, int dtype, int rank,
			   const int64_t *dims, int layout)
{
	uint32_t k = add(c, result);
	struct yoke_view *v = &c->view[k];
	struct yk_array *a = &c->array[k];
	int64_t low;

	v->kind = YOKE_VIEW_BUFFER;
	v->dtype = (uint8_t)dtype;
	v->rank = (uint8_t)rank;
	for (int i = 0; i < rank; i++)
		v->dims[i] = dims[i];
	a->n = yk_count_of(rank, dims);
	a->bytes = (uint64_t)draw_strides(c, rank, dims, layout, v->strides, &low) *
		   yoke_dtype_size(dtype);
	a->origin = (uint64_t)low * yoke_dtype_size(dtype);
	if (!yk_case_plain(c) && yk_draw_one_in(c, 3))
		a->shift = (uint32_t)yk_draw_int(c, 1, 9);
	a->data = yk_case_alloc(c, a->bytes);
	return k;
}

bool yk_next_index(int64_t *i, const struct yoke_view *v)
{
	for (int d = v->rank - 1; d >= 0; d--) {
		if (++i[d] < v->dims[d])
			return true;
		i[d] = 0;
	}
	return false;
}

static char *element_at(const struct yoke_view *v, const struct yk_array *a,
			const int64_t *i)
{
	int64_t at = 0;
	for (int d = 0; d < v->rank; d++)
		at += i[d] * v->strides[d];
	return a->data + (int64_t)a->origin + at * (int64_t)yoke_dtype_size(v->dtype);
}

// Reads the elements back as stored, row major.
static void read_back(struct yk_case *c, uint32_t k)
{
	const struct yoke_view *v = &c->view[k];
	struct yk_array *a = &c->array[k];
	int64_t i[YOKE_MAX_RANK] = { 0 }, n = 0;

	a->num = yk_case_alloc(c, (uint64_t)a->n * sizeof *a->num);
	do {
		if (n < a->n)
			a->num[n++] = yk_num_load(element_at(v, a, i), v->dtype);
	} while (yk_next_index(i, v));
}

uint32_t yk_case_out(struct yk_case *c, int dtype, int rank, const int64_t *dims,
		     int layout)
{
	uint32_t k = add_buffer(c, true, dtype, rank, dims, layout & 3);
	c->array[k].want =
		yk_case_alloc(c, (uint64_t)c->array[k].n * sizeof(struct yk_expected));
	return k;
}

static struct yk_num draw_number(struct yk_case *c, int dtype, double lo, double hi)
{
	struct yk_num x = { 0, 0 };
	if (yk_num_real(dtype))
		x.f = yk_num_round(yk_draw_real(c, lo, hi), dtype);
	else
		x.i = yk_num_wrap((uint64_t)yk_draw_int(c, (int64_t)lo, (int64_t)hi),
				  dtype);
	return x;
}

uint32_t yk_case_in(struct yk_case *c, int dtype, int rank, const int64_t *dims,
		    int layout, double lo, double hi)
{
	const size_t size = yoke_dtype_size(dtype);
	if (layout & YK_OR_SCALAR && !yk_case_plain(c) && yk_draw_one_in(c, 6)) {
		uint32_t k = add(c, false);
		struct yoke_view *v = &c->view[k];
		struct yk_num x = draw_number(c, dtype, lo, hi);
		*v = (struct yoke_view){ .kind = YOKE_VIEW_SCALAR,
					 .dtype = (uint8_t)dtype,
					 .rank = (uint8_t)rank,
					 .offset = yk_num_bits(x, dtype) };
		for (int i = 0; i < rank; i++)
			v->dims[i] = dims[i];
		c->array[k].n = yk_count_of(rank, dims);
		c->array[k].num = yk_case_alloc(c, (uint64_t)c->array[k].n * sizeof x);
		for (int64_t i = 0; i < c->array[k].n; i++)
			c->array[k].num[i] = x;
		return k;
	}
	uint32_t k = add_buffer(c, false, dtype, rank, dims, layout);
	struct yk_array *a = &c->array[k];
	for (uint64_t at = 0; at + size <= a->bytes; at += size)
		yk_num_store(a->data + at, draw_number(c, dtype, lo, hi), dtype);
	read_back(c, k);
	return k;
}

uint32_t yk_case_in_of(struct yk_case *c, int dtype, int rank, const int64_t *dims,
		       int layout, const struct yk_num *num)
{
	uint32_t k = add_buffer(c, false, dtype, rank, dims, layout & 3);
	struct yk_array *a = &c->array[k];
	int64_t i[YOKE_MAX_RANK] = { 0 }, n = 0;

	memset(a->data, 0xff, a->bytes); // gaps: no numbers
	do {
		if (n < a->n)
			yk_num_store(element_at(&c->view[k], a, i), num[n++], dtype);
	} while (yk_next_index(i, &c->view[k]));
	read_back(c, k);
	return k;
}

void yk_case_spoil(struct yk_case *c, uint32_t k, int axis, const struct yk_num *from, int64_t many)
{
	const struct yoke_view *v = &c->view[k];
	int64_t i[YOKE_MAX_RANK] = { 0 };

	do {
		const int64_t first = from[i[0]].i;
		if (c->array[k].n && i[axis] >= first && i[axis] - first < many)
			memset(element_at(v, &c->array[k], i), 0xff, yoke_dtype_size(v->dtype));
	} while (yk_next_index(i, v));
}

uint32_t yk_case_in_by(struct yk_case *c, int dtype, int rank, const int64_t *dims,
		       int layout, struct yk_num (*fn)(struct yk_case *, int, int64_t))
{
	int64_t n = yk_count_of(rank, dims);
	struct yk_num *num = yk_case_alloc(c, (uint64_t)n * sizeof *num);
	for (int64_t i = 0; i < n; i++)
		num[i] = fn(c, dtype, i);
	return yk_case_in_of(c, dtype, rank, dims, layout, num);
}

uint32_t yk_case_value(struct yk_case *c, int dtype, struct yk_num x)
{
	if (yk_draw_one_in(c, 2))
		return yk_case_in_of(c, dtype, 0, NULL, YK_DENSE, &x);
	uint32_t k = add(c, false);
	c->view[k].kind = YOKE_VIEW_SCALAR;
	c->view[k].dtype = (uint8_t)dtype;
	c->view[k].offset = yk_num_bits(x, dtype);
	c->array[k].n = 1;
	c->array[k].num = yk_case_alloc(c, sizeof x);
	c->array[k].num[0] = yk_num_of_bits(c->view[k].offset, dtype);
	return k;
}

int yk_case_beside(struct yk_case *c, int dtype)
{
	const int acc = yk_num_acc(dtype);
	return acc != dtype && yk_draw_one_in(c, 2) ? acc : dtype;
}

double yk_case_rounding(bool tf32, int dtype)
{
	return tf32 && dtype == yoke_f32 ? 0x1.01p-10 : 0; // twice 2^-11, and their product
}

uint32_t yk_case_none(struct yk_case *c)
{
	return add(c, false);
}

bool yk_case_alias(struct yk_case *c, uint32_t out, uint32_t in, int bit)
{
	struct yoke_view *y = &c->view[out], *x = &c->view[in];
	if (x->kind != YOKE_VIEW_BUFFER || c->array[in].alias >= 0 ||
	    x->dtype != y->dtype || x->rank != y->rank)
		return false;
	for (int i = 0; i < x->rank; i++)
		if (x->dims[i] != y->dims[i] || (x->strides[i] == 0 && x->dims[i] > 1))
			return false;
	for (int i = 0; i < x->rank; i++)
		y->strides[i] = x->strides[i];
	c->array[out].alias = (int32_t)in;
	c->array[out].data = NULL;
	c->op.alias_mask |= (uint64_t)1 << bit;
	return true;
}

// ---- results ----

void yk_expect_real(struct yk_expected *w, int dtype, double v, double abs)
{
	// twice the unit: the accumulator may have been rounded before
	double unit = yk_num_unit(dtype), min = yk_num_min(dtype);
	*w = (struct yk_expected){ .f = v,
			       .tol = abs + 2 * unit * fabs(v) + 2 * unit * min };
}
