#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke train, generate and eval from the command line: a run and its files, resuming, bad
# input.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/status.sh"
workspace train
export YOKE_BACKEND=cpu

# refused STATUS WORD ARGUMENT ..: one line on stderr that contains the word, and that exit status
refused()
{
	status=$1 word=$2
	shift 2
	"$yoke" "$@" >out 2>err
	got=$?
	lines=$(wc -l <err)
	[ "$got" -eq "$status" ] && grep -q "^yoke.*$word" err &&
		{ [ "$lines" -eq 1 ] || [ "$status" -eq 2 ] && [ "$lines" -le 2 ]; }
	verdict "exit $status, '$word': $(head -n 1 err)" $?
}

# field NAME FILE: prints its values, one per line
field()
{
	sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p" "$2"
}

# same KEY A B: are the values equal as text?
same()
{
	[ "$(field "$1" "$2")" = "$(field "$1" "$3")" ] && [ -n "$(field "$1" "$2")" ]
}

easy_text 120 >text
small="layers=1 heads=2 embed=32 context=32 batch=8 lr=1e-2 warmup=5 log_every=1"

# ---- a run ----

"$yoke" train data=text out=a steps=40 eval_every=20 save_every=15 $small 2>err
verdict "train" $?
[ -f a/manifest.json ] && [ "$(ls a | wc -l)" -eq 7 ] && grep -q '"how": "done"' a/run.json &&
	grep -q '"event":"saved"' a/events.jsonl
verdict "the directory has one checkpoint and the records of the run: $(ls a | tr '\n' ' ')" $?
for key in loss lr grad_norm tokens_per_s peak_bytes data_wait_s; do
	[ "$(field "$key" a/metrics.jsonl | wc -l)" -eq 40 ]
	verdict "metrics.jsonl has $key of each step" $?
done
[ "$(grep -c '"stage":"train","time":[0-9]*\.[0-9]*}$' a/metrics.jsonl)" -eq 40 ]
verdict "the resumed run reports its time" $?
[ "$(field val_loss a/metrics.jsonl | wc -l)" -eq 2 ]
verdict "metrics.jsonl has val_loss twice" $?
field loss a/metrics.jsonl | awk 'NR == 1 { a = $1 } { b = $1 } END { exit !(b < 0.7 * a) }'
verdict "the loss falls: $(field loss a/metrics.jsonl | sed -n '1p;$p' | tr '\n' ' ')" $?
grep -q '^before training: memory .* MiB' err && grep -q '^epoch 1, .*resident' err
verdict "memory: $(grep '^epoch 1' err)" $?
[ "$(field epoch a/metrics.jsonl | head -n 1)" = 0 ] && [ "$(field rss a/metrics.jsonl | wc -l)" -ge 2 ] &&
	field rss a/metrics.jsonl | awk '$1 < 1e6 { exit 1 }'
verdict "metrics.jsonl has memory, before training and at epochs" $?
# contractions .. idle add up to the wall time
awk '/^where the time went/ { on = 1; next } on && / s +[0-9.-]+ %/ {
	for (i = 1; i <= NF; i++) if ($i == "s") { t = $(i - 1); p = $(i + 1); break }
	if ($1 == "wall") { wall = t; on = 0 } else { sum += t; percent += p; n++ } }
	END { d = sum - wall; e = percent - 100
	      exit !(n >= 5 && d < .006 && d > -.006 && e < .6 && e > -.6) }' err
verdict "the report adds up: $(grep '^  wall' err)" $?
grep -q '^[0-9]* parameters; .* windows for training, 14 for validation$' err
verdict "what is trained on: $(grep parameters err)" $?
grep -q "Amdahl" err && grep -q '"report":{"wall":' a/metrics.jsonl
verdict "and is in metrics.jsonl" $?
head -n 1 err | grep -q "^on cpu:0: ..*"
verdict "the first line names the device: $(head -n 1 err)" $?
tail -n 2 err | head -n 1 | grep -qx 'model in a: step 40/40, loss [0-9.]*, val_loss [0-9.]*, perplexity [0-9.]*' &&
	[ "$(tail -n 1 err)" = 'next: yoke generate a, yoke eval a' ]
verdict "the last lines name the model and the next command: $(tail -n 2 err | tr '\n' ';')" $?
sed -n 's/.*"val_loss":\([0-9.]*\),"perplexity":\([0-9.]*\).*/\1 \2/p' a/metrics.jsonl |
	awk '{ d = $2 / exp($1) - 1; if (d > 1e-6 || d < -1e-6) exit 1; n++ } END { exit n != 2 }'
