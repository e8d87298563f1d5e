// SPDX-License-Identifier: Apache-2.0
// LoRA adapters that sequences choose.  The matrices A of all adapters of a layer are stacked, and
// so are B's columns; a token's products with the A of other adapters are multiplied by 0.  So one
// step serves any choice.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/engine.h"
#include "models/adapter.h"
#include "nn/lora.h"

struct layer {
	struct yk_network_adapter at; // module and, while they are used, tensors
	yoke_tensor *a, *b;           // stacked, variables [ranks,in], [out,ranks]
	int64_t ranks;
	int64_t *rank;                // of each adapter; 0: it does not change this layer
	double *scale;
};

struct yk_engine_adapters {
	char **name;
	struct yk_adapter *is;
	int count;
	struct layer *layer;
	size_t layers;
};

int yk_engine_adapters_find(const struct yoke_engine *e, const char *name)
{
	for (int i = 0; e->adapters && i < e->adapters->count; i++)
		if (!strcmp(e->adapters->name[i], name))
			return i;
	return -1;
}

static void free_layers(struct yk_engine_adapters *x)
{
	for (size_t i = 0; i < x->layers; i++) {
		yoke_free(x->layer[i].a);
		yoke_free(x->layer[i].b);
		free(x->layer[i].rank);
		free(x->layer[i].scale);
	}
	free(x->layer);
	x->layer = NULL;
	x->layers = 0;
}

void yk_engine_adapters_free(struct yoke_engine *e)
{
	struct yk_engine_adapters *x = e->adapters;
	if (!x)
		return;
	free_layers(x);
	for (int i = 0; i < x->count; i++) {
		yk_adapter_close(&x->is[i]);
		free(x->name[i]);
	}
	free(x->name);
	free(x->is);
	free(x);
	e->adapters = NULL;
}

// A variable with the rows of A of all adapters, or the columns of B.
static yoke_tensor *stacked(const struct yk_engine_adapters *x, const struct layer *l,
			    const char *name, int64_t size, bool columns)
{
	float *all = calloc((size_t)(l->ranks * size), sizeof *all);
	const int64_t dims[] = { columns ? size : l->ranks, columns ? l->ranks : size };
	yoke_tensor *t = all ? yoke_variable(name, yoke_f32, 2, dims) : NULL;
	if (!all)
		yk_fail(YOKE_ENOMEM, "engine_adapter: no memory for layer %s", name);
	for (int i = 0, at = 0; t && i < x->count; at += (int)l->rank[i++]) {
		const struct yk_adapter_layer *from = yk_adapter_find(&x->is[i], name);
		for (int64_t r = 0; from && r < from->is.rank; r++)
			for (int64_t k = 0; k < size; k++)
				if (columns)
					all[k * l->ranks + at + r] = from->b[k * from->is.rank + r];
				else
					all[(at + r) * size + k] = from->a[r * size + k];
	}
	if (t && yoke_put(t, all, (size_t)(l->ranks * size) * sizeof *all) < 0) {
		yoke_free(t);
		t = NULL;
	}
	free(all);
	return t;
}

static int make_layer(const struct yoke_engine *e, struct yk_engine_adapters *x,
		      const struct yk_adapter_layer *first)
{
	struct layer *l = &x->layer[x->layers++];
	*l = (struct layer){ .at.module = yk_network_linear_at(e->net, first->is.name),
			     .at.as = first->is };
	l->rank = calloc((size_t)x->count, sizeof *l->rank);
	l->scale = calloc((size_t)x->count, sizeof *l->scale);
	if (!l->rank || !l->scale)
		return yk_fail(YOKE_ENOMEM, "engine_adapter: no memory");
	if (!l->at.module)
		return yk_fail(YOKE_EINVAL,
			       "engine_adapter: the model has no layer '%s' with its own matrix",
			       first->is.name);
	for (int i = 0; i < x->count; i++) {
		const struct yk_adapter_layer *from = yk_adapter_find(&x->is[i], first->is.name);
		if (!from)
			continue;
		l->ranks += l->rank[i] = from->is.rank;
		l->scale[i] = from->is.alpha / (double)from->is.rank;
	}
	l->a = stacked(x, l, first->is.name, first->in, false);
	l->b = l->a ? stacked(x, l, first->is.name, first->out, true) : NULL;
	return l->b ? 0 : yoke_error_code();
}

