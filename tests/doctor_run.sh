#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke doctor RUN: each condition is found in a run that has it, whose records are written
# here or by yoke train, and none is found in healthy runs.
set -u
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/yoke.sh"
workspace doctor_run
trap 'rm -rf "${TMPDIR:-/tmp}/doctor_run.work"' EXIT
export YOKE_BACKEND=cpu

# about NAME ERROR: a folder with its run.json; of no error, a run that did not end
about()
{
	mkdir "$1"
	{
		echo '{"format":1,"device":"cpu:0","driver":"d","host":"h","version":"1","data":"01","settings":{},'
		echo '"config":{"prefetch":"0","workers":"0","batch":"4","save_every":"5"}'
		[ -z "$2" ] || printf ',"ended":{"how":"failed","error":"%s"}' "$2"
		echo '}'
	} >"$1/run.json"
}

# steps NAME N EXPRESSION: lines of training, in which t is the step, with more members by awk's printf
steps()
{
	awk -v n="$2" "BEGIN { for (t = 1; t <= n; t++) { more = \"\"; rate = 1000; $3
		printf \"{\\\"step\\\":%d,\\\"loss\\\":%.6f,\\\"tokens_per_s\\\":%g%s,\\\"stage\\\":\\\"train\\\",\\\"time\\\":%.3f}\\n\",
			t, 5 / t, rate, more, 1000000 + t * 0.1 } }" >>"$1/metrics.jsonl"
}

# report NAME WALL IDLE TRANSFERS SAVING COMPUTE MISSES
report()
{
	printf '{"step":100,"report":{"wall":%s,"idle":%s,"checkpoints":%s,"devices":{"cpu:0":{"timed":true,"contractions":{"seconds":%s,"pieces":9},"transfers":{"seconds":%s,"pieces":3},"plan":{"seconds":0.1,"pieces":4}}},"plan_misses":%s,"plan_hits":100,"fallbacks":%s},"stage":"report","time":1000011}\n' \
		"$2" "$3" "$5" "$6" "$4" "$7" "${8:-0}" >>"$1/metrics.jsonl"
}

# has NAME CONDITION TEXT [OTHER]
has()
{
	"$yoke" doctor "$1" ${4:+"$4"} >out 2>&1
	code=$?
	verdict "$1: $2" "$([ $code -eq 1 ] && grep "^$1: $2: " out | grep -q "$3" && grep -q '^  evidence  ' out || { echo "status $code"; cat out; })"
}

# well NAME [OTHER]
well()
{
	"$yoke" doctor "$@" >out 2>&1
	code=$?
	verdict "nothing is wrong with $*" "$([ $code -eq 0 ] && grep -q '^none found of: memory, ' out || { echo "status $code"; cat out; })"
}

about plain ''
steps plain 100 ''
report plain 10 1.9 0.9 1.9 6 8
well plain
about ended 'YOKE_ENOMEM: out of memory on cpu:0: 50.00 MiB asked for, 60.00 MiB free; 1 MiB allocated, largest free block 10.00 MiB, largest segment 1 GiB (YOKE_ENOMEM)'
has ended memory 'fragmented'
about small 'out of memory on cpu:0: 50.99 MiB asked for, 19.56 MiB free; 451.75 KiB allocated, largest free block 1.52 MiB (YOKE_ENOMEM)'
has small memory 'not enough'
about killed ''
steps killed 20 ''
telemetry()
{
	printf '{"time":1000001,"step":20,"rss":%d,"host":{"memory_limit":100,"oom_kills":%d}}\n' $1 $2 >>killed/telemetry.jsonl
}
telemetry 89 2
telemetry 95 2
has killed memory 'near its .*limit'
telemetry 89 2
well killed # what was killed before is not of this run
telemetry 89 3
has killed memory 'the system killed '
about waits ''
steps waits 100 'more = sprintf(",\"data_wait_s\":%.4f", t * 0.1 * 0.06)'
has waits slow 'waiting for data 6 %'
verdict "the required memory is reported" "$(grep -q 'needs     prefetch > 0 and workers > 0' out && grep -q 'gain .* 1.06 times' out &&
	grep -q 'metrics.jsonl, lines 1[0-9] to 100' out || cat out)"
