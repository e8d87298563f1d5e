// SPDX-License-Identifier: Apache-2.0
// Contractions on OpenCL drivers for CPUs: cl/contract_packed.cl, and cl/contract_direct.cl for
// small problems.
#include "config.h"

#include "contract.h"

// Tile of rows x vectors of sums that leaves registers for the operands: 24 sums of 32 registers,
// or 12 of 16. Preset 1 has fewer rows and more columns.
struct tile {
	int64_t rows, columns;
	int vector, vectors; // columns: `vectors` vectors of `vector` floats
};

static struct tile tile_of(const struct yk_gpu_device *d, int preset)
{
	int vector = d->vector < 4 ? 4 : d->vector, vectors = preset ? 3 : 2;
	int rows = vector == 16 ? (preset ? 8 : 12) : (preset ? 4 : 6);

	return (struct tile){ rows, vector * vectors, vector, vectors };
}

static struct yk_gpu_build build_of(const struct yk_gpu_device *d, const struct yk_gpu_contract *c,
				    const char *file, const char *name)
{
	const struct tile t = tile_of(d, c->preset);
	struct yk_gpu_build b = { .file = file, .name = name };

	yk_gpu_define(&b, "VEC_WIDTH", t.vector);
	yk_gpu_define(&b, "MR", t.rows);
	yk_gpu_define(&b, "NV", t.vectors);
	return b;
}

static const size_t one_item[2] = { 1, 1 };

// ---- packed ----

enum {
	BLOCK_A = 16, BLOCK_B = 8, // max panels per block: together they stay in L2
	GROUPS = 16,               // min blocks per unit: drivers schedule groups in bundles
	PIECE = 256                // steps of k that a group packs
};

static bool bytes_of(const struct yk_gpu_device *d, const struct yk_gpu_contract *c,
		     uint64_t *bytes)
{
	const struct yk_gpu_contraction *s = &c->s;
	struct tile t = tile_of(d, c->preset);
	int64_t lines = yk_gpu_ceil_div(s->m, t.rows) * t.rows +
			yk_gpu_ceil_div(s->n, t.columns) * t.columns;

	return !__builtin_mul_overflow(lines, c->batch, &lines) &&
	       !__builtin_mul_overflow(lines, s->k, &lines) &&
	       !__builtin_mul_overflow(lines, 4, bytes) && *bytes <= d->info.max_segment;
}

// Divides panels as evenly as possible.
static int64_t cut(int64_t panels, int64_t parts)
{
	return yk_gpu_ceil_div(panels, parts < 1 ? 1 : parts);
}

static bool packed_takes(const struct yk_gpu_device *d, struct yk_gpu_contract *c)
{
	struct yk_gpu_contraction *s = &c->s;
	struct tile t = tile_of(d, c->preset);
	uint64_t bytes;

	// Swap tall and narrow problems: the wide and flat form wastes fewer columns of tiles.
	if (s->n < t.columns && s->m > s->n)
		yk_gpu_contract_swap(c);
	int64_t a = yk_gpu_ceil_div(s->m, t.rows), b = yk_gpu_ceil_div(s->n, t.columns);
	int64_t in_a = yk_gpu_ceil_div(a, BLOCK_A), in_b = yk_gpu_ceil_div(b, BLOCK_B);

	while (in_a * in_b * c->batch < GROUPS * (int64_t)d->info.units &&
	       (cut(a, in_a) > 1 || cut(b, in_b) > 1)) {
		if (cut(b, in_b) * 2 > cut(a, in_a))
			in_b *= 2;
		else
			in_a *= 2;
	}
	s->cut[0] = cut(a, in_a);
	s->cut[1] = cut(b, in_b);
	s->cut[2] = PIECE;
	return d->cpu_like && yk_gpu_float(c->dtype) && s->k && bytes_of(d, c, &bytes);
}

static int packed_kernels(struct yk_gpu_device *d, const struct yk_gpu_contract *c,
			  struct yk_gpu_entry *to[2])
{
	static const char file[] = "contract_packed.cl";
	const struct yk_gpu_build pack = build_of(d, c, file, "contract_pack");
	const struct yk_gpu_build multiply = build_of(d, c, file, "contract_packed");
	int err = yk_gpu_contract_kernel(d, c, &pack, false, &to[0]);

