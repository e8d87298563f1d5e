// SPDX-License-Identifier: Apache-2.0
// Reads GGUF files through a cursor that cannot leave the mapped file.
#include "config.h"

#include "formats/gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/endian.h"
#include "base/error.h"
#include "base/file.h"
#include "base/kind.h"

enum {
	MAX_NAME = 255,       // bytes of a key or of a tensor's name
	MAX_FILES = 9999,     // of a split model
	MIN_KEY = 8 + 4 + 1,  // bytes of the smallest key
	MIN_TENSOR = 8 + 4 + 4 + 8,
	ALIGNMENT = 32,       // unless general.alignment is given
	MAX_ALIGNMENT = 1 << 20,
};

static const struct {
	const char *name;
	unsigned number, elements, bytes;
} formats[] = {
#define X(name, number, elements, bytes) { #name, number, elements, bytes },
	YK_GGUF_FORMATS(X)
#undef X
};

const char *yk_gguf_format_name(unsigned format, unsigned *elements, unsigned *bytes)
{
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		if (formats[i].number != format)
			continue;
		*elements = formats[i].elements;
		*bytes = formats[i].bytes;
		return formats[i].name;
	}
	return NULL;
}

// ---- reading ----

// A position in a file.  After an error all reads give zeros, and the first error is kept.
struct cursor {
	const struct yk_gguf_file *f;
	uint64_t at;
	int error;
};

static int damaged(struct cursor *c, const char *what)
{
	if (!c->error)
		c->error = yk_fail(YOKE_EFORMAT,
				   "%s: offset %" PRIu64
				   ": %s; the file is damaged, or was not copied completely",
				   c->f->path, c->at, what);
	return c->error;
}

static const unsigned char *take(struct cursor *c, uint64_t bytes, const char *what)
{
	if (!c->error && bytes > c->f->bytes - c->at) {
		char text[120];
		snprintf(text, sizeof text,
			 "%s takes %" PRIu64 " bytes, but only %" PRIu64 " are left", what, bytes,
			 c->f->bytes - c->at);
		damaged(c, text);
	}
	if (c->error)
		return NULL;
	c->at += bytes;
	return c->f->map + c->at - bytes;
}

static uint32_t take_u32(struct cursor *c, const char *what)
{
	uint32_t v = 0;
	const unsigned char *p = take(c, sizeof v, what);
	if (p)
		memcpy(&v, p, sizeof v);
	return v;
}

static uint64_t take_u64(struct cursor *c, const char *what)
{
	uint64_t v = 0;
	const unsigned char *p = take(c, sizeof v, what);
	if (p)
		memcpy(&v, p, sizeof v);
	return v;
}

// A name, copied to the arena.
static const char *take_name(struct cursor *c, struct yk_gguf *g, const char *what)
{
	const uint64_t n = take_u64(c, what);
	if (!c->error && (n == 0 || n > MAX_NAME))
		damaged(c, n ? "a name is longer than 255 bytes" : "a name is empty");
	const unsigned char *p = take(c, c->error ? 0 : n, what);
	if (p && memchr(p, 0, n))
		damaged(c, "a name contains a NUL");
	char *name = p && !c->error ? yk_arena_alloc(&g->names, n + 1) : NULL;
	if (name)
		memcpy(name, p, n);
	else if (!c->error)
		c->error = yk_fail(YOKE_ENOMEM, "%s: no memory for a name", c->f->path);
	return name;
}

// Bytes of a value of fixed size; 0: a string, an array or unknown.
static unsigned size_of(unsigned type)
{
	static const unsigned char size[] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
	return type < sizeof size ? size[type] : 0;
}

// ---- metadata ----

static bool is_int(const struct yk_gguf_key *k)
{
	return k->type != YK_GGUF_FLOAT && k->type != YK_GGUF_DOUBLE && k->type != YK_GGUF_STRING;
}

