#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests runs with failing data and killed runs: skipped samples are named, counted and listed,
# completed training is kept, and a resumed run, with any number of threads, has the losses of an
# undisturbed one.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
workspace data_run
export YOKE_BACKEND=cpu

# losses RUN: "step loss" of each line that has one
losses()
{
	sed -n 's/^{"step":\([0-9]*\),"loss":\([^,]*\),.*/\1 \2/p' "$1/metrics.jsonl"
}

# ---- windows that cannot be read ----
# Windows of 16 tokens; one byte each of windows 5 and 9 is beyond the vocabulary.
awk 'BEGIN { for (i = 0; i < 1200; i++) printf "%c", 97 + i * i % 23 }' >good
dd if=good bs=1 count=83 2>/dev/null >bad
printf '\377' >>bad
dd if=good bs=1 skip=84 count=63 2>/dev/null >>bad
printf '\377' >>bad
dd if=good bs=1 skip=148 2>/dev/null >>bad
raw="data=bad format=u8 vocab=128 layers=1 heads=2 embed=16 context=16 batch=4 valid=0.1 log_every=1 seed=3"

"$yoke" train $raw epochs=2 out=stop >out 2>err
verdict "a window that cannot be read ends the run" \
	"$([ $? -eq 1 ] || echo "exit $?"; tail -n 1 err | grep -q 'sample [59]: .*stop holds step [0-9]*: .*resume=1$' ||
	cat err)"
step=$(tail -n 1 err | sed 's/.*holds step \([0-9]*\).*/\1/')
verdict "and the run has what was trained" "$([ -n "$step" ] && [ "$(losses stop | tail -n 1 | cut -d' ' -f1)" = "$step" ] ||
	losses stop)"

"$yoke" train $raw epochs=2 out=skip on_error=skip workers=3 >out 2>err
verdict "failing windows are skipped" "$([ $? -eq 0 ] && [ "$(grep -c ' is skipped: ' err)" -eq 4 ] &&
	grep -q '^4 samples could not be read .*: 4 YOKE_EFORMAT; skip/data_errors.jsonl ' err || cat err)"
verdict "and listed" "$(sed 's/"step":[0-9]*,//; s/"why":.*//' skip/data_errors.jsonl | sort | uniq -c | awk '{ print $2 }' >list
	for e in 0 1; do for n in 5 9; do
		echo "{\"epoch\":$e,\"source\":\"bad\",\"sample\":$n,\"error\":\"YOKE_EFORMAT\","; done; done | diff - list)"
verdict "and counted" "$(tail -n 2 skip/metrics.jsonl | grep -q '"failed":4' || tail -n 2 skip/metrics.jsonl)"
"$yoke" train out=stop resume=1 on_error=skip workers=0 >out 2>err
verdict "a run that ended resumes and skips them, with the same losses" \
	"$([ $? -eq 0 ] || cat err; losses stop >a; losses skip | diff a -)"
verdict "the list has those of the second part" "$(wc -l <stop/data_errors.jsonl | grep -qx '4' || cat stop/data_errors.jsonl)"
"$yoke" train $raw epochs=2 out=two on_error=2 >out 2>err
verdict "the permitted number of failures ends no run" "$([ $? -eq 0 ] || cat err; losses two | diff a -)"
"$yoke" train $raw epochs=2 out=one on_error=1 >out 2>err
verdict "once more is too often" "$([ $? -eq 1 ] || echo "exit $?"
	tail -n 1 err | grep -q 'on_error=1; one holds step' || cat err)"
last=$(losses one | tail -n 1 | cut -d' ' -f1)
first=$(sed -n 's/.*"step":\([0-9]*\).*/\1/p' one/data_errors.jsonl | head -n 1)
"$yoke" train $raw steps="$last" out=cut on_error=1 >out 2>err || cat err
"$yoke" train out=cut resume=1 steps=40 >out 2>err
verdict "also when the run was interrupted after step $last, and the first one failed in step $first" \
	"$([ $? -eq 1 ] || echo "exit $?"; [ "$first" -le "$last" ] || echo "both are of one step"
	tail -n 1 err | grep -q "on_error=1; cut holds step $last" || cat err)"
