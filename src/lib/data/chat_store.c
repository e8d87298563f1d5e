// SPDX-License-Identifier: Apache-2.0
// Writes and reads files of tokenized conversations.
#include "config.h"

#include "data/chat_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "tokenizer/tokenizer.h"

enum { ARRAYS = 4, TOKENS = 0, TARGETS, SAMPLES, KINDS, HASH_TEXT = 17 };

static int no_memory(const char *what)
{
	return yk_fail(YOKE_ENOMEM, "%s: no memory for conversations", what);
}

// ---- in memory ----

int yk_chat_store_add(struct yk_chat_store *s, int32_t size, enum yk_chat_kind kind,
		      const struct yk_chat_tokens *x)
{
	const size_t at = s->ids.count;
	if (yk_grow(&s->target, &s->target_cap, at + x->n, 1) < 0 ||
	    yk_grow(&s->kind, &s->kind_cap, s->count + 1, 1) < 0 ||
	    yk_grow(&s->begin, &s->begin_cap, s->count + 1, sizeof *s->begin) < 0)
		return no_memory("data");
	const int e = yk_tokens_reserve(&s->ids, size, x->n);
	if (e < 0)
		return e;
	if (x->n)
		memcpy(s->target + at, x->target, x->n);
	for (size_t i = 0; i < x->n; i++)
		yk_tokens_add(&s->ids, x->id[i]);
	s->begin[s->count] = (int64_t)at;
	s->kind[s->count++] = (unsigned char)kind;
	return 0;
}

void yk_chat_store_fini(struct yk_chat_store *s)
{
	yk_tokens_fini(&s->ids);
	free(s->target);
	free(s->kind);
	free(s->begin);
	*s = (struct yk_chat_store){ 0 };
}

static void hash_text(char to[HASH_TEXT], uint64_t hash)
{
	snprintf(to, HASH_TEXT, "%016" PRIx64, hash);
}

static void hash_vocabulary(const struct yk_tokenizer *t, char to[HASH_TEXT])
{
	hash_text(to, yk_tokenizer_hash(yk_tokenizer_pretrained(t)));
}

// ---- writing ----

static json_t *metadata(const struct yk_tokenizer *t, const struct yk_sources *sources,
			uint64_t hash)
{
	char vocabulary[HASH_TEXT], sum[HASH_TEXT];
	json_t *list = yk_sources_json(sources);
	char *from = yk_json_text(list, JSON_COMPACT);
	hash_vocabulary(t, vocabulary);
	hash_text(sum, hash);
	json_t *o = from ? json_pack("{s:s, s:s, s:s, s:s}", "format", YK_CHATS_FORMAT,
				     "vocabulary", vocabulary, "xxh64", sum, "sources", from) :
			   NULL;
	json_decref(list);
	free(from);
	return o;
}

static char *head_of(const struct yk_chat_store *s, const struct yk_tokenizer *t,
		     const struct yk_sources *sources, const char *path, uint64_t hash,
		     size_t *bytes, uint64_t at[ARRAYS])
{
	const int64_t n = (int64_t)s->ids.count, count = (int64_t)s->count;
	const int width = s->ids.width;
	const struct yk_host_tensor x[ARRAYS] = {
		{ .name = "tokens",
		  .dtype = width == 1 ? yoke_u8 :
			   width == 2 ? (int)YK_SAFETENSORS_U16 :
					(int)YK_SAFETENSORS_U32,
		  .rank = 1,
		  .dims = { n } },
		{ .name = "targets", .dtype = yoke_u8, .rank = 1, .dims = { n } },
		{ .name = "samples", .dtype = yoke_i64, .rank = 1, .dims = { count } },
		{ .name = "kinds", .dtype = yoke_u8, .rank = 1, .dims = { count } },
	};
	json_t *o = metadata(t, sources, hash);
	char *head = o ? yk_safetensors_head(path, o, ARRAYS, x, bytes, at) : NULL;
	if (!o)
		no_memory(path);
	json_decref(o);
	return head;
}

