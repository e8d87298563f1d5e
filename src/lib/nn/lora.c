// SPDX-License-Identifier: Apache-2.0
// Adds low-rank adapters to the linear layers of a network.
#include "config.h"

#include "nn/lora.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

// The layer with a path below a module, or NULL.
static yoke_module *layer_at(yoke_module *m, const char *path)
{
	while (m && *path) {
		const size_t n = strcspn(path, ".");
		yoke_module *found = NULL;
		for (size_t i = 0; i < m->children && !found; i++)
			if (!strncmp(m->child[i]->name, path, n) && !m->child[i]->name[n])
				found = m->child[i];
		m = found;
		path += n + (path[n] == '.');
	}
	return m;
}

// A tied head has the embedding's weight, which no adapter changes.
yoke_module *yk_network_linear_at(const struct yk_network *n, const char *path)
{
	yoke_module *m = n->layers ? layer_at(n->layers, path) : NULL;
	return m && m->class == &yk_linear_class && !m->own[0].with ? m : NULL;
}

static int add_layer(struct yk_network *n, const struct yk_lora_layer *l,
		     struct yk_network_adapter *to)
{
	struct yk_parameters *p = &n->params;
	yoke_module *m = yk_network_linear_at(n, l->name);
	if (!m)
		return yk_fail(YOKE_EINVAL,
			       "lora: the model has no layer '%s' with its own matrix",
			       l->name);
	if (m->lora)
		return yk_fail(YOKE_EINVAL, "lora: layer '%s' is listed twice", l->name);
	if (l->rank < 1 || l->rank > YK_LORA_MAX_RANK || !isfinite(l->alpha))
		return yk_fail(YOKE_EINVAL,
			       "lora: layer '%s': rank %" PRId64
			       ", alpha %g; the rank must be in 1 .. %d",
			       l->name, l->rank, l->alpha, YK_LORA_MAX_RANK);
	const int64_t *w = m->own[0].dims, a[] = { l->rank, w[1] }, b[] = { w[0], l->rank };
	*to = (struct yk_network_adapter){ .module = m, .a = p->count, .as = *l };
	to->is.scale = l->alpha / (double)l->rank;
	m->lora = &to->is;
	yk_parameters_add(p, 2, a, "%s.lora_A.weight", l->name);
	if (!p->error)
		p->row[to->a] = (struct yk_parameter){ .name = p->row[to->a].name,
						       .decay = true,
						       .bound = 1 / sqrt((double)w[1]) };
	yk_parameters_matrix(p, b[0], b[1], 0, "%s.lora_B.weight", l->name);
	return p->error;
}

int yk_network_adapt(struct yk_network *n, size_t count, const struct yk_lora_layer *l)
{
	int e = 0;
	if (n->adapters || n->shard.group || n->stage.of > 1)
		return yk_fail(YOKE_EINVAL,
			       "lora: the network is adapted already, or divided among ranks");
	n->adapter = calloc(count + 1, sizeof *n->adapter);
	if (!n->adapter)
		return yk_fail(YOKE_ENOMEM, "lora: no memory for %zu layers", count);
	n->frozen = n->params;
	n->params = (struct yk_parameters){ 0 };
	n->adapters = count;
	for (size_t i = 0; i < count && e == 0; i++)
		e = add_layer(n, &l[i], &n->adapter[i]);
	return e;
}

void yk_network_unadapt(struct yk_network *n)
{
	if (!n->adapter)
		return;
	for (size_t i = 0; i < n->adapters; i++)
		if (n->adapter[i].module)
			n->adapter[i].module->lora = NULL;
	yk_parameters_fini(&n->params);
	n->params = n->frozen;
	n->frozen = (struct yk_parameters){ 0 };
	free(n->adapter);
	n->adapter = NULL;
	n->adapters = 0;
	n->adapter_dropout = 0;
}

// ---- lists of layers ----

static const struct {
	const char *word, *layer;
} targets[] = {
	{ "q", "attn.q" },      { "k", "attn.k" },  { "v", "attn.v" },      { "o", "attn.out" },
	{ "gate", "mlp.gate" }, { "up", "mlp.up" }, { "down", "mlp.down" },
};
enum { TARGETS = sizeof targets / sizeof *targets, MAX_LAYERS = 1 << 20 };

// Parses a comma-separated list; *all: the word all is in it.
static int targets_of(const char *list, bool to[TARGETS], bool *all)
{
	const char *at = list;
	memset(to, 0, TARGETS * sizeof *to);
	*all = false;
	do {
		const size_t n = strcspn(at, ",");
		bool known = n == 3 && !strncmp(at, "all", n);
		*all |= known;
		for (int i = 0; i < TARGETS; i++) {
			const bool here =
				strlen(targets[i].word) == n && !strncmp(at, targets[i].word, n);
			to[i] |= here || *all;
			known |= here;
		}
		if (!known)
			return yk_fail(
				YOKE_EINVAL,
				"lora_targets=%.200s: '%.*s' is none of q, k, v, o, gate, up, "
				"down, all",
				list, n < 40 ? (int)n : 40, at);
		at += n;
	} while (*at++ == ',');
	return 0;
}

int yk_lora_targets_check(const char *list)
{
	bool which[TARGETS], all;
	return targets_of(list, which, &all);
}

int yk_lora_layers(const struct yk_model_shape *s, const char *list, int64_t rank, double alpha,
		   struct yk_lora_layer **to, size_t *n)
{
	bool which[TARGETS], all;
	const int e = targets_of(list, which, &all);
	if (e < 0)
		return e;
	struct yk_lora_layer *l =
		s->layers < MAX_LAYERS ? calloc((size_t)s->layers * TARGETS + 1, sizeof *l) : NULL;
	size_t count = 0;
	if (!l)
		return yk_fail(YOKE_ENOMEM, "lora: no memory for %" PRId64 " layers", s->layers);
	for (int64_t i = 0; i < s->layers; i++)
		for (int t = 0; t < TARGETS; t++) {
			const bool lacks = !s->decoder.gated && !strcmp(targets[t].word, "gate");
			if (!which[t] || (lacks && all))
				continue;
			if (lacks) {
				free(l);
				return yk_fail(YOKE_EINVAL,
					       "lora_targets=%.200s: the model's mlp has no gate; "
					       "drop it",
					       list);
			}
			l[count].rank = rank;
			l[count].alpha = alpha;
			snprintf(l[count].name, sizeof l->name, "layer%" PRId64 ".%s", i,
				 targets[t].layer);
			count++;
		}
	*to = l;
	*n = count;
	return 0;
}

// ---- counting ----

struct count {
	size_t n;
	const struct yk_lora_layer *layer;
	int64_t elements;
};

static int count_one(void *arg, const char *name, int rank, const int64_t *dims)
{
	struct count *c = arg;
	const size_t layer = (size_t)(strrchr(name, '.') - name);
	for (size_t i = 0; i < c->n && rank == 2; i++)
		if (strlen(c->layer[i].name) == layer && !strncmp(name, c->layer[i].name, layer))
			c->elements += c->layer[i].rank * (dims[0] + dims[1]);
	return 0;
}

int64_t yk_lora_elements(const struct yk_model *m, const struct yk_model_shape *s, size_t n,
			 const struct yk_lora_layer *l)
{
	struct count c = { .n = n, .layer = l };
	return yk_model_each(m, s, count_one, &c) < 0 ? INT64_MAX : c.elements;
}
