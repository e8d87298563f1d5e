#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke train on several ranks: the weights have the bits of one rank that runs all
# micro-batches of each step, with dropout, and across resumes with other numbers of ranks; one
# signal ends all; unsupported settings are refused before any work.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/trainings.sh"
. "${srcdir:-.}/tests/tap.sh"
workspace train_ranks
export YOKE_BACKEND=cpu YOKE_THREADS=1
unset YOKE_CPU_DEVICES
easy_text 120 >text
small="data=text layers=1 heads=2 embed=32 context=32 warmup=2 log_every=1 eval_every=3"
keys="$small dropout=0.1 batch=2 steps=6 lr=1e-2"
fields="loss val_loss grad_norm"

verdict "one rank" "$(run one micro_batches=4)"
verdict "two, watched" "$(run two ranks=2 micro_batches=4 profile=1)"
verdict "four" "$(run four ranks=4)"
verdict "two ranks have the bits of one rank" "$(same one two)"
verdict "four, too" "$(same one four)"
verdict "and of one rank that accumulates" "$(run alone accumulate=4; same one alone)"
verdict "a line before the first step reports the order of one rank" "$(
	for name in one two four alone; do
		cat $name.out $name.err | grep -q 'in the order of one rank with micro_batches=4 accumulate_order=tree$' || cat $name.err
	done)"
# ordered NAME SAME KEY=VALUE ..: a run that reports whether its sums have the order of one rank,
# and has its bits if so
ordered()
{
	name=$1 in=$2
	shift 2
	run $name "$@"
	case $in in
	yes) cat $name.out $name.err | grep -q 'added in the order of one rank with micro_batches=6 ' || cat $name.err
		same six $name ;;
	no) cat $name.out $name.err | grep -q 'not added in the order of one rank with micro_batches=6: ' || cat $name.err ;;
	esac
}
run six micro_batches=6
verdict "two ranks with 3 micro-batches each: another order" "$(ordered odd no ranks=2 micro_batches=6)"
verdict "but not with zero=2, which adds up two ranks first" "$(ordered even yes ranks=2 micro_batches=6 zero=2)"
verdict "three ranks with 2 micro-batches each have the bits of one" "$(ordered three yes ranks=3 micro_batches=6 && ordered three1 yes ranks=3 micro_batches=6 zero=1)"
verdict "but not with zero=2" "$(ordered three2 no ranks=3 micro_batches=6 zero=2)"
verdict "nor by a ring, by halving, or with split gradients" "$(
	export YOKE_DIST_ALGORITHM=ring
	ordered ring no ranks=3 micro_batches=6
	unset YOKE_DIST_ALGORITHM
	ordered halves no ranks=3 micro_batches=6 wire=bf16
	ordered topk no ranks=3 micro_batches=6 compress=topk compress_after=0
	ordered fast no ranks=3 micro_batches=6 accumulate_order=fast)"
verdict "accumulate_order=fast: alone its own bits, also of a run that is resumed" "$(
	keys="$small batch=2 lr=1e-2 schedule=constant dropout=0.1"
	run fast1 micro_batches=6 accumulate_order=fast steps=6
	run fast2 micro_batches=6 accumulate_order=fast steps=3
	go fast2 resume=1 steps=6
	same fast1 fast2)"
verdict "clipping, another optimizer, validation shared out" "$(
	keys="$small batch=3 steps=6 lr=1e-2"
	run l1 micro_batches=2 optimizer=lamb clip=0.5
	run l2 ranks=2 optimizer=lamb clip=0.5
	same l1 l2)"
verdict "optimizers of whole matrices, resumed with another number of ranks" "$(
	keys="$small batch=2 lr=1e-2 schedule=constant"
	for o in muon adafactor; do
		run $o.whole optimizer=$o micro_batches=2 steps=6
		run $o optimizer=$o ranks=2 steps=3
		go $o resume=1 ranks=1 steps=6
		same $o.whole $o
	done)"
verdict "restarts that ask for the loss" "$(
	keys="$small batch=2 steps=6"
	run r1 micro_batches=2 optimizer=accelerated restart=function lr=0.5
	run r2 ranks=2 optimizer=accelerated restart=function lr=0.5
	same r1 r2)"
verdict "a resumed run keeps its parts on other ranks" "$(
	keys="$small batch=2 lr=1e-2 schedule=constant dropout=0.1"
	run part ranks=4 steps=3
	run whole ranks=1 micro_batches=4 steps=6
	go part resume=1 ranks=2 steps=6
	same part whole)"
verdict "its metrics say how many ranks, how long one waited, what it sent, and for whom they waited" "$(
	for words in '"ranks":2[,}]' '"ranks_wait_s":[0-9.e-]*[,}]' '"sent_bytes":[1-9][0-9]*[,}]' '"slowest_rank":[01][,}]'; do
		[ "$(grep '"loss"' two/metrics.jsonl | grep -c "$words")" -eq 6 ] || { echo "$words"; tail -n 2 two/metrics.jsonl; }
	done)"
verdict "its metrics count the tokens of all" "$(
	grep -q '"step":6,.*"tokens":1536[,}]' two/metrics.jsonl || tail -n 2 two/metrics.jsonl)"

verdict "ranks that do not divide the parts" "$(refused 'these do: 1 2 4 8' ranks=3 micro_batches=8)"
verdict "ranks=auto: as many devices as divide the parts" "$(export YOKE_CPU_DEVICES=3; run auto ranks=auto micro_batches=4
	grep -q '^2 ranks' auto.out auto.err || head -n 3 auto.out auto.err; same one auto
	YOKE_CPU_DEVICES=2 run auto2 ranks=auto spawn=process; grep -q '^2 ranks' auto2.out auto2.err || cat auto2.err)"
verdict "batch=auto" "$(keys="$small lr=1e-2"; refused 'batch=auto' ranks=2 batch=auto)"
verdict "more ranks than devices" "$(export YOKE_CPU_DEVICES=2; refused 'YOKE_ENODEV\|devices' ranks=3)"

if [ -n "${YOKE_TEST_LONG:-}" ]; then
	keys="data=text layers=2 heads=2 embed=32 context=16 batch=1 tied=0 micro_batches=4 steps=200 dropout=0.1 warmup=2 lr=1e-2 eval_every=0"
	fields=
	verdict "200 steps alone" "$(run long)"
	for how in thread process; do
		verdict "and 200 of 2 and 4 ranks, whatever is shared out, and of two stages, have the same bits: $how" "$(
			for ranks in 2 4; do
				for zero in 0 1 2 3; do
					run other ranks=$ranks zero=$zero spawn=$how
					same long other
				done
				run other ranks=$ranks stages=2 spawn=$how
				same long other
			done)"
	done
fi

keys="$small batch=2 lr=1e-2"
verdict "one signal ends all ranks behind the same step, saved" "$(signalled signal 20 ranks=2)"
verdict "each rank's telemetry says how many collectives it has come to" "$(
	for file in telemetry.jsonl telemetry.1.jsonl; do
		tail -n 1 "signal/$file" | grep -q '"collective":{"seq":[1-9][0-9]' || tail -n 1 "signal/$file"
	done
	tail -n 1 signal/telemetry.1.jsonl | grep -q '"rank":1,.*"step":[1-9]' || echo "not of rank 1")"
verdict "and the run goes on" "$(go signal resume=1 steps=$(($(saved_step signal) + 2)))"
echo "1..$count"
exit $failed