"$yoke" train $raw out=no on_error=0 >out 2>err
verdict "on_error=0 is refused: $(head -n 1 err)" "$([ $? -eq 2 ] || [ $? -eq 1 ] || echo "$?"
	grep -q 'from 1 to .*, or one of: stop skip' err || cat err)"

# ---- a token file that is altered ----
"$yoke" data prepare good out=altered.safetensors context=16 >out 2>err
small="data=altered.safetensors layers=1 heads=2 embed=16 context=16 batch=4"
"$yoke" train $small steps=2 out=token >out 2>err || verdict "a run on a token file" "$(cat err)"
printf '!' | dd of=altered.safetensors bs=1 seek=$(($(wc -c <altered.safetensors) - 300)) conv=notrunc status=none
"$yoke" train $small steps=4 out=token resume=1 >out 2>err
verdict "a run on an altered token file does not resume: $(tail -n 1 err)" "$([ $? -eq 1 ] || echo "exit $?"
	tail -n 1 err | grep -q 'altered.safetensors: altered: the hash of its tokens' || cat err)"
"$yoke" data prepare good out=altered.safetensors context=16 >out 2>err
"$yoke" train $small steps=4 out=token resume=1 >out 2>err
verdict "it resumes after the file was prepared again" "$([ $? -eq 0 ] || cat err; grep -q 'another text' err && cat err)"

# ---- a file that is cut while it is read ----
cp good cut.bytes
"$yoke" train data=cut.bytes format=u8 vocab=128 layers=1 heads=2 embed=16 context=16 batch=4 valid=0 steps=1000000 \
	log_every=1 progress=0 report=0 out=cutoff >out 2>err &
run=$!
await grep -qs '"step":5,' cutoff/metrics.jsonl
: >cut.bytes
wait $run
verdict "a file truncated while it is read ends the run: $(tail -n 1 err)" "$([ $? -eq 1 ] || echo "exit $?"
	tail -n 1 err | grep -q "cut.bytes.* ends at byte [0-9]*: cut short while it was read; cutoff holds step [0-9]*: " || cat err)"

# ---- pipes ----
# 641 bytes are 40 windows of 16 tokens: 10 steps.
head -c 641 good >bytes
pipe="format=u8 vocab=128 layers=1 heads=2 embed=16 context=16 batch=4 micro_batches=2 log_every=1 report=0"
"$yoke" train data=bytes $pipe valid=0 steps=5 shuffle=0 out=file >out 2>err || verdict "a file" "$(cat err)"
losses file >a
cat bytes | "$yoke" train data=- $pipe steps=5 workers=3 out=piped >out 2>err
verdict "a pipe gives the windows of a file in their order" "$(losses piped | diff a - || cat err)"
cat bytes | "$yoke" train data=- $pipe steps=5 ranks=2 out=ranks >out 2>err
verdict "two ranks read a pipe once, with the same losses" "$(losses ranks | diff a - || cat err)"
cat bytes | "$yoke" train data=- $pipe steps=3 out=halves >out 2>err
cat bytes | "$yoke" train out=halves steps=5 resume=1 >out 2>err
verdict "a run on a pipe resumes at its position" "$(losses halves | diff a - || cat err)"
"$yoke" train data=bytes $pipe valid=0 steps=4 shuffle=7 out=blocks >out 2>err
mkfifo fifo
cat bytes >fifo &
"$yoke" train data=fifo $pipe steps=4 shuffle=7 out=mixed >out 2>err
verdict "mixed in blocks, as those of a file" "$(losses mixed >b; losses blocks | diff - b; head -n 4 a | cmp -s - b && echo 'in order')"
for mode in stop skip; do
	head -c 600 bytes | "$yoke" train data=- $pipe steps=5 on_error=$mode out=ends-$mode >out 2>err
	verdict "a pipe that ends early, on_error=$mode: $(tail -n 1 err)" "$(tail -n 1 err |
		grep -q 'byte 600,.* 37 samples.*ends-'$mode' .*step 4:.* resume=1' || cat err)"