static int write_arrays(const struct yk_chat_store *s, const struct yk_file_writer *w,
			const uint64_t at[ARRAYS])
{
	int e = yk_file_put_numbers(w, at[TOKENS], s->ids.ids, (size_t)s->ids.width, s->ids.count);
	if (e == 0)
		e = yk_file_put(w, at[TARGETS], s->target, s->ids.count);
	if (e == 0)
		e = yk_file_put_numbers(w, at[SAMPLES], s->begin, sizeof *s->begin, s->count);
	return e < 0 ? e : yk_file_put(w, at[KINDS], s->kind, s->count);
}

// The head is written twice: the second time with the hash, whose text has the same length.
static int write_file(const struct yk_chat_store *s, const struct yk_tokenizer *t,
		      const struct yk_sources *sources, const struct yk_file_writer *w)
{
	uint64_t at[ARRAYS], hash = 0, bytes;
	size_t length;
	int e = 0;
	for (int i = 0; i < 2 && e == 0; i++) {
		char *head = head_of(s, t, sources, w->path, hash, &length, at);
		e = head ? yk_file_put(w, 0, head, length) : yoke_error_code();
		free(head);
		if (e < 0 || i == 1)
			break;
		e = write_arrays(s, w, at);
		const int fd = e == 0 ? yk_file_open(w->temporary, &bytes) : e;
		e = fd < 0 ? fd : yk_file_hash(fd, w->temporary, length, bytes - length, &hash);
		if (fd >= 0)
			close(fd);
	}
	return e;
}

int yk_chat_store_write(const struct yk_chat_store *s, const struct yk_tokenizer *t,
			const struct yk_sources *sources, const char *path)
{
	struct yk_file_writer w;
	int e = yk_file_begin(&w, path);
	if (e < 0)
		return e;
	e = write_file(s, t, sources, &w);
	if (e == 0)
		return yk_file_commit(&w);
	yk_file_abort(&w);
	return e;
}

// ---- reading ----

bool yk_chat_store_is(const char *path)
{
	char begin[YK_SAFETENSORS_BEGIN] = "";
	struct yk_error_aside *aside = yk_error_aside();
	struct yk_safetensors f;
	bool is = false;
	uint64_t bytes;
	const int fd = yk_file_open(path, &bytes);
	if (fd >= 0 && bytes > sizeof begin &&
	    yk_file_read_at(fd, path, 0, begin, sizeof begin) == 0 &&
	    yk_safetensors_begins(begin) && yk_safetensors_open(&f, path) == 0) {
		const char *format = yk_safetensors_metadata(&f, "format");
		is = format && !strcmp(format, YK_CHATS_FORMAT);
		yk_safetensors_close(&f);
	}
	if (fd >= 0)
		close(fd);
	yoke_error_clear();
	yk_error_restore(aside);
	return is;
}

struct arrays {
	const struct yk_safetensors_entry *entry[ARRAYS];
	void *data[ARRAYS];
	int width; // bytes of a token
};

static int find_arrays(const struct yk_safetensors *f, struct arrays *a)
{
	static const char *const names[ARRAYS] = { "tokens", "targets", "samples", "kinds" };
	for (int i = 0; i < ARRAYS; i++) {
		const struct yk_safetensors_entry *x = a->entry[i] =
			yk_safetensors_find(f, names[i]);
		const int want = i == SAMPLES ? yoke_i64 : yoke_u8;
		const bool fits =
			x && x->rank == 1 &&
			(x->dtype == want || (i == TOKENS && (x->dtype == YK_SAFETENSORS_U16 ||
							      x->dtype == YK_SAFETENSORS_U32)));
		if (!fits)
			return yk_fail(YOKE_EFORMAT,
				       "%s: has no array %s of the type and rank of conversations; "
				       "prepare it again",
				       f->path, names[i]);
	}
	a->width = a->entry[TOKENS]->dtype == yoke_u8            ? 1 :
		   a->entry[TOKENS]->dtype == YK_SAFETENSORS_U16 ? 2 :
								   4;
	if (a->entry[TOKENS]->dims[0] != a->entry[TARGETS]->dims[0] ||
	    a->entry[SAMPLES]->dims[0] != a->entry[KINDS]->dims[0])
		return yk_fail(
			YOKE_EFORMAT,
			"%s: tokens and targets, or samples and kinds, have different lengths",
			f->path);
	return 0;
}

