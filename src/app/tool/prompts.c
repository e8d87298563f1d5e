// SPDX-License-Identifier: Apache-2.0
// Reads texts from a file or from standard input.
#include "config.h"

#include "tool/prompts.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/kind.h"

#define MAX_BYTES (UINT64_C(1) << 30)

int yk_prompts_read(const char *path, const char *what, char **text, size_t *bytes)
{
	const bool piped = !strcmp(path, "-");
	size_t n = 0;
	if (piped && isatty(STDIN_FILENO))
		fprintf(stderr, "reading the %s with Ctrl-D\n", what);
	int e = piped ? yk_file_read_stdin(MAX_BYTES, text, bytes) :
			yk_file_read(path, MAX_BYTES, text, bytes);
	if (e < 0)
		return e;
	e = yk_text_begin(piped ? "standard input" : path, *text, bytes);
	for (size_t i = 0; i < *bytes; i++)
		if ((*text)[i] != '\r' || (*text)[i + 1] != '\n') // the text ends with a NUL
			(*text)[n++] = (*text)[i];
	(*text)[n] = 0;
	*bytes = n;
	return e;
}