static void take_value(struct cursor *c, struct yk_gguf_key *k)
{
	uint32_t type = take_u32(c, "a key's type");
	k->count = 1;
	k->array = type == YK_GGUF_ARRAY;
	if (k->array) {
		type = take_u32(c, "an array's type");
		k->count = take_u64(c, "an array's count");
	}
	k->type = type;
	if (c->error)
		return;
	if (!size_of(type) && type != YK_GGUF_STRING) {
		char text[400];
		snprintf(text, sizeof text, "key '%s' has %s %" PRIu32, k->name,
			 type == YK_GGUF_ARRAY ? "an array of arrays, type" : "the unknown type",
			 type);
		damaged(c, text);
		return;
	}
	// a string has at least its length
	const uint64_t each = size_of(type) ? size_of(type) : 8, left = c->f->bytes - c->at;
	if (k->count > left / each) {
		char text[400];
		snprintf(text, sizeof text,
			 "key '%s' has %" PRIu64 " elements, but only %" PRIu64 " bytes are left",
			 k->name, k->count, left);
		damaged(c, text);
		return;
	}
	k->data = c->f->map + c->at;
	const uint64_t begin = c->at;
	if (type != YK_GGUF_STRING)
		take(c, k->count * each, "a value");
	else
		for (uint64_t i = 0; i < k->count && !c->error; i++)
			take(c, take_u64(c, "a string's length"), "a string");
	k->bytes = c->at - begin;
}