static int check_tokenizer(const struct yk_safetensors *f, const struct yk_tokenizer *t)
{
	const char *is = yk_safetensors_metadata(f, "vocabulary");
	char want[HASH_TEXT];
	hash_vocabulary(t, want);
	return is && !strcmp(is, want) ? 0 :
					 yk_fail(YOKE_EINVAL,
						 "%s: was prepared with another tokenizer or chat "
						 "template than the model's; prepare it with "
						 "model= naming this model",
						 f->path);
}

static int check_hash(const struct yk_safetensors *f)
{
	const char *want = yk_safetensors_metadata(f, "xxh64");
	uint64_t hash, begin = f->bytes;
	char got[HASH_TEXT];
	for (int i = 0; i < f->count; i++)
		begin = f->entries[i].offset < begin ? f->entries[i].offset : begin;
	const int e = yk_file_hash(f->fd, f->path, begin, f->bytes - begin, &hash);
	if (e < 0)
		return e;
	hash_text(got, hash);
	return want && !strcmp(want, got) ? 0 :
					    yk_fail(YOKE_EFORMAT,
						    "%s: altered: the hash of its arrays is %s, "
						    "not %.16s; prepare it again",
						    f->path, got, want ? want : "stored");
}

static int32_t token(const struct arrays *a, int64_t i)
{
	return a->width == 1 ? ((const uint8_t *)a->data[TOKENS])[i] :
	       a->width == 2 ? ((const uint16_t *)a->data[TOKENS])[i] :
			       (int32_t)((const uint32_t *)a->data[TOKENS])[i];
}

static int invalid(const struct yk_safetensors *f, int64_t k)
{
	return yk_fail(YOKE_EFORMAT,
		       "%s: sample %" PRId64
		       " is out of order, or has a token, target or kind out of range; "
		       "prepare it again",
		       f->path, k);
}

static int64_t end_of(const struct arrays *a, int64_t k)
{
	const int64_t *begin = a->data[SAMPLES];
	return k + 1 < a->entry[SAMPLES]->dims[0] ? begin[k + 1] : a->entry[TOKENS]->dims[0];
}

// Checks order, kinds and targets of the samples, and finds the length of the longest one.
static int check_samples(const struct yk_safetensors *f, const struct arrays *a, size_t *longest)
{
	const int64_t n = a->entry[TOKENS]->dims[0], *begin = a->data[SAMPLES];
	const unsigned char *kind = a->data[KINDS], *target = a->data[TARGETS];
	*longest = 0;
	for (int64_t k = 0; k < a->entry[SAMPLES]->dims[0]; k++) {
		const int64_t from = begin[k], to = end_of(a, k);
		if ((k == 0 && from) || from > to || to > n || kind[k] > YK_CHAT_FURTHER ||
		    (kind[k] == YK_CHAT_FURTHER && (k == 0 || kind[k - 1] == YK_CHAT_TEXT)))
			return invalid(f, k);
		for (int64_t i = from; i < to; i++)
			if (target[i] > 1)
				return invalid(f, k);
		if ((size_t)(to - from) > *longest)
			*longest = (size_t)(to - from);
	}
	return 0;
}

