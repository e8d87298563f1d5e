// SPDX-License-Identifier: Apache-2.0
// The table of models, and everything that is the same for all of them.
#include "config.h"

#include "nn/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/number.h"

#define LIMIT (INT64_C(1) << 31) // maximum size of a vocabulary or of a window

static const struct yk_model *const models[] = {
#define X(name) &yk_model_##name
#define COMMA ,
	YK_MODELS(X, COMMA)
#undef X
};

static const struct {
	const char *key;
	int64_t max;
} sizes[YK_SIZE_COUNT] = {
#define X(key, level, def, max, help) { #key, max },
	YK_SIZES(X)
#undef X
};

enum trait { INT, REAL, CHOICE };
static const struct {
	const char *key;
	enum trait type;
	double min, max;
	const char *words;
} traits[YK_TRAIT_COUNT] = {
#define X(key, group, level, type, commands, def, min, max, words, help) \
	{ #key, type, min, max, words },
	YK_TRAITS(X, )
#undef X
};

// Copies word i of a blank-separated list into `to`; false: there are fewer words.
static bool word_of(const char *list, int i, char *to, size_t room)
{
	for (; i > 0 && list; i--)
		if ((list = strchr(list, ' ')))
			list++;
	if (list)
		snprintf(to, room, "%.*s", (int)strcspn(list, " "), list);
	return list;
}

static int number_of(const char *list, const char *word)
{
	char it[32];
	for (int i = 0; word_of(list, i, it, sizeof it); i++)
		if (!strcmp(it, word))
			return i;
	return -1;
}

static bool has(const struct yk_model *m, int size)
{
	return m->sizes >> size & 1;
}

static bool has_trait(const struct yk_model *m, int k)
{
	return m->traits >> k & 1;
}

// Manifests of earlier versions lack these traits; their default, the first word, is not written.
static bool is_younger(int k)
{
	return k == YK_TRAIT_tied;
}

const struct yk_model *yk_model_find(const char *name)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		if (!strcmp(models[i]->name, name))
			return models[i];
	return NULL;
}

// ---- shapes ----

static int check_size(const struct yk_model *m, const char *key, int64_t size, int64_t max)
{
	if (size >= 1 && size <= max)
		return 0;
	return yk_fail(YOKE_EINVAL, "%s: %s=%" PRId64 " is not in 1 .. %" PRId64, m->name, key,
		       size, max);
}

int yk_model_check(const struct yk_model *m, const struct yk_model_shape *s)
{
	int e = check_size(m, "vocab", s->vocab, LIMIT);
	if (e == 0)
		e = check_size(m, "context", s->context, LIMIT);
	for (int k = 0; k < YK_SIZE_COUNT && e == 0; k++)
		if (has(m, k))
			e = check_size(m, sizes[k].key, s->size[k], sizes[k].max);
	for (int k = 0; k < YK_TRAIT_COUNT && e == 0; k++) {
		if (!has_trait(m, k))
			continue;
		const double v = s->trait[k];
		char word[32];
		const bool given = traits[k].type == INT && v == -1;
		if (traits[k].type == CHOICE ?
			    !word_of(traits[k].words, (int)v, word, sizeof word) :
			    !given && !(v >= traits[k].min && v <= traits[k].max))
			e = yk_fail(YOKE_EINVAL, "%s: %s=%g is not in %g .. %g", m->name,
				    traits[k].key, v, traits[k].min, traits[k].max);
	}
	return e == 0 && m->check ? m->check(s) : e;
}

bool yk_model_leaks(const struct yk_model *m, const struct yk_model_shape *s)
{
	return m->leaks && m->leaks(s);
}

