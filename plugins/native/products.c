// SPDX-License-Identifier: Apache-2.0
// Matrix products by cuBLASLt or hipBLASLt, with fused epilogues where these match the op's map. A
// problem's descriptors and the algorithm chosen by the library's heuristic are created once and
// cached.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "products.h"

struct plan {
	struct plan *next;
	struct yk_native_problem problem;
	v_lt_desc desc;
	v_lt_layout layout[YK_OPERANDS];
	v_lt_algo algo;
	size_t workspace;
};

struct library {
	v_lt_handle handle;
	uint32_t tried[YK_THENS]; // by epilogue: mask of yk_native_factors already tested
	struct plan *plans;
};

// Data of a run: the plan, and the positions of the matrices.
struct work {
	const struct plan *plan;
	struct yk_gpu_contraction s;
};

static bool takes(const struct yk_gpu_device *device, struct yk_gpu_contract *c)
{
	struct yk_native_problem p;

	return yk_native_problem_of(device, c, true, &p) && yk_native_open(YK_PRODUCTS, NULL) &&
	       !yk_native_wrong(device, &p);
}

// ---- plans ----

// Reports a failure before anything ran: another implementation computes the product.
static int check(const struct yk_gpu_device *d, const char *call, int code)
{
	return code ? yk_native_library_failed(d, YOKE_EUNSUPPORTED, call, YK_PRODUCTS_CODE, code) :
		      0;
}

static int check_run(const struct yk_gpu_device *d, const char *call, int code)
{
	const int error = code == V_PRODUCTS_OUT_OF_MEMORY ? YOKE_ENOMEM : YOKE_EDEVICE;

	return code ? yk_native_library_failed(d, error, call, YK_PRODUCTS_CODE, code) : 0;
}

static int type_of(int dtype)
{
	return dtype == yoke_f64  ? V_R_64F :
	       dtype == yoke_f16  ? V_R_16F :
	       dtype == yoke_bf16 ? V_R_16BF :
				    V_R_32F;
}

static int set_desc(struct yk_gpu_device *d, struct plan *p, int what, int32_t value)
{
	return check(d, V_LT_DESC_SET(p->desc, what, &value, sizeof value));
}

// Both vendors' codes are sums of these.
static int epilogue_of(int then)
{
	return (then & YK_THEN_BIAS ? V_EPILOGUE_BIAS : 0) |
	       (then & YK_THEN_RELU ? V_EPILOGUE_RELU : 0) |
	       (then & YK_THEN_GELU ? V_EPILOGUE_GELU : 0);
}

static int make_desc(struct yk_gpu_device *d, struct plan *p)
{
	const struct yk_native_problem *x = &p->problem;
	const int compute = x->dtype == yoke_f64 ? V_COMPUTE_64F :
			    x->tf32              ? V_COMPUTE_TF32 :
						   V_COMPUTE_32F;
	static void *const some = (void *)256; // a dummy address with a row's alignment
	int err = check(d,
			V_LT_DESC_NEW(&p->desc, compute, x->dtype == yoke_f64 ? V_R_64F : V_R_32F));

	// the library's A is our b
	err = err ? err : set_desc(d, p, V_DESC_TRANSA, x->transposed[YK_B] ? V_OP_T : V_OP_N);
	err = err ? err : set_desc(d, p, V_DESC_TRANSB, x->transposed[YK_A] ? V_OP_T : V_OP_N);
	err = err || !x->then ? err : set_desc(d, p, V_DESC_EPILOGUE, epilogue_of(x->then));
	// hipBLASLt before ROCm 6.2 finds no algorithm without a bias pointer
	return err || !(x->then & YK_THEN_BIAS) ?
		       err :
		       check(d, V_LT_DESC_SET(p->desc, V_DESC_BIAS, &some, sizeof some));
}

// A layout whose columns are the rows of our matrix.
static int make_layout(struct yk_gpu_device *d, struct plan *p, enum yk_native_operand which,
		       int64_t rows, int64_t cols)
{
	const struct yk_native_problem *x = &p->problem;
	const bool transposed = x->transposed[which];
	const int32_t batch = (int32_t)x->batch;
	const int type = type_of(which == YK_Y ? x->to : x->dtype);
	v_lt_layout *l = &p->layout[which];
	int err = check(d, V_LT_LAYOUT_NEW(l, type, (uint64_t)(transposed ? rows : cols),
					   (uint64_t)(transposed ? cols : rows), x->ld[which]));

	if (!err && batch > 1)
		err = check(d, V_LT_LAYOUT_SET(*l, V_LAYOUT_BATCH, &batch, sizeof batch));
	if (!err && batch > 1)
		err = check(d, V_LT_LAYOUT_SET(*l, V_LAYOUT_STEP, &x->step[which],
					       sizeof x->step[which]));
	return err;
}

