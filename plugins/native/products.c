// SPDX-License-Identifier: Apache-2.0
// Products by the vendor's library, cuBLASLt or hipBLASLt, which is made over columns: of ours, which go by rows, it
// computes y^T = b^T a^T.  A problem's descriptors and the algorithm that the library's heuristic names for it are
// made once and stay.  A map behind the product is taken where it adds a row to all, in f32.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../backends/gpu/contract.h"
#include "native.h"

// ---- settings ----

enum wish { NEVER, BY_RULE, ALWAYS };

static enum wish wish_of(void)
{
	static const struct yoke_setting wish = {
		sizeof wish, V_NAME ".products", "string", "",
		"contractions by the vendor's library: 0 never, 1 wherever it can; empty: where rules or "
		"`yoke tune` say so",
	};
	const char *value = yk_gpu_host->setting(&wish);

	return !value || !*value ? BY_RULE : !strcmp(value, "0") ? NEVER : ALWAYS;
}

void yk_native_products_start(void)
{
	wish_of();
}

static bool always(void)
{
	return wish_of() == ALWAYS;
}

// ---- what is asked of the library ----

enum operand { Y, A, B, OPERANDS };
enum { LAST = YK_GPU_BATCH - 1 }; // of the batch's axes: the one that the library runs through itself

// All that a plan depends on, with zeros between its fields.
struct problem {
	int dtype, to, tf32, bias;
	int64_t m, n, k, batch;
	int64_t ld[OPERANDS], step[OPERANDS]; // elements; step: between matrices
	int transposed[OPERANDS];
	uint32_t align[OPERANDS];
};

struct plan {
	struct plan *next;
	struct problem problem;
	v_lt_desc desc;
	v_lt_layout layout[OPERANDS];
	v_lt_algo algo;
	size_t workspace;
};

struct library {
	v_lt_handle handle;
	unsigned tried, good; // bit d: a product of dtype d was
	struct plan *plans;
};

// What a run needs: the plan, and where the matrices lie.
struct work {
	const struct plan *plan;
	struct yk_gpu_contraction s;
	int swapped;
};

static size_t size_of(int dtype)
{
	return yk_gpu_bytes(dtype);
}

// The leading dimension, and whether rows and columns change places; false: strides that it has not.
static bool leading(int64_t rows, int64_t cols, int64_t by_row, int64_t by_col, int64_t *ld, int *transposed)
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

// Bytes that both the first matrix and the steps to others are multiples of.
static uint32_t align_of(const struct yoke_view *v, int64_t step)
{
	const uint64_t bytes = (uint64_t)step * yk_gpu_bytes(v->dtype);
	uint32_t align = v->align < 256 ? v->align : 256;

	if (!align) // nothing is promised: that of an element
		align = (uint32_t)yk_gpu_bytes(v->dtype);
	while (align > 1 && bytes % align)
		align /= 2;
	return align;
}

static bool problem_of(const struct yk_gpu_device *d, const struct yk_gpu_contract *c, struct problem *p)
{
	const struct yk_gpu_contraction *s = &c->s;

	memset(p, 0, sizeof *p);
	if (!leading(s->m, s->n, s->y_m, s->y_n, &p->ld[Y], &p->transposed[Y]) || p->transposed[Y] ||
	    !leading(s->m, s->k, s->a_m, s->a_k, &p->ld[A], &p->transposed[A]) ||
	    !leading(s->k, s->n, s->b_k, s->b_n, &p->ld[B], &p->transposed[B]) || s->d[LAST] > INT32_MAX)
		return false;
	p->dtype = c->dtype;
	p->to = c->to;
	p->tf32 = c->dtype == yoke_f32 && d->tf32 && yk_gpu_tf32_wanted();
	p->bias = c->map != NULL;
	p->m = s->m;
	p->n = s->n;
	p->k = s->k;
	p->batch = s->d[LAST];
	p->step[Y] = s->y[LAST];
	p->step[A] = s->a[LAST];
	p->step[B] = s->b[LAST];
	p->align[Y] = align_of(&c->op->out[0], p->step[Y]);
	p->align[A] = align_of(c->a, p->step[A]);
	p->align[B] = align_of(c->b, p->step[B]);
	return true;
}

