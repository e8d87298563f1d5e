#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes C arrays that hold files as text: arrays.sh HEADER NAME FILE [NAME FILE ..] >text.c
set -eu
printf '// Made by build-aux/arrays.sh.\n#include "config.h"\n\n#include "%s"\n' "$1"
shift
while [ $# -gt 1 ]; do
	printf '\nconst char %s[] = {\n' "$1"
	od -An -v -tx1 "$2" | sed 's/ *$//; s/ *\([0-9a-f][0-9a-f]\)/0x\1,/g'
	printf '0x00 };\n'
	shift 2
done
