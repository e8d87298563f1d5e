#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests two devices of one OpenCL driver, PoCL's "pthread" twice: they are separate devices,
# compute the same, and share compiled kernels.
set -u
. "${srcdir:-.}/tests/yoke.sh"
here=$PWD
[ -n "${YOKE_TEST_OPENCL:-}" ] || { echo "1..0 # SKIP no OpenCL backend in this build"; exit 0; }
. "${srcdir:-.}/tests/tap.sh"
cd "${TMPDIR:-/tmp}" || exit 99
umask 022
mkdir plugins && cp "$YOKE_TEST_OPENCL" plugins/ && chmod 755 plugins plugins/* || exit 99
export YOKE_PLUGIN_PATH="$PWD/plugins" YOKE_BACKEND=opencl POCL_DEVICES="pthread pthread"
unset YOKE_OPENCL_BINARIES
export YOKE_OPENCL_PLATFORM="Portable Computing Language"
"$yoke" info >info 2>&1
if ! grep -q '^  opencl:1 ' info; then
	echo "1..0 # SKIP no PoCL that makes two devices"
	exit 0
fi
verdict "the two devices are not treated as aliases" "$(grep '; also ' info)"
verdict "the first is chosen" "$(grep -q '^  chosen: opencl:0$' info || cat info)"
awk 'BEGIN { for (i = 0; i < 900; i++) print "line", i % 7, "of a text" }' >text
for i in 0 1; do
	YOKE_DEVICE=opencl:$i "$yoke" train data=text steps=3 report=1 layers=1 heads=2 embed=16 context=16 batch=2 \
		valid=0 out=model$i >log$i 2>&1
	verdict "trains on opencl:$i" "$([ $? -eq 0 ] && grep -q ' opencl:'$i' ' log$i || cat log$i)"
	sed -n 's/^step .*\(loss [0-9.]*\).*/\1/p' log$i >loss$i
done
verdict "to the same losses" "$([ -s loss0 ] && diff loss0 loss1)"
verdict "with the same weights" "$(find model0 -name '*.safetensors' | while read -r f; do
	cmp "$f" "model1${f#model0}" 2>&1; done; find model0 -name '*.safetensors' | grep -q . || ls -R model0)"
# trained OUT KEY=VALUE ..: on both devices, or on one with the same micro-batches
trained()
{
	out=$1
	shift
	"$yoke" train data=text steps=3 layers=1 heads=2 embed=16 context=16 batch=2 valid=0 dropout=0.1 \
		out="$out" "$@" >"$out.log" 2>&1 || cat "$out.log"
}
verdict "both devices train one model" "$(trained both ranks=auto zero=1
	grep -q '^2 ranks' both.log || cat both.log)"
verdict "with the bits of one device" "$(trained alone micro_batches=2
	for file in model optimizer; do cmp both/$file.*.safetensors alone/$file.*.safetensors; done)"
# Parameters are gathered block by block and released, on these devices as on the CPU
shared="data=text layers=4 heads=2 embed=128 context=16 batch=1 valid=0 micro_batches=4"
# said ROW BACKEND: prints the bytes of a row of the plan
said()
{
	# shellcheck disable=SC2086 # words
	# 60 programs, which take 54 s of CPU time if PoCL has none of them in its cache
	[ -s "plan.$2" ] || YOKE_BACKEND=$2 YOKE_DIST_BUCKET=200000 "$yoke" plan $shared ranks=2 zero=3 steps=3 >"plan.$2" 2>&1
	sed -n "s/^$1  *\([0-9][0-9]*\)  .*/\1/p" "plan.$2"
}
verdict "each device has its shard of parameters, and gathers blocks of the other's" "$(
	for row in parameters activations "peak, forward" "peak, step"; do
		one=$(said "$row" cpu)
		two=$(said "$row" opencl)
		[ "$two" -le $((one * 103 / 100)) ] && [ "$two" -ge $((one * 97 / 100)) ] || echo "$row: $two, on the CPU $one"
	done
	shared="$shared steps=2 dropout=0.1 log_every=1 telemetry=0"
	for stage in 0 3; do
		# shellcheck disable=SC2086 # words
		YOKE_DIST_BUCKET=200000 "$yoke" train $shared ranks=2 zero=$stage out=stage$stage >log 2>&1 || cat log
	done
	took=$(sed -n 's/.*"peak_bytes":\([0-9]*\).*/\1/p' stage3/metrics.jsonl | tail -n 1)
	[ "$took" -le $(($(said "peak, step" opencl) * 103 / 100)) ] || echo "took $took, $(said "peak, step" opencl) said"
	for file in model optimizer; do
		cmp stage0/$file.*.safetensors stage3/$file.*.safetensors
	done)"
