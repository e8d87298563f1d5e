// SPDX-License-Identifier: Apache-2.0
// Reads and verifies the metadata of token files.
#include "config.h"

#include "data/tokenfile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/kind.h"
#include "base/number.h"

// Headers of llm.c (dev/data/data_common.py): 256 little-endian i32; the first is a magic number,
// the third the number of tokens.
enum { LLMC_HEADER = 1024 };
static const struct {
	int32_t magic;
	const char *ids;
} llmc[] = { { 20240520, "u16" }, { 20240801, "u32" } };

static int check_llmc(const char *path, const char *ids, int64_t tokens, const struct yk_element *e,
		      uint64_t offset, uint64_t bytes)
{
	if (strcmp(e->name, ids) || offset != LLMC_HEADER)
		return yk_fail(
			YOKE_EFORMAT,
			"%s: is a token file of llm.c, whose %s ids begin at byte %d: give format=%s:%d, not %s:%llu",
			path, ids, LLMC_HEADER, ids, LLMC_HEADER, e->name,
			(unsigned long long)offset);
	const int64_t has =
		bytes < LLMC_HEADER ? 0 : (int64_t)((bytes - LLMC_HEADER) / (uint64_t)e->width);
	return has >= tokens ?
		       0 :
		       yk_fail(YOKE_EFORMAT,
			       "%s: is truncated: its header declares %lld tokens, but it has %lld",
			       path, (long long)tokens, (long long)has);
}

int yk_raw_check(int fd, const char *path, const struct yk_element *e, uint64_t offset,
		 uint64_t bytes)
{
	static const char *const other[] = { "\x93NUMPY", "\x89HDF\r\n", "PK\3\4", "\x1f\x8b\x08",
					     "MMIDIDX" };
	unsigned char begin[YK_KIND_BEGIN] = { 0 };
	int32_t head[3];
	const size_t n = bytes < sizeof begin ? (size_t)bytes : sizeof begin;
	const int err = yk_file_read_at(fd, path, 0, begin, n);
	if (err || n < sizeof head)
		return err;
	memcpy(head, begin, sizeof head);
	yk_le(head, sizeof *head, 3);
	for (size_t i = 0; i < sizeof llmc / sizeof *llmc; i++)
		if (head[0] == llmc[i].magic && head[1] > 0 && head[1] < 100 && head[2] >= 0)
			return check_llmc(path, llmc[i].ids, head[2], e, offset, bytes);
		else if ((int32_t)__builtin_bswap32((uint32_t)head[0]) == llmc[i].magic)
			return yk_fail(
				YOKE_EFORMAT,
				"%s: is a token file of llm.c in big-endian order; only little-endian ones can be read",
				path);
	bool is = yk_safetensors_begins((const char *)begin);
	for (size_t i = 0; i < sizeof other / sizeof *other; i++)
		is |= !memcmp(begin, other[i], strlen(other[i]));
	return is && !offset ? yk_file_refused(path, begin, n, "raw elements",
					       "it is a safetensors file; leave format= out") :
			       0;
}

bool yk_token_file_is(const struct yk_safetensors *f)
{
	const char *format = yk_safetensors_metadata(f, "format");
	// of any version
	return format && !strncmp(format, YK_TOKENS_FORMAT, strlen(YK_TOKENS_FORMAT) - 1);
}

json_t *yk_token_file_tokenizer(const struct yk_safetensors *f)
{
	const char *text = yk_safetensors_metadata(f, "tokenizer"),
		   *want = yk_safetensors_metadata(f, "vocabulary");
	char hash[17];
	if (!text) {
		yk_fail(YOKE_EFORMAT, "%s: does not name its tokenizer", f->path);
		return NULL;
	}
	snprintf(hash, sizeof hash, "%016" PRIx64, yk_hash(text, strlen(text), 0));
	if (want && strcmp(want, hash)) {
		yk_fail(YOKE_EFORMAT, "%s: its tokenizer was altered: the hash is %s, not %.16s",
			f->path, hash, want);
		return NULL;
	}
	return yk_json_parse(text, strlen(text), f->path);
}

static int take_hash(const struct yk_safetensors *f, const char *key, uint64_t *to)
{
	const char *hash = yk_safetensors_metadata(f, key);
	if (hash && (strlen(hash) != 16 || strspn(hash, "0123456789abcdef") != 16))
		return yk_fail(YOKE_EFORMAT, "%s: its %s is no hash", f->path, key);
	*to = hash ? strtoull(hash, NULL, 16) : 0;
	return 0;
}

