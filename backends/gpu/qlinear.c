// SPDX-License-Identifier: Apache-2.0
// QLINEAR: cl/qlinear_rows.cl for few rows of x, and with YOKE_QUANT_BY_ROW; for more,
// cl/qlinear_matrix.cl with matrix units and cl/qlinear_tiles.cl without. Many rows of 16-bit x are
// left to the decomposition where a vendor's library multiplies faster: w is dequantized to x's
// dtype, and the product is a CONTRACT.
#include "config.h"

#include "contract.h"
#include "quant.h"

// Matches struct qlinear of cl/qlinear.cl.
struct qlinear {
	struct yk_gpu_rows x, y;
	int64_t m, n, k, step;
};

enum { ROWS, MATRIX, TILES, IMPLS };
static const char *const names[IMPLS] = { "rows", "matrix", "tiles" };

enum {
	FEW = 8,     // max rows of x for a group of qlinear_rows
	MAX_GROUPS = 65535, // along the rows of x; a limit of drivers
	LONG = 1024, // min steps of a row of w for MANY_ITEMS
	MANY_ITEMS = 128,
	MAX_ITEMS = 256,
	WARPS_OF_UNIT = 16, // that hide the latency of memory
	STEPS_OF_GROUP = 4,
	MANY = 64,           // min rows of x for which a fast library is worth a dense copy of w
	MAX_COPY = 256 << 20 // bytes of that copy
};

// ---- few rows ----

struct few {
	int rows, columns;
	size_t items;
};

static bool is_by_row(const struct yoke_op *op)
{
	return op->nattr > 3 && op->attr[3].i;
}

