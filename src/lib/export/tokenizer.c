// SPDX-License-Identifier: Apache-2.0
// The tokenizer of an exported model as keys of a GGUF file.
//
// GGUF names the rule that splits text into words (tokenizer.ggml.pre) instead of stating it.  The
// name is found by comparison: a tokenizer with each known name encodes a sample text, and must
// give the ids of the model's own tokenizer.
#include "config.h"

#include "export/tokenizer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"

// The sample is in Unicode's normal form C, which GGUF files do not name.
static const char sample[] =
	"Hello world!  It's 3.14, 1234567 or 007; isn't it?\n\n\n I'LL we've THEY'RE\t\tx+=y<<2; // caf\xc3\xa9 na\xc3\xafve\r\n"
	"    for (int i = 0; i < 10; i++) { a[i] = \"\xe2\x82\xac\"; }\n   \n\xe4\xbd\xa0\xe5\xa5\xbd\xef\xbc\x8c\xe4\xb8\x96\xe7\x95\x8c 42\xe5\xb9\xb4 "
	"\xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82 \xd9\x85\xd8\xb1\xd8\xad\xd8\xa8\xd8\xa7 \xe3\x81\x93\xe3\x82\x93\xe3\x81\xab\xe3\x81\xa1\xe3\x81\xaf "
	"\xf0\x9f\x9a\x80\xf0\x9f\x98\x80 camelCaseWord HTTPServer __init__ <tag/> $5.00 100% x\xcc\x81 3\xc2\xbd \xe2\x85\xa3 --  ''' ... end ";

// ---- tables of a tokenizer ----

void yk_export_tables_fini(struct yk_export_tables *b)
{
	free(b->token);
	free(b->merge);
	free(b->score);
	free(b->type);
	yk_arena_fini(&b->arena);
	*b = (struct yk_export_tables){ 0 };
}

static int no_memory(const char *path)
{
	return yk_fail(YOKE_ENOMEM, "%s: no memory for a tokenizer", path);
}

static int make_tables(struct yk_export_tables *b, size_t tokens, size_t merges, bool scores,
		       const char *path)
{
	b->token = calloc(tokens + 1, sizeof *b->token);
	b->type = calloc(tokens + 1, sizeof *b->type);
	b->score = scores ? calloc(tokens + 1, sizeof *b->score) : NULL;
	b->merge = calloc(merges + 1, sizeof *b->merge);
	if (!b->token || !b->type || !b->merge || (scores && !b->score))
		return no_memory(path);
	b->is = (struct yk_gguf_tokenizer){
		.tokens = b->token,
		.count = tokens,
		.scores = b->score,
		.token_type = b->type,
		.merges = b->merge,
		.merge_count = merges,
		.bos = -1,
		.eos = -1,
		.eot = -1,
		.pad = -1,
		.unknown = -1,
		.separator = -1,
		.cls = -1,
		.add_bos = -1,
		.add_eos = -1,
		.add_space_prefix = -1,
		.remove_extra_spaces = -1,
	};
	return 0;
}

static int by_rank(const void *x, const void *y)
{
	const struct yk_merge *a = x, *b = y;
	return (a->rank > b->rank) - (a->rank < b->rank);
}

// The merges in the order of the file; the caller frees them.
static struct yk_merge *ranked(const struct yk_token_model *m, size_t *n)
{
	struct yk_merge *list = malloc((m->merges + 1) * sizeof *list);
	*n = 0;
	for (size_t i = 0; list && i < m->merge_size; i++)
		if (m->merge[i].to >= 0)
			list[(*n)++] = m->merge[i];
	if (list)
		qsort(list, *n, sizeof *list, by_rank);
	return list;
}

static int add_merges(const yoke_tokenizer *t, const struct yk_merge *list, size_t n,
		      struct yk_export_tables *b)
{
	for (size_t i = 0; i < n; i++) {
		const struct yk_token *left = &t->vocab.token[list[i].pair >> 32],
				      *right = &t->vocab.token[list[i].pair & UINT32_MAX];
		char *text = yk_arena_alloc(&b->arena, (size_t)left->n + right->n + 1);
		if (!text)
			return no_memory(t->name);
		memcpy(text, left->s, left->n);
		text[left->n] = ' ';
		memcpy(text + left->n + 1, right->s, right->n);
		b->merge[i] = (struct yk_gguf_string){ text, (size_t)left->n + right->n + 1 };
	}
	return 0;
}

