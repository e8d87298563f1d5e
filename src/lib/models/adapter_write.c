// SPDX-License-Identifier: Apache-2.0
// Writes adapters as PEFT does.
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "formats/safetensors.h"
#include "models/adapter.h"
#include "models/weights.h"

// A module of PEFT.  The layers of one that some families store as one matrix (q, k and v, for
// example) are stacked: A has the rows of all, and B has each layer's columns in its rows, zero
// elsewhere.  Layers with the same A have the same columns.
struct module {
	char name[160];
	int64_t rank, in, out;
	struct yk_lora_layer first; // the scale of the first layer, alpha / rank, is that of all
	double alpha;
	float *a, *b;
};

struct modules {
	struct module *m;
	size_t n;
};

static void modules_free(struct modules *all)
{
	for (size_t i = 0; i < all->n; i++) {
		free(all->m[i].a);
		free(all->m[i].b);
	}
	free(all->m);
}

// The first column of B for a layer with the same A as another one before; the rank: there is none.
static int64_t find_same(const struct module *m, const struct yk_adapter_layer *l)
{
	const int64_t n = l->is.rank;
	for (int64_t k = 0; k + n <= m->rank; k++)
		if (!memcmp(m->a + k * m->in, l->a, (size_t)(n * m->in) * sizeof *l->a))
			return k;
	return m->rank;
}

// Appends n rows to A and columns to B.
static int widen(struct module *m, int64_t n)
{
	const int64_t rank = m->rank + n;
	float *a = realloc(m->a, (size_t)(rank * m->in) * sizeof *a);
	float *b = calloc((size_t)(rank * m->out), sizeof *b);
	m->a = a ? a : m->a;
	if (!a || !b) {
		free(b);
		return yk_fail(YOKE_ENOMEM, "adapter: no memory for %s", m->name);
	}
	for (int64_t r = 0; r < m->out && m->rank; r++)
		memcpy(b + r * rank, m->b + r * m->rank, (size_t)m->rank * sizeof *b);
	free(m->b);
	m->b = b;
	m->rank = rank;
	return 0;
}

// Adds a layer to a module, at rows from `at` on of its output.
static int append(struct module *m, const struct yk_adapter_layer *l, int64_t at)
{
	const int64_t n = l->is.rank, column = find_same(m, l);
	if (!m->rank)
		m->first = l->is;
	const struct yk_lora_layer *first = &m->first;
	const bool same = l->is.alpha == first->alpha && n == first->rank;
	if (!same && first->alpha == 0 && l->is.alpha != 0)
		return yk_fail(YOKE_EINVAL,
			       "adapter: %s: layers with alpha 0 and %g cannot be one module",
			       m->name, l->is.alpha);
	const double by = same || first->alpha == 0 ?
				  1 :
				  l->is.alpha / (double)n * (double)first->rank / first->alpha;
	if (column == m->rank) {
		const int e = widen(m, n);
		if (e < 0)
			return e;
		memcpy(m->a + column * m->in, l->a, (size_t)(n * m->in) * sizeof *m->a);
	}
	for (int64_t r = 0; r < l->out; r++)
		for (int64_t k = 0; k < n; k++)
			m->b[(at + r) * m->rank + column + k] =
				(float)(by * (double)l->b[r * n + k]);
	m->alpha = m->rank % first->rank ? first->alpha * (double)m->rank / (double)first->rank :
					   first->alpha * (double)(m->rank / first->rank);
	return 0;
}

// Adds a layer if it is that segment of its module: so the order of the layers does not matter.
static int add_layer(const struct yk_adapter_layer *l, int segment, const struct yk_family *f,
		     const struct yk_model_shape *s, struct modules *all)
{
	struct yk_weight_location place;
	char weight[sizeof l->is.name + 8];
	struct yk_shared_rows shared;
	size_t i = 0;
	snprintf(weight, sizeof weight, "%s.weight", l->is.name);
	yk_adapter_locate(f, weight, &place);
	if (place.segment != segment)
		return 0;
	yk_weight_shared_rows(s, &place, l->out, &shared);
	while (i < all->n && strcmp(all->m[i].name, place.name))
		i++;
	if (i == all->n) {
		all->m[all->n++] = (struct module){ .in = l->in, .out = shared.all };
		memcpy(all->m[i].name, place.name, sizeof place.name);
	}
	return append(&all->m[i], l, shared.from[place.segment]);
}

// ---- adapter_config.json ----

static json_t *number(double v)
{
	return v == floor(v) && fabs(v) < 1e15 ? json_integer((json_int_t)v) : json_real(v);
}

// Where a module's name in its block begins: PEFT finds modules by the end of their names.
// "q_proj"; of gpt2, in which two modules have the same last name, "attn.c_proj".
static const char *end_of(const char *name, const struct yk_family *f)
{
	const char *last = strrchr(name, '.');
	if (last && f->names == YK_NAMES_GPT2)
		while (last > name && *--last != '.')
			;
	return last && *last == '.' ? last + 1 : name;
}

