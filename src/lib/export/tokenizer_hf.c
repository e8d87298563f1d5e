// SPDX-License-Identifier: Apache-2.0
// Tokenizer files of an exported folder: copies of those of a folder, or tokenizer.json and
// tokenizer.model from a GGUF file's tables.
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/wire.h"
#include "export/tokenizer.h"
#include "formats/gguf.h"
#include "models/run_files.h"
#include "text/tokenizer.h"

enum { MAX_FILE = 256 << 20 };

static int save(const char *folder, const char *name, json_t *o)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	const int e = o ? yk_json_save(path, o) :
			  yk_fail(YOKE_ENOMEM, "%s: no memory, or text that is not UTF-8", path);
	json_decref(o);
	return e;
}

// ---- copies ----

static int copy_files(const char *from, const char *to)
{
	static const char *const names[] = {
		"tokenizer.json",
		"tokenizer.model",
		"tokenizer_config.json",
		"special_tokens_map.json",
		"added_tokens.json",
		"vocab.json",
		"merges.txt",
		"chat_template.jinja",
		"chat_template.json",
		"generation_config.json",
	};
	int e = 0;
	for (size_t i = 0; i < sizeof names / sizeof *names && e == 0; i++) {
		char source[4096], target[4096], *data;
		size_t bytes;
		snprintf(source, sizeof source, "%s/%s", from, names[i]);
		snprintf(target, sizeof target, "%s/%s", to, names[i]);
		if (access(source, F_OK) < 0)
			continue;
		e = yk_file_read(source, MAX_FILE, &data, &bytes);
		if (e == 0) {
			e = yk_file_write(target, data, bytes);
			free(data);
		}
	}
	return e;
}

// ---- tokenizer.json of byte-level BPE ----

static json_t *text_of(const struct yk_gguf_string *s)
{
	return json_stringn(s->s, s->n);
}

static json_t *added_tokens(const struct yk_gguf_tokenizer *g)
{
	json_t *list = json_array();
	for (size_t i = 0; i < g->count; i++) {
		const int type = g->token_type ? g->token_type[i] : YK_PIECE_NORMAL;
		if (type == YK_PIECE_CONTROL || type == YK_PIECE_USER)
			json_array_append_new(list,
					      json_pack("{s:I, s:o, s:b, s:b, s:b, s:b, s:b}", "id",
							(json_int_t)i, "content",
							text_of(&g->tokens[i]), "single_word", 0,
							"lstrip", 0, "rstrip", 0, "normalized", 0,
							"special", type == YK_PIECE_CONTROL));
	}
	return list;
}

static json_t *pre_tokenizer(const char *pre, bool *whole)
{
	json_t *list = json_array();
	const char *pattern;
	for (int i = 0; (pattern = yk_tokenizer_pre_pattern(pre, i, whole)); i++)
		json_array_append_new(list, json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split",
						      "pattern", "Regex", pattern, "behavior",
						      "Isolated", "invert", 0));
	json_array_append_new(list,
			      json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel",
					"add_prefix_space", 0, "trim_offsets", 1, "use_regex", 0));
	return json_pack("{s:s, s:o}", "type", "Sequence", "pretokenizers", list);
}

// The tokens that are added before and after a text.
static json_t *post_processor(const struct yk_gguf_tokenizer *g, const yoke_tokenizer *t)
{
	json_t *single = json_array(), *pair = json_array(), *special = json_object();
	const struct yk_ids *ids[] = { &t->before, &t->after };
	if (!t->before.n && !t->after.n) {
		json_decref(single);
		json_decref(pair);
		json_decref(special);
		return json_null();
	}
	for (int k = 0; k < 2; k++) {
		for (size_t i = 0; i < ids[k]->n; i++) {
			const int32_t id = ids[k]->id[i];
			json_t *entry = json_pack("{s:{s:o, s:i}}", "SpecialToken", "id",
						  text_of(&g->tokens[id]), "type_id", 0);
			json_array_append(single, entry);
			json_array_append_new(pair, entry);
			json_t *name = text_of(&g->tokens[id]);
			json_object_set_new(special, json_string_value(name),
					    json_pack("{s:O, s:[i], s:[O]}", "id", name, "ids", id,
						      "tokens", name));
			json_decref(name);
		}
		if (k == 0) {
			json_array_append_new(single, json_pack("{s:{s:s, s:i}}", "Sequence", "id",
								"A", "type_id", 0));
			json_array_append_new(pair, json_pack("{s:{s:s, s:i}}", "Sequence", "id",
							      "A", "type_id", 0));
			json_array_append_new(pair, json_pack("{s:{s:s, s:i}}", "Sequence", "id",
							      "B", "type_id", 1));
		}
	}
	return json_pack("{s:s, s:o, s:o, s:o}", "type", "TemplateProcessing", "single", single,
			 "pair", pair, "special_tokens", special);
}