// llama.cpp merges the pair with the highest score first.  Tokens that no merge makes come last.
static void scores_of_ranks(const struct yk_merge *list, size_t n, size_t tokens, float *score)
{
	for (size_t i = 0; i < tokens; i++)
		score[i] = -(float)(n + 1);
	for (size_t i = n; i-- > 0;)
		score[list[i].to] = -(float)(i + 1);
}

static bool is_byte(const yoke_tokenizer *t, int32_t id)
{
	for (int i = 0; i < 256 && t->model.fallback; i++)
		if (t->model.byte[i] == id)
			return true;
	return false;
}

static int add_tokens(const yoke_tokenizer *t, bool pieces, struct yk_export_tables *b)
{
	for (size_t i = 0; i < b->is.count; i++) {
		const struct yk_token *x = i < t->vocab.count ? &t->vocab.token[i] : NULL;
		if (x && x->s) {
			b->token[i] = (struct yk_gguf_string){ x->s, x->n };
			b->type[i] = x->special ? YK_PIECE_CONTROL : YK_PIECE_NORMAL;
			if (pieces && is_byte(t, (int32_t)i))
				b->type[i] = YK_PIECE_BYTE;
			if (t->model.scored && !isnan(t->model.score[i]))
				b->score[i] = (float)t->model.score[i];
			continue;
		}
		char text[32];
		snprintf(text, sizeof text, "[PAD%zu]", i);
		char *copy = yk_arena_strdup(&b->arena, text);
		if (!copy)
			return no_memory(t->name);
		b->token[i] = (struct yk_gguf_string){ copy, strlen(copy) };
		b->type[i] = YK_PIECE_UNUSED;
	}
	for (size_t i = 0; i < t->added.count; i++) {
		const struct yk_added_token *a = &t->added.token[i];
		if ((size_t)a->id < b->is.count && b->type[a->id] != YK_PIECE_BYTE)
			b->type[a->id] = a->special ? YK_PIECE_CONTROL : YK_PIECE_USER;
	}
	if (pieces && t->model.unknown >= 0)
		b->type[t->model.unknown] = YK_PIECE_UNKNOWN;
	return 0;
}

static void set_ids(const yoke_tokenizer *t, struct yk_gguf_tokenizer *to)
{
	const int32_t *eos;
	const int ends = yoke_tokenizer_eos(t, &eos);
	const int64_t count = (int64_t)to->count;
	int64_t ends_at[2] = { -1, -1 };
	// the tokens around a text, which the other files of a folder need not name
	to->add_bos = t->before.n == 1;
	to->add_eos = t->after.n == 1;
	int n = 0;
	if (to->add_eos)
		ends_at[n++] = t->after.id[0];
	for (int i = 0; i < ends && n < 2; i++)
		if (n == 0 || eos[i] != ends_at[0])
			ends_at[n++] = eos[i];
	to->bos = to->add_bos ? t->before.id[0] : t->bos;
	to->eos = ends_at[0] < count ? ends_at[0] : -1;
	to->eot = ends_at[1] < count ? ends_at[1] : -1;
	to->pad = t->pad < count ? t->pad : -1;
	to->unknown = t->model.unknown;
	to->chat_template = t->chat;
}

static bool has_step(const struct yk_steps *s, enum yk_token_step_kind kind)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->step[i].kind == kind)
			return true;
	return false;
}

// Does the normalizer, or a pre-tokenizer, put a space before the text?
static bool prepends(const yoke_tokenizer *t)
{
	for (size_t i = 0; i < t->splitter.count; i++)
		if (t->splitter.step[i].kind == YK_SPLIT_METASPACE)
			return t->splitter.step[i].prepend != YK_NEVER;
	return t->spm.on ? t->spm.dummy : has_step(&t->normalizer, YK_PREPEND);
}

