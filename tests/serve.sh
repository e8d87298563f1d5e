#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke serve and yoke serve batch: each path, bad requests, streams, clients that hang up, keys, queues, signals.
# tests/serve.py sends the requests.
set -u
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/yoke.sh"
tests=$(cd "${srcdir:-.}" && pwd)/tests
workspace serve
needs_http

easy_text 120 >text
small="data=text threads=1 context=256 batch=4 progress=0 report=0 telemetry=0"
# shellcheck disable=SC2086 # words
"$yoke" train out=trained steps=30 tokenizer=bpe vocab=300 layers=1 heads=2 embed=32 lr=0.01 $small 2>err &&
	"$yoke" export trained out=model format=hf 2>err && mkdir adapters &&
	"$yoke" train init=model lora=2 lora_targets=all out=adapters/tuned steps=4 lr=0.1 $small 2>err
verdict "a model and its adapters" "$([ $? -eq 0 ] || cat err)"
printf '{%% for m in messages %%}{{ m.role }}: {{ m.content }}\n{%% endfor %%}{%% if add_generation_prompt %%}assistant: {%% endif %%}' >template

# requests PART ARGUMENT ..: the verdicts of tests/serve.py
requests()
{
	part=$1
	shift
	python3 "$tests/serve.py" "$part" "$url" "$@" >py.out 2>&1
	code=$?
	verdicts <py.out
	verdict "all requests of the part '$part' were sent" "$([ $code -eq 0 ] || { echo "status $code"; tail -5 py.out; })"
}

# stopped TITLE: ends the server, which must have status 0 and write nothing but its address
stopped()
{
	kill "$pid"
	wait "$pid"
	code=$?
	verdict "$1" "$([ $code -eq 0 ] && [ ! -s "$name.err" ] && [ "$(wc -l <"$name.out")" -eq 1 ] || { echo "status $code"; cat "$name.out" "$name.err"; })"
}

amount=6
[ "${YOKE_TEST_LONG:-0}" = 0 ] || amount=125
start_server one model embed=model adapter=tuned=adapters/tuned template=template
requests all "$(pwd)/model" "$yoke" "$amount"
stopped "SIGTERM ends the server with status 0, and it wrote only its address"

YOKE_LOG=serve
export YOKE_LOG
start_server log trained
printf '{"prompt":"line 3 of","max_tokens":3}' | python3 -c '
import sys, urllib.request
for path in ("/v1/completions", "/v1/secret-path"):
	try:
		urllib.request.urlopen(urllib.request.Request(sys.argv[1] + path, sys.stdin.buffer.read() or b"{}")).read()
	except OSError as e:
		pass' "$url"
await has log.err 1 'other 404'
unset YOKE_LOG
kill "$pid"
wait "$pid"
verdict "a run is served too, and the log has numbers, paths and times, but no text: $(grep -c request log.err) lines" "$(
	grep -q 'request [0-9]* /v1/completions 200 [0-9]* ms' log.err && ! grep -q -e line -e secret log.err || cat log.err)"

# ---- keys ----

echo 0123456789abcdef-key >key && chmod 600 key
start_server keyed model key_file=key
requests key 0123456789abcdef-key
stopped "a server with a key file"
YOKE_API_KEY=another-key-0123456 start_server keyed2 model
requests key another-key-0123456
stopped "a server with a key in the environment"

# ---- queue, signals ----

start_server queue model embed=model slots=4 queue=1
requests queue
stopped "a server with a short queue"
start_server drain model
requests drain "$pid"
wait "$pid"
verdict "SIGTERM ends a server with requests in progress with status 0" "$(code=$?; [ $code -eq 0 ] || { echo "status $code"; cat drain.err; })"

export YOKE_HTTP_IDLE=1000
start_server slow model timeout=1
unset YOKE_HTTP_IDLE
requests slow
stopped "a server with slow clients"

# left: files that are there, with those of other folders whose name has the server's number
left()
{
	find . "$HOME" "$XDG_CACHE_HOME" ! -name 'killed.*' ! -name left.before ! -name left.after
	find /tmp /dev/shm /run -maxdepth 1 -name "*$pid*" 2>/dev/null
}
start_server killed model
left >left.before
requests replies killed.json
kill -9 "$pid"
wait "$pid" 2>/dev/null
left >left.after
verdict "kill -9 of the server leaves no file" "$(diff left.before left.after)"
start_server again model port="${url##*:}"
requests replies killed.json
stopped "and its port can be bound at once"

# ---- faults ----

