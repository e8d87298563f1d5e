#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke train ranks= when the device of a rank fails: with restarts= as many of the other
# ranks as keep the bits resume from the last checkpoint and end with the weights of an
# undisturbed run; without it, all end with one line that names the rank. Whichever launch,
# allocation or copy fails, with threads or processes, no rank hangs and none is left.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/trainings.sh"
. "${srcdir:-.}/tests/tap.sh"
workspace train_lost
export YOKE_PLUGIN_PATH="${YOKE_TEST_MODULES:-}" YOKE_BACKEND=fault YOKE_FAULT_DEVICES=4 YOKE_THREADS=1
easy_text 120 >text
keys="data=text layers=1 heads=2 embed=16 context=16 batch=1 warmup=2 lr=1e-2 log_every=1 eval_every=0 telemetry=0 dropout=0.1 micro_batches=4"

# launches STEPS: prints the number of launches by rank 0 in that many steps
launches()
{
	run count steps="$1" ranks=4 report=1
	sed -n 's/^ *\([0-9]*\) launches that.*/\1/p' count.err
}
one=$(launches 1) two=$(launches 2)
# the backend makes half of those, the others are copies and collectives
before=$((3 * (two - one))) behind=$((11 * (two - one)))
keys="$keys steps=8"
verdict "four, undisturbed" "$(run whole ranks=4)"

# lost NAME RANKS SETTING KEY=VALUE ..: one of four ranks is lost, RANKS continue
lost()
{
	rm -rf lost
	what=$1 left=$2 setting=$3
	shift 3
	verdict "$what" "$(export "$setting"
		run lost ranks=4 save_every=3 restarts=1 "$@"
		grep -q "^yoke: warn: train: rank [0-3]: .*fault.*; $left ranks* .*last checkpoint, restart 1 of 1\$" lost.err || cat lost.err
		same whole lost
		sed -n 's/.*"step":\([0-9]*\),"loss".*/\1/p' lost/metrics.jsonl >a
		seq 8 | diff a -)"
}
lost "a launch fails after a checkpoint" 2 YOKE_FAULT_RUN=$behind
verdict "it resumes from that checkpoint" "$(cat lost.out lost.err | grep -q '^resumed from lost at step 3$' || cat lost.out lost.err)"
lost "before there is one" 2 YOKE_FAULT_RUN=$before
lost "it is told late, and parameters are shared out" 2 YOKE_FAULT_LATE=$behind zero=2

# ends WORDS SETTING KEY=VALUE ..: exit code 1, and a line with the words
ends()
{
	word=$1 setting=$2
	shift 2
	rm -rf ends
	# shellcheck disable=SC2086 # words
	env "$setting" timeout 600 "$yoke" train $keys out=ends ranks=4 save_every=3 "$@" >ends.out 2>ends.err
	status=$?
	[ $status -eq 1 ] || echo "$setting $*: exit code $status"
	grep -q "^yoke train: .*$word" ends.err || cat ends.err
	[ "$(grep -c '^yoke train' ends.err)" -eq 1 ] || cat ends.err
}
whole=$keys keys="tied=0 $(echo "$keys" | sed 's/layers=1/layers=2/')"
verdict "four of two stages, undisturbed" "$(run whole ranks=4 stages=2)"
lost "a launch of a stage fails" 2 YOKE_FAULT_RUN=$behind stages=2
keys=$whole
verdict "fewer than min_ranks do not go on" "$(ends 'rank [0-3]: .*fault' YOKE_FAULT_RUN=$behind restarts=1 min_ranks=3)"
verdict "without restarts all end" "$(ends 'rank [0-3]: .*fault' YOKE_FAULT_RUN=$behind)"
verdict "what can be read once only" "$(
	# shellcheck disable=SC2086 # words
	"$yoke" train ${keys#data=text} data=- ranks=2 restarts=1 out=never <text >out 2>err && echo "it was taken"
	grep -q 'data=- .*restarts=' err || cat err)"

# For k over all launches, allocations and copies, the k-th one fails: each run ends, either way, in
# time.
which="RUN SEGMENT PUT GET MARK LATE"
most=$((14 * (two - one)))
seed=${YOKE_TEST_SEED:-1}
count_of=0
verdict "whichever call fails, all ranks end" "$(
	for how in thread process; do
		for what in $which; do
			count_of=$((count_of + 1))
			[ -n "${YOKE_TEST_LONG:-}" ] || [ $(((count_of + seed) % 6)) -eq 0 ] || continue
			k=1
			while [ $k -le $most ]; do
				rm -rf any
				# shellcheck disable=SC2086 # words
				env YOKE_FAULT_$what=$k YOKE_DIST_TIMEOUT=5 timeout 600 "$yoke" train $keys out=any ranks=4 spawn=$how >any.out 2>any.err
				status=$?
				[ $status -le 1 ] || { echo "$what $k, $how: exit code $status"; cat any.err; }
				[ $status -eq 0 ] || grep -q '^yoke train: ' any.err || { echo "$what $k, $how:"; cat any.err; }
				k=$((k * 5 + seed % 3))
			done
		done
	done
	for at in /proc/[0-9]*; do
		[ "$(readlink "$at/cwd")" = "$PWD" ] && grep -q yoke "$at/comm" && echo "process ${at#/proc/} is left"
	done)"
echo "1..$count"
exit $failed
