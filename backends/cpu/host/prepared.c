// SPDX-License-Identifier: Apache-2.0
// Op handles of the backend table: an op prepared for a kernel, which can be run many times.
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "frame.h"

struct yk_prepared {
	const struct yk_kernel *kernel;
	uint32_t impl;
	bool small; // runs on the calling thread
	void *own;  // the kernel's data
};

// ---- small ops ----

// An op that takes one core 5 to 10 us or less gains nothing from a second: what another core
// wrote has to be fetched from its cache, and the threads may have to be woken.
static const double SMALL_BYTES = 256 << 10, SMALL_INSTRUCTIONS = 1 << 17, SMALL_PRODUCTS = 1 << 19;

static double elements(const struct yoke_view *v)
{
	return v->kind == YOKE_VIEW_BUFFER ? (double)yk_elements(v) : 0;
}

struct amount {
	double elements, bytes;
};

static struct amount amount(const struct yoke_view *v, uint32_t n)
{
	struct amount sum = { 0 };
	for (uint32_t i = 0; i < n; i++) {
		const double e = elements(&v[i]);
		sum.elements += e;
		sum.bytes += e * (double)yk_esize(v[i].dtype);
	}
	return sum;
}

static double products(const struct yoke_op *op)
{
	return elements(&op->out[0]) * (double)op->in[0].dims[op->in[0].rank - 1];
}

static bool is_small(const struct yoke_op *op)
{
	const struct amount out = amount(op->out, op->nout), in = amount(op->in, op->nin);
	const double bytes = out.bytes + in.bytes, n = out.elements + in.elements;
	switch (op->code) {
	case YOKE_OP_MAP:
	case YOKE_OP_REDUCE:
	case YOKE_OP_LIST_MAP:
	case YOKE_OP_LIST_REDUCE:
		return bytes <= SMALL_BYTES && n * op->map->ninsn <= 2 * SMALL_INSTRUCTIONS;
	case YOKE_OP_MOVE: return bytes <= SMALL_BYTES;
	case YOKE_OP_GATHER: // reads as many bytes as it writes
	case YOKE_OP_GATHER_ALONG:
	case YOKE_OP_SLICE_AT: return 2 * out.bytes <= SMALL_BYTES;
	case YOKE_OP_SOFTMAX:
	case YOKE_OP_SOFTMAX_BACKWARD:
	case YOKE_OP_LAYER_NORM:
	case YOKE_OP_LAYER_NORM_BACKWARD:
	case YOKE_OP_RMS_NORM:
	case YOKE_OP_RMS_NORM_BACKWARD:
	case YOKE_OP_ROPE:
	case YOKE_OP_SCAN:
	case YOKE_OP_SCATTER_SET:
	case YOKE_OP_SPARSE:
	case YOKE_OP_SPARSE_X:
	case YOKE_OP_WINDOW_ADD: return bytes <= SMALL_BYTES / 2;
	case YOKE_OP_CONTRACT: return products(op) <= SMALL_PRODUCTS;
	}
	return n * sqrt(n) <= SMALL_PRODUCTS;
}

int yk_kernel_prepare(const struct yk_kernel *k, const struct yoke_op *op, uint32_t impl,
		      struct yk_prepared **to)
{
	struct yk_prepared *p = malloc(sizeof *p);
	void *own = p && k->prepare ? k->prepare(op, impl) : NULL;

	if (!p || (k->prepare && !own)) {
		free(p);
		return yk_cpu_fail(YOKE_ENOMEM, "no memory to prepare an op");
	}
	*p = (struct yk_prepared){ k, impl, is_small(op), own };
	*to = p;
	return 0;
}

int yk_kernel_run(const struct yk_prepared *p, const struct yoke_op *op)
{
	const bool was = yk_team_alone(p->small);
	const int err = p->kernel->run(op, p->impl, p->own);
	yk_team_alone(was);
	return err;
}

void yk_kernel_release(struct yk_prepared *p)
{
	free(p->own);
	free(p);
}

int yk_kernel_once(const struct yk_kernel *k, const struct yoke_op *op, uint32_t impl)
{
	struct yk_prepared *p;
	int err = yk_kernel_prepare(k, op, impl, &p);

	if (err)
		return err;
	err = yk_kernel_run(p, op);
	yk_kernel_release(p);
	return err;
}
