// SPDX-License-Identifier: Apache-2.0
// Opens the models of a server.  An encoder serves embeddings only.
#include "config.h"

#include "serve/open.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "models/pretrained.h"
#include "template/template.h"

#define TEMPLATE_MAX (UINT64_C(1) << 20)

struct yk_serve *yk_serve_new(const struct yk_serve_options *options)
{
	struct yk_serve *s = calloc(1, sizeof *s);
	if (!s) {
		yk_fail(YOKE_ENOMEM, "no memory for a server");
		return NULL;
	}
	s->is = *options;
	s->inbox.last = &s->inbox.first;
	s->created = yk_unix_seconds();
	pthread_mutex_init(&s->inbox.mutex, NULL);
	yk_cond_init(&s->inbox.changed);
	yk_metrics_init(&s->metrics);
	return s;
}

// ---- names ----

// The last component of a path, without the extension of a file.
static char *name_of_path(const char *path)
{
	size_t n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		n--;
	size_t from = n;
	while (from > 0 && path[from - 1] != '/')
		from--;
	if (n - from > 5 && !strncmp(path + n - 5, ".gguf", 5))
		n -= 5;
	return strndup(path + from, n - from);
}

// Takes the name, also on failure.
static int add_name(struct yk_serve *s, char *name, bool adapter, bool embeds)
{
	for (int i = 0; name && i < s->models; i++)
		if (s->model[i].embeds == embeds && !strcmp(name, s->model[i].name)) {
			const int e =
				yk_fail(YOKE_EINVAL,
					"two models have the name '%s'; give another name=", name);
			free(name);
			return e;
		}
	if (!name)
		return yk_fail(YOKE_ENOMEM, "no memory for the name of a model");
	s->model[s->models++] = (struct yk_serve_model){ name, adapter, embeds };
	return 0;
}

// NAME=FOLDER, comma-separated
static int add_adapters(struct yk_serve *s)
{
	const char *at = s->is.adapters;
	int e = 0;
	for (int n = 0; *at && e == 0; n++) {
		const size_t all = strcspn(at, ","), name = strcspn(at, "=");
		if (name == 0 || name + 1 >= all)
			return yk_fail(YOKE_EINVAL, "adapter=%.*s: must be NAME=FOLDER", (int)all,
				       at);
		if (n == YK_SERVE_ADAPTERS)
			return yk_fail(YOKE_EINVAL, "adapter=: has more than %d adapters",
				       YK_SERVE_ADAPTERS);
		char *folder = strndup(at + name + 1, all - name - 1);
		e = folder ? add_name(s, strndup(at, name), true, false) :
			     yk_fail(YOKE_ENOMEM, "no memory for an adapter");
		if (e == 0)
			e = yoke_engine_adapter(s->lm.engine, s->model[s->models - 1].name, folder);
		free(folder);
		at += all + (at[all] == ',');
	}
	return e;
}

// ---- models ----

static int open_template(struct yk_serve *s)
{
	const char *file = s->is.template;
	char *source = NULL;
	size_t bytes;
	if (!*file) {
		if (yoke_tokenizer_template(s->lm.tokenizer))
			s->lm.template = yoke_chat_template_of(s->lm.tokenizer);
		return s->lm.template || !yoke_tokenizer_template(s->lm.tokenizer) ? 0 :
									       yoke_error_code();
	}
	int e = yk_file_read(file, TEMPLATE_MAX, &source, &bytes);
	if (e == 0) {
		s->lm.template = yk_chat_template_for(s->lm.tokenizer, source, bytes, file);
		e = s->lm.template ? 0 : yoke_error_code();
	}
	free(source);
	return e;
}

static int open_engine(struct yk_serve *s, const struct yoke_model_info *info)
{
	const struct yoke_engine_options options = { .size = sizeof options,
						     .slots = (int)s->is.slots,
						     .queue = (int)s->is.queue,
						     .step = s->is.step,
						     .pages = s->is.pages,
						     .alike = s->is.alike ? 1 : -1 };
	s->lm.vocabulary = info->vocabulary;
	s->lm.pieces = yk_tokenizer_borrow(s->lm.tokenizer, (int32_t)info->vocabulary);
	int e = s->lm.pieces ? open_template(s) : yoke_error_code();
	if (e == 0) {
		s->lm.schemas = yk_schema_vocab_new(s->lm.pieces, (int32_t)info->vocabulary);
		e = s->lm.schemas ? 0 : yoke_error_code();
	}
	if (e == 0) {
		s->lm.engine = yoke_engine_new(s->lm.model, &options);
		e = s->lm.engine ? 0 : yoke_error_code();
	}
	if (e < 0)
		return e;
	s->lm.context = yoke_engine_context(s->lm.engine);
	return add_adapters(s);
}

// Embeddings of `embed`, which the server takes.
static int open_embedder(struct yk_serve *s, yoke_model *m, const char *path, char *name)
{
	struct yoke_model_info info = { .size = sizeof info };
	s->embedder.model = m;
	int e = m ? yoke_model_info(m, &info) : yoke_error_code();
	if (e == 0)
		e = yk_embedding_of(path, NULL, &s->embedder.settings);
	if (e == 0) {
		s->embedder.tokenizer = yoke_model_tokenizer(m);
		e = s->embedder.tokenizer ? 0 : yoke_error_code();
	}
	if (e < 0) {
		free(name);
		return e;
	}
	s->embedder.vocabulary = info.vocabulary;
	s->embedder.width = info.width;
	s->embedder.context =
		s->embedder.settings.max_tokens && s->embedder.settings.max_tokens < info.context ?
			s->embedder.settings.max_tokens :
			info.context;
	return add_name(s, name, false, true);
}

int yk_serve_open(struct yk_serve *s)
{
	struct yoke_model_info info = { .size = sizeof info };
	char *name = *s->is.name ? strdup(s->is.name) : name_of_path(s->is.model);
	yoke_model *m = yoke_model_open(s->is.model, &s->is.open);
	int e = m ? yoke_model_info(m, &info) : yoke_error_code();
	if (e < 0) {
		free(name);
		yoke_model_free(m);
		return e;
	}
	if (!strcmp(info.family, "bert"))
		return open_embedder(s, m, s->is.model, name);
	s->lm.model = m;
	s->lm.tokenizer = yoke_model_tokenizer(m);
	e = add_name(s, name, false, false);
	if (e == 0)
		e = s->lm.tokenizer ? open_engine(s, &info) : yoke_error_code();
	if (e == 0 && *s->is.embed)
		e = open_embedder(s, yoke_model_open(s->is.embed, NULL), s->is.embed,
				  name_of_path(s->is.embed));
	return e;
}

void yk_serve_free(struct yk_serve *s)
{
	if (!s)
		return;
	yoke_engine_free(s->lm.engine);
	yk_serve_abandon(s);
	yoke_chat_template_free(s->lm.template);
	yk_schema_vocab_free(s->lm.schemas);
	yk_tokenizer_free(s->lm.pieces);
	yoke_model_free(s->lm.model);
	yoke_model_free(s->embedder.model);
	for (int i = 0; i < s->models; i++)
		free(s->model[i].name);
	yk_metrics_fini(&s->metrics);
	pthread_cond_destroy(&s->inbox.changed);
	pthread_mutex_destroy(&s->inbox.mutex);
	free(s);
}