static int by_name(const void *a, const void *b)
{
	// both structures begin with the name
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Sorts, and refuses a name that occurs twice.
static int sort_names(const struct yk_gguf *g, void *array, size_t n, size_t each, const char *what)
{
	if (n)
		qsort(array, n, each, by_name);
	for (size_t i = 1; i < n; i++) {
		const char *const *x = (const void *)((const char *)array + (i - 1) * each);
		const char *const *y = (const void *)((const char *)array + i * each);
		if (!strcmp(*x, *y))
			return yk_fail(YOKE_EFORMAT, "%s: %s '%s' occurs twice", g->path, what, *x);
	}
	return 0;
}

// The keys split.no and split.count of a further file of a split model; -1: absent.
struct split {
	int64_t no, count;
};

static void note_split(const struct yk_gguf_key *k, struct split *to)
{
	const bool no = !strcmp(k->name, "split.no"), count = !strcmp(k->name, "split.count");
	if ((no || count) && !k->array && is_int(k))
		*(no ? &to->no : &to->count) = yk_gguf_int_at(k, 0);
}

// A copy of another file in its place would be read as a model that lacks tensors, or has wrong
// ones.
static int check_split(const struct yk_gguf *g, const char *path, const struct split *is)
{
	int64_t count = 1;
	const int e = yk_gguf_int(g, "split.count", 1, MAX_FILES, &count);
	if (e < 0 || (is->no == g->files && is->count == count))
		return e < 0 ? e : 0;
	return yk_fail(
		YOKE_EFORMAT,
		"%s: its keys split.no and split.count do not say that it is file %d of %" PRId64
		" of the split model; copy it again",
		path, g->files + 1, count);
}

// Reads the keys of a file, and keeps those of the first file.  *alignment: of its tensors.
static int take_keys(struct yk_gguf *g, struct cursor *c, uint64_t n, bool keep,
		     uint32_t *alignment)
{
	if (n > (c->f->bytes - c->at) / MIN_KEY)
		return damaged(c, "there are more keys than fit in the file");
	struct split split = { -1, -1 };
	for (uint64_t i = 0; i < n && !c->error; i++) {
		struct yk_gguf_key k = { .name = take_name(c, g, "a key's name") };
		if (!c->error)
			take_value(c, &k);
		if (!c->error && !strcmp(k.name, "general.alignment")) {
			if (k.array || k.type != YK_GGUF_U32)
				return damaged(c, "general.alignment is not a u32");
			memcpy(alignment, k.data, sizeof *alignment);
			if (*alignment == 0 || *alignment > MAX_ALIGNMENT ||
			    *alignment & (*alignment - 1))
				return damaged(
					c,
					"general.alignment is not a power of two from 1 to 2^20");
		}
		if (!c->error && !keep)
			note_split(&k, &split);
		if (c->error || !keep)
			continue;
		if (yk_grow(&g->key, &g->key_cap, g->keys + 1, sizeof *g->key) < 0)
			return yoke_error_code();
		g->key[g->keys++] = k;
	}
	if (c->error)
		return c->error;
	return keep ? sort_names(g, g->key, g->keys, sizeof *g->key, "key") :
		      check_split(g, c->f->path, &split);
}

// ---- tensors ----

static void check_tensor(struct cursor *c, struct yk_gguf_tensor *t, uint32_t rank)
{
	char text[400];
	unsigned elements, bytes;
	uint64_t count = 1;
	if (rank < 1 || rank > 4) {
		snprintf(text, sizeof text, "tensor '%s' has %" PRIu32 " dims; 1 to 4 are possible",
			 t->name, rank);
		damaged(c, text);
		return;
	}
	t->rank = (int)rank;
	for (int i = t->rank; i-- > 0;) {
		const uint64_t n = take_u64(c, "a tensor's dims");
		if (!c->error && (n < 1 || n > (UINT64_C(1) << 48) / count)) {
			snprintf(text, sizeof text,
				 "tensor '%s' has a dim of %" PRIu64 ", or too many elements",
				 t->name, n);
			damaged(c, text);
		}
		if (c->error)
			return;
		t->dims[i] = (int64_t)n;
		count *= n;
	}
	t->format = take_u32(c, "a tensor's format");
	if (c->error)
		return;
	const char *name = yk_gguf_format_name(t->format, &elements, &bytes);
	if (!name)
		snprintf(text, sizeof text, "tensor '%s' has the unknown format %u", t->name,
			 (unsigned)t->format);
	else if (t->dims[t->rank - 1] % elements)
		snprintf(text, sizeof text,
			 "tensor '%s' has rows of %" PRId64 " elements, no multiple of %s's %u",
			 t->name, t->dims[t->rank - 1], name, elements);
	if (!name || t->dims[t->rank - 1] % elements) {
		damaged(c, text);
		return;
	}
	t->bytes = count / elements * bytes;
}

static int by_data(const void *a, const void *b)
{
	const struct yk_gguf_tensor *x = a, *y = b;
	return x->data != y->data ? (x->data > y->data) - (x->data < y->data) :
				    (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

// Turns offsets into pointers; refuses tensors that overlap or exceed the file.
static int place_tensors(struct cursor *c, struct yk_gguf_tensor *t, size_t n,
			 const uint64_t *offset, uint64_t alignment)
{
	char text[700];
	const uint64_t begin = (c->at + alignment - 1) / alignment * alignment;
	for (size_t i = 0; i < n; i++) {
		const uint64_t left = begin > c->f->bytes ? 0 : c->f->bytes - begin;
		*text = 0;
		if (offset[i] % alignment)
			snprintf(text, sizeof text,
				 "tensor '%s' begins at %" PRIu64
				 ", no multiple of the alignment %" PRIu64,
				 t[i].name, offset[i], alignment);
		else if (offset[i] > left || t[i].bytes > left - offset[i])
			snprintf(text, sizeof text,
				 "tensor '%s' takes bytes %" PRIu64 " to %" PRIu64
				 " of the data, which has %" PRIu64,
				 t[i].name, offset[i], offset[i] + t[i].bytes, left);
		if (*text)
			return damaged(c, text);
		t[i].data = c->f->map + begin + offset[i];
	}
	if (n)
		qsort(t, n, sizeof *t, by_data);
	for (size_t i = 1; i < n; i++)
		if (t[i - 1].data + t[i - 1].bytes > t[i].data) {
			snprintf(text, sizeof text, "tensors '%s' and '%s' overlap", t[i - 1].name,
				 t[i].name);
			return damaged(c, text);
		}
	return 0;
}

static int take_tensors(struct yk_gguf *g, struct cursor *c, uint64_t n, uint64_t alignment)
{
	if (n > (c->f->bytes - c->at) / MIN_TENSOR)
		return damaged(c, "there are more tensors than fit in the file");
	uint64_t *offset = malloc((size_t)n * sizeof *offset + 1);
	if (!offset || yk_grow(&g->tensor, &g->tensor_cap, g->tensors + (size_t)n + 1,
			       sizeof *g->tensor) < 0) {
		free(offset);
		return yk_fail(YOKE_ENOMEM, "%s: no memory for %" PRIu64 " tensors", c->f->path, n);
	}
	struct yk_gguf_tensor *t = g->tensor + g->tensors;
	for (uint64_t i = 0; i < n && !c->error; i++) {
		t[i] = (struct yk_gguf_tensor){ .name = take_name(c, g, "a tensor's name"),
						.file = g->files };
		const uint32_t rank = take_u32(c, "a tensor's rank");
		if (!c->error)
			check_tensor(c, &t[i], rank);
		offset[i] = take_u64(c, "a tensor's offset");
	}
	const int e = c->error ? c->error : place_tensors(c, t, (size_t)n, offset, alignment);
	if (e == 0)
		g->tensors += (size_t)n;
	free(offset);
	return e;
}

// ---- files ----

static int map_file(struct yk_gguf_file *f)
{
	int e = yk_only_little(f->path, "GGUF");
	const int fd = e ? e : yk_file_open(f->path, &f->bytes);
	if (fd < 0)
		return fd;
	if (f->bytes < 24) {
		e = yk_file_refused_at(f->path, fd, "a GGUF file", "it has fewer than 24 bytes");
	} else if (f->bytes > PTRDIFF_MAX) {
		e = yk_file_beyond(f->path, f->bytes);
	} else {
		void *map = mmap(NULL, f->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
		if (map == MAP_FAILED)
			e = yk_fail(errno == ENOMEM ? YOKE_ENOMEM : YOKE_EIO,
				    "%s: cannot be mapped: %s", f->path, strerror(errno));
		else if (memcmp(f->map = map, "GGUF", 4))
			e = yk_file_refused_at(f->path, fd, "a GGUF file",
					       "it does not begin with GGUF");
	}
	close(fd);
	return e;
}

bool yk_gguf_is(const char *path)
{
	struct stat st;
	char begin[4];
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode)) // opening a FIFO would block
		return false;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const bool is = fd >= 0 && read(fd, begin, sizeof begin) == sizeof begin &&
			!memcmp(begin, "GGUF", sizeof begin);
	if (fd >= 0)
		close(fd);
	return is;
}

static int read_file(struct yk_gguf *g, struct cursor *c, bool first)
{
	uint32_t alignment = ALIGNMENT;
	c->at = 4;
	const uint32_t version = take_u32(c, "the version");
	if (version != 2 && version != 3)
		return yk_fail(YOKE_EFORMAT,
			       "%s: GGUF version %" PRIu32
			       "%s; versions 2 and 3, little endian, can be read",
			       c->f->path, version, version & 0xff000000 ? ", big endian" : "");
	const uint64_t tensors = take_u64(c, "the header"), keys = take_u64(c, "the header");
	const int e = take_keys(g, c, keys, first, &alignment);
	return e < 0 ? e : take_tensors(g, c, tensors, alignment);
}

// Opens and reads a file; g takes ownership of its path.
static int add_file(struct yk_gguf *g, char *path)
{
	struct yk_gguf_file *f = &g->file[g->files];
	*f = (struct yk_gguf_file){ .path = path };
	struct cursor c = { .f = f };
	int e = map_file(f);
	if (e == 0)
		e = read_file(g, &c, g->files == 0);
	g->files++;
	return e;
}

// The other files of a split model.
static int add_others(struct yk_gguf *g)
{
	int64_t no = 0, count = 1, tensors = -1;
	int at = 0, of = 0, end = 0;
	int e = yk_gguf_int(g, "split.count", 1, MAX_FILES, &count);
	if (e >= 0)
		e = yk_gguf_int(g, "split.no", 0, MAX_FILES, &no);
	if (e >= 0)
		e = yk_gguf_int(g, "split.tensors.count", 0, INT32_MAX, &tensors);
	if (e < 0 || count == 1)
		return e < 0 ? e : 0;
	const size_t n = strlen(g->path), tail = strlen("-00001-of-00002.gguf");
	if (n < tail || sscanf(g->path + n - tail, "-%5d-of-%5d.gguf%n", &at, &of, &end) != 2 ||
	    end != (int)tail || at != no + 1 || of != count)
		return yk_fail(YOKE_EFORMAT,
			       "%s: is file %" PRId64 " of %" PRId64
			       " of a split model; its name must end in "
			       "-%05" PRId64 "-of-%05" PRId64 ".gguf",
			       g->path, no + 1, count, no + 1, count);
	if (no > 0)
		return yk_fail(YOKE_EFORMAT,
			       "%s: is file %" PRId64 " of %" PRId64
			       " of a split model; give the first, "
			       "%.*s-00001-of-%05" PRId64 ".gguf",
			       g->path, no + 1, count, (int)(n - tail), g->path, count);
	struct yk_gguf_file *file = realloc(g->file, (size_t)count * sizeof *file);
	if (!file)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for %" PRId64 " files", g->path, count);
	g->file = file;
	for (int64_t i = 1; i < count; i++) {
		char *path = malloc(n + 32);
		if (!path)
			return yk_fail(YOKE_ENOMEM, "%s: no memory for a path", g->path);
		snprintf(path, n + 32, "%.*s-%05d-of-%05d.gguf", (int)(n - tail), g->path,
			 (int)i + 1, (int)count);
		e = add_file(g, path);
		if (e < 0)
			return e;
	}
	if (tensors >= 0 && (uint64_t)tensors != g->tensors)
		return yk_fail(
			YOKE_EFORMAT,
			"%s: the files of the split model have %zu tensors, but the first one declares %" PRId64,
			g->path, g->tensors, tensors);
	return 0;
}

int yk_gguf_open(struct yk_gguf *to, const char *path)
{
	struct yk_gguf g = { .path = strdup(path), .file = calloc(1, sizeof *g.file) };
	char *own = strdup(path);
	int e = 0;
	if (!g.path || !g.file || !own) {
		free(own);
		e = yk_fail(YOKE_ENOMEM, "%s: no memory", path);
	} else {
		e = add_file(&g, own);
	}
	if (e == 0)
		e = add_others(&g);
	if (e == 0)
		e = sort_names(&g, g.tensor, g.tensors, sizeof *g.tensor, "tensor");
	if (e < 0)
		yk_gguf_close(&g);
	else
		*to = g;
	return e;
}

void yk_gguf_close(struct yk_gguf *g)
{
	for (int i = 0; i < g->files; i++) {
		if (g->file[i].map)
			munmap((void *)(uintptr_t)g->file[i].map, g->file[i].bytes);
		free(g->file[i].path);
	}
	yk_arena_fini(&g->names);
	free(g->file);
	free(g->key);
	free(g->tensor);
	free(g->path);
	*g = (struct yk_gguf){ 0 };
}

// ---- looking up ----

const struct yk_gguf_key *yk_gguf_key(const struct yk_gguf *g, const char *name)
{
	return g->keys ? bsearch(&name, g->key, g->keys, sizeof *g->key, by_name) : NULL;
}

const struct yk_gguf_tensor *yk_gguf_tensor(const struct yk_gguf *g, const char *name)
{
	return g->tensors ? bsearch(&name, g->tensor, g->tensors, sizeof *g->tensor, by_name) :
			    NULL;
}

static int wrong_type(const struct yk_gguf *g, const struct yk_gguf_key *k, const char *wanted)
{
	return yk_fail(YOKE_EFORMAT, "%s: key '%s' is %s of type %d, not %s", g->path, k->name,
		       k->array ? "an array" : "a value", k->type, wanted);
}

#define LOAD(T) \
	do { \
		T v; \
		memcpy(&v, at, sizeof v); \
		return v; \
	} while (0)

// Values above INT64_MAX are returned as INT64_MAX.
int64_t yk_gguf_int_at(const struct yk_gguf_key *k, uint64_t i)
{
	const unsigned char *at = k->data + i * size_of(k->type);
	uint64_t large;
	switch (k->type) {
	case YK_GGUF_BOOL:
	case YK_GGUF_U8: return *at;
	case YK_GGUF_S8: LOAD(int8_t);
	case YK_GGUF_U16: LOAD(uint16_t);
	case YK_GGUF_S16: LOAD(int16_t);
	case YK_GGUF_U32: LOAD(uint32_t);
	case YK_GGUF_S32: LOAD(int32_t);
	case YK_GGUF_S64: LOAD(int64_t);
	default:
		memcpy(&large, at, sizeof large);
		return large > INT64_MAX ? INT64_MAX : (int64_t)large;
	}
}

double yk_gguf_real_at(const struct yk_gguf_key *k, uint64_t i)
{
	const unsigned char *at = k->data + i * size_of(k->type);
	if (k->type == YK_GGUF_FLOAT)
		LOAD(float);
	LOAD(double);
}

int yk_gguf_int(const struct yk_gguf *g, const char *key, int64_t min, int64_t max, int64_t *to)
{
	const struct yk_gguf_key *k = yk_gguf_key(g, key);
	if (!k)
		return 0;
	if (k->array || !is_int(k))
		return wrong_type(g, k, "an integer");
	const int64_t v = yk_gguf_int_at(k, 0);
	if (v < min || v > max)
		return yk_fail(YOKE_EFORMAT,
			       "%s: key '%s' is %" PRId64 ", not in %" PRId64 " .. %" PRId64,
			       g->path, key, v, min, max);
	*to = v;
	return 1;
}

int yk_gguf_real(const struct yk_gguf *g, const char *key, double *to)
{
	const struct yk_gguf_key *k = yk_gguf_key(g, key);
	if (!k)
		return 0;
	if (k->array || (k->type != YK_GGUF_FLOAT && k->type != YK_GGUF_DOUBLE))
		return wrong_type(g, k, "a floating-point number");
	*to = yk_gguf_real_at(k, 0);
	return 1;
}

int yk_gguf_bool(const struct yk_gguf *g, const char *key, bool *to)
{
	const struct yk_gguf_key *k = yk_gguf_key(g, key);
	if (!k)
		return 0;
	if (k->array || k->type != YK_GGUF_BOOL)
		return wrong_type(g, k, "a bool");
	*to = *k->data != 0;
	return 1;
}

int yk_gguf_string(const struct yk_gguf *g, const char *key, const char **to, size_t *bytes)
{
	const struct yk_gguf_key *k = yk_gguf_key(g, key);
	if (!k)
		return 0;
	if (k->array || k->type != YK_GGUF_STRING)
		return wrong_type(g, k, "a string");
	struct yk_gguf_strings s = yk_gguf_strings(k);
	return yk_gguf_next(&s, to, bytes);
}

struct yk_gguf_strings yk_gguf_strings(const struct yk_gguf_key *k)
{
	return (struct yk_gguf_strings){ k->data, k->type == YK_GGUF_STRING ? k->count : 0 };
}

bool yk_gguf_next(struct yk_gguf_strings *s, const char **to, size_t *bytes)
{
	uint64_t n;
	if (!s->left)
		return false;
	memcpy(&n, s->at, sizeof n);
	*to = (const char *)s->at + sizeof n;
	*bytes = (size_t)n;
	s->at += sizeof n + n;
	s->left--;
	return true;
}
