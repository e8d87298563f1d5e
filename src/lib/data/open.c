// SPDX-License-Identifier: Apache-2.0
// Opens the files of a dataset, whatever their format.
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/kind.h"
#include "base/log.h"
#include "base/number.h"
#include "base/param.h"
#include "data/images.h"
#include "data/lines.h"
#include "data/npz.h"
#include "data/part.h"
#include "data/set.h"
#include "data/source.h"
#include "data/stream.h"
#include "data/tokenfile.h"
#include "data/walk.h"
#include "formats/safetensors.h"

enum word {
	FORMAT,
	FIELDS,
	DIMS,
	COLUMNS,
	DELIMITER,
	HEADER,
	FIELD,
	SIZE,
	CROP,
	ZOOM,
	FLIP,
	MEAN,
	STD,
	WORDS
};
enum number { CONTEXT, VOCAB, COUNT, KEEP, NUMBERS };
static const char *const keys[WORDS + NUMBERS] = {
	"format", "fields", "dims", "columns", "delimiter", "header", "field", "size", "crop",
	"zoom",   "flip",   "mean", "std",     "context",   "vocab",  "count", "keep"
};

struct spec {
	const char *path;
	char *copy;              // of the settings; the words below point into it
	const char *word[WORDS]; // NULL: not given
	int64_t number[NUMBERS]; // 0: not given
};

// ---- settings ----

static int whole(const char *key, const char *value, int64_t min, int64_t *to)
{
	char *end;
	errno = 0;
	const long long n = strtoll(value, &end, 10);
	if (errno || !*value || *end || *value < '0' || *value > '9' || n < min || n > INT32_MAX)
		return yk_fail(YOKE_EINVAL,
			       "dataset_open: %s=%s: must be a whole number from %lld to %d", key,
			       value, (long long)min, INT32_MAX);
	*to = n;
	return 0;
}

static int take(struct spec *s, char *word)
{
	char hint[300], *value = strchr(word, '=');
	if (!value)
		return yk_fail(YOKE_EINVAL, "dataset_open: '%s' is not key=value", word);
	*value++ = 0;
	for (int i = 0; i < WORDS; i++)
		if (!strcmp(word, keys[i])) {
			s->word[i] = value;
			return 0;
		}
	for (int i = 0; i < NUMBERS; i++)
		if (!strcmp(word, keys[WORDS + i]))
			return whole(word, value, i != VOCAB, &s->number[i]);
	return yk_fail(YOKE_EINVAL, "dataset_open: there is no key '%s'; %s", word,
		       yk_hint(word, keys, WORDS + NUMBERS, hint, sizeof hint));
}

// Ends the word at `at` at the next blank that is not between quotes, which begin a value or follow
// a comma; returns the text after it, NULL at the end.  *open: a quote is not closed.
static char *end_word(char *at, bool *open)
{
	bool quoted = false;
	for (char before = 0; *at && (quoted || *at != ' '); before = *at++)
		if (*at == '"' && (quoted || before == '=' || before == ',' || before == '"'))
			quoted = !quoted;
	*open = quoted;
	if (!*at)
		return NULL;
	*at = 0;
	return at + 1;
}

static int parse(struct spec *s, const char *settings)
{
	char *rest = s->copy = strdup(settings ? settings : "");
	int e = s->copy ? 0 : yk_fail(YOKE_ENOMEM, "dataset_open: no memory");
	while (e == 0 && rest) {
		char *word = rest;
		bool open;
		rest = end_word(word, &open);
		if (open)
			e = yk_fail(YOKE_EINVAL, "dataset_open: %s: a quote is not closed", word);
		else if (*word)
			e = take(s, word);
	}
	return e;
}

// Rejects keys that this format does not support: those whose enum bits are not in `words` and
// `numbers`.
static int unfit(const struct spec *s, const char *what, unsigned words, unsigned numbers)
{
	for (int i = 0; i < WORDS; i++)
		if (i != FORMAT && s->word[i] && !(words >> i & 1))
			return yk_fail(YOKE_EINVAL, "dataset_open: %s: %s=%s: %s take no such key",
				       s->path, keys[i], s->word[i], what);
	for (int i = 0; i < NUMBERS; i++)
		if (s->number[i] && !(numbers >> i & 1))
			return yk_fail(YOKE_EINVAL,
				       "dataset_open: %s: %s=%lld: %s take no such key", s->path,
				       keys[WORDS + i], (long long)s->number[i], what);
	return 0;
}