verdict "perplexity is beside val_loss" $?
sed -n '/^where the time/,/^model in/p' err | awk 'length($0) > 80 { print; bad = 1 } END { exit bad || !NR }' >wide
verdict "the report has 80 columns: $(cat wide)" $?
[ "$(wc -l <err)" -ge 40 ] && ! grep -q "$(printf '\r')" err
verdict "lines and no bar where there is no terminal" $?

# ---- the same run in two parts, with dropout and micro-batches ----

more="dropout=0.1 accumulate=2 eval_every=0 valid=0"
"$yoke" train data=text out=whole steps=12 $small $more 2>err
verdict "an unbroken run" $?
[ "$(tail -n 1 err)" = 'next: yoke generate whole, yoke eval whole data=FILE' ]
verdict "valid=0: eval needs a text: $(tail -n 1 err)" $?
"$yoke" train data=text out=again steps=12 save_every=5 $small $more 2>err
same loss whole/metrics.jsonl again/metrics.jsonl
verdict "the same keys give the same losses" $?
# A constant schedule does not depend on the number of steps, so this run may stop before its end.
"$yoke" train data=text out=c12 steps=12 schedule=constant $small $more 2>err &&
	"$yoke" train data=text out=c5 steps=5 schedule=constant $small $more 2>err &&
	"$yoke" train out=c5 steps=12 resume=1 2>err
verdict "resume reads its keys from the checkpoint" $?
same loss c12/metrics.jsonl c5/metrics.jsonl && same grad_norm c12/metrics.jsonl c5/metrics.jsonl
verdict "resumed losses and norms are the same to the last digit" $?
"$yoke" train out=c5 resume=1 2>err
verdict "resuming a finished run does nothing" $?
grep -q '^c5 is finished: it has 12 of 12 steps; .*steps=24$' err
verdict "and says so: $(tail -n 1 err)" $?
"$yoke" train out=c5 resume=1 steps=6 2>err && grep -q 'it has 12 of 6 steps; .*steps=24$' err
verdict "fewer steps than there are: $(tail -n 1 err)" $?
cp -r a r && "$yoke" train out=r resume=1 steps=80 2>err &&
	grep -q 'warn: train: r: .*learning rate from 0.001 to 0.00[0-9]*: steps=80; .*lr=0.001 schedule=constant$' err
verdict "a learning rate that rises: $(grep 'learning rate from' err)" $?
"$yoke" train out=r resume=1 steps=82 lr=0.001 schedule=constant 2>err && ! grep -q 'learning rate from' err
verdict "and one that does not" $?
"$yoke" train out=r resume=1 steps=84 lr=0.1 schedule=constant 2>err &&
	grep -q 'from 0.001 to 0.1: lr=0.1; .*give lr=0.001 schedule=constant$' err
verdict "by lr alone: $(grep 'learning rate from' err)" $?
cp -r a r2 && "$yoke" train out=r2 resume=1 steps=42 warmup=100 2>err && # 41 / 100 of lr
	grep -q 'from 0.001 to 0.0041: steps=42 warmup=100; .*give lr=0.001 schedule=constant warmup=0$' err
verdict "within the warm-up: $(grep 'learning rate from' err)" $?
rm -r r2 && cp -r a r2 && "$yoke" train out=r2 resume=1 steps=42 lr=0.001 schedule=constant warmup=0 2>err &&
	! grep -q 'learning rate from' err
verdict "the recommended learning rate does not increase" $?

! grep -q val_loss whole/metrics.jsonl && [ -s whole/metrics.jsonl ]
verdict "valid=0: no validation" $?
"$yoke" train data=text out=q steps=20 progress=0 $small 2>err && ! grep -q '^step [0-9]*/20  loss' err &&
	grep -q '^step 20/20  val_loss' err
verdict "progress=0: no line of a step" $?

for keys in 'steps=9 ' 'steps=10 report' 'steps=9 report=1 report' 'steps=10 report=0 '; do
	# shellcheck disable=SC2086 # words
	"$yoke" train data=text out="it's $keys" $small ${keys% *} 2>err && failed=0 || failed=1
	grep -q '^where the time went' err && got=report || got=
	[ $failed -eq 0 ] && [ "$got" = "${keys##* }" ] && grep -q '"report":' "it's $keys/metrics.jsonl"
	verdict "${keys% *}: ${got:-no report} is shown, metrics.jsonl has it" $?