verdict "the second compiles nothing" "$(grep -q '^  0 programs compiled, [1-9]' log1 || cat log1)"
# Each step is waited for by its log line, so a batch whose upload ends before the kernels of the
# preceding step was prefetched. When threads read, and which of them, is random: one of five runs suffices.
not_ahead()
{
	awk -F'[:,]' '
	/"ph":"X".*"tid":0,.*"ts"/ && !/"name":"(put|read)"/ { for (i = 1; i < NF; i++) if ($i == "\"ts\"") { end[++n] = $(i + 1) + $(i + 3) } }
	/"ph":"X".*"tid":2,.*"name":"put"/ { for (i = 1; i < NF; i++) if ($i == "\"ts\"") up[++m] = $(i + 1) + $(i + 3) }
	END { if (m < 6 || n < 6) print m " copies, " n " kernels of 6 steps"
		for (k = 2; k <= 6; k++) ahead += up[k] < end[int((k - 1) * n / 6)]
		if (!ahead) print "none of " m " copies was over before the step in front of its own" }' traced/trace.json
	grep -i error log
}
for try in 1 2 3 4 5; do
	rm -rf traced
	YOKE_DEVICE=opencl:1 "$yoke" train data=text steps=6 profile=1 report=0 layers=1 heads=2 embed=16 context=16 \
		batch=2 valid=0 prefetch=2 workers=2 log_every=1 save_every=0 checkpoints=0 out=traced >log 2>&1
	[ "$(not_ahead)" ] || ! grep -q '"data worker 1"' traced/trace.json || break
done
verdict "batches go up beside the steps before theirs, try $try" "$(not_ahead)"
verdict "a thread that reads has a lane" "$(grep -q '"data worker 1"' traced/trace.json && grep -q '"read data"' traced/trace.json ||
	head -n 8 traced/trace.json)"
YOKE_DEVICE=opencl:2 "$yoke" info >out 2>&1
verdict "there is no third" "$(grep -q "none is chosen: device 'opencl:2' cannot be used" out || cat out)"
"$yoke" check device opencl:1 --quick --ops layer_norm.f32 >out 2>&1
verdict "the second conforms" "$([ $? -eq 0 ] && grep -q '^ok .*layer_norm f32 .*cases' out || cat out)"
# One device, partitioned: each half has half of its compute units, and the two train one model.
export POCL_DEVICES=pthread POCL_MAX_PTHREAD_COUNT=2
parts()
{
	trained parts ranks=auto zero=1
	grep -q '^2 ranks' parts.log || cat parts.log
	for file in model optimizer; do cmp parts/$file.*.safetensors alone/$file.*.safetensors; done
}
YOKE_OPENCL_SPLIT=2 "$yoke" info >info 2>&1
if grep -q 'not divided' info; then
	skip 'opencl.split' "PoCL makes no sub-devices: $(grep 'not divided' info)"
else
	verdict "opencl.split partitions a device in two" "$([ "$(grep -c '^  opencl:[01] .* 1 units' info)" -eq 2 ] || cat info)"
	verdict "the partitions train one model, with the same bits" "$(YOKE_OPENCL_SPLIT=2; export YOKE_OPENCL_SPLIT
		parts)"
fi
verdict "more partitions than compute units" "$(YOKE_OPENCL_SPLIT=64 "$yoke" info >info 2>&1
	grep -q 'opencl.split=64: .* 2 units' info || cat info)"
cd "$here" || exit 99
export POCL_DEVICES="pthread pthread" YOKE_TEST_DEVICE=1
program opencl " on opencl:1"
echo "1..$count"
