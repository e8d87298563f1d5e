#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests mixed precision from the command line: training in both half formats, with accumulation,
# dropout and scopes kept in f32; resuming with the same bits, also after overflows; a device that
# converts; refused settings; the output of info and of the precision check. On the CPU, and a
# sample on OpenCL.
set -u
opencl=${YOKE_TEST_OPENCL:-}
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/status.sh"
workspace precision
export YOKE_BACKEND=cpu

# field NAME FILE: prints its values, one per line
field()
{
	sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p" "$2"
}

# bits A B: do two models have the same bytes, including states, and the same losses?
bits()
{
	cmp "$1"/model.*.safetensors "$2"/model.*.safetensors >/dev/null &&
		cmp "$1"/optimizer.*.safetensors "$2"/optimizer.*.safetensors >/dev/null &&
		[ "$(field loss "$1/metrics.jsonl")" = "$(field loss "$2/metrics.jsonl")" ]
}

easy_text 120 >text
small="layers=1 embed=32 context=32 batch=8 lr=1e-2 warmup=5 log_every=1 valid=0 schedule=constant"

# ---- runs ----

# trains NAME ARGUMENT ..: in one run and in two; the loss decreases
trains()
{
	name=$1
	shift
	# shellcheck disable=SC2086 # words
	"$yoke" train data=text out="$name" steps=20 $small allow_emulated=1 "$@" 2>err &&
		"$yoke" train data=text out="$name.parts" steps=9 $small allow_emulated=1 "$@" 2>err &&
		"$yoke" train out="$name.parts" resume=1 steps=20 2>err
	verdict "$name: $*" $?
	bits "$name" "$name.parts"
	verdict "$name: resumed with the same bits" $?
	field loss "$name/metrics.jsonl" | awk 'NR == 1 { a = $1 } { b = $1 } END { exit !(b < 0.7 * a) }'
	verdict "$name: the loss falls to $(field loss "$name/metrics.jsonl" | tail -n 1)" $?
}
trains fp32 precision=32-true
trains bf16 precision=bf16-mixed
trains fp16 precision=fp16-mixed
trains more precision=16-mixed keep_f32='norm*,head' accumulate=2 dropout=0.1 snapshot_every=4
trains mlp precision=bf16-mixed model=mlp history=4
# AdamW is invariant to the scale of gradients
for p in fp32 fp16-mixed; do
	# shellcheck disable=SC2086 # words
	"$yoke" train data=text out=sgd.$p steps=6 optimizer=sgd precision=$p allow_emulated=1 $small 2>err
	field loss sgd.$p/metrics.jsonl >loss.$p
done
paste -d ' ' loss.fp32 loss.fp16-mixed | awk '{ d = $1 / $2 - 1; if (d > .001 || d < -.001) exit 1 } END { exit NR != 6 }'
verdict "sgd uses unscaled gradients" $?
for name in bf16 fp16; do
	! bits fp32 $name && [ "$(field loss fp32/metrics.jsonl | tail -n 1)" != "$(field loss $name/metrics.jsonl | tail -n 1)" ]
	verdict "$name is not fp32" $?
	paste -d ' ' fp32/metrics.jsonl $name/metrics.jsonl >both
	field loss fp32/metrics.jsonl >a && field loss $name/metrics.jsonl >b
	paste -d ' ' a b | awk '{ d = $1 / $2 - 1; if (d > .01 || d < -.01) exit 1 }'
	verdict "$name: losses are within 1 % of fp32's" $?
done
grep -q '"dtype":"F32"' fp16/model.*.safetensors && ! grep -q 'F16' fp16/model.*.safetensors
verdict "masters are f32" $?
[ "$(field scale fp16/metrics.jsonl | sort -u)" = 65536.0 ] && ! grep -q scale bf16/metrics.jsonl
verdict "fp16 has a scale, bf16 none" $?

# ---- overflows ----

# So few tokens that the largest scale overflows.
over="layers=1 heads=2 embed=32 context=2 batch=1 lr=1e-2 warmup=4 log_every=1 valid=0 loss_scale=8388608"
# shellcheck disable=SC2086 # words
"$yoke" train data=text out=over steps=16 precision=fp16-mixed allow_emulated=1 $over 2>err
verdict "a scale that is too large" $?
[ "$(field skipped over/metrics.jsonl | tail -n 1)" -ge 2 ] &&
	grep -q '^step 1/16  loss [0-9.]*  overflow in [a-z0-9.]*  scale 4.1943e+06, 1 skipped' err
verdict "is halved, and the tensor is named: $(grep -m 1 '^step 1' err)" $?
# skipped steps do not advance the schedule: 5 steps of warm-up are 5 steps that were not skipped
skipped=$(field skipped over/metrics.jsonl | tail -n 1)
field lr over/metrics.jsonl | awk -v s="$skipped" 'NR <= s + 1 && NR > 1 && $1 != was { exit 1 } { was = $1 }
	NR == s + 2 && !($1 > first) { exit 1 } NR == 1 { first = $1 }'
