// SPDX-License-Identifier: Apache-2.0
// Functions that set a key from text, shared by conf.c and conf_file.c. `where` begins error
// messages: "argument", "config.env:3".
#ifndef YK_CONF_VALUE_H
#define YK_CONF_VALUE_H

#include "config/conf.h"

// Index of the key with that name, in lower or upper case; -1: none.
int yk_config_key_of(const char *name);
// Fails with YOKE_ENOENT, naming the key that was probably meant.
int yk_config_unknown(const struct yk_config *, const char *where, const char *name);
// Checks text against the key's row, and sets to->i and to->r.
int yk_config_parse(enum yk_config_key, const char *where, const char *text,
		    struct yk_config_value *to);
// Sets a key unless its value has a stronger origin; a value of the same origin is replaced. epochs
// determines steps unless steps has a stronger origin.
int yk_config_set(struct yk_config *, enum yk_config_key, const char *where, const char *text,
		  enum yk_config_origin);

#endif
