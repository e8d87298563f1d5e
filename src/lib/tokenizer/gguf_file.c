// SPDX-License-Identifier: Apache-2.0
// Reads the tokenizer in the metadata of a GGUF file.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "formats/gguf.h"
#include "tokenizer/gguf.h"
#include "tokenizer/tokenizer.h"

static char *text_of(const struct yk_gguf *g, const char *key, int *error)
{
	const char *s;
	size_t n;
	const int e = *error < 0 ? 0 : yk_gguf_string(g, key, &s, &n);
	char *copy = e > 0 ? strndup(s, n) : NULL;
	if (e < 0)
		*error = e;
	else if (e > 0 && !copy)
		*error = yk_fail(YOKE_ENOMEM, "%s: no memory for '%s'", g->path, key);
	return copy;
}

static int64_t id_of(const struct yk_gguf *g, const char *key, int *error)
{
	int64_t id = -1;
	const int e = *error < 0 ? 0 : yk_gguf_int(g, key, -1, UINT32_MAX, &id);
	*error = e < 0 ? e : *error;
	return id == UINT32_MAX ? -1 : id;
}

static int flag_of(const struct yk_gguf *g, const char *key, int *error)
{
	bool flag;
	const int e = *error < 0 ? 0 : yk_gguf_bool(g, key, &flag);
	*error = e < 0 ? e : *error;
	return e > 0 ? flag : -1;
}

// An array of that type, or NULL if there is none.
static const struct yk_gguf_key *array_of(const struct yk_gguf *g, const char *name,
					  enum yk_gguf_type type, int *error)
{
	const struct yk_gguf_key *k = yk_gguf_key(g, name);
	if (k && *error == 0 && (!k->array || k->type != type))
		*error = yk_fail(YOKE_EFORMAT, "%s: key '%s' is not an array of type %d", g->path,
				 name, type);
	return *error < 0 ? NULL : k;
}

// Strings of an array; the caller frees the list.
static struct yk_gguf_string *strings_of(const struct yk_gguf *g, const char *name, size_t *count,
					 int *error)
{
	const struct yk_gguf_key *k = array_of(g, name, YK_GGUF_STRING, error);
	*count = k ? (size_t)k->count : 0;
	struct yk_gguf_string *list = k ? malloc((*count + 1) * sizeof *list) : NULL;
	if (k && !list)
		*error = yk_fail(YOKE_ENOMEM, "%s: no memory for '%s'", g->path, name);
	if (!list)
		return NULL;
	struct yk_gguf_strings s = yk_gguf_strings(k);
	for (size_t i = 0; yk_gguf_next(&s, &list[i].s, &list[i].n);)
		i++;
	return list;
}

// Elements of 4 bytes of an array, which are as many as tokens, aligned; the caller frees them.
static void *numbers_of(const struct yk_gguf *g, const char *name, enum yk_gguf_type type,
			size_t count, int *error)
{
	const struct yk_gguf_key *k = array_of(g, name, type, error);
	if (!k)
		return NULL;
	void *copy = k->count == count ? malloc((size_t)k->bytes + 1) : NULL;
	if (copy)
		return memcpy(copy, k->data, (size_t)k->bytes);
	*error = k->count == count ?
			 yk_fail(YOKE_ENOMEM, "%s: no memory for '%s'", g->path, name) :
			 yk_fail(YOKE_EFORMAT, "%s: key '%s' has %llu elements for %zu tokens",
				 g->path, name, (unsigned long long)k->count, count);
	return NULL;
}

int yk_tokenizer_gguf_read(const struct yk_gguf *g,
			   int (*use)(void *arg, const struct yk_gguf_tokenizer *), void *arg)
{
	int e = 0;
	struct yk_gguf_tokenizer t = {
		.bos = id_of(g, "tokenizer.ggml.bos_token_id", &e),
		.eos = id_of(g, "tokenizer.ggml.eos_token_id", &e),
		.eot = id_of(g, "tokenizer.ggml.eot_token_id", &e),
		.pad = id_of(g, "tokenizer.ggml.padding_token_id", &e),
		.unknown = id_of(g, "tokenizer.ggml.unknown_token_id", &e),
		.separator = id_of(g, "tokenizer.ggml.seperator_token_id", &e),
		.cls = id_of(g, "tokenizer.ggml.cls_token_id", &e),
		.add_bos = flag_of(g, "tokenizer.ggml.add_bos_token", &e),
		.add_eos = flag_of(g, "tokenizer.ggml.add_eos_token", &e),
		.add_space_prefix = flag_of(g, "tokenizer.ggml.add_space_prefix", &e),
		.remove_extra_spaces = flag_of(g, "tokenizer.ggml.remove_extra_whitespaces", &e),
	};
	char *model = text_of(g, "tokenizer.ggml.model", &e),
	     *pre = text_of(g, "tokenizer.ggml.pre", &e);
	char *chat = text_of(g, "tokenizer.chat_template", &e);
	struct yk_gguf_string *tokens = strings_of(g, "tokenizer.ggml.tokens", &t.count, &e);
	struct yk_gguf_string *merges = strings_of(g, "tokenizer.ggml.merges", &t.merge_count, &e);
	float *scores = numbers_of(g, "tokenizer.ggml.scores", YK_GGUF_FLOAT, t.count, &e);
	int32_t *types = numbers_of(g, "tokenizer.ggml.token_type", YK_GGUF_S32, t.count, &e);
	const struct yk_gguf_key *map = yk_gguf_key(g, "tokenizer.ggml.precompiled_charsmap");
	if (map && map->array && (map->type == YK_GGUF_U8 || map->type == YK_GGUF_S8)) {
		t.charsmap = map->data;
		t.charsmap_bytes = (size_t)map->bytes;
	}
	t.model = model;
	t.pre = pre;
	t.chat_template = chat;
	t.tokens = tokens;
	t.merges = merges;
	t.scores = scores;
	t.token_type = types;
	// llama.cpp's converter writes these names for a model without a vocabulary
	if (e == 0 && (!model || !strcmp(model, "none") || !strcmp(model, "no_vocab")))
		e = yk_fail(YOKE_ENOENT, "%s: has no tokenizer", g->path);
	if (e == 0)
		e = use(arg, &t);
	free(model);
	free(pre);
	free(chat);
	free(tokens);
	free(merges);
	free(scores);
	free(types);
	return e;
}

struct making {
	const char *name;
	yoke_tokenizer *made;
};

static int make(void *arg, const struct yk_gguf_tokenizer *t)
{
	struct making *m = arg;
	m->made = yk_tokenizer_gguf(t, m->name);
	return m->made ? 0 : yoke_error_code();
}

// Keys are sorted by name.
static uint64_t hash_keys(const struct yk_gguf *g)
{
	static const char prefix[] = "tokenizer.";
	uint64_t hash = 0;
	for (size_t i = 0; i < g->keys; i++) {
		const struct yk_gguf_key *k = &g->key[i];
		if (strncmp(k->name, prefix, sizeof prefix - 1))
			continue;
		hash = yk_hash(k->name, strlen(k->name) + 1, hash);
		hash = yk_hash(k->data, (size_t)k->bytes, hash + (uint64_t)k->type);
	}
	return hash;
}

yoke_tokenizer *yk_tokenizer_gguf_open(const char *path)
{
	struct yk_gguf g;
	if (yk_gguf_open(&g, path) < 0)
		return NULL;
	struct making m = { .name = g.path };
	yk_tokenizer_gguf_read(&g, make, &m);
	if (m.made)
		m.made->source = hash_keys(&g);
	yk_gguf_close(&g);
	return m.made;
}
