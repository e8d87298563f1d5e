#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests valid=FILE, keep_best= and stop_after= of yoke train: windows and losses are those of a split at the same token; the
# kept checkpoint has the weights of a run that ends there; a run ends after the validation at which a program that reads all
# losses says so, on one rank and on two, resumed or not.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/trainings.sh"
. "${srcdir:-.}/tests/tap.sh"
workspace train_best
export YOKE_BACKEND=cpu YOKE_THREADS=1
unset YOKE_CPU_DEVICES
keys="layers=1 heads=2 embed=32 context=16 batch=8 lr=0.03 warmup=2 schedule=constant eval_tokens=0 log_every=50 report=0"

# bytes FILE WORD ..: an array of u16 of each byte of a text
shorts()
{
	od -An -v -tu1 -w1 "$1" | awk '{ printf "%c%c", $1, 0 }' >"$2"
}

# weights DIR: checksum of the arrays
weights()
{
	[ -d "$1" ] && cat "$1"/model.*.safetensors | cksum
}

# field KEY DIR: its values in metrics.jsonl
field()
{
	sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p" "$2/metrics.jsonl"
}

# equal A B: prints them if they differ
equal()
{
	[ -n "$1" ] && [ "$1" = "$2" ] || echo "'$1' and '$2'"
}

# refused STATUS WORD ARGUMENT ..: exit status, and one line with the word
refused()
{
	status=$1 word=$2
	shift 2
	"$yoke" "$@" >out 2>err
	got=$?
	verdict "exit $status, '$word': $(head -n 1 err)" "$([ $got -eq "$status" ] && [ "$(grep -c "^yoke.*$word" err)" -eq 1 ] &&
		[ "$(wc -l <err)" -le 2 ] || echo "exit $got"; cat out)"
}

# ---- valid=FILE ----

easy_text 60 >all # 43 or so bytes a line
n=$(wc -c <all)
train=$((n - n / 4))
head -c $train all >train
tail -c +$((train + 1)) all >held
split="data=all valid=$(awk "BEGIN { printf \"%.17g\", $((n - train)) / $n + 1e-9 }")"
verdict "a run with a split" "$(run split $split steps=20 eval_every=10)"
verdict "a run with valid=FILE" "$(run apart data=train valid=held steps=20 eval_every=10)"
verdict "the weights are those of the split at the same token" "$(equal "$(weights split)" "$(weights apart)")"
verdict "the losses, too: $(field val_loss apart | tr '\n' ' ')" "$(equal "$(field val_loss split)" "$(field val_loss apart)")"
verdict "eval without data reads the file" "$("$yoke" eval apart >out 2>err || cat err
	"$yoke" eval apart data=held >out2 2>&1; equal "$(sed 1d out)" "$(cat out2)")"
verdict "and with the validation file gone, another one" "$(mv held held2; "$yoke" eval apart data=held2 >out3 2>&1
	mv held2 held; equal "$(cat out2)" "$(cat out3)")"
shorts train train.bin
shorts held val.bin
verdict "files of u16" "$(run ids data=train.bin valid=val.bin format=u16 vocab=256 steps=20 eval_every=10)"
verdict "their losses are those of the text" "$(equal "$(field val_loss apart)" "$(field val_loss ids)")"
verdict "what the end of the run suggests works for ids" "$(sed -n 's/.*next: yoke \(generate [^,]*\),.*/\1/p' ids.out ids.err |
	{ read -r line && "$yoke" $line tokens=2 2>&1 >out3 || echo "no such line, or it fails"; })"
"$yoke" data prepare all valid=0.3 context=16 out=all.tokens >out 2>&1
"$yoke" data prepare train valid=0 context=16 out=train.tokens >>out 2>&1
"$yoke" data prepare held valid=0.3 context=16 out=held.tokens >>out 2>&1
verdict "a prepared set, all of which is for validation" "$(cat out | grep 'yoke data:'
	run prepared data=train.tokens valid=held.tokens steps=20 eval_every=10
	equal "$(field val_loss apart)" "$(field val_loss prepared)")"
verdict "a prepared set with a split of its own is for training, all of it" "$(
	run whole data=all.tokens valid=held steps=3 eval_every=10
	run plain data=all valid=held steps=3 eval_every=10
	equal "$(weights whole)" "$(weights plain)")"
verdict "a name without a dot or a slash" "$(run named data=train valid=held steps=20 eval_every=10
	mv held moved; "$yoke" train out=named resume=1 valid=moved steps=21 >out 2>&1 || cat out; mv moved held
	equal "$(field val_loss apart)" "$(field val_loss named | head -n 2)")"
verdict "two ranks" "$(run ranks data=train valid=held steps=20 eval_every=10 ranks=2
	run one data=train valid=held steps=20 eval_every=10 micro_batches=2
	equal "$(field val_loss one)" "$(field val_loss ranks)")"
