// SPDX-License-Identifier: Apache-2.0
// Normalizers, pre-tokenizers and decoders of tokenizer.json, each described by one table entry:
// its name, the step it becomes and the function that reads its members.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode.h"

enum { MAX_STEPS = 256 };

struct component {
	const char *name;
	enum yk_token_step_kind kind;
	int (*read)(yoke_tokenizer *, struct yk_token_step *, const json_t *); // NULL: no members
	int form;
};

struct yk_token_step *yk_tokenizer_step(struct yk_steps *to, enum yk_token_step_kind kind)
{
	if (yk_grow(&to->step, &to->cap, to->count + 1, sizeof *to->step) < 0) {
		yk_fail(YOKE_ENOMEM, "no memory for the steps of a tokenizer");
		return NULL;
	}
	to->step[to->count] = (struct yk_token_step){ .kind = kind };
	return &to->step[to->count++];
}

int yk_tokenizer_split_by(yoke_tokenizer *t, enum yk_token_step_kind kind, const char *pattern)
{
	struct yk_token_step *x = yk_tokenizer_step(&t->splitter, kind);

	if (!x)
		return YOKE_ENOMEM;
	x->behavior = YK_ISOLATED;
	x->regexed = pattern;
	if (pattern)
		x->regex = yk_regex_new(pattern, strlen(pattern), t->name);
	return pattern && !x->regex ? yk_error_last() : 0;
}

// ---- members ----

static int flag(const yoke_tokenizer *t, const json_t *j, const char *key, bool absent, bool *to)
{
	const json_t *m = json_object_get(j, key);

	if (m && !json_is_null(m) && !json_is_boolean(m))
		return yk_fail(YOKE_EFORMAT, "%s: '%s' is neither true nor false", t->name, key);
	*to = m && !json_is_null(m) ? json_is_true(m) : absent;
	return 0;
}

static int string(yoke_tokenizer *t, const json_t *j, const char *key, const char *absent,
		  const char **to, size_t *n)
{
	const json_t *m = json_object_get(j, key);

	if (m && !json_is_string(m))
		return yk_fail(YOKE_EFORMAT, "%s: '%s' is not a string", t->name, key);
	if (!m && !absent)
		return yk_fail(YOKE_EFORMAT, "%s: '%s' is missing", t->name, key);
	*n = m ? json_string_length(m) : strlen(absent);
	char *s = yk_arena_alloc(&t->arena, *n + 1);
	if (!s)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for '%s'", t->name, key);
	memcpy(s, m ? json_string_value(m) : absent, *n);
	*to = s;
	return 0;
}

static int count(const yoke_tokenizer *t, const json_t *j, const char *key, size_t min,
		 size_t *to)
{
	int64_t n;

	if (yk_json_int(j, t->name, key, (int64_t)min, INT32_MAX, &n) < 0)
		return YOKE_EFORMAT;
	*to = (size_t)n;
	return 0;
}

// One character as a string; also kept as text in `a`.
static int character(yoke_tokenizer *t, struct yk_token_step *x, const json_t *j, const char *key,
		     const char *absent)
{
	const int e = string(t, j, key, absent, &x->a, &x->na);

	if (e < 0)
		return e;
	if (!x->na || yk_char_size(*x->a) != x->na)
		return yk_fail(YOKE_EFORMAT, "%s: '%s' is not one character", t->name, key);
	const char *at = x->a;
	x->c = yk_char_next(&at);
	return 0;
}

// {"String": ".."} or {"Regex": ".."}
static int pattern(yoke_tokenizer *t, struct yk_token_step *x, const json_t *j)
{
	const json_t *p = json_object_get(j, "pattern");
	const json_t *r = json_object_get(p, "Regex");

	if (!json_is_string(r)) {
		if (json_is_string(json_object_get(p, "String")))
			return string(t, p, "String", NULL, &x->a, &x->na);
		return yk_fail(YOKE_EFORMAT, "%s: 'pattern' has neither a String nor a Regex",
			       t->name);
	}
	x->regex = yk_regex_new(json_string_value(r), json_string_length(r), t->name);
	return x->regex ? 0 : yk_error_last();
}

