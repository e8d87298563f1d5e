// SPDX-License-Identifier: Apache-2.0
// Sets of what files hold.
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/param.h"
#include "data/lines.h"
#include "data/part.h"
#include "data/source.h"
#include "data/tokenfile.h"
#include "formats/safetensors.h"

struct spec {
	const char *path;
	char *copy;                           // of the settings, which the words below lie in
	const char *format, *fields, *dims, *columns, *field; // NULL: not given
	int64_t context, vocab;
};

// ---- settings ----

static int whole(const char *key, const char *value, int64_t least, int64_t *to)
{
	char *end;
	errno = 0;
	const long long n = strtoll(value, &end, 10);
	if (errno || !*value || *end || *value < '0' || *value > '9' || n < least || n > INT32_MAX)
		return yk_fail(YOKE_EINVAL, "dataset_open: %s=%s: must be a whole number from %lld to %d", key, value,
			       (long long)least, INT32_MAX);
	*to = n;
	return 0;
}

static int take(struct spec *s, char *word)
{
	static const char *const keys[] = { "format", "fields", "dims", "columns", "field", "context", "vocab" };
	char hint[200], *value = strchr(word, '=');
	if (!value)
		return yk_fail(YOKE_EINVAL, "dataset_open: '%s' is not key=value", word);
	*value++ = 0;
	if (!strcmp(word, "context"))
		return whole(word, value, 1, &s->context);
	if (!strcmp(word, "vocab"))
		return whole(word, value, 0, &s->vocab);
	const char **const text[] = { &s->format, &s->fields, &s->dims, &s->columns, &s->field };
	for (int i = 0; i < 5; i++)
		if (!strcmp(word, keys[i])) {
			*text[i] = value;
			return 0;
		}
	return yk_fail(YOKE_EINVAL, "dataset_open: there is no key '%s'; %s", word,
		       yk_hint(word, keys, 7, hint, sizeof hint));
}

static int parse(struct spec *s, const char *settings)
{
	char *rest = s->copy = strdup(settings ? settings : ""), *word;
	int e = s->copy ? 0 : yk_fail(YOKE_ENOMEM, "dataset_open: no memory");
	while (e == 0 && (word = strsep(&rest, " ")))
		if (*word)
			e = take(s, word);
	return e;
}

static int unfit(const struct spec *s, const char *key, const char *value, const char *what)
{
	return value ? yk_fail(YOKE_EINVAL, "dataset_open: %s: %s=%s: %s have none", s->path, key, value, what) : 0;
}

// ---- formats ----

static int open_part(const struct spec *s, const char *field, struct yk_part *p, uint64_t *bytes, uint64_t *hash)
{
	*p = (struct yk_part){ .fd = -1, .path = strdup(s->path) };
	if (!p->path)
		return yk_fail(YOKE_ENOMEM, "dataset_open: no memory");
	snprintf(p->name, sizeof p->name, "%s", field);
	p->fd = yk_file_open(s->path, bytes);
	return p->fd < 0 ? p->fd : yk_file_sample(p->fd, s->path, *bytes, hash);
}

static int parse_dims(const struct spec *s, struct yk_parts_shape *to)
{
	const char *at = s->dims;
	to->rank = 0;
	while (at && *at) {
		char *end;
		errno = 0;
		const long long n = strtoll(at, &end, 10);
		if (errno || *at < '0' || *at > '9' || n < 1 || to->rank == YOKE_MAX_RANK - 1 ||
		    (*end && (*end != 'x' || !end[1])))
			return yk_fail(YOKE_EINVAL, "dataset_open: dims=%s: must be up to %d numbers above 0, as 3x4",
				       s->dims, YOKE_MAX_RANK - 1);
		to->dims[to->rank++] = n;
		at = *end ? end + 1 : end;
	}
	return 0;
}