done
[ "$(tail -n 1 err)" = "next: yoke generate 'it'\\''s $keys', yoke eval 'it'\\''s $keys'" ]
verdict "a name that a shell would cut is quoted: $(tail -n 1 err)" $?
"$yoke" train data=text out=unsaved steps=6 save_every=2 checkpoints=0 $small 2>err &&
	[ "$(ls unsaved | tr '\n' ' ')" = 'events.jsonl metrics.jsonl run.json telemetry.jsonl ' ] && tail -n 1 err | grep -q 'no model .*(checkpoints=0)'
verdict "checkpoints=0: $(tail -n 1 err)" $?
"$yoke" train data=text out=passes steps=40 eval_every=1ep save_every=0.5ep $small 2>err &&
	[ "$(grep '"val_loss"' passes/metrics.jsonl | sed 's/.*"step":\([0-9]*\).*/\1/' | tr '\n' ' ')" = '16 32 40 ' ] &&
	[ "$(grep '"saved"' passes/events.jsonl | sed 's/.*"step":\([0-9]*\).*/\1/' | tr '\n' ' ')" = '8 16 24 32 40 ' ]
verdict "a validation each pass of 16.4 steps, two saves" $?
mkdir -p stuck/metrics.jsonl
"$yoke" train data=text out=stuck steps=6 $small 2>err && [ "$(grep -c 'metrics.jsonl' err)" -eq 1 ] &&
	[ -f stuck/manifest.json ]
verdict "metrics that cannot be written are one warning: $(grep metrics.jsonl err)" $?

mkdir -p novels/old && cp text novels
for data in . old/.. ./; do
	(cd novels && rm -rf m-* && "$yoke" train data=$data out='m-{data}' steps=0 $small) 2>err &&
		[ -d novels/m-novels ]
	verdict "{data} of data=$data is the folder's name: $(tail -n 2 err | head -n 1)" $?
done
refused 1 'data=/ .*{data}' train data=/ out='{data}'

cat >config.env <<'KEYS'
DATA=text # a comment
LAYERS=1
HEADS=2
EMBED=32
CONTEXT=32
BATCH=8
LR=1e-2
WARMUP=5
LOG_EVERY=1
OUT=${TEST_OUT}
STEPS=99
KEYS
TEST_OUT=file "$yoke" train config.env steps=3 2>err
verdict "a config.env, an argument wins" $?
[ "$(field loss file/metrics.jsonl)" = "$(field loss a/metrics.jsonl | head -n 3)" ]
verdict "3 steps with the losses that arguments gave" $?

# ---- generate, eval ----

"$yoke" generate a prompt="line 3" tokens=20 temperature=0 >one 2>err
verdict "generate: $(head -n 1 one)" $?
"$yoke" generate a prompt="line 3" tokens=20 temperature=0 >two 2>err
cmp -s one two && [ "$(wc -c <one)" -eq 27 ] && [ "$(head -c 6 one)" = "line 3" ]
verdict "generate writes the prompt, 20 bytes and a newline, and repeats exactly" $?
"$yoke" generate a tokens=50 seed=1 >one 2>err
"$yoke" generate a tokens=50 seed=2 >two 2>err
! cmp -s one two
verdict "another seed gives another text" $?
"$yoke" eval a data=text >out 2>err &&
	awk '$1 == "loss" { l = $2 } $1 == "perplexity" { p = $2 } $1 == "bits_per_byte" { b = $2 }
	     END { d = p / exp(l); e = b * log(2) / l
		   exit !(l > 0 && d > .9999 && d < 1.0001 && e > .9999 && e < 1.0001) }' out
verdict "eval: $(tr -s '\n ' ' ' <out)" $?

"$yoke" train data=text out=v steps=20 eval_tokens=0 valid=0.2 $small 2>err && "$yoke" eval v >out 2>err
awk 'FNR == NR { if (match($0, /"val_loss":[0-9.]*/)) want = substr($0, RSTART + 11, RLENGTH - 11); next }
	$1 == "loss" { d = $2 - want; exit !(d < 2e-6 && d > -2e-6) }' v/metrics.jsonl out
verdict "eval without data is the last val_loss: $(tr -s '\n ' ' ' <out)" $?
"$yoke" eval v data=text >all 2>err && ! cmp -s all out
verdict "eval with it is not" $?
refused 1 "whole: was trained with valid=0" eval whole
"$yoke" eval v data=- <text >out 2>err && cmp -s all out
verdict "data from a pipe gives the same" $?
"$yoke" train data=- out=piped steps=3 $small <text 2>piped.err &&
	[ "$(tail -n 1 piped.err)" = 'next: yoke generate piped, yoke eval piped data=FILE' ] &&
	"$yoke" train data=text out=named steps=3 $small 2>err
