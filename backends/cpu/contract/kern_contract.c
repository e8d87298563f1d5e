// SPDX-License-Identifier: Apache-2.0
// CONTRACT: checks operands, brings them to normal form, and calls the kernel of the dtype.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "kern_contract.h"

#ifdef YK_LEVEL
enum {
	SKINNY = 4,    // max rows for which the f32 routine reads b in place
	// AMX: max rows of a for which b, if it is contiguous along k, is read in place of a
	SWAP_ROWS = 64
};
#endif

static bool is_integer(int dtype)
{
	return dtype == yoke_i8 || dtype == yoke_u8 || dtype == yoke_i32 ||
	       dtype == yoke_i64;
}

static void swap(int64_t *x, int64_t *y)
{
	int64_t t = *x;
	*x = *y;
	*y = t;
}

static bool folds(int64_t outer, int64_t inner_dim, int64_t inner)
{
	return outer == inner * inner_dim;
}

static void take_batch(struct yk_gemm *g, const struct yoke_view *a,
			const struct yoke_view *b, const struct yoke_view *c)
{
	g->batches = 1;
	for (int i = 0; i < c->rank - 2; i++) {
		g->batches *= g->dims[i] = c->dims[i];
		g->sa[i] = a->strides[i];
		g->sb[i] = b->strides[i];
		g->sc[i] = c->strides[i];
		g->rank++;
	}
	// If b is the same along the innermost batch axis, that axis becomes rows of a.
	if (g->rank > 0) {
		int last = g->rank - 1;
		if (g->sb[last] == 0 && folds(g->sa[last], g->m, g->am) &&
		    folds(g->sc[last], g->m, g->cm)) {
			g->m *= g->dims[last];
			g->batches = g->dims[last] ? g->batches / g->dims[last] : 0;
			g->rank--;
		}
	}
}

// Chooses between c and its transpose, c^T = b^T a^T, because vectors run along n. Transposes if
// columns of c are dense and rows are not; if c is tall and narrow; if a is larger than b, dense
// across, and the sums are long: then a is packed while it is read, see COPYING; or, with AMX,
// which reads rows of a in place but packs b, if a has few rows.
static void orient(struct yk_gemm *g)
{
	bool columns = g->n > 1 && g->cn != 1 && (g->cm == 1 || g->m == 1);
#ifdef YK_AMX
	bool in_place = g->dtype == yoke_bf16 && g->ak == 1 && g->bk == 1 && g->m > SKINNY &&
			g->m <= SWAP_ROWS && g->n > 2 * g->m;
#else
	bool in_place = false;
#endif
	bool larger = g->am == 1 && g->ak != 1 && g->m > g->n && g->n <= 512 &&
		      g->k > 2 * g->m && g->batches == 1;

	if (!columns && !(g->n < 8 && g->m > g->n) && !larger && !in_place)
		return;
	g->swapped = true;
	swap(&g->m, &g->n);
	swap(&g->am, &g->bn);
	swap(&g->ak, &g->bk);
	swap(&g->cm, &g->cn);
	for (int i = 0; i < g->rank; i++)
		swap(&g->sa[i], &g->sb[i]);
}

// False if the operands are not valid for CONTRACT.
static bool normal_form(struct yk_gemm *g, const struct yoke_op *op)
{
	const struct yoke_view *a, *b, *c;
	struct yoke_view product;
	int r;

	memset(g, 0, sizeof *g);
	if (op->nin < 2 || op->nout < 1 || (!op->map && (op->nin > 2 || op->nout > 1)))
		return false;
	a = &op->in[0];
	b = &op->in[1];
	c = &op->out[0];
	if (op->map) {
		if (!ISA(yk_epilogue_can)(op))
			return false;
		product = ISA(yk_epilogue_product)(op);
		c = &product;
		g->mapped = true;
	}
	r = c->rank;
	if (a->kind != YOKE_VIEW_BUFFER || b->kind != YOKE_VIEW_BUFFER ||
	    c->kind != YOKE_VIEW_BUFFER || a->dtype != b->dtype ||
	    !yk_gemm_can_return(a->dtype, c->dtype) || r < 2 || a->rank != r || b->rank != r)
		return false;
	g->m = c->dims[r - 2];
	g->n = c->dims[r - 1];
	g->k = a->dims[r - 1];
	if (a->dims[r - 2] != g->m || b->dims[r - 1] != g->n || b->dims[r - 2] != g->k)
		return false;
	for (int i = 0; i < r - 2; i++)
		if (a->dims[i] != c->dims[i] || b->dims[i] != c->dims[i])
			return false;
	g->am = a->strides[r - 2];
	g->ak = a->strides[r - 1];
	g->bk = b->strides[r - 2];
	g->bn = b->strides[r - 1];
	g->cm = c->strides[r - 2];
	g->cn = c->strides[r - 1];
	g->dtype = a->dtype;
	g->esize = yk_esize(a->dtype);
	g->to = c->dtype;
	g->csize = yk_esize(c->dtype);
	g->by_row = op->nattr > 1 && op->attr[1].i;
	take_batch(g, a, b, c);
	return true;
}