about waited ''
steps waited 100 'more = sprintf(",\"data_wait_s\":%.4f", t * 0.1 * 0.049)'
well waited
about slows ''
steps slows 100 'rate = t > 75 ? 1000 / 1.2 : 1000'
has slows slow 'steps take 1.20 times'
about idles ''
steps idles 100 ''
report idles 10 2.1 1.1 2.1 5 40 7
has idles slow 'idle 21 %'
for text in 'transfers take 11 %' 'saving takes 21 %' '40 of 140 ' '7 launches .* CPU'; do
	verdict "and $text" "$(grep -q "slow: .*$text" out || cat out)"
done
verdict "what is gained most comes first" "$(sed -n 's/^  gain      \([0-9.]*\).*/\1/p' out | sort -rnc 2>&1)"
about low ''
steps low 100 ''
report low 10 5 0.2 0 4.9 4
has low 'low use' '49 %.*idle'
about leaks ''
steps leaks 100 ''
awk 'BEGIN { for (t = 1; t <= 100; t++)
	printf "{\"step\":%d,\"epoch\":%d,\"pool_allocated\":%d,\"rss\":%d,\"stage\":\"memory\",\"time\":%d}\n",
		t, t, 1e8 + t * 3e5 + t % 7 * 1e6, 2e8 + t % 11 * 1e7, 1000000 + t }' >>leaks/metrics.jsonl
has leaks leak 'pool_allocated of memory grows by 2[5-9]'
verdict "what goes up and down does not" "$(grep 'leak: rss' out)"
about fails 'YOKE_EDEVICE: cpu:0: a launch failed'
has fails launch YOKE_EDEVICE
about one ''
about two ''
steps one 30 ''
steps two 30 ''
well one two
sed -i '17s/"loss":0.294118/"loss":0.294119/' two/metrics.jsonl
has one inconsistent 'step 17' two
sed -i 's/"driver":"d"/"driver":"avx2"/' two/run.json
has one inconsistent 'step 17' two
verdict "other differences are reported" "$(grep -q 'other differences: driver' out || cat out)"
sed -i 's/"batch":"4"/"batch":"8"/' two/run.json
well one two
if command -v flock >/dev/null 2>&1; then
	about hangs ''
	steps hangs 50 ''
	for rank in '9' '1 7' '2 9'; do
		name=telemetry.${rank% *}.jsonl
		[ "$rank" != 9 ] || name=telemetry.jsonl
		printf '{"time":1000001,"step":50,"collective":{"seq":%d,"op":"sum","since":1}}\n' "${rank#* }" >"hangs/$name"
	done
	exec 9<hangs
	flock 9 # as the process of the run does
	has hangs hang 'its last record is'
	verdict "the late rank is named" "$(grep -q 'rank 1 waits in collective' out || cat out)"
	exec 9<&-
else
	skip 'hang' 'no flock'
fi

# ---- by yoke train ----

easy_text 200 >text
small="data=text threads=1 layers=1 heads=2 embed=32 context=32 batch=8 log_every=1 progress=0 report=0"
# shellcheck disable=SC2086 # words
"$yoke" train out=base steps=12 valid=0 $small 2>err && cp -r base other
well_but_slow=$("$yoke" doctor base other 2>&1 | grep -v ': slow: \|low use' | grep '^base: \|^other: ')
verdict "a run, and its copy, are consistent" "$well_but_slow"
# A run in another way: that of another instruction set is consistent where it has the same bits, which base and avx2 do;
# one whose layers are taken apart has others.
# shellcheck disable=SC2086
YOKE_CPU_ISA=base "$yoke" train out=isa steps=12 valid=0 $small 2>err
"$yoke" doctor base isa >out 2>&1
for run in base isa; do sed -n 's/.*"loss":\([^,]*\),.*/\1/p' $run/metrics.jsonl >$run.losses; done
verdict "another instruction set: $(cmp -s base.losses isa.losses && echo 'the same bits' || echo 'other bits')" "$(if cmp -s base.losses isa.losses; then
	grep inconsistent: out; else grep -q '^base: inconsistent: ' out && grep -q 'other differences: driver, settings' out || cat out; fi)"
