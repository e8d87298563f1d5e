#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests examples/custom_op.c: a custom operation is checked on the CPU and on backends that
# compile kernel texts, OpenCL and, on a fake driver that the seed selects, CUDA or ROCm; on
# OpenCL it trains to the losses of the CPU.
set -u
here=$PWD
. "${srcdir:-.}/tests/tap.sh"
[ -x "$here/examples/custom_op" ] || { echo '1..0 # SKIP examples/custom_op is not built'; exit 0; }
cd "${TMPDIR:-/tmp}" || exit 99

# differs FILE: what its losses have that the CPU's have not, within 1e-3; of no steps nothing
differs()
{
	! grep -q '^step' "$1" || paste cpu.out "$1" | awk '$1 == "step" { d = $4 - $8; if (!(d * d <= 1e-6)) print "step " $2 " " $4 " and " $8 }'
	grep -qx checked "$1" || cat "$1"
}

# on BACKEND FOLDER STEPS
on()
{
	YOKE_PLUGIN_PATH=$2 YOKE_BACKEND=$1 YOKE_STRICT=1 "$here/examples/custom_op" "$3" >"$1.out" 2>&1
	code=$?
	verdict "$1: $(sed -n '$p' "$1.out")" "$([ $code -eq 0 ] && differs "$1.out" || cat "$1.out")"
}

on cpu '' 200
last=$(sed -n 's/^step 199 *loss //p' cpu.out)
verdict "it learns: $last" "$(sed -n 's/^step   0 *loss //p' cpu.out | awk -v last="$last" '!(last < $1 / 4) { print $1 " first" }')"
if [ -n "${YOKE_TEST_OPENCL:-}" ] && YOKE_PLUGIN_PATH=$(dirname "$YOKE_TEST_OPENCL") "$here/yoke" info 2>/dev/null |
	grep -q '^  opencl:0'; then
	on opencl "$(dirname "$YOKE_TEST_OPENCL")" 200
else
	skip 'OpenCL' 'no OpenCL device'
fi
turn=$((${YOKE_TEST_SEED:-0} % 2))
[ $turn -eq 0 ] && today=cuda || today=rocm
[ "${YOKE_TEST_LONG:-0}" = 0 ] || today='cuda rocm'
for b in $today; do
	if [ -d "${YOKE_TEST_FAKE:-}" ] && [ -e "$here/plugins/$b/.libs/yoke_$b.so" ] && c++ --version >/dev/null 2>&1; then
		LD_LIBRARY_PATH=$YOKE_TEST_FAKE
		export LD_LIBRARY_PATH
		on $b "$here/plugins/$b/.libs" 0
		YOKE_PLUGIN_PATH=$here/plugins/$b/.libs YOKE_BACKEND=$b "$here/tests/custom_op.t" $b >$b.said 2>&1
		verdict "$b: $(grep -c '^ok' $b.said) of custom_op.t" "$(code=$?; grep -v '^ok' $b.said | grep '^not ok\|Bail'
			grep -q '^1\.\.' $b.said || cat $b.said)"
	else
		skip "$b" 'no fake drivers, or no C++ compiler'
	fi
done
echo "1..$count"
exit $failed