// ---- formats ----

static int open_part(const struct spec *s, const char *field, struct yk_field_file *p,
		     uint64_t *bytes, uint64_t *hash)
{
	*p = (struct yk_field_file){ .fd = -1, .path = strdup(s->path) };
	if (!p->path)
		return yk_fail(YOKE_ENOMEM, "dataset_open: no memory");
	snprintf(p->name, sizeof p->name, "%s", field);
	p->fd = yk_file_open(s->path, bytes);
	return p->fd < 0 ? p->fd : yk_file_sample(p->fd, s->path, *bytes, hash);
}

static int parse_dims(const struct spec *s, struct yk_field_shape *to)
{
	const char *at = s->word[DIMS];
	to->rank = 0;
	while (at && *at) {
		char *end;
		errno = 0;
		const long long n = strtoll(at, &end, 10);
		if (errno || *at < '0' || *at > '9' || n < 1 || to->rank == YOKE_MAX_RANK - 1 ||
		    (*end && (*end != 'x' || !end[1])))
			return yk_fail(
				YOKE_EINVAL,
				"dataset_open: dims=%s: must be up to %d numbers above 0, as 3x4",
				s->word[DIMS], YOKE_MAX_RANK - 1);
		to->dims[to->rank++] = n;
		at = *end ? end + 1 : end;
	}
	return 0;
}

// Elements per row of a shape; 0: too large.
static uint64_t row_elements(const struct yk_field_shape *shape, const struct yk_element *e,
			     uint64_t *bytes)
{
	uint64_t n = 1;
	*bytes = 0;
	for (int k = 0; k < shape->rank; k++)
		if (__builtin_mul_overflow(n, (uint64_t)shape->dims[k], &n))
			return 0;
	return n > INT64_MAX / 8 || __builtin_mul_overflow(n, (uint64_t)e->width, bytes) ? 0 : n;
}

// Fills a part for raw elements (format=TYPE:OFFSET), except for its file.
static int raw_part(const struct spec *s, struct yk_field_file *p, struct yk_field_shape *shape)
{
	const struct yk_element *ids;
	uint64_t row;
	if (!yk_element_named(s->word[FORMAT], strcspn(s->word[FORMAT], ":")))
		return yk_fail(
			YOKE_EINVAL,
			"dataset_open: %s: format=%s: must be auto, npy, npz, safetensors, tokens, csv, tsv, "
			"jsonl, images, or TYPE:OFFSET as u16:1024",
			s->path, s->word[FORMAT]);
	int e = yk_element_format(s->word[FORMAT], &p->element, &p->offset);
	if (e == 0)
		e = parse_dims(s, shape);
	if (e < 0)
		return e;
	snprintf(p->name, sizeof p->name, "x");
	if (!s->number[CONTEXT]) {
		p->elements = (int64_t)row_elements(shape, p->element, &row);
		p->stride = row;
		return p->elements ?
			       0 :
			       yk_fail(YOKE_EINVAL, "dataset_open: dims=%s: too many elements",
				       s->word[DIMS]);
	}
	if (!(ids = yk_element_ids(p->element)))
		return yk_fail(
			YOKE_EINVAL,
			"dataset_open: %s: context=%lld: ids of tokens are u8, u16 or u32, not %s",
			s->path, (long long)s->number[CONTEXT], p->element->name);
	yk_windows_field(p, ids, s->number[CONTEXT], s->number[VOCAB]);
	*shape = (struct yk_field_shape){ 1, { s->number[CONTEXT] + 1 } };
	return 0;
}

static yoke_dataset *open_stream(const struct spec *s)
{
	struct yk_field_file p = { .fd = -1 };
	struct yk_field_shape shape;
	if (!s->word[FORMAT] || !s->number[COUNT])
		yk_fail(YOKE_EINVAL,
			"dataset_open: %s: a pipe takes format=TYPE, the type of its elements, and count=, the "
			"samples of an epoch",
			s->path);
	else if (unfit(s, "pipes", 1 << DIMS, 1 << CONTEXT | 1 << VOCAB | 1 << COUNT | 1 << KEEP) ==
			 0 &&
		 raw_part(s, &p, &shape) == 0)
		return yk_stream_open(s->path, &p, &shape, s->number[COUNT], s->number[KEEP]);
	return NULL;
}