// Rows of a shape; 0: too large.
static uint64_t row_elements(const struct yk_parts_shape *shape, const struct yk_element *e, uint64_t *bytes)
{
	uint64_t n = 1;
	*bytes = 0;
	for (int k = 0; k < shape->rank; k++)
		if (__builtin_mul_overflow(n, (uint64_t)shape->dims[k], &n))
			return 0;
	return n > INT64_MAX / 8 || __builtin_mul_overflow(n, (uint64_t)e->width, bytes) ? 0 : n;
}

static yoke_dataset *open_raw(const struct spec *s)
{
	const size_t length = strcspn(s->format, ":");
	const struct yk_element *element = yk_element_named(s->format, length);
	struct yk_parts_shape shape;
	struct yk_part p;
	int64_t offset = 0;
	uint64_t bytes, hash, row;
	if (!element) {
		yk_fail(YOKE_EINVAL, "dataset_open: %s: format=%s: must be auto, npy, safetensors, tokens, csv, tsv, jsonl, "
			"or TYPE:OFFSET as u16:1024", s->path, s->format);
		return NULL;
	}
	if ((s->format[length] && whole("format's OFFSET", s->format + length + 1, 0, &offset) < 0) ||
	    unfit(s, "fields", s->fields, "raw elements") < 0 || parse_dims(s, &shape) < 0)
		return NULL;
	int e = open_part(s, "x", &p, &bytes, &hash);
	p.element = element;
	p.offset = (uint64_t)offset;
	if (e == 0 && (bytes < p.offset || (bytes - p.offset) % (uint64_t)element->width))
		e = yk_fail(YOKE_EFORMAT, "%s: has %llu bytes, which are no whole number of %s behind byte %lld", s->path,
			    (unsigned long long)bytes, element->name, (long long)offset);
	const uint64_t all = e == 0 ? (bytes - p.offset) / (uint64_t)element->width : 0;
	hash = e == 0 ? yk_hash(s->format, strlen(s->format), hash) : 0;
	if (e == 0 && s->context)
		return yk_windows_set(&p, all, s->context, s->vocab, hash);
	if (e == 0) {
		p.elements = (int64_t)row_elements(&shape, element, &row);
		p.stride = row;
		if (!p.elements || all % (uint64_t)p.elements || !all)
			e = yk_fail(YOKE_EFORMAT, "%s: has %llu elements, which are no whole number of samples of dims=%s",
				    s->path, (unsigned long long)all, s->dims ? s->dims : "1");
	}
	if (e < 0) {
		yk_parts_close(1, &p);
		return NULL;
	}
	return yk_parts_set(s->path, (int64_t)all / p.elements, 1, &p, &shape, hash);
}

static yoke_dataset *open_npy(const struct spec *s)
{
	struct yk_npy n;
	struct yk_part p;
	uint64_t bytes, hash;
	char *head = malloc(YK_NPY_HEADER);
	int e = head ? open_part(s, "x", &p, &bytes, &hash) : yk_fail(YOKE_ENOMEM, "dataset_open: no memory");
	if (e == 0) {
		const size_t length = bytes < YK_NPY_HEADER ? bytes : YK_NPY_HEADER;
		e = yk_file_read_at(p.fd, s->path, 0, head, length);
		if (e == 0)
			e = yk_npy_header(&n, s->path, head, length, bytes);
	}
	if (head && e < 0)
		yk_parts_close(1, &p);
	free(head);
	if (e < 0)
		return NULL;
	struct yk_parts_shape shape = { .rank = n.rank - 1 };
	uint64_t row;
	memcpy(shape.dims, n.dims + 1, sizeof shape.dims[0] * (size_t)shape.rank);
	p.element = n.element;
	p.swap = n.swap;
	p.offset = n.offset;
	p.elements = (int64_t)row_elements(&shape, n.element, &row);
	p.stride = row;
	if (n.fortran && n.rank > 1) {
		p.rank = n.rank;
		memcpy(p.dims, n.dims, sizeof p.dims);
	}
	return yk_parts_set(s->path, n.dims[0], 1, &p, &shape, hash);
}

// ---- safetensors ----