verdict "$skipped steps skipped: the learning rate waits" $?
# shellcheck disable=SC2086 # words
"$yoke" train data=text out=over.parts steps=3 precision=fp16-mixed allow_emulated=1 $over 2>err &&
	"$yoke" train out=over.parts resume=1 steps=16 2>err
[ "$(field skipped over.parts/metrics.jsonl)" = "$(field skipped over/metrics.jsonl)" ]
verdict "a run stopped between overflows resumes with its scale" $?
# with a schedule that does not depend on the number of steps
"$yoke" train data=text out=over.flat steps=16 schedule=constant precision=fp16-mixed allow_emulated=1 $over 2>err &&
	"$yoke" train data=text out=over.half steps=3 schedule=constant precision=fp16-mixed allow_emulated=1 $over 2>err &&
	"$yoke" train out=over.half resume=1 steps=16 2>err && bits over.flat over.half
verdict "and with the same bits" $?

# ---- what is refused ----

# refused WORD ARGUMENT ..: status 1, one line with the word, and no files are left
refused()
{
	word=$1
	shift
	"$yoke" "$@" data=text out=none $small >out 2>err
	[ $? -eq 1 ] && [ "$(grep -c '^yoke' err)" -eq 1 ] && grep -q "^yoke.*$word" err && [ ! -e none/manifest.json ]
	verdict "'$word': $(grep '^yoke' err)" $?
	rm -rf none
}
native=$(YOKE_CPU_ISA=avx2 "$yoke" info 2>/dev/null | awk '$1 == "contract" { print $4, $5 }')
if [ "$native" = "emulated emulated" ]; then
	export YOKE_CPU_ISA=avx2
	refused 'use precision=fp32, or allow_emulated=1' train precision=bf16-mixed
	refused 'use precision=fp32, or allow_emulated=1' train precision=16-mixed
	unset YOKE_CPU_ISA
fi
refused 'pattern "nrom" .* named no scope' train precision=bf16-mixed allow_emulated=1 keep_f32=nrom
refused 'precision=fp32: .*precision=bf16-mixed' check precision precision=fp32
refused 'not even batch=1 fits' check precision memory=256K
"$yoke" train precision=fp8 data=text >out 2>err
[ $? -eq 2 ] && grep -q 'precision=fp8: must be one of: fp32 32-true bf16-mixed' err
verdict "$(head -n 1 err)" $?
"$yoke" check precison >out 2>err
[ $? -eq 2 ]
verdict "$(head -n 1 err)" $?

# ---- what is printed ----

"$yoke" info >out 2>err
awk '$1 == "op" && $2 == "f32" && $5 == "bf16" { title = 1 } $1 == "contract" { row = $2 == "native" && $6 == "native" && $10 == "-" }
	$1 == "softmax" { named = $2 == "native" && $4 == "native" && $5 == "native" && $6 == "-" }
	END { exit !(title && row && named) }' out
verdict "info has the table: $(grep '^  contract' out)" $?
"$yoke" info --json --dtypes 2>err | grep -q '"op": "contract"' && ! "$yoke" info --json 2>err | grep -q contract
verdict "the same in JSON on request" $?
for p in bf16-mixed fp16-mixed; do
	# shellcheck disable=SC2086 # words
	"$yoke" check precision data=text precision=$p steps=20 $small >out 2>err
	verdict "validate $p: $(tail -n 1 out)" $?
	grep -q '^gradient layer0 .* off ' out && grep -q '^gradient wte .* off ' out && grep -q '^peak memory ' out &&
		grep -q '^tokens/s ' out && grep -q '^overflows .* 0 ' out && grep -q "^$p trains like fp32; " out
	verdict "its table" $?
done
"$yoke" check precision data=text precision=fp16-mixed steps=8 --json $small >out 2>err
grep -q '"good": true' out && grep -q '"layers"' out && [ ! -e validate ]
verdict "as JSON; and nothing is saved" $?

# ---- on OpenCL ----

if [ -n "$opencl" ] && [ -e "$opencl" ]; then
	YOKE_PLUGIN_PATH=$(dirname "$opencl") YOKE_BACKEND=opencl
	export YOKE_PLUGIN_PATH YOKE_BACKEND
	# shellcheck disable=SC2086 # words
	if "$yoke" train data=text out=probe steps=1 $small checkpoints=0 >out 2>err; then
		trains fp16.opencl precision=fp16-mixed
		field loss fp16/metrics.jsonl >a && field loss fp16.opencl/metrics.jsonl >b
		paste -d ' ' a b | awk '{ d = $1 / $2 - 1; if (d > .01 || d < -.01) exit 1 }'
		verdict "losses as the CPU's" $?
	else
		echo "ok $((count += 1)) - OpenCL # SKIP no device: $(head -n 1 err)"
	fi
else
	echo "ok $((count += 1)) - OpenCL # SKIP no module"
fi
echo "1..$count"
