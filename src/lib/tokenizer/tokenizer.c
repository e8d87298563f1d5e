// SPDX-License-Identifier: Apache-2.0
// Opening tokenizers, and what they report about themselves.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "formats/gguf.h"
#include "tokenizer/encode_cache.h"
#include "tokenizer/tokenizer.h"

#define MAX_FILE ((uint64_t)64 << 20)

yoke_tokenizer *yk_tokenizer_alloc(const char *name)
{
	yoke_tokenizer *t = calloc(1, sizeof *t);

	if (t)
		t->name = strdup(name);
	if (!t || !t->name) {
		free(t);
		yk_fail(YOKE_ENOMEM, "%s: no memory for a tokenizer", name);
		return NULL;
	}
	pthread_mutex_init(&t->lock, NULL);
	t->bos = t->pad = t->model.unknown = -1;
	return t;
}

void yoke_tokenizer_free(yoke_tokenizer *t)
{
	if (!t)
		return;
	yk_encode_cache_free(t->work);
	pthread_mutex_destroy(&t->lock);
	yk_added_fini(&t->added);
	yk_steps_fini(&t->normalizer);
	yk_steps_fini(&t->splitter);
	yk_steps_fini(&t->decoder);
	yk_charsmap_free(t->spm.map);
	yk_model_fini(&t->model);
	yk_vocab_fini(&t->vocab);
	yk_arena_fini(&t->arena);
	free(t->before.id);
	free(t->after.id);
	free(t->chat);
	free(t->json);
	free(t->name);
	free(t);
}

int yk_tokenizer_added(yoke_tokenizer *t, struct yk_added_token x, bool normalized)
{
	struct yk_added *a = &t->added;
	struct yk_string s = { 0 }, swap = { 0 };
	struct yk_token *token = &t->vocab.token[x.id];
	int e = 0;

	if (!token->n)
		return yk_fail(YOKE_EFORMAT, "%s: the added token %d is empty", t->name, x.id);
	if (yk_grow(&a->token, &a->cap, a->count + 1, sizeof *a->token) < 0)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for added tokens", t->name);
	token->special |= x.special;
	a->token[a->count] = x;
	if (normalized && t->normalizer.count)
		e = yk_normalize(&t->normalizer, token->s, token->n, &s, &swap);
	else
		yk_string_add(&s, token->s, token->n);
	if (e == 0 && (s.failed || (s.n && yk_trie_add(normalized ? &a->normalized : &a->raw, s.s,
						       s.n, (int32_t)a->count) < 0)))
		e = yk_fail(YOKE_ENOMEM, "%s: no memory for added tokens", t->name);
	a->count++;
	yk_string_fini(&s);
	yk_string_fini(&swap);
	return e;
}

int yk_tokenizer_finish(yoke_tokenizer *t)
{
	yk_model_settle(&t->model, &t->vocab);
	t->work = yk_encode_cache_new();
	return t->work ? 0 : yk_fail(YOKE_ENOMEM, "%s: no memory for a cache", t->name);
}

int yk_tokenizer_affix(yoke_tokenizer *t, bool after, int32_t id)
{
	struct yk_ids *to = after ? &t->after : &t->before;

	yk_ids_add(to, id);
	return to->failed ? yk_fail(YOKE_ENOMEM, "%s: no memory for special tokens", t->name) : 0;
}

void yk_tokenizer_end(yoke_tokenizer *t, int32_t id)
{
	for (int i = 0; i < t->eos_count; i++)
		if (t->eos[i] == id)
			return;
	if (t->eos_count < YK_EOS_MAX && id >= 0 && (size_t)id < t->vocab.count)
		t->eos[t->eos_count++] = id;
}

const char *yk_tokenizer_model_name(const yoke_tokenizer *t)
{
	static const char *const names[] = { [YK_BPE] = "BPE",
					     [YK_UNIGRAM] = "Unigram",
					     [YK_WORDPIECE] = "WordPiece",
					     [YK_WORDLEVEL] = "WordLevel" };
	return names[t->model.kind];
}

static uint64_t hash_ids(const int32_t *id, size_t n, uint64_t seed)
{
	const uint64_t hash = yk_hash_numbers(&(uint64_t){ n }, 8, 1, seed);
	return n ? yk_hash_numbers(id, sizeof *id, n, hash) : hash;
}

uint64_t yk_tokenizer_hash(const yoke_tokenizer *t)
{
	const int32_t single[] = { t->bos, t->pad, t->model.unknown };
	uint64_t hash = hash_ids(single, sizeof single / sizeof *single, t->source);
	hash = hash_ids(t->eos, (size_t)t->eos_count, hash);
	hash = hash_ids(t->before.id, t->before.n, hash);
	hash = hash_ids(t->after.id, t->after.n, hash);
	return t->chat ? yk_hash(t->chat, strlen(t->chat), hash) : hash;
}

