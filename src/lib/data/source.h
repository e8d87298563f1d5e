// SPDX-License-Identifier: Apache-2.0
// What data was read from: the files, so that a run that goes on can say which of them differs.
#ifndef YK_DATA_SOURCE_H
#define YK_DATA_SOURCE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { YK_SOURCES_NAMED = 1000 }; // that are kept by name

struct yk_source {
	char *name;
	uint64_t bytes, sample; // sample: a hash of blocks spread over it
	uint64_t whole;         // the hash of all tokens that a prepared file says of itself; 0: none
	int64_t time;           // of its last change, ns since 1970; 0: not known
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
// A hash of a file's size and of blocks spread over it.
int yk_file_sample(int fd, const char *path, uint64_t bytes, uint64_t *hash);
// The file as it is now.  whole: as above.  ENOENT, EIO, ENOMEM.
int yk_sources_add_file(struct yk_sources *, const char *path, uint64_t whole);
// What is no file, by what was read.
int yk_sources_add(struct yk_sources *, const char *name, uint64_t bytes, uint64_t sample);
void yk_sources_fini(struct yk_sources *);
// [{name, bytes, time, sample, xxh64}, ..], the last where it is known; NULL: ENOMEM.
json_t *yk_sources_json(const struct yk_sources *);
// Is source i the file that it was, its time included?  `then` may be any JSON, here and below.
bool yk_sources_untouched(const json_t *then, const struct yk_sources *now, size_t i);
// The first source that is not what it was, in words, as "b.txt has 90 bytes, not 100"; "" where all of those that are
// named are the same.  Their times do not count: a copy is the same.
void yk_sources_differ(const json_t *then, const struct yk_sources *now, char *to, size_t room);

#endif