[ "$(tail -n 1 err)" = 'next: yoke generate named, yoke eval named' ] && same loss piped/metrics.jsonl named/metrics.jsonl
verdict "and in training" $?
grep -q ' 14 for validation, 3 of them per validation$' err # 0.05 of the run; a training step costs three times a forward pass
verdict "of a short run: $(grep parameters err)" $?
refused 1 'standard input is empty' train data=- out=no $small </dev/null
printf 'line 3' | "$yoke" generate v prompt=- tokens=20 temperature=0 >one 2>err &&
	"$yoke" generate v prompt="line 3" tokens=20 temperature=0 >two && cmp -s one two
verdict "a prompt from a pipe: $(cat one)" $?
"$yoke" generate v prompt= tokens=20 temperature=0 >one 2>err && "$yoke" generate v tokens=20 temperature=0 >two &&
	[ "$(wc -c <one)" -eq 21 ] && { echo; cat one; } | cmp -s - two
verdict "an empty prompt continues as after a newline" $?

# ---- the other model ----

mlp="model=mlp layers=2 embed=16 history=6 context=32 batch=8 lr=1e-2 warmup=5 log_every=1 schedule=constant"
"$yoke" train data=text out='m-{layers}-{history}' steps=30 dropout=0.1 $mlp 2>err &&
	"$yoke" train data=text out=m20 steps=20 dropout=0.1 $mlp 2>err &&
	"$yoke" train out=m20 steps=30 resume=1 2>err && same loss m-2-6/metrics.jsonl m20/metrics.jsonl
verdict "model=mlp: resumed losses are the same to the last digit" $?
field loss m20/metrics.jsonl | awk 'NR == 1 { a = $1 } { b = $1 } END { exit !(NR == 30 && b < 0.6 * a) }'
verdict "the loss falls: $(field loss m20/metrics.jsonl | sed -n '1p;$p' | tr '\n' ' ')" $?
"$yoke" generate m20 prompt="line 3" tokens=60 temperature=0 >one 2>err &&
	[ "$(wc -c <one)" -eq 67 ] && "$yoke" generate m-2-6 prompt="line 3" tokens=60 temperature=0 | cmp -s - one
verdict "generate, past the window: $(head -n 1 one)" $?
"$yoke" eval m20 data=text >out 2>err && "$yoke" eval m20 data=text batch=3 >all 2>err &&
	awk '$1 == "loss" { l[NR == FNR] = $2 } END { d = l[0] - l[1]; exit !(l[0] > 0 && d < 2e-6 && d > -2e-6) }' out all
verdict "eval: $(tr -s '\n ' ' ' <out)" $?
"$yoke" info models . >out 2>err && grep -q '^./m20 *[0-9]\|^m20 *[0-9]' out && "$yoke" info models --json m20 >out &&
	grep -q '"kind": "mlp"' out && grep -q '"history": 6' out && ! grep -q heads out
verdict "models: $(tr -d '\n' <out | tr -s ' ')" $?
refused 1 "m20: .* model=mlp layers=2 embed=16 history=6 context=32; " train out=m20 resume=1 model=gpt
refused 1 "'heads=2': model=mlp has no heads" train data=text out=no $mlp heads=2

# ---- the log of runs, profiles ----

for n in $(awk -F'\t' '{ print NF }' training_log.tsv | sort -u); do
	[ "$n" -eq 17 ]
	verdict "training_log.tsv has 17 columns" $?
done
[ "$(grep -c '^start	' training_log.tsv)" -eq 1 ] && head -n 1 training_log.tsv | grep -q '^start	'
verdict "and one header" $?
row=$(sed -n 2p training_log.tsv)
echo "$row" | awk -F'\t' -v model="$PWD/a" '{
	exit !($1 ~ /^20[0-9-]*T[0-9:]*Z$/ && $2 > 0 && $3 == "done" && $4 == "cpu:0" && $5 == "text" &&
	$6 == "byte" && $7 > 1000 && $8 == 40 && $9 == 40 && $10 > 1 && $11 > 0 && $12 > 0 &&
	$13 > 0 && $14 > 0 && $15 > 0 && $16 == model && $17 == "-") }'
verdict "a row: $row" $?
odd=$(printf 'a\tb\\c\nd')
cp text "$odd"
"$yoke" train data="$odd" out="$odd.model" training_log=odd.tsv steps=1 $small 2>err
[ "$(wc -l <odd.tsv)" -eq 2 ] && grep -qF 'a\tb\\c\nd.model	-' odd.tsv
verdict "tabs, newlines and backslashes in paths: $(sed -n 2p odd.tsv | cut -f 5,16)" $?
"$yoke" train data=text out=b2 training_log=/nowhere/log steps=1 $small 2>err
verdict "a log that cannot be written does not stop a run" $?
grep -q "/nowhere/log.*no row" err
verdict "but is said: $(grep nowhere err)" $?
i=0
while [ $i -lt 6 ]; do
	"$yoke" train data=text out=many/$i steps=1 eval_every=0 valid=0 $small 2>/dev/null &
	i=$((i + 1))
