// SPDX-License-Identifier: Apache-2.0
// Tiled contractions on GPUs: with matrix units (f32, f16, bf16, i8, u8) cl/contract_stages.cl,
// whose tiles are copied asynchronously, and cl/contract_matrix.cl; with warp groups (f16, bf16)
// cl/contract_wgmma.cl; cl/contract_blocks.cl without (f32, f16, bf16).
// Static rules: the larger of two tiles, or of three in contract_stages.cl, if there are enough
// tiles to keep all units busy, otherwise the smaller. If even those are too few, k is split, and
// cl/contract_join.cl adds the partial sums.
#include "config.h"

#include <string.h>

#include "contract.h"

enum { SMALL = 64, LARGE = 128 }; // rows and columns of a tile
enum {
	MIN_SIZE = 32, // min rows and columns for tiles
	WG_WARPS = 4,  // of a warp group, which computes
	WG_ROWS = 64,  // rows of a tile, with as many steps of k in local memory
	MIN_K = 256,   // min steps of k per split
	MAX_PARTS = 64,
	MAX_Z = 65535, // max groups along the batch index; a limit of drivers
	ACROSS = 64    // items per group of contract_join
};

static const struct kernel {
	const char *file, *name;
	bool matrix; // has matrix units; items are warps, and elements matrices
} blocks = { "contract_blocks.cl", "contract_blocks", false },
  matrix = { "contract_matrix.cl", "contract_matrix", true },
  stages = { "contract_stages.cl", "contract_stages", true },
  wgmma = { "contract_wgmma.cl", "contract_wgmma", true };

// Tile sizes; presets 1, 2 and 3 select the smaller, the larger and the widest tile.
struct tile {
	const struct kernel *kernel;
	int rows, columns, depth;   // depth: steps of k in local memory
	int stages;                 // tiles of each operand in local memory
	int items_m, items_n, m, n; // items or warps; elements of y per item, or matrices per warp
};

static int per_quad(const struct yk_gpu_contract *c)
{
	return c->dtype == yoke_f32 ? 4 : yk_gpu_byte(c->dtype) ? 16 : 8;
}

// The operand's form as defined in contract_load.cl. Quads require every 16 bytes to be aligned.
enum { ALONG_K = 1, QUADS = 2 };
static int form_of(const struct yk_gpu_contract *c, const struct yoke_view *v, int64_t line,
		   int64_t step, const int64_t *lead)
{
	const int per = per_quad(c);
	const bool along_k =
		step == 1 || (line != 1 && (step < 0 ? -step : step) < (line < 0 ? -line : line));
	bool quads = (along_k ? step : line) == 1 && (along_k ? line : step) % per == 0 &&
		     yk_gpu_aligned(v, 16);

	for (int i = 0; i < YK_GPU_BATCH; i++)
		quads &= lead[i] % per == 0;
	return (along_k ? ALONG_K : 0) | (quads ? QUADS : 0);
}

static int form_of_a(const struct yk_gpu_contract *c)
{
	return form_of(c, c->a, c->s.a_m, c->s.a_k, c->s.a);
}

static int form_of_b(const struct yk_gpu_contract *c)
{
	return form_of(c, c->b, c->s.b_n, c->s.b_k, c->s.b);
}

static struct tile tile_of(const struct yk_gpu_device *d, const struct yk_gpu_contract *c,
			   const struct kernel *k, bool large)
{
	const int lines = large ? LARGE : SMALL;
	struct tile t = { .kernel = k,
			  .rows = lines,
			  .columns = lines,
			  .stages = 2,
			  .items_m = 16,
			  .items_n = 16 };

	if (!k->matrix) {
		t.m = t.n = lines / 16;
		t.depth = large || c->dtype == yoke_f32 ? 16 : 32; // one quad of the tile per item
		return t;
	}
	t.depth = 4 * per_quad(c);
	t.items_m = 2;
	t.items_n = large && d->warp == 32 ? 4 : 2;
	t.m = lines / 16 / t.items_m;
	t.n = lines / 16 / t.items_n;
	return t;
}

static int items_of(const struct yk_gpu_device *d, const struct tile *t)
{
	return t->items_m * t->items_n * (t->kernel->matrix ? d->warp : 1);
}

// The launch assigns the local memory.
static bool is_sized(const struct kernel *k)
{
	return k == &stages || k == &wgmma;
}

