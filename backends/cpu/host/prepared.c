// SPDX-License-Identifier: Apache-2.0
// Op handles of the backend table: an op prepared for a kernel, which can be run many times.
#include "config.h"

#include <stdlib.h>

#include "frame.h"

struct yk_prepared {
	const struct yk_kernel *kernel;
	uint32_t impl;
	void *own; // the kernel's data
};

int yk_kernel_prepare(const struct yk_kernel *k, const struct yoke_op *op, uint32_t impl,
		      struct yk_prepared **to)
{
	struct yk_prepared *p = malloc(sizeof *p);
	void *own = p && k->prepare ? k->prepare(op, impl) : NULL;

	if (!p || (k->prepare && !own)) {
		free(p);
		return yk_cpu_fail(YOKE_ENOMEM, "no memory to prepare an op");
	}
	*p = (struct yk_prepared){ k, impl, own };
	*to = p;
	return 0;
}

int yk_kernel_run(const struct yk_prepared *p, const struct yoke_op *op)
{
	return p->kernel->run(op, p->impl, p->own);
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
