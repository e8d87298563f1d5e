#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests that the kernel texts are also valid CUDA C++: clang compiles them as device code after
# prologue_cuda.h. Texts that wrap generated functions are incomplete alone and are skipped.
set -u
. "${srcdir:-.}/tests/tap.sh"
cl=${srcdir:-.}/cl
text=${TMPDIR:-/tmp}/dialect.cu
cuda="-x cuda --cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib -fsyntax-only
	-Wno-unknown-cuda-version -Wall -Werror -Wimplicit-float-conversion -Wno-unused-function -Wno-unknown-pragmas"

echo '__attribute__((global)) void f() {}' >"$text"
# shellcheck disable=SC2086 # words
clang $cuda "$text" 2>/dev/null || { echo '1..0 # SKIP no clang that compiles CUDA'; exit 0; }

seen=
# program FILE: with what it includes, each once
program()
{
	awk -v cl="$cl" -v dialect="${dialect:-cuda}" '
	function put(name,    path, line, number) {
		path = cl "/" (name == "prologue.h" ? "prologue_" dialect ".h" : name)
		if (had[path]++)
			return
		print "#line 1 \"" name "\""
		while ((getline line <path) > 0) {
			number++
			if (split(line, part, "\"") == 3 && part[1] == "#include ") {
				put(part[2])
				print "#line " number + 1 " \"" name "\""
			} else
				print line
		}
	}
	BEGIN { put(ARGV[1]) }' "$1"
}

# compiled "FILE" "OPTIONS"
compiled()
{
	program "$1" >"$text.body"
	seen="$seen $(sed -n 's/^#line 1 "\(.*\)"/\1/p' "$text.body" | tr '\n' ' ')"
	cat "${srcdir:-.}/tests/dialect.h" "$text.body" >"$text"
	# shellcheck disable=SC2086
	verdict "$1 $2" "$(clang $cuda $2 "$text" 2>&1 | head -n 20)"
}

for store in 0 1 2; do
	for last in softmax norm rope; do
		compiled "$last.cl" "-DSTORE=$store"
	done
	compiled xent.cl "-DSTORE=$store"
	for last in attention_tiles attention_rows attention_backward; do
		compiled "$last.cl" \
			"-DSTORE=$store -DREGISTERS=1"
	done
done
for last in norm rope; do
	compiled "$last.cl" '-DSTORE=2 -DBESIDE=0'
done
compiled attention_tiles.cl '-DSTORE=1 -DBESIDE=0'
compiled contract_tiled.cl '-DDTYPE=4 -DRESULT=1'
for dtype in 1 3 4 7; do
	compiled contract_tiled.cl "-DDTYPE=$dtype"
done
for dtype in 1 3 4; do
	compiled contract_blocks.cl "-DDTYPE=$dtype -DVEC_WIDTH=4 -DBK=32"
	compiled contract_matrix.cl "-DDTYPE=$dtype -DMATRIX=$dtype -DWARP=32"
	compiled contract_stages.cl "-DDTYPE=$dtype -DMATRIX=$dtype -DWARP=32 -DA_FORM=3 -DB_FORM=2"
done
for dtype in 3 4; do
	compiled contract_wgmma.cl "-DDTYPE=$dtype -DMATRIX=$dtype -DWARP=32 -DA_FORM=3 -DB_FORM=2 -DBN=256"
done
for head in 64 128; do
	compiled attention_wgmma.cl "-DMATRIX=3 -DSTORE=1 -DWARP=32 -DITEMS=256 -DHEAD=$head -DBLOCK=128 -DSTAGES=3"
done
compiled contract_join.cl ''
for dtype in 1 3 4; do
	compiled units.cl "-DMATRIX=$dtype -DWARP=32"
done
for last in softmax norm xent rope; do
	compiled "$last.cl" '-DSTORE=1 -DVEC_WIDTH=4 -DWARP=32'
done
for last in attention_matrix attention_matrix_backward; do
	compiled "$last.cl" '-DSTORE=1 -DMATRIX=3 -DWARP=32 -DITEMS=128 -DMASKED=1 -DDROPOUT=1'
	compiled "$last.cl" '-DSTORE=0 -DMATRIX=1 -DWARP=32 -DITEMS=128 -DQUADS=1 -DQUADS_OUT=1'
done
compiled attention_backward.cl '-DSTORE=1 -DREGISTERS=1 -DPARTS=4 -DWARP=32 -DBLOCK=8'
for last in contract_direct contract_packed contract_rows; do
	compiled "$last.cl" ''
