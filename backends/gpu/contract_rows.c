// SPDX-License-Identifier: Apache-2.0
// Contractions with few rows or, after swapping, few columns: cl/contract_rows.cl. The order of
// summation differs from other variants, so problems whose rows must not depend on the number of
// rows (by_row) are refused.
#include "config.h"

#include "contract.h"

#define COPY "contract_rows_copy"
enum {
	FEW = 16,
	PIECE = 1024, // as in the kernel text
	LONG = 1024   // max k where the groups of contract_rows_n are too few for a GPU
};

// Division of work: rows of a at a time, vectors of columns per item, columns per group.
struct cut {
	int rows, vectors, columns, vector, wide, slices;
	int64_t span; // columns per group of contract_rows_n
};

// Sums stay in registers: 16 or more on CPUs, where one item has to keep the core busy.
static struct cut cut_of(const struct yk_gpu_device *d, const struct yk_gpu_contract *c)
{
	bool dense = c->s.b_n == 1;
	int m = (int)(c->s.m < FEW ? c->s.m : FEW);
	struct cut t = { .vector = 1, .wide = 32, .slices = 8, .vectors = 1, .columns = 4 };

	if (d->cpu_like) {
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

static bool is_for_library(const struct yk_gpu_device *d, const struct yk_gpu_contract *c)
{
	const struct yk_gpu_library *l = yk_gpu_driver.library[0];
	struct yk_gpu_contract form = *c;

	return l && l->fast && l->fast(d, c->dtype) && l->variant.takes(d, &form);
}

static bool takes(const struct yk_gpu_device *d, struct yk_gpu_contract *c)
{
	struct yk_gpu_contraction *s = &c->s;
	const struct yk_gpu_contract given = *c;

	if (s->n <= FEW && s->m > s->n)
		yk_gpu_contract_swap(c);
	struct cut t = cut_of(d, c);
	size_t items = (size_t)t.wide * (size_t)t.slices;

	if (!yk_gpu_float(c->dtype) || c->by_row || s->m > FEW || !s->k || items > d->max_group ||
	    items > d->max_items[0] || (size_t)t.slices > d->max_items[1] ||
	    items * 4 > d->local_bytes)
		return false;
	if (s->b_n != 1)
		return s->b_k == 1;
	// a library that divides k among groups is faster then, as for the gradients of adapters
	const bool few_groups = !d->cpu_like && s->m > 1 && s->k > LONG &&
				yk_gpu_ceil_div(s->n, t.span) * c->batch < (int64_t)d->info.units;
	return s->n >= t.span && !(few_groups && is_for_library(d, &given));
}

// True for contract_rows_t, which first copies the rows of a.
static bool by_columns(const struct yk_gpu_contract *c)
{
	return c->s.b_n != 1;
}

static bool copies(const struct yk_gpu_contract *c)
{
	return by_columns(c) && c->s.a_k != 1 && c->s.k > 1;
}

static int kernel_of(struct yk_gpu_device *d, const struct yk_gpu_contract *c,
		     const char *name, bool result, struct yk_gpu_entry **to)
{
	const struct cut t = cut_of(d, c);
	struct yk_gpu_build b = { .file = "contract_rows.cl", .name = name };

	yk_gpu_define(&b, "VEC_WIDTH", t.vector);
	yk_gpu_define(&b, "ROWS", t.rows);
	yk_gpu_define(&b, "ACROSS", t.wide);
	yk_gpu_define(&b, "SLICES", t.slices);
	yk_gpu_define(&b, "NV", t.vectors);
	yk_gpu_define(&b, "NC", t.columns);
	return yk_gpu_contract_kernel(d, c, &b, result, to);
}

static const char *name_of(const struct yk_gpu_contract *c)
{
	return by_columns(c) ? "contract_rows_t" : "contract_rows_n";
}

// Copies rows of a densely to the workspace and changes c and its view of a accordingly.
static int copy(struct yk_gpu_record *r, struct yk_gpu_contract *c)
{
	struct cut t = cut_of(r->device, c);
	struct yk_gpu_contraction *s = &c->s;
	const int64_t groups[3] = { yk_gpu_ceil_div(s->k, PIECE), s->m, c->batch };
	const size_t items[2] = { (size_t)t.wide * (size_t)t.slices, 1 };
	const uint64_t size = c->dtype == yoke_f32 ? 4 : 2;
	struct yk_gpu_entry *kernel;
	uint64_t bytes;
	int err = kernel_of(r->device, c, COPY, false, &kernel);

	if (err)
		return err;
	if (__builtin_mul_overflow((uint64_t)s->m * (uint64_t)s->k, size, &bytes) ||
	    __builtin_mul_overflow(bytes, (uint64_t)c->batch, &bytes))
		return yk_gpu_error(YOKE_ENOMEM, "the workspace size exceeds 64 bits");
	yk_gpu_workspace(r, bytes);
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view(r, &c->op->workspace);
	yk_gpu_arg_view(r, c->a);
	yk_gpu_contract_arg(r, s, groups);
	err = yk_gpu_contract_enqueue(r, groups, items, COPY);
	c->a = &c->op->workspace;
	s->a_m = s->k;
	s->a_k = 1;
	int64_t stride = s->m * s->k;
	for (int i = YK_GPU_BATCH - 1; i >= 0; i--) {
		s->a[i] = stride;
		stride *= s->d[i];
	}
	return err;
}

static int record(struct yk_gpu_record *r, const struct yk_gpu_contract *given)
{
	struct yk_gpu_contract c = *given;
	struct cut t = cut_of(r->device, &c);
	bool columns = by_columns(&c);
	const int64_t groups[3] = { yk_gpu_ceil_div(c.s.n, columns ? t.columns : t.span), 1,
				    c.batch };
	const size_t items[2] = { (size_t)(columns ? t.wide * t.slices : t.wide),
				  columns ? 1 : (size_t)t.slices };
	struct yk_gpu_entry *kernel;
	int err = kernel_of(r->device, &c, name_of(&c), true, &kernel);

	if (!err && copies(&c))
		err = copy(r, &c);
	if (err)
		return err;
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view(r, c.a);
	yk_gpu_arg_view(r, c.b);
	return yk_gpu_contract_launch(r, &c, groups, items, name_of(&c));
}

const struct yk_gpu_variant yk_gpu_contract_rows = { takes, record };
