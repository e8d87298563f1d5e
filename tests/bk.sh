#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the model bk from the command line: training with the toolbox's keys, resuming with the
# same bits, evaluation, generation; a model that can see its targets is detected; the resolvent
# check; refused settings.
set -u
yoke=${YOKE:-$PWD/yoke}
[ -x "$yoke" ] || { echo "1..0 # SKIP $yoke is not built"; exit 0; }
. "${srcdir:-.}/tests/status.sh"
examples=$(cd "${srcdir:-.}/examples" && pwd) || exit 99
cd "${TMPDIR:-/tmp}" || exit 99
rm -rf bk.work && mkdir bk.work && cd bk.work || exit 99
export YOKE_BACKEND=cpu

i=0
while [ $i -lt 150 ]; do
	echo "line $((i % 7)) of a text that is easy to learn"
	i=$((i + 1))
done >text
small='model=bk tokenizer=word layers=2 embed=16 context=16 batch=4 log_every=1 eval_every=0 report=0 progress=0'

# trains NAME KEYS: into a folder of that name
trains()
{
	name=$1
	shift
	# shellcheck disable=SC2086 # words
	"$yoke" train data=text $small out="$name" "$@" >"$name.out" 2>"$name.err"
	verdict "train $*" $?
}

# field NAME FILE: its values, one a line
field()
{
	sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p" "$2"
}

# refused LINE ARGUMENTS: fails with one line that has this
refused()
{
	line=$1
	shift
	"$yoke" "$@" >out 2>err
	[ $? -ne 0 ] && grep -qF "$line" err
	verdict "refused: $line" $?
}

trains whole steps=12 dropout=0.1
trains parts steps=6 dropout=0.1
trains parts steps=12 dropout=0.1 resume=1
cmp whole/model.*.safetensors parts/model.*.safetensors >/dev/null &&
	[ "$(field loss whole/metrics.jsonl)" = "$(field loss parts/metrics.jsonl)" ]
verdict 'resumed: the bits of an unbroken run' $?
grep -q '"experts":\[\[[0-9.,]*\],\[[0-9.,]*\]\]' whole/metrics.jsonl
verdict 'shares of the experts are in the metrics' $?
trains other steps=4 experts=3 active_experts=2 bk_tier=bf16 bk_gradient=hybrid precision=bf16-mixed accumulate=2 recompute=block \
	offload=optimizer vocab=9 limit=1100 allow_emulated=1
grep -q '"size": 9' other/manifest.json && grep -q '"bk_gradient": "hybrid"' other/manifest.json
verdict 'traits and vocabulary are in the manifest' $?
"$yoke" eval whole data=text >out 2>err && grep -q '^loss ' out
verdict "eval: $(grep '^loss' out)" $?
"$yoke" generate whole prompt='line 3 of' tokens=30 seed=2 >a 2>err && [ -s a ] &&
	YOKE_THREADS=1 "$yoke" generate whole prompt='line 3 of' tokens=30 seed=2 >b 2>err && cmp -s a b
verdict 'generate, beyond the window, gives the same text with one thread' $?
for way in YOKE_SPILL=2 YOKE_ALIGN=2 YOKE_PLAN_NAMED=0; do
	export "${way?}"
	trains "$way" steps=3 dropout=0.1 checkpoints=0
	unset "${way%=*}"
	field loss whole/metrics.jsonl | head -n 3 >want
	field loss "$way/metrics.jsonl" | paste -d ' ' want - |
		awk '{ d = $1 / $2 - 1; n += d < 1e-5 && d > -1e-5 } END { exit n != 3 }'
	verdict "$way: losses of a plain run" $?
done
# shellcheck disable=SC2046 # words
"$yoke" train data=text $(echo "$small" | sed 's/ batch=4//') out=limited steps=4 memory=200M batch=auto recompute=block \
	>out 2>limited.err
grep -q '^batch=[0-9]*: the fastest' limited.err
verdict "batch=auto: $(grep '^batch' limited.err)" $?
predicted=$(sed -n 's/^memory=200M: the run is .* \([0-9.]*\) MiB$/\1/p' limited.err)
peak=$(field peak_bytes limited/metrics.jsonl | tail -n 1)
awk "BEGIN { f = ${predicted:-0} * 1048576; p = ${peak:-0}; exit !(f > 0 && p / f < 1.05 && p / f > 0.95) }"
verdict "before step 1: ${predicted:-nothing} MiB, then ${peak:-nothing} bytes" $?
trains both steps=3 bk_side=both
[ "$(grep -c 'bk_side=both ' both.err)" = 1 ] && grep -q '"leaks": true' both/manifest.json &&
	[ "$(grep -c '"leaks":true' both/metrics.jsonl)" = 3 ]
verdict 'both: one warning, which is recorded' $?
refused 'bk_side=both' generate both tokens=3
refused 'active_experts=5 is more than experts=4' train data=text model=bk active_experts=5 out=none
refused 'model=gpt has no eta' train data=text eta=2 out=none
refused 'bk_side=right: must be one of: left both' train data=text model=bk bk_side=right out=none
refused 'vocab=: ' train data=text vocab=100 out=none
# shellcheck disable=SC2086 # words
refused 'model with model=bk' train data=text $small out=whole resume=1 steps=20 eta=2

"$yoke" check model "$examples/resnet-bk.env" >out 2>err
[ $? -eq 0 ] && [ "$(grep -c '^PASS' out)" = 13 ] && [ "$(grep -c '^SKIP' out)" = 1 ] && [ ! -s err ]
verdict "selftest: $(grep -v '^PASS' out)" $?

"$yoke" check resolvent samples=4 n=100 >out 2>err
verdict "check resolvent: $(tail -n 1 out)" $?
"$yoke" check resolvent samples=4 n=100 tolerance=inf sweeps=0 >out 2>err
[ $? -eq 1 ] && grep -q 'f16 FAIL' out
verdict "without sweeps: $(tail -n 1 out)" $?
"$yoke" check resolvent samples=2 n=40 tier=mixed --json >out 2>err
[ $? -eq 0 ] && grep -q '"good": true' out
verdict 'as JSON' $?
"$yoke" check precision data=text model=bk steps=3 >out 2>err
verdict "check precision: $(tail -n 1 out)" $?
refused 'sweeps=65: must be a whole number from 0 to 64' check resolvent sweeps=65
refused 'tolerance=0' check resolvent tolerance=0
refused 'tier=f8: must be one of: f16 bf16 mixed f32 f64' check resolvent tier=f8
echo "1..$count"
