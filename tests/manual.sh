#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each header of the library has a manual page, which lists each of its functions.
set -u
build=$PWD
. "${srcdir:-.}/tests/tap.sh"
cd "${srcdir:-.}" && source=$PWD || exit 99

# Functions of a header: what stands before the first parenthesis of what YOKE_API begins.
functions()
{
	sed -n 's/^YOKE_API [^(]*[ *]\(yoke_[a-z0-9_]*\)(.*/\1/p' "$1"
}

for header in include/yoke*.h; do
	name=$(basename "$header" .h)
	[ "$name" != yoke-plugin ] || continue # plugins/README is its page
	if [ ! -f "$build/doc/$name.3" ]; then
		verdict "$name.3" "it is not made"
		continue
	fi
	verdict "$name.3 has the $(functions "$header" | wc -l) functions of $header" "$(
		[ "$(functions "$header" | wc -l)" -eq "$(grep -c '^YOKE_API' "$header")" ] || echo "YOKE_API that is no function"
		functions "$header" | while read -r f; do
			grep -q "^\.B .*[ *]$f(" "$build/doc/$name.3" || echo "$f is not there"
		done)"
done
echo "1..$count"
exit $failed
