#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests ranks started by a launcher: mpirun of Open MPI and of MPICH where they are installed, and
# the environment of torchrun, which this script sets itself. One model, with the bits of ranks=2;
# MPI between machines (dist.pretend); one line for unsupported settings; a rank that dies, stops
# or disagrees ends all, and no process is left.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/trainings.sh"
. "${srcdir:-.}/tests/tap.sh"
modules=$PWD/plugins/mpi/.libs
ranks=$PWD/tests/ranks.t
fault=$PWD/tests/fault/.libs/yoke_fault.so
peer=$PWD/bench/mpi
workspace train_mpi
export YOKE_BACKEND=cpu YOKE_THREADS=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
unset YOKE_CPU_DEVICES YOKE_PLUGIN_PATH
# modules are only loaded from a directory that nobody else may write
mkdir modules
for name in openmpi mpich; do
	[ ! -e "$modules/yoke_mpi_$name.so" ] || cp "$modules/yoke_mpi_$name.so" modules
done
chmod -R go-w modules
easy_text 120 >text
model="layers=1 heads=2 embed=32 context=32 batch=2 warmup=2 lr=1e-2 dropout=0.1 telemetry=0 log_every=1"
small="data=text $model steps=3"

# torch N WORDS ..: starts N processes with the environment of torchrun, on $machines machines; sets
# their exit codes
torch()
{
	n=$1
	shift
	i=0 pids=
	while [ $i -lt "$n" ]; do
		RANK=$i WORLD_SIZE=$((n * ${machines:-1})) LOCAL_RANK=$i LOCAL_WORLD_SIZE=$n MASTER_ADDR=localhost \
			MASTER_PORT=1 "$@" >"torch.$i.out" 2>"torch.$i.err" &
		pids="$pids $!"
		i=$((i + 1))
	done
}

finish()
{
	codes=
	for pid in $pids; do
		wait "$pid"
		codes="$codes $?"
	done
}

# shellcheck disable=SC2086 # words
"$yoke" train $small out=threads ranks=2 >threads.out 2>&1 || cat threads.out
# shellcheck disable=SC2086 # words
torch 2 "$yoke" train $small out=torch
finish
verdict "processes of torchrun train one model, with the bits of two threads" "$(
	[ "$codes" = " 0 0" ] || tail -n 3 torch.?.err
	[ ! -s torch.1.out ] || echo "rank 1 speaks"
	same torch threads)"

# refused WORDS COMMAND ..: all ranks together print one line with the words
refused()
{
	words=$1
	shift
	"$@" >out 2>err && echo "it was taken"
	grep '^yoke ' err >lines
	grep -q "$words" lines || tail -n 12 err out
	[ "$(sort -u lines | wc -l)" -eq 1 ] || cat lines
	[ ! -e never ] || echo "it left a folder"
}
# The other MPI starts a daemon for each process without a launcher, which does not always start.
another_mpi()
{
	for try in 1 2 3; do
		# shellcheck disable=SC2086 # words
		said=$(YOKE_DIST_MPI=$other refused 'started 2 ranks, MPI reports 1: it is the launcher of another MPI' \
			over -n 2 "$yoke" train $model data=text out=never)
		[ -n "$said" ] || return
	done
	echo "$said"
}
# mixed COMMAND ..: rank 1, as set by a launcher, runs another version of yoke
cat >mixed <<'EOF'
#!/bin/sh
case ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${RANK:-}}} in
1) shift; exec ./other "$@" ;;
esac
exec "$@"
EOF
chmod +x mixed
version=$("$yoke" --version | sed -n 's/^yoke //p')
dots=$(echo "$version" | sed 's/\./\\./g')
LC_ALL=C sed "s/$dots\x00/${version%?}x\x00/" "$yoke" >other
chmod +x other
unlike="ranks run different versions of yoke: rank 0 has $version, rank 1 ${version%?}x"
two_torches()
{
	# shellcheck disable=SC2086 # words
	torch 2 "$yoke" train $model data=text out=never "$@"
	finish
	cat torch.?.err >&2
	[ "$codes" = " 0 0" ]
}
verdict "ranks of different versions, each of which reports it" "$(
	# shellcheck disable=SC2086 # words
	torch 3 ./mixed "$yoke" train $model data=text out=never micro_batches=3
	finish
	[ "$codes" = " 1 1 1" ] || echo "exit codes$codes"
	for i in 0 1 2; do
		[ "$(grep '^yoke ' torch.$i.err)" = "yoke train: $unlike" ] || cat torch.$i.err
	done
	[ ! -e never ] || echo "it left a folder"
	rm torch.2.*)"
