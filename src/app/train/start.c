// SPDX-License-Identifier: Apache-2.0
// Opens the model that init= names.
#include "config.h"

#include "train/start.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "graph/context.h"
#include "models/pretrained.h"
#include "train/adapted.h"
#include "models/tokenizer_files.h"
#include "train/trained.h"

static const char *init_of(const struct yk_config *c)
{
	return yk_config_str(c, YK_KEY_init);
}

bool yk_starts_from_model(const struct yk_config *c)
{
	return *init_of(c);
}

const char *yk_start_source(const struct yk_config *c)
{
	return yk_starts_from_model(c) ? init_of(c) : yk_config_str(c, YK_KEY_tokenizer);
}

// The absolute path of a file that need not exist.
static char *absolute(const char *path)
{
	char *here = *path == '/' ? strdup("") : getcwd(NULL, 0), *full = NULL;
	if (here && asprintf(&full, *here ? "%s/%s" : "%s%s", here, path) < 0)
		full = NULL;
	free(here);
	return full;
}

static int settle(struct yk_config *c, enum yk_config_key key, bool optional)
{
	char *path = realpath(yk_config_str(c, key), NULL);
	if (!path && optional)
		path = absolute(yk_config_str(c, key));
	if (!path)
		return yk_fail(YOKE_ENOENT, "%s=%s: %s", yk_config_rows[key].name,
			       yk_config_str(c, key), strerror(errno));
	const int e = yk_config_settle_text(c, key, path);
	free(path);
	return e;
}

// A checkpoint keeps valid=NAME as ./NAME, which is a path even after the file has been removed.
static int settle_valid(struct yk_config *c)
{
	const char *name = yk_config_str(c, YK_KEY_valid);
	char path[4096];
	if (c->command != YK_T || !yk_config_is_path(c, YK_KEY_valid) || strpbrk(name, "/.,") ||
	    !strcmp(name, "-"))
		return 0;
	snprintf(path, sizeof path, "./%s", name);
	return yk_config_settle_text(c, YK_KEY_valid, path);
}

int yk_start_settle(struct yk_config *c, bool resumes)
{
	int e = settle_valid(c);
	if (e < 0)
		return e;
	e = *yk_config_str(c, YK_KEY_adapter) ? settle(c, YK_KEY_adapter, resumes) : 0;
	if (e == 0 && yk_starts_from_model(c))
		return settle(c, YK_KEY_init, false);
	return e == 0 && yk_config_is_path(c, YK_KEY_tokenizer) ?
		       settle(c, YK_KEY_tokenizer, false) :
		       e;
}

// ---- shape ----

// The model of a checkpoint of yoke that was itself trained from a pretrained one.
static int checkpoint_shape(const char *path, const struct yk_checkpoint *ck, int64_t context,
			    const struct yk_model **m, struct yk_model_shape *to)
{
	const int e = yk_model_parse(ck->model, path, m, to);
	if (e < 0)
		return e;
	if (*m != &yk_model_decoder)
		return yk_fail(
			YOKE_EINVAL,
			"%s: contains a model=%s; init= takes a Hugging Face folder, a GGUF file, "
			"or a model trained from one; to continue this run, give out=%s resume=1",
			path, (*m)->name, path);
	return yk_trained_limit(path, context, to);
}

static int init_shape(const struct yk_config *c, const struct yk_model **m,
		      struct yk_model_shape *to)
{
	const int64_t context = yk_config_int(c, YK_KEY_context);
	struct yk_checkpoint ck;
	*m = &yk_model_decoder;
	if (yk_pretrained_is(init_of(c)) || !yk_checkpoint_exists(init_of(c)))
		return yk_pretrained_shape(init_of(c), context, to);
	int e = yk_checkpoint_open(init_of(c), &ck);
	if (e < 0)
		return e;
	e = ck.adapter ?
		    yk_fail(YOKE_EINVAL, "%s: has adapters only; continue it with out=%s resume=1",
			    init_of(c), init_of(c)) :
		    checkpoint_shape(init_of(c), &ck, context, m, to);
	yk_checkpoint_fini(&ck);
	return e;
}

int yk_start_shape(const struct yk_config *c, int64_t vocab, const struct yk_checkpoint *from,
		   const char *folder, const struct yk_model **m, struct yk_model_shape *to)
{
	if (!yk_starts_from_model(c)) {
		*m = yk_config_model(c, vocab, to);
		return 0;
	}
	return from ? yk_model_parse(from->model, folder, m, to) : init_shape(c, m, to);
}

// ---- network and tokenizer ----

// The network of init= with adapters, without initial values of these.
static int start_adapted(const struct yk_config *c, const struct yk_model_shape *s,
			 struct yk_network **to)
{
	struct yoke_model_options o = { .size = sizeof o, .context = s->context };
	struct yk_lora_layer *l;
	size_t n;
	yk_adapted_base(c, &o);
	if (*yk_config_str(c, YK_KEY_adapter))
		return yk_trained_adapt_as(init_of(c), s, &o, yk_config_str(c, YK_KEY_adapter), to);
	int e = yk_adapted_layers(c, s, &l, &n);
	if (e < 0)
		return e;
	e = yk_trained_adapt(init_of(c), s, &o, n, l, to);
	free(l);
	return e;
}

int yk_start_network(const struct yk_config *c, const struct yk_model_shape *s,
		     struct yk_network **to)
{
	const struct yoke_model_options o = { .size = sizeof o,
					      .context = s->context,
					      .dtype = "f32" };
	struct yk_pretrained p;
	struct yk_checkpoint ck;
	const struct yoke_context *ctx = yk_current();
	int e;
	if (yk_trains_adapters(c))
		return start_adapted(c, s, to);
	if (ctx && ctx->mode.dry) // a rehearsal, which needs no values
		return yk_network_new(&yk_model_decoder, s, to);
	if (yk_pretrained_is(init_of(c))) {
		e = yk_pretrained_open(init_of(c), &o, &p);
		if (e == 0)
			*to = p.net;
		return e;
	}
	e = yk_checkpoint_open(init_of(c), &ck);
	if (e < 0)
		return e;
	e = yk_trained_network(init_of(c), &ck, NULL, NULL, to);
	yk_checkpoint_fini(&ck);
	if (e == 0)
		(*to)->shape.context = s->context;
	return e;
}

struct yk_tokenizer *yk_start_tokenizer(const struct yk_config *c)
{
	const struct yk_model *m;
	struct yk_model_shape shape;
	struct yk_checkpoint ck;
	if (init_shape(c, &m, &shape) < 0)
		return NULL;
	if (yk_pretrained_is(init_of(c)))
		return yk_tokenizer_of_pretrained(init_of(c), shape.vocab);
	if (yk_checkpoint_open(init_of(c), &ck) < 0)
		return NULL;
	struct yk_tokenizer *t = yk_tokenizer_of_checkpoint(&ck, init_of(c));
	yk_checkpoint_fini(&ck);
	return t;
}