void yk_model_text(const struct yk_model *m, const struct yk_model_shape *s, char *to, size_t room)
{
	FILE *f = fmemopen(to, room, "w");
	if (!f)
		return;
	fprintf(f, "model=%s", m->name);
	for (int k = 0; k < YK_SIZE_COUNT; k++)
		if (has(m, k))
			fprintf(f, " %s=%" PRId64, sizes[k].key, s->size[k]);
	for (int k = 0; k < YK_TRAIT_COUNT; k++) {
		char word[32];
		if (!has_trait(m, k) || (is_younger(k) && s->trait[k] == 0))
			continue;
		if (traits[k].type == CHOICE &&
		    word_of(traits[k].words, (int)s->trait[k], word, sizeof word))
			fprintf(f, " %s=%s", traits[k].key, word);
		else if (traits[k].type == INT && s->trait[k] < 0)
			fprintf(f, " %s=auto", traits[k].key);
		else
			yk_fprintf(f, " %s=%g", traits[k].key, s->trait[k]);
	}
	fprintf(f, " context=%" PRId64, s->context);
	fclose(f);
}

json_t *yk_model_describe(const struct yk_model *m, const struct yk_model_shape *s)
{
	json_t *o = json_pack("{s:s, s:I, s:I}", "kind", m->name, "vocab", (json_int_t)s->vocab,
			      "context", (json_int_t)s->context);
	bool bad = !o;
	for (int k = 0; k < YK_SIZE_COUNT; k++)
		bad |= has(m, k) &&
		       json_object_set_new(o, sizes[k].key, json_integer(s->size[k])) < 0;
	for (int k = 0; k < YK_TRAIT_COUNT && !bad; k++) {
		char word[32];
		if (!has_trait(m, k) || (is_younger(k) && s->trait[k] == 0))
			continue;
		const bool choice = traits[k].type == CHOICE &&
				    word_of(traits[k].words, (int)s->trait[k], word, sizeof word);
		bad |= json_object_set_new(o, traits[k].key,
					   choice ? json_string(word) : json_real(s->trait[k])) < 0;
	}
	if (!bad && yk_model_leaks(m, s))
		bad |= json_object_set_new(o, "leaks", json_true()) < 0;
	if (!bad && m->describe)
		bad = m->describe(s, o) < 0;
	if (!bad)
		return o;
	json_decref(o);
	yk_fail(YOKE_ENOMEM, "%s: no memory for its shape", m->name);
	return NULL;
}

int yk_model_parse(const json_t *o, const char *what, const struct yk_model **model,
		   struct yk_model_shape *to)
{
#define X(name) #name
	static const char known[] = YK_MODELS(X, ", ");
#undef X
	struct yk_model_shape s = { 0 };
	const char *kind;
	char why[256];
	int e = yk_json_str(o, what, "kind", &kind);
	if (e < 0)
		return e;
	const struct yk_model *m =
		!strcmp(kind, yk_model_decoder.name) ? &yk_model_decoder : yk_model_find(kind);
	if (!m)
		return yk_fail(YOKE_EFORMAT,
			       "%s: model of unknown kind '%.40s'; this yoke knows %s", what, kind,
			       known);
	e = yk_json_int(o, what, "vocab", 1, LIMIT, &s.vocab);
	if (e == 0)
		e = yk_json_int(o, what, "context", 1, LIMIT, &s.context);
	for (int k = 0; k < YK_SIZE_COUNT && e == 0; k++)
		if (has(m, k))
			e = yk_json_int(o, what, sizes[k].key, 1, sizes[k].max, &s.size[k]);
	for (int k = 0; k < YK_TRAIT_COUNT && e == 0; k++) {
		const char *word;
		if (!has_trait(m, k) || (is_younger(k) && !json_object_get(o, traits[k].key)))
			continue;
		if (traits[k].type != CHOICE) {
			e = yk_json_real(o, what, traits[k].key, &s.trait[k]);
			continue;
		}
		e = yk_json_str(o, what, traits[k].key, &word);
		s.trait[k] = e == 0 ? number_of(traits[k].words, word) : 0;
		if (s.trait[k] < 0)
			e = yk_fail(YOKE_EFORMAT, "%s: %s is '%.40s', none of: %s", what,
				    traits[k].key, word, traits[k].words);
	}
	if (e == 0 && m->parse)
		e = m->parse(o, what, &s);
	if (e < 0)
		return e;
	if (yk_model_check(m, &s) < 0) {
		snprintf(why, sizeof why, "%s", yoke_error());
		yoke_error_clear(); // its message is about keys, not about a file
		return yk_fail(YOKE_EFORMAT, "%s: no model has this shape: %s", what, why);
	}
	*model = m;
	*to = s;
	return 0;
}

