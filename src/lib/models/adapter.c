// SPDX-License-Identifier: Apache-2.0
// Opens adapters, of PEFT or of runs, and adapts networks with them.
#include "config.h"

#include "models/adapter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/error.h"
#include "formats/checkpoint.h"
#include "graph/context.h"
#include "models/weights.h"

// ---- lists ----

struct yk_adapter_layer *yk_adapter_add(struct yk_adapter *x, const struct yk_lora_layer *is,
					int64_t in, int64_t out)
{
	if (yk_grow(&x->layer, &x->cap, x->n + 1, sizeof *x->layer) < 0)
		return NULL;
	struct yk_adapter_layer *l = &x->layer[x->n++];
	*l = (struct yk_adapter_layer){ .is = *is, .in = in, .out = out };
	l->a = malloc((size_t)(is->rank * in) * sizeof *l->a);
	l->b = malloc((size_t)(is->rank * out) * sizeof *l->b);
	if (l->a && l->b)
		return l;
	yk_fail(YOKE_ENOMEM, "adapter: no memory for layer %s", is->name);
	return NULL;
}

void yk_adapter_close(struct yk_adapter *x)
{
	for (size_t i = 0; i < x->n; i++) {
		free(x->layer[i].a);
		free(x->layer[i].b);
	}
	free(x->layer);
	*x = (struct yk_adapter){ 0 };
}

const struct yk_adapter_layer *yk_adapter_find(const struct yk_adapter *x, const char *name)
{
	for (size_t i = 0; i < x->n; i++)
		if (!strcmp(x->layer[i].is.name, name))
			return &x->layer[i];
	return NULL;
}

void yk_adapter_add_rows(const struct yk_adapter_layer *l, int64_t from, int64_t rows, float *to)
{
	const double scale = l->is.alpha / (double)l->is.rank;
	for (int64_t r = 0; r < rows; r++)
		for (int64_t k = 0; k < l->is.rank; k++) {
			const float b = (float)(scale * (double)l->b[(from + r) * l->is.rank + k]);
			for (int64_t c = 0; c < l->in; c++)
				to[r * l->in + c] += b * l->a[k * l->in + c];
		}
}

// ---- networks ----

int yk_adapter_apply(const struct yk_adapter *x, struct yk_network *n)
{
	const struct yoke_context *ctx = yk_current();
	struct yk_lora_layer *l = calloc(x->n + 1, sizeof *l);
	int e = l ? 0 : yk_fail(YOKE_ENOMEM, "adapter: no memory for %zu layers", x->n);
	for (size_t i = 0; i < x->n && e == 0; i++)
		l[i] = x->layer[i].is;
	if (e == 0)
		e = yk_network_adapt(n, x->n, l);
	free(l);
	n->adapter_dropout = x->dropout;
	for (size_t i = 0; i < x->n && e == 0 && !(ctx && ctx->mode.dry); i++) {
		const struct yk_adapter_layer *from = &x->layer[i];
		yoke_tensor *const *var = &n->params.var[n->adapter[i].a];
		e = yoke_put(var[0], from->a, (size_t)(from->is.rank * from->in) * sizeof *from->a);
		if (e == 0)
			e = yoke_put(var[1], from->b,
				     (size_t)(from->is.rank * from->out) * sizeof *from->b);
	}
	return e;
}

int yk_adapter_copy(const struct yk_network *n, struct yk_adapter *to)
{
	struct yk_adapter x = { .dropout = n->adapter_dropout };
	int e = 0;
	for (size_t i = 0; i < n->adapters && e == 0; i++) {
		const struct yk_network_adapter *from = &n->adapter[i];
		yoke_tensor *const *var = &n->params.var[from->a];
		struct yk_adapter_layer *l =
			yk_adapter_add(&x, &from->as, yoke_dim(var[0], 1), yoke_dim(var[1], 0));
		e = l ? yoke_read(var[0], l->a, yoke_bytes(var[0])) : YOKE_ENOMEM;
		if (e == 0)
			e = yoke_read(var[1], l->b, yoke_bytes(var[1]));
	}
	if (e < 0)
		yk_adapter_close(&x);
	else
		*to = x;
	return e;
}

// ---- PEFT ----

void yk_adapter_locate(const struct yk_family *f, const char *weight, struct yk_weight_location *to)
{
	yk_family_locate_full(f, weight, to);
	*strrchr(to->name, '.') = 0;
}

struct reading {
	struct yk_weights *w;
	const struct yk_peft_config *config;
	const struct yk_family *family;
	const struct yk_model_shape *shape;
	struct yk_adapter *to;
	bool *used; // by tensor
};

