// SPDX-License-Identifier: Apache-2.0
// Assembles the text of a choice.  What it passes on depends on the tokens alone, so the parts of a
// stream are the text of a whole reply.
#include "config.h"

#include "serve/choice.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/error.h"

static int pass(void *arg, const char *text, size_t bytes)
{
	struct yk_choice *c = arg;
	yk_string_add(&c->text, text, bytes);
	c->passed += bytes;
	return c->text.failed ? yk_fail(YOKE_ENOMEM, "no memory for a text") : 0;
}

// Passes the complete characters of `raw` on, with U+FFFD for invalid bytes.  all: also incomplete
// ones.
static int pass_characters(struct yk_choice *c, const struct yk_stops *stops, bool all)
{
	struct yk_string valid = { 0 };
	size_t n = c->raw.n;
	for (size_t k = 1; k < 4 && k <= n && !all; k++)
		if (yk_char_is_begun(c->raw.s + n - k, k)) {
			n -= k;
			break;
		}
	yk_utf8_lossy(&valid, c->raw.s ? c->raw.s : "", n);
	int e = valid.failed || c->raw.failed ? yk_fail(YOKE_ENOMEM, "no memory for a text") : 0;
	if (e == 0 && valid.n) {
		c->made += valid.n;
		e = yk_stops_pass(stops, &c->tail, valid.s, valid.n, pass, c);
		c->stopped = e > 0;
	}
	if (n) {
		memmove(c->raw.s, c->raw.s + n, c->raw.n - n);
		c->raw.n -= n;
	}
	yk_string_fini(&valid);
	return e < 0 ? e : 0;
}

// A token's entry is ready when all of its text was passed on; at the end also if only its
// beginning was.
static void count_ready(struct yk_choice *c)
{
	while (c->ready < c->entries) {
		const size_t from = c->entry[c->ready].from,
			     to = c->ready + 1 < c->entries ? c->entry[c->ready + 1].from :
							      c->made + c->raw.n;
		if (c->stopped || c->finish ? from >= c->passed && to > c->passed : to > c->passed)
			break;
		c->ready++;
	}
}

int yk_choice_add(struct yk_choice *c, const struct yk_stops *stops, const char *text, size_t bytes,
		  json_t *entry)
{
	if (entry && yk_grow(&c->entry, &c->entry_cap, c->entries + 1, sizeof *c->entry) < 0) {
		json_decref(entry);
		return yk_fail(YOKE_ENOMEM, "no memory for a text");
	}
	if (entry)
		c->entry[c->entries++] = (struct yk_choice_entry){ c->made + c->raw.n, entry };
	c->tokens++;
	yk_string_add(&c->raw, text, bytes);
	const int e = pass_characters(c, stops, false);
	count_ready(c);
	return e;
}

int yk_choice_end(struct yk_choice *c, const struct yk_stops *stops, const char *finish)
{
	int e = c->stopped ? 0 : pass_characters(c, stops, true);
	if (e == 0 && !c->stopped)
		e = yk_stops_flush(&c->tail, pass, c);
	c->finish = c->stopped ? "stop" : finish;
	if (c->stopped)
		count_ready(c);
	else
		c->ready = c->entries;
	return e;
}

json_t *yk_choice_entries(struct yk_choice *c)
{
	json_t *list = json_array();
	while (c->taken < c->ready) {
		json_array_append(list, c->entry[c->taken].o);
		json_decref(c->entry[c->taken].o);
		c->entry[c->taken++].o = NULL;
	}
	return list;
}

void yk_choice_fini(struct yk_choice *c)
{
	for (size_t i = c->taken; i < c->entries; i++)
		json_decref(c->entry[i].o);
	free(c->entry);
	yk_string_fini(&c->raw);
	yk_string_fini(&c->text);
	yk_stop_tail_fini(&c->tail);
}
