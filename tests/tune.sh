#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke tune: correct variants are timed and recorded, those that are wrong, crash or hang
# are found and named, and a second call continues where the first one ended.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
cd "${TMPDIR:-/tmp}" || exit 99
export YOKE_PLUGIN_PATH="${YOKE_TEST_MODULES:-}" YOKE_FAULT_IMPLS=4
[ -z "${YOKE_TEST_OPENCL:-}" ] || YOKE_PLUGIN_PATH="$YOKE_PLUGIN_PATH:$(dirname "$YOKE_TEST_OPENCL")"
small=contract.f32.nt.8x64x8x1

# tune STATUS DEVICE [argument ..]: prints a line unless it ends with that status
tune()
{
	want=$1
	shift
	"$yoke" tune "$@" >out 2>err
	status=$?
	[ $status -eq "$want" ] || { echo "status $status"; cat out err; }
}

# has FILE PATTERN ..: prints a line for each missing pattern
has()
{
	file=$1
	shift
	for pattern; do
		grep -q -- "$pattern" "$file" || { echo "no '$pattern' in:"; cat "$file"; }
	done
}

verdict 'a class by itself' "$(tune 0 fault --only $small)$(has out '^time first [1-9][0-9]*$' \
	'^time fourth [1-9]' '^done$')"
verdict 'it keeps nothing' "$(ls "$XDG_CACHE_HOME"/yoke/tuning-* 2>/dev/null)"
verdict 'a wrong one is found, and only that' "$(YOKE_FAULT_WRONG=contract YOKE_FAULT_IMPL=2 tune 0 fault \
	--only $small)$(has out '^wrong second contract\.f32\.[0-9]*: result' '^time first' '^time third')$(
	grep -e '^time second' -e '^wrong [^s]' out)"
verdict 'one that is left out' "$(tune 0 fault --only $small --without first,third)$(has out '^time second' \
	'^time fourth')$(grep -e ' first' -e ' third' out)"
verdict 'one that dies is not survived' "$(YOKE_FAULT_RUN=1 YOKE_FAULT_HOW=segv YOKE_FAULT_IMPL=3 \
	"$yoke" tune fault --only $small >out 2>err && echo survived)$(tail -n 1 out | grep -v '^try third$')"

# In child processes: the third hangs or dies. Only few, small classes have several implementations.
export YOKE_FAULT_IMPLS_MAX=8
for how in segv exit hang; do
	budget=
	[ $how != hang ] || budget='--budget 25'
	# shellcheck disable=SC2086 # words
	verdict "one that ends by $how" "$(YOKE_TUNE_LIMIT=10 YOKE_FAULT_RUN=1 YOKE_FAULT_HOW=$how \
		YOKE_FAULT_IMPL=3 tune 0 fault $budget)$(has out 'third fails' 'first [0-9.]* ms' ' ms$\| fails$' \
		'[1-9][0-9]* classes measured now, 0 ')$(has err 'third')"
	kept=$(ls "$XDG_CACHE_HOME"/yoke/tuning-*)
	verdict "and is kept as such" "$(has "$kept" '^contract\.f32\.[a-z0-9.]* .*=[1-9][0-9]* .*third=fails$' \
		'^end [1-9]')"
	all=$(grep -c '^contract' "$kept")
	[ $how = hang ] || rm "$kept"
	[ $how = hang ] || verdict "in each of $all classes" "$(has out ', 0 left')"
done
cp "$kept" before
n=$(grep -c '^contract' before)
verdict 'a budget ends a class that hangs' "$(YOKE_FAULT_RUN=1 YOKE_FAULT_HOW=hang YOKE_FAULT_IMPL=3 \
	tune 0 fault --budget 1)$(has out "0 classes measured now, $n earlier, [1-9][0-9]* left")$(
	cmp before "$kept"; cat err)"
verdict 'a budget of nothing measures nothing' "$(tune 0 fault --budget 0)$(
	has out '^fault:0: 0 classes measured now')$(cmp before "$kept")"
verdict 'it says how long it would take' "$(has out \
	'^fault:0: [1-9][0-9]* classes to measure, about [1-9][0-9]* \(s\|min\), .* 0 s$')"
verdict 'goes on where it was' "$(YOKE_FAULT_WRONG=contract YOKE_FAULT_IMPL=2 tune 0 fault)$(
	has out "now, $n earlier, 0 left" 'second wrong')$(has err 'second .*wrong')"