// The tokens that the model has.  Added tokens may be more, which training of others added and then
// did not use.
static int check_count(const yoke_tokenizer *t, const struct yk_merge *list, size_t merges,
		       int64_t vocab)
{
	size_t beyond = 0, added = 0;
	bool used = t->bos >= vocab || t->model.unknown >= vocab;
	for (size_t i = (size_t)vocab; i < t->vocab.count; i++)
		beyond += t->vocab.token[i].s != NULL;
	for (size_t i = 0; i < t->added.count; i++)
		added += t->added.token[i].id >= vocab;
	for (size_t i = 0; i < merges; i++)
		used |= (int64_t)(list[i].pair >> 32) >= vocab ||
			(int64_t)(list[i].pair & UINT32_MAX) >= vocab || list[i].to >= vocab;
	for (size_t i = 0; i < t->before.n; i++)
		used |= t->before.id[i] >= vocab;
	for (size_t i = 0; i < t->after.n; i++)
		used |= t->after.id[i] >= vocab;
	if (beyond > added || used)
		return yk_fail(YOKE_EINVAL, "%s: has %zu tokens, but the model %" PRId64, t->name,
			       t->vocab.count, vocab);
	if (beyond)
		yk_warn("export",
			"%s: %zu added tokens have ids that the model does not have; they are omitted",
			t->name, beyond);
	return 0;
}

static int tables_of(const yoke_tokenizer *t, int64_t vocab, struct yk_export_tables *b)
{
	const bool bytes = t->model.kind == YK_BPE && has_step(&t->decoder, YK_DECODE_BYTES);
	const bool pieces = !bytes && ((t->model.kind == YK_BPE && t->model.fallback) || t->spm.on);
	size_t n;
	if (!bytes && !pieces)
		return yk_fail(
			YOKE_EINVAL,
			"%s: GGUF has no tokenizer of this kind; byte-level BPE and SentencePiece can be written",
			t->name);
	struct yk_merge *list = ranked(&t->model, &n);
	int e = list ? check_count(t, list, n, vocab) : no_memory(t->name);
	if (e == 0)
		e = make_tables(b, (size_t)vocab, bytes ? n : 0, pieces, t->name);
	if (e == 0)
		e = add_tokens(t, pieces, b);
	if (e == 0 && bytes)
		e = add_merges(t, list, n, b);
	if (e == 0 && pieces && !t->model.scored)
		scores_of_ranks(list, n, b->is.count, b->score);
	free(list);
	if (e < 0)
		return e;
	b->is.model = bytes ? "gpt2" : t->model.kind == YK_UNIGRAM ? "t5" : "llama";
	b->is.pre = bytes ? NULL : "default";
	set_ids(t, &b->is);
	if (bytes && has_step(&t->normalizer, YK_FORM))
		yk_warn("export",
			"%s: GGUF files name no normal form of Unicode; text must be in it already",
			t->name);
	if (pieces) {
		b->is.add_space_prefix = prepends(t);
		b->is.remove_extra_spaces = t->spm.on && t->spm.squeeze ? 1 : -1;
	}
	return 0;
}

// ---- the rule for words ----

static bool same_ids(const yoke_tokenizer *t, const struct yk_gguf_tokenizer *g)
{
	yoke_tokenizer *other = yk_tokenizer_gguf(g, "the written tokenizer");
	int32_t *a = NULL, *b = NULL;
	size_t n = 0, m = 0;
	const bool same = other &&
			  yoke_tokenizer_encode(t, sample, sizeof sample - 1, YOKE_TOKENIZER_ADD,
						&a, &n) == 0 &&
			  yoke_tokenizer_encode(other, sample, sizeof sample - 1,
						YOKE_TOKENIZER_ADD, &b, &m) == 0 &&
			  n == m && !memcmp(a, b, n * sizeof *a);
	yoke_error_clear(); // a name that does not fit is no error
	free(a);
	free(b);
	yoke_tokenizer_free(other);
	return same;
}

