// SPDX-License-Identifier: Apache-2.0
// Automata of JSON numbers within bounds, as decimal text.
#ifndef YK_SCHEMA_NUMBER_H
#define YK_SCHEMA_NUMBER_H

#include <jansson.h>

#include "schema/automaton.h"

struct yk_number_rule {
	bool integer;
	const json_t *min, *max, *multiple; // NULL: none
	bool min_open, max_open;            // the bound itself is excluded
};

// Integers have at most 18 digits.  Other numbers have fraction and exponent without bounds, only a
// fraction with bounds, and never overflow an f64.  EUNSUPPORTED with *why, not reported; ERANGE:
// beyond a limit, not reported; ENOMEM.
int yk_number_compile(struct yk_dfa *, const struct yk_number_rule *, uint32_t *start,
		      const char **why);

#endif