static json_t *tokenizer_json(json_t *added, json_t *pre, json_t *post, json_t *decoder,
			      json_t *model)
{
	json_t *o = json_pack("{s:s, s:n, s:n, s:o, s:n, s:o, s:o, s:o, s:o}", "version", "1.0",
			      "truncation", "padding", "added_tokens", added, "normalizer",
			      "pre_tokenizer", pre, "post_processor", post, "decoder", decoder,
			      "model", model);
	return o;
}

static json_t *byte_level(const struct yk_gguf_tokenizer *g, const yoke_tokenizer *t)
{
	json_t *vocab = json_object(), *merges = json_array();
	bool whole = false;
	for (size_t i = 0; i < g->count; i++)
		vocab = yk_json_with(vocab, g->tokens[i].s, g->tokens[i].n,
				     json_integer((json_int_t)i));
	for (size_t i = 0; i < g->merge_count; i++)
		json_array_append_new(merges, text_of(&g->merges[i]));
	json_t *pre = pre_tokenizer(g->pre, &whole);
	json_t *model = json_pack("{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o, s:o}", "type",
				  "BPE", "dropout", "unk_token", "continuing_subword_prefix",
				  "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0,
				  "ignore_merges", whole, "vocab", vocab, "merges", merges);
	json_t *decoder = json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space",
				    0, "trim_offsets", 1, "use_regex", 1);
	return tokenizer_json(added_tokens(g), pre, t ? post_processor(g, t) : json_null(), decoder,
			      model);
}

// ---- tokenizer.model ----

// SentencePiece's ModelProto: pieces (1), trainer_spec (2), normalizer_spec (3).
static int write_spm(const struct yk_gguf_tokenizer *g, const yoke_tokenizer *t, const char *folder)
{
	struct yk_wire w = { 0 }, inner = { 0 };
	char path[4096];
	for (size_t i = 0; i < g->count; i++) {
		inner.n = 0;
		yk_wire_bytes(&inner, 1, g->tokens[i].s, g->tokens[i].n);
		yk_wire_f32(&inner, 2, g->scores ? g->scores[i] : 0);
		const int type = g->token_type ? g->token_type[i] : YK_PIECE_NORMAL;
		const bool unknown = (int32_t)i == t->model.unknown;
		if (type != YK_PIECE_NORMAL || unknown)
			yk_wire_int(&inner, 3, (uint64_t)(unknown ? YK_PIECE_UNKNOWN : type));
		yk_wire_bytes(&w, 1, inner.at, inner.n);
	}
	inner.n = 0;
	yk_wire_int(&inner, 3, t->model.kind == YK_UNIGRAM ? 1 : 2);
	yk_wire_int(&inner, 4, g->count);
	yk_wire_int(&inner, 35, t->model.fallback);
	yk_wire_int(&inner, 40, (uint64_t)(int64_t)t->model.unknown);
	yk_wire_int(&inner, 41, (uint64_t)(int64_t)t->bos);
	yk_wire_int(&inner, 42, (uint64_t)(t->eos_count ? (int64_t)t->eos[0] : -1));
	yk_wire_int(&inner, 43, (uint64_t)(int64_t)t->pad);
	yk_wire_bytes(&w, 2, inner.at, inner.n);
	inner.n = 0;
	yk_wire_bytes(&inner, 1, "identity", 8);
	if (g->charsmap_bytes)
		yk_wire_bytes(&inner, 2, g->charsmap, g->charsmap_bytes);
	yk_wire_int(&inner, 3, t->spm.dummy);
	yk_wire_int(&inner, 4, t->spm.squeeze);
	yk_wire_int(&inner, 5, t->spm.escape);
	yk_wire_bytes(&w, 3, inner.at, inner.n);
	snprintf(path, sizeof path, "%s/tokenizer.model", folder);
	const int e = w.failed || inner.failed ? yk_fail(YOKE_ENOMEM, "%s: no memory", path) :
						 yk_file_write(path, w.at, w.n);
	yk_wire_fini(&inner);
	yk_wire_fini(&w);
	return e;
}

// ---- the other files ----

static void set_token(json_t *o, const char *key, const yoke_tokenizer *t, int32_t id)
{
	size_t n;
	const char *s = id >= 0 ? yoke_tokenizer_piece(t, id, &n) : NULL;
	json_object_set_new(o, key, s ? json_stringn(s, n) : json_null());
}

