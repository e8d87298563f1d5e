// SPDX-License-Identifier: Apache-2.0
// Finds a network's parameters in a pretrained model's files, and reads them in the decoder's
// layout: products [out,in] in separate matrices for q, k, v, gate and up; rotary columns as two
// halves; norms with their whole weight.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "models/weights.h"

// Problems with tensors, for one error message; only the first are named.
struct report {
	FILE *f;
	int count;
};
enum { MAX_REPORTED = 8 };

static FILE *problem(struct report *r)
{
	if (++r->count > MAX_REPORTED)
		return NULL;
	fputs(r->count > 1 ? "; " : "", r->f);
	return r->f;
}

// Rows of the layer `name`, "attn.q", of a block that some families store with others.
static int64_t rows_of(const struct yk_model_shape *s, const char *name)
{
	const struct yk_decoder *d = &s->decoder;
	if (!strcmp(name, "attn.q"))
		return s->heads * d->head_dim;
	return !strcmp(name, "attn.k") || !strcmp(name, "attn.v") ? d->kv_heads * d->head_dim :
								    d->hidden;
}

void yk_weight_shared_rows(const struct yk_model_shape *s, const struct yk_weight_location *place,
			   int64_t rows, struct yk_shared_rows *to)
{
	struct yk_shared_rows r = { 0 };
	for (; r.layers < 3 && place->shared[r.layers]; r.layers++) {
		r.from[r.layers] = r.all;
		r.rows[r.layers] = rows_of(s, place->shared[r.layers]);
		r.all += r.rows[r.layers];
	}
	if (!r.layers)
		r = (struct yk_shared_rows){ .layers = 1, .rows = { rows }, .all = rows };
	*to = r;
}

static bool is_weight(const char *name)
{
	return !strcmp(strrchr(name, '.'), ".weight");
}

int yk_weight_source(struct yk_weights *w, const struct yk_family *f,
		     const struct yk_model_shape *shape, const struct yk_weight_spec *wanted,
		     struct yk_weight_source *to, FILE *problems)
{
	const char *name = wanted->name;
	const bool in_block = !strncmp(name, "layer", 5),
		   product = strstr(name, ".attn.") || strstr(name, ".mlp.");
	struct yk_weight_location place;
	struct yk_shared_rows shared;
	char want[YK_SHAPE_TEXT], got[YK_SHAPE_TEXT];
	yk_family_locate(f, w->is_gguf, name, &place);
	const int e = yk_weights_find(w, place.name, &to->weight);
	if (e == YOKE_ENOENT) {
		fprintf(problems, "tensor '%s' is missing", place.name);
		return 1;
	}
	if (e < 0)
		return e;
	to->rank = wanted->rank;
	memcpy(to->dims, wanted->dims, sizeof to->dims);
	to->head_dim = shape->decoder.head_dim;
	yk_weight_shared_rows(shape, &place, to->dims[0], &shared);
	to->rows = shared.all;
	to->from = shared.from[place.segment];
	to->transposed = f->transposed && !w->is_gguf && in_block && product && to->rank == 2;
	to->swapped =
		f->swapped && w->is_gguf && (strstr(name, ".attn.q.") || strstr(name, ".attn.k."));
	to->offset = f->norm_offset && !w->is_gguf && to->rank == 1 && is_weight(name);
	const int64_t dims[] = { to->transposed ? to->dims[1] : to->rows,
				 to->transposed ? to->rows : to->dims[1] };
	if (to->weight.rank == to->rank && to->weight.dims[0] == dims[0] &&
	    (to->rank == 1 || to->weight.dims[1] == dims[1]))
		return 0;
	fprintf(problems, "tensor '%s' is %s, but the configuration gives %s", place.name,
		yk_shape_text(got, to->weight.rank, to->weight.dims),
		yk_shape_text(want, to->rank, dims));
	return 1;
}

// ---- values ----

// to [rows,columns] from the file's [columns,all]
static int read_transposed(const struct yk_weight_source *s, int64_t from, int64_t rows, float *to)
{
	float *row = malloc((size_t)s->rows * sizeof *row);
	int e = row ? 0 : yk_fail(YOKE_ENOMEM, "%s: no memory for a row", s->weight.path);
	for (int64_t c = 0; c < s->dims[1] && e == 0; c++) {
		e = yk_weight_rows(&s->weight, c, 1, row);
		for (int64_t r = 0; r < rows && e == 0; r++)
			to[r * s->dims[1] + c] = row[s->from + from + r];
	}
	free(row);
	return e;
}

