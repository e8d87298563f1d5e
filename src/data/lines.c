// SPDX-License-Identifier: Apache-2.0
// Records of text files.
#include "config.h"

#include "data/lines.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"

// Where a record stands behind each character.  Only what begins a cell may be its quote.
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

struct walk {
	struct yk_lines *l;
	enum state state;
	uint64_t begin; // of the record
	bool blank;     // nothing of it but a \r
	struct yk_hash_state *hash;
};

static int too_long(const struct yk_lines *l, int64_t record)
{
	return yk_fail(YOKE_EFORMAT, "%s: record %lld has more than %llu MiB%s", l->path, (long long)record + 1,
		       (unsigned long long)(YK_RECORD_MOST >> 20), l->separator ? ", or a quote that does not end" : "");
}

// A record from w->begin to `end`, its line end not counted.
static int add(struct walk *w, uint64_t end)
{
	struct yk_lines *l = w->l;
	if (w->blank)
		return 0;
	if (l->count % YK_LINES_EVERY == 0) {
		const size_t n = (size_t)(l->count / YK_LINES_EVERY);
		if (yk_grow(&l->at, &l->cap, n + 1, sizeof *l->at) < 0)
			return yk_fail(YOKE_ENOMEM, "%s: no memory for the places of its records", l->path);
		l->at[n] = w->begin;
	}
	l->count++;
	if (end - w->begin > l->longest)
		l->longest = end - w->begin;
	return 0;
}

static int walk(struct walk *w, const char *text, size_t n, uint64_t at)
{
	int e = 0;
	for (size_t i = 0; i < n && e == 0; i++) {
		w->state = step(w->state, text[i], w->l->separator);
		if (w->state == ENDED) {
			e = add(w, at + i);
			*w = (struct walk){ w->l, CELL, at + i + 1, true, w->hash };
		} else {
			w->blank = w->blank && text[i] == '\r';
			if (at + i - w->begin >= YK_RECORD_MOST)
				e = too_long(w->l, w->l->count);
		}
	}
	return e;
}

// Bytes of the mark of UTF-8 at the file's begin.
static int skip_mark(const struct yk_lines *l, uint64_t *bytes)
{
	char mark[3];
	const int e = l->bytes < 3 ? 0 : yk_file_read_at(l->fd, l->path, 0, mark, 3);
	*bytes = e == 0 && l->bytes >= 3 && !memcmp(mark, "\xef\xbb\xbf", 3) ? 3 : 0;
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
	int e = w.hash ? skip_mark(l, &w.begin) : yk_fail(YOKE_ENOMEM, "%s: no memory to read it", l->path);
	if (e == 0)
		e = yk_file_each(l->fd, l->path, w.begin, l->bytes - w.begin, index_block, &w);
	if (e == 0 && w.state == QUOTED)
		e = yk_fail(YOKE_EFORMAT, "%s: record %lld: a quote does not end", l->path, (long long)l->count + 1);
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

int yk_lines_read(const struct yk_lines *l, int64_t i, char **text, size_t *bytes, uint64_t *begin)
{
	enum { SOME = 4096 };
	uint64_t at = l->at[i / YK_LINES_EVERY];
	int64_t skip = i % YK_LINES_EVERY;
	char block[SOME], *to = NULL;
	size_t n = 0, cap = 0;
	enum state s = CELL;
	bool blank = true;
	int e = 0;
	*begin = at;
	while (at < l->bytes && e == 0) {
		const uint64_t some = l->bytes - at < SOME ? l->bytes - at : SOME;
		e = yk_file_read_at(l->fd, l->path, at, block, some);
		for (uint64_t k = 0; k < some && e == 0; k++) {
			s = step(s, block[k], l->separator);
			if (s != ENDED) {
				blank = blank && block[k] == '\r';
				if (skip == 0 && (e = yk_grow(&to, &cap, n + 2, 1)) == 0)
					to[n++] = block[k];
				if (e == 0 && n > YK_RECORD_MOST)
					e = too_long(l, i);
				continue;
			}
			if (!blank && skip-- == 0)
				goto found;
			n = 0;
			*begin = at + k + 1;
			s = CELL;
			blank = true;
		}
		at += some;
	}
	if (e == 0 && (blank || skip != 0)) // it was changed since the index was made
		e = yk_fail(YOKE_EIO, "%s: has no record %lld any more: it was changed while it was read", l->path,
			    (long long)i + 1);
	if (e < 0) {
		free(to);
		return yoke_error_code() ? e : yk_fail(YOKE_ENOMEM, "%s: no memory for a record", l->path);
	}
found:
	if (n && to[n - 1] == '\r')
		n--;
	to[n] = 0;
	*text = to;
	*bytes = n;
	return 0;
}
