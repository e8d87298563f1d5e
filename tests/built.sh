# SPDX-License-Identifier: Apache-2.0
# Sourced after tap.sh by tests that compile applications: sets $build and $source, the build and
# source directories, and changes to an empty directory, $work, which is removed at the end.
build=$PWD
cd "${srcdir:-.}" && source=$PWD || exit 99
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99

# made NAME: a variable of the Makefile
made()
{
	sed -n "s/^$1 = *//p" "$build/Makefile"
}

# compiles FILE NAME OPTION ..: what the compiler says of an application
compiles()
{
	file=$1 name=$2
	shift 2
	# shellcheck disable=SC2046 # words
	$(made CC) -std=gnu11 -Wall -Wextra "$@" $(made YOKE_LDFLAGS) -I"$source/include" "$file" -L"$build/.libs" -lyoke -o "$name" 2>&1
}
