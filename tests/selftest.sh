#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the device self-test: an implementation with wrong results is found before it is used;
# then the next implementation is used, the op is decomposed or falls back, or the device is given
# up. Findings are available to the next process, to doctor and to reports, and the losses are
# right all the time.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
workspace selftest
export YOKE_PLUGIN_PATH="${YOKE_TEST_MODULES:-}" YOKE_BACKEND=fault YOKE_SELFTEST=1
easy_text 60 >text
keys="data=text layers=1 heads=2 embed=32 context=32 batch=4 steps=3 report=1 log_every=1 eval_every=0 warmup=1 lr=1e-2"

# train NAME [SETTING ..]: prints a line when it fails, or when the losses are not those of the CPU
train()
{
	name=$1
	shift
	rm -rf "$name"
	env "$@" "$yoke" train $keys out="$name" >/dev/null 2>"$name.err" || cat "$name.err"
	sed -n 's/.*"step":\([0-9]*\),"loss":\([^,}]*\).*/\1 \2/p' "$name/metrics.jsonl" >"$name.losses"
	awk 'NR == FNR { want[$1] = $2; n++; next }
		{ d = $2 - want[$1]; m++; if (!(d * d < 1e-8)) print "step " $1 ": " $2 ", want " want[$1] }
		END { if (n != 3 || m != 3) print n " and " m " losses" }' cpu.losses "$name.losses"
}

# has FILE COUNT WORDS: prints a line unless that many lines contain the words
has()
{
	[ "$(grep -c -- "$3" "$1")" -eq "$2" ] || { echo "not $2 lines with '$3':"; cat "$1"; }
}

# doctor STATUS [SETTING ..]
doctor()
{
	want=$1
	shift
	env "$@" "$yoke" doctor >doctor.out 2>doctor.err
	[ $? -eq "$want" ] || cat doctor.out doctor.err
}

# the reference run
YOKE_BACKEND=cpu "$yoke" train $keys out=cpu >/dev/null 2>&1
sed -n 's/.*"step":\([0-9]*\),"loss":\([^,}]*\).*/\1 \2/p' cpu/metrics.jsonl >cpu.losses

verdict 'no warning of a device that works' "$(train well; has well.err 0 selftest)"
verdict 'each is tested once' "$(train log YOKE_SELFTEST=force YOKE_LOG=selftest
	sed -n 's/.*: checks //p' log.err | sort | uniq -d
	has log.err 1 'checks attention f32$'; has log.err 1 'checks contract with a map f32$')"
verdict 'and not by the next process' "$(train again YOKE_LOG=selftest; has again.err 0 'checks')"
verdict 'and no op is tested when the self-test is off' "$(train never YOKE_SELFTEST=0 YOKE_FAULT_HOST=1 YOKE_LOG=selftest
	has never.err 0 'checks')"
verdict "nor is the built-in CPU backend tested" "$(train own YOKE_BACKEND=cpu YOKE_LOG=selftest; has own.err 0 'checks')"
verdict 'but by force' "$(train force YOKE_BACKEND=cpu YOKE_SELFTEST=force YOKE_LOG=selftest
	has force.err 1 'checks attention f32'; has force.err 0 warn)"
