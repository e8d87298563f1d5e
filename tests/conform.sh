#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# yoke conform: the backends of this build do what the ops' definitions say, one that does not is found,
# and a case is the same whenever it is run.
set -u
yoke=${YOKE:-$PWD/yoke}
[ -x "$yoke" ] || { echo "1..0 # SKIP $yoke is not built"; exit 0; }
. "${srcdir:-.}/tests/tap.sh"
cd "${TMPDIR:-/tmp}" || exit 99
export YOKE_PLUGIN_PATH="${YOKE_TEST_MODULES:-}"
[ -z "${YOKE_TEST_OPENCL:-}" ] || YOKE_PLUGIN_PATH="$YOKE_PLUGIN_PATH:$(dirname "$YOKE_TEST_OPENCL")"

# wrong STATUS COMMAND ..: lines about what is not as it should be
wrong()
{
	want=$1
	shift
	"$@" >conform.out 2>conform.err
	status=$?
	[ $status -eq "$want" ] || echo "status $status"
	grep -v '^[0-9]* warnings\{0,1\} generated' conform.err # the compiler inside PoCL
	[ "$want" -ne 0 ] || grep -A 2 '^not ok' conform.out
	grep -q '^1\.\.[1-9]' conform.out || echo 'no plan'
}

# taken: lines that are not skipped
taken()
{
	grep -c '^ok .*cases' conform.out
}

verdict 'cpu' "$(wrong 0 "$yoke" conform cpu)"
verdict "cpu: $(taken) ops and dtypes" "$([ "$(taken)" -ge 90 ] || cat conform.out)"
verdict 'cpu, another seed' "$(wrong 0 "$yoke" conform cpu --quick --seed "${YOKE_TEST_SEED:-20261}")"
verdict 'skeleton' "$(wrong 0 "$yoke" conform skeleton --quick)"
verdict 'skeleton: what it takes is run' "$([ "$(taken)" -eq 2 ] || cat conform.out)"
verdict 'memory without addresses, late events' \
	"$(wrong 0 env YOKE_FAULT_HOST=0 YOKE_FAULT_LAG=2 "$yoke" conform fault --quick)"

# The compiler behind PoCL takes a third of a second for each text, and each dtype has its own: all of them are
# for YOKE_TEST_LONG; else half of the ops in f32, which half follows from the seed, and other dtypes where
# kernels read them in a way of their own.  All ops are in tests/opencl_*.c.
half=$((${YOKE_TEST_SEED:-0} % 2))
ops=$("$yoke" conform cpu --quick | sed -n 's/^ok .* - \([a-z_]*\) f32 .*cases.*/\1/p' | uniq)
sample="--quick --ops memory,map.i64,contract.bf16,sort.i64,layer_norm.bf16,multi_adamw.bf16$(
	echo "$ops" | awk -v half=$half 'NR % 2 == half { printf ",%s.f32", $0 }')" least=15
[ "${YOKE_TEST_SAMPLE:-0}" = 0 ] || sample='--quick --ops memory,softmax.f32,contract.f32,move.f32' least=4
[ -z "${YOKE_TEST_LONG:-}" ] || sample=
devices=$("$yoke" info 2>/dev/null | sed -n '/the same device as/d; s/^  \(opencl:[0-9]*\) .*/\1/p')
for device in $devices; do # of each platform
	# shellcheck disable=SC2086 # words
	verdict "$device" "$(wrong 0 "$yoke" conform "$device" $sample)"
	verdict "$device: $(taken) ops and dtypes" "$([ "$(taken)" -ge $least ] || cat conform.out)"
done
if YOKE_OPENCL_CLBLAST=1 "$yoke" conform opencl --quick --ops contract.f32 2>&1 | grep -q 'f32 clblast:'; then
	verdict 'CLBlast is among the implementations' "$(wrong 0 "$yoke" conform opencl --quick --ops contract.f32
		grep -q '^ok .*contract f32 clblast: [1-9]' conform.out || cat conform.out)"
fi
if [ -z "$devices" ]; then
	count=$((count + 1))
	echo "ok $count - opencl # SKIP no OpenCL device"
fi

# A kernel whose first element has the wrong sign, in each op.
for op in $ops; do
	verdict "a wrong $op is found" "$(wrong 1 env YOKE_FAULT_WRONG="$op" "$yoke" conform fault --quick \
		--ops "$op")"
	verdict "and shown with its case" "$(grep -q "^# $op\.f32\.[0-9]*: result" conform.out ||
		cat conform.out)"
done
verdict 'a launch that fails is found' "$(wrong 1 env YOKE_FAULT_RUN=30 "$yoke" conform fault --quick \
	--ops softmax,sort,move)"
verdict 'and only that' "$([ "$(grep -c '^not ok' conform.out)" -eq 1 ] || cat conform.out)"
verdict 'late as well' "$(wrong 1 env YOKE_FAULT_LATE=30 "$yoke" conform fault --quick --ops softmax,sort,move)"

"$yoke" conform cpu --ops softmax.f32,sort --seed 5 >first
"$yoke" conform cpu --ops softmax.f32,sort --seed 5 >second
"$yoke" conform cpu --ops softmax.f32,sort --seed 6 >other
verdict 'a seed gives the same cases' "$(diff first second)"
verdict 'another seed gives others' "$(cmp -s first other && echo the same)"
verdict 'one case by its name' "$(wrong 0 "$yoke" conform cpu --ops contract.f32.17
	grep -q 'contract f32 .*: 1 of 1 cases' conform.out || cat conform.out)"
echo "1..$count"
