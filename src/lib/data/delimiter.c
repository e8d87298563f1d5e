// SPDX-License-Identifier: Apache-2.0
// Finds the character that separates the cells of a table, by its first records.
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/kind.h"
#include "data/lines.h"

enum { SAMPLE = 1 << 16, RECORDS = 20 };

// Cells of each of the first complete records, if all have the same number; otherwise 0.  A quote
// at the start of a cell protects separators and line ends, as in RFC 4180.
static int64_t cells_each(const char *text, size_t n, char separator, bool whole)
{
	int64_t each = 0, cells = 1;
	int records = 0;
	bool quoted = false, begins = true, blank = true;
	for (size_t i = 0; i <= n && records < RECORDS; i++) {
		if (i == n && (!whole || blank))
			break;
		const char c = i < n ? text[i] : '\n';
		if (quoted && i < n) {
			quoted = c != '"'; // a doubled quote opens it again
			begins = !quoted;
		} else if (c == '"' && begins) {
			quoted = true;
			blank = false;
		} else if (c == '\n') {
			if (!blank && each && each != cells)
				return 0;
			each = blank ? each : cells;
			records += !blank;
			cells = 1;
			begins = blank = true;
		} else {
			cells += c == separator;
			begins = c == separator;
			blank &= c == ' ' || c == '\r' || (c == '\t' && c != separator);
		}
	}
	return each;
}

int yk_csv_delimiter(const char *path, char usual, char *to)
{
	static const char others[] = ",;\t|";
	uint64_t bytes, begin = 0;
	const int fd = yk_file_open(path, &bytes);
	if (fd < 0)
		return fd;
	char *text = malloc(SAMPLE);
	int e = text ? yk_text_mark(path, fd, true, &begin) :
		       yk_fail(YOKE_ENOMEM, "%s: no memory to read it", path);
	const size_t n = e < 0 || bytes - begin > SAMPLE ? SAMPLE : (size_t)(bytes - begin);
	if (e == 0)
		e = yk_file_read_at(fd, path, begin, text, n);
	if (e == 0) {
		const bool whole = begin + n == bytes;
		const bool separates =
			cells_each(text, n, usual, whole) > 1; // then it has priority
		int64_t max = 1;
		*to = usual;
		for (const char *c = others; !separates && *c; c++) {
			const int64_t cells = cells_each(text, n, *c, whole);
			if (cells > max) {
				max = cells;
				*to = *c;
			}
		}
	}
	free(text);
	close(fd);
	return e;
}