done
wait
[ "$(wc -l <many/training_log.tsv)" -eq 7 ] && [ "$(grep -c '^start' many/training_log.tsv)" -eq 1 ] &&
	[ "$(awk -F'\t' '{ print NF }' many/training_log.tsv | sort -u)" = 17 ]
verdict "6 runs at once: 6 rows and one header" $?
"$yoke" train data=text layers=1 heads=2 embed=32 context=32 batch=8 log_every=1 out=many/bad steps=200 \
	optimizer=sgd lr=1000 weight_decay=1000 clip=0 warmup=0 schedule=constant 2>err
verdict "a run that diverges fails" $((! $?))
tail -n 1 many/training_log.tsv | awk -F'\t' '{ exit !($3 == "failed" && $17 ~ /smaller lr/) }'
verdict "its row: $(tail -n 1 many/training_log.tsv | cut -f 3,8,17)" $?
"$yoke" train data=text out=p profile=1 steps=3 $small 2>err
verdict "profile=1" $?
grep -q 'matmul cpu:0 ' err && grep -q '"nodes":"step/layer0/' p/trace.json
verdict "the longest steps, and trace.json" $?

"$yoke" train data=text out=plotted plot=1 schedule=linear steps=30 optimizer=lamb $small 2>err
# 12 rows from the peak to 0; the first row has only the peak, the last one only the first steps
[ "$(grep -c '^ *[0-9.e-]* |' err)" -eq 12 ] && grep -q '^ *0.01 | *\*\**$' err &&
	grep -q '^ *step  1  *30$' err && grep -q '^learning rate: linear, 30 steps$' err
verdict "plot=1 draws the schedule" $?

# ---- another text ----

sed 's/easy/hard/' text >text2
"$yoke" train data=text2 out=c5 steps=16 resume=1 2>err
verdict "a run resumes with another text" $?
[ "$(grep -c 'another text' err)" -eq 1 ]
verdict "and says so: $(grep 'another text' err)" $?
"$yoke" train out=c5 steps=17 resume=1 2>err && ! grep -q 'another text' err
verdict "the new text is then the run's" $?

# ---- memory ----

# fits MEMORY KEY=VALUE ..: the recommended batch fits, and the next larger one does not
fits()
{
	limit=$1
	shift
	YOKE_MEMORY=$limit "$yoke" train data=text out=full "$@" batch=300 2>err
	status=$?
	n=$(sed -n 's/^yoke train: .*; batch=\([0-9]*\) is the largest that fits$/\1/p' err)
	[ $status -eq 1 ] && [ -n "$n" ] && ! [ -f full/manifest.json ]
	verdict "YOKE_MEMORY=$limit: $(tail -n 1 err)" $?
	YOKE_MEMORY=$limit "$yoke" train data=text out=full "$@" batch="$n" 2>err
	verdict "batch=$n fits" $?
	rm -rf full
	YOKE_MEMORY=$limit "$yoke" train data=text out=full "$@" batch="$((n + 1))" 2>err
	[ $? -eq 1 ] && ! [ -f full/manifest.json ]
	verdict "batch=$((n + 1)) does not" $?
	rm -rf full
}
shape="layers=2 heads=2 embed=32 context=32"
# shellcheck disable=SC2086 # words
{
	fits 3M $shape steps=12
	fits 20M $shape steps=6 eval_every=2
	fits 7M $shape steps=3 accumulate=2 dropout=0.1
	fits 3M $shape steps=3 recompute=auto
	YOKE_MEMORY=300K "$yoke" train data=text out=full $shape 2>err
}
grep -q 'not even batch=1 fits: use recompute=auto, a smaller context or embed, or fewer layers$' err && ! grep -q 'batch, context' err
verdict "where nothing fits: $(tail -n 1 err)" $?

"$yoke" train data=text out=full $shape steps=1 batch=1 2>err
YOKE_MEMORY=2500K "$yoke" eval full data=text batch=400 2>err
n=$(sed -n 's/^yoke eval: .*; batch=\([0-9]*\) is the largest that fits$/\1/p' err)
[ -n "$n" ] && YOKE_MEMORY=2500K "$yoke" eval full data=text batch="$n" >out 2>err &&
	! YOKE_MEMORY=2500K "$yoke" eval full data=text batch="$((n + 1))" >out 2>err