// ---- networks ----

int yk_model_check_ranks(const struct yk_model *m, const struct yk_model_shape *s, int64_t ranks)
{
	if (ranks > 1 && !m->rules)
		return yk_fail(
			YOKE_EINVAL,
			"tensor=%" PRId64
			": layers of model=%s are not computed by several ranks; give tensor=1",
			ranks, m->name);
	for (int k = 0; k < YK_SIZE_COUNT && ranks > 1; k++)
		if (m->sharded >> k & 1 && s->size[k] % ranks)
			return yk_fail(YOKE_EINVAL,
				       "tensor=%" PRId64 " does not divide %s=%" PRId64
				       "; choose ranks that do",
				       ranks, sizes[k].key, s->size[k]);
	if (ranks > 1 && s->vocab > 1 && s->vocab < ranks)
		return yk_fail(YOKE_EINVAL,
			       "tensor=%" PRId64 " is more than the %" PRId64
			       " tokens of the vocabulary",
			       ranks, s->vocab);
	return 0;
}

// A parameter of the list, and the entry of the layer that holds it.
struct yk_network_place {
	struct yk_module_entry at;
	int i;
};

// Adds a parameter that a layer declares.
static void list_one(const struct yk_model *m, const struct yk_model_shape *s,
		     const struct yk_module_own *own, struct yk_parameters *to)
{
	yk_parameters_add(to, own->rank, own->dims, "%s", own->path);
	if (!to->error && !to->counts)
		m->first(s, own->path, &to->row[to->count - 1]);
}

// Does this stage have the parameter with that path? NULL: it has all.
static bool is_here(const struct yk_model *m, const struct yk_model_shape *shape,
		    const struct yk_stage *s, const yoke_module *layers, const char *path)
{
	const size_t name = strcspn(path, ".");
	size_t i = 0;
	if (!s || s->of == 1)
		return true;
	while (strncmp(path, layers->child[i]->name, name) || layers->child[i]->name[name])
		i++;
	const int64_t block = (int64_t)i - m->before;
	return block < 0              ? s->at == 0 :
	       block >= shape->layers ? s->at == s->of - 1 :
					block >= s->from && block < s->to;
}

// Adds the parameters of layers, tied ones once.
static void list_layers(const struct yk_model *m, const struct yk_model_shape *s,
			const struct yk_module_entry *e, size_t n, struct yk_parameters *to)
{
	for (size_t k = 0; k < n; k++)
		if (!e[k].own->with)
			list_one(m, s, e[k].own, to);
}

// Creates a model's layers, as children of *layers, and lists all entries of parameters; the caller
// frees both. NULL: an error.
static struct yk_module_entry *make_layers(const struct yk_model *m, const struct yk_model_shape *s,
					   yoke_module **layers, size_t *n)
{
	*layers = yoke_nn_sequential(0, NULL);
	if (*layers && m->layers(s, *layers) == 0)
		return yk_module_places(*layers, n);
	return NULL;
}

int64_t yk_model_elements(const struct yk_model *m, const struct yk_model_shape *s)
{
	return yk_model_elements_in(NULL, m, s);
}

int64_t yk_model_elements_in(const struct yk_stage *stage, const struct yk_model *m,
			     const struct yk_model_shape *s)
{
	struct yk_parameters all = { .counts = true };
	yoke_module *layers = NULL;
	size_t n = 0;
	if (!m->layers) {
		m->parameters(s, &all);
		return all.elements;
	}
	struct yk_module_entry *e = make_layers(m, s, &layers, &n);
	for (size_t k = 0; k < n && e; k++) {
		const struct yk_module_own *own = e[k].own,
					   *with = own->with ? own->with->own : NULL;
		if (is_here(m, s, stage, layers, own->path) &&
		    !(with && is_here(m, s, stage, layers, with->path)))
			list_one(m, s, with ? with : own, &all);
	}
	yoke_module_free(layers);
	free(e);
	return e ? all.elements : INT64_MAX; // no memory: the elements would not fit either
}