refused 2 valid train data=train valid=nosuch out=x $keys
refused 2 valid train data=train valid=1.5 out=x $keys
refused 1 none.bin train data=train valid=none.bin out=x $keys
refused 1 valid train data=train valid=- out=x $keys
printf short >short.txt
refused 1 short.txt train data=train valid=short.txt out=x $keys

# ---- validation windows that cannot be read ----

# Window w has tokens 16 w to 16 w + 16. Token 40 of 177 is no id: windows 2 and no other; token 96 is shared by 5 and 6.
head -c 354 val.bin >good.bin # 11 windows
{ head -c 80 good.bin; printf '\300\001'; tail -c +83 good.bin | head -c 110; printf '\300\001'; tail -c +195 good.bin; } >bad.bin
# with 2 replaced by 3, and 5 and 6 by 7
python3 - <<'END'
import array
t = array.array('H', open('good.bin', 'rb').read())
for name, order in ('subset', [0, 1, 3, 3, 4, 7, 7, 7, 8, 9, 10]), ('each', range(11)):
    for k, w in enumerate(order):
        t[16 * w:16 * w + 17].tofile(open(f'{name}.{k}', 'wb'))
END
raw="data=train.bin format=u16 vocab=256 $keys steps=2 eval_every=1"
"$yoke" train $raw valid=bad.bin out=stop >out 2>err
status=$?
verdict "on_error=stop: $(grep '^yoke train' err)" "$([ $status -eq 1 ] && grep -q 'bad.bin.*448' err || cat err)"
verdict "on_error=skip" "$(run skip data=train.bin format=u16 vocab=256 valid=bad.bin steps=2 eval_every=1 on_error=skip)"
# the mean of evaluations of each window by itself
mean()
{
	for k in 0 1 2 3 4 5 6 7 8 9 10; do
		"$yoke" eval skip data="subset.$k" format=u16 2>&1
	done | awk '$1 == "loss" { sum += $2; n++ } END { printf "%.5f\n", sum / n }'
}
verdict "the loss is the mean over the next good windows: $(field val_loss skip | tail -n 1)" "$(mean |
	awk -v got="$(field val_loss skip | tail -n 1)" '{ if (got - $1 > 2e-5 || $1 - got > 2e-5) print "not", $1 }')"
verdict "its records" "$(equal "$(sed -n 's/.*"data_errors":\([0-9]*\).*"stage":"valid".*/\1/p; s/.*"stage":"valid".*"data_errors":\([0-9]*\).*/\1/p' skip/metrics.jsonl | tr '\n' ' ')" "3 3 "
	equal "$(sed -n 's/.*"step":\([0-9]*\).*"sample":\([0-9]*\).*/\1:\2/p' skip/data_errors.jsonl | tr '\n' ' ')" "1:2 1:5 1:6 2:2 2:5 2:6 ")"
verdict "eval on_error=skip" "$("$yoke" eval skip data=bad.bin format=u16 on_error=skip >out 2>&1; awk -v got="$(field val_loss skip | tail -n 1)" '
	$1 == "loss" { n++; if (got - $2 > 2e-5 || $2 - got > 2e-5) print "not", $2 } $1 == "skipped" && $2 == 3 { n++ }
	END { if (n != 2) print "no loss, or not three skipped" }' out)"
refused 1 448 eval skip data=bad.bin format=u16
refused 1 on_error=2 eval skip data=bad.bin format=u16 on_error=2
verdict "two ranks, batches of 2" "$(run both data=train.bin format=u16 vocab=256 valid=bad.bin steps=2 eval_every=1 on_error=skip ranks=2 accumulate=1
	run one data=train.bin format=u16 vocab=256 valid=bad.bin steps=2 eval_every=1 on_error=skip micro_batches=2
	equal "$(field val_loss one)" "$(field val_loss both)"
	equal "$(grep -o '"sample":[0-9]*' one/data_errors.jsonl)" "$(grep -o '"sample":[0-9]*' both/data_errors.jsonl)")"
verdict "on_error=3 suffices, on_error=2 does not" "$(run three data=train.bin format=u16 vocab=256 valid=bad.bin steps=1 on_error=3
	for ranks in 1 2; do
		timeout 600 "$yoke" train $raw valid=bad.bin on_error=2 ranks=$ranks out=two$ranks >out 2>err && echo "status 0"
		grep -q 'on_error=2' err || cat err
	done)"
awk 'BEGIN { for (i = 0; i < 200; i++) printf "%c%c", 192, 1 }' >none.bin
"$yoke" train $raw valid=none.bin on_error=skip out=nothing >out 2>err
status=$?
verdict "no window can be read: $(grep '^yoke train' err)" "$([ $status -eq 1 ] && grep -q 'none.bin.*448' err || cat err)"

# ---- keep_best, stop_after ----

awk 'BEGIN { for (n = split("the quick brown fox jumps over a lazy dog", word, " "); i < 800; i++) {
	x = (x * 1103 + 12345) % 65536
	printf "%s ", word[int(x / 65536 * n) + 1] } }' >words
