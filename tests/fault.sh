#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke train on a device that fails during a run: one error line, exit status 1, an
# unchanged last checkpoint, and a resumed run that ends like an undisturbed one.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
workspace fault
export YOKE_PLUGIN_PATH="${YOKE_TEST_MODULES:-}" YOKE_BACKEND=fault

easy_text 120 >text
keys="data=text layers=1 heads=2 embed=32 context=32 batch=8 lr=1e-2 warmup=5 log_every=1 eval_every=0"

# problem COMMAND ..: its output, if it fails
problem()
{
	"$@" >log 2>&1 || cat log
}

losses()
{
	sed -n 's/.*"step":\([0-9]*\),"loss":\([^,}]*\).*/\1 \2/p' "$1/metrics.jsonl"
}

verdict "an undisturbed run" "$(problem "$yoke" train $keys out=whole steps=8 save_every=4)"
verdict "half of it" "$(problem "$yoke" train $keys out=half steps=4)"

# breaks NAME WORD SETTING: resumes the half with a fault
breaks()
{
	name=$1 word=$2
	rm -rf broken && cp -r half broken
	if env "$3" "${4:-A=}" "$yoke" train $keys out=broken resume=1 steps=8 save_every=4 >out 2>err; then
		verdict "$name" "no failure"
		return
	else
		status=$?
	fi
	verdict "$name: exit 1" "$([ $status -eq 1 ] || { echo "status $status"; cat err; })"
	verdict "$name: one line of an error" "$([ "$(grep -c '^yoke' err)" -eq 1 ] || { echo 'not one:'; cat err; })"
	verdict "$name: $(grep '^yoke' err)" "$(grep -q "^yoke train: .*$word" err ||
		{ echo "no $word"; cat err; })"
	[ "$name" = 'no memory' ] && lost='.*out of memory on fault:0: .* requested, .* free; .*; not even batch=1 fits' ||
		lost='fault:0 was lost after step [0-9]*: .*; broken holds step 4: .*resume=1'
	verdict "$name: what happened and what to do" "$(grep -q "^yoke train: $lost" err &&
		! grep -q reload err || cat err)"
	verdict "$name: the checkpoint is as it was" "$(
		for f in half/manifest.json half/*.safetensors; do
			cmp "$f" "broken/${f#half/}" 2>&1
		done)"
	verdict "$name: the run is resumed" \
		"$(problem "$yoke" train $keys out=broken resume=1 steps=8 save_every=4)"
	verdict "$name: to the same losses" "$(losses broken | tail -n 4 >a; losses whole | tail -n 4 >b
		[ -s a ] || echo none; diff a b)"
}

breaks 'a launch' 'fault.run: call 80' YOKE_FAULT_RUN=80
breaks 'a launch, late' 'late' YOKE_FAULT_LATE=80
breaks 'a copy' 'fault.put: call 49' YOKE_FAULT_PUT=49
breaks 'an event' 'fault.mark: call 114' YOKE_FAULT_MARK=114
breaks 'a hang' 'evaluation [0-9]* .*no answer within 1 s' YOKE_FAULT_STUCK=80 YOKE_DEVICE_TIMEOUT=1
breaks 'no memory' 'out of memory' YOKE_FAULT_MEMORY=100000

# What other programs have is not to be had, whatever the device could hold.
advised()
{
	env "$@" "$yoke" train data=text layers=1 heads=2 embed=16 context=16 out=much steps=1 batch=10000 2>err
	sed -n 's/^yoke train: .*; batch=\([0-9]*\) is the largest that fits\(; or end .*\)\{0,1\}$/\1/p' err
}
limit=$(advised YOKE_MEMORY=4000000)
free=$(advised YOKE_FAULT_FREE=4000000)
verdict "the advice with 4 MB free, batch=$free, is that with a limit of 4 MB" "$([ -n "$free" ] &&
	[ "$free" = "$limit" ] && grep -q ' has 3.8 MiB that ' err || cat err)"

# leaves NAME DEVICES STEP SETTING ..: the device fails, the next goes on from STEP
leaves()
{
	name=$1 devices=$2 step=$3
	shift 3
	rm -rf left training_log.tsv
	verdict "$name: the run goes on" "$(env "$@" "$yoke" train $keys out=left steps=8 $more >out 2>err || cat err)"
	verdict "$name: one warning, $(grep -o 'training continues.*' err)" "$(
		grep -q "^yoke: warn: train: fault:0 was lost after step [0-9]*: .*fault.*; training continues on ${devices#*,} from step $step\$" err &&
			[ "$(grep -c '^yoke: [a-z]*: train' err)" -eq 1 ] || cat err)"
	verdict "$name: each step is in the metrics once" "$(losses left | cut -d' ' -f1 >a
		seq 8 | diff a -)"
	# the fault backend computes as the CPU does, so the tolerance is 0
	verdict "$name: the losses of an undisturbed run" "$(losses left >a; losses whole >b; diff a b)"
	verdict "$name: both devices are in the log" "$(cut -f4 training_log.tsv | tail -n 1 | grep -qx "$devices" ||
		cat training_log.tsv)"
	verdict "$name: what is saved is whole" "$(problem "$yoke" train $keys out=left resume=1 steps=9
		losses left | tail -n 1 | grep -q '^9 ' || echo 'no step 9')"
}

# launches STEPS: of a run of so many
launches()
{
	"$yoke" train $keys out=count.$1 steps=$1 report=1 2>&1 >/dev/null | sed -n 's/^ *\([0-9]*\) launches that.*/\1/p'
}
one=$(launches 1) two=$(launches 2)
sixth=$((5 * (two - one) + (two - one) / 2)) # a launch of the sixth step
echo "# $((two - one)) launches a step"

