# SPDX-License-Identifier: Apache-2.0
# Sourced after yoke.sh by tests of the native plugins on the fake drivers of tests/fake_gpu: sets
# $backends, the plugins of this build, $here, the build directory, and $turn, the number that
# selects from sampled cases. Without plugins it ends the test.
here=$PWD
[ -d "${YOKE_TEST_FAKE:-}" ] || { echo '1..0 # SKIP YOKE_TEST_FAKE does not name the fake drivers'; exit 0; }
for cxx in ${YOKE_FAKE_CXX:-g++ c++ clang++} none; do
	"$cxx" --version >/dev/null 2>&1 && break
done
[ "$cxx" != none ] || { echo '1..0 # SKIP no C++ compiler, which the fake drivers compile kernels with'; exit 0; }
backends=$(for b in cuda rocm; do [ -e "$here/plugins/$b/.libs/yoke_$b.so" ] && echo $b; done)
[ -n "$backends" ] || { echo '1..0 # SKIP neither plugin is in this build'; exit 0; }
turn=${YOKE_TEST_SEED:-0}
cd "${TMPDIR:-/tmp}" || exit 99

# some N WORD ..: the N-th word from the seed on, or all words
some()
{
	n=$1
	shift
	if [ -n "${YOKE_TEST_LONG:-}" ]; then echo "$*"; else echo "$*" | cut -d ' ' -f $((turn / n % $# + 1)); fi
}

# tuned CLASS NAME N OTHERS: yoke tune compares the kernels for the products of the class, without those named in
# OTHERS, with sums in float64; prints its output if one is wrong, or fewer or more than N are called NAME..
tuned()
{
	"$yoke" tune cuda:0 --only "$1" --without "$4" >tune.out 2>&1 && ! grep -E '^(wrong|fake_gpu)' tune.out &&
		[ "$(grep -c "^time $2" tune.out)" -eq "$3" ] || cat tune.out
}
