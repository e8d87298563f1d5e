#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The texts of named ops cut as for a GPU, in groups of many items with barriers, on whatever
# device there is: the programs that also run with the device's own preset.
set -u
. "${srcdir:-.}/tests/tap.sh"
programs="opencl_along opencl_attention opencl_contract opencl_move opencl_norm opencl_optim opencl_reduce
	opencl_softmax opencl_xent"

YOKE_TEST_PRESET=gpu
export YOKE_TEST_PRESET
if ./tests/opencl_norm.t | grep -q '^1..0'; then
	./tests/opencl_norm.t # says why not
	exit 0
fi
for t in $programs; do
	out=$(./tests/$t.t 2>&1)
	code=$?
	verdict "$t, $(echo "$out" | grep -c '^ok') checks" "$([ $code -eq 0 ] ||
		echo "$out" | grep -A3 '^not ok' | head -20
		[ $code -eq 0 ] || echo "exit code $code")"
done
echo "1..$count"
exit $failed
