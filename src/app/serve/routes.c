// SPDX-License-Identifier: Apache-2.0
// Handlers of paths.  Those that need a model refuse requests until it is loaded.
#include "config.h"

#include "serve/routes.h"

#include <stdlib.h>
#include <string.h>

#include "serve/call.h"
#include "serve/fields.h"
#include "serve/page.h"

// ---- the state of the server ----

static void get_health(struct yk_exchange *x, void *arg)
{
	struct yk_serve *s = arg;
	const enum yk_serve_phase phase = atomic_load(&s->phase);
	static const char *const names[] = { "loading", "ok", "draining" };
	yk_exchange_json(x, phase == YK_READY ? 200 : 503,
			 json_pack("{s:s}", "status", names[phase]));
}

static void get_metrics(struct yk_exchange *x, void *arg)
{
	struct yk_serve *s = arg;
	struct yoke_engine_stats stats = { .size = sizeof stats };
	const bool has = atomic_load(&s->phase) != YK_LOADING && s->lm.engine &&
			 yoke_engine_stats(s->lm.engine, &stats) == 0;
	char *text = yk_metrics_text(&s->metrics, has ? &stats : NULL);
	yk_exchange_reply(x, 200, "text/plain; version=0.0.4; charset=utf-8", text,
			  text ? strlen(text) : 0);
}

static void get_page(struct yk_exchange *x, void *arg)
{
	(void)arg;
	yk_page_reply(x);
}

// Every browser requests it.
static void get_icon(struct yk_exchange *x, void *arg)
{
	(void)arg;
	yk_exchange_reply(x, 204, "image/x-icon", strdup(""), 0);
}

// ---- the API ----

static bool is_ready(const struct yk_serve *s, struct yk_exchange *x)
{
	const enum yk_serve_phase phase = atomic_load(&s->phase);
	if (phase == YK_READY)
		return true;
	yk_exchange_set(x, "Retry-After", "5");
	yk_exchange_error(x, 503, NULL, NULL, "the server is %s",
			  phase == YK_LOADING ? "loading the model" : "shutting down");
	return false;
}

static void get_models(struct yk_exchange *x, void *arg)
{
	struct yk_serve *s = arg;
	if (!is_ready(s, x))
		return;
	json_t *data = json_array();
	for (int i = 0; i < s->models; i++)
		json_array_append_new(
			data,
			json_pack("{s:s, s:s, s:I, s:s, s:s*, s:I}", "id", s->model[i].name,
				  "object", "model", "created", (json_int_t)s->created, "owned_by",
				  "yoke", "parent", s->model[i].adapter ? s->model[0].name : NULL,
				  "max_model_len",
				  (json_int_t)(s->model[i].embeds ? s->embedder.context :
								    s->lm.context)));
	yk_exchange_json(x, 200, json_pack("{s:s, s:o}", "object", "list", "data", data));
}

static void post_completions(struct yk_exchange *x, void *arg)
{
	if (is_ready(arg, x))
		yk_call_completions(arg, x, false);
}

static void post_chat(struct yk_exchange *x, void *arg)
{
	if (is_ready(arg, x))
		yk_call_completions(arg, x, true);
}

static void post_embeddings(struct yk_exchange *x, void *arg)
{
	if (is_ready(arg, x))
		yk_call_embeddings(arg, x);
}

// ---- tokens ----

static void tokenize(const struct yk_serve *s, struct yk_exchange *x, const json_t *o)
{
	const yoke_tokenizer *t = s->lm.tokenizer ? s->lm.tokenizer : s->embedder.tokenizer;
	const char *text = NULL;
	bool special = false;
	int32_t *ids = NULL;
	size_t n = 0;
	if (!yk_field_text(x, o, "content", &text) || !yk_field_bool(x, o, "add_special", &special))
		return;
	if (!text) {
		yk_exchange_error(x, 400, "content", NULL, "'content' is missing");
		return;
	}
	if (yoke_tokenizer_encode(t, text, strlen(text), special ? YOKE_TOKENIZER_ADD : 0, &ids,
				  &n) < 0) {
		yk_exchange_failed(x, "content");
		return;
	}
	json_t *list = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_integer(ids[i]));
	free(ids);
	yk_exchange_json(x, 200, json_pack("{s:o, s:I}", "tokens", list, "count", (json_int_t)n));
}

static void detokenize(const struct yk_serve *s, struct yk_exchange *x, const json_t *o)
{
	const yoke_tokenizer *t = s->lm.tokenizer ? s->lm.tokenizer : s->embedder.tokenizer;
	const json_t *m = yk_field(o, "tokens");
	struct yk_token_list ids;
	char *text = NULL;
	size_t bytes = 0;
	if (!json_is_array(m)) {
		yk_exchange_error(x, 400, "tokens", NULL, "'tokens' must be an array of tokens");
		return;
	}
	if (!yk_field_ids(x, m, "tokens",
			  s->lm.tokenizer ? s->lm.vocabulary : s->embedder.vocabulary, &ids))
		return;
	if (yoke_tokenizer_decode(t, ids.id, ids.n, 0, &text, &bytes) < 0)
		yk_exchange_failed(x, "tokens");
	else
		yk_exchange_json(x, 200, json_pack("{s:s%}", "content", text, bytes));
	free(ids.id);
	free(text);
}

static void with_object(struct yk_serve *s, struct yk_exchange *x,
			void (*handle)(const struct yk_serve *, struct yk_exchange *,
				       const json_t *))
{
	json_t *o = is_ready(s, x) ? yk_fields_of(x) : NULL;
	if (o)
		handle(s, x, o);
	json_decref(o);
}

static void post_tokenize(struct yk_exchange *x, void *arg)
{
	with_object(arg, x, tokenize);
}

static void post_detokenize(struct yk_exchange *x, void *arg)
{
	with_object(arg, x, detokenize);
}

static const struct yk_route table[YK_ROUTES] = {
	{ "GET", "/", true, get_page, NULL },
	{ "GET", "/health", true, get_health, NULL },
	{ "GET", "/metrics", false, get_metrics, NULL },
	{ "GET", "/v1/models", false, get_models, NULL },
	{ "POST", "/v1/completions", false, post_completions, NULL },
	{ "POST", "/v1/chat/completions", false, post_chat, NULL },
	{ "POST", "/v1/embeddings", false, post_embeddings, NULL },
	{ "POST", "/tokenize", false, post_tokenize, NULL },
	{ "POST", "/detokenize", false, post_detokenize, NULL },
	{ "GET", "/favicon.ico", true, get_icon, NULL },
};

void yk_routes_of(struct yk_serve *s, struct yk_route to[YK_ROUTES])
{
	memcpy(to, table, sizeof table);
	for (int i = 0; i < YK_ROUTES; i++)
		to[i].arg = s;
}

void yk_route_local(struct yk_serve *s, struct yk_exchange *x)
{
	for (int i = 0; i < YK_ROUTES; i++)
		if (!strcmp(table[i].path, yk_exchange_path(x)) &&
		    !strncmp(table[i].path, "/v1/", 4) && !strcmp(table[i].method, "POST")) {
			table[i].handle(x, s);
			return;
		}
	yk_exchange_error(x, 400, "url", NULL, "no such path for requests of a file");
}

const char *yk_route_name(const char *path)
{
	for (int i = 0; i < YK_ROUTES; i++)
		if (!strcmp(table[i].path, path))
			return table[i].path;
	return "other";
}
