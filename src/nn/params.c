// SPDX-License-Identifier: Apache-2.0
// Lists of parameters.
#include "config.h"

#include "nn/params.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/error.h"

yoke_tensor *yk_parameters_add(struct yk_parameters *p, bool decay, int rank, const int64_t *dims,
			       const char *fmt, ...)
{
	size_t n = (size_t)p->count + 1;
	if (yk_grow(&p->var, &p->var_cap, n, sizeof *p->var) < 0 ||
	    yk_grow(&p->row, &p->row_cap, n, sizeof *p->row) < 0)
		return NULL;
	char *name;
	va_list ap;
	va_start(ap, fmt);
	int length = vasprintf(&name, fmt, ap);
	va_end(ap);
	if (length < 0) {
		yk_fail(YOKE_ENOMEM, "parameters: no memory for a name");
		return NULL;
	}
	// Kept: a scope that is open around the building of a model must not take it.
	yoke_tensor *var = yoke_keep(yoke_variable(name, yoke_f32, rank, dims));
	if (!var) {
		free(name);
		return NULL;
	}
	p->var[p->count] = var;
	p->row[p->count] = (struct yk_parameter){ .name = name, .decay = decay };
	p->count++;
	return var;
}

int64_t yk_parameters_elements(const struct yk_parameters *p)
{
	int64_t n = 0;
	for (int i = 0; i < p->count; i++)
		n += yoke_count(p->var[i]);
	return n;
}

void yk_parameters_fini(struct yk_parameters *p)
{
	for (int i = 0; i < p->count; i++) {
		yoke_free(p->var[i]);
		free(p->row[i].name);
	}
	free(p->var);
	free(p->row);
	*p = (struct yk_parameters){ 0 };
}
