#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests quirks.conf: what it lists is avoided, doctor lists the lines that apply, invalid lines
# are named and ignored, and the shipped file has none.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
shipped=$(cd "${srcdir:-.}" && pwd)/doc/quirks.conf
workspace quirks
export YOKE_PLUGIN_PATH="${YOKE_TEST_MODULES:-}" YOKE_BACKEND=fault XDG_CONFIG_HOME="$PWD/config"
easy_text 60 >text
keys="data=text layers=1 heads=2 embed=32 context=32 batch=4 steps=2 log_every=1 eval_every=0 warmup=1"

# plan NAME [SETTING ..]: trains into NAME; NAME.err has the plans
plan()
{
	name=$1
	shift
	env YOKE_LOG=plan "$@" "$yoke" train $keys out="$name" >"$name.out" 2>"$name.err" || cat "$name.err"
}

# on DEVICE OP FILE: how many steps of the op are on the device
on()
{
	awk -F '\t' -v d="$1" -v o="$2" '$2 == d && $3 == o' "$3" | wc -l
}

losses()
{
	sed -n 's/.*"step":\([0-9]*\),"loss":\([^,}]*\).*/\1 \2/p' "$1/metrics.jsonl"
}

# doctor STATUS [SETTING ..]
doctor()
{
	want=$1
	shift
	env "$@" "$yoke" doctor >out 2>err
	[ $? -eq "$want" ] || cat out err
}

verdict 'without a file' "$(plan none)"
verdict 'all is on the device' "$([ "$(on fault:0 cross_entropy none.err)" -gt 0 ] &&
	[ "$(on cpu:0 cross_entropy none.err)" -eq 0 ] || cat none.err)"

echo 'fault | * | * | cross_entropy | for a test | nowhere' >op.conf
verdict 'an op to avoid' "$(plan op YOKE_QUIRKS="$PWD/op.conf")"
verdict 'is not on the device' "$([ "$(on fault:0 cross_entropy op.err)" -eq 0 ] || cat op.err)"
verdict 'other ops still run on the device' "$([ "$(on fault:0 attention op.err)" -gt 0 ] || cat op.err)"
verdict 'and the losses are the same' "$(losses none >a; losses op >b; [ -s a ] || echo none
	awk 'NR == FNR { want[$1] = $2; next }
		{ d = $2 - want[$1]; if (d < 0) d = -d; if (d > 1e-4) print $1, $2, want[$1] }' a b)"
verdict 'doctor lists the quirk' "$(doctor 0 YOKE_QUIRKS="$PWD/op.conf"
	grep -q "^  fault:0  cross_entropy  for a test  nowhere  $PWD/op.conf:1" out || cat out)"

echo 'f*t | HOST memory* | * | device | for a test | nowhere' >device.conf
verdict 'a device to avoid is none' "$(doctor 1 YOKE_QUIRKS="$PWD/device.conf"
	grep -q "fault:0 refused: for a test ($PWD/device.conf:1, after nowhere; YOKE_QUIRKS=0" err || cat out err
	grep -q "cannot be used: device 0 refused: for a test" out || cat out)"

# 64 KiB of a line, and bytes that are no text
{
	echo '# a comment'
	echo 'fault | * | *'
	echo 'fault | * | * | nosuchop | why | where'
	echo 'fault | * | 3.1 | softmax | why | where'
	echo 'fault | * | <x | softmax | why | where'
	echo 'fault | * | * | softmax.f99 | why | where'
	echo 'fault | * | * | softmax/ | why | where'
	echo 'fault | * | * | softmax |  | where'
	echo 'fault | * | * | softmax | why | where | more'
	printf '\001\002\377 | * | * | softmax | why | where\n'
	awk 'BEGIN { for (i = 0; i < 65536; i++) printf "x"; print "" }'
	echo ''
	printf 'fault | * | * | attention.f32 | for a test | nowhere'
} >corrupt.conf
verdict 'a corrupt file' "$(plan corrupt YOKE_QUIRKS="$PWD/corrupt.conf")"
for line in 2 3 4 5 6 7 8 9 10 11; do
	verdict "  $(grep "corrupt.conf:$line:" corrupt.err)" \
		"$([ "$(grep -c "corrupt.conf:$line: .*; the line is ignored$" corrupt.err)" -eq 1 ] || cat corrupt.err)"
done
verdict 'nothing else is complained of' "$([ "$(grep -c 'corrupt.conf' corrupt.err)" -eq 10 ] || cat corrupt.err)"
verdict 'what can be read counts' "$([ "$(on fault:0 attention corrupt.err)" -eq 0 ] || cat corrupt.err)"
head -c 100000 /dev/zero >zero.conf
verdict 'zeros' "$(plan zero YOKE_QUIRKS="$PWD/zero.conf"; grep -q 'zero.conf is not read: it is no text' zero.err ||
	cat zero.err)"
verdict 'a file that is not there' "$(plan gone YOKE_QUIRKS="$PWD/gone.conf"
	grep -q 'gone.conf is not read: ' gone.err || cat gone.err)"

mkdir -p config/yoke && cp op.conf config/yoke/quirks.conf
verdict "the user's file" "$(doctor 0; grep -q "  cross_entropy  for a test  .*config/yoke/quirks.conf:1" out || cat out)"
verdict 'an empty file' "$(doctor 0 YOKE_QUIRKS=0; grep -q 'cross_entropy' out && cat out)"
verdict 'the shipped quirks.conf has no invalid line' "$(doctor 0 YOKE_QUIRKS="$shipped"
	grep quirks err)"
verdict 'each of its lines has a link' "$(grep -v -e '^#' -e '^$' "$shipped" | grep -v '| https://[^ |]*$')"
echo "1..$count"