static uint64_t can(const struct yoke_op *op)
{
	enum yk_gemm_impl impl;
	struct yk_gemm g;

	if (!normal_form(&g, op))
		return 0;
	impl = yk_gemm_requested(&g);
	if (impl != YK_GEMM_OWN) // with a library, a map must be a separate launch
		return g.mapped ? 0 : 1 << impl;
	if (is_integer(g.dtype))
		return g.mapped ? 0 : 1 << YK_GEMM_OWN;
	return g.dtype == yoke_f32 || g.dtype == yoke_f64 || g.dtype == yoke_f16 ||
	       g.dtype == yoke_bf16;
}

struct routine {
	uint64_t (*blocking)(struct yk_gemm *);
	int (*run)(const struct yk_gemm *);
};

static const struct routine *routine(const struct yk_gemm *g)
{
	static const struct routine f32 = { ISA(yk_gemm_f32_block), ISA(yk_gemm_f32) };
	static const struct routine f64 = { ISA(yk_gemm_f64_block), ISA(yk_gemm_f64) };
#ifdef YK_LEVEL
	static const struct routine bf16 = { LEVEL(yk_gemm_bf16_block), LEVEL(yk_gemm_bf16) };

	if (g->dtype == yoke_bf16 && (g->by_row || g->m > SKINNY))
		return &bf16;
#endif
	return g->dtype == yoke_f64 ? &f64 : &f32;
}

static bool is_empty(const struct yk_gemm *g)
{
	return !g->m || !g->n || !g->batches;
}

// Orients the contraction and chooses the blocking of our routine; returns the workspace in bytes.
static uint64_t blocking(struct yk_gemm *g, uint32_t impl)
{
	if (impl != YK_GEMM_OWN || is_integer(g->dtype) || is_empty(g) || !g->k)
		return 0;
	orient(g);
	return routine(g)->blocking(g);
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	struct yk_gemm g;

	return normal_form(&g, op) ? blocking(&g, impl) : 0;
}

struct prepared {
	struct yk_gemm g;
	struct yk_epilogue map;
	char memory[]; // memory of the map
};

static void *prepare(const struct yoke_op *op, uint32_t impl)
{
	struct prepared *p =
		calloc(1, sizeof *p + (op->map ? ISA(yk_prog_bytes)(op->map) : 0));

	if (!p || !normal_form(&p->g, op))
		return p;
	if (p->g.mapped && !is_empty(&p->g)) {
		ISA(yk_epilogue_init)(&p->map, p->memory, op);
		p->g.map = &p->map;
	}
	blocking(&p->g, impl);
	return p;
}

static char *at(const struct yk_gemm *g, int64_t matrix, int64_t row, int64_t col)
{
	return g->c + (matrix + row * g->cm + col * g->cn) * (int64_t)g->csize;
}

// Stores the empty sum, 0.
static void clear(const struct yk_gemm *g)
{
	for (int64_t i = 0; i < g->batches; i++) {
		int64_t a, b, c;
		yk_gemm_batch(g, i, &a, &b, &c);
		for (int64_t row = 0; row < g->m; row++)
			for (int64_t col = 0; col < g->n; col++)
				memset(at(g, c, row, col), 0, g->csize);
	}
}

// Applies the map to empty sums.
static int map_nothing(const struct yk_gemm *g)
{
	enum { RUN = 256 };
	double tile[RUN];
	int64_t n = g->batches * g->m * g->n;
	void *memory = yk_team_scratch(ISA(yk_epilogue_memory)(g->map));

	if (!memory)
		return yk_cpu_fail(YOKE_ENOMEM, "contract: no memory for the map");
	ISA(yk_epilogue_begin)(g->map, memory);
	for (int64_t i = 0; i < n; i += RUN) {
		memset(tile, 0, sizeof tile);
		ISA(yk_epilogue_run)
		(g->map, memory, tile, RUN, i, 1, n - i < RUN ? n - i : RUN);
	}
	return 0;
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct prepared *p = prepared;
	struct yk_gemm *g = &p->g;

	if (is_empty(g))
		return 0;
	if (g->mapped)
		ISA(yk_epilogue_bind)(&p->map, p->memory, op);
	else
		g->c = yk_ptr(&op->out[0]);
	if (!g->k) {
		if (g->mapped)
			return map_nothing(g);
		clear(g);
		return 0;
	}
	g->a = yk_ptr(&op->in[g->swapped]);
	g->b = yk_ptr(&op->in[!g->swapped]);
	g->workspace =
		op->workspace.kind == YOKE_VIEW_BUFFER ? yk_ptr(&op->workspace) : NULL;
	if (impl != YK_GEMM_OWN)
		return yk_gemm_library(g, (enum yk_gemm_impl)impl);
	return is_integer(g->dtype) ? ISA(yk_gemm_int)(g) : routine(g)->run(g);
}

const struct yk_kernel LEVEL(yk_contract) = {
	.can = can,
	.workspace = workspace,
	.prepare = prepare,
	.run = run,
	.impl = { "packed", "cblas", "onednn" },
};
