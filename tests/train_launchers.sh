#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke train under launchers: torchrun, where PyTorch is installed, and srun, with a
# one-node cluster that this script starts where Slurm's and MUNGE's daemons are installed and it
# is root. One training, with the bits of two threads; a killed rank ends all. mpirun is in
# tests/train_mpi.sh.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/trainings.sh"
. "${srcdir:-.}/tests/tap.sh"
workspace train_launchers
export YOKE_BACKEND=cpu YOKE_THREADS=1
unset YOKE_CPU_DEVICES YOKE_PLUGIN_PATH
easy_text 120 >text
model="layers=1 heads=2 embed=32 context=32 batch=2 warmup=2 lr=1e-2 dropout=0.1 telemetry=0 log_every=1"
small="data=text $model steps=3"
long="data=text $model steps=1000000 save_every=0 eval_every=0"

# ranks_of RUN: prints the processes that train it, rank 0 first
ranks_of()
{
	for at in /proc/[0-9]*; do
		{ tr '\0' ' ' <"$at/cmdline"; } 2>/dev/null | grep -q "^[^ ]*yoke train .* out=$1 " && echo "${at#/proc/}"
	done
}

none_of()
{
	[ -z "$(ranks_of "$1")" ]
}

# shellcheck disable=SC2086 # words
"$yoke" train $small out=threads ranks=2 >threads.out 2>&1 || cat threads.out

# launched NAME LAUNCHER ..: two ranks, undisturbed and with one killed
launched()
{
	name=$1
	shift
	# shellcheck disable=SC2086 # words
	verdict "$name: one training, with the bits of two threads" "$(
		"$@" "$yoke" train $small out="$name" >out 2>&1 || tail -n 12 out
		[ "$(grep -c '^model in' out)" -eq 1 ] || tail -n 12 out
		same "$name" threads)"
	# shellcheck disable=SC2086 # words
	"$@" "$yoke" train $long out="$name.long" >out 2>&1 &
	launcher=$!
	reaches "$name.long" 3
	mine=$(ranks_of "$name.long")
	kill -KILL "$(echo "$mine" | tail -n 1)"
	wait $launcher
	code=$?
	verdict "$name: a rank that is killed ends all" "$(
		[ "$(echo "$mine" | grep -c .)" -eq 2 ] || echo "ranks: $mine"
		[ $code -ne 0 ] || echo "exit code 0"
		await none_of "$name.long"
		ranks_of "$name.long")"
}

if torchrun --help >/dev/null 2>&1; then
	launched torchrun torchrun --no-python --nproc-per-node 2 --master-port $((20000 + $$ % 20000))
else
	skip torchrun "there is no torchrun (PyTorch)"
fi

# A cluster of this machine; its directory has a short name because of a socket's limit.
start_slurm()
{
	at=$(mktemp -d /tmp/yoke-slurm-XXXXXX) || return 1
	mkdir "$at/spool" "$at/state"
	port=$((20000 + $$ % 20000))
	(umask 077 && head -c 128 /dev/urandom >"$at/key")
	munged --force --socket="$at/munge" --pid-file="$at/munged.pid" --log-file="$at/munged.log" --seed-file="$at/seed" \
		--key-file="$at/key" >"$at/out" 2>&1 || return 1
	cat >"$at/slurm.conf" <<END
ClusterName=yoke
SlurmctldHost=localhost
AuthType=auth/munge
AuthInfo=socket=$at/munge
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/pgid
SlurmUser=root
SlurmctldPidFile=$at/slurmctld.pid
SlurmdPidFile=$at/slurmd.pid
SlurmdSpoolDir=$at/spool
StateSaveLocation=$at/state
TaskPlugin=task/none
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmctldLogFile=$at/slurmctld.log
SlurmdLogFile=$at/slurmd.log
NodeName=localhost CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
END
	export SLURM_CONF="$at/slurm.conf"
	slurmctld -f "$SLURM_CONF" >>"$at/out" 2>&1 && slurmd -N localhost -f "$SLURM_CONF" >>"$at/out" 2>&1 || return 1
	await idle_node
}

idle_node()
{
	sinfo -h -o %T | grep -q idle
}

stop_slurm()
{
	for name in slurmd slurmctld munged; do
		[ -s "$at/$name.pid" ] || continue
		daemon=$(cat "$at/$name.pid")
		kill "$daemon"
		await gone "$daemon"
	done
	rm -rf "$at"
}

PATH=$PATH:/usr/sbin
found=1
for name in munged slurmctld slurmd srun sinfo; do
	command -v $name >/dev/null || found=
done
[ "$(id -u)" -eq 0 ] || found=
if [ -z "$found" ]; then
	skip srun "there is no Slurm with MUNGE to start, or this is not root (slurmctld, slurmd, slurm-client, munge)"
elif start_slurm; then
	launched srun srun -n 2
	stop_slurm
else
	tail -n 3 "$at"/out "$at"/*.log | sed 's/^/# /'
	stop_slurm
	skip srun "its daemons do not start here"
fi
echo "1..$count"
exit $failed
