// SPDX-License-Identifier: Apache-2.0
// Quotes words so that they can be pasted into a shell.
#include "config.h"

#include "config/advice.h"

#include <stdlib.h>
#include <string.h>

static const char plain[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+,=-";

char *yk_shell_word(const char *s)
{
	char *word, *to;
	if (*s && !s[strspn(s, plain)])
		return strdup(s);
	to = word = malloc(4 * strlen(s) + 3);
	if (!word)
		return NULL;
	*to++ = '\'';
	for (; *s; s++) {
		if (*s == '\'')
			to = stpcpy(to, "'\\'");
		*to++ = *s;
	}
	strcpy(to, "'");
	return word;
}
