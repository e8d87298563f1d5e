// SPDX-License-Identifier: Apache-2.0
// Converts text to a token file: lists the sources, writes the header, and replaces the output
// atomically.
#include "config.h"

#include "data/prepare.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/kind.h"
#include "base/number.h"
#include "base/system.h"
#include "data/lines.h"
#include "data/text.h"
#include "data/tokenfile.h"

enum { BLOCK = 4 << 20, DIGITS = 24 };

struct prepare {
	const struct yk_prepare *options;
	struct yk_prepared_text done;
	struct yk_sources sources; // all files that were examined, including skipped ones
	char made[512];            // sources and options, as text
	struct yk_text_file *file;
	size_t files, file_cap;
	struct yk_text_block *block;
	size_t blocks, block_cap;
	uint64_t fingerprint;
	struct yk_tokenizer *tokenizer;
};

// ---- source files ----

// The token file may be in the folder of the text; it is then skipped.
static bool is_out(const struct prepare *p, const char *path)
{
	return yk_file_is_same(path, p->options->out);
}

static int add_source(void *arg, const char *path, bool named)
{
	struct prepare *p = arg;
	if (named && !strcmp(path, YK_STDIN))
		return yk_fail(
			YOKE_EINVAL,
			"data prepare: standard input is read once, and text is read twice; write it to a "
			"file");
	if (is_out(p, path))
		return named ? yk_fail(YOKE_EINVAL, "%s: is both text and out", path) : 0;
	const int e = yk_sources_add_file(&p->sources, path, 0);
	return e < 0 ? e : 1;
}

static int add_blocks(struct prepare *p, uint64_t begin, uint64_t bytes)
{
	const uint64_t size = p->options->block ? p->options->block : BLOCK;
	for (uint64_t at = begin; at < bytes; at += size) {
		if (yk_grow(&p->block, &p->block_cap, p->blocks + 1, sizeof *p->block) < 0)
			return yk_fail(YOKE_ENOMEM,
				       "data prepare: no memory for the list of blocks");
		p->block[p->blocks++] =
			(struct yk_text_block){ .file = (int64_t)p->files,
						.begin = at,
						.end = bytes - at < size ? bytes : at + size };
	}
	return 0;
}

static int take_file(struct prepare *p, const char *path, uint64_t begin, uint64_t bytes,
		     uint64_t fingerprint)
{
	int e = add_blocks(p, begin, bytes);
	if (e < 0)
		return e;
	if (yk_grow(&p->file, &p->file_cap, p->files + 1, sizeof *p->file) < 0 ||
	    !(p->file[p->files].path = strdup(path)))
		return yk_fail(YOKE_ENOMEM, "data prepare: no memory for the list of files");
	p->file[p->files].begin = begin;
	p->file[p->files++].bytes = bytes;
	p->fingerprint = fingerprint;
	if (yk_jsonl_taken(path, p->options->field))
		p->fingerprint =
			yk_hash(p->options->field, strlen(p->options->field), p->fingerprint);
	p->done.bytes += bytes - begin;
	return 1;
}

struct scan {
	const struct prepare *p;
	struct yk_hash_state *hash;
};

// Returns 1 if the block contains a NUL.
static int scan_block(void *arg, const char *block, size_t n, uint64_t at)
{
	struct scan *s = arg;
	const atomic_int *stop = s->p->options->stop;
	(void)at;
	yk_hash_add(s->hash, block, n);
	if (stop && atomic_load(stop))
		return yk_fail(YOKE_EPERM, "data prepare: ended by a signal; nothing is written");
	return memchr(block, 0, n) ? 1 : 0;
}

// Length of a UTF-8 byte order mark at the beginning of a text.
static int has_mark(int fd, const char *path, uint64_t *to)
{
	char mark[3];
	const int e = yk_file_read_at(fd, path, 0, mark, sizeof mark);
	*to = e == 0 && !memcmp(mark, "\xef\xbb\xbf", 3) ? 3 : 0;
	return e;
}

