// SPDX-License-Identifier: Apache-2.0
// Selects the contractions computed by a vendor's library and describes them in the library's
// terms.
#include "config.h"

#include <string.h>

#include "products.h"

// ---- settings ----

enum usage { NEVER, BY_RULE, ALWAYS };

static enum usage usage_of(void)
{
	static const struct yoke_setting setting = {
		sizeof setting,
		V_NAME ".products",
		"string",
		"",
		"use the vendor's library for matrix products: 0 never, 1 whenever possible; empty: as chosen by rules or "
		"`yoke tune`",
	};
	const char *value = yk_gpu_host->setting(&setting);

	return !value || !*value ? BY_RULE : !strcmp(value, "0") ? NEVER : ALWAYS;
}

bool yk_native_products_always(void)
{
	return usage_of() == ALWAYS;
}

// ---- the problem ----

enum {
	LAST = YK_GPU_BATCH - 1, // the batch axis that the library iterates over itself
	ALIGN = 256              // of the product and of the library's part in a workspace
};

// Computes the leading dimension and whether the matrix is transposed; false: strides not
// supported.
static bool leading(int64_t rows, int64_t cols, int64_t by_row, int64_t by_col, int64_t *ld,
		    int *transposed)
{
	*transposed = !(by_col == 1 || cols == 1);
	if (*transposed && by_row != 1 && rows != 1)
		return false;
	const int64_t wide = *transposed ? rows : cols;
	*ld = *transposed ? by_col : by_row;
	if ((*transposed ? cols : rows) == 1)
		*ld = wide;
	return *ld >= wide && *ld <= INT32_MAX;
}

// Alignment, in bytes, of the first matrix and of the steps between matrices.
static uint32_t align_of(const struct yoke_view *v, int64_t step)
{
	const uint64_t bytes = (uint64_t)step * yk_gpu_bytes(v->dtype);
	uint32_t align = v->align < 256 ? v->align : 256;

	if (!align) // unknown: that of an element
		align = (uint32_t)yk_gpu_bytes(v->dtype);
	while (align > 1 && bytes % align)
		align /= 2;
	return align;
}

static bool fill(const struct yk_gpu_device *d, const struct yk_gpu_contract *c, int then,
		 struct yk_native_problem *p)
{
	const struct yk_gpu_contraction *s = &c->s;

	memset(p, 0, sizeof *p);
	p->apart = then < 0;
	if (!leading(s->m, s->n, s->y_m, s->y_n, &p->ld[YK_Y], &p->transposed[YK_Y]) ||
	    p->transposed[YK_Y] ||
	    !leading(s->m, s->k, s->a_m, s->a_k, &p->ld[YK_A], &p->transposed[YK_A]) ||
	    !leading(s->k, s->n, s->b_k, s->b_n, &p->ld[YK_B], &p->transposed[YK_B]) ||
	    s->d[LAST] > INT32_MAX)
		return false;
	p->dtype = c->dtype;
	p->to = c->map && !p->apart ? c->op->out[0].dtype : c->to;
	p->tf32 = c->dtype == yoke_f32 && d->tf32 && yk_gpu_tf32_enabled();
	p->then = p->apart ? YK_THEN_NOTHING : then;
	p->m = s->m;
	p->n = s->n;
	p->k = s->k;
	p->batch = s->d[LAST];
	p->step[YK_Y] = s->y[LAST];
	p->step[YK_A] = s->a[LAST];
	p->step[YK_B] = s->b[LAST];
	p->align[YK_Y] = p->apart ? ALIGN : align_of(&c->op->out[0], p->step[YK_Y]);
	p->align[YK_A] = align_of(c->a, p->step[YK_A]);
	p->align[YK_B] = align_of(c->b, p->step[YK_B]);
	return true;
}

enum {
	MIN_SIZE = 8,   // min M, N and K: the rank of small adapters
	WORK = 65536,   // min M N K
	MANY = 4,       // max calls; these limits decide what is used by rule
	// Min K for a map apart. On an H100 the library is 4 to 8 times as fast as yoke's own
	// kernels in bf16, f16 and tf32: from about 100 steps of k on this saves more than storing
	// the product and reading it again costs.
	APART = 128
};