// Do all layers have the same kinds of modules?
static bool is_uniform(const struct modules *all, const struct yk_family *f, int64_t layers)
{
	for (size_t i = 0; i < all->n; i++) {
		int64_t same = 0;
		for (size_t k = 0; k < all->n; k++)
			same += !strcmp(end_of(all->m[i].name, f), end_of(all->m[k].name, f));
		if (same != layers)
			return false;
	}
	return true;
}

static bool listed(const json_t *list, const char *name)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (!strcmp(json_string_value(json_array_get(list, i)), name))
			return true;
	return false;
}

static int write_config(const struct modules *all, const struct yk_family *f,
			const struct yk_model_shape *s, const char *base, double dropout,
			const char *path)
{
	const bool uniform = is_uniform(all, f, s->layers);
	json_t *targets = json_array(), *ranks = json_object(), *alphas = json_object();
	int bad = !targets || !ranks || !alphas;
	for (size_t i = 0; i < all->n && !bad; i++) {
		const struct module *m = &all->m[i];
		const char *target = uniform ? end_of(m->name, f) : m->name;
		if (!listed(targets, target))
			bad |= json_array_append_new(targets, json_string(target));
		if (m->rank != all->m[0].rank)
			bad |= json_object_set_new(ranks, m->name,
						   json_integer((json_int_t)m->rank));
		if (m->alpha != all->m[0].alpha)
			bad |= json_object_set_new(alphas, m->name, number(m->alpha));
	}
	json_t *o = bad ? NULL :
			  json_pack("{s:n, s:s, s:s, s:b, s:b, s:n, s:b, s:n, s:o, s:f, s:n, s:s, "
				    "s:I, s:O, s:n, s:O, s:s, s:O, s:b, s:b}",
				    "auto_mapping", "base_model_name_or_path", base, "bias", "none",
				    "fan_in_fan_out", (int)f->transposed, "inference_mode", 1,
				    "layers_pattern", "init_lora_weights", 1, "layers_to_transform",
				    "lora_alpha", number(all->m[0].alpha), "lora_dropout", dropout,
				    "modules_to_save", "peft_type", "LORA", "r",
				    (json_int_t)all->m[0].rank, "rank_pattern", ranks, "revision",
				    "alpha_pattern", alphas, "task_type", "CAUSAL_LM",
				    "target_modules", targets, "use_dora", 0, "use_rslora", 0);
	json_decref(targets);
	json_decref(ranks);
	json_decref(alphas);
	const int e = o ? yk_json_save(path, o) : yk_fail(YOKE_ENOMEM, "%s: no memory", path);
	json_decref(o);
	return e;
}

// ---- adapter_model.safetensors ----

static int write_tensors(const struct modules *all, const char *path)
{
	struct yk_host_tensor *t = calloc(2 * all->n + 1, sizeof *t);
	char(*name)[240] = calloc(2 * all->n + 1, sizeof *name);
	uint64_t bytes, hash;
	int e = t && name ? 0 : yk_fail(YOKE_ENOMEM, "%s: no memory", path);
	for (size_t i = 0; i < all->n && e == 0; i++) {
		const struct module *m = &all->m[i];
		for (int k = 0; k < 2; k++)
			snprintf(name[2 * i + (size_t)k], sizeof *name,
				 "base_model.model.%s.lora_%c.weight", m->name, k ? 'B' : 'A');
		t[2 * i] = (struct yk_host_tensor){
			name[2 * i], yoke_f32, 2, { m->rank, m->in }, m->a
		};
		t[2 * i + 1] = (struct yk_host_tensor){
			name[2 * i + 1], yoke_f32, 2, { m->out, m->rank }, m->b
		};
	}
	if (e == 0)
		e = yk_safetensors_write(path, (int)(2 * all->n), t, &bytes, &hash);
	free(t);
	free(name);
	return e;
}

int yk_adapter_write(const struct yk_adapter *x, const struct yk_family *f,
		     const struct yk_model_shape *s, const char *base, const char *folder)
{
	struct modules all = { .m = calloc(x->n + 1, sizeof *all.m) };
	char path[4096];
	int e = all.m ? yk_dir_make(folder) : yk_fail(YOKE_ENOMEM, "%s: no memory", folder);
	for (int segment = 0; segment < 3; segment++)
		for (size_t i = 0; i < x->n && e == 0; i++)
			e = add_layer(&x->layer[i], segment, f, s, &all);
	if (e == 0 &&
	    snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder) >= (int)sizeof path)
		e = yk_fail(YOKE_EINVAL, "%s: the path is too long", folder);
	if (e == 0)
		e = write_tensors(&all, path);
	if (e == 0) {
		snprintf(path, sizeof path, "%.4060s/adapter_config.json", folder);
		e = write_config(&all, f, s, base, x->dropout, path);
	}
	modules_free(&all);
	return e;
}
