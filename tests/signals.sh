#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests signals: SIGINT, SIGTERM and SIGHUP finish the step, save and exit 0, and the resumed run has
# the losses of an unbroken one; nohup's SIGHUP is ignored; a second signal ends at once; SIGKILL loses only the steps after the
# last checkpoint. Two runs cannot write into one directory.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/status.sh"
workspace signals
export YOKE_BACKEND=cpu

losses()
{
	sed -n 's/.*"step":\([0-9]*\),"loss":\([^,}]*\).*/\1 \2/p' "$1/metrics.jsonl"
}

i=0
while [ $i -lt 200 ]; do
	echo "line $((i % 7)) of a text"
	i=$((i + 1))
done >text
keys="data=text layers=1 heads=2 embed=32 context=32 batch=4 warmup=5 log_every=1"
keys="$keys eval_every=0 valid=0 dropout=0.1 steps=1000000000"

for signal in INT TERM; do
	"$yoke" train out=$signal $keys 2>err &
	pid=$!
	await has $signal/metrics.jsonl 5 ''
	"$yoke" train out=$signal resume=auto $keys >out 2>err2
	[ $? -eq 1 ] && [ "$(wc -l <err2)" -eq 1 ] && grep -q "^yoke train: $signal: another run" err2
	verdict "a second run is refused: $(cat err2)" $?
	kill -$signal $pid
	wait $pid
	verdict "SIG$signal: exit status 0" $?
	[ "$(grep -c "^SIG$signal: finishing the step and saving; " err)" -eq 1 ]
	verdict "SIG$signal: it is told that it was heard" $?
	tail -n 1 err | grep -q "resume=1"
	verdict "SIG$signal: $(tail -n 1 err)" $?
	[ -f $signal/manifest.json ]
	verdict "SIG$signal: saved" $?
done

# Each resumed run makes at least 5 steps, and at least as many as the other run had.
stopped=$(losses INT | wc -l)
other=$(losses TERM | wc -l)
for signal in INT TERM; do
	last=$(losses $signal | tail -n 1 | cut -d' ' -f1)
	[ "$last" -eq "$(losses $signal | wc -l)" ]
	verdict "SIG$signal: every step is in the metrics" $?
	most=$(wc -l <$signal/metrics.jsonl)
	[ "$stopped" -gt "$most" ] && most=$stopped
	[ "$other" -gt "$most" ] && most=$other
	"$yoke" train out=$signal resume=1 2>err &
	pid=$!
	await has $signal/metrics.jsonl $((most + 6)) '' # one line is about memory
	kill -$signal $pid
	wait $pid
	verdict "SIG$signal: resumed and stopped again" $?
done
losses INT >a
losses TERM >b
n=$(wc -l <a)
[ "$(wc -l <b)" -lt "$n" ] && n=$(wc -l <b)
head -n "$n" a >a.head && head -n "$n" b | cmp -s - a.head
verdict "stopped at $stopped and at $other: the same $n losses to the last digit" $?

# A terminal that closes sends SIGHUP, and its reader of the messages may have ended. env starts the
# run with the signal's default action, which may be another one here.
mkfifo messages
if env --default-signal=HUP true 2>err; then
	head -n 1 <messages >first &
	env --default-signal=HUP "$yoke" train out=hup $keys training_log=hup.tsv 2>messages &
	pid=$!
	await has hup/metrics.jsonl 5 ''
	await test -s first
	kill -HUP $pid
	wait $pid
	got=$?
	[ $got -eq 0 ] && [ -f hup/manifest.json ] && [ "$(cut -f3 hup.tsv | tail -n 1)" = SIGHUP ] &&
		grep -q '"how": *"SIGHUP"' hup/run.json
	verdict "SIGHUP saves, also when nobody reads the messages: exit status $got" $?
else
	skip SIGHUP 'env has no --default-signal'
fi
nohup "$yoke" train out=nohup $keys training_log=nohup.tsv >nohup.out 2>&1 &
pid=$!
await has nohup/metrics.jsonl 5 ''
kill -HUP $pid
n=$(wc -l <nohup/metrics.jsonl)
await has nohup/metrics.jsonl $((n + 3)) ''
! grep -q 'finishing the step' nohup.out
verdict 'nohup: SIGHUP changes nothing' $?
kill -TERM $pid
wait $pid
got=$?
[ $got -eq 0 ] && [ -f nohup/manifest.json ]
verdict "nohup: SIGTERM saves: exit status $got" $?

# Signals that arrive together count as one: those of a process that was stopped, and those of
# `timeout`, which signals its child and then the process group.
"$yoke" train out=together $keys training_log=together.tsv 2>err &
pid=$!
await has together/metrics.jsonl 5 ''
kill -STOP $pid
kill -INT $pid
kill -TERM $pid
kill -CONT $pid
wait $pid
got=$?
[ $got -eq 0 ] && [ -f together/manifest.json ]
verdict "SIGINT and SIGTERM together finish the step and save: exit status $got" $?
if command -v timeout >timeout.path; then
	timeout --preserve-status 600 "$yoke" train out=timeout $keys training_log=together.tsv 2>err &
	pid=$!
	await has timeout/metrics.jsonl 5 ''
	kill -TERM $pid
	wait $pid
	got=$?
	[ $got -eq 0 ] && [ -f timeout/manifest.json ]
	verdict "timeout's signals to the process and its group are one: exit status $got" $?
