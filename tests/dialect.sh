#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The kernel texts are CUDA C++ too: clang compiles them as device code, behind prologue_cuda.h.
# Those around generated functions are not texts by themselves.
set -u
. "${srcdir:-.}/tests/tap.sh"
cl=${srcdir:-.}/cl
text=${TMPDIR:-/tmp}/dialect.cu
cuda="-x cuda --cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib -fsyntax-only
	-Wno-unknown-cuda-version -Wall -Werror -Wno-unused-function -Wno-unknown-pragmas"

echo '__attribute__((global)) void f() {}' >"$text"
# shellcheck disable=SC2086 # words
clang $cuda "$text" 2>/dev/null || { echo '1..0 # SKIP no clang that compiles CUDA'; exit 0; }

seen=
# compiled "FILE .." "OPTIONS": one program
compiled()
{
	for name in $1; do
		seen="$seen $name"
		echo "#line 1 \"$name\""
		cat "$cl/$name"
	done >"$text.body"
	cat "${srcdir:-.}/tests/dialect.h" "$cl/prologue_cuda.h" "$text.body" >"$text"
	# shellcheck disable=SC2086
	verdict "$1 $2" "$(clang $cuda $2 "$text" 2>&1 | head -n 20)"
}

for store in 0 1 2; do
	for last in softmax norm rope; do
		compiled "half.cl vexp.cl rows.cl $last.cl" "-DSTORE=$store"
	done
	compiled "half.cl vexp.cl rows.cl report.cl xent.cl" "-DSTORE=$store"
	for last in attention_tiles attention_rows attention_back; do
		compiled "half.cl vexp.cl rows.cl philox.cl attention.cl $last.cl" \
			"-DSTORE=$store -DREGISTERS=1"
	done
done
for last in norm rope; do
	compiled "half.cl vexp.cl rows.cl $last.cl" '-DSTORE=2 -DBESIDE=0'
done
compiled 'half.cl vexp.cl rows.cl philox.cl attention.cl attention_tiles.cl' '-DSTORE=1 -DBESIDE=0'
compiled 'half.cl contract_op.cl contract_tiled.cl' '-DDTYPE=4 -DRESULT=1'
for dtype in 1 3 4 7; do
	compiled 'half.cl contract_op.cl contract_tiled.cl' "-DDTYPE=$dtype"
done
for last in contract_direct contract_packed contract_rows; do
	compiled "half.cl contract_op.cl $last.cl" ''
done
for last in gather move; do
	compiled "axes.cl report.cl $last.cl" ''
done
compiled 'half.cl number.cl axes.cl scan.cl' ''
compiled 'axes.cl sort.cl' ''
compiled 'report.cl report_length.cl' ''
compiled 'f64.cl' '-DUSE_F64'
compiled 'half.cl f16.cl' '-DNATIVE_F16=0'
compiled 'half.cl number.cl axes.cl scan.cl' '-DNATIVE_F16=1'
compiled 'axes.cl report.cl scatter.cl scatter_list.cl' ''
compiled 'half.cl number.cl axes.cl report.cl scatter.cl scatter_add.cl' ''
compiled 'half.cl number.cl axes.cl report.cl scatter_along.cl' ''
rm -f "$text" "$text.body"

behind_maps='list.cl map.cl map_int.cl map_real.cl math.cl reduce.cl reduction.cl scan_map.cl'
verdict 'no text was left out' "$(for file in "$cl"/*.cl; do
	case " $seen $behind_maps " in
	*" ${file##*/} "*) ;;
	*) echo "${file##*/}" ;;
	esac
done)"
echo "1..$count"
exit $failed