verdict 'and keeps what was there' "$(sed '$d' before | diff - "$kept" | grep '^<')$(has "$kept" \
	'^contract.*second=wrong$')"

# Products of a model: with 8 tokens and width 8, training and generation need qkv of a batch, qkv
# of one token, and its gradient by the weights.
export YOKE_FAULT_IMPLS_MAX=512
printf 'one two three four five six seven eight nine ten eleven twelve' >text
YOKE_BACKEND=cpu "$yoke" train data=text steps=1 layers=1 heads=1 embed=8 context=8 batch=1 valid=0 out=model \
	>out 2>err || cat err
rm "$kept"
# with which the search ends if the machine is too busy
verdict 'minutes=0.02 ends what a model runs' "$(tune 0 fault model=model minutes=0.02)$(has out \
	'^fault:0: \([1-9][0-9]* classes to measure of model, about [1-9][0-9]* s\|the time limit .* of model .*\)')$(
	grep -q 'time limit' out || has out 'classes measured now, 0 ')"
verdict 'what a model runs' "$(tune 0 fault model=model)$(has out ', 0 left\|nothing to measure')$(has "$kept" \
	'^contract\.f32\.nt\.8x64x8x1 ' '^contract\.f32\.nt\.1x64x8x1 ' '^contract\.f32\.tn\.64x8x8x1 ')"
n=$(grep -c '^contract' "$kept")
verdict "is $n classes, none of another kind" "$(grep -e '^contract\.b' -e 'x1536x' "$kept"; [ "$n" -lt 30 ] ||
	cat "$kept")"
verdict 'and is kept' "$(tune 0 fault model=model)$(has out \
	"^fault:0: all $n classes of model were measured .*; $kept")$(grep ' left' out)"
verdict 'the search is reported and ends at the time limit' "$(tune 0 fault model=model --budget 0)$(has out \
	'^fault:0: collecting .* of model; ' \
	'^fault:0: the time limit .* of model ')"
verdict 'nothing to choose from' "$(tune 0 cpu)$(has out \
	'^cpu:0 has .*one implementation .*nothing to measure')$(sed 1d out)"
verdict 'no model' "$(tune 1 fault model=nowhere)$(has err 'nowhere')"
verdict 'no minutes' "$(tune 2 fault minutes=soon)$(has err "got 'soon'")$(tune 2 fault minutes=0)"
verdict 'a key twice' "$(tune 2 fault minutes=1 minutes=2)$(has err "'minutes=2' .*'minutes=1'")$(
	tune 2 fault model=a model=b)"
verdict 'no key' "$(tune 2 fault modell=x)$(has err "'modell=x'")"
if script --version 2>/dev/null | grep -q util-linux; then
	rm "$kept"
	script -qefc "'$yoke' tune fault model=model" /dev/null >typed </dev/null
	verdict 'while it measures it says how long it takes' "$(tr '\r' '\n' <typed >out; has out \
		'^1 of [1-9][0-9]* classes, about [1-9][0-9]* \(s\|min\) left')"
else
	skip 'while it measures' 'no script of util-linux'
fi
export YOKE_FAULT_IMPLS_MAX=8

cp before "$kept"
sed '3s/=/ /' before >"$kept"
verdict 'a damaged file is ignored, with its line' "$(tune 0 fault --budget 0)$(has out 'now, 0 ')$(
	has err 'tuning-[0-9a-f]*\.txt:3: ')"
YOKE_CACHE=0 "$yoke" tune fault >out 2>err
verdict 'without a folder it says so' "$([ $? -eq 1 ] || echo "status")$(has err 'YOKE_CACHE')"
verdict 'no class' "$(tune 2 fault --only contract.f32.nn.0x3x3x1)$(has err 'contract.f32.nn.0x3x3x1')"
verdict 'no seconds' "$(tune 2 fault --budget soon)$(has err "got 'soon'")"
verdict 'no option' "$(tune 2 fault --fast)$(has err "'--fast'")"
verdict 'no device' "$(tune 1 nochip)$(has err 'no such backend')"

if "$yoke" info 2>/dev/null | grep -q '^  opencl:0'; then
	verdict 'opencl' "$(tune 0 opencl --only contract.f32.nn.64x64x64x1)$(has out '^done')$(grep '^wrong' out)"
	verdict 'presets are measured' "$([ "$(grep -c '^time' out)" -ge 2 ] || cat out)"
else
	skip 'opencl' 'no OpenCL device'
fi
echo "1..$count"
exit $failed