int yk_model_each(const struct yk_model *m, const struct yk_model_shape *s,
		  int (*fn)(void *arg, const char *name, int rank, const int64_t *dims), void *arg)
{
	yoke_module *layers = NULL;
	size_t n = 0;
	struct yk_module_entry *e = make_layers(m, s, &layers, &n);
	int result = e ? 0 : yoke_error_code();
	for (size_t k = 0; k < n && result == 0; k++)
		if (!e[k].own->with)
			result = fn(arg, e[k].own->path, e[k].own->rank, e[k].own->dims);
	yoke_module_free(layers);
	free(e);
	return result;
}

static void be_part(yoke_module *m, const struct yk_network *n)
{
	m->net = n;
	for (size_t i = 0; i < m->children; i++)
		be_part(m->child[i], n);
}


// Adds a parameter of the whole network to the list of a stage that may not have it.
static int list_other(struct yk_network *n, const struct yk_module_own *own, int here)
{
	struct yk_network_parameter *p = &n->all[n->alls];
	struct yk_shard_range range;
	int64_t dims[2];
	*p = (struct yk_network_parameter){
		.name = strdup(own->path), .rank = own->rank, .here = here, .elements = 1
	};
	if (!p->name)
		return yk_fail(YOKE_ENOMEM, "%s: no memory", n->model->name);
	n->alls++;
	memcpy(p->dims, own->dims, sizeof dims);
	memcpy(dims, own->dims, sizeof dims);
	const int e = yk_shard_range_of(n->params.shard, own->path, own->rank, dims, &range);
	for (int d = 0; d < own->rank; d++)
		p->elements *= dims[d];
	p->sharded = range.blocks;
	return e;
}

// For one of several stages: lists its parameters, and their indices among all. A parameter that is
// tied to a parameter of another stage is added here too, under that parameter's name.
static int list_stage(struct yk_network *n, const struct yk_module_entry *e, int *place)
{
	struct yk_parameters *to = &n->params;
	int err = (n->all = calloc(n->places + 1, sizeof *n->all)) ?
			  0 :
			  yk_fail(YOKE_ENOMEM, "%s: no memory", n->model->name);
	int64_t elements = 0;
	for (size_t k = 0; k < n->places && !err; k++) {
		const struct yk_module_own *own = e[k].own,
					   *with = own->with ? own->with->own : NULL;
		size_t of = 0, i = 0; // index of the parameter it is tied to, among places and
				      // among parameters
		const bool here = is_here(n->model, &n->shape, &n->stage, n->layers, own->path);
		place[k] = -1;
		while (with && e[of].own != with)
			of++;
		while (with && strcmp(n->all[i].name, with->path))
			i++;
		if (with && here != (place[of] >= 0))
			n->all[i].twice = true;
		if (with && here && place[of] < 0) {
			n->all[i].copied = true;
			n->all[i].here = to->count;
		}
		if (here && (!with || place[of] < 0)) {
			list_one(n->model, &n->shape, with ? with : own, to);
			err = to->error;
		}
		if (here)
			place[k] = with && place[of] >= 0 ? place[of] : to->count - 1;
		if (!with && !err)
			err = list_other(n, own, place[k]);
	}
	for (size_t i = 0; i < n->alls; i++) {
		int64_t all = 1;
		for (int d = 0; d < n->all[i].rank; d++)
			all *= n->all[i].dims[d];
		elements += all;
	}
	to->elements = elements;
	return err;
}

// The same for a network that is not divided into stages.
static int list_whole(struct yk_network *n, const struct yk_module_entry *e, int *place)
{
	int i = 0;
	list_layers(n->model, &n->shape, e, n->places, &n->params);
	for (size_t k = 0; k < n->places; k++) {
		size_t of = 0; // the place of the parameter it is tied to
		while (e[k].own->with && e[of].own != e[k].own->with->own)
			of++;
		place[k] = e[k].own->with ? place[of] : i++;
	}
	return n->params.error;
}

