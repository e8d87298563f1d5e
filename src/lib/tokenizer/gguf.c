// SPDX-License-Identifier: Apache-2.0
// Tokenizers from GGUF metadata: SentencePiece (llama, t5), byte-level BPE (gpt2), WordPiece
// (bert).
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "tokenizer/gguf.h"
#include "tokenizer/unicode.h"

// ---- byte-level BPE: the patterns that the names of tokenizer.ggml.pre stand for ----

#define DIGIT "\\p{N}"
#define GPT4(contractions, letters, digits, others) \
	contractions "|[^\\r\\n\\p{L}\\p{N}]?" letters "+|" digits "| ?[^\\s" others \
		     "]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(after, digits) \
	"[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" after "|[^\\r\\n\\p{L}\\p{N}]?" UPPER \
	"+" LOWER "*" after "|" digits \
	"| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LLAMA3 GPT4(CONTRACTIONS, "\\p{L}", "\\p{N}{1,3}", "\\p{L}\\p{N}")
#define QWEN2 GPT4(CONTRACTIONS, "\\p{L}", "\\p{N}", "\\p{L}\\p{N}")
#define QWEN35 GPT4(CONTRACTIONS, "[\\p{L}\\p{M}]", "\\p{N}", "\\p{L}\\p{M}\\p{N}")
#define HAN "[\\x{4e00}-\\x{9fa5}\\x{0800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"
#define FALCON "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)"
// Letters with case: Latin, Greek, Cyrillic, Armenian, Georgian, Cherokee, Deseret and others.
#define LETTERS \
	"\\s?[A-Za-z" \
	"\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}" \
	"\\x{1c4}-\\x{293}\\x{295}-\\x{2af}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}" \
	"\\x{37f}\\x{386}\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}" \
	"\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}" \
	"\\x{13a0}-\\x{13f5}\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}\\x{1cbd}-\\x{1cbf}" \
	"\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}" \
	"\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}\\x{1f50}-\\x{1f57}" \
	"\\x{1f59}\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}" \
	"\\x{1fbe}\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}" \
	"\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}" \
	"\\x{2102}\\x{2107}\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{2124}\\x{2126}" \
	"\\x{2128}\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}" \
	"\\x{2145}-\\x{2149}\\x{214e}\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}" \
	"\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}" \
	"\\x{a722}-\\x{a76f}\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}" \
	"\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}" \
	"\\x{10400}-\\x{1044f}\\x{104b0}-\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}" \
	"\\x{10cc0}-\\x{10cf2}\\x{118a0}-\\x{118df}\\x{1e900}-\\x{1e943}" \
	"]+"
#define PUNCTUATION \
	"\\s?[!-/" \
	":-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}]+"

enum { MAX_PATTERNS = 6 };

static const struct pre {
	const char *name;
	bool whole; // a word that is a token is not divided
	const char *pattern[MAX_PATTERNS];
} pres[] = {
	{ "gpt-2", false, { YK_GPT2_PATTERN } },
	{ "mpt", false, { YK_GPT2_PATTERN } },
	{ "smollm", false, { DIGIT, YK_GPT2_PATTERN } },
	{ "starcoder", false, { DIGIT, YK_GPT2_PATTERN } },
	{ "refact", false, { DIGIT, YK_GPT2_PATTERN } },
	{ "command-r", false, { DIGIT, YK_GPT2_PATTERN } },
	{ "llama-bpe", true, { LLAMA3 } },
	{ "llama3", true, { LLAMA3 } },
	{ "llama-v3", true, { LLAMA3 } },
	{ "qwen2", false, { QWEN2 } },
	{ "deepseek-r1-qwen", false, { QWEN2 } },
	{ "qwen35", false, { QWEN35 } },
	{ "falcon", false, { "[\\p{P}\\$\\+<=>\\^~\\|`]+", FALCON, "[0-9][0-9][0-9]" } },
	{ "deepseek-llm", false, { "[\\r\\n]", LETTERS, PUNCTUATION, "\\s+$", HAN, "\\p{N}+" } },
	{ "deepseek-coder", false, { "[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", HAN, DIGIT } },
	{ "tekken", true, { CASED("", "\\p{N}") } },
	{ "gpt-4o", false, { CASED(CONTRACTIONS "?", "\\p{N}{1,3}") } },
};

const char *yk_tokenizer_pre_names(void)
{
	return "gpt-2 mpt smollm starcoder refact command-r llama-bpe llama3 llama-v3 qwen2 deepseek-r1-qwen qwen35 falcon "
	       "deepseek-llm deepseek-coder "
	       "tekken gpt-4o";
}

const char *yk_tokenizer_pre_pattern(const char *name, int i, bool *whole)
{
	for (size_t k = 0; k < sizeof pres / sizeof *pres; k++) {
		if (strcmp(pres[k].name, name))
			continue;
		*whole = pres[k].whole;
		return i < MAX_PATTERNS ? pres[k].pattern[i] : NULL;
	}
	return NULL;
}

static int patterns(yoke_tokenizer *t, const char *name)
{
	if (!name)
		return yk_fail(YOKE_EFORMAT,
			       "%s: tokenizer.ggml.pre is missing, so it is unknown how words are "
			       "split; known are %s",
			       t->name, yk_tokenizer_pre_names());
	for (size_t i = 0; i < sizeof pres / sizeof *pres; i++) {
		if (strcmp(pres[i].name, name))
			continue;
		t->model.whole = pres[i].whole;
		for (int j = 0; j < MAX_PATTERNS && pres[i].pattern[j]; j++) {
			const int e = yk_tokenizer_split_by(t, YK_SPLIT, pres[i].pattern[j]);
			if (e < 0)
				return e;
		}
		return yk_tokenizer_split_by(t, YK_SPLIT_BYTES, NULL);
	}
	return yk_fail(YOKE_EFORMAT, "%s: unknown tokenizer.ggml.pre '%.40s'; known are %s",
		       t->name, name, yk_tokenizer_pre_names());
}

static int merges(yoke_tokenizer *t, const struct yk_gguf_tokenizer *g)
{
	if (g->merge_count > YK_VOCAB_MAX)
		return yk_fail(YOKE_EFORMAT, "%s: %zu merges, at most %d", t->name, g->merge_count,
			       YK_VOCAB_MAX);
	for (size_t i = 0; i < g->merge_count; i++) {
		const struct yk_gguf_string m = g->merges[i];
		// a token may begin with a blank only in files of other alphabets; the first byte
		// is not it
		const char *blank = m.n > 2 ? memchr(m.s + 1, ' ', m.n - 1) : NULL;
		if (!blank)
			return yk_fail(YOKE_EFORMAT,
				       "%s: merge %zu is not two tokens with a blank between them",
				       t->name, i);
		const size_t na = (size_t)(blank - m.s), nb = m.n - na - 1;
		struct yk_string both = { 0 };
		yk_string_add(&both, m.s, na);
		yk_string_add(&both, blank + 1, nb);
		const int32_t a = yk_vocab_id(&t->vocab, m.s, na),
			      b = yk_vocab_id(&t->vocab, blank + 1, nb);
		const int32_t to = both.failed ? -1 : yk_vocab_id(&t->vocab, both.s, both.n);
		const bool failed = both.failed;
		yk_string_fini(&both);
		if (failed || (a >= 0 && b >= 0 && to >= 0 &&
			       yk_bpe_merge(&t->model, a, b, (int32_t)i, to) < 0))
			return yk_fail(YOKE_ENOMEM, "%s: no memory for merges", t->name);
		if (a < 0 || b < 0 || to < 0)
			return yk_fail(YOKE_EFORMAT,
				       "%s: merge %zu has a token that is not in the vocabulary",
				       t->name, i);
	}
	return 0;
}

// ---- vocabularies ----

static int type_of(const struct yk_gguf_tokenizer *g, size_t i)
{
	return g->token_type ? g->token_type[i] : YK_PIECE_NORMAL;
}

static int vocabulary(yoke_tokenizer *t, const struct yk_gguf_tokenizer *g)
{
	for (size_t i = 0; i < g->count; i++) {
		const int type = type_of(g, i);
		const int e = yk_vocab_add(&t->vocab, t->name, (int64_t)i, g->tokens[i].s,
					   g->tokens[i].n);
		if (e < 0)
			return e;
		if (type != YK_PIECE_CONTROL && type != YK_PIECE_USER)
			continue;
		const struct yk_added_token x = { .id = (int32_t)i,
						  .special = type == YK_PIECE_CONTROL };
		if (g->tokens[i].n && yk_tokenizer_added(t, x, false) < 0)
			return YOKE_ENOMEM;
	}
	return 0;
}

static int byte_level(yoke_tokenizer *t, const struct yk_gguf_tokenizer *g)
{
	int e = patterns(t, g->pre);

	t->model.kind = YK_BPE;
	if (e == 0)
		e = vocabulary(t, g);
	if (e == 0)
		e = merges(t, g);
	return e == 0 && !yk_tokenizer_step(&t->decoder, YK_DECODE_BYTES) ? YOKE_ENOMEM : e;
}

// The file marks the beginning of words with U+2581, the model the other pieces with "##".
static int word_pieces(yoke_tokenizer *t, const struct yk_gguf_tokenizer *g)
{
	struct yk_token_model *m = &t->model;
	struct yk_token_step *s;

	m->kind = YK_WORDPIECE;
	m->prefix = "##";
	m->prefix_bytes = 2;
	m->word_max = 100;
	for (size_t i = 0; i < g->count; i++) {
		const struct yk_gguf_string x = g->tokens[i];
		const bool begins = x.n >= 3 && !memcmp(x.s, "\xe2\x96\x81", 3);
		const bool special = type_of(g, i) == YK_PIECE_CONTROL ||
				     type_of(g, i) == YK_PIECE_UNKNOWN ||
				     (x.n > 2 && x.s[0] == '[' && x.s[x.n - 1] == ']');
		struct yk_string p = { 0 };
		if (!begins && !special)
			yk_string_add(&p, "##", 2);
		yk_string_add(&p, begins ? x.s + 3 : x.s, begins ? x.n - 3 : x.n);
		int e = p.failed ? yk_fail(YOKE_ENOMEM, "%s: no memory for tokens", t->name) :
				   yk_vocab_add(&t->vocab, t->name, (int64_t)i, p.s, p.n);
		yk_string_fini(&p);
		const struct yk_added_token added = { .id = (int32_t)i, .special = true };
		if (e == 0 && special && x.n)
			e = yk_tokenizer_added(t, added, false);
		if (e < 0)
			return e;
	}
	if (yk_unicode_require(t->name) < 0)
		return YOKE_EUNSUPPORTED;
	if (!(s = yk_tokenizer_step(&t->normalizer, YK_BERT)))
		return YOKE_ENOMEM;
	s->clean = s->chinese = s->strip = s->lower = true;
	if (!(s = yk_tokenizer_step(&t->splitter, YK_SPLIT_BERT)))
		return YOKE_ENOMEM;
	s->behavior = YK_ISOLATED;
	if (!(s = yk_tokenizer_step(&t->decoder, YK_DECODE_WORDPIECE)))
		return YOKE_ENOMEM;
	s->a = "##";
	s->na = 2;
	s->clean = true;
	return 0;
}

static int pieces(yoke_tokenizer *t, const struct yk_gguf_tokenizer *g, enum yk_model_kind kind)
{
	struct yk_spm_piece *p = calloc(g->count + 1, sizeof *p);
	size_t unknown =
		g->unknown >= 0 && (uint64_t)g->unknown < g->count ? (size_t)g->unknown : SIZE_MAX;
	bool bytes = false;

	if (!p)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for %zu tokens", t->name, g->count);
	for (size_t i = 0; i < g->count; i++) {
		p[i] = (struct yk_spm_piece){ g->tokens[i].s, g->tokens[i].n,
					      g->scores ? g->scores[i] : 0, type_of(g, i) };
		bytes |= p[i].type == YK_PIECE_BYTE;
		if (p[i].type == YK_PIECE_UNKNOWN) {
			if (unknown == SIZE_MAX)
				unknown = i;
			// converters also mark pieces as unknown that pad the vocabulary
			p[i].type = YK_PIECE_UNUSED;
		}
	}
	// and the unknown piece as a control token
	if (g->count)
		p[unknown == SIZE_MAX ? 0 : unknown].type = YK_PIECE_UNKNOWN;
	t->model.fallback = bytes;
	t->spm = (struct yk_spm){ .on = true,
				  .dummy = g->add_space_prefix != 0,
				  .squeeze = g->remove_extra_spaces > 0,
				  .escape = true };
	int e = 0;
	if (g->charsmap_bytes) {
		t->spm.map = yk_charsmap_new(g->charsmap, g->charsmap_bytes, t->name);
		e = t->spm.map ? 0 : yk_error_last();
	}
	if (e == 0)
		e = yk_spm_build(t, kind, p, g->count);
	free(p);
	return e;
}

// ---- special ids ----

// -1: none, or none of the tokens, which llama.cpp ignores as well.
static int32_t id_of(const struct yk_gguf_tokenizer *g, int64_t id)
{
	return id >= 0 && (uint64_t)id < g->count ? (int32_t)id : -1;
}

// Adds the tokens that end an answer.  Files name one or two of them by key, but instruct models
// emit others, so they are found by text as in llama.cpp (llama-vocab.cpp).  A normal token never
// ends a text; "</s>" is also a tag of HTML, which only a control token is not.
static void ends_by_text(yoke_tokenizer *t, const struct yk_gguf_tokenizer *g)
{
	static const struct {
		const char *text;
		bool control; // only as a control token
	} ends[] = {
		{ "<|eot_id|>", false },      { "<|eom_id|>", false },
		{ "<|im_end|>", false },      { "<|end|>", false },
		{ "<end_of_turn>", false },   { "<|endoftext|>", false },
		{ "<|end_of_text|>", false }, { "<end_of_utterance>", false },
		{ "<EOT>", false },	      { "_<EOT>", false },
		{ "<eos>", true },	      { "</s>", true },
	};
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		const int32_t id = yk_vocab_id(&t->vocab, ends[i].text, strlen(ends[i].text));
		const int type = id < 0 ? YK_PIECE_NORMAL : type_of(g, (size_t)id);
		if (type == YK_PIECE_CONTROL || (type == YK_PIECE_USER && !ends[i].control))
			yk_tokenizer_end(t, id);
	}
}