static yoke_dataset *open_raw(const struct spec *s)
{
	struct yk_field_shape shape;
	struct yk_field_file want = { 0 }, p;
	uint64_t bytes, hash, all = 0;
	if (raw_part(s, &want, &shape) < 0 ||
	    unfit(s, "raw elements", 1 << DIMS, 1 << CONTEXT | 1 << VOCAB) < 0)
		return NULL;
	const uint64_t row = (uint64_t)want.elements;
	int e = open_part(s, want.name, &p, &bytes, &hash);
	want.path = p.path;
	want.fd = p.fd;
	if (e == 0)
		e = yk_raw_check(p.fd, s->path, want.element, want.offset, bytes);
	if (e == 0)
		e = yk_element_count(want.element, s->path, want.offset, bytes, &all);
	hash = e == 0 ? yk_hash(s->word[FORMAT], strlen(s->word[FORMAT]), hash) : 0;
	if (e == 0 && s->number[CONTEXT])
		return yk_windows_set(&want, all, s->number[CONTEXT], s->number[VOCAB], hash);
	if (e == 0 && (all % row || !all))
		e = yk_fail(
			YOKE_EFORMAT,
			"%s: has %llu elements, which is not a whole number of samples of dims=%s",
			s->path, (unsigned long long)all, s->word[DIMS] ? s->word[DIMS] : "1");
	if (e < 0) {
		yk_field_files_close(1, &want);
		return NULL;
	}
	return yk_field_files_dataset(s->path, (int64_t)(all / row), 1, &want, &shape, hash);
}

static yoke_dataset *open_npy(const struct spec *s)
{
	struct yk_npy n;
	struct yk_field_file p;
	uint64_t bytes, hash;
	char *head = malloc(YK_NPY_HEADER);
	int e = head ? open_part(s, "x", &p, &bytes, &hash) :
		       yk_fail(YOKE_ENOMEM, "dataset_open: no memory");
	if (e == 0) {
		const size_t length = bytes < YK_NPY_HEADER ? bytes : YK_NPY_HEADER;
		e = yk_file_read_at(p.fd, s->path, 0, head, length);
		if (e == 0)
			e = yk_npy_header(&n, s->path, head, length, bytes);
	}
	if (head && e < 0)
		yk_field_files_close(1, &p);
	free(head);
	if (e < 0)
		return NULL;
	struct yk_field_shape shape;
	yk_npy_part(&p, &n, &shape);
	return yk_field_files_dataset(s->path, n.dims[0], 1, &p, &shape, hash);
}

// ---- safetensors ----

// The name in part.h for a dtype; NULL: no such element.
static const char *element_name(int dtype)
{
	switch (dtype) {
	case YK_SAFETENSORS_U16: return "u16";
	case YK_SAFETENSORS_U32: return "u32";
	case YK_SAFETENSORS_I16: return "i16";
	case YK_SAFETENSORS_U64: return "u64";
	default: return dtype < YK_SAFETENSORS_U16 ? yoke_dtype_name(dtype) : NULL;
	}
}

static int array_part(const struct spec *s, const struct yk_safetensors *f,
		      const struct yk_safetensors_entry *x, struct yk_field_file *p,
		      struct yk_field_shape *shape)
{
	uint64_t row;
	const char *type = element_name(x->dtype);
	*p = (struct yk_field_file){ .fd = -1 };
	if (!type)
		return yk_fail(
			YOKE_EUNSUPPORTED,
			"%s: array %.80s: dtype %s is not supported; name others with fields=",
			s->path, x->name, yk_safetensors_dtype(x->dtype));
	*p = (struct yk_field_file){ .fd = -1,
				     .element = yk_element_named(type, strlen(type)),
				     .offset = x->offset };
	if (strlen(x->name) >= sizeof p->name)
		return yk_fail(YOKE_EUNSUPPORTED,
			       "%s: array %.80s..: names of fields have up to %zu bytes", s->path,
			       x->name, sizeof p->name - 1);
	if (x->rank == 0 || x->bytes == 0)
		return yk_fail(YOKE_EFORMAT,
			       "%s: array %s: has no rows; name others with fields=", s->path,
			       x->name);
	snprintf(p->name, sizeof p->name, "%s", x->name);
	shape->rank = x->rank - 1;
	memcpy(shape->dims, x->dims + 1, sizeof shape->dims[0] * (size_t)shape->rank);
	p->elements = (int64_t)row_elements(shape, p->element, &row);
	p->stride = row;
	p->path = strdup(s->path);
	p->fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
	if (!p->path || p->fd < 0)
		return yk_fail(YOKE_ENOMEM, "%s: cannot be reopened: %s", s->path, strerror(errno));
	return 0;
}

