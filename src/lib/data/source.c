// SPDX-License-Identifier: Apache-2.0
// Records which files data was read from, and compares them with those of an earlier run.
#include "config.h"

#include "data/source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/param.h"

YK_PARAM(data_max, "data.max", YK_BYTES, "8GiB",
	 "maximum bytes of text and prepared conversations that training reads, and of arrays unpacked from a .npz file");

uint64_t yk_data_max(void)
{
	return (uint64_t)yk_param_int(&data_max);
}

int yk_file_sample(int fd, const char *path, uint64_t bytes, uint64_t *hash)
{
	enum { BLOCK = 4096, BLOCKS = 64 };
	char block[BLOCK];
	const uint64_t n = bytes / BLOCK + (bytes % BLOCK > 0), some = n < BLOCKS ? n : BLOCKS;
	uint64_t h = yk_hash_numbers(&bytes, sizeof bytes, 1, 0);
	for (uint64_t i = 0; i < some; i++) {
		// includes the first and the last block
		// n is below 2^53
		const uint64_t at = (some < 2 ? 0 : i * (n - 1) / (some - 1)) * BLOCK;
		const uint64_t size = bytes - at < BLOCK ? bytes - at : BLOCK;
		const int e = yk_file_read_at(fd, path, at, block, size);
		if (e < 0)
			return e;
		h = yk_hash(block, size, h);
	}
	*hash = h;
	return 0;
}

static int add(struct yk_sources *s, const struct yk_source *x)
{
	s->hash = yk_hash(x->name, strlen(x->name), s->hash);
	s->hash = yk_hash_numbers((uint64_t[]){ x->bytes, x->sample, (uint64_t)x->time }, 8, 3,
				  s->hash);
	s->count++;
	if (s->n == YK_SOURCES_NAMED)
		return 0;
	struct yk_source copy = *x;
	copy.name = strdup(x->name);
	if (!copy.name || yk_grow(&s->source, &s->cap, s->n + 1, sizeof *s->source) < 0) {
		free(copy.name);
		return yk_fail(YOKE_ENOMEM, "%s: no memory for the list of sources", x->name);
	}
	s->source[s->n++] = copy;
	return 0;
}

int yk_sources_add_file(struct yk_sources *s, const char *path, uint64_t whole)
{
	struct yk_source x = { .name = (char *)path, .whole = whole };
	struct stat st;
	const int fd = yk_file_open(path, &x.bytes);
	if (fd < 0)
		return fd;
	int e = fstat(fd, &st) < 0 ?
			yk_fail(YOKE_EIO, "cannot read '%s': %s", path, strerror(errno)) :
			0;
	if (e == 0) {
		x.time = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
		e = yk_file_sample(fd, path, x.bytes, &x.sample);
	}
	close(fd);
	return e == 0 ? add(s, &x) : e;
}

int yk_sources_add(struct yk_sources *s, const char *name, uint64_t bytes, uint64_t sample)
{
	return add(s,
		   &(struct yk_source){ .name = (char *)name, .bytes = bytes, .sample = sample });
}

void yk_sources_fini(struct yk_sources *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->source[i].name);
	free(s->source);
	*s = (struct yk_sources){ 0 };
}

// File names are bytes, JSON strings are UTF-8: invalid bytes become '?'.
static json_t *name_json(const char *name)
{
	json_t *s = json_string(name);
	if (s)
		return s;
	char *copy = strdup(name);
	for (char *c = copy; c && *c; c++)
		*c = (signed char)*c < 0 ? '?' : *c;
	s = copy ? json_string(copy) : NULL;
	free(copy);
	return s;
}

json_t *yk_sources_json(const struct yk_sources *s)
{
	char sample[17], whole[17];
	json_t *a = json_array();
	int bad = !a;
	for (size_t i = 0; i < s->n && !bad; i++) {
		const struct yk_source *x = &s->source[i];
		snprintf(sample, sizeof sample, "%016" PRIx64, x->sample);
		snprintf(whole, sizeof whole, "%016" PRIx64, x->whole);
		bad = json_array_append_new(a, json_pack("{s:o, s:I, s:I, s:s, s:s*}", "name",
							 name_json(x->name), "bytes",
							 (json_int_t)x->bytes, "time",
							 (json_int_t)x->time, "sample", sample,
							 "xxh64", x->whole ? whole : NULL)) < 0;
	}
	if (!bad)
		return a;
	yk_fail(YOKE_ENOMEM, "no memory for the list of sources");
	json_decref(a);
	return NULL;
}

// Does the object have this hash under this key?
static bool has_hash(const json_t *o, const char *key, uint64_t hash)
{
	char text[17];
	const char *was = json_string_value(json_object_get(o, key));
	snprintf(text, sizeof text, "%016" PRIx64, hash);
	return was && !strcmp(was, text);
}

static bool has_name(const json_t *o, const char *name)
{
	const char *was = json_string_value(json_object_get(o, "name"));
	json_t *here = name_json(name);
	const bool same = was && here && !strcmp(was, json_string_value(here));
	json_decref(here);
	return same;
}

bool yk_sources_untouched(const json_t *then, const struct yk_sources *now, size_t i)
{
	const json_t *x = json_array_get(then, i);
	const struct yk_source *s = &now->source[i];
	return has_name(x, s->name) &&
	       (uint64_t)json_integer_value(json_object_get(x, "bytes")) == s->bytes &&
	       json_integer_value(json_object_get(x, "time")) == s->time &&
	       has_hash(x, "sample", s->sample);
}

void yk_sources_differ(const json_t *then, const struct yk_sources *now, char *to, size_t room)
{
	const size_t n = json_array_size(then), both = n < now->n ? n : now->n;
	*to = 0;
	for (size_t i = 0; i < both; i++) {
		const json_t *x = json_array_get(then, i);
		const char *name = json_string_value(json_object_get(x, "name"));
		const json_int_t bytes = json_integer_value(json_object_get(x, "bytes"));
		const struct yk_source *s = &now->source[i];
		// the rest of the header may differ
		const bool whole = s->whole && json_object_get(x, "xxh64");
		if (!has_name(x, s->name))
			snprintf(to, room, "%.200s is there instead of %.200s", s->name,
				 name ? name : "another");
		else if (!whole && (uint64_t)bytes != s->bytes)
			snprintf(to, room, "%.200s has %" PRIu64 " bytes, not %lld", s->name,
				 s->bytes, (long long)bytes);
		else if (!has_hash(x, whole ? "xxh64" : "sample", whole ? s->whole : s->sample))
			snprintf(to, room, "%.200s has other contents", s->name);
		else
			continue;
		return;
	}
	const char *lost = json_string_value(json_object_get(json_array_get(then, both), "name"));
	if (n > both)
		snprintf(to, room, "%.200s is missing", lost ? lost : "one");
	else if (now->n > both && n < YK_SOURCES_NAMED && then)
		snprintf(to, room, "%.200s is new", now->source[both].name);
}