	return err ? err : yk_gpu_contract_kernel(d, c, &multiply, true, &to[1]);
}

static int packed_record(struct yk_gpu_record *r, const struct yk_gpu_contract *c)
{
	const struct yk_gpu_contraction *s = &c->s;
	struct tile t = tile_of(r->device, c->preset);
	int64_t a = yk_gpu_ceil_div(s->m, t.rows), b = yk_gpu_ceil_div(s->n, t.columns);
	const int64_t pieces[3] = { a + b, yk_gpu_ceil_div(s->k, s->cut[2]), c->batch };
	const int64_t blocks[3] = { yk_gpu_ceil_div(b, s->cut[1]), yk_gpu_ceil_div(a, s->cut[0]),
				    c->batch };
	struct yk_gpu_entry *kernels[2];
	uint64_t bytes;
	int err = packed_kernels(r->device, c, kernels);

	if (err)
		return err;
	bytes_of(r->device, c, &bytes);
	yk_gpu_workspace(r, bytes);
	yk_gpu_begin(r, kernels[0]);
	yk_gpu_arg_view(r, &c->op->workspace);
	yk_gpu_arg_view(r, c->a);
	yk_gpu_arg_view(r, c->b);
	yk_gpu_contract_arg(r, s, pieces);
	err = yk_gpu_contract_enqueue(r, pieces, one_item, "contract_pack");
	if (err)
		return err;
	yk_gpu_begin(r, kernels[1]);
	yk_gpu_arg_view(r, &c->op->workspace);
	return yk_gpu_contract_launch(r, c, blocks, one_item, "contract_packed");
}

const struct yk_gpu_variant yk_gpu_contract_packed = { packed_takes, packed_record };

// ---- direct ----

enum {
	SMALL_K = 256,
	SMALL = 128 * 128 * 128 // max M N K for which each group packs its panel of b itself
};

static bool direct_takes(const struct yk_gpu_device *d, struct yk_gpu_contract *c)
{
	struct yk_gpu_contraction *s = &c->s;
	struct tile t = tile_of(d, c->preset);

	if (s->n < t.columns && s->m > s->n)
		yk_gpu_contract_swap(c);
	int64_t b = yk_gpu_ceil_div(s->n, t.columns), rows = yk_gpu_ceil_div(s->m, t.rows),
		in = 1;
	while (b * in * c->batch < 4 * (int64_t)d->info.units && in * 4 <= rows)
		in *= 2;
	s->cut[0] = cut(rows, in) * t.rows;
	return d->cpu_like && yk_gpu_float(c->dtype) && s->k <= SMALL_K &&
	       (double)s->m * (double)s->n * (double)s->k <= SMALL &&
	       (uint64_t)(SMALL_K * t.columns * 4) <= d->local_bytes;
}

static int direct_kernel(struct yk_gpu_device *d, const struct yk_gpu_contract *c,
			 struct yk_gpu_entry **to)
{
	struct yk_gpu_build b = build_of(d, c, "contract_direct.cl", "contract_direct");

	yk_gpu_define(&b, "K_MAX", SMALL_K);
	return yk_gpu_contract_kernel(d, c, &b, true, to);
}

static int direct_record(struct yk_gpu_record *r, const struct yk_gpu_contract *c)
{
	const struct yk_gpu_contraction *s = &c->s;
	const int64_t groups[3] = { yk_gpu_ceil_div(s->n,
						  tile_of(r->device, c->preset).columns),
				    yk_gpu_ceil_div(s->m, s->cut[0]), c->batch };
	struct yk_gpu_entry *kernel;
	int err = direct_kernel(r->device, c, &kernel);

	if (err)
		return err;
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view(r, c->a);
	yk_gpu_arg_view(r, c->b);
	return yk_gpu_contract_launch(r, c, groups, one_item, "contract_direct");
}

const struct yk_gpu_variant yk_gpu_contract_direct = { direct_takes, direct_record };
