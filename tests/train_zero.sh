#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke train zero=1, 2 and 3: weights and states have the bits of zero=0 with every
# optimizer, clipping and mixed precision, with and without accumulation, as threads and
# processes. Checkpoints are the same files and resume with any number of ranks; memory matches
# yoke plan, and the bytes sent match the formulas. Also wire=, half precision between ranks.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/trainings.sh"
. "${srcdir:-.}/tests/tap.sh"
workspace train_zero
export YOKE_BACKEND=cpu YOKE_THREADS=1
unset YOKE_CPU_DEVICES
easy_text 120 >text
# one bucket and a fraction, and tensors of several chunks
shape="data=text layers=1 heads=2 embed=160 context=16 warmup=2 log_every=1 eval_every=0 batch=1 telemetry=0"
keys="$shape lr=1e-2"
fields="loss grad_norm"

# alike WORDS STAGE ..: equal to zero=0, at 2 or 3 ranks; of 3 ranks each has 1 micro-batch, because
# with more, stages 2 and 3 add in another order
alike()
{
	ranks=$((2 + number % 2))
	words=$1
	shift
	case $words in
	*accumulate=*) ranks=2 ;;
	esac
	rm -rf whole
	case $words in
	*lr=*) keys=$shape ;;
	*) keys="$shape lr=1e-2" ;;
	esac
	# shellcheck disable=SC2086 # words
	run whole steps=3 dropout=0.1 ranks=$ranks $words
	for stage; do
		rm -rf shared
		# shellcheck disable=SC2086 # words
		run shared steps=3 dropout=0.1 ranks=$ranks zero="$stage" $words
		same whole shared
	done
}

seed=${YOKE_TEST_SEED:-1}
number=0
while read -r words; do
	number=$((number + 1))
	# three of them, which the seed selects
	stages="1 2 3"
	if [ -z "${YOKE_TEST_LONG:-}" ]; then
		[ $(((number + seed) % 4)) -eq 0 ] || continue
		stages=$((1 + (number / 4 + seed) % 3))
	fi
	# shellcheck disable=SC2086 # several
	verdict "$words, zero=$stages" "$(alike "$words" $stages)"
done <<END
optimizer=adamw clip=0.1
optimizer=lamb clip=0.5
optimizer=sgd momentum=0.9 clip_value=0.01
optimizer=adam amsgrad=1 accumulate=4
optimizer=adagrad window=2
optimizer=rmsprop centered=1 momentum=0.5
optimizer=adadelta
optimizer=radam beta2=0.9
optimizer=rprop lr=1e-3
optimizer=heavy_ball precision=bf16-mixed allow_emulated=1
optimizer=accelerated restart=none
optimizer=accelerated restart=speed clip=0.5 lr=0.5
optimizer=accelerated restart=gradient lr=0.5
optimizer=accelerated restart=function lr=1 accumulate=2
optimizer=adamw precision=fp16-mixed allow_emulated=1 loss_scale=65536
optimizer=adamw offload=optimizer
optimizer=adamw spawn=process accumulate=2
END

keys="$shape lr=1e-2"
verdict "a run goes on with and without, at other numbers of ranks" "$(
	run part steps=1 micro_batches=4 ranks=4 zero=2 schedule=constant
	go part steps=2 ranks=2 resume=1 zero=1 schedule=constant
	go part steps=3 ranks=1 resume=1 zero=3 schedule=constant
	go part steps=4 ranks=2 resume=1 zero=0 schedule=constant
	go part steps=5 ranks=2 resume=1 zero=3 schedule=constant
	run straight steps=5 micro_batches=4 ranks=1 schedule=constant
	fields=''
	same part straight)"

