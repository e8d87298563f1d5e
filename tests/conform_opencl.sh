#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests conformance on OpenCL devices, with kernels tiled as the device prefers and as for a GPU
# (large groups with barriers): they implement the ops' definitions, with the same bits when
# results bypass the caches.
# PoCL's compiler takes a third of a second per text, and each dtype has its own text. Therefore
# the seed selects every second op in f32, every sixth as for a GPU, and a sample in other dtypes.
# YOKE_TEST_LONG runs all.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/conforms.sh"
cd "${TMPDIR:-/tmp}" || exit 99
[ -n "${YOKE_TEST_OPENCL:-}" ] || { echo '1..0 # SKIP YOKE_TEST_OPENCL does not name the module'; exit 0; }
YOKE_PLUGIN_PATH=$(dirname "$YOKE_TEST_OPENCL")
export YOKE_PLUGIN_PATH
devices=$("$yoke" info 2>/dev/null | sed -n 's/^  \(opencl:[0-9]*\) .*/\1/p')
[ -n "$devices" ] || { echo '1..0 # SKIP no OpenCL device'; exit 0; }
turn=${YOKE_TEST_SEED:-0}

# pick N COUNT: of the input lines, prints every N-th that the seed selects, each followed by a
# comma
pick()
{
	awk -v n="$1" -v turn="$turn" '(NR + turn) % n == 0 { printf "%s,", $0 }'
}

named=$("$yoke" check device cpu --quick |
	sed -n '/map\|reduce\|contract\|resolvent/d; s/^ok .* - \([a-z_]*\) f32 .*cases.*/\1.f32/p' | uniq)
others=$("$yoke" check device cpu --quick --ops scan,scan_map,sort,gather,scatter_add,move,softmax,layer_norm,attention |
	sed -n '/ f32 /d; s/^ok .* - \([a-z_]*\) \([a-z0-9]*\) .*cases.*/\1.\2/p' | uniq)
maps=$(for d in f64 f16 bf16 i8 u8 i32 i64 bool; do printf 'map.%s\nreduce.%s\n' $d $d; done)
plain=$(echo "$named" | pick 2)
days="map.f32,reduce.f32,contract.f32,$(echo "$maps" | pick 8)$(printf 'contract.%s\n' f16 bf16 i32 f64 i8 | pick 5)"
# each of their cases is a text, by triangle and tier
days="$days$(printf 'resolvent.%s\nresolvent_backward.%s\n' f32 f32 f64 f64 bf16 bf16 | pick 6)"
if [ "${YOKE_TEST_SAMPLE:-0}" != 0 ]; then
	plain=softmax.f32,move.f32, days=contract.f32
fi

# PoCL 3.1 vectorizes the loops that it makes of a group's items, which gives wrong results of attention_paged.
unvectorized='POCL_WORK_GROUP_METHOD=loops POCL_KERNEL_CACHE=0'

# run DEVICE WAY OPTION ..: runs the conformance test there
run()
{
	device=$1 way=$2 pocl=
	shift 2
	[ "$way" != YOKE_OPENCL_PRESET=gpu ] || pocl=$unvectorized
	# shellcheck disable=SC2086 # words
	verdict "$device, $way, $(echo "$*" | cut -c 1-60)" "$(wrong 0 env $pocl "$way" "$yoke" check device "$device" "$@")"
	verdict "some implementations are tested: $(taken)" "$([ "$(taken)" -ge 1 ] || cat conform.out)"
}

for device in $devices; do # of each platform
	if [ -n "${YOKE_TEST_LONG:-}" ]; then
		run "$device" YOKE_OPENCL_PRESET=
		run "$device" YOKE_OPENCL_PRESET=gpu
	fi
	run "$device" YOKE_OPENCL_PRESET= --quick --bits --ops "${plain}memory"
	sed '/^#/d' conform.out >usual
	run "$device" YOKE_OPENCL_STREAM=8192 --quick --bits --ops "${plain}memory"
	verdict 'the same bits' "$(sed '/^#/d' conform.out | diff usual -)"
	run "$device" YOKE_OPENCL_PRESET= --quick --bits --seed "$turn" --ops "$days"
	sed '/^#/d' conform.out >usual
	run "$device" YOKE_OPENCL_STREAM=8192 --quick --bits --seed "$turn" --ops "$days"
	verdict 'the same bits' "$(sed '/^#/d' conform.out | diff usual -)"
	verdict 'products in several implementations' "$([ "$(grep -c 'contract f32 .*cases' usual)" -ge 3 ] || cat usual)"
	run "$device" YOKE_OPENCL_PRESET= --quick --ops "$(echo "$others" | pick 12)memory"
	run "$device" YOKE_OPENCL_PRESET=gpu --quick --ops "$(echo "$named" | pick 6)memory"
	run "$device" YOKE_OPENCL_PRESET=gpu --quick --ops "contract.f32,$(printf 'map.f32\nreduce.f32\n' | pick 2)"
	run "$device" YOKE_OPENCL_PRESET=matrix --ops "$(printf 'contract.%s.10\n' bf16 f16 | pick 2)memory"
done
if YOKE_OPENCL_CLBLAST=1 "$yoke" check device opencl --quick --ops contract.f32 2>&1 | grep -q 'f32 clblast:'; then
	verdict 'CLBlast is among the implementations' "$(
		wrong 0 env YOKE_OPENCL_CLBLAST=1 "$yoke" check device opencl --quick --ops contract.f32
		grep -q '^ok .*contract f32 clblast: [1-9]' conform.out || cat conform.out)"
fi
echo "1..$count"
exit $failed