bool yk_native_products_pay(const struct yk_gpu_device *d, int dtype)
{
	const bool tf32 = dtype == yoke_f32 && d->tf32 && yk_gpu_tf32_enabled();

	return usage_of() != NEVER && (dtype == yoke_f16 || dtype == yoke_bf16 || tf32);
}

// Bytes of the workspace for the product of an op whose map is apart.
static uint64_t product_bytes(const struct yk_gpu_contraction *s, const struct yk_native_problem *p)
{
	uint64_t n = p->apart ? (uint64_t)(s->m * s->n) * yk_gpu_bytes(p->to) : 0;

	for (int i = 0; i < YK_GPU_BATCH; i++)
		n *= (uint64_t)s->d[i];
	return (n + ALIGN - 1) / ALIGN * ALIGN;
}

bool yk_native_problem_of(const struct yk_gpu_device *d, struct yk_gpu_contract *c, bool maps,
			  struct yk_native_problem *to)
{
	const struct yk_gpu_contraction *s = &c->s;
	const enum usage usage = usage_of();
	int then = !c->map ? YK_THEN_NOTHING : maps ? yk_native_then_of(c->op, c->to) : -1;

	if (then > YK_THEN_NOTHING && fill(d, c, then, to) && yk_native_wrong(d, to))
		then = -1;
	if (usage == NEVER || c->by_row || !s->m || !s->n || !s->k || !yk_gpu_real(c->dtype) ||
	    (usage == BY_RULE && then < 0 &&
	     (c->s.k < APART || !yk_native_products_pay(d, c->dtype))))
		return false;
	if (usage == BY_RULE && (s->m < MIN_SIZE || s->n < MIN_SIZE || s->k < MIN_SIZE ||
				 s->m * s->n < WORK / s->k || c->batch / s->d[LAST] > MANY))
		return false;
	if (fill(d, c, then, to))
		return product_bytes(s, to) <= d->info.max_segment;
	if (c->map)
		return false;
	yk_gpu_contract_swap(c);
	return fill(d, c, then, to);
}

// ---- running ----

// Byte offset of matrix `index` among those that the library does not iterate over.
static int64_t matrix_at(const struct yk_gpu_contraction *s, const int64_t *strides, int64_t index,
			 int dtype)
{
	int64_t at = 0;

	for (int i = LAST - 1; i >= 0; i--) {
		at += index % s->d[i] * strides[i];
		index /= s->d[i];
	}
	return at * (int64_t)yk_gpu_bytes(dtype);
}

static void *address(const struct yoke_view *v, int64_t bytes)
{
	const struct yk_gpu_segment *s = v->segment;

	return (char *)s->buffer + v->offset + bytes;
}

int yk_native_products_record(struct yk_gpu_record *r, const struct yk_gpu_contract *c,
			      const struct yk_native_problem *p, size_t workspace,
			      yk_gpu_call_fn *run, const void *data, size_t bytes)
{
	yk_gpu_workspace(r, product_bytes(&c->s, p) + workspace);
	const int err = yk_gpu_call(r, run, data, bytes);
	return err || !p->apart ? err : yk_gpu_contract_map(r, c);
}

int yk_native_products_run(struct yk_gpu_queue *q, const struct yoke_op *op,
			   const struct yk_gpu_contraction *s, const struct yk_native_problem *p,
			   const void *plan, yk_native_multiply *multiply)
{
	const struct yoke_view *y = p->apart ? &op->workspace : &op->out[0];
	const bool works = op->workspace.kind == YOKE_VIEW_BUFFER;
	int64_t calls = 1;
	int err = yk_native_use(q->device);

	for (int i = 0; i < LAST; i++)
		calls *= s->d[i];
	for (int64_t i = 0; i < calls && !err; i++) {
		const struct yk_native_addresses at = {
			.at = { address(y, matrix_at(s, s->y, i, p->to)),
				address(&op->in[s->swapped], matrix_at(s, s->a, i, p->dtype)),
				address(&op->in[!s->swapped], matrix_at(s, s->b, i, p->dtype)) },
			.bias = p->then & YK_THEN_BIAS ? address(&op->in[2], 0) : NULL,
			.work = works ? address(&op->workspace, (int64_t)product_bytes(s, p)) :
					NULL,
		};
		err = multiply(q->device, p, plan, &at, yk_native_stream(q));
		q->launches++;
	}
	return err;
}