verdict "another number of ranks" "$(refused 'ranks=3, but 2 processes' two_torches ranks=3)"
verdict "restarts, which a launcher makes" "$(refused 'restarts=1: .*launcher' two_torches restarts=1)"
verdict "torchrun over machines" "$(machines=2; refused 'between machines; start it with mpirun or srun' two_torches)"
verdict "a rank that cannot be" "$(RANK=5 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2
	export RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE
	# shellcheck disable=SC2086 # words
	refused "RANK is '5'" "$yoke" train $model data=text out=never)"
# unlike_isa OUT [KEY=VALUE ..]: two ranks of different instruction sets
unlike_isa()
{
	# shellcheck disable=SC2086 # words
	torch 2 sh -c '[ "$RANK" = 0 ] || export YOKE_CPU_ISA=base; exec "$@"' sh "$yoke" train $small out="$@"
	finish
	cat torch.?.err >&2
	[ "$codes" = " 0 0" ]
}
if "$yoke" info | grep -q 'base, threads bound'; then
	skip 'ranks of unlike instruction sets' 'there is base alone'
else
	verdict "ranks of unlike instruction sets" "$(refused 'ranks 0 and 1 differ in their device (.*zero=1' unlike_isa never)"
	verdict "which may with zero=1" "$(unlike_isa isas zero=1 2>err || tail -n 3 err)"
fi
# Devices of tests/fault; a launcher may make a different one visible to each rank.
see()
{
	# shellcheck disable=SC2086 # words
	YOKE_BACKEND=fault YOKE_PLUGIN_PATH=$PWD/modules torch 2 sh -c 'YOKE_FAULT_UUID=$(eval "echo \$UUID$RANK") YOKE_FAULT_WRONG=$(eval "echo \${WRONG$RANK:-}") exec "$@"' sh \
		"$yoke" train $small out="$@"
	finish
	cat torch.?.err >&2
	[ "$codes" = " 0 0" ]
}
if cp "$fault" modules 2>/dev/null && chmod go-w modules/yoke_fault.so; then
	verdict "a rank uses its only visible device" "$(UUID0=a UUID1=b; export UUID0 UUID1
		see unlike 2>err || tail -n 3 err)"
	verdict "two ranks that see the same device" "$(UUID0=a UUID1=a; export UUID0 UUID1
		refused 'ranks 0 and 1 of this machine see one device each, the same, fault:0, uuid a-0; dist.share=1' see never)"
	verdict "which share it" "$(UUID0=a UUID1=a YOKE_DIST_SHARE=1; export UUID0 UUID1 YOKE_DIST_SHARE
		see shared 2>err || tail -n 3 err)"
	verdict "devices that both ranks see are assigned in turn" "$(UUID0=a UUID1=a YOKE_FAULT_DEVICES=2
		export UUID0 UUID1 YOKE_FAULT_DEVICES
		see turns 2>err || tail -n 3 err
		same turns unlike)"
	verdict "a rank whose device computes wrongly is detected when they save" "$(UUID0=a UUID1=b WRONG1=list_map
		export UUID0 UUID1 WRONG1
		refused 'ranks 0 and 1 have different parameters at step 2, ' see drift save_every=2
		[ ! -e drift/manifest.json ] || echo "it was saved")"
	verdict "and a rank whose self-test excluded kernels, after the first step" "$(
		UUID0=a UUID1=b WRONG1=list_map YOKE_SELFTEST=1
		export UUID0 UUID1 WRONG1 YOKE_SELFTEST
		refused 'ranks 0 and 1 differ in their kernels, .*self-tests .*zero=1' see drift)"
fi
verdict "yoke info names the launcher" "$(RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 YOKE_PLUGIN_PATH=$PWD/modules \
	"$yoke" info >out 2>&1
	grep -q 'launcher *torchrun: rank 1 of 2, 2 of them' out || tail -n 12 out
	for name in openmpi mpich; do
		[ ! -e modules/yoke_mpi_$name.so ] || grep -q "module *$name .*/modules/yoke_mpi_$name.so" out || tail -n 12 out
	done)"