static int each(const struct yk_safetensors *f, const struct yk_tokenizer *t,
		const struct arrays *a, int32_t *id,
		int (*fn)(void *arg, enum yk_chat_kind, const struct yk_chat_tokens *), void *arg)
{
	const int64_t *begin = a->data[SAMPLES];
	unsigned char *target = a->data[TARGETS];
	const unsigned char *kind = a->data[KINDS];
	int e = 0;
	for (int64_t k = 0; k < a->entry[SAMPLES]->dims[0] && e == 0; k++) {
		const int64_t from = begin[k], to = end_of(a, k);
		for (int64_t i = from; i < to; i++) {
			const int32_t x = id[i - from] = token(a, i);
			if (x < 0 || x >= yk_tokenizer_size(t))
				return invalid(f, k);
		}
		e = fn(arg, (enum yk_chat_kind)kind[k],
		       &(struct yk_chat_tokens){ id, target + from, (size_t)(to - from) });
	}
	return e;
}

// Reads the arrays, whose bytes are added to *bytes, and checks the order of the samples.
static int read_arrays(const struct yk_safetensors *f, uint64_t *bytes, struct arrays *a,
		       size_t *longest)
{
	uint64_t sum = 0;
	int e = 0;
	for (int i = 0; i < ARRAYS; i++)
		sum += a->entry[i]->bytes;
	if (*bytes > yk_data_max() || sum > yk_data_max() - *bytes)
		return yk_fail(YOKE_ERANGE,
			       "%s: with its %" PRIu64
			       " bytes of samples there are more than data.max = %" PRIu64
			       "; raise YOKE_DATA_MAX or give fewer files",
			       f->path, sum, yk_data_max());
	*bytes += sum;
	e = check_hash(f);
	for (int i = 0; i < ARRAYS && e == 0; i++) {
		a->data[i] = malloc(a->entry[i]->bytes + 1);
		e = a->data[i] ? yk_safetensors_read(f, a->entry[i], a->data[i]) :
				 no_memory(f->path);
	}
	return e < 0 ? e : check_samples(f, a, longest);
}

static void arrays_fini(struct arrays *a)
{
	for (int i = 0; i < ARRAYS; i++)
		free(a->data[i]);
}

void yk_chats_summarize(const unsigned char *target, size_t tokens, const unsigned char *kind,
			size_t samples, struct yk_chats_prepared *to)
{
	*to = (struct yk_chats_prepared){ .tokens = (int64_t)tokens, .samples = (int64_t)samples };
	for (size_t i = 0; i < tokens; i++)
		to->targets += target[i];
	for (size_t i = 0; i < samples; i++)
		to->lines += kind[i] != YK_CHAT_FURTHER;
}

int yk_chat_store_check(const char *path, struct yk_chats_prepared *to)
{
	struct yk_safetensors f;
	struct arrays a = { .width = 0 };
	uint64_t bytes = 0;
	size_t longest;
	int e = yk_safetensors_open(&f, path);
	if (e < 0)
		return e;
	e = find_arrays(&f, &a);
	if (e == 0)
		e = read_arrays(&f, &bytes, &a, &longest);
	if (e == 0)
		yk_chats_summarize(a.data[TARGETS], (size_t)a.entry[TOKENS]->dims[0], a.data[KINDS],
				   (size_t)a.entry[SAMPLES]->dims[0], to);
	arrays_fini(&a);
	yk_safetensors_close(&f);
	return e;
}

int yk_chat_store_read(const char *path, const struct yk_tokenizer *t, uint64_t *bytes,
		       int (*fn)(void *arg, enum yk_chat_kind, const struct yk_chat_tokens *),
		       void *arg)
{
	struct yk_safetensors f;
	struct arrays a = { .width = 0 };
	int e = yk_safetensors_open(&f, path);
	if (e < 0)
		return e;
	e = find_arrays(&f, &a);
	if (e == 0)
		e = check_tokenizer(&f, t);
	size_t longest = 0;
	if (e == 0)
		e = read_arrays(&f, bytes, &a, &longest);
	int32_t *id = e == 0 ? malloc((longest + 1) * sizeof *id) : NULL;
	if (e == 0)
		e = id ? each(&f, t, &a, id, fn, arg) : no_memory(path);
	arrays_fini(&a);
	free(id);
	yk_safetensors_close(&f);
	return e;
}
