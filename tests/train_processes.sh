#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke train spawn=process: the bits of threads; one line for unsupported settings; one
# signal ends all, a second one at once; however a rank or the parent ends, all end, the rank is
# named, and no process is left.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/trainings.sh"
. "${srcdir:-.}/tests/tap.sh"
workspace train_processes
export YOKE_BACKEND=cpu YOKE_THREADS=1
unset YOKE_CPU_DEVICES
easy_text 120 >text
model="layers=1 heads=2 embed=32 context=32 batch=2 warmup=2 lr=1e-2 telemetry=0"
keys="data=text $model log_every=1"

verdict "three processes" "$(run processes steps=4 dropout=0.1 ranks=3 spawn=process)"
verdict "three processes have the bits of three threads" "$(run threads steps=4 dropout=0.1 ranks=3; same processes threads)"
verdict "a run resumes as new processes, as many as before" "$(
	run part steps=2 dropout=0.1 schedule=constant ranks=3
	go part resume=1 steps=4 spawn=process
	run whole steps=4 dropout=0.1 schedule=constant ranks=3
	same part whole
	grep -q '^3 ranks' part.out || head -n 3 part.out)"
verdict "and as a single process" "$(run one steps=1 ranks=1 spawn=process)"
# after 32 sums, and 50 steps later, another algorithm is tried
verdict "dist.adapt: ways of sums that change underway change no bit" "$(
	run still steps=100 ranks=2
	export YOKE_DIST_ADAPT=1
	run adapted steps=100 ranks=2 spawn=process
	same adapted still)"

keys=$model
verdict "micro-batches not divisible by the ranks" "$(refused 'these do: 1 2 4 8' spawn=process data=text ranks=3 micro_batches=8)"
verdict "more ranks than devices" "$(export YOKE_CPU_DEVICES=2; refused '3 ranks, but 2 devices' spawn=process data=text ranks=3)"
verdict "data that cannot be read" "$(refused 'rank [01]: .*gone' spawn=process ranks=2 data=gone)"
verdict "more ranks than there will be" "$(refused 'min_ranks=3 is more than ranks=2' spawn=process data=text ranks=2 min_ranks=3)"
verdict "standard input" "$(refused 'data=- .* one process' spawn=process ranks=2 data=text,-)"
verdict "a backend that is measured" "$(refused 'backend=fastest' spawn=process data=text ranks=2 backend=fastest)"
verdict "another number of processes than ranks" "$(export YOKE_RANKS_WORLD="0 3 nobody"
	refused 'ranks=2, but 3 processes' spawn=process data=text ranks=2)"
# A control group of 16 MiB below that of this test, where one can be made.
group=
for root in /sys/fs/cgroup/memory:memory.limit_in_bytes:memory /sys/fs/cgroup:memory.max:; do
	what=${root##*:} file=${root#*:} file=${file%:*} root=${root%%:*}
	below=$(sed -n "s/^[0-9]*:$what://p" /proc/self/cgroup)
	[ -z "$group" ] && mkdir "$root$below/yoke-test.$$" 2>/dev/null || continue
	group=$root$below/yoke-test.$$
	cat >limited <<END
#!/bin/sh
echo \$\$ >"$group/cgroup.procs" && exec "$yoke" "\$@"
END
	chmod +x limited
	if ! { echo 16777216 >"$group/$file" && ./limited version; } >/dev/null 2>&1; then
		rmdir "$group"
		group=
	fi
done
if [ "$group" ]; then
	verdict "a control group of less memory than ranks share" "$(yoke=./limited
		refused 'ranks=128 .* share .* MiB, but .* 16.0 MiB' data=text spawn=process ranks=128)"
	rmdir "$group"
else
	skip 'a control group of less memory than ranks share' 'no control group can be made here'
fi
keys="data=text $model log_every=1"

# begin NAME KEY=VALUE ..: starts a run in the background and waits for step 3; sets $parent and
# $children
begin()
{
	name=$1
	shift
	rm -rf "$name"
	# shellcheck disable=SC2086 # words
	"$yoke" train $keys out="$name" ranks=3 spawn=process steps=1000000 save_every=0 eval_every=0 "$@" \
		>"$name.out" 2>"$name.err" &
	parent=$!
	reaches "$name" 3
	children=$(tr ' ' '\n' <"/proc/$parent/task/$parent/children" | grep .)
}