static int add_layers(struct yk_network *n)
{
	struct yk_module_entry *e = make_layers(n->model, &n->shape, &n->layers, &n->places);
	if (!e)
		return yoke_error_code();
	int *place = calloc(n->places + 1, sizeof *place);
	int err = place && (n->place = calloc(n->places + 1, sizeof *n->place)) ? 0 :
		  yk_fail(YOKE_ENOMEM, "%s: no memory", n->model->name);
	if (!err)
		err = n->stage.of > 1 ? list_stage(n, e, place) : list_whole(n, e, place);
	for (size_t k = 0; k < n->places && !err; k++) {
		n->place[k] = (struct yk_network_place){ e[k], place[k] };
		e[k].own->shared = true; // owned by the list
		if (place[k] < 0) // on another stage
			continue;
		const struct yk_shard_range *range = &n->params.row[place[k]].shard;
		e[k].module->inputs_sharded |= range->blocks && range->axis == 1;
	}
	be_part(n->layers, n);
	free(place);
	free(e);
	return err;
}

yoke_module *yk_network_layer(const struct yk_network *n, int64_t i)
{
	return n->layers->child[i];
}

void yk_network_refresh(const struct yk_network *n)
{
	const struct yk_parameters *base = yk_network_base(n);
	for (size_t k = 0; k < n->places; k++) {
		const int i = n->place[k].i;
		n->place[k].at.own->tensor = i < 0 ? NULL : base->var[i];
		n->place[k].at.own->format = i < 0 ? 0 : base->row[i].format;
	}
	for (size_t k = 0; k < n->adapters; k++) {
		n->adapter[k].is.a = n->params.var[n->adapter[k].a];
		n->adapter[k].is.b = n->params.var[n->adapter[k].a + 1];
	}
}

static int network_new(yoke_group *g, const struct yk_stage *stage, const struct yk_model *m,
		       const struct yk_model_shape *s, bool deferred, struct yk_network **to)
{
	int e = yk_model_check(m, s);
	if (e == 0 && g)
		e = yk_model_check_ranks(m, s, yoke_group_size(g));
	if (e < 0)
		return e;
	struct yk_network *n = calloc(1, sizeof *n);
	if (!n)
		return yk_fail(YOKE_ENOMEM, "%s: no memory", m->name);
	n->model = m;
	n->shape = *s;
	n->params.deferred = deferred;
	n->stage = stage ? *stage : (struct yk_stage){ .of = 1, .to = s->layers };
	if (g) {
		n->shard =
			(struct yk_shard){ g, yoke_group_rank(g), yoke_group_size(g), m->rules(s) };
		n->params.shard = &n->shard;
	}
	if (m->layers) {
		e = add_layers(n);
	} else {
		m->parameters(s, &n->params);
		e = n->params.error;
	}
	if (e < 0)
		yk_network_free(n);
	else
		*to = n;
	return e;
}

int yk_network_new(const struct yk_model *m, const struct yk_model_shape *s, struct yk_network **to)
{
	return network_new(NULL, NULL, m, s, false, to);
}

int yk_network_new_deferred(const struct yk_model *m, const struct yk_model_shape *s,
			    struct yk_network **to)
{
	return network_new(NULL, NULL, m, s, true, to);
}

int yk_network_new_on(yoke_group *g, const struct yk_model *m, const struct yk_model_shape *s,
		      struct yk_network **to)
{
	return network_new(g, NULL, m, s, false, to);
}

int yk_network_new_part(yoke_group *g, const struct yk_stage *stage, const struct yk_model *m,
			const struct yk_model_shape *s, struct yk_network **to)
{
	return network_new(g, stage, m, s, false, to);
}

void yk_network_free(struct yk_network *n)
{
	if (!n)
		return;
	yoke_module_free(n->layers);
	yk_parameters_fini(&n->params);
	yk_parameters_fini(&n->frozen);
	free(n->adapter);
	free(n->place);
	for (size_t i = 0; i < n->alls; i++)
		free(n->all[i].name);
	free(n->all);
	yoke_free(n->shares);
	free(n);
}

yoke_tensor *yk_network_linear(const struct yk_network *n, yoke_tensor *x, yoke_tensor *w,
			       yoke_tensor *b)
{
	if (!n->by_row)
		return yoke_linear(x, w, b);
	yoke_tensor *y = yoke_matmul(x, w, YOKE_TB | YOKE_BY_ROW);
	return b == YOKE_NONE ? y : yoke_add(y, b);
}

