#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke bench: two suites print one line per case with the limits beside it, the JSON output
# agrees, and errors are reported before anything is measured.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/status.sh"
shown="bench.out bench.err"
cd "${TMPDIR:-/tmp}" || exit 99
export YOKE_BACKEND=cpu
# shares NAME SUITE: checks that columns end where their titles do, and that percentages of the
# printed limit are correct to the last digit; of the memory limit where nothing else is counted
shares()
{
	awk -v suite="$2" -v name="$1" '
		/^  peak/ { limit["GFLOP/s"] = $2 }
		/^  copy/ { limit["GB/s"] = $2 }
		$1 == suite {
			for (i = 1; i < NF - 1; i++)
				if ($(i + 1) in limit && $(i + 3) == "%") {
					want = 100 * $i / limit[$(i + 1)]
					off = $(i + 2) - want
					if (off > 2 + want / 20 || off < -2 - want / 20) {
						print name ": " $(i + 2) " %, want " want
						bad++
					}
					n++
				}
		}
		END { exit bad || n < 3 }' bench.out >bench.err
}
"$yoke" bench attention map --json --html bench.html >bench.json 2>bench.out
verdict "two suites" $?
grep -q '^  peak  *[0-9.]* GFLOP/s  fp32 multiply-adds' bench.out && grep -q '^  copy  *[0-9.]* GB/s ' bench.out
verdict "limits of this machine" $?
grep -q '^suite  *case .* of peak .* of copy$' bench.out
verdict "columns say what they are of" $?
[ "$(grep -c '^map  .* ms ' bench.out)" -eq 3 ] && [ "$(grep -c '^attention  .* ms ' bench.out)" -eq 3 ] &&
	! grep -q '^contract' bench.out
verdict "a line for each case of them" $?
shares cpu map && shares cpu attention
verdict "shares of these limits" $?
# rates are positive and finite, and percentages of the limits are present
grep '^attention' bench.out | awk '{ for (i = 1; i < NF; i++) if ($(i + 1) == "GFLOP/s" && $i > 0) n++ } END { exit n != 3 }'
verdict "rates" $?
[ "$(grep -o '"suite": *"map"' bench.json | wc -l)" -eq 3 ]
verdict "the same as JSON" $?

[ "$(grep -c '<td class="t">map</td>' bench.html)" -eq 3 ] && grep -q 'add, 2^24' bench.html && ! grep -q '<script' bench.html
verdict "the same as a page" $?
if [ "${YOKE_TEST_LONG:-0}" != 0 ]; then
	"$yoke" bench memory scaling --html bench.html >bench.out 2>bench.err &&
		[ "$(grep -c '^memory .* GB/s ' bench.out)" -eq 6 ] && [ "$(grep -c 'samples/s .* ms/sample  peak' bench.out)" -eq 5 ] &&
		grep -q 'data-name="scaling: [^"]*" data-x="log2" data-y="log10"' bench.html
	verdict "copies, and training by batch" $?
	YOKE_MEMORY=40M "$yoke" bench batch >bench.out 2>bench.err &&
		[ "$(grep -c 'fit on cpu:0' bench.out)" -eq 1 ] && grep -q 'forward, batch 16 ' bench.out
	verdict "batches end where memory does" $?
fi

"$yoke" bench launches memory train attention --quick --json >bench.json 2>bench.out &&
	[ "$(grep -c '^attention' bench.out)" -eq 3 ] && [ "$(grep -c '^memory' bench.out)" -eq 6 ] &&
	[ "$(grep -c '^train' bench.out)" -eq 2 ]
verdict "tiny sizes" $?
sed -n 's/.*"launches": *\([0-9]*\).*/\1/p' bench.json | awk '{ n = $1 } END { exit !(n >= 80) }' &&
	[ "$(grep -c '"launches": ' bench.json)" -eq 1 ]
verdict "how many launches a step has" $?
[ "$(sed -n 's/.*"samples": *\([0-9]*\).*/\1/p' bench.json | sort -u)" = 5 ]
verdict "five samples of each" $?

"$(dirname "$yoke")/bench/resolvent" rounds=1 warm=0 max=4096 --json --html bench.html >bench.json 2>bench.out &&
	! grep -q 'warn' bench.out && grep -q '^ *16 x 256  .* [0-9.e-]*$' bench.out && grep -q '^parts / f32 .* >= 5: ' bench.out
verdict "resolvent: rows by lengths, ratios beside their targets, nothing to warn about" $?
grep -q '"ratios": *\[' bench.json && grep -q '"target": *">= 5"' bench.json && [ "$(grep -c '>parts / f32</td>' bench.html)" -eq 1 ] &&
	grep -q '<th scope="col" class="n">of copy</th>' bench.html && ! grep -q tokens bench.html &&
	[ "$(grep -o '<g class="legend".*' bench.html | grep -o '>bf16 +grad<' | wc -l)" -eq 2 ]
verdict "the same as JSON and as a page, on which all curves are named" $?