# Prints which of $parent and $children do not end soon.
left()
{
	for pid in $children; do
		await gone "$pid"
		gone "$pid" || echo "process $pid is left"
	done
	grep "@yoke-$parent-" /proc/net/unix
	ls /dev/shm 2>/dev/null | grep yoke
}

begin signal
kill -INT $parent
wait $parent
status=$?
verdict "one signal ends all ranks after the same step, with a checkpoint" "$(
	[ $status -eq 0 ] || echo "exit code $status"
	[ -f signal/manifest.json ] || ls signal
	[ "$(grep -c 'finishing the step' signal.err)" -eq 1 ] || cat signal.err
	left)"
begin rank
# shellcheck disable=SC2086 # words
set -- $children
kill -TERM "$3"
wait $parent
status=$?
verdict "also a signal to one rank" "$(
	[ $status -eq 0 ] || echo "exit code $status"
	[ -f rank/manifest.json ] || ls rank
	left)"
begin together
# shellcheck disable=SC2086 # words
set -- $children
is_stopped()
{
	! grep -q '^State:.[^Tt]' "/proc/$1"/task/*/status
}
has_pending()
{
	grep -q '^ShdPnd:.*[2367abef]$' "/proc/$1/status" # bit 1: SIGINT
}
# both are stopped, so that no time passes between their signals; the parent reads SIGINT first and
# forwards it
kill -STOP "$2"
kill -STOP $parent
await is_stopped "$2"
await is_stopped $parent
kill -TERM "$2"
kill -TERM $parent
kill -INT $parent
kill -CONT $parent
await has_pending "$2"
kill -CONT "$2"
wait $parent
status=$?
verdict "simultaneous signals to the parent and to a rank count as one" "$(
	[ $status -eq 0 ] || echo "exit code $status"
	[ -f together/manifest.json ] || ls together
	left)"
begin twice
# shellcheck disable=SC2086 # words
set -- $children
kill -STOP "$2"
kill -INT $parent
await grep -q 'finishing the step' twice.err
signalled_until_ended INT $parent
wait $parent
status=$?
verdict "two signals end all ranks at once, also a stopped one" "$(
	[ $status -eq 130 ] || echo "exit code $status"
	left)"
begin orphans
{ kill -KILL $parent; wait $parent; } 2>/dev/null
verdict "ranks end with their parent" "$(left)"

# A rank is killed at a random moment, drawn with YOKE_TEST_SEED.
seed=${YOKE_TEST_SEED:-1}
echo "# seed $seed"
# has_children PID N: does the process have N children?  Sets $children.
has_children()
{
	children=$(cat "/proc/$1/task/$1/children")
	[ "$(echo "$children" | wc -w)" -ge "$2" ]
}
times=1
[ -z "${YOKE_TEST_LONG:-}" ] || times=50
verdict "a rank that is killed, $times times: all end, and it is named" "$(
	i=0
	while [ $i -lt $times ]; do
		i=$((i + 1))
		seed=$(((seed * 1103515245 + 12345) % 2147483648))
		rank=$((seed / 65536 % 3))
		wait=$((seed / 1048576 % 150))
		# shellcheck disable=SC2086 # words
		"$yoke" train $keys out=killed$i ranks=3 spawn=process steps=1000000 save_every=0 >killed.out 2>killed.err &
		parent=$!
		await has_children $parent 3
		sleep "$(printf '0.%03d' $wait)"
		# shellcheck disable=SC2086 # words
		set -- $children
		shift $rank
		kill -KILL "$1"
		await ended $parent
		ended $parent || kill -KILL $parent
		wait $parent
		status=$?
		[ $status -eq 1 ] || echo "rank $rank behind $wait ms: exit code $status"
		grep -q "rank $rank (pid $1) was ended by signal 9" killed.err || echo "rank $rank behind $wait ms: $(cat killed.err)"
		left
		rm -rf killed$i
	done)"
verdict "one trace has rows for each rank and its collective queue" "$(
	# shellcheck disable=SC2086 # words
	"$yoke" train data=text $model out=traced ranks=2 spawn=process steps=3 profile=1 checkpoints=0 eval_every=0 >out 2>&1 || cat out
	for rank in 0 1; do
		pid=$((rank + 1))
		grep -q "\"pid\":$pid,\"name\":\"process_name\",\"args\":{\"name\":\"rank $rank\"}" traced/trace.json || echo "no rank $rank"
		lane=$(sed -n "s/.*\"pid\":$pid,\"tid\":\([0-9]*\),\"name\":\"thread_name\",\"args\":{\"name\":\"ranks\"}.*/\1/p" traced/trace.json)
		[ "$(grep -c "\"ph\":\"X\",\"pid\":$pid,\"tid\":$lane,.*all_reduce" traced/trace.json)" -ge 3 ] || echo "rank $rank: no all_reduce"
	done
	python=$(command -v python3) || exit 0
	"$python" -c 'import json, sys; json.load(open(sys.argv[1]))' traced/trace.json)"
