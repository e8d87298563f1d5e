#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke serve with the clients openai, langchain-openai, prometheus_client and a browser (tests/serve_clients.py).
# ./quickstart check full installs them.
set -u
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/yoke.sh"
asks_clients openai
needs_http
easy_text 120 >text
"$yoke" train out=model data=text steps=30 tokenizer=bpe vocab=300 layers=1 heads=2 embed=32 lr=0.01 threads=1 context=256 batch=4 \
	progress=0 report=0 telemetry=0 2>err
verdict "a model" "$([ $? -eq 0 ] || cat err)"
printf '{%% for m in messages %%}{{ m.role }}: {{ m.content }}\n{%% endfor %%}{%% if add_generation_prompt %%}assistant: {%% endif %%}' >template

start_server one model template=template embed=model
first=$url
start_server short model template=template slots=1 queue=1
python3 "$tests/serve_clients.py" "$first" "$url" >py.out 2>&1
code=$?
verdicts <py.out
verdict "all clients were used" "$([ $code -eq 0 ] || { echo "status $code"; tail -5 py.out; })"
echo "1..$count"
