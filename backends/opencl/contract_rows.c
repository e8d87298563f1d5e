// SPDX-License-Identifier: Apache-2.0
// Contractions with few rows or, swapped, few columns: cl/contract_rows.cl.
#include "config.h"

#include <stdio.h>

#include "contract.h"

enum { FEW = 16 };

// How a kernel is cut: rows of a at once, vectors of columns of an item, columns of a group.
struct cut {
	int rows, vectors, columns, vector, wide, slices;
	int64_t span; // columns of a group of contract_rows_n
};

// Sums stay in registers: 16 of them and more on CPUs, which one item has to keep busy.
static struct cut cut_of(const struct yk_cl_device *d, const struct yk_cl_contract *c)
{
	bool dense = c->s.b_n == 1;
	int m = (int)(c->s.m < FEW ? c->s.m : FEW);
	struct cut t = { .vector = 1, .wide = 32, .slices = 8, .vectors = 1, .columns = 4 };

	if (d->loops) {
		t.vector = d->vector < 4 ? 4 : d->vector;
		t.wide = t.slices = 1;
		t.rows = m == 1 ? 1 : m <= 4 ? 4 : m <= 8 || !dense ? 8 : 16;
		t.vectors = t.rows == 1 ? 16 : t.rows == 4 ? 4 : t.rows == 8 ? 2 : 1;
		t.columns = t.rows == 1 ? 4 : t.rows == 4 ? 4 : 2;
	} else {
		t.rows = m == 1 ? 1 : m <= 4 ? 4 : m <= 8 ? 8 : 16;
		t.columns = t.rows <= 4 ? 4 : 16 / t.rows;
	}
	t.span = (int64_t)t.wide * t.vectors * t.vector;
	return t;
}

static bool takes(const struct yk_cl_device *d, struct yk_cl_contract *c)
{
	struct yk_cl_contraction *s = &c->s;

	if (s->n <= FEW && s->m > s->n)
		yk_cl_contract_swap(c);
	struct cut t = cut_of(d, c);
	bool floats = c->dtype == yoke_f32 || c->dtype == yoke_f16 ||
		      c->dtype == yoke_bf16;
	size_t items = (size_t)t.wide * (size_t)t.slices;

	if (!floats || s->m > FEW || !s->k || items > d->max_group ||
	    items > d->max_items[0] || (size_t)t.slices > d->max_items[1] ||
	    items * 4 > d->local_bytes)
		return false;
	if (s->b_n == 1)
		return s->n >= t.span;
	return s->b_k == 1 && (s->a_k == 1 || s->k == 1);
}

static int kernel_of(struct yk_cl_device *d, const struct yk_cl_contract *c,
		     struct yk_cl_entry **to)
{
	struct cut t = cut_of(d, c);
	char defines[128];

	snprintf(defines, sizeof defines,
		 "-DVEC_WIDTH=%d -DROWS=%d -DACROSS=%d -DSLICES=%d -DNV=%d -DNC=%d", t.vector,
		 t.rows, t.wide, t.slices, t.vectors, t.columns);
	return yk_cl_contract_kernel(d, c, "contract_op.cl contract_rows.cl", defines,
				     c->s.b_n == 1 ? "contract_rows_n" :
						     "contract_rows_t", to);
}

static int prepare(struct yk_cl_device *d, const struct yk_cl_contract *c,
		   uint64_t *bytes)
{
	struct yk_cl_entry *kernel;

	*bytes = 0;
	return kernel_of(d, c, &kernel);
}

static int run(struct yk_cl_queue *q, const struct yk_cl_contract *c)
{
	struct cut t = cut_of(q->device, c);
	bool dense = c->s.b_n == 1;
	const int64_t groups[3] = { yk_cl_parts(c->s.n, dense ? t.span : t.columns), 1,
				    c->batch };
	const size_t items[2] = { (size_t)(dense ? t.wide : t.wide * t.slices),
				  dense ? (size_t)t.slices : 1 };
	struct yk_cl_entry *kernel;
	int err = kernel_of(q->device, c, &kernel);

	if (err)
		return err;
	struct yk_cl_args args = { kernel->kernel, 0, CL_SUCCESS };
	yk_cl_arg_view(&args, c->a);
	yk_cl_arg_view(&args, c->b);
	return yk_cl_contract_launch(q, c, &args, groups, items, "contract_rows");
}

const struct yk_cl_variant yk_cl_contract_rows = { takes, prepare, run };