// Is the map `product + row`, both f32, the result dense?
static bool is_bias(const struct yoke_op *op)
{
	const struct yoke_map *map = op->map;
	const struct yoke_insn *i = map->insn;

	if (map->ninsn != 3 || map->nout != 1 || map->out[0] != 2 || op->nin != 3 || i[0].op != YOKE_MAP_INPUT ||
	    i[1].op != YOKE_MAP_INPUT || i[2].op != YOKE_MAP_ADD || i[2].dtype != yoke_f32 || i[0].a == i[1].a ||
	    i[2].a == i[2].b || i[2].a > 1 || i[2].b > 1)
		return false;
	const struct yoke_view *row = &op->in[2], *y = &op->out[0];
	if (row->kind != YOKE_VIEW_BUFFER || row->dtype != yoke_f32 || !yk_gpu_dense_of(y, yoke_f32) ||
	    row->rank != y->rank || row->strides[row->rank - 1] != 1 || row->align % 16)
		return false;
	for (int k = 0; k < row->rank - 1; k++)
		if (row->dims[k] > 1 && row->strides[k])
			return false;
	return true;
}

// ---- which it takes ----

enum {
	LEAST = 16,   // of M, N, K and
	WORK = 65536, // of their product, and
	MANY = 4      // calls at most: what it is offered for by rule
};

static bool takes(const struct yk_gpu_device *device, struct yk_gpu_contract *c)
{
	const struct yk_native_device *d = yk_native_of(device);
	const struct yk_gpu_contraction *s = &c->s;
	const enum wish wish = wish_of();
	struct problem p;

	if (wish == NEVER || c->by_row || !s->m || !s->n || !s->k || (c->map && (c->to != yoke_f32 || !is_bias(c->op))) ||
	    !(yk_gpu_real(c->dtype)))
		return false;
	if (wish == BY_RULE && (s->m < LEAST || s->n < LEAST || s->k < LEAST || s->m * s->n < WORK / s->k ||
				c->batch / s->d[LAST] > MANY))
		return false;
	if (!problem_of(device, c, &p)) {
		if (c->map)
			return false;
		yk_gpu_contract_swap(c);
		if (!problem_of(device, c, &p))
			return false;
	}
	const struct library *l = d->products;
	return yk_native_open(YK_PRODUCTS, NULL) && !(l && l->tried & ~l->good & 1u << c->dtype);
}

// ---- plans ----

// Before anything runs: another implementation does the product then.
static int check(const struct yk_gpu_device *d, const char *call, int code)
{
	return code ? yk_native_library_failed(d, YOKE_EUNSUPPORTED, call, YK_PRODUCTS_CODE, code) : 0;
}

static int check_run(const struct yk_gpu_device *d, const char *call, int code)
{
	const int error = code == V_PRODUCTS_OUT_OF_MEMORY ? YOKE_ENOMEM : YOKE_EDEVICE;

	return code ? yk_native_library_failed(d, error, call, YK_PRODUCTS_CODE, code) : 0;
}

static int type_of(int dtype)
{
	return dtype == yoke_f64 ? V_R_64F : dtype == yoke_f16 ? V_R_16F : dtype == yoke_bf16 ? V_R_16BF : V_R_32F;
}

static int set_desc(struct yk_gpu_device *d, struct plan *p, int what, int32_t value)
{
	return check(d, V_LT_DESC_SET(p->desc, what, &value, sizeof value));
}

