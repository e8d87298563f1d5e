// SPDX-License-Identifier: Apache-2.0
// QLINEAR: cl/qlinear_rows.cl for few rows of x, cl/qlinear_tiles.cl for more.
#include "config.h"

#include "quant.h"

// Matches struct qlinear of cl/qlinear.cl.
struct qlinear {
	struct yk_gpu_rows x, y;
	int64_t m, n, k, step;
};

enum { ROWS, TILES, IMPLS };
static const char *const names[IMPLS] = { "rows", "tiles" };

enum {
	FEW = 8,     // max rows of x for qlinear_rows
	LONG = 1024, // min groups of a row of w for more than a warp of items
	MANY_ITEMS = 128,
	STEPS_OF_GROUP = 4
};

// ---- few rows ----

struct few {
	int rows, columns;
	size_t items;
};

static struct few few_of(const struct yk_gpu_device *d, const struct qlinear *s)
{
	struct few f = { .rows = 1, .columns = 4, .items = d->warp ? (size_t)d->warp : 32 };

	while (f.rows < s->m)
		f.rows *= 2;
	if (f.rows > 2)
		f.columns = 2;
	if (s->k >= LONG * YK_GPU_QUANT_GROUP / STEPS_OF_GROUP)
		f.items = MANY_ITEMS;
	if (d->cpu_like)
		f.items = 1;
	while (f.items > d->max_group || f.items > d->max_items[0])
		f.items /= 2;
	return f;
}

// ---- many rows ----

struct tile {
	int items_m, items_n, m, n; // items; elements of y per item
};
// Best first for large results, then smaller ones.
static const struct tile gpu[] = { { 16, 16, 8, 8 }, { 16, 16, 4, 4 }, { 8, 8, 4, 4 } };
static const struct tile cpu_like = { 1, 1, 4, 32 };

static bool fits(const struct yk_gpu_device *d, const struct tile *t)
{
	const size_t items = (size_t)(t->items_m * t->items_n);

	return items <= d->max_group && (size_t)t->items_n <= d->max_items[0] &&
	       (size_t)t->items_m <= d->max_items[1] &&
	       (size_t)YK_GPU_QUANT_GROUP * (size_t)(t->items_m * t->m + t->items_n * t->n + 8) *
			       sizeof(float) <=
		       d->local_bytes;
}

static int64_t groups_of(const struct tile *t, const struct qlinear *s)
{
	return yk_gpu_pieces(s->m, t->items_m * t->m) * yk_gpu_pieces(s->n, t->items_n * t->n);
}

// The first that keeps all units busy, or else the smallest that fits; NULL: none fits.
static const struct tile *tile_of(const struct yk_gpu_device *d, const struct qlinear *s)
{
	const struct tile *best = NULL;

	if (d->cpu_like)
		return fits(d, &cpu_like) ? &cpu_like : NULL;
	for (size_t i = 0; i < sizeof gpu / sizeof *gpu; i++) {
		if (!fits(d, &gpu[i]))
			continue;
		best = &gpu[i];
		if (groups_of(best, s) >= (int64_t)d->info.units)
			break;
	}
	return best;
}

// ---- the op ----

static struct qlinear args_of(const struct yoke_op *op)
{
	return (struct qlinear){ .x = yk_gpu_rows_of(&op->in[0]),
				 .y = yk_gpu_rows_of(&op->out[0]),
				 .m = yk_gpu_count(&op->in[0]),
				 .n = op->in[1].dims[0],
				 .k = op->attr[1].i,
				 .step = op->in[1].strides[0] };
}

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct yoke_view *x = &op->in[0], *w = &op->in[1], *y = &op->out[0];

	if (op->nin != 2 || op->nout != 1 || !yk_gpu_is_quantized(op, w) || !yk_gpu_is_rows(x) ||
	    !yk_gpu_is_rows(y) || x->dtype != y->dtype || x->rank != y->rank ||
	    yk_gpu_cols(x) != op->attr[1].i || yk_gpu_cols(y) != w->dims[0] ||
	    d->info.max_args < sizeof(struct qlinear) + 6 * 8)
		return 0;
	for (int i = 0; i < x->rank - 1; i++)
		if (x->dims[i] != y->dims[i])
			return 0;
	const struct qlinear s = args_of(op);
	if (s.m <= FEW)
		return 1u << ROWS;
	return tile_of(d, &s) ? 1u << TILES : 0;
}

struct launch {
	struct yk_gpu_build build;
	size_t items[2], group[2];
};

// Builds the kernel for this layout, passes its arguments, and launches it or the groups that share
// `pieces` of the work.
static int launch(struct yk_gpu_record *r, const struct yoke_op *op, const struct qlinear *s,
		  struct launch *l, int64_t pieces)
{
	const struct yoke_view *const rows[] = { &op->in[0], &op->out[0], NULL };
	const size_t items = l->group[0] * l->group[1];
	struct yk_gpu_entry *kernel;

	yk_gpu_quant_defines(&l->build, r->device, op, items,
			     yk_gpu_quant_width(r->device, rows, s->k | s->n));
	const int err = yk_gpu_kernel_file(r->device, &l->build, &kernel);
	if (err)
		return err;
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view(r, &op->out[0]);
	yk_gpu_arg_view(r, &op->in[0]);
	yk_gpu_arg_view(r, &op->in[1]);
	yk_gpu_arg_struct(r, s, sizeof *s);
	return pieces ? yk_gpu_launch_pieces(r, pieces, items, l->build.name) :
			yk_gpu_launch(r, 2, l->items, l->group, l->build.name);
}

static int record_rows(struct yk_gpu_record *r, const struct yoke_op *op, const struct qlinear *s)
{
	const struct few f = few_of(r->device, s);
	struct launch l = { .build = { .file = "qlinear_rows.cl", .name = "qlinear_rows" },
			    .group = { f.items, 1 } };

	yk_gpu_define(&l.build, "ROWS", f.rows);
	yk_gpu_define(&l.build, "COLUMNS", f.columns);
	return launch(r, op, s, &l, yk_gpu_pieces(s->n, f.columns));
}

static int record_tiles(struct yk_gpu_record *r, const struct yoke_op *op, const struct qlinear *s)
{
	const struct tile *t = tile_of(r->device, s);
	struct launch l = { .build = { .file = "qlinear_tiles.cl", .name = "qlinear_tiles" },
			    .group = { (size_t)t->items_n, (size_t)t->items_m } };

	l.items[0] = (size_t)yk_gpu_pieces(s->n, t->items_n * t->n) * l.group[0];
	l.items[1] = (size_t)yk_gpu_pieces(s->m, t->items_m * t->m) * l.group[1];
	yk_gpu_define(&l.build, "WG_M", t->items_m);
	yk_gpu_define(&l.build, "WG_N", t->items_n);
	yk_gpu_define(&l.build, "TM", t->m);
	yk_gpu_define(&l.build, "TN", t->n);
	return launch(r, op, s, &l, 0);
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const struct qlinear s = args_of(op);

	if (!s.m || !s.n)
		return 0;
	return (impl == ROWS ? record_rows : record_tiles)(r, op, &s);
}

YK_GPU_OP(qlinear, QLINEAR) = { .names = names, .nimpl = IMPLS, .can = can, .record = record };