static int behavior(const yoke_tokenizer *t, struct yk_token_step *x, const json_t *j,
		    const char *absent)
{
	static const char *const names[] = { "Removed", "Isolated", "MergedWithPrevious",
					     "MergedWithNext", "Contiguous" };
	const char *s = absent;

	if ((json_object_get(j, "behavior") || !absent) &&
	    yk_json_str(j, t->name, "behavior", &s) < 0)
		return YOKE_EFORMAT;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(s, names[i])) {
			x->behavior = (enum yk_behavior)i;
			return 0;
		}
	return yk_fail(YOKE_EFORMAT, "%s: unknown behavior '%.40s'", t->name, s);
}

// ---- normalizers ----

static int read_bert(yoke_tokenizer *t, struct yk_token_step *x, const json_t *j)
{
	int e = yk_unicode_require(t->name);

	if (e == 0)
		e = flag(t, j, "clean_text", true, &x->clean);
	if (e == 0)
		e = flag(t, j, "handle_chinese_chars", true, &x->chinese);
	if (e == 0)
		e = flag(t, j, "lowercase", true, &x->lower);
	return e < 0 ? e : flag(t, j, "strip_accents", x->lower, &x->strip);
}

static int read_strip(yoke_tokenizer *t, struct yk_token_step *x, const json_t *j)
{
	const int e = flag(t, j, "strip_left", true, &x->left);

	return e < 0 ? e : flag(t, j, "strip_right", true, &x->right);
}

static int read_unicode(yoke_tokenizer *t, struct yk_token_step *x, const json_t *j)
{
	(void)x;
	(void)j;
	return yk_unicode_require(t->name);
}

static int read_charsmap(yoke_tokenizer *t, struct yk_token_step *x, const json_t *j)
{
	const char *s;

	if (yk_unicode_require(t->name) < 0)
		return YOKE_EUNSUPPORTED;
	if (yk_json_str(j, t->name, "precompiled_charsmap", &s) < 0)
		return YOKE_EFORMAT;
	x->map = yk_charsmap_base64(s, strlen(s), t->name);
	return x->map ? 0 : yk_error_last();
}

static int read_replace(yoke_tokenizer *t, struct yk_token_step *x, const json_t *j)
{
	const int e = pattern(t, x, j);

	return e < 0 ? e : string(t, j, "content", NULL, &x->b, &x->nb);
}

static int read_prepend(yoke_tokenizer *t, struct yk_token_step *x, const json_t *j)
{
	return string(t, j, "prepend", NULL, &x->a, &x->na);
}

static const struct component normalizers[] = {
	{ "BertNormalizer", YK_BERT, read_bert, 0 },
	{ "Strip", YK_STRIP, read_strip, 0 },
	{ "StripAccents", YK_STRIP_ACCENTS, read_unicode, 0 },
	{ "NFC", YK_FORM, read_unicode, YK_NFC },
	{ "NFD", YK_FORM, read_unicode, YK_NFD },
	{ "NFKC", YK_FORM, read_unicode, YK_NFKC },
	{ "NFKD", YK_FORM, read_unicode, YK_NFKD },
	{ "Lowercase", YK_LOWERCASE, read_unicode, 0 },
	{ "Nmt", YK_NMT, NULL, 0 },
	{ "Precompiled", YK_CHARSMAP, read_charsmap, 0 },
	{ "Replace", YK_REPLACE, read_replace, 0 },
	{ "Prepend", YK_PREPEND, read_prepend, 0 },
	{ "ByteLevel", YK_BYTES, NULL, 0 },
	{ NULL, 0, NULL, 0 },
};

// ---- pre-tokenizers ----

static int read_byte_level(yoke_tokenizer *t, struct yk_token_step *x, const json_t *j)
{
	bool split = true;
	int e = flag(t, j, "add_prefix_space", true, &x->space);

	if (e == 0)
		e = flag(t, j, "use_regex", true, &split);
	x->behavior = YK_ISOLATED;
	x->regexed = split;
	if (e == 0 && split) {
		x->regex = yk_regex_new(YK_GPT2_PATTERN, strlen(YK_GPT2_PATTERN), t->name);
		e = x->regex ? 0 : yk_error_last();
	}
	return e;
}

