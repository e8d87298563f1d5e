// SPDX-License-Identifier: Apache-2.0
// Brings a CONTRACT op into normal form: checks shapes and merges leading axes into rows where
// possible.
#include "config.h"

#include "contract.h"

// Max size, so that products of a size and what kernels add to it fit in 64 bits.
#define LIMIT ((int64_t)1 << 40)

static bool same_lead(const struct yoke_view *v, const struct yoke_view *y)
{
	if (v->kind != YOKE_VIEW_BUFFER || v->rank != y->rank)
		return false;
	for (int i = 0; i < y->rank - 2; i++)
		if (v->dims[i] != y->dims[i])
			return false;
	return true;
}

static bool same_dims(const struct yoke_view *v, const struct yoke_view *y)
{
	if (v->rank != y->rank)
		return false;
	for (int i = 0; i < y->rank; i++)
		if (v->dims[i] != y->dims[i])
			return false;
	return true;
}

// The dtype of the product, before the fused map.
static int product_of(const struct yoke_op *op)
{
	return op->map ? (int)op->attr[0].i : op->out[0].dtype;
}

static bool operands_fit(const struct yoke_op *op)
{
	if (op->code != YOKE_OP_CONTRACT || op->nout < 1 || op->nin < 2 ||
	    (!op->map && (op->nout != 1 || op->nin != 2)))
		return false;
	const struct yoke_view *y = &op->out[0], *a = &op->in[0], *b = &op->in[1];
	int r = y->rank - 2;
	if (y->kind != YOKE_VIEW_BUFFER || r < 0 || y->rank > YOKE_MAX_RANK ||
	    !same_lead(a, y) || !same_lead(b, y) || a->dtype != b->dtype)
		return false;
	if (op->map && op->nattr < 1)
		return false;
	const int to = product_of(op);
	if (to != a->dtype && (to != yoke_f32 || (a->dtype != yoke_f16 && a->dtype != yoke_bf16)) &&
	    (to != yoke_i32 || !yk_gpu_byte(a->dtype)))
		return false;
	for (uint32_t i = 0; op->map && i < op->nout; i++)
		if (!same_dims(&op->out[i], y))
			return false;
	for (uint32_t i = 2; i < op->nin; i++)
		if (op->in[i].kind == YOKE_VIEW_BUFFER && !same_dims(&op->in[i], y))
			return false;
	for (int i = 0; i <= r + 1; i++)
		if (y->dims[i] < 0 || y->dims[i] > LIMIT)
			return false;
	return a->dims[r] == y->dims[r] && b->dims[r + 1] == y->dims[r + 1] &&
	       a->dims[r + 1] == b->dims[r] && b->dims[r] >= 0 && b->dims[r] <= LIMIT;
}

// Moves leading axes into s.d[], from the last axis at s.d[YK_GPU_BATCH - 1] downwards.
static bool take_lead(struct yk_gpu_contract *c, const int64_t *y_strides)
{
	const struct yoke_view *y = &c->op->out[0];
	struct yk_gpu_contraction *s = &c->s;
	int to = YK_GPU_BATCH;

	for (int i = y->rank - 3; i >= 0; i--) {
		int64_t n = y->dims[i];
		if (__builtin_mul_overflow(c->batch, n, &c->batch))
			return false;
		to--;
		s->d[to] = n;
		s->y[to] = y_strides[i];
		s->a[to] = c->a->strides[i];
		s->b[to] = c->b->strides[i];
	}
	return true;
}

// Merges the innermost leading axis into the rows of a if b is the same along it.
static void fold(struct yk_gpu_contract *c)
{
	struct yk_gpu_contraction *s = &c->s;
	int last = YK_GPU_BATCH - 1;

	if (s->m == 1) { // a single row may have any stride
		s->a_m = s->a[last];
		s->y_m = s->y[last];
	}
	if (s->d[last] < 2 || s->b[last] || s->a[last] != s->m * s->a_m ||
	    s->y[last] != s->m * s->y_m || s->m > LIMIT / s->d[last])
		return;
	s->m *= s->d[last];
	c->batch /= s->d[last];
	for (int i = last; i >= 0; i--) {
		s->d[i] = i ? s->d[i - 1] : 1;
		s->y[i] = i ? s->y[i - 1] : 0;
		s->a[i] = i ? s->a[i - 1] : 0;
		s->b[i] = i ? s->b[i - 1] : 0;
	}
}

bool yk_gpu_contract_of(const struct yoke_op *op, struct yk_gpu_contract *c,
			struct yoke_map_call *room)
{
	int64_t y_strides[YOKE_MAX_RANK], dense = 1;

	if (!operands_fit(op))
		return false;
	const struct yoke_view *y = &op->out[0], *a = &op->in[0], *b = &op->in[1];
	int r = y->rank - 2;
	// with a map the product is not stored: use dense strides
	for (int i = r + 1; i >= 0; i--) {
		y_strides[i] = op->map ? dense : y->strides[i];
		if (__builtin_mul_overflow(dense, y->dims[i] ? y->dims[i] : 1, &dense))
			return false;
	}
	*c = (struct yk_gpu_contract){ .batch = 1,
				       .dtype = a->dtype,
				       .to = product_of(op),
				       .by_row = op->nattr > 1 && op->attr[1].i,
				       .op = op,
				       .a = a,
				       .b = b };
	c->s = (struct yk_gpu_contraction){ .m = y->dims[r],
					    .n = y->dims[r + 1],
					    .k = a->dims[r + 1],
					    .y_m = y_strides[r],
					    .y_n = y_strides[r + 1],
					    .a_m = a->strides[r],
					    .a_k = a->strides[r + 1],
					    .b_k = b->strides[r],
					    .b_n = b->strides[r + 1] };
	for (int i = 0; i < YK_GPU_BATCH; i++)
		c->s.d[i] = 1;
	if (op->map) {
		if (yk_gpu_map_call(op, room) < 0)
			return false;
		c->map = room;
	}
	if (!take_lead(c, y_strides))
		return false;
	fold(c);
	return true;
}

static void exchange(int64_t *x, int64_t *y)
{
	int64_t t = *x;

	*x = *y;
	*y = t;
}

void yk_gpu_contract_swap(struct yk_gpu_contract *c)
{
	const struct yoke_view *a = c->a;
	struct yk_gpu_contraction *s = &c->s;

	c->a = c->b;
	c->b = a;
	s->swapped = !s->swapped;
	exchange(&s->m, &s->n);
	exchange(&s->y_m, &s->y_n);
	exchange(&s->a_m, &s->b_n);
	exchange(&s->a_k, &s->b_k);
	for (int i = 0; i < YK_GPU_BATCH; i++)
		exchange(&s->a[i], &s->b[i]);
}
