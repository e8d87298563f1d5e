// SPDX-License-Identifier: Apache-2.0
// Training on files of tokens: token files, and raw tokens of other programs.  Each file is split
// and cut into windows separately, and is read in place.
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "data/part.h"
#include "data/set.h"
#include "data/stream.h"
#include "data/text.h"
#include "data/tokenfile.h"

enum { FEW_BYTES = 16 << 20 }; // bytes of a block of a pipe up to which the default ring holds
			       // several blocks

// One file: the position of its tokens, and its split.
struct file {
	int fd;
	const char *path;
	struct yk_token_file t;
	json_t *tokenizer; // NULL: raw tokens
	bool stream;
};

static bool raw(const struct yk_data_spec *spec)
{
	return spec->format && *spec->format;
}

// Is it a token file, by its name or its first bytes?
static int looks_prepared(void *arg, const char *path)
{
	const char *const end = ".safetensors";
	const size_t n = strlen(path), m = strlen(end);
	char begin[YK_SAFETENSORS_BEGIN] = "";
	struct stat st;
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const bool begins = fd >= 0 && pread(fd, begin, sizeof begin, 0) == sizeof begin &&
			    yk_safetensors_begins(begin);
	if (fd >= 0)
		close(fd);
	if (begins || (n > m && !strcmp(path + n - m, end)))
		*(bool *)arg = true;
	return 0;
}

bool yk_data_prepared(const char *paths, const struct yk_data_spec *spec)
{
	bool any = raw(spec);
	if (!any && *paths) { // the function that opens the files reports an empty name
		yk_walk_list(paths, looks_prepared, &any);
		yoke_error_clear();
	}
	return any;
}

// ---- one file ----

static int open_raw(struct file *f, const struct yk_data_spec *spec)
{
	uint64_t bytes;
	f->t = (struct yk_token_file){ .vocab = spec->vocab, .train = -1 };
	int e = yk_element_format(spec->format, &f->t.element, &f->t.offset);
	if (e == 0 && !yk_element_ids(f->t.element))
		e = yk_fail(YOKE_EINVAL, "format=%s: tokens are u8, u16 or u32", spec->format);
	f->stream = yk_is_stream(f->path); // a pipe is opened once, after everything else has been
					   // checked
	if (e < 0 || f->stream)
		return e;
	e = f->fd = yk_file_open(f->path, &bytes);
	if (e >= 0)
		e = yk_raw_check(f->fd, f->path, f->t.element, f->t.offset, bytes);
	return e < 0 ? e : yk_element_count(f->t.element, f->path, f->t.offset, bytes, &f->t.count);
}

static int open_prepared(struct file *f)
{
	struct yk_safetensors s;
	int e = yk_safetensors_open(&s, f->path);
	if (e < 0)
		return e;
	e = yk_token_file_take(&f->t, &s);
	if (e == 0 && !(f->tokenizer = yk_token_file_tokenizer(&s)))
		e = yoke_error_code();
	if (e == 0 && (f->fd = fcntl(s.fd, F_DUPFD_CLOEXEC, 0)) < 0)
		e = yk_fail(YOKE_EIO, "%s: cannot be opened once more: %s", f->path,
			    strerror(errno));
	yk_safetensors_close(&s);
	return e;
}

static int file_open(struct file *f, const char *path, const struct yk_data_spec *spec)
{
	*f = (struct file){ .fd = -1, .path = path };
	return raw(spec) ? open_raw(f, spec) : open_prepared(f);
}

static void file_close(struct file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	json_decref(f->tokenizer);
}

// ---- the tokenizer ----

struct first {
	const struct yk_data_spec *spec;
	struct yk_tokenizer *tokenizer;
};

// Ids of one byte are text; the meaning of other ids is unknown.
static struct yk_tokenizer *raw_tokenizer(const struct file *f)
{
	if (f->t.vocab)
		return yk_tokenizer_ids(f->t.vocab, f->path);
	if (f->t.element->width == 1)
		return yk_tokenizer_new("byte");
	yk_fail(YOKE_EINVAL,
		"%s: format=%s does not determine the size of the vocabulary; give vocab=, as 50257 for "
		"GPT-2's",
		f->path, f->t.element->name);
	return NULL;
}

static int take_first(void *arg, const char *path)
{
	struct first *x = arg;
	struct file f;
	if (x->tokenizer)
		return 0;
	int e = file_open(&f, path, x->spec);
	if (e == 0) {
		x->tokenizer =
			f.tokenizer ? yk_tokenizer_load(f.tokenizer, path) : raw_tokenizer(&f);
		e = x->tokenizer ? 0 : yoke_error_code();
	}
	file_close(&f);
	return e;
}

