#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests misbehaving OpenCL drivers (tests/icd/fake.c): each costs one line with its reason, at
# most its backend, and devices with absurd properties are used as far as possible.
set -u
. "${srcdir:-.}/tests/yoke.sh"
fake=$PWD/tests/icd/.libs/fake_icd.so
[ -n "${YOKE_TEST_OPENCL:-}" ] || { echo "1..0 # SKIP no OpenCL backend in this build"; exit 0; }
[ -e "$fake" ] || { echo "1..0 # SKIP no $fake"; exit 0; }
[ -n "${YOKE_PLUGIN_PROBE:-}" ] || { echo "1..0 # SKIP no helper in YOKE_PLUGIN_PROBE"; exit 0; }
. "${srcdir:-.}/tests/tap.sh"
cd "${TMPDIR:-/tmp}" || exit 99
umask 022
mkdir plugins vendors && cp "$YOKE_TEST_OPENCL" plugins/ && chmod 755 plugins plugins/* || exit 99
export YOKE_PLUGIN_PATH="$PWD/plugins" YOKE_PLUGIN_PROBE_TIME=60
unset OPENCL_VENDOR_PATH

# driver NAME: from now on the only one
driver()
{
	rm -rf vendors/* && cp "$fake" "vendors/libfake_$1.so" &&
		echo "$PWD/vendors/libfake_$1.so" >vendors/fake.icd
	export OCL_ICD_VENDORS="$PWD/vendors"
}

# says TEXT WORDS: the last output has them
says()
{
	verdict "$1: $2" "$(grep -q -- "$2" out || cat out)"
}

awk 'BEGIN { for (i = 0; i < 900; i++) print "line", i % 7, "of a text" }' >text

driver aliases
"$yoke" info >out 2>&1
says aliases '^  opencl:1 .*; also opencl:2$' # by the address
says aliases '^  opencl:0 .*; also opencl:3$' # by the UUID
verdict 'each once' "$(grep '^  opencl:[23] ' out)"
says aliases '^  chosen: opencl:0$' # a GPU, of which drivers have two, before the CPU
for id in pci:0000:04:01.2 pci:04:01.2; do
	YOKE_DEVICE=$id "$yoke" info >out 2>&1
	says "$id" '^  chosen: opencl:1$'
done
YOKE_DEVICE=uuid:5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a "$yoke" info >out 2>&1
says uuid '^  chosen: opencl:0$'
YOKE_DEVICE='fake*' "$yoke" info >out 2>&1
says 'a pattern' '^  chosen: opencl:0$'
YOKE_DEVICE=opencl:3 "$yoke" info >out 2>&1
says 'asked for by name' '^  chosen: opencl:3$'
YOKE_DEVICE=pci:05:01.2 "$yoke" train data=text out=none >out 2>&1
verdict "a device that is not there fails" "$([ $? -eq 1 ] && [ "$(wc -l <out)" -eq 1 ] &&
	grep -q "device 'pci:05:01.2' cannot be used" out || cat out)"

driver nodevices
YOKE_BACKEND=opencl "$yoke" info >out 2>&1
says nodevices 'no devices: platform Fake A has no devices'
driver noids
for list in auto '' opencl,cpu; do
	YOKE_BACKEND=$list "$yoke" info >out 2>&1
	says "noids, YOKE_BACKEND=$list" 'warn: opencl: platform Fake A: clGetDeviceIDs: CL_OUT_OF_HOST_MEMORY'
	says "noids, YOKE_BACKEND=$list" '^  chosen: cpu:0$'
done
driver empty
YOKE_BACKEND=opencl "$yoke" info >out 2>&1
says 'no platform' 'no devices: the OpenCL loader found no driver'

for flaw in crash:SIGSEGV abort:SIGABRT; do
	driver "${flaw%:*}"
	"$yoke" info >out 2>&1
	says "${flaw%:*}" "died of ${flaw#*:} when it was tried; not loaded"
	says "${flaw%:*}" '^  chosen: cpu:0$'
	verdict "${flaw%:*}: one warning" "$([ "$(grep -c 'warn' out)" -eq 1 ] || cat out)"
	"$yoke" info >out 2>&1
	says "${flaw%:*}" "died of ${flaw#*:} when it was tried before"
	YOKE_BACKEND=opencl "$yoke" train data=text out=none >out 2>&1
	verdict "${flaw%:*}: an error when asked for" "$([ $? -eq 1 ] &&
		grep -q "backend 'opencl' cannot be used: died of ${flaw#*:}" out || cat out)"
done
YOKE_BACKEND=cpu YOKE_LOG=debug "$yoke" info >out 2>&1
verdict "YOKE_BACKEND=cpu meets no driver" "$(grep -n 'died\|opencl' out)"
cp "$fake" vendors/libfake_abort.so.new && mv vendors/libfake_abort.so.new vendors/libfake_abort.so
"$yoke" info >out 2>&1
says 'a driver of that name that was installed anew' 'died of SIGABRT when it was tried; not loaded'
driver moody
export YOKE_TEST_MOOD=1
"$yoke" info >out 2>&1
says moody 'died of SIGABRT when it was tried; not loaded for [1-9][0-9]* minutes'
unset YOKE_TEST_MOOD
"$yoke" info >out 2>&1
says 'a driver that behaves again is left alone for some time' 'died of SIGABRT when it was tried before'
"$yoke" doctor >out 2>&1
verdict 'yoke doctor probes the driver again' "$(grep 'died of' out)"
"$yoke" info >out 2>&1
verdict '  and yoke info agrees from then on' "$(grep 'warn: plugin' out)"
YOKE_TEST_MOOD=1 "$yoke" info >out 2>&1
verdict 'a driver that worked before and aborts costs only its backend' "$([ $? -eq 0 ] &&
	grep -q 'died of SIGABRT when it was tried; not loaded' out && grep -q '^  chosen: cpu:0$' out || cat out)"

driver good
mkfifo vendors/wait.icd
for command in info doctor; do
	timeout 600 "$yoke" $command >out 2>&1
	verdict "$command does not wait for an .icd file that is a FIFO" "$([ $? -eq 0 ] &&
		grep -q "vendors/wait.icd is no regular file" out || cat out)"
done
rm vendors/wait.icd
for flaw in 's/$/\r/' 's/^/\xef\xbb\xbf/' 's/$/ /'; do
	driver good
	sed -i "$flaw" vendors/fake.icd
	"$yoke" doctor >out 2>&1
	says "an .icd file with $flaw" "driver   fails  $PWD/vendors/fake.icd  $PWD/vendors/libfake_good.so: the file .* as part of the library's name"
done
driver good
ln -s /dev/null vendors/off.icd # as people switch drivers off
"$yoke" info >out 2>&1
verdict 'an .icd file that is a link to /dev/null is passed over' "$(grep 'warn: plugin' out)"

driver aliases
"$yoke" info >out 2>&1
says 'another driver' '^  chosen: opencl:0$'
driver hang
YOKE_PLUGIN_PROBE_TIME=3 "$yoke" info >out 2>&1
says hang 'gave no answer within 3 s'
says hang '^  chosen: cpu:0$'

driver memory
if YOKE_BACKEND=opencl "$yoke" info 2>&1 | grep -q 'found no driver'; then
	skip 'absurd answers' 'no PoCL here'
else
	YOKE_BACKEND=opencl "$yoke" info >out 2>&1
	says memory 'reports 0 bytes of memory'
	losses()
	{
		rm -rf model
		YOKE_BACKEND=opencl "$yoke" train data=text steps=2 layers=1 heads=2 embed=16 context=16 \
			batch=2 valid=0 out=model >out 2>&1 || cat out >&2
		sed -n 's/^\(step .*loss [0-9.]*\).*/\1/p' out
	}
	driver good # one of its own is no PoCL: the system's
	OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd losses >want
	turn=${YOKE_TEST_SEED:-0}
	for flaw in zeros name small full; do # each compiles anew: by turns, but for YOKE_TEST_LONG
		turn=$((turn + 1))
		[ $((turn % 4)) -eq 0 ] || [ "${YOKE_TEST_LONG:-0}" != 0 ] || continue
		driver $flaw
		losses >got
		verdict "$flaw: trains as without" "$([ -s want ] && diff want got || cat out)"
		"$yoke" info --json >out 2>&1
		says $flaw '"id": "opencl:0"'
	done
	driver nobuild # another order of sums: the last digit may differ
	losses >got
	verdict "nobuild: trains nearly as without" "$(paste want got | awk '
		{ n++; d = $NF - $(NF / 2) }
		d > 2e-4 || d < -2e-4 { print }
		END { if (n != 2) print n, "lines" }'; [ -s got ] || cat out)"
	for op in matmul/direct layer_norm/rows; do
		says nobuild "warn: plan: opencl:0: $op is not used, it does not build: clBuildProgram:.* options .*-cl-std=CL1.2.*this driver does not like it"
	done
	# a device that is gone in the middle: its last snapshot goes on, on the CPU
	learns()
	{
		rm -rf model
		"$yoke" train data=text steps=8 layers=1 heads=2 embed=16 context=16 batch=2 valid=0.1 seed=5 \
			log_every=1 snapshot_every=2 save_every=0 eval_every=0 out=model "$@" >out 2>&1 || cat out >&2
		sed -n 's/.*"step":\([0-9]*\),"loss":\([^,}]*\).*/\1 \2/p' model/metrics.jsonl
	}
	learns backend=cpu >want8
	driver lost
	learns backend=opencl,cpu >got
	verdict "lost: $(sed -n 's/.*\(training continues.*\)/\1/p' out)" "$(grep -c 'warn: train: opencl:0 was lost after step [0-9]*: .*clEnqueueNDRangeKernel.*CL_DEVICE_NOT_AVAILABLE.*; training continues on cpu:0 from step [246]$' out |
		grep -v '^1$' && cat out)"
	verdict "lost: each step once, the losses of an undisturbed run" "$(paste want8 got | awk '
		$1 != $3 || $2 - $4 > 1e-4 * $2 || $4 - $2 > 1e-4 * $2 { print }
		END { if (NR != 8) print NR, "steps" }')"
	verdict "a lost device is an error if it was requested by name" "$(rm -rf model
		YOKE_BACKEND=opencl "$yoke" train data=text steps=8 layers=1 heads=2 embed=16 context=16 batch=2 \
			valid=0 snapshot_every=2 out=model >out 2>&1 && echo 'no error'
		grep -q '^yoke train: .*CL_DEVICE_NOT_AVAILABLE' out || cat out)"
	driver fuller
	losses >got 2>err
	says 'no memory at a launch' 'ENOMEM.*clEnqueueNDRangeKernel.*CL_OUT_OF_RESOURCES'
	losses()
	{
		rm -rf model
		YOKE_BACKEND=$1 "$yoke" train data=text steps=1 layers=1 heads=2 embed=32 context=512 batch=8 \
			valid=0 out=model >out 2>&1 || cat out >&2
		sed -n 's/^\(step .*loss [0-9.]*\).*/\1/p' out
	}
	losses cpu >want
	driver small # values of 4 MiB, allocations of 2
	losses opencl >got
	verdict 'more than a buffer may have' "$(paste want got | awk '
		{ n++; d = $NF - $(NF / 2) }
		d > 2e-4 || d < -2e-4 { print }
		END { if (n != 1) print n, "lines" }'; [ -s got ] || cat out)"
fi
echo "1..$count"