static int read_words(yoke_tokenizer *t, struct yk_token_step *x, const json_t *j)
{
	static const char words[] = "[\\w\\x{200c}\\x{200d}]+|[^\\w\\s\\x{200c}\\x{200d}]+";

	(void)j;
	x->invert = true;
	x->behavior = YK_REMOVED;
	x->regex = yk_regex_new(words, sizeof words - 1, t->name);
	return x->regex ? 0 : yk_error_last();
}

static int read_removed(yoke_tokenizer *t, struct yk_token_step *x, const json_t *j)
{
	(void)t;
	(void)j;
	x->behavior = YK_REMOVED;
	return 0;
}

static int read_delimiter(yoke_tokenizer *t, struct yk_token_step *x, const json_t *j)
{
	x->behavior = YK_REMOVED;
	return character(t, x, j, "delimiter", NULL);
}

static int read_bert_split(yoke_tokenizer *t, struct yk_token_step *x, const json_t *j)
{
	(void)j;
	x->behavior = YK_ISOLATED;
	return yk_unicode_require(t->name);
}

static int read_metaspace(yoke_tokenizer *t, struct yk_token_step *x, const json_t *j)
{
	static const char *const names[] = { "never", "first", "always" };
	bool add, is = false;
	const char *s = "always";
	int e = character(t, x, j, "replacement", "\xe2\x96\x81");

	if (e == 0)
		e = flag(t, j, "add_prefix_space", true, &add);
	if (e == 0)
		e = flag(t, j, "split", true, &x->cut);
	if (e < 0)
		return e;
	if (json_object_get(j, "prepend_scheme") &&
	    yk_json_str(j, t->name, "prepend_scheme", &s) < 0)
		return YOKE_EFORMAT;
	for (int i = 0; i < 3; i++)
		if (!strcmp(s, names[i])) {
			x->prepend = (enum yk_prepend)i;
			is = true;
		}
	if (!is)
		return yk_fail(YOKE_EFORMAT, "%s: unknown prepend_scheme '%.40s'", t->name, s);
	if (!add)
		x->prepend = YK_NEVER;
	return 0;
}

static int read_split(yoke_tokenizer *t, struct yk_token_step *x, const json_t *j)
{
	int e = pattern(t, x, j);

	if (e == 0)
		e = behavior(t, x, j, NULL);
	return e < 0 ? e : flag(t, j, "invert", false, &x->invert);
}

static int read_punctuation(yoke_tokenizer *t, struct yk_token_step *x, const json_t *j)
{
	const int e = yk_unicode_require(t->name);

	return e < 0 ? e : behavior(t, x, j, "Isolated");
}

static int read_digits(yoke_tokenizer *t, struct yk_token_step *x, const json_t *j)
{
	int e = yk_unicode_require(t->name);

	if (e == 0)
		e = flag(t, j, "individual_digits", false, &x->individual);
	x->behavior = x->individual ? YK_ISOLATED : YK_CONTIGUOUS;
	return e;
}

static int read_length(yoke_tokenizer *t, struct yk_token_step *x, const json_t *j)
{
	x->behavior = YK_ISOLATED;
	return count(t, j, "length", 1, &x->length);
}

static const struct component splitters[] = {
	{ "ByteLevel", YK_SPLIT_BYTES, read_byte_level, 0 },
	{ "Whitespace", YK_SPLIT, read_words, 0 },
	{ "WhitespaceSplit", YK_SPLIT_SPACE, read_removed, 0 },
	{ "CharDelimiterSplit", YK_SPLIT_CHAR, read_delimiter, 0 },
	{ "BertPreTokenizer", YK_SPLIT_BERT, read_bert_split, 0 },
	{ "Metaspace", YK_SPLIT_METASPACE, read_metaspace, 0 },
	{ "Split", YK_SPLIT, read_split, 0 },
	{ "Punctuation", YK_SPLIT_PUNCTUATION, read_punctuation, 0 },
	{ "Digits", YK_SPLIT_DIGITS, read_digits, 0 },
	{ "FixedLength", YK_SPLIT_LENGTH, read_length, 0 },
	{ NULL, 0, NULL, 0 },
};

// ---- decoders ----

static int read_wordpiece(yoke_tokenizer *t, struct yk_token_step *x, const json_t *j)
{
	const int e = string(t, j, "prefix", "##", &x->a, &x->na);

	return e < 0 ? e : flag(t, j, "cleanup", true, &x->clean);
}