# goes_on: has the run saved again after a restart, or ended?
goes_on()
{
	grep -q '^yoke train: ' elastic.err || { grep -q 'from the last checkpoint' elastic.err &&
		[ "$(saved_step elastic)" -gt "${at:=$(saved_step elastic)}" ]; }
}

# elastic RANKS KEY=VALUE ..: the last rank is killed after the first checkpoint, and the run is
# stopped after the next checkpoint of the remaining ranks
elastic()
{
	rm -rf elastic
	last=$1 at=
	shift
	# shellcheck disable=SC2086 # words
	"$yoke" train data=text $model out=elastic ranks="$last" micro_batches=4 spawn=process steps=1000000 save_every=50 eval_every=0 dropout=0.1 \
		schedule=constant log_every=100 restarts=1 "$@" >elastic.out 2>elastic.err &
	parent=$!
	await [ -f elastic/manifest.json ]
	children=$(cat "/proc/$parent/task/$parent/children")
	# shellcheck disable=SC2086 # words
	set -- $children
	shift $((last - 1))
	kill -KILL "$1"
	await goes_on
	kill -INT $parent
	wait $parent
	status=$?
}

# others WORDS KEY=VALUE ..: the other ranks continued, with these words, and trained the weights
# that all would have
others()
{
	word=$1
	shift
	[ $status -eq 0 ] || echo "exit code $status"
	grep -q "was ended by signal 9.*; $word" elastic.err || cat elastic.err
	# shellcheck disable=SC2086 # words
	"$yoke" train data=text $model out=unbroken micro_batches=4 steps="$(saved_step elastic)" schedule=constant eval_every=0 dropout=0.1 \
		log_every=100 "$@" >out 2>&1 || cat out
	same elastic unbroken
	rm -rf unbroken
	left
}
elastic 4 min_ranks=1
verdict "those that are left go on, as many as keep the bits" "$(others '2 ranks continue')"
one=$model model="layers=3 tied=0 ${model#layers=1}"
elastic 2 stages=2
verdict "of two stages the remaining rank continues alone" "$(others '1 rank continues .* restart 1 of 1, with stages=1 tensor=1$')"
if [ -n "${YOKE_TEST_LONG:-}" ]; then
	elastic 4 min_ranks=3
	verdict "fewer than min_ranks do not" "$(
		[ $status -eq 1 ] || echo "exit code $status"
		grep -q 'yoke train: rank 3 .* was ended by signal 9' elastic.err || cat elastic.err
		left)"
	model="layers=3 ${one#layers=1}"
	elastic 3 stages=3
	verdict "of three stages two, which have the embedding twice as three had" "$(
		others '2 ranks continue .* with stages=2 tensor=1$' ranks=2 stages=2)"
	elastic 2 tensor=2
	verdict "of two that compute together one, nearly" "$(
		[ $status -eq 0 ] || echo "exit code $status"
		grep -q '1 rank continues .* with stages=1 tensor=1: .*not bit-identical' elastic.err || cat elastic.err
		left)"
fi
model=$one
export YOKE_DIST_TIMEOUT=10 YOKE_DIST_WARN=1
begin stopped
# shellcheck disable=SC2086 # words
set -- $children
kill -STOP "$2"
wait $parent
status=$?
verdict "a stopped rank is abandoned, and named" "$(
	[ $status -eq 1 ] || echo "exit code $status"
	grep -q 'yoke train: .*rank 1 (pid [0-9]*) \(is in host code\|has not moved\) since' stopped.err || cat stopped.err
	grep -q '"operation":[0-9]*,"op":".*","time":.*"state":"YOKE_ERANK"' stopped/ranks-0.jsonl || cat stopped/ranks-0.jsonl
	[ "$(wc -l <stopped/ranks-0.jsonl)" -le 257 ] || wc -l stopped/ranks-0.jsonl
	left)"
echo "1..$count"
exit $failed
