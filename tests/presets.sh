# SPDX-License-Identifier: Apache-2.0
# Sourced behind tap.sh: kernel texts cut as for a GPU, in groups of many items with barriers, on
# whatever device there is.

# presets PROGRAM ..: those of tests/, which also run with the device's own preset
presets()
{
	YOKE_TEST_PRESET=gpu
	export YOKE_TEST_PRESET
	if ./tests/opencl_norm.t | grep -q '^1..0'; then
		./tests/opencl_norm.t # says why not
		exit 0
	fi
	for t in "$@"; do
		program "$t" ""
	done
	echo "1..$count"
	exit $failed
}
