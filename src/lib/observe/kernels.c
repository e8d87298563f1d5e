// SPDX-License-Identifier: Apache-2.0
// Exports the rows of a profile as JSON.
#include "config.h"

#include "observe/kernels.h"

#include <stdlib.h>

#include "observe/profile_state.h"

static int by_time(const void *x, const void *y)
{
	const struct yk_row *a = *(const struct yk_row *const *)x,
			    *b = *(const struct yk_row *const *)y;
	return (a->ns < b->ns) - (a->ns > b->ns);
}

json_t *yk_profile_kernels(const struct yk_profile *p)
{
	const struct yk_row **order = calloc(p->rows.n + 1, sizeof *order);
	json_t *list = json_array();
	for (size_t i = 0; order && i < p->rows.n; i++)
		order[i] = &p->rows.row[i];
	if (order)
		qsort(order, p->rows.n, sizeof *order, by_time);
	for (size_t i = 0; order && i < p->rows.n; i++) {
		const struct yk_row *r = order[i];
		json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:f, s:f}", "op", r->op,
				      "implementation", r->impl, "device", r->device, "scope",
				      r->scope, "nodes", r->nodes, "calls", (json_int_t)r->count,
				      "seconds", 1e-9 * (double)r->ns, "bytes", (double)r->bytes);
		if (o && r->flops > 0)
			json_object_set_new(o, "flops", json_real(r->flops));
		json_array_append_new(list, o);
	}
	free(order);
	return json_pack("{s:i, s:o}", "format", 1, "rows", list);
}
