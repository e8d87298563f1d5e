#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests conformance on further OpenCL drivers where they are installed: Oclgrind, which interprets
# kernels and reports data races and out-of-bounds accesses; Intel's CPU runtime; Mesa's rusticl
# on llvmpipe. doc/gpu.md lists their results.
# YOKE_TEST_OCLGRIND, YOKE_TEST_INTEL and YOKE_TEST_RUSTICL name the drivers' libraries; without
# them the usual directories are searched, and for Intel's also that of the pip package
# intel-opencl-rt. YOKE_TEST_LONG runs all sampled cases.
set -u
. "${srcdir:-.}/tests/yoke.sh"
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/conforms.sh"
[ -n "${YOKE_TEST_OPENCL:-}" ] || { echo '1..0 # SKIP YOKE_TEST_OPENCL does not name the module'; exit 0; }
if [ "${YOKE_TEST_CLIENTS:-0}${YOKE_TEST_LONG:-0}" = 00 ]; then
	echo '1..0 # SKIP other drivers cost a minute each (YOKE_TEST_CLIENTS=1)'
	exit 0
fi
YOKE_QUIRKS=$(cd "${srcdir:-.}" && pwd)/doc/quirks.conf
workspace drivers
YOKE_PLUGIN_PATH=$(dirname "$YOKE_TEST_OPENCL")
export YOKE_PLUGIN_PATH YOKE_QUIRKS
turn=${YOKE_TEST_SEED:-0}

# first FILE ..: the first that exists
first()
{
	for file; do
		[ ! -e "$file" ] || { echo "$file" && return; }
	done
}

# driver NAME LIBRARY: makes the library the only driver; fails, after a SKIP, where it has no device
driver()
{
	name=$1
	[ -n "$2" ] || { skip "$name" 'not installed'; return 1; }
	echo "$2" >"$name.icd"
	export OCL_ICD_VENDORS="$PWD/$name.icd"
	"$yoke" info >info 2>&1
	device=$(sed -n 's/^  opencl:0 .* MiB  *//p' info)
	[ -n "$device" ] || { skip "$name" "$(sed -n 's/^  opencl  *//p' info | head -1)"; return 1; }
}

# conforms TITLE OPTION ..: conform passes and compares cases
conforms()
{
	title=$1
	shift
	verdict "$device, $title" "$(wrong 0 "$yoke" check device opencl "$@")"
	verdict "compares $(taken) ops" "$([ "$(taken)" -ge 1 ] || cat conform.out)"
}

# interpreted TITLE OPTION ..: the same, without reports of the interpreter's
interpreted()
{
	: >reports
	conforms "$@"
	verdict 'no data race, no access out of bounds' "$(head -40 reports)"
}

# names OP ..: f32 of each, in the long run the sample, else one case of few elements
names()
{
	for op; do
		printf '%s.f32%s,' "$op" "$([ -n "${YOKE_TEST_LONG:-}" ] || echo .1)"
	done
}

if driver oclgrind "${YOKE_TEST_OCLGRIND:-$(first /usr/lib/oclgrind/liboclgrind-rt-icd.so /usr/lib/*/oclgrind/liboclgrind-rt-icd.so \
	/usr/local/lib/oclgrind/liboclgrind-rt-icd.so)}"; then
	export OCLGRIND_DATA_RACES=1 OCLGRIND_LOG="$PWD/reports" OCLGRIND_GLOBAL_MEM_SIZE=1073741824
	interpreted 'with checks' --quick --ops "$(names map softmax softmax_backward layer_norm layer_norm_backward \
		rms_norm_backward cross_entropy cross_entropy_backward gather gather_along scatter_add scatter_add_along sort \
		move conv conv_w conv_x grouped grouped_backward attention attention_backward paged_attention scatter_set recurrent recurrent_backward ctc ctc_backward fft list_map list_reduce dequant qlinear \
		qgather)memory"
	# its optimizer makes intrinsics of these texts that its interpreter does not have
	export OCLGRIND_BUILD_OPTIONS=-cl-opt-disable
	interpreted 'with checks, not optimized' --quick --ops "$(names scan largest)memory"
	unset OCLGRIND_BUILD_OPTIONS
fi

if driver intel "${YOKE_TEST_INTEL:-$(first "$(python3 -c 'import sys; print(sys.prefix)' 2>/dev/null)/lib/libintelocl.so" \
	/opt/intel/oneapi/compiler/latest/lib/libintelocl.so /opt/intel/oneapi/lib/libintelocl.so)}"; then
	conforms 'f32' --quick --seed "$turn" --ops "$(names map reduce softmax attention scan sort scatter_add)contract.f32.2,memory"
	if [ -n "${YOKE_TEST_LONG:-}" ]; then
		conforms 'everything' --quick --seed "$turn"
	else
		conforms 'a share' --quick --seed "$turn" --shard "$((turn % 12))/12"
	fi
fi

export RUSTICL_ENABLE=llvmpipe
if driver rusticl "${YOKE_TEST_RUSTICL:-$(first /usr/lib/*/libRusticlOpenCL.so.1 /usr/lib64/libRusticlOpenCL.so.1)}"; then
	conforms 'a share' --quick --seed "$turn" --ops "$(names map reduce softmax attention sort scatter_add)contract.f32.2,memory"
fi
echo "1..$count"
exit $failed