static int specials(yoke_tokenizer *t, const struct yk_gguf_tokenizer *g)
{
	const bool bert = t->model.kind == YK_WORDPIECE, spm = t->spm.on && t->model.kind == YK_BPE;
	const int32_t first = id_of(g, bert && g->cls >= 0 ? g->cls : g->bos);
	const int32_t last = id_of(g, bert && g->separator >= 0 ? g->separator : g->eos);
	const int64_t ids[] = { g->bos, g->eos, g->eot };
	int e = 0;

	for (int i = 0; i < 3; i++)
		if (ids[i] >= 0 && id_of(g, ids[i]) < 0)
			yk_warn("load",
				"%s: %s is %lld, but there are %zu tokens; it is ignored, so check "
				"which tokens begin and end a text",
				t->name,
				(const char *[]){ "bos_token_id", "eos_token_id",
						  "eot_token_id" }[i],
				(long long)ids[i], g->count);
	t->bos = id_of(g, g->bos);
	t->pad = id_of(g, g->pad);
	if (g->unknown >= 0 && !t->spm.on)
		t->model.unknown = id_of(g, g->unknown);
	yk_tokenizer_end(t, id_of(g, g->eos));
	yk_tokenizer_end(t, id_of(g, g->eot));
	ends_by_text(t, g);
	if (first >= 0 && (g->add_bos > 0 || (g->add_bos < 0 && (spm || bert || t->model.whole))))
		e = yk_tokenizer_affix(t, false, first);
	if (e == 0 && last >= 0 &&
	    (g->add_eos > 0 || (g->add_eos < 0 && (bert || t->model.kind == YK_UNIGRAM))))
		e = yk_tokenizer_affix(t, true, last);
	if (e == 0 && g->chat_template && !(t->chat = strdup(g->chat_template)))
		e = yk_fail(YOKE_ENOMEM, "%s: no memory for the chat template", t->name);
	return e;
}

