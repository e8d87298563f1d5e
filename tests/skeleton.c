// SPDX-License-Identifier: Apache-2.0
// Tests the skeleton plugin, loaded as a module, against float64 loops, and the faults of the
// fault backend.
#include "config.h"

#include "base/error.h"
#include "base/param.h"
#include "device/device.h"
#include "device/pool.h"
#include "tap.h"

// Absolute directories of yoke_skeleton.so and yoke_fault.so.
#ifndef MODULE_PATH
#define MODULE_PATH ""
#endif

static struct yk_device *d;
static struct yk_queue *q;

// A tensor with its axes permuted: dims as seen, stored in the given `order`.
struct tensor {
	struct yoke_view view;
	struct yk_block *block;
	float *host;
	int64_t count;
};

static void tensor_new(struct tensor *t, int rank, const int64_t *dims, const int *order)
{
	t->view = (struct yoke_view){ .rank = (uint8_t)rank, .dtype = yoke_f32,
		.kind = YOKE_VIEW_BUFFER, .align = 256 };
	t->count = 1;
	for (int k = rank - 1; k >= 0; k--) {
		int axis = order ? order[k] : k;
		t->view.dims[axis] = dims[axis];
		t->view.strides[axis] = t->count;
		t->count *= dims[axis];
	}
	yk_pool_alloc(d->pool, (uint64_t)t->count * sizeof(float), q, &t->block);
	t->view.segment = t->block->segment;
	t->view.offset = t->block->offset;
	t->host = malloc((size_t)t->count * sizeof(float) + 1);
	for (int64_t i = 0; i < t->count; i++)
		t->host[i] = (float)rnd_real(-1, 1);
	d->ops->put(q->handle, t->view.segment, t->view.offset, t->host, (uint64_t)t->count * 4);
}

static void tensor_free(struct tensor *t)
{
	yk_pool_free(t->block, q, NULL);
	free(t->host);
}

static int run(const struct yoke_op *op)
{
	void *handle = NULL;
	uint64_t bytes = 0;
	int err = d->ops->prepare(d->index, op, 0, 0, &handle, &bytes);

	if (err || bytes)
		return err ? err : YOKE_EFAILED;
	err = d->ops->run(q->handle, handle, op);
	yk_queue_drain(q);
	if (handle)
		d->ops->release(handle);
	return err;
}

static void fill_nan(struct tensor *t)
{
	const float nan = NAN;
	yk_queue_fill(q, t->view.segment, t->view.offset, (uint64_t)t->count * 4, &nan, 4);
}

static void fetch(struct tensor *t)
{
	d->ops->get(q->handle, t->view.segment, t->view.offset, t->host, (uint64_t)t->count * 4);
	yk_queue_wait(q);
}

static void compare(struct tensor *y, const double *want, double scale, const char *what)
{
	double *got = malloc((size_t)y->count * sizeof *got);
	fetch(y);
	for (int64_t i = 0; i < y->count; i++)
		got[i] = y->host[i];
	near(got, want, (size_t)y->count, 1e-6, scale, what);
	free(got);
}

static struct yoke_map add_map(uint16_t code)
{
	struct yoke_map m = { .size = sizeof m, .ninsn = 3, .nin = 2, .nout = 1, .out = { 2 } };
	m.insn[0] = (struct yoke_insn){ .op = YOKE_MAP_INPUT, .dtype = yoke_f32, .a = 0 };
	m.insn[1] = (struct yoke_insn){ .op = YOKE_MAP_INPUT, .dtype = yoke_f32, .a = 1 };
	m.insn[2] = (struct yoke_insn){ .op = code, .dtype = yoke_f32, .a = 0, .b = 1 };
	return m;
}

static void add(int64_t m, int64_t n)
{
	const int64_t dims[2] = { m, n };
	const int swapped[2] = { 1, 0 };
	struct tensor a, b, y;
	char what[64];

	tensor_new(&a, 2, dims, NULL);
	tensor_new(&b, 2, dims, swapped);
	tensor_new(&y, 2, dims, NULL);
	fill_nan(&y);
	struct yoke_view in[2] = { a.view, b.view };
	in[1].strides[0] = 0; // the first row of b for all rows
	struct yoke_map map = add_map(YOKE_MAP_ADD);
	struct yoke_op op = { .size = sizeof op,
			      .code = YOKE_OP_MAP,
			      .rank = 2,
			      .nout = 1,
			      .nin = 2,
			      .dims = { m, n },
			      .out = &y.view,
			      .in = in,
			      .map = &map };
	double *want = malloc((size_t)(m * n) * sizeof *want);
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++)
			want[i * n + j] = (double)a.host[i * n + j] + b.host[j * m];
	snprintf(what, sizeof what, "add %lld x %lld", (long long)m, (long long)n);
	ok(d->ops->can(0, &op) == 1 && !run(&op), "%s runs", what);
	compare(&y, want, 1, what);
	free(want);
	tensor_free(&a);
	tensor_free(&b);
	tensor_free(&y);
}