// Reads a file once, to check that it is text and to fingerprint it.
static int scan_file(void *arg, const char *path, bool named)
{
	struct prepare *p = arg;
	struct scan s = { .p = p };
	uint64_t bytes, mark = 0;
	if (is_out(p, path))
		return 0;
	const int fd = yk_file_open(path, &bytes);
	if (fd < 0)
		return fd;
	s.hash = yk_hash_new(p->fingerprint);
	int e = !s.hash    ? yk_fail(YOKE_ENOMEM, "%s: no memory", path) :
		bytes >= 3 ? has_mark(fd, path, &mark) :
			     0;
	if (e == 0)
		e = yk_file_each(fd, path, mark, bytes - mark, scan_block, &s);
	const uint64_t hash = s.hash ? yk_hash_end(s.hash) : 0;
	if (e == 0 && bytes > mark) {
		e = take_file(p, path, mark, bytes, hash);
	} else if (e >= 0) {
		p->done.skipped++;
		e = named ? yk_file_refused_at(path, fd, "text", "it has a NUL byte") : 0;
	}
	close(fd);
	return e;
}

// ---- is the output up to date? ----

static void describe(struct prepare *p)
{
	const struct yk_prepare *o = p->options;
	yk_snprintf(p->made, sizeof p->made,
		    "1 tokenizer=%s valid=%.17g context=%" PRId64 " files=%" PRId64
		    " hash=%016" PRIx64 " field=%s",
		    o->tokenizer, o->valid, o->context, p->sources.count, p->sources.hash,
		    o->field ? o->field : "");
}

static bool reuse_existing(struct prepare *p)
{
	struct yk_safetensors f;
	struct yk_token_file t;
	if (yk_safetensors_open(&f, p->options->out) < 0) {
		yoke_error_clear(); // it will be overwritten
		return false;
	}
	const char *made = yk_safetensors_metadata(&f, "made");
	const struct yk_safetensors_entry *documents = yk_safetensors_find(&f, "documents");
	const bool same = made && documents && !strcmp(made, p->made) &&
			  yk_token_file_take(&t, &f) == 0 && yk_token_file_verify(&f) == 0;
	if (same)
		p->done = (struct yk_prepared_text){ .reused = true,
						     .tokens = (int64_t)t.count,
						     .train = t.train,
						     .vocab = t.vocab,
						     .documents = documents->dims[0],
						     .files = p->sources.count };
	yoke_error_clear();
	yk_safetensors_close(&f);
	return same;
}

// ---- the token file ----

static int64_t split(void *arg, int64_t tokens)
{
	struct prepare *p = arg;
	const struct yk_data_spec spec = { .context = p->options->context,
					   .valid = p->options->valid };
	const int e = yk_data_split(p->options->paths, tokens, &spec, &p->done.train);
	p->done.tokens = tokens;
	p->fingerprint = yk_hash_numbers(&spec.valid, sizeof spec.valid, 1, p->fingerprint);
	return e < 0 ? e : p->done.train;
}

// jansson accepts NULL arguments after an earlier failure, so one check at the end is enough.
static json_t *metadata(const struct prepare *p, uint64_t hash)
{
	char vocabulary[17], fingerprint[17], sum[17], train[DIGITS], valid[32];
	json_t *tokenizer = yk_tokenizer_save(p->tokenizer),
	       *sources = yk_sources_json(&p->sources);
	char *kind = yk_json_text(tokenizer, JSON_COMPACT | JSON_PRESERVE_ORDER),
	     *from = yk_json_text(sources, JSON_COMPACT);
	json_t *o = NULL;
	if (kind && from) {
		snprintf(vocabulary, sizeof vocabulary, "%016" PRIx64,
			 yk_hash(kind, strlen(kind), 0));
		snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, p->fingerprint);
		snprintf(sum, sizeof sum, "%016" PRIx64, hash);
		snprintf(train, sizeof train, "%" PRId64, p->done.train);
		yk_snprintf(valid, sizeof valid, "%.17g", p->options->valid);
		o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "format",
			      YK_TOKENS_FORMAT, "tokenizer", kind, "vocabulary", vocabulary,
			      "train", train, "valid", valid, "fingerprint", fingerprint, "xxh64",
			      sum, "sources", from, "made", p->made);
	}
	if (!o)
		yk_fail(YOKE_ENOMEM, "%s: no memory for its header, or field= is not UTF-8",
			p->options->out);
	json_decref(tokenizer);
	json_decref(sources);
	free(kind);
	free(from);
	return o;
}

