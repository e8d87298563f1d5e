// SPDX-License-Identifier: Apache-2.0
// Helpers for messages that suggest a command to type.
#ifndef YK_ADVICE_H
#define YK_ADVICE_H

// Quotes a word for a shell if necessary; free() the result. NULL: out of memory.
char *yk_shell_word(const char *);

#endif
