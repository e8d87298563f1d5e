// SPDX-License-Identifier: Apache-2.0
// Matrix products by CLBlast (Nugteren 2018), loaded at run time through its C interface if
// installed. CLBlast copies operands whose offset is not 0, so it receives sub-buffers that begin
// at the operands, and its workspace.
#include "config.h"

#include <dlfcn.h>
#include <string.h>

#include "../gpu/contract.h"
#include "opencl.h"

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };
typedef int sgemm_fn(int layout, int ta, int tb, size_t m, size_t n, size_t k, float alpha,
		     cl_mem a, size_t a_at, size_t a_ld, cl_mem b, size_t b_at, size_t b_ld,
		     float beta, cl_mem c, size_t c_at, size_t c_ld, cl_command_queue *,
		     cl_event *, cl_mem work);
typedef int dgemm_fn(int layout, int ta, int tb, size_t m, size_t n, size_t k, double alpha,
		     cl_mem a, size_t a_at, size_t a_ld, cl_mem b, size_t b_at, size_t b_ld,
		     double beta, cl_mem c, size_t c_at, size_t c_ld, cl_command_queue *,
		     cl_event *, cl_mem work);
typedef int size_fn(int layout, int ta, int tb, size_t m, size_t n, size_t k, size_t a_at,
		    size_t a_ld, size_t b_at, size_t b_ld, size_t c_at, size_t c_ld,
		    cl_command_queue *, size_t *bytes);

static struct {
	sgemm_fn *sgemm;
	dgemm_fn *dgemm;
	size_fn *sgemm_bytes, *dgemm_bytes;
	bool there;
} lib;
static pthread_once_t opened = PTHREAD_ONCE_INIT;

static void symbol(void *library, const char *name, void *to)
{
	void *s = dlsym(library, name);

	memcpy(to, &s, sizeof s);
}

// The setting opencl.clblast.
enum usage { NEVER, BY_RULE, ALWAYS };
static enum usage usage_of(void)
{
	static const struct yoke_setting setting = {
		sizeof setting,
		"opencl.clblast",
		"string",
		"",
		"use CLBlast for matrix products: 0 never, 1 whenever possible; empty: as chosen by rules or "
		"`yoke tune`",
	};
	const char *value = yk_gpu_host->setting(&setting);

	return !value || !*value ? BY_RULE :
	       !strcmp(value, "0") ? NEVER : ALWAYS;
}

void yk_cl_clblast_start(void)
{
	usage_of();
}

static bool always(void)
{
	return usage_of() == ALWAYS;
}