// a is stored transposed, b is broadcast over the leading axis.
static void matmul(int64_t lead, int64_t m, int64_t n, int64_t k)
{
	const int64_t da[3] = { lead, m, k }, db[2] = { k, n }, dy[3] = { lead, m, n };
	const int transposed[3] = { 0, 2, 1 };
	struct tensor a, b, y;
	char what[64];

	tensor_new(&a, 3, da, transposed);
	tensor_new(&b, 2, db, NULL);
	tensor_new(&y, 3, dy, NULL);
	fill_nan(&y);
	struct yoke_view in[2] = { a.view, b.view };
	in[1].rank = 3;
	for (int axis = 2; axis; axis--) {
		in[1].dims[axis] = in[1].dims[axis - 1];
		in[1].strides[axis] = in[1].strides[axis - 1];
	}
	in[1].dims[0] = lead;
	in[1].strides[0] = 0;
	struct yoke_op op = { .size = sizeof op, .code = YOKE_OP_CONTRACT, .nout = 1, .nin = 2,
		.out = &y.view, .in = in };
	double *want = calloc((size_t)(lead * m * n), sizeof *want);
	for (int64_t l = 0; l < lead; l++)
		for (int64_t i = 0; i < m; i++)
			for (int64_t j = 0; j < n; j++)
				for (int64_t x = 0; x < k; x++)
					want[(l * m + i) * n + j] +=
						(double)a.host[(l * k + x) * m + i] *
						b.host[x * n + j];
	snprintf(what, sizeof what, "matmul %lld x %lld x %lld x %lld", (long long)lead,
		 (long long)m, (long long)n, (long long)k);
	ok(d->ops->can(0, &op) == 1 && !run(&op), "%s runs", what);
	compare(&y, want, (double)k, what);
	free(want);
	tensor_free(&a);
	tensor_free(&b);
	tensor_free(&y);
}

static void refusals(void)
{
	const int64_t dims[2] = { 3, 3 };
	struct tensor a;

	tensor_new(&a, 2, dims, NULL);
	struct yoke_view in[2] = { a.view, a.view }, out = a.view;
	struct yoke_map map = add_map(YOKE_MAP_MUL);
	struct yoke_op op = { .size = sizeof op,
			      .code = YOKE_OP_MAP,
			      .rank = 2,
			      .nout = 1,
			      .nin = 2,
			      .dims = { 3, 3 },
			      .out = &out,
			      .in = in,
			      .map = &map };
	ok(!d->ops->can(0, &op), "mul is not supported");
	map = add_map(YOKE_MAP_ADD);
	in[1] = (struct yoke_view){ .kind = YOKE_VIEW_SCALAR, .dtype = yoke_f32 };
	ok(!d->ops->can(0, &op), "nor is a scalar");
	in[1] = a.view;
	out.dtype = yoke_f64;
	ok(!d->ops->can(0, &op), "nor f64");
	out = a.view;
	op.code = YOKE_OP_CONTRACT;
	ok(!d->ops->can(0, &op), "nor a contraction with an epilogue");
	op.code = YOKE_OP_SOFTMAX;
	ok(!d->ops->can(0, &op), "nor softmax");
	op.code = 9999;
	ok(!d->ops->can(0, &op), "nor an op of a later version");
	tensor_free(&a);
}

static void faults(void)
{
	struct yk_block *b = NULL, *c = NULL;
	struct yk_pool_stats s;
	struct yoke_op op = { .size = sizeof op, .code = YOKE_OP_SOFTMAX };

	if (!(d = yk_device_choose("fault"))) {
		ok(false, "no fault backend: %s", yoke_error());
		return;
	}
	ok(!yk_queue_new(d, YOKE_QUEUE_COMPUTE, &q), "a queue");
	ok(d->ops->can(0, &op) == 1, "fault.null=1 accepts everything");
	ok(!yk_pool_alloc(d->pool, 100, q, &b), "the first segment");
	ok(!yk_pool_alloc(d->pool, 20 << 20, q, &c) && !yoke_error_code(),
	   "the second segment fails, and the pool retries");
	yk_pool_stats(d->pool, &s);
	ok(s.num_alloc_retries == 1 && s.num_ooms == 0, "the retry is counted");
	ok(!run(&op) && !run(&op) && run(&op) == YOKE_EDEVICE && !run(&op),
	   "the third run fails");
	ok(!strcmp(yoke_error(), "fault.run: call 3"), "and reports it: %s", yoke_error());
	yoke_error_clear();
	yk_pool_free(b, q, NULL);
	yk_pool_free(c, q, NULL);
	yk_queue_free(q);
	yk_pool_trim(d->pool);
}

int main(void)
{
	static const int64_t sizes[] = { 1, 2, 7, 16, 31 };
	const char *path = getenv("YOKE_TEST_MODULES");

	tap_seed();
	setenv("YOKE_FAULT_NULL", "1", 1);
	setenv("YOKE_FAULT_SEGMENT", "2", 1);
	setenv("YOKE_FAULT_RUN", "3", 1);
	yk_param_set("plugin.path", path ? path : MODULE_PATH, YK_ARGUMENT);
	d = yk_device_choose("skeleton");
	if (!ok(d != NULL, "skeleton loads: %s", yoke_error()))
		return done();
	ok(!yk_queue_new(d, YOKE_QUEUE_COMPUTE, &q), "a queue");
	for (int i = 0; i < 5; i++) {
		add(sizes[i], sizes[4 - i]);
		matmul(1 + i % 3, sizes[i], sizes[(i + 2) % 5], sizes[(i + 3) % 5]);
	}
	refusals();
	yk_queue_free(q);
	yk_pool_trim(d->pool);
	faults();
	return done();
}
