#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the library's ABI: only versioned functions declared in the headers are exported, and the
# ABI equals that of the last tag except for additions: functions, and members at the ends of
# structs. `make abi` builds the tag's library, as does this test in a long run.
set -u
build=$PWD
. "${srcdir:-.}/tests/tap.sh"
cd "${srcdir:-.}" && source=$PWD || exit 99
library=$build/.libs/libyoke.so
[ -e "$library" ] || { echo "1..0 # SKIP $library is not built"; exit 0; }

nm -D --defined-only "$library" >"${TMPDIR:-/tmp}/symbols" 2>/dev/null || { echo '1..0 # SKIP nm does not read it'; exit 0; }
verdict 'each symbol is of yoke, and has a version' "$(awk '{ print $3 }' "${TMPDIR:-/tmp}/symbols" |
	grep -v '^yoke_[a-z0-9_]*@@YOKE_[0-9.]*$' | grep -v '^YOKE_[0-9.]*' | head -5)"
sed -n 's/^YOKE_API [^(]*[ *]\(yoke_[a-z0-9_]*\)(.*/\1/p' include/yoke*.h | sort -u >"${TMPDIR:-/tmp}/declared"
sed 's/.* \(yoke_[a-z0-9_]*\)@.*/\1/' "${TMPDIR:-/tmp}/symbols" | sort -u >"${TMPDIR:-/tmp}/shown"
verdict 'all functions of the headers are in it' "$(comm -23 "${TMPDIR:-/tmp}/declared" "${TMPDIR:-/tmp}/shown" | head -5)"

# compare FILE: how the library differs; fails if it does
compare()
{
	abidiff --no-added-syms --suppressions tests/abi.supp "$1" "$now" >"${TMPDIR:-/tmp}/differs" 2>&1
	code=$?
	[ $code -eq 0 ] || { echo "abidiff: $code" && head -40 "${TMPDIR:-/tmp}/differs"; }
	return $code
}

if ! abidiff --version >/dev/null 2>&1; then
	echo "ok $((count = count + 1)) - the ABI # SKIP no abidiff (abigail-tools)"
elif ! readelf -S "$library" | grep -q '\.debug_info'; then
	echo "ok $((count = count + 1)) - the ABI # SKIP the library has no debug information"
else
	# of two texts: abidiff 2.2 crashes where it compares one with a library
	now=${TMPDIR:-/tmp}/now.abi was=$build/tests/tag.abi
	verdict 'the ABI can be described' "$(sh build-aux/abi.sh "$library" include "$now" 2>&1)"
	sed "s/yoke_version/yoke_gone/g" "$now" >"${TMPDIR:-/tmp}/other.abi"
	verdict 'a removed function is found' "$(compare "${TMPDIR:-/tmp}/other.abi" | grep -q '1 Removed function' || echo 'it is not')"
	if ! git describe --tags --abbrev=0 >/dev/null 2>&1; then
		echo "ok $((count = count + 1)) - the ABI of the last tag # SKIP there is no tag"
	elif [ ! -e "$was" ] && [ "${YOKE_TEST_LONG:-0}" = 0 ]; then
		echo "ok $((count = count + 1)) - the ABI of the last tag # SKIP make abi builds its description"
	else
		[ -e "$was" ] || sh build-aux/abi.sh --tag "$source" "$was"
		verdict 'the ABI is that of the last tag' "$(compare "$was")"
	fi
fi
echo "1..$count"
exit $failed
