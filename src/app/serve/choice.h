// SPDX-License-Identifier: Apache-2.0
// The text of one choice as its tokens arrive.  Bytes wait while they may be a part of a character
// or of a stop text; what was passed on is never taken back.
#ifndef YK_SERVE_CHOICE_H
#define YK_SERVE_CHOICE_H

#include <jansson.h>

#include "text/stops.h"
#include "tokenizer/pieces.h"

struct yk_choice {
	struct yk_string raw;     // bytes that begin a character
	struct yk_stop_tail tail; // that begin a stop text
	struct yk_string text;    // passed on, and not taken yet
	size_t made, passed;      // bytes of the text, with those that wait; and without
	struct yk_choice_entry {
		size_t from; // byte of the text at which the token begins
		json_t *o;
	} * entry; // of tokens with log-probabilities
	size_t entries, entry_cap, ready,
		taken; // ready: number of entries whose text was passed on
	int64_t tokens;
	bool stopped;       // at a stop text
	const char *finish; // why it ended; NULL: it has not
	double last;        // time of the last token
	size_t offset;      // bytes of the tokens whose entries were taken
};

// Appends the text of a token, and its entry, unless NULL, whose reference is taken.  ENOMEM.
int yk_choice_add(struct yk_choice *, const struct yk_stops *, const char *text, size_t bytes,
		  json_t *entry);
// The text has ended: passes on what waits.  ENOMEM.
int yk_choice_end(struct yk_choice *, const struct yk_stops *, const char *finish);
// An array of the entries that were passed on and not taken; takes them.  NULL: no memory.
json_t *yk_choice_entries(struct yk_choice *);
void yk_choice_fini(struct yk_choice *);

#endif