struct yk_tokenizer *yk_data_tokenizer(const char *paths, const struct yk_data_spec *spec)
{
	struct first x = { .spec = spec };
	yk_walk_list(paths, take_first, &x);
	return x.tokenizer;
}

// ---- sets ----

struct sets {
	const struct yk_data_spec *spec;
	json_t *tokenizer; // of the first file; all others must have the same
	const char *kind;
	int64_t vocab;
	struct yk_sources *sources;
	yoke_dataset **set[2];
	int n[2], cap;
	struct yk_token_sets *to;
};

static int check_tokenizer(const struct sets *x, const struct file *f)
{
	if (f->tokenizer && !json_equal(f->tokenizer, x->tokenizer))
		return yk_fail(
			YOKE_EINVAL,
			"%s: was prepared with another tokenizer than the model's; prepare its text with "
			"the one that is trained on, or train another model",
			f->path);
	if (!f->tokenizer && (f->t.vocab ? f->t.vocab != x->vocab || strcmp(x->kind, "ids") :
			      f->t.element->width > 1 ? strcmp(x->kind, "ids") :
							strcmp(x->kind, "byte")))
		return yk_fail(YOKE_EINVAL,
			       "%s: vocab=%lld: the model has tokenizer=%s with %lld tokens",
			       f->path, (long long)f->t.vocab, x->kind, (long long)x->vocab);
	return 0;
}

// Computes the first token for validation, and the fingerprint of file and split.
static int split_file(const struct sets *x, const struct file *f, int64_t *start, uint64_t *hash)
{
	const struct yk_data_spec *spec = x->spec;
	const int64_t n = (int64_t)f->t.count, min = spec->context + 1;
	const bool all = spec->valid_given && spec->valid >= 1;
	*start = n;
	if (all)
		*start = 0;
	if (f->t.train < 0 || all || spec->apart) {
		const int e = yk_data_split(f->path, n, spec, start);
		if (e < 0)
			return e;
	} else {
		*start = f->t.train;
		if (spec->valid_given && spec->valid != f->t.valid)
			return yk_fail(
				YOKE_EINVAL,
				"%s: was split at valid=%g when it was prepared; drop valid=, or prepare it "
				"again",
				f->path, f->t.valid);
		if (*start < min || (*start < n && n - *start < min))
			return yk_fail(
				YOKE_ERANGE,
				"%s: its %lld tokens to train and %lld to validate are too few: context=%lld "
				"needs %lld of each",
				f->path, (long long)*start, (long long)(n - *start),
				(long long)spec->context, (long long)min);
		if (f->t.fingerprint) { // equals that of the text, so either can resume a run of
					// the other
			*hash = *hash ? yk_hash_numbers(&f->t.fingerprint, 8, 1, *hash) :
					f->t.fingerprint;
			return 0;
		}
	}
	struct stat st;
	uint64_t sample = f->t.whole;
	int e = fstat(f->fd, &st) < 0 ? yk_fail(YOKE_EIO, "%s: %s", f->path, strerror(errno)) : 0;
	if (e == 0 && !sample)
		e = yk_file_sample(f->fd, f->path, (uint64_t)st.st_size, &sample);
	if (e == 0)
		*hash = yk_hash_numbers((uint64_t[]){ sample, f->t.offset,
						      (uint64_t)f->t.element->width,
						      (uint64_t)*start },
					8, 4, *hash);
	return e;
}

// Adds a set with tokens first .. end - 1 of a file for training (kind 0) or validation.
static int add_set(struct sets *x, const struct file *f, int kind, int64_t first, int64_t end)
{
	const struct yk_element *e = f->t.element;
	struct yk_field_file p = { .element = e,
				   .offset = f->t.offset + (uint64_t)first * (uint64_t)e->width,
				   .path = strdup(f->path),
				   .fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 0) };
	if (end - first <= x->spec->context) {
		yk_field_files_close(1, &p);
		return 0;
	}
	if (!p.path || p.fd < 0) {
		yk_field_files_close(1, &p);
		return yk_fail(YOKE_EIO, "%s: cannot be opened once more: %s", f->path,
			       strerror(errno));
	}
	yoke_dataset *d = yk_windows_set(&p, (uint64_t)(end - first), x->spec->context, x->vocab,
					 (uint64_t)first);
	if (!d)
		return yoke_error_code();
	x->set[kind][x->n[kind]++] = d;
	return 0;
}