// The layers that some adapter changes.
static int make_layers(const struct yoke_engine *e, struct yk_engine_adapters *x)
{
	size_t n = 0;
	int error = 0;
	for (int i = 0; i < x->count; i++)
		n += x->is[i].n;
	free_layers(x);
	x->layer = calloc(n + 1, sizeof *x->layer);
	if (!x->layer)
		return yk_fail(YOKE_ENOMEM, "engine_adapter: no memory for %zu layers", n);
	for (int i = 0; i < x->count; i++)
		for (size_t k = 0; k < x->is[i].n && !error; k++) {
			bool known = false;
			for (int j = 0; j < i; j++)
				known = known ||
					yk_adapter_find(&x->is[j], x->is[i].layer[k].is.name);
			if (!known)
				error = make_layer(e, x, &x->is[i].layer[k]);
		}
	return error;
}

int yk_engine_adapters_add(struct yoke_engine *e, const char *name, const char *folder)
{
	struct yk_engine_adapters *x = e->adapters ? e->adapters : calloc(1, sizeof *x);
	const size_t n = x ? (size_t)x->count + 1 : 0;
	e->adapters = x;
	char **names = x ? realloc(x->name, n * sizeof *names) : NULL;
	if (names)
		x->name = names;
	struct yk_adapter *all = names ? realloc(x->is, n * sizeof *all) : NULL;
	char *copy = all ? strdup(name) : NULL;
	if (all)
		x->is = all;
	if (!copy)
		return yk_fail(YOKE_ENOMEM, "engine_adapter: no memory");
	const struct yk_pretrained *m = &e->model->is;
	int error = yk_adapter_open(folder, m->base ? m->base : e->model->path, m->family,
				    &e->net->shape, &x->is[x->count]);
	if (error < 0) {
		free(copy);
		return error;
	}
	x->name[x->count++] = copy;
	error = make_layers(e, x);
	if (error == 0)
		return 0;
	free(copy);
	yk_adapter_close(&x->is[--x->count]);
	// those before had layers before
	return make_layers(e, x) < 0 ? yoke_error_code() : error;
}

// For t tokens and each element of a layer's x a': the scale of its adapter if the token uses it,
// else 0.
static yoke_tensor *factors(const struct yk_engine_adapters *x, const struct layer *l, int64_t t,
			    const int32_t *which)
{
	const int64_t dims[] = { 1, t, l->ranks };
	float *all = calloc((size_t)(t * l->ranks), sizeof *all);
	if (!all) {
		yk_fail(YOKE_ENOMEM, "engine: no memory for the adapters of %lld tokens",
			(long long)t);
		return NULL;
	}
	for (int64_t i = 0; i < t; i++) {
		int64_t at = i * l->ranks;
		for (int k = 0; k < x->count; at += l->rank[k++])
			for (int64_t r = 0; which[i] == k && r < l->rank[k]; r++)
				all[at + r] = (float)l->scale[k];
	}
	yoke_tensor *to = yoke_from(yoke_f32, 3, dims, all);
	free(all);
	return to;
}

static bool are_alike(const struct yk_engine_adapters *x, const struct layer *a,
		      const struct layer *b)
{
	return memcmp(a->rank, b->rank, (size_t)x->count * sizeof *a->rank) == 0 &&
	       memcmp(a->scale, b->scale, (size_t)x->count * sizeof *a->scale) == 0;
}

int yk_engine_adapters_use(struct yoke_engine *e, int64_t t, const int32_t *which)
{
	struct yk_engine_adapters *x = e->adapters;
	const int64_t dims[] = { 1, t, 1 };
	bool any = false;
	for (int64_t i = 0; i < t; i++)
		any = any || which[i] >= 0;
	if (!x || !any)
		return 0;
	bool *chosen = calloc((size_t)t, sizeof *chosen);
	if (!chosen)
		return yk_fail(YOKE_ENOMEM, "engine: no memory for the adapters of %lld tokens",
			       (long long)t);
	for (size_t i = 0; i < x->layers; i++) {
		struct layer *l = &x->layer[i];
		const struct layer *like = i && are_alike(x, l, l - 1) ? l - 1 : NULL;
		for (int64_t k = 0; k < t; k++)
			chosen[k] = which[k] >= 0 && l->rank[which[k]];
		l->at.is = (struct yk_low_rank){
			.a = l->a,
			.b = l->b,
			.scale = 1,
			.factor = like ? like->at.is.factor : factors(x, l, t, which),
			.chosen = like ? like->at.is.chosen : yoke_from(yoke_bool, 3, dims, chosen)
		};
		l->at.module->lora = &l->at.is;
	}
	free(chosen);
	return yoke_error_code();
}

void yk_engine_adapters_drop(struct yoke_engine *e)
{
	for (size_t i = 0; e->adapters && i < e->adapters->layers; i++)
		if (e->adapters->layer[i].at.module)
			e->adapters->layer[i].at.module->lora = NULL;
}
