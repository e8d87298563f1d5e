#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# yoke bench: two suites print a line a case and the limits beside them, JSON says the same; what it
# cannot do is an error before anything is measured.
set -u
yoke=${YOKE:-$PWD/yoke}
[ -x "$yoke" ] || { echo "1..0 # SKIP $yoke is not built"; exit 0; }
cd "${TMPDIR:-/tmp}" || exit 99
export YOKE_BACKEND=cpu
count=0

verdict()
{
	count=$((count + 1))
	if [ "$2" -eq 0 ]; then
		echo "ok $count - $1"
	else
		echo "not ok $count - $1"
		cat bench.out bench.err 2>/dev/null | sed 's/^/# /'
	fi
}

# skipped NAME WHY
skipped()
{
	count=$((count + 1))
	echo "ok $count - $1 # SKIP $2"
}

"$yoke" bench attention map --json bench.json >bench.out 2>bench.err
verdict "two suites" $?
grep -q 'multiply-adds, .* in a copy' bench.out
verdict "limits of this machine" $?
[ "$(grep -c '^map  .* ms ' bench.out)" -eq 3 ] && [ "$(grep -c '^attention  .* ms ' bench.out)" -eq 3 ] &&
	! grep -q '^contract' bench.out
verdict "a line for each case of them" $?
# rates are positive and finite, and shares of the limits are there
grep '^attention' bench.out | awk '{ for (i = 1; i < NF; i++) if ($(i + 1) == "GFLOP/s" && $i > 0) n++ } END { exit n != 3 }'
verdict "rates" $?
[ "$(grep -o '"suite": *"map"' bench.json | wc -l)" -eq 3 ]
verdict "the same as JSON" $?

"$yoke" bench atention >bench.out 2>bench.err
[ $? -eq 2 ] && grep -q "no suite 'atention'; did you mean 'attention'" bench.err
verdict "a suite that is none" $?
"$yoke" bench --json >bench.out 2>bench.err
[ $? -eq 2 ] && grep -q "wants a file" bench.err
verdict "--json without a file" $?
"$yoke" bench map --json no/such/folder.json >bench.out 2>bench.err
[ $? -ne 0 ] && grep -q "no/such/folder.json" bench.err
verdict "JSON that cannot be written" $?

# The limit of multiply-adds: as many accumulators as are counted.  A compiler may see that sums are
# equal, and compute one.
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
		skipped "the sums of $name" "no objdump, or another processor or kind of build"
		continue
	fi
	n=$(accumulators "$name" "${function#*:}")
	echo "$name: $n sums, wanted 12" >bench.out
	verdict "the sums of $name are apart ($n)" "$([ "$n" -eq 12 ]; echo $?)"
done
echo 1..$count
