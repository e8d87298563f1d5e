#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke serve on an OpenCL device, with a tiny model: requests at once have the texts they have one by one,
# log-probabilities are near those of the CPU, no operation runs on the CPU instead, and SIGTERM ends it. In
# the long run also: paged.t and batching.t on that device, which test that a sequence's bits do not depend on others.
set -u
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/yoke.sh"
[ -n "${YOKE_TEST_OPENCL:-}" ] || { echo '1..0 # SKIP YOKE_TEST_OPENCL does not name the module'; exit 0; }
YOKE_PLUGIN_PATH=$(dirname "$YOKE_TEST_OPENCL")
export YOKE_PLUGIN_PATH
tests=$(pwd)/tests
workspace serve_device
needs_http
"$yoke" info 2>&1 | grep -q '^  opencl:0 ' || { echo '1..0 # SKIP there is no OpenCL device'; exit 0; }

easy_text 120 >text
"$yoke" train out=trained steps=30 tokenizer=bpe vocab=300 layers=1 heads=2 embed=32 lr=0.01 data=text threads=1 context=128 \
	batch=4 progress=0 report=0 telemetry=0 backend=cpu 2>err
verdict 'a model' "$([ $? -eq 0 ] || cat err)"

# served BACKEND: its replies in BACKEND.json; lines about what is not as it should be
served()
{
	start_server "$1" trained "backend=$1" slots=4
	[ -n "$url" ] || return
	python3 - "$url" "$1.json" <<'END' 2>&1
import concurrent.futures, json, sys, urllib.request

def ask(n):
    body = {'prompt': 'line %d of the text' % n * (1 + n % 3), 'max_tokens': 6 + n, 'temperature': 0, 'logprobs': 1}
    r = urllib.request.Request(sys.argv[1] + '/v1/completions', json.dumps(body).encode(), {'Content-Type': 'application/json'})
    return json.load(urllib.request.urlopen(r, timeout=600))['choices'][0]

alone = [ask(n) for n in range(4)]
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    together = list(pool.map(ask, range(4)))
if alone != together:
    print('alone', alone, 'together', together)
json.dump(alone, open(sys.argv[2], 'w'))
END
	kill "$pid"
	wait "$pid"
	code=$?
	[ $code -eq 0 ] || echo "status $code"
	grep -v '^opencl:0: ' "$1.err" # progress of compiling
}
verdict 'on the CPU, requests at once have the texts they have one by one' "$(served cpu)"
verdict 'on the device, too, and nothing runs on the CPU instead' "$(served opencl)"
verdict 'log-probabilities of the first tokens are those of the CPU' "$(python3 - <<'END' 2>&1
import json
a, b = ([c['logprobs']['token_logprobs'][0] for c in json.load(open(f))] for f in ('cpu.json', 'opencl.json'))
if max(abs(x - y) for x, y in zip(a, b)) > 1e-3:
    print(a, b)
END
)"

# passes PROGRAM ARGUMENT: a test program on the device
passes()
{
	YOKE_BACKEND=opencl "$tests/$1.t" "$2" >"$1.log" 2>&1
	verdict "$1.t on the device: $(grep -c '^ok' "$1.log")" "$([ $? -eq 0 ] && ! grep '^not ok' "$1.log" || tail -5 "$1.log")"
}
if [ "${YOKE_TEST_CLIENTS:-0}${YOKE_TEST_LONG:-0}" = 00 ]; then
	skip 'programs on the device' 'they cost minutes (YOKE_TEST_CLIENTS=1)'
else
	passes paged kernel
	passes batching device
fi
echo "1..$count"
exit $failed
