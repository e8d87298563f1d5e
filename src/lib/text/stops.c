// SPDX-License-Identifier: Apache-2.0
// Finds stop texts in a text that arrives in parts.
#include "config.h"

#include "text/stops.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"

int yk_stops_add(struct yk_stops *s, const char *text, size_t bytes)
{
	if (!bytes)
		return yk_fail(YOKE_EINVAL, "a stop text is empty");
	if (s->n == YK_STOPS)
		return yk_fail(YOKE_EINVAL, "there are more than %d stop texts", YK_STOPS);
	s->text[s->n] = malloc(bytes);
	if (!s->text[s->n])
		return yk_fail(YOKE_ENOMEM, "out of memory for stop texts");
	memcpy(s->text[s->n], text, bytes);
	s->bytes[s->n++] = bytes;
	return 0;
}

int yk_stops_parse(struct yk_stops *to, const char *list)
{
	static const char escapes[] =
		"n\nt\t\\\\,,"; // the character after the backslash, and the one it stands for
	struct yk_stops s = { 0 };
	char *text = malloc(strlen(list) + 1);
	size_t n = 0;
	int e = text ? 0 : yk_fail(YOKE_ENOMEM, "stop=: out of memory");
	for (const char *at = list; *list && e == 0; at++) {
		if (*at == '\\') {
			const char *x = at[1] ? strchr(escapes, at[1]) : NULL;
			if (!x || (x - escapes) % 2) {
				e = yk_fail(YOKE_EINVAL,
					    "stop=%s: unknown escape '\\%.1s'; there are \\n, \\t, "
					    "\\\\ and \\,",
					    list, at + 1);
				break;
			}
			text[n++] = x[1];
			at++;
		} else if (*at && *at != ',') {
			text[n++] = *at;
		} else {
			e = n ? yk_stops_add(&s, text, n) :
				yk_fail(YOKE_EINVAL, "stop=%s: has an empty text between commas",
					list);
			n = 0;
			if (!*at)
				break;
		}
	}
	free(text);
	if (e < 0)
		yk_stops_fini(&s);
	else
		*to = s;
	return e;
}

void yk_stops_fini(struct yk_stops *s)
{
	for (int i = 0; i < s->n; i++)
		free(s->text[i]);
	*s = (struct yk_stops){ 0 };
}

// Length of the longest stop text that these bytes end with; 0: none.
static size_t completed(const struct yk_stops *s, const char *text, size_t bytes)
{
	size_t longest = 0;
	for (int i = 0; i < s->n; i++) {
		const size_t n = s->bytes[i];
		if (n <= bytes && n > longest && !memcmp(text + bytes - n, s->text[i], n))
			longest = n;
	}
	return longest;
}

// Do these bytes begin a stop text?
static bool begins(const struct yk_stops *s, const char *text, size_t bytes)
{
	bool any = bytes == 0;
	for (int i = 0; i < s->n && !any; i++)
		any = bytes < s->bytes[i] && !memcmp(text, s->text[i], bytes);
	return any;
}

// The tail is always the longest end of the text that begins a stop text, so it contains the
// beginning of every stop text that is still possible.
int yk_stops_pass(const struct yk_stops *s, struct yk_stop_tail *t, const char *text, size_t bytes,
		  yk_stop_write_fn *write, void *arg)
{
	size_t from = 0, end = t->bytes; // from .. end - 1 begins a stop text
	if (yk_grow(&t->text, &t->cap, t->bytes + bytes + 1, 1) < 0)
		return yk_fail(YOKE_ENOMEM, "stop=: out of memory");
	memcpy(t->text + t->bytes, text, bytes);
	t->bytes += bytes;
	while (end < t->bytes) {
		end++;
		const size_t n = completed(s, t->text + from, end - from);
		if (n) {
			t->bytes = 0;
			const int e = write(arg, t->text, end - n);
			return e < 0 ? e : 1;
		}
		while (!begins(s, t->text + from, end - from))
			from++;
	}
	const int e = write(arg, t->text, from);
	t->bytes -= from;
	memmove(t->text, t->text + from, t->bytes);
	return e;
}

int yk_stops_flush(struct yk_stop_tail *t, yk_stop_write_fn *write, void *arg)
{
	const size_t n = t->bytes;
	t->bytes = 0;
	return n ? write(arg, t->text, n) : 0;
}

void yk_stop_tail_fini(struct yk_stop_tail *t)
{
	free(t->text);
	*t = (struct yk_stop_tail){ 0 };
}
