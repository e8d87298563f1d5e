#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the lane layout of matrix units: a transposed tile equals the tile, every sum has its own
# position, and the documented lanes share rows. Only hardware shows what the instructions
# compute.
set -u
. "${srcdir:-.}/tests/tap.sh"
cl=${srcdir:-.}/cl
text=${TMPDIR:-/tmp}/matrix_layout
printf '%s\n' 'typedef float v __attribute__((ext_vector_type(4))); int main() { return 0; }' >"$text.cc"
clang++ -o "$text" "$text.cc" 2>/dev/null || { echo '1..0 # SKIP no clang++'; exit 0; }
echo "# seed ${YOKE_TEST_SEED:-1} (YOKE_TEST_SEED)"

# holds "OPTIONS": the layout of one kind of unit; a fifth of them a day, all with YOKE_TEST_LONG
turn=${YOKE_TEST_SEED:-1}
holds()
{
	turn=$((turn + 1))
	[ -n "${YOKE_TEST_LONG:-}" ] || [ $((turn % 5)) -eq 0 ] || return 0
	cat "$cl/prologue_cuda.h" "$cl/half.cl" "$cl/matrix_units.cl" "$cl/matrix.cl" | grep -v '^#include' >"$text.h"
	case $1 in
	*__CUDA_ARCH__* | *__AMDGCN__*) units=-DHAS_UNITS ;;
	*) units= ;;
	esac
	# shellcheck disable=SC2086
	verdict "$1" "$(clang++ -w $1 $units -DSEED="${YOKE_TEST_SEED:-1}" -DTEXT="\"$text.h\"" -o "$text" \
		"${srcdir:-.}/tests/matrix_layout.cc" 2>&1 && "$text" | head -n 20)"
}

holds '-DMATRIX=3 -DWARP=32 -D__CUDA_ARCH__=700'
for dtype in 1 3 4; do
	holds "-DMATRIX=$dtype -DWARP=32 -D__CUDA_ARCH__=800"
	holds "-DMATRIX=$dtype -DWARP=32"
done
holds '-DMATRIX=3 -DWARP=32 -D__CUDA_ARCH__=750'
for dtype in 5 6; do
	holds "-DMATRIX=$dtype -DWARP=32 -D__CUDA_ARCH__=750"
	holds "-DMATRIX=$dtype -DWARP=32"
	holds "-DMATRIX=$dtype -DWARP=32 -D__AMDGCN__ -D__gfx1100__"
	holds "-DMATRIX=$dtype -DWARP=64 -D__AMDGCN__ -D__gfx90a__"
	holds "-DMATRIX=$dtype -DWARP=64 -D__AMDGCN__ -D__gfx942__"
	holds "-DMATRIX=$dtype -DWARP=64"
done
for dtype in 3 4; do
	holds "-DMATRIX=$dtype -DWARP=64 -D__AMDGCN__ -D__gfx90a__"
	holds "-DMATRIX=$dtype -DWARP=32 -D__AMDGCN__ -D__gfx1100__"
	holds "-DMATRIX=$dtype -DWARP=64"
done
rm -f "$text" "$text.cc" "$text.h"
echo "1..$count"
exit $failed
