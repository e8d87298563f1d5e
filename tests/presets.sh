# SPDX-License-Identifier: Apache-2.0
# Sourced behind tap.sh: kernel texts cut as for a GPU, in groups of many items with barriers, on
# whatever device there is.

# presets PROGRAM ..: those of tests/, which also run with the device's own preset.  Each is a compiler's
# work for half a minute: by turns of the seed, one of three runs all its cases and the others a sample.
presets()
{
	turn=${YOKE_TEST_SEED:-0} all=${YOKE_TEST_SAMPLE:-0}
	YOKE_TEST_PRESET=gpu
	export YOKE_TEST_PRESET
	if ./tests/opencl_norm.t | grep -q '^1..0'; then
		./tests/opencl_norm.t # says why not
		exit 0
	fi
	for t in "$@"; do
		turn=$((turn + 1))
		YOKE_TEST_SAMPLE=1
		[ $((turn % 3)) -ne 0 ] || YOKE_TEST_SAMPLE=$all
		export YOKE_TEST_SAMPLE
		program "$t" ""
	done
	echo "1..$count"
	exit $failed
}