yoke_tokenizer *yk_tokenizer_gguf(const struct yk_gguf_tokenizer *g, const char *name)
{
	yoke_tokenizer *t = yk_tokenizer_alloc(name);
	int e;

	if (!t)
		return NULL;
	if (!g->model)
		e = yk_fail(YOKE_EFORMAT, "%s: tokenizer.ggml.model is missing", name);
	else if (!g->count || g->count > YK_VOCAB_MAX)
		e = yk_fail(YOKE_EFORMAT, "%s: tokenizer.ggml.tokens has %zu entries, not 1 .. %d",
			    name, g->count, YK_VOCAB_MAX);
	else if (!strcmp(g->model, "llama"))
		e = pieces(t, g, YK_BPE);
	else if (!strcmp(g->model, "t5"))
		e = pieces(t, g, YK_UNIGRAM);
	else if (!strcmp(g->model, "gpt2"))
		e = byte_level(t, g);
	else if (!strcmp(g->model, "bert"))
		e = word_pieces(t, g);
	else
		e = yk_fail(YOKE_EFORMAT,
			    "%s: unknown tokenizer.ggml.model '%.40s'; llama, gpt2, bert and t5 "
			    "are known",
			    name, g->model);
	if (e == 0)
		e = specials(t, g);
	if (e == 0)
		e = yk_tokenizer_finish(t);
	if (e < 0) {
		yoke_tokenizer_free(t);
		return NULL;
	}
	return t;
}