static int array_part(const struct spec *s, const struct yk_safetensors *f, const struct yk_safetensors_entry *x,
		      struct yk_part *p, struct yk_parts_shape *shape)
{
	uint64_t row;
	const bool u16 = x->dtype == YK_SAFETENSORS_U16, u32 = x->dtype == YK_SAFETENSORS_U32;
	const char *type = u16 ? "u16" : u32 ? "u32" : yoke_dtype_name(x->dtype);
	*p = (struct yk_part){ .fd = -1, .element = yk_element_named(type, strlen(type)), .offset = x->offset };
	if (strlen(x->name) >= sizeof p->name)
		return yk_fail(YOKE_EUNSUPPORTED, "%s: array %.80s..: names of fields have up to %zu bytes", s->path, x->name,
			       sizeof p->name - 1);
	if (x->rank == 0 || x->bytes == 0)
		return yk_fail(YOKE_EFORMAT, "%s: array %s: has no rows; name others with fields=", s->path, x->name);
	snprintf(p->name, sizeof p->name, "%s", x->name);
	shape->rank = x->rank - 1;
	memcpy(shape->dims, x->dims + 1, sizeof shape->dims[0] * (size_t)shape->rank);
	p->elements = (int64_t)row_elements(shape, p->element, &row);
	p->stride = row;
	p->path = strdup(s->path);
	p->fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
	if (!p->path || p->fd < 0)
		return yk_fail(YOKE_ENOMEM, "%s: cannot be opened once more: %s", s->path, strerror(errno));
	return 0;
}

static bool wanted(const struct spec *s, const char *name)
{
	if (!s->fields)
		return true;
	const size_t length = strlen(name);
	for (const char *at = s->fields; *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == length && !strncmp(at, name, length))
			return true;
	return false;
}

static int check_fields(const struct spec *s, const struct yk_safetensors *f)
{
	char name[256];
	for (const char *at = s->fields; at && *at; at += strcspn(at, ","), at += *at == ',') {
		snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
		if (!yk_safetensors_find(f, name))
			return yk_fail(YOKE_ENOENT, "dataset_open: %s: fields: there is no array '%s'", s->path, name);
	}
	return 0;
}

static yoke_dataset *arrays(const struct spec *s, const struct yk_safetensors *f, uint64_t hash)
{
	struct yk_part *part = calloc((size_t)f->count + 1, sizeof *part);
	struct yk_parts_shape *shape = calloc((size_t)f->count + 1, sizeof *shape);
	yoke_dataset *d = NULL;
	int64_t rows = 0;
	int n = 0, e = part && shape ? check_fields(s, f) : yk_fail(YOKE_ENOMEM, "dataset_open: no memory");
	for (int i = 0; i < f->count && e == 0; i++) {
		const struct yk_safetensors_entry *x = &f->entries[i];
		if (!wanted(s, x->name))
			continue;
		e = array_part(s, f, x, &part[n], &shape[n]);
		n++;
		if (e == 0 && rows && x->dims[0] != rows)
			e = yk_fail(YOKE_ESHAPE, "%s: array %s has %lld rows, the others %lld; name some with fields=", s->path,
				    x->name, (long long)x->dims[0], (long long)rows);
		rows = x->dims[0];
	}
	if (e == 0 && n == 0)
		e = yk_fail(YOKE_EFORMAT, "%s: holds no arrays", s->path);
	if (e == 0)
		d = yk_parts_set(s->path, rows, n, part, shape,
				 yk_hash(s->fields ? s->fields : "", s->fields ? strlen(s->fields) : 0, hash));
	else if (part)
		yk_parts_close(n, part);
	free(part);
	free(shape);
	return d;
}

