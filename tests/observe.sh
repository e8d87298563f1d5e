#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke train with observation: losses have the same bits with all of it on and off, traces
# are JSON that nests correctly, a memory snapshot is displayed, bad keys and bad files are one
# line each.
set -u
yoke=${YOKE:-$PWD/yoke}
[ -x "$yoke" ] || { echo "1..0 # SKIP $yoke is not built"; exit 0; }
. "${srcdir:-.}/tests/tap.sh"
export YOKE_BACKEND=cpu
YOKE_PROFILE_LIMITS=0 YOKE_LOG=warn
export YOKE_PROFILE_LIMITS YOKE_LOG
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
i=0
while [ $i -lt 300 ]; do
	echo "line $i of a text that is read again and again, $((i * i))"
	i=$((i + 1))
done >"$work/text"
model='layers=1 embed=32 heads=2 context=16 batch=4 steps=12 dropout=0.1 eval_every=5 save_every=6 log_every=1'

# train FOLDER KEY=VALUE ..: prints the losses; the output is in FOLDER.said
train()
{
	folder=$1
	shift
	# shellcheck disable=SC2086 # words
	"$yoke" train data="$work/text" $model out="$work/$folder" training_log="$work/log" "$@" >"$work/$folder.said" 2>&1 ||
		cat "$work/$folder.said"
	grep -o '"\(val_\)\{0,1\}loss":[^,}]*' "$work/$folder/metrics.jsonl"
}

train off telemetry=0 >"$work/off.losses"
train on telemetry=0.01 memory_history=1 profile=1,1,1,3,2 profile_table=5:host report=1 >"$work/on.losses"
verdict "losses with dropout have the same bits with all observation on and off" "$(
	cmp "$work/off.losses" "$work/on.losses"
	[ "$(wc -l <"$work/on.losses")" -ge 12 ] || cat "$work/on.losses")"
verdict "telemetry=0 writes nothing, an interval writes lines" "$(
	[ ! -e "$work/off/telemetry.jsonl" ] || echo "it is there"
	[ "$(grep -c '"step":12' "$work/on/telemetry.jsonl")" -ge 1 ] || cat "$work/on/telemetry.jsonl")"
verdict "a profile of two cycles, with the phases of a step" "$(
	[ "$(echo "$work"/on/trace/*)" = "$work/on/trace/cycle0.json $work/on/trace/cycle1.json" ] || ls "$work/on/trace"
	for part in data forward loss backward optimizer; do
		grep -q "\"name\":\"$part\"" "$work/on/trace/cycle0.json" || echo "no $part"
	done
	[ "$(grep -c ' others$' "$work/on.said")" -eq 2 ] || cat "$work/on.said")"
if command -v python3 >/dev/null; then
	verdict "Python reads them; events nest, in order" "$(python3 - "$work"/on/trace/*.json 2>&1 <<'END'
import json, sys
for path in sys.argv[1:]:
    t = json.load(open(path))
    open_, last = {}, {}
    starts, ends = set(), set()
    for e in t["traceEvents"]:
        if e["ph"] == "s":
            starts.add(e["id"])
        if e["ph"] == "f":
            ends.add(e["id"])
        if e["ph"] != "X":
            continue
        lane, begin, end = e["tid"], round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000)
        if begin < last.get(lane, 0):
            print(path, "not in order", e)
        last[lane] = begin
        stack = open_.setdefault(lane, [])
        while stack and stack[-1] <= begin:
            stack.pop()
        if stack and end > stack[-1]:
            print(path, "does not nest", e)
        stack.append(end)
    if starts != ends or not open_:
        print(path, "arrows", starts ^ ends)
END
	)"
else
	skip 'traces by Python' 'there is no python3'
fi

# says WORDS COMMAND ..: the command fails with one line that contains the words
says()
{
	words=$1
	shift
	"$@" >"$work/out" 2>"$work/err" && echo "it went well: $*"
	[ "$(wc -l <"$work/err")" -eq 1 ] && grep -qF -- "$words" "$work/err" || cat "$work/err"
}

for bad in 'profile=1,1,1,0,1' 'profile=1,2' 'profile=1,1,1,1,x' 'profile=2' 'profile_table=x' 'profile_table=5:nonsense' \
	'telemetry=-1'; do
	verdict "$bad" "$(says "${bad%%=*}" "$yoke" train data="$work/text" out="$work/bad" "$bad")"
done
verdict "nothing is left of those" "$([ ! -e "$work/bad" ] || ls "$work/bad")"

verdict "a snapshot is shown" "$("$yoke" info memory "$work/on/memory.json" >"$work/shown" 2>&1 || cat "$work/shown"
	for words in 'at the peak' 'at the end' 'arena of an evaluation' ' alloc, '; do
		grep -q "$words" "$work/shown" || echo "no $words"
	done)"
head -c 3000 "$work/on/memory.json" >"$work/short"
sed 's/"alloc"/"aloc"/' "$work/on/memory.json" >"$work/kind"
sed 's/"live":{"segments":\[/"live":{"segments":[[99,1],/' "$work/on/memory.json" >"$work/live"
echo '{"format":"yoke memory"}' >"$work/empty"
echo '{}' >"$work/none"
verdict "a truncated snapshot" "$(says short "$yoke" info memory "$work/short")"
verdict "a snapshot with an unknown event" "$(says kind: "$yoke" info memory "$work/kind")"
verdict "a snapshot whose events contradict its blocks" "$(says live: "$yoke" info memory "$work/live")"
verdict "a snapshot without tables" "$(says empty: "$yoke" info memory "$work/empty")"
verdict "none" "$(says none: "$yoke" info memory "$work/none")"
verdict "a file that is not there" "$(says nothing "$yoke" info memory "$work/nothing")"
verdict "YOKE_SYNC=nonsense" "$(YOKE_SYNC=nonsense says 'there are 0, 1 and warn' "$yoke" train data="$work/text" out="$work/x")"
echo "1..$count"
exit $failed
