// SPDX-License-Identifier: Apache-2.0
// Regular expressions of ECMA-262 without what is not regular (backreferences, lookaround), as
// automata.
#ifndef YK_SCHEMA_PATTERN_H
#define YK_SCHEMA_PATTERN_H

#include "schema/automaton.h"

enum yk_pattern_mode {
	YK_PATTERN_TEXT,   // the whole text in UTF-8 matches
	YK_PATTERN_STRING, // a JSON string, with its quotes, whose value has a match, as in JSON
			   // Schema.  Each character has one spelling: an escape only where JSON
			   // demands one.
};

enum { YK_PATTERN_BYTES = 4096 };

// `pattern` is UTF-8.  EFORMAT with *why: what is wrong with the pattern or not supported; ERANGE:
// beyond a limit; ENOMEM.  None is reported but ENOMEM.
int yk_pattern_compile(struct yk_dfa *, const char *pattern, size_t n, enum yk_pattern_mode,
		       uint32_t *start, const char **why);

#endif
