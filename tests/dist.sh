#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests that `make dist` gives the same bytes from another copy of the source, with other times of files,
# another order in the directory, another umask, time zone and build directory; and that all files have the
# date asked for.
set -u
. "${srcdir:-.}/tests/tap.sh"
source=$(cd "${srcdir:-.}" && pwd) build=$PWD
[ -e Makefile ] || { echo "1..0 # SKIP no Makefile"; exit 0; }
grep -q '^am__tar = .*--sort=name' Makefile || { echo "1..0 # SKIP tar cannot sort names"; exit 0; }
work=$(mktemp -d) || exit 99
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
unset MAKEFLAGS MAKELEVEL MFLAGS TAR_OPTIONS XZ_DEFAULTS
export SOURCE_DATE_EPOCH=1700000000 XZ_OPT=-0
archive=yoke-$(sed -n 's/^PACKAGE_VERSION = *//p' Makefile).tar.xz

# dist FOLDER: the archive of the build in the directory
dist()
{
	(cd "$1" && ${MAKE:-make} dist-xz) >"$work/out" 2>&1 || tail -n 5 "$work/out"
}

# a copy of what is distributed, made file by file in another order
mkdir "$work/first" "$work/copy" "$work/second" || exit 99
verdict "make dist in this build" "$(dist "$build")"
mv "$build/$archive" "$work/first/" || exit 99
tar -xf "$work/first/$archive" -C "$work/first" --strip-components=1 || exit 99
(cd "$work/first" && find . -type f ! -name "$archive" | sort -r) >"$work/names"
(cd "$work/first" && tar -cf - -T "$work/names") | tar -xf - -C "$work/copy"
find "$work/copy" -type f -exec touch -d '2001-02-03 04:05:06' {} +
verdict "a copy of the release configures" "$(cd "$work/second" && umask 077 && TZ=Asia/Kathmandu \
	"$work/copy/configure" -q CC="$(sed -n 's/^CC = *//p' "$build/Makefile")" >"$work/out" 2>&1 || tail -n 5 "$work/out")"
verdict "make dist in the copy" "$(umask 077 && TZ=Asia/Kathmandu LC_ALL=C.UTF-8 dist "$work/second")"
verdict "the two archives have the same bytes" "$(cmp "$work/first/$archive" "$work/second/$archive" 2>&1 ||
	{ tar -tvf "$work/first/$archive" >"$work/a"; tar -tvf "$work/second/$archive" >"$work/b"; diff "$work/a" "$work/b" | head; })"
verdict "all files have the date asked for and no owner" "$(tar --utc --full-time --numeric-owner -tvf "$work/first/$archive" |
	grep -v ' 0/0 .* 2023-11-14 22:13:20 ')"
echo "1..$count"
exit $failed