static int check_fields(const struct spec *s, const struct yk_safetensors *f)
{
	char name[256];
	for (const char *at = s->word[FIELDS]; at && *at;
	     at += strcspn(at, ","), at += *at == ',') {
		snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
		if (!yk_safetensors_find(f, name))
			return yk_fail(YOKE_ENOENT,
				       "dataset_open: %s: fields: there is no array '%s'", s->path,
				       name);
	}
	return 0;
}

static yoke_dataset *arrays(const struct spec *s, const struct yk_safetensors *f, uint64_t hash)
{
	const char *fields = s->word[FIELDS];
	struct yk_field_file *part = calloc((size_t)f->count + 1, sizeof *part);
	struct yk_field_shape *shape = calloc((size_t)f->count + 1, sizeof *shape);
	yoke_dataset *d = NULL;
	int64_t rows = 0;
	int n = 0, e = part && shape ? check_fields(s, f) :
				       yk_fail(YOKE_ENOMEM, "dataset_open: no memory");
	for (int i = 0; i < f->count && e == 0; i++) {
		const struct yk_safetensors_entry *x = &f->entries[i];
		if (!yk_listed(fields, x->name))
			continue;
		if (!fields && !element_name(x->dtype)) {
			yk_warn("data", "%s: array %.80s is skipped: dtype %s is not supported",
				s->path, x->name, yk_safetensors_dtype(x->dtype));
			continue;
		}
		e = array_part(s, f, x, &part[n], &shape[n]);
		n++;
		if (e == 0 && rows && x->dims[0] != rows)
			e = yk_fail(
				YOKE_ESHAPE,
				"%s: array %s has %lld rows, the others %lld; name some with fields=",
				s->path, x->name, (long long)x->dims[0], (long long)rows);
		rows = x->dims[0];
	}
	if (e == 0 && n == 0)
		e = yk_fail(YOKE_EFORMAT, "%s: holds no arrays", s->path);
	if (e == 0)
		d = yk_field_files_dataset(s->path, rows, n, part, shape,
				 yk_hash(fields ? fields : "", fields ? strlen(fields) : 0, hash));
	else if (part)
		yk_field_files_close(n, part);
	free(part);
	free(shape);
	return d;
}

// tokens: a token file is required; either: a token file is opened as one, other files as arrays.
static yoke_dataset *open_safetensors(const struct spec *s, bool tokens, bool either)
{
	struct yk_safetensors f;
	struct yk_token_file t;
	yoke_dataset *d = NULL;
	uint64_t hash;
	if (yk_safetensors_open(&f, s->path) < 0)
		return NULL;
	tokens |= either && yk_token_file_is(&f);
	int e = yk_file_sample(f.fd, s->path, f.bytes, &hash);
	if (e == 0 && tokens)
		e = yk_token_file_take(&t, &f);
	if (e == 0 && tokens && !s->number[CONTEXT])
		e = yk_fail(
			YOKE_EINVAL,
			"dataset_open: %s: is a token file; give context=, the tokens of a sample",
			s->path);
	if (e == 0 && tokens)
		e = unfit(s, "token files", 0, 1 << CONTEXT | 1 << VOCAB);
	if (e == 0 && tokens && s->number[VOCAB] && s->number[VOCAB] != t.vocab)
		e = yk_fail(YOKE_EINVAL, "dataset_open: vocab=%lld: %s has a vocabulary of %lld",
			    (long long)s->number[VOCAB], s->path, (long long)t.vocab);
	if (e == 0 && !tokens && s->number[CONTEXT])
		e = yk_fail(YOKE_EINVAL, "dataset_open: %s: context=%lld: is not a token file",
			    s->path, (long long)s->number[CONTEXT]);
	if (e == 0 && !tokens)
		e = unfit(s, "arrays of safetensors files", 1 << FIELDS, 0);
	if (e == 0 && tokens) {
		struct yk_field_file p = { .element = t.element,
					   .offset = t.offset,
					   .path = strdup(s->path),
					   .fd = fcntl(f.fd, F_DUPFD_CLOEXEC, 0) };
		if (p.path && p.fd >= 0)
			d = yk_windows_set(&p, t.count, s->number[CONTEXT], t.vocab, hash);
		else
			yk_field_files_close(1, &p),
				yk_fail(YOKE_ENOMEM, "%s: cannot be reopened", s->path);
	} else if (e == 0) {
		d = arrays(s, &f, hash);
	}
	yk_safetensors_close(&f);
	return d;
}

