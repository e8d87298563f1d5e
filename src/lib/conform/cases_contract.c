// SPDX-License-Identifier: Apache-2.0
// Cases of CONTRACT: a [..,M,K] b [..,K,N] -> [..,M,N], transposed, broadcast, with and without a
// map.
#include "config.h"

#include <math.h>
#include <string.h>

#include "conform/draw_program.h"
#include "conform/program.h"
#include "yoke.h"

struct form {
	int rank;
	int64_t lead[2], batch, m, n, k;
	bool whole; // lines are whole quads of 16 bytes, and aligned
};

enum { LARGE = 64 }; // libraries are not called for smaller extents

// Draws extents of products of at most `work` multiply-adds, so that the float64 reference is fast.
static struct form draw_form(struct yk_case *c)
{
	struct form f = { .batch = 1 };
	int64_t work = yk_draw_one_in(c, 5) ? 3000000 : 300000;
	int leads = yk_draw_one_in(c, 2) ? 0 : (int)yk_draw_int(c, 1, 2);

	if (yk_case_large(c)) { // sizes around the size of packed panels
		static const int64_t shape[][3] = { { 101, 139, 97 }, { 63, 67, 1031 },
						    { 61, 517, 53 },  { 517, 61, 53 },
						    { 7, 299, 515 },  { 15, 37, 1031 } };
		const int64_t *s = shape[yk_draw(c) % (sizeof shape / sizeof *shape)];
		f.m = s[0], f.n = s[1], f.k = s[2];
		f.rank = 2;
		return f;
	}
	if (c->number % 12 == 10) { // all large enough for implementations that reject small
				    // products
		f.m = yk_draw_int(c, LARGE, 2 * LARGE);
		f.n = yk_draw_int(c, LARGE, 2 * LARGE);
		f.k = yk_draw_int(c, LARGE, 2 * LARGE);
		f.rank = 2;
		return f;
	}
	if (c->number % 12 == 4) {
		f.m = 16 * yk_draw_int(c, 2, 10);
		f.n = 16 * yk_draw_int(c, 2, 10);
		f.k = 16 * yk_draw_int(c, 1, 20);
		f.rank = 2;
		f.whole = true;
		return f;
	}
	switch (yk_draw_int(c, 0, 3)) { // which extents may be large
	case 0:                         // one row: a matrix-vector product
		f.m = yk_draw_one_in(c, 2) ? 1 : yk_draw_size(c, 16);
		f.n = yk_draw_size(c, 1100);
		f.k = yk_draw_size(c, 1100);
		break;
	case 1:
		f.m = yk_draw_size(c, 1100);
		f.n = yk_draw_one_in(c, 2) ? 1 : yk_draw_size(c, 16);
		f.k = yk_draw_size(c, 600);
		break;
	default:
		f.m = yk_draw_size(c, 260);
		f.n = yk_draw_size(c, 260);
		f.k = yk_draw_size(c, 520);
	}
	while (f.m * f.n * f.k > work) {
		int64_t *max = f.m > f.n ? &f.m : &f.n;
		max = f.k > *max ? &f.k : max;
		*max = yk_draw_size(c, *max / 2);
	}
	for (int i = 0; i < leads; i++) {
		f.lead[i] =
			yk_draw_size(c, work / (f.m * f.n * f.k * f.batch) > 5 ? 5 : 1);
		f.batch *= f.lead[i];
	}
	if (!yk_case_plain(c) && yk_draw_one_in(c, 16))
		*(yk_draw_one_in(c, 2) ? &f.k : &f.m) = 0;
	f.rank = leads + 2;
	return f;
}

// Sometimes NaN or infinite, which affects only its own row.
static struct yk_num odd_number(struct yk_case *c, int dtype, int64_t index)
{
	(void)index;
	double x = yk_draw_one_in(c, 300)  ? INFINITY :
		   yk_draw_one_in(c, 1000) ? NAN :
					     yk_num_round(yk_draw_real(c, -1, 1), dtype);
	return (struct yk_num){ .f = x };
}