static int read_suffix(yoke_tokenizer *t, struct yk_token_step *x, const json_t *j)
{
	return string(t, j, "suffix", "</w>", &x->a, &x->na);
}

static int read_ctc(yoke_tokenizer *t, struct yk_token_step *x, const json_t *j)
{
	int e = string(t, j, "pad_token", "<pad>", &x->a, &x->na);

	if (e == 0)
		e = string(t, j, "word_delimiter_token", "|", &x->b, &x->nb);
	return e < 0 ? e : flag(t, j, "cleanup", true, &x->clean);
}

static int read_strip_decoder(yoke_tokenizer *t, struct yk_token_step *x, const json_t *j)
{
	int e = character(t, x, j, "content", NULL);

	if (e == 0)
		e = count(t, j, "start", 0, &x->start);
	return e < 0 ? e : count(t, j, "stop", 0, &x->stop);
}

static const struct component decoders[] = {
	{ "ByteLevel", YK_DECODE_BYTES, NULL, 0 },
	{ "WordPiece", YK_DECODE_WORDPIECE, read_wordpiece, 0 },
	{ "Metaspace", YK_DECODE_METASPACE, read_metaspace, 0 },
	{ "BPEDecoder", YK_DECODE_BPE, read_suffix, 0 },
	{ "CTC", YK_DECODE_CTC, read_ctc, 0 },
	{ "Replace", YK_DECODE_REPLACE, read_replace, 0 },
	{ "Fuse", YK_DECODE_FUSE, NULL, 0 },
	{ "Strip", YK_DECODE_STRIP, read_strip_decoder, 0 },
	{ "ByteFallback", YK_DECODE_FALLBACK, NULL, 0 },
	{ NULL, 0, NULL, 0 },
};

// ---- lists ----

// `members`: where a Sequence of this kind keeps its list.  Nesting is limited by the JSON reader.
static int read_steps(yoke_tokenizer *t, struct yk_steps *to, const json_t *j,
		      const struct component *table, const char *kind, const char *members)
{
	const char *type;

	if (!j || json_is_null(j))
		return 0;
	if (!json_is_object(j))
		return yk_fail(YOKE_EFORMAT, "%s: the %s is not an object", t->name, kind);
	if (yk_json_str(j, t->name, "type", &type) < 0)
		return YOKE_EFORMAT;
	if (!strcmp(type, "Sequence")) {
		const json_t *list = json_object_get(j, members), *m;
		size_t i;
		if (!json_is_array(list))
			return yk_fail(YOKE_EFORMAT, "%s: the %s is a Sequence without a list '%s'",
				       t->name, kind, members);
		json_array_foreach (list, i, m) {
			const int e = !json_is_object(m) ?
					      yk_fail(YOKE_EFORMAT,
						      "%s: entry %zu of the %s is not an object",
						      t->name, i, kind) :
					      read_steps(t, to, m, table, kind, members);
			if (e < 0)
				return e;
		}
		return 0;
	}
	if (to->count >= MAX_STEPS)
		return yk_fail(YOKE_EFORMAT, "%s: the %s has more than %d steps", t->name, kind,
			       MAX_STEPS);
	for (; table->name; table++)
		if (!strcmp(table->name, type)) {
			struct yk_token_step *x = yk_tokenizer_step(to, table->kind);
			if (!x)
				return YOKE_ENOMEM;
			x->form = table->form;
			return table->read ? table->read(t, x, j) : 0;
		}
	return yk_fail(YOKE_EFORMAT, "%s: unknown %s '%.40s'", t->name, kind, type);
}

int yk_tokenizer_normalizer(yoke_tokenizer *t, const json_t *j)
{
	return read_steps(t, &t->normalizer, j, normalizers, "normalizer", "normalizers");
}

int yk_tokenizer_splitter(yoke_tokenizer *t, const json_t *j)
{
	return read_steps(t, &t->splitter, j, splitters, "pre-tokenizer", "pretokenizers");
}

int yk_tokenizer_decoder(yoke_tokenizer *t, const json_t *j)
{
	t->joined = !j || json_is_null(j);
	return read_steps(t, &t->decoder, j, decoders, "decoder", "decoders");
}
