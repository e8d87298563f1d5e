#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke train tensor=: ranks that compute each layer together match one rank to 1e-5, with
# data ranks, clipping, optimizers that sum over all parameters, recompute and mixed precision.
# Checkpoints are those of one rank and resume with any split; memory matches yoke plan;
# unsupported settings are refused before any work, and no rank outlives another.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/trainings.sh"
. "${srcdir:-.}/tests/tap.sh"
workspace train_tensor
export YOKE_BACKEND=cpu YOKE_THREADS=1
unset YOKE_CPU_DEVICES
easy_text 120 >text
common="data=text warmup=2 log_every=1 batch=2 telemetry=0"
small="$common eval_every=2"
gpt="layers=2 heads=4 embed=32 context=16"
# not Adam, which amplifies rounding where a gradient is 0, as for the bias of keys
keys="$small $gpt steps=4 lr=1e-2 optimizer=sgd"

# near A B [TOLERANCE]: files of one layout, with weights, states and numbers of each step within
# the tolerance
near()
{
	for file in model optimizer; do
		a=$(echo "$1"/$file.*.safetensors)
		b=$(echo "$2"/$file.*.safetensors)
		head=$((8 + $(od -An -tu8 -N8 "$a")))
		cmp -n $head "$a" "$b"
		od -An -v -tf4 -w4 -j $head "$a" >a
		od -An -v -tf4 -w4 -j $head "$b" >b
		apart a b "$file of $1 and $2" 0.1 "${3:-1e-5}"
	done
	for field in loss val_loss grad_norm; do
		sed -n 's/.*"step":\([0-9]*\).*"'$field'":\([^,}]*\).*/\2/p' "$1/metrics.jsonl" >a
		sed -n 's/.*"step":\([0-9]*\).*"'$field'":\([^,}]*\).*/\2/p' "$2/metrics.jsonl" >b
		apart a b $field 1 "${3:-1e-5}"
	done
}

# apart FILE FILE WHAT AT_LEAST TOLERANCE
apart()
{
	[ -s "$1" ] && [ "$(wc -l <"$1")" -eq "$(wc -l <"$2")" ] || { echo "$3: $(wc -l <"$1") and $(wc -l <"$2") numbers"; return; }
	paste "$1" "$2" | awk -v what="$3" -v least="$4" -v most="$5" '{
		d = $1 - $2; d = d < 0 ? -d : d
		m = $1 < 0 ? -$1 : $1; m = m < least ? least : m
		if (!(d <= most * m) && !bad++) print what ": number " NR ", " $1 " and " $2 }'
}

verdict "two ranks that compute each layer together" "$(run one; run two ranks=2 tensor=2; near one two)"
verdict "four" "$(run four ranks=4 tensor=4; near one four)"
verdict "two data ranks of two, and recompute, accumulation" "$(run parts micro_batches=4; run both ranks=4 tensor=2 micro_batches=4
	near parts both
	run again ranks=2 tensor=2 accumulate=4 recompute=block; near parts again)"
verdict "said by rank 0" "$(grep -q 'tensor=2: 2 ranks ' two.out two.err || cat two.out)"
verdict "ratios over whole tensors, clipped norms" "$(keys="$small $gpt steps=4 lr=1e-2 optimizer=lamb clip=0.1"
	run l1 micro_batches=2; run l2 ranks=4 tensor=2 micro_batches=2; near l1 l2)"
verdict "restarts by sums over all" "$(keys="$small $gpt steps=4 lr=0.1 optimizer=accelerated restart=speed clip=0.5"
	run a1; run a2 ranks=2 tensor=2; near a1 a2)"
verdict "mixed precision, with a scale that falls" "$(
	set -- precision=fp16-mixed allow_emulated=1 loss_scale=131072
	run m1 "$@"; run m2 ranks=2 tensor=2 "$@"; near m1 m2 2e-2)"
verdict "a perceptron, its layers odd and even" "$(for layers in 1 2; do
	keys="$small model=mlp layers=$layers embed=8 history=4 context=16 steps=4 lr=1e-2 optimizer=sgd"
	run p1 micro_batches=2; run p2 ranks=4 tensor=2; near p1 p2
	done)"
verdict "words, of which two ranks have one more" "$(run w1 tokenizer=word; run w2 tokenizer=word ranks=4 tensor=4; near w1 w2
	grep -q '"vocab": *18[,}]' w2/manifest.json || grep '"vocab":' w2/manifest.json)"
verdict "states, gradients and parameters shared out among data ranks" "$(run parts micro_batches=4
	for stage in 1 2 3; do
		run shared ranks=4 tensor=2 micro_batches=4 zero=$stage
		near parts shared
	done
	rm -rf on1 # and its files with another split
	run straight micro_batches=4 schedule=constant
	keys="$small $gpt lr=1e-2 optimizer=sgd schedule=constant"
	run on1 ranks=4 tensor=2 micro_batches=4 zero=1 steps=2
	go on1 resume=1 steps=4 ranks=4 tensor=4 zero=0
	near straight on1
	run on1 ranks=4 tensor=4 micro_batches=4 steps=2
	go on1 resume=1 steps=4 ranks=4 tensor=2 zero=3
	near straight on1)"