static int make_desc(struct yk_gpu_device *d, struct plan *p)
{
	const struct problem *x = &p->problem;
	const int compute = x->dtype == yoke_f64 ? V_COMPUTE_64F : x->tf32 ? V_COMPUTE_TF32 : V_COMPUTE_32F;
	int err = check(d, V_LT_DESC_NEW(&p->desc, compute, x->dtype == yoke_f64 ? V_R_64F : V_R_32F));

	// its A is our b
	err = err ? err : set_desc(d, p, V_DESC_TRANSA, x->transposed[B] ? V_OP_T : V_OP_N);
	err = err ? err : set_desc(d, p, V_DESC_TRANSB, x->transposed[A] ? V_OP_T : V_OP_N);
	return err || !x->bias ? err : set_desc(d, p, V_DESC_EPILOGUE, V_EPILOGUE_BIAS);
}

// A matrix of `rows` of ours, each its column.
static int make_layout(struct yk_gpu_device *d, struct plan *p, enum operand which, int64_t rows, int64_t cols)
{
	const struct problem *x = &p->problem;
	const bool turned = x->transposed[which];
	const int32_t batch = (int32_t)x->batch;
	const int type = type_of(which == Y ? x->to : x->dtype);
	v_lt_layout *l = &p->layout[which];
	int err = check(d, V_LT_LAYOUT_NEW(l, type, (uint64_t)(turned ? rows : cols), (uint64_t)(turned ? cols : rows),
					   x->ld[which]));

	if (!err && batch > 1)
		err = check(d, V_LT_LAYOUT_SET(*l, V_LAYOUT_BATCH, &batch, sizeof batch));
	if (!err && batch > 1)
		err = check(d, V_LT_LAYOUT_SET(*l, V_LAYOUT_STEP, &x->step[which], sizeof x->step[which]));
	return err;
}

// The algorithm that the library's heuristic names first.
static int choose(struct yk_gpu_device *d, struct library *l, struct plan *p)
{
	static const uint64_t most = 32 << 20; // of workspace
	v_lt_result result;
	v_lt_preference preference;
	int found = 0, err = check(d, V_LT_PREFERENCE_NEW(&preference));

	if (err)
		return err;
	err = check(d, V_LT_PREFERENCE_SET(preference, V_PREFERENCE_WORKSPACE, &most, sizeof most));
	if (!err)
		err = yk_vendor_restrict(d, preference, p->problem.align[B], p->problem.align[A], p->problem.align[Y]);
	if (!err) {
		const int code = yk_native_code(V_LT_CHOOSE(l->handle, p->desc, p->layout[B], p->layout[A], p->layout[Y],
							    p->layout[Y], preference, 1, &result, &found));
		if (code == V_PRODUCTS_UNSUPPORTED || (!code && (!found || result.state)))
			err = yk_gpu_error(YOKE_EUNSUPPORTED, "%s has no algorithm for a product", yk_native_library(YK_PRODUCTS));
		else
			err = check(d, V_LT_CHOOSE_CALL, code);
	}
	yk_native_code(V_LT_PREFERENCE_FREE(preference));
	if (err)
		return err;
	p->algo = result.algo;
	p->workspace = result.workspaceSize;
	return 0;
}

static void plan_free(struct plan *p)
{
	for (int i = 0; i < OPERANDS; i++)
		if (p->layout[i])
			yk_native_code(V_LT_LAYOUT_FREE(p->layout[i]));
	if (p->desc)
		yk_native_code(V_LT_DESC_FREE(p->desc));
	free(p);
}

// The plan of a problem; with the device's lock held.
static int plan_of(struct yk_gpu_device *d, const struct problem *x, const struct plan **to)
{
	struct library *l = yk_native_of(d)->products;
	struct plan *p = l->plans;

	while (p && memcmp(&p->problem, x, sizeof *x))
		p = p->next;
	if ((*to = p))
		return 0;
	if (!(p = calloc(1, sizeof *p)))
		return yk_gpu_error(YOKE_ENOMEM, "no memory for a product's record");
	memcpy(&p->problem, x, sizeof *x);
	int err = make_desc(d, p);
	err = err ? err : make_layout(d, p, Y, x->m, x->n);
	err = err ? err : make_layout(d, p, A, x->m, x->k);
	err = err ? err : make_layout(d, p, B, x->k, x->n);
	err = err ? err : choose(d, l, p);
	if (err) {
		plan_free(p);
		return err;
	}
	p->next = l->plans;
	l->plans = p;
	*to = p;
	return 0;
}

