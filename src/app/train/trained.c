// SPDX-License-Identifier: Apache-2.0
// Loads trained models.
#include "config.h"

#include "train/trained.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/context.h"
#include "models/adapter.h"
#include "models/pretrained.h"
#include "parallel/stages.h"
#include "models/tokenizer_files.h"

static int load_network(const char *folder, const struct yk_checkpoint *ck,
			const struct yk_grid *grid, const struct yk_network *net)
{
	struct yk_host_list l = { 0 };
	int e = yk_host_list_describe(&net->params, true, &l);
	if (e == 0)
		e = yk_stages_load(grid, net, folder, ck, YK_CHECKPOINT_MODEL, 1, &l,
				   yk_host_list_take, (void *)(uintptr_t)&net->params);
	yk_host_list_free(&l);
	return e;
}

// Opens a model whose weights are not trained.
static int open_frozen(const char *path, const struct yk_model_shape *s,
		       const struct yoke_model_options *o, struct yk_network **to)
{
	const struct yoke_context *ctx = yk_current();
	struct yk_pretrained p;
	struct yk_checkpoint ck;
	int e;
	if (yk_pretrained_is(path)) {
		e = yk_pretrained_open(path, o, &p);
		if (e == 0)
			*to = p.net;
		return e;
	}
	if (o->dtype || o->quant)
		return yk_fail(
			YOKE_EINVAL,
			"%s=%s: %s has the weights of its training, which are not converted; drop the key",
			o->dtype ? "dtype" : "quant", o->dtype ? o->dtype : o->quant, path);
	if (ctx && ctx->mode.dry)
		return yk_network_new(&yk_model_decoder, s, to);
	e = yk_checkpoint_open(path, &ck);
	if (e < 0)
		return e;
	e = ck.adapter ?
		    yk_fail(YOKE_EINVAL, "%s: has adapters only, and no weights to freeze", path) :
		    yk_trained_network(path, &ck, NULL, NULL, to);
	yk_checkpoint_fini(&ck);
	return e;
}

int yk_trained_adapt(const char *path, const struct yk_model_shape *s,
		     const struct yoke_model_options *o, size_t n, const struct yk_lora_layer *l,
		     struct yk_network **to)
{
	struct yk_network *net;
	int e = open_frozen(path, s, o, &net);
	if (e < 0)
		return e;
	net->shape.context = s->context;
	e = yk_network_adapt(net, n, l);
	if (e < 0)
		yk_network_free(net);
	else
		*to = net;
	return e;
}

int yk_trained_attach(struct yk_trained *t, const char *path, const char *adapter)
{
	return yk_adapter_attach(adapter, path, t->net);
}

int yk_trained_adapt_as(const char *path, const struct yk_model_shape *s,
			const struct yoke_model_options *o, const char *adapter,
			struct yk_network **to)
{
	struct yk_network *net;
	int e = open_frozen(path, s, o, &net);
	if (e < 0)
		return e;
	net->shape.context = s->context;
	e = yk_adapter_attach(adapter, path, net);
	if (e < 0)
		yk_network_free(net);
	else
		*to = net;
	return e;
}

// The frozen model with the checkpoint's adapters.  Options: dtype, quant and kv, or NULL.
static int adapted_network(const char *folder, const struct yk_checkpoint *ck,
			   const struct yk_grid *grid, const struct yoke_model_options *options,
			   struct yk_network **to)
{
	struct yoke_model_options o =
		options ? *options : (struct yoke_model_options){ .size = sizeof o };
	const struct yk_model *model;
	struct yk_network *net = NULL;
	struct yk_model_shape shape;
	struct yk_adapter_manifest x = { 0 };
	int e = yk_model_parse(ck->model, folder, &model, &shape);
	if (e == 0)
		e = yk_adapter_parse(folder, ck->adapter, &x);
	if (e == 0)
		e = yk_adapter_same_base(folder, ck, x.base);
	if (e == 0) {
		o.context = shape.context;
		if (!o.dtype && !o.quant) {
			o.dtype = x.dtype;
			o.quant = x.quant;
		}
		e = yk_trained_adapt(x.base, &shape, &o, x.n, x.layer, &net);
	}
	free(x.layer);
	if (e == 0)
		net->adapter_dropout = x.dropout;
	if (e == 0)
		e = yk_checkpoint_holds(folder, ck, YK_CHECKPOINT_MODEL,
					sizeof(float) * (uint64_t)net->params.elements);
	if (e == 0)
		e = load_network(folder, ck, grid, net);
	if (e < 0)
		yk_network_free(net);
	else
		*to = net;
	return e;
}