// tokens: is a token file asked for?  auto: where it is one.
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
	if (e == 0 && tokens && !s->context)
		e = yk_fail(YOKE_EINVAL, "dataset_open: %s: is a token file; give context=, the tokens of a sample", s->path);
	if (e == 0 && tokens)
		e = unfit(s, "fields", s->fields, "token files");
	if (e == 0 && tokens && s->vocab && s->vocab != t.vocab)
		e = yk_fail(YOKE_EINVAL, "dataset_open: vocab=%lld: %s has a vocabulary of %lld", (long long)s->vocab, s->path,
			    (long long)t.vocab);
	if (e == 0 && !tokens && s->context)
		e = yk_fail(YOKE_EINVAL, "dataset_open: %s: context=%lld: is no token file", s->path, (long long)s->context);
	if (e == 0 && tokens) {
		struct yk_part p = { .element = t.element, .offset = t.offset, .path = strdup(s->path),
				     .fd = fcntl(f.fd, F_DUPFD_CLOEXEC, 0) };
		if (p.path && p.fd >= 0)
			d = yk_windows_set(&p, t.count, s->context, t.vocab, hash);
		else
			yk_parts_close(1, &p), yk_fail(YOKE_ENOMEM, "%s: cannot be opened once more", s->path);
	} else if (e == 0) {
		d = arrays(s, &f, hash);
	}
	yk_safetensors_close(&f);
	return d;
}

// ---- entry point ----

static bool ends(const char *path, const char *end)
{
	const size_t n = strlen(path), m = strlen(end);
	return n >= m && !strcmp(path + n - m, end);
}

// Formats of text; false: it is none of these.
static bool open_text(const struct spec *s, const char *format, bool either, yoke_dataset **to)
{
	const bool csv = either ? ends(s->path, ".csv") : !strcmp(format, "csv");
	const bool tsv = either ? ends(s->path, ".tsv") : !strcmp(format, "tsv");
	const bool jsonl = either ? ends(s->path, ".jsonl") : !strcmp(format, "jsonl");
	if (!csv && !tsv && !jsonl)
		return false;
	if (s->dims || s->fields || s->context || s->vocab || (jsonl ? s->columns : s->field) || (jsonl && !s->field))
		yk_fail(YOKE_EINVAL, "dataset_open: %s: %s", s->path,
			jsonl ? "JSON lines take field=, the name of a string, and nothing else" :
				"tables take columns= and nothing else");
	else
		*to = jsonl ? yk_jsonl_open(s->path, s->field) : yk_csv_open(s->path, csv ? ',' : '\t', s->columns);
	return true;
}

static yoke_dataset *open_any(const struct spec *s)
{
	const char *format = s->format ? s->format : "auto";
	const bool either = !strcmp(format, "auto");
	const bool npy = either ? ends(s->path, ".npy") : !strcmp(format, "npy");
	yoke_dataset *text = NULL;
	if (open_text(s, format, either, &text))
		return text;
	if (s->columns || s->field) {
		yk_fail(YOKE_EINVAL, "dataset_open: %s: columns= and field= are of tables and JSON lines", s->path);
		return NULL;
	}
	const bool arrays_of = either ? ends(s->path, ".safetensors") : !strcmp(format, "safetensors");
	if (npy || arrays_of || !strcmp(format, "tokens")) {
		if (unfit(s, "dims", s->dims, "formats that say their dims") < 0)
			return NULL;
		if (!npy)
			return open_safetensors(s, !strcmp(format, "tokens"), either);
		if (s->context || s->vocab || s->fields) {
			yk_fail(YOKE_EINVAL, "dataset_open: %s: context, vocab and fields are of other formats than npy",
				s->path);
			return NULL;
		}
		return open_npy(s);
	}
	if (!either)
		return open_raw(s);
	yk_fail(YOKE_EINVAL, "dataset_open: %s: its name does not say its format; give format=", s->path);
	return NULL;
}

yoke_dataset *yoke_dataset_open(const char *path, const char *settings)
{
	struct spec s = { .path = path };
	yoke_dataset *d = NULL;
	if (!path || !*path)
		yk_fail(YOKE_EINVAL, "dataset_open: there is no path");
	else if (parse(&s, settings) == 0)
		d = open_any(&s);
	free(s.copy);
	return d;
}