done
cat bytes | "$yoke" train out=ends-stop data=- resume=1 >out 2>err
verdict "the run resumes when the pipe has all data" "$(losses ends-stop | diff a - || cat err)"
paced slow 129 128 5 <bytes | "$yoke" train data=- $pipe steps=5 workers=3 out=slow >out 2>err
verdict "waiting for a slow pipe is reported in one line: $(grep waiting err)" "$(losses slow | diff a -
	grep -c '^waiting for data [1-9][0-9]* % of the time: workers=3$' err | grep -qx 1 || cat err)"
exec 3<>fifo # which has no end then
cat bytes >&3
YOKE_DATA_TIMEOUT=100000 "$yoke" train data=fifo $pipe steps=5 out=waits >out 2>err
verdict "an open pipe does not delay the end of a run" "$(losses waits | diff a - || cat err)"
head -c 600 bytes >&3 # then it is silent
YOKE_DATA_TIMEOUT=1 "$yoke" train data=fifo $pipe steps=9 out=silent >out 2>err
verdict "a pipe without further data: $(tail -n 1 err)" "$([ $? -eq 1 ] || echo "exit $?"; tail -n 1 err |
	grep -q 'fifo: sample [0-9]*: .*data.timeout = 1 seconds; silent holds step [0-9]*: .*resume=1$' ||
	cat err)"
exec 3>&-
for wrong in 'epochs=1' 'shuffle=1' 'save_every=0.5ep' 'valid=0.1' 'data=-,bytes'; do
	cat bytes | "$yoke" train $pipe $(case $wrong in data*) ;; *) echo data=- ;; esac) $wrong out=no >out 2>err
	verdict "$wrong: $(cat err)" "$([ $? -ne 0 ] || echo "exit 0"; [ "$(wc -l <err)" -eq 1 ] && grep -q "${wrong%%=*}\|pipe" err ||
		echo "what is said"; [ ! -e no ] || echo "a folder")"
done

# ---- kills ----
# Two epochs of 16 steps, saved at each; the run is killed at any moment, twice at least, and gone on with.
run="data=text tokenizer=byte layers=1 heads=2 embed=16 context=16 batch=4 valid=0 dropout=0.1 epochs=2 log_every=1
	save_every=1 report=0 snapshot_every=0"
head -c 1025 good >text
"$yoke" train $run out=whole >out 2>err || verdict "a whole run" "$(cat err)"
losses whole >a
verdict "two epochs are 32 steps" "$(tail -n 1 a | grep -q '^32 ' || cat a)"
rounds=2
[ -n "${YOKE_TEST_LONG:-}" ] && rounds=40
[ -n "${YOKE_TEST_SAMPLE:-}" ] && rounds=1
for signal in KILL TERM; do
	bad='' k=0 kills=0
	while [ $k -lt $rounds ]; do
		k=$((k + 1))
		rm -rf broken
		for at in $((1 + (k * 7) % 14)) $((16 + (k * 5) % 14)) 0; do
			"$yoke" train $run out=broken resume=auto workers=$(((k + at) % 5)) prefetch=$(((k * 3 + at) % 4)) \
				>out 2>err &
			pid=$!
			while [ "$at" -gt 0 ] && kill -0 $pid 2>/dev/null; do
				grep -q "^{\"step\":$at,\"loss\"" broken/metrics.jsonl 2>/dev/null && kill -$signal $pid 2>/dev/null &&
					kills=$((kills + 1)) && break
			done
			wait $pid 2>/dev/null
		done
		losses broken | diff a - >d || bad="$bad$(echo "round $k"; cat d; tail -n 3 err)"
	done
	verdict "$kills kills with $signal in $rounds runs, and the losses of a whole one" "$bad"
done
rm -rf broken
echo "1..$count"
exit $failed