int yk_trained_network(const char *folder, const struct yk_checkpoint *ck,
		       const struct yk_grid *grid, const struct yk_stage *stage,
		       struct yk_network **to)
{
	const struct yk_model *model;
	struct yk_network *net = NULL;
	struct yk_model_shape shape;
	if (ck->adapter)
		return adapted_network(folder, ck, grid, NULL, to);
	int e = yk_model_parse(ck->model, folder, &model, &shape);
	if (e == 0)
		e = yk_checkpoint_holds(folder, ck, YK_CHECKPOINT_MODEL,
					sizeof(float) * (uint64_t)yk_model_elements(model, &shape));
	if (e == 0)
		e = yk_network_new_part(grid ? grid->over_tensor : NULL, stage, model, &shape,
					&net);
	if (e == 0)
		e = load_network(folder, ck, grid, net);
	if (e < 0)
		yk_network_free(net);
	else
		*to = net;
	return e;
}

static int open_all(const char *folder, const struct yoke_model_options *o, struct yk_trained *t)
{
	int e = yk_checkpoint_open(folder, &t->checkpoint);
	if (e < 0)
		return e;
	t->tokenizer = yk_tokenizer_of_checkpoint(&t->checkpoint, folder);
	if (!t->tokenizer)
		return yoke_error_code();
	e = t->checkpoint.adapter ? adapted_network(folder, &t->checkpoint, NULL, o, &t->net) :
				    yk_trained_network(folder, &t->checkpoint, NULL, NULL, &t->net);
	if (e < 0)
		return e;
	const int64_t vocab = t->net->shape.vocab, size = yk_tokenizer_size(t->tokenizer);
	if (vocab == size)
		return 0;
	return yk_fail(YOKE_EFORMAT, "%s: the model has %lld tokens, but its tokenizer has %lld",
		       folder, (long long)vocab, (long long)size);
}

static int open_pretrained(const char *path, const struct yoke_model_options *o,
			   struct yk_trained *t)
{
	struct yk_pretrained p;
	int e = yk_pretrained_open(path, o, &p);
	if (e < 0)
		return e;
	t->pretrained = true;
	t->net = p.net;
	if (p.family->encoder)
		return yk_fail(YOKE_EUNSUPPORTED,
			       "%s: is an encoder, which predicts no tokens; yoke_model_embed "
			       "computes its embeddings",
			       path);
	t->tokenizer = yk_tokenizer_of_pretrained(path, p.net->shape.vocab);
	return t->tokenizer ? 0 : yoke_error_code();
}

int yk_trained_limit(const char *path, int64_t context, struct yk_model_shape *s)
{
	const int64_t max = s->decoder.positions;
	if (context < 0 || context > max)
		return yk_fail(YOKE_EINVAL,
			       "%s: context=%lld must be from 1 to the model's maximum, %lld", path,
			       (long long)context, (long long)max);
	if (context)
		s->context = context;
	return 0;
}

void yk_trained_widen(struct yk_trained *t)
{
	if (!t->pretrained && t->net->model == &yk_model_decoder)
		t->net->shape.context = t->net->shape.decoder.positions;
}

static int open_trained(const char *folder, const struct yoke_model_options *o,
			struct yk_trained *t)
{
	const int e = open_all(folder, o, t);
	if (e < 0)
		return e;
	if (o && (o->dtype || o->quant) && !t->checkpoint.adapter)
		return yk_fail(YOKE_EINVAL,
			       "%s=%s: applies only to pretrained models, but %s was trained by "
			       "yoke; remove the key",
			       o->dtype ? "dtype" : "quant", o->dtype ? o->dtype : o->quant,
			       folder);
	if (o && o->kv && !strcmp(o->kv, "f16"))
		t->net->cache_dtype = yoke_f16;
	if (o && t->net->model == &yk_model_decoder)
		return yk_trained_limit(folder, o->context, &t->net->shape);
	if (o && o->context)
		return yk_fail(YOKE_EINVAL, "context=%lld: %s has a fixed context; remove the key",
			       (long long)o->context, folder);
	return 0;
}

int yk_trained_open(const char *path, const struct yoke_model_options *o, struct yk_trained *to)
{
	struct yk_trained t = { 0 };
	int e = yk_pretrained_is(path) ? open_pretrained(path, o, &t) : open_trained(path, o, &t);
	if (e < 0)
		yk_trained_close(&t);
	else
		*to = t;
	return e;
}

void yk_trained_close(struct yk_trained *t)
{
	yk_network_free(t->net);
	yk_tokenizer_free(t->tokenizer);
	yk_checkpoint_fini(&t->checkpoint);
}
