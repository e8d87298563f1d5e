#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Calls every public function with an invalid value for each of its pointers and counts
# (tests/nulls.py): it returns an error, or its header says that the argument is optional, and it
# does not crash. nulls.sh NAME ..: only these functions.
set -u
build=$PWD
. "${srcdir:-.}/tests/tap.sh"
source=$(cd "${srcdir:-.}" && pwd) || exit 99
skip()
{
	echo "1..0 # SKIP $*"
	exit 0
}
[ -e .libs/libyoke.so ] || skip 'there is no shared libyoke'
[ -z "${YOKE_TEST_EMULATOR:-}" ] || skip 'it is built for another architecture'
python3 -c '' 2>/dev/null || skip 'there is no python3'
cc=$(sed -n 's/^CC = *//p' Makefile) flags=$(sed -n 's/^CFLAGS = *//p' Makefile)
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
python3 "$source/tests/nulls.py" "$source" >"$work/nulls.c" 2>"$work/said" || {
	verdict 'each public function has good arguments in tests/nulls.py' "$(cat "$work/said")"
	echo "1..$count"
	exit $failed
}
# shellcheck disable=SC2086 # words
$cc $flags -O0 -Wno-unused-function -I"$source/tests" -I"$source/include" "$work/nulls.c" -o "$work/nulls" -L.libs -lyoke -lm \
	>"$work/said" 2>&1 || {
	sed 's/^/# /' "$work/said"
	echo 'Bail out! what tests/nulls.py writes does not compile'
	exit 1
}
YOKE_BACKEND=cpu LD_LIBRARY_PATH=$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$work/nulls" "$@" 2>"$work/said"
code=$?
[ $code -eq 0 ] || tail -20 "$work/said" | sed 's/^/# /'
exit $code