# shellcheck disable=SC2086
YOKE_PLAN_NAMED=0 "$yoke" train out=apart steps=12 valid=0 $small 2>err
has base inconsistent 'loss differs from that of apart at step' apart
verdict "what else differs" "$(grep -q 'other differences: settings$' out || cat out)"
# a model so small that on any machine what is around its kernels takes most of the time
"$yoke" train data=text threads=1 layers=1 heads=1 embed=4 context=4 batch=1 out=single steps=40 valid=0 log_every=1 \
	progress=0 2>err
has single '\(low use\|slow\)' '\(the device computes\|idle\)'
for key in rss throttled memory_limit oom_kills; do
	verdict "telemetry has $key, which is looked at" "$(grep -q "\"$key\":" single/telemetry.jsonl || cat single/telemetry.jsonl)"
done
verdict "a larger batch is advised" "$(grep -q 'change    a larger batch (batch=1 now)' out || cat out)"
# a writer that gives each batch after a step; a batch is 8 windows of 32 bytes, and two of them come first
paced pipe 257 256 12 <text | "$yoke" train out=pipe data=- format=u8 vocab=128 steps=12 threads=1 layers=1 heads=2 \
	embed=32 context=32 batch=8 log_every=1 progress=0 report=0 2>err || cat err
has pipe slow 'waiting for data'
# the pool's cap is met behind the first step, when a validation wants more
YOKE_MEMORY=20M "$yoke" train data=text out=nomem steps=6 eval_every=2 layers=2 heads=2 embed=32 context=32 batch=300 \
	progress=0 >err 2>&1
if [ -f nomem/run.json ]; then
	has nomem memory 'not enough\|fragmented'
else
	verdict "a memory limit that is reached during the run" "$(cat err)"
fi
fault=${YOKE_TEST_MODULES#*:}
if [ -e "$fault/yoke_fault.so" ]; then
	mkdir plugins && cp "$fault/yoke_fault.so" plugins/ && chmod -R go-w plugins
	# shellcheck disable=SC2086
	YOKE_PLUGIN_PATH="$PWD/plugins" YOKE_BACKEND=fault YOKE_FAULT_RUN=200 "$yoke" train out=broken steps=30 $small 2>err
	has broken launch YOKE_EDEVICE
	# shellcheck disable=SC2086
	YOKE_PLUGIN_PATH="$PWD/plugins" YOKE_BACKEND=fault YOKE_FAULT_STUCK=200 "$yoke" train out=stuck steps=30 \
		telemetry=0 $small 2>err &
	stuck=$!
	await grep -qs '"stage":"train"' stuck/metrics.jsonl
	verdict "a run that is not stuck yet" "$("$yoke" doctor stuck 2>&1 | grep ': hang: ')"
	sed -i 's/"time":1/"time":/' stuck/metrics.jsonl # long ago
	has stuck hang 'its last record is'
	kill -9 $stuck
	wait $stuck 2>/dev/null
else
	skip 'a launch that fails, one that never ends' 'no fault backend'
fi
"$yoke" doctor base --json >out 2>&1
verdict "--json" "$(grep -q '"conditions": \[' out || cat out)"
"$yoke" doctor base other base >out 2>&1
verdict "three runs" "$([ $? -eq 2 ] || cat out)"
"$yoke" doctor nowhere >out 2>&1
verdict "no run: $(cat out)" "$([ $? -eq 1 ] && [ "$(wc -l <out)" -eq 1 ] || cat out)"
echo "1..$count"