verdict "eval: $(tail -n 1 err)" $?

# ---- a plan, and a batch that is chosen ----

# planned KEY=VALUE ..: prints the bytes of a line of `yoke plan`
planned()
{
	line=$1
	shift
	"$yoke" plan "$@" 2>err | sed -n "s/^$line  *\([0-9]*\) .*/\1/p"
}
rm -rf full
"$yoke" train data=text out=full $shape steps=4 eval_every=2 batch=5 2>err
peak=$(sed -n 's/.*"step":4,.*"peak_bytes":\([0-9]*\).*/\1/p' full/metrics.jsonl)
got=$(planned 'peak of the run' data=text $shape batch=5)
[ -n "$peak" ] && [ "$got" = "$peak" ] && [ "$(planned 'peak of the run' $shape batch=5)" = "$peak" ]
verdict "yoke plan: a peak of $got bytes, $peak in the run" $?
"$yoke" plan $shape batch=300 memory=3M >out 2>err && grep -qx 'it does not fit' out &&
	grep -q '^batch=[0-9]* is the largest that fits$' out && grep -q '^batch=3 accumulate=100 .* yes$' out &&
	grep -q '^optimizer=sgd .* no$' out
verdict "yoke plan: $(grep largest out)" $?
enough=$(sed -n 's/^memory=\([0-9]*M\), .*, would be enough for batch=300$/\1/p' out)
[ -n "$enough" ] && "$yoke" plan $shape batch=300 memory="$enough" >out 2>err && grep -qx 'it fits' out &&
	! "$yoke" plan $shape batch=300 memory="$(((${enough%M} * 3 + 3) / 4))M" 2>err | grep -qx 'it fits'
verdict "yoke plan: memory=$enough would suffice, and three quarters of it would not" $?
"$yoke" plan data=text layers=2 heads=2 embed=128 context=64 batch=8 memory=1M >out 2>err
grep -qx 'not even batch=1 fits' out && ! grep -q 'batch=0' out &&
	grep -q '^memory=[0-9]*M, .*, would be enough for batch=8$' out && grep -q '^memory=[0-9]*M, .*, would be enough for batch=1$' out
