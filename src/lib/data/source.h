// SPDX-License-Identifier: Apache-2.0
// Records of the files that data was read from, so that a resumed run can report which of them
// changed.
#ifndef YK_DATA_SOURCE_H
#define YK_DATA_SOURCE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { YK_SOURCES_NAMED = 1000 }; // max sources that are kept by name

struct yk_source {
	char *name;
	uint64_t bytes, sample; // sample: a hash of blocks spread over it
	uint64_t whole;         // hash of all tokens, as stored in a prepared file; 0: none
	int64_t time;           // of the last modification, ns since 1970; 0: unknown
};

// All zeros is empty.
struct yk_sources {
	struct yk_source *source; // the first YK_SOURCES_NAMED
	size_t n, cap;
	int64_t count;
	uint64_t hash; // of all of them
};

// The setting data.max.
uint64_t yk_data_max(void);
// Hashes a file's size and blocks spread over it.
int yk_file_sample(int fd, const char *path, uint64_t bytes, uint64_t *hash);
// Adds a file in its current state.  whole: as in yk_source.  ENOENT, EIO, ENOMEM.
int yk_sources_add_file(struct yk_sources *, const char *path, uint64_t whole);
// Adds a source that is not a file, with the bytes and hash of the data that was read.
int yk_sources_add(struct yk_sources *, const char *name, uint64_t bytes, uint64_t sample);
void yk_sources_fini(struct yk_sources *);
// [{name, bytes, time, sample, xxh64}, ..], xxh64 only if known; NULL: ENOMEM.
json_t *yk_sources_json(const struct yk_sources *);
// Is source i unchanged since `then`, including its time?  `then` may be any JSON, here and below.
bool yk_sources_untouched(const json_t *then, const struct yk_sources *now, size_t i);
// Describes the first source that changed, as "b.txt has 90 bytes, not 100"; "" if all named
// sources are the same.  Times are ignored: a copy counts as the same file.
void yk_sources_differ(const json_t *then, const struct yk_sources *now, char *to, size_t room);

#endif