// ---- running ----

static int multiply(struct yk_gpu_device *d, const struct plan *p, void *const at[OPERANDS], const void *bias,
		    void *work, v_stream stream)
{
	const struct library *l = yk_native_of(d)->products;
	const bool wide = p->problem.dtype == yoke_f64;
	const double one = 1, zero = 0;
	const float one32 = 1, zero32 = 0;
	int err = p->problem.bias ? check_run(d, V_LT_DESC_SET(p->desc, V_DESC_BIAS, &bias, sizeof bias)) : 0;

	return err ? err : check_run(d, V_LT_MULTIPLY(l->handle, p->desc, wide ? (const void *)&one : &one32, at[B],
						  p->layout[B], at[A], p->layout[A],
						  wide ? (const void *)&zero : &zero32, at[Y], p->layout[Y], at[Y],
						  p->layout[Y], &p->algo, work, p->workspace, stream));
}

// Bytes that matrix `index` of those that the library does not run through lies behind the first.
static int64_t matrix_at(const struct yk_gpu_contraction *s, const int64_t *strides, int64_t index, int dtype)
{
	int64_t at = 0;

	for (int i = LAST - 1; i >= 0; i--) {
		at += index % s->d[i] * strides[i];
		index /= s->d[i];
	}
	return at * (int64_t)size_of(dtype);
}

static void *address(const struct yoke_view *v, int64_t bytes)
{
	const struct yk_gpu_segment *s = v->segment;

	return (char *)s->buffer + v->offset + bytes;
}

static int run(struct yk_gpu_queue *q, const struct yoke_op *op, const void *data)
{
	struct work w;
	int err = yk_native_use(q->device);

	memcpy(&w, data, sizeof w);
	const struct problem *p = &w.plan->problem;
	const struct yk_gpu_contraction *s = &w.s;
	const bool works = op->workspace.kind == YOKE_VIEW_BUFFER;
	int64_t calls = 1;
	for (int i = 0; i < LAST; i++)
		calls *= s->d[i];
	for (int64_t i = 0; i < calls && !err; i++) {
		void *const at[OPERANDS] = {
			address(&op->out[0], matrix_at(s, s->y, i, p->to)),
			address(&op->in[w.swapped], matrix_at(s, s->a, i, p->dtype)),
			address(&op->in[!w.swapped], matrix_at(s, s->b, i, p->dtype)),
		};
		err = multiply(q->device, w.plan, at, p->bias ? address(&op->in[2], 0) : NULL,
			       works ? address(&op->workspace, 0) : NULL, yk_native_stream(q));
		q->launches++;
	}
	return err;
}

// ---- a product that is checked ----

enum { SIDE = 32 }; // of the matrices

// -1, 0 or 1, the bits that dtype has for it
static void put_number(void *to, int64_t i, int dtype, int x)
{
	const uint16_t half[] = { dtype == yoke_f16 ? 0xbc00 : 0xbf80, 0, dtype == yoke_f16 ? 0x3c00 : 0x3f80 };

	if (dtype == yoke_f64)
		((double *)to)[i] = x;
	else if (dtype == yoke_f32)
		((float *)to)[i] = (float)x;
	else
		((uint16_t *)to)[i] = half[x + 1];
}

// Sums are whole numbers, which every dtype has.
static bool right(const void *y, int to, const signed char *a, const signed char *b)
{
	for (int i = 0; i < SIDE * SIDE; i++) {
		int sum = 0;
		for (int k = 0; k < SIDE; k++)
			sum += a[i / SIDE * SIDE + k] * b[k * SIDE + i % SIDE];
		const double got = to == yoke_f64 ? ((const double *)y)[i] : (double)((const float *)y)[i];
		if (!(got == sum))
			return false;
	}
	return true;
}