# some of 8 ranks own nothing of any tensor: shards begin at chunks of 16384 elements
verdict "what 4 ranks saved goes on as 3, 8, 2 and 1, some without a share" "$(
	keys=$(echo "$keys" | sed 's/embed=160/embed=16/')
	run part steps=1 micro_batches=24 ranks=4 zero=3 schedule=constant
	go part steps=2 ranks=3 resume=1 zero=1 schedule=constant
	go part steps=3 ranks=8 resume=1 zero=3 schedule=constant
	go part steps=4 ranks=8 resume=1 zero=2 schedule=constant spawn=process
	go part steps=5 ranks=2 resume=1 zero=2 schedule=constant
	go part steps=6 ranks=1 resume=1 zero=0 schedule=constant
	run straight steps=6 micro_batches=24 ranks=1 schedule=constant
	fields=''
	same part straight)"

# Batches of 2 windows of 16 tokens: none for some ranks; as many for each, and a smaller one; one
# more for some.
verdict "zero=3 validates as zero=0 does, however batches fall to ranks" "$(
	keys=$(echo "$keys" | sed 's/batch=1/batch=2/; s/eval_every=0/eval_every=1/')
	for tokens in 16 112 128; do
		run v0 steps=2 ranks=3 eval_tokens=$tokens
		run v3 steps=2 ranks=3 eval_tokens=$tokens zero=3
		[ "$(numbers v0 val_loss | wc -l)" -eq 2 ] || echo "eval_tokens=$tokens: no val_loss"
		[ "$(numbers v0 val_loss)" = "$(numbers v3 val_loss)" ] || echo "eval_tokens=$tokens differs"
	done)"

# held WORDS: additional peak memory of rank 0's process while it saves 85 MB in windows of 16 MiB;
# weights and states of all would be 340 MB more
held()
{
	big="data=text layers=1 heads=2 embed=768 context=16 batch=1 eval_every=0 valid=0 steps=1 spawn=process ranks=2"
	case $1 in
	stages=*) big=$(echo "$big" | sed 's/layers=1/layers=2/') ;;
	esac
	rm -rf held0 held1
	for saves in 0 1; do
		# shellcheck disable=SC2086 # words
		timeout 600 "$yoke" train $big $1 checkpoints=$saves out=held$saves >out 2>err || cat err
	done
	du -k held1 | awk '$1 < 80000 { print "only " $1 " KiB were saved" }'
	tail -qn 1 held[01]/telemetry.jsonl | sed -n 's/.*"rss_peak":\([0-9]*\).*/\1/p' |
		awk '{ x[NR] = $1 } END { if (NR != 2 || x[2] - x[1] > 67108864) print x[1] ", a save made " x[2] }'
}
for words in zero=3 ${YOKE_TEST_LONG:+stages=2 tensor=2}; do
	verdict "$words: a save holds no more than 64 MiB" "$(held "$words")"
done

# said ROW: prints the bytes of a row of the plan
said()
{
	sed -n "s/^$1  *\([0-9][0-9]*\)  .*/\1/p" plan
}

# memory STAGE: a rank's peak is within 3 % of the plan's, which is its shards and two buckets
memory()
{
	export YOKE_DIST_BUCKET=200000
	big="data=text layers=6 heads=2 embed=128 context=16 batch=1 micro_batches=8 ranks=4 zero=$1"
	# shellcheck disable=SC2086 # words
	timeout 600 "$yoke" plan $big steps=3 >plan 2>plan.err || cat plan.err
	# shellcheck disable=SC2086 # words
	timeout 600 "$yoke" train $big out=memory"$1" steps=3 eval_every=2 log_every=1 telemetry=0 checkpoints=0 >out 2>err || cat err
	took=$(sed -n 's/.*"peak_bytes":\([0-9]*\).*/\1/p' "memory$1/metrics.jsonl" | tail -n 1)
	step=$(said "peak of the run") # to which neither the start nor a validation adds
	[ "$step" -eq "$(said "peak, step")" ] || echo "of the run $step, of a step $(said "peak, step")"
	[ "$took" -ge $((step * 97 / 100)) ] && [ "$took" -le $((step * 103 / 100)) ] || echo "took $took, $step said"
	grep -q "^a rank is .* $(said "peak of the run" | awk '{ printf "%.4g", $1 / 1048576 }') MiB\$" err || cat err
	micro_batches=$(($(said parameters) + $(said gradients) + $(said "optimizer state") + $(said sums) + $(said activations) +
		$(said workspace)))
	# in stage 1 full gradients become shards; both exist at that time
	[ "$1" -ne 1 ] || micro_batches=$((parts + $(said "optimizer state") / 2))
	[ "$step" -le $((parts * 103 / 100 + 2 * 4 * 16384 + 2 * 400000)) ] || echo "$step, of parts $parts"
}
for stage in 0 1 2 3; do
	verdict "zero=$stage takes the memory that was said" "$(memory $stage)"