done
for last in gather move; do
	compiled "$last.cl" ''
done
for format in 1 2 3 6 7 8 12 13 14 30; do
	compiled dequant.cl "-DFORMAT=$format -DITEMS=1 -DALIGN=2 -DSTORE=1 -DIDS=8"
	compiled qlinear_rows.cl "-DFORMAT=$format -DITEMS=32 -DWARP=32 -DROWS=2"
	compiled qlinear_tiles.cl "-DFORMAT=$format -DVEC_WIDTH=4 -DALIGN=4"
	compiled qlinear_matrix.cl "-DFORMAT=$format -DWARP=32 -DMATRIX=4 -DSTORE=1"
done
compiled scan.cl ''
compiled sort.cl ''
compiled largest.cl ''
compiled largest.cl '-DITEMS=256'
compiled conv.cl ''
compiled conv.cl '-DDTYPE=3 -DALONG=1'
compiled conv.cl '-DAXES=3'
compiled window_add.cl ''
compiled grouped.cl ''
compiled grouped.cl '-DDTYPE=4 -DBACK=1'
for which in 0 1 2 3; do
	compiled resolvent.cl "-DHALF=4 -DWHICH=$which"
	compiled resolvent_backward.cl "-DWHICH=$which"
done
compiled resolvent.cl ''
compiled resolvent.cl '-DDTYPE=3 -DHALF=3 -DITEMS=128'
compiled resolvent.cl '-DUSE_F64 -DWIDE_ACC -DDIVIDE -DLEFT=1'
compiled resolvent_backward.cl '-DUSE_F64 -DWIDE_ACC -DF64_LANES -DSERVE=1 -DLEFT=1'
compiled resolvent_backward.cl '-DDTYPE=4 -DSURROGATE=3'
for odd in 1 2; do
	compiled resolvent.cl "-DODD=$odd"
	compiled resolvent.cl "-DUSE_F64 -DWIDE_ACC -DF64_LANES -DODD=$odd -DWHICH=1"
	compiled resolvent_backward.cl "-DUSE_F64 -DWIDE_ACC -DF64_LANES -DODD=$odd"
done
compiled resolvent.cl '-DHALF=3 -DODD=1 -DWHICH=2'
compiled moments.cl '-DUSE_F64 -DWIDE_ACC -DWEIGHED=1'
compiled moments.cl '-DUSE_F64 -DWIDE_ACC -DDTYPE=2 -DDIAGONAL=1'
compiled report_length.cl ''
compiled f64.cl '-DUSE_F64'
compiled limits.cl '-DUSE_F64'
compiled f16.cl '-DNATIVE_F16=0'
compiled scan.cl '-DNATIVE_F16=1'
for store in 0 1 2; do
	compiled attention_paged.cl "-DSTORE=$store -DBESIDE=1 -DVEC_WIDTH=4 -DITEMS=128 -DHEAD=128 -DROWS=8 -DKEYS=16 -DLANES=32"
done
compiled scatter_set.cl '-DWIDE_IDS=1 -DUNIT=8'
compiled scatter_list.cl ''
compiled scatter_add.cl ''
compiled scatter_along.cl ''
compiled ctc.cl ''
compiled ctc.cl '-DDTYPE=2'
compiled fft.cl ''
compiled fft.cl '-DDTYPE=2 -DWIDE_INDEX=1'
for cell in 0 1 2 3; do
	compiled recurrent.cl "-DCELL=$cell"
	compiled recurrent.cl "-DCELL=$cell -DBACK=1 -DDTYPE=2"
done
# What no OpenCL device runs yet is OpenCL C as well.
opencl='-x cl -cl-std=CL1.2 -Xclang -finclude-default-header -fsyntax-only -Wall -Werror -Wno-unused-function
	-Wno-unknown-pragmas -Wno-pass-failed'
for last in contract_matrix contract_stages attention_matrix attention_matrix_backward qlinear_matrix; do
	dialect=opencl program "$last.cl" >"$text"
	# shellcheck disable=SC2086
	verdict "$last.cl as OpenCL C" "$(clang $opencl "$text" 2>&1 | head -n 20)"
done
rm -f "$text" "$text.body"

behind_maps='list.cl list_map.cl list_reduce.cl map.cl map_int.cl map_real.cl math.cl reduce.cl reduction.cl scan_map.cl'
verdict 'no text was left out' "$(for file in "$cl"/*.cl; do
	case " $seen $behind_maps " in
	*" ${file##*/} "*) ;;
	*) echo "${file##*/}" ;;
	esac
done)"
echo "1..$count"
exit $failed