long="data=text $model out=long steps=1000000 save_every=0 eval_every=0"

# below PID: prints the process's descendants and the process
below()
{
	for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do
		echo "$child"
		below "$child"
	done
}

# left PID ..: prints processes that do not end soon
left()
{
	for pid in "$@"; do
		await gone "$pid"
		gone "$pid" || echo "process $pid is left"
	done
	ls /dev/shm 2>/dev/null | grep yoke
}

# shellcheck disable=SC2086 # words
torch 2 "$yoke" train $long
reaches long 3
# shellcheck disable=SC2086 # words
set -- $pids
kill -KILL "$2"
finish 2>/dev/null
verdict "the other ranks detect a killed rank" "$(
	[ "$codes" = " 1 137" ] || echo "exit codes$codes"
	grep -q "rank 1 of world (pid $2) has ended" torch.0.err || tail -n 3 torch.0.err
	left "$1" "$2")"
rm -rf long
# shellcheck disable=SC2086 # words
YOKE_DIST_WARN=1 YOKE_DIST_TIMEOUT=10 torch 2 "$yoke" train $long
reaches long 3
# shellcheck disable=SC2086 # words
set -- $pids
kill -STOP "$2"
wait "$1"
code=$?
kill -KILL "$2"
finish 2>/dev/null
verdict "a stopped rank is reported after dist.timeout" "$(
	[ $code -eq 1 ] || echo "exit code $code"
	grep -q "within 10 s (dist.timeout): rank 1 (pid $2)" torch.0.err || tail -n 3 torch.0.err
	left "$1" "$2")"
rm -rf long
# shellcheck disable=SC2086 # words
torch 2 "$yoke" train $long
reaches long 3
# shellcheck disable=SC2086 # words
kill -INT $pids
# shellcheck disable=SC2086 # words
kill -INT $pids
finish
verdict "a signal that comes to all, and again from the launcher, is one" "$(
	[ "$codes" = " 0 0" ] || tail -n 3 torch.?.err
	[ -f long/manifest.json ] || ls long)"

# ---- each MPI; the longer cases of one of them, by the day ----

turn=$((${YOKE_TEST_SEED:-1} % 2))

