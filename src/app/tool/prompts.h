// SPDX-License-Identifier: Apache-2.0
// Texts that a command reads from a file or a pipe, one per line.
#ifndef YK_PROMPTS_H
#define YK_PROMPTS_H

#include <stddef.h>

// Reads a file, or standard input if the path is "-"; removes a UTF-8 byte-order mark and converts
// line ends to LF.  On a terminal, prints `what` and how to end the input.  The text ends with a
// NUL that is not counted.
int yk_prompts_read(const char *path, const char *what, char **text, size_t *bytes);

#endif