yoke_tensor *yk_network_forward(const struct yk_network *n, yoke_tensor *x, double dropout)
{
	int64_t t = yoke_dim(x, 1), context = n->shape.context;
	if (t <= context)
		return n->model->forward(n, x, dropout);
	yk_fail(YOKE_ESHAPE, "%s: %" PRId64 " tokens, but a window holds %" PRId64, n->model->name,
		t, context);
	return NULL;
}

// ---- generation with a cache ----

int yk_network_cache_new(const struct yk_network *n, int64_t capacity, struct yk_network_cache **to)
{
	struct yk_model_shape s = n->shape;
	struct yk_network_cache *c = calloc(1, sizeof *c);
	if (!c)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for a cache", n->model->name);
	c->state.dtype = n->cache_dtype;
	c->capacity = s.context = capacity;
	n->model->state(&s, &c->state);
	c->at = yoke_keep(yoke_scalar(0));
	c->seen = yoke_keep(yoke_scalar(0));
	if (c->state.error || !c->at || !c->seen) {
		yk_network_cache_free(c);
		return yoke_error_code();
	}
	*to = c;
	return 0;
}

int yk_network_cache_grow(const struct yk_network *n, struct yk_network_cache **c, int64_t capacity)
{
	struct yk_network_cache *before = *c, *after;
	int e = yk_network_cache_new(n, capacity, &after);
	if (e < 0)
		return e;
	yoke_scope *s = yoke_scope_begin("cache");
	for (int i = 0; i < before->state.count; i++) {
		yoke_tensor *from = before->state.var[i], *to = after->state.var[i];
		int64_t lo[YOKE_MAX_RANK] = { 0 }, hi[YOKE_MAX_RANK] = { 0 };
		for (int d = 0; d < yoke_rank(from); d++)
			hi[d] = yoke_dim(to, d) - yoke_dim(from, d);
		yoke_assign(to, yoke_pad(from, lo, hi, 0));
	}
	yoke_eval(after->state.count, after->state.var);
	e = yoke_scope_end(s);
	if (e < 0) {
		yk_network_cache_free(after);
		return e;
	}
	after->length = before->length;
	yk_network_cache_free(before);
	*c = after;
	return 0;
}

void yk_network_cache_free(struct yk_network_cache *c)
{
	if (!c)
		return;
	yk_parameters_fini(&c->state);
	yoke_free(c->at);
	yoke_free(c->seen);
	free(c);
}

// Do t more tokens fit into a cache, and are either all caches empty or none?
static int check_cache(const struct yk_network *n, const struct yk_network_cache *c,
		       const struct yk_network_cache *first, int64_t t)
{
	if (t < 1 || t > c->capacity - c->length)
		return yk_fail(YOKE_ESHAPE,
			       "%s: %" PRId64 " tokens after %" PRId64 " in a cache for %" PRId64,
			       n->model->name, t, c->length, c->capacity);
	if (!c->length != !first->length)
		return yk_fail(YOKE_ESHAPE,
			       "%s: a new sequence cannot share a call with a continued one",
			       n->model->name);
	return 0;
}

yoke_tensor *yk_network_extend(const struct yk_network *n, struct yk_network_cache *const *c,
			       yoke_tensor *ids)
{
	int64_t rows = yoke_dim(ids, 0), t = yoke_dim(ids, 1);
	if (rows < 1 || rows > YK_SEQUENCES) {
		yk_fail(YOKE_ESHAPE, "%s: %" PRId64 " sequences, but 1 .. %d are extended at once",
			n->model->name, rows, YK_SEQUENCES);
		return NULL;
	}
	for (int64_t i = 0; i < rows; i++)
		if (check_cache(n, c[i], c[0], t) < 0)
			return NULL;
	for (int64_t i = 0; i < rows; i++) {
		yoke_scalar_set(c[i]->at, (double)c[i]->length);
		yoke_scalar_set(c[i]->seen, (double)(c[i]->length + t));
	}
	yoke_tensor *hidden = n->model->extend(n, c, ids);
	for (int64_t i = 0; i < rows; i++)
		c[i]->length += t;
	return hidden;
}
