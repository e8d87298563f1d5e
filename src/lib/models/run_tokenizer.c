// SPDX-License-Identifier: Apache-2.0
// The tokenizers of runs as published ones: the contents of a tokenizer.json for bytes and for
// words.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "formats/checkpoint.h"
#include "models/run_files.h"
#include "models/tokenizer_files.h"
#include "tokenizer/pieces.h"
#include "tokenizer/steps.h"
#include "tokenizer/tokenizer.h"

// One id per byte.
static json_t *byte_vocabulary(void)
{
	json_t *vocab = json_object();
	for (int i = 0; i < 256; i++) {
		struct yk_string c = { 0 };
		yk_string_char(&c, yk_byte_char((unsigned char)i));
		vocab = c.failed ? vocab : yk_json_with(vocab, c.s, c.n, json_integer(i));
		yk_string_fini(&c);
	}
	return vocab;
}

json_t *yk_run_words(const struct yk_tokenizer *t)
{
	json_t *vocab = json_object();
	size_t n;
	for (int32_t i = 0; i < yk_tokenizer_size(t); i++) {
		const char *s = yk_tokenizer_decode(t, i, &n);
		vocab = yk_json_with(vocab, s, n, json_integer(i));
	}
	const char *unknown = yk_tokenizer_decode(t, yk_tokenizer_unknown(t), &n);
	return json_pack("{s:s, s:o, s:o}", "type", "WordLevel", "vocab", vocab, "unk_token",
			 json_stringn(unknown, n));
}

static json_t *own(const struct yk_tokenizer *t)
{
	if (yk_tokenizer_unknown(t) >= 0)
		return json_pack("{s:s, s:{s:s}, s:o}", "version", "1.0", "pre_tokenizer", "type",
				 "WhitespaceSplit", "model", yk_run_words(t));
	return json_pack("{s:s, s:{s:s, s:b, s:b, s:b}, s:{s:s}, s:{s:s, s:o, s:[]}}", "version",
			 "1.0", "pre_tokenizer", "type", "ByteLevel", "add_prefix_space", 0,
			 "trim_offsets", 1, "use_regex", 0, "decoder", "type", "ByteLevel", "model",
			 "type", "BPE", "vocab", byte_vocabulary(), "merges");
}

static yoke_tokenizer *open_own(const struct yk_tokenizer *t, const char *path)
{
	json_t *o = own(t);
	char *text = o ? yk_json_text(o, JSON_COMPACT) : NULL;
	yoke_tokenizer *to = text ? yoke_tokenizer_parse(text, strlen(text), path) : NULL;
	if (!text)
		yk_fail(YOKE_ENOMEM, "%s: no memory for a tokenizer", path);
	free(text);
	json_decref(o);
	return to;
}

// Without special tokens around texts if the training text had none.
static yoke_tokenizer *take_published(struct yk_tokenizer *t)
{
	bool bare;
	yoke_tokenizer *to = yk_tokenizer_release(t, &bare);
	if (bare)
		to->before.n = to->after.n = 0;
	return to;
}

yoke_tokenizer *yk_run_tokenizer(const char *path, int64_t vocab)
{
	struct yk_checkpoint ck;
	yoke_tokenizer *to = NULL;
	if (yk_checkpoint_open(path, &ck) < 0)
		return NULL;
	struct yk_tokenizer *t = yk_tokenizer_of_checkpoint(&ck, path);
	yk_checkpoint_fini(&ck);
	if (!t)
		return NULL;
	if (yk_tokenizer_size(t) != vocab)
		yk_fail(YOKE_EFORMAT, "%s: the model has %lld tokens, but its tokenizer has %lld",
			path, (long long)vocab, (long long)yk_tokenizer_size(t));
	else if (yk_tokenizer_has_files(t))
		to = take_published(t);
	else if (yk_tokenizer_is_text(t))
		to = open_own(t, path);
	else
		yk_fail(YOKE_ENOENT, "%s: was trained on token ids, and has no tokenizer", path);
	yk_tokenizer_free(t);
	return to;
}