// Bytes of local memory. In contract_stages.cl lines of either form are padded.
static uint64_t local_of(const struct yk_gpu_contract *c, const struct tile *t)
{
	const int lines = t->rows + t->columns, per = per_quad(c);

	if (!t->kernel->matrix)
		return (uint64_t)(2 * t->depth * (lines + 8) * 4);
	if (t->kernel == &wgmma)
		return (uint64_t)(t->stages * t->depth * lines * 2);
	if (t->kernel == &matrix)
		return (uint64_t)(2 * lines * (t->depth + per) * (16 / per));
	const int a =
		form_of_a(c) & ALONG_K ? t->rows * (t->depth + per) : t->depth * (t->rows + 8);
	const int b = form_of_b(c) & ALONG_K ? t->columns * (t->depth + per) :
					       t->depth * (t->columns + 8);
	return (uint64_t)(t->stages * (a + b) * (16 / per));
}

// Many stages of short steps of k for the larger tile, which are 1 to 20 % faster than three of
// steps twice as long on an H200; there the widest tile is 10 % faster with the longer steps. Two
// groups share a unit if each takes half of its local memory.
static struct tile stages_of(const struct yk_gpu_device *d, const struct yk_gpu_contract *c,
			     bool large, bool wide)
{
	struct tile t = tile_of(d, c, &stages, large);
	const uint64_t room = d->sized_bytes / (wide ? 1 : 2);

	t.items_n = wide ? 4 : 2;
	t.columns *= wide ? 2 : 1;
	t.m = t.rows / 16 / t.items_m;
	t.n = t.columns / 16 / t.items_n;
	t.depth = (large && !wide ? 4 : 8) * per_quad(c);
	t.stages = wide ? 4 : large ? 5 : 3;
	while (t.stages > 3 && local_of(c, &t) > room)
		t.stages--;
	return t;
}

// Two warp groups. The wider tile takes a unit's local memory, two groups share it for the other.
static struct tile wgmma_of(const struct yk_gpu_device *d, const struct yk_gpu_contract *c,
			    bool wide)
{
	struct tile t = { .kernel = &wgmma,
			  .rows = LARGE,
			  .columns = wide ? 2 * LARGE : LARGE,
			  .depth = WG_ROWS,
			  .stages = wide ? 4 : 3,
			  .items_m = LARGE / WG_ROWS * WG_WARPS,
			  .items_n = 1 };

	if (local_of(c, &t) > d->sized_bytes)
		t.stages = 3;
	return t;
}

static int64_t groups_of(const struct yk_gpu_contract *c, const struct tile *t)
{
	return yk_gpu_ceil_div(c->s.m, t->rows) * yk_gpu_ceil_div(c->s.n, t->columns) * c->batch;
}

static struct tile choose(const struct yk_gpu_device *d, const struct yk_gpu_contract *c,
			  const struct kernel *k)
{
	const bool staged = k == &stages;
	const struct tile wide = wgmma_of(d, c, true);

	if (k == &wgmma)
		return c->preset == 2 || (!c->preset &&
					  groups_of(c, &wide) >= (int64_t)d->info.units) ?
			       wide :
			       wgmma_of(d, c, false);
	const struct tile large = staged ? stages_of(d, c, true, false) : tile_of(d, c, k, true);
	const struct tile small = staged ? stages_of(d, c, false, false) : tile_of(d, c, k, false);
	const struct tile widest = staged ? stages_of(d, c, true, true) : large;

	if (c->preset)
		return c->preset == 1 ? small : c->preset == 2 ? large : widest;
	// measured in 16 bits, where 4 stages fit
	if (staged && per_quad(c) == 8 && widest.stages == 4 &&
	    local_of(c, &widest) <= d->sized_bytes &&
	    groups_of(c, &widest) >= (int64_t)d->info.units)
		return widest;
	return groups_of(c, &large) >= (int64_t)d->info.units ? large : small;
}

// True if each sum must be computed in one fixed order. Integer sums do not depend on the order.
static bool ordered(const struct yk_gpu_contract *c)
{
	return c->by_row && !yk_gpu_byte(c->dtype);
}

