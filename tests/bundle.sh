#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests bench/bundle.sh: its bundle is small, contains every library but glibc's, and runs from
# another directory on the fake drivers; on an older glibc or another processor it ends with one
# line.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
source=$(cd "${srcdir:-.}" && pwd)
[ "${YOKE_TEST_CLIENTS:-0}${YOKE_TEST_LONG:-0}" != 00 ] ||
	{ echo '1..0 # SKIP it installs and strips everything, half a minute (YOKE_TEST_CLIENTS=1)'; exit 0; }
[ -z "${YOKE_TEST_EMULATOR:-}" ] || { echo '1..0 # SKIP it is built for another architecture'; exit 0; }
for tool in timeout strip readelf ldd; do
	command -v $tool >/dev/null 2>&1 || { echo "1..0 # SKIP there is no $tool"; exit 0; }
done
. "${srcdir:-.}/tests/fake_gpus.sh"
unset MAKEFLAGS MAKELEVEL MFLAGS YOKE_PLUGIN_PROBE YOKE_PLUGIN_PATH
backend=${backends%%
*}

# refused COMMAND ..: lines about what is not a status of 2 and one line of stderr with each word of $words
refused()
{
	"$@" >out 2>err
	status=$?
	[ $status -eq 2 ] || echo "status $status"
	[ "$(grep -c . err)" -eq 1 ] && [ ! -s out ] || cat out err
	for word in $words; do
		grep -qF -e "$word" err || echo "no $word: $(cat err)"
	done
}

mkdir -p made/share/yoke && touch made/share/yoke/bundle made/stale
"$source/bench/bundle.sh" -b "$here" made// >out 2>err
verdict 'is written' "$([ $? -eq 0 ] && [ ! -s err ] && [ -x made/bin/yoke ] || cat err)"
verdict 'in the place of an older one, whose files are gone' "$(ls -d made/stale made/*.new.* made.* 2>/dev/null)"
needed=$(sed -n 's/^glibc //p' made/share/yoke/bundle)
verdict 'the bundle states the required glibc' "$(grep -q "needs glibc $needed or newer" out && grep -q "glibc $needed or newer" made/README || cat out)"
verdict 'no file of the bundle needs a newer glibc' "$(find made/lib made/libexec -type f -exec readelf --version-info --wide {} + 2>/dev/null |
	grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | cat - made/share/yoke/bundle | grep '^[0-9]' | sort -u -V | tail -n 1 | grep -vxF "$needed")"
verdict 'has 60 MiB at most' "$(find made -type f -exec cat {} + | wc -c | awk '$1 > 60 * 1048576 { print $1 " bytes" }')"
verdict 'is stripped' "$(find made/lib made/libexec -type f -exec readelf --sections --wide {} + | grep '\.symtab\|\.debug')"
mkdir other && mv made other/moved && cd other || exit 99
verdict 'every library except glibc comes from the bundle' "$(for file in moved/lib/yoke/*.so moved/libexec/yoke/*; do
	LD_LIBRARY_PATH=$PWD/moved/lib$(printf ':%s' "$PWD"/moved/lib/fallback/*) ldd $file; done | grep '=>' |
	grep -v "=> $PWD/moved/lib/" | grep -v '^[[:space:]]*\(ld-linux[^ ]*\|lib\(c\|m\|dl\|pthread\|rt\|resolv\|util\|mvec\|anl\)\.so\.[0-9]*\) =>')"
verdict "no file of the bundle contains the build directory's name" "$(grep -rlF "$here/" moved/bin moved/lib moved/libexec moved/share/yoke/bundle)"
export LD_LIBRARY_PATH="$YOKE_TEST_FAKE"
verdict 'the bundle finds its modules and kernel texts' "$(YOKE_BACKEND=$backend moved/bin/yoke info >out 2>err && [ ! -s err ] &&
	grep -q "chosen: $backend:0" out || cat err out)"
verdict "which lie in it" "$(moved/bin/yoke doctor >out 2>err; grep "^  [^ ]*yoke_[a-z]*\.so" out | grep -v "$PWD/moved/lib/yoke/"
	grep -q "found  $PWD/moved/libexec/yoke/yoke-probe" out || grep probe out)"
verdict 'checks and measures' "$(moved/bench/gpu.sh -t 1800 -j 2 -o results -p train,programs,memory,launches $backend >out 2>err || cat out err
	grep -c '"status": "ok"' results/results.json | grep -vx 5)"

# fallbacks: the libraries of the bundle that its programs look for in fallback
fallbacks()
{
	LD_LIBRARY_PATH='' moved/bin/shown | tr : '\n' | sed -n 's,.*/fallback/,,p'
}
mkdir bin
# a launcher on a system whose libraries are those that bin/ldconfig lists
sed 's,^\([[:space:]]*for folder in\) .*,\1 none; do,' moved/bin/yoke >moved/bin/shown && chmod +x moved/bin/shown
printf '#!/bin/sh\necho "$LD_LIBRARY_PATH"\n' >moved/libexec/yoke/shown && chmod +x moved/libexec/yoke/shown
for without in none libgcc_s.so.1 libstdc++.so.6; do
	printf '#!/bin/sh\ncat <<END\n' >bin/ldconfig && chmod +x bin/ldconfig
	for name in libgcc_s.so.1 libstdc++.so.6; do
		printf '\t%s (libc6) => /lib32/%s\n' $name $name
		[ $name = $without ] || printf '\t%s (libc6,x86-64) => /lib/%s\n' $name $name
	done >>bin/ldconfig
	verdict "libraries of the compiler that the system has precede the bundle's; without: $without" "$(
		ls moved/lib/fallback 2>/dev/null | grep -xF $without >wanted
		PATH=$PWD/bin:$PATH fallbacks | diff wanted - )"
done
rm bin/ldconfig
cp moved/bin/yoke moved/bin/shown
verdict 'this system has them, without /sbin in PATH, too' "$(PATH=/usr/bin:/bin fallbacks)"
rm moved/bin/shown moved/libexec/yoke/shown
printf '#!/bin/sh\necho glibc 2.17\n' >bin/getconf && chmod +x bin/getconf
words="glibc $needed 2.17"
verdict 'an older glibc' "$(PATH=$PWD/bin:$PATH refused moved/bin/yoke info)"
verdict 'the script there' "$(PATH=$PWD/bin:$PATH refused moved/bench/gpu.sh)"
printf '#!/bin/sh\necho glibc 2.999\n' >bin/getconf
verdict 'a newer glibc' "$(PATH=$PWD/bin:$PATH moved/bin/yoke --version >out 2>&1 || cat out)"
printf '#!/bin/sh\nexit 1\n' >bin/getconf
words="glibc $needed"
verdict 'no glibc' "$(PATH=$PWD/bin:$PATH refused moved/bin/yoke info)"
rm bin/getconf
printf '#!/bin/sh\necho riscv64\n' >bin/uname && chmod +x bin/uname
words="riscv64 $(uname -m)"
verdict 'on another processor architecture it ends with one line' "$(PATH=$PWD/bin:$PATH refused moved/bin/yoke info)"
rm bin/uname
mkdir full && touch full/file
words='full'
verdict 'a directory with other files is refused' "$(refused "$source/bench/bundle.sh" -b "$here" full)"
words='wants'
verdict 'no directory' "$(refused "$source/bench/bundle.sh" -b "$here")"
words='./none'
verdict 'no build' "$(refused "$source/bench/bundle.sh" -b ./none made)"
echo "1..$count"
exit $failed