// The number of items decides the order of sums; with by_row it does not depend on the number of
// rows.
static struct few few_of(const struct yk_gpu_device *d, const struct yoke_op *op,
			 const struct qlinear *s)
{
	struct few f = { .rows = 1, .columns = 4, .items = d->warp ? (size_t)d->warp : 32 };

	while (f.rows < s->m && f.rows < FEW)
		f.rows *= 2;
	if (f.rows > 2 || is_by_row(op))
		f.columns = 2;
	const size_t steps = (size_t)yk_gpu_ceil_div(s->k, YK_GPU_QUANT_GROUP) * STEPS_OF_GROUP;
	const size_t groups = (size_t)yk_gpu_ceil_div(s->n, f.columns),
		     enough = d->info.units * WARPS_OF_UNIT * f.items;
	if (steps >= LONG)
		f.items = MANY_ITEMS;
	while (f.items < MAX_ITEMS && 2 * f.items <= steps && groups * f.items < enough)
		f.items *= 2;
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
	return yk_gpu_ceil_div(s->m, t->items_m * t->m) * yk_gpu_ceil_div(s->n, t->items_n * t->n);
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

// ---- many rows, by matrix units ----

enum { SMALL = 64, LARGE = 128, PAD = 8, F16 = 1, BF16 = 30 };

struct units {
	int dtype;                     // that the units multiply; 0: they cannot
	int lines;                     // rows, and also columns, of a tile
	int warps_n, tiles_m, tiles_n; // two warps along rows; matrices per warp
	size_t items;
};

// Warps of 32 items multiply f16 without conversion; some matrix units of devices with warps of 64
// flush its subnormal numbers. F16 and BF16 weights are multiplied exactly, so x is not rounded.
static int units_dtype(const struct yk_gpu_device *d, const struct yoke_op *op)
{
	const int64_t format = op->attr[0].i;
	const int dtype = op->in[0].dtype == yoke_f16 && d->warp == 32 && format != BF16 ?
				  yoke_f16 :
				  yoke_bf16;

	if (!d->warp || d->cpu_like || (format == F16 && dtype != yoke_f16) ||
	    (format == BF16 && op->in[0].dtype == yoke_f32) || !yk_gpu_units(d, dtype))
		return 0;
	return dtype;
}

static struct units units_of(const struct yk_gpu_device *d, const struct yoke_op *op,
			     const struct qlinear *s)
{
	struct units u = { .dtype = units_dtype(d, op), .lines = LARGE };
	const int terms = u.dtype == yoke_bf16 && op->in[0].dtype != yoke_bf16 ? 2 : 1;

	if (yk_gpu_ceil_div(s->m, LARGE) * yk_gpu_ceil_div(s->n, LARGE) < (int64_t)d->info.units)
		u.lines = SMALL;
	u.warps_n = u.lines == LARGE && d->warp == 32 ? 4 : 2;
	u.tiles_m = u.lines / 16 / 2;
	u.tiles_n = u.lines / 16 / u.warps_n;
	u.items = 2 * (size_t)u.warps_n * (size_t)d->warp;
	const size_t local =
		(size_t)u.lines * (size_t)((1 + terms) * (YK_GPU_QUANT_GROUP + PAD) * 2) +
		(3 * (size_t)u.lines + u.items) * sizeof(float);
	if (u.items > d->max_group || u.items > d->max_items[0] || local > d->local_bytes)
		u.dtype = 0;
	return u;
}

// ---- the op ----

static bool is_for_library(const struct yk_gpu_device *d, const struct yoke_op *op,
			   const struct qlinear *s)
{
	const struct yk_gpu_library *l = yk_gpu_driver.library[0];
	const int dtype = op->in[0].dtype;

	return s->m >= MANY && s->n <= MAX_COPY / 2 / s->k &&
	       (dtype == yoke_f16 || dtype == yoke_bf16) && l && l->fast && l->fast(d, dtype);
}

// The rows of a view, with neighbouring axes merged; usually one axis remains.
static struct yk_gpu_rows merged(const struct yoke_view *v)
{
	const struct yk_gpu_rows all = yk_gpu_rows_of(v);
	struct yk_gpu_rows r = { 0 };

	for (int64_t i = 0; i < all.rank; i++) {
		if (r.rank && r.strides[r.rank - 1] == all.strides[i] * all.dims[i])
			r.dims[--r.rank] *= all.dims[i];
		else
			r.dims[r.rank] = all.dims[i];
		r.strides[r.rank++] = all.strides[i];
	}
	return r;
}

static struct qlinear args_of(const struct yoke_op *op)
{
	return (struct qlinear){ .x = merged(&op->in[0]),
				 .y = merged(&op->out[0]),
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
	if (s.m <= FEW || is_by_row(op)) // the others add in other orders
		return yk_gpu_ceil_div(s.m, FEW) <= MAX_GROUPS ? 1u << ROWS : 0;
	if (is_for_library(d, op, &s))
		return 0;
	return (units_of(d, op, &s).dtype ? 1u << MATRIX : 0) | (tile_of(d, &s) ? 1u << TILES : 0);
}

struct launch {
	struct yk_gpu_build build;
	size_t items[2], group[2];
};

// Builds the kernel for this layout, passes its arguments, and launches it: with l->items or, if
// `chunks` is not 0, with groups that share so many chunks.
static int launch(struct yk_gpu_record *r, const struct yoke_op *op, const struct qlinear *s,
		  struct launch *l, int64_t chunks)
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
	return chunks ? yk_gpu_launch_chunks(r, chunks, items, l->build.name) :
			yk_gpu_launch(r, 2, l->items, l->group, l->build.name);
}

static int record_rows(struct yk_gpu_record *r, const struct yoke_op *op, const struct qlinear *s)
{
	const struct few f = few_of(r->device, op, s);
	struct launch l = { .build = { .file = "qlinear_rows.cl", .name = "qlinear_rows" },
			    .group = { f.items, 1 } };
	const int64_t chunks = yk_gpu_ceil_div(s->n, f.columns),
		      tiles = yk_gpu_ceil_div(s->m, f.rows);

	yk_gpu_define(&l.build, "ROWS", f.rows);
	yk_gpu_define(&l.build, "COLUMNS", f.columns);
	l.items[0] = (size_t)yk_gpu_max_groups(r->device, chunks) * f.items;
	l.items[1] = (size_t)tiles;
	return launch(r, op, s, &l, tiles == 1 ? chunks : 0);
}

static int record_tiles(struct yk_gpu_record *r, const struct yoke_op *op, const struct qlinear *s)
{
	const struct tile *t = tile_of(r->device, s);
	struct launch l = { .build = { .file = "qlinear_tiles.cl", .name = "qlinear_tiles" },
			    .group = { (size_t)t->items_n, (size_t)t->items_m } };

	l.items[0] = (size_t)yk_gpu_ceil_div(s->n, t->items_n * t->n) * l.group[0];
	l.items[1] = (size_t)yk_gpu_ceil_div(s->m, t->items_m * t->m) * l.group[1];
	yk_gpu_define(&l.build, "WG_M", t->items_m);
	yk_gpu_define(&l.build, "WG_N", t->items_n);
	yk_gpu_define(&l.build, "TM", t->m);
	yk_gpu_define(&l.build, "TN", t->n);
	return launch(r, op, s, &l, 0);
}

static int record_matrix(struct yk_gpu_record *r, const struct yoke_op *op, const struct qlinear *s)
{
	const struct units u = units_of(r->device, op, s);
	struct launch l = { .build = { .file = "qlinear_matrix.cl", .name = "qlinear_matrix" },
			    .group = { u.items, 1 } };

	l.items[0] = (size_t)yk_gpu_ceil_div(s->n, u.lines) * u.items;
	l.items[1] = (size_t)yk_gpu_ceil_div(s->m, u.lines);
	yk_gpu_define(&l.build, "MATRIX", u.dtype);
	yk_gpu_define(&l.build, "WARPS_M", 2);
	yk_gpu_define(&l.build, "WARPS_N", u.warps_n);
	yk_gpu_define(&l.build, "TILES_M", u.tiles_m);
	yk_gpu_define(&l.build, "TILES_N", u.tiles_n);
	return launch(r, op, s, &l, 0);
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	static int (*const records[IMPLS])(struct yk_gpu_record *, const struct yoke_op *,
					   const struct qlinear *) = { record_rows, record_matrix,
								       record_tiles };
	const struct qlinear s = args_of(op);

	return s.m && s.n ? records[impl](r, op, &s) : 0;
}

YK_GPU_OP(qlinear, QLINEAR) = { .names = names, .nimpl = IMPLS, .can = can, .record = record };
