// SPDX-License-Identifier: Apache-2.0
// Reads tokenizer.json of the library `tokenizers`: the model, added tokens and the post-processor.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "tokenizer/tokenizer.h"

// ---- vocabularies ----

static int vocabulary(yoke_tokenizer *t, const json_t *model)
{
	const json_t *vocab = json_object_get(model, "vocab"), *id;
	const size_t n = json_object_size(vocab);
	const char *s;

	if (!json_is_object(vocab))
		return yk_fail(YOKE_EFORMAT, "%s: the model has no object 'vocab'", t->name);
	json_object_foreach ((json_t *)vocab, s, id) {
		if (!json_is_integer(id))
			return yk_fail(YOKE_EFORMAT,
				       "%s: the id of token '%.40s' is not an integer", t->name, s);
		const json_int_t i = json_integer_value(id);
		if (i >= 0 && (uint64_t)i > 4 * (uint64_t)n + 65536) // gaps cost memory
			return yk_fail(YOKE_EFORMAT,
				       "%s: token '%.40s' has id %lld, but there are %zu tokens",
				       t->name, s, (long long)i, n);
		const int e = yk_vocab_add(&t->vocab, t->name, i, s, strlen(s));
		if (e < 0)
			return e;
	}
	return 0;
}

// A member that is a string or null.
static int optional(yoke_tokenizer *t, const json_t *j, const char *key, const char **s)
{
	const json_t *m = json_object_get(j, key);

	if (m && !json_is_null(m) && !json_is_string(m))
		return yk_fail(YOKE_EFORMAT, "%s: '%s' is not a string", t->name, key);
	*s = NULL;
	if (json_is_string(m) && !(*s = yk_arena_strdup(&t->arena, json_string_value(m))))
		return yk_fail(YOKE_ENOMEM, "%s: no memory for '%s'", t->name, key);
	return 0;
}

static int flag(const yoke_tokenizer *t, const json_t *j, const char *key, bool *to)
{
	const json_t *m = json_object_get(j, key);

	if (m && !json_is_null(m) && !json_is_boolean(m))
		return yk_fail(YOKE_EFORMAT, "%s: '%s' is neither true nor false", t->name, key);
	*to = json_is_true(m);
	return 0;
}

static int unknown_token(yoke_tokenizer *t, const json_t *model)
{
	const char *s;

	if (optional(t, model, "unk_token", &s) < 0)
		return yk_error_last();
	if (s)
		t->model.unknown = yk_vocab_id(&t->vocab, s, strlen(s));
	return 0;
}

static int affix(yoke_tokenizer *t, const json_t *model, const char *key, const char **s, size_t *n)
{
	if (optional(t, model, key, s) < 0)
		return yk_error_last();
	*n = *s ? strlen(*s) : 0;
	return 0;
}

// ---- models ----

static int merge(yoke_tokenizer *t, size_t rank, const char *a, size_t na, const char *b, size_t nb)
{
	const int32_t left = yk_vocab_id(&t->vocab, a, na), right = yk_vocab_id(&t->vocab, b, nb);
	const size_t cut = t->model.prefix_bytes;

	if (left < 0 || right < 0)
		return yk_fail(YOKE_EFORMAT,
			       "%s: merge %zu has a token that is not in the vocabulary", t->name,
			       rank);
	if (nb < cut)
		return yk_fail(YOKE_EFORMAT, "%s: merge %zu lacks the prefix '%.40s'", t->name,
			       rank, t->model.prefix);
	char *s = malloc(na + nb + 1);
	if (!s)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for merges", t->name);
	memcpy(s, a, na);
	memcpy(s + na, b + cut, nb - cut);
	const int32_t to = yk_vocab_id(&t->vocab, s, na + nb - cut);
	free(s);
	if (to < 0)
		return yk_fail(YOKE_EFORMAT,
			       "%s: merge %zu makes a token that is not in the vocabulary", t->name,
			       rank);
	return yk_bpe_merge(&t->model, left, right, (int32_t)rank, to) < 0 ?
		       yk_fail(YOKE_ENOMEM, "%s: no memory for merges", t->name) :
		       0;
}