// The matrix of a module; 1: there is none.
static int find(const struct reading *r, const char *module, char side, struct yk_weight *to)
{
	char name[240];
	snprintf(name, sizeof name, "base_model.model.%s.lora_%c.weight", module, side);
	const int e = yk_weights_find(r->w, name, to);
	if (e == YOKE_ENOENT)
		return 1;
	if (e == 0)
		r->used[to->index] = true;
	return e;
}

static int misfit(const struct reading *r, const struct yk_weight *w, int64_t rows, int64_t columns)
{
	char got[YK_SHAPE_TEXT];
	if (w->rank == 2 && w->dims[0] == rows && w->dims[1] == columns)
		return 0;
	return yk_fail(YOKE_EINVAL, "%s: tensor '%s' is %s, but the model and %s say [%lld,%lld]",
		       w->path, w->name, yk_shape_text(got, w->rank, w->dims), r->config->path,
		       (long long)rows, (long long)columns);
}

// Does the layer's rows of b [..,rank] have an element other than 0 in columns from .. to - 1?
static bool is_used(const float *b, int64_t rows, int64_t rank, int64_t from, int64_t to)
{
	for (int64_t i = 0; i < rows; i++)
		for (int64_t k = from; k < to; k++)
			if (b[i * rank + k] != 0)
				return true;
	return false;
}

// Finds the layers of a module that have adapters of their own, as yk_adapter_write stores them:
// each uses another one of equal blocks of B's columns.  Returns the number of blocks and sets each
// layer's, -1: it has none; 0: the layers have A in common.
static int blocks_of(const float *b, const struct yk_shared_rows *s, int64_t rank, int block[3])
{
	int n = 0;
	for (int i = 0; i < s->layers; i++)
		n += is_used(b + s->from[i] * rank, s->rows[i], rank, 0, rank);
	if (!n || rank % n)
		return 0;
	bool taken[3] = { false };
	for (int i = 0; i < s->layers; i++) {
		block[i] = -1;
		for (int k = 0; k < n; k++) {
			if (!is_used(b + s->from[i] * rank, s->rows[i], rank, k * (rank / n),
				     (k + 1) * (rank / n)))
				continue;
			if (block[i] >= 0 || taken[k])
				return 0;
			block[i] = k;
			taken[k] = true;
		}
	}
	return n;
}

// Adds a layer with its rows of b [all,rank] and, if it has its own block of columns, only these.
static int take_layer(const struct reading *r, const struct yk_weight *a, const struct yk_weight *b,
		      const struct yk_shared_rows *s, int segment, struct yk_lora_layer *is)
{
	const int64_t rank = is->rank;
	int block[3] = { 0 }, n = 1;
	float *all = malloc((size_t)(s->all * rank) * sizeof *all);
	int e = all ? yk_weight_rows(b, 0, s->all, all) :
		      yk_fail(YOKE_ENOMEM, "%s: no memory for '%s'", b->path, b->name);
	if (e == 0 && s->layers > 1)
		n = blocks_of(all, s, rank, block);
	const int at = n ? block[segment] : 0;
	if (n > 1) {
		is->rank /= n;
		is->alpha /= n;
	}
	struct yk_adapter_layer *l =
		e == 0 && at >= 0 ? yk_adapter_add(r->to, is, a->dims[1], s->rows[segment]) : NULL;
	if (e == 0 && at >= 0 && !l)
		e = yoke_error_code();
	if (l)
		e = yk_weight_rows(a, at * is->rank, is->rank, l->a);
	for (int64_t i = 0; l && e == 0 && i < l->out; i++)
		memcpy(l->b + i * is->rank, all + (s->from[segment] + i) * rank + at * is->rank,
		       (size_t)is->rank * sizeof *l->b);
	free(all);
	return e;
}

