#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke dashboard: access control, the contents of its pages, and that it ends with its run.
# tests/dashboard.py sends the requests.
set -u
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/yoke.sh"
tests=$(cd "${srcdir:-.}" && pwd)/tests
workspace dashboard
needs_http

easy_text 120 >text
small="data=text threads=1 layers=1 heads=2 embed=32 context=32 batch=8 log_every=1 progress=0 report=0"
# shellcheck disable=SC2086 # words
"$yoke" train out=a steps=12 eval_every=4 profile=1 $small 2>err
verdict "a run" "$([ $? -eq 0 ] || cat err)"
mkdir evil && printf '{"step":1,"loss":2,"<script>alert(1)</script>":3,"time":1,"stage":"train"}\n' >evil/metrics.jsonl

# serve NAME ARGUMENT ..: its address in $url
serve()
{
	name=$1
	shift
	"$yoke" dashboard "$@" >"$name.out" 2>"$name.err" &
	pid=$!
	pids="$pids $pid"
	await grep -q 'http://' "$name.out"
	url=$(sed -n 's/^yoke dashboard: //p' "$name.out")
}

serve one a evil
verdict "the dashboard prints one line, with its address: $(wc -l <one.out)" "$([ "$(wc -l <one.out)" -eq 1 ] || cat one.out one.err)"
verdict "the token is in no argument, and in a file of mode $(stat -c %a a/dashboard.json)" "$(
	token=${url##*=}
	tr '\0' ' ' <"/proc/$pid/cmdline" | grep "$token"
	[ "$(stat -c %a a/dashboard.json)" = 600 ] && grep -q "$token" a/dashboard.json || cat a/dashboard.json)"
python3 "$tests/dashboard.py" "$url" a evil "$yoke" >py.out 2>&1
code=$?
verdicts <py.out
verdict "all requests were sent" "$([ $code -eq 0 ] || echo "status $code")"
port=${url%/*} port=${port##*:}
"$yoke" dashboard a port="$port" >out 2>&1
verdict "a port in use: $(cat out)" "$([ $? -eq 1 ] && [ "$(wc -l <out)" -eq 1 ] && grep -q "port $port" out || cat out)"
kill "$pid"
wait "$pid"
verdict "SIGTERM ends the dashboard with status 0, and its file is removed" "$([ $? -eq 0 ] && [ ! -e a/dashboard.json ] || ls a)"

refuses()
{
	title=$1 want=$2
	shift 2
	"$yoke" dashboard "$@" >out 2>&1
	[ $? -eq "$want" ] && [ "$(wc -l <out)" -eq 1 ] && verdict "$title: $(cat out)" '' || verdict "$title" "$(cat out)"
}
refuses "no run" 1 nowhere
refuses "another address without a token of one's own" 1 a bind=0.0.0.0
refuses "no address" 1 a bind=nobody
refuses "no port" 2 a port=65536
echo short >token && chmod 600 token
refuses "a short token" 1 a token_file=token
echo 0123456789abcdef0123 >token && chmod 644 token
refuses "a token that others may read" 1 a token_file=token
chmod 600 token
serve own a bind=0.0.0.0 token_file=token
verdict "an address for other machines gives a warning" "$(grep -q 'warn.*bind=.*encrypted' own.err && [ "${url##*=}" = 0123456789abcdef0123 ] ||
	cat own.out own.err)"
kill "$pid"
wait "$pid"

# ---- beside a run ----

# shellcheck disable=SC2086 # words
"$yoke" train out=live steps=100000 dashboard=1 checkpoints=0 $small 2>live.err &
run=$!
pids="$pids $run"
await [ -s live/dashboard.json ]
child=$(sed -n 's/.*"pid":\([0-9]*\).*/\1/p' live/dashboard.json)
verdict "yoke train dashboard=1 starts it: $(grep -o 'yoke dashboard: http://[^?]*' live.err)" "$(
	grep -q 'yoke dashboard: http' live.err && kill -0 "$child" || cat live.err)"
python3 "$tests/dashboard.py" --grows "$(sed -n 's/^yoke dashboard: //p' live.err)" >out 2>&1
verdict "the page receives lines while the run writes them" "$([ $? -eq 0 ] || cat out)"
kill -9 "$run"
wait "$run" 2>/dev/null
await gone "$child"
verdict "SIGKILL of the run ends it, too" "$(! kill -0 "$child" 2>/dev/null || echo "$child is left")"
# shellcheck disable=SC2086 # words
"$yoke" train out=alone steps=100000 dashboard=1 checkpoints=0 $small 2>alone.err &
run=$!
pids="$pids $run"
await [ -s alone/dashboard.json ]
child=$(sed -n 's/.*"pid":\([0-9]*\).*/\1/p' alone/dashboard.json)
kill -9 "$child"
before=$(wc -l <alone/metrics.jsonl)
await has alone/metrics.jsonl $((before + 1)) ''
verdict "SIGKILL of the page ends no run" "$([ "$(wc -l <alone/metrics.jsonl)" -gt "$before" ] || cat alone.err)"
kill "$run"
wait "$run"
verdict "the dashboard ends with its run, and no child is left" "$([ $? -eq 0 ] && ! kill -0 "$child" 2>/dev/null || cat alone.err)"
serve lost live
python3 "$tests/dashboard.py" --state lost "$url" >out 2>&1
verdict "the page shows that the run is lost" "$([ $? -eq 0 ] || cat out)"
# shellcheck disable=SC2086
"$yoke" train out=taken steps=2 dashboard="${port:-1}" $small 2>err
verdict "a run whose dashboard ended before" "$([ $? -eq 0 ] || cat err)"
lost_port=${url%/*} lost_port=${lost_port##*:}
# shellcheck disable=SC2086
"$yoke" train out=taken2 steps=2 dashboard="$lost_port" $small 2>err
verdict "a port in use does not end a run" "$([ $? -eq 0 ] && [ -f taken2/manifest.json ] || cat err)"
kill "$pid"
wait "$pid"
echo "1..$count"