// A matrix with batch axes; half of the time stored transposed.
static uint32_t factor(struct yk_case *c, int dtype, const struct form *f, int64_t rows,
		       int64_t cols, bool odd)
{
	int64_t dims[4] = { f->lead[0], f->lead[1] };
	const int lead = f->rank - 2;
	bool transposed = yk_draw_one_in(c, 2), fixed = lead && yk_draw_one_in(c, 4);
	const bool byte = dtype == yoke_i8 || dtype == yoke_u8, all = byte && yk_draw_one_in(c, 2);
	double max = all                ? (dtype == yoke_u8 ? 255 : 127) :
		     byte               ? 5 :
		     yk_num_real(dtype) ? 1 :
					  1000;

	dims[lead] = transposed ? cols : rows;
	dims[lead + 1] = transposed ? rows : cols;
	const int layout = f->whole ? YK_DENSE : YK_ROWS;
	uint32_t k = odd && yk_num_real(dtype) && yk_draw_one_in(c, 8) ?
			     yk_case_in_by(c, dtype, f->rank, dims, layout, odd_number) :
			     yk_case_in(c, dtype, f->rank, dims, layout,
					dtype == yoke_u8 ? 0 : -max, max);
	if (f->whole)
		c->array[k].shift = 0;
	struct yoke_view *v = &c->view[k];
	struct yk_num *num = c->array[k].num;
	if (fixed) // the same first matrix for the whole batch
		for (int i = 0; i < lead; i++)
			v->strides[i] = 0;
	if (!fixed && !transposed)
		return k;
	if (transposed) {
		int64_t t = v->strides[lead];
		v->strides[lead] = v->strides[lead + 1];
		v->strides[lead + 1] = t;
		v->dims[lead] = rows;
		v->dims[lead + 1] = cols;
	}
	struct yk_num *seen = yk_case_alloc(c, (uint64_t)c->array[k].n * sizeof *seen);
	for (int64_t b = 0; b < f->batch; b++)
		for (int64_t i = 0; i < rows; i++)
			for (int64_t j = 0; j < cols; j++)
				seen[(b * rows + i) * cols + j] =
					num[(fixed ? 0 : b) * rows * cols +
					    (transposed ? j * rows + i : i * cols + j)];
	c->array[k].num = seen;
	return k;
}

// The product of one batch, in the dtype `to`.
static void multiply(struct yk_expected *y, const struct yk_num *a, const struct yk_num *b,
		     const struct form *f, int dtype, int to, bool tf32)
{
	const double unit = 2 * yk_num_unit(yk_num_acc(dtype)),
		     rounding = yk_case_rounding(tf32, dtype);
	for (int64_t i = 0; i < f->m; i++)
		for (int64_t j = 0; j < f->n; j++) {
			long double sum = 0; // for f64
			double abs = 0;
			uint64_t whole = 0;
			for (int64_t k = 0; k < f->k; k++) {
				struct yk_num x = a[i * f->k + k], z = b[k * f->n + j];
				sum += (long double)x.f * z.f;
				abs += fabs(x.f * z.f);
				whole += (uint64_t)x.i * (uint64_t)z.i;
			}
			if (yk_num_real(dtype))
				yk_expect_real(&y[i * f->n + j], to, (double)sum,
					     ((4 + sqrt((double)f->k)) * unit + rounding) * abs);
			else
				yk_expect_int(&y[i * f->n + j], yk_num_wrap(whole, to));
		}
}

// A matrix of these numbers, possibly stored transposed.
static void factor_of(struct yk_case *c, int dtype, int64_t rows, int64_t cols,
		      const struct yk_num *num)
{
	if (yk_draw_one_in(c, 2)) {
		yk_case_in_of(c, dtype, 2, (int64_t[]){ rows, cols }, YK_ROWS, num);
		return;
	}
	struct yk_num *turned =
		yk_case_alloc(c, (uint64_t)(rows * cols) * sizeof *turned);
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < cols; j++)
			turned[j * rows + i] = num[i * cols + j];
	uint32_t k = yk_case_in_of(c, dtype, 2, (int64_t[]){ cols, rows }, YK_ROWS, turned);
	struct yoke_view *v = &c->view[k];
	const int64_t stride = v->strides[0];
	v->strides[0] = v->strides[1], v->strides[1] = stride;
	v->dims[0] = rows, v->dims[1] = cols;
}

static bool counts(const struct yoke_map *map)
{
	for (int i = 0; i < map->ninsn; i++)
		if (map->insn[i].op == YOKE_MAP_INDEX)
			return true;
	return false;
}

