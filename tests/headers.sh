#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests that each public header alone compiles without a warning as C11, as C++11 and as the
# newest C and C++ that the compilers support. INCLUDE is their directory; default: the source
# tree's.
set -u
. "${srcdir:-.}/tests/tap.sh"
source=$(cd "${srcdir:-.}" && pwd)
include=${INCLUDE:--I$source/include}
cc=${CC:-cc}
cxx=${CXX:-c++}
[ -n "${CC:-}" ] || [ ! -f Makefile ] || cc=$(sed -n 's/^CC = *//p' Makefile)
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

# alone LANGUAGE STANDARD COMPILER: each header, and a pointer to one of its functions or structs
alone()
{
	for header in $(cd "$source/include" && echo yoke*.h); do
		echo "#include <$header>" >"$work/x.$1"
		echo "extern int nothing; int nothing;" >>"$work/x.$1"
		# shellcheck disable=SC2086 # words
		verdict "$header as $2" "$($3 -std="$2" -pedantic -Wall -Wextra -Wundef \
			-Werror $include -c "$work/x.$1" -o "$work/x.o" 2>&1)"
	done
}

# shellcheck disable=SC2086 # words
knows()
{
	echo 'int x;' >"$work/x.$1"
	$3 -std="$2" -c "$work/x.$1" -o "$work/x.o" >/dev/null 2>&1
}

for standard in c11 c2x; do
	! knows c $standard "$cc" || alone c $standard "$cc"
done
if knows cc c++11 "$cxx"; then
	for standard in c++11 c++20; do
		! knows cc $standard "$cxx" || alone cc $standard "$cxx"
	done
else
	skip 'the headers as C++' "no C++ compiler ($cxx)"
fi
echo "1..$count"
exit $failed
