#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests ranks on devices of the native plugins, over the fake drivers: collectives use NCCL or
# RCCL, as threads and processes, and have the bits of the CPU's ranks; when any library call
# fails, all ranks end and name it; without the library they use host memory.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/trainings.sh"
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/fake_gpus.sh"
[ -n "${YOKE_TEST_LONG:-}" ] || backends=$(echo $backends | cut -d ' ' -f $((turn % $(echo $backends | wc -w) + 1)))
awk 'BEGIN { for (i = 0; i < 900; i++) print "line", i % 7, "of a text" }' >text
keys="data=text layers=1 heads=2 embed=16 context=16 batch=2 valid=0 log_every=1 steps=4 telemetry=0"

# problem COMMAND ..: prints its output if it fails
problem()
{
	"$@" >log 2>&1 || grep -v '^ok' log
}

for b in $backends; do
	lib=$([ $b = cuda ] && echo libnccl.so.2 || echo librccl.so.1)
	export YOKE_PLUGIN_PATH="$here/plugins/$b/.libs" YOKE_BACKEND=$b YOKE_FAKE_DEVICES=8 LD_LIBRARY_PATH="$YOKE_TEST_FAKE"
	verdict "$b: doctor names the library" "$("$yoke" doctor >doctor 2>&1; grep -q "collectives .*$lib" doctor || cat doctor)"
	verdict "$b: every collective" "$(problem "$here/tests/ranks.t" devices)"
	verdict "$b: one rank" "$(run $b.one micro_batches=2)"
	verdict "$b: two train by the library" "$(run $b.two ranks=2; same $b.one $b.two)"
	verdict "$b: two processes" "$(run $b.apart ranks=2 spawn=process; same $b.one $b.apart)"
	verdict "$b: two by the host's memory" "$(YOKE_DIST_NATIVE=0 run $b.host ranks=2; same $b.one $b.host)"
	verdict "$b: slow streams" "$(YOKE_FAKE_DELAY=$turn run $b.slow ranks=2; same $b.one $b.slow)"
	for order in fixed fast; do
		calls='ncclCommInitRankConfig:1 ncclCommGetAsyncError:3 async:9 ncclGroupStart:2 ncclGroupEnd:2 ncclAllGather:1 ncclBroadcast:2'
		[ $order = fixed ] && calls="$calls ncclSend:2 ncclRecv:3" || calls="$calls ncclAllReduce:1 ncclReduce:2 ncclReduceScatter:1"
		for call in $calls; do
			YOKE_DIST_ORDER=$order YOKE_FAKE_FAIL=$call:ncclSystemError "$here/tests/ranks.t" once >said 2>&1
			verdict "$b, $order: $call fails: $(tail -n 1 said | cut -c 1-150)" "$([ $? -eq 0 ] || cat said
				name=$([ "${call%:*}" = async ] && echo ncclCommGetAsyncError || echo "${call%:*}")
				grep -q "^YOKE_ERANK: .*$name: ncclSystemError (2) on $b:" said || cat said)"
		done
	done
	YOKE_FAKE_FAIL=ncclGetUniqueId:1:ncclSystemError "$here/tests/ranks.t" once >said 2>&1
	verdict "$b: without an id they go by the host's memory" "$(grep -q ': done$' said || cat said)"
	mkdir -p less && ln -sf "$YOKE_TEST_FAKE"/*.so* less && rm -f less/$lib
	own=$(LD_LIBRARY_PATH=$PWD/less "$yoke" doctor 2>&1 | sed -n 's/.*collectives *//p')
	if [ "$own" ]; then # incompatible with a fake driver
		count=$((count + 1))
		echo "ok $count # SKIP $b: without the library, of which this machine has one: $own"
	else
		verdict "$b: without the library, too" "$(LD_LIBRARY_PATH=$PWD/less "$here/tests/ranks.t" once >said 2>&1
			grep -q ': done$' said || cat said)"
	fi
done
verdict "nothing is left" "$(ls "${TMPDIR:-/tmp}" | grep fake_gpu-)"
echo "1..$count"
exit $failed