done

# sent NAME KEY=VALUE ..: prints the bytes that both ranks send in 3 steps, without those of the
# start
sent()
{
	out=$1
	shift
	for steps in 1 4; do
		run "$out$steps" steps=$steps schedule=constant ranks=2 valid=0 checkpoints=0 "$@"
	done
	for steps in 1 4; do
		tail -qn 1 "$out$steps"/telemetry*.jsonl | sed -n 's/.*"sent":\([0-9]*\).*/\1/p'
	done | awk '{ n += NR > 2 ? $1 : -$1 } END { printf "%d\n", NR == 4 ? n : -1 }'
}

# A step of two ranks sends 2 Psi for gradients and weights, in stage 2 (m + 1) Psi, in 3 3m Psi,
# both together; and after a step the loss, two numbers and one per rank, f32, and norms of chunks.
verdict "bytes sent are the formulas'" "$(
	keys=$(echo "$keys" | sed 's/embed=160/embed=64/; s/telemetry=0/telemetry=100/')
	one=$(sent plain)
	psi=$(sed -n 's/^\([0-9]*\) parameters.*/\1/p' plain1.err)
	[ "$one" -eq $((3 * (2 * 4 * psi + 40))) ] || echo "zero=0: $one, $psi parameters"
	one=$(sent first zero=1)
	pieces=$(((one / 3 - 2 * 4 * psi - 40) / 16)) # every tensor here is one chunk
	[ "$one" -eq $((3 * (2 * 4 * psi + 40 + 16 * pieces))) ] && [ "$pieces" -gt 8 ] && [ "$pieces" -lt 30 ] ||
		echo "zero=1: $one, $psi parameters, $pieces pieces"
	two=$(sent second zero=2 accumulate=3)
	[ "$two" -eq $((3 * (4 * 4 * psi + 8 * 3 + 32 + 16 * pieces))) ] || echo "zero=2: $two, $psi parameters"
	three=$(sent third zero=3 accumulate=3)
	[ "$three" -eq $((3 * (9 * 4 * psi + 8 * 3 + 32 + 16 * pieces))) ] || echo "zero=3: $three, $psi parameters"
	half=$(sent half zero=1 wire=bf16)
	[ "$half" -eq $((3 * (4 * psi + 2 * psi + 40 + 16 * pieces))) ] || echo "wire=bf16: $half, $psi parameters")"
verdict "halves between ranks: threads are as processes, and near whole ones" "$(
	run h1 steps=3 ranks=2 wire=fp16
	run h2 steps=3 ranks=2 wire=fp16 spawn=process zero=1
	same h1 h2
	run h0 steps=3 ranks=2
	cmp -s h0/model.*.safetensors h1/model.*.safetensors && echo "nothing was rounded"
	cat h0/metrics.jsonl h1/metrics.jsonl | sed -n 's/.*"step":3,.*"loss":\([^,}]*\).*/\1/p' |
		awk '{ x[NR] = $1 } END { d = x[1] - x[2]; if (NR != 2 || d * d > 1e-4) print x[1], x[2] }')"
echo "1..$count"
exit $failed
