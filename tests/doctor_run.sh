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

config='"prefetch":"0","workers":"0","batch":"4","save_every":"5"'
# about NAME ERROR [DEVICE] [CONFIG] [SETTINGS]: a folder with its run.json. No error: a run that is done; -: one that did not end.
about()
{
	mkdir "$1"
	{
		printf '{"format":1,"device":"%s","driver":"d","host":"h","version":"1","data":"01","steps":100,"settings":{%s},' "${3:-cpu:0}" "${5:-}"
		printf '"config":{%s}' "${4:-$config}"
		case $2 in
		-) ;;
		'') printf ',"ended":{"how":"done","error":""}' ;;
		*) printf ',"ended":{"how":"failed","error":"%s"}' "$2" ;;
		esac
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
	printf '{"step":100,"report":{"wall":%s,"idle":%s,"checkpoints":%s,"devices":{"cpu:0":{"timed":true,"contractions":{"seconds":%s,"intervals":9},"transfers":{"seconds":%s,"intervals":3},"plan":{"seconds":0.1,"intervals":4}}},"plan_misses":%s,"plan_hits":100,"fallbacks":%s},"stage":"report","time":1000011}\n' \
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
	verdict "nothing is wrong with $*" "$([ $code -eq 0 ] && grep -q '^none found of: ' out || { echo "status $code"; cat out; })"
}

about plain ''
steps plain 100 ''
report plain 10 1.9 0.9 1.9 6 8
well plain
about ended 'YOKE_ENOMEM: out of memory on cpu:0: 50.00 MiB requested, 60.00 MiB free; 1 MiB allocated, largest free block 10.00 MiB, largest segment 1 GiB (YOKE_ENOMEM)'
has ended memory 'fragmented'
about small 'out of memory on cpu:0: 50.99 MiB requested, 19.56 MiB free; 451.75 KiB allocated, largest free block 1.52 MiB (YOKE_ENOMEM)'
has small memory 'not enough'
about killed -
steps killed 20 ''
telemetry()
{
	printf '{"time":1000001,"step":20,"rss":%d,"host":{"memory_limit":100,"oom_kills":%d}}\n' $1 $2 >>killed/telemetry.jsonl
}
telemetry 89 2
telemetry 95 2
has killed memory 'near its .*limit'
telemetry 89 2
"$yoke" doctor killed >out 2>&1
verdict "processes that were killed earlier do not count" "$(grep 'memory: ' out)"
telemetry 89 3
has killed memory 'the system killed '
about waits ''
steps waits 100 'more = sprintf(",\"data_wait_s\":%.4f", t * 0.1 * 0.06)'
has waits slow 'waiting for data 6 %'
verdict "the required memory is reported" "$(grep -q 'needs     prefetch > 0 and workers > 0' out && grep -q 'gain .* 1.06 times' out &&
	grep -q 'metrics.jsonl, lines 1[0-9] to 100' out || cat out)"
about reads '' cpu:0 '"prefetch":"2","workers":"1"'
steps reads 100 'more = sprintf(",\"data_wait_s\":%.4f,\"data_read_s\":%.4f,\"data_pad_s\":0", t * 0.1 * 0.06, t * 0.1 * 0.8)'
has reads slow 'waiting for data 6 %'
verdict "more workers for one that reads 80 % of the time" "$(grep -q 'change    more workers (workers=1 now)' out || cat out)"
about sleeps '' cpu:0 '"prefetch":"2","workers":"1"'
steps sleeps 100 'more = sprintf(",\"data_wait_s\":%.4f,\"data_read_s\":%.4f,\"data_pad_s\":0", t * 0.1 * 0.06, t * 0.1 * 0.01)'
has sleeps slow 'waiting for data 6 %'
verdict "not for one that reads 1 % of the time" "$(grep 'change    more workers' out; grep 'token files' out)"
about piped '' cpu:0 '"data":"-","prefetch":"2","workers":"1"'
steps piped 100 'more = sprintf(",\"data_wait_s\":%.4f,\"data_read_s\":%.4f,\"data_pad_s\":0", t * 0.1 * 0.06, t * 0.1 * 0.06)'
has piped slow 'waiting for data 6 %'
verdict "more workers do not read a pipe faster" "$(grep -E 'workers \(|token files' out)"
about waited ''
steps waited 100 'more = sprintf(",\"data_wait_s\":%.4f", t * 0.1 * 0.049)'
well waited
about slows ''
steps slows 100 'rate = t > 75 ? 1000 / 1.2 : 1000'
has slows slow 'steps take 1.20 times'
# saved NAME STEP ..: checkpoints
saved()
{
	folder=$1
	shift
	for step in "$@"; do
		printf '{"step":%d,"event":"saved","text":"0.1 s","time":1000001}\n' "$step"
	done >>"$folder/events.jsonl"
}
# advice WORDS: among the changes and needs of the last output
advice()
{
	grep -E '^  (change|needs) ' out | grep -q -- "$1"
}

about idles ''
steps idles 100 ''
saved idles 50 100
report idles 10 2.1 1.1 2.1 5 40 7
has idles slow 'idle 21 %'
for text in 'transfers take 11 %' 'saving takes 21 %' '40 of 140 ' '7 launches .* CPU'; do
	verdict "and $text" "$(grep -q "slow: .*$text" out || cat out)"
