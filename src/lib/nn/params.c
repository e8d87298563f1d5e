// SPDX-License-Identifier: Apache-2.0
// Lists of parameters: creating their variables and their initial values.
#include "config.h"

#include "nn/params.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/number.h"

static int make_variable(struct yk_parameters *p, int rank, const int64_t *dims, const char *fmt,
			 va_list ap)
{
	size_t n = (size_t)p->count + 1;
	char *name;
	if (yk_grow(&p->var, &p->var_cap, n, sizeof *p->var) < 0 ||
	    yk_grow(&p->row, &p->row_cap, n, sizeof *p->row) < 0)
		return yoke_error_code();
	int64_t here[YOKE_MAX_RANK];
	struct yk_shard_range range;
	if (yk_vasprintf(&name, fmt, ap) < 0)
		return yk_fail(YOKE_ENOMEM, "parameters: no memory for a name");
	memcpy(here, dims, (size_t)rank * sizeof *here);
	const int e = yk_shard_range_of(p->shard, name, rank, here, &range);
	// keep it: the scope in which a model is built must not free it
	yoke_tensor *var =
		e < 0 || p->deferred ?
			NULL :
			yoke_keep(yoke_variable(name, p->dtype ? p->dtype : yoke_f32, rank, here));
	if (e < 0 || (!var && !p->deferred)) {
		free(name);
		return yoke_error_code();
	}
	p->var[p->count] = var;
	struct yk_parameter *row = &p->row[p->count++];
	*row = (struct yk_parameter){ .name = name,
				      .shard = range,
				      .rank = p->deferred ? rank : 0 };
	memcpy(row->dims, here, (size_t)row->rank * sizeof *here);
	return 0;
}

// Adds an entry and returns its row; NULL: an error, or only counting.
static struct yk_parameter *add(struct yk_parameters *p, int rank, const int64_t *dims,
				const char *fmt, va_list ap)
{
	int64_t n = 1;
	for (int i = 0; i < rank; i++)
		n *= dims[i];
	if (!p->error && !p->counts)
		p->error = make_variable(p, rank, dims, fmt, ap);
	if (!p->error)
		p->elements += n;
	return p->error || p->counts ? NULL : &p->row[p->count - 1];
}

void yk_parameters_add(struct yk_parameters *p, int rank, const int64_t *dims, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	add(p, rank, dims, fmt, ap);
	va_end(ap);
}

void yk_parameters_matrix(struct yk_parameters *p, int64_t out, int64_t in, double deviation,
			  const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	struct yk_parameter *row = add(p, 2, (int64_t[]){ out, in }, fmt, ap);
	va_end(ap);
	if (row) {
		row->decay = true;
		row->deviation = deviation;
	}
}

void yk_parameters_vector(struct yk_parameters *p, int64_t n, double value, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	struct yk_parameter *row = add(p, 1, &n, fmt, ap);
	va_end(ap);
	if (row)
		row->value = value;
}

static int shape_of(const struct yk_parameters *p, int i, int64_t *dims)
{
	const int rank = p->row[i].rank ? p->row[i].rank : yoke_rank(p->var[i]);
	for (int d = 0; d < rank; d++)
		dims[d] = p->row[i].rank ? p->row[i].dims[d] : yoke_dim(p->var[i], d);
	return rank;
}

int yk_parameters_set(struct yk_parameters *p, int i, yoke_tensor *t, int format)
{
	if (!t)
		return yoke_error_code();
	p->var[i] = yoke_keep(t);
	p->row[i].format = format;
	return 0;
}

yoke_tensor *yk_parameters_like(struct yk_parameters *p, const struct yk_parameters *of, int i,
				const char *kind)
{
	int64_t dims[YOKE_MAX_RANK];
	int rank = shape_of(of, i, dims);
	yk_parameters_add(p, rank, dims, "%s.%s", kind, of->row[i].name);
	return p->error ? NULL : p->var[p->count - 1];
}

int yk_parameters_dims(const struct yk_parameters *p, int i, int64_t *dims)
{
	const int rank = shape_of(p, i, dims);
	if (p->row[i].shard.blocks)
		dims[p->row[i].shard.axis] = p->row[i].shard.all;
	return rank;
}

static int fill(yoke_tensor *var, double value)
{
	// write the values instead of recording them: equal recorded values of two variables would
	// share one storage, and the first step would need its own plan
	int64_t n = yoke_count(var);
	float *host = malloc((size_t)n * sizeof *host + 1);
	if (!host)
		return yk_fail(YOKE_ENOMEM, "parameters: no host memory for %lld elements",
			       (long long)n);
	for (int64_t i = 0; i < n; i++)
		host[i] = (float)value;
	int e = yoke_put(var, host, yoke_bytes(var));
	free(host);
	return e;
}

// Random initial values of a whole parameter.
static yoke_tensor *drawn(const struct yk_parameter *row, int rank, const int64_t *dims)
{
	if (row->bound == 0)
		return yoke_mul(yoke_normal(yoke_f32, rank, dims), yoke_const(row->deviation));
	yoke_tensor *unit = yoke_uniform(yoke_f32, rank, dims); // in [0,1)
	return yoke_mul(yoke_sub(unit, yoke_const(0.5)), yoke_const(2 * row->bound));
}

int yk_parameters_draw_some(struct yk_parameters *p, int first, int end, uint64_t seed)
{
	yoke_random_set(seed, 0);
	yoke_scope *s = yoke_scope_begin("init");
	for (int i = first; i < end; i++) {
		const struct yk_parameter *row = &p->row[i];
		int64_t dims[YOKE_MAX_RANK];
		int rank = yk_parameters_dims(p, i, dims);
		if (row->deviation == 0 && row->bound == 0) {
			fill(p->var[i], row->value);
			continue;
		}
		yoke_scope *own = yoke_scope_begin(row->name); // the name seeds the random numbers
		yoke_assign(p->var[i], yk_shard_slice(&row->shard, drawn(row, rank, dims)));
		yoke_scope_end(own);
	}
	yoke_eval(0, NULL);
	return yoke_scope_end(s);
}

int yk_parameters_draw(struct yk_parameters *p, uint64_t seed)
{
	return yk_parameters_draw_some(p, 0, p->count, seed);
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