verdict 'convolutions, too, by their own names' "$(YOKE_BACKEND=cpu YOKE_SELFTEST=force YOKE_LOG=selftest "${yoke%/*}/examples/net" >net.out 2>net.err ||
	cat net.err
	has net.err 1 'checks conv f32'; has net.err 1 'checks conv_w f32'; has net.err 0 'checks device'; has net.err 0 warn)"
verdict 'an unknown value is reported' "$(train word YOKE_SELFTEST=2; has word.err 1 'YOKE_SELFTEST=2 ')"

# the second implementation is correct
flaw='YOKE_FAULT_WRONG=attention,contract YOKE_FAULT_IMPLS=2'
# shellcheck disable=SC2086 # words
{
	verdict 'two wrong implementations' "$(train two $flaw
		has two.err 1 'warn: selftest: fault:0: attention f32 by first gives wrong results.*; `yoke check device fault:0 --ops attention.f32` shows more$'
		has two.err 1 'warn: selftest: fault:0: contract f32 by first gives wrong results'
		has two.err 1 'warn: selftest: fault:0: contract with a map f32 by first gives wrong results.*--ops contract.f32. shows more$'
		has two.err 3 warn
		has two.err 1 'failed the self-test: attention f32 by first'
		has two.err 1 '; 0 fallbacks')"
	verdict 'are known afterwards' "$(train known $flaw YOKE_LOG=selftest; has known.err 0 checks
		has known.err 1 'failed its self-test before'; has known.err 1 '; 0 fallbacks')"
	verdict 'and listed' "$(doctor 0 $flaw; has doctor.out 1 '^  fault:0  attention  *f32  first  result 0 '
		has doctor.out 1 '^  fault:0  contract with a map  f32  first  result 0 ')"
	verdict 'also as JSON' "$(env $flaw "$yoke" doctor --json >doctor.out 2>&1
		has doctor.out 3 '"implementation": "first"')"
	verdict 'and in the report' "$(grep -o '"quarantine":.*' known/metrics.jsonl | tail -n 1 >report
		has report 1 '"op":"attention","dtype":"f32","implementation":"first"')"
	verdict 'wrong implementations are used when nothing is tested' "$(train blind $flaw YOKE_SELFTEST=0 >blind.problem
		has blind.problem 1 '^step 2'; has blind.err 0 warn)"
	verdict 'and tested again by force' "$(train new $flaw YOKE_SELFTEST=force; has new.err 3 'gives wrong')"
}

# no other implementation exists
verdict 'a wrong op is decomposed' "$(train apart YOKE_FAULT_WRONG=attention,layer_norm_backward
	has apart.err 2 'gives wrong results and is not used'; has apart.err 1 '; 0 fallbacks')"
verdict 'or falls back' "$(train back YOKE_FAULT_WRONG=gather,scatter_add
	has back.err 2 'gives wrong results and is not used'; has back.err 1 'warn: plan: .*does not run gather'
	has back.err 2 'fell back: gather f32')"
verdict 'which strict forbids' "$(train strict YOKE_STRICT=1 YOKE_FAULT_WRONG=gather >/dev/null
	has strict.err 1 '^yoke train: .*gather')"
# the 16th is layer_norm's, which is tested after maps and gather; the 20th is of a contraction
verdict 'a launch that fails counts as wrong' "$(train run YOKE_FAULT_RUN=16
	has run.err 1 'layer_norm f32 fails and is not used: run failed: .*fault.run: call 16'
	has run.err 0 'fell back')"
verdict 'but for this process only' "$(doctor 0 YOKE_FAULT_RUN=16; has doctor.out 0 layer_norm)"
verdict 'so does a kernel that cannot be built' "$(train build YOKE_FAULT_PREPARE=16
	has build.err 1 'layer_norm f32 fails and is not used: prepare failed: .*fault.prepare: call 16'
	has build.err 0 'fell back')"
verdict 'contractions that fail cost the device' "$(train dead YOKE_FAULT_RUN=20 >/dev/null
	has dead.err 1 '^yoke train: fault:0 cannot be used: it failed its self-test: contract f32')"
verdict 'too little memory does not' "$(train memory YOKE_FAULT_SEGMENT=3; has memory.err 0 'is not used')"

# without maps the device cannot be used
verdict 'a device is left' "$(train left YOKE_BACKEND=fault,cpu YOKE_FAULT_WRONG=map
	has left.err 1 'warn: train: fault:0 cannot be used: it failed its self-test: map f32 is wrong; .*next device')"
verdict 'and not chosen again' "$(train avoided YOKE_BACKEND=fault,cpu YOKE_FAULT_WRONG=map
	has avoided.err 1 'fault:0 refused: it failed its self-test: map f32 is wrong; `yoke check device fault:0` shows more, YOKE_SELFTEST=force')"
verdict 'info shows it, with the reason and the command that shows more' "$(
	YOKE_BACKEND=fault,cpu YOKE_FAULT_WRONG=map "$yoke" info >info.out 2>&1 || echo "status $?"
	has info.out 1 '^  fault:0  '; has info.out 1 '^  *not used: it failed its self-test: map f32 is wrong; `yoke check device fault:0` shows more'
	has info.out 1 '^  chosen: cpu:0')"
verdict 'also if the device is the only one' "$(
	YOKE_FAULT_WRONG=map "$yoke" info --json >info.out 2>&1 || echo "status $?"
	has info.out 1 '"id": "fault:0"'; has info.out 1 '"refused": "it failed its self-test: map f32')"
verdict 'and the suggested conformance command works' "$(
	YOKE_FAULT_WRONG=map "$yoke" check device fault:0 --quick --ops map.f32,softmax.f32 >conform.out 2>conform.err
	[ $? -eq 1 ] || echo "status $?"
	has conform.out 1 '^not ok .* map f32'; grep -q '^# map.f32.*: result' conform.out || cat conform.out; has conform.out 1 '^ok .* softmax f32'
	cat conform.err)"
verdict 'nor when it is requested by name' "$(train named YOKE_FAULT_WRONG=map >/dev/null
	has named.err 1 "^yoke train: backend 'fault' cannot be used: .*self-test"
	doctor 1 YOKE_FAULT_WRONG=map; has doctor.out 1 '^  fault .*it failed its self-test: map f32')"
verdict 'which is an error the first time, too' "$(train first YOKE_FAULT_WRONG=map,reduce >/dev/null
	has first.err 1 '^yoke train: fault:0 cannot be used: it failed its self-test')"

# cached verdicts are verified
for file in "$XDG_CACHE_HOME"/yoke/*.krn; do
	printf 'x' | dd of="$file" bs=1 seek=200 conv=notrunc 2>/dev/null
done
verdict 'a corrupt memory is none' "$(train corrupt $flaw YOKE_LOG=selftest; has corrupt.err 3 'gives wrong')"
chmod 755 "$XDG_CACHE_HOME/yoke" && chmod a+w "$XDG_CACHE_HOME/yoke"
verdict 'nor a verdict file that others may write' "$(train open YOKE_LOG=selftest; has open.err 1 'checks attention f32$')"
chmod 700 "$XDG_CACHE_HOME/yoke"

if [ -n "${YOKE_TEST_OPENCL:-}" ]; then
	YOKE_PLUGIN_PATH=$(dirname "$YOKE_TEST_OPENCL")
	YOKE_BACKEND=opencl
	unset YOKE_OPENCL_BINARIES
	if "$yoke" info 2>/dev/null | grep -q '^  opencl:0'; then
		verdict 'OpenCL passes' "$(train opencl YOKE_LOG=selftest; has opencl.err 0 'warn: selftest'
			has opencl.err 1 'checks map f32')"
		verdict 'and tests and compiles nothing afterwards' "$(train second YOKE_LOG=selftest
			has second.err 0 checks; has second.err 1 ' 0 programs compiled')"
	else
		skip 'OpenCL' 'no OpenCL device'
	fi
fi
echo "1..$count"