// ---- entry point ----

enum format { RAW, NPY, NPZ, SAFETENSORS, TOKENS, CSV, TSV, JSONL, IMAGES, AUTO };
static const char *const formats[] = {
	[NPY] = "npy",       [NPZ] = "npz",       [SAFETENSORS] = "safetensors",
	[TOKENS] = "tokens", [CSV] = "csv",       [TSV] = "tsv",
	[JSONL] = "jsonl",   [IMAGES] = "images", [AUTO] = "auto"
};

static enum format format_named(const char *name)
{
	for (int f = NPY; f <= AUTO; f++)
		if (!strcmp(name, formats[f]))
			return (enum format)f;
	return RAW;
}

// Detects the format by the file's first bytes; AUTO: unknown.
static int format_within(const char *path, enum format *to)
{
	char head[YK_KIND_BEGIN] = "";
	uint64_t bytes = 0;
	const int fd = yk_file_open(path, &bytes);
	if (fd < 0)
		return fd;
	const size_t n = bytes < sizeof head ? (size_t)bytes : sizeof head;
	int err = yk_file_read_at(fd, path, 0, head, n);
	close(fd);
	*to = !memcmp(head, "\x93NUMPY", 6) ? NPY :
	      !memcmp(head, "PK\x03\x04", 4) ? NPZ :
	      yk_safetensors_begins(head)   ? SAFETENSORS :
					      AUTO;
	if (!err && *to == AUTO && yk_file_kind(head, n))
		err = yk_file_refused(path, head, n,
				      "a file of samples that is read without format=", "");
	return err;
}

// Detects the format by the type of the path or the suffix; AUTO: unknown.
static enum format format_of(const char *path)
{
	const char *end = strrchr(path, '.');
	struct stat st;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return IMAGES;
	enum format f = AUTO;
	for (int i = NPY; end && i < AUTO; i++)
		f = yk_same_word(end + 1, formats[i]) ? (enum format)i : f;
	return f == NPY || f == NPZ || f == SAFETENSORS || f == CSV || f == TSV || f == JSONL ?
		       f :
		       AUTO;
}

static yoke_dataset *open_images(const struct spec *s)
{
	const struct yk_image_settings o = { s->word[SIZE], s->word[CROP], s->word[ZOOM],
					     s->word[FLIP], s->word[MEAN], s->word[STD] };
	const unsigned words = 1 << SIZE | 1 << CROP | 1 << ZOOM | 1 << FLIP | 1 << MEAN | 1 << STD;
	return unfit(s, "images", words, 0) == 0 ? yk_images_open(s->path, &o) : NULL;
}

// The separator that delimiter= names, or the one that is found in the file, which is logged unless
// it is usual.
static int find_delimiter(const struct spec *s, char usual, char *to)
{
	const char *given = s->word[DELIMITER];
	char name[8];
	if (given && !strcmp(given, "tab")) {
		*to = '\t';
		return 0;
	}
	if (given && (strlen(given) != 1 || *given < '!' || *given > '~' || *given == '"'))
		return yk_fail(
			YOKE_EINVAL,
			"dataset_open: delimiter=%s: must be a character such as , ; or |, or tab",
			given);
	if (given) {
		*to = *given;
		return 0;
	}
	const int e = yk_csv_delimiter(s->path, usual, to);
	if (e < 0 || *to == usual)
		return e;
	snprintf(name, sizeof name, *to == '\t' ? "tab" : "%c", *to);
	yk_warn("data",
		"%s: its cells are separated by '%s', as its first records show; delimiter=%s reads it without this line",
		s->path, name, name);
	return 0;
}

