#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke train, generate and eval on each OpenCL device of each platform against the CPU:
# equal losses, no fallbacks. Both compute in f32 and round each value to it; only the order of
# sums differs, so the losses of the first 20 steps differ by less than 1e-4 relative.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
[ -n "${YOKE_TEST_OPENCL:-}" ] || { echo "1..0 # SKIP YOKE_TEST_OPENCL does not name the module"; exit 0; }
YOKE_PLUGIN_PATH=$(dirname "$YOKE_TEST_OPENCL")
export YOKE_PLUGIN_PATH
"$yoke" info 2>/dev/null | grep -q '^  opencl:0' || { echo "1..0 # SKIP no OpenCL device"; exit 0; }
workspace opencl_train

i=0
while [ $i -lt 150 ]; do
	echo "line $((i % 7)) of a text, the $((i * i % 11))th of them, that is easy to learn"
	i=$((i + 1))
done >text

# field NAME FOLDER: prints its values, one per line
field()
{
	sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p" "$2/metrics.jsonl"
}

# apart NAME TOLERANCE A B: prints values that differ by a larger fraction
apart()
{
	field "$1" "$3" >x
	field "$1" "$4" >y
	[ -s x ] && [ "$(wc -l <x)" -eq "$(wc -l <y)" ] || echo "$(wc -l <x) and $(wc -l <y) values"
	paste x y | awk -v tol="$2" '{ d = $1 - $2; d = d < 0 ? -d : d; if (d > most) most = d }
		!(d <= tol * $1) { print "step " NR ": " $1 " and " $2 }'
}

# both NAME KEY=VALUE ..: the same run on both devices, in NAME.cpu and NAME.opencl
both()
{
	name=$1
	shift
	for backend in cpu opencl; do
		YOKE_BACKEND=$backend "$yoke" train data=text out="$name.$backend" layers=2 heads=2 \
			embed=32 context=24 batch=6 lr=1e-2 warmup=4 log_every=1 profile=1 seed=3 "$@" \
			2>"$name.$backend.err" || echo "$backend: $(tail -n 1 "$name.$backend.err")"
	done
}

verdict 'train' "$(both plain steps=20 eval_every=10 valid=0.2)"
verdict "losses: $(field loss plain.opencl | sed -n '1p;$p' | tr '\n' ' ')" \
	"$(apart loss 1e-4 plain.cpu plain.opencl)"
verdict 'norms of the gradients' "$(apart grad_norm 1e-3 plain.cpu plain.opencl)"
verdict 'losses of validation' "$(apart val_loss 1e-4 plain.cpu plain.opencl)"
verdict 'nothing fell back' "$(grep -q ' 0 fallbacks, 0 B' plain.opencl.err ||
	grep -E 'fell back|fallbacks|warn' plain.opencl.err)"

"$yoke" info 2>/dev/null | sed -n 's/^  \(opencl:[0-9]*\) .*/\1/p' >devices
chosen=$(YOKE_BACKEND=opencl "$yoke" info 2>/dev/null | sed -n 's/^  chosen: //p')
for device in $(grep -vx "$chosen" devices); do
	verdict "train on $device" "$(YOKE_BACKEND='' YOKE_DEVICE=$device "$yoke" train data=text \
		out="plain.$device" layers=2 heads=2 embed=32 context=24 batch=6 lr=1e-2 warmup=4 log_every=1 \
		seed=3 steps=20 eval_every=10 valid=0.2 2>"$device.err" || tail -n 1 "$device.err"
		grep -q ' 0 fallbacks, 0 B' "$device.err" || grep -E 'fell back|fallbacks|warn' "$device.err")"
	verdict "losses of $device" "$(apart loss 1e-4 plain.cpu "plain.$device")"
done

verdict 'with dropout, and gradients of two passes' \
	"$(both drop steps=8 report=1 dropout=0.2 accumulate=2 eval_every=0 valid=0)"
verdict 'the same is dropped' "$(apart loss 1e-4 drop.cpu drop.opencl)"
verdict 'nothing fell back there' "$(grep -q ' 0 fallbacks, 0 B' drop.opencl.err ||
	grep -E 'fell back|fallbacks|warn' drop.opencl.err)"

YOKE_BACKEND=opencl "$yoke" generate plain.opencl prompt="line 3" tokens=30 temperature=0 >one 2>err
verdict "generate: $(head -n 1 one)" "$(grep -v '^opencl:0: ' err)" # reports what it compiles
YOKE_BACKEND=cpu "$yoke" generate plain.opencl prompt="line 3" tokens=30 temperature=0 >two 2>err
verdict 'the CPU writes the same' "$(cat err; diff one two)"

YOKE_BACKEND=opencl "$yoke" eval plain.opencl data=text >one 2>err || cat err
YOKE_BACKEND=cpu "$yoke" eval plain.opencl data=text >two 2>err || cat err
verdict "eval: $(tr -s "\n " " " <one)" "$(paste one two | awk '$1 == "loss" { d = $2 - $4; n++ }
	END { if (!(n && d < 1e-4 && d > -1e-4)) print "apart by " d }')"
echo "1..$count"
exit $failed