done
verdict "what is gained most comes first" "$(sed -n 's/^  gain      \([0-9.]*\).*/\1/p' out | sort -rnc 2>&1)"
verdict "a longer interval between checkpoints is advised" "$(advice 'save_every=15 (save_every=5 now)' || cat out)"
verdict "the CPU is not advised on the CPU" "$(advice 'backend=cpu' && cat out)"
about gpu '' opencl:0
steps gpu 100 ''
report gpu 10 2.1 1.1 2.1 4 40 7
has gpu slow '7 launches .* CPU'
verdict "it is advised on another device" "$(advice 'backend=cpu' || cat out)"
verdict "one checkpoint at the end is no reason for fewer" "$(grep 'saving takes' out)"
about auto '' cpu:0 '"batch":"auto"'
steps auto 100 ''
report auto 10 5 0.2 0 4 8
"$yoke" doctor auto >out 2>&1
verdict "a larger batch is not advised where batch=auto chose it" "$(grep -q 'idle 50 %' out || cat out
	advice 'larger batch' && cat out)"
about all 'YOKE_ENOMEM: out of memory on cpu:0: 50.00 MiB requested, 1.00 MiB free; 1 MiB allocated, largest free block 1.00 MiB' opencl:0 \
	'"batch":"1","recompute":"auto","memory":"1G","context":"64"'
has all memory 'not enough'
verdict "what the run does already is not advised" "$(advice 'smaller batch\|recompute\|memory=' && cat out
	advice 'context=64' || cat out)"

# lost NAME [CHECKPOINT]: a run of 40 of 100 steps that was killed
lost()
{
	about "$1" -
	steps "$1" 40 ''
	[ -z "${2:-}" ] || printf '{"format":1,"step":%d}\n' "$2" >"$1/manifest.json"
}
lost lost 30
has lost killed 'step 40 of 100'
verdict "its last checkpoint, and how to continue" "$(advice "out=lost resume=1. continues from step 30" || cat out
	grep -q 'last checkpoint: step 30; last record: step 40' out || cat out)"
lost 'two words' 30
"$yoke" doctor 'two words' >out 2>&1
verdict "a folder is quoted for the shell" "$(advice "out='two words' resume=1" || cat out)"
lost "$(printf 'no\377text')" 30
"$yoke" doctor no*text >out 2>&1
verdict "a folder whose name is not UTF-8 is examined" "$(grep -q '^?: killed: ' out || cat out)"
lost unsaved
has unsaved killed 'step 40 of 100'
verdict "without a checkpoint there is nothing to resume" "$(advice 'resume=1' && cat out
	advice 'save_every=5 now' || cat out)"
about wrong 'YOKE_EIO: no space left on device'
steps wrong 20 ''
has wrong failed 'no space left'

# host NAME CPU PROCESS [FILE]: six samples of a host with 4 processors
host()
{
	i=0
	while [ $i -lt 6 ]; do
		i=$((i + 1))
		printf '{"time":%d,"step":%d,"cpu":%s,"process_cpu":%s,"host":{"processors":4}}\n' $((1000002 + i)) $((15 * i)) "$2" "$3"
	done >>"$1/${4:-telemetry.jsonl}"
}
about shared ''
steps shared 100 ''
host shared 0.995 1.5
has shared slow 'other programs had 2.5 of the 4 processors; this run had 1.5'
verdict "its possible gain" "$(grep -q 'gain .* 2.67 times' out || cat out)"
about alone ''
steps alone 100 ''
host alone 0.995 3.9
well alone
about partly '' cpu:0 '"threads":"2"'
steps partly 100 ''
host partly 0.995 2
well partly # it has the two processors that it wants
about ranks '' cpu:0 '"spawn":"process"'
steps ranks 100 ''
host ranks 0.995 2
host ranks 0.995 1.9 telemetry.1.jsonl
well ranks

about nan ''
steps nan 40 ''
sed -i '31,$s/"loss":[0-9.]*,/"lr":0.1,/; 1,30s/"loss"/"lr":0.1,"loss"/' nan/metrics.jsonl
has nan loss 'not finite from step 31'
about grows ''
awk 'BEGIN { for (t = 1; t <= 20; t++) printf "{\"step\":%d,\"loss\":%d.5,\"stage\":\"train\",\"time\":%d}\n", t, 5 + t, t }' >grows/metrics.jsonl
has grows loss 'from 6.5 to 25.5'
about over '' cpu:0 '"dropout":"0"'
steps over 100 ''
for valid in '20 3.0' '40 2.5' '60 2.0' '80 2.2' '100 2.6'; do
	printf '{"step":%d,"val_loss":%s,"stage":"valid","time":1000011}\n' ${valid% *} "${valid#* }"
done >>over/metrics.jsonl
has over loss 'from 2 at step 60 to 2.6'
verdict "advice against overfitting" "$(advice 'dropout=' || cat out)"

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
	about hangs -
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
# a model so small that on any machine what is around its kernels takes most of the time; where other programs run, the data may
# be late
"$yoke" train data=text threads=1 layers=1 heads=1 embed=4 context=4 batch=1 out=single steps=40 valid=0 log_every=1 \
	progress=0 2>err
has single '\(low use\|slow\)' '\(the device computes\|idle\|waiting for data\)'
for key in rss throttled memory_limit oom_kills; do
	verdict "telemetry has $key, which is looked at" "$(grep -q "\"$key\":" single/telemetry.jsonl || cat single/telemetry.jsonl)"
done
verdict "a larger batch is advised" "$(grep -q 'change    .*a larger batch (batch=1 now)' out || cat out)"
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