static yoke_dataset *open_table(const struct spec *s, char usual)
{
	const char *header = s->word[HEADER];
	char separator;
	if (unfit(s, "tables", 1 << COLUMNS | 1 << DELIMITER | 1 << HEADER, 0) < 0)
		return NULL;
	if (header && strcmp(header, "0") && strcmp(header, "1")) {
		yk_fail(YOKE_EINVAL, "dataset_open: header=%s: must be 0 or 1", header);
		return NULL;
	}
	if (find_delimiter(s, usual, &separator) < 0)
		return NULL;
	return yk_csv_open(s->path, separator, s->word[COLUMNS], !header || *header == '1');
}

static yoke_dataset *open_jsonl(const struct spec *s)
{
	if (s->word[FIELD])
		return unfit(s, "JSON lines", 1 << FIELD, 0) == 0 ?
			       yk_jsonl_open(s->path, s->word[FIELD]) :
			       NULL;
	yk_fail(YOKE_EINVAL, "dataset_open: %s: JSON lines take field=, the name of a string",
		s->path);
	return NULL;
}

static yoke_dataset *open_one(const struct spec *s)
{
	enum format f = s->word[FORMAT] ? format_named(s->word[FORMAT]) : AUTO;
	const bool either = f == AUTO;
	if (yk_is_stream(s->path))
		return open_stream(s);
	f = either ? format_of(s->path) : f;
	if (f == AUTO && format_within(s->path, &f) < 0)
		return NULL;
	switch (f) {
	case NPY: return unfit(s, ".npy files", 0, 0) == 0 ? open_npy(s) : NULL;
	case NPZ:
		return unfit(s, ".npz files", 1 << FIELDS, 0) == 0 ?
			       yk_npz_open(s->path, s->word[FIELDS]) :
			       NULL;
	case SAFETENSORS:
	case TOKENS: return open_safetensors(s, f == TOKENS, either);
	case CSV: return open_table(s, ',');
	case TSV: return open_table(s, '\t');
	case JSONL: return open_jsonl(s);
	case IMAGES: return open_images(s);
	case RAW: return open_raw(s);
	case AUTO: break;
	}
	yk_fail(YOKE_EINVAL,
		"dataset_open: %s: cannot tell the format from its name or first bytes; give format=npy, npz, safetensors, "
		"tokens, csv, tsv, jsonl, images or TYPE:OFFSET; of text, yoke data prepare makes a token file",
		s->path);
	return NULL;
}

// ---- lists of shards ----

struct shards {
	struct spec *spec;
	yoke_dataset **set;
	size_t cap;
	int n;
};

static int add_shard(void *arg, const char *path)
{
	struct shards *x = arg;
	x->spec->path = path;
	if (yk_grow(&x->set, &x->cap, (size_t)x->n + 1, sizeof *x->set) < 0)
		return yk_fail(YOKE_ENOMEM, "dataset_open: no memory for the list of files");
	yoke_dataset *d = open_one(x->spec);
	if (!d)
		return yoke_error_code();
	x->set[x->n++] = d;
	for (int f = 0; f < d->fields && x->n > 1; f++)
		if (yoke_dataset_label(d, d->field[f].name, 0))
			return yk_fail(
				YOKE_EINVAL,
				"dataset_open: %s: field %s is of categories, which each of several files "
				"would number on its own; put them into one",
				path, d->field[f].name);
	return 0;
}

// Concatenates the shards; samples that vary may be as long as the longest of all files.
static yoke_dataset *join(struct shards *x)
{
	if (x->n == 1)
		return yk_dataset_ref(x->set[0]);
	for (int pass = 0; pass < 2; pass++)
		for (int i = 1; i < x->n; i++)
			yk_dataset_widen(x->set[pass ? i : 0], x->set[pass ? 0 : i]);
	return yoke_dataset_concat(x->n, x->set);
}

yoke_dataset *yoke_dataset_open(const char *path, const char *settings)
{
	struct spec s = { .path = path };
	struct shards x = { .spec = &s };
	yoke_dataset *d = NULL;
	if (!path || !*path)
		yk_fail(YOKE_EINVAL, "dataset_open: no path is given");
	else if (parse(&s, settings) == 0 && yk_walk_list(path, add_shard, &x) == 0)
		d = join(&x);
	for (int i = 0; i < x.n; i++)
		yoke_dataset_free(x.set[i]);
	free(x.set);
	free(s.copy);
	return d;
}