// A pipe: windows in stream order, or shuffled in blocks; the next blocks are read while one is
// used.
static int take_stream(struct sets *x, const struct file *f)
{
	const struct yk_data_spec *spec = x->spec;
	struct yk_field_file p = { .fd = -1, .element = f->t.element, .offset = f->t.offset };
	const struct yk_field_shape shape = { 1, { spec->context + 1 } };
	if (spec->valid_given && spec->valid > 0)
		return yk_fail(
			YOKE_EINVAL,
			"%s: valid=%g: a pipe is not split, and passes once; drop the key, or write it to a "
			"file",
			f->path, spec->valid);
	yk_windows_field(&p, yk_element_ids(f->t.element), spec->context, x->vocab);
	const bool few = spec->shuffle < FEW_BYTES / (shape.dims[0] * f->t.element->width);
	yoke_dataset *d =
		yk_stream_open(f->path, &p, &shape, YK_DATA_ENDLESS, few ? 0 : 3 * spec->shuffle);
	if (!d)
		return yoke_error_code();
	x->set[0][x->n[0]++] = d;
	x->to->endless = true;
	x->to->share = 0;
	x->to->fingerprint = yk_hash(spec->format, strlen(spec->format), 0);
	return yk_sources_add(x->sources, f->path, 0, 0);
}

static int make_room(struct sets *x)
{
	if (x->n[0] < x->cap && x->n[1] < x->cap)
		return 0;
	const int cap = x->cap ? 2 * x->cap : 16;
	for (int k = 0; k < 2; k++) {
		yoke_dataset **more = realloc(x->set[k], (size_t)cap * sizeof *more);
		if (!more)
			return yk_fail(YOKE_ENOMEM, "data: no memory for the list of files");
		x->set[k] = more;
	}
	x->cap = cap;
	return 0;
}

// A regular file.
static int take_regular(struct sets *x, const struct file *f)
{
	int64_t start = 0;
	int e = split_file(x, f, &start, &x->to->fingerprint);
	if (e == 0)
		e = yk_sources_add_file(x->sources, f->path, f->t.whole);
	if (e == 0)
		e = add_set(x, f, 0, 0, start);
	if (e == 0)
		e = add_set(x, f, 1, start, (int64_t)f->t.count);
	if (x->to->files == 0 && f->t.train >= 0 && !x->spec->apart)
		x->to->share = f->t.valid;
	x->to->tokens += (int64_t)f->t.count;
	return e;
}

static int take_file(void *arg, const char *path)
{
	struct sets *x = arg;
	struct file f;
	int e = file_open(&f, path, x->spec);
	if (e == 0)
		e = check_tokenizer(x, &f);
	if (e == 0 && (x->to->endless || (f.stream && x->to->files > 0)))
		e = yk_fail(YOKE_EINVAL, "%s: cannot be combined with a pipe, whose length is "
			"unknown; give either one alone", path);
	if (e == 0)
		e = make_room(x);
	if (e == 0)
		e = f.stream ? take_stream(x, &f) : take_regular(x, &f);
	x->to->files++;
	file_close(&f);
	return e;
}

// Concatenates the sets of a kind; the result keeps them alive.
static int join(struct sets *x, int kind, yoke_dataset **to)
{
	*to = NULL;
	if (x->n[kind] == 1)
		*to = yk_dataset_ref(x->set[kind][0]);
	else if (x->n[kind] > 0)
		*to = yoke_dataset_concat(x->n[kind], x->set[kind]);
	return x->n[kind] > 0 && !*to ? yoke_error_code() : 0;
}

int yk_token_sets_open(const char *paths, const struct yk_tokenizer *tokenizer,
		       const struct yk_data_spec *spec, struct yk_sources *sources,
		       struct yk_token_sets *to)
{
	struct sets x = { .spec = spec,
			  .tokenizer = yk_tokenizer_save(tokenizer),
			  .kind = yk_tokenizer_name(tokenizer),
			  .vocab = yk_tokenizer_size(tokenizer),
			  .sources = sources,
			  .to = to };
	*to = (struct yk_token_sets){ .share = spec->valid };
	int e = x.tokenizer ? yk_walk_list(paths, take_file, &x) : yoke_error_code();
	if (e == 0)
		e = join(&x, 0, &to->train);
	if (e == 0)
		e = join(&x, 1, &to->valid);
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < x.n[k]; i++)
			yoke_dataset_free(x.set[k][i]);
		free(x.set[k]);
	}
	json_decref(x.tokenizer);
	if (e < 0) {
		yoke_dataset_free(to->train);
		yoke_dataset_free(to->valid);
	}
	return e;
}