verdict "processes have the bits of threads, with dropout" "$(
	run threads ranks=4 tensor=2 dropout=0.1; run processes ranks=4 tensor=2 dropout=0.1 spawn=process
	same threads processes)"

verdict "a run of two goes on as one, as two, as four" "$(keys="$small $gpt lr=1e-2 optimizer=sgd schedule=constant"
	run straight steps=4
	run part ranks=2 tensor=2 steps=2
	for n in 1 2 4; do
		rm -rf on$n
		cp -r part on$n
		go on$n resume=1 steps=4 ranks=$n tensor=$n
		near straight on$n
	done)"
verdict "its model can be evaluated and generates" "$(timeout 600 "$yoke" eval two data=text >two.eval 2>&1 || cat two.eval
	timeout 600 "$yoke" eval one data=text >one.eval 2>&1
	sed -n 's/^loss  *//p' one.eval >a; sed -n 's/^loss  *//p' two.eval >b; apart a b loss 1 1e-5
	timeout 600 "$yoke" generate two tokens=5 >two.text 2>&1 || cat two.text)"

# said ROW: prints the bytes of a row of the plan
said()
{
	sed -n "s/^$1  *\([0-9][0-9]*\)  .*/\1/p" plan
}
verdict "it takes the memory that was said, and of weights a half" "$(keys="$common layers=2 heads=4 embed=128 context=16 eval_every=0"
	run memory ranks=2 tensor=2 steps=3 checkpoints=0
	# shellcheck disable=SC2086 # words
	timeout 600 "$yoke" plan $keys ranks=1 steps=3 >plan 2>&1
	whole=$(said parameters)
	# shellcheck disable=SC2086 # words
	timeout 600 "$yoke" plan $keys ranks=2 tensor=2 steps=3 >plan 2>&1
	grep -q 'rank, .* 2 with tensor=2' plan || cat plan
	took=$(sed -n 's/.*"peak_bytes":\([0-9]*\).*/\1/p' memory/metrics.jsonl | tail -n 1)
	step=$(said "peak of the run")
	[ "$took" -ge $((step * 97 / 100)) ] && [ "$took" -le $((step * 103 / 100)) ] || echo "took $took, $step said"
	[ "$(said parameters)" -le $((whole * 51 / 100)) ] || echo "weights $(said parameters) of $whole")"

keys=$common
verdict "ranks that are no multiple" "$(refused 'ranks=3 .*multiple of 2, .*stages=1 and tensor=2' ranks=3 tensor=2)"
verdict "heads that ranks do not divide" "$(refused 'tensor=3 does not divide heads=4' ranks=3 tensor=3)"
verdict "width that ranks do not divide" "$(refused 'tensor=2 does not divide embed=5' ranks=2 tensor=2 model=mlp embed=5)"
verdict "a model that is not cut" "$(refused 'tensor=2: layers of model=bk' ranks=2 tensor=2 model=bk)"
verdict "ratios of tensors that nobody has" "$(refused 'zero=1 and tensor=2' ranks=4 tensor=2 zero=1 optimizer=lamb)"
verdict "a vocabulary of fewer tokens than ranks" "$(echo "a a a a a a a a" >letters; keys=${keys#data=text}
	refused 'tensor=4 is more than the 3 tokens of the vocabulary' ranks=4 tensor=4 data=letters tokenizer=word valid=0 context=2)"

keys="$common $gpt steps=4"
# Two processes as torchrun starts them, the second with other keys.
# shellcheck disable=SC2086 # words
unlike()
{
	for i in 0 1; do
		[ $i -eq 0 ] && key=$1 || key=$2
		RANK=$i WORLD_SIZE=2 LOCAL_RANK=$i LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=1 \
			timeout 600 "$yoke" train $keys out=unlike $key >unlike.$i.out 2>unlike.$i.err &
		eval "pid$i=$!"
	done
	wait "$pid0"
	[ $? -eq 1 ] || echo "rank 0 did not end by an error"
	wait "$pid1"
	[ $? -eq 1 ] || echo "rank 1 did not end by an error"
	for i in 0 1; do
		cat unlike.$i.err
	done >unlike.err
	grep -q "$3" unlike.err || cat unlike.err
}
verdict "ranks of other layouts" "$(unlike tensor=2 tensor=1 'rank 0 has tensor=2, rank 1 tensor=1')"
verdict "ranks of other splits" "$(unlike "stages=2 split=1,1" stages=2 'rank 0 has split=1,1, rank 1 split=auto')"
verdict "ranks of other keys" "$(unlike tensor=2 "tensor=2 dropout=0.1" 'differ in their configuration: rank 0 has dropout=0, rank 1 dropout=0.1')"

# shellcheck disable=SC2086 # words
verdict "a rank that is killed ends all, and is named" "$(kill_rank 3 $common $gpt ranks=4 tensor=2)"
echo "1..$count"
exit $failed
