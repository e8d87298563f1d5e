#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke train stages=: ranks that hold consecutive blocks of a model train the bits of one
# rank, with either micro-batch order, with data ranks, clipping, mixed precision and recompute
# (approximately where embedding and head share a matrix). Checkpoints are those of one rank and
# resume with any split; memory matches yoke plan; unsupported settings are refused before any
# work.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/trainings.sh"
. "${srcdir:-.}/tests/tap.sh"
workspace train_pipeline
export YOKE_BACKEND=cpu YOKE_THREADS=1
unset YOKE_CPU_DEVICES
easy_text 120 >text
common="data=text warmup=2 log_every=1 batch=2 telemetry=0"
small="$common eval_every=2 dropout=0.1"
gpt="layers=3 heads=4 embed=32 context=16"
keys="$small $gpt tied=0 steps=4 lr=1e-2"
fields="loss val_loss grad_norm"
long=${YOKE_TEST_LONG:-0}

# near A B: files of one layout, with weights and losses within 1e-6 of the largest
near()
{
	a=$(echo "$1"/model.*.safetensors)
	b=$(echo "$2"/model.*.safetensors)
	head=$((8 + $(od -An -tu8 -N8 "$a")))
	cmp -n $head "$a" "$b"
	od -An -v -tf4 -w4 -j $head "$a" >a
	od -An -v -tf4 -w4 -j $head "$b" >b
	paste a b | awk -v what="$1 and $2" '{ d = $1 - $2; d = d < 0 ? -d : d; m = $1 < 0 ? -$1 : $1
		worst = d > worst ? d : worst; most = m > most ? m : most }
		END { if (!(worst <= 1e-6 * most) || !NR) print what ": weights " worst " apart, of " most }'
	numbers "$1" loss >a
	numbers "$2" loss >b
	paste a b | awk -v what="$1 and $2" '{ d = $2 - $4; d = d < 0 ? -d : d; if (!(d <= 1e-6 * $2) || $1 != $3) print what ": " $0 }'
}

verdict "one rank" "$(run one micro_batches=4)"
verdict "two stages have the bits of one rank, with 1f1b and gpipe" "$(run two ranks=2 stages=2 micro_batches=4; same one two
	run two ranks=2 stages=2 micro_batches=4 pipeline=gpipe; same one two)"
verdict "rank 0 reports the stages" "$(grep -q 'stages=2: blocks 2, 1; 1f1b' one.err two.err && echo "of one"
	grep -q 'stages=2: blocks 2, 1; gpipe' two.err || cat two.err)"
verdict "three; two of two data ranks; and with their states shared out" "$(
	run three ranks=3 stages=3 micro_batches=4; same one three
	run four ranks=4 stages=2 split=1,2 micro_batches=4 zero=1; same one four
	[ "$long" = 0 ] || { run four ranks=4 stages=2 micro_batches=4; same one four
		run alone; run first ranks=3 stages=3; same alone first; })"
verdict "ratios of tensors, clipped norms; processes" "$(keys="$small $gpt tied=0 steps=4 lr=1e-2 optimizer=lamb clip=0.05"
	run l1 micro_batches=2
	run l2 ranks=3 stages=3 micro_batches=2 spawn=process; same l1 l2)"
verdict "mixed precision, with a scale that falls" "$(keys="$keys allow_emulated=1"
	for half in fp16 $([ "$long" = 0 ] || echo bf16); do
		run m1 micro_batches=4 precision=$half-mixed loss_scale=1048576
		run m2 ranks=3 stages=3 micro_batches=4 precision=$half-mixed loss_scale=1048576
		same m1 m2
	done
	[ "$long" != 0 ] || grep -q '"overflow":"layer0' m2/metrics.jsonl || grep -h overflow m1/metrics.jsonl m2/metrics.jsonl)"
verdict "recompute" "$(run r1 micro_batches=4 recompute=block; run r2 ranks=2 stages=2 micro_batches=4 recompute=block; same r1 r2)"
verdict "a perceptron" "$(keys="$small model=mlp layers=4 embed=8 history=4 context=16 steps=4 lr=1e-2"
	run p1 micro_batches=4; run p2 ranks=3 stages=3 micro_batches=4; same p1 p2)"

keys="$small $gpt steps=4 lr=1e-2 optimizer=sgd"
verdict "a matrix of the embedding that is the head's: two, three stages, four ranks" "$(run t1 micro_batches=4
	run t2 ranks=2 stages=2 micro_batches=4; near t1 t2
	run t2 ranks=3 stages=3 micro_batches=4 pipeline=gpipe; near t1 t2
	[ "$long" = 0 ] || { run t2 ranks=4 stages=2 micro_batches=4 zero=1 clip=0.1; run t1 micro_batches=4 clip=0.1; near t1 t2; })"
verdict "with tensor ranks" "$(keys="$common eval_every=2 $gpt steps=4 lr=1e-2 optimizer=sgd"
	run x1 micro_batches=2; run x2 ranks=4 stages=2 tensor=2 micro_batches=2; near x1 x2
	[ "$long" = 0 ] || { run x2 ranks=8 stages=2 tensor=2 micro_batches=2; near x1 x2; })"

