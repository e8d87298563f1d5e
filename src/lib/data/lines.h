// SPDX-License-Identifier: Apache-2.0
// Text files of records, one a line: found by an index of every so many-th, read in place by position.
#ifndef YK_DATA_LINES_H
#define YK_DATA_LINES_H

#include <stdbool.h>

#include "yoke-data.h"

#define YK_RECORD_MAX ((uint64_t)16 << 20) // bytes

struct yk_lines {
	char *path;
	int fd;
	uint64_t bytes, longest; // of the file; of its longest record
	char separator;          // of cells, which may be quoted and hold line ends (RFC 4180); 0: no cells
	int64_t count;           // records; empty lines are none
	uint64_t *at;            // of every YK_LINES_EVERY-th
	size_t cap;
	uint64_t hash;           // of all bytes
};
enum { YK_LINES_EVERY = 16, YK_LINES_SPARE = 8 };

// Reads the file once.  EFORMAT: a record has more than YK_RECORD_MAX bytes, a quote does not end; ENOENT, EIO.
int yk_lines_open(struct yk_lines *, const char *path, char separator);
void yk_lines_close(struct yk_lines *);
// A thread's own: bytes of the file, in which the record behind the one that was read last is found at once.  All zeros
// is empty.
struct yk_lines_reader {
	char *text;
	size_t cap, have;  // have: bytes in it
	uint64_t from;     // the file's byte at its begin
	size_t at;         // where record `next` begins in it
	int64_t next;      // 0: none
	bool quotes;       // some may be in it
};
// Record i without its line end, with a NUL and YK_LINES_SPARE bytes of any value behind, in the reader's memory until its
// next call; where it begins in the file.
int yk_lines_read(const struct yk_lines *, struct yk_lines_reader *, int64_t i, char **text, size_t *bytes, uint64_t *at);
void yk_lines_reader_fini(struct yk_lines_reader *);

// ---- csv.c, jsonl.c ----

// columns: "a,b:category,c:text", NULL: all columns, as numbers.
yoke_dataset *yk_csv_open(const char *path, char separator, const char *columns);
// field: the member whose string is field "text", u8.
yoke_dataset *yk_jsonl_open(const char *path, const char *field);
// Is that string of a file of this name its text?
bool yk_jsonl_taken(const char *path, const char *field);
// Parses complete lines, of which the first begins at byte `at` of the file.  fn gets the string of each non-blank line, followed by
// a line end; a result other than 0 ends the loop and is returned.  EFORMAT names path and byte.
int yk_jsonl_each(const char *path, uint64_t at, const char *text, size_t bytes, const char *field,
		  int (*fn)(void *arg, const char *text, size_t bytes), void *arg);
// Are all bytes blanks other than the separator (0: none)?
bool yk_line_is_blank(const char *text, size_t n, char separator);

#endif
