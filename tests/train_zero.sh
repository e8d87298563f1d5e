#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# yoke train zero=1: the weights and states are the bits of zero=0 with every optimizer, clipping and mixed precision,
# as threads and processes; checkpoints are the same files, and go on at any number of ranks; the state takes as much
# less memory as was said.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
workspace train_zero
export YOKE_BACKEND=cpu YOKE_THREADS=1
unset YOKE_CPU_DEVICES
easy_text 120 >text
# a bucket and a part of one, and tensors of several pieces
keys="data=text layers=1 heads=2 embed=160 context=16 warmup=2 log_every=1 eval_every=0 batch=1 lr=1e-2 telemetry=0"

# run NAME KEY=VALUE ..: its output, if it fails
run()
{
	name=$1
	shift
	# shellcheck disable=SC2086 # words
	"$yoke" train $keys out="$name" "$@" >"$name.out" 2>"$name.err" || tail -n 5 "$name.out" "$name.err"
}

same()
{
	for file in model optimizer; do
		cmp "$1"/$file.*.safetensors "$2"/$file.*.safetensors
	done
	for field in loss grad_norm; do
		sed -n 's/.*"step":\([0-9]*\).*"'$field'":\([^,}]*\).*/\1 \2/p' "$1/metrics.jsonl" >a
		sed -n 's/.*"step":\([0-9]*\).*"'$field'":\([^,}]*\).*/\1 \2/p' "$2/metrics.jsonl" >b
		[ -s a ] || echo "no $field"
		cmp a b || paste a b
	done
}

# alike WORDS: the same with zero=0 and 1, at 2 or 3 ranks
alike()
{
	ranks=$((2 + number % 2))
	rm -rf whole shared
	# shellcheck disable=SC2086 # words
	run whole steps=3 dropout=0.1 ranks=$ranks $1
	# shellcheck disable=SC2086 # words
	run shared steps=3 dropout=0.1 ranks=$ranks zero=1 $1
	same whole shared
}

seed=${YOKE_TEST_SEED:-1}
number=0
while read -r words; do
	number=$((number + 1))
	# three of them, another one each day
	if [ -z "${YOKE_TEST_LONG:-}" ] && [ $(((number + seed) % 4)) -ne 0 ]; then
		continue
	fi
	verdict "$words" "$(alike "$words")"
done <<END
optimizer=adamw clip=0.1
optimizer=lamb clip=0.5
optimizer=sgd momentum=0.9 clip_value=0.01
optimizer=adam amsgrad=1 accumulate=3
optimizer=adagrad window=2
optimizer=rmsprop centered=1 momentum=0.5
optimizer=adadelta
optimizer=heavy_ball precision=bf16-mixed allow_emulated=1
optimizer=accelerated restart=none
optimizer=adamw precision=fp16-mixed allow_emulated=1 loss_scale=65536
optimizer=adamw offload=optimizer
optimizer=adamw spawn=process
END

verdict "a run goes on with and without, at other numbers of ranks" "$(
	run part steps=1 parts=4 ranks=4 zero=1 schedule=constant
	run part steps=2 ranks=2 resume=1 zero=1 schedule=constant
	run part steps=3 ranks=1 resume=1 zero=1 schedule=constant
	run part steps=4 ranks=2 resume=1 zero=0 schedule=constant
	run part steps=5 ranks=2 resume=1 zero=1 schedule=constant
	run straight steps=5 parts=4 ranks=1 schedule=constant
	for file in model optimizer; do
		cmp part/$file.*.safetensors straight/$file.*.safetensors
	done)"
run memory0 steps=4 ranks=2
run memory1 steps=4 ranks=2 zero=1
verdict "the memory is what was said" "$(
	n=$(sed -n 's/.*"peak_bytes":\([0-9]*\).*/\1/p' memory0/metrics.jsonl | tail -n 1)
	m=$(sed -n 's/.*"peak_bytes":\([0-9]*\).*/\1/p' memory1/metrics.jsonl | tail -n 1)
	parameters=$(sed -n 's/^\([0-9]*\) parameters.*/\1/p' memory1.err)
	grep -q 'zero=1: each rank has weights' memory1.err || cat memory1.err
	# adamw has two numbers a parameter; a share is at most a piece of 65536 in each of two buckets more than half
	[ $((n - m)) -ge $((4 * parameters - 2 * 2 * 4 * 65536)) ] || echo "$n, with zero=1 $m, $parameters parameters")"
# shellcheck disable=SC2086 # words
"$yoke" train $keys out=never ranks=2 zero=1 optimizer=accelerated 2>err && echo "it was taken"
verdict "restarts by sums over all parameters" "$(grep -q 'restart=none or zero=0' err || cat err; [ ! -e never ] || ls never)"
echo "1..$count"
exit $failed
