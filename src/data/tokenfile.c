// SPDX-License-Identifier: Apache-2.0
// Token files as they say what they are.
#include "config.h"

#include "data/tokenfile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"

bool yk_token_file_is(const struct yk_safetensors *f)
{
	const char *format = yk_safetensors_metadata(f, "format");
	return format && !strcmp(format, YK_TOKENS_FORMAT);
}

json_t *yk_token_file_tokenizer(const struct yk_safetensors *f)
{
	const char *text = yk_safetensors_metadata(f, "tokenizer"), *want = yk_safetensors_metadata(f, "vocabulary");
	char hash[17];
	if (!text) {
		yk_fail(YOKE_EFORMAT, "%s: does not say its tokenizer", f->path);
		return NULL;
	}
	snprintf(hash, sizeof hash, "%016" PRIx64, yk_hash(text, strlen(text), 0));
	if (want && strcmp(want, hash)) {
		yk_fail(YOKE_EFORMAT, "%s: its tokenizer was altered: the hash is %s, not %.16s", f->path, hash, want);
		return NULL;
	}
	return yk_json_parse(text, strlen(text), f->path);
}

int yk_token_file_take(struct yk_token_file *to, const struct yk_safetensors *f)
{
	const struct yk_safetensors_entry *x = yk_safetensors_find(f, "tokens"), *d = yk_safetensors_find(f, "documents");
	int64_t vocab;
	if (!yk_token_file_is(f))
		return yk_fail(YOKE_EFORMAT, "%s: is no token file: its metadata has no format \"" YK_TOKENS_FORMAT "\"", f->path);
	const char *type = !x ? "" : x->dtype == yoke_u8 ? "u8" : x->dtype == YK_SAFETENSORS_U16 ? "u16" :
			   x->dtype == YK_SAFETENSORS_U32 ? "u32" : "";
	if (!*type || x->rank != 1)
		return yk_fail(YOKE_EFORMAT, "%s: a token file has tokens, U8, U16 or U32 along one axis", f->path);
	if (d && (d->dtype != yoke_i64 || d->rank != 1))
		return yk_fail(YOKE_EFORMAT, "%s: documents of a token file are I64 along one axis", f->path);
	json_t *o = yk_token_file_tokenizer(f);
	int e = o ? yk_json_int(o, f->path, "size", 1, INT32_MAX, &vocab) : yoke_error_code();
	json_decref(o);
	if (e < 0)
		return e;
	*to = (struct yk_token_file){ .element = yk_element_named(type, strlen(type)), .offset = x->offset,
				      .count = (uint64_t)x->dims[0], .vocab = vocab };
	return 0;
}