static int choose_pre(const yoke_tokenizer *t, const char *given, struct yk_export_tables *b)
{
	char *names = yk_arena_strdup(&b->arena, yk_tokenizer_pre_names()), *save = NULL;
	if (given || b->is.pre) {
		b->is.pre = given ? given : b->is.pre;
		return given || same_ids(t, &b->is) ?
			       0 :
			       yk_fail(YOKE_EINVAL,
				       "%s: GGUF cannot express this tokenizer: a sample text gets other "
				       "ids",
				       t->name);
	}
	if (!names)
		return no_memory(t->name);
	for (char *name = strtok_r(names, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
		b->is.pre = name;
		if (same_ids(t, &b->is))
			return 0;
	}
	return yk_fail(
		YOKE_EINVAL,
		"%s: no known rule splits text into words as this tokenizer does; give pre=NAME, one of %s",
		t->name, yk_tokenizer_pre_names());
}

// ---- yoke's own tokenizers ----

// One id per byte, as a byte-level vocabulary without merges.
static int tables_of_bytes(const char *path, int64_t vocab, struct yk_export_tables *b)
{
	int e = make_tables(b, (size_t)vocab, 0, false, path);
	for (int64_t i = 0; i < vocab && e == 0; i++) {
		struct yk_string c = { 0 };
		yk_string_char(&c, yk_byte_char((unsigned char)i));
		char *copy = c.failed ? NULL : yk_arena_alloc(&b->arena, c.n + 1);
		if (copy)
			memcpy(copy, c.s, c.n);
		b->token[i] = (struct yk_gguf_string){ copy, c.n };
		b->type[i] = YK_PIECE_NORMAL;
		e = copy ? 0 : no_memory(path);
		yk_string_fini(&c);
	}
	b->is.model = "gpt2";
	b->is.pre = "gpt-2";
	b->is.add_bos = b->is.add_eos = 0;
	return e;
}

int yk_export_byte_tables(const struct yk_export *x, struct yk_export_tables *b)
{
	const char *name = json_string_value(json_object_get(x->words, "name"));
	if (!name || strcmp(name, "byte") || x->shape.vocab != 256)
		return 0;
	const int e = tables_of_bytes(x->path, x->shape.vocab, b);
	return e < 0 ? e : 1;
}

// ---- keys ----

static void put_string(struct yk_gguf_writer *w, const char *key, const char *text)
{
	if (text)
		yk_gguf_put_string(w, key, text, strlen(text));
}

static void put_id(struct yk_gguf_writer *w, const char *key, int64_t id)
{
	if (id >= 0)
		yk_gguf_put_u32(w, key, (uint32_t)id);
}

static void put_flag(struct yk_gguf_writer *w, const char *key, int flag)
{
	if (flag >= 0)
		yk_gguf_put_bool(w, key, flag);
}

static void put_strings(struct yk_gguf_writer *w, const char *key, size_t n,
			const struct yk_gguf_string *list)
{
	yk_gguf_put_strings(w, key, n);
	for (size_t i = 0; i < n; i++)
		yk_gguf_put_element(w, list[i].s, list[i].n);
}

static void put_all(struct yk_gguf_writer *w, const yoke_tokenizer *t,
		    const struct yk_gguf_tokenizer *g)
{
	put_string(w, "tokenizer.ggml.model", g->model);
	put_string(w, "tokenizer.ggml.pre", g->pre);
	put_strings(w, "tokenizer.ggml.tokens", g->count, g->tokens);
	if (g->scores)
		yk_gguf_put_array(w, "tokenizer.ggml.scores", YK_GGUF_FLOAT, g->count, g->scores);
	yk_gguf_put_array(w, "tokenizer.ggml.token_type", YK_GGUF_S32, g->count, g->token_type);
	if (!strcmp(g->model, "gpt2"))
		put_strings(w, "tokenizer.ggml.merges", g->merge_count, g->merges);
	put_id(w, "tokenizer.ggml.bos_token_id", g->bos);
	put_id(w, "tokenizer.ggml.eos_token_id", g->eos);
	put_id(w, "tokenizer.ggml.eot_token_id", g->eot);
	put_id(w, "tokenizer.ggml.unknown_token_id", g->unknown);
	put_id(w, "tokenizer.ggml.padding_token_id", g->pad);
	put_flag(w, "tokenizer.ggml.add_bos_token", g->add_bos);
	put_flag(w, "tokenizer.ggml.add_eos_token", g->add_eos);
	put_flag(w, "tokenizer.ggml.add_space_prefix", g->add_space_prefix);
	put_flag(w, "tokenizer.ggml.remove_extra_whitespaces", g->remove_extra_spaces);
	put_string(w, "tokenizer.chat_template", t ? t->chat : NULL);
}

int yk_export_tokenizer_gguf(const struct yk_export *x, const char *pre, struct yk_gguf_writer *w)
{
	struct yk_export_tables b = { 0 };
	int e;
	if (x->tokenizer) {
		e = tables_of(x->tokenizer, x->shape.vocab, &b);
		if (e == 0)
			e = choose_pre(x->tokenizer, pre, &b);
		e = e < 0 ? e : 1;
	} else {
		e = yk_export_byte_tables(x, &b);
	}
	if (e > 0) {
		put_all(w, x->tokenizer, &b.is);
	} else if (e == 0) {
		yk_warn("export", "%s: GGUF has no tokenizer of this kind; the file has none",
			x->path);
		put_string(w, "tokenizer.ggml.model", "none");
	}
	yk_export_tables_fini(&b);
	return e < 0 ? e : 0;
}