// Sets the steps of k per split and the number of splits; 1: k is not split.
static void split(const struct yk_gpu_device *d, struct yk_gpu_contract *c, const struct tile *t)
{
	struct yk_gpu_contraction *s = &c->s;
	const int64_t groups = groups_of(c, t), units = (int64_t)d->info.units;
	int64_t parts = groups > 0 && groups < units && !ordered(c) ? 2 * units / groups : 1;

	parts = yk_gpu_min(yk_gpu_min(parts, MAX_PARTS), s->k / MIN_K);
	parts = yk_gpu_min(parts, MAX_Z / (c->batch > 0 ? c->batch : 1));
	s->cut[2] = parts > 1 ? yk_gpu_ceil_div(yk_gpu_ceil_div(s->k, parts), t->depth) * t->depth :
				s->k;
	s->cut[3] = parts > 1 ? yk_gpu_ceil_div(s->k, s->cut[2]) : 1;
}

static bool fits(const struct yk_gpu_device *d, const struct yk_gpu_contract *c,
		 const struct tile *t)
{
	const size_t items = (size_t)items_of(d, t);

	return items <= d->max_group && items <= d->max_items[0] &&
	       (t->kernel->matrix || (size_t)t->items_m <= d->max_items[1]) &&
	       local_of(c, t) <= (is_sized(t->kernel) ? d->sized_bytes : d->local_bytes);
}

static bool takes(const struct yk_gpu_device *d, struct yk_gpu_contract *c, const struct kernel *k)
{
	const struct tile t = choose(d, c, k);

	if (d->cpu_like || !(yk_gpu_float(c->dtype) || (k->matrix && yk_gpu_byte(c->dtype))) ||
	    c->s.m < MIN_SIZE || c->s.n < MIN_SIZE || c->batch > MAX_Z || !fits(d, c, &t))
		return false;
	split(d, c, &t);
	return true;
}

static int kernel_of(struct yk_gpu_device *d, const struct yk_gpu_contract *c, const struct tile *t,
		     struct yk_gpu_entry **to)
{
	const struct yk_gpu_contraction *s = &c->s;
	const bool units = t->kernel->matrix, sized = is_sized(t->kernel);
	struct yk_gpu_build b = { .file = t->kernel->file,
				  .name = t->kernel->name,
				  .sized = sized ? local_of(c, t) : 0,
				  .wgmma = t->kernel == &wgmma };

	if (b.wgmma) {
		yk_gpu_define(&b, "GROUPS_M", t->items_m / WG_WARPS);
		yk_gpu_define(&b, "BN", t->columns);
		yk_gpu_define(&b, "MIN_GROUPS", 2 * b.sized <= d->sized_bytes ? 2 : 1);
	} else {
		yk_gpu_define(&b, units ? "WARPS_M" : "WG_M", t->items_m);
		yk_gpu_define(&b, units ? "WARPS_N" : "WG_N", t->items_n);
		yk_gpu_define(&b, units ? "TILES_M" : "TM", t->m);
		yk_gpu_define(&b, units ? "TILES_N" : "TN", t->n);
		yk_gpu_define(&b, "BK", t->depth);
	}
	yk_gpu_define(&b, "A_FORM", form_of_a(c));
	yk_gpu_define(&b, "B_FORM", form_of_b(c));
	if (units) {
		yk_gpu_define(&b, "MATRIX", c->dtype);
		yk_gpu_define(&b, "WARP", d->warp);
	} else {
		yk_gpu_define(&b, "VEC_WIDTH", 4);
	}
	if (sized) {
		yk_gpu_define(&b, "STAGES", t->stages);
		yk_gpu_define(&b, "SIZED", (int64_t)b.sized);
	}
	yk_gpu_flag(&b, "SPLIT", s->cut[3] > 1);
	return yk_gpu_contract_kernel(d, c, &b, s->cut[3] == 1, to);
}

// Adds the partial sums in the workspace, and writes y or applies the fused map.
static int record_join(struct yk_gpu_record *r, const struct yk_gpu_contract *c)
{
	const size_t items[2] = { ACROSS, 1 };
	const int64_t groups[3] = { yk_gpu_ceil_div(c->s.n, ACROSS), c->s.m, c->batch };
	struct yk_gpu_build b = { .file = "contract_join.cl", .name = "contract_join" };
	struct yk_gpu_entry *kernel;

	yk_gpu_define(&b, "ACROSS", ACROSS);
	int err = yk_gpu_contract_kernel(r->device, c, &b, true, &kernel);
	if (err)
		return err;
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view(r, &c->op->workspace);
	return yk_gpu_contract_launch(r, c, groups, items, "contract_join");
}

