// SPDX-License-Identifier: Apache-2.0
// Advice: what a person may do next, in words that can be typed.
#ifndef YK_ADVICE_H
#define YK_ADVICE_H

// A word as a shell reads it, in quotes where it needs them; for free().  NULL: no memory.
char *yk_shell_word(const char *);

#endif