export YOKE_BACKEND=fault,cpu
more='save_every=4'
leaves 'before a checkpoint' fault:0,cpu:0 0 YOKE_FAULT_RUN=80 YOKE_FAULT_STICKY=1
leaves 'behind a checkpoint' fault:0,cpu:0 4 YOKE_FAULT_RUN=$sixth YOKE_FAULT_STICKY=1
leaves 'late' fault:0,cpu:0 4 YOKE_FAULT_LATE=$sixth
leaves 'while it saves' fault:0,cpu:0 0 YOKE_FAULT_GET=10 YOKE_FAULT_STICKY=1
env YOKE_FAULT_RUN=$sixth YOKE_FAULT_STICKY=1 "$yoke" train ${keys%%log_every*} log_every=8 eval_every=0 out=rarely \
	steps=8 >out 2>err
verdict "between two lines of the log: $(grep -o 'was lost[^:]*:' err)" "$(
	grep -q 'fault:0 was lost after step 1 .*step 6: ' err || cat err)"
more='save_every=0 snapshot_every=1'
leaves 'with snapshots' fault:0,cpu:0 5 YOKE_FAULT_RUN=$sixth YOKE_FAULT_STICKY=1
more='save_every=2 snapshot_every=3'
leaves 'with both' fault:0,cpu:0 4 YOKE_FAULT_RUN=$sixth YOKE_FAULT_STICKY=1
leaves 'among two of a kind' fault:0,fault:1 4 YOKE_FAULT_RUN=$sixth YOKE_FAULT_DEVICES=2 YOKE_BACKEND=^cpu,skeleton
leaves 'a hang' fault:0,cpu:0 4 YOKE_FAULT_STUCK=$sixth YOKE_DEVICE_TIMEOUT=1
breaks 'the device was named' 'fault.run: call 80' YOKE_FAULT_RUN=80 YOKE_DEVICE=fault:0

# what falls back is in the report, and forbidden on request
export YOKE_BACKEND=fault
YOKE_FAULT_LACKS=gather "$yoke" train $keys out=lacks steps=2 report=1 eval_tokens=256 >out 2>err
verdict "what falls back is in the report" "$(
	grep -q 'fell back: gather f32 \[8,32,32\], 3 launches, .* moved' err || cat err)"
verdict "and in the metrics" "$(tail -n 1 lacks/metrics.jsonl | grep -q \
	'"fallback_ops":.*"op":"gather","dtype":"f32","dims":\[8,32,32\],"count":3,"bytes":[1-9]' ||
	tail -n 1 lacks/metrics.jsonl)"
verdict "YOKE_STRICT=1 turns the first fallback into an error" "$(
	YOKE_STRICT=1 YOKE_FAULT_LACKS=gather "$yoke" train $keys out=strict steps=2 >out 2>err && echo 'no error'
	grep -q '^yoke train: gather in step.*fault:0 does not run it for f32 \[8,32,32\].*YOKE_STRICT' err ||
		cat err)"

cd .. && rm -rf fault.work
echo "1..$count"
