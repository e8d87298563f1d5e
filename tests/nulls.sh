#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Calls every public function with an invalid value for each of its pointers and counts
# (tests/nulls.py): it returns an error, or its header says that the argument is optional, and it
# does not crash. nulls.sh NAME ..: only these functions.
set -u
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/built.sh"
skip_all()
{
	echo "1..0 # SKIP $*"
	exit 0
}
[ -e "$build/.libs/libyoke.so" ] || skip_all 'there is no shared libyoke'
[ -z "${YOKE_TEST_EMULATOR:-}" ] || skip_all 'it is built for another architecture'
python3 -c '' 2>/dev/null || skip_all 'there is no python3'
python3 "$source/tests/nulls.py" "$source" >nulls.c 2>said || {
	verdict 'each public function has valid arguments in tests/nulls.py' "$(cat said)"
	echo "1..$count"
	exit $failed
}
# shellcheck disable=SC2046 # words
$(made CC) $(made CFLAGS) -O0 -Wno-unused-function -I"$source/tests" -I"$source/include" nulls.c -o nulls -L"$build/.libs" -lyoke -lm \
	>said 2>&1 || {
	sed 's/^/# /' said
	echo 'Bail out! what tests/nulls.py writes does not compile'
	exit 1
}
YOKE_BACKEND=cpu LD_LIBRARY_PATH=$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ./nulls "$@" 2>said
code=$?
[ $code -eq 0 ] || tail -20 said | sed 's/^/# /'
exit $code