static int record(struct yk_gpu_record *r, const struct yk_gpu_contract *c, const struct kernel *k)
{
	const struct yk_gpu_contraction *s = &c->s;
	const struct tile t = choose(r->device, c, k);
	const size_t items[2] = { k->matrix ? (size_t)items_of(r->device, &t) : (size_t)t.items_n,
				  k->matrix ? 1 : (size_t)t.items_m };
	const int64_t groups[3] = { yk_gpu_ceil_div(s->n, t.columns), yk_gpu_ceil_div(s->m, t.rows),
				    c->batch * s->cut[3] };
	struct yk_gpu_entry *kernel;
	uint64_t bytes;
	int err = kernel_of(r->device, c, &t, &kernel);

	if (err)
		return err;
	if (s->cut[3] > 1) {
		if (__builtin_mul_overflow((uint64_t)s->m * (uint64_t)s->n,
					   (uint64_t)(c->batch * s->cut[3]), &bytes) ||
		    __builtin_mul_overflow(bytes, sizeof(float), &bytes))
			return yk_gpu_error(YOKE_ENOMEM, "the workspace size exceeds 64 bits");
		yk_gpu_workspace(r, bytes);
	}
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view(r, c->a);
	yk_gpu_arg_view(r, c->b);
	if (s->cut[3] == 1)
		return yk_gpu_contract_launch(r, c, groups, items, k->name);
	yk_gpu_contract_arg(r, s, groups);
	yk_gpu_arg_view(r, &c->op->workspace);
	err = yk_gpu_contract_enqueue(r, groups, items, k->name);
	return err ? err : record_join(r, c);
}

// ---- without matrix units ----

static bool blocks_takes(const struct yk_gpu_device *d, struct yk_gpu_contract *c)
{
	return takes(d, c, &blocks);
}

static int blocks_record(struct yk_gpu_record *r, const struct yk_gpu_contract *c)
{
	return record(r, c, &blocks);
}

const struct yk_gpu_variant yk_gpu_contract_blocks = { blocks_takes, blocks_record };

// ---- with them ----

bool yk_gpu_tf32_enabled(void)
{
	static const struct yoke_setting matmul = {
		sizeof matmul, "matmul", "string", "f32",
		"precision of f32 products on GPUs: f32, or tf32 (matrix units, factors rounded to "
		"10 bits)"
	};
	const char *value = yk_gpu_host->setting(&matmul);

	return value && !strcmp(value, "tf32");
}

static bool matrix_takes(const struct yk_gpu_device *d, struct yk_gpu_contract *c)
{
	// matrix units have an order of summation of their own
	return d->warp && !ordered(c) && takes(d, c, &matrix) && yk_gpu_units(d, c->dtype);
}

static int matrix_record(struct yk_gpu_record *r, const struct yk_gpu_contract *c)
{
	return record(r, c, &matrix);
}

const struct yk_gpu_variant yk_gpu_contract_matrix = { matrix_takes, matrix_record };

// ---- with tiles copied asynchronously ----

static bool stages_takes(const struct yk_gpu_device *d, struct yk_gpu_contract *c)
{
	const int both = form_of_a(c) & form_of_b(c);

	// the kernel counts steps in 32 bits; shared bytes of several steps cannot be turned
	return d->sized_bytes && d->warp && both & QUADS &&
	       (both & ALONG_K || !yk_gpu_byte(c->dtype)) && c->s.k < INT32_MAX / 2 &&
	       !ordered(c) && takes(d, c, &stages) && yk_gpu_units(d, c->dtype);
}

static int stages_record(struct yk_gpu_record *r, const struct yk_gpu_contract *c)
{
	return record(r, c, &stages);
}

const struct yk_gpu_variant yk_gpu_contract_stages = { stages_takes, stages_record };

// ---- with warp groups ----

static bool wgmma_takes(const struct yk_gpu_device *d, struct yk_gpu_contract *c)
{
	// the kernel counts steps in 32 bits
	return d->wgmma_options && (c->dtype == yoke_f16 || c->dtype == yoke_bf16) &&
	       form_of_a(c) & form_of_b(c) & QUADS && c->s.k < INT32_MAX / 2 && !ordered(c) &&
	       takes(d, c, &wgmma) && yk_gpu_units(d, c->dtype);
}

static int wgmma_record(struct yk_gpu_record *r, const struct yk_gpu_contract *c)
{
	return record(r, c, &wgmma);
}

const struct yk_gpu_variant yk_gpu_contract_wgmma = { wgmma_takes, wgmma_record };