keys="$small $gpt tied=0 lr=1e-2 schedule=constant"
verdict "a run of three stages resumes as one, as two, as two data ranks; and one rank as three stages" "$(
	run straight micro_batches=4 steps=4
	run part ranks=3 stages=3 micro_batches=4 steps=2
	for how in "ranks=1 stages=1" "ranks=2 stages=2" "ranks=4 stages=2 zero=1" "ranks=2 stages=1 zero=3"; do
		rm -rf on
		cp -r part on
		# shellcheck disable=SC2086 # words
		go on resume=1 steps=4 $how
		same straight on
	done
	[ "$long" = 0 ] || { run part ranks=2 stages=2 split=1,2 micro_batches=4 steps=2
		go part resume=1 steps=4 ranks=3 stages=3
		same straight part; }
	run part micro_batches=4 steps=2
	go part resume=1 steps=4 ranks=3 stages=3
	same straight part)"
verdict "it resumes on all devices for its stages and data ranks" "$(run auto ranks=2 stages=2 micro_batches=2 steps=2
	export YOKE_CPU_DEVICES=3
	go auto resume=1 steps=3 ranks=auto
	grep -q 'stages=2: blocks 2, 1' auto.out auto.err || cat auto.out auto.err
	YOKE_CPU_DEVICES=7
	go auto resume=1 steps=4 ranks=auto # micro_batches=2 of three times two
	grep -q '^4 ranks' auto.out auto.err || cat auto.out auto.err)"
verdict "its model can be evaluated and generates" "$(timeout 600 "$yoke" eval part data=text >part.eval 2>&1 || cat part.eval
	timeout 600 "$yoke" eval straight data=text >straight.eval 2>&1
	cmp part.eval straight.eval
	timeout 600 "$yoke" generate part tokens=5 >part.text 2>&1 || cat part.text)"
verdict "a model without the key tied is tied, without a message" "$(grep -q '"tied"' t1/manifest.json &&
	sed -n '/"model": {/,/}/p' t1/manifest.json | grep tied
	sed -n '/"model": {/,/}/p' part/manifest.json | grep -q '"tied": *"0"' || echo "part does not say that it is not")"

# said ROW: prints the bytes of a row of the plan
said()
{
	sed -n "s/^$1  *\([0-9][0-9]*\)  .*/\1/p" plan
}
verdict "it uses the predicted memory" "$(keys="$common layers=4 heads=4 embed=64 context=32 split=3,1"
	run memory ranks=2 stages=2 steps=3 micro_batches=4 checkpoints=0 eval_every=0
	# shellcheck disable=SC2086 # words
	timeout 600 "$yoke" plan $keys eval_every=0 ranks=2 stages=2 steps=3 micro_batches=4 >plan 2>&1
	grep -q 'rank, .* 2 with tensor=1 zero=0 stages=2, stage 0,' plan || cat plan
	grep -q '^0 *0-2 ' plan && grep -q '^1 *3 ' plan || cat plan
	took=$(sed -n 's/.*"peak_bytes":\([0-9]*\).*/\1/p' memory/metrics.jsonl | tail -n 1)
	step=$(said "peak of the run")
	[ "$took" -ge $((step * 97 / 100)) ] && [ "$took" -le $((step * 103 / 100)) ] || echo "took $took, $step said")"

keys=$common
verdict "ranks that are no multiple" "$(refused 'ranks=3 .*multiple of 2, .*stages=2 and tensor=1' ranks=3 stages=2)"
verdict "more stages than blocks" "$(refused 'stages=5 are more than layers=4' ranks=5 stages=5)"
verdict "a split with another number of blocks" "$(refused 'split=4,4 comes to 8 blocks, but there are layers=4' ranks=2 stages=2 split=4,4)"
verdict "a split with another number of stages" "$(refused 'split=2,1,1 has 3 numbers, but there are stages=2' ranks=2 stages=2 split=2,1,1)"
verdict "an invalid split" "$(refused 'split=4+4: ' ranks=2 stages=2 split=4+4)"
verdict "a split without stages" "$(refused 'split=2,2 .*stages=' split=2,2)"
verdict "scopes of which a rank has some" "$(refused 'keep_f32=layer0 names scopes' ranks=2 stages=2 keep_f32=layer0)"
verdict "a device that one rank chooses" "$(refused 'backend=fastest .*stages=2' ranks=2 stages=2 backend=fastest)"
verdict "gradients shared out" "$(refused 'zero=2 with stages=2' ranks=4 stages=2 zero=2)"
verdict "gradients sent in part" "$(refused 'compress=topk .* stages=2' ranks=2 stages=2 compress=topk)"
verdict "restarts by sums over all" "$(refused 'restarts by sums .* stages=2' ranks=2 stages=2 optimizer=accelerated lr=0.1)"
verdict "a model that is not shared out" "$(refused 'stages=2: .*model=bk' ranks=2 stages=2 model=bk)"
verdict "micro-batches not divisible by the data ranks" "$(refused 'ranks=6 .* micro_batches=4; these do: 2 4 8' \
	ranks=6 stages=2 micro_batches=4)"
verdict "a key of another model" "$(refused "model=mlp has no tied" model=mlp tied=0)"

keys="$common $gpt tied=0 lr=1e-2 schedule=constant eval_every=0" fields=
verdict "one signal ends all stages after the same step, with a checkpoint" "$(
	signalled signal 10 ranks=3 stages=3 micro_batches=4
	step=$(saved_step signal)
	run whole micro_batches=4 steps=$((step + 1)) save_every=0
	go signal resume=1 ranks=2 stages=2 steps=$((step + 1)) save_every=0
	same whole signal)"

# shellcheck disable=SC2086 # words
verdict "a stage that is killed ends all, and is named" "$(kill_rank 1 $common $gpt ranks=3 stages=3 micro_batches=4)"
echo "1..$count"
exit $failed