// ---- opening ----

static bool is_json(const char *s, size_t n)
{
	size_t i = n >= 3 && !memcmp(s, "\xef\xbb\xbf", 3) ? 3 : 0;

	while (i < n && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r'))
		i++;
	return i < n && s[i] == '{';
}

static yoke_tokenizer *parse(const void *data, size_t bytes, const char *name, const char *folder)
{
	yoke_tokenizer *t = yk_tokenizer_alloc(name);

	if (!t)
		return NULL;
	int e = is_json(data, bytes) ? yk_tokenizer_read_json(t, data, bytes) :
				       yk_tokenizer_read_spm(t, data, bytes);
	if (e == 0 && folder)
		e = yk_tokenizer_read_folder(t, folder);
	if (e == 0)
		e = yk_tokenizer_finish(t);
	if (e < 0) {
		yoke_tokenizer_free(t);
		return NULL;
	}
	return t;
}

yoke_tokenizer *yoke_tokenizer_parse(const void *data, size_t bytes, const char *name)
{
	if (yk_require(data, "data") || yk_require(name, "name"))
		return NULL;
	return parse(data, bytes, name, NULL);
}

yoke_tokenizer *yoke_tokenizer_open(const char *path)
{
	static const char *const names[] = { "", "/tokenizer.json", "/tokenizer.model",
					     "/spiece.model" };
	char file[4096], *data;
	struct stat st;
	size_t bytes;

	if (yk_require(path, "path"))
		return NULL;
	if (strlen(path) > sizeof file - 32) {
		yk_fail(YOKE_ERANGE, "tokenizer_open: the path has %zu bytes", strlen(path));
		return NULL;
	}
	const bool is_folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
	for (size_t i = is_folder; i < (is_folder ? 4 : 1); i++) {
		snprintf(file, sizeof file, "%s%s", path, names[i]);
		if (stat(file, &st) == 0)
			break;
	}
	if (stat(file, &st) < 0 && is_folder) {
		yk_fail(YOKE_ENOENT,
			"%s: neither tokenizer.json nor tokenizer.model is in this folder", path);
		return NULL;
	}
	if (stat(file, &st) == 0 && !S_ISREG(st.st_mode)) {
		yk_fail(YOKE_EFORMAT, "%s: not a regular file", file);
		return NULL;
	}
	if (yk_gguf_is(file))
		return yk_tokenizer_gguf_open(file);
	if (yk_file_read(file, MAX_FILE, &data, &bytes) < 0)
		return NULL;
	char folder[4096];
	const char *slash = strrchr(file, '/');
	snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - file) : 1,
		 slash ? file : ".");
	yoke_tokenizer *t = parse(data, bytes, file, *folder ? folder : "/");
	free(data);
	return t;
}

// ---- queries ----

int yoke_tokenizer_size(const yoke_tokenizer *t)
{
	const int e = yk_require(t, "tokenizer");
	return e ? e : (int)t->vocab.count;
}

const char *yoke_tokenizer_piece(const yoke_tokenizer *t, int32_t id, size_t *bytes)
{
	if (yk_require(t, "tokenizer") || yk_require(bytes, "bytes") || id < 0 ||
	    (size_t)id >= t->vocab.count || !t->vocab.token[id].s)
		return NULL;
	*bytes = t->vocab.token[id].n;
	return t->vocab.token[id].s;
}

int yoke_tokenizer_id(const yoke_tokenizer *t, const char *piece, size_t bytes)
{
	int e = yk_require(t, "tokenizer");
	if (!e)
		e = yk_require(piece, "piece");
	return e ? e : yk_vocab_id(&t->vocab, piece, bytes);
}

int yoke_tokenizer_is_special(const yoke_tokenizer *t, int32_t id)
{
	const int e = yk_require(t, "tokenizer");
	return e ? e : id >= 0 && (size_t)id < t->vocab.count && t->vocab.token[id].special;
}

int yoke_tokenizer_bos(const yoke_tokenizer *t)
{
	const int e = yk_require(t, "tokenizer");
	return e ? e : t->bos;
}

int yoke_tokenizer_pad(const yoke_tokenizer *t)
{
	const int e = yk_require(t, "tokenizer");
	return e ? e : t->pad;
}

int yoke_tokenizer_unknown(const yoke_tokenizer *t)
{
	const int e = yk_require(t, "tokenizer");
	return e ? e : t->model.unknown;
}

int yoke_tokenizer_eos(const yoke_tokenizer *t, const int32_t **ids)
{
	int e = yk_require(t, "tokenizer");
	if (!e)
		e = yk_require(ids, "ids");
	if (e)
		return e;
	*ids = t->eos;
	return t->eos_count;
}

const char *yoke_tokenizer_template(const yoke_tokenizer *t)
{
	return yk_require(t, "tokenizer") ? NULL : t->chat;
}