verdict "yoke plan: nothing fits: $(grep 'fits\|enough' out | tr '\n' ';')" $?
"$yoke" plan heads=3 2>err
[ $? -eq 1 ] && grep -q '^yoke plan: heads=3 does not divide' err
verdict "yoke plan: $(cat err)" $?
rm -rf full
"$yoke" train data=text out=full $shape steps=2 batch=auto memory=20M 2>err
n=$(sed -n 's/^batch=\([0-9]*\): the fastest of [0-9]* measured .*/\1/p' err)
[ -n "$n" ] && [ "$n" -le "$(sed -n 's/^batch=.*; up to \([0-9]*\) .*/\1/p' err)" ] && grep -q "\"batch\": *\"$n\"" full/manifest.json
verdict "$(grep '^batch=' err)" $?
"$yoke" train data=text out=number $shape steps=2 batch="$n" memory=20M 2>err && cat full/*.safetensors >weights &&
	cat number/*.safetensors | cmp - weights
verdict "it has the bits of a run with batch=$n" $?
"$yoke" train data=text out=full $shape steps=3 batch=auto resume=1 2>err && ! grep -q ': the fastest of' err &&
	grep -q "\"batch\": *\"$n\"" full/manifest.json
verdict "resumed with batch=auto: still $n, and nothing is timed" $?
"$yoke" eval full data=text batch=auto >out 2>err
verdict "eval with batch=auto: $(grep loss out)" $?
YOKE_MEMORY=300K "$yoke" train data=text out=none $shape batch=auto 2>err
[ $? -eq 1 ] && grep -q 'batch=auto: not even batch=1 fits' err && ! [ -e none ]
verdict "$(tail -n 1 err)" $?

# ---- several prompts ----

printf 'line 3\nlin\n\nline 12 is a rather' >lines
"$yoke" generate full prompts=lines tokens=40 seed=4 by_row=1 >out 2>err
verdict "four prompts, each under its number" $?
while read -r number text; do
	"$yoke" generate full prompt="$text" tokens=40 seed=4 by_row=1 >alone 2>err
	sed -n "/^==> $number <==\$/,/^==> $((number + 1)) <==\$/p" out | sed '1d; $d' >mine # its last line is blank
	[ "$number" -lt 4 ] || sed "1,/^==> $number <==\$/d" out >mine
	[ "$number" -eq 4 ] || echo >>alone
	cmp alone mine
	verdict "the text of '$text' is that which it has alone" $?
done <<-END
	1 line 3
	2 lin
	3
	4 line 12 is a rather
END
"$yoke" generate full prompts=- tokens=40 seed=4 by_row=1 batch=1 <lines 2>err | cmp - out
verdict "from standard input, one at a time" $?
{ printf '\357\273\277' && sed '$!s/$/\r/' lines; } >windows
"$yoke" generate full prompts=windows tokens=40 seed=4 by_row=1 2>err | cmp - out
verdict "with a mark of UTF-8 and the line ends of Windows" $?
printf 'l\0i\0n\0e\0 \0003\0\n\0' >wide
refused 1 'UTF-16' generate full prompts=wide
: >nothing
refused 1 'prompts=nothing: .*empty' generate full prompts=nothing
refused 1 'No such file' generate full prompts=missing
refused 1 'prompt and prompts are both given' generate full prompts=lines prompt=x

# ---- words ----

{ cat text; for i in 1 2 3 4 5 6 7 8; do echo "lines of words never seen before"; done; } >words
"$yoke" train data=words tokenizer=word out=w steps=20 save_every=7 $small 2>err
verdict "train on words" $?
grep -q '"easy",' w/manifest.json && ! grep -q '"never",' w/manifest.json
verdict "the vocabulary is that of the training split" $?
"$yoke" generate w prompt="line 3" tokens=6 temperature=0 >out 2>err
verdict "generate words: $(cat out)" $?
[ ! -s err ] && [ "$(wc -w <out)" -eq 8 ] && grep -q '^line 3 [a-z]' out
verdict "6 words follow the prompt" $?
"$yoke" generate w tokens=3 >out 2>err && [ ! -s err ] && [ "$(wc -w <out)" -eq 3 ]
verdict "and without a prompt" $?
"$yoke" generate w prompt=" " tokens=3 >out 2>err && [ ! -s err ] && [ "$(wc -w <out)" -eq 3 ]
verdict "and with one without words" $?
"$yoke" generate w prompt="line blorgh" tokens=1 >out 2>err && grep -q "1 of 2 words" err
verdict "a word of the prompt that is not known: $(cat err)" $?
"$yoke" eval w data=words >out 2>err && grep -q '^unknown  *[1-9]' out && ! grep -q bits out
verdict "eval of words: $(tr -s '\n ' ' ' <out)" $?
"$yoke" eval w data=text >out 2>err && grep -q '^unknown  *0$' out && grep -q bits out
verdict "bits per byte if all words are known: $(tr -s '\n ' ' ' <out)" $?
"$yoke" train data=words tokenizer=word out=w2 steps=9 schedule=constant $small 2>err &&
	"$yoke" train data=words tokenizer=word out=w3 steps=4 schedule=constant $small 2>err &&
	"$yoke" train out=w3 steps=9 resume=1 2>err
same loss w2/metrics.jsonl w3/metrics.jsonl
verdict "a resumed run of words gives the same losses" $?

# ---- token files ----

for kind in byte word; do
	"$yoke" data prepare words out=$kind.safetensors tokenizer=$kind context=32 valid=0.2 >out 2>err
	verdict "prepare $kind: $(head -n 1 out)" $?
	"$yoke" train data=words tokenizer=$kind valid=0.2 out=t-$kind steps=6 schedule=constant $small 2>err &&
		"$yoke" train data=$kind.safetensors out=f-$kind steps=3 schedule=constant $small 2>err &&
		"$yoke" train data=$kind.safetensors out=g-$kind steps=6 schedule=constant workers=2 prefetch=5 $small 2>err &&
		same loss t-$kind/metrics.jsonl g-$kind/metrics.jsonl &&
		cmp -s t-$kind/model.1.safetensors g-$kind/model.1.safetensors
	verdict "training on it has the losses of the text" $?
	"$yoke" train out=f-$kind steps=6 resume=1 data=words workers=0 2>err && ! grep -q 'another text' err &&
		same loss t-$kind/metrics.jsonl f-$kind/metrics.jsonl
	verdict "a run may go on with the text" $?
	"$yoke" eval t-$kind >out && "$yoke" eval g-$kind >all && [ "$(tail -n +2 out)" = "$(tail -n +2 all)" ] &&
		"$yoke" eval g-$kind data=words >out && "$yoke" eval g-$kind data=$kind.safetensors >all && cmp -s out all
	verdict "eval of either is the same" $?
done
"$yoke" train out=g-byte steps=8 resume=1 data=text valid=0.2 2>err && grep -q 'another text.*text is there instead of byte.safetensors' err
verdict "resuming with other data names the differences: $(grep another err)" $?
refused 1 'tokens of tokenizer=byte, not word' train data=byte.safetensors tokenizer=word out=no $small
refused 1 'another tokenizer' train data=word.safetensors out=g-byte steps=9 resume=1
refused 1 'split at valid=0.2' train data=byte.safetensors valid=0.5 out=no $small
refused 1 'give vocab=' train data=text tokenizer=ids out=no $small
truncate -s 10G large.bin 2>/dev/null && (ulimit -v 4000000
	"$yoke" train data=large.bin format=u16:1024 vocab=300 steps=2 eval_tokens=64 out=large $small 2>err) && rm large.bin
[ -s large/manifest.json ]
verdict "a foreign token file larger than memory: $(grep tokens err | head -n 1)" $?
"$yoke" generate large prompt="7 12" tokens=5 temperature=0 >out 2>err && [ "$(wc -w <out)" -eq 7 ]
verdict "its generated text is numbers: $(cat out)" $?

# ---- bad input ----

refused 2 laters train data=text laters=2
refused 2 layers train data=text laters=2
refused 2 "'batch=3' .*'batch=2'" train data=text batch=2 batch=3
printf 'LR=1\n\nbatch=2 # two\nBATCH=3\n' >twice.env
"$yoke" train twice.env steps=0 data=text out=twice 2>err &&
	grep -q "warn: train: twice.env:4: BATCH is .*line 3; " err
verdict "a key twice in a file: $(grep twice.env err)" $?
printf 'TOKENS=1\nTOKENS=2\n' >twice.env
"$yoke" generate a twice.env >out 2>err && grep -q "warn: generate: twice.env:2: TOKENS is .*line 1" err
verdict "and of another command: $(grep twice.env err)" $?
refused 2 "prompt='line 3'" generate a "line 3"
refused 1 "did you mean 'cpu'?.*; \`yoke doctor\` .* why a device is missing" train data=text out=no \
	backend=CPU $small
YOKE_BACKEND=cpu YOKE_THREDS=1 YOKE_PLAN_MXA=4 YOKE_NOCHIP_MODE=1 YOKE_TEST_X=1 YOKE_ODD=1 \
	"$yoke" eval a data=text >out 2>err
[ "$(sort err | sed 's/.*param: //' | tr '\n' ';')" = "YOKE_ODD is set, but there is no such setting; \`yoke \
info --env\` lists them;YOKE_PLAN_MXA is set, but there is no such setting; did you mean YOKE_PLAN_MAX?;\
YOKE_THREDS is set, but there is no such setting; did you mean YOKE_THREADS?;" ]
verdict "variables that nobody reads: $(tr '\n' ';' <err)" $?
YOKE_THREDS=1 YOKE_FOO=1 "$yoke" info --env >out 2>err
[ "$(sort err | sed 's/.*param: //' | tr '\n' ';')" = "YOKE_FOO is set, but there is no such setting; \`yoke \
info --env\` lists them;YOKE_THREDS is set, but there is no such setting; did you mean YOKE_THREADS?;" ]
verdict "yoke info --env lists it, too: $(tr '\n' ';' <err)" $?
refused 2 embed train data=text embed=many
refused 2 "" generate
refused 1 heads train data=text out=no heads=3 embed=32
refused 1 data train out=no
refused 1 missing.txt train data=missing.txt out=no
: >empty
refused 1 empty train data=empty out=no
printf 'short' >short
refused 1 short train data=short out=no context=128
refused 1 "a:" train data=text out=a $small
refused 1 resume train data=text out=no resume=1
: >plain
refused 1 plain train data=text out=plain/sub steps=1 $small
refused 1 nonsense train data=text out=no backend=nonsense $small
refused 1 missing generate missing
refused 1 missing eval missing data=text
refused 1 "a" train out=a resume=1 embed=64
refused 1 "tokenizer=byte" train out=a resume=1 steps=50 tokenizer=word
refused 1 "seed=1" train out=a resume=1 steps=50 seed=2
[ ! -e no ]
verdict "what is refused leaves no folder" $?
cp -r a cut
for f in cut/model.*; do head -c 100 "$f" >tmp && mv tmp "$f"; done
refused 1 cut generate cut
cp -r a altered
for f in altered/model.*; do
	size=$(wc -c <"$f")
	printf 'x' | dd of="$f" bs=1 seek=$((size - 10)) conv=notrunc 2>/dev/null
done
refused 1 altered generate altered
"$yoke" generate a tokens=1 >out 2>err
verdict "and what was there is untouched" $?

cd .. && rm -rf train.work
echo "1..$count"
