#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke train compress=topk: sending the whole gradient gives the bits of a run without it;
# threads and processes, and zero=0 and 1, agree; residuals are in checkpoints, which resume with
# any number of ranks; the bytes sent are as predicted; unsupported combinations are refused.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/trainings.sh"
. "${srcdir:-.}/tests/tap.sh"
workspace train_compress
export YOKE_BACKEND=cpu YOKE_THREADS=1
unset YOKE_CPU_DEVICES
easy_text 120 >text
keys="data=text layers=1 heads=2 embed=32 context=16 warmup=2 log_every=1 eval_every=0 batch=1 lr=1e-2 telemetry=0 micro_batches=6
schedule=constant valid=0"

# equal FILE NAME NAME: are the files of both runs bit-identical?
equal()
{
	cmp "$2"/"$1".*.safetensors "$3"/"$1".*.safetensors
}

few="compress=topk compress_ratio=0.03 compress_after=2"
verdict "sending all elements equals a run without compression" "$(
	run dense steps=3 ranks=3
	run all steps=3 ranks=3 compress=topk compress_ratio=1 compress_after=1
	equal model dense all
	run alone steps=3 compress=topk compress_ratio=1 compress_after=0
	run whole steps=3
	equal model whole alone)"
# shellcheck disable=SC2086 # words
verdict "threads, processes and zero=1 agree, and differ from a run without compression" "$(
	run threads steps=5 ranks=3 $few
	run processes steps=5 ranks=3 spawn=process $few
	run shared steps=5 ranks=3 zero=1 $few
	run five steps=5 ranks=3
	for other in processes shared; do
		equal model threads $other
		equal optimizer threads $other
	done
	cmp -s threads/model.*.safetensors five/model.*.safetensors && echo "all was sent")"
# shellcheck disable=SC2086 # words
verdict "a run resumes with other numbers of ranks, with and without compression" "$(
	run straight steps=6 ranks=2 save_every=4 $few
	run part steps=4 ranks=2 save_every=4 $few
	grep -q '"error.layer0.mlp.up.weight"' part/optimizer.*.safetensors || echo "nothing is kept"
	go part steps=6 ranks=2 resume=1
	equal model straight part
	equal optimizer straight part
	go part steps=8 ranks=3 zero=1 resume=1
	go part steps=9 ranks=1 resume=1
	go part steps=10 ranks=2 compress=none resume=1
	grep -q '"error.' part/optimizer.*.safetensors && echo "something is kept"
	go part steps=11 ranks=3 zero=2 resume=1
	go part steps=12 ranks=2 zero=0 $few resume=1)"

# shellcheck disable=SC2086 # words
verdict "without compression it resumes with stages and with sharded parameters" "$(
	words=$keys keys="$(echo "$keys" | sed "s/layers=1/layers=2/; s/micro_batches=6/micro_batches=12/") tied=0"
	run begun steps=3 ranks=2 $few
	for how in "ranks=1" "ranks=2 stages=2" "ranks=2 zero=3" "ranks=6 stages=2 zero=1"; do
		rm -rf on
		cp -r begun on
		go on steps=5 compress=none resume=1 $how
		[ -d one ] || cp -r on one
		equal model one on
		equal optimizer one on
	done
	keys=$words)"

# A loss times 2^23 overflows in f16 until the scale has decreased: all ranks skip these steps,
# after which the residual is unchanged; otherwise no later step would be finite.
half="precision=fp16-mixed allow_emulated=1 loss_scale=8388608"
# shellcheck disable=SC2086 # words
verdict "mixed precision, a scale that changes, and steps that are skipped" "$(
	run half steps=14 ranks=3 $half
	run half.all steps=14 ranks=3 $half compress=topk compress_ratio=1 compress_after=1
	equal model half half.all
	run half.few steps=14 ranks=3 $half compress=topk compress_ratio=0.03 compress_after=0
	run half.shared steps=14 ranks=3 zero=1 spawn=process $half compress=topk compress_ratio=0.03 compress_after=0
	equal model half.few half.shared
	grep -q '"skipped":[1-9]' half.few/metrics.jsonl || grep skip half.few/metrics.jsonl half.few.out
	cmp -s half.few/model.*.safetensors half/model.*.safetensors && echo "all was sent"
	grep '"step":14,"' half.few/metrics.jsonl | grep -q '"grad_norm":[0-9]' || grep '"step":14,' half.few/metrics.jsonl
	run brain steps=4 ranks=2 precision=bf16-mixed allow_emulated=1 $few
	run brain.processes steps=4 ranks=2 spawn=process precision=bf16-mixed allow_emulated=1 $few
	equal model brain brain.processes)"

# sent NAME: bytes sent by rank 0 in step 5
sent()
{
	sed -n 's/.*"step":[45],.*"sent_bytes":\([0-9]*\).*/\1/p' "$1/metrics.jsonl" | awk '{ n = $1 - n } END { printf "%d\n", n }'
}

# Tensors of the model, by elements; the loss and the request are 8 additional bytes.
verdict "bytes sent are the formula's" "$(
	python=$(command -v python3) || exit 0
	want=$("$python" - threads/model.*.safetensors <<'END'
import json, math, struct, sys
file = open(sys.argv[1], 'rb')
head = json.loads(file.read(struct.unpack('<Q', file.read(8))[0]))
counts = [math.prod(t['shape']) for name, t in head.items() if name != '__metadata__']
few = sum(8 * max(1, n * 3 // 100) for n in counts if n >= 1024) * 2
print(few, sum(4 * n for n in counts if n < 1024) + 8)
END
	)
	few=${want% *}
	small=${want#* }
	got=$(sent threads)
	# each of three ranks sends a third of the full data twice, and its selection of that three
	# times, rounded
	[ "$got" -ge $((few + small * 4 / 3 - 64)) ] && [ "$got" -le $((few + small * 4 / 3 + 256)) ] ||
		echo "$got, wanted $few and 4/3 of $small"
	[ "$got" -lt $(($(sent five) / 3)) ] || echo "$got, and $(sent five) without")"

verdict "shares of gradients" "$(refused 'zero=1 or 0' compress=topk zero=2 ranks=2)"
verdict "a ratio of nothing" "$(refused 'compress_ratio' compress=topk compress_ratio=0)"
verdict "a ratio without benefit is reported" "$(run much steps=1 ranks=2 compress=topk compress_ratio=0.5
	grep -q 'compress_ratio=0.5' much.err || cat much.err)"
verdict "the plan counts what is kept" "$(
	for c in none topk; do
		# shellcheck disable=SC2086 # words
		"$yoke" plan $keys ranks=2 compress=$c 2>err | sed -n 's/^optimizer state  *\([0-9][0-9]*\)  .*/\1/p'
	done | awk '{ x[NR] = $1 } END { if (NR != 2 || x[2] < 1.4 * x[1] || x[2] > 1.5 * x[1]) print x[1], x[2] }')"
echo "1..$count"
exit $failed