// The product of some rows alone, as the case's part; only for an epilogue that does not use
// element indices.
static void add_part(struct yk_case *c, const struct form *f, uint32_t a, uint32_t b)
{
	struct yk_case *p = yk_case_alloc(c, sizeof *p);
	const int64_t matrix = yk_draw_int(c, 0, f->batch - 1),
		      rows = yk_draw_one_in(c, 2) ? 1 : yk_draw_int(c, 1, f->m),
		      first = yk_draw_int(c, 0, f->m - rows);
	const int64_t dims[] = { rows, f->n };

	*p = *c;
	p->state = yk_draw(c);
	yk_case_op(p, YOKE_OP_CONTRACT);
	c->part = p;
	c->part_at = (matrix * f->m + first) * f->n;
	for (uint32_t k = 0; k < c->op.nout; k++)
		yk_case_out(p, c->view[k].dtype, 2, dims, c->op.map ? YK_ANY : YK_ROWS);
	const int dtype = c->view[a].dtype;
	factor_of(p, dtype, rows, f->k, c->array[a].num + (matrix * f->m + first) * f->k);
	factor_of(p, dtype, f->k, f->n, c->array[b].num + matrix * f->k * f->n);
	for (uint32_t k = 2; k < c->op.nin; k++) {
		const uint32_t in = c->op.nout + k;
		yk_case_in_of(p, c->view[in].dtype, 2, dims, YK_ANY,
			      c->array[in].num + c->part_at);
	}
	p->op.map = c->op.map ? &p->map : NULL;
	p->op.nattr = c->op.nattr;
	memcpy(p->op.attr, c->op.attr, sizeof p->op.attr);
}

bool yk_make_contract(struct yk_case *c, int dtype)
{
	struct yk_expected in[YOKE_MAP_MAX_INPUTS], reg[YOKE_MAP_MAX_INSNS];
	bool mapped = yk_num_real(dtype) && c->number % 4 == 1;
	struct form f = draw_form(c);
	int64_t dims[4] = { f.lead[0], f.lead[1] };
	const bool byte = dtype == yoke_i8 || dtype == yoke_u8;
	const int to = !byte ? yk_case_beside(c, dtype) : yk_draw_one_in(c, 2) ? yoke_i32 : dtype;
	const bool by_row = yk_draw_one_in(c, 3);

	dims[f.rank - 2] = f.m;
	dims[f.rank - 1] = f.n;
	yk_case_op(c, YOKE_OP_CONTRACT);
	if (mapped)
		yk_draw_epilogue(c, to);
	for (int k = 0; k < (mapped ? c->map.nout : 1); k++)
		yk_case_out(c, mapped ? c->map.insn[c->map.out[k]].dtype : to, f.rank, dims,
			    mapped ? YK_ANY : YK_ROWS);
	uint32_t a = factor(c, dtype, &f, f.m, f.k, !by_row),
		 b = factor(c, dtype, &f, f.k, f.n, !by_row);
	c->op.nattr = 2;
	c->op.attr[0].i = to;
	c->op.attr[1].i = by_row;
	if (mapped) {
		c->op.map = &c->map;
		for (int k = 1; k < c->map.nin; k++)
			yk_case_in(c, c->map.insn[k].dtype, f.rank, dims,
				   YK_ANY | YK_REPEATED | YK_OR_SCALAR, -1, 1);
	}
	const int64_t each = f.m * f.n;
	struct yk_expected *y = yk_case_alloc(c, (uint64_t)(f.batch * each) * sizeof *y);
	for (int64_t i = 0; i < f.batch; i++)
		multiply(y + i * each, c->array[a].num + i * f.m * f.k,
			 c->array[b].num + i * f.k * f.n, &f, dtype, to, c->tf32);
	for (int64_t i = 0; i < f.batch * each; i++) {
		if (!mapped) {
			c->array[0].want[i] = y[i];
			continue;
		}
		in[0] = y[i]; // rounded to the dtype, within its tolerance
		in[0].f = yk_num_round(in[0].f, to);
		for (int k = 1; k < c->map.nin; k++) {
			struct yk_num x = c->array[b + (uint32_t)k].num[i];
			in[k] = (struct yk_expected){ .f = x.f, .i = x.i };
		}
		yk_program_at(&c->map, in, i, c->flushes, reg);
		for (int k = 0; k < c->map.nout; k++)
			c->array[k].want[i] = reg[c->map.out[k]];
	}
	yk_case_note(c, "M %lld N %lld K %lld to %s%s%s", (long long)f.m, (long long)f.n,
		     (long long)f.k, yoke_dtype_name(to), mapped ? " with a map" : "",
		     by_row ? " by row" : "");
	if (by_row && f.m && f.k && !(mapped && counts(&c->map)))
		add_part(c, &f, a, b);
	return true;
}