static int write_configs(const yoke_tokenizer *t, bool pieces, const char *folder)
{
	const int32_t *eos = NULL;
	const int ends = yoke_tokenizer_eos(t, &eos);
	json_t *o = json_pack("{s:s, s:b, s:b, s:b}", "tokenizer_class",
			      pieces ? "LlamaTokenizer" : "PreTrainedTokenizerFast",
			      "add_bos_token", t->before.n > 0, "add_eos_token", t->after.n > 0,
			      "clean_up_tokenization_spaces", 0);
	set_token(o, "bos_token", t, t->bos);
	set_token(o, "eos_token", t, ends > 0 ? eos[0] : -1);
	set_token(o, "pad_token", t, t->pad);
	set_token(o, "unk_token", t, t->model.unknown);
	if (pieces)
		json_object_set_new(o, "legacy", json_false());
	if (t->chat)
		json_object_set_new(o, "chat_template", json_string(t->chat));
	int e = save(folder, "tokenizer_config.json", o);
	o = json_object();
	if (t->bos >= 0)
		json_object_set_new(o, "bos_token_id", json_integer(t->bos));
	if (t->pad >= 0)
		json_object_set_new(o, "pad_token_id", json_integer(t->pad));
	json_t *list = json_array();
	for (int i = 0; i < ends; i++)
		json_array_append_new(list, json_integer(eos[i]));
	if (ends)
		json_object_set(o, "eos_token_id", ends == 1 ? json_array_get(list, 0) : list);
	json_decref(list);
	if (e == 0)
		return save(folder, "generation_config.json", o);
	json_decref(o);
	return e;
}

struct writing {
	const struct yk_export *x;
	const char *folder;
};

static int write_published(void *arg, const struct yk_gguf_tokenizer *g)
{
	const struct writing *to = arg;
	const yoke_tokenizer *t = to->x->tokenizer;
	const bool pieces = t->spm.on;
	int e;
	if (!pieces && strcmp(g->model, "gpt2"))
		return yk_fail(YOKE_EINVAL,
			       "%s: a tokenizer of kind '%.40s' cannot be written to a folder",
			       to->x->path, g->model);
	e = pieces ? write_spm(g, t, to->folder) :
		     save(to->folder, "tokenizer.json", byte_level(g, t));
	return e == 0 ? write_configs(t, pieces, to->folder) : e;
}

// ---- yoke's own tokenizers ----

// Words between blanks, joined by blanks.
static int write_words(const struct yk_export *x, const char *folder)
{
	struct yk_tokenizer *t = yk_tokenizer_load(x->words, x->path);
	if (!t)
		return yoke_error_code();
	json_t *model = yk_run_words(t);
	yk_tokenizer_free(t);
	return save(folder, "tokenizer.json",
		    tokenizer_json(json_array(), json_pack("{s:s}", "type", "WhitespaceSplit"),
				   json_null(), json_null(), model));
}

static int write_own(const struct yk_export *x, const char *folder)
{
	struct yk_export_tables b = { 0 };
	const char *name = json_string_value(json_object_get(x->words, "name"));
	int e = yk_export_byte_tables(x, &b);
	if (e > 0)
		e = save(folder, "tokenizer.json", byte_level(&b.is, NULL));
	else if (e == 0 && name && !strcmp(name, "word"))
		e = write_words(x, folder);
	else
		return e; // token ids of another program
	yk_export_tables_fini(&b);
	return e == 0 ? save(folder, "tokenizer_config.json",
			     json_pack("{s:s, s:b}", "tokenizer_class", "PreTrainedTokenizerFast",
				       "clean_up_tokenization_spaces", 0)) :
			e;
}

// Writes the published tokenizer that a run keeps in its folder.
static int write_kept(struct writing *to)
{
	char path[4096];
	struct stat st;
	struct yk_gguf g;
	yk_export_tokenizer_files(to->x, path);
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return copy_files(path, to->folder);
	int e = yk_gguf_open(&g, path);
	if (e < 0)
		return e;
	e = yk_tokenizer_gguf_read(&g, write_published, to);
	yk_gguf_close(&g);
	return e;
}

int yk_export_tokenizer_hf(const struct yk_export *x, const char *folder)
{
	struct writing to = { .x = x, .folder = folder };
	if (x->config)
		return copy_files(x->base ? x->base : x->path, folder);
	if (!x->weights->is_gguf)
		return x->tokenizer ? write_kept(&to) : write_own(x, folder);
	return x->tokenizer ? yk_tokenizer_gguf_read(&x->weights->gguf, write_published, &to) : 0;
}
