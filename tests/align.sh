#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests reports about matrix units: yoke info shows a device's preferred sizes, and a run's report
# names the layers with other sizes, with measured rates where their products were padded.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
workspace align
export YOKE_PLUGIN_PATH="${YOKE_TEST_MODULES:-}" YOKE_BACKEND=fault

easy_text 120 >text

"$yoke" info >plain 2>&1
YOKE_FAULT_MULTIPLE=16 "$yoke" info >out 2>&1
verdict "yoke info shows a device's preferred multiple" "$(grep -q \
	'^ *matrix products in f32, f64, f16, bf16, .* m a multiple of 16, n a multiple of 16, k a multiple of 16$' out || cat out)"
verdict "and nothing for a device without one" "$(grep multiple plain)"
verdict "as JSON" "$(YOKE_FAULT_MULTIPLE=16 "$yoke" info --json | tr -d ' \n' |
	grep -q '"multiples":{"f32":\[16,16,16\],' || echo 'not there')"
verdict "the setting is listed" "$("$yoke" info --env | grep -q '^YOKE_ALIGN  *int  *1 ' || echo 'not there')"
export YOKE_FAULT_MULTIPLE=16

# run NAME ALIGN: trains, with a report
run()
{
	YOKE_ALIGN=$2 "$yoke" train data=text out="$1" layers=1 heads=2 embed=36 context=32 batch=4 steps=4 lr=1e-2 \
		eval_every=0 log_every=1 report=1 >"$1.out" 2>&1 || cat "$1.out"
	tr -s ' \n' ' ' <"$1.out" >"$1.line"
}

# near A B: are the losses of two runs close?
near()
{
	sed -n 's/.*"loss":\([^,}]*\).*/\1/p' "$1/metrics.jsonl" >a
	sed -n 's/.*"loss":\([^,}]*\).*/\1/p' "$2/metrics.jsonl" >b
	paste a b | awk '{ d = $1 - $2; n += 1; bad += d * d > 1e-8 * $1 * $1 } END { exit !(n >= 4 && !bad) }' ||
		paste a b
}

verdict "a run without padding" "$(run none 0)"
verdict "a run with" "$(run all 2)"
verdict "their losses are alike" "$(near none all)"
# embed 36, three times that for q, k and v; the batch of 4 windows is 128 rows
verdict "the report names the layers" "$(
	for line in 'step/layer0/attn: 108 wants 112, 36 wants 48; 6 products, 6 padded' \
		'step/layer0/mlp: 36 wants 48; 6 products, 6 padded' 'step/head: 36 wants 48; 3 products, 3 padded'; do
		grep -q "misaligned: $line" all.line || { echo "no: $line"; cat all.out; }
	done)"
verdict "layers of other sizes are named, with rates where products were padded" "$(
	[ "$(grep -o 'padded, [0-9.e+]* GFLOP/s before, [0-9.e+]* after' all.line | wc -l)" -ge 3 ] || cat all.out)"
verdict "and without rates where products were not padded" "$(
	grep -q 'misaligned: step/layer0/mlp: 36 wants 48; 6 products, 0 padded misaligned' none.line || cat none.out
	grep 'GFLOP.s before' none.out)"
verdict "in the metrics, too" "$(tail -n 1 all/metrics.jsonl | grep -q \
	'"misaligned":.*"scope":"step/layer0/mlp","sizes":\[\[36,48\]\],"products":6,"padded":6,"flops_before":[0-9]' ||
	tail -n 1 all/metrics.jsonl)"
verdict "products so small are left alone" "$(run rule 1; grep '[1-9] padded' rule.line)"
verdict "in half precision" "$(YOKE_ALIGN=2 "$yoke" train data=text out=half layers=1 heads=2 embed=36 context=32 \
	batch=4 steps=3 precision=bf16-mixed allow_emulated=1 report=1 >half.out 2>&1 || cat half.out
	grep -q 'misaligned: .*36 wants 48' half.out || cat half.out)"
YOKE_FAULT_MULTIPLE=0
verdict "a device without a preferred multiple has no such lines" "$(run without 2; grep misaligned without.out)"
cd .. && rm -rf align.work
echo "1..$count"
