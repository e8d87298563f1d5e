// SPDX-License-Identifier: Apache-2.0
// Text files with one record per line, read in place: an index holds the offset of every 16th
// record.
#ifndef YK_DATA_LINES_H
#define YK_DATA_LINES_H

#include <stdbool.h>

#include "yoke-data.h"

#define YK_RECORD_MAX ((uint64_t)16 << 20) // bytes

struct yk_lines {
	char *path;
	int fd;
	uint64_t bytes, longest; // size of the file; size of its longest record
	char separator;          // between cells, which may be quoted and contain newlines (RFC
				 // 4180); 0: no cells
	int64_t count;           // records; empty lines do not count
	uint64_t *at;            // offset of every YK_LINES_EVERY-th record
	size_t cap;
	uint64_t hash;           // hash of all bytes
};
enum { YK_LINES_EVERY = 16, YK_LINES_SPARE = 8 };

// Reads the file once to index it.  EFORMAT: a record exceeds YK_RECORD_MAX bytes, or a quote is
// not closed; ENOENT, EIO.
int yk_lines_open(struct yk_lines *, const char *path, char separator);
void yk_lines_close(struct yk_lines *);
// A thread's read buffer, which finds the record after the last one read without a search.  All
// zeros is empty.
struct yk_lines_reader {
	char *text;
	size_t cap, have;  // have: bytes in the buffer
	uint64_t from;     // file offset of the buffer's first byte
	size_t at;         // offset of record `next` in the buffer
	int64_t next;      // 0: none
	bool quotes;       // the buffer may contain quotes
};
// Reads record i without its line end; *at is its file offset.  A NUL and YK_LINES_SPARE undefined
// bytes follow the text, which stays valid until the reader's next call.
int yk_lines_read(const struct yk_lines *, struct yk_lines_reader *, int64_t i, char **text,
		  size_t *bytes, uint64_t *at);
void yk_lines_reader_fini(struct yk_lines_reader *);

// ---- csv.c, jsonl.c ----

// columns: "a,b:category,c:text", where a name in quotes may have any characters ("" for a quote);
// NULL: all columns, as numbers. header: the first record has the names; otherwise they are
// column1, column2, ...
yoke_dataset *yk_csv_open(const char *path, char separator, const char *columns, bool header);
// Finds the separator of the first records: `usual`, unless it does not separate cells and another
// one of , ; tab | divides all of them into equally many.
int yk_csv_delimiter(const char *path, char usual, char *to);
// Field "text", u8, holds the string of each object's member `field`.
yoke_dataset *yk_jsonl_open(const char *path, const char *field);
// Does the name end in .jsonl?
bool yk_jsonl_is(const char *path);
// Is the path's text in member `field` of JSON lines, judging by the file name?
bool yk_jsonl_taken(const char *path, const char *field);
// Parses complete lines, the first of which begins at byte `at` of the file.  Calls fn with the
// string of each non-blank line, followed by a line end; a nonzero result ends the loop and is
// returned.  EFORMAT names path and byte.
int yk_jsonl_each(const char *path, uint64_t at, const char *text, size_t bytes, const char *field,
		  int (*fn)(void *arg, const char *text, size_t bytes), void *arg);
// Are all bytes blanks?  The separator (0: none) does not count as a blank.
bool yk_line_is_blank(const char *text, size_t n, char separator);

#endif
