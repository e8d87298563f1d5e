#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The cache of compiled kernels that builds and clones share (tests/kernel_cache,
# tests/fake_gpu/compile.c): its directory, its size limit, and that an entry is reused only for the
# compiler and text it was made from.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
source=$(cd "${srcdir:-.}" && pwd)
. "${srcdir:-.}/tests/fake_gpus.sh"

# directories [SETTING ..]: POCL_CACHE_DIR and YOKE_FAKE_CACHE
directories()
{
	env -u XDG_CACHE_HOME -u HOME -u YOKE_TEST_CACHE -u YOKE_TEST_CACHE_MB "$@" \
		sh -u -c '. "$0/tests/kernel_cache"; echo "$POCL_CACHE_DIR $YOKE_FAKE_CACHE"' "$source"
}

mkdir home xdg chosen && ln -s home link && : >file
here_now=$PWD
below()
{
	want=$1
	shift
	got=$(directories "$@")
	verdict "$*: below $want" "$(case $got in
		"$here_now/$want"/*/pocl' '"$here_now/$want"/*/fake) ;;
		*) echo "$got" ;;
		esac)"
}
below home/.cache/yoke-tests HOME="$PWD/home"
below xdg/yoke-tests HOME="$PWD/home" XDG_CACHE_HOME="$PWD/xdg"
below chosen HOME="$PWD/home" XDG_CACHE_HOME="$PWD/xdg" YOKE_TEST_CACHE="$PWD/chosen"
# in_build [SETTING ..]: the cache is that of the build
in_build()
{
	verdict "${*:-no HOME}: in the build directory" \
		"$(directories "$@" | grep -Fxv "$PWD/tests/tmp/pocl $PWD/tests/tmp/fake")"
}
in_build
in_build HOME=
in_build HOME=relative
in_build HOME="$PWD/home" YOKE_TEST_CACHE=0
in_build HOME="$PWD/home" YOKE_TEST_CACHE=relative
in_build HOME="$PWD/file"
verdict "the same directory each time" "$([ "$(directories HOME="$PWD/home")" = "$(directories HOME="$PWD/home")" ] || echo differs)"
mkdir vendors && echo libother.so >vendors/other.icd
verdict "another for another driver" "$([ "$(directories HOME="$PWD/home")" != \
	"$(directories HOME="$PWD/home" OCL_ICD_VENDORS="$PWD/vendors")" ] || echo same)"

# entry NAME AGE: 1 MB of each kind, last used AGE hours ago
entry()
{
	mkdir -p "full/key/pocl/$1" "full/key/fake/$1"
	for file in "pocl/$1/program.bc" "fake/$1.so"; do
		dd if=/dev/zero of="full/key/$file" bs=1048576 count=1 2>/dev/null
	done
	for file in "pocl/$1/last_accessed" "fake/$1.so" "fake/$1/prologue.h.gch"; do
		touch -d "$2 hours ago" "full/key/$file" || exit 99
	done
}
sweep()
{
	rm -f full/swept
	directories YOKE_TEST_CACHE="$PWD/full" YOKE_TEST_CACHE_MB="$1" >/dev/null
	find full/key -name program.bc -o -name '*.so' -o -name prologue.h.gch |
		sed 's|.*/\([^/]*\)/[pl].*|\1|; s|.*/||; s|\.so||' | sort | uniq -c
}
entry old 4000 && entry week 170 && entry used 1
verdict "below the limit all stay" "$(sweep 100 >left; [ "$(awk '{ n += $1 } END { print n }' left)" = 9 ] || cat left)"
verdict "above it the oldest go" "$(sweep 5 >left; printf '      3 used\n      3 week\n' | diff - left)"
verdict "what tests may be using stays" "$(sweep 0 >left; printf '      3 used\n' | diff - left)"
directories YOKE_TEST_CACHE="$PWD/full" >/dev/null
entry old 4000
verdict "once an hour" "$(directories YOKE_TEST_CACHE="$PWD/full" YOKE_TEST_CACHE_MB=0 >/dev/null
	[ -e full/key/fake/old.so ] || echo removed)"

# A compiler that counts its runs.
cat >counting <<END
#!/bin/sh
echo >>"$PWD/runs"
exec $cxx "\$@"
END
chmod 755 counting
b=$(echo $backends | cut -d ' ' -f 1)
export LD_LIBRARY_PATH="$YOKE_TEST_FAKE" YOKE_PLUGIN_PATH="$here/plugins/$b/.libs" YOKE_FAKE_CXX="$PWD/counting"
export YOKE_FAKE_CACHE="$PWD/shared"

# conform N: how often the compiler runs, and what conform prints if it fails; yoke's own cache is empty
conform()
{
	rm -rf "own.$1" "runs.$1"
	: >runs
	YOKE_CACHE="$PWD/own.$1" "$yoke" check device "$b" --quick --ops softmax.f32 >"out.$1" 2>&1 || cat "out.$1"
	grep -q '^ok .*softmax f32 .*cases' "out.$1" || cat "out.$1"
}
verdict "an empty cache: kernels are compiled" "$(conform 1; [ -s runs ] || echo none)"
n=$(wc -l <runs)
verdict "a second run compiles nothing" "$(conform 2; cat runs)"
for file in shared/*.so; do
	printf 'damaged' | dd of="$file" bs=1 seek=2000 conv=notrunc 2>/dev/null
done
verdict "damaged entries are compiled anew" "$(conform 3; [ "$(wc -l <runs)" -ge 1 ] || echo none)"
verdict "and replaced" "$(conform 4; cat runs)"
for file in shared/*.so; do
	: >"$file"
done
verdict "so are empty ones" "$(conform 5; [ "$(wc -l <runs)" -ge 1 ] || echo none)"
echo '# changed' >>counting
verdict "another compiler of the same name finds none" "$(conform 6; [ "$(wc -l <runs)" -eq "$n" ] || wc -l runs)"
verdict "a directory that cannot be made" "$(YOKE_FAKE_CACHE=$PWD/file/none conform 7)"
export YOKE_FAKE_CACHE="$PWD/together"
verdict "four processes at once from an empty cache" "$(for i in a b c d; do conform $i >"log.$i" & done; wait; cat log.?)"
verdict "leave no temporary file" "$(ls -A together | grep -v '\.so$' | grep -vx '[0-9a-f]*'
	ls -A "${TMPDIR:-/tmp}" | grep '^fake\.')"
verdict "and whole entries" "$(conform e; cat runs)"
echo "1..$count"
exit $failed