for name in openmpi mpich; do
	run=$(command -v mpirun.$name) || run=
	case $name in
	openmpi) other=mpich mine=0 ;;
	*) other=openmpi mine=1 ;;
	esac
	if [ -z "$run" ] || [ ! -e modules/yoke_mpi_$name.so ]; then
		skip "$name" "mpirun.$name or its module is not there (libopenmpi-dev openmpi-bin, libmpich-dev mpich)"
		continue
	fi
	over()
	{
		YOKE_PLUGIN_PATH=$PWD/modules YOKE_DIST_PRETEND=1 "$run" "$@"
	}
	# shellcheck disable=SC2086 # words
	verdict "$name: mpirun starts one training, without its MPI on one machine" "$(
		"$run" -n 2 "$yoke" train $small out=$name >out 2>&1 || tail -n 12 out
		same $name threads)"
	# shellcheck disable=SC2086 # words
	verdict "$name: over machines, with the same bits" "$(
		over -n 2 "$yoke" train $small out=$name.far >out 2>&1 || tail -n 12 out
		same $name.far threads)"
	verdict "$name: bench/mpi times its all_reduce" "$(
		over -n 2 "$peer" 8 4096 >out 2>err &&
			[ "$(grep -cE "^ +(8|4096)  $name +[0-9.]+ us " out)" -eq 2 ] || cat out err)"
	# shellcheck disable=SC2086 # words
	[ -z "${YOKE_TEST_LONG:-}" ] || verdict "$name: 200 steps of 2 and 4 ranks, whatever is shared out, have one's bits" "$(
		steps="data=text $(echo "$model" | sed 's/layers=1/layers=2/') tied=0 micro_batches=4 steps=200 eval_every=0"
		"$yoke" train $steps out=$name.long >out 2>&1 || tail -n 12 out
		for n in 2 4; do
			for how in zero=0 zero=1 zero=2 zero=3 stages=2; do
				rm -rf $name.many
				over -n $n "$yoke" train $steps $how out=$name.many >out 2>&1 || tail -n 12 out
				same $name.many $name.long
			done
		done)"
	# shellcheck disable=SC2086 # words
	[ $name = mpich ] || verdict "$name: PMIX_RANK alone, of how many MPI is asked" "$(
		for pretend in 0 1; do
			YOKE_DIST_PRETEND=$pretend YOKE_PLUGIN_PATH=$PWD/modules "$run" -n 2 env -u OMPI_COMM_WORLD_SIZE \
				"$yoke" train $small out=pmix$pretend >out 2>&1 || tail -n 12 out
			same pmix$pretend threads
		done
		refused 'this is rank [01], but not the number of ranks, .* no module yoke_mpi_NAME.so' \
			"$run" -n 2 env -u OMPI_COMM_WORLD_SIZE "$yoke" train $model data=text out=never | grep -v 'rank [01], but')"
	# shellcheck disable=SC2086 # words
	verdict "$name: no module" "$(YOKE_DIST_PRETEND=1 refused "no module yoke_mpi_$name.so" \
		"$run" -n 2 "$yoke" train $model data=text out=never)"
	# shellcheck disable=SC2086 # words
	verdict "$name: unlike versions over machines" "$(
		refused "$unlike" over -n 2 ./mixed "$yoke" train $model data=text out=never)"
	[ ! -e modules/yoke_mpi_$other.so ] || verdict "$name: another MPI says that it is alone" "$(another_mpi)"
	[ $mine -eq $turn ] || [ -n "${YOKE_TEST_LONG:-}" ] || continue
	if [ -x "$ranks" ]; then
		verdict "$name: all collectives, splits and sends among three ranks on two machines" "$(
			YOKE_PLUGIN_PATH=$PWD/modules YOKE_DIST_PRETEND=2 "$run" -n 3 "$ranks" cases >out 2>&1 || cat out)"
		# MPICH's launcher exits with 1, read as SIGHUP, if it sees a rank's socket close
		# before its exit
		verdict "$name: ranks that disagree" "$(over -n 2 "$ranks" disagree >out 2>&1
			code=$?
			[ $code -eq 5 ] || { [ $code -eq 1 ] && grep -q 'EXIT STRING: Hangup' out; } || cat out)"
		verdict "$name: a rank that ends" "$(over -n 3 "$ranks" gone >out 2>&1
			code=$?
			[ $code -ne 0 ] || echo "exit code 0"
			grep -q 'rank 1 has left world before operation 2' out || cat out)"
	fi
	# shellcheck disable=SC2086 # words
	rm -rf long
	YOKE_PLUGIN_PATH=$PWD/modules YOKE_DIST_PRETEND=1 "$run" -n 2 "$yoke" train $long >out 2>&1 &
	launcher=$!
	reaches long 3
	mine=$(below $launcher)
	kill -KILL "$(echo "$mine" | tail -n 1)"
	wait $launcher
	code=$?
	# shellcheck disable=SC2086 # words
	verdict "$name: a rank that is killed ends all" "$(
		[ $code -ne 0 ] || echo "exit code 0"
		left $mine)"
	rm -rf long
	# shellcheck disable=SC2086 # words
	YOKE_DIST_WARN=1 YOKE_DIST_TIMEOUT=10 YOKE_PLUGIN_PATH=$PWD/modules YOKE_DIST_PRETEND=1 "$run" -n 2 "$yoke" train \
		$long >out 2>&1 &
	launcher=$!
	reaches long 3
	mine=$(below $launcher)
	victim=$(echo "$mine" | tail -n 1)
	kill -STOP "$victim"
	await grep -q 'within 10 s (dist.timeout)' out
	kill -KILL "$victim" 2>/dev/null
	wait $launcher
	code=$?
	# shellcheck disable=SC2086 # words
	verdict "$name: one that is stopped is named, on the other machine, too" "$(
		[ $code -ne 0 ] || echo "exit code 0"
		grep -q "within 10 s (dist.timeout): rank [01] (pid $victim)" out || tail -n 3 out
		left $mine)"
	rm -rf long
	# shellcheck disable=SC2086 # words
	"$run" -n 2 "$yoke" train $long >out 2>&1 &
	launcher=$!
	reaches long 3
	mine=$(below $launcher)
	{ kill -KILL $launcher; wait $launcher; } 2>/dev/null
	# shellcheck disable=SC2086 # words
	verdict "$name: ranks end with who started them" "$(left $mine)"
done
echo "1..$count"
exit $failed
