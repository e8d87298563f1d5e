#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests convolution layers against their float64 loops on OpenCL and on a fake driver of another
# vendor's GPU that the seed selects. YOKE_TEST_LONG uses all fake drivers and on OpenCL adds all
# convolutions and pools, modules with their files, and special functions, whose kernels take its
# compiler minutes.
set -u
. "${srcdir:-.}/tests/tap.sh"
here=$PWD
turn=${YOKE_TEST_SEED:-0}

programs=conv_layers
today=$(echo cuda rocm | cut -d ' ' -f $((turn % 2 + 1)))
[ "${YOKE_TEST_LONG:-0}" = 0 ] || {
	programs='conv_layers conv module math'
	today='cuda rocm'
}

if [ -n "${YOKE_TEST_OPENCL:-}" ] && YOKE_PLUGIN_PATH=$(dirname "$YOKE_TEST_OPENCL") "$here/yoke" info 2>/dev/null |
	grep -q '^  opencl:0'; then
	for name in $programs; do
		YOKE_PLUGIN_PATH=$(dirname "$YOKE_TEST_OPENCL") YOKE_BACKEND=opencl program "$name" ' on OpenCL'
	done
else
	skip 'OpenCL' 'no OpenCL device'
fi
for b in $today; do
	if [ -d "${YOKE_TEST_FAKE:-}" ] && [ -e "$here/plugins/$b/.libs/yoke_$b.so" ] && c++ --version >/dev/null 2>&1; then
		LD_LIBRARY_PATH=$YOKE_TEST_FAKE YOKE_PLUGIN_PATH=$here/plugins/$b/.libs YOKE_BACKEND=$b program conv_layers ", $b"
	else
		skip "$b" 'no fake drivers, or no C++ compiler'
	fi
done
echo "1..$count"
exit $failed
