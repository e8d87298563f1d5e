#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes C arrays that hold files as text: arrays.sh HEADER NAME FILE [NAME FILE ..] >text.c
# A NAME that begins with hash: makes NAME the file's hash as in a security policy, "sha256-" and base64.
set -eu

sha256()
{
	if command -v sha256sum >/dev/null 2>&1; then
		sha256sum
	elif command -v shasum >/dev/null 2>&1; then
		shasum -a 256
	else
		openssl dgst -sha256 -r
	fi
}

# base64 of hexadecimal digits
base64_of()
{
	awk '{
		alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
		hex = substr($1, 1, 64) "00" # 33 bytes
		for (i = 1; i <= 66; i += 3) {
			x = 0
			for (k = 0; k < 3; k++)
				x = 16 * x + index("0123456789abcdef", substr(hex, i + k, 1)) - 1
			out = out substr(alphabet, int(x / 64) + 1, 1) substr(alphabet, x % 64 + 1, 1)
		}
		print substr(out, 1, 43) "="
	}'
}

printf '// Made by build-aux/arrays.sh.\n#include "config.h"\n\n#include "%s"\n' "$1"
shift
while [ $# -gt 1 ]; do
	case $1 in
	hash:*)
		hash=$(sha256 <"$2" | base64_of)
		[ ${#hash} -eq 44 ] || { echo 'arrays.sh: needs sha256sum, shasum or openssl' >&2; exit 1; }
		printf '\nconst char %s[] = "sha256-%s";\n' "${1#hash:}" "$hash"
		shift 2
		continue
		;;
	esac
	printf '\nconst char %s[] = {\n' "$1"
	od -An -v -tx1 "$2" | sed 's/ *$//; s/ *\([0-9a-f][0-9a-f]\)/0x\1,/g'
	printf '0x00 };\n'
	shift 2
done