if [ -n "${YOKE_TEST_MODULES:-}" ]; then
	faults="700 1500 2500"
	[ "${YOKE_TEST_LONG:-0}" = 0 ] || faults=$(seq 150 37 4000)
	export YOKE_PLUGIN_PATH="$YOKE_TEST_MODULES" YOKE_BACKEND=fault
	for k in 0 $faults; do
		YOKE_FAULT_RUN=$k start_server "fault$k" model
		requests replies replies.json
		kill "$pid"
		wait "$pid"
		verdict "launch $k fails" "$(code=$?; [ $code -eq 0 ] || { echo "status $code"; cat "$name.err"; })"
	done
	YOKE_FAULT_RUN=1500 YOKE_FAULT_STICKY=1 start_server broken model
	requests broken
	kill "$pid"
	wait "$pid"
	verdict "all launches fail" "$(code=$?; [ $code -eq 0 ] || { echo "status $code"; cat "$name.err"; })"
	YOKE_FAULT_STUCK=150 start_server stuck model slots=1 queue=2 timeout=3
	requests stuck
	kill "$pid"
	requests draining
	signalled_until_ended TERM "$pid"
	wait "$pid"
	verdict "a second SIGTERM ends the server at once" "$(code=$?; [ $code -eq 143 ] || { echo "status $code"; cat "$name.err"; })"
	unset YOKE_BACKEND
	export YOKE_PLUGIN_PATH=
fi

# ---- wrong arguments ----

refuses()
{
	title=$1 want=$2
	shift 2
	"$yoke" serve "$@" >out 2>&1
	code=$?
	verdict "$title: $(head -1 out)" "$([ $code -eq "$want" ] && [ "$(wc -l <out)" -eq 1 ] || { echo "status $code"; cat out; })"
}
refuses "no model" 2
refuses "a model that is not there" 1 nowhere port=0
refuses "another address without a key" 1 model host=0.0.0.0 port=0
refuses "no address" 1 model host=nobody port=0
refuses "no port" 2 model port=65536
refuses "an unknown key" 2 model tokens=4
refuses "a body of 65 MiB" 2 model body=65M
refuses "an adapter without a name" 1 model adapter=adapters/tuned port=0
refuses "an adapter that is not there" 1 model adapter=a=nowhere port=0
refuses "two adapters of one name" 1 model adapter=a=adapters/tuned adapter=a=adapters/tuned port=0
chmod 644 key
refuses "a key that others may read" 1 model key_file=key port=0
YOKE_API_KEY=short refuses "a short key" 1 model port=0
start_server taken model
refuses "a port in use" 1 model port="${url##*:}"
stopped "the server on that port goes on"

# ---- files of requests ----

line()
{
	printf '{"custom_id":"%s","method":"POST","url":"/v1/completions","body":{"prompt":"line %s of","max_tokens":8,"temperature":0}}\n' "$1" "$1"
}
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do line $i; done >requests.jsonl
{
	echo 'no JSON'
	echo '{"custom_id":"a","method":"GET","url":"/v1/models"}'
	echo '{"custom_id":"b","method":"POST","url":"/v1/completions","body":{"prompt":""}}'
	echo '{"custom_id":"c","method":"POST","url":"/metrics","body":{}}'
} >>requests.jsonl
"$yoke" serve batch model in=requests.jsonl out=replies.jsonl threads=1 2>err
verdict "a batch" "$([ $? -eq 0 ] || cat err)"
python3 - <<'END' >py.out 2>&1
import json
lines = [json.loads(l) for l in open('replies.jsonl')]
ids = [l['custom_id'] for l in lines]
def verdict(title, wrong):
    print('ok ' + title if not wrong else 'not ok %s\n# %s' % (title, wrong))
verdict('replies are in the order of the requests', ids != [str(i) for i in range(1, 13)] + [None, 'a', 'b', 'c'] and ids)
verdict('replies have the status and the body', [l for l in lines[:12] if l['error'] or l['response']['status_code'] != 200 or
                                               l['response']['body']['usage']['completion_tokens'] != 8])
verdict('bad lines have errors', [l for l in lines[12:] if not l['error'] and l['response']['status_code'] != 400])
END
verdicts <py.out
head -5 replies.jsonl >part.jsonl
head -6 replies.jsonl | tail -1 | head -c 40 >>part.jsonl
"$yoke" batch model in=requests.jsonl out=part.jsonl threads=1 2>err
verdict "a batch that was ended goes on after its last whole line" "$([ $? -eq 0 ] && python3 -c '
import json
a, b = ([json.loads(l) for l in open(f)] for f in ("replies.jsonl", "part.jsonl"))
def text(l):
	return l["custom_id"], l["response"] and l["response"]["body"].get("choices")
assert a[:5] == b[:5] and [text(l) for l in a] == [text(l) for l in b]' 2>>err || cat err)"
"$yoke" batch model in=requests.jsonl 2>err
verdict "a batch without out=" "$([ $? -eq 1 ] && [ "$(wc -l <err)" -eq 1 ] || cat err)"
echo "1..$count"