static void open_library(void)
{
	void *library = dlopen("libclblast.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library && always())
		yk_gpu_log(YOKE_LOG_WARN, "opencl.clblast=1, but libclblast.so.1 was not "
					 "found; using yoke's kernels");
	if (!library)
		return;
	symbol(library, "CLBlastSgemmWithTempBuffer", &lib.sgemm);
	symbol(library, "CLBlastDgemmWithTempBuffer", &lib.dgemm);
	symbol(library, "CLBlastSGemmTempBufferSize", &lib.sgemm_bytes);
	symbol(library, "CLBlastDGemmTempBufferSize", &lib.dgemm_bytes);
	lib.there = lib.sgemm && lib.dgemm && lib.sgemm_bytes && lib.dgemm_bytes;
	if (!lib.there)
		yk_gpu_log(YOKE_LOG_INFO, "libclblast.so.1 is older than 1.5; not used");
}

// ---- supported problems ----

// Computes the leading dimension and whether the matrix is transposed; false: BLAS cannot express
// the strides.
static bool leading(int64_t rows, int64_t cols, int64_t by_row, int64_t by_col, size_t *ld,
		    bool *transposed)
{
	*transposed = !(by_col == 1 || cols == 1);
	if (*transposed && by_row != 1 && rows != 1)
		return false;
	int64_t wide = *transposed ? rows : cols, stride = *transposed ? by_col : by_row;
	if ((*transposed ? cols : rows) == 1)
		stride = wide;
	*ld = (size_t)stride;
	return stride >= wide;
}

struct layout {
	size_t a_ld, b_ld, y_ld;
	bool ta, tb, ty;
};

static bool layout_of(const struct yk_gpu_contract *c, struct layout *l)
{
	const struct yk_gpu_contraction *s = &c->s;

	return leading(s->m, s->n, s->y_m, s->y_n, &l->y_ld, &l->ty) && !l->ty &&
	       leading(s->m, s->k, s->a_m, s->a_k, &l->a_ld, &l->ta) &&
	       leading(s->k, s->n, s->b_k, s->b_n, &l->b_ld, &l->tb);
}

enum {
	MIN_SIZE = 64, // min M, N and K
	// max matrices, each of which takes a few launches; both limit what is used by rule
	MANY = 4
};

static bool takes(const struct yk_gpu_device *d, struct yk_gpu_contract *c)
{
	enum usage usage = usage_of();
	const struct yk_gpu_contraction *s = &c->s;
	struct layout l;

	(void)d;
	if (usage == NEVER || c->map || c->by_row || !s->m || !s->n || !s->k ||
	    (c->dtype != yoke_f32 && c->dtype != yoke_f64))
		return false;
	if (usage == BY_RULE &&
	    (s->m < MIN_SIZE || s->n < MIN_SIZE || s->k < MIN_SIZE || c->batch > MANY))
		return false;
	if (!layout_of(c, &l)) {
		yk_gpu_contract_swap(c);
		if (!layout_of(c, &l))
			return false;
	}
	pthread_once(&opened, open_library);
	return lib.there;
}

static size_t size_of(int dtype)
{
	return dtype == yoke_f64 ? 8 : 4;
}

static int transposed(bool t)
{
	return t ? TRANSPOSED : PLAIN;
}

static int bytes_of(struct yk_gpu_device *d, const struct yk_gpu_contract *c, size_t *bytes)
{
	size_fn *fn = c->dtype == yoke_f64 ? lib.dgemm_bytes : lib.sgemm_bytes;
	const struct yk_gpu_contraction *s = &c->s;
	struct layout l;

	layout_of(c, &l);
	*bytes = 0;
	return fn(ROW_MAJOR, transposed(l.ta), transposed(l.tb), (size_t)s->m, (size_t)s->n,
		  (size_t)s->k, 0, l.a_ld, 0, l.b_ld, 0, l.y_ld, &yk_cl_of(d)->helper, bytes);
}

static int failed(const struct yk_gpu_device *d, int code)
{
	return yk_gpu_error(code == CL_MEM_OBJECT_ALLOCATION_FAILURE ||
					   code == CL_OUT_OF_RESOURCES ?
				   YOKE_ENOMEM : YOKE_EDEVICE,
			   "CLBlast: %d (%s) on opencl:%u", code,
			   code <= 0 ? yk_cl_name(code) : "see clblast_c.h", d->index);
}

// ---- running ----

// A sub-buffer of `bytes` at an offset, aligned down as the device requires; *at: elements from its
// start.
static cl_mem part(const struct yk_gpu_device *d, void *segment, uint64_t offset,
		   uint64_t bytes, size_t size, size_t *at, cl_int *code)
{
	const struct yk_gpu_segment *s = segment;
	uint64_t before = offset % d->info.align;
	cl_buffer_region region = { offset - before, before + bytes };

	*at = before / size;
	return clCreateSubBuffer(s->buffer, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
				 &region, code);
}

struct operand {
	const struct yoke_view *view;
	int64_t matrix; // in elements, from the first matrix
	int64_t last;   // of the matrix's last element, from its first
	cl_mem mem;
	size_t at;
};

static int gemm(struct yk_gpu_queue *q, const struct yk_gpu_contract *c,
		struct operand o[3], cl_mem work)
{
	const struct yk_gpu_contraction *s = &c->s;
	size_t m = (size_t)s->m, n = (size_t)s->n, k = (size_t)s->k;
	cl_command_queue queue = q->queue;
	struct layout l;

	layout_of(c, &l);
	if (c->dtype == yoke_f64)
		return lib.dgemm(ROW_MAJOR, transposed(l.ta), transposed(l.tb), m, n, k, 1,
				 o[1].mem, o[1].at, l.a_ld, o[2].mem, o[2].at, l.b_ld, 0,
				 o[0].mem, o[0].at, l.y_ld, &queue, NULL, work);
	return lib.sgemm(ROW_MAJOR, transposed(l.ta), transposed(l.tb), m, n, k, 1, o[1].mem,
			 o[1].at, l.a_ld, o[2].mem, o[2].at, l.b_ld, 0, o[0].mem, o[0].at,
			 l.y_ld, &queue, NULL, work);
}

// Offset of matrix `index` from the first, in elements.
static int64_t matrix_at(const struct yk_gpu_contraction *s, const int64_t *strides,
			 int64_t index)
{
	int64_t at = 0;

	for (int i = YK_GPU_BATCH - 1; i >= 0; i--) {
		at += index % s->d[i] * strides[i];
		index /= s->d[i];
	}
	return at;
}

static int run_one(struct yk_gpu_queue *q, const struct yk_gpu_contract *c, int64_t index,
		   cl_mem work)
{
	const struct yk_gpu_contraction *s = &c->s;
	const size_t size = size_of(c->dtype);
	struct operand o[3] = {
		{ &c->op->out[0], matrix_at(s, s->y, index),
		  (s->m - 1) * s->y_m + (s->n - 1) * s->y_n, NULL, 0 },
		{ c->a, matrix_at(s, s->a, index),
		  (s->m - 1) * s->a_m + (s->k - 1) * s->a_k, NULL, 0 },
		{ c->b, matrix_at(s, s->b, index),
		  (s->k - 1) * s->b_k + (s->n - 1) * s->b_n, NULL, 0 },
	};
	cl_int code = CL_SUCCESS;
	int err = 0;

	for (int i = 0; i < 3 && code == CL_SUCCESS; i++)
		o[i].mem = part(q->device, o[i].view->segment,
				o[i].view->offset + (uint64_t)o[i].matrix * size,
				(uint64_t)(o[i].last + 1) * size, size, &o[i].at, &code);
	if (code != CL_SUCCESS)
		err = yk_gpu_fail(q->device, "clCreateSubBuffer", code);
	else if ((code = gemm(q, c, o, work)))
		err = failed(q->device, code);
	for (int i = 0; i < 3; i++)
		if (o[i].mem)
			clReleaseMemObject(o[i].mem); // the launch keeps a reference
	return err;
}

static int run(struct yk_gpu_queue *q, const struct yoke_op *op, const void *data)
{
	struct yk_gpu_contract c = *(const struct yk_gpu_contract *)data;
	const struct yoke_view *w = &op->workspace;
	cl_mem work = NULL;
	cl_int code = CL_SUCCESS;
	size_t at;
	int err = 0;

	if (w->kind == YOKE_VIEW_BUFFER)
		work = part(q->device, w->segment, w->offset, (uint64_t)w->dims[0], 1, &at,
			    &code);
	if (code != CL_SUCCESS)
		return yk_gpu_fail(q->device, "clCreateSubBuffer", code);
	c.op = op;
	c.a = &op->in[c.s.swapped];
	c.b = &op->in[!c.s.swapped];
	for (int64_t i = 0; i < c.batch && !err; i++)
		err = run_one(q, &c, i, work);
	if (work)
		clReleaseMemObject(work);
	return err;
}

// ---- preparation ----

// CLBlast compiles its kernels at the first product; this triggers it with a tiny one.
static int build(struct yk_cl_device *d, const struct yk_gpu_contract *c)
{
	struct yk_gpu_queue q = { .device = &d->gpu, .queue = d->helper };
	struct yk_gpu_contract one = { .batch = 1, .dtype = c->dtype };
	struct operand o[3] = { { 0 } };
	cl_int code;
	int err = 0;

	one.s = (struct yk_gpu_contraction){ .m = 1, .n = 1, .k = 1, .y_m = 1, .y_n = 1,
					    .a_m = 1, .a_k = 1, .b_k = 1, .b_n = 1 };
	cl_mem mem = clCreateBuffer(d->context, CL_MEM_READ_WRITE, 4096, NULL, &code);
	if (code != CL_SUCCESS)
		return yk_gpu_fail(&d->gpu, "clCreateBuffer", code);
	o[0].mem = o[1].mem = o[2].mem = mem;
	o[1].at = 64;
	o[2].at = 128;
	if ((code = gemm(&q, &one, o, NULL)))
		err = failed(&d->gpu, code);
	clReleaseMemObject(mem);
	return err;
}

static int record(struct yk_gpu_record *r, const struct yk_gpu_contract *c)
{
	struct yk_cl_device *d = yk_cl_of(r->device);
	uint32_t bit = 1u << c->dtype;
	size_t work;
	int code = bytes_of(r->device, c, &work), err = 0;

	if (code)
		return failed(r->device, code);
	if (!(d->clblast & bit))
		err = build(d, c);
	if (err)
		return err;
	d->clblast |= bit;
	yk_gpu_workspace(r, work);
	return yk_gpu_call(r, run, c, sizeof *c);
}

const struct yk_gpu_library yk_cl_clblast = { "clblast", { takes, record }, always, NULL };