// Chooses the heuristic's first algorithm.
static int choose(struct yk_gpu_device *d, struct library *l, struct plan *p)
{
	static const uint64_t max = 32 << 20; // max bytes of workspace
	v_lt_result result;
	v_lt_preference preference;
	int found = 0, err = check(d, V_LT_PREFERENCE_NEW(&preference));

	if (err)
		return err;
	err = check(d, V_LT_PREFERENCE_SET(preference, V_PREFERENCE_WORKSPACE, &max, sizeof max));
	if (!err)
		err = yk_vendor_restrict(d, preference, p->problem.align[YK_B],
					 p->problem.align[YK_A], p->problem.align[YK_Y]);
	if (!err) {
		const int code = yk_native_code(
			V_LT_CHOOSE(l->handle, p->desc, p->layout[YK_B], p->layout[YK_A],
				    p->layout[YK_Y], p->layout[YK_Y], preference, 1, &result,
				    &found));
		if (code == V_PRODUCTS_UNSUPPORTED || (!code && (!found || result.state)))
			err = yk_gpu_error(YOKE_EUNSUPPORTED,
					   "%s has no algorithm for this product",
					   yk_native_library(YK_PRODUCTS));
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
	for (int i = 0; i < YK_OPERANDS; i++)
		if (p->layout[i])
			yk_native_code(V_LT_LAYOUT_FREE(p->layout[i]));
	if (p->desc)
		yk_native_code(V_LT_DESC_FREE(p->desc));
	free(p);
}

// Returns the plan of a problem, creating it if needed; called with the device's lock held.
static int plan_of(struct yk_gpu_device *d, const struct yk_native_problem *x,
		   const struct plan **to)
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
	err = err ? err : make_layout(d, p, YK_Y, x->m, x->n);
	err = err ? err : make_layout(d, p, YK_A, x->m, x->k);
	err = err ? err : make_layout(d, p, YK_B, x->k, x->n);
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

static int multiply(struct yk_gpu_device *d, const struct yk_native_problem *x, const void *plan,
		    const struct yk_native_addresses *to, v_stream stream)
{
	const struct library *l = yk_native_of(d)->products;
	const struct plan *p = plan;
	const bool wide = x->dtype == yoke_f64;
	const double one = 1, zero = 0;
	const float one32 = 1, zero32 = 0;
	int err = x->then & YK_THEN_BIAS ? check_run(d, V_LT_DESC_SET(p->desc, V_DESC_BIAS,
								      &to->bias, sizeof to->bias)) :
					   0;

	return err ? err :
		     check_run(d, V_LT_MULTIPLY(l->handle, p->desc,
						wide ? (const void *)&one : &one32, to->at[YK_B],
						p->layout[YK_B], to->at[YK_A], p->layout[YK_A],
						wide ? (const void *)&zero : &zero32, to->at[YK_Y],
						p->layout[YK_Y], to->at[YK_Y], p->layout[YK_Y],
						&p->algo, to->work, p->workspace, stream));
}

static int run(struct yk_gpu_queue *q, const struct yoke_op *op, const void *data)
{
	struct work w;

	memcpy(&w, data, sizeof w);
	return yk_native_products_run(q, op, &w.s, &w.plan->problem, w.plan, multiply);
}

// Opens the library on the device and tests it once with these dtypes and this epilogue; called
// with the device's lock held.
static int open_and_test(struct yk_gpu_device *d, const struct yk_native_problem *p)
{
	struct yk_native_device *n = yk_native_of(d);
	struct library *l = n->products;
	struct yk_native_problem trial;
	const struct plan *plan;
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
	if (l->tried[p->then] & yk_native_factors(p))
		return yk_native_wrong(d, p) ? YOKE_EUNSUPPORTED : 0;
	yk_native_try_problem(&trial, p->dtype, p->to, p->then);
	err = plan_of(d, &trial, &plan);
	err = err ? err : yk_native_try(d, &trial, plan, plan->workspace, multiply, &good);
	l->tried[p->then] |= yk_native_factors(p);
	if (!good)
		atomic_fetch_or(&n->wrong[p->then], yk_native_factors(p));
	if (good || err)
		return err;
	return yk_gpu_error(
		YOKE_EUNSUPPORTED,
		"%s computes wrong products on %s:%u (%s)%s: such products use yoke's own "
		"kernels",
		yk_native_library(YK_PRODUCTS), V_NAME, d->index, d->info.name,
		p->then & YK_THEN_GELU ? ", or with a gelu other than the tanh form" : "");
}

static int record(struct yk_gpu_record *r, const struct yk_gpu_contract *c)
{
	struct yk_gpu_contract form = *c;
	struct work w;
	struct yk_native_problem p;

	memset(&w, 0, sizeof w);
	yk_native_problem_of(r->device, &form, true, &p); // takes() has already normalized c
	int err = open_and_test(r->device, &p);
	err = err ? err : plan_of(r->device, &p, &w.plan);
	if (err)
		return err;
	w.s = form.s;
	return yk_native_products_record(r, &form, &p, w.plan->workspace, run, &w, sizeof w);
}

static bool fast(const struct yk_gpu_device *d, int dtype)
{
	return yk_native_products_pay(d, dtype) && yk_native_open(YK_PRODUCTS, NULL);
}

const struct yk_gpu_library yk_native_products = {
	V_PRODUCTS_NAME, { takes, record }, yk_native_products_always, fast
};