static int merges(yoke_tokenizer *t, const json_t *model)
{
	const json_t *list = json_object_get(model, "merges"), *m;
	size_t i, rank = 0;

	if (!json_is_array(list) || json_array_size(list) > YK_VOCAB_MAX)
		return yk_fail(YOKE_EFORMAT, "%s: the model has no list 'merges' of at most %d",
			       t->name, YK_VOCAB_MAX);
	json_array_foreach (list, i, m) {
		int e;
		if (json_is_string(m)) {
			const char *s = json_string_value(m), *blank = strchr(s, ' ');
			if (!strncmp(s, "#version", 8))
				continue;
			if (!blank || strchr(blank + 1, ' '))
				return yk_fail(
					YOKE_EFORMAT,
					"%s: merge %zu is not two tokens with a blank between them",
					t->name, i);
			e = merge(t, rank, s, (size_t)(blank - s), blank + 1, strlen(blank + 1));
		} else {
			const json_t *a = json_array_get(m, 0), *b = json_array_get(m, 1);
			if (json_array_size(m) != 2 || !json_is_string(a) || !json_is_string(b))
				return yk_fail(YOKE_EFORMAT,
					       "%s: merge %zu is not a pair of tokens", t->name, i);
			e = merge(t, rank, json_string_value(a), json_string_length(a),
				  json_string_value(b), json_string_length(b));
		}
		if (e < 0)
			return e;
		rank++;
	}
	return 0;
}

static int bpe(yoke_tokenizer *t, const json_t *j)
{
	struct yk_token_model *m = &t->model;
	int e = vocabulary(t, j);

	m->kind = YK_BPE;
	if (e == 0)
		e = unknown_token(t, j);
	if (e == 0)
		e = affix(t, j, "continuing_subword_prefix", &m->prefix, &m->prefix_bytes);
	if (e == 0)
		e = affix(t, j, "end_of_word_suffix", &m->suffix, &m->suffix_bytes);
	if (e == 0)
		e = flag(t, j, "fuse_unk", &m->fuse);
	if (e == 0)
		e = flag(t, j, "byte_fallback", &m->fallback);
	if (e == 0)
		e = flag(t, j, "ignore_merges", &m->whole);
	return e < 0 ? e : merges(t, j);
}

static int unigram(yoke_tokenizer *t, const json_t *j)
{
	const json_t *list = json_object_get(j, "vocab"), *x,
		     *unknown = json_object_get(j, "unk_id");
	struct yk_token_model *m = &t->model;
	double min = 0;
	size_t i;

	m->kind = YK_UNIGRAM;
	m->fuse = true;
	const size_t n = json_array_size(list);
	if (!json_is_array(list) || !n || n > YK_VOCAB_MAX)
		return yk_fail(YOKE_EFORMAT, "%s: the model has no list 'vocab'", t->name);
	m->score = calloc(n, sizeof *m->score);
	if (!m->score)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for %zu scores", t->name, n);
	json_array_foreach (list, i, x) {
		const json_t *s = json_array_get(x, 0), *score = json_array_get(x, 1);
		if (json_array_size(x) != 2 || !json_is_string(s) || !json_is_number(score))
			return yk_fail(YOKE_EFORMAT,
				       "%s: token %zu is not a pair of text and score", t->name, i);
		const int e = yk_vocab_add(&t->vocab, t->name, (int64_t)i, json_string_value(s),
					   json_string_length(s));
		if (e < 0)
			return e;
		m->score[i] = json_number_value(score);
		min = i && min < m->score[i] ? min : m->score[i];
		if (json_string_length(s) && yk_trie_add(&m->trie, json_string_value(s),
							 json_string_length(s), (int32_t)i) < 0)
			return yk_fail(YOKE_ENOMEM, "%s: no memory for %zu tokens", t->name, n);
	}
	m->unknown_score = min - 10;
	if (unknown && !json_is_null(unknown)) {
		int64_t id;
		if (yk_json_int(j, t->name, "unk_id", 0, (int64_t)n - 1, &id) < 0)
			return YOKE_EFORMAT;
		m->unknown = (int32_t)id;
	}
	return flag(t, j, "byte_fallback", &m->fallback);
}

static int wordpiece(yoke_tokenizer *t, const json_t *j)
{
	struct yk_token_model *m = &t->model;
	int64_t max = 100;
	int e = vocabulary(t, j);

	m->kind = YK_WORDPIECE;
	if (e == 0)
		e = unknown_token(t, j);
	if (e == 0)
		e = affix(t, j, "continuing_subword_prefix", &m->prefix, &m->prefix_bytes);
	if (e == 0 && !m->prefix) {
		m->prefix = "##";
		m->prefix_bytes = 2;
	}
	if (e == 0 && json_object_get(j, "max_input_chars_per_word"))
		e = yk_json_int(j, t->name, "max_input_chars_per_word", 0, INT32_MAX, &max);
	m->word_max = (size_t)max;
	return e;
}

static int wordlevel(yoke_tokenizer *t, const json_t *j)
{
	const int e = vocabulary(t, j);

	t->model.kind = YK_WORDLEVEL;
	return e < 0 ? e : unknown_token(t, j);
}

