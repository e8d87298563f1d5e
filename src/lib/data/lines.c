// SPDX-License-Identifier: Apache-2.0
// Indexes and reads text files with one record per line.
#include "config.h"

#include "data/lines.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/kind.h"

// State of the parser after each character.  A quote is only special at the start of a cell.
enum state { CELL, PLAIN, QUOTED, CLOSED, ENDED };

static enum state step(enum state s, char c, char separator)
{
	if (s == QUOTED)
		return c == '"' ? CLOSED : QUOTED;
	if (c == '\n')
		return ENDED;
	if (!separator)
		return PLAIN;
	if (c == '"' && (s == CELL || s == CLOSED))
		return QUOTED;
	return c == separator ? CELL : PLAIN;
}

// Finds the line end of the record at `text` within n bytes; NULL: not found.  quotes: the text may
// contain quotes.
static const char *record_end(const char *text, size_t n, char separator, bool quotes)
{
	const char *end = memchr(text, '\n', n);
	if (!quotes || !memchr(text, '"', end ? (size_t)(end - text) : n))
		return end;
	enum state s = CELL;
	for (size_t i = 0; i < n; i++)
		if ((s = step(s, text[i], separator)) == ENDED)
			return text + i;
	return NULL;
}

static bool has_quotes(const struct yk_lines *l, const char *text, size_t n)
{
	return l->separator && memchr(text, '"', n);
}

static bool is_blank(char c, char separator)
{
	return c == '\r' || ((c == ' ' || c == '\t') && c != separator);
}

bool yk_line_is_blank(const char *text, size_t n, char separator)
{
	while (n > 0 && is_blank(text[n - 1], separator))
		n--;
	return n == 0;
}

struct walk {
	struct yk_lines *l;
	enum state state;
	uint64_t begin; // of the record
	bool blank;     // only blanks so far
	struct yk_hash_state *hash;
};

static int too_long(const struct yk_lines *l, int64_t record)
{
	return yk_fail(YOKE_EFORMAT, "%s: record %lld has more than %llu MiB%s", l->path,
		       (long long)record + 1, (unsigned long long)(YK_RECORD_MAX >> 20),
		       l->separator ? ", or a quote is not closed" : "");
}

// Adds the record from w->begin to `end`, without its line end.
static int add(struct walk *w, uint64_t end)
{
	struct yk_lines *l = w->l;
	if (w->blank)
		return 0;
	if (l->count % YK_LINES_EVERY == 0) {
		const size_t n = (size_t)(l->count / YK_LINES_EVERY);
		if (yk_grow(&l->at, &l->cap, n + 1, sizeof *l->at) < 0)
			return yk_fail(YOKE_ENOMEM, "%s: no memory for the offsets of its records",
				       l->path);
		l->at[n] = w->begin;
	}
	l->count++;
	if (end - w->begin > l->longest)
		l->longest = end - w->begin;
	return 0;
}

static int walk(struct walk *w, const char *text, size_t n, uint64_t at)
{
	const bool quotes = has_quotes(w->l, text, n);
	int e = 0;
	for (size_t i = 0; i < n && e == 0; i++) {
		const char *end;
		while (w->begin == at + i && e == 0 &&
		       (end = record_end(text + i, n - i, w->l->separator, quotes)) &&
		       (size_t)(end - text) - i < YK_RECORD_MAX) { // completely in this block
			w->blank = yk_line_is_blank(text + i, (size_t)(end - text) - i,
						    w->l->separator);
			e = add(w, at + (uint64_t)(end - text));
			i = (size_t)(end - text) + 1;
			*w = (struct walk){ w->l, CELL, at + i, true, w->hash };
		}
		if (i == n || e < 0)
			break;
		w->state = step(w->state, text[i], w->l->separator);
		if (w->state == ENDED) {
			e = add(w, at + i);
			*w = (struct walk){ w->l, CELL, at + i + 1, true, w->hash };
		} else {
			w->blank = w->blank && is_blank(text[i], w->l->separator);
			if (at + i - w->begin >= YK_RECORD_MAX)
				e = too_long(w->l, w->l->count);
		}
	}
	return e;
}

static int index_block(void *arg, const char *block, size_t n, uint64_t at)
{
	struct walk *w = arg;
	yk_hash_add(w->hash, block, n);
	return walk(w, block, n, at);
}

static int make_index(struct yk_lines *l)
{
	struct walk w = { .l = l, .blank = true, .hash = yk_hash_new(0) };
	int e = w.hash ? yk_text_mark(l->path, l->fd, true, &w.begin) :
			 yk_fail(YOKE_ENOMEM, "%s: no memory to read it", l->path);
	if (e == 0)
		e = yk_file_each(l->fd, l->path, w.begin, l->bytes - w.begin, index_block, &w);
	if (e == 0 && w.state == QUOTED)
		e = yk_fail(YOKE_EFORMAT, "%s: record %lld: a quote is not closed", l->path,
			    (long long)l->count + 1);
	if (e == 0)
		e = add(&w, l->bytes);
	if (w.hash)
		l->hash = yk_hash_end(w.hash);
	return e;
}

