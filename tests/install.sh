#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests `make install` into an empty directory: tests/installcheck.sh there, and the lines of
# README.md about installing, with the installation moved to their prefix.
set -u
. "${srcdir:-.}/tests/tap.sh"
source=$(cd "${srcdir:-.}" && pwd) build=$PWD
[ -e Makefile ] || { echo "1..0 # SKIP no Makefile"; exit 0; }
[ -z "${YOKE_TEST_EMULATOR:-}" ] || { echo "1..0 # SKIP it is built for another architecture"; exit 0; }
command -v pkg-config >/dev/null 2>&1 || { echo "1..0 # SKIP there is no pkg-config"; exit 0; }
prefix=$(sed -n 's/^prefix = //p' Makefile)
libdir=$(sed -n 's,^libdir = \${[a-z_]*prefix}/,,p' Makefile)
[ "$libdir" = lib ] && [ -n "$prefix" ] || { echo "1..0 # SKIP libraries are not in PREFIX/lib"; exit 0; }
unset MAKEFLAGS MAKELEVEL MFLAGS YOKE_PLUGIN_PROBE YOKE_PLUGIN_PATH
dest=${TMPDIR:-/tmp}/dest out=${TMPDIR:-/tmp}/out
${MAKE:-make} -C "$build" install DESTDIR="$dest" >"$out" 2>&1
verdict "make install" "$([ $? -eq 0 ] || tail -n 20 "$out")"
${MAKE:-make} -C "$build" installcheck DESTDIR="$dest" >"$out" 2>&1
grep '^\(ok\|not ok\|#\)' "$out" | sed 's/^\(ok\|not ok\) [0-9]* - /\1 /' >"$out.tap"
verdicts <"$out.tap"

# as README.md has it: a folder of the user's own
home=${TMPDIR:-/tmp}/user
mkdir "$home" && mv "$dest$prefix" "$home/.local" || exit 99
cd "$home" && cp .local/share/doc/yoke/examples/xor.c . || exit 99
sed -n 's/^	//p' "$source/README.md" >lines
verdict "README.md installs into a folder of one's own" "$(
	grep -qxF './configure --prefix=$HOME/.local && make -j2 && make install' lines || cat lines)"
# shellcheck disable=SC2016 # for the shell that is run
grep '^export PATH\|^cc ' lines | sed 's/pkg-config/pkg-config --define-prefix/; s/^cc /${CC:-cc} ${YOKE_LDFLAGS:-} /' >commands
verdict "the lines of README.md compile a program" "$([ "$(grep -c . commands)" -eq 2 ] || cat lines
	HOME=$home sh -eu commands 2>&1)"
verdict "which runs" "$(YOKE_BACKEND=cpu ./xor >"$out" 2>&1 && grep -q '^step 100  loss' "$out" || cat "$out")"
HOME=$home sh -c "$(grep '^export PATH' lines); yoke doctor" >"$out" 2>&1
verdict "the installed command finds its probe helper" "$(grep -q "^  found  $home/.local/.*/yoke-probe\$" "$out" || cat "$out")"
verdict "and every module of the build" "$(grep '^  yoke_.* not found' "$out")"
echo "1..$count"
