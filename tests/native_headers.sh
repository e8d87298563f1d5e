#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares the declarations in plugins/cuda and plugins/rocm with the vendors' own headers where
# they exist: types, constants and prototypes. Searches the usual directories and those of
# YOKE_TEST_HEADERS (colon-separated), each of which may be of another version. Installed
# libraries (also in YOKE_TEST_LIBRARIES) must export the called functions.
set -u
. "${srcdir:-.}/tests/tap.sh"
source=$(cd "${srcdir:-.}" && pwd)
cc=${CC:-cc}
$cc --version >/dev/null 2>&1 || { echo "1..0 # SKIP no compiler $cc"; exit 0; }
cd "${TMPDIR:-/tmp}" || exit 99

# compiled VENDOR PART NUMBER OUTPUT OPTION ..
compiled()
{
	v=$1 part=$2 number=$3 output=$4
	shift 4
	$cc -std=gnu11 -w -fmax-errors=0 -DVENDOR="$(echo "$v" | tr '[:lower:]' '[:upper:]')" -DPART="$part" \
		-DPART_NUMBER="$number" -DTYPES="\"$source/plugins/$v/types.h\"" \
		-DFACTS="\"$source/plugins/$v/facts.h\"" -DCALLS="\"$source/plugins/$v/calls.h\"" "$@" \
		-c "$source/tests/native_headers.c" -o "$output"
}

# Prints the compiler's messages, except for optional calls that this version of the header lacks.
judged()
{
	grep 'error:' | sed 's/.*error: //' | sort -u | while read -r line; do
		case $line in
		*"is not an integer"*) ;; # names of undeclared identifiers
		*undeclared*)
			name=$(echo "$line" | sed "s/^[^A-Za-z_]*\([A-Za-z0-9_]*\).*/\1/")
			grep -q "MAY, .* $name," "$source/plugins/$1/calls.h" || echo "$line" ;;
		*) echo "$line" ;;
		esac
	done
}

# beside VENDOR PART NUMBER HEADER FOLDER OPTION ..: compares with the header if it exists
beside()
{
	vendor=$1 part=$2 number=$3 header=$4 folder=$5
	shift 5
	[ -e "$folder/$header" ] || return
	some=1
	rm -f ours theirs
	compiled "$vendor" "$part" "$number" theirs.o -DHEADER="<$header>" -I"$folder" "$@" 2>errors
	verdict "prototypes of $folder/$header" "$(judged "$vendor" <errors)"
	# without the prototypes, whose errors may be expected
	compiled "$vendor" "$part" 9 theirs.o -DHEADER="<$header>" -I"$folder" "$@" 2>errors && $cc theirs.o -o theirs
	compiled "$vendor" "$part" 9 ours.o 2>>errors && $cc ours.o -o ours
	verdict "types and constants of $folder/$header" "$(judged "$vendor" <errors
		./ours >ours.facts; ./theirs >theirs.facts; diff ours.facts theirs.facts; grep 'by facts.h' theirs.facts)"
}

some=
for folder in /usr/local/cuda/include /opt/rocm/include /usr/include $(echo "${YOKE_TEST_HEADERS:-}" | tr ':' ' '); do
	beside cuda DRIVER 0 cuda.h "$folder"
	beside cuda COMPILER 1 nvrtc.h "$folder"
	beside cuda PRODUCTS 2 cublasLt.h "$folder"
	beside cuda TELEMETRY 3 nvml.h "$folder"
	beside cuda RANGES 4 nvtx3/nvToolsExt.h "$folder"
	beside rocm DRIVER 0 hip/hip_runtime_api.h "$folder" -D__HIP_PLATFORM_AMD__
	beside rocm COMPILER 1 hip/hiprtc.h "$folder" -D__HIP_PLATFORM_AMD__
	beside rocm TELEMETRY 3 rocm_smi/rocm_smi.h "$folder"
	beside rocm RANGES 4 roctracer/roctx.h "$folder" -D__HIP_PLATFORM_AMD__
	beside cuda COLLECTIVES 6 nccl.h "$folder"
	beside rocm COLLECTIVES 6 rccl/rccl.h "$folder" -D__HIP_PLATFORM_AMD__
	beside rocm BLAS 5 rocblas/rocblas.h "$folder" -D__HIP_PLATFORM_AMD__
done

# exported VENDOR PART NAME: does a vendor library of exactly that name export the functions of
# calls.h?
exported()
{
	for folder in /usr/local/cuda/lib64 /opt/rocm/lib /usr/lib/x86_64-linux-gnu $(echo "${YOKE_TEST_LIBRARIES:-}" | tr ':' ' '); do
		[ -e "$folder/$3" ] && nm -D --defined-only "$folder/$3" 2>/dev/null | sed 's/.* //; s/@.*//' | sort -u >there || continue
		[ -s there ] || continue
		some=1
		{
			echo "#include \"$source/plugins/$1/calls.h\""
			echo "#define ONE(part, need, result, symbol, params) part need symbol;"
			echo "YK_$(echo "$1" | tr '[:lower:]' '[:upper:]')_CALLS(ONE)"
		} >list.c
		$cc -E -P list.c | tr ';' '\n' | sed -n "s/^ *$2 NEED //p" | sort -u >wanted
		verdict "$folder/$3 has all $(wc -l <wanted) symbols" "$(comm -23 wanted there; [ -s wanted ] || echo 'none is wanted')"
	done
}
exported cuda COLLECTIVES libnccl.so.2
exported rocm COLLECTIVES librccl.so.1
exported cuda COMPILER libnvrtc.so.13
exported cuda PRODUCTS libcublasLt.so.13
exported rocm DRIVER libamdhip64.so.5
exported rocm COMPILER libhiprtc.so.5

[ -n "$some" ] || { echo '1..0 # SKIP no headers of NVIDIA or AMD in the usual folders or in YOKE_TEST_HEADERS'; exit 0; }
echo "1..$count"
exit $failed