int yk_lines_open(struct yk_lines *to, const char *path, char separator)
{
	struct yk_lines l = { .path = strdup(path), .fd = -1, .separator = separator };
	int e = l.path ? 0 : yk_fail(YOKE_ENOMEM, "%s: no memory", path);
	if (e == 0)
		e = l.fd = yk_file_open(path, &l.bytes);
	if (e >= 0)
		e = make_index(&l);
	if (e < 0)
		yk_lines_close(&l);
	else
		*to = l;
	return e;
}

void yk_lines_close(struct yk_lines *l)
{
	if (l->fd >= 0)
		close(l->fd);
	free(l->path);
	free(l->at);
	*l = (struct yk_lines){ .fd = -1 };
}

// Reads more, at least doubling the buffer's contents; data before r->at is dropped.
static int read_on(const struct yk_lines *l, struct yk_lines_reader *r, size_t some)
{
	const size_t rest = r->have - r->at;
	const uint64_t at = r->from + r->have, left = l->bytes - at;
	const size_t more = left < some ? (size_t)left :
			    some > rest ? some :
			    left < rest ? (size_t)left :
					  rest;
	memmove(r->text, r->text + r->at, rest);
	r->from += r->at;
	r->have = rest;
	r->at = 0;
	if (yk_grow(&r->text, &r->cap, rest + more + 1 + YK_LINES_SPARE, 1) < 0)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for a record", l->path);
	const int e = yk_file_read_at(l->fd, l->path, at, r->text + rest, more);
	if (e == 0) {
		r->quotes |= has_quotes(l, r->text + rest, more);
		r->have += more;
	}
	memset(r->text + r->have, 0, 1 + YK_LINES_SPARE);
	return e;
}

// Moves the reader to the first record of the index group that contains record i.
static int read_group(const struct yk_lines *l, struct yk_lines_reader *r, int64_t i)
{
	const int64_t group = i / YK_LINES_EVERY,
		      groups = (l->count + YK_LINES_EVERY - 1) / YK_LINES_EVERY;
	const uint64_t begin = l->at[group], end = group + 1 < groups ? l->at[group + 1] : l->bytes;
	const uint64_t max = (uint64_t)1 << 16;
	*r = (struct yk_lines_reader){
		.text = r->text, .cap = r->cap, .from = begin, .next = group * YK_LINES_EVERY
	};
	if (yk_grow(&r->text, &r->cap, 1, 1) < 0)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for a record", l->path);
	return read_on(l, r, end - begin < max ? (size_t)(end - begin) : (size_t)max);
}

// Returns the record of n bytes at r->at and moves the reader past it.
static int take_next(const struct yk_lines *l, struct yk_lines_reader *r, char **text, size_t *n)
{
	enum { SOME = 8192 };
	const char *end;
	for (;;) {
		end = record_end(r->text + r->at, r->have - r->at, l->separator, r->quotes);
		const bool over = r->from + r->have == l->bytes;
		if (!end && over)
			end = r->text + r->have;
		*text = r->text + r->at;
		*n = end ? (size_t)(end - *text) : r->have - r->at;
		if (*n > YK_RECORD_MAX)
			return too_long(l, r->next);
		if (end && !yk_line_is_blank(*text, *n, l->separator)) {
			r->at += *n + (end < r->text + r->have);
			r->next++;
			return 0;
		}
		// the file changed after it was indexed
		if (end && over && end == r->text + r->have)
			return yk_fail(
				YOKE_EIO,
				"%s: no longer has record %lld: it changed while it was being read",
				l->path, (long long)r->next + 1);
		if (end)
			r->at += *n + 1;
		const int e = end ? 0 : read_on(l, r, SOME);
		if (e < 0)
			return e;
	}
}

int yk_lines_read(const struct yk_lines *l, struct yk_lines_reader *r, int64_t i, char **text,
		  size_t *bytes, uint64_t *begin)
{
	int e = r->next > 0 && r->next == i ? 0 : read_group(l, r, i);
	for (int64_t from = r->next; from <= i && e == 0; from++)
		e = take_next(l, r, text, bytes);
	if (e < 0) {
		r->next = 0;
		return e;
	}
	*begin = r->from + (uint64_t)(*text - r->text);
	if (*bytes && (*text)[*bytes - 1] == '\r')
		--*bytes;
	(*text)[*bytes] = 0;
	return 0;
}

void yk_lines_reader_fini(struct yk_lines_reader *r)
{
	free(r->text);
	*r = (struct yk_lines_reader){ 0 };
}
