#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke bench serve: its counts with a small model that it serves itself, a server that runs already, requests
# that fail, a server that is not there, and wrong arguments.
set -u
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/yoke.sh"
workspace bench_serve
needs_http

easy_text 120 >text
"$yoke" train out=model steps=5 data=text tokenizer=bpe vocab=300 layers=1 heads=2 embed=32 threads=1 context=128 batch=4 progress=0 \
	report=0 telemetry=0 2>err
verdict "a model" "$([ $? -eq 0 ] || cat err)"

# measures TITLE STATUS CONDITION ARGUMENT ..: the condition is Python about the JSON `o`
measures()
{
	title=$1 want=$2 condition=$3
	shift 3
	"$yoke" bench serve "$@" --json >json 2>err
	code=$?
	verdict "$title" "$([ $code -eq "$want" ] && python3 -c '
import json, sys
o = json.load(open("json"))
times = [v for k, v in o.items() if k.endswith("_s") and isinstance(v, dict)]
assert all(t["p50"] <= t["p99"] <= t["max"] for t in times), times
assert '"$condition"', o' 2>>err || { echo "status $code"; cat err; })"
}
measures "completions: counts of tokens, and times of a stream" 0 '(o["requests"], o["failed"], o["prompt_tokens"], o["generated_tokens"]) == (6, 0, 54, 24)
assert o["exact"] and o["errors"] == {} and o["clients"] == 2
assert o["first_token_s"]["p50"] > 0 and o["between_tokens_s"]["max"] > 0 and o["request_s"]["p50"] > 0
assert o["requests_per_s"] > 0 and o["tokens_per_s"] > o["generated_per_s"] > 0 and o["server_bytes"]["after"] > 0' \
	model clients=2 requests=6 prompt=9 tokens=4 threads=1
grep -q '^requests  *6 done, 0 failed' err && grep -q '^first token .* ms .* ms .* ms$' err && grep -q "^server's memory .* MB before" err
verdict "the same as a table" "$([ $? -eq 0 ] || cat err)"
port=$(sed -n 's/.*"url": "http:.*:\([0-9]*\)".*/\1/p' json)
measures "first tokens that all prompts share are found in the cache" 0 'o["cached_tokens"] == 3 * 32 and o["prompt_tokens"] == 3 * 50' \
	model clients=1 requests=3 warm=1 prompt=50 shared=40 tokens=2 threads=1
measures "whole replies" 0 'o["failed"] == 0 and o["generated_tokens"] == 15 and "first_token_s" not in o' \
	model clients=3 requests=5 prompt=7 tokens=3 stream=0 threads=1
"$yoke" bench serve "http://127.0.0.1:$port" >out 2>err
verdict "the server that it started is gone" "$([ $? -eq 1 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] || cat out err)"

printf '{%% for m in messages %%}{{ m.content }}{%% endfor %%}' >template
echo 0123456789abcdef-key >key && chmod 600 key
start_server serve model embed=model name=small template=template key_file=key
measures "random lengths at a server that runs, by its base URL" 0 'o["failed"] == 0 and o["model"] == "small" and o["url"] + "/v1" == "'"$url"'/v1"
assert 12 * 5 < o["prompt_tokens"] < 12 * 20 and 12 * 2 < o["generated_tokens"] < 12 * 6 and "server_bytes" not in o' \
	"$url/v1" key_file=key clients=4 requests=12 prompt=5-20 tokens=2-6 seed=7
cp json first.json
measures "the seed draws the lengths" 0 '[o[k] for k in ("prompt_tokens", "generated_tokens")] == [json.load(open("first.json"))[k] for k in ("prompt_tokens", "generated_tokens")]' \
	"$url" key_file=key clients=1 requests=12 prompt=5-20 tokens=2-6 seed=7
measures "a chat" 0 'o["failed"] == 0 and o["generated_tokens"] == 12 and not o["exact"] and o["first_token_s"]["p50"] > 0' \
	"$url" key_file=key clients=2 requests=4 prompt=6 tokens=3 endpoint=chat
measures "embeddings" 0 'o["failed"] == 0 and o["generated_tokens"] == 0 and o["prompt_tokens"] > 2 * 3 * 6 and o["model"] == "model"' \
	"$url" key_file=key clients=2 requests=2 prompt=6 inputs=3 endpoint=embeddings
measures "requests that the server refuses are counted" 1 'o["failed"] == 3 and list(o["errors"].values()) == [3] and "status 400" in list(o["errors"])[0]' \
	"$url" key_file=key clients=2 requests=3 prompt=1000 tokens=3
"$yoke" bench serve "$url" requests=1 >out 2>err
verdict "no key" "$([ $? -eq 1 ] && grep -q 'status 401' err || cat out err)"
kill $pid
wait $pid
verdict "the server ends with status 0" "$([ $? -eq 0 ] || cat serve.err)"

# refuses TITLE STATUS ARGUMENT ..
refuses()
{
	title=$1 want=$2
	shift 2
	"$yoke" bench serve "$@" >out 2>err
	code=$?
	verdict "$title: $(tail -1 err)" "$([ $code -eq "$want" ] && [ ! -s out ] && [ -s err ] || { echo "status $code"; cat out err; })"
}
refuses "a URL where nobody listens" 1 http://127.0.0.1:1
refuses "a URL of another kind" 1 https://127.0.0.1
refuses "a model that is not there" 1 nowhere
refuses "a key that yoke serve does not have" 1 model tokenz=4
refuses "no server" 2
refuses "a key instead of a server" 2 clients=2
refuses "no clients" 2 model clients=0
refuses "a range that ends before it begins" 2 model prompt=9-3
refuses "no endpoint" 2 model endpoint=chats
refuses "a key twice" 2 model seed=1 seed=2
refuses "a key of the server with a URL" 2 http://127.0.0.1:1 slots=4
refuses "a port" 2 model port=8080
echo "1..$count"
