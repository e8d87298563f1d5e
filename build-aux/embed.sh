#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes a C file that holds the given files as text: embed.sh FILE .. >kerneltext.c
# Each is an array of numbers, since compilers limit the length of string literals.
set -eu
cat <<'END'
// The kernel texts of cl/, embedded by build-aux/embed.sh.
#include "config.h"

#include <stddef.h>
#include <string.h>

#include "kernel/kerneltext.h"

END
n=0
for file; do
	echo "static const char text_${n}[] = {"
	od -An -v -tx1 "$file" | sed 's/ *$//; s/ *\([0-9a-f][0-9a-f]\)/0x\1,/g'
	echo '0x00 };'
	n=$((n + 1))
done
cat <<'END'

static const struct {
	const char *name, *text;
} files[] = {
END
n=0
for file; do
	echo "	{ \"$(basename "$file")\", text_$n },"
	n=$((n + 1))
done
cat <<'END'
	{ NULL, NULL }
};

const char *yk_kernel_text(const char *name)
{
	for (size_t i = 0; files[i].name; i++)
		if (!strcmp(files[i].name, name))
			return files[i].text;
	return NULL;
}
END