else
	skip "timeout's signals" 'there is no timeout'
fi

"$yoke" train out=pin data=- ${keys#* } training_log=pin.tsv <text 2>err &
pid=$!
await has pin/metrics.jsonl 5 ''
kill -INT $pid
wait $pid
[ "$(tail -n 1 err)" = 'next: .. | yoke train data=- out=pin resume=1' ]
verdict "text from a pipe: $(tail -n 1 err)" $?

# A signal while the text is read ends the run before a step.
mkfifo pipe
"$yoke" train out=early data=- ${keys#* } training_log=pin.tsv <pipe 2>err &
pid=$!
exec 3>pipe
yes "a text" | head -c 200000 >&3 # more than a pipe holds: it is being read
kill -INT $pid
await grep -q 'finishing the step' err
exec 3>&-
wait $pid
verdict "SIGINT while the text is read: exit status 0" $?
[ -z "$(losses early)" ] && [ -f early/manifest.json ] && grep -q 'at step 0$' err
verdict "SIGINT while the text is read: no step is made" $?

# A step of many micro-batches takes minutes: the first signal waits for its end, the second does
# not.
for pair in 'INT 130' 'TERM 143'; do
	signal=${pair% *} status=${pair#* }
	cp $signal/manifest.json before
	lines=$(wc -l <$signal/metrics.jsonl)
	"$yoke" train out=$signal resume=1 accumulate=65536 context=32 2>err &
	pid=$!
	await has $signal/metrics.jsonl $((lines + 1)) ''
	kill -$signal $pid
	await grep -q 'finishing the step' err
	kill -0 $pid 2>/dev/null
	verdict "SIG$signal: one signal waits for the step" $?
	signalled_until_ended $signal $pid
	wait $pid
	got=$?
	[ $got -eq $status ]
	verdict "SIG$signal twice: exit status $got" $?
	tail -n 1 err | grep -q "SIG$signal again"
	verdict "SIG$signal twice: $(tail -n 1 err)" $?
	cmp -s before $signal/manifest.json && "$yoke" generate $signal tokens=1 >out 2>err
	verdict "SIG$signal twice: the checkpoint is whole" $?
done
# A validation that takes minutes is aborted; a second signal before anything is saved is reported.
yes "a text that is long" | head -c 30000000 >long
long="data=long layers=1 heads=2 embed=32 context=32 batch=4 valid=0.9 eval_every=1 eval_tokens=0 progress=1"
"$yoke" train out=valid $long training_log=valid.tsv 2>err &
pid=$!
await grep -q 'validated at step 1' err
kill -INT $pid
wait $pid
verdict "SIGINT in a validation: exit status 0" $?
! grep -q val_loss valid/metrics.jsonl && [ -f valid/manifest.json ]
verdict "SIGINT in a validation: the validation is aborted and the model saved" $?
"$yoke" train out=none $keys accumulate=65536 training_log=none.tsv 2>err &
pid=$!
await has none/metrics.jsonl 1 ''
kill -INT $pid
await grep -q 'finishing the step' err
signalled_until_ended INT $pid
wait $pid
tail -n 1 err | grep -q 'exits now; no checkpoint was saved$'
verdict "SIGINT twice before a checkpoint: $(tail -n 1 err)" $?

awk -F'\t' 'NR > 1 { print $3 }' training_log.tsv | sort | uniq -c | tr -s ' \n' ' ' >ended
grep -q '2 SIGINT 1 SIGINT twice 2 SIGTERM 1 SIGTERM twice' ended
verdict "training_log.tsv: $(cat ended)" $?

"$yoke" train out=KILL $keys save_every=10 2>err &
pid=$!
await has KILL/metrics.jsonl 25 ''
kill -KILL $pid
wait $pid 2>/dev/null
# More lines than the killed run left were written by the resumed one, which hears signals by then.
left=$(wc -l <KILL/metrics.jsonl)
"$yoke" train out=KILL resume=1 2>err &
pid=$!
await has KILL/metrics.jsonl $((left + 6)) ''
kill -TERM $pid
wait $pid
verdict "SIGKILL: resumed" $?
losses KILL | awk '$1 != NR { exit 1 }'
verdict "SIGKILL: each step is in the metrics once" $?
n=$(wc -l <a)
[ "$n" -le 20 ] || n=20
losses KILL | head -n "$n" >k
[ "$n" -ge 10 ] && head -n "$n" a | cmp -s - k
verdict "SIGKILL: the same losses" $?

cd .. && rm -rf signals.work
echo "1..$count"