static int read_model(yoke_tokenizer *t, const json_t *j)
{
	static const struct {
		const char *name;
		int (*read)(yoke_tokenizer *, const json_t *);
	} models[] = {
		{ "BPE", bpe },
		{ "Unigram", unigram },
		{ "WordPiece", wordpiece },
		{ "WordLevel", wordlevel },
	};
	const char *type = NULL;

	if (!json_is_object(j))
		return yk_fail(YOKE_EFORMAT, "%s: 'model' is missing or not an object", t->name);
	if (!json_object_get(j, "type")) // files of old versions
		type = json_object_get(j, "merges") ? "BPE" : "WordPiece";
	else if (yk_json_str(j, t->name, "type", &type) < 0)
		return YOKE_EFORMAT;
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		if (!strcmp(type, models[i].name))
			return models[i].read(t, j);
	return yk_fail(YOKE_EFORMAT, "%s: unknown model '%.40s'", t->name, type);
}

// ---- added tokens ----

static int added(yoke_tokenizer *t, const json_t *list)
{
	const json_t *j;
	size_t i;

	if (list && !json_is_null(list) && !json_is_array(list))
		return yk_fail(YOKE_EFORMAT, "%s: 'added_tokens' is not a list", t->name);
	const int64_t max = 4 * (int64_t)t->vocab.count + 65536;
	json_array_foreach (list, i, j) {
		struct yk_added_token x = { 0 };
		bool normalized;
		int64_t id;
		const char *s;
		if (yk_json_int(j, t->name, "id", 0, max, &id) < 0 ||
		    yk_json_str(j, t->name, "content", &s) < 0 ||
		    flag(t, j, "special", &x.special) < 0 ||
		    flag(t, j, "single_word", &x.word) < 0 || flag(t, j, "lstrip", &x.left) < 0 ||
		    flag(t, j, "rstrip", &x.right) < 0 || flag(t, j, "normalized", &normalized) < 0)
			return yk_error_last();
		if (!json_object_get(j, "normalized"))
			normalized = !x.special;
		x.id = yk_vocab_id(&t->vocab, s, strlen(s));
		if (x.id < 0) {
			const int e = yk_vocab_add(&t->vocab, t->name, id, s, strlen(s));
			if (e < 0)
				return e;
			x.id = (int32_t)id;
		}
		const int e = yk_tokenizer_added(t, x, normalized);
		if (e < 0)
			return e;
	}
	return 0;
}

// ---- post-processors ----

// ["</s>", 2]
static int pair(yoke_tokenizer *t, const json_t *j, const char *key, bool after)
{
	const json_t *id = json_array_get(json_object_get(j, key), 1);

	if (!json_is_integer(id) || json_integer_value(id) < 0 ||
	    json_integer_value(id) >= YK_VOCAB_MAX)
		return yk_fail(YOKE_EFORMAT,
			       "%s: '%s' of the post-processor is not a pair of token and id",
			       t->name, key);
	return yk_tokenizer_affix(t, after, (int32_t)json_integer_value(id));
}

static int special_ids(yoke_tokenizer *t, const json_t *j, const json_t *item, bool after)
{
	const json_t *table = json_object_get(j, "special_tokens"), *id;
	const json_t *ids = json_object_get(
		json_object_get(table, json_string_value(json_object_get(item, "id"))), "ids");
	size_t i;

	if (!json_is_array(ids))
		return yk_fail(YOKE_EFORMAT, "%s: a special token of the template has no 'ids'",
			       t->name);
	json_array_foreach (ids, i, id) {
		if (!json_is_integer(id) || json_integer_value(id) < 0 ||
		    json_integer_value(id) >= YK_VOCAB_MAX)
			return yk_fail(YOKE_EFORMAT,
				       "%s: a special token of the template has no valid id",
				       t->name);
		const int e = yk_tokenizer_affix(t, after, (int32_t)json_integer_value(id));
		if (e < 0)
			return e;
	}
	return 0;
}

static int template(yoke_tokenizer *t, const json_t *j)
{
	const json_t *single = json_object_get(j, "single"), *x;
	bool after = false;
	size_t i;

	json_array_foreach (single, i, x) {
		const json_t *special = json_object_get(x, "SpecialToken");
		const int e = special ? special_ids(t, j, special, after) : 0;
		if (e < 0)
			return e;
		if (!special && (after || !json_object_get(x, "Sequence")))
			return yk_fail(YOKE_EFORMAT,
				       "%s: entry %zu of the template 'single' is not valid",
				       t->name, i);
		after |= !special;
	}
	if (!json_is_array(single) || !after)
		return yk_fail(YOKE_EFORMAT, "%s: the template 'single' contains no sequence",
			       t->name);
	return 0;
}