head -c 600 words >few # overfits soon
tail -c 1500 words >others
own="data=few valid=others eval_every=5 save_every=7"
verdict "a run of 200 steps" "$(run long $own steps=200)"
# ended LOSSES N: step of the lowest loss, its loss, and the step after which N validations were not lower
ended()
{
	grep '"val_loss"' "$1/metrics.jsonl" | sed 's/.*"step":\([0-9]*\).*"val_loss":\([^,}]*\).*/\1 \2/; s/.*"val_loss":\([^,}]*\).*"step":\([0-9]*\).*/\2 \1/' |
		awk -v n="$2" 'best == "" || $2 < best { best = $2; at = $1; since = -1 } { since++; last = $1 }
			n > 0 && since >= n { exit } END { print at, best, last }'
}
# manifest KEY DIR: a number in its manifest
manifest()
{
	tr -d ' \n' <"$2/manifest.json" | sed "s/.*\"$1\":\([0-9.e+-]*\).*/\1/"
}
# the first member "step" after "schedule" is the run's own
step_of()
{
	python3 -c 'import json, sys; print(json.load(open(sys.argv[1] + "/manifest.json"))["step"])' "$1"
}
read -r at best last <<END
$(ended long 3)
END
verdict "a program finds the end: lowest $best at $at, three later ones until $last" "$([ "$last" -lt 200 ] || echo "$last")"
verdict "keep_best=1 stop_after=3" "$(run kept $own steps=200 keep_best=1 stop_after=3)"
verdict "the run ends where the program found it" "$(equal "$last" "$(step_of kept)")"
verdict "and is done" "$(grep -q '"how": "done"' kept/run.json && grep -q '"reason": ".*'"$at"'.*stop_after=3' kept/run.json || cat kept/run.json)"
verdict "and its checkpoint is that of the step" "$(equal "$at" "$(step_of kept/best)")"
verdict "with its weights" "$(run until $own steps="$at"; equal "$(weights until)" "$(weights kept/best)")"
verdict "eval of it computes the loss" "$("$yoke" eval kept/best 2>&1 | awk -v want="$best" '
	$1 == "loss" { seen = 1; if ($2 - want > 1e-5 || want - $2 > 1e-5) print } END { if (!seen) print "no loss" }')"
verdict "generate uses it" "$("$yoke" generate kept/best tokens=3 2>&1 >out)"
verdict "resume=1 has nothing to do" "$("$yoke" train out=kept resume=1 >out 2>&1 || cat out; equal "$last" "$(step_of kept)")"
cp -r kept again
verdict "resume=best repeats the steps since" "$("$yoke" train out=again resume=best >out 2>&1 || cat out
	grep -q "step $at\$" out || cat out; equal "$(weights kept)" "$(weights again)")"
verdict "and a larger stop_after continues" "$("$yoke" train out=again resume=1 stop_after=5 >out 2>&1 || cat out
	set -- $(ended long 5); equal "$3" "$(step_of again)")"
for steps in 7 $((at + 5)); do
	verdict "a run that was interrupted at $steps ends at the same step, with the same checkpoints" "$(
		run cut $own steps=$steps keep_best=1 stop_after=3
		"$yoke" train out=cut resume=1 steps=200 >out 2>&1 || cat out
		equal "$(weights kept) $(weights kept/best)" "$(weights cut) $(weights cut/best)"; rm -r cut)"
done
for how in thread process; do
	verdict "two ranks, spawn=$how" "$(rm -rf two one
		run two $own steps=200 keep_best=1 stop_after=3 ranks=2 spawn=$how
		run one $own steps=200 keep_best=1 stop_after=3 micro_batches=2
		equal "$(step_of one) $(weights one) $(weights one/best)" "$(step_of two) $(weights two) $(weights two/best)")"
	verdict "and their resume=best" "$("$yoke" train out=two resume=best spawn=$how >out 2>&1 || cat out
		equal "$(step_of one) $(weights one)" "$(step_of two) $(weights two)")"
done
rm two/manifest.json # as if the run had been killed before the first checkpoint of its own
refused 1 resume=best train $own $keys steps=200 keep_best=1 out=two
refused 1 resume=best train out=two resume=1
verdict "resume=auto takes the only checkpoint" "$("$yoke" train out=two resume=auto >out 2>&1 || cat out; equal "$(weights one)" "$(weights two)")"
refused 1 best train out=long resume=best
refused 1 valid train data=few valid=0 keep_best=1 out=x
refused 1 valid train data=few valid=0 stop_after=2 out=x
refused 1 eval_every train data=few stop_after=1 eval_every=0 out=x
refused 1 checkpoints train data=few keep_best=1 checkpoints=0 out=x
refused 2 stop_after train data=few stop_after=-1 out=x
verdict "refused runs leave nothing" "$(ls -d x 2>/dev/null)"

echo "1..$count"
[ $failed -eq 0 ]