static int try_product(struct yk_gpu_device *d, int dtype, bool *good)
{
	enum { N = SIDE * SIDE };
	struct yk_native_device *n = yk_native_of(d);
	struct problem x;
	signed char whole[2][N];
	double room[OPERANDS][N];
	void *at[OPERANDS] = { NULL }, *host = NULL, *work = NULL;
	const struct plan *p;
	int err = 0;

	memset(&x, 0, sizeof x);
	memset(room, 0xff, sizeof room);
	x.dtype = dtype;
	x.to = dtype == yoke_f64 ? yoke_f64 : yoke_f32;
	x.m = x.n = x.k = SIDE;
	x.batch = 1;
	for (int i = 0; i < OPERANDS; i++) {
		x.ld[i] = SIDE;
		x.align[i] = 256;
	}
	for (int i = 0; i < 2 * N; i++) {
		whole[i / N][i % N] = (signed char)((i * 2654435761u >> 16) % 3 - 1);
		put_number(room[1 + i / N], i % N, dtype, whole[i / N][i % N]);
	}
	err = plan_of(d, &x, &p);
	for (int i = 0; i < OPERANDS && !err; i++)
		err = yk_native_buffer_new(d, YOKE_SEGMENT_DEVICE, sizeof room[i], room[i], &at[i], &host);
	if (!err && p->workspace)
		err = yk_native_buffer_new(d, YOKE_SEGMENT_DEVICE, p->workspace, NULL, &work, &host);
	if (!err)
		err = multiply(d, p, at, NULL, work, n->helper);
	if (!err)
		err = yk_gpu_check(d, V_GET(room[Y], v_address_of(at[Y], 0), sizeof room[Y], n->helper));
	if (!err)
		err = yk_gpu_check(d, V_STREAM_WAIT(n->helper));
	*good = !err && right(room[Y], x.to, whole[0], whole[1]);
	for (int i = 0; i < OPERANDS; i++)
		if (at[i])
			yk_gpu_buffer_free(d, at[i], NULL);
	if (work)
		yk_gpu_buffer_free(d, work, NULL);
	return err;
}

// Opens the library on the device, and has it multiply in dtype once; with the device's lock held.
static int ready(struct yk_gpu_device *d, int dtype)
{
	struct yk_native_device *n = yk_native_of(d);
	struct library *l = n->products;
	bool good = false;
	int err = yk_native_use(d);

	if (err)
		return err;
	if (!l) {
		if (!(l = calloc(1, sizeof *l)))
			return yk_gpu_error(YOKE_ENOMEM, "no memory for a library's record");
		if ((err = check(d, V_LT_NEW(&l->handle)))) {
			free(l);
			return err;
		}
		n->products = l;
	}
	if (l->tried & 1u << dtype)
		return l->good & 1u << dtype ? 0 : YOKE_EUNSUPPORTED;
	err = try_product(d, dtype, &good);
	l->tried |= 1u << dtype;
	l->good |= good ? 1u << dtype : 0;
	if (good || err)
		return err;
	return yk_gpu_error(YOKE_EUNSUPPORTED, "%s multiplies wrongly on %s:%u (%s): products are left to yoke's own "
			    "kernels", yk_native_library(YK_PRODUCTS), V_NAME, d->index, d->info.name);
}

static int record(struct yk_gpu_record *r, const struct yk_gpu_contract *c)
{
	struct work w;
	struct problem p;
	int err = ready(r->device, c->dtype);

	memset(&w, 0, sizeof w);
	problem_of(r->device, c, &p);
	if (!err)
		err = plan_of(r->device, &p, &w.plan);
	if (err)
		return err;
	w.s = c->s;
	w.swapped = (int)c->s.swapped;
	yk_gpu_workspace(r, w.plan->workspace);
	return yk_gpu_call(r, run, &w, sizeof w);
}

const struct yk_gpu_library yk_native_products = { V_PRODUCTS_NAME, { takes, record }, always };