"$yoke" bench ranks ranks=3 max=64 --json >bench.json 2>bench.out &&
	for by in 'by hand' tree pairwise ring 2d auto 'in a plan'; do
		[ "$(grep -c " $by .* us .* GB/s " bench.out)" -eq 2 ] || break
	done && ! grep -q doubling bench.out && [ "$(grep -o '"busbw"' bench.json | wc -l)" -eq 14 ]
verdict "ranks: a row a size and algorithm, of those for three" $?
"$yoke" bench ranks spawn=process max=8 >bench.out 2>bench.err &&
	[ "$(grep -cE '^ +8  (tree|doubling|halving|pairwise|ring|2d|auto|in a plan) ' bench.out)" -eq 8 ]
verdict "ranks that are processes" $?
"$yoke" bench ranks ranks=1 >bench.out 2>bench.err
[ $? -eq 2 ] && grep -q "'ranks=1': .* from 2" bench.err
verdict "a bench of one rank" $?
"$yoke" bench ranks spawn=process bytes=12,40 >bench.out 2>bench.err &&
	[ "$(grep -cE '^ +(12|40)  (auto|in a plan) ' bench.out)" -eq 4 ] && ! grep -qE '^ +8  ' bench.out
verdict "of two sizes" $?
"$yoke" bench ranks bytes=16,7 >bench.out 2>bench.err
[ $? -eq 2 ] && grep -q "'bytes=16,7': .* from 8" bench.err
verdict "a size that is none" $?
"$yoke" bench atention >bench.out 2>bench.err
[ $? -eq 2 ] && grep -q "no suite 'atention'; did you mean 'attention'" bench.err
verdict "a suite that is none" $?
"$yoke" bench devices=cpu devices=opencl >bench.out 2>bench.err
[ $? -eq 2 ] && grep -q "'devices=opencl' .*'devices=cpu'" bench.err
verdict "devices= twice" $?
"$yoke" bench --html >bench.out 2>bench.err
verdict "--html without a file is wrong usage" $([ $? -eq 2 ]; echo $?)
"$yoke" bench map --quick --html no/such/folder.html >bench.out 2>bench.err
[ $? -ne 0 ] && grep -q "no/such/folder.html" bench.err
verdict "a page that cannot be written is an error" $?
if [ -c /dev/full ]; then
	"$yoke" bench map --quick --json 2>bench.err >/dev/full
	[ $? -eq 1 ] && grep -q 'standard output' bench.err
	verdict "JSON that cannot be written is an error" $?
fi

if [ -n "${YOKE_TEST_OPENCL:-}" ]; then
	YOKE_PLUGIN_PATH=$(dirname "$YOKE_TEST_OPENCL")
	export YOKE_PLUGIN_PATH
fi
if "$yoke" bench map devices=opencl >bench.out 2>bench.err; then
	shares opencl map
	verdict "shares on OpenCL" $?
	"$yoke" bench map devices=cpu,opencl --json >bench.json 2>bench.out &&
		grep -q '^ *cpu:0  *opencl:0' bench.out && shares both map &&
		[ "$(grep -c '^map .* ms .* % .* ms .* %  *[0-9.]* x$' bench.out)" -eq 3 ] &&
		[ "$(grep -c '"device": *"opencl:0"' bench.json)" -eq 4 ]
	verdict "two devices side by side" $?
else
	skip "OpenCL" "no device of it"
fi
"$yoke" bench map devices=cpu,cpu:0 >bench.out 2>bench.err
[ $? -eq 1 ] && grep -q 'devices=cpu,' bench.err
verdict "a device twice" $?
"$yoke" bench map devices=nochip >bench.out 2>bench.err
[ $? -eq 1 ] && grep -q 'no such backend' bench.err
verdict "no device" $?
"$yoke" bench map device=cpu >bench.out 2>bench.err
[ $? -eq 2 ] && grep -q "'device=cpu'" bench.err
verdict "an option that is none" $?

# The multiply-add loop must use as many accumulators as are counted: a compiler might see that sums
# are equal and compute only one.
accumulators() # FUNCTION INSTRUCTIONS
{
	objdump -d --no-show-raw-insn --disassemble="$1" "$yoke" 2>bench.err |
		sed -n "s/.*[[:space:]]\($2\) .*\(%[xyz]mm[0-9]*\)\$/\2/p" | sort -u | wc -l
}
makefile=$(dirname "$yoke")/Makefile
for function in peak_base:mulps peak_avx2:'vfmadd[0-9]*ps' peak_avx512:'vfmadd[0-9]*ps'; do
	name=${function%%:*}
	if ! command -v objdump >bench.out || ! objdump -t "$yoke" 2>bench.err | grep -q " $name\$" ||
		grep -q '^[A-Z_]*CFLAGS =.*\(-O0\|-fsanitize\|--coverage\)' "$makefile"; then
		skip "the sums of $name" "no objdump, or another processor or kind of build"
		continue
	fi
	n=$(accumulators "$name" "${function#*:}")
	echo "$name: $n sums, wanted 12" >bench.out
	verdict "the sums of $name are apart ($n)" "$([ "$n" -eq 12 ]; echo $?)"
done
echo 1..$count
