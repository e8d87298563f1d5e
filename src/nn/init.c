// SPDX-License-Identifier: Apache-2.0
// First values of parameters.
#include "config.h"

#include "nn/init.h"

#include <stdlib.h>

#include "base/error.h"

static int shape_of(const yoke_tensor *t, int64_t *dims)
{
	int rank = yoke_rank(t);
	for (int i = 0; i < rank; i++)
		dims[i] = yoke_dim(t, i);
	return rank;
}

int yk_init_normal(yoke_tensor *var, const char *name, double deviation)
{
	int64_t dims[YOKE_MAX_RANK];
	int rank = shape_of(var, dims);
	yoke_scope *s = yoke_scope_begin(name);
	yoke_tensor *unit = yoke_normal(yoke_dtype(var), rank, dims);
	yoke_assign(var, yoke_mul(unit, yoke_const(deviation)));
	return yoke_scope_end(s);
}

int yk_init_fill(yoke_tensor *var, double value)
{
	// Put, not recorded: equal values recorded for two variables would share one storage,
	// and the first step would have a plan of its own.
	int64_t n = yoke_count(var);
	float *host = malloc((size_t)n * sizeof *host + 1);
	if (!host)
		return yk_fail(YOKE_ENOMEM, "init: no host memory for %lld elements", (long long)n);
	for (int64_t i = 0; i < n; i++)
		host[i] = (float)value;
	int e = yoke_put(var, host, yoke_bytes(var));
	free(host);
	return e;
}