// Moves what a post-processor added outside of what the ones before it added.
static int wrap(yoke_tokenizer *t, size_t before)
{
	struct yk_ids *b = &t->before, to = { 0 };

	for (size_t i = 0; before && i < b->n; i++)
		yk_ids_add(&to, b->id[(i + before) % b->n]);
	if (to.failed) {
		free(to.id);
		return yk_fail(YOKE_ENOMEM, "%s: no memory for special tokens", t->name);
	}
	if (before) {
		free(b->id);
		*b = to;
	}
	return 0;
}

static int post(yoke_tokenizer *t, const json_t *j)
{
	const size_t before = t->before.n;
	const char *type = "";
	int e = 0;

	if (!j || json_is_null(j))
		return 0;
	if (!json_is_object(j))
		return yk_fail(YOKE_EFORMAT, "%s: the post-processor is not an object", t->name);
	if (yk_json_str(j, t->name, "type", &type) < 0)
		return YOKE_EFORMAT;
	if (!strcmp(type, "Sequence")) {
		const json_t *list = json_object_get(j, "processors"), *x;
		size_t i;
		if (!json_is_array(list))
			return yk_fail(YOKE_EFORMAT,
				       "%s: the post-processor has no list 'processors'", t->name);
		json_array_foreach (list, i, x)
			if ((e = post(t, x)) < 0)
				return e;
		return 0;
	}
	if (!strcmp(type, "ByteLevel")) // changes only offsets
		return 0;
	if (!strcmp(type, "TemplateProcessing")) {
		e = template(t, j);
	} else if (!strcmp(type, "BertProcessing") || !strcmp(type, "RobertaProcessing")) {
		e = pair(t, j, "cls", false);
		if (e == 0)
			e = pair(t, j, "sep", true);
	} else {
		e = yk_fail(YOKE_EFORMAT, "%s: unknown post-processor '%.40s'", t->name, type);
	}
	return e < 0 ? e : wrap(t, before);
}

// Ids that the post-processor adds must be tokens: a model has no row for others.
static int check_affixes(const yoke_tokenizer *t)
{
	const struct yk_ids *lists[] = { &t->before, &t->after };
	const int32_t size = yoke_tokenizer_size(t);

	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < lists[k]->n; i++)
			if (lists[k]->id[i] >= size)
				return yk_fail(YOKE_EFORMAT,
					       "%s: the post-processor adds id %d, but ids end at "
					       "%d; add the token or correct the id",
					       t->name, (int)lists[k]->id[i], (int)size - 1);
	return 0;
}

static int read(yoke_tokenizer *t, const json_t *j)
{
	int e = yk_tokenizer_normalizer(t, json_object_get(j, "normalizer"));

	if (e == 0)
		e = yk_tokenizer_splitter(t, json_object_get(j, "pre_tokenizer"));
	if (e == 0)
		e = read_model(t, json_object_get(j, "model"));
	if (e == 0)
		e = added(t, json_object_get(j, "added_tokens"));
	if (e == 0)
		e = post(t, json_object_get(j, "post_processor"));
	if (e == 0)
		e = check_affixes(t);
	return e < 0 ? e : yk_tokenizer_decoder(t, json_object_get(j, "decoder"));
}

// Of a value, whatever the order of members and the white space; NULL is hashed as null.
static uint64_t hash_json(const json_t *j, uint64_t seed)
{
	const int type = !j ? JSON_NULL : json_is_integer(j) ? JSON_REAL : json_typeof(j);
	const double number = json_number_value(j);
	uint64_t hash = yk_hash(&type, sizeof type, seed), sum = 0;
	const char *key;
	json_t *x;
	size_t i;

	switch (type) {
	case JSON_OBJECT:
		json_object_foreach ((json_t *)j, key, x)
			sum += hash_json(x, yk_hash(key, strlen(key), hash));
		return yk_hash(&sum, sizeof sum, hash);
	case JSON_ARRAY:
		json_array_foreach (j, i, x)
			hash = hash_json(x, hash);
		i = json_array_size(j);
		return yk_hash(&i, sizeof i, hash);
	case JSON_STRING: return yk_hash(json_string_value(j), json_string_length(j), hash);
	case JSON_REAL: return yk_hash(&number, sizeof number, hash);
	default: return hash;
	}
}

static uint64_t hash_components(const json_t *j)
{
	static const char *const keys[] = { "normalizer",   "pre_tokenizer",  "model",
					    "added_tokens", "post_processor", "decoder" };
	uint64_t hash = 0;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		hash = hash_json(json_object_get(j, keys[i]), hash);
	return hash;
}

int yk_tokenizer_read_json(yoke_tokenizer *t, const char *text, size_t bytes)
{
	json_t *j = yk_json_parse(text, bytes, t->name);

	if (!j)
		return yk_error_last();
	const int e = json_is_object(j) ? read(t, j) :
					  yk_fail(YOKE_EFORMAT, "%s: not a JSON object", t->name);
	t->source = hash_components(j);
	json_decref(j);
	return e;
}
