# SPDX-License-Identifier: Apache-2.0
# Sourced behind yoke.sh by tests of the native plugins on the stand-ins of tests/standin: $backends of this build, $here, the
# folder of the build, and $turn, which of what is sampled; without any, the test ends.
here=$PWD
[ -d "${YOKE_TEST_STANDIN:-}" ] || { echo '1..0 # SKIP YOKE_TEST_STANDIN does not name the stand-ins'; exit 0; }
for cxx in ${YOKE_STANDIN_CXX:-g++ c++ clang++} none; do
	"$cxx" --version >/dev/null 2>&1 && break
done
[ "$cxx" != none ] || { echo '1..0 # SKIP no C++ compiler, which the stand-ins compile kernels with'; exit 0; }
backends=$(for b in cuda rocm; do [ -e "$here/plugins/$b/.libs/yoke_$b.so" ] && echo $b; done)
[ -n "$backends" ] || { echo '1..0 # SKIP neither plugin is in this build'; exit 0; }
turn=${YOKE_TEST_SEED:-0}
cd "${TMPDIR:-/tmp}" || exit 99