// The header with the hash of the data, whose value does not change the header's length.
static char *head_of(const struct prepare *p, uint64_t hash, size_t *bytes, uint64_t at[2])
{
	const int width = yk_tokens_width(yk_tokenizer_size(p->tokenizer));
	const struct yk_host_tensor t[2] = {
		{ .name = "tokens",
		  .dtype = width == 1 ? yoke_u8 :
			   width == 2 ? (int)YK_SAFETENSORS_U16 :
					(int)YK_SAFETENSORS_U32,
		  .rank = 1,
		  .dims = { p->done.tokens } },
		{ .name = "documents",
		  .dtype = yoke_i64,
		  .rank = 1,
		  .dims = { p->done.documents } },
	};
	json_t *o = metadata(p, hash);
	char *head = o ? yk_safetensors_head(p->options->out, o, 2, t, bytes, at) : NULL;
	json_decref(o);
	return head;
}

static int write_file(struct prepare *p, struct yk_blocks *b, struct yk_file_writer *w)
{
	size_t length;
	uint64_t at[2], hash = 0, bytes;
	char *head = head_of(p, 0, &length, at);
	int e = head ? yk_file_put(w, 0, head, length) : yoke_error_code();
	free(head);
	if (e == 0)
		e = yk_blocks_write(b, p->tokenizer, w, at[0], at[1]);
	const int fd = e == 0 ? yk_file_open(w->temporary, &bytes) : -1;
	if (e == 0)
		e = fd < 0 ? fd : yk_file_hash(fd, w->temporary, length, bytes - length, &hash);
	if (fd >= 0)
		close(fd);
	if (e == 0) {
		head = head_of(p, hash, &length, at);
		e = head ? yk_file_put(w, 0, head, length) : yoke_error_code();
		free(head);
	}
	return e;
}

static int make_of(struct prepare *p, struct yk_blocks *b)
{
	struct yk_file_writer w;
	int e = yk_blocks_count(b, p->tokenizer, split, p);
	if (e < 0)
		return e;
	for (int64_t i = 0; i < b->count; i++)
		p->done.documents += b->block[i].documents;
	p->done.vocab = yk_tokenizer_size(p->tokenizer);
	p->done.files = (int64_t)p->files;
	if ((e = yk_file_begin(&w, p->options->out)) < 0)
		return e;
	e = write_file(p, b, &w);
	if (e == 0)
		return yk_file_commit(&w);
	yk_file_abort(&w);
	return e;
}

static int make(struct prepare *p)
{
	struct yk_ids_cache kept;
	struct yk_blocks b = { .options = p->options,
			       .file = p->file,
			       .block = p->block,
			       .count = (int64_t)p->blocks,
			       .kept = &kept };
	const int64_t max = p->options->workers ? p->options->workers : yk_processors();
	b.workers = (int)(max < b.count ? max : b.count);
	if (!(p->tokenizer = yk_tokenizer_new(p->options->tokenizer)))
		return yoke_error_code();
	yk_ids_cache_open(&kept);
	const int e = make_of(p, &b);
	yk_ids_cache_close(&kept);
	return e;
}

static int prepare(struct prepare *p)
{
	const struct yk_prepare *o = p->options;
	yk_file_sweep(o->out); // files left in a folder of text would be among the sources
	int e = yk_walk(o->paths, add_source, p);
	if (e < 0)
		return e;
	describe(p);
	if (reuse_existing(p))
		return 0;
	e = yk_walk(o->paths, scan_file, p);
	return e == 0 ? make(p) : e;
}

int yk_prepare(const struct yk_prepare *options, struct yk_prepared_text *to)
{
	struct prepare p = { .options = options };
	if (strcmp(options->tokenizer, "byte") && strcmp(options->tokenizer, "word"))
		return yk_fail(YOKE_EINVAL, "data prepare: tokenizer=%s: must be byte or word",
			       options->tokenizer);
	const int e = prepare(&p);
	if (e == 0)
		*to = p.done;
	for (size_t i = 0; i < p.files; i++)
		free(p.file[i].path);
	free(p.file);
	free(p.block);
	yk_sources_fini(&p.sources);
	yk_tokenizer_free(p.tokenizer);
	return e;
}