// Reads the adapter of one weight of the decoder, if there is one.
static int read_layer(void *arg, const char *name, int rank, const int64_t *dims)
{
	const struct reading *r = arg;
	struct yk_weight_location place;
	struct yk_weight a, b;
	struct yk_lora_layer is = { 0 };
	struct yk_shared_rows shared;
	if (rank != 2 || strlen(name) - strlen(".weight") >= sizeof is.name)
		return 0;
	snprintf(is.name, sizeof is.name, "%.*s", (int)(strrchr(name, '.') - name), name);
	if (!strcmp(is.name, "embed") || !strcmp(is.name, "positions"))
		return 0;
	yk_adapter_locate(r->family, name, &place);
	const int has_a = find(r, place.name, 'A', &a), has_b = find(r, place.name, 'B', &b);
	if (has_a < 0 || has_b < 0)
		return yoke_error_code();
	if (has_a == 1 && has_b == 1)
		return 0;
	if (has_a != has_b)
		return yk_fail(YOKE_EFORMAT, "%s: module '%s' has only one of lora_A and lora_B",
			       r->w->set.path, place.name);
	if (!yk_peft_config_targets(r->config, place.name))
		return yk_fail(YOKE_EFORMAT,
			       "%s: adapts module '%s', which target_modules of %s do not name",
			       r->w->set.path, place.name, r->config->path);
	yk_weight_shared_rows(r->shape, &place, dims[0], &shared);
	yk_peft_config_of(r->config, place.name, &is.rank, &is.alpha);
	int e = misfit(r, &a, is.rank, dims[1]);
	if (e == 0)
		e = misfit(r, &b, shared.all, is.rank);
	return e < 0 ? e : take_layer(r, &a, &b, &shared, place.segment, &is);
}

static int read_all(struct reading *r)
{
	int e = yk_model_each(&yk_model_decoder, r->shape, read_layer, r);
	r->to->dropout = r->config->dropout;
	for (size_t i = 0; e == 0 && i < (size_t)r->w->set.count; i++)
		if (!r->used[i])
			e = yk_fail(
				YOKE_EUNSUPPORTED,
				"%s: tensor '%s' is no low-rank adapter of a matrix in this model",
				r->w->set.path, yk_weights_name(r->w, i));
	if (e == 0 && !r->to->n)
		e = yk_fail(YOKE_EFORMAT, "%s: has no tensors", r->w->set.path);
	return e;
}

static int open_peft(const char *path, const struct yk_family *f, const struct yk_model_shape *s,
		     struct yk_adapter *to)
{
	char *config = NULL, *file = NULL;
	struct yk_peft_config c;
	struct yk_adapter x = { 0 };
	if (asprintf(&config, "%s/adapter_config.json", path) < 0 ||
	    asprintf(&file, "%s/adapter_model.safetensors", path) < 0) {
		free(config);
		return yk_fail(YOKE_ENOMEM, "%s: no memory for a path", path);
	}
	int e = yk_peft_config_open(config, f->transposed, &c);
	if (e == 0) {
		struct reading r = {
			.w = yk_weights_new(path), .config = &c, .family = f, .shape = s, .to = &x
		};
		e = r.w ? yk_safetensors_set_open(&r.w->set, file) : YOKE_ENOMEM;
		if (e == 0 && !(r.used = calloc((size_t)r.w->set.count + 1, sizeof *r.used)))
			e = yk_fail(YOKE_ENOMEM, "%s: no memory", file);
		if (e == 0)
			e = read_all(&r);
		free(r.used);
		yk_weights_release(r.w);
		yk_peft_config_close(&c);
	}
	free(config);
	free(file);
	if (e < 0)
		yk_adapter_close(&x);
	else
		*to = x;
	return e;
}

// ---- runs ----

static int open_run(const char *path, const char *model, const struct yk_model_shape *s,
		    struct yk_adapter *to)
{
	struct yk_checkpoint ck;
	int e = yk_checkpoint_open(path, &ck);
	if (e < 0)
		return e;
	e = ck.adapter ? yk_adapter_same_base(path, &ck, model) :
			 yk_fail(YOKE_EINVAL, "%s: is a model, and no adapter of one", path);
	if (e == 0)
		e = yk_adapter_of_run(path, &ck, s, to);
	yk_checkpoint_fini(&ck);
	return e;
}

int yk_adapter_open(const char *path, const char *model, const struct yk_family *f,
		    const struct yk_model_shape *s, struct yk_adapter *to)
{
	struct stat st;
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return yk_fail(YOKE_ENOENT, "%s: is no folder with an adapter", path);
	return yk_checkpoint_exists(path) ? open_run(path, model, s, to) :
					    open_peft(path, f, s, to);
}

int yk_adapter_attach(const char *adapter, const char *model, struct yk_network *n)
{
	const struct yk_family *f =
		n->model == &yk_model_decoder ? yk_family_named(n->shape.decoder.family) : NULL;
	struct yk_adapter x;
	if (!f || n->adapters)
		return yk_fail(YOKE_EINVAL, "adapter=%s: %s %s", adapter, model,
			       f ? "has adapters already" : "is no pretrained language model");
	int e = yk_adapter_open(adapter, model, f, &n->shape, &x);
	if (e < 0)
		return e;
	e = yk_adapter_apply(&x, n);
	yk_adapter_close(&x);
	return e;
}
