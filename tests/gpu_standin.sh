#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The CUDA and ROCm plugins on the stand-ins of tests/standin, which run their kernels: they conform, train to the
# losses of the CPU, and say what is wrong.  The compiler takes half a second for a text the first time, so each day
# other ops and dtypes are run; YOKE_TEST_LONG takes all.
set -u
yoke=${YOKE:-$PWD/yoke} here=$PWD
[ -x "$yoke" ] || { echo "1..0 # SKIP $yoke is not built"; exit 0; }
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/conforms.sh"
cd "${TMPDIR:-/tmp}" || exit 99
[ -d "${YOKE_TEST_STANDIN:-}" ] || { echo '1..0 # SKIP YOKE_TEST_STANDIN does not name the stand-ins'; exit 0; }
for cxx in ${YOKE_STANDIN_CXX:-g++ c++ clang++} none; do
	"$cxx" --version >/dev/null 2>&1 && break
done
[ "$cxx" != none ] || { echo '1..0 # SKIP no C++ compiler, which the stand-ins compile kernels with'; exit 0; }
backends=$(for b in cuda rocm; do [ -e "$here/plugins/$b/.libs/yoke_$b.so" ] && echo $b; done)
[ -n "$backends" ] || { echo '1..0 # SKIP neither plugin is in this build'; exit 0; }
export LD_LIBRARY_PATH="$YOKE_TEST_STANDIN"
turn=${YOKE_TEST_SEED:-0}

# pick N: of the lines, those whose turn it is, of N; a comma behind each
pick()
{
	awk -v n="$1" -v turn="$turn" '(NR + turn) % n == 0 { printf "%s,", $0 }'
}

# run BACKEND WAY OPTION ..: conform there
run()
{
	backend=$1 way=$2
	shift 2
	verdict "$backend, $way, $(echo "$*" | cut -c 1-60)" "$(wrong 0 env "$way" "$yoke" conform "$backend" "$@")"
	verdict "takes some: $(taken)" "$([ "$(taken)" -ge 1 ] || cat conform.out)"
}
