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

// A module of PEFT.  The layers of one that some families store as one matrix (q, k and v, for example)
// are stacked: A has the rows of all, and B has each layer's columns in its rows, zero elsewhere.
struct module {
	char name[160];
	int64_t rank, in, out;
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

// Appends a layer to a module, at rows from `at` on of its output.
static int append(struct module *m, const struct yk_adapter_layer *l, int64_t at)
{
	const int64_t rank = m->rank + l->is.rank, n = l->is.rank;
	float *a = realloc(m->a, (size_t)(rank * m->in) * sizeof *a);
	float *b = calloc((size_t)(rank * m->out), sizeof *b);
	m->a = a ? a : m->a;
	if (!a || !b) {
		free(b);
		return yk_fail(YOKE_ENOMEM, "adapter: no memory for %s", m->name);
	}
	// the scale of the first layer, alpha / rank, is that of all
	const double scale = l->is.alpha / (double)n,
		     by = m->rank && m->alpha != 0 ? scale * (double)m->rank / m->alpha : 1;
	if (m->rank && m->alpha == 0 && scale != 0) {
		free(b);
		return yk_fail(YOKE_EINVAL,
			       "adapter: %s: layers with alpha 0 and %g cannot be one module",
			       m->name, l->is.alpha);
	}
	memcpy(a + m->rank * m->in, l->a, (size_t)(n * m->in) * sizeof *a);
	for (int64_t r = 0; r < m->out && m->rank; r++)
		memcpy(b + r * rank, m->b + r * m->rank, (size_t)m->rank * sizeof *b);
	for (int64_t r = 0; r < l->out; r++)
		for (int64_t k = 0; k < n; k++)
			b[(at + r) * rank + m->rank + k] = (float)(by * (double)l->b[r * n + k]);
	m->alpha = m->rank ? m->alpha * (double)rank / (double)m->rank : l->is.alpha;
	free(m->b);
	m->b = b;
	m->rank = rank;
	return 0;
}

static int add_layer(const struct yk_adapter_layer *l, const struct yk_family *f,
		     const struct yk_model_shape *s, struct modules *all)
{
	struct yk_weight_place place;
	char weight[sizeof l->is.name + 8];
	int64_t at = 0, out = l->out;
	size_t i = 0;
	snprintf(weight, sizeof weight, "%s.weight", l->is.name);
	yk_adapter_place(f, weight, &place);
	if (place.shared[0])
		out = 0;
	for (int k = 0; k < 3 && place.shared[k]; k++) {
		at += k < place.segment ? yk_weight_rows_of(s, place.shared[k]) : 0;
		out += yk_weight_rows_of(s, place.shared[k]);
	}
	while (i < all->n && strcmp(all->m[i].name, place.name))
		i++;
	if (i == all->n) {
		all->m[all->n++] = (struct module){ .in = l->in, .out = out };
		memcpy(all->m[i].name, place.name, sizeof place.name);
	}
	return append(&all->m[i], l, at);
}

// ---- adapter_config.json ----

static json_t *number(double v)
{
	return v == floor(v) && fabs(v) < 1e15 ? json_integer((json_int_t)v) : json_real(v);
}

// Where a module's name in its block begins: PEFT finds modules by the end of their names.  "q_proj"; of
// gpt2, in which two modules have the same last name, "attn.c_proj".
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
			const struct yk_model_shape *s, const char *base, const char *path)
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
				    "lora_alpha", number(all->m[0].alpha), "lora_dropout", 0.0,
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
	for (size_t i = 0; i < x->n && e == 0; i++)
		e = add_layer(&x->layer[i], f, s, &all);
	if (e == 0 &&
	    snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder) >= (int)sizeof path)
		e = yk_fail(YOKE_EINVAL, "%s: the path is too long", folder);
	if (e == 0)
		e = write_tensors(&all, path);
	if (e == 0) {
		snprintf(path, sizeof path, "%.4060s/adapter_config.json", folder);
		e = write_config(&all, f, s, base, path);
	}
	modules_free(&all);
	return e;
}