int64_t yk_weight_source_row(const struct yk_weight_source *s, int64_t r)
{
	const int64_t half = s->head_dim / 2;
	if (!s->swapped)
		return s->from + r;
	// row 2 j + p of a head in the file is row p D/2 + j here
	return s->from + r / s->head_dim * s->head_dim + 2 * (r % half) + r % s->head_dim / half;
}

int yk_weight_source_rows(const struct yk_weight_source *s, int64_t from, int64_t rows, float *to)
{
	const int64_t columns = s->rank == 2 ? s->dims[1] : 1;
	int e = 0;
	if (s->transposed)
		return read_transposed(s, from, rows, to);
	if (!s->swapped)
		e = yk_weight_rows(&s->weight, s->from + from, rows, to);
	for (int64_t r = from; r < from + rows && s->swapped && e == 0; r++)
		e = yk_weight_rows(&s->weight, yk_weight_source_row(s, r), 1,
				   to + (r - from) * columns);
	for (int64_t k = 0; k < rows && s->offset; k++)
		to[k] += 1;
	return e;
}

static int find_source(struct yk_weights *w, const struct yk_family *f, const struct yk_network *n,
		       int i, struct yk_weight_source *to, struct report *r)
{
	struct yk_weight_spec wanted = { .name = n->params.row[i].name };
	char *text = NULL;
	size_t bytes;
	wanted.rank = yk_parameters_dims(&n->params, i, wanted.dims);
	FILE *problems = open_memstream(&text, &bytes);
	const int e = problems ? yk_weight_source(w, f, &n->shape, &wanted, to, problems) :
				 yk_fail(YOKE_ENOMEM, "no memory");
	if (problems)
		fclose(problems);
	FILE *out = e > 0 ? problem(r) : NULL;
	if (out)
		fputs(text, out);
	free(text);
	return e < 0 ? e : 0;
}

// ---- the whole ----

// Reports tensors that no parameter is read from.
static int report_unused(const struct yk_weights *w, const struct yk_family *f,
			 const struct yk_network *n, const struct yk_weight_source *s,
			 struct report *r)
{
	const char *name;
	size_t tensors = 0;
	while (yk_weights_name(w, tensors))
		tensors++;
	bool *used = calloc(tensors + 1, sizeof *used);
	for (int i = 0; i < n->params.count && used; i++)
		if (s[i].weight.name)
			used[s[i].weight.index] = true;
	for (size_t t = 0; used && (name = yk_weights_name(w, t)); t++) {
		FILE *out = used[t] || yk_family_ignores(&n->shape, name) ? NULL : problem(r);
		if (out)
			fprintf(out, "tensor '%s' is no weight of a %s with this configuration",
				name, f->name);
	}
	const int e = used ? 0 : yk_fail(YOKE_ENOMEM, "out of memory for %zu tensors", tensors);
	free(used);
	return e;
}

int yk_weights_load(struct yk_weights *w, const struct yk_family *f, int format,
		    struct yk_network *n)
{
	const char *path = w->is_gguf ? w->gguf.path : w->set.path;
	char *text = NULL;
	size_t bytes;
	struct report r = { .f = open_memstream(&text, &bytes) };
	struct yk_weight_source *s = calloc((size_t)n->params.count + 1, sizeof *s);
	int e = r.f && s ? 0 : yk_fail(YOKE_ENOMEM, "%s: no memory", path);
	for (int i = 0; i < n->params.count && e == 0; i++)
		e = find_source(w, f, n, i, &s[i], &r);
	if (e == 0)
		e = report_unused(w, f, n, s, &r);
	if (r.f)
		fclose(r.f);
	if (e == 0 && r.count > MAX_REPORTED)
		e = yk_fail(YOKE_EFORMAT, "%s: %s; and %d more", path, text,
			    r.count - MAX_REPORTED);
	else if (e == 0 && r.count)
		e = yk_fail(YOKE_EFORMAT, "%s: %s", path, text);
	for (int i = 0; i < n->params.count && e == 0; i++)
		e = yk_weight_hold(w, &s[i], format, &n->params, i);
	free(text);
	free(s);
	return e;
}
