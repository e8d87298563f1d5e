#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# yoke train on a device that fails in the middle: one line, exit 1, the last checkpoint as it was, and
# a resumed run that ends as one that was not disturbed.
set -u
yoke=${YOKE:-$PWD/yoke}
[ -x "$yoke" ] || { echo "1..0 # SKIP $yoke is not built"; exit 0; }
. "${srcdir:-.}/tests/tap.sh"
cd "${TMPDIR:-/tmp}" || exit 99
rm -rf fault.work && mkdir fault.work && cd fault.work || exit 99
export YOKE_PLUGIN_PATH="${YOKE_TEST_MODULES:-}" YOKE_BACKEND=fault

i=0
while [ $i -lt 120 ]; do
	echo "line $((i % 7)) of a text that is easy to learn"
	i=$((i + 1))
done >text
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
breaks 'a copy' 'fault.put: call 51' YOKE_FAULT_PUT=51
breaks 'an event' 'fault.mark: call 120' YOKE_FAULT_MARK=120
breaks 'a hang' 'evaluation 2 .*no answer within 1 s' YOKE_FAULT_STUCK=80 YOKE_DEVICE_TIMEOUT=1
breaks 'no memory' 'out of memory' YOKE_FAULT_MEMORY=100000

cd .. && rm -rf fault.work
echo "1..$count"