// Reads the number of training tokens, if stored.
static int take_split(struct yk_token_file *t, const struct yk_safetensors *f)
{
	const char *train = yk_safetensors_metadata(f, "train"),
		   *valid = yk_safetensors_metadata(f, "valid");
	char *end = NULL;
	t->train = -1;
	if (!train && !valid)
		return 0;
	if (train && *train >= '0' && *train <= '9' && strlen(train) < 19)
		t->train = strtoll(train, &end, 10);
	if (!end || *end || (uint64_t)t->train > t->count)
		return yk_fail(YOKE_EFORMAT, "%s: its split is no number of its %llu tokens",
			       f->path, (unsigned long long)t->count);
	t->valid = valid ? yk_strtod(valid, NULL) : 0;
	if (!(t->valid >= 0 && t->valid <= 1))
		return yk_fail(YOKE_EFORMAT, "%s: the share of its split is not within 0 .. 1",
			       f->path);
	return 0;
}

int yk_token_file_verify(const struct yk_safetensors *f)
{
	const char *want = yk_safetensors_metadata(f, "xxh64");
	char got[17];
	uint64_t hash, begin = f->bytes;
	for (int i = 0; i < f->count; i++)
		begin = f->entries[i].offset < begin ? f->entries[i].offset : begin;
	if (!want || !yk_token_file_is(f))
		return 0;
	const int e = yk_file_hash(f->fd, f->path, begin, f->bytes - begin, &hash);
	if (e < 0)
		return e;
	snprintf(got, sizeof got, "%016" PRIx64, hash);
	return strcmp(got, want) ?
		       yk_fail(YOKE_EFORMAT,
			       "%s: altered: the hash of its tokens is %s, not %.16s; prepare it "
			       "again",
			       f->path, got, want) :
		       0;
}

int yk_token_file_take(struct yk_token_file *to, const struct yk_safetensors *f)
{
	const struct yk_safetensors_entry *x = yk_safetensors_find(f, "tokens"),
					  *d = yk_safetensors_find(f, "documents");
	int64_t vocab;
	const char *format = yk_safetensors_metadata(f, "format");
	if (format && !strcmp(format, YK_CHATS_FORMAT))
		return yk_fail(
			YOKE_EFORMAT,
			"%s: holds conversations, which a pretrained model is trained on: give init=MODEL",
			f->path);
	if (!yk_token_file_is(f))
		return yk_fail(
			YOKE_EFORMAT,
			"%s: is no token file: its metadata has no format \"" YK_TOKENS_FORMAT "\"",
			f->path);
	if (strcmp(format, YK_TOKENS_FORMAT))
		return yk_fail(
			YOKE_EFORMAT,
			"%s: is a token file of format \"%.32s\"; this version reads \"" YK_TOKENS_FORMAT
			"\"",
			f->path, format);
	const char *type = !x                             ? "" :
			   x->dtype == yoke_u8            ? "u8" :
			   x->dtype == YK_SAFETENSORS_U16 ? "u16" :
			   x->dtype == YK_SAFETENSORS_U32 ? "u32" :
							    "";
	if (!*type || x->rank != 1)
		return yk_fail(YOKE_EFORMAT,
			       "%s: a token file has tokens, U8, U16 or U32 along one axis",
			       f->path);
	if (d && (d->dtype != yoke_i64 || d->rank != 1))
		return yk_fail(YOKE_EFORMAT, "%s: documents of a token file are I64 along one axis",
			       f->path);
	json_t *o = yk_token_file_tokenizer(f);
	int e = o ? yk_json_int(o, f->path, "size", 1, INT32_MAX, &vocab) : yoke_error_code();
	json_decref(o);
	if (e < 0)
		return e;
	*to = (struct yk_token_file){ .element = yk_element_named(type, strlen(type)),
				      .offset = x->offset,
				      .count = (uint64_t)x->dims[0],
				      .vocab = vocab };
	if ((e = take_hash(f, "fingerprint", &to->fingerprint)) < 0 ||
	    (e = take_hash(f, "xxh64", &to->whole)) < 0)
		return e;
	return take_split(to, f);
}
