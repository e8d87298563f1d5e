#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Describes the library's ABI with abidw (abigail-tools):
#	abi.sh LIBRARY HEADERS FILE      of a library that was built
#	abi.sh --tag SOURCE FILE         of the last tag, which it builds in a temporary directory
set -eu
if [ "$1" = --tag ]; then
	work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
	tag=$(git -C "$2" describe --tags --abbrev=0)
	git -C "$2" archive "$tag" | tar -x -C "$work"
	(cd "$work" && ./autogen.sh && ./configure CFLAGS='-g -O1' && make -j2 libyoke.la) >"$3.log" 2>&1 || {
		echo "abi.sh: $tag cannot be built; see $3.log" >&2
		exit 1
	}
	set -- "$work/.libs/libyoke.so" "$work/include" "$3"
fi
abidw --headers-dir "$2" --no-corpus-path --no-show-locs --no-comp-dir-path --no-elf-needed --drop-private-types \
	--exported-interfaces-only --type-id-style hash --out-file "$3" "$1"
