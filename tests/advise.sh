#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests yoke plan device: its rules (tests/choose_device.c tests each one), a measurement;
# backend=fastest, which measures once; and the device self-test command.
set -u
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/yoke.sh"
workspace advise
trap 'rm -rf "${TMPDIR:-/tmp}/advise.work"' EXIT

# says WORD KEY=VALUE ..: the rules' result is WORD: cpu, strongly, device or measure
says()
{
	want=$1
	shift
	"$yoke" plan device "$@" >out 2>&1
	code=$?
	case $want in
	strongly) text='^rule: cpu, strongly: ' ;;
	*) text="^rule: $want: " ;;
	esac
	verdict "$*: $want" "$([ $code -eq 0 ] && grep -q "$text" out || cat out)"
}
says device samples=501 epochs=10 batch=32 parameters=1e6
says strongly samples=501 epochs=10 batch=32 parameters=1e6 device=0
says cpu samples=501 epochs=10 batch=32 parameters=1e6 loader=0.5
says measure samples=501 batch=32
"$yoke" plan device samples=501 epochs=10 batch=31 parameters=1e6 >out 2>&1
verdict "a batch below 32 is reported" "$(grep -q 'batch of at least 32 ' out || cat out)"
"$yoke" plan device sampels=1 >out 2>&1
verdict "an unknown key: $(cat out)" "$([ $? -eq 2 ] && grep -q "samples" out || cat out)"
"$yoke" plan device >out 2>&1
verdict "nothing" "$([ $? -eq 2 ] || cat out)"

easy_text 400 >text
small="data=text threads=1 layers=1 heads=2 embed=16 context=16 batch=16"
# shellcheck disable=SC2086
YOKE_BACKEND=cpu "$yoke" plan device $small --measure >out 2>err
verdict "a configuration, measured" "$([ $? -eq 0 ] && grep -q '^rule: cpu, strongly: ' out &&
	grep -q '^  cpu:0  .* ms .*+- .* ms' out && grep -q '^cpu:0 is the only one' out || cat out err)"
fault=${YOKE_TEST_MODULES#*:}
if [ -e "$fault/yoke_fault.so" ]; then
	mkdir plugins && cp "$fault/yoke_fault.so" plugins/ && chmod -R go-w plugins
	export YOKE_PLUGIN_PATH="$PWD/plugins"
	# shellcheck disable=SC2086
	YOKE_BACKEND=fault,cpu "$yoke" plan device $small --measure >out 2>err
	verdict "two devices" "$([ $? -eq 0 ] && grep -q '^  cpu:0  .* ms .*+- .* ms' out && grep -q '^  fault:0  .* ms .*+- .* ms' out &&
		grep -qE '^(cpu|fault):0 is [0-9.]+ times as fast' out || cat out err)"
	if [ "${YOKE_TEST_LONG:-0}" != 0 ]; then
		# shellcheck disable=SC2086
		YOKE_BACKEND=fault,cpu YOKE_FAULT_RUN=10 "$yoke" plan device $small --measure >out 2>err
		verdict "a failing measurement reports its reason" "$([ $? -eq 0 ] && grep -q '^cpu:0 is the only one' out || cat out err)"
	fi
	# shellcheck disable=SC2086
	YOKE_BACKEND=fault,cpu "$yoke" train $small out=m steps=3 backend=fastest progress=0 report=0 2>err
	verdict "backend=fastest: $(grep '^backend=fastest' err)" "$([ $? -eq 0 ] && grep -qE '"backend": "(cpu|fault)"' m/manifest.json ||
		cat err)"
	was=$(grep '"backend"' m/manifest.json)
	"$yoke" train out=m steps=5 resume=1 backend=fastest progress=0 report=0 2>err
	verdict "a resumed run keeps its device, without a measurement" "$([ $? -eq 0 ] && ! grep '^backend=fastest' err &&
		[ "$(grep '"backend"' m/manifest.json)" = "$was" ] || cat err)"
	# shellcheck disable=SC2086
	YOKE_BACKEND=fault YOKE_FAULT_RUN=80 "$yoke" check model >out 2>err
	verdict "selftest of a device that fails" "$([ $? -eq 1 ] && grep -q '^FAIL  .*device' out &&
		grep -q '^FAIL  ' out || cat out err)"
else
	skip 'two devices' 'no fault backend'
fi
"$yoke" check model >out 2>err
verdict "selftest: $(grep -c '^PASS' out) sections" "$([ $? -eq 0 ] && [ "$(grep -c '^PASS ' out)" -eq 7 ] && [ ! -s err ] || cat out err)"
"$yoke" check model layers=2 embed=24 history=3 context=8 model=mlp >out 2>err
verdict "of a model that is given" "$([ $? -eq 0 ] && ! grep -q '^FAIL  ' out && grep -q '^PASS  ' out || cat out err)"
"$yoke" check model layers=0 >out 2>&1
verdict "of none: $(cat out)" "$([ $? -eq 2 ] && [ "$(wc -l <out)" -eq 1 ] || cat out)"
verdict "the measurement leaves no files" "$(ls "${TMPDIR:-/tmp}" | grep yoke-selftest)"
echo "1..$count"
