#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke serve with the clients openai, langchain-openai, prometheus_client and a browser (tests/serve_clients.py).
# ./quickstart check full installs them.
set -u
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/yoke.sh"
asks_clients openai
pids=
finish()
{
	# shellcheck disable=SC2086 # numbers
	[ -z "$pids" ] || kill -9 $pids 2>/dev/null
	rm -rf "${TMPDIR:-/tmp}/serve_clients.work"
}
trap finish EXIT
if "$yoke" serve . 2>&1 | grep -q 'built without libmicrohttpd'; then
	echo "1..0 # SKIP built without libmicrohttpd"
	exit 0
fi
unset YOKE_API_KEY
easy_text 120 >text
"$yoke" train out=model data=text steps=30 tokenizer=bpe vocab=300 layers=1 heads=2 embed=32 lr=0.01 threads=1 context=256 batch=4 \
	progress=0 report=0 telemetry=0 2>err
verdict "a model" "$([ $? -eq 0 ] || cat err)"
printf '{%% for m in messages %%}{{ m.role }}: {{ m.content }}\n{%% endfor %%}{%% if add_generation_prompt %%}assistant: {%% endif %%}' >template

# serve NAME ARGUMENT ..: its address in $url
serve()
{
	name=$1
	shift
	"$yoke" serve model template=template port=0 threads=1 "$@" >"$name.out" 2>"$name.err" &
	pid=$!
	pids="$pids $pid"
	await written_or_ended "$name.out" "$pid"
	url=$(sed -n 's/^yoke serve: //p' "$name.out")
}
serve one embed=model
first=$url
serve short slots=1 queue=1
python3 "$tests/serve_clients.py" "$first" "$url" >py.out 2>&1
code=$?
verdicts <py.out
verdict "all clients were used" "$([ $code -eq 0 ] || { echo "status $code"; tail -5 py.out; })"
echo "1..$count"
