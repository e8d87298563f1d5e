#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the cache of compiled kernels: a second process compiles none; several processes on an
# empty cache all reach the same loss; damaged entries are recompiled; without a private directory
# there is one warning.
set -u
. "${srcdir:-.}/tests/yoke.sh"
[ -n "${YOKE_TEST_OPENCL:-}" ] || { echo "1..0 # SKIP no OpenCL backend in this build"; exit 0; }
. "${srcdir:-.}/tests/tap.sh"
cd "${TMPDIR:-/tmp}" || exit 99
umask 022
mkdir plugins && cp "$YOKE_TEST_OPENCL" plugins/ && chmod 755 plugins plugins/* || exit 99
export YOKE_PLUGIN_PATH="$PWD/plugins" YOKE_BACKEND=opencl
unset YOKE_OPENCL_BINARIES
"$yoke" info >out 2>&1
grep -q '^  opencl:0 ' out || { echo "1..0 # SKIP no OpenCL device"; exit 0; }
awk 'BEGIN { for (i = 0; i < 900; i++) print "line", i % 7, "of a text" }' >text

# Some at once, on empty caches of yoke and of the driver; to evaluate takes the fewest kernels.
many=2
[ "${YOKE_TEST_LONG:-0}" = 0 ] || many=16
mkdir pocl
YOKE_BACKEND=cpu "$yoke" train data=text steps=1 report=1 layers=1 heads=1 embed=8 context=8 batch=1 valid=0 \
	out=model >model.log 2>&1
i=0
while [ $i -lt $many ]; do
	XDG_CACHE_HOME="$PWD/race" POCL_CACHE_DIR="$PWD/pocl" "$yoke" eval model data=text >"p$i.loss" \
		2>"p$i.log" || echo "failed" >>"p$i.log" &
	i=$((i + 1))
done
wait
i=0
while [ $i -lt $many ]; do
	verdict "process $i of $many" "$(cmp p0.loss p$i.loss 2>&1; grep -q '^loss ' p$i.loss ||
		cat p$i.log model.log; grep -l failed p$i.log)"
	i=$((i + 1))
done
verdict "compilation of kernels is reported, and the driver prints nothing" "$(grep -q \
	'^opencl:0: .*once per device' p0.log && grep -q '^opencl:0: .* kernels, [1-9].* of [1-9]' p0.log &&
	grep -q '^opencl:0: [1-9][0-9]* programs* compiled, [0-9]* kernels* tested' p0.log ||
	cat p0.log; grep -h 'warning' p*.log)"
verdict "nothing temporary is left" "$(find race -type f ! -name '*.krn')"
verdict "concurrent processes leave their kernels in the cache" "$(find race -name '*.krn' | grep -q . || echo nothing)"
verdict "the folder is the user's alone" "$(find race/yoke -prune ! -perm 700)"

if script --version 2>/dev/null | grep -q util-linux; then
	# slice_at and its like are in neither cache, so there is something to wait for and to be said
	XDG_CACHE_HOME="$PWD/race" POCL_CACHE_DIR="$PWD/pocl" \
		script -qefc "'$yoke' generate model tokens=1 prompt=ABC" /dev/null >typed </dev/null
	verdict "progress on a terminal does not disturb generated text" "$(tr -d '\r' <typed >out
		grep -q '^ABC$' out && grep -q '^opencl:0: .* compiled' out || cat -A out; grep "$(printf '\033')" out)"
else
	skip 'on a terminal' 'no script of util-linux'
fi

export XDG_CACHE_HOME="$PWD/race" POCL_CACHE_DIR="$PWD/pocl" YOKE_LOG=debug
kept=$XDG_CACHE_HOME/yoke

# evaluate NAME: the loss in NAME.loss, programs compiled and found in NAME.n
evaluate()
{
	"$yoke" eval model data=text >"$1.loss" 2>"$1.log" || echo "failed" >>"$1.log"
	for how in compiled 'found in the cache'; do
		grep -c "debug: opencl: .*: $how\$" "$1.log"
	done >"$1.n"
}

# counts NAME COMPILED FOUND: of programs; + stands for some
counts()
{
	verdict "$1: $2 compiled, $3 found" "$(tr '\n' ' ' <"$1.n" | awk -v c="$2" -v f="$3" '
		function is(n, want) { return want == "+" ? n > 0 : n == want }
		NF != 2 || !is($1, c) || !is($2, f)' ; [ -s "$1.n" ] || cat "$1.log")"
}

evaluate after
counts after 0 +
verdict "the same loss" "$(cmp p0.loss after.loss 2>&1)"
YOKE_OPENCL_BINARIES=0 evaluate without
counts without + 0
verdict "the same loss" "$(cmp p0.loss without.loss 2>&1)"

# bytes in the middle of each
for file in "$kept"/*.krn; do
	size=$(wc -c <"$file")
	printf 'xyz' | dd of="$file" bs=1 seek=$((size / 2)) conv=notrunc 2>/dev/null
done
evaluate damaged
counts damaged + 0
verdict "the same loss" "$(cmp p0.loss damaged.loss 2>&1)"
evaluate again
counts again 0 +

chmod 777 "$kept"
evaluate open
counts open + 0
verdict "without a private directory there is one warning" "$([ "$(grep -c 'warn: cache: ' open.log)" -eq 1 ] &&
	grep -q "$kept: others may write there (mode 0777); chmod go-w" open.log || cat open.log)"
verdict "the same loss" "$(cmp p0.loss open.loss 2>&1)"
rm -rf "$kept" && ln -s "$PWD/elsewhere" "$kept" && mkdir elsewhere
evaluate link
verdict "a symbolic link as cache: one warning, and nothing is written through it" "$([ "$(grep -c 'warn: cache: ' link.log)" -eq 1 ] ||
	cat link.log; find elsewhere -type f)"
YOKE_CACHE=0 evaluate off
counts off + 0
verdict "switched off: none" "$(grep 'warn: cache' off.log)"
YOKE_CACHE=here evaluate relative
verdict "no absolute path: one" "$([ "$(grep -c 'warn: cache: .*no absolute path' relative.log)" -eq 1 ] ||
	cat relative.log)"
echo "1..$count"
